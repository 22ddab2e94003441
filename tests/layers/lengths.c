/* SPDX-License-Identifier: MIT
 * Sequences with fewer queries than query_length: their rows are those of a full call, and the other rows stay
 * unchanged, in every result with a row per query. */
#include "layers/drawn.h"

static const float untouched = 123;

/* [batch][heads][query_length][width] floats that a layer writes. */
struct result {
    const char *name;
    float **place;
    int64_t heads, width;
    bool has_all; /* its rows are keys too */
};

static const int32_t cases[][BATCH] = {{TOKENS, 3}, {2, TOKENS}, {0, 4}, {3, 0}, {2, 4}, {0, 0}, {TOKENS, TOKENS}};
enum { CASES = sizeof cases / sizeof cases[0] };

static int64_t count_of(const struct result *result) { return BATCH * result->heads * TOKENS * result->width; }

/* Gives each result fresh memory. */
static void clear(const struct result *results, int count) {
    for (int i = 0; i < count; i++) {
        *results[i].place = test_floats(count_of(&results[i]));
        for (int64_t j = 0; j < count_of(&results[i]); j++)
            (*results[i].place)[j] = untouched;
    }
}

static void expect_rows(const struct result *result, const float *whole, const int32_t *lengths) {
    float *expected = test_floats(count_of(result));
    for (int64_t row = 0; row < BATCH * result->heads * TOKENS; row++) {
        const bool exists = result->has_all || row % TOKENS < lengths[row / TOKENS / result->heads];
        for (int64_t i = row * result->width; i < (row + 1) * result->width; i++)
            expected[i] = exists ? whole[i] : untouched;
    }
    expect_bits(*result->place, expected, count_of(result), NAN_CANONICAL, "%s, lengths %d and %d", result->name,
                (int)lengths[0], (int)lengths[1]);
}

/* how is the layer's; with_keys also gives it kv_lengths. */
static void check(rapt_attention_desc *how, const struct result *results, int count,
                  rapt_status (*run)(const void *desc), const void *desc) {
#ifdef RAPT_BLAS /* promises no bits for products of other shapes */
    skip();
#endif
    for (int c = 0; c < 2 * CASES; c++) {
        const int32_t *lengths = cases[c / 2];
        float *whole[8];
        int64_t wide[2 * BATCH];
        how->query_lengths = how->kv_lengths = (rapt_index_list){0};
        if (c % 2)
            how->kv_lengths = rapt_int32_list(lengths, BATCH);
        clear(results, count);
        expect_ok(run(desc));
        for (int i = 0; i < count; i++)
            whole[i] = *results[i].place;
        for (int b = 0; b < BATCH; b++)
            wide[2 * b] = lengths[b];
        how->query_lengths = rapt_int64_list(wide, BATCH);
        how->query_lengths.stride_bytes = 16;
        clear(results, count);
        expect_ok(run(desc));
        for (int i = 0; i < count; i++)
            expect_rows(&results[i], whole[i], lengths);
    }
    test_free_all();
}

static float *weights;

static void ask_weights(rapt_attention_desc *how) {
    how->weights = rapt_output_bhsd(weights, BATCH, how->query_heads, TOKENS, TOKENS);
    how->weights_kind = RAPT_WEIGHTS_SOFTMAX;
}

struct heads {
    rapt_attention_desc *how;
    rapt_multi_head_desc layer;
};

static rapt_status run_heads(const void *desc) {
    const struct heads *heads = desc;
    ask_weights(heads->how);
    return rapt_multi_head_attention(&heads->layer, NULL, &message);
}

static void heads_have_their_rows(void **state) {
    (void)state;
    for (int output = 0; output < 2; output++) {
        rapt_attention_desc how = sizes(HEADS);
        struct heads heads = {&how, make(&how)};
        rapt_multi_head_desc *layer = &heads.layer;
        const struct result results[] = {
            {"out", &layer->out, 1, WIDTH, false},           {"weights", &weights, HEADS, TOKENS, false},
            {"query_out", &layer->query_out, 1, WIDTH, false}, {"key_out", &layer->key_out, 1, WIDTH, true},
            {"value_out", &layer->value_out, 1, WIDTH, true},  {"scores", &layer->scores, HEADS, TOKENS, false},
            {"context", &layer->context, 1, WIDTH, false}};
        if (!output)
            layer->output = (rapt_linear){0};
        check(&how, results, output ? 7 : 6, run_heads, &heads);
    }
}

/* Nothing optional: unrequested results use scratch memory. */
static void bare_heads_have_their_rows(void **state) {
    rapt_attention_desc how = sizes(HEADS);
    struct heads heads = {&how, make(&how)};
    const struct result results[] = {{"out", &heads.layer.out, 1, WIDTH, false},
                                     {"weights", &weights, HEADS, TOKENS, false}};
    (void)state;
    check(&how, results, 2, run_heads, &heads);
}

static void fused_heads_have_their_rows(void **state) {
    rapt_attention_desc how = sizes(HEADS);
    struct heads heads = {&how, make(&how)};
    rapt_multi_head_desc *layer = &heads.layer;
    const struct result results[] = {{"out", &layer->out, 1, WIDTH, false},
                                     {"weights", &weights, HEADS, TOKENS, false},
                                     {"scores", &layer->scores, HEADS, TOKENS, false},
                                     {"context", &layer->context, 1, WIDTH, false},
                                     {"fused_out", &layer->fused_out, 1, 3 * WIDTH, true}};
    (void)state;
    layer->query.weight = layer->key.weight = layer->value.weight = NULL;
    layer->fused = drawn_linear(WIDTH, 3 * WIDTH);
    check(&how, results, 5, run_heads, &heads);
}

struct block {
    rapt_attention_desc *how;
    rapt_encoder_desc desc;
};

static rapt_status run_block(const void *desc) {
    const struct block *block = desc;
    ask_weights(block->how);
    return rapt_encoder_block(&block->desc, NULL, &message);
}

static void blocks_have_their_rows(void **state) {
    (void)state;
    for (int way = 0; way < 4; way++) {
        rapt_attention_desc how = sizes(HEADS);
        rapt_multi_head_desc inner = make(&how);
        struct block block = {&how, RAPT_ENCODER_DESC_INIT};
        rapt_encoder_desc *desc = &block.desc;
        const bool pre_norm = way & 1, bare = way & 2;
        const struct result results[] = {{"out", &desc->out, 1, WIDTH, false},
                                         {"weights", &weights, HEADS, TOKENS, false},
                                         {"norm1_out", &desc->norm1_out, 1, WIDTH, pre_norm},
                                         {"ff_out", &desc->ff_out, 1, WIDTH, false},
                                         {"attention->out", &inner.out, 1, WIDTH, false},
                                         {"attention->context", &inner.context, 1, WIDTH, false}};
        desc->attention = &inner;
        desc->x = inner.x;
        inner.x = inner.out = NULL;
        desc->norm1 = (rapt_norm){drawn(WIDTH), drawn(WIDTH), 1e-5f};
        desc->norm2 = (rapt_norm){drawn(WIDTH), drawn(WIDTH), 1e-5f};
        desc->ff1 = drawn_linear(WIDTH, HIDDEN);
        desc->ff2 = drawn_linear(HIDDEN, WIDTH);
        desc->activation = RAPT_GELU;
        desc->pre_norm = pre_norm;
        check(&how, results, bare ? 2 : 6, run_block, &block);
    }
}

/* out = x: a row without a query is unchanged. */
static void blocks_in_place_keep_rows(void **state) {
    const int32_t lengths[BATCH] = {2, 4};
    rapt_attention_desc how = sizes(HEADS);
    rapt_multi_head_desc inner = make(&how);
    rapt_encoder_desc block = RAPT_ENCODER_DESC_INIT;
    (void)state;
#ifdef RAPT_BLAS
    skip();
#endif
    float *x = drawn(COUNT), *apart = test_floats(COUNT), *before = test_floats(COUNT);
    memcpy(before, x, COUNT * sizeof(float));
    inner.x = inner.out = NULL;
    how.query_lengths = rapt_int32_list(lengths, BATCH);
    block.attention = &inner;
    block.norm1.epsilon = block.norm2.epsilon = 1e-5f;
    block.ff1 = drawn_linear(WIDTH, HIDDEN);
    block.ff2 = drawn_linear(HIDDEN, WIDTH);
    block.x = x;
    block.out = apart;
    expect_ok(rapt_encoder_block(&block, NULL, &message));
    block.out = x;
    expect_ok(rapt_encoder_block(&block, NULL, &message));
    for (int row = 0; row < BATCH * TOKENS; row++) {
        const float *expected = row % TOKENS < lengths[row / TOKENS] ? apart : before;
        expect_bits(x + row * WIDTH, expected + row * WIDTH, WIDTH, NAN_CANONICAL, "row %d", row);
    }
    test_free_all();
}

struct stacked {
    rapt_attention_desc *how;
    rapt_stacked_desc desc;
};

static rapt_status run_stacked(const void *desc) {
    const struct stacked *stacked = desc;
    ask_weights(stacked->how);
    return rapt_stacked_attention(&stacked->desc, NULL, &message);
}

static void stacked_heads_have_their_rows(void **state) {
    rapt_attention_desc how = sizes(HEADS);
    rapt_linear linears[3][HEADS];
    struct stacked stacked = {&how, RAPT_STACKED_DESC_INIT};
    rapt_stacked_desc *desc = &stacked.desc;
    const struct result results[] = {{"out", &desc->out, 1, WIDTH, false},
                                     {"weights", &weights, HEADS, TOKENS, false}};
    (void)state;
    for (int i = 0; i < 3 * HEADS; i++)
        linears[i / HEADS][i % HEADS] = drawn_linear(WIDTH, DIM);
    desc->attention = &how;
    desc->x = drawn(COUNT);
    desc->query = linears[0], desc->key = linears[1], desc->value = linears[2];
    check(&how, results, 2, run_stacked, &stacked);
}

struct additive {
    rapt_attention_desc *how;
    rapt_additive_desc desc;
};

static rapt_status run_additive(const void *desc) {
    const struct additive *additive = desc;
    ask_weights(additive->how);
    return rapt_additive_attention(&additive->desc, NULL, &message);
}

static void additive_has_its_rows(void **state) {
    (void)state;
    for (int bare = 0; bare < 2; bare++) {
        rapt_attention_desc how = sizes(1);
        struct additive additive = {&how, RAPT_ADDITIVE_DESC_INIT};
        rapt_additive_desc *desc = &additive.desc;
        const struct result results[] = {{"out", &desc->out, 1, WIDTH, false},
                                         {"weights", &weights, 1, TOKENS, false},
                                         {"scores", &desc->scores, 1, TOKENS, false}};
        desc->attention = &how;
        desc->state = drawn(BATCH * TOKENS * DIM);
        desc->memory = drawn(COUNT);
        desc->w = drawn_linear(DIM, HIDDEN);
        desc->u = drawn_linear(WIDTH, HIDDEN);
        desc->v = drawn(HIDDEN);
        check(&how, results, bare ? 2 : 3, run_additive, &additive);
    }
}

/* Once the rows of the first sequence are projected, another thread might make the second one longer. */
static int lengthen(void *context) {
    int64_t *lengths = context;
    lengths[1] = INT64_C(1) << 40;
    return 0;
}

static void lengths_that_change_stay_in_the_batch(void **state) {
    rapt_attention_desc how = sizes(1);
    int64_t lengths[BATCH] = {TOKENS - 1, TOKENS};
    rapt_additive_desc additive = RAPT_ADDITIVE_DESC_INIT;
    rapt_run_options options = RAPT_RUN_OPTIONS_INIT;
    (void)state;
    how.query_lengths = rapt_int64_list(lengths, BATCH);
    additive.attention = &how;
    additive.state = drawn(COUNT), additive.memory = drawn(COUNT), additive.v = drawn(DIM);
    additive.w = drawn_linear(WIDTH, DIM), additive.u = drawn_linear(WIDTH, DIM);
    additive.out = test_floats(COUNT);
    options.should_stop = lengthen;
    options.should_stop_context = lengths;
    /* A BLAS, which does not ask, leaves the change to attention, whose tasks keep the lengths that were checked. */
    const rapt_status status = rapt_additive_attention(&additive, &options, &message);
    assert_true(status == RAPT_INVALID_VALUE || status == RAPT_OK);
    test_free_all();
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(heads_have_their_rows),         cmocka_unit_test(bare_heads_have_their_rows),
        cmocka_unit_test(fused_heads_have_their_rows),   cmocka_unit_test(blocks_have_their_rows),
        cmocka_unit_test(blocks_in_place_keep_rows),     cmocka_unit_test(stacked_heads_have_their_rows),
        cmocka_unit_test(additive_has_its_rows),
        cmocka_unit_test(lengths_that_change_stay_in_the_batch),
    };
    return cmocka_run_group_tests_name("layers_lengths", tests, NULL, NULL);
}
