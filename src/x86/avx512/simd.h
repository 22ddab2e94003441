/* SPDX-License-Identifier: MIT
 * The vector vocabulary (src/generic/README.md) on AVX-512 F, BW, DQ, VL. */
#ifndef RAPT_SIMD_H
#define RAPT_SIMD_H

#include <immintrin.h>
#include <stdint.h>
#include <string.h>

enum {
    VL = 16,          /* float32 lanes */
    SCORE_KEYS = 8,   /* wide score: keys x vectors of rows in registers */
    SCORE_DIMS = 4,   /* wide score: dims per iteration */
    SCORE_VECTORS = 3,
    WEIGH_ROWS = 12,  /* weigh: rows x 2 vectors of value_dim */
    WEIGH_ROWS_3 = 8, /* weigh: rows x 3 vectors */
    NARROW_ROWS = 12, /* narrow score: in registers beside a VL x VL transpose */
    NARROW_FILLS = 0, /* whether narrow tiles also take rows that fill a vector */
    NARROW_VECTORS = 2, /* of stored keys at once */
    FEW_ROWS = 12,    /* few: rows at once, against 2 vectors of keys or of value_dim */
    FEW_STORED_ROWS = 6,    /* rows of stored types at once, */
    FEW_STORED_VECTORS = 4, /* against so many vectors */
    FEW_MOST = 60,    /* rows up to which tiles are few */
    WEIGH_BY_LANE = 0, /* whether an FMA takes one lane of a vector as its factor */
    SCORE_BY_LANE = 0,
    FLUSHES = 1,      /* whether denormals can be flushed after rounding (rapt_fpenv_flush) */
    EXP_WAYS = 8      /* exponentials in flight */
};

typedef __m512 vf32;
typedef __mmask16 vmask;

static inline vmask v_first(int n) { return (vmask)((1u << n) - 1u); }

static inline vf32 v_splat(float x) { return _mm512_set1_ps(x); }
static inline vf32 v_load(const float *p) { return _mm512_loadu_ps(p); }
/* VL binary16 numbers. */
static inline vf32 v_load_f16(const uint16_t *p) {
    return _mm512_cvtph_ps(_mm256_loadu_si256((const __m256i *)(const void *)p));
}
static inline vf32 v_splat_f16(const uint16_t *p) { return _mm512_cvtph_ps(_mm256_set1_epi16((short)*p)); }
static inline vf32 v_load_bf16(const uint16_t *p) {
    const __m512i words = _mm512_cvtepu16_epi32(_mm256_loadu_si256((const __m256i *)(const void *)p));
    return _mm512_castsi512_ps(_mm512_slli_epi32(words, 16));
}
static inline vf32 v_load_int8(const int8_t *p) {
    return _mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(_mm_loadu_si128((const __m128i *)(const void *)p)));
}
/* Sixteen bytes, one per lane. */
static inline __m512i v_sixteen(const uint8_t *p) {
    return _mm512_cvtepu8_epi32(_mm_loadu_si128((const __m128i *)(const void *)p));
}
static inline vf32 v_load_nibbles(const uint8_t *p, int shift, const int8_t *table) {
    const __m512i index = _mm512_srli_epi32(v_sixteen(p), (unsigned)shift); /* of which four bits count */
    return _mm512_permutexvar_ps(index, v_load_int8(table));
}
static inline vf32 v_load_fives(const uint8_t *p, int shift, uint32_t bits) {
    static const int8_t codes[16] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
    const __m512 nibbles = v_load_nibbles(p, shift, codes);
    return _mm512_mask_add_ps(nibbles, (__mmask16)bits, nibbles, _mm512_set1_ps(16));
}
/* Both are binary16 with fewer bits: e5m2 its upper byte, e4m3 with another exponent bias. */
static inline vf32 v_load_e5m2(const uint8_t *p) {
    const __m256i words = _mm256_cvtepi8_epi16(_mm_loadu_si128((const __m128i *)(const void *)p));
    return _mm512_cvtph_ps(_mm256_slli_epi16(words, 8));
}
static inline vf32 v_load_e4m3(const uint8_t *p) {
    const __m128i bytes = _mm_loadu_si128((const __m128i *)(const void *)p);
    const __m256i words = _mm256_cvtepi8_epi16(bytes);
    const __m256i f16 = _mm256_and_si256(_mm256_slli_epi16(words, 7), _mm256_set1_epi16((short)0xbfff));
    const __mmask16 numbers = _mm_cmpneq_epi8_mask(_mm_or_si128(bytes, _mm_set1_epi8(-128)), _mm_set1_epi8(-1));
    return _mm512_mask_mul_ps(_mm512_set1_ps(__builtin_nanf("")), numbers, _mm512_cvtph_ps(f16),
                              _mm512_set1_ps(256));
}
/* 32 of either as binary16 in memory, which conversions read faster than registers; e4m3 over 2^8. Only a NaN's
 * exponent and fraction carry into the next bit. */
static inline void v_f16_of_e5m2(uint16_t *into, const uint8_t *p) {
    const __m512i words = _mm512_cvtepi8_epi16(_mm256_loadu_si256((const __m256i *)(const void *)p));
    _mm512_storeu_si512(into, _mm512_slli_epi16(words, 8));
}
static inline void v_f16_of_e4m3(uint16_t *into, const uint8_t *p) {
    const __m512i words = _mm512_cvtepi8_epi16(_mm256_loadu_si256((const __m256i *)(const void *)p));
    const __m512i f16 = _mm512_and_si512(_mm512_slli_epi16(words, 7), _mm512_set1_epi16((short)0xbfff));
    const __m512i carried = _mm512_add_epi16(f16, _mm512_set1_epi16(0x80));
    enum { OR_AND = 0xf8 }; /* a | (b & c) */
    _mm512_storeu_si512(into, _mm512_ternarylogic_epi32(f16, carried, _mm512_set1_epi16(0x4000), OR_AND));
}
static inline void v_store(float *p, vf32 a) { _mm512_storeu_ps(p, a); }
static inline void v_store_f16(uint16_t *p, vf32 a) {
    _mm256_storeu_si256((__m256i *)(void *)p, _mm512_cvtps_ph(a, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC));
}
/* With integers, since some processors' instruction flushes denormals. */
static inline void v_store_bf16(uint16_t *p, vf32 a) {
    __m512i bits = _mm512_castps_si512(a);
    __m512i even = _mm512_and_si512(_mm512_srli_epi32(bits, 16), _mm512_set1_epi32(1));
    __m512i rounded = _mm512_add_epi32(bits, _mm512_add_epi32(even, _mm512_set1_epi32(0x7fff)));
    __mmask16 nan = _mm512_cmp_ps_mask(a, a, _CMP_UNORD_Q);
    __m512i high = _mm512_mask_or_epi32(rounded, nan, bits, _mm512_set1_epi32(0x400000));
    _mm256_storeu_si256((__m256i *)(void *)p, _mm512_cvtepi32_epi16(_mm512_srli_epi32(high, 16)));
}
static inline void v_store_low(uint8_t *p, __m512i words) { _mm_storeu_si128((void *)p, _mm512_cvtepi32_epi8(words)); }
/* lost: fraction bits dropped; exponents: those below the format's; denormal: has the ulp of the format's denormals, so
 * that adding it rounds to them. */
static inline void v_store_float8(uint8_t *p, vf32 a, int lost, int exponents, float denormal) {
    const __m512i bits = _mm512_castps_si512(a), size = _mm512_and_si512(bits, _mm512_set1_epi32(0x7fffffff));
    const __m512i even = _mm512_and_si512(_mm512_srli_epi32(size, (unsigned)lost), _mm512_set1_epi32(1));
    const __m512i bias = _mm512_set1_epi32((1 << (lost - 1)) - 1 - (exponents << 23));
    const __m512i normal =
        _mm512_srli_epi32(_mm512_add_epi32(size, _mm512_add_epi32(even, bias)), (unsigned)lost);
    const __m512 sum = _mm512_add_ps(_mm512_castsi512_ps(size), _mm512_set1_ps(denormal));
    const __mmask16 is_small = _mm512_cmplt_epi32_mask(size, _mm512_set1_epi32((exponents + 1) << 23));
    const __m512i code = _mm512_mask_sub_epi32(normal, is_small, _mm512_castps_si512(sum),
                                               _mm512_castps_si512(_mm512_set1_ps(denormal)));
    const __m512i sign = _mm512_and_si512(_mm512_srli_epi32(bits, 24), _mm512_set1_epi32(0x80));
    v_store_low(p, _mm512_or_si512(code, sign));
}
static inline void v_store_e4m3(uint8_t *p, vf32 a) { v_store_float8(p, a, 20, 120, 0x1p14f); }
static inline void v_store_e5m2(uint8_t *p, vf32 a) { v_store_float8(p, a, 21, 112, 0x1p7f); }
static inline void v_store_byte(uint8_t *p, vf32 a) { v_store_low(p, _mm512_cvtps_epi32(a)); }
static inline vf32 v_load_n(const float *p, int n) { return _mm512_maskz_loadu_ps(v_first(n), p); }
static inline void v_store_n(float *p, vf32 a, int n) { _mm512_mask_storeu_ps(p, v_first(n), a); }

static inline vf32 v_add(vf32 a, vf32 b) { return _mm512_add_ps(a, b); }
static inline vf32 v_sub(vf32 a, vf32 b) { return _mm512_sub_ps(a, b); }
static inline vf32 v_mul(vf32 a, vf32 b) { return _mm512_mul_ps(a, b); }
static inline vf32 v_div(vf32 a, vf32 b) { return _mm512_div_ps(a, b); }
static inline vf32 v_fma(vf32 a, vf32 b, vf32 c) { return _mm512_fmadd_ps(a, b, c); }
/* maxps and minps return their second operand when the comparison fails. */
static inline vf32 v_larger(vf32 a, vf32 b) { return _mm512_max_ps(a, b); }
static inline vf32 v_smaller(vf32 a, vf32 b) { return _mm512_min_ps(a, b); }
static inline vf32 v_ceil(vf32 a) { return _mm512_roundscale_ps(a, _MM_FROUND_TO_POS_INF | _MM_FROUND_NO_EXC); }

static inline vmask v_less(vf32 a, vf32 b) { return _mm512_cmp_ps_mask(a, b, _CMP_LT_OQ); }
static inline vmask v_equal(vf32 a, vf32 b) { return _mm512_cmp_ps_mask(a, b, _CMP_EQ_OQ); }
static inline vmask v_and(vmask a, vmask b) { return (vmask)(a & b); }
static inline vmask v_or(vmask a, vmask b) { return (vmask)(a | b); }
static inline vmask v_not(vmask a) { return (vmask)~a; }
static inline int v_any(vmask a) { return a != 0; }
static inline float s_largest(vf32 a) { return _mm512_reduce_max_ps(a); }
static inline vf32 v_select(vmask mask, vf32 yes, vf32 no) { return _mm512_mask_blend_ps(mask, no, yes); }

static inline vf32 v_abs(vf32 a) { return _mm512_abs_ps(a); }
static inline vf32 v_with_sign(vf32 magnitude, vf32 sign) {
    return _mm512_or_ps(magnitude, _mm512_and_ps(sign, _mm512_set1_ps(-0.0f)));
}
static inline vf32 v_shift_to_exponent(vf32 a) {
    return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_castps_si512(a), 23));
}
static inline vf32 v_iota(void) {
    return _mm512_setr_ps(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
}
static inline vmask v_load_bool(const uint8_t *p, int n) {
    __m128i bytes = _mm_maskz_loadu_epi8(v_first(n), p);
    return _mm_test_epi8_mask(bytes, bytes);
}

/* Bools of up to 32 keys: a word per lane, bit i for key i. */
typedef __m512i vbits;
static inline uint32_t s_load_bools(const uint8_t *p, int n) {
    __m256i bytes = _mm256_maskz_loadu_epi8((__mmask32)(UINT32_MAX >> (32 - n)), p);
    return _mm256_test_epi8_mask(bytes, bytes);
}
static inline vbits v_load_bits(const uint32_t *p) { return _mm512_loadu_si512(p); }
static inline vmask v_test_bit(vbits a, int i) { return _mm512_test_epi32_mask(a, _mm512_set1_epi32((int)(1u << i))); }

/* Four floats to multiply by, one by one. */
typedef const float *vfour;
static inline vfour v_four(const float *p) { return p; }
#define v_fma_lane(four, lane, b, c) v_fma(v_splat((four)[lane]), b, c)

static inline float s_fma(float a, float b, float c) { return __builtin_fmaf(a, b, c); }

#include "x86/avx512/transpose.h"

/* Pairs of bfloat16: the first and the second of each lane. */
static inline vf32 v_even_bf16(vf32 a) { return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_castps_si512(a), 16)); }
static inline vf32 v_odd_bf16(vf32 a) {
    return _mm512_castsi512_ps(_mm512_and_si512(_mm512_castps_si512(a), _mm512_set1_epi32((int)0xffff0000)));
}

/* Byte k of each word as int8; its four bits from bit i on, looked up in a table. */
static inline vf32 v_byte_of(vbits a, int k) {
    const int at = 0x00808080 | k << 24; /* bytes of 0 below byte k, in each quarter */
    const __m512i top = _mm512_set4_epi32(at + (12 << 24), at + (8 << 24), at + (4 << 24), at);
    return _mm512_cvtepi32_ps(_mm512_shuffle_epi8(a, top));
}
static inline vf32 v_nibble_of(vbits a, int i, const int8_t *table) {
    return _mm512_permutexvar_ps(_mm512_srli_epi32(a, (unsigned)i), v_load_int8(table));
}

/* Four bits of each byte, from bit i on, looked up in a table: bytes. */
static inline vbits v_codes_of(vbits a, int i, const int8_t *table) {
    const __m512i codes = _mm512_broadcast_i32x4(_mm_loadu_si128((const __m128i *)(const void *)table));
    return _mm512_shuffle_epi8(codes, _mm512_and_si512(_mm512_srli_epi32(a, (unsigned)i), _mm512_set1_epi8(15)));
}
/* Adds 16 to byte k of each lane where bit i + k of `bits` is set. */
static inline vbits v_raise_bytes(vbits a, vbits bits, int i) {
    const int byte = i / 8 * 0x01010101;
    const __m512i at = _mm512_set4_epi32(byte + 0x0c0c0c0c, byte + 0x08080808, byte + 0x04040404, byte);
    const __m512i bit = _mm512_set1_epi32((int)(0x08040201u << i % 8));
    return _mm512_mask_add_epi8(a, _mm512_test_epi8_mask(_mm512_shuffle_epi8(bits, at), bit), a, _mm512_set1_epi8(16));
}

/* One binary16 number of each row. */
static inline vf32 v_gather_f16(const char *const *rows, int64_t offset) {
    __m128i low = _mm_setzero_si128(), high = low;
    uint16_t f16[16];
#pragma GCC unroll 16
    for (int j = 0; j < 16; j++)
        memcpy(&f16[j], rows[j] + offset, 2);
#define RAPT_INSERT(j) low = _mm_insert_epi16(low, f16[j], j), high = _mm_insert_epi16(high, f16[j + 8], j)
    RAPT_INSERT(0), RAPT_INSERT(1), RAPT_INSERT(2), RAPT_INSERT(3);
    RAPT_INSERT(4), RAPT_INSERT(5), RAPT_INSERT(6), RAPT_INSERT(7);
#undef RAPT_INSERT
    return _mm512_cvtph_ps(_mm256_set_m128i(high, low));
}

/* Rounded to bfloat16 or binary16, as floats; NaN stays NaN. */
static inline vf32 v_round_bf16(vf32 a) {
    const __m512i bits = _mm512_castps_si512(a);
    const __m512i even = _mm512_and_si512(_mm512_srli_epi32(bits, 16), _mm512_set1_epi32(1));
    const __m512i rounded = _mm512_add_epi32(_mm512_add_epi32(bits, _mm512_set1_epi32(0x7fff)), even);
    const __mmask16 number = _mm512_cmp_ps_mask(a, a, _CMP_ORD_Q);
    return _mm512_castsi512_ps(_mm512_mask_and_epi32(bits, number, rounded, _mm512_set1_epi32((int)0xffff0000)));
}
static inline vf32 v_round_f16(vf32 a) {
    return _mm512_cvtph_ps(_mm512_cvtps_ph(a, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC));
}

/* Even and odd lanes of a, then b. */
static inline vf32 v_evens(vf32 a, vf32 b) {
    const __m512i lanes = _mm512_setr_epi32(0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30);
    return _mm512_permutex2var_ps(a, lanes, b);
}
static inline vf32 v_odds(vf32 a, vf32 b) {
    const __m512i lanes = _mm512_setr_epi32(1, 3, 5, 7, 9, 11, 13, 15, 17, 19, 21, 23, 25, 27, 29, 31);
    return _mm512_permutex2var_ps(a, lanes, b);
}
/* Interleaved lanes of both: the first VL, and the rest. */
static inline vf32 v_zip_low(vf32 a, vf32 b) {
    const __m512i lanes = _mm512_setr_epi32(0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23);
    return _mm512_permutex2var_ps(a, lanes, b);
}
static inline vf32 v_zip_high(vf32 a, vf32 b) {
    const __m512i lanes = _mm512_setr_epi32(8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31);
    return _mm512_permutex2var_ps(a, lanes, b);
}

#endif
