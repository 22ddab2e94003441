/* SPDX-License-Identifier: MIT
 * Merging states in scalar C, row by row: the section "States" of docs/numerics.md. */
#include "reference/order2.h"

enum { MOST_DIM = 1024 };

static float *row_of(const rapt_tensor *tensor, int64_t b, int64_t h, int64_t i) {
    return (float *)(void *)((char *)tensor->data + b * tensor->batch_stride_bytes + h * tensor->head_stride_bytes +
                             i * tensor->token_stride_bytes);
}

static void load(bool is_order2, struct rapt_reference_state *into, const float *row, int64_t value_dim) {
    (is_order2 ? rapt_order2_load_state : rapt_reference_load_state)(into, row, value_dim);
}

static void merge_row(const rapt_states_desc *desc, int64_t b, int64_t h, int64_t i) {
    float o_row[MOST_DIM], o_next[MOST_DIM], out[MOST_DIM];
    const bool is_order2 = desc->numerics == RAPT_NUMERICS_ORDER_2;
    struct rapt_reference_state row = {0, 0, o_row}, next = {0, 0, o_next};
    load(is_order2, &row, row_of(&desc->states[0], b, h, i), desc->value_dim);
    for (int64_t s = 1; s < desc->count; s++) {
        load(is_order2, &next, row_of(&desc->states[s], b, h, i), desc->value_dim);
        (is_order2 ? rapt_order2_fold : rapt_reference_fold)(&row, &next, desc->value_dim);
    }
    if (desc->merged.data) {
        rapt_reference_store_state(&row, row_of(&desc->merged, b, h, i), desc->value_dim);
    }
    if (desc->lse.data) {
        *row_of(&desc->lse, b, h, i) = rapt_reference_lse(row.m, row.l);
    }
    if (desc->sinks) {
        float sink_log2e = desc->sinks[h] * 0x1.715476p+0f;
        (is_order2 ? rapt_order2_sink : rapt_reference_sink)(&row, sink_log2e, desc->value_dim);
    }
    rapt_reference_finish(&row, out, desc->value_dim);
    if (desc->out.data) {
        rapt_reference_store(desc->out.dtype, out, desc->value_dim, (char *)row_of(&desc->out, b, h, i));
    }
}

static int64_t queries_of(const rapt_states_desc *desc, int64_t b) {
    const rapt_index_list list = desc->query_lengths;
    if (list.data == NULL) {
        return desc->query_length;
    }
    const char *at = (const char *)list.data + b * (list.stride_bytes ? list.stride_bytes : list.index_bytes);
    return list.index_bytes == 4 ? *(const int32_t *)(const void *)at : *(const int64_t *)(const void *)at;
}

void rapt_reference_merge_states(const rapt_states_desc *desc) {
    for (int64_t b = 0; b < desc->batch; b++) {
        for (int64_t h = 0; h < desc->query_heads; h++) {
            for (int64_t i = 0; i < queries_of(desc, b); i++) {
                merge_row(desc, b, h, i);
            }
        }
    }
}
