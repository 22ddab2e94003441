/* SPDX-License-Identifier: MIT */
#include "task.h"

#include "kv.h"

/* Heaviest first: with causal attention the last queries see the most keys. */
static void locate(struct rapt_task *task, int64_t index) {
    const struct rapt_attention *a = task->attention;
    task->range = index % a->ranges;
    index /= a->ranges;
    task->first_row = (a->row_blocks - 1 - index % a->row_blocks) * a->task_rows;
    index /= a->row_blocks;
    task->kv_head = index % a->desc.kv_heads;
    task->batch = index / a->desc.kv_heads;
}

static void set_slopes(struct rapt_task *task) {
    const struct rapt_attention *a = task->attention;
    const int64_t heads = a->desc.query_heads;
    int64_t power = 1;
    while (power * 2 <= heads)
        power *= 2;
    for (int row = 0; row < task->rows; row++) {
        int64_t head = task->kv_head * a->group + (task->first_row + row) % a->group;
        float slope;
        if (a->desc.alibi_slopes) {
            slope = a->desc.alibi_slopes[head];
        } else {
            float exponent = head < power ? -8.0f * (float)(head + 1) / (float)power
                                          : -4.0f * (float)(2 * (head - power) + 1) / (float)power;
            a->kernels->exponentials(&exponent, &slope, 1, 0);
        }
        task->slopes[row] = -(slope * RAPT_LOG2E);
    }
}

void rapt_task_find(struct rapt_task *task, const struct rapt_attention *a, int64_t index) {
    task->attention = a;
    locate(task, index);
    task->sequence = rapt_sequence_of(&a->desc, task->batch);
    int64_t left = task->sequence.query_length * a->group - task->first_row;
    task->rows = (int)(left < 0 ? 0 : left < a->task_rows ? left : a->task_rows);
    if (task->rows == 0)
        return;
    struct rapt_span first = rapt_visible(&a->desc, &task->sequence, rapt_position(task, 0));
    struct rapt_span last = rapt_visible(&a->desc, &task->sequence, rapt_position(task, task->rows - 1));
    task->visible = (struct rapt_span){first.begin, last.end};
    task->first_chunk = task->visible.begin / RAPT_CHUNK_KEYS;
    task->end_chunk = (task->visible.end + RAPT_CHUNK_KEYS - 1) / RAPT_CHUNK_KEYS;
}

void rapt_task_open(struct rapt_task *task, const struct rapt_attention *a, char *slot, int64_t index) {
    struct rapt_scratch_layout at = rapt_layout_scratch(a);
    rapt_task_find(task, a, index);
    task->panel = (float *)(void *)(slot + at.panel);
    task->scores = (float *)(void *)(slot + at.scores);
    task->alpha = (float *)(void *)(slot + at.alpha);
    task->slopes = (float *)(void *)(slot + at.slopes);
    task->final_m = (float *)(void *)(slot + at.final_m);
    task->inverse = (float *)(void *)(slot + at.inverse);
    task->running = (struct rapt_state){(float *)(void *)(slot + at.m), (float *)(void *)(slot + at.l),
                                        (float *)(void *)(slot + at.o)};
    task->chunk = (struct rapt_state){(float *)(void *)(slot + at.chunk_m), (float *)(void *)(slot + at.chunk_l),
                                      (float *)(void *)(slot + at.chunk_o)};
    for (int i = 0; i < 2; i++)
        task->staged[i] = slot + at.staged + i * RAPT_BLOCK_KEYS * (a->desc.head_dim + a->desc.value_dim) * 4;
    if (task->rows > 0 && (a->desc.alibi_slopes || (a->desc.features & RAPT_ALIBI_STANDARD)))
        set_slopes(task);
}

void rapt_state_clear(struct rapt_state state, int rows) {
    for (int row = 0; row < rows; row++) {
        state.m[row] = -__builtin_inff();
        state.l[row] = 0;
    }
}

struct rapt_state rapt_state_of_chunk(const struct rapt_attention *a, char *states, int64_t batch, int64_t kv_head,
                                      int64_t chunk) {
    struct rapt_workspace_layout layout;
    rapt_layout_workspace(a, &layout);
    int64_t number = (batch * a->desc.kv_heads + kv_head) * a->chunks + chunk;
    float *m = (float *)(void *)(states + (size_t)number * layout.state_bytes);
    int64_t rows = rapt_round_up(a->task_rows, 16);
    return (struct rapt_state){m, m + rows, m + 2 * rows};
}

void rapt_task_rows(const struct rapt_task *task, const rapt_tensor *tensor, int first, int count, float **rows) {
    int64_t group = task->attention->group, row = task->first_row + first;
    int64_t query = row / group, head = row % group;
    for (int i = 0; i < count; i++) {
        rows[i] = (float *)(uintptr_t)rapt_row(tensor, task->batch, task->kv_head * group + head, query);
        if (++head == group)
            head = 0, query++;
    }
}

static int32_t within_block(int64_t position, int64_t base) {
    int64_t key = position - base;
    return (int32_t)(key < 0 ? 0 : key > RAPT_BLOCK_KEYS ? RAPT_BLOCK_KEYS : key);
}

static void set_ranges(const struct rapt_task *task, int first, int count, int64_t base, struct rapt_span keys,
                       struct rapt_tile_mask *mask) {
    const rapt_attention_desc *desc = &task->attention->desc;
    struct rapt_span low = rapt_visible(desc, &task->sequence, rapt_position(task, first));
    struct rapt_span high = rapt_visible(desc, &task->sequence, rapt_position(task, first + count - 1));
    mask->has_range = high.begin > keys.begin || low.end < keys.end;
    int64_t position = rapt_position(task, first), head = (task->first_row + first) % task->attention->group;
    for (int row = 0; mask->has_range && row < count; row++) {
        struct rapt_span seen = rapt_visible(desc, &task->sequence, position);
        mask->ranges.first_key[row] = within_block(seen.begin, base);
        mask->ranges.end_key[row] = within_block(seen.end, base);
        if (++head == task->attention->group)
            head = 0, position++;
    }
}

/* Rows of bytes per key, moved so that they point at key 0 of the block, which
 * may lie before the first stored key and is not read then. */
static void set_byte_rows(const struct rapt_task *task, const rapt_tensor *tensor, int first, int count,
                          int64_t stored, const uint8_t **bytes) {
    float *rows[RAPT_MAX_TILE_ROWS];
    rapt_task_rows(task, tensor, first, count, rows);
    for (int row = 0; row < count; row++)
        bytes[row] = (const uint8_t *)((uintptr_t)rows[row] + (uintptr_t)stored);
}

static void set_bias(const struct rapt_task *task, int first, int count, int64_t stored, struct rapt_tile_mask *mask) {
    const struct rapt_attention *a = task->attention;
    float *rows[RAPT_MAX_TILE_ROWS];
    rapt_task_rows(task, &a->desc.bias, first, count, rows);
    for (int row = 0; row < count; row++) {
        int64_t head = task->kv_head * a->group + (task->first_row + first + row) % a->group;
        mask->bias[row] = (const float *)((uintptr_t)rows[row] + (uintptr_t)(stored * (int64_t)sizeof(float)));
        mask->bias_factor[row] = a->desc.bias_head_factor ? a->desc.bias_head_factor[head] * RAPT_LOG2E : RAPT_LOG2E;
    }
}

void rapt_task_mask(const struct rapt_task *task, int first, int count, int64_t base, struct rapt_span keys,
                    struct rapt_tile_mask *mask) {
    const struct rapt_attention *a = task->attention;
    const rapt_attention_desc *desc = &a->desc;
    int64_t stored = base - task->sequence.key_position;
    mask->softcap_log2e = a->softcap_log2e;
    mask->has_bias = desc->bias.data != NULL;
    mask->has_mask = desc->mask.data != NULL;
    mask->has_fill = desc->features & RAPT_MASK_FILL;
    mask->has_alibi = desc->alibi_slopes || (desc->features & RAPT_ALIBI_STANDARD);
    mask->fill_log2e = desc->mask_fill * RAPT_LOG2E;
    mask->keep_scale = desc->keep_scale;
    set_ranges(task, first, count, base, keys, mask);
    if (mask->has_bias)
        set_bias(task, first, count, stored, mask);
    if (mask->has_mask)
        set_byte_rows(task, &desc->mask, first, count, stored, mask->mask);
    if (desc->keep_mask.data)
        set_byte_rows(task, &desc->keep_mask, first, count, stored, mask->keep);
    for (int row = 0; mask->has_alibi && row < count; row++) {
        mask->alibi_factor[row] = task->slopes[first + row];
        mask->distance[row] = rapt_position(task, first + row) - base;
    }
}

void rapt_task_list(const struct rapt_task *task, const rapt_tensor *tensor, int first, int count, int64_t offset,
                    int bytes, struct rapt_fetch_list *list) {
    float *rows[RAPT_MAX_TILE_ROWS];
    rapt_task_rows(task, tensor, first, count, rows);
    for (int row = 0; row < count; row++)
        rapt_list_row(list, (const char *)rows[row] + offset, bytes);
}

void rapt_task_list_masks(const struct rapt_task *task, int first, int count, struct rapt_span keys,
                          struct rapt_fetch_list *list) {
    const rapt_attention_desc *desc = &task->attention->desc;
    const int64_t stored = keys.begin - task->sequence.key_position;
    const int length = (int)(keys.end - keys.begin);
    if (desc->mask.data)
        rapt_task_list(task, &desc->mask, first, count, stored, length, list);
    if (desc->bias.data)
        rapt_task_list(task, &desc->bias, first, count, stored * 4, length * 4, list);
}
