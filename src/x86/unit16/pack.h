/* SPDX-License-Identifier: MIT
 * 16-bit numbers to columns of pairs, as products of order 2 take them on x86. */
#ifndef RAPT_X86_UNIT16_PACK_H
#define RAPT_X86_UNIT16_PACK_H

#include "generic/unit_half.h"

/* Whether numbers are float16; bfloat16 by default. */
#ifndef UNIT16_IS_F16
#define UNIT16_IS_F16 0
#endif

enum { UNIT16_FORMAT = UNIT16_IS_F16 ? RAPT_FORMAT_F16 : RAPT_FORMAT_BF16 };

enum { STEPS_OF_HALF = RAPT_HALF_KEYS / RAPT_STEP };

RAPT_INLINE int unit16_steps(int dim) { return (dim + RAPT_STEP - 1) / RAPT_STEP; }

RAPT_INLINE __mmask32 unit16_first(int count) {
    return count >= 32 ? 0xffffffffu : count <= 0 ? 0 : (1u << count) - 1;
}

/* The rows of a step, zeros for absent ones: a fully masked load from no valid address takes hundreds of cycles. False
 * if all are absent, since steps that nothing reads are not packed. */
RAPT_INLINE bool unit16_rows_of_step(const char *from[RAPT_STEP], const char *const *rows, int step) {
    bool some = false;
    for (int i = 0; i < RAPT_STEP; i++) {
        const char *row = rows[step * RAPT_STEP + i];
        some |= row != NULL;
        from[i] = row ? row : (const char *)unit_zeros;
    }
    return some;
}

/* Transposes 16 rows of 16 pairs, whose first step is done: t[2 * i] and t[2 * i + 1] have the lower and the upper two
 * pairs of each quarter of rows 2 * i and 2 * i + 1, interleaved. */
RAPT_INLINE void unit16_transpose_twos(__m512i *r, __m512i *t) {
    RAPT_UNROLL for (int i = 0; i < 4; i++) {
        r[4 * i] = _mm512_unpacklo_epi64(t[4 * i], t[4 * i + 2]);
        r[4 * i + 1] = _mm512_unpackhi_epi64(t[4 * i], t[4 * i + 2]);
        r[4 * i + 2] = _mm512_unpacklo_epi64(t[4 * i + 1], t[4 * i + 3]);
        r[4 * i + 3] = _mm512_unpackhi_epi64(t[4 * i + 1], t[4 * i + 3]);
    }
    RAPT_UNROLL for (int i = 0; i < 4; i++) {
        t[i] = _mm512_shuffle_i32x4(r[i], r[i + 4], 0x88);
        t[i + 4] = _mm512_shuffle_i32x4(r[i], r[i + 4], 0xdd);
        t[i + 8] = _mm512_shuffle_i32x4(r[i + 8], r[i + 12], 0x88);
        t[i + 12] = _mm512_shuffle_i32x4(r[i + 8], r[i + 12], 0xdd);
    }
    RAPT_UNROLL for (int i = 0; i < 4; i++) {
        r[i] = _mm512_shuffle_i32x4(t[i], t[i + 8], 0x88);
        r[i + 8] = _mm512_shuffle_i32x4(t[i], t[i + 8], 0xdd);
        r[i + 4] = _mm512_shuffle_i32x4(t[i + 4], t[i + 12], 0x88);
        r[i + 12] = _mm512_shuffle_i32x4(t[i + 4], t[i + 12], 0xdd);
    }
}

/* All steps. */
RAPT_INLINE void unit16_transpose(__m512i *r) {
    __m512i t[16];
    RAPT_UNROLL for (int i = 0; i < 16; i += 2) {
        t[i] = _mm512_unpacklo_epi32(r[i], r[i + 1]);
        t[i + 1] = _mm512_unpackhi_epi32(r[i], r[i + 1]);
    }
    unit16_transpose_twos(r, t);
}

/* Interleaves two rows: dims 0 ... 15, or 16 ... 31. */
RAPT_INLINE __m512i unit16_interleave(__m512i a, __m512i b, int upper) {
    const __m512i low = _mm512_setr_epi32(0x00200000, 0x00210001, 0x00220002, 0x00230003, 0x00240004, 0x00250005,
                                          0x00260006, 0x00270007, 0x00280008, 0x00290009, 0x002a000a, 0x002b000b,
                                          0x002c000c, 0x002d000d, 0x002e000e, 0x002f000f);
    return _mm512_permutex2var_epi16(a, upper ? _mm512_add_epi16(low, _mm512_set1_epi16(16)) : low, b);
}

/* Which numbers of a or b are infinite or NaN. exponent: the format's bits of it, all set. */
RAPT_INLINE __mmask32 unit16_nonfinite(__m512i a, __m512i b, __m512i exponent) {
    return _mm512_cmpeq_epi16_mask(_mm512_and_si512(a, exponent), exponent) |
           _mm512_cmpeq_epi16_mask(_mm512_and_si512(b, exponent), exponent);
}

#endif
