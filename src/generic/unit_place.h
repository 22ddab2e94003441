/* SPDX-License-Identifier: MIT
 * Order 2 of few rows: keys and values are read in place and widened into L1, once for all rows. */
#ifndef RAPT_GENERIC_UNIT_PLACE_H
#define RAPT_GENERIC_UNIT_PLACE_H

#include "generic/unit_beside.h"
#include "generic/unit_block.h"
#include "generic/unit_place_rows.h"

/* ------------------------------------------------------------ numbers that the processor does not flush */

/* For numbers that chains read unflushed: a denormal counts as small, not as zero as in packed ones. */
RAPT_INLINE void place_look(struct unit_found *found, const uint16_t *p) {
    const vf32 x = unit_load(p, RAPT_FORMAT_BF16);
    found->least = v_smaller(v_select(v_equal(x, v_splat(0)), v_splat(RAPT_INFINITY), v_abs(x)), found->least);
}

/* Whether no number of some rows is too small for chains that do not flush. */
static bool place_is_normal(const struct place_side *side, int begin, int end, float least) {
    struct unit_found found = unit_nothing_found();
    if (FLUSHES || side->format == RAPT_FORMAT_F16)
        return true;
    for (int k = begin; k < end; k++) {
        const uint16_t *row = (const uint16_t *)(const void *)side->row[k];
        uint16_t rest[VL] = {0};
        int d = 0;
        for (; side->dim - d >= VL; d += VL)
            place_look(&found, row + d);
        memcpy(rest, row + d, (size_t)(side->dim - d) * sizeof *rest);
        place_look(&found, rest);
    }
    return unit_finds(&found, least) & RAPT_FOUND_NORMAL;
}

/* Rows from `first` of the half on, at dim d; NULL where the block names none. */
static void place_offset(const struct unit_half *t, const struct place_side *side, const char **rows, int first,
                         int count, int d) {
    for (int i = 0; i < count; i++) {
        const bool is_named = first + i >= t->begin && first + i < t->end;
        rows[i] = is_named ? side->row[t->first + first + i] + (size_t)d * sizeof(uint16_t) : NULL;
    }
}

/* The scores of a panel, packed. */
static void place_score_packed(const struct unit_half *t, const struct place_side *keys, int key) {
    float panel[RAPT_HALF_KEYS * UNIT_COLUMNS];
    const int rows = unit_up(t->b->rows, UNIT_ROWS);
    for (int d = 0; d < keys->dim; d += RAPT_HALF_KEYS) {
        const char *from[UNIT_COLUMNS];
        const int dims = keys->dim - d < RAPT_HALF_KEYS ? keys->dim - d : RAPT_HALF_KEYS;
        place_offset(t, keys, from, key, UNIT_COLUMNS, d);
        (void)pack_some_keys(panel, from, UNIT_COLUMNS, dims, keys->format);
        const struct unit_product p = {.a = unit_queries(t->b->panel, t->b->rows) + (int64_t)d * rows,
                                       .b = panel,
                                       .c = t->y + key,
                                       .c_stride = RAPT_HALF_KEYS,
                                       .rows = t->b->rows,
                                       .terms = unit_up(dims, 4),
                                       .adds = d > 0};
        unit_multiply(&p, false);
    }
}

/* Values of a half for some rows, packed; attended: NULL, or those of one row. */
static void place_weigh_packed(const struct unit_half *t, const struct place_side *values, int row, int rows,
                               const uint8_t *attended) {
    float panel[RAPT_HALF_KEYS * UNIT_COLUMNS];
    const int first = t->begin / RAPT_STEP * RAPT_STEP, last = unit_up(t->end, RAPT_STEP);
    for (int d = 0; d < values->dim; d += UNIT_COLUMNS) {
        const char *from[RAPT_HALF_KEYS];
        const int dims = values->dim - d < UNIT_COLUMNS ? values->dim - d : UNIT_COLUMNS;
        place_offset(t, values, from, 0, RAPT_HALF_KEYS, d);
        for (int k = 0; attended && k < RAPT_HALF_KEYS; k++)
            from[k] = attended[k] ? from[k] : NULL;
        const unsigned found = RAPT_UNIT(pack_values)(panel, from, dims, values->format);
        const struct unit_product p = {.a = t->y + row * RAPT_HALF_KEYS + first,
                                       .b = panel + first * UNIT_COLUMNS,
                                       .c = t->sums + (int64_t)row * t->sum_stride + d,
                                       .c_stride = t->sum_stride,
                                       .rows = rows,
                                       .terms = last - first,
                                       .adds = false};
        unit_multiply(&p, found & RAPT_FOUND_NORMAL);
    }
}

/* ------------------------------------------------------------ keys */

/* RAPT_STEP dims of a panel of keys, from d on. */
RAPT_INLINE void place_widen_keys(float *panel, const char *const *rows, int dim, int d, int format,
                                  struct unit_ahead *ahead) {
    struct unit_found found = unit_nothing_found();
    for (int k = 0; k < UNIT_COLUMNS; k += VL)
        for (int i = 0; i < RAPT_STEP; i += UNIT_COLUMNS) {
            const int left = dim - d - i;
            if (left > 0)
                unit_transpose(panel + i * UNIT_COLUMNS + k, UNIT_COLUMNS, rows + k, d + i,
                               left < UNIT_COLUMNS ? left : UNIT_COLUMNS, format, &found, ahead);
            else
                for (int j = 0; j < UNIT_COLUMNS; j++)
                    v_store(panel + (i + j) * UNIT_COLUMNS + k, v_splat(0));
        }
}

static RAPT_KERNEL void place_widen_bf16(float *panel, const char *const *rows, int dim, int d,
                                         struct unit_ahead *ahead) {
    place_widen_keys(panel, rows, dim, d, RAPT_FORMAT_BF16, ahead);
}
static RAPT_KERNEL void place_widen_f16(float *panel, const char *const *rows, int dim, int d,
                                        struct unit_ahead *ahead) {
    place_widen_keys(panel, rows, dim, d, RAPT_FORMAT_F16, ahead);
}

static void place_score_panel(const struct unit_half *t, const struct place_side *keys, int key) {
    _Alignas(64) float panel[RAPT_STEP * UNIT_COLUMNS];
    const struct rapt_block *b = t->b;
    const char *const *rows = keys->row + t->first + key;
    struct unit_ahead ahead = {rows + UNIT_COLUMNS, 0, keys->dim * 2, reach_of(0, PLACE_FAR - UNIT_COLUMNS)};
    const int all_rows = unit_up(b->rows, UNIT_ROWS);
    for (int d = 0; d < keys->dim; d += RAPT_STEP) {
        const float *query = unit_queries(b->panel, b->rows) + d % RAPT_HALF_KEYS +
                             (int64_t)(d / RAPT_HALF_KEYS) * all_rows * RAPT_HALF_KEYS;
        (keys->format == RAPT_FORMAT_F16 ? place_widen_f16 : place_widen_bf16)(panel, rows, keys->dim, d, &ahead);
        for (int row = 0; row < b->rows; row += UNIT_ROWS) {
            const int left = b->rows - row, height = left < UNIT_ROWS ? left : UNIT_ROWS;
            const struct place_keys k = {.panel = panel,
                                         .query = query + row * RAPT_HALF_KEYS,
                                         .c = t->y + key + row * RAPT_HALF_KEYS,
                                         .adds = d > 0};
            place_scorers[height - 1](&k);
        }
    }
}

static void place_score_half(const struct unit_half *t, const struct place_side *keys) {
    const bool normal = FLUSHES || (t->b->panel[0] != 0 &&
                                    place_is_normal(keys, t->first + t->begin, t->first + t->end, 0x1p-56f));
    unit_flush(true);
    for (int key = t->begin / UNIT_COLUMNS * UNIT_COLUMNS; key < t->end; key += UNIT_COLUMNS)
        if (normal)
            place_score_panel(t, keys, key);
        else
            place_score_packed(t, keys, key);
    unit_flush(false);
}

/* ------------------------------------------------------------ values */

/* Some dims of 32 values for all rows. */
static void place_weigh_panel(const struct unit_half *t, const struct place_values *w, int vectors, int format) {
    struct unit_ahead idle = place_idle();
    for (int row = 0; row < t->b->rows; row += UNIT_ROWS) {
        const int left = t->b->rows - row, height = left < UNIT_ROWS ? left : UNIT_ROWS;
        struct place_values part = *w;
        part.p += row * RAPT_HALF_KEYS;
        part.g += (int64_t)row * t->sum_stride;
        part.ahead = row == 0 ? w->ahead : &idle;
        place_weighers[w->keys != NULL][format == RAPT_FORMAT_F16][height - 1][vectors > 2](&part);
    }
}

/* The last dims, where they fill no panel. */
static void place_weigh_rest(const struct unit_half *t, const struct place_side *values, struct place_values w, int d) {
    uint16_t copy[RAPT_STEP][UNIT_COLUMNS];
    const char *rows[RAPT_STEP];
    struct unit_ahead idle = place_idle();
    for (int k = 0; k < RAPT_STEP; k++) {
        copy_rest(copy[k], w.row[k] + (size_t)d * sizeof(uint16_t), (size_t)(values->dim - d) * sizeof(uint16_t));
        rows[k] = (const char *)copy[k];
    }
    w.row = rows;
    w.byte = 0;
    w.ahead = &idle;
    w.g += d;
    place_weigh_panel(t, &w, 2, values->format);
}

/* The rows of a step. Those that the block does not name count as zeros, whatever they hold. */
static const char *const *place_named(const struct unit_half *t, const struct place_side *values, int key,
                                      const char **named) {
    const char *const *rows = values->row + t->first + key;
    if (key >= t->begin && key + RAPT_STEP <= t->end)
        return rows;
    for (int k = 0; k < RAPT_STEP; k++)
        named[k] = key + k >= t->begin && key + k < t->end ? rows[k] : (const char *)unit_zeros;
    return named;
}

/* Prefetches beside a step. */
static struct unit_ahead place_ahead(const struct unit_half *t, const struct place_side *values, int key) {
    return (struct unit_ahead){values->row + t->first + key + PLACE_NEAR, 0, values->dim * 2,
                               reach_of(0, PLACE_FAR - PLACE_NEAR)};
}

/* keys: see place_values. */
static void place_weigh_step(const struct unit_half *t, const struct place_side *values, int key, bool adds,
                             struct unit_ahead *ahead, struct unit_ahead *keys) {
    const int wide = place_wide(t->b->rows < UNIT_ROWS ? t->b->rows : UNIT_ROWS);
    const char *named[RAPT_STEP];
    struct place_values w = {.row = place_named(t, values, key, named),
                             .p = t->y + key,
                             .g = t->sums,
                             .g_stride = t->sum_stride,
                             .adds = adds,
                             .ahead = ahead,
                             .keys = keys};
    int d = 0;
    for (int vectors; (vectors = wide && values->dim - d >= wide * VL ? wide : 2) * VL <= values->dim - d;
         d += vectors * VL) {
        struct place_values part = w;
        part.byte = (int64_t)d * (int64_t)sizeof(uint16_t);
        part.g += d;
        place_weigh_panel(t, &part, vectors, values->format);
    }
    if (d < values->dim)
        place_weigh_rest(t, values, w, d);
}

static void place_weigh_half(const struct unit_half *t, const struct place_side *values) {
    const int first = t->begin / RAPT_STEP * RAPT_STEP, last = unit_up(t->end, RAPT_STEP);
    unit_flush(true);
    if (t->b->careful && t->b->seen == RAPT_SEES_SOME)
        for (int row = 0; row < t->b->rows; row++) {
            uint8_t attended[RAPT_HALF_KEYS] = {0};
            for (int key = t->begin; key < t->end; key++)
                attended[key] = rapt_is_attended(t->b->mask, row, t->first + key);
            place_weigh_packed(t, values, row, 1, attended);
        }
    else if (!place_is_normal(values, t->first + t->begin, t->first + t->end, 0x1p-64f))
        place_weigh_packed(t, values, 0, t->b->rows, NULL);
    else
        for (int key = first; key < last; key += RAPT_STEP) {
            struct unit_ahead ahead = place_ahead(t, values, key);
            place_weigh_step(t, values, key, key > first, &ahead, NULL);
        }
    unit_flush(false);
}

/* ------------------------------------------------------------ the block */

/* Start of a half's scores. Products of packed keys write whole groups of rows. */
static float *place_scores(const struct rapt_block *b, int half) {
    return b->scores + half * RAPT_HALF_KEYS * (FLUSHES ? b->rows : unit_up(b->rows, UNIT_ROWS));
}

static void place_score_block(const struct rapt_block *b, const struct place_side *keys) {
    struct unit_half t = unit_half_of(b);
    for (int half = 0; half < 2; half++) {
        t.y = place_scores(b, half);
        if (unit_select_half(&t, half * RAPT_HALF_KEYS))
            place_score_half(&t, keys);
    }
}

/* This half's values and the keys of the next block's half. */
static void place_in_turns(const struct unit_half *t, const struct place_side *values, const struct place_side *keys) {
    const struct rapt_block *b = t->b;
    float *const scores = b->next.scores + t->first * b->rows;
    unit_flush(true);
    for (int key = 0; key < RAPT_HALF_KEYS; key += RAPT_STEP) {
        const char *const *row = keys->row + t->first + key;
        struct unit_turn_requests ahead = turn_ahead(row, values->row + t->first + key, values->dim * 2);
        const struct turn_keys turn = {.row = row,
                                       .query = unit_queries(b->panel, b->rows),
                                       .c = scores + key,
                                       .dim = keys->dim,
                                       .all_rows = unit_up(b->rows, UNIT_ROWS),
                                       .ahead = &ahead};
        turn_scorers[keys->format == RAPT_FORMAT_F16][b->rows - 1](&turn);
        place_weigh_step(t, values, key, key > 0, &ahead.values, &ahead.keys);
    }
    unit_flush(false);
}

static bool place_is_whole(const struct rapt_block *b) { return b->key_begin == 0 && b->key_end == RAPT_BLOCK_KEYS; }

/* keys: of the next block, which are scored in turns; NULL = none. */
static void place_weigh_block(const struct rapt_block *b, const struct place_side *keys) {
    struct unit_half t = unit_half_of(b);
    struct place_side values;
    place_find(&values, b, RAPT_VALUES);
    t.sums = b->task->scores + PLACE_SCORES * RAPT_HALF_KEYS * unit_up(b->rows, UNIT_ROWS);
    for (int half = 0; half < 2; half++) {
        t.y = place_scores(b, half);
        if (!unit_select_half(&t, half * RAPT_HALF_KEYS))
            continue;
        run_errands(b->of_weigh, UNIT_LINES);
        unit_probabilities(&t);
        if (FLUSHES && keys)
            place_in_turns(&t, &values, keys);
        else
            place_weigh_half(&t, &values);
        unit_update(&t);
        t.fresh = false;
    }
}

void RAPT_UNIT(block_in_place)(const struct rapt_block *b) {
    struct place_side keys;
    if (!b->is_scored) {
        place_find(&keys, b, RAPT_KEYS);
        place_score_block(b, &keys);
    }
    if (!b->next.scores) {
        place_weigh_block(b, NULL);
        return;
    }
    const struct rapt_block next = unit_next_block(b);
    place_find(&keys, &next, RAPT_KEYS);
    if (place_is_whole(b) && place_is_whole(&next)) {
        place_weigh_block(b, &keys);
        return;
    }
    place_weigh_block(b, NULL);
    place_score_block(&next, &keys);
}

#endif
