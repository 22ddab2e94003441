/* SPDX-License-Identifier: MIT
 * Transposes keys, a square of VL words of VL keys at a time. */
#ifndef RAPT_GENERIC_SQUARES_H
#define RAPT_GENERIC_SQUARES_H

#include "generic/loops.h"
#include "kernels.h"

/* Whether loads insert parts of rows into vectors, which saves shuffles. */
#ifndef RAPT_LOADS_PARTS
#define RAPT_LOADS_PARTS 0
RAPT_INLINE void v_load_square_by_halves(vf32 *square, const float *const *rows, int64_t offset) {
    v_load_square(square, rows, offset);
}
RAPT_INLINE void v_load_half_square(vf32 *square, const float *const *rows, int64_t offset) {
    v_load_square(square, rows, offset);
}
RAPT_INLINE void v_load_columns(vf32 *columns, const char *const *rows, int64_t offset) {
    columns[0] = v_load((const float *)(const void *)(rows[0] + offset)); /* never called */
}
RAPT_INLINE vf32 v_widen_column(const vf32 *columns, int n) { return columns[n]; }
RAPT_INLINE void v_transpose_shorts_by_quarters(uint16_t *into, const char *const *rows, int64_t offset) {
    v_transpose_shorts(into, rows, offset);
}
#endif

/* Whether to load quarters of vectors: more instructions, but fewer for the single shuffle port. Faster beside the FMAs
 * of some rows, but not for few rows, nor for several vectors of keys at once. */
RAPT_INLINE bool suits_quarters(int rows, int vectors) { return RAPT_LOADS_PARTS && rows >= 4 && vectors == 1; }

/* In a file whose kernels keep half a square at a time in registers: of how many vectors of keys, 1 or 2 (of one row 2,
 * unless RAPT_WORD_VECTORS is 1). 0 = whole squares. */
#ifndef RAPT_HALF_SQUARES
#define RAPT_HALF_SQUARES 0
#endif

/* Words of each key from `byte` on: lanes[i] holds word i of all keys. */
RAPT_INLINE void load_square_of_words(vf32 *lanes, const char *const *keys, int64_t byte, bool quarters) {
    const float *rows[VL];
    RAPT_UNROLL for (int i = 0; i < VL; i++)
        rows[i] = (const float *)(const void *)(keys[i] + byte);
    if (RAPT_HALF_SQUARES)
        v_load_half_square(lanes, rows, 0);
    else if (quarters)
        v_load_square(lanes, rows, 0);
    else
        v_load_square_by_halves(lanes, rows, 0);
}

/* Twice as many numbers of 16 bits per key: number i of all keys begins at into[i * VL]. */
RAPT_INLINE void load_square_of_shorts(uint16_t *into, const char *const *keys, int64_t byte, bool quarters) {
    if (quarters)
        v_transpose_shorts_by_quarters(into, keys, byte);
    else
        v_transpose_shorts(into, keys, byte);
}

#endif
