/* SPDX-License-Identifier: MIT
 *
 * rapt computes attention on CPUs:
 *
 *     out = softmax(mask(bias(softcap(scale * query * key^T)))) * value
 *
 * exactly as the ONNX operator Attention (opset 25) orders these steps, with
 * the same bits on every instruction set, for every number of threads and for
 * every way of cutting the work (prefill, decode, chunks, batches).
 *
 * The shortest use is one call:
 *
 *     rapt_attention_desc desc = RAPT_ATTENTION_DESC_INIT;
 *     desc.batch = 1;  desc.query_heads = 8;  desc.kv_heads = 2;
 *     desc.query_length = desc.kv_length = tokens;
 *     desc.head_dim = 64;
 *     desc.query = rapt_tensor_bhsd(query, 8, tokens, 64);
 *     desc.key   = rapt_tensor_bhsd(key, 2, tokens, 64);
 *     desc.value = rapt_tensor_bhsd(value, 2, tokens, 64);
 *     desc.out   = rapt_tensor_bhsd(out, 8, tokens, 64);
 *     desc.features = RAPT_CAUSAL;
 *     rapt_message message;
 *     if (rapt_attention(&desc, &message) != RAPT_OK) puts(message.text);
 *
 * Runtimes that must not allocate make a plan in their own memory, give it a
 * workspace and run it, with OpenMP, with their own parallel loop, or task by
 * task from their own threads.
 *
 * Nothing in the library prints, aborts, installs handlers or keeps pointers
 * beyond a call, apart from those that a plan copies from its descriptor.
 *
 * ABI: a release changes the soname when it changes any struct, constant or
 * symbol below in an incompatible way; otherwise fields are only added behind
 * the last one of a struct that carries struct_size, and older callers keep
 * working. rapt_tensor does not grow.
 */
#ifndef RAPT_RAPT_H
#define RAPT_RAPT_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(_WIN32)
#define RAPT_API
#else
#define RAPT_API __attribute__((visibility("default")))
#endif

#define RAPT_VERSION_MAJOR 0
#define RAPT_VERSION_MINOR 1
#define RAPT_VERSION_PATCH 0
#define RAPT_VERSION_STRING "0.1.0"

/* The order of operations that decides every bit (docs/numerics.md). Results
 * of equal numbers are equal bit for bit; they never change without it. */
#define RAPT_NUMERICS_VERSION 1

#define RAPT_MAX_HEAD_DIM 1024

/* ---------------------------------------------------------------- status */

typedef enum rapt_status {
    RAPT_OK = 0,
    RAPT_NULL_POINTER,          /* data that the call needs is NULL */
    RAPT_UNSUPPORTED_VERSION,   /* struct_size or version is unknown */
    RAPT_UNSUPPORTED_FLAG,      /* unknown feature bit or enum value */
    RAPT_UNSUPPORTED_DTYPE,     /* a dtype that this tensor can not have */
    RAPT_INVALID_SHAPE,         /* negative, absurd or inconsistent dims */
    RAPT_INVALID_STRIDE,        /* overflowing, misaligned or 0 on an output */
    RAPT_INVALID_VALUE,         /* a number outside its range, NaN, infinite */
    RAPT_MISALIGNED_POINTER,    /* below the alignment of its type */
    RAPT_OUT_OF_EXTENT,         /* a tensor reaches beyond its extent_bytes */
    RAPT_OVERLAPPING_OUTPUT,    /* an output overlaps itself, another, or an input */
    RAPT_UNSTATED_POSITION,     /* causal, window or ALiBi need query_origin */
    RAPT_UNUSED_FIELD,          /* a field is set that nothing uses */
    RAPT_UNSUPPORTED_ISA,       /* this machine or build lacks the instructions */
    RAPT_INVALID_ENVIRONMENT,   /* RAPT_ISA names no instruction set */
    RAPT_SIZE_OVERFLOW,         /* a size does not fit its type */
    RAPT_WORKSPACE_TOO_SMALL,   /* fewer bytes than one scratch slot needs */
    RAPT_BUSY,                  /* more tasks at once than scratch slots */
    RAPT_OUT_OF_MEMORY,         /* one-call form only */
    RAPT_PARALLEL_FOR_FAILED    /* the callback returned non-zero, or before all was run */
} rapt_status;

/* One line of text for a status; never NULL. */
RAPT_API const char *rapt_status_text(rapt_status status);

/* Names the field and the value that was wrong; empty after RAPT_OK. */
typedef struct rapt_message {
    char text[256];
} rapt_message;

/* --------------------------------------------------------------- tensors */

typedef enum rapt_dtype {
    RAPT_NO_DTYPE = 0,
    RAPT_F32 = 1,   /* IEEE-754 binary32, aligned to 4 bytes */
    RAPT_BOOL8 = 2, /* one byte, 0 = false, anything else = true */
    RAPT_F16 = 3    /* IEEE-754 binary16, aligned to 2 bytes; key and value only */
} rapt_dtype;

/* An array [batch, head, token, innermost] whose innermost dimension is
 * contiguous. The sizes come from the descriptor. Strides are in bytes and,
 * where the tensor is read, may be 0 (broadcast) or negative; the stride of a
 * dimension of size 1 is not looked at. A tensor with data = NULL is absent.
 *
 * extent_bytes, when not 0, is the number of bytes that may be touched from
 * data on; shapes that reach further (or before data) are refused.
 * Fields from `scales` on belong to dtypes of later releases and must be 0. */
typedef struct rapt_tensor {
    void *data;
    int32_t dtype; /* rapt_dtype */
    int32_t reserved_zero;
    int64_t batch_stride_bytes;
    int64_t head_stride_bytes;
    int64_t token_stride_bytes;
    int64_t extent_bytes;
    const void *scales;
    int64_t scale_batch_stride_bytes;
    int64_t scale_head_stride_bytes;
    int64_t scale_token_stride_bytes;
    int64_t page_stride_bytes;
    uint64_t reserved[4];
} rapt_tensor;

/* A contiguous float32 array [batch, heads, tokens, dim]. */
static inline rapt_tensor rapt_tensor_bhsd(const float *data, int64_t heads, int64_t tokens, int64_t dim) {
    rapt_tensor tensor = {0};
    tensor.data = (void *)(uintptr_t)data;
    tensor.dtype = RAPT_F32;
    tensor.token_stride_bytes = dim * 4;
    tensor.head_stride_bytes = tokens * tensor.token_stride_bytes;
    tensor.batch_stride_bytes = heads * tensor.head_stride_bytes;
    return tensor;
}

/* A contiguous float32 array [batch, tokens, heads, dim]. */
static inline rapt_tensor rapt_tensor_bshd(const float *data, int64_t tokens, int64_t heads, int64_t dim) {
    rapt_tensor tensor = {0};
    tensor.data = (void *)(uintptr_t)data;
    tensor.dtype = RAPT_F32;
    tensor.head_stride_bytes = dim * 4;
    tensor.token_stride_bytes = heads * tensor.head_stride_bytes;
    tensor.batch_stride_bytes = tokens * tensor.token_stride_bytes;
    return tensor;
}

/* One integer per sequence, [batch], contiguous; absent where data is NULL. */
typedef struct rapt_index_list {
    const void *data;
    int32_t index_bytes; /* 4: int32_t, 8: int64_t */
    int32_t reserved_zero;
} rapt_index_list;

/* ------------------------------------------------------------ descriptor */

/* Bits of `features`. A field that a bit switches on is refused without it. */
enum {
    RAPT_SCALE = 1 << 0,          /* `scale`; without: 1/sqrt(head_dim) */
    RAPT_CAUSAL = 1 << 1,         /* keys behind the query are not seen */
    RAPT_WINDOW = 1 << 2,         /* `window_left`, `window_right` */
    RAPT_MASK_FILL = 1 << 3,      /* `mask_fill` replaces masked scores */
    RAPT_ALIBI_STANDARD = 1 << 4, /* slopes of the ALiBi paper for query_heads */
    RAPT_KNOWN_FEATURES = (1 << 5) - 1
};

/* Where query 0 of a sequence stands among the keys. Causal, window and ALiBi
 * count from it, so they ask for it unless query_length = kv_length and no
 * lengths or key positions are given. */
typedef enum rapt_query_origin {
    RAPT_ORIGIN_UNSTATED = 0,
    RAPT_ORIGIN_TOP_LEFT = 1,     /* at the first stored key (PyTorch; ONNX without a cache) */
    RAPT_ORIGIN_BOTTOM_RIGHT = 2, /* the last query at the last key (caches): kv length - query length further */
    RAPT_ORIGIN_GIVEN = 3         /* `query_position`, a logical position per sequence */
} rapt_query_origin;

/* What `weights` receives; ONNX calls it qk_matmul_output_mode. */
typedef enum rapt_weights_kind {
    RAPT_WEIGHTS_NONE = 0,
    RAPT_WEIGHTS_RAW = 1,     /* query . key * scale */
    RAPT_WEIGHTS_SOFTCAP = 2, /* and after softcap */
    RAPT_WEIGHTS_MASKED = 3,  /* and after bias, ALiBi and mask; masked keys are -infinity */
    RAPT_WEIGHTS_SOFTMAX = 4  /* probabilities, before dropout; masked keys are 0 */
} rapt_weights_kind;

typedef enum rapt_isa {
    RAPT_ISA_AUTO = 0, /* the environment's RAPT_ISA, else the best of this machine */
    RAPT_ISA_SCALAR = 1,
    RAPT_ISA_AVX2 = 2,   /* AVX2 and FMA */
    RAPT_ISA_AVX512 = 3, /* AVX-512 F, BW, DQ, VL */
    RAPT_ISA_NEON = 4,
    RAPT_ISA_COUNT
} rapt_isa;

/* Everything but sizes, query, key, value and out is optional and off when 0.
 * All features combine freely. Sequence b has query_lengths[b] queries and
 * kv_lengths[b] keys (all of query_length and kv_length where the list is
 * absent). Its key j has the logical position key_position[b] + j, its query i
 * the position of query 0 (see rapt_query_origin) + i.
 *
 * A query head h reads KV head h / (query_heads / kv_heads).
 *
 * Keys that a query does not see (mask, causal, window, beyond the length)
 * never reach its result, even if they are NaN. A query that sees no key gets
 * +0 and LSE -infinity. Rows of out, lse and weights at and behind
 * query_lengths[b] are not written. */
typedef struct rapt_attention_desc {
    uint32_t struct_size; /* sizeof(rapt_attention_desc) */
    uint32_t version;     /* RAPT_DESC_VERSION */
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
    int64_t head_dim;     /* of query and key, 1 ... RAPT_MAX_HEAD_DIM */
    int64_t value_dim;    /* of value and out; 0 = head_dim */

    rapt_tensor query; /* f32 [batch, query_heads, query_length, head_dim] */
    rapt_tensor key;   /* f32 [batch, kv_heads, kv_length, head_dim] */
    rapt_tensor value; /* f32 [batch, kv_heads, kv_length, value_dim]; may be a view of key */
    rapt_tensor out;   /* f32 [batch, query_heads, query_length, value_dim] */

    rapt_tensor mask;      /* bool8 [batch, query_heads, query_length, kv_length], true = attend */
    rapt_tensor bias;      /* f32, as mask; added to the scaled score; -infinity excludes */
    rapt_tensor keep_mask; /* bool8, as mask; dropout: probability * keep_scale where true, else 0 */
    rapt_tensor lse;       /* f32 [batch, query_heads, query_length], output: natural log of the sum of
                              exp(score) over the keys, without the sink */
    rapt_tensor weights;   /* f32, as mask, output: see weights_kind */

    rapt_index_list query_lengths;  /* each 0 ... query_length */
    rapt_index_list kv_lengths;     /* each 0 ... kv_length */
    rapt_index_list query_position; /* with RAPT_ORIGIN_GIVEN; negative is legal */
    rapt_index_list key_position;   /* >= 0, logical position of the first stored key; default 0 */

    const float *bias_head_factor; /* [query_heads], finite; factor on bias, default 1 */
    const float *alibi_slopes;     /* [query_heads], finite; score -= slope * |query position - key position| */
    const float *sinks;            /* [query_heads], not NaN or +infinity; a logit that joins the softmax's sum */

    float scale;      /* with RAPT_SCALE; finite, 0 gives uniform weights */
    float softcap;    /* cap * tanh(score / cap); finite, 0 = off */
    float mask_fill;  /* with RAPT_MASK_FILL; finite; replaces the score where mask is false */
    float keep_scale; /* with keep_mask; finite, 1 / (1 - dropout probability) */

    int64_t window_left;  /* with RAPT_WINDOW: keys at most this far before the query; -1 = open */
    int64_t window_right; /* likewise after it */

    uint64_t reserved[8];
} rapt_attention_desc;

#define RAPT_DESC_VERSION 1

/* Everything off, struct_size and version filled in. */
#ifdef __cplusplus
#define RAPT_ATTENTION_DESC_INIT {sizeof(rapt_attention_desc), RAPT_DESC_VERSION}
#else
#define RAPT_ATTENTION_DESC_INIT {.struct_size = sizeof(rapt_attention_desc), .version = RAPT_DESC_VERSION}
#endif

/* ------------------------------------------------------------- plan, run */

/* Computes attention with OpenMP and its own workspace (the only allocation
 * in the library). message may be NULL. On any status but RAPT_OK nothing was
 * written to out, lse and weights. */
RAPT_API rapt_status rapt_attention(const rapt_attention_desc *desc, rapt_message *message);

/* A validated descriptor and the way to cut its work. A plain value: copy it,
 * put it on the stack, share it between threads; nothing is to be freed. It
 * copies the pointers of its descriptor, whose targets must stay; lists,
 * factors, slopes and sinks must not change until the run is over. */
typedef struct rapt_plan {
    uint64_t opaque[256];
} rapt_plan;

/* Checks every field of desc and fills plan. message may be NULL. On failure
 * plan is unusable and running it gives RAPT_UNSUPPORTED_VERSION. */
RAPT_API rapt_status rapt_plan_init(rapt_plan *plan, const rapt_attention_desc *desc, rapt_message *message);

/* The instruction set that the plan runs on. */
RAPT_API rapt_isa rapt_plan_isa(const rapt_plan *plan);

/* Bytes of workspace for up to max_concurrency tasks at once (>= 1). The size
 * does not depend on what the tensors hold. */
RAPT_API rapt_status rapt_plan_workspace_bytes(const rapt_plan *plan, int64_t max_concurrency, size_t *bytes);

/* Runs count calls of task(task_argument, i), 0 <= i < count, in any order and
 * on any threads, and returns 0 when all are done. It may run them all on the
 * calling thread. */
typedef int (*rapt_parallel_for)(void *context, int64_t count, void (*task)(void *task_argument, int64_t i),
                                 void *task_argument);

typedef struct rapt_run_options {
    uint32_t struct_size;           /* sizeof(rapt_run_options) */
    int32_t max_threads;            /* 0 = as many as OpenMP would use, and the workspace allows */
    rapt_parallel_for parallel_for; /* NULL = OpenMP, or serial in builds without it */
    void *parallel_for_context;
} rapt_run_options;

/* Runs the whole plan. workspace: any alignment, used by one run at a time;
 * it need not be initialised and holds nothing afterwards. options may be
 * NULL. Allocates nothing and does not start threads beyond OpenMP's. Inside
 * a parallel region and in a forked child it runs on the calling thread. */
RAPT_API rapt_status rapt_run(const rapt_plan *plan, void *workspace, size_t workspace_bytes,
                              const rapt_run_options *options);

/* The same in steps, for callers that bring their own threads:
 *
 *     rapt_prepare(plan, workspace, bytes);
 *     for (phase = 0; phase < rapt_phase_count(plan); phase++) {
 *         each i in 0 ... rapt_task_count(plan, phase) - 1, anywhere, once:
 *             rapt_run_task(plan, workspace, phase, i);
 *         wait until all of them are done;
 *     }
 *
 * rapt_run_task takes a free scratch slot of the workspace and returns
 * RAPT_BUSY, with nothing done, when there is none. Tasks are the same for any
 * number of threads. */
RAPT_API rapt_status rapt_prepare(const rapt_plan *plan, void *workspace, size_t workspace_bytes);
RAPT_API int32_t rapt_phase_count(const rapt_plan *plan);
RAPT_API int64_t rapt_task_count(const rapt_plan *plan, int32_t phase);
RAPT_API rapt_status rapt_run_task(const rapt_plan *plan, void *workspace, int32_t phase, int64_t task);

/* ------------------------------------------------------------ the machine */

/* "avx512" ...; NULL for a number that is no instruction set. */
RAPT_API const char *rapt_isa_name(rapt_isa isa);
/* Non-zero where this build has the kernels and this machine the instructions. */
RAPT_API int rapt_isa_available(rapt_isa isa);
/* What RAPT_ISA_AUTO stands for; the statuses of the environment's RAPT_ISA. */
RAPT_API rapt_status rapt_isa_chosen(rapt_isa *isa);
/* Writes the CPU features that rapt knows and found, as snprintf does. */
RAPT_API size_t rapt_cpu_features(char *text, size_t text_bytes);

RAPT_API const char *rapt_version(void);     /* RAPT_VERSION_STRING of the library */
RAPT_API int rapt_numerics_version(void);    /* RAPT_NUMERICS_VERSION of the library */
RAPT_API int rapt_openmp_threads(void);      /* as OpenMP would start; 0 in builds without it */

#ifdef __cplusplus
}
#endif
#endif
