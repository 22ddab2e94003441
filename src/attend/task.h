/* SPDX-License-Identifier: MIT
 * One task: what it computes, and the scratch that it uses. */
#ifndef RAPT_TASK_H
#define RAPT_TASK_H

#include "plan/work.h"

/* Everything a task needs, resolved from its number. Rows are those of its
 * sequence and KV head, [first_row, first_row + rows). */
struct rapt_task {
    const struct rapt_run *run;
    const struct rapt_plan_body *plan;
    const struct rapt_table *table;
    const struct rapt_tile_kind *kind;
    struct rapt_work work;
    int64_t kv_head, first_row;
    int rows;                 /* at least 1 */
    int64_t split;            /* the first one, where keys are split */
    struct rapt_span visible; /* positions that any row sees */

    float *panel, *scores, *alpha, *slopes, *final_m, *inverse;
    float *bias;                      /* of a tile and a block, if it is not stored as float32 */
    struct rapt_state running, chunk; /* [rows] */
    float *staged[RAPT_SIDES];        /* used where the work stages */
    char *rows_of_keys[RAPT_KEY_ROWS]; /* [RAPT_MAX_TILE_ROWS][RAPT_BLOCK_KEYS], used where masks may leave few keys */
    float *gathered;                   /* likewise, [RAPT_GATHERED_KEYS][dim] */
};

/* Resolves a task of the attend phase, except for its scratch; takes `count` splits of the same keys as one. */
void rapt_task_find(struct rapt_task *task, const struct rapt_run *run, int64_t index, int64_t count);

/* The first of the attend tasks whose states a task of the merge phase folds. */
void rapt_task_find_merge(struct rapt_task *task, const struct rapt_run *run, int64_t index);

/* Gives a task its scratch; number: among the KV heads that take turns, or 0. */
void rapt_task_open(struct rapt_task *task, char *slot, int number);

/* Position of the query of a row. */
static inline int64_t rapt_position(const struct rapt_task *task, int row) {
    return task->work.sequence.query_position + (task->first_row + row) / task->plan->group;
}

/* Query head of a row. */
static inline int64_t rapt_task_head(const struct rapt_task *task, int row) {
    return task->kv_head * task->plan->group + (task->first_row + row) % task->plan->group;
}

/* Pointers to the rows [first, first + count) of a tensor. */
void rapt_task_rows(const struct rapt_task *task, const rapt_tensor *tensor, int first, int count, char **rows);

/* Lays out the queries of the rows [first, first + count) for a kind's score. The scores serve as scratch. */
void rapt_task_pack(const struct rapt_task *task, const struct rapt_tile_kind *kind, float *panel, int first,
                    int count);

/* The running state before the first chunk: initial_state, or an empty one where there is none. */
void rapt_task_begin(struct rapt_task *task);

/* The partial state of a chunk, counted from the first that the sequence sees, of the task's KV head. */
struct rapt_state rapt_state_of_chunk(const struct rapt_task *task, int64_t chunk);

#endif
