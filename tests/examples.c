/* SPDX-License-Identifier: MIT
 * The programs of examples/ check themselves. Usage: test_examples EMULATOR
 * PROGRAM...; an empty EMULATOR runs them directly. */
#define _DEFAULT_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

static const char *emulator;

static void test_program(void **state) {
    const char *program = *state;
    pid_t child = fork();
    if (child == 0) {
        if (emulator[0])
            execlp(emulator, emulator, program, (char *)NULL);
        else
            execl(program, program, (char *)NULL);
        _exit(98);
    }
    int status = -1;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
}

int main(int count, char **arguments) {
    enum { MOST = 8 };
    struct CMUnitTest tests[MOST];
    if (count < 3 || count - 2 > MOST) {
        fputs("usage: test_examples EMULATOR PROGRAM...\n", stderr);
        return 2;
    }
    emulator = arguments[1];
    for (int i = 2; i < count; i++)
        tests[i - 2] = (struct CMUnitTest){.name = arguments[i], .test_func = test_program,
                                           .initial_state = arguments[i]};
    return _cmocka_run_group_tests("examples", tests, (size_t)(count - 2), NULL, NULL);
}
