/* SPDX-License-Identifier: MIT */
#include "attend/prefetch.h"

#include "attend/select.h"

/* Keys or values of a task as they are stored. staging: where they go; NULL = nowhere. */
static void add_stored(struct rapt_errands *errands, const struct rapt_task *task, int side, struct rapt_span keys,
                       struct rapt_staging *staging) {
    const struct rapt_plan_body *plan = task->plan;
    const int64_t begin = keys.begin;
    keys.begin += staging ? staging->ready : 0;
    while (keys.begin < keys.end) {
        const struct rapt_rows rows = rapt_source_stored(task, side, keys);
        rapt_errands_add(errands, (struct rapt_errand){
            .base = rows.base,
            .row_stride_bytes = rows.stride_bytes,
            .rows = (int)rows.count,
            .heads = 1,
            .row_bytes = (int)rapt_format_row_bytes(plan->format[side], rapt_dim_of(plan, side)),
            .staging = staging,
            .scales = rows.scales,
            .first = keys.begin - begin});
        keys.begin += rows.count;
    }
}

/* Keys or values of the next block, or of the next task's first one. */
static void add_next(struct rapt_errands *errands, struct rapt_loop *loop, int64_t base, int side) {
    const struct rapt_span visible = loop->task->visible;
    if (rapt_is_in_keys(loop->task->plan, side) &&
        (loop->source.shares_keys || !loop->task->work.stages[side]))
        return; /* they come with the keys */
    const int64_t next = rapt_next_selected(loop->task, visible, base + RAPT_BLOCK_KEYS);
    if (next >= 0)
        add_stored(errands, loop->task, side, rapt_block_of(visible, next),
                   rapt_source_ahead(&loop->source, side, base, next));
}

static void add_next_task(struct rapt_errands *errands, const struct rapt_loop *loop, int side) {
    const struct rapt_span visible = loop->next_task->visible;
    if (rapt_is_in_keys(loop->task->plan, side))
        return;
    add_stored(errands, loop->next_task, side, rapt_block_of(visible, rapt_next_block(visible, 0)), NULL);
}

/* Whether the block at base or the one after it is the last. */
static bool nears_end(const struct rapt_loop *loop, int64_t base) {
    return loop->next_task && base + 2 * RAPT_BLOCK_KEYS >= loop->task->visible.end;
}

/* A single tile has time for the keys in score, and for the values in weigh. */
static int sides_in_score(const struct rapt_loop *loop) { return loop->tile_count > 1 ? RAPT_SIDES : 1; }

void rapt_prefetch_block(struct rapt_loop *loop, int64_t base) {
    struct rapt_errands *ahead = &loop->ahead.errands;
    const int own = loop->ahead.of_next_task;
    if (loop->task->kind->streams)
        return;
    if (own >= 0) { /* under way already */
        for (int i = 0; i < own; i++)
            ahead->piece[i].staging = NULL; /* its buffer is in use */
        for (; ahead->at < own; ahead->at++)
            ahead->row = ahead->byte = 0;
        return;
    }
    rapt_errands_clear(ahead);
    for (int side = 0; side < sides_in_score(loop); side++)
        add_next(ahead, loop, base, side);
    if (!nears_end(loop, base))
        return;
    loop->ahead.of_next_task = ahead->count;
    for (int side = 0; side < sides_in_score(loop); side++)
        add_next_task(ahead, loop, side);
}

/* Bytes [offset, offset + row_bytes) of some rows of a task, for all heads of their queries, or, in groups of more
 * heads than there are rows, for as many from the first row's on. */
static void add_rows(struct rapt_errands *errands, const struct rapt_task *task, const rapt_tensor *tensor, int first,
                     int count, int64_t offset, int64_t row_bytes) {
    const int64_t group = task->plan->group, row = task->first_row + first;
    const int64_t query = row / group, end = (row + count - 1) / group + 1;
    const int64_t head = group > count ? row % group : 0, heads = group - head < count ? group - head : count;
    const int64_t token = task->work.sequence.query_first + query;
    if (tensor->data && count > 0)
        rapt_errands_add(errands, (struct rapt_errand){
            .base = rapt_row(tensor, task->work.batch, task->kv_head * group + head, token) + offset,
            .row_stride_bytes = tensor->token_stride_bytes,
            .head_stride_bytes = tensor->head_stride_bytes,
            .rows = (int)(end - query),
            .heads = (int)heads,
            .row_bytes = (int)row_bytes});
}

/* Masks and biases of the next tile. */
static void add_masks(struct rapt_errands *errands, const struct rapt_loop *loop, const struct rapt_tile *tile,
                      int64_t base) {
    const struct rapt_plan_body *plan = loop->task->plan;
    const rapt_attention_desc *desc = &plan->desc;
    const struct rapt_tile *next = tile + 1;
    if (next == loop->tiles + loop->tile_count)
        next = loop->tiles, base += RAPT_BLOCK_KEYS;
    const struct rapt_span keys = rapt_block_of(next->visible, base);
    const int64_t token = keys.begin - loop->task->work.sequence.key_position, count = rapt_span_count(keys);
    if (count == 0)
        return;
    add_rows(errands, loop->task, &desc->mask, next->first, next->rows, token, count);
    add_rows(errands, loop->task, &desc->bias, next->first, next->rows, rapt_format_row_bytes(plan->bias_format, token),
             rapt_format_row_bytes(plan->bias_format, count));
}

/* At a tile's end: its rows of out, and the queries of the next task that take its place. A call of one task is too
 * short to gain. */
static void add_end(struct rapt_errands *errands, const struct rapt_loop *loop, const struct rapt_tile *tile) {
    const struct rapt_plan_body *plan = loop->task->plan;
    const rapt_attention_desc *desc = &plan->desc;
    const struct rapt_task *next = loop->next_task;
    if (plan->totals.all_tasks == 1)
        return;
    add_rows(errands, loop->task, &desc->out, tile->first, tile->rows, 0,
             rapt_format_row_bytes(plan->out_format, desc->value_dim));
    if (next && next->rows > tile->first)
        add_rows(errands, next, &desc->query, tile->first,
                 next->rows - tile->first < tile->rows ? next->rows - tile->first : tile->rows, 0,
                 rapt_format_row_bytes(plan->query_format, desc->head_dim));
}

/* Values beyond those that weigh prefetches before it begins, to keep memory busy during the softmax. */
static void add_own_values(struct rapt_errands *errands, const struct rapt_loop *loop, const struct rapt_tile *tile,
                           int64_t base) {
    enum { SKIPPED = 48, COUNT = 32 }; /* keys; there is time for COUNT of them */
    struct rapt_span keys = rapt_block_of(tile->visible, base);
    keys.begin += SKIPPED;
    const bool was_fetched = loop->source.side[RAPT_VALUES].in_pages ||
                             rapt_is_in_keys(loop->task->plan, RAPT_VALUES);
    if (was_fetched || keys.end - keys.begin < COUNT)
        return;
    keys.end = keys.begin + COUNT;
    add_stored(errands, tile->task, RAPT_VALUES, keys, NULL);
}

void rapt_prefetch_tile(struct rapt_loop *loop, const struct rapt_tile *tile, int64_t base,
                        struct rapt_errands *errands, struct rapt_block *block) {
    rapt_errands_clear(errands);
    if (loop->task->kind->streams) {
        if (!block->is_scored && !block->mask->selected) /* the source knows where selected ones are */
            add_own_values(errands, loop, tile, base);
    } else {
        block->of_score = &loop->ahead.errands;
        for (int side = sides_in_score(loop); side < RAPT_SIDES; side++) {
            add_next(errands, loop, base, side);
            if (nears_end(loop, base))
                add_next_task(errands, loop, side);
        }
    }
    add_masks(errands, loop, tile, base);
    if (!loop->task->kind->streams && base + RAPT_BLOCK_KEYS >= tile->visible.end)
        add_end(errands, loop, tile);
    block->of_weigh = errands->count ? errands : NULL;
}
