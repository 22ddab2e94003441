/* SPDX-License-Identifier: MIT */
#include "calls/hash_parts.h"

static int64_t listed(rapt_index_list list, int64_t b, int64_t otherwise) {
    if (!list.data)
        return otherwise;
    return list.index_bytes == 4 ? ((const int32_t *)list.data)[b] : ((const int64_t *)list.data)[b];
}

static void advance(rapt_tensor *tensor, int64_t b, int64_t token) {
    if (tensor->data)
        tensor->data = tensor_at(tensor, b, 0, token);
}

static int64_t position_of(const rapt_attention_desc *desc, int64_t b) {
    int64_t first = listed(desc->key_position, b, 0);
    switch (desc->query_origin) {
    case RAPT_ORIGIN_GIVEN:
        return listed(desc->query_position, b, 0);
    case RAPT_ORIGIN_BOTTOM_RIGHT:
        return first + listed(desc->kv_lengths, b, desc->kv_length) - desc->query_length;
    default:
        return first;
    }
}

rapt_attention_desc part_of(const rapt_attention_desc *whole, struct part part, struct part_lists *lists) {
    rapt_attention_desc desc = *whole;
    desc.batch = part.batch;
    desc.query_length = part.queries;
    rapt_tensor *const per_query[] = {&desc.query,     &desc.out, &desc.mask,   &desc.bias,
                                      &desc.keep_mask, &desc.lse, &desc.weights, &desc.initial_state,
                                      &desc.final_state};
    for (size_t i = 0; i < sizeof per_query / sizeof *per_query; i++)
        advance(per_query[i], part.batch_first, part.query_first);
    advance(&desc.key, part.batch_first, 0);
    advance(&desc.value, part.batch_first, 0);
    for (int64_t b = 0; b < part.batch; b++) {
        int64_t from = part.batch_first + b;
        lists->kv_length[b] = listed(whole->kv_lengths, from, whole->kv_length);
        lists->key_position[b] = listed(whole->key_position, from, 0);
        lists->query_position[b] = position_of(whole, from) + part.query_first;
    }
    desc.kv_lengths = (rapt_index_list){.data = lists->kv_length, .index_bytes = 8};
    desc.key_position = (rapt_index_list){.data = lists->key_position, .index_bytes = 8};
    if (desc.query_origin != RAPT_ORIGIN_UNSTATED) {
        desc.query_origin = RAPT_ORIGIN_GIVEN;
        desc.query_position = (rapt_index_list){.data = lists->query_position, .index_bytes = 8};
    }
    return desc;
}
