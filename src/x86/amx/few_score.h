/* SPDX-License-Identifier: MIT
 * Order 2 of few rows on the matrix unit: products with keys. Stored keys, as they are, are the rows of the left side,
 * so scores come out with keys as rows and are transposed. */
#ifndef RAPT_X86_AMX_FEW_SCORE_H
#define RAPT_X86_AMX_FEW_SCORE_H

#include "x86/amx/block.h"
#include "x86/amx/few_rows.h"

enum {
    FEW_AT_ONCE = 4, /* rows prefetched beside the products of 16 keys, and */
    FEW_PART = 3,    /* beside each quarter of their transposition */
    FEW_FAR_RUNS = 4 /* of far rows at once */
};

/* A half block of a tile of one or two times 16 rows, and its scratch. */
struct few_half {
    struct unit16_half a; /* a.g: [tiles of dims][16 rows][16 dims], the dims of two tiles as few_update has them */
    int tiles, first_row; /* of 16 rows; and the first row of the current one */
    const char *queries;  /* [tiles of rows][steps of dims] */
    char *scores;         /* for each tile of rows two: [keys][rows] */
    char *panel;          /* 32 values, interleaved: [tiles of dims][16 pairs of keys][16 dims][2]; or far scores */
    char *copy;           /* of FEW_FAR_RUNS runs */
    const struct few_rows *rows;
    int keys, values;     /* the first runs of the half */
    bool in_turns;        /* keys of the next half are scored beside its values */
};

/* Tile `number` of the rows only. */
static struct few_half few_tile(const struct few_half *f, int number) {
    struct few_half tile = *f;
    tile.first_row = number * TILE_HEIGHT;
    tile.queries += number * unit16_steps((int)f->a.t.b->task->plan->desc.head_dim) * TILE_BYTES;
    tile.a.t.y += tile.first_row * RAPT_HALF_KEYS;
    return tile;
}

/* 32 dims of 16 keys times queries, which stay in registers. */
#define FEW_SCORE(sum, keys, query)                                                                     \
    if (step < steps) {                                                                                 \
        const struct few_run at = few_step(&run, &end, step, steps);                                    \
        TILE_LOAD(keys, at.base, at.stride);                                                            \
        TILE_MULTIPLY(sum, keys, query);                                                                \
        few_prefetch(ahead, (sum) * FEW_AT_ONCE + step, (sum) * FEW_AT_ONCE + step + 1, steps);         \
        step++;                                                                                         \
    }

/* Scores of 16 keys to a tile of [keys][rows]. */
#define FEW_SCORE_RUN(sum)                                                                              \
    do {                                                                                                \
        const struct few_run run = few_part(f->rows, number + (sum), f->copy, dim, 0, steps);           \
        const struct few_run end = few_last(&run, f->copy + steps * TILE_BYTES, dim, steps);            \
        TILE_ZERO(sum);                                                                                 \
        for (int step = 0; step < steps;) {                                                             \
            FEW_SCORE(sum, 2, 4)                                                                        \
            FEW_SCORE(sum, 3, 5)                                                                        \
            FEW_SCORE(sum, 2, 6)                                                                        \
            FEW_SCORE(sum, 3, 7)                                                                        \
        }                                                                                               \
    } while (0)

/* A tile of scores to rows of keys. ahead: prefetched from `row` on. */
RAPT_INLINE void few_transpose(const char *from, float *y, const struct few_run *ahead, int row, int steps) {
    enum { PARTS = 4 };
    __m512i r[TILE_HEIGHT];
    RAPT_UNROLL for (int i = 0; i < TILE_HEIGHT; i++)
        r[i] = _mm512_load_si512(from + i * TILE_ROW_BYTES);
    unit16_transpose(r);
    RAPT_UNROLL for (int i = 0; i < TILE_HEIGHT; i++) {
        _mm512_store_si512(y + i * RAPT_HALF_KEYS, r[i]);
        if (i % PARTS == PARTS - 1)
            few_prefetch(ahead, row + i / PARTS * FEW_PART, row + (i / PARTS + 1) * FEW_PART, steps);
    }
}

/* steps of 32 dims: a constant. */
RAPT_INLINE void few_score_near(const struct few_half *f, int dim, int steps) {
    const int first = f->a.first_step * RAPT_STEP, last = first + f->a.steps * RAPT_STEP;
    const char *const queries = f->queries;
    float *y = f->a.t.y;
    char *const scores = f->scores;
    TILE_LOAD(4, queries, TILE_ROW_BYTES);
    TILE_LOAD(5, queries + (steps > 1 ? 1 : 0) * TILE_BYTES, TILE_ROW_BYTES);
    TILE_LOAD(6, queries + (steps > 2 ? 2 : 0) * TILE_BYTES, TILE_ROW_BYTES);
    TILE_LOAD(7, queries + (steps > 3 ? 3 : 0) * TILE_BYTES, TILE_ROW_BYTES);
    for (int key = first; key < last; key += 2 * TILE_HEIGHT) {
        const int number = f->keys + key / FEW_RUN;
        const struct few_run *ahead = f->rows->run + number + FEW_KEYS_LEAD;
        FEW_SCORE_RUN(0);
        FEW_SCORE_RUN(1);
        TILE_STORE(0, scores, TILE_ROW_BYTES);
        few_transpose(scores, y + key, ahead, 2 * FEW_AT_ONCE, steps);
        TILE_STORE(1, scores + TILE_BYTES, TILE_ROW_BYTES);
        few_transpose(scores + TILE_BYTES, y + key + TILE_HEIGHT, ahead, 2 * FEW_AT_ONCE + 4 * FEW_PART, steps);
    }
}

#define FEW_SCORE_FAR(sum, keys)                                                             \
    do {                                                                                     \
        const struct few_run at = few_step(&run[sum], &end[sum], step, steps);               \
        TILE_LOAD_STREAMED(keys, at.base, at.stride);                                        \
        TILE_MULTIPLY(sum, keys, 6);                                                         \
        few_prefetch_later(ahead + (sum), 0, beside, step, step + 1);                        \
    } while (0)

/* Four chains of products share the loads of queries and hide each other's latency. Keys before the first step and
 * after the last one get scores, too, which nothing reads. */
static RAPT_KERNEL void few_score_far(const struct few_half *f, int dim) {
    const int steps = unit16_steps(dim), first = f->a.first_step * RAPT_STEP, last = first + f->a.steps * RAPT_STEP;
    const int beside = few_beside_keys(f->a.t.b->task);
    const char *const queries = f->queries;
    char *const scores = f->panel;
    for (int key = first / (FEW_FAR_RUNS * FEW_RUN) * FEW_FAR_RUNS * FEW_RUN; key < last;
         key += FEW_FAR_RUNS * FEW_RUN) {
        const int number = f->keys + key / FEW_RUN;
        const struct few_run *ahead = f->rows->run + number + FEW_HALF;
        struct few_run run[FEW_FAR_RUNS], end[FEW_FAR_RUNS];
        for (int i = 0; i < FEW_FAR_RUNS; i++) {
            char *const copy = f->copy + i * (steps + 1) * TILE_BYTES;
            run[i] = few_part(f->rows, number + i, copy, dim, 0, steps);
            end[i] = few_last(&run[i], copy + steps * TILE_BYTES, dim, steps);
        }
        TILE_ZERO(0);
        TILE_ZERO(1);
        TILE_ZERO(2);
        TILE_ZERO(3);
        for (int step = 0; step < steps; step++) {
            TILE_LOAD(6, queries + step * TILE_BYTES, TILE_ROW_BYTES);
            FEW_SCORE_FAR(0, 4);
            FEW_SCORE_FAR(1, 5);
            FEW_SCORE_FAR(2, 4);
            FEW_SCORE_FAR(3, 5);
        }
        TILE_STORE(0, scores, TILE_ROW_BYTES);
        TILE_STORE(1, scores + TILE_BYTES, TILE_ROW_BYTES);
        TILE_STORE(2, scores + 2 * TILE_BYTES, TILE_ROW_BYTES);
        TILE_STORE(3, scores + 3 * TILE_BYTES, TILE_ROW_BYTES);
        for (int i = 0; i < FEW_FAR_RUNS; i++)
            few_transpose(scores + i * TILE_BYTES, f->a.t.y + key + i * TILE_HEIGHT, ahead, 0, 0);
    }
}

/* One function for each size of near rows. */
#define FEW_STEPS(X) X(1) X(2) X(3) X(4)
typedef void few_scorer(const struct few_half *f, int dim);
#define FEW_SCORER(steps)                                                            \
    static RAPT_KERNEL void few_score_##steps(const struct few_half *f, int dim) {   \
        few_score_near(f, dim, steps);                                               \
    }
FEW_STEPS(FEW_SCORER)
#undef FEW_SCORER

static void few_score(const struct few_half *f) {
#define FEW_SCORER(steps) few_score_##steps,
    static few_scorer *const of_steps[] = {FEW_STEPS(FEW_SCORER)};
#undef FEW_SCORER
    const int dim = (int)f->a.t.b->task->plan->desc.head_dim;
    few_scorer *const score = few_is_far(f->a.t.b->task) ? few_score_far : of_steps[unit16_steps(dim) - 1];
    for (int number = 0; number < f->tiles; number++) {
        const struct few_half tile = few_tile(f, number);
        score(&tile, dim);
    }
}

#endif
