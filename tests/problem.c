/* SPDX-License-Identifier: MIT */
#include "problem.h"

#include <math.h>
#include <stdio.h>

#include "cmocka_all.h"
#include "problem_data.h"
#include "reference.h"

/* ---- tensors: counts are batch, head, token, innermost; 1 with stride 0 where broadcast */

static uint64_t seed_of(const struct problem_call *call, int name) {
    return call->seed * 1000003u + (uint64_t)name * 7919u;
}

/* Strides in elements, and how many elements they span. first: element 0, 0, 0. */
static int64_t choose_strides(const int64_t count[4], int64_t stride[3], int64_t *first, bool is_output,
                              struct random *random) {
    static const int orders[3][3] = {{2, 1, 0}, {1, 2, 0}, {2, 0, 1}}; /* innermost first */
    const int *order = orders[random ? random_below(random, 3) : 0];
    int64_t padding = random && random_chance(random, 50) ? random_between(random, 1, 5) : 0;
    int64_t span = count[3] + padding;
    *first = 0;
    for (int k = 0; k < 3; k++) {
        int dim = order[k];
        stride[dim] = span;
        span = span * count[dim] + (k == 2 ? 0 : padding);
    }
    for (int dim = 0; dim < 3; dim++)
        if (random && !is_output && random_chance(random, 25)) {
            *first += (count[dim] - 1) * stride[dim];
            stride[dim] = -stride[dim];
        }
    *first = *first < 0 ? 0 : *first;
    return span;
}

/* logical: sizes in the descriptor; count: sizes in memory. */
static rapt_tensor make_tensor(int dtype, const int64_t logical[3], const int64_t count[4], bool is_output,
                               struct random *random, int64_t *span) {
    int64_t bytes = dtype == RAPT_F32 ? 4 : 1, stride[3], first;
    *span = choose_strides(count, stride, &first, is_output, random);
    rapt_tensor tensor = {0};
    tensor.data = (char *)test_alloc((size_t)(*span * bytes)) + first * bytes;
    tensor.dtype = dtype;
    int64_t *const strides[3] = {&tensor.batch_stride_bytes, &tensor.head_stride_bytes,
                                 &tensor.token_stride_bytes};
    for (int dim = 0; dim < 3; dim++) {
        *strides[dim] = count[dim] == 1 ? 0 : stride[dim] * bytes;
        if (logical[dim] == 1 && random && random_chance(random, 50))
            *strides[dim] = -123456789012345; /* nobody looks at it */
    }
    return tensor;
}

static rapt_tensor make_input(const struct problem_call *call, enum array_name name) {
    const bool is_kv = name == ARRAY_KEY || name == ARRAY_VALUE, is_map = name >= ARRAY_MASK;
    const bool is_bool = name == ARRAY_MASK || name == ARRAY_KEEP;
    struct random random = {seed_of(call, name)}, layout = {call->layout * 77 + (uint64_t)name};
    uint64_t array_seed = random_bits(&random);
    int64_t logical[3] = {call->batch, is_kv ? call->kv_heads : call->query_heads,
                          is_kv ? call->kv_length : call->query_length};
    int64_t count[4] = {logical[0], logical[1], logical[2],
                        is_map                ? call->kv_length
                        : name == ARRAY_VALUE ? call->value_dim
                                              : call->head_dim};
    for (int dim = 0; dim < 3; dim++)
        if (is_map && count[dim] > 0 && random_chance(&random, 35))
            count[dim] = 1;
    int64_t span;
    rapt_tensor tensor = make_tensor(is_bool ? RAPT_BOOL8 : RAPT_F32, logical, count, false,
                                     call->layout ? &layout : NULL, &span);
    for (int64_t b = 0; b < count[0]; b++)
        for (int64_t h = 0; h < count[1]; h++)
            for (int64_t token = 0; token < count[2]; token++) {
                /* a stride that nobody looks at is only multiplied by 0 */
                void *row = tensor_at(&tensor, b, h, token);
                if (is_bool)
                    draw_flags(row, count[3], array_seed, &random);
                else if (name == ARRAY_BIAS)
                    draw_bias(row, count[3], array_seed, call->data == DATA_NORMAL, &random);
                else
                    draw_row(row, count[3], call->data, name, &random);
            }
    return tensor;
}

static struct problem_output make_output(const struct problem_call *call, int name) {
    struct random layout = {call->layout * 77 + 100 + (uint64_t)name};
    int64_t logical[3] = {call->batch, call->query_heads, call->query_length};
    int64_t count[4] = {call->batch, call->query_heads, call->query_length,
                        name == 0   ? call->value_dim
                        : name == 1 ? 1
                                    : call->kv_length};
    struct problem_output output;
    output.row = count[3];
    output.tensor = make_tensor(RAPT_F32, logical, count, true, call->layout ? &layout : NULL, &output.count);
    output.memory = output.tensor.data;
    return output;
}

/* ---- lists and numbers */

static rapt_index_list make_list(const struct problem_call *call, int64_t first, int64_t last,
                                 struct random *random) {
    rapt_index_list list = {0};
    list.index_bytes = random_chance(random, 50) ? 4 : 8;
    void *data = test_alloc((size_t)call->batch * 8);
    list.data = data;
    for (int64_t b = 0; b < call->batch; b++) {
        int64_t entry = random_between(random, first, last);
        if (list.index_bytes == 4)
            ((int32_t *)data)[b] = (int32_t)entry;
        else
            ((int64_t *)data)[b] = entry;
    }
    return list;
}

static const float *make_head_list(const struct problem_call *call, enum array_name name) {
    struct random random = {seed_of(call, name)};
    float *list = test_floats(call->query_heads);
    draw_head_list(list, call->query_heads, name, &random);
    return list;
}

static void set_lists(rapt_attention_desc *desc, const struct problem_call *call) {
    struct random random = {seed_of(call, ARRAY_LISTS)};
    bool is_far = random_chance(&random, 20);
    int64_t position = is_far ? (int64_t)1 << 30 : 0;
    if (call->use & USE_QUERY_LENGTHS)
        desc->query_lengths = make_list(call, 0, call->query_length, &random);
    if (call->use & USE_KV_LENGTHS)
        desc->kv_lengths = make_list(call, 0, call->kv_length, &random);
    if (call->use & USE_KEY_POSITION)
        desc->key_position = make_list(call, position, position + 700, &random);
    if (desc->query_origin == RAPT_ORIGIN_GIVEN) {
        int64_t start = call->use & USE_KEY_POSITION ? position : 0;
        desc->query_position = make_list(call, start - 20, start + call->kv_length + 300, &random);
    }
    if (call->use & USE_HEAD_FACTOR)
        desc->bias_head_factor = make_head_list(call, ARRAY_FACTOR);
    if ((call->use & (USE_ALIBI | USE_STANDARD_ALIBI)) == USE_ALIBI)
        desc->alibi_slopes = make_head_list(call, ARRAY_SLOPES);
    if (call->use & USE_SINKS)
        desc->sinks = make_head_list(call, ARRAY_SINKS);
}

static void set_numbers(rapt_attention_desc *desc, const struct problem_call *call) {
    static const float fills[] = {-1e9f, -9e15f, 0.0f, 3.0f}, caps[] = {0.5f, 5.0f, 30.0f, 50.0f};
    static const int64_t windows[] = {-1, 0, 1, 5, 100, 255, 256, 300, 600, INT64_MAX};
    static const float scales[] = {0.25f, 0.0f, -0.125f, 1.0f, 0.09f};
    struct random random = {seed_of(call, ARRAY_NUMBERS)};
    if (call->use & USE_SCALE)
        desc->scale = scales[random_below(&random, 5)];
    if (call->use & USE_SOFTCAP)
        desc->softcap = caps[random_below(&random, 4)];
    if (call->use & USE_FILL)
        desc->mask_fill = fills[random_below(&random, 4)];
    if (call->use & USE_KEEP)
        desc->keep_scale = random_chance(&random, 80) ? 1.25f : 0.0f;
    if (call->use & USE_WINDOW) {
        desc->window_left = windows[random_below(&random, 10)];
        desc->window_right = windows[random_below(&random, 10)];
    }
    if (call->use & USE_WEIGHTS)
        desc->weights_kind = call->weights_kind;
    if (call->use & (USE_CAUSAL | USE_WINDOW | USE_ALIBI | USE_STANDARD_ALIBI))
        desc->query_origin = call->origin;
    desc->features = (call->use & USE_SCALE ? RAPT_SCALE : 0) | (call->use & USE_CAUSAL ? RAPT_CAUSAL : 0) |
                     (call->use & USE_WINDOW ? RAPT_WINDOW : 0) |
                     (call->use & USE_FILL ? RAPT_MASK_FILL : 0) |
                     (call->use & USE_STANDARD_ALIBI ? RAPT_ALIBI_STANDARD : 0);
}

/* ---- the problem */

static void describe(struct problem *problem) {
    static const char *const data[] = {"normal",   "huge rows", "NaN rows", "infinite", "minus infinite",
                                       "denormal", "special",   "loud",     "big"};
    static const char *const uses[] = {"scale",          "softcap", "causal", "window",        "alibi",
                                       "standard alibi", "mask",    "fill",   "bias",          "factor",
                                       "keep",           "sinks",   "lse",    "query_lengths", "kv_lengths",
                                       "key_position",   "weights", "view"};
    const struct problem_call *c = &problem->call;
    int length = snprintf(
        problem->text, sizeof problem->text,
        "seed %llu, layout %llu: batch %lld, heads %lld/%lld, lengths %lld/%lld, dims %lld/%lld, data "
        "%s, origin %d, weights_kind %d, with",
        (unsigned long long)c->seed, (unsigned long long)c->layout, (long long)c->batch,
        (long long)c->query_heads, (long long)c->kv_heads, (long long)c->query_length,
        (long long)c->kv_length, (long long)c->head_dim, (long long)c->value_dim, data[c->data], c->origin,
        c->weights_kind);
    for (int use = 0; use < USE_COUNT; use++)
        if (c->use >> use & 1)
            length +=
                snprintf(problem->text + length, sizeof problem->text - (size_t)length, " %s", uses[use]);
}

void problem_make(struct problem *problem, const struct problem_call *given) {
    memset(problem, 0, sizeof *problem);
    problem->call = *given;
    struct problem_call *call = &problem->call;
    call->use &= call->use & USE_MASK ? ~0u : ~(unsigned)USE_FILL;
    call->use &= call->use & USE_BIAS ? ~0u : ~(unsigned)USE_HEAD_FACTOR;
    if (call->use & USE_VIEW && call->value_dim > call->head_dim)
        call->value_dim = call->head_dim;
    rapt_attention_desc desc = RAPT_ATTENTION_DESC_INIT;
    desc.batch = call->batch;
    desc.query_heads = call->query_heads;
    desc.kv_heads = call->kv_heads;
    desc.query_length = call->query_length;
    desc.kv_length = call->kv_length;
    desc.head_dim = call->head_dim;
    desc.value_dim = call->value_dim;
    set_numbers(&desc, call);
    set_lists(&desc, call);
    desc.query = make_input(call, ARRAY_QUERY);
    desc.key = make_input(call, ARRAY_KEY);
    desc.value = call->use & USE_VIEW ? desc.key : make_input(call, ARRAY_VALUE);
    if (call->use & USE_MASK)
        desc.mask = make_input(call, ARRAY_MASK);
    if (call->use & USE_BIAS)
        desc.bias = make_input(call, ARRAY_BIAS);
    if (call->use & USE_KEEP)
        desc.keep_mask = make_input(call, ARRAY_KEEP);
    rapt_tensor *const tensors[PROBLEM_OUTPUTS] = {&desc.out, &desc.lse, &desc.weights};
    const bool is_wanted[PROBLEM_OUTPUTS] = {true, call->use & USE_LSE, call->use & USE_WEIGHTS};
    for (int i = 0; i < PROBLEM_OUTPUTS; i++)
        if (is_wanted[i]) {
            problem->outputs[i] = make_output(call, i);
            *tensors[i] = problem->outputs[i].tensor;
        }
    problem->desc = desc;
    describe(problem);
}

int64_t problem_query_length(const struct problem *problem, int64_t b) {
    rapt_index_list list = problem->desc.query_lengths;
    if (!list.data)
        return problem->desc.query_length;
    return list.index_bytes == 4 ? ((const int32_t *)list.data)[b] : ((const int64_t *)list.data)[b];
}

void problem_reset(struct problem *problem) {
    for (int i = 0; i < PROBLEM_OUTPUTS; i++)
        if (problem->outputs[i].memory)
            memset(problem->outputs[i].memory, 0xff, (size_t)problem->outputs[i].count * sizeof(float));
}

struct problem_expected problem_expect(struct problem *problem) {
    struct problem_expected expected = {{NULL}};
    problem_reset(problem);
    rapt_reference_attention(&problem->desc);
    for (int i = 0; i < PROBLEM_OUTPUTS; i++) {
        const struct problem_output *output = &problem->outputs[i];
        if (!output->memory)
            continue;
        expected.memory[i] = test_floats(output->count);
        memcpy(expected.memory[i], output->memory, (size_t)output->count * sizeof(float));
    }
    problem_reset(problem);
    return expected;
}

static void compare_row(const struct problem *problem, const float *expected, int i, int64_t b, int64_t h,
                        int64_t query, const char *who) {
    static const char *const names[PROBLEM_OUTPUTS] = {"out", "lse", "weights"};
    const struct problem_output *output = &problem->outputs[i];
    const float *row = (const float *)(void *)tensor_at(&output->tensor, b, h, query);
    expect_bits(row, expected + (row - output->memory), output->row, NAN_CANONICAL,
                "%s %s of sequence %lld, head %lld, query %lld; %s", who, names[i], (long long)b,
                (long long)h, (long long)query, problem->text);
}

void problem_compare(const struct problem *problem, const struct problem_expected *expected,
                     const char *who) {
    for (int i = 0; i < PROBLEM_OUTPUTS; i++) {
        const struct problem_output *output = &problem->outputs[i];
        if (!output->memory)
            continue;
        for (int64_t b = 0; b < problem->call.batch; b++)
            for (int64_t h = 0; h < problem->call.query_heads; h++)
                for (int64_t query = 0; query < problem_query_length(problem, b); query++)
                    compare_row(problem, expected->memory[i], i, b, h, query, who);
        if (memcmp(output->memory, expected->memory[i], (size_t)output->count * sizeof(float)) != 0)
            fail_msg("%s wrote between rows or behind query_lengths, output %d; %s", who, i, problem->text);
    }
}

uint64_t problem_hash(uint64_t hash, const struct problem *problem) {
    for (int i = 0; i < PROBLEM_OUTPUTS; i++) {
        const struct problem_output *output = &problem->outputs[i];
        for (int64_t b = 0; output->memory && b < problem->call.batch; b++)
            for (int64_t h = 0; h < problem->call.query_heads; h++)
                for (int64_t query = 0; query < problem_query_length(problem, b); query++)
                    hash = hash_floats(hash, (const float *)(void *)tensor_at(&output->tensor, b, h, query),
                                       output->row);
    }
    return hash;
}

/* ---- random calls */

static int64_t pick(struct random *random, const int64_t *values, int count) {
    return values[random_below(random, count)];
}

struct problem_call random_call(uint64_t seed, int64_t work) {
    static const int64_t queries[] = {0, 1, 1, 2, 3, 4, 5, 8, 13, 16, 17, 33, 48, 49, 64, 65, 100, 200, 400};
    static const int64_t keys[] = {0,   1,   2,   7,   8,   9,   16,  31,  64,  100, 200,  255,  256,
                                   257, 300, 400, 511, 512, 513, 600, 700, 768, 900, 1024, 1100, 2600};
    static const int64_t dims[] = {1,  2,  3,  4,  5,  7,  8,  9,  15,  16,  17,  24,  31,  32, 33,
                                   40, 48, 63, 64, 65, 72, 80, 96, 100, 128, 130, 255, 256, 257};
    struct random random = {seed};
    struct problem_call call = {.seed = seed, .layout = seed, .use = (unsigned)random_bits(&random)};
    if (random_chance(&random, 60)) /* few features, else half of them */
        call.use &= (unsigned)random_bits(&random) & (unsigned)random_bits(&random);
    call.use &= (1u << USE_COUNT) - 1;
    call.data = random_chance(&random, 40) ? DATA_NORMAL : (enum data_kind)random_below(&random, DATA_KINDS);
    call.origin = (int32_t)random_between(&random, RAPT_ORIGIN_TOP_LEFT, RAPT_ORIGIN_GIVEN);
    call.weights_kind = (int32_t)random_between(&random, RAPT_WEIGHTS_RAW, RAPT_WEIGHTS_SOFTMAX);
    do {
        call.batch = random_chance(&random, 2) ? 0 : random_between(&random, 1, 3);
        call.kv_heads = random_between(&random, 1, 4);
        call.query_heads = call.kv_heads * random_between(&random, 1, 8);
        call.query_length = pick(&random, queries, sizeof queries / sizeof *queries);
        call.kv_length =
            random_chance(&random, 20) ? call.query_length : pick(&random, keys, sizeof keys / sizeof *keys);
        call.head_dim = pick(&random, dims, sizeof dims / sizeof *dims);
        call.value_dim =
            random_chance(&random, 60) ? call.head_dim : pick(&random, dims, sizeof dims / sizeof *dims);
    } while (call.batch * call.query_heads * call.query_length * call.kv_length *
                 (call.head_dim + call.value_dim + 20) >
             work);
    return call;
}
