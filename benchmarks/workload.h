/* SPDX-License-Identifier: MIT
 *
 * One attention call of the benchmark, planned and ready to run. */
#ifndef RAPT_BENCHMARKS_WORKLOAD_H
#define RAPT_BENCHMARKS_WORKLOAD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "memory.h"
#include "rapt/rapt.h"

enum workload_feature {
    FEATURE_NONE,
    FEATURE_CAUSAL,
    FEATURE_ALIBI,
    FEATURE_SOFTCAP,
    FEATURE_MASK_ONES,   /* a dense mask that is all true */
    FEATURE_MASK_RANDOM, /* half of it, at random; counted as if all were true */
    FEATURE_MASK_CAUSAL,
    FEATURE_BIAS,
    FEATURE_SINKS,
    FEATURE_TOP_KEYS,    /* a dense mask that is true for some keys, the same for all heads */
    FEATURE_KEY_BLOCKS   /* lists of some key blocks */
};

enum workload_layout { LAYOUT_BHSD, LAYOUT_BSHD };

struct workload_shape {
    int64_t batch, query_heads, kv_heads, query_length, kv_length, head_dim, value_dim;
    bool is_latent; /* V is a view of K */
    rapt_dtype kv_dtype;
    int32_t numerics; /* queries and results are of kv_dtype in order 2, else float32 */
    enum workload_feature feature;
    int64_t window; /* keys that a causal query sees at most; 0 = all */
    int64_t selected; /* FEATURE_TOP_KEYS, FEATURE_KEY_BLOCKS: keys or blocks that a query sees */
    int64_t block_keys; /* of FEATURE_KEY_BLOCKS; query blocks have as many tokens */
    enum workload_layout layout;
    int64_t page_tokens;    /* K and V lie in shuffled pages, each as layout says; 0 = they are contiguous */
    int64_t kv_token_bytes; /* stride of a token of K and V, its heads side by side; 0 = as layout says */
    bool ragged;            /* the sequences of the batch have lengths from 37 to query_length */
};

enum { WORKLOAD_MAX_RAGGED = 16 };

/* K and V fill a region of the arena. Decode reads the next region in each run, so that no cache can hold its input;
 * prefill has one region. */
struct workload {
    struct workload_shape shape;
    rapt_attention_desc desc; /* of region 0 */
    rapt_plan plans[ARENA_MAX_REGIONS];
    const void *key, *value; /* of region 0 */
    void *query, *out;
    unsigned char *mask;
    int32_t *offsets, *entries; /* of key blocks */
    int32_t *pages;             /* entries of the page table */
    int32_t lengths[WORKLOAD_MAX_RAGGED];
    size_t region_bytes;
    int region_count;
    size_t *cursor;
    void *workspace;
    size_t workspace_bytes;
    int threads;
    rapt_status status;  /* of the last run */
    double pairs;        /* of attending query and key, over all heads */
    double flops, bytes; /* of one run; bytes: each tensor once, of keys those that one query selects */
};

/* cursor counts regions, see stream_peak; NULL = one region. Returns whether it worked, else says in why what did not;
 * status is then RAPT_OK if memory is too small. */
bool workload_init(struct workload *workload, const struct workload_shape *shape, rapt_isa isa, int threads,
                   const struct arena *arena, size_t *cursor, rapt_message *why);
void workload_run(void *workload);

/* Remakes the plan and runs it, WORKLOAD_CALLS times: one such call is too short to time. */
enum { WORKLOAD_CALLS = 100 };
void workload_plan_and_run(void *workload);

void workload_free(struct workload *workload);

/* As types with few bits, the arena's bytes are large numbers: scales scores to ordinary size. */
void workload_scale(rapt_attention_desc *desc, rapt_dtype kv_dtype);

/* Of queries and results. */
rapt_dtype workload_query_dtype(const struct workload_shape *shape);

/* Whether the library takes keys and values of this type; otherwise their rows are left out. */
bool workload_accepts(rapt_dtype kv_dtype);

/* Gives caches of so many tokens per sequence a shuffled page table, which buffer_free frees. */
int32_t *workload_page(rapt_attention_desc *desc, int64_t page_tokens, int64_t tokens);

/* The part of workload_init that fills desc, and makes the mask. */
void workload_describe(struct workload *workload, rapt_isa isa, const struct arena *arena);

#endif
