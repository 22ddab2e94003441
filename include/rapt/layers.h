/* SPDX-License-Identifier: MIT
 *
 * Attention layers on top of rapt.h and matmul.h: projections, heads, masks, and what surrounds them in models. A layer
 * adds projections and shapes; rapt_attention always computes scores, softmax and the sum over values.
 *
 *     rapt_attention_desc how = RAPT_ATTENTION_DESC_INIT;
 *     how.batch = 1;  how.query_heads = how.kv_heads = 12;
 *     how.query_length = how.kv_length = tokens;
 *     how.features = RAPT_CAUSAL;
 *     rapt_multi_head_desc layer = RAPT_MULTI_HEAD_DESC_INIT;
 *     layer.attention = &how;
 *     layer.query  = rapt_linear_of(w_q, b_q, 768, 768);
 *     layer.key    = rapt_linear_of(w_k, b_k, 768, 768);
 *     layer.value  = rapt_linear_of(w_v, b_v, 768, 768);
 *     layer.output = rapt_linear_of(w_o, b_o, 768, 768);
 *     layer.x = x;  layer.out = out;
 *     rapt_message message;
 *     if (rapt_multi_head_attention(&layer, NULL, &message) != RAPT_OK) puts(message.text);
 *
 * For all of them:
 *
 * - Arrays are float32, contiguous, in C order; the caller owns them.
 * - `attention` says how to attend: sizes, features, masks, keep_mask, weights, lse, isa and whatever else
 *   rapt_attention_desc has, except offsets and page tables, which are refused. The layer fills in head_dim, value_dim,
 *   query, key, value and out, which must be 0. Heads are at most 2^20.
 * - Optional results are written where they are not NULL. Required arrays must not be NULL, even if they are empty.
 * - Query rows from query_lengths[b] on are not written in any result. A token that is also a key is still projected:
 *   fused_out, and norm1_out with pre-norm, have all rows, as key_out and value_out have every key.
 * - options: as rapt_run's; NULL = all defaults. Projections and attention run on its threads, the rest on the calling
 *   thread.
 * - Scratch memory comes from malloc and is freed before the call returns; there is no state between calls.
 * - The caller's rounding mode and flushing of denormals change neither bits nor refusals. The callbacks in options run
 *   with them.
 * - Results must not overlap each other or anything that is read; only `out` of an encoder block may be x.
 *   rapt_dot_product_attention refuses all overlaps, the others some; with the rest, results are undefined.
 * - Statuses are those of rapt_attention and rapt_matmul. struct_size, that of `attention` too, must be this release's.
 *   After a refusal `out` is unchanged, optional results may not be; after RAPT_OUT_OF_MEMORY, RAPT_STOPPED and
 *   RAPT_PARALLEL_FOR_FAILED all results are undefined. message may be NULL.
 * - Bits: the same on every instruction set and for every number of threads, like those of rapt.h (docs/layers.md). In
 *   a library built with a BLAS, projections have the bits of that BLAS.
 *
 * No stable ABI yet: any release may change the structs of this header, so compile programs against the library that
 * they run with.
 */
#ifndef RAPT_LAYERS_H
#define RAPT_LAYERS_H

#include "matmul.h"
#include "rapt.h"

#if defined(_WIN32) && defined(RAPT_LAYERS_BUILD)
#define RAPT_LAYERS_API __declspec(dllexport)
#else
#define RAPT_LAYERS_API RAPT_API
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* ---------------------------------------------------------- linear layers */

/* y = x * weight + bias, token by token. Absent where weight is NULL. */
typedef struct rapt_linear {
    const float *weight; /* [out][in], or [in][out] with RAPT_WEIGHT_IN_OUT */
    const float *bias;   /* [out], or NULL = none */
    int64_t in, out;     /* 1 ... 2^31 */
    int32_t layout;      /* rapt_weight_layout */
    int32_t dtype;       /* of weight; 0 = RAPT_F32, the only one so far */
    int64_t weight_stride_bytes; /* from row to row, a multiple of 4, at least a row; 0 = contiguous */
} rapt_linear;

/* torch.nn.Linear(in, out): weight [out][in]. */
static inline rapt_linear rapt_linear_of(const float *weight, const float *bias, int64_t in, int64_t out) {
    rapt_linear linear = {weight, bias, in, out, RAPT_WEIGHT_OUT_IN, RAPT_NO_DTYPE, 0};
    return linear;
}

/* x @ W + b, and GPT-2's Conv1D: weight [in][out]. */
static inline rapt_linear rapt_linear_in_out(const float *weight, const float *bias, int64_t in, int64_t out) {
    rapt_linear linear = {weight, bias, in, out, RAPT_WEIGHT_IN_OUT, RAPT_NO_DTYPE, 0};
    return linear;
}

/* A bool mask for rapt_attention_desc: one byte per pair, [keys] contiguous; strides in bytes from batch to batch, head
 * to head and query to query, 0 where all share it. */
static inline rapt_tensor rapt_bool_mask(const unsigned char *data, int64_t batch_stride, int64_t head_stride,
                                         int64_t query_stride) {
    rapt_tensor mask = RAPT_ZERO;
    mask.data = rapt_writable(data);
    mask.dtype = RAPT_BOOL8;
    mask.batch_stride_bytes = batch_stride;
    mask.head_stride_bytes = head_stride;
    mask.token_stride_bytes = query_stride;
    return mask;
}

/* ------------------------------------------------- dot products, no weights */

enum { RAPT_MAX_LEADING = 16 };

/* softmax(mask(query * key^T * scale)) * value over any leading dimensions. Where the mask is false, a key is excluded;
 * with RAPT_MASK_FILL mask_fill replaces the score instead, so a row without any true is uniform. out, weights and
 * scores overlap no other array. */
typedef struct rapt_dot_product_desc {
    uint32_t struct_size;      /* sizeof(rapt_dot_product_desc) */
    uint64_t features;         /* RAPT_SCALE, RAPT_CAUSAL, RAPT_MASK_FILL */
    int32_t isa;               /* rapt_isa */
    int32_t leading;           /* number of leading dimensions, 0 ... RAPT_MAX_LEADING */
    const int64_t *shape;      /* [leading] */
    int64_t query_length, kv_length;
    int64_t head_dim;
    int64_t value_dim;         /* 0 = head_dim */
    const float *query;        /* [shape ...][query_length][head_dim] */
    const float *key;          /* [shape ...][kv_length][head_dim] */
    const float *value;        /* [shape ...][kv_length][value_dim] */
    const unsigned char *mask; /* [mask_shape ...], 0 = masked; NULL = none */
    const int64_t *mask_shape; /* [leading + 2]: as shape, query_length, kv_length; all but the last may be 1. NULL
                                  without mask */
    float scale;               /* with RAPT_SCALE; without: 1/sqrt(head_dim) */
    float mask_fill;           /* with RAPT_MASK_FILL */
    float *out;                /* [shape ...][query_length][value_dim] */
    float *weights;            /* optional result: [shape ...][query_length][kv_length], after softmax */
    float *scores;             /* optional result, likewise: query . key, neither scaled nor masked */
    int32_t query_origin;      /* with RAPT_CAUSAL, required where query_length is not kv_length: RAPT_ORIGIN_TOP_LEFT
                                  (as PyTorch's is_causal) or RAPT_ORIGIN_BOTTOM_RIGHT */
} rapt_dot_product_desc;

#define RAPT_DOT_PRODUCT_DESC_INIT RAPT_INIT(rapt_dot_product_desc)

RAPT_LAYERS_API rapt_status rapt_dot_product_attention(const rapt_dot_product_desc *desc,
                                                       const rapt_run_options *options, rapt_message *message);

/* ------------------------------------------------------------- multi-head */

typedef enum rapt_fused_order {
    RAPT_FUSED_PER_HEAD = 0, /* head by head: its query, its key, its value */
    RAPT_FUSED_BLOCKS = 1    /* all queries, all keys, all values (GPT-2's c_attn, torch's in_proj) */
} rapt_fused_order;

/* Projections, attention per head, concatenated heads, output projection. One head without an output projection is
 * plain self-attention; memory makes it cross-attention. Give either query, key and value, or fused.
 *
 * Heads are equal parts of the projections' columns: query.out = query_heads * head_dim, key.out = kv_heads * head_dim,
 * value.out = kv_heads * value_dim; fused.out = (query_heads + 2 * kv_heads) * head_dim. */
typedef struct rapt_multi_head_desc {
    uint32_t struct_size;                 /* sizeof(rapt_multi_head_desc) */
    const rapt_attention_desc *attention;
    const float *x;                       /* [batch][query_length][query.in] */
    const float *memory;                  /* [batch][kv_length][key.in]; NULL = x */
    const float *memory_value;            /* [batch][kv_length][value.in]; NULL = memory */
    rapt_linear query, key, value;
    rapt_linear fused;
    int32_t fused_order;                  /* rapt_fused_order; PER_HEAD requires query_heads = kv_heads */
    rapt_linear output;                   /* optional; output.in = query_heads * value_dim */
    float *out;                           /* [batch][query_length][output.out, or query_heads * value_dim] */
    float *query_out;                     /* optional results: [batch][query_length][query.out], */
    float *key_out, *value_out;           /* [batch][kv_length][key.out] and [value.out]; not with fused */
    float *fused_out;                     /* optional result: [batch][query_length][fused.out] */
    float *context;                       /* optional result: [batch][query_length][heads * value_dim], before output */
    float *scores;                        /* optional result: query . key, neither scaled nor masked, of all keys,
                                             [batch][query_heads][query_length][kv_length] */
} rapt_multi_head_desc;

#define RAPT_MULTI_HEAD_DESC_INIT RAPT_INIT(rapt_multi_head_desc)

RAPT_LAYERS_API rapt_status rapt_multi_head_attention(const rapt_multi_head_desc *desc, const rapt_run_options *options,
                                                      rapt_message *message);

/* Heads with their own weights, like a list of single-head layers; their outputs are concatenated.
 * attention->query_heads = kv_heads is their number. All heads have the same sizes. */
typedef struct rapt_stacked_desc {
    uint32_t struct_size;            /* sizeof(rapt_stacked_desc) */
    const rapt_attention_desc *attention;
    const float *x;                  /* [batch][query_length][in] */
    const rapt_linear *query, *key, *value; /* [heads] each */
    float *out;                      /* [batch][query_length][heads * value[0].out] */
} rapt_stacked_desc;

#define RAPT_STACKED_DESC_INIT RAPT_INIT(rapt_stacked_desc)

RAPT_LAYERS_API rapt_status rapt_stacked_attention(const rapt_stacked_desc *desc, const rapt_run_options *options,
                                                   rapt_message *message);

/* ---------------------------------------------------------------- dropout */

/* Fills a keep_mask for training: keep[i] is 1 with probability 1 - drop, and depends only on seed, stream and i, so
 * any thread can fill any part. Set the descriptor's keep_scale to 1/(1 - drop); at inference leave keep_mask out.
 *
 * Philox 4x32-10 (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", SC11): key = seed, low word first;
 * counter = {n / 4 low, n / 4 high, stream low, stream high} for n = first + i; word n % 4 of the result is compared:
 * kept where word >= drop * 2^32, rounded down.
 *
 * keep: [count]. RAPT_INVALID_VALUE where drop is outside [0, 1) or count < 0; RAPT_NULL_POINTER where keep is NULL and
 * count is not 0. */
RAPT_LAYERS_API rapt_status rapt_dropout_keep(unsigned char *keep, int64_t count, double drop, uint64_t seed,
                                              uint64_t stream, uint64_t first);

/* ---------------------------------------------- around attention, in blocks */

/* y = (x - mean) / sqrt(variance + epsilon) * gamma + beta for each token; the variance is that of the population. */
typedef struct rapt_norm {
    const float *gamma, *beta; /* [width]; NULL = 1 and 0 */
    float epsilon;             /* > 0, finite */
} rapt_norm;

/* x, out: [tokens][width]; they may be the same. */
RAPT_LAYERS_API rapt_status rapt_layer_norm(const rapt_norm *norm, const float *x, int64_t tokens, int64_t width,
                                            float *out, rapt_message *message);

typedef enum rapt_activation {
    RAPT_RELU = 0,
    RAPT_GELU = 1,      /* x * Phi(x), Phi by erf */
    RAPT_GELU_TANH = 2  /* GPT-2's: x/2 * (1 + tanh(sqrt(2/pi) * (x + 0.044715 x^3))) */
} rapt_activation;

/* A transformer's encoder block. Post-norm (Vaswani et al. 2017): norm1(x + attention(x)), then norm2(y +
 * ff2(activation(ff1(y)))). Pre-norm: x + attention(norm1(x)), then y + ff2(activation(ff1(norm2(y)))). */
typedef struct rapt_encoder_desc {
    uint32_t struct_size;                  /* sizeof(rapt_encoder_desc) */
    const rapt_multi_head_desc *attention; /* x and memory NULL; out as below. output.out, or query_heads * value_dim
                                              without output, is query.in or fused.in */
    rapt_norm norm1, norm2;
    rapt_linear ff1, ff2;                  /* width -> hidden -> width */
    int32_t activation;                    /* rapt_activation */
    int32_t pre_norm;                      /* 0 = post-norm, 1 = pre-norm */
    const float *x;                        /* [batch][query_length][width] */
    float *out;                            /* the same; may be x */
    float *norm1_out, *ff_out;             /* optional results: after norm1, after ff2. The attention's result goes to
                                              attention->out, which is optional here */
} rapt_encoder_desc;

#define RAPT_ENCODER_DESC_INIT RAPT_INIT(rapt_encoder_desc)

RAPT_LAYERS_API rapt_status rapt_encoder_block(const rapt_encoder_desc *desc, const rapt_run_options *options,
                                               rapt_message *message);

/* out[i] = table[ids[i]]. ids: [count]; table: [rows][width]; out: [count][width]. RAPT_INVALID_VALUE names an id
 * outside 0 ... rows - 1. Ids that change during the call never cause reads outside the table. */
RAPT_LAYERS_API rapt_status rapt_embedding(rapt_index_list ids, int64_t count, const float *table, int64_t rows,
                                           int64_t width, float *out, rapt_message *message);

/* ------------------------------------------------------- the older family */

/* Bahdanau, Cho, Bengio (arXiv 1409.0473): score(s, h) = v . tanh(W s + U h), values are the annotations h. No scaling.
 * `attention` without bias, softcap and scale, and with weights of kind MASKED or SOFTMAX; heads are 1. */
typedef struct rapt_additive_desc {
    uint32_t struct_size;                 /* sizeof(rapt_additive_desc) */
    const rapt_attention_desc *attention;
    const float *state;                   /* [batch][query_length][w.in] */
    const float *memory;                  /* [batch][kv_length][u.in] */
    rapt_linear w, u;                     /* both to the same units: w.out = u.out; u.in: 1 ... 1024 */
    const float *v;                       /* [units] */
    float *out;                           /* [batch][query_length][u.in] */
    float *scores;                        /* optional result: [batch][query_length][kv_length], before masks */
} rapt_additive_desc;

#define RAPT_ADDITIVE_DESC_INIT RAPT_INIT(rapt_additive_desc)

RAPT_LAYERS_API rapt_status rapt_additive_attention(const rapt_additive_desc *desc, const rapt_run_options *options,
                                                    rapt_message *message);

typedef enum rapt_luong_score {
    RAPT_LUONG_DOT = 0,     /* h_t . h_s */
    RAPT_LUONG_GENERAL = 1, /* h_t . W h_s */
    RAPT_LUONG_CONCAT = 2   /* v . tanh(W [h_t; h_s]) */
} rapt_luong_score;

typedef enum rapt_luong_window {
    RAPT_LUONG_GLOBAL = 0,
    RAPT_LUONG_LOCAL_M = 1, /* around p_t = t */
    RAPT_LUONG_LOCAL_P = 2  /* around p_t = S * sigmoid(v_p . tanh(W_p h_t)), with a Gaussian of sigma = D/2; S is the
                               sequence's number of keys, p_t is rounded to float32 */
} rapt_luong_window;

/* Luong, Pham, Manning (arXiv 1508.04025): decoder states h_t against encoder states h_s, which are the values too. No
 * scaling. Local attention sees the source positions s (from 0) with |s - p_t| <= D. `attention` without features,
 * mask, bias, softcap, scale, slopes, sinks, positions and query_lengths; heads are 1. */
typedef struct rapt_luong_desc {
    uint32_t struct_size;                 /* sizeof(rapt_luong_desc) */
    const rapt_attention_desc *attention; /* weights: with local-p of kind SOFTMAX, include the Gaussian and sum to at
                                             most 1; with concat MASKED or SOFTMAX. lse and states: not with local-p */
    int32_t score;                        /* rapt_luong_score */
    int32_t window;                       /* rapt_luong_window */
    int64_t reach;                        /* D, >= 1; local only */
    const float *state;                   /* h_t, [batch][query_length][state_width] */
    const float *memory;                  /* h_s, [batch][kv_length][memory_width] */
    int64_t state_width, memory_width;    /* equal for dot; memory_width: 1 ... 1024 */
    const float *w_a;                     /* general: [state_width][memory_width];
                                             concat: [units][state_width + memory_width] */
    const float *v_a;                     /* concat: [units] */
    int64_t units;                        /* concat: 1 ... 2^31 */
    rapt_linear w_p;                      /* local-p: state_width -> any */
    const float *v_p;                     /* local-p: [w_p.out] */
    rapt_linear w_c;                      /* optional: memory_width + state_width -> any */
    float *out;                           /* the context, [batch][query_length][memory_width] */
    float *attentional;                   /* with w_c: tanh(w_c [context; h_t]), [batch][query_length][w_c.out] */
    float *scores;                        /* optional result: [batch][query_length][kv_length], all positions */
    float *align;                         /* optional result, likewise: after softmax, before the Gaussian */
    float *position;                      /* optional result of local-p: p_t, [batch][query_length] */
} rapt_luong_desc;

#define RAPT_LUONG_DESC_INIT RAPT_INIT(rapt_luong_desc)

RAPT_LAYERS_API rapt_status rapt_luong_attention(const rapt_luong_desc *desc, const rapt_run_options *options,
                                                 rapt_message *message);

#ifdef __cplusplus
}
#endif
#endif
