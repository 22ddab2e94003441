/* SPDX-License-Identifier: MIT
 * The older layers with several sequences: each as if alone, and Luong's local-p in double. */
#include <math.h>

#include "layers/drawn.h"

enum { MANY = 3, KEYS = 10, QUERIES = 4, REACH = 2, GAP = 3 };

static rapt_attention_desc how_of(int64_t batch, int64_t keys) {
    rapt_attention_desc how = RAPT_ATTENTION_DESC_INIT;
    how.batch = batch;
    how.query_heads = how.kv_heads = 1;
    how.query_length = QUERIES;
    how.kv_length = keys;
    return how;
}

/* Bit for bit, which no BLAS promises for products of other shapes. */
static void additive_sequences_are_separate(void **state) {
    const int32_t lengths[MANY] = {KEYS, 3, 0};
#ifdef RAPT_BLAS
    skip();
#endif
    rapt_attention_desc how = how_of(MANY, KEYS);
    rapt_additive_desc all = RAPT_ADDITIVE_DESC_INIT;
    float *weights = test_floats(MANY * QUERIES * KEYS);
    (void)state;
    how.kv_lengths = rapt_int32_list(lengths, MANY);
    how.weights = rapt_output_bhsd(weights, MANY, 1, QUERIES, KEYS);
    how.weights_kind = RAPT_WEIGHTS_SOFTMAX;
    all.attention = &how;
    all.state = drawn(MANY * QUERIES * DIM);
    all.memory = drawn(MANY * KEYS * WIDTH);
    all.w = drawn_linear(DIM, HIDDEN);
    all.u = drawn_linear(WIDTH, HIDDEN);
    all.v = drawn(HIDDEN);
    all.out = test_floats(MANY * QUERIES * WIDTH);
    for (int bare = 0; bare < 2; bare++) {
        float *scores = all.scores = bare ? NULL : test_floats(MANY * QUERIES * KEYS);
        expect_ok(rapt_additive_attention(&all, NULL, &message));
        for (int b = 0; b < MANY; b++) {
            float out[QUERIES * WIDTH], one_scores[QUERIES * KEYS], one_weights[QUERIES * KEYS];
            rapt_attention_desc one_how = how_of(1, KEYS);
            rapt_additive_desc one = all;
            one_how.kv_lengths = rapt_int32_list(lengths + b, 1);
            one_how.weights = rapt_output_bhsd(one_weights, 1, 1, QUERIES, KEYS);
            one_how.weights_kind = RAPT_WEIGHTS_SOFTMAX;
            one.attention = &one_how;
            one.state += b * QUERIES * DIM;
            one.memory += b * KEYS * WIDTH;
            one.out = out;
            one.scores = one_scores;
            expect_ok(rapt_additive_attention(&one, NULL, &message));
            expect_bits(all.out + b * QUERIES * WIDTH, out, QUERIES * WIDTH, NAN_CANONICAL, "sequence %d", b);
            expect_bits(weights + b * QUERIES * KEYS, one_weights, QUERIES * KEYS, NAN_CANONICAL, "weights %d", b);
            if (!bare)
                expect_bits(scores + b * QUERIES * KEYS, one_scores, QUERIES * KEYS, NAN_CANONICAL, "scores %d", b);
        }
    }
    test_free_all();
}

struct local {
    rapt_attention_desc how;
    rapt_luong_desc layer;
    float *weights;
};

/* Weight rows have gaps, and so do sequences. */
static struct local make_local(int32_t score, rapt_index_list kv_lengths) {
    struct local local = {.how = how_of(MANY, KEYS), .layer = RAPT_LUONG_DESC_INIT};
    rapt_luong_desc *layer = &local.layer;
    local.weights = test_floats(MANY * (QUERIES + 1) * (KEYS + GAP));
    local.how.kv_lengths = kv_lengths;
    local.how.weights = rapt_output_bhsd(local.weights, MANY, 1, QUERIES + 1, KEYS + GAP);
    local.how.weights_kind = RAPT_WEIGHTS_SOFTMAX;
    layer->score = score;
    layer->window = RAPT_LUONG_LOCAL_P;
    layer->reach = REACH;
    layer->state = drawn(MANY * QUERIES * WIDTH);
    layer->memory = drawn(MANY * KEYS * WIDTH);
    layer->state_width = layer->memory_width = WIDTH;
    layer->units = HIDDEN;
    layer->w_a = drawn(HIDDEN * 2 * WIDTH);
    layer->v_a = drawn(HIDDEN);
    layer->w_p = drawn_linear(WIDTH, HIDDEN);
    layer->v_p = drawn(HIDDEN);
    layer->out = test_floats(MANY * QUERIES * WIDTH);
    layer->scores = test_floats(MANY * QUERIES * KEYS);
    layer->align = test_floats(MANY * QUERIES * KEYS);
    layer->position = test_floats(MANY * QUERIES);
    return local;
}

static void run_local(struct local *local) {
    local->layer.attention = &local->how;
    expect_ok(rapt_luong_attention(&local->layer, NULL, &message));
}

static void expect_near(float got, double exact, const char *name, int b, int q, int i) {
    if (!(fabs((double)got - exact) <= 1e-6))
        fail_msg("%s, sequence %d, query %d, %d: got %g, expected %g", name, b, q, i, (double)got, exact);
}

/* Weights by equations 9 and 10, from the layer's scores. */
static void expect_local_row(const struct local *local, int b, int q, int keys, double position) {
    const int64_t row = b * QUERIES + q;
    const float *scores = local->layer.scores + row * KEYS, *memory = local->layer.memory + (int64_t)b * KEYS * WIDTH;
    double largest = -INFINITY, sum = 0, context[WIDTH] = {0};
    for (int s = 0; s < keys; s++)
        if (fabs(s - position) <= REACH) largest = fmax(largest, (double)scores[s]);
    for (int s = 0; s < keys; s++)
        if (fabs(s - position) <= REACH) sum += exp((double)scores[s] - largest);
    for (int s = 0; s < KEYS; s++) {
        const bool inside = s < keys && fabs(s - position) <= REACH;
        const double align = inside ? exp((double)scores[s] - largest) / sum : 0;
        const double weight = align * exp(-(s - position) * (s - position) * 2 / (REACH * REACH));
        const float *got = local->weights + ((int64_t)b * (QUERIES + 1) + q) * (KEYS + GAP) + s;
        assert_int_equal(*got != 0, inside);
        expect_near(local->layer.align[row * KEYS + s], align, "align", b, q, s);
        expect_near(*got, weight, "weights", b, q, s);
        for (int d = 0; d < WIDTH; d++) context[d] += weight * (double)memory[s * WIDTH + d];
    }
    for (int d = 0; d < WIDTH; d++) expect_near(local->layer.out[row * WIDTH + d], context[d], "out", b, q, d);
}

/* p = S / 2: keys lie at exactly D from it, and the last sequence has none. */
static void local_p_around_the_middle(void **state) {
    const int32_t lengths[MANY] = {KEYS, 6, 0};
    struct local local = make_local(RAPT_LUONG_DOT, rapt_int32_list(lengths, MANY));
    float zeros[HIDDEN] = {0};
    (void)state;
    local.layer.v_p = zeros;
    run_local(&local);
    for (int row = 0; row < MANY * QUERIES; row++) {
        const int b = row / QUERIES, keys = lengths[b];
        assert_true((double)local.layer.position[row] == keys / 2.0);
        expect_local_row(&local, b, row % QUERIES, keys, keys / 2.0);
    }
    test_free_all();
}

/* Separate positions, with all keys and with lists, for scores of the engine and of the layer. */
static void local_p_sequences_are_exact(void **state) {
    static const int64_t lengths[MANY] = {2, KEYS, 7};
    (void)state;
    for (int way = 0; way < 4; way++) {
        const rapt_index_list list = way & 1 ? rapt_int64_list(lengths, MANY) : (rapt_index_list){0};
        struct local local = make_local(way & 2 ? RAPT_LUONG_CONCAT : RAPT_LUONG_DOT, list);
        run_local(&local);
        for (int row = 0; row < MANY * QUERIES; row++) {
            const int b = row / QUERIES, keys = way & 1 ? (int)lengths[b] : KEYS;
            double sum = 0;
            for (int unit = 0; unit < HIDDEN; unit++) {
                double x = (double)local.layer.w_p.bias[unit];
                for (int i = 0; i < WIDTH; i++)
                    x += (double)local.layer.w_p.weight[unit * WIDTH + i] * (double)local.layer.state[row * WIDTH + i];
                sum += tanh(x) * (double)local.layer.v_p[unit];
            }
            assert_true(fabs((double)local.layer.position[row] - keys / (1 + exp(-sum))) <= 1e-5);
            expect_local_row(&local, b, row % QUERIES, keys, (double)local.layer.position[row]);
        }
        test_free_all();
    }
}

/* One key takes all, with a score whose neighbours are further away than the logarithm of the key's Gaussian. */
static void large_scores_keep_the_gaussian(void **state) {
    static float queries[MANY * QUERIES * WIDTH], memory[MANY * KEYS * WIDTH], zeros[HIDDEN];
    enum { KEY = KEYS / 2 - 1, LARGE = 1 << 12 };
    struct local local = make_local(RAPT_LUONG_DOT, (rapt_index_list){0});
    (void)state;
    for (int row = 0; row < MANY * QUERIES; row++)
        queries[row * WIDTH] = LARGE;
    for (int b = 0; b < MANY; b++)
        memory[(b * KEYS + KEY) * WIDTH] = LARGE;
    local.layer.state = queries;
    local.layer.memory = memory;
    local.layer.v_p = zeros; /* p = S / 2 */
    run_local(&local);
    for (int b = 0; b < MANY; b++)
        for (int q = 0; q < QUERIES; q++) {
            const double weight = exp(-2.0 / (REACH * REACH));
            const float *out = local.layer.out + (b * QUERIES + q) * WIDTH;
            expect_near(local.weights[(b * (QUERIES + 1) + q) * (KEYS + GAP) + KEY], weight, "weights", b, q, KEY);
            expect_near(out[0] / LARGE, weight, "out", b, q, 0);
        }
    test_free_all();
}

/* v . tanh(W [h_t; h_s]) in double. */
static void concat_scores_are_exact(void **state) {
    struct local local = make_local(RAPT_LUONG_CONCAT, (rapt_index_list){0});
    const rapt_luong_desc *layer = &local.layer;
    (void)state;
    run_local(&local);
    for (int i = 0; i < MANY * QUERIES * KEYS; i++) {
        const int row = i / KEYS, key = row / QUERIES * KEYS + i % KEYS;
        double score = 0;
        for (int unit = 0; unit < HIDDEN; unit++) {
            const float *w = layer->w_a + (int64_t)unit * 2 * WIDTH;
            double x = 0;
            for (int d = 0; d < WIDTH; d++) x += (double)w[d] * (double)layer->state[row * WIDTH + d];
            for (int d = 0; d < WIDTH; d++) x += (double)w[WIDTH + d] * (double)layer->memory[key * WIDTH + d];
            score += tanh(x) * (double)layer->v_a[unit];
        }
        expect_near(layer->scores[i], score, "scores", row / QUERIES, row % QUERIES, i % KEYS);
    }
    test_free_all();
}

/* It attends twice: the second pass would continue from the first. */
static void local_p_has_no_states(void **state) {
    static float memory[MANY * QUERIES * (2 + WIDTH)]; /* empty states */
    const rapt_tensor states = rapt_output_bhsd(memory, MANY, 1, QUERIES, 2 + WIDTH);
    struct local local = make_local(RAPT_LUONG_DOT, (rapt_index_list){0});
    float *before = test_floats(MANY * QUERIES * WIDTH);
    (void)state;
    local.layer.attention = &local.how;
    for (int which = 1; which <= 3; which++) {
        local.how.initial_state = which & 1 ? states : (rapt_tensor){0};
        local.how.final_state = which & 2 ? states : (rapt_tensor){0};
        assert_int_equal(rapt_luong_attention(&local.layer, NULL, &message), RAPT_UNUSED_FIELD);
        assert_string_equal(message.text, which & 1 ? "attention has initial_state: not with local-p"
                                                    : "attention has final_state: not with local-p");
        assert_memory_equal(local.layer.out, before, MANY * QUERIES * WIDTH * sizeof(float));
    }
    local.layer.window = RAPT_LUONG_LOCAL_M; /* attends once */
    local.layer.align = local.layer.position = NULL;
    run_local(&local);
    test_free_all();
}

/* Never stepped by: not even for unused pointers, as the sanitizer sees. */
static void local_p_ignores_strides_of_single_rows(void **state) {
    struct local local = make_local(RAPT_LUONG_DOT, (rapt_index_list){0});
    float expected[KEYS];
    (void)state;
    local.how.batch = local.how.query_length = 1;
    run_local(&local);
    memcpy(expected, local.weights, sizeof expected);
    local.how.weights.batch_stride_bytes = local.how.weights.token_stride_bytes = INT64_MIN;
    run_local(&local);
    assert_memory_equal(local.weights, expected, sizeof expected);
    test_free_all();
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(additive_sequences_are_separate), cmocka_unit_test(local_p_around_the_middle),
        cmocka_unit_test(local_p_sequences_are_exact),     cmocka_unit_test(concat_scores_are_exact),
        cmocka_unit_test(large_scores_keep_the_gaussian),  cmocka_unit_test(local_p_has_no_states),
        cmocka_unit_test(local_p_ignores_strides_of_single_rows),
    };
    return cmocka_run_group_tests_name("layers_batches", tests, NULL, NULL);
}
