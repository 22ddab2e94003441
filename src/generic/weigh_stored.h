/* SPDX-License-Identifier: MIT
 * Values of narrow tiles, types other than float32 widened in registers, once for all rows. */
#ifndef RAPT_GENERIC_WEIGH_STORED_H
#define RAPT_GENERIC_WEIGH_STORED_H

#include "generic/float8.h"
#include "generic/weigh.h"

enum {
    STORED_AHEAD = 2 * WEIGH_AHEAD,        /* values at a time: they take half of the room or less */
    REST_DIMS = 2 * VL > 64 ? 2 * VL : 64, /* at a time, of what fills no panel */
    STORED_HALF = STORED_STEP / 2          /* of a block */
};

/* Read as words of two numbers: of each two vectors the first holds even dims, the second odd ones. One number alone
 * may lie where no word may. */
RAPT_INLINE bool is_in_pairs(int format, int vectors) {
    return ((VL > 1 && format == RAPT_FORMAT_BF16) || is_looked_up(format)) && vectors > 1;
}

RAPT_INLINE void load_dims(int format, vf32 *x, const float *from, int vectors) {
    RAPT_UNROLL for (int v = 0; v < vectors; v++)
        x[v] = v_load(from + v * VL);
    if (!is_in_pairs(format, vectors))
        return;
    RAPT_UNROLL for (int v = 0; v < vectors; v += 2) {
        const vf32 low = x[v], high = x[v + 1];
        x[v] = v_evens(low, high);
        x[v + 1] = v_odds(low, high);
    }
}

RAPT_INLINE void store_dims(int format, float *into, const vf32 *x, int vectors) {
    RAPT_UNROLL for (int v = 0; v < vectors; v += is_in_pairs(format, vectors) ? 2 : 1) {
        v_store(into + v * VL, is_in_pairs(format, vectors) ? v_zip_low(x[v], x[v + 1]) : x[v]);
        if (is_in_pairs(format, vectors))
            v_store(into + (v + 1) * VL, v_zip_high(x[v], x[v + 1]));
    }
}

/* Some vectors of a row from number `first` of a block on, before scaling. width: of a single vector, less than VL in
 * float32 only. */
RAPT_INLINE void load_stored(int format, const struct float8_table *table, vf32 *x, const char *block, int first,
                             int vectors, int width) {
    _Alignas(64) uint16_t f16[8 * VL];
    if (is_looked_up(format)) {
        load_float8(table, x, (const uint8_t *)block + first, vectors);
        return;
    }
    if (vectors == 1) {
        x[0] = width == VL ? v_load_stored(format, block, first) : v_load_n(row_at(block, 0, 0), width);
        return;
    }
    if (is_in_pairs(format, vectors)) {
        RAPT_UNROLL for (int v = 0; v < vectors; v += 2) {
            const vf32 words = v_load(row_at(block, 0, 0) + v * VL / 2);
            x[v] = v_even_bf16(words);
            x[v + 1] = v_odd_bf16(words);
        }
        return;
    }
    RAPT_UNROLL for (int v = 0; v < vectors; v += 2) {
        if (is_float8(format))
            v_f16_of_float8(format, f16 + v * VL, block + first + v * VL);
    }
    RAPT_UNROLL for (int v = 0; v < vectors; v++)
        x[v] = is_float8(format) ? v_load_f16(f16 + v * VL) : v_load_stored(format, block, first + v * VL);
}

/* Adds a value, which has number `key` in p and scales. */
RAPT_INLINE void stored_value(int format, const struct float8_table *table, vf32 sum[][8], const float *p,
                              const float *scales, const char *value, struct pump *pump, int key, int rows,
                              int vectors, int first, int width) {
    const int steps = rows * vectors;
    vf32 x[8];
    load_stored(format, table, x, value, first, vectors, width);
    if (is_scaled(format)) {
        const vf32 scale = v_splat(scales[key]);
        RAPT_UNROLL for (int v = 0; v < vectors; v++)
            x[v] = v_mul(x[v], scale);
    }
    RAPT_UNROLL for (int r = 0; r < rows; r++) {
        const vf32 weight = v_splat(p[r * RAPT_BLOCK_KEYS + key]);
        RAPT_UNROLL for (int v = 0; v < vectors; v++) {
            if (pump->in_turns)
                pump_value_line(pump, key * steps + r * vectors + v, whole_lines(format, 2 * vectors * VL), 2 * steps);
            else
                pump_value_line(pump, key * steps + r * vectors + v, stored_lines(format, vectors * VL), steps);
            sum[r][v] = v_fma(weight, x[v], sum[r][v]);
        }
    }
}

/* Adds `count` values at the stride, two at a time, since each may have an odd number of lines. p, scales: of the first
 * row. */
RAPT_INLINE void stored_values(int format, const struct rapt_weigh_args *a, vf32 sum[][8], const float *p,
                               const float *scales, const char *value, int count, struct pump *pump, int rows,
                               int vectors, int first, int width) {
    const struct float8_table *table = float8_table_of(a->value_format);
    for (; count >= 2; count -= 2, p += 2, scales += is_scaled(format) ? 2 : 0) {
        RAPT_UNROLL for (int key = 0; key < 2; key++, value += a->value_stride_bytes)
            stored_value(format, table, sum, p, scales, value, pump, key, rows, vectors, first, width);
    }
    if (count > 0)
        stored_value(format, table, sum, p, scales, value, pump, 0, rows, vectors, first, width);
}

/* The next keys within one run, at most `keys`; few where lines are fetched between them. */
RAPT_INLINE int run_of(const struct walk *walk, int keys, const struct pump *pump) {
    enum { BETWEEN = 4 };
    const int most = pump->strands && keys > BETWEEN ? BETWEEN : keys;
    return most < walk->left ? most : (int)walk->left;
}

/* Requests of panels with less than a line per two values. */
static RAPT_KERNEL void request_lines(struct turn_requests *turns, bool of_values, int lines) {
    for (; lines > 0; lines--)
        request_line(turns, of_values);
}

/* rows x vectors of dims from d on, as in weigh_panel; prefetches the lines of as many values. first: number d in
 * its block. in_turns: the pump's, a compile-time constant. */
RAPT_INLINE void stored_panel(int format, const struct rapt_weigh_args *a, int64_t d, const float *scales,
                              struct pump *pump, int rows, int vectors, int first, bool in_turns) {
    const int lines = whole_lines(format, 2 * vectors * VL), keys = a->key_end - a->key_begin;
    const int64_t line = 2 * rapt_format_row_bytes(format, d) / 64; /* of two rows, those before d */
    const bool ends_line = 2 * rapt_format_row_bytes(format, d + vectors * VL) / 64 > line;
    const bool begins = !in_turns || lines != 1 || ends_line;
    const bool is_exchanged = in_turns && lines == 1 && line % 2; /* lines of keys and values in turns */
    struct pump own = take_pump(pump, in_turns);
    if (in_turns && lines == 0 && ends_line && pump->turns.of_heads)
        request_lines(&pump->turns, line % 2, keys / 2);
    if (!begins)
        own = idle_pump(a->value), own.in_turns = in_turns;
    else if (is_exchanged)
        own.turns = requests_exchanged(&pump->turns);
    own.turns.paces = in_turns && is_paced(format, rows);
    vf32 sum[12][8];
    float *o = a->o + d;
    const int width = a->value_dim - d < VL ? (int)(a->value_dim - d) : VL;
    RAPT_UNROLL for (int r = 0; r < rows; r++) {
        if (!a->fresh)
            load_dims(format, sum[r], o + r * a->o_stride, vectors);
        else
            RAPT_UNROLL for (int v = 0; v < vectors; v++)
                sum[r][v] = v_splat(0);
    }
    if (!a->fresh && a->alpha)
        RAPT_UNROLL for (int r = 0; r < rows; r++)
            RAPT_UNROLL for (int v = 0; v < vectors; v++)
                sum[r][v] = v_mul(sum[r][v], v_splat(a->alpha[r]));
    const float *p = a->probabilities + a->key_begin;
    struct walk walk = walk_of(a->value, a->value_rows, a->runs);
    if (in_turns) /* one run */
        stored_values(format, a, sum, p, scales, stored_block(format, a->value, d), keys, &own, rows, vectors, first,
                      width);
    for (int key = 0, run; !in_turns && key < keys; key += run) {
        run = run_of(&walk, keys - key, pump);
        if (pump->strands)
            fetch_strands(pump->strands, run * stored_lines(format, vectors * VL));
        stored_values(format, a, sum, p + key, is_scaled(format) ? scales + key : NULL,
                      stored_block(format, walk.row, d), run, &own, rows, vectors, first, width);
        walk_advance(&walk, run, a->value_stride_bytes);
    }
    RAPT_UNROLL for (int r = 0; r < rows; r++)
        store_dims(format, o + r * a->o_stride, sum[r], vectors);
    if (is_exchanged)
        own.turns = requests_exchanged(&own.turns);
    if (begins && (!in_turns || lines > 0)) /* else the pump itself went on, or nothing did */
        put_pump(pump, &own);
}

typedef void stored_weigher(const struct rapt_weigh_args *a, int64_t d, const float *scales, struct pump *pump);

/* The fewer the rows, the more vectors it takes to fill the registers. */
#define RAPT_STORED_PANELS(X, name, NAME)                                                                        \
    X(name, NAME, 1, 8) X(name, NAME, 1, 4) X(name, NAME, 2, 4) X(name, NAME, 3, 4) X(name, NAME, 4, 4)          \
    X(name, NAME, 5, 4) X(name, NAME, 6, 4) X(name, NAME, 1, 2) X(name, NAME, 2, 2) X(name, NAME, 3, 2)          \
    X(name, NAME, 4, 2) X(name, NAME, 5, 2) X(name, NAME, 6, 2) X(name, NAME, 7, 2) X(name, NAME, 8, 2)          \
    X(name, NAME, 9, 2) X(name, NAME, 10, 2) X(name, NAME, 11, 2) X(name, NAME, 12, 2)                           \
    X(name, NAME, 1, 1) X(name, NAME, 2, 1) X(name, NAME, 3, 1) X(name, NAME, 4, 1) X(name, NAME, 5, 1)          \
    X(name, NAME, 6, 1) X(name, NAME, 7, 1) X(name, NAME, 8, 1) X(name, NAME, 9, 1) X(name, NAME, 10, 1)         \
    X(name, NAME, 11, 1) X(name, NAME, 12, 1)

/* 4 vectors of up to 3 rows on all instruction sets. */
#define RAPT_FITS_REGISTERS(rows, vectors)                                                                       \
    ((rows) <= 3 || (vectors) <= 2 || (FEW_STORED_VECTORS >= (vectors) && (rows) <= FEW_STORED_ROWS))

/* Float8 without tables becomes float16 two vectors at a time; its scales absorb their unit. */
#define RAPT_IS_BY_TWO(format)                                                                                   \
    (!RAPT_LOOKS_UP_BYTES && ((format) == RAPT_FORMAT_F8_E4M3 || (format) == RAPT_FORMAT_F8_E5M2))

/* Whether there are panels of so many vectors. Blocks come by halves, and no single vector of them is ever left. */
#define RAPT_HAS_PANEL(NAME, rows, vectors)                                                                      \
    (RAPT_FITS_REGISTERS(rows, vectors) &&                                                                       \
     (RAPT_ELEMENTS_##NAME == 1 ? (vectors) > 1 || !RAPT_IS_BY_TWO(RAPT_FORMAT_##NAME)                           \
                                : (vectors) > 1 && (vectors) * VL % STORED_HALF == 0))

#define RAPT_PANEL_FROM(NAME, height, vectors, first)                                                            \
    {                                                                                                            \
        if ((height) <= BESIDE_##NAME && pump->in_turns)                                                         \
            stored_panel(RAPT_FORMAT_##NAME, a, d, scales, pump, height, vectors, first, true);                  \
        else                                                                                                     \
            stored_panel(RAPT_FORMAT_##NAME, a, d, scales, pump, height, vectors, first, false);                 \
    }
#define RAPT_PANEL(name, NAME, height, vectors)                                                                  \
    static RAPT_KERNEL void weigh_##name##_##height##_##vectors(const struct rapt_weigh_args *a, int64_t d,      \
                                                                const float *scales, struct pump *pump) {        \
        if (!RAPT_IS_NARROW(RAPT_FORMAT_##NAME, height) || !RAPT_HAS_PANEL(NAME, height, vectors))               \
            return;                                                                                              \
        if ((vectors) * VL != STORED_HALF || d % RAPT_ELEMENTS_##NAME == 0)                                      \
            RAPT_PANEL_FROM(NAME, height, vectors, 0)                                                            \
        else                                                                                                     \
            RAPT_PANEL_FROM(NAME, height, vectors, STORED_HALF)                                                  \
    }
#define RAPT_STORED(name, NAME) RAPT_STORED_PANELS(RAPT_PANEL, name, NAME)
RAPT_STORED(f32, F32)
RAPT_STORED_FORMATS(RAPT_STORED)
#undef RAPT_STORED
#undef RAPT_PANEL
#undef RAPT_PANEL_FROM

enum { PANEL_VECTORS = 9 }; /* more than a panel has */

static stored_weigher *const weigher_of[RAPT_FORMAT_COUNT][13][PANEL_VECTORS] = {
#define RAPT_PANEL(name, NAME, height, vectors)                                                                  \
    [RAPT_FORMAT_##NAME][height][vectors] =                                                                      \
        RAPT_HAS_PANEL(NAME, height, vectors) ? weigh_##name##_##height##_##vectors : NULL,
#define RAPT_STORED(name, NAME) RAPT_STORED_PANELS(RAPT_PANEL, name, NAME)
    RAPT_STORED(f32, F32) RAPT_STORED_FORMATS(RAPT_STORED)
#undef RAPT_STORED
#undef RAPT_PANEL
};

/* The function of panels of so many vectors; NULL where there is none. */
RAPT_INLINE stored_weigher *weigher_for(const struct rapt_weigh_args *a, int vectors) {
    return weigher_of[kernel_format(a->value_format)][a->rows][vectors];
}

/* Least dims of a panel: only float32 is read in place for less than a vector. */
RAPT_INLINE int least_dims(const struct rapt_weigh_args *a, int vectors) {
    return vectors == 1 && a->value_format == RAPT_FORMAT_F32 ? 1 : vectors * VL;
}

/* The dims of panels: returns where they end. */
static int64_t weigh_panels(const struct rapt_weigh_args *a, const float *scales, struct pump *pump) {
    int64_t d = 0;
    for (int vectors = 8; vectors >= 1; vectors /= 2) {
        stored_weigher *weigh = weigher_for(a, vectors);
        for (; weigh && a->value_dim - d >= least_dims(a, vectors); d += vectors * VL)
            weigh(a, d, scales, pump);
    }
    return d;
}

/* Of a row from d on; 0 where dims before d fetched a line it shares. */
RAPT_INLINE int lines_of_rest(int format, int64_t d, int dims) {
    return rapt_format_row_bytes(format, d) % 64 == 0 ? stored_lines(format, dims) : 0;
}

RAPT_INLINE void fetch_beside_rest(struct pump *pump, int lines) {
    if (pump->strands)
        fetch_strands(pump->strands, lines);
    else
        for (; lines > 0; lines--)
            pump_line(pump);
}

/* Leftover dims: widened into L1, for all rows. */
static void weigh_rest(const struct rapt_weigh_args *a, int64_t d, struct pump *pump) {
    _Alignas(64) float values[STORED_AHEAD * REST_DIMS];
    struct rapt_weigh_args part = *a;
    struct pump idle = idle_pump(a->value);
    part.value = (const char *)values;
    part.value_format = RAPT_FORMAT_F32;
    part.runs = NULL;
    for (int dims; d < a->value_dim; d += dims) {
        struct walk walk = walk_of(a->value, a->value_rows, a->runs);
        dims = a->value_dim - d < REST_DIMS ? (int)(a->value_dim - d) : REST_DIMS;
        part.value_dim = dims;
        part.value_stride_bytes = part.value_dim * (int64_t)sizeof(float);
        part.o = a->o + d;
        const int lines = lines_of_rest(a->value_format, d, dims);
        for (int key = 0; key < a->key_end - a->key_begin; key++) {
            stage_row[a->value_format](values + key * dims, stored_block(a->value_format, walk.row, d), dims,
                                       &a->scales, key);
            walk_advance(&walk, 1, a->value_stride_bytes);
            fetch_beside_rest(pump, lines);
        }
        weigh_panels(&part, NULL, &idle);
    }
}

#endif
