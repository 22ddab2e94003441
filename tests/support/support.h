/* SPDX-License-Identifier: MIT
 * Shared by bit tests: random data, comparison of bits, a hash, this machine's instruction sets. Nothing here uses
 * libm's transcendental functions, so data are the same on every system. */
#ifndef RAPT_TESTS_SUPPORT_H
#define RAPT_TESTS_SUPPORT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "isa.h"
#include "kernels.h"
#include "rapt/rapt.h"

/* ---- bits */

static inline uint32_t bits_of(float x) {
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

static inline float float_of(uint32_t bits) {
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

enum nan_rule {
    NAN_CANONICAL, /* NaN must be 7fc00000, as in every output */
    NAN_ANY        /* NaN against NaN is equal, as in scratch */
};

bool same_bits(float got, float expected, enum nan_rule rule);

/* Index of the first difference of [count], -1 if there is none. */
int64_t first_difference(const float *got, const float *expected, int64_t count, enum nan_rule rule);

/* If they differ, prints what, the index and both values, and fails the test. */
void expect_bits(const float *got, const float *expected, int64_t count, enum nan_rule rule, const char *what,
                 ...) __attribute__((format(printf, 5, 6)));

/* ---- hash: order matters, words of 32 bits */

#define HASH_START 0xcbf29ce484222325u

static inline uint64_t hash_word(uint64_t hash, uint32_t word) {
    hash = (hash ^ word) * 0x9e3779b97f4a7c15u;
    return hash ^ (hash >> 32);
}

uint64_t hash_floats(uint64_t hash, const float *values, int64_t count);

/* ---- random data */

struct random {
    uint64_t state;
};

/* splitmix64; inline, as all below: drawing data took the tests more time than what they test. */
static inline uint64_t random_bits(struct random *random) {
    uint64_t z = random->state += 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

static inline int64_t random_below(struct random *random, int64_t end) {
    return (int64_t)((random_bits(random) >> 1) % (uint64_t)end);
}

static inline int64_t random_between(struct random *random, int64_t first, int64_t last) {
    return first + random_below(random, last - first + 1);
}

static inline bool random_chance(struct random *random, int percent) { return random_below(random, 100) < percent; }

/* [-1, 1) */
static inline float random_uniform(struct random *random) {
    return (float)(int32_t)((random_bits(random) >> 40) - (1 << 23)) * 0x1p-23f;
}

float random_normal(struct random *random);  /* nearly; variance 1, at most 6 */
float random_heavy(struct random *random);   /* Student's t with 2 degrees of freedom */
float random_special(struct random *random); /* zeros, denormals, infinities, NaN, huge, integers, ordinary */
float random_finite(struct random *random);  /* the same without infinities and NaN */

/* The same, many times faster, for tests that draw much and store no hash; normal ones are at most 3. */
float quick_normal(struct random *random);
float quick_special(struct random *random);
float quick_finite(struct random *random);

/* ---- memory: NaN everywhere, freed together */

/* Aligned to RAPT_VECTOR_BYTES, filled with ff (a NaN, true). */
void *test_alloc(size_t bytes);
float *test_floats(int64_t count);
/* As test_floats, filled by draw. */
float *test_drawn(struct random *random, int64_t count, float (*draw)(struct random *));
/* Normal numbers as float32, or their upper halves: bfloat16, and finite as float16. */
char *test_normal_of(struct random *random, int dtype, int64_t count);
void test_free_all(void);

/* ---- this machine */

/* Fills tables with those that run here, or only the one that RAPT_TEST_ISA names (amx: that of avx512), and returns
 * how many. Prints their names once, and a matrix unit's; fails if one of RAPT_EXPECT_ISAS ("scalar,avx2") is missing,
 * or if the library overlooks one that the compiler's own x86 detection finds. */
int machine_tables(const struct rapt_table *tables[RAPT_ISA_COUNT]);

/* Whether it is available and RAPT_TEST_ISA names it or nothing. */
bool runs_here(rapt_isa isa);

/* Whether RAPT_TEST_TILES selects the matrix unit of emulated_tiles.c: 1, bf16 (without float16), wrong (which adds in
 * another order). */
bool has_emulated_tiles(void);

/* Whether the machine has this one of rapt_cpu_features. */
bool has_feature(const char *name);

/* Percentage of the usual work: RAPT_TEST_SCALE, default 100; emulators set less. */
int64_t scaled_work(int64_t usual);

/* Whether case `number` of a fixed list runs: all at 100, and about 3 in 100 at least. */
bool is_sampled(int64_t number);

#endif
