/* SPDX-License-Identifier: MIT
 * RAPT_ISA. The library reads it once, so each case has a process of its own. */
#define _POSIX_C_SOURCE 200809L

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "dispatch.h"
#include "isa.h"

/* What question() gives in a child with RAPT_ISA = text; NULL = not set. */
static int ask(const char *text, int (*question)(void)) {
    int status = 0;
    const pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        if (text)
            setenv("RAPT_ISA", text, 1);
        else
            unsetenv("RAPT_ISA");
        _exit(question());
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    return WEXITSTATUS(status);
}

static int chosen_status(void) {
    rapt_isa isa;
    return (int)rapt_isa_chosen(&isa);
}

static int chosen_isa(void) {
    rapt_isa isa = RAPT_ISA_AUTO;
    return rapt_isa_chosen(&isa) == RAPT_OK ? (int)isa : RAPT_ISA_COUNT;
}

static int isa_of_dispatch(rapt_isa wanted) {
    const struct rapt_table *kernels;
    return rapt_dispatch(wanted, &kernels, NULL) == RAPT_OK ? (int)kernels->isa : RAPT_ISA_COUNT;
}

static int dispatched_auto(void) { return isa_of_dispatch(RAPT_ISA_AUTO); }
static int dispatched_scalar(void) { return isa_of_dispatch(RAPT_ISA_SCALAR); }

static int set_again(void) {
    const int before = chosen_isa();
    setenv("RAPT_ISA", "rubbish", 1);
    return before == chosen_isa() ? before : RAPT_ISA_COUNT;
}

static int message_names_value(void) {
    rapt_message message;
    const struct rapt_table *kernels;
    rapt_dispatch(RAPT_ISA_AUTO, &kernels, &message);
    return strstr(message.text, "RAPT_ISA = rubbish ") != NULL;
}

static void test_unset_and_auto(void **state) {
    (void)state;
    const int best = ask(NULL, chosen_isa);
    assert_in_range(best, RAPT_ISA_SCALAR, RAPT_ISA_COUNT - 1);
    assert_int_equal(ask("", chosen_isa), best);
    assert_int_equal(ask("auto", chosen_isa), best);
    assert_int_equal(ask(NULL, dispatched_auto), best);
}

static void test_rubbish(void **state) {
    (void)state;
    static const char *const rubbish[] = {"rubbish", "AVX2", "avx", "avx2 ",      " avx2",
                                          "avx5121", "0",    "1",   "scalar,avx2"};
    for (size_t i = 0; i < sizeof rubbish / sizeof *rubbish; i++)
        assert_int_equal(ask(rubbish[i], chosen_status), RAPT_INVALID_ENVIRONMENT);
    assert_true(ask("rubbish", message_names_value));
    assert_int_equal(ask("rubbish", dispatched_auto), RAPT_ISA_COUNT);
    assert_int_equal(ask("rubbish", dispatched_scalar), RAPT_ISA_SCALAR);
}

static void test_each_isa(void **state) {
    (void)state;
    for (int isa = RAPT_ISA_SCALAR; isa < RAPT_ISA_COUNT; isa++) {
        const char *name = rapt_isa_name((rapt_isa)isa);
        if (rapt_isa_available((rapt_isa)isa)) {
            assert_int_equal(ask(name, chosen_isa), isa);
            assert_int_equal(ask(name, dispatched_auto), isa);
            assert_int_equal(ask(name, dispatched_scalar), RAPT_ISA_SCALAR);
        } else {
            assert_int_equal(ask(name, chosen_status), RAPT_UNSUPPORTED_ISA);
        }
    }
}

static void test_read_once(void **state) {
    (void)state;
    assert_int_equal(ask("scalar", set_again), RAPT_ISA_SCALAR);
}

static void test_feature_names(void **state) {
    (void)state;
    char whole[512], cut[4] = "xxx";
    const size_t length = rapt_cpu_features(whole, sizeof whole);
    assert_int_equal(length, strlen(whole));
    assert_int_equal(rapt_cpu_features(NULL, 0), length);
    assert_int_equal(rapt_cpu_features(cut, sizeof cut), length);
    assert_memory_equal(cut, whole, strlen(cut));
    assert_int_equal(strlen(cut), length < 3 ? length : 3);
    assert_int_equal(rapt_isa_available(RAPT_ISA_AVX2) != 0,
                     rapt_table_of(RAPT_ISA_AVX2) && strstr(whole, "avx2") && strstr(whole, "fma"));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_unset_and_auto), cmocka_unit_test(test_rubbish),
        cmocka_unit_test(test_each_isa),       cmocka_unit_test(test_read_once),
        cmocka_unit_test(test_feature_names),
    };
    return cmocka_run_group_tests_name("environment", tests, NULL, NULL);
}
