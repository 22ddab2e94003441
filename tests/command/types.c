/* SPDX-License-Identifier: MIT
 * `rapt attend` with keys and values in other storage types. argv as of command.c. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "command/run.h"
#include "support/problem.h"

#define ATTEND "$rapt attend --query q.npy --key k.npy --value v.npy --causal "
#define SAME " --expect o.npy --tolerance 0 --out p.npy"

enum { B = 2, HEADS = 2, TOKENS = 40, DIM = 64, COUNT = B * HEADS * TOKENS * DIM };

/* n / 4 for -8 <= n < 8, exact in each floating-point type, as float32 and as float16. */
static void write_quarters(const char *path, const char *half_path, int multiplier) {
    static const int64_t shape[] = {B, HEADS, TOKENS, DIM};
    static const uint16_t quarters[] = {0, 0x3400, 0x3800, 0x3a00, 0x3c00, 0x3d00, 0x3e00, 0x3f00, 0x4000};
    static float wide[COUNT];
    static uint16_t half[COUNT];
    for (int i = 0; i < COUNT; i++) {
        const int n = i * multiplier % 16 - 8;
        half[i] = (uint16_t)(quarters[n < 0 ? -n : n] | (n < 0 ? 0x8000 : 0));
        wide[i] = (float)n / 4;
    }
    write_npy(path, NPY_FLOAT32, wide, 4, shape);
    write_npy(half_path, NPY_FLOAT16, half, 4, shape);
}

static void write_inputs(void) {
    write_random("q.npy", 4, B, HEADS, 3, DIM);
    write_random("k.npy", 4, B, HEADS, TOKENS, DIM);
    write_random("v.npy", 4, B, HEADS, TOKENS, 32);
}

static void exact_numbers_give_the_same_file(void **state) {
    (void)state;
    write_random("q.npy", 4, B, HEADS, 3, DIM);
    write_quarters("k.npy", "k16.npy", 37);
    write_quarters("v.npy", "v16.npy", 11);
    expect_success(ATTEND "--out o.npy");
    expect_success(ATTEND "--kv-type f32" SAME);
    expect_success(ATTEND "--kv-type f16" SAME);
    expect_success(ATTEND "--key-type bf16 --value-type f16" SAME);
    expect_success(ATTEND "--kv-type f16 --key-type bf16" SAME);
    expect_success("$rapt attend --query q.npy --key k16.npy --value v16.npy --causal --kv-type bf16" SAME);
    expect_success("$rapt attend --query v.npy --key k.npy --value v.npy --layout bshd --out o.npy");
    expect_success("$rapt attend --query v.npy --key k.npy --value v.npy --layout bshd --kv-type f16" SAME);
}

/* The check uses the given numbers, so the error is the types'. */
static void check_sees_the_error_of_a_type(void **state) {
    static const char *const few_bits[] = {"--kv-type q8_0", "--key-type q8_0",    "--value-type q8_0",
                                            "--kv-type bf16", "--kv-type f8_e4m3", "--key-type f8_e5m2",
                                            "--kv-type i8",   "--value-type i8"};
    (void)state;
    write_inputs();
    expect_success(ATTEND "--check --tolerance 2e-6 --out o.npy");
    for (size_t i = 0; i < sizeof few_bits / sizeof few_bits[0]; i++) {
        char line[256];
        expect_success(ATTEND "--check --tolerance 0.1 --out o.npy %s", few_bits[i]);
        snprintf(line, sizeof line, ATTEND "--check --tolerance 1e-5 --out o.npy %s", few_bits[i]);
        assert_int_equal(command_shell(line).status, 1);
    }
}

static void types_are_told(void **state) {
    (void)state;
    write_inputs();
    struct command_result told = expect_success(ATTEND "--out o.npy --key-type q8_0 --value-type f16");
    assert_non_null(strstr(told.out, "types    key q8_0, value f16: 34.4 % of the bytes of float32\n"));
    told = expect_success(ATTEND "--out o.npy --key-type i8 --value-type f8_e5m2"); /* 64 + 4 bytes, 32 + 4 */
    assert_non_null(strstr(told.out, "types    key i8, value f8_e5m2: 27.1 % of the bytes of float32\n"));
    told = expect_success(ATTEND "--out o.npy --key-type q8_0 --json");
    assert_non_null(strstr(told.out, "\"key_type\": \"q8_0\""));
    assert_non_null(strstr(told.out, "\"value_type\": \"f32\""));
    assert_null(strstr(expect_success(ATTEND "--out o.npy").out, "types"));
}

/* The upper half of a float32, rounded to nearest even. */
static uint16_t bfloat_of(float number) {
    uint32_t bits;
    memcpy(&bits, &number, sizeof bits);
    return (uint16_t)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

/* What is written is the rounded float32 result; what is read is unrounded. */
static void results_of_other_types(void **state) {
    (void)state;
    write_inputs();
    expect_success(ATTEND "--out o.npy");
    expect_success(ATTEND "--out o16.npy --out-type f16 --expect o.npy --tolerance 5e-4");
    expect_success(ATTEND "--out ob.npy --out-type bf16 --expect o.npy --tolerance 4e-3");
    expect_success(ATTEND "--out-type f32" SAME);
    const struct npy_array wide = npy_read("o.npy", NPY_FLOAT32), half = npy_read_floats("o16.npy");
    const struct npy_array brief = npy_read("ob.npy", NPY_BFLOAT16);
    assert_int_equal(npy_read("o16.npy", NPY_FLOATS).type, NPY_FLOAT16);
    for (int64_t i = 0; i < wide.count; i++) {
        const float number = ((const float *)wide.data)[i], difference = ((const float *)half.data)[i] - number;
        assert_true(difference <= 0x1p-11f * (number < 0 ? -number : number) + 0x1p-25f);
        assert_true(-difference <= 0x1p-11f * (number < 0 ? -number : number) + 0x1p-25f);
        assert_int_equal(((const uint16_t *)brief.data)[i], bfloat_of(number));
    }
    /* The check uses the numbers as written. */
    assert_int_equal(command_shell(ATTEND "--out p.npy --out-type f16 --check --tolerance 2e-6").status, 1);
    expect_success(ATTEND "--out p.npy --out-type f16 --check --tolerance 5e-4 --lse l.npy --attention-out a.npy");
    struct command_result told = expect_success(ATTEND "--out p.npy --out-type bf16");
    assert_non_null(strstr(told.out, "p.npy [2, 2, 3, 32] bfloat16\n"));
    assert_non_null(strstr(expect_success(ATTEND "--out p.npy --out-type f16 --json").out, "\"type\": \"float16\""));
}

static void queries_are_rounded(void **state) {
    (void)state;
    write_quarters("q.npy", "q16.npy", 37);
    write_random("k.npy", 4, B, HEADS, TOKENS, DIM);
    write_random("v.npy", 4, B, HEADS, TOKENS, 32);
    expect_success(ATTEND "--out o.npy");
    expect_success(ATTEND "--query-type bf16" SAME);
    expect_success(ATTEND "--query-type f16 --numerics 1" SAME);
    struct command_result told = expect_success(ATTEND "--query-type f16 --out p.npy");
    assert_non_null(strstr(told.out, "types    query f16, key f32, value f32: 100 % of the bytes of float32\n"));
    told = expect_success(ATTEND "--query-type bf16 --out p.npy --json");
    assert_non_null(strstr(told.out, "\"query_type\": \"bf16\""));
    assert_non_null(strstr(told.out, "\"numerics\": 1"));
    write_random("q.npy", 4, B, HEADS, TOKENS, DIM);
    expect_success(ATTEND "--query-type bf16 --check --tolerance 0.1 --out p.npy");
    assert_int_equal(command_shell(ATTEND "--query-type bf16 --check --tolerance 1e-5 --out p.npy").status, 1);
    expect_error("--query-type: 'q8_0' is not one of f32 f16 bf16", ATTEND "--out new.npy --query-type q8_0");
}

/* Order 2 requires narrow types, which the options make, and its results have their own error. */
static void orders(void **state) {
    static const char *const types[] = {"bf16", "f16"};
    char line[256];
    (void)state;
    write_inputs();
    expect_error("--numerics: '4' is not one of 1 2 3 fastest", ATTEND "--out new.npy --numerics 4");
    expect_error("numerics = 2 takes query, key and value that are all bfloat16 or all float16",
                 ATTEND "--out new.npy --numerics 2");
    expect_error("but value.dtype = 3 (float16)",
                 ATTEND "--out new.npy --numerics 2 --query-type bf16 --key-type bf16 --value-type f16");
    expect_error("numerics = 3 takes query, key and value that are all float32",
                 ATTEND "--out new.npy --numerics 3 --kv-type bf16");
    assert_non_null(strstr(expect_success(ATTEND "--out o.npy --numerics fastest --check --tolerance 0.1").out,
                           ", numerics 1\n"));
    for (int i = 0; i < 2; i++) {
        snprintf(line, sizeof line, ATTEND "--out o.npy --numerics 2 --query-type %s --kv-type %s", types[i], types[i]);
        struct command_result told = expect_success("%s --check --tolerance 0.1", line);
        assert_non_null(strstr(told.out, ", numerics 2\n"));
        assert_non_null(strstr(told.out, i ? "types    query f16, key f16, value f16: 50 %"
                                           : "types    query bf16, key bf16, value bf16: 50 %"));
        expect_success("! %s --check --tolerance 1e-5", line); /* in place of o.npy, which stays the same */
        for (int isa = RAPT_ISA_SCALAR; isa < RAPT_ISA_COUNT; isa++)
            if (rapt_isa_available((rapt_isa)isa))
                expect_success("%s --isa %s --out p.npy --expect o.npy --tolerance 0", line,
                               rapt_isa_name((rapt_isa)isa));
    }
}

/* Queries and biases, too, in every file type. */
static void arrays_of_other_types(void **state) {
    static const char *const names[] = {"q", "k", "v"};
    static uint16_t brief[COUNT];
    static float wide[COUNT];
    const int64_t shape[] = {B, HEADS, TOKENS, DIM}, bias_shape[] = {TOKENS, TOKENS};
    (void)state;
    for (int a = 0; a < 3; a++) {
        char path[16];
        for (int i = 0; i < COUNT; i++) {
            const uint32_t bits = (uint32_t)(brief[i] = bfloat_of((float)((i * 37 + a) % 101) / 64 - 0.7f)) << 16;
            memcpy(&wide[i], &bits, sizeof bits);
        }
        snprintf(path, sizeof path, "%s.npy", names[a]);
        write_npy(path, NPY_FLOAT32, wide, 4, shape);
        snprintf(path, sizeof path, "%sb.npy", names[a]);
        write_npy(path, NPY_BFLOAT16, brief, 4, shape);
    }
    write_npy("bias.npy", NPY_FLOAT32, wide, 2, bias_shape);
    write_npy("biasb.npy", NPY_BFLOAT16, brief, 2, bias_shape);
    expect_success(ATTEND "--bias bias.npy --out o.npy");
    expect_success("$rapt attend --query qb.npy --key kb.npy --value vb.npy --bias biasb.npy --causal" SAME);
    expect_success("sed 's/<V2/|V2/' qb.npy >qn.npy; "
                   "$rapt attend --query qn.npy --key k.npy --value vb.npy --bias bias.npy --causal" SAME);
    expect_success("$rapt compare q.npy qb.npy");
    expect_error("qb.npy: holds bfloat16, expected bool", ATTEND "--mask qb.npy --out new.npy");
}

static void bad_types(void **state) {
    (void)state;
    write_inputs();
    expect_error("--key-type: 'q8' is not one of f32 f16 bf16", ATTEND "--out new.npy --key-type q8");
    expect_error("--out-type: 'q8_0' is not one of f32 f16 bf16", ATTEND "--out new.npy --out-type q8_0");
    expect_error("; did you mean q8_0?", ATTEND "--out new.npy --key-type q8");
    expect_error("--value-type: 'bool8' is not one of", ATTEND "--out new.npy --value-type bool8");
    expect_error("--kv-type: '' is not one of", ATTEND "--out new.npy --kv-type ''");
    expect_error("--kv-type changes nothing with",
                 ATTEND "--out new.npy --kv-type f16 --key-type f16 --value-type f16");
    write_random("v.npy", 4, B, HEADS, TOKENS, 24);
    expect_error("--value-type q8_0: a head has 24 elements, which is not a multiple of 32",
                 ATTEND "--out new.npy --value-type q8_0");
    expect_error("--kv-type q8_0: a head has 24 elements", ATTEND "--out new.npy --kv-type q8_0");
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(exact_numbers_give_the_same_file),
        cmocka_unit_test(check_sees_the_error_of_a_type),
        cmocka_unit_test(types_are_told),
        cmocka_unit_test(results_of_other_types),
        cmocka_unit_test(queries_are_rounded),
        cmocka_unit_test(orders),
        cmocka_unit_test(arrays_of_other_types),
        cmocka_unit_test(bad_types),
    };
    if (argc < 4) return 2;
    command_start(argc > 4 ? argv[4] : "", argv[1], argv[2]);
    int failed = cmocka_run_group_tests_name("command_types", tests, NULL, NULL);
    command_stop();
    return failed;
}
