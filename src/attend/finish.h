/* SPDX-License-Identifier: MIT
 * The end of every row: states to results. */
#ifndef RAPT_FINISH_H
#define RAPT_FINISH_H

#include "attend/task.h"

/* Writes out, lse and final_state of the rows [first, first + count) of a task, at most RAPT_MAX_TILE_ROWS. */
void rapt_finish(struct rapt_task *task, struct rapt_state state, int first, int count);

#endif
