/* SPDX-License-Identifier: MIT
 * Order 2 of few rows on the matrix unit, where memory feeds it: products with the next half's keys in turns with those
 * with this half's values. */
#ifndef RAPT_X86_AMX_FEW_TURNS_H
#define RAPT_X86_AMX_FEW_TURNS_H

#include "x86/amx/few_weigh.h"

enum {
    FEW_TURN = 2 * FEW_RUN, /* keys, and as many values */
    FEW_TURNS = RAPT_HALF_KEYS / FEW_TURN,
    FEW_TURN_BYTES = 2 << 10, /* from a line that goes into L1 to the one that goes into L2 */
    /* Memory is busy all the time only where requests come evenly. Rows of the next turn that are prefetched beside
     * each part of this one: */
    BESIDE_SCORING = 8,
    BESIDE_INTERLEAVING = 12,
    BESIDE_TRANSPOSING = 4,
    BESIDE_WEIGHING = 8
};

_Static_assert(BESIDE_SCORING + BESIDE_INTERLEAVING + BESIDE_TRANSPOSING + BESIDE_WEIGHING == FEW_TURN, "all rows");

/* ------------------------------------------------------------ what comes next */

/* Rows of the next turn's keys and values. */
struct few_ahead {
    const char *row[RAPT_SIDES];
    int64_t stride[RAPT_SIDES], l2[RAPT_SIDES];
};

RAPT_INLINE struct few_ahead few_ahead_of(const struct few_run *keys, const struct few_run *values, int steps) {
    const int far = FEW_TURN_BYTES / (steps * TILE_ROW_BYTES);
    const struct reach of_keys = reach_of(FEW_TURN * keys->stride, far * keys->stride);
    const struct reach of_values = reach_of(FEW_TURN * values->stride, far * values->stride);
    return (struct few_ahead){{keys->base + of_keys.l1, values->base + of_values.l1},
                              {keys->stride, values->stride},
                              {of_keys.l2, of_values.l2}};
}

/* Lines [line, end) of both, counted from a row on. */
RAPT_INLINE void few_fetch(const struct few_ahead *ahead, int row, int line, int end, int steps) {
    RAPT_UNROLL for (int i = line; i < end; i++)
        RAPT_UNROLL for (int side = 0; side < RAPT_SIDES; side++)
            fetch_both(ahead->row[side] + (row + i / steps) * ahead->stride[side] + i % steps * 64, ahead->l2[side]);
}

/* Part i of so many, of `rows` rows from one on. */
RAPT_INLINE void few_fetch_part(const struct few_ahead *ahead, int row, int rows, int i, int parts, int steps) {
    few_fetch(ahead, row, rows * steps * i / parts, rows * steps * (i + 1) / parts, steps);
}

/* ------------------------------------------------------------ one turn */

struct few_turn {
    struct few_run keys[2], values;
    float *y; /* scores of the keys */
    struct few_ahead ahead;
};

/* dense: rows of this and of the next half follow one another without a gap, which saves reckoning. */
RAPT_INLINE struct few_turn few_turn_of(const struct few_task *f, int turn, const struct few_task *next, int steps,
                                        bool dense) {
    const struct few_run *keys = f->rows->run + next->keys + 2 * turn, *values = f->rows->run + f->values + 2 * turn;
    struct few_turn t = {.keys = {keys[0], keys[1]}, .values = values[0], .y = next->a.t.y + turn * FEW_TURN};
    if (dense)
        t.keys[0].stride = t.keys[1].stride = t.values.stride = steps * TILE_ROW_BYTES;
    t.ahead = few_ahead_of(&t.keys[0], &t.values, steps);
    return t;
}

/* Two chains of products, to tiles 4 and 5. */
#define FEW_TURN_SCORE(step)                                                                        \
    if (steps > (step)) {                                                                           \
        TILE_LOAD(7, queries + (step) * TILE_BYTES, TILE_ROW_BYTES);                                \
        TILE_LOAD(6, t->keys[0].base + (step) * TILE_ROW_BYTES, t->keys[0].stride);                 \
        TILE_MULTIPLY_BF16(4, 6, 7);                                                                \
        few_fetch_part(&t->ahead, 0, BESIDE_SCORING, 2 * (step), 2 * steps, steps);                 \
        TILE_LOAD(6, t->keys[1].base + (step) * TILE_ROW_BYTES, t->keys[1].stride);                 \
        TILE_MULTIPLY_BF16(5, 6, 7);                                                                \
        few_fetch_part(&t->ahead, 0, BESIDE_SCORING, 2 * (step) + 1, 2 * steps, steps);             \
    }

RAPT_INLINE void few_turn_score(const struct few_task *f, const struct few_turn *t, int steps) {
    const char *const queries = few_queries(f->a.t.b->panel);
    TILE_ZERO(4);
    TILE_ZERO(5);
    FEW_TURN_SCORE(0)
    FEW_TURN_SCORE(1)
    FEW_TURN_SCORE(2)
    FEW_TURN_SCORE(3)
    TILE_STORE(4, f->scores, TILE_ROW_BYTES);
    TILE_STORE(5, f->scores + TILE_BYTES, TILE_ROW_BYTES);
}

/* Values to the panel. */
RAPT_INLINE void few_turn_interleave(const struct few_task *f, const struct few_turn *t, int steps) {
    enum { PARTS = 4, PAIRS = FEW_RUN / PARTS, ROWS = BESIDE_INTERLEAVING / PARTS };
    for (int part = 0; part < PARTS; part++)
        RAPT_UNROLL for (int i = 0; i < PAIRS * steps; i++) {
            const int pair = part * PAIRS + i / steps, step = i % steps;
            const char *even = t->values.base + 2 * pair * t->values.stride + step * TILE_ROW_BYTES;
            few_interleave_pair(f->panel + pair * TILE_ROW_BYTES + 2 * step * TILE_BYTES, _mm512_loadu_si512(even),
                                _mm512_loadu_si512(even + t->values.stride));
            few_fetch_part(&t->ahead, BESIDE_SCORING + part * ROWS, ROWS, i, PAIRS * steps, steps);
        }
}

/* Tile `number` of scores to rows of keys. */
RAPT_INLINE void few_turn_transpose(const struct few_task *f, const struct few_turn *t, int number, int steps) {
    const int rows = f->a.t.b->rows;
    __m512i r[TILE_HEIGHT];
    RAPT_UNROLL for (int i = 0; i < TILE_HEIGHT; i++)
        r[i] = _mm512_load_si512(f->scores + number * TILE_BYTES + i * TILE_ROW_BYTES);
    unit16_transpose(r);
    RAPT_UNROLL for (int i = 0; i < TILE_HEIGHT; i++) {
        if (i < rows)
            _mm512_store_si512(t->y + number * TILE_HEIGHT + i * RAPT_HALF_KEYS, r[i]);
        few_fetch_part(&t->ahead, BESIDE_SCORING + BESIDE_INTERLEAVING, BESIDE_TRANSPOSING, number * TILE_HEIGHT + i,
                       2 * TILE_HEIGHT, steps);
    }
}

/* Products that take turns: those whose sums stay in tiles 0 ... 3, and others, whose sums are loaded and stored. */
#define FEW_TURN_FETCH(i)                                                                           \
    few_fetch_part(&t->ahead, FEW_TURN - BESIDE_WEIGHING, BESIDE_WEIGHING, i, 2 * steps, steps)
#define FEW_TURN_KEPT(sum)                                                                          \
    if (2 * steps > (sum)) {                                                                        \
        TILE_LOAD(5, panel + (sum) * TILE_BYTES, TILE_ROW_BYTES);                                   \
        TILE_MULTIPLY_BF16(sum, 4, 5);                                                              \
        FEW_TURN_FETCH((sum) + ((sum) < 2 * steps - 4 ? (sum) : steps > 2 ? 2 * steps - 4 : 0));    \
    }
#define FEW_TURN_STORED(sum)                                                                        \
    if (2 * steps > (sum)) {                                                                        \
        if (turn > 0)                                                                               \
            TILE_LOAD(6, g + (sum) * TILE_BYTES, TILE_ROW_BYTES);                                   \
        else                                                                                        \
            TILE_ZERO(6);                                                                           \
        TILE_LOAD(7, panel + (sum) * TILE_BYTES, TILE_ROW_BYTES);                                   \
        TILE_MULTIPLY_BF16(6, 4, 7);                                                                \
        TILE_STORE(6, g + (sum) * TILE_BYTES, TILE_ROW_BYTES);                                      \
        FEW_TURN_FETCH(2 * (sum) - 7);                                                              \
    }

RAPT_INLINE void few_turn_weigh(const struct few_task *f, const struct few_turn *t, int turn, int steps) {
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

/* Vector work lies between stores of tiles, or to the panel, and what loads the same: that would wait for the end of
 * all requests before them. */
RAPT_INLINE void few_all_turns(const struct few_task *f, const struct few_task *next, int dim, bool dense) {
    const int steps = unit16_steps(dim);
    char *const g = (char *)f->a.g;
    TILE_ZERO(0);
    TILE_ZERO(1);
    TILE_ZERO(2);
    TILE_ZERO(3);
    for (int turn = 0; turn < FEW_TURNS; turn++) {
        const struct few_turn t = few_turn_of(f, turn, next, steps, dense);
        few_turn_score(f, &t, steps);
        few_turn_interleave(f, &t, steps);
        few_turn_transpose(f, &t, 0, steps);
        few_turn_transpose(f, &t, 1, steps);
        few_turn_weigh(f, &t, turn, steps);
    }
    FEW_STORE(0);
    FEW_STORE(1);
    FEW_STORE(2);
    FEW_STORE(3);
    few_update(f, 0, dim, 0, f->a.t.b->rows);
}

/* p times values of a whole half, to o, and the scores of the next one, whole as well. ASSUME both have rows of whole
 * lines, as many dims, each at one stride. */
static RAPT_KERNEL void few_weigh_in_turns(const struct few_task *f, const struct few_task *next) {
    const int dim = (int)f->a.t.b->task->attention->desc.value_dim;
    const int64_t row_bytes = dim * (int64_t)sizeof(uint16_t);
    const bool dense = f->rows->run[next->keys].stride == row_bytes && f->rows->run[f->values].stride == row_bytes;
    if (dim == 128 && dense)
        few_all_turns(f, next, 128, true);
    else if (dim == 128)
        few_all_turns(f, next, 128, false);
    else if (dim == 64)
        few_all_turns(f, next, 64, false);
    else
        few_all_turns(f, next, dim, false);
}

#endif
