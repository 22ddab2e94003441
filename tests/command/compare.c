/* SPDX-License-Identifier: MIT
 * `rapt compare`, and `rapt attend --expect`, which counts alike. argv as of command.c. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "command/run.h"

enum { B = 2, H = 4, SQ = 5, SK = 9, D = 8 };
#define ATTEND "$rapt attend --query q.npy --key k.npy --value v.npy --out o.npy "

static void comparing(void **state) {
    static const float a[] = {1, 2, NAN, 4, 5, INFINITY}, b[] = {1, 2, NAN, 4, 5.5f, INFINITY};
    static const double wide[] = {1, 2, NAN, 4, 5, INFINITY};
    const int64_t shape[] = {2, 3};
    (void)state;
    write_npy("a.npy", NPY_FLOAT32, a, 2, shape);
    write_npy("b.npy", NPY_FLOAT32, b, 2, shape);
    write_npy("wide.npy", NPY_FLOAT64, wide, 2, shape);
    write_npy("flat.npy", NPY_FLOAT32, a, 1, (const int64_t[]){6});
    expect_success("$rapt compare a.npy wide.npy");
    struct command_result result = command_shell("$rapt compare a.npy b.npy");
    assert_int_equal(result.status, 1);
    assert_non_null(strstr(result.out, "largest error 0.5"));
    assert_non_null(strstr(result.out, "\nat       [1, 1]\n"));
    expect_success("$rapt compare a.npy b.npy --tolerance 0.5");
    /* A number where NaN is expected, and vice versa. */
    static const float c[] = {1, NAN, NAN, 4, 5, INFINITY};
    write_npy("c.npy", NPY_FLOAT32, c, 2, shape);
    result = command_shell("$rapt compare a.npy c.npy");
    assert_int_equal(result.status, 1);
    assert_non_null(strstr(result.out, "NaN in one file only, at [0, 1]"));
    assert_int_equal(command_shell("$rapt compare c.npy a.npy --tolerance 1e30").status, 1);
    result = command_shell("$rapt compare --json a.npy b.npy");
    assert_int_equal(result.status, 1);
    assert_non_null(strstr(result.out, "\"at\": [1, 1]"));
    result = command_shell("$rapt compare a.npy --quiet b.npy");
    assert_int_equal(result.status, 1);
    assert_string_equal(result.out, "");
    expect_error("flat.npy [6] does not fit a.npy [2, 3]", "$rapt compare a.npy flat.npy");
    expect_error("compare takes two files, not 1", "$rapt compare a.npy");
    expect_error("--tolerance: nan is not 0 or more", "$rapt compare a.npy b.npy --tolerance nan");
    expect_error("--json does not go with --quiet", "$rapt compare a.npy a.npy --json --quiet");
}

/* Tolerances are not rounded to float32: the next one is above 0.1. */
static void comparing_doubles(void **state) {
    static const double tenth[] = {0.1000000001, 0}, zero[] = {0, 0}, infinite[] = {INFINITY, 1};
    (void)state;
    write_npy("tenth.npy", NPY_FLOAT64, tenth, 1, (const int64_t[]){2});
    write_npy("zero.npy", NPY_FLOAT64, zero, 1, (const int64_t[]){2});
    write_npy("infinite.npy", NPY_FLOAT64, infinite, 1, (const int64_t[]){2});
    assert_int_equal(command_shell("$rapt compare tenth.npy zero.npy --tolerance 0.1").status, 1);
    expect_success("$rapt compare tenth.npy zero.npy --tolerance 0.1000000001");
    struct command_result result = command_shell("$rapt compare zero.npy infinite.npy");
    assert_int_equal(result.status, 1);
    assert_non_null(strstr(result.out, "largest error inf, inf of its row's maximum"));
}

/* Relative errors are those of the numbers beside an infinity. */
static void comparing_masked_rows(void **state) {
    static const double a[] = {4, -INFINITY, 2}, b[] = {4, -INFINITY, 3};
    (void)state;
    write_npy("a.npy", NPY_FLOAT64, a, 1, (const int64_t[]){3});
    write_npy("b.npy", NPY_FLOAT64, b, 1, (const int64_t[]){3});
    const struct command_result result = command_shell("$rapt compare b.npy a.npy");
    assert_int_equal(result.status, 1);
    assert_non_null(strstr(result.out, "largest error 1, 0.25 of its row's maximum"));
}

/* As doubles they would be equal. */
static void comparing_integers(void **state) {
    static const int64_t a[] = {INT64_C(1) << 53, 5}, b[] = {(INT64_C(1) << 53) + 1, 5};
    static const int64_t least[] = {INT64_MIN, 5}, most[] = {INT64_MAX, 5};
    const int64_t shape[] = {2};
    (void)state;
    write_npy("a.npy", NPY_INT64, a, 1, shape);
    write_npy("b.npy", NPY_INT64, b, 1, shape);
    write_npy("least.npy", NPY_INT64, least, 1, shape);
    write_npy("most.npy", NPY_INT64, most, 1, shape);
    struct command_result result = command_shell("$rapt compare a.npy b.npy");
    assert_int_equal(result.status, 1);
    assert_non_null(strstr(result.out, "largest error 1, "));
    assert_non_null(strstr(result.out, "\nat       [0]\n"));
    assert_int_equal(command_shell("$rapt compare b.npy a.npy").status, 1);
    expect_success("$rapt compare a.npy b.npy --tolerance 1");
    expect_success("$rapt compare b.npy b.npy");
    write_npy("double.npy", NPY_FLOAT64, (const double[]){0x1p53, 5}, 1, shape);
    expect_success("$rapt compare a.npy double.npy && $rapt compare double.npy a.npy");
    assert_int_equal(command_shell("$rapt compare b.npy double.npy").status, 1);
    assert_int_equal(command_shell("$rapt compare double.npy b.npy").status, 1);
    result = command_shell("$rapt compare least.npy most.npy");
    assert_int_equal(result.status, 1);
    assert_non_null(strstr(result.out, "largest error 1.8e+19, "));
}

/* No tolerance accepts NaN, and no infinity before or after it hides its place. */
static void comparing_nan(void **state) {
    static const float a[] = {1, NAN, INFINITY, NAN, 5, 6}, b[] = {1, NAN, 3, 4, NAN, 6};
    const int64_t shape[] = {2, 3};
    (void)state;
    write_npy("a.npy", NPY_FLOAT32, a, 2, shape);
    write_npy("b.npy", NPY_FLOAT32, b, 2, shape);
    static const char *const lines[] = {"$rapt compare a.npy b.npy", "$rapt compare b.npy a.npy --tolerance inf"};
    for (int i = 0; i < 2; i++) {
        struct command_result result = command_shell(lines[i]);
        assert_int_equal(result.status, 1);
        assert_string_equal(result.out, "differ   NaN in one file only, at [1, 0]\n");
    }
    struct command_result result = command_shell("$rapt compare --json --tolerance inf a.npy b.npy");
    assert_int_equal(result.status, 1);
    assert_non_null(strstr(result.out, "\"nan_on_one_side\": true"));
    assert_non_null(strstr(result.out, "\"at\": [1, 0]"));
    assert_int_equal(command_shell("$rapt compare --quiet --tolerance inf a.npy b.npy").status, 1);
    write_npy("n.npy", NPY_FLOAT32, (const float[B * H * SQ * D]){NAN}, 4, (const int64_t[]){B, H, SQ, D});
    result = command_shell(ATTEND "--expect n.npy --tolerance inf");
    assert_int_equal(result.status, 1);
    assert_non_null(strstr(result.out, "expect   NaN on one side only; EXCEEDS inf\n"));
}

/* A row with a NaN has NaN weights where the query sees keys, and 0 elsewhere. */
static void checking_nan(void **state) {
    static const float query[] = {1, NAN}, keys[] = {1, 2};
    (void)state;
    write_npy("nq.npy", NPY_FLOAT32, query, 2, (const int64_t[]){2, 1});
    write_npy("nk.npy", NPY_FLOAT32, keys, 2, (const int64_t[]){2, 1});
    expect_success("$rapt attend --query nq.npy --key nk.npy --value nk.npy --out no.npy --lse nl.npy --attention-out "
                   "nw.npy --window 0,0 --check --tolerance 1e-6");
    write_npy("nw_expected.npy", NPY_FLOAT32, (const float[]){1, 0, 0, NAN}, 2, (const int64_t[]){2, 2});
    expect_success("$rapt compare nw.npy nw_expected.npy");
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(comparing),
        cmocka_unit_test(comparing_doubles),
        cmocka_unit_test(comparing_masked_rows),
        cmocka_unit_test(comparing_integers),
        cmocka_unit_test(comparing_nan),
        cmocka_unit_test(checking_nan),
    };
    if (argc < 4) return 2;
    command_start(argc > 4 ? argv[4] : "", argv[1], argv[2]);
    write_random("q.npy", 4, B, H, SQ, D);
    write_random("k.npy", 4, B, H, SK, D);
    write_random("v.npy", 4, B, H, SK, D);
    int failed = cmocka_run_group_tests_name("command_compare", tests, NULL, NULL);
    command_stop();
    return failed;
}
