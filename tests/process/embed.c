/* SPDX-License-Identifier: MIT
 * Two copies of rapt in one process: two shared objects that each contain the archive with hidden symbols. */
#define _GNU_SOURCE /* RTLD_DEFAULT */
#include <dlfcn.h>

#include "process/embed_part.h"
#include "support/cmocka_all.h"

enum { OK = 0, INVALID_PLAN = 20, PLAN_WORDS = 512 };

static void test_both_work(void **state) {
    const struct embed_part *const parts[] = {&embed_one, &embed_two};
    (void)state;
    for (int i = 0; i < 2; i++) {
        float out[2] = {0, 0};
        assert_int_equal(parts[i]->attend(out), OK);
        assert_true(out[0] == 4 && out[1] == 6); /* the mean: scores are equal */
    }
}

static void test_they_do_not_meet(void **state) {
    (void)state;
    assert_ptr_not_equal(embed_one.where(), embed_two.where());
    assert_null(dlsym(RTLD_DEFAULT, "rapt_attention"));
    assert_null(dlsym(RTLD_DEFAULT, "rapt_plan_init"));
    assert_non_null(dlsym(RTLD_DEFAULT, "embed_one"));
}

/* Plans depend on their copy's kernels and layout. */
static void test_plans_stay_apart(void **state) {
    uint64_t plan[PLAN_WORDS];
    float out[2] = {0, 0};
    (void)state;
    assert_int_equal(embed_one.plan(plan, out), OK);
    assert_int_equal(embed_two.run(plan), INVALID_PLAN);
    assert_true(out[0] == 0 && out[1] == 0);
    assert_int_equal(embed_one.run(plan), OK);
    assert_true(out[0] == 4 && out[1] == 6);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_both_work), cmocka_unit_test(test_they_do_not_meet),
                                       cmocka_unit_test(test_plans_stay_apart)};
    return cmocka_run_group_tests_name("embed", tests, NULL, NULL);
}
