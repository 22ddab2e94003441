/* SPDX-License-Identifier: MIT
 * Scores of keys in stored form: some keys and dims at a time are widened and transposed into a panel that stays in L1,
 * once for all rows. The two halves of a step are separate functions, per format and per number of rows; processors
 * overlap one step with the next. */
#ifndef RAPT_GENERIC_SCORE_STORED_H
#define RAPT_GENERIC_SCORE_STORED_H

#include "generic/filled.h"

enum {
    STORED_KEYS = FEED_KEYS, /* of a panel */
    STORED_DIMS = 32         /* of a panel, at most */
};

/* [width][STORED_KEYS] of VL rows from d on; prefetches as many bytes as it reads, or a few more. */
RAPT_INLINE void stored_square(int format, float *panel, const char *const *rows, int64_t d, int width,
                               vf32 scale, struct stream *stream) {
    const int lines = stored_lines(format, VL * VL);
    vf32 lanes[VL];
    RAPT_UNROLL for (int i = 0; i < VL; i++)
        lanes[i] = width == VL ? v_load_stored(format, rows[i], d) : v_load_stored_rest(format, rows[i], d, width);
    v_transpose(lanes);
    RAPT_UNROLL for (int i = 0; i < VL; i++) {
        stream_line(stream, i, lines, VL);
        if (i < width)
            v_store(panel + i * STORED_KEYS, is_scaled(format) ? v_mul(lanes[i], scale) : lanes[i]);
    }
}

/* The same for 2 * VL numbers, float16 or float8 widened to it, transposed first: conversions read memory as fast as
 * registers. */
RAPT_INLINE void stored_f16(int format, float *panel, const char *const *rows, int64_t d, vf32 scale,
                            struct stream *stream) {
    const int lines = stored_lines(format, 2 * VL * VL);
    _Alignas(64) uint16_t f16[2 * VL * VL], widened[VL][2 * VL];
    if (is_float8(format)) {
        const char *row[VL];
        RAPT_UNROLL for (int i = 0; i < VL; i++) {
            v_f16_of_float8(format, widened[i], rows[i] + d);
            row[i] = (const char *)widened[i];
        }
        v_transpose_shorts(f16, row, 0);
    } else {
        v_transpose_shorts(f16, rows, 2 * d);
    }
    RAPT_UNROLL for (int i = 0; i < 2 * VL; i++) {
        stream_line(stream, i, lines, 2 * VL);
        const vf32 number = v_load_f16(f16 + i * VL);
        v_store(panel + i * STORED_KEYS, is_scaled(format) ? v_mul(number, scale) : number);
    }
}

/* The same for 2 * VL bfloat16, transposed as pairs. */
RAPT_INLINE void stored_pairs(float *panel, const char *const *rows, int64_t d, struct stream *stream) {
    const int lines = stored_lines(RAPT_FORMAT_BF16, 2 * VL * VL);
    vf32 lanes[VL];
    RAPT_UNROLL for (int i = 0; i < VL; i++)
        lanes[i] = v_load((const float *)(const void *)(rows[i] + d * 2));
    v_transpose(lanes);
    RAPT_UNROLL for (int i = 0; i < VL; i++) {
        stream_line(stream, i, lines, VL);
        v_store(panel + 2 * i * STORED_KEYS, v_even_bf16(lanes[i]));
        v_store(panel + (2 * i + 1) * STORED_KEYS, v_odd_bf16(lanes[i]));
    }
}

/* Blocks of VL rows, which have their own scales, or int8. */
RAPT_INLINE void stored_blocks(int format, float *panel, const char *const *rows, int64_t d, vf32 scale,
                               struct stream *stream) {
    const int lines = stored_lines(format, STORED_STEP * VL);
    const struct blocks blocks = load_blocks(format, rows, rapt_format_row_bytes(format, d), scale);
    RAPT_UNROLL for (int i = 0; i < STORED_STEP; i++) {
        stream_line(stream, i, lines, STORED_STEP);
        v_store(panel + i * STORED_KEYS, number_of_blocks(format, &blocks, i));
    }
}

/* Widens the first `used` rows. scales: of formats that have some. */
typedef void stored_squares(float *panel, const char *const *rows, int64_t d, int dims, int used,
                            const struct row_scales *scales, struct stream *stream);

/* has_strands: a compile-time constant, which avoids tests at each prefetch. */
RAPT_INLINE void squares_of(int format, bool has_strands, float *panel, const char *const *rows, int64_t d, int dims,
                            int used, const struct row_scales *scales, struct stream *stream) {
    const bool folds = !is_scaled(format) || scales->exact;
    const float *plain = scales->plain, *folded = scales->folded;
    struct stream own = take_stream(stream);
    int i = 0;
    if (has_strands != (own.strands != NULL) || own.turns)
        __builtin_unreachable();
    if (has_strands)
        fetch_strands(own.strands, used / VL * stored_lines(format, VL * STORED_DIMS));
    for (; (is_of_bytes(format) || is_of_nibbles(format)) && folds && dims - i >= STORED_STEP; i += STORED_STEP)
        for (int v = 0; v < used; v += VL)
            stored_blocks(format, panel + i * STORED_KEYS + v, rows + v, d + i, v_load(folded + v), &own);
    for (; (format == RAPT_FORMAT_F16 || is_float8(format)) && folds && dims - i >= 2 * VL; i += 2 * VL)
        for (int v = 0; v < used; v += VL)
            stored_f16(format, panel + i * STORED_KEYS + v, rows + v, d + i, v_load(folded + v), &own);
    for (; format == RAPT_FORMAT_BF16 && VL > 1 && dims - i >= 2 * VL; i += 2 * VL)
        for (int v = 0; v < used; v += VL)
            stored_pairs(panel + i * STORED_KEYS + v, rows + v, d + i, &own);
    for (; dims - i >= VL; i += VL)
        for (int v = 0; v < used; v += VL)
            stored_square(format, panel + i * STORED_KEYS + v, rows + v, d + i, VL, v_load(plain + v), &own);
    for (int v = 0; i < dims && v < used; v += VL)
        stored_square(format, panel + i * STORED_KEYS + v, rows + v, d + i, dims - i, v_load(plain + v), &own);
    put_stream(stream, &own);
}

#define RAPT_SQUARES(name, NAME, suffix, has_strands)                                                            \
    static RAPT_KERNEL void squares_##name##suffix(float *panel, const char *const *rows, int64_t d, int dims,   \
                                                   int used, const struct row_scales *scales,                    \
                                                   struct stream *stream) {                                      \
        if (has_strands || !RAPT_IS_OF_WORDS(RAPT_FORMAT_##NAME)) /* few always has strands */                   \
            squares_of(RAPT_FORMAT_##NAME, has_strands, panel, rows, d, dims, used, scales, stream);             \
    }
#define RAPT_STORED(name, NAME) RAPT_SQUARES(name, NAME, , false) RAPT_SQUARES(name, NAME, _of_strands, true)
RAPT_STORED_FORMATS(RAPT_STORED)
#undef RAPT_STORED
#undef RAPT_SQUARES

/* [has strands][format] */
static stored_squares *const squares_of_format[2][RAPT_FORMAT_COUNT] = {
#define RAPT_STORED(name, NAME)                                                                                  \
    [0][RAPT_FORMAT_##NAME] = squares_##name, [1][RAPT_FORMAT_##NAME] = squares_##name##_of_strands,
    RAPT_STORED_FORMATS(RAPT_STORED)
#undef RAPT_STORED
};

/* Adds the dims of a panel to the chains of some rows and vectors of keys. */
RAPT_INLINE void stored_chains(const float *panel, const float *query, float *sums, int dims, int rows, int vectors) {
    vf32 sum[FEW_ROWS][NARROW_VECTORS];
    RAPT_UNROLL for (int r = 0; r < rows; r++)
        RAPT_UNROLL for (int v = 0; v < vectors; v++)
            sum[r][v] = v_load(sums + r * STORED_KEYS + v * VL);
    for (; dims > 0; dims--, panel += STORED_KEYS, query += rows) {
        vf32 x[NARROW_VECTORS];
        RAPT_UNROLL for (int v = 0; v < vectors; v++)
            x[v] = v_load(panel + v * VL);
        RAPT_UNROLL for (int r = 0; r < rows; r++) {
            const vf32 q = v_splat(query[r]);
            RAPT_UNROLL for (int v = 0; v < vectors; v++)
                sum[r][v] = v_fma(q, x[v], sum[r][v]);
        }
    }
    RAPT_UNROLL for (int r = 0; r < rows; r++)
        RAPT_UNROLL for (int v = 0; v < vectors; v++)
            v_store(sums + r * STORED_KEYS + v * VL, sum[r][v]);
}

/* FMAs of a chain are serial, so few rows take all keys of a panel at once. */
RAPT_INLINE int vectors_of_chains(int rows) { return rows * NARROW_VECTORS <= 2 * FEW_ROWS ? NARROW_VECTORS : 2; }

typedef void stored_chains_of(const float *panel, const float *query, float *sums, int dims);

#define RAPT_CHAINS(height)                                                                                      \
    static RAPT_KERNEL void stored_chains_##height(const float *panel, const float *query, float *sums,          \
                                                   int dims) {                                                   \
        if (height <= NARROW_ROWS)                                                                               \
            stored_chains(panel, query, sums, dims, height, vectors_of_chains(height));                          \
    }
RAPT_HEIGHTS(RAPT_CHAINS)
#undef RAPT_CHAINS

/* The scores of n <= STORED_KEYS keys, from row `first` of those of the call on. */
static void score_stored_keys(const struct rapt_score_args *a, struct feed *feed, int first, float *scores, int n) {
#define RAPT_CHAINS(height) stored_chains_##height,
    static stored_chains_of *const of_height[] = {RAPT_HEIGHTS(RAPT_CHAINS)};
#undef RAPT_CHAINS
    _Alignas(64) float panel[STORED_DIMS * STORED_KEYS], sums[NARROW_ROWS * STORED_KEYS];
    const char *keys[STORED_KEYS];
    struct row_scales row_scales;
    const int used = (n + VL - 1) / VL * VL, step = vectors_of_chains(a->rows) * VL;
    for (int i = 0; i < a->rows * STORED_KEYS; i += VL)
        v_store(sums + i, v_splat(0));
    for (int v = used; v < STORED_KEYS; v += VL) /* stale memory may hold denormals, which are slow */
        for (int i = 0; i < STORED_DIMS; i++)
            v_store(panel + i * STORED_KEYS + v, v_splat(0));
    if (is_scaled(a->key_format))
        load_row_scales(&row_scales, &a->scales, first, n,
                        a->key_format == RAPT_FORMAT_I8 ? scale_of_bytes : scale_of_f16(a->key_format));
    struct stream stream = feed_keys(feed, a, a->key_format, keys, n, STORED_KEYS);
    for (int64_t d = 0; d < a->head_dim; d += STORED_DIMS) {
        const int dims = a->head_dim - d < STORED_DIMS ? (int)(a->head_dim - d) : STORED_DIMS;
        squares_of_format[stream.strands != NULL][a->key_format](panel, keys, d, dims, used, &row_scales, &stream);
        for (int k = 0; k < used; k += step)
            of_height[a->rows - 1](panel + k, a->query + d * a->rows, sums + k, dims);
    }
    for (int r = 0; r < a->rows; r++)
        for (int v = 0; v < n; v += VL)
            v_store_n(scores + r * RAPT_BLOCK_KEYS + v, v_mul(v_load(sums + r * STORED_KEYS + v), v_splat(a->factor)),
                      n - v < VL ? n - v : VL);
}

static void score_narrow(const struct rapt_score_args *a) {
    assume_score(a, NARROW_MOST);
    if (RAPT_IS_FILLED(a->rows)) {
        score_narrow_filled(a);
        return;
    }
    if (RAPT_IS_OF_WORDS(a->key_format)) {
        score_narrow_words(a);
        return;
    }
    struct feed feed;
    open_feed(&feed, a);
    for (int k = a->key_begin; k < a->key_end; k += STORED_KEYS) {
        const int left = a->key_end - k;
        score_stored_keys(a, &feed, k - a->key_begin, a->scores + k, left < STORED_KEYS ? left : STORED_KEYS);
    }
}

#endif
