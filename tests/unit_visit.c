/* SPDX-License-Identifier: MIT
 * Which keys are visited, against loops over every pair of a row and a key. */
#include <math.h>

#include "cmocka_all.h"
#include "reference.h"
#include "unit.h"

/* Rows [first, first + rows) of a task, which stand for a tile. */
struct tile {
    const struct unit *unit;
    const struct rapt_task *task;
    int first, rows;
};

static int64_t query_of(const struct tile *tile, int row) {
    return (tile->task->first_row + tile->first + row) / tile->task->attention->group;
}

static int64_t head_of(const struct tile *tile, int row) {
    const int64_t group = tile->task->attention->group;
    return tile->task->kv_head * group + (tile->task->first_row + tile->first + row) % group;
}

/* Whether a row of the tile sees a position, within what its task may see. */
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

/* What a loop over all pairs finds. */
struct found {
    struct rapt_span keys; /* positions that some row sees; empty: none */
    bool some_true, some_false, some_bias, some_change, all_seen;
};

static struct found look(const struct tile *tile, int64_t base) {
    struct found found = {.keys = {INT64_MAX, INT64_MIN}, .all_seen = true};
    for (int row = 0; row < tile->rows; row++)
        for (int64_t at = base; at < base + RAPT_BLOCK_KEYS; at++)
            if (sees(tile, row, at)) {
                found.keys.begin = at < found.keys.begin ? at : found.keys.begin;
                found.keys.end = at >= found.keys.end ? at + 1 : found.keys.end;
            }
    for (int row = 0; row < tile->rows; row++)
        for (int64_t at = found.keys.begin; at < found.keys.end; at++) {
            found.all_seen &= sees(tile, row, at);
            if (tile->unit->desc.mask.data)
                *(is_true(tile, row, at) ? &found.some_true : &found.some_false) = true;
            if (tile->unit->desc.bias.data) {
                found.some_bias |= bias_at(tile, row, at) != -INFINITY;
                found.some_change |= bias_at(tile, row, at) != 0;
            }
        }
    return found;
}

static bool excludes_by_mask(const struct unit *unit) {
    return unit->desc.mask.data && !(unit->desc.features & RAPT_MASK_FILL);
}

static enum rapt_seen expected_verdict(const struct unit *unit, const struct found *found) {
    if (found->keys.begin >= found->keys.end || (excludes_by_mask(unit) && !found->some_true) ||
        (unit->desc.bias.data && !found->some_bias))
        return RAPT_SEES_NOTHING;
    return !found->all_seen || (excludes_by_mask(unit) && found->some_false) || found->some_change ? RAPT_SEES_SOME
                                                                                                   : RAPT_SEES_ALL;
}

static void expect_pairs(const struct tile *tile, const struct rapt_tile_mask *mask, int64_t base,
                         struct rapt_span keys) {
    const struct unit *unit = tile->unit;
    for (int row = 0; row < tile->rows; row++)
        for (int64_t at = keys.begin; at < keys.end; at++) {
            const int key = (int)(at - base);
            bool attended = sees(tile, row, at);
            if (excludes_by_mask(unit))
                attended &= is_true(tile, row, at);
            if (unit->desc.bias.data)
                attended &= bias_at(tile, row, at) != -INFINITY;
            assert_int_equal(rapt_is_attended(mask, row, key), attended);
            if (mask->parts & RAPT_PART_MASK)
                assert_ptr_equal(mask->mask[row] + key, element(tile, &unit->desc.mask, row, at, 1));
            if (mask->parts & RAPT_PART_KEEP)
                assert_ptr_equal(mask->keep[row] + key, element(tile, &unit->desc.keep_mask, row, at, 1));
            if (mask->parts & RAPT_PART_BIAS)
                assert_int_equal(bits_of(mask->bias[row][key]), bits_of(bias_at(tile, row, at)));
            if ((mask->parts & RAPT_PART_BIAS) && unit->desc.bias.dtype == RAPT_F32)
                assert_ptr_equal(mask->bias[row] + key, element(tile, &unit->desc.bias, row, at, sizeof(float)));
        }
}

static void expect_parts(const struct tile *tile, const struct rapt_tile_mask *mask, const struct found *found) {
    const rapt_attention_desc *desc = &tile->unit->desc;
    assert_int_equal(!(mask->parts & RAPT_PART_SPANS), found->all_seen);
    assert_int_equal(!(mask->parts & RAPT_PART_MASK), !(desc->mask.data && found->some_false));
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
    assert_int_equal(seen, expected_verdict(tile->unit, &found));
    if (found.keys.begin >= found.keys.end)
        assert_true(keys.begin >= keys.end);
    if (seen == RAPT_SEES_NOTHING)
        return seen;
    assert_int_equal(keys.begin, found.keys.begin);
    assert_int_equal(keys.end, found.keys.end);
    expect_parts(tile, mask, &found);
    expect_rows(tile, mask, base);
    expect_pairs(tile, mask, base, keys);
    return seen;
}

/* The blocks that rapt_next_block names are those that hold a position, in order. */
static void check_next_block(struct rapt_span visible) {
    for (int64_t base = 0; base < 12 * RAPT_BLOCK_KEYS; base += RAPT_BLOCK_KEYS) {
        int64_t expected = -1;
        for (int64_t block = 12 * RAPT_BLOCK_KEYS; block >= base; block -= RAPT_BLOCK_KEYS)
            if (rapt_span_count(rapt_block_of(visible, block)) > 0)
                expected = block;
        assert_int_equal(rapt_next_block(visible, base), expected);
    }
}

/* ---- random calls */

static void fill_masks(const struct unit *unit, struct random *random) {
    const rapt_attention_desc *desc = &unit->desc;
    const int excluded = (int)random_below(random, 3) * 50;
    const bool zeros = random_chance(random, 50);
    for (int64_t row = 0; row < desc->batch * desc->query_heads * desc->query_length; row++) {
        const int64_t query = row % desc->query_length, head = row / desc->query_length % desc->query_heads;
        const int64_t b = row / desc->query_length / desc->query_heads;
        for (int64_t key = 0; key < desc->kv_length; key++) {
            const bool far = key % 700 > 200 && random_chance(random, 98); /* blocks of one kind as well */
            if (desc->mask.data)
                ((uint8_t *)(uintptr_t)unit_row(&desc->mask, b, head, query))[key] =
                    far ? excluded == 0 : !random_chance(random, excluded);
            const float bias =
                (far && excluded) || random_chance(random, excluded) ? -INFINITY : zeros ? 0.0f : random_normal(random);
            if (desc->bias.data)
                rapt_reference_store(desc->bias.dtype, &bias, 1,
                                     (char *)(uintptr_t)unit_row(&desc->bias, b, head, query) +
                                         rapt_row_bytes(desc->bias.dtype, key));
        }
    }
}

static void add_masks(struct unit *unit, struct random *random) {
    rapt_attention_desc *d = &unit->desc;
    rapt_tensor *const tensors[] = {&d->mask, &d->keep_mask, &d->bias};
    const int32_t bias_dtype = random_chance(random, 50) ? RAPT_F16 : RAPT_F32;
    for (int i = 0; i < 3; i++)
        if (random_chance(random, 35))
            *tensors[i] = unit_tensor(random, i < 2 ? RAPT_BOOL8 : bias_dtype, d->batch, d->query_heads,
                                      d->query_length, d->kv_length, true);
    if (d->mask.data && random_chance(random, 30))
        d->features |= RAPT_MASK_FILL;
    d->mask_fill = -3.5f;
    d->keep_scale = 1.25f;
    d->softcap = random_chance(random, 30) ? 20.0f : 0.0f;
    if (d->bias.data && random_chance(random, 50))
        d->bias_head_factor = test_drawn(random, d->query_heads, random_normal);
    if (random_chance(random, 30))
        d->alibi_slopes = test_drawn(random, d->query_heads, random_normal);
    fill_masks(unit, random);
}

/* A few tiles of a task. */
static void check_task(const struct unit *unit, const struct rapt_run *run, int64_t index, struct random *random,
                       int64_t *verdicts) {
    struct rapt_task task;
    rapt_task_find(&task, run, index);
    task.slopes = test_floats(task.rows);
    task.bias = test_floats(RAPT_MAX_TILE_ROWS * RAPT_BLOCK_KEYS);
    for (int row = 0; unit->desc.alibi_slopes && row < task.rows; row++)
        task.slopes[row] = -(unit->desc.alibi_slopes[rapt_task_head(&task, row)] * RAPT_LOG2E);
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
        add_masks(&unit, &random);
        unit_cut(&unit);
        struct rapt_work *table = test_alloc(rapt_work_table_bytes(unit.attention) + 1);
        assert_true(rapt_work_write(unit.attention, table));
        const struct rapt_run run = {.attention = unit.attention, .works = table};
        if (unit.attention->totals.all_tasks > 0)
            check_task(&unit, &run, random_below(&random, unit.attention->totals.all_tasks), &random, verdicts);
        test_free_all();
    }
    assert_true(scaled_work(100) < 100 || (verdicts[0] > 100 && verdicts[1] > 100 && verdicts[2] > 100));
    (void)state;
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_blocks)};
    return cmocka_run_group_tests_name("unit_visit", tests, NULL, NULL);
}
