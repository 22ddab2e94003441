/* SPDX-License-Identifier: MIT
 * Order 3 on the matrix unit: a block of the loop for one tile of 32 rows, half by half. Six products of tiles take the
 * time, so little needs to run beside them. */
#ifndef RAPT_X86_AMX_SPLIT_H
#define RAPT_X86_AMX_SPLIT_H

#include "x86/amx/block.h"
#include "x86/amx/split_pack.h"

/* What lies in task->scores. */
struct split_scratch {
    float y[AMX_SCORES];                                            /* scores, then probabilities */
    char p[STEPS_OF_HALF][UNIT_PARTS][AMX_PART];                  /* these in parts, as rows of tiles */
    float g[AMX_TILE * AMX_COLUMNS];                                /* probabilities times values, of some dims */
    float largest[AMX_TILE * 16];
    char copy[TILE_BYTES];                                          /* of values, for rows that do not see all */
};

static size_t scores_bytes_split(int rows, int dim) {
    (void)rows, (void)dim;
    return sizeof(struct split_scratch);
}

RAPT_INLINE struct split_scratch *split_scratch_of(const struct rapt_task *task) {
    return (struct split_scratch *)(void *)task->scores;
}

/* ------------------------------------------------------------ queries times keys */

/* Rows that have their turn beside products. */
struct split_turn {
    int begin, end;
};

/* Of all rows, one at a time, or two where there is a single step. */
RAPT_INLINE struct split_turn split_turn_of(int rows, int steps, int step, int turn) {
    const int share = steps == 1 ? 2 : 1, first = share * (AMX_TURNS * UNIT_SPLIT_SUMS * step + turn);
    const int begin = first < rows ? first : rows;
    return (struct split_turn){begin, begin + share < rows ? begin + share : rows};
}

struct split_scoring_beside {
    const struct unit16_half *half;
    int groups, steps;
};

static inline __attribute__((always_inline)) void beside_split_scores(void *context, int group, int step, int turn) {
    const struct split_scoring_beside *c = context;
    if (group == 0)
        return;
    const struct split_turn all = {0, c->half->rows};
    const struct split_turn rows = group < c->groups ? split_turn_of(c->half->rows, c->steps, step, turn) : all;
    unit16_maxima(c->half, c->half->first + group - 1, rows.begin, rows.end);
}

static RAPT_KERNEL void split_score(const struct unit16_task *a) {
    const struct rapt_block *b = a->t.b;
    const int steps = unit16_steps((int)b->task->attention->desc.head_dim);
    const char *keys = rapt_source_packed(b->source, RAPT_KEYS, b->base + a->t.first).base;
    const struct amx_product p = {.a = split_queries(b->panel),
                                  .a_stride = TILE_ROW_BYTES,
                                  .a_step = SPLIT_STEP,
                                  .a_below = TILE_BYTES,
                                  .b = keys + (int64_t)a->first * steps * SPLIT_STEP,
                                  .b_step = SPLIT_STEP,
                                  .b_beside = TILE_BYTES,
                                  .b_group = (int64_t)steps * SPLIT_STEP,
                                  .c = (char *)(a->t.y + a->first * RAPT_STEP),
                                  .c_stride = RAPT_HALF_KEYS * sizeof(float),
                                  .c_group = RAPT_STEP * sizeof(float),
                                  .groups = a->steps,
                                  .has_below = b->rows > TILE_HEIGHT};
    struct split_scoring_beside beside = {&a->half, a->steps, steps};
    amx_multiply(&p, steps, beside_split_scores, &beside, AMX_PARTS);
}

/* ------------------------------------------------------------ softmax */

/* Probabilities of 32 keys of a row to parts. */
RAPT_INLINE void split_store(struct split_scratch *s, int row, int step, __m512 low, __m512 high) {
    __m512i parts[UNIT_PARTS];
    split_parts(low, high, parts);
    RAPT_UNROLL for (int i = 0; i < UNIT_PARTS; i++)
        _mm512_store_si512(s->p[step][i] + row * TILE_ROW_BYTES, parts[i]);
}

/* m and alpha of all rows. */
static void split_new_maxima(const struct unit16_half *h) {
    const __m512 factor = _mm512_set1_ps(h->factor < 0 ? -h->factor : h->factor);
    for (int row = 0; row < h->rows; row += 16) {
        const int n = h->rows - row < 16 ? h->rows - row : 16;
        const __m512 most = v_add(v_mul(unit16_largest(h->largest + row * 16), factor), v_splat(0));
        const __m512 before = v_load_n(h->m + row, n), after = v_even_maximum(most, before);
        v_store_n(h->alpha + row, v_pow2(v_sub(before, after)), n);
        v_store_n(h->m + row, after, n);
    }
}

RAPT_INLINE void split_line(const struct unit16_half *h, struct split_scratch *s, int number,
                            const struct exp2_row *row, int shifted) {
    const float *y = h->y + number * RAPT_HALF_KEYS;
    float *lanes = h->lanes + number * RAPT_SUM_LANES;
    const __m512 factor = _mm512_set1_ps(h->factor);
    __m512 l = h->fresh ? v_splat(0) : v_mul(v_load(lanes), v_splat(h->alpha[number]));
    for (int step = h->first; step < h->last; step++) {
        vf32 p[2] = {v_mul(v_load(y + step * RAPT_STEP), factor), v_mul(v_load(y + step * RAPT_STEP + 16), factor)};
        exp2_ways(p, row, 2, shifted);
        l = v_add(v_add(l, p[0]), p[1]);
        split_store(s, number, step, p[0], p[1]);
    }
    v_store(lanes, l);
}

/* From products as they are, whose maxima are there, to probabilities in parts. */
static RAPT_KERNEL void split_softmax(const struct unit16_task *a) {
    const struct unit16_half *h = &a->half;
    split_new_maxima(h);
    for (int row = 0; row < h->rows; row++) {
        const vf32 m = v_splat(h->m[row]);
        const struct exp2_row exponents = exp2_row(m);
        if (v_any(is_shifted(m)))
            split_line(h, split_scratch_of(a->t.b->task), row, &exponents, 1);
        else
            split_line(h, split_scratch_of(a->t.b->task), row, &exponents, 0);
    }
}

/* The same where scores are changed first, or rows do not see all. */
static RAPT_KERNEL void split_general_softmax(struct unit16_task *a) {
    unit_probabilities(&a->t);
    for (int row = 0; row < a->t.b->rows; row++)
        for (int step = a->first; step < a->first + a->steps; step++) {
            const float *p = a->t.y + row * RAPT_HALF_KEYS + step * RAPT_STEP;
            split_store(split_scratch_of(a->t.b->task), row, step, _mm512_load_ps(p), _mm512_load_ps(p + 16));
        }
}

/* ------------------------------------------------------------ probabilities times values */

/* One row, as amx_weigh_row. */
static void split_weigh_row(const struct unit16_task *a, const char *values, int row) {
    struct split_scratch *s = split_scratch_of(a->t.b->task);
    const int groups = unit16_steps((int)a->t.b->task->attention->desc.value_dim);
    const struct amx_attended attended = amx_attended_of(a, row);
    for (int tile = 0; tile < 2 * groups; tile++) {
        TILE_ZERO(0);
        for (int step = a->first; step < a->first + a->steps; step++) {
            const char *from = values + (int64_t)(tile / 2 * STEPS_OF_HALF + step) * SPLIT_STEP +
                               tile % 2 * TILE_BYTES;
            for (int i = 0; i < UNIT_SPLIT_SUMS; i++) {
                amx_copy_attended(s->copy, from + unit_split_sums[i][1] * AMX_PART, step, attended);
                TILE_LOAD(4, s->p[step][unit_split_sums[i][0]] + row / TILE_HEIGHT * TILE_BYTES, TILE_ROW_BYTES);
                TILE_LOAD(6, s->copy, TILE_ROW_BYTES);
                TILE_MULTIPLY_BF16(0, 4, 6);
            }
        }
        TILE_STORE(0, (char *)(s->g + tile % 2 * TILE_FLOATS + row / TILE_HEIGHT * TILE_HEIGHT * AMX_COLUMNS),
                   AMX_COLUMNS * sizeof(float));
        if (tile % 2)
            amx_add_sums(a, tile / 2, row, row + 1);
    }
}

struct split_weighing_beside {
    const struct unit16_task *a;
    int groups;
};

static inline __attribute__((always_inline)) void beside_split_sums(void *context, int group, int step, int turn) {
    const struct split_weighing_beside *c = context;
    const int all = c->a->half.rows;
    if (group == 0)
        return;
    const struct split_turn rows = group < c->groups ? split_turn_of(all, c->a->steps, step, turn)
                                                     : (struct split_turn){0, all};
    amx_add_sums(c->a, group - 1, rows.begin, rows.end);
}

static RAPT_KERNEL void split_weigh(const struct unit16_task *a) {
    const struct rapt_block *b = a->t.b;
    const struct rapt_packed values = rapt_source_packed(b->source, RAPT_VALUES, b->base + a->t.first);
    if (!(values.found & RAPT_FOUND_FINITE)) {
        for (int row = 0; row < b->rows; row++)
            split_weigh_row(a, values.base, row);
        return;
    }
    const struct amx_product p = {.a = split_scratch_of(b->task)->p[a->first][0],
                                  .a_stride = TILE_ROW_BYTES,
                                  .a_step = SPLIT_STEP,
                                  .a_below = TILE_BYTES,
                                  .b = (const char *)values.base + (int64_t)a->first * SPLIT_STEP,
                                  .b_step = SPLIT_STEP,
                                  .b_beside = TILE_BYTES,
                                  .b_group = STEPS_OF_HALF * SPLIT_STEP,
                                  .c = (char *)a->g,
                                  .c_stride = AMX_COLUMNS * sizeof(float),
                                  .groups = unit16_steps((int)b->task->attention->desc.value_dim),
                                  .has_below = b->rows > TILE_HEIGHT};
    struct split_weighing_beside beside = {a, p.groups};
    amx_multiply(&p, a->steps, beside_split_sums, &beside, AMX_PARTS);
}

/* ------------------------------------------------------------ all of it */

/* Whether scores are products times a factor, and nothing else. */
static bool split_is_plain(const struct rapt_block *b) {
    const struct rapt_plan_body *a = b->task->attention;
    return !(b->mask->parts & ~(unsigned)RAPT_PART_SPANS) && a->score_factor != 0 &&
           a->score_factor - a->score_factor == 0;
}

static RAPT_KERNEL void block_amx_split(const struct rapt_block *b) {
    struct split_scratch *s = split_scratch_of(b->task);
    const bool plain = split_is_plain(b);
    struct unit16_task a = {.t = {.b = b, .fresh = b->fresh, .y = s->y},
                            .g = s->g,
                            .half = {.y = s->y,
                                     .lanes = unit_lanes(b->panel, 0),
                                     .largest = s->largest,
                                     .m = b->state.m,
                                     .alpha = b->task->alpha,
                                     .rows = b->rows,
                                     .factor = b->task->attention->score_factor}};
    RAPT_ASSUME(b->rows <= AMX_TILE && !b->mask->selected && b->key_begin < b->key_end);
    for (int first = 0; first < RAPT_BLOCK_KEYS; first += RAPT_HALF_KEYS) {
        if (!unit16_turn_to(&a, first))
            continue;
        split_score(&a);
        if (plain && unit16_sees_all(&a)) {
            a.half.factor = b->task->attention->score_factor;
            split_softmax(&a);
        } else {
            split_general_softmax(&a);
        }
        split_weigh(&a);
        a.t.fresh = false;
    }
}

#endif
