/* SPDX-License-Identifier: MIT
 * Few rows on several blocks, where a block's scores run beside the previous block's values if nothing prevents it: the
 * specification's bits with all that may, in orders 1 and 2. */
#include <stdatomic.h>

#include "cpu.h"
#include "reference/reference.h"
#include "support/cmocka_all.h"
#include "support/problem.h"
#include "support/processors.h"

static struct problem_call call_of(int64_t dim, int64_t queries, int64_t keys, unsigned use) {
    return (struct problem_call){.batch = 1, .query_heads = 2, .kv_heads = 1, .query_length = queries,
                                 .kv_length = keys, .head_dim = dim, .value_dim = dim, .use = use | USE_LSE,
                                 .origin = RAPT_ORIGIN_BOTTOM_RIGHT, .seed = (uint64_t)(keys + queries) + use};
}

/* On every table, contiguous and in pages, with each processor's traits in turn. */
static void check(struct problem_call call) {
    static const int64_t pages[] = {0, 16, 100, 24};
    const struct rapt_table *tables[RAPT_ISA_COUNT];
    const int count = tables_of(call.numerics, tables);
    static int calls;
    struct problem *expected = problem_expected(&call);
    for (int table = 0; table < count; table++)
        for (size_t i = 0; i < (call.numerics == 2 ? 4 : 3); i++) {
            const struct problem_way way = {.isa = tables[table]->isa, .threads = 1};
            const struct problem_layout layout = {.page_kind = pages[i] ? RAPT_PAGES_DENSE : 0,
                                                  .page_tokens = pages[i], .poison = true};
            pretend_processor(calls + (int64_t)i);
            problem_check(expected, &layout, &way);
        }
    calls++;
    problem_free(expected);
    test_free_all();
}

/* Up to 8 rows of a KV head, in blocks that begin and end within the keys. */
static void test_features(void **state) {
    static const unsigned uses[] = {0, USE_CAUSAL, USE_CAUSAL | USE_WINDOW, USE_MASK, USE_MASK | USE_SPARSE,
                                    USE_MASK | USE_FILL, USE_BIAS, USE_BIAS | USE_SPARSE, USE_TREE, USE_BLOCKS,
                                    USE_SOFTCAP, USE_STANDARD_ALIBI, USE_KEEP, USE_KV_LENGTHS | USE_KEY_POSITION,
                                    USE_VIEW, USE_INITIAL_STATE | USE_FINAL_STATE};
    static const int64_t queries[] = {1, 2, 4};
    (void)state;
    for (size_t u = 0; u < sizeof uses / sizeof uses[0]; u++)
        for (int i = 0; i < 6; i++)
            if (is_sampled((int64_t)u * 6 + i))
                check(call_of(i % 2 ? 128 : 64, queries[i / 2], 600 + 257 * i, uses[u]));
}

/* Excluded values that are NaN or infinite, in any block of a chunk. */
static void test_data(void **state) {
    static const enum data_kind kinds[] = {DATA_NAN_ROWS, DATA_INFINITE, DATA_MINUS_INFINITE, DATA_LOUD, DATA_SPECIAL};
    static const unsigned uses[] = {0, USE_CAUSAL, USE_CAUSAL | USE_WINDOW, USE_KV_LENGTHS, USE_MASK};
    (void)state;
    for (size_t kind = 0; kind < sizeof kinds / sizeof kinds[0]; kind++)
        for (size_t u = 0; u < sizeof uses / sizeof uses[0]; u++) {
            struct problem_call call = call_of(64, 3, 1100 + (int64_t)(kind + u), uses[u]);
            call.data = kinds[kind];
            if (is_sampled((int64_t)(kind * 5 + u)))
                check(call);
        }
}

static void test_types(void **state) {
    static const int formats[] = {RAPT_FORMAT_F16, RAPT_FORMAT_BF16, RAPT_FORMAT_Q8_0};
    (void)state;
    for (int i = 0; i < 9; i++) {
        struct problem_call call = call_of(128, 1 + i % 4, 700 + 300 * (i / 3), i % 2 ? USE_CAUSAL : 0);
        call.key_format = formats[i % 3];
        call.value_format = formats[i / 3 == 2 ? (i + 1) % 3 : i % 3];
        if (is_sampled(i))
            check(call);
    }
}

/* Rows without gaps that end within a vector: nothing may be read after the last. */
static void test_rows_of_no_whole_vectors(void **state) {
    static const int formats[] = {RAPT_FORMAT_F32, RAPT_FORMAT_F16, RAPT_FORMAT_BF16, RAPT_FORMAT_F8_E4M3,
                                  RAPT_FORMAT_Q8_0};
    static const int64_t dims[] = {20, 40, 72, 36};
    (void)state;
    for (int i = 0; i < 20; i++) {
        const bool blocks = formats[i % 5] == RAPT_FORMAT_Q8_0;
        struct problem_call call = call_of(blocks ? 96 : dims[i / 5], 1 + i % 4, 640 + 128 * (i / 5), 0);
        call.key_format = call.value_format = formats[i % 5];
        if (is_sampled(i))
            check(call);
    }
}

static struct problem_call order2_of(int64_t dim, int64_t queries, int64_t keys, unsigned use, int format) {
    struct problem_call call = call_of(dim, queries, keys, use);
    call.numerics = 2;
    call.key_format = call.value_format = format;
    return call;
}

/* Halves that end within the keys, or mid-block, and blocks with only one half; rows of whole and partial steps. */
static void test_order2(void **state) {
    static const unsigned uses[] = {0, USE_CAUSAL, USE_CAUSAL | USE_WINDOW, USE_KEEP, USE_SOFTCAP, USE_KV_LENGTHS,
                                    USE_INITIAL_STATE | USE_FINAL_STATE, USE_SCALE};
    static const int64_t queries[] = {1, 2, 4, 8};
    static const int64_t dims[] = {128, 64, 96,  32,  128, 64, 80,
                                   40,   112, 21, 256, 160, 200, 136};
    static const enum data_kind kinds[] = {DATA_NORMAL, DATA_NAN_ROWS, DATA_SPECIAL};
    (void)state;
    for (int i = 0; i < 56; i++) {
        struct problem_call call = order2_of(dims[i / 4], queries[i % 4], 700 + 131 * (i % 7), uses[i % 8],
                                             i % 6 == 5 ? RAPT_FORMAT_F16 : RAPT_FORMAT_BF16);
        call.data = kinds[i % 3];
        if (is_sampled(i))
            check(call);
    }
}

/* Keys and values of different dims, and long rows. */
static void test_order2_long(void **state) {
    static const int64_t dims[][2] = {{192, 128}, {64, 512}, {512, 64}, {288, 288}, {300, 200}, {40, 150}};
    static const unsigned uses[] = {0, USE_CAUSAL, USE_CAUSAL | USE_WINDOW, USE_KV_LENGTHS};
    (void)state;
    for (int i = 0; i < 24; i++) {
        struct problem_call call = order2_of(dims[i / 4][0], 1 + i % 4 * 2, 700 + 131 * (i % 5), uses[i % 4],
                                             i % 6 == 5 ? RAPT_FORMAT_F16 : RAPT_FORMAT_BF16);
        call.value_dim = dims[i / 4][1];
        call.data = i % 3 == 2 ? DATA_NAN_ROWS : DATA_NORMAL;
        if (is_sampled(i))
            check(call);
    }
}

/* More than 16 rows of a KV head. */
static void test_order2_more_rows(void **state) {
    static const int64_t dims[][2] = {{128, 128}, {64, 64},   {96, 96},   {32, 32},  {256, 256}, {80, 80},  {40, 40},
                                      {21, 21},   {136, 136}, {192, 128}, {64, 512}, {512, 64},  {300, 200}};
    static const int64_t queries[] = {16, 9, 11};
    static const unsigned uses[] = {0, USE_CAUSAL | USE_WINDOW, USE_CAUSAL, USE_KEEP, USE_KV_LENGTHS, USE_MASK,
                                    USE_INITIAL_STATE | USE_FINAL_STATE};
    enum { DIMS = sizeof dims / sizeof dims[0] };
    (void)state;
    for (int i = 0; i < 3 * DIMS; i++) {
        struct problem_call call = order2_of(dims[i % DIMS][0], queries[i % 3], 700 + 131 * (i % 5), uses[i % 7],
                                             i % 11 == 10 ? RAPT_FORMAT_F16 : RAPT_FORMAT_BF16);
        call.value_dim = dims[i % DIMS][1];
        call.data = i % 4 == 3 ? DATA_NAN_ROWS : DATA_NORMAL;
        if (is_sampled(i))
            check(call);
    }
}

/* A value that all but the first query exclude is NaN: one chunk is repeated, and others follow. */
static void test_order2_again(void **state) {
    enum { DIM = 128, KEYS = 1700, QUERIES = 5, WINDOW = 900, NOT_A_NUMBER = 0x7fc0 };
    const unsigned use = USE_CAUSAL | USE_WINDOW;
    const struct problem_call call = order2_of(DIM, QUERIES, KEYS, use, RAPT_FORMAT_BF16);
    const struct rapt_table *tables[RAPT_ISA_COUNT];
    const int count = tables_of(2, tables);
    (void)state;
    for (int table = -1; table < count; table++) {
        struct problem *problem = problem_new(&call), *expected = problem_new(&call);
        struct problem *const both[] = {problem, expected};
        const struct problem_way way = {.isa = table < 0 ? RAPT_ISA_AUTO : tables[table]->isa};
        for (int i = 0; i < 2; i++) {
            uint16_t *values = (uint16_t *)(void *)test_floats(KEYS * DIM / 2);
            rapt_attention_desc *desc = &both[i]->desc;
            memcpy(values, desc->value.data, KEYS * DIM * sizeof *values);
            values[(KEYS - QUERIES - WINDOW) * DIM] = NOT_A_NUMBER;
            desc->value = rapt_tensor_bhsd(values, RAPT_BF16, 1, 1, KEYS, DIM);
            desc->window_left = WINDOW;
            desc->window_right = -1;
        }
        rapt_reference_attention(&expected->desc);
        problem_run(problem, &way);
        assert_true(problem_same(problem, expected));
        problem_free(problem);
        problem_free(expected);
        test_free_all();
    }
}

/* A list that continues far past a block's keys, beyond what there is room to note. All keys are one. */
static void test_far_list(void **state) {
    enum { DIM = 64, KEYS = 1 << 24, LISTED = 64 };
    static const int32_t offsets[] = {0, 2}, entries[] = {0, KEYS / LISTED - 1};
    float ones[DIM], out[DIM];
    rapt_attention_desc desc = RAPT_ATTENTION_DESC_INIT;
    rapt_message message;
    (void)state;
    for (int d = 0; d < DIM; d++)
        ones[d] = 1;
    desc.batch = desc.query_heads = desc.kv_heads = desc.query_length = 1;
    desc.kv_length = KEYS;
    desc.head_dim = DIM;
    desc.query = rapt_tensor_bhsd(ones, RAPT_F32, 1, 1, 1, DIM);
    desc.key = desc.value = desc.query;
    desc.key.token_stride_bytes = desc.value.token_stride_bytes = 0;
    desc.out = rapt_output_bhsd(out, 1, 1, 1, DIM);
    desc.key_blocks = (rapt_block_list){.query_tokens = 1,
                                        .key_tokens = LISTED,
                                        .offsets = {.data = offsets, .index_bytes = 4},
                                        .entries = {.data = entries, .index_bytes = 4, .count = 2}};
    if (rapt_attention(&desc, NULL, &message) != RAPT_OK)
        fail_msg("%s", message.text);
    for (int d = 0; d < DIM; d++)
        assert_true(out[d] == 1);
}

/* Queries of one task, with one block of keys each, anywhere: no list may stand in for later ones. */
static void test_lists_apart(void **state) {
    enum { DIM = 32, QUERIES = 40, KEYS = 2000, LISTED = 50 };
    struct random random = {15};
    const struct rapt_table *tables[RAPT_ISA_COUNT];
    const int count = machine_tables(tables);
    int32_t offsets[QUERIES + 1], entries[QUERIES];
    (void)state;
    for (int64_t turn = 0; turn < scaled_work(25); turn++, test_free_all()) {
        const int64_t queries = random_between(&random, 2, turn % 2 ? QUERIES : 5);
        float *out = test_floats(queries * DIM), *expected = test_floats(queries * DIM);
        rapt_attention_desc desc = RAPT_ATTENTION_DESC_INIT;
        for (int i = 0; i <= queries; i++)
            offsets[i] = i;
        for (int i = 0; i < queries; i++)
            entries[i] = (int32_t)random_below(&random, KEYS / LISTED);
        desc.batch = desc.query_heads = desc.kv_heads = 1;
        desc.query_length = queries;
        desc.kv_length = KEYS;
        desc.head_dim = DIM;
        desc.query = rapt_input_bhsd(test_drawn(&random, queries * DIM, random_normal), 1, 1, queries, DIM);
        desc.key = rapt_input_bhsd(test_drawn(&random, KEYS * DIM, random_normal), 1, 1, KEYS, DIM);
        desc.value = rapt_input_bhsd(test_drawn(&random, KEYS * DIM, random_normal), 1, 1, KEYS, DIM);
        desc.key_blocks = (rapt_block_list){.query_tokens = 1,
                                            .key_tokens = LISTED,
                                            .offsets = rapt_int32_list(offsets, queries + 1),
                                            .entries = rapt_int32_list(entries, queries)};
        desc.out = rapt_output_bhsd(expected, 1, 1, queries, DIM);
        rapt_reference_attention(&desc);
        desc.out = rapt_output_bhsd(out, 1, 1, queries, DIM);
        for (int table = 0; table < count; table++) {
            desc.isa = tables[table]->isa;
            assert_int_equal(rapt_attention(&desc, NULL, NULL), RAPT_OK);
            expect_bits(out, expected, queries * DIM, NAN_ANY, "%s, %d queries: number", tables[table]->name,
                        (int)queries);
        }
    }
}

/* More keys and values than caches hold, for processors that then pace requests. All heads share them. */
static void test_more_than_caches_hold(void **state) {
    enum { DIM = 64, KEYS = 1100, HEADS = 64 };
    static const int kinds[][3] = {{RAPT_F32, 1, 1},  {RAPT_F32, 1, 3},  {RAPT_F16, 1, 1},  {RAPT_BF16, 1, 1},
                                   {RAPT_BF16, 1, 2}, {RAPT_BF16, 2, 1}, {RAPT_BF16, 2, 2}, {RAPT_F16, 2, 1}};
    const int requests = atomic_exchange(&rapt_requests_here, RAPT_REQUESTS_NEXT_PAGE);
    (void)state;
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
        const int dtype = kinds[i][0], numerics = kinds[i][1], query_dtype = numerics == 2 ? dtype : RAPT_F32;
        const int64_t rows = (int64_t)HEADS * kinds[i][2];
        struct random random = {i};
        const struct rapt_table *tables[RAPT_ISA_COUNT];
        const int count = tables_of(numerics, tables);
        float *expected = test_floats(rows * DIM), *out = test_floats(rows * DIM);
        rapt_attention_desc desc = RAPT_ATTENTION_DESC_INIT;
        desc.batch = desc.query_length = 1, desc.kv_length = KEYS, desc.numerics = numerics;
        desc.query_heads = rows, desc.kv_heads = HEADS, desc.head_dim = DIM;
        desc.query = rapt_tensor_bhsd(test_normal_of(&random, query_dtype, rows * DIM), query_dtype, 1, rows, 1, DIM);
        desc.key = rapt_tensor_bhsd(test_normal_of(&random, dtype, KEYS * DIM), dtype, 1, 1, KEYS, DIM);
        desc.value = rapt_tensor_bhsd(test_normal_of(&random, dtype, KEYS * DIM), dtype, 1, 1, KEYS, DIM);
        desc.key.head_stride_bytes = desc.value.head_stride_bytes = 0;
        desc.out = rapt_output_bhsd(expected, 1, rows, 1, DIM);
        rapt_reference_attention(&desc);
        desc.out = rapt_output_bhsd(out, 1, rows, 1, DIM);
        for (int table = 0; table < count; table++) {
            desc.isa = tables[table]->isa;
            assert_int_equal(rapt_attention(&desc, NULL, NULL), RAPT_OK);
            expect_bits(out, expected, rows * DIM, NAN_ANY, "%s, order %d, type %d, %d rows: number",
                        tables[table]->name, numerics, dtype, kinds[i][2]);
        }
        test_free_all();
    }
    atomic_store(&rapt_requests_here, requests);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_features), cmocka_unit_test(test_data),
                                       cmocka_unit_test(test_types),
                                       cmocka_unit_test(test_rows_of_no_whole_vectors), cmocka_unit_test(test_order2),
                                       cmocka_unit_test(test_order2_long), cmocka_unit_test(test_order2_more_rows),
                                       cmocka_unit_test(test_order2_again),
                                       cmocka_unit_test(test_far_list), cmocka_unit_test(test_lists_apart),
                                       cmocka_unit_test(test_more_than_caches_hold)};
    return cmocka_run_group_tests_name("decode", tests, NULL, NULL);
}
