/* SPDX-License-Identifier: MIT
 * The tiles of a task at work, and what else sets out for memory while they
 * compute: rows that a processor would not fetch by itself. */
#ifndef RAPT_AHEAD_H
#define RAPT_AHEAD_H

#include "supply.h"

struct rapt_tile {
    int first, rows;
    struct rapt_span visible;   /* positions that any of its rows sees */
    float *panel;
    bool packed;
    bool started;               /* the running state holds a chunk */
    bool finished;              /* its rows of out are written */
    bool touched;               /* in this chunk */
    bool doubtful;              /* in this chunk values of excluded pairs took part, with a weight of 0 */
    struct rapt_state state;    /* of this chunk, which is the running one in the first */
};

struct rapt_loop {
    struct rapt_task *task;
    const struct rapt_tile_kernels *kernels;
    struct rapt_tile tiles[RAPT_MAX_TILES];
    int tile_count;
    struct rapt_supply supply;
    bool careful; /* no excluded value takes part */
};

/* What softmax fetches for the positions keys: a narrow tile is fed from memory, which need not wait while it computes.
 * Fills list, and returns it, or NULL. */
struct rapt_fetch_list *rapt_ahead_in_softmax(const struct rapt_loop *loop, struct rapt_span keys,
                                              struct rapt_fetch_list *list);

/* What weigh fetches while the tile weighs the values of the block at base: the next block's values for a tile that is
 * alone; masks of the tile that comes next; where the tile ends, its rows of out and queries of the task to come.
 * Fills list, and returns it, or NULL. */
struct rapt_fetch_list *rapt_ahead_in_weigh(struct rapt_loop *loop, const struct rapt_tile *tile, int64_t base,
                                            struct rapt_fetch_list *list);

#endif
