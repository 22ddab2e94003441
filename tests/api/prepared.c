/* SPDX-License-Identifier: MIT
 * Tasks run only in a workspace prepared for their plan: not in arbitrary bytes, not in another plan's, not in one
 * whose preparation failed after an earlier one succeeded. */
#include "support/cmocka_all.h"
#include "support/small.h"

enum { QUERIES = 3, KEYS = 700 };

struct prepared {
    struct small call;
    int32_t lengths[BATCH];
    rapt_plan plan;
    size_t bytes;
    char *workspace;
};

static void plan_call(struct prepared *p, int64_t keys) {
    p->call = small_new(QUERIES, keys);
    for (int b = 0; b < BATCH; b++)
        p->lengths[b] = (int32_t)keys - 100 * b;
    p->call.desc.kv_lengths.data = p->lengths;
    p->call.desc.kv_lengths.index_bytes = 4;
    assert_int_equal(rapt_plan_init(&p->plan, &p->call.desc, NULL), RAPT_OK);
    assert_int_equal(rapt_plan_workspace_bytes(&p->plan, 2, &p->bytes), RAPT_OK);
    p->workspace = test_alloc(p->bytes);
}

static void expect_refused(const struct prepared *p, char *workspace, const char *what) {
    const int64_t count = BATCH * HEADS * QUERIES * DIM;
    for (int64_t task = 0; task < rapt_task_count(&p->plan, 0); task++)
        if (rapt_run_task(&p->plan, workspace, 0, task) == RAPT_OK)
            fail_msg("task %lld runs in %s", (long long)task, what);
    for (int64_t i = 0; i < count; i++)
        assert_int_equal(bits_of(p->call.out[i]), UINT32_MAX);
}

static void test_any_bytes(void **state) {
    static const int fills[] = {0, 0xff, 0x5a};
    struct prepared p;
    plan_call(&p, KEYS);
    for (int i = 0; i < 3; i++) {
        memset(p.workspace, fills[i], p.bytes);
        expect_refused(&p, p.workspace, "a workspace that was not prepared");
    }
    test_free_all();
    (void)state;
}

static void test_other_plan(void **state) {
    struct prepared p, other;
    plan_call(&p, KEYS);
    plan_call(&other, 5 * KEYS);
    assert_int_equal(rapt_prepare(&other.plan, other.workspace, other.bytes), RAPT_OK);
    expect_refused(&p, other.workspace, "another plan's workspace");
    test_free_all();
    (void)state;
}

static void test_failed_preparation(void **state) {
    static const int32_t illegal[] = {KEYS + 1, -1, INT32_MAX, INT32_MIN};
    struct prepared p;
    plan_call(&p, KEYS);
    for (int i = 0; i < 4; i++) {
        assert_int_equal(rapt_prepare(&p.plan, p.workspace, p.bytes), RAPT_OK);
        const int32_t before = p.lengths[1];
        p.lengths[1] = illegal[i];
        assert_int_equal(rapt_prepare(&p.plan, p.workspace, p.bytes), RAPT_INVALID_VALUE);
        expect_refused(&p, p.workspace, "a workspace whose preparation failed");
        p.lengths[1] = before;
    }
    assert_int_equal(rapt_prepare(&p.plan, p.workspace, p.bytes), RAPT_OK);
    assert_int_equal(rapt_run_task(&p.plan, p.workspace, 0, 0), RAPT_OK);
    test_free_all();
    (void)state;
}

/* As many tasks, but more rows or chunks of keys than the workspace has room for. */
static void test_longer_sequences(void **state) {
    static float numbers[1 << 20];
    (void)state;
    for (int side = 0; side < 2; side++) {
        rapt_attention_desc d = RAPT_ATTENTION_DESC_INIT;
        int32_t length = side ? 4500 : 1;
        rapt_plan plan;
        size_t bytes;
        d.batch = d.query_heads = d.kv_heads = 1, d.query_length = 3, d.kv_length = 8192, d.head_dim = 8;
        d.query = rapt_input_bhsd(numbers, 1, 1, 3, 8);
        d.key = d.value = rapt_input_bhsd(numbers, 1, 1, 8192, 8);
        d.out = rapt_output_bhsd(numbers + 100000, 1, 1, 3, 8);
        *(side ? &d.kv_lengths : &d.query_lengths) = rapt_int32_list(&length, 1);
        assert_int_equal(rapt_plan_init(&plan, &d, NULL), RAPT_OK);
        assert_int_equal(rapt_plan_workspace_bytes(&plan, 1, &bytes), RAPT_OK);
        char *workspace = test_alloc(bytes);
        assert_int_equal(rapt_prepare(&plan, workspace, bytes), RAPT_OK);
        length += side ? 256 : 1;
        assert_int_equal(rapt_prepare(&plan, workspace, bytes), RAPT_INVALID_VALUE);
    }
    test_free_all();
}

/* As many tasks as 7 splits and 1: twice 4, of which the second sequence's would not be merged. */
static void test_more_merges(void **state) {
    enum { CHUNK = 512, MOST = 28 * CHUNK };
    static float numbers[2 * MOST * 8 + 64];
    static char workspace[1 << 20];
    int32_t lengths[2] = {MOST, CHUNK};
    rapt_attention_desc d = RAPT_ATTENTION_DESC_INIT;
    rapt_plan plan;
    (void)state;
    d.batch = 2, d.query_heads = d.kv_heads = d.query_length = 1, d.kv_length = MOST, d.head_dim = 8;
    d.query = rapt_input_bhsd(numbers, 2, 1, 1, 8);
    d.key = d.value = rapt_input_bhsd(numbers, 2, 1, MOST, 8);
    d.out = rapt_output_bhsd(numbers + 2 * MOST * 8, 2, 1, 1, 8), d.kv_lengths = rapt_int32_list(lengths, 2);
    assert_int_equal(rapt_plan_init(&plan, &d, NULL), RAPT_OK);
    assert_true(rapt_task_count(&plan, 0) == 8 && rapt_task_count(&plan, 1) == 1);
    assert_int_equal(rapt_prepare(&plan, workspace, sizeof workspace), RAPT_OK);
    lengths[0] = lengths[1] = 13 * CHUNK;
    assert_int_equal(rapt_prepare(&plan, workspace, sizeof workspace), RAPT_INVALID_VALUE);
}

/* The same tasks with a mask require room for the keys that it leaves. */
static void test_more_scratch(void **state) {
    static const unsigned char mask[KEYS];
    struct prepared p, masked;
    (void)state;
    plan_call(&p, KEYS);
    plan_call(&masked, KEYS);
    masked.call.desc.mask = (rapt_tensor){.data = (void *)(uintptr_t)mask, .dtype = RAPT_BOOL8};
    assert_int_equal(rapt_plan_init(&masked.plan, &masked.call.desc, NULL), RAPT_OK);
    assert_int_equal(rapt_prepare(&p.plan, p.workspace, p.bytes), RAPT_OK);
    expect_refused(&masked, p.workspace, "a workspace without room for masks");
    test_free_all();
}

static void test_more_queries(void **state) {
    enum { MOST = 40 };
    static float numbers[1 << 16];
    (void)state;
    for (int64_t before = 1; before < MOST; before++)
        for (int64_t after = before + 1; after <= MOST; after++) {
            rapt_attention_desc d = RAPT_ATTENTION_DESC_INIT;
            int64_t length = before;
            rapt_plan plan;
            size_t bytes;
            d.batch = d.query_heads = d.kv_heads = 1, d.query_length = MOST, d.kv_length = 64, d.head_dim = 8;
            d.query = rapt_input_bhsd(numbers, 1, 1, MOST, 8);
            d.key = d.value = rapt_input_bhsd(numbers, 1, 1, 64, 8);
            d.out = rapt_output_bhsd(numbers + 10000, 1, 1, MOST, 8);
            d.query_lengths = rapt_int64_list(&length, 1);
            assert_int_equal(rapt_plan_init(&plan, &d, NULL), RAPT_OK);
            assert_int_equal(rapt_plan_workspace_bytes(&plan, 1, &bytes), RAPT_OK);
            char *workspace = test_alloc(bytes);
            assert_int_equal(rapt_prepare(&plan, workspace, bytes), RAPT_OK);
            length = after;
            if (rapt_prepare(&plan, workspace, bytes) != RAPT_INVALID_VALUE)
                fail_msg("from %lld to %lld queries", (long long)before, (long long)after);
            test_free_all();
        }
}

/* Packed sequences moved before the first token, with valid lengths. */
static void test_moved_offsets(void **state) {
    static float numbers[4096];
    (void)state;
    for (int side = 0; side < 2; side++) {
        rapt_attention_desc d = RAPT_ATTENTION_DESC_INIT;
        int64_t offsets[2] = {0, 3};
        rapt_plan plan;
        static char workspace[1 << 20];
        d.batch = d.query_heads = d.kv_heads = 1, d.query_length = d.kv_length = 3, d.head_dim = 8;
        d.query = d.key = d.value = rapt_input_bshd(numbers, 1, 6, 1, 8);
        d.query.extent_bytes = d.key.extent_bytes = d.value.extent_bytes = 0;
        d.out = rapt_output_bshd(numbers + 1000, 1, 6, 1, 8);
        if (side)
            d.kv_offsets = rapt_int64_list(offsets, 2), d.kv_tokens = 6;
        else
            d.query_offsets = rapt_int64_list(offsets, 2), d.query_tokens = 6;
        assert_int_equal(rapt_plan_init(&plan, &d, NULL), RAPT_OK);
        for (int64_t first = -1; first <= 4; first++) {
            offsets[0] = first, offsets[1] = first + 3;
            assert_int_equal(rapt_prepare(&plan, workspace, sizeof workspace),
                             first >= 0 && first <= 3 ? RAPT_OK : RAPT_INVALID_VALUE);
        }
    }
}

/* One token per sequence; kv_lengths, or query_offsets into so many tokens. */
static rapt_plan plan_of_lists(int64_t batch, const int32_t *lengths, const int32_t *offsets, int64_t tokens) {
    static float query[65 * 16], keys[3 * 64 * 16], out[65 * 16];
    rapt_attention_desc desc = RAPT_ATTENTION_DESC_INIT;
    rapt_plan plan;
    desc.batch = batch, desc.query_heads = desc.kv_heads = desc.query_length = 1;
    desc.kv_length = 64, desc.head_dim = 16;
    desc.query = rapt_input_bhsd(query, offsets ? 1 : batch, 1, tokens, 16);
    desc.key = desc.value = rapt_input_bhsd(keys, batch, 1, 64, 16);
    desc.out = rapt_output_bhsd(out, offsets ? 1 : batch, 1, tokens, 16);
    if (lengths)
        desc.kv_lengths = rapt_int32_list(lengths, batch);
    if (offsets)
        desc.query_offsets = rapt_int32_list(offsets, batch + 1), desc.query_tokens = tokens;
    assert_int_equal(rapt_plan_init(&plan, &desc, NULL), RAPT_OK);
    return plan;
}

/* Plans with as many tasks of the same sizes, but other lists: with or without a table, lengths in another order, other
 * tokens. */
static void test_other_lists(void **state) {
    static const int32_t equal[] = {64, 64, 64}, second[] = {64, 63, 64}, first[] = {63, 64, 64}, late[] = {64, 65},
                         early[] = {0, 1};
    const rapt_plan plans[] = {plan_of_lists(3, NULL, NULL, 1), plan_of_lists(3, equal, NULL, 1),
                               plan_of_lists(3, second, NULL, 1), plan_of_lists(3, first, NULL, 1),
                               plan_of_lists(1, NULL, late, 65), plan_of_lists(1, NULL, early, 1)};
    enum { PLANS = sizeof plans / sizeof *plans, BYTES = 1 << 20 };
    char *memory = test_alloc(BYTES);
    (void)state;
    for (int i = 0; i < PLANS * PLANS; i++) {
        assert_int_equal(rapt_prepare(&plans[i / PLANS], memory, BYTES), RAPT_OK);
        assert_int_equal(rapt_join(&plans[i % PLANS], memory, 0),
                         i / PLANS == i % PLANS ? RAPT_OK : RAPT_NOT_PREPARED);
    }
    test_free_all();
}

/* A list that changed since planning leads no other plan beyond its fewer tokens. */
static void test_moved_lists(void **state) {
    int32_t offsets[] = {0, 1};
    const rapt_plan few = plan_of_lists(1, NULL, offsets, 1), many = plan_of_lists(1, NULL, offsets, 65);
    char *memory = test_alloc(1 << 20);
    (void)state;
    offsets[0] = 64, offsets[1] = 65;
    assert_int_equal(rapt_prepare(&many, memory, 1 << 20), RAPT_OK);
    assert_int_equal(rapt_join(&few, memory, 0), RAPT_NOT_PREPARED);
    assert_int_equal(rapt_join(&many, memory, 0), RAPT_OK);
    test_free_all();
}

/* One token, on keys and values of at most so many batches, pages or tokens. */
static rapt_plan plan_of_bounds(const rapt_page_table *table, int64_t most_keys, int64_t most_queries,
                                const int32_t *lengths, bool of_queries) {
    static float query[64 * 16], keys[8 * 64 * 16], out[64 * 16];
    rapt_attention_desc desc = RAPT_ATTENTION_DESC_INIT;
    rapt_plan plan;
    desc.batch = desc.query_heads = desc.kv_heads = 1, desc.head_dim = 16;
    desc.query_length = most_queries, desc.kv_length = most_keys;
    desc.query = rapt_input_bhsd(query, 1, 1, most_queries, 16);
    desc.key = desc.value = rapt_tensor_bhsd(keys, RAPT_F32, 8, 1, table ? 16 : 64, 16);
    desc.out = rapt_output_bhsd(out, 1, 1, most_queries, 16);
    if (table) {
        desc.key_pages = desc.value_pages = *table;
        desc.key.page_stride_bytes = desc.value.page_stride_bytes =
            table->kind == RAPT_PAGES_ROW ? 0 : desc.key.batch_stride_bytes;
    }
    if (lengths)
        *(of_queries ? &desc.query_lengths : &desc.kv_lengths) = rapt_int32_list(lengths, 1);
    assert_int_equal(rapt_plan_init(&plan, &desc, NULL), RAPT_OK);
    return plan;
}

/* What was legal in the plan that the workspace is prepared for is illegal in the other. */
static void expect_bounds(const rapt_plan *small, const rapt_plan *large) {
    char *memory = test_alloc(1 << 20);
    rapt_task_info info;
    assert_int_equal(rapt_prepare(large, memory, 1 << 20), RAPT_OK);
    assert_int_equal(rapt_task_info_of(small, memory, 0, 0, &info), RAPT_NOT_PREPARED);
    assert_int_equal(rapt_run_task(small, memory, 0, 0), RAPT_NOT_PREPARED);
    assert_int_equal(rapt_join(small, memory, 0), RAPT_NOT_PREPARED);
    assert_int_equal(rapt_join(large, memory, 0), RAPT_OK);
    test_free_all();
}

static void test_other_bounds(void **state) {
    int32_t row = 0, length = 10, offsets[] = {0, 1};
    static const int32_t pages[] = {0, 1, 2, 3, 4, 5, 6, 7};
    rapt_page_table few = {.kind = RAPT_PAGES_ROW, .pages = 2, .entries = rapt_int32_list(&row, 1)}, many = few;
    (void)state;
    many.pages = 8;
    rapt_plan small = plan_of_bounds(&few, 16, 1, NULL, false), large = plan_of_bounds(&many, 16, 1, NULL, false);
    row = 7;
    expect_bounds(&small, &large);
    few = (rapt_page_table){.kind = RAPT_PAGES_LISTED, .page_tokens = 16, .pages = 8,
                            .entries = rapt_int32_list(pages, 1), .offsets = rapt_int32_list(offsets, 2)};
    many = few;
    many.entries.count = 8;
    small = plan_of_bounds(&few, 16, 1, NULL, false), large = plan_of_bounds(&many, 16, 1, NULL, false);
    offsets[0] = 7, offsets[1] = 8;
    expect_bounds(&small, &large);
    few.page_tokens = 8, few.entries.count = 2, many = few, many.page_tokens = 16; /* two pages, or one */
    offsets[0] = 0, offsets[1] = 2;
    small = plan_of_bounds(&few, 16, 1, NULL, false), large = plan_of_bounds(&many, 16, 1, NULL, false);
    offsets[0] = 1;
    expect_bounds(&small, &large);
    small = plan_of_bounds(NULL, 11, 1, &length, false), large = plan_of_bounds(NULL, 64, 1, &length, false);
    length = 12;
    expect_bounds(&small, &large);
    length = 1;
    small = plan_of_bounds(NULL, 64, 1, &length, true), large = plan_of_bounds(NULL, 64, 2, &length, true);
    expect_bounds(&small, &large);
}

/* Two sequences; keys and values share their pages, or have a row each. */
static rapt_plan plan_of_pages(const int32_t *keys, const int32_t *values, int64_t batch_stride_bytes) {
    static float numbers[8 * 16 * 16], out[2 * 16];
    rapt_attention_desc desc = RAPT_ATTENTION_DESC_INIT;
    rapt_plan plan;
    desc.batch = 2, desc.query_heads = desc.kv_heads = desc.query_length = 1;
    desc.kv_length = desc.head_dim = 16;
    desc.key = desc.value = rapt_input_bhsd(numbers, 8, 1, 16, 16);
    desc.key.page_stride_bytes = desc.value.page_stride_bytes = desc.key.batch_stride_bytes;
    desc.query = rapt_input_bhsd(numbers, 2, 1, 1, 16);
    desc.out = rapt_output_bhsd(out, 2, 1, 1, 16);
    desc.key_pages = (rapt_page_table){.kind = RAPT_PAGES_DENSE, .page_tokens = 16, .pages = 8,
                                       .entries = rapt_int32_list(keys, 1), .batch_stride_bytes = batch_stride_bytes};
    desc.value_pages = desc.key_pages;
    desc.value_pages.entries.data = values;
    assert_int_equal(rapt_plan_init(&plan, &desc, NULL), RAPT_OK);
    return plan;
}

/* Pages of either side are checked again: also if all sequences share them, though there is no table of works, and if
 * both sides share a table. */
static void test_changed_pages(void **state) {
    int32_t pages[4];
    char *memory = test_alloc(1 << 20);
    (void)state;
    for (int row = 0; row < 2; row++)
        for (int side = 0; side < 2; side++) {
            memset(pages, 0, sizeof pages);
            const rapt_plan plan = plan_of_pages(pages, pages + 2 * side, 4 * row);
            for (int32_t *page = pages; page < pages + 4; page++) {
                const bool is_read = (page < pages + 2 || side) && (row || (page - pages) % 2 == 0);
                *page = 8;
                assert_int_equal(rapt_prepare(&plan, memory, 1 << 20), is_read ? RAPT_INVALID_VALUE : RAPT_OK);
                *page = 7;
                assert_int_equal(rapt_prepare(&plan, memory, 1 << 20), RAPT_OK);
            }
        }
    test_free_all();
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_any_bytes), cmocka_unit_test(test_other_plan),
                                       cmocka_unit_test(test_failed_preparation),
                                       cmocka_unit_test(test_longer_sequences), cmocka_unit_test(test_more_queries),
                                       cmocka_unit_test(test_moved_offsets),
                                       cmocka_unit_test(test_other_lists), cmocka_unit_test(test_moved_lists),
                                       cmocka_unit_test(test_other_bounds),
                                       cmocka_unit_test(test_changed_pages), cmocka_unit_test(test_more_merges),
                                       cmocka_unit_test(test_more_scratch)};
    return cmocka_run_group_tests_name("prepared", tests, NULL, NULL);
}
