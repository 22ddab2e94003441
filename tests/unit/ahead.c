/* SPDX-License-Identifier: MIT
 * Tiles of order 2 on the matrix unit with keys and values from memory: which lines of the next block they request, and
 * that their bits are the reference's. */
#include "plan/plan.h"
#include "reference/reference.h"
#include "support/cmocka_all.h"
#include "support/problem.h"
#include "support/support.h"

enum { MOST_NOTES = 1 << 12 };

static struct {
    const char *address[MOST_NOTES];
    int64_t count;
} notes;

static void note(const void *address, int write, int level) {
    assert_true(write == 0 && level == 2 && notes.count < MOST_NOTES);
    notes.address[notes.count++] = address;
}

#define __builtin_prefetch(...) note(__VA_ARGS__)
#include "scalar/simd.h"
#include "x86/amx/ahead.h"

enum { GROUPS = 4, TURNS = 4, LONGEST = 8 }; /* per product with keys; per step; lines per row */
enum { MOST_ROWS = 100, MOST_HEADS = 3, MOST_BYTES = 600 };

static char memory[1 << 20];
static const char at_hand[64];

/* Pieces of rows, and their parts in order, of so many lines. */
static int64_t draw(struct rapt_errands *e, const char **parts, int lines, struct random *random) {
    int64_t count = 0;
    *e = (struct rapt_errands){.count = (int)random_between(random, 0, RAPT_MAX_ERRANDS)};
    for (int i = 0; i < e->count; i++) {
        struct rapt_errand *piece = &e->piece[i];
        *piece = (struct rapt_errand){.base = memory + sizeof memory / 2 + 64 * random_between(random, -400, 400),
                                      .row_stride_bytes = random_between(random, -4, 4) * 512 + 64,
                                      .head_stride_bytes = random_between(random, -4, 4) * 4096,
                                      .rows = (int)random_between(random, 1, MOST_ROWS),
                                      .heads = i % 3 ? 1 : (int)random_between(random, 1, MOST_HEADS),
                                      .row_bytes = (int)random_between(random, 1, MOST_BYTES)};
        for (int row = 0; row < piece->rows; row++)
            for (int head = 0; head < piece->heads; head++)
                for (int byte = 0; byte < piece->row_bytes; byte += 64 * lines)
                    parts[count++] = piece->base + byte + row * piece->row_stride_bytes +
                                     head * piece->head_stride_bytes;
    }
    return count;
}

/* Every part once, in order, then what is at hand. */
static void test_rows(void **state) {
    static const char *parts[RAPT_MAX_ERRANDS * MOST_ROWS * MOST_HEADS * (MOST_BYTES / 64 + 1)];
    struct random random = {81};
    (void)state;
    for (int64_t turn = scaled_work(500); turn > 0; turn--) {
        struct rapt_errands e;
        struct amx_ahead ahead;
        const int lines = (int)random_between(&random, 1, LONGEST);
        const int64_t count = draw(&e, parts, lines, &random);
        for (int64_t first = 0; first < count + AHEAD_ROWS; first += AHEAD_ROWS) {
            amx_look_ahead(&ahead, &e, lines, at_hand);
            for (int i = 0; i < AHEAD_ROWS; i++)
                assert_ptr_equal(ahead.row[i], first + i < count ? parts[first + i] : at_hand);
            assert_true(first + AHEAD_ROWS < count ? amx_left(&e) == &e : !amx_left(&e));
        }
    }
}

/* The first `count` rows, line by line. */
static void expect_lines(const struct amx_ahead *ahead, int count, int lines) {
    assert_int_equal(notes.count, count * lines);
    for (int i = 0; i < count * lines; i++)
        assert_ptr_equal(notes.address[i], ahead->row[i / lines] + i % lines * 64);
    notes.count = 0;
}

/* Products with keys have as many steps per group as rows have lines; those with values, as many groups of four. */
static void test_lines(void **state) {
    struct amx_ahead ahead;
    (void)state;
    for (int i = 0; i < AHEAD_ROWS; i++)
        ahead.row[i] = memory + i * 1024;
    for (int lines = 1; lines <= LONGEST; lines++) {
        const int rows = AHEAD_ROWS / lines;
        for (int group = 0; group < GROUPS; group++)
            for (int turn = 0; turn < lines * TURNS; turn++)
                amx_fetch_ahead(&ahead, group, AHEAD_ROWS / GROUPS, turn, lines);
        expect_lines(&ahead, AHEAD_ROWS, lines);
        for (int group = 0; group < lines; group++)
            for (int turn = 0; turn < GROUPS * TURNS; turn++)
                amx_fetch_ahead(&ahead, group, rows, turn, lines);
        expect_lines(&ahead, rows * lines, lines);
    }
}

/* More sequences on the same keys and values than caches hold, with whole and partial tiles. */
static void check_bits(int64_t dim, int64_t queries) {
    enum { KEYS = 600 };
    const int64_t batch = RAPT_CACHED_BYTES / (2 * KEYS * dim * (int64_t)sizeof(uint16_t)) + 1;
    const struct rapt_table *tables[RAPT_ISA_COUNT];
    const int count = tables_of(RAPT_NUMERICS_ORDER_2, tables);
    struct random random = {(uint64_t)(dim + queries)};
    const int64_t numbers = queries * dim;
    float *expected = test_floats(numbers), *out = test_floats(batch * numbers);
    rapt_attention_desc desc = RAPT_ATTENTION_DESC_INIT;
    desc.numerics = RAPT_NUMERICS_ORDER_2;
    desc.batch = desc.query_heads = desc.kv_heads = 1;
    desc.query_length = queries, desc.kv_length = KEYS, desc.head_dim = dim;
    desc.query = rapt_tensor_bhsd(test_normal_of(&random, RAPT_BF16, numbers), RAPT_BF16, 1, 1, queries, dim);
    desc.key = rapt_tensor_bhsd(test_normal_of(&random, RAPT_BF16, KEYS * dim), RAPT_BF16, 1, 1, KEYS, dim);
    desc.value = rapt_tensor_bhsd(test_normal_of(&random, RAPT_BF16, KEYS * dim), RAPT_BF16, 1, 1, KEYS, dim);
    desc.out = rapt_output_bhsd(expected, 1, 1, queries, dim);
    rapt_reference_attention(&desc);
    desc.batch = batch;
    desc.query.batch_stride_bytes = desc.key.batch_stride_bytes = desc.value.batch_stride_bytes = 0;
    desc.out = rapt_output_bhsd(out, batch, 1, queries, dim);
    for (int i = 0; i < count; i++) {
        rapt_plan plan;
        if (tables[i]->isa == RAPT_ISA_SCALAR)
            continue; /* it has no prefetches, and is slow */
        desc.isa = tables[i]->isa;
        assert_int_equal(rapt_plan_init(&plan, &desc, NULL), RAPT_OK);
        assert_true(rapt_body_of(&plan)->exceeds_caches);
        assert_int_equal(rapt_attention(&desc, NULL, NULL), RAPT_OK);
        for (int64_t sequence = 0; sequence < batch; sequence++)
            expect_bits(out + sequence * numbers, expected, numbers, NAN_ANY, "%s, %d dims, sequence %d: number",
                        tables[i]->name, (int)dim, (int)sequence);
    }
    test_free_all();
}

static void test_bits(void **state) {
    static const int64_t dims[] = {64, 96, 104, 128, 160, 192, 224, 256, 288, 32};
    (void)state;
    for (int i = 0; i < 10; i++)
        if (is_sampled(i))
            check_bits(dims[i], 33 + 8 * (i % 5));
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_rows), cmocka_unit_test(test_lines),
                                       cmocka_unit_test(test_bits)};
    return cmocka_run_group_tests_name("ahead", tests, NULL, NULL);
}
