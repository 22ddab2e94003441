/* SPDX-License-Identifier: MIT
 * One task at work: what it computes and the scratch it does it in. */
#ifndef RAPT_TASK_H
#define RAPT_TASK_H

#include "mask.h"

/* Everything a task needs, resolved from its number. Rows are those of its
 * batch and KV head, [first_row, first_row + rows). */
struct rapt_task {
    const struct rapt_attention *attention;
    int64_t batch, kv_head, first_row;
    int rows; /* 0 = nothing to do */
    int64_t range;
    struct rapt_sequence sequence;
    struct rapt_span visible; /* positions that any row sees */
    int64_t first_chunk, end_chunk; /* absolute; those of all ranges */

    float *panel, *scores, *alpha, *slopes, *final_m, *inverse;
    struct rapt_state running, chunk; /* [rows] */
    char *staged[2]; /* room for a block of keys and then of values each; used with is_staged */
};

/* Resolves a task but for its scratch. */
void rapt_task_find(struct rapt_task *task, const struct rapt_attention *attention, int64_t index);

/* Resolves a task; slot is its scratch. */
void rapt_task_open(struct rapt_task *task, const struct rapt_attention *attention, char *slot, int64_t index);

/* Position of the query of a row. */
static inline int64_t rapt_position(const struct rapt_task *task, int row) {
    return task->sequence.query_position + (task->first_row + row) / task->attention->group;
}

static inline struct rapt_state rapt_state_from(struct rapt_state state, int row, int64_t o_stride) {
    struct rapt_state from = {state.m + row, state.l + row, state.o + row * o_stride};
    return from;
}

/* m = -infinity, l = 0. */
void rapt_state_clear(struct rapt_state state, int rows);

/* The partial state of a chunk, counted from the first, in the workspace. */
struct rapt_state rapt_state_of_chunk(const struct rapt_attention *attention, char *states, int64_t batch,
                                      int64_t kv_head, int64_t chunk);

/* Pointers to the rows [first, first + count) of a tensor. */
void rapt_task_rows(const struct rapt_task *task, const rapt_tensor *tensor, int first, int count, float **rows);

/* What the key block at position base does to the rows [first, first + count)
 * of a tile that deals with the positions keys. */
void rapt_task_mask(const struct rapt_task *task, int first, int count, int64_t base, struct rapt_span keys,
                    struct rapt_tile_mask *mask);

/* Adds `bytes` bytes from offset on of the rows [first, first + count) of a tensor to what is to be fetched. */
void rapt_task_list(const struct rapt_task *task, const rapt_tensor *tensor, int first, int count, int64_t offset,
                    int bytes, struct rapt_fetch_list *list);

/* Adds what the rows' bool masks and biases say of keys. */
void rapt_task_list_masks(const struct rapt_task *task, int first, int count, struct rapt_span keys,
                          struct rapt_fetch_list *list);

/* Whether mask changes any score. */
static inline bool rapt_mask_acts(const struct rapt_tile_mask *mask) {
    return mask->has_range || mask->has_mask || mask->has_bias || mask->has_alibi || mask->softcap_log2e != 0;
}

/* Whether a pair takes part, key counted from the block. For the paths that
 * NaN and infinity force to look at single pairs. */
static inline bool rapt_is_attended(const struct rapt_tile_mask *mask, int row, int key) {
    bool in_range = !mask->has_range || (key >= mask->ranges.first_key[row] && key < mask->ranges.end_key[row]);
    bool allowed = !mask->has_mask || mask->has_fill || mask->mask[row][key] != 0;
    return in_range && allowed && !(mask->has_bias && mask->bias[row][key] == -__builtin_inff());
}

/* attend.c: the attend phase. next_index: the task that this thread is likely to get after it, whose data set
 * out early; from attention->tasks on: none. */
void rapt_attend(const struct rapt_attention *attention, char *states, char *slot, int64_t index, int64_t next_index);

/* merge.c: the merge phase, where keys are split; and the end of rows [first, first + count) of a state, at most
 * RAPT_MAX_TILE_ROWS. */
void rapt_merge(const struct rapt_attention *attention, char *states, char *slot, int64_t index);
void rapt_finish(struct rapt_task *task, struct rapt_state state, int first, int count);

/* weights.c: the second pass over the keys, where weights are wanted. */
void rapt_write_weights(struct rapt_task *task);

#endif
