/* SPDX-License-Identifier: MIT
 * Order 2 of few rows on the matrix unit: keys and values are read in place. */
#ifndef RAPT_X86_AMX_FEW_H
#define RAPT_X86_AMX_FEW_H

#include "x86/amx/few_turns_by_dims.h"

/* Scores of two halves, maxima, offsets; four tiles of scores; a panel, sums, and room for copies. */
static size_t scores_bytes_few(int rows, int dim) {
    const int tiles = 4 + 4 * FEW_NEAR_STEPS + FEW_FAR_RUNS * (unit16_steps(dim) + 1);
    (void)rows;
    return AMX_TILE * (2 * RAPT_HALF_KEYS + 16 + 1) * sizeof(float) + (size_t)tiles * TILE_BYTES;
}

static void few_lay_out(struct few_half *f, const struct rapt_block *b) {
    float *scores = b->task->scores;
    struct unit16_softmax_args *half = &f->a.softmax;
    f->tiles = (b->rows + TILE_HEIGHT - 1) / TILE_HEIGHT;
    f->queries = amx_queries(b->panel);
    half->largest = scores + 2 * f->tiles * TILE_HEIGHT * RAPT_HALF_KEYS;
    half->offset = half->largest + f->tiles * TILE_HEIGHT * 16;
    f->scores = (char *)(half->offset + AMX_TILE);
    f->panel = f->scores + 2 * f->tiles * TILE_BYTES;
    f->a.g = (float *)(void *)(f->panel + 2 * FEW_NEAR_STEPS * TILE_BYTES);
    f->copy = f->panel + 4 * FEW_NEAR_STEPS * TILE_BYTES;
    half->lanes = b->panel;
    half->m = b->state.m;
    half->alpha = b->task->alpha;
    half->rows = b->rows;
}

/* ------------------------------------------------------------ queries */

/* For each 16 rows and 32 dims a tile, whose row i has dims 2i and 2i + 1. */
static void pack_queries_few(float *panel, const char *const *query_rows, int rows, int head_dim) {
    char *into = amx_queries(panel);
    for (int first = 0; first < rows; first += TILE_HEIGHT)
        for (int step = 0; step < unit16_steps(head_dim); step++, into += TILE_BYTES) {
            const __mmask32 there = unit16_first(head_dim - step * RAPT_STEP);
            __m512i r[TILE_HEIGHT];
            RAPT_UNROLL for (int i = 0; i < TILE_HEIGHT; i++)
                r[i] = _mm512_maskz_loadu_epi16(first + i < rows ? there : 0,
                                                query_rows[first + i < rows ? first + i : 0] + step * TILE_ROW_BYTES);
            unit16_transpose(r);
            RAPT_UNROLL for (int i = 0; i < TILE_HEIGHT; i++)
                _mm512_storeu_si512(into + i * TILE_ROW_BYTES, r[i]);
        }
}

/* ------------------------------------------------------------ all of it */

/* Turns to a half of the block, if some of its keys are named. */
static bool few_select_half(struct few_half *f, int half) {
    if (!unit_select_half(&f->a.t, half * RAPT_HALF_KEYS))
        return false;
    f->a.first_step = f->a.t.begin / RAPT_STEP;
    f->a.steps = unit16_steps(f->a.t.end) - f->a.first_step;
    f->a.t.y = f->a.softmax.y = f->a.t.b->task->scores + half * f->tiles * TILE_HEIGHT * RAPT_HALF_KEYS;
    f->keys = few_number(half, RAPT_KEYS, 0);
    f->values = few_number(half, RAPT_VALUES, 0);
    return true;
}

/* Whether values of one half and keys of the other one are whole runs at one stride. */
static bool few_are_regular(const struct few_half *f, const struct few_half *next) {
    const uint64_t half = (1u << FEW_HALF / 2) - 1, runs = half << f->values | half << next->keys;
    return f->a.t.begin == 0 && f->a.t.end == RAPT_HALF_KEYS && next->a.t.begin == 0 &&
           next->a.t.end == RAPT_HALF_KEYS && !(f->rows->scattered & runs);
}

/* The half whose keys are scored beside this one's values: the block's other one, or the first one of the block
 * `after`. */
static bool few_next_half(struct few_half *next, const struct few_half *f, const struct rapt_block *after) {
    if (f->a.t.first == 0)
        return few_select_half(next, 1);
    next->a.t.b = after;
    if (!f->a.t.b->next.scores || !few_select_half(next, 0))
        return false;
    next->keys += FEW_RUNS;
    return true;
}

/* Scores to probabilities. */
static void few_probabilities(struct few_half *f) {
    const struct rapt_block *b = f->a.t.b;
    struct unit16_softmax_args *half = &f->a.softmax;
    const unsigned acts = b->mask->parts & ~(unsigned)(RAPT_PART_KEEP | RAPT_PART_SPANS);
    const bool unscaled = rapt_enters_unscaled(b->task->plan), own = !few_is_far(b->task) && !f->in_turns;
    const int near_lines = own ? unit16_steps((int)b->task->plan->desc.value_dim) : 0;
    unit_spans(&f->a.t);
    half->factor = unscaled ? b->task->plan->score_factor : 1;
    half->first = f->a.first_step;
    half->last = f->a.first_step + f->a.steps;
    half->fresh = f->a.t.fresh;
    run_errands(b->of_weigh, UNIT_LINES);
    if (!unscaled || acts || !unit16_sees_all(&f->a)) {
        unit_logits(&f->a.t);
        unit16_exclude_outside(&f->a);
    }
    for (int step = half->first; step < half->last; step++) {
        unit16_maxima(half, step, 0, b->rows);
        few_prefetch(f->rows->run + f->values + 2, 4 * step, 4 * step + 4, near_lines);
    }
    unit16_new_maxima(half);
    unit16_exponentials(half);
    if (b->mask->parts & RAPT_PART_KEEP)
        unit16_drop(&f->a);
}

static RAPT_KERNEL void block_few(const struct rapt_block *b) {
    const struct rapt_block after = unit_next_block(b);
    struct few_rows rows;
    struct few_half f = {.a.t = {.b = b, .fresh = b->fresh}, .rows = &rows}, next;
    bool is_scored = b->is_scored;
    RAPT_ASSUME(!b->mask->selected && b->key_begin < b->key_end && b->rows <= AMX_TILE);
    RAPT_ASSUME(!is_scored || b->key_begin < RAPT_HALF_KEYS); /* scores are those of the first half */
    few_lay_out(&f, b);
    f.in_turns = is_scored || b->next.scores;
    few_find(&rows, b, f.in_turns);
    next = f;
    for (int half = 0; half < 2; half++) {
        if (!few_select_half(&f, half))
            continue;
        if (!is_scored)
            few_score(&f);
        few_probabilities(&f);
        is_scored = f.in_turns && few_next_half(&next, &f, &after);
        if (is_scored && few_are_regular(&f, &next)) {
            few_weigh_in_turns(&f, &next);
        } else {
            few_weigh(&f);
            if (is_scored)
                few_score(&next);
        }
        f.a.t.fresh = false;
    }
}

#endif
