/* SPDX-License-Identifier: MIT
 * Units chosen for calls, on machines unlike this one. The library detects once, so each has its own process. */
#define _DEFAULT_SOURCE

#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "dispatch.h"
#include "support/cmocka_all.h"
#include "support/support.h"

/* The result of question() if the unit is this one: RAPT_TEST_TILES. */
static int ask(const char *unit, int (*question)(void)) {
    int status = 0;
    const pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        setenv("RAPT_TEST_TILES", unit, 1);
        _exit(question());
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    return WEXITSTATUS(status);
}

static rapt_plan plan_of(int32_t numerics, int32_t dtype) {
    rapt_attention_desc desc = RAPT_ATTENTION_DESC_INIT;
    rapt_plan plan;
    desc.batch = desc.query_heads = desc.kv_heads = desc.query_length = desc.kv_length = 1;
    desc.head_dim = 2;
    desc.numerics = numerics;
    desc.query = desc.key = desc.value = rapt_tensor_bhsd(NULL, dtype, 1, 1, 1, 2);
    desc.out = rapt_output_bhsd(NULL, 1, 1, 1, 2);
    return rapt_plan_init(&plan, &desc, NULL) == RAPT_OK ? plan : (rapt_plan){{0}};
}

static int isa_of(int32_t numerics, int32_t dtype) {
    const rapt_plan plan = plan_of(numerics, dtype);
    return (int)rapt_plan_isa(&plan);
}

static int fastest_of(int32_t dtype) {
    const rapt_plan plan = plan_of(RAPT_NUMERICS_FASTEST, dtype);
    return (int)rapt_plan_numerics(&plan);
}

static int isa_of_bfloat16(void) { return isa_of(RAPT_NUMERICS_ORDER_2, RAPT_BF16); }
static int isa_of_float16(void) { return isa_of(RAPT_NUMERICS_ORDER_2, RAPT_F16); }
static int isa_of_order_3(void) { return isa_of(RAPT_NUMERICS_ORDER_3, RAPT_F32); }
static int fastest_of_bfloat16(void) { return fastest_of(RAPT_BF16); }
static int fastest_of_float16(void) { return fastest_of(RAPT_F16); }
static int fastest_of_float32(void) { return fastest_of(RAPT_F32); }

static void test_both_types(void **state) {
    (void)state;
    assert_int_equal(ask("1", isa_of_bfloat16), RAPT_ISA_AMX);
    assert_int_equal(ask("1", isa_of_float16), RAPT_ISA_AMX);
    assert_int_equal(ask("1", isa_of_order_3), RAPT_ISA_AMX);
    assert_int_equal(ask("1", fastest_of_bfloat16), RAPT_NUMERICS_ORDER_2);
    assert_int_equal(ask("1", fastest_of_float16), RAPT_NUMERICS_ORDER_2);
    assert_int_equal(ask("1", fastest_of_float32), RAPT_NUMERICS_ORDER_1);
}

static void test_bfloat16_alone(void **state) {
    (void)state;
    assert_int_equal(ask("bf16", isa_of_bfloat16), RAPT_ISA_AMX);
    assert_int_equal(ask("bf16", isa_of_float16), RAPT_ISA_AVX512);
    assert_int_equal(ask("bf16", isa_of_order_3), RAPT_ISA_AMX);
    assert_int_equal(ask("bf16", fastest_of_bfloat16), RAPT_NUMERICS_ORDER_2);
    assert_int_equal(ask("bf16", fastest_of_float16), RAPT_NUMERICS_ORDER_1);
}

/* The answer to a call that demands the unit. */
static int is_refused(void) {
    const struct rapt_table *kernels;
    rapt_message message = {""};
    return rapt_dispatch(RAPT_ISA_AMX, &kernels, &message) == RAPT_UNSUPPORTED_ISA &&
           strstr(message.text, "or it does not compute as order 2 says");
}

static int is_available(void) { return rapt_isa_available(RAPT_ISA_AMX) != 0; }

static void test_other_arithmetic(void **state) {
    (void)state;
    assert_false(ask("wrong", is_available));
    assert_true(ask("wrong", is_refused));
    assert_int_not_equal(ask("wrong", isa_of_bfloat16), RAPT_ISA_AMX);
    assert_int_not_equal(ask("wrong", isa_of_float16), RAPT_ISA_AMX);
    assert_int_not_equal(ask("wrong", isa_of_order_3), RAPT_ISA_AMX);
}

static void test_absent(void **state) {
    (void)state;
    skip(); /* tiles_emulated_units is this program with a unit */
}

int main(void) {
    const struct CMUnitTest none[] = {cmocka_unit_test(test_absent)};
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_both_types),
        cmocka_unit_test(test_bfloat16_alone),
        cmocka_unit_test(test_other_arithmetic),
    };
    if (!has_emulated_tiles())
        return cmocka_run_group_tests_name("emulated units", none, NULL, NULL);
    unsetenv("RAPT_TEST_ISA");
    return cmocka_run_group_tests_name("emulated units", tests, NULL, NULL);
}
