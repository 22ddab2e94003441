/* SPDX-License-Identifier: MIT
 * Every input that docs/inputs.md lists about trees and lists of key blocks. */
#include "api/refusals.h"

static void with_packed_queries(rapt_attention_desc *d, const int32_t *offsets, int64_t tokens) {
    d->query_offsets = list32(offsets);
    d->query_tokens = tokens;
    d->query = rapt_input_bshd(d->query.data, 1, tokens, 4, 8);
    d->out = rapt_output_bshd(d->out.data, 1, tokens, 4, 8);
}

static void test_trees(void **state) {
    (void)state;
    static const int32_t masks[6] = {1, -1, 0, 3, 5, 7}, offsets[3] = {0, 2, 5};
    static const int64_t wide[6] = {0};
    REFUSED(RAPT_INVALID_VALUE, "tree_tokens = 65", d->tree_tokens = 65, d->tree_masks = list64(wide));
    REFUSED(RAPT_INVALID_VALUE, "tree_tokens = -1", d->tree_tokens = -1);
    REFUSED(RAPT_INVALID_VALUE, "tree_tokens = 33, but tree_masks.index_bytes = 4", d->tree_tokens = 33,
            d->tree_masks = list32(masks));
    REFUSED(RAPT_UNUSED_FIELD, "tree_masks is set, but tree_tokens = 0", d->tree_masks = list32(masks));
    REFUSED(RAPT_NULL_POINTER, "tree_masks.data is NULL, but tree_tokens = 3", d->tree_tokens = 3);
    REFUSED(RAPT_OUT_OF_EXTENT, "tree_masks.count = 5, but 6 entries are read", d->tree_tokens = 3,
            d->tree_masks = rapt_int32_list(masks, 5));
    LEGAL(with_packed_queries(d, offsets, 5), d->tree_tokens = 3, d->tree_masks = rapt_int32_list(masks, 5));
    REFUSED(RAPT_OUT_OF_EXTENT, "tree_masks.count = 6, but 7 entries are read", with_packed_queries(d, offsets, 7),
            d->tree_tokens = 3, d->tree_masks = rapt_int32_list(masks, 6));
    REFUSED(RAPT_INVALID_VALUE, "tree_masks.index_bytes = 1", d->tree_tokens = 3, d->tree_masks = list32(masks),
            d->tree_masks.index_bytes = 1);
    REFUSED(RAPT_MISALIGNED_POINTER, "tree_masks", d->tree_tokens = 3,
            d->tree_masks = list64((const char *)wide + 4));
    REFUSED(RAPT_OVERLAPPING_OUTPUT, "out overlaps tree_masks", d->tree_tokens = 3, d->tree_masks = list32(zeros),
            d->out.data = (void *)(uintptr_t)zeros);
    END_OF_ROWS;
}

/* One list for all queries, sequences and heads, of blocks of 2 keys: there are 3. */
static void with_blocks(rapt_attention_desc *d, const int32_t *offsets, const int32_t *entries, int64_t count) {
    d->key_blocks.query_tokens = 3;
    d->key_blocks.key_tokens = 2;
    d->key_blocks.offsets = list32(offsets);
    d->key_blocks.entries = rapt_int32_list(entries, count);
}

static void test_key_blocks(void **state) {
    (void)state;
    static const int32_t all[2] = {0, 3}, back[2] = {2, 1}, low[2] = {-1, 1}, many[2] = {0, 4}, none[2] = {0};
    static const int32_t entries[3] = {0, 1, 2}, high[3] = {0, 1, 3}, negative[3] = {-1, 1, 2}, twice[3] = {0, 1, 1};
    static const int32_t lists[9] = {0, 0, 0, 0, 0, 0, 0, 0, 4};
    const int64_t far = INT64_MAX / 2;
    static const int64_t far_apart[3] = {7, INT64_C(1) << 30, INT64_C(1) << 38};
    LEGAL(with_blocks(d, all, entries, 3));
    /* Instantly: keys that no list names take no time. */
    LEGAL(with_blocks(d, all, entries, 3), d->key_blocks.entries = rapt_int64_list(far_apart, 3),
          d->kv_length = INT64_C(1) << 40, d->key.token_stride_bytes = d->value.token_stride_bytes = 0);
    LEGAL_PLAN(d->key_blocks = (rapt_block_list){.query_tokens = 1, .key_tokens = 1, .batch_stride = 1},
               d->batch = INT64_C(1) << 40, d->query_length = 0, d->key = d->value = d->query);
    REFUSED(RAPT_UNUSED_FIELD, "key_blocks is set", d->key_blocks.key_tokens = 64);
    REFUSED(RAPT_UNUSED_FIELD, "key_blocks is set", d->key_blocks.offsets = list32(all));
    REFUSED(RAPT_INVALID_SHAPE, "key_blocks.query_tokens = -3", with_blocks(d, all, entries, 3),
            d->key_blocks.query_tokens = -3);
    /* Instantly, not after a look at each sequence. */
    REFUSED(RAPT_INVALID_SHAPE, "key_blocks.query_tokens = -3", with_blocks(d, all, entries, 3),
            d->key_blocks.query_tokens = -3, d->key_blocks.batch_stride = 1, d->batch = INT64_C(1) << 40,
            d->query.batch_stride_bytes = d->key.batch_stride_bytes = d->value.batch_stride_bytes = 0,
            d->query.extent_bytes = d->key.extent_bytes = d->value.extent_bytes = d->out.extent_bytes = 0);
    REFUSED(RAPT_INVALID_SHAPE, "key_blocks.key_tokens = 0", with_blocks(d, all, entries, 3),
            d->key_blocks.key_tokens = 0);
    REFUSED(RAPT_INVALID_STRIDE, "key_blocks.batch_stride = -1", with_blocks(d, all, entries, 3),
            d->key_blocks.batch_stride = -1);
    REFUSED(RAPT_INVALID_STRIDE, "head_stride = -2", with_blocks(d, all, entries, 3), d->key_blocks.head_stride = -2);
    REFUSED(RAPT_SIZE_OVERFLOW, "key_blocks.batch_stride", with_blocks(d, all, entries, 3),
            d->key_blocks.batch_stride = d->key_blocks.head_stride = INT64_MAX);
    REFUSED(RAPT_UNUSED_FIELD, "key_blocks.reserved[1] = 5", with_blocks(d, all, entries, 3),
            d->key_blocks.reserved[1] = 5);
    REFUSED(RAPT_NULL_POINTER, "key_blocks.offsets.data is NULL", with_blocks(d, all, entries, 3),
            d->key_blocks.offsets = (rapt_index_list){0});
    REFUSED(RAPT_OUT_OF_EXTENT, "key_blocks.offsets.count = 1", with_blocks(d, all, entries, 3),
            d->key_blocks.offsets.count = 1);
    REFUSED(RAPT_INVALID_SHAPE, "key_blocks.offsets", with_blocks(d, all, entries, 3),
            d->key_blocks.batch_stride = far);
    REFUSED(RAPT_INVALID_VALUE, "key_blocks.offsets[0] = 2, and the next one is 1", with_blocks(d, back, entries, 3));
    REFUSED(RAPT_INVALID_VALUE, "key_blocks.offsets[0] = -1", with_blocks(d, low, entries, 3));
    REFUSED(RAPT_OUT_OF_EXTENT, "key_blocks.offsets[1] = 4, but entries.count = 3", with_blocks(d, many, entries, 3));
    REFUSED(RAPT_OUT_OF_EXTENT, "key_blocks.offsets[1] = 3, but entries.count = 0", with_blocks(d, all, NULL, 0),
            d->key_blocks.entries = (rapt_index_list){0});
    REFUSED(RAPT_OUT_OF_EXTENT, "key_blocks.offsets[8] = 4, but entries.count = 3", with_blocks(d, lists, entries, 3),
            d->key_blocks.batch_stride = 4, d->key_blocks.head_stride = 3);
    REFUSED(RAPT_OUT_OF_EXTENT, "key_blocks.entries.count = -1 is negative", with_blocks(d, all, entries, -1));
    REFUSED(RAPT_UNUSED_FIELD, "key_blocks.entries.data is NULL", with_blocks(d, all, NULL, 3));
    REFUSED(RAPT_INVALID_VALUE, "key_blocks.entries[2] = 3 is outside 0 ... 2", with_blocks(d, all, high, 3));
    REFUSED(RAPT_INVALID_VALUE, "key_blocks.entries[0] = -1", with_blocks(d, all, negative, 3));
    REFUSED(RAPT_INVALID_VALUE, "key_blocks.entries[2] = 1 does not follow 1", with_blocks(d, all, twice, 3));
    REFUSED(RAPT_OVERLAPPING_OUTPUT, "out overlaps key_blocks.entries",
            with_blocks(d, none, (const int32_t *)(const void *)zeros, 1), d->out.data = (void *)(uintptr_t)zeros);
    END_OF_ROWS;
}

/* Without data, as many sequences and heads as there is memory for numbers of their lists. */
static void with_strides(rapt_attention_desc *d, int64_t batch, int64_t heads, int64_t batch_stride,
                         int64_t head_stride) {
    d->batch = batch, d->query_heads = d->kv_heads = heads;
    d->query = rapt_input_bhsd(NULL, batch, heads, d->query_length, d->head_dim);
    d->key = d->value = rapt_input_bhsd(NULL, batch, heads, d->kv_length, d->head_dim);
    d->out = rapt_output_bhsd(NULL, batch, heads, d->query_length, d->head_dim);
    d->key_blocks.batch_stride = batch_stride, d->key_blocks.head_stride = head_stride;
}

enum { BATCH = 4, HEADS = 5, MOST_STRIDE = 7, MOST_LISTS = 64 };

static bool is_reached(int64_t n, int64_t batch_stride, int64_t head_stride, int64_t blocks) {
    for (int64_t b = 0; b < BATCH; b++)
        for (int64_t h = 0; h < HEADS; h++)
            if (n >= b * batch_stride + h * head_stride && n < b * batch_stride + h * head_stride + blocks)
                return true;
    return false;
}

/* List n alone is wrong: it is refused where a sequence and a head have it, whoever else has. */
static void expect_reached(int64_t batch_stride, int64_t head_stride, int32_t query_tokens) {
    static const int32_t entries[1] = {0};
    const int64_t blocks = (3 + query_tokens - 1) / query_tokens;
    int32_t offsets[MOST_LISTS + 1];
    for (int n = 0; n < MOST_LISTS; n++) {
        for (int i = 0; i <= MOST_LISTS; i++)
            offsets[i] = i <= n;
        rapt_attention_desc *d = fresh();
        with_blocks(d, offsets, entries, 1);
        with_strides(d, BATCH, HEADS, batch_stride, head_stride);
        d->key_blocks.query_tokens = query_tokens;
        rapt_plan plan;
        const rapt_status status = rapt_plan_init(&plan, d, NULL);
        assert_int_equal(status, is_reached(n, batch_stride, head_stride, blocks) ? RAPT_INVALID_VALUE : RAPT_OK);
    }
}

static void test_lists_that_are_shared(void **state) {
    enum { MANY = 1 << 19 };
    static const int32_t none[4 * MANY];
    static const int64_t strides[][2] = {{1, 1}, {2, 2}, {1, 2}, {2, 1}};
    (void)state;
    for (int64_t batch_stride = 0; batch_stride <= MOST_STRIDE; batch_stride++)
        for (int64_t head_stride = 0; head_stride <= MOST_STRIDE; head_stride++)
            for (int32_t query_tokens = 1; query_tokens <= 3; query_tokens++)
                expect_reached(batch_stride, head_stride, query_tokens);
    /* At once: not a look at each of 2^38 pairs. */
    for (size_t i = 0; i < sizeof strides / sizeof *strides; i++)
        LEGAL_PLAN(with_blocks(d, none, NULL, 0), d->key_blocks.entries = (rapt_index_list){0},
                   with_strides(d, MANY, MANY, strides[i][0], strides[i][1]));
    END_OF_ROWS;
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_trees), cmocka_unit_test(test_key_blocks),
                                       cmocka_unit_test(test_lists_that_are_shared)};
    return cmocka_run_group_tests_name("refusals_select", tests, NULL, NULL);
}
