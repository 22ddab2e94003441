/* SPDX-License-Identifier: MIT
 * Dot products of a tile: pack, and score of wide tiles, whose lanes are rows. Each score is one FMA chain from +0 over
 * head_dim. */
#ifndef RAPT_GENERIC_SCORE_H
#define RAPT_GENERIC_SCORE_H

#include "generic/errands.h"
#include "generic/span.h"

enum { TILE_ROWS = SCORE_VECTORS * VL };

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

/* A constant count keeps the square in registers. */
RAPT_INLINE void pack_square(float *panel, const float *const *rows, int64_t offset) {
    vf32 lanes[VL];
    v_load_square(lanes, rows, offset);
    RAPT_UNROLL for (int i = 0; i < VL; i++)
        v_store(panel + i * TILE_ROWS, lanes[i]);
}

/* n dims; stores lanes_stored lanes, `step` floats apart. */
static RAPT_KERNEL void pack_part(float *panel, int64_t step, int lanes_stored, const float *const *rows,
                                  int row_count, int64_t offset, int n) {
    vf32 lanes[VL];
    load_transposed(lanes, rows, row_count, offset, n);
    for (int i = 0; i < n; i++)
        v_store_n(panel + i * step, lanes[i], lanes_stored);
}

static void pack_wide(float *panel, const float *const *query_rows, int rows, int head_dim) {
    RAPT_ASSUME(rows >= 1 && rows <= TILE_ROWS && head_dim >= 1);
    for (int row = 0; row < TILE_ROWS; row += VL)
        for (int d = 0; d < head_dim; d += VL) {
            int n = head_dim - d < VL ? head_dim - d : VL;
            float *into = panel + d * TILE_ROWS + row;
            if (n == VL && rows - row >= VL)
                pack_square(into, query_rows + row, d);
            else
                pack_part(into, TILE_ROWS, VL, query_rows + row, rows - row, d, n);
        }
}

/* [head_dim][width], width >= rows. */
static void pack_lanes(float *panel, const float *const *query_rows, int rows, int width, int head_dim) {
    for (int row = 0; row < rows; row += VL)
        for (int d = 0; d < head_dim; d += VL) {
            const int n = head_dim - d < VL ? head_dim - d : VL, lanes = width - row < VL ? width - row : VL;
            pack_part(panel + (int64_t)d * width + row, width, lanes, query_rows + row, rows - row, d, n);
        }
}

/* Stride of dims in packed queries; lanes without a row hold +0. */
RAPT_INLINE int narrow_width(int rows) { return rows > NARROW_ROWS ? VL : rows; }

static size_t panel_bytes_narrow(int rows, int head_dim) {
    return (size_t)narrow_width(rows) * (size_t)((head_dim + 2 * VL - 1) / (2 * VL) * (2 * VL)) * sizeof(float);
}

/* [head_dim][rows] where lanes are keys, so that one pointer finds all factors; then -0 up to whole squares of 16-bit
 * keys, the widest. */
static void pack_narrow(float *panel, const float *const *query_rows, int rows, int head_dim) {
    RAPT_ASSUME(rows >= 1 && rows <= RAPT_MAX_TILE_ROWS && head_dim >= 1);
    const int width = narrow_width(rows);
    pack_lanes(panel, query_rows, rows, width, head_dim);
    const int64_t end = (int64_t)(panel_bytes_narrow(rows, head_dim) / sizeof(float));
    for (int64_t i = (int64_t)width * head_dim; i < end; i++)
        panel[i] = -0.0f;
}

/* Adds dimension d to keys x vectors chains. */
RAPT_INLINE void score_dimension(vf32 sum[2 * SCORE_KEYS][SCORE_VECTORS], const float *const *row, int64_t stride,
                                 const float *query, int64_t d, int keys, int vectors) {
    vf32 q[SCORE_VECTORS];
    RAPT_UNROLL for (int v = 0; v < vectors; v++)
        q[v] = v_load(query + v * VL);
    RAPT_UNROLL for (int k = 0; k < keys; k++) {
        /* Pointers to more than 8 keys would not fit the registers of x86. */
        vf32 x = v_splat(keys > 8 ? row_at((const char *)row[k / 4 * 4], stride, k % 4)[d] : row[k][d]);
        RAPT_UNROLL for (int v = 0; v < vectors; v++)
            sum[k][v] = v_fma(x, q[v], sum[k][v]);
    }
}

/* The same for dimensions d to d + 3. */
RAPT_INLINE void score_four(vf32 sum[2 * SCORE_KEYS][SCORE_VECTORS], const float *const *row, const float *query,
                            int64_t d, int keys, int vectors) {
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

/* Lines that a panel prefetches per 4 dimensions, so that it prefetches about one row per key. */
RAPT_INLINE int lines_of(int keys) { return keys < 4 ? 1 : keys / 4; }

/* keys x vectors accumulators over all of head_dim. Rows are prefetched one after the other, a few lines at a time: a
 * burst would delay the loads, and processors recognise lines in order. */
RAPT_INLINE void score_panel(const struct rapt_score_args *a, const char *key, float *scores, int keys, int vectors) {
    const int lines = lines_of(keys);
    struct errand_rows errand = take_errand_rows(a->errands, key, a->head_dim, (a->head_dim + 3) / 4 * lines);
    const int64_t strip = (errand.lines + lines - 1) / lines * 4;
    vf32 sum[2 * SCORE_KEYS][SCORE_VECTORS];
    const float *row[2 * SCORE_KEYS];
    RAPT_UNROLL for (int k = 0; k < keys; k++) {
        row[k] = row_at(key, a->key_stride_bytes, k);
        RAPT_UNROLL for (int v = 0; v < vectors; v++)
            sum[k][v] = v_splat(0);
    }
    const float *query = a->query;
    const int64_t stride = a->key_stride_bytes;
    for (int64_t d = 0; d < a->head_dim;) {
        const int64_t end = a->head_dim - d < strip ? a->head_dim : d + strip;
        const char *line = errand.row - d * 16 * lines;
        errand.row += --errand.rows > 0 ? errand.stride_bytes : 0;
        for (; SCORE_BY_LANE && end - d >= 4; d += 4, query += 4 * TILE_ROWS) {
            RAPT_UNROLL for (int i = 0; i < lines; i++)
                fetch_later(line + d * 16 * lines + 64 * i);
            score_four(sum, row, query, d, keys, vectors);
        }
        for (; !SCORE_BY_LANE && end - d >= SCORE_DIMS; d += SCORE_DIMS, query += SCORE_DIMS * TILE_ROWS) {
            RAPT_UNROLL for (int i = 0; i < lines; i++)
                fetch_later(line + d * 16 * lines + 64 * i);
            RAPT_UNROLL for (int i = 0; i < SCORE_DIMS; i++)
                score_dimension(sum, row, stride, query + i * TILE_ROWS, d + i, keys, vectors);
        }
        for (; d < end; d++, query += TILE_ROWS)
            score_dimension(sum, row, stride, query, d, keys, vectors);
    }
    vf32 factor = v_splat(a->factor);
    RAPT_UNROLL for (int k = 0; k < keys; k++)
        RAPT_UNROLL for (int v = 0; v < vectors; v++)
            v_store(scores + k * TILE_ROWS + v * VL, v_mul(sum[k][v], factor));
}

RAPT_INLINE void score_keys(const struct rapt_score_args *a, int most, int vectors) {
    int key = a->key_begin;
    const char *rows = a->key;
#define RAPT_SCORE_PANEL(n)                                                                                      \
    score_panel(a, rows, a->scores + (int64_t)key * TILE_ROWS, n, vectors);                                      \
    stage_errands(a->errands);                                                                                   \
    key += n, rows += n * a->key_stride_bytes
    while (a->key_end - key >= most) {
        RAPT_SCORE_PANEL(most);
    }
    if (a->key_end - key >= SCORE_KEYS) {
        RAPT_SCORE_PANEL(SCORE_KEYS);
    }
    if (a->key_end - key >= SCORE_KEYS / 2) {
        RAPT_SCORE_PANEL(SCORE_KEYS / 2);
    }
    while (key < a->key_end) {
        RAPT_SCORE_PANEL(1);
    }
#undef RAPT_SCORE_PANEL
}

/* One vector of rows has too few chains to fill the FMA units: twice the keys. */
static RAPT_KERNEL void score_wide_1(const struct rapt_score_args *a) { score_keys(a, 2 * SCORE_KEYS, 1); }
static RAPT_KERNEL void score_wide_2(const struct rapt_score_args *a) { score_keys(a, SCORE_KEYS, 2); }
static RAPT_KERNEL void score_wide_full(const struct rapt_score_args *a) { score_keys(a, SCORE_KEYS, SCORE_VECTORS); }

static void score_vectors(const struct rapt_score_args *a, int first, int count) {
    struct rapt_score_args part = *a;
    if (count <= 2) {
        part.query += first * VL;
        part.scores += first * VL;
    }
    if (count > 2)
        score_wide_full(&part);
    else if (count == 2)
        score_wide_2(&part);
    else
        score_wide_1(&part);
}

/* Vectors whose spans differ: runs of keys that the same vectors see. Ends
 * are rounded outwards, since a panel of few keys takes as long as a full one. */
static void score_spans(const struct rapt_score_args *a, int vectors) {
    struct span spans[SCORE_VECTORS];
    for (int v = 0; v < vectors; v++) {
        int rows = a->rows - v * VL < VL ? a->rows - v * VL : VL;
        struct span s = span_of(a->spans, v * VL, rows, a->key_begin, a->key_end);
        s.begin -= (s.begin - a->key_begin) % SCORE_KEYS;
        s.end += (SCORE_KEYS - (s.end - a->key_begin) % SCORE_KEYS) % SCORE_KEYS;
        s.end = s.end < a->key_end ? s.end : a->key_end;
        spans[v] = s;
    }
    struct rapt_score_args part = *a;
    for (int key = a->key_begin; key < a->key_end; key = part.key_end) {
        int first = vectors, last = -1;
        part.key_begin = key;
        part.key_end = a->key_end;
        for (int v = 0; v < vectors; v++) {
            int edge = spans[v].begin > key ? spans[v].begin : spans[v].end;
            if (edge > key && edge < part.key_end && spans[v].begin < spans[v].end)
                part.key_end = edge;
            if (key >= spans[v].begin && key < spans[v].end)
                first = first < v ? first : v, last = v;
        }
        part.key = a->key + (key - a->key_begin) * a->key_stride_bytes;
        if (last < 0)
            continue;
        part.errands = last - first + 1 < vectors ? NULL : a->errands; /* panels of few vectors have no time */
        score_vectors(&part, first, last - first + 1);
    }
}

static void score_wide(const struct rapt_score_args *a) {
    assume_score(a, TILE_ROWS);
    int vectors = (a->rows + VL - 1) / VL;
    if (a->spans)
        score_spans(a, vectors);
    else
        score_vectors(a, 0, vectors);
}

static size_t panel_bytes_wide(int rows, int head_dim) {
    (void)rows;
    return (size_t)head_dim * TILE_ROWS * sizeof(float);
}

static size_t scores_bytes_wide(int rows, int head_dim) {
    (void)rows, (void)head_dim;
    return (size_t)RAPT_BLOCK_KEYS * TILE_ROWS * sizeof(float);
}

/* For this block and the next one. */
static size_t scores_bytes_narrow(int rows, int head_dim) {
    (void)head_dim;
    return 2 * (size_t)RAPT_BLOCK_KEYS * (size_t)rows * sizeof(float);
}

#endif
