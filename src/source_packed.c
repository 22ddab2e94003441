/* SPDX-License-Identifier: MIT
 * Keys and values as the kinds of order 2 lay them out, half a block at a time. */
#include "assume.h"
#include "source.h"

void rapt_source_find(const struct rapt_task *task, int side, struct rapt_span positions, const char **rows) {
    while (positions.begin < positions.end) {
        const struct rapt_rows run = rapt_source_stored(task, side, positions);
        for (int64_t i = 0; i < run.count; i++)
            *rows++ = run.base + i * run.stride_bytes;
        positions.begin += run.count;
    }
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
