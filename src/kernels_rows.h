/* SPDX-License-Identifier: MIT
 * Stored rows as slots take them, and those that they fetch and stage while they compute. */
#ifndef RAPT_KERNELS_ROWS_H
#define RAPT_KERNELS_ROWS_H

#include <stdint.h>

enum { RAPT_MAX_ERRANDS = 40 }; /* all pages of 16 tokens of a block on both sides, and some */

/* The scales of some stored rows. */
struct rapt_scales {
    const float *scales;       /* of the first row; NULL = there are none */
    const int8_t *zero_points; /* likewise */
    int64_t stride_bytes;      /* of scales, from row to row; zero points lie a fourth of it apart */
    int64_t group;             /* numbers to a scale, a multiple of 16; 0 = all of a row */
};

/* Room for stored rows in float32, dim floats apart: rows [0, ready) are there. */
struct rapt_staging {
    float *rows;
    int64_t ready;
    int dim, format;
};

/* Rows of memory that a slot fetches while it computes, a few lines at a time; score also stages those that have a
 * place. Slots advance the cursor, or leave it where they have no time. NULL is legal everywhere and changes no
 * result. */
struct rapt_errands {
    int count, at, row, head, byte; /* pieces; the cursor: piece, and row, head and byte in it */
    int64_t lines;                  /* of 64 bytes, in all pieces */
    struct rapt_errand {            /* rows x heads short rows */
        const char *base;
        int64_t row_stride_bytes, head_stride_bytes;
        int rows, heads, row_bytes;
        struct rapt_staging *staging; /* NULL = none; ASSUME heads = 1 */
        struct rapt_scales scales;    /* of these rows, for staging */
        int64_t first;                /* row 0 is this one of staging */
    } piece[RAPT_MAX_ERRANDS];
};

/* Some of the stored rows that a slot works on, which lie at its stride. */
struct rapt_stored_run {
    const char *row;
    int64_t rows;
};

/* Rows that come later, to be prefetched at the pace at which a slot reads. Memory serves several pages at once faster
 * than one after the other, so their strands take turns, a few lines each. */
struct rapt_strands {
    const char *const *strand; /* [count], each of so many bytes */
    int count;                 /* a multiple of */
    int beside;                /* those that take turns, a power of 2 */
    int pace;                  /* so many lines for each that slots read */
    int64_t bytes;
};

#endif
