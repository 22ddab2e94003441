/* SPDX-License-Identifier: MIT
 * Bugs that other attention libraries had with stored types, groups of heads, pages and softcap. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "support/problem.h"
#include "support/small.h"
#include "support/stored.h"

static const struct rapt_table *tables[RAPT_ISA_COUNT];
static int table_count;

static const int formats[] = {RAPT_FORMAT_F32,  RAPT_FORMAT_F16,     RAPT_FORMAT_BF16, RAPT_FORMAT_Q8_0,
                              RAPT_FORMAT_Q4_0, RAPT_FORMAT_F8_E4M3, RAPT_FORMAT_I8};
enum { FORMATS = sizeof formats / sizeof *formats };

static struct problem_call call_of(int format, int64_t group, int64_t queries, int64_t keys, unsigned use) {
    return (struct problem_call){.batch = 2,
                                 .query_heads = group,
                                 .kv_heads = 1,
                                 .query_length = queries,
                                 .kv_length = keys,
                                 .head_dim = 64,
                                 .value_dim = 64,
                                 .use = use | USE_LSE,
                                 .data = DATA_NORMAL,
                                 .origin = RAPT_ORIGIN_BOTTOM_RIGHT,
                                 .seed = (uint64_t)(group + queries),
                                 .key_format = format,
                                 .value_format = format,
                                 .key_scales = stored_may_scale(format),
                                 .value_scales = stored_may_scale(format)};
}

/* Whether the specification's result is finite. */
static bool is_finite(const struct problem *expected) {
    const float *out = (const float *)(const void *)expected->arrays[ARRAY_OUT].memory.data;
    bool finite = true;
    for (size_t i = 0; i < expected->arrays[ARRAY_OUT].memory.bytes / sizeof *out; i++)
        finite = finite && isfinite(out[i]);
    return finite;
}

/* This result, in this layout, on every table. */
static void expect_result(const struct problem *expected, const struct problem_layout *layout) {
    const struct problem_call *call = &expected->call;
    struct problem *plain = problem_new(call);
    for (int t = 0; t < table_count; t++) {
        struct problem *problem = problem_laid_out(plain, layout);
        rapt_message message = {{0}};
        problem->desc.isa = (int32_t)tables[t]->isa;
        if (rapt_attention(&problem->desc, NULL, &message) != RAPT_OK || !problem_same(problem, expected))
            fail_msg("%s: %s: %s", tables[t]->name, problem_text(call), message.text);
        problem_free(problem);
    }
    problem_free(plain);
}

/* The specification's result. */
static void expect_right(const struct problem_call *call, const struct problem_layout *layout) {
    struct problem *expected = problem_expected(call);
    expect_result(expected, layout);
    problem_free(expected);
}

/* A group of 32 query heads refused; NaN for grouped heads. */
static void test_groups(void **state) {
    static const int64_t groups[] = {1, 2, 3, 4, 5, 7, 8, 12, 16, 17, 32, 64};
    static const struct problem_layout layouts[] = {{0}, {.page_kind = RAPT_PAGES_DENSE, .page_tokens = 16}};
    (void)state;
    for (size_t g = 0; g < sizeof groups / sizeof *groups; g++)
        for (int f = 0; f < FORMATS; f++) {
            const struct problem_call call = call_of(formats[f], groups[g], 1 + (f + (int64_t)g) % 3, 70, 0);
            struct problem *expected = problem_expected(&call);
            assert_true(is_finite(expected));
            expect_result(expected, &layouts[(f + (int)g) % 2]);
            problem_free(expected);
        }
}

/* Pages of 100 or 256 tokens refused. */
static void test_page_sizes(void **state) {
    static const int64_t sizes[] = {1, 2, 3, 5, 16, 31, 64, 100, 128, 255, 256, 257, 1000};
    (void)state;
    for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++)
        for (int32_t kind = RAPT_PAGES_DENSE; kind <= RAPT_PAGES_LISTED; kind++) {
            if (scaled_work(100) < 100 && (int32_t)s % 2 == kind - RAPT_PAGES_DENSE)
                continue;
            const struct problem_layout layout = {.page_kind = kind, .page_tokens = sizes[s]};
            const struct problem_call decode = call_of(formats[s % FORMATS], 4, 1, 530, 0);
            const struct problem_call prefill = call_of(formats[(s + 3) % FORMATS], 2, 40, 300, USE_CAUSAL);
            expect_right(&decode, &layout);
            expect_right(&prefill, &layout);
        }
}

/* Softcap silently ignored: by one kind of tile, or for one type. */
static void test_softcap(void **state) {
    static const int64_t queries[] = {1, 7, 60};
    static const struct problem_layout plain = {0};
    (void)state;
    for (int f = 0; f < FORMATS; f++)
        for (int q = 0; q < 3; q++) {
            const struct problem_call call = call_of(formats[f], 2, queries[q], 90, USE_SOFTCAP);
            struct problem *with = problem_new(&call), *without = problem_new(&call);
            expect_right(&call, &plain);
            assert_true(with->desc.softcap > 0);
            without->desc.softcap = 0;
            assert_int_equal(rapt_attention(&with->desc, NULL, NULL), RAPT_OK);
            assert_int_equal(rapt_attention(&without->desc, NULL, NULL), RAPT_OK);
            assert_int_not_equal(problem_hash(0, with), problem_hash(0, without));
            problem_free(with);
            problem_free(without);
        }
}

/* ---- float8 */

/* Sign, exponent, fraction; other libraries lost those with exponent 0. */
static double number_of(int code, int exponent_bits) {
    const int fraction_bits = 7 - exponent_bits, bias = (1 << (exponent_bits - 1)) - 1;
    const int exponent = code >> fraction_bits & ((1 << exponent_bits) - 1);
    const int fraction = code & ((1 << fraction_bits) - 1);
    const double magnitude = exponent ? ldexp(fraction + (1 << fraction_bits), exponent - bias - fraction_bits)
                                      : ldexp(fraction, 1 - bias - fraction_bits);
    return code & 128 ? -magnitude : magnitude;
}

/* float8 subnormals read as zero. One key: its value is the result. */
static void test_float8_numbers(void **state) {
    enum { CODES = 256 };
    static unsigned char values[CODES];
    static float query[4], key[4], out[CODES];
    (void)state;
    for (int i = 0; i < CODES; i++)
        values[i] = (unsigned char)i;
    for (int t = 0; t < 2 * table_count; t++) {
        const bool is_e4m3 = t % 2;
        rapt_attention_desc d = RAPT_ATTENTION_DESC_INIT;
        d.batch = d.query_heads = d.kv_heads = d.query_length = d.kv_length = 1;
        d.head_dim = 4;
        d.value_dim = CODES;
        d.isa = (int32_t)tables[t / 2]->isa;
        d.query = rapt_input_bhsd(query, 1, 1, 1, 4);
        d.key = rapt_input_bhsd(key, 1, 1, 1, 4);
        d.value = rapt_tensor_bhsd(values, is_e4m3 ? RAPT_F8_E4M3 : RAPT_F8_E5M2, 1, 1, 1, CODES);
        d.out = rapt_output_bhsd(out, 1, 1, 1, CODES);
        assert_int_equal(rapt_attention(&d, NULL, NULL), RAPT_OK);
        for (int code = 0; code < CODES; code++) {
            const bool is_number = is_e4m3 ? (code & 127) < 127 : (code & 127) < 124;
            if (is_number && (double)out[code] != number_of(code, is_e4m3 ? 4 : 5))
                fail_msg("%s: code %02x gives %g", tables[t / 2]->name, (unsigned)code, (double)out[code]);
        }
    }
}

/* A process aborted by an f16 hint: any of the three types, in each of five places. */
static void test_halves_everywhere(void **state) {
    static const int32_t dtypes[] = {RAPT_F32, RAPT_F16, RAPT_BF16};
    (void)state;
    for (int t = 0; t < table_count; t++)
        for (int mix = 0; mix < 3 * 3 * 3 * 3 * 3; mix++) {
            struct small s = small_new(3, 9);
            float *bias = test_floats(BATCH * HEADS * 3 * 9);
            s.desc.query = rapt_tensor_bhsd(s.query, dtypes[mix % 3], BATCH, HEADS, 3, DIM);
            s.desc.key = rapt_tensor_bhsd(s.key, dtypes[mix / 3 % 3], BATCH, KV_HEADS, 9, DIM);
            s.desc.value = rapt_tensor_bhsd(s.value, dtypes[mix / 9 % 3], BATCH, KV_HEADS, 9, DIM);
            s.desc.bias = rapt_tensor_bhsd(bias, dtypes[mix / 27 % 3], BATCH, HEADS, 3, 9);
            s.desc.out = rapt_tensor_bhsd(s.out, dtypes[mix / 81], BATCH, HEADS, 3, DIM);
            small_run(&s, tables[t]->isa);
            test_free_all();
        }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_groups),         cmocka_unit_test(test_page_sizes),
        cmocka_unit_test(test_softcap),        cmocka_unit_test(test_float8_numbers),
        cmocka_unit_test(test_halves_everywhere),
    };
    table_count = machine_tables(tables);
    return cmocka_run_group_tests_name("peers_caches", tests, NULL, NULL);
}
