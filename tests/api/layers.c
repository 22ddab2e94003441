/* SPDX-License-Identifier: MIT
 * Layers on a caller's threads, stopped, in any floating-point mode, and with weights with gaps between rows. */
#include <stdatomic.h>

#include "layers/drawn.h"
#include "support/pool.h"
#include "support/registers.h"

struct kind {
    const char *name;
    rapt_status (*run)(const void *desc, const rapt_run_options *options);
    const void *desc;
    const float *out;
    int64_t count;
};

static rapt_status run_heads(const void *desc, const rapt_run_options *options) {
    return rapt_multi_head_attention(desc, options, &message);
}
static rapt_status run_stacked(const void *desc, const rapt_run_options *options) {
    return rapt_stacked_attention(desc, options, &message);
}
static rapt_status run_dot(const void *desc, const rapt_run_options *options) {
    return rapt_dot_product_attention(desc, options, &message);
}
static rapt_status run_encoder(const void *desc, const rapt_run_options *options) {
    return rapt_encoder_block(desc, options, &message);
}
static rapt_status run_additive(const void *desc, const rapt_run_options *options) {
    return rapt_additive_attention(desc, options, &message);
}
static rapt_status run_luong(const void *desc, const rapt_run_options *options) {
    return rapt_luong_attention(desc, options, &message);
}

static int always(void *context) {
    ++*(atomic_int *)context;
    return 1;
}

/* The same bits by default and on a pool; the pool is used; runs can be stopped. */
static void check_kind(const struct kind *kind) {
    struct pool pool = {.threads = 3};
    atomic_int asked = 0;
    rapt_run_options options = {.struct_size = sizeof options,
                                .max_threads = 3,
                                .parallel_for = pool_parallel_for,
                                .parallel_for_context = &pool};
    expect_ok(kind->run(kind->desc, NULL));
    float *first = test_floats(kind->count);
    memcpy(first, kind->out, (size_t)kind->count * sizeof(float));
    memset((float *)(uintptr_t)kind->out, 0x55, (size_t)kind->count * sizeof(float));
    expect_ok(kind->run(kind->desc, &options));
    expect_bits(kind->out, first, kind->count, NAN_CANONICAL, "%s", kind->name);
    assert_true(pool.calls > 0);
    options.should_stop = always;
    options.should_stop_context = &asked;
    assert_int_equal(kind->run(kind->desc, &options), RAPT_STOPPED);
    assert_true(asked > 0);
    memset((float *)(uintptr_t)kind->out, 0x55, (size_t)kind->count * sizeof(float));
    float *untouched = test_floats(kind->count);
    memcpy(untouched, kind->out, (size_t)kind->count * sizeof(float));
    options.max_threads = -1;
    assert_int_equal(kind->run(kind->desc, &options), RAPT_INVALID_VALUE);
    options.max_threads = 3;
    options.flags = 1u << 20;
    assert_int_equal(kind->run(kind->desc, &options), RAPT_UNSUPPORTED_FLAG);
    options.flags = 0;
    options.struct_size = 4;
    assert_int_equal(kind->run(kind->desc, &options), RAPT_UNSUPPORTED_VERSION);
    assert_memory_equal(kind->out, untouched, (size_t)kind->count * sizeof(float));
}

static void test_heads(void **state) {
    const rapt_attention_desc how = sizes(HEADS);
    const rapt_multi_head_desc heads = make(&how);
    const struct kind kind = {"multi-head", run_heads, &heads, heads.out, COUNT};
    (void)state;
    check_kind(&kind);
    test_free_all();
}

static void test_stacked(void **state) {
    const rapt_attention_desc how = sizes(HEADS);
    rapt_stacked_desc stacked = RAPT_STACKED_DESC_INIT;
    rapt_linear linears[3][HEADS];
    (void)state;
    for (int i = 0; i < 3 * HEADS; i++)
        linears[i / HEADS][i % HEADS] = drawn_linear(WIDTH, DIM);
    stacked.attention = &how;
    stacked.x = drawn(COUNT);
    stacked.query = linears[0], stacked.key = linears[1], stacked.value = linears[2];
    stacked.out = test_floats(COUNT);
    const struct kind kind = {"stacked", run_stacked, &stacked, stacked.out, COUNT};
    check_kind(&kind);
    test_free_all();
}

static void test_dot_product(void **state) {
    const int64_t shape[] = {BATCH, HEADS};
    const int64_t count = BATCH * HEADS * TOKENS * DIM;
    rapt_dot_product_desc dot = RAPT_DOT_PRODUCT_DESC_INIT;
    (void)state;
    dot.leading = 2, dot.shape = shape;
    dot.query_length = dot.kv_length = TOKENS, dot.head_dim = DIM;
    dot.query = drawn(count), dot.key = drawn(count), dot.value = drawn(count);
    dot.out = test_floats(count);
    const struct kind kind = {"dot product", run_dot, &dot, dot.out, count};
    check_kind(&kind);
    test_free_all();
}

static void test_encoder(void **state) {
    const rapt_attention_desc how = sizes(HEADS);
    rapt_multi_head_desc inner = make(&how);
    rapt_encoder_desc block = RAPT_ENCODER_DESC_INIT;
    (void)state;
    block.x = inner.x;
    inner.x = NULL, inner.out = NULL;
    block.attention = &inner;
    block.norm1.epsilon = block.norm2.epsilon = 1e-5f;
    block.ff1 = drawn_linear(WIDTH, HIDDEN), block.ff2 = drawn_linear(HIDDEN, WIDTH);
    block.out = test_floats(COUNT);
    const struct kind kind = {"encoder", run_encoder, &block, block.out, COUNT};
    check_kind(&kind);
    test_free_all();
}

static void test_older(void **state) {
    const rapt_attention_desc how = sizes(1);
    rapt_additive_desc additive = RAPT_ADDITIVE_DESC_INIT;
    rapt_luong_desc luong = RAPT_LUONG_DESC_INIT;
    (void)state;
    additive.attention = luong.attention = &how;
    additive.state = luong.state = drawn(COUNT);
    additive.memory = luong.memory = drawn(COUNT);
    additive.w = drawn_linear(WIDTH, HIDDEN), additive.u = drawn_linear(WIDTH, HIDDEN);
    additive.v = drawn(HIDDEN);
    luong.state_width = luong.memory_width = WIDTH;
    luong.score = RAPT_LUONG_GENERAL;
    luong.w_a = drawn(WIDTH * WIDTH);
    additive.out = luong.out = test_floats(COUNT);
    const struct kind kinds[] = {{"additive", run_additive, &additive, additive.out, COUNT},
                                 {"luong", run_luong, &luong, luong.out, COUNT}};
    check_kind(&kinds[0]);
    check_kind(&kinds[1]);
    test_free_all();
}

static const float *spread(const float *rows, int64_t count, int64_t width, int64_t stride) {
    float *apart = test_floats(count * stride);
    for (int64_t i = 0; i < count; i++)
        memcpy(apart + i * stride, rows + i * width, (size_t)width * sizeof(float));
    return apart;
}

/* The gaps are NaN (test_alloc), which shows if read. */
static void test_weight_stride(void **state) {
    enum { STRIDE = WIDTH + 3 };
    const rapt_attention_desc how = sizes(HEADS);
    rapt_multi_head_desc heads = make(&how);
    (void)state;
    heads.key.layout = RAPT_WEIGHT_IN_OUT;
    expect_ok(rapt_multi_head_attention(&heads, NULL, &message));
    float *first = heads.out;
    rapt_linear *const linears[] = {&heads.query, &heads.key, &heads.value, &heads.output};
    for (int i = 0; i < 4; i++) {
        linears[i]->weight = spread(linears[i]->weight, WIDTH, WIDTH, STRIDE);
        linears[i]->weight_stride_bytes = STRIDE * 4;
        linears[i]->dtype = RAPT_F32;
    }
    heads.out = test_floats(COUNT);
    expect_ok(rapt_multi_head_attention(&heads, NULL, &message));
    expect_bits(heads.out, first, COUNT, NAN_CANONICAL, "rows with gaps");
    test_free_all();
}

struct seen {
    uint64_t mode; /* the caller's */
    int calls, others;
};

static void look(struct seen *seen) {
    seen->calls++;
    seen->others += get_float_mode() != seen->mode;
}

static int looking_for(void *context, int64_t count, void (*task)(void *, int64_t), void *argument) {
    look(context);
    for (int64_t i = 0; i < count; i++)
        task(argument, i);
    return 0;
}

static int looking_stop(void *context) {
    look(context);
    return 0;
}

/* The caller's functions run in its mode, and it is restored, though layers compute in another. */
static void test_float_modes(void **state) {
#ifdef RAPT_BLAS
    enum { LEAST_CALLS = 2 }; /* attention's: a BLAS has its own threads and does not stop */
#else
    enum { LEAST_CALLS = 10 };
#endif
    const rapt_attention_desc how = sizes(HEADS);
    rapt_multi_head_desc heads = make(&how);
    float *first = heads.out;
    const uint64_t before = get_float_mode();
    (void)state;
    if (!has_float_modes())
        skip();
    expect_ok(rapt_multi_head_attention(&heads, NULL, &message));
    heads.out = test_floats(COUNT);
    for (int i = 0; i < float_mode_count; i++) {
        struct seen seen = {.mode = float_modes[i].value};
        rapt_run_options options = {.struct_size = sizeof options,
                                    .max_threads = 2,
                                    .parallel_for = looking_for,
                                    .parallel_for_context = &seen,
                                    .should_stop = looking_stop,
                                    .should_stop_context = &seen};
        set_float_mode(seen.mode);
        const rapt_status status = rapt_multi_head_attention(&heads, &options, NULL);
        const uint64_t after = get_float_mode();
        set_float_mode(before);
        expect_ok(status);
        if (after != seen.mode || seen.calls < LEAST_CALLS || seen.others > 0)
            fail_msg("%s: mode %llx after, %d of %d calls in another", float_modes[i].name, (unsigned long long)after,
                     seen.others, seen.calls);
        expect_bits(heads.out, first, COUNT, NAN_CANONICAL, "%s", float_modes[i].name);
    }
    test_free_all();
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_heads),   cmocka_unit_test(test_stacked), cmocka_unit_test(test_dot_product),
        cmocka_unit_test(test_encoder), cmocka_unit_test(test_older),   cmocka_unit_test(test_float_modes),
        cmocka_unit_test(test_weight_stride),
    };
    return cmocka_run_group_tests_name("api_layers", tests, NULL, NULL);
}
