/* SPDX-License-Identifier: MIT
 * The slots of rapt_append on every table: store, angles, rotate; and the frequencies. argv[1]: the folder of ggml's
 * blocks (tests/data/quantise/README.md). */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "append/rotary.h"
#include "reference/reference.h"
#include "support/cmocka_all.h"
#include "support/guarded.h"
#include "support/stored.h"

static const char *folder;

static void expect_stored(const struct rapt_table *table, int format, const float *x, int dim) {
    const size_t bytes = (size_t)rapt_format_row_bytes(format, dim);
    struct guarded into = guarded_new(bytes, GUARD_END, 0, 0xa5);
    unsigned char expected[4 * RAPT_MAX_HEAD_DIM];
    const struct rapt_store_args args = {.into = into.data, .from = x, .dim = dim, .format = format};
    table->store(&args);
    rapt_reference_store(stored_dtype(format), x, dim, expected);
    for (size_t i = 0; i < bytes; i++)
        if ((unsigned char)into.data[i] != expected[i])
            fail_msg("%s store %s, dim %d: byte %zu is %02x, expected %02x", table->name, stored_name(format), dim, i,
                     (unsigned char)into.data[i], expected[i]);
    assert_true(guarded_is_clean(&into));
    guarded_free(&into);
}

/* Numbers of one kind, so that some blocks lack infinities. */
static void draw_row(struct random *random, float *x, int dim) {
    static float (*const draws[])(struct random *) = {random_normal, random_finite, random_special, random_heavy};
    const int kind = (int)random_below(random, 8), scale = (int)random_between(random, -140, 127);
    for (int d = 0; d < dim; d++) {
        const uint32_t bits = (uint32_t)random_bits(random);
        memcpy(&x[d], &bits, sizeof bits);
        if (kind < 4)
            x[d] = draws[kind](random);
        else if (kind == 4)
            x[d] = ldexpf(random_normal(random), scale);
        else if (kind == 5)
            x[d] = (float)random_between(random, -254, 254) * 0.5f;
        else if (kind == 6)
            x[d] = ldexpf((float)random_between(random, -8, 8), scale / 4);
    }
}

static void test_store(void **state) {
    static const int dims[] = {32, 64, 1, 3, 17, 33, 128, 100, 1024};
    const struct rapt_table *tables[RAPT_ISA_COUNT];
    const int count = machine_tables(tables);
    struct random random = {17};
    float *x = test_floats(RAPT_MAX_HEAD_DIM);
    (void)state;
    for (int round = 0; round < scaled_work(4000); round++) {
        const int dim = dims[random_below(&random, round % 50 ? 5 : 9)];
        draw_row(&random, x, dim);
        for (int format = 0; format < RAPT_FORMAT_COUNT; format++)
            for (int t = 0; t < count && stored_is_key_value(format); t++)
                if (dim % rapt_format_info(format)->elements == 0)
                    expect_stored(tables[t], format, x, dim);
    }
    test_free_all();
}

/* Each number of a 16-bit type, each midpoint to the next, and their neighbours. */
static void test_halfway(void **state) {
    static const int32_t dtypes[] = {RAPT_F16, RAPT_BF16};
    const struct rapt_table *tables[RAPT_ISA_COUNT];
    const int count = machine_tables(tables);
    (void)state;
    for (int which = 0; which < 2; which++)
        for (unsigned code = 0; code < 0x8000; code++) {
            const uint16_t two[2] = {(uint16_t)code, (uint16_t)(code + 1)};
            const float low = rapt_reference_number(dtypes[which], two, 0),
                        high = rapt_reference_number(dtypes[which], two, 1);
            const float middle = (float)(((double)low + (double)high) / 2);
            const float x[6] = {low, nextafterf(middle, low), middle, nextafterf(middle, high), -middle, -high};
            for (int t = 0; t < count; t++)
                expect_stored(tables[t], rapt_format_of(dtypes[which]), x, 6);
        }
}

/* ---------------------------------------------------------------- ggml */

static void test_ggml(void **state) {
    static const struct part {
        const char *name;
        int at, bytes;
    } parts[] = {{"q8_0", 128, 34}, {"q4_0", 162, 18}, {"q4_1", 180, 20},
                 {"q5_0", 200, 22}, {"q5_1", 222, 24}, {"iq4_nl", 246, 18}};
    enum { RECORDS = 96, RECORD = 264 };
    const struct rapt_table *tables[RAPT_ISA_COUNT];
    const int count = machine_tables(tables);
    unsigned char record[RECORD];
    char path[512];
    (void)state;
    snprintf(path, sizeof path, "%s/blocks.bin", folder);
    FILE *file = fopen(path, "rb");
    assert_non_null(file);
    for (int r = 0; r < RECORDS; r++) {
        float x[32], largest = 0;
        assert_int_equal(fread(record, 1, RECORD, file), RECORD);
        memcpy(x, record, sizeof x);
        for (int i = 0; i < 32; i++)
            largest = fabsf(x[i]) > largest ? fabsf(x[i]) : largest;
        for (int p = 0; p < 6; p++)
            for (int format = 0; format < RAPT_FORMAT_COUNT; format++) {
                const bool undefined = strcmp(parts[p].name, "iq4_nl") == 0 && largest < 1e-15f;
                if (strcmp(stored_name(format), parts[p].name) != 0 || undefined)
                    continue;
                for (int t = 0; t < count; t++) {
                    char into[34];
                    const struct rapt_store_args args = {.into = into, .from = x, .dim = 32, .format = format};
                    tables[t]->store(&args);
                    if (memcmp(into, record + parts[p].at, (size_t)parts[p].bytes) != 0)
                        fail_msg("%s: block %d as %s is not ggml's", tables[t]->name, r, parts[p].name);
                }
            }
    }
    assert_int_equal(fgetc(file), EOF);
    fclose(file);
}

/* ---------------------------------------------------------------- rotary */

static int64_t draw_position(struct random *random) {
    const int64_t position = random_below(random, RAPT_MAX_ROTARY_POSITION + 1) >> random_below(random, 29);
    return random_chance(random, 20) ? -position : position;
}

static double ulp_of(float x) {
    const float a = fabsf(x);
    return (double)nextafterf(a, INFINITY) - (double)a;
}

/* The reference's bits, and within 0.51 ulp of sine and cosine of the exact product. */
static void test_angles(void **state) {
    enum { PAIRS = 37 };
    const struct rapt_table *tables[RAPT_ISA_COUNT];
    const int count = machine_tables(tables);
    struct random random = {23};
    double worst = 0;
    (void)state;
    for (int round = 0; round < scaled_work(20000); round++) {
        float frequencies[PAIRS], cosines[PAIRS], sines[PAIRS], expected[2];
        const int64_t position = draw_position(&random);
        const double factor = round % 3 ? 1 : 1.25;
        for (int i = 0; i < PAIRS; i++)
            frequencies[i] = ldexpf((random_uniform(&random) + 1) / 2, -(int)random_below(&random, 25));
        for (int t = 0; t < count; t++) {
            tables[t]->angles(frequencies, PAIRS, position, factor, cosines, sines);
            for (int i = 0; i < PAIRS; i++) {
                rapt_reference_angle(frequencies[i], position, factor, &expected[0], &expected[1]);
                if (bits_of(cosines[i]) != bits_of(expected[0]) || bits_of(sines[i]) != bits_of(expected[1]))
                    fail_msg("%s: angle of %lld * %a: got %a, %a, expected %a, %a", tables[t]->name,
                             (long long)position, (double)frequencies[i], (double)cosines[i], (double)sines[i],
                             (double)expected[0], (double)expected[1]);
            }
        }
        for (int i = 0; i < PAIRS && factor == 1; i++) {
            const long double x = (long double)position * (long double)frequencies[i];
            const double c = (double)fabsl((long double)cosines[i] - cosl(x)) / ulp_of(cosines[i]);
            const double s = (double)fabsl((long double)sines[i] - sinl(x)) / ulp_of(sines[i]);
            assert_true(c >= 0 && s >= 0); /* not NaN */
            worst = fmax(worst, fmax(c, s));
        }
    }
    printf("# sines and cosines: at most %.4f ulp\n", worst);
    assert_true(worst < 0.51);
}

/* Some models' settings, and odd ones. */
static void test_frequencies(void **state) {
    static const rapt_rotary settings[] = {
        {.pairing = 1, .dim = 128, .base = 10000},
        {.pairing = 1, .dim = 64, .base = 500000},
        {.pairing = 1, .dim = 2, .base = 1.0001},
        {.pairing = 1, .dim = 128, .base = 10000, .scaling = RAPT_ROTARY_LINEAR, .factor = 4},
        {.pairing = 1, .dim = 128, .base = 10000, .scaling = RAPT_ROTARY_NTK, .factor = 2.5},
        {.pairing = 1, .dim = 2, .base = 10000, .scaling = RAPT_ROTARY_NTK, .factor = 2.5},
        {.pairing = 1,
         .dim = 128,
         .base = 1e6,
         .scaling = RAPT_ROTARY_YARN,
         .factor = 4,
         .original_length = 32768,
         .low_factor = 1,
         .high_factor = 32},
        {.pairing = 1,
         .dim = 64,
         .base = 10000,
         .scaling = RAPT_ROTARY_YARN,
         .factor = 40,
         .original_length = 4096,
         .low_factor = 1,
         .high_factor = 32},
        {.pairing = 1,
         .dim = 64,
         .base = 10000,
         .scaling = RAPT_ROTARY_YARN,
         .factor = 4,
         .original_length = 20, /* no pair turns so often */
         .low_factor = 1,
         .high_factor = 32},
        {.pairing = 1, .dim = 1024, .base = 0x1p1000, .scaling = RAPT_ROTARY_NTK, .factor = 0x1p48}, /* below 2^-1022 */
        {.pairing = 1,
         .dim = 128,
         .base = 500000,
         .scaling = RAPT_ROTARY_LLAMA3,
         .factor = 8,
         .original_length = 8192,
         .low_factor = 1,
         .high_factor = 4},
        {.pairing = 1,
         .dim = 1024,
         .base = 1e300,
         .scaling = RAPT_ROTARY_LLAMA3,
         .factor = 1000,
         .original_length = 1,
         .low_factor = 0.5,
         .high_factor = 0.75},
    };
    (void)state;
    for (size_t i = 0; i < sizeof settings / sizeof *settings; i++) {
        static struct rapt_angles angles;
        rapt_rotary_angles(&settings[i], &angles);
        for (int pair = 0; pair < angles.pairs; pair++) {
            const float expected = rapt_reference_frequency(&settings[i], settings[i].dim, pair);
            if (bits_of(angles.frequencies[pair]) != bits_of(expected))
                fail_msg("setting %zu, pair %d: got %a, expected %a", i, pair, (double)angles.frequencies[pair],
                         (double)expected);
        }
    }
}

/* Transformers' results for Llama 3.1 (base 500000, factor 8, 1, 4, 8192) and Qwen 2.5 with YaRN (base 1e6, factor 4,
 * 32768), in double. */
static void test_models(void **state) {
    static const struct {
        rapt_rotary rotary;
        struct {
            int pair;
            double frequency;
        } some[4];
        double factor;
    } models[] = {
        {{.pairing = 1,
          .dim = 128,
          .base = 500000,
          .scaling = RAPT_ROTARY_LLAMA3,
          .factor = 8,
          .original_length = 8192,
          .low_factor = 1,
          .high_factor = 4},
         {{1, 8.146172338565e-01}, {30, 1.371893567761e-03}, {33, 3.126937503841e-04}, {60, 5.677088100760e-07}},
         1},
        {{.pairing = 1,
          .dim = 128,
          .base = 1e6,
          .scaling = RAPT_ROTARY_YARN,
          .factor = 4,
          .original_length = 32768,
          .low_factor = 1,
          .high_factor = 32},
         {{1, 8.058421877615e-01}, {25, 4.131738022518e-03}, {35, 2.462584069089e-04}, {60, 5.928434264154e-07}},
         1.13862943611199},
    };
    (void)state;
    for (size_t m = 0; m < 2; m++) {
        static struct rapt_angles angles;
        rapt_rotary_angles(&models[m].rotary, &angles);
        assert_true(fabs(angles.factor - models[m].factor) < 1e-12);
        for (int i = 0; i < 4; i++) {
            const double got = (double)angles.frequencies[models[m].some[i].pair],
                         expected = models[m].some[i].frequency;
            if (!(fabs(got - expected) <= 1e-7 * expected))
                fail_msg("model %zu, pair %d: got %g, expected %g", m, models[m].some[i].pair, got, expected);
        }
    }
}

int main(int count, char **arguments) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_store),  cmocka_unit_test(test_halfway),     cmocka_unit_test(test_ggml),
        cmocka_unit_test(test_angles), cmocka_unit_test(test_frequencies), cmocka_unit_test(test_models),
    };
    if (count < 2) {
        fputs("usage: test_append_rows FOLDER\n", stderr);
        return 2;
    }
    folder = arguments[1];
    return cmocka_run_group_tests_name("append_rows", tests, NULL, NULL);
}
