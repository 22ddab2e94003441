/* SPDX-License-Identifier: MIT */
#include "bind.h"

#include "describe.h"
#include "validate.h"

static rapt_status bind_tensor(const char *name, rapt_tensor *tensor, const rapt_buffer *buffer,
                               rapt_message *message) {
    if ((buffer->scales && !tensor->scale_dtype) || (buffer->zero_points && !tensor->zero_point_dtype))
        return rapt_refuse(message, RAPT_UNUSED_FIELD, "%s.%s is bound, but the plan has none", name,
                           buffer->scales && !tensor->scale_dtype ? "scales" : "zero_points");
    if (buffer->scale_extent_bytes && !tensor->scale_dtype)
        return rapt_refuse(message, RAPT_UNUSED_FIELD, "%s.scale_extent_bytes is bound, but the plan has no scales",
                           name);
    if (tensor->dtype == RAPT_NO_DTYPE && (buffer->data || buffer->extent_bytes))
        return rapt_refuse(message, RAPT_UNUSED_FIELD, "%s is bound, but the plan has none", name);
    tensor->data = buffer->data;
    tensor->extent_bytes = buffer->extent_bytes;
    tensor->scales = (void *)(uintptr_t)buffer->scales;
    tensor->zero_points = (void *)(uintptr_t)buffer->zero_points;
    tensor->scale_extent_bytes = buffer->scale_extent_bytes;
    return RAPT_OK;
}

static rapt_status bind_tensors(rapt_attention_desc *desc, const rapt_bindings *bindings, rapt_message *message) {
    const struct {
        const char *name;
        rapt_tensor *tensor;
        const rapt_buffer *buffer;
    } pairs[] = {
        {"query", &desc->query, &bindings->query},
        {"key", &desc->key, &bindings->key},
        {"value", &desc->value, &bindings->value},
        {"out", &desc->out, &bindings->out},
        {"mask", &desc->mask, &bindings->mask},
        {"bias", &desc->bias, &bindings->bias},
        {"keep_mask", &desc->keep_mask, &bindings->keep_mask},
        {"lse", &desc->lse, &bindings->lse},
        {"weights", &desc->weights, &bindings->weights},
        {"initial_state", &desc->initial_state, &bindings->initial_state},
        {"final_state", &desc->final_state, &bindings->final_state},
    };
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++) {
        const rapt_status status = bind_tensor(pairs[i].name, pairs[i].tensor, pairs[i].buffer, message);
        if (status != RAPT_OK)
            return status;
    }
    return RAPT_OK;
}

static rapt_status bind_list(const char *name, const float **list, const float *bound, rapt_message *message) {
    if (*list && !bound)
        return rapt_refuse(message, RAPT_NULL_POINTER, "%s is NULL, but the plan has it", name);
    if (!*list && bound)
        return rapt_refuse(message, RAPT_UNUSED_FIELD, "%s is bound, but the plan has none", name);
    *list = bound;
    return RAPT_OK;
}

rapt_status rapt_bind(struct rapt_plan_body *a, const rapt_bindings *bindings, rapt_message *message) {
    rapt_bindings complete;
    rapt_attention_desc desc = a->desc;
    rapt_status status = rapt_describe_bindings(bindings, &complete, message);
    if (status == RAPT_OK)
        status = bind_tensors(&desc, &complete, message);
    if (status == RAPT_OK)
        status = bind_list("bias_head_factor", &desc.bias_head_factor, complete.bias_head_factor, message);
    if (status == RAPT_OK)
        status = bind_list("alibi_slopes", &desc.alibi_slopes, complete.alibi_slopes, message);
    if (status == RAPT_OK)
        status = bind_list("sinks", &desc.sinks, complete.sinks, message);
    if (status == RAPT_OK)
        status = rapt_validate_binding(&desc, message);
    if (status == RAPT_OK)
        a->desc = desc;
    return status;
}
