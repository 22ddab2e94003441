/* SPDX-License-Identifier: MIT
 * Beyond the cases of tests/data/layers: equivalent forms that must give the same bits, pre-norm and GELU, masks. */
#include <math.h>

#include "layers/drawn.h"

/* Row r of a fused weight or bias is row r % part of one of three: per head or in blocks. */
static void fuse(float *to, const rapt_linear *three[3], bool per_head, int64_t row_floats, bool bias) {
    for (int64_t r = 0; r < 3 * WIDTH; r++) {
        const int64_t head = r / (3 * DIM), within = r % (3 * DIM);
        const int which = (int)(per_head ? within / DIM : r / WIDTH);
        const int64_t row = per_head ? head * DIM + within % DIM : r % WIDTH;
        const float *from = bias ? three[which]->bias : three[which]->weight;
        memcpy(to + r * row_floats, from + row * row_floats, (size_t)row_floats * sizeof(float));
    }
}

/* Bit for bit, which no BLAS promises for products of other shapes. */
static void fused_orders_are_the_split_form(void **state) {
#ifdef RAPT_BLAS
    skip();
#endif
    rapt_attention_desc how = sizes(HEADS);
    rapt_multi_head_desc split = make(&how);
    const rapt_linear *three[3] = {&split.query, &split.key, &split.value};
    (void)state;
    expect_ok(rapt_multi_head_attention(&split, NULL, &message));
    for (int order = RAPT_FUSED_PER_HEAD; order <= RAPT_FUSED_BLOCKS; order++) {
        rapt_multi_head_desc fused = RAPT_MULTI_HEAD_DESC_INIT;
        float *weight = test_floats(3 * WIDTH * WIDTH), *bias = test_floats(3 * WIDTH);
        fuse(weight, three, order == RAPT_FUSED_PER_HEAD, WIDTH, false);
        fuse(bias, three, order == RAPT_FUSED_PER_HEAD, 1, true);
        fused.attention = &how;
        fused.fused = rapt_linear_of(weight, bias, WIDTH, 3 * WIDTH);
        fused.fused_order = order;
        fused.output = split.output;
        fused.x = split.x;
        fused.out = test_floats(COUNT);
        expect_ok(rapt_multi_head_attention(&fused, NULL, &message));
        expect_bits(fused.out, split.out, COUNT, NAN_CANONICAL, "order %d", order);
    }
    test_free_all();
}

static rapt_linear transposed(rapt_linear linear) {
    float *weight = test_floats(linear.in * linear.out);
    for (int64_t o = 0; o < linear.out; o++) {
        for (int64_t i = 0; i < linear.in; i++) weight[i * linear.out + o] = linear.weight[o * linear.in + i];
    }
    return rapt_linear_in_out(weight, linear.bias, linear.in, linear.out);
}

/* Bit for bit, which no BLAS promises for weights of another layout. */
static void layouts_and_aliases_agree(void **state) {
#ifdef RAPT_BLAS
    skip();
#endif
    rapt_attention_desc how = sizes(HEADS);
    rapt_multi_head_desc layer = make(&how);
    float *first = layer.out, *x = test_floats(COUNT);
    (void)state;
    expect_ok(rapt_multi_head_attention(&layer, NULL, &message));
    layer.query = transposed(layer.query);
    layer.key = transposed(layer.key);
    layer.value = transposed(layer.value);
    layer.output = transposed(layer.output);
    layer.memory = layer.memory_value = layer.x;
    layer.out = test_floats(COUNT);
    expect_ok(rapt_multi_head_attention(&layer, NULL, &message));
    expect_bits(layer.out, first, COUNT, NAN_CANONICAL, "transposed weights, x as memory");
    memcpy(x, layer.x, COUNT * sizeof(float));
    layer.x = layer.memory = layer.memory_value = layer.out = x;
    expect_ok(rapt_multi_head_attention(&layer, NULL, &message));
    expect_bits(x, first, COUNT, NAN_CANONICAL, "in place");
    test_free_all();
}

static void unseen_tokens_do_not_show(void **state) {
    const int32_t lengths[BATCH] = {TOKENS, 3};
    rapt_attention_desc how = sizes(HEADS);
    how.kv_lengths = (rapt_index_list){.data = lengths, .index_bytes = 4};
    rapt_multi_head_desc layer = make(&how);
    float *memory = drawn(COUNT), *first = layer.out;
    (void)state;
    layer.memory = memory;
    expect_ok(rapt_multi_head_attention(&layer, NULL, &message));
    for (int64_t i = (TOKENS + 3) * WIDTH; i < COUNT; i++) memory[i] = NAN;
    layer.out = test_floats(COUNT);
    expect_ok(rapt_multi_head_attention(&layer, NULL, &message));
    expect_bits(layer.out, first, COUNT, NAN_CANONICAL, "padding of NaN");
    test_free_all();
}

static void project(const rapt_linear *linear, const float *x, float *out) {
    rapt_matmul_desc desc = RAPT_MATMUL_DESC_INIT;
    desc.rows = BATCH * TOKENS;
    desc.inner = linear->in;
    desc.columns = linear->out;
    desc.x = x;
    desc.x_stride_bytes = desc.weight_stride_bytes = linear->in * 4;
    desc.weight = linear->weight;
    desc.bias = linear->bias;
    desc.out = out;
    desc.out_stride_bytes = linear->out * 4;
    expect_ok(rapt_matmul(&desc, NULL, &message));
}

static double exact_activation(double x, int32_t which) {
    if (which == RAPT_RELU) return x > 0 ? x : 0;
    if (which == RAPT_GELU) return x * erfc(-x / sqrt(2)) / 2;
    return x / 2 * (1 + tanh(sqrt(2 / 3.14159265358979323846) * (x + 0.044715 * x * x * x)));
}

/* y = norm(x), in double. */
static void exact_norm(const rapt_norm *norm, const float *x, float *y) {
    for (int64_t t = 0; t < BATCH * TOKENS; t++, x += WIDTH, y += WIDTH) {
        double mean = 0, variance = 0;
        for (int i = 0; i < WIDTH; i++) mean += (double)x[i] / WIDTH;
        for (int i = 0; i < WIDTH; i++) variance += ((double)x[i] - mean) * ((double)x[i] - mean) / WIDTH;
        for (int i = 0; i < WIDTH; i++)
            y[i] = (float)(((double)x[i] - mean) / sqrt(variance + (double)norm->epsilon) * (double)norm->gamma[i] +
                           (double)norm->beta[i]);
    }
}

/* The block from its parts: norms, activation and sums with libm in double. */
static void composed(const rapt_encoder_desc *block, float *out) {
    float *a = test_floats(COUNT), *b = test_floats(COUNT), *hidden = test_floats(BATCH * TOKENS * HIDDEN);
    rapt_multi_head_desc inner = *block->attention;
    inner.out = a;
    inner.x = block->x;
    if (block->pre_norm) {
        exact_norm(&block->norm1, block->x, b);
        inner.x = b;
    }
    expect_ok(rapt_multi_head_attention(&inner, NULL, &message));
    for (int i = 0; i < COUNT; i++) a[i] += block->x[i];
    exact_norm(block->pre_norm ? &block->norm2 : &block->norm1, a, b);
    project(&block->ff1, b, hidden);
    for (int i = 0; i < BATCH * TOKENS * HIDDEN; i++)
        hidden[i] = (float)exact_activation((double)hidden[i], block->activation);
    project(&block->ff2, hidden, out);
    for (int i = 0; i < COUNT; i++) out[i] += block->pre_norm ? a[i] : b[i];
    if (!block->pre_norm) exact_norm(&block->norm2, out, out);
}

static void blocks_are_their_parts(void **state) {
    rapt_attention_desc how = sizes(HEADS);
    rapt_multi_head_desc inner = make(&how);
    rapt_encoder_desc block = RAPT_ENCODER_DESC_INIT;
    (void)state;
    block.x = inner.x;
    inner.x = inner.out = NULL;
    block.attention = &inner;
    block.norm1 = (rapt_norm){drawn(WIDTH), drawn(WIDTH), 1e-5f};
    block.norm2 = (rapt_norm){drawn(WIDTH), drawn(WIDTH), 1e-12f};
    block.ff1 = drawn_linear(WIDTH, HIDDEN);
    block.ff2 = drawn_linear(HIDDEN, WIDTH);
    for (block.pre_norm = 0; block.pre_norm <= 1; block.pre_norm++) {
        for (block.activation = RAPT_RELU; block.activation <= RAPT_GELU_TANH; block.activation++) {
            float *expected = test_floats(COUNT);
            block.out = test_floats(COUNT);
            expect_ok(rapt_encoder_block(&block, NULL, &message));
            composed(&block, expected);
            for (int i = 0; i < COUNT; i++) assert_true(fabsf(block.out[i] - expected[i]) <= 2e-6f);
            /* In place. */
            float *same = block.out, *x = test_floats(COUNT);
            rapt_encoder_desc again = block;
            memcpy(x, block.x, COUNT * sizeof(float));
            again.x = again.out = x;
            expect_ok(rapt_encoder_block(&again, NULL, &message));
            expect_bits(x, same, COUNT, NAN_CANONICAL, "in place");
        }
    }
    test_free_all();
}

/* A local window as wide as everything, with a nearly flat Gaussian, is global attention. */
static void wide_windows_are_global(void **state) {
    rapt_attention_desc how = sizes(1);
    rapt_luong_desc layer = RAPT_LUONG_DESC_INIT;
    float *out[3];
    (void)state;
    layer.attention = &how;
    layer.score = RAPT_LUONG_CONCAT;
    layer.state = drawn(BATCH * TOKENS * DIM);
    layer.memory = drawn(COUNT);
    layer.state_width = DIM;
    layer.memory_width = WIDTH;
    layer.units = 7;
    layer.w_a = drawn(7 * (DIM + WIDTH));
    layer.v_a = drawn(7);
    layer.w_p = drawn_linear(DIM, 3);
    layer.v_p = drawn(3);
    layer.reach = 1 << 20;
    for (layer.window = RAPT_LUONG_GLOBAL; layer.window <= RAPT_LUONG_LOCAL_P; layer.window++) {
        layer.out = out[layer.window] = test_floats(COUNT);
        expect_ok(rapt_luong_attention(&layer, NULL, &message));
    }
    expect_bits(out[RAPT_LUONG_LOCAL_M], out[RAPT_LUONG_GLOBAL], COUNT, NAN_CANONICAL, "local-m");
    for (int i = 0; i < COUNT; i++) assert_true(fabsf(out[RAPT_LUONG_LOCAL_P][i] - out[0][i]) <= 1e-6f);
    test_free_all();
}

/* Equation 5 in double, for both layouts of w_c. */
static void attentional_states_are_exact(void **state) {
    enum { OUT = 3, IN = WIDTH + DIM };
    rapt_attention_desc how = sizes(1);
    rapt_luong_desc layer = RAPT_LUONG_DESC_INIT;
    (void)state;
    layer.attention = &how;
    layer.score = RAPT_LUONG_GENERAL;
    layer.state = drawn(BATCH * TOKENS * DIM);
    layer.memory = drawn(COUNT);
    layer.state_width = DIM;
    layer.memory_width = WIDTH;
    layer.w_a = drawn(DIM * WIDTH);
    layer.out = test_floats(COUNT);
    const rapt_linear w_c = drawn_linear(IN, OUT);
    for (int layout = RAPT_WEIGHT_OUT_IN; layout <= RAPT_WEIGHT_IN_OUT; layout++) {
        layer.w_c = layout == RAPT_WEIGHT_OUT_IN ? w_c : transposed(w_c);
        layer.attentional = test_floats(BATCH * TOKENS * OUT);
        expect_ok(rapt_luong_attention(&layer, NULL, &message));
        for (int i = 0; i < BATCH * TOKENS * OUT; i++) {
            const int row = i / OUT, o = i % OUT;
            double sum = (double)w_c.bias[o];
            for (int j = 0; j < WIDTH; j++) sum += (double)layer.out[row * WIDTH + j] * (double)w_c.weight[o * IN + j];
            for (int j = 0; j < DIM; j++)
                sum += (double)layer.state[row * DIM + j] * (double)w_c.weight[o * IN + WIDTH + j];
            assert_true(fabs((double)layer.attentional[i] - tanh(sum)) <= 4e-7);
        }
    }
    test_free_all();
}

/* Six leading dimensions, of which the mask has every other, against separate runs. */
static void leading_dimensions_are_separate(void **state) {
    const int64_t shape[6] = {2, 3, 2, 2, 3, 2}, mask_shape[8] = {2, 1, 2, 1, 3, 1, 1, 4};
    enum { ALL = 144, MASKS = 12, QUERIES = 2, KEYS = 4 };
    unsigned char mask[MASKS * KEYS];
    rapt_dot_product_desc dot = RAPT_DOT_PRODUCT_DESC_INIT;
    (void)state;
    for (int i = 0; i < MASKS * KEYS; i++) mask[i] = random_chance(&source, 60);
    dot.leading = 6;
    dot.shape = shape;
    dot.query_length = QUERIES;
    dot.kv_length = KEYS;
    dot.head_dim = DIM;
    dot.query = drawn(ALL * QUERIES * DIM);
    dot.key = drawn(ALL * KEYS * DIM);
    dot.value = drawn(ALL * KEYS * DIM);
    dot.mask = mask;
    dot.mask_shape = mask_shape;
    dot.out = test_floats(ALL * QUERIES * DIM);
    expect_ok(rapt_dot_product_attention(&dot, NULL, &message));
    for (int i = 0; i < ALL; i++) {
        const int64_t one_mask[2] = {1, KEYS};
        rapt_dot_product_desc one = dot;
        one.leading = 0;
        one.query += i * QUERIES * DIM;
        one.key += i * KEYS * DIM;
        one.value += i * KEYS * DIM;
        one.mask += (i / 72 * 6 + i / 12 % 2 * 3 + i / 2 % 3) * KEYS;
        one.mask_shape = one_mask;
        one.out = test_floats(QUERIES * DIM);
        expect_ok(rapt_dot_product_attention(&one, NULL, &message));
        expect_bits(dot.out + i * QUERIES * DIM, one.out, QUERIES * DIM, NAN_CANONICAL, "index %d", i);
    }
    test_free_all();
}

/* Fails unless some are NaN, and these all the same. */
static void expect_one_nan(const float *results, int64_t count, const char *name) {
    int found = 0;
    for (int64_t i = 0; i < count; i++) {
        found += isnan(results[i]);
        if (isnan(results[i]) && bits_of(results[i]) != 0x7fc00000)
            fail_msg("%s[%lld] is NaN %08x", name, (long long)i, (unsigned)bits_of(results[i]));
    }
    if (found == 0)
        fail_msg("%s has no NaN", name);
}

/* A sum of infinities has another sign on x86 than on ARM, and a NaN of the caller has a payload. */
static void every_nan_is_one(void **state) {
    rapt_attention_desc how = sizes(HEADS), one_head = sizes(1);
    rapt_multi_head_desc inner = make(&how);
    rapt_encoder_desc block = RAPT_ENCODER_DESC_INIT;
    rapt_luong_desc luong = RAPT_LUONG_DESC_INIT;
    float *x = drawn(COUNT), v[DIM] = {INFINITY, -INFINITY};
    (void)state;
    inner.x = inner.out = NULL;
    block.attention = &inner;
    block.norm1 = block.norm2 = (rapt_norm){NULL, NULL, 1e-5f};
    block.ff1 = drawn_linear(WIDTH, HIDDEN), block.ff2 = drawn_linear(HIDDEN, WIDTH);
    block.x = x;
    x[0] = INFINITY, x[WIDTH] = float_of(0xffc01234);
    for (block.pre_norm = 0; block.pre_norm <= 1; block.pre_norm++) {
        block.out = test_floats(COUNT), block.norm1_out = test_floats(COUNT);
        expect_ok(rapt_encoder_block(&block, NULL, &message));
        expect_one_nan(block.norm1_out, COUNT, "norm1_out");
        expect_one_nan(block.out, COUNT, "out");
    }
    luong.attention = &one_head;
    luong.score = RAPT_LUONG_CONCAT, luong.window = RAPT_LUONG_LOCAL_P, luong.reach = 2;
    luong.state = luong.memory = x;
    luong.state_width = luong.memory_width = WIDTH;
    luong.units = DIM, luong.w_a = drawn(DIM * 2 * WIDTH), luong.v_a = v;
    luong.w_p = drawn_linear(WIDTH, DIM), luong.v_p = drawn(DIM);
    luong.out = test_floats(COUNT), luong.scores = test_floats(BATCH * TOKENS * TOKENS);
    luong.position = test_floats(BATCH * TOKENS);
    expect_ok(rapt_luong_attention(&luong, NULL, &message));
    expect_one_nan(luong.scores, BATCH * TOKENS * TOKENS, "scores");
    expect_one_nan(luong.position, BATCH * TOKENS, "position");
    expect_one_nan(luong.out, COUNT, "out of local-p");
    test_free_all();
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(fused_orders_are_the_split_form), cmocka_unit_test(layouts_and_aliases_agree),
        cmocka_unit_test(unseen_tokens_do_not_show),       cmocka_unit_test(blocks_are_their_parts),
        cmocka_unit_test(wide_windows_are_global),         cmocka_unit_test(attentional_states_are_exact),
        cmocka_unit_test(leading_dimensions_are_separate), cmocka_unit_test(every_nan_is_one),
    };
    return cmocka_run_group_tests_name("layers_calls", tests, NULL, NULL);
}
