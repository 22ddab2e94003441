/* SPDX-License-Identifier: MIT
 * float32 rows to stored rows (docs/numerics.md, stored numbers). ggml's blocks are those of its reference quantisers,
 * quantize_row_*_ref, built without contraction. Plain loops over a block of 32, which compilers turn into vectors:
 * integers, so that a maximum has no order, and sums where the reference has them. */
#ifndef RAPT_GENERIC_QUANTISE_H
#define RAPT_GENERIC_QUANTISE_H

#include "assume.h"
#include "generic/exp2.h"
#include "generic/quantise_scaled.h"

enum { QUANTISE_BLOCK = 32 };

#define RAPT_HALF_NAN 0x7e00u

/* ------------------------------------------------------------ numbers */

RAPT_INLINE uint32_t float_bits(float x) {
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

RAPT_INLINE float float_of_bits(uint32_t bits) {
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

RAPT_INLINE float magnitude_of(float x) { return float_of_bits(float_bits(x) & 0x7fffffffu); }

/* The binary16 nearest to x, ties to even. 0.5 has the unit of the denormals, so that adding it rounds to them. */
RAPT_INLINE void put_half(char *into, float x) {
    const uint32_t bits = float_bits(x), sign = bits >> 16 & 0x8000, magnitude = bits & 0x7fffffffu;
    const uint32_t rounding = 0xfff + (magnitude >> 13 & 1);
    const uint32_t half = magnitude > 0x7f800000u    ? RAPT_HALF_NAN
                          : magnitude >= 0x477ff000u ? sign | 0x7c00
                          : magnitude < 0x38800000u  ? sign | (float_bits(magnitude_of(x) + 0.5f) - 0x3f000000u)
                                                     : sign | (magnitude + rounding - 0x38000000u) >> 13;
    const uint16_t stored = (uint16_t)half;
    memcpy(into, &stored, sizeof stored);
}

/* 1 / d; 0 where it is not finite: such a d is stored as 0. */
RAPT_INLINE float inverse_of(float d) {
    const float inverse = 1.0f / d;
    return magnitude_of(inverse) < RAPT_INFINITY ? inverse : 0;
}

/* roundf of |t| < 2^22: ties away from zero. */
RAPT_INLINE int round_away(float t) {
    const float a = magnitude_of(t), even = a + 8388608.0f - 8388608.0f;
    const int n = (int)even + (a - even == 0.5f);
    return t < 0 ? -n : n;
}

/* ------------------------------------------------------------ blocks */

/* Bits of the largest |x|; from 0x7f800000 on something is not finite. */
RAPT_INLINE uint32_t largest_magnitude(const float *x) {
    uint32_t largest = 0;
    for (int i = 0; i < QUANTISE_BLOCK; i++) {
        const uint32_t magnitude = float_bits(x[i]) & 0x7fffffffu;
        largest = magnitude > largest ? magnitude : largest;
    }
    return largest;
}

/* The first number with that magnitude; +0 where all are zeros. */
RAPT_INLINE float number_with(const float *x, uint32_t magnitude) {
    int first = QUANTISE_BLOCK;
    for (int i = 0; i < QUANTISE_BLOCK; i++) {
        const int here = (float_bits(x[i]) & 0x7fffffffu) == magnitude ? i : QUANTISE_BLOCK;
        first = here < first ? here : first;
    }
    return magnitude ? x[first] : 0;
}

/* The least and the largest number, the first of those that are equal. ASSUME all are finite. */
RAPT_INLINE void range_of(const float *x, float *least, float *most) {
    int32_t low = INT32_MAX, high = INT32_MIN; /* integers that are ordered as the floats are, -0 below +0 */
    for (int i = 0; i < QUANTISE_BLOCK; i++) {
        const int32_t bits = (int32_t)float_bits(x[i]), ordered = bits < 0 ? bits ^ 0x7fffffff : bits;
        low = ordered < low ? ordered : low;
        high = ordered > high ? ordered : high;
    }
    *least = float_of_bits((uint32_t)(low < 0 ? low ^ 0x7fffffff : low));
    *most = float_of_bits((uint32_t)(high < 0 ? high ^ 0x7fffffff : high));
    for (int i = QUANTISE_BLOCK - 1; *least == 0 && i >= 0; i--)
        if (x[i] == 0)
            *least = x[i];
}

/* A block in which something is not finite: all of it is NaN when it is read. */
RAPT_INLINE void put_nan(char *into, int bytes) {
    memset(into, 0, (size_t)bytes);
    put_half(into, __builtin_nanf(""));
}

/* Two codes to a byte: the first half of the block in the lower bits. */
RAPT_INLINE void put_nibbles(char *into, const uint8_t *codes) {
    for (int i = 0; i < QUANTISE_BLOCK / 2; i++)
        into[i] = (char)((codes[i] & 15) | codes[i + QUANTISE_BLOCK / 2] << 4);
}

/* The fifth bits of all codes. */
RAPT_INLINE void put_fifths(char *into, const uint8_t *codes) {
    uint32_t bits = 0;
    for (int i = 0; i < QUANTISE_BLOCK; i++)
        bits |= (uint32_t)(codes[i] >> 4 & 1) << i;
    memcpy(into, &bits, sizeof bits);
}

RAPT_INLINE void quantise_q8_0(char *into, const float *x) {
    const uint32_t magnitude = largest_magnitude(x);
    if (magnitude >= 0x7f800000u) {
        put_nan(into, 34);
        return;
    }
    const float d = float_of_bits(magnitude) / 127, inverse = inverse_of(d);
    put_half(into, d);
    for (int i = 0; i < QUANTISE_BLOCK; i++)
        into[2 + i] = (char)round_away(x[i] * inverse);
}

/* q4_0, q5_0: codes -levels ... levels - 1, of which the number with the largest magnitude has the first. */
RAPT_INLINE void quantise_signed(char *into, const float *x, int levels) {
    const int bytes = levels == 8 ? 18 : 22;
    const uint32_t magnitude = largest_magnitude(x);
    if (magnitude >= 0x7f800000u) {
        put_nan(into, bytes);
        return;
    }
    const float d = number_with(x, magnitude) / (float)-levels, inverse = inverse_of(d);
    uint8_t codes[QUANTISE_BLOCK];
    for (int i = 0; i < QUANTISE_BLOCK; i++) {
        const int code = (int)(x[i] * inverse + ((float)levels + 0.5f));
        codes[i] = (uint8_t)(code < 2 * levels ? code : 2 * levels - 1);
    }
    put_half(into, d);
    if (levels == 16)
        put_fifths(into + 2, codes);
    put_nibbles(into + bytes - 16, codes);
}

/* q4_1, q5_1: codes 0 ... steps, from the least number to the largest. */
RAPT_INLINE void quantise_range(char *into, const float *x, int steps) {
    const int bytes = steps == 15 ? 20 : 24;
    float least = 0, most = 0;
    const bool finite = largest_magnitude(x) < 0x7f800000u;
    if (finite)
        range_of(x, &least, &most);
    if (!finite || most - least == RAPT_INFINITY) {
        put_nan(into, bytes);
        return;
    }
    const float d = (most - least) / (float)steps, inverse = inverse_of(d);
    uint8_t codes[QUANTISE_BLOCK];
    for (int i = 0; i < QUANTISE_BLOCK; i++) {
        const int code = (int)((x[i] - least) * inverse + 0.5f);
        codes[i] = (uint8_t)(code < steps ? code : steps);
    }
    put_half(into, d);
    put_half(into + 2, least);
    if (steps == 31)
        put_fifths(into + 4, codes);
    put_nibbles(into + bytes - 16, codes);
}

/* Sixteen uneven levels; the scale minimises the error of the codes, weighted by the squares of the numbers. */
RAPT_INLINE void quantise_iq4_nl(char *into, const float *x) {
    static const float levels[16] = {-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113};
    const uint32_t magnitude = largest_magnitude(x);
    if (magnitude >= 0x7f800000u || float_of_bits(magnitude) < 1e-15f) {
        memset(into, 0, 18);
        put_half(into, magnitude >= 0x7f800000u ? __builtin_nanf("") : 0);
        return;
    }
    const float inverse = 1 / (number_with(x, magnitude) / levels[0]);
    uint8_t codes[QUANTISE_BLOCK];
    float by_number[QUANTISE_BLOCK], by_level[QUANTISE_BLOCK];
    for (int i = 0; i < QUANTISE_BLOCK; i++) {
        const float t = inverse * x[i];
        int code = 0;
        for (int level = 0; level < 15; level++)
            code += t >= 0.5f * (levels[level] + levels[level + 1]);
        codes[i] = (uint8_t)code;
    }
    for (int i = 0; i < QUANTISE_BLOCK; i++) {
        const float q = levels[codes[i]], weighted = x[i] * x[i] * q;
        by_number[i] = weighted * x[i];
        by_level[i] = weighted * q;
    }
    float numbers = 0, squares = 0;
    for (int i = 0; i < QUANTISE_BLOCK; i++) {
        numbers += by_number[i];
        squares += by_level[i];
    }
    put_half(into, squares > 0 ? numbers / squares : 0);
    put_nibbles(into + 2, codes);
}

/* ------------------------------------------------------------ rows */

RAPT_INLINE vf32 v_one_nan(vf32 a) { return v_select(v_equal(a, a), a, v_splat(__builtin_nanf(""))); }

static inline void store_f32(const struct rapt_store_args *a) {
    float *into = (float *)(void *)a->into;
    int d = 0;
    for (; a->dim - d >= VL; d += VL)
        v_store(into + d, v_one_nan(v_load(a->from + d)));
    if (d < a->dim)
        v_store_n(into + d, v_one_nan(v_load_n(a->from + d, a->dim - d)), a->dim - d);
}

/* Rows of 16-bit numbers; v_store is v_store_half or v_store_bf16. */
#define RAPT_STORE_SHORT(name, v_store_short)                                         \
    static inline void store_##name(const struct rapt_store_args *a) {                \
        uint16_t *into = (uint16_t *)(void *)a->into, rest[VL];                       \
        int d = 0;                                                                    \
        for (; a->dim - d >= VL; d += VL)                                             \
            v_store_short(into + d, v_one_nan(v_load(a->from + d)));                  \
        if (d < a->dim) {                                                             \
            v_store_short(rest, v_one_nan(v_load_n(a->from + d, a->dim - d)));        \
            memcpy(into + d, rest, (size_t)(a->dim - d) * sizeof *rest);              \
        }                                                                             \
    }
RAPT_STORE_SHORT(f16, v_store_half)
RAPT_STORE_SHORT(bf16, v_store_bf16)
#undef RAPT_STORE_SHORT

#define RAPT_STORE_BLOCKS(name, bytes, quantise)                                               \
    static inline void store_##name(const struct rapt_store_args *a) {                         \
        const float *x = a->from;                                                              \
        char *into = a->into;                                                                  \
        for (int d = 0; d < a->dim; d += QUANTISE_BLOCK, x += QUANTISE_BLOCK, into += (bytes)) \
            quantise;                                                                          \
    }
RAPT_STORE_BLOCKS(q8_0, 34, quantise_q8_0(into, x))
RAPT_STORE_BLOCKS(q4_0, 18, quantise_signed(into, x, 8))
RAPT_STORE_BLOCKS(q4_1, 20, quantise_range(into, x, 15))
RAPT_STORE_BLOCKS(q5_0, 22, quantise_signed(into, x, 16))
RAPT_STORE_BLOCKS(q5_1, 24, quantise_range(into, x, 31))
RAPT_STORE_BLOCKS(iq4_nl, 18, quantise_iq4_nl(into, x))
#undef RAPT_STORE_BLOCKS

#define store_bool8 NULL /* no type of keys and values */

static void (*const store_row[RAPT_FORMAT_COUNT])(const struct rapt_store_args *) = {
#define RAPT_FORMAT(name, NAME, text, elements, bytes, alignment, uses) store_##name,
#include "format.def"
#undef RAPT_FORMAT
};

static void store(const struct rapt_store_args *a) {
    RAPT_ASSUME(a->dim >= 1 && a->format >= 0 && a->format < RAPT_FORMAT_COUNT && store_row[a->format]);
    RAPT_ASSUME(a->dim % rapt_format_info(a->format)->elements == 0);
    store_row[a->format](a);
}

#endif
