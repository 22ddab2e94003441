/* SPDX-License-Identifier: MIT */
#ifndef RAPT_TESTS_PROBLEM_DATA_H
#define RAPT_TESTS_PROBLEM_DATA_H

#include "problem.h"

enum array_name {
    ARRAY_QUERY,
    ARRAY_KEY,
    ARRAY_VALUE,
    ARRAY_MASK,
    ARRAY_BIAS,
    ARRAY_KEEP,
    ARRAY_FACTOR,
    ARRAY_SLOPES,
    ARRAY_SINKS,
    ARRAY_LISTS,
    ARRAY_NUMBERS
};

/* One row each. array_seed is the same for all rows of an array. */
void draw_row(float *row, int64_t count, enum data_kind kind, enum array_name name, struct random *random);
void draw_flags(uint8_t *row, int64_t count, uint64_t array_seed, struct random *random);
void draw_bias(float *row, int64_t count, uint64_t array_seed, bool is_benign, struct random *random);
void draw_head_list(float *list, int64_t heads, enum array_name name, struct random *random);

#endif
