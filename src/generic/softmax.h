/* SPDX-License-Identifier: MIT
 * Online softmax of one block: even maximum, exponentials in place, sums in
 * key order, and the factor alpha that rescales what came before. */
#ifndef RAPT_GENERIC_SOFTMAX_H
#define RAPT_GENERIC_SOFTMAX_H

#include "generic/errands.h"
#include "generic/span.h"

enum { SOFTMAX_LINES = 8 }; /* lines that a narrow tile prefetches at a time */

/* l += p, keys ascending, one chain per lane. */
RAPT_INLINE void exp2_column(float *scores, int key_begin, int key_end, vf32 m, float *sums, int shifted) {
    const struct exp2_row constants = exp2_row(m), *row = &constants;
    vf32 l = v_load(sums);
    int key = key_begin;
    for (; key_end - key >= EXP_WAYS; key += EXP_WAYS) {
        vf32 p[EXP_WAYS];
        RAPT_UNROLL for (int i = 0; i < EXP_WAYS; i++)
            p[i] = v_load(scores + (key + i) * TILE_ROWS);
        exp2_ways(p, row, EXP_WAYS, shifted);
        RAPT_UNROLL for (int i = 0; i < EXP_WAYS; i++) {
            v_store(scores + (key + i) * TILE_ROWS, p[i]);
            l = v_add(l, p[i]);
        }
    }
    for (; key < key_end; key++) {
        vf32 p = v_load(scores + key * TILE_ROWS);
        exp2_ways(&p, row, 1, shifted);
        v_store(scores + key * TILE_ROWS, p);
        l = v_add(l, p);
    }
    v_store(sums, l);
}

/* Separate functions, since registers barely suffice. */
static RAPT_KERNEL void exp2_wide(float *scores, int key_begin, int key_end, vf32 m, float *sums) {
    exp2_column(scores, key_begin, key_end, m, sums, 0);
}

static RAPT_KERNEL void exp2_wide_shifted(float *scores, int key_begin, int key_end, vf32 m, float *sums) {
    exp2_column(scores, key_begin, key_end, m, sums, 1);
}

/* Eight chains hide the latency of comparisons. */
RAPT_INLINE vf32 largest_in_column(const float *scores, int key_begin, int key_end) {
    vf32 largest[8];
    RAPT_UNROLL for (int i = 0; i < 8; i++)
        largest[i] = v_splat(-RAPT_INFINITY);
    int key = key_begin;
    for (; key_end - key >= 8; key += 8)
        RAPT_UNROLL for (int i = 0; i < 8; i++)
            largest[i] = v_larger(v_load(scores + (key + i) * TILE_ROWS), largest[i]);
    for (; key < key_end; key++)
        largest[0] = v_larger(v_load(scores + key * TILE_ROWS), largest[0]);
    RAPT_UNROLL for (int width = 4; width > 0; width /= 2)
        RAPT_UNROLL for (int i = 0; i < width; i++)
            largest[i] = v_larger(largest[i], largest[i + width]);
    return largest[0];
}

RAPT_INLINE void clear_column(float *scores, int key_begin, int key_end) {
    for (int key = key_begin; key < key_end; key++)
        v_store(scores + key * TILE_ROWS, v_splat(0));
}

/* The maximum, and alpha for earlier keys. */
RAPT_INLINE vf32 maximum_wide(const float *scores, int rows, struct span keys, float *m, float *l, float *alpha,
                              float *sums) {
    vf32 before = v_load_n(m, rows);
    vf32 after = v_even_maximum(largest_in_column(scores, keys.begin, keys.end), before);
    vf32 factor = v_pow2(v_sub(before, after));
    v_store(sums, v_mul(v_load_n(l, rows), factor));
    v_store_n(m, after, rows);
    v_store_n(alpha, factor, rows);
    return after;
}

/* The maximum of a vector of rows precedes the exponentials of the vector before: these hide its latency and find their
 * scores still in L1. */
static void softmax_wide(float *scores, int first_row, int end_row, int key_begin, int key_end,
                         const struct rapt_visible_spans *spans, float *m, float *l, float *alpha,
                         struct rapt_errands *errands) {
    (void)errands; /* score and weigh run them all */
    assume_rows(first_row, end_row, VL, TILE_ROWS);
    assume_keys(key_begin, key_end);
    assume_spans(spans, end_row);
    float maxima[TILE_ROWS + VL], sums[TILE_ROWS + VL];
    struct span keys[SCORE_VECTORS + 1];
    for (int row = first_row; row < end_row + VL; row += VL) {
        const int n = end_row - row < VL ? end_row - row : VL, old = row - VL;
        if (n > 0) {
            keys[row / VL] = span_of(spans, row, n, key_begin, key_end);
            v_store(maxima + row,
                    maximum_wide(scores + row, n, keys[row / VL], m + row, l + row, alpha + row, sums + row));
        }
        if (old < first_row)
            continue;
        const struct span seen = keys[old / VL];
        vf32 after = v_load(maxima + old);
        clear_column(scores + old, key_begin, seen.begin);
        (v_any(is_shifted(after)) ? exp2_wide_shifted : exp2_wide)(scores + old, seen.begin, seen.end, after,
                                                                  sums + old);
        clear_column(scores + old, seen.end, key_end);
        v_store_n(l + old, v_load(sums + old), end_row - old < VL ? end_row - old : VL);
    }
}

RAPT_INLINE void exp2_line(const float *t, float *p, int64_t count, const struct exp2_row *row, int shifted) {
    int64_t i = 0;
    for (; count - i >= EXP_WAYS * VL; i += EXP_WAYS * VL) {
        vf32 ways[EXP_WAYS];
        RAPT_UNROLL for (int w = 0; w < EXP_WAYS; w++)
            ways[w] = v_load(t + i + w * VL);
        exp2_ways(ways, row, EXP_WAYS, shifted);
        RAPT_UNROLL for (int w = 0; w < EXP_WAYS; w++)
            v_store(p + i + w * VL, ways[w]);
    }
    for (; i < count; i += VL) {
        int n = count - i < VL ? (int)(count - i) : VL;
        vf32 way = v_load_n(t + i, n);
        exp2_ways(&way, row, 1, shifted);
        v_store_n(p + i, way, n);
    }
}

static void exponentials(const float *t, float *p, int64_t count, float m) {
    struct exp2_row row = exp2_row(v_splat(m));
    if (v_any(is_shifted(v_splat(m))))
        exp2_line(t, p, count, &row, 1);
    else
        exp2_line(t, p, count, &row, 0);
}

/* Each lane: the maximum of a part of the row. */
RAPT_INLINE vf32 largest_in_row(const float *scores, int count) {
    vf32 largest[2] = {v_splat(-RAPT_INFINITY), v_splat(-RAPT_INFINITY)};
    int i = 0;
    for (; count - i >= 2 * VL; i += 2 * VL)
        RAPT_UNROLL for (int v = 0; v < 2; v++)
            largest[v] = v_larger(v_load(scores + i + v * VL), largest[v]);
    for (; count - i >= VL; i += VL)
        largest[0] = v_larger(v_load(scores + i), largest[0]);
    for (; i < count; i++)
        largest[1] = v_larger(v_splat(scores[i]), largest[1]);
    return v_larger(largest[0], largest[1]);
}

/* maximum_wide for up to VL separate rows, as its lanes. */
static void maximum_rows(const float *scores, int stride, int rows, int count, float *m, float *l, float *alpha) {
    float parts[VL * TILE_ROWS], sums[VL];
    vf32 largest[VL];
    for (int row = 0; row < VL; row++)
        largest[row] = row < rows ? largest_in_row(scores + (int64_t)row * stride, count)
                                  : v_splat(-RAPT_INFINITY);
    v_transpose(largest);
    RAPT_UNROLL for (int i = 0; i < VL; i++)
        v_store(parts + i * TILE_ROWS, largest[i]);
    maximum_wide(parts, rows, (struct span){0, VL, 0, VL}, m, l, alpha, sums);
    v_store_n(l, v_load(sums), rows);
}

/* l += p: each row is one chain of additions, so several rows go at once. */
RAPT_INLINE void add_rows(const float *p, int rows, int count, float *l, struct rapt_errands *errands) {
    float sum[8];
    RAPT_UNROLL for (int r = 0; r < rows; r++)
        sum[r] = l[r];
    for (int i = 0; i < count; i++) {
        if (i % 16 == 0)
            run_errands(errands, SOFTMAX_LINES);
        RAPT_UNROLL for (int r = 0; r < rows; r++)
            sum[r] += p[r * RAPT_BLOCK_KEYS + i];
    }
    RAPT_UNROLL for (int r = 0; r < rows; r++)
        l[r] = sum[r];
}

static void add_all_rows(const float *p, int rows, int count, float *l, struct rapt_errands *errands) {
    int row = 0;
    for (; rows - row >= 8; row += 8)
        add_rows(p + row * RAPT_BLOCK_KEYS, 8, count, l + row, errands);
    for (; rows - row >= 4; row += 4)
        add_rows(p + row * RAPT_BLOCK_KEYS, 4, count, l + row, errands);
    for (; rows - row >= 2; row += 2)
        add_rows(p + row * RAPT_BLOCK_KEYS, 2, count, l + row, errands);
    for (; row < rows; row++)
        add_rows(p + row * RAPT_BLOCK_KEYS, 1, count, l + row, errands);
}

static void softmax_narrow(float *scores, int first_row, int end_row, int key_begin, int key_end,
                           const struct rapt_visible_spans *spans, float *m, float *l, float *alpha,
                           struct rapt_errands *errands) {
    (void)spans; /* few rows: little to skip */
    assume_rows(first_row, end_row, 1, NARROW_MOST);
    assume_keys(key_begin, key_end);
    int count = key_end - key_begin;
    float no_sums[NARROW_MOST] = {0}, *sums = l ? l : no_sums;
    scores += key_begin;
    for (int row = first_row; row < end_row; row += VL)
        maximum_rows(scores + (int64_t)row * RAPT_BLOCK_KEYS, RAPT_BLOCK_KEYS, end_row - row < VL ? end_row - row : VL,
                     count, m + row, sums + row, alpha + row);
    for (int row = first_row; row < end_row; row++) {
        float *line = scores + (int64_t)row * RAPT_BLOCK_KEYS;
        run_errands(errands, 2 * SOFTMAX_LINES);
        exponentials(line, line, count, m[row]);
    }
    if (l)
        add_all_rows(scores + first_row * RAPT_BLOCK_KEYS, end_row - first_row, count, l + first_row, errands);
}

#endif
