/* SPDX-License-Identifier: MIT
 * Matrix products against the specification, bit for bit: sizes around every edge, both layouts, strides, special
 * numbers, threads, splits of the rows. */
#include "matmul/matmul.h"

#include "reference/reference.h"
#include "support/cmocka_all.h"
#include "support/guarded.h"
#include "support/pool.h"
#include "support/registers.h"

static const int64_t edge_rows[] = {1, 2, 3, 4, 5, 7, 8, 9, 12, 15, 16, 17, 31, 50};
static const int64_t edge_inner[] = {0, 1, 3, 4, 7, 15, 16, 17, 31, 100, 255, 256, 257, 511, 512, 513, 1600};
static const int64_t edge_columns[] = {1, 3, 4, 7, 8, 15, 16, 17, 24, 31, 33, 47, 48, 49, 97, 130, 300};

#define PICK(random, array) (array)[random_below(random, (int64_t)(sizeof(array) / sizeof *(array)))]

static struct product_case random_case(struct random *random) {
    static float (*const draws[])(struct random *) = {random_normal, random_normal, random_special, random_finite};
    return (struct product_case){.rows = PICK(random, edge_rows),
                                 .inner = PICK(random, edge_inner),
                                 .columns = PICK(random, edge_columns),
                                 .layout = (int32_t)random_below(random, 2),
                                 .has_bias = random_chance(random, 50),
                                 .gap = random_chance(random, 50) ? 0 : (int)random_between(random, 1, 20),
                                 .draw = PICK(random, draws)};
}

static void check_case(const struct product_case *product_case, struct random *random) {
    const struct rapt_table *tables[RAPT_ISA_COUNT];
    struct product_data data = product_new(product_case, random);
    float *expected = data.desc.out;
    rapt_reference_matmul(&data.desc);
    for (int t = 0, count = machine_tables(tables); t < count; t++) {
        data.desc.isa = tables[t]->isa;
        product_out(&data);
        product_run(&data.desc, NULL);
        expect_product(&data, expected, "bits");
    }
    test_free_all();
}

static void test_edges(void **state) {
    struct random random = {1};
    (void)state;
    for (int64_t n = scaled_work(2500); n > 0; n--) {
        struct product_case product_case = random_case(&random);
        check_case(&product_case, &random);
    }
}

/* Several tasks of rows and of columns, with many and few rows. */
static const struct product_case large_cases[] = {
    {600, 70, 100, RAPT_WEIGHT_OUT_IN, true, 0, random_normal},
    {600, 70, 100, RAPT_WEIGHT_IN_OUT, false, 3, random_normal},
    {130, 520, 200, RAPT_WEIGHT_OUT_IN, false, 0, random_normal},
    {17, 300, 1600, RAPT_WEIGHT_IN_OUT, true, 2, random_normal},
    {1, 768, 5000, RAPT_WEIGHT_OUT_IN, true, 0, random_normal},
    {2, 513, 9001, RAPT_WEIGHT_IN_OUT, true, 1, random_normal},
    {5, 600, 4500, RAPT_WEIGHT_IN_OUT, false, 0, random_normal},
    {3, 130, 4500, RAPT_WEIGHT_IN_OUT, false, 0, random_normal},
};
enum { LARGE_CASES = sizeof large_cases / sizeof *large_cases };

/* Emulators run every third. */
static int large_step(void) { return scaled_work(100) < 100 ? 3 : 1; }

static void test_large(void **state) {
    struct random random = {2};
    (void)state;
    for (int i = 0; i < LARGE_CASES; i += large_step())
        check_case(&large_cases[i], &random);
}

static void test_threads(void **state) {
    struct random random = {3};
    (void)state;
    for (int i = 0; i < LARGE_CASES; i += large_step()) {
        struct product_data data = product_new(&large_cases[i], &random);
        rapt_run_options options = {.struct_size = sizeof options, .max_threads = 1};
        float *expected = data.desc.out;
        product_run(&data.desc, &options);
        for (int threads = 1; threads <= 3; threads++) {
            struct pool pool = {.threads = threads};
            options = (rapt_run_options){.struct_size = sizeof options, .max_threads = threads};
            product_out(&data);
            product_run(&data.desc, &options);
            expect_product(&data, expected, "OpenMP");
            options = (rapt_run_options){.struct_size = sizeof options,
                                         .max_threads = threads - 1,
                                         .parallel_for = pool_parallel_for,
                                         .parallel_for_context = &pool};
            product_out(&data);
            product_run(&data.desc, &options);
            expect_product(&data, expected, "parallel-for");
            assert_int_equal(pool.calls, 1);
            assert_true(pool.largest_count >= 1 && (threads == 1 || pool.largest_count <= threads - 1));
        }
        test_free_all();
    }
}

static int lazy_parallel_for(void *context, int64_t count, void (*task)(void *, int64_t), void *argument) {
    (void)context, (void)count, (void)task, (void)argument;
    return 0;
}

static int complaining_parallel_for(void *context, int64_t count, void (*task)(void *, int64_t), void *argument) {
    (void)context;
    for (int64_t i = 0; i < count; i++)
        task(argument, i);
    return 1;
}

static void test_failing_parallel_for(void **state) {
    struct random random = {4};
    struct product_data data = product_new(&large_cases[0], &random);
    struct pool pool = {.threads = 2, .fail_at_call = 1};
    rapt_message message;
    rapt_run_options options = RAPT_RUN_OPTIONS_INIT;
    options.parallel_for = pool_parallel_for;
    options.parallel_for_context = &pool;
    (void)state;
    assert_int_equal(rapt_matmul(&data.desc, &options, &message), RAPT_PARALLEL_FOR_FAILED);
    assert_non_null(strstr(message.text, "parallel-for"));
    options.parallel_for = lazy_parallel_for;
    assert_int_equal(rapt_matmul(&data.desc, &options, NULL), RAPT_PARALLEL_FOR_FAILED);
    options.parallel_for = complaining_parallel_for; /* any number but 0 is an error, also after all tasks */
    assert_int_equal(rapt_matmul(&data.desc, &options, NULL), RAPT_PARALLEL_FOR_FAILED);
    test_free_all();
}

static int stop_once(void *asked) { return (*(int *)asked)++ == 0; }

/* One stop stops all workers: none of them asks again. */
static void test_one_stop_is_enough(void **state) {
    struct random random = {4};
    struct product_data data = product_new(&large_cases[0], &random);
    struct pool pool = {.threads = 1}; /* runs one worker after the other */
    int asked = 0;
    rapt_run_options options = RAPT_RUN_OPTIONS_INIT;
    (void)state;
    options.max_threads = 4, options.parallel_for = pool_parallel_for, options.parallel_for_context = &pool;
    options.should_stop = stop_once, options.should_stop_context = &asked;
    assert_int_equal(rapt_matmul(&data.desc, &options, NULL), RAPT_STOPPED);
    assert_int_equal(pool.largest_count, 4);
    assert_int_equal(asked, 1);
    test_free_all();
}

/* Any split of the rows: all at once, piecewise, one by one. */
static void test_rows(void **state) {
    static const int64_t pieces[] = {1, 5, 9, 16, 40};
    struct random random = {5};
    (void)state;
    for (int32_t layout = 0; layout < 2; layout++) {
        const struct product_case product_case = {75, 700, 130, layout, true, 2, random_special};
        struct product_data data = product_new(&product_case, &random);
        float *expected = data.desc.out;
        product_run(&data.desc, NULL);
        for (int p = 0; p < 5; p++) {
            float *out = product_out(&data);
            for (int64_t row = 0; row < product_case.rows; row += pieces[p]) {
                rapt_matmul_desc part = data.desc;
                part.rows = product_case.rows - row < pieces[p] ? product_case.rows - row : pieces[p];
                part.x = (const float *)(const void *)((const char *)part.x + row * part.x_stride_bytes);
                part.out = out + row * part.out_stride_bytes / (int64_t)sizeof(float);
                product_run(&part, NULL);
            }
            expect_product(&data, expected, "rows in pieces");
        }
        test_free_all();
    }
}

/* x and weights of stride 0, a matrix times itself, single rows with meaningless strides. */
static void test_odd_inputs(void **state) {
    struct random random = {6};
    (void)state;
    for (int32_t layout = 0; layout < 2; layout++)
        for (int64_t rows = 1; rows <= 20; rows += 19) {
            const struct product_case product_case = {rows, 20, 20, layout, false, 0, random_normal};
            struct product_data data = product_new(&product_case, &random);
            float *expected = data.desc.out;
            if (rows == 1)
                data.desc.x_stride_bytes = INT64_MIN, data.desc.out_stride_bytes = -3;
            else
                data.desc.x_stride_bytes = data.desc.weight_stride_bytes = 0;
            data.desc.x = data.desc.bias = data.desc.weight;
            rapt_reference_matmul(&data.desc);
            product_out(&data);
            product_run(&data.desc, NULL);
            assert_memory_equal(data.desc.out, expected, (size_t)data.out_floats * sizeof(float));
            test_free_all();
        }
}

/* Copies to memory that ends, or begins, at a guard page. */
static const float *guard(const float *values, int64_t count, enum guard_side side, struct guarded *memory) {
    size_t bytes = (size_t)count * sizeof(float);
    *memory = guarded_new(bytes, side, 0, 0xff);
    if (values)
        memcpy(memory->data, values, bytes);
    return (const float *)(const void *)memory->data;
}

static void check_guarded(const struct product_case *c, enum guard_side side, struct random *random) {
    const struct rapt_table *tables[RAPT_ISA_COUNT];
    struct guarded memory[4];
    struct product_data data = product_new(c, random);
    float *expected = data.desc.out;
    rapt_reference_matmul(&data.desc);
    data.desc.x = guard(data.desc.x, c->rows * c->inner, side, &memory[0]);
    data.desc.weight = guard(data.desc.weight, c->columns * c->inner, side, &memory[1]);
    data.desc.bias = guard(data.desc.bias, c->columns, side, &memory[2]);
    for (int t = 0, count = machine_tables(tables); t < count; t++) {
        data.desc.isa = tables[t]->isa;
        data.desc.out = (float *)(uintptr_t)guard(NULL, data.out_floats, side, &memory[3]);
        product_run(&data.desc, NULL);
        expect_product(&data, expected, "guarded");
        assert_true(guarded_is_clean(&memory[3]));
        guarded_free(&memory[3]);
    }
    for (int i = 0; i < 3; i++)
        guarded_free(&memory[i]);
    test_free_all();
}

static void test_guarded(void **state) {
    struct random random = {7};
    (void)state;
    for (int64_t n = scaled_work(150); n > 0; n--) {
        struct product_case product_case = random_case(&random);
        product_case.gap = 0;
        product_case.has_bias = true;
        if (product_case.inner > 0)
            check_guarded(&product_case, n % 2 ? GUARD_END : GUARD_BEGIN, &random);
    }
}

/* The caller's flushing, rounding and traps change nothing, and are restored. */
static void test_float_modes(void **state) {
    struct random random = {8};
    (void)state;
    for (int64_t rows = 1; rows <= 40; rows += 39)
        for (int32_t layout = 0; layout < 2; layout++) {
            const struct product_case product_case = {rows, 300, 70, layout, true, 0, random_finite};
            struct product_data data = product_new(&product_case, &random);
            float *expected = data.desc.out;
            rapt_reference_matmul(&data.desc);
            for (int i = 0; i < float_mode_count; i++) {
                const uint64_t mode = get_float_mode();
                product_out(&data);
                set_float_mode(float_modes[i].value);
                rapt_status status = rapt_matmul(&data.desc, NULL, NULL);
                const uint64_t after = get_float_mode();
                set_float_mode(mode);
                assert_int_equal(status, RAPT_OK);
                assert_int_equal(after, float_modes[i].value);
                expect_product(&data, expected, float_modes[i].name);
            }
            test_free_all();
        }
}

/* The argument, if any, is a pattern of test names. */
int main(int count, char **arguments) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_edges),
        cmocka_unit_test(test_large),
        cmocka_unit_test(test_threads),
        cmocka_unit_test(test_failing_parallel_for),
        cmocka_unit_test(test_one_stop_is_enough),
        cmocka_unit_test(test_rows),
        cmocka_unit_test(test_odd_inputs),
        cmocka_unit_test(test_guarded),
        cmocka_unit_test(test_float_modes),
        cmocka_unit_test(test_product_refusals),
        cmocka_unit_test(test_product_accuracy),
    };
    if (count > 1)
        cmocka_set_test_filter(arguments[1]);
    return cmocka_run_group_tests_name("matmul", tests, NULL, NULL);
}
