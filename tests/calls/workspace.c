/* SPDX-License-Identifier: MIT
 * The workspace bounds that docs/performance.md states. */
#include <stdbool.h>

#include "rapt/rapt.h"
#include "support/cmocka_all.h"

enum { KIB = 1024, HEADS = 8, STATE_KEYS = 512 };

static float memory[16]; /* plans read addresses only */

static rapt_attention_desc shape(int64_t queries, int64_t keys, int64_t dim) {
    rapt_attention_desc desc = RAPT_ATTENTION_DESC_INIT;
    desc.batch = 1;
    desc.query_heads = desc.kv_heads = HEADS;
    desc.query_length = queries;
    desc.kv_length = keys;
    desc.head_dim = dim;
    desc.query = rapt_input_bhsd(memory, 1, HEADS, queries, dim);
    desc.key = desc.value = rapt_input_bhsd(memory, 1, HEADS, keys, dim);
    desc.out = rapt_output_bhsd((float *)((uintptr_t)1 << 46), 1, HEADS, queries, dim);
    return desc;
}

static size_t bytes_of_plan(const rapt_attention_desc *desc, int64_t threads) {
    rapt_plan plan;
    rapt_message message;
    size_t bytes = 0;
    if (rapt_plan_init(&plan, desc, &message) != RAPT_OK)
        fail_msg("%s", message.text);
    assert_int_equal(rapt_plan_workspace_bytes(&plan, threads, &bytes), RAPT_OK);
    return bytes;
}

/* Tokens are contiguous, or heads are. */
static size_t bytes_of(int64_t queries, int64_t keys, int64_t dim, bool heads_first, int64_t threads) {
    rapt_attention_desc desc = shape(queries, keys, dim);
    if (!heads_first) {
        desc.key.head_stride_bytes = dim * 4;
        desc.key.token_stride_bytes = HEADS * dim * 4;
        desc.value = desc.key;
    }
    return bytes_of_plan(&desc, threads);
}

/* Prefill: a bound per thread, whatever the lengths. */
static void test_prefill(void **state) {
    static const struct {
        int64_t dim;
        size_t in_place, staged; /* KiB */
    } bounds[] = {{64, 256, 640}, {128, 384, 1280}, {256, 768, 1792}};
    for (size_t i = 0; i < sizeof bounds / sizeof *bounds; i++)
        for (int heads_first = 0; heads_first < 2; heads_first++) {
            const int64_t dim = bounds[i].dim;
            size_t bound = (heads_first ? bounds[i].in_place : bounds[i].staged) * KIB;
            size_t one = bytes_of(2048, 2048, dim, heads_first, 1);
            assert_true(one <= bound);
            assert_true(bytes_of(2048, 2048, dim, heads_first, 16) <= 16 * bound);
            assert_int_equal(bytes_of((int64_t)1 << 20, (int64_t)1 << 20, dim, heads_first, 1), one);
        }
    (void)state;
}

/* Decode: also a state per head and 512 keys. */
static void test_decode(void **state) {
    const int64_t dim = 128, keys = (int64_t)1 << 20;
    size_t states = (size_t)(HEADS * (keys / STATE_KEYS + 2) * (dim + 32) * (int64_t)sizeof(float));
    assert_true(bytes_of(1, keys, dim, true, 1) <= states + 384 * KIB);
    assert_true(bytes_of(1, keys, dim, true, 1) > states / 2);
    (void)state;
}

static size_t bound_of(const rapt_attention_desc *desc, int64_t threads) {
    rapt_message message;
    size_t bytes = 0;
    if (rapt_workspace_bound(desc, threads, &bytes, &message) != RAPT_OK)
        fail_msg("%s", message.text);
    return bytes;
}

/* Only keys that a window may show count, for a plan and for a capacity. */
static void test_window(void **state) {
    enum { WINDOW = 900, OPEN = 1 << 20 };
    static const int64_t queries[] = {1, 8, 64, 65, 1000};
    (void)state;
    for (int i = 0; i < 5; i++)
        for (int64_t keys = 1 << 20; keys <= (int64_t)1 << 31; keys <<= 11)
            for (int way = 0; way < 3; way++) {
                rapt_attention_desc desc = shape(queries[i], keys, 64);
                desc.query_origin = RAPT_ORIGIN_BOTTOM_RIGHT;
                desc.features = way == 0 ? RAPT_WINDOW | RAPT_CAUSAL : RAPT_WINDOW;
                desc.window_left = way == 2 ? 0 : WINDOW;
                desc.window_right = way == 0 ? -1 : way == 1 ? 0 : WINDOW;
                assert_true(bytes_of_plan(&desc, 1) <= 256 * KIB);
                assert_true(bound_of(&desc, 1) <= 1536 * KIB);
                /* Open on one side it shows all keys, and some batch of them may be split. */
                *(way == 2 ? &desc.window_right : &desc.window_left) = -1;
                assert_true(bound_of(&desc, 1) > 4096 * KIB);
                desc.window_left = desc.window_right = OPEN;
                desc.features = RAPT_WINDOW;
                assert_true(bound_of(&desc, 1) > 4096 * KIB);
                desc.window_left = desc.window_right = INT64_MAX;
                assert_true(bound_of(&desc, 1) > 4096 * KIB);
            }
}

/* Wherever the window lies among the chunks. */
static void test_places_of_windows(void **state) {
    enum { QUERIES = 64, KEYS = 1 << 20, LEFT = 9 * STATE_KEYS };
    int64_t position = 0, split = 0;
    (void)state;
    for (int64_t left = LEFT - 70; left <= LEFT + 10; left += 5) {
        rapt_attention_desc desc = shape(QUERIES, KEYS, 64);
        desc.features = RAPT_WINDOW;
        desc.window_left = left;
        desc.query_origin = RAPT_ORIGIN_GIVEN;
        desc.query_position = rapt_int64_list(&position, 1);
        const size_t bound = bound_of(&desc, 1);
        for (position = KEYS / 2; position < KEYS / 2 + STATE_KEYS; position++) {
            const size_t bytes = bytes_of_plan(&desc, 1);
            assert_true(bytes <= bound);
            split += bytes > 256 * KIB;
        }
    }
    assert_true(split > 1000);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_prefill), cmocka_unit_test(test_decode),
                                       cmocka_unit_test(test_window), cmocka_unit_test(test_places_of_windows)};
    return cmocka_run_group_tests_name("workspace", tests, NULL, NULL);
}
