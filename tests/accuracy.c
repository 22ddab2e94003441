/* SPDX-License-Identifier: MIT
 * Errors against attention in double, beside those of the plain float32 form,
 * both relative to the largest output of the row. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "cmocka_all.h"
#include "reference.h"
#include "support.h"

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

static void check_accuracy(const struct data *data, rapt_isa isa) {
    struct random random = {(uint64_t)data->keys};
    rapt_attention_desc desc = RAPT_ATTENTION_DESC_INIT;
    desc.isa = isa;
    desc.batch = desc.query_heads = desc.kv_heads = 1;
    desc.query_length = ROWS;
    desc.kv_length = data->keys;
    desc.head_dim = DIM;
    desc.query = rapt_input_bhsd(test_drawn(&random, ROWS * DIM, data->draw), 1, 1, ROWS, DIM);
    desc.key = rapt_input_bhsd(test_drawn(&random, data->keys * DIM, data->draw), 1, 1, data->keys, DIM);
    desc.value = rapt_input_bhsd(test_drawn(&random, data->keys * DIM, data->draw), 1, 1, data->keys, DIM);
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

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_accuracy)};
    return cmocka_run_group_tests_name("accuracy", tests, NULL, NULL);
}
