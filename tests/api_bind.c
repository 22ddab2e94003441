/* SPDX-License-Identifier: MIT
 * Plans without data, and the memory that they are bound to. */
#define _DEFAULT_SOURCE
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "api_bind.h"
#include "cmocka_all.h"
#include "problem.h"

enum { LAYERS = 32 };

static const struct problem_call calls[] = {
    {2, 4, 2, 5, 60, 20, 12,
     USE_MASK | USE_BIAS | USE_KEEP | USE_LSE | USE_WEIGHTS | USE_HEAD_FACTOR | USE_ALIBI | USE_SINKS |
         USE_INITIAL_STATE | USE_FINAL_STATE,
     DATA_NORMAL, RAPT_ORIGIN_BOTTOM_RIGHT, RAPT_WEIGHTS_SOFTMAX, 0, 0},
    {1, 2, 1, 1, 6000, 16, 16, USE_CAUSAL, DATA_NORMAL, RAPT_ORIGIN_BOTTOM_RIGHT, RAPT_WEIGHTS_NONE, 0, 0},
    {3, 2, 2, 40, 40, 8, 8, USE_LSE, DATA_NORMAL, RAPT_ORIGIN_UNSTATED, RAPT_WEIGHTS_NONE, 0, 0},
    {1, 2, 1, 4, 70, 48, 32, USE_LSE, DATA_NORMAL, RAPT_ORIGIN_UNSTATED, RAPT_WEIGHTS_NONE, 1, 0, RAPT_FORMAT_I8,
     RAPT_FORMAT_F8_E4M3, 32, 1},
    {1, 2, 2, 5, 40, 8, 8, USE_FINAL_STATE | USE_NO_OUT, DATA_NORMAL, RAPT_ORIGIN_UNSTATED, RAPT_WEIGHTS_NONE, 0, 0},
};
enum { CALLS = sizeof calls / sizeof *calls };

static struct problem_call varied(const struct problem_call *call, uint64_t variant) {
    struct problem_call other = *call;
    other.variant = variant;
    return other;
}

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

/* What can be checked without memory is: dtypes, strides, extents, an output that overlaps itself. */
static void test_questions_are_checked(void **state) {
    struct problem *problem = problem_new(&calls[2]);
    const rapt_attention_desc bare = question(&problem->desc);
    rapt_plan plan;
    (void)state;
#define REFUSE(status, ...)                                                                        \
    do {                                                                                           \
        rapt_attention_desc d = bare;                                                              \
        __VA_ARGS__;                                                                               \
        assert_int_equal(rapt_plan_init(&plan, &d, NULL), status);                                 \
    } while (0)
    REFUSE(RAPT_NULL_POINTER, d.query.dtype = RAPT_NO_DTYPE);
    REFUSE(RAPT_NULL_POINTER, d.out.dtype = RAPT_NO_DTYPE);
    REFUSE(RAPT_UNSUPPORTED_DTYPE, d.key.dtype = RAPT_BOOL8);
    REFUSE(RAPT_UNUSED_FIELD, d.mask.token_stride_bytes = 4);
    REFUSE(RAPT_INVALID_STRIDE, d.key.token_stride_bytes = 2);
    REFUSE(RAPT_INVALID_STRIDE, d.value.batch_stride_bytes = INT64_MAX - 3);
    REFUSE(RAPT_INVALID_STRIDE, d.out.head_stride_bytes = 0);
    REFUSE(RAPT_OVERLAPPING_OUTPUT, d.out.head_stride_bytes = d.out.token_stride_bytes);
    REFUSE(RAPT_OUT_OF_EXTENT, d.key.extent_bytes = 4);
    REFUSE(RAPT_NULL_POINTER, d.weights_kind = RAPT_WEIGHTS_RAW);
    REFUSE(RAPT_NULL_POINTER, d.query.data = problem->desc.query.data); /* some data: all that is there needs it */
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

/* ---- what a binding is refused for */

struct binding_case {
    struct problem *old, *new, *expected;
    rapt_plan plan, unbound;
    void *workspace;
    size_t bytes;
    int refused;
};

/* The plan must still be bound to the old memory, and the other one to none. */
static void expect_refused(struct binding_case *c, const rapt_bindings *bindings, rapt_status status, const char *text,
                           int line) {
    rapt_message message = {""};
    rapt_status got = rapt_plan_bind(&c->plan, bindings, &message);
    if (got != status || !strstr(message.text, text))
        fail_msg("line %d: status %d, message \"%s\"", line, (int)got, message.text);
    assert_int_equal(rapt_plan_bind(&c->unbound, bindings, NULL), status);
    assert_int_equal(rapt_run(&c->unbound, c->workspace, c->bytes, NULL), RAPT_NOT_BOUND);
    problem_reset(c->old);
    assert_int_equal(rapt_run(&c->plan, c->workspace, c->bytes, NULL), RAPT_OK);
    assert_true(problem_same(c->old, c->expected));
    assert_true(problem_is_untouched(c->new));
    c->refused++;
}

static struct binding_case begin(const struct problem_call *call) {
    const struct problem_call other = varied(call, 77);
    struct binding_case c = {.old = problem_new(call), .new = problem_new(&other)};
    c.expected = problem_expected(call);
    const rapt_attention_desc bare = question(&c.old->desc);
    c.plan = plan_of(&c.old->desc);
    c.unbound = plan_of(&bare);
    assert_int_equal(rapt_plan_workspace_bytes(&c.plan, 1, &c.bytes), RAPT_OK);
    c.workspace = test_alloc(c.bytes);
    return c;
}

static void end(struct binding_case *c) {
    bind(&c->plan, &c->new->desc);
    problem_free(c->old);
    problem_free(c->new);
    problem_free(c->expected);
    test_free_all();
}

#define REFUSED(status, text, ...)                                                                 \
    do {                                                                                           \
        rapt_bindings b = bindings_of(&c.new->desc);                                               \
        __VA_ARGS__;                                                                               \
        expect_refused(&c, &b, status, text, __LINE__);                                            \
    } while (0)

static void test_refused_with_everything(void **state) {
    static float wrong[4] = {0, 0, 0, NAN};
    struct binding_case c = begin(&calls[0]);
    (void)state;
    REFUSED(RAPT_UNSUPPORTED_VERSION, "bindings.struct_size", b.struct_size = 8);
    REFUSED(RAPT_UNUSED_FIELD, "bindings.reserved_zero", b.reserved_zero = 1);
    REFUSED(RAPT_UNUSED_FIELD, "bindings.reserved[7]", b.reserved[7] = 1);
    REFUSED(RAPT_UNUSED_FIELD, "key.scales", b.key.scales = wrong);
    REFUSED(RAPT_UNUSED_FIELD, "value.zero_points", b.value.zero_points = wrong);
    REFUSED(RAPT_UNUSED_FIELD, "key.scale_extent_bytes", b.key.scale_extent_bytes = 4);
    REFUSED(RAPT_NULL_POINTER, "query.data", b.query.data = NULL);
    REFUSED(RAPT_NULL_POINTER, "out.data", b.out.data = NULL);
    REFUSED(RAPT_NULL_POINTER, "mask.data", b.mask.data = NULL);
    REFUSED(RAPT_NULL_POINTER, "bias.data", b.bias.data = NULL);
    REFUSED(RAPT_NULL_POINTER, "keep_mask.data", b.keep_mask.data = NULL);
    REFUSED(RAPT_NULL_POINTER, "lse.data", b.lse.data = NULL);
    REFUSED(RAPT_NULL_POINTER, "weights.data", b.weights.data = NULL);
    REFUSED(RAPT_NULL_POINTER, "initial_state.data", b.initial_state.data = NULL);
    REFUSED(RAPT_NULL_POINTER, "final_state.data", b.final_state.data = NULL);
    REFUSED(RAPT_OUT_OF_EXTENT, "initial_state.extent_bytes", b.initial_state.extent_bytes = 4);
    REFUSED(RAPT_OVERLAPPING_OUTPUT, "final_state overlaps query", b.final_state.data = b.query.data);
    REFUSED(RAPT_NULL_POINTER, "sinks", b.sinks = NULL);
    REFUSED(RAPT_NULL_POINTER, "alibi_slopes", b.alibi_slopes = NULL);
    REFUSED(RAPT_NULL_POINTER, "bias_head_factor", b.bias_head_factor = NULL);
    REFUSED(RAPT_INVALID_VALUE, "sinks[3]", b.sinks = wrong);
    REFUSED(RAPT_INVALID_VALUE, "alibi_slopes[3]", b.alibi_slopes = wrong);
    REFUSED(RAPT_INVALID_VALUE, "bias_head_factor[3]", b.bias_head_factor = wrong);
    REFUSED(RAPT_MISALIGNED_POINTER, "key.data", b.key.data = (char *)b.key.data + 2);
    REFUSED(RAPT_MISALIGNED_POINTER, "lse.data", b.lse.data = (char *)b.lse.data + 1);
    REFUSED(RAPT_MISALIGNED_POINTER, "sinks", b.sinks = (const float *)(const void *)((const char *)b.sinks + 1));
    REFUSED(RAPT_INVALID_VALUE, "query.extent_bytes", b.query.extent_bytes = -1);
    REFUSED(RAPT_OUT_OF_EXTENT, "key.extent_bytes", b.key.extent_bytes -= 4);
    REFUSED(RAPT_OUT_OF_EXTENT, "out.extent_bytes", b.out.extent_bytes = 4);
    REFUSED(RAPT_INVALID_STRIDE, "value: its strides", b.value.data = (void *)(UINTPTR_MAX - 63),
            b.value.extent_bytes = 0);
    REFUSED(RAPT_OVERLAPPING_OUTPUT, "out overlaps query", b.out.data = b.query.data);
    REFUSED(RAPT_OVERLAPPING_OUTPUT, "out overlaps key", b.out.data = b.key.data);
    REFUSED(RAPT_OVERLAPPING_OUTPUT, "out overlaps mask", b.mask.data = b.out.data);
    REFUSED(RAPT_OVERLAPPING_OUTPUT, "lse overlaps sinks", b.lse.data = (void *)(uintptr_t)b.sinks);
    assert_true(c.refused == 34);
    end(&c);
}

static void test_refused_scales(void **state) {
    static float four[4];
    struct binding_case c = begin(&calls[3]);
    (void)state;
    REFUSED(RAPT_NULL_POINTER, "key.scales is NULL", b.key.scales = NULL);
    REFUSED(RAPT_NULL_POINTER, "key.zero_points is NULL", b.key.zero_points = NULL);
    REFUSED(RAPT_NULL_POINTER, "value.scales is NULL", b.value.scales = NULL);
    REFUSED(RAPT_UNUSED_FIELD, "value.zero_points is bound", b.value.zero_points = four);
    REFUSED(RAPT_MISALIGNED_POINTER, "value.scales", b.value.scales = (const char *)four + 1);
    REFUSED(RAPT_OVERLAPPING_OUTPUT, "out overlaps key.scales", b.key.scales = b.out.data);
    REFUSED(RAPT_OVERLAPPING_OUTPUT, "lse overlaps key.zero_points", b.key.zero_points = b.lse.data);
    REFUSED(RAPT_OUT_OF_EXTENT, "key.scales: scale_extent_bytes", b.key.scale_extent_bytes -= 4);
    REFUSED(RAPT_OUT_OF_EXTENT, "value.scales: scale_extent_bytes", b.value.scale_extent_bytes = 4);
    REFUSED(RAPT_INVALID_VALUE, "value.scale_extent_bytes", b.value.scale_extent_bytes = -4);
    assert_true(c.refused == 10);
    end(&c);
}

static void test_refused_what_was_not_planned(void **state) {
    static float four[4];
    struct binding_case c = begin(&calls[1]);
    (void)state;
    REFUSED(RAPT_UNUSED_FIELD, "mask is bound", b.mask.data = four);
    REFUSED(RAPT_UNUSED_FIELD, "bias is bound", b.bias.extent_bytes = 4);
    REFUSED(RAPT_UNUSED_FIELD, "lse is bound", b.lse.data = four);
    REFUSED(RAPT_UNUSED_FIELD, "weights is bound", b.weights.data = four);
    REFUSED(RAPT_UNUSED_FIELD, "initial_state is bound", b.initial_state.data = four);
    REFUSED(RAPT_UNUSED_FIELD, "final_state is bound", b.final_state.data = four);
    REFUSED(RAPT_UNUSED_FIELD, "sinks is bound", b.sinks = four);
    REFUSED(RAPT_UNUSED_FIELD, "alibi_slopes is bound", b.alibi_slopes = four);
    REFUSED(RAPT_UNUSED_FIELD, "bias_head_factor is bound", b.bias_head_factor = four);
    assert_int_equal(rapt_plan_bind(&c.plan, NULL, NULL), RAPT_NULL_POINTER);
    end(&c);
}

/* The cost of a binding does not grow with the batch: lists of lengths are not read again. */
static void test_binding_reads_no_list(void **state) {
    struct problem *problem = problem_new(&calls[2]);
    const size_t page = (size_t)sysconf(_SC_PAGESIZE);
    int32_t *lengths = mmap(NULL, page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    (void)state;
    assert_true(lengths != MAP_FAILED);
    for (int b = 0; b < 3; b++)
        lengths[b] = 40;
    problem->desc.kv_lengths = rapt_int32_list(lengths, 3);
    rapt_plan plan = plan_of(&problem->desc);
    assert_int_equal(mprotect(lengths, page, PROT_NONE), 0);
    bind(&plan, &problem->desc);
    assert_int_equal(mprotect(lengths, page, PROT_READ), 0);
    munmap(lengths, page);
    problem_free(problem);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_layers_in_turn),          cmocka_unit_test(test_answers_and_does_not_run),
        cmocka_unit_test(test_questions_are_checked),   cmocka_unit_test(test_empty_needs_no_binding),
        cmocka_unit_test(test_refused_with_everything), cmocka_unit_test(test_refused_scales),
        cmocka_unit_test(test_refused_what_was_not_planned), cmocka_unit_test(test_binding_reads_no_list),
    };
    return cmocka_run_group_tests_name("api_bind", tests, NULL, NULL);
}
