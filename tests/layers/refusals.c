/* SPDX-License-Identifier: MIT
 * Layers' refusals: the status, a word of the message, and out unchanged. And odd legal calls. */
#include "layers/drawn.h"
#include "support/registers.h"

static void refused(const rapt_multi_head_desc *layer, rapt_status status, const char *said) {
    float *before = test_floats(COUNT);
    const rapt_status got = rapt_multi_head_attention(layer, NULL, &message);
    if (got != status || !strstr(message.text, said))
        fail_msg("%s: '%s', expected %s: '%s'", rapt_status_text(got), message.text, rapt_status_text(status), said);
    if (layer->out) assert_memory_equal(layer->out, before, COUNT * sizeof(float));
    assert_int_equal(rapt_multi_head_attention(layer, NULL, NULL), status);
}

#define REFUSED(change, status, said)                                                                               \
    do {                                                                                                            \
        rapt_attention_desc how = good_how;                                                                         \
        rapt_multi_head_desc layer = good;                                                                          \
        layer.attention = &how;                                                                                     \
        change;                                                                                                     \
        refused(&layer, status, said);                                                                              \
    } while (0)

static void bad_heads_are_refused(void **state) {
    const rapt_attention_desc good_how = sizes(HEADS);
    const rapt_multi_head_desc good = make(&good_how);
    (void)state;
    REFUSED(layer.struct_size = 8, RAPT_UNSUPPORTED_VERSION, "struct_size = 8");
    REFUSED(layer.attention = NULL, RAPT_NULL_POINTER, "attention = NULL");
    REFUSED(layer.x = NULL, RAPT_NULL_POINTER, "x = NULL");
    REFUSED(layer.out = NULL, RAPT_NULL_POINTER, "out = NULL");
    REFUSED(layer.query.weight = NULL, RAPT_NULL_POINTER, "query.weight = NULL");
    REFUSED(layer.query.in = 0, RAPT_INVALID_SHAPE, "query: in = 0");
    REFUSED(layer.key.in = 11, RAPT_INVALID_SHAPE, "key.in = 11, but x has query.in = 12 numbers");
    REFUSED(layer.value.in = 13, RAPT_INVALID_SHAPE, "value.in = 13, but x has key.in = 12 numbers");
    REFUSED((layer.memory = layer.x, layer.value.in = 13), RAPT_INVALID_SHAPE, "but memory has key.in = 12");
    REFUSED(layer.output.in = 9, RAPT_INVALID_SHAPE, "output.in = 9, but query_heads * value_dim gives 12");
    REFUSED(layer.value.layout = 2, RAPT_UNSUPPORTED_FLAG, "value.layout = 2");
    REFUSED(layer.value.dtype = RAPT_F16, RAPT_UNSUPPORTED_DTYPE, "value.dtype = 3");
    REFUSED(layer.key.weight_stride_bytes = 2, RAPT_INVALID_STRIDE, "key.weight_stride_bytes = 2");
    REFUSED(layer.key.weight_stride_bytes = layer.key.in * 4 + 2, RAPT_INVALID_STRIDE, "key.weight_stride_bytes = 50");
    REFUSED(layer.key.weight_stride_bytes = layer.key.in * 4 - 4, RAPT_INVALID_STRIDE, "key.weight_stride_bytes");
    REFUSED(layer.key.bias = (const float *)((uintptr_t)layer.key.bias + 1), RAPT_MISALIGNED_POINTER, "key: weight");
    REFUSED(how.query_heads = how.kv_heads = 5, RAPT_INVALID_SHAPE, "query.out = 12 does not divide into 5 heads");
    REFUSED(layer.key.out = 8, RAPT_INVALID_SHAPE, "key.out = 8, but kv_heads * head_dim = 3 * 4");
    REFUSED(how.kv_length = 4, RAPT_INVALID_SHAPE, "query_length = 5, kv_length = 4: without memory");
    REFUSED(layer.memory_value = layer.x, RAPT_UNUSED_FIELD, "memory_value without memory");
    REFUSED(layer.fused_out = layer.out, RAPT_UNUSED_FIELD, "fused_out without fused");
    REFUSED(how.head_dim = 4, RAPT_UNUSED_FIELD, "the layer makes them");
    REFUSED(how.query_heads = 0, RAPT_INVALID_SHAPE, "attention->query_heads = 0");
    REFUSED(how.batch = -1, RAPT_INVALID_SHAPE, "attention->batch = -1");
    REFUSED(how.batch = how.query_length = how.kv_length = (int64_t)1 << 39, RAPT_SIZE_OVERFLOW, "batch * length");
    REFUSED(how.struct_size = 4, RAPT_UNSUPPORTED_VERSION, "attention->struct_size = 4");
    REFUSED(how.softcap = -1, RAPT_INVALID_VALUE, "softcap");
    REFUSED(layer.fused = layer.query, RAPT_UNUSED_FIELD, "fused excludes query");
    REFUSED((layer.fused = layer.query, layer.query.weight = layer.key.weight = layer.value.weight = NULL),
            RAPT_INVALID_SHAPE, "fused.out = 12 does not divide into 9 heads");
    REFUSED((layer.fused = drawn_linear(WIDTH, 3 * WIDTH), how.kv_length = 4,
             layer.query.weight = layer.key.weight = layer.value.weight = NULL),
            RAPT_INVALID_SHAPE, "query_length = 5, kv_length = 4");
    test_free_all();
}

enum { ROOM = 4 * COUNT };

static void block_refused_with(const rapt_run_options *options, const rapt_encoder_desc *block, rapt_status status,
                               const char *said) {
    float *before = test_floats(ROOM);
    const rapt_status got = rapt_encoder_block(block, options, &message);
    if (got != status || !strstr(message.text, said))
        fail_msg("%s: '%s', expected '%s'", rapt_status_text(got), message.text, said);
    assert_memory_equal(block->attention->out, before, ROOM * sizeof(float));
    assert_memory_equal(block->norm1_out, before, COUNT * sizeof(float));
    assert_memory_equal(block->out, before, COUNT * sizeof(float));
}

static void block_refused(const rapt_encoder_desc *block, rapt_status status, const char *said) {
    block_refused_with(NULL, block, status, said);
}

/* Four query heads share keys and values: together they are wider than value or a third of fused. Pre-norm, too, writes
 * nothing before such a refusal. */
static void blocks_of_wide_heads_are_refused(void **state) {
    rapt_attention_desc how = sizes(4);
    rapt_multi_head_desc inner = make(&how);
    rapt_encoder_desc block = RAPT_ENCODER_DESC_INIT;
    rapt_run_options unknown = RAPT_RUN_OPTIONS_INIT;
    (void)state;
    unknown.flags = 1u << 20;
    how.kv_heads = 2;
    block.x = inner.x;
    inner.x = NULL;
    inner.out = test_floats(ROOM);
    block.attention = &inner;
    block.norm1.epsilon = block.norm2.epsilon = 1e-5f;
    block.ff1 = drawn_linear(WIDTH, HIDDEN);
    block.ff2 = drawn_linear(HIDDEN, WIDTH);
    block.norm1_out = test_floats(COUNT);
    block.out = test_floats(COUNT);
    inner.key = drawn_linear(WIDTH, WIDTH / 2);
    for (block.pre_norm = 0; block.pre_norm <= 1; block.pre_norm++) {
        rapt_multi_head_desc whole = inner;
        block.attention = &whole;
        whole.output = drawn_linear(2 * WIDTH, WIDTH);
        how.softcap = -1; /* the engine refuses it */
        block_refused(&block, RAPT_INVALID_VALUE, "softcap");
        how.softcap = 0;
        block_refused_with(&unknown, &block, RAPT_UNSUPPORTED_FLAG, "options.flags");
        whole.output.out = 11;
        block_refused(&block, RAPT_INVALID_SHAPE, "attention->output.out = 11, but x has 12 numbers");
        whole.output = (rapt_linear){0};
        block_refused(&block, RAPT_INVALID_SHAPE, "query_heads * value_dim = 4 * 6 numbers per token, but x has 12");
        whole.value.out = 7;
        block_refused(&block, RAPT_INVALID_SHAPE, "value.out = 7 does not divide into 2 heads");
        whole.query = whole.key = whole.value = (rapt_linear){0};
        whole.fused = drawn_linear(WIDTH, 3 * WIDTH);
        whole.fused_order = RAPT_FUSED_BLOCKS;
        block_refused(&block, RAPT_INVALID_SHAPE, "fused.out = 36 does not divide into 8 heads");
        how.kv_heads = 1;
        block_refused(&block, RAPT_INVALID_SHAPE, "query_heads * value_dim = 4 * 6 numbers per token, but x has 12");
        how.kv_heads = 2;
    }
    test_free_all();
}

static void bad_ids_are_refused(void **state) {
    const int32_t ids[3] = {0, 4, 5};
    const int64_t negative[1] = {-1};
    const float table[5 * 2] = {0};
    float out[6] = {7, 7, 7, 7, 7, 7};
    (void)state;
    assert_int_equal(rapt_embedding(rapt_int32_list(ids, 3), 3, table, 5, 2, out, &message), RAPT_INVALID_VALUE);
    assert_string_equal(message.text, "ids[2] = 5, but the table has 5 rows");
    assert_true(out[0] == 7);
    assert_int_equal(rapt_embedding(rapt_int64_list(negative, 1), 1, table, 5, 2, out, &message),
                     RAPT_INVALID_VALUE);
    assert_int_equal(rapt_embedding(rapt_int32_list(ids, 1), 2, table, 5, 2, out, &message), RAPT_OUT_OF_EXTENT);
#define IDS(...) rapt_embedding((rapt_index_list){.data = ids, __VA_ARGS__}, 1, table, 5, 2, out, &message)
    assert_int_equal(IDS(.index_bytes = 2), RAPT_INVALID_VALUE);
    assert_int_equal(IDS(.index_bytes = 4, .reserved_zero = 1), RAPT_UNUSED_FIELD);
    assert_int_equal(IDS(.index_bytes = 4, .stride_bytes = 6), RAPT_INVALID_STRIDE);
    assert_int_equal(IDS(.index_bytes = 4, .stride_bytes = -4), RAPT_INVALID_STRIDE);
    assert_int_equal(rapt_embedding(rapt_int32_list(ids, 3), 2, table, 5, 2, out, &message), RAPT_OK);
}

/* out covers the second id, so that the first row changes it after its check, as another thread might. */
static void ids_that_change_stay_in_the_table(void **state) {
    enum { ROWS = 5, ID = ROWS };
    struct {
        int64_t ids[2];
        float rest[2];
    } both = {{0, 1}, {7, 7}};
    float table[(ROWS + 1) * 2] = {0};
    const int64_t beyond = ID;
    (void)state;
    memcpy(table, &beyond, sizeof beyond);
    table[2 * ID] = table[2 * ID + 1] = 99;
    assert_int_equal(rapt_embedding(rapt_int64_list(both.ids, 2), 2, table, ROWS, 2, (float *)(void *)&both.ids[1],
                                    &message),
                     RAPT_INVALID_VALUE);
    assert_string_equal(message.text, "ids[1] = 5, but the table has 5 rows");
    assert_true(both.rest[0] == 7 && both.rest[1] == 7);
}

static void others_are_refused(void **state) {
    const rapt_norm no_epsilon = {NULL, NULL, 0};
    float x[6] = {0};
    const int64_t shape[1] = {2}, mask_shape[3] = {2, 3, 1};
    rapt_dot_product_desc dot = RAPT_DOT_PRODUCT_DESC_INIT;
    (void)state;
    assert_int_equal(rapt_layer_norm(&no_epsilon, x, 1, 6, x, &message), RAPT_INVALID_VALUE);
    assert_int_equal(rapt_dot_product_attention(NULL, NULL, &message), RAPT_NULL_POINTER);
    dot.leading = 1;
    dot.shape = shape;
    dot.query_length = 3;
    dot.kv_length = 4;
    dot.head_dim = 1;
    dot.query = dot.key = dot.value = dot.out = x;
    dot.mask = (const unsigned char *)x;
    dot.mask_shape = mask_shape;
    assert_int_equal(rapt_dot_product_attention(&dot, NULL, &message), RAPT_INVALID_SHAPE);
    assert_string_equal(message.text, "mask_shape[2] = 1, expected 4");
    dot.mask = NULL;
    assert_int_equal(rapt_dot_product_attention(&dot, NULL, &message), RAPT_UNUSED_FIELD);
    assert_string_equal(message.text, "mask_shape is set, but mask is absent");
    dot.mask_shape = NULL;
    dot.features = RAPT_WINDOW;
    assert_int_equal(rapt_dot_product_attention(&dot, NULL, &message), RAPT_UNSUPPORTED_FLAG);
}

/* Three leading dimensions, for which the engine runs twice; TWO floats per array, ONE per run. */
enum { ONE = 4, TWO = 2 * ONE };

static rapt_dot_product_desc two_runs(float *x, unsigned char *mask) {
    static const int64_t shape[3] = {2, 1, 1}, mask_shape[5] = {2, 1, 1, 2, 2};
    rapt_dot_product_desc dot = RAPT_DOT_PRODUCT_DESC_INIT;
    dot.leading = 3;
    dot.shape = shape;
    dot.query_length = dot.kv_length = dot.head_dim = 2;
    dot.query = dot.key = dot.value = x;
    dot.mask = mask;
    dot.mask_shape = mask_shape;
    dot.out = x + TWO;
    dot.weights = x + 2 * TWO;
    dot.scores = x + 3 * TWO;
    return dot;
}

static void overlaps(const rapt_dot_product_desc *dot, const float *x, int64_t count, const char *said) {
    float before[8 * TWO];
    memcpy(before, x, (size_t)count * sizeof *x);
    const rapt_status got = rapt_dot_product_attention(dot, NULL, &message);
    if (got != RAPT_OVERLAPPING_OUTPUT || strncmp(message.text, said, strlen(said)) != 0)
        fail_msg("%s: '%s', expected '%s'", rapt_status_text(got), message.text, said);
    assert_memory_equal(x, before, (size_t)count * sizeof *x);
}

/* No run's output overlaps another's. */
static void runs_do_not_overlap(void **state) {
    enum { FLOATS = 8 * TWO };
    float x[FLOATS] = {1, 2, 3, 4, 5, 6, 7, 8};
    unsigned char mask[TWO] = {1, 1, 1, 1, 1, 1, 1, 1};
    const rapt_dot_product_desc good = two_runs(x, mask);
    rapt_dot_product_desc dot;
    (void)state;
    expect_ok(rapt_dot_product_attention(&good, NULL, &message));
    static const struct {
        size_t output, input;
        const char *said;
    } pairs[] = {
#define PAIR(output, input) offsetof(rapt_dot_product_desc, output), offsetof(rapt_dot_product_desc, input)
        {PAIR(out, query), "out overlaps query at "},      {PAIR(out, key), "out overlaps key at "},
        {PAIR(out, value), "out overlaps value at "},      {PAIR(weights, query), "weights overlaps query at "},
        {PAIR(scores, value), "scores overlaps value at "}, {PAIR(out, weights), "out overlaps weights at "},
        {PAIR(out, scores), "out overlaps scores at "},    {PAIR(weights, scores), "weights overlaps scores at "},
#undef PAIR
    };
    for (size_t i = 0; i < 2 * sizeof pairs / sizeof *pairs; i++) {
        float *first = x + 5 * TWO, *second = first + ONE; /* the second run of one on the first of the other */
        dot = good;
        memcpy((char *)&dot + pairs[i / 2].output, i % 2 ? &second : &first, sizeof first);
        memcpy((char *)&dot + pairs[i / 2].input, i % 2 ? &first : &second, sizeof first);
        overlaps(&dot, x, FLOATS, pairs[i / 2].said);
    }
    dot = good;
    dot.mask = (const unsigned char *)dot.out - ONE - 1; /* only the second run's reaches into out */
    overlaps(&dot, x, FLOATS, "out overlaps mask at ");
    test_free_all();
}

/* If queries and keys differ in number, causal means nothing until the caller picks a corner. */
static void the_causal_corner_is_asked_for(void **state) {
    float x[4] = {0.5f, -1, 2, 1}, out[2];
    rapt_dot_product_desc dot = RAPT_DOT_PRODUCT_DESC_INIT;
    (void)state;
    dot.features = RAPT_CAUSAL;
    dot.query_length = 2;
    dot.kv_length = 4;
    dot.head_dim = 1;
    dot.query = dot.key = dot.value = x;
    dot.out = out;
    assert_int_equal(rapt_dot_product_attention(&dot, NULL, &message), RAPT_UNSTATED_POSITION);
    dot.query_origin = RAPT_ORIGIN_TOP_LEFT;
    expect_ok(rapt_dot_product_attention(&dot, NULL, &message));
    assert_true(out[0] == x[0]); /* it sees the first key only */
    dot.query_origin = RAPT_ORIGIN_BOTTOM_RIGHT;
    expect_ok(rapt_dot_product_attention(&dot, NULL, &message));
    assert_true(out[0] != x[0]);
    dot.query_origin = RAPT_ORIGIN_GIVEN;
    assert_int_equal(rapt_dot_product_attention(&dot, NULL, &message), RAPT_UNSUPPORTED_FLAG);
    dot.query_origin = 0;
    dot.kv_length = 2; /* equal: both corners are one */
    expect_ok(rapt_dot_product_attention(&dot, NULL, &message));
    assert_true(out[0] == x[0]);
}

static void nothing_is_legal(void **state) {
    rapt_attention_desc how = sizes(HEADS);
    (void)state;
    how.query_length = how.kv_length = 0;
    rapt_multi_head_desc layer = make(&how);
    expect_ok(rapt_multi_head_attention(&layer, NULL, &message));
    how.query_length = how.kv_length = TOKENS;
    how.batch = 0;
    expect_ok(rapt_multi_head_attention(&layer, NULL, &message));
    test_free_all();
}

enum { MODE_ROWS = 5 };

/* Refusals depend on no mode: denormals are not zeros, even if the caller flushes them. */
static void statuses_in_a_mode(rapt_status *status, float *out) {
    static const float x[4] = {1, 2, 3, 5}, zeros[BATCH * TOKENS * WIDTH];
    const rapt_norm tiny = {NULL, NULL, 1e-42f}, negative = {NULL, NULL, -1e-42f};
    unsigned char keep;
    rapt_attention_desc how = sizes(1);
    rapt_additive_desc additive = RAPT_ADDITIVE_DESC_INIT;
    status[0] = rapt_layer_norm(&tiny, x, 1, 4, out, NULL);
    status[1] = rapt_layer_norm(&negative, x, 1, 4, out + 4, &message);
    status[2] = rapt_dropout_keep(&keep, 1, -1e-310, 0, 0, 0);
    how.softcap = 1e-42f;
    additive.attention = &how;
    additive.state = additive.memory = additive.v = zeros;
    additive.w = additive.u = rapt_linear_of(zeros, NULL, WIDTH, 1);
    additive.out = out + 8;
    status[3] = rapt_additive_attention(&additive, NULL, NULL);
    how.softcap = 0;
    status[4] = rapt_additive_attention(&additive, NULL, NULL);
}

static void no_mode_decides_a_refusal(void **state) {
    static const rapt_status expected[MODE_ROWS] = {RAPT_OK, RAPT_INVALID_VALUE, RAPT_INVALID_VALUE, RAPT_UNUSED_FIELD,
                                                    RAPT_OK};
    float first[8 + COUNT] = {0};
    rapt_message text = {""};
    const uint64_t before = get_float_mode();
    (void)state;
    if (!has_float_modes()) skip();
    for (int i = 0; i < float_mode_count; i++) {
        rapt_status status[MODE_ROWS];
        float out[8 + COUNT] = {0};
        set_float_mode(float_modes[i].value);
        statuses_in_a_mode(status, out);
        const uint64_t after = get_float_mode();
        set_float_mode(before);
        if (i == 0) memcpy(first, out, sizeof out), text = message;
        for (int row = 0; row < MODE_ROWS; row++)
            if (status[row] != expected[row])
                fail_msg("%s, call %d: %s", float_modes[i].name, row, rapt_status_text(status[row]));
        expect_bits(out, first, 8 + COUNT, NAN_CANONICAL, "%s", float_modes[i].name);
        assert_string_equal(message.text, text.text);
        assert_int_equal(after, float_modes[i].value);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bad_heads_are_refused),
        cmocka_unit_test(blocks_of_wide_heads_are_refused),
        cmocka_unit_test(bad_ids_are_refused),
        cmocka_unit_test(ids_that_change_stay_in_the_table),
        cmocka_unit_test(others_are_refused),
        cmocka_unit_test(runs_do_not_overlap),
        cmocka_unit_test(the_causal_corner_is_asked_for),
        cmocka_unit_test(nothing_is_legal),
        cmocka_unit_test(no_mode_decides_a_refusal),
    };
    return cmocka_run_group_tests_name("layers_refusals", tests, NULL, NULL);
}
