/* SPDX-License-Identifier: MIT
 * Order 3 on the matrix unit: a block of the loop for one tile of 32 rows, half by half. */
#ifndef RAPT_X86_AMX_SPLIT_H
#define RAPT_X86_AMX_SPLIT_H

#include "x86/amx/block.h"
#include "x86/amx/split_pack.h"

/* Probabilities in parts, as rows of tiles. */
struct split_rows_of_tiles {
    char of[STEPS_OF_HALF][UNIT_PARTS][AMX_PART];
};

/* Layout of task->scores; y and what derives from it per half of a block. */
struct split_scratch {
    float y[2][AMX_SCORES]; /* scores, or probabilities */
    struct split_rows_of_tiles p[2];
    float low[2][AMX_TILE], magic[2][AMX_TILE], alpha[2][AMX_TILE]; /* of exponentials: struct exp2_row */
    float g[AMX_TILE * AMX_COLUMNS];                                /* probabilities times values, of some dims */
    float largest[AMX_TILE * 16];
    char copy[TILE_BYTES]; /* of values, for rows that do not see all */
};

static size_t scores_bytes_split(int rows, int dim) {
    (void)rows, (void)dim;
    return sizeof(struct split_scratch);
}

RAPT_INLINE struct split_scratch *split_scratch_of(const struct rapt_task *task) {
    return (struct split_scratch *)(void *)task->scores;
}

/* Half a block. Of `a`: plain = scores are products times a factor above 0, no more; half.offset is not used. */
struct split_half {
    struct unit16_half a;
    bool sees_all; /* all rows see all keys */
    struct split_rows_of_tiles *p;
    float *low, *magic;
};

enum { SPLIT_TURNS = AMX_TURNS * UNIT_SPLIT_SUMS }; /* of a step */

/* ------------------------------------------------------------ queries times keys */

static inline __attribute__((always_inline)) void beside_nothing(void *context, int group, int step, int turn) {
    (void)context, (void)group, (void)step, (void)turn;
}

RAPT_INLINE struct amx_product split_scoring(const struct unit16_half *a) {
    const struct rapt_block *b = a->t.b;
    const int steps = unit16_steps((int)b->task->plan->desc.head_dim);
    const char *keys = rapt_source_packed(b->source, RAPT_KEYS, b->base + a->t.first).base;
    return (struct amx_product){.a = split_queries(b->panel),
                                .a_stride = TILE_ROW_BYTES,
                                .a_step = SPLIT_STEP,
                                .a_below = TILE_BYTES,
                                .b = keys + (int64_t)a->first_step * steps * SPLIT_STEP,
                                .b_step = SPLIT_STEP,
                                .b_beside = TILE_BYTES,
                                .b_group = (int64_t)steps * SPLIT_STEP,
                                .c = (char *)(a->t.y + a->first_step * RAPT_STEP),
                                .c_stride = RAPT_HALF_KEYS * sizeof(float),
                                .c_group = RAPT_STEP * sizeof(float),
                                .groups = a->steps,
                                .has_below = b->rows > TILE_HEIGHT};
}

static RAPT_KERNEL void split_score(const struct unit16_half *a) {
    const struct amx_product p = split_scoring(a);
    amx_multiply(&p, unit16_steps((int)a->t.b->task->plan->desc.head_dim), beside_nothing, NULL, AMX_PARTS);
}

/* ------------------------------------------------------------ softmax */

/* 32 probabilities of a row, in parts. */
RAPT_INLINE void split_store(char *to, __m512 low, __m512 high) {
    __m512i parts[UNIT_PARTS];
    split_parts(low, high, parts);
    RAPT_UNROLL for (int i = 0; i < UNIT_PARTS; i++)
        _mm512_store_si512(to + i * AMX_PART, parts[i]);
}

/* 32 keys: probabilities, in parts, and the lanes of l. */
RAPT_INLINE __m512 split_step(const float *y, char *to, __m512 factor, const struct exp2_row *row, __m512 l,
                              int shifted) {
    vf32 p[2] = {v_mul(v_load(y), factor), v_mul(v_load(y + 16), factor)};
    exp2_ways(p, row, 2, shifted);
    split_store(to, p[0], p[1]);
    return v_add(v_add(l, p[0]), p[1]);
}

/* m, alpha and exp2 constants of all rows. */
static void split_new_maxima(struct split_half *t) {
    struct unit16_softmax_args *h = &t->a.softmax;
    const __m512 factor = _mm512_set1_ps(h->factor);
    h->large_rows = 0;
    for (int row = 0; row < h->rows; row += 16) {
        const int n = h->rows - row < 16 ? h->rows - row : 16;
        const __m512 most = v_add(v_mul(unit16_largest(h->largest + row * 16), factor), v_splat(0));
        const __m512 before = v_load_n(h->m + row, n), after = v_even_maximum(most, before);
        const struct exp2_row exponents = exp2_row(after);
        v_store_n(h->alpha + row, v_pow2(v_sub(before, after)), n);
        v_store_n(h->m + row, after, n);
        v_store(t->low + row, exponents.low);
        v_store(t->magic + row, exponents.magic);
        h->large_rows |= ((uint32_t)is_shifted(after) & unit16_first(n)) << row;
    }
}

RAPT_INLINE void split_line(const struct split_half *t, int number, int shifted) {
    const struct unit16_softmax_args *h = &t->a.softmax;
    const float *y = h->y + number * RAPT_HALF_KEYS;
    float *lanes = h->lanes + number * RAPT_SUM_LANES;
    const __m512 factor = _mm512_set1_ps(h->factor);
    const struct exp2_row row = {v_splat(h->m[number]), v_splat(t->low[number]), v_splat(t->magic[number])};
    __m512 l = h->fresh ? v_splat(0) : v_mul(v_load(lanes), v_splat(h->alpha[number]));
    for (int step = h->first; step < h->last; step++)
        l = split_step(y + step * RAPT_STEP, t->p->of[step][0] + number * TILE_ROW_BYTES, factor, &row, l, shifted);
    v_store(lanes, l);
}

/* From maxima to probabilities in parts. */
static RAPT_KERNEL void split_exponentials(const struct split_half *t) {
    for (int row = 0; row < t->a.softmax.rows; row++)
        if (t->a.softmax.large_rows >> row & 1)
            split_line(t, row, 1);
        else
            split_line(t, row, 0);
}

/* If scores are modified first. */
static RAPT_KERNEL void split_general_softmax(struct split_half *t) {
    unit_probabilities(&t->a.t);
    for (int row = 0; row < t->a.t.b->rows; row++)
        for (int step = t->a.first_step; step < t->a.first_step + t->a.steps; step++) {
            const float *p = t->a.t.y + row * RAPT_HALF_KEYS + step * RAPT_STEP;
            split_store(t->p->of[step][0] + row * TILE_ROW_BYTES, _mm512_load_ps(p), _mm512_load_ps(p + 16));
        }
}

/* ------------------------------------------------------------ probabilities times values */

/* One row, as amx_weigh_row. */
static void split_weigh_row(const struct split_half *t, const char *values, int row) {
    const struct unit16_half *a = &t->a;
    char *copy = split_scratch_of(a->t.b->task)->copy;
    const int groups = unit16_steps((int)a->t.b->task->plan->desc.value_dim);
    const struct amx_attended attended = amx_attended_of(a, row);
    for (int tile = 0; tile < 2 * groups; tile++) {
        TILE_ZERO(0);
        for (int step = a->first_step; step < a->first_step + a->steps; step++) {
            const char *from = values + (int64_t)(tile / 2 * STEPS_OF_HALF + step) * SPLIT_STEP +
                               tile % 2 * TILE_BYTES;
            for (int i = 0; i < UNIT_SPLIT_SUMS; i++) {
                amx_copy_attended(copy, from + unit_split_sums[i][1] * AMX_PART, step, attended);
                TILE_LOAD(4, t->p->of[step][unit_split_sums[i][0]] + row / TILE_HEIGHT * TILE_BYTES, TILE_ROW_BYTES);
                TILE_LOAD(6, copy, TILE_ROW_BYTES);
                TILE_MULTIPLY(0, 4, 6);
            }
        }
        TILE_STORE(0, (char *)(a->g + tile % 2 * TILE_FLOATS + row / TILE_HEIGHT * TILE_HEIGHT * AMX_COLUMNS),
                   AMX_COLUMNS * sizeof(float));
        if (tile % 2)
            amx_add_sums(a, tile / 2, row, row + 1);
    }
}

struct split_weighing_beside {
    const struct unit16_half *a;
    int groups;
};

/* All rows of the group before, once it is summed. */
static inline __attribute__((always_inline)) void beside_split_sums(void *context, int group, int step, int turn) {
    const struct split_weighing_beside *c = context;
    const bool due = turn == SPLIT_TURNS - 1 && step == 0;
    if (group > 0 && (due || group == c->groups))
        amx_add_sums(c->a, group - 1, 0, c->a->softmax.rows);
}

RAPT_INLINE struct amx_product split_weighing(const struct split_half *t, const char *values) {
    const struct unit16_half *a = &t->a;
    return (struct amx_product){.a = t->p->of[a->first_step][0],
                                .a_stride = TILE_ROW_BYTES,
                                .a_step = SPLIT_STEP,
                                .a_below = TILE_BYTES,
                                .b = values + (int64_t)a->first_step * SPLIT_STEP,
                                .b_step = SPLIT_STEP,
                                .b_beside = TILE_BYTES,
                                .b_group = STEPS_OF_HALF * SPLIT_STEP,
                                .c = (char *)a->g,
                                .c_stride = AMX_COLUMNS * sizeof(float),
                                .groups = unit16_steps((int)a->t.b->task->plan->desc.value_dim),
                                .has_below = a->softmax.rows > TILE_HEIGHT};
}

RAPT_INLINE struct rapt_packed split_values(const struct split_half *t) {
    const struct rapt_block *b = t->a.t.b;
    return rapt_source_packed(b->source, RAPT_VALUES, b->base + t->a.t.first);
}

static RAPT_KERNEL void split_weigh(const struct split_half *t) {
    const struct rapt_packed values = split_values(t);
    if (!(values.found & RAPT_FOUND_FINITE)) {
        for (int row = 0; row < t->a.softmax.rows; row++)
            split_weigh_row(t, values.base, row);
        return;
    }
    const struct amx_product p = split_weighing(t, values.base);
    struct split_weighing_beside beside = {&t->a, p.groups};
    amx_multiply(&p, t->a.steps, beside_split_sums, &beside, AMX_PARTS);
}

/* ------------------------------------------------------------ a half by itself */

/* From maxima on. */
static void split_rest(const struct split_half *t) {
    split_exponentials(t);
    split_weigh(t);
}

static void split_alone(struct split_half *t) {
    split_score(&t->a);
    if (!t->a.plain) {
        split_general_softmax(t);
        split_weigh(t);
        return;
    }
    if (!t->sees_all)
        unit16_exclude_outside(&t->a);
    for (int step = t->a.first_step; step < t->a.first_step + t->a.steps; step++)
        unit16_maxima(&t->a.softmax, step, 0, t->a.softmax.rows);
    split_new_maxima(t);
    split_rest(t);
}

#endif
