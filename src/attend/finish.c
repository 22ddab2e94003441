/* SPDX-License-Identifier: MIT */
#include "attend/finish.h"

void rapt_finish(struct rapt_task *task, struct rapt_state state, int first, int count) {
    const struct rapt_plan_body *plan = task->plan;
    char *out[RAPT_MAX_TILE_ROWS], *lse[RAPT_MAX_TILE_ROWS];
    float sinks[RAPT_MAX_TILE_ROWS];
    if (plan->desc.final_state.data) {
        rapt_task_rows(task, &plan->desc.final_state, first, count, out);
        plan->table->store_states(rapt_state_from(state, first), out, count, (int)plan->desc.value_dim);
    }
    if (plan->desc.out.data)
        rapt_task_rows(task, &plan->desc.out, first, count, out);
    if (plan->desc.lse.data)
        rapt_task_rows(task, &plan->desc.lse, first, count, lse);
    for (int row = 0; plan->desc.sinks && row < count; row++)
        sinks[row] = plan->desc.sinks[rapt_task_head(task, first + row)] * RAPT_LOG2E;
    struct rapt_finish_args args = {.state = rapt_state_from(state, first),
                                    .rows = count,
                                    .value_dim = (int)plan->desc.value_dim,
                                    .sink_log2e = plan->desc.sinks ? sinks : NULL,
                                    .out_format = plan->out_format,
                                    .out = plan->desc.out.data ? out : NULL,
                                    .lse = plan->desc.lse.data ? lse : NULL,
                                    .final_m = task->final_m + first,
                                    .inverse = task->inverse + first};
    plan->table->finish(&args);
}
