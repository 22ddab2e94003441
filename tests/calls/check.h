/* SPDX-License-Identifier: MIT
 * A call on some tables, each in one of several layouts, against the reference: in order 1, or in NUMERICS. */
#ifndef RAPT_TESTS_CALLS_CHECK_H
#define RAPT_TESTS_CALLS_CHECK_H

#include "reference/reference.h"
#include "support/cmocka_all.h"
#include "support/problem.h"

#ifndef NUMERICS
#define NUMERICS 0
#endif

static const struct rapt_table *tables[RAPT_ISA_COUNT];
static int table_count;

/* With a plan and a workspace for a few tasks, or in one call. */
static rapt_status answer(const rapt_attention_desc *desc, bool with_plan, rapt_message *message) {
    if (!with_plan)
        return rapt_attention(desc, NULL, message);
    rapt_plan plan;
    size_t bytes = 0;
    rapt_status status = rapt_plan_init(&plan, desc, message);
    if (status == RAPT_OK)
        status = rapt_plan_workspace_bytes(&plan, 2, &bytes);
    return status == RAPT_OK ? rapt_run(&plan, test_alloc(bytes), bytes, NULL) : status;
}

/* Half of the calls have a batch per sequence; the others pack sequences, page keys, or both. */
static struct problem_layout layout_of(const struct problem_call *call) {
    struct problem_layout layout = {.seed = call->seed};
    struct random random = {call->seed * 31 + 7};
    static const int64_t page_tokens[] = {1, 2, 7, 16, 16, 32, 64, 100, 128, 256, 257, 600};
    if (call->seed % 2)
        return layout;
    if (random_chance(&random, 50))
        layout.packed = (int)random_below(&random, 4);
    if (random_chance(&random, 50)) {
        layout.page_kind = (int32_t)random_between(&random, RAPT_PAGES_DENSE, RAPT_PAGES_ROW);
        layout.page_tokens = page_tokens[random_below(&random, 12)];
    }
    return layout;
}

/* The scalar table is as slow as all others together: with others, it gets every third call. */
static bool is_left_out(const struct rapt_table *table, const struct problem_call *call) {
    struct random random = {call->seed};
    return table->isa == RAPT_ISA_SCALAR && table_count > 1 && random_below(&random, 3) > 0;
}

/* Adds what features depend on. */
static inline unsigned with_partners(unsigned use) {
    if ((use & USE_FILL) || ((use & USE_SPARSE) && !(use & USE_BIAS)))
        use |= USE_MASK;
    if (use & (USE_HEAD_FACTOR | USE_BIAS_16))
        use |= USE_BIAS;
    if (use & USE_NO_OUT)
        use |= USE_FINAL_STATE;
    return use;
}

static void check_call(const struct problem_call *call) {
    const struct problem_layout layout = layout_of(call);
    struct problem *expected = problem_expected(call), *problem = problem_laid_out(expected, &layout);
    for (int t = 0; t < table_count; t++) {
        rapt_message message = {""};
        const char *name = tables[t]->name;
        if (is_left_out(tables[t], call))
            continue;
        problem->desc.isa = tables[t]->isa;
        problem_reset(problem);
        rapt_status status = answer(&problem->desc, (call->seed + (uint64_t)t) % 2, &message);
        if (status != RAPT_OK)
            fail_msg("%s: %s: %s; %s", name, rapt_status_text(status), message.text, problem_text(call));
        if (!problem_same(problem, expected) || !problem_is_clean(problem))
            fail_msg("%s: packed %d, page kind %d of %lld tokens: %s", name, layout.packed, layout.page_kind,
                     (long long)layout.page_tokens, problem_text(call));
    }
    problem_free(problem);
    problem_free(expected);
    test_free_all();
}

/* Replaces all others if there are no tables. */
static void test_absent(void **state) {
    (void)state;
    print_message("# the library has no order %d\n", NUMERICS);
    skip();
}

#endif
