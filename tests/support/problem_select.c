/* SPDX-License-Identifier: MIT
 * Trees and lists of key blocks, and the sizes of lists. */
#include "support/problem_data.h"

enum { TREES_SEQUENCE = 200, BLOCKS_SEQUENCE = 201, FIRST_LIST_SEQUENCE = 300 };

static struct random sequence(const struct problem_call *call, int64_t number) {
    return (struct random){call->seed * 1000003u + (uint64_t)number * 7919u};
}

static int64_t blocks_in(int64_t tokens, int64_t of_block) {
    return of_block > 0 ? (tokens + of_block - 1) / of_block : 0;
}

int64_t drawn_tree_tokens(const struct problem_call *call) {
    struct random random = sequence(call, TREES_SEQUENCE);
    const int64_t tokens = random_chance(&random, 50) ? random_between(&random, 1, 64) : random_between(&random, 1, 32);
    return call->use & USE_TREE ? tokens : 0;
}

rapt_block_list drawn_blocks(const struct problem_call *call) {
    static const int64_t sizes[] = {1, 2, 7, 64, 100, 128, 256, 300, 100000};
    struct random random = sequence(call, BLOCKS_SEQUENCE);
    rapt_block_list blocks = {0};
    if (!(call->use & USE_BLOCKS))
        return blocks;
    blocks.query_tokens = sizes[random_below(&random, 9)];
    blocks.key_tokens = sizes[random_below(&random, 9)];
    const int64_t of_head = blocks_in(call->query_length, blocks.query_tokens);
    blocks.head_stride = random_chance(&random, 30) ? 0 : of_head;
    blocks.batch_stride = random_chance(&random, 30) ? 0 : of_head * call->kv_heads;
    return blocks;
}

static int64_t list_count(const struct problem_call *call, const rapt_block_list *blocks) {
    if (call->batch == 0 || call->query_length == 0)
        return 0;
    return (call->batch - 1) * blocks->batch_stride + (call->kv_heads - 1) * blocks->head_stride +
           blocks_in(call->query_length, blocks->query_tokens);
}

/* Lists differ in density: none, few, half, all. */
static bool list_has(const struct problem_call *call, int64_t list, int64_t block) {
    static const int percent[] = {0, 10, 10, 30, 50, 100};
    struct random of_list = sequence(call, FIRST_LIST_SEQUENCE + list);
    const int chance = percent[random_below(&of_list, 6)];
    of_list.state += (uint64_t)block * 0x9e3779b97f4a7c15u;
    return random_chance(&of_list, chance);
}

/* Entries of earlier lists. */
static int64_t entries_before(const struct problem_call *call, int64_t list) {
    const rapt_block_list blocks = drawn_blocks(call);
    int64_t count = 0;
    for (int64_t n = 0; n < list; n++)
        for (int64_t block = 0; block < blocks_in(call->kv_length, blocks.key_tokens); block++)
            count += list_has(call, n, block);
    return count;
}

int64_t count_indices(const struct problem_call *call, enum array_name name) {
    const rapt_block_list blocks = drawn_blocks(call);
    const int64_t lists = blocks.query_tokens ? list_count(call, &blocks) : 0;
    return name == ARRAY_TREE_MASKS      ? call->batch * call->query_length
           : name == ARRAY_BLOCK_OFFSETS ? (lists ? lists + 1 : 0)
           : name == ARRAY_BLOCK_ENTRIES ? entries_before(call, lists)
                                         : call->batch;
}

void draw_selection(const struct problem_array *array, const struct problem_call *call, enum array_name name,
                           struct random *random) {
    const rapt_block_list blocks = drawn_blocks(call);
    int64_t at = 0;
    for (int64_t i = 0; name == ARRAY_TREE_MASKS && i < array->count[3]; i++)
        set_index(array, i, (int64_t)(random_bits(random) | (random_chance(random, 20) ? UINT64_MAX : 0)));
    for (int64_t list = 0; name == ARRAY_BLOCK_OFFSETS && list < array->count[3]; list++) {
        set_index(array, list, at);
        for (int64_t block = 0; block < blocks_in(call->kv_length, blocks.key_tokens); block++)
            at += list_has(call, list, block);
    }
    for (int64_t list = 0; name == ARRAY_BLOCK_ENTRIES && list < list_count(call, &blocks); list++)
        for (int64_t block = 0; block < blocks_in(call->kv_length, blocks.key_tokens); block++)
            if (list_has(call, list, block))
                set_index(array, at++, block);
}
