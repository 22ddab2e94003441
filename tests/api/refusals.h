/* SPDX-License-Identifier: MIT
 * Rows of the tables in refusals.c and legal.c: a small valid call, one change, the outcome.
 *
 *     REFUSED(RAPT_INVALID_SHAPE, "batch = -1", d->batch = -1);
 *     LEGAL(d->kv_length = 0);
 *     END_OF_ROWS; */
#ifndef RAPT_TESTS_REFUSALS_H
#define RAPT_TESTS_REFUSALS_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "rapt/rapt.h"

/* Plans and runs the call, in both forms; prints and counts wrong rows. */
#define REFUSED(status, text, ...)                                                                 \
    do {                                                                                           \
        rapt_attention_desc *d = fresh();                                                          \
        __VA_ARGS__;                                                                               \
        expect_refused(d, status, text, __LINE__);                                                 \
    } while (0)

#define LEGAL(...)                                                                                 \
    do {                                                                                           \
        rapt_attention_desc *d = fresh();                                                          \
        __VA_ARGS__;                                                                               \
        expect_legal(d, true, __LINE__);                                                           \
    } while (0)

/* Too large to run: plans only. */
#define LEGAL_PLAN(...)                                                                            \
    do {                                                                                           \
        rapt_attention_desc *d = fresh();                                                          \
        __VA_ARGS__;                                                                               \
        expect_legal(d, false, __LINE__);                                                          \
    } while (0)

#define END_OF_ROWS assert_int_equal(wrong_rows(), 0)

void expect_refused(const rapt_attention_desc *desc, rapt_status status, const char *text, int line);
void expect_legal(const rapt_attention_desc *desc, bool run, int line);

/* Since the last call. */
int wrong_rows(void);

/* batch 2, 4 query heads, 2 KV heads, 3 queries, 5 keys, head_dim 8; query, key, value and out only. Every array has
 * room for ROOM elements, so sizes and strides may grow. Outputs are reset to canaries. */
enum { ROOM = 4096 };
rapt_attention_desc *fresh(void);
bool outputs_untouched(void);
const float *fresh_out(void);
const float *fresh_lse(void);

/* All keys attended, kept; biases of 0. */
void with_mask(rapt_attention_desc *desc);
void with_bias(rapt_attention_desc *desc);
void with_keep(rapt_attention_desc *desc);
void with_lse(rapt_attention_desc *desc);
void with_weights(rapt_attention_desc *desc); /* after softmax */
void with_states(rapt_attention_desc *desc);  /* both; the initial ones are empty */

/* query and out as parts of one record per token; out begins `floats` after query: below 32 they overlap. */
void fuse(rapt_attention_desc *desc, int floats);

extern const float zeros[ROOM];
rapt_index_list list32(const void *data);
rapt_index_list list64(const void *data);
/* One value per query head: 0, 0, 0, x. */
const float *last_is(float x);

#endif
