/* SPDX-License-Identifier: MIT
 * Order 2 on the matrix unit: a block of the loop for one tile of 32 rows, half by half. */
#ifndef RAPT_X86_AMX_BLOCK_H
#define RAPT_X86_AMX_BLOCK_H

#include "x86/amx/product.h"
#include "x86/unit16/block.h"

/* Scores, sums, maxima, offsets; and room for the careful path. */
static size_t scores_bytes_amx(int rows, int dim) {
    (void)rows, (void)dim;
    return AMX_TILE * (RAPT_HALF_KEYS + AMX_COLUMNS + 16 + 1) * sizeof(float) + TILE_BYTES;
}

static void lay_out(struct unit16_task *a) {
    const struct rapt_block *b = a->t.b;
    a->t.y = b->task->scores;
    a->g = a->t.y + AMX_TILE * RAPT_HALF_KEYS;
    a->half.y = a->t.y;
    a->half.lanes = b->panel;
    a->half.largest = a->g + AMX_TILE * AMX_COLUMNS;
    a->half.offset = a->half.largest + AMX_TILE * 16;
    a->half.m = b->state.m;
    a->half.alpha = b->task->alpha;
    a->half.rows = b->rows;
}

/* ------------------------------------------------------------ queries times keys */

static inline __attribute__((always_inline)) void beside_scores(const void *context, int group, int row, int end) {
    const struct unit16_task *a = context;
    if (a->plain)
        unit16_maxima(&a->half, a->first + group, row, end);
}

RAPT_INLINE void amx_score(const struct unit16_task *a, int half) {
    const struct rapt_block *b = a->t.b;
    const int steps = unit16_steps((int)b->task->attention->desc.head_dim);
    const struct rapt_packed keys = rapt_source_packed(b->source, RAPT_KEYS, b->base + a->t.first);
    const int64_t group_bytes = (int64_t)steps * 2 * TILE_BYTES;
    const struct amx_product p = {.a = amx_queries(b->panel),
                                  .a_stride = TILE_ROW_BYTES,
                                  .a_step = 2 * TILE_BYTES,
                                  .a_below = TILE_BYTES,
                                  .b = (const char *)keys.base + a->first * group_bytes,
                                  .b_step = 2 * TILE_BYTES,
                                  .b_beside = TILE_BYTES,
                                  .b_group = group_bytes,
                                  .c = (char *)(a->t.y + a->first * RAPT_STEP),
                                  .c_stride = RAPT_HALF_KEYS * sizeof(float),
                                  .c_group = RAPT_STEP * sizeof(float),
                                  .groups = a->steps,
                                  .steps = steps,
                                  .has_below = b->rows > TILE_HEIGHT,
                                  .is_odd = false};
    amx_multiply(&p, beside_scores, a, b->rows, half);
}

/* ------------------------------------------------------------ probabilities times values */

static inline __attribute__((always_inline)) void beside_sums(const void *context, int group, int row, int end) {
    const struct unit16_task *a = context;
    const struct rapt_state state = a->t.b->state;
    const int left = (int)a->t.b->task->attention->desc.value_dim - group * AMX_COLUMNS;
    for (; row < end; row++) {
        const __m512 alpha = _mm512_set1_ps(a->half.alpha[row]);
        const float *g = a->g + row * AMX_COLUMNS;
        float *o = state.o + row * state.o_stride + group * AMX_COLUMNS;
        for (int d = 0; d < AMX_COLUMNS && d < left; d += 16) {
            __m512 sum = _mm512_load_ps(g + d);
            sum = a->t.fresh ? sum : _mm512_fmadd_ps(_mm512_load_ps(o + d), alpha, sum);
            _mm512_store_ps(o + d, sum);
        }
    }
}

/* Values of the steps that are worked on. */
RAPT_INLINE struct amx_product amx_weighing(const struct unit16_task *a, const char *values) {
    const int dim = (int)a->t.b->task->attention->desc.value_dim;
    return (struct amx_product){.a = (const char *)a->t.y + a->first * TILE_ROW_BYTES,
                                .a_stride = RAPT_HALF_KEYS * sizeof(float),
                                .a_step = TILE_ROW_BYTES,
                                .a_below = TILE_HEIGHT * RAPT_HALF_KEYS * (int64_t)sizeof(float),
                                .b = values + a->first * TILE_BYTES,
                                .b_step = TILE_BYTES,
                                .b_beside = STEPS_OF_HALF * TILE_BYTES,
                                .b_group = 2 * STEPS_OF_HALF * TILE_BYTES,
                                .c = (char *)a->g,
                                .c_stride = AMX_COLUMNS * sizeof(float),
                                .c_group = 0,
                                .groups = unit16_steps(dim),
                                .steps = a->steps,
                                .has_below = a->t.b->rows > TILE_HEIGHT,
                                .is_odd = (dim + 15) / 16 % 2 != 0};
}

/* One row, whose values of pairs that are not attended count as +0, whatever they hold: copies of their tiles have
 * zeros there. */
RAPT_INLINE void amx_weigh_row(const struct unit16_task *a, const char *values, int row, int half) {
    char *copy = (char *)(a->half.offset + AMX_TILE);
    const struct amx_product p = amx_weighing(a, values);
    uint64_t attended[2] = {0, 0};
    for (int key = a->t.begin; key < a->t.end; key++)
        attended[key / 64] |= (uint64_t)rapt_is_attended(a->t.b->mask, row, a->t.first + key) << key % 64;
    for (int tile = 0; tile < 2 * p.groups; tile++) {
        TILE_ZERO(0);
        for (int step = 0; step < a->steps; step++) {
            const char *from = p.b + (tile / 2) * p.b_group + tile % 2 * p.b_beside + step * p.b_step;
            for (int pair = 0; pair < TILE_HEIGHT; pair++) {
                const int key = (a->first + step) * RAPT_STEP + 2 * pair;
                const uint64_t two = attended[key / 64] >> key % 64;
                const __mmask32 there = (two & 1 ? 0x55555555u : 0) | (two & 2 ? 0xaaaaaaaau : 0);
                _mm512_store_si512(copy + pair * TILE_ROW_BYTES,
                                   _mm512_maskz_loadu_epi16(there, from + pair * TILE_ROW_BYTES));
            }
            TILE_LOAD(4, p.a + row / TILE_HEIGHT * p.a_below + step * p.a_step, p.a_stride);
            TILE_LOAD(6, copy, TILE_ROW_BYTES);
            AMX_MULTIPLY(0, 4, 6);
        }
        TILE_STORE(0, (char *)a->g + tile % 2 * TILE_ROW_BYTES + row / TILE_HEIGHT * TILE_HEIGHT * p.c_stride,
                   p.c_stride);
        if (tile % 2)
            beside_sums(a, tile / 2, row, row + 1);
    }
}

RAPT_INLINE void amx_weigh(const struct unit16_task *a, int half) {
    const struct rapt_block *b = a->t.b;
    const struct rapt_packed values = rapt_source_packed(b->source, RAPT_VALUES, b->base + a->t.first);
    if (!(values.found & RAPT_FOUND_FINITE)) {
        for (int row = 0; row < b->rows; row++)
            amx_weigh_row(a, values.base, row, half);
        return;
    }
    const struct amx_product p = amx_weighing(a, values.base);
    amx_multiply(&p, beside_sums, a, b->rows, half);
}

/* ------------------------------------------------------------ all of it */

static RAPT_KERNEL void block_amx_bf16(const struct rapt_block *b) {
    struct unit16_task a = {.t = {.b = b, .fresh = b->fresh}};
    RAPT_ASSUME(b->rows <= AMX_TILE);
    lay_out(&a);
    unit16_block(&a, amx_score, amx_weigh, 0);
}

#endif
