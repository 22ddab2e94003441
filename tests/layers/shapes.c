/* SPDX-License-Identifier: MIT
 * Heads of differing counts and sizes. */
#include <math.h>

#include "layers/drawn.h"

/* Concatenates the outputs of all. */
static rapt_linear joined(const rapt_linear *const *linears, int count) {
    int64_t out = 0, at = 0;
    for (int i = 0; i < count; i++) out += linears[i]->out;
    float *weight = test_floats(out * WIDTH), *bias = test_floats(out);
    for (int i = 0; i < count; at += linears[i++]->out) {
        memcpy(weight + at * WIDTH, linears[i]->weight, (size_t)(linears[i]->out * WIDTH) * sizeof(float));
        memcpy(bias + at, linears[i]->bias, (size_t)linears[i]->out * sizeof(float));
    }
    return rapt_linear_of(weight, bias, WIDTH, out);
}

/* Four query heads on two of keys and values. */
static void fused_blocks_share_key_heads(void **state) {
#ifdef RAPT_BLAS
    skip();
#endif
    rapt_attention_desc how = sizes(4);
    (void)state;
    how.kv_heads = 2;
    rapt_multi_head_desc layer = make(&how);
    layer.key = drawn_linear(WIDTH, WIDTH / 2);
    layer.value = drawn_linear(WIDTH, WIDTH / 2);
    const rapt_linear *const three[] = {&layer.query, &layer.key, &layer.value};
    const rapt_linear fused = joined(three, 3);
    const float *split = layer.out;
    expect_ok(rapt_multi_head_attention(&layer, NULL, &message));
    layer.query = layer.key = layer.value = (rapt_linear){0};
    layer.fused = fused;
    layer.fused_order = RAPT_FUSED_BLOCKS;
    layer.out = test_floats(COUNT);
    expect_ok(rapt_multi_head_attention(&layer, NULL, &message));
    expect_bits(layer.out, split, COUNT, NAN_CANONICAL, "fused");
    layer.fused_order = RAPT_FUSED_PER_HEAD;
    assert_int_equal(rapt_multi_head_attention(&layer, NULL, &message), RAPT_INVALID_SHAPE);
    test_free_all();
}

/* Requesting scores changes nothing else, and they are products of the projections. */
static void scores_of_other_value_dims(void **state) {
    (void)state;
    for (int64_t value_dim = DIM - 2; value_dim <= DIM + 2; value_dim++) {
        rapt_attention_desc how = sizes(HEADS);
        rapt_multi_head_desc layer = make(&how);
        layer.value = drawn_linear(WIDTH, HEADS * value_dim);
        layer.output = (rapt_linear){0};
        const int64_t count = BATCH * TOKENS * HEADS * value_dim;
        float *without = layer.out = test_floats(count);
        expect_ok(rapt_multi_head_attention(&layer, NULL, &message));
        layer.out = test_floats(count);
        layer.scores = test_floats(BATCH * HEADS * TOKENS * TOKENS);
        layer.query_out = test_floats(COUNT), layer.key_out = test_floats(COUNT);
        expect_ok(rapt_multi_head_attention(&layer, NULL, &message));
        expect_bits(layer.out, without, count, NAN_CANONICAL, "out, value_dim %d", (int)value_dim);
        for (int i = 0; i < BATCH * HEADS * TOKENS * TOKENS; i++) {
            const int b = i / (HEADS * TOKENS * TOKENS), h = i / (TOKENS * TOKENS) % HEADS;
            const float *query = layer.query_out + (b * TOKENS + i / TOKENS % TOKENS) * WIDTH + h * DIM;
            const float *key = layer.key_out + (b * TOKENS + i % TOKENS) * WIDTH + h * DIM;
            double score = 0;
            for (int d = 0; d < DIM; d++) score += (double)query[d] * (double)key[d];
            assert_true(fabs((double)layer.scores[i] - score) <= 4e-6);
        }
        test_free_all();
    }
}

/* Scores are what the softmax takes, whatever order of operations a call requests. */
static void scores_follow_numerics(void **state) {
    (void)state;
    for (int32_t numerics = 0; numerics <= 3; numerics += 3) {
        const int64_t count = BATCH * HEADS * TOKENS * TOKENS;
        rapt_attention_desc how = sizes(HEADS);
        rapt_multi_head_desc layer = make(&how);
        float *raw = test_floats(count);
        how.numerics = numerics;
        how.features = RAPT_SCALE;
        how.scale = 1;
        how.weights = rapt_output_bhsd(raw, BATCH, HEADS, TOKENS, TOKENS);
        how.weights_kind = RAPT_WEIGHTS_RAW;
        layer.scores = test_floats(count);
        expect_ok(rapt_multi_head_attention(&layer, NULL, &message));
        expect_bits(layer.scores, raw, count, NAN_CANONICAL, "scores, numerics %d", (int)numerics);
        test_free_all();
    }
}

/* Four query heads of WIDTH / 4 values, side by side as wide as x. */
static rapt_multi_head_desc grouped(const rapt_attention_desc *how, bool fused) {
    const int64_t value_dim = WIDTH / 4, head_dim = value_dim + 2, kv_heads = how->kv_heads;
    rapt_multi_head_desc layer = RAPT_MULTI_HEAD_DESC_INIT;
    layer.attention = how;
    layer.fused_order = RAPT_FUSED_BLOCKS;
    if (fused) {
        layer.fused = drawn_linear(WIDTH, (4 + 2 * kv_heads) * value_dim);
    } else {
        layer.query = drawn_linear(WIDTH, 4 * head_dim);
        layer.key = drawn_linear(WIDTH, kv_heads * head_dim);
        layer.value = drawn_linear(WIDTH, kv_heads * value_dim);
    }
    return layer;
}

/* Without an output projection, the heads themselves are added, as with an identity. */
static void blocks_take_grouped_heads(void **state) {
    (void)state;
    for (int way = 0; way < 8; way++) {
        rapt_attention_desc how = sizes(4);
        how.kv_heads = way & 1 ? 1 : 2;
        rapt_multi_head_desc inner = grouped(&how, way & 2);
        rapt_encoder_desc block = RAPT_ENCODER_DESC_INIT;
        float *identity = test_floats(WIDTH * WIDTH), *bare = block.out = test_floats(COUNT);
        for (int i = 0; i < WIDTH * WIDTH; i++) identity[i] = i % (WIDTH + 1) == 0;
        block.attention = &inner;
        block.norm1.epsilon = block.norm2.epsilon = 1e-5f;
        block.ff1 = drawn_linear(WIDTH, HIDDEN);
        block.ff2 = drawn_linear(HIDDEN, WIDTH);
        block.pre_norm = way / 4;
        block.x = drawn(COUNT);
        expect_ok(rapt_encoder_block(&block, NULL, &message));
        inner.output = rapt_linear_of(identity, NULL, WIDTH, WIDTH);
        block.out = test_floats(COUNT);
        expect_ok(rapt_encoder_block(&block, NULL, &message));
        expect_bits(bare, block.out, COUNT, NAN_CANONICAL, "way %d", way);
        test_free_all();
    }
}

/* What a layer fills in, or has not, is refused if any field of it is set. */
static void leftovers_are_refused(void **state) {
    (void)state;
    for (int field = 0; field < 5; field++) {
        rapt_attention_desc how = sizes(1);
        rapt_tensor *const tensors[] = {&how.query, &how.key, &how.value, &how.out, &how.bias};
        rapt_additive_desc layer = RAPT_ADDITIVE_DESC_INIT;
        float *x = drawn(COUNT), *v = drawn(WIDTH);
        layer.attention = &how;
        layer.state = layer.memory = x;
        layer.w = drawn_linear(WIDTH, WIDTH), layer.u = drawn_linear(WIDTH, WIDTH);
        layer.v = v;
        layer.out = test_floats(COUNT);
        expect_ok(rapt_additive_attention(&layer, NULL, &message));
        tensors[field]->token_stride_bytes = 12;
        assert_int_equal(rapt_additive_attention(&layer, NULL, &message), RAPT_UNUSED_FIELD);
        tensors[field]->token_stride_bytes = 0;
        tensors[field]->dtype = RAPT_F32;
        assert_int_equal(rapt_additive_attention(&layer, NULL, &message), RAPT_UNUSED_FIELD);
        test_free_all();
    }
}

/* A shape without elements gets the refusals of any other, wherever its 0 is. */
static void empty_shapes_are_refused_alike(void **state) {
    static const int64_t shapes[][4] = {{0},       {1},       {0, 1},    {1, 0},       {0, 1, 1},
                                        {1, 0, 1}, {1, 1, 0}, {0, 2, 0, 1}, {2, 0, 1, 1}};
    static const int leading[] = {1, 1, 2, 2, 3, 3, 3, 4, 4};
    (void)state;
    for (size_t i = 0; i < sizeof leading / sizeof *leading; i++) {
        static const unsigned char mask[2 * 3] = {1};
        static const int64_t mask_shape[] = {1, 1, 1, 1, 2, 3};
        rapt_dot_product_desc layer = RAPT_DOT_PRODUCT_DESC_INIT;
        float *x = drawn(3 * WIDTH);
        layer.leading = leading[i];
        layer.shape = shapes[i];
        layer.query_length = 2, layer.kv_length = 3, layer.head_dim = WIDTH;
        layer.query = layer.key = layer.value = x;
        layer.out = test_floats(2 * WIDTH);
        expect_ok(rapt_dot_product_attention(&layer, NULL, &message));
        layer.mask_fill = 3;
        assert_int_equal(rapt_dot_product_attention(&layer, NULL, &message), RAPT_UNUSED_FIELD);
        layer.mask_fill = 0, layer.head_dim = 5000;
        assert_int_equal(rapt_dot_product_attention(&layer, NULL, &message), RAPT_INVALID_SHAPE);
        layer.head_dim = WIDTH;
        layer.mask = mask, layer.mask_shape = mask_shape + 4 - leading[i];
        expect_ok(rapt_dot_product_attention(&layer, NULL, &message));
        test_free_all();
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(fused_blocks_share_key_heads),
                                       cmocka_unit_test(scores_of_other_value_dims),
                                       cmocka_unit_test(scores_follow_numerics),
                                       cmocka_unit_test(blocks_take_grouped_heads),
                                       cmocka_unit_test(leftovers_are_refused),
                                       cmocka_unit_test(empty_shapes_are_refused_alike)};
    return cmocka_run_group_tests_name("layers_shapes", tests, NULL, NULL);
}
