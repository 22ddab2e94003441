/* SPDX-License-Identifier: MIT */
#include "merge.h"

#include "attend/finish.h"
#include "attend/weights.h"

void rapt_merge(const struct rapt_run *run, char *slot, int64_t index) {
    const struct rapt_plan_body *plan = run->plan;
    struct rapt_task task;
    rapt_task_find_merge(&task, run, index);
    rapt_task_open(&task, slot, 0);
    const struct rapt_state into = rapt_state_of_chunk(&task, 0);
    for (int64_t chunk = plan->split_chunks; chunk < task.work.chunks; chunk++)
        plan->table->merge(into, rapt_state_of_chunk(&task, chunk), task.rows, (int)plan->desc.value_dim);
    for (int first = 0; first < task.rows; first += RAPT_MAX_TILE_ROWS) {
        int left = task.rows - first;
        rapt_finish(&task, into, first, left < RAPT_MAX_TILE_ROWS ? left : RAPT_MAX_TILE_ROWS);
    }
    rapt_write_weights(&task);
}
