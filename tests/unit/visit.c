/* SPDX-License-Identifier: MIT
 * Which keys are visited, against loops over every row and key. */
#include <math.h>

#include "attend/select.h"
#include "attend/visit.h"
#include "support/cmocka_all.h"
#include "support/unit.h"

/* Rows [first, first + rows) of a task, as a tile. */
struct tile {
    const struct unit *unit;
    const struct rapt_task *task;
    int first, rows;
};

static int64_t query_of(const struct tile *tile, int row) {
    return (tile->task->first_row + tile->first + row) / tile->task->plan->group;
}

static int64_t head_of(const struct tile *tile, int row) {
    const int64_t group = tile->task->plan->group;
    return tile->task->kv_head * group + (tile->task->first_row + tile->first + row) % group;
}

/* Whether a row of the tile sees a position that its task may see. */
static bool sees(const struct tile *tile, int row, int64_t position) {
    const struct rapt_sequence *s = &tile->task->work.sequence;
    return position >= tile->task->visible.begin && position < tile->task->visible.end &&
           unit_sees(tile->unit, s, query_of(tile, row), position - s->key_position);
}

/* An element of a mask or bias at a position. */
static const char *element(const struct tile *tile, const rapt_tensor *tensor, int row, int64_t position,
                           int64_t bytes) {
    const int64_t key = position - tile->task->work.sequence.key_position;
    return unit_row(tensor, tile->task->work.batch, head_of(tile, row), query_of(tile, row)) + key * bytes;
}

static bool is_true(const struct tile *tile, int row, int64_t position) {
    return *element(tile, &tile->unit->desc.mask, row, position, 1) != 0;
}

static float bias_at(const struct tile *tile, int row, int64_t position) {
    const rapt_tensor *bias = &tile->unit->desc.bias;
    return unit_number(bias->dtype, element(tile, bias, row, position, rapt_row_bytes(bias->dtype, 1)), 0);
}

static bool excludes_by_mask(const struct unit *unit) {
    return unit->desc.mask.data && !(unit->desc.features & RAPT_MASK_FILL);
}

/* By the query's tree and its block's list. */
static bool is_selected(const struct tile *tile, int row, int64_t position) {
    const rapt_attention_desc *desc = &tile->unit->desc;
    const rapt_block_list *blocks = &desc->key_blocks;
    const struct rapt_work *work = &tile->task->work;
    const int64_t key = position - work->sequence.key_position, i = query_of(tile, row);
    const int64_t bit = key - (work->sequence.kv_length - desc->tree_tokens);
    if (desc->tree_tokens && bit >= 0 &&
        !(((const uint64_t *)desc->tree_masks.data)[work->batch * desc->query_length + i] >> bit & 1))
        return false;
    if (!blocks->query_tokens)
        return true;
    const int64_t *offsets = blocks->offsets.data, *entries = blocks->entries.data;
    const int64_t list = work->batch * blocks->batch_stride + tile->task->kv_head * blocks->head_stride +
                         i / blocks->query_tokens;
    for (int64_t n = offsets[list]; n < offsets[list + 1]; n++)
        if (entries[n] == key / blocks->key_tokens)
            return true;
    return false;
}

/* Whether masks, biases and selections leave a row a position. */
static bool is_left(const struct tile *tile, int row, int64_t position) {
    return !(excludes_by_mask(tile->unit) && !is_true(tile, row, position)) &&
           !(tile->unit->desc.bias.data && bias_at(tile, row, position) == -INFINITY) &&
           is_selected(tile, row, position);
}

/* Results of a loop over all pairs. */
struct found {
    struct rapt_span keys; /* positions that some row sees; may be empty */
    bool some_false, some_change, all_seen, alike; /* alike: masks leave every row the same */
    int left, first, end; /* positions masks leave to some row: count; first, end in the block */
    bool is_left[RAPT_BLOCK_KEYS];
};

static struct found look(const struct tile *tile, int64_t base) {
    struct found found = {.keys = {INT64_MAX, INT64_MIN}, .all_seen = true, .alike = true, .first = RAPT_BLOCK_KEYS};
    for (int row = 0; row < tile->rows; row++)
        for (int64_t at = base; at < base + RAPT_BLOCK_KEYS; at++)
            if (sees(tile, row, at)) {
                found.keys.begin = at < found.keys.begin ? at : found.keys.begin;
                found.keys.end = at >= found.keys.end ? at + 1 : found.keys.end;
            }
    for (int64_t at = found.keys.begin; at < found.keys.end; at++) {
        const int key = (int)(at - base);
        int rows = 0;
        for (int row = 0; row < tile->rows; row++) {
            found.all_seen &= sees(tile, row, at);
            rows += is_left(tile, row, at);
            found.some_false |= tile->unit->desc.mask.data && !is_true(tile, row, at);
            found.some_change |= tile->unit->desc.bias.data && bias_at(tile, row, at) != 0;
        }
        found.alike &= rows == 0 || rows == tile->rows;
        found.is_left[key] = rows > 0;
        found.left += rows > 0;
        found.first = rows > 0 && key < found.first ? key : found.first;
        found.end = rows > 0 ? key + 1 : found.end;
    }
    return found;
}

/* Places of the keys that slots see. */
static int place_of(const struct rapt_tile_mask *mask, int number) {
    return mask->selected ? mask->place[number] : number;
}

static void expect_pairs(const struct tile *tile, const struct rapt_tile_mask *mask, int64_t base,
                         struct rapt_span keys, enum rapt_seen seen) {
    const rapt_attention_desc *desc = &tile->unit->desc;
    bool all = true;
    for (int row = 0; row < tile->rows; row++)
        for (int k = rapt_first_number(mask, base, keys); k < rapt_end_number(mask, base, keys); k++) {
            const int64_t at = base + place_of(mask, k);
            const bool attended = sees(tile, row, at) && is_left(tile, row, at);
            all &= attended;
            assert_int_equal(rapt_is_attended(mask, row, k), attended);
            if (mask->parts & RAPT_PART_MASK)
                assert_int_equal(mask->mask[row][k], *(const uint8_t *)element(tile, &desc->mask, row, at, 1));
            if (mask->parts & RAPT_PART_KEEP)
                assert_int_equal(mask->keep[row][k], *(const uint8_t *)element(tile, &desc->keep_mask, row, at, 1));
            if (mask->parts & RAPT_PART_BIAS)
                assert_int_equal(bits_of(mask->bias[row][k]), bits_of(bias_at(tile, row, at)));
        }
    assert_true(seen == RAPT_SEES_SOME || all);
}

/* Every key that some row attends to is kept; if only few are, no others. */
static void expect_keys(const struct rapt_tile_mask *mask, int64_t base, struct rapt_span keys,
                        const struct found *found) {
    const int64_t count = found->keys.end - found->keys.begin, begin = keys.begin - base, end = keys.end - base;
    const bool dense = 4 * found->left > 3 * count;
    bool is_in[RAPT_BLOCK_KEYS] = {false};
    for (int k = rapt_first_number(mask, base, keys); k < rapt_end_number(mask, base, keys); k++)
        is_in[place_of(mask, k)] = true;
    for (int key = 0; key < RAPT_BLOCK_KEYS; key++)
        assert_true(is_in[key] || !found->is_left[key]);
    assert_int_equal(begin, dense ? found->keys.begin - base : found->first);
    assert_int_equal(end, dense ? found->keys.end - base : found->end);
    const bool few = !dense && (found->alike || 4 * found->left <= 3 * (end - begin));
    assert_int_equal(mask->selected, few && found->left < end - begin ? found->left : 0);
}

static void expect_parts(const struct tile *tile, const struct rapt_tile_mask *mask, const struct found *found) {
    const rapt_attention_desc *desc = &tile->unit->desc;
    if (found->all_seen)
        assert_false(mask->parts & RAPT_PART_SPANS);
    if (!desc->mask.data || !found->some_false)
        assert_false(mask->parts & RAPT_PART_MASK);
    else if (desc->features & RAPT_MASK_FILL)
        assert_true(mask->parts & RAPT_PART_MASK);
    assert_int_equal(!(mask->parts & RAPT_PART_BIAS), !found->some_change);
    assert_int_equal(!(mask->parts & RAPT_PART_KEEP), !desc->keep_mask.data);
    assert_int_equal(!(mask->parts & RAPT_PART_ALIBI), !desc->alibi_slopes);
    assert_int_equal(!(mask->parts & RAPT_PART_SOFTCAP), desc->softcap == 0);
    assert_int_equal(!(mask->parts & RAPT_PART_FILL), !(desc->features & RAPT_MASK_FILL));
    if (desc->features & RAPT_MASK_FILL)
        assert_int_equal(bits_of(mask->fill_log2e), bits_of(desc->mask_fill * RAPT_LOG2E));
    if (desc->keep_mask.data)
        assert_int_equal(bits_of(mask->keep_scale), bits_of(desc->keep_scale));
    if (desc->softcap != 0)
        assert_int_equal(bits_of(mask->softcap_log2e), bits_of(desc->softcap * RAPT_LOG2E));
}

static void expect_rows(const struct tile *tile, const struct rapt_tile_mask *mask, int64_t base) {
    const rapt_attention_desc *desc = &tile->unit->desc;
    for (int row = 0; row < tile->rows; row++) {
        const int64_t head = head_of(tile, row);
        if (mask->parts & RAPT_PART_BIAS)
            assert_int_equal(bits_of(mask->bias_factor[row]),
                             bits_of((desc->bias_head_factor ? desc->bias_head_factor[head] : 1.0f) * RAPT_LOG2E));
        if (mask->parts & RAPT_PART_ALIBI) {
            assert_int_equal(bits_of(mask->alibi_factor[row]), bits_of(-(desc->alibi_slopes[head] * RAPT_LOG2E)));
            assert_int_equal(mask->distance[row],
                             tile->task->work.sequence.query_position + query_of(tile, row) - base);
        }
        if (mask->parts & RAPT_PART_SPANS)
            assert_in_range(mask->spans.end_key[row], mask->spans.first_key[row], RAPT_BLOCK_KEYS);
        if ((mask->parts & RAPT_PART_SPANS) && row > 0)
            assert_true(mask->spans.first_key[row] >= mask->spans.first_key[row - 1] &&
                        mask->spans.end_key[row] >= mask->spans.end_key[row - 1]);
    }
}

static enum rapt_seen check_block(const struct tile *tile, struct rapt_span visible, int64_t base) {
    const struct found found = look(tile, base);
    struct rapt_tile_mask *mask = test_alloc(sizeof *mask);
    struct rapt_span keys;
    const enum rapt_seen seen = rapt_visit(tile->task, tile->first, tile->rows, visible, base, &keys, mask);
    assert_int_equal(seen == RAPT_SEES_NOTHING, found.left == 0);
    if (found.keys.begin >= found.keys.end)
        assert_true(keys.begin >= keys.end);
    if (seen == RAPT_SEES_NOTHING)
        return seen;
    expect_keys(mask, base, keys, &found);
    expect_parts(tile, mask, &found);
    expect_rows(tile, mask, base);
    expect_pairs(tile, mask, base, keys, seen);
    return seen;
}

/* rapt_next_block names the blocks that hold a position, in order. */
static void check_next_block(struct rapt_span visible) {
    for (int64_t base = 0; base < 12 * RAPT_BLOCK_KEYS; base += RAPT_BLOCK_KEYS) {
        int64_t expected = -1;
        for (int64_t block = 12 * RAPT_BLOCK_KEYS; block >= base; block -= RAPT_BLOCK_KEYS)
            if (rapt_span_count(rapt_block_of(visible, block)) > 0)
                expected = block;
        assert_int_equal(rapt_next_block(visible, base), expected);
    }
}

/* Blocks listed for the task's queries are visited, others are skipped. */
static void check_next_selected(const struct unit *unit, const struct rapt_task *task) {
    const struct tile all = {unit, task, 0, task->rows};
    int64_t expected = -1;
    if (unit->desc.tree_tokens)
        return;
    for (int64_t base = 2560; base >= 0; base -= RAPT_BLOCK_KEYS) {
        const struct rapt_span keys = rapt_block_of(task->visible, base);
        for (int64_t at = keys.begin; at < keys.end; at++)
            for (int row = 0; row < task->rows; row++)
                expected = is_selected(&all, row, at) ? base : expected;
        assert_int_equal(rapt_next_selected(task, task->visible, base), expected);
    }
}

/* ---- random calls */

/* A few tiles of a task. */
static void check_task(const struct unit *unit, const struct rapt_run *run, int64_t index, struct random *random,
                       int64_t *verdicts) {
    struct rapt_task task;
    rapt_task_find(&task, run, index, 1);
    task.slopes = test_floats(task.rows);
    task.bias = test_floats(RAPT_MAX_TILE_ROWS * RAPT_BLOCK_KEYS);
    for (int row = 0; unit->desc.alibi_slopes && row < task.rows; row++)
        task.slopes[row] = -(unit->desc.alibi_slopes[rapt_task_head(&task, row)] * RAPT_LOG2E);
    task.rows_of_keys[RAPT_SELECT_ROWS] = test_alloc(RAPT_MAX_TILE_ROWS * RAPT_BLOCK_KEYS);
    task.rows_of_keys[RAPT_MASK_ROWS] = test_alloc(RAPT_MAX_TILE_ROWS * RAPT_BLOCK_KEYS);
    task.rows_of_keys[RAPT_KEEP_ROWS] = test_alloc(RAPT_MAX_TILE_ROWS * RAPT_BLOCK_KEYS);
    task.rows_of_keys[RAPT_BIAS_ROWS] = test_alloc(RAPT_MAX_TILE_ROWS * RAPT_BLOCK_KEYS * sizeof(float));
    check_next_selected(unit, &task);
    for (int turn = 0; turn < 3; turn++) {
        struct tile tile = {unit, &task, (int)random_below(random, task.rows), 0};
        const int left = task.rows - tile.first;
        tile.rows = (int)random_between(random, 1, left < RAPT_MAX_TILE_ROWS ? left : RAPT_MAX_TILE_ROWS);
        struct rapt_span visible =
            rapt_visible_to(&unit->desc, &task.work.sequence, rapt_position(&task, tile.first),
                            rapt_position(&task, tile.first + tile.rows - 1));
        visible = rapt_intersect(visible, task.visible);
        check_next_block(visible);
        for (int64_t base = 0; base < 2600; base += RAPT_BLOCK_KEYS)
            verdicts[check_block(&tile, visible, base)]++;
    }
}

static void test_blocks(void **state) {
    struct random random = {31};
    int64_t verdicts[3] = {0};
    for (int64_t turn = scaled_work(500); turn > 0; turn--) {
        struct unit unit;
        unit_draw(&unit, &random, 40, 900);
        unit_add_masks(&unit, &random);
        unit_cut(&unit);
        struct rapt_work *table = test_alloc(rapt_work_table_bytes(unit.body) + 1);
        assert_true(rapt_work_write(unit.body, table));
        const struct rapt_run run = {.plan = unit.body, .works = table};
        if (unit.body->totals.all_tasks > 0)
            check_task(&unit, &run, random_below(&random, unit.body->totals.all_tasks), &random, verdicts);
        test_free_all();
    }
    assert_true(scaled_work(100) < 100 || (verdicts[0] > 100 && verdicts[1] > 100 && verdicts[2] > 100));
    (void)state;
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_blocks)};
    return cmocka_run_group_tests_name("unit_visit", tests, NULL, NULL);
}
