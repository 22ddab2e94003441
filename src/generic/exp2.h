/* SPDX-License-Identifier: MIT
 * The elementary functions of the numeric order: exp2 (step 5), pow2 (step 7),
 * tanh_r (softcap) and log2_r (LSE), with the constants of docs/numerics.md. */
#ifndef RAPT_GENERIC_EXP2_H
#define RAPT_GENERIC_EXP2_H

#include <stdint.h>
#include <string.h>

#include "generic/loops.h"
#include "kernels.h"

#define RAPT_INFINITY __builtin_inff()
/* 1.5 * 2^23: adding it leaves a float's integer part in its low bits. */
#define RAPT_ROUND_MAGIC 12582912.0f

/* 2 * 2^r on [-0.5, 0.5], highest power first. */
static const float rapt_exp2_coefficients[7] = {0x1.425ac8p-12f, 0x1.5f5af4p-9f, 0x1.3b2db4p-6f, 0x1.c6aecap-4f,
                                                0x1.ebfbd6p-2f, 0x1.62e43p+0f, 0x1p+1f};

/* What a row's maximum m means for its exponentials: y = t - shift, clamped at
 * base - 126, relative to base. shift is 0 unless |m| >= 2^22. */
struct exp2_row {
    vf32 shift, low, magic;
};

RAPT_INLINE vf32 used_maximum(vf32 m) { return v_select(v_equal(m, v_splat(-RAPT_INFINITY)), v_splat(0), m); }

RAPT_INLINE vmask is_shifted(vf32 m) { return v_not(v_less(v_abs(used_maximum(m)), v_splat(4194304.0f))); }

RAPT_INLINE struct exp2_row exp2_row(vf32 m) {
    vmask shifted = is_shifted(m);
    vf32 used = used_maximum(m), base = v_select(shifted, v_splat(0), used);
    struct exp2_row row;
    row.shift = v_select(shifted, used, v_splat(0));
    row.low = v_sub(base, v_splat(126));
    row.magic = v_sub(v_splat(RAPT_ROUND_MAGIC + 126), base);
    return row;
}

/* `ways` exponentials, interleaved to overlap their latencies. */
RAPT_INLINE void exp2_ways(vf32 *t, const struct exp2_row *row, int ways, int shifted) {
    vf32 scale[EXP_WAYS], p[EXP_WAYS];
    RAPT_UNROLL for (int i = 0; i < ways; i++) {
        vf32 x = shifted ? v_sub(t[i], row->shift) : t[i];
        x = v_larger(row->low, x);
        vf32 u = v_add(x, row->magic);
        t[i] = v_sub(x, v_sub(u, row->magic));
        scale[i] = v_shift_to_exponent(u);
        p[i] = v_splat(rapt_exp2_coefficients[0]);
    }
    RAPT_UNROLL for (int c = 1; c < 7; c++)
        RAPT_UNROLL for (int i = 0; i < ways; i++)
            p[i] = v_fma(p[i], t[i], v_splat(rapt_exp2_coefficients[c]));
    RAPT_UNROLL for (int i = 0; i < ways; i++)
        t[i] = v_mul(p[i], scale[i]);
}

/* 2^k for an even integer k <= 0; +0 below 2^-126 and for NaN. */
RAPT_INLINE vf32 v_pow2(vf32 k) {
    vf32 clamped = v_select(v_less(v_splat(-127), k), k, v_splat(-127));
    return v_shift_to_exponent(v_add(clamped, v_splat(RAPT_ROUND_MAGIC + 127)));
}

/* A(k) of order 2: 2^k, +0 unless k >= -64. The magic number is even, so that ties go where they go without the 126. */
RAPT_INLINE vf32 unit_alpha(vf32 k) {
    const vf32 magic = v_splat(RAPT_ROUND_MAGIC + 126), u = v_add(k, magic), r = v_sub(k, v_sub(u, magic));
    vf32 p = v_splat(rapt_exp2_coefficients[0]);
    RAPT_UNROLL for (int c = 1; c < 7; c++)
        p = v_fma(p, r, v_splat(rapt_exp2_coefficients[c]));
    const vmask keeps = v_and(v_not(v_less(k, v_splat(-64))), v_equal(k, k));
    return v_select(keeps, v_mul(p, v_shift_to_exponent(u)), v_splat(0));
}

/* The maximum rounded up to an even integer; -0 becomes +0. */
RAPT_INLINE vf32 v_even_maximum(vf32 largest, vf32 m) {
    vf32 half = v_ceil(v_mul(largest, v_splat(0.5f)));
    return v_add(v_larger(v_mul(half, v_splat(2)), m), v_splat(0));
}

/* tanh(x) = w / (w + 2) with w = 2^y - 1, y = 2 log2(e) |x|. */
RAPT_INLINE vf32 v_tanh(vf32 x) {
    const vf32 magic = v_splat(RAPT_ROUND_MAGIC + 127);
    vf32 y = v_mul(v_smaller(v_splat(10), v_abs(x)), v_splat(2 * RAPT_LOG2E));
    vf32 u = v_add(y, magic);
    vf32 r = v_sub(y, v_sub(u, magic));
    vf32 power = v_shift_to_exponent(u);
    vf32 q = v_splat(0.5f * rapt_exp2_coefficients[0]);
    RAPT_UNROLL for (int c = 1; c < 6; c++)
        q = v_fma(q, r, v_splat(0.5f * rapt_exp2_coefficients[c]));
    vf32 w = v_fma(v_mul(q, r), power, v_sub(power, v_splat(1)));
    return v_with_sign(v_div(w, v_add(w, v_splat(2))), x);
}

/* log2 of a positive normal number, of +infinity or NaN: k + log2(f), f in
 * [sqrt(1/2), sqrt(2)), by the series of the inverse hyperbolic tangent. */
static inline float s_log2(float x) {
    static const float coefficients[5] = {0x1.484b14p-2f, 0x1.a61762p-2f, 0x1.2776c6p-1f, 0x1.ec709ep-1f,
                                          0x1.715476p+1f};
    if (!(x < RAPT_INFINITY))
        return x;
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    int32_t k = (int32_t)(bits - 0x3f3504f3u) >> 23;
    bits -= (uint32_t)k << 23;
    float f;
    memcpy(&f, &bits, sizeof f);
    float z = f - 1.0f;
    float s = z / (z + 2.0f);
    float w = s * s;
    float p = coefficients[0];
    for (int c = 1; c < 5; c++)
        p = s_fma(p, w, coefficients[c]);
    return s_fma(s, p, (float)k);
}

/* Results leave the library with one NaN and one zero. */
RAPT_INLINE vf32 v_canonical(vf32 a) {
    return v_select(v_equal(a, a), v_add(a, v_splat(0)), v_splat(__builtin_nanf("")));
}

#endif
