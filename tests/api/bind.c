/* SPDX-License-Identifier: MIT
 * Plans without data, and their bindings. */
#define _DEFAULT_SOURCE
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "api/bind.h"
#include "support/cmocka_all.h"
#include "support/problem.h"

enum { LAYERS = 32 };

/* ---- one plan, many layers */

static void run_layers(const struct problem_call *call) {
    const struct problem_call first = varied(call, 1);
    struct problem *planned = problem_new(&first);
    const rapt_attention_desc bare = question(&planned->desc);
    rapt_plan plan = plan_of(&bare);
    size_t bytes;
    assert_int_equal(rapt_plan_workspace_bytes(&plan, 2, &bytes), RAPT_OK);
    void *workspace = test_alloc(bytes);
    for (uint64_t layer = 1; layer <= LAYERS; layer++) {
        const struct problem_call this = varied(call, layer);
        struct problem *separate = problem_new(&this), *bound = problem_new(&this);
        assert_int_equal(rapt_attention(&separate->desc, NULL, NULL), RAPT_OK);
        bind(&plan, &bound->desc);
        assert_int_equal(rapt_run(&plan, workspace, bytes, NULL), RAPT_OK);
        assert_true(problem_same(bound, separate) && problem_is_clean(bound));
        problem_free(separate);
        problem_free(bound);
    }
    problem_free(planned);
    test_free_all();
}

static void test_layers_in_turn(void **state) {
    (void)state;
    for (int c = 0; c < CALLS; c++)
        run_layers(&calls[c]);
}

/* ---- a plan without data */

static void expect_same_answers(const rapt_plan *a, const rapt_plan *b, void *workspace, size_t bytes) {
    assert_int_equal(rapt_prepare(a, workspace, bytes), RAPT_OK);
    assert_int_equal(rapt_plan_isa(a), rapt_plan_isa(b));
    assert_int_equal(rapt_phase_count(a), rapt_phase_count(b));
    assert_int_equal(rapt_run_concurrency(a, NULL), rapt_run_concurrency(b, NULL));
    for (int64_t slots = 1; slots < 10; slots++) {
        size_t of_a = 1, of_b = 2;
        assert_int_equal(rapt_plan_workspace_bytes(a, slots, &of_a), RAPT_OK);
        assert_int_equal(rapt_plan_workspace_bytes(b, slots, &of_b), RAPT_OK);
        assert_int_equal(of_a, of_b);
    }
    for (int32_t phase = 0; phase < rapt_phase_count(a); phase++) {
        assert_int_equal(rapt_task_count(a, phase), rapt_task_count(b, phase));
        for (int64_t task = 0; task < rapt_task_count(a, phase); task++) {
            rapt_task_info of_a, of_b;
            assert_int_equal(rapt_task_info_of(a, workspace, phase, task, &of_a), RAPT_OK);
            assert_int_equal(rapt_task_info_of(b, workspace, phase, task, &of_b), RAPT_OK);
            assert_memory_equal(&of_a, &of_b, sizeof of_a);
        }
    }
}

static void test_answers_and_does_not_run(void **state) {
    (void)state;
    for (int c = 0; c < CALLS; c++) {
        struct problem *problem = problem_new(&calls[c]);
        const rapt_attention_desc bare = question(&problem->desc);
        rapt_plan plan = plan_of(&bare), bound = plan_of(&problem->desc);
        rapt_message message = {""};
        size_t bytes;
        assert_int_equal(rapt_plan_workspace_bytes(&plan, 1, &bytes), RAPT_OK);
        void *workspace = test_alloc(bytes);
        expect_same_answers(&plan, &bound, workspace, bytes);
        assert_int_equal(rapt_run(&plan, workspace, bytes, NULL), RAPT_NOT_BOUND);
        assert_int_equal(rapt_run_task(&plan, workspace, 0, 0), RAPT_NOT_BOUND);
        assert_int_equal(rapt_join(&plan, workspace, 0), RAPT_NOT_BOUND);
        assert_int_equal(rapt_attention(&bare, NULL, &message), RAPT_NULL_POINTER);
        assert_non_null(strstr(message.text, "data"));
        assert_true(problem_is_untouched(problem));
        problem_free(problem);
        test_free_all();
    }
}

/* What needs no memory is checked: dtypes, strides, extents, an output that overlaps itself. */
static void test_questions_are_checked(void **state) {
    struct problem *problem = problem_new(&calls[2]);
    const rapt_attention_desc bare = question(&problem->desc);
    rapt_plan plan;
    rapt_message message;
    (void)state;
#define REFUSE(status, named, ...)                                                                 \
    do {                                                                                           \
        rapt_attention_desc d = bare;                                                              \
        __VA_ARGS__;                                                                               \
        assert_int_equal(rapt_plan_init(&plan, &d, &message), status);                             \
        if (!strstr(message.text, named))                                                          \
            fail_msg("%s: no %s", message.text, named);                                            \
    } while (0)
    REFUSE(RAPT_NULL_POINTER, "query.dtype = 0", d.query.dtype = RAPT_NO_DTYPE);
    REFUSE(RAPT_NULL_POINTER, "out.dtype = 0", d.out.dtype = RAPT_NO_DTYPE);
    REFUSE(RAPT_UNSUPPORTED_DTYPE, "key.dtype = 2", d.key.dtype = RAPT_BOOL8);
    REFUSE(RAPT_UNUSED_FIELD, "mask.data is NULL", d.mask.token_stride_bytes = 4);
    REFUSE(RAPT_INVALID_STRIDE, "key.token_stride_bytes", d.key.token_stride_bytes = 2);
    REFUSE(RAPT_INVALID_STRIDE, "value.batch_stride_bytes", d.value.batch_stride_bytes = INT64_MAX - 3);
    REFUSE(RAPT_INVALID_STRIDE, "out.head_stride_bytes", d.out.head_stride_bytes = 0);
    REFUSE(RAPT_OVERLAPPING_OUTPUT, "out overlaps itself", d.out.head_stride_bytes = d.out.token_stride_bytes);
    REFUSE(RAPT_OUT_OF_EXTENT, "key.extent_bytes", d.key.extent_bytes = 4);
    REFUSE(RAPT_NULL_POINTER, "weights.dtype = 0, but weights_kind = 1", d.weights_kind = RAPT_WEIGHTS_RAW);
    REFUSE(RAPT_NULL_POINTER, "key.data is NULL", d.query.data = problem->desc.query.data); /* some data: all that is
                                                                                              there needs it */
#undef REFUSE
    problem_free(problem);
}

/* Nothing to compute: nothing to bind. */
static void test_empty_needs_no_binding(void **state) {
    rapt_attention_desc desc = RAPT_ATTENTION_DESC_INIT;
    static char workspace[1 << 20];
    (void)state;
    desc.query_heads = desc.kv_heads = 1;
    desc.query_length = desc.kv_length = 4;
    desc.head_dim = 8;
    rapt_plan plan = plan_of(&desc);
    assert_int_equal(rapt_run(&plan, workspace, sizeof workspace, NULL), RAPT_OK);
    const rapt_bindings none = RAPT_BINDINGS_INIT;
    assert_int_equal(rapt_plan_bind(&plan, &none, NULL), RAPT_OK);
    assert_int_equal(rapt_run(&plan, workspace, sizeof workspace, NULL), RAPT_OK);
}

/* A plan keeps what this library knows of a longer struct, whatever its caller's struct_size. */
static void test_plan_of_a_newer_caller(void **state) {
    static union { /* of another release, all of whose new fields are 0 */
        rapt_attention_desc desc;
        char bytes[4096];
    } newer;
    struct problem *problem = problem_new(&calls[2]), *separate = problem_new(&calls[2]);
    static char workspace[1 << 20];
    (void)state;
    newer.desc = problem->desc;
    newer.desc.struct_size = sizeof newer;
    rapt_plan plan = plan_of(&newer.desc);
    bind(&plan, &problem->desc);
    assert_int_equal(rapt_run(&plan, workspace, sizeof workspace, NULL), RAPT_OK);
    assert_int_equal(rapt_attention(&separate->desc, NULL, NULL), RAPT_OK);
    assert_true(problem_same(problem, separate));
    problem_free(problem);
    problem_free(separate);
}

/* Lists that nothing may read while a plan is bound. */
static void bind_without_reading(const struct problem *problem, int32_t *lists, size_t bytes) {
    rapt_plan plan = plan_of(&problem->desc);
    assert_int_equal(mprotect(lists, bytes, PROT_NONE), 0);
    bind(&plan, &problem->desc);
    assert_int_equal(mprotect(lists, bytes, PROT_READ | PROT_WRITE), 0);
}

/* A binding's cost does not grow with the batch: lists of lengths, pages and key blocks are not reread. */
static void test_binding_reads_no_list(void **state) {
    struct problem *problem = problem_new(&calls[2]);
    rapt_attention_desc *d = &problem->desc;
    const size_t page = (size_t)sysconf(_SC_PAGESIZE);
    int32_t *lists = mmap(NULL, page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    (void)state;
    assert_true(lists != MAP_FAILED);
    for (int b = 0; b < 3; b++)
        lists[b] = 40;
    d->kv_lengths = rapt_int32_list(lists, 3);
    bind_without_reading(problem, lists, page);
    d->kv_lengths = (rapt_index_list){0};
    for (int b = 0; b < 3; b++)
        lists[b] = b;
    d->key_pages = d->value_pages =
        (rapt_page_table){.kind = RAPT_PAGES_ROW, .pages = 3, .entries = rapt_int32_list(lists, 3)};
    bind_without_reading(problem, lists, page);
    d->key_pages = d->value_pages = (rapt_page_table){0};
    d->key_blocks = (rapt_block_list){.query_tokens = d->query_length, .key_tokens = d->kv_length,
                                      .offsets = rapt_int32_list(lists, 2), .entries = rapt_int32_list(lists, 1)};
    bind_without_reading(problem, lists, page);
    munmap(lists, page);
    problem_free(problem);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_layers_in_turn),          cmocka_unit_test(test_answers_and_does_not_run),
        cmocka_unit_test(test_questions_are_checked),   cmocka_unit_test(test_empty_needs_no_binding),
        cmocka_unit_test(test_binding_reads_no_list),   cmocka_unit_test(test_plan_of_a_newer_caller),
    };
    return cmocka_run_group_tests_name("api_bind", tests, NULL, NULL);
}
