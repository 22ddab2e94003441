/* SPDX-License-Identifier: MIT
 * The programs of examples/ check themselves, and stop with a message if rapt refuses. Usage: test_examples EMULATOR
 * PROGRAM...; an empty EMULATOR runs them directly. */
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

/* argument: NULL = none */
static void execute(const char *program, const char *argument) {
    if (emulator[0])
        execlp(emulator, emulator, program, argument, (char *)NULL);
    else
        execl(program, program, argument, (char *)NULL);
    _exit(98);
}

/* Runs the program; its stdout and stderr go to these files, unless NULL. */
static int run(const char *program, const char *argument, FILE *out, FILE *err) {
    pid_t child = fork();
    if (child == 0) {
        if ((out && dup2(fileno(out), STDOUT_FILENO) < 0) || (err && dup2(fileno(err), STDERR_FILENO) < 0))
            _exit(99);
        execute(program, argument);
    }
    int status = -1;
    assert_int_equal(waitpid(child, &status, 0), child);
    return status;
}

static void test_program(void **state) {
    assert_int_equal(run(*state, NULL, stderr, NULL), 0); /* stdout is cmocka's TAP */
}

/* The program ends with this status, prints no result, and says on stderr what is in text. */
static void expect_failure(const char *program, const char *argument, int expected, const char *text) {
    char said[1024] = "";
    FILE *out = tmpfile(), *err = tmpfile();
    assert_non_null(out);
    assert_non_null(err);
    const int status = run(program, argument, out, err);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), expected);
    assert_int_equal(lseek(fileno(out), 0, SEEK_END), 0);
    rewind(err);
    said[fread(said, 1, sizeof said - 1, err)] = '\0';
    assert_non_null(strstr(said, text));
    fclose(out);
    fclose(err);
}

/* rapt refuses every call: the program says why. */
static void test_refused(void **state) {
    setenv("RAPT_ISA", "abacus", 1);
    expect_failure(*state, NULL, 1, "abacus");
    unsetenv("RAPT_ISA");
}

static void test_usage(void **state) {
    static const char *const wrong[] = {"x", "0", "9", "12", "1x", "-1", ""};
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++)
        expect_failure(*state, wrong[i], 2, "usage: example_tutorial [STEP]");
}

int main(int count, char **arguments) {
    enum { MOST = 16 };
    struct CMUnitTest tests[2 * MOST + 1];
    static char names[MOST][512];
    if (count < 3 || count - 2 > MOST) {
        fputs("usage: test_examples EMULATOR PROGRAM...\n", stderr);
        return 2;
    }
    size_t test_count = 0;
    emulator = arguments[1];
    for (int i = 0; i < count - 2; i++) {
        char *program = arguments[2 + i];
        snprintf(names[i], sizeof names[i], "%s, refused", program);
        tests[test_count++] = (struct CMUnitTest){program, test_program, NULL, NULL, program};
        tests[test_count++] = (struct CMUnitTest){names[i], test_refused, NULL, NULL, program};
        if (strstr(program, "example_tutorial"))
            tests[test_count++] = (struct CMUnitTest){"tutorial, usage", test_usage, NULL, NULL, program};
    }
    return _cmocka_run_group_tests("examples", tests, test_count, NULL, NULL);
}
