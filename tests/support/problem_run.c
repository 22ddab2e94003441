/* SPDX-License-Identifier: MIT
 * Random calls, runs, and the comparison with the specification. */
#include "dispatch.h"
#include "reference/reference.h"
#include "support/cmocka_all.h"
#include "support/problem.h"
#include "support/stored.h"

struct problem *problem_expected(const struct problem_call *call) {
    struct problem *problem = problem_new(call);
    rapt_reference_attention(&problem->desc);
    return problem;
}

void problem_run(struct problem *problem, const struct problem_way *way) {
    rapt_plan plan;
    rapt_message message = {{0}};
    int threads = way->threads ? way->threads : 1;
    rapt_run_options options = {.struct_size = sizeof options, .max_threads = threads};
    size_t bytes = 0;
    problem->desc.isa = way->isa;
    if (rapt_plan_init(&plan, &problem->desc, &message) != RAPT_OK)
        fail_msg("%s\n%s", message.text, problem_text(&problem->call));
    assert_int_equal(rapt_plan_workspace_bytes(&plan, threads, &bytes), RAPT_OK);
    struct guarded workspace = guarded_new(bytes, way->side, way->distance, way->workspace);
    assert_int_equal(rapt_run(&plan, workspace.data, bytes, &options), RAPT_OK);
    assert_true(guarded_is_clean(&workspace));
    guarded_free(&workspace);
}

void problem_check(const struct problem *expected, const struct problem_layout *layout, const struct problem_way *way) {
    struct problem *problem = problem_laid_out(expected, layout);
    problem_run(problem, way);
    if (!problem_same(problem, expected) || !problem_is_clean(problem))
        fail_msg("isa %s, layout %llu, side %d, distance %zu, padding %d, token_major %d, reversed %d, poison %d",
                 rapt_isa_name(way->isa), (unsigned long long)layout->seed, layout->side, layout->distance,
                 layout->padding, layout->token_major, layout->reversed, layout->poison);
    problem_free(problem);
}

/* ---- random calls */

static int64_t pick(struct random *random, const int64_t *values, int count) {
    return values[random_below(random, count)];
}

/* A type of keys or values, and a dim of whole blocks. */
static int pick_format(struct random *random, int64_t *dim) {
    int format;
    if (random_chance(random, 50))
        return RAPT_FORMAT_F32;
    do
        format = (int)random_below(random, RAPT_FORMAT_COUNT);
    while (!stored_is_key_value(format));
    const int64_t block = rapt_format_info(format)->elements;
    *dim = *dim < block ? *dim : *dim / block * block;
    return format;
}

static int pick_scales(struct random *random) {
    static const int scales[] = {0, 1, 16, 32, 48, 64};
    return scales[random_below(random, 6)];
}

struct problem_call random_call(uint64_t seed, int64_t work) {
    static const int64_t queries[] = {0, 1, 1, 2, 3, 4, 5, 8, 13, 16, 17, 33, 48, 49, 64, 65, 100, 200, 400};
    static const int64_t keys[] = {0,   1,   2,   7,   8,   9,   16,  31,  64,  100, 200,  255,  256,
                                   257, 300, 400, 511, 512, 513, 600, 700, 768, 900, 1024, 1100, 2600};
    static const int64_t dims[] = {1,  2,  3,  4,  5,  7,  8,  9,  15,  16,  17,  24,  31,  32, 33,
                                   40, 48, 63, 64, 65, 72, 80, 96, 100, 128, 130, 255, 256, 257};
    struct random random = {seed};
    struct problem_call call = {.seed = seed, .use = (unsigned)random_bits(&random)};
    if (random_chance(&random, 60)) /* few features, or half of them */
        call.use &= (unsigned)random_bits(&random) & (unsigned)random_bits(&random);
    call.use &= (1u << USE_COUNT) - 1;
    call.data = random_chance(&random, 40) ? DATA_NORMAL : (enum data_kind)random_below(&random, DATA_KINDS);
    call.origin = (int32_t)random_between(&random, RAPT_ORIGIN_TOP_LEFT, RAPT_ORIGIN_GIVEN);
    call.weights_kind = (int32_t)random_between(&random, RAPT_WEIGHTS_RAW, RAPT_WEIGHTS_SOFTMAX);
    do {
        call.batch = random_chance(&random, 2) ? 0 : random_between(&random, 1, 3);
        call.kv_heads = random_between(&random, 1, 4);
        call.query_heads = call.kv_heads * random_between(&random, 1, 8);
        call.query_length = pick(&random, queries, sizeof queries / sizeof *queries);
        call.kv_length =
            random_chance(&random, 20) ? call.query_length : pick(&random, keys, sizeof keys / sizeof *keys);
        call.head_dim = pick(&random, dims, sizeof dims / sizeof *dims);
        call.value_dim =
            random_chance(&random, 60) ? call.head_dim : pick(&random, dims, sizeof dims / sizeof *dims);
    } while (call.batch * call.query_heads * call.query_length * call.kv_length *
                 (call.head_dim + call.value_dim + 20) >
             work);
    call.key_format = pick_format(&random, &call.head_dim);
    call.value_format = pick_format(&random, &call.value_dim);
    call.key_scales = pick_scales(&random);
    call.value_scales = pick_scales(&random);
    return call;
}

struct problem_call random_call_of(int32_t numerics, uint64_t seed, int64_t work) {
    struct random random = {seed * 77 + 3};
    struct problem_call call = random_call(seed, work);
    if (numerics <= RAPT_NUMERICS_ORDER_1)
        return call;
    call.numerics = numerics;
    call.data = random_chance(&random, 40) ? DATA_NORMAL : (enum data_kind)random_below(&random, DATA_KINDS_OF_UNITS);
    return call;
}

struct problem_call random_call_of_any(uint64_t seed, int64_t work) {
    static const int32_t orders[] = {RAPT_NUMERICS_DEFAULT, RAPT_NUMERICS_ORDER_2, RAPT_NUMERICS_DEFAULT,
                                     RAPT_NUMERICS_ORDER_3};
    return random_call_of(orders[seed % 4], seed, work);
}

int tables_of(int32_t numerics, const struct rapt_table *tables[RAPT_ISA_COUNT]) {
    const int type = numerics == RAPT_NUMERICS_ORDER_2 ? RAPT_OF_BF16 : RAPT_OF_F32;
    int all = machine_tables(tables), count = 0;
    for (int t = 0; t < all; t++)
        if (numerics != RAPT_NUMERICS_ORDER_2 || runs_here(tables[t]->isa))
            tables[count++] = tables[t];
    for (int isa = RAPT_ISA_SCALAR; numerics > RAPT_NUMERICS_ORDER_1 && isa < RAPT_ISA_COUNT; isa++) {
        const struct rapt_table *table = rapt_table_of((rapt_isa)isa);
        if (!runs_here((rapt_isa)isa) || !rapt_isa_is_unit((rapt_isa)isa))
            continue;
        tables[count] = rapt_unit_of(table, (rapt_isa)isa, type);
        count += tables[count] != NULL;
    }
    return count;
}
