/* SPDX-License-Identifier: MIT
 * Order 2 of few rows on the matrix unit, in turns: prefetches the next turn's lines in memory order, spread over this
 * turn's work. */
#ifndef RAPT_X86_AMX_FEW_AHEAD_H
#define RAPT_X86_AMX_FEW_AHEAD_H

#include "x86/amx/few_weigh.h"

enum {
    FEW_TURNS = RAPT_HALF_KEYS / FEW_TURN,
    FEW_TURN_BYTES = 2 << 10, /* from a line fetched into L1 to the one into L2 */
    FEW_TURN_RUNS = 4,        /* that hold the next turn and the lines so far beyond it */
    /* Only evenly spaced requests keep memory busy. Rows of the next turn that are prefetched beside each part of this
     * one: */
    BESIDE_SCORING = 8,
    BESIDE_INTERLEAVING = 12,
    BESIDE_TRANSPOSING = 4,
    BESIDE_WEIGHING = 8
};

_Static_assert(BESIDE_SCORING + BESIDE_INTERLEAVING + BESIDE_TRANSPOSING + BESIDE_WEIGHING == FEW_TURN, "all rows");

/* Steps of 32 dims of keys, and of values at a time: all of near rows; of far ones, part by part, so that their sums
 * stay in L1. */
struct few_shape {
    int key_steps, steps;
    bool dense; /* all rows of a side are contiguous, which saves arithmetic */
};

RAPT_INLINE bool few_is_far_shape(struct few_shape shape) { return shape.key_steps > FEW_NEAR_STEPS; }

/* Runs of keys and values from the next turn on. */
struct few_ahead {
    const char *base[RAPT_SIDES][FEW_TURN_RUNS];
    int64_t stride[RAPT_SIDES];
};

RAPT_INLINE const char *few_row_ahead(const struct few_ahead *ahead, int side, int row) {
    return ahead->base[side][row / FEW_RUN] + row % FEW_RUN * ahead->stride[side];
}

/* Lines [line, end) of both sides into L1, and lines beyond into L2. */
RAPT_INLINE void few_fetch(const struct few_ahead *ahead, int line, int end, int steps) {
    const int beyond = FEW_TURN_BYTES / (steps * TILE_ROW_BYTES); /* rows */
    RAPT_UNROLL for (int i = line; i < end; i++)
        RAPT_UNROLL for (int side = 0; side < RAPT_SIDES; side++) {
            fetch_soon(few_row_ahead(ahead, side, i / steps) + i % steps * 64);
            fetch_later(few_row_ahead(ahead, side, beyond + i / steps) + i % steps * 64);
        }
}

/* Far rows exceed L1: lines of values into L2, and an equal share of half as many keys. */
RAPT_INLINE void few_fetch_far(const struct few_ahead *ahead, int line, int end, struct few_shape shape) {
    const int keys = shape.key_steps, steps = shape.steps;
    RAPT_UNROLL for (int i = line; i < end; i++)
        fetch_later(few_row_ahead(ahead, RAPT_VALUES, i / steps) + i % steps * 64);
    RAPT_UNROLL for (int i = line * keys / (2 * steps); i < end * keys / (2 * steps); i++)
        fetch_later(few_row_ahead(ahead, RAPT_KEYS, i / keys) + i % keys * 64);
}

/* Part i of `parts` of rows [row, row + rows). */
RAPT_INLINE void few_fetch_part(const struct few_ahead *ahead, int row, int rows, int i, int parts,
                                struct few_shape shape) {
    const int line = row * shape.steps + rows * shape.steps * i / parts;
    const int end = row * shape.steps + rows * shape.steps * (i + 1) / parts;
    if (few_is_far_shape(shape))
        few_fetch_far(ahead, line, end, shape);
    else
        few_fetch(ahead, line, end, shape.steps);
}

#endif
