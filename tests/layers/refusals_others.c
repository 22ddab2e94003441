/* SPDX-License-Identifier: MIT
 * What stacked heads, encoder blocks and dot products refuse, and wild sizes of any layer. */
#include <math.h>
#include <stdlib.h>

#include "layers/refused.h"

static void bad_stacked_heads_are_refused(void **state) {
    const rapt_attention_desc good_how = sizes(2);
    const rapt_linear heads[2] = {drawn_linear(WIDTH, DIM), drawn_linear(WIDTH, DIM)};
    const rapt_linear uneven[2] = {drawn_linear(WIDTH, DIM), drawn_linear(WIDTH, DIM + 1)};
    rapt_stacked_desc stacked = RAPT_STACKED_DESC_INIT;
    (void)state;
    stacked.x = drawn(COUNT), stacked.out = test_floats(COUNT);
    stacked.query = stacked.key = stacked.value = heads;
#define STACKED(...) OTHER(rapt_stacked_attention, stacked, __VA_ARGS__)
    STACKED(RAPT_OK, "", (void)0);
    STACKED(RAPT_INVALID_SHAPE, "each pair is equal here", how.kv_heads = 1);
    STACKED(RAPT_INVALID_SHAPE, "each pair is equal here", how.kv_length = TOKENS - 1);
    STACKED(RAPT_INVALID_SHAPE, "head 1: query.out = 5", d->query = uneven);
    STACKED(RAPT_INVALID_SHAPE, "head 1: query.out = 4, key.out = 5, value.out = 4: expected 4, 4, 4", d->key = uneven);
    STACKED(RAPT_INVALID_SHAPE, "head 1: query.out = 4, key.out = 4, value.out = 5", d->value = uneven);
    STACKED(RAPT_NULL_POINTER, "value = NULL", d->value = NULL);
    test_free_all();
}

static void bad_blocks_are_refused(void **state) {
    const rapt_attention_desc good_how = sizes(HEADS);
    rapt_multi_head_desc inner = make(&good_how);
    rapt_encoder_desc block = RAPT_ENCODER_DESC_INIT;
    (void)state;
    block.x = inner.x, block.out = inner.out, inner.x = NULL, inner.out = NULL;
    block.attention = &inner;
    block.norm1.epsilon = block.norm2.epsilon = 1e-5f;
    block.ff1 = drawn_linear(WIDTH, HIDDEN), block.ff2 = drawn_linear(HIDDEN, WIDTH);
#define BLOCK(status, text, ...)                                                                                    \
    do {                                                                                                            \
        rapt_attention_desc how = good_how;                                                                         \
        rapt_multi_head_desc layer = inner;                                                                         \
        rapt_encoder_desc d = block;                                                                                \
        layer.attention = &how, d.attention = &layer;                                                               \
        __VA_ARGS__;                                                                                                \
        said(rapt_encoder_block(&d, NULL, &message), status, text, __LINE__);                                       \
    } while (0)
    BLOCK(RAPT_OK, "", (void)0);
    BLOCK(RAPT_INVALID_SHAPE, "query: in = -1", layer.query.in = -1);
    BLOCK(RAPT_INVALID_SHAPE, "ff2.out = 13", d.ff2 = drawn_linear(HIDDEN, WIDTH + 1));
    BLOCK(RAPT_INVALID_SHAPE, "ff2.in = 19", d.ff2 = drawn_linear(HIDDEN - 1, WIDTH));
    BLOCK(RAPT_INVALID_SHAPE, "attention->output.out = 8", layer.output = drawn_linear(WIDTH, 8));
    BLOCK(RAPT_INVALID_SHAPE, "query_heads * value_dim = 3 * 12", layer.output.weight = NULL, how.kv_heads = 1,
          layer.key = drawn_linear(WIDTH, DIM), layer.value = drawn_linear(WIDTH, WIDTH));
    BLOCK(RAPT_OK, "", layer.output.weight = NULL, how.kv_heads = 1, layer.key = drawn_linear(WIDTH, DIM),
          layer.value = drawn_linear(WIDTH, DIM));
    BLOCK(RAPT_UNSUPPORTED_FLAG, "activation = 3", d.activation = 3);
    BLOCK(RAPT_UNSUPPORTED_FLAG, "activation = -1", d.activation = -1);
    BLOCK(RAPT_UNSUPPORTED_FLAG, "pre_norm = 2", d.pre_norm = 2);
    BLOCK(RAPT_INVALID_VALUE, "norm2.epsilon", d.norm2.epsilon = 0);
    BLOCK(RAPT_INVALID_VALUE, "norm1.epsilon = inf", d.norm1.epsilon = INFINITY);
    BLOCK(RAPT_MISALIGNED_POINTER, "norm2: gamma or beta", d.norm2.beta = odd(block.x));
    BLOCK(RAPT_UNSUPPORTED_VERSION, "attention->struct_size = 8", layer.struct_size = 8);
    BLOCK(RAPT_UNUSED_FIELD, "attention has x or memory", layer.x = block.x);
    BLOCK(RAPT_UNUSED_FIELD, "attention has x or memory", layer.memory = block.x);
    BLOCK(RAPT_UNUSED_FIELD, "attention has x or memory", layer.memory_value = block.x);
    for (block.pre_norm = 0; block.pre_norm <= 1; block.pre_norm++) {
        BLOCK(RAPT_MISALIGNED_POINTER, "x = ", d.x = odd(d.x));
        BLOCK(RAPT_MISALIGNED_POINTER, "out = ", d.out = odd(d.out));
        BLOCK(RAPT_MISALIGNED_POINTER, "norm1_out = ", d.norm1_out = odd(d.out));
        BLOCK(RAPT_MISALIGNED_POINTER, "ff_out = ", d.ff_out = odd(d.out));
        BLOCK(RAPT_MISALIGNED_POINTER, "attention->out = ", layer.out = odd(d.out));
    }
    test_free_all();
}

/* Attention has its own names for most of them. */
static void misaligned_arrays_of_heads_are_named(void **state) {
    const rapt_attention_desc good_how = sizes(HEADS);
    rapt_multi_head_desc heads = make(&good_how);
    const float *floats = heads.memory = heads.memory_value = heads.x;
    (void)state;
#define MISALIGNED(text, ...) OTHER(rapt_multi_head_attention, heads, RAPT_MISALIGNED_POINTER, text, __VA_ARGS__)
    MISALIGNED("x = ", d->x = odd(floats));
    MISALIGNED("memory = ", d->memory = odd(floats));
    MISALIGNED("memory_value = ", d->memory_value = odd(floats));
    MISALIGNED("query_out = ", d->query_out = odd(floats));
    MISALIGNED("key_out = ", d->key_out = odd(floats));
    MISALIGNED("value_out = ", d->value_out = odd(floats));
    MISALIGNED("context = ", d->context = odd(floats));
    MISALIGNED("scores = ", d->scores = odd(floats));
    MISALIGNED("out = ", d->out = odd(floats));
    heads.memory = heads.memory_value = NULL, heads.query = heads.key = heads.value = (rapt_linear){0};
    heads.fused = drawn_linear(WIDTH, 3 * WIDTH);
    MISALIGNED("fused_out = ", d->fused_out = odd(floats));
    test_free_all();
}

/* Sizes of results are checked though these lie in the caller's memory. */
static void heads_use_what_they_are_given(void **state) {
    const rapt_attention_desc good_how = sizes(HEADS);
    rapt_multi_head_desc heads = make(&good_how);
    float *floats = test_floats(COUNT);
    (void)state;
#define HEADS_OF(...) OTHER(rapt_multi_head_attention, heads, __VA_ARGS__)
    HEADS_OF(RAPT_UNUSED_FIELD, "context without output", d->output.weight = NULL, d->context = floats);
    HEADS_OF(RAPT_SIZE_OVERFLOW, "an array of", how.batch = INT64_C(1) << 30, d->output.out = 1 << 12,
             how.query_length = how.kv_length = 1 << 20,
             d->query_out = d->key_out = d->value_out = d->context = floats);
    heads.query = heads.key = heads.value = (rapt_linear){0};
    heads.fused = drawn_linear(WIDTH, 3 * WIDTH);
    HEADS_OF(RAPT_OK, "", (void)0);
    HEADS_OF(RAPT_UNSUPPORTED_FLAG, "fused_order = 7 is unknown", d->fused_order = 7);
    HEADS_OF(RAPT_UNUSED_FIELD, "fused excludes", d->key_out = floats);
    HEADS_OF(RAPT_UNUSED_FIELD, "fused excludes", d->memory = floats);
    HEADS_OF(RAPT_UNUSED_FIELD, "fused excludes", d->memory_value = floats);
    test_free_all();
}

static void context_and_out_are_two(void **state) {
    const rapt_attention_desc how = sizes(HEADS);
    rapt_multi_head_desc layer = make(&how);
    (void)state;
    layer.out[0] = 42;
    layer.context = layer.out;
    said(rapt_multi_head_attention(&layer, NULL, &message), RAPT_OVERLAPPING_OUTPUT, "context overlaps out", __LINE__);
    assert_true(layer.out[0] == 42);
    test_free_all();
}

/* Lists that lead out of memory, misaligned numbers, and shapes without rows, however many. */
static void hostile_shapes_are_refused_at_once(void **state) {
    static const int64_t many[] = {INT64_C(1) << 40, INT64_C(1) << 10, 1, 1};
    static const int32_t ids[2];
    static float table[4], out[8];
    const rapt_norm norm = {NULL, NULL, 1e-5f};
    rapt_index_list list = rapt_int32_list(ids, 0);
    rapt_dot_product_desc dot = RAPT_DOT_PRODUCT_DESC_INIT;
    (void)state;
    list.stride_bytes = INT64_MAX - 7;
    said(rapt_embedding(list, 3, table, 1, 4, out, &message), RAPT_INVALID_SHAPE, "leave the address space", __LINE__);
    said(rapt_embedding(list, 1, table, 1, 4, out, &message), RAPT_OK, "", __LINE__);
    said(rapt_embedding(list, 1, table, 0, 4, out, &message), RAPT_INVALID_VALUE, "the table has 0 rows", __LINE__);
    said(rapt_embedding(list, 0, table, -1, 4, out, &message), RAPT_INVALID_SHAPE, "rows = -1", __LINE__);
    said(rapt_embedding(list, 0, table, INT64_C(1) << 40, INT64_C(1) << 30, out, &message), RAPT_SIZE_OVERFLOW,
         "an array of", __LINE__);
    said(rapt_embedding(list, INT64_MIN, table, 1, 4, out, &message), RAPT_INVALID_SHAPE, "count = -9", __LINE__);
    said(rapt_embedding(list, 1, odd(table), 1, 4, out, &message), RAPT_MISALIGNED_POINTER, "table = ", __LINE__);
    said(rapt_embedding(list, 1, table, 1, 4, odd(out), &message), RAPT_MISALIGNED_POINTER, "out = ", __LINE__);
    said(rapt_layer_norm(&norm, odd(table), 1, 1, out, &message), RAPT_MISALIGNED_POINTER, "x = ", __LINE__);
    said(rapt_layer_norm(&norm, table, 1, 1, odd(out), &message), RAPT_MISALIGNED_POINTER, "out = ", __LINE__);
    dot.leading = 4, dot.shape = many, dot.head_dim = 4;
    dot.query = dot.key = table, dot.value = odd(table), dot.out = out;
    said(rapt_dot_product_attention(&dot, NULL, &message), RAPT_MISALIGNED_POINTER, "value = ", __LINE__);
    dot.value = table, dot.scores = odd(out);
    said(rapt_dot_product_attention(&dot, NULL, &message), RAPT_MISALIGNED_POINTER, "scores = ", __LINE__);
    dot.scores = NULL;
    said(rapt_dot_product_attention(&dot, NULL, &message), RAPT_OK, "", __LINE__);
    dot.shape = (const int64_t[]){INT64_C(1) << 40, INT64_C(1) << 22, 1, 1};
    said(rapt_dot_product_attention(&dot, NULL, &message), RAPT_SIZE_OVERFLOW, "", __LINE__);
    dot.shape = (const int64_t[]){0, 1, INT64_C(1) << 40, INT64_C(1) << 40};
    said(rapt_dot_product_attention(&dot, NULL, &message), RAPT_SIZE_OVERFLOW, "the product of shape", __LINE__);
    dot.shape = (const int64_t[]){INT64_C(1) << 40, 1 << 12, 1, 1};
    dot.query_length = dot.kv_length = 1, dot.head_dim = 1024;
    said(rapt_dot_product_attention(&dot, NULL, &message), RAPT_SIZE_OVERFLOW, "an array of", __LINE__);
    dot.shape = (const int64_t[]){INT64_C(1) << 40, 1, 1, 1};
    dot.query_length = dot.kv_length = 1 << 12, dot.head_dim = 4;
    said(rapt_dot_product_attention(&dot, NULL, &message), RAPT_SIZE_OVERFLOW, "an array of", __LINE__);
    dot.query_length = dot.kv_length = 0;
    dot.query_origin = -1;
    said(rapt_dot_product_attention(&dot, NULL, &message), RAPT_UNSUPPORTED_FLAG, "-1: there are", __LINE__);
    dot.query_origin = 0, dot.value_dim = -1;
    said(rapt_dot_product_attention(&dot, NULL, &message), RAPT_INVALID_SHAPE, "value_dim = -1 is outside 0", __LINE__);
    dot.value_dim = 0;
    dot.shape = many, dot.features = RAPT_SCALE, dot.scale = NAN;
    said(rapt_dot_product_attention(&dot, NULL, &message), RAPT_INVALID_VALUE, "scale", __LINE__);
    dot.shape = (const int64_t[]){2, -1, 1, 1};
    said(rapt_dot_product_attention(&dot, NULL, &message), RAPT_INVALID_SHAPE, "shape[1] = -1", __LINE__);
}

static void sequences_without_queries_take_no_time(void **state) {
    rapt_attention_desc how = sizes(1);
    rapt_additive_desc additive = RAPT_ADDITIVE_DESC_INIT;
    rapt_luong_desc luong = RAPT_LUONG_DESC_INIT;
    (void)state;
    how.batch = INT64_C(1) << 36;
    how.query_length = how.kv_length = 0;
    additive.attention = luong.attention = &how;
    additive.state = additive.memory = additive.v = luong.state = luong.memory = drawn(COUNT);
    additive.out = luong.out = test_floats(COUNT);
    additive.w = additive.u = drawn_linear(WIDTH, DIM);
    said(rapt_additive_attention(&additive, NULL, &message), RAPT_OK, "", __LINE__);
    luong.state_width = luong.memory_width = WIDTH;
    luong.score = RAPT_LUONG_CONCAT;
    luong.w_a = luong.v_a = luong.v_p = luong.state;
    luong.units = 2;
    said(rapt_luong_attention(&luong, NULL, &message), RAPT_OK, "", __LINE__);
    how.batch = 0;
    how.query_length = how.kv_length = INT64_C(1) << 32;
    said(rapt_luong_attention(&luong, NULL, &message), RAPT_SIZE_OVERFLOW, "an array of", __LINE__);
    how.batch = INT64_C(1) << 36;
    how.query_length = how.kv_length = 0;
    luong.score = RAPT_LUONG_DOT;
    luong.w_a = luong.v_a = NULL, luong.units = 0;
    luong.window = RAPT_LUONG_LOCAL_P, luong.reach = 2;
    luong.w_p = drawn_linear(WIDTH, DIM);
    said(rapt_luong_attention(&luong, NULL, &message), RAPT_OK, "", __LINE__);
    test_free_all();
}

/* Strides are products of all sizes but the first: none overflows, though there is no row. */
static void empty_batches_of_wild_sizes_are_refused(void **state) {
    enum { MANY = 1 << 20 };
    const int64_t wild = INT64_C(1) << 40, shape[] = {0, wild};
    rapt_attention_desc how = sizes(1);
    rapt_multi_head_desc layer = make(&how);
    rapt_dot_product_desc dot = RAPT_DOT_PRODUCT_DESC_INIT;
    rapt_additive_desc additive = RAPT_ADDITIVE_DESC_INIT;
    rapt_stacked_desc stacked = RAPT_STACKED_DESC_INIT;
    rapt_linear *heads = calloc(MANY, sizeof *heads);
    (void)state;
    assert_non_null(heads);
    how.batch = 0;
    how.query_length = how.kv_length = wild;
    dot.leading = 2, dot.shape = shape, dot.head_dim = 4, dot.query_length = dot.kv_length = wild;
    dot.query = dot.key = dot.value = layer.x, dot.out = layer.out;
    additive.attention = stacked.attention = &how;
    additive.state = additive.memory = additive.v = stacked.x = layer.x, additive.out = stacked.out = layer.out;
    additive.w = additive.u = drawn_linear(WIDTH, DIM);
    for (int h = 0; h < MANY; h++)
        heads[h] = rapt_linear_of(layer.x, NULL, WIDTH, 1000);
    stacked.query = stacked.key = stacked.value = heads;
    said(rapt_dot_product_attention(&dot, NULL, &message), RAPT_SIZE_OVERFLOW, "the product of shape", __LINE__);
    said(rapt_additive_attention(&additive, NULL, &message), RAPT_SIZE_OVERFLOW, "an array of", __LINE__);
    how.query_length = 1, how.kv_length = INT64_C(1) << 32; /* scores fit, but the memory is too large */
    additive.u.in = INT64_C(1) << 31;
    said(rapt_additive_attention(&additive, NULL, &message), RAPT_SIZE_OVERFLOW, "an array of", __LINE__);
    how.query_length = how.kv_length = wild;
    how.query_heads = how.kv_heads = MANY;
    layer.query = layer.key = layer.value = rapt_linear_of(layer.x, NULL, WIDTH, 1 << 30);
    layer.output = (rapt_linear){0};
    said(rapt_multi_head_attention(&layer, NULL, &message), RAPT_SIZE_OVERFLOW, "an array of", __LINE__);
    said(rapt_stacked_attention(&stacked, NULL, &message), RAPT_SIZE_OVERFLOW, "an array of", __LINE__);
    free(heads);
    test_free_all();
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bad_stacked_heads_are_refused),
        cmocka_unit_test(bad_blocks_are_refused),
        cmocka_unit_test(misaligned_arrays_of_heads_are_named),
        cmocka_unit_test(heads_use_what_they_are_given),
        cmocka_unit_test(context_and_out_are_two),
        cmocka_unit_test(hostile_shapes_are_refused_at_once),
        cmocka_unit_test(sequences_without_queries_take_no_time),
        cmocka_unit_test(empty_batches_of_wild_sizes_are_refused),
    };
    return cmocka_run_group_tests_name("layers_refusals_others", tests, NULL, NULL);
}
