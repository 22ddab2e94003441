/* SPDX-License-Identifier: MIT
 *
 * Two independent answers to check the library with. They use malloc and libm,
 * are slow, and belong to the tests and to the command only.
 *
 * reference/reference.c is the specification: docs/numerics.md in scalar code, one row
 * at a time. The library must give its bits. reference/truth.c is attention in double:
 * what accuracy is measured against.
 *
 * ASSUME everywhere: rapt_validate accepts the descriptor, the floating point
 * environment is the default one (nearest even, no flushing).
 */
#ifndef RAPT_REFERENCE_H
#define RAPT_REFERENCE_H

#include <stdbool.h>
#include <stdint.h>

#include "rapt/cache.h"
#include "rapt/matmul.h"
#include "rapt/rapt.h"
#include "rapt/states.h"

/* Before a function: GCC compiles it once more, for x86 processors with a feature. The bits are the same. */
#if defined(__x86_64__) && defined(__GLIBC__) && !defined(__clang__) && !defined(__SANITIZE_ADDRESS__) && \
    !defined(__SANITIZE_THREAD__)
#define RAPT_REFERENCE_ALSO_FOR(feature) __attribute__((target_clones("default", feature)))
#else
#define RAPT_REFERENCE_ALSO_FOR(feature)
#endif

/* Zeros; the caller frees them. If there is no memory, calls rapt_reference_no_memory, which does not return: it is
 * abort, unless a program sets another function. (reference/storage.c) */
void *rapt_reference_room(int64_t count, size_t bytes);
extern void (*rapt_reference_no_memory)(void);

/* Writes out, lse, weights and final_state, as far as the descriptor has them. */
void rapt_reference_attention(const rapt_attention_desc *desc);

/* reference/storage.c: the keys of a sequence. */
int64_t rapt_reference_keys(const rapt_attention_desc *desc, int64_t b);

/* Number d of a row of a dtype. */
float rapt_reference_number(int32_t dtype, const void *row, int64_t d);

/* Gives a descriptor float32 keys and values [batch, kv_heads, kv_length, dim] if its own have another dtype, are
 * packed or in pages; the caller frees the copies. */
struct rapt_reference_copy {
    float *key, *value; /* NULL if there was nothing to convert */
};
struct rapt_reference_copy rapt_reference_widen(rapt_attention_desc *desc);

/* Its pieces, with the numbers of the steps of docs/numerics.md. */

/* 1: the FMA chain query . key. */
float rapt_reference_dot(const float *query, const float *key, int64_t head_dim);

/* 2: what happens to one scaled score. The fields are as in struct
 * rapt_tile_mask; distance is query position - key position of this pair. */
struct rapt_reference_pair {
    float softcap_log2e; /* 0 = no softcap */
    bool has_bias, has_alibi, has_mask, has_fill;
    float bias, bias_factor;
    float alibi_factor;
    int64_t distance;
    bool mask; /* true = attend */
    float fill_log2e;
};

/* The base-2 logit; *attended tells whether mask and bias let the pair take part. */
float rapt_reference_logit(float score, const struct rapt_reference_pair *pair, bool *attended);

float rapt_reference_tanh(float x); /* of the softcap */

/* 4: the larger of m and the even integer at or above t. */
float rapt_reference_even_maximum(float m, float t);

float rapt_reference_exp2(float t, float m); /* 5: 2^(t - m), m an even integer or -infinity, t <= m */
float rapt_reference_pow2(float k);          /* 7: 2^k, k an integer <= 0 or -infinity; NaN gives +0 */

/* The running state of one row. l = 0 means empty. */
struct rapt_reference_state {
    float m, l;
    float *o; /* [value_dim] */
};

/* 4 to 6 for one block: p from t, then l and m; returns alpha. Keys that are
 * not attended get p = +0 and are skipped. */
float rapt_reference_softmax(struct rapt_reference_state *state, const float *t, const bool *attended,
                             float *p, int64_t keys);

/* 6: o = o * alpha, then o += p * value, key after key. Strides in bytes. */
void rapt_reference_weigh(float *o, float alpha, const float *p, const bool *attended, const char *value,
                          int64_t value_stride_bytes, int64_t keys, int64_t value_dim);

/* 7: into = into folded with next; power: 2^k of the order. */
void rapt_reference_fold_by(struct rapt_reference_state *into, const struct rapt_reference_state *next,
                            int64_t value_dim, float (*power)(float k));
void rapt_reference_fold(struct rapt_reference_state *into, const struct rapt_reference_state *next,
                         int64_t value_dim);

/* States: callers' m, l and o of a row, to the state and back. An invalid state gets l = NaN. */
void rapt_reference_load_state(struct rapt_reference_state *into, const float *row, int64_t value_dim);
void rapt_reference_store_state(const struct rapt_reference_state *state, float *row, int64_t value_dim);

/* 8: lets a sink join (sink_log2e = sink * log2(e)). */
void rapt_reference_sink(struct rapt_reference_state *state, float sink_log2e, int64_t value_dim);

/* 8: 1 / l, +0 where empty; out = o * inverse. */
float rapt_reference_finish(const struct rapt_reference_state *state, float *out, int64_t value_dim);

float rapt_reference_lse(float m, float l);                       /* 9 */
float rapt_reference_log2(float l);                               /* 9, of the LSE */
float rapt_reference_export(float x);                             /* x + 0, NaN canonical */
float rapt_reference_alibi_slope(int64_t head, int64_t heads);    /* 10 */

/* reference/quantise.c: a row of a dtype from float32. */
void rapt_reference_store(int32_t dtype, const float *x, int64_t dim, void *row);

/* The same with the scales of the row, one per `group` numbers (0 = all), read, or computed and written. All NULL:
 * there are none. */
struct rapt_reference_scales {
    float *scales;
    signed char *zero_points;
    int64_t group;
    bool computes;
};
void rapt_reference_store_scaled(int32_t dtype, const float *x, int64_t dim, const struct rapt_reference_scales *scales,
                                 void *row);

/* reference/append.c: writes the caches, and out. */
void rapt_reference_append(const rapt_append_desc *desc);
void rapt_reference_rotate(const rapt_rotate_desc *desc);
float rapt_reference_frequency(const rapt_rotary *rotary, int64_t head_dim, int64_t pair);
void rapt_reference_angle(float frequency, int64_t position, double factor, float *cosine, float *sine);

/* reference/matmul.c: writes out. */
void rapt_reference_matmul(const rapt_matmul_desc *desc);

/* reference/states.c: writes merged, out and lse, as far as the descriptor has them. */
void rapt_reference_merge_states(const rapt_states_desc *desc);

/* The same attention in double, with dense results: out [batch, query_heads,
 * query_length, value_dim], lse [batch, query_heads, query_length], weights
 * [batch, query_heads, query_length, kv_length] of desc->weights_kind. lse and
 * weights may be NULL. Rows from query_lengths on are 0. */
void rapt_truth_attention(const rapt_attention_desc *desc, double *out, double *lse, double *weights);

/* What a C programmer would write in float32: sequential dot products and sums, softmax with expf. Accuracy is measured
 * against it. Dense as above. */
void rapt_plain_attention(const rapt_attention_desc *desc, float *out);

#endif
