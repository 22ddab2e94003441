/* SPDX-License-Identifier: MIT
 * store of the types with scales, on every table: given and computed scales, every code of float8, the error of
 * int8. */
#include <float.h>
#include <math.h>

#include "internal.h"
#include "reference/reference.h"
#include "support/cmocka_all.h"
#include "support/guarded.h"
#include "support/stored.h"

/* With given or computed scales per group, and zero points if the type may have them. */
static void expect_scaled(const struct rapt_table *table, int format, const float *x, int dim, struct random *random) {
    enum { MOST_GROUPS = RAPT_MAX_HEAD_DIM / 16 };
    float scales[MOST_GROUPS], expected_scales[MOST_GROUPS];
    signed char zeros[MOST_GROUPS], expected_zeros[MOST_GROUPS], expected[RAPT_MAX_HEAD_DIM];
    const bool computes = random_chance(random, 50);
    const bool shifts = (rapt_format_info(format)->uses & RAPT_MAY_SHIFT) && random_chance(random, 50);
    const int64_t group = 16 * random_below(random, 5);
    for (int i = 0; i < MOST_GROUPS; i++) {
        scales[i] = random_chance(random, 20) ? random_special(random) : ldexpf(1, (int)random_between(random, -9, 9));
        zeros[i] = (signed char)random_bits(random);
    }
    memcpy(expected_scales, scales, sizeof scales);
    memcpy(expected_zeros, zeros, sizeof zeros);
    struct guarded into = guarded_new((size_t)dim, GUARD_END, 0, 0xa5);
    const struct rapt_store_args args = {.into = into.data,
                                         .from = x,
                                         .dim = dim,
                                         .format = format,
                                         .scales = scales,
                                         .zero_points = shifts ? zeros : NULL,
                                         .group = group,
                                         .computes = computes};
    const struct rapt_reference_scales by = {expected_scales, shifts ? expected_zeros : NULL, group, computes};
    table->store(&args);
    rapt_reference_store_scaled(stored_dtype(format), x, dim, &by, expected);
    const bool right = memcmp(into.data, expected, (size_t)dim) == 0 && guarded_is_clean(&into) &&
                       memcmp(scales, expected_scales, sizeof scales) == 0 &&
                       memcmp(zeros, expected_zeros, sizeof zeros) == 0;
    if (!right)
        fail_msg("%s store %s, dim %d, group %d, computes %d, zero points %d: wrong bytes or scales", table->name,
                 stored_name(format), dim, (int)group, computes, shifts);
    guarded_free(&into);
}

/* Numbers of one kind: ordinary, any bits, one sign, few values, so large that ranges overflow, denormals. */
static void draw_row(struct random *random, float *x, int dim) {
    const int kind = (int)random_below(random, 9);
    const int scale = random_chance(random, 50) ? (int)random_between(random, -149, -139)
                                                : (int)random_between(random, -149, 127);
    for (int d = 0; d < dim; d++) {
        const float normal = random_normal(random);
        x[d] = kind < 2    ? normal
               : kind == 2 ? float_of((uint32_t)random_bits(random))
               : kind == 3 ? fabsf(normal) + 1
               : kind == 4 ? -fabsf(normal)
               : kind == 5 ? ldexpf(normal, scale)
               : kind == 6 ? FLT_MAX * random_uniform(random)
               : kind == 7 ? (float)random_between(random, -2, 2) * 0.5f
                           : random_special(random);
    }
}

static void test_scaled(void **state) {
    static const int dims[] = {32, 64, 128, 1, 3, 17, 33, 100, 80, 1024};
    const struct rapt_table *tables[RAPT_ISA_COUNT];
    const int count = machine_tables(tables);
    struct random random = {19};
    float *x = test_floats(RAPT_MAX_HEAD_DIM);
    (void)state;
    for (int round = 0; round < scaled_work(6000); round++) {
        const int dim = dims[random_below(&random, round % 50 ? 9 : 10)];
        draw_row(&random, x, dim);
        for (int format = 0; format < RAPT_FORMAT_COUNT; format++)
            for (int t = 0; t < count && stored_is_key_value(format) && stored_may_scale(format); t++)
                expect_scaled(tables[t], format, x, dim, &random);
    }
    test_free_all();
}

/* Every code of float8: its number gives it, and so do numbers nearer to it than to the next one; ties go to the even
 * code. Larger numbers become the largest, NaN becomes one NaN. */
static void test_float8_codes(void **state) {
    static const struct format8 {
        int32_t dtype;
        unsigned most, nan;
    } formats[] = {{RAPT_F8_E4M3, 0x7e, 0x7f}, {RAPT_F8_E5M2, 0x7b, 0x7e}};
    const struct rapt_table *tables[RAPT_ISA_COUNT];
    const int count = machine_tables(tables);
    (void)state;
    for (int which = 0; which < 2; which++)
        for (unsigned code = 0; code <= formats[which].most; code++) {
            const struct format8 *f = &formats[which];
            const unsigned char two[2] = {(unsigned char)code, (unsigned char)(code + 1)};
            const bool is_most = code == f->most;
            const float low = rapt_reference_number(f->dtype, two, 0);
            const float high = is_most ? INFINITY : rapt_reference_number(f->dtype, two, 1);
            const float middle = is_most ? FLT_MAX : (low + high) / 2;
            const float x[10] = {low,  nextafterf(middle, low),  middle,  nextafterf(middle, high),  high,
                                 -low, -nextafterf(middle, low), -middle, -nextafterf(middle, high), NAN};
            const unsigned above = is_most ? code : code + 1, even = is_most ? code : code + code % 2;
            const unsigned expected[10] = {code,       code,       even,       above,       above,
                                           code | 128, code | 128, even | 128, above | 128, f->nan};
            for (int t = 0; t < count; t++)
                for (int i = 0; i < 10; i++) {
                    unsigned char into;
                    const struct rapt_store_args args = {
                        .into = (char *)&into, .from = &x[i], .dim = 1, .format = rapt_format_of(f->dtype)};
                    tables[t]->store(&args);
                    if (into != expected[i])
                        fail_msg("%s: %.9g of dtype %d: %02x, expected %02x", tables[t]->name, (double)x[i],
                                 (int)f->dtype, into, expected[i]);
                }
        }
}

/* int8 with computed scales: within half a step of the numbers; the extremes are met. */
static void test_int8_error(void **state) {
    enum { DIM = 96, GROUP = 32 };
    const struct rapt_table *tables[RAPT_ISA_COUNT];
    const int count = machine_tables(tables);
    struct random random = {31};
    (void)state;
    for (int round = 0; round < scaled_work(1000); round++) {
        float x[DIM], scales[DIM / GROUP], shift = round % 3 ? random_normal(&random) * 3 : 0;
        signed char into[DIM], zeros[DIM / GROUP] = {0};
        for (int d = 0; d < DIM; d++)
            x[d] = random_normal(&random) + shift;
        const struct rapt_store_args args = {.into = (char *)into,
                                             .from = x,
                                             .dim = DIM,
                                             .format = RAPT_FORMAT_I8,
                                             .scales = scales,
                                             .zero_points = round % 2 ? zeros : NULL,
                                             .group = GROUP,
                                             .computes = true};
        for (int t = 0; t < count; t++) {
            tables[t]->store(&args);
            for (int d = 0; d < DIM; d++) {
                const int group = d / GROUP;
                const double step = (double)scales[group], error = (into[d] - zeros[group]) * step - (double)x[d];
                /* rounding a zero point moves the ends by half a step more */
                if (!(fabs(error) <= step * (round % 2 ? 1.01 : 0.51)) || step > (double)(round % 2 ? 0.1F : 0.2F))
                    fail_msg("%s: round %d: %.9g is off by %.9g at a step of %.9g", tables[t]->name, round,
                             (double)x[d], error, step);
            }
        }
    }
}

/* A scale near the least denormal is rounded so far that its range exceeds 255 steps: the zero point stays largest. */
static void test_more_steps(void **state) {
    const struct rapt_table *tables[RAPT_ISA_COUNT];
    const int count = machine_tables(tables);
    (void)state;
    for (int units = 255; units < 382; units++)
        for (int t = 0; t < count; t++) {
            const float x = ldexpf((float)-units, -149);
            float scale = 0;
            signed char into = 0, zero = 0;
            const struct rapt_store_args args = {.into = (char *)&into,
                                                 .from = &x,
                                                 .dim = 1,
                                                 .format = RAPT_FORMAT_I8,
                                                 .scales = &scale,
                                                 .zero_points = &zero,
                                                 .computes = true};
            tables[t]->store(&args);
            if (scale != ldexpf(1, -149) || zero != 127 || into != -128)
                fail_msg("%s: %d units: scale %.9g, zero point %d, code %d", tables[t]->name, units, (double)scale,
                         zero, into);
        }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_scaled),
        cmocka_unit_test(test_float8_codes),
        cmocka_unit_test(test_int8_error),
        cmocka_unit_test(test_more_steps),
    };
    return cmocka_run_group_tests_name("append_scales", tests, NULL, NULL);
}
