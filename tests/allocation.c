/* SPDX-License-Identifier: MIT
 * Memory that runs out. The linker sends every allocation of this program's
 * own objects, rapt's among them, to the functions below. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "scene_run.h"
#include "support.h"

static bool counting;
static int allocations, frees, fail_at; /* fail_at: number of the allocation that fails, 0 = none */

static bool fails(void) { return counting && ++allocations == fail_at; }

void *__real_malloc(size_t bytes);
void *__real_calloc(size_t count, size_t bytes);
void *__real_realloc(void *memory, size_t bytes);
void *__real_aligned_alloc(size_t alignment, size_t bytes);
int __real_posix_memalign(void **memory, size_t alignment, size_t bytes);
void __real_free(void *memory);
void *__wrap_malloc(size_t bytes);
void *__wrap_calloc(size_t count, size_t bytes);
void *__wrap_realloc(void *memory, size_t bytes);
void *__wrap_aligned_alloc(size_t alignment, size_t bytes);
int __wrap_posix_memalign(void **memory, size_t alignment, size_t bytes);
void __wrap_free(void *memory);

void *__wrap_malloc(size_t bytes) { return fails() ? NULL : __real_malloc(bytes); }
void *__wrap_calloc(size_t count, size_t bytes) { return fails() ? NULL : __real_calloc(count, bytes); }
void *__wrap_realloc(void *memory, size_t bytes) { return fails() ? NULL : __real_realloc(memory, bytes); }
void *__wrap_aligned_alloc(size_t alignment, size_t bytes) {
    return fails() ? NULL : __real_aligned_alloc(alignment, bytes);
}
int __wrap_posix_memalign(void **memory, size_t alignment, size_t bytes) {
    return fails() ? 12 /* ENOMEM */ : __real_posix_memalign(memory, alignment, bytes);
}
void __wrap_free(void *memory) {
    frees += counting && memory;
    __real_free(memory);
}

static void start_counting(int fail) {
    allocations = frees = 0;
    fail_at = fail;
    counting = true;
}

static const struct scene_layout plain = {0};
static const struct scene_call calls[] = {
    {2, 4, 2, 100, 300, 16, 16, WITH_EVERYTHING, RAPT_ORIGIN_BOTTOM_RIGHT, RAPT_WEIGHTS_SOFTMAX, 1, 0, 0},
    {1, 4, 2, 1, 5000, 24, 17, WITH_LSE, RAPT_ORIGIN_UNSTATED, RAPT_WEIGHTS_NONE, 2, 0, 0},
    {1, 1, 1, 1, 3, 4, 4, 0, RAPT_ORIGIN_UNSTATED, RAPT_WEIGHTS_NONE, 3, 0, 0},
};
enum { CALLS = sizeof calls / sizeof *calls };

/* Each allocation of the one-call form fails once: a status, nothing written, nothing lost. */
static void test_one_call(void **state) {
    (void)state;
    for (int c = 0; c < CALLS; c++) {
        struct scene *expected = scene_expected(&calls[c]), *scene = scene_new(&calls[c], &plain);
        int needed = 0;
        for (int fail = 1; fail <= needed + 1; fail++) {
            rapt_message message;
            start_counting(fail);
            rapt_status status = rapt_attention(&scene->desc, &message);
            counting = false;
            needed = allocations >= fail ? allocations : needed;
            if (fail > needed)
                break; /* none failed any more */
            assert_int_equal(status, RAPT_OUT_OF_MEMORY);
            assert_int_equal(frees, allocations - 1);
            assert_true(message.text[0] != 0);
            assert_true(scene_is_untouched(scene));
        }
        assert_true(needed >= 1);
        assert_int_equal(frees, allocations);
        assert_true(scene_same(scene, expected));
        scene_free(scene);
        scene_free(expected);
    }
}

static void run_everything(const struct scene *scene, rapt_plan *plan, char *workspace, size_t bytes) {
    rapt_message message;
    size_t needed = 0;
    counting = true;
    rapt_status status = rapt_plan_init(plan, &scene->desc, &message);
    status = status ? status : rapt_plan_workspace_bytes(plan, 2, &needed);
    status = status ? status : rapt_run(plan, workspace, bytes, NULL);
    status = status ? status : rapt_prepare(plan, workspace, bytes);
    for (int32_t phase = 0; phase < rapt_phase_count(plan); phase++)
        for (int64_t i = 0; i < rapt_task_count(plan, phase) && status == RAPT_OK; i++)
            status = rapt_run_task(plan, workspace, phase, i);
    counting = false;
    assert_int_equal(status, RAPT_OK);
}

static void test_plan_and_run_allocate_nothing(void **state) {
    (void)state;
    for (int c = 0; c < CALLS; c++) {
        struct scene *scene = scene_new(&calls[c], &plain);
        rapt_plan plan;
        size_t bytes;
        assert_int_equal(rapt_plan_init(&plan, &scene->desc, NULL), RAPT_OK);
        assert_int_equal(rapt_plan_workspace_bytes(&plan, 2, &bytes), RAPT_OK);
        char *workspace = test_alloc(bytes);
        start_counting(1);
        run_everything(scene, &plan, workspace, bytes);
        assert_int_equal(allocations, 0);
        assert_int_equal(frees, 0);
        scene_free(scene);
        test_free_all();
    }
}


int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_one_call),
        cmocka_unit_test(test_plan_and_run_allocate_nothing),
    };
    return cmocka_run_group_tests_name("allocation", tests, NULL, NULL);
}
