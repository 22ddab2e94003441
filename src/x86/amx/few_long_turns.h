/* SPDX-License-Identifier: MIT
 * Order 2 of few rows on the matrix unit, in turns: rows of any number of dims, keys and values of unlike ones. Values
 * of a half are gone over in parts of 64 dims, whose sums stay in registers. 32 keys of the next half take as many
 * turns as there are parts, each with a share of their dims. */
#ifndef RAPT_X86_AMX_FEW_LONG_TURNS_H
#define RAPT_X86_AMX_FEW_LONG_TURNS_H

#include "x86/amx/few_turns.h"

enum {
    LONG_STEPS = 2, /* of 32 dims of values in a part */
    LONG_PRODUCTS = 2 * LONG_STEPS,
    LONG_PAIRS = FEW_TURN / 2,
    LONG_SCORED = 2, /* steps of keys that something is prefetched beside */
    /* Rows prefetched beside each product, and each pair of values: */
    BESIDE_PRODUCT = 2,
    BESIDE_PAIR = 1,
    /* the first of those beside values, and beside products with them. */
    LONG_INTERLEAVING = 2 * LONG_SCORED * BESIDE_PRODUCT,
    LONG_WEIGHING = LONG_INTERLEAVING + LONG_PAIRS * BESIDE_PAIR
};

_Static_assert(LONG_WEIGHING + LONG_PRODUCTS * BESIDE_PRODUCT == FEW_TURN, "all rows");

/* A half whose values are weighed, and the one whose keys are scored. */
struct few_long {
    const struct few_task *f, *next;
    int half, parts, key_steps;
    bool views;                                /* values are of keys: these are prefetched for both */
    struct few_run keys[2], end[2];            /* 32 keys, and their last step; */
    int step, steps;                           /* those of this turn, */
    struct few_run keys_ahead[2];              /* and where they lie in the next 32 */
    struct few_run values[2], values_ahead[2]; /* of this turn, and of the next one */
};

/* Keys [row, end) of the next 32. */
RAPT_INLINE void long_fetch_keys(const struct few_long *l, int row, int end) {
    RAPT_UNROLL for (int i = row; i < end; i++) {
        const struct few_run *run = &l->keys_ahead[i / FEW_RUN];
        const char *line = run->base + i % FEW_RUN * run->stride;
        RAPT_UNROLL for (int step = 0; step < LONG_SCORED; step++) /* most turns have as many */
            fetch_later(line + step * TILE_ROW_BYTES);
        for (int step = LONG_SCORED; step < l->steps; step++)
            fetch_later(line + step * TILE_ROW_BYTES);
    }
}

/* A pair of values of the next turn. */
RAPT_INLINE void long_fetch_values(const struct few_long *l, int pair) {
    const struct few_run *run = &l->values_ahead[2 * pair / FEW_RUN];
    const char *line = run->base + 2 * pair % FEW_RUN * run->stride;
    RAPT_UNROLL for (int step = 0; step < LONG_STEPS; step++) {
        fetch_later(line + step * TILE_ROW_BYTES);
        fetch_later(line + run->stride + step * TILE_ROW_BYTES);
    }
}

/* ------------------------------------------------------------ one turn */

RAPT_INLINE void long_turn_to_keys(struct few_long *l, int turn) {
    const struct few_task *f = l->f;
    const int next = l->half + 1, number = turn % l->parts, both = turn / l->parts * 2;
    l->step = number * l->key_steps / l->parts;
    l->steps = (number + 1) * l->key_steps / l->parts - l->step;
    RAPT_UNROLL for (int i = 0; i < 2; i++) {
        l->keys_ahead[i] = f->rows->run[few_number(next, RAPT_KEYS, both + 2 + i)];
        l->keys_ahead[i].base += l->step * TILE_ROW_BYTES;
    }
    if (number > 0)
        return;
    const int dim = (int)f->a.t.b->task->attention->desc.head_dim;
    RAPT_UNROLL for (int i = 0; i < 2; i++) {
        l->keys[i] = f->rows->run[few_number(next, RAPT_KEYS, both + i)];
        l->end[i] = few_last(&l->keys[i], f->copy + i * TILE_BYTES, dim, l->key_steps);
    }
    TILE_ZERO(4);
    TILE_ZERO(5);
}

/* One step of 32 keys. Beside each product, so many keys from `row` on. */
RAPT_INLINE void long_score(const struct few_long *l, int step, int row, int beside) {
    const char *const queries = few_queries(l->f->a.t.b->panel) + step * TILE_BYTES;
    const struct few_run low = few_step(&l->keys[0], &l->end[0], step, l->key_steps);
    const struct few_run high = few_step(&l->keys[1], &l->end[1], step, l->key_steps);
    TILE_LOAD(7, queries, TILE_ROW_BYTES);
    TILE_LOAD_STREAMED(6, low.base, low.stride);
    TILE_MULTIPLY_BF16(4, 6, 7);
    long_fetch_keys(l, row, row + beside);
    TILE_LOAD_STREAMED(6, high.base, high.stride);
    TILE_MULTIPLY_BF16(5, 6, 7);
    long_fetch_keys(l, row + beside, row + 2 * beside);
}

RAPT_INLINE void long_score_all(const struct few_long *l) {
    RAPT_UNROLL for (int i = 0; i < LONG_SCORED; i++) {
        const int row = i * 2 * BESIDE_PRODUCT;
        if (i < l->steps)
            long_score(l, l->step + i, row, BESIDE_PRODUCT);
        else
            long_fetch_keys(l, row, row + 2 * BESIDE_PRODUCT);
    }
    for (int i = LONG_SCORED; i < l->steps; i++)
        long_score(l, l->step + i, 0, 0);
}

/* dims: those of values from this part on. whole: a part has all of its own, a constant. */
RAPT_INLINE void long_interleave(const struct few_long *l, int dims, bool whole) {
    const __mmask32 low = whole ? FEW_ALL_DIMS : unit16_first(dims);
    const __mmask32 high = whole ? FEW_ALL_DIMS : unit16_first(dims - RAPT_STEP);
    const char *even = NULL;
    char *into = l->f->panel;
    RAPT_UNROLL for (int i = 0; i < LONG_PAIRS; i++, into += TILE_ROW_BYTES) {
        const struct few_run *run = &l->values[2 * i / FEW_RUN];
        even = 2 * i % FEW_RUN == 0 ? run->base : even + 2 * run->stride;
        const char *const odd = even + run->stride;
        few_interleave_pair(into, even, odd, low);
        few_interleave_pair(into + 2 * TILE_BYTES, even + TILE_ROW_BYTES, odd + TILE_ROW_BYTES, high);
        long_fetch_keys(l, LONG_INTERLEAVING + i * BESIDE_PAIR, LONG_INTERLEAVING + (i + 1) * BESIDE_PAIR);
        if (!l->views)
            long_fetch_values(l, i);
    }
}

#define LONG_WEIGH(sum)                                                         \
    do {                                                                        \
        TILE_LOAD(6, panel + (sum) * TILE_BYTES, TILE_ROW_BYTES);               \
        TILE_MULTIPLY_BF16(sum, 7, 6);                                          \
        long_fetch_keys(l, LONG_WEIGHING + (sum) * BESIDE_PRODUCT,              \
                        LONG_WEIGHING + ((sum) + 1) * BESIDE_PRODUCT);          \
    } while (0)

RAPT_INLINE void long_weigh(const struct few_long *l, int turn) {
    const char *const panel = l->f->panel, *const p = (const char *)l->f->a.t.y;
    TILE_LOAD(7, p + turn % FEW_TURNS * TILE_ROW_BYTES, RAPT_HALF_KEYS * sizeof(float));
    LONG_WEIGH(0);
    LONG_WEIGH(1);
    LONG_WEIGH(2);
    LONG_WEIGH(3);
}

#undef LONG_WEIGH

RAPT_INLINE void long_turn(const struct few_long *l, int turn, int dims, bool whole) {
    const bool scored = l->step + l->steps == l->key_steps;
    char *const scores = l->f->scores;
    long_score_all(l);
    if (scored) {
        TILE_STORE(4, scores, TILE_ROW_BYTES);
        TILE_STORE(5, scores + TILE_BYTES, TILE_ROW_BYTES);
    }
    long_interleave(l, dims, whole);
    for (int i = 0; scored && i < 2; i++)
        few_transpose(scores + i * TILE_BYTES, l->next->a.t.y + turn / l->parts * FEW_TURN + i * FEW_RUN, l->keys_ahead,
                      0, 0);
    long_weigh(l, turn);
}

/* ------------------------------------------------------------ a half */

RAPT_INLINE void few_long_turns(const struct few_task *f, const struct few_task *next, bool whole) {
    const struct rapt_plan_body *a = f->a.t.b->task->attention;
    const int dim = (int)a->desc.value_dim, part_dims = LONG_STEPS * RAPT_STEP;
    struct few_long l = {.f = f,
                         .next = next,
                         .half = f->a.t.first / RAPT_HALF_KEYS,
                         .parts = (dim + part_dims - 1) / part_dims,
                         .key_steps = unit16_steps((int)a->desc.head_dim),
                         .views = a->values_in_keys >= 0};
    for (int part = 0; part < l.parts; part++) {
        few_zero_kept();
        for (int turn = part * FEW_TURNS; turn < (part + 1) * FEW_TURNS; turn++) {
            long_turn_to_keys(&l, turn);
            few_find_values(f, l.values, turn, l.parts, LONG_STEPS);
            few_find_values(f, l.values_ahead, turn + 1, l.parts, LONG_STEPS);
            long_turn(&l, turn, dim - part * part_dims, whole);
        }
        few_take_sums(f, part * part_dims, dim, LONG_STEPS);
    }
}

static RAPT_KERNEL void few_long_turns_whole(const struct few_task *f, const struct few_task *next) {
    few_long_turns(f, next, true);
}

static RAPT_KERNEL void few_long_turns_rest(const struct few_task *f, const struct few_task *next) {
    few_long_turns(f, next, false);
}

#endif
