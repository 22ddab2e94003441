/* SPDX-License-Identifier: MIT
 * Luong's local-p. Its weights are softmax(scores in the window) * Gaussian,
 * not normalised again. The logarithm of the Gaussian enters the engine as a
 * bias; the engine normalises, which the difference of the two LSEs, with and
 * without the Gaussian, undoes:
 *
 *     softmax(s) * g = softmax(s + log g) * exp(lse(s + log g) - lse(s))
 */
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

void rapt_luong_local_p(struct rapt_call *call, const rapt_luong_desc *desc, const rapt_attention_desc *all) {
    const int64_t b = all->batch, tq = all->query_length, tk = all->kv_length, rows = b * tq;
    float *position = rapt_call_floats(call, desc->position, rows, 1, 1);
    float *plain = rapt_call_floats(call, NULL, rows, 1, 1), *with_gauss = rapt_call_floats(call, NULL, rows, 1, 1);
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
    first.lse = rapt_output_bhsd(plain, b, 1, tq, 1);
    first.weights = desc->align ? rapt_output_bhsd(desc->align, b, 1, tq, tk) : (rapt_tensor){0};
    first.weights_kind = desc->align ? RAPT_WEIGHTS_SOFTMAX : RAPT_WEIGHTS_NONE;
    second.bias = rapt_input_bhsd(gauss, b, 1, tq, tk);
    second.lse = rapt_output_bhsd(with_gauss, b, 1, tq, 1);
    rapt_call_attend(call, &first);
    rapt_call_attend(call, &second);
    for (int64_t i = 0; tq > 0 && i < b && call->status == RAPT_OK; i++) {
        const float *to = with_gauss + i * tq, *from = plain + i * tq;
        rapt_scale_rows(desc->out + i * tq * desc->memory_width, desc->memory_width, to, from, tq, desc->memory_width);
        if (all->weights.data)
            rapt_scale_rows((float *)(void *)((char *)all->weights.data + i * all->weights.batch_stride_bytes),
                            all->weights.token_stride_bytes / (int64_t)sizeof(float), to, from, tq, tk);
    }
}
