/* SPDX-License-Identifier: MIT
 * What Bahdanau's and Luong's attention refuse. */
#include "layers/refused.h"

static float floats[4 * COUNT], weights[BATCH * TOKENS * TOKENS];
static const int32_t offsets[BATCH + 1] = {0, TOKENS, 2 * TOKENS};

static void bad_additive_attention_is_refused(void **state) {
    const rapt_attention_desc good_how = sizes(1);
    rapt_additive_desc additive = RAPT_ADDITIVE_DESC_INIT;
    (void)state;
    additive.state = additive.memory = additive.v = drawn(COUNT);
    additive.w = additive.u = drawn_linear(WIDTH, DIM);
    additive.out = floats;
#define ADDITIVE(...) OTHER(rapt_additive_attention, additive, __VA_ARGS__)
    ADDITIVE(RAPT_OK, "", (void)0);
    ADDITIVE(RAPT_INVALID_SHAPE, "query_heads = 2, kv_heads = 1: this layer has one head", how.query_heads = 2);
    ADDITIVE(RAPT_INVALID_SHAPE, "w.out = 4, u.out = 5", d->u = drawn_linear(WIDTH, DIM + 1));
    ADDITIVE(RAPT_INVALID_SHAPE, "u.in = 1025 is outside 1 ... 1024", d->u = drawn_linear(1025, DIM));
    ADDITIVE(RAPT_NULL_POINTER, "state = NULL", d->state = NULL);
    ADDITIVE(RAPT_INVALID_SHAPE, "w: in = 2147483649, out = 4", d->w.in = (INT64_C(1) << 31) + 1);
    ADDITIVE(RAPT_INVALID_SHAPE, "attention->kv_length = -1", how.kv_length = -1);
    ADDITIVE(RAPT_INVALID_SHAPE, "attention->kv_heads = 0", how.kv_heads = 0);
    ADDITIVE(RAPT_INVALID_SHAPE, "query_heads = 1, kv_heads = 1048577 exceed 2^20", how.kv_heads = (1 << 20) + 1);
    ADDITIVE(RAPT_INVALID_SHAPE, "query_heads = 1048577, kv_heads = 1 exceed 2^20", how.query_heads = (1 << 20) + 1);
    ADDITIVE(RAPT_NULL_POINTER, "memory = NULL", d->memory = NULL);
    ADDITIVE(RAPT_NULL_POINTER, "v = NULL", d->v = NULL);
    ADDITIVE(RAPT_MISALIGNED_POINTER, "v = ", d->v = odd(d->v));
    ADDITIVE(RAPT_MISALIGNED_POINTER, "state = ", d->state = odd(d->state));
    ADDITIVE(RAPT_MISALIGNED_POINTER, "memory = ", d->memory = odd(d->memory));
    ADDITIVE(RAPT_MISALIGNED_POINTER, "scores = ", d->scores = odd(floats));
    ADDITIVE(RAPT_UNUSED_FIELD, "attention has a bias", how.features = RAPT_SCALE);
    ADDITIVE(RAPT_UNUSED_FIELD, "attention has a bias", how.bias_head_factor = floats);
    ADDITIVE(RAPT_UNUSED_FIELD, "softcap or scale", how.scale = 0.5f);
    ADDITIVE(RAPT_UNSUPPORTED_FLAG, "weights_kind = 1: scores are a bias here", how.weights_kind = RAPT_WEIGHTS_RAW,
             how.weights = rapt_output_bhsd(weights, BATCH, 1, TOKENS, TOKENS));
    ADDITIVE(RAPT_UNSUPPORTED_FLAG, "weights_kind = 2: scores are a bias here", how.weights_kind = RAPT_WEIGHTS_SOFTCAP,
             how.weights = rapt_output_bhsd(weights, BATCH, 1, TOKENS, TOKENS));
    ADDITIVE(RAPT_OK, "", how.weights_kind = RAPT_WEIGHTS_MASKED,
             how.weights = rapt_output_bhsd(weights, BATCH, 1, TOKENS, TOKENS));
    ADDITIVE(RAPT_UNUSED_FIELD, "offsets or page tables", how.kv_offsets = rapt_int32_list(offsets, BATCH + 1));
    ADDITIVE(RAPT_UNUSED_FIELD, "offsets or page tables", how.value_pages.kind = RAPT_PAGES_DENSE);
    test_free_all();
}

static void bad_luong_attention_is_refused(void **state) {
    const rapt_attention_desc good_how = sizes(1);
    rapt_luong_desc luong = RAPT_LUONG_DESC_INIT;
    (void)state;
    luong.state = luong.memory = luong.w_a = luong.v_a = drawn(COUNT);
    luong.state_width = luong.memory_width = WIDTH;
    luong.out = floats;
#define LUONG(...) OTHER(rapt_luong_attention, luong, __VA_ARGS__)
    LUONG(RAPT_OK, "", (void)0);
    LUONG(RAPT_INVALID_SHAPE, "dot requires equal ones", d->memory_width = WIDTH - 1);
    LUONG(RAPT_INVALID_SHAPE, "memory_width = 1025 is outside", d->state_width = d->memory_width = 1025);
    LUONG(RAPT_UNUSED_FIELD, "align and position are results of local-p", d->align = floats);
    LUONG(RAPT_UNUSED_FIELD, "align and position are results of local-p", d->position = floats);
    LUONG(RAPT_UNUSED_FIELD, "attentional without w_c", d->attentional = floats);
    LUONG(RAPT_UNUSED_FIELD, "softcap or scale", how.scale = 0.5f);
    LUONG(RAPT_INVALID_SHAPE, "w_a: in = 24, out = 10", d->score = RAPT_LUONG_CONCAT, d->units = INT64_C(1) << 40);
    LUONG(RAPT_UNUSED_FIELD, "sinks, slopes or query_lengths", how.sinks = floats);
    LUONG(RAPT_UNUSED_FIELD, "sinks, slopes or query_lengths", how.alibi_slopes = floats);
    LUONG(RAPT_UNUSED_FIELD, "features, a mask or positions", how.features = RAPT_CAUSAL);
    LUONG(RAPT_UNUSED_FIELD, "features, a mask or positions", how.query_origin = RAPT_ORIGIN_TOP_LEFT);
    LUONG(RAPT_UNUSED_FIELD, "features, a mask or positions", how.key_position = rapt_int32_list(offsets, BATCH));
    LUONG(RAPT_UNUSED_FIELD, "features, a mask or positions",
          how.mask = rapt_bool_mask((const unsigned char *)weights, 0, 0, 0));
    LUONG(RAPT_SIZE_OVERFLOW, "an array of", how.batch = how.kv_length = INT64_C(1) << 30, how.query_length = 1);
    LUONG(RAPT_INVALID_SHAPE, "units = 0 is outside", d->score = RAPT_LUONG_CONCAT);
    LUONG(RAPT_INVALID_SHAPE, "state_width = -1 is outside", d->score = RAPT_LUONG_CONCAT, d->units = 1,
          d->state_width = -1);
    LUONG(RAPT_UNSUPPORTED_FLAG, "score = 3 is unknown", d->score = 3);
    LUONG(RAPT_UNSUPPORTED_FLAG, "score = -1 is unknown", d->score = -1);
    LUONG(RAPT_UNSUPPORTED_FLAG, "window = -1 is unknown", d->window = -1);
    LUONG(RAPT_UNSUPPORTED_FLAG, "window = 3 is unknown", d->window = 3, d->reach = 1);
    LUONG(RAPT_INVALID_SHAPE, "reach = 0", d->window = RAPT_LUONG_LOCAL_M);
    LUONG(RAPT_MISALIGNED_POINTER, "v_a = ", d->score = RAPT_LUONG_CONCAT, d->units = 1, d->v_a = odd(d->v_a));
    LUONG(RAPT_MISALIGNED_POINTER, "scores = ", d->score = RAPT_LUONG_CONCAT, d->units = 1, d->scores = odd(floats));
    LUONG(RAPT_MISALIGNED_POINTER, "state = ", d->state = odd(d->state));
    LUONG(RAPT_MISALIGNED_POINTER, "memory = ", d->memory = odd(d->memory));
    LUONG(RAPT_MISALIGNED_POINTER, "attentional = ", d->w_c = drawn_linear(2 * WIDTH, 1), d->attentional = odd(floats));
    luong.window = RAPT_LUONG_LOCAL_P, luong.reach = 1, luong.w_p = drawn_linear(WIDTH, DIM), luong.v_p = drawn(DIM);
    LUONG(RAPT_MISALIGNED_POINTER, "v_p = ", d->v_p = odd(d->v_p));
    LUONG(RAPT_UNSUPPORTED_FLAG, "weights_kind = 3: local-p supports SOFTMAX only",
          how.weights_kind = RAPT_WEIGHTS_MASKED, how.weights = rapt_output_bhsd(weights, BATCH, 1, TOKENS, TOKENS));
    LUONG(RAPT_MISALIGNED_POINTER, "position = ", d->position = odd(floats));
    LUONG(RAPT_MISALIGNED_POINTER, "align = ", d->align = odd(floats));
    test_free_all();
}

/* A result that was written is not 42. */
static rapt_luong_desc unwritten_luong(const rapt_attention_desc *how) {
    rapt_luong_desc luong = RAPT_LUONG_DESC_INIT;
    luong.attention = how;
    luong.state = luong.memory = drawn(COUNT);
    luong.state_width = luong.memory_width = WIDTH;
    luong.out = test_floats(COUNT);
    luong.out[0] = 42;
    return luong;
}

/* By the last of several calls, after scores would have used out as scratch memory. */
static void overlapping_results_of_luong_leave_out(void **state) {
    static float scores[BATCH * TOKENS * TOKENS];
    const rapt_attention_desc how = sizes(1);
    rapt_luong_desc luong = unwritten_luong(&how);
    (void)state;
    luong.window = RAPT_LUONG_LOCAL_P;
    luong.reach = 2;
    luong.w_p = drawn_linear(WIDTH, DIM);
    luong.v_p = drawn(DIM);
    luong.scores = scores;
    luong.align = (float *)(uintptr_t)luong.memory;
    said(rapt_luong_attention(&luong, NULL, &message), RAPT_OVERLAPPING_OUTPUT, "overlaps", __LINE__);
    assert_true(luong.out[0] == 42);
    luong.align = NULL;
    said(rapt_luong_attention(&luong, NULL, &message), RAPT_OK, "", __LINE__);
    assert_true(luong.out[0] != 42);
    test_free_all();
}

/* Weights beyond memory are used last, when the context is already in out. */
static void weights_beyond_memory_leave_out(void **state) {
    const rapt_attention_desc how = sizes(1);
    const int64_t wild = INT64_C(1) << 62;
    float *scores = test_floats(BATCH * TOKENS * TOKENS);
    rapt_luong_desc luong = unwritten_luong(&how);
    (void)state;
    luong.attentional = test_floats(COUNT);
    luong.w_c = drawn_linear(2 * WIDTH, WIDTH);
    luong.w_c.weight_stride_bytes = wild;
    said(rapt_luong_attention(&luong, NULL, &message), RAPT_INVALID_STRIDE, "w_c.weight_stride_bytes = 46", __LINE__);
    assert_true(luong.out[0] == 42);
    luong.w_c.weight_stride_bytes = 0;
    luong.w_c.bias = (const float *)(UINTPTR_MAX - 7);
    said(rapt_luong_attention(&luong, NULL, &message), RAPT_INVALID_STRIDE, "leaves the address space", __LINE__);
    assert_true(luong.out[0] == 42);
    luong.w_c = (rapt_linear){0};
    luong.attentional = NULL;
    luong.window = RAPT_LUONG_LOCAL_P;
    luong.reach = 2;
    luong.w_p = drawn_linear(WIDTH, DIM);
    luong.w_p.weight_stride_bytes = wild;
    luong.v_p = drawn(DIM);
    luong.scores = scores;
    said(rapt_luong_attention(&luong, NULL, &message), RAPT_INVALID_STRIDE, "w_p.weight_stride_bytes = 46", __LINE__);
    assert_true(luong.out[0] == 42);
    test_free_all();
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bad_additive_attention_is_refused),
        cmocka_unit_test(bad_luong_attention_is_refused),
        cmocka_unit_test(overlapping_results_of_luong_leave_out),
        cmocka_unit_test(weights_beyond_memory_leave_out),
    };
    return cmocka_run_group_tests_name("layers_refusals_older", tests, NULL, NULL);
}
