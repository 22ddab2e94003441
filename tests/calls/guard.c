/* SPDX-License-Identifier: MIT
 * Not one byte outside the described memory is read or written: every array and the workspace ends, then begins, at a
 * guard page. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "support/problem.h"
#include "support/stored.h"

static const struct rapt_table *tables[RAPT_ISA_COUNT];
static int table_count;
static struct problem_call current; /* batch = 0 if all went well */

static int clear_current(void **state) {
    (void)state;
    current.batch = 0;
    return 0;
}

/* A fault unwinds to the teardown, which says where it was. */
static int report_fault(void **state) {
    (void)state;
    if (current.batch)
        print_error("in: %s\n", problem_text(&current));
    return 0;
}

static void check_both_sides(const struct problem_call *call) {
    current = *call;
    struct problem *expected = problem_expected(call);
    for (int t = 0; t < table_count; t++) {
        for (int k = 0; k < 4; k++) {
            static const size_t distances[] = {0, 1, 3, 32};
            struct problem_layout layout = {.side = k % 2 ? GUARD_BEGIN : GUARD_END,
                                          .distance = k < 2 ? 0 : 4,
                                          .token_major = k == 2};
            struct problem_way way = {.isa = tables[t]->isa,
                                    .threads = 1 + k,
                                    .side = layout.side,
                                    .distance = distances[(call->seed + (uint64_t)k) % 4],
                                    .workspace = 0xff};
            if (k < 2 || call->seed % 2)
                problem_check(expected, &layout, &way);
        }
    }
    problem_free(expected);
    current.batch = 0;
}

static void test_edges(void **state) {
    (void)state;
    /* batch, query heads, KV heads, queries, keys, head_dim, value_dim */
    static const int64_t shapes[][7] = {
        {1, 1, 1, 1, 1, 1, 1}, {2, 4, 2, 3, 17, 3, 1}, {1, 2, 2, 17, 33, 17, 19},
        {1, 6, 1, 1, 257, 100, 130}, {1, 4, 1, 2, 513, 64, 64}, {2, 2, 1, 70, 257, 130, 3},
        {1, 1, 1, 5, 100, 1024, 7}, {1, 1, 1, 49, 40, 5, 1023}, {1, 2, 1, 1, 2100, 16, 5},
        {1, 1, 1, 130, 600, 48, 33}, {1, 8, 1, 1, 1025, 128, 128}, {1, 1, 1, 48, 256, 128, 64},
    };
    static const unsigned features[] = {0, USE_CAUSAL | USE_LSE, USE_EVERYTHING};
    for (size_t s = 0; s < sizeof shapes / sizeof *shapes; s++) {
        for (size_t f = 0; f < 3; f++) {
            const int64_t *n = shapes[s];
            struct problem_call call = {n[0], n[1], n[2], n[3], n[4], n[5], n[6], features[f], DATA_NORMAL,
                                        RAPT_ORIGIN_BOTTOM_RIGHT, (int32_t)(1 + (s + f) % 4), s * 3 + f, 0};
            check_both_sides(&call);
        }
    }
}

/* Keys and values of each type; types without blocks have dims that fill no vector; tiles of all kinds. */
static void test_stored(void **state) {
    static const int64_t queries[] = {1, 5, 30, 70};
    (void)state;
    for (int format = RAPT_FORMAT_F32 + 1; format < RAPT_FORMAT_COUNT; format++)
        for (uint64_t seed = 0; seed < 8 && stored_is_key_value(format); seed++) {
            const bool is_odd = rapt_format_info(format)->elements == 1;
            const struct problem_call call = {.batch = 1,
                                              .query_heads = 1,
                                              .kv_heads = 1,
                                              .query_length = queries[seed % 4],
                                              .kv_length = seed % 4 == 2 ? 260 : 37,
                                              .head_dim = is_odd ? 35 + (int64_t)seed : 64,
                                              .value_dim = is_odd ? 45 - (int64_t)seed : 32,
                                              .seed = seed,
                                              .key_format = format,
                                              .value_format = format,
                                              .key_scales = seed % 2,
                                              .value_scales = seed % 2};
            check_both_sides(&call);
        }
}

/* Windows that end before a tile's last queries: those visit nothing past the keys. */
static void test_window_beyond_keys(void **state) {
    (void)state;
    for (uint64_t seed = 0; seed < 6; seed++) {
        struct problem_call call = {1, 1, 1, 340, 20, 3, 1, USE_WINDOW, DATA_NORMAL, RAPT_ORIGIN_TOP_LEFT,
                                    RAPT_WEIGHTS_NONE, seed, 0};
        check_both_sides(&call);
    }
}

static void test_random_calls(void **state) {
    (void)state;
    for (int64_t seed = scaled_work(60); seed > 0; seed--) {
        const struct problem_call call = random_call((uint64_t)seed, 1000000);
        check_both_sides(&call);
    }
}

static void test_order2(void **state) {
    (void)state;
    table_count = tables_of(RAPT_NUMERICS_ORDER_2, tables);
    for (int64_t seed = table_count ? scaled_work(60) : 0; seed > 0; seed--) {
        const struct problem_call call = random_call_of(RAPT_NUMERICS_ORDER_2, (uint64_t)seed, 1000000);
        check_both_sides(&call);
    }
}

/* Tests the guard: what it should catch shows. */
static void test_canaries_show(void **state) {
    (void)state;
    for (int side = GUARD_END; side <= GUARD_BEGIN; side++) {
        struct guarded memory = guarded_new(100, (enum guard_side)side, 5, 0);
        assert_true(guarded_is_clean(&memory));
        memory.data[-1 + 101 * side] = 0; /* on the side away from the guard page */
        assert_false(guarded_is_clean(&memory));
        guarded_free(&memory);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_canaries_show),
        cmocka_unit_test_setup_teardown(test_edges, clear_current, report_fault),
        cmocka_unit_test_setup_teardown(test_stored, clear_current, report_fault),
        cmocka_unit_test_setup_teardown(test_window_beyond_keys, clear_current, report_fault),
        cmocka_unit_test_setup_teardown(test_random_calls, clear_current, report_fault),
        cmocka_unit_test_setup_teardown(test_order2, clear_current, report_fault), /* last: it keeps only its tables */
    };
    table_count = machine_tables(tables);
    return cmocka_run_group_tests_name("guard", tests, NULL, NULL);
}
