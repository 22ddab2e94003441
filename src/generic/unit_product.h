/* SPDX-License-Identifier: MIT
 * Orders 2 and 3: products of rows and panels by chains of FMAs, with the bits of a matrix unit (numerics.md, order 2):
 * in steps of 32 terms, one chain over the even ones and one over the odd ones, then two additions. */
#ifndef RAPT_GENERIC_UNIT_PRODUCT_H
#define RAPT_GENERIC_UNIT_PRODUCT_H

#include "generic/unit_pack.h"

/* Rows times a panel. ASSUME the processor flushes as order 2 does, where it can (unit_flush). */
struct unit_product {
    const float *a;      /* [rows][RAPT_HALF_KEYS], with rows up to a multiple of UNIT_ROWS */
    const float *b;      /* [terms][UNIT_COLUMNS] */
    float *c;            /* [rows][c_stride] */
    int64_t c_stride;
    int64_t a_part, b_part; /* order 3: stride of the parts of numbers; otherwise 0 */
    int rows, terms;     /* terms: a multiple of 4 */
    bool adds;           /* c holds a sum already */
};

/* Where the processor does not flush as order 2 does. Tiny results are found by the same operation on numbers 2^64
 * times as large: only a result of exactly 2^-126 may have been rounded up to it from one to be flushed. No result is
 * that small where an argument is large. */
RAPT_INLINE vf32 unit_fma_exact(vf32 a, vf32 b, vf32 c) {
    const vf32 up = v_splat(0x1p32f), sum = v_fma(a, b, c);
    const vf32 scaled = v_fma(v_mul(a, up), v_mul(b, up), v_mul(v_mul(c, up), up));
    const vmask stays = v_not(v_less(v_abs(scaled), v_splat(0x1p-62f)));
    const vmask is_small = v_not(v_less(v_splat(0x1p-126f), v_abs(sum)));
    const vmask is_number = v_equal(sum, sum);
    return v_select(v_and(v_and(is_small, is_number), v_not(stays)), v_with_sign(v_splat(0), sum), sum);
}

RAPT_INLINE vf32 unit_add(vf32 a, vf32 b, int exact) {
    const vf32 sum = v_add(a, b);
    return exact ? v_select(v_less(v_abs(sum), v_splat(0x1p-126f)), v_with_sign(v_splat(0), sum), sum) : sum;
}

#define UNIT_TERM(lane)                                                                                         \
    do {                                                                                                        \
        const vf32 b0 = v_load(b + (k + (lane)) * UNIT_COLUMNS), b1 = v_load(b + (k + (lane)) * UNIT_COLUMNS + VL); \
        RAPT_UNROLL for (int r = 0; r < rows; r++) {                                                            \
            if (exact) {                                                                                        \
                const vf32 factor = v_splat(a[r * RAPT_HALF_KEYS + k + (lane)]);                                \
                sum[2 * r] = unit_fma_exact(factor, b0, sum[2 * r]);                                            \
                sum[2 * r + 1] = unit_fma_exact(factor, b1, sum[2 * r + 1]);                                    \
            } else {                                                                                            \
                const vfour factors = v_four(a + r * RAPT_HALF_KEYS + k);                                       \
                sum[2 * r] = v_fma_lane(factors, lane, b0, sum[2 * r]);                                         \
                sum[2 * r + 1] = v_fma_lane(factors, lane, b1, sum[2 * r + 1]);                                 \
            }                                                                                                   \
        }                                                                                                       \
    } while (0)

/* The even or the odd terms of a step. */
RAPT_INLINE void unit_chain(const float *a, const float *b, int terms, int odd, int exact, vf32 *sum, int rows) {
    RAPT_UNROLL for (int i = 0; i < 2 * rows; i++)
        sum[i] = v_splat(0);
    for (int k = 0; k < terms; k += 4) {
        if (odd) {
            UNIT_TERM(1);
            UNIT_TERM(3);
        } else {
            UNIT_TERM(0);
            UNIT_TERM(2);
        }
    }
}

/* A step: c + a * b, or a * b. */
RAPT_INLINE void unit_step_of(const float *a, const float *b, float *c, int64_t c_stride, int terms, bool adds,
                              int exact, int rows) {
    vf32 sum[2 * UNIT_ROWS];
    float even[2 * UNIT_ROWS * VL];
    unit_chain(a, b, terms, 0, exact, sum, rows);
    RAPT_UNROLL for (int i = 0; i < 2 * rows; i++)
        v_store(even + i * VL, sum[i]);
    unit_chain(a, b, terms, 1, exact, sum, rows);
    RAPT_UNROLL for (int i = 0; i < 2 * rows; i++)
        sum[i] = unit_add(v_load(even + i * VL), sum[i], exact);
    if (adds)
        RAPT_UNROLL for (int i = 0; i < 2 * rows; i++)
            sum[i] = unit_add(v_load(c + (i / 2) * c_stride + (i % 2) * VL), sum[i], exact);
    RAPT_UNROLL for (int i = 0; i < 2 * rows; i++)
        v_store(c + (i / 2) * c_stride + (i % 2) * VL, sum[i]);
}

RAPT_INLINE void unit_rows(const struct unit_product *p, int row, int rows, int exact) {
    const float *a = p->a + (int64_t)row * RAPT_HALF_KEYS, *b = p->b;
    float *c = p->c + row * p->c_stride;
    const int first_sum = p->a_part ? 0 : UNIT_SPLIT_SUMS - 1;
    for (int first = 0; first < p->terms; first += RAPT_STEP) {
        const int terms = p->terms - first < RAPT_STEP ? p->terms - first : RAPT_STEP;
        for (int i = first_sum; i < UNIT_SPLIT_SUMS; i++)
            unit_step_of(a + unit_split_sums[i][0] * p->a_part + first,
                         b + unit_split_sums[i][1] * p->b_part + (int64_t)first * UNIT_COLUMNS, c, p->c_stride, terms,
                         first || i > first_sum || p->adds, exact, rows);
    }
}

static RAPT_KERNEL void unit_rows_all(const struct unit_product *p, int row) { unit_rows(p, row, UNIT_ROWS, 0); }
static RAPT_KERNEL void unit_rows_four(const struct unit_product *p, int row) { unit_rows(p, row, 4, 0); }
static RAPT_KERNEL void unit_rows_one(const struct unit_product *p, int row) { unit_rows(p, row, 1, 0); }
static RAPT_KERNEL void unit_rows_exact(const struct unit_product *p, int row) { unit_rows(p, row, 1, 1); }

/* normal: RAPT_FOUND_NORMAL of both sides. */
static void unit_multiply(const struct unit_product *p, bool normal) {
    int row = 0;
    for (; !FLUSHES && !normal && row < p->rows; row++)
        unit_rows_exact(p, row);
    for (; p->rows - row > 4; row += UNIT_ROWS)
        unit_rows_all(p, row);
    if (p->rows - row > 1)
        unit_rows_four(p, row);
    else if (p->rows - row == 1)
        unit_rows_one(p, row);
}

/* One row and only the keys it attends to: others count as +0, whatever they hold. */
static RAPT_KERNEL void unit_careful(const struct unit_product *p, const uint8_t *attended) {
    vf32 total[2] = {v_splat(0), v_splat(0)};
    const int first_sum = p->a_part ? 0 : UNIT_SPLIT_SUMS - 1;
    for (int step = 0; step < p->terms / RAPT_STEP * UNIT_SPLIT_SUMS; step++) {
        const int first = step / UNIT_SPLIT_SUMS * RAPT_STEP, i = step % UNIT_SPLIT_SUMS;
        const float *from_a = p->a + unit_split_sums[i][0] * p->a_part;
        const float *from_b = p->b + unit_split_sums[i][1] * p->b_part;
        vf32 sum[2][2] = {{v_splat(0), v_splat(0)}, {v_splat(0), v_splat(0)}};
        if (i < first_sum)
            continue;
        for (int k = first; k < first + RAPT_STEP; k++)
            for (int v = 0; attended[k] && v < 2; v++) {
                const vf32 a = v_splat(from_a[k]), b = v_load(from_b + k * UNIT_COLUMNS + v * VL);
                vf32 *into = &sum[k % 2][v];
                *into = FLUSHES ? v_fma(a, b, *into) : unit_fma_exact(a, b, *into);
            }
        for (int v = 0; v < 2; v++)
            total[v] = unit_add(total[v], unit_add(sum[0][v], sum[1][v], !FLUSHES), !FLUSHES);
    }
    for (int v = 0; v < 2; v++)
        v_store(p->c + v * VL, total[v]);
}

#endif
