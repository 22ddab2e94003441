/* SPDX-License-Identifier: MIT
 * Orders 2 and 3: half a block of a tile, from scores to probabilities, whatever multiplies. */
#ifndef RAPT_GENERIC_UNIT_HALF_H
#define RAPT_GENERIC_UNIT_HALF_H

#include "attend/block.h"
#include "generic/prefetched.h"
#include "generic/unit_softmax.h"

enum { UNIT_LINES = 24 /* lines prefetched beside a panel of keys or values */ };

/* Half a block: keys [begin, end) of it, all of which are at base + first or after. */
struct unit_half {
    const struct rapt_block *b;
    int first;          /* key 0 of the half, as the mask counts */
    int begin, end;     /* as the half counts, like all below */
    bool fresh;
    float *y, *sums;    /* [rows][RAPT_HALF_KEYS], [rows][sum_stride] */
    int64_t y_part;     /* order 3: stride of the parts of probabilities; otherwise 0 */
    bool is_normal;     /* RAPT_FOUND_NORMAL of these */
    int sum_stride;
    uint8_t row_begin[RAPT_MAX_TILE_ROWS], row_end[RAPT_MAX_TILE_ROWS];
};

static int unit_format(const struct rapt_task *task) { return task->plan->format[RAPT_KEYS]; }
static bool unit_is_split(const struct rapt_block *b) { return unit_format(b->task) == RAPT_FORMAT_F32; }

/* The next block, with what its scores use. */
RAPT_INLINE struct rapt_block unit_next_block(const struct rapt_block *b) {
    struct rapt_block next = *b;
    next.base = b->next.base;
    next.key_begin = b->next.key_begin;
    next.key_end = b->next.key_end;
    next.scores = b->next.scores;
    return next;
}

/* Whether there are keys of the half whose key 0 is `first`. */
static bool unit_select_half(struct unit_half *t, int first) {
    const struct rapt_block *b = t->b;
    t->first = first;
    t->begin = b->key_begin > first ? b->key_begin - first : 0;
    t->end = b->key_end - first < RAPT_HALF_KEYS ? b->key_end - first : RAPT_HALF_KEYS;
    return t->begin < t->end;
}

/* Sets t to -infinity for keys that a row does not attend to. */
static void unit_exclude(float *y, const uint8_t *attends, int begin, int end, float factor) {
    const vf32 out = v_splat(factor < 0 ? RAPT_INFINITY : -RAPT_INFINITY);
    int key = begin;
    for (; end - key >= VL; key += VL)
        v_store(y + key, v_select(v_load_bool(attends + key, VL), v_load(y + key), out));
    if (key < end) {
        const int n = end - key;
        v_store_n(y + key, v_select(v_load_bool(attends + key, n), v_load_n(y + key, n), out), n);
    }
}

static void unit_scale(float *y, int begin, int end, float factor) {
    for (int key = begin / VL * VL; key < end; key += VL)
        v_store(y + key, v_mul(v_load(y + key), v_splat(factor)));
}

/* Where the scores of a narrow tile, whose rows have room for a block's keys, would begin for its row of this number to
 * be this one. */
static float *unit_as_narrow(const struct unit_half *t, int row) {
    const int64_t before = (int64_t)row * (RAPT_BLOCK_KEYS - RAPT_HALF_KEYS) + t->first;
    return (float *)((uintptr_t)t->y - (uintptr_t)before * sizeof(float));
}

/* Scores to y; returns the remaining factor. */
static float unit_logits(const struct unit_half *t) {
    const struct rapt_block *b = t->b;
    const struct rapt_plan_body *plan = b->task->plan;
    const unsigned acts = b->mask->parts & ~(unsigned)(RAPT_PART_KEEP | RAPT_PART_SPANS);
    const bool plain = rapt_enters_unscaled(plan);
    for (int row = 0; row < b->rows && (acts || !plain); row++) {
        float *y = t->y + row * RAPT_HALF_KEYS;
        if (!plain) {
            unit_scale(y, t->begin, t->end, plan->score_factor);
            b->task->table->kinds[RAPT_NARROW].logits(unit_as_narrow(t, row), row, row + 1, t->first + t->begin,
                                                      t->first + t->end, b->mask);
            continue;
        }
        if (acts & RAPT_PART_MASK)
            unit_exclude(y, b->mask->mask[row] + t->first, t->begin, t->end, plan->score_factor);
        if (acts & RAPT_PART_SELECT)
            unit_exclude(y, b->mask->select[row] + t->first, t->begin, t->end, plan->score_factor);
    }
    return plain ? plan->score_factor : 1;
}

static uint8_t unit_within(int key, int begin, int end) {
    return (uint8_t)(key < begin ? begin : key > end ? end : key);
}

static void unit_spans(struct unit_half *t) {
    const struct rapt_visible_spans *spans = rapt_spans_of(t->b->mask);
    for (int row = 0; row < t->b->rows; row++) {
        t->row_begin[row] = spans ? unit_within(spans->first_key[row] - t->first, t->begin, t->end) : (uint8_t)t->begin;
        t->row_end[row] = spans ? unit_within(spans->end_key[row] - t->first, t->begin, t->end) : (uint8_t)t->end;
    }
}

static void unit_drop(const struct unit_half *t) {
    for (int row = 0; row < t->b->rows; row++)
        for (int key = t->begin; key < t->end; key += VL) {
            const int n = t->end - key < VL ? t->end - key : VL;
            float *p = t->y + row * RAPT_HALF_KEYS + key;
            const vmask keep = v_load_bool(t->b->mask->keep[row] + t->first + key, n);
            v_store_n(p, v_select(keep, v_load_n(p, n), v_splat(0)), n);
        }
}

/* Probabilities of order 3 to parts. */
static RAPT_KERNEL void unit_split_probabilities(struct unit_half *t) {
    struct unit_found found = unit_nothing_found();
    const int first = t->begin / RAPT_STEP * RAPT_STEP, last = unit_up(t->end, RAPT_STEP);
    for (int row = 0; row < t->b->rows; row++)
        for (int key = first; key < last; key += VL) {
            float *p = t->y + row * RAPT_HALF_KEYS + key;
            vf32 parts[UNIT_PARTS];
            unit_split(v_load(p), parts, &found);
            RAPT_UNROLL for (int i = 0; i < UNIT_PARTS; i++)
                v_store(p + i * t->y_part, parts[i]);
        }
    t->is_normal = unit_finds(&found, 0x1p-56f) & RAPT_FOUND_NORMAL;
}

/* Scores to probabilities. */
static void unit_probabilities(struct unit_half *t) {
    const struct rapt_block *b = t->b;
    unit_spans(t);
    const struct unit_softmax_args args = {.y = t->y,
                                           .lanes = unit_lanes(b->panel, 0),
                                           .m = b->state.m,
                                           .alpha = b->task->alpha,
                                           .begin = t->row_begin,
                                           .end = t->row_end,
                                           .rows = b->rows,
                                           .first = t->begin / RAPT_STEP * RAPT_STEP,
                                           .last = unit_up(t->end, RAPT_STEP),
                                           .factor = unit_logits(t),
                                           .fresh = t->fresh};
    unit_softmax(&args, unit_format(b->task));
    if (b->mask->parts & RAPT_PART_KEEP)
        unit_drop(t);
    if (t->y_part)
        unit_split_probabilities(t);
}

#endif
