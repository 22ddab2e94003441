/* SPDX-License-Identifier: MIT
 * Probabilities times values: lanes are value_dim, each output one FMA chain
 * over the keys. The two orientations differ in where p[row, key] lies. */
#ifndef RAPT_GENERIC_WEIGH_H
#define RAPT_GENERIC_WEIGH_H

#include "generic/errands.h"
#include "generic/span.h"

enum {
    WEIGH_AHEAD = 32, /* keys, if memory-bound */
    NARROW_PIECE = WEIGH_AHEAD, /* keys staged at once for few rows, which then stay in L1 */
    FETCH_KEYS = 16 /* keys per group of prefetches: with fewer, GCC spills sums */
};

/* A register tile of rows x vectors accumulators; width < VL cuts the last vector. */
struct panel {
    int rows, vectors, width;
    int64_t row_step, key_step;
};

/* Keys [key, end). */
RAPT_INLINE void weigh_keys(const struct rapt_weigh_args *a, struct panel of, vf32 sum[][8], const float *p,
                            const char *value, int key, int end) {
    RAPT_UNROLL_4 for (; key < end; key++, p += of.key_step, value += a->value_stride_bytes) {
        vf32 x[8];
        const float *value_row = (const float *)(const void *)value;
        RAPT_UNROLL for (int v = 0; v < of.vectors; v++)
            x[v] = v == of.vectors - 1 && of.width < VL ? v_load_n(value_row + v * VL, of.width)
                                                        : v_load(value_row + v * VL);
        if (WEIGH_BY_LANE && of.row_step == 1 && of.rows % 4 == 0) {
            RAPT_UNROLL for (int r = 0; r < of.rows; r += 4) {
                vfour weights = v_four(p + r);
#define RAPT_LANE(lane)                                                                                          \
    RAPT_UNROLL for (int v = 0; v < of.vectors; v++)                                                             \
        sum[r + lane][v] = v_fma_lane(weights, lane, x[v], sum[r + lane][v]);
                RAPT_LANE(0)
                RAPT_LANE(1)
                RAPT_LANE(2)
                RAPT_LANE(3)
#undef RAPT_LANE
            }
            continue;
        }
        RAPT_UNROLL for (int r = 0; r < of.rows; r++) {
            vf32 weight = v_splat(p[r * of.row_step]);
            RAPT_UNROLL for (int v = 0; v < of.vectors; v++)
                sum[r][v] = v_fma(weight, x[v], sum[r][v]);
        }
    }
}

/* Lines to prefetch per part of FETCH_KEYS keys, so that the last part fetches the last line, if the middle row sees
 * about as many keys as rows do on average. */
RAPT_INLINE int64_t lines_of_part(const struct rapt_weigh_args *a, struct panel of) {
    const int64_t groups = (a->rows + of.rows - 1) / of.rows, width = of.vectors * VL;
    const struct span keys = span_of(a->spans, a->rows / 2, 1, a->key_begin, a->key_end);
    const int64_t parts = groups * ((a->value_dim + width - 1) / width) * ((keys.end - keys.begin) / FETCH_KEYS);
    return a->errands->lines / (parts + 1) + 1;
}

/* The keys of a span, errands between parts of them. */
RAPT_INLINE void weigh_run(const struct rapt_weigh_args *a, struct panel of, vf32 sum[][8], const float *p, int64_t d,
                           struct span keys) {
    const char *value = a->value + (keys.begin - a->key_begin) * a->value_stride_bytes + d * (int64_t)sizeof(float);
    const int64_t lines = a->errands ? lines_of_part(a, of) : 0;
    int key = keys.begin;
    p += key * of.key_step;
    for (; lines && keys.end - key >= FETCH_KEYS; key += FETCH_KEYS) {
        run_errands(a->errands, lines);
        weigh_keys(a, of, sum, p, value, key, key + FETCH_KEYS);
        p += FETCH_KEYS * of.key_step, value += FETCH_KEYS * a->value_stride_bytes;
    }
    weigh_keys(a, of, sum, p, value, key, keys.end);
}

RAPT_INLINE void weigh_panel(const struct rapt_weigh_args *a, int row, int64_t d, struct panel of) {
    vf32 sum[WEIGH_ROWS][8];
    float *o = a->o + row * a->o_stride + d;
    RAPT_UNROLL for (int r = 0; r < of.rows; r++)
        RAPT_UNROLL for (int v = 0; v < of.vectors; v++) {
            sum[r][v] = a->fresh ? v_splat(0) : v_load(o + r * a->o_stride + v * VL);
        }
    if (!a->fresh && a->alpha)
        RAPT_UNROLL for (int r = 0; r < of.rows; r++)
            RAPT_UNROLL for (int v = 0; v < of.vectors; v++)
                sum[r][v] = v_mul(sum[r][v], v_splat(a->alpha[row + r]));
    const struct span keys = span_of(a->spans, row, of.rows, a->key_begin, a->key_end);
    weigh_run(a, of, sum, a->probabilities + row * of.row_step, d, keys);
    RAPT_UNROLL for (int r = 0; r < of.rows; r++)
        RAPT_UNROLL for (int v = 0; v < of.vectors; v++)
            v_store(o + r * a->o_stride + v * VL, sum[r][v]);
}

/* All whole groups of `rows` rows, from row on. Returns the row after them. */
RAPT_INLINE int weigh_groups(const struct rapt_weigh_args *a, int row, int64_t d, struct panel of, int rows) {
    of.rows = rows;
    for (; a->rows - row >= rows; row += rows)
        weigh_panel(a, row, d, of);
    return row;
}

/* Whether groups of so many rows are as few as groups of most. */
RAPT_INLINE bool suffices(int rows, int of_group, int most) {
    return of_group < most && (rows + of_group - 1) / of_group == (rows + most - 1) / most;
}

/* All rows of one panel of value_dim, in groups of at most of.rows; 16 are 8 + 8, not 12 + 4. */
RAPT_INLINE void weigh_rows(const struct rapt_weigh_args *a, int64_t d, struct panel of) {
    int row = 0;
    if (!suffices(a->rows, 8, of.rows) && !suffices(a->rows, 4, of.rows))
        row = weigh_groups(a, row, d, of, of.rows);
    if (of.rows > 8 && !suffices(a->rows, 4, of.rows))
        row = weigh_groups(a, row, d, of, 8);
    if (of.rows > 4)
        row = weigh_groups(a, row, d, of, 4);
    if (of.rows > 2)
        row = weigh_groups(a, row, d, of, 2);
    if (of.rows > 1)
        weigh_groups(a, row, d, of, 1);
}

#define RAPT_WEIGH_WIDE(way, most, vectors, row_step, key_step)                                                  \
    static RAPT_KERNEL void weigh_##way##_##vectors(const struct rapt_weigh_args *a, int64_t d, int width) {     \
        if (VL == 1 || width == VL)                                                                              \
            weigh_rows(a, d, (struct panel){most, vectors, VL, row_step, key_step});                             \
        else                                                                                                     \
            weigh_rows(a, d, (struct panel){most, vectors, width & (VL - 1), row_step, key_step});               \
    }

RAPT_WEIGH_WIDE(wide, WEIGH_ROWS, 1, 1, TILE_ROWS)
RAPT_WEIGH_WIDE(wide, WEIGH_ROWS, 2, 1, TILE_ROWS)
RAPT_WEIGH_WIDE(wide, WEIGH_ROWS_3, 3, 1, TILE_ROWS)

static int width_of_panel(const struct rapt_weigh_args *a, int64_t d, int vectors) {
    int64_t left = a->value_dim - d - (int64_t)(vectors - 1) * VL;
    return left < VL ? (int)left : VL;
}

static void weigh_wide_rows(const struct rapt_weigh_args *a) {
    int64_t left = (a->value_dim + VL - 1) / VL;
    for (int64_t d = 0; left > 0;) {
        int vectors = left == 3 ? 3 : left >= 2 ? 2 : 1;
        int width = width_of_panel(a, d, vectors);
        if (vectors == 3)
            weigh_wide_3(a, d, width);
        else if (vectors == 2)
            weigh_wide_2(a, d, width);
        else
            weigh_wide_1(a, d, width);
        d += vectors * VL, left -= vectors;
    }
}

static void weigh_wide(const struct rapt_weigh_args *a) {
    assume_weigh(a, TILE_ROWS);
    struct rapt_weigh_args rows = *a;
    rows.probabilities += a->first_row;
    weigh_wide_rows(&rows);
}

#endif
