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
        /* On overflow, it is beyond all keys. */
        if (__builtin_sub_overflow(list_at(desc->query_position, b), first_key, &position)) return INT64_MIN / 2;
        return position;
    }
    if (desc->query_origin == RAPT_ORIGIN_BOTTOM_RIGHT)
        return problem_kv_length(problem, b) - problem_query_length(problem, b);
    return 0;
}

struct range {
    int64_t first, last;
};

static int64_t length_of(struct range range) {
    return range.last < range.first ? 0 : range.last - range.first + 1;
}

static struct range keys_seen(const rapt_attention_desc *desc, int64_t position, int64_t kv_length) {
    struct range seen = {0, kv_length - 1};
    int64_t edge; /* on overflow, no key lies beyond it */
    if ((desc->features & RAPT_WINDOW) && desc->window_left >= 0 &&
        !__builtin_sub_overflow(position, desc->window_left, &edge) && edge > seen.first) {
        seen.first = edge;
    }
    if ((desc->features & RAPT_WINDOW) && desc->window_right >= 0 &&
        !__builtin_add_overflow(position, desc->window_right, &edge)) {
        seen.last = lesser(seen.last, edge);
    }
    if (desc->features & RAPT_CAUSAL) seen.last = lesser(seen.last, position);
    return seen;
}

/* The visible keys that are in a list's blocks. */
static int64_t keys_listed(const rapt_block_list *blocks, int64_t list, struct range seen) {
    int64_t count = 0;
    if (length_of(seen) == 0) return 0;
    for (int64_t n = list_at(blocks->offsets, list); n < list_at(blocks->offsets, list + 1); n++) {
        struct range block = {list_at(blocks->entries, n) * blocks->key_tokens, seen.last};
        if (block.first <= seen.last - blocks->key_tokens) block.last = block.first + blocks->key_tokens - 1;
        if (block.first < seen.first) block.first = seen.first;
        count += length_of(block);
    }
    return count;
}

/* Pairs of query i of sequence b and its visible keys, over all heads. */
static double pairs_of_query(const rapt_attention_desc *desc, int64_t b, int64_t i, struct range seen) {
    const rapt_block_list *blocks = &desc->key_blocks;
    if (blocks->query_tokens == 0) return (double)length_of(seen) * (double)desc->query_heads;
    const int64_t group = desc->query_heads / desc->kv_heads;
    double pairs = 0;
    for (int64_t h = 0; h < desc->kv_heads; h++) {
        const int64_t list = b * blocks->batch_stride + h * blocks->head_stride + i / blocks->query_tokens;
        pairs += (double)keys_listed(blocks, list, seen);
    }
    return pairs * (double)group;
}

double problem_pairs(const struct problem *problem) {
    const rapt_attention_desc *desc = &problem->desc;
    double pairs = 0;
    for (int64_t b = 0; b < desc->batch; b++) {
        int64_t origin = problem_query_position(problem, b), kv_length = problem_kv_length(problem, b);
        for (int64_t i = 0; i < problem_query_length(problem, b); i++)
            pairs += pairs_of_query(desc, b, i, keys_seen(desc, origin + i, kv_length));
    }
    return pairs;
}
