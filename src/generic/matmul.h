/* SPDX-License-Identifier: MIT
 * Matrix products: lanes are columns of out. Each block of inner is four FMA
 * chains from +0, added as (0 + 1) + (2 + 3); the blocks are added up in
 * ascending order, in out. */
#ifndef RAPT_GENERIC_MATMUL_H
#define RAPT_GENERIC_MATMUL_H

#include "generic/score.h"

_Static_assert(RAPT_INNER_BLOCK == 4 * RAPT_INNER_CHAIN, "a block is four chains");

enum {
    PRODUCT_ROWS = NARROW_ROWS < 8 ? NARROW_ROWS : 8, /* that the slot few takes */
    PRODUCT_AHEAD = 128, /* its prefetch distance in rows of weights, floats */
    STRIP_SUMS = 4096,   /* sums per pass over weights in place */
    STRIP_STEPS = 8      /* rows of weights in place at once; divides RAPT_INNER_CHAIN */
};

/* Adds the sums of a block to n <= VL numbers of out, and finishes them. */
RAPT_INLINE void store_block(float *out, const float *bias, vf32 sum, bool first, bool last, int n) {
    if (!first)
        sum = v_add(n == VL ? v_load(out) : v_load_n(out, n), sum);
    if (last && bias)
        sum = v_add(sum, n == VL ? v_load(bias) : v_load_n(bias, n));
    if (last)
        sum = v_canonical(sum);
    if (n == VL)
        v_store(out, sum);
    else
        v_store_n(out, sum, n);
}

/* Columns that are rows of weights. */
static void pack_weight_rows(float *panel, const char *weight, int64_t stride_bytes, int columns, int inner) {
    const float *rows[RAPT_MAX_TILE_ROWS];
    RAPT_ASSUME(columns >= 1 && columns <= TILE_ROWS && inner >= 1);
    for (int i = 0; i < columns; i++)
        rows[i] = row_at(weight, stride_bytes, i);
    pack_wide(panel, rows, columns, inner);
}

static void pack_weight_columns(float *panel, const char *weight, int64_t stride_bytes, int columns, int inner) {
    RAPT_ASSUME(columns >= 1 && columns <= TILE_ROWS && inner >= 1);
    for (int k = 0; k < inner; k++, panel += TILE_ROWS) {
        const float *from = row_at(weight, stride_bytes, k);
        RAPT_UNROLL for (int column = 0; column < TILE_ROWS; column += VL) {
            int n = columns - column < VL ? columns - column : VL;
            v_store(panel + column, n == VL ? v_load(from + column) : n > 0 ? v_load_n(from + column, n) : v_splat(0));
        }
    }
}

RAPT_INLINE float *out_at(const struct rapt_product_args *a, int64_t row) {
    return (float *)(void *)(a->out + row * a->out_stride_bytes);
}

/* Adds chain `number` of a block to those before it, which are held until the last. */
RAPT_INLINE vf32 join_chain(vf32 sum, float *held, float *held_pair, int number, bool last) {
    if (number == 3)
        sum = v_add(v_load(held_pair), sum);
    if (number > 0 && (number != 2 || last))
        sum = v_add(v_load(held), sum);
    if (!last)
        v_store(number == 2 ? held_pair : held, sum);
    return sum;
}

/* Terms [k, end) of rows x vectors chains. Meanwhile prefetches x of a later row, line by line. */
RAPT_INLINE void product_part(const struct rapt_product_args *a, const float *const *x, vf32 sum[][SCORE_VECTORS],
                              const char *line, int64_t k, int64_t end, int rows, int vectors) {
    const float *panel = (const float *)(const void *)a->weight + k * TILE_ROWS;
    for (; SCORE_BY_LANE && end - k >= 4; k += 4, panel += 4 * TILE_ROWS, line += 16 * rows) {
        fetch_soon(line);
        score_four(sum, x, panel, k, rows, vectors);
    }
    for (; !SCORE_BY_LANE && end - k >= SCORE_DIMS; k += SCORE_DIMS, panel += SCORE_DIMS * TILE_ROWS) {
        RAPT_UNROLL for (int byte = 0; byte < 4 * SCORE_DIMS * rows; byte += 64)
            fetch_soon(line + byte);
        line += 4 * SCORE_DIMS * rows;
        RAPT_UNROLL for (int i = 0; i < SCORE_DIMS; i++)
            score_dimension(sum, x, a->x_stride_bytes, panel + i * TILE_ROWS, k + i, rows, vectors);
    }
    for (; k < end; k++, panel += TILE_ROWS)
        score_dimension(sum, x, a->x_stride_bytes, panel, k, rows, vectors);
}

/* rows x vectors of out, one block. Each part of a chain prefetches one row of out, the x of one later row, and some
 * weights: a burst would block the loads. */
RAPT_INLINE void product_panel(const struct rapt_product_args *a, int64_t errand_lines, int64_t first_row,
                               int rows, int vectors) {
    float held[2][2 * SCORE_KEYS][SCORE_VECTORS * VL];
    vf32 sum[2 * SCORE_KEYS][SCORE_VECTORS];
    const float *x[2 * SCORE_KEYS];
    RAPT_UNROLL for (int r = 0; r < rows; r++)
        x[r] = row_at(a->x, a->x_stride_bytes, first_row + r);
    const int64_t share = (a->inner + 4 * rows - 1) / (4 * rows) * 4;
    int64_t row = first_row, k = 0;
    int chain = 0;
    do {
        const int64_t chain_end = a->inner - k < RAPT_INNER_CHAIN ? a->inner : k + RAPT_INNER_CHAIN;
        RAPT_UNROLL for (int r = 0; r < rows; r++)
            RAPT_UNROLL for (int v = 0; v < vectors; v++)
                sum[r][v] = v_splat(0);
        for (int64_t end; k < chain_end; k = end, row++) {
            end = chain_end - k < share ? chain_end : k + share;
            RAPT_UNROLL for (int byte = 0; byte < vectors * VL * 4; byte += 64)
                __builtin_prefetch((const char *)out_at(a, row) + byte, 1, 3);
            run_errands(a->errands, errand_lines);
            product_part(a, x, sum, a->x + (row + rows) * a->x_stride_bytes, k, end, rows, vectors);
        }
        RAPT_UNROLL for (int r = 0; r < rows; r++)
            RAPT_UNROLL for (int v = 0; v < vectors; v++)
                sum[r][v] = join_chain(sum[r][v], held[0][r] + v * VL, held[1][r] + v * VL, chain, k == a->inner);
    } while (chain++, k < a->inner); /* inner is not 0 */
    RAPT_UNROLL for (int r = 0; r < rows; r++)
        RAPT_UNROLL for (int v = 0; v < vectors; v++) {
            const int64_t left = a->columns - v * VL;
            const float *bias = a->bias ? a->bias + v * VL : NULL;
            if (left >= VL)
                store_block(out_at(a, first_row + r) + v * VL, bias, sum[r][v], a->first, a->last, VL);
            else if (left > 0)
                store_block(out_at(a, first_row + r) + v * VL, bias, sum[r][v], a->first, a->last, (int)left);
        }
}

RAPT_INLINE void product_rows(const struct rapt_product_args *a, int most, int vectors) {
    int64_t row = 0;
    /* A panel has about as many parts as rows. */
    const int64_t lines = a->errands ? (a->errands->lines + a->rows - 1) / a->rows : 0;
    for (; a->rows - row >= most; row += most)
        product_panel(a, lines, row, most, vectors);
    for (; most > SCORE_KEYS && a->rows - row >= SCORE_KEYS; row += SCORE_KEYS)
        product_panel(a, lines, row, SCORE_KEYS, vectors);
    for (; a->rows - row >= SCORE_KEYS / 2; row += SCORE_KEYS / 2)
        product_panel(a, lines, row, SCORE_KEYS / 2, vectors);
    for (; row < a->rows; row++)
        product_panel(a, lines, row, 1, vectors);
}

/* As with scores, one vector has too few chains to fill the FMA units: twice the rows. */
static RAPT_KERNEL void product_1(const struct rapt_product_args *a) { product_rows(a, 2 * SCORE_KEYS, 1); }
static RAPT_KERNEL void product_2(const struct rapt_product_args *a) { product_rows(a, SCORE_KEYS, 2); }
static RAPT_KERNEL void product_full(const struct rapt_product_args *a) { product_rows(a, SCORE_KEYS, SCORE_VECTORS); }

static void product_tile(const struct rapt_product_args *a) {
    int64_t vectors = (a->columns + VL - 1) / VL;
    RAPT_ASSUME(a->rows >= 1 && a->columns >= 1 && a->columns <= TILE_ROWS);
    RAPT_ASSUME(a->inner >= 1 && a->inner <= RAPT_INNER_BLOCK);
    if (vectors > 2)
        product_full(a);
    else if (vectors == 2)
        product_2(a);
    else
        product_1(a);
}

/* Prefetches the line at k of each of VL rows, or of the VL rows after them where the rows end before k. */
RAPT_INLINE void fetch_square(const struct rapt_product_args *a, const char *weight, int64_t k) {
    const char *at = weight + k * (int64_t)sizeof(float);
    if (k >= a->inner)
        at += VL * a->weight_stride_bytes - a->inner * (int64_t)sizeof(float);
    RAPT_UNROLL for (int i = 0; i < VL; i++)
        fetch_soon(at + i * a->weight_stride_bytes);
}

/* Adds `width` terms from k on, of VL columns, to the chains of rows. */
RAPT_INLINE void product_square(const float *const *x, const float *const *columns, int64_t k, vf32 *sum, int n,
                                int width, int rows) {
    vf32 lanes[VL];
    load_transposed(lanes, columns, n, k, width);
    RAPT_UNROLL for (int i = 0; i < VL; i++)
        if (i < width)
            RAPT_UNROLL for (int r = 0; r < rows; r++)
                sum[r] = v_fma(v_splat(x[r][k + i]), lanes[i], sum[r]);
}

/* rows x n <= VL columns whose weights are rows, transposed square by square. */
RAPT_INLINE void product_columns(const struct rapt_product_args *a, int64_t first_row, int64_t column, int n,
                                 int rows) {
    const char *weight = a->weight + column * a->weight_stride_bytes;
    const float *columns[VL], *x[PRODUCT_ROWS];
    float held[PRODUCT_ROWS][VL] = {{0}}, held_pair[PRODUCT_ROWS][VL] = {{0}};
    vf32 total[PRODUCT_ROWS];
    RAPT_UNROLL for (int i = 0; i < VL; i++)
        columns[i] = row_at(weight, a->weight_stride_bytes, i < n ? i : 0);
    RAPT_UNROLL for (int r = 0; r < rows; r++) {
        x[r] = row_at(a->x, a->x_stride_bytes, first_row + r);
        total[r] = v_splat(0);
    }
    for (int64_t k = 0; k < a->inner;) {
        const int chain = (int)(k % RAPT_INNER_BLOCK / RAPT_INNER_CHAIN);
        const int64_t end = a->inner - k < RAPT_INNER_CHAIN ? a->inner : k + RAPT_INNER_CHAIN;
        const bool last = chain == 3 || end == a->inner;
        vf32 sum[PRODUCT_ROWS];
        RAPT_UNROLL for (int r = 0; r < rows; r++)
            sum[r] = v_splat(0);
        for (; end - k >= VL; k += VL) {
            if (first_row == 0 && k % 16 == 0)
                fetch_square(a, weight, k + PRODUCT_AHEAD);
            product_square(x, columns, k, sum, n, VL, rows);
        }
        if (k < end)
            product_square(x, columns, k, sum, n, (int)(end - k), rows);
        k = end;
        RAPT_UNROLL for (int r = 0; r < rows; r++) {
            sum[r] = join_chain(sum[r], held[r], held_pair[r], chain, last);
            if (last)
                total[r] = v_add(total[r], sum[r]);
        }
    }
    RAPT_UNROLL for (int r = 0; r < rows; r++)
        store_block(out_at(a, first_row + r) + column, a->bias ? a->bias + column : NULL, total[r], true, true, n);
}

#define RAPT_PRODUCT_COLUMNS(rows)                                                                               \
    static RAPT_KERNEL void product_columns_##rows(const struct rapt_product_args *a, int64_t row,               \
                                                   int64_t column, int n) {                                      \
        if (rows <= PRODUCT_ROWS && n == VL)                                                                     \
            product_columns(a, row, column, VL, rows);                                                           \
        else if (rows <= PRODUCT_ROWS)                                                                           \
            product_columns(a, row, column, n, rows);                                                            \
    }
RAPT_PRODUCT_COLUMNS(1)
RAPT_PRODUCT_COLUMNS(2)
RAPT_PRODUCT_COLUMNS(3)
RAPT_PRODUCT_COLUMNS(4)
RAPT_PRODUCT_COLUMNS(5)
RAPT_PRODUCT_COLUMNS(6)
RAPT_PRODUCT_COLUMNS(7)
RAPT_PRODUCT_COLUMNS(8)

static void product_transposed(const struct rapt_product_args *a) {
    static void (*const of_rows[])(const struct rapt_product_args *, int64_t, int64_t, int) = {
        product_columns_1, product_columns_2, product_columns_3, product_columns_4,
        product_columns_5, product_columns_6, product_columns_7, product_columns_8};
    RAPT_ASSUME(a->rows >= 1 && (a->rows <= PRODUCT_ROWS || a->inner == 0) && a->inner >= 0);
    for (int64_t column = 0; column < a->columns; column += VL)
        for (int64_t row = 0; row < a->rows; row += PRODUCT_ROWS) {
            int n = a->columns - column < VL ? (int)(a->columns - column) : VL;
            int64_t rows = a->rows - row < PRODUCT_ROWS ? a->rows - row : PRODUCT_ROWS;
            of_rows[rows - 1](a, row, column, n);
        }
}

/* Columns [begin, end), with sums[row][column - begin] for the chains of all rows; held: earlier chains. */
struct strip {
    const struct rapt_product_args *args;
    float sums[STRIP_SUMS], held[STRIP_SUMS], held_pair[STRIP_SUMS];
    int64_t sums_stride, begin, end;
};

/* Offset to weights PRODUCT_AHEAD columns on; past the strip's end, in the next rows of weights. */
RAPT_INLINE int64_t bytes_ahead(const struct strip *s, int64_t column, int steps) {
    if (column + PRODUCT_AHEAD < s->end)
        return PRODUCT_AHEAD * (int64_t)sizeof(float);
    return steps * s->args->weight_stride_bytes + (PRODUCT_AHEAD - (s->end - s->begin)) * (int64_t)sizeof(float);
}

/* Adds steps terms from k on to the chains of n <= VL columns. */
RAPT_INLINE void strip_steps(struct strip *s, int64_t k, int64_t column, int steps, int n) {
    const struct rapt_product_args *a = s->args;
    const int64_t ahead = bytes_ahead(s, column, steps);
    vf32 weight[STRIP_STEPS];
    RAPT_UNROLL for (int i = 0; i < steps; i++) {
        const float *from = row_at(a->weight, a->weight_stride_bytes, k + i) + column;
        fetch_soon((const char *)from + ahead);
        weight[i] = n == VL ? v_load(from) : v_load_n(from, n);
    }
    const char *x = a->x + k * (int64_t)sizeof(float);
    float *sums = s->sums + (column - s->begin);
    for (int64_t row = 0; row < a->rows; row++, sums += s->sums_stride, x += a->x_stride_bytes) {
        vf32 sum = k % RAPT_INNER_CHAIN ? v_load(sums) : v_splat(0);
        RAPT_UNROLL for (int i = 0; i < steps; i++)
            sum = v_fma(v_splat(((const float *)(const void *)x)[i]), weight[i], sum);
        v_store(sums, sum);
    }
}

RAPT_INLINE void strip_columns(struct strip *s, int64_t k, int steps) {
    int64_t column = s->begin;
    for (; s->end - column >= VL; column += VL)
        strip_steps(s, k, column, steps, VL);
    if (column < s->end)
        strip_steps(s, k, column, steps, (int)(s->end - column));
}

static RAPT_KERNEL void strip_columns_full(struct strip *s, int64_t k) { strip_columns(s, k, STRIP_STEPS); }
static RAPT_KERNEL void strip_columns_1(struct strip *s, int64_t k) { strip_columns(s, k, 1); }

/* The chain of inner that begins at k. */
static void strip_chain(struct strip *s, int64_t k) {
    const struct rapt_product_args *a = s->args;
    const int64_t end = a->inner - k < RAPT_INNER_CHAIN ? a->inner : k + RAPT_INNER_CHAIN;
    const int chain = (int)(k % RAPT_INNER_BLOCK / RAPT_INNER_CHAIN);
    const bool first = k < RAPT_INNER_BLOCK, last = end == a->inner, block_ends = last || chain == 3;
    for (; end - k >= STRIP_STEPS; k += STRIP_STEPS)
        strip_columns_full(s, k);
    for (; k < end; k++)
        strip_columns_1(s, k);
    for (int64_t row = 0; row < a->rows; row++)
        for (int64_t column = s->begin; column < s->end; column += VL) {
            const int64_t at = row * s->sums_stride + column - s->begin;
            vf32 sum = join_chain(v_load(s->sums + at), s->held + at, s->held_pair + at, chain, block_ends);
            if (block_ends)
                store_block(out_at(a, row) + column, a->bias ? a->bias + column : NULL, sum, first, last,
                            s->end - column < VL ? (int)(s->end - column) : VL);
        }
}

/* Weights with contiguous columns, in place: a few rows of weights at a time, as long as the sums fit. */
static void product_in_place(const struct rapt_product_args *a) {
    struct strip s;
    RAPT_ASSUME(a->rows >= 1 && a->rows <= PRODUCT_ROWS && a->inner >= 0);
    s.args = a;
    s.sums_stride = STRIP_SUMS / a->rows / VL * VL;
    for (s.begin = 0; s.begin < a->columns; s.begin = s.end) {
        s.end = a->columns - s.begin < s.sums_stride ? a->columns : s.begin + s.sums_stride;
        for (int64_t k = 0; k < a->inner; k += RAPT_INNER_CHAIN)
            strip_chain(&s, k);
    }
}

#endif
