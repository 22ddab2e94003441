/* SPDX-License-Identifier: MIT
 * Few rows on several blocks of whole lines, where scores of a block run beside the values of the one before if nothing
 * is in the way: the bits of the specification with everything that may be. */
#include "cmocka_all.h"
#include "problem.h"

static struct problem_call call_of(int64_t dim, int64_t queries, int64_t keys, unsigned use) {
    return (struct problem_call){.batch = 1, .query_heads = 2, .kv_heads = 1, .query_length = queries,
                                 .kv_length = keys, .head_dim = dim, .value_dim = dim, .use = use | USE_LSE,
                                 .origin = RAPT_ORIGIN_BOTTOM_RIGHT, .seed = (uint64_t)(keys + queries) + use};
}

/* On every table, plainly and in pages. */
static void check(struct problem_call call) {
    static const int64_t pages[] = {0, 16, 100};
    const struct rapt_table *tables[RAPT_ISA_COUNT];
    const int count = machine_tables(tables);
    struct problem *expected = problem_expected(&call);
    for (int table = 0; table < count; table++)
        for (size_t i = 0; i < sizeof pages / sizeof pages[0]; i++) {
            const struct problem_way way = {.isa = tables[table]->isa, .threads = 1};
            const struct problem_layout layout = {.page_kind = pages[i] ? RAPT_PAGES_DENSE : 0,
                                                  .page_tokens = pages[i], .poison = true};
            problem_check(expected, &layout, &way);
        }
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

/* A list that goes on far beyond the keys of a block, where there is no room to note what it says. All keys are one. */
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

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_features), cmocka_unit_test(test_data),
                                       cmocka_unit_test(test_types), cmocka_unit_test(test_far_list)};
    return cmocka_run_group_tests_name("decode", tests, NULL, NULL);
}
