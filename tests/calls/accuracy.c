/* SPDX-License-Identifier: MIT
 * Errors against attention in double, beside those of the plain float32 form, both relative to the row's largest
 * output; and the worst data, whose errors docs/numerics.md states. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "reference/reference.h"
#include "support/cmocka_all.h"
#include "support/support.h"

enum { ROWS = 320, DIM = 64 }; /* 20480 outputs */

struct data {
    const char *name;
    int64_t keys;
    float (*draw)(struct random *random);
};

struct error {
    double rms, percentile_999;
};

static int compare_doubles(const void *left, const void *right) {
    double a = *(const double *)left, b = *(const double *)right;
    return (a > b) - (a < b);
}

static struct error error_of(const float *out, const double *truth) {
    double *errors = test_alloc(ROWS * DIM * sizeof *errors), squares = 0;
    for (int row = 0; row < ROWS; row++) {
        double largest = 0;
        for (int d = 0; d < DIM; d++)
            largest = fmax(largest, fabs(truth[row * DIM + d]));
        for (int d = 0; d < DIM; d++) {
            double error = fabs((double)out[row * DIM + d] - truth[row * DIM + d]) / largest;
            errors[row * DIM + d] = error;
            squares += error * error;
        }
    }
    qsort(errors, ROWS * DIM, sizeof *errors, compare_doubles);
    return (struct error){sqrt(squares / (ROWS * DIM)), errors[ROWS * DIM * 999 / 1000]};
}

static rapt_attention_desc describe(int64_t rows, int64_t keys, int64_t dim, const float *query, const float *key,
                                    const float *value) {
    rapt_attention_desc desc = RAPT_ATTENTION_DESC_INIT;
    desc.batch = desc.query_heads = desc.kv_heads = 1;
    desc.query_length = rows;
    desc.kv_length = keys;
    desc.head_dim = dim;
    desc.query = rapt_input_bhsd(query, 1, 1, rows, dim);
    desc.key = rapt_input_bhsd(key, 1, 1, keys, dim);
    desc.value = rapt_input_bhsd(value, 1, 1, keys, dim);
    return desc;
}

static void check_accuracy(const struct data *data, rapt_isa isa) {
    struct random random = {(uint64_t)data->keys};
    const float *query = test_drawn(&random, ROWS * DIM, data->draw);
    const float *key = test_drawn(&random, data->keys * DIM, data->draw);
    rapt_attention_desc desc =
        describe(ROWS, data->keys, DIM, query, key, test_drawn(&random, data->keys * DIM, data->draw));
    desc.isa = isa;
    float *out = test_floats(ROWS * DIM), *plain = test_floats(ROWS * DIM);
    double *truth = test_alloc(ROWS * DIM * sizeof *truth);
    desc.out = rapt_output_bhsd(out, 1, 1, ROWS, DIM);
    assert_int_equal(rapt_attention(&desc, NULL, NULL), RAPT_OK);
    rapt_plain_attention(&desc, plain);
    rapt_truth_attention(&desc, truth, NULL, NULL);
    struct error ours = error_of(out, truth), theirs = error_of(plain, truth);
    print_message("# %-12s %5lld keys: RMS %.3g, %.3f of plain; 99.9th percentile %.3g, %.3f of plain\n",
                  data->name, (long long)data->keys, ours.rms, ours.rms / theirs.rms, ours.percentile_999,
                  ours.percentile_999 / theirs.percentile_999);
    assert_true(ours.rms > 0 && ours.rms <= 1.05 * theirs.rms);
    assert_true(ours.percentile_999 <= 1.2 * theirs.percentile_999);
    test_free_all();
}

static void test_accuracy(void **state) {
    static const struct data data[] = {
        {"normal", 128, random_normal},       {"uniform", 128, random_uniform},
        {"heavy-tailed", 128, random_heavy},  {"normal", 1024, random_normal},
        {"uniform", 1024, random_uniform},    {"heavy-tailed", 1024, random_heavy},
        {"normal", 8192, random_normal},      {"uniform", 8192, random_uniform},
        {"heavy-tailed", 8192, random_heavy},
    };
    const struct rapt_table *tables[RAPT_ISA_COUNT];
    int count = machine_tables(tables),
        cases = scaled_work(100) < 100 ? 6 : 9; /* all tables give the same bits */
    for (int i = 0; i < cases; i++)
        check_accuracy(&data[i], tables[count - 1]->isa);
    (void)state;
}

enum { CHUNK = 512 };

/* Relative error of a chunk's sum of p * v. */
static double error_of_sum(float p, float v) {
    float sum = 0;
    for (int i = 0; i < CHUNK; i++)
        sum = fmaf(p, v, sum);
    return (double)sum / (CHUNK * (double)p * (double)v) - 1;
}

static float weight_of(float logit) {
    const float t = logit * 0x1.715476p+0f;
    return rapt_reference_exp2(t, rapt_reference_even_maximum(-INFINITY, t));
}

/* |out / value - 1| if all keys and all values are equal. */
static double error_of_equals(float logit, float value, int64_t keys) {
    float *key = test_floats(keys), *values = test_floats(keys), out;
    for (int64_t i = 0; i < keys; i++)
        key[i] = 1, values[i] = value;
    rapt_attention_desc desc = describe(1, keys, 1, &logit, key, values);
    desc.out = rapt_output_bhsd(&out, 1, 1, 1, 1);
    assert_int_equal(rapt_attention(&desc, NULL, NULL), RAPT_OK);
    test_free_all();
    return fabs((double)out / (double)value - 1);
}

/* Each of the two sums is off by up to (terms of a chunk + chunks) / 4 units of 2^-24, if all roundings go one way. The
 * data are searched: a weight whose sum is too small, and a value whose sum of products is too large. */
static void test_equal_values(void **state) {
    struct random random = {5};
    float logit = -0.5f, value = 1;
    double low = 0, high = 0;
    (void)state;
    for (int64_t turn = scaled_work(20000); turn > 0; turn--) {
        const float drawn = random_uniform(&random);
        const double error = error_of_sum(weight_of(drawn), 1);
        if (error < low)
            low = error, logit = drawn;
    }
    for (int64_t turn = scaled_work(20000); turn > 0; turn--) {
        const float drawn = 1 + fabsf(random_uniform(&random));
        const double error = error_of_sum(weight_of(logit), drawn);
        if (error > high)
            high = error, value = drawn;
    }
    for (int64_t keys = CHUNK; keys <= 256 * CHUNK; keys *= 16) {
        const double error = error_of_equals(logit, value, keys);
        const int64_t terms = CHUNK + keys / CHUNK;
        const double most = (double)terms / 2 * 0x1p-24 + 3 * 0x1p-24;
        print_message("# equal values  %6lld keys: %.3g, at most %.3g\n", (long long)keys, error, most);
        assert_true(error <= most);
        if (keys == CHUNK && scaled_work(100) == 100)
            assert_true(error >= 1.45e-5);
    }
}

/* Integers, for exact dot products: with_common adds the same 8e6 to all; logits are 1/8 of them. */
static void check_large_logits(bool with_common, double least, double most) {
    enum { KEYS = 512 };
    struct random random = {6};
    float *query = test_floats(ROWS * DIM), *key = test_floats(KEYS * DIM);
    for (int i = 0; i < ROWS * DIM; i++)
        query[i] = i % DIM ? (float)random_between(&random, -1, 1) : 2000;
    for (int i = 0; i < KEYS * DIM; i++)
        key[i] = i % DIM ? (float)random_between(&random, -1, 1) : with_common ? 4000 : 0;
    rapt_attention_desc desc =
        describe(ROWS, KEYS, DIM, query, key, test_drawn(&random, KEYS * DIM, random_normal));
    float *out = test_floats(ROWS * DIM);
    double *truth = test_alloc(ROWS * DIM * sizeof *truth);
    desc.out = rapt_output_bhsd(out, 1, 1, ROWS, DIM);
    assert_int_equal(rapt_attention(&desc, NULL, NULL), RAPT_OK);
    rapt_truth_attention(&desc, truth, NULL, NULL);
    const struct error error = error_of(out, truth);
    print_message("# logits near %s: RMS %.3g\n", with_common ? "1e6" : "0", error.rms);
    assert_true(error.rms >= least && error.rms <= most);
    test_free_all();
}

/* Logits are rounded before the maximum is subtracted: at 1e6, or 1.4e6 to base 2, to multiples of 2^-3. */
static void test_large_logits(void **state) {
    (void)state;
    check_large_logits(false, 0, 1e-6);
    check_large_logits(true, 0.005, 0.044);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_accuracy), cmocka_unit_test(test_equal_values),
                                       cmocka_unit_test(test_large_logits)};
    return cmocka_run_group_tests_name("accuracy", tests, NULL, NULL);
}
