/* SPDX-License-Identifier: MIT
 * `rapt bench`, and the times of `rapt attend`. argv as of command.c. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "command/run.h"
#include "rapt/rapt.h"

/* Numbers are for people; on an emulator they would take minutes and mean nothing. All kernels but the scalar ones have
 * a peak. */
static struct command_result bench(const char *options) {
    char line[256];
    rapt_isa isa;
    assert_int_equal(rapt_isa_chosen(&isa), RAPT_OK);
    if (command_is_emulated() || isa == RAPT_ISA_SCALAR) skip();
    snprintf(line, sizeof line, "$rapt bench --seconds 0 --threads 1 %s", options);
    struct command_result result = command_shell(line);
    if (result.status != 0) fail_msg("%s\nexits %d: %s", line, result.status, result.err);
    return result;
}

static void bench_prints_its_rows(void **state) {
    static const char *const said[] = {"kernels     ", "\nFMA peak ", "\nread peak ", "prefill of 200 tokens, full",
                                       "prefill of 200 tokens, causal", "decode on 200 keys, group 1",
                                       "decode on 200 keys, group 4"};
    (void)state;
    const struct command_result result = bench("--keys 200");
    for (size_t i = 0; i < sizeof said / sizeof said[0]; i++) assert_non_null(strstr(result.out, said[i]));
}

static void bench_prints_chosen_rows(void **state) {
    (void)state;
    const struct command_result result = bench("--filter decode --head-dim 64 --keys 512 --json");
    assert_non_null(strstr(result.out, "\"name\": \"decode on 512 keys, group 4\""));
    assert_non_null(strstr(result.out, "\"head_dim\": 64"));
    assert_null(strstr(result.out, "prefill"));
}

static void bench_refuses(void **state) {
    (void)state;
    expect_error("rapt: the scalar kernels have no peak to be measured against\n", "RAPT_ISA=scalar $rapt bench");
    expect_error("--filter: no row's name contains 'xyzzy'", "$rapt bench --filter xyzzy");
    expect_error("--head-dim: 1025 is outside 1 ... 1024", "$rapt bench --head-dim 1025");
}

/* With a clock whose readings before and after each run the test sets. */
static void attend_tells_the_best_time(void **state) {
    (void)state;
    write_random("x.npy", 2, 1, 1, 5, 8);
#define TIMED "export RAPT_TEST_SECONDS='0 0.5 1 1.25 2 2.75'; $rapt_failing attend --query x.npy --key x.npy " \
              "--value x.npy --out o.npy "
    struct command_result result = expect_success(TIMED);
    assert_non_null(strstr(result.out, "\ntime     500 ms (one run), 1.6e-06 GFLOP/s\n"));
    result = expect_success(TIMED "--repeat 3");
    assert_non_null(strstr(result.out, "\ntime     250 ms (best of 3 runs), 3.2e-06 GFLOP/s\n"));
    result = expect_success(TIMED "--repeat 3 --json");
    assert_non_null(strstr(result.out, "\"best_milliseconds\": 250,"));
    /* Of 25 pairs only those in listed blocks; the last block has a single key. */
    write_npy("b.npy", NPY_INT32, (const int32_t[]){0, 1, 2}, 2, (const int64_t[]){3, 1});
    result = expect_success(TIMED "--key-blocks b.npy --block-size 2,2");
    assert_non_null(strstr(result.out, ", 5.76e-07 GFLOP/s\n"));
    result = expect_success(TIMED "--key-blocks b.npy --block-size 2,2 --causal");
    assert_non_null(strstr(result.out, ", 4.48e-07 GFLOP/s\n"));
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bench_prints_its_rows),
        cmocka_unit_test(bench_prints_chosen_rows),
        cmocka_unit_test(bench_refuses),
        cmocka_unit_test(attend_tells_the_best_time),
    };
    if (argc < 4) return 2;
    command_start(argc > 4 ? argv[4] : "", argv[1], argv[2]);
    int failed = cmocka_run_group_tests_name("command_bench", tests, NULL, NULL);
    command_stop();
    return failed;
}
