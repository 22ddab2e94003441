/* SPDX-License-Identifier: MIT
 * Dot products of a tile: pack and score, wide (lanes are rows) and narrow
 * (lanes are keys). Each score is one FMA chain over head_dim from +0. */
#ifndef RAPT_GENERIC_SCORE_H
#define RAPT_GENERIC_SCORE_H

#include "kernels.h"

enum {
    TILE_ROWS = SCORE_VECTORS * VL,
    FAR_KEYS = 128 /* how far ahead the narrow way fetches into L2 */
};

RAPT_INLINE const float *row_at(const char *base, int64_t stride_bytes, int64_t i) {
    return (const float *)(const void *)(base + i * stride_bytes);
}

/* VL rows (absent ones +0) of n <= VL floats, transposed. */
RAPT_INLINE void load_transposed(vf32 *lanes, const float *const *rows, int row_count, int64_t offset, int n) {
    RAPT_UNROLL for (int i = 0; i < VL; i++) {
        if (i >= row_count)
            lanes[i] = v_splat(0);
        else
            lanes[i] = n == VL ? v_load(rows[i] + offset) : v_load_n(rows[i] + offset, n);
    }
    v_transpose(lanes);
}

static void pack_wide(float *panel, const float *const *query_rows, int rows, int head_dim) {
    for (int row = 0; row < TILE_ROWS; row += VL)
        for (int d = 0; d < head_dim; d += VL) {
            int n = head_dim - d < VL ? head_dim - d : VL;
            vf32 lanes[VL];
            load_transposed(lanes, query_rows + row, rows - row, d, n);
            for (int i = 0; i < n; i++)
                v_store(panel + (d + i) * TILE_ROWS + row, lanes[i]);
        }
}

static void pack_narrow(float *panel, const float *const *query_rows, int rows, int head_dim) {
    for (int row = 0; row < rows; row++)
        memcpy(panel + (int64_t)row * head_dim, query_rows[row], (size_t)head_dim * sizeof(float));
}

/* keys x vectors accumulators over all of head_dim. */
RAPT_INLINE void score_panel(const struct rapt_score_args *a, const char *key, float *scores, int keys, int vectors) {
    vf32 sum[2 * SCORE_KEYS][SCORE_VECTORS];
    const float *row[2 * SCORE_KEYS];
    RAPT_UNROLL for (int k = 0; k < keys; k++) {
        row[k] = row_at(key, a->key_stride_bytes, k);
        RAPT_UNROLL for (int v = 0; v < vectors; v++)
            sum[k][v] = v_splat(0);
    }
    const float *query = a->query;
    int64_t d = 0;
    for (; SCORE_BY_LANE && a->head_dim - d >= 4; d += 4, query += 4 * TILE_ROWS) {
        vfour key_four[2 * SCORE_KEYS];
        RAPT_UNROLL for (int k = 0; k < keys; k++)
            key_four[k] = v_four(row[k] + d);
#define RAPT_LANE(lane)                                                                                          \
    RAPT_UNROLL for (int v = 0; v < vectors; v++) {                                                              \
        vf32 q = v_load(query + (lane) * TILE_ROWS + v * VL);                                                    \
        RAPT_UNROLL for (int k = 0; k < keys; k++)                                                               \
            sum[k][v] = v_fma_lane(key_four[k], lane, q, sum[k][v]);                                             \
    }
        RAPT_LANE(0)
        RAPT_LANE(1)
        RAPT_LANE(2)
        RAPT_LANE(3)
#undef RAPT_LANE
    }
    for (; d < a->head_dim; d++, query += TILE_ROWS) {
        vf32 q[SCORE_VECTORS];
        RAPT_UNROLL for (int v = 0; v < vectors; v++)
            q[v] = v_load(query + v * VL);
        RAPT_UNROLL for (int k = 0; k < keys; k++) {
            vf32 x = v_splat(row[k][d]);
            RAPT_UNROLL for (int v = 0; v < vectors; v++)
                sum[k][v] = v_fma(x, q[v], sum[k][v]);
        }
    }
    vf32 factor = v_splat(a->factor);
    RAPT_UNROLL for (int k = 0; k < keys; k++)
        RAPT_UNROLL for (int v = 0; v < vectors; v++)
            v_store(scores + k * TILE_ROWS + v * VL, v_mul(sum[k][v], factor));
}

/* Fetches a fair share of the rows to come, so that requests spread over the tile. */
RAPT_INLINE void prefetch_share(const struct rapt_score_args *a, int key, int keys) {
    if (a->prefetch_rows == 0)
        return;
    int count = a->key_end - a->key_begin;
    int64_t first = (int64_t)a->prefetch_rows * (key - a->key_begin) / count;
    int64_t end = (int64_t)a->prefetch_rows * (key - a->key_begin + keys) / count;
    for (int i = 0; i < 2; i++)
        for (int64_t row = first; row < end; row++)
            for (int byte = 0; byte < a->prefetch[i].row_bytes; byte += 64)
                __builtin_prefetch(a->prefetch[i].base + row * a->prefetch[i].stride_bytes + byte, 0, 2);
}

RAPT_INLINE void score_keys(const struct rapt_score_args *a, int most, int vectors) {
    int key = a->key_begin;
    const char *rows = a->key;
#define RAPT_STEP(n)                                                                                             \
    prefetch_share(a, key, n);                                                                                   \
    score_panel(a, rows, a->scores + (int64_t)key * TILE_ROWS, n, vectors);                                      \
    key += n, rows += n * a->key_stride_bytes
    while (a->key_end - key >= most) {
        RAPT_STEP(most);
    }
    if (a->key_end - key >= SCORE_KEYS) {
        RAPT_STEP(SCORE_KEYS);
    }
    if (a->key_end - key >= SCORE_KEYS / 2) {
        RAPT_STEP(SCORE_KEYS / 2);
    }
    while (key < a->key_end) {
        RAPT_STEP(1);
    }
#undef RAPT_STEP
}

/* One vector of rows has too few chains to fill the FMA units: twice the keys. */
static RAPT_KERNEL void score_wide_1(const struct rapt_score_args *a) { score_keys(a, 2 * SCORE_KEYS, 1); }
static RAPT_KERNEL void score_wide_2(const struct rapt_score_args *a) { score_keys(a, SCORE_KEYS, 2); }
static RAPT_KERNEL void score_wide_full(const struct rapt_score_args *a) { score_keys(a, SCORE_KEYS, SCORE_VECTORS); }

static void score_wide(const struct rapt_score_args *a) {
    if (a->rows > 2 * VL)
        score_wide_full(a);
    else if (a->rows > VL)
        score_wide_2(a);
    else
        score_wide_1(a);
}

/* The rows to come, fetched in the order in which they lie in memory: into L2
 * from afar, where many requests fit in flight, into L1 just before their use. */
struct fetch {
    const char *row;
    int64_t byte;
};

/* Adds `width` dimensions from d on of n keys to the chains of `rows` rows,
 * and fetches as many bytes: memory feeds this loop. */
RAPT_INLINE void score_square(const struct rapt_score_args *a, const float *query, const float *const *keys, int64_t d,
                              vf32 *sum, struct fetch *fetch, int n, int width, int rows) {
    vf32 lanes[VL];
    RAPT_UNROLL for (int line = 0; line < VL * VL * 4; line += 64) {
        __builtin_prefetch(fetch->row + fetch->byte, 0, 3);
        __builtin_prefetch(fetch->row + fetch->byte + FAR_KEYS * a->key_stride_bytes, 0, 2);
        fetch->byte += 64;
        if (fetch->byte >= a->head_dim * 4)
            fetch->byte = 0, fetch->row += a->key_stride_bytes;
    }
    load_transposed(lanes, keys, n, d, width);
    RAPT_UNROLL for (int i = 0; i < VL; i++)
        if (i < width)
            RAPT_UNROLL for (int r = 0; r < rows; r++)
                sum[r] = v_fma(v_splat(query[r * (int64_t)a->head_dim + d + i]), lanes[i], sum[r]);
}

/* rows x n scores, by transposing VL x VL squares of the key rows. */
RAPT_INLINE void score_transposed(const struct rapt_score_args *a, const float *query, const char *key, float *scores,
                                  int n, int rows) {
    vf32 sum[NARROW_GROUP];
    const float *keys[VL];
    RAPT_UNROLL for (int r = 0; r < rows; r++)
        sum[r] = v_splat(0);
    RAPT_UNROLL for (int k = 0; k < VL; k++)
        keys[k] = row_at(key, a->key_stride_bytes, k < n ? k : 0);
    int64_t d = 0;
    struct fetch fetch = {key + VL * a->key_stride_bytes, 0};
    for (; a->head_dim - d >= VL; d += VL)
        score_square(a, query, keys, d, sum, &fetch, n, VL, rows);
    if (d < a->head_dim)
        score_square(a, query, keys, d, sum, &fetch, n, (int)(a->head_dim - d), rows);
    RAPT_UNROLL for (int r = 0; r < rows; r++) {
        vf32 score = v_mul(sum[r], v_splat(a->factor));
        if (n == VL)
            v_store(scores + r * RAPT_BLOCK_KEYS, score);
        else
            v_store_n(scores + r * RAPT_BLOCK_KEYS, score, n);
    }
}

RAPT_INLINE void score_rows(const struct rapt_score_args *a, int first, int rows) {
    const float *query = a->query + (int64_t)first * a->head_dim;
    float *scores = a->scores + (int64_t)first * RAPT_BLOCK_KEYS;
    const char *key = a->key;
    int k = a->key_begin;
    for (; a->key_end - k >= VL; k += VL, key += VL * a->key_stride_bytes)
        score_transposed(a, query, key, scores + k, VL, rows);
    if (k < a->key_end)
        score_transposed(a, query, key, scores + k, a->key_end - k, rows);
}

#define RAPT_SCORE_ROWS(rows)                                                                                    \
    static RAPT_KERNEL void score_rows_##rows(const struct rapt_score_args *a, int first) {                      \
        score_rows(a, first, rows < NARROW_GROUP ? rows : NARROW_GROUP);                                         \
    }
RAPT_SCORE_ROWS(1)
RAPT_SCORE_ROWS(2)
RAPT_SCORE_ROWS(3)
RAPT_SCORE_ROWS(4)
RAPT_SCORE_ROWS(5)
RAPT_SCORE_ROWS(6)
RAPT_SCORE_ROWS(7)
RAPT_SCORE_ROWS(8)

/* As many rows at once as fit, since each pass transposes the keys again. */
static void score_narrow(const struct rapt_score_args *a) {
    static void (*const of_rows[])(const struct rapt_score_args *, int) = {
        score_rows_1, score_rows_2, score_rows_3, score_rows_4, score_rows_5, score_rows_6, score_rows_7, score_rows_8};
    for (int row = 0; row < a->rows; row += NARROW_GROUP) {
        int rows = a->rows - row < NARROW_GROUP ? a->rows - row : NARROW_GROUP;
        of_rows[rows - 1](a, row);
    }
}

#endif
