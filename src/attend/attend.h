/* SPDX-License-Identifier: MIT
 * The blocked online-softmax loop over the keys of a task. */
#ifndef RAPT_ATTEND_H
#define RAPT_ATTEND_H

#include "attend/block.h"

enum rapt_tile_flag {
    RAPT_TILE_PACKED = 1 << 0,
    RAPT_TILE_STARTED = 1 << 1,  /* the running state holds a chunk, or the initial state */
    RAPT_TILE_TOUCHED = 1 << 2,  /* in this chunk */
    RAPT_TILE_DOUBTFUL = 1 << 3, /* in this chunk values of excluded pairs took part, with a weight of 0 */
    RAPT_TILE_FINISHED = 1 << 4, /* its rows of out are written */
    RAPT_TILE_SPARSE = 1 << 5    /* masks left few keys of the block before */
};

struct rapt_tile {
    struct rapt_task *task; /* that of the loop, or of another KV head, with which it takes turns */
    int first, rows;
    unsigned flags;
    struct rapt_span visible; /* positions that any of its rows sees */
    float *panel;
    struct rapt_state state;  /* of this chunk; in the first one the running state */
    struct rapt_scored { /* where kinds score keys beside values */
        int here;        /* which of two places has the scores of the current block */
        int64_t base;    /* of the block whose scores the other one has; -1 = none */
    } scored;
};

struct rapt_loop {
    struct rapt_task *task; /* followed by those of further heads */
    int heads;              /* KV heads that take turns, one tile each; 1 = none */
    struct rapt_source source;
    struct rapt_tile tiles[RAPT_MAX_TILES];
    int tile_count;
    bool takes_turns; /* keys are scored beside values */
    const struct rapt_task *next_task; /* the task that this thread is likely to get next; NULL = none */
    struct rapt_ahead {
        struct rapt_errands errands; /* the keys and values that come next, for all tiles of a block */
        int of_next_task;            /* the first piece that belongs to the next task; -1 = none */
    } ahead;
};

/* The attend phase: a task, or `count` that are splits of the same keys, of all heads that take turns. next_index: the
 * task that this thread is likely to get next, or any number that is no task's. */
void rapt_attend(const struct rapt_run *run, char *slot, int64_t index, int64_t count, int64_t next_index);

#endif
