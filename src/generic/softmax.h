/* SPDX-License-Identifier: MIT
 * Online softmax of one block: even maximum, exponentials in place, sums in
 * key order, and the factor alpha that rescales what came before. */
#ifndef RAPT_GENERIC_SOFTMAX_H
#define RAPT_GENERIC_SOFTMAX_H

#include "kernels.h"

/* l += p, keys ascending, one chain per lane. */
RAPT_INLINE vf32 exp2_column(float *scores, int key_begin, int key_end, const struct exp2_row *row, vf32 l,
                             int shifted) {
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
    return l;
}

RAPT_INLINE vf32 largest_in_column(const float *scores, int key_begin, int key_end) {
    vf32 largest[4];
    RAPT_UNROLL for (int i = 0; i < 4; i++)
        largest[i] = v_splat(-RAPT_INFINITY);
    int key = key_begin;
    for (; key_end - key >= 4; key += 4)
        RAPT_UNROLL for (int i = 0; i < 4; i++)
            largest[i] = v_larger(v_load(scores + (key + i) * TILE_ROWS), largest[i]);
    for (; key < key_end; key++)
        largest[0] = v_larger(v_load(scores + key * TILE_ROWS), largest[0]);
    return v_larger(v_larger(largest[0], largest[1]), v_larger(largest[2], largest[3]));
}

static void softmax_wide(float *scores, int rows, int key_begin, int key_end, float *m, float *l, float *alpha) {
    for (int row = 0; row < rows; row += VL) {
        int n = rows - row < VL ? rows - row : VL;
        vf32 before = v_load_n(m + row, n);
        vf32 after = v_even_maximum(largest_in_column(scores + row, key_begin, key_end), before);
        vf32 factor = v_pow2(v_sub(before, after));
        vf32 sum = v_mul(v_load_n(l + row, n), factor);
        vmask shifted;
        struct exp2_row exp2 = exp2_row(after, &shifted);
        if (v_any(shifted))
            sum = exp2_column(scores + row, key_begin, key_end, &exp2, sum, 1);
        else
            sum = exp2_column(scores + row, key_begin, key_end, &exp2, sum, 0);
        v_store_n(m + row, after, n);
        v_store_n(l + row, sum, n);
        v_store_n(alpha + row, factor, n);
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
    vmask shifted;
    struct exp2_row row = exp2_row(v_splat(m), &shifted);
    if (v_any(shifted))
        exp2_line(t, p, count, &row, 1);
    else
        exp2_line(t, p, count, &row, 0);
}

static float largest_in_row(const float *scores, int count) {
    vf32 largest = v_splat(-RAPT_INFINITY);
    int i = 0;
    for (; count - i >= VL; i += VL)
        largest = v_larger(v_load(scores + i), largest);
    float lanes[VL], result = -RAPT_INFINITY;
    v_store(lanes, largest);
    for (int lane = 0; lane < VL; lane++)
        result = lanes[lane] > result ? lanes[lane] : result;
    for (; i < count; i++)
        result = scores[i] > result ? scores[i] : result;
    return result;
}

/* Four chains at a time; each is sequential. */
static void add_rows(const float *p, int rows, int count, float *l) {
    int row = 0;
    for (; rows - row >= 4; row += 4, p += 4 * RAPT_BLOCK_KEYS) {
        float sum[4] = {l[row], l[row + 1], l[row + 2], l[row + 3]};
        for (int i = 0; i < count; i++)
            RAPT_UNROLL for (int r = 0; r < 4; r++)
                sum[r] += p[r * RAPT_BLOCK_KEYS + i];
        memcpy(l + row, sum, sizeof sum);
    }
    for (; row < rows; row++, p += RAPT_BLOCK_KEYS)
        for (int i = 0; i < count; i++)
            l[row] += p[i];
}

static void softmax_narrow(float *scores, int rows, int key_begin, int key_end, float *m, float *l, float *alpha) {
    int count = key_end - key_begin;
    scores += key_begin;
    for (int row = 0; row < rows; row++) {
        float *line = scores + (int64_t)row * RAPT_BLOCK_KEYS;
        float lanes[VL];
        vf32 before = v_splat(m[row]);
        vf32 after = v_even_maximum(v_splat(largest_in_row(line, count)), before);
        v_store(lanes, v_pow2(v_sub(before, after)));
        alpha[row] = lanes[0];
        v_store(lanes, after);
        m[row] = lanes[0];
        l[row] *= alpha[row];
        exponentials(line, line, count, m[row]);
    }
    add_rows(scores, rows, count, l);
}

#endif
