/* SPDX-License-Identifier: MIT
 * Questions without data, and bindings with the data of a descriptor. */
#ifndef RAPT_TESTS_API_BIND_H
#define RAPT_TESTS_API_BIND_H

#include "cmocka_all.h"
#include "rapt/rapt.h"

static rapt_tensor without_data(rapt_tensor tensor) {
    tensor.data = NULL;
    tensor.extent_bytes = 0;
    tensor.scales = tensor.zero_points = NULL;
    tensor.scale_extent_bytes = 0;
    return tensor;
}

static rapt_attention_desc question(const rapt_attention_desc *desc) {
    rapt_attention_desc bare = *desc;
    rapt_tensor *const tensors[] = {&bare.query, &bare.key,       &bare.value, &bare.out, &bare.mask,
                                    &bare.bias,  &bare.keep_mask, &bare.lse,   &bare.weights,
                                    &bare.initial_state, &bare.final_state};
    for (size_t i = 0; i < sizeof tensors / sizeof *tensors; i++)
        *tensors[i] = without_data(*tensors[i]);
    return bare;
}

static rapt_buffer buffer(const rapt_tensor *tensor) {
    rapt_buffer buffer = rapt_output_buffer(tensor->data, tensor->extent_bytes);
    buffer.scales = tensor->scales;
    buffer.zero_points = tensor->zero_points;
    buffer.scale_extent_bytes = tensor->scale_extent_bytes;
    return buffer;
}

static rapt_bindings bindings_of(const rapt_attention_desc *desc) {
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

static rapt_plan plan_of(const rapt_attention_desc *desc) {
    rapt_plan plan;
    rapt_message message;
    if (rapt_plan_init(&plan, desc, &message) != RAPT_OK)
        fail_msg("%s", message.text);
    return plan;
}

static void bind(rapt_plan *plan, const rapt_attention_desc *desc) {
    const rapt_bindings bindings = bindings_of(desc);
    rapt_message message = {"stale"};
    if (rapt_plan_bind(plan, &bindings, &message) != RAPT_OK || message.text[0])
        fail_msg("%s", message.text);
}

#endif
