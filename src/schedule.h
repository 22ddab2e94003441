/* SPDX-License-Identifier: MIT */
#ifndef RAPT_SCHEDULE_H
#define RAPT_SCHEDULE_H

#include "plan/plan.h"

/* Attend, and merge if keys are split. */
int32_t rapt_phases(const struct rapt_plan_body *plan);
int64_t rapt_tasks(const struct rapt_plan_body *plan, int32_t phase);

/* RAPT_NOT_PREPARED if memory is not; RAPT_BUSY, of a task only, if no scratch slot is free. A join takes tasks until
 * none is left. */
rapt_status rapt_schedule_task(const struct rapt_plan_body *plan, void *memory, int32_t phase, int64_t task);
rapt_status rapt_schedule_join(const struct rapt_plan_body *plan, void *memory, int32_t phase);

/* RAPT_STOPPED, or RAPT_PARALLEL_FOR_FAILED if parallel_for failed or left tasks undone. ASSUME memory is prepared and
 * no other run uses it; options are complete here and below. */
rapt_status rapt_schedule_run(const struct rapt_plan_body *plan, void *memory, const rapt_run_options *options);

int rapt_schedule_threads(void);

/* How many tasks a run has under way if the workspace allows it, at least 1. */
int64_t rapt_schedule_concurrency(const struct rapt_plan_body *plan, const rapt_run_options *options);

/* How many workers to use, at most `most`; OpenMP leaves small work to the calling thread. */
int rapt_schedule_workers(const rapt_run_options *options, int64_t most, bool is_small);

/* Runs tasks 0 ... tasks - 1, rounding to nearest, on as many workers as rapt_schedule_workers says. */
typedef void (*rapt_run_one)(const void *argument, int64_t task);
rapt_status rapt_schedule_tasks(const rapt_run_options *options, int64_t tasks, bool is_small, rapt_run_one run,
                                const void *argument);

#endif
