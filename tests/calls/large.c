/* SPDX-License-Identifier: MIT
 * Calls of sizes that random ones hardly ever reach, with features: keys split among tasks, and wide tiles of common
 * dims over several chunks. The argument is a pattern of test names. Built for order 1 and, with NUMERICS, for 2. */
#include "calls/check.h"

static int64_t scaled_count(int64_t usual) { return (scaled_work(usual) + (NUMERICS ? 1 : 0)) / (NUMERICS ? 2 : 1); }

/* At least eight chunks, at most 64 rows. */
static struct problem_call split_call(uint64_t seed, unsigned use) {
    struct random random = {seed * 13 + 5};
    struct problem_call call = {.batch = 1, .kv_heads = random_between(&random, 1, 2), .use = use, .seed = seed};
    call.query_heads = call.kv_heads * random_between(&random, 1, 6);
    call.query_length = random_between(&random, 1, 4);
    call.kv_length = random_between(&random, 4097, 4700);
    call.head_dim = 8 * random_between(&random, 1, 5);
    call.value_dim = random_chance(&random, 50) ? call.head_dim : 8 * random_between(&random, 1, 5);
    call.numerics = NUMERICS;
    call.origin = RAPT_ORIGIN_BOTTOM_RIGHT;
    call.weights_kind = RAPT_WEIGHTS_RAW + (int32_t)(seed % 4);
    return call;
}

static void test_split_features(void **state) {
    (void)state;
    for (int use = -1; use < USE_COUNT; use++)
        for (int64_t n = 0; n < scaled_count(2); n++) {
            struct problem_call call = split_call((uint64_t)(n * 31 + use + 1), use < 0 ? 0 : with_partners(1u << use));
            call.data = n % 2 ? DATA_NAN_ROWS : DATA_NORMAL;
            if (is_sampled(use + 1))
                check_call(&call);
        }
}

/* Excluded keys and values reach no result, whatever they hold, and no split relies on another's check. */
static void test_split_data(void **state) {
    static const unsigned uses[] = {USE_MASK, USE_KV_LENGTHS | USE_LSE, USE_CAUSAL | USE_KEEP, USE_WINDOW | USE_SINKS,
                                    USE_MASK | USE_SPARSE | USE_WEIGHTS, USE_BIAS | USE_OUT_16 | USE_WEIGHTS};
    enum { USES = sizeof uses / sizeof *uses };
    (void)state;
    for (int kind = 0; kind < (NUMERICS ? DATA_KINDS_OF_UNITS : DATA_KINDS); kind++)
        for (int64_t n = 0; n < scaled_count(USES); n++) {
            struct problem_call call = split_call((uint64_t)(n * 17 + kind), uses[(n + kind) % USES]);
            call.data = (enum data_kind)kind;
            if (is_sampled(kind))
                check_call(&call);
        }
}

/* Values of keys that only the last query sees: for the others they have weight 0, whatever they hold. */
static void test_split_excluded(void **state) {
    enum { QUERIES = 4, KEYS = 4200, DIM = 16, RESULTS = QUERIES * DIM };
    struct random random = {11};
    uint16_t *query = test_alloc(RESULTS * 2), *rows = test_alloc(KEYS * DIM * 2);
    float *finite = test_floats(RESULTS), *out = test_floats(RESULTS);
    rapt_attention_desc desc = RAPT_ATTENTION_DESC_INIT;
    (void)state;
    for (int i = 0; i < KEYS * DIM; i++)
        rows[i] = (uint16_t)(0x3e80 + random_below(&random, 256)); /* bfloat16 between 0.25 and 1 */
    memcpy(query, rows, RESULTS * 2);
    desc.numerics = NUMERICS;
    desc.batch = desc.query_heads = desc.kv_heads = 1;
    desc.query_length = QUERIES, desc.kv_length = KEYS, desc.head_dim = DIM;
    desc.query = rapt_tensor_bhsd(query, RAPT_BF16, 1, 1, QUERIES, DIM);
    desc.key = desc.value = rapt_tensor_bhsd(rows, RAPT_BF16, 1, 1, KEYS, DIM);
    desc.value.data = test_alloc(KEYS * DIM * 2);
    desc.features = RAPT_CAUSAL;
    desc.query_origin = RAPT_ORIGIN_BOTTOM_RIGHT;
    for (int t = 0; t < table_count; t++)
        for (int with_nan = 0; with_nan < 2; with_nan++) {
            desc.isa = tables[t]->isa;
            memcpy(desc.value.data, rows, KEYS * DIM * 2);
            if (with_nan)
                memset((uint16_t *)desc.value.data + (KEYS - 1) * DIM, 0xff, DIM * 2);
            desc.out = rapt_output_bhsd(with_nan ? out : finite, 1, 1, QUERIES, DIM);
            assert_int_equal(rapt_attention(&desc, NULL, NULL), RAPT_OK);
            if (with_nan) {
                expect_bits(out, finite, RESULTS - DIM, NAN_CANONICAL, "%s", tables[t]->name);
                assert_true(out[RESULTS - 1] != out[RESULTS - 1]);
            }
        }
    test_free_all();
}

static void run_in_new_memory(const rapt_attention_desc *desc) {
    rapt_plan plan;
    size_t bytes;
    assert_int_equal(rapt_plan_init(&plan, desc, NULL), RAPT_OK);
    assert_int_equal(rapt_phase_count(&plan), 2);
    assert_int_equal(rapt_plan_workspace_bytes(&plan, 1, &bytes), RAPT_OK);
    assert_int_equal(rapt_run(&plan, test_alloc(bytes), bytes, NULL), RAPT_OK); /* each byte is 0xff */
}

/* A chunk that no list names, within a later split: its state is empty, as if a mask excluded its keys. */
static void test_split_lists(void **state) {
    enum { CHUNK = 512, CHUNKS = 16, KEYS = CHUNKS * CHUNK, DIM = 16, ABSENT = 5 };
    static const int32_t offsets[2] = {0, CHUNKS - 1};
    static unsigned char mask[KEYS];
    struct random random = {12};
    int32_t entries[CHUNKS];
    uint16_t *rows = test_alloc(KEYS * DIM * 2);
    float *listed = test_floats(DIM), *masked = test_floats(DIM);
    rapt_attention_desc desc = RAPT_ATTENTION_DESC_INIT;
    (void)state;
    for (int i = 0; i < KEYS * DIM; i++)
        rows[i] = (uint16_t)(0x3e80 + random_below(&random, 256)); /* bfloat16 between 0.25 and 1 */
    for (int i = 0; i < CHUNKS; i++) {
        entries[i] = i + (i >= ABSENT);
        memset(mask + i * CHUNK, i != ABSENT, CHUNK);
    }
    desc.numerics = NUMERICS;
    desc.batch = desc.query_heads = desc.kv_heads = desc.query_length = 1, desc.kv_length = KEYS, desc.head_dim = DIM;
    desc.query = rapt_tensor_bhsd(rows, RAPT_BF16, 1, 1, 1, DIM);
    desc.key = desc.value = rapt_tensor_bhsd(rows, RAPT_BF16, 1, 1, KEYS, DIM);
    for (int t = 0; t < table_count; t++) {
        desc.isa = tables[t]->isa;
        desc.key_blocks = (rapt_block_list){.query_tokens = 1, .key_tokens = CHUNK};
        desc.key_blocks.offsets = rapt_int32_list(offsets, 2);
        desc.key_blocks.entries = rapt_int32_list(entries, CHUNKS - 1);
        desc.mask = (rapt_tensor){0};
        desc.out = rapt_output_bhsd(listed, 1, 1, 1, DIM);
        run_in_new_memory(&desc);
        desc.key_blocks = (rapt_block_list){0};
        desc.mask = (rapt_tensor){.data = mask, .dtype = RAPT_BOOL8};
        desc.out = rapt_output_bhsd(masked, 1, 1, 1, DIM);
        run_in_new_memory(&desc);
        expect_bits(listed, masked, DIM, NAN_CANONICAL, "%s", tables[t]->name);
        assert_true(listed[0] > 0.25f && listed[0] < 1);
    }
    test_free_all();
}

/* Each kind of weights, which the last task to finish writes. */
static void test_split_weights(void **state) {
    (void)state;
    for (int32_t kind = RAPT_WEIGHTS_RAW; kind <= RAPT_WEIGHTS_SOFTMAX; kind++)
        for (int64_t n = 0; n < scaled_count(4); n++) {
            const unsigned use = USE_WEIGHTS | (n % 2 ? USE_SOFTCAP | USE_MASK : 0);
            struct problem_call call = split_call((uint64_t)(n + kind * 9), use);
            call.weights_kind = kind;
            check_call(&call);
        }
}

static void test_split_random(void **state) {
    (void)state;
    for (int64_t n = 1; n <= scaled_count(40); n++) {
        struct problem_call call = random_call_of(NUMERICS, (uint64_t)n, 2500000);
        const struct problem_call sizes = split_call((uint64_t)n, 0);
        call.batch = 1 + n % 2;
        call.kv_heads = sizes.kv_heads;
        call.query_heads = sizes.query_heads;
        call.query_length = sizes.query_length;
        call.kv_length = sizes.kv_length;
        call.head_dim = call.value_dim = n % 3 ? 32 : 64; /* whole blocks of any type */
        check_call(&call);
    }
}

static void test_wide_random(void **state) {
    static const int64_t dims[] = {64, 128, 96, 256, 192, 160};
    (void)state;
    for (int64_t n = 1; n <= scaled_count(32); n++) {
        struct random random = {(uint64_t)n};
        struct problem_call call = random_call_of(NUMERICS, (uint64_t)n, 2500000);
        call.batch = 1;
        call.kv_heads = random_between(&random, 1, 2);
        call.query_heads = call.kv_heads * random_between(&random, 1, 3);
        call.query_length = random_between(&random, 65, 130);
        call.kv_length = random_between(&random, 520, 1100);
        call.head_dim = dims[n % 6];
        call.value_dim = n % 4 ? call.head_dim : dims[n / 6 % 6];
        check_call(&call);
    }
}

int main(int count, char **arguments) {
    table_count = tables_of(NUMERICS, tables);
    const struct CMUnitTest none[] = {cmocka_unit_test(test_absent)};
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_split_features), cmocka_unit_test(test_split_data), cmocka_unit_test(test_split_weights),
        cmocka_unit_test(test_split_excluded), cmocka_unit_test(test_split_lists),
        cmocka_unit_test(test_split_random),   cmocka_unit_test(test_wide_random),
    };
    if (table_count == 0)
        return cmocka_run_group_tests_name("calls_large", none, NULL, NULL);
    if (count > 1)
        cmocka_set_test_filter(arguments[1]);
    return cmocka_run_group_tests_name("calls_large", tests, NULL, NULL);
}
