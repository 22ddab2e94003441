/* SPDX-License-Identifier: MIT
 * Stored numbers to vectors of float32: the one place that knows what the bytes of a row mean. */
#ifndef RAPT_GENERIC_STORED_H
#define RAPT_GENERIC_STORED_H

#include "kernels.h"

/* Numbers in the largest block. Loops that take so many at a time load a block's scale once. */
enum { STORED_STEP = 32 };

_Static_assert(STORED_STEP % VL == 0, "a step is whole vectors");

/* Copies fewer than 4 * VL bytes into 4 * VL, zero-padded, by one vector store: a load that spans several stores waits
 * for all of them. */
RAPT_INLINE void copy_rest(void *into, const char *from, size_t bytes) {
    const size_t whole = bytes / 4 * 4;
    const vf32 words = v_load_n((const float *)(const void *)from, (int)(whole / 4));
    memcpy(into, &words, sizeof words);
    if (bytes > whole)
        memcpy((char *)into + whole, from + whole, bytes - whole);
}

/* The block that holds number d. ASSUME d is a multiple of VL. */
RAPT_INLINE const char *stored_block(int format, const char *row, int64_t d) {
    const struct rapt_format_info *info = rapt_format_info(format);
    return row + (size_t)d / (size_t)info->elements * (size_t)info->bytes;
}

static const int8_t codes_of_q4_0[16] = {-8, -7, -6, -5, -4, -3, -2, -1, 0, 1, 2, 3, 4, 5, 6, 7};
static const int8_t codes_of_q5_0[16] = {-16, -15, -14, -13, -12, -11, -10, -9, -8, -7, -6, -5, -4, -3, -2, -1};
static const int8_t codes_of_q4_1[16] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
static const int8_t codes_of_iq4_nl[16] = {-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113};

/* Nibbles of a block: numbers 0 ... 15 are the low nibbles of 16 bytes, 16 ... 31 the high ones. */
RAPT_INLINE vf32 stored_nibbles(const char *nibbles, size_t at, const int8_t *codes) {
    return v_load_nibbles((const uint8_t *)nibbles + at % 16, (int)(at / 16 * 4), codes);
}

/* The same with fifth bits, in a little-endian word. */
RAPT_INLINE vf32 stored_fives(const char *bits, const char *nibbles, size_t at) {
    uint32_t word;
    memcpy(&word, bits, sizeof word);
    return v_load_fives((const uint8_t *)nibbles + at % 16, (int)(at / 16 * 4), word >> at);
}

/* Numbers d ... d + VL - 1 of a row, all present; separate scales are not applied. ASSUME d is a multiple of VL, and
 * format a constant after inlining, which leaves only the loads of one type. */
RAPT_INLINE vf32 v_load_stored(int format, const char *row, int64_t d) {
    const char *block = stored_block(format, row, d);
    const uint16_t *words = (const uint16_t *)(const void *)block; /* the scale, then the minimum if any */
    const size_t at = (size_t)d % STORED_STEP;
    switch (format) {
    case RAPT_FORMAT_F32: return v_load((const float *)(const void *)block);
    case RAPT_FORMAT_F16: return v_load_f16(words);
    case RAPT_FORMAT_BF16: return v_load_bf16(words);
    case RAPT_FORMAT_Q8_0: return v_mul(v_load_int8((const int8_t *)block + 2 + at), v_splat_f16(words));
    case RAPT_FORMAT_Q4_0: return v_mul(stored_nibbles(block + 2, at, codes_of_q4_0), v_splat_f16(words));
    case RAPT_FORMAT_IQ4_NL: return v_mul(stored_nibbles(block + 2, at, codes_of_iq4_nl), v_splat_f16(words));
    case RAPT_FORMAT_Q4_1:
        return v_fma(stored_nibbles(block + 4, at, codes_of_q4_1), v_splat_f16(words), v_splat_f16(words + 1));
    case RAPT_FORMAT_Q5_0:
        return v_mul(v_sub(stored_fives(block + 2, block + 6, at), v_splat(16)), v_splat_f16(words));
    case RAPT_FORMAT_Q5_1:
        return v_fma(stored_fives(block + 4, block + 8, at), v_splat_f16(words), v_splat_f16(words + 1));
    case RAPT_FORMAT_F8_E4M3: return v_load_e4m3((const uint8_t *)block);
    case RAPT_FORMAT_F8_E5M2: return v_load_e5m2((const uint8_t *)block);
    case RAPT_FORMAT_I8: return v_load_int8((const int8_t *)block);
    default: return v_splat(0); /* not a type of keys and values */
    }
}

/* The same for the last `count` < VL numbers of a row; other lanes hold zeros or anything. Reads nothing beyond. Only
 * types without blocks have such a remainder. */
RAPT_INLINE vf32 v_load_stored_rest(int format, const char *row, int64_t d, int count) {
    char rest[64] = {0}; /* VL floats, or a block: compilers see reads of blocks, which never come here */
    copy_rest(rest, stored_block(format, row, d), (size_t)count * (size_t)rapt_format_info(format)->bytes);
    return v_load_stored(format, rest, 0);
}

/* Types that narrow tiles take in stored form. */
#ifndef RAPT_STORED_FORMATS
#define RAPT_STORED_FORMATS(X)                                                                                   \
    X(f16, F16) X(bf16, BF16) X(q8_0, Q8_0) X(q4_0, Q4_0) X(q4_1, Q4_1) X(q5_0, Q5_0) X(q5_1, Q5_1)              \
    X(iq4_nl, IQ4_NL) X(f8_e4m3, F8_E4M3) X(f8_e5m2, F8_E5M2) X(i8, I8)
#endif

#define RAPT_STORED(name, NAME) | 1 << RAPT_FORMAT_##NAME
enum { STORED_FORMATS = 1 << RAPT_FORMAT_F32 RAPT_STORED_FORMATS(RAPT_STORED) };
#undef RAPT_STORED

/* Most rows of a narrow tile. */
enum { NARROW_MOST = NARROW_FILLS ? VL : NARROW_ROWS };

/* The most rows for which score_beside takes a type: where memory is the limit and registers suffice. Functions per
 * type and row count begin with tests of such constants, which compilers fold before they inline: unused bodies would
 * take a third of the compile time. */
enum {
    BESIDE_F32 = VL > 1 ? NARROW_MOST : 0,
    BESIDE_F16 = VL < 8 ? 0 : NARROW_MOST,
    BESIDE_BF16 = BESIDE_F16,
    BESIDE_Q8_0 = VL < 16 ? BESIDE_F16 : 4,
    BESIDE_Q4_0 = BESIDE_Q8_0,
    BESIDE_F8_E4M3 = VL < 16 ? 0 : 4,
    BESIDE_F8_E5M2 = BESIDE_F8_E4M3,
    BESIDE_Q4_1 = VL < 16 ? BESIDE_F16 : 0,
    BESIDE_IQ4_NL = BESIDE_Q4_1,
    BESIDE_Q5_0 = VL >= 8 && VL < 16 ? NARROW_ROWS : 0,
    BESIDE_Q5_1 = BESIDE_Q5_0,
    BESIDE_I8 = 0
};
#define RAPT_BESIDE_FORMATS(X)                                                                                   \
    X(F32) X(F16) X(BF16) X(Q8_0) X(Q4_0) X(Q4_1) X(Q5_0) X(Q5_1) X(IQ4_NL) X(F8_E4M3) X(F8_E5M2)
#define RAPT_BESIDE_ROWS(NAME) [RAPT_FORMAT_##NAME] = BESIDE_##NAME,

/* Files whose kernels take only some redefine this. */
#ifndef RAPT_TAKES_ROWS
#define RAPT_TAKES_ROWS(format, rows) ((void)(format), (rows) >= 1)
#endif

/* Whether narrow tiles of so many rows have kernels here. */
#define RAPT_IS_NARROW(format, rows) ((rows) <= NARROW_ROWS && RAPT_TAKES_ROWS(format, rows))

/* Cache lines, rounded up. */
RAPT_INLINE int stored_lines(int format, int numbers) {
    const struct rapt_format_info *info = rapt_format_info(format);
    return (numbers * info->bytes + 64 * info->elements - 1) / (64 * info->elements);
}

/* Rounded down. */
RAPT_INLINE int whole_lines(int format, int numbers) {
    const struct rapt_format_info *info = rapt_format_info(format);
    return numbers * info->bytes / (64 * info->elements);
}

/* false in a file whose kernels only get scales of 1 and skip the product. */
#ifndef RAPT_SCALES_ACT
#define RAPT_SCALES_ACT true
#endif

/* Whether a format may have separate scales. */
RAPT_INLINE bool is_scaled(int format) {
    return RAPT_SCALES_ACT && rapt_format_info(format)->uses & RAPT_MAY_SCALE;
}

/* For a group of a row. */
struct stored_scale {
    vf32 scale, zero_point;
};

RAPT_INLINE struct stored_scale stored_scale_of(const struct rapt_scales *scales, int64_t row, int64_t group) {
    const int64_t at = row * (scales->stride_bytes / (int64_t)sizeof(float)) + group;
    return (struct stored_scale){v_splat(scales->scales ? scales->scales[at] : 1),
                                 v_splat(scales->zero_points ? scales->zero_points[at] : 0)};
}

/* Skips so many rows. */
RAPT_INLINE void scales_advance(struct rapt_scales *scales, int rows) {
    if (scales->scales)
        scales->scales += rows * (scales->stride_bytes / (int64_t)sizeof(float));
}

enum { ROW_SCALES = 64 };

/* Scales of rows that have one each, no zero points: plain, and folded with a unit, a power of two. exact: folding lost
 * no bit, so that (number / unit) * folded is number * plain. */
struct row_scales {
    _Alignas(64) float plain[ROW_SCALES], folded[ROW_SCALES];
    bool exact;
};

/* For rows first ... first + count - 1, padded to a multiple of VL with the first one. ASSUME at most ROW_SCALES. */
RAPT_INLINE void load_row_scales(struct row_scales *into, const struct rapt_scales *scales, int64_t first, int count,
                                 float unit) {
    const int64_t step = scales->stride_bytes / (int64_t)sizeof(float);
    into->exact = true;
    for (int i = 0; i < (count + VL - 1) / VL * VL; i++)
        into->plain[i] = scales->scales ? scales->scales[(first + (i < count ? i : 0)) * step] : 1;
    for (int i = 0; i < count; i += VL) {
        const vf32 plain = v_load(into->plain + i), folded = v_mul(plain, v_splat(unit));
        v_store(into->folded + i, folded);
        into->exact &= !v_any(v_not(v_equal(v_mul(folded, v_splat(1 / unit)), plain)));
    }
}

RAPT_INLINE bool is_float8(int format) { return format == RAPT_FORMAT_F8_E4M3 || format == RAPT_FORMAT_F8_E5M2; }

/* v_f16_of_float8 divides numbers by this. */
RAPT_INLINE float scale_of_f16(int format) { return format == RAPT_FORMAT_F8_E4M3 ? 0x1p8f : 1; }

RAPT_INLINE void v_f16_of_float8(int format, uint16_t *into, const char *p) {
    if (format == RAPT_FORMAT_F8_E4M3)
        v_f16_of_e4m3(into, (const uint8_t *)p);
    else
        v_f16_of_e5m2(into, (const uint8_t *)p);
}

RAPT_INLINE vf32 v_scaled(vf32 numbers, struct stored_scale by) {
    return v_mul(v_sub(numbers, by.zero_point), by.scale);
}

#endif
