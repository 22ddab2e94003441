/* SPDX-License-Identifier: MIT
 * Bugs that other attention libraries had with masks, NaN and schedules. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "support/pool.h"
#include "support/small.h"

static const struct rapt_table *tables[RAPT_ISA_COUNT];
static int table_count;

/* pytorch #127055, #103749: exp(-inf - -inf) if a whole block of keys is masked. */
static void test_masked_block(void **state) {
    (void)state;
    enum { KEYS = 1100 };
    for (int t = 0; t < table_count; t++) {
        struct small s = small_new(3, KEYS);
        unsigned char mask[3 * KEYS] = {0}; /* query 0: no key; 1: the second block; 2: the last key */
        for (int j = 256; j < 512; j++)
            mask[KEYS + j] = 1;
        mask[3 * KEYS - 1] = 1;
        s.desc.mask = (rapt_tensor){.data = mask, .dtype = RAPT_BOOL8, .token_stride_bytes = KEYS};
        small_run(&s, tables[t]->isa);
        for (int h = 0; h < HEADS; h++) {
            assert_true(row_is_zero(small_row(s.out, &s, 1, h, 0)));
            assert_true(s.lse[(HEADS + h) * 3] == -INFINITY);
            assert_true(row_is_finite(small_row(s.out, &s, 1, h, 1)));
            const float *last = s.value + ((KV_HEADS + h / 2) * KEYS + KEYS - 1) * DIM;
            for (int d = 0; d < DIM; d++)
                assert_true(fabsf(small_row(s.out, &s, 1, h, 2)[d] - last[d]) < 1e-6f);
        }
        test_free_all();
    }
}

/* The same for a whole chunk between two visible ones: the first one's sum stays. */
static void test_masked_chunk(void **state) {
    (void)state;
    enum { KEYS = 1100, BEGIN = 512, END = 1024 };
    for (int t = 0; t < table_count; t++)
        for (int64_t queries = 3; queries <= 200; queries += 197) {
            struct small s = small_new(queries, KEYS);
            unsigned char mask[KEYS];
            memset(mask, 1, sizeof mask);
            memset(mask + BEGIN, 0, END - BEGIN);
            memset(s.query, 0, (size_t)(BATCH * HEADS * queries * DIM) * sizeof(float)); /* each key weighs 1 */
            s.desc.mask = (rapt_tensor){.data = mask, .dtype = RAPT_BOOL8};
            small_run(&s, tables[t]->isa);
            for (int64_t r = 0; r < BATCH * HEADS * queries; r++)
                assert_true(fabsf(s.lse[r] - logf(KEYS - (END - BEGIN))) < 1e-5f);
            test_free_all();
        }
}

/* pytorch #141128: a NaN in the query came out as zeros. */
static void test_nan_in_query(void **state) {
    (void)state;
    for (int t = 0; t < table_count; t++) {
        for (int64_t queries = 1; queries <= 60; queries += 59) {
            struct small s = small_new(queries, 300);
            small_row(s.query, &s, 1, 2, queries - 1)[DIM - 1] = NAN;
            small_run(&s, tables[t]->isa);
            for (int64_t r = 0; r < BATCH * HEADS * queries; r++) {
                float *out = s.out + r * DIM;
                bool poisoned = out == small_row(s.out, &s, 1, 2, queries - 1);
                assert_true(poisoned ? row_is_nan(out) : row_is_finite(out));
                assert_true(poisoned == (bool)isnan(s.lse[r]));
            }
            test_free_all();
        }
    }
}

/* Query i sees key j unless (i + j) % 3 == 0: by a bool mask, or a bias of -infinity. */
static void mask_third(struct small *s, bool by_bias) {
    unsigned char *mask = test_alloc((size_t)(s->queries * s->keys));
    float *bias = test_floats(s->queries * s->keys);
    for (int64_t i = 0; i < s->queries; i++)
        for (int64_t j = 0; j < s->keys; j++) {
            mask[i * s->keys + j] = (i + j) % 3 != 0;
            bias[i * s->keys + j] = (i + j) % 3 ? 0 : -INFINITY;
        }
    if (by_bias)
        s->desc.bias = (rapt_tensor){.data = bias, .dtype = RAPT_F32, .token_stride_bytes = 4 * s->keys};
    else
        s->desc.mask = (rapt_tensor){.data = mask, .dtype = RAPT_BOOL8, .token_stride_bytes = s->keys};
}

static void check_bad_in_masked_key(rapt_isa isa, int64_t queries, bool by_bias, bool in_value, float bad, int64_t j) {
    struct small s = small_new(queries, 300);
    mask_third(&s, by_bias);
    small_run(&s, isa);
    memcpy(s.expected, s.out, (size_t)(BATCH * HEADS * queries * DIM) * sizeof(float));
    for (int b = 0; b < BATCH; b++) /* KV head 1 of both sequences */
        for (int d = 0; d < DIM; d++)
            (in_value ? s.value : s.key)[((b * KV_HEADS + 1) * 300 + j) * DIM + d] = bad;
    small_run(&s, isa);
    for (int64_t r = 0; r < BATCH * HEADS * queries; r++) {
        int64_t head = r / queries % HEADS, i = r % queries;
        bool sees = head >= 2 && (i + j) % 3 != 0;
        if (!sees)
            expect_bits(s.out + r * DIM, s.expected + r * DIM, DIM, NAN_CANONICAL, "row %d", (int)r);
        else if (in_value)
            assert_false(isfinite(s.out[r * DIM]));
        else if (isnan(bad))
            assert_true(row_is_nan(s.out + r * DIM));
    }
    test_free_all();
}

/* flash-attention #1745, #2374, pytorch #101967: 0 * NaN of a masked key or value. Rows that mask it ignore it; the
 * others are NaN. */
static void test_nan_in_masked_key(void **state) {
    (void)state;
    static const float bad[] = {NAN, INFINITY, -INFINITY};
    for (int t = 0; t < table_count; t++)
        for (int64_t queries = 1; queries <= 60; queries += 59)
            for (int k = 0; k < 12; k++)
                check_bad_in_masked_key(tables[t]->isa, queries, k >= 6, k % 6 < 3, bad[k % 3], k % 2 ? 299 : 120);
}

/* The same with a mask that ends after that key's block: the doubt remains until the chunk ends. */
static void test_nan_before_an_unmasked_block(void **state) {
    (void)state;
    enum { KEYS = 600, MASKED = 120, ROW = BATCH * HEADS * DIM };
    for (int t = 0; t < table_count; t++) {
        for (int64_t queries = 1; queries <= 60; queries += 59) {
            struct small s = small_new(queries, KEYS);
            unsigned char mask[KEYS];
            memset(mask, 1, sizeof mask);
            mask[MASKED] = 0;
            s.desc.mask = (rapt_tensor){.data = mask, .dtype = RAPT_BOOL8};
            small_run(&s, tables[t]->isa);
            memcpy(s.expected, s.out, (size_t)(ROW * queries) * sizeof(float));
            for (int64_t head = 0; head < BATCH * KV_HEADS; head++)
                s.value[(head * KEYS + MASKED) * DIM] = NAN;
            small_run(&s, tables[t]->isa);
            expect_bits(s.out, s.expected, ROW * queries, NAN_CANONICAL, "%d queries", (int)queries);
            test_free_all();
        }
    }
}

/* pytorch #141218: division by zero if a dimension is zero; ik_llama.cpp: abort on an empty mask. */
static void test_empty(void **state) {
    (void)state;
    for (int t = 0; t < table_count; t++) {
        struct small s = small_new(4, 8);
        unsigned char mask[1] = {1};
        rapt_tensor any = {.data = mask, .dtype = RAPT_BOOL8};
        s.desc.kv_length = 0;
        for (int with_mask = 0; with_mask < 2; with_mask++) {
            s.desc.mask = with_mask ? any : (rapt_tensor){0};
            memset(s.out, 0xff, BATCH * HEADS * 4 * DIM * sizeof(float));
            small_run(&s, tables[t]->isa);
            for (int64_t r = 0; r < BATCH * HEADS * 4; r++)
                assert_true(row_is_zero(s.out + r * DIM) && s.lse[r] == -INFINITY);
        }
        s.desc.key.data = s.desc.value.data = NULL; /* nothing to read */
        small_run(&s, tables[t]->isa);
        s.desc.kv_length = 8;
        s.desc.mask = (rapt_tensor){0};
        s.desc.key.data = s.key, s.desc.value.data = s.value;
        memset(s.out, 0xff, sizeof(float));
        s.desc.query_length = 0;
        small_run(&s, tables[t]->isa);
        s.desc.query_length = 4;
        s.desc.batch = 0;
        small_run(&s, tables[t]->isa);
        assert_true(isnan(s.out[0])); /* not written */
        test_free_all();
    }
}

/* openvino #30482, llama.cpp #95: bits by thread count; llama.cpp #6583: by batch size. */
static void test_threads_and_neighbours(void **state) {
    (void)state;
    for (int t = 0; t < table_count; t++) {
        struct small s = small_new(3, 3000);
        small_run(&s, tables[t]->isa);
        memcpy(s.expected, s.out, (size_t)(BATCH * HEADS * 3 * DIM) * sizeof(float));
        rapt_plan plan;
        size_t bytes;
        assert_int_equal(rapt_plan_init(&plan, &s.desc, NULL), RAPT_OK);
        assert_int_equal(rapt_plan_workspace_bytes(&plan, 7, &bytes), RAPT_OK);
        void *workspace = test_alloc(bytes);
        for (int threads = 1; threads <= 7; threads++) {
            struct pool pool = {.threads = threads};
            rapt_run_options options = {.struct_size = sizeof options,
                                        .max_threads = threads,
                                        .parallel_for = pool_parallel_for,
                                        .parallel_for_context = &pool};
            assert_int_equal(rapt_run(&plan, workspace, bytes, &options), RAPT_OK);
            expect_bits(s.out, s.expected, BATCH * HEADS * 3 * DIM, NAN_CANONICAL, "%d threads", threads);
        }
        s.desc.batch = 1; /* the second sequence alone */
        s.desc.query.data = small_row(s.query, &s, 1, 0, 0);
        s.desc.key.data = s.key + KV_HEADS * 3000 * DIM;
        s.desc.value.data = s.value + KV_HEADS * 3000 * DIM;
        small_run(&s, tables[t]->isa);
        expect_bits(s.out, small_row(s.expected, &s, 1, 0, 0), HEADS * 3 * DIM, NAN_CANONICAL, "alone");
        test_free_all();
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_masked_block),
        cmocka_unit_test(test_masked_chunk),
        cmocka_unit_test(test_nan_in_query),
        cmocka_unit_test(test_nan_in_masked_key),
        cmocka_unit_test(test_nan_before_an_unmasked_block),
        cmocka_unit_test(test_empty),
        cmocka_unit_test(test_threads_and_neighbours),
    };
    table_count = machine_tables(tables);
    return cmocka_run_group_tests_name("peers", tests, NULL, NULL);
}
