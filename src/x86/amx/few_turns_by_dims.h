/* SPDX-License-Identifier: MIT
 * Order 2 of few rows on the matrix unit, in turns: a function per size of rows, since only loops of constant size
 * overlap well. */
#ifndef RAPT_X86_AMX_FEW_TURNS_BY_DIMS_H
#define RAPT_X86_AMX_FEW_TURNS_BY_DIMS_H

#include "x86/amx/few_far_turns.h"
#include "x86/amx/few_long_turns.h"

typedef void few_turner(const struct few_half *f, const struct few_half *next, int dim);
#define FEW_TURNER(steps)                                                                                       \
    static RAPT_KERNEL void few_turns_##steps(const struct few_half *f, const struct few_half *next, int dim) { \
        few_all_turns(f, next, dim, steps, false);                                                              \
    }
FEW_STEPS(FEW_TURNER)
#undef FEW_TURNER

#define FEW_FAR_STEPS(X) X(5) X(6) X(7) X(8)
#define FEW_TURNER(steps)                                                                                       \
    static RAPT_KERNEL void few_turns_##steps(const struct few_half *f, const struct few_half *next, int dim) { \
        few_far_turns(f, next, dim, steps);                                                                     \
    }
FEW_FAR_STEPS(FEW_TURNER)
#undef FEW_TURNER

static RAPT_KERNEL void few_dense_turns(const struct few_half *f, const struct few_half *next, int dim) {
    (void)dim;
    few_all_turns(f, next, FEW_NEAR_DIMS, FEW_NEAR_STEPS, true);
}

static void few_weigh_like(const struct few_half *f, const struct few_half *next, int dim) {
#define FEW_TURNER(steps) few_turns_##steps,
    static few_turner *const of_steps[] = {FEW_STEPS(FEW_TURNER) FEW_FAR_STEPS(FEW_TURNER)};
#undef FEW_TURNER
    const int half = f->a.t.first / RAPT_HALF_KEYS;
    const bool dense = dim == FEW_NEAR_DIMS && few_are_dense(f->rows, half, FEW_NEAR_DIMS * (int64_t)sizeof(uint16_t));
    few_turner *const turns = dense ? few_dense_turns : of_steps[unit16_steps(dim) - 1];
    turns(f, next, dim);
}

/* p times values of a whole half, to o, and the scores of the next one, whole as well. ASSUME few_are_regular. */
static void few_weigh_in_turns(const struct few_half *f, const struct few_half *next) {
    static few_long_turner *const of_tiles[][2] = {{few_long_turns_1_rest, few_long_turns_1_whole},
                                                   {few_long_turns_2_rest, few_long_turns_2_whole}};
    const rapt_attention_desc *desc = &f->a.t.b->task->plan->desc;
    const bool whole = desc->value_dim % (long_part_steps(f->tiles) * RAPT_STEP) == 0;
    if (f->tiles == 1 && desc->head_dim == desc->value_dim && desc->value_dim <= FEW_FAR_DIMS)
        few_weigh_like(f, next, (int)desc->value_dim);
    else
        of_tiles[f->tiles - 1][whole](f, next);
}

#endif
