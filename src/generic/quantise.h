/* SPDX-License-Identifier: MIT
 * float32 rows to stored rows (docs/numerics.md, stored numbers). ggml's blocks are those of its reference quantisers,
 * quantize_row_*_ref, built without contraction: sums where the reference has them, in its order. */
#ifndef RAPT_GENERIC_QUANTISE_H
#define RAPT_GENERIC_QUANTISE_H

#include "assume.h"
#include "generic/exp2.h"
#include "generic/quantise_scaled.h"

enum { QUANTISE_BLOCK = 32 };

#define RAPT_F16_NAN 0x7e00u

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

/* The binary16 nearest to x, ties to even. 0.5 has the ulp of the denormals, so that adding it rounds to them. */
RAPT_INLINE void put_f16(char *into, float x) {
    const uint32_t bits = float_bits(x), sign = bits >> 16 & 0x8000, magnitude = bits & 0x7fffffffu;
    const uint32_t rounding = 0xfff + (magnitude >> 13 & 1);
    const uint32_t f16 = magnitude > 0x7f800000u    ? RAPT_F16_NAN
                         : magnitude >= 0x477ff000u ? sign | 0x7c00
                         : magnitude < 0x38800000u  ? sign | (float_bits(magnitude_of(x) + 0.5f) - 0x3f000000u)
                                                    : sign | (magnitude + rounding - 0x38000000u) >> 13;
    const uint16_t stored = (uint16_t)f16;
    memcpy(into, &stored, sizeof stored);
}

/* 1 / d; 0 where it is not finite: such a d is stored as 0. */
RAPT_INLINE float inverse_of(float d) {
    const float inverse = 1.0f / d;
    return magnitude_of(inverse) < RAPT_INFINITY ? inverse : 0;
}

/* ------------------------------------------------------------ blocks */

enum { QUANTISE_VECTORS = QUANTISE_BLOCK / VL };

/* floor for magnitudes below 2^22. */
RAPT_INLINE vf32 v_floor_small(vf32 t) {
    const vf32 unit = v_splat(RAPT_ROUND_MAGIC), nearest = v_sub(v_add(t, unit), unit);
    return v_sub(nearest, v_select(v_less(t, nearest), v_splat(1), v_splat(0)));
}

/* roundf: ties away from zero. */
RAPT_INLINE vf32 v_round_away(vf32 t) {
    const vf32 a = v_abs(t), unit = v_splat(0x1p23f), even = v_sub(v_add(a, unit), unit);
    const vmask is_tie = v_equal(v_sub(a, even), v_splat(0.5f));
    return v_with_sign(v_add(even, v_select(is_tie, v_splat(1), v_splat(0))), t);
}

RAPT_INLINE void load_block(vf32 numbers[QUANTISE_VECTORS], const float *x) {
    RAPT_UNROLL
    for (int i = 0; i < QUANTISE_VECTORS; i++)
        numbers[i] = v_load(x + i * VL);
}

/* The largest |x|; infinity where something is not finite. */
RAPT_INLINE float largest_magnitude(const vf32 numbers[QUANTISE_VECTORS]) {
    vf32 largest = v_splat(0);
    RAPT_UNROLL
    for (int i = 0; i < QUANTISE_VECTORS; i++) {
        const vf32 a = v_abs(numbers[i]);
        largest = v_larger(largest, v_select(v_equal(a, a), a, v_splat(RAPT_INFINITY)));
    }
    return s_largest(largest);
}

/* The first number with that magnitude; +0 where all are zeros. */
RAPT_INLINE float number_with(const vf32 numbers[QUANTISE_VECTORS], const float *x, float magnitude) {
    vmask up = v_equal(numbers[0], v_splat(magnitude)), down = v_equal(numbers[0], v_splat(-magnitude));
    RAPT_UNROLL
    for (int i = 1; i < QUANTISE_VECTORS; i++) {
        up = v_or(up, v_equal(numbers[i], v_splat(magnitude)));
        down = v_or(down, v_equal(numbers[i], v_splat(-magnitude)));
    }
    if (magnitude == 0 || !v_any(down))
        return magnitude;
    if (!v_any(up))
        return -magnitude;
    while (magnitude_of(*x) != magnitude)
        x++;
    return *x;
}

/* The least and the largest number. If zeros are the least, it is the first of them; the largest is never -0. ASSUME
 * all are finite. */
RAPT_INLINE void range_of(const vf32 numbers[QUANTISE_VECTORS], const float *x, float *least, float *most) {
    vf32 low = numbers[0], high = numbers[0];
    RAPT_UNROLL
    for (int i = 1; i < QUANTISE_VECTORS; i++) {
        low = v_smaller(low, numbers[i]);
        high = v_larger(high, numbers[i]);
    }
    *most = s_largest(v_add(high, v_splat(0))); /* without -0 */
    *least = -s_largest(v_sub(v_splat(0), low));
    for (int i = QUANTISE_BLOCK - 1; *least == 0 && i >= 0; i--)
        if (x[i] == 0)
            *least = x[i];
}

/* A block with a number that is not finite: all of it reads as NaN. */
RAPT_INLINE void put_nan(char *into, int bytes) {
    memset(into, 0, (size_t)bytes);
    put_f16(into, __builtin_nanf(""));
}

/* 4-bit codes, two per byte: the first half of the block in the low nibbles. */
RAPT_INLINE void put_nibbles(char *into, const vf32 codes[QUANTISE_VECTORS]) {
    enum { HALF = QUANTISE_VECTORS / 2 };
    RAPT_UNROLL
    for (int i = 0; i < HALF; i++)
        v_store_byte((uint8_t *)into + i * VL, v_add(codes[i], v_mul(codes[i + HALF], v_splat(16))));
}

/* 5-bit codes: a word of fifth bits, then nibbles. */
RAPT_INLINE void put_fives(char *into, const vf32 codes[QUANTISE_VECTORS]) {
    vf32 lower[QUANTISE_VECTORS];
    uint8_t fifths[QUANTISE_BLOCK];
    RAPT_UNROLL
    for (int i = 0; i < QUANTISE_VECTORS; i++) {
        const vf32 fifth = v_select(v_less(codes[i], v_splat(16)), v_splat(0), v_splat(16));
        lower[i] = v_sub(codes[i], fifth);
        v_store_byte(fifths + i * VL, fifth);
    }
    const uint32_t bits = s_load_bools(fifths, QUANTISE_BLOCK);
    memcpy(into, &bits, sizeof bits);
    put_nibbles(into + sizeof bits, lower);
}

RAPT_INLINE void quantise_q8_0(char *into, const float *x) {
    vf32 numbers[QUANTISE_VECTORS];
    load_block(numbers, x);
    const float magnitude = largest_magnitude(numbers);
    if (magnitude == RAPT_INFINITY) {
        put_nan(into, RAPT_BYTES_Q8_0);
        return;
    }
    const float d = magnitude / 127;
    const vf32 inverse = v_splat(inverse_of(d));
    put_f16(into, d);
    RAPT_UNROLL
    for (int i = 0; i < QUANTISE_VECTORS; i++)
        v_store_byte((uint8_t *)into + 2 + i * VL, v_round_away(v_mul(numbers[i], inverse)));
}

/* q4_0, q5_0: codes -levels ... levels - 1; the number of largest magnitude gets -levels. */
RAPT_INLINE void quantise_signed(char *into, const float *x, int levels) {
    vf32 numbers[QUANTISE_VECTORS];
    load_block(numbers, x);
    const float magnitude = largest_magnitude(numbers);
    if (magnitude == RAPT_INFINITY) {
        put_nan(into, levels == 8 ? RAPT_BYTES_Q4_0 : RAPT_BYTES_Q5_0);
        return;
    }
    const float d = number_with(numbers, x, magnitude) / (float)-levels;
    const vf32 inverse = v_splat(inverse_of(d)), middle = v_splat((float)levels + 0.5f);
    RAPT_UNROLL
    for (int i = 0; i < QUANTISE_VECTORS; i++) {
        const vf32 code = v_floor_small(v_add(v_mul(numbers[i], inverse), middle));
        numbers[i] = v_smaller(code, v_splat((float)(2 * levels - 1)));
    }
    put_f16(into, d);
    if (levels == 16)
        put_fives(into + 2, numbers);
    else
        put_nibbles(into + 2, numbers);
}

/* q4_1, q5_1: codes 0 ... steps, from the least number to the largest. */
RAPT_INLINE void quantise_range(char *into, const float *x, int steps) {
    vf32 numbers[QUANTISE_VECTORS];
    float least = 0, most = 0;
    load_block(numbers, x);
    const bool finite = largest_magnitude(numbers) < RAPT_INFINITY;
    if (finite)
        range_of(numbers, x, &least, &most);
    if (!finite || most - least == RAPT_INFINITY) {
        put_nan(into, steps == 15 ? RAPT_BYTES_Q4_1 : RAPT_BYTES_Q5_1);
        return;
    }
    const float d = (most - least) / (float)steps;
    const vf32 inverse = v_splat(inverse_of(d)), half = v_splat(0.5f);
    RAPT_UNROLL
    for (int i = 0; i < QUANTISE_VECTORS; i++) {
        const vf32 code = v_floor_small(v_add(v_mul(v_sub(numbers[i], v_splat(least)), inverse), half));
        numbers[i] = v_smaller(code, v_splat((float)steps));
    }
    put_f16(into, d);
    put_f16(into + 2, least);
    if (steps == 31)
        put_fives(into + 4, numbers);
    else
        put_nibbles(into + 4, numbers);
}

/* Sixteen uneven levels; the scale minimises the error of the codes, weighted by the squares of the numbers. */
RAPT_INLINE void quantise_iq4_nl(char *into, const float *x) {
    static const float levels[16] = {-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113};
    vf32 numbers[QUANTISE_VECTORS], codes[QUANTISE_VECTORS];
    float by_number[QUANTISE_BLOCK], by_level[QUANTISE_BLOCK];
    load_block(numbers, x);
    const float magnitude = largest_magnitude(numbers);
    if (magnitude == RAPT_INFINITY || magnitude < 1e-15f) {
        memset(into, 0, RAPT_BYTES_IQ4_NL);
        put_f16(into, magnitude == RAPT_INFINITY ? __builtin_nanf("") : 0);
        return;
    }
    const vf32 inverse = v_splat(1 / (number_with(numbers, x, magnitude) / levels[0]));
    for (int i = 0; i < QUANTISE_VECTORS; i++) {
        const vf32 t = v_mul(inverse, numbers[i]);
        vf32 code = v_splat(0), q = v_splat(levels[0]);
        RAPT_UNROLL
        for (int level = 0; level < 15; level++) {
            const vmask below = v_less(t, v_splat(0.5f * (levels[level] + levels[level + 1])));
            code = v_add(code, v_select(below, v_splat(0), v_splat(1)));
            q = v_select(below, q, v_splat(levels[level + 1]));
        }
        const vf32 weighted = v_mul(v_mul(numbers[i], numbers[i]), q);
        v_store(by_number + i * VL, v_mul(weighted, numbers[i]));
        v_store(by_level + i * VL, v_mul(weighted, q));
        codes[i] = code;
    }
    float sum_of_numbers = 0, sum_of_levels = 0;
    for (int i = 0; i < QUANTISE_BLOCK; i++) {
        sum_of_numbers += by_number[i];
        sum_of_levels += by_level[i];
    }
    put_f16(into, sum_of_levels > 0 ? sum_of_numbers / sum_of_levels : 0);
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

/* 16-bit rows; v_store_short is v_store_f16 or v_store_bf16. */
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
RAPT_STORE_SHORT(f16, v_store_f16)
RAPT_STORE_SHORT(bf16, v_store_bf16)
#undef RAPT_STORE_SHORT

#define RAPT_STORE_BLOCKS(name, NAME, quantise)                                       \
    static inline void store_##name(const struct rapt_store_args *a) {                \
        const float *x = a->from;                                                     \
        char *into = a->into;                                                         \
        for (int d = 0; d < a->dim; d += QUANTISE_BLOCK, x += QUANTISE_BLOCK) {       \
            quantise;                                                                 \
            into += RAPT_BYTES_##NAME;                                                \
        }                                                                             \
    }
RAPT_STORE_BLOCKS(q8_0, Q8_0, quantise_q8_0(into, x))
RAPT_STORE_BLOCKS(q4_0, Q4_0, quantise_signed(into, x, 8))
RAPT_STORE_BLOCKS(q4_1, Q4_1, quantise_range(into, x, 15))
RAPT_STORE_BLOCKS(q5_0, Q5_0, quantise_signed(into, x, 16))
RAPT_STORE_BLOCKS(q5_1, Q5_1, quantise_range(into, x, 31))
RAPT_STORE_BLOCKS(iq4_nl, IQ4_NL, quantise_iq4_nl(into, x))
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
