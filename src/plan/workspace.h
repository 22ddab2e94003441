/* SPDX-License-Identifier: MIT
 * The caller's memory while a plan runs: header, works of the sequences, partial states, scratch slots. */
#ifndef RAPT_WORKSPACE_H
#define RAPT_WORKSPACE_H

#include <stdatomic.h>

#include "plan/work.h"

/* At the first multiple of 64 in the memory. */
struct rapt_workspace {
    uint64_t magic;
    int64_t slots;
    _Atomic int64_t next[RAPT_PHASES]; /* the first task that nobody has taken */
    atomic_bool stopped;     /* the caller asked to stop */
    struct rapt_totals totals; /* of the plan that it was prepared for */
    size_t slot_bytes;
    const struct rapt_work *works;
    char *states, *scratch;
    _Atomic unsigned char busy[]; /* [slots] */
};

/* Bytes for so many tasks at once, whatever the alignment of the memory; more slots than tasks are of no use.
 * RAPT_SIZE_OVERFLOW if more than INT32_MAX are. */
rapt_status rapt_workspace_bytes(const struct rapt_plan_body *plan, int64_t slots, size_t *bytes);

/* The same for any call whose batch and lengths are no larger. */
rapt_status rapt_workspace_capacity(const struct rapt_plan_body *plan, int64_t slots, size_t *bytes);

/* Lays the workspace out with as many slots as fit and are of use, and writes the works. */
rapt_status rapt_workspace_prepare(const struct rapt_plan_body *plan, void *memory, size_t bytes);

/* NULL if memory was not prepared for this plan, a copy of it, or one whose work is cut alike. */
struct rapt_workspace *rapt_workspace_of(const struct rapt_plan_body *plan, void *memory);

/* A free scratch slot, or -1. */
int64_t rapt_workspace_take(struct rapt_workspace *workspace);
void rapt_workspace_give(struct rapt_workspace *workspace, int64_t slot);

static inline char *rapt_workspace_slot(const struct rapt_workspace *w, int64_t slot) {
    return w->scratch + (size_t)slot * w->slot_bytes;
}

static inline struct rapt_run rapt_run_of(const struct rapt_plan_body *plan, const struct rapt_workspace *w) {
    return (struct rapt_run){.plan = plan, .works = w->works, .states = w->states};
}

#endif
