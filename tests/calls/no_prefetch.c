/* SPDX-License-Identifier: MIT
 * The library without prefetch.c: all errands are NULL, all rows are staged on demand, and bits are the same, whichever
 * cache the machine prefetches into. The functions below replace the library's, so the linker leaves its object out. */
#include "attend/prefetch.h"
#include "cpu.h"

#include "support/cmocka_all.h"
#include "support/problem.h"

static int64_t calls_of_block, calls_of_tile;

void rapt_prefetch_block(struct rapt_loop *loop, int64_t base) {
    __atomic_add_fetch(&calls_of_block, 1, __ATOMIC_RELAXED);
    (void)loop, (void)base;
}

void rapt_prefetch_tile(struct rapt_loop *loop, const struct rapt_tile *tile, int64_t base,
                        struct rapt_errands *errands, struct rapt_block *block) {
    __atomic_add_fetch(&calls_of_tile, 1, __ATOMIC_RELAXED);
    (void)loop, (void)tile, (void)base, (void)errands, (void)block;
}

static void run(const rapt_attention_desc *desc) {
    rapt_plan plan;
    rapt_message message;
    size_t bytes;
    if (rapt_plan_init(&plan, desc, &message) != RAPT_OK)
        fail_msg("%s", message.text);
    assert_int_equal(rapt_plan_workspace_bytes(&plan, 2, &bytes), RAPT_OK);
    assert_int_equal(rapt_run(&plan, test_alloc(bytes), bytes, NULL), RAPT_OK);
}

enum { REQUESTS = RAPT_REQUESTS_FAR_INTO_L1 + 1 };

static void expect_same(struct problem *problem, const struct problem *expected) {
    const struct rapt_table *tables[RAPT_ISA_COUNT];
    const int table_count = machine_tables(tables), ways = scaled_work(100) < 10 ? 1 : REQUESTS; /* 1: the usual */
    for (int t = 0; t < ways * table_count; t++) {
        atomic_store(&rapt_requests_here, t % ways);
        problem->desc.isa = tables[t / ways]->isa;
        problem_reset(problem);
        run(&problem->desc);
        if (!problem_same(problem, expected) || !problem_is_clean(problem))
            fail_msg("%s: %s", tables[t / ways]->name, problem_text(&problem->call));
    }
}

/* What tests/calls/calls.c checks of the whole library. */
static void test_random_calls(void **state) {
    for (int64_t seed = scaled_work(60); seed > 0; seed--) {
        const struct problem_call call = random_call_of_any((uint64_t)seed, 400000);
        const struct problem_layout layout = {.seed = (uint64_t)seed};
        struct problem *expected = problem_expected(&call), *problem = problem_laid_out(expected, &layout);
        expect_same(problem, expected);
        problem_free(problem);
        problem_free(expected);
        test_free_all();
    }
    assert_true(calls_of_block > 0 && calls_of_tile > 0);
    (void)state;
}

/* The same rows at a stride that maps them to few cache sets. */
static void spread(rapt_tensor *tensor, const struct problem_call *call, int64_t dim) {
    enum { STRIDE = 2048 };
    const int64_t heads = call->kv_heads, tokens = call->kv_length, rows = call->batch * heads * tokens;
    char *memory = test_alloc((size_t)rows * STRIDE);
    for (int64_t row = 0; row < rows; row++)
        memcpy(memory + row * STRIDE, tensor_at(tensor, row / tokens / heads, row / tokens % heads, row % tokens),
               (size_t)dim * sizeof(float));
    tensor->data = memory;
    tensor->token_stride_bytes = STRIDE;
    tensor->head_stride_bytes = tokens * STRIDE;
    tensor->batch_stride_bytes = heads * tokens * STRIDE;
    tensor->extent_bytes = 0;
}

/* Every block is staged in its turn, some again because excluded values are not finite. */
static void test_staged(void **state) {
    for (int data = 0; data < DATA_KINDS; data++)
        for (int causal = 0; causal < 2; causal++) {
            const struct problem_call call = {.batch = 1,
                                              .query_heads = 2,
                                              .kv_heads = 1,
                                              .query_length = 130,
                                              .kv_length = 1100,
                                              .head_dim = 20,
                                              .value_dim = 9,
                                              .use = USE_LSE | (causal ? USE_CAUSAL : USE_MASK),
                                              .data = (enum data_kind)data,
                                              .origin = RAPT_ORIGIN_BOTTOM_RIGHT,
                                              .seed = 5};
            struct problem *problem = problem_new(&call), *expected = problem_expected(&call);
            spread(&problem->desc.key, &call, call.head_dim);
            spread(&problem->desc.value, &call, call.value_dim);
            rapt_plan plan;
            assert_int_equal(rapt_plan_init(&plan, &problem->desc, NULL), RAPT_OK);
            assert_true(rapt_body_of(&plan)->each.stages[0] && rapt_body_of(&plan)->each.stages[1]);
            expect_same(problem, expected);
            problem_free(problem);
            problem_free(expected);
            test_free_all();
        }
    (void)state;
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_random_calls), cmocka_unit_test(test_staged)};
    return cmocka_run_group_tests_name("no_prefetch", tests, NULL, NULL);
}
