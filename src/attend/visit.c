/* SPDX-License-Identifier: MIT */
#include "attend/visit.h"

#include "attend/attended.h"
#include "attend/select.h"
#include "attend/widen.h"

static int32_t within_block(int64_t position, int64_t base) {
    int64_t key = position - base;
    return (int32_t)(key < 0 ? 0 : key > RAPT_BLOCK_KEYS ? RAPT_BLOCK_KEYS : key);
}

static void set_spans(const struct rapt_task *task, int first, int count, int64_t base, struct rapt_span keys,
                      struct rapt_tile_mask *mask) {
    const struct rapt_plan_body *plan = task->plan;
    const struct rapt_sequence *sequence = &task->work.sequence;
    struct rapt_span low = rapt_visible(&plan->desc, sequence, rapt_position(task, first));
    struct rapt_span high = rapt_visible(&plan->desc, sequence, rapt_position(task, first + count - 1));
    if (high.begin <= keys.begin && low.end >= keys.end)
        return;
    mask->parts |= RAPT_PART_SPANS;
    int64_t position = rapt_position(task, first), head = (task->first_row + first) % plan->group;
    for (int row = 0; row < count; row++) {
        struct rapt_span seen = rapt_visible(&plan->desc, sequence, position);
        mask->spans.first_key[row] = within_block(seen.begin, base);
        mask->spans.end_key[row] = within_block(seen.end, base);
        if (++head == plan->group)
            head = 0, position++;
    }
}

/* Rows of bytes per key, moved so that they point at key 0 of the block, which
 * may lie before the first stored key and is not read then. */
static void set_byte_rows(const struct rapt_task *task, const rapt_tensor *tensor, int first, int count,
                          int64_t stored, const uint8_t **bytes) {
    char *rows[RAPT_MAX_TILE_ROWS];
    rapt_task_rows(task, tensor, first, count, rows);
    for (int row = 0; row < count; row++)
        bytes[row] = (const uint8_t *)((uintptr_t)rows[row] + (uintptr_t)stored);
}

/* In place, or widened for these keys. */
static void set_bias(const struct rapt_task *task, int first, int count, int64_t base, struct rapt_span keys,
                     struct rapt_tile_mask *mask) {
    const struct rapt_plan_body *plan = task->plan;
    const int64_t stored = base - task->work.sequence.key_position;
    char *rows[RAPT_MAX_TILE_ROWS];
    rapt_task_rows(task, &plan->desc.bias, first, count, rows);
    for (int row = 0; row < count; row++) {
        const float *factors = plan->desc.bias_head_factor;
        rows[row] = (char *)((uintptr_t)rows[row] + (uintptr_t)(stored * rapt_format_row_bytes(plan->bias_format, 1)));
        mask->bias_factor[row] = factors ? factors[rapt_task_head(task, first + row)] * RAPT_LOG2E : RAPT_LOG2E;
    }
    const struct rapt_widening widening = {.table = task->table,
                                           .format = plan->bias_format,
                                           .rows = count,
                                           .begin = (int)(keys.begin - base),
                                           .end = (int)(keys.end - base),
                                           .room = task->bias,
                                           .room_stride = RAPT_BLOCK_KEYS};
    rapt_widen(&widening, rows, mask->bias);
}

static void set_alibi(const struct rapt_task *task, int first, int count, int64_t base, struct rapt_tile_mask *mask) {
    for (int row = 0; row < count; row++) {
        mask->alibi_factor[row] = task->slopes[first + row];
        mask->distance[row] = rapt_position(task, first + row) - base;
    }
}

/* A row of bytes per query; rows that see the same share one. */
static void set_select(const struct rapt_task *task, int first, int rows, int64_t base, struct rapt_span keys,
                       struct rapt_tile_mask *mask) {
    const int64_t group = task->plan->group;
    int64_t before = 0;
    uint8_t *bytes = (uint8_t *)task->rows_of_keys[RAPT_SELECT_ROWS];
    if (!rapt_selects_among(task, keys)) {
        mask->parts &= ~(unsigned)RAPT_PART_SELECT;
        return;
    }
    for (int row = 0; row < rows; row++) {
        const int64_t query = (task->first_row + first + row) / group;
        if (row == 0 || !rapt_selects_alike(task, before, query, keys)) {
            rapt_select(task, query, base, keys, bytes);
            mask->select[row] = bytes;
            bytes += RAPT_BLOCK_KEYS;
        } else {
            mask->select[row] = mask->select[row - 1];
        }
        before = query;
    }
}

void rapt_visit_mask(const struct rapt_task *task, int first, int rows, int64_t base, struct rapt_span keys,
                     struct rapt_tile_mask *mask) {
    const struct rapt_plan_body *plan = task->plan;
    const int64_t stored = base - task->work.sequence.key_position;
    RAPT_ASSUME(rows >= 1 && rows <= RAPT_MAX_TILE_ROWS && first >= 0 && first + rows <= task->rows);
    RAPT_ASSUME(keys.begin >= base && keys.end <= base + RAPT_BLOCK_KEYS);
    mask->parts = plan->mask_parts;
    mask->selected = 0;
    mask->softcap_log2e = plan->softcap_log2e;
    mask->fill_log2e = plan->desc.mask_fill * RAPT_LOG2E;
    mask->keep_scale = plan->desc.keep_scale;
    set_spans(task, first, rows, base, keys, mask);
    if (mask->parts & RAPT_PART_BIAS)
        set_bias(task, first, rows, base, keys, mask);
    if (mask->parts & RAPT_PART_MASK)
        set_byte_rows(task, &plan->desc.mask, first, rows, stored, mask->mask);
    if (mask->parts & RAPT_PART_KEEP)
        set_byte_rows(task, &plan->desc.keep_mask, first, rows, stored, mask->keep);
    if (mask->parts & RAPT_PART_ALIBI)
        set_alibi(task, first, rows, base, mask);
    if (mask->parts & RAPT_PART_SELECT)
        set_select(task, first, rows, base, keys, mask);
}

/* Drops a bool mask without a false entry; a bias of zeros, which could only change the sign of a zero that no result
 * shows; and what excludes none of the keys that are left. */
static void drop_parts(unsigned found, struct rapt_tile_mask *mask) {
    if (!(found & RAPT_SOME_CHANGE))
        mask->parts &= ~(unsigned)RAPT_PART_BIAS;
    if (!(found & RAPT_SOME_FALSE) || ((found & RAPT_ALIKE) && rapt_mask_excludes(mask->parts)))
        mask->parts &= ~(unsigned)RAPT_PART_MASK;
    if (found & RAPT_ALIKE)
        mask->parts &= ~(unsigned)RAPT_PART_SELECT;
}

/* Leaves out the keys that masks, biases and selections exclude for every row. */
static enum rapt_seen look(const struct rapt_task *task, int rows, int64_t base, struct rapt_span *keys,
                           struct rapt_tile_mask *mask) {
    uint32_t attended[RAPT_BLOCK_KEYS / 32];
    unsigned found = task->table->survey(rows, (int)(keys->begin - base), (int)(keys->end - base), mask, attended);
    const struct rapt_attended_range left = rapt_count_attended(attended);
    if (left.count == 0)
        return RAPT_SEES_NOTHING;
    *keys = (struct rapt_span){base + left.begin, base + left.end};
    const bool numbers = !task->kind->keeps_places;
    if (!numbers && left.count < left.end - left.begin) /* the keys between remain, and their masks with them */
        found &= ~(unsigned)RAPT_ALIKE;
    drop_parts(found, mask);
    /* Where rows differ, a few keys more cost less than copies of their masks. */
    const int most = found & RAPT_ALIKE ? left.end - left.begin - 1 : (left.end - left.begin) * 3 / 4;
    if (numbers && left.count <= most)
        rapt_number_attended(task, rows, attended, mask);
    const bool bias_excludes = (mask->parts & RAPT_PART_BIAS) && !(found & RAPT_ALIKE);
    return rapt_mask_excludes(mask->parts) || bias_excludes || (mask->parts & (RAPT_PART_SPANS | RAPT_PART_SELECT))
               ? RAPT_SEES_SOME
               : RAPT_SEES_ALL;
}

enum rapt_seen rapt_visit(const struct rapt_task *task, int first, int rows, struct rapt_span visible, int64_t base,
                          struct rapt_span *keys, struct rapt_tile_mask *mask) {
    *keys = rapt_block_of(visible, base);
    if (keys->begin >= keys->end)
        return RAPT_SEES_NOTHING;
    rapt_visit_mask(task, first, rows, base, *keys, mask);
    if (mask->parts & (RAPT_PART_MASK | RAPT_PART_BIAS | RAPT_PART_SELECT))
        return look(task, rows, base, keys, mask);
    return mask->parts & RAPT_PART_SPANS ? RAPT_SEES_SOME : RAPT_SEES_ALL;
}

int rapt_visit_ahead(const struct rapt_task *task, int first, int rows, struct rapt_span visible, int64_t base,
                     uint8_t place[RAPT_BLOCK_KEYS]) {
    const struct rapt_span keys = rapt_block_of(visible, base);
    struct rapt_tile_mask mask;
    uint32_t attended[RAPT_BLOCK_KEYS / 32];
    if (keys.begin >= keys.end)
        return 0;
    rapt_visit_mask(task, first, rows, base, keys, &mask);
    task->table->survey(rows, (int)(keys.begin - base), (int)(keys.end - base), &mask, attended);
    return rapt_places_of(attended, place);
}
