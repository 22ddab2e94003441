/* SPDX-License-Identifier: MIT
 * Keys and values of all pairs of storage types, on every table: the bits of the specification, which widens each
 * number first and computes in float32. */
#include <stdlib.h>

#include "reference/reference.h"
#include "support/cmocka_all.h"
#include "support/problem.h"
#include "support/stored.h"

static void check(struct problem_call call, int key_format, int value_format) {
    const struct rapt_table *tables[RAPT_ISA_COUNT];
    const int count = machine_tables(tables);
    call.key_format = key_format;
    call.value_format = value_format;
    struct problem *expected = problem_expected(&call);
    for (int table = 0; table < count; table++) {
        const struct problem_way way = {.isa = tables[table]->isa, .threads = 1};
        const struct problem_layout layout = {.seed = call.seed + (uint64_t)table + 1, .poison = true};
        problem_check(expected, &layout, &way);
    }
    problem_free(expected);
    test_free_all();
}

/* Calls with few features, so that the numbers reach the results. */
static struct problem_call draw(struct random *random, int64_t most_keys) {
    static const int64_t dims[] = {32, 64, 96, 128, 160}, odd[] = {1, 7, 15, 17, 31, 33, 63, 65};
    struct problem_call call = {.use = (unsigned)random_bits(random) & (USE_LSE | USE_WEIGHTS | USE_CAUSAL | USE_MASK),
                                .seed = random_bits(random) % 1000000};
    call.data = random_chance(random, 80) ? DATA_NORMAL : DATA_SPECIAL;
    call.origin = RAPT_ORIGIN_BOTTOM_RIGHT;
    call.weights_kind = (int32_t)random_between(random, RAPT_WEIGHTS_RAW, RAPT_WEIGHTS_SOFTMAX);
    call.batch = random_between(random, 1, 2);
    call.kv_heads = random_between(random, 1, 2);
    call.query_heads = call.kv_heads * random_between(random, 1, 5);
    call.query_length = random_chance(random, 50) ? 1 : random_between(random, 1, 40);
    call.kv_length = random_between(random, 1, most_keys);
    call.head_dim = random_chance(random, 70) ? dims[random_below(random, 5)] : odd[random_below(random, 8)];
    call.value_dim = random_chance(random, 70) ? dims[random_below(random, 5)] : odd[random_below(random, 8)];
    call.key_scales = (int)random_below(random, 6) * 16;
    call.value_scales = random_chance(random, 50) ? 1 : call.key_scales;
    return call;
}

static bool divides(int format, int64_t dim) { return dim % rapt_format_info(format)->elements == 0; }

static void check_pair(struct random *random, int key_format, int value_format) {
    for (int64_t i = 0; i < scaled_work(6); i++) {
        struct problem_call call;
        do
            call = draw(random, i > 0 ? 120 : scaled_work(100) < 100 ? 300 : 900);
        while (!divides(key_format, call.head_dim) || !divides(value_format, call.value_dim));
        check(call, key_format, value_format);
    }
}

static void test_pairs(void **state) {
    struct random random = {7};
    (void)state;
    for (int key = 0; key < RAPT_FORMAT_COUNT; key++)
        for (int value = 0; value < RAPT_FORMAT_COUNT; value++)
            if (stored_is_key_value(key) && stored_is_key_value(value) &&
                (key == value || scaled_work(100) >= 100 || random_chance(&random, 15)))
                check_pair(&random, key, value);
}

/* Few rows against many keys, in two phases; and so many rows that blocks are staged ahead. */
static void test_lengths(void **state) {
    static const struct problem_call split = {
        .batch = 1, .query_heads = 4, .kv_heads = 1, .query_length = 1, .kv_length = 6000, .head_dim = 64,
        .value_dim = 32, .use = USE_LSE | USE_WEIGHTS | USE_CAUSAL, .origin = RAPT_ORIGIN_BOTTOM_RIGHT,
        .weights_kind = RAPT_WEIGHTS_SOFTMAX, .seed = 3};
    static const struct problem_call wide = {
        .batch = 1, .query_heads = 4, .kv_heads = 1, .query_length = 100, .kv_length = 1100, .head_dim = 64,
        .value_dim = 96, .use = USE_LSE | USE_CAUSAL, .origin = RAPT_ORIGIN_BOTTOM_RIGHT, .seed = 4};
    (void)state;
    for (int format = 0; format < RAPT_FORMAT_COUNT; format++)
        if (stored_is_key_value(format) && (scaled_work(100) >= 100 || format % 4 == 1)) {
            check(split, format, format);
            check(wide, format, format);
        }
}

/* The library's float32 path on numbers widened in advance gives the same bits. */
static void test_widened(void **state) {
    struct random random = {9};
    (void)state;
    for (int format = 0; format < RAPT_FORMAT_COUNT; format++) {
        if (!stored_is_key_value(format))
            continue;
        struct problem_call call = draw(&random, 700);
        call.head_dim = call.value_dim = 64;
        call.key_format = call.value_format = format;
        struct problem *stored = problem_new(&call), *wide = problem_new(&call);
        const struct rapt_reference_copy copy = rapt_reference_widen(&wide->desc);
        const struct problem_way way = {.isa = RAPT_ISA_AUTO, .threads = 1};
        problem_run(stored, &way);
        problem_run(wide, &way);
        assert_true(problem_same(stored, wide));
        free(copy.key);
        free(copy.value);
        problem_free(stored);
        problem_free(wide);
    }
}

/* One scale for a tensor, a head, a sequence, or a token of all heads. */
static void test_shared_scales(void **state) {
    struct random random = {10};
    (void)state;
    for (int format = 0; format < RAPT_FORMAT_COUNT; format++)
        for (int shared = 0; shared < 8 && (rapt_format_info(format)->uses & RAPT_MAY_SCALE); shared++) {
            struct problem_call call = draw(&random, 300);
            call.key_format = call.value_format = format;
            call.key_scales = shared % 2 ? 1 : 32;
            call.value_scales = shared % 2 ? 16 : 1;
            struct problem *expected = problem_new(&call), *problem = problem_new(&call);
            rapt_tensor *const tensors[] = {&expected->desc.key, &expected->desc.value, &problem->desc.key,
                                            &problem->desc.value};
            for (int i = 0; i < 4; i++) {
                tensors[i]->scale_batch_stride_bytes *= shared & 1;
                tensors[i]->scale_head_stride_bytes *= shared >> 1 & 1;
                tensors[i]->scale_token_stride_bytes *= shared >> 2 & 1;
            }
            const struct problem_way way = {.isa = RAPT_ISA_AUTO, .threads = 1};
            rapt_reference_attention(&expected->desc);
            problem_run(problem, &way);
            assert_true(problem_same(problem, expected));
            problem_free(expected);
            problem_free(problem);
        }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_pairs), cmocka_unit_test(test_lengths),
                                       cmocka_unit_test(test_widened), cmocka_unit_test(test_shared_scales)};
    return cmocka_run_group_tests_name("storage", tests, NULL, NULL);
}
