/* SPDX-License-Identifier: MIT */
#include "support/support.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "dispatch.h"
#include "support/cmocka_all.h"

/* ---- bits */

bool same_bits(float got, float expected, enum nan_rule rule) {
    if (isnan(expected))
        return rule == NAN_CANONICAL ? bits_of(got) == 0x7fc00000u : (bool)isnan(got);
    return bits_of(got) == bits_of(expected);
}

int64_t first_difference(const float *got, const float *expected, int64_t count, enum nan_rule rule) {
    for (int64_t i = 0; i < count; i++)
        if (!same_bits(got[i], expected[i], rule))
            return i;
    return -1;
}

void expect_bits(const float *got, const float *expected, int64_t count, enum nan_rule rule, const char *what,
                 ...) {
    int64_t i = first_difference(got, expected, count, rule);
    if (i < 0)
        return;
    char text[400];
    va_list arguments;
    va_start(arguments, what);
    vsnprintf(text, sizeof text, what, arguments);
    va_end(arguments);
    int64_t differing = 0;
    for (int64_t j = 0; j < count; j++)
        differing += !same_bits(got[j], expected[j], rule);
    print_error("%s: %lld of %lld differ, first at [%lld]: got %a (%08x), expected %a (%08x)\n", text,
                (long long)differing, (long long)count, (long long)i, (double)got[i], bits_of(got[i]),
                (double)expected[i], bits_of(expected[i]));
    fail();
}

uint64_t hash_floats(uint64_t hash, const float *values, int64_t count) {
    for (int64_t i = 0; i < count; i++)
        hash = hash_word(hash, bits_of(values[i]));
    return hash;
}

/* ---- random data */

float random_normal(struct random *random) {
    float sum = 0;
    for (int i = 0; i < 12; i++)
        sum += random_uniform(random);
    return sum * 0.5f;
}

/* Sums three 21-bit numbers. */
float quick_normal(struct random *random) {
    const uint64_t bits = random_bits(random), part = (1u << 21) - 1;
    const uint64_t sum = (bits & part) + (bits >> 21 & part) + (bits >> 42 & part);
    return (float)((int32_t)sum - (3 << 20)) * 0x1p-20f;
}

float random_heavy(struct random *random) {
    float numerator = random_normal(random), a = random_normal(random), b = random_normal(random);
    return numerator / sqrtf((a * a + b * b) * 0.5f + 1e-6f);
}

static const float edges[] = {
    0.0f,   -0.0f,    0x1p-149f, -0x1p-149f, 0x1.8p-130f, -0x1.8p-130f,     0x1p-126f,
    1.0f,   -1.0f,    0x1p-60f,  -0x1p-60f,  0x1p60f,     -0x1p60f,         1e9f,
    -1e9f,  -9e15f,   0x1p22f,   -0x1p22f,   0x1p23f,     126.0f,           -126.0f,
    127.5f, 0x1p126f, 0x1p127f,  2.0f,       -3.0f,       0x1.fffffep+127f, -0x1.fffffep+127f};
enum { EDGES = sizeof edges / sizeof *edges };

float random_finite(struct random *random) {
    if (random_chance(random, 60))
        return random_normal(random) * (random_chance(random, 20) ? 100.0f : 3.0f);
    return edges[random_below(random, EDGES)];
}

/* Whether it draws an infinity or NaN. */
static bool draws_nonfinite(struct random *random, float *x) {
    static const uint32_t bits[] = {0x7f800000u, 0xff800000u, 0x7fc00000u, 0xffc01234u};
    const int64_t one = random_below(random, 24);
    if (one < 4)
        *x = float_of(bits[one]);
    return one < 4;
}

float random_special(struct random *random) {
    float x;
    return draws_nonfinite(random, &x) ? x : random_finite(random);
}

/* Without branches, of which processors would mispredict every third. */
float quick_finite(struct random *random) {
    static const float factors[] = {3.0f, 3.0f, 3.0f, 100.0f};
    const uint64_t bits = random_bits(random), one = (bits >> 8) % (EDGES * 5 / 2);
    const uint32_t is_edge = -(uint32_t)(one < EDGES);
    const float ordinary = quick_normal(random) * factors[bits % 4];
    return float_of((bits_of(edges[one % EDGES]) & is_edge) | (bits_of(ordinary) & ~is_edge));
}

float quick_special(struct random *random) {
    float x;
    return draws_nonfinite(random, &x) ? x : quick_finite(random);
}

/* ---- memory */

static void *allocations[4096];
static int allocation_count;

void *test_alloc(size_t bytes) {
    assert_true(allocation_count < 4096);
    size_t rounded = (bytes + 2 * RAPT_VECTOR_BYTES - 1) / RAPT_VECTOR_BYTES * RAPT_VECTOR_BYTES;
    void *memory = aligned_alloc(RAPT_VECTOR_BYTES, rounded);
    assert_non_null(memory);
    memset(memory, 0xff, rounded);
    allocations[allocation_count++] = memory;
    return memory;
}

float *test_floats(int64_t count) { return test_alloc((size_t)count * sizeof(float)); }

float *test_drawn(struct random *random, int64_t count, float (*draw)(struct random *)) {
    float *values = test_floats(count);
    for (int64_t i = 0; i < count; i++)
        values[i] = draw(random);
    return values;
}

char *test_normal_of(struct random *random, int dtype, int64_t count) {
    const size_t bytes = (size_t)rapt_row_bytes(dtype, 1);
    char *numbers = test_alloc((size_t)count * bytes);
    for (int64_t i = 0; i < count; i++) {
        const float x = quick_normal(random);
        memcpy(numbers + (size_t)i * bytes, (const char *)&x + sizeof x - bytes, bytes);
    }
    return numbers;
}

void test_free_all(void) {
    while (allocation_count > 0)
        free(allocations[--allocation_count]);
}

/* ---- this machine */

bool runs_here(rapt_isa isa) {
    const char *only = getenv("RAPT_TEST_ISA");
    return rapt_isa_available(isa) && (!only || strcmp(only, rapt_isa_name(isa)) == 0);
}

static bool is_missing(const char *name) {
    for (int isa = RAPT_ISA_SCALAR; isa < RAPT_ISA_COUNT; isa++)
        if (strcmp(rapt_isa_name((rapt_isa)isa), name) == 0)
            return !runs_here((rapt_isa)isa);
    return true;
}

static void print_tables(void) {
    static bool said;
    if (said)
        return;
    said = true;
    print_message("# tables that run here:");
    for (int isa = RAPT_ISA_SCALAR; isa < RAPT_ISA_COUNT; isa++)
        if (runs_here((rapt_isa)isa))
            print_message(" %s", rapt_isa_name((rapt_isa)isa));
    print_message("\n");
}

/* Whether the build has kernels that do not run here, although the compiler's library says the processor can. */
static bool is_overlooked(rapt_isa isa) {
    bool has = false;
#ifdef __x86_64__
    const bool has_avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
    const bool has_avx512 = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") &&
                            __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl");
    has = has_avx2 && (isa == RAPT_ISA_AVX2 || (isa == RAPT_ISA_AVX512 && has_avx512));
#endif
    return has && rapt_table_of(isa) && !rapt_isa_available(isa);
}

int machine_tables(const struct rapt_table *tables[RAPT_ISA_COUNT]) {
    const char *expected = getenv("RAPT_EXPECT_ISAS"), *only = getenv("RAPT_TEST_ISA");
    int count = 0;
    for (int isa = RAPT_ISA_SCALAR; isa < RAPT_ISA_COUNT; isa++)
        if (runs_here((rapt_isa)isa) && (!rapt_isa_is_unit((rapt_isa)isa) || only)) /* its table is there already */
            tables[count++] = rapt_table_of((rapt_isa)isa);
    print_tables();
    for (int isa = RAPT_ISA_SCALAR; isa < RAPT_ISA_COUNT; isa++)
        if (is_overlooked((rapt_isa)isa))
            fail_msg("%s should run here, and does not", rapt_isa_name((rapt_isa)isa));
    char names[128];
    snprintf(names, sizeof names, "%s", expected ? expected : only ? only : "scalar");
    for (char *name = strtok(names, ", "); name; name = strtok(NULL, ", "))
        if (is_missing(name))
            fail_msg("%s is expected, and does not run here", name);
    return count;
}

bool has_emulated_tiles(void) {
    const char *text = getenv("RAPT_TEST_TILES");
    return text && *text;
}

bool has_feature(const char *name) {
    char all[256];
    rapt_cpu_features(all, sizeof all);
    for (char *one = strtok(all, " "); one; one = strtok(NULL, " "))
        if (strcmp(one, name) == 0)
            return true;
    return false;
}

static int64_t work_percent(void) {
    const char *scale = getenv("RAPT_TEST_SCALE");
    const int64_t percent = scale ? strtol(scale, NULL, 10) : 100;
    return percent > 0 ? percent : 100;
}

int64_t scaled_work(int64_t usual) {
    const int64_t work = usual * work_percent() / 100;
    return work > 0 ? work : 1;
}

/* Scattered, so that periodic cases meet all phases. */
bool is_sampled(int64_t number) {
    const int64_t percent = work_percent(), least = 3;
    return ((uint32_t)number * 2654435761u >> 16) % 100 < (uint32_t)(percent > least ? percent : least);
}
