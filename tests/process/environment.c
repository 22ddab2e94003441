/* SPDX-License-Identifier: MIT
 * RAPT_ISA. The library reads it once, so each case has its own process. */
#define _DEFAULT_SOURCE

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "dispatch.h"
#include "isa.h"
#include "support/support.h"

#ifdef __linux__
#include <fcntl.h>
#include <sys/auxv.h>
#endif

/* The result of question() in a child with RAPT_ISA = text; NULL = not set. */
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

/* Whether bfloat16 may be multiplied on a unit. */
static rapt_isa the_unit;
static int takes_unit(void) { return rapt_isa_takes_unit(RAPT_ISA_AUTO, the_unit); }
static int takes_unit_by_name(void) { return rapt_isa_takes_unit(the_unit, the_unit); }
static int takes_unit_by_other_name(void) { return rapt_isa_takes_unit(RAPT_ISA_SCALAR, the_unit); }

static rapt_plan plan_of(int32_t numerics, int32_t dtype) {
    rapt_attention_desc desc = RAPT_ATTENTION_DESC_INIT;
    rapt_plan plan;
    desc.batch = desc.query_heads = desc.kv_heads = desc.query_length = desc.kv_length = 1;
    desc.head_dim = 2;
    desc.numerics = numerics;
    desc.query = desc.key = desc.value = rapt_tensor_bhsd(NULL, dtype, 1, 1, 1, 2);
    desc.out = rapt_output_bhsd(NULL, 1, 1, 1, 2);
    return rapt_plan_init(&plan, &desc, NULL) == RAPT_OK ? plan : (rapt_plan){{0}};
}

static int isa_of_bfloat16(void) {
    const rapt_plan plan = plan_of(RAPT_NUMERICS_ORDER_2, RAPT_BF16);
    return (int)rapt_plan_isa(&plan);
}

static int isa_of_float16(void) {
    const rapt_plan plan = plan_of(RAPT_NUMERICS_ORDER_2, RAPT_F16);
    return (int)rapt_plan_isa(&plan);
}

static int isa_of_order_3(void) {
    const rapt_plan plan = plan_of(RAPT_NUMERICS_ORDER_3, RAPT_F32);
    return (int)rapt_plan_isa(&plan);
}

static int isa_of_order_1(void) {
    const rapt_plan plan = plan_of(RAPT_NUMERICS_DEFAULT, RAPT_BF16);
    return (int)rapt_plan_isa(&plan);
}

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
            assert_int_equal(ask(name, dispatched_auto), rapt_table_of((rapt_isa)isa)->isa);
            assert_int_equal(ask(name, dispatched_scalar), RAPT_ISA_SCALAR);
        } else {
            assert_int_equal(ask(name, chosen_status), RAPT_UNSUPPORTED_ISA);
            assert_int_equal(ask(name, dispatched_auto), RAPT_ISA_COUNT);
        }
    }
}

/* bfloat16 dot products beat FMAs on AMD's processors only. */
static bool pays(rapt_isa unit) {
#ifdef __x86_64__
    return unit != RAPT_ISA_AVX512_BF16 || __builtin_cpu_is("amd");
#else
    return unit != RAPT_ISA_AVX512_BF16;
#endif
}

/* A named instruction set, here or there, means no unit, unless the name is the unit's. */
static void takes(rapt_isa unit) {
    the_unit = unit;
    if (!rapt_table_of(unit))
        return;
    assert_int_equal(ask(NULL, takes_unit), pays(unit));
    assert_int_equal(ask("auto", takes_unit), pays(unit));
    assert_false(ask(NULL, takes_unit_by_other_name));
    for (int isa = RAPT_ISA_SCALAR; isa < RAPT_ISA_COUNT; isa++) {
        const char *name = rapt_isa_name((rapt_isa)isa);
        if (!rapt_isa_available((rapt_isa)isa))
            continue;
        assert_int_equal(ask(name, takes_unit), (rapt_isa)isa == unit);
        assert_true(ask(name, takes_unit_by_name));
        assert_false(ask(name, takes_unit_by_other_name));
    }
}

static void test_takes_unit(void **state) {
    (void)state;
    takes(RAPT_ISA_AMX);
    takes(RAPT_ISA_AVX512_BF16);
}

/* The automatic choice never names a unit, but uses the best that pays, as naming it would, for bfloat16 in order 2,
 * and a matrix unit for order 3; naming a base instruction set uses none. */
static bool has_amx_fp16(rapt_isa unit) { return unit == RAPT_ISA_AMX && has_feature("amx_fp16"); }

static void test_unit(void **state) {
    (void)state;
    static const rapt_isa units[] = {RAPT_ISA_AMX, RAPT_ISA_AVX512_BF16};
    rapt_isa best = RAPT_ISA_AUTO;
    for (int i = 0; i < 2; i++) {
        const char *name = rapt_isa_name(units[i]);
        assert_int_not_equal(ask(NULL, chosen_isa), units[i]);
        if (!rapt_isa_available(units[i])) {
            assert_int_equal(ask(name, isa_of_order_1), RAPT_ISA_AUTO); /* refused */
            continue;
        }
        best = best == RAPT_ISA_AUTO && pays(units[i]) ? units[i] : best;
        assert_int_equal(ask(name, isa_of_bfloat16), units[i]);
        assert_int_equal(ask(name, isa_of_float16), has_amx_fp16(units[i]) ? RAPT_ISA_AMX : RAPT_ISA_AVX512);
        assert_int_equal(ask(name, isa_of_order_3), units[i] == RAPT_ISA_AMX ? RAPT_ISA_AMX : RAPT_ISA_AVX512);
        assert_int_equal(ask("avx512", isa_of_order_3), RAPT_ISA_AVX512);
        assert_int_equal(ask(name, isa_of_order_1), RAPT_ISA_AVX512);
        assert_int_equal(ask("avx512", isa_of_bfloat16), RAPT_ISA_AVX512);
    }
    assert_int_equal(ask(NULL, isa_of_bfloat16), best == RAPT_ISA_AUTO ? ask(NULL, chosen_isa) : (int)best);
    assert_int_equal(ask(NULL, isa_of_order_3), best == RAPT_ISA_AMX ? RAPT_ISA_AMX : ask(NULL, chosen_isa));
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
    /* One that deviates from order 2 is not used, which no other test would notice. */
    assert_int_equal(rapt_isa_available(RAPT_ISA_AVX512_BF16) != 0,
                     rapt_isa_available(RAPT_ISA_AVX512) && strstr(whole, "avx512_bf16"));
}

#ifdef __linux__

static int has_unit(void) { return rapt_isa_available(RAPT_ISA_AMX) != 0; }

/* Linux denies tiles to a process whose signal stack cannot hold their state. */
static int is_refused_on_small_stack(void) {
    static char stack[8192];
    const stack_t small = {.ss_sp = stack, .ss_size = sizeof stack};
    rapt_message message = {""};
    const struct rapt_table *kernels;
    if (sigaltstack(&small, NULL) != 0 || rapt_isa_available(RAPT_ISA_AMX))
        return 1;
    if (rapt_dispatch(RAPT_ISA_AMX, &kernels, &message) != RAPT_UNSUPPORTED_ISA)
        return 2;
    if (!strstr(message.text, "isa = amx: this process may not use the unit"))
        return 3;
    const bool has_dots = rapt_isa_available(RAPT_ISA_AVX512_BF16) && pays(RAPT_ISA_AVX512_BF16);
    return isa_of_bfloat16() == (has_dots ? RAPT_ISA_AVX512_BF16 : RAPT_ISA_AVX512) ? 0 : 4;
}

/* Runs first: processes keep granted tiles, and so do their children. */
static void test_refused_unit(void **state) {
    (void)state;
    if (has_emulated_tiles() || !ask(NULL, has_unit)) /* of which the system knows nothing */
        skip();
    assert_int_equal(ask(NULL, is_refused_on_small_stack), 0);
    assert_int_equal(ask("amx", has_unit), 1);
}

enum { NOT_SECURE = 120, NOT_STARTED = 121 };

/* "probe": how a privileged program treats RAPT_ISA = rubbish. */
static int probe(void) { return getauxval(AT_SECURE) ? chosen_status() : NOT_SECURE; }

/* Another user for root; else another of the caller's groups. False if there is none. */
static bool give_rights(int file) {
    gid_t groups[64];
    if (geteuid() == 0)
        return fchown(file, 65534, (gid_t)-1) == 0 && fchmod(file, 04755) == 0;
    for (int i = getgroups(64, groups) - 1; i >= 0; i--)
        if (groups[i] != getgid() && fchown(file, (uid_t)-1, groups[i]) == 0)
            return fchmod(file, 02755) == 0;
    return false;
}

/* A copy of this program, which is deleted after its run. */
static bool copy_with_rights(char *path) {
    char buffer[1 << 16];
    const int from = open("/proc/self/exe", O_RDONLY), to = mkstemp(path);
    ssize_t bytes = 0;
    while (from >= 0 && to >= 0 && (bytes = read(from, buffer, sizeof buffer)) > 0)
        if (write(to, buffer, (size_t)bytes) != bytes)
            bytes = -1;
    const bool good = from >= 0 && to >= 0 && bytes == 0 && give_rights(to);
    close(from);
    close(to);
    return good;
}

static void test_programs_with_rights(void **state) {
    char path[] = "/tmp/rapt-environment-XXXXXX";
    int status = NOT_STARTED << 8;
    (void)state;
    const bool good = copy_with_rights(path);
    const pid_t child = good ? fork() : -1;
    if (child == 0) {
        setenv("RAPT_ISA", "rubbish", 1);
        execl(path, path, "probe", (char *)NULL);
        _exit(NOT_STARTED);
    }
    if (child > 0)
        waitpid(child, &status, 0);
    unlink(path);
    const int answer = WIFEXITED(status) ? WEXITSTATUS(status) : NOT_STARTED;
    if (answer == NOT_SECURE || answer == NOT_STARTED)
        skip(); /* no rights to give, a file system that ignores them, an emulator */
    assert_int_equal(answer, RAPT_OK);
}

#else

static int probe(void) { return 0; }

static void test_refused_unit(void **state) {
    (void)state;
    skip();
}

static void test_programs_with_rights(void **state) {
    (void)state;
    skip();
}

#endif

int main(int argc, char **argv) {
    if (argc > 1 && strcmp(argv[1], "probe") == 0)
        _exit(probe()); /* leak checkers do not work in such a program */

    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_refused_unit),
        cmocka_unit_test(test_unset_and_auto), cmocka_unit_test(test_rubbish),
        cmocka_unit_test(test_each_isa),       cmocka_unit_test(test_takes_unit),
        cmocka_unit_test(test_unit),           cmocka_unit_test(test_read_once),
        cmocka_unit_test(test_feature_names),  cmocka_unit_test(test_programs_with_rights),
    };
    return cmocka_run_group_tests_name("environment", tests, NULL, NULL);
}
