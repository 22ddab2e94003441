/* SPDX-License-Identifier: MIT
 * Appending, rotating and products with strides beyond 32 bits wherever there is one. */
#include "calls/far_parts.h"
#include "rapt/cache.h"
#include "rapt/matmul.h"
#include "support/cmocka_all.h"

static const struct rapt_table *tables[RAPT_ISA_COUNT];
static int table_count;

static void append(void *call) {
    rapt_message message = {""};
    if (rapt_append(call, NULL, &message) != RAPT_OK)
        fail_msg("%s", message.text);
}

static rapt_append_desc appending(void) {
    rapt_append_desc desc = RAPT_APPEND_DESC_INIT;
    desc.batch = SEQUENCES;
    desc.kv_heads = GROUPS;
    desc.length = KEYS;
    desc.head_dim = WIDTH;
    desc.key = drawn(SEQUENCES, GROUPS, KEYS, WIDTH);
    desc.value = drawn(SEQUENCES, GROUPS, KEYS, WIDTH);
    desc.rotary.pairing = RAPT_ROTARY_HALVES;
    desc.rotary.base = 10000;
    return desc;
}

static void test_append(void **state) {
    static const int32_t positions[SEQUENCES] = {0, 0};
    (void)state;
    for (int t = 0; t < table_count; t++) {
        rapt_append_desc desc = appending();
        desc.isa = tables[t]->isa;
        desc.cache_length = KEYS;
        desc.positions = rapt_int32_list(positions, SEQUENCES);
        desc.key_cache = drawn_bytes(SEQUENCES, GROUPS, KEYS, WIDTH * 2);
        desc.key_cache.dtype = RAPT_F16;
        desc.value_cache = drawn(SEQUENCES, GROUPS, KEYS, WIDTH);
        const struct part parts[] = {{&desc.key, {SEQUENCES, GROUPS, KEYS}, WIDTH * 4, false, false},
                                     {&desc.value, {SEQUENCES, GROUPS, KEYS}, WIDTH * 4, false, false},
                                     {&desc.key_cache, {SEQUENCES, GROUPS, KEYS}, WIDTH * 2, true, false},
                                     {&desc.value_cache, {SEQUENCES, GROUPS, KEYS}, WIDTH * 4, true, false}};
        check_parts(parts, sizeof parts / sizeof *parts, append, &desc);
        test_free_all();
    }
}

struct scaled_append {
    rapt_append_desc desc;
    rapt_tensor scales; /* of the value cache */
};

static void append_scaled(void *call) {
    struct scaled_append *scaled = call;
    set_scales(&scaled->desc.value_cache, &scaled->scales);
    append(&scaled->desc);
}

/* By slots, into pages whose scales are computed. */
static void test_append_pages(void **state) {
    enum { PAGES = 8, TOKENS = 2 };
    int64_t slots[PAGES * TOKENS];
    (void)state;
    for (int64_t i = 0; i < PAGES * TOKENS; i++)
        slots[i] = i * 5 % (PAGES * TOKENS);
    for (int t = 0; t < table_count; t++) {
        struct scaled_append call = {appending(), drawn(PAGES, GROUPS, TOKENS, 1)};
        rapt_append_desc *const desc = &call.desc;
        desc->isa = tables[t]->isa;
        desc->slots = desc->rotary_positions = rapt_int64_list(slots, PAGES * TOKENS);
        desc->pages = (rapt_page_table){.page_tokens = TOKENS, .pages = PAGES};
        desc->key_cache = in_pages(drawn(PAGES, GROUPS, TOKENS, WIDTH));
        desc->value_cache = in_pages(drawn_bytes(PAGES, GROUPS, TOKENS, WIDTH));
        desc->features = RAPT_COMPUTE_VALUE_SCALES;
        const struct part parts[] = {{&desc->key_cache, {PAGES, GROUPS, TOKENS}, WIDTH * 4, true, true},
                                     {&desc->value_cache, {PAGES, GROUPS, TOKENS}, WIDTH, true, true},
                                     {&call.scales, {PAGES, GROUPS, TOKENS}, 4, true, false}};
        check_parts(parts, sizeof parts / sizeof *parts, append_scaled, &call);
        test_free_all();
    }
}

static void rotate(void *call) {
    rapt_message message = {""};
    if (rapt_rotate(call, NULL, &message) != RAPT_OK)
        fail_msg("%s", message.text);
}

static void test_rotate(void **state) {
    static const int32_t positions[SEQUENCES] = {3, 70};
    (void)state;
    for (int t = 0; t < table_count; t++) {
        rapt_rotate_desc desc = RAPT_ROTATE_DESC_INIT;
        desc.isa = tables[t]->isa;
        desc.batch = SEQUENCES;
        desc.heads = QUERY_HEADS;
        desc.length = QUERIES;
        desc.head_dim = WIDTH;
        desc.in = drawn(SEQUENCES, QUERY_HEADS, QUERIES, WIDTH);
        desc.out = drawn(SEQUENCES, QUERY_HEADS, QUERIES, WIDTH);
        desc.first_positions = rapt_int32_list(positions, SEQUENCES);
        desc.rotary = appending().rotary;
        const struct part parts[] = {{&desc.in, {SEQUENCES, QUERY_HEADS, QUERIES}, WIDTH * 4, false, false},
                                     {&desc.out, {SEQUENCES, QUERY_HEADS, QUERIES}, WIDTH * 4, true, false}};
        check_parts(parts, sizeof parts / sizeof *parts, rotate, &desc);
        test_free_all();
    }
}

static void test_products(void **state) {
    enum { ROWS = 5, INNER = 24, COLUMNS = 7 };
    struct random random = {3};
    const float *x = test_drawn(&random, ROWS * INNER, random_uniform);
    const float *weight = test_drawn(&random, INNER * COLUMNS, random_uniform);
    (void)state;
    for (int t = 0; t < table_count * 2; t++) {
        const bool in_out = t % 2;
        const int64_t lines = in_out ? INNER : COLUMNS, numbers = in_out ? COLUMNS : INNER;
        float near[ROWS][COLUMNS];
        rapt_matmul_desc desc = RAPT_MATMUL_DESC_INIT;
        desc.isa = tables[t / 2]->isa;
        desc.rows = ROWS;
        desc.inner = INNER;
        desc.columns = COLUMNS;
        desc.weight_layout = in_out ? RAPT_WEIGHT_IN_OUT : RAPT_WEIGHT_OUT_IN;
        desc.x = x;
        desc.weight = weight;
        desc.out = near[0];
        desc.x_stride_bytes = INNER * 4;
        desc.weight_stride_bytes = numbers * 4;
        desc.out_stride_bytes = COLUMNS * 4;
        assert_int_equal(rapt_matmul(&desc, NULL, NULL), RAPT_OK);
        desc.x = (float *)(void *)far_map();
        desc.weight = (float *)(void *)(far_map() + 4096);
        desc.out = (float *)(void *)(far_map() + 8192);
        desc.x_stride_bytes = desc.out_stride_bytes = FAR;
        desc.weight_stride_bytes = FAR / 4; /* there are more rows */
        for (int64_t i = 0; i < ROWS; i++)
            memcpy(far_map() + i * FAR, x + i * INNER, INNER * 4);
        for (int64_t i = 0; i < lines; i++)
            memcpy(far_map() + 4096 + i * (FAR / 4), weight + i * numbers, (size_t)numbers * 4);
        assert_int_equal(rapt_matmul(&desc, NULL, NULL), RAPT_OK);
        for (int64_t i = 0; i < ROWS; i++)
            assert_memory_equal(far_map() + 8192 + i * FAR, near[i], COLUMNS * 4);
    }
    test_free_all();
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_append),
        cmocka_unit_test(test_append_pages),
        cmocka_unit_test(test_rotate),
        cmocka_unit_test(test_products),
    };
    table_count = machine_tables(tables);
    return cmocka_run_group_tests_name("far_caches", tests, NULL, NULL);
}
