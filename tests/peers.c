/* SPDX-License-Identifier: MIT
 * Bugs that other attention libraries had. Each name tells where. */
#define _DEFAULT_SOURCE
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <sys/mman.h>

#include <cmocka.h>

#include "pool.h"
#include "scene_run.h"
#include "support.h"

static const struct rapt_kernels *tables[RAPT_ISA_COUNT];
static int table_count;

/* A small call on plain memory, all of it attended: 2 sequences, 4 heads on 2. */
enum { BATCH = 2, HEADS = 4, KV_HEADS = 2, DIM = 20 };
struct small {
    int64_t queries, keys;
    float *query, *key, *value, *out, *lse, *expected;
    rapt_attention_desc desc;
};

static struct small small_new(int64_t queries, int64_t keys) {
    struct random random = {7};
    struct small s = {.queries = queries, .keys = keys};
    s.query = test_drawn(&random, BATCH * HEADS * queries * DIM, random_uniform);
    s.key = test_drawn(&random, BATCH * KV_HEADS * keys * DIM, random_uniform);
    s.value = test_drawn(&random, BATCH * KV_HEADS * keys * DIM, random_uniform);
    s.out = test_floats(BATCH * HEADS * queries * DIM);
    s.expected = test_floats(BATCH * HEADS * queries * DIM);
    s.lse = test_floats(BATCH * HEADS * queries);
    rapt_attention_desc desc = RAPT_ATTENTION_DESC_INIT;
    desc.batch = BATCH;
    desc.query_heads = HEADS;
    desc.kv_heads = KV_HEADS;
    desc.query_length = queries;
    desc.kv_length = keys;
    desc.head_dim = DIM;
    desc.query = rapt_tensor_bhsd(s.query, HEADS, queries, DIM);
    desc.key = rapt_tensor_bhsd(s.key, KV_HEADS, keys, DIM);
    desc.value = rapt_tensor_bhsd(s.value, KV_HEADS, keys, DIM);
    desc.out = rapt_tensor_bhsd(s.out, HEADS, queries, DIM);
    desc.lse = rapt_tensor_bhsd(s.lse, HEADS, queries, 1);
    s.desc = desc;
    return s;
}

static void run(struct small *s, int table) {
    rapt_message message = {{0}};
    s->desc.isa = tables[table]->isa;
    if (rapt_attention(&s->desc, &message) != RAPT_OK)
        fail_msg("%s", message.text);
}

static float *row(float *rows, const struct small *s, int64_t b, int64_t h, int64_t i) {
    return rows + ((b * HEADS + h) * s->queries + i) * DIM;
}

static bool is_zero(const float *x) {
    bool zero = true;
    for (int d = 0; d < DIM; d++)
        zero = zero && bits_of(x[d]) == 0;
    return zero;
}

static bool is_nan(const float *x) {
    bool nan = true;
    for (int d = 0; d < DIM; d++)
        nan = nan && bits_of(x[d]) == 0x7fc00000u;
    return nan;
}

static bool is_finite(const float *x) {
    bool finite = true;
    for (int d = 0; d < DIM; d++)
        finite = finite && isfinite(x[d]);
    return finite;
}

/* pytorch #127055, #103749: exp(-inf - -inf) where a whole block of keys is masked. */
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
        run(&s, t);
        for (int h = 0; h < HEADS; h++) {
            assert_true(is_zero(row(s.out, &s, 1, h, 0)));
            assert_true(s.lse[(HEADS + h) * 3] == -INFINITY);
            assert_true(is_finite(row(s.out, &s, 1, h, 1)));
            const float *last = s.value + ((KV_HEADS + h / 2) * KEYS + KEYS - 1) * DIM;
            for (int d = 0; d < DIM; d++)
                assert_true(fabsf(row(s.out, &s, 1, h, 2)[d] - last[d]) < 1e-6f);
        }
        test_free_all();
    }
}

/* pytorch #141128: a NaN in the query came out as zeros. */
static void test_nan_in_query(void **state) {
    (void)state;
    for (int t = 0; t < table_count; t++) {
        for (int64_t queries = 1; queries <= 60; queries += 59) {
            struct small s = small_new(queries, 300);
            row(s.query, &s, 1, 2, queries - 1)[DIM - 1] = NAN;
            run(&s, t);
            for (int64_t r = 0; r < BATCH * HEADS * queries; r++) {
                float *out = s.out + r * DIM;
                bool poisoned = out == row(s.out, &s, 1, 2, queries - 1);
                assert_true(poisoned ? is_nan(out) : is_finite(out));
                assert_true(poisoned == (bool)isnan(s.lse[r]));
            }
            test_free_all();
        }
    }
}

/* A mask under which query i sees key j unless (i + j) % 3 == 0. */
static unsigned char *third_masked(const struct small *s) {
    unsigned char *mask = test_alloc((size_t)(s->queries * s->keys));
    for (int64_t i = 0; i < s->queries; i++)
        for (int64_t j = 0; j < s->keys; j++)
            mask[i * s->keys + j] = (i + j) % 3 != 0;
    return mask;
}

/* flash-attention #1745, #2374, pytorch #101967: 0 * NaN of a masked key or
 * value. Rows that mask it are as if it were not there; the others are NaN. */
static void test_nan_in_masked_key(void **state) {
    (void)state;
    static const float bad[] = {NAN, INFINITY, -INFINITY};
    for (int t = 0; t < table_count; t++) {
        for (int64_t queries = 1; queries <= 60; queries += 59) {
            for (int k = 0; k < 6; k++) {
                struct small s = small_new(queries, 300);
                s.desc.mask = (rapt_tensor){.data = third_masked(&s), .dtype = RAPT_BOOL8, .token_stride_bytes = 300};
                run(&s, t);
                memcpy(s.expected, s.out, (size_t)(BATCH * HEADS * queries * DIM) * sizeof(float));
                int64_t j = k % 2 ? 299 : 120; /* KV head 1 of both sequences */
                for (int b = 0; b < BATCH; b++)
                    for (int d = 0; d < DIM; d++)
                        (k < 3 ? s.value : s.key)[((b * KV_HEADS + 1) * 300 + j) * DIM + d] = bad[k % 3];
                run(&s, t);
                for (int64_t r = 0; r < BATCH * HEADS * queries; r++) {
                    int64_t head = r / queries % HEADS, i = r % queries;
                    bool sees = head >= 2 && (i + j) % 3 != 0;
                    if (!sees)
                        expect_bits(s.out + r * DIM, s.expected + r * DIM, DIM, NAN_CANONICAL, "row %d", (int)r);
                    else if (k < 3)
                        assert_false(isfinite(s.out[r * DIM]));
                    else if (isnan(bad[k % 3]))
                        assert_true(is_nan(s.out + r * DIM));
                }
                test_free_all();
            }
        }
    }
}

/* pytorch #141218: a division by zero where a dimension is zero; ik_llama.cpp:
 * abort on an empty mask. */
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
            run(&s, t);
            for (int64_t r = 0; r < BATCH * HEADS * 4; r++)
                assert_true(is_zero(s.out + r * DIM) && s.lse[r] == -INFINITY);
        }
        s.desc.key.data = s.desc.value.data = NULL; /* nothing to read */
        run(&s, t);
        s.desc.kv_length = 8;
        s.desc.mask = (rapt_tensor){0};
        s.desc.key.data = s.key, s.desc.value.data = s.value;
        memset(s.out, 0xff, sizeof(float));
        s.desc.query_length = 0;
        run(&s, t);
        s.desc.query_length = 4;
        s.desc.batch = 0;
        run(&s, t);
        assert_true(isnan(s.out[0])); /* not written */
        test_free_all();
    }
}

static void expect_status(const struct small *s, rapt_status expected) {
    rapt_message message = {{0}};
    rapt_status status = rapt_attention(&s->desc, &message);
    if (status != expected)
        fail_msg("status %s instead of %s: %s", rapt_status_text(status), rapt_status_text(expected), message.text);
    assert_true(message.text[0] != 0);
    for (int64_t i = 0; i < BATCH * HEADS * s->queries * DIM; i++)
        assert_int_equal(bits_of(s->out[i]), 0xffffffffu);
}

/* onnxruntime #28031, #29447, flash-attention #2709: a length used as a size
 * before anyone looked at it. */
static void test_lengths(void **state) {
    (void)state;
    static const int64_t wrong[] = {-1, 9, INT64_MIN, INT64_MAX, 1ll << 32, (1ll << 32) + 1};
    for (int w = 0; w < 6; w++) {
        for (int b = 0; b < BATCH; b++) {
            struct small s = small_new(4, 8);
            int64_t lengths[BATCH] = {2, 2};
            lengths[b] = wrong[w];
            s.desc.kv_lengths = (rapt_index_list){.data = lengths, .index_bytes = 8};
            expect_status(&s, RAPT_INVALID_VALUE);
            s.desc.kv_lengths = (rapt_index_list){0};
            s.desc.query_lengths = (rapt_index_list){.data = lengths, .index_bytes = 8};
            expect_status(&s, RAPT_INVALID_VALUE);
            test_free_all();
        }
    }
}

/* CVE-2026-33298, CVE-2024-21802 (ggml): products of sizes that wrap round to something small. */
static void test_sizes_that_overflow(void **state) {
    (void)state;
    static const int64_t big[] = {1ll << 31, 1ll << 32, 1ll << 61, 1ll << 62, INT64_MAX};
    for (int k = 0; k < 5; k++) {
        struct small s = small_new(4, 8);
        s.desc.lse = (rapt_tensor){0};
        s.desc.query.extent_bytes = s.desc.out.extent_bytes = BATCH * HEADS * 4 * DIM * 4;
        s.desc.key.extent_bytes = s.desc.value.extent_bytes = BATCH * KV_HEADS * 8 * DIM * 4;
        rapt_attention_desc good = s.desc;
        int64_t *const strides[] = {&s.desc.query.batch_stride_bytes, &s.desc.key.head_stride_bytes,
                                    &s.desc.value.token_stride_bytes, &s.desc.out.token_stride_bytes};
        for (int i = 0; k >= 2 && i < 4; i++) {
            s.desc = good;
            *strides[i] = big[k] - big[k] % 4;
            rapt_status status = rapt_attention(&s.desc, NULL);
            assert_true(status == RAPT_INVALID_STRIDE || status == RAPT_OUT_OF_EXTENT);
        }
        int64_t *const dims[] = {&s.desc.batch, &s.desc.query_length, &s.desc.kv_length, &s.desc.head_dim};
        for (int i = 0; i < 4; i++) {
            s.desc = good;
            *dims[i] = big[k];
            rapt_message message;
            assert_int_not_equal(rapt_attention(&s.desc, &message), RAPT_OK);
            assert_true(message.text[0] != 0);
        }
        for (int64_t i = 0; i < BATCH * HEADS * 4 * DIM; i++)
            assert_int_equal(bits_of(s.out[i]), 0xffffffffu);
        test_free_all();
    }
}

/* vllm #50427: key offsets of 32 bits. Keys, mask and output rows lie up to
 * 12 GiB apart in memory that is reserved, but hardly used. */
static void test_far_offsets(void **state) {
    (void)state;
    const int64_t stride = (3ll << 30) + 4096 * 20, bytes = stride * 4 * 3;
    char *map = mmap(NULL, (size_t)bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (map == MAP_FAILED)
        skip();
    for (int t = 0; t < table_count; t++) {
        struct small s = small_new(4, 4);
        run(&s, t);
        memcpy(s.expected, s.out, (size_t)(BATCH * HEADS * 4 * DIM) * sizeof(float));
        s.desc.key.data = map, s.desc.value.data = map + 8192, s.desc.out.data = map + 16384;
        s.desc.key.token_stride_bytes = s.desc.value.token_stride_bytes = s.desc.out.token_stride_bytes = stride;
        s.desc.out.head_stride_bytes = DIM * 4;
        s.desc.key.head_stride_bytes = s.desc.value.head_stride_bytes = DIM * 4;
        s.desc.out.batch_stride_bytes = HEADS * DIM * 4;
        s.desc.key.batch_stride_bytes = s.desc.value.batch_stride_bytes = KV_HEADS * DIM * 4;
        for (int64_t r = 0; r < BATCH * KV_HEADS * 4; r++) {
            int64_t byte = r / 4 * DIM * 4 + r % 4 * stride;
            memcpy(map + byte, s.key + r * DIM, DIM * 4);
            memcpy(map + 8192 + byte, s.value + r * DIM, DIM * 4);
        }
        run(&s, t);
        for (int64_t r = 0; r < BATCH * HEADS * 4; r++) {
            const float *out = (const float *)(void *)(map + 16384 + r / 4 * DIM * 4 + r % 4 * stride);
            expect_bits(out, s.expected + r * DIM, DIM, NAN_CANONICAL, "row %d", (int)r);
        }
        test_free_all();
    }
    munmap(map, (size_t)bytes);
}

/* onnxruntime #28259: a check that refused what is legal. */
static void test_legal_calls_are_accepted(void **state) {
    (void)state;
    struct small s = small_new(4, 8);
    int32_t lengths[BATCH] = {0, 8}, positions[BATCH] = {-100, 100};
    run(&s, 0);
    s.desc.query.extent_bytes = BATCH * HEADS * 4 * DIM * 4; /* to the last byte */
    s.desc.key.extent_bytes = BATCH * KV_HEADS * 8 * DIM * 4;
    s.desc.kv_lengths = (rapt_index_list){.data = lengths, .index_bytes = 4};
    s.desc.features = RAPT_CAUSAL;
    s.desc.query_origin = RAPT_ORIGIN_GIVEN;
    s.desc.query_position = (rapt_index_list){.data = positions, .index_bytes = 4};
    run(&s, 0);
    assert_true(is_zero(s.out) && is_finite(row(s.out, &s, 1, 3, 3)) && !is_zero(row(s.out, &s, 1, 3, 3)));
    s.desc.batch = 1; /* strides of dimensions of size 1 are not looked at */
    s.desc.query.batch_stride_bytes = s.desc.out.batch_stride_bytes = 1;
    run(&s, 0);
    s.desc.value = s.desc.key; /* a view of the keys */
    run(&s, 0);
    s.desc.features = 0;
    s.desc.query_origin = 0;
    s.desc.query_position = (rapt_index_list){0};
    s.desc.key.head_stride_bytes = s.desc.value.head_stride_bytes = 0; /* one KV head for all */
    run(&s, 0);
    test_free_all();
}

/* Strides of dimensions of size 1 are not looked at, so they may be rubbish. */
static void test_strides_of_single_tokens(void **state) {
    (void)state;
    static const int64_t rubbish[] = {INT64_MAX, INT64_MIN, 3};
    for (int t = 0; t < table_count; t++) {
        struct small s = small_new(1, 1);
        s.desc.batch = 1;
        run(&s, t);
        memcpy(s.expected, s.out, HEADS * DIM * sizeof(float));
        for (int k = 0; k < 3; k++) {
            rapt_tensor *const tensors[] = {&s.desc.query, &s.desc.key, &s.desc.value, &s.desc.out, &s.desc.lse};
            for (int i = 0; i < 5; i++)
                tensors[i]->batch_stride_bytes = tensors[i]->token_stride_bytes = rubbish[k];
            run(&s, t);
            expect_bits(s.out, s.expected, HEADS * DIM, NAN_CANONICAL, "rubbish %d", k);
        }
        test_free_all();
    }
}

/* openvino #30482, llama.cpp #95: bits by number of threads; llama.cpp #6583: by batch size. */
static void test_threads_and_neighbours(void **state) {
    (void)state;
    for (int t = 0; t < table_count; t++) {
        struct small s = small_new(3, 3000);
        run(&s, t);
        memcpy(s.expected, s.out, (size_t)(BATCH * HEADS * 3 * DIM) * sizeof(float));
        rapt_plan plan;
        size_t bytes;
        assert_int_equal(rapt_plan_init(&plan, &s.desc, NULL), RAPT_OK);
        assert_int_equal(rapt_plan_workspace_bytes(&plan, 7, &bytes), RAPT_OK);
        void *workspace = test_alloc(bytes);
        for (int threads = 1; threads <= 7; threads++) {
            struct pool pool = {.threads = threads};
            rapt_run_options options = {sizeof options, threads, pool_parallel_for, &pool};
            assert_int_equal(rapt_run(&plan, workspace, bytes, &options), RAPT_OK);
            expect_bits(s.out, s.expected, BATCH * HEADS * 3 * DIM, NAN_CANONICAL, "%d threads", threads);
        }
        s.desc.batch = 1; /* the second sequence alone */
        s.desc.query.data = row(s.query, &s, 1, 0, 0);
        s.desc.key.data = s.key + KV_HEADS * 3000 * DIM;
        s.desc.value.data = s.value + KV_HEADS * 3000 * DIM;
        run(&s, t);
        expect_bits(s.out, row(s.expected, &s, 1, 0, 0), HEADS * 3 * DIM, NAN_CANONICAL, "alone");
        test_free_all();
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_masked_block),
        cmocka_unit_test(test_nan_in_query),
        cmocka_unit_test(test_nan_in_masked_key),
        cmocka_unit_test(test_empty),
        cmocka_unit_test(test_lengths),
        cmocka_unit_test(test_sizes_that_overflow),
        cmocka_unit_test(test_far_offsets),
        cmocka_unit_test(test_legal_calls_are_accepted),
        cmocka_unit_test(test_strides_of_single_tokens),
        cmocka_unit_test(test_threads_and_neighbours),
    };
    table_count = machine_tables(tables);
    return cmocka_run_group_tests_name("peers", tests, NULL, NULL);
}
