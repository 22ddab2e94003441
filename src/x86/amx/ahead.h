/* SPDX-License-Identifier: MIT
 * Order 2 on the matrix unit: what memory is asked for beside the products of a tile, where it feeds the call. Packing
 * reads the next block only after all tiles of this one, and memory would rest until then. */
#ifndef RAPT_X86_AMX_AHEAD_H
#define RAPT_X86_AMX_AHEAD_H

#include "attend/block.h"
#include "generic/prefetched.h"

enum {
    AHEAD_ROWS = 64, /* of keys or values, requested beside each product of a half: two tiles get all of a block */
    AHEAD_LINES = 4  /* requested in a turn of products */
};

/* Rows of the next block, wherever they lie. */
struct amx_ahead {
    const char *row[AHEAD_ROWS];
};

/* NULL: nothing is left to ask for, or caches have it. */
RAPT_INLINE struct rapt_errands *amx_errands(const struct rapt_block *b) {
    struct rapt_errands *e = b->task->attention->exceeds_caches ? b->of_score : NULL;
    return e && e->at < e->count ? e : NULL;
}

/* Takes the next rows; where none is left, something at hand. */
RAPT_INLINE void amx_look_ahead(struct amx_ahead *ahead, struct rapt_errands *e, const void *at_hand) {
    int count = 0;
    while (count < AHEAD_ROWS && e->at < e->count) {
        const struct rapt_errand *piece = &e->piece[e->at];
        const char *first = errand_at(e);
        const int left = piece->rows - e->row, room = AHEAD_ROWS - count, rows = left < room ? left : room;
        RAPT_ASSUME(piece->heads == 1);
        for (int i = 0; i < rows; i++)
            ahead->row[count + i] = first + i * piece->row_stride_bytes;
        count += rows;
        e->row += rows - 1;
        finish_errand_row(e);
    }
    for (; count < AHEAD_ROWS; count++)
        ahead->row[count] = at_hand;
}

/* Turn `turn` of a group of products, which has so many of the rows, of so many lines each: constants. */
RAPT_INLINE void amx_fetch_ahead(const struct amx_ahead *ahead, int group, int rows, int turn, int lines) {
    RAPT_UNROLL for (int i = turn * AHEAD_LINES; i < (turn + 1) * AHEAD_LINES; i++)
        if (i < rows * lines)
            fetch_later(ahead->row[group * rows + i / lines] + i % lines * 64);
}

#endif
