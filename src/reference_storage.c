/* SPDX-License-Identifier: MIT
 * Stored keys and values in float32, number by number. */
#include <math.h>
#include <stdlib.h>

#include "reference.h"

/* IEEE 754-2019, 3.4: binary16 has 5 bits of exponent, biased by 15, and 10 of fraction. */
static float float_of_half(uint16_t half) {
    const int exponent = half >> 10 & 31, fraction = half & 1023;
    const float magnitude = exponent == 31  ? (fraction ? NAN : INFINITY)
                            : exponent == 0 ? ldexpf((float)fraction, -24)
                                            : ldexpf((float)(1024 + fraction), exponent - 25);
    return half & 0x8000 ? -magnitude : magnitude;
}

static int64_t entry(const rapt_index_list *list, int64_t i) {
    const int64_t stride = list->stride_bytes ? list->stride_bytes : list->index_bytes;
    const char *at = (const char *)list->data + i * stride;
    return list->index_bytes == 4 ? *(const int32_t *)(const void *)at : *(const int64_t *)(const void *)at;
}

int64_t rapt_reference_keys(const rapt_attention_desc *desc, int64_t b) {
    if (desc->kv_offsets.data)
        return entry(&desc->kv_offsets, b + 1) - entry(&desc->kv_offsets, b);
    return desc->kv_lengths.data ? entry(&desc->kv_lengths, b) : desc->kv_length;
}

/* Where key or value j of a sequence is stored. */
static const char *row_of(const rapt_attention_desc *desc, const rapt_tensor *tensor, int64_t b, int64_t h, int64_t j) {
    const char *head = (const char *)tensor->data + h * tensor->head_stride_bytes;
    if (desc->kv_offsets.data)
        return head + (entry(&desc->kv_offsets, b) + j) * tensor->token_stride_bytes;
    return head + b * tensor->batch_stride_bytes + j * tensor->token_stride_bytes;
}

static float number(int32_t dtype, const char *row, int64_t d) {
    return dtype == RAPT_F32 ? ((const float *)(const void *)row)[d]
                             : float_of_half(((const uint16_t *)(const void *)row)[d]);
}

static void widen(const rapt_attention_desc *desc, const rapt_tensor *from, int64_t dim, float *into) {
    for (int64_t b = 0; b < desc->batch; b++)
        for (int64_t h = 0; h < desc->kv_heads; h++)
            for (int64_t j = 0; j < rapt_reference_keys(desc, b); j++) {
                const char *row = row_of(desc, from, b, h, j);
                for (int64_t d = 0; d < dim; d++)
                    into[((b * desc->kv_heads + h) * desc->kv_length + j) * dim + d] = number(from->dtype, row, d);
            }
}

static float *replace(const rapt_attention_desc *desc, rapt_tensor *tensor, int64_t dim) {
    if ((tensor->dtype != RAPT_F16 && !desc->kv_offsets.data) || !tensor->data)
        return NULL;
    float *wide = calloc((size_t)(desc->batch * desc->kv_heads * desc->kv_length * dim) + 1, sizeof *wide);
    if (!wide)
        abort();
    widen(desc, tensor, dim, wide);
    *tensor = rapt_input_bhsd(wide, desc->batch, desc->kv_heads, desc->kv_length, dim);
    return wide;
}

struct rapt_reference_copy rapt_reference_widen(rapt_attention_desc *desc) {
    return (struct rapt_reference_copy){
        replace(desc, &desc->key, desc->head_dim),
        replace(desc, &desc->value, desc->value_dim ? desc->value_dim : desc->head_dim)};
}
