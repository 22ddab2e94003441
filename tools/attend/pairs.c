/* SPDX-License-Identifier: MIT
 * Lengths and positions of a problem's sequences. */
#include "attend/problem.h"

static int64_t list_at(rapt_index_list list, int64_t b) {
    return list.index_bytes == 4 ? ((const int32_t *)list.data)[b] : ((const int64_t *)list.data)[b];
}

int64_t problem_list_at(rapt_index_list list, int64_t i, int64_t otherwise) {
    return list.data ? list_at(list, i) : otherwise;
}

static int64_t lesser(int64_t a, int64_t b) {
    return a < b ? a : b;
}

int64_t problem_query_length(const struct problem *problem, int64_t b) {
    const rapt_attention_desc *desc = &problem->desc;
    return problem_list_at(desc->query_lengths, b, desc->query_length);
}

int64_t problem_kv_length(const struct problem *problem, int64_t b) {
    const rapt_attention_desc *desc = &problem->desc;
    return problem_list_at(desc->kv_lengths, b, desc->kv_length);
}

int64_t problem_query_position(const struct problem *problem, int64_t b) {
    const rapt_attention_desc *desc = &problem->desc;
    if (desc->query_origin == RAPT_ORIGIN_GIVEN) {
        const int64_t first_key = desc->key_position.data ? list_at(desc->key_position, b) : 0;
        int64_t position;
        /* Where it overflows, it is beyond all keys. */
        if (__builtin_sub_overflow(list_at(desc->query_position, b), first_key, &position)) return INT64_MIN / 2;
        return position;
    }
    if (desc->query_origin == RAPT_ORIGIN_BOTTOM_RIGHT)
        return problem_kv_length(problem, b) - problem_query_length(problem, b);
    return 0;
}

static int64_t keys_seen(const rapt_attention_desc *desc, int64_t position, int64_t kv_length) {
    int64_t first = 0, last = kv_length - 1;
    int64_t edge; /* where it overflows, no key lies beyond it */
    if ((desc->features & RAPT_WINDOW) && desc->window_left >= 0 &&
        !__builtin_sub_overflow(position, desc->window_left, &edge) && edge > first) {
        first = edge;
    }
    if ((desc->features & RAPT_WINDOW) && desc->window_right >= 0 &&
        !__builtin_add_overflow(position, desc->window_right, &edge)) {
        last = lesser(last, edge);
    }
    if (desc->features & RAPT_CAUSAL) last = lesser(last, position);
    return last < first ? 0 : last - first + 1;
}

double problem_pairs(const struct problem *problem) {
    const rapt_attention_desc *desc = &problem->desc;
    double pairs = 0;
    for (int64_t b = 0; b < desc->batch; b++) {
        int64_t origin = problem_query_position(problem, b), kv_length = problem_kv_length(problem, b);
        for (int64_t i = 0; i < problem_query_length(problem, b); i++)
            pairs += (double)keys_seen(desc, origin + i, kv_length);
    }
    return pairs * (double)desc->query_heads;
}
