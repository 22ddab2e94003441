/* SPDX-License-Identifier: MIT
 *
 * The peak of the matrix unit: independent products of tiles, on registers with ordinary numbers (zeros make the
 * processor faster). */
#include "peak_kernels.h"

#include "x86/amx/tiles.h"

enum { TILES_PER_ROUND = 8, NUMBERS = TILE_BYTES / 2 };

/* bfloat16 numbers of either sign between 1/2 and 2, so that sums stay ordinary. */
static void fill(uint16_t numbers[NUMBERS]) {
    uint32_t state = 1;
    for (int i = 0; i < NUMBERS; i++) {
        state = state * 1664525u + 1013904223u;
        numbers[i] = (uint16_t)((state >> 16 & 0x80ff) | 0x3f00);
    }
}

/* 4 sums hide the latency of a product: 52 cycles, one starting every 16. */
static float multiply(int64_t rounds) {
    const struct tile_config whole = tiles_whole();
    uint16_t numbers[NUMBERS];
    float sums[TILE_BYTES / sizeof(float)];
    fill(numbers);
    tiles_load_config(&whole);
    TILE_LOAD(4, numbers, TILE_ROW_BYTES);
    TILE_LOAD(5, numbers, TILE_ROW_BYTES);
    TILE_LOAD(6, numbers, TILE_ROW_BYTES);
    TILE_LOAD(7, numbers, TILE_ROW_BYTES);
    TILE_ZERO(0);
    TILE_ZERO(1);
    TILE_ZERO(2);
    TILE_ZERO(3);
    for (int64_t round = 0; round < rounds; round++) {
        TILE_MULTIPLY_BF16(0, 4, 6);
        TILE_MULTIPLY_BF16(1, 4, 7);
        TILE_MULTIPLY_BF16(2, 5, 6);
        TILE_MULTIPLY_BF16(3, 5, 7);
        TILE_MULTIPLY_BF16(0, 5, 7);
        TILE_MULTIPLY_BF16(1, 5, 6);
        TILE_MULTIPLY_BF16(2, 4, 7);
        TILE_MULTIPLY_BF16(3, 4, 6);
    }
    TILE_STORE(0, sums, TILE_ROW_BYTES);
    tiles_release();
    return sums[0];
}

const struct peak_kernels peak_amx = {
    .fma = multiply,
    .flops_per_round = 2.0 * TILES_PER_ROUND * TILE_HEIGHT * TILE_FLOATS * 32,
};
