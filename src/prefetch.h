/* SPDX-License-Identifier: MIT
 * What comes next is prefetched while a block is computed: rows that the processor would not fetch by itself. No
 * result depends on it: without this module and with NULL for all errands the bits are the same. */
#ifndef RAPT_PREFETCH_H
#define RAPT_PREFETCH_H

#include "attend.h"

/* What one tile fetches while it works on the block at base: its share of the keys and values of the next block, or of
 * the next task's first; masks of the tile that comes next; where the tile ends, its rows of out and the queries that
 * the next task has in its place. Fills errands and returns it, or NULL where there is nothing. */
struct rapt_errands *rapt_prefetch(const struct rapt_loop *loop, const struct rapt_tile *tile, int64_t base,
                                   struct rapt_errands *errands);

#endif
