/* SPDX-License-Identifier: MIT
 * Order 2 of few rows on the matrix unit, in turns: any number of dims, unlike ones of keys and values, and two tiles
 * of rows. A turn takes some dims of 32 values, and all values of a half come before other dims, so that sums stay in
 * four registers: those of 64 dims, or of 32 dims for two tiles of rows. As many turns as there are parts of dims share
 * the products of 32 keys of the next half. */
#ifndef RAPT_X86_AMX_FEW_LONG_TURNS_H
#define RAPT_X86_AMX_FEW_LONG_TURNS_H

#include "x86/amx/few_turns.h"

enum {
    LONG_SUMS = 4,
    LONG_PAIRS = FEW_TURN / 2,
    LONG_SCORED = 2, /* pairs of products with keys that prefetch */
    /* Shares of all rows to prefetch beside each product, and each pair of values: */
    BESIDE_PRODUCT = 2,
    BESIDE_PAIR = 1,
    /* the first of those beside values, and beside products with them. */
    LONG_INTERLEAVING = 2 * LONG_SCORED * BESIDE_PRODUCT,
    LONG_WEIGHING = LONG_INTERLEAVING + LONG_PAIRS * BESIDE_PAIR
};

_Static_assert(LONG_WEIGHING + LONG_SUMS * BESIDE_PRODUCT == FEW_TURN, "all rows");

/* A half whose values are weighed, and the one whose keys are scored. */
struct few_long {
    const struct few_half *f, *next;
    int half, parts, key_steps;
    bool views;                                /* values are of keys: these are prefetched for both */
    struct few_run keys[2], end[2];            /* 32 keys, and their last step; */
    int both, step, steps;                     /* their first run, and this turn's share of their steps */
    struct few_run keys_ahead[2], ahead[2];    /* the next 32 keys; and of these, what is prefetched next */
    struct few_run values[2], values_ahead[2]; /* of this turn, and of the next one */
};

/* `tiles` of rows, 1 or 2, is a constant. One tile takes a step of 32 keys at a time. Two take a step of 16 keys, those
 * of the first run before those of the second. */
RAPT_INLINE int long_run_of(const struct few_long *l, int step, int tiles) { return tiles > 1 && step >= l->key_steps; }

/* Steps of 32 dims of values in a part. */
RAPT_INLINE int long_part_steps(int tiles) { return LONG_SUMS / 2 / tiles; }

/* Where a step lies in the next 32 keys. */
RAPT_INLINE struct few_run long_step_ahead(const struct few_long *l, int at) {
    const int run = long_run_of(l, at, 2);
    const struct few_run keys = l->keys_ahead[run];
    return (struct few_run){keys.base + (at - run * l->key_steps) * TILE_ROW_BYTES, keys.stride};
}

/* Fetches shares [first, end) of this turn's steps of the next 32 keys. */
RAPT_INLINE void long_fetch_keys(struct few_long *l, int first, int end, int tiles) {
    RAPT_UNROLL for (int i = first / tiles; i < end / tiles; i++) {
        struct few_run *of_run = &l->ahead[i / FEW_RUN];
        RAPT_UNROLL for (int k = 0; k < LONG_SCORED; k++) { /* most turns have as many */
            fetch_later(tiles > 1 ? l->ahead[k].base : of_run->base + k * TILE_ROW_BYTES);
            l->ahead[k].base += tiles > 1 ? l->ahead[k].stride : 0;
        }
        for (int k = LONG_SCORED; tiles == 1 && k < l->steps; k++)
            fetch_later(of_run->base + k * TILE_ROW_BYTES);
        of_run->base += tiles == 1 ? of_run->stride : 0;
    }
}

/* With two tiles of rows: a step after those. */
RAPT_INLINE void long_fetch_step(const struct few_long *l, int at) {
    const struct few_run ahead = long_step_ahead(l, at);
    RAPT_UNROLL for (int i = 0; i < FEW_RUN; i++)
        fetch_later(ahead.base + i * ahead.stride);
}

/* A pair of values of the next turn. */
RAPT_INLINE void long_fetch_values(const struct few_long *l, int pair, int tiles) {
    const struct few_run *run = &l->values_ahead[2 * pair / FEW_RUN];
    const char *line = run->base + 2 * pair % FEW_RUN * run->stride;
    RAPT_UNROLL for (int step = 0; step < long_part_steps(tiles); step++) {
        fetch_later(line + step * TILE_ROW_BYTES);
        fetch_later(line + run->stride + step * TILE_ROW_BYTES);
    }
}

/* ------------------------------------------------------------ one turn */

RAPT_INLINE void long_turn_to_keys(struct few_long *l, int turn, int tiles) {
    const struct few_half *f = l->f;
    const int next = l->half + 1, number = turn % l->parts, all = tiles * l->key_steps;
    l->both = turn / l->parts * 2;
    l->step = number * all / l->parts;
    l->steps = (number + 1) * all / l->parts - l->step;
    RAPT_UNROLL for (int i = 0; i < 2; i++)
        l->keys_ahead[i] = f->rows->run[few_number(next, RAPT_KEYS, l->both + 2 + i)];
    RAPT_UNROLL for (int i = 0; i < 2; i++)
        if (tiles > 1)
            l->ahead[i] = long_step_ahead(l, l->step + i);
        else
            l->ahead[i] = (struct few_run){l->keys_ahead[i].base + l->step * TILE_ROW_BYTES, l->keys_ahead[i].stride};
    if (number > 0)
        return;
    const int dim = (int)f->a.t.b->task->plan->desc.head_dim;
    RAPT_UNROLL for (int i = 0; i < 2; i++) {
        l->keys[i] = f->rows->run[few_number(next, RAPT_KEYS, l->both + i)];
        l->end[i] = few_last(&l->keys[i], f->copy + i * TILE_BYTES, dim, l->key_steps);
    }
}

/* Two products of a step, into tiles 4 and 5. Beside each, fetches `beside` shares of keys from `first` on. */
RAPT_INLINE void long_score(struct few_long *l, int at, int first, int beside, int tiles) {
    const int run = long_run_of(l, at, tiles), step = at - run * l->key_steps;
    const char *const queries = l->f->queries + step * TILE_BYTES;
    if (step == 0) {
        TILE_ZERO(4);
        TILE_ZERO(5);
    }
    if (tiles > 1) {
        const struct few_run keys = few_step(&l->keys[run], &l->end[run], step, l->key_steps);
        TILE_LOAD_STREAMED(6, keys.base, keys.stride);
        TILE_LOAD(7, queries, TILE_ROW_BYTES);
        TILE_MULTIPLY(4, 6, 7);
        long_fetch_keys(l, first, first + beside, tiles);
        TILE_LOAD(7, queries + l->key_steps * TILE_BYTES, TILE_ROW_BYTES);
        TILE_MULTIPLY(5, 6, 7);
    } else {
        const struct few_run low = few_step(&l->keys[0], &l->end[0], step, l->key_steps);
        const struct few_run high = few_step(&l->keys[1], &l->end[1], step, l->key_steps);
        TILE_LOAD(7, queries, TILE_ROW_BYTES);
        TILE_LOAD_STREAMED(6, low.base, low.stride);
        TILE_MULTIPLY(4, 6, 7);
        long_fetch_keys(l, first, first + beside, tiles);
        TILE_LOAD_STREAMED(6, high.base, high.stride);
        TILE_MULTIPLY(5, 6, 7);
    }
    long_fetch_keys(l, first + beside, first + 2 * beside, tiles);
    if (step == l->key_steps - 1) {
        TILE_STORE(4, l->f->scores + 2 * run * TILE_BYTES, TILE_ROW_BYTES);
        TILE_STORE(5, l->f->scores + (2 * run + 1) * TILE_BYTES, TILE_ROW_BYTES);
    }
}

RAPT_INLINE void long_score_all(struct few_long *l, int tiles) {
    RAPT_UNROLL for (int i = 0; i < LONG_SCORED; i++) {
        const int first = i * 2 * BESIDE_PRODUCT;
        if (i < l->steps)
            long_score(l, l->step + i, first, BESIDE_PRODUCT, tiles);
        else
            long_fetch_keys(l, first, first + 2 * BESIDE_PRODUCT, tiles);
    }
    for (int i = LONG_SCORED; i < l->steps; i++) {
        long_score(l, l->step + i, 0, 0, tiles);
        if (tiles > 1)
            long_fetch_step(l, l->step + i);
    }
}

/* dims: of values, from this part on. whole: this part has all of its dims; a constant. */
RAPT_INLINE void long_interleave(struct few_long *l, int dims, bool whole, int tiles) {
    const __mmask32 low = whole ? FEW_ALL_DIMS : unit16_first(dims);
    const __mmask32 high = whole ? FEW_ALL_DIMS : unit16_first(dims - RAPT_STEP);
    const char *even = NULL;
    char *into = l->f->panel;
    RAPT_UNROLL for (int i = 0; i < LONG_PAIRS; i++, into += TILE_ROW_BYTES) {
        const struct few_run *run = &l->values[2 * i / FEW_RUN];
        even = 2 * i % FEW_RUN == 0 ? run->base : even + 2 * run->stride;
        const char *const odd = even + run->stride;
        few_interleave_pair(into, even, odd, low);
        if (long_part_steps(tiles) > 1)
            few_interleave_pair(into + 2 * TILE_BYTES, even + TILE_ROW_BYTES, odd + TILE_ROW_BYTES, high);
        long_fetch_keys(l, LONG_INTERLEAVING + i * BESIDE_PAIR, LONG_INTERLEAVING + (i + 1) * BESIDE_PAIR, tiles);
        if (!l->views)
            long_fetch_values(l, i, tiles);
    }
}

/* Scores of finished keys to rows of keys. */
RAPT_INLINE void long_transpose(const struct few_long *l, int tiles) {
    float *const y = l->next->a.t.y + l->both * FEW_RUN;
    RAPT_UNROLL for (int run = 0; run < tiles; run++) {
        const int done = l->step + l->steps - (run + 1) * l->key_steps;
        for (int i = 0; done >= 0 && done < l->steps && i < 2; i++)
            few_transpose(l->f->scores + (2 * run + i) * TILE_BYTES,
                          tiles > 1 ? y + run * FEW_RUN + i * TILE_HEIGHT * RAPT_HALF_KEYS : y + i * FEW_RUN,
                          l->keys_ahead, 0, 0);
    }
}

#define LONG_WEIGH(sum, values)                                                 \
    do {                                                                        \
        TILE_LOAD(6, panel + (values) * TILE_BYTES, TILE_ROW_BYTES);            \
        TILE_MULTIPLY(sum, 7, 6);                                               \
        long_fetch_keys(l, LONG_WEIGHING + (sum) * BESIDE_PRODUCT,              \
                        LONG_WEIGHING + ((sum) + 1) * BESIDE_PRODUCT, tiles);   \
    } while (0)

RAPT_INLINE void long_weigh(struct few_long *l, int turn, int tiles) {
    const char *const panel = l->f->panel;
    const char *const p = (const char *)l->f->a.t.y + turn % FEW_TURNS * TILE_ROW_BYTES;
    TILE_LOAD(7, p, RAPT_HALF_KEYS * sizeof(float));
    LONG_WEIGH(0, 0);
    LONG_WEIGH(1, 1);
    if (tiles > 1)
        TILE_LOAD(7, p + TILE_HEIGHT * RAPT_HALF_KEYS * sizeof(float), RAPT_HALF_KEYS * sizeof(float));
    LONG_WEIGH(2, tiles > 1 ? 0 : 2);
    LONG_WEIGH(3, tiles > 1 ? 1 : 3);
}

#undef LONG_WEIGH

/* ------------------------------------------------------------ a half */

RAPT_INLINE void few_long_turns(const struct few_half *f, const struct few_half *next, bool whole, int tiles) {
    const struct rapt_plan_body *plan = f->a.t.b->task->plan;
    const int dim = (int)plan->desc.value_dim, steps = long_part_steps(tiles), part_dims = steps * RAPT_STEP;
    struct few_long l = {.f = f,
                         .next = next,
                         .half = f->a.t.first / RAPT_HALF_KEYS,
                         .parts = (dim + part_dims - 1) / part_dims,
                         .key_steps = unit16_steps((int)plan->desc.head_dim),
                         .views = plan->values_in_keys >= 0};
    for (int part = 0; part < l.parts; part++) {
        few_zero_kept();
        for (int turn = part * FEW_TURNS; turn < (part + 1) * FEW_TURNS; turn++) {
            long_turn_to_keys(&l, turn, tiles);
            few_find_values(f, l.values, turn, l.parts, steps);
            few_find_values(f, l.values_ahead, turn + 1, l.parts, steps);
            long_score_all(&l, tiles);
            long_interleave(&l, dim - part * part_dims, whole, tiles);
            long_transpose(&l, tiles);
            long_weigh(&l, turn, tiles);
        }
        few_take_sums(f, part * part_dims, dim, steps, tiles);
    }
}

typedef void few_long_turner(const struct few_half *f, const struct few_half *next);
#define FEW_LONG_TURNER(tiles)                                                                                         \
    static RAPT_KERNEL void few_long_turns_##tiles##_whole(const struct few_half *f, const struct few_half *next) {    \
        few_long_turns(f, next, true, tiles);                                                                          \
    }                                                                                                                  \
    static RAPT_KERNEL void few_long_turns_##tiles##_rest(const struct few_half *f, const struct few_half *next) {     \
        few_long_turns(f, next, false, tiles);                                                                         \
    }
FEW_LONG_TURNER(1)
FEW_LONG_TURNER(2)
#undef FEW_LONG_TURNER

#endif
