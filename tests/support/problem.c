/* SPDX-License-Identifier: MIT */
#include "support/problem.h"

#include <stdio.h>
#include <stdlib.h>

#include "support/problem_data.h"
#include "support/stored.h"

enum { POISON = 0xff, BLANK = 0 }; /* of inputs; POISON bytes are a NaN */

static bool is_output(int name) { return name >= ARRAY_OUT; }

/* An origin that nothing uses is refused. */
static int32_t origin_of(const struct problem_call *call) {
    const bool counts = call->use & (USE_CAUSAL | USE_WINDOW | USE_ALIBI | USE_STANDARD_ALIBI);
    return counts ? call->origin : RAPT_ORIGIN_UNSTATED;
}

static bool is_present(const struct problem_call *call, int name) {
    static const unsigned uses[ARRAYS] = {
        [ARRAY_MASK] = USE_MASK,
        [ARRAY_BIAS] = USE_BIAS,
        [ARRAY_KEEP] = USE_KEEP,
        [ARRAY_FACTOR] = USE_HEAD_FACTOR,
        [ARRAY_SLOPES] = USE_ALIBI,
        [ARRAY_SINKS] = USE_SINKS,
        [ARRAY_QUERY_LENGTHS] = USE_QUERY_LENGTHS,
        [ARRAY_KV_LENGTHS] = USE_KV_LENGTHS,
        [ARRAY_KEY_POSITION] = USE_KEY_POSITION,
        [ARRAY_TREE_MASKS] = USE_TREE,
        [ARRAY_BLOCK_OFFSETS] = USE_BLOCKS,
        [ARRAY_BLOCK_ENTRIES] = USE_BLOCKS,
        [ARRAY_LSE] = USE_LSE,
        [ARRAY_WEIGHTS] = USE_WEIGHTS,
        [ARRAY_INITIAL_STATE] = USE_INITIAL_STATE,
        [ARRAY_FINAL_STATE] = USE_FINAL_STATE,
    };
    switch (name) {
    case ARRAY_KEY_SCALES:
        return call->key_scales;
    case ARRAY_VALUE_SCALES:
        return call->value_scales;
    case ARRAY_KEY_ZEROS:
        return call->key_scales && (rapt_format_info(call->key_format)->uses & RAPT_MAY_SHIFT) && call->seed % 3;
    case ARRAY_VALUE_ZEROS:
        return call->value_scales && (rapt_format_info(call->value_format)->uses & RAPT_MAY_SHIFT) && call->seed % 4;
    case ARRAY_VALUE:
        return !(call->use & USE_VIEW);
    case ARRAY_OUT:
        return !(call->use & USE_NO_OUT);
    case ARRAY_SLOPES:
        return (call->use & (USE_ALIBI | USE_STANDARD_ALIBI)) == USE_ALIBI;
    case ARRAY_QUERY_POSITION:
        return origin_of(call) == RAPT_ORIGIN_GIVEN;
    default:
        return uses[name] == 0 || (call->use & uses[name]);
    }
}

/* ---- layouts of arrays */

struct arrangement {
    int order; /* 1: token-major; 2: head-major */
    int64_t padding;
    bool reversed[3];
};

static struct arrangement arrangement_of(const struct problem_layout *layout, int name) {
    name = name == ARRAY_KEY_ZEROS ? ARRAY_KEY_SCALES : name == ARRAY_VALUE_ZEROS ? ARRAY_VALUE_SCALES : name;
    struct arrangement arrangement = {layout->token_major, layout->padding, {false, false, layout->reversed}};
    if (layout->seed) {
        struct random random = {layout->seed * 77 + (uint64_t)name};
        arrangement.order = (int)random_below(&random, 3);
        arrangement.padding = random_chance(&random, 50) ? random_between(&random, 1, 5) : 0;
        for (int dim = 0; dim < 3; dim++)
            arrangement.reversed[dim] = random_chance(&random, 25);
    }
    return arrangement;
}

/* Strides, and the bytes that the elements span. */
static int64_t set_strides(struct problem_array *array, const struct arrangement *arrangement, bool may_reverse) {
    static const int orders[3][4] = {{3, 2, 1, 0}, {3, 1, 2, 0}, {3, 2, 0, 1}}; /* innermost first */
    int64_t stride = array->element_bytes, span = array->element_bytes;
    array->first_byte = 0;
    for (int k = 0; k < 4; k++) {
        const int dim = orders[arrangement->order][k];
        if (array->count[dim] == 0)
            return 0;
        array->stride_bytes[dim] = stride;
        span += (array->count[dim] - 1) * stride;
        stride = stride * array->count[dim] + (k < 3 ? arrangement->padding * array->element_bytes : 0);
    }
    for (int dim = 0; dim < 3 && may_reverse; dim++)
        if (arrangement->reversed[dim]) {
            array->first_byte += (array->count[dim] - 1) * array->stride_bytes[dim];
            array->stride_bytes[dim] = -array->stride_bytes[dim];
        }
    return span;
}

/* count, as in memory, and element_bytes are set. */
static void allocate(struct problem_array *array, int name, const struct problem_layout *layout) {
    const struct arrangement arrangement = arrangement_of(layout, name);
    const size_t bytes = (size_t)set_strides(array, &arrangement, !is_output(name));
    const size_t distance = array->element_bytes == 8 ? (layout->distance + 7) / 8 * 8 : layout->distance;
    const int content = is_output(name) ? CANARY : layout->poison ? POISON : BLANK;
    array->memory = guarded_new(bytes, layout->side, distance, (unsigned char)content);
}

char *problem_at(const struct problem_array *array, int64_t b, int64_t h, int64_t token) {
    char *head = array->memory.data + array->first_byte + h * array->stride_bytes[1];
    return array->places ? head + array->places[b * array->count[2] + token]
                         : head + b * array->stride_bytes[0] + token * array->stride_bytes[2];
}

/* ---- the descriptor */

static rapt_tensor tensor(const struct problem *problem, enum array_name name, const struct problem_layout *layout) {
    const struct problem_array *array = &problem->arrays[name];
    rapt_tensor result = {0};
    if (!array->memory.data)
        return result;
    int64_t *const strides[3] = {&result.batch_stride_bytes, &result.head_stride_bytes, &result.token_stride_bytes};
    struct random random = {layout->seed * 77 + 100 + (uint64_t)name};
    int64_t logical[4];
    int64_t in_memory[4];
    memcpy(in_memory, array->count, sizeof in_memory);
    if (array->places)
        shape_in_memory(problem, name, in_memory);
    if (array->places)
        memcpy(logical, in_memory, sizeof logical);
    else
        logical_counts(&problem->call, name, logical);
    for (int dim = 0; dim < 3; dim++) {
        *strides[dim] = in_memory[dim] == 1 ? 0 : array->stride_bytes[dim];
        if (logical[dim] == 1 && layout->seed && random_chance(&random, 50))
            *strides[dim] = -123456789012345; /* never read */
    }
    result.data = array->memory.data + array->first_byte;
    result.dtype = array->dtype;
    result.extent_bytes = array->first_byte ? 0 : (int64_t)array->memory.bytes;
    if ((name == ARRAY_KEY || name == ARRAY_VALUE) && layout->page_kind && layout->page_kind != RAPT_PAGES_ROW)
        result.page_stride_bytes = array->stride_bytes[0];
    return result;
}

/* Keys or values, with their scales. */
static rapt_tensor stored_tensor(const struct problem *problem, enum array_name name,
                                 const struct problem_layout *layout) {
    const bool is_key = name == ARRAY_KEY;
    const int length = is_key ? problem->call.key_scales : problem->call.value_scales;
    const struct problem_array *zeros = &problem->arrays[is_key ? ARRAY_KEY_ZEROS : ARRAY_VALUE_ZEROS];
    const rapt_tensor scales = tensor(problem, is_key ? ARRAY_KEY_SCALES : ARRAY_VALUE_SCALES, layout);
    rapt_tensor result = tensor(problem, name, layout);
    if (!scales.data)
        return result;
    result.scale_dtype = RAPT_F32;
    result.scales = scales.data;
    result.scale_group = length == 1 ? 0 : length;
    result.scale_batch_stride_bytes = scales.batch_stride_bytes;
    result.scale_head_stride_bytes = scales.head_stride_bytes;
    result.scale_token_stride_bytes = scales.token_stride_bytes;
    result.scale_extent_bytes = scales.extent_bytes;
    if (zeros->memory.data) {
        result.zero_point_dtype = RAPT_I8;
        result.zero_points = zeros->memory.data + zeros->first_byte;
    }
    return result;
}

static rapt_index_list list(const struct problem *problem, enum array_name name) {
    const struct problem_array *array = &problem->arrays[name];
    rapt_index_list result = {0};
    result.data = array->memory.data;
    result.index_bytes = array->memory.data ? (int32_t)array->element_bytes : 0;
    result.count = array->memory.data && name == ARRAY_BLOCK_ENTRIES ? array->count[3] : 0;
    return result;
}

static const float *head_list(const struct problem *problem, enum array_name name) {
    return (const float *)(const void *)problem->arrays[name].memory.data;
}

static void describe(struct problem *problem, const struct problem_layout *layout) {
    const struct problem_call *call = &problem->call;
    rapt_attention_desc desc = RAPT_ATTENTION_DESC_INIT;
    desc.batch = call->batch;
    desc.query_heads = call->query_heads;
    desc.kv_heads = call->kv_heads;
    desc.query_length = call->query_length;
    desc.kv_length = call->kv_length;
    desc.head_dim = call->head_dim;
    desc.value_dim = call->value_dim;
    desc.query_origin = origin_of(call);
    desc.numerics = call->numerics;
    draw_numbers(&desc, call);
    desc.query = tensor(problem, ARRAY_QUERY, layout);
    desc.key = stored_tensor(problem, ARRAY_KEY, layout);
    desc.value = call->use & USE_VIEW ? desc.key : stored_tensor(problem, ARRAY_VALUE, layout);
    desc.mask = tensor(problem, ARRAY_MASK, layout);
    desc.bias = tensor(problem, ARRAY_BIAS, layout);
    desc.keep_mask = tensor(problem, ARRAY_KEEP, layout);
    desc.out = tensor(problem, ARRAY_OUT, layout);
    desc.lse = tensor(problem, ARRAY_LSE, layout);
    desc.weights = tensor(problem, ARRAY_WEIGHTS, layout);
    desc.initial_state = tensor(problem, ARRAY_INITIAL_STATE, layout);
    desc.final_state = tensor(problem, ARRAY_FINAL_STATE, layout);
    desc.query_lengths = list(problem, ARRAY_QUERY_LENGTHS);
    desc.kv_lengths = list(problem, ARRAY_KV_LENGTHS);
    desc.key_position = list(problem, ARRAY_KEY_POSITION);
    desc.query_position = list(problem, ARRAY_QUERY_POSITION);
    desc.tree_masks = list(problem, ARRAY_TREE_MASKS);
    desc.key_blocks.offsets = list(problem, ARRAY_BLOCK_OFFSETS);
    desc.key_blocks.entries = list(problem, ARRAY_BLOCK_ENTRIES);
    desc.bias_head_factor = head_list(problem, ARRAY_FACTOR);
    desc.alibi_slopes = head_list(problem, ARRAY_SLOPES);
    desc.sinks = head_list(problem, ARRAY_SINKS);
    problem->desc = desc;
    describe_tables(problem, layout);
}

/* ---- problems */

static struct problem *empty(void) {
    struct problem *problem = calloc(1, sizeof *problem);
    if (!problem) {
        perror("problem");
        exit(1);
    }
    return problem;
}

struct problem *problem_new(const struct problem_call *call) {
    static const struct problem_layout plain = {0};
    struct problem *problem = empty();
    problem->call = consistent_call(*call);
    call = &problem->call;
    struct random lists = random_of(call, ARRAY_QUERY_LENGTHS);
    for (enum array_name name = 0; name < ARRAYS; name++) {
        struct problem_array *array = &problem->arrays[name];
        struct random own = random_of(call, name);
        struct random *random = name >= ARRAY_QUERY_LENGTHS && name <= ARRAY_QUERY_POSITION ? &lists : &own;
        if (!is_present(call, name))
            continue;
        draw_shape(array, call, name, random);
        allocate(array, name, &plain);
        if (is_output(name))
            continue;
        draw_array(array, call, name, random);
        guarded_make_read_only(&array->memory);
    }
    describe(problem, &plain);
    return problem;
}

static bool exists(const struct problem_array *array, int64_t b, int64_t token) {
    return !array->places || array->places[b * array->count[2] + token] != NO_PLACE;
}

/* Elements that no result depends on keep the allocation's poison: whole rows, in biases single elements. */
static void copy_array(const struct problem *from, struct problem_array *to, enum array_name name, bool poison) {
    const struct problem_array *array = &from->arrays[name];
    const int64_t *n = to->count, bytes = array->element_bytes, step = name == ARRAY_BIAS && poison ? 1 : n[3];
    for (int64_t b = 0; b < n[0]; b++)
        for (int64_t h = 0; h < n[1]; h++)
            for (int64_t token = 0; token < n[2]; token++)
                for (int64_t j = 0; j < n[3] && exists(to, b, token); j += step) {
                    const int64_t at[4] = {b < array->count[0] ? b : 0, h < array->count[1] ? h : 0,
                                           token < array->count[2] ? token : 0, j};
                    if (!poison || !is_unused(from, name, at))
                        memcpy(problem_at(to, b, h, token) + j * bytes,
                               problem_at(array, at[0], at[1], at[2]) + j * bytes, (size_t)(step * bytes));
                }
}

struct problem *problem_laid_out(const struct problem *plain, const struct problem_layout *layout) {
    struct problem *problem = empty();
    problem->call = plain->call;
    draw_tables(problem, plain, layout);
    for (enum array_name name = 0; name < ARRAYS; name++) {
        struct problem_array *array = &problem->arrays[name];
        if (!plain->arrays[name].memory.data)
            continue;
        *array = plain->arrays[name];
        if (has_places(layout, name))
            shape_in_memory(problem, name, array->count);
        if (name == ARRAY_TREE_MASKS && (layout->packed & PACKED_QUERIES))
            array->count[3] = problem->tables.query_tokens;
        allocate(array, name, layout);
        if (has_places(layout, name))
            set_places(problem, plain, array, name);
        if (is_output(name))
            continue;
        if (name == ARRAY_TREE_MASKS && (layout->packed & PACKED_QUERIES))
            copy_packed_trees(plain, problem);
        else
            copy_array(plain, array, name, layout->poison);
        guarded_make_read_only(&array->memory);
    }
    describe(problem, layout);
    return problem;
}

void problem_free(struct problem *problem) {
    for (int name = 0; problem && name < ARRAYS; name++)
        guarded_free(&problem->arrays[name].memory);
    if (problem)
        free_tables(problem);
    free(problem);
}
