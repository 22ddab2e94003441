/* SPDX-License-Identifier: MIT
 * Keys and values of tasks, in place and staged: whatever is requested, in any order, numbers are the stored ones. */
#include "support/cmocka_all.h"
#include "support/unit.h"

/* Space for staged rows, with canaries beside it. */
enum { BESIDE = 64 };

struct bench {
    struct unit unit;
    struct rapt_run run;
    struct rapt_task task;
    struct rapt_source source;
    char *staged[RAPT_SIDES];
    int64_t staged_bytes[RAPT_SIDES];
};

static void expect_rows(const struct bench *bench, int side, int64_t begin, const struct rapt_rows *rows) {
    const rapt_tensor *tensor = rapt_tensor_of(bench->task.plan, side);
    const struct rapt_work *work = &bench->task.work;
    const int64_t dim = side == RAPT_KEYS ? bench->unit.desc.head_dim : bench->unit.desc.value_dim;
    const int32_t dtype = work->stages[side] ? RAPT_F32 : tensor->dtype;
    assert_int_equal(rows->format, rapt_format_of(dtype));
    for (int64_t i = 0; i < rows->count; i++) {
        const int64_t token = begin + i - work->sequence.key_position;
        const char *stored = unit_row(tensor, work->batch, bench->task.kv_head, token);
        for (int64_t d = 0; d < dim; d++) {
            const float got = unit_number(dtype, rows->base + i * rows->stride_bytes, d);
            if (bits_of(got) != bits_of(unit_number(tensor->dtype, stored, d)))
                fail_msg("side %d, position %lld, element %lld: got %a, stored %a", side, (long long)(begin + i),
                         (long long)d, (double)got, (double)unit_number(tensor->dtype, stored, d));
        }
    }
}

static void expect_canaries(const struct bench *bench) {
    for (int side = 0; side < RAPT_SIDES; side++)
        for (int64_t i = 0; i < BESIDE; i++) {
            assert_int_equal((unsigned char)bench->staged[side][i], 0xff);
            assert_int_equal((unsigned char)bench->staged[side][BESIDE + bench->staged_bytes[side] + i], 0xff);
        }
}

/* Requests all of some positions of one block, run by run. */
static void ask(struct bench *bench, int side, struct rapt_span positions) {
    const bool is_staged = bench->task.work.stages[side];
    for (int64_t at = positions.begin, last = at; at < positions.end; last = at) {
        const struct rapt_span rest = {at, positions.end};
        const struct rapt_rows rows = rapt_source_rows(&bench->source, side, rest);
        assert_true(rows.count >= 1 && rows.count <= positions.end - at);
        if (!is_staged)
            assert_int_equal(rows.count, positions.end - at);
        expect_rows(bench, side, at, &rows);
        at += rows.count;
        if (is_staged) /* pieces divide blocks */
            assert_true(at == positions.end || (at % bench->task.kind->piece_keys == 0 && at > last));
    }
    expect_canaries(bench);
}

/* Like errands beside score: stages a few of the missing rows. */
static void stage_some(const struct bench *bench, int side, int64_t next, struct rapt_staging *staging, int64_t most) {
    const struct rapt_span keys = rapt_block_of(bench->source.visible, next);
    for (; most > 0 && staging->ready < rapt_span_count(keys); most--) {
        const struct rapt_span missing = {keys.begin + staging->ready, keys.end};
        const struct rapt_rows rows = rapt_source_stored(&bench->task, side, missing);
        const struct rapt_stage_args args = {.into = staging->rows + staging->ready * staging->dim,
                                             .from = rows.base,
                                             .from_stride_bytes = rows.stride_bytes,
                                             .rows = 1,
                                             .dim = staging->dim,
                                             .format = staging->format};
        bench->task.table->stage(&args);
        staging->ready++;
    }
}

static int64_t rows_staged;

static void stage_counting(const struct rapt_stage_args *args) {
    rows_staged += args->rows;
    rapt_table_of(RAPT_ISA_SCALAR)->stage(args);
}

static struct rapt_span random_part(struct random *random, struct rapt_span span) {
    if (random_chance(random, 50))
        return span;
    const int64_t begin = random_between(random, span.begin, span.end - 1);
    return (struct rapt_span){begin, random_between(random, begin + 1, span.end)};
}

/* Blocks in order, each requested by several tiles while the next is staged; sometimes the one before again, like a
 * repeated chunk. */
static int64_t check_in_order(struct bench *bench, int side, struct random *random) {
    const struct rapt_span visible = bench->source.visible;
    int64_t before = -1, ahead = 0;
    for (int64_t base = rapt_next_block(visible, 0), next; base >= 0; before = base, base = next) {
        next = rapt_next_block(visible, base + RAPT_BLOCK_KEYS);
        struct rapt_staging *staging = next >= 0 ? rapt_source_ahead(&bench->source, side, base, next) : NULL;
        const int tiles = (int)random_between(random, 1, 4);
        ahead += staging != NULL;
        for (int tile = 0; tile < tiles; tile++) {
            ask(bench, side, random_part(random, rapt_block_of(visible, base)));
            if (staging)
                stage_some(bench, side, next, staging, random_below(random, 120));
        }
        if (before >= 0 && random_chance(random, 30)) {
            ask(bench, side, random_part(random, rapt_block_of(visible, before)));
            ask(bench, side, random_part(random, rapt_block_of(visible, base)));
            if (staging) /* must not be taken for rows of the next block */
                assert_ptr_equal(rapt_source_ahead(&bench->source, side, base, next), staging);
        }
    }
    return ahead;
}

/* Each row is staged once, ahead or on demand. */
static void check_once(struct bench *bench, int side, struct random *random) {
    const struct rapt_span visible = bench->source.visible;
    struct rapt_table counting = *bench->task.table;
    counting.stage = stage_counting;
    bench->task.table = &counting;
    rows_staged = 0;
    for (int64_t base = rapt_next_block(visible, 0), next; base >= 0; base = next) {
        next = rapt_next_block(visible, base + RAPT_BLOCK_KEYS);
        struct rapt_staging *staging = next >= 0 ? rapt_source_ahead(&bench->source, side, base, next) : NULL;
        ask(bench, side, rapt_block_of(visible, base));
        if (staging)
            stage_some(bench, side, next, staging, random_below(random, 300));
    }
    assert_int_equal(rows_staged, bench->task.work.stages[side] ? rapt_span_count(visible) : 0);
    bench->task.table = rapt_table_of(RAPT_ISA_SCALAR);
}

static void check_any_order(struct bench *bench, int side, struct random *random) {
    const struct rapt_span visible = bench->source.visible;
    for (int turn = 0; turn < 12; turn++) {
        const int64_t base = random_between(random, visible.begin, visible.end - 1) / RAPT_BLOCK_KEYS * RAPT_BLOCK_KEYS;
        ask(bench, side, random_part(random, rapt_block_of(visible, base)));
    }
}

static void draw(struct bench *bench, struct random *random) {
    struct unit *unit = &bench->unit;
    do
        unit_draw(unit, random, 260, 1500);
    while (unit->desc.batch == 0 || unit->desc.query_length == 0 || unit->desc.kv_length == 0 ||
           unit->desc.head_dim > 64 || unit->desc.value_dim > 64);
    if (random_chance(random, 40))
        unit->desc.query_length = 260; /* colliding rows are staged for it */
    unit_add_inputs(unit, random, random_chance(random, 50) ? RAPT_F16 : RAPT_F32);
    for (int side = 0; side < RAPT_SIDES; side++) {
        rapt_tensor *tensor = side == RAPT_KEYS ? &unit->desc.key : &unit->desc.value;
        if (tensor->dtype != RAPT_F32 || random_chance(random, 60))
            continue; /* rows that collide in the caches, all in one */
        tensor->data = test_drawn(random, unit->desc.kv_length * 512 + 512, random_finite);
        tensor->token_stride_bytes = 2048;
        tensor->batch_stride_bytes = tensor->head_stride_bytes = 0;
    }
    unit_cut(unit);
}

/* A random task with keys, and its scratch. */
static bool open_task(struct bench *bench, struct random *random) {
    const struct rapt_plan_body *plan = bench->unit.body;
    struct rapt_work *table = test_alloc(rapt_work_table_bytes(plan) + 1);
    assert_true(rapt_work_write(plan, table));
    bench->run = (struct rapt_run){.plan = plan, .works = table};
    if (plan->totals.all_tasks == 0)
        return false;
    rapt_task_find(&bench->task, &bench->run, random_below(random, plan->totals.all_tasks), 1);
    for (int side = 0; side < RAPT_SIDES; side++) {
        bench->staged_bytes[side] =
            RAPT_STAGING_BUFFERS * bench->task.kind->piece_keys * rapt_dim_of(plan, side) * (int64_t)sizeof(float);
        bench->staged[side] = test_alloc((size_t)bench->staged_bytes[side] + 2 * BESIDE);
        bench->task.staged[side] = (float *)(void *)(bench->staged[side] + BESIDE);
    }
    return rapt_span_count(bench->task.visible) > 0;
}

static void test_source(void **state) {
    struct random random = {51};
    int64_t in_place = 0, collide = 0, halves = 0, ahead = 0;
    for (int64_t turn = scaled_work(250); turn > 0; turn--) {
        struct bench bench;
        draw(&bench, &random);
        for (int side = 0; side < RAPT_SIDES && open_task(&bench, &random); side++) {
            const bool is_staged = bench.task.work.stages[side];
            const bool is_half = rapt_tensor_of(bench.task.plan, side)->dtype == RAPT_F16;
            in_place += !is_staged, collide += is_staged && !is_half, halves += is_half;
            rapt_source_open(&bench.source, &bench.task, bench.task.visible);
            check_once(&bench, side, &random);
            rapt_source_open(&bench.source, &bench.task, bench.task.visible);
            ahead += check_in_order(&bench, side, &random);
            check_any_order(&bench, side, &random);
            ahead += check_in_order(&bench, side, &random);
        }
        test_free_all();
    }
    assert_true(scaled_work(100) < 100 || (in_place > 50 && collide > 20 && halves > 50 && ahead > 50));
    (void)state;
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_source)};
    return cmocka_run_group_tests_name("unit_source", tests, NULL, NULL);
}
