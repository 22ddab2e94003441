/* SPDX-License-Identifier: MIT */
#include "attend/finish.h"

void rapt_finish(struct rapt_task *task, struct rapt_state state, int first, int count) {
    const struct rapt_plan_body *a = task->attention;
    char *out[RAPT_MAX_TILE_ROWS], *lse[RAPT_MAX_TILE_ROWS];
    float sinks[RAPT_MAX_TILE_ROWS];
    if (a->desc.final_state.data) {
        rapt_task_rows(task, &a->desc.final_state, first, count, out);
        a->table->store_states(rapt_state_from(state, first), out, count, (int)a->desc.value_dim);
    }
    if (a->desc.out.data)
        rapt_task_rows(task, &a->desc.out, first, count, out);
    if (a->desc.lse.data)
        rapt_task_rows(task, &a->desc.lse, first, count, lse);
    for (int row = 0; a->desc.sinks && row < count; row++)
        sinks[row] = a->desc.sinks[rapt_task_head(task, first + row)] * RAPT_LOG2E;
    struct rapt_finish_args args = {.state = rapt_state_from(state, first),
                                    .rows = count,
                                    .value_dim = (int)a->desc.value_dim,
                                    .sink_log2e = a->desc.sinks ? sinks : NULL,
                                    .out_format = a->out_format,
                                    .out = a->desc.out.data ? out : NULL,
                                    .lse = a->desc.lse.data ? lse : NULL,
                                    .final_m = task->final_m + first,
                                    .inverse = task->inverse + first};
    a->table->finish(&args);
}
