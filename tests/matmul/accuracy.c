/* SPDX-License-Identifier: MIT
 * Errors of matrix products against double, beside those of one long chain and, if present, of OpenBLAS. */
#include "matmul/matmul.h"

#include <math.h>

#ifdef RAPT_TEST_OPENBLAS
#include <cblas.h>
#endif

#include "reference/reference.h"
#include "support/cmocka_all.h"

enum { ROWS = 48, COLUMNS = 96 };

static double truth(const rapt_matmul_desc *d, int64_t m, int64_t n) {
    double sum = 0;
    for (int64_t k = 0; k < d->inner; k++)
        sum += (double)d->x[m * d->inner + k] * d->weight[n * d->inner + k];
    return sum;
}

/* Root mean square. */
static double error_of(const float *out, const double *expected) {
    double squares = 0;
    for (int i = 0; i < ROWS * COLUMNS; i++)
        squares += (out[i] - expected[i]) * (out[i] - expected[i]);
    return sqrt(squares / (ROWS * COLUMNS));
}

static double error_of_chain(const rapt_matmul_desc *d, const double *expected) {
    float *out = test_floats(ROWS * COLUMNS);
    for (int i = 0; i < ROWS * COLUMNS; i++)
        out[i] = rapt_reference_dot(d->x + i / COLUMNS * d->inner, d->weight + i % COLUMNS * d->inner, d->inner);
    return error_of(out, expected);
}

static double error_of_openblas(const rapt_matmul_desc *d, const double *expected) {
#ifdef RAPT_TEST_OPENBLAS
    const int inner = (int)d->inner;
    float *out = test_floats(ROWS * COLUMNS);
    cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasTrans, ROWS, COLUMNS, inner, 1, d->x, inner, d->weight, inner, 0, out,
                COLUMNS);
    return error_of(out, expected);
#else
    (void)d, (void)expected;
    return INFINITY;
#endif
}

static float random_positive(struct random *random) { return fabsf(random_uniform(random)); }

static void check_accuracy(int64_t inner, const char *name, float (*draw)(struct random *)) {
    struct random random = {(uint64_t)inner};
    const struct product_case product_case = {ROWS, inner, COLUMNS, RAPT_WEIGHT_OUT_IN, false, 0, draw};
    struct product_data data = product_new(&product_case, &random);
    double *expected = test_alloc(ROWS * COLUMNS * sizeof *expected);
    for (int i = 0; i < ROWS * COLUMNS; i++)
        expected[i] = truth(&data.desc, i / COLUMNS, i % COLUMNS);
    product_run(&data.desc, NULL);
    double error = error_of(data.desc.out, expected), chain = error_of_chain(&data.desc, expected);
    double openblas = error_of_openblas(&data.desc, expected);
    print_message("# inner %lld, %s: RMS error %.2e, one chain %.2e, OpenBLAS %.2e\n", (long long)inner, name, error,
                  chain, openblas);
    assert_true(error < 0.5 * chain && error <= openblas);
    test_free_all();
}

void test_product_accuracy(void **state) {
    (void)state;
    check_accuracy(1600, "normal", random_normal);
    check_accuracy(1600, "positive", random_positive);
    if (scaled_work(100) < 100)
        return; /* emulated */
    check_accuracy(4096, "normal", random_normal);
    check_accuracy(4096, "positive", random_positive);
}
