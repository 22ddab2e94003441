/* SPDX-License-Identifier: MIT
 * The vector vocabulary on AVX-512 with VBMI, which looks bytes up in registers. */
#ifndef RAPT_X86_VBMI_BYTES_H
#define RAPT_X86_VBMI_BYTES_H

#include "x86/avx512/simd.h"

#define RAPT_LOOKS_UP_BYTES 1

/* Of the lower seven bits of each byte. */
static inline vbits v_look_up(vbits codes, const uint8_t table[128]) {
    return _mm512_permutex2var_epi8(_mm512_loadu_si512(table), codes, _mm512_loadu_si512(table + 64));
}

/* The lower seven bits of each byte, below the top bit of another. */
static inline vbits v_with_top_bits(vbits bytes, vbits codes) {
    enum { OR_AND = 0xf8 }; /* a | (b & c) */
    return _mm512_ternarylogic_epi32(bytes, codes, _mm512_set1_epi8(-128), OR_AND);
}

/* So many bytes, and zeros after them. */
static inline vbits v_load_codes(const uint8_t *p, int count) {
    return count == 64 ? _mm512_loadu_si512(p) : _mm512_maskz_loadu_epi8((UINT64_C(1) << count) - 1, p);
}

/* Byte first + step * lane of both, as the upper half of each lane. */
static inline __attribute__((always_inline)) vf32 v_join(vbits high, vbits low, int first, int step) {
    const __mmask64 upper_halves = UINT64_C(0xcccccccccccccccc);
    const __m512i lanes = _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
    const __m512i at =
        _mm512_add_epi32(_mm512_mullo_epi32(lanes, _mm512_set1_epi32(step)), _mm512_set1_epi32(first));
    const __m512i of_high = _mm512_add_epi32(at, _mm512_set1_epi32(64));
    const __m512i bytes = _mm512_or_si512(_mm512_slli_epi32(at, 16), _mm512_slli_epi32(of_high, 24));
    return _mm512_castsi512_ps(_mm512_maskz_permutex2var_epi8(upper_halves, low, bytes, high));
}

/* Byte k of each word. */
static inline vf32 v_join_words(vbits high, vbits low, int k) { return v_join(high, low, k, 4); }

/* Bytes k * VL and on. */
static inline vf32 v_join_quarter(vbits high, vbits low, int k) { return v_join(high, low, 16 * k, 1); }

#endif
