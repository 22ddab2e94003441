/* SPDX-License-Identifier: MIT
 * A plan: the descriptor, its constants, and the way the work is cut. A task is
 * batch x KV head x block of rows [x range of chunks]; a row is one query of
 * one head of the group: row = query * group + head in group. */
#ifndef RAPT_PLAN_H
#define RAPT_PLAN_H

#include "internal.h"

enum { RAPT_MAX_TILES = 128 }; /* of a task */

struct __attribute__((may_alias)) rapt_attention { /* lives in a rapt_plan */
    uint64_t magic;
    rapt_attention_desc desc; /* value_dim is never 0 */
    const struct rapt_kernels *kernels;

    float scale;         /* as given, or 1/sqrt(head_dim) */
    float score_factor;  /* dot product -> what logits expects */
    float softcap_log2e; /* 0 = no softcap */

    int64_t group;       /* query heads of a KV head */
    int64_t task_rows;   /* rows of a task at most */
    int64_t row_blocks;  /* per batch and KV head */
    int64_t ranges;      /* 1, or: the keys of a row block are split into so many tasks */
    int64_t range_chunks;
    int64_t chunks;      /* states kept per batch and KV head when ranges > 1 */
    int64_t tasks;       /* of the attend phase */
    bool narrow;
    int32_t tile_rows;
    bool is_staged;      /* keys and values are copied, block by block, to contiguous rows */
    bool is_small;       /* not worth waking threads */

    int64_t o_stride;    /* floats per row of o */
};

/* Offsets in bytes into one scratch slot; written down here only. */
struct rapt_scratch_layout {
    size_t panel, scores, m, l, chunk_m, chunk_l, alpha, slopes, final_m, inverse, o, chunk_o, staged, slot_bytes;
};

/* Offsets in bytes into the workspace, from its first multiple of 64 on. */
struct rapt_workspace_layout {
    size_t states, state_bytes; /* partial states of split keys, one per batch, KV head and chunk */
    size_t slots;
};

_Static_assert(sizeof(struct rapt_attention) <= sizeof(rapt_plan), "rapt_plan is too small");

static inline const struct rapt_attention *rapt_attention_of(const rapt_plan *plan) {
    return (const struct rapt_attention *)(const void *)plan;
}

/* Cuts the work of a valid descriptor. Not inlined, so that its arithmetic
 * stays between the caller's changes of the floating-point environment. */
__attribute__((noinline)) void rapt_cut(struct rapt_attention *attention, const rapt_attention_desc *desc,
                                        const struct rapt_kernels *kernels);

struct rapt_scratch_layout rapt_layout_scratch(const struct rapt_attention *attention);

/* False where the sizes overflow. */
bool rapt_layout_workspace(const struct rapt_attention *attention, struct rapt_workspace_layout *layout);

static inline int64_t rapt_length_at(rapt_index_list list, int64_t i, int64_t otherwise) {
    return list.data ? rapt_index_at(list, i) : otherwise;
}

static inline int64_t rapt_round_up(int64_t x, int64_t to) { return (x + to - 1) / to * to; }

#endif
