/* SPDX-License-Identifier: MIT
 * The vector vocabulary on AVX-512 with VBMI, which looks bytes up in registers. */
#ifndef RAPT_X86_VBMI_BYTES_H
#define RAPT_X86_VBMI_BYTES_H

#include "x86/avx512/simd.h"

#define RAPT_LOOKS_UP_BYTES 1

/* By the lower seven bits of each byte. */
static inline vbits v_look_up(vbits codes, const uint8_t table[128]) {
    return _mm512_permutex2var_epi8(_mm512_loadu_si512(table), codes, _mm512_loadu_si512(table + 64));
}

/* The lower seven bits of each byte, below the top bit of another. */
static inline vbits v_with_top_bits(vbits bytes, vbits codes) {
    enum { OR_AND = 0xf8 }; /* a | (b & c) */
    return _mm512_ternarylogic_epi32(bytes, codes, _mm512_set1_epi8(-128), OR_AND);
}

/* Codes of 2 or 4 vectors, ordered so that v_join_low takes those of the first two and v_join_high those of the others.
 */
static inline vbits v_load_codes(const uint8_t *p, int count) {
    const __m512i interleaved_halves = _mm512_setr_epi64(0, 4, 1, 5, 2, 6, 3, 7);
    const __m512i codes = count == 64 ? _mm512_loadu_si512(p)
                                      : _mm512_zextsi256_si512(_mm256_loadu_si256((const __m256i *)(const void *)p));
    return _mm512_permutexvar_epi64(interleaved_halves, codes);
}

/* Sixteen codes of each row: those of a[c], joined, are numbers 4 * c and 4 * c + 1 of row j in lane j, and the next
 * two. */
static inline __attribute__((always_inline)) void v_load_code_pairs(vbits a[4], const char *const *rows,
                                                                    int64_t offset) {
    const __m512i b[4] = {v_four_rows(rows, offset), v_four_rows(rows + 1, offset), v_four_rows(rows + 2, offset),
                          v_four_rows(rows + 3, offset)};
    v_transpose_quarters(a, b);
}

/* Joins the bytes of both to pairs of bfloat16: of the lower half of each 16 bytes, and of the upper one. */
static inline vf32 v_join_low(vbits high, vbits low) { return _mm512_castsi512_ps(_mm512_unpacklo_epi8(low, high)); }
static inline vf32 v_join_high(vbits high, vbits low) { return _mm512_castsi512_ps(_mm512_unpackhi_epi8(low, high)); }

#endif
