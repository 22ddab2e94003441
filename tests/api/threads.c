/* SPDX-License-Identifier: MIT
 * Threads that join a phase, runs that stop, and what a run would use. */
#define _GNU_SOURCE
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "support/cmocka_all.h"
#include "support/pool.h"
#include "rapt/matmul.h"
#include "support/problem.h"

/* Many tasks of one phase; split keys with two phases; less than a task. */
static const struct problem_call calls[] = {
    {2, 4, 2, 130, 100, 16, 16, USE_CAUSAL | USE_LSE, DATA_NORMAL, RAPT_ORIGIN_TOP_LEFT, RAPT_WEIGHTS_NONE, 1, 0},
    {1, 4, 2, 2, 6000, 12, 9, USE_LSE | USE_MASK | USE_WEIGHTS, DATA_NORMAL, RAPT_ORIGIN_UNSTATED,
     RAPT_WEIGHTS_SOFTMAX, 2, 0},
    {1, 1, 1, 1, 3, 4, 4, 0, DATA_NORMAL, RAPT_ORIGIN_UNSTATED, RAPT_WEIGHTS_NONE, 3, 0},
};
enum { CALLS = sizeof calls / sizeof *calls, MOST_THREADS = 8 };

struct job {
    struct problem *problem;
    rapt_plan plan;
    void *workspace;
    size_t bytes;
};

static struct job job_of(const struct problem_call *call, int slots) {
    struct job job = {.problem = problem_new(call)};
    assert_int_equal(rapt_plan_init(&job.plan, &job.problem->desc, NULL), RAPT_OK);
    assert_int_equal(rapt_plan_workspace_bytes(&job.plan, slots, &job.bytes), RAPT_OK);
    job.workspace = test_alloc(job.bytes);
    return job;
}

static void job_end(struct job *job, const struct problem *expected) {
    assert_true(problem_same(job->problem, expected) && problem_is_clean(job->problem));
    problem_free(job->problem);
    test_free_all();
}

/* ---- join */

struct joined {
    const struct job *job;
    int32_t phase;
    int order;          /* 0: all at once; 1, 2: the first, the last is late; 3: each joins twice */
    int threads;
    atomic_int failed;
};

static void join_phase(void *argument, int number) {
    struct joined *joined = argument;
    const bool late = (joined->order == 1 && number == 0) || (joined->order == 2 && number == joined->threads - 1);
    if (late)
        usleep(2000);
    for (int time = 0; time < (joined->order == 3 ? 2 : 1); time++)
        joined->failed += rapt_join(&joined->job->plan, joined->job->workspace, joined->phase) != RAPT_OK;
}

static void join_all(const struct job *job, int threads, int order) {
    assert_int_equal(rapt_prepare(&job->plan, job->workspace, job->bytes), RAPT_OK);
    for (int32_t phase = 0; phase < rapt_phase_count(&job->plan); phase++) {
        struct joined joined = {.job = job, .phase = phase, .order = order, .threads = threads};
        pool_run(threads, join_phase, &joined);
        assert_int_equal(joined.failed, 0);
    }
}

static void test_join(void **state) {
    (void)state;
    for (int c = 0; c < CALLS; c++) {
        struct problem *expected = problem_expected(&calls[c]);
        for (int threads = 1; threads <= MOST_THREADS; threads++) {
            for (int order = 0; order < 4; order++) {
                struct job job = job_of(&calls[c], threads);
                join_all(&job, threads, order);
                job_end(&job, expected);
            }
        }
        problem_free(expected);
    }
}

/* Threads without a slot leave the work to the others. */
static void test_join_with_few_slots(void **state) {
    (void)state;
    struct problem *expected = problem_expected(&calls[0]);
    for (int slots = 1; slots <= 2; slots++) {
        struct job job = job_of(&calls[0], slots);
        join_all(&job, MOST_THREADS, 0);
        job_end(&job, expected);
    }
    problem_free(expected);
}

static void test_join_is_refused(void **state) {
    (void)state;
    struct problem *expected = problem_expected(&calls[1]);
    struct job job = job_of(&calls[1], 1), other = job_of(&calls[0], 1);
    assert_int_equal(rapt_join(&job.plan, job.workspace, 0), RAPT_NOT_PREPARED);
    assert_int_equal(rapt_run_task(&job.plan, job.workspace, 0, 0), RAPT_NOT_PREPARED);
    assert_int_equal(rapt_prepare(&other.plan, other.workspace, other.bytes), RAPT_OK);
    assert_int_equal(rapt_join(&job.plan, other.workspace, 0), RAPT_NOT_PREPARED);
    assert_int_equal(rapt_prepare(&job.plan, job.workspace, job.bytes), RAPT_OK);
    assert_int_equal(rapt_join(&job.plan, job.workspace, -1), RAPT_INVALID_VALUE);
    assert_int_equal(rapt_join(&job.plan, job.workspace, 2), RAPT_INVALID_VALUE);
    assert_int_equal(rapt_join(&job.plan, NULL, 0), RAPT_NULL_POINTER);
    assert_true(problem_is_untouched(job.problem) && problem_is_untouched(other.problem));
    join_all(&job, 1, 0);
    problem_free(other.problem);
    job_end(&job, expected);
    problem_free(expected);
}

/* ---- stop */

struct patience {
    atomic_int asked;
    int most; /* says "go on" so often */
};

static int impatient(void *context) {
    struct patience *patience = context;
    return patience->asked++ >= patience->most;
}

static int tasks_of(const struct job *job) {
    int64_t tasks = 0;
    for (int32_t phase = 0; phase < rapt_phase_count(&job->plan); phase++)
        tasks += rapt_task_count(&job->plan, phase);
    return (int)tasks;
}

/* Stops before some tasks in turn; asked once per task, it does not stop. */
static void stop_run(const struct problem_call *call, const struct problem *expected, int threads) {
    struct job job = job_of(call, threads);
    const int tasks = tasks_of(&job);
    for (int most = 0; most <= tasks; most += most < 4 || most > tasks - 3 ? 1 : tasks / 7 + 1) {
        struct pool pool = {.threads = threads};
        struct patience patience = {.most = most};
        rapt_run_options options = RAPT_RUN_OPTIONS_INIT;
        options.parallel_for = threads > 1 ? pool_parallel_for : NULL;
        options.parallel_for_context = &pool;
        options.max_threads = threads;
        options.should_stop = impatient;
        options.should_stop_context = &patience;
        problem_reset(job.problem);
        const rapt_status status = rapt_run(&job.plan, job.workspace, job.bytes, &options);
        assert_int_equal(status, most < tasks ? RAPT_STOPPED : RAPT_OK);
        assert_true(problem_is_clean(job.problem));
        if (most == 0)
            assert_true(problem_is_untouched(job.problem));
        if (threads == 1)
            assert_int_equal(patience.asked, most < tasks ? most + 1 : tasks);
    }
    /* The workspace is still usable. */
    assert_int_equal(rapt_run(&job.plan, job.workspace, job.bytes, NULL), RAPT_OK);
    job_end(&job, expected);
}

static void test_stop(void **state) {
    (void)state;
    for (int c = 0; c < CALLS; c++) {
        struct problem *expected = problem_expected(&calls[c]);
        for (int threads = 1; threads <= 4; threads += 3)
            stop_run(&calls[c], expected, threads);
        problem_free(expected);
    }
}

static int stop_once(void *asked) { return (*(int *)asked)++ == 0; }

/* One stop stops all workers: none of them asks again. */
static void test_one_stop_is_enough(void **state) {
    int asked = 0;
    struct problem *problem = problem_new(&calls[0]);
    struct pool pool = {.threads = 1}; /* runs one worker after the other */
    rapt_run_options options = RAPT_RUN_OPTIONS_INIT;
    (void)state;
    options.max_threads = 4, options.parallel_for = pool_parallel_for, options.parallel_for_context = &pool;
    options.should_stop = stop_once, options.should_stop_context = &asked;
    assert_int_equal(rapt_attention(&problem->desc, &options, NULL), RAPT_STOPPED);
    assert_int_equal(pool.largest_count, 4);
    assert_int_equal(asked, 1);
    problem_free(problem);
}

static void test_stop_one_call(void **state) {
    (void)state;
    struct problem *problem = problem_new(&calls[1]);
    struct patience patience = {.most = 1};
    rapt_run_options options = {
        .struct_size = sizeof options, .should_stop = impatient, .should_stop_context = &patience};
    rapt_message message;
    assert_int_equal(rapt_attention(&problem->desc, &options, &message), RAPT_STOPPED);
    assert_string_equal(message.text, rapt_status_text(RAPT_STOPPED));
    problem_free(problem);
}

static void test_stop_matmul(void **state) {
    enum { ROWS = 300, INNER = 40, COLUMNS = 200 };
    struct random random = {1};
    rapt_matmul_desc desc = RAPT_MATMUL_DESC_INIT;
    (void)state;
    desc.rows = ROWS, desc.inner = INNER, desc.columns = COLUMNS;
    desc.x = test_drawn(&random, ROWS * INNER, random_uniform), desc.x_stride_bytes = INNER * 4;
    desc.weight = test_drawn(&random, COLUMNS * INNER, random_uniform), desc.weight_stride_bytes = INNER * 4;
    desc.out = test_floats(ROWS * COLUMNS), desc.out_stride_bytes = COLUMNS * 4;
    struct patience patience = {.most = 1000000};
    rapt_run_options options = {.struct_size = sizeof options,
                                .max_threads = 1,
                                .should_stop = impatient,
                                .should_stop_context = &patience};
    assert_int_equal(rapt_matmul(&desc, &options, NULL), RAPT_OK);
    const int tasks = patience.asked;
    assert_true(tasks > 1);
    for (int most = 0; most <= tasks; most++) {
        patience = (struct patience){.most = most};
        assert_int_equal(rapt_matmul(&desc, &options, NULL), most < tasks ? RAPT_STOPPED : RAPT_OK);
    }
    test_free_all();
}

/* ---- use of threads */

/* Those that this process may run on; 1 if the system does not say. */
static int64_t own_processors(void) {
#ifdef __linux__
    cpu_set_t set;
    return sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : 1;
#else
    return 1;
#endif
}

static void test_concurrency(void **state) {
    (void)state;
    struct job many = job_of(&calls[0], 1), few = job_of(&calls[2], 1);
    struct pool pool = {.threads = 3};
    rapt_run_options options = RAPT_RUN_OPTIONS_INIT;
    assert_true(rapt_run_concurrency(&many.plan, NULL) >= 1);
    assert_int_equal(rapt_run_concurrency(&few.plan, NULL), 1);
    few.problem->desc.batch = 0;
    assert_int_equal(rapt_plan_init(&few.plan, &few.problem->desc, NULL), RAPT_OK);
    assert_int_equal(rapt_run_concurrency(&few.plan, NULL), 1); /* 0 means that plan or options are invalid */
    options.parallel_for = pool_parallel_for, options.parallel_for_context = &pool;
    const int64_t whole = rapt_run_concurrency(&many.plan, &options);
    const int64_t tasks = rapt_task_count(&many.plan, 0), least = own_processors() < tasks ? own_processors() : tasks;
    assert_in_range(whole, least, tasks);
    assert_int_equal(rapt_attention(&many.problem->desc, &options, NULL), RAPT_OK);
    assert_int_equal(pool.largest_count, whole);
    options.max_threads = 3;
    assert_int_equal(rapt_run_concurrency(&many.plan, &options), 3);
    assert_int_equal(rapt_run_concurrency(&few.plan, &options), 1);
    options.max_threads = 1 << 30;
    assert_int_equal(rapt_run_concurrency(&many.plan, &options), rapt_task_count(&many.plan, 0));
    options.max_threads = -1;
    assert_int_equal(rapt_run_concurrency(&many.plan, &options), 0);
    /* The one-call form brings that many slots. */
    options.max_threads = 3, pool.largest_count = 0;
    assert_int_equal(rapt_attention(&many.problem->desc, &options, NULL), RAPT_OK);
    assert_int_equal(pool.largest_count, 3);
    problem_free(many.problem);
    problem_free(few.problem);
    test_free_all();
}

/* The tasks of the first phase cover every row of every head of a sequence, and the keys it sees, exactly once. */
static void test_task_info(void **state) {
    static const struct problem_call call = {2, 4, 2, 230, 700, 16, 16, USE_CAUSAL, DATA_NORMAL,
                                             RAPT_ORIGIN_BOTTOM_RIGHT, RAPT_WEIGHTS_NONE, 1, 0};
    static const struct problem_call *const described[] = {&call, &calls[1]};
    (void)state;
    for (int c = 0; c < 2; c++) {
        struct job job = job_of(described[c], 1);
        const struct problem_call *shape = described[c];
        int64_t pairs = 0, cost = 0, rows = shape->query_length * shape->query_heads / shape->kv_heads;
        rapt_task_info info;
        assert_int_equal(rapt_task_info_of(&job.plan, job.workspace, 0, 0, &info), RAPT_NOT_PREPARED);
        assert_int_equal(rapt_prepare(&job.plan, job.workspace, job.bytes), RAPT_OK);
        for (int64_t task = 0; task < rapt_task_count(&job.plan, 0); task++) {
            assert_int_equal(rapt_task_info_of(&job.plan, job.workspace, 0, task, &info), RAPT_OK);
            assert_in_range(info.sequence, 0, shape->batch - 1);
            assert_in_range(info.kv_head, 0, shape->kv_heads - 1);
            assert_true(info.first_row >= 0 && info.rows > 0 && info.first_row + info.rows <= rows);
            assert_true(info.first_key >= 0 && info.keys >= 0 && info.first_key + info.keys <= shape->kv_length);
            assert_true(info.reserved[0] == 0 && info.reserved[8] == 0);
            pairs += info.rows * info.keys;
            cost += info.cost;
        }
        const int64_t all = shape->batch * shape->kv_heads * rows * shape->kv_length;
        assert_true(c == 0 ? pairs <= all && pairs > all / 2 : pairs == all);
        assert_true(cost >= pairs);
        assert_int_equal(cost, pairs * (shape->head_dim + shape->value_dim));
        for (int64_t task = 0; task < rapt_task_count(&job.plan, 1); task++) {
            assert_int_equal(rapt_task_info_of(&job.plan, job.workspace, 1, task, &info), RAPT_OK);
            assert_true(info.first_row == 0 && info.rows == rows);
            assert_true(info.first_key == 0 && info.keys == shape->kv_length);
            assert_true(info.cost >= 2 * rows * shape->value_dim && info.cost % (rows * shape->value_dim) == 0);
        }
        assert_int_equal(rapt_task_info_of(&job.plan, job.workspace, 0, -1, &info), RAPT_INVALID_VALUE);
        assert_int_equal(rapt_task_info_of(&job.plan, job.workspace, 2, 0, &info), RAPT_INVALID_VALUE);
        assert_int_equal(rapt_task_info_of(&job.plan, job.workspace, 0, 0, NULL), RAPT_NULL_POINTER);
        assert_int_equal(rapt_task_info_of(&job.plan, NULL, 0, 0, &info), RAPT_NULL_POINTER);
        problem_free(job.problem);
    }
    test_free_all();
}

/* Keys count from the first stored one, wherever that is; block lists that name half of the keys halve a cost. */
static void test_task_info_of_lists(void **state) {
    static float numbers[1 << 16];
    static const int64_t position[1] = {700}, offsets[2] = {0, 1}, entries[1] = {1};
    static char workspace[1 << 20];
    (void)state;
    for (int listed = 0; listed < 2; listed++) {
        rapt_attention_desc d = RAPT_ATTENTION_DESC_INIT;
        rapt_plan plan;
        rapt_task_info info;
        d.batch = d.query_heads = d.kv_heads = 1, d.query_length = 2, d.kv_length = 128, d.head_dim = 8;
        d.query = rapt_input_bhsd(numbers, 1, 1, 2, 8);
        d.key = d.value = rapt_input_bhsd(numbers, 1, 1, 128, 8);
        d.out = rapt_output_bhsd(numbers + 10000, 1, 1, 2, 8);
        d.key_position = rapt_int64_list(position, 1);
        if (listed)
            d.key_blocks = (rapt_block_list){.query_tokens = 2, .key_tokens = 64,
                                             .offsets = rapt_int64_list(offsets, 2),
                                             .entries = rapt_int64_list(entries, 1)};
        assert_int_equal(rapt_plan_init(&plan, &d, NULL), RAPT_OK);
        assert_int_equal(rapt_prepare(&plan, workspace, sizeof workspace), RAPT_OK);
        assert_int_equal(rapt_task_info_of(&plan, workspace, 0, 0, &info), RAPT_OK);
        assert_true(info.first_key == 0 && info.keys == 128 && info.rows == 2);
        assert_int_equal(info.cost, 2 * 128 * 16 / (listed ? 2 : 1));
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_join),        cmocka_unit_test(test_join_with_few_slots),
        cmocka_unit_test(test_join_is_refused), cmocka_unit_test(test_stop),
        cmocka_unit_test(test_stop_one_call),   cmocka_unit_test(test_stop_matmul),
        cmocka_unit_test(test_one_stop_is_enough),
        cmocka_unit_test(test_concurrency), cmocka_unit_test(test_task_info), cmocka_unit_test(test_task_info_of_lists),
    };
    return cmocka_run_group_tests_name("api_threads", tests, NULL, NULL);
}
