/* SPDX-License-Identifier: MIT
 * One attention call whose arrays all lie in guarded memory. What the arrays
 * hold depends on the call alone, never on where and how they are laid out,
 * so two layouts of one call must give the same bits. */
#ifndef RAPT_TESTS_SCENE_H
#define RAPT_TESTS_SCENE_H

#include "guarded.h"
#include "rapt/rapt.h"

enum scene_with {
    WITH_MASK = 1 << 0,
    WITH_BIAS = 1 << 1,
    WITH_KEEP = 1 << 2,
    WITH_LSE = 1 << 3,
    WITH_WEIGHTS = 1 << 4,
    WITH_QUERY_LENGTHS = 1 << 5,
    WITH_KV_LENGTHS = 1 << 6,
    WITH_KEY_POSITION = 1 << 7,
    WITH_FACTOR = 1 << 8, /* needs WITH_BIAS */
    WITH_SLOPES = 1 << 9,
    WITH_SINKS = 1 << 10,
    WITH_SOFTCAP = 1 << 11,
    WITH_CAUSAL = 1 << 12,
    WITH_WINDOW = 1 << 13,
    WITH_FILL = 1 << 14, /* needs WITH_MASK */
    WITH_BROADCAST = 1 << 15, /* mask over batch, bias over heads, keep-mask over queries */
    WITH_EVERYTHING = (1 << 15) - 1
};

struct scene_call {
    int64_t batch, query_heads, kv_heads, query_length, kv_length, head_dim, value_dim;
    unsigned with;
    rapt_query_origin origin;
    rapt_weights_kind weights_kind; /* used with WITH_WEIGHTS */
    uint64_t seed;
    float query_size, value_size; /* largest element of query and of value; 0 = 1 */
};

struct scene_layout {
    enum guard_side side;
    size_t distance;   /* bytes of canaries between data and guard page, a multiple of 4 */
    int padding;       /* elements between rows, heads and sequences */
    bool token_major;  /* [batch, token, head, dim] */
    bool reversed;     /* tokens stored last to first */
    bool poison;       /* NaN wherever the result must not depend on the content */
};

enum scene_array_name {
    SCENE_QUERY, SCENE_KEY, SCENE_VALUE, SCENE_MASK, SCENE_BIAS, SCENE_KEEP,
    SCENE_QUERY_LENGTHS, SCENE_KV_LENGTHS, SCENE_QUERY_POSITION, SCENE_KEY_POSITION,
    SCENE_FACTOR, SCENE_SLOPES, SCENE_SINKS,
    SCENE_OUT, SCENE_LSE, SCENE_WEIGHTS, /* outputs from here on */
    SCENE_ARRAYS
};

struct scene_array {
    struct guarded memory;  /* memory.data is NULL where the call has no such array */
    int64_t count[4];       /* batch, head, token, innermost; 1 where broadcast */
    int64_t stride_bytes[4];
    int64_t first_byte;     /* of element 0, 0, 0, 0; not 0 where reversed */
};

struct scene {
    struct scene_call call;
    struct scene_layout layout;
    rapt_attention_desc desc;
    struct scene_array arrays[SCENE_ARRAYS];
};

/* Aborts the program on failure; scene_free releases. */
struct scene *scene_new(const struct scene_call *call, const struct scene_layout *layout);
void scene_free(struct scene *scene);

/* Sets every byte of the outputs to the canary again. */
void scene_reset(struct scene *scene);

/* Compares the results bit for bit; prints the first difference. */
bool scene_same(const struct scene *left, const struct scene *right);

/* Whether nothing but the results was written: gaps between rows, rows behind
 * the query lengths, bytes beside every array. Prints what is not. */
bool scene_is_clean(const struct scene *scene);

/* Whether no byte of an output was written. */
bool scene_is_untouched(const struct scene *scene);

/* One line about the call, in static memory. */
const char *scene_text(const struct scene_call *call);

/* ------- the contents, see scene_data.c */
int64_t scene_query_length(const struct scene_call *call, int64_t b);
int64_t scene_kv_length(const struct scene_call *call, int64_t b);
/* Whether query i of head h sees key j. */
bool scene_sees(const struct scene_call *call, int64_t b, int64_t h, int64_t i, int64_t j);
/* Element of an array of float32, bool8 (0 or not 0) or integers. */
double scene_element(const struct scene_call *call, enum scene_array_name name, const int64_t at[4]);
/* Whether no result depends on that element. */
bool scene_is_unused(const struct scene_call *call, enum scene_array_name name, const int64_t at[4]);

#endif
