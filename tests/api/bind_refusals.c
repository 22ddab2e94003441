/* SPDX-License-Identifier: MIT
 * Refused bindings: nothing is written, and the plan stays the same. */
#include <math.h>
#include <string.h>

#include "api/bind.h"
#include "support/cmocka_all.h"
#include "support/problem.h"

/* ---- refusals */

struct binding_case {
    struct problem *old, *new, *expected;
    rapt_plan plan, unbound;
    void *workspace;
    size_t bytes;
    int refused;
};

/* The plan must stay bound to the old memory, and the other one to none. */
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
    REFUSED(RAPT_UNUSED_FIELD, "key.scale_extent_bytes is bound", b.key.scale_extent_bytes = 4);
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
    REFUSED(RAPT_INVALID_STRIDE, "value.data = 0xffffffffffffffc0", b.value.data = (void *)(UINTPTR_MAX - 63),
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

/* Runs read the plan's lists, so no output may overlap them. */
static void test_refused_where_lists_are(void **state) {
    static int32_t memory[64];
    static const struct problem_call call = {2, 2, 2, 3, 40, 8, 8, USE_LSE, DATA_NORMAL, RAPT_ORIGIN_UNSTATED,
                                             RAPT_WEIGHTS_NONE, 0, 0};
    struct problem *problem = problem_new(&call);
    rapt_message message;
    (void)state;
    for (int i = 0; i < 64; i++)
        memory[i] = i % 2;
    for (int list = 0; list < 6; list++) {
        rapt_attention_desc d = problem->desc;
        if (list == 0)
            d.kv_lengths = rapt_int32_list(memory, 2);
        else if (list == 1)
            d.key_position = rapt_int32_list(memory, 2);
        else if (list == 2)
            d.key_pages = (rapt_page_table){.kind = RAPT_PAGES_ROW, .pages = 2, .entries = rapt_int32_list(memory, 2)};
        else if (list == 3)
            d.value_pages =
                (rapt_page_table){.kind = RAPT_PAGES_ROW, .pages = 2, .entries = rapt_int32_list(memory, 2)};
        else if (list == 4)
            d.tree_tokens = 3, d.tree_masks = rapt_int32_list(memory, 6);
        else
            d.key_blocks = (rapt_block_list){.query_tokens = 3, .key_tokens = 64,
                                             .offsets = rapt_int32_list(memory, 2),
                                             .entries = rapt_int32_list(memory, 1)};
        rapt_plan plan = plan_of(&d);
        rapt_bindings b = bindings_of(&d);
        b.lse = rapt_output_buffer((float *)(void *)memory, 0);
        if (rapt_plan_bind(&plan, &b, &message) != RAPT_OVERLAPPING_OUTPUT)
            fail_msg("list %d", list);
    }
    problem_free(problem);
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

/* Data for one tensor, whichever it is: all present tensors need theirs. */
static void test_some_data(void **state) {
    struct problem *problem = problem_new(&calls[0]);
    const rapt_attention_desc bare = question(&problem->desc);
    (void)state;
#define ALONE(name)                                                                                \
    do {                                                                                           \
        rapt_plan plan;                                                                            \
        rapt_attention_desc d = bare;                                                              \
        d.name.data = problem->desc.name.data;                                                     \
        assert_int_equal(rapt_plan_init(&plan, &d, NULL), RAPT_NULL_POINTER);                      \
    } while (0)
    ALONE(query);
    ALONE(key);
    ALONE(value);
    ALONE(out);
    ALONE(mask);
    ALONE(bias);
    ALONE(keep_mask);
    ALONE(lse);
    ALONE(weights);
    ALONE(initial_state);
    ALONE(final_state);
#undef ALONE
    problem_free(problem);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_refused_with_everything),      cmocka_unit_test(test_refused_scales),
        cmocka_unit_test(test_refused_what_was_not_planned), cmocka_unit_test(test_refused_where_lists_are),
        cmocka_unit_test(test_some_data),
    };
    return cmocka_run_group_tests_name("api_bind_refusals", tests, NULL, NULL);
}
