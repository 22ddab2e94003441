/* SPDX-License-Identifier: MIT
 * The end of every row: fold the states of its chunks, left to right, and turn
 * the sum into results. */
#include "task.h"

void rapt_merge(const struct rapt_attention *a, char *states, char *slot, int64_t index) {
    struct rapt_task task;
    rapt_task_open(&task, a, slot, index * a->ranges);
    if (task.rows == 0)
        return;
    struct rapt_state into = rapt_state_of_chunk(a, states, task.batch, task.kv_head, 0);
    for (int64_t chunk = a->range_chunks; chunk < task.end_chunk - task.first_chunk; chunk++)
        a->kernels->merge(into, rapt_state_of_chunk(a, states, task.batch, task.kv_head, chunk), task.rows,
                          (int)a->desc.value_dim, a->o_stride);
    for (int first = 0; first < task.rows; first += RAPT_MAX_TILE_ROWS) {
        int left = task.rows - first;
        rapt_finish(&task, into, first, left < RAPT_MAX_TILE_ROWS ? left : RAPT_MAX_TILE_ROWS);
    }
    rapt_write_weights(&task);
}

void rapt_finish(struct rapt_task *task, struct rapt_state state, int first, int count) {
    const struct rapt_attention *a = task->attention;
    float *out[RAPT_MAX_TILE_ROWS], *lse[RAPT_MAX_TILE_ROWS];
    float sinks[RAPT_MAX_TILE_ROWS];
    rapt_task_rows(task, &a->desc.out, first, count, out);
    if (a->desc.lse.data)
        rapt_task_rows(task, &a->desc.lse, first, count, lse);
    for (int row = 0; a->desc.sinks && row < count; row++)
        sinks[row] = a->desc.sinks[task->kv_head * a->group + (task->first_row + first + row) % a->group] *
                     RAPT_LOG2E;
    struct rapt_finish_args args = {.state = rapt_state_from(state, first, a->o_stride),
                                    .o_stride = a->o_stride,
                                    .rows = count,
                                    .value_dim = (int)a->desc.value_dim,
                                    .sink_log2e = a->desc.sinks ? sinks : NULL,
                                    .out = out,
                                    .lse = a->desc.lse.data ? lse : NULL,
                                    .final_m = task->final_m + first,
                                    .inverse = task->inverse + first};
    a->kernels->finish(&args);
}
