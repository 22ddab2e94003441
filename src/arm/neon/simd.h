/* SPDX-License-Identifier: MIT
 * The vector vocabulary (src/generic/README.md) on NEON of AArch64. */
#ifndef RAPT_SIMD_H
#define RAPT_SIMD_H

#include <arm_neon.h>
#include <stdint.h>
#include <string.h>

enum {
    VL = 4,           /* float32 lanes */
    SCORE_KEYS = 4,   /* wide score: keys x vectors of rows in registers */
    SCORE_DIMS = 1,   /* wide score: dims per iteration */
    SCORE_VECTORS = 6,
    WEIGH_ROWS = 12,  /* weigh: rows x 2 vectors of value_dim */
    WEIGH_ROWS_3 = 8, /* weigh: rows x 3 vectors */
    NARROW_ROWS = 4, /* narrow score: in registers beside a VL x VL transpose */
    NARROW_FILLS = 0, /* whether narrow tiles also take rows that fill a vector */
    NARROW_VECTORS = 4, /* of stored keys at once */
    FEW_ROWS = 8,     /* few: rows at once, against 2 vectors of keys or of value_dim */
    FEW_STORED_ROWS = 8,    /* rows of stored types at once, */
    FEW_STORED_VECTORS = 2, /* against so many vectors */
    FEW_MOST = 4,     /* rows up to which tiles are few */
    WEIGH_BY_LANE = 1, /* an FMA takes one lane of a vector as its factor */
#if defined(__clang__)
    SCORE_BY_LANE = 1,
#else
    SCORE_BY_LANE = 0, /* GCC 12 inserts register moves; scalar loads are free beside the FMAs */
#endif
    FLUSHES = 0,      /* whether denormals can be flushed after rounding (rapt_fpenv_flush) */
    EXP_WAYS = 4      /* exponentials in flight */
};

typedef float32x4_t vf32;
typedef uint32x4_t vmask; /* all bits of a lane */

static inline vf32 v_splat(float x) { return vdupq_n_f32(x); }
static inline vf32 v_load(const float *p) { return vld1q_f32(p); }
/* VL binary16 numbers. */
static inline vf32 v_load_f16(const uint16_t *p) { return vcvt_f32_f16(vreinterpret_f16_u16(vld1_u16(p))); }
static inline vf32 v_splat_f16(const uint16_t *p) { return vcvt_f32_f16(vreinterpret_f16_u16(vdup_n_u16(*p))); }
static inline vf32 v_load_bf16(const uint16_t *p) { return vreinterpretq_f32_u32(vshll_n_u16(vld1_u16(p), 16)); }
/* Four bytes. */
static inline uint8x8_t v_bytes(const void *p) {
    uint32_t bytes;
    memcpy(&bytes, p, sizeof bytes);
    return vcreate_u8(bytes);
}
static inline vf32 v_of_int8(int8x8_t a) { return vcvtq_f32_s32(vmovl_s16(vget_low_s16(vmovl_s8(a)))); }
static inline vf32 v_load_int8(const int8_t *p) { return v_of_int8(vreinterpret_s8_u8(v_bytes(p))); }
static inline uint8x8_t v_nibbles(const uint8_t *p, int shift) {
    return vand_u8(vshl_u8(v_bytes(p), vdup_n_s8((int8_t)-shift)), vdup_n_u8(15));
}
static inline vf32 v_load_nibbles(const uint8_t *p, int shift, const int8_t *table) {
    return v_of_int8(vqtbl1_s8(vld1q_s8(table), v_nibbles(p, shift)));
}
static inline vf32 v_load_fives(const uint8_t *p, int shift, uint32_t bits) {
    const uint8x8_t set = vtst_u8(vdup_n_u8((uint8_t)bits), vcreate_u8(0x08040201));
    return v_of_int8(vreinterpret_s8_u8(vorr_u8(v_nibbles(p, shift), vand_u8(set, vdup_n_u8(16)))));
}
/* Both are binary16 with fewer bits: e5m2 its upper byte, e4m3 with another exponent bias. */
static inline int16x4_t v_words(const uint8_t *p) { return vget_low_s16(vmovl_s8(vreinterpret_s8_u8(v_bytes(p)))); }
static inline vf32 v_load_e5m2(const uint8_t *p) {
    return vcvt_f32_f16(vreinterpret_f16_s16(vshl_n_s16(v_words(p), 8)));
}
static inline vf32 v_load_e4m3(const uint8_t *p) {
    const uint16x4_t f16 = vand_u16(vreinterpret_u16_s16(vshl_n_s16(v_words(p), 7)), vdup_n_u16(0xbfff));
    const float32x4_t a = vmulq_n_f32(vcvt_f32_f16(vreinterpret_f16_u16(f16)), 256);
    return vbslq_f32(vceqq_f32(vabsq_f32(a), vdupq_n_f32(480)), vdupq_n_f32(__builtin_nanf("")), a);
}
/* 8 of either as binary16 in memory; e4m3 over 2^8. Only a NaN's exponent and fraction carry into the next bit. */
static inline void v_f16_of_e5m2(uint16_t *into, const uint8_t *p) { vst1q_u16(into, vshll_n_u8(vld1_u8(p), 8)); }
static inline void v_f16_of_e4m3(uint16_t *into, const uint8_t *p) {
    const uint16x8_t words = vreinterpretq_u16_s16(vmovl_s8(vreinterpret_s8_u8(vld1_u8(p))));
    const uint16x8_t f16 = vandq_u16(vshlq_n_u16(words, 7), vdupq_n_u16(0xbfff));
    const uint16x8_t carried = vandq_u16(vaddq_u16(f16, vdupq_n_u16(0x80)), vdupq_n_u16(0x4000));
    vst1q_u16(into, vorrq_u16(f16, carried));
}
static inline void v_store(float *p, vf32 a) { vst1q_f32(p, a); }
static inline void v_store_f16(uint16_t *p, vf32 a) { vst1_u16(p, vreinterpret_u16_f16(vcvt_f16_f32(a))); }
static inline void v_store_bf16(uint16_t *p, vf32 a) {
    uint32x4_t bits = vreinterpretq_u32_f32(a), even = vandq_u32(vshrq_n_u32(bits, 16), vdupq_n_u32(1));
    uint32x4_t rounded = vaddq_u32(bits, vaddq_u32(even, vdupq_n_u32(0x7fff)));
    uint32x4_t high = vbslq_u32(vceqq_f32(a, a), rounded, vorrq_u32(bits, vdupq_n_u32(0x400000)));
    vst1_u16(p, vshrn_n_u32(high, 16));
}
/* The lower bytes of words. */
static inline void v_store_low(uint8_t *p, uint32x4_t words) {
    const uint16x4_t shorts = vmovn_u32(words);
    const uint32_t bytes = vget_lane_u32(vreinterpret_u32_u8(vmovn_u16(vcombine_u16(shorts, shorts))), 0);
    memcpy(p, &bytes, sizeof bytes);
}
/* lost: fraction bits dropped; exponents: those below the format's; denormal: has the ulp of the format's denormals, so
 * that adding it rounds to them. */
static inline void v_store_float8(uint8_t *p, vf32 a, int lost, uint32_t exponents, float denormal) {
    const uint32x4_t bits = vreinterpretq_u32_f32(a), size = vbicq_u32(bits, vdupq_n_u32(0x80000000u));
    const uint32x4_t even = vandq_u32(vshlq_u32(size, vdupq_n_s32(-lost)), vdupq_n_u32(1));
    const uint32x4_t bias = vdupq_n_u32((1u << (lost - 1)) - 1 - (exponents << 23));
    const uint32x4_t normal = vshlq_u32(vaddq_u32(size, vaddq_u32(even, bias)), vdupq_n_s32(-lost));
    const float32x4_t sum = vaddq_f32(vreinterpretq_f32_u32(size), vdupq_n_f32(denormal));
    const uint32x4_t small = vsubq_u32(vreinterpretq_u32_f32(sum), vreinterpretq_u32_f32(vdupq_n_f32(denormal)));
    const uint32x4_t is_small = vcltq_u32(size, vdupq_n_u32((exponents + 1) << 23));
    const uint32x4_t sign = vandq_u32(vshrq_n_u32(bits, 24), vdupq_n_u32(0x80));
    v_store_low(p, vorrq_u32(vbslq_u32(is_small, small, normal), sign));
}
static inline void v_store_e4m3(uint8_t *p, vf32 a) { v_store_float8(p, a, 20, 120, 0x1p14f); }
static inline void v_store_e5m2(uint8_t *p, vf32 a) { v_store_float8(p, a, 21, 112, 0x1p7f); }
static inline void v_store_byte(uint8_t *p, vf32 a) { v_store_low(p, vreinterpretq_u32_s32(vcvtnq_s32_f32(a))); }
static inline vf32 v_load_n(const float *p, int n) {
    float lanes[4] = {0};
    memcpy(lanes, p, (size_t)n * sizeof(float));
    return vld1q_f32(lanes);
}
static inline void v_store_n(float *p, vf32 a, int n) {
    float lanes[4];
    vst1q_f32(lanes, a);
    memcpy(p, lanes, (size_t)n * sizeof(float));
}

static inline vf32 v_add(vf32 a, vf32 b) { return vaddq_f32(a, b); }
static inline vf32 v_sub(vf32 a, vf32 b) { return vsubq_f32(a, b); }
static inline vf32 v_mul(vf32 a, vf32 b) { return vmulq_f32(a, b); }
static inline vf32 v_div(vf32 a, vf32 b) { return vdivq_f32(a, b); }
static inline vf32 v_fma(vf32 a, vf32 b, vf32 c) { return vfmaq_f32(c, a, b); }
static inline vf32 v_larger(vf32 a, vf32 b) { return vbslq_f32(vcgtq_f32(a, b), a, b); }
static inline vf32 v_smaller(vf32 a, vf32 b) { return vbslq_f32(vcltq_f32(a, b), a, b); }
static inline vf32 v_ceil(vf32 a) { return vrndpq_f32(a); }

static inline vmask v_less(vf32 a, vf32 b) { return vcltq_f32(a, b); }
static inline vmask v_equal(vf32 a, vf32 b) { return vceqq_f32(a, b); }
static inline vmask v_and(vmask a, vmask b) { return vandq_u32(a, b); }
static inline vmask v_or(vmask a, vmask b) { return vorrq_u32(a, b); }
static inline vmask v_not(vmask a) { return vmvnq_u32(a); }
static inline int v_any(vmask a) { return vmaxvq_u32(a) != 0; }
static inline float s_largest(vf32 a) { return vmaxvq_f32(a); }
static inline vf32 v_select(vmask mask, vf32 yes, vf32 no) { return vbslq_f32(mask, yes, no); }

static inline vf32 v_abs(vf32 a) { return vabsq_f32(a); }
static inline vf32 v_with_sign(vf32 magnitude, vf32 sign) {
    return vbslq_f32(vdupq_n_u32(0x80000000u), sign, magnitude);
}
static inline vf32 v_shift_to_exponent(vf32 a) {
    return vreinterpretq_f32_u32(vshlq_n_u32(vreinterpretq_u32_f32(a), 23));
}
static inline vf32 v_iota(void) {
    static const float lanes[4] = {0, 1, 2, 3};
    return vld1q_f32(lanes);
}
static inline vmask v_load_bool(const uint8_t *p, int n) {
    uint8_t bytes[8] = {0};
    memcpy(bytes, p, (size_t)n);
    uint32x4_t lanes = vmovl_u16(vget_low_u16(vmovl_u8(vld1_u8(bytes))));
    return vtstq_u32(lanes, lanes);
}

/* Bools of up to 32 keys: a word per lane, bit i for key i. */
typedef uint32x4_t vbits;
static inline uint32_t s_load_bools(const uint8_t *p, int n) {
    static const uint8_t bit_of_byte[16] = {1, 2, 4, 8, 16, 32, 64, 128, 1, 2, 4, 8, 16, 32, 64, 128};
    uint8_t copy[32] = {0};
    if (n < 32)
        p = memcpy(copy, p, (size_t)n);
    uint32_t bits = 0;
    for (int half = 0; half < 2; half++) {
        uint8x16_t bytes = vld1q_u8(p + 16 * half), set = vandq_u8(vtstq_u8(bytes, bytes), vld1q_u8(bit_of_byte));
        bits |= ((uint32_t)vaddv_u8(vget_low_u8(set)) | (uint32_t)vaddv_u8(vget_high_u8(set)) << 8) << (16 * half);
    }
    return bits;
}
static inline vbits v_load_bits(const uint32_t *p) { return vld1q_u32(p); }
static inline vmask v_test_bit(vbits a, int i) { return vtstq_u32(a, vdupq_n_u32(1u << i)); }

/* Four floats to multiply by, one by one. */
typedef float32x4_t vfour;
static inline vfour v_four(const float *p) { return vld1q_f32(p); }
#define v_fma_lane(four, lane, b, c) vfmaq_laneq_f32(c, b, four, lane)

static inline float s_fma(float a, float b, float c) { return __builtin_fmaf(a, b, c); }

static inline __attribute__((always_inline)) void v_transpose(vf32 a[4]) {
    float32x4_t low = vtrn1q_f32(a[0], a[1]), low2 = vtrn1q_f32(a[2], a[3]);
    float32x4_t high = vtrn2q_f32(a[0], a[1]), high2 = vtrn2q_f32(a[2], a[3]);
#define RAPT_PAIR(trn, x, y) vreinterpretq_f32_f64(trn(vreinterpretq_f64_f32(x), vreinterpretq_f64_f32(y)))
    a[0] = RAPT_PAIR(vtrn1q_f64, low, low2);
    a[1] = RAPT_PAIR(vtrn1q_f64, high, high2);
    a[2] = RAPT_PAIR(vtrn2q_f64, low, low2);
    a[3] = RAPT_PAIR(vtrn2q_f64, high, high2);
#undef RAPT_PAIR
}

static inline __attribute__((always_inline)) void v_load_square(vf32 square[VL], const float *const *rows,
                                                                int64_t offset) {
    for (int i = 0; i < VL; i++)
        square[i] = v_load(rows[i] + offset);
    v_transpose(square);
}

/* 8 numbers of 16 bits of each of 4 rows, to rows of 4. */
static inline __attribute__((always_inline)) void v_transpose_shorts(uint16_t *into, const char *const *rows,
                                                                     int64_t offset) {
    uint16x8_t a[4];
    for (int j = 0; j < 4; j++)
        a[j] = vreinterpretq_u16_u8(vld1q_u8((const uint8_t *)rows[j] + offset));
    const uint16x8x2_t even = vzipq_u16(a[0], a[2]), odd = vzipq_u16(a[1], a[3]);
    for (int j = 0; j < 2; j++) {
        const uint16x8x2_t all = vzipq_u16(even.val[j], odd.val[j]);
        vst1q_u16(into + 16 * j, all.val[0]);
        vst1q_u16(into + 16 * j + 8, all.val[1]);
    }
}

/* Pairs of bfloat16: the first and the second of each lane. */
static inline vf32 v_even_bf16(vf32 a) { return vreinterpretq_f32_u32(vshlq_n_u32(vreinterpretq_u32_f32(a), 16)); }
static inline vf32 v_odd_bf16(vf32 a) {
    return vreinterpretq_f32_u32(vandq_u32(vreinterpretq_u32_f32(a), vdupq_n_u32(0xffff0000u)));
}

/* Sixteen bytes of each row in words of four: lane j of a[c] is word c of row j. */
static inline __attribute__((always_inline)) void v_load_words(vbits a[4], const char *const *rows, int64_t offset) {
    float32x4_t square[4];
    for (int j = 0; j < 4; j++)
        square[j] = vreinterpretq_f32_u8(vld1q_u8((const uint8_t *)rows[j] + offset));
    v_transpose(square);
    for (int c = 0; c < 4; c++)
        a[c] = vreinterpretq_u32_f32(square[c]);
}

/* Byte k of each word as int8; its four bits from bit i on, looked up in a table. */
static inline vf32 v_byte_of(vbits a, int k) {
    const uint32x4_t moved = vshlq_u32(a, vdupq_n_s32(24 - 8 * k));
    return vcvtq_f32_s32(vreinterpretq_s32_u32(vandq_u32(moved, vdupq_n_u32(0xff000000u))));
}
static inline vf32 v_nibble_of(vbits a, int i, const int8_t *table) {
    const uint32x4_t index = vandq_u32(vshlq_u32(a, vdupq_n_s32(-i)), vdupq_n_u32(15));
    const int8x16_t codes = vqtbl1q_s8(vld1q_s8(table), vreinterpretq_u8_u32(index));
    return vcvtq_f32_s32(vshrq_n_s32(vshlq_n_s32(vreinterpretq_s32_s8(codes), 24), 24));
}

/* Four bits of each byte, from bit i on, looked up in a table: bytes. */
static inline vbits v_codes_of(vbits a, int i, const int8_t *table) {
    const uint32x4_t nibbles = vandq_u32(vshlq_u32(a, vdupq_n_s32(-i)), vdupq_n_u32(0x0f0f0f0f));
    return vreinterpretq_u32_s8(vqtbl1q_s8(vld1q_s8(table), vreinterpretq_u8_u32(nibbles)));
}
/* Adds 16 to byte k of each lane where bit i + k of `bits` is set. */
static inline vbits v_raise_bytes(vbits a, vbits bits, int i) {
    const uint64_t byte = (uint64_t)(i / 8) * 0x0101010101010101;
    const uint8x16_t at = vcombine_u8(vcreate_u8(byte + 0x0404040400000000), vcreate_u8(byte + 0x0c0c0c0c08080808));
    const uint8x16_t bit = vreinterpretq_u8_u32(vdupq_n_u32(0x08040201u << i % 8));
    const uint8x16_t set = vtstq_u8(vqtbl1q_u8(vreinterpretq_u8_u32(bits), at), bit);
    return vreinterpretq_u32_u8(vaddq_u8(vreinterpretq_u8_u32(a), vandq_u8(set, vdupq_n_u8(16))));
}

/* One binary16 number of each row. */
static inline vf32 v_gather_f16(const char *const *rows, int64_t offset) {
    uint16_t f16[4];
    for (int j = 0; j < 4; j++)
        memcpy(&f16[j], rows[j] + offset, 2);
    return v_load_f16(f16);
}

/* Rounded to bfloat16 or binary16, as floats; NaN stays NaN. */
static inline vf32 v_round_bf16(vf32 a) {
    const uint32x4_t bits = vreinterpretq_u32_f32(a), even = vandq_u32(vshrq_n_u32(bits, 16), vdupq_n_u32(1));
    const uint32x4_t rounded = vaddq_u32(vaddq_u32(bits, vdupq_n_u32(0x7fff)), even);
    const uint32x4_t kept = vandq_u32(rounded, vdupq_n_u32(0xffff0000));
    return vreinterpretq_f32_u32(vbslq_u32(vceqq_f32(a, a), kept, bits));
}
static inline vf32 v_round_f16(vf32 a) { return vcvt_f32_f16(vcvt_f16_f32(a)); }

/* Even and odd lanes of a, then b. */
static inline vf32 v_evens(vf32 a, vf32 b) { return vuzp1q_f32(a, b); }
static inline vf32 v_odds(vf32 a, vf32 b) { return vuzp2q_f32(a, b); }
/* Interleaved lanes of both: the first VL, and the rest. */
static inline vf32 v_zip_low(vf32 a, vf32 b) { return vzip1q_f32(a, b); }
static inline vf32 v_zip_high(vf32 a, vf32 b) { return vzip2q_f32(a, b); }

#endif
