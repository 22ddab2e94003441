/* SPDX-License-Identifier: MIT
 * A small call on plain memory, without masks: where tests of single bugs start. */
#ifndef RAPT_TESTS_SMALL_H
#define RAPT_TESTS_SMALL_H

#include "support/support.h"

/* 2 sequences, 4 heads on 2. */
enum { BATCH = 2, HEADS = 4, KV_HEADS = 2, DIM = 20 };
struct small {
    int64_t queries, keys;
    float *query, *key, *value, *out, *lse, *expected; /* expected: for the test */
    rapt_attention_desc desc;
};

/* Random data; test_free_all releases it. */
struct small small_new(int64_t queries, int64_t keys);

/* Runs it with rapt_attention; any status but RAPT_OK fails the test. */
void small_run(struct small *s, rapt_isa isa);

/* Fails unless rapt_attention gives that status with a message and writes nothing. */
void small_expect_status(const struct small *s, rapt_status expected);

float *small_row(float *rows, const struct small *s, int64_t b, int64_t h, int64_t i);

/* For a row of DIM: all +0; all the canonical NaN; all finite. */
bool row_is_zero(const float *x);
bool row_is_nan(const float *x);
bool row_is_finite(const float *x);

#endif
