/* SPDX-License-Identifier: MIT
 * One head of random numbers, attended at once or in parts. */
#ifndef RAPT_TESTS_STATES_DATA_H
#define RAPT_TESTS_STATES_DATA_H

#include "rapt/states.h"

struct states_call {
    rapt_attention_desc desc; /* with out */
};

/* Memory is that of test_alloc. */
void states_call_draw(struct states_call *call, int64_t rows, int64_t keys, int64_t dim, uint64_t seed);

void states_run_whole(const struct states_call *call, float *out, float *lse);

/* The state after the keys [first, first + keys), which continue from `from` unless that is NULL. */
rapt_tensor states_of_keys(const struct states_call *call, int64_t first, int64_t keys, const rapt_tensor *from);

/* states_refusals.c */
void test_merge_refusals(void **state);
void test_merge_legal(void **state);

#endif
