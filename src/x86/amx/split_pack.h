/* SPDX-License-Identifier: MIT
 * Queries, keys and values of order 3 in tile layout (pack.h): three tiles instead of one, one per bfloat16 part of
 * float32 numbers. */
#ifndef RAPT_X86_AMX_SPLIT_PACK_H
#define RAPT_X86_AMX_SPLIT_PACK_H

#include "x86/amx/product.h"
#include "x86/unit16/softmax.h"

enum { SPLIT_STEP = UNIT_PARTS * AMX_PART }; /* of 32 rows or columns and 32 terms */

/* ------------------------------------------------------------ parts */

/* Parts of 32 numbers, as unit_split has them: conversions take denormal numbers for zeros. */
RAPT_INLINE void split_parts(__m512 low, __m512 high, __m512i parts[UNIT_PARTS]) {
    RAPT_UNROLL for (int i = 0; i < UNIT_PARTS; i++) {
        parts[i] = unit16_rounded(low, high);
        if (i == UNIT_PARTS - 1)
            break;
        const __m256i first = _mm512_castsi512_si256(parts[i]), second = _mm512_extracti64x4_epi64(parts[i], 1);
        low = _mm512_sub_ps(low, _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(first), 16)));
        high = _mm512_sub_ps(high, _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(second), 16)));
    }
}

/* Numbers [d, d + 32) of a row, as far as they exist; NULL = zeros. */
RAPT_INLINE void split_row(const float *row, int d, int dim, __m512i parts[UNIT_PARTS]) {
    const __mmask32 there = row ? unit16_first(dim - d) : 0;
    const float *from = row ? row + d : unit_zeros;
    split_parts(_mm512_maskz_loadu_ps((__mmask16)there, from),
                _mm512_maskz_loadu_ps((__mmask16)(there >> 16), from + 16), parts);
}

/* ------------------------------------------------------------ queries */

/* The panel of a tile: lanes of l where unit_lanes has them, then for each 32 dims and part two tiles of queries. */
RAPT_INLINE char *split_queries(float *panel) { return (char *)unit_lanes(panel, AMX_TILE); }

static size_t panel_bytes_split(int rows, int head_dim) {
    (void)rows;
    return (UNIT_HEAD + AMX_TILE * RAPT_SUM_LANES) * sizeof(float) +
           (size_t)unit16_steps(head_dim) * SPLIT_STEP;
}

static void pack_queries_split(float *panel, const float *const *query_rows, int rows, int head_dim) {
    for (int row = 0; row < AMX_TILE; row++)
        for (int step = 0; step < unit16_steps(head_dim); step++) {
            char *into = split_queries(panel) + step * SPLIT_STEP + row * TILE_ROW_BYTES;
            __m512i parts[UNIT_PARTS];
            split_row(row < rows ? query_rows[row] : NULL, step * RAPT_STEP, head_dim, parts);
            RAPT_UNROLL for (int i = 0; i < UNIT_PARTS; i++)
                _mm512_store_si512(into + i * AMX_PART, parts[i]);
        }
}

/* ------------------------------------------------------------ keys */

static size_t packed_bytes_split(int side, int dim) { return UNIT_PARTS * packed_bytes_amx(side, dim); }

RAPT_INLINE void split_prefetch(const char *row, int d) {
    if (row)
        fetch_soon(row + (size_t)d * sizeof(float)), fetch_soon(row + (size_t)d * sizeof(float) + 64);
}

/* 16 keys and 32 dims: a tile of each part. */
RAPT_INLINE void split_transpose(char *tile, const char *const *rows, int d, int dim) {
    __m512i parts[UNIT_PARTS][16];
    for (int i = 0; i < 16; i++) {
        __m512i of_row[UNIT_PARTS];
        split_row((const float *)(const void *)rows[i], d, dim, of_row);
        RAPT_UNROLL for (int part = 0; part < UNIT_PARTS; part++)
            parts[part][i] = of_row[part];
    }
    for (int part = 0; part < UNIT_PARTS; part++) {
        __m512i r[16];
        RAPT_UNROLL for (int i = 0; i < 16; i++)
            r[i] = parts[part][i];
        unit16_transpose(r);
        RAPT_UNROLL for (int i = 0; i < 16; i++)
            _mm512_storeu_si512(tile + part * AMX_PART + i * TILE_ROW_BYTES, r[i]);
    }
}

/* 16 keys: for each 32 dims and part a tile, beside which that of 16 others lies. ahead: later keys, or NULL. */
RAPT_INLINE void split_pack_keys(char *tile, const char *const *rows, const char *const *ahead, int dim) {
    for (int step = 0; step < unit16_steps(dim); step++, tile += SPLIT_STEP) {
        for (int i = 0; ahead && i < 16; i++)
            split_prefetch(ahead[i], step * RAPT_STEP);
        split_transpose(tile, rows, step * RAPT_STEP, dim);
    }
}

/* For each 32 keys, 32 dims and part two tiles. */
static unsigned pack_keys_split(void *into, const char *const *rows, int dim, int format) {
    const int64_t step_bytes = (int64_t)unit16_steps(dim) * SPLIT_STEP;
    const char *from[RAPT_STEP];
    (void)format;
    for (int step = 0; step < STEPS_OF_HALF; step++) {
        if (!unit16_rows_of_step(from, rows, step))
            continue;
        for (int i = 0; i < 2; i++) {
            const int next = step * RAPT_STEP + (i + 1) * 16;
            split_pack_keys((char *)into + step * step_bytes + i * TILE_BYTES, from + i * 16,
                            next < RAPT_HALF_KEYS ? rows + next : NULL, dim);
        }
    }
    return 0; /* not used */
}

/* ------------------------------------------------------------ values */

/* A pair of values: for each 32 dims and part a row of two tiles. ahead: a later pair, or NULL. Returns which numbers
 * are not finite. */
RAPT_INLINE __mmask32 split_interleave(char *to, const char *const *rows, const char *const *ahead, int dim) {
    const __m512i exponent = _mm512_set1_epi16(0x7f80);
    __mmask32 nonfinite = 0;
    for (int group = 0; group < unit16_steps(dim); group++, to += STEPS_OF_HALF * SPLIT_STEP) {
        __m512i even[UNIT_PARTS], odd[UNIT_PARTS];
        for (int i = 0; ahead && i < 2; i++)
            split_prefetch(ahead[i], group * AMX_COLUMNS);
        split_row((const float *)(const void *)rows[0], group * AMX_COLUMNS, dim, even);
        split_row((const float *)(const void *)rows[1], group * AMX_COLUMNS, dim, odd);
        nonfinite |= unit16_nonfinite(even[0], odd[0], exponent);
        RAPT_UNROLL for (int part = 0; part < UNIT_PARTS; part++) {
            _mm512_storeu_si512(to + part * AMX_PART, unit16_interleave(even[part], odd[part], 0));
            _mm512_storeu_si512(to + part * AMX_PART + TILE_BYTES, unit16_interleave(even[part], odd[part], 1));
        }
    }
    return nonfinite;
}

/* For each 32 dims, 32 keys and part two tiles. */
static unsigned pack_values_split(void *into, const char *const *rows, int dim, int format) {
    const char *from[RAPT_STEP];
    __mmask32 nonfinite = 0;
    (void)format;
    for (int step = 0; step < STEPS_OF_HALF; step++) {
        if (!unit16_rows_of_step(from, rows, step))
            continue;
        for (int i = 0; i < RAPT_STEP; i += 2) {
            const int ahead = step * RAPT_STEP + i + UNIT_AHEAD;
            nonfinite |= split_interleave((char *)into + step * SPLIT_STEP + i / 2 * TILE_ROW_BYTES, from + i,
                                         ahead < RAPT_HALF_KEYS ? rows + ahead : NULL, dim);
        }
    }
    return nonfinite ? 0 : RAPT_FOUND_FINITE;
}

#endif
