/* SPDX-License-Identifier: MIT
 * The vector vocabulary (src/generic/README.md) with one lane, in portable C:
 * the floor that every machine has, with or without an FMA instruction. */
#ifndef RAPT_SIMD_H
#define RAPT_SIMD_H

#include <stdint.h>
#include <string.h>

enum {
    VL = 1,           /* float32 lanes */
    SCORE_KEYS = 4,   /* wide score: keys x vectors of rows in registers */
    SCORE_DIMS = 1,   /* wide score: dims per iteration */
    SCORE_VECTORS = 3,
    WEIGH_ROWS = 4,   /* weigh: rows x 2 vectors of value_dim */
    WEIGH_ROWS_3 = 4, /* weigh: rows x 3 vectors */
    NARROW_ROWS = 1, /* narrow score: in registers beside a VL x VL transpose */
    NARROW_FILLS = 0, /* whether narrow tiles also take rows that fill a vector */
    NARROW_VECTORS = 4, /* of stored keys at once */
    FEW_ROWS = 3,     /* few: rows at once, against 2 vectors of keys or of value_dim */
    FEW_STORED_ROWS = 3,    /* rows of stored types at once, */
    FEW_STORED_VECTORS = 2, /* against so many vectors */
    FEW_MOST = 1,     /* rows up to which tiles are few */
    WEIGH_BY_LANE = 0, /* whether an FMA takes one lane of a vector as its factor */
    SCORE_BY_LANE = 0,
    FLUSHES = 0,      /* whether denormals can be flushed after rounding (rapt_fpenv_flush) */
    EXP_WAYS = 2      /* exponentials in flight */
};

typedef float vf32;
typedef int vmask;

static inline uint32_t s_bits(float a) {
    uint32_t bits;
    memcpy(&bits, &a, sizeof bits);
    return bits;
}
static inline float s_from_bits(uint32_t bits) {
    float a;
    memcpy(&a, &bits, sizeof a);
    return a;
}

/* a * b + c with one rounding. The product of two floats is exact in double. Where a second rounding could differ, half
 * way between two floats and below their normal range, the sum is rounded to odd, so that only the rounding to float
 * counts (Boldo and Melquiond, "Emulation of FMA and correctly rounded sums: proved algorithms using rounding to odd",
 * 2008). */
static inline float s_fma(float a, float b, float c) {
#if defined(__FMA__) || defined(__aarch64__)
    return __builtin_fmaf(a, b, c);
#else
    double product = (double)a * b, addend = c;
    double sum = product + addend;
    double addend_part = sum - product;
    double error = (product - (sum - addend_part)) + (addend - addend_part);
    uint64_t bits;
    memcpy(&bits, &sum, sizeof bits);
    const int is_tie = (bits & 0x1fffffff) == 0x10000000, is_tiny = bits << 1 < (uint64_t)(1023 - 126) << 53;
    if ((is_tie || is_tiny) && error != 0 && !(bits & 1)) {
        bits += ((error > 0) == (sum > 0)) ? 1u : UINT64_MAX;
        memcpy(&sum, &bits, sizeof sum);
    }
    return (float)sum;
#endif
}

static inline vf32 v_splat(float x) { return x; }
static inline vf32 v_load(const float *p) { return *p; }
/* A binary16 number: the exponent is rebased by a multiplication, which is exact for denormals too. */
static inline vf32 v_load_f16(const uint16_t *p) {
    union {
        uint32_t bits;
        float number;
    } magnitude = {(uint32_t)(*p & 0x7fff) << 13}, result;
    result.number = magnitude.number * 0x1p112f;
    if ((*p & 0x7c00) == 0x7c00) /* infinity, NaN; quiet, as from hardware conversions */
        result.bits = 0x7f800000 | magnitude.bits | (*p & 0x3ff ? 0x00400000u : 0);
    result.bits |= (uint32_t)(*p & 0x8000) << 16;
    return result.number;
}
static inline vf32 v_splat_f16(const uint16_t *p) { return v_load_f16(p); }
static inline vf32 v_load_bf16(const uint16_t *p) { return s_from_bits((uint32_t)*p << 16); }
static inline vf32 v_load_int8(const int8_t *p) { return *p; }
static inline vf32 v_load_nibbles(const uint8_t *p, int shift, const int8_t *table) { return table[*p >> shift & 15]; }
static inline vf32 v_load_fives(const uint8_t *p, int shift, uint32_t bits) {
    return (float)((*p >> shift & 15) + (int)(bits & 1) * 16);
}
/* Both are binary16 with fewer bits: e5m2 its upper byte, e4m3 with another exponent bias. */
static inline vf32 v_load_e5m2(const uint8_t *p) {
    const uint16_t f16 = (uint16_t)(*p << 8);
    return v_load_f16(&f16);
}
static inline vf32 v_load_e4m3(const uint8_t *p) {
    const uint16_t f16 = (uint16_t)((*p & 0x80) << 8 | (*p & 0x7f) << 7);
    return (*p & 0x7f) == 0x7f ? s_from_bits(0x7fc00000) : v_load_f16(&f16) * 256;
}
/* Two of either as binary16; e4m3 over 2^8. */
static inline void v_f16_of_e5m2(uint16_t *into, const uint8_t *p) {
    for (int i = 0; i < 2; i++)
        into[i] = (uint16_t)(p[i] << 8);
}
static inline void v_f16_of_e4m3(uint16_t *into, const uint8_t *p) {
    for (int i = 0; i < 2; i++)
        into[i] = (uint16_t)((p[i] & 0x80) << 8 | ((p[i] & 0x7f) == 0x7f ? 0x7e00 : (p[i] & 0x7f) << 7));
}
static inline void v_store(float *p, vf32 a) { *p = a; }
/* 0.5 has the ulp of the binary16 denormals, so that adding it rounds to them. */
static inline void v_store_f16(uint16_t *p, vf32 a) {
    const uint32_t magnitude = s_bits(a) & 0x7fffffffu, rounding = 0xfff + (magnitude >> 13 & 1);
    const uint32_t f16 = magnitude > 0x7f800000u    ? 0x7e00 | (magnitude >> 13 & 0x3ff)
                         : magnitude >= 0x47800000u ? 0x7c00
                         : magnitude < 0x38800000u  ? s_bits(s_from_bits(magnitude) + 0.5f) - 0x3f000000u
                                                    : ((magnitude + rounding) >> 13) - (112u << 10);
    *p = (uint16_t)(f16 | (s_bits(a) >> 16 & 0x8000));
}
static inline void v_store_bf16(uint16_t *p, vf32 a) {
    const uint32_t bits = s_bits(a);
    *p = (uint16_t)(a == a ? (bits + 0x7fff + (bits >> 16 & 1)) >> 16 : bits >> 16 | 0x40);
}
/* The same for float8. lost: fraction bits dropped; exponents: those below the format's; denormal: has the ulp of the
 * format's denormals. */
static inline void v_store_float8(uint8_t *p, vf32 a, int lost, uint32_t exponents, float denormal) {
    const uint32_t magnitude = s_bits(a) & 0x7fffffffu;
    const uint32_t rounded = magnitude + (1u << (lost - 1)) - 1 + (magnitude >> lost & 1);
    const uint32_t code = magnitude < (exponents + 1) << 23
                              ? s_bits(s_from_bits(magnitude) + denormal) - s_bits(denormal)
                              : (rounded - (exponents << 23)) >> lost;
    *p = (uint8_t)(code | (s_bits(a) >> 24 & 0x80));
}
static inline void v_store_e4m3(uint8_t *p, vf32 a) { v_store_float8(p, a, 20, 120, 0x1p14f); }
static inline void v_store_e5m2(uint8_t *p, vf32 a) { v_store_float8(p, a, 21, 112, 0x1p7f); }
/* The sum's ulp is 1, so its low bits are the integer's. */
static inline void v_store_byte(uint8_t *p, vf32 a) { *p = (uint8_t)s_bits(a + 0x1.8p23f); }
static inline vf32 v_load_n(const float *p, int n) { return n > 0 ? *p : 0; }
static inline void v_store_n(float *p, vf32 a, int n) {
    if (n > 0)
        *p = a;
}

static inline vf32 v_add(vf32 a, vf32 b) { return a + b; }
static inline vf32 v_sub(vf32 a, vf32 b) { return a - b; }
static inline vf32 v_mul(vf32 a, vf32 b) { return a * b; }
static inline vf32 v_div(vf32 a, vf32 b) { return a / b; }
static inline vf32 v_fma(vf32 a, vf32 b, vf32 c) { return s_fma(a, b, c); }
static inline vf32 v_larger(vf32 a, vf32 b) { return a > b ? a : b; }
static inline vf32 v_smaller(vf32 a, vf32 b) { return a < b ? a : b; }
/* Four floats to multiply by, one by one. */
typedef const float *vfour;
static inline vfour v_four(const float *p) { return p; }
#define v_fma_lane(four, lane, b, c) v_fma(v_splat((four)[lane]), b, c)

static inline vf32 v_ceil(vf32 a) {
    if (!(a > -8388608.0f && a < 8388608.0f))
        return a; /* an integer already, infinite or NaN */
    float truncated = (float)(int32_t)a;
    return truncated < a ? truncated + 1.0f : truncated;
}

static inline vmask v_less(vf32 a, vf32 b) { return a < b; }
static inline vmask v_equal(vf32 a, vf32 b) { return a == b; }
static inline vmask v_and(vmask a, vmask b) { return a & b; }
static inline vmask v_or(vmask a, vmask b) { return a | b; }
static inline vmask v_not(vmask a) { return !a; }
static inline int v_any(vmask a) { return a; }
static inline float s_largest(vf32 a) { return a; }
static inline vf32 v_select(vmask mask, vf32 yes, vf32 no) { return mask ? yes : no; }

static inline vf32 v_abs(vf32 a) { return s_from_bits(s_bits(a) & 0x7fffffffu); }
static inline vf32 v_with_sign(vf32 magnitude, vf32 sign) {
    return s_from_bits(s_bits(magnitude) | (s_bits(sign) & 0x80000000u));
}
static inline vf32 v_shift_to_exponent(vf32 a) { return s_from_bits(s_bits(a) << 23); }
static inline vf32 v_iota(void) { return 0; }
static inline vmask v_load_bool(const uint8_t *p, int n) { return n > 0 && *p != 0; }
/* Bools of up to 32 keys: a word per lane, bit i for key i. */
typedef uint32_t vbits;
static inline uint32_t s_load_bools(const uint8_t *p, int n) {
    uint32_t bits = 0;
    for (int i = 0; i < n; i++)
        bits |= (uint32_t)(p[i] != 0) << i;
    return bits;
}
static inline vbits v_load_bits(const uint32_t *p) { return *p; }
static inline vmask v_test_bit(vbits a, int i) { return (int)(a >> i & 1); }
static inline void v_transpose(vf32 a[1]) { (void)a; }

static inline __attribute__((always_inline)) void v_load_square(vf32 square[VL], const float *const *rows,
                                                                int64_t offset) {
    for (int i = 0; i < VL; i++)
        square[i] = v_load(rows[i] + offset);
    v_transpose(square);
}

/* Two numbers of 16 bits of a row. */
static inline void v_transpose_shorts(uint16_t *into, const char *const *rows, int64_t offset) {
    memcpy(into, rows[0] + offset, 2 * sizeof *into);
}

/* Pairs of bfloat16: the first and the second of each lane. */
static inline vf32 v_even_bf16(vf32 a) { return s_from_bits(s_bits(a) << 16); }
static inline vf32 v_odd_bf16(vf32 a) { return s_from_bits(s_bits(a) & 0xffff0000u); }

/* Sixteen bytes of each row in words of four: lane j of a[c] is word c of row j. */
static inline void v_load_words(vbits a[4], const char *const *rows, int64_t offset) {
    for (int c = 0; c < 4; c++) {
        const uint8_t *p = (const uint8_t *)rows[0] + offset + 4 * c;
        a[c] = p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
    }
}

/* Byte k of each word as int8; its four bits from bit i on, looked up in a table. */
static inline vf32 v_byte_of(vbits a, int k) { return (float)(int8_t)(uint8_t)(a >> 8 * k) * 0x1p24f; }
static inline vf32 v_nibble_of(vbits a, int i, const int8_t *table) { return table[a >> i & 15]; }

/* Four bits of each byte, from bit i on, looked up in a table: bytes. */
static inline vbits v_codes_of(vbits a, int i, const int8_t *table) {
    vbits codes = 0;
    for (int at = 0; at < 32; at += 8)
        codes |= (vbits)(uint8_t)table[a >> at >> i & 15] << at;
    return codes;
}
/* Adds 16 to byte k of each lane where bit i + k of `bits` is set. */
static inline vbits v_raise_bytes(vbits a, vbits bits, int i) {
    vbits raised = 0;
    for (int k = 0; k < 4; k++)
        raised |= (((a >> 8 * k) + (bits >> (i + k) & 1) * 16) & 255) << 8 * k;
    return raised;
}

/* One binary16 number of each row. */
static inline vf32 v_gather_f16(const char *const *rows, int64_t offset) {
    return v_load_f16((const uint16_t *)(const void *)(rows[0] + offset));
}

/* Rounded to bfloat16 or binary16, as floats; NaN stays NaN. */
static inline vf32 v_round_bf16(vf32 a) {
    uint16_t narrow;
    v_store_bf16(&narrow, a);
    return v_load_bf16(&narrow);
}
static inline vf32 v_round_f16(vf32 a) {
    uint16_t narrow;
    v_store_f16(&narrow, a);
    return v_load_f16(&narrow);
}

/* Even and odd lanes of a, then b. */
static inline vf32 v_evens(vf32 a, vf32 b) { return (void)b, a; }
static inline vf32 v_odds(vf32 a, vf32 b) { return (void)a, b; }
/* Interleaved lanes of both: the first VL, and the rest. */
static inline vf32 v_zip_low(vf32 a, vf32 b) { return (void)b, a; }
static inline vf32 v_zip_high(vf32 a, vf32 b) { return (void)a, b; }

#endif
