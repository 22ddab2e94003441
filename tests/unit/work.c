/* SPDX-License-Identifier: MIT
 * How random batches are cut: every row meets every chunk of keys exactly once, the table of works agrees with the
 * totals, and what a plan reserves suffices. */
#include "plan/turns.h"
#include "plan/workspace.h"
#include "support/cmocka_all.h"
#include "support/unit.h"

static bool is_splitting(const struct rapt_work *work) { return work->splits > 1; }

/* Space for the table of works, and one more row, to stay unchanged. */
static void expect_untouched(const struct rapt_work *work) {
    for (size_t i = 0; i < sizeof *work; i++)
        assert_int_equal(((const unsigned char *)work)[i], 0xff);
}

/* NULL if refused; what follows the table stays in any case. */
static struct rapt_work *written_table(const struct unit *unit) {
    const size_t bytes = rapt_work_table_bytes(unit->body);
    assert_int_equal(bytes, unit->body->works_differ ? (size_t)unit->desc.batch * sizeof(struct rapt_work) : 0);
    struct rapt_work *table = test_alloc(bytes + sizeof *table);
    const bool is_written = rapt_work_write(unit->body, table);
    expect_untouched(table + bytes / sizeof *table);
    return is_written ? table : NULL;
}

/* ---- one work */

/* A work's chunks include all with a key that some row sees, and perhaps others. */
static void expect_chunks(const struct unit *unit, const struct rapt_work *work) {
    const struct rapt_sequence *s = &work->sequence;
    for (int64_t i = 0; i < s->query_length; i += 1 + s->query_length / 37)
        for (int64_t j = 0; j < s->kv_length; j += 1 + s->kv_length / 401) {
            const int64_t chunk = (s->key_position + j) / RAPT_CHUNK_KEYS - work->first_chunk;
            if (unit_sees(unit, s, i, j))
                assert_in_range(chunk, 0, work->chunks - 1);
        }
}

static void expect_kind(const struct unit *unit, const struct rapt_work *work) {
    const struct rapt_tile_kind *kinds = unit->body->table->kinds;
    const int64_t rows = work->sequence.query_length * unit->body->group;
    assert_in_range(work->kind, 0, RAPT_KINDS - 1);
    const bool fills = work->kind == RAPT_NARROW && rapt_takes_turns(unit->body, work, rows, 1);
    assert_true(rows <= (fills ? kinds[work->kind].turn_rows : kinds[work->kind].most_rows));
    for (int kind = 0; kind < work->kind; kind++)
        assert_true(rows > kinds[kind].most_rows);
    for (int side = 0; side < RAPT_SIDES; side++) {
        const rapt_tensor *tensor = rapt_tensor_of(unit->body, side);
        const int64_t bytes = tensor->token_stride_bytes;
        const bool collides = bytes % 1024 == 0 && bytes >= 2048 && bytes != rapt_dim_of(unit->body, side) * 4;
        const bool widens = tensor->dtype == RAPT_F16 && work->kind == RAPT_WIDE; /* the others read halves */
        const int copied_rows = kinds[work->kind].copied_rows;
        const bool stages = widens || (collides && copied_rows && rows >= copied_rows);
        assert_int_equal(work->stages[side], stages);
    }
}

static void expect_work(const struct unit *unit, const struct rapt_work *work) {
    const struct rapt_sequence expected = unit_sequence(unit, work->batch);
    const int64_t rows = expected.query_length * unit->body->group;
    assert_memory_equal(&work->sequence, &expected, sizeof expected);
    assert_true(work->task_rows >= 1 && work->task_rows <= unit->body->slot.rows);
    assert_int_equal(work->row_blocks, (rows + work->task_rows - 1) / work->task_rows);
    if (is_splitting(work))
        assert_true(work->row_blocks == 1 && (work->splits - 1) * unit->body->split_chunks < work->chunks &&
                    work->splits * unit->body->split_chunks >= work->chunks);
    expect_kind(unit, work);
    expect_chunks(unit, work);
}

/* ---- all tasks of a batch */

/* How often each row of a KV head of a sequence meets each of its chunks. */
struct cover {
    int64_t rows, chunks; /* chunks is at least 1: rows without keys are found, too */
    unsigned char *count; /* [kv_heads][rows][chunks] */
};

static struct cover *new_covers(const struct unit *unit) {
    const struct rapt_plan_body *plan = unit->body;
    struct cover *covers = test_alloc((size_t)(unit->desc.batch + 1) * sizeof *covers);
    for (int64_t b = 0; b < unit->desc.batch; b++) {
        const struct rapt_sequence s = unit_sequence(unit, b);
        const struct rapt_work work = rapt_work_cut(plan, &s);
        const int64_t rows = s.query_length * plan->group, chunks = work.chunks > 0 ? work.chunks : 1;
        const size_t bytes = (size_t)(unit->desc.kv_heads * rows * chunks);
        covers[b] = (struct cover){rows, chunks, test_alloc(bytes + 1)};
        memset(covers[b].count, 0, bytes);
    }
    return covers;
}

static void count_task(const struct rapt_task *task, int64_t splits, struct cover *covers) {
    const struct rapt_work *work = &task->work;
    struct cover *cover = &covers[work->batch];
    const int64_t share = task->plan->split_chunks;
    int64_t begin = 0, end = cover->chunks;
    if (is_splitting(work)) {
        begin = task->split * share;
        end = end - begin < splits * share ? end : begin + splits * share;
        assert_true(rapt_span_count(task->visible) == 0 ||
                    (task->visible.begin >= (work->first_chunk + begin) * RAPT_CHUNK_KEYS &&
                     task->visible.end <= (work->first_chunk + end) * RAPT_CHUNK_KEYS));
    }
    assert_true(task->rows >= 1 && task->first_row >= 0 && task->first_row + task->rows <= cover->rows);
    for (int64_t row = task->first_row; row < task->first_row + task->rows; row++)
        for (int64_t chunk = begin; chunk < end; chunk++)
            cover->count[(task->kv_head * cover->rows + row) * cover->chunks + chunk]++;
}

static void expect_covered_once(const struct unit *unit, const struct cover *covers) {
    for (int64_t b = 0; b < unit->desc.batch; b++)
        for (int64_t i = 0; i < unit->desc.kv_heads * covers[b].rows * covers[b].chunks; i++)
            assert_int_equal(covers[b].count[i], 1);
}

/* Scratch suffices for a task's tiles, in the order in which attend.c numbers them. */
static void expect_scratch(const struct rapt_task *task) {
    const struct rapt_totals *totals = &task->plan->totals;
    const struct rapt_tile_kind *kind = task->kind;
    const int64_t tiles = (task->rows + kind->rows - 1) / kind->rows;
    assert_true(tiles <= RAPT_MAX_TILES);
    assert_true(task->rows <= totals->rows);
    assert_true(tiles * (int64_t)kind->panel_bytes(kind->rows, (int)task->plan->desc.head_dim) <= totals->panel_bytes);
    const int64_t rows = task->rows < kind->rows ? task->rows : kind->rows;
    if (task->plan->desc.query.dtype == RAPT_F16)
        assert_true(rows * task->plan->desc.head_dim * (int64_t)sizeof(float) <= totals->scores_bytes);
    assert_true(totals->bias_rows >= (task->plan->desc.bias.dtype == RAPT_F16 ? rows : 0));
    for (int side = 0; side < RAPT_SIDES; side++)
        assert_true(!task->work.stages[side] || kind->piece_keys <= totals->staged_keys[side]);
}

/* Tasks are numbered by kind, the kind with the most rows first, then by sequence. Up to most_splits of the same keys
 * count as one. */
static void expect_tasks(const struct unit *unit, const struct rapt_work *table, int64_t most_splits) {
    const struct rapt_plan_body *plan = unit->body;
    struct rapt_run run = {.plan = plan, .works = table};
    struct cover *covers = new_covers(unit);
    int64_t tasks[RAPT_KINDS] = {0};
    struct rapt_task task, before = {0};
    for (int64_t index = 0, count; index < plan->totals.all_tasks; index += count, before = task) {
        const struct rapt_work work = rapt_work_of_task(plan, table, 0, index);
        const int64_t left = work.splits - (index - work.first_task) % work.splits;
        count = left < most_splits ? left : most_splits;
        rapt_task_find(&task, &run, index, count);
        if (index == 0 || task.work.batch != before.work.batch)
            expect_work(unit, &task.work);
        if (index > 0)
            assert_true(task.work.kind < before.work.kind ||
                        (task.work.kind == before.work.kind && task.work.batch >= before.work.batch));
        tasks[task.work.kind] += count;
        count_task(&task, count, covers);
        expect_scratch(&task);
    }
    assert_memory_equal(tasks, plan->totals.tasks, sizeof tasks);
    expect_covered_once(unit, covers);
}

/* Each KV head of split keys is merged once, and its states are disjoint from all others. */
static void expect_merges(const struct unit *unit, const struct rapt_work *table) {
    const struct rapt_plan_body *plan = unit->body;
    bool merged[UNIT_MOST_BATCH][8] = {{false}};
    struct rapt_span states[UNIT_MOST_BATCH];
    int64_t sum = 0;
    int works = 0;
    for (int64_t index = 0; index < plan->totals.all_merges; index++) {
        const struct rapt_work work = rapt_work_of_task(plan, table, 1, index);
        const int64_t head = index - work.first_merge;
        assert_true(is_splitting(&work) && head >= 0 && head < unit->desc.kv_heads);
        assert_false(merged[work.batch][head]);
        merged[work.batch][head] = true;
        if (head == 0) {
            const int64_t bytes = unit->desc.kv_heads * work.chunks * rapt_state_bytes(work.task_rows, plan->o_stride);
            states[works] = (struct rapt_span){work.first_state, work.first_state + bytes};
            assert_true(work.first_state % RAPT_VECTOR_BYTES == 0 && states[works].end <= plan->totals.state_bytes);
            for (int other = 0; other < works; other++)
                assert_int_equal(rapt_span_count(rapt_intersect(states[works], states[other])), 0);
            works++, sum += bytes;
        }
    }
    assert_true(sum == plan->totals.state_bytes);
    for (int64_t b = 0; b < unit->desc.batch; b++)
        for (int64_t h = 0; h < unit->desc.kv_heads; h++) {
            const struct rapt_sequence s = unit_sequence(unit, b);
            const struct rapt_work work = rapt_work_cut(plan, &s);
            assert_int_equal(merged[b][h], is_splitting(&work));
        }
}

static void draw(struct unit *unit, struct random *random) {
    static const int32_t dtypes[] = {RAPT_F32, RAPT_F16};
    static const int64_t strides[] = {0, 2048, 3072, 1024, 2000};
    unit_draw(unit, random, random_chance(random, 50) ? 9 : 500, random_chance(random, 50) ? 20000 : 700);
    for (int side = 0; side < RAPT_SIDES; side++) {
        rapt_tensor *tensor = side == RAPT_KEYS ? &unit->desc.key : &unit->desc.value;
        tensor->dtype = dtypes[random_below(random, 2)];
        tensor->token_stride_bytes = strides[random_below(random, 5)];
    }
    unit->desc.query.dtype = dtypes[random_below(random, 2)];
    unit->desc.bias.dtype = dtypes[random_below(random, 2)];
    if (random_chance(random, 10))
        unit->desc.head_dim = random_between(random, 200, 1024); /* wide queries are longer than their scores */
    unit_cut(unit);
}

static void test_tasks(void **state) {
    struct random random = {21};
    int64_t splits = 0, mixed = 0;
    for (int64_t turn = scaled_work(8000); turn > 0; turn--) {
        struct unit unit;
        draw(&unit, &random);
        const struct rapt_work *table = written_table(&unit);
        assert_non_null(table);
        expect_tasks(&unit, table, 1);
        expect_tasks(&unit, table, 3);
        expect_merges(&unit, table);
        splits += unit.body->totals.all_merges > 0;
        mixed += unit.body->totals.tasks[0] > 0 && unit.body->totals.tasks[RAPT_KINDS - 1] > 0;
        test_free_all();
    }
    assert_true(scaled_work(100) < 100 || (splits > 500 && mixed > 100));
    (void)state;
}

/* ---- lists that change after planning */

static bool is_legal(const struct unit *unit) {
    const int64_t far = (int64_t)1 << 49;
    for (int64_t b = 0; b < unit->desc.batch; b++) {
        const struct rapt_sequence s = unit_sequence(unit, b);
        if (s.query_length < 0 || s.query_length > unit->desc.query_length || s.kv_length < 0 ||
            s.kv_length > unit->desc.kv_length || s.key_position < 0 || s.key_position > far ||
            s.query_position > far || s.query_position < -far)
            return false;
    }
    return true;
}

/* Longer, shorter, negative, huge. */
static void change(struct unit *unit, struct random *random) {
    static const int64_t numbers[] = {-1, INT32_MIN, INT32_MAX, 0, 1};
    struct unit_list *const lists[] = {&unit->query_lengths, &unit->kv_lengths, &unit->query_position,
                                       &unit->key_position};
    struct unit_list *list = lists[random_below(random, 4)];
    const int64_t b = random_below(random, unit->desc.batch);
    const int64_t near = list->wide[b] + random_between(random, -20, 20);
    unit_set(list, b, random_chance(random, 40) ? numbers[random_below(random, 5)] : near);
    const rapt_index_list *const used[] = {&unit->desc.query_lengths, &unit->desc.kv_lengths,
                                           &unit->desc.query_position, &unit->desc.key_position};
    for (int i = 0; i < 4; i++)
        if (used[i]->index_bytes == 8 && used[i]->data == lists[i]->wide && list == lists[i] &&
            random_chance(random, 20))
            list->wide[b] = random_chance(random, 50) ? INT64_MAX - 1000 : INT64_MIN + 1000;
}

static void test_changed_lists(void **state) {
    struct random random = {22};
    int64_t taken = 0, refused = 0, illegal = 0;
    for (int64_t turn = scaled_work(8000); turn > 0; turn--) {
        struct unit unit;
        draw(&unit, &random);
        if (unit.body->works_differ && unit.desc.batch > 0) {
            change(&unit, &random);
            const struct rapt_work *table = written_table(&unit);
            if (!is_legal(&unit))
                assert_null(table);
            illegal += !is_legal(&unit);
            taken += table != NULL;
            refused += table == NULL && is_legal(&unit);
            if (table) { /* the plan fits it as well as one made for it */
                expect_tasks(&unit, table, 1);
                expect_tasks(&unit, table, 5);
            }
        }
        test_free_all();
    }
    assert_true(scaled_work(100) < 100 || (taken > 1000 && refused > 100 && illegal > 1000));
    (void)state;
}

/* ---- bounds of a capacity */

static void expect_bounded(const struct rapt_totals *bound, const struct rapt_totals *totals) {
    assert_true(totals->rows <= bound->rows);
    assert_true(totals->panel_bytes <= bound->panel_bytes);
    assert_true(totals->scores_bytes <= bound->scores_bytes);
    assert_true(totals->state_bytes <= bound->state_bytes);
    assert_true(totals->all_tasks <= bound->all_tasks);
    for (int side = 0; side < RAPT_SIDES; side++)
        assert_true(totals->staged_keys[side] <= bound->staged_keys[side]);
}

static int64_t smaller(int64_t a, int64_t b) { return a < b ? a : b; }

/* A call like largest, with at most its batch and lengths, and its own lists. */
static void draw_smaller(struct unit *unit, const struct unit *largest, struct random *random) {
    unit_draw(unit, random, largest->desc.query_length, largest->desc.kv_length);
    const rapt_attention_desc drawn = unit->desc;
    rapt_attention_desc *desc = &unit->desc;
    *desc = largest->desc;
    if (random_chance(random, 50))
        desc->key.token_stride_bytes = desc->value.token_stride_bytes = 4096;
    desc->batch = smaller(drawn.batch, largest->desc.batch);
    desc->query_length = smaller(drawn.query_length, largest->desc.query_length);
    desc->kv_length = smaller(drawn.kv_length, largest->desc.kv_length);
    desc->query_lengths = drawn.query_lengths;
    desc->kv_lengths = drawn.kv_lengths;
    desc->key_position = drawn.key_position;
    desc->query_position = drawn.query_position;
    desc->query_origin = drawn.query_origin;
    for (int64_t b = 0; b < desc->batch; b++) {
        unit_set(&unit->query_lengths, b, random_below(random, desc->query_length + 1));
        unit_set(&unit->kv_lengths, b, random_below(random, desc->kv_length + 1));
    }
    unit_cut(unit);
}

static void test_bound(void **state) {
    struct random random = {23};
    for (int64_t turn = scaled_work(4000); turn > 0; turn--) {
        struct unit largest, unit;
        struct rapt_totals bound;
        size_t capacity, bytes;
        draw(&largest, &random);
        largest.desc.weights_kind = random_chance(&random, 30) ? RAPT_WEIGHTS_SOFTMAX : RAPT_WEIGHTS_NONE;
        unit_cut(&largest);
        rapt_work_bound(largest.body, &bound);
        assert_int_equal(rapt_workspace_capacity(largest.body, 3, &capacity), RAPT_OK);
        for (int i = 0; i < 4; i++) {
            draw_smaller(&unit, &largest, &random);
            expect_bounded(&bound, &unit.body->totals);
            assert_int_equal(rapt_workspace_bytes(unit.body, 3, &bytes), RAPT_OK);
            assert_true(bytes <= capacity);
        }
    }
    (void)state;
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_tasks), cmocka_unit_test(test_changed_lists),
                                       cmocka_unit_test(test_bound)};
    return cmocka_run_group_tests_name("unit_work", tests, NULL, NULL);
}
