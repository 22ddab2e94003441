/* SPDX-License-Identifier: MIT
 * Where rows lie: of key and value for a run of positions, of any tensor for a
 * batch, head and token. */
#ifndef RAPT_KV_H
#define RAPT_KV_H

#include "mask.h"

static inline const char *rapt_row(const rapt_tensor *tensor, int64_t batch, int64_t head, int64_t token) {
    return (const char *)tensor->data + batch * tensor->batch_stride_bytes + head * tensor->head_stride_bytes +
           token * tensor->token_stride_bytes;
}

/* Keys that follow each other at one stride, beginning at a position. */
struct rapt_kv_run {
    const char *key, *value;
    int64_t key_stride_bytes, value_stride_bytes;
    int64_t count;
};

/* Adds the first count values of a run to what is to be fetched. */
static inline void rapt_list_values(const struct rapt_kv_run *run, int64_t count, int row_bytes,
                                    struct rapt_fetch_list *list) {
    for (int64_t i = 0; i < count; i++)
        rapt_list_row(list, run->value + i * run->value_stride_bytes, row_bytes);
}

/* The longest run within positions, which lie within the sequence. */
static inline struct rapt_kv_run rapt_kv_locate(const rapt_attention_desc *desc, const struct rapt_sequence *sequence,
                                                int64_t batch, int64_t kv_head, struct rapt_span positions) {
    int64_t token = positions.begin - sequence->key_position;
    struct rapt_kv_run run = {rapt_row(&desc->key, batch, kv_head, token),
                              rapt_row(&desc->value, batch, kv_head, token), desc->key.token_stride_bytes,
                              desc->value.token_stride_bytes, positions.end - positions.begin};
    return run;
}

#endif
