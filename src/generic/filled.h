/* SPDX-License-Identifier: MIT
 * Scores of rows that fill vectors, or nearly: lanes are rows, each number of a key is broadcast, and only scores are
 * transposed. Types other than float32 are first widened into L1. */
#ifndef RAPT_GENERIC_FILLED_H
#define RAPT_GENERIC_FILLED_H

#include "generic/score_words.h"

enum {
    FILLED_VECTORS = 3, /* of rows, at most */
    FILLED_STEP = 16,  /* dims per iteration, */
    FILLED_DIMS = 128  /* and dims widened at a time */
};

/* Whether a narrow tile has so many rows that they fill a vector. */
#define RAPT_IS_FILLED(rows) ((rows) > NARROW_ROWS && (rows) <= NARROW_MOST)

/* Adds one number of each key to the chains, and advances. */
RAPT_INLINE void filled_dimension(struct spaced *from, const float *query, vf32 sum[][FILLED_VECTORS], int keys,
                                  int vectors) {
    vf32 q[FILLED_VECTORS];
    RAPT_UNROLL for (int v = 0; v < vectors; v++)
        q[v] = v_load(query + v * VL);
    RAPT_UNROLL for (int k = 0; k < keys; k++) {
        const vf32 x = v_splat(*row_at(spaced_row(from, k), 0, 0));
        RAPT_UNROLL for (int v = 0; v < vectors; v++)
            sum[k][v] = v_fma(x, q[v], sum[k][v]);
    }
    spaced_advance(from, sizeof(float));
}

/* Adds dims of VL keys to the chains of one vector of rows, [VL keys][VL rows]. `format` determines the lines to
 * prefetch. */
RAPT_INLINE void filled_sums(int format, float *sums, const float *query, const char *key, int64_t stride_bytes,
                             int dims, struct stream *stream) {
    const int lines = whole_lines(format, VL * FILLED_STEP), steps = FILLED_STEP / 2;
    struct spaced from = spaced_from(key, stride_bytes);
    vf32 sum[VL][FILLED_VECTORS];
    RAPT_UNROLL for (int k = 0; k < VL; k++)
        sum[k][0] = v_load(sums + k * VL);
    for (; dims >= FILLED_STEP; dims -= FILLED_STEP) {
        RAPT_UNROLL for (int d = 0; d < FILLED_STEP; d++, query += VL) {
            if (d % 2 == 0)
                stream_line(stream, d / 2, lines, steps);
            filled_dimension(&from, query, sum, VL, 1);
        }
    }
    for (; dims > 0; dims--, query += VL)
        filled_dimension(&from, query, sum, VL, 1);
    RAPT_UNROLL for (int k = 0; k < VL; k++)
        v_store(sums + k * VL, sum[k][0]);
}

RAPT_INLINE void store_filled_scores(const struct rapt_score_args *a, const float *sums, float *scores, int n) {
    vf32 square[VL];
    RAPT_UNROLL for (int k = 0; k < VL; k++)
        square[k] = v_mul(v_load(sums + k * VL), v_splat(a->factor));
    v_transpose(square);
    RAPT_UNROLL for (int r = 0; r < VL; r++) {
        if (r < a->rows && n >= VL)
            v_store(scores + r * RAPT_BLOCK_KEYS, square[r]);
        else if (r < a->rows)
            v_store_n(scores + r * RAPT_BLOCK_KEYS, square[r], n);
    }
}

/* The scores of VL keys from `key` on: float32, or types without scales. */
RAPT_INLINE void filled_keys(int format, const struct rapt_score_args *a, const char *key, float *scores,
                             struct stream *stream) {
    _Alignas(64) float sums[VL * VL] = {0}, widened[VL * FILLED_DIMS];
    if (format == RAPT_FORMAT_F32)
        filled_sums(format, sums, a->query, key, a->key_stride_bytes, a->head_dim, stream);
    for (int d = 0; format != RAPT_FORMAT_F32 && d < a->head_dim; d += FILLED_DIMS) {
        const int dims = a->head_dim - d < FILLED_DIMS ? a->head_dim - d : FILLED_DIMS;
        for (int k = 0; k < VL; k++)
            stage_stored(format, widened + k * FILLED_DIMS, stored_block(format, key + k * a->key_stride_bytes, d),
                         dims);
        filled_sums(format, sums, a->query + (int64_t)d * VL, (const char *)widened, sizeof(float) * FILLED_DIMS, dims,
                    stream);
    }
    store_filled_scores(a, sums, scores, VL);
}

/* The scores of a turn. */
RAPT_INLINE void score_filled_turn(int format, const struct rapt_score_args *a, struct turn_requests *turns) {
    const char *key = a->key;
    struct stream stream = {.turns = turns};
    for (int k = a->key_begin; k < a->key_end; k += VL, key += VL * a->key_stride_bytes)
        filled_keys(format, a, key, a->scores + k, &stream);
}

/* The scores of n <= VL keys, the first of which is row `number` of the call; lines are prefetched while they are
 * widened. */
static RAPT_KERNEL void filled_widened(const struct rapt_score_args *a, const char *const *keys, int number,
                                       float *scores, int n, struct stream *stream) {
    _Alignas(64) float sums[VL * VL] = {0}, widened[VL * FILLED_DIMS];
    struct stream own = take_stream(stream), none = {.row = (const char *)widened, .row_bytes = 64};
    for (int d = 0; d < a->head_dim; d += FILLED_DIMS) {
        const int dims = a->head_dim - d < FILLED_DIMS ? a->head_dim - d : FILLED_DIMS;
        const int lines = stored_lines(a->key_format, dims);
        for (int k = 0; k < VL; k++) {
            stage_row[a->key_format](widened + k * FILLED_DIMS, stored_block(a->key_format, keys[k], d), dims,
                                     &a->scales, number + (k < n ? k : 0));
            if (own.strands)
                fetch_strands(own.strands, lines);
            for (int line = 0; line < lines; line++)
                stream_line(&own, line, lines, lines);
        }
        filled_sums(RAPT_FORMAT_F32, sums, a->query + (int64_t)d * VL, (const char *)widened,
                    sizeof(float) * FILLED_DIMS, dims, &none);
    }
    store_filled_scores(a, sums, scores, n);
    put_stream(stream, &own);
}

/* The same of VL keys of float32 in one run. */
static RAPT_KERNEL void filled_in_place(const struct rapt_score_args *a, const char *key, float *scores,
                                        struct stream *stream) {
    struct stream own = take_stream(stream);
    if (own.strands)
        fetch_strands(own.strands, VL * stored_lines(RAPT_FORMAT_F32, a->head_dim));
    if (own.turns)
        __builtin_unreachable();
    filled_keys(RAPT_FORMAT_F32, a, key, scores, &own);
    put_stream(stream, &own);
}

static void score_narrow_filled(const struct rapt_score_args *a) {
    struct feed feed;
    open_feed(&feed, a);
    for (int k = a->key_begin, n; k < a->key_end; k += n) {
        const char *keys[VL];
        n = a->key_end - k < VL ? a->key_end - k : VL;
        const bool in_place = a->key_format == RAPT_FORMAT_F32 && n == VL && feed.walk.left >= VL;
        struct stream stream = feed_keys(&feed, a, a->key_format, keys, n, VL);
        if (in_place)
            filled_in_place(a, keys[0], a->scores + k, &stream);
        else
            filled_widened(a, keys, k - a->key_begin, a->scores + k, n, &stream);
    }
}

#endif
