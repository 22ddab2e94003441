/* SPDX-License-Identifier: MIT
 * Order 2 of few rows on the matrix unit, in turns: far rows. Their sums of all dims, and a panel of 32 values, exceed
 * L1. So there are two passes over the values of a half, with half of the dims each, and a turn has 16 keys, which have
 * as many lines as its 32 values. */
#ifndef RAPT_X86_AMX_FEW_FAR_TURNS_H
#define RAPT_X86_AMX_FEW_FAR_TURNS_H

#include "x86/amx/few_turns.h"

/* `turn` counts through both parts of the values, the first of which has `first` steps. */
RAPT_INLINE struct few_turn few_far_turn_of(const struct few_half *f, int turn, const struct few_half *next, int half,
                                            int dim, int first, struct few_shape shape) {
    enum { BOTH = FEW_TURN / FEW_RUN, PARTS = 2 };
    const struct few_run *run = f->rows->run, *keys = &run[few_number(half + 1, RAPT_KEYS, turn)];
    struct few_run after[BOTH];
    struct few_turn t = {.y = next->a.t.y + turn * FEW_RUN, .keys = {*keys}};
    t.end[0] = few_last(keys, f->copy, dim, shape.key_steps);
    t.ahead.stride[RAPT_KEYS] = keys->stride;
    t.ahead.base[RAPT_KEYS][0] = run[few_number(half + 1, RAPT_KEYS, turn + 1)].base;
    few_find_values(f, t.values, turn, PARTS, first);
    few_find_values(f, after, turn + 1, PARTS, first);
    t.ahead.stride[RAPT_VALUES] = t.values[0].stride;
    RAPT_UNROLL for (int i = 0; i < BOTH; i++)
        t.ahead.base[RAPT_VALUES][i] = after[i].base;
    return t;
}

/* All turns of one part of the values, whose first part has `first` steps. */
RAPT_INLINE void few_far_part(const struct few_half *f, const struct few_half *next, int dim, int part, int first,
                              struct few_shape shape) {
    const int half = f->a.t.first / RAPT_HALF_KEYS, at = part * first * RAPT_STEP;
    few_zero_kept();
    for (int turn = 0; turn < FEW_TURNS; turn++) {
        const struct few_turn t = few_far_turn_of(f, part * FEW_TURNS + turn, next, half, dim, first, shape);
        few_one_turn(f, &t, turn, dim - at, shape);
    }
    few_take_sums(f, at, dim, shape.steps, 1);
}

RAPT_INLINE void few_far_turns(const struct few_half *f, const struct few_half *next, int dim, int steps) {
    const int first = (steps + 1) / 2;
    few_far_part(f, next, dim, 0, first, (struct few_shape){.key_steps = steps, .steps = first});
    few_far_part(f, next, dim, 1, first, (struct few_shape){.key_steps = steps, .steps = steps - first});
}

#endif
