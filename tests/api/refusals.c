/* SPDX-License-Identifier: MIT
 * Every input that docs/inputs.md lists, except tensors: its status, the field in the message, and that a refused call
 * writes nothing. */
#include "api/refusals.h"
#include "isa.h"

#include <math.h>

static void test_version(void **state) {
    (void)state;
    rapt_message message;
    assert_int_equal(rapt_plan_init(&(rapt_plan){{0}}, NULL, &message), RAPT_NULL_POINTER);
    assert_non_null(strstr(message.text, "desc is NULL"));
    assert_int_equal(rapt_attention(NULL, NULL, NULL), RAPT_NULL_POINTER);
    REFUSED(RAPT_UNSUPPORTED_VERSION, "struct_size = 0", d->struct_size = 0);
    REFUSED(RAPT_UNSUPPORTED_VERSION, "struct_size", d->struct_size = 8);
    REFUSED(RAPT_UNSUPPORTED_VERSION, "struct_size", d->struct_size -= 1);
    REFUSED(RAPT_UNSUPPORTED_VERSION, "struct_size", d->struct_size += 4);
    REFUSED(RAPT_UNSUPPORTED_VERSION, "struct_size = 4104", d->struct_size = 4104);
    REFUSED(RAPT_UNSUPPORTED_VERSION, "struct_size = 4294967288", d->struct_size = UINT32_MAX - 7);
    END_OF_ROWS;
}

static void all_of(rapt_attention_desc *d, int32_t numerics, int32_t query, int32_t key, int32_t value) {
    d->numerics = numerics;
    d->query.dtype = query;
    d->key.dtype = key;
    d->value.dtype = value;
}

static void test_numerics(void **state) {
    (void)state;
    REFUSED(RAPT_UNSUPPORTED_FLAG, "numerics = 4 is not one of 0, 1 (float32), 2", d->numerics = 4);
    REFUSED(RAPT_UNSUPPORTED_FLAG, "numerics = -2", d->numerics = -2);
    REFUSED(RAPT_UNSUPPORTED_FLAG, "numerics = -2147483648", d->numerics = INT32_MIN);
    REFUSED(RAPT_UNSUPPORTED_DTYPE, "all bfloat16 or all float16, but query.dtype = 1 (float32)", d->numerics = 2);
    REFUSED(RAPT_UNSUPPORTED_DTYPE, "but key.dtype = 3 (float16)", all_of(d, 2, RAPT_BF16, RAPT_F16, RAPT_BF16));
    REFUSED(RAPT_UNSUPPORTED_DTYPE, "but value.dtype = 4 (bfloat16)", all_of(d, 2, RAPT_F16, RAPT_F16, RAPT_BF16));
    REFUSED(RAPT_UNSUPPORTED_DTYPE, "but value.dtype = 12", all_of(d, 2, RAPT_F16, RAPT_F16, RAPT_F8_E5M2));
    REFUSED(RAPT_UNSUPPORTED_DTYPE, "all float32, but query.dtype = 4", all_of(d, 3, RAPT_BF16, RAPT_BF16, RAPT_BF16));
    REFUSED(RAPT_UNSUPPORTED_DTYPE, "all float32, but value.dtype = 3", all_of(d, 3, RAPT_F32, RAPT_F32, RAPT_F16));
    END_OF_ROWS;
}

static void test_flags(void **state) {
    (void)state;
    REFUSED(RAPT_UNSUPPORTED_FLAG, "features = 0x20", d->features = 1u << 5);
    REFUSED(RAPT_UNSUPPORTED_FLAG, "unknown bits 0x8000000000000000",
            d->features = UINT64_C(1) << 63 | RAPT_CAUSAL);
    REFUSED(RAPT_UNSUPPORTED_FLAG, "isa = ", d->isa = RAPT_ISA_COUNT);
    REFUSED(RAPT_UNSUPPORTED_FLAG, "isa = -1", d->isa = -1);
    REFUSED(RAPT_UNSUPPORTED_FLAG, "query_origin = 4", d->query_origin = 4);
    REFUSED(RAPT_UNSUPPORTED_FLAG, "weights_kind = 5", d->weights_kind = 5);
    REFUSED(RAPT_UNUSED_FIELD, "reserved_zero = 1", d->reserved_zero = 1);
    REFUSED(RAPT_UNUSED_FIELD, "key_pages is set", d->key_pages.page_tokens = 16);
    REFUSED(RAPT_UNUSED_FIELD, "value_pages is set", d->value_pages.reserved[1] = 1);
    REFUSED(RAPT_UNUSED_FIELD, "reserved[0] = 1", d->reserved[0] = 1);
    REFUSED(RAPT_UNUSED_FIELD, "reserved[7] = 9", d->reserved[7] = 9);
    END_OF_ROWS;
}

static void test_sizes(void **state) {
    (void)state;
    const int64_t absurd = ((int64_t)1 << 40) + 1;
    REFUSED(RAPT_INVALID_SHAPE, "batch = -1", d->batch = -1);
    REFUSED(RAPT_INVALID_SHAPE, "query_heads = -4", d->query_heads = -4);
    REFUSED(RAPT_INVALID_SHAPE, "query_heads = 0", d->query_heads = 0);
    REFUSED(RAPT_INVALID_SHAPE, "kv_heads = -2", d->kv_heads = -2);
    REFUSED(RAPT_INVALID_SHAPE, "kv_heads = 0", d->kv_heads = 0);
    REFUSED(RAPT_INVALID_SHAPE, "query_length = -3", d->query_length = -3);
    REFUSED(RAPT_INVALID_SHAPE, "kv_length = -5", d->kv_length = -5);
    REFUSED(RAPT_INVALID_SHAPE, "kv_length = -9223372036854775808", d->kv_length = INT64_MIN);
    REFUSED(RAPT_INVALID_SHAPE, "head_dim = 0", d->head_dim = 0);
    REFUSED(RAPT_INVALID_SHAPE, "head_dim = 1025", d->head_dim = 1025);
    REFUSED(RAPT_INVALID_SHAPE, "value_dim = -1", d->value_dim = -1);
    REFUSED(RAPT_INVALID_SHAPE, "value_dim = 1025", d->value_dim = 1025);
    REFUSED(RAPT_INVALID_SHAPE, "query_heads = 7 is not a multiple of kv_heads = 2", d->query_heads = 7);
    REFUSED(RAPT_INVALID_SHAPE, "query_heads = 2 is not a multiple of kv_heads = 4", d->query_heads = 2,
            d->kv_heads = 4);
    REFUSED(RAPT_INVALID_SHAPE, "batch", d->batch = absurd);
    REFUSED(RAPT_INVALID_SHAPE, "query_heads", d->query_heads = absurd + 1);
    REFUSED(RAPT_INVALID_SHAPE, "query_length", d->query_length = absurd);
    REFUSED(RAPT_INVALID_SHAPE, "kv_length", d->kv_length = INT64_MAX);
    REFUSED(RAPT_SIZE_OVERFLOW, "batch = 1099511627776", d->batch = absurd - 1, d->query_heads = absurd - 1);
    REFUSED(RAPT_SIZE_OVERFLOW, "query_length = 1099511627776", d->query_length = d->kv_length = absurd - 1);
    /* scores fit, the bytes of keys do not */
    REFUSED(RAPT_SIZE_OVERFLOW, "kv_length = 33554432", d->query_heads = 1 << 30, d->query_length = 1,
            d->kv_length = 1 << 25);
    /* those fit, the bytes of scores do not */
    REFUSED(RAPT_SIZE_OVERFLOW, "kv_length = 4194304", d->batch = 1, d->query_heads = d->kv_heads = 1,
            d->query_length = absurd - 1, d->kv_length = 1 << 22);
    REFUSED(RAPT_SIZE_OVERFLOW, "overflows", d->batch = 0, d->query_heads = d->kv_length = absurd - 1);
    END_OF_ROWS;
}

static void test_lists(void **state) {
    (void)state;
    static const int32_t low[2] = {3, -1}, high[2] = {6, 0}, ok[2] = {0, 3}, spread[4] = {0, -7, -1, 0};
    static const int64_t far[2] = {0, (INT64_C(1) << 48) + 1}, back[2] = {-(INT64_C(1) << 48) - 1, 0};
    static const int64_t wrapped[2] = {0, INT64_C(1) << 32};
    REFUSED(RAPT_INVALID_VALUE, "query_lengths[1] = -1", d->query_lengths = list32(low));
    REFUSED(RAPT_INVALID_VALUE, "query_lengths[0] = 6 is outside 0 ... 3", d->query_lengths = list32(high));
    REFUSED(RAPT_INVALID_VALUE, "kv_lengths[0] = 6 is outside 0 ... 5", d->kv_lengths = list32(high));
    REFUSED(RAPT_INVALID_VALUE, "kv_lengths[1] = 4294967296", d->kv_lengths = list64(wrapped));
    REFUSED(RAPT_INVALID_VALUE, "key_position[1] = -1", d->key_position = list32(low));
    REFUSED(RAPT_INVALID_VALUE, "key_position[1]", d->key_position = list64(far));
    REFUSED(RAPT_INVALID_VALUE, "query_position[1]", d->query_origin = RAPT_ORIGIN_GIVEN,
            d->query_position = list64(far));
    REFUSED(RAPT_INVALID_VALUE, "query_position[0]", d->query_origin = RAPT_ORIGIN_GIVEN,
            d->query_position = list64(back));
    REFUSED(RAPT_INVALID_VALUE, "kv_lengths.index_bytes = 2", d->kv_lengths = list32(ok),
            d->kv_lengths.index_bytes = 2);
    REFUSED(RAPT_INVALID_VALUE, "kv_lengths.index_bytes = 0", d->kv_lengths = list32(ok),
            d->kv_lengths.index_bytes = 0);
    REFUSED(RAPT_UNUSED_FIELD, "key_position.data is NULL, but its index_bytes = 4", d->key_position.index_bytes = 4);
    REFUSED(RAPT_UNUSED_FIELD, "query_lengths.reserved_zero", d->query_lengths = list32(ok),
            d->query_lengths.reserved_zero = 1);
    REFUSED(RAPT_UNUSED_FIELD, "kv_lengths.data is NULL, but its count = 2", d->kv_lengths.count = 2);
    REFUSED(RAPT_UNUSED_FIELD, "kv_lengths.data is NULL, but its stride_bytes = 4", d->kv_lengths.stride_bytes = 4);
    REFUSED(RAPT_OUT_OF_EXTENT, "kv_lengths.count = 1, but batch = 2", d->kv_lengths = list32(ok),
            d->kv_lengths.count = 1);
    REFUSED(RAPT_OUT_OF_EXTENT, "kv_lengths.count = -2 is negative", d->kv_lengths = list32(ok),
            d->kv_lengths.count = -2);
    REFUSED(RAPT_INVALID_STRIDE, "kv_lengths.stride_bytes = 6", d->kv_lengths = list32(ok),
            d->kv_lengths.stride_bytes = 6);
    REFUSED(RAPT_INVALID_STRIDE, "kv_lengths.stride_bytes = -4", d->kv_lengths = list32(ok),
            d->kv_lengths.stride_bytes = -4);
    REFUSED(RAPT_INVALID_STRIDE, "kv_lengths.stride_bytes = 4", d->kv_lengths = list64(far),
            d->kv_lengths.stride_bytes = 4);
    REFUSED(RAPT_INVALID_SHAPE, "kv_lengths", d->kv_lengths = list32(ok),
            d->kv_lengths.stride_bytes = INT64_MAX - 3);
    REFUSED(RAPT_INVALID_VALUE, "key_position[1] = -1", d->key_position = list32(spread),
            d->key_position.stride_bytes = 8);
    REFUSED(RAPT_OVERLAPPING_OUTPUT, "out overlaps kv_lengths", d->kv_lengths = list32(zeros),
            d->kv_lengths.stride_bytes = 64, d->out.data = (void *)(uintptr_t)(zeros + 16));
    REFUSED(RAPT_MISALIGNED_POINTER, "kv_lengths", d->kv_lengths = list32((const char *)ok + 2));
    REFUSED(RAPT_MISALIGNED_POINTER, "kv_lengths", d->kv_lengths = list64((const char *)far + 4));
    REFUSED(RAPT_MISALIGNED_POINTER, "sinks",
            d->sinks = (const float *)(const void *)((const char *)zeros + 1));
    REFUSED(RAPT_INVALID_SHAPE, "alibi_slopes", d->alibi_slopes = (const float *)(UINTPTR_MAX - 7));
    REFUSED(RAPT_INVALID_SHAPE, "kv_lengths", d->kv_lengths = list32((const void *)(UINTPTR_MAX - 3)));
    END_OF_ROWS;
}

static void test_numbers(void **state) {
    (void)state;
    const float wide = 3e38f; /* finite, but not times log2(e) */
    REFUSED(RAPT_INVALID_VALUE, "scale = nan must be finite, also after multiplication by log2(e)",
            d->features = RAPT_SCALE, d->scale = NAN);
    REFUSED(RAPT_INVALID_VALUE, "scale = inf", d->features = RAPT_SCALE, d->scale = INFINITY);
    REFUSED(RAPT_INVALID_VALUE, "scale = -3e+38", d->features = RAPT_SCALE, d->scale = -wide);
    REFUSED(RAPT_INVALID_VALUE, "softcap = nan", d->softcap = NAN);
    REFUSED(RAPT_INVALID_VALUE, "softcap = inf must be 0 or more and finite", d->softcap = INFINITY);
    REFUSED(RAPT_INVALID_VALUE, "softcap = -1", d->softcap = -1);
    REFUSED(RAPT_INVALID_VALUE, "softcap = 3e+38", d->softcap = wide);
    REFUSED(RAPT_INVALID_VALUE, "softcap = 1e-39", d->softcap = 1e-39f);
    REFUSED(RAPT_INVALID_VALUE, "softcap = 0.5", d->softcap = 0.5f, d->features = RAPT_SCALE,
            d->scale = 2e38f);
    REFUSED(RAPT_INVALID_VALUE, "mask_fill = nan must be finite", with_mask(d), d->features = RAPT_MASK_FILL,
            d->mask_fill = NAN);
    REFUSED(RAPT_INVALID_VALUE, "mask_fill = -inf", with_mask(d), d->features = RAPT_MASK_FILL,
            d->mask_fill = -INFINITY);
    REFUSED(RAPT_INVALID_VALUE, "mask_fill = -3e+38", with_mask(d), d->features = RAPT_MASK_FILL,
            d->mask_fill = -wide);
    REFUSED(RAPT_INVALID_VALUE, "keep_scale = nan", with_keep(d), d->keep_scale = NAN);
    REFUSED(RAPT_INVALID_VALUE, "keep_scale = inf", with_keep(d), d->keep_scale = INFINITY);
    REFUSED(RAPT_INVALID_VALUE, "window_left = -2", d->features = RAPT_WINDOW, d->window_left = -2);
    REFUSED(RAPT_INVALID_VALUE, "window_right = -9", d->features = RAPT_WINDOW, d->window_right = -9);
    REFUSED(RAPT_INVALID_VALUE, "window_right = -2", d->features = RAPT_WINDOW, d->window_right = -2);
    REFUSED(RAPT_INVALID_VALUE, "bias_head_factor[3] = nan", with_bias(d),
            d->bias_head_factor = last_is(NAN));
    REFUSED(RAPT_INVALID_VALUE, "bias_head_factor[3] = inf", with_bias(d),
            d->bias_head_factor = last_is(INFINITY));
    REFUSED(RAPT_INVALID_VALUE, "bias_head_factor[3] = 3e+38", with_bias(d),
            d->bias_head_factor = last_is(wide));
    REFUSED(RAPT_INVALID_VALUE, "alibi_slopes[3] = nan must be finite", d->alibi_slopes = last_is(NAN));
    REFUSED(RAPT_INVALID_VALUE, "alibi_slopes[3] = -inf", d->alibi_slopes = last_is(-INFINITY));
    REFUSED(RAPT_INVALID_VALUE, "alibi_slopes[3] = 3e+38", d->alibi_slopes = last_is(wide));
    REFUSED(RAPT_INVALID_VALUE, "sinks[3] = nan must be -infinity or finite", d->sinks = last_is(NAN));
    REFUSED(RAPT_INVALID_VALUE, "sinks[3] = inf", d->sinks = last_is(INFINITY));
    REFUSED(RAPT_INVALID_VALUE, "sinks[3] = -3e+38", d->sinks = last_is(-wide));
    END_OF_ROWS;
}

static void test_unused_fields(void **state) {
    (void)state;
    static const int32_t positions[2] = {0, 1};
    REFUSED(RAPT_UNUSED_FIELD, "scale is set", d->scale = 0.5f);
    REFUSED(RAPT_UNUSED_FIELD, "scale is set", d->scale = NAN);
    REFUSED(RAPT_UNUSED_FIELD, "mask_fill is set", with_mask(d), d->mask_fill = -1e9f);
    REFUSED(RAPT_UNUSED_FIELD, "RAPT_MASK_FILL is set, but mask", d->features = RAPT_MASK_FILL,
            d->mask_fill = -1e9f);
    REFUSED(RAPT_UNUSED_FIELD, "window_left is set", d->window_left = 4);
    REFUSED(RAPT_UNUSED_FIELD, "window_right is set", d->window_right = -1);
    REFUSED(RAPT_UNUSED_FIELD, "keep_scale is set", d->keep_scale = 2);
    REFUSED(RAPT_UNUSED_FIELD, "bias_head_factor is set", d->bias_head_factor = zeros);
    REFUSED(RAPT_UNUSED_FIELD, "alibi_slopes is set", d->alibi_slopes = zeros,
            d->features = RAPT_ALIBI_STANDARD, d->query_origin = RAPT_ORIGIN_TOP_LEFT);
    REFUSED(RAPT_UNUSED_FIELD, "weights is set, but weights_kind", with_weights(d),
            d->weights_kind = RAPT_WEIGHTS_NONE);
    REFUSED(RAPT_UNUSED_FIELD, "query_position is set", d->query_position = list32(positions));
    REFUSED(RAPT_UNUSED_FIELD, "query_position is set", d->query_position = list32(positions),
            d->query_origin = RAPT_ORIGIN_BOTTOM_RIGHT);
    END_OF_ROWS;
}

static void test_query_origin(void **state) {
    (void)state;
    static const int32_t ones[2] = {1, 1};
    REFUSED(RAPT_UNSTATED_POSITION, "query_length = 3, kv_length = 5", d->features = RAPT_CAUSAL);
    REFUSED(RAPT_UNSTATED_POSITION, "query_length = 3, kv_length = 5", d->features = RAPT_WINDOW);
    REFUSED(RAPT_UNSTATED_POSITION, "query_length = 3, kv_length = 5", d->features = RAPT_ALIBI_STANDARD);
    REFUSED(RAPT_UNSTATED_POSITION, "query_length = 3, kv_length = 5", d->alibi_slopes = zeros);
    REFUSED(RAPT_UNSTATED_POSITION, "query_length = 3, kv_length = 3 and with lists",
            d->features = RAPT_CAUSAL, d->kv_length = 3, d->kv_lengths = list32(ones));
    REFUSED(RAPT_UNSTATED_POSITION, "lists", d->features = RAPT_CAUSAL, d->kv_length = 3,
            d->query_lengths = list32(ones));
    REFUSED(RAPT_UNSTATED_POSITION, "lists", d->features = RAPT_CAUSAL, d->kv_length = 3,
            d->key_position = list32(ones));
    REFUSED(RAPT_NULL_POINTER, "query_position.data", d->query_origin = RAPT_ORIGIN_GIVEN);
    END_OF_ROWS;
}

static void test_machine(void **state) {
    (void)state;
    for (int isa = RAPT_ISA_SCALAR; isa < RAPT_ISA_COUNT; isa++) {
        if (rapt_isa_available((rapt_isa)isa))
            LEGAL(d->isa = isa);
        else
            REFUSED(RAPT_UNSUPPORTED_ISA, rapt_isa_name((rapt_isa)isa), d->isa = isa);
    }
    assert_string_equal(rapt_isa_name(RAPT_ISA_AUTO), "auto");
    assert_string_equal(rapt_isa_name(RAPT_ISA_SCALAR), "scalar");
    assert_string_equal(rapt_isa_name(RAPT_ISA_AVX2), "avx2");
    assert_string_equal(rapt_isa_name(RAPT_ISA_AVX512), "avx512");
    assert_string_equal(rapt_isa_name(RAPT_ISA_NEON), "neon");
    assert_string_equal(rapt_isa_name(RAPT_ISA_AMX), "amx");
    assert_string_equal(rapt_isa_name(RAPT_ISA_AVX512_BF16), "avx512_bf16");
    assert_true(rapt_isa_available(RAPT_ISA_SCALAR));
    assert_false(rapt_isa_available((rapt_isa)RAPT_ISA_COUNT));
    assert_null(rapt_isa_name((rapt_isa)RAPT_ISA_COUNT));
    assert_null(rapt_isa_needs((rapt_isa)RAPT_ISA_COUNT));
    assert_null(rapt_isa_name((rapt_isa)-1));
    assert_non_null(strstr(rapt_isa_needs(RAPT_ISA_AVX2), "avx2 fma"));
    assert_non_null(strstr(rapt_isa_needs(RAPT_ISA_AMX), "amx_tile amx_bf16"));
    assert_non_null(strstr(rapt_isa_needs(RAPT_ISA_AVX512_BF16), "avx512_bf16"));
    assert_string_equal(rapt_isa_needs(RAPT_ISA_SCALAR), "");
    END_OF_ROWS;
}

/* A refused plan does not run, whatever it held before. */
static void test_refused_plan(void **state) {
    (void)state;
    rapt_plan plan;
    rapt_attention_desc *d = fresh();
    size_t bytes;
    static char workspace[1 << 20];
    assert_int_equal(rapt_plan_init(&plan, d, NULL), RAPT_OK);
    assert_int_equal(rapt_plan_workspace_bytes(&plan, 1, &bytes), RAPT_OK);
    assert_true(bytes <= sizeof workspace);
    assert_int_equal(rapt_run(&plan, workspace, bytes - 1, NULL), RAPT_WORKSPACE_TOO_SMALL);
    assert_int_equal(rapt_run_task(&plan, workspace, 0, 0), RAPT_NOT_PREPARED);
    assert_int_equal(rapt_join(&plan, workspace, 0), RAPT_NOT_PREPARED);
    d->head_dim = -1;
    assert_int_equal(rapt_plan_init(&plan, d, NULL), RAPT_INVALID_SHAPE);
    assert_int_equal(rapt_run(&plan, workspace, sizeof workspace, NULL), RAPT_INVALID_PLAN);
    assert_int_equal(rapt_run_task(&plan, workspace, 0, 0), RAPT_INVALID_PLAN);
    assert_true(outputs_untouched());
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_version),       cmocka_unit_test(test_numerics), cmocka_unit_test(test_flags),
        cmocka_unit_test(test_sizes),         cmocka_unit_test(test_lists),
        cmocka_unit_test(test_numbers),       cmocka_unit_test(test_unused_fields),
        cmocka_unit_test(test_query_origin),  cmocka_unit_test(test_machine),
        cmocka_unit_test(test_refused_plan),
    };
    return cmocka_run_group_tests_name("refusals", tests, NULL, NULL);
}
