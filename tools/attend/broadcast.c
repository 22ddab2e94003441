/* SPDX-License-Identifier: MIT */
#include "attend/broadcast.h"

#include <string.h>

#include "common/tool.h"

/* The innermost dimension must be contiguous: a single number for all keys is expanded. */
static void repeat_innermost(struct npy_array *array, int64_t kv_length, size_t item_bytes) {
    int64_t count = tool_product(array->count, kv_length, array->path);
    const char *from = array->data;
    char *to = tool_allocate(count, item_bytes, array->path);
    for (int64_t i = 0; i < count; i++) {
        memcpy(to + (size_t)i * item_bytes, from + (size_t)(i / kv_length) * item_bytes, item_bytes);
    }
    array->data = to;
}

int32_t dtype_of(const struct npy_array *array) {
    switch (array->type) {
    case NPY_BOOL: return RAPT_BOOL8;
    case NPY_FLOAT16: return RAPT_F16;
    case NPY_BFLOAT16: return RAPT_BF16;
    default: return RAPT_F32;
    }
}

void broadcast_check(const struct npy_array *array, const int64_t *shape, int dims, const int64_t *scores,
                     const char *axes) {
    char has[NPY_SHAPE_TEXT], wants[NPY_SHAPE_TEXT];
    for (int i = 0; i < dims; i++) {
        if (array->dims <= dims && (shape[i] == scores[i] || shape[i] == 1)) continue;
        tool_die("%s %s does not broadcast to the scores %s%s", array->path,
                 npy_shape_text(array->dims, array->shape, has), npy_shape_text(dims, scores, wants), axes);
    }
}

rapt_tensor broadcast_to_scores(struct npy_array array, const rapt_attention_desc *desc) {
    const int64_t scores[4] = {desc->batch, desc->query_heads, desc->query_length, desc->kv_length};
    const size_t item_bytes = (size_t)npy_item_bytes(array.type);
    int64_t shape[4] = {1, 1, 1, 1}, strides[4];
    for (int i = 0; i < array.dims && array.dims <= 4; i++) shape[4 - array.dims + i] = array.shape[i];
    broadcast_check(&array, shape, 4, scores, " [batch, heads, queries, keys]");
    if (shape[3] != scores[3]) repeat_innermost(&array, scores[3], item_bytes);
    int64_t stride = tool_product(scores[3], (int64_t)item_bytes, array.path);
    for (int i = 2; i >= 0; i--) {
        strides[i] = shape[i] == 1 ? 0 : stride;
        stride = tool_product(stride, shape[i], array.path);
    }
    return (rapt_tensor){.data = array.data,
                         .dtype = dtype_of(&array),
                         .batch_stride_bytes = strides[0],
                         .head_stride_bytes = strides[1],
                         .token_stride_bytes = strides[2]};
}

rapt_index_list list_of(const struct npy_array *array) {
    return array->type == NPY_INT32 ? rapt_int32_list(array->data, array->count)
                                    : rapt_int64_list(array->data, array->count);
}
