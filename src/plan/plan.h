/* SPDX-License-Identifier: MIT
 * A plan: the descriptor, its constants, and how the work is cut. A task is sequence x KV head x block of rows
 * [x split of the chunks]; a row is one query of one head of the group: row = query * group + head in group. */
#ifndef RAPT_PLAN_H
#define RAPT_PLAN_H

#include "assume.h"
#include "sequence.h"
#include "state.h"

enum {
    RAPT_MAX_TILES = 128,            /* of a task */
    RAPT_STAGING_BUFFERS = 2,        /* of staged keys or values: for the current block and the next one */
    RAPT_GATHERED_KEYS = 32,         /* scattered keys or values that are copied at once, and stay in L1 */
    RAPT_MOST_STATE_BYTES = 1 << 28  /* for partial states; keys are not split if these would take more */
};

/* Arrays per row of a tile, with an element per key: what is selected, and copies of masks for selected keys. */
enum rapt_key_rows { RAPT_SELECT_ROWS, RAPT_MASK_ROWS, RAPT_KEEP_ROWS, RAPT_BIAS_ROWS, RAPT_KEY_ROWS };

/* How the work of one sequence is cut. Each has its own tile kind, so that a batch may mix prefill and decode. */
struct rapt_work {
    struct rapt_sequence sequence;
    int64_t batch;            /* its number in the batch */
    int64_t first_task;       /* of the attend phase */
    int64_t first_merge;      /* of the merge phase */
    int64_t first_state;      /* bytes; partial states of split keys: one per KV head and chunk */
    int64_t row_blocks;       /* per KV head */
    int64_t splits;           /* tasks that share the keys of a row block */
    int64_t first_chunk, chunks; /* that any row sees */
    int32_t task_rows;        /* rows of a task at most */
    int32_t kind;             /* of table->kinds */
    int32_t heads;            /* KV heads whose tasks are neighbours, and take turns if one worker has them all */
    bool stages[RAPT_SIDES];  /* keys, values are staged: copied to contiguous float32 rows */
};

/* Offsets in bytes into one scratch slot. */
struct rapt_slot_layout {
    int64_t rows; /* of the states */
    size_t panel, scores, bias, alpha, slopes, final_m, inverse, running, chunk, staged[RAPT_SIDES];
    size_t rows_of_keys[RAPT_KEY_ROWS], gathered; /* where masks may leave few keys */
    size_t further; /* if KV heads take turns: scratch of all but the first, each the slot_bytes of its layout */
    size_t slot_bytes;
};

enum { RAPT_CACHED_BYTES = 16 << 20 /* of keys and values that caches may still hold from the last call */ };

/* Totals over the works of a call. Tasks are numbered kind by kind, the kind with the most rows first. */
struct rapt_totals {
    int64_t sequences[RAPT_KINDS], tasks[RAPT_KINDS], merges[RAPT_KINDS];
    int64_t all_tasks, all_merges, state_bytes;
    int64_t panel_bytes, scores_bytes, bias_rows, rows, staged_keys[RAPT_SIDES]; /* largest of any work, */
    int64_t heads, further_rows;         /* also KV heads in turns, and rows of each but the first */
    double multiplications, stored_bytes; /* the latter of keys and values */
    uint64_t digest; /* of all works, in order, where they are a table: plans that agree in it share a workspace */
};

struct __attribute__((may_alias)) rapt_plan_body { /* lives in a rapt_plan */
    uint64_t magic;
    const void *library;      /* the copy of it that made the plan */
    rapt_attention_desc desc; /* complete: describe.h */
    const struct rapt_table *table;
    int32_t numerics; /* 1 ... 3 */

    float score_factor;   /* dot product -> what logits expects */
    float softcap_log2e;  /* 0 = no softcap */
    unsigned mask_parts;  /* rapt_mask_part, except spans */

    int64_t group;        /* query heads of a KV head */
    int64_t o_stride;     /* floats per row of o */
    int64_t split_chunks; /* chunks of a split */
    int64_t least_chunks; /* of a task whose keys are split */
    double listed_share;  /* of the keys that lists of key blocks name, about; 1 without lists */
    int32_t format[RAPT_SIDES], query_format, bias_format, out_format;
    bool collides[RAPT_SIDES]; /* rows fall into few cache sets */
    bool joins[RAPT_SIDES];    /* pages that are neighbours continue each other */
    int64_t values_in_keys;    /* index in a key where its value begins; -1 = values are elsewhere: plan/view.h */
    bool planned_in_keys;      /* whether values were in the keys when the work was cut */
    bool works_differ;    /* sequences may, so their works are a table; otherwise `each` serves all */
    bool is_small;        /* not worth waking threads */
    bool exceeds_caches;  /* keys and values do, so they come from memory */
    struct rapt_work each; /* unless works differ: that of sequence 0, which all others repeat */
    struct rapt_totals totals;
    struct rapt_slot_layout slot, further;
};

/* Phases of a run, as callers number them. */
enum { RAPT_PHASE_ATTEND, RAPT_PHASE_MERGE, RAPT_PHASES };

_Static_assert(sizeof(struct rapt_plan_body) <= sizeof(rapt_plan), "rapt_plan is too small");

static inline const struct rapt_plan_body *rapt_body_of(const rapt_plan *plan) {
    return (const struct rapt_plan_body *)(const void *)plan;
}

/* Numbers in a row of keys or values, and floats from one staged row to the next. */
static inline int64_t rapt_dim_of(const struct rapt_plan_body *plan, int side) {
    return side == RAPT_KEYS ? plan->desc.head_dim : plan->desc.value_dim;
}

/* Keys or values that a staging buffer has room for. Packed: as many rows as the bytes of half a block amount
 * to, rounded up so that the next buffer begins a cache line. */
static inline int64_t rapt_staged_keys(const struct rapt_tile_kind *kind, int side, int64_t dim) {
    const int64_t row_bytes = dim * (int64_t)sizeof(float), line = RAPT_VECTOR_BYTES / (int64_t)sizeof(float);
    return kind->packed_bytes ? rapt_round_up(kind->packed_bytes(side, (int)dim), line * row_bytes) / row_bytes
                              : kind->piece_keys;
}

static inline const rapt_tensor *rapt_tensor_of(const struct rapt_plan_body *plan, int side) {
    return side == RAPT_KEYS ? &plan->desc.key : &plan->desc.value;
}

/* Whether values were read as keys of the same block: they are in a cache, and keys come next. */
static inline bool rapt_is_in_keys(const struct rapt_plan_body *plan, int side) {
    return side == RAPT_VALUES && plan->values_in_keys >= 0;
}

/* Whether slots take several runs of stored rows at once; rows with scales go run by run. */
static inline bool rapt_takes_runs(const struct rapt_plan_body *plan, const struct rapt_tile_kind *kind, int side) {
    return kind->takes_runs && !rapt_tensor_of(plan, side)->scale_dtype;
}

/* Order 2: whether the exponentials apply the factor of scores, since only masks act on these. A factor of 0 or that is
 * not finite would hide exclusions, so it acts at once, to the same effect. */
static inline bool rapt_enters_unscaled(const struct rapt_plan_body *plan) {
    return plan->numerics == RAPT_NUMERICS_ORDER_2 &&
           !(plan->mask_parts & (RAPT_PART_BIAS | RAPT_PART_ALIBI | RAPT_PART_FILL)) && plan->desc.softcap == 0 &&
           plan->score_factor != 0 && plan->score_factor - plan->score_factor == 0;
}

/* Cuts the work of attention->desc, which is complete and valid; false if a list has changed since it was checked, and
 * is not legal. Not inlined: fpenv.h. */
__attribute__((noinline)) bool rapt_plan_make(struct rapt_plan_body *plan, const struct rapt_table *table);

/* further: for each further KV head that takes turns, from layout->further on. */
void rapt_lay_out_slot(const struct rapt_plan_body *plan, const struct rapt_totals *totals,
                       struct rapt_slot_layout *layout, struct rapt_slot_layout *further);

#endif
