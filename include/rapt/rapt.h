/* SPDX-License-Identifier: MIT
 *
 * rapt computes attention on CPUs:
 *
 *     out = softmax(mask(bias(softcap(scale * query * key^T)))) * value
 *
 * with these steps in the order of the ONNX operator Attention (opset 25). Results have the same bits on every
 * instruction set, for any number of threads, and however the work is cut (prefill, decode, chunks, batches).
 *
 * The shortest use is one call:
 *
 *     rapt_attention_desc desc = RAPT_ATTENTION_DESC_INIT;
 *     desc.batch = 1;  desc.query_heads = 8;  desc.kv_heads = 2;
 *     desc.query_length = desc.kv_length = tokens;
 *     desc.head_dim = 64;
 *     desc.query = rapt_input_bhsd(query, 1, 8, tokens, 64);
 *     desc.key   = rapt_input_bhsd(key, 1, 2, tokens, 64);
 *     desc.value = rapt_input_bhsd(value, 1, 2, tokens, 64);
 *     desc.out   = rapt_output_bhsd(out, 1, 8, tokens, 64);
 *     desc.features = RAPT_CAUSAL;
 *     rapt_message message;
 *     if (rapt_attention(&desc, NULL, &message) != RAPT_OK) puts(message.text);
 *
 * Runtimes that must not allocate make a plan in their own memory, give it a workspace and run it, with OpenMP, with
 * their own parallel loop, or from their own threads. One plan serves all layers of a model: bind it to each layer's
 * memory in turn.
 *
 * The library never prints, aborts or installs handlers. It keeps no pointers beyond a call, except those that a plan
 * copies from its descriptor.
 *
 * ABI: an incompatible change of a struct, constant or symbol below changes the soname; before 1.0 any minor release
 * may make one. Otherwise structs with struct_size grow only at their end or into reserved words, and 0 in such a field
 * means what it meant before. An older caller's smaller struct is read as if zeros followed. A newer caller's larger
 * one is accepted if every byte that this library does not know is 0, and refused otherwise. Structs without
 * struct_size do not grow. Enums grow at their end.
 */
#ifndef RAPT_RAPT_H
#define RAPT_RAPT_H

#include "machine.h"
#include "types.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The one place that states the version; the build reads it from here. */
#define RAPT_VERSION_MAJOR 0
#define RAPT_VERSION_MINOR 1
#define RAPT_VERSION_PATCH 0
#define RAPT_VERSION_STRING               \
    RAPT_VERSION_TEXT(RAPT_VERSION_MAJOR) \
    "." RAPT_VERSION_TEXT(RAPT_VERSION_MINOR) "." RAPT_VERSION_TEXT(RAPT_VERSION_PATCH)
#define RAPT_VERSION_TEXT(number) RAPT_VERSION_TOKEN(number)
#define RAPT_VERSION_TOKEN(number) #number

/* The order of operations that `numerics` = 0 selects. It decides every bit (docs/numerics.md): results change only if
 * this number does. */
#define RAPT_NUMERICS_VERSION 1

/* `numerics` of a descriptor. Each order gives the same bits on every machine. The fastest is not the same on all. */
typedef enum rapt_numerics {
    RAPT_NUMERICS_FASTEST = -1, /* 2 for bf16 or f16 if isa or RAPT_ISA names a unit, or a unit beats FMAs; else 1 */
    RAPT_NUMERICS_DEFAULT = 0,  /* RAPT_NUMERICS_VERSION */
    RAPT_NUMERICS_ORDER_1 = 1,  /* float32 throughout, for all dtypes */
    RAPT_NUMERICS_ORDER_2 = 2,  /* the products of matrix units; query, key and value are all bf16, or all f16 */
    RAPT_NUMERICS_ORDER_3 = 3   /* the same, of float32 query, key and value in three bf16 parts each */
} rapt_numerics;

/* Parts of a cache whose states are passed on give the bits of one call if they are cut at multiples of this. */
#define RAPT_STATE_KEYS 512

/* ------------------------------------------------------------ descriptor */

/* Bits of `features`. A field that belongs to a bit is refused without that bit. */
#define RAPT_SCALE (UINT64_C(1) << 0)          /* `scale`; without: 1/sqrt(head_dim) */
#define RAPT_CAUSAL (UINT64_C(1) << 1)         /* keys after the query are not seen */
#define RAPT_WINDOW (UINT64_C(1) << 2)         /* `window_left`, `window_right` */
#define RAPT_MASK_FILL (UINT64_C(1) << 3)      /* `mask_fill` replaces masked scores */
#define RAPT_ALIBI_STANDARD (UINT64_C(1) << 4) /* slopes of the ALiBi paper for query_heads */

/* Where query 0 of a sequence stands among the keys. Causal, window and ALiBi require it, unless query_length =
 * kv_length and no lengths, offsets or key positions are given. */
typedef enum rapt_query_origin {
    RAPT_ORIGIN_UNSTATED = 0,
    RAPT_ORIGIN_TOP_LEFT = 1,     /* at the first stored key (PyTorch; ONNX without a cache) */
    RAPT_ORIGIN_BOTTOM_RIGHT = 2, /* the last query at the last key (caches), query 0 at key kv length - query length */
    RAPT_ORIGIN_GIVEN = 3         /* `query_position`, a logical position per sequence */
} rapt_query_origin;

/* What `weights` receives; ONNX calls it qk_matmul_output_mode. */
typedef enum rapt_weights_kind {
    RAPT_WEIGHTS_NONE = 0,
    RAPT_WEIGHTS_RAW = 1,     /* query . key * scale */
    RAPT_WEIGHTS_SOFTCAP = 2, /* the same, after softcap */
    RAPT_WEIGHTS_MASKED = 3,  /* the same, after bias, ALiBi and mask; masked keys are -infinity */
    RAPT_WEIGHTS_SOFTMAX = 4  /* probabilities, before dropout; masked keys are 0 */
} rapt_weights_kind;

/* Everything except sizes, query, key, value and, without final_state, out is optional, and off when 0. All features
 * combine freely. Sequence b has query_lengths[b] queries and kv_lengths[b] keys (query_length and kv_length where the
 * list is absent). With offsets, sequences are packed one after the other in batch 0 of the tensors: query i of
 * sequence b is token query_offsets[b] + i of query, out, mask, bias, keep_mask, lse and weights, which have
 * query_tokens tokens; key j is token kv_offsets[b] + j of key and value, which have kv_tokens. query_length and
 * kv_length are then upper bounds, and masks and weights still have rows of kv_length.
 *
 * Key j of sequence b is at logical position key_position[b] + j, query i at that of query 0 (see rapt_query_origin) +
 * i.
 *
 * Query head h reads KV head h / (query_heads / kv_heads).
 *
 * Keys that a query does not see (mask, causal, window, beyond the length) never reach its result, even if they are
 * NaN. A query that sees no key gets +0 and LSE -infinity. Rows of out, lse, weights and final_state that belong to no
 * query are not written.
 *
 * The state of a row is its partial result after some of its keys: a maximum m, the sum l of the exponentials, and the
 * sum o of the values weighted by them. A chain of calls that pass states on, each with a part of the keys at its
 * key_position, gives the same bits as one call with all keys, if every part but the first begins at a multiple of
 * RAPT_STATE_KEYS (docs/numerics.md, States). A chain may begin with empty states, all 0. lse and softmax weights cover
 * all keys so far.
 *
 * If no tensor has data, and some would be touched, the descriptor makes a plan without data: see rapt_plan_bind. */
typedef struct rapt_attention_desc {
    uint32_t struct_size; /* sizeof(rapt_attention_desc) */
    int32_t numerics;     /* rapt_numerics */
    uint64_t features;
    int32_t isa;          /* rapt_isa */
    int32_t query_origin; /* rapt_query_origin */
    int32_t weights_kind; /* rapt_weights_kind */
    int32_t reserved_zero;

    int64_t batch;        /* >= 0 */
    int64_t query_heads;  /* >= 1, a multiple of kv_heads */
    int64_t kv_heads;     /* >= 1 */
    int64_t query_length; /* tokens, >= 0 */
    int64_t kv_length;    /* tokens, >= 0 */
    int64_t head_dim;     /* of query and key, 1 ... 1024 */
    int64_t value_dim;    /* of value and out; 0 = head_dim */
    int64_t query_tokens; /* with query_offsets: tokens of all sequences */
    int64_t kv_tokens;    /* with kv_offsets, likewise */

    rapt_tensor query; /* f32, f16, bf16 [batch, query_heads, query_length, head_dim] */
    rapt_tensor key;   /* any dtype but bool8 [batch, kv_heads, kv_length, head_dim] */
    rapt_tensor value; /* same dtypes [batch, kv_heads, kv_length, value_dim]; may be a view of key */
    rapt_tensor out;   /* f32, f16, bf16 [batch, query_heads, query_length, value_dim] */

    rapt_tensor mask;      /* bool8 [batch, query_heads, query_length, kv_length], true = attend */
    rapt_tensor bias;      /* f32, f16, bf16, shaped as mask; added to the scaled score; -infinity excludes */
    rapt_tensor keep_mask; /* bool8, shaped as mask; dropout: probability * keep_scale where true, otherwise 0 */
    rapt_tensor lse;       /* f32 [batch, query_heads, query_length], output: natural log of the sum of
                              exp(score) over the keys, without the sink */
    rapt_tensor weights;   /* f32, shaped as mask, output: see weights_kind */

    rapt_tensor initial_state; /* f32 [batch, query_heads, query_length, 2 + value_dim]: the state of each row after
                                  earlier keys, from which this call continues */
    rapt_tensor final_state;   /* f32, output, same shape: the state after this call's keys. May be initial_state, row
                                  for row. out may be absent; then sinks must be, too: no state includes one */

    rapt_page_table key_pages; /* kind 0: the tensor holds the keys of sequence b in batch b */
    rapt_page_table value_pages;
    rapt_block_list key_blocks; /* block-sparse attention */

    rapt_index_list query_lengths;  /* each 0 ... query_length */
    rapt_index_list kv_lengths;     /* each 0 ... kv_length */
    rapt_index_list query_position; /* with RAPT_ORIGIN_GIVEN; negative is legal */
    rapt_index_list key_position;   /* >= 0, logical position of the first stored key; default 0 */
    rapt_index_list query_offsets;  /* [batch + 1], monotone, 0 ... query_tokens; instead of query_lengths */
    rapt_index_list kv_offsets;     /* likewise, 0 ... kv_tokens; instead of kv_lengths */
    rapt_index_list tree_masks;     /* [batch * query_length], or [query_tokens]: see tree_tokens */

    const float *bias_head_factor; /* [query_heads], finite; factor on bias, default 1 */
    const float *alibi_slopes;     /* [query_heads], finite; score -= slope * |query position - key position| */
    const float *sinks;            /* [query_heads], not NaN or +infinity; a logit in the softmax's sum only */

    float scale;      /* with RAPT_SCALE; finite, 0 gives uniform weights */
    float softcap;    /* cap * tanh(score / cap); >= 0, 0 = off; scale / softcap finite */
    float mask_fill;  /* with RAPT_MASK_FILL; replaces the score where mask is false; finite, also times log2(e) */
    float keep_scale; /* with keep_mask; finite, 1 / (1 - dropout probability); 0 makes all of out 0 */

    int64_t window_left;  /* with RAPT_WINDOW: sees keys at most this far before the query; -1 = no limit */
    int64_t window_right; /* likewise after the query */
    int64_t tree_tokens;  /* with tree_masks, 1 ... 64: bit i of a query's mask says whether it sees stored key
                             kv length - tree_tokens + i; earlier keys of the call are not affected. At
                             most 32 where index_bytes is 4 */

    uint64_t reserved[8];
} rapt_attention_desc;

/* Everything off, struct_size filled in. */
#define RAPT_ATTENTION_DESC_INIT RAPT_INIT(rapt_attention_desc)

/* ------------------------------------------------------------- plan, run */

/* Calls task(task_argument, i) for each i in 0 ... count - 1, in any order and on any threads, and returns 0 when all
 * calls are done. It may make them all on the calling thread. */
typedef int (*rapt_parallel_for)(void *context, int64_t count, void (*task)(void *task_argument, int64_t i),
                                 void *task_argument);

/* Bits of rapt_run_options.flags. */
#define RAPT_RUN_FORK_SAFE (UINT64_C(1) << 0) /* OpenMP works here, though this may be a forked child */

/* How a call uses threads. Every field may be 0. The callbacks must not throw or leave by longjmp. */
typedef struct rapt_run_options {
    uint32_t struct_size;           /* sizeof(rapt_run_options) */
    int32_t max_threads;            /* 0 = as many as OpenMP would use, with parallel_for as many as the machine has */
    rapt_parallel_for parallel_for; /* NULL = OpenMP, or serial in builds without it */
    void *parallel_for_context;
    int (*should_stop)(void *context); /* called before each task, on the thread that would run it; once for
                                          KV heads that take turns; non-zero = stop */
    void *should_stop_context;
    uint64_t flags;
    uint64_t reserved[4];
} rapt_run_options;

#define RAPT_RUN_OPTIONS_INIT RAPT_INIT(rapt_run_options)

/* Computes attention with a workspace that it allocates and frees (the only allocation in the library). options and
 * message may be NULL. A refused call writes nothing to its outputs; after RAPT_STOPPED and
 * RAPT_PARALLEL_FOR_FAILED they are undefined. */
RAPT_API rapt_status rapt_attention(const rapt_attention_desc *desc, const rapt_run_options *options,
                                    rapt_message *message);

/* A validated descriptor and how its work is cut into tasks. A plain value: copy it, put it on the stack, share it
 * between threads; there is nothing to free. It is valid only in the process and the copy of the library that made it.
 * It copies the pointers of its descriptor, whose targets must stay valid. Factors, slopes and sinks must not change
 * until the run is over; lists of lengths and positions must not change after planning. Preparing a workspace reads the
 * lists again: it returns RAPT_INVALID_VALUE if the plan no longer fits them, and never accesses memory outside of the
 * tensors. */
typedef struct rapt_plan {
    uint64_t opaque[512];
} rapt_plan;

/* Checks every field of desc and fills plan. message may be NULL. On failure the plan is unusable, and running it
 * returns RAPT_INVALID_PLAN. */
RAPT_API rapt_status rapt_plan_init(rapt_plan *plan, const rapt_attention_desc *desc, rapt_message *message);

/* The instruction set that the plan runs on (RAPT_ISA_AMX or RAPT_ISA_AVX512_BF16 only if it uses that unit), and its
 * order of operations, 1 ... 3: what RAPT_NUMERICS_FASTEST became. RAPT_ISA_AUTO and RAPT_NUMERICS_DEFAULT if the plan
 * is invalid. */
RAPT_API rapt_isa rapt_plan_isa(const rapt_plan *plan);
RAPT_API rapt_numerics rapt_plan_numerics(const rapt_plan *plan);

/* A tensor's memory. */
typedef struct rapt_buffer {
    void *data;
    int64_t extent_bytes; /* as in rapt_tensor; 0 = not stated */
    const void *scales;
    const void *zero_points;
    int64_t scale_extent_bytes; /* likewise */
} rapt_buffer;

static inline rapt_buffer rapt_input_buffer(const void *data, int64_t extent_bytes) {
    rapt_buffer buffer = {rapt_writable(data), extent_bytes, NULL, NULL, 0};
    return buffer;
}

static inline rapt_buffer rapt_output_buffer(void *data, int64_t extent_bytes) {
    rapt_buffer buffer = {data, extent_bytes, NULL, NULL, 0};
    return buffer;
}

/* The pointers of one call, named as in rapt_attention_desc. */
typedef struct rapt_bindings {
    uint32_t struct_size; /* sizeof(rapt_bindings) */
    int32_t reserved_zero;
    rapt_buffer query, key, value, out;
    rapt_buffer mask, bias, keep_mask, lse, weights;
    rapt_buffer initial_state, final_state;
    const float *bias_head_factor, *alibi_slopes, *sinks;
    uint64_t reserved[8];
} rapt_bindings;

#define RAPT_BINDINGS_INIT RAPT_INIT(rapt_bindings)

/* Points a plan at other memory; everything else stays as planned. A descriptor whose tensors have dtypes and strides
 * but no data makes a plan without data: it answers every question below, but running it returns RAPT_NOT_BOUND until
 * it is bound. So one plan per step serves all layers.
 *
 * Bind exactly what was planned: tensors with a dtype, and head lists that were not NULL. A tensor without elements may
 * be NULL. The numbers in head lists, alignment, extents and overlaps are checked as when planning; the cost does not
 * grow with batch or lengths.
 *
 * On failure the plan stays as it was. Never bind a plan while it runs: give each thread that binds its own copy. */
RAPT_API rapt_status rapt_plan_bind(rapt_plan *plan, const rapt_bindings *bindings, rapt_message *message);

/* Bytes of workspace for up to max_concurrency tasks at once (>= 1; capped at the number of tasks). The size does not
 * depend on what the tensors hold. */
RAPT_API rapt_status rapt_plan_workspace_bytes(const rapt_plan *plan, int64_t max_concurrency, size_t *bytes);

/* Enough bytes for every plan that differs from largest only in data, extents, strides and lists, and whose batch,
 * query_length and kv_length are no larger. largest requires no data. Plans may have pages of any length, but only if
 * largest has pages, too: short pages take more room. A smaller query_tokens does not lower the bound. */
RAPT_API rapt_status rapt_workspace_bound(const rapt_attention_desc *largest, int64_t max_concurrency, size_t *bytes,
                                          rapt_message *message);

/* How many tasks a run with these options executes at once if the workspace allows it: the max_concurrency for the two
 * functions above. options may be NULL. 0 if plan or options are invalid. */
RAPT_API int64_t rapt_run_concurrency(const rapt_plan *plan, const rapt_run_options *options);

/* Runs the whole plan. workspace: any alignment, used by one run at a time; it need not be initialised and holds
 * nothing afterwards. options may be NULL. Allocates nothing, starts no threads beyond OpenMP's, and uses up to 128 KiB
 * of stack on each, as do all functions below. With OpenMP, it runs on the calling thread inside a parallel region of
 * several threads and in a forked child. */
RAPT_API rapt_status rapt_run(const rapt_plan *plan, void *workspace, size_t workspace_bytes,
                              const rapt_run_options *options);

/* The same in steps, for callers that bring their own threads:
 *
 *     rapt_prepare(plan, workspace, bytes);
 *     for (phase = 0; phase < rapt_phase_count(plan); phase++) {
 *         each thread:
 *             rapt_join(plan, workspace, phase);
 *         wait until all of them have returned;
 *     }
 *
 * rapt_join takes tasks until none is left, so any number of threads may join, at any time. A thread that finds no free
 * scratch slot returns RAPT_OK at once: the others do the work. */
RAPT_API rapt_status rapt_prepare(const rapt_plan *plan, void *workspace, size_t workspace_bytes);
RAPT_API int32_t rapt_phase_count(const rapt_plan *plan);
RAPT_API rapt_status rapt_join(const rapt_plan *plan, void *workspace, int32_t phase);

/* Or task by task instead of rapt_join: each i in 0 ... rapt_task_count(plan, phase) - 1 once, on any thread.
 * rapt_run_task takes a free scratch slot of the workspace; if there is none, it does nothing and returns RAPT_BUSY.
 * Tasks are the same for any number of threads. */
RAPT_API int64_t rapt_task_count(const rapt_plan *plan, int32_t phase);
RAPT_API rapt_status rapt_run_task(const rapt_plan *plan, void *workspace, int32_t phase, int64_t task);

/* What a task reads and what it costs, for callers that place tasks. The workspace must be prepared. */
typedef struct rapt_task_info {
    int64_t sequence, kv_head;
    int64_t first_row, rows; /* row = query * (query_heads / kv_heads) + head of the group */
    int64_t first_key, keys; /* stored keys that some row sees, ignoring masks */
    int64_t cost;            /* roughly the multiply-adds; only for comparing tasks */
    uint64_t reserved[9];    /* 0 */
} rapt_task_info;

RAPT_API rapt_status rapt_task_info_of(const rapt_plan *plan, const void *workspace, int32_t phase, int64_t task,
                                       rapt_task_info *info);

/* ----------------------------------------------------------- the library */

RAPT_API const char *rapt_version(void);     /* RAPT_VERSION_STRING of the library */
RAPT_API int rapt_numerics_version(void);    /* RAPT_NUMERICS_VERSION of the library */
RAPT_API int rapt_openmp_threads(void);      /* threads that OpenMP would start; 0 in builds without it */

#ifdef __cplusplus
}
#endif
#endif
