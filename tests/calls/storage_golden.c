/* SPDX-License-Identifier: MIT
 * Meanings of stored bytes to other software (tests/data/storage/README.md), the specification and every table. */
#include <stdio.h>

#include "reference/reference.h"
#include "support/cmocka_all.h"
#include "support/stored.h"

enum { BLOCKS = 24, BLOCK = 32, NUMBERS = BLOCKS * BLOCK };

static const char *folder;

static FILE *open_numbers(void) {
    char path[4096];
    snprintf(path, sizeof path, "%s/numbers.bin", folder);
    FILE *file = fopen(path, "rb");
    if (!file)
        fail_msg("%s cannot be read", path);
    return file;
}

static void expect_numbers(int format, const char *row, const float *expected, int count) {
    const struct rapt_table *tables[RAPT_ISA_COUNT];
    float *staged = test_floats(count);
    for (int i = 0; i < count; i++) {
        const float got = rapt_reference_number(stored_dtype(format), row, i);
        if (!same_bits(got, expected[i], NAN_ANY))
            fail_msg("%s, number %d: the reference has %a, expected %a", stored_name(format), i, (double)got,
                     (double)expected[i]);
    }
    for (int table = machine_tables(tables) - 1; table >= 0; table--) {
        const struct rapt_stage_args args = {.into = staged, .from = row, .rows = 1, .dim = count, .format = format};
        tables[table]->stage(&args);
        expect_bits(staged, expected, count, NAN_ANY, "%s, %s", tables[table]->name, stored_name(format));
    }
}

static void test_numbers(void **state) {
    static const int blocks[] = {RAPT_FORMAT_Q8_0, RAPT_FORMAT_Q4_0, RAPT_FORMAT_Q4_1,
                                 RAPT_FORMAT_Q5_0, RAPT_FORMAT_Q5_1, RAPT_FORMAT_IQ4_NL};
    static const int bytes[] = {RAPT_FORMAT_F8_E4M3, RAPT_FORMAT_F8_E5M2};
    float *expected = test_floats(NUMBERS);
    FILE *file = open_numbers();
    for (size_t i = 0; i < sizeof blocks / sizeof *blocks; i++) {
        const size_t row_bytes = (size_t)rapt_row_bytes(stored_dtype(blocks[i]), NUMBERS);
        char *row = test_alloc(row_bytes);
        assert_int_equal(fread(row, 1, row_bytes, file), row_bytes);
        assert_int_equal(fread(expected, sizeof *expected, NUMBERS, file), NUMBERS);
        expect_numbers(blocks[i], row, expected, NUMBERS);
    }
    for (size_t i = 0; i < sizeof bytes / sizeof *bytes; i++) {
        char row[256];
        for (int code = 0; code < 256; code++)
            row[code] = (char)code;
        assert_int_equal(fread(expected, sizeof *expected, 256, file), 256);
        expect_numbers(bytes[i], row, expected, 256);
    }
    assert_int_equal(fgetc(file), EOF);
    fclose(file);
    test_free_all();
    (void)state;
}

/* Traps that caught other libraries. */
static void test_float8(void **state) {
    const unsigned char e4m3[] = {0x01, 0x81, 0x07, 0x7e, 0x7f, 0xff}, e5m2[] = {0x01, 0x82, 0x7b, 0x7c, 0xfc, 0x7d};
    const float e4m3_numbers[] = {0x1p-9f, -0x1p-9f, 0x1.cp-7f, 448, float_of(0x7fc00000u), float_of(0x7fc00000u)};
    const float e5m2_numbers[] = {0x1p-16f, -0x1p-15f, 57344, float_of(0x7f800000u), float_of(0xff800000u),
                                  float_of(0x7fc00000u)};
    (void)state;
    expect_numbers(RAPT_FORMAT_F8_E4M3, (const char *)e4m3, e4m3_numbers, 6);
    expect_numbers(RAPT_FORMAT_F8_E5M2, (const char *)e5m2, e5m2_numbers, 6);
    test_free_all();
}

/* (number - zero point) * scale, for any scale, in rows of two groups, the last shorter. */
static void test_scales(void **state) {
    enum { DIM = 75, ROWS = 12, GROUP = 48, STRIDE = 3 };
    const struct rapt_table *tables[RAPT_ISA_COUNT];
    struct random random = {13};
    float scales[ROWS * STRIDE], *staged = test_floats(ROWS * DIM), *expected = test_floats(ROWS * DIM);
    int8_t codes[ROWS * DIM], zero_points[ROWS * STRIDE];
    for (int i = 0; i < ROWS * DIM; i++)
        codes[i] = (int8_t)random_bits(&random);
    for (int i = 0; i < ROWS * STRIDE; i++) {
        scales[i] = random_special(&random);
        zero_points[i] = (int8_t)random_bits(&random);
    }
    for (int i = 0; i < ROWS * DIM; i++) {
        const int at = i / DIM * STRIDE + i % DIM / GROUP;
        expected[i] = (float)(codes[i] - zero_points[at]) * scales[at];
    }
    for (int table = machine_tables(tables) - 1; table >= 0; table--) {
        const struct rapt_stage_args args = {
            .into = staged, .from = (const char *)codes, .from_stride_bytes = DIM, .rows = ROWS, .dim = DIM,
            .format = RAPT_FORMAT_I8,
            .scales = {scales, zero_points, STRIDE * (int64_t)sizeof(float), GROUP}};
        tables[table]->stage(&args);
        expect_bits(staged, expected, ROWS * DIM, NAN_ANY, "%s, int8", tables[table]->name);
    }
    test_free_all();
    (void)state;
}

int main(int count, char **arguments) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_numbers), cmocka_unit_test(test_float8),
                                       cmocka_unit_test(test_scales)};
    assert_int_equal(count, 2);
    folder = arguments[1];
    return cmocka_run_group_tests_name("storage_golden", tests, NULL, NULL);
}
