/* SPDX-License-Identifier: MIT
 * What a task reads and costs, for callers that place tasks themselves. */
#include "attend/task_info.h"

/* A task of the merge phase folds the states that the tasks of its KV head left. */
static int64_t find_merge(struct rapt_task *task, const struct rapt_run *run, int64_t index) {
    rapt_task_find_merge(task, run, index);
    task->visible = rapt_visible_to(&run->plan->desc, &task->work.sequence, rapt_position(task, 0),
                                    rapt_position(task, task->rows - 1));
    return task->rows * task->work.chunks * run->plan->desc.value_dim;
}

void rapt_task_describe(const struct rapt_run *run, int32_t phase, int64_t index, rapt_task_info *info) {
    const rapt_attention_desc *desc = &run->plan->desc;
    struct rapt_task task;
    int64_t cost = 0;
    if (phase == RAPT_PHASE_ATTEND)
        rapt_task_find(&task, run, index, 1);
    else
        cost = find_merge(&task, run, index);
    *info = (rapt_task_info){.sequence = task.work.batch,
                             .kv_head = task.kv_head,
                             .first_row = task.first_row,
                             .rows = task.rows,
                             .keys = rapt_span_count(task.visible)};
    info->first_key = info->keys ? task.visible.begin - task.work.sequence.key_position : 0;
    if (phase == RAPT_PHASE_ATTEND)
        cost = (int64_t)((double)(info->rows * info->keys * (desc->head_dim + desc->value_dim)) *
                         run->plan->listed_share);
    info->cost = cost;
}
