/* SPDX-License-Identifier: MIT */
#include "plan/bind.h"

#include <stddef.h>
#include <string.h>

#include "describe.h"
#include "plan/view.h"
#include "refuse.h"
#include "validate/validate.h"

/* Tensors, by their offset in a descriptor, and the memory of each in bindings. */
static const struct bound_tensor {
    const char *name;
    size_t tensor, buffer;
} bound_tensors[] = {
#define BOUND(name) {#name, offsetof(rapt_attention_desc, name), offsetof(rapt_bindings, name)}
    BOUND(query),     BOUND(key), BOUND(value),   BOUND(out),           BOUND(mask),       BOUND(bias),
    BOUND(keep_mask), BOUND(lse), BOUND(weights), BOUND(initial_state), BOUND(final_state)
#undef BOUND
};

static rapt_tensor *tensor_of(rapt_attention_desc *desc, const struct bound_tensor *bound) {
    return (rapt_tensor *)(void *)((char *)desc + bound->tensor);
}

static const rapt_buffer *buffer_of(const rapt_bindings *bindings, const struct bound_tensor *bound) {
    return (const rapt_buffer *)(const void *)((const char *)bindings + bound->buffer);
}

static rapt_status check_tensor(const char *name, const rapt_tensor *tensor, const rapt_buffer *buffer,
                                rapt_message *message) {
    if ((buffer->scales && !tensor->scale_dtype) || (buffer->zero_points && !tensor->zero_point_dtype))
        return rapt_refuse(message, RAPT_UNUSED_FIELD, "%s.%s is bound, but the plan has none", name,
                           buffer->scales && !tensor->scale_dtype ? "scales" : "zero_points");
    if (buffer->scale_extent_bytes && !tensor->scale_dtype)
        return rapt_refuse(message, RAPT_UNUSED_FIELD, "%s.scale_extent_bytes is bound, but the plan has no scales",
                           name);
    if (tensor->dtype == RAPT_NO_DTYPE && (buffer->data || buffer->extent_bytes))
        return rapt_refuse(message, RAPT_UNUSED_FIELD, "%s is bound, but the plan has none", name);
    return RAPT_OK;
}

static rapt_status check_list(const char *name, const float *list, const float *bound, rapt_message *message) {
    if (list && !bound)
        return rapt_refuse(message, RAPT_NULL_POINTER, "%s is NULL, but the plan has it", name);
    if (!list && bound)
        return rapt_refuse(message, RAPT_UNUSED_FIELD, "%s is bound, but the plan has none", name);
    return RAPT_OK;
}

/* Whether the plan has what is bound, and the bindings what it requires. */
static rapt_status check_names(rapt_attention_desc *desc, const rapt_bindings *b, rapt_message *message) {
    rapt_status status = RAPT_OK;
    for (size_t i = 0; i < sizeof bound_tensors / sizeof *bound_tensors && status == RAPT_OK; i++) {
        const struct bound_tensor *bound = &bound_tensors[i];
        status = check_tensor(bound->name, tensor_of(desc, bound), buffer_of(b, bound), message);
    }
    if (status == RAPT_OK)
        status = check_list("bias_head_factor", desc->bias_head_factor, b->bias_head_factor, message);
    if (status == RAPT_OK)
        status = check_list("alibi_slopes", desc->alibi_slopes, b->alibi_slopes, message);
    if (status == RAPT_OK)
        status = check_list("sinks", desc->sinks, b->sinks, message);
    return status;
}

static void put(rapt_attention_desc *desc, const rapt_bindings *bindings) {
    for (size_t i = 0; i < sizeof bound_tensors / sizeof *bound_tensors; i++) {
        rapt_tensor *tensor = tensor_of(desc, &bound_tensors[i]);
        const rapt_buffer *buffer = buffer_of(bindings, &bound_tensors[i]);
        tensor->data = buffer->data;
        tensor->extent_bytes = buffer->extent_bytes;
        tensor->scales = (void *)(uintptr_t)buffer->scales;
        tensor->zero_points = (void *)(uintptr_t)buffer->zero_points;
        tensor->scale_extent_bytes = buffer->scale_extent_bytes;
    }
    desc->bias_head_factor = bindings->bias_head_factor;
    desc->alibi_slopes = bindings->alibi_slopes;
    desc->sinks = bindings->sinks;
}

/* Refused bindings leave the plan as it is. */
rapt_status rapt_bind(struct rapt_plan_body *plan, const rapt_bindings *bindings, rapt_message *message) {
    rapt_bindings complete;
    rapt_attention_desc desc;
    rapt_status status = rapt_describe_bindings(bindings, &complete, message);
    if (status == RAPT_OK)
        status = check_names(&plan->desc, &complete, message);
    if (status != RAPT_OK)
        return status;
    memcpy(&desc, &plan->desc, plan->desc.struct_size); /* a constant size would be copied inline, which is slower */
    put(&desc, &complete);
    status = rapt_validate_binding(&desc, message);
    if (status == RAPT_OK) {
        put(&plan->desc, &complete);
        rapt_find_view(plan);
    }
    return status;
}
