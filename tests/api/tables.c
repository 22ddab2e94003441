/* SPDX-License-Identifier: MIT
 * Offsets and page tables that change after planning, and while tasks run, between guard pages, so that stray accesses
 * fault. */
#include "support/cmocka_all.h"
#include "support/problem.h"

static const rapt_run_options serial = {.struct_size = sizeof serial, .max_threads = 1};

enum { LISTS = 6, MOST = 64 };

struct lists {
    rapt_index_list *of[LISTS];
    int64_t count[LISTS];
    int64_t legal[LISTS][MOST], now[LISTS][MOST];
};

static int64_t entry(const rapt_index_list *list, int64_t i) {
    return list->index_bytes == 4 ? ((const int32_t *)list->data)[i] : ((const int64_t *)list->data)[i];
}

/* Moves a descriptor's lists to writable memory. */
static void take_lists(struct lists *lists, rapt_attention_desc *desc) {
    rapt_index_list *const all[LISTS] = {&desc->query_offsets,     &desc->kv_offsets,
                                         &desc->key_pages.entries, &desc->value_pages.entries,
                                         &desc->key_pages.offsets, &desc->value_pages.offsets};
    for (int i = 0; i < LISTS; i++) {
        const rapt_page_table *table = i % 2 ? &desc->value_pages : &desc->key_pages;
        const bool entries = i == 2 || i == 3;
        lists->of[i] = all[i];
        lists->count[i] = !all[i]->data ? 0
                          : !entries || table->kind == RAPT_PAGES_ROW ? desc->batch + (entries ? 0 : 1)
                          : table->kind == RAPT_PAGES_DENSE           ? desc->batch * all[i]->count
                                                                      : all[i]->count;
        assert_true(lists->count[i] <= MOST);
        for (int64_t k = 0; k < lists->count[i]; k++)
            lists->legal[i][k] = entry(all[i], k);
        if (lists->count[i] > 0)
            *all[i] = (rapt_index_list){.data = lists->now[i], .index_bytes = 8, .count = all[i]->count};
    }
    if (desc->key_pages.kind == RAPT_PAGES_DENSE) {
        desc->key_pages.batch_stride_bytes = 8 * desc->key_pages.entries.count;
        desc->value_pages.batch_stride_bytes = 8 * desc->value_pages.entries.count;
    }
    memcpy(lists->now, lists->legal, sizeof lists->now);
}

static void spoil(struct lists *lists, struct random *random) {
    static const int64_t extremes[] = {0, 1, -1, 4, 1000, INT32_MAX, INT32_MIN, INT64_MAX, INT64_MIN, INT64_C(1) << 40};
    memcpy(lists->now, lists->legal, sizeof lists->now);
    for (int64_t changes = random_between(random, 1, 4); changes > 0; changes--) {
        const int64_t i = random_below(random, LISTS);
        if (lists->count[i] > 0)
            lists->now[i][random_below(random, lists->count[i])] = extremes[random_below(random, 10)];
    }
}

/* Prepared with legal lists, run with others: runs use none of their numbers, or check them again. */
static void run_spoilt(const rapt_plan *plan, struct guarded *workspace, struct lists *lists, struct random *random) {
    memcpy(lists->now, lists->legal, sizeof lists->now);
    assert_int_equal(rapt_prepare(plan, workspace->data, workspace->bytes), RAPT_OK);
    for (int32_t phase = 0; phase < rapt_phase_count(plan); phase++)
        for (int64_t task = 0; task < rapt_task_count(plan, phase); task++) {
            spoil(lists, random);
            assert_int_equal(rapt_run_task(plan, workspace->data, phase, task), RAPT_OK);
        }
}

static int check(const struct problem_call *call, const struct problem_layout *layout, struct random *random) {
    struct problem *plain = problem_expected(call), *problem = problem_laid_out(plain, layout);
    static struct lists lists;
    rapt_plan plan;
    size_t bytes;
    int refused = 0;
    take_lists(&lists, &problem->desc);
    assert_int_equal(rapt_plan_init(&plan, &problem->desc, NULL), RAPT_OK);
    assert_int_equal(rapt_plan_workspace_bytes(&plan, 1, &bytes), RAPT_OK);
    struct guarded workspace = guarded_new(bytes, GUARD_END, 0, 0xff);
    for (int round = 0; round < 20; round++) {
        rapt_plan other;
        spoil(&lists, random);
        const rapt_status status = rapt_run(&plan, workspace.data, bytes, &serial);
        assert_true(status == RAPT_OK || status == RAPT_INVALID_VALUE);
        refused += status != RAPT_OK;
        rapt_plan_init(&other, &problem->desc, NULL);
        run_spoilt(&plan, &workspace, &lists, random);
        for (int name = 0; name < ARRAYS; name++)
            assert_true(!problem->arrays[name].memory.data || guarded_is_clean(&problem->arrays[name].memory));
        assert_true(guarded_is_clean(&workspace));
    }
    memcpy(lists.now, lists.legal, sizeof lists.now);
    assert_int_equal(rapt_run(&plan, workspace.data, bytes, &serial), RAPT_OK);
    assert_true(problem_same(problem, plain));
    guarded_free(&workspace);
    problem_free(problem);
    problem_free(plain);
    return refused;
}

static void test_changed_tables(void **state) {
    static const int64_t page_tokens[] = {1, 3, 16, 64};
    struct random random = {9};
    int refused = 0;
    (void)state;
    for (uint64_t round = 1; round <= 60; round++) {
        const struct problem_call call = {.batch = 2, .query_heads = 4, .kv_heads = 2,
                                          .query_length = round % 2 ? 1 : 40, .kv_length = (int64_t)(7 + round % 5),
                                          .head_dim = 16, .value_dim = 16,
                                          .use = round % 3 ? USE_KV_LENGTHS | USE_QUERY_LENGTHS : 0, .seed = round};
        const struct problem_layout layout = {.seed = round, .packed = (int)(round % 4),
                                              .page_kind = (int32_t)(round / 4 % 4),
                                              .page_tokens = page_tokens[round / 16 % 4]};
        refused += check(&call, &layout, &random);
        test_free_all();
    }
    assert_true(refused > 100);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_changed_tables)};
    return cmocka_run_group_tests_name("api_tables", tests, NULL, NULL);
}
