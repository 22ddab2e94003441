/* SPDX-License-Identifier: MIT
 * Prefetches what comes next while a block is computed: rows that the processor would not prefetch by itself. No result
 * depends on it: without this module, and with NULL for all errands, the bits are the same. */
#ifndef RAPT_PREFETCH_H
#define RAPT_PREFETCH_H

#include "attend/attend.h"

/* Begins the block at base: its tiles prefetch and stage the keys and values of the block after it, and at the end of
 * the task those of the next task's first block. Slots of kinds that stream prefetch their own rows instead. */
void rapt_prefetch_block(struct rapt_loop *loop, int64_t base);

/* What one tile prefetches while it works on the block at base: those keys and values; the masks of the next tile; at
 * its end, its rows of out and the queries of the next task that take its place. Fills errands, and sets in block which
 * slot runs which list. */
void rapt_prefetch_tile(struct rapt_loop *loop, const struct rapt_tile *tile, int64_t base,
                        struct rapt_errands *errands, struct rapt_block *block);

#endif
