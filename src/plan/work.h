/* SPDX-License-Identifier: MIT
 * How the work of each sequence is cut, and which task belongs to which. */
#ifndef RAPT_WORK_H
#define RAPT_WORK_H

#include "plan/plan.h"

/* Cuts the work of all sequences: sets each, split_chunks and totals. False if a list has changed since it was checked,
 * and is not legal. */
bool rapt_work_cut_all(struct rapt_plan_body *plan);

/* The work of a sequence, except for its place among the others. */
struct rapt_work rapt_work_cut(const struct rapt_plan_body *plan, const struct rapt_sequence *sequence);

/* Bounds what any call takes whose batch and lengths are no larger. */
void rapt_work_bound(const struct rapt_plan_body *plan, struct rapt_totals *totals);

/* Bytes of the keys and values of a work, over all KV heads. */
double rapt_stored_bytes(const struct rapt_plan_body *plan, const struct rapt_work *work);

/* Bytes of the table of works; 0 unless they differ. */
size_t rapt_work_table_bytes(const struct rapt_plan_body *plan);

/* Writes the table. False if a list has changed since the plan was made, so that the plan does not fit. Not inlined:
 * fpenv.h. */
__attribute__((noinline)) bool rapt_work_write(const struct rapt_plan_body *plan, struct rapt_work *table);

/* Adds a work to a digest, which begins with the bounds of lists; 0 = empty. ASSUME the work's place among the others
 * is not set yet. */
void rapt_work_digest(const struct rapt_plan_body *plan, const struct rapt_work *work, uint64_t *digest);

/* The task number of a head's first split, if keys are split. Heads that take turns have adjacent numbers, followed by
 * the next split of all of them. */
static inline int64_t rapt_work_first_split(const struct rapt_work *work, int64_t kv_head) {
    return work->first_task + kv_head / work->heads * work->heads * work->splits + kv_head % work->heads;
}

/* The work that a task of a phase belongs to; table is used where works differ. */
struct rapt_work rapt_work_of_task(const struct rapt_plan_body *plan, const struct rapt_work *table, int32_t phase,
                                   int64_t task);

/* A plan with its workspace. */
struct rapt_run {
    const struct rapt_plan_body *plan;
    const struct rapt_work *works; /* used where they differ */
    char *states;                  /* partial states of split keys */
};

#endif
