/* SPDX-License-Identifier: MIT
 * `rapt attend` with keys and values in other storage types. argv as that of command.c. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "command_run.h"

#define ATTEND "$rapt attend --query q.npy --key k.npy --value v.npy --causal "
#define SAME " --expect o.npy --tolerance 0 --out p.npy"

enum { B = 2, HEADS = 2, TOKENS = 40, DIM = 64, COUNT = B * HEADS * TOKENS * DIM };

/* n / 4 for -8 <= n < 8, which each floating-point type holds exactly, as float32 and as float16. */
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

/* The check is against the numbers that were given, so the error is that of the types. */
static void check_sees_the_error_of_a_type(void **state) {
    static const char *const few_bits[] = {"--kv-type q8_0", "--key-type q8_0", "--value-type q8_0", "--kv-type bf16"};
    (void)state;
    write_random("q.npy", 4, B, HEADS, 3, DIM);
    write_random("k.npy", 4, B, HEADS, TOKENS, DIM);
    write_random("v.npy", 4, B, HEADS, TOKENS, 32);
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
    struct command_result told = expect_success(ATTEND "--out o.npy --key-type q8_0 --value-type f16");
    assert_non_null(strstr(told.out, "types    key q8_0, value f16: 34.4 % of the bytes of float32\n"));
    told = expect_success(ATTEND "--out o.npy --key-type q8_0 --json");
    assert_non_null(strstr(told.out, "\"key_type\": \"q8_0\""));
    assert_non_null(strstr(told.out, "\"value_type\": \"f32\""));
    assert_null(strstr(expect_success(ATTEND "--out o.npy").out, "types"));
}

static void bad_types(void **state) {
    (void)state;
    expect_error("--key-type: 'q8' is none of f32 f16 bf16", ATTEND "--out new.npy --key-type q8");
    expect_error("; did you mean q8_0?", ATTEND "--out new.npy --key-type q8");
    expect_error("--value-type: 'bool8' is none of", ATTEND "--out new.npy --value-type bool8");
    expect_error("--kv-type: '' is none of", ATTEND "--out new.npy --kv-type ''");
    expect_error("--kv-type changes nothing with",
                 ATTEND "--out new.npy --kv-type f16 --key-type f16 --value-type f16");
    write_random("v.npy", 4, B, HEADS, TOKENS, 24);
    expect_error("--value-type q8_0: a head has 24 elements, which is no multiple of 32",
                 ATTEND "--out new.npy --value-type q8_0");
    expect_error("--kv-type q8_0: a head has 24 elements", ATTEND "--out new.npy --kv-type q8_0");
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(exact_numbers_give_the_same_file),
        cmocka_unit_test(check_sees_the_error_of_a_type),
        cmocka_unit_test(types_are_told),
        cmocka_unit_test(bad_types),
    };
    if (argc < 4) return 2;
    command_start(argc > 4 ? argv[4] : "", argv[1], argv[2]);
    int failed = cmocka_run_group_tests_name("command_types", tests, NULL, NULL);
    command_stop();
    return failed;
}
