/* SPDX-License-Identifier: MIT
 * Order 2 of few rows on the matrix unit: keys and values are read where they lie. */
#ifndef RAPT_X86_AMX_FEW_H
#define RAPT_X86_AMX_FEW_H

#include "x86/amx/few_weigh.h"

static size_t panel_bytes_few(int rows, int head_dim) {
    (void)rows;
    return TILE_HEIGHT * RAPT_SUM_LANES * sizeof(float) + (size_t)unit16_steps(head_dim) * TILE_BYTES;
}

/* Scores, maxima, offsets; two tiles of scores; a panel, sums, and room for copies. */
static size_t scores_bytes_few(int rows, int dim) {
    const int tiles = 2 + 4 * FEW_DIMS + FEW_FAR_RUNS * unit16_steps(dim);
    (void)rows;
    return TILE_HEIGHT * (RAPT_HALF_KEYS + 16 + 16) * sizeof(float) + (size_t)tiles * TILE_BYTES;
}

static void few_lay_out(struct few_task *f, const struct rapt_block *b) {
    float *scores = b->task->scores;
    struct unit16_half *half = &f->a.half;
    f->a.t.y = half->y = scores;
    half->largest = scores + TILE_HEIGHT * RAPT_HALF_KEYS;
    half->offset = half->largest + TILE_HEIGHT * 16;
    f->scores = (char *)(half->offset + TILE_HEIGHT * 16);
    f->panel = f->scores + 2 * TILE_BYTES;
    f->a.g = (float *)(void *)(f->panel + 2 * FEW_DIMS * TILE_BYTES);
    f->copy = f->panel + 4 * FEW_DIMS * TILE_BYTES;
    half->lanes = b->panel;
    half->m = b->state.m;
    half->alpha = b->task->alpha;
    half->rows = b->rows;
}

/* ------------------------------------------------------------ queries */

/* Row i of a tile: dims 2i and 2i + 1 of 16 rows. */
static void pack_queries_few(float *panel, const char *const *query_rows, int rows, int head_dim) {
    for (int step = 0; step < unit16_steps(head_dim); step++) {
        const __mmask32 there = unit16_first(head_dim - step * RAPT_STEP);
        char *into = few_queries(panel) + step * TILE_BYTES;
        __m512i r[TILE_HEIGHT];
        RAPT_UNROLL for (int i = 0; i < TILE_HEIGHT; i++)
            r[i] = _mm512_maskz_loadu_epi16(i < rows ? there : 0,
                                            query_rows[i < rows ? i : 0] + step * TILE_ROW_BYTES);
        unit16_transpose(r);
        RAPT_UNROLL for (int i = 0; i < TILE_HEIGHT; i++)
            _mm512_storeu_si512(into + i * TILE_ROW_BYTES, r[i]);
    }
}

/* ------------------------------------------------------------ all of it */

static void few_half_block(struct few_task *f) {
    const struct rapt_block *b = f->a.t.b;
    struct unit16_half *half = &f->a.half;
    const unsigned acts = b->mask->parts & ~(unsigned)(RAPT_PART_KEEP | RAPT_PART_SPANS);
    const bool unscaled = rapt_enters_unscaled(b->task->attention);
    const int near_lines = few_is_far(b->task) ? 0 : unit16_steps((int)b->task->attention->desc.value_dim);
    unit_spans(&f->a.t);
    half->factor = unscaled ? b->task->attention->score_factor : 1;
    half->first = f->a.first;
    half->last = f->a.first + f->a.steps;
    half->fresh = f->a.t.fresh;
    few_score(f);
    run_errands(b->of_weigh, UNIT_LINES);
    if (!unscaled || acts || !unit16_sees_all(&f->a)) {
        unit_logits(&f->a.t);
        unit16_exclude_outside(&f->a);
    }
    for (int step = half->first; step < half->last; step++) {
        unit16_maxima(half, step, 0, b->rows);
        few_prefetch(f->rows->run + f->values + 2, 4 * step, 4 * step + 4, near_lines);
    }
    unit16_new_maxima(half, 0);
    unit16_exponentials(half, 0);
    if (b->mask->parts & RAPT_PART_KEEP)
        unit16_drop(&f->a);
    few_weigh(f);
}

static RAPT_KERNEL void block_few_bf16(const struct rapt_block *b) {
    struct few_rows rows;
    struct few_task f = {.a.t = {.b = b, .fresh = b->fresh}, .rows = &rows};
    RAPT_ASSUME(!b->mask->selected && b->key_begin < b->key_end && b->rows <= TILE_HEIGHT);
    few_lay_out(&f, b);
    few_find(&rows, b);
    for (int half = 0; half < 2; half++) {
        if (!unit_turn_to(&f.a.t, half * RAPT_HALF_KEYS))
            continue;
        f.a.first = f.a.t.begin / RAPT_STEP;
        f.a.steps = unit16_steps(f.a.t.end) - f.a.first;
        f.keys = few_turn(half, RAPT_KEYS);
        f.values = few_turn(half, RAPT_VALUES);
        few_half_block(&f);
        f.a.t.fresh = false;
    }
}

#endif
