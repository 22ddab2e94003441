/* SPDX-License-Identifier: MIT
 * Scores of few rows that fill vectors, or nearly: lanes are rows, each number of a key is broadcast. Scores are
 * transposed instead of keys. */
#ifndef RAPT_GENERIC_FEW_FILLED_H
#define RAPT_GENERIC_FEW_FILLED_H

#include "generic/few.h"
#include "generic/filled.h"

enum {
    FILLED_PADS = VL / 5 /* padding lanes: so many cost less than transposing keys */
};

_Static_assert(FILLED_VECTORS * VL <= (int)RAPT_MAX_TILE_ROWS, "as many lines of scores");

RAPT_INLINE int filled_rows(int rows) { return (rows + VL - 1) / VL * VL; }

RAPT_INLINE bool rows_fill(int rows) {
    return filled_rows(rows) - rows <= FILLED_PADS && filled_rows(rows) <= FILLED_VECTORS * VL;
}

/* Stride of dims in packed queries; lanes without a row hold +0. */
RAPT_INLINE int few_width(int rows) { return rows_fill(rows) ? filled_rows(rows) : rows; }

static void pack_few(float *panel, const float *const *query_rows, int rows, int head_dim) {
    RAPT_ASSUME(rows >= 1 && rows <= RAPT_MAX_TILE_ROWS && head_dim >= 1);
    pack_lanes(panel, query_rows, rows, few_width(rows), head_dim);
}

static size_t panel_bytes_few(int rows, int head_dim) {
    return (size_t)few_width(rows) * (size_t)head_dim * sizeof(float);
}

/* The panel of keys comes after the scores. */
static size_t scores_bytes_few(int rows, int head_dim) {
    return ((size_t)few_width(rows) * FEW_STRIDE + (size_t)head_dim * FEW_KEYS) * sizeof(float);
}

/* Scores [keys][TILE_ROWS] of keys x vectors of rows; prefetches a line per NUMBERS numbers of the keys. */
RAPT_INLINE void filled_chains(const struct rapt_score_args *a, const char *key, int64_t stride_bytes, float *sums,
                               struct pump *pump, int keys, int vectors) {
    struct pump own = take_few_pump(pump);
    struct spaced from = spaced_from(key, stride_bytes);
    vf32 sum[VL][FILLED_VECTORS];
    RAPT_UNROLL for (int k = 0; k < keys; k++)
        RAPT_UNROLL for (int v = 0; v < vectors; v++)
            sum[k][v] = v_splat(0);
    enum { NUMBERS = 16 }; /* per prefetch: a line of float32 */
    const int dims = keys < NUMBERS ? NUMBERS / keys : 1;
    const float *query = a->query;
    int left = a->head_dim;
    for (; left >= dims; left -= dims) {
        pump_line(&own);
        RAPT_UNROLL for (int d = 0; d < dims; d++, query += vectors * VL)
            filled_dimension(&from, query, sum, keys, vectors);
    }
    for (; left > 0; left--, query += vectors * VL)
        filled_dimension(&from, query, sum, keys, vectors);
    RAPT_UNROLL for (int k = 0; k < keys; k++)
        RAPT_UNROLL for (int v = 0; v < vectors; v++)
            v_store(sums + k * TILE_ROWS + v * VL, v_mul(sum[k][v], v_splat(a->factor)));
    put_pump(pump, &own);
}

typedef void filled_scorer(const struct rapt_score_args *a, const char *key, int64_t stride_bytes, float *sums,
                           struct pump *pump);

/* VL keys from `key` on. */
#define RAPT_FILLED(vectors, keys)                                                                               \
    static RAPT_KERNEL void filled_score_##vectors(const struct rapt_score_args *a, const char *key,             \
                                                   int64_t stride_bytes, float *sums, struct pump *pump) {       \
        for (int k = 0; k < VL; k += (keys), key += (keys) * stride_bytes)                                       \
            filled_chains(a, key, stride_bytes, sums + k * TILE_ROWS, pump, keys, vectors);                      \
    }
RAPT_FILLED(1, VL)
RAPT_FILLED(2, VL / 2 + VL % 2)
RAPT_FILLED(3, VL / 2 + VL % 2)
#undef RAPT_FILLED

/* To rows of scores, as the other slots expect them; padding lanes go to padding rows. */
static RAPT_KERNEL void store_filled(float *scores, const float *sums, int rows, int n) {
    for (int row = 0; row < rows; row += VL) {
        vf32 square[VL];
        RAPT_UNROLL for (int k = 0; k < VL; k++)
            square[k] = v_load(sums + k * TILE_ROWS + row);
        v_transpose(square);
        RAPT_UNROLL for (int r = 0; r < VL; r++)
            v_store_n(scores + (int64_t)(row + r) * FEW_STRIDE, square[r], n);
    }
}

/* Whether the keys that one vector of rows reads at a time map to one set of L1, which holds fewer. */
RAPT_INLINE bool keys_share_a_set(int rows, int64_t stride_bytes) {
    enum { LEAST_WAYS = 8, WAY_BYTES = 4096 };
    return (int)VL > (int)LEAST_WAYS && rows <= VL && stride_bytes % WAY_BYTES == 0;
}

/* Packs n <= VL keys densely; absent ones repeat the last. */
static void copy_filled(float *copy, const char *key, int64_t stride_bytes, int n, int head_dim) {
    for (int k = 0; k < VL; k++)
        memcpy(copy + k * head_dim, key + (k < n ? k : n - 1) * stride_bytes, (size_t)head_dim * sizeof(float));
}

/* VL keys at a time. */
static void score_filled(const struct rapt_score_args *a) {
    static filled_scorer *const of_vectors[] = {filled_score_1, filled_score_2, filled_score_3};
    _Alignas(64) float sums[VL * TILE_ROWS];
    float *const copy = a->scores + (int64_t)filled_rows(a->rows) * FEW_STRIDE;
    const bool copies = keys_share_a_set(a->rows, a->key_stride_bytes);
    filled_scorer *const score = of_vectors[filled_rows(a->rows) / VL - 1];
    struct pump pump = few_pump(few_keys(a), a->streams, (a->head_dim + 15) / 16, 1);
    const char *key = a->key;
    for (int k = a->key_begin; k < a->key_end; k += VL, key += VL * a->key_stride_bytes) {
        const int n = a->key_end - k < VL ? a->key_end - k : VL;
        if (copies || n < VL) {
            copy_filled(copy, key, a->key_stride_bytes, n, a->head_dim);
            score(a, (const char *)copy, a->head_dim * (int64_t)sizeof(float), sums, &pump);
        } else {
            score(a, key, a->key_stride_bytes, sums, &pump);
        }
        store_filled(a->scores + k, sums, a->rows, n);
    }
}

#endif
