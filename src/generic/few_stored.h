/* SPDX-License-Identifier: MIT
 * Tiles of few rows against keys and values in stored form: some of them at a time are widened into L1, once for all
 * rows. Values that are a view of the keys are still in L2. */
#ifndef RAPT_GENERIC_FEW_STORED_H
#define RAPT_GENERIC_FEW_STORED_H

#include "generic/few_filled.h"
#include "generic/score_stored.h"
#include "generic/weigh_narrow.h"

enum {
    FEW_PANELS = FEW_STORED_VECTORS * VL > STORED_KEYS ? FEW_STORED_VECTORS * VL / STORED_KEYS : 1,
    FEW_STORED_KEYS = FEW_PANELS * STORED_KEYS, /* scored at a time, */
    FEW_DIMS = 64,                              /* so many dims of them, */
    FEW_PANEL = FEW_DIMS * STORED_KEYS,         /* floats */
    FEW_VALUES = 64                             /* values at a time, and dims of them */
};

/* Types with scales are staged. */
#ifndef RAPT_FEW_FORMATS
#define RAPT_FEW_FORMATS(X)                                                                                      \
    X(f16, F16) X(bf16, BF16) X(q8_0, Q8_0) X(q4_0, Q4_0) X(q4_1, Q4_1) X(q5_0, Q5_0) X(q5_1, Q5_1) X(iq4_nl, IQ4_NL)
#endif

#define RAPT_STORED(name, NAME) | 1 << RAPT_FORMAT_##NAME
enum { FEW_FORMATS = 1 << RAPT_FORMAT_F32 RAPT_FEW_FORMATS(RAPT_STORED) };
#undef RAPT_STORED

_Static_assert(FEW_STORED_KEYS % (FEW_STORED_VECTORS * VL) == 0, "panels are whole steps");
_Static_assert(FEW_STORED_ROWS <= 12, "functions of heights");

RAPT_INLINE int few_stored_tiles(int rows) { return (rows + FEW_STORED_ROWS - 1) / FEW_STORED_ROWS; }

/* ---- scores */

/* As few_terms, on panels `width` numbers wide, `panel_step` floats apart. */
RAPT_INLINE void few_stored_terms(vf32 sum[][FEW_STORED_VECTORS], const float *numbers, int64_t row_step,
                                  const float *panel, int width, int panel_step, int rows) {
    vf32 x[FEW_STORED_VECTORS];
    RAPT_UNROLL for (int v = 0; v < FEW_STORED_VECTORS; v++)
        x[v] = v_load(panel + v * VL / width * panel_step + v * VL % width);
    RAPT_UNROLL for (int r = 0; r < rows; r++) {
        const vf32 number = v_splat(numbers[r * row_step]);
        RAPT_UNROLL for (int v = 0; v < FEW_STORED_VECTORS; v++)
            sum[r][v] = v_fma(number, x[v], sum[r][v]);
    }
}

/* Adds some dims of FEW_STORED_VECTORS of keys to the chains of `rows` rows. */
RAPT_INLINE void few_chains(const float *panel, const float *query, int64_t query_step, float *sums, int dims,
                            struct pump *pump, int rows) {
    struct pump own = take_few_pump(pump);
    vf32 sum[FEW_STORED_ROWS][FEW_STORED_VECTORS];
    RAPT_UNROLL for (int r = 0; r < rows; r++)
        RAPT_UNROLL for (int v = 0; v < FEW_STORED_VECTORS; v++)
            sum[r][v] = v_load(sums + r * FEW_STORED_KEYS + v * VL);
    for (; dims >= FEW_UNROLLED; dims -= FEW_UNROLLED) {
        few_lines(&own);
        RAPT_UNROLL for (int i = 0; i < FEW_UNROLLED; i++, panel += STORED_KEYS, query += query_step)
            few_stored_terms(sum, query, 1, panel, STORED_KEYS, FEW_PANEL, rows);
    }
    for (; dims > 0; dims--, panel += STORED_KEYS, query += query_step)
        few_stored_terms(sum, query, 1, panel, STORED_KEYS, FEW_PANEL, rows);
    RAPT_UNROLL for (int r = 0; r < rows; r++)
        RAPT_UNROLL for (int v = 0; v < FEW_STORED_VECTORS; v++)
            v_store(sums + r * FEW_STORED_KEYS + v * VL, sum[r][v]);
    put_pump(pump, &own);
}

typedef void few_chains_of(const float *panel, const float *query, int64_t query_step, float *sums, int dims,
                           struct pump *pump);

#define RAPT_FEW(height)                                                                                         \
    static RAPT_KERNEL void few_chains_##height(const float *panel, const float *query, int64_t query_step,      \
                                                float *sums, int dims, struct pump *pump) {                      \
        if (height <= FEW_STORED_ROWS)                                                                           \
            few_chains(panel, query, query_step, sums, dims, pump, height);                                      \
    }
RAPT_HEIGHTS(RAPT_FEW)
#undef RAPT_FEW

/* Adds some dims of the panels' keys, for all rows. */
static void few_dims(const struct rapt_score_args *a, const float *panels, float *sums, int64_t d, int dims, int used,
                     struct pump *pump) {
#define RAPT_FEW(height) few_chains_##height,
    static few_chains_of *const of_height[] = {RAPT_HEIGHTS(RAPT_FEW)};
#undef RAPT_FEW
    const int tiles = few_stored_tiles(a->rows), width = few_width(a->rows);
    for (int number = 0, row = 0, height; number < tiles; number++, row += height) {
        height = few_height(a->rows, tiles, number);
        for (int k = 0; k < used; k += FEW_STORED_VECTORS * VL)
            of_height[height - 1](panels + k / STORED_KEYS * FEW_PANEL + k % STORED_KEYS,
                                  a->query + d * width + row, width, sums + row * FEW_STORED_KEYS + k, dims,
                                  pump);
    }
}

/* The scores of n <= FEW_STORED_KEYS keys. */
static void few_stored_keys(const struct rapt_score_args *a, const char *key, float *scores, int n,
                            struct pump *pump) {
    _Alignas(64) float panels[FEW_PANELS * FEW_PANEL], sums[RAPT_MAX_TILE_ROWS * FEW_STORED_KEYS];
    const char *keys[FEW_STORED_KEYS];
    static const struct row_scales none = {0}; /* types with scales are staged */
    struct strand_cursor no_strands = {0};
    struct stream no_stream = {.strands = &no_strands}; /* lines are fetched between multiply-adds */
    const int used = (n + VL - 1) / VL * VL;
    for (int k = 0; k < FEW_STORED_KEYS; k++)
        keys[k] = key + (k < n ? k : 0) * a->key_stride_bytes;
    for (int i = 0; i < a->rows * FEW_STORED_KEYS; i += VL)
        v_store(sums + i, v_splat(0));
    if (used < FEW_STORED_KEYS) /* stale memory may hold denormals, which are slow */
        memset(panels, 0, sizeof panels);
    for (int64_t d = 0; d < a->head_dim; d += FEW_DIMS) {
        const int dims = a->head_dim - d < FEW_DIMS ? (int)(a->head_dim - d) : FEW_DIMS;
        for (int k = 0; k < used; k += STORED_KEYS)
            squares_of_format[1][a->key_format](panels + k / STORED_KEYS * FEW_PANEL, keys + k, d, dims,
                                                used - k < STORED_KEYS ? used - k : STORED_KEYS, &none, &no_stream);
        few_dims(a, panels, sums, d, dims, used, pump);
    }
    for (int r = 0; r < a->rows; r++)
        for (int v = 0; v < n; v += VL)
            v_store_n(scores + r * (int64_t)FEW_STRIDE + v,
                      v_mul(v_load(sums + r * FEW_STORED_KEYS + v), v_splat(a->factor)), n - v < VL ? n - v : VL);
}

static void score_few(const struct rapt_score_args *a) {
    assume_score(a, RAPT_MAX_TILE_ROWS);
    if (a->key_format == RAPT_FORMAT_F32) {
        (rows_fill(a->rows) ? score_filled : score_few_floats)(a);
        return;
    }
    const char *key = a->key;
    struct pump pump = few_pump(few_keys(a), a->streams,
                                (int64_t)(a->head_dim / FEW_UNROLLED) * few_stored_tiles(a->rows),
                                FEW_STORED_VECTORS * VL);
    for (int k = a->key_begin; k < a->key_end; k += FEW_STORED_KEYS, key += FEW_STORED_KEYS * a->key_stride_bytes)
        few_stored_keys(a, key, a->scores + k, a->key_end - k < FEW_STORED_KEYS ? a->key_end - k : FEW_STORED_KEYS,
                        &pump);
}

/* ---- values */

/* rows x FEW_STORED_VECTORS of value_dim against float32 values [key_begin, key_end). */
RAPT_INLINE void few_outputs(const struct rapt_weigh_args *a, int row, int64_t d, struct pump *pump, int rows) {
    struct pump own = take_few_pump(pump);
    vf32 sum[FEW_STORED_ROWS][FEW_STORED_VECTORS];
    float *o = a->o + row * a->o_stride + d;
    RAPT_UNROLL for (int r = 0; r < rows; r++)
        RAPT_UNROLL for (int v = 0; v < FEW_STORED_VECTORS; v++) {
            sum[r][v] = a->fresh ? v_splat(0) : v_load(o + r * a->o_stride + v * VL);
        }
    if (!a->fresh && a->alpha)
        RAPT_UNROLL for (int r = 0; r < rows; r++)
            RAPT_UNROLL for (int v = 0; v < FEW_STORED_VECTORS; v++)
                sum[r][v] = v_mul(sum[r][v], v_splat(a->alpha[row + r]));
    const float *p = a->probabilities + (int64_t)row * FEW_STRIDE + a->key_begin;
    const float *value = (const float *)(const void *)a->value + d;
    int left = a->key_end - a->key_begin;
    for (; left >= FEW_UNROLLED; left -= FEW_UNROLLED) {
        few_lines(&own);
        RAPT_UNROLL for (int i = 0; i < FEW_UNROLLED; i++, p++, value += FEW_VALUES)
            few_stored_terms(sum, p, FEW_STRIDE, value, FEW_VALUES, 0, rows);
    }
    for (; left > 0; left--, p++, value += FEW_VALUES)
        few_stored_terms(sum, p, FEW_STRIDE, value, FEW_VALUES, 0, rows);
    RAPT_UNROLL for (int r = 0; r < rows; r++)
        RAPT_UNROLL for (int v = 0; v < FEW_STORED_VECTORS; v++)
            v_store(o + r * a->o_stride + v * VL, sum[r][v]);
    put_pump(pump, &own);
}

typedef void few_outputs_of(const struct rapt_weigh_args *a, int row, int64_t d, struct pump *pump);

#define RAPT_FEW(height)                                                                                         \
    static RAPT_KERNEL void few_outputs_##height(const struct rapt_weigh_args *a, int row, int64_t d,            \
                                                 struct pump *pump) {                                            \
        if (height <= FEW_STORED_ROWS)                                                                           \
            few_outputs(a, row, d, pump, height);                                                                \
    }
RAPT_HEIGHTS(RAPT_FEW)
#undef RAPT_FEW

/* Widened values; leftover dims go by single vectors. */
static void few_weigh_part(const struct rapt_weigh_args *a, struct pump *pump) {
#define RAPT_FEW(height) few_outputs_##height,
    static few_outputs_of *const of_height[] = {RAPT_HEIGHTS(RAPT_FEW)};
#undef RAPT_FEW
    const int tiles = few_stored_tiles(a->rows);
    int64_t d = 0;
    for (; a->value_dim - d >= FEW_STORED_VECTORS * VL; d += FEW_STORED_VECTORS * VL)
        for (int number = 0, row = 0, height; number < tiles; number++, row += height) {
            height = few_height(a->rows, tiles, number);
            of_height[height - 1](a, row, d, pump);
        }
    for (; d < a->value_dim; d += VL)
        weigh_few_1(a, d, width_of_panel(a, d, 1));
}

/* Numbers [0, dims) of some rows. */
typedef void few_widener(float *into, const char *from, int64_t stride_bytes, int rows, int dims);

#define RAPT_STORED(name, NAME)                                                                                  \
    static RAPT_KERNEL void few_widen_##name(float *into, const char *from, int64_t stride_bytes, int rows,      \
                                             int dims) {                                                         \
        for (; rows > 0; rows--, from += stride_bytes, into += FEW_VALUES)                                       \
            stage_stored(RAPT_FORMAT_##NAME, into, from, dims);                                                  \
    }
RAPT_FEW_FORMATS(RAPT_STORED)
#undef RAPT_STORED

/* Some values, at most FEW_VALUES dims of them at a time. */
static void few_weigh_values(const struct rapt_weigh_args *a, struct pump *pump) {
    static few_widener *const of_format[RAPT_FORMAT_COUNT] = {
#define RAPT_STORED(name, NAME) [RAPT_FORMAT_##NAME] = few_widen_##name,
        RAPT_FEW_FORMATS(RAPT_STORED)
#undef RAPT_STORED
    };
    _Alignas(64) float values[FEW_VALUES * FEW_VALUES];
    struct rapt_weigh_args part = *a;
    part.value = (const char *)values;
    part.value_stride_bytes = FEW_VALUES * sizeof(float);
    for (int64_t d = 0; d < a->value_dim; d += FEW_VALUES) {
        part.value_dim = a->value_dim - d < FEW_VALUES ? (int)(a->value_dim - d) : FEW_VALUES;
        part.o = a->o + d;
        of_format[a->value_format](values, stored_block(a->value_format, a->value, d), a->value_stride_bytes,
                                   a->key_end - a->key_begin, part.value_dim);
        few_weigh_part(&part, pump);
    }
}

static void weigh_few(const struct rapt_weigh_args *args) {
    assume_weigh(args, RAPT_MAX_TILE_ROWS);
    if (args->value_format == RAPT_FORMAT_F32) {
        weigh_few_floats(args);
        return;
    }
    struct rapt_weigh_args a = *args;
    struct pump pump =
        few_pump(few_values(&a), a.streams,
                 (int64_t)(a.value_dim / (FEW_STORED_VECTORS * VL)) * few_stored_tiles(a.rows), FEW_UNROLLED);
    a.probabilities += (int64_t)a.first_row * FEW_STRIDE;
    a.spans = NULL;
    a.errands = NULL;
    do {
        a.key_end = args->key_end - a.key_begin < FEW_VALUES ? args->key_end : a.key_begin + FEW_VALUES;
        run_errands(args->errands, SOFTMAX_LINES);
        few_weigh_values(&a, &pump);
        a.value += (a.key_end - a.key_begin) * a.value_stride_bytes;
        a.key_begin = a.key_end;
        a.fresh = false;
        a.alpha = NULL;
    } while (a.key_begin < args->key_end);
}

#endif
