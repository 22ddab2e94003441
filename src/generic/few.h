/* SPDX-License-Identifier: MIT
 * Tiles of few rows, more than narrow ones have: lanes are keys, or value_dim. Some keys at a time are transposed into
 * a panel that stays in L1 and serves all rows, so a tile takes any number of rows without waste. These loops are
 * memory-bound: they prefetch their own rows, one line at a time and evenly, since bursts fill all miss buffers and
 * delay the loads. */
#ifndef RAPT_GENERIC_FEW_H
#define RAPT_GENERIC_FEW_H

#include "generic/score_words.h"
#include "generic/softmax.h"
#include "generic/weigh.h"

enum {
    FEW_KEYS = 2 * VL,                   /* of a panel */
    FEW_STRIDE = RAPT_BLOCK_KEYS + 16,   /* of rows of scores, which would otherwise map to few sets of L1 */
    VALUES_PART = 32,                    /* values at a time that stay in L1; twice as many for more tiles, or where
                                            storing sums takes time */
    FEW_TURN = FEW_STORED_VECTORS * VL > 32 ? FEW_STORED_VECTORS * VL : 32, /* keys, where heads take turns */
    FEW_UNROLLED = VL < 16 ? 2 : 1       /* dims of a panel, or values, between prefetches */
};

_Static_assert(FEW_TURN % FEW_KEYS == 0 && FEW_TURN % (FEW_STORED_VECTORS * VL) == 0, "turns are whole steps");
_Static_assert(FEW_ROWS <= 12 && FEW_MOST >= NARROW_ROWS && FEW_MOST <= (int)RAPT_MAX_TILE_ROWS, "rows of a few");

/* Rows to prefetch: those of one head, or, where several take turns, of all, spread evenly over their calls. */
struct few_rows {
    const char *first;
    int64_t stride_bytes, lead_bytes;
    int dim, format, heads;
};

/* Spreads the lines of `count` rows of a head over `steps` steps: nearly always one per step. Testing whether one is
 * due costs more than the prefetch, above all where two threads share a core's decoders. */
static struct pump few_pump(struct few_rows rows, bool streams, int64_t steps, int64_t count) {
    if (!streams || steps == 0)
        return idle_pump(rows.first);
    const int64_t heads = rows.heads > 1 ? rows.heads : 1;
    const int dim = (int)heads * rows.dim;
    const int64_t at_once = (stored_lines(rows.format, dim) * count + steps * heads - 1) / (steps * heads);
    struct pump pump = pump_of(rows.first, rows.stride_bytes, rows.lead_bytes, dim, rows.format,
                               (int)(at_once * steps * heads / count));
    pump.at_more = (int)at_once - 1;
    pump.soon = streams_into_l1();
    return pump;
}

RAPT_INLINE struct pump take_few_pump(const struct pump *pump) {
    struct pump own = take_pump(pump, false);
    own.soon = pump->soon;
    return own;
}

/* Float32 twice as far ahead as in narrow tiles, since tiles take part of the keys at a time; but not rows with gaps,
 * which share cache sets. With AVX-512, where this was not measured, these as well. */
RAPT_INLINE int64_t few_lead(int64_t given, int64_t stride_bytes, int format, int dim) {
    const bool has_gaps = VL < 16 && stride_bytes != rapt_format_row_bytes(format, dim);
    return given || format != RAPT_FORMAT_F32 || has_gaps ? given : 2 * lead_of(0, stride_bytes, format, dim);
}

RAPT_INLINE struct few_rows few_keys(const struct rapt_score_args *a) {
    return (struct few_rows){a->key, a->key_stride_bytes,
                             few_lead(a->lead_bytes, a->key_stride_bytes, a->key_format, a->head_dim), a->head_dim,
                             a->key_format, a->heads};
}

RAPT_INLINE struct few_rows few_values(const struct rapt_weigh_args *a) {
    return (struct few_rows){a->value, a->value_stride_bytes,
                             few_lead(a->lead_bytes, a->value_stride_bytes, a->value_format, a->value_dim),
                             a->value_dim, a->value_format, a->heads};
}

RAPT_INLINE void few_lines(struct pump *pump) {
    pump_line(pump);
    for (int line = 0; __builtin_expect(line < pump->at_more, 0); line++)
        pump_line(pump);
}

/* ---- scores */

/* Rows are split into register tiles whose heights differ by one at most. */
RAPT_INLINE int few_tiles(int rows) { return (rows + FEW_ROWS - 1) / FEW_ROWS; }
RAPT_INLINE int few_height(int rows, int tiles, int number) { return rows / tiles + (number < rows % tiles); }

/* A constant count keeps the square in registers. */
RAPT_INLINE void few_keys_square(float *panel, const float *const *keys, int64_t d) {
    vf32 lanes[VL];
    v_load_square(lanes, keys, d);
    RAPT_UNROLL for (int i = 0; i < VL; i++)
        v_store(panel + i * FEW_KEYS, lanes[i]);
}

static RAPT_KERNEL void few_part(float *panel, const float *const *keys, int64_t d, int n) {
    vf32 lanes[VL];
    load_transposed(lanes, keys, VL, d, n);
    for (int i = 0; i < n; i++)
        v_store(panel + i * FEW_KEYS, lanes[i]);
}

/* Whole squares of FEW_KEYS keys; returns their dims. */
RAPT_INLINE int few_squares(float *panel, const struct rapt_score_args *a, const char *key, bool quarters) {
    int d = 0;
    for (int v = 0; v < FEW_KEYS; v += VL) {
        struct spaced keys = spaced_from(key + v * a->key_stride_bytes, a->key_stride_bytes);
        for (d = 0; a->head_dim - d >= VL; d += VL) {
            vf32 lanes[VL];
            const char *rows[VL];
            RAPT_UNROLL for (int i = 0; i < VL; i++)
                rows[i] = spaced_row(&keys, i);
            load_square_of_words(lanes, rows, 0, quarters);
            spaced_advance(&keys, VL * sizeof(float));
            RAPT_UNROLL for (int i = 0; i < VL; i++)
                v_store(panel + (d + i) * FEW_KEYS + v, lanes[i]);
        }
    }
    return d;
}

static RAPT_KERNEL int few_squares_by_halves(float *panel, const struct rapt_score_args *a, const char *key) {
    return few_squares(panel, a, key, false);
}
static RAPT_KERNEL int few_squares_here(float *panel, const struct rapt_score_args *a, const char *key) {
    return few_squares(panel, a, key, suits_quarters(FEW_ROWS, 1));
}

/* n keys to [head_dim][FEW_KEYS]; absent ones hold the first. */
static RAPT_KERNEL void few_transpose(float *panel, const struct rapt_score_args *a, const char *key, int n) {
    const bool halves = RAPT_LOADS_PARTS && rapt_cpu_loads_wide();
    int d = n == FEW_KEYS ? (halves ? few_squares_by_halves : few_squares_here)(panel, a, key) : 0;
    const float *keys[FEW_KEYS];
    for (int i = 0; i < FEW_KEYS; i++)
        keys[i] = row_at(key, a->key_stride_bytes, i < n ? i : 0);
    for (; d < a->head_dim; d += VL)
        for (int v = 0; v < FEW_KEYS; v += VL) {
            if (a->head_dim - d >= VL)
                few_keys_square(panel + d * FEW_KEYS + v, keys + v, d);
            else
                few_part(panel + d * FEW_KEYS + v, keys + v, d, a->head_dim - d);
        }
}

/* Adds one number of each row times two vectors, of keys or of a value. */
RAPT_INLINE void few_terms(vf32 sum[][2], const float *numbers, int64_t row_step, const float *vectors, int rows) {
    const vf32 x[2] = {v_load(vectors), v_load(vectors + VL)};
    RAPT_UNROLL for (int r = 0; r < rows; r++) {
        const vf32 number = v_splat(numbers[r * row_step]);
        RAPT_UNROLL for (int v = 0; v < 2; v++)
            sum[r][v] = v_fma(number, x[v], sum[r][v]);
    }
}

/* The scores of `rows` rows and the n keys of a panel. */
RAPT_INLINE void few_score(const struct rapt_score_args *a, const float *panel, const float *query, float *scores,
                           int n, struct pump *pump, int rows) {
    struct pump p = take_few_pump(pump);
    vf32 sum[FEW_ROWS][2];
    RAPT_UNROLL for (int r = 0; r < rows; r++)
        sum[r][0] = sum[r][1] = v_splat(0);
    int left = a->head_dim;
    for (; left >= FEW_UNROLLED; left -= FEW_UNROLLED) {
        few_lines(&p);
        RAPT_UNROLL for (int i = 0; i < FEW_UNROLLED; i++, panel += FEW_KEYS, query += a->rows)
            few_terms(sum, query, 1, panel, rows);
    }
    for (; left > 0; left--, panel += FEW_KEYS, query += a->rows)
        few_terms(sum, query, 1, panel, rows);
    RAPT_UNROLL for (int r = 0; r < rows; r++)
        RAPT_UNROLL for (int v = 0; v < 2; v++) {
            const vf32 score = v_mul(sum[r][v], v_splat(a->factor));
            if (n >= (v + 1) * VL)
                v_store(scores + r * FEW_STRIDE + v * VL, score);
            else if (n > v * VL)
                v_store_n(scores + r * FEW_STRIDE + v * VL, score, n - v * VL);
        }
    put_pump(pump, &p);
}

/* ---- values */

struct few_step {
    const struct rapt_weigh_args *args;
    int key, end;
    bool first; /* fresh and alpha act */
};

/* rows x 2 vectors of value_dim against the values of some keys. */
RAPT_INLINE void few_weigh(const struct few_step *step, int row, int64_t d, struct pump *pump, int rows) {
    const struct rapt_weigh_args *a = step->args;
    struct pump of = take_few_pump(pump);
    vf32 sum[FEW_ROWS][2];
    float *o = a->o + row * a->o_stride + d;
    const float *p = a->probabilities + (int64_t)row * FEW_STRIDE + step->key;
    const char *value = a->value + (step->key - a->key_begin) * a->value_stride_bytes + d * (int64_t)sizeof(float);
    RAPT_UNROLL for (int r = 0; r < rows; r++)
        RAPT_UNROLL for (int v = 0; v < 2; v++) {
            if (step->first && a->fresh)
                sum[r][v] = v_splat(0);
            else
                sum[r][v] = v_load(o + r * a->o_stride + v * VL);
        }
    if (step->first && !a->fresh && a->alpha)
        RAPT_UNROLL for (int r = 0; r < rows; r++)
            RAPT_UNROLL for (int v = 0; v < 2; v++)
                sum[r][v] = v_mul(sum[r][v], v_splat(a->alpha[row + r]));
    int left = step->end - step->key;
    for (; left >= FEW_UNROLLED; left -= FEW_UNROLLED) {
        few_lines(&of);
        RAPT_UNROLL for (int i = 0; i < FEW_UNROLLED; i++, p++, value += a->value_stride_bytes)
            few_terms(sum, p, FEW_STRIDE, (const float *)(const void *)value, rows);
    }
    for (; left > 0; left--, p++, value += a->value_stride_bytes)
        few_terms(sum, p, FEW_STRIDE, (const float *)(const void *)value, rows);
    RAPT_UNROLL for (int r = 0; r < rows; r++)
        RAPT_UNROLL for (int v = 0; v < 2; v++)
            v_store(o + r * a->o_stride + v * VL, sum[r][v]);
    put_pump(pump, &of);
}

#define RAPT_FEW(height)                                                                                         \
    static RAPT_KERNEL void few_score_##height(const struct rapt_score_args *a, const float *panel,              \
                                               const float *query, float *scores, int n, struct pump *pump) {    \
        if (height <= FEW_ROWS)                                                                                  \
            few_score(a, panel, query, scores, n, pump, height);                                                 \
    }                                                                                                            \
    static RAPT_KERNEL void few_weigh_##height(const struct few_step *step, int row, int64_t d,                  \
                                               struct pump *pump) {                                              \
        if (height <= FEW_ROWS)                                                                                  \
            few_weigh(step, row, d, pump, height);                                                               \
    }
RAPT_HEIGHTS(RAPT_FEW)
#undef RAPT_FEW

static void score_few_floats(const struct rapt_score_args *a) {
    typedef void scorer(const struct rapt_score_args *, const float *, const float *, float *, int, struct pump *);
#define RAPT_FEW(height) few_score_##height,
    static scorer *const of_height[] = {RAPT_HEIGHTS(RAPT_FEW)};
#undef RAPT_FEW
    const int tiles = few_tiles(a->rows);
    float *panel = a->scores + (int64_t)a->rows * FEW_STRIDE;
    const char *key = a->key;
    struct pump pump = few_pump(few_keys(a), a->streams, (int64_t)(a->head_dim / FEW_UNROLLED) * tiles, FEW_KEYS);
    for (int k = a->key_begin; k < a->key_end; k += FEW_KEYS, key += FEW_KEYS * a->key_stride_bytes) {
        const int n = a->key_end - k < FEW_KEYS ? a->key_end - k : FEW_KEYS;
        few_transpose(panel, a, key, n);
        for (int number = 0, row = 0, height; number < tiles; number++, row += height) {
            height = few_height(a->rows, tiles, number);
            of_height[height - 1](a, panel, a->query + row, a->scores + (int64_t)row * FEW_STRIDE + k, n, &pump);
        }
    }
}

RAPT_WEIGH_WIDE(few, NARROW_ROWS, 1, FEW_STRIDE, 1)

/* A few keys at a time, so that their values stay in L1 for all rows and panels. Leftover single vectors take all keys
 * at once. */
static void weigh_few_floats(const struct rapt_weigh_args *args) {
    typedef void weigher(const struct few_step *, int, int64_t, struct pump *);
#define RAPT_FEW(height) few_weigh_##height,
    static weigher *const of_height[] = {RAPT_HEIGHTS(RAPT_FEW)};
#undef RAPT_FEW
    struct rapt_weigh_args a = *args;
    a.probabilities += (int64_t)a.first_row * FEW_STRIDE;
    a.spans = NULL;
    a.errands = NULL;
    const int tiles = few_tiles(a.rows);
    const int64_t paired = a.value_dim / (2 * VL) * (2 * VL);
    struct pump pump = few_pump(few_values(&a), a.streams, paired / (2 * VL) * tiles, FEW_UNROLLED);
    struct few_step step = {&a, a.key_begin, a.key_begin, true};
    const int part = tiles > 2 || (VL == 16 && rapt_cpu_loads_wide()) ? 2 * VALUES_PART : VALUES_PART;
    do {
        step.end = a.key_end - step.key < part ? a.key_end : step.key + part;
        run_errands(args->errands, SOFTMAX_LINES);
        for (int64_t d = 0; d < paired; d += 2 * VL)
            for (int number = 0, row = 0, height; number < tiles; number++, row += height) {
                height = few_height(a.rows, tiles, number);
                of_height[height - 1](&step, row, d, &pump);
            }
        step.key = step.end;
        step.first = false;
    } while (step.key < a.key_end);
    for (int64_t d = paired; d < a.value_dim; d += VL)
        weigh_few_1(&a, d, width_of_panel(&a, d, 1));
}

/* ---- between them */

static void logits_few(float *scores, int first_row, int end_row, int key_begin, int key_end,
                       const struct rapt_tile_mask *mask) {
    assume_rows(first_row, end_row, VL, RAPT_MAX_TILE_ROWS);
    assume_keys(key_begin, key_end);
    for (int row = first_row; row < end_row; row++)
        logits_row(scores + (int64_t)row * FEW_STRIDE, row, key_begin, key_end, mask);
}

static void drop_few(float *scores, int rows, int key_begin, int key_end, const struct rapt_tile_mask *mask) {
    assume_rows(0, rows, 1, RAPT_MAX_TILE_ROWS);
    assume_keys(key_begin, key_end);
    for (int row = 0; row < rows; row++)
        drop_row(scores + (int64_t)row * FEW_STRIDE, row, key_begin, key_end, mask);
}

/* l += p, keys ascending, for up to VL rows: lanes are rows. */
static void add_few(const float *p, int rows, int count, float *l) {
    const float *lines[VL];
    for (int row = 0; row < VL; row++)
        lines[row] = p + (int64_t)(row < rows ? row : 0) * FEW_STRIDE;
    vf32 sum = v_load_n(l, rows);
    int key = 0;
    for (; count - key >= VL; key += VL) {
        vf32 square[VL];
        v_load_square(square, lines, key);
        RAPT_UNROLL for (int i = 0; i < VL; i++)
            sum = v_add(sum, square[i]);
    }
    if (key < count) {
        vf32 square[VL];
        float columns[VL * VL];
        load_transposed(square, lines, VL, key, count - key);
        RAPT_UNROLL for (int i = 0; i < VL; i++)
            v_store(columns + i * VL, square[i]);
        for (int i = 0; i < count - key; i++)
            sum = v_add(sum, v_load(columns + i * VL));
    }
    v_store_n(l, sum, rows);
}

static void softmax_few(float *scores, int first_row, int end_row, int key_begin, int key_end,
                        const struct rapt_visible_spans *spans, float *m, float *l, float *alpha,
                        struct rapt_errands *errands) {
    (void)spans; /* few rows: little to skip */
    assume_rows(first_row, end_row, VL, RAPT_MAX_TILE_ROWS);
    assume_keys(key_begin, key_end);
    const int count = key_end - key_begin;
    const int64_t lines = errands ? errands->lines / (end_row - first_row) + 1 : 0;
    scores += key_begin;
    for (int row = first_row; row < end_row; row += VL) {
        const int end = end_row - row < VL ? end_row : row + VL;
        maximum_rows(scores + (int64_t)row * FEW_STRIDE, FEW_STRIDE, end - row, count, m + row, l + row, alpha + row);
        for (int line = row; line < end; line++) {
            run_errands(errands, lines < 2 * SOFTMAX_LINES ? lines : 2 * SOFTMAX_LINES);
            exponentials(scores + (int64_t)line * FEW_STRIDE, scores + (int64_t)line * FEW_STRIDE, count, m[line]);
        }
        add_few(scores + (int64_t)row * FEW_STRIDE, end - row, count, l + row);
    }
}

#endif
