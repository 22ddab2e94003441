/* SPDX-License-Identifier: MIT
 * A call preserves the caller's registers and floating-point environment, and that environment never changes a bit of
 * the result. */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#ifdef _OPENMP
#include <omp.h>
#endif

#include "support/registers.h"
#include "support/problem.h"
#include "rapt/states.h"

static const struct rapt_table *tables[RAPT_ISA_COUNT];
static int table_count;

/* Split keys, whole and narrow tiles; denormal results, where flushing shows, and ordinary ones, where rounding
 * does. */
static const struct problem_call calls[] = {
    {1, 2, 1, 40, 300, 17, 20, USE_LSE | USE_CAUSAL | USE_ALIBI | USE_SOFTCAP | USE_SINKS, DATA_DENORMAL,
     RAPT_ORIGIN_TOP_LEFT, RAPT_WEIGHTS_NONE, 1, 0},
    {2, 4, 2, 1, 2500, 33, 16, USE_LSE | USE_MASK | USE_BIAS | USE_WEIGHTS, DATA_DENORMAL,
     RAPT_ORIGIN_UNSTATED, RAPT_WEIGHTS_SOFTMAX, 2, 0},
    {1, 1, 1, 70, 70, 64, 64, USE_WEIGHTS, DATA_DENORMAL, RAPT_ORIGIN_UNSTATED, RAPT_WEIGHTS_RAW, 3, 0},
    {1, 1, 1, 3, 20, 8, 3, USE_LSE, DATA_NORMAL, RAPT_ORIGIN_UNSTATED, RAPT_WEIGHTS_NONE, 4, 0},
};
enum { CALLS = sizeof calls / sizeof *calls };

struct job {
    rapt_plan plan;
    struct problem *problem;
    rapt_isa isa;
    void *workspace;
    size_t bytes;
    rapt_run_options options;
    rapt_status status;
};

/* Only rapt's work, so that changes are rapt's doing. */
static void plan_and_run(void *argument) {
    struct job *job = argument;
    job->status = rapt_plan_init(&job->plan, &job->problem->desc, NULL);
    if (job->status == RAPT_OK)
        job->status = rapt_run(&job->plan, job->workspace, job->bytes, &job->options);
}

static struct job job_new(const struct problem_call *call, rapt_isa isa, int threads) {
    struct job job = {.problem = problem_new(call), .isa = isa};
    job.problem->desc.isa = isa;
    assert_int_equal(rapt_plan_init(&job.plan, &job.problem->desc, NULL), RAPT_OK);
    assert_int_equal(rapt_plan_workspace_bytes(&job.plan, threads, &job.bytes), RAPT_OK);
    job.workspace = test_alloc(job.bytes);
    job.options = (rapt_run_options){.struct_size = sizeof job.options, .max_threads = threads};
    return job;
}

static void job_end(struct job *job, const struct problem *expected, const char *what) {
    assert_int_equal(job->status, RAPT_OK);
    if (!problem_same(job->problem, expected))
        fail_msg("%s, isa %s", what, rapt_isa_name(job->isa));
    problem_free(job->problem);
    test_free_all();
}

static void test_registers(void **state) {
    (void)state;
    for (int c = 0; c < CALLS; c++) {
        struct problem *expected = problem_expected(&calls[c]);
        for (int t = 0; t < table_count; t++) {
            struct job job = job_new(&calls[c], tables[t]->isa, 1);
            assert_true(keeps_registers(plan_and_run, &job));
            job_end(&job, expected, "registers");
        }
        problem_free(expected);
    }
}

static void test_float_modes(void **state) {
    (void)state;
    for (int c = 0; c < CALLS; c++) {
        struct problem *expected = problem_expected(&calls[c]);
        for (int t = 0; t < table_count; t++) {
            for (int m = 0; m < float_mode_count; m++) {
                struct job job = job_new(&calls[c], tables[t]->isa, 1);
                uint64_t before = get_float_mode();
                set_float_mode(float_modes[m].value);
                uint64_t set = get_float_mode();
                plan_and_run(&job);
                uint64_t after = get_float_mode();
                set_float_mode(before);
                if (after != set)
                    fail_msg("%s: was %llx, is %llx", float_modes[m].name, (unsigned long long)set,
                             (unsigned long long)after);
                job_end(&job, expected, float_modes[m].name);
            }
        }
        problem_free(expected);
    }
}

/* NaN and infinities do not trap even if the caller enables traps. */
static void test_traps_stay_off(void **state) {
    (void)state;
    struct problem_call call = calls[0];
    call.data = DATA_INFINITE;
    struct problem *expected = problem_expected(&call);
    for (int t = 0; t < table_count; t++) {
        for (int m = 0; m < float_mode_count; m++) {
            struct job job = job_new(&call, tables[t]->isa, 1);
            uint64_t before = get_float_mode();
            set_float_mode(float_modes[m].value);
            plan_and_run(&job);
            set_float_mode(before);
            job_end(&job, expected, float_modes[m].name);
        }
    }
    problem_free(expected);
}

/* Sinks are checked, and weighed, in rapt's own environment. */
static void test_merges_in_float_modes(void **state) {
    static float rows[2][3] = {{2, 1.5f, 0.7f}, {-4, 1.25f, 0.3f}};
    const rapt_tensor parts[] = {rapt_input_bhsd(rows[0], 1, 1, 1, 3), rapt_input_bhsd(rows[1], 1, 1, 1, 3)};
    const float sink = 0.3f, too_large = 3e38f;
    float out, expected = 0;
    rapt_states_desc desc = RAPT_STATES_DESC_INIT;
    (void)state;
    desc.batch = desc.query_heads = desc.query_length = desc.value_dim = 1;
    desc.states = parts;
    desc.count = 2;
    desc.out = rapt_output_bhsd(&out, 1, 1, 1, 1);
    for (int m = 0; m < float_mode_count; m++) {
        const uint64_t before = get_float_mode();
        set_float_mode(float_modes[m].value);
        const uint64_t set = get_float_mode();
        desc.sinks = &sink;
        const rapt_status merged = rapt_merge_states(&desc, NULL, NULL);
        desc.sinks = &too_large;
        const rapt_status refused = rapt_merge_states(&desc, NULL, NULL);
        const uint64_t after = get_float_mode();
        set_float_mode(before);
        expected = m == 0 ? out : expected;
        if (merged != RAPT_OK || refused != RAPT_INVALID_VALUE || after != set || bits_of(out) != bits_of(expected))
            fail_msg("%s: merged %d, refused %d, was %llx, is %llx", float_modes[m].name, (int)merged, (int)refused,
                     (unsigned long long)set, (unsigned long long)after);
    }
}

/* Each public function that computes costs, with a share of keys that is no binary fraction. */
static rapt_status prepare_and_ask(const rapt_attention_desc *desc) {
    static char workspace[1 << 20];
    rapt_task_info info;
    rapt_plan plan;
    rapt_status status = rapt_plan_init(&plan, desc, NULL);
    if (status == RAPT_OK)
        status = rapt_prepare(&plan, workspace, sizeof workspace);
    if (status == RAPT_OK)
        status = rapt_task_info_of(&plan, workspace, 0, 0, &info);
    return status == RAPT_OK ? rapt_run(&plan, workspace, sizeof workspace, NULL) : status;
}

static void test_costs_in_float_modes(void **state) {
    enum { TOKENS = 3, LENGTH = 1000 };
    static float query[TOKENS * 8], keys[LENGTH * 8], out[TOKENS * 8];
    static const int32_t lengths[] = {LENGTH}, offsets[] = {0, 1, 1, 1}, entries[] = {0};
    rapt_attention_desc desc = RAPT_ATTENTION_DESC_INIT;
    (void)state;
    desc.batch = desc.query_heads = desc.kv_heads = 1;
    desc.query_length = TOKENS, desc.kv_length = LENGTH, desc.head_dim = 8;
    desc.query = rapt_input_bhsd(query, 1, 1, TOKENS, 8);
    desc.key = desc.value = rapt_input_bhsd(keys, 1, 1, LENGTH, 8);
    desc.out = rapt_output_bhsd(out, 1, 1, TOKENS, 8);
    desc.kv_lengths = rapt_int32_list(lengths, 1);
    desc.key_blocks = (rapt_block_list){.query_tokens = 1, .key_tokens = 100, .offsets = rapt_int32_list(offsets, 4),
                                        .entries = rapt_int32_list(entries, 1)};
    for (int m = 0; m < float_mode_count; m++) {
        const uint64_t before = get_float_mode();
        set_float_mode(float_modes[m].value);
        const uint64_t set = get_float_mode();
        const rapt_status status = prepare_and_ask(&desc);
        const uint64_t after = get_float_mode();
        set_float_mode(before);
        if (status != RAPT_OK || after != set)
            fail_msg("%s: status %d, was %llx, is %llx", float_modes[m].name, (int)status, (unsigned long long)set,
                     (unsigned long long)after);
    }
}

/* The modes matter here: the same arithmetic outside rapt changes. */
static void test_modes_act(void **state) {
    (void)state;
    volatile float tiny = 0x1p-140f, one = 1, three = 3;
    float third = one / three;
    int differing = 0;
    for (int m = 1; m < float_mode_count; m++) {
        if (float_modes[m].value == 0) /* traps */
            continue;
        set_float_mode(float_modes[m].value);
        volatile float product = tiny * one, quotient = one / three;
        set_float_mode(float_modes[0].value);
        differing += bits_of(product) != bits_of(tiny) || bits_of(quotient) != bits_of(third);
    }
    assert_true(differing >= 3);
}

static void test_vector_state(void **state) {
    (void)state;
#if defined(__x86_64__)
    static const uint16_t x87_controls[] = {0x037f, 0x007f, 0x0f7f}; /* 64, 24 bits, to zero */
    struct problem *expected = problem_expected(&calls[0]);
    for (int t = 0; t < table_count; t++) {
        for (int k = 0; k < 3; k++) {
            struct job job = job_new(&calls[0], tables[t]->isa, 1);
            __asm__ volatile("fldcw %0" : : "m"(x87_controls[k]));
            if (rapt_isa_available(RAPT_ISA_AVX2))
                __asm__ volatile("vzeroupper" ::: "memory");
            plan_and_run(&job);
            bool clean = has_clean_vector_state(x87_controls[k]);
            __asm__ volatile("fldcw %0" : : "m"(x87_controls[0]));
            assert_true(clean);
            job_end(&job, expected, "x87 control word");
        }
    }
    problem_free(expected);
#else
    skip();
#endif
}

/* ---- threads with their own modes */

struct moody {
    void (*task)(void *argument, int64_t i);
    void *argument;
    int64_t begin, end;
    uint64_t mode;
    bool changed;
};

static void *run_moody(void *argument) {
    struct moody *moody = argument;
    set_float_mode(moody->mode);
    uint64_t set = get_float_mode();
    for (int64_t i = moody->begin; i < moody->end; i++)
        moody->task(moody->argument, i);
    moody->changed = get_float_mode() != set;
    return NULL;
}

static int moody_parallel_for(void *context, int64_t count, void (*task)(void *, int64_t), void *argument) {
    enum { THREADS = 3 };
    bool *changed = context;
    pthread_t threads[THREADS];
    struct moody moods[THREADS];
    for (int t = 0; t < THREADS; t++) {
        uint64_t mode = float_modes[1 + t % (float_mode_count - 1)].value;
        moods[t] = (struct moody){task, argument, count * t / THREADS, count * (t + 1) / THREADS, mode, false};
        pthread_create(&threads[t], NULL, run_moody, &moods[t]);
    }
    for (int t = 0; t < THREADS; t++) {
        pthread_join(threads[t], NULL);
        *changed = *changed || moods[t].changed;
    }
    return 0;
}

static void test_modes_of_workers(void **state) {
    (void)state;
    struct problem_call call = calls[1];
    call.batch = 4;
    struct problem *expected = problem_expected(&call);
    for (int t = 0; t < table_count; t++) {
        bool changed = false;
        struct job job = job_new(&call, tables[t]->isa, 3);
        job.options.parallel_for = moody_parallel_for;
        job.options.parallel_for_context = &changed;
        plan_and_run(&job);
        assert_false(changed);
        job_end(&job, expected, "modes of workers");
    }
    problem_free(expected);
}

#ifdef _OPENMP
enum { TEAM = 3 };

static void modes_of_team(uint64_t modes[TEAM]) {
#pragma omp parallel
    modes[omp_get_thread_num()] = get_float_mode();
}

/* Workers of libgomp keep a mode of their own; LLVM's OpenMP gives them the caller's whenever a region begins. */
static void test_modes_of_openmp_workers(void **state) {
    (void)state;
    uint64_t caller = get_float_mode(), before[TEAM], after[TEAM];
    struct problem_call call = calls[0];
    call.query_heads = 8;
    call.query_length = 200;
    call.kv_length = 1500;
    struct problem *expected = problem_expected(&call);
    for (int t = 0; t < table_count; t++) {
        struct job job = job_new(&call, tables[t]->isa, TEAM);
        omp_set_num_threads(TEAM);
        set_float_mode(float_modes[1].value);
#pragma omp parallel
        set_float_mode(float_modes[1 + omp_get_thread_num() % 3].value);
        modes_of_team(before);
        plan_and_run(&job);
        modes_of_team(after);
#pragma omp parallel
        set_float_mode(caller);
        set_float_mode(caller);
        assert_int_equal(before[0], float_modes[1].value);
        assert_memory_equal(after, before, sizeof after);
        job_end(&job, expected, "modes of OpenMP workers");
    }
    problem_free(expected);
}
#endif

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_registers),
        cmocka_unit_test(test_modes_act),
        cmocka_unit_test(test_float_modes),
        cmocka_unit_test(test_traps_stay_off),
        cmocka_unit_test(test_merges_in_float_modes),
        cmocka_unit_test(test_costs_in_float_modes),
        cmocka_unit_test(test_vector_state),
        cmocka_unit_test(test_modes_of_workers),
#ifdef _OPENMP
        cmocka_unit_test(test_modes_of_openmp_workers),
#endif
    };
    table_count = machine_tables(tables);
    return cmocka_run_group_tests_name("state", tests, NULL, NULL);
}
