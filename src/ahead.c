/* SPDX-License-Identifier: MIT */
#include "ahead.h"

struct rapt_fetch_list *rapt_ahead_in_softmax(const struct rapt_loop *loop, struct rapt_span keys,
                                              struct rapt_fetch_list *list) {
    enum { BEHIND = 128, COUNT = 32 }; /* keys: what weigh has fetched before it begins, and what it has time for */
    if (!loop->task->attention->narrow || keys.end - keys.begin < BEHIND + COUNT)
        return NULL;
    struct rapt_span values = {keys.begin + BEHIND, keys.begin + BEHIND + COUNT};
    struct rapt_kv_run run = rapt_supply_locate(&loop->supply, values);
    rapt_list_clear(list);
    rapt_list_values(&run, run.count, (int)loop->task->attention->desc.value_dim * 4, list);
    return list;
}

/* Masks and biases of the tile that comes next. */
static void list_next_masks(const struct rapt_loop *loop, const struct rapt_tile *tile, int64_t base,
                            struct rapt_fetch_list *list) {
    const struct rapt_tile *next = tile + 1;
    if (next == loop->tiles + loop->tile_count)
        next = loop->tiles, base += RAPT_BLOCK_KEYS;
    struct rapt_span keys = {base, base + RAPT_BLOCK_KEYS};
    keys = rapt_intersect(keys, next->visible);
    if (keys.begin < keys.end)
        rapt_task_list_masks(loop->task, next->first, next->rows, keys, list);
}

/* Where the tile ends: its rows of out, and the queries of the task to come that will be in its place. */
static void list_last(const struct rapt_loop *loop, const struct rapt_tile *tile, struct rapt_fetch_list *list) {
    const struct rapt_task *task = loop->task, *next = loop->supply.next_task;
    const rapt_attention_desc *desc = &task->attention->desc;
    rapt_task_list(task, &desc->out, tile->first, tile->rows, 0, (int)desc->value_dim * 4, list);
    if (next && next->rows > tile->first)
        rapt_task_list(next, &desc->query, tile->first,
                       next->rows - tile->first < tile->rows ? next->rows - tile->first : tile->rows, 0,
                       (int)desc->head_dim * 4, list);
}

struct rapt_fetch_list *rapt_ahead_in_weigh(struct rapt_loop *loop, const struct rapt_tile *tile, int64_t base,
                                            struct rapt_fetch_list *list) {
    const bool narrow = loop->task->attention->narrow;
    rapt_list_clear(list);
    if (!narrow && loop->tile_count == 1)
        rapt_supply_list_values(&loop->supply, list);
    list_next_masks(loop, tile, base, list);
    if (!narrow && base + RAPT_BLOCK_KEYS >= tile->visible.end)
        list_last(loop, tile, list);
    return list->count ? list : NULL;
}
