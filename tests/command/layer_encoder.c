/* SPDX-License-Identifier: MIT
 * `rapt layer encoder`: placement of norms, their epsilon, the activation, against libm in double. argv as of
 * command_layer_options.c. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "command/run.h"
#include "rapt/layers.h"

enum { TOKENS = 7, WIDTH = 16, HIDDEN = 24 }; /* of the case's weights */
#define CASE "10b_encoder_block_mask_affine"

static void read_numbers(const char *path, double *numbers, int64_t count) {
    const struct npy_array array = npy_read(path, NPY_FLOAT32);
    assert_int_equal(array.count, count);
    for (int64_t i = 0; i < count; i++) numbers[i] = (double)((const float *)array.data)[i];
}

static void read_weight(const char *name, double *numbers, int64_t count) {
    char path[128];
    snprintf(path, sizeof path, "%s/" CASE "/%s.npy", getenv("data"), name);
    read_numbers(path, numbers, count);
}

static void linear(const char *name, const double *x, int in, int out, double *y) {
    double weight[WIDTH * HIDDEN], bias[HIDDEN];
    char path[32];
    snprintf(path, sizeof path, "w_%s", name);
    read_weight(path, weight, in * out);
    snprintf(path, sizeof path, "b_%s", name);
    read_weight(path, bias, out);
    for (int i = 0; i < TOKENS * out; i++) {
        y[i] = bias[i % out];
        for (int j = 0; j < in; j++) y[i] += x[i / out * in + j] * weight[i % out * in + j];
    }
}

static void norm(const char *name, double epsilon, const double *x, double *y) {
    double gamma[WIDTH], beta[WIDTH];
    char path[32];
    snprintf(path, sizeof path, "%s_gamma", name);
    read_weight(path, gamma, WIDTH);
    snprintf(path, sizeof path, "%s_beta", name);
    read_weight(path, beta, WIDTH);
    for (int t = 0; t < TOKENS; t++, x += WIDTH, y += WIDTH) {
        double mean = 0, variance = 0;
        for (int i = 0; i < WIDTH; i++) mean += x[i] / WIDTH;
        for (int i = 0; i < WIDTH; i++) variance += (x[i] - mean) * (x[i] - mean) / WIDTH;
        for (int i = 0; i < WIDTH; i++) y[i] = (x[i] - mean) / sqrt(variance + epsilon) * gamma[i] + beta[i];
    }
}

static double activate(double x, rapt_activation activation) {
    if (activation == RAPT_RELU) return x > 0 ? x : 0;
    if (activation == RAPT_GELU) return x * erfc(-x / sqrt(2)) / 2;
    return x / 2 * (1 + tanh(sqrt(2 / 3.14159265358979323846) * (x + 0.044715 * x * x * x)));
}

static void feed_forward(const double *x, rapt_activation activation, double *y) {
    double hidden[TOKENS * HIDDEN];
    linear("ff1", x, WIDTH, HIDDEN, hidden);
    for (int i = 0; i < TOKENS * HIDDEN; i++) hidden[i] = activate(hidden[i], activation);
    linear("ff2", hidden, HIDDEN, WIDTH, y);
}

static void add(const double *a, double *sum) {
    for (int i = 0; i < TOKENS * WIDTH; i++) sum[i] += a[i];
}

static void expect_file(const char *path, const double *expected, const char *options) {
    double got[TOKENS * WIDTH];
    read_numbers(path, got, TOKENS * WIDTH);
    for (int i = 0; i < TOKENS * WIDTH; i++)
        if (!(fabs(got[i] - expected[i]) <= 4e-6))
            fail_msg("encoder %s: %s: %g, not %g", options, path, got[i], expected[i]);
}

struct block {
    const char *options;
    bool pre_norm;
    rapt_activation activation;
    double epsilon;
};

/* From attention's output, which equals that of a separate layer. */
static void expect_block(const struct block *block) {
    double x[TOKENS * WIDTH], norm1[TOKENS * WIDTH], inner[TOKENS * WIDTH], out[TOKENS * WIDTH];
    expect_success("c=$data/" CASE "; $rapt layer encoder --heads 2 --weights $c --input x.npy --out o.npy "
                   "--all-outputs all %s", block->options);
    expect_success("c=$data/" CASE "; $rapt layer fused --heads 2 --weights $c --input %s --out a.npy && "
                   "cmp a.npy all/attended.npy", block->pre_norm ? "all/norm1.npy" : "x.npy");
    read_numbers("x.npy", x, TOKENS * WIDTH);
    read_numbers("all/attended.npy", out, TOKENS * WIDTH);
    if (block->pre_norm) {
        norm("ln1", block->epsilon, x, norm1);
        add(x, out);
        norm("ln2", block->epsilon, out, inner);
        feed_forward(inner, block->activation, inner);
        add(inner, out);
    } else {
        add(x, out);
        norm("ln1", block->epsilon, out, norm1);
        feed_forward(norm1, block->activation, inner);
        add(norm1, inner);
        norm("ln2", block->epsilon, inner, out);
    }
    expect_file("all/norm1.npy", norm1, block->options);
    expect_file("o.npy", out, block->options);
}

static void blocks(void **state) {
    static const struct block all[] = {
        {"", false, RAPT_RELU, 1e-5},
        {"--activation relu --epsilon 0.25", false, RAPT_RELU, 0.25},
        {"--activation gelu", false, RAPT_GELU, 1e-5},
        {"--activation gelu-tanh --epsilon 1e-3", false, RAPT_GELU_TANH, 1e-3},
        {"--pre-norm", true, RAPT_RELU, 1e-5},
        {"--pre-norm --activation gelu --epsilon 0.25", true, RAPT_GELU, 0.25},
        {"--pre-norm --activation gelu-tanh", true, RAPT_GELU_TANH, 1e-5},
    };
    float x[TOKENS * WIDTH]; /* so small that the default epsilon matters */
    (void)state;
    for (int i = 0; i < TOKENS * WIDTH; i++) x[i] = (float)(i * 37 % 101 - 50) / 5000;
    write_npy("x.npy", NPY_FLOAT32, x, 2, (const int64_t[]){TOKENS, WIDTH});
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) expect_block(&all[i]);
}

static void bad_options(void **state) {
    (void)state;
    write_random("x.npy", 2, 1, 1, TOKENS, WIDTH);
#define ENCODER "c=$data/" CASE "; $rapt layer encoder --heads 2 --weights $c --input x.npy --out new.npy "
    expect_error("--activation: 'tanh' is not one of relu gelu gelu-tanh", ENCODER "--activation tanh");
    expect_error("norm1.epsilon = 0: expected a positive, finite number", ENCODER "--epsilon 0");
    expect_error("layer fused has no --pre-norm",
                 "c=$data/" CASE "; $rapt layer fused --heads 2 --weights $c --input x.npy --out new.npy --pre-norm");
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(blocks),
        cmocka_unit_test(bad_options),
    };
    if (argc < 4) return 2;
    command_start(argc > 4 ? argv[4] : "", argv[1], argv[2]);
    setenv("data", command_link("layers", argv[3]), 1);
    int failed = cmocka_run_group_tests_name("command_layer_encoder", tests, NULL, NULL);
    command_stop();
    return failed;
}
