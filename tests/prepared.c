/* SPDX-License-Identifier: MIT
 * Tasks run in a workspace that was prepared for their plan, and in no other:
 * not in any bytes, not in that of another plan, not in one whose preparation
 * failed after an earlier one was good. */
#include "cmocka_all.h"
#include "small.h"

enum { QUERIES = 3, KEYS = 700 };

struct prepared {
    struct small call;
    int32_t lengths[BATCH];
    rapt_plan plan;
    size_t bytes;
    char *workspace;
};

static void plan_call(struct prepared *p, int64_t keys) {
    p->call = small_new(QUERIES, keys);
    for (int b = 0; b < BATCH; b++)
        p->lengths[b] = (int32_t)keys - 100 * b;
    p->call.desc.kv_lengths.data = p->lengths;
    p->call.desc.kv_lengths.index_bytes = 4;
    assert_int_equal(rapt_plan_init(&p->plan, &p->call.desc, NULL), RAPT_OK);
    assert_int_equal(rapt_plan_workspace_bytes(&p->plan, 2, &p->bytes), RAPT_OK);
    p->workspace = test_alloc(p->bytes);
}

static void expect_refused(const struct prepared *p, char *workspace, const char *what) {
    const int64_t count = BATCH * HEADS * QUERIES * DIM;
    for (int64_t task = 0; task < rapt_task_count(&p->plan, 0); task++)
        if (rapt_run_task(&p->plan, workspace, 0, task) == RAPT_OK)
            fail_msg("task %lld runs in %s", (long long)task, what);
    for (int64_t i = 0; i < count; i++)
        assert_int_equal(bits_of(p->call.out[i]), UINT32_MAX);
}

static void test_any_bytes(void **state) {
    static const int fills[] = {0, 0xff, 0x5a};
    struct prepared p;
    plan_call(&p, KEYS);
    for (int i = 0; i < 3; i++) {
        memset(p.workspace, fills[i], p.bytes);
        expect_refused(&p, p.workspace, "a workspace that was not prepared");
    }
    test_free_all();
    (void)state;
}

static void test_other_plan(void **state) {
    struct prepared p, other;
    plan_call(&p, KEYS);
    plan_call(&other, 5 * KEYS);
    assert_int_equal(rapt_prepare(&other.plan, other.workspace, other.bytes), RAPT_OK);
    expect_refused(&p, other.workspace, "another plan's workspace");
    test_free_all();
    (void)state;
}

static void test_failed_preparation(void **state) {
    static const int32_t illegal[] = {KEYS + 1, -1, INT32_MAX, INT32_MIN};
    struct prepared p;
    plan_call(&p, KEYS);
    for (int i = 0; i < 4; i++) {
        assert_int_equal(rapt_prepare(&p.plan, p.workspace, p.bytes), RAPT_OK);
        const int32_t before = p.lengths[1];
        p.lengths[1] = illegal[i];
        assert_int_equal(rapt_prepare(&p.plan, p.workspace, p.bytes), RAPT_INVALID_VALUE);
        expect_refused(&p, p.workspace, "a workspace whose preparation failed");
        p.lengths[1] = before;
    }
    assert_int_equal(rapt_prepare(&p.plan, p.workspace, p.bytes), RAPT_OK);
    assert_int_equal(rapt_run_task(&p.plan, p.workspace, 0, 0), RAPT_OK);
    test_free_all();
    (void)state;
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_any_bytes), cmocka_unit_test(test_other_plan),
                                       cmocka_unit_test(test_failed_preparation)};
    return cmocka_run_group_tests_name("prepared", tests, NULL, NULL);
}
