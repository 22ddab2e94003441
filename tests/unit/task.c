/* SPDX-License-Identifier: MIT
 * From a task's number to its rows, heads and scratch; which rows a tile requests; memory layout of states, slots and
 * workspaces. */
#include <math.h>

#include "attend/prefetch.h"
#include "plan/workspace.h"
#include "reference/reference.h"
#include "support/cmocka_all.h"
#include "support/problem.h"
#include "support/unit.h"

/* ---- states */

static void test_states(void **state) {
    struct random random = {41};
    for (int turn = 0; turn < 200; turn++) {
        const int64_t rows = random_between(&random, 1, 70), o_stride = 16 * random_between(&random, 1, 5);
        const int64_t bytes = rapt_state_bytes(rows, o_stride);
        char *memory = test_alloc((size_t)bytes + RAPT_VECTOR_BYTES);
        assert_int_equal(bytes % RAPT_VECTOR_BYTES, 0);
        const struct rapt_state s = rapt_state_at(memory, rows, o_stride);
        assert_int_equal((uintptr_t)s.m % RAPT_VECTOR_BYTES, 0);
        assert_int_equal((uintptr_t)s.l % RAPT_VECTOR_BYTES, 0);
        assert_int_equal((uintptr_t)s.o % RAPT_VECTOR_BYTES, 0);
        rapt_state_clear(s, (int)rows);
        const int64_t row = random_below(&random, rows);
        const struct rapt_state from = rapt_state_from(s, (int)row);
        assert_true(from.m == s.m + row && from.l == s.l + row && from.o == s.o + row * o_stride);
        assert_int_equal(from.o_stride, o_stride);
        for (int64_t i = 0; i < rows * o_stride; i++)
            s.o[i] = (float)i;
        for (int64_t i = 0; i < rows; i++) { /* o did not overlap m and l */
            assert_true(s.m[i] == -INFINITY);
            assert_int_equal(bits_of(s.l[i]), 0);
        }
        for (int64_t i = 0; i < RAPT_VECTOR_BYTES; i++)
            assert_int_equal((unsigned char)memory[bytes + i], 0xff);
        assert_true(2 * rows + rows * o_stride <= bytes / 4 && bytes / 4 <= 2 * rows + rows * o_stride + 45);
        test_free_all();
    }
    (void)state;
}

/* A state's rows from `rows` on stay unchanged. */
static void test_clear_some(void **state) {
    const struct rapt_state s = {test_floats(4), test_floats(4), test_floats(64), 16};
    rapt_state_clear(s, 3);
    assert_true(s.m[2] == -INFINITY && s.l[2] == 0);
    assert_int_equal(bits_of(s.m[3]), 0xffffffffu);
    assert_int_equal(bits_of(s.l[3]), 0xffffffffu);
    assert_int_equal(bits_of(s.o[0]), 0xffffffffu);
    test_free_all();
    (void)state;
}

/* ---- rows of a task */

/* A tile requests rows of its own heads alone, in groups of any size. */
static void test_requested_heads(void **state) {
    enum { QUERIES = 2, KEYS = 5, ROWS = 4 };
    static const int64_t groups[] = {3, ROWS, 5, 64, INT64_C(1) << 31, (INT64_C(1) << 32) + 2};
    static const unsigned char mask[QUERIES * KEYS] = {1};
    (void)state;
    for (int i = 0; i < (int)(sizeof groups / sizeof groups[0]); i++)
        for (int64_t row = 0; row <= QUERIES * groups[i] - ROWS; row += i < 4 ? 1 : groups[i] - 1) {
            struct rapt_plan_body body = {.group = groups[i]};
            struct rapt_tile_kind kind = {.streams = true};
            struct rapt_task task = {.plan = &body, .kind = &kind, .first_row = row, .rows = ROWS};
            struct rapt_loop loop = {.task = &task, .tile_count = 2};
            struct rapt_errands errands;
            struct rapt_block block = {.is_scored = true};
            const int64_t head = groups[i] > ROWS ? row % groups[i] : 0;
            body.desc.mask = (rapt_tensor){.data = (void *)(uintptr_t)mask, .token_stride_bytes = KEYS};
            loop.tiles[1] = (struct rapt_tile){.task = &task, .rows = ROWS, .visible = {0, KEYS}};
            rapt_prefetch_tile(&loop, &loop.tiles[0], 0, &errands, &block);
            const struct rapt_errand *piece = &errands.piece[0];
            assert_true(errands.count == 1 && block.of_weigh == &errands);
            assert_ptr_equal(piece->base, mask + row / groups[i] * KEYS);
            assert_int_equal(piece->rows, (row + ROWS - 1) / groups[i] - row / groups[i] + 1);
            assert_in_range(piece->heads, 1, ROWS);
            assert_true(head + piece->heads == groups[i] || piece->heads == ROWS);
            assert_int_equal(errands.lines, piece->rows * piece->heads);
        }
}

static void expect_pointers(const struct unit *unit, const struct rapt_task *task, struct random *random) {
    const rapt_tensor *tensors[] = {&unit->desc.query, &unit->desc.out};
    const int64_t group = unit->desc.query_heads / unit->desc.kv_heads;
    const int first = (int)random_below(random, task->rows), left = task->rows - first;
    const int count = (int)random_between(random, 1, left < RAPT_MAX_TILE_ROWS ? left : RAPT_MAX_TILE_ROWS);
    char *rows[RAPT_MAX_TILE_ROWS + 1];
    for (int t = 0; t < 2; t++) {
        rows[count] = NULL;
        rapt_task_rows(task, tensors[t], first, count, rows);
        assert_null(rows[count]);
        for (int i = 0; i < count; i++) {
            const int64_t row = task->first_row + first + i, head = task->kv_head * group + row % group;
            assert_ptr_equal(rows[i], unit_row(tensors[t], task->work.batch, head, row / group));
            assert_int_equal(rapt_task_head(task, first + i), head);
            assert_int_equal(rapt_position(task, first + i), task->work.sequence.query_position + row / group);
        }
    }
}

/* Slopes of the ALiBi paper: powers of 2^(-8/n) for the first n heads, n the largest power of two; for the rest odd
 * powers of 2^(-4/n). */
static float expected_slope(const struct unit *unit, int64_t head) {
    if (unit->desc.alibi_slopes)
        return unit->desc.alibi_slopes[head];
    int64_t n = 1;
    while (2 * n <= unit->desc.query_heads)
        n *= 2;
    const float exponent =
        head < n ? -8.0f * (float)(head + 1) / (float)n : -4.0f * (float)(2 * (head - n) + 1) / (float)n;
    return rapt_reference_exp2(exponent, 0);
}

static void expect_slopes(const struct unit *unit, const struct rapt_task *task) {
    for (int row = 0; row < task->rows; row++)
        assert_int_equal(bits_of(task->slopes[row]),
                         bits_of(-(expected_slope(unit, rapt_task_head(task, row)) * RAPT_LOG2E)));
}

/* ---- scratch: each area in the slot, aligned, disjoint from the others */

struct area {
    char *begin;
    size_t bytes;
};

static struct area area(const void *begin, int64_t bytes) {
    return (struct area){(char *)(uintptr_t)begin, (size_t)bytes};
}

static void expect_scratch(const struct rapt_task *task, char *slot) {
    const struct rapt_plan_body *plan = task->plan;
    const struct rapt_totals *totals = &plan->totals;
    const int64_t floats = totals->rows * 4, state = rapt_state_bytes(totals->rows, plan->o_stride);
    const int64_t keys = RAPT_MAX_TILE_ROWS * RAPT_BLOCK_KEYS;
    const int64_t dim = rapt_larger(plan->desc.head_dim, plan->desc.value_dim);
    const bool masks = plan->mask_parts & RAPT_PART_MASK, biases = plan->mask_parts & RAPT_PART_BIAS;
    const bool selects = masks || biases, keeps = selects && (plan->mask_parts & RAPT_PART_KEEP);
    const struct area areas[] = {
        area(task->panel, totals->panel_bytes),
        area(task->scores, totals->scores_bytes),
        area(task->bias, totals->bias_rows * RAPT_BLOCK_KEYS * 4),
        area(task->alpha, RAPT_MAX_TILE_ROWS * 4),
        area(task->slopes, floats),
        area(task->final_m, floats),
        area(task->inverse, floats),
        area(task->running.m, state),
        area(task->chunk.m, state),
        area(task->staged[0], 2 * totals->staged_keys[0] * plan->desc.head_dim * 4),
        area(task->staged[1], 2 * totals->staged_keys[1] * plan->desc.value_dim * 4),
        area(task->rows_of_keys[RAPT_MASK_ROWS], masks ? keys : 0),
        area(task->rows_of_keys[RAPT_KEEP_ROWS], keeps ? keys : 0),
        area(task->rows_of_keys[RAPT_BIAS_ROWS], biases ? keys * 4 : 0),
        area(task->gathered, selects ? RAPT_GATHERED_KEYS * dim * 4 : 0),
    };
    enum { AREAS = sizeof areas / sizeof *areas };
    for (int i = 0; i < AREAS; i++) {
        assert_int_equal((uintptr_t)areas[i].begin % RAPT_VECTOR_BYTES, 0);
        assert_true(areas[i].begin >= slot && areas[i].begin + areas[i].bytes <= slot + plan->slot.slot_bytes);
        memset(areas[i].begin, i, areas[i].bytes);
    }
    for (int i = 0; i < AREAS; i++)
        for (size_t byte = 0; byte < areas[i].bytes; byte++)
            assert_int_equal(areas[i].begin[byte], i);
}

static void expect_states(const struct rapt_task *task, const struct rapt_run *run) {
    if (task->work.splits == 1)
        return;
    const int64_t bytes = rapt_state_bytes(task->work.task_rows, task->plan->o_stride);
    for (int64_t chunk = 0; chunk < task->work.chunks; chunk++) {
        const int64_t number = task->kv_head * task->work.chunks + chunk;
        const char *expected = run->states + task->work.first_state + number * bytes;
        assert_ptr_equal(rapt_state_of_chunk(task, chunk).m, expected);
        assert_true(expected + bytes <= run->states + task->plan->totals.state_bytes);
    }
}

static void draw(struct unit *unit, struct random *random) {
    unit_draw(unit, random, 120, 9000);
    rapt_attention_desc *d = &unit->desc;
    const int32_t query_dtype = random_chance(random, 30) ? RAPT_F16 : RAPT_F32;
    const int32_t out_dtype = random_chance(random, 30) ? RAPT_F16 : RAPT_F32;
    d->query = unit_tensor(random, query_dtype, d->batch, d->query_heads, d->query_length, d->head_dim, true);
    d->bias.dtype = random_chance(random, 30) ? RAPT_F16 : RAPT_NO_DTYPE;
    d->mask.dtype = random_chance(random, 30) ? RAPT_BOOL8 : RAPT_NO_DTYPE;
    d->keep_mask.dtype = random_chance(random, 30) ? RAPT_BOOL8 : RAPT_NO_DTYPE;
    d->out = unit_tensor(random, out_dtype, d->batch, d->query_heads, d->query_length, d->value_dim, false);
    d->key.dtype = d->value.dtype = random_chance(random, 50) ? RAPT_F16 : RAPT_F32;
    if (random_chance(random, 30))
        d->alibi_slopes = test_drawn(random, d->query_heads, random_normal);
    else if (random_chance(random, 50))
        d->features |= RAPT_ALIBI_STANDARD;
    unit_cut(unit);
}

static void test_tasks(void **state) {
    struct random random = {42};
    int64_t splits = 0;
    for (int64_t turn = scaled_work(400); turn > 0; turn--) {
        struct unit unit;
        draw(&unit, &random);
        const struct rapt_plan_body *plan = unit.body;
        struct rapt_work *table = test_alloc(rapt_work_table_bytes(plan) + 1);
        assert_true(rapt_work_write(plan, table));
        const struct rapt_run run = {
            .plan = plan, .works = table, .states = test_alloc((size_t)plan->totals.state_bytes + 1)};
        char *slot = test_alloc(plan->slot.slot_bytes);
        for (int i = 0; i < 5 && plan->totals.all_tasks > 0; i++) {
            struct rapt_task task;
            rapt_task_find(&task, &run, random_below(&random, plan->totals.all_tasks), 1);
            rapt_task_open(&task, slot, 0);
            if (plan->mask_parts & RAPT_PART_ALIBI)
                expect_slopes(&unit, &task);
            expect_pointers(&unit, &task, &random);
            expect_states(&task, &run);
            expect_scratch(&task, slot);
            splits += task.work.splits > 1;
        }
        test_free_all();
    }
    assert_true(scaled_work(100) < 100 || splits > 20);
    (void)state;
}

/* ---- workspaces */

static void expect_slots(struct rapt_workspace *w, int64_t slots, const char *end) {
    assert_int_equal(w->slots, slots);
    for (int64_t i = 0; i < slots; i++) {
        assert_int_equal(rapt_workspace_take(w), i);
        assert_int_equal((uintptr_t)rapt_workspace_slot(w, i) % RAPT_VECTOR_BYTES, 0);
        assert_true(rapt_workspace_slot(w, i) >= w->scratch && rapt_workspace_slot(w, i) + w->slot_bytes <= end);
    }
    assert_int_equal(rapt_workspace_take(w), -1);
    rapt_workspace_give(w, slots / 2);
    assert_int_equal(rapt_workspace_take(w), slots / 2);
}

static void check_workspace(const struct unit *unit, struct random *random) {
    const struct rapt_plan_body *plan = unit->body;
    const int64_t asked = random_between(random, 1, 9), tasks = plan->totals.all_tasks > 0 ? plan->totals.all_tasks : 1;
    size_t bytes;
    assert_int_equal(rapt_workspace_bytes(plan, asked, &bytes), RAPT_OK);
    char *memory = test_alloc(bytes + 128), *begin = memory + random_below(random, RAPT_VECTOR_BYTES);
    assert_null(rapt_workspace_of(plan, begin));
    assert_int_equal(rapt_workspace_prepare(plan, begin, bytes), RAPT_OK);
    struct rapt_workspace *w = rapt_workspace_of(plan, begin);
    assert_true((char *)w >= begin && (uintptr_t)w % RAPT_VECTOR_BYTES == 0);
    const char *header_end = (const char *)(w->busy + w->slots), *works = (const char *)w->works;
    assert_true(works >= header_end && w->states >= works + rapt_work_table_bytes(plan));
    assert_true(w->scratch >= w->states + plan->totals.state_bytes);
    expect_slots(w, asked < tasks ? asked : tasks, begin + bytes);
    for (char *at = begin + bytes; at < memory + bytes + 128; at++)
        assert_int_equal((unsigned char)*at, 0xff);
    for (const char *at = memory; at < begin; at++)
        assert_int_equal((unsigned char)*at, 0xff);
    assert_int_equal(rapt_workspace_bytes(plan, 1, &bytes), RAPT_OK);
    assert_int_equal(rapt_workspace_prepare(plan, begin, bytes - RAPT_VECTOR_BYTES), RAPT_WORKSPACE_TOO_SMALL);
}

/* One byte less than slots require has room for one less, also where a slot's byte begins a line of the header. */
static void test_slots_that_fit(void **state) {
    struct rapt_totals totals = {.all_tasks = 1000};
    struct rapt_plan_body plan = {.totals = totals, .slot.slot_bytes = 128};
    (void)state;
    for (int64_t slots = 2; slots < 200; slots++) {
        size_t bytes;
        assert_int_equal(rapt_workspace_bytes(&plan, slots, &bytes), RAPT_OK);
        char *memory = test_alloc(bytes);
        assert_int_equal(rapt_workspace_prepare(&plan, memory, bytes - 1), RAPT_OK);
        assert_int_equal(rapt_workspace_of(&plan, memory)->slots, slots - 1);
        test_free_all();
    }
}

/* One plan's workspace is invalid for another that is cut differently. */
static void expect_other_plan(const struct unit *unit, struct random *random) {
    struct unit other;
    draw(&other, random);
    size_t bytes;
    assert_int_equal(rapt_workspace_bytes(unit->body, 1, &bytes), RAPT_OK);
    void *memory = test_alloc(bytes);
    assert_int_equal(rapt_workspace_prepare(unit->body, memory, bytes), RAPT_OK);
    const struct rapt_totals *a = &unit->body->totals, *b = &other.body->totals;
    const bool is_alike = memcmp(a, b, sizeof *a) == 0 && unit->body->slot.slot_bytes == other.body->slot.slot_bytes;
    assert_int_equal(rapt_workspace_of(other.body, memory) != NULL, is_alike);
}

static void test_workspaces(void **state) {
    struct random random = {43};
    for (int64_t turn = scaled_work(400); turn > 0; turn--) {
        struct unit unit;
        draw(&unit, &random);
        check_workspace(&unit, &random);
        expect_other_plan(&unit, &random);
        test_free_all();
    }
    (void)state;
}

/* ---- packed keys and values */

/* Each window has room and is line-aligned: loads that cross lines take twice as long. */
static void expect_windows(const struct rapt_tile_kind *kind) {
    for (int side = 0; side < RAPT_SIDES; side++)
        for (int dim = 1; dim <= 1024; dim++) {
            const int64_t bytes = rapt_staged_keys(kind, side, dim) * dim * (int64_t)sizeof(float);
            assert_true(bytes >= (int64_t)kind->packed_bytes(side, dim));
            assert_int_equal(bytes % RAPT_VECTOR_BYTES, 0);
        }
}

static void test_packed_windows(void **state) {
    const struct rapt_table *tables[RAPT_ISA_COUNT];
    (void)state;
    for (int32_t order = RAPT_NUMERICS_ORDER_2; order <= RAPT_NUMERICS_ORDER_3; order++)
        for (int table = tables_of(order, tables) - 1; table >= 0; table--)
            for (int kind = 0; kind < RAPT_KINDS; kind++)
                if (tables[table]->kinds[kind].packed_bytes)
                    expect_windows(&tables[table]->kinds[kind]);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_states), cmocka_unit_test(test_clear_some),
                                       cmocka_unit_test(test_requested_heads), cmocka_unit_test(test_tasks),
                                       cmocka_unit_test(test_workspaces), cmocka_unit_test(test_packed_windows),
                                       cmocka_unit_test(test_slots_that_fit)};
    return cmocka_run_group_tests_name("unit_task", tests, NULL, NULL);
}
