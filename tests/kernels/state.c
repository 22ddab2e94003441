/* SPDX-License-Identifier: MIT
 * merge, finish, and states in callers' form: steps 7 to 9. */
#include <math.h>

#include "kernels/check.h"
#include "reference/reference.h"
#include "support/cmocka_all.h"

enum { MOST_ROWS = 9 };

static const float maxima[] = {0,   2,       4,        -2,      40,       -126,    126,
                               254, 4194304, -4194304, 0x1p60f, -0x1p60f, INFINITY};

static struct rapt_state random_state(struct random *random, int rows, int64_t o_stride) {
    struct rapt_state state = {test_floats(rows), test_floats(rows), test_floats(rows * o_stride), o_stride};
    for (int row = 0; row < rows; row++) {
        bool is_empty = random_chance(random, 20), is_special = random_chance(random, 20);
        state.m[row] = is_empty ? -INFINITY : maxima[random_below(random, 13)];
        state.l[row] = is_empty ? 0.0f : 0.3f + fabsf(quick_normal(random)) * 50;
        if (!is_empty && (state.m[row] == INFINITY || random_chance(random, 8)))
            state.l[row] = NAN; /* +infinity gives NaN probabilities */
        else if (!is_empty && random_chance(random, 4))
            state.l[row] = INFINITY;
        if (!is_empty && random_chance(random, 4))
            state.m[row] = -INFINITY, state.l[row] = NAN; /* only NaN was attended */
        for (int64_t d = 0; d < o_stride && !is_empty; d++)
            state.o[row * o_stride + d] = is_special ? quick_special(random) : quick_normal(random);
    }
    return state;
}

static struct rapt_state copied_state(struct rapt_state state, int rows, int64_t o_stride) {
    struct rapt_state copy = {test_floats(rows), test_floats(rows), test_floats(rows * o_stride), o_stride};
    memcpy(copy.m, state.m, (size_t)rows * sizeof(float));
    memcpy(copy.l, state.l, (size_t)rows * sizeof(float));
    memcpy(copy.o, state.o, (size_t)(rows * o_stride) * sizeof(float));
    return copy;
}

static struct rapt_reference_state row_of(struct rapt_state state, int row, int64_t o_stride) {
    return (struct rapt_reference_state){state.m[row], state.l[row], state.o + row * o_stride};
}

void check_merge(const struct rapt_table *table) {
    struct random random = {6};
    for (int d = 0; d < edge_dim_count; d++)
        for (int rows = 1; rows <= MOST_ROWS; rows++) {
            int value_dim = edge_dims[d];
            int64_t o_stride = (value_dim + 15) / 16 * 16;
            struct rapt_state into = random_state(&random, rows, o_stride);
            struct rapt_state next = random_state(&random, rows, o_stride);
            struct rapt_state expected = copied_state(into, rows, o_stride);
            struct rapt_state next_before = copied_state(next, rows, o_stride);
            for (int row = 0; row < rows; row++) {
                struct rapt_reference_state a = row_of(expected, row, o_stride),
                                            b = row_of(next, row, o_stride);
                if (b.l != 0)
                    rapt_reference_fold(&a, &b, value_dim);
                expected.m[row] = a.m;
                expected.l[row] = a.l;
            }
            table->merge(into, next, rows, value_dim);
            expect_bits(into.m, expected.m, rows, NAN_ANY, "%s merge m", table->name);
            expect_bits(into.l, expected.l, rows, NAN_ANY, "%s merge l", table->name);
            for (int row = 0; row < rows; row++)
                expect_bits(into.o + row * o_stride, expected.o + row * o_stride,
                            into.l[row] == 0 ? 0 : value_dim, NAN_ANY,
                            "%s merge o, value_dim %d, row %d of %d", table->name, value_dim, row, rows);
            assert_memory_equal(next.m, next_before.m, (size_t)rows * sizeof(float));
            assert_memory_equal(next.l, next_before.l, (size_t)rows * sizeof(float));
            assert_memory_equal(next.o, next_before.o, (size_t)(rows * o_stride) * sizeof(float));
            test_free_all();
        }
}

struct results {
    char *out[MOST_ROWS], *lse[MOST_ROWS];
    float final_m[MOST_ROWS], inverse[MOST_ROWS];
};

static struct results blank_results(int value_dim) {
    struct results results;
    for (int row = 0; row < MOST_ROWS; row++) {
        results.out[row] = test_alloc((size_t)(value_dim + 1) * sizeof(float)); /* one more, to stay unchanged */
        results.lse[row] = test_alloc(2 * sizeof(float));
        results.final_m[row] = results.inverse[row] = 0;
    }
    return results;
}

static float *lse_of(const struct results *results, int row) { return (float *)(void *)results->lse[row]; }

static void expected_finish(struct rapt_state state, int row, int value_dim, int64_t o_stride,
                            const float *sinks, int32_t dtype, struct results *results) {
    struct rapt_reference_state s = row_of(state, row, o_stride);
    float *out = test_floats(value_dim);
    *lse_of(results, row) = s.l == 0 ? -INFINITY : rapt_reference_lse(s.m, s.l);
    if (sinks && s.l != 0)
        rapt_reference_sink(&s, sinks[row], value_dim);
    float inverse = rapt_reference_finish(&s, out, value_dim);
    rapt_reference_store(dtype, out, value_dim, results->out[row]);
    results->final_m[row] = s.l == 0 ? 0 : s.m + 0.0f;
    results->inverse[row] = s.l == 0 ? 0 : inverse;
}

/* The bytes of out, and the next ones. */
static void expect_results(const char *name, const struct results *got, const struct results *expected,
                           int rows, int value_dim, int32_t dtype) {
    for (int row = 0; row < rows; row++) {
        const size_t bytes = (size_t)(value_dim + 1) * sizeof(float);
        if (dtype == RAPT_F32)
            expect_bits((float *)(void *)got->out[row], (float *)(void *)expected->out[row], value_dim, NAN_CANONICAL,
                        "%s finish out, value_dim %d, row %d", name, value_dim, row);
        if (memcmp(got->out[row], expected->out[row], bytes) != 0)
            fail_msg("%s finish out as %d, value_dim %d, row %d", name, dtype, value_dim, row);
        expect_bits(lse_of(got, row), lse_of(expected, row), 1, NAN_CANONICAL, "%s finish lse, row %d", name, row);
        assert_int_equal(bits_of(lse_of(got, row)[1]), 0xffffffffu);
    }
    expect_bits(got->final_m, expected->final_m, rows, NAN_ANY, "%s finish final_m", name);
    expect_bits(got->inverse, expected->inverse, rows, NAN_ANY, "%s finish inverse", name);
}

void check_finish(const struct rapt_table *table) {
    static const int32_t dtypes[] = {RAPT_F32, RAPT_F16, RAPT_BF16};
    static const float sinks[] = {0.0f, 3.5f, -7.25f, -INFINITY, 1e9f, -1e30f, 100.0f, -0.0f};
    struct random random = {7};
    for (int d = 0; d < edge_dim_count; d++)
        for (int turn = 0; turn < 2 * MOST_ROWS; turn++) {
            int value_dim = edge_dims[d], rows = 1 + turn / 2;
            int64_t o_stride = (value_dim + 15) / 16 * 16;
            struct rapt_state state = random_state(&random, rows, o_stride);
            struct rapt_state copy = copied_state(state, rows, o_stride);
            float *sink = test_floats(rows);
            for (int row = 0; row < rows; row++)
                sink[row] = sinks[random_below(&random, 8)];
            struct results got = blank_results(value_dim), expected = blank_results(value_dim);
            bool has_sinks = turn % 2, has_lse = turn % 3 > 0;
            const int32_t dtype = dtypes[random_below(&random, sizeof dtypes / sizeof *dtypes)];
            for (int row = 0; row < rows; row++)
                expected_finish(copy, row, value_dim, o_stride, has_sinks ? sink : NULL, dtype, &expected);
            struct rapt_finish_args args = {state,
                                            rows,
                                            value_dim,
                                            has_sinks ? sink : NULL,
                                            rapt_format_of(dtype),
                                            got.out,
                                            has_lse ? got.lse : NULL,
                                            got.final_m,
                                            got.inverse};
            table->finish(&args);
            for (int row = 0; row < rows; row++) {
                got.final_m[row] += 0.0f;
                if (!has_lse)
                    *lse_of(&got, row) = *lse_of(&expected, row);
            }
            expect_results(table->name, &got, &expected, rows, value_dim, dtype);
            test_free_all();
        }
}

/* m and l of every kind, legal or not, to a state and back. Rows begin misaligned; anything may follow them. */
void check_states(const struct rapt_table *table) {
    static const float maxima_too[] = {1, -0.5f, -INFINITY, NAN, 0x1p-140f, 0x1.fffffep+21f, 8388609.0f, -0.0f};
    static const float sums[] = {0, -0.0f, 0.25f, 3, 1e9f, -1, 0x1p-130f, 0x1p-126f, 0x1.fffffep+127f, INFINITY,
                                 -INFINITY, NAN};
    struct random random = {8};
    for (int d = 0; d < edge_dim_count; d++)
        for (int turn = 0; turn < 12; turn++) {
            const int value_dim = edge_dims[d], rows = 1 + turn % MOST_ROWS;
            const int64_t o_stride = (value_dim + 15) / 16 * 16;
            struct rapt_state got = random_state(&random, rows, o_stride);
            struct rapt_state expected = copied_state(got, rows, o_stride);
            float *in[MOST_ROWS], *out[MOST_ROWS], *stored[MOST_ROWS];
            char *from[MOST_ROWS], *into[MOST_ROWS];
            for (int row = 0; row < rows; row++) {
                in[row] = test_floats(value_dim + 4) + 1;
                out[row] = test_floats(value_dim + 3); /* one more, to stay unchanged */
                stored[row] = test_floats(value_dim + 3);
                from[row] = (char *)in[row];
                into[row] = (char *)out[row];
                for (int i = 0; i < value_dim + 3; i++)
                    in[row][i] = random_chance(&random, 5) ? quick_special(&random) : quick_normal(&random);
                in[row][0] = random_chance(&random, 60) ? maxima[random_below(&random, 13)]
                                                        : maxima_too[random_below(&random, 8)];
                in[row][1] = sums[random_below(&random, 12)];
                struct rapt_reference_state state = row_of(expected, row, o_stride);
                rapt_reference_load_state(&state, in[row], value_dim);
                rapt_reference_store_state(&state, stored[row], value_dim);
                expected.m[row] = state.m;
                expected.l[row] = state.l;
            }
            table->load_states(got, from, rows, value_dim);
            expect_bits(got.m, expected.m, rows, NAN_ANY, "%s load m", table->name);
            expect_bits(got.l, expected.l, rows, NAN_ANY, "%s load l", table->name);
            table->store_states(got, into, rows, value_dim);
            for (int row = 0; row < rows; row++) {
                expect_bits(out[row], stored[row], value_dim + 2, NAN_CANONICAL, "%s store, value_dim %d, row %d of %d",
                            table->name, value_dim, row, rows);
                assert_int_equal(bits_of(out[row][value_dim + 2]), 0xffffffffu);
            }
            test_free_all();
        }
}
