/* SPDX-License-Identifier: MIT
 * KV heads that alternate token by token in memory, and are read in turns, also in pages: the specification's bits.
 * Which calls do: turns_which.c. */
#include "dispatch.h"
#include "plan/turns.h"
#include "support/cmocka_all.h"
#include "support/problem.h"
#include "support/processors.h"

static struct problem_call call_of(int64_t heads, int64_t group, int64_t queries, int64_t keys, unsigned use) {
    return (struct problem_call){.batch = 1 + keys % 2, .query_heads = heads * group, .kv_heads = heads,
                                 .query_length = queries, .kv_length = keys, .head_dim = 32, .value_dim = 32,
                                 .use = use | USE_LSE, .origin = RAPT_ORIGIN_BOTTOM_RIGHT,
                                 .weights_kind = RAPT_WEIGHTS_SOFTMAX,
                                 .seed = (uint64_t)(keys + queries) + use};
}

/* Some pages are no whole turns; in others the heads follow each other, and are read separately. */
static const struct problem_layout layouts[] = {
    {.token_major = true, .poison = true},
    {.token_major = true, .poison = true, .page_kind = RAPT_PAGES_DENSE, .page_tokens = 32},
    {.token_major = true, .poison = true, .page_kind = RAPT_PAGES_LISTED, .page_tokens = 16},
    {.token_major = true, .poison = true, .page_kind = RAPT_PAGES_DENSE, .page_tokens = 96},
    {.token_major = true, .poison = true, .page_kind = RAPT_PAGES_LISTED, .page_tokens = 40},
    {.poison = true, .page_kind = RAPT_PAGES_LISTED, .page_tokens = 32},
    {.poison = true, .page_kind = RAPT_PAGES_DENSE, .page_tokens = 16},
    {.poison = true, .page_kind = RAPT_PAGES_DENSE, .page_tokens = 128},
};
enum { LAYOUTS = sizeof layouts / sizeof layouts[0] };

/* Of narrow tiles; a unit's tables are themselves those of order 2. */
static const struct rapt_tile_kind *kind_of(const struct rapt_table *table, const struct problem_call *call) {
    const struct rapt_table *of_order2 = table->of_unit[RAPT_OF_BF16] ? table->of_unit[RAPT_OF_BF16] : table;
    return &(call->numerics ? of_order2 : table)->kinds[RAPT_NARROW];
}

/* On every table; calls take layouts and processors' traits in turn. If two workers are left with few tasks, each takes
 * single heads. Tables without turns treat all layouts alike. */
static void check_layouts(struct problem_call call, int layout_count) {
    const struct rapt_table *tables[RAPT_ISA_COUNT];
    const int count = tables_of(call.numerics ? call.numerics : 1, tables);
    static int calls;
    struct problem *expected = problem_expected(&call);
    for (int table = 0; table < count; table++)
        for (int i = 0; i < (rapt_has_heads_in_turns(kind_of(tables[table], &call)) ? 2 * layout_count : 1); i++) {
            const struct problem_way way = {.isa = tables[table]->isa, .threads = 1 + i % 2};
            pretend_processor(calls + i);
            problem_check(expected, &layouts[i / 2], &way);
        }
    calls++;
    problem_free(expected);
    test_free_all();
}

static void check(struct problem_call call) { check_layouts(call, LAYOUTS); }

static void test_features(void **state) {
    static const unsigned uses[] = {0, USE_CAUSAL, USE_CAUSAL | USE_WINDOW, USE_SOFTCAP, USE_STANDARD_ALIBI, USE_KEEP,
                                    USE_KV_LENGTHS | USE_KEY_POSITION, USE_INITIAL_STATE | USE_FINAL_STATE, USE_SINKS,
                                    USE_MASK, USE_BIAS, USE_BLOCKS, USE_TREE, USE_WEIGHTS};
    static const int64_t heads[] = {2, 4, 12};
    (void)state;
    for (int u = 0; u < (int)(sizeof uses / sizeof uses[0]); u++)
        for (int i = 0; i < 3; i++)
            if (is_sampled(u * 3 + i))
                check(call_of(heads[i], 1 + u % 3, 1 + i % 2, 300 + 411 * i, uses[u]));
}

/* So many that tasks get some each, and merge. */
static void test_split_keys(void **state) {
    static const unsigned uses[] = {0, USE_CAUSAL, USE_KV_LENGTHS, USE_INITIAL_STATE | USE_FINAL_STATE, USE_KEEP};
    (void)state;
    for (int i = 0; i < 5; i++)
        if (is_sampled(i))
            check(call_of(2 + i % 3, 1 + i % 2, 1, 4200 + 1500 * i, uses[i]));
}

/* Excluded values that are NaN or infinite make one head careful, or all. */
static void test_data(void **state) {
    static const enum data_kind kinds[] = {DATA_NAN_ROWS, DATA_INFINITE, DATA_MINUS_INFINITE, DATA_LOUD, DATA_SPECIAL};
    static const unsigned uses[] = {0, USE_CAUSAL, USE_CAUSAL | USE_WINDOW, USE_KV_LENGTHS};
    (void)state;
    for (int i = 0; i < 20; i++) {
        struct problem_call call = call_of(3, 1, 3, 1100 + i, uses[i % 4]);
        call.data = kinds[i / 4];
        if (is_sampled(i))
            check(call);
    }
}

static void test_types(void **state) {
    static const int formats[] = {RAPT_FORMAT_F16, RAPT_FORMAT_BF16, RAPT_FORMAT_Q8_0, RAPT_FORMAT_Q4_0,
                                  RAPT_FORMAT_F8_E4M3, RAPT_FORMAT_F8_E5M2, RAPT_FORMAT_Q4_1, RAPT_FORMAT_Q5_0,
                                  RAPT_FORMAT_Q5_1, RAPT_FORMAT_IQ4_NL};
    (void)state;
    for (int i = 0; i < 30; i++) {
        struct problem_call call = call_of(2 + 2 * (i % 4), 1 + i / 10, 1, 700 + 97 * i, i % 2 ? USE_CAUSAL : 0);
        call.key_format = call.value_format = formats[i % 10];
        call.head_dim = call.value_dim = 64;
        if (is_sampled(i))
            check(call);
    }
}

/* Rows of which some processors score two vectors of keys at a time. */
static void test_two_vectors(void **state) {
    static const int formats[] = {RAPT_FORMAT_F16, RAPT_FORMAT_BF16};
    static const int64_t dims[] = {64, 128, 96};
    (void)state;
    for (int i = 0; i < 6; i++) {
        struct problem_call call = call_of(2, 3 + i / 2 + i % 2, 1, 700 + 97 * i, i % 4 == 3 ? USE_CAUSAL : 0);
        call.key_format = call.value_format = formats[i % 2];
        call.head_dim = call.value_dim = dims[i % 3];
        if (is_sampled(i))
            check(call);
    }
}

/* Of more bytes than caches hold, some processors take one row or two in shorter turns. */
static void test_short_turns(void **state) {
    static const int formats[] = {RAPT_FORMAT_F16, RAPT_FORMAT_BF16};
    (void)state;
    for (int i = 0; i < 4; i++) {
        struct problem_call call = call_of(12, 1 + i / 2, 1, 701 + 2 * i, i % 2 ? USE_CAUSAL : 0);
        call.key_format = call.value_format = formats[i % 2];
        call.head_dim = call.value_dim = 256;
        if (is_sampled(i))
            check(call);
    }
}

/* As many rows as fill a vector, if registers hold fewer, and about as many, in dims of whole lines and others. */
static void test_rows_that_fill(void **state) {
    static const int formats[] = {RAPT_FORMAT_F32, RAPT_FORMAT_F16, RAPT_FORMAT_BF16, RAPT_FORMAT_Q8_0,
                                  RAPT_FORMAT_Q4_0, RAPT_FORMAT_Q4_1, RAPT_FORMAT_IQ4_NL};
    static const unsigned uses[] = {0, USE_CAUSAL, USE_CAUSAL | USE_WINDOW, USE_KEEP, USE_SOFTCAP, USE_MASK,
                                    USE_KV_LENGTHS};
    static const int64_t groups[] = {7, 8, 4, 9}, dims[] = {64, 128, 96, 288};
    (void)state;
    for (int i = 0; i < 40; i++) {
        const unsigned use = uses[(i + i / 7) % 7];
        struct problem_call call = call_of(1 + i % 3, groups[i % 4], i % 4 == 2 ? 2 : 1, 600 + 97 * i, use);
        call.key_format = call.value_format = formats[i % 7];
        call.head_dim = call.value_dim = dims[i / 7 % 4];
        if (is_sampled(i))
            check(call);
    }
}

/* More than narrow tiles take; heads take turns to score and weigh unless caches hold all of the rows. */
static void test_few_rows(void **state) {
    static const int formats[] = {RAPT_FORMAT_F32, RAPT_FORMAT_F16, RAPT_FORMAT_Q8_0};
    static const int64_t keys[] = {1000, 1900, 3500};
    static const enum data_kind kinds[] = {DATA_NORMAL, DATA_NAN_ROWS, DATA_NORMAL, DATA_SPECIAL};
    static const unsigned uses[] = {0, USE_CAUSAL, USE_CAUSAL | USE_WINDOW, USE_KEEP, USE_STANDARD_ALIBI, USE_WEIGHTS,
                                    USE_KV_LENGTHS | USE_KEY_POSITION, USE_INITIAL_STATE | USE_FINAL_STATE};
    (void)state;
    for (int i = 0; i < 12; i++) {
        const int type = i % 3;
        struct problem_call call = call_of(8, 3 + i % 7, 3 + i % 3, keys[type] + 51 * (i / 3), uses[i % 8]);
        call.batch = 1;
        call.key_format = call.value_format = formats[type];
        call.head_dim = call.value_dim = 288 - (i % 2) * (type < 2) * 8;
        call.data = kinds[i / 3 % 4];
        if (is_sampled(i))
            check_layouts(call, 1);
    }
}

/* Order 2: heads take turns of whole blocks, contiguous and in pages. */
static void test_order_2(void **state) {
    static const int formats[] = {RAPT_FORMAT_BF16, RAPT_FORMAT_F16};
    static const enum data_kind kinds[] = {DATA_NORMAL, DATA_NAN_ROWS, DATA_SPECIAL, DATA_SMALL};
    static const unsigned uses[] = {0, USE_CAUSAL, USE_CAUSAL | USE_WINDOW, USE_KEEP, USE_STANDARD_ALIBI, USE_WEIGHTS,
                                    USE_KV_LENGTHS | USE_KEY_POSITION, USE_INITIAL_STATE | USE_FINAL_STATE};
    (void)state;
    for (int i = 0; i < 10; i++) {
        const bool is_near = i >= 8; /* so few dims that the matrix unit takes other turns */
        struct problem_call call = call_of(8 - i % 3, 1 + i % 5, is_near ? 1 : 1 + i / 4, 2100 + 57 * i, uses[i % 8]);
        call.batch = 1;
        call.numerics = RAPT_NUMERICS_ORDER_2;
        call.key_format = call.value_format = formats[i % 2 && !is_near];
        call.head_dim = call.value_dim = is_near ? 96 : 320 - i % 2 * 8;
        call.kv_length *= is_near ? 3 : 1;
        call.data = kinds[i % 4];
        if (is_sampled(i))
            check_layouts(call, 3);
    }
}

/* Tokens in descending order, in dims whose turns request more lines than they have, or fewer. */
static void test_reversed(void **state) {
    static const struct problem_layout reversed = {.poison = true, .reversed = true};
    static const int formats[] = {RAPT_FORMAT_Q8_0, RAPT_FORMAT_F16, RAPT_FORMAT_F32};
    const struct rapt_table *tables[RAPT_ISA_COUNT];
    const int count = tables_of(1, tables);
    (void)state;
    for (int i = 0; i < 9; i++) {
        struct problem_call call = call_of(1, 3 + i / 3, 1, 600, 0);
        call.key_format = call.value_format = formats[i % 3];
        call.head_dim = call.value_dim = i % 3 == 0 ? 1024 : 64;
        struct problem *expected = problem_expected(&call);
        for (int table = 0; table < count; table++) {
            const struct problem_way way = {.isa = tables[table]->isa, .threads = 1};
            pretend_processor(i / 3 + table);
            problem_check(expected, &reversed, &way);
        }
        problem_free(expected);
        test_free_all();
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_features),    cmocka_unit_test(test_split_keys),     cmocka_unit_test(test_data),
        cmocka_unit_test(test_types),       cmocka_unit_test(test_rows_that_fill), cmocka_unit_test(test_few_rows),
        cmocka_unit_test(test_two_vectors), cmocka_unit_test(test_short_turns),    cmocka_unit_test(test_order_2),
        cmocka_unit_test(test_reversed),
    };
    return cmocka_run_group_tests_name("turns", tests, NULL, NULL);
}
