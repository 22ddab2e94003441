/* SPDX-License-Identifier: MIT
 * Unusual valid inputs: they must pass, and empty ones have a stated result. */
#include "api/refusals.h"

#include <math.h>

static const rapt_tensor no_tensor;
static void *const nowhere =
    (void *)(UINTPTR_MAX / 4 + 1); /* far from the outputs; plans do not read it */

static void no_tensors(rapt_attention_desc *d) { d->query = d->key = d->value = d->out = no_tensor; }

/* Of pages of 4 tokens; there are none. */
static rapt_page_table pages_of(const int32_t *entries) {
    rapt_page_table table = {.kind = RAPT_PAGES_DENSE, .page_tokens = 4};
    if (entries)
        table.entries = rapt_int32_list(entries, 0);
    return table;
}

static void test_empty(void **state) {
    static const int32_t none[2] = {0, 0};
    (void)state;
    LEGAL(d->numerics = RAPT_NUMERICS_ORDER_1);
    LEGAL(d->numerics = RAPT_NUMERICS_ORDER_3);
    LEGAL(d->numerics = RAPT_NUMERICS_FASTEST);
    LEGAL(d->batch = 0);
    LEGAL(d->batch = 0, no_tensors(d));
    LEGAL(d->batch = 0, no_tensors(d), d->kv_length = 1 << 20);
    LEGAL(d->batch = 0, no_tensors(d), d->kv_lengths.index_bytes = 8);
    LEGAL(d->batch = 0, no_tensors(d), d->key_pages = d->value_pages = pages_of(NULL));
    LEGAL(d->batch = 0, no_tensors(d), d->query_origin = RAPT_ORIGIN_GIVEN,
          d->weights_kind = RAPT_WEIGHTS_RAW);
    LEGAL(d->batch = 0, no_tensors(d), d->sinks = zeros);
    LEGAL(d->query_length = 0);
    LEGAL(d->query_length = 0, no_tensors(d));
    LEGAL(d->query_length = 0, no_tensors(d), d->kv_length = 1 << 20);
    LEGAL(d->query_length = d->kv_length = 0, no_tensors(d), d->features = RAPT_CAUSAL);
    LEGAL(d->query_length = 0, d->out.token_stride_bytes = 0);
    LEGAL(with_lse(d), with_weights(d), d->batch = 0);
    assert_true(outputs_untouched());
    LEGAL(d->kv_length = 0, d->key = d->value = no_tensor);
    LEGAL(d->kv_length = 0, d->key.data = d->value.data = NULL);
    LEGAL(d->kv_length = 0, with_mask(d), with_bias(d), with_keep(d), with_weights(d));
    LEGAL(d->kv_length = 0, with_mask(d), d->mask.data = NULL, d->features = RAPT_MASK_FILL,
          d->mask_fill = -1e9f);
    LEGAL(d->kv_length = 0, with_weights(d), d->weights.data = NULL);
    LEGAL(d->kv_length = 0, d->weights_kind = RAPT_WEIGHTS_RAW);
    LEGAL(d->kv_length = 0, d->key_pages = d->value_pages = pages_of(none), /* of which nothing is read */
          d->key_pages.batch_stride_bytes = d->value_pages.batch_stride_bytes = 3);
    LEGAL(d->kv_lengths = list32(none), d->key_pages.kind = d->value_pages.kind = RAPT_PAGES_ROW);
    END_OF_ROWS;
}

static void test_no_keys_give_zero(void **state) {
    (void)state;
    static const int32_t none[2] = {0, 0};
    for (int listed = 0; listed < 2; listed++) {
        if (listed)
            LEGAL(with_lse(d), d->kv_lengths = list32(none), d->sinks = zeros);
        else
            LEGAL(with_lse(d), d->kv_length = 0);
        for (int i = 0; i < 2 * 4 * 3 * 8; i++)
            assert_true(fresh_out()[i] == 0 && !signbit(fresh_out()[i]));
        for (int i = 0; i < 2 * 4 * 3; i++)
            assert_true(fresh_lse()[i] == -INFINITY);
    }
    END_OF_ROWS;
}

static void test_scale_zero_is_uniform(void **state) {
    (void)state;
    const float *value = fresh()->value.data;
    LEGAL(d->features = RAPT_SCALE, d->scale = 0, with_lse(d));
    for (int i = 0; i < 8; i++) {
        float sum = 0;
        for (int j = 0; j < 5; j++)
            sum += value[j * 8 + i];
        assert_true(fabsf(fresh_out()[i] - sum / 5) < 1e-5f);
    }
    assert_true(fabsf(fresh_lse()[0] - logf(5)) < 1e-6f);
    END_OF_ROWS;
}

static void test_layouts(void **state) {
    (void)state;
    LEGAL(d->query = rapt_input_bshd(d->query.data, 2, 3, 4, 8),
          d->out = rapt_output_bshd(d->out.data, 2, 3, 4, 8));
    LEGAL(d->out.batch_stride_bytes = 32, d->out.head_stride_bytes = 64, d->out.token_stride_bytes = 256);
    LEGAL(d->out.token_stride_bytes = 36, d->out.head_stride_bytes = 112, d->out.batch_stride_bytes = 452);
    LEGAL(d->key.token_stride_bytes = -32, d->key.data = (float *)d->key.data + 32);
    LEGAL(d->value.head_stride_bytes = -160, d->value.data = (float *)d->value.data + 40);
    LEGAL(d->query.batch_stride_bytes = d->query.head_stride_bytes = d->query.token_stride_bytes = 0);
    LEGAL(d->key.batch_stride_bytes = 0, d->value.batch_stride_bytes = 0);
    LEGAL(d->key.dtype = RAPT_F16, d->key.token_stride_bytes = 18, d->key.data = (char *)d->key.data + 2);
    LEGAL(d->value = rapt_tensor_bhsd(d->value.data, RAPT_F16, 2, 2, 5, 8));
    LEGAL(d->query = rapt_tensor_bhsd((char *)d->query.data + 2, RAPT_F16, 2, 4, 3, 8));
    LEGAL(with_bias(d), d->bias = rapt_tensor_bhsd((char *)d->bias.data + 2, RAPT_F16, 2, 4, 3, 5));
    LEGAL(d->out = rapt_tensor_bshd((char *)d->out.data + 2, RAPT_F16, 2, 3, 4, 8));
    LEGAL(d->out.dtype = RAPT_F16, d->out.token_stride_bytes = 18, d->out.head_stride_bytes = 54,
          d->out.batch_stride_bytes = 216);
    LEGAL(d->key.token_stride_bytes = d->value.token_stride_bytes = 4);
    LEGAL(d->key = rapt_tensor_bhsd(d->key.data, RAPT_F8_E4M3, 2, 2, 5, 8), d->key.data = (char *)d->key.data + 1);
    LEGAL(d->key = rapt_tensor_bhsd(d->key.data, RAPT_F8_E5M2, 2, 2, 5, 8), d->key.scale_dtype = RAPT_F32,
          d->key.scales = (void *)(uintptr_t)zeros, d->key.scale_extent_bytes = 4); /* one for all */
    LEGAL(d->value = rapt_tensor_bhsd(d->value.data, RAPT_I8, 2, 2, 5, 8), d->value.scale_dtype = RAPT_F32,
          d->value.scales = (void *)(uintptr_t)(zeros + 20), d->value.scale_token_stride_bytes = -4,
          d->value.scale_group = 16, d->value.zero_point_dtype = RAPT_I8,
          d->value.zero_points = (char *)(uintptr_t)zeros + 5);
    LEGAL(d->key = rapt_tensor_bhsd(d->key.data, RAPT_I8, 2, 2, 5, 8), d->key.scale_dtype = RAPT_F32,
          d->key.scales = (void *)(uintptr_t)zeros, d->key.scale_token_stride_bytes = 4,
          d->key.scale_head_stride_bytes = 20, d->key.scale_batch_stride_bytes = 40, d->key.scale_extent_bytes = 80,
          d->key.zero_point_dtype = RAPT_I8, d->key.zero_points = (void *)(uintptr_t)zeros); /* to the last byte */
    LEGAL(d->head_dim = 64, d->value_dim = 32, d->query = rapt_input_bhsd(d->query.data, 2, 4, 3, 64),
          d->key = rapt_tensor_bhsd(d->key.data, RAPT_Q4_0, 2, 2, 5, 64), d->value = d->key,
          d->value.data = (char *)d->key.data + 18, d->value.extent_bytes = 0,
          d->out = rapt_output_bhsd(d->out.data, 2, 4, 3, 32)); /* the second block of each row */
    LEGAL(with_mask(d),
          d->mask.batch_stride_bytes = d->mask.head_stride_bytes = d->mask.token_stride_bytes = 0);
    LEGAL(with_mask(d), d->mask.data = (char *)d->mask.data + 1, d->mask.token_stride_bytes = 7);
    LEGAL(with_bias(d), d->bias.head_stride_bytes = 0, d->bias.token_stride_bytes = -20,
          d->bias.data = (float *)d->bias.data + 10);
    LEGAL(d->batch = 1, d->query.batch_stride_bytes = 7, d->key.batch_stride_bytes = INT64_MIN,
          d->out.batch_stride_bytes = 0);
    LEGAL(d->query_length = 1, d->out.token_stride_bytes = 0, d->query.token_stride_bytes = INT64_MAX);
    LEGAL(d->query_heads = d->kv_heads = 1, d->out.head_stride_bytes = -5);
    END_OF_ROWS;
}

static void test_sharing(void **state) {
    (void)state;
    LEGAL(d->value = d->key);
    LEGAL(d->value = d->key, d->value_dim = 5, d->value.data = (float *)d->value.data + 2);
    LEGAL(d->query.data = d->key.data);
    LEGAL(d->sinks = zeros, d->alibi_slopes = zeros, d->query_origin = RAPT_ORIGIN_TOP_LEFT);
    LEGAL(with_mask(d), with_keep(d));
    LEGAL(fuse(d, 32));
    LEGAL_PLAN(fuse(d, 32), d->batch = 1, d->query_length = 1 << 24, d->key.data = d->value.data = nowhere);
    LEGAL(fuse(d, 32), d->query.data = d->out.data, d->out.data = (float *)d->out.data - 32);
    /* One record of 9 floats per row: out, then lse. */
    LEGAL(with_lse(d), d->out.token_stride_bytes = d->lse.token_stride_bytes = 36,
          d->out.head_stride_bytes = 108, d->lse.head_stride_bytes = 108,
          d->out.batch_stride_bytes = d->lse.batch_stride_bytes = 432,
          d->lse.data = (float *)d->out.data + 8);
    LEGAL(d->query.extent_bytes = d->out.extent_bytes = 768,
          d->key.extent_bytes = d->value.extent_bytes = 640);
    LEGAL(with_mask(d), d->mask.extent_bytes = 120);
    LEGAL(d->query.data = (float *)d->out.data + 192); /* begins where out ends */
    LEGAL(d->query.data = d->out.data, d->out.data = (float *)d->out.data + 192);
    LEGAL(with_mask(d), d->mask.data = (char *)d->out.data + 768);
    LEGAL(with_mask(d), d->mask.data = d->out.data, d->out.data = (char *)d->out.data + 120);
    LEGAL(d->key = rapt_tensor_bhsd(d->key.data, RAPT_I8, 2, 2, 5, 8), d->key.scale_dtype = RAPT_F32,
          d->key.scales = (void *)(uintptr_t)zeros, d->key.scale_token_stride_bytes = 4,
          d->key.scale_head_stride_bytes = 20, d->key.scale_batch_stride_bytes = 40, d->key.zero_point_dtype = RAPT_I8,
          d->key.zero_points = d->out.data, d->out.data = (char *)d->out.data + 20); /* out follows 20 zero points */
    /* Records of a sequence's length and its 96 results. */
    LEGAL(((int32_t *)d->out.data)[0] = 2, ((int32_t *)d->out.data)[97] = 4, d->kv_lengths = list32(d->out.data),
          d->kv_lengths.stride_bytes = d->out.batch_stride_bytes = 97 * 4, d->out.data = (float *)d->out.data + 1);
    LEGAL(with_mask(d), d->mask.data = (char *)d->out.data + 384,
          d->out = rapt_tensor_bhsd(d->out.data, RAPT_F16, 2, 4, 3, 8));
    END_OF_ROWS;
}

static void test_states(void **state) {
    (void)state;
    LEGAL(with_states(d));
    LEGAL(with_states(d), d->out = no_tensor);
    LEGAL(with_states(d), d->out = no_tensor, with_lse(d), with_weights(d));
    LEGAL(with_states(d), d->initial_state = no_tensor, d->sinks = zeros);
    LEGAL(with_states(d), d->final_state = no_tensor);
    LEGAL(with_states(d), d->initial_state.extent_bytes = d->final_state.extent_bytes = 960);
    LEGAL(with_states(d), d->initial_state = d->final_state, d->initial_state.extent_bytes = 960);
    LEGAL(with_states(d), d->value_dim = 3);
    LEGAL(with_states(d), d->kv_length = 0, d->key = d->value = no_tensor);
    LEGAL(with_states(d), d->initial_state.batch_stride_bytes = d->initial_state.token_stride_bytes = 0);
    LEGAL(with_states(d), d->initial_state.token_stride_bytes = -40,
          d->initial_state.data = (float *)d->initial_state.data + 20);
    LEGAL(with_states(d), d->query_length = 0, d->out = no_tensor);
    LEGAL(with_states(d), d->batch = 0, d->final_state.data = NULL);
    /* One record of 18 floats per row: out, then the state. */
    LEGAL(with_states(d), d->out.token_stride_bytes = d->final_state.token_stride_bytes = 72,
          d->out.head_stride_bytes = d->final_state.head_stride_bytes = 216,
          d->out.batch_stride_bytes = d->final_state.batch_stride_bytes = 864,
          d->final_state.data = (float *)d->out.data + 8);
    END_OF_ROWS;
}

static void test_sizes(void **state) {
    (void)state;
    const int64_t many = INT64_C(1) << 33;
    LEGAL(d->value_dim = 8);
    LEGAL(d->value_dim = 3);
    LEGAL(d->value_dim = 1, d->head_dim = 1);
    LEGAL(d->kv_heads = 1);
    LEGAL(d->kv_heads = 4);
    LEGAL(d->query_heads = d->kv_heads = 3);
    LEGAL(d->batch = d->query_heads = d->kv_heads = d->query_length = d->kv_length = 1, d->head_dim = 1024);
    LEGAL_PLAN(d->kv_length = many, d->key = rapt_input_bhsd(nowhere, 2, 2, many, 8), d->value = d->key);
    LEGAL_PLAN(d->kv_length = many, d->key.token_stride_bytes = d->value.token_stride_bytes = 0);
    LEGAL_PLAN(d->batch = 0, d->query_heads = d->kv_heads = 1, d->query_length = d->kv_length = 1 << 24);
    LEGAL_PLAN(d->batch = INT64_C(1) << 40, d->query_length = d->kv_length = 0,
               d->key_pages.kind = d->value_pages.kind = RAPT_PAGES_ROW); /* instantly */
    END_OF_ROWS;
}

static void test_numbers(void **state) {
    (void)state;
    LEGAL(d->features = RAPT_SCALE, d->scale = -1);
    LEGAL(d->features = RAPT_SCALE, d->scale = 1e-45f);
    LEGAL(d->features = RAPT_SCALE, d->scale = 2.3e38f);
    LEGAL(d->softcap = 50);
    LEGAL(d->softcap = 2.3e38f);
    LEGAL(d->softcap = 1e-38f);
    LEGAL(d->softcap = -0.0f);
    LEGAL(with_mask(d), d->features = RAPT_MASK_FILL, d->mask_fill = -9e15f);
    LEGAL(with_mask(d), d->features = RAPT_MASK_FILL, d->mask_fill = 0);
    LEGAL(with_keep(d), d->keep_scale = 0);
    LEGAL(with_keep(d), d->keep_scale = 1e38f);
    LEGAL(d->sinks = last_is(-INFINITY));
    LEGAL(d->sinks = last_is(1e30f));
    LEGAL(with_bias(d), d->bias_head_factor = last_is(-2));
    LEGAL(d->alibi_slopes = last_is(-2), d->query_origin = RAPT_ORIGIN_BOTTOM_RIGHT);
    END_OF_ROWS;
}

static void test_positions(void **state) {
    (void)state;
    static const int32_t lengths[2] = {0, 3};
    static const int64_t far[2] = {INT64_C(1) << 48, -(INT64_C(1) << 48)}, late[2] = {0, INT64_C(1) << 48};
    LEGAL(d->features = RAPT_CAUSAL, d->kv_length = 3);
    LEGAL(d->features = RAPT_CAUSAL, d->query_length = 3, d->query_origin = RAPT_ORIGIN_TOP_LEFT);
    LEGAL(d->features = RAPT_CAUSAL, d->query_origin = RAPT_ORIGIN_BOTTOM_RIGHT);
    LEGAL(d->features = RAPT_CAUSAL, d->kv_length = 2, d->query_origin = RAPT_ORIGIN_BOTTOM_RIGHT);
    LEGAL(d->query_origin = RAPT_ORIGIN_TOP_LEFT);
    LEGAL(d->query_origin = RAPT_ORIGIN_GIVEN, d->query_position = list64(far),
          d->features = RAPT_ALIBI_STANDARD);
    LEGAL(d->query_origin = RAPT_ORIGIN_GIVEN, d->query_position = list64(far),
          d->features = RAPT_CAUSAL | RAPT_WINDOW, d->window_left = d->window_right = INT64_MAX,
          d->key_position = list64(late));
    LEGAL(d->query_lengths = list32(lengths), d->kv_lengths = list32(lengths));
    LEGAL(d->key_position = list64(late));
    LEGAL(d->features = RAPT_WINDOW, d->window_left = d->window_right = -1, d->kv_length = 3);
    LEGAL(d->features = RAPT_WINDOW, d->kv_length = 3);
    LEGAL(d->features = RAPT_WINDOW, d->window_left = INT64_MAX, d->window_right = INT64_MAX,
          d->kv_length = 3);
    END_OF_ROWS;
}

/* Entries of records, and more of them than are required. */
static void test_list_strides(void **state) {
    (void)state;
    static const int32_t close[2] = {2, 4}, apart[6] = {2, 99, -1, 4, 99, 7};
    static const int64_t wide[5] = {2, -5, 4, 77, 77};
    float expected[2 * 4 * 3 * 8];
    LEGAL(d->kv_lengths = rapt_int32_list(close, 2));
    memcpy(expected, fresh_out(), sizeof expected);
    LEGAL(d->kv_lengths = rapt_int32_list(apart, 2), d->kv_lengths.stride_bytes = 12);
    assert_memory_equal(fresh_out(), expected, sizeof expected);
    LEGAL(d->kv_lengths = rapt_int64_list(wide, 3), d->kv_lengths.stride_bytes = 16);
    assert_memory_equal(fresh_out(), expected, sizeof expected);
    END_OF_ROWS;
}

/* Rows of a table, last to first in a tensor whose sequences lie so: of keys or values alone, and of both. */
static void test_rows_of_one_side(void **state) {
    (void)state;
    static const int32_t last_first[2] = {1, 0};
    const rapt_page_table rows = {.kind = RAPT_PAGES_ROW, .pages = 2, .entries = rapt_int32_list(last_first, 2)};
    enum { FLOATS = 2 * 5 * 8 + 4 /* keys repeat after 5 */ };
    float expected[2 * 4 * 3 * 8];
    LEGAL(d->key.batch_stride_bytes = d->value.batch_stride_bytes = 4 * FLOATS);
    memcpy(expected, fresh_out(), sizeof expected);
    for (int sides = 1; sides < 4; sides++) {
        LEGAL(
            d->key.batch_stride_bytes = d->value.batch_stride_bytes = 4 * FLOATS;
            if (sides & 1) d->key_pages = rows, d->key.data = (float *)d->key.data + FLOATS, d->key.extent_bytes = 0,
                           d->key.batch_stride_bytes = -4 * FLOATS;
            if (sides & 2) d->value_pages = rows, d->value.data = (float *)d->value.data + FLOATS,
                           d->value.extent_bytes = 0, d->value.batch_stride_bytes = -4 * FLOATS);
        assert_memory_equal(fresh_out(), expected, sizeof expected);
    }
    END_OF_ROWS;
}

/* Bits of keys that are not there, blocks larger than the sequence, lists without entries. */
static void test_selections(void **state) {
    (void)state;
    static const int32_t masks[6] = {-1, -1, -1, -1, -1, -1}, none[6] = {0}, offsets[6] = {0, 1, 1, 1, 1, 1};
    static const int64_t wide[6] = {INT64_MIN, 0, -1, 1, 7, INT64_MAX}, first[2] = {0, 99};
    float expected[2 * 4 * 3 * 8];
    LEGAL((void)0);
    memcpy(expected, fresh_out(), sizeof expected);
    LEGAL(d->tree_tokens = 7, d->tree_masks = list32(masks));
    assert_memory_equal(fresh_out(), expected, sizeof expected);
    LEGAL(d->key_blocks = (rapt_block_list){.query_tokens = INT64_MAX, .key_tokens = INT64_MAX},
          d->key_blocks.offsets = list32(offsets), d->key_blocks.entries = rapt_int64_list(first, 2));
    assert_memory_equal(fresh_out(), expected, sizeof expected);
    LEGAL(with_lse(d), d->key_blocks = (rapt_block_list){.query_tokens = 1, .key_tokens = 1},
          d->key_blocks.offsets = list32(none));
    for (int i = 0; i < 2 * 4 * 3 * 8; i++)
        assert_true(fresh_out()[i] == 0 && !signbit(fresh_out()[i]));
    assert_true(fresh_lse()[0] == -INFINITY);
    LEGAL(d->tree_tokens = 64, d->tree_masks = list64(wide));
    LEGAL(d->tree_tokens = 5, d->tree_masks = list32(none), with_lse(d));
    assert_true(fresh_lse()[0] == -INFINITY);
    LEGAL(d->tree_tokens = 3, d->tree_masks = rapt_int32_list(masks, 6), d->features = RAPT_CAUSAL,
          d->query_origin = RAPT_ORIGIN_BOTTOM_RIGHT);
    LEGAL(d->batch = 0, d->tree_tokens = 3);
    LEGAL(d->query_length = 0, d->key_blocks = (rapt_block_list){.query_tokens = 64, .key_tokens = 64});
    LEGAL(d->kv_length = 0, d->key_blocks = (rapt_block_list){.query_tokens = 64, .key_tokens = 64},
          d->key_blocks.offsets = list32(none));
    END_OF_ROWS;
}

static void test_everything_at_once(void **state) {
    (void)state;
    static const int32_t queries[2] = {2, 3}, keys[2] = {5, 1}, stored[2] = {700, 0};
    LEGAL(with_mask(d), with_bias(d), with_keep(d), with_lse(d), with_weights(d),
          d->query_lengths = list32(queries), d->kv_lengths = list32(keys), d->key_position = list32(stored),
          d->bias_head_factor = zeros, d->alibi_slopes = zeros, d->sinks = zeros, d->softcap = 30,
          d->scale = 0.3f, d->mask_fill = -1e9f,
          d->features = RAPT_SCALE | RAPT_CAUSAL | RAPT_WINDOW | RAPT_MASK_FILL, d->window_left = 4,
          d->query_origin = RAPT_ORIGIN_BOTTOM_RIGHT);
    END_OF_ROWS;
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_empty),
        cmocka_unit_test(test_no_keys_give_zero),
        cmocka_unit_test(test_scale_zero_is_uniform),
        cmocka_unit_test(test_layouts),
        cmocka_unit_test(test_sharing), cmocka_unit_test(test_states),
        cmocka_unit_test(test_sizes),
        cmocka_unit_test(test_numbers),
        cmocka_unit_test(test_positions),
        cmocka_unit_test(test_rows_of_one_side),
        cmocka_unit_test(test_list_strides),
        cmocka_unit_test(test_selections),
        cmocka_unit_test(test_everything_at_once),
    };
    return cmocka_run_group_tests_name("legal", tests, NULL, NULL);
}
