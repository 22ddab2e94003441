/* SPDX-License-Identifier: MIT
 * What no result may depend on is NaN (gaps between rows, queries and keys past their lengths, keys and values that
 * nobody sees, biases of excluded pairs, the workspace); what no call may write is a canary. Every layout gives the
 * bits of the plain one. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "support/problem.h"

static const struct rapt_table *tables[RAPT_ISA_COUNT];
static int table_count;

static void check_layouts(const struct problem_call *call) {
    const struct problem_layout layouts[] = {
        {.padding = 0, .poison = true},
        {.padding = 1, .poison = true, .token_major = true},
        {.padding = 5, .poison = true, .reversed = true},
        {.seed = call->seed + 1, .poison = true},
        {.padding = 16, .poison = false, .token_major = true, .reversed = true},
    };
    static const unsigned char contents[] = {0xff, 0x00, 0x7f};
    struct problem *expected = problem_expected(call);
    for (int t = 0; t < table_count; t++) {
        for (size_t k = 0; k < sizeof layouts / sizeof *layouts; k++) {
            struct problem_way way = {.isa = tables[t]->isa,
                                    .threads = 1 + (int)(call->seed % 3),
                                    .workspace = contents[(call->seed + k) % 3]};
            problem_check(expected, &layouts[k], &way);
        }
    }
    problem_free(expected);
}

static void test_random_calls(void **state) {
    (void)state;
    for (int64_t seed = scaled_work(60); seed > 0; seed--) {
        const struct problem_call call = random_call((uint64_t)seed, 1000000);
        check_layouts(&call);
    }
}

static void test_order2(void **state) {
    (void)state;
    table_count = tables_of(RAPT_NUMERICS_ORDER_2, tables);
    for (int64_t seed = table_count ? scaled_work(60) : 0; seed > 0; seed--) {
        const struct problem_call call = random_call_of(RAPT_NUMERICS_ORDER_2, (uint64_t)seed, 1000000);
        check_layouts(&call);
    }
}

/* Sizes at which blocks and chunks are skipped, cut and shared. */
static void test_long_calls(void **state) {
    (void)state;
    static const unsigned features[] = {
        USE_KV_LENGTHS | USE_QUERY_LENGTHS | USE_LSE,
        USE_CAUSAL | USE_KEY_POSITION,
        USE_WINDOW | USE_CAUSAL | USE_KV_LENGTHS,
        USE_MASK | USE_LSE,
        USE_BIAS | USE_MASK | USE_FILL,
        USE_EVERYTHING,
    };
    for (size_t f = 0; f < sizeof features / sizeof *features; f++) {
        struct problem_call prefill = {2, 2, 1, 20 + scaled_work(180), 900, 40, 24, features[f], DATA_NORMAL,
                                       RAPT_ORIGIN_BOTTOM_RIGHT, RAPT_WEIGHTS_MASKED, f, 0};
        struct problem_call decode = {1, 4, 2, 1, 4700, 33, 20, features[f], DATA_NORMAL,
                                      RAPT_ORIGIN_BOTTOM_RIGHT, RAPT_WEIGHTS_SOFTMAX, f, 0};
        check_layouts(&prefill);
        check_layouts(&decode);
    }
}

/* The poison works: it shows if read where it matters. */
static void test_poison_shows(void **state) {
    (void)state;
    struct problem_call call = {.batch = 1, .query_heads = 1, .kv_heads = 1, .query_length = 4, .kv_length = 40,
                              .head_dim = 8, .value_dim = 8, .use = USE_KV_LENGTHS, .seed = 1};
    struct problem *expected = problem_expected(&call);
    struct problem_layout layout = {.padding = 3, .poison = true};
    struct problem *problem = problem_laid_out(expected, &layout);
    problem->desc.kv_lengths.data = NULL; /* all 40 keys */
    problem->desc.kv_lengths.index_bytes = 0;
    struct problem_way way = {.isa = RAPT_ISA_SCALAR};
    problem_run(problem, &way);
    print_message("# expected to differ:\n");
    assert_false(problem_same(problem, expected));
    ((float *)problem->desc.out.data)[8] = 0; /* the gap after row 0 */
    assert_false(problem_is_clean(problem));
    problem_free(problem);
    problem_free(expected);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_poison_shows),
        cmocka_unit_test(test_random_calls),
        cmocka_unit_test(test_long_calls),
        cmocka_unit_test(test_order2), /* last: it keeps only its tables */
    };
    table_count = machine_tables(tables);
    return cmocka_run_group_tests_name("poison", tests, NULL, NULL);
}
