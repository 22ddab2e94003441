/* SPDX-License-Identifier: MIT
 * Whole calls on every instruction set against the reference, bit for bit: each feature alone, in pairs, in random
 * combinations; and against attention in double. The argument is a pattern of test names, or the seed of one random
 * call to run. Built for order 1 and, with NUMERICS, for 2 and 3. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "calls/check.h"
#include "reference/reference.h"
#include "support/cmocka_all.h"
#include "support/problem.h"

/* Emulators run fewer and smaller calls, and so do other orders, whose reference is slow. */
static bool is_emulated(void) { return scaled_work(100) < 100; }
enum { SHARE = NUMERICS == 3 ? 24 : NUMERICS ? 4 : 1, STRIDE = NUMERICS == 3 ? 3 : 1 }; /* 3 is slow */
static int64_t scaled_count(int64_t usual) { return (scaled_work(usual) + SHARE - 1) / SHARE; }

/* Sizes that use wide and narrow tiles, one and several chunks. */
static const struct problem_call shapes[] = {
    {.batch = 2,
     .query_heads = 4,
     .kv_heads = 2,
     .query_length = 37,
     .kv_length = 300,
     .head_dim = 24,
     .value_dim = 24},
    {.batch = 1,
     .query_heads = 3,
     .kv_heads = 1,
     .query_length = 2,
     .kv_length = 1100,
     .head_dim = 17,
     .value_dim = 33},
    {.batch = 1,
     .query_heads = 12,
     .kv_heads = 12,
     .query_length = 20,
     .kv_length = 20,
     .head_dim = 64,
     .value_dim = 64},
};
enum { SHAPES = sizeof shapes / sizeof *shapes };

static struct problem_call shaped(int shape, unsigned use, uint64_t seed) {
    struct problem_call call = shapes[shape];
    if (is_emulated() && shape == 0) {
        call.batch = 1;
        call.query_length = 11;
    }
    call.use = use;
    call.seed = seed;
    call.numerics = NUMERICS;
    call.origin = RAPT_ORIGIN_TOP_LEFT + (int32_t)(seed % 3);
    call.weights_kind = RAPT_WEIGHTS_RAW + (int32_t)(seed / 3 % 4);
    return call;
}

static void test_single_features(void **state) {
    for (int shape = 0; shape < SHAPES; shape++)
        for (int use = -1; use < USE_COUNT; use++)
            for (int64_t n = 0; n < scaled_count(6); n++) {
                struct problem_call call =
                    shaped(shape, use < 0 ? 0 : with_partners(1u << use), (uint64_t)(n * 31 + use + 1));
                check_call(&call);
            }
    (void)state;
}

static void test_pairs(void **state) {
    const int step = NUMERICS == 3 || (NUMERICS && is_emulated()) ? 8 : 1;
    for (int a = 0; a < USE_COUNT; a++)
        for (int b = a % step; b < a; b += step)
            for (int64_t n = 0; n < scaled_count(2); n++) {
                const unsigned pair = with_partners(1u << a | 1u << b);
                struct problem_call call = shaped((a + b) % 2, pair, (uint64_t)(n * 1000 + a * 20 + b));
                check_call(&call);
            }
    (void)state;
}

/* Rows of keys and values a power of two apart are copied to contiguous ones. */
static void test_colliding_strides(void **state) {
    int colliding = 0;
    for (int64_t n = 0; n < scaled_count(12) || colliding == 0; n++) {
        struct problem_call call = {.batch = 1, .query_heads = 8, .kv_heads = 4,
                                    .query_length = NUMERICS ? 14 : n % 4 < 2 ? 100 : 24, .kv_length = 520 + 7 * n,
                                    .head_dim = 128, .value_dim = 64 + 64 * (n % 2)};
        static const unsigned uses[] = {0, USE_CAUSAL, USE_WINDOW, USE_MASK, USE_KEY_POSITION | USE_CAUSAL};
        const struct problem_layout layout = {.seed = (uint64_t)n};
        call.use = uses[n % 5];
        call.seed = (uint64_t)n;
        call.numerics = NUMERICS;
        call.origin = RAPT_ORIGIN_BOTTOM_RIGHT;
        call.data = n % 3 ? DATA_NORMAL : DATA_NAN_ROWS;
        struct problem *plain = problem_new(&call), *problem = problem_laid_out(plain, &layout);
        const int64_t far = NUMERICS == 2 ? 1024 : 2048; /* in numbers of 2 bytes, or 4 */
        colliding += problem->desc.key.token_stride_bytes == far || problem->desc.value.token_stride_bytes == far;
        problem_free(plain);
        problem_free(problem);
        check_call(&call);
    }
    (void)state;
}

/* Tiles of 32 rows and whole blocks, whose halves the matrix unit takes as one; in order 2, of more than one tile. */
static void test_whole_tiles(void **state) {
    static const int64_t dims[][2] = {{128, 128}, {64, 64}, {96, 80}, {72, 33}, {192, 128}, {256, 256},
                                      {160, 160}, {32, 24}, {224, 40}, {300, 104}, {64, 520}};
    static const unsigned uses[] = {0,         USE_CAUSAL,  USE_KEEP,       USE_MASK | USE_LSE,
                                    USE_SCALE | USE_FINAL_STATE, USE_SOFTCAP, USE_SCALE};
    enum { DIMS = sizeof dims / sizeof *dims, USES = sizeof uses / sizeof *uses, PASSES = NUMERICS == 3 ? 1 : 2 };
    const int64_t every = NUMERICS && !runs_here(RAPT_ISA_AMX) ? 3 : 1;
    for (int64_t n = 0; n < scaled_count(NUMERICS ? PASSES * SHARE * DIMS * USES : 16); n += every) {
        struct problem_call call = {.batch = 1, .query_heads = 1, .kv_heads = 1,
                                    .query_length = n % 9 == 0 ? 40 : NUMERICS == 2 ? 64 : 32, /* 32 are few there */
                                    .kv_length = n % 4 ? 512 : 600,
                                    .head_dim = dims[n / USES % DIMS][0],
                                    .value_dim = dims[n / USES % DIMS][1],
                                    .use = uses[n % USES],
                                    .seed = (uint64_t)n, .numerics = NUMERICS,
                                    .origin = RAPT_ORIGIN_BOTTOM_RIGHT,
                                    .data = (enum data_kind)(n / 3 % (NUMERICS ? DATA_KINDS_OF_UNITS : DATA_KINDS))};
        check_call(&call);
    }
    (void)state;
}

static void check_tiles(int64_t seed, int64_t kv_length, unsigned use, enum data_kind data) {
    struct problem_call call = {1, 1, 1, 64, kv_length, 64, 64, use, data, RAPT_ORIGIN_BOTTOM_RIGHT};
    call.seed = (uint64_t)seed;
    call.numerics = NUMERICS;
    check_call(&call);
}

/* Far exponents in the second half of a block only; factors below 0, whose largest score is the least. */
static void test_late_maxima(void **state) {
    for (int64_t n = 0; n < 12; n++)
        check_tiles(n, 512, n < 4 ? USE_FINAL_STATE : USE_SCALE, n < 4 ? DATA_LATE_BIG : DATA_NORMAL);
    (void)state;
}

/* Some of these windows begin in the first step of a block, and so leave its second half to all rows. */
static void test_first_halves(void **state) {
    for (int64_t n = 0; n < (is_emulated() ? 4 : 40); n++)
        check_tiles(n, 600, USE_WINDOW, DATA_NORMAL);
    (void)state;
}

/* Every kind of data with every kind of mask. */
static void test_data_kinds(void **state) {
    static const unsigned uses[] = {0,
                                    USE_LSE | USE_WEIGHTS,
                                    USE_CAUSAL | USE_LSE,
                                    USE_MASK | USE_LSE,
                                    USE_MASK | USE_FILL | USE_LSE | USE_WEIGHTS,
                                    USE_MASK | USE_CAUSAL | USE_WEIGHTS,
                                    USE_BIAS | USE_LSE,
                                    USE_WINDOW | USE_SINKS | USE_LSE,
                                    USE_SOFTCAP | USE_KEEP | USE_MASK,
                                    USE_KV_LENGTHS | USE_QUERY_LENGTHS | USE_KEY_POSITION | USE_CAUSAL,
                                    USE_BIAS | USE_CAUSAL};
    for (int kind = 0; kind < (NUMERICS ? DATA_KINDS_OF_UNITS : DATA_KINDS); kind++)
        for (size_t u = (size_t)(kind % STRIDE); u < sizeof uses / sizeof *uses; u += STRIDE)
            for (int64_t n = 0; n < scaled_count(5); n++) {
                struct problem_call call = shaped((int)(n % 2), uses[u], (uint64_t)(n * 77 + (int64_t)u * 5 + kind));
                call.data = (enum data_kind)kind;
                if (n % 2 == 0)
                    call.weights_kind = RAPT_WEIGHTS_SOFTMAX;
                check_call(&call);
            }
    (void)state;
}

/* Every type of query, bias and out with every kind of data. */
static void test_ends(void **state) {
    static const unsigned uses[] = {USE_BIAS | USE_LSE,
                                    USE_BIAS | USE_HEAD_FACTOR | USE_MASK | USE_FILL | USE_WEIGHTS,
                                    USE_BIAS | USE_CAUSAL | USE_KEY_POSITION,
                                    USE_SINKS | USE_QUERY_LENGTHS | USE_WEIGHTS,
                                    USE_EVERYTHING};
    enum { USES = sizeof uses / sizeof *uses };
    for (unsigned ends = 0; ends < 8; ends++)
        for (int n = (int)ends % STRIDE; n < (is_emulated() ? 3 : USES * DATA_KINDS); n += STRIDE) {
            struct problem_call call = shaped(n % SHAPES, uses[n % USES], (uint64_t)(n * 30) + ends);
            call.use = (call.use & (USE_QUERY_16 - 1)) | ends * USE_QUERY_16;
            call.data = (enum data_kind)(n % DATA_KINDS);
            check_call(&call);
        }
    (void)state;
}

/* Lengths around the edges of blocks and chunks, for decode and a small prefill. */
static void test_lengths(void **state) {
    static const int64_t lengths[] = {0,   1,   2,   7,   8,   15,   16,   17,   31,   33,   255, 256,
                                      257, 511, 512, 513, 767, 1023, 1024, 1025, 1100, 1537, 5000, 5003};
    static const int64_t queries[] = {1, 3, 17};
    int64_t number = 0, every = is_emulated() ? 5 : 1;
    for (size_t k = 0; k < sizeof lengths / sizeof *lengths; k++)
        for (int q = 0; q < 3; q++)
            for (unsigned use = 0; use < 2; use++) {
                if (number++ % every)
                    continue;
                struct problem_call call =
                    shaped(0, use ? USE_KEY_POSITION | USE_LSE | USE_CAUSAL : USE_LSE, k + 1);
                call.kv_length = lengths[k];
                if (call.kv_length == 1100)
                    call.head_dim = call.value_dim = 160;
                call.query_length = queries[q];
                check_call(&call);
            }
    (void)state;
}

static void test_group_ratios(void **state) {
    int64_t number = 0, every = is_emulated() ? 5 : 1;
    for (int64_t ratio = 1; ratio <= 8; ratio++)
        for (int64_t query_length = 1; query_length < 8; query_length += 3)
            for (int64_t kv_heads = 1; kv_heads < 4; kv_heads++) {
                if (number++ % every)
                    continue;
                struct problem_call call =
                    shaped(0, USE_LSE | (kv_heads == 2 ? USE_CAUSAL | USE_STANDARD_ALIBI : 0),
                           (uint64_t)(ratio * 10 + kv_heads));
                call.kv_heads = kv_heads;
                call.query_heads = kv_heads * ratio;
                call.query_length = query_length;
                check_call(&call);
            }
    (void)state;
}

/* Heads that do not divide a task's rows: later tasks begin within a group, and what depends on head or position must
 * follow. */
static void test_tasks_within_groups(void **state) {
    static const unsigned uses[] = {USE_BIAS | USE_HEAD_FACTOR, USE_MASK, USE_ALIBI, USE_SINKS,
                                    USE_CAUSAL, USE_KEEP, USE_WEIGHTS | USE_LSE};
    for (size_t u = 0; u < sizeof uses / sizeof *uses; u++)
        for (int n = 0; n < (is_emulated() ? 1 : 4); n++) {
            struct problem_call call = shaped(0, uses[u], u * 10 + (uint64_t)n);
            call.batch = call.kv_heads = 1;
            call.query_heads = n % 2 ? 7 : 5;
            call.query_length = 420 / call.query_heads;
            call.kv_length = 40 + 20 * n;
            check_call(&call);
        }
    (void)state;
}

static void test_random(void **state) {
    const char *seed = *state;
    if (seed) {
        struct problem_call call = random_call_of(NUMERICS, strtoull(seed, NULL, 0), 8000000);
        print_message("# %s\n", problem_text(&call));
        check_call(&call);
        return;
    }
    for (int64_t n = 1; n <= scaled_count(2500); n++) {
        const int64_t most = n % 50 ? 2500000 : NUMERICS ? 10000000 : 60000000;
        struct problem_call call = random_call_of(NUMERICS, (uint64_t)n, is_emulated() ? 300000 : most);
        check_call(&call);
    }
}

/* ---- double: the reference might be wrong the same way everywhere */

/* Order 2 rounds probabilities to 8 or 11 bits, and divides by their rounded sum. Values are at most 6. */
static double rounding_of(const struct problem_call *call) {
    return NUMERICS != 2 ? 0 : call->key_format == RAPT_FORMAT_BF16 ? 0x1p-8 + 1.0e-4 : 0x1p-11 + 2.9e-6;
}

/* Large float32 logits are rounded so coarsely that probabilities differ. float16 biases go so far; logits beyond are
 * all the same, in double as well. */
static double rounding_of_logits(double lse) {
    return fabs(lse) > 1e3 && fabs(lse) < 1e6 ? 12 * fabs(lse) * 0x1p-23 : 0;
}

static void compare_with_truth(const struct problem *problem, const double *out, const double *lse) {
    const struct problem_call *c = &problem->call;
    const double most = 1e-4 + 12 * rounding_of(c), most_lse = 1e-5 + rounding_of(c);
    for (int64_t b = 0; b < c->batch; b++)
        for (int64_t h = 0; h < c->query_heads; h++)
            for (int64_t i = 0; i < problem_query_length(problem, b); i++) {
                int64_t row = (b * c->query_heads + h) * c->query_length + i;
                const float *got = (const float *)(void *)tensor_at(&problem->desc.out, b, h, i);
                for (int64_t d = 0; d < c->value_dim; d++)
                    if (!(fabs((double)got[d] - out[row * c->value_dim + d]) <= most + rounding_of_logits(lse[row])))
                        fail_msg("out[%lld][%lld][%lld][%lld] is %g, in truth %g; %s", (long long)b,
                                 (long long)h, (long long)i, (long long)d, (double)got[d],
                                 out[row * c->value_dim + d], problem_text(&problem->call));
                float sum = *(const float *)(void *)tensor_at(&problem->desc.lse, b, h, i);
                if (!(fabs((double)sum - lse[row]) <= most_lse + 1e-5 * (9 + fabs(lse[row])) ||
                      (double)sum == lse[row]))
                    fail_msg("lse[%lld][%lld][%lld] is %g, in truth %g; %s", (long long)b, (long long)h,
                             (long long)i, (double)sum, lse[row], problem_text(&problem->call));
            }
}

static void test_truth(void **state) {
    for (int64_t n = 1; n <= scaled_count(400); n++) {
        struct problem_call call = random_call_of(NUMERICS, (uint64_t)(1000000 + n), is_emulated() ? 200000 : 1000000);
        call.data = DATA_NORMAL;
        call.use = (call.use | USE_LSE) & ~(unsigned)(USE_INITIAL_STATE | USE_NO_OUT | USE_OUT_16);
        struct problem *problem = problem_new(&call);
        if ((problem->desc.features & RAPT_SCALE) && fabsf(problem->desc.scale) > 0.3f)
            problem->desc.scale = 0.25f; /* larger logits have larger errors */
        int64_t rows = call.batch * call.query_heads * call.query_length;
        double *out = test_alloc((size_t)(rows * problem->call.value_dim) * sizeof *out);
        double *lse = test_alloc((size_t)rows * sizeof *lse);
        rapt_truth_attention(&problem->desc, out, lse, NULL);
        problem->desc.isa = tables[table_count - 1]->isa;
        assert_int_equal(rapt_attention(&problem->desc, NULL, NULL), RAPT_OK);
        compare_with_truth(problem, out, lse);
        problem_free(problem);
        test_free_all();
    }
    (void)state;
}

int main(int count, char **arguments) {
    table_count = tables_of(NUMERICS, tables);
    const struct CMUnitTest none[] = {cmocka_unit_test(test_absent)};
    const struct CMUnitTest one[] = {cmocka_unit_test_prestate(test_random, arguments[1])};
    const struct CMUnitTest few[] = {cmocka_unit_test(test_single_features), cmocka_unit_test(test_whole_tiles)};
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_single_features), cmocka_unit_test(test_pairs),
        cmocka_unit_test(test_colliding_strides), cmocka_unit_test(test_data_kinds),
        cmocka_unit_test(test_whole_tiles),     cmocka_unit_test(test_late_maxima),
        cmocka_unit_test(test_first_halves),    cmocka_unit_test(test_lengths),
        cmocka_unit_test(test_ends),            cmocka_unit_test(test_group_ratios),
        cmocka_unit_test(test_tasks_within_groups), cmocka_unit_test(test_random),
        cmocka_unit_test(test_truth),
    };
    if (table_count == 0)
        return cmocka_run_group_tests_name("calls", none, NULL, NULL);
    if (count > 1 && arguments[1][0] >= '0' && arguments[1][0] <= '9')
        return cmocka_run_group_tests_name("one call", one, NULL, NULL);
    if (count > 1)
        cmocka_set_test_filter(arguments[1]);
    else if (NUMERICS && is_emulated()) /* the others take minutes */
        return cmocka_run_group_tests_name("few calls", few, NULL, NULL);
    return cmocka_run_group_tests_name("calls", tests, NULL, NULL);
}
