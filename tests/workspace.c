/* SPDX-License-Identifier: MIT
 * The bounds of the workspace that docs/performance.md states. */
#include <stdbool.h>

#include "cmocka_all.h"
#include "rapt/rapt.h"

enum { KIB = 1024, HEADS = 8, STATE_KEYS = 512 };

static float memory[16]; /* plans look at addresses only */

/* Tokens follow each other, or heads do. */
static size_t bytes_of(int64_t queries, int64_t keys, int64_t dim, bool heads_first, int64_t threads) {
    rapt_attention_desc desc = RAPT_ATTENTION_DESC_INIT;
    rapt_plan plan;
    rapt_message message;
    size_t bytes = 0;
    desc.batch = 1;
    desc.query_heads = desc.kv_heads = HEADS;
    desc.query_length = queries;
    desc.kv_length = keys;
    desc.head_dim = dim;
    desc.query = rapt_input_bhsd(memory, 1, HEADS, queries, dim);
    desc.key = desc.value = rapt_input_bhsd(memory, 1, HEADS, keys, dim);
    desc.out = rapt_output_bhsd((float *)((uintptr_t)1 << 46), 1, HEADS, queries, dim);
    if (!heads_first) {
        desc.key.head_stride_bytes = dim * 4;
        desc.key.token_stride_bytes = HEADS * dim * 4;
        desc.value = desc.key;
    }
    if (rapt_plan_init(&plan, &desc, &message) != RAPT_OK)
        fail_msg("%s", message.text);
    assert_int_equal(rapt_plan_workspace_bytes(&plan, threads, &bytes), RAPT_OK);
    return bytes;
}

/* Prefill: a bound for each thread, whatever the lengths. */
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

/* Decode: besides, a state for each head and each 512 keys. */
static void test_decode(void **state) {
    const int64_t dim = 128, keys = (int64_t)1 << 20;
    size_t states = (size_t)(HEADS * (keys / STATE_KEYS + 2) * (dim + 32) * (int64_t)sizeof(float));
    assert_true(bytes_of(1, keys, dim, true, 1) <= states + 384 * KIB);
    assert_true(bytes_of(1, keys, dim, true, 1) > states / 2);
    (void)state;
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_prefill), cmocka_unit_test(test_decode)};
    return cmocka_run_group_tests_name("workspace", tests, NULL, NULL);
}
