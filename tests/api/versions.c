/* SPDX-License-Identifier: MIT
 * Callers of other releases: smaller or larger structs, plans of other libraries. */
#include <stdlib.h>
#include <string.h>

#include "dispatch.h"
#include "support/cmocka_all.h"
#include "support/problem.h"

_Static_assert(sizeof(rapt_plan) == 4096, "callers have so much");
_Static_assert(sizeof(rapt_tensor) == 128 && sizeof(rapt_index_list) == 32, "these do not grow");

enum { MOST = 4096, LEAST = offsetof(rapt_attention_desc, reserved) };

static const struct problem_call call = {2, 4, 2, 3, 40, 16, 12, USE_MASK | USE_LSE | USE_KV_LENGTHS, DATA_NORMAL,
                                       RAPT_ORIGIN_UNSTATED, RAPT_WEIGHTS_NONE, 1, 0};

/* A struct of another size, ending at a guard page, so that reading past it faults. */
static struct guarded sized(const void *from, size_t known, size_t bytes) {
    struct guarded memory = guarded_new(bytes, GUARD_END, 0, 0);
    const uint32_t struct_size = (uint32_t)bytes;
    memcpy(memory.data, from, bytes < known ? bytes : known);
    memcpy(memory.data, &struct_size, bytes < sizeof struct_size ? bytes : sizeof struct_size);
    return memory;
}

static void run_sized(const struct problem *expected, size_t bytes) {
    struct problem *problem = problem_new(&call);
    struct guarded memory = sized(&problem->desc, sizeof problem->desc, bytes);
    rapt_message message = {"stale"};
    if (rapt_attention((const rapt_attention_desc *)(void *)memory.data, NULL, &message) != RAPT_OK)
        fail_msg("%zu bytes: %s", bytes, message.text);
    assert_true(problem_same(problem, expected));
    guarded_free(&memory);
    problem_free(problem);
}

static void test_sizes_of_a_descriptor(void **state) {
    struct problem *expected = problem_expected(&call);
    (void)state;
    for (size_t bytes = LEAST; bytes <= MOST; bytes += bytes < sizeof(rapt_attention_desc) + 64 ? 8 : 256)
        run_sized(expected, bytes);
    run_sized(expected, MOST);
    problem_free(expected);
}

static void refuse_sized(const struct problem *problem, size_t stated, size_t bytes) {
    struct guarded memory = sized(&problem->desc, sizeof problem->desc, bytes);
    const uint32_t struct_size = (uint32_t)stated;
    rapt_plan plan;
    rapt_message message = {""};
    memcpy(memory.data, &struct_size, sizeof struct_size);
    assert_int_equal(rapt_plan_init(&plan, (const rapt_attention_desc *)(void *)memory.data, &message),
                     RAPT_UNSUPPORTED_VERSION);
    assert_non_null(strstr(message.text, "struct_size"));
    guarded_free(&memory);
}

/* With an invalid size, nothing after its four bytes is read. */
static void test_sizes_that_are_none(void **state) {
    struct problem *problem = problem_new(&call);
    (void)state;
    for (size_t bytes = 4; bytes < LEAST; bytes += 4)
        refuse_sized(problem, bytes, bytes);
    for (size_t odd = 1; odd < 8; odd++)
        refuse_sized(problem, LEAST + odd, 4);
    refuse_sized(problem, MOST + 8, 4);
    refuse_sized(problem, UINT32_MAX - 7, 4);
    refuse_sized(problem, 0, 4);
    problem_free(problem);
}

/* Every byte that this library does not know must be 0. */
static void test_tail_that_is_not_zero(void **state) {
    struct problem *problem = problem_new(&call);
    rapt_message message;
    rapt_plan plan;
    (void)state;
    for (size_t at = sizeof problem->desc; at < sizeof problem->desc + 32; at++) {
        struct guarded memory = sized(&problem->desc, sizeof problem->desc, sizeof problem->desc + 32);
        memory.data[at] = 1;
        const rapt_attention_desc *desc = (const rapt_attention_desc *)(void *)memory.data;
        assert_int_equal(rapt_plan_init(&plan, desc, &message), RAPT_UNSUPPORTED_VERSION);
        assert_non_null(strstr(message.text, "is not 0"));
        assert_int_equal(rapt_attention(desc, NULL, NULL), RAPT_UNSUPPORTED_VERSION);
        guarded_free(&memory);
    }
    assert_true(problem_is_untouched(problem));
    problem_free(problem);
}

static rapt_status run_with(struct problem *problem, const void *options) {
    return rapt_attention(&problem->desc, options, NULL);
}

static void test_status_texts(void **state) {
    (void)state;
    for (int status = RAPT_OK; status <= RAPT_STOPPED; status++)
        for (int other = status + 1; other <= RAPT_STOPPED + 1; other++)
            assert_string_not_equal(rapt_status_text((rapt_status)status), rapt_status_text((rapt_status)other));
    assert_string_equal(rapt_status_text((rapt_status)(RAPT_STOPPED + 1)), "unknown status");
    assert_string_equal(rapt_status_text((rapt_status)-1), "unknown status");
}

/* A plan states the order it has, even if the call leaves it to the library. */
static void test_orders(void **state) {
    static const int32_t asked[] = {RAPT_NUMERICS_DEFAULT, RAPT_NUMERICS_ORDER_1, RAPT_NUMERICS_FASTEST,
                                    RAPT_NUMERICS_ORDER_3};
    struct problem *problem = problem_new(&call), *expected;
    (void)state;
    for (size_t i = 0; i < sizeof asked / sizeof *asked; i++) {
        rapt_plan plan;
        problem->desc.numerics = asked[i];
        assert_int_equal(rapt_plan_init(&plan, &problem->desc, NULL), RAPT_OK);
        struct problem_call same = call;
        same.numerics = rapt_plan_numerics(&plan);
        assert_in_range(same.numerics, RAPT_NUMERICS_ORDER_1, RAPT_NUMERICS_ORDER_3);
        if (asked[i] != RAPT_NUMERICS_FASTEST)
            assert_int_equal(same.numerics, asked[i] ? asked[i] : RAPT_NUMERICS_VERSION);
        assert_int_equal(rapt_attention(&problem->desc, NULL, NULL), RAPT_OK);
        expected = problem_expected(&same);
        assert_true(problem_same(problem, expected));
        problem_free(expected);
    }
    problem_free(problem);
}

static rapt_plan plan_of_fastest(int32_t dtype, rapt_isa isa) {
    rapt_attention_desc desc = RAPT_ATTENTION_DESC_INIT;
    rapt_plan plan;
    desc.batch = desc.query_heads = desc.kv_heads = desc.query_length = desc.kv_length = 1;
    desc.head_dim = 2;
    desc.numerics = RAPT_NUMERICS_FASTEST;
    desc.isa = isa;
    desc.query = desc.key = desc.value = rapt_tensor_bhsd(NULL, dtype, 1, 1, 1, 2);
    desc.out = rapt_output_bhsd(NULL, 1, 1, 1, 2);
    assert_int_equal(rapt_plan_init(&plan, &desc, NULL), RAPT_OK);
    return plan;
}

/* Order 2 takes one type, whatever query says. */
static void test_fastest_of_two_types(void **state) {
    (void)state;
    static const int32_t firsts[] = {RAPT_BF16, RAPT_F16}, others[] = {RAPT_F32, RAPT_BF16, RAPT_F16};
    for (int n = 0; n < 2 * 3 * 3; n++) {
        const int which = n % 3;
        const int32_t first = firsts[n / 3 % 2], other = others[n / 6];
        if (first == other)
            continue;
        rapt_attention_desc desc = RAPT_ATTENTION_DESC_INIT;
        rapt_plan plan;
        desc.batch = desc.query_heads = desc.kv_heads = desc.query_length = desc.kv_length = 1;
        desc.head_dim = 2;
        desc.numerics = RAPT_NUMERICS_FASTEST;
        desc.query = rapt_tensor_bhsd(NULL, which == 0 ? other : first, 1, 1, 1, 2);
        desc.key = rapt_tensor_bhsd(NULL, which == 1 ? other : first, 1, 1, 1, 2);
        desc.value = rapt_tensor_bhsd(NULL, which == 2 ? other : first, 1, 1, 1, 2);
        desc.out = rapt_output_bhsd(NULL, 1, 1, 1, 2);
        assert_int_equal(rapt_plan_init(&plan, &desc, NULL), RAPT_OK);
        assert_int_equal(rapt_plan_numerics(&plan), RAPT_NUMERICS_ORDER_1);
    }
}

/* A call without keys may continue from the states of one that has some: key and value need no type then. */
static void test_fastest_without_keys(void **state) {
    (void)state;
    for (int isa = RAPT_ISA_AUTO; isa < RAPT_ISA_COUNT; isa++) {
        if (isa != RAPT_ISA_AUTO && !rapt_isa_available((rapt_isa)isa))
            continue;
        const rapt_plan with_keys = plan_of_fastest(RAPT_BF16, (rapt_isa)isa);
        rapt_attention_desc desc = RAPT_ATTENTION_DESC_INIT;
        rapt_plan plan;
        desc.batch = desc.query_heads = desc.kv_heads = desc.query_length = 1;
        desc.head_dim = 2;
        desc.numerics = RAPT_NUMERICS_FASTEST;
        desc.isa = isa;
        desc.query = rapt_tensor_bhsd(NULL, RAPT_BF16, 1, 1, 1, 2);
        desc.out = rapt_output_bhsd(NULL, 1, 1, 1, 2);
        assert_int_equal(rapt_plan_init(&plan, &desc, NULL), RAPT_OK);
        assert_int_equal(rapt_plan_numerics(&plan), rapt_plan_numerics(&with_keys));
    }
}

static bool has_unit_of_its_own(void) {
    for (int isa = RAPT_ISA_SCALAR; isa < RAPT_ISA_COUNT; isa++)
        if (rapt_isa_is_unit((rapt_isa)isa) && rapt_isa_takes_unit(RAPT_ISA_AUTO, (rapt_isa)isa) &&
            rapt_isa_available((rapt_isa)isa))
            return true;
    return false;
}

/* Order 2 is the fastest for bfloat16, or float16, if there is a unit for it and the instruction set is left open or
 * has it. */
static void test_fastest(void **state) {
    const rapt_plan open = plan_of_fastest(RAPT_BF16, RAPT_ISA_AUTO);
    const bool has_unit = has_unit_of_its_own();
    const rapt_plan named = plan_of_fastest(RAPT_BF16, rapt_plan_isa(&open));
    const rapt_plan scalar = plan_of_fastest(RAPT_BF16, RAPT_ISA_SCALAR);
    const rapt_plan of_f16 = plan_of_fastest(RAPT_F16, RAPT_ISA_AUTO);
    const rapt_plan of_f32 = plan_of_fastest(RAPT_F32, RAPT_ISA_AUTO);
    (void)state;
    assert_int_equal(rapt_plan_numerics(&open), has_unit ? RAPT_NUMERICS_ORDER_2 : RAPT_NUMERICS_ORDER_1);
    assert_int_equal(rapt_isa_is_unit(rapt_plan_isa(&open)), has_unit);
    assert_int_equal(rapt_plan_numerics(&named), rapt_plan_numerics(&open));
    assert_int_equal(rapt_plan_numerics(&scalar), RAPT_NUMERICS_ORDER_1);
    assert_int_equal(rapt_plan_numerics(&of_f16), has_unit && has_feature("amx_fp16") ? RAPT_NUMERICS_ORDER_2
                                                                                      : RAPT_NUMERICS_ORDER_1);
    assert_int_equal(rapt_plan_numerics(&of_f32), RAPT_NUMERICS_ORDER_1);
}

/* A unit that is named need not be faster than FMAs. */
static void test_fastest_of_a_named_unit(void **state) {
    (void)state;
    for (int isa = RAPT_ISA_SCALAR; isa < RAPT_ISA_COUNT; isa++) {
        if (!rapt_isa_is_unit((rapt_isa)isa) || !rapt_isa_available((rapt_isa)isa))
            continue;
        const rapt_plan plan = plan_of_fastest(RAPT_BF16, (rapt_isa)isa);
        assert_int_equal(rapt_plan_numerics(&plan), RAPT_NUMERICS_ORDER_2);
        assert_int_equal(rapt_plan_isa(&plan), isa);
    }
}

static void test_sizes_of_options(void **state) {
    struct problem *problem = problem_new(&call), *expected = problem_expected(&call);
    const rapt_run_options off = RAPT_RUN_OPTIONS_INIT;
    (void)state;
    for (size_t bytes = 24; bytes <= 200; bytes += 8) {
        struct guarded memory = sized(&off, sizeof off, bytes);
        assert_int_equal(run_with(problem, memory.data), RAPT_OK);
        assert_true(problem_same(problem, expected));
        memory.data[bytes - 1] = 1; /* in a reserved word, a pointer's unused half, or past the known fields */
        const rapt_status status = bytes > 56 ? run_with(problem, memory.data) : RAPT_UNUSED_FIELD;
        assert_int_equal(status, bytes > sizeof off ? RAPT_UNSUPPORTED_VERSION : RAPT_UNUSED_FIELD);
        guarded_free(&memory);
    }
    for (size_t bytes = 4; bytes < 24; bytes += 4) {
        struct guarded memory = sized(&off, sizeof off, bytes);
        assert_int_equal(run_with(problem, memory.data), RAPT_UNSUPPORTED_VERSION);
        guarded_free(&memory);
    }
    rapt_run_options unknown = {.struct_size = sizeof unknown, .flags = 2};
    assert_int_equal(run_with(problem, &unknown), RAPT_UNSUPPORTED_FLAG);
    problem_free(expected);
    problem_free(problem);
}

/* ---- plans */

static void expect_no_plan(const rapt_plan *plan) {
    static char workspace[1 << 16];
    rapt_plan copy = *plan;
    rapt_task_info info;
    size_t bytes;
    const rapt_bindings bindings = RAPT_BINDINGS_INIT;
    assert_int_equal(rapt_run(plan, workspace, sizeof workspace, NULL), RAPT_INVALID_PLAN);
    assert_int_equal(rapt_prepare(plan, workspace, sizeof workspace), RAPT_INVALID_PLAN);
    assert_int_equal(rapt_run_task(plan, workspace, 0, 0), RAPT_INVALID_PLAN);
    assert_int_equal(rapt_join(plan, workspace, 0), RAPT_INVALID_PLAN);
    assert_int_equal(rapt_plan_workspace_bytes(plan, 1, &bytes), RAPT_INVALID_PLAN);
    assert_int_equal(rapt_plan_bind(&copy, &bindings, NULL), RAPT_INVALID_PLAN);
    assert_int_equal(rapt_task_info_of(plan, workspace, 0, 0, &info), RAPT_INVALID_PLAN);
    assert_int_equal(rapt_plan_isa(plan), RAPT_ISA_AUTO);
    assert_int_equal(rapt_plan_numerics(plan), RAPT_NUMERICS_DEFAULT);
    assert_int_equal(rapt_run_concurrency(plan, NULL), 0);
    assert_int_equal(rapt_phase_count(plan), 0);
    assert_int_equal(rapt_task_count(plan, 0), 0);
}

/* The first word has the version and the size, the second the copy of the library. */
static void test_plans_of_others(void **state) {
    struct problem *problem = problem_new(&call);
    rapt_plan plan;
    (void)state;
    assert_int_equal(rapt_plan_init(&plan, &problem->desc, NULL), RAPT_OK);
    assert_int_equal(plan.opaque[0] & 0xffff, sizeof plan);
    for (int word = 0; word < 2; word++) {
        for (int bit = 0; bit < 64; bit++) {
            rapt_plan other = plan;
            other.opaque[word] ^= UINT64_C(1) << bit;
            expect_no_plan(&other);
        }
    }
    rapt_plan rubbish;
    for (int byte = 0; byte < 256; byte += 51) {
        memset(&rubbish, byte, sizeof rubbish);
        expect_no_plan(&rubbish);
    }
    assert_int_equal(rapt_run(NULL, &plan, sizeof plan, NULL), RAPT_INVALID_PLAN);
    assert_true(problem_is_untouched(problem));
    problem_free(problem);
}

/* ---- helpers of the header */

static void test_tensor_helpers(void **state) {
    static const char memory[8];
    (void)state;
    const rapt_tensor a = rapt_tensor_bhsd(memory, RAPT_F16, 2, 3, 5, 7);
    assert_true(a.data == memory && a.dtype == RAPT_F16 && a.token_stride_bytes == 14 && a.head_stride_bytes == 70 &&
                a.batch_stride_bytes == 210 && a.extent_bytes == 420);
    const rapt_tensor b = rapt_tensor_bshd(memory, RAPT_BOOL8, 2, 5, 3, 7);
    assert_true(b.head_stride_bytes == 7 && b.token_stride_bytes == 21 && b.batch_stride_bytes == 105 &&
                b.extent_bytes == 210);
    const rapt_tensor c = rapt_input_bshd(NULL, 2, 5, 3, 7);
    assert_true(!c.data && c.dtype == RAPT_F32 && c.head_stride_bytes == 28 && c.extent_bytes == 840);
    assert_int_equal(rapt_row_bytes(RAPT_F32, 3), 12);
    assert_int_equal(rapt_row_bytes(RAPT_BF16, 3), 6);
    assert_int_equal(rapt_row_bytes(RAPT_Q8_0, 64), 68);
    assert_int_equal(rapt_row_bytes(RAPT_Q5_1, 64), 48);
    assert_int_equal(rapt_row_bytes(RAPT_Q4_0, 48), 0);
    assert_int_equal(rapt_row_bytes(RAPT_I8, 7), 7);
    assert_int_equal(rapt_row_bytes(RAPT_NO_DTYPE, 3), 0);
    assert_int_equal(rapt_row_bytes(99, 3), 0);
    assert_int_equal(rapt_row_bytes(-1, 3), 0);
    assert_int_equal(rapt_row_bytes(RAPT_F32, -1), 0);
    assert_int_equal(rapt_row_bytes(RAPT_F32, INT64_MAX), 0);
}

/* Sizes may come from anywhere: helpers overflow without undefined behaviour, and the call is refused. */
static void test_helpers_of_huge_sizes(void **state) {
    const int64_t huge = INT64_C(1) << 40;
    rapt_attention_desc desc = RAPT_ATTENTION_DESC_INIT;
    rapt_plan plan;
    (void)state;
    desc.batch = desc.query_heads = desc.kv_heads = desc.query_length = desc.kv_length = huge;
    desc.head_dim = 1024;
    desc.query = rapt_input_bhsd(NULL, huge, huge, huge, 1024);
    desc.key = desc.value = rapt_input_bshd(NULL, huge, huge, huge, 1024);
    desc.out = rapt_output_bhsd(NULL, huge, huge, huge, 1024);
    assert_int_equal(rapt_plan_init(&plan, &desc, NULL), RAPT_SIZE_OVERFLOW);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sizes_of_a_descriptor), cmocka_unit_test(test_sizes_that_are_none),
        cmocka_unit_test(test_tail_that_is_not_zero), cmocka_unit_test(test_sizes_of_options),
        cmocka_unit_test(test_status_texts),          cmocka_unit_test(test_fastest_without_keys),
        cmocka_unit_test(test_orders),                cmocka_unit_test(test_fastest),
        cmocka_unit_test(test_fastest_of_a_named_unit), cmocka_unit_test(test_fastest_of_two_types),
        cmocka_unit_test(test_plans_of_others),       cmocka_unit_test(test_tensor_helpers),
        cmocka_unit_test(test_helpers_of_huge_sizes),
    };
    return cmocka_run_group_tests_name("api_versions", tests, NULL, NULL);
}
