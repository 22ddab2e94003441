/* SPDX-License-Identifier: MIT
 * 16-bit queries, keys and values in tile layout. The left side of a product has rows as they are, 32 terms in a tile.
 * The right side has pairs of terms: row i of a tile holds terms 2i and 2i + 1 of 16 columns. */
#ifndef RAPT_X86_AMX_PACK_H
#define RAPT_X86_AMX_PACK_H

#include "x86/amx/kind.h"
#include "x86/amx/tiles.h"
#include "x86/unit16/pack.h"

enum {
    AMX_TILE = 32,                        /* rows of queries: two tiles, one below the other */
    AMX_COLUMNS = 32                      /* keys, or dims of values: two tiles side by side */
};

#if UNIT16_IS_F16
#define TILE_MULTIPLY TILE_MULTIPLY_F16
#else
#define TILE_MULTIPLY TILE_MULTIPLY_BF16
#endif

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

/* 32 keys: for each 32 dims two tiles. */
RAPT_INLINE void pack_keys_of_step(char *tile, const char *const *rows, int dim) {
    for (int step = 0; step < unit16_steps(dim); step++) {
        const __mmask32 there = unit16_first(dim - step * RAPT_STEP);
        for (int side = 0; side < 2; side++, tile += TILE_BYTES) {
            __m512i r[16];
            RAPT_UNROLL for (int i = 0; i < 16; i++)
                r[i] = _mm512_maskz_loadu_epi16(there, rows[side * 16 + i] + step * TILE_ROW_BYTES);
            unit16_transpose(r);
            RAPT_UNROLL for (int i = 0; i < 16; i++)
                _mm512_storeu_si512(tile + i * TILE_ROW_BYTES, r[i]);
        }
    }
}

static unsigned pack_keys_amx(void *into, const char *const *rows, int dim, int format) {
    const int64_t step_bytes = (int64_t)unit16_steps(dim) * 2 * TILE_BYTES;
    (void)format;
    const char *from[RAPT_STEP];
    for (int step = 0; step < STEPS_OF_HALF; step++)
        if (unit16_rows_of_step(from, rows, step))
            pack_keys_of_step((char *)into + step * step_bytes, from, dim);
    return 0; /* not used */
}

/* ------------------------------------------------------------ values */

/* 32 values: for each 32 dims a tile of 16 of them, and 4 tiles later one of the others. Returns which numbers are not
 * finite. */
RAPT_INLINE __mmask32 interleave_step(char *tile, const char *const *rows, int dim) {
    const __m512i exponent = _mm512_set1_epi16(UNIT16_IS_F16 ? 0x7c00 : 0x7f80);
    __mmask32 nonfinite = 0;
    for (int group = 0; group < unit16_steps(dim); group++, tile += 2 * STEPS_OF_HALF * TILE_BYTES) {
        const __mmask32 there = unit16_first(dim - group * AMX_COLUMNS);
        for (int pair = 0; pair < TILE_HEIGHT; pair++) {
            char *into = tile + pair * TILE_ROW_BYTES;
            const __m512i a = _mm512_maskz_loadu_epi16(there, rows[2 * pair] + group * TILE_ROW_BYTES);
            const __m512i b = _mm512_maskz_loadu_epi16(there, rows[2 * pair + 1] + group * TILE_ROW_BYTES);
            nonfinite |= unit16_nonfinite(a, b, exponent);
            _mm512_storeu_si512(into, unit16_interleave(a, b, 0));
            _mm512_storeu_si512(into + STEPS_OF_HALF * TILE_BYTES, unit16_interleave(a, b, 1));
        }
    }
    return nonfinite;
}

static unsigned pack_values_amx(void *into, const char *const *rows, int dim, int format) {
    const char *from[RAPT_STEP];
    __mmask32 nonfinite = 0;
    (void)format;
    for (int step = 0; step < STEPS_OF_HALF; step++)
        if (unit16_rows_of_step(from, rows, step))
            nonfinite |= interleave_step((char *)into + step * TILE_BYTES, from, dim);
    return nonfinite ? 0 : RAPT_FOUND_FINITE;
}

#endif
