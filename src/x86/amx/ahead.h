/* SPDX-License-Identifier: MIT
 * Order 2 on the matrix unit: prefetches beside the products of a tile. Packing reads the next block only after all
 * tiles of this one, and memory would idle until then in a memory-bound call; in its last block a tile requests its
 * rows of out, and the next queries. */
#ifndef RAPT_X86_AMX_AHEAD_H
#define RAPT_X86_AMX_AHEAD_H

#include "attend/block.h"
#include "generic/prefetched.h"

enum {
    AHEAD_ROWS = 64, /* of keys or values, requested beside each product of a half: two tiles get all of a block */
    AHEAD_LINES = 4  /* requested in a turn of products */
};

/* Rows, or parts of longer ones, wherever they lie. */
struct amx_ahead {
    const char *row[AHEAD_ROWS];
};

RAPT_INLINE struct rapt_errands *amx_left(struct rapt_errands *e) { return e && e->at < e->count ? e : NULL; }

/* Prefetches beside products with keys: NULL = none left, or caches hold them. */
RAPT_INLINE struct rapt_errands *amx_beside_keys(const struct rapt_block *b) {
    return b->task->plan->exceeds_caches ? amx_left(b->of_score) : NULL;
}

/* Beside products with values: the tile's own first. */
RAPT_INLINE struct rapt_errands *amx_beside_values(const struct rapt_block *b) {
    struct rapt_errands *e = amx_left(b->of_weigh);
    return e ? e : amx_beside_keys(b);
}

/* Takes some rows of a piece of whole rows. */
RAPT_INLINE int amx_take_rows(const char **row, int room, struct rapt_errands *e) {
    const struct rapt_errand *piece = &e->piece[e->at];
    const char *first = errand_at(e);
    const int left = piece->rows - e->row, rows = left < room ? left : room;
    for (int i = 0; i < rows; i++)
        row[i] = first + i * piece->row_stride_bytes;
    e->row += rows - 1;
    finish_errand_row(e);
    return rows;
}

/* Takes the next rows, `lines` lines at a time; if none are left, at_hand. */
RAPT_INLINE void amx_look_ahead(struct amx_ahead *ahead, struct rapt_errands *e, int lines, const void *at_hand) {
    int count = 0;
    while (count < AHEAD_ROWS && e->at < e->count) {
        const struct rapt_errand *piece = &e->piece[e->at];
        if (piece->heads == 1 && piece->row_bytes <= lines * 64) {
            count += amx_take_rows(ahead->row + count, AHEAD_ROWS - count, e);
            continue;
        }
        ahead->row[count++] = errand_at(e);
        e->byte += lines * 64;
        if (e->byte >= piece->row_bytes)
            finish_errand_row(e);
    }
    for (; count < AHEAD_ROWS; count++)
        ahead->row[count] = at_hand;
}

/* Turn `turn` of a group of products, which fetches `rows` rows of `lines` lines each: constants. */
RAPT_INLINE void amx_fetch_ahead(const struct amx_ahead *ahead, int group, int rows, int turn, int lines) {
    RAPT_UNROLL for (int i = turn * AHEAD_LINES; i < (turn + 1) * AHEAD_LINES; i++)
        if (i < rows * lines)
            fetch_later(ahead->row[group * rows + i / lines] + i % lines * 64);
}

#endif
