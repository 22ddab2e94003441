/* SPDX-License-Identifier: MIT
 * Order 2 by VDPBF16PS: a block of the loop for one tile of 24 rows, half by half. */
#ifndef RAPT_X86_BF16_BLOCK_H
#define RAPT_X86_BF16_BLOCK_H

#include "x86/bf16/product.h"
#include "x86/unit16/block.h"

RAPT_INLINE int64_t dots_sum_stride(int value_dim) { return (int64_t)unit16_steps(value_dim) * DOTS_COLUMNS; }

/* Scores, maxima, offsets; sums; room for the careful path. */
static size_t scores_bytes_dots(int rows, int dim) {
    (void)rows;
    return DOTS_TILE * (RAPT_HALF_KEYS + 16 + (size_t)dots_sum_stride(dim)) * sizeof(float) + 32 * sizeof(float) +
           STEPS_OF_HALF * DOTS_OF_STEP * sizeof(uint32_t);
}

static void dots_lay_out(struct unit16_half *a) {
    const struct rapt_block *b = a->t.b;
    a->t.y = a->softmax.y = b->task->scores;
    a->softmax.largest = a->t.y + DOTS_TILE * RAPT_HALF_KEYS;
    a->softmax.offset = a->softmax.largest + DOTS_TILE * 16;
    a->g = a->softmax.offset + 32;
    a->softmax.lanes = b->panel;
    a->softmax.m = b->state.m;
    a->softmax.alpha = b->task->alpha;
    a->softmax.rows = b->rows;
}

/* The room for the careful path. */
RAPT_INLINE uint32_t *dots_copy(const struct unit16_half *a, int dim) {
    return (uint32_t *)(void *)(a->g + DOTS_TILE * dots_sum_stride(dim));
}

static void dots_maxima(const struct unit16_half *a) {
    for (int group = a->first_step; a->plain && group < a->first_step + a->steps; group++)
        unit16_maxima(&a->softmax, group, 0, a->t.b->rows);
}

static void dots_score(const struct unit16_half *a) {
    const struct rapt_block *b = a->t.b;
    const int steps = unit16_steps((int)b->task->plan->desc.head_dim);
    const struct rapt_packed keys = rapt_source_packed(b->source, RAPT_KEYS, b->base + a->t.first);
    unit_flush(true);
    for (int group = a->first_step; group < a->first_step + a->steps; group++) {
        run_errands(b->of_score, UNIT_LINES);
        struct dots_product p = {.a = dots_queries(b->panel),
                                 .a_stride = steps * DOTS_WORDS,
                                 .b = (const uint32_t *)keys.base + (int64_t)group * steps * DOTS_OF_STEP,
                                 .c = a->t.y + group * DOTS_COLUMNS,
                                 .c_stride = RAPT_HALF_KEYS,
                                 .steps = steps};
        dots_multiply(&p, b->rows);
    }
    unit_flush(false);
    dots_maxima(a);
}

/* Probabilities as words, in place. */
static void dots_probabilities(const struct unit16_half *a) {
    for (int row = 0; row < a->t.b->rows; row++)
        for (int step = a->first_step; step < a->first_step + a->steps; step++) {
            float *at = a->t.y + row * RAPT_HALF_KEYS + step * DOTS_WORDS;
            _mm512_store_si512(at, dots_words(_mm512_load_si512(at)));
        }
}

/* Copies a panel, with +0 for values that a row does not attend to, whatever they hold. */
static void dots_attended(const struct unit16_half *a, const uint32_t *panel, int row, uint32_t *copy) {
    for (int word = 0; word < RAPT_HALF_KEYS / 2; word++, panel += DOTS_COLUMNS, copy += DOTS_COLUMNS) {
        const int upper = dots_first(word), lower = upper + 2;
        uint32_t kept = 0;
        if (upper >= a->t.begin && upper < a->t.end && rapt_is_attended(a->t.b->mask, row, a->t.first + upper))
            kept |= 0xffff0000u;
        if (lower >= a->t.begin && lower < a->t.end && rapt_is_attended(a->t.b->mask, row, a->t.first + lower))
            kept |= 0x0000ffffu;
        for (int v = 0; v < DOTS_COLUMNS; v += 16)
            _mm512_store_si512(copy + v, _mm512_and_si512(_mm512_loadu_si512(panel + v), _mm512_set1_epi32((int)kept)));
    }
}

/* Probabilities of a row, and of those after it, times 32 dims of values. */
RAPT_INLINE struct dots_product dots_weighing(const struct unit16_half *a, const uint32_t *panel, int row, float *sums,
                                              int64_t stride) {
    const float *p = a->t.y + row * RAPT_HALF_KEYS;
    return (struct dots_product){.a = (const uint32_t *)(const void *)p + a->first_step * DOTS_WORDS,
                                 .a_stride = RAPT_HALF_KEYS,
                                 .b = panel + a->first_step * DOTS_OF_STEP,
                                 .c = sums + row * stride,
                                 .c_stride = stride,
                                 .steps = a->steps};
}

static void dots_weigh_attended(const struct unit16_half *a, const uint32_t *panel, float *sums, int64_t stride) {
    uint32_t *copy = dots_copy(a, (int)stride);
    for (int row = 0; row < a->t.b->rows; row++) {
        dots_attended(a, panel, row, copy);
        struct dots_product p = dots_weighing(a, copy, row, sums, stride);
        dots_multiply(&p, 1);
    }
}

static void dots_update(const struct unit16_half *a) {
    const struct rapt_state state = a->t.b->state;
    const int value_dim = (int)a->t.b->task->plan->desc.value_dim;
    const int64_t stride = dots_sum_stride(value_dim);
    for (int row = 0; row < a->t.b->rows; row++) {
        const __m512 alpha = _mm512_set1_ps(a->softmax.alpha[row]);
        const float *g = a->g + row * stride;
        float *o = state.o + row * state.o_stride;
        for (int d = 0; d < value_dim; d += 16) {
            const __m512 sum = _mm512_load_ps(g + d);
            _mm512_store_ps(o + d, a->t.fresh ? sum : _mm512_fmadd_ps(_mm512_load_ps(o + d), alpha, sum));
        }
    }
}

static void dots_weigh(const struct unit16_half *a) {
    const struct rapt_block *b = a->t.b;
    const struct rapt_packed values = rapt_source_packed(b->source, RAPT_VALUES, b->base + a->t.first);
    const int groups = unit16_steps((int)b->task->plan->desc.value_dim);
    const int64_t stride = (int64_t)groups * DOTS_COLUMNS;
    dots_probabilities(a);
    unit_flush(true);
    for (int group = 0; group < groups; group++) {
        const uint32_t *panel = (const uint32_t *)values.base + (int64_t)group * STEPS_OF_HALF * DOTS_OF_STEP;
        run_errands(b->of_weigh, UNIT_LINES);
        float *sums = a->g + group * DOTS_COLUMNS;
        struct dots_product p = dots_weighing(a, panel, 0, sums, stride);
        if (!(values.found & RAPT_FOUND_FINITE))
            dots_weigh_attended(a, panel, sums, stride);
        else
            dots_multiply(&p, b->rows);
    }
    unit_flush(false);
    dots_update(a);
}

static RAPT_KERNEL void block_dots(const struct rapt_block *b) {
    struct unit16_half a = {.t = {.b = b, .fresh = b->fresh}};
    RAPT_ASSUME(b->rows <= DOTS_TILE);
    dots_lay_out(&a);
    unit16_block(&a, dots_score, dots_weigh);
}

#endif
