/* SPDX-License-Identifier: MIT */
#include "supply.h"

#include <string.h>

enum { COPY_AHEAD = 8 /* rows */ };

static struct rapt_kv_run in_place(const struct rapt_task *task, struct rapt_span positions) {
    return rapt_kv_locate(&task->attention->desc, &task->sequence, task->batch, task->kv_head, positions);
}

static int key_bytes(const struct rapt_task *task) { return (int)task->attention->desc.head_dim * 4; }
static int value_bytes(const struct rapt_task *task) { return (int)task->attention->desc.value_dim * 4; }

static void expect(struct rapt_arrival *block, const struct rapt_task *task, int64_t base) {
    struct rapt_span keys = {base, base + RAPT_BLOCK_KEYS};
    block->task = task;
    block->keys = rapt_intersect(keys, task->visible);
    block->keys_ready = block->values_ready = 0;
}

void rapt_supply_open(struct rapt_supply *supply, const struct rapt_task *task, const struct rapt_task *next_task) {
    *supply = (struct rapt_supply){.task = task, .staged = task->attention->is_staged};
    supply->next_task = next_task && next_task->rows > 0 ? next_task : NULL;
    if (supply->next_task)
        expect(&supply->beyond, supply->next_task, supply->next_task->visible.begin);
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

static int64_t count_of(struct rapt_span keys) { return keys.end > keys.begin ? keys.end - keys.begin : 0; }

/* The run that begins with the key after so many that are ready. */
static struct rapt_kv_run run_after(const struct rapt_arrival *block, int64_t ready) {
    struct rapt_span rest = {block->keys.begin + ready, block->keys.end};
    return in_place(block->task, rest);
}

static void copy_rest(struct rapt_arrival *block) {
    const int key_size = key_bytes(block->task), value_size = value_bytes(block->task);
    while (block->keys_ready < count_of(block->keys)) {
        struct rapt_kv_run run = run_after(block, block->keys_ready);
        copy_rows(block->key + block->keys_ready * key_size, run.key, run.key_stride_bytes, run.count, key_size);
        block->keys_ready += run.count;
    }
    while (block->values_ready < count_of(block->keys)) {
        struct rapt_kv_run run = run_after(block, block->values_ready);
        copy_rows(block->value + block->values_ready * value_size, run.value, run.value_stride_bytes, run.count,
                  value_size);
        block->values_ready += run.count;
    }
}

void rapt_supply_block(struct rapt_supply *supply, int64_t base) {
    const struct rapt_arrival free = supply->here;
    supply->here = supply->next;
    supply->next = free;
    if (supply->here.task != supply->task || supply->here.keys.end <= base) /* nothing was expected: the first block */
        expect(&supply->here, supply->task, base);
    expect(&supply->next, supply->task, base + RAPT_BLOCK_KEYS);
    if (base + RAPT_BLOCK_KEYS >= supply->task->visible.end && supply->next_task)
        supply->next = supply->beyond, supply->next.key = free.key, supply->next.value = free.value;
    if (supply->staged)
        copy_rest(&supply->here);
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

/* What there is to fetch: the next block, and that beyond it where it is the last of the task and is not copied. */
static struct rapt_arrival *to_fetch(struct rapt_supply *supply, int number) {
    struct rapt_arrival *next = &supply->next;
    const bool is_last = next->task == supply->task && next->keys.end >= supply->task->visible.end;
    if (number == 0)
        return next;
    return number == 1 && is_last && !supply->staged && supply->next_task ? &supply->beyond : NULL;
}

static struct rapt_fetch rows_of(const char *base, int64_t stride_bytes, int row_bytes, int64_t rows) {
    return (struct rapt_fetch){base, stride_bytes, NULL, row_bytes, (int)rows};
}

/* Up to *rows rows of a block, keys first. Returns how many slots it took. */
static int fetch_block(struct rapt_arrival *next, bool values, bool copied, int64_t *rows, struct rapt_fetch *fetch,
                       int slots) {
    const int64_t count = count_of(next->keys);
    for (int slot = 0; slot < slots; slot++) {
        const bool of_keys = next->keys_ready < count;
        int64_t *ready = of_keys ? &next->keys_ready : &next->values_ready;
        if (*rows == 0 || *ready == count || (!of_keys && !values))
            return slot;
        const int bytes = of_keys ? key_bytes(next->task) : value_bytes(next->task);
        const struct rapt_kv_run run = run_after(next, *ready);
        const int64_t taken = run.count < *rows ? run.count : *rows;
        fetch[slot] = of_keys ? rows_of(run.key, run.key_stride_bytes, bytes, taken)
                              : rows_of(run.value, run.value_stride_bytes, bytes, taken);
        if (copied)
            fetch[slot].into = (of_keys ? next->key : next->value) + *ready * bytes;
        *ready += taken;
        *rows -= taken;
    }
    return slots;
}

void rapt_supply_fetch(struct rapt_supply *supply, struct rapt_score_args *args, int tiles) {
    const bool copied = supply->staged && supply->next.task == supply->task;
    int64_t rows = args->key_end - args->key_begin;
    int slot = 0;
    struct rapt_arrival *next;
    for (int number = 0; (next = to_fetch(supply, number)) != NULL; number++)
        slot += fetch_block(next, copied || tiles > 1, copied, &rows, args->fetch + slot, RAPT_FETCHES - slot);
}

static void list_values(struct rapt_arrival *next, struct rapt_fetch_list *list) {
    while (next->values_ready < count_of(next->keys) && list->count < RAPT_BLOCK_KEYS) {
        const struct rapt_kv_run run = run_after(next, next->values_ready);
        const int64_t room = RAPT_BLOCK_KEYS - list->count, taken = run.count < room ? run.count : room;
        rapt_list_values(&run, taken, value_bytes(next->task), list);
        next->values_ready += taken;
    }
}

void rapt_supply_list_values(struct rapt_supply *supply, struct rapt_fetch_list *list) {
    struct rapt_arrival *next;
    for (int number = 0; !supply->staged && (next = to_fetch(supply, number)) != NULL; number++)
        list_values(next, list);
}
