/* SPDX-License-Identifier: MIT
 * Orders 2 and 3: online softmax of half a block (numerics.md, order 2, steps 3 to 6). Scores are rows of keys. */
#ifndef RAPT_GENERIC_UNIT_SOFTMAX_H
#define RAPT_GENERIC_UNIT_SOFTMAX_H

#include "generic/unit_numbers.h"

/* Shared by the rows of a half. t = y * factor. */
struct unit_softmax_args {
    float *y;                /* [rows][RAPT_HALF_KEYS]: scores, and then probabilities */
    float *lanes;            /* [rows][RAPT_SUM_LANES] */
    float *m, *alpha;        /* [rows] */
    const uint8_t *begin, *end; /* [rows]: keys of the half that a row sees */
    int rows, first, last;   /* keys [first, last): whole steps; the others of the half are not touched */
    float factor;
    bool fresh;              /* lanes hold nothing yet */
};

/* 2 * Q(r), highest power first. */
static const float unit_of_bf16[] = {0x1.c2a218p-4f, 0x1.f00c4cp-2f, 0x1.62f5fap+0f, 2.0f};
static const float unit_of_f16[] = {0x1.3a02ccp-6f, 0x1.c9fc46p-4f, 0x1.ec0378p-2f, 0x1.62e12cp+0f, 2.0f};

/* Q(r) * 2^n of x = n + r, +0 below -48. The magic number is even, so that ties go where they go without the 126. */
RAPT_INLINE vf32 unit_exp2(vf32 x, int is_f16) {
    const float *const factors = is_f16 ? unit_of_f16 : unit_of_bf16;
    const vf32 magic = v_splat(RAPT_ROUND_MAGIC + 126), u = v_add(x, magic), r = v_sub(x, v_sub(u, magic));
    vf32 p = v_splat(factors[0]);
    RAPT_UNROLL for (int i = 1; i < 4; i++)
        p = v_fma(p, r, v_splat(factors[i]));
    if (is_f16)
        p = v_fma(p, r, v_splat(factors[4]));
    return v_select(v_less(x, v_splat(-48)), v_splat(0), v_mul(p, v_shift_to_exponent(u)));
}

/* What a maximum means for exponentials: x = y * factor + offset, or (y * factor - mu) + shift where it is large. */
struct unit_row {
    vf32 factor, offset, mu, shift;
    bool large;
};

RAPT_INLINE struct unit_row unit_row_of(float factor, float m, int is_f16) {
    const float mu = m == -RAPT_INFINITY ? 0 : m, shift = is_f16 ? 15 : 0;
    return (struct unit_row){v_splat(factor), v_splat(-(mu - shift)), v_splat(mu), v_splat(shift),
                             !(mu < 0x1p22f && mu > -0x1p22f)};
}

RAPT_INLINE vf32 unit_probability(vf32 y, const struct unit_row *row, int is_f16, int large) {
    const vf32 x = large ? v_add(v_sub(v_mul(y, row->factor), row->mu), row->shift)
                         : v_fma(y, row->factor, row->offset);
    const vf32 p = unit_exp2(x, is_f16);
    return is_f16 ? v_round_f16(p) : v_round_bf16(p);
}

/* Lanes of keys [begin, end), of those from key on. */
RAPT_INLINE vmask unit_among(int key, int begin, int end) {
    const vf32 at = v_add(v_splat((float)key), v_iota());
    return v_and(v_not(v_less(at, v_splat((float)begin))), v_less(at, v_splat((float)end)));
}

/* The largest t of a row, ignoring NaN. With a positive factor it is that of the largest y. */
static float unit_largest(const float *y, int begin, int end, float factor) {
    const vf32 none = v_splat(-RAPT_INFINITY), by = v_splat(factor > 0 ? 1 : factor);
    vf32 largest[2] = {none, none};
    int key = begin;
    for (; key % (2 * VL) && key < end; key = (key / VL + 1) * VL) {
        const int at = key / VL * VL;
        const vmask among = unit_among(at, begin, end);
        largest[0] = v_larger(v_select(among, v_mul(v_load(y + at), by), none), largest[0]);
    }
    for (; end - key >= 2 * VL; key += 2 * VL)
        RAPT_UNROLL for (int v = 0; v < 2; v++)
            largest[v] = v_larger(factor > 0 ? v_load(y + key + v * VL) : v_mul(v_load(y + key + v * VL), by),
                                  largest[v]);
    for (; key < end; key += VL)
        largest[0] = v_larger(v_select(unit_among(key, begin, end), v_mul(v_load(y + key), by), none), largest[0]);
    const float most = s_largest(v_add(v_larger(largest[0], largest[1]), v_splat(0)));
    return factor > 0 ? most * factor : most;
}

/* A step of 32 keys: probabilities, and the sums of lanes in their order. */
RAPT_INLINE void unit_step(float *y, int key, int begin, int end, const struct unit_row *row, vf32 *l, int is_f16,
                           int large) {
    enum { PAIRS = RAPT_SUM_LANES / VL };
    const bool whole = begin <= key && key + RAPT_STEP <= end;
    RAPT_UNROLL for (int i = 0; i < PAIRS; i++) {
        vf32 p[2];
        RAPT_UNROLL for (int v = 0; v < 2; v++) {
            const int at = key + (2 * i + v) * VL;
            p[v] = unit_probability(v_load(y + at), row, is_f16, large);
            if (!whole)
                p[v] = v_select(unit_among(at, begin, end), p[v], v_splat(0));
            v_store(y + at, p[v]);
        }
        if (is_f16) {
            l[2 * i % PAIRS] = v_add(l[2 * i % PAIRS], p[0]);
            l[(2 * i + 1) % PAIRS] = v_add(l[(2 * i + 1) % PAIRS], p[1]);
        } else {
            l[i] = v_add(v_add(l[i], v_odds(p[0], p[1])), v_evens(p[0], p[1]));
        }
    }
}

RAPT_INLINE void unit_exp_row(const struct unit_softmax_args *h, int number, int is_f16, int large) {
    enum { VECTORS = RAPT_SUM_LANES / VL };
    const struct unit_row row = unit_row_of(h->factor, h->m[number], is_f16);
    const int begin = h->begin[number], end = h->end[number];
    float *y = h->y + number * RAPT_HALF_KEYS, *lanes = h->lanes + number * RAPT_SUM_LANES;
    vf32 l[VECTORS];
    RAPT_UNROLL for (int i = 0; i < VECTORS; i++)
        l[i] = h->fresh ? v_splat(0) : v_mul(v_load(lanes + i * VL), v_splat(h->alpha[number]));
    for (int key = h->first; key < h->last; key += RAPT_STEP)
        if (key < end && key + RAPT_STEP > begin)
            unit_step(y, key, begin, end, &row, l, is_f16, large);
        else
            memset(y + key, 0, RAPT_STEP * sizeof(float));
    RAPT_UNROLL for (int i = 0; i < VECTORS; i++)
        v_store(lanes + i * VL, l[i]);
}

RAPT_INLINE void unit_exp_rows(const struct unit_softmax_args *h, int is_f16) {
    for (int row = 0; row < h->rows; row++)
        if (unit_row_of(h->factor, h->m[row], is_f16).large)
            unit_exp_row(h, row, is_f16, 1);
        else
            unit_exp_row(h, row, is_f16, 0);
}

/* Order 3: probabilities are those of order 1, and are not rounded. */
RAPT_INLINE void unit_exact_row(const struct unit_softmax_args *h, int number, const struct exp2_row *row,
                                int shifted) {
    enum { VECTORS = RAPT_SUM_LANES / VL };
    const int begin = h->begin[number], end = h->end[number];
    float *y = h->y + number * RAPT_HALF_KEYS, *lanes = h->lanes + number * RAPT_SUM_LANES;
    for (int i = 0; h->fresh && i < RAPT_SUM_LANES; i += VL)
        v_store(lanes + i, v_splat(0));
    for (int i = 0; i < VECTORS; i++) {
        vf32 l = v_mul(v_load(lanes + i * VL), v_splat(h->alpha[number]));
        for (int key = h->first + i * VL; key < h->last; key += RAPT_SUM_LANES) {
            vf32 p[1] = {v_load(y + key)};
            exp2_ways(p, row, 1, shifted);
            p[0] = v_select(unit_among(key, begin, end), p[0], v_splat(0));
            v_store(y + key, p[0]);
            l = v_add(l, p[0]);
        }
        v_store(lanes + i * VL, l);
    }
}

static RAPT_KERNEL void unit_exp_rows_exact(const struct unit_softmax_args *h) {
    for (int number = 0; number < h->rows; number++) {
        const vf32 m = v_splat(h->m[number]);
        const struct exp2_row row = exp2_row(m);
        if (v_any(is_shifted(m)))
            unit_exact_row(h, number, &row, 1);
        else
            unit_exact_row(h, number, &row, 0);
    }
}

static RAPT_KERNEL void unit_exp_rows_bf16(const struct unit_softmax_args *h) { unit_exp_rows(h, 0); }
static RAPT_KERNEL void unit_exp_rows_f16(const struct unit_softmax_args *h) { unit_exp_rows(h, 1); }

/* Scores to probabilities in place; m, alpha and the lanes of l. */
static void unit_softmax(const struct unit_softmax_args *h, int format) {
    float largest[RAPT_MAX_TILE_ROWS + VL];
    const bool is_split = format == RAPT_FORMAT_F32;
    for (int row = 0; row < h->rows; row++)
        largest[row] = unit_largest(h->y + row * RAPT_HALF_KEYS, h->begin[row], h->end[row], h->factor);
    for (int row = 0; row < h->rows; row += VL) {
        const int n = h->rows - row < VL ? h->rows - row : VL;
        const vf32 before = v_load_n(h->m + row, n), most = v_load_n(largest + row, n);
        const vf32 after = is_split ? v_even_maximum(most, before) : v_larger(most, before);
        const vf32 change = v_sub(before, after);
        v_store_n(h->alpha + row, is_split ? v_pow2(change) : unit_alpha(change), n);
        v_store_n(h->m + row, after, n);
    }
    (is_split ? unit_exp_rows_exact : format == RAPT_FORMAT_F16 ? unit_exp_rows_f16 : unit_exp_rows_bf16)(h);
}

#endif
