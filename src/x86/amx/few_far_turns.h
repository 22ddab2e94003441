/* SPDX-License-Identifier: MIT
 * Order 2 of few rows on the matrix unit, in turns: far rows, and the choice among all sizes. The sums of all dims of
 * far rows, and a panel of 32 values, are more than L1 has room for. So the values of a half are gone over twice, half
 * of the dims each time, and a turn has 16 keys, whose lines are as many as those of 32 values. */
#ifndef RAPT_X86_AMX_FEW_FAR_TURNS_H
#define RAPT_X86_AMX_FEW_FAR_TURNS_H

#include "x86/amx/few_turns.h"

/* `turn` counts through both parts of the values, the first of which has `first` steps. */
RAPT_INLINE struct few_turn few_far_turn_of(const struct few_task *f, int turn, const struct few_task *next, int half,
                                             int dim, int first, struct few_shape shape) {
    enum { BOTH = FEW_TURN / FEW_RUN };
    const struct few_run *run = f->rows->run;
    const int after = turn + 1, over = after == 2 * FEW_TURNS; /* the first turn of the next half comes after it */
    const int part = turn / FEW_TURNS, next_part = over ? 0 : after / FEW_TURNS;
    const int at = turn % FEW_TURNS * BOTH, next_at = over ? BOTH * FEW_TURNS : after % FEW_TURNS * BOTH;
    const struct few_run *keys = &run[few_number(half + 1, RAPT_KEYS, turn)];
    struct few_turn t = {.y = next->a.t.y + turn * FEW_RUN, .keys = {*keys}};
    t.end[0] = few_last(keys, f->copy, dim, shape.key_steps);
    t.ahead.stride[RAPT_KEYS] = keys->stride;
    t.ahead.stride[RAPT_VALUES] = run[few_number(half, RAPT_VALUES, at)].stride;
    t.ahead.base[RAPT_KEYS][0] = run[few_number(half + 1, RAPT_KEYS, after)].base;
    RAPT_UNROLL for (int i = 0; i < BOTH; i++) {
        t.values[i] = run[few_number(half, RAPT_VALUES, at + i)];
        t.values[i].base += part * first * TILE_ROW_BYTES;
        t.ahead.base[RAPT_VALUES][i] =
            run[few_number(half, RAPT_VALUES, next_at + i)].base + next_part * first * TILE_ROW_BYTES;
    }
    return t;
}

/* All turns of one part of the values, whose first part has `first` steps. */
RAPT_INLINE void few_far_part(const struct few_task *f, const struct few_task *next, int dim, int part, int first,
                               struct few_shape shape) {
    const int half = f->a.t.first / RAPT_HALF_KEYS, at = part * first * RAPT_STEP;
    few_zero_kept();
    for (int turn = 0; turn < FEW_TURNS; turn++) {
        const struct few_turn t = few_far_turn_of(f, part * FEW_TURNS + turn, next, half, dim, first, shape);
        few_one_turn(f, &t, turn, dim - at, shape);
    }
    few_take_sums(f, at, dim, shape.steps);
}

RAPT_INLINE void few_far_turns(const struct few_task *f, const struct few_task *next, int dim, int steps) {
    const int first = (steps + 1) / 2;
    few_far_part(f, next, dim, 0, first, (struct few_shape){.key_steps = steps, .steps = first});
    few_far_part(f, next, dim, 1, first, (struct few_shape){.key_steps = steps, .steps = steps - first});
}

/* ------------------------------------------------------------ for each size of rows */

typedef void few_turner(const struct few_task *f, const struct few_task *next, int dim);
#define FEW_TURNER(steps)                                                                                    \
    static RAPT_KERNEL void few_turns_##steps(const struct few_task *f, const struct few_task *next, int dim) { \
        few_all_turns(f, next, dim, steps, false);                                                           \
    }
FEW_STEPS(FEW_TURNER)
#undef FEW_TURNER

#define FEW_FAR_STEPS(X) X(5) X(6) X(7) X(8)
#define FEW_TURNER(steps)                                                                                    \
    static RAPT_KERNEL void few_turns_##steps(const struct few_task *f, const struct few_task *next, int dim) { \
        few_far_turns(f, next, dim, steps);                                                                 \
    }
FEW_FAR_STEPS(FEW_TURNER)
#undef FEW_TURNER

static RAPT_KERNEL void few_dense_turns(const struct few_task *f, const struct few_task *next, int dim) {
    (void)dim;
    few_all_turns(f, next, FEW_NEAR_DIMS, FEW_DIMS, true);
}

/* p times values of a whole half, to o, and the scores of the next one, whole as well. ASSUME that few_are_regular, and
 * both have as many dims. */
static void few_weigh_in_turns(const struct few_task *f, const struct few_task *next) {
#define FEW_TURNER(steps) few_turns_##steps,
    static few_turner *const of_steps[] = {FEW_STEPS(FEW_TURNER) FEW_FAR_STEPS(FEW_TURNER)};
#undef FEW_TURNER
    const int dim = (int)f->a.t.b->task->attention->desc.value_dim, half = f->a.t.first / RAPT_HALF_KEYS;
    const bool dense = dim == FEW_NEAR_DIMS && few_are_dense(f->rows, half, FEW_NEAR_DIMS * (int64_t)sizeof(uint16_t));
    few_turner *const turns = dense ? few_dense_turns : of_steps[unit16_steps(dim) - 1];
    turns(f, next, dim);
}

#endif
