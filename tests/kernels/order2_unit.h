/* SPDX-License-Identifier: MIT
 * This machine's matrix unit, for tests of its arithmetic. */
#ifndef RAPT_TESTS_ORDER2_UNIT_H
#define RAPT_TESTS_ORDER2_UNIT_H

#include <stdbool.h>
#include <stdint.h>

enum { TILE_ROWS = 16, TILE_COLUMNS = 16, TILE_TERMS = 32 };

/* C[m][n] += a[m][...] . b[...][n]: terms of b are in pairs, as the instructions take them. */
struct tiles {
    int rows, columns, pairs; /* at least 1 */
    float c[TILE_ROWS][TILE_COLUMNS];
    uint16_t a[TILE_ROWS][TILE_TERMS];
    uint16_t b[TILE_TERMS / 2][TILE_COLUMNS][2];
};

/* Whether the processor has TDPBF16PS (TDPFP16PS), and the system lets this thread use it. */
bool tile_unit_has(bool is_half);

/* One instruction. ASSUME tile_unit_has. */
void tile_unit_run(struct tiles *tiles, bool is_half);

/* The same for VDPBF16PS: a chain per pair of terms, the second term of a pair first. */
bool dot_unit_has(void);
void dot_unit_run(struct tiles *tiles);

#endif
