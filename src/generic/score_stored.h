/* SPDX-License-Identifier: MIT
 * Scores of keys that are read as they are stored: some keys and dims at a time are widened and transposed into a panel
 * that stays in L1, once for all rows. Both halves of a step are functions of their own, by format and by number of
 * rows, and processors run the one of the next step beside that of this one. */
#ifndef RAPT_GENERIC_SCORE_STORED_H
#define RAPT_GENERIC_SCORE_STORED_H

#include "generic/score.h"

enum {
    STORED_KEYS = NARROW_VECTORS * VL, /* of a panel */
    STORED_DIMS = 32                   /* of a panel, at most */
};

/* [width][STORED_KEYS] of VL rows from d on; prefetches as many bytes as it reads, or a few more. */
RAPT_INLINE void stored_square(int format, float *panel, const char *const *rows, int64_t d, int width,
                               struct stream *stream) {
    const int lines = stored_lines(format, VL * VL);
    vf32 lanes[VL];
    RAPT_UNROLL for (int i = 0; i < VL; i++)
        lanes[i] = width == VL ? v_load_stored(format, rows[i], d) : v_load_stored_rest(format, rows[i], d, width);
    v_transpose(lanes);
    RAPT_UNROLL for (int i = 0; i < VL; i++) {
        if (i * lines % VL < lines)
            stream_line(stream);
        if (i < width)
            v_store(panel + i * STORED_KEYS, lanes[i]);
    }
}

/* The same of 2 * VL halves, transposed as they are: conversions read memory as fast as registers. */
RAPT_INLINE void stored_halves(float *panel, const char *const *rows, int64_t d, struct stream *stream) {
    const int lines = stored_lines(RAPT_FORMAT_F16, 2 * VL * VL);
    _Alignas(64) uint16_t halves[2 * VL * VL];
    v_transpose_halves(halves, rows, 2 * d);
    RAPT_UNROLL for (int i = 0; i < 2 * VL; i++) {
        if (i * lines % (2 * VL) < lines)
            stream_line(stream);
        v_store(panel + i * STORED_KEYS, v_load_half(halves + i * VL));
    }
}

/* The same of 2 * VL numbers of bfloat16, transposed as pairs. */
RAPT_INLINE void stored_pairs(float *panel, const char *const *rows, int64_t d, struct stream *stream) {
    const int lines = stored_lines(RAPT_FORMAT_BF16, 2 * VL * VL);
    const float *pairs[VL];
    vf32 lanes[VL];
    RAPT_UNROLL for (int i = 0; i < VL; i++)
        pairs[i] = (const float *)(const void *)(rows[i] + d * 2);
    v_load_square(lanes, pairs, 0);
    RAPT_UNROLL for (int i = 0; i < VL; i++) {
        RAPT_UNROLL for (int line = 0; line < lines / VL; line++)
            stream_line(stream);
        if (i * (lines % VL) % VL < lines % VL)
            stream_line(stream);
        v_store(panel + 2 * i * STORED_KEYS, v_even_bf16(lanes[i]));
        v_store(panel + (2 * i + 1) * STORED_KEYS, v_odd_bf16(lanes[i]));
    }
}

/* Blocks of a scale and 32 int8 or nibbles, of VL rows: their bytes are transposed as words. */
RAPT_INLINE void stored_blocks(int format, float *panel, const char *const *rows, int64_t d, struct stream *stream) {
    const int lines = stored_lines(format, STORED_STEP * VL), words = format == RAPT_FORMAT_Q8_0 ? 8 : 4;
    const char *block[VL];
    vbits word[8];
    RAPT_UNROLL for (int i = 0; i < VL; i++)
        block[i] = stored_block(format, rows[i], d);
    const vf32 unit = v_splat(format == RAPT_FORMAT_Q8_0 ? 0x1p-24f : 1), scale = v_mul(v_load_halves(block, 0), unit);
    for (int c = 0; c < words; c += 4)
        v_load_words(word + c, block, 2 + 4 * c);
    RAPT_UNROLL for (int i = 0; i < STORED_STEP; i++) {
        const int c = i % (4 * words) / 4, k = i % 4;
        const vf32 number = format == RAPT_FORMAT_Q8_0
                                ? v_byte_of(word[c], k)
                                : v_nibble_of(word[c], 8 * k + i / 16 * 4, codes_of_q4_0);
        if (i * lines % STORED_STEP < lines)
            stream_line(stream);
        v_store(panel + i * STORED_KEYS, v_mul(number, scale));
    }
}

typedef void stored_squares(float *panel, const char *const *rows, int64_t d, int dims, int used,
                            struct stream *stream);

RAPT_INLINE bool is_of_blocks(int format) { return format == RAPT_FORMAT_Q8_0 || format == RAPT_FORMAT_Q4_0; }

RAPT_INLINE void squares_of(int format, float *panel, const char *const *rows, int64_t d, int dims, int used,
                            struct stream *stream) {
    struct stream own = *stream;
    int i = 0;
    for (; is_of_blocks(format) && dims - i >= STORED_STEP; i += STORED_STEP)
        for (int v = 0; v < used; v += VL)
            stored_blocks(format, panel + i * STORED_KEYS + v, rows + v, d + i, &own);
    for (; format == RAPT_FORMAT_F16 && dims - i >= 2 * VL; i += 2 * VL)
        for (int v = 0; v < used; v += VL)
            stored_halves(panel + i * STORED_KEYS + v, rows + v, d + i, &own);
    for (; format == RAPT_FORMAT_BF16 && VL > 1 && dims - i >= 2 * VL; i += 2 * VL)
        for (int v = 0; v < used; v += VL)
            stored_pairs(panel + i * STORED_KEYS + v, rows + v, d + i, &own);
    for (; dims - i >= VL; i += VL)
        for (int v = 0; v < used; v += VL)
            stored_square(format, panel + i * STORED_KEYS + v, rows + v, d + i, VL, &own);
    for (int v = 0; i < dims && v < used; v += VL)
        stored_square(format, panel + i * STORED_KEYS + v, rows + v, d + i, dims - i, &own);
    *stream = own;
}

#define RAPT_STORED(name, NAME)                                                                                  \
    static RAPT_KERNEL void squares_##name(float *panel, const char *const *rows, int64_t d, int dims,           \
                                           int used, struct stream *stream) {                                    \
        squares_of(RAPT_FORMAT_##NAME, panel, rows, d, dims, used, stream);                                      \
    }
RAPT_STORED_FORMATS(RAPT_STORED)
#undef RAPT_STORED

static stored_squares *const squares_of_format[RAPT_FORMAT_COUNT] = {
#define RAPT_STORED(name, NAME) [RAPT_FORMAT_##NAME] = squares_##name,
    RAPT_STORED_FORMATS(RAPT_STORED)
#undef RAPT_STORED
};

/* Adds the dims of a panel to the chains of some rows and vectors of keys. */
RAPT_INLINE void stored_chains(const float *panel, const float *query, int64_t head_dim, float *sums, int dims,
                               int rows, int vectors) {
    vf32 sum[FEW_ROWS][NARROW_VECTORS];
    RAPT_UNROLL for (int r = 0; r < rows; r++)
        RAPT_UNROLL for (int v = 0; v < vectors; v++)
            sum[r][v] = v_load(sums + r * STORED_KEYS + v * VL);
    for (; dims > 0; dims--, panel += STORED_KEYS, query++) {
        vf32 x[NARROW_VECTORS];
        RAPT_UNROLL for (int v = 0; v < vectors; v++)
            x[v] = v_load(panel + v * VL);
        RAPT_UNROLL for (int r = 0; r < rows; r++) {
            const vf32 q = v_splat(query[r * head_dim]);
            RAPT_UNROLL for (int v = 0; v < vectors; v++)
                sum[r][v] = v_fma(q, x[v], sum[r][v]);
        }
    }
    RAPT_UNROLL for (int r = 0; r < rows; r++)
        RAPT_UNROLL for (int v = 0; v < vectors; v++)
            v_store(sums + r * STORED_KEYS + v * VL, sum[r][v]);
}

/* A chain waits for each of its sums, so few rows take all keys of a panel at once. */
RAPT_INLINE int vectors_of_chains(int rows) { return rows * NARROW_VECTORS <= 2 * FEW_ROWS ? NARROW_VECTORS : 2; }

typedef void stored_chains_of(const float *panel, const float *query, int64_t head_dim, float *sums, int dims);

#define RAPT_CHAINS(height)                                                                                      \
    static RAPT_KERNEL void stored_chains_##height(const float *panel, const float *query, int64_t head_dim,     \
                                                   float *sums, int dims) {                                      \
        const int rows = height < FEW_ROWS ? height : FEW_ROWS;                                                  \
        stored_chains(panel, query, head_dim, sums, dims, rows, vectors_of_chains(rows));                        \
    }
RAPT_HEIGHTS(RAPT_CHAINS)
#undef RAPT_CHAINS

/* The scores of n <= STORED_KEYS keys. */
static void score_stored_keys(const struct rapt_score_args *a, const char *key, float *scores, int n) {
#define RAPT_CHAINS(height) stored_chains_##height,
    static stored_chains_of *const of_height[] = {RAPT_HEIGHTS(RAPT_CHAINS)};
#undef RAPT_CHAINS
    _Alignas(64) float panel[STORED_DIMS * STORED_KEYS], sums[NARROW_ROWS * STORED_KEYS];
    const char *keys[STORED_KEYS];
    const int used = (n + VL - 1) / VL * VL, step = vectors_of_chains(a->rows) * VL;
    for (int k = 0; k < STORED_KEYS; k++)
        keys[k] = key + (k < n ? k : 0) * a->key_stride_bytes;
    for (int i = 0; i < a->rows * STORED_KEYS; i += VL)
        v_store(sums + i, v_splat(0));
    struct stream stream = stream_of(a, a->key_format, key, STORED_KEYS);
    for (int64_t d = 0; d < a->head_dim; d += STORED_DIMS) {
        const int dims = a->head_dim - d < STORED_DIMS ? (int)(a->head_dim - d) : STORED_DIMS;
        squares_of_format[a->key_format](panel, keys, d, dims, used, &stream);
        for (int k = 0; k < used; k += step)
            of_height[a->rows - 1](panel + k, a->query + d, a->head_dim, sums + k, dims);
    }
    for (int r = 0; r < a->rows; r++)
        for (int v = 0; v < n; v += VL)
            v_store_n(scores + r * RAPT_BLOCK_KEYS + v, v_mul(v_load(sums + r * STORED_KEYS + v), v_splat(a->factor)),
                      n - v < VL ? n - v : VL);
}

static void score_narrow(const struct rapt_score_args *a) {
    assume_score(a, NARROW_ROWS);
    if (a->key_format == RAPT_FORMAT_F32) {
        score_narrow_f32(a);
        return;
    }
    const char *key = a->key;
    for (int k = a->key_begin; k < a->key_end; k += STORED_KEYS, key += STORED_KEYS * a->key_stride_bytes)
        score_stored_keys(a, key, a->scores + k, a->key_end - k < STORED_KEYS ? a->key_end - k : STORED_KEYS);
}

#endif
