/* SPDX-License-Identifier: MIT */
#include "prefetch.h"

static void add(struct rapt_errands *errands, struct rapt_errand piece) {
    if (piece.rows <= 0 || errands->count == RAPT_MAX_ERRANDS)
        return;
    errands->piece[errands->count++] = piece;
    errands->lines += (int64_t)piece.rows * piece.heads * ((piece.row_bytes + 63) / 64);
}

/* Keys or values of a task as they are stored. */
static void add_stored(struct rapt_errands *errands, const struct rapt_task *task, int side, struct rapt_span keys) {
    const struct rapt_attention *a = task->attention;
    while (keys.begin < keys.end) {
        const struct rapt_rows rows = rapt_source_stored(task, side, keys);
        add(errands, (struct rapt_errand){
                         .base = rows.base,
                         .row_stride_bytes = rows.stride_bytes,
                         .rows = (int)rows.count,
                         .heads = 1,
                         .row_bytes = (int)rapt_format_row_bytes(a->format[side], rapt_dim_of(a, side))});
        keys.begin += rows.count;
    }
}

/* The share of a tile in the keys and values of a block. */
static void add_share(struct rapt_errands *errands, const struct rapt_task *task, int64_t base, int number, int tiles) {
    const struct rapt_span keys = rapt_block_of(task->visible, base);
    const int64_t count = rapt_span_count(keys);
    const struct rapt_span share = {keys.begin + count * number / tiles, keys.begin + count * (number + 1) / tiles};
    for (int side = 0; side < RAPT_SIDES; side++)
        add_stored(errands, task, side, share);
}

/* Bytes [offset, offset + row_bytes) of some rows of a task: all heads of the queries that they belong to. */
static void add_rows(struct rapt_errands *errands, const struct rapt_task *task, const rapt_tensor *tensor, int first,
                     int count, int64_t offset, int64_t row_bytes) {
    const int64_t group = task->attention->group, row = task->first_row + first;
    const int64_t query = row / group, end = (row + count - 1) / group + 1;
    if (tensor->data && count > 0)
        add(errands, (struct rapt_errand){
                         .base = rapt_row(tensor, task->work.batch, task->kv_head * group, query) + offset,
                         .row_stride_bytes = tensor->token_stride_bytes,
                         .head_stride_bytes = tensor->head_stride_bytes,
                         .rows = (int)(end - query),
                         .heads = (int)group,
                         .row_bytes = (int)row_bytes});
}

/* Masks and biases of the tile that comes next. */
static void add_masks(struct rapt_errands *errands, const struct rapt_loop *loop, const struct rapt_tile *tile,
                      int64_t base) {
    const rapt_attention_desc *desc = &loop->task->attention->desc;
    const struct rapt_tile *next = tile + 1;
    if (next == loop->tiles + loop->tile_count)
        next = loop->tiles, base += RAPT_BLOCK_KEYS;
    const struct rapt_span keys = rapt_block_of(next->visible, base);
    const int64_t token = keys.begin - loop->task->work.sequence.key_position, count = rapt_span_count(keys);
    if (count == 0)
        return;
    add_rows(errands, loop->task, &desc->mask, next->first, next->rows, token, count);
    add_rows(errands, loop->task, &desc->bias, next->first, next->rows, token * 4, count * 4);
}

/* Where a tile ends: its rows of out, and the queries of the next task that will be in its place. */
static void add_end(struct rapt_errands *errands, const struct rapt_loop *loop, const struct rapt_tile *tile) {
    const rapt_attention_desc *desc = &loop->task->attention->desc;
    const struct rapt_task *next = loop->next_task;
    add_rows(errands, loop->task, &desc->out, tile->first, tile->rows, 0, desc->value_dim * 4);
    if (next && next->rows > tile->first)
        add_rows(errands, next, &desc->query, tile->first,
                 next->rows - tile->first < tile->rows ? next->rows - tile->first : tile->rows, 0, desc->head_dim * 4);
}

/* The values that a tile will weigh after those that weigh has fetched before it begins: memory need not wait while it
 * computes the softmax. */
static void add_own_values(struct rapt_errands *errands, const struct rapt_loop *loop, const struct rapt_tile *tile,
                           int64_t base) {
    enum { SKIPPED = 128, COUNT = 32 }; /* keys; the latter is what there is time for */
    struct rapt_span keys = rapt_block_of(tile->visible, base);
    keys.begin += SKIPPED;
    if (keys.end - keys.begin < COUNT)
        return;
    keys.end = keys.begin + COUNT;
    add_stored(errands, loop->task, RAPT_VALUES, keys);
}

struct rapt_errands *rapt_prefetch(const struct rapt_loop *loop, const struct rapt_tile *tile, int64_t base,
                                   struct rapt_errands *errands) {
    const struct rapt_task *task = loop->task;
    const int number = (int)(tile - loop->tiles), tiles = loop->tile_count;
    errands->count = errands->at = errands->row = errands->head = errands->byte = 0;
    errands->lines = 0;
    if (task->kind->streams) {
        add_own_values(errands, loop, tile, base);
    } else {
        const int64_t next = rapt_next_block(task->visible, base + RAPT_BLOCK_KEYS);
        if (next >= 0)
            add_share(errands, task, next, number, tiles);
        else if (loop->next_task)
            add_share(errands, loop->next_task, rapt_next_block(loop->next_task->visible, 0), number, tiles);
    }
    add_masks(errands, loop, tile, base);
    if (!task->kind->streams && base + RAPT_BLOCK_KEYS >= tile->visible.end)
        add_end(errands, loop, tile);
    return errands->count ? errands : NULL;
}
