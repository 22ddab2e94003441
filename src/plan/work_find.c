/* SPDX-License-Identifier: MIT */
#include "plan/work.h"

static struct rapt_work repeated(const struct rapt_plan_body *plan, int64_t batch) {
    struct rapt_work work = plan->each;
    const int64_t heads = plan->desc.kv_heads;
    work.batch = batch;
    work.first_task = batch * heads * work.row_blocks * work.splits;
    work.first_merge = batch * heads;
    if (work.splits > 1)
        work.first_state = batch * heads * work.chunks * rapt_state_bytes(work.task_rows, plan->o_stride);
    return work;
}

struct rapt_work rapt_work_of_task(const struct rapt_plan_body *plan, const struct rapt_work *table, int32_t phase,
                                   int64_t task) {
    const bool merges = phase == RAPT_PHASE_MERGE;
    RAPT_ASSUME(task >= 0 && task < (merges ? plan->totals.all_merges : plan->totals.all_tasks));
    if (!plan->works_differ)
        return repeated(plan, task / (plan->desc.kv_heads * (merges ? 1 : plan->each.row_blocks * plan->each.splits)));
    int64_t low = 0, high = plan->desc.batch - 1; /* the last work that begins no later than the task */
    while (low < high) {
        const int64_t middle = low + (high - low + 1) / 2;
        if ((merges ? table[middle].first_merge : table[middle].first_task) <= task)
            low = middle;
        else
            high = middle - 1;
    }
    return table[low];
}
