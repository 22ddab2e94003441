/* SPDX-License-Identifier: MIT
 * Keys and values as the kinds of orders 2 and 3 lay them out, half a block at a time. */
#include "assume.h"
#include "attend/source.h"
#include "plan/pages.h"

/* Four at a time, since each sum waits for the one before. */
static void find_at_stride(const char **rows, const char *row, int64_t stride_bytes, int64_t count) {
    for (; count >= 4; count -= 4, rows += 4, row += 4 * stride_bytes) {
        rows[0] = row, rows[1] = row + stride_bytes;
        rows[2] = row + 2 * stride_bytes, rows[3] = row + 3 * stride_bytes;
    }
    for (int64_t i = 0; i < count; i++)
        rows[i] = row + i * stride_bytes;
}

static void find_in_pages(const struct rapt_task *task, int side, int64_t token, int64_t count, const char **rows) {
    const rapt_page_table *table = rapt_pages_of(&task->attention->desc, side);
    const rapt_tensor *tensor = rapt_tensor_of(task->attention, side);
    const int64_t batch = task->work.batch, first = task->work.sequence.kv_first[side];
    const int64_t stride = tensor->token_stride_bytes;
    int64_t page = token / table->page_tokens, within = token % table->page_tokens;
    for (; count > 0; page++, within = 0) {
        const char *row = rapt_row(tensor, 0, task->kv_head, within) +
                          rapt_page_at(table, batch, first, page) * tensor->page_stride_bytes;
        const int64_t left = table->page_tokens - within, n = left < count ? left : count;
        find_at_stride(rows, row, stride, n);
        rows += n;
        count -= n;
    }
}

void rapt_source_find(const struct rapt_task *task, int side, struct rapt_span positions, const char **rows) {
    if (rapt_is_paged(rapt_pages_of(&task->attention->desc, side))) {
        const int64_t token = positions.begin - task->work.sequence.key_position;
        find_in_pages(task, side, token, positions.end - positions.begin, rows);
        return;
    }
    const struct rapt_rows run = rapt_source_stored(task, side, positions);
    find_at_stride(rows, run.base, run.stride_bytes, run.count);
}

struct rapt_packed rapt_source_packed(struct rapt_source *source, int i, int64_t base) {
    const struct rapt_task *task = source->task;
    const struct rapt_tile_kind *kind = task->kind;
    struct rapt_source_side *side = &source->side[i];
    struct rapt_window *window = &side->window[base / RAPT_HALF_KEYS % RAPT_WINDOWS];
    const struct rapt_span keys = rapt_intersect(source->visible, (struct rapt_span){base, base + RAPT_HALF_KEYS});
    RAPT_ASSUME(base % RAPT_HALF_KEYS == 0 && keys.begin < keys.end);
    if (window->keys.begin != keys.begin || window->keys.end != keys.end) {
        const char *rows[RAPT_HALF_KEYS] = {NULL};
        rapt_source_find(task, i, keys, rows + (keys.begin - base));
        window->found = kind->pack_half[i](window->staging.rows, rows, (int)side->dim, task->attention->format[i]);
        window->keys = keys;
    }
    return (struct rapt_packed){window->staging.rows, window->found};
}
