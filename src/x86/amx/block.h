/* SPDX-License-Identifier: MIT
 * Order 2 on the matrix unit: a block of the loop for one tile of 32 rows, half by half. */
#ifndef RAPT_X86_AMX_BLOCK_H
#define RAPT_X86_AMX_BLOCK_H

#include "x86/amx/ahead.h"
#include "x86/amx/product.h"
#include "x86/unit16/block.h"

enum { AMX_SCORES = AMX_TILE * RAPT_HALF_KEYS };

/* Layout of task->scores; y and alpha per half of a block. */
struct amx_scratch {
    float y[2][AMX_SCORES];
    float g[AMX_TILE * AMX_COLUMNS];       /* probabilities times values, of some dims */
    float largest[AMX_TILE * 16], offset[AMX_TILE], alpha[2][AMX_TILE];
    char copy[TILE_BYTES];                 /* of values, for rows that do not see all */
};

static size_t scores_bytes_amx(int rows, int dim) {
    (void)rows, (void)dim;
    return sizeof(struct amx_scratch);
}

RAPT_INLINE struct amx_scratch *amx_scratch_of(const struct rapt_task *task) {
    return (struct amx_scratch *)(void *)task->scores;
}

static void amx_lay_out(struct unit16_half *a, int number) {
    const struct rapt_block *b = a->t.b;
    struct amx_scratch *s = amx_scratch_of(b->task);
    a->t.y = a->softmax.y = s->y[number];
    a->g = s->g;
    a->softmax.largest = s->largest;
    a->softmax.offset = s->offset;
    a->softmax.alpha = s->alpha[number];
    a->softmax.lanes = b->panel;
    a->softmax.m = b->state.m;
    a->softmax.rows = b->rows;
}

/* Work beside products: the rows of a group in equal shares, one per step. */
struct amx_shares {
    const struct unit16_half *a;
    int steps, row;
};

RAPT_INLINE int amx_share(const struct amx_shares *s, int group, int groups, int step) {
    const int rows = s->a->softmax.rows;
    return group == groups || step == s->steps - 1 ? rows : rows * step / s->steps;
}

/* ------------------------------------------------------------ queries times keys */

static inline __attribute__((always_inline)) void beside_scores(void *context, int group, int step, int turn) {
    struct amx_shares *s = context;
    if (step == 0 && turn == 0 && group < s->a->steps)
        run_errands(amx_beside_keys(s->a->t.b), UNIT_LINES);
    if (group == 0 || !s->a->plain || (turn < AMX_TURNS - 1 && group < s->a->steps))
        return;
    const int end = amx_share(s, group, s->a->steps, step);
    unit16_maxima(&s->a->softmax, s->a->first_step + group - 1, group < s->a->steps && step > 0 ? s->row : 0, end);
    s->row = end;
}

RAPT_INLINE struct amx_product amx_scoring(const struct unit16_half *a, const char *keys, int steps) {
    const int64_t group_bytes = (int64_t)steps * 2 * TILE_BYTES;
    return (struct amx_product){.a = amx_queries(a->t.b->panel),
                                .a_stride = TILE_ROW_BYTES,
                                .a_step = 2 * TILE_BYTES,
                                .a_below = TILE_BYTES,
                                .b = keys + a->first_step * group_bytes,
                                .b_step = 2 * TILE_BYTES,
                                .b_beside = TILE_BYTES,
                                .b_group = group_bytes,
                                .c = (char *)(a->t.y + a->first_step * RAPT_STEP),
                                .c_stride = RAPT_HALF_KEYS * sizeof(float),
                                .c_group = RAPT_STEP * sizeof(float),
                                .groups = a->steps,
                                .has_below = a->softmax.rows > TILE_HEIGHT,
                                .is_odd = false};
}

RAPT_INLINE void amx_score(const struct unit16_half *a) {
    const struct rapt_block *b = a->t.b;
    const int steps = unit16_steps((int)b->task->plan->desc.head_dim);
    const struct rapt_packed keys = rapt_source_packed(b->source, RAPT_KEYS, b->base + a->t.first);
    const struct amx_product p = amx_scoring(a, keys.base, steps);
    struct amx_shares shares = {.a = a, .steps = steps};
    amx_multiply(&p, steps, beside_scores, &shares, AMX_NUMBERS);
}

/* Merges 32 more scores into row maxima. */
RAPT_INLINE void amx_raise(float *largest, const float *y) {
    const __m512 most = _mm512_max_ps(_mm512_load_ps(y), _mm512_load_ps(largest));
    _mm512_store_ps(largest, _mm512_max_ps(_mm512_load_ps(y + 16), most));
}

/* ------------------------------------------------------------ probabilities times values */

/* 16 or 32 sums of a row; keeps: o holds something. */
RAPT_INLINE void amx_add_row(float *o, const float *g, float alpha, __mmask16 keeps, int count) {
    for (int d = 0; d < count; d += 16)
        _mm512_store_ps(o + d, _mm512_mask3_fmadd_ps(_mm512_load_ps(o + d), _mm512_set1_ps(alpha),
                                                     _mm512_load_ps(g + d), keeps));
}

/* Rows [row, end) of a group of dims. */
RAPT_INLINE void amx_add_sums(const struct unit16_half *a, int group, int row, int end) {
    const struct rapt_state state = a->t.b->state;
    const int left = (int)a->t.b->task->plan->desc.value_dim - group * AMX_COLUMNS;
    for (; row < end; row++) {
        const __m512 alpha = _mm512_set1_ps(a->softmax.alpha[row]);
        const float *g = a->g + row * AMX_COLUMNS;
        float *o = state.o + row * state.o_stride + group * AMX_COLUMNS;
        for (int d = 0; d < AMX_COLUMNS && d < left; d += 16) {
            __m512 sum = _mm512_load_ps(g + d);
            sum = a->t.fresh ? sum : _mm512_fmadd_ps(_mm512_load_ps(o + d), alpha, sum);
            _mm512_store_ps(o + d, sum);
        }
    }
}

static inline __attribute__((always_inline)) void beside_sums(void *context, int group, int step, int turn) {
    struct amx_shares *s = context;
    const int groups = unit16_steps((int)s->a->t.b->task->plan->desc.value_dim);
    if (step == 0 && turn == 0 && group < groups)
        run_errands(amx_beside_values(s->a->t.b), UNIT_LINES);
    if (group == 0 || (turn < AMX_TURNS - 1 && group < groups))
        return;
    const int end = amx_share(s, group, groups, step);
    amx_add_sums(s->a, group - 1, group < groups && step > 0 ? s->row : 0, end);
    s->row = end;
}

/* Values of the current steps. */
RAPT_INLINE struct amx_product amx_weighing(const struct unit16_half *a, const char *values) {
    const int dim = (int)a->t.b->task->plan->desc.value_dim;
    return (struct amx_product){.a = (const char *)a->t.y + a->first_step * TILE_ROW_BYTES,
                                .a_stride = RAPT_HALF_KEYS * sizeof(float),
                                .a_step = TILE_ROW_BYTES,
                                .a_below = TILE_HEIGHT * RAPT_HALF_KEYS * (int64_t)sizeof(float),
                                .b = values + a->first_step * TILE_BYTES,
                                .b_step = TILE_BYTES,
                                .b_beside = STEPS_OF_HALF * TILE_BYTES,
                                .b_group = 2 * STEPS_OF_HALF * TILE_BYTES,
                                .c = (char *)a->g,
                                .c_stride = AMX_COLUMNS * sizeof(float),
                                .c_group = 0,
                                .groups = unit16_steps(dim),
                                .has_below = a->t.b->rows > TILE_HEIGHT,
                                .is_odd = (dim + 15) / 16 % 2 != 0};
}

/* Bit key: a row attends to it. */
struct amx_attended {
    uint64_t keys[RAPT_HALF_KEYS / 64];
};

static struct amx_attended amx_attended_of(const struct unit16_half *a, int row) {
    struct amx_attended attended = {{0}};
    for (int key = a->t.begin; key < a->t.end; key++)
        attended.keys[key / 64] |= (uint64_t)rapt_is_attended(a->t.b->mask, row, a->t.first + key) << key % 64;
    return attended;
}

/* Copies a tile of values, with zeros for keys that are not attended. */
RAPT_INLINE void amx_copy_attended(char *copy, const char *tile, int step, struct amx_attended attended) {
    for (int pair = 0; pair < TILE_HEIGHT; pair++) {
        const int key = step * RAPT_STEP + 2 * pair;
        const uint64_t two = attended.keys[key / 64] >> key % 64;
        const __mmask32 there = (two & 1 ? 0x55555555u : 0) | (two & 2 ? 0xaaaaaaaau : 0);
        _mm512_store_si512(copy + pair * TILE_ROW_BYTES, _mm512_maskz_loadu_epi16(there, tile + pair * TILE_ROW_BYTES));
    }
}

/* One row. Values that it does not attend to count as +0, whatever they hold: copies of their tiles have zeros
 * there. */
RAPT_INLINE void amx_weigh_row(const struct unit16_half *a, const char *values, int row) {
    char *copy = amx_scratch_of(a->t.b->task)->copy;
    const struct amx_product p = amx_weighing(a, values);
    const struct amx_attended attended = amx_attended_of(a, row);
    for (int tile = 0; tile < 2 * p.groups; tile++) {
        TILE_ZERO(0);
        for (int step = 0; step < a->steps; step++) {
            const char *from = p.b + (tile / 2) * p.b_group + tile % 2 * p.b_beside + step * p.b_step;
            amx_copy_attended(copy, from, a->first_step + step, attended);
            TILE_LOAD(4, p.a + row / TILE_HEIGHT * p.a_below + step * p.a_step, p.a_stride);
            TILE_LOAD(6, copy, TILE_ROW_BYTES);
            TILE_MULTIPLY(0, 4, 6);
        }
        TILE_STORE(0, (char *)a->g + tile % 2 * TILE_ROW_BYTES + row / TILE_HEIGHT * TILE_HEIGHT * p.c_stride,
                   p.c_stride);
        if (tile % 2)
            amx_add_sums(a, tile / 2, row, row + 1);
    }
}

RAPT_INLINE void amx_weigh(const struct unit16_half *a) {
    const struct rapt_block *b = a->t.b;
    const struct rapt_packed values = rapt_source_packed(b->source, RAPT_VALUES, b->base + a->t.first);
    if (!(values.found & RAPT_FOUND_FINITE)) {
        for (int row = 0; row < b->rows; row++)
            amx_weigh_row(a, values.base, row);
        return;
    }
    const struct amx_product p = amx_weighing(a, values.base);
    struct amx_shares shares = {.a = a, .steps = a->steps};
    amx_multiply(&p, a->steps, beside_sums, &shares, AMX_NUMBERS);
}

/* ------------------------------------------------------------ a half by itself */

static RAPT_KERNEL void amx_alone(struct unit16_half *a) { unit16_half_block(a, amx_score, amx_weigh); }

/* From maxima on. */
static RAPT_KERNEL void amx_rest(struct unit16_half *a) { unit16_rest(a, amx_weigh); }

#endif
