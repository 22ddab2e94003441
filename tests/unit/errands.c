/* SPDX-License-Identifier: MIT
 * Errands: rows are fetched in order, each line once, and staged only into their own places. The kernels are compiled
 * again here, on scalar vectors, with prefetches that are recorded. */
#include <math.h>

#include "dispatch.h"
#include "plan/plan.h"
#include "support/cmocka_all.h"
#include "support/support.h"

enum { MOST_NOTES = 1 << 16 };

static struct {
    const char *begin, *end; /* other addresses are the slots' own business */
    const char *address[MOST_NOTES];
    int64_t count;
} notes;

static void note(const void *address, int write, int level) {
    const char *at = address;
    assert_true(write >= 0 && level > 0);
    if (at < notes.begin || at >= notes.end)
        return;
    assert_true(notes.count < MOST_NOTES);
    notes.address[notes.count++] = at;
}

#define __builtin_prefetch(...) note(__VA_ARGS__)
#include "scalar/simd.h"
#define RAPT_TABLE probe
extern const struct rapt_table rapt_table_probe;
enum { RAPT_ISA_NUMBER_probe = RAPT_ISA_SCALAR };
#define RAPT_WITHOUT_UNITS
#define RAPT_WORD_FORMATS(X, rows) X(f32, F32, rows) /* the rest takes half a minute to compile */
#define RAPT_STORED_FORMATS(X) X(f16, F16)
#define RAPT_FEW_FORMATS RAPT_STORED_FORMATS
#include "generic/table.h"

/* ---- order of fetched lines */

struct plan {
    struct rapt_errands errands;
    const char **lines;
    int64_t count;
};

/* Pieces in separate memory. */
static void draw(struct plan *plan, struct random *random) {
    enum { BYTES = 1 << 17 };
    struct rapt_errands *e = &plan->errands;
    char *memory = test_alloc(BYTES);
    memset(e, 0, sizeof *e);
    notes.begin = memory, notes.end = memory + BYTES, notes.count = 0;
    e->count = (int)random_between(random, 0, RAPT_MAX_ERRANDS);
    for (int i = 0; i < e->count; i++) {
        const int rows = (int)random_between(random, 1, 12), heads = (int)random_between(random, 1, 3);
        const int bytes = (int)random_between(random, 1, 300);
        const int64_t by_heads = 512 * (1 - 2 * random_below(random, 2));
        e->piece[i] = (struct rapt_errand){.base = memory + BYTES / 2 + 64 * random_between(random, -400, 400),
                                           .row_stride_bytes = random_between(random, -4, 4) * 512 + 64,
                                           .head_stride_bytes = by_heads,
                                           .rows = rows,
                                           .heads = heads,
                                           .row_bytes = bytes};
        e->lines += (int64_t)rows * heads * ((bytes + 63) / 64);
    }
    plan->count = 0;
    plan->lines = test_alloc((size_t)(e->lines + 1) * sizeof *plan->lines);
    for (int i = 0; i < e->count; i++)
        for (int row = 0; row < e->piece[i].rows; row++)
            for (int head = 0; head < e->piece[i].heads; head++)
                for (int byte = 0; byte < e->piece[i].row_bytes; byte += 64)
                    plan->lines[plan->count++] = e->piece[i].base + row * e->piece[i].row_stride_bytes +
                                                 head * e->piece[i].head_stride_bytes + byte;
    assert_int_equal(plan->count, e->lines);
}

/* Fetches so far are the first ones, and the cursor is after them. */
static void expect_prefix(const struct plan *plan) {
    const struct rapt_errands *e = &plan->errands;
    assert_in_range(notes.count, 0, plan->count);
    for (int64_t i = 0; i < notes.count; i++)
        assert_ptr_equal(notes.address[i], plan->lines[i]);
    if (notes.count == plan->count)
        assert_int_equal(e->at, e->count);
    else
        assert_ptr_equal(e->piece[e->at].base + e->row * e->piece[e->at].row_stride_bytes +
                             e->head * e->piece[e->at].head_stride_bytes + e->byte,
                         plan->lines[notes.count]);
}

static void test_lines(void **state) {
    struct random random = {61};
    for (int64_t turn = scaled_work(2000); turn > 0; turn--) {
        struct plan plan;
        draw(&plan, &random);
        run_errands(NULL, 3);
        while (plan.errands.at < plan.errands.count) {
            const int64_t before = notes.count, lines = random_below(&random, 20), left = plan.count - before;
            run_errands(&plan.errands, lines);
            assert_int_equal(notes.count - before, lines < left ? lines : left);
            expect_prefix(&plan);
        }
        run_errands(&plan.errands, 5);
        assert_int_equal(notes.count, plan.count);
        test_free_all();
    }
    (void)state;
}

/* Rows of one piece at a time, enough for so many lines; without errands the row at hand. */
static void test_rows(void **state) {
    struct random random = {62};
    static const char at_hand[64];
    for (int64_t turn = scaled_work(2000); turn > 0; turn--) {
        struct plan plan;
        draw(&plan, &random);
        struct rapt_errands *e = &plan.errands;
        while (e->at < e->count) {
            const int64_t lines = random_between(&random, 1, 9);
            const struct errand_rows rows = take_errand_rows(e, at_hand, 33, lines);
            assert_true(rows.rows >= 1 && (rows.rows - 1) * rows.lines < lines);
            for (int row = 0; row < rows.rows; row++) /* like a slot */
                for (int64_t i = 0; i < rows.lines; i++)
                    notes.address[notes.count++] = rows.row + row * rows.stride_bytes + 64 * i;
            expect_prefix(&plan);
        }
        const struct errand_rows last = take_errand_rows(e, at_hand, 33, 4);
        const struct errand_rows none = take_errand_rows(NULL, at_hand, 16, 4);
        assert_true(last.row == at_hand && last.rows == 1 && last.stride_bytes == 0 && last.lines == 3);
        assert_true(none.row == at_hand && none.rows == 1 && none.lines == 1);
        test_free_all();
    }
    (void)state;
}

/* ---- slots that run them */

static int64_t score_floats(const struct rapt_tile_kind *kind) {
    return (int64_t)(kind->scores_bytes(kind->rows, 64) / sizeof(float));
}

static void run_weigh(const struct rapt_tile_kind *kind, struct rapt_errands *errands, struct random *random) {
    const int rows = (int)random_between(random, 1, kind->rows), dim = (int)random_between(random, 1, 40);
    const int begin = (int)random_below(random, 200), end = (int)random_between(random, begin, 256);
    float *o = test_drawn(random, (int64_t)rows * 48, random_normal);
    const struct rapt_weigh_args args = {
        .probabilities = test_drawn(random, score_floats(kind), random_normal),
        .value = (const char *)test_drawn(random, 256 * 40, random_normal),
        .value_stride_bytes = dim * 4,
        .alpha = test_drawn(random, rows, random_normal),
        .o = o,
        .o_stride = 48,
        .rows = rows,
        .value_dim = dim,
        .key_begin = begin,
        .key_end = end,
        .errands = errands};
    kind->weigh(&args);
}

static void run_softmax(const struct rapt_tile_kind *kind, struct rapt_errands *errands, struct random *random) {
    const int rows = (int)random_between(random, 1, kind->rows), end = (int)random_between(random, 1, 256);
    float *scores = test_drawn(random, score_floats(kind), random_normal);
    float *m = test_drawn(random, 3 * RAPT_MAX_TILE_ROWS, random_normal), *l = m + RAPT_MAX_TILE_ROWS;
    for (int row = 0; row < rows; row++)
        m[row] = -INFINITY, l[row] = 0;
    kind->softmax(scores, 0, rows, 0, end, NULL, m, l, l + RAPT_MAX_TILE_ROWS, errands);
}

/* weigh and softmax fetch line by line, each once. */
static void test_slots(void **state) {
    struct random random = {63};
    int64_t ended = 0;
    for (int64_t turn = scaled_work(600); turn > 0; turn--) {
        struct plan plan;
        const struct rapt_tile_kind *kind = &rapt_table_probe.kinds[random_below(&random, RAPT_KINDS)];
        draw(&plan, &random);
        for (int call = 0; call < 6; call++) {
            (random_chance(&random, 50) ? run_weigh : run_softmax)(kind, &plan.errands, &random);
            expect_prefix(&plan);
        }
        ended += plan.count > 0 && notes.count == plan.count;
        test_free_all();
    }
    assert_true(scaled_work(100) < 100 || ended > 100);
    (void)state;
}

/* ---- score: whole rows, and their staging */

struct stage_case {
    struct rapt_errands errands;
    struct rapt_staging staging[RAPT_MAX_ERRANDS];
    int64_t first[RAPT_MAX_ERRANDS]; /* rows staged before */
    int format, dim;
};

enum { STAGED_ROWS = 40, STAGED_DIM = 33 };

static void draw_staged(struct stage_case *c, struct random *random) {
    memset(c, 0, sizeof *c);
    c->format = (int)random_between(random, RAPT_FORMAT_F32, RAPT_FORMAT_F16);
    c->dim = (int)random_between(random, 1, STAGED_DIM);
    c->errands.count = (int)random_between(random, 1, 4);
    for (int i = 0; i < c->errands.count; i++) {
        const int64_t row_bytes = rapt_format_row_bytes(c->format, c->dim), stride = row_bytes + 8;
        const int rows = (int)random_between(random, 1, STAGED_ROWS);
        c->first[i] = random_below(random, 5);
        float *room = test_floats((STAGED_ROWS + 6) * STAGED_DIM);
        c->staging[i] = (struct rapt_staging){room, c->first[i], c->dim, c->format};
        c->errands.piece[i] = (struct rapt_errand){
            .base = (const char *)test_drawn(random, STAGED_ROWS * (STAGED_DIM + 2), random_finite),
            .row_stride_bytes = stride,
            .rows = rows,
            .heads = 1,
            .row_bytes = (int)row_bytes,
            .staging = random_chance(random, 80) ? &c->staging[i] : NULL,
            .first = c->first[i]};
        c->errands.lines += rows * ((row_bytes + 63) / 64);
    }
}

/* Rows up to ready match the stored ones; nothing else was written. */
static void expect_staged(const struct rapt_table *table, const struct stage_case *c) {
    for (int i = 0; i < c->errands.count; i++) {
        const struct rapt_errand *piece = &c->errands.piece[i];
        const struct rapt_staging *staging = &c->staging[i];
        const int64_t staged = staging->ready - c->first[i];
        assert_in_range(staged, 0, piece->staging ? piece->rows : 0);
        float *expected = test_floats((STAGED_ROWS + 6) * STAGED_DIM);
        const struct rapt_stage_args args = {.into = expected + c->first[i] * c->dim,
                                             .from = piece->base,
                                             .from_stride_bytes = piece->row_stride_bytes,
                                             .rows = staged,
                                             .dim = c->dim,
                                             .format = c->format};
        rapt_table_of(RAPT_ISA_SCALAR)->stage(&args);
        for (int64_t at = 0; at < (STAGED_ROWS + 6) * STAGED_DIM; at++)
            if (bits_of(staging->rows[at]) != bits_of(expected[at]))
                fail_msg("%s: piece %d, %lld rows of %d after %lld: float %lld: %08x, expected %08x", table->name, i,
                         (long long)staged, c->dim, (long long)c->first[i], (long long)at, bits_of(staging->rows[at]),
                         bits_of(expected[at]));
    }
}

static void run_score(const struct rapt_tile_kind *kind, struct rapt_errands *errands, struct random *random) {
    const int rows = (int)random_between(random, 1, kind->rows), dim = (int)random_between(random, 1, 32);
    const float *query[RAPT_MAX_TILE_ROWS];
    for (int row = 0; row < rows; row++)
        query[row] = test_drawn(random, dim, random_normal);
    const int end = (int)random_between(random, 1, 40);
    float *panel = test_floats((int64_t)kind->panel_bytes(kind->rows, dim) / 4 + 1);
    kind->pack(panel, query, rows, dim);
    const struct rapt_score_args args = {
        .query = panel,
        .key = (const char *)test_drawn(random, (int64_t)end * dim, random_normal),
        .key_stride_bytes = dim * 4,
        .scores = test_floats(score_floats(kind)),
        .rows = rows,
        .head_dim = dim,
        .key_end = end,
        .factor = 1,
        .errands = errands};
    kind->score(&args);
}

/* The cursor's position, in rows. */
static int64_t rows_done(const struct rapt_errands *e) {
    int64_t rows = e->row;
    for (int i = 0; i < e->at; i++)
        rows += e->piece[i].rows;
    return rows;
}

static void check_staging(const struct rapt_table *table, struct random *random) {
    struct stage_case c;
    draw_staged(&c, random);
    for (int call = 0; call < 40 && c.errands.at < c.errands.count; call++) {
        const int64_t before = rows_done(&c.errands);
        run_score(&table->kinds[RAPT_KINDS - 1], &c.errands, random);
        assert_true(rows_done(&c.errands) > before);
        expect_staged(table, &c);
    }
    for (int i = 0; i + 1 < c.errands.at; i++) /* all but the last */
        if (c.errands.piece[i].staging)
            assert_int_equal(c.staging[i].ready - c.first[i], c.errands.piece[i].rows);
    test_free_all();
}

/* Lanes of dense rows fetch line after line, even if each line is a row, as for paced requests; others skip the gaps
 * between rows. */
static void test_lanes(void **state) {
    enum { ROW_LINES = 3, ROWS = 5, LINES = ROWS * ROW_LINES, FAR = 1 << 12 };
    static char memory[1 << 14];
    (void)state;
    for (int way = 0; way < 6; way++) {
        const int gap = way % 3 == 2 ? 128 : 0, row_lines = way % 3 == 1 ? 1 : ROW_LINES;
        const struct requests requests = {memory, FAR, gap, row_lines, row_lines};
        struct turn_requests turns = {requests, requests, way >= 3};
        notes.begin = memory, notes.end = memory + sizeof memory, notes.count = 0;
        for (int i = 0; i < LINES; i++)
            request_line(&turns, true);
        assert_int_equal(notes.count, 2 * LINES);
        for (int i = 0; i < LINES; i++) {
            const char *line = memory + 64 * i + i / ROW_LINES * gap;
            assert_ptr_equal(notes.address[2 * i], line);
            assert_ptr_equal(notes.address[2 * i + 1], line + FAR);
        }
        assert_ptr_equal(turns.keys.line, memory);
    }
}

/* Calls with more than 16 MiB of keys and values are memory-bound. */
static void test_caches(void **state) {
    enum { ROW_BYTES = 2 * (64 + 32), HEADS = 8, BATCH = 2, MOST = (16 << 20) / (ROW_BYTES * HEADS * BATCH) };
    rapt_attention_desc desc = RAPT_ATTENTION_DESC_INIT;
    rapt_plan plan;
    (void)state;
    desc.batch = BATCH, desc.query_heads = desc.kv_heads = HEADS, desc.query_length = 1;
    desc.head_dim = 64, desc.value_dim = 32;
    for (desc.kv_length = MOST; desc.kv_length <= MOST + 1; desc.kv_length++) {
        desc.query = rapt_input_bhsd(NULL, BATCH, HEADS, 1, desc.head_dim);
        desc.key = rapt_tensor_bhsd(NULL, RAPT_F16, BATCH, HEADS, desc.kv_length, desc.head_dim);
        desc.value = rapt_tensor_bhsd(NULL, RAPT_BF16, BATCH, HEADS, desc.kv_length, desc.value_dim);
        desc.out = rapt_output_bhsd(NULL, BATCH, HEADS, 1, desc.value_dim);
        assert_int_equal(rapt_plan_init(&plan, &desc, NULL), RAPT_OK);
        assert_int_equal(rapt_body_of(&plan)->exceeds_caches, desc.kv_length > MOST);
    }
}

static void test_staging(void **state) {
    const struct rapt_table *tables[RAPT_ISA_COUNT];
    const int table_count = machine_tables(tables);
    struct random random = {64};
    for (int t = 0; t < table_count; t++)
        for (int64_t turn = scaled_work(150); turn > 0; turn--)
            check_staging(tables[t], &random);
    (void)state;
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_lines), cmocka_unit_test(test_rows),
                                       cmocka_unit_test(test_slots), cmocka_unit_test(test_lanes),
                                       cmocka_unit_test(test_caches), cmocka_unit_test(test_staging)};
    return cmocka_run_group_tests_name("unit_errands", tests, NULL, NULL);
}
