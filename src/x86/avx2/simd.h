/* SPDX-License-Identifier: MIT
 * The vector vocabulary (src/generic/README.md) on AVX2 and FMA. */
#ifndef RAPT_SIMD_H
#define RAPT_SIMD_H

#include <immintrin.h>
#include <stdint.h>
#include <string.h>

enum {
    VL = 8,           /* float32 lanes */
    SCORE_KEYS = 4,   /* wide score: keys x vectors of rows in registers */
    SCORE_DIMS = 4,   /* wide score: dims per iteration */
    SCORE_VECTORS = 3,
    WEIGH_ROWS = 6,   /* weigh: rows x 2 vectors of value_dim */
    WEIGH_ROWS_3 = 4, /* weigh: rows x 3 vectors */
    NARROW_ROWS = 6, /* narrow score: in registers beside a VL x VL transpose */
    NARROW_FILLS = 1, /* whether narrow tiles also take rows that fill a vector */
    NARROW_VECTORS = 2, /* of stored keys at once */
    FEW_ROWS = 6,     /* few: rows at once, against 2 vectors of keys or of value_dim */
    FEW_STORED_ROWS = 6,    /* rows of stored types at once, */
    FEW_STORED_VECTORS = 2, /* against so many vectors */
    FEW_MOST = 40,    /* rows up to which tiles are few */
    WEIGH_BY_LANE = 0, /* whether an FMA takes one lane of a vector as its factor */
    SCORE_BY_LANE = 0,
    FLUSHES = 1,      /* whether denormals can be flushed after rounding (rapt_fpenv_flush) */
    EXP_WAYS = 4      /* exponentials in flight */
};

typedef __m256 vf32;
typedef __m256 vmask; /* all bits of a lane */

static inline __m256i v_first_bits(int n) {
    return _mm256_cmpgt_epi32(_mm256_set1_epi32(n), _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
}

static inline vf32 v_splat(float x) { return _mm256_set1_ps(x); }
static inline vf32 v_load(const float *p) { return _mm256_loadu_ps(p); }
/* VL binary16 numbers. */
static inline vf32 v_load_f16(const uint16_t *p) {
    return _mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)(const void *)p));
}
static inline vf32 v_splat_f16(const uint16_t *p) { return _mm256_cvtph_ps(_mm_set1_epi16((short)*p)); }
static inline vf32 v_load_bf16(const uint16_t *p) {
    const __m256i words = _mm256_cvtepu16_epi32(_mm_loadu_si128((const __m128i *)(const void *)p));
    return _mm256_castsi256_ps(_mm256_slli_epi32(words, 16));
}
static inline vf32 v_load_int8(const int8_t *p) {
    return _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(_mm_loadl_epi64((const __m128i *)(const void *)p)));
}
/* Eight bytes, one per lane. */
static inline __m256i v_eight(const uint8_t *p) {
    return _mm256_cvtepu8_epi32(_mm_loadl_epi64((const __m128i *)(const void *)p));
}
static inline vf32 v_load_nibbles(const uint8_t *p, int shift, const int8_t *table) {
    const __m128i bytes = _mm_srli_epi16(_mm_loadl_epi64((const __m128i *)(const void *)p), shift);
    const __m128i numbers = _mm_shuffle_epi8(_mm_loadu_si128((const __m128i *)(const void *)table),
                                             _mm_and_si128(bytes, _mm_set1_epi8(15)));
    return _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(numbers));
}
static inline vf32 v_load_fives(const uint8_t *p, int shift, uint32_t bits) {
    const __m256i nibbles = _mm256_and_si256(_mm256_srli_epi32(v_eight(p), shift), _mm256_set1_epi32(15));
    const __m256i bit = _mm256_setr_epi32(1, 2, 4, 8, 16, 32, 64, 128);
    const __m256i set = _mm256_cmpeq_epi32(_mm256_and_si256(_mm256_set1_epi32((int)bits), bit), bit);
    return _mm256_cvtepi32_ps(_mm256_or_si256(nibbles, _mm256_and_si256(set, _mm256_set1_epi32(16))));
}
/* Both are binary16 with fewer bits: e5m2 its upper byte, e4m3 with another exponent bias. */
static inline vf32 v_load_e5m2(const uint8_t *p) {
    const __m128i words = _mm_cvtepi8_epi16(_mm_loadl_epi64((const __m128i *)(const void *)p));
    return _mm256_cvtph_ps(_mm_slli_epi16(words, 8));
}
static inline vf32 v_load_e4m3(const uint8_t *p) {
    const __m128i words = _mm_cvtepi8_epi16(_mm_loadl_epi64((const __m128i *)(const void *)p));
    const __m128i f16 = _mm_and_si128(_mm_slli_epi16(words, 7), _mm_set1_epi16((short)0xbfff));
    const __m256 a = _mm256_mul_ps(_mm256_cvtph_ps(f16), _mm256_set1_ps(256));
    const __m256 size = _mm256_andnot_ps(_mm256_set1_ps(-0.0f), a);
    return _mm256_or_ps(a, _mm256_cmp_ps(size, _mm256_set1_ps(480), _CMP_EQ_OQ)); /* all bits are a NaN */
}
/* 16 of either as binary16 in memory; e4m3 over 2^8. Only a NaN's exponent and fraction carry into the next bit. */
static inline void v_f16_of_e5m2(uint16_t *into, const uint8_t *p) {
    const __m256i words = _mm256_cvtepi8_epi16(_mm_loadu_si128((const __m128i *)(const void *)p));
    _mm256_storeu_si256((__m256i *)(void *)into, _mm256_slli_epi16(words, 8));
}
static inline void v_f16_of_e4m3(uint16_t *into, const uint8_t *p) {
    const __m256i words = _mm256_cvtepi8_epi16(_mm_loadu_si128((const __m128i *)(const void *)p));
    const __m256i f16 = _mm256_and_si256(_mm256_slli_epi16(words, 7), _mm256_set1_epi16((short)0xbfff));
    const __m256i carried = _mm256_add_epi16(f16, _mm256_set1_epi16(0x80));
    const __m256i all = _mm256_or_si256(f16, _mm256_and_si256(carried, _mm256_set1_epi16(0x4000)));
    _mm256_storeu_si256((__m256i *)(void *)into, all);
}
static inline void v_store(float *p, vf32 a) { _mm256_storeu_ps(p, a); }
static inline void v_store_f16(uint16_t *p, vf32 a) {
    _mm_storeu_si128((__m128i *)(void *)p, _mm256_cvtps_ph(a, _MM_FROUND_TO_NEAREST_INT));
}
/* With integers, since some processors' instruction flushes denormals. */
static inline void v_store_bf16(uint16_t *p, vf32 a) {
    __m256i bits = _mm256_castps_si256(a);
    __m256i even = _mm256_and_si256(_mm256_srli_epi32(bits, 16), _mm256_set1_epi32(1));
    __m256i rounded = _mm256_add_epi32(bits, _mm256_add_epi32(even, _mm256_set1_epi32(0x7fff)));
    __m256i nan = _mm256_castps_si256(_mm256_cmp_ps(a, a, _CMP_UNORD_Q));
    __m256i high = _mm256_blendv_epi8(rounded, _mm256_or_si256(bits, _mm256_set1_epi32(0x400000)), nan);
    high = _mm256_srli_epi32(high, 16);
    high = _mm256_permute4x64_epi64(_mm256_packus_epi32(high, high), 0x08);
    _mm_storeu_si128((__m128i *)(void *)p, _mm256_castsi256_si128(high));
}
/* Words of 0 ... 255. */
static inline void v_store_low(uint8_t *p, __m256i words) {
    const __m256i shorts = _mm256_permute4x64_epi64(_mm256_packus_epi32(words, words), 0x08);
    const __m128i low = _mm256_castsi256_si128(shorts);
    _mm_storel_epi64((__m128i *)(void *)p, _mm_packus_epi16(low, low));
}
/* lost: fraction bits dropped; exponents: those below the format's; denormal: has the ulp of the format's denormals, so
 * that adding it rounds to them. */
static inline void v_store_float8(uint8_t *p, vf32 a, int lost, int exponents, float denormal) {
    const __m256i bits = _mm256_castps_si256(a), size = _mm256_and_si256(bits, _mm256_set1_epi32(0x7fffffff));
    const __m256i even = _mm256_and_si256(_mm256_srli_epi32(size, lost), _mm256_set1_epi32(1));
    const __m256i bias = _mm256_set1_epi32((1 << (lost - 1)) - 1 - (exponents << 23));
    const __m256i normal = _mm256_srli_epi32(_mm256_add_epi32(size, _mm256_add_epi32(even, bias)), lost);
    const __m256 sum = _mm256_add_ps(_mm256_castsi256_ps(size), _mm256_set1_ps(denormal));
    const __m256i small = _mm256_sub_epi32(_mm256_castps_si256(sum), _mm256_castps_si256(_mm256_set1_ps(denormal)));
    const __m256i is_small = _mm256_cmpgt_epi32(_mm256_set1_epi32((exponents + 1) << 23), size);
    const __m256i sign = _mm256_and_si256(_mm256_srli_epi32(bits, 24), _mm256_set1_epi32(0x80));
    v_store_low(p, _mm256_or_si256(_mm256_blendv_epi8(normal, small, is_small), sign));
}
static inline void v_store_e4m3(uint8_t *p, vf32 a) { v_store_float8(p, a, 20, 120, 0x1p14f); }
static inline void v_store_e5m2(uint8_t *p, vf32 a) { v_store_float8(p, a, 21, 112, 0x1p7f); }
static inline void v_store_byte(uint8_t *p, vf32 a) {
    v_store_low(p, _mm256_and_si256(_mm256_cvtps_epi32(a), _mm256_set1_epi32(255)));
}
static inline vf32 v_load_n(const float *p, int n) { return _mm256_maskload_ps(p, v_first_bits(n)); }
static inline void v_store_n(float *p, vf32 a, int n) { _mm256_maskstore_ps(p, v_first_bits(n), a); }

static inline vf32 v_add(vf32 a, vf32 b) { return _mm256_add_ps(a, b); }
static inline vf32 v_sub(vf32 a, vf32 b) { return _mm256_sub_ps(a, b); }
static inline vf32 v_mul(vf32 a, vf32 b) { return _mm256_mul_ps(a, b); }
static inline vf32 v_div(vf32 a, vf32 b) { return _mm256_div_ps(a, b); }
static inline vf32 v_fma(vf32 a, vf32 b, vf32 c) { return _mm256_fmadd_ps(a, b, c); }
/* maxps and minps return their second operand when the comparison fails. */
static inline vf32 v_larger(vf32 a, vf32 b) { return _mm256_max_ps(a, b); }
static inline vf32 v_smaller(vf32 a, vf32 b) { return _mm256_min_ps(a, b); }
static inline vf32 v_ceil(vf32 a) { return _mm256_round_ps(a, _MM_FROUND_TO_POS_INF | _MM_FROUND_NO_EXC); }

static inline vmask v_less(vf32 a, vf32 b) { return _mm256_cmp_ps(a, b, _CMP_LT_OQ); }
static inline vmask v_equal(vf32 a, vf32 b) { return _mm256_cmp_ps(a, b, _CMP_EQ_OQ); }
static inline vmask v_and(vmask a, vmask b) { return _mm256_and_ps(a, b); }
static inline vmask v_or(vmask a, vmask b) { return _mm256_or_ps(a, b); }
static inline vmask v_not(vmask a) { return _mm256_xor_ps(a, _mm256_castsi256_ps(_mm256_set1_epi32(-1))); }
static inline int v_any(vmask a) { return _mm256_movemask_ps(a) != 0; }
static inline float s_largest(vf32 a) {
    __m128 four = _mm_max_ps(_mm256_castps256_ps128(a), _mm256_extractf128_ps(a, 1));
    four = _mm_max_ps(four, _mm_movehl_ps(four, four));
    return _mm_cvtss_f32(_mm_max_ss(four, _mm_movehdup_ps(four)));
}
static inline vf32 v_select(vmask mask, vf32 yes, vf32 no) { return _mm256_blendv_ps(no, yes, mask); }

static inline vf32 v_abs(vf32 a) { return _mm256_andnot_ps(_mm256_set1_ps(-0.0f), a); }
static inline vf32 v_with_sign(vf32 magnitude, vf32 sign) {
    return _mm256_or_ps(magnitude, _mm256_and_ps(sign, _mm256_set1_ps(-0.0f)));
}
static inline vf32 v_shift_to_exponent(vf32 a) {
    return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_castps_si256(a), 23));
}
static inline vf32 v_iota(void) { return _mm256_setr_ps(0, 1, 2, 3, 4, 5, 6, 7); }
static inline vmask v_load_bool(const uint8_t *p, int n) {
    uint64_t bytes = 0;
    memcpy(&bytes, p, (size_t)n);
    __m256i lanes = _mm256_cvtepu8_epi32(_mm_cvtsi64_si128((int64_t)bytes));
    return _mm256_castsi256_ps(_mm256_cmpgt_epi32(lanes, _mm256_setzero_si256()));
}

/* Bools of up to 32 keys: a word per lane, bit i for key i. */
typedef __m256i vbits;
static inline uint32_t s_load_bools(const uint8_t *p, int n) {
    uint8_t copy[32] = {0};
    if (n < 32)
        p = memcpy(copy, p, (size_t)n);
    __m256i zero = _mm256_cmpeq_epi8(_mm256_loadu_si256((const __m256i *)(const void *)p), _mm256_setzero_si256());
    return ~(uint32_t)_mm256_movemask_epi8(zero);
}
static inline vbits v_load_bits(const uint32_t *p) { return _mm256_loadu_si256((const __m256i *)(const void *)p); }
static inline vmask v_test_bit(vbits a, int i) {
    __m256i bit = _mm256_set1_epi32((int)(1u << i));
    return _mm256_castsi256_ps(_mm256_cmpeq_epi32(_mm256_and_si256(a, bit), bit));
}

/* Four floats to multiply by, one by one. */
typedef const float *vfour;
static inline vfour v_four(const float *p) { return p; }
#define v_fma_lane(four, lane, b, c) v_fma(v_splat((four)[lane]), b, c)

static inline float s_fma(float a, float b, float c) { return __builtin_fmaf(a, b, c); }

static inline __attribute__((always_inline)) void v_transpose(vf32 a[8]) {
    __m256 t[8];
#define RAPT_UNPACK(i)                                                                                           \
    t[i] = _mm256_unpacklo_ps(a[i], a[i + 1]), t[i + 1] = _mm256_unpackhi_ps(a[i], a[i + 1])
    RAPT_UNPACK(0), RAPT_UNPACK(2), RAPT_UNPACK(4), RAPT_UNPACK(6);
#undef RAPT_UNPACK
#define RAPT_QUAD(i)                                                                                             \
    a[i] = _mm256_shuffle_ps(t[i], t[i + 2], 0x44), a[i + 1] = _mm256_shuffle_ps(t[i], t[i + 2], 0xee),          \
    a[i + 2] = _mm256_shuffle_ps(t[i + 1], t[i + 3], 0x44), a[i + 3] = _mm256_shuffle_ps(t[i + 1], t[i + 3], 0xee)
    RAPT_QUAD(0), RAPT_QUAD(4);
#undef RAPT_QUAD
#define RAPT_HALVES(i)                                                                                           \
    t[i] = _mm256_permute2f128_ps(a[i], a[i + 4], 0x20), t[i + 4] = _mm256_permute2f128_ps(a[i], a[i + 4], 0x31)
    RAPT_HALVES(0), RAPT_HALVES(1), RAPT_HALVES(2), RAPT_HALVES(3);
#undef RAPT_HALVES
    for (int i = 0; i < 8; i++)
        a[i] = t[i];
}

static inline __attribute__((always_inline)) void v_load_square(vf32 square[VL], const float *const *rows,
                                                                int64_t offset) {
    for (int i = 0; i < VL; i++)
        square[i] = v_load(rows[i] + offset);
    v_transpose(square);
}

/* 16 numbers of 16 bits of each of 8 rows, to rows of 8. */
static inline __attribute__((always_inline)) void v_transpose_shorts(uint16_t *into, const char *const *rows,
                                                                     int64_t offset) {
    __m256i a[8], b[8];
#pragma GCC unroll 8
    for (int j = 0; j < 8; j++)
        a[j] = _mm256_loadu_si256((const __m256i *)(const void *)(rows[j] + offset));
#pragma GCC unroll 4
    for (int j = 0; j < 8; j += 2)
        b[j] = _mm256_unpacklo_epi16(a[j], a[j + 1]), b[j + 1] = _mm256_unpackhi_epi16(a[j], a[j + 1]);
#pragma GCC unroll 4
    for (int j = 0; j < 8; j += 2) {
        const int from = j / 4 * 4 + j % 4 / 2;
        a[j] = _mm256_unpacklo_epi32(b[from], b[from + 2]), a[j + 1] = _mm256_unpackhi_epi32(b[from], b[from + 2]);
    }
#pragma GCC unroll 4
    for (int j = 0; j < 8; j += 2)
        b[j] = _mm256_unpacklo_epi64(a[j / 2], a[j / 2 + 4]), b[j + 1] = _mm256_unpackhi_epi64(a[j / 2], a[j / 2 + 4]);
#pragma GCC unroll 8
    for (int i = 0; i < 8; i++) { /* the halves of b[i] are numbers i and 8 + i */
        _mm_storeu_si128((__m128i *)(void *)(into + 8 * i), _mm256_castsi256_si128(b[i]));
        _mm_storeu_si128((__m128i *)(void *)(into + 8 * (i + 8)), _mm256_extracti128_si256(b[i], 1));
    }
}

/* Pairs of bfloat16: the first and the second of each lane. */
static inline vf32 v_even_bf16(vf32 a) { return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_castps_si256(a), 16)); }
static inline vf32 v_odd_bf16(vf32 a) {
    return _mm256_castsi256_ps(_mm256_and_si256(_mm256_castps_si256(a), _mm256_set1_epi32((int)0xffff0000)));
}

/* Sixteen bytes of each row in words of four: lane j of a[c] is word c of row j. */
static inline __attribute__((always_inline)) void v_load_words(vbits a[4], const char *const *rows, int64_t offset) {
    __m256i b[4];
#pragma GCC unroll 4
    for (int j = 0; j < 4; j++) {
        b[j] = _mm256_castsi128_si256(_mm_loadu_si128((const __m128i *)(const void *)(rows[j] + offset)));
        b[j] = _mm256_inserti128_si256(b[j], _mm_loadu_si128((const __m128i *)(const void *)(rows[j + 4] + offset)), 1);
    }
    const __m256i low = _mm256_unpacklo_epi32(b[0], b[1]), high = _mm256_unpackhi_epi32(b[0], b[1]);
    const __m256i low2 = _mm256_unpacklo_epi32(b[2], b[3]), high2 = _mm256_unpackhi_epi32(b[2], b[3]);
    a[0] = _mm256_unpacklo_epi64(low, low2), a[1] = _mm256_unpackhi_epi64(low, low2);
    a[2] = _mm256_unpacklo_epi64(high, high2), a[3] = _mm256_unpackhi_epi64(high, high2);
}

/* Byte k of each word as int8; its four bits from bit i on, looked up in a table. */
static inline vf32 v_byte_of(vbits a, int k) {
    const int at = 0x00808080 | k << 24; /* bytes of 0 below byte k, in each half */
    const __m256i top = _mm256_setr_epi32(at, at + (4 << 24), at + (8 << 24), at + (12 << 24), at, at + (4 << 24),
                                          at + (8 << 24), at + (12 << 24));
    return _mm256_cvtepi32_ps(_mm256_shuffle_epi8(a, top));
}
static inline vf32 v_nibble_of(vbits a, int i, const int8_t *table) {
    const __m256i codes = _mm256_broadcastsi128_si256(_mm_loadu_si128((const __m128i *)(const void *)table));
    const __m256i index = _mm256_and_si256(_mm256_srli_epi32(a, i), _mm256_set1_epi32(15)); /* the other bytes are 0 */
    return _mm256_cvtepi32_ps(_mm256_srai_epi32(_mm256_slli_epi32(_mm256_shuffle_epi8(codes, index), 24), 24));
}

/* Four bits of each byte, from bit i on, looked up in a table: bytes. */
static inline vbits v_codes_of(vbits a, int i, const int8_t *table) {
    const __m256i codes = _mm256_broadcastsi128_si256(_mm_loadu_si128((const __m128i *)(const void *)table));
    return _mm256_shuffle_epi8(codes, _mm256_and_si256(_mm256_srli_epi32(a, i), _mm256_set1_epi8(15)));
}
/* Adds 16 to byte k of each lane where bit i + k of `bits` is set. */
static inline vbits v_raise_bytes(vbits a, vbits bits, int i) {
    const int byte = i / 8 * 0x01010101;
    const __m256i at = _mm256_setr_epi32(byte, byte + 0x04040404, byte + 0x08080808, byte + 0x0c0c0c0c, byte,
                                         byte + 0x04040404, byte + 0x08080808, byte + 0x0c0c0c0c);
    const __m256i bit = _mm256_set1_epi32((int)(0x08040201u << i % 8));
    const __m256i set = _mm256_cmpeq_epi8(_mm256_and_si256(_mm256_shuffle_epi8(bits, at), bit), bit);
    return _mm256_add_epi8(a, _mm256_and_si256(set, _mm256_set1_epi8(16)));
}

/* One binary16 number of each row. */
static inline vf32 v_gather_f16(const char *const *rows, int64_t offset) {
    __m128i f16 = _mm_setzero_si128();
    uint16_t number[8];
#pragma GCC unroll 8
    for (int j = 0; j < 8; j++)
        memcpy(&number[j], rows[j] + offset, 2);
#define RAPT_INSERT(j) f16 = _mm_insert_epi16(f16, number[j], j)
    RAPT_INSERT(0), RAPT_INSERT(1), RAPT_INSERT(2), RAPT_INSERT(3);
    RAPT_INSERT(4), RAPT_INSERT(5), RAPT_INSERT(6), RAPT_INSERT(7);
#undef RAPT_INSERT
    return _mm256_cvtph_ps(f16);
}

/* Rounded to bfloat16 or binary16, as floats; NaN stays NaN. */
static inline vf32 v_round_bf16(vf32 a) {
    const __m256i bits = _mm256_castps_si256(a);
    const __m256i even = _mm256_and_si256(_mm256_srli_epi32(bits, 16), _mm256_set1_epi32(1));
    const __m256i rounded = _mm256_add_epi32(_mm256_add_epi32(bits, _mm256_set1_epi32(0x7fff)), even);
    const __m256i kept = _mm256_and_si256(rounded, _mm256_set1_epi32((int)0xffff0000));
    return _mm256_blendv_ps(_mm256_castsi256_ps(kept), a, _mm256_cmp_ps(a, a, _CMP_UNORD_Q));
}
static inline vf32 v_round_f16(vf32 a) {
    return _mm256_cvtph_ps(_mm256_cvtps_ph(a, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC));
}

/* Quarters 0, 2, 1 and 3. */
static inline vf32 v_in_order(__m256 quarters) {
    return _mm256_castpd_ps(_mm256_permute4x64_pd(_mm256_castps_pd(quarters), 0xd8));
}
/* Even and odd lanes of a, then b. */
static inline vf32 v_evens(vf32 a, vf32 b) { return v_in_order(_mm256_shuffle_ps(a, b, 0x88)); }
static inline vf32 v_odds(vf32 a, vf32 b) { return v_in_order(_mm256_shuffle_ps(a, b, 0xdd)); }
/* Interleaved lanes of both: the first VL, and the rest. */
static inline vf32 v_zip_low(vf32 a, vf32 b) { return _mm256_unpacklo_ps(v_in_order(a), v_in_order(b)); }
static inline vf32 v_zip_high(vf32 a, vf32 b) { return _mm256_unpackhi_ps(v_in_order(a), v_in_order(b)); }

#endif
