/* SPDX-License-Identifier: MIT
 * Every operation of every simd.h, scalar included, against its definition (src/generic/README.md) in plain C, lane by
 * lane; arithmetic is here, special values in every lane. */
#include "kernels/vectors_check.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "support/cmocka_all.h"

#define VECTOR_TABLE(name) extern const struct vector_table vectors_of_##name;
RAPT_VECTOR_TABLES
#undef VECTOR_TABLE

/* Any bits; or near 1, so that products and sums round at many places. */
static float drawn(struct random *random) {
    const uint32_t bits = (uint32_t)random_bits(random);
    return float_of(random_chance(random, 40) ? bits : (bits & 0x83ffffffu) | 0x3c000000u);
}

/* ---- operations on lanes */

static float define_lane(enum lane_operation operation, float a, float b, float c) {
    switch (operation) {
    case LANE_ADD: return a + b;
    case LANE_SUB: return a - b;
    case LANE_MUL: return a * b;
    case LANE_DIV: return a / b;
    case LANE_SCALAR_FMA:
    case LANE_FMA: return fmaf(a, b, c);
    case LANE_LARGER: return a > b ? a : b;
    case LANE_SMALLER: return a < b ? a : b;
    case LANE_CEIL: return ceilf(a);
    case LANE_ABS: return float_of(bits_of(a) & 0x7fffffffu);
    case LANE_WITH_SIGN: return float_of(bits_of(a) | (bits_of(b) & 0x80000000u));
    case LANE_LESS: return a < b;
    case LANE_EQUAL: return a == b;
    case LANE_AND: return a < b && b < c;
    case LANE_OR: return a < b || b < c;
    case LANE_NOT: return !(a < b);
    case LANE_SELECT: return a < b ? b : c;
    case LANE_SHIFT_TO_EXPONENT: return float_of(bits_of(a) << 23);
    default: fail_msg("operation %d has no definition", (int)operation);
    }
    return 0;
}

/* Moved bits are exact, even of NaN; computed NaN may be any. */
static bool is_lane_right(enum lane_operation operation, float got, float expected) {
    const bool is_computed = operation <= LANE_FMA || operation == LANE_SCALAR_FMA || operation == LANE_CEIL ||
                             operation == LANE_WITH_SIGN;
    if (is_computed && isnan(expected))
        return isnan(got);
    if (operation == LANE_CEIL && expected == 0)
        return got == 0;
    return bits_of(got) == bits_of(expected);
}

static void check_lanes(const struct vector_table *table, const float *a, const float *b, const float *c) {
    for (int operation = 0; operation < LANE_OPERATIONS; operation++) {
        float got[MOST_LANES], positive[MOST_LANES];
        for (int lane = 0; lane < table->lanes; lane++)
            positive[lane] = float_of(bits_of(a[lane]) & 0x7fffffffu);
        const float *first = operation == LANE_WITH_SIGN ? positive : a;
        table->lane[operation](first, b, c, got);
        for (int lane = 0; lane < table->lanes; lane++) {
            const float expected = define_lane((enum lane_operation)operation, first[lane], b[lane], c[lane]);
            if (!is_lane_right((enum lane_operation)operation, got[lane], expected))
                fail_msg("%s: operation %d of vectors.h, lane %d: of %08x, %08x, %08x: got %08x, expected %08x",
                         table->name, operation, lane, bits_of(first[lane]), bits_of(b[lane]), bits_of(c[lane]),
                         bits_of(got[lane]), bits_of(expected));
        }
    }
}

/* A denormal plus half of the smallest one, but for 2^-36 of that half or less: a sum in double is a tie between two
 * floats, and only its rounding error tells which is nearest. */
static void draw_near_tie(struct random *random, float *a, float *b, float *c) {
    const float part = (float)random_between(random, 1, 31) * 0x1p-23f;
    *a = 0x1p-75f * (1 + part);
    *b = 0x1p-75f * (1 - part);
    *c = float_of((uint32_t)random_bits(random) & 0x807fffffu);
}

/* All pairs of special values with a third, then random ones; lanes differ. */
static void test_lanes(const struct vector_table *table) {
    float a[MOST_LANES], b[MOST_LANES], c[MOST_LANES];
    struct random random = {5};
    for (int64_t number = 0; number < (int64_t)SPECIALS * SPECIALS * 7; number++) {
        for (int64_t lane = 0; lane < table->lanes; lane++) {
            a[lane] = special(number + lane);
            b[lane] = special(number / SPECIALS + 3 * lane);
            c[lane] = special(number / (SPECIALS * SPECIALS) * 7 + number % 7 + 5 * lane);
        }
        check_lanes(table, a, b, c);
    }
    for (int64_t number = scaled_work(20000); number > 0; number--) {
        for (int lane = 0; lane < table->lanes; lane++) {
            a[lane] = drawn(&random);
            b[lane] = drawn(&random);
            /* half of the time near -a * b, where an unfused product loses everything */
            c[lane] = number % 2 ? drawn(&random) : -(a[lane] * b[lane]);
            if (number % 8 == 1)
                draw_near_tie(&random, &a[lane], &b[lane], &c[lane]);
        }
        check_lanes(table, a, b, c);
    }
}

static void test_fma_lane(const struct vector_table *table) {
    struct random random = {6};
    for (int64_t number = scaled_work(2000); number > 0; number--) {
        float four[4], b[MOST_LANES], c[MOST_LANES], got[MOST_LANES];
        for (int i = 0; i < 4; i++)
            four[i] = number % 3 ? drawn(&random) : special(random_below(&random, SPECIALS));
        for (int lane = 0; lane < table->lanes; lane++) {
            b[lane] = drawn(&random);
            c[lane] = number % 2 ? drawn(&random) : special(random_below(&random, SPECIALS));
        }
        for (int i = 0; i < 4; i++) {
            table->fma_lane[i](four, b, c, got);
            for (int lane = 0; lane < table->lanes; lane++)
                if (!is_lane_right(LANE_FMA, got[lane], fmaf(four[i], b[lane], c[lane])))
                    fail_msg("%s: v_fma_lane %d, lane %d: of %08x, %08x, %08x: got %08x", table->name, i, lane,
                             bits_of(four[i]), bits_of(b[lane]), bits_of(c[lane]), bits_of(got[lane]));
        }
    }
}

/* ---- one test per family and table that runs here */

typedef void family_function(const struct vector_table *table);

struct family_case {
    family_function *run;
    const struct vector_table *table;
};

static void run_case(void **state) {
    const struct family_case *family_case = *state;
    family_case->run(family_case->table);
}

static const struct vector_table *table_named(const char *name) {
#define VECTOR_TABLE(table) &vectors_of_##table,
    static const struct vector_table *const tables[] = {RAPT_VECTOR_TABLES};
#undef VECTOR_TABLE
    for (size_t i = 0; i < sizeof tables / sizeof *tables; i++)
        if (strcmp(tables[i]->name, name) == 0)
            return tables[i];
    fprintf(stderr, "vectors: tests/meson.build has no table for %s\n", name);
    exit(1);
}

/* The argument, if any, is a pattern of test names: "avx2 lanes". */
int main(int argument_count, char **arguments) {
    static const struct {
        const char *name;
        family_function *run;
    } families[] = {{"lanes", test_lanes}, {"fma_lane", test_fma_lane}, {"constants", test_constants},
                    {"parts", test_parts}, {"bools", test_bools},       {"bits", test_bits},
                    {"squares", test_squares}, {"codes", test_codes},   {"rounding", test_rounding},
                    {"float8", test_float8},   {"nibbles", test_nibbles}, {"words", test_words},
                    {"bytes", test_bytes}};
    enum { FAMILIES = sizeof families / sizeof *families, CASES = RAPT_ISA_COUNT * FAMILIES };
    static struct family_case cases[CASES];
    static char names[CASES][64];
    struct CMUnitTest tests[CASES];
    const struct rapt_table *tables[RAPT_ISA_COUNT];
    int count = 0, table_count = machine_tables(tables);
    for (int t = 0; t < table_count; t++)
        for (int f = 0; f < FAMILIES; f++, count++) {
            cases[count] = (struct family_case){families[f].run, table_named(tables[t]->name)};
            snprintf(names[count], sizeof names[count], "%s %s", tables[t]->name, families[f].name);
            tests[count] = (struct CMUnitTest){names[count], run_case, NULL, NULL, &cases[count]};
        }
    if (argument_count > 1)
        cmocka_set_test_filter(arguments[1]);
    return _cmocka_run_group_tests("vectors", tests, (size_t)count, NULL, NULL);
}
