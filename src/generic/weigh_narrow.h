/* SPDX-License-Identifier: MIT
 * Values of narrow tiles, a few at a time, so that they stay in L1 for all rows and panels. */
#ifndef RAPT_GENERIC_WEIGH_NARROW_H
#define RAPT_GENERIC_WEIGH_NARROW_H

#include "generic/filled.h"
#include "generic/weigh_stored.h"

enum {
    FILLED_GROUP = 4,       /* rows at once of those that fill a vector, */
    FILLED_DIM_VECTORS = 2  /* against so many vectors of dims */
};

/* A panel of all rows, group after group; `pump` acts beside the first. */
static void weigh_filled_panel(const struct rapt_weigh_args *a, int64_t d, int vectors, struct pump *pump,
                               struct pump *idle) {
    struct rapt_weigh_args part = *a;
    for (int row = 0; row < a->rows; row += FILLED_GROUP) {
        part.rows = a->rows - row < FILLED_GROUP ? a->rows - row : FILLED_GROUP;
        part.o = a->o + row * a->o_stride;
        part.probabilities = a->probabilities + row * RAPT_BLOCK_KEYS;
        part.alpha = a->alpha ? a->alpha + row : NULL;
        weigher_for(&part, vectors)(&part, d, NULL, row == 0 ? pump : idle);
    }
}

/* The dims of panels: returns where they end. */
static int64_t weigh_filled_panels(const struct rapt_weigh_args *a, struct pump *pump, struct pump *idle) {
    enum { DIMS = FILLED_DIM_VECTORS * VL };
    int64_t d = 0;
    for (; a->value_dim - d >= DIMS; d += DIMS)
        weigh_filled_panel(a, d, FILLED_DIM_VECTORS, pump, idle);
    return d;
}

/* Leftover dims, and types with scales: widened into L1, once for all rows. */
static void weigh_filled_rest(const struct rapt_weigh_args *a, int64_t d, struct pump *pump, struct pump *idle) {
    _Alignas(64) float values[STORED_AHEAD * REST_DIMS];
    struct rapt_weigh_args part = *a;
    part.value = (const char *)values;
    part.value_format = RAPT_FORMAT_F32;
    part.value_stride_bytes = REST_DIMS * (int64_t)sizeof(float);
    part.runs = NULL;
    for (; d < a->value_dim; d += REST_DIMS) {
        struct walk walk = walk_of(a->value, a->value_rows, a->runs);
        part.value_dim = a->value_dim - d < REST_DIMS ? (int)(a->value_dim - d) : REST_DIMS;
        part.o = a->o + d;
        for (int key = 0; key < a->key_end - a->key_begin; key++) {
            stage_row[a->value_format](values + key * REST_DIMS, stored_block(a->value_format, walk.row, d),
                                       part.value_dim, &a->scales, key);
            walk_advance(&walk, 1, a->value_stride_bytes);
            fetch_beside_rest(pump, lines_of_rest(a->value_format, d, part.value_dim));
        }
        for (int64_t at = weigh_filled_panels(&part, idle, idle); at < part.value_dim; at += VL)
            weigh_filled_panel(&part, at, 1, idle, idle);
    }
}

/* Rows that fill a vector: more than registers hold. */
static void weigh_filled(const struct rapt_weigh_args *a, struct pump *pump) {
    struct pump idle = idle_pump(a->value);
    idle.in_turns = pump->in_turns;
    const int64_t d = is_scaled(a->value_format) ? 0 : weigh_filled_panels(a, pump, &idle);
    weigh_filled_rest(a, d, pump, &idle);
}

static void weigh_narrow_part(const struct rapt_weigh_args *a, struct pump *pump) {
    if (RAPT_IS_FILLED(a->rows)) {
        weigh_filled(a, pump);
        return;
    }
    struct row_scales scales;
    int64_t d = 0;
    scales.exact = true;
    if (is_scaled(a->value_format))
        load_row_scales(&scales, &a->scales, 0, a->key_end - a->key_begin,
                        is_looked_up(a->value_format) ? 1 : scale_of_f16(a->value_format));
    if (scales.exact)
        d = weigh_panels(a, scales.folded, pump);
    if (d < a->value_dim)
        weigh_rest(a, d, pump);
}

/* Steps per row of values, which prefetch another row. */
static int steps_of_row(const struct rapt_weigh_args *a) {
    int steps = 0;
    int64_t d = 0;
    for (int vectors = 8; vectors >= 1; vectors /= 2)
        for (; weigher_for(a, vectors) && a->value_dim - d >= least_dims(a, vectors); d += vectors * VL)
            steps += stored_lines(a->value_format, vectors * VL);
    return d < a->value_dim ? steps + lines_of_rest(a->value_format, d, a->value_dim - (int)d) : steps;
}

static struct pump pump_of_values(const struct rapt_weigh_args *a) {
    const int steps = a->value_format == RAPT_FORMAT_F32 ? (a->value_dim + 15) / 16 : steps_of_row(a);
    if (!a->streams || steps == 0 || a->runs)
        return idle_pump(a->value);
    return pump_of(a->value, a->value_stride_bytes, a->lead_bytes, a->value_dim, a->value_format, steps);
}

static void weigh_narrow(const struct rapt_weigh_args *a) {
    assume_weigh(a, NARROW_MOST);
    struct rapt_weigh_args part = *a;
    struct strand_cursor strands = open_strands(a->ahead);
    struct pump pump = pump_of_values(a);
    pump.strands = a->ahead ? &strands : NULL;
    struct walk walk = walk_of(a->value, a->value_rows, a->runs);
    const int keys = a->value_format == RAPT_FORMAT_F32 ? WEIGH_AHEAD : STORED_AHEAD;
    part.probabilities += (int64_t)a->first_row * RAPT_BLOCK_KEYS;
    do {
        part.key_end = a->key_end - part.key_begin < keys ? a->key_end : part.key_begin + keys;
        part.value = walk.row;
        part.value_rows = walk.left;
        part.runs = walk.next;
        weigh_narrow_part(&part, &pump);
        scales_advance(&part.scales, part.key_end - part.key_begin);
        walk_by(&walk, part.key_end - part.key_begin, a->value_stride_bytes);
        part.key_begin = part.key_end;
        part.fresh = false;
        part.alpha = NULL;
    } while (part.key_begin < a->key_end);
}

#endif
