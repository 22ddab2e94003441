/* SPDX-License-Identifier: MIT
 * One matrix, one hash: threads x schedules x batch neighbours x prefill against decode against chunks x strides x
 * instruction set. Hashes are constants, the same on every machine. */
#include <stdatomic.h>
#include <stdio.h>

#include "calls/hash_parts.h"
#include "dispatch.h"
#include "reference/reference.h"
#include "support/cmocka_all.h"
#include "support/pool.h"
#include "support/problem.h"

/* The second third repeats the first in order 2, the last in order 3. */
enum { PLAIN, EVERYTHING, SPLIT_KEYS, DROPPED_KEYS, CONTINUED, KINDS, PROBLEMS = 3 * KINDS };

static const struct rapt_table *tables[RAPT_ISA_COUNT];
static int table_count;
static bool has_problem[RAPT_ISA_COUNT][PROBLEMS]; /* the table has its own kernels */

static const struct problem_call calls[KINDS] = {
    {2, 4, 2, 40, 40, 32, 32, USE_CAUSAL | USE_LSE, DATA_NORMAL, RAPT_ORIGIN_TOP_LEFT, 0, 1, 0},
    {2, 4, 2, 9, 700, 40, 24,
     ((1u << 18) - 1) & ~(unsigned)(USE_QUERY_LENGTHS | USE_VIEW | USE_STANDARD_ALIBI), DATA_NORMAL,
     RAPT_ORIGIN_GIVEN, RAPT_WEIGHTS_SOFTMAX, 795, 0},
    {1, 4, 1, 3, 5200, 32, 32, USE_LSE, DATA_LOUD, 0, 0, 3, 0},
    {1, 2, 2, 70, 300, 16, 17, USE_LSE | USE_CAUSAL | USE_WINDOW | USE_STANDARD_ALIBI, DATA_NORMAL,
     RAPT_ORIGIN_GIVEN, 0, 4, 0},
    {2, 4, 1, 3, 4700, 16, 24, USE_LSE | USE_SINKS | USE_WEIGHTS | USE_INITIAL_STATE | USE_FINAL_STATE, DATA_NORMAL,
     RAPT_ORIGIN_UNSTATED, RAPT_WEIGHTS_SOFTMAX, 5, 0},
};

/* What every way to compute must give. */
static const uint64_t expected_hashes[PROBLEMS] = {
    0x9883fe6f100dde4du, 0x5956e2b68ae43ee4u, 0x00ed211a0c832c4cu, 0x8af95daaf4adfc16u, 0x2d02010bb698dd1cu,
    0xe9c4aecf7f53dd71u, 0xb432107e714d5d77u, 0x925cb1aea7bb43c6u, 0x5723a398411a6eafu, 0x5e8d40bab612b191u,
    0x1bfdcaca01749fbfu, 0x1064852c1363ff1eu, 0x218c108e6a7aa7feu, 0x0035661911a558e9u, 0x1990db30143d97c6u};

static int kind_of(int number) { return number % KINDS; }
static int32_t order_of(int number) { return number < KINDS ? RAPT_NUMERICS_DEFAULT : number / KINDS + 1; }

static int format_of(int number) {
    const int halves = number % 2 ? RAPT_FORMAT_BF16 : RAPT_FORMAT_F16;
    return order_of(number) != RAPT_NUMERICS_ORDER_2 ? RAPT_FORMAT_F32 : halves;
}

/* Each problem's data are drawn once. */
static struct problem *make_problem(int number, uint64_t layout_seed, rapt_isa isa) {
    static struct problem *plain[PROBLEMS];
    static const int64_t position_230[] = {230};
    const struct problem_layout layout = {.seed = layout_seed};
    struct problem_call call = calls[kind_of(number)];
    call.numerics = order_of(number);
    call.key_format = format_of(number);
    plain[number] = plain[number] ? plain[number] : problem_new(&call);
    struct problem *problem = problem_laid_out(plain[number], &layout);
    problem->desc.isa = isa;
    if (kind_of(number) == DROPPED_KEYS) {
        problem->desc.window_left = 100;
        problem->desc.window_right = -1;
        problem->desc.query_position = (rapt_index_list){.data = position_230, .index_bytes = 8};
    }
    return problem;
}

/* ---- schedules */

struct shuffled {
    int threads;
    struct random random;
};

struct shuffled_loop {
    void (*task)(void *task_argument, int64_t i);
    void *task_argument;
    int64_t *order, count;
    _Atomic int64_t next;
};

static void take_shuffled(void *argument, int number) {
    struct shuffled_loop *loop = argument;
    int64_t i;
    while ((i = atomic_fetch_add(&loop->next, 1)) < loop->count)
        loop->task(loop->task_argument, loop->order[i]);
    (void)number;
}

static int shuffled_for(void *context, int64_t count, void (*task)(void *task_argument, int64_t i),
                        void *task_argument) {
    struct shuffled *shuffled = context;
    struct shuffled_loop loop = {task, task_argument, test_alloc((size_t)(count + 1) * 8), count, 0};
    for (int64_t i = 0; i < count; i++) {
        int64_t other = random_below(&shuffled->random, i + 1);
        loop.order[i] = loop.order[other];
        loop.order[other] = i;
    }
    pool_run(shuffled->threads, take_shuffled, &loop);
    return 0;
}

struct own_threads {
    const rapt_plan *plan;
    void *workspace;
    int32_t phase;
    _Atomic int64_t left, failures;
};

static void take_last(void *argument, int number) {
    struct own_threads *own = argument;
    int64_t i;
    while ((i = atomic_fetch_sub(&own->left, 1) - 1) >= 0)
        own->failures += rapt_run_task(own->plan, own->workspace, own->phase, i) != RAPT_OK;
    (void)number;
}

enum schedule { OPENMP, SHUFFLED, RUN_TASK, SCHEDULES, SPECIFICATION = SCHEDULES };

static void run(const rapt_attention_desc *desc, enum schedule schedule, int threads) {
    rapt_plan plan;
    rapt_message message;
    size_t bytes;
    if (schedule == SPECIFICATION) {
        rapt_reference_attention(desc);
        return;
    }
    if (rapt_plan_init(&plan, desc, &message) != RAPT_OK)
        fail_msg("%s", message.text);
    assert_int_equal(rapt_plan_workspace_bytes(&plan, threads, &bytes), RAPT_OK);
    void *workspace = test_alloc(bytes);
    struct shuffled shuffled = {threads, {(uint64_t)threads}};
    rapt_run_options options = RAPT_RUN_OPTIONS_INIT;
    options.max_threads = threads;
    options.parallel_for = schedule == SHUFFLED ? shuffled_for : NULL;
    options.parallel_for_context = &shuffled;
    if (schedule != RUN_TASK) {
        assert_int_equal(rapt_run(&plan, workspace, bytes, &options), RAPT_OK);
        return;
    }
    assert_int_equal(rapt_prepare(&plan, workspace, bytes), RAPT_OK);
    for (int32_t phase = 0; phase < rapt_phase_count(&plan); phase++) {
        struct own_threads own = {.plan = &plan, .workspace = workspace, .phase = phase};
        own.left = rapt_task_count(&plan, phase);
        pool_run(threads, take_last, &own);
        assert_int_equal(own.failures, 0);
    }
}

/* The whole problem, in parts of so many sequences and queries. */
static uint64_t hash_in_parts(int number, uint64_t layout, rapt_isa isa, int64_t batch, int64_t queries,
                              enum schedule schedule, int threads) {
    struct problem *problem = make_problem(number, layout, isa);
    const struct problem_call *c = &problem->call;
    for (int64_t b = 0; b < c->batch; b += batch)
        for (int64_t i = 0; i < c->query_length; i += queries) {
            struct part part = {b, c->batch - b < batch ? c->batch - b : batch, i,
                                c->query_length - i < queries ? c->query_length - i : queries};
            struct part_lists lists;
            rapt_attention_desc desc = part_of(&problem->desc, part, &lists);
            run(&desc, schedule, threads);
        }
    uint64_t hash = problem_hash(HASH_START, problem);
    problem_free(problem);
    test_free_all();
    return hash;
}

/* A unit has its own kernels for 16-bit numbers. */
static bool has_own(const struct rapt_table *table, int number) {
    const struct rapt_table *having[RAPT_ISA_COUNT];
    const int count = tables_of(order_of(number), having);
    if (rapt_isa_is_unit(table->isa) && format_of(number) != RAPT_FORMAT_BF16 &&
        format_of(number) != RAPT_FORMAT_F16)
        return false;
    for (int t = 0; t < count; t++)
        if (having[t] == table)
            return true;
    return false;
}

static void find_problems(void) {
    table_count = tables_of(RAPT_NUMERICS_ORDER_2, tables);
    assert_true(table_count >= machine_tables(tables)); /* every instruction set has order 2 */
    table_count = tables_of(RAPT_NUMERICS_ORDER_2, tables);
    for (int t = 0; t < table_count; t++) {
        int count = 0;
        for (int number = 0; number < PROBLEMS; number++)
            count += has_problem[t][number] = has_own(tables[t], number);
        print_message("# %s: %d of %d problems\n", tables[t]->name, count, PROBLEMS);
    }
}

/* The first from this number on whose order the table has. */
static int next_problem(int t, int number) {
    while (number < PROBLEMS && !has_problem[t][number])
        number++;
    return number;
}

static void expect_hash(uint64_t hash, int number, const char *who, const char *what, int64_t detail) {
    if (hash != expected_hashes[number])
        fail_msg("problem %d on %s, %s %lld: hash %#018llx, expected %#018llx", number, who, what,
                 (long long)detail, (unsigned long long)hash, (unsigned long long)expected_hashes[number]);
}

/* ---- the matrix; emulators run one entry of a row, and another of the next; so does the scalar table, the slowest, if
 * there are others */

static bool is_emulated(void) { return scaled_work(100) < 100; }

static bool is_taken(int t, int entry, int entries, int row) {
    const bool is_slow = tables[t]->isa == RAPT_ISA_SCALAR && table_count > 1;
    return !(is_emulated() || is_slow) || entry == row % entries;
}

static void test_reference(void **state) {
    static const int64_t queries[] = {INT32_MAX, 1, 7};
    for (int number = 0; number < PROBLEMS; number++)
        for (int64_t layout = 0; layout < (is_emulated() ? 1 : 3); layout++)
            expect_hash(hash_in_parts(number, (uint64_t)layout, RAPT_ISA_AUTO, INT32_MAX, queries[layout],
                                      SPECIFICATION, 1),
                        number, "the reference", "queries at once", queries[layout]);
    (void)state;
}

static void test_schedules(void **state) {
    static const char *const names[SCHEDULES] = {"OpenMP threads", "shuffled parallel-for, threads",
                                                 "run_task, threads"};
    static const int threads[] = {2, 1, 3, 5, 8};
    for (int t = 0; t < table_count; t++)
        for (int number = 0; (number = next_problem(t, number)) < PROBLEMS; number++)
            for (int schedule = 0; schedule < SCHEDULES; schedule++)
                for (int i = 0; i < (is_emulated() ? 1 : 5) && is_taken(t, schedule, SCHEDULES, number + t); i++)
                    expect_hash(hash_in_parts(number, 0, tables[t]->isa, INT32_MAX, INT32_MAX,
                                              (enum schedule)schedule, threads[i]),
                                number, tables[t]->name, names[schedule], threads[i]);
    (void)state;
}

static void test_parts(void **state) {
    static const int64_t queries[] = {1, 2, 5, 13, 33, INT32_MAX};
    const int64_t last_batch = is_emulated() ? 1 : 2;
    for (int t = 0; t < table_count; t++)
        for (int number = 0; (number = next_problem(t, number)) < PROBLEMS; number++)
            for (int64_t batch = 1; batch <= last_batch; batch++)
                for (int q = 0; q < 6; q++)
                    if (is_taken(t, q, 6, number + t))
                        expect_hash(hash_in_parts(number, 0, tables[t]->isa, batch, queries[q], OPENMP, 2),
                                    number, tables[t]->name,
                                    batch == 1 ? "each sequence alone, queries at once" : "queries at once",
                                    queries[q]);
    (void)state;
}

static void test_strides(void **state) {
    for (int t = 0; t < table_count; t++)
        for (int number = 0; (number = next_problem(t, number)) < PROBLEMS; number++)
            for (int64_t layout = 1; layout <= scaled_work(12) && is_taken(t, 0, 2, number + t); layout++)
                expect_hash(hash_in_parts(number, (uint64_t)layout, tables[t]->isa, INT32_MAX,
                                          layout % 2 ? INT32_MAX : 7, OPENMP, 2),
                            number, tables[t]->name, "layout", layout);
    (void)state;
}

/* A cache without its first keys gives the bits of a full one. */
static void test_dropped_keys(void **state) {
    static const int64_t drops[] = {1, 31, 64, 100, 129, 130};
    for (int t = 0; t < table_count; t++)
        for (int n = 0; n < 18; n++) {
            const int d = n % 6, number = DROPPED_KEYS + n / 6 * KINDS;
            if (!has_problem[t][number])
                continue;
            struct problem *problem = make_problem(number, 5, tables[t]->isa);
            struct part_lists lists;
            rapt_attention_desc desc =
                part_of(&problem->desc, (struct part){0, 1, 0, problem->call.query_length}, &lists);
            desc.key.data = tensor_at(&desc.key, 0, 0, drops[d]);
            desc.value.data = tensor_at(&desc.value, 0, 0, drops[d]);
            desc.kv_length -= drops[d];
            lists.kv_length[0] -= drops[d];
            lists.key_position[0] = drops[d];
            run(&desc, OPENMP, 2);
            expect_hash(problem_hash(HASH_START, problem), number, tables[t]->name, "keys dropped:", drops[d]);
            problem_free(problem);
            test_free_all();
        }
    (void)state;
}

/* ---- the hash notices changes */

static void expect_other_hash(struct problem *problem, int number, const char *what) {
    run(&problem->desc, OPENMP, 1);
    if (problem_hash(HASH_START, problem) == expected_hashes[number])
        fail_msg("%s does not change the hash of problem %d", what, number);
    problem_free(problem);
    test_free_all();
}

/* The keys of the first head, each with another last bit in its first element. */
static void change_keys(struct problem *problem) {
    const size_t bytes = problem->arrays[ARRAY_KEY].memory.bytes;
    problem->desc.key.data = memcpy(test_alloc(bytes), problem->desc.key.data, bytes);
    for (int64_t j = 0; j < problem->call.kv_length; j++) {
        char *key = tensor_at(&problem->desc.key, 0, 0, j);
        *key = (char)(*key ^ 1);
    }
}

static void test_controls(void **state) {
    static const int64_t elsewhere[] = {100};
    const int first = is_emulated() ? table_count - 1 : 0;
    for (int t = first; t < table_count; t++)
        for (int number = 0; (number = next_problem(t, number)) < PROBLEMS; number++) {
            struct problem *problem = make_problem(number, 0, tables[t]->isa);
            change_keys(problem);
            expect_other_hash(problem, number, "the last bit of one element of the keys");

            problem = make_problem(number, 0, tables[t]->isa);
            float scale = kind_of(number) == EVERYTHING ? problem->desc.scale : 0.2f;
            problem->desc.features |= RAPT_SCALE;
            problem->desc.scale = order_of(number) == RAPT_NUMERICS_ORDER_2 ? scale * 1.01f
                                                                                 : float_of(bits_of(scale) + 1);
            expect_other_hash(problem, number, "the scale");
        }
    for (int t = first; t < table_count && has_problem[t][SPLIT_KEYS]; t++) {
        struct problem *problem = make_problem(SPLIT_KEYS, 0, tables[t]->isa);
        problem->desc.key_position = (rapt_index_list){.data = elsewhere, .index_bytes = 8};
        expect_other_hash(problem, SPLIT_KEYS, "an anchor of blocks and chunks");
    }
    (void)state;
}

int main(void) {
    find_problems();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_reference),    cmocka_unit_test(test_schedules),
        cmocka_unit_test(test_parts),        cmocka_unit_test(test_strides),
        cmocka_unit_test(test_dropped_keys), cmocka_unit_test(test_controls),
    };
    return cmocka_run_group_tests_name("hash", tests, NULL, NULL);
}
