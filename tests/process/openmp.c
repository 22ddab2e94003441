/* SPDX-License-Identifier: MIT
 * OpenMP's pitfalls: nested regions, fork, several pools, limits. */
#define _DEFAULT_SOURCE
#include <dirent.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>
#include <omp.h>

#include "support/pool.h"
#include "support/problem.h"

static const struct problem_call calls[] = {
    {2, 4, 2, 200, 700, 64, 64, USE_CAUSAL | USE_LSE, DATA_NORMAL, RAPT_ORIGIN_TOP_LEFT, RAPT_WEIGHTS_NONE, 1, 0},
    {1, 4, 2, 1, 12000, 64, 64, USE_LSE, DATA_NORMAL, RAPT_ORIGIN_UNSTATED, RAPT_WEIGHTS_NONE, 2, 0},
};
enum { CALLS = sizeof calls / sizeof *calls };

static struct problem *expected_of[CALLS];

/* The same problem again; drawing it takes longer than solving it. */
static struct problem *copy_of(const struct problem *expected) {
    static const struct problem_layout plain = {0};
    return problem_laid_out(expected, &plain);
}

static void check_one_call(const struct problem *expected) {
    struct problem *problem = copy_of(expected);
    assert_int_equal(rapt_attention(&problem->desc, NULL, NULL), RAPT_OK);
    assert_true(problem_same(problem, expected) && problem_is_clean(problem));
    problem_free(problem);
}

/* 0 if the child's call gave the right bits in time. */
static int child_status(const struct problem *expected) {
    pid_t child = fork();
    if (child == 0) {
        alarm(30); /* a hang ends the child, and its status is not 0 */
        struct problem *problem = copy_of(expected);
        bool good = rapt_attention(&problem->desc, NULL, NULL) == RAPT_OK && problem_same(problem, expected);
        _exit(good ? 0 : 1);
    }
    int status = -1;
    return waitpid(child, &status, 0) == child ? status : -1;
}

static void start_openmp_threads(void) {
    omp_set_num_threads(4);
    int total = 0;
#pragma omp parallel reduction(+ : total)
    total += omp_get_thread_num();
    assert_int_equal(total, 6);
}

static int count_threads(void) {
    int count = 0;
    DIR *tasks = opendir("/proc/self/task");
    while (tasks && readdir(tasks))
        count++;
    if (tasks)
        closedir(tasks);
    return count - 2; /* . and .. */
}

/* A child of a process without a pool: the caller knows that OpenMP works there, rapt does not. alone: the process had
 * only one thread, so that threads can be counted; emulators add some. */
static int safe_child(const struct problem *expected, bool alone) {
    static char workspace[1 << 22];
    rapt_run_options options = RAPT_RUN_OPTIONS_INIT;
    struct problem *problem = copy_of(expected);
    rapt_plan plan;
    alarm(30);
    omp_set_num_threads(4);
    if (rapt_plan_init(&plan, &problem->desc, NULL) != RAPT_OK || rapt_run_concurrency(&plan, &options) != 1)
        return 1;
    options.flags = RAPT_RUN_FORK_SAFE;
    if (rapt_run_concurrency(&plan, &options) != 4)
        return 2;
    if (rapt_run(&plan, workspace, sizeof workspace, &options) != RAPT_OK || !problem_same(problem, expected))
        return 3;
    return !alone || count_threads() == 4 ? 0 : 4;
}

static void test_fork_that_is_safe(void **state) {
    (void)state;
    struct problem *expected = expected_of[0];
    const bool alone = count_threads() == 1;
    pid_t child = fork();
    if (child == 0)
        _exit(safe_child(expected, alone));
    int status = -1;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
}

/* The program used OpenMP, rapt did not yet. In a separate process, because this one must not have used either. */
static void test_fork_after_foreign_openmp(void **state) {
    (void)state;
    struct problem *expected = expected_of[0];
    pid_t parent = fork();
    if (parent == 0) {
        start_openmp_threads();
        _exit(child_status(expected) == 0 ? 0 : 1);
    }
    int status = -1;
    assert_int_equal(waitpid(parent, &status, 0), parent);
    assert_int_equal(status, 0);
}

/* Before anything here starts threads. */
static void test_max_threads(void **state) {
    (void)state;
    if (count_threads() != 1)
        skip();
    omp_set_num_threads(6);
    for (int most = 1; most <= 3; most++) {
        for (int c = 0; c < CALLS; c++) {
            struct problem *problem = copy_of(expected_of[c]);
            rapt_plan plan;
            rapt_run_options options = {.struct_size = sizeof options, .max_threads = most};
            size_t bytes;
            assert_int_equal(rapt_plan_init(&plan, &problem->desc, NULL), RAPT_OK);
            assert_int_equal(rapt_plan_workspace_bytes(&plan, 6, &bytes), RAPT_OK);
            assert_int_equal(rapt_run(&plan, test_alloc(bytes), bytes, &options), RAPT_OK);
            assert_in_range(count_threads(), most > 1 ? 2 : 1, most);
            problem_free(problem);
            test_free_all();
        }
    }
}

static void test_more_threads_than_cores(void **state) {
    (void)state;
    for (int c = 0; c < CALLS; c++) {
        struct problem *expected = expected_of[c];
        for (int threads = 1; threads <= 32; threads = threads * 2 + 1) {
            omp_set_num_threads(threads);
            check_one_call(expected);
        }
    }
}

static void test_nested_regions(void **state) {
    (void)state;
    omp_set_num_threads(3);
    omp_set_max_active_levels(2);
    for (int c = 0; c < CALLS; c++) {
        struct problem *expected = expected_of[c], *problems[4];
        int good = 0;
        for (int i = 0; i < 4; i++)
            problems[i] = copy_of(expected_of[c]);
#pragma omp parallel for reduction(+ : good) num_threads(4)
        for (int i = 0; i < 4; i++)
            good += rapt_attention(&problems[i]->desc, NULL, NULL) == RAPT_OK;
        assert_int_equal(good, 4);
        for (int i = 0; i < 4; i++) {
            assert_true(problem_same(problems[i], expected) && problem_is_clean(problems[i]));
            problem_free(problems[i]);
        }
    }
}

struct sampler {
    atomic_bool started, stop;
    int most;
};

static void *sample_threads(void *argument) {
    struct sampler *sampler = argument;
    while (!atomic_load(&sampler->stop)) {
        const int now = count_threads();
        sampler->most = now > sampler->most ? now : sampler->most;
        atomic_store(&sampler->started, true);
        usleep(20);
    }
    return NULL;
}

/* A call inside a region starts no threads beyond the region's. */
static void test_nested_regions_start_nothing(void **state) {
    (void)state;
    enum { TEAM = 2 };
    const int64_t rounds = scaled_work(100) < 100 ? 5 : 20;
    struct problem *problems[TEAM];
    struct sampler sampler = {.most = 0};
    pthread_t thread;
    int team = 0;
    omp_set_num_threads(3);
    omp_set_max_active_levels(2);
    for (int i = 0; i < TEAM; i++)
        problems[i] = copy_of(expected_of[0]);
#pragma omp parallel num_threads(TEAM) reduction(+ : team)
    team += 1;
    assert_int_equal(team, TEAM);
    const int before = count_threads();
    assert_int_equal(pthread_create(&thread, NULL, sample_threads, &sampler), 0);
    while (!atomic_load(&sampler.started)) /* on a busy machine the calls could finish first */
        usleep(20);
    for (int64_t round = 0; round < rounds; round++) {
#pragma omp parallel for num_threads(TEAM)
        for (int i = 0; i < TEAM; i++)
            rapt_attention(&problems[i]->desc, NULL, NULL);
    }
    atomic_store(&sampler.stop, true);
    pthread_join(thread, NULL);
    /* The sampler is one; a leftover thread of a smaller team may have been counted while ending. */
    assert_in_range(sampler.most, TEAM + 1, before + 1);
    for (int i = 0; i < TEAM; i++)
        problem_free(problems[i]);
}

struct several {
    struct problem *problems[3];
    rapt_status status[3];
};

static void run_one(void *argument, int number) {
    struct several *several = argument;
    several->status[number] = rapt_attention(&several->problems[number]->desc, NULL, NULL);
}

/* Threads of the program with an OpenMP pool each. */
static void test_several_pools(void **state) {
    (void)state;
    struct problem *expected = expected_of[0];
    struct several several;
    for (int i = 0; i < 3; i++)
        several.problems[i] = copy_of(expected_of[0]);
    pool_run(3, run_one, &several);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(several.status[i], RAPT_OK);
        assert_true(problem_same(several.problems[i], expected));
        problem_free(several.problems[i]);
    }
}

static void test_fork_after_run(void **state) {
    (void)state;
    omp_set_num_threads(4);
    for (int c = 0; c < CALLS; c++) {
        struct problem *expected = expected_of[c];
        check_one_call(expected);
        assert_int_equal(child_status(expected), 0);
        check_one_call(expected); /* the parent goes on as before */
    }
}

int main(void) {
    for (int c = 0; c < CALLS; c++)
        expected_of[c] = problem_expected(&calls[c]);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_fork_that_is_safe), /* the order of the first three matters */
        cmocka_unit_test(test_fork_after_foreign_openmp),
        cmocka_unit_test(test_max_threads),
        cmocka_unit_test(test_more_threads_than_cores),
        cmocka_unit_test(test_nested_regions),
        cmocka_unit_test(test_nested_regions_start_nothing),
        cmocka_unit_test(test_several_pools),
        cmocka_unit_test(test_fork_after_run),
    };
    return cmocka_run_group_tests_name("openmp", tests, NULL, NULL);
}
