/* SPDX-License-Identifier: MIT
 * Partial states: calls cut at chunk boundaries, passing on their states, have the bits of the undivided call, on
 * whatever machine and however many threads each part runs. */
#include <math.h>
#include <stdlib.h>

#include "reference/reference.h"
#include "support/cmocka_all.h"
#include "support/problem.h"

static const struct rapt_table *tables[RAPT_ISA_COUNT], *of_order2[RAPT_ISA_COUNT];
static int table_count, order2_count;

enum { MOST_BATCH = 3, CHUNK = 512 };

static int64_t listed(rapt_index_list list, int64_t b, int64_t otherwise) {
    if (!list.data)
        return otherwise;
    return list.index_bytes == 4 ? ((const int32_t *)list.data)[b] : ((const int64_t *)list.data)[b];
}

static int64_t query_position_of(const rapt_attention_desc *desc, int64_t b) {
    const int64_t first = listed(desc->key_position, b, 0);
    switch (desc->query_origin) {
    case RAPT_ORIGIN_GIVEN:
        return listed(desc->query_position, b, 0);
    case RAPT_ORIGIN_BOTTOM_RIGHT:
        return first + listed(desc->kv_lengths, b, desc->kv_length) -
               listed(desc->query_lengths, b, desc->query_length);
    default:
        return first;
    }
}

/* ---- a part of a call: the stored keys [first, first + keys) of some sequences */

struct part {
    rapt_attention_desc desc;
    int64_t kv_length[MOST_BATCH], query_length[MOST_BATCH], key_position[MOST_BATCH], query_position[MOST_BATCH];
};

static rapt_index_list list_of(const int64_t *entries) { return (rapt_index_list){.data = entries, .index_bytes = 8}; }

static void move(rapt_tensor *tensor, int64_t b, int64_t tokens, int64_t bytes) {
    const int64_t of_scales = b * tensor->scale_batch_stride_bytes + tokens * tensor->scale_token_stride_bytes;
    if (tensor->scales)
        tensor->scales = (char *)tensor->scales + of_scales;
    if (tensor->zero_points)
        tensor->zero_points = (char *)tensor->zero_points + of_scales / 4;
    if (tensor->data)
        tensor->data = tensor_at(tensor, b, 0, tokens) + bytes;
    tensor->extent_bytes = tensor->scale_extent_bytes = 0;
}

static void cut(struct part *part, const rapt_attention_desc *whole, int64_t b, int64_t batch, int64_t first,
                int64_t keys) {
    rapt_attention_desc *desc = &part->desc;
    rapt_tensor *const of_queries[] = {&desc->query, &desc->out, &desc->lse, &desc->initial_state, &desc->final_state};
    *desc = *whole;
    desc->batch = batch;
    desc->kv_length = keys;
    for (size_t i = 0; i < sizeof of_queries / sizeof *of_queries; i++)
        move(of_queries[i], b, 0, 0);
    move(&desc->key, b, first, 0);
    move(&desc->value, b, first, 0);
    move(&desc->mask, b, 0, first);
    move(&desc->keep_mask, b, 0, first);
    move(&desc->bias, b, 0, rapt_row_bytes(desc->bias.dtype, first));
    move(&desc->weights, b, 0, first * 4);
    for (int64_t i = 0; i < batch; i++) {
        const int64_t left = listed(whole->kv_lengths, b + i, whole->kv_length) - first;
        part->kv_length[i] = left < 0 ? 0 : left < keys ? left : keys;
        part->query_length[i] = listed(whole->query_lengths, b + i, whole->query_length);
        part->key_position[i] = listed(whole->key_position, b + i, 0) + first;
        part->query_position[i] = query_position_of(whole, b + i);
    }
    desc->kv_lengths = list_of(part->kv_length);
    desc->query_lengths = list_of(part->query_length);
    desc->key_position = list_of(part->key_position);
    if (desc->query_origin == RAPT_ORIGIN_UNSTATED)
        return;
    desc->query_origin = RAPT_ORIGIN_GIVEN;
    desc->query_position = list_of(part->query_position);
}

/* ---- a chain of parts */

struct chain {
    const rapt_attention_desc *whole;
    const struct problem *expected;
    struct random *random;
    int64_t b, batch; /* sequences */
    rapt_tensor state[2];
};

static rapt_tensor new_state(const rapt_attention_desc *desc, int64_t batch) {
    const int64_t floats = desc->value_dim + 2;
    float *data = test_floats(batch * desc->query_heads * desc->query_length * floats);
    return rapt_output_bhsd(data, batch, desc->query_heads, desc->query_length, floats);
}

static void run(struct random *random, rapt_attention_desc *desc) {
    rapt_run_options options = RAPT_RUN_OPTIONS_INIT;
    rapt_message message = {""};
    const bool is_order2 = desc->numerics == RAPT_NUMERICS_ORDER_2;
    if (random_chance(random, 20) || (is_order2 && order2_count == 0)) {
        rapt_reference_attention(desc);
        return;
    }
    desc->isa = is_order2 ? of_order2[random_below(random, order2_count)]->isa
                          : tables[random_below(random, table_count)]->isa;
    options.max_threads = (int32_t)random_between(random, 1, 4);
    if (rapt_attention(desc, &options, &message) != RAPT_OK)
        fail_msg("%s", message.text);
}

/* Earlier parts wrote probabilities of their own keys only; the expected ones replace them. */
static void copy_weights(const struct chain *chain, int64_t first, int64_t keys) {
    const rapt_attention_desc *whole = chain->whole;
    for (int64_t b = chain->b; b < chain->b + chain->batch; b++)
        for (int64_t h = 0; h < whole->query_heads; h++)
            for (int64_t i = 0; i < listed(whole->query_lengths, b, whole->query_length); i++)
                memcpy(tensor_at(&whole->weights, b, h, i) + first * 4,
                       tensor_at(&chain->expected->desc.weights, b, h, i) + first * 4, (size_t)keys * 4);
}

/* Keys [first, first + keys), the number-th part of the chain. */
static void run_part(struct chain *chain, int number, int64_t first, int64_t keys, bool is_last) {
    static const rapt_tensor none;
    struct part part;
    rapt_attention_desc *desc = &part.desc;
    const bool in_place = random_chance(chain->random, 50);
    cut(&part, chain->whole, chain->b, chain->batch, first, keys);
    if (number > 0)
        desc->initial_state = chain->state[0];
    if (!is_last) {
        desc->out = desc->lse = none;
        desc->sinks = NULL;
        desc->final_state = number > 0 && in_place ? chain->state[0] : chain->state[1];
    }
    if (!is_last && desc->weights_kind == RAPT_WEIGHTS_SOFTMAX) {
        desc->weights = none;
        desc->weights_kind = RAPT_WEIGHTS_NONE;
        copy_weights(chain, first, keys);
    }
    run(chain->random, desc);
    if (!is_last && desc->final_state.data != chain->state[0].data) {
        chain->state[1] = chain->state[0];
        chain->state[0] = desc->final_state;
    }
}

static int compare_keys(const void *a, const void *b) {
    const int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

/* Cuts at up to three chunk boundaries; cuts may coincide, precede the first key or follow the last. */
static void run_chain(struct chain *chain) {
    const rapt_attention_desc *whole = chain->whole;
    const int64_t position = listed(whole->key_position, chain->b, 0), keys = whole->kv_length;
    int64_t ends[4];
    const int cuts = (int)random_between(chain->random, 1, 3);
    for (int i = 0; i < cuts; i++) {
        const int64_t end = random_between(chain->random, 0, (position % CHUNK + keys) / CHUNK + 1) * CHUNK -
                            position % CHUNK;
        ends[i] = end < 0 ? 0 : end < keys ? end : keys;
    }
    qsort(ends, (size_t)cuts, sizeof *ends, compare_keys);
    ends[cuts] = keys;
    for (int number = 0; number <= cuts; number++) {
        const int64_t first = number ? ends[number - 1] : 0;
        run_part(chain, number, first, ends[number] - first, number == cuts);
    }
}

static void check_chains(const struct problem_call *call) {
    struct random random = {call->seed};
    const struct problem_layout layout = {.seed = call->seed};
    struct problem *expected = problem_expected(call), *problem = problem_laid_out(expected, &layout);
    const int64_t batch = problem->desc.batch, step = problem->desc.key_position.data ? 1 : batch;
    for (int64_t b = 0; b < batch; b += step) {
        struct chain chain = {&problem->desc, expected, &random, b, step, {{0}}};
        for (int i = 0; i < 2; i++)
            chain.state[i] = new_state(&problem->desc, step);
        run_chain(&chain);
    }
    if (!problem_same(problem, expected) || !problem_is_clean(problem))
        fail_msg("in parts: %s", problem_text(call));
    problem_free(problem);
    problem_free(expected);
    test_free_all();
}

static void test_parts(void **state) {
    (void)state;
    for (int64_t seed = 1; seed <= scaled_work(600); seed++) {
        const int32_t numerics = seed % 3 ? RAPT_NUMERICS_DEFAULT : RAPT_NUMERICS_ORDER_2;
        struct problem_call call = random_call_of(numerics, (uint64_t)seed, numerics ? 300000 : 1500000);
        call.use &= ~(unsigned)(USE_TREE | USE_BLOCKS); /* both count from a call's first or last key */
        if (call.kv_length < CHUNK && seed % 4)
            call.kv_length = 300 + 300 * (seed % 5), call.query_length = call.query_length % (numerics ? 3 : 9);
        if (numerics)
            call.query_heads = call.kv_heads; /* the reference is slow */
        check_chains(&call);
    }
}

/* Few rows and many keys, which are split; the first split begins with the initial state. */
static void test_split_keys(void **state) {
    (void)state;
    for (int64_t seed = 1; seed <= scaled_work(12); seed++) {
        const struct problem_call call = {.batch = 1 + seed % 2, .query_heads = 4, .kv_heads = 1 + seed % 2,
                                          .query_length = 1 + seed % 3, .kv_length = 9000 + 517 * seed,
                                          .head_dim = 8, .value_dim = 12, .seed = (uint64_t)seed,
                                          .origin = RAPT_ORIGIN_BOTTOM_RIGHT, .weights_kind = RAPT_WEIGHTS_SOFTMAX,
                                          .use = USE_LSE | (seed % 3 ? USE_INITIAL_STATE | USE_CAUSAL : 0) |
                                                 (seed % 4 ? USE_FINAL_STATE : USE_SINKS)};
        check_chains(&call);
    }
}

/* ---- invalid states */

/* Row 1 of three is invalid, and gives NaN; the others are empty and unharmed. */
static void expect_nan(rapt_attention_desc *desc, float *states, float m, float l) {
    const float *out = desc->out.data, *lse = desc->lse.data, *final_state = desc->final_state.data;
    memset(states, 0, 12 * sizeof *states);
    states[4] = m;
    states[5] = l;
    for (int t = 0; t < table_count; t++) {
        desc->isa = tables[t]->isa;
        assert_int_equal(rapt_attention(desc, NULL, NULL), RAPT_OK);
        for (int i = 0; i < 6; i++)
            if ((bits_of(out[i]) == 0x7fc00000u) != (i / 2 == 1))
                fail_msg("m = %g, l = %g: out[%d] = %g", (double)m, (double)l, i, (double)out[i]);
        for (int row = 0; row < 3; row++)
            assert_true((bits_of(lse[row]) == 0x7fc00000u && bits_of(final_state[4 * row + 1]) == 0x7fc00000u) ==
                        (row == 1));
    }
}

static void test_what_is_no_state(void **state) {
    static const float wrong[][2] = {{0, -1},        {0, NAN},       {0, -INFINITY}, {0, 0x1p-127f}, {1, 1},
                                     {-3, 1},        {0.5f, 1},      {NAN, 1},       {INFINITY, 1},  {-INFINITY, 1},
                                     {0x1p-149f, 1}, {4194303.0f, 1}};
    static float states[12], final_state[12], query[3], key[5], value[10], out[6], lse[3];
    (void)state;
    for (int keys = 0; keys <= 5; keys += 5) {
        rapt_attention_desc desc = RAPT_ATTENTION_DESC_INIT;
        desc.batch = desc.query_heads = desc.kv_heads = desc.head_dim = 1;
        desc.query_length = 3, desc.kv_length = keys, desc.value_dim = 2;
        desc.query = rapt_input_bhsd(query, 1, 1, 3, 1);
        desc.key = rapt_input_bhsd(key, 1, 1, keys, 1);
        desc.value = rapt_input_bhsd(value, 1, 1, keys, 2);
        desc.out = rapt_output_bhsd(out, 1, 1, 3, 2);
        desc.lse = rapt_output_bhsd(lse, 1, 1, 3, 1);
        desc.initial_state = rapt_input_bhsd(states, 1, 1, 3, 4);
        desc.final_state = rapt_output_bhsd(final_state, 1, 1, 3, 4);
        for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
            expect_nan(&desc, states, wrong[i][0], wrong[i][1]);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_parts), cmocka_unit_test(test_split_keys),
                                       cmocka_unit_test(test_what_is_no_state)};
    table_count = machine_tables(tables);
    order2_count = tables_of(RAPT_NUMERICS_ORDER_2, of_order2);
    return cmocka_run_group_tests_name("states", tests, NULL, NULL);
}
