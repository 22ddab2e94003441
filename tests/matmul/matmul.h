/* SPDX-License-Identifier: MIT
 * Matrix products for tests: data and descriptors. */
#ifndef RAPT_TESTS_MATMUL_H
#define RAPT_TESTS_MATMUL_H

#include "rapt/matmul.h"
#include "support/support.h"

struct product_case {
    int64_t rows, inner, columns;
    int32_t layout; /* rapt_weight_layout */
    bool has_bias;
    int gap; /* floats between rows of each matrix; if odd, x and weight go backwards */
    float (*draw)(struct random *);
};

/* Data in memory of test_alloc; out is NaN, and so are the gaps. */
struct product_data {
    rapt_matmul_desc desc;
    int64_t out_floats; /* with gaps */
};

struct product_data product_new(const struct product_case *product_case, struct random *random);

/* Another out of the same stride, for the same product. */
float *product_out(struct product_data *data);

/* Runs and expects RAPT_OK. options may be NULL. */
void product_run(const rapt_matmul_desc *desc, const rapt_run_options *options);

/* Fails if any bit differs, in gaps too. */
void expect_product(const struct product_data *data, const float *expected, const char *what);

/* matmul_refusals.c, matmul_accuracy.c */
void test_product_refusals(void **state);
void test_product_accuracy(void **state);

#endif
