/* SPDX-License-Identifier: MIT
 * The blocked online-softmax loop. Prefill and decode are the two orientations
 * of its tiles (kernels.h). Blocks and chunks lie at absolute multiples of their
 * sizes, so their bits do not depend on the caller's way of cutting the work. */
#include "ahead.h"

/* As few tiles as possible, of equal heights but for a vector: low tiles are slow, and pass by too fast to fetch
 * what comes next. */
static void open_tiles(struct rapt_loop *loop) {
    struct rapt_task *task = loop->task;
    const struct rapt_attention *a = task->attention;
    const rapt_attention_desc *desc = &a->desc;
    const int unit = a->narrow ? a->tile_rows : a->kernels->lanes, units = (task->rows + unit - 1) / unit;
    const int count = (task->rows + a->tile_rows - 1) / a->tile_rows;
    loop->tile_count = 0;
    for (int first = 0, rows; first < task->rows; first += rows) {
        const int number = loop->tile_count++;
        struct rapt_tile *tile = &loop->tiles[number];
        rows = (units / count + (number < units % count)) * unit;
        tile->first = first;
        tile->rows = task->rows - first < rows ? task->rows - first : rows;
        tile->visible.begin = rapt_visible(desc, &task->sequence, rapt_position(task, first)).begin;
        tile->visible.end = rapt_visible(desc, &task->sequence, rapt_position(task, first + tile->rows - 1)).end;
        tile->panel = task->panel + (int64_t)number * a->tile_rows * desc->head_dim;
        tile->started = tile->packed = tile->finished = false;
    }
}

/* Just before the first use, which finds the panel in L1 then. */
static void pack(const struct rapt_loop *loop, struct rapt_tile *tile) {
    const rapt_attention_desc *desc = &loop->task->attention->desc;
    float *rows[RAPT_MAX_TILE_ROWS];
    rapt_task_rows(loop->task, &desc->query, tile->first, tile->rows, rows);
    loop->kernels->pack(tile->panel, (const float *const *)rows, tile->rows, (int)desc->head_dim);
    tile->packed = true;
}

static void score(struct rapt_loop *loop, const struct rapt_tile *tile, int64_t base, struct rapt_span keys,
                  const struct rapt_tile_mask *mask) {
    const struct rapt_task *task = loop->task;
    const struct rapt_attention *a = task->attention;
    for (int64_t at = keys.begin; at < keys.end;) {
        struct rapt_span rest = {at, keys.end};
        struct rapt_kv_run run = rapt_supply_locate(&loop->supply, rest);
        struct rapt_score_args args = {.query = tile->panel,
                                       .key = run.key,
                                       .key_stride_bytes = run.key_stride_bytes,
                                       .scores = task->scores,
                                       .rows = tile->rows,
                                       .head_dim = (int)a->desc.head_dim,
                                       .key_begin = (int)(at - base),
                                       .key_end = (int)(at - base + run.count),
                                       .factor = a->score_factor,
                                       .ranges = mask->has_range ? &mask->ranges : NULL};
        if (at == keys.begin && !a->narrow && !loop->careful)
            rapt_supply_fetch(&loop->supply, &args, loop->tile_count);
        loop->kernels->score(&args);
        at += run.count;
    }
}

/* o of rows [first, first + rows) of a tile takes the positions keys. */
static void weigh(const struct rapt_loop *loop, const struct rapt_tile *tile, int first, int rows, int64_t base,
                  struct rapt_span keys, bool fresh, const float *alpha, const struct rapt_key_ranges *ranges,
                  struct rapt_fetch_list *ahead) {
    const struct rapt_task *task = loop->task;
    const struct rapt_attention *a = task->attention;
    struct rapt_state state = rapt_state_from(tile->state, first, a->o_stride);
    struct rapt_weigh_args args = {.probabilities = task->scores + (a->narrow ? first * RAPT_BLOCK_KEYS : first),
                                   .alpha = alpha,
                                   .ranges = ranges,
                                   .o = state.o,
                                   .o_stride = a->o_stride,
                                   .rows = rows,
                                   .value_dim = (int)a->desc.value_dim,
                                   .fresh = fresh,
                                   .ahead = ahead};
    static const float ones[RAPT_MAX_TILE_ROWS] = {
        1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1,
        1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1};
    int64_t at = keys.begin;
    do {
        struct rapt_span rest = {at, keys.end};
        struct rapt_kv_run run = rapt_supply_locate(&loop->supply, rest);
        args.value = run.value;
        args.value_stride_bytes = run.value_stride_bytes;
        args.key_begin = (int)(at - base);
        args.key_end = (int)(at - base + run.count);
        loop->kernels->weigh(&args);
        args.fresh = false;
        args.alpha = ones;
        at += run.count;
    } while (at < keys.end);
}

/* The careful path: each row takes its runs of attended keys only. */
static void weigh_attended(const struct rapt_loop *loop, const struct rapt_tile *tile,
                           const struct rapt_tile_mask *mask, int64_t base, struct rapt_span keys, bool fresh) {
    int end = (int)(keys.end - base);
    for (int row = 0; row < tile->rows; row++) {
        struct rapt_span nothing = {keys.begin, keys.begin};
        weigh(loop, tile, row, 1, base, nothing, fresh, loop->task->alpha + row, NULL, NULL);
        for (int key = (int)(keys.begin - base); key < end;) {
            int run = key;
            while (run < end && rapt_is_attended(mask, row, run))
                run++;
            struct rapt_span attended = {base + key, base + run};
            const float one = 1.0f;
            if (run > key)
                weigh(loop, tile, row, 1, base, attended, false, &one, NULL, NULL);
            key = run + 1;
        }
    }
}

/* Whether weigh would give some row a value that it does not see. */
static bool has_strangers(const struct rapt_tile_mask *mask) {
    return mask->has_bias || mask->has_range || (mask->has_mask && !mask->has_fill);
}

/* Whether nothing of the tile is attended. A bool mask without a false one is forgotten. */
static bool is_excluded(const struct rapt_loop *loop, int rows, int begin, int end, struct rapt_tile_mask *mask) {
    if (!mask->has_mask && !mask->has_bias)
        return false;
    unsigned found = loop->task->attention->kernels->survey(rows, begin, end, mask);
    if ((mask->has_mask && !mask->has_fill && !(found & RAPT_SOME_TRUE)) ||
        (mask->has_bias && !(found & RAPT_SOME_BIAS)))
        return true;
    mask->has_mask = mask->has_mask && (found & RAPT_SOME_FALSE);
    return false;
}

/* Vector by vector of rows where logits come first, so that the softmax finds them in L1. */
static void softmax(const struct rapt_loop *loop, const struct rapt_tile *tile, int64_t base, struct rapt_span keys,
                    const struct rapt_tile_mask *mask) {
    const struct rapt_task *task = loop->task;
    const struct rapt_key_ranges *ranges = mask->has_range ? &mask->ranges : NULL;
    const bool acts = rapt_mask_acts(mask);
    const int begin = (int)(keys.begin - base), end = (int)(keys.end - base);
    struct rapt_fetch_list list, *ahead = rapt_ahead_in_softmax(loop, keys, &list);
    const int step = acts ? task->attention->kernels->lanes : tile->rows;
    for (int row = 0; row < tile->rows; row += step) {
        const int end_row = tile->rows - row < step ? tile->rows : row + step;
        if (acts)
            loop->kernels->logits(task->scores, row, end_row, begin, end, mask);
        loop->kernels->softmax(task->scores, row, end_row, begin, end, ranges, tile->state.m, tile->state.l,
                               task->alpha, ahead);
    }
}

static void attend_block(struct rapt_loop *loop, struct rapt_tile *tile, int64_t base) {
    struct rapt_task *task = loop->task;
    struct rapt_tile_mask mask;
    struct rapt_fetch_list ahead;
    struct rapt_span keys = {base, base + RAPT_BLOCK_KEYS};
    keys = rapt_intersect(keys, tile->visible);
    if (keys.begin >= keys.end)
        return;
    int begin = (int)(keys.begin - base), end = (int)(keys.end - base);
    rapt_task_mask(task, tile->first, tile->rows, base, keys, &mask);
    if (is_excluded(loop, tile->rows, begin, end, &mask))
        return;
    if (!tile->packed)
        pack(loop, tile);
    bool fresh = !tile->touched;
    tile->touched = true;
    const struct rapt_key_ranges *ranges = mask.has_range ? &mask.ranges : NULL;
    score(loop, tile, base, keys, &mask);
    softmax(loop, tile, base, keys, &mask);
    if (task->attention->desc.keep_mask.data)
        loop->kernels->drop(task->scores, tile->rows, begin, end, &mask);
    const bool strangers = has_strangers(&mask);
    tile->doubtful = tile->doubtful || strangers;
    if (strangers && loop->careful)
        weigh_attended(loop, tile, &mask, base, keys, fresh);
    else
        weigh(loop, tile, 0, tile->rows, base, keys, fresh, task->alpha, ranges,
              rapt_ahead_in_weigh(loop, tile, base, &ahead));
}

/* Again, in place and without the values of excluded pairs. */
static void attend_again(struct rapt_loop *loop, struct rapt_tile *tile, int64_t chunk) {
    const bool staged = loop->supply.staged;
    const int64_t base = chunk * RAPT_CHUNK_KEYS;
    loop->careful = true;
    loop->supply.staged = false;
    tile->touched = false;
    rapt_state_clear(tile->state, tile->rows);
    for (int64_t block = base; block < base + RAPT_CHUNK_KEYS; block += RAPT_BLOCK_KEYS)
        attend_block(loop, tile, block);
    loop->careful = false;
    loop->supply.staged = staged;
}

/* Right behind its last block of the chunk, which finds the state in L1. */
static void close_chunk(struct rapt_loop *loop, struct rapt_tile *tile, int64_t chunk) {
    struct rapt_task *task = loop->task;
    const struct rapt_attention *a = task->attention;
    const int value_dim = (int)a->desc.value_dim;
    /* Times its weight of 0, an excluded value that is NaN or infinite is NaN, and stays it. */
    if (tile->doubtful && !a->kernels->all_finite((const char *)tile->state.o, a->o_stride * 4, tile->rows, value_dim))
        attend_again(loop, tile, chunk);
    if (tile->touched && tile->started)
        a->kernels->merge(rapt_state_from(task->running, tile->first, a->o_stride), tile->state, tile->rows, value_dim,
                          a->o_stride);
    tile->started = tile->started || tile->touched;
    tile->finished = a->ranges == 1 && (chunk + 1) * RAPT_CHUNK_KEYS >= tile->visible.end;
    if (tile->finished)
        rapt_finish(task, task->running, tile->first, tile->rows);
}

static void attend_chunk(struct rapt_loop *loop, int64_t chunk) {
    const struct rapt_task *task = loop->task;
    const int64_t base = chunk * RAPT_CHUNK_KEYS, end = base + RAPT_CHUNK_KEYS;
    for (int number = 0; number < loop->tile_count; number++) {
        struct rapt_tile *tile = &loop->tiles[number];
        tile->state = rapt_state_from(tile->started ? task->chunk : task->running, tile->first,
                                      task->attention->o_stride);
        tile->touched = tile->doubtful = false;
        rapt_state_clear(tile->state, tile->rows);
    }
    for (int64_t block = base; block < end; block += RAPT_BLOCK_KEYS) {
        rapt_supply_block(&loop->supply, block);
        for (int number = 0; number < loop->tile_count; number++) {
            struct rapt_tile *tile = &loop->tiles[number];
            const int64_t last = tile->visible.end < end ? tile->visible.end : end;
            attend_block(loop, tile, block);
            if (block < last && block + RAPT_BLOCK_KEYS >= last)
                close_chunk(loop, tile, chunk);
        }
    }
}

void rapt_attend(const struct rapt_attention *a, char *states, char *slot, int64_t index, int64_t next_index) {
    struct rapt_task task, next_task;
    rapt_task_open(&task, a, slot, index);
    if (task.rows == 0)
        return;
    struct rapt_loop loop = {.task = &task, .kernels = a->narrow ? &a->kernels->narrow : &a->kernels->wide};
    bool looks_ahead = !a->narrow && next_index < a->tasks;
    if (looks_ahead)
        rapt_task_find(&next_task, a, next_index);
    rapt_supply_open(&loop.supply, &task, looks_ahead ? &next_task : NULL);
    open_tiles(&loop);
    int64_t begin = task.first_chunk + task.range * a->range_chunks;
    int64_t end = begin + a->range_chunks < task.end_chunk ? begin + a->range_chunks : task.end_chunk;
    rapt_state_clear(task.running, task.rows);
    if (a->ranges > 1) {
        task.running = rapt_state_of_chunk(a, states, task.batch, task.kv_head, 0);
        if (task.range == 0)
            rapt_state_clear(task.running, task.rows);
    }
    for (int64_t chunk = begin; chunk < end; chunk++) {
        /* Only a fold from the first chunk on may be shared: numerics.md, step 7. */
        if (task.range > 0) {
            task.running = rapt_state_of_chunk(a, states, task.batch, task.kv_head, chunk - task.first_chunk);
            for (int number = 0; number < loop.tile_count; number++)
                loop.tiles[number].started = false;
        }
        attend_chunk(&loop, chunk);
    }
    if (a->ranges > 1)
        return;
    for (const struct rapt_tile *tile = loop.tiles; tile < loop.tiles + loop.tile_count; tile++)
        if (!tile->finished) /* it sees no keys */
            rapt_finish(&task, task.running, tile->first, tile->rows);
    rapt_write_weights(&task);
}
