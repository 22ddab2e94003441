/* SPDX-License-Identifier: MIT
 * Merging states: bits against the reference, for any layout, number of states and threads; and whole calls with keys
 * split among independent ones, against attention in double. */
#include <math.h>

#include "reference/reference.h"
#include "states/data.h"
#include "support/cmocka_all.h"
#include "support/problem.h"
#include "support/support.h"

enum { MOST_MERGED = 9, ROWS = 24, KEYS = 3000, DIM = 32 };

static const struct rapt_table *tables[RAPT_ISA_COUNT];
static int table_count;

/* ---- random states */

struct merging {
    rapt_states_desc desc;
    rapt_tensor states[MOST_MERGED];
    struct guarded memory[MOST_MERGED + 3]; /* states, then merged, out, lse */
    int32_t lengths[4];
    float sinks[8];
};

/* A tensor between guard pages: padded, heads or tokens first; inputs perhaps reversed or broadcast. */
static rapt_tensor new_tensor(struct guarded *memory, const rapt_states_desc *desc, int32_t dtype, int64_t numbers,
                              bool is_output, struct random *random) {
    const int64_t bytes = rapt_row_bytes(dtype, numbers), row = bytes + 4 * random_below(random, 3);
    const int64_t heads = desc->query_heads, tokens = desc->query_length;
    rapt_tensor tensor = {.dtype = dtype};
    const bool token_major = random_chance(random, 50);
    tensor.token_stride_bytes = token_major ? row * heads : row;
    tensor.head_stride_bytes = token_major ? row : row * tokens;
    tensor.batch_stride_bytes = row * heads * tokens;
    int64_t last = (desc->batch - 1) * tensor.batch_stride_bytes + (heads - 1) * tensor.head_stride_bytes +
                   (tokens - 1) * tensor.token_stride_bytes;
    if (!is_output && random_chance(random, 15)) {
        last -= (desc->batch - 1) * tensor.batch_stride_bytes;
        tensor.batch_stride_bytes = 0;
    }
    *memory = guarded_new((size_t)(last + bytes), GUARD_END, 0, 0xff);
    tensor.data = memory->data;
    tensor.extent_bytes = last + bytes;
    if (!is_output && random_chance(random, 15)) {
        tensor.data = memory->data + (tokens - 1) * tensor.token_stride_bytes;
        tensor.token_stride_bytes = -tensor.token_stride_bytes;
        tensor.extent_bytes = 0;
    }
    return tensor;
}

static void draw_row(float *row, int64_t floats, int32_t numerics, struct random *random) {
    static const float maxima[] = {0, 2, -4, 40, -126, 0x1p22f, 1.7f, NAN, INFINITY};
    static const float sums[] = {1, 0.25f, 300, 0, 0, -1, NAN, INFINITY, 0x1p-130f};
    const int64_t usual = random_chance(random, 80) ? 5 : 9;
    row[0] = numerics == RAPT_NUMERICS_ORDER_2 && usual == 5 ? 30 * random_normal(random)
                                                             : maxima[random_below(random, usual)];
    row[1] = sums[random_below(random, usual)];
    for (int64_t d = 2; d < floats; d++)
        row[d] = random_chance(random, 1) ? random_special(random) : random_normal(random);
}

static float *row_at(const rapt_tensor *tensor, int64_t b, int64_t h, int64_t i) {
    return (float *)(void *)((char *)tensor->data + b * tensor->batch_stride_bytes + h * tensor->head_stride_bytes +
                             i * tensor->token_stride_bytes);
}

static struct merging draw(uint64_t seed) {
    static const int32_t of_out[] = {RAPT_F32, RAPT_F32, RAPT_F32, RAPT_F16, RAPT_BF16};
    struct random random = {seed};
    struct merging m = {.desc = RAPT_STATES_DESC_INIT};
    rapt_states_desc *d = &m.desc;
    const bool is_large = random_chance(&random, 20); /* several threads */
    d->batch = random_between(&random, 1, 3);
    d->query_heads = random_between(&random, 1, is_large ? 8 : 3);
    d->query_length = random_between(&random, 1, is_large ? 150 : 9);
    d->value_dim = random_chance(&random, 5) && !is_large ? 1024 : random_between(&random, 1, is_large ? 64 : 140);
    d->count = random_between(&random, 1, MOST_MERGED);
    d->numerics = (int32_t)(seed % 4);
    for (int64_t s = 0; s < d->count; s++) {
        m.states[s] = new_tensor(&m.memory[s], d, RAPT_F32, 2 + d->value_dim, false, &random);
        for (int64_t b = 0; b < d->batch; b++)
            for (int64_t h = 0; h < d->query_heads; h++)
                for (int64_t i = 0; i < d->query_length; i++)
                    draw_row(row_at(&m.states[s], b, h, i), 2 + d->value_dim, d->numerics, &random);
    }
    const int64_t outputs = random_between(&random, 1, 7);
    if (outputs & 1)
        d->merged = new_tensor(&m.memory[MOST_MERGED], d, RAPT_F32, 2 + d->value_dim, true, &random);
    if (outputs & 2)
        d->out =
            new_tensor(&m.memory[MOST_MERGED + 1], d, of_out[random_below(&random, 5)], d->value_dim, true, &random);
    if (outputs & 4)
        d->lse = new_tensor(&m.memory[MOST_MERGED + 2], d, RAPT_F32, 1, true, &random);
    for (int h = 0; h < 8; h++)
        m.sinks[h] = random_chance(&random, 20) ? -INFINITY : 3 * random_normal(&random);
    for (int b = 0; b < 4; b++)
        m.lengths[b] = (int32_t)random_between(&random, 0, d->query_length);
    return m;
}

/* Bytes of all outputs. */
static void copy_outputs(const struct merging *m, char *copy) {
    for (int i = MOST_MERGED; i < MOST_MERGED + 3; i++)
        if (m->memory[i].data) {
            memcpy(copy, m->memory[i].data, m->memory[i].bytes);
            copy += m->memory[i].bytes;
        }
}

static void blank_outputs(const struct merging *m) {
    for (int i = MOST_MERGED; i < MOST_MERGED + 3; i++)
        if (m->memory[i].data)
            memset(m->memory[i].data, 0xff, m->memory[i].bytes);
}

static void check_merging(uint64_t seed) {
    struct random random = {seed + 7};
    struct merging m = draw(seed);
    rapt_states_desc *d = &m.desc;
    size_t bytes = 1;
    d->states = m.states;
    if (d->out.data && seed % 3)
        d->sinks = m.sinks;
    if (seed % 2)
        d->query_lengths = rapt_int32_list(m.lengths, seed % 4 == 1 ? d->batch : 0);
    for (int i = MOST_MERGED; i < MOST_MERGED + 3; i++)
        bytes += m.memory[i].bytes;
    char *expected = test_alloc(bytes), *got = test_alloc(bytes);
    rapt_reference_merge_states(d);
    copy_outputs(&m, expected);
    for (int t = 0; t < table_count; t++) {
        rapt_message message = {""};
        rapt_run_options options = RAPT_RUN_OPTIONS_INIT;
        options.max_threads = (int32_t)random_between(&random, 0, 4);
        d->isa = tables[t]->isa;
        blank_outputs(&m);
        if (rapt_merge_states(d, seed % 5 ? &options : NULL, &message) != RAPT_OK)
            fail_msg("seed %llu: %s", (unsigned long long)seed, message.text);
        copy_outputs(&m, got);
        if (memcmp(got, expected, bytes - 1) != 0)
            fail_msg("seed %llu on %s: other bits", (unsigned long long)seed, tables[t]->name);
    }
    for (int i = 0; i < MOST_MERGED + 3; i++)
        if (m.memory[i].data) {
            assert_true(guarded_is_clean(&m.memory[i]));
            guarded_free(&m.memory[i]);
        }
    test_free_all();
}

static void test_bits(void **state) {
    (void)state;
    for (int64_t seed = 1; seed <= scaled_work(600); seed++)
        check_merging((uint64_t)seed);
}

/* The merged state takes the place of any of them. */
static void test_in_place(void **state) {
    (void)state;
    for (int64_t seed = 1; seed <= scaled_work(60); seed++) {
        struct merging m = draw((uint64_t)seed);
        rapt_states_desc *d = &m.desc;
        rapt_tensor *at = &m.states[seed % d->count];
        if (at->batch_stride_bytes == 0 || at->token_stride_bytes < 0)
            continue;
        const size_t bytes = m.memory[seed % d->count].bytes;
        char *before = test_alloc(bytes), *expected = test_alloc(bytes);
        memcpy(before, at->data, bytes);
        d->states = m.states;
        d->merged = *at;
        rapt_reference_merge_states(d);
        memcpy(expected, at->data, bytes);
        memcpy(at->data, before, bytes);
        assert_int_equal(rapt_merge_states(d, NULL, NULL), RAPT_OK);
        assert_memory_equal(at->data, expected, bytes);
        for (int i = 0; i < MOST_MERGED + 3; i++)
            guarded_free(&m.memory[i]);
        test_free_all();
    }
}

/* ---- independent calls */

static struct states_call call;

/* The state of the keys [first, first + keys) alone. */
static rapt_tensor state_of(int64_t first, int64_t keys) { return states_of_keys(&call, first, keys, NULL); }

static void merge(const rapt_tensor *states, int64_t count, float *out, float *lse) {
    rapt_states_desc desc = RAPT_STATES_DESC_INIT;
    rapt_message message = {""};
    desc.batch = desc.query_heads = 1;
    desc.query_length = ROWS;
    desc.value_dim = DIM;
    desc.states = states;
    desc.count = count;
    desc.out = rapt_output_bhsd(out, 1, 1, ROWS, DIM);
    desc.lse = rapt_output_bhsd(lse, 1, 1, ROWS, 1);
    if (rapt_merge_states(&desc, NULL, &message) != RAPT_OK)
        fail_msg("%s", message.text);
}

/* If every state but the first is of a single chunk, the folds are those of the undivided call. */
static void test_single_chunks(void **state) {
    float out[2][ROWS * DIM], lse[2][ROWS];
    rapt_tensor states[MOST_MERGED];
    int64_t count = 0;
    (void)state;
    states_call_draw(&call, ROWS, KEYS, DIM, 3);
    states_run_whole(&call, out[0], lse[0]);
    for (int64_t first = 0, keys; first < KEYS; first += keys) {
        const int64_t most = first ? 512 : 1024;
        keys = KEYS - first < most ? KEYS - first : most;
        states[count++] = state_of(first, keys);
    }
    merge(states, count, out[1], lse[1]);
    expect_bits(out[1], out[0], ROWS * DIM, NAN_CANONICAL, "out of merged chunks");
    expect_bits(lse[1], lse[0], ROWS, NAN_CANONICAL, "lse of merged chunks");
    test_free_all();
}

/* States without keys, before, between and after others, change no bit. */
static void test_identity(void **state) {
    float out[2][ROWS * DIM], lse[2][ROWS], *zeros = test_floats(ROWS * (2 + DIM));
    (void)state;
    states_call_draw(&call, ROWS, KEYS, DIM, 4);
    memset(zeros, 0, ROWS * (2 + DIM) * sizeof *zeros);
    const rapt_tensor none = rapt_input_bhsd(zeros, 1, 1, ROWS, 2 + DIM), no_keys = state_of(0, 0);
    const rapt_tensor a = state_of(0, 1000), b = state_of(1000, 2000);
    const rapt_tensor two[] = {a, b}, six[] = {none, no_keys, a, no_keys, b, none}, empty[] = {no_keys, none};
    merge(two, 2, out[0], lse[0]);
    merge(six, 6, out[1], lse[1]);
    expect_bits(out[1], out[0], ROWS * DIM, NAN_CANONICAL, "out with empty states");
    expect_bits(lse[1], lse[0], ROWS, NAN_CANONICAL, "lse with empty states");
    merge(empty, 2, out[1], lse[1]);
    for (int i = 0; i < ROWS * DIM; i++)
        assert_int_equal(bits_of(out[1][i]), 0);
    for (int i = 0; i < ROWS; i++)
        assert_true(lse[1][i] == -INFINITY);
    test_free_all();
}

static double rms(const float *out, const double *truth) {
    double squares = 0;
    for (int row = 0; row < ROWS; row++) {
        double largest = 0;
        for (int d = 0; d < DIM; d++)
            largest = fmax(largest, fabs(truth[row * DIM + d]));
        for (int d = 0; d < DIM; d++)
            squares += pow(((double)out[row * DIM + d] - truth[row * DIM + d]) / largest, 2);
    }
    return sqrt(squares / (ROWS * DIM));
}

/* Keys cut anywhere, as independent calls and as a chain: as exact as the undivided call. */
static void test_accuracy(void **state) {
    static const int64_t cuts[] = {0, 7, 300, 512, 1111, 1112, 2500, KEYS};
    enum { PARTS = sizeof cuts / sizeof *cuts - 1 };
    double squares[3] = {0}, truth[ROWS * DIM];
    float out[3][ROWS * DIM], lse[3][ROWS];
    (void)state;
    for (uint64_t seed = 1; seed <= (uint64_t)scaled_work(8); seed++) {
        rapt_tensor states[PARTS], chain;
        states_call_draw(&call, ROWS, KEYS, DIM, seed);
        states_run_whole(&call, out[0], lse[0]);
        rapt_truth_attention(&call.desc, truth, NULL, NULL);
        for (int part = 0; part < PARTS; part++) {
            states[part] = state_of(cuts[part], cuts[part + 1] - cuts[part]);
            chain = states_of_keys(&call, cuts[part], cuts[part + 1] - cuts[part], part ? &chain : NULL);
        }
        merge(states, PARTS, out[1], lse[1]);
        merge(&chain, 1, out[2], lse[2]);
        for (int way = 0; way < 3; way++)
            squares[way] += pow(rms(out[way], truth), 2);
        for (int row = 0; row < ROWS; row++)
            assert_true(fabsf(lse[1][row] - lse[0][row]) < 2e-6f && fabsf(lse[2][row] - lse[0][row]) < 2e-6f);
        test_free_all();
    }
    print_message("# RMS of merged states %.3f, of a chain %.3f of the undivided call's\n",
                  sqrt(squares[1] / squares[0]), sqrt(squares[2] / squares[0]));
    assert_true(squares[0] > 0 && squares[1] <= 1.1025 * squares[0] && squares[2] <= 1.1025 * squares[0]);
}

/* Lengths at the end of memory: none is read for a sequence after the last one. */
static void test_end_of_lengths(void **state) {
    enum { SEQUENCES = 2, FLOATS = 2 + 8 };
    static float floats[SEQUENCES * FLOATS];
    struct guarded lengths = guarded_new(SEQUENCES * sizeof(int32_t), GUARD_END, 0, 0);
    const rapt_tensor states[] = {rapt_output_bhsd(floats, SEQUENCES, 1, 1, FLOATS)};
    float out[SEQUENCES * 8];
    rapt_states_desc d = RAPT_STATES_DESC_INIT;
    (void)state;
    d.batch = SEQUENCES, d.query_heads = d.query_length = 1, d.value_dim = 8;
    d.states = states, d.count = 1;
    d.query_lengths = rapt_int32_list((const int32_t *)(const void *)lengths.data, SEQUENCES);
    d.out = rapt_output_bhsd(out, SEQUENCES, 1, 1, 8);
    assert_int_equal(rapt_merge_states(&d, NULL, NULL), RAPT_OK);
    guarded_free(&lengths);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_bits),     cmocka_unit_test(test_in_place), cmocka_unit_test(test_single_chunks),
        cmocka_unit_test(test_end_of_lengths),
        cmocka_unit_test(test_identity), cmocka_unit_test(test_accuracy),
        cmocka_unit_test(test_merge_refusals), cmocka_unit_test(test_merge_legal),
    };
    table_count = machine_tables(tables);
    return cmocka_run_group_tests_name("states_merge", tests, NULL, NULL);
}
