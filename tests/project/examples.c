/* SPDX-License-Identifier: MIT
 * The programs of examples/ check themselves, and stop with a message where rapt refuses. Usage: test_examples
 * EMULATOR PROGRAM...; an empty EMULATOR runs them directly. */
#define _DEFAULT_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

static const char *emulator;

static void execute(const char *program) {
    if (emulator[0])
        execlp(emulator, emulator, program, (char *)NULL);
    else
        execl(program, program, (char *)NULL);
    _exit(98);
}

/* Runs the program; what it says on stdout and stderr goes to these files, unless they are NULL. */
static int run(const char *program, FILE *out, FILE *err) {
    pid_t child = fork();
    if (child == 0) {
        if ((out && dup2(fileno(out), STDOUT_FILENO) < 0) || (err && dup2(fileno(err), STDERR_FILENO) < 0))
            _exit(99);
        execute(program);
    }
    int status = -1;
    assert_int_equal(waitpid(child, &status, 0), child);
    return status;
}

static void test_program(void **state) {
    assert_int_equal(run(*state, stderr, NULL), 0); /* stdout is cmocka's TAP */
}

/* rapt refuses every call: the program says why, prints no result, and fails. */
static void test_refused(void **state) {
    char text[1024] = "";
    FILE *out = tmpfile(), *err = tmpfile();
    assert_non_null(out);
    assert_non_null(err);
    setenv("RAPT_ISA", "abacus", 1);
    int status = run(*state, out, err);
    unsetenv("RAPT_ISA");
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 1);
    assert_int_equal(lseek(fileno(out), 0, SEEK_END), 0);
    rewind(err);
    text[fread(text, 1, sizeof text - 1, err)] = '\0';
    assert_non_null(strstr(text, "abacus"));
    fclose(out);
    fclose(err);
}

int main(int count, char **arguments) {
    enum { MOST = 16 };
    struct CMUnitTest tests[2 * MOST];
    static char names[MOST][512];
    if (count < 3 || count - 2 > MOST) {
        fputs("usage: test_examples EMULATOR PROGRAM...\n", stderr);
        return 2;
    }
    emulator = arguments[1];
    for (int i = 0; i < count - 2; i++) {
        char *program = arguments[2 + i];
        snprintf(names[i], sizeof names[i], "%s, refused", program);
        tests[2 * i] = (struct CMUnitTest){.name = program, .test_func = test_program, .initial_state = program};
        tests[2 * i + 1] = (struct CMUnitTest){.name = names[i], .test_func = test_refused, .initial_state = program};
    }
    return _cmocka_run_group_tests("examples", tests, 2 * (size_t)(count - 2), NULL, NULL);
}
