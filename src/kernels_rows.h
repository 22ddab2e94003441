/* SPDX-License-Identifier: MIT
 * Stored rows as slots take them, and those that slots prefetch or stage meanwhile. */
#ifndef RAPT_KERNELS_ROWS_H
#define RAPT_KERNELS_ROWS_H

#include <stdint.h>

enum { RAPT_MAX_ERRANDS = 40 }; /* a block's pages of 16 tokens, keys and values, and some */

/* The scales of some stored rows. */
struct rapt_scales {
    const float *scales;       /* of the first row; NULL = none */
    const int8_t *zero_points; /* likewise */
    int64_t stride_bytes;      /* of scales, from row to row; that of zero points is a fourth */
    int64_t group;             /* numbers per scale, a multiple of 16; 0 = the whole row */
};

/* Buffer for stored rows as float32, dim floats apart; rows [0, ready) are filled. */
struct rapt_staging {
    float *rows;
    int64_t ready;
    int dim, format;
};

/* Rows that a slot prefetches while it computes, a few cache lines at a time; score also stages those that have a
 * buffer. Slots advance the cursor as far as they find time. NULL is legal everywhere and changes no result. */
struct rapt_errands {
    int count, at, row, head, byte; /* pieces; the cursor: piece, and row, head and byte in it */
    int64_t lines;                  /* of 64 bytes, in all pieces */
    struct rapt_errand {            /* rows x heads short rows */
        const char *base;
        int64_t row_stride_bytes, head_stride_bytes;
        int rows, heads, row_bytes;
        struct rapt_staging *staging; /* NULL = none; ASSUME heads = 1 */
        struct rapt_scales scales;    /* of these rows, for staging */
        int64_t first;                /* row of staging for row 0 */
    } piece[RAPT_MAX_ERRANDS];
};

static inline void rapt_errands_clear(struct rapt_errands *errands) {
    errands->count = errands->at = errands->row = errands->head = errands->byte = 0;
    errands->lines = 0;
}

/* Ignores a piece without rows, and one that there is no room for. */
static inline void rapt_errands_add(struct rapt_errands *errands, struct rapt_errand piece) {
    if (piece.rows <= 0 || errands->count == RAPT_MAX_ERRANDS)
        return;
    errands->piece[errands->count++] = piece;
    errands->lines += (int64_t)piece.rows * piece.heads * ((piece.row_bytes + 63) / 64);
}

/* A run of the stored rows that a slot works on, at its stride. */
struct rapt_stored_run {
    const char *row;
    int64_t rows;
};

/* Later rows, to be prefetched at the pace at which a slot reads. Memory serves several pages at once faster than one
 * after the other, so their strands are interleaved, a few cache lines of each. */
struct rapt_strands {
    const char *const *strand; /* [count], `bytes` each */
    int count;                 /* a multiple of */
    int interleaved;           /* strands at a time, a power of 2 */
    int pace;                  /* lines prefetched per line read */
    int64_t bytes;
};

#endif
