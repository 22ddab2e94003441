/* SPDX-License-Identifier: MIT
 * Elements that no result of a problem may depend on. */
#include <math.h>

#include "reference/reference.h"
#include "support/problem_data.h"

/* Row of an array that may be broadcast. */
static const char *row_of(const struct problem *plain, enum array_name name, int64_t b, int64_t h, int64_t i) {
    const struct problem_array *array = &plain->arrays[name];
    return problem_at(array, array->count[0] == 1 ? 0 : b, array->count[1] == 1 ? 0 : h, array->count[2] == 1 ? 0 : i);
}

static int64_t entry(const struct problem *plain, enum array_name name, int64_t i, int64_t if_absent) {
    const struct problem_array *array = &plain->arrays[name];
    const void *data = array->memory.data;
    if (!data)
        return if_absent;
    return array->element_bytes == 4 ? ((const int32_t *)data)[i] : ((const int64_t *)data)[i];
}

int64_t problem_query_length(const struct problem *problem, int64_t b) {
    return entry(problem, ARRAY_QUERY_LENGTHS, b, problem->call.query_length);
}

int64_t problem_kv_length(const struct problem *problem, int64_t b) {
    return entry(problem, ARRAY_KV_LENGTHS, b, problem->call.kv_length);
}

static bool in_range(const struct problem *plain, int64_t b, int64_t i, int64_t j) {
    const rapt_attention_desc *desc = &plain->desc;
    const int64_t first = entry(plain, ARRAY_KEY_POSITION, b, 0);
    const int64_t query = desc->query_origin == RAPT_ORIGIN_GIVEN ? entry(plain, ARRAY_QUERY_POSITION, b, 0)
                          : desc->query_origin == RAPT_ORIGIN_BOTTOM_RIGHT
                              ? first + problem_kv_length(plain, b) - problem_query_length(plain, b)
                              : first;
    const int64_t distance = query + i - (first + j);
    if (j >= problem_kv_length(plain, b) || ((desc->features & RAPT_CAUSAL) && distance < 0))
        return false;
    return !(desc->features & RAPT_WINDOW) || ((desc->window_left == -1 || distance <= desc->window_left) &&
                                               (desc->window_right == -1 || -distance <= desc->window_right));
}

/* By the tree of query i and the list of its block. */
static bool is_selected(const struct problem *plain, int64_t b, int64_t h, int64_t i, int64_t j) {
    const struct problem_call *call = &plain->call;
    const rapt_block_list *blocks = &plain->desc.key_blocks;
    const int64_t last = problem_kv_length(plain, b) - 1 - j, tokens = plain->desc.tree_tokens; /* keys after it */
    if ((call->use & USE_TREE) && last < tokens &&
        !((uint64_t)entry(plain, ARRAY_TREE_MASKS, b * call->query_length + i, 0) >> (tokens - 1 - last) & 1))
        return false;
    if (!(call->use & USE_BLOCKS))
        return true;
    const int64_t list = b * blocks->batch_stride + h / (call->query_heads / call->kv_heads) * blocks->head_stride +
                         i / blocks->query_tokens;
    const int64_t end = entry(plain, ARRAY_BLOCK_OFFSETS, list + 1, 0);
    for (int64_t n = entry(plain, ARRAY_BLOCK_OFFSETS, list, 0); n < end; n++)
        if (entry(plain, ARRAY_BLOCK_ENTRIES, n, 0) == j / blocks->key_tokens)
            return true;
    return false;
}

static bool is_masked(const struct problem *plain, int64_t b, int64_t h, int64_t i, int64_t j) {
    return (plain->call.use & USE_MASK) && row_of(plain, ARRAY_MASK, b, h, i)[j] == 0;
}

static bool is_biased_out(const struct problem *plain, int64_t b, int64_t h, int64_t i, int64_t j) {
    return (plain->call.use & USE_BIAS) && rapt_reference_number(plain->arrays[ARRAY_BIAS].dtype,
                                                                 row_of(plain, ARRAY_BIAS, b, h, i), j) == -INFINITY;
}

/* Whether query i of head h sees key j. */
static bool sees(const struct problem *plain, int64_t b, int64_t h, int64_t i, int64_t j) {
    return in_range(plain, b, i, j) && is_selected(plain, b, h, i, j) && !is_biased_out(plain, b, h, i, j) &&
           ((plain->call.use & USE_FILL) || !is_masked(plain, b, h, i, j));
}

/* RAW and SOFTCAP weights show the scores of excluded pairs as well. */
static bool shows_every_score(const struct problem_call *call) {
    return (call->use & USE_WEIGHTS) &&
           (call->weights_kind == RAPT_WEIGHTS_RAW || call->weights_kind == RAPT_WEIGHTS_SOFTCAP);
}

static bool kv_row_is_unused(const struct problem *plain, enum array_name name, int64_t b, int64_t kv_head, int64_t j) {
    const struct problem_call *call = &plain->call;
    const int64_t group = call->query_heads / call->kv_heads;
    if (j >= problem_kv_length(plain, b))
        return true;
    if (name == ARRAY_KEY && shows_every_score(call))
        return false;
    for (int64_t h = kv_head * group; h < (kv_head + 1) * group; h++)
        for (int64_t i = 0; i < problem_query_length(plain, b); i++)
            if (sees(plain, b, h, i, j))
                return false;
    return true;
}

/* A -infinity excludes, so it always has an effect; any other bias of an excluded pair has none. */
static bool bias_is_unused(const struct problem *plain, const int64_t at[4]) {
    const int64_t *in_memory = plain->arrays[ARRAY_BIAS].count;
    int64_t first[3], end[3], count[4];
    logical_counts(&plain->call, ARRAY_BIAS, count);
    for (int dim = 0; dim < 3; dim++) {
        first[dim] = at[dim];
        end[dim] = in_memory[dim] == 1 ? count[dim] : at[dim] + 1;
    }
    if (is_biased_out(plain, at[0], at[1], at[2], at[3]))
        return false;
    for (int64_t b = first[0]; b < end[0]; b++)
        for (int64_t h = first[1]; h < end[1]; h++)
            for (int64_t i = first[2]; i < end[2] && i < problem_query_length(plain, b); i++)
                if (in_range(plain, b, i, at[3]) && is_selected(plain, b, h, i, at[3]) &&
                    !is_masked(plain, b, h, i, at[3]))
                    return false;
    return true;
}

bool is_unused(const struct problem *plain, enum array_name name, const int64_t at[4]) {
    switch (name) {
    case ARRAY_QUERY:
        return at[2] >= problem_query_length(plain, at[0]);
    case ARRAY_INITIAL_STATE:
        return plain->arrays[name].count[0] == plain->call.batch &&
               plain->arrays[name].count[2] == plain->call.query_length && at[2] >= problem_query_length(plain, at[0]);
    case ARRAY_KEY:
    case ARRAY_VALUE:
        return kv_row_is_unused(plain, name, at[0], at[1], at[2]);
    case ARRAY_BIAS:
        return bias_is_unused(plain, at);
    case ARRAY_KEY_SCALES:
    case ARRAY_KEY_ZEROS:
        return kv_row_is_unused(plain, ARRAY_KEY, at[0], at[1], at[2]);
    case ARRAY_VALUE_SCALES:
    case ARRAY_VALUE_ZEROS:
        return kv_row_is_unused(plain, ARRAY_VALUE, at[0], at[1], at[2]);
    default:
        return false;
    }
}
