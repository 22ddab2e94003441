/* SPDX-License-Identifier: MIT
 * What comes next is prefetched while a block is computed: rows that the processor would not fetch by itself. No
 * result depends on it: without this module and with NULL for all errands the bits are the same. */
#ifndef RAPT_PREFETCH_H
#define RAPT_PREFETCH_H

#include "attend.h"

/* Begins the block at base: its tiles will fetch, and stage, the keys and values of the block after it, and in the end
 * those of the next task's first block. */
void rapt_prefetch_block(struct rapt_loop *loop, int64_t base);

/* What one tile fetches while it works on the block at base: those keys and values; masks of the tile that comes next;
 * where the tile ends, its rows of out and the queries that the next task has in its place. Fills errands and says in
 * block who runs what. */
void rapt_prefetch_tile(struct rapt_loop *loop, const struct rapt_tile *tile, int64_t base,
                        struct rapt_errands *errands, struct rapt_block *block);

#endif
