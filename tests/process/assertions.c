/* SPDX-License-Identifier: MIT
 * In builds with assertions a wrong call of a slot stops the program; others check nothing. */
#define _DEFAULT_SOURCE
#include <signal.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "support/cmocka_all.h"
#include "support/support.h"

/* Scores the whole block, from key_begin on. */
static void call_score(const struct rapt_tile_kind *kind, int rows, int key_begin) {
    static float numbers[RAPT_BLOCK_KEYS * RAPT_MAX_TILE_ROWS];
    float *scores = test_floats((int64_t)(kind->scores_bytes(kind->rows, 1) / sizeof(float)));
    const struct rapt_score_args args = {.query = numbers,
                                         .key = (const char *)numbers,
                                         .key_stride_bytes = 4,
                                         .scores = scores,
                                         .rows = rows,
                                         .head_dim = 1,
                                         .key_begin = key_begin,
                                         .key_end = RAPT_BLOCK_KEYS,
                                         .factor = 1};
    kind->score(&args);
}

/* Whether it survives, in a child process; its message stays out of the log. */
static bool is_survived(const struct rapt_tile_kind *kind, int rows, int key_begin) {
    fflush(NULL);
    const pid_t child = fork();
    if (child == 0) {
        if (!freopen("/dev/null", "w", stderr))
            _exit(2);
        signal(SIGABRT, SIG_DFL); /* cmocka would continue */
        call_score(kind, rows, key_begin);
        _exit(0);
    }
    int status = 0;
    assert_int_equal(waitpid(child, &status, 0), child);
    if (WIFSIGNALED(status))
        assert_int_equal(WTERMSIG(status), SIGABRT);
    else
        assert_int_equal(WEXITSTATUS(status), 0);
    return !WIFSIGNALED(status);
}

static void test_wrong_calls(void **state) {
    const struct rapt_table *tables[RAPT_ISA_COUNT];
    const int count = machine_tables(tables);
    for (int t = 0; t < count; t++)
        for (int kind = 0; kind < RAPT_KINDS; kind++) {
            const struct rapt_tile_kind *slots = &tables[t]->kinds[kind];
            assert_true(is_survived(slots, 1, RAPT_BLOCK_KEYS - 8));
            assert_false(is_survived(slots, 1, RAPT_BLOCK_KEYS + 1));
            assert_false(is_survived(slots, 0, RAPT_BLOCK_KEYS - 8));
            assert_false(is_survived(slots, RAPT_MAX_TILE_ROWS + 1, RAPT_BLOCK_KEYS));
        }
    (void)state;
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_wrong_calls)};
    return cmocka_run_group_tests_name("assertions", tests, NULL, NULL);
}
