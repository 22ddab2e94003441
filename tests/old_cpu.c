/* SPDX-License-Identifier: MIT
 * Older CPUs under qemu-x86_64: the right table, refusals instead of SIGILL.
 * Usage: test_old_cpu QEMU. Run as "test_old_cpu probe" it is the program
 * that runs on the other CPU; its exit status is the answer. */
#define _DEFAULT_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "reference.h"
#include "problem.h"

enum { CHOSEN = 100, WRONG_BITS = 99 }; /* CHOSEN + rapt_isa, or a rapt_status */

static const char *self, *qemu;

/* Runs a few calls on every table that claims to be available. */
static int probe(void) {
        for (unsigned n = 0; n < 2; n++) {
        struct problem_call call = {1, 2, 1, n ? 1 : 13, n ? 600 : 40, 19, 21, n ? USE_LSE : USE_EVERYTHING,
                                    DATA_NORMAL, RAPT_ORIGIN_BOTTOM_RIGHT, RAPT_WEIGHTS_SOFTMAX, n, 0};
        struct problem *expected = problem_expected(&call);
        for (int isa = RAPT_ISA_AUTO; isa < RAPT_ISA_COUNT; isa++) {
            struct problem *problem = problem_new(&call);
            problem->desc.isa = isa;
            rapt_status status = rapt_attention(&problem->desc, NULL, NULL);
            bool available = isa == RAPT_ISA_AUTO || rapt_isa_available((rapt_isa)isa);
            if (isa == RAPT_ISA_AUTO && status != RAPT_OK)
                return (int)status;
            if (status != (available ? RAPT_OK : RAPT_UNSUPPORTED_ISA) ||
                !(available ? problem_same(problem, expected) : problem_is_untouched(problem)))
                return WRONG_BITS;
            problem_free(problem);
        }
        problem_free(expected);
    }
    rapt_isa chosen;
    rapt_status status = rapt_isa_chosen(&chosen);
    return status == RAPT_OK ? CHOSEN + (int)chosen : (int)status;
}

/* The answer of the probe on that CPU with RAPT_ISA = environment (NULL: not set). */
static int ask(const char *cpu, const char *environment) {
    pid_t child = fork();
    if (child == 0) {
        if (environment)
            setenv("RAPT_ISA", environment, 1);
        else
            unsetenv("RAPT_ISA");
        setenv("OMP_NUM_THREADS", "2", 1);
        execlp(qemu, qemu, "-cpu", cpu, self, "probe", (char *)NULL);
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
    } cases[] = {
        {"Nehalem", RAPT_ISA_SCALAR},     {"SandyBridge", RAPT_ISA_SCALAR}, /* AVX, not AVX2 */
        {"Haswell", RAPT_ISA_AVX2},       {"EPYC", RAPT_ISA_AVX2},
        {"max", RAPT_ISA_AVX2},           {"max,-fma", RAPT_ISA_SCALAR},
        {"max,-avx2", RAPT_ISA_SCALAR},   {"max,-avx", RAPT_ISA_SCALAR},
        {"max,-xsave", RAPT_ISA_SCALAR}, /* the operating system saves no wide registers */
        {"Haswell,-fma", RAPT_ISA_SCALAR},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        int answer = ask(cases[i].cpu, NULL);
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
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        int answer = ask(cases[i].cpu, cases[i].environment);
        if (answer != cases[i].answer)
            fail_msg("%s, RAPT_ISA=%s: answer %d instead of %d", cases[i].cpu, cases[i].environment, answer,
                     cases[i].answer);
    }
}

int main(int count, char **arguments) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_table_chosen), cmocka_unit_test(test_environment)};
    self = arguments[0];
    qemu = count > 1 ? arguments[1] : "qemu-x86_64";
    if (strcmp(qemu, "probe") == 0)
        return probe();
    return cmocka_run_group_tests_name("old_cpu", tests, NULL, NULL);
}
