/* SPDX-License-Identifier: MIT
 * Bugs that other attention libraries had with sizes, lengths and offsets. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "support/small.h"

static const struct rapt_table *tables[RAPT_ISA_COUNT];
static int table_count;

/* onnxruntime #28031, #29447, flash-attention #2709: a length used as a size before it was checked. */
static void test_lengths(void **state) {
    (void)state;
    static const int64_t wrong[] = {-1, 9, INT64_MIN, INT64_MAX, 1ll << 32, (1ll << 32) + 1};
    for (int w = 0; w < 6; w++) {
        for (int b = 0; b < BATCH; b++) {
            struct small s = small_new(4, 8);
            int64_t lengths[BATCH] = {2, 2};
            lengths[b] = wrong[w];
            s.desc.kv_lengths = (rapt_index_list){.data = lengths, .index_bytes = 8};
            small_expect_status(&s, RAPT_INVALID_VALUE);
            s.desc.kv_lengths = (rapt_index_list){0};
            s.desc.query_lengths = (rapt_index_list){.data = lengths, .index_bytes = 8};
            small_expect_status(&s, RAPT_INVALID_VALUE);
            test_free_all();
        }
    }
}

/* CVE-2026-33298, CVE-2024-21802 (ggml): products of sizes that wrap around to small ones. */
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
            rapt_status status = rapt_attention(&s.desc, NULL, NULL);
            assert_true(status == RAPT_INVALID_STRIDE || status == RAPT_OUT_OF_EXTENT);
        }
        int64_t *const dims[] = {&s.desc.batch, &s.desc.query_length, &s.desc.kv_length, &s.desc.head_dim};
        for (int i = 0; i < 4; i++) {
            s.desc = good;
            *dims[i] = big[k];
            rapt_message message;
            assert_int_not_equal(rapt_attention(&s.desc, NULL, &message), RAPT_OK);
            assert_true(message.text[0] != 0);
        }
        for (int64_t i = 0; i < BATCH * HEADS * 4 * DIM; i++)
            assert_int_equal(bits_of(s.out[i]), 0xffffffffu);
        test_free_all();
    }
}

/* onnxruntime #28259: a check that refused a legal call. */
static void test_legal_calls_are_accepted(void **state) {
    (void)state;
    struct small s = small_new(4, 8);
    int32_t lengths[BATCH] = {0, 8}, positions[BATCH] = {-100, 100};
    small_run(&s, RAPT_ISA_AUTO);
    s.desc.query.extent_bytes = BATCH * HEADS * 4 * DIM * 4; /* to the last byte */
    s.desc.key.extent_bytes = BATCH * KV_HEADS * 8 * DIM * 4;
    s.desc.kv_lengths = (rapt_index_list){.data = lengths, .index_bytes = 4};
    s.desc.features = RAPT_CAUSAL;
    s.desc.query_origin = RAPT_ORIGIN_GIVEN;
    s.desc.query_position = (rapt_index_list){.data = positions, .index_bytes = 4};
    small_run(&s, RAPT_ISA_AUTO);
    const float *last = small_row(s.out, &s, 1, 3, 3);
    assert_true(row_is_zero(s.out) && row_is_finite(last) && !row_is_zero(last));
    s.desc.batch = 1; /* strides of dimensions of size 1 are ignored */
    s.desc.query.batch_stride_bytes = s.desc.out.batch_stride_bytes = 1;
    small_run(&s, RAPT_ISA_AUTO);
    s.desc.value = s.desc.key; /* a view of the keys */
    small_run(&s, RAPT_ISA_AUTO);
    s.desc.features = 0;
    s.desc.query_origin = 0;
    s.desc.query_position = (rapt_index_list){0};
    s.desc.key.head_stride_bytes = s.desc.value.head_stride_bytes = 0; /* one KV head for all */
    small_run(&s, RAPT_ISA_AUTO);
    test_free_all();
}

/* Strides of dimensions of size 1 are ignored, so they may be garbage. */
static void test_strides_of_single_tokens(void **state) {
    (void)state;
    static const int64_t rubbish[] = {INT64_MAX, INT64_MIN, 3};
    for (int t = 0; t < table_count; t++) {
        struct small s = small_new(1, 1);
        s.desc.batch = 1;
        small_run(&s, tables[t]->isa);
        memcpy(s.expected, s.out, HEADS * DIM * sizeof(float));
        for (int k = 0; k < 3; k++) {
            rapt_tensor *const tensors[] = {&s.desc.query, &s.desc.key, &s.desc.value, &s.desc.out, &s.desc.lse};
            for (int i = 0; i < 5; i++)
                tensors[i]->batch_stride_bytes = tensors[i]->token_stride_bytes = rubbish[k];
            small_run(&s, tables[t]->isa);
            expect_bits(s.out, s.expected, HEADS * DIM, NAN_CANONICAL, "rubbish %d", k);
        }
        test_free_all();
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_lengths),
        cmocka_unit_test(test_sizes_that_overflow),
        cmocka_unit_test(test_legal_calls_are_accepted),
        cmocka_unit_test(test_strides_of_single_tokens),
    };
    table_count = machine_tables(tables);
    return cmocka_run_group_tests_name("peers_sizes", tests, NULL, NULL);
}
