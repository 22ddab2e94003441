/* SPDX-License-Identifier: MIT
 * The slots on arrays: exponentials, tanhs, log2s, export_row, all_finite. */
#include <math.h>

#include "kernels/check.h"
#include "reference/reference.h"
#include "support/cmocka_all.h"

static const int64_t counts[] = {1,  2,  3,  4,  5,  7,   8,   9,   15,  16,  17,  31,
                                 32, 33, 63, 64, 65, 127, 128, 129, 255, 300, 1000};
enum { COUNTS = sizeof counts / sizeof *counts, AFTER = 3 };

/* Calls on misaligned floats, in place or not, and checks past the end. */
static void expect_elementwise(const char *name, const char *slot, const float *in, const float *expected,
                               int64_t count, enum nan_rule rule,
                               void (*call)(const float *in, float *out, int64_t count, const void *context),
                               const void *context) {
    for (int in_place = 0; in_place < 2; in_place++) {
        float *out = test_floats(count + AFTER + 1) + 1;
        if (in_place)
            memcpy(out, in, (size_t)count * sizeof(float));
        call(in_place ? out : in, out, count, context);
        expect_bits(out, expected, count, rule, "%s %s of %lld%s", name, slot, (long long)count,
                    in_place ? " in place" : "");
        for (int64_t i = count; i < count + AFTER; i++)
            assert_int_equal(bits_of(out[i]), 0xffffffffu);
    }
}

struct exponentials_context {
    const struct rapt_table *table;
    float m;
};

static void call_exponentials(const float *in, float *out, int64_t count, const void *context) {
    const struct exponentials_context *c = context;
    c->table->exponentials(in, out, count, c->m);
}

void check_exponentials(const struct rapt_table *table) {
    static const float maxima[] = {0,        2,         -2,       126,      -126,     128,
                                   4194300,  4194302,   4194304,  -4194304, -4194302, 8388608,
                                   0x1p100f, -0x1p100f, INFINITY, -INFINITY};
    struct random random = {8};
    for (int m = 0; m < 16; m++)
        for (int c = 0; c < COUNTS; c++) {
            struct exponentials_context context = {table, maxima[m]};
            float *t = test_floats(counts[c]), *expected = test_floats(counts[c]);
            for (int64_t i = 0; i < counts[c]; i++) {
                t[i] = random_chance(&random, 20) ? quick_special(&random)
                                                  : context.m - fabsf(quick_normal(&random) * 40);
                t[i] = t[i] > context.m ? context.m : t[i];
                expected[i] = rapt_reference_exp2(t[i], context.m);
            }
            expect_elementwise(table->name, "exponentials", t, expected, counts[c], NAN_ANY,
                               call_exponentials, &context);
            test_free_all();
        }
}

static void call_tanhs(const float *in, float *out, int64_t count, const void *table) {
    ((const struct rapt_table *)table)->tanhs(in, out, count);
}

static void call_log2s(const float *in, float *out, int64_t count, const void *table) {
    ((const struct rapt_table *)table)->log2s(in, out, count);
}

/* The sweep covers values; this covers sizes, and what the sweep omits. */
void check_elementary(const struct rapt_table *table) {
    struct random random = {9};
    for (int turn = 0; turn < 4 * COUNTS; turn++) {
        int64_t count = counts[turn % COUNTS];
        float *x = test_drawn(&random, count, quick_special), *expected = test_floats(count);
        for (int64_t i = 0; i < count; i++)
            expected[i] = rapt_reference_tanh(x[i]);
        expect_elementwise(table->name, "tanhs", x, expected, count, NAN_ANY, call_tanhs, table);
        for (int64_t i = 0; i < count; i++) {
            x[i] = fabsf(x[i]) < 0x1p-126f ? 1.0f : fabsf(x[i]);
            if (i % 8 == 7) /* around sqrt(2) and its half, where the exponent is split off */
                x[i] = float_of((i % 16 == 7 ? 0x3f3504f3u : 0x3fb504f3u) + (uint32_t)(i / 16 % 3) - 1);
            expected[i] = rapt_reference_log2(x[i]);
        }
        expect_elementwise(table->name, "log2s", x, expected, count, NAN_ANY, call_log2s, table);
        test_free_all();
    }
}

struct export_context {
    const struct rapt_table *table;
    float factor;
};

static void call_export_row(const float *in, float *out, int64_t count, const void *context) {
    const struct export_context *c = context;
    c->table->export_row(in, out, count, c->factor);
}

void check_export_row(const struct rapt_table *table) {
    static const float factors[] = {1.0f, 0.0f, -1.0f, 0x1.62e43p-1f, 1e-30f, INFINITY, NAN};
    struct random random = {10};
    for (int f = 0; f < 7; f++)
        for (int c = 0; c < COUNTS; c++) {
            struct export_context context = {table, factors[f]};
            float *x = test_drawn(&random, counts[c], quick_special), *expected = test_floats(counts[c]);
            for (int64_t i = 0; i < counts[c]; i++)
                expected[i] = rapt_reference_export(x[i] * context.factor);
            expect_elementwise(table->name, "export_row", x, expected, counts[c], NAN_CANONICAL,
                               call_export_row, &context);
            test_free_all();
        }
}

static void check_one_bad(const struct rapt_table *table, const struct strided *rows, int64_t row_count,
                          int dim, struct random *random) {
    static const uint32_t bad[] = {0x7f800000u, 0xff800000u, 0x7fc00000u, 0xff800001u};
    int64_t row = random_below(random, row_count), d = random_below(random, dim);
    float *element = (float *)(uintptr_t)(rows->first + row * rows->stride_bytes) + d;
    float before = *element;
    *element = float_of(bad[random_below(random, 4)]);
    if (table->all_finite(rows->first, rows->stride_bytes, row_count, dim))
        fail_msg("%s all_finite: %lld rows of %d: row %lld, element %lld is not finite", table->name,
                 (long long)row_count, dim, (long long)row, (long long)d);
    *element = before;
}

void check_all_finite(const struct rapt_table *table) {
    static const int64_t row_counts[] = {1, 2, 3, 8, 33};
    struct random random = {11};
    for (int d = 0; d < edge_dim_count; d++)
        for (int r = 0; r < 5; r++)
            for (int kind = 0; kind < STRIDE_KINDS; kind++) {
                struct strided rows = strided_rows(&random, row_counts[r], edge_dims[d], kind, quick_finite);
                assert_true(table->all_finite(rows.first, rows.stride_bytes, row_counts[r], edge_dims[d]));
                for (int n = 0; n < 5; n++)
                    check_one_bad(table, &rows, row_counts[r], edge_dims[d], &random);
                test_free_all();
            }
}
