/* SPDX-License-Identifier: MIT
 * One key block for one tile. */
#ifndef RAPT_BLOCK_H
#define RAPT_BLOCK_H

#include "attend/source.h"
#include "attend/visit.h"

struct rapt_block {
    const struct rapt_task *task;
    struct rapt_source *source;
    const struct rapt_tile_mask *mask;
    struct rapt_errands *of_score, *of_weigh; /* errands that slots run; NULL = none. softmax shares those of weigh */
    float *panel;            /* the queries, as pack left them, and what else the kind keeps */
    float *scores;           /* of kinds whose steps are slots, or that score the next block's keys beside values */
    bool is_scored;          /* they are there already */
    struct rapt_state state; /* of the tile's rows in this chunk */
    int rows;
    int64_t base;            /* position of key 0 of the block */
    int key_begin, key_end;  /* keys that any row sees, at least one, in the numbers of mask */
    enum rapt_seen seen;
    bool fresh;              /* o holds nothing yet */
    bool careful;            /* no value of an excluded pair may take part, not even with a weight of 0 */
    struct rapt_next_scores { /* of the next block, computed while this one is weighed */
        float *scores;        /* NULL = none */
        int64_t base;
        int key_begin, key_end;
    } next;
};

/* The same block for the tiles of at most RAPT_MOST_HEADS KV heads, which take turns. */
void rapt_blocks_in_turns(const struct rapt_block *const *blocks, int count);

/* The block slot of kinds whose steps are slots. */
void rapt_block_by_steps(const struct rapt_block *block);

#endif
