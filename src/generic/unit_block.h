/* SPDX-License-Identifier: MIT
 * Orders 2 and 3 by chains of FMAs: a block of the loop for one tile, half by half. */
#ifndef RAPT_GENERIC_UNIT_BLOCK_H
#define RAPT_GENERIC_UNIT_BLOCK_H

#include "generic/unit_half.h"
#include "generic/unit_product.h"

enum { PLACE_SCORES = 4 /* of few rows: halves of this block and of the next one */ };

/* Scores of so many halves, or of all parts of order 3, then the sums of a half. */
RAPT_INLINE size_t unit_scores_bytes(int rows, int dim, int scores) {
    return (size_t)unit_up(rows, UNIT_ROWS) *
           ((size_t)scores * RAPT_HALF_KEYS + (size_t)unit_up(dim, UNIT_COLUMNS)) * sizeof(float);
}

size_t RAPT_UNIT(scores_bytes)(int rows, int dim) { return unit_scores_bytes(rows, dim, 2); }
size_t RAPT_UNIT(scores_bytes_in_place)(int rows, int dim) { return unit_scores_bytes(rows, dim, PLACE_SCORES); }
size_t RAPT_UNIT(scores_bytes_split)(int rows, int dim) { return unit_scores_bytes(rows, dim, UNIT_PARTS); }

static void unit_score(const struct unit_half *t) {
    const struct rapt_block *b = t->b;
    const int dim = (int)b->task->plan->desc.head_dim, rows = unit_up(b->rows, UNIT_ROWS);
    const struct rapt_packed keys = rapt_source_packed(b->source, RAPT_KEYS, b->base + t->first);
    const float *panel = keys.base, *queries = unit_queries(b->panel, b->rows);
    const bool split = unit_is_split(b), normal = b->panel[0] != 0 && (keys.found & RAPT_FOUND_NORMAL);
    unit_flush(true);
    for (int key = t->begin / UNIT_COLUMNS * UNIT_COLUMNS; key < t->end; key += UNIT_COLUMNS) {
        run_errands(b->of_score, UNIT_LINES);
        for (int d = 0; d < dim; d += RAPT_HALF_KEYS) {
            const int terms = dim - d < RAPT_HALF_KEYS ? unit_up(dim - d, 4) : RAPT_HALF_KEYS;
            const struct unit_product p = {.a = queries + (int64_t)d * rows,
                                           .b = panel + (int64_t)key * unit_up(dim, RAPT_STEP) +
                                                (int64_t)d * UNIT_COLUMNS,
                                           .c = t->y + key,
                                           .c_stride = RAPT_HALF_KEYS,
                                           .a_part = split ? unit_query_part(b->rows, dim) : 0,
                                           .b_part = unit_packed_part(RAPT_KEYS, RAPT_HALF_KEYS, dim),
                                           .rows = b->rows,
                                           .terms = terms,
                                           .adds = d > 0};
            unit_multiply(&p, normal);
        }
    }
    unit_flush(false);
}

static int64_t unit_value_part(const struct unit_half *t) {
    return unit_packed_part(RAPT_VALUES, RAPT_HALF_KEYS, (int)t->b->task->plan->desc.value_dim);
}

/* Row by row: values of unattended pairs may be NaN or infinite. */
static void unit_weigh_attended(const struct unit_half *t, const float *panel) {
    for (int row = 0; row < t->b->rows; row++) {
        uint8_t attended[RAPT_HALF_KEYS] = {0};
        for (int key = t->begin; key < t->end; key++)
            attended[key] = rapt_is_attended(t->b->mask, row, t->first + key);
        for (int d = 0; d < t->sum_stride; d += UNIT_COLUMNS) {
            const struct unit_product p = {.a = t->y + row * RAPT_HALF_KEYS,
                                           .b = panel + (int64_t)d * RAPT_HALF_KEYS,
                                           .c = t->sums + (int64_t)row * t->sum_stride + d,
                                           .a_part = t->y_part,
                                           .b_part = unit_value_part(t),
                                           .terms = RAPT_HALF_KEYS};
            unit_careful(&p, attended);
        }
    }
}

static void unit_weigh(const struct unit_half *t) {
    const struct rapt_block *b = t->b;
    const struct rapt_packed values = rapt_source_packed(b->source, RAPT_VALUES, b->base + t->first);
    const float *panel = values.base;
    const int first = t->begin / RAPT_STEP * RAPT_STEP, last = unit_up(t->end, RAPT_STEP);
    unit_flush(true);
    if (!(values.found & RAPT_FOUND_FINITE))
        unit_weigh_attended(t, panel);
    else
        for (int d = 0; d < t->sum_stride; d += UNIT_COLUMNS) {
            const struct unit_product p = {.a = t->y + first,
                                           .b = panel + (int64_t)d * RAPT_HALF_KEYS + first * UNIT_COLUMNS,
                                           .c = t->sums + d,
                                           .c_stride = t->sum_stride,
                                           .a_part = t->y_part,
                                           .b_part = unit_value_part(t),
                                           .rows = b->rows,
                                           .terms = last - first,
                                           .adds = false};
            run_errands(b->of_weigh, UNIT_LINES);
            unit_multiply(&p, t->is_normal && (values.found & RAPT_FOUND_NORMAL));
        }
    unit_flush(false);
}

static RAPT_KERNEL void unit_update(const struct unit_half *t) {
    const struct rapt_block *b = t->b;
    const int value_dim = (int)b->task->plan->desc.value_dim;
    for (int row = 0; row < b->rows; row++) {
        float *o = b->state.o + row * b->state.o_stride;
        const float *sums = t->sums + (int64_t)row * t->sum_stride;
        const vf32 alpha = v_splat(b->task->alpha[row]);
        for (int d = 0; d < value_dim; d += VL)
            v_store(o + d, t->fresh ? v_load(sums + d) : v_fma(v_load(o + d), alpha, v_load(sums + d)));
    }
}

static struct unit_half unit_half_of(const struct rapt_block *b) {
    const int value_dim = (int)b->task->plan->desc.value_dim, rows = unit_up(b->rows, UNIT_ROWS);
    const bool split = unit_is_split(b);
    RAPT_ASSUME(!b->mask->selected && b->key_begin < b->key_end);
    return (struct unit_half){.b = b,
                              .fresh = b->fresh,
                              .y = b->scores,
                              .y_part = split ? RAPT_HALF_KEYS * rows : 0,
                              .is_normal = true,
                              .sums = b->task->scores + (split ? UNIT_PARTS : 2) * RAPT_HALF_KEYS * rows,
                              .sum_stride = unit_up(value_dim, UNIT_COLUMNS)};
}

void RAPT_UNIT(block)(const struct rapt_block *b) {
    struct unit_half t = unit_half_of(b);
    for (int first = 0; first < RAPT_BLOCK_KEYS; first += RAPT_HALF_KEYS) {
        if (!unit_select_half(&t, first))
            continue;
        unit_score(&t);
        unit_probabilities(&t);
        unit_weigh(&t);
        unit_update(&t);
        t.fresh = false;
    }
}

/* Folds lanes of l; unscales float16; applies keep_scale. */
void RAPT_UNIT(close)(const struct rapt_task *task, float *panel, struct rapt_state state, int rows) {
    const struct rapt_plan_body *plan = task->plan;
    const float unshift = unit_format(task) == RAPT_FORMAT_F16 ? 0x1p-15f : 1;
    const float factor = (plan->mask_parts & RAPT_PART_KEEP ? plan->desc.keep_scale : 1) * unshift;
    for (int row = 0; row < rows; row++) {
        float *lanes = unit_lanes(panel, row);
        for (int count = RAPT_SUM_LANES / 2; count > 0; count /= 2)
            for (int i = 0; i < count; i++)
                lanes[i] = lanes[i] + lanes[i + count];
        state.l[row] = lanes[0] * unshift;
        for (int d = 0; factor != 1 && d < plan->desc.value_dim; d += VL)
            v_store(state.o + row * state.o_stride + d,
                    v_mul(v_load(state.o + row * state.o_stride + d), v_splat(factor)));
    }
}

/* Scores of weights: keys are packed a panel and 128 dims at a time. */
RAPT_INLINE void unit_score_weights(const struct rapt_score_args *args, float *panel, int parts) {
    enum { ROWS = RAPT_MAX_TILE_ROWS + UNIT_ROWS };
    float c[ROWS * UNIT_COLUMNS];
    const int dim = args->head_dim, rows = unit_up(args->rows, UNIT_ROWS);
    float *query = (float *)(uintptr_t)args->query;
    RAPT_ASSUME(args->rows >= 1 && args->rows <= RAPT_MAX_TILE_ROWS);
    for (int key = args->key_begin; key < args->key_end; key += UNIT_COLUMNS) {
        const int keys = args->key_end - key < UNIT_COLUMNS ? args->key_end - key : UNIT_COLUMNS;
        for (int d = 0; d < dim; d += RAPT_HALF_KEYS) {
            const char *stored[UNIT_COLUMNS] = {NULL};
            const int terms = dim - d < RAPT_HALF_KEYS ? dim - d : RAPT_HALF_KEYS;
            for (int i = 0; i < keys; i++)
                stored[i] = args->key + (key - args->key_begin + i) * args->key_stride_bytes +
                            (int64_t)d * unit_bytes(args->key_format);
            const unsigned found = pack_some_keys(panel, stored, UNIT_COLUMNS, terms, args->key_format);
            const struct unit_product p = {.a = unit_queries(query, args->rows) + (int64_t)d * rows,
                                           .b = panel,
                                           .c = c,
                                           .c_stride = UNIT_COLUMNS,
                                           .a_part = parts > 1 ? unit_query_part(args->rows, dim) : 0,
                                           .b_part = unit_packed_part(RAPT_KEYS, UNIT_COLUMNS, terms),
                                           .rows = args->rows,
                                           .terms = unit_up(terms, 4),
                                           .adds = d > 0};
            unit_flush(true);
            unit_multiply(&p, query[0] != 0 && (found & RAPT_FOUND_NORMAL));
            unit_flush(false);
        }
        for (int row = 0; row < args->rows; row++)
            for (int i = 0; i < keys; i++)
                args->scores[row * RAPT_BLOCK_KEYS + key + i] = c[row * UNIT_COLUMNS + i] * args->factor;
    }
}

void RAPT_UNIT(score)(const struct rapt_score_args *args) {
    float panel[RAPT_HALF_KEYS * UNIT_COLUMNS];
    unit_score_weights(args, panel, 1);
}

void RAPT_UNIT(score_split)(const struct rapt_score_args *args) {
    float panel[UNIT_PARTS * RAPT_HALF_KEYS * UNIT_COLUMNS];
    unit_score_weights(args, panel, UNIT_PARTS);
}

/* Probabilities of weights: at the final maximum, as fractions of l. */
void RAPT_UNIT(rounded)(const float *y, float *p, int64_t count, float m, float factor, int format) {
    for (int64_t i = 0; i < count; i += VL) {
        const int n = count - i < VL ? (int)(count - i) : VL, is_f16 = format == RAPT_FORMAT_F16;
        const struct unit_row row = unit_row_of(factor, m, is_f16);
        const vf32 at = v_load_n(y + i, n);
        vf32 of_f16 = unit_probability(at, &row, 1, row.large), of_bf16 = unit_probability(at, &row, 0, row.large);
        v_store_n(p + i, is_f16 ? v_mul(of_f16, v_splat(0x1p-15f)) : of_bf16, n);
    }
}

#endif
