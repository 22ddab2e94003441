/* SPDX-License-Identifier: MIT
 * Order 2 of few rows on the matrix unit, if memory-bound: products with the next half's keys and with this half's
 * values, in turns. */
#ifndef RAPT_X86_AMX_FEW_TURNS_H
#define RAPT_X86_AMX_FEW_TURNS_H

#include "x86/amx/few_ahead.h"

/* ------------------------------------------------------------ one turn */

struct few_turn {
    struct few_run keys[2], end[2], values[2]; /* end: the last step of these keys */
    float *y; /* scores of the keys */
    struct few_ahead ahead;
};

/* half: of the values. */
RAPT_INLINE struct few_turn few_turn_of(const struct few_half *f, int turn, const struct few_half *next, int half,
                                        int dim, struct few_shape shape) {
    enum { BOTH = FEW_TURN / FEW_RUN };
    const struct few_run *run = f->rows->run;
    const bool dense = shape.dense;
    struct few_turn t = {.y = next->a.t.y + turn * FEW_TURN};
    RAPT_UNROLL for (int side = 0; side < RAPT_SIDES; side++) {
        const int from = half + (side == RAPT_KEYS), at = turn * BOTH;
        struct few_run *of = side == RAPT_KEYS ? t.keys : t.values;
        const char *first = run[few_number(from, side, at)].base;
        const int64_t stride = dense ? shape.steps * TILE_ROW_BYTES : run[few_number(from, side, at)].stride;
        t.ahead.stride[side] = stride;
        RAPT_UNROLL for (int i = 0; i < BOTH; i++)
            of[i] = (struct few_run){dense ? first + i * FEW_RUN * stride : run[few_number(from, side, at + i)].base,
                                     stride};
        RAPT_UNROLL for (int i = 0; i < FEW_TURN_RUNS; i++)
            t.ahead.base[side][i] = dense ? first + (BOTH + i) * FEW_RUN * stride
                                          : run[few_number(from, side, at + BOTH + i)].base;
    }
    RAPT_UNROLL for (int i = 0; i < BOTH; i++)
        t.end[i] = few_last(&t.keys[i], f->copy + i * TILE_BYTES, dim, shape.steps);
    return t;
}

/* Two chains of products, to tiles 4 and 5; of far rows one. */
#define FEW_TURN_SCORE(step)                                                                        \
    if (steps > (step)) {                                                                           \
        const struct few_run low = few_step(&t->keys[0], &t->end[0], step, steps);                  \
        TILE_LOAD(7, queries + (step) * TILE_BYTES, TILE_ROW_BYTES);                                \
        TILE_LOAD(6, low.base, low.stride);                                                         \
        TILE_MULTIPLY(4, 6, 7);                                                                     \
        few_fetch_part(&t->ahead, 0, BESIDE_SCORING, 2 * (step), 2 * steps, shape);                 \
        if (!few_is_far_shape(shape)) {                                                             \
            const struct few_run high = few_step(&t->keys[1], &t->end[1], step, steps);             \
            TILE_LOAD(6, high.base, high.stride);                                                   \
            TILE_MULTIPLY(5, 6, 7);                                                                 \
        }                                                                                           \
        few_fetch_part(&t->ahead, 0, BESIDE_SCORING, 2 * (step) + 1, 2 * steps, shape);             \
    }

RAPT_INLINE void few_turn_score(const struct few_half *f, const struct few_turn *t, struct few_shape shape) {
    const char *const queries = f->queries;
    const int steps = shape.key_steps;
    TILE_ZERO(4);
    TILE_ZERO(5);
    FEW_TURN_SCORE(0)
    FEW_TURN_SCORE(1)
    FEW_TURN_SCORE(2)
    FEW_TURN_SCORE(3)
    FEW_TURN_SCORE(4)
    FEW_TURN_SCORE(5)
    FEW_TURN_SCORE(6)
    FEW_TURN_SCORE(7)
    TILE_STORE(4, f->scores, TILE_ROW_BYTES);
    if (!few_is_far_shape(shape))
        TILE_STORE(5, f->scores + TILE_BYTES, TILE_ROW_BYTES);
}

/* Values to the panel. */
RAPT_INLINE void few_turn_interleave(const struct few_half *f, const struct few_turn *t, int dim,
                                     struct few_shape shape) {
    enum { PAIRS = FEW_RUN / 2 };
    const int steps = shape.steps;
    const __mmask32 last = few_last_dims(dim, steps);
    RAPT_UNROLL for (int i = 0; i < FEW_RUN; i++) {
        const struct few_run *run = &t->values[i / PAIRS];
        const char *even = run->base + i % PAIRS * 2 * run->stride;
        RAPT_UNROLL for (int step = 0; step < steps; step++) {
            few_interleave_pair(f->panel + i * TILE_ROW_BYTES + 2 * step * TILE_BYTES, even + step * TILE_ROW_BYTES,
                                even + run->stride + step * TILE_ROW_BYTES, step < steps - 1 ? FEW_ALL_DIMS : last);
            few_fetch_part(&t->ahead, BESIDE_SCORING, BESIDE_INTERLEAVING, i * steps + step, FEW_RUN * steps, shape);
        }
    }
}

/* Tile `number` of scores to rows of keys. */
RAPT_INLINE void few_turn_transpose(const struct few_half *f, const struct few_turn *t, int number,
                                    struct few_shape shape) {
    const int rows = f->a.t.b->rows, parts = few_is_far_shape(shape) ? TILE_HEIGHT : 2 * TILE_HEIGHT;
    __m512i r[TILE_HEIGHT];
    RAPT_UNROLL for (int i = 0; i < TILE_HEIGHT; i++)
        r[i] = _mm512_load_si512(f->scores + number * TILE_BYTES + i * TILE_ROW_BYTES);
    unit16_transpose(r);
    RAPT_UNROLL for (int i = 0; i < TILE_HEIGHT; i++) {
        if (i < rows)
            _mm512_store_si512(t->y + number * TILE_HEIGHT + i * RAPT_HALF_KEYS, r[i]);
        few_fetch_part(&t->ahead, BESIDE_SCORING + BESIDE_INTERLEAVING, BESIDE_TRANSPOSING, number * TILE_HEIGHT + i,
                       parts, shape);
    }
}

/* Products that take turns: those whose sums stay in tiles 0 ... 3, and others, whose sums are loaded and stored. */
#define FEW_TURN_FETCH(i)                                                                           \
    few_fetch_part(&t->ahead, FEW_TURN - BESIDE_WEIGHING, BESIDE_WEIGHING, i, 2 * steps, shape)
#define FEW_TURN_KEPT(sum)                                                                          \
    if (2 * steps > (sum)) {                                                                        \
        TILE_LOAD(5, panel + (sum) * TILE_BYTES, TILE_ROW_BYTES);                                   \
        TILE_MULTIPLY(sum, 4, 5);                                                                   \
        FEW_TURN_FETCH((sum) + ((sum) < 2 * steps - 4 ? (sum) : steps > 2 ? 2 * steps - 4 : 0));    \
    }
#define FEW_TURN_STORED(sum)                                                                        \
    if (2 * steps > (sum)) {                                                                        \
        if (turn > 0)                                                                               \
            TILE_LOAD(6, g + (sum) * TILE_BYTES, TILE_ROW_BYTES);                                   \
        else                                                                                        \
            TILE_ZERO(6);                                                                           \
        TILE_LOAD(7, panel + (sum) * TILE_BYTES, TILE_ROW_BYTES);                                   \
        TILE_MULTIPLY(6, 4, 7);                                                                     \
        TILE_STORE(6, g + (sum) * TILE_BYTES, TILE_ROW_BYTES);                                      \
        FEW_TURN_FETCH(2 * (sum) - 7);                                                              \
    }

RAPT_INLINE void few_turn_weigh(const struct few_half *f, const struct few_turn *t, int turn, struct few_shape shape) {
    const int steps = shape.steps;
    char *const panel = f->panel, *const g = (char *)f->a.g;
    TILE_LOAD(4, (const char *)f->a.t.y + turn * TILE_ROW_BYTES, RAPT_HALF_KEYS * sizeof(float));
    FEW_TURN_KEPT(0)
    FEW_TURN_STORED(4)
    FEW_TURN_KEPT(1)
    FEW_TURN_STORED(5)
    FEW_TURN_KEPT(2)
    FEW_TURN_STORED(6)
    FEW_TURN_KEPT(3)
    FEW_TURN_STORED(7)
}

#undef FEW_TURN_SCORE
#undef FEW_TURN_FETCH
#undef FEW_TURN_KEPT
#undef FEW_TURN_STORED

/* ------------------------------------------------------------ a half */

/* The values of a turn, which counts through all `parts` of `steps` steps of dims. After the last turn comes the first
 * one of the next half. */
RAPT_INLINE void few_find_values(const struct few_half *f, struct few_run *values, int turn, int parts, int steps) {
    enum { BOTH = FEW_TURN / FEW_RUN };
    const int half = f->a.t.first / RAPT_HALF_KEYS, over = turn == parts * FEW_TURNS;
    const int part = over ? 0 : turn / FEW_TURNS, at = over ? FEW_TURNS : turn % FEW_TURNS;
    RAPT_UNROLL for (int i = 0; i < BOTH; i++) {
        values[i] = f->rows->run[few_number(half, RAPT_VALUES, BOTH * at + i)];
        values[i].base += part * steps * TILE_ROW_BYTES;
    }
}

/* Vector work separates stores of tiles, or to the panel, from loads of the same: these would wait for all requests
 * before them. */
RAPT_INLINE void few_one_turn(const struct few_half *f, const struct few_turn *t, int turn, int dim,
                              struct few_shape shape) {
    few_turn_score(f, t, shape);
    few_turn_interleave(f, t, dim, shape);
    few_turn_transpose(f, t, 0, shape);
    if (!few_is_far_shape(shape))
        few_turn_transpose(f, t, 1, shape);
    few_turn_weigh(f, t, turn, shape);
}

RAPT_INLINE void few_zero_kept(void) {
    TILE_ZERO(0);
    TILE_ZERO(1);
    TILE_ZERO(2);
    TILE_ZERO(3);
}

/* Sums of dims from `at` on, to o; those of a second tile of rows lie after those of the first. */
RAPT_INLINE void few_take_sums(const struct few_half *f, int at, int dim, int part_steps, int tiles) {
    const int part = part_steps * RAPT_STEP, count = dim - at < part ? dim - at : part, steps = part_steps * tiles;
    char *const g = (char *)f->a.g;
    struct few_half tile = *f;
    FEW_STORE(0);
    FEW_STORE(1);
    FEW_STORE(2);
    FEW_STORE(3);
    RAPT_UNROLL for (int number = 0; number < tiles; number++) {
        few_update(&tile, at, count, 0, few_rows_of_tile(&tile));
        tile.first_row += TILE_HEIGHT;
        tile.a.g += 2 * part_steps * TILE_HEIGHT * TILE_FLOATS;
    }
}

RAPT_INLINE void few_all_turns(const struct few_half *f, const struct few_half *next, int dim, int steps, bool dense) {
    const struct few_shape shape = {steps, steps, dense};
    const int half = f->a.t.first / RAPT_HALF_KEYS;
    few_zero_kept();
    for (int turn = 0; turn < FEW_TURNS; turn++) {
        const struct few_turn t = few_turn_of(f, turn, next, half, dim, shape);
        few_one_turn(f, &t, turn, dim, shape);
    }
    few_take_sums(f, 0, dim, steps, 1);
}

/* Whether all rows are dense as in few_turn_of, prefetched ones included. */
static bool few_are_dense(const struct few_rows *rows, int half, int64_t row_bytes) {
    for (int side = 0; side < RAPT_SIDES; side++) {
        const int from = half + (side == RAPT_KEYS);
        const struct few_run *first = &rows->run[few_number(from, side, 0)];
        const char *base = first->base;
        for (int i = 0; i < RAPT_HALF_KEYS / FEW_RUN + FEW_TURN_RUNS; i++, base += FEW_RUN * row_bytes)
            if (rows->run[few_number(from, side, i)].base != base || first->stride != row_bytes)
                return false;
    }
    return true;
}

#endif
