/* SPDX-License-Identifier: MIT
 * The layers' scalar functions against libm in long double, and Philox against its authors' vectors. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "layers/elementary.h"
#include "layers/elementwise.h"
#include "layers/philox.h"
#include "rapt/layers.h"
#include "support/errors.h"
#include "support/support.h"

static long double true_exp(long double x) { return expl(x); }
static long double true_tanh(long double x) { return tanhl(x); }
static long double true_sigmoid(long double x) { return 1 / (1 + expl(-x)); }
static long double true_gelu(long double x) { return x * erfcl(-x / sqrtl(2)) / 2; }
static long double true_gelu_tanh(long double x) {
    return x / (1 + expl(-2 * sqrtl(2 / 3.14159265358979323846264L) * (x + 0.044715L * x * x * x)));
}

/* In ulps of float. */
static double ulps(float got, long double exact) {
    const float rounded = (float)exact;
    const float next = nextafterf(fabsf(rounded), INFINITY);
    return (double)(fabsl((long double)got - exact) / ((long double)next - fabsl(rounded)));
}

/* Every step-th float of both signs below limit. */
static void sweep(const char *name, double (*function)(double), long double (*exact)(long double), float limit,
                  double allowed) {
    double worst = 0;
    for (uint32_t bits = 0; float_of(bits) < limit; bits += 10007) {
        const float x[2] = {float_of(bits), -float_of(bits)};
        for (int i = 0; i < 2; i++)
            worst = larger_error(worst, ulps((float)function(x[i]), exact(x[i])));
    }
    print_message("# %-10s %.4f ulp\n", name, worst);
    assert_true(worst <= allowed);
}

static double call_exp(double x) { return rapt_exp(x); }

static void functions(void **state) {
    (void)state;
    sweep("exp", call_exp, true_exp, 88, 0.5001);
    sweep("tanh", rapt_tanh, true_tanh, INFINITY, 0.5001);
    sweep("sigmoid", rapt_sigmoid, true_sigmoid, 87, 0.5001);
    sweep("gelu", rapt_gelu, true_gelu, 12, 0.51);
    sweep("gelu_tanh", rapt_gelu_tanh, true_gelu_tanh, 9, 0.5001);
}

static void edges(void **state) {
    (void)state;
    assert_true(rapt_exp(-1e9) == 0 && rapt_exp(-INFINITY) == 0 && isnan(rapt_exp(NAN)));
    assert_true(rapt_tanh(INFINITY) == 1 && rapt_tanh(-INFINITY) == -1 && isnan(rapt_tanh(NAN)));
    assert_true((float)rapt_sigmoid(-INFINITY) == 0 && rapt_sigmoid(INFINITY) == 1 && isnan(rapt_sigmoid(NAN)));
    assert_true((float)rapt_gelu(-30) == 0 && rapt_gelu(30) == 30 && isnan(rapt_gelu(NAN)));
    assert_true((float)rapt_gelu(-1e30) == 0 && rapt_gelu(1e30) == 1e30);
    assert_true(rapt_exp(INFINITY) == INFINITY && rapt_sigmoid(-INFINITY) == 0);
    /* As in the formulas: -inf * 0. */
    assert_true(isnan(rapt_gelu(-INFINITY)) && isnan(rapt_gelu_tanh(-INFINITY)));
    assert_true(rapt_gelu(INFINITY) == INFINITY && rapt_gelu_tanh(INFINITY) == INFINITY);
    assert_true((float)rapt_gelu_tanh(-1e30) == 0 && rapt_gelu_tanh(1e12) == 1e12 && isnan(rapt_gelu_tanh(NAN)));
}

/* Random123's kat_vectors. */
static void philox(void **state) {
    static const struct { uint32_t counter[4], key[2], result[4]; } known[] = {
        {{0, 0, 0, 0}, {0, 0}, {0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}},
        {{~0u, ~0u, ~0u, ~0u}, {~0u, ~0u}, {0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}},
        {{0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344},
         {0xa4093822, 0x299f31d0},
         {0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}}};
    (void)state;
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
        uint32_t result[4];
        rapt_philox(known[i].counter, known[i].key, result);
        assert_memory_equal(result, known[i].result, sizeof result);
    }
}

static void dropout(void **state) {
    enum { COUNT = 100000 };
    static unsigned char whole[COUNT], part[COUNT];
    int64_t kept = 0;
    (void)state;
    assert_int_equal(rapt_dropout_keep(whole, COUNT, 0.1, 7, 3, 0), RAPT_OK);
    /* Any split, in any order. */
    for (int64_t first = COUNT; first > 0; first -= 777) {
        const int64_t begin = first > 777 ? first - 777 : 0;
        assert_int_equal(rapt_dropout_keep(part + begin, first - begin, 0.1, 7, 3, (uint64_t)begin), RAPT_OK);
    }
    assert_memory_equal(whole, part, COUNT);
    for (int i = 0; i < COUNT; i++) kept += whole[i];
    assert_in_range(kept, 90000 - 500, 90000 + 500); /* five standard deviations */
    assert_int_equal(rapt_dropout_keep(part, COUNT, 0.1, 7, 4, 0), RAPT_OK);
    assert_memory_not_equal(whole, part, COUNT);
    assert_int_equal(rapt_dropout_keep(part, COUNT, 0, 7, 4, 0), RAPT_OK);
    for (int i = 0; i < COUNT; i++) assert_int_equal(part[i], 1);
    assert_int_equal(rapt_dropout_keep(part, 1, 1, 0, 0, 0), RAPT_INVALID_VALUE);
    assert_int_equal(rapt_dropout_keep(part, 1, NAN, 0, 0, 0), RAPT_INVALID_VALUE);
    assert_int_equal(rapt_dropout_keep(part, -1, 0, 0, 0, 0), RAPT_INVALID_VALUE);
    assert_int_equal(rapt_dropout_keep(NULL, 1, 0, 0, 0, 0), RAPT_NULL_POINTER);
    assert_int_equal(rapt_dropout_keep(NULL, 0, 0, 0, 0, 0), RAPT_OK);
}

/* A word is kept from the threshold on: word / 2^32 is exact in double. */
static void dropout_at_the_threshold(void **state) {
    const uint32_t key[2] = {7, 5};
    const uint64_t seed = 7 | UINT64_C(5) << 32, stream = 3 | UINT64_C(9) << 32, far = UINT64_C(1) << 36;
    (void)state;
    for (uint32_t n = 0; n < 64; n++) {
        const uint32_t counter[4] = {n / 4, 4, 3, 9};
        uint32_t words[4];
        unsigned char keep[3];
        rapt_philox(counter, key, words);
        const double word = words[n % 4], drops[] = {word, word + 0.5, word + 1};
        for (int i = 0; i < 3; i++)
            assert_int_equal(rapt_dropout_keep(keep + i, 1, drops[i] / 4294967296.0, seed, stream, far + n),
                             RAPT_OK);
        assert_true(keep[0] && keep[1] && !keep[2]);
    }
}

/* In double, where no rounding to float hides the series' errors. */
static void exp_is_exact_in_double(void **state) {
    double worst = 0;
    (void)state;
    for (int i = -70000; i <= 70000; i++) {
        const double x = i * 0.01;
        worst = larger_error(worst, (double)fabsl(rapt_exp(x) / expl((long double)x) - 1));
    }
    print_message("# exp in double: %.3g\n", worst);
    assert_true(worst <= 1e-13);
}

/* What is not a number stays so, as the one NaN where a caller sees it. */
static void nan_stays(void **state) {
    float x[2] = {-1, float_of(0xffc12345)}, position = NAN, gauss[3] = {0};
    unsigned char mask[3] = {0};
    (void)state;
    rapt_activate(x, 2, RAPT_RELU);
    assert_true(x[0] == 0 && isnan(x[1]));
    rapt_scale(x, 2, 2);
    assert_int_equal(bits_of(x[1]), 0x7fc00000);
    rapt_gauss_window(&position, 1, 3, 1, mask, gauss);
    for (int i = 0; i < 3; i++)
        assert_true(mask[i] && isnan(gauss[i]));
}

/* Element i is in sum i % 8, also after the last eight: 1 vanishes beside 2^60, which cancels only at the end. */
static void norms_sum_by_eights(void **state) {
    const rapt_norm norm = {NULL, NULL, 1};
    const float x[10] = {0, 1, 0, 0, 0, 0, 0, 0, 0x1p60f, -0x1p60f};
    float out[10];
    (void)state;
    rapt_normalise(&norm, x, 1, 10, out);
    assert_true(out[0] == 0 && out[8] == -out[9]); /* the mean is 0 */
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(functions), cmocka_unit_test(edges),
                                       cmocka_unit_test(philox), cmocka_unit_test(dropout),
                                       cmocka_unit_test(dropout_at_the_threshold),
                                       cmocka_unit_test(exp_is_exact_in_double), cmocka_unit_test(nan_stays),
                                       cmocka_unit_test(norms_sum_by_eights)};
    return cmocka_run_group_tests_name("elementary", tests, NULL, NULL);
}
