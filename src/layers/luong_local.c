/* SPDX-License-Identifier: MIT
 * Luong's local-p. Its weights are softmax(scores in the window) * Gaussian,
 * not normalised again. The logarithm of the Gaussian enters the engine as a
 * bias; the engine normalises, which a factor for the row undoes:
 *
 *     softmax(s) * g = softmax(s + log g) * sum over keys of softmax(s) * g
 *
 * The factor is exp(lse(s + log g) - lse(s)), too, but each LSE is rounded at
 * the size of the scores, however few of the weights depend on it. */
#include <string.h>

#include "layers/elementwise.h"
#include "layers/luong.h"

static void predict(struct rapt_call *call, const rapt_luong_desc *desc, const rapt_attention_desc *all,
                    float *position) {
    const int64_t tq = all->query_length, units = desc->w_p.out;
    float *x = rapt_call_floats(call, NULL, all->batch, tq, units);
    rapt_call_project(call, &desc->w_p, desc->state, all->batch * tq, x, 0);
    for (int64_t b = 0; tq > 0 && b < all->batch && call->status == RAPT_OK; b++) {
        const int64_t keys = all->kv_lengths.data ? rapt_call_index(all->kv_lengths, b) : all->kv_length;
        rapt_positions(x + b * tq * units, desc->v_p, tq, units, keys, position + b * tq);
    }
}

/* Strides of single sequences and rows may be anything. */
static float *weights_of_row(const rapt_attention_desc *all, int64_t b, int64_t q) {
    char *first = all->weights.data;
    first += b ? b * all->weights.batch_stride_bytes : 0;
    first += q ? q * all->weights.token_stride_bytes : 0;
    return (float *)(void *)first;
}

void rapt_luong_local_p(struct rapt_call *call, const rapt_luong_desc *desc, const rapt_attention_desc *all) {
    const int64_t b = all->batch, tq = all->query_length, tk = all->kv_length, rows = b * tq;
    float *position = rapt_call_floats(call, desc->position, rows, 1, 1);
    float *align = rapt_call_floats(call, desc->align, rows, tk, 1);
    float *gauss = rapt_call_floats(call, NULL, rows, tk, 1);
    unsigned char *mask = (unsigned char *)rapt_call_floats(call, NULL, rows, tk, 1);
    predict(call, desc, all, position);
    if (call->status != RAPT_OK)
        return;
    memset(gauss, 0, (size_t)(rows * tk) * sizeof(float));
    if (all->bias.data)
        memcpy(gauss, all->bias.data, (size_t)(rows * tk) * sizeof(float));
    rapt_gauss_window(position, rows, tk, desc->reach, mask, gauss);

    rapt_attention_desc first = *all, second = *all;
    first.mask = second.mask = rapt_bool_mask(mask, tq * tk, tq * tk, tk);
    first.weights = rapt_output_bhsd(align, b, 1, tq, tk);
    first.weights_kind = RAPT_WEIGHTS_SOFTMAX;
    second.bias = rapt_input_bhsd(gauss, b, 1, tq, tk);
    rapt_call_attend(call, &first);
    rapt_call_attend(call, &second);
    for (int64_t row = 0; row < rows && call->status == RAPT_OK; row++) {
        const double factor = rapt_gauss_share(align + row * tk, position[row], tk, desc->reach);
        rapt_scale(desc->out + row * desc->memory_width, desc->memory_width, factor);
        if (all->weights.data)
            rapt_scale(weights_of_row(all, row / tq, row % tq), tk, factor);
    }
}
