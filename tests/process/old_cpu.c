/* SPDX-License-Identifier: MIT
 * Older CPUs under qemu-x86_64: the right table, refusals instead of SIGILL. Usage: test_old_cpu QEMU. As "test_old_cpu
 * probe WHAT" it is the program that runs on the other CPU; its exit status is the answer. */
#define _DEFAULT_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "append/draw.h"
#include "reference/reference.h"
#include "support/problem.h"
#include "support/stored.h"

enum { CHOSEN = 100, WRONG_BITS = 99 }; /* CHOSEN + rapt_isa, or a rapt_status */

static const char *self, *qemu;

/* A call on every table from `first` on that claims to be available; CHOSEN if all are right. */
static int probe_call(const struct problem_call *call, const struct problem_layout *layout, rapt_isa first) {
    struct problem *expected = problem_expected(call), *plain = problem_new(call);
    for (int isa = (int)first; isa < RAPT_ISA_COUNT; isa++) {
        struct problem *problem = problem_laid_out(plain, layout);
        problem->desc.isa = isa;
        const rapt_status status = rapt_attention(&problem->desc, NULL, NULL);
        const bool available = isa == RAPT_ISA_AUTO || rapt_isa_available((rapt_isa)isa);
        if (isa == RAPT_ISA_AUTO && status != RAPT_OK)
            return (int)status;
        if (status != (available ? RAPT_OK : RAPT_UNSUPPORTED_ISA) ||
            !(available ? problem_same(problem, expected) : problem_is_untouched(problem)))
            return WRONG_BITS;
        problem_free(problem);
    }
    problem_free(expected);
    problem_free(plain);
    return CHOSEN;
}

/* Keys and values of every storage type, in a decode step, a few rows and a prefill, in pages and not. */
static int probe_stored(void) {
    static const struct problem_layout layouts[] = {{0}, {.page_kind = RAPT_PAGES_DENSE, .page_tokens = 16}};
    static const int64_t queries[] = {1, 10, 28};
    enum { LENGTHS = sizeof queries / sizeof *queries };
    int answer = CHOSEN;
    for (int format = 0; format < RAPT_FORMAT_COUNT; format++)
        for (int i = 0; i < LENGTHS && answer == CHOSEN; i++) {
            if (!stored_is_key_value(format))
                continue;
            const struct problem_call call = {.batch = 1,
                                              .query_heads = 2,
                                              .kv_heads = 1,
                                              .query_length = queries[i],
                                              .kv_length = 43,
                                              .head_dim = 96,
                                              .value_dim = 96,
                                              .use = USE_LSE | USE_QUERY_16 | USE_OUT_16,
                                              .seed = (uint64_t)queries[i],
                                              .key_format = format,
                                              .value_format = format,
                                              .key_scales = stored_may_scale(format) ? 32 : 0,
                                              .value_scales = stored_may_scale(format) ? 1 : 0};
            answer = probe_call(&call, &layouts[i % 2], RAPT_ISA_AUTO + 1);
        }
    return answer;
}

/* Caches of every storage type, with and without rotary embedding. */
static bool appends_right(void) {
    static struct drawn drawn;
    struct random random = {3};
    bool right = true;
    for (int call = 0; call < 20 && right; call++) {
        drawn_append(&drawn, &random, false);
        drawn_expect(&drawn);
        for (int isa = RAPT_ISA_AUTO; isa < RAPT_ISA_COUNT && right; isa++) {
            if (isa != RAPT_ISA_AUTO && !rapt_isa_available((rapt_isa)isa))
                continue;
            drawn_reset(&drawn);
            drawn.desc.isa = isa;
            right = rapt_append(&drawn.desc, NULL, NULL) == RAPT_OK && drawn_is_right(&drawn);
        }
        drawn_free(&drawn);
    }
    return right;
}

/* Runs calls on every table that claims to be available: "choice", in order 1; "orders", in all orders; "everything",
 * also with all types. No denormal halves: this emulator flushes them where order 2 widens them, unlike processors
 * (calls.c covers them). */
static int probe(const char *what) {
    static const struct problem_layout plain;
    const bool all = strcmp(what, "everything") == 0;
    const int calls = strcmp(what, "choice") == 0 ? 2 : 8;
    int answer = CHOSEN;
    for (int n = 0; n < calls && answer == CHOSEN; n++) { /* of order 2: bfloat16 and float16; a matrix unit has more */
        const int32_t order = n < 2 ? RAPT_NUMERICS_ORDER_1 : n < 6 ? RAPT_NUMERICS_ORDER_2 : RAPT_NUMERICS_ORDER_3;
        const bool one = n % 2;
        const struct problem_call call = {.batch = 1, .query_heads = 2, .kv_heads = 1, .query_length = one ? 1 : 13,
                                          .kv_length = one ? 600 : 40, .head_dim = 19, .value_dim = 21,
                                          .use = one ? USE_LSE : USE_EVERYTHING, .origin = RAPT_ORIGIN_BOTTOM_RIGHT,
                                          .weights_kind = RAPT_WEIGHTS_SOFTMAX, .seed = (uint64_t)one + 4,
                                          .key_format = n < 2   ? RAPT_FORMAT_F32
                                                        : n < 4 ? RAPT_FORMAT_F16
                                                                : RAPT_FORMAT_BF16,
                                          .numerics = order};
        answer = probe_call(&call, &plain, RAPT_ISA_AUTO);
    }
    if (answer == CHOSEN && all)
        answer = probe_stored();
    if (answer == CHOSEN && all && !appends_right())
        answer = WRONG_BITS;
    rapt_isa chosen;
    const rapt_status status = answer == CHOSEN ? rapt_isa_chosen(&chosen) : RAPT_OK;
    return answer != CHOSEN ? answer : status == RAPT_OK ? CHOSEN + (int)chosen : (int)status;
}

/* The probe's answer on that CPU with RAPT_ISA = environment (NULL: not set). */
static int ask(const char *cpu, const char *environment, const char *what) {
    pid_t child = fork();
    if (child == 0) {
        if (environment)
            setenv("RAPT_ISA", environment, 1);
        else
            unsetenv("RAPT_ISA");
        setenv("OMP_NUM_THREADS", "2", 1);
        execlp(qemu, qemu, "-cpu", cpu, self, "probe", what, (char *)NULL);
        _exit(98);
    }
    int status = 0;
    if (waitpid(child, &status, 0) != child || !WIFEXITED(status))
        fail_msg("%s: ended by signal %d", cpu, WTERMSIG(status));
    return WEXITSTATUS(status);
}

static void test_table_chosen(void **state) {
    (void)state;
    static const struct {
        const char *cpu;
        rapt_isa isa;
        const char *what; /* NULL: the choice */
    } cases[] = {
        {"Nehalem", RAPT_ISA_SCALAR},     {"SandyBridge", RAPT_ISA_SCALAR}, /* AVX, not AVX2 */
        {"Haswell", RAPT_ISA_AVX2},       {"EPYC", RAPT_ISA_AVX2},
        {"max", RAPT_ISA_AVX2, "orders"}, {"max,-fma", RAPT_ISA_SCALAR},
        {"max,-avx2", RAPT_ISA_SCALAR},   {"max,-avx", RAPT_ISA_SCALAR},
        {"max,-xsave", RAPT_ISA_SCALAR}, /* the operating system saves no wide registers */
        {"Haswell,-fma", RAPT_ISA_SCALAR},
        {"Haswell,-f16c", RAPT_ISA_SCALAR}, {"max,-f16c", RAPT_ISA_SCALAR}, {"IvyBridge", RAPT_ISA_SCALAR},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const int answer = ask(cases[i].cpu, NULL, cases[i].what ? cases[i].what : "choice");
        if (answer != CHOSEN + (int)cases[i].isa)
            fail_msg("%s: answer %d", cases[i].cpu, answer);
    }
}

/* Storage types and caches: conversions use extra instructions, which each table's least CPU lacks, or has. */
static void test_storage_types(void **state) {
    static const struct {
        const char *cpu;
        rapt_isa isa;
    } cases[] = {{"Nehalem", RAPT_ISA_SCALAR}, {"Haswell", RAPT_ISA_AVX2}};
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const int answer = ask(cases[i].cpu, NULL, "everything");
        if (answer != CHOSEN + (int)cases[i].isa)
            fail_msg("%s: answer %d", cases[i].cpu, answer);
    }
}

static void test_environment(void **state) {
    (void)state;
    static const struct {
        const char *cpu, *environment;
        int answer;
    } cases[] = {
        {"Nehalem", "scalar", CHOSEN + RAPT_ISA_SCALAR}, {"Haswell", "scalar", CHOSEN + RAPT_ISA_SCALAR},
        {"Haswell", "avx2", CHOSEN + RAPT_ISA_AVX2},     {"Nehalem", "avx2", RAPT_UNSUPPORTED_ISA},
        {"Haswell", "avx512", RAPT_UNSUPPORTED_ISA},     {"max,-fma", "avx2", RAPT_UNSUPPORTED_ISA},
        {"Haswell", "neon", RAPT_UNSUPPORTED_ISA},       {"Nehalem", "nonsense", RAPT_INVALID_ENVIRONMENT},
        {"max", "amx", RAPT_UNSUPPORTED_ISA},            {"max", "avx512_bf16", RAPT_UNSUPPORTED_ISA},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        int answer = ask(cases[i].cpu, cases[i].environment, "choice");
        if (answer != cases[i].answer)
            fail_msg("%s, RAPT_ISA=%s: answer %d instead of %d", cases[i].cpu, cases[i].environment, answer,
                     cases[i].answer);
    }
}

int main(int count, char **arguments) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_table_chosen), cmocka_unit_test(test_storage_types),
                                       cmocka_unit_test(test_environment)};
    self = arguments[0];
    qemu = count > 1 ? arguments[1] : "qemu-x86_64";
    if (strcmp(qemu, "probe") == 0)
        return probe(arguments[2]);
    return cmocka_run_group_tests_name("old_cpu", tests, NULL, NULL);
}
