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

static int64_t keys_of(const rapt_attention_desc *desc, int64_t b) {
    const rapt_index_list *list = &desc->kv_lengths;
    if (!list->data)
        return desc->kv_length;
    const int64_t stride = list->stride_bytes ? list->stride_bytes : list->index_bytes;
    const char *entry = (const char *)list->data + b * stride;
    return list->index_bytes == 4 ? *(const int32_t *)(const void *)entry : *(const int64_t *)(const void *)entry;
}

static void widen(const rapt_attention_desc *desc, const rapt_tensor *from, int64_t dim, float *into) {
    for (int64_t b = 0; b < desc->batch; b++)
        for (int64_t h = 0; h < desc->kv_heads; h++)
            for (int64_t j = 0; j < keys_of(desc, b); j++) {
                const char *row = (const char *)from->data + b * from->batch_stride_bytes +
                                  h * from->head_stride_bytes + j * from->token_stride_bytes;
                for (int64_t d = 0; d < dim; d++)
                    into[((b * desc->kv_heads + h) * desc->kv_length + j) * dim + d] =
                        float_of_half(((const uint16_t *)(const void *)row)[d]);
            }
}

static float *replace(const rapt_attention_desc *desc, rapt_tensor *tensor, int64_t dim) {
    if (tensor->dtype != RAPT_F16 || !tensor->data)
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
