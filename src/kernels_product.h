/* SPDX-License-Identifier: MIT
 * Slots of a table that matrix products use. */
#ifndef RAPT_KERNELS_PRODUCT_H
#define RAPT_KERNELS_PRODUCT_H

#include <stdbool.h>
#include <stdint.h>

struct rapt_errands;

/* Part of a matrix product: rows x columns of out, over inner numbers each. */
struct rapt_product_args {
    const char *x;              /* row 0 */
    const char *weight;         /* few: row 0 of columns or of inner; tile: the panel */
    char *out;                  /* row 0 */
    const float *bias;          /* [columns]; NULL = none */
    int64_t x_stride_bytes, weight_stride_bytes, out_stride_bytes;
    int64_t rows, inner, columns;
    bool first, last;           /* tile: whether this is the first, the last block of inner */
    struct rapt_errands *errands; /* tile: the weights of the next block */
};

/* out = sum of x * weight + bias, by blocks of RAPT_INNER_BLOCK (numerics.md, matrix products). pack and few are
 * indexed by rapt_weight_layout. */
struct rapt_product_kernels {
    int columns;  /* of a tile */
    int few_rows; /* few takes at most */
    /* panel[inner][columns of a tile]: absent columns are +0. weight: row 0 of the columns, or of inner. */
    void (*pack[2])(float *panel, const char *weight, int64_t stride_bytes, int columns, int inner);
    /* One block of inner for up to `columns` columns: adds to out, unless first; finishes out if last. */
    void (*tile)(const struct rapt_product_args *args);
    /* All of inner, reading weights once, in place; for up to few_rows rows, or any if inner = 0. */
    void (*few[2])(const struct rapt_product_args *args);
};

#endif
