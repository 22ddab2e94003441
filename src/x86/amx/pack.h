/* SPDX-License-Identifier: MIT
 * Queries, keys and values of 16 bits in the layout that tiles take. The left side of a product has rows as they are,
 * 32 terms in a tile. The right side has pairs of terms: row i of a tile holds terms 2i and 2i + 1 of 16 columns. */
#ifndef RAPT_X86_AMX_PACK_H
#define RAPT_X86_AMX_PACK_H

#include "x86/amx/kind.h"
#include "x86/amx/tiles.h"
#include "x86/unit16/pack.h"

enum {
    AMX_TILE = 32,                        /* rows of queries: two tiles, one below the other */
    AMX_COLUMNS = 32                      /* keys, or dims of values: two tiles side by side */
};

/* ------------------------------------------------------------ queries */

/* The panel of a tile: lanes of l [32][16], then for each 32 dims two tiles of queries. */
static size_t panel_bytes_amx(int rows, int head_dim) {
    (void)rows;
    return AMX_TILE * RAPT_SUM_LANES * sizeof(float) + (size_t)unit16_steps(head_dim) * 2 * TILE_BYTES;
}

RAPT_INLINE char *amx_queries(float *panel) { return (char *)(panel + AMX_TILE * RAPT_SUM_LANES); }

static void pack_queries_amx(float *panel, const char *const *query_rows, int rows, int head_dim) {
    for (int row = 0; row < AMX_TILE; row++)
        for (int step = 0; step < unit16_steps(head_dim); step++) {
            char *into = amx_queries(panel) + (2 * step + row / 16) * TILE_BYTES + row % 16 * TILE_ROW_BYTES;
            const __mmask32 there = row < rows ? unit16_first(head_dim - step * RAPT_STEP) : 0;
            const char *from = row < rows ? query_rows[row] + step * TILE_ROW_BYTES : into;
            _mm512_store_si512(into, _mm512_maskz_loadu_epi16(there, from));
        }
}

/* ------------------------------------------------------------ keys */

static size_t packed_bytes_amx(int side, int dim) {
    (void)side; /* 4 groups of 32 keys by steps of 32 dims; groups of 32 dims by 4 steps of 32 keys */
    return (size_t)unit16_steps(dim) * STEPS_OF_HALF * 2 * TILE_BYTES;
}

/* For each 32 keys and 32 dims two tiles. */
static unsigned pack_keys_amx(void *into, const char *const *rows, int dim, int format) {
    char *tile = into;
    (void)format;
    for (int key = 0; key < RAPT_HALF_KEYS; key += AMX_COLUMNS)
        for (int step = 0; step < unit16_steps(dim); step++) {
            const __mmask32 there = unit16_first(dim - step * RAPT_STEP);
            for (int side = 0; side < 2; side++, tile += TILE_BYTES) {
                __m512i r[16];
                RAPT_UNROLL for (int i = 0; i < 16; i++) {
                    const char *row = rows[key + side * 16 + i];
                    r[i] = _mm512_maskz_loadu_epi16(row ? there : 0, row + (row ? step * TILE_ROW_BYTES : 0));
                }
                unit16_transpose(r);
                RAPT_UNROLL for (int i = 0; i < 16; i++)
                    _mm512_storeu_si512(tile + i * TILE_ROW_BYTES, r[i]);
            }
        }
    return 0; /* nobody asks */
}

/* ------------------------------------------------------------ values */

/* For each 32 dims and 32 keys a tile of 16 dims, and in the same order a tile of the other 16, 4 tiles later. */
RAPT_INLINE unsigned interleave_values(char *into, const char *const *rows, int dim, int half) {
    const __m512i exponent = _mm512_set1_epi16(half ? 0x7c00 : 0x7f80);
    __mmask32 infinite = 0;
    for (int group = 0; group < unit16_steps(dim); group++, into += 2 * STEPS_OF_HALF * TILE_BYTES) {
        const __mmask32 there = unit16_first(dim - group * AMX_COLUMNS);
        const int64_t at = group * TILE_ROW_BYTES;
        for (int pair = 0; pair < RAPT_HALF_KEYS / 2; pair++) {
            const char *even = rows[2 * pair], *odd = rows[2 * pair + 1];
            const __m512i a = _mm512_maskz_loadu_epi16(even ? there : 0, even + (even ? at : 0));
            const __m512i b = _mm512_maskz_loadu_epi16(odd ? there : 0, odd + (odd ? at : 0));
            infinite |= _mm512_cmpeq_epi16_mask(_mm512_and_si512(a, exponent), exponent) |
                        _mm512_cmpeq_epi16_mask(_mm512_and_si512(b, exponent), exponent);
            _mm512_storeu_si512(into + pair * TILE_ROW_BYTES, unit16_in_turns(a, b, 0));
            _mm512_storeu_si512(into + STEPS_OF_HALF * TILE_BYTES + pair * TILE_ROW_BYTES, unit16_in_turns(a, b, 1));
        }
    }
    return infinite ? 0 : RAPT_FOUND_FINITE;
}

static unsigned pack_values_amx(void *into, const char *const *rows, int dim, int format) {
    return format == RAPT_FORMAT_F16 ? interleave_values(into, rows, dim, 1) : interleave_values(into, rows, dim, 0);
}

#endif
