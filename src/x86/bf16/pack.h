/* SPDX-License-Identifier: MIT
 * Queries, keys and values for VDPBF16PS, which adds two products to each lane: that of the upper halves of two words
 * first, then that of the lower ones, each as an FMA that flushes as order 2 does. So the even terms of a step of 32
 * are eight words, 0 with 2, 4 with 6 and so on, and the odd ones eight more. */
#ifndef RAPT_X86_BF16_PACK_H
#define RAPT_X86_BF16_PACK_H

#include "x86/unit16/pack.h"

enum {
    DOTS_TILE = 24,         /* rows of a tile: with a panel of keys their queries fit L1 */
    DOTS_ROWS = 6,          /* of accumulators, against two vectors, each with a sum of even and one of odd terms */
    DOTS_COLUMNS = 32,      /* keys, or dims of values, of a panel */
    DOTS_WORDS = RAPT_STEP / 2,
    DOTS_OF_STEP = DOTS_WORDS * DOTS_COLUMNS, /* words of a panel */
    DOTS_NEAR = 16,         /* few rows: keys and values prefetched into L1, and */
    DOTS_FAR = 48           /* into L2 */
};

_Static_assert(DOTS_TILE % DOTS_ROWS == 0, "tiles are filled");

/* 32 numbers as the words of a step. */
RAPT_INLINE __m512i dots_words(__m512i numbers) {
    const __m512i order = _mm512_setr_epi32(0x00000002, 0x00040006, 0x0008000a, 0x000c000e, 0x00100012, 0x00140016,
                                            0x0018001a, 0x001c001e, 0x00010003, 0x00050007, 0x0009000b, 0x000d000f,
                                            0x00110013, 0x00150017, 0x0019001b, 0x001d001f);
    return _mm512_permutexvar_epi16(order, numbers);
}

/* Interleaved words of two keys: the lower two of each quarter, or the upper two. */
RAPT_INLINE __m512i dots_words_of_two(__m512i a, __m512i b, int upper) {
    const __m512i order = upper ? _mm512_setr_epi64(0x0028002a0008000a, 0x002c002e000c000e, 0x0038003a0018001a,
                                                    0x003c003e001c001e, 0x0029002b0009000b, 0x002d002f000d000f,
                                                    0x0039003b0019001b, 0x003d003f001d001f)
                                : _mm512_setr_epi64(0x0020002200000002, 0x0024002600040006, 0x0030003200100012,
                                                    0x0034003600140016, 0x0021002300010003, 0x0025002700050007,
                                                    0x0031003300110013, 0x0035003700150017);
    return _mm512_permutex2var_epi16(a, order, b);
}

/* The upper term of a word; the lower one is 2 later. */
RAPT_INLINE int dots_first(int word) { return word / DOTS_WORDS * RAPT_STEP + word % DOTS_WORDS / 8 + word % 8 * 4; }

/* ------------------------------------------------------------ queries */

/* The panel of a tile: lanes of l, then rows of queries. */
static size_t panel_bytes_dots(int rows, int head_dim) {
    (void)rows;
    return DOTS_TILE * (RAPT_SUM_LANES + (size_t)unit16_steps(head_dim) * DOTS_WORDS) * sizeof(float);
}

RAPT_INLINE uint32_t *dots_queries(float *panel) { return (uint32_t *)(void *)(panel + DOTS_TILE * RAPT_SUM_LANES); }

static void pack_queries_dots(float *panel, const char *const *query_rows, int rows, int head_dim) {
    uint32_t *into = dots_queries(panel);
    for (int row = 0; row < DOTS_TILE; row++)
        for (int step = 0; step < unit16_steps(head_dim); step++, into += DOTS_WORDS) {
            const __mmask32 there = row < rows ? unit16_first(head_dim - step * RAPT_STEP) : 0;
            const char *from = query_rows[row < rows ? row : 0] + step * RAPT_STEP * (int)sizeof(uint16_t);
            _mm512_storeu_si512(into, dots_words(_mm512_maskz_loadu_epi16(there, from)));
        }
}

/* ------------------------------------------------------------ keys, values */

static size_t packed_bytes_dots(int side, int dim) {
    (void)side; /* panels of 32 keys by steps of dims; panels of 32 dims by steps of keys */
    return (size_t)unit16_steps(dim) * STEPS_OF_HALF * DOTS_OF_STEP * sizeof(uint32_t);
}

/* 32 keys: for each 32 dims a panel. next: as many rows to prefetch, as below. */
RAPT_INLINE void dots_pack_keys(uint32_t *words, const char *const *rows, const char *const *next, int dim) {
    for (int step = 0; step < unit16_steps(dim); step++, words += DOTS_OF_STEP) {
        const __mmask32 there = unit16_first(dim - step * RAPT_STEP);
        const int64_t at = step * RAPT_STEP * (int64_t)sizeof(uint16_t);
        for (int side = 0; side < 2; side++) {
            __m512i r[16];
            RAPT_UNROLL for (int i = 0; i < 16; i++) {
                r[i] = dots_words(_mm512_maskz_loadu_epi16(there, rows[side * 16 + i] + at));
                fetch_soon(next[side * 16 + i] + at);
            }
            unit16_transpose(r);
            RAPT_UNROLL for (int i = 0; i < 16; i++)
                _mm512_storeu_si512(words + i * DOTS_COLUMNS + side * 16, r[i]);
        }
    }
}

static unsigned pack_keys_dots(void *into, const char *const *rows, int dim, int format) {
    const char *from[RAPT_STEP], *next[RAPT_STEP];
    (void)format;
    for (int step = 0; step < STEPS_OF_HALF; step++)
        if (unit16_rows_of_step(from, rows, step)) {
            (void)unit16_rows_of_step(next, rows, step + 1);
            dots_pack_keys((uint32_t *)into + step * unit16_steps(dim) * DOTS_OF_STEP, from, next, dim);
        }
    return RAPT_FOUND_NORMAL;
}

/* 32 values: for each 32 dims a part of a panel. Returns which numbers are not finite. */
RAPT_INLINE __mmask32 dots_pack_values(uint32_t *words, const char *const *rows, const char *const *next, int dim) {
    const __m512i exponent = _mm512_set1_epi16(0x7f80);
    __mmask32 nonfinite = 0;
    for (int d = 0; d < dim; d += DOTS_COLUMNS, words += STEPS_OF_HALF * DOTS_OF_STEP) {
        const __mmask32 there = unit16_first(dim - d);
        const int64_t at = d * (int64_t)sizeof(uint16_t);
        for (int word = 0; word < DOTS_WORDS; word++) {
            const int upper = dots_first(word);
            const __m512i a = _mm512_maskz_loadu_epi16(there, rows[upper + 2] + at);
            const __m512i b = _mm512_maskz_loadu_epi16(there, rows[upper] + at);
            fetch_soon(next[2 * word] + at);
            fetch_soon(next[2 * word + 1] + at);
            nonfinite |= unit16_nonfinite(a, b, exponent);
            _mm512_storeu_si512(words + word * DOTS_COLUMNS, unit16_interleave(a, b, 0));
            _mm512_storeu_si512(words + word * DOTS_COLUMNS + 16, unit16_interleave(a, b, 1));
        }
    }
    return nonfinite;
}

static unsigned pack_values_dots(void *into, const char *const *rows, int dim, int format) {
    const char *from[RAPT_STEP], *next[RAPT_STEP];
    __mmask32 nonfinite = 0;
    (void)format;
    for (int step = 0; step < STEPS_OF_HALF; step++)
        if (unit16_rows_of_step(from, rows, step)) {
            (void)unit16_rows_of_step(next, rows, step + 1);
            nonfinite |= dots_pack_values((uint32_t *)into + step * DOTS_OF_STEP, from, next, dim);
        }
    return RAPT_FOUND_NORMAL | (nonfinite ? 0 : RAPT_FOUND_FINITE);
}

#endif
