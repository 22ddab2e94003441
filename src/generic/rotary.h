/* SPDX-License-Identifier: MIT
 * Rotary embedding: cosines and sines of a position, and the rotation of a row (docs/numerics.md, rotary embedding). In
 * double, and by pairs of elements, for which simd.h has no vectors: compilers vectorise these plain loops. */
#ifndef RAPT_GENERIC_ROTARY_H
#define RAPT_GENERIC_ROTARY_H

#include "assume.h"
#include "generic/exp2.h"

#define RAPT_TWO_OVER_PI 0x1.45f306dc9c883p-1
#define RAPT_ROUND_MAGIC_DOUBLE 6755399441055744.0 /* 1.5 * 2^52, as RAPT_ROUND_MAGIC */

/* pi / 2 as a sum. A multiple of each of the first three, up to 2^29 times, is exact. */
static const double rapt_half_pi[4] = {0x1.921fb4p+0, 0x1.4442dp-24, 0x1.846988p-48, 0x1.8cc51701b839ap-72};

/* sin r = r + r z S(z), cos r = 1 + z C(z), z = r^2, |r| <= pi / 4, lowest power first. */
static const double rapt_sine_coefficients[5] = {-0x1.555555555516ap-3, 0x1.1111110fd3935p-7, -0x1.a019fd9a9838bp-13,
                                                 0x1.71d9a97cd3c34p-19, -0x1.aa28204b8cc64p-26};
static const double rapt_cosine_coefficients[5] = {-0x1.fffffffffe691p-2, 0x1.555555514ea4bp-5, -0x1.6c16bae4ef84p-10,
                                                   0x1.a0129816d86c7p-16, -0x1.2474b4d8b6dbep-22};

RAPT_INLINE uint64_t double_bits(double x) {
    uint64_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

RAPT_INLINE double double_of(uint64_t bits) {
    double x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

RAPT_KERNEL static void angles(const float *frequencies, int pairs, int64_t position, double factor,
                               float *restrict cosines, float *restrict sines) {
    const double p = (double)position;
    RAPT_ASSUME(pairs >= 1 && position >= -RAPT_MAX_ROTARY_POSITION && position <= RAPT_MAX_ROTARY_POSITION);
    for (int i = 0; i < pairs; i++) {
        const double x = p * (double)frequencies[i]; /* exact */
        const double u = x * RAPT_TWO_OVER_PI + RAPT_ROUND_MAGIC_DOUBLE, n = u - RAPT_ROUND_MAGIC_DOUBLE;
        const double r = x - n * rapt_half_pi[0] - n * rapt_half_pi[1] - n * rapt_half_pi[2] - n * rapt_half_pi[3];
        const double z = r * r;
        double s = rapt_sine_coefficients[4], c = rapt_cosine_coefficients[4];
        for (int k = 3; k >= 0; k--) {
            s = s * z + rapt_sine_coefficients[k];
            c = c * z + rapt_cosine_coefficients[k];
        }
        s = r + r * (z * s);
        c = 1 + z * c;
        /* The quadrant, n modulo 4, is in the low bits of u: odd ones exchange sine and cosine. */
        const uint64_t quadrant = double_bits(u), odd = 0 - (quadrant & 1);
        const uint64_t change = (double_bits(s) ^ double_bits(c)) & odd;
        const uint64_t sine = double_bits(s) ^ change ^ (quadrant >> 1 & 1) << 63;
        const uint64_t cosine = double_bits(c) ^ change ^ ((quadrant ^ quadrant >> 1) & 1) << 63;
        sines[i] = (float)(double_of(sine) * factor);
        cosines[i] = (float)(double_of(cosine) * factor);
    }
}

RAPT_INLINE float one_nan(float x) { return x == x ? x : __builtin_nanf(""); }

RAPT_KERNEL static void rotate_halves(float *restrict into, const float *restrict from, const float *restrict cosines,
                                      const float *restrict sines, int pairs) {
    for (int i = 0; i < pairs; i++) {
        const float a = from[i], b = from[i + pairs];
        into[i] = one_nan(a * cosines[i] - b * sines[i]);
        into[i + pairs] = one_nan(b * cosines[i] + a * sines[i]);
    }
}

RAPT_KERNEL static void rotate_interleaved(float *restrict into, const float *restrict from,
                                           const float *restrict cosines, const float *restrict sines, int pairs) {
    for (int i = 0; i < pairs; i++) {
        const float a = from[2 * i], b = from[2 * i + 1];
        into[2 * i] = one_nan(a * cosines[i] - b * sines[i]);
        into[2 * i + 1] = one_nan(b * cosines[i] + a * sines[i]);
    }
}

#endif
