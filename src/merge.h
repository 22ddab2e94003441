/* SPDX-License-Identifier: MIT
 * The end of every row: states to results. */
#ifndef RAPT_MERGE_H
#define RAPT_MERGE_H

#include "attend/task.h"

/* The merge phase: folds the states of split keys, left to right, and finishes the rows. */
void rapt_merge(const struct rapt_run *run, char *slot, int64_t index);

/* Writes out, lse and final_state of the rows [first, first + count) of a task, at most RAPT_MAX_TILE_ROWS. */
void rapt_finish(struct rapt_task *task, struct rapt_state state, int first, int count);

#endif
