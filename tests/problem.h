/* SPDX-License-Identifier: MIT
 * One attention call with random contents. What the arrays hold depends on
 * `seed`, never on `layout`, so two layouts of one call give the same bits. */
#ifndef RAPT_TESTS_PROBLEM_H
#define RAPT_TESTS_PROBLEM_H

#include "support.h"

enum problem_use {
    USE_SCALE = 1 << 0,
    USE_SOFTCAP = 1 << 1,
    USE_CAUSAL = 1 << 2,
    USE_WINDOW = 1 << 3,
    USE_ALIBI = 1 << 4,
    USE_STANDARD_ALIBI = 1 << 5, /* wins over USE_ALIBI */
    USE_MASK = 1 << 6,
    USE_FILL = 1 << 7, /* with USE_MASK only */
    USE_BIAS = 1 << 8,
    USE_HEAD_FACTOR = 1 << 9, /* with USE_BIAS only */
    USE_KEEP = 1 << 10,
    USE_SINKS = 1 << 11,
    USE_LSE = 1 << 12,
    USE_QUERY_LENGTHS = 1 << 13,
    USE_KV_LENGTHS = 1 << 14,
    USE_KEY_POSITION = 1 << 15,
    USE_WEIGHTS = 1 << 16,
    USE_VIEW = 1 << 17, /* value is a view of key */
    USE_COUNT = 18
};

enum data_kind {
    DATA_NORMAL,
    DATA_HUGE_ROWS,      /* some rows ten thousand times the others */
    DATA_NAN_ROWS,       /* a NaN or infinity in some keys and values */
    DATA_INFINITE,       /* some scores overflow to either infinity */
    DATA_MINUS_INFINITE, /* most scores are -infinity, some values NaN */
    DATA_DENORMAL,
    DATA_SPECIAL,
    DATA_LOUD, /* softmax is nearly one-hot, maxima move from block to block */
    DATA_BIG,  /* maxima beyond 2^22 */
    DATA_KINDS
};

struct problem_call {
    int64_t batch, query_heads, kv_heads, query_length, kv_length, head_dim, value_dim;
    unsigned use;
    enum data_kind data;
    int32_t origin, weights_kind; /* ignored where nothing uses them */
    uint64_t seed, layout;        /* layout 0: contiguous [batch, head, token, dim] */
};

#define PROBLEM_OUTPUTS 3 /* out, lse, weights */

struct problem_output {
    rapt_tensor tensor;
    float *memory;      /* all of it, with the gaps between rows; NULL where absent */
    int64_t count, row; /* floats of memory, and of a row */
};

struct problem {
    struct problem_call call;
    rapt_attention_desc desc;
    struct problem_output outputs[PROBLEM_OUTPUTS];
    char text[400];
};

/* Memory is test_alloc's. */
void problem_make(struct problem *problem, const struct problem_call *call);

/* A random call that one core answers in about work multiplications. */
struct problem_call random_call(uint64_t seed, int64_t work);

int64_t problem_query_length(const struct problem *problem, int64_t b);

/* Fills the outputs, gaps included, with the pattern that marks what was not written. */
void problem_reset(struct problem *problem);

/* What rapt_reference_attention gives, gaps included; the outputs are reset. */
struct problem_expected {
    float *memory[PROBLEM_OUTPUTS];
};
struct problem_expected problem_expect(struct problem *problem);

/* Fails where an output, a gap or a row behind its length differs. */
void problem_compare(const struct problem *problem, const struct problem_expected *expected, const char *who);

/* The hash of all results, in logical order. */
uint64_t problem_hash(uint64_t hash, const struct problem *problem);

static inline char *tensor_at(const rapt_tensor *tensor, int64_t b, int64_t h, int64_t token) {
    return (char *)tensor->data + b * tensor->batch_stride_bytes + h * tensor->head_stride_bytes +
           token * tensor->token_stride_bytes;
}

#endif
