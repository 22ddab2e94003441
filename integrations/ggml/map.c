/* SPDX-License-Identifier: MIT
 * ggml's tensors as a descriptor. ggml has sizes and strides innermost first: ne = [dim, tokens, heads, batch], for the
 * result [dim, heads, tokens, batch]. Nothing here is trusted: files and callers decide what a graph says. */
#include "map.h"

#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "ggml-backend.h"

enum sources { QUERY, KEY, VALUE, MASK, SINKS, SOURCES };
enum parameters { SCALE, MAX_BIAS, SOFTCAP, PRECISION, KEYS_BOUND, PARAMETERS };

static bool declined(rapt_message *message, const char *reason) {
    if (message)
        snprintf(message->text, sizeof message->text, "%s", reason);
    return false;
}

static int32_t dtype_of(enum ggml_type type) {
    switch (type) {
    case GGML_TYPE_F32: return RAPT_F32;
    case GGML_TYPE_F16: return RAPT_F16;
    case GGML_TYPE_BF16: return RAPT_BF16;
    case GGML_TYPE_Q8_0: return RAPT_Q8_0;
    case GGML_TYPE_Q4_0: return RAPT_Q4_0;
    case GGML_TYPE_Q4_1: return RAPT_Q4_1;
    case GGML_TYPE_Q5_0: return RAPT_Q5_0;
    case GGML_TYPE_Q5_1: return RAPT_Q5_1;
    case GGML_TYPE_IQ4_NL: return RAPT_IQ4_NL;
    default: return RAPT_NO_DTYPE;
    }
}

/* The type is known, elements are contiguous, and views are aligned for the type. */
static bool is_plain(const struct ggml_tensor *t) {
    const size_t alignment = t->type == GGML_TYPE_F32 ? sizeof(float) : sizeof(ggml_fp16_t);
    bool fits = dtype_of(t->type) != RAPT_NO_DTYPE && t->nb[0] == ggml_type_size(t->type);
    for (int i = 0; i < GGML_MAX_DIMS; i++)
        fits = fits && t->ne[i] >= 0 && t->nb[i] <= INT64_MAX;
    return fits && t->view_offs % alignment == 0;
}

static rapt_tensor tensor_of(const struct ggml_tensor *t, int token, int head) {
    rapt_tensor result = RAPT_ZERO;
    result.dtype = dtype_of(t->type);
    result.token_stride_bytes = (int64_t)t->nb[token];
    result.head_stride_bytes = (int64_t)t->nb[head];
    result.batch_stride_bytes = (int64_t)t->nb[3];
    return result;
}

static bool shapes_agree(const struct ggml_tensor *node) {
    const struct ggml_tensor *q = node->src[QUERY], *k = node->src[KEY], *v = node->src[VALUE];
    const bool inputs = q->ne[0] == k->ne[0] && k->ne[1] == v->ne[1] && k->ne[2] == v->ne[2] &&
                        q->ne[3] == k->ne[3] && q->ne[3] == v->ne[3];
    return inputs && node->ne[0] == v->ne[0] && node->ne[1] == q->ne[2] && node->ne[2] == q->ne[1] &&
           node->ne[3] == q->ne[3];
}

/* ggml repeats a mask over heads or sequences; rapt has one for all or one for each. */
static bool mask_agrees(const struct ggml_tensor *mask, const struct ggml_tensor *q, const struct ggml_tensor *k) {
    return mask->type == GGML_TYPE_F16 && is_plain(mask) && mask->ne[0] >= k->ne[1] && mask->ne[1] >= q->ne[1] &&
           (mask->ne[2] == 1 || mask->ne[2] == q->ne[2]) && (mask->ne[3] == 1 || mask->ne[3] == q->ne[3]);
}

static bool sinks_agree(const struct ggml_tensor *sinks, int64_t heads) {
    return sinks->type == GGML_TYPE_F32 && is_plain(sinks) && sinks->ne[0] == heads;
}

/* Parameters and sources unknown to this release would change the result. */
static bool has_unknown(const struct ggml_tensor *node) {
    bool unknown = false;
    for (size_t i = PARAMETERS; i < sizeof node->op_params / sizeof node->op_params[0]; i++)
        unknown |= node->op_params[i] != 0;
    for (int i = SOURCES; i < GGML_MAX_SRC; i++)
        unknown |= node->src[i] != NULL;
    return unknown;
}

static float parameter(const struct ggml_tensor *node, enum parameters which) {
    float value;
    memcpy(&value, &node->op_params[which], sizeof value);
    return value;
}

static void set_shapes(rapt_attention_desc *desc, const struct ggml_tensor *node) {
    const struct ggml_tensor *q = node->src[QUERY], *k = node->src[KEY], *v = node->src[VALUE];
    desc->batch = q->ne[3], desc->query_heads = q->ne[2], desc->kv_heads = k->ne[2];
    desc->query_length = q->ne[1], desc->kv_length = k->ne[1];
    desc->head_dim = q->ne[0], desc->value_dim = v->ne[0];
    desc->query = tensor_of(q, 1, 2), desc->key = tensor_of(k, 1, 2), desc->value = tensor_of(v, 1, 2);
    desc->out = tensor_of(node, 2, 1);
    desc->features = RAPT_SCALE;
    desc->scale = parameter(node, SCALE), desc->softcap = parameter(node, SOFTCAP);
}

static void set_mask(rapt_attention_desc *desc, const struct ggml_tensor *mask) {
    desc->bias = tensor_of(mask, 1, 2);
    desc->bias.head_stride_bytes *= mask->ne[2] > 1;
    desc->bias.batch_stride_bytes *= mask->ne[3] > 1;
}

bool rapt_ggml_describe(struct rapt_ggml_call *call, const struct ggml_tensor *node, rapt_message *message) {
    const struct ggml_tensor *q = node->src[QUERY], *k = node->src[KEY], *v = node->src[VALUE];
    const struct ggml_tensor *mask = node->src[MASK], *sinks = node->src[SINKS];
    if (has_unknown(node))
        return declined(message, "unknown parameters or sources");
    if (!q || !k || !v || q->type != GGML_TYPE_F32 || node->type != GGML_TYPE_F32)
        return declined(message, "queries or results are not float32");
    if (!is_plain(q) || !is_plain(k) || !is_plain(v) || !is_plain(node) || !shapes_agree(node))
        return declined(message, "types, strides or shapes");
    if (q->ne[2] < 1 || q->ne[2] > RAPT_GGML_MOST_HEADS)
        return declined(message, "number of heads");
    if (mask && !mask_agrees(mask, q, k))
        return declined(message, "shape of the mask");
    if (sinks && !sinks_agree(sinks, q->ne[2]))
        return declined(message, "shape of the sinks");
    if (!isfinite(parameter(node, MAX_BIAS)))
        return declined(message, "max_bias is not finite");
    memset(call, 0, sizeof *call);
    call->desc.struct_size = sizeof call->desc;
    set_shapes(&call->desc, node);
    if (mask)
        set_mask(&call->desc, mask);
    call->max_bias = mask && parameter(node, MAX_BIAS) > 0 ? parameter(node, MAX_BIAS) : 0;
    call->has_sinks = sinks != NULL;
    return true;
}

/* ALiBi slopes for any number of heads, as in ggml: with n the largest power of 2 in it, 2^(-max_bias (h + 1) / n)
 * for the first n heads, and every other one of twice as many for the rest. */
static void set_slopes(float *slopes, int64_t heads, double max_bias) {
    int64_t n = 1;
    while (2 * n <= heads)
        n *= 2;
    for (int64_t h = 0; h < heads; h++)
        slopes[h] = (float)exp2(h < n ? -max_bias * (double)(h + 1) / (double)n
                                      : -max_bias * (double)(2 * (h - n) + 1) / (double)(2 * n));
}

rapt_attention_desc rapt_ggml_complete(const struct rapt_ggml_call *call, float *slopes) {
    static const float none[RAPT_GGML_MOST_HEADS]; /* real ones are bound later */
    rapt_attention_desc desc = call->desc;
    if (call->max_bias > 0) {
        set_slopes(slopes, desc.query_heads, call->max_bias);
        desc.bias_head_factor = slopes;
    }
    desc.sinks = call->has_sinks ? none : NULL;
    return desc;
}

/* The extent of a tensor's buffer from its data on. */
static bool set_buffer(rapt_buffer *result, const struct ggml_tensor *t) {
    ggml_backend_buffer_t buffer = t->view_src ? t->view_src->buffer : t->buffer;
    result->data = t->data;
    if (!buffer || ggml_nelements(t) == 0)
        return true; /* unallocated memory has no known end */
    const uintptr_t base = (uintptr_t)ggml_backend_buffer_get_base(buffer), data = (uintptr_t)t->data;
    const size_t size = ggml_backend_buffer_get_size(buffer);
    if (data < base || data - base >= size)
        return false;
    result->extent_bytes = (int64_t)(size - (data - base));
    return true;
}

bool rapt_ggml_bindings(rapt_bindings *bindings, const struct ggml_tensor *node, const float *slopes,
                        rapt_message *message) {
    const struct ggml_tensor *mask = node->src[MASK], *sinks = node->src[SINKS];
    *bindings = (rapt_bindings)RAPT_BINDINGS_INIT;
    rapt_buffer of_sinks = {0};
    bool inside = set_buffer(&bindings->query, node->src[QUERY]) && set_buffer(&bindings->key, node->src[KEY]) &&
                  set_buffer(&bindings->value, node->src[VALUE]) && set_buffer(&bindings->out, node) &&
                  (!mask || set_buffer(&bindings->bias, mask)) && (!sinks || set_buffer(&of_sinks, sinks));
    inside = inside && (of_sinks.extent_bytes == 0 || of_sinks.extent_bytes >= sinks->ne[0] * (int64_t)sizeof(float));
    if (!inside)
        return declined(message, "a tensor reaches beyond its buffer");
    bindings->sinks = of_sinks.data;
    bindings->bias_head_factor = mask && parameter(node, MAX_BIAS) > 0 ? slopes : NULL;
    return true;
}
