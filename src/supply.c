/* SPDX-License-Identifier: MIT */
#include "supply.h"

#include <string.h>

enum {
    COPY_AHEAD = 8, /* rows */
    FETCHING_TILES = 2,
    FAR_KEYS = 128  /* so far ahead many requests are in flight */
};

static struct rapt_kv_run in_place(const struct rapt_task *task, struct rapt_span positions) {
    return rapt_kv_locate(&task->attention->desc, &task->sequence, task->batch, task->kv_head, positions);
}

static int key_bytes(const struct rapt_task *task) { return (int)task->attention->desc.head_dim * 4; }
static int value_bytes(const struct rapt_task *task) { return (int)task->attention->desc.value_dim * 4; }

void rapt_supply_open(struct rapt_supply *supply, const struct rapt_task *task, const struct rapt_task *next_task) {
    *supply = (struct rapt_supply){.task = task, .next_task = next_task, .staged = task->attention->is_staged};
    supply->here.key = task->staged[0];
    supply->next.key = task->staged[1];
    supply->here.value = supply->here.key + RAPT_BLOCK_KEYS * key_bytes(task);
    supply->next.value = supply->next.key + RAPT_BLOCK_KEYS * key_bytes(task);
}

/* Rows that lie far apart are no pattern that a processor would fetch by itself. */
static void copy_rows(char *into, const char *from, int64_t stride_bytes, int64_t rows, int row_bytes) {
    for (int64_t row = 0; row < rows; row++, from += stride_bytes, into += row_bytes) {
        for (int byte = 0; row + COPY_AHEAD < rows && byte < row_bytes; byte += 64)
            __builtin_prefetch(from + COPY_AHEAD * stride_bytes + byte);
        memcpy(into, from, (size_t)row_bytes);
    }
}

static void copy_rest(const struct rapt_task *task, struct rapt_arrival *block) {
    while (block->keys.begin + block->ready < block->keys.end) {
        struct rapt_span rest = {block->keys.begin + block->ready, block->keys.end};
        struct rapt_kv_run run = in_place(task, rest);
        copy_rows(block->key + block->ready * key_bytes(task), run.key, run.key_stride_bytes, run.count,
                  key_bytes(task));
        copy_rows(block->value + block->ready * value_bytes(task), run.value, run.value_stride_bytes, run.count,
                  value_bytes(task));
        block->ready += run.count;
    }
}

static void expect(struct rapt_arrival *block, const struct rapt_task *task, int64_t base) {
    struct rapt_span keys = {base, base + RAPT_BLOCK_KEYS};
    block->keys = rapt_intersect(keys, task->visible);
    block->ready = 0;
}

void rapt_supply_block(struct rapt_supply *supply, int64_t base) {
    const struct rapt_arrival free = supply->here;
    supply->here = supply->next;
    supply->next = free;
    if (supply->here.keys.end <= base) /* nothing was expected: the first block */
        expect(&supply->here, supply->task, base);
    expect(&supply->next, supply->task, base + RAPT_BLOCK_KEYS);
    if (supply->staged)
        copy_rest(supply->task, &supply->here);
}

struct rapt_kv_run rapt_supply_locate(const struct rapt_supply *supply, struct rapt_span positions) {
    const struct rapt_task *task = supply->task;
    if (!supply->staged)
        return in_place(task, positions);
    int64_t row = positions.begin - supply->here.keys.begin;
    return (struct rapt_kv_run){.key = supply->here.key + row * key_bytes(task),
                                .value = supply->here.value + row * value_bytes(task),
                                .key_stride_bytes = key_bytes(task),
                                .value_stride_bytes = value_bytes(task),
                                .count = positions.end - positions.begin};
}

static struct rapt_fetch rows_of(const char *base, int64_t stride_bytes, int row_bytes, int64_t rows) {
    return (struct rapt_fetch){base, stride_bytes, NULL, row_bytes, (int)rows};
}

static void fetch_share(struct rapt_supply *supply, struct rapt_score_args *args) {
    const struct rapt_task *task = supply->task;
    struct rapt_arrival *next = &supply->next;
    struct rapt_span rest = {next->keys.begin + next->ready, next->keys.end};
    int64_t share = (next->keys.end - next->keys.begin + FETCHING_TILES - 1) / FETCHING_TILES;
    if (rest.end > rest.begin + share)
        rest.end = rest.begin + share;
    struct rapt_kv_run run = in_place(task, rest);
    args->fetch[0] = rows_of(run.key, run.key_stride_bytes, key_bytes(task), run.count);
    args->fetch[1] = rows_of(run.value, run.value_stride_bytes, value_bytes(task), run.count);
    if (supply->staged) {
        args->fetch[0].into = next->key + next->ready * key_bytes(task);
        args->fetch[1].into = next->value + next->ready * value_bytes(task);
    }
    next->ready += run.count;
}

/* Behind the last block: what the task that follows will want first, in as many shares. */
static void fetch_next_task(struct rapt_supply *supply, struct rapt_score_args *args) {
    const struct rapt_task *next = supply->next_task;
    const rapt_attention_desc *desc = &next->attention->desc;
    if (supply->next_shares == FETCHING_TILES || next->rows == 0 || next->visible.begin >= next->visible.end)
        return;
    struct rapt_span first = {next->visible.begin, next->visible.begin + RAPT_BLOCK_KEYS};
    struct rapt_kv_run run = in_place(next, rapt_intersect(first, next->visible));
    int64_t skipped = run.count * supply->next_shares / FETCHING_TILES, queries = next->rows / next->attention->group;
    int64_t count = run.count * ++supply->next_shares / FETCHING_TILES - skipped;
    args->fetch[0] = rows_of(run.key + skipped * run.key_stride_bytes, run.key_stride_bytes, key_bytes(next), count);
    args->fetch[1] =
        rows_of(run.value + skipped * run.value_stride_bytes, run.value_stride_bytes, value_bytes(next), count);
    int64_t query = (next->first_row / next->attention->group) + queries * (supply->next_shares - 1) / FETCHING_TILES;
    args->fetch[2] = rows_of(rapt_row(&desc->query, next->batch, next->kv_head * next->attention->group, query),
                             desc->query.token_stride_bytes, key_bytes(next), queries / FETCHING_TILES);
}

void rapt_supply_fetch(struct rapt_supply *supply, struct rapt_score_args *args, int tiles) {
    const struct rapt_arrival *next = &supply->next;
    if (tiles == 1)
        args->fetch[0] = rows_of(args->key + FAR_KEYS * args->key_stride_bytes, args->key_stride_bytes,
                                 key_bytes(supply->task), args->key_end - args->key_begin);
    else if (next->keys.begin + next->ready < next->keys.end)
        fetch_share(supply, args);
    else if (next->keys.begin >= next->keys.end && supply->next_task && !supply->staged)
        fetch_next_task(supply, args);
}
