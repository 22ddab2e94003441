/* SPDX-License-Identifier: MIT
 * Threads that rapt did not start: the caller's parallel-for, tasks on own threads, concurrent runs; and refusals by
 * calls on plans and runs. No OpenMP here, so that a thread sanitizer understands everything. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#include "support/pool.h"
#include "support/problem.h"

/* Many tasks of one phase; split keys with two phases; less than a task. */
static const struct problem_call calls[] = {
    {2, 4, 2, 130, 100, 16, 16, USE_CAUSAL | USE_LSE, DATA_NORMAL, RAPT_ORIGIN_TOP_LEFT, RAPT_WEIGHTS_NONE, 1, 0},
    {1, 4, 2, 2, 6000, 12, 9, USE_LSE | USE_MASK | USE_WEIGHTS, DATA_NORMAL, RAPT_ORIGIN_UNSTATED,
     RAPT_WEIGHTS_SOFTMAX, 2, 0},
    {1, 1, 1, 1, 3, 4, 4, 0, DATA_NORMAL, RAPT_ORIGIN_UNSTATED, RAPT_WEIGHTS_NONE, 3, 0},
};
enum { CALLS = sizeof calls / sizeof *calls };

struct job {
    struct problem *problem;
    rapt_plan plan;
    void *workspace;
    size_t bytes;
};

static struct job job_of(struct problem *problem, int slots) {
    struct job job = {.problem = problem};
    assert_int_equal(rapt_plan_init(&job.plan, &problem->desc, NULL), RAPT_OK);
    assert_int_equal(rapt_plan_workspace_bytes(&job.plan, slots, &job.bytes), RAPT_OK);
    job.workspace = test_alloc(job.bytes);
    return job;
}

static void job_end(struct job *job, const struct problem *expected) {
    assert_true(problem_same(job->problem, expected));
    assert_true(problem_is_clean(job->problem));
    problem_free(job->problem);
    test_free_all();
}

/* ---- run_task */

struct phase_run {
    const struct job *job;
    int32_t phase;
    _Atomic int64_t next;
    _Atomic int64_t busy, failed;
};

static void run_tasks(void *argument, int number) {
    struct phase_run *run = argument;
    int64_t count = rapt_task_count(&run->job->plan, run->phase), i;
    while ((i = run->next++) < count) {
        rapt_status status;
        while ((status = rapt_run_task(&run->job->plan, run->job->workspace, run->phase, count - 1 - i)) == RAPT_BUSY)
            run->busy++;
        run->failed += status != RAPT_OK;
    }
    (void)number;
}

/* Returns how often a task found no slot. */
static int64_t run_phases(const struct job *job, int threads) {
    int64_t busy = 0;
    assert_int_equal(rapt_prepare(&job->plan, job->workspace, job->bytes), RAPT_OK);
    for (int32_t phase = 0; phase < rapt_phase_count(&job->plan); phase++) {
        struct phase_run run = {.job = job, .phase = phase};
        pool_run(threads, run_tasks, &run);
        assert_int_equal(run.failed, 0);
        busy += run.busy;
    }
    return busy;
}

static void test_run_task(void **state) {
    (void)state;
    for (int c = 0; c < CALLS; c++) {
        struct problem *expected = problem_expected(&calls[c]);
        for (int threads = 1; threads <= 32; threads = threads * 2 + 1) {
            struct job job = job_of(problem_new(&calls[c]), threads);
            assert_int_equal(run_phases(&job, threads), 0);
            job_end(&job, expected);
        }
        problem_free(expected);
    }
}

/* One slot, more threads: some task gets BUSY, and nothing goes wrong. */
static void test_busy(void **state) {
    (void)state;
    struct problem *expected = problem_expected(&calls[0]);
    struct job job = job_of(problem_new(&calls[0]), 1);
    time_t end = time(NULL) + 20;
    int64_t busy = 0;
    while (busy == 0 && time(NULL) < end) {
        problem_reset(job.problem);
        busy = run_phases(&job, 3);
        assert_true(problem_same(job.problem, expected));
    }
    assert_true(busy > 0);
    job_end(&job, expected);
    problem_free(expected);
}

/* ---- parallel-for */

static void test_parallel_for(void **state) {
    (void)state;
    for (int c = 0; c < CALLS; c++) {
        struct problem *expected = problem_expected(&calls[c]);
        for (int threads = 1; threads <= 32; threads = threads * 2 + 1) {
            for (int most = 0; most <= 3; most += 3) {
                struct pool pool = {.threads = threads};
                rapt_run_options options = {.struct_size = sizeof options,
                                            .max_threads = most,
                                            .parallel_for = pool_parallel_for,
                                            .parallel_for_context = &pool};
                struct job job = job_of(problem_new(&calls[c]), threads);
                assert_int_equal(rapt_run(&job.plan, job.workspace, job.bytes, &options), RAPT_OK);
                assert_int_equal(pool.calls, rapt_phase_count(&job.plan));
                assert_true(pool.largest_count <= threads && (most == 0 || pool.largest_count <= most));
                job_end(&job, expected);
            }
        }
        problem_free(expected);
    }
}

static void test_parallel_for_fails(void **state) {
    (void)state;
    for (int call = 1; call <= 2; call++) {
        struct pool pool = {.threads = 2, .fail_at_call = call};
        rapt_run_options options = RAPT_RUN_OPTIONS_INIT;
        options.parallel_for = pool_parallel_for;
        options.parallel_for_context = &pool;
        struct job job = job_of(problem_new(&calls[1]), 2);
        assert_int_equal(rapt_phase_count(&job.plan), 2);
        assert_int_equal(rapt_run(&job.plan, job.workspace, job.bytes, &options), RAPT_PARALLEL_FOR_FAILED);
        assert_true(problem_is_clean(job.problem));
        problem_free(job.problem);
        test_free_all();
    }
}

static int lazy_parallel_for(void *context, int64_t count, void (*task)(void *, int64_t), void *argument) {
    (void)context, (void)count, (void)task, (void)argument;
    return 0;
}

/* A callback that reports success but does nothing: an error. */
static void test_parallel_for_does_nothing(void **state) {
    (void)state;
    rapt_run_options options = {.struct_size = sizeof options, .parallel_for = lazy_parallel_for};
    for (int c = 0; c < CALLS; c++) {
        struct job job = job_of(problem_new(&calls[c]), 2);
        assert_int_equal(rapt_run(&job.plan, job.workspace, job.bytes, &options), RAPT_PARALLEL_FOR_FAILED);
        assert_true(problem_is_untouched(job.problem));
        problem_free(job.problem);
        test_free_all();
    }
}

/* ---- concurrent runs */

enum { RUNNERS = 4, ROUNDS = 3 };
struct concurrent {
    rapt_plan plans[RUNNERS]; /* of the same inputs, each with its own outputs */
    rapt_attention_desc descs[RUNNERS];
    void *workspaces[RUNNERS];
    size_t bytes;
    rapt_status status[RUNNERS];
};

static void run_rounds(void *argument, int number) {
    struct concurrent *all = argument;
    rapt_run_options serial = {.struct_size = sizeof serial, .max_threads = 1};
    rapt_isa isa;
    rapt_status status = rapt_isa_chosen(&isa);
    for (int round = 0; round < ROUNDS && status == RAPT_OK; round++)
        status = rapt_run(&all->plans[number], all->workspaces[number], all->bytes, &serial);
    if (status == RAPT_OK && number % 2)
        status = rapt_plan_init(&all->plans[number], &all->descs[number], NULL);
    all->status[number] = status;
}

static void test_concurrent_runs(void **state) {
    (void)state;
    for (int c = 0; c < CALLS; c++) {
        struct problem *expected = problem_expected(&calls[c]), *problems[RUNNERS];
        struct concurrent all = {0};
        for (int r = 0; r < RUNNERS; r++) {
            problems[r] = problem_new(&calls[c]);
            rapt_tensor out = problems[r]->desc.out, lse = problems[r]->desc.lse, weights = problems[r]->desc.weights;
            all.descs[r] = problems[0]->desc;
            all.descs[r].out = out, all.descs[r].lse = lse, all.descs[r].weights = weights;
            assert_int_equal(rapt_plan_init(&all.plans[r], &all.descs[r], NULL), RAPT_OK);
            assert_int_equal(rapt_plan_workspace_bytes(&all.plans[r], 1, &all.bytes), RAPT_OK);
            all.workspaces[r] = test_alloc(all.bytes);
        }
        pool_run(RUNNERS, run_rounds, &all);
        for (int r = 0; r < RUNNERS; r++) {
            assert_int_equal(all.status[r], RAPT_OK);
            assert_true(problem_same(problems[r], expected) && problem_is_clean(problems[r]));
            problem_free(problems[r]);
        }
        problem_free(expected);
        test_free_all();
    }
}

/* ---- refusals */

static void test_workspace_too_small(void **state) {
    (void)state;
    for (int c = 0; c < CALLS; c++) {
        for (size_t shift = 0; shift < 64; shift += 21) {
            struct job job = job_of(problem_new(&calls[c]), 1);
            char *workspace = (char *)test_alloc(job.bytes + 64) + shift;
            assert_int_equal(rapt_run(&job.plan, workspace, job.bytes - 1, NULL), RAPT_WORKSPACE_TOO_SMALL);
            assert_int_equal(rapt_run(&job.plan, workspace, 0, NULL), RAPT_WORKSPACE_TOO_SMALL);
            assert_int_equal(rapt_prepare(&job.plan, workspace, job.bytes - 1), RAPT_WORKSPACE_TOO_SMALL);
            assert_int_equal(rapt_run(&job.plan, NULL, job.bytes, NULL), RAPT_NULL_POINTER);
            assert_true(problem_is_untouched(job.problem));
            problem_free(job.problem);
            test_free_all();
        }
    }
}

static void test_tasks_out_of_range(void **state) {
    (void)state;
    struct job job = job_of(problem_new(&calls[1]), 1);
    static const int64_t far = INT64_MAX;
    assert_int_equal(rapt_prepare(&job.plan, job.workspace, job.bytes), RAPT_OK);
    int32_t phases = rapt_phase_count(&job.plan);
    for (int32_t phase = 0; phase < phases; phase++) {
        int64_t wrong[] = {-1, rapt_task_count(&job.plan, phase), far, -far};
        for (int i = 0; i < 4; i++)
            assert_int_equal(rapt_run_task(&job.plan, job.workspace, phase, wrong[i]), RAPT_INVALID_VALUE);
    }
    assert_int_equal(rapt_run_task(&job.plan, job.workspace, phases, 0), RAPT_INVALID_VALUE);
    assert_int_equal(rapt_run_task(&job.plan, job.workspace, -1, 0), RAPT_INVALID_VALUE);
    assert_int_equal(rapt_run_task(&job.plan, NULL, 0, 0), RAPT_NULL_POINTER);
    assert_int_equal(rapt_task_count(&job.plan, phases), 0);
    assert_int_equal(rapt_task_count(&job.plan, -1), 0);
    assert_true(problem_is_untouched(job.problem));
    problem_free(job.problem);
    test_free_all();
}

static void test_options(void **state) {
    (void)state;
    struct job job = job_of(problem_new(&calls[0]), 1);
    rapt_run_options small = {.struct_size = 16}, negative = {.struct_size = sizeof negative, .max_threads = -1};
    size_t bytes, most;
    assert_int_equal(rapt_run(&job.plan, job.workspace, job.bytes, &small), RAPT_UNSUPPORTED_VERSION);
    assert_int_equal(rapt_run(&job.plan, job.workspace, job.bytes, &negative), RAPT_INVALID_VALUE);
    assert_int_equal(rapt_plan_workspace_bytes(&job.plan, 0, &bytes), RAPT_INVALID_VALUE);
    assert_int_equal(rapt_plan_workspace_bytes(&job.plan, -1, &bytes), RAPT_INVALID_VALUE);
    assert_int_equal(rapt_plan_workspace_bytes(&job.plan, INT64_MAX, &bytes), RAPT_OK);
    assert_int_equal(rapt_plan_workspace_bytes(&job.plan, rapt_task_count(&job.plan, 0), &most), RAPT_OK);
    assert_int_equal(bytes, most);
    assert_int_equal(rapt_plan_workspace_bytes(&job.plan, 1, NULL), RAPT_NULL_POINTER);
    assert_true(problem_is_untouched(job.problem));
    problem_free(job.problem);
    test_free_all();
}

static void expect_refused(const rapt_plan *plan, const struct job *job) {
    size_t bytes;
    assert_int_equal(rapt_plan_workspace_bytes(plan, 1, &bytes), RAPT_INVALID_PLAN);
    assert_int_equal(rapt_run(plan, job->workspace, job->bytes, NULL), RAPT_INVALID_PLAN);
    assert_int_equal(rapt_prepare(plan, job->workspace, job->bytes), RAPT_INVALID_PLAN);
    assert_int_equal(rapt_run_task(plan, job->workspace, 0, 0), RAPT_INVALID_PLAN);
    assert_int_equal(rapt_phase_count(plan), 0);
    assert_int_equal(rapt_task_count(plan, 0), 0);
    assert_int_equal(rapt_plan_isa(plan), RAPT_ISA_AUTO);
    assert_true(problem_is_untouched(job->problem));
}

static void test_plans_that_are_none(void **state) {
    (void)state;
    struct job job = job_of(problem_new(&calls[0]), 1);
    rapt_plan zero = {{0}}, failed = job.plan;
    expect_refused(&zero, &job);
    job.problem->desc.kv_heads = -1;
    assert_int_not_equal(rapt_plan_init(&failed, &job.problem->desc, NULL), RAPT_OK);
    expect_refused(&failed, &job);
    rapt_message message = {""};
    assert_int_equal(rapt_plan_init(NULL, &job.problem->desc, &message), RAPT_NULL_POINTER);
    assert_string_equal(message.text, "plan = NULL");
    problem_free(job.problem);
    test_free_all();
}

/* A plan is a value: its copy works after the original and the descriptor are gone. */
static void test_plan_copied(void **state) {
    (void)state;
    struct problem *expected = problem_expected(&calls[1]);
    struct job job = job_of(problem_new(&calls[1]), 2);
    struct {
        char shift[8];
        rapt_plan plan;
    } other;
    memcpy(&other.plan, &job.plan, sizeof other.plan);
    memset(&job.plan, 0xff, sizeof job.plan);
    memset(&job.problem->desc, 0xff, sizeof job.problem->desc);
    assert_int_equal(rapt_run(&other.plan, job.workspace, job.bytes, NULL), RAPT_OK);
    job_end(&job, expected);
    problem_free(expected);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_concurrent_runs),
        cmocka_unit_test(test_run_task),
        cmocka_unit_test(test_busy),
        cmocka_unit_test(test_parallel_for),
        cmocka_unit_test(test_parallel_for_fails),
        cmocka_unit_test(test_parallel_for_does_nothing),
        cmocka_unit_test(test_workspace_too_small),
        cmocka_unit_test(test_tasks_out_of_range),
        cmocka_unit_test(test_options),
        cmocka_unit_test(test_plans_that_are_none),
        cmocka_unit_test(test_plan_copied),
    };
    return cmocka_run_group_tests_name("threads", tests, NULL, NULL);
}
