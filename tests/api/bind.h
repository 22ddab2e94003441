/* SPDX-License-Identifier: MIT
 * Descriptors without data, and bindings with the data of one. */
#ifndef RAPT_TESTS_API_BIND_H
#define RAPT_TESTS_API_BIND_H

#include "support/cmocka_all.h"
#include "support/problem.h"

static inline rapt_tensor without_data(rapt_tensor tensor) {
    tensor.data = NULL;
    tensor.extent_bytes = 0;
    tensor.scales = tensor.zero_points = NULL;
    tensor.scale_extent_bytes = 0;
    return tensor;
}

static inline rapt_attention_desc question(const rapt_attention_desc *desc) {
    rapt_attention_desc bare = *desc;
    rapt_tensor *const tensors[] = {&bare.query, &bare.key,       &bare.value, &bare.out, &bare.mask,
                                    &bare.bias,  &bare.keep_mask, &bare.lse,   &bare.weights,
                                    &bare.initial_state, &bare.final_state};
    for (size_t i = 0; i < sizeof tensors / sizeof *tensors; i++)
        *tensors[i] = without_data(*tensors[i]);
    return bare;
}

static inline rapt_buffer buffer(const rapt_tensor *tensor) {
    rapt_buffer buffer = rapt_output_buffer(tensor->data, tensor->extent_bytes);
    buffer.scales = tensor->scales;
    buffer.zero_points = tensor->zero_points;
    buffer.scale_extent_bytes = tensor->scale_extent_bytes;
    return buffer;
}

static inline rapt_bindings bindings_of(const rapt_attention_desc *desc) {
    rapt_bindings bindings = RAPT_BINDINGS_INIT;
    bindings.query = buffer(&desc->query);
    bindings.key = buffer(&desc->key);
    bindings.value = buffer(&desc->value);
    bindings.out = buffer(&desc->out);
    bindings.mask = buffer(&desc->mask);
    bindings.bias = buffer(&desc->bias);
    bindings.keep_mask = buffer(&desc->keep_mask);
    bindings.lse = buffer(&desc->lse);
    bindings.weights = buffer(&desc->weights);
    bindings.initial_state = buffer(&desc->initial_state);
    bindings.final_state = buffer(&desc->final_state);
    bindings.bias_head_factor = desc->bias_head_factor;
    bindings.alibi_slopes = desc->alibi_slopes;
    bindings.sinks = desc->sinks;
    return bindings;
}

static inline rapt_plan plan_of(const rapt_attention_desc *desc) {
    rapt_plan plan;
    rapt_message message;
    if (rapt_plan_init(&plan, desc, &message) != RAPT_OK)
        fail_msg("%s", message.text);
    return plan;
}

static inline void bind(rapt_plan *plan, const rapt_attention_desc *desc) {
    const rapt_bindings bindings = bindings_of(desc);
    rapt_message message = {"stale"};
    if (rapt_plan_bind(plan, &bindings, &message) != RAPT_OK || message.text[0])
        fail_msg("%s", message.text);
}

/* Most features; split keys; many rows; scales; a state instead of an output. */
static const struct problem_call calls[] = {
    {2, 4, 2, 5, 60, 20, 12,
     USE_MASK | USE_BIAS | USE_KEEP | USE_LSE | USE_WEIGHTS | USE_HEAD_FACTOR | USE_ALIBI | USE_SINKS |
         USE_INITIAL_STATE | USE_FINAL_STATE,
     DATA_NORMAL, RAPT_ORIGIN_BOTTOM_RIGHT, RAPT_WEIGHTS_SOFTMAX, 0, 0},
    {1, 2, 1, 1, 6000, 16, 16, USE_CAUSAL, DATA_NORMAL, RAPT_ORIGIN_BOTTOM_RIGHT, RAPT_WEIGHTS_NONE, 0, 0},
    {3, 2, 2, 40, 40, 8, 8, USE_LSE, DATA_NORMAL, RAPT_ORIGIN_UNSTATED, RAPT_WEIGHTS_NONE, 0, 0},
    {1, 2, 1, 4, 70, 48, 32, USE_LSE, DATA_NORMAL, RAPT_ORIGIN_UNSTATED, RAPT_WEIGHTS_NONE, 1, 0, RAPT_FORMAT_I8,
     RAPT_FORMAT_F8_E4M3, 32, 1},
    {1, 2, 2, 5, 40, 8, 8, USE_FINAL_STATE | USE_NO_OUT, DATA_NORMAL, RAPT_ORIGIN_UNSTATED, RAPT_WEIGHTS_NONE, 0, 0},
};
enum { CALLS = sizeof calls / sizeof *calls };

static inline struct problem_call varied(const struct problem_call *call, uint64_t variant) {
    struct problem_call other = *call;
    other.variant = variant;
    return other;
}

#endif
