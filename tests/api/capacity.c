/* SPDX-License-Identifier: MIT
 * rapt_workspace_bound against what smaller calls of its kind require. */
#include <string.h>

#include "support/cmocka_all.h"
#include "support/problem.h"

enum { CAPACITIES = 2000, CALLS = 60, MOST_BATCH = 300, MOST_PAGES = 1 << 14, BLOCK_KEYS = 256,
       MOST_MASKS = 1 << 12, STATES = 1 << 28 };

static int64_t one_of(struct random *random, const int64_t *values, int64_t count) {
    return values[random_below(random, count)];
}

static rapt_attention_desc shape(int64_t batch, int64_t query_heads, int64_t kv_heads, int64_t queries, int64_t keys,
                                 int64_t dim, int64_t value_dim) {
    rapt_attention_desc desc = RAPT_ATTENTION_DESC_INIT;
    desc.batch = batch;
    desc.query_heads = query_heads;
    desc.kv_heads = kv_heads;
    desc.query_length = queries;
    desc.kv_length = keys;
    desc.head_dim = dim;
    desc.value_dim = value_dim;
    desc.query = rapt_input_bhsd(NULL, batch, query_heads, queries, dim);
    desc.key = rapt_input_bhsd(NULL, batch, kv_heads, keys, dim);
    desc.value = rapt_input_bhsd(NULL, batch, kv_heads, keys, value_dim);
    desc.out = rapt_output_bhsd(NULL, batch, query_heads, queries, value_dim);
    return desc;
}

/* Orders imply types. */
static void set_types(rapt_attention_desc *desc, int32_t dtype) {
    const int64_t batch = desc->batch, heads = desc->kv_heads, keys = desc->kv_length;
    desc->query = rapt_tensor_bhsd(NULL, dtype, batch, desc->query_heads, desc->query_length, desc->head_dim);
    desc->key = rapt_tensor_bhsd(NULL, dtype, batch, heads, keys, desc->head_dim);
    desc->value = rapt_tensor_bhsd(NULL, dtype, batch, heads, keys, desc->value_dim);
}

/* Sequences share one row of page 0: only page lengths matter, and few entries have to be read. */
static void give_pages(struct random *random, rapt_attention_desc *desc, int side) {
    static const int32_t entries[MOST_PAGES];
    rapt_tensor *tensor = side ? &desc->value : &desc->key;
    rapt_page_table *table = side ? &desc->value_pages : &desc->key_pages;
    const int64_t least = (desc->kv_length * desc->batch + MOST_PAGES - 1) / MOST_PAGES;
    table->kind = RAPT_PAGES_DENSE;
    table->page_tokens = random_between(random, 1, 200);
    if (table->page_tokens < least)
        table->page_tokens = least;
    table->pages = 1;
    table->entries = rapt_int32_list(entries, (desc->kv_length + table->page_tokens - 1) / table->page_tokens);
    *tensor = rapt_tensor_bhsd(NULL, tensor->dtype, 1, desc->kv_heads, table->page_tokens,
                               side ? desc->value_dim : desc->head_dim);
    tensor->page_stride_bytes = tensor->batch_stride_bytes;
    tensor->batch_stride_bytes = 0;
}

static rapt_attention_desc random_capacity(struct random *random, const struct rapt_table *table) {
    static const int64_t dims[] = {1, 8, 64, 80, 96, 128, 192, 256, 512, 1024}, groups[] = {1, 2, 3, 4, 8, 16, 40};
    static const int64_t kv_heads[] = {1, 2, 8, 12, 64, 130}, queries[] = {1, 3, 16, 65, 200, 1000, 1 << 20};
    static const int64_t keys[] = {1, 300, 4096, 33000, 1 << 20}, batches[] = {1, 2, 7, 64, 300};
    const int64_t heads = one_of(random, kv_heads, 6), dim = one_of(random, dims, 10);
    rapt_attention_desc desc =
        shape(one_of(random, batches, 5), heads * one_of(random, groups, 7), heads, one_of(random, queries, 7),
              one_of(random, keys, 5), dim, random_chance(random, 70) ? dim : one_of(random, dims, 10));
    desc.isa = random_chance(random, 40) ? RAPT_ISA_AUTO : table->isa; /* AUTO includes the matrix unit */
    if (random_chance(random, 20)) {
        desc.weights_kind = RAPT_WEIGHTS_RAW;
        desc.weights = rapt_output_bhsd(NULL, desc.batch, desc.query_heads, desc.query_length, desc.kv_length);
    }
    if (random_chance(random, 30))
        desc.query = rapt_tensor_bhsd(NULL, RAPT_F16, desc.batch, desc.query_heads, desc.query_length, dim);
    if (random_chance(random, 30))
        desc.bias = rapt_tensor_bhsd(NULL, random_chance(random, 50) ? RAPT_F16 : RAPT_F32, desc.batch,
                                     desc.query_heads, desc.query_length, desc.kv_length);
    if (random_chance(random, 30))
        desc.key = rapt_tensor_bhsd(NULL, RAPT_F16, desc.batch, heads, desc.kv_length, dim);
    desc.numerics = random_chance(random, 30) ? (int32_t)random_between(random, 2, 3) : RAPT_NUMERICS_DEFAULT;
    if (desc.numerics)
        set_types(&desc, desc.numerics == RAPT_NUMERICS_ORDER_3 ? RAPT_F32
                         : random_chance(random, 50)            ? RAPT_F16
                                                                : RAPT_BF16);
    for (int side = 0; side < 2; side++)
        if (random_chance(random, 25))
            give_pages(random, &desc, side);
    return desc;
}

/* Small numbers as often as large ones. */
static int64_t no_more_than(struct random *random, int64_t most) {
    if (random_chance(random, 30))
        return most;
    int64_t below = most;
    while (below > 1 && random_chance(random, 60))
        below /= 2;
    return random_between(random, 1, below);
}

/* Lengths of sequences that differ a lot: some long, most short, or vice versa. */
static rapt_index_list random_lengths(struct random *random, int64_t *entries, int64_t batch, int64_t most) {
    const int percent = (int)random_below(random, 100);
    for (int64_t b = 0; b < batch; b++)
        entries[b] = random_chance(random, percent) ? most : random_between(random, 0, most < 40 ? most : 40);
    return rapt_int64_list(entries, batch);
}

/* One key block for all queries, or a tree if a few masks suffice. */
static void give_selection(struct random *random, rapt_attention_desc *desc) {
    static const int64_t offsets[2] = {0, 1}, entries[1], masks[MOST_MASKS];
    if (desc->batch * desc->query_length <= MOST_MASKS && random_chance(random, 50)) {
        desc->tree_tokens = 1;
        desc->tree_masks = rapt_int64_list(masks, desc->batch * desc->query_length);
        return;
    }
    desc->key_blocks = (rapt_block_list){.query_tokens = desc->query_length, .key_tokens = 64};
    desc->key_blocks.offsets = rapt_int64_list(offsets, 2);
    desc->key_blocks.entries = rapt_int64_list(entries, 1);
}

static rapt_attention_desc random_smaller(struct random *random, const rapt_attention_desc *largest) {
    rapt_attention_desc desc =
        shape(no_more_than(random, largest->batch), largest->query_heads, largest->kv_heads,
              no_more_than(random, largest->query_length), no_more_than(random, largest->kv_length), largest->head_dim,
              largest->value_dim);
    desc.isa = largest->isa;
    desc.key.extent_bytes = desc.value.extent_bytes = 0;
    desc.weights_kind = largest->weights_kind;
    if (desc.weights_kind != RAPT_WEIGHTS_NONE)
        desc.weights = rapt_output_bhsd(NULL, desc.batch, desc.query_heads, desc.query_length, desc.kv_length);
    const int64_t room = random_chance(random, 50) ? 1024 : desc.head_dim + desc.value_dim;
    if (random_chance(random, 50)) { /* a cache of [tokens, heads, dim], padded or not */
        desc.key = rapt_tensor_bshd(NULL, RAPT_F32, desc.batch, desc.kv_length, desc.kv_heads, room);
        desc.value = desc.key;
    }
    desc.numerics = largest->numerics;
    desc.key.dtype = largest->key.dtype;
    desc.query.dtype = largest->query.dtype;
    if (desc.numerics)
        desc.value.dtype = largest->value.dtype;
    if (largest->bias.dtype)
        desc.bias = rapt_tensor_bhsd(NULL, largest->bias.dtype, desc.batch, desc.query_heads, desc.query_length,
                                     desc.kv_length);
    static int64_t queries[MOST_BATCH], keys[MOST_BATCH];
    if (random_chance(random, 40))
        desc.kv_lengths = random_lengths(random, keys, desc.batch, desc.kv_length);
    if (random_chance(random, 40))
        desc.query_lengths = random_lengths(random, queries, desc.batch, desc.query_length);
    if (random_chance(random, 10))
        give_selection(random, &desc);
    if (largest->key_pages.kind && random_chance(random, 80))
        give_pages(random, &desc, 0);
    if (largest->value_pages.kind && random_chance(random, 80))
        give_pages(random, &desc, 1);
    return desc;
}

static size_t bytes_of(const rapt_attention_desc *desc, int64_t slots) {
    rapt_plan plan;
    rapt_message message;
    size_t bytes = 0;
    if (rapt_plan_init(&plan, desc, &message) != RAPT_OK)
        fail_msg("%s", message.text);
    assert_int_equal(rapt_plan_workspace_bytes(&plan, slots, &bytes), RAPT_OK);
    return bytes;
}

/* Two blocks of keys and values: calls copy them from pages, or if rows evict each other from caches. */
static size_t staged_bytes(const rapt_attention_desc *desc) {
    return (size_t)(2 * BLOCK_KEYS * (desc->head_dim + desc->value_dim)) * sizeof(float);
}

static void test_bound(void **state) {
    const struct rapt_table *tables[RAPT_ISA_COUNT];
    struct random random = {3};
    const int count = machine_tables(tables);
    (void)state;
    for (int i = 0; i < CAPACITIES; i++) {
        const rapt_attention_desc largest = random_capacity(&random, tables[i % count]);
        const int64_t slots = random_between(&random, 1, 64);
        size_t bound = 0;
        rapt_message message;
        if (rapt_workspace_bound(&largest, slots, &bound, &message) != RAPT_OK)
            fail_msg("%s", message.text);
        for (int j = 0; j < CALLS; j++) {
            const rapt_attention_desc desc = j ? random_smaller(&random, &largest) : largest;
            const size_t bytes = bytes_of(&desc, slots);
            if (bytes > bound)
                fail_msg("capacity %d, call %d: batch %lld, %lld queries, %lld keys need %zu bytes, the bound is %zu",
                         i, j,
                         (long long)desc.batch, (long long)desc.query_length, (long long)desc.kv_length, bytes, bound);
        }
        /* Not absurdly more than the largest call, states of split keys and staged rows aside. */
        if (largest.batch * largest.kv_heads >= slots)
            assert_true(bound <= 16 * bytes_of(&largest, slots) + (size_t)slots * staged_bytes(&largest) + STATES);
    }
}

static void expect_bounded(const rapt_attention_desc *largest, const rapt_attention_desc *desc) {
    size_t bound;
    assert_int_equal(rapt_workspace_bound(largest, 1, &bound, NULL), RAPT_OK);
    assert_true(bytes_of(desc, 1) <= bound);
}

/* Keys that begin within a chunk reach into one more, which splits them; without lists of key blocks, tasks may have
 * more rows than with those of the largest call. */
static void test_bound_at_edges(void **state) {
    static const int64_t position = 511, offsets[1001], entries[1];
    rapt_attention_desc desc = shape(1, 4096, 64, 1, 7 * 512 - 1, 64, 64), largest = desc;
    (void)state;
    desc.key_position = rapt_int64_list(&position, 1);
    expect_bounded(&largest, &desc);
    largest = desc = shape(1, 8, 1, 1000, 100, 8, 128);
    desc.key.token_stride_bytes = desc.value.token_stride_bytes = 4096; /* copied, for many rows */
    desc.key.extent_bytes = desc.value.extent_bytes = 0;
    largest.key_blocks = (rapt_block_list){.query_tokens = 1, .key_tokens = 64};
    largest.key_blocks.offsets = rapt_int64_list(offsets, 1001);
    largest.key_blocks.entries = rapt_int64_list(entries, 1);
    expect_bounded(&largest, &desc);
}

static void test_bound_is_refused(void **state) {
    rapt_attention_desc desc = shape(1, 1, 1, 1, 100, 64, 64);
    rapt_message message;
    size_t bytes;
    (void)state;
    assert_int_equal(rapt_workspace_bound(NULL, 1, &bytes, &message), RAPT_NULL_POINTER);
    assert_int_equal(rapt_workspace_bound(&desc, 1, NULL, &message), RAPT_NULL_POINTER);
    assert_int_equal(rapt_workspace_bound(&desc, 0, &bytes, &message), RAPT_INVALID_VALUE);
    assert_int_equal(rapt_workspace_bound(&desc, INT64_MAX, &bytes, &message), RAPT_SIZE_OVERFLOW);
    assert_int_equal(rapt_workspace_bound(&desc, (int64_t)INT32_MAX + 1, &bytes, &message), RAPT_SIZE_OVERFLOW);
    assert_string_equal(message.text, "max_concurrency = 2147483648 is above 2147483647");
    assert_int_equal(rapt_workspace_bound(&desc, INT32_MAX, &bytes, &message), RAPT_OK);
    assert_int_equal(rapt_workspace_bound(&desc, 1, &bytes, NULL), RAPT_OK);
    desc.head_dim = 0;
    assert_int_equal(rapt_workspace_bound(&desc, 1, &bytes, &message), RAPT_INVALID_SHAPE);
}

/* As many tasks as slots: a slot's number is an int32. */
static void test_many_slots(void **state) {
    const int64_t most = INT32_MAX;
    const rapt_attention_desc desc = shape(1 << 20, 1 << 12, 1 << 12, 1, 1, 1, 1);
    rapt_plan plan;
    rapt_message message;
    size_t bytes;
    (void)state;
    if (rapt_plan_init(&plan, &desc, &message) != RAPT_OK)
        fail_msg("%s", message.text);
    assert_true(rapt_task_count(&plan, 0) > most + 1);
    assert_int_equal(rapt_plan_workspace_bytes(&plan, most, &bytes), RAPT_OK);
    assert_int_equal(rapt_plan_workspace_bytes(&plan, most + 1, &bytes), RAPT_SIZE_OVERFLOW);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_bound), cmocka_unit_test(test_bound_at_edges),
                                       cmocka_unit_test(test_bound_is_refused),
                                       cmocka_unit_test(test_many_slots)};
    return cmocka_run_group_tests_name("api_capacity", tests, NULL, NULL);
}
