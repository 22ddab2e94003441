/* SPDX-License-Identifier: MIT
 * Checks of what slots assume of their callers (kernels.h); none in release builds. */
#ifndef RAPT_GENERIC_ASSUMED_H
#define RAPT_GENERIC_ASSUMED_H

#include "assume.h"
#include "kernels.h"

#ifdef RAPT_ASSERTIONS

static inline void assume_keys(int key_begin, int key_end) {
    RAPT_ASSUME(key_begin >= 0 && key_begin <= key_end && key_end <= RAPT_BLOCK_KEYS);
}

static inline void assume_rows(int first_row, int end_row, int row_group, int most_rows) {
    RAPT_ASSUME(first_row >= 0 && first_row <= end_row && end_row <= most_rows);
    RAPT_ASSUME(first_row % row_group == 0 || first_row == end_row);
}

static inline void assume_spans(const struct rapt_visible_spans *spans, int rows) {
    for (int row = 1; spans && row < rows; row++) {
        RAPT_ASSUME(spans->first_key[row] >= spans->first_key[row - 1]);
        RAPT_ASSUME(spans->end_key[row] >= spans->end_key[row - 1]);
    }
}

static inline void assume_score(const struct rapt_score_args *a, int most_rows) {
    RAPT_ASSUME(a->rows >= 1 && a->rows <= most_rows && a->head_dim >= 1);
    assume_keys(a->key_begin, a->key_end);
    assume_spans(a->spans, a->rows);
}

static inline void assume_weigh(const struct rapt_weigh_args *a, int most_rows) {
    RAPT_ASSUME(a->value_dim >= 1 && a->o_stride >= a->value_dim && a->o_stride % 16 == 0);
    assume_rows(a->first_row, a->first_row + a->rows, 1, most_rows);
    assume_keys(a->key_begin, a->key_end);
    assume_spans(a->spans, a->rows);
}

#else
#define assume_keys(key_begin, key_end) ((void)0)
#define assume_rows(first_row, end_row, row_group, most_rows) ((void)0)
#define assume_spans(spans, rows) ((void)0)
#define assume_score(args, most_rows) ((void)0)
#define assume_weigh(args, most_rows) ((void)0)
#endif

#endif
