/* SPDX-License-Identifier: MIT
 * Single keys and values of a block, as masks leave them: in place, if the kind takes them so, else copied. */
#include "attend/source.h"

enum { LONG_RUN = 16 }; /* keys that are worth a call of a slot; fewer are copied together */

/* How many keys from one on are contiguous in the block. */
static int run_of(const struct rapt_tile_mask *mask, int key, int end) {
    int next = key + 1;
    while (next < end && mask->place[next] == mask->place[next - 1] + 1)
        next++;
    return next - key;
}

/* Finds the rows of single keys. */
struct finder {
    const struct rapt_task *task;
    int side;
    bool in_pages;
    int64_t first;   /* position of `row`, where keys are not in pages */
    const char *row;
    int64_t stride_bytes;
};

static struct finder finder_of(const struct rapt_task *task, int side, int64_t first) {
    const struct rapt_rows rows = rapt_source_stored(task, side, (struct rapt_span){first, first + 1});
    return (struct finder){.task = task,
                           .side = side,
                           .in_pages = rapt_is_paged(rapt_pages_of(&task->plan->desc, side)),
                           .first = first,
                           .row = rows.base,
                           .stride_bytes = rows.stride_bytes};
}

static const char *find_row(const struct finder *finder, int64_t position) {
    if (!finder->in_pages)
        return finder->row + (position - finder->first) * finder->stride_bytes;
    return rapt_source_stored(finder->task, finder->side, (struct rapt_span){position, position + 1}).base;
}

/* The rows expected after these, to be prefetched; NULL = none. */
static const struct rapt_strands *find_expected(struct rapt_source *source, int side, int keys,
                                                struct rapt_paged_block *block) {
    const struct rapt_plan_body *plan = source->task->plan;
    const struct rapt_expected *expected = &source->expected;
    if (expected->count == 0 || rapt_is_in_keys(plan, side))
        return NULL;
    const struct finder finder = finder_of(source->task, side, expected->base + expected->place[0]);
    for (int i = 0; i < expected->count; i++)
        block->strand[i] = find_row(&finder, expected->base + expected->place[i]);
    rapt_source_close_strands(block, expected->count, rapt_format_row_bytes(plan->format[side], source->side[side].dim),
                              (int)rapt_quotient_up(expected->count, keys));
    return &block->ahead;
}

/* All of the keys in place, run by run. */
static struct rapt_rows in_place(struct rapt_source *source, int side, int64_t base, const struct rapt_tile_mask *mask,
                                 int key, int end) {
    struct rapt_paged_block *block = &source->block[side];
    struct rapt_stored_run *last = block->run;
    const struct finder finder = finder_of(source->task, side, base + mask->place[key]);
    *last = (struct rapt_stored_run){finder.row, 1};
    for (int next = key + 1; next < end; next++) {
        const char *row = find_row(&finder, base + mask->place[next]);
        if (row == last->row + last->rows * finder.stride_bytes)
            last->rows++;
        else
            *++last = (struct rapt_stored_run){row, 1};
    }
    last[1] = (struct rapt_stored_run){last->row, INT64_MAX}; /* never read */
    return (struct rapt_rows){.base = block->run->row,
                              .first = block->run->rows,
                              .runs = block->run + 1,
                              .ahead = find_expected(source, side, end - key, block),
                              .stride_bytes = finder.stride_bytes,
                              .count = end - key,
                              .format = source->task->plan->format[side],
                              .streams = true};
}

/* Beside these rows of a key, prefetches those of the expected one of the same number. What follows in memory is not
 * expected. */
static void lead_to_expected(const struct rapt_source *source, int side, int number, struct rapt_rows *rows) {
    const struct rapt_expected *expected = &source->expected;
    rows->streams = number < expected->count && !rapt_is_in_keys(source->task->plan, side);
    rows->lead_bytes = 0;
    if (!rows->streams)
        return;
    const int64_t position = expected->base + expected->place[number];
    const struct rapt_rows next = rapt_source_stored(source->task, side, (struct rapt_span){position, position + 1});
    rows->lead_bytes = (int64_t)((intptr_t)next.base - (intptr_t)rows->base);
}

/* Copies short runs, until there is a long one or no more room. */
static struct rapt_rows gather(const struct rapt_source *source, int side, int64_t base,
                               const struct rapt_tile_mask *mask, int key, int end) {
    float *const gathered = source->task->gathered;
    const int64_t dim = source->side[side].dim;
    int64_t count = 0;
    end = end - key < RAPT_GATHERED_KEYS ? end : key + RAPT_GATHERED_KEYS;
    for (int run; key < end && ((run = run_of(mask, key, end)) < LONG_RUN || count == 0); key += run) {
        const int64_t position = base + mask->place[key], after = count + run;
        while (count < after) {
            struct rapt_rows rows = rapt_source_stored(
                source->task, side, (struct rapt_span){position + run - (after - count), position + run});
            lead_to_expected(source, side, key, &rows);
            rapt_source_stage(source, side, &rows, gathered + count * dim);
            count += rows.count;
        }
    }
    return (struct rapt_rows){
        .base = (const char *)gathered,
        .stride_bytes = dim * (int64_t)sizeof(float),
        .count = count,
        .format = RAPT_FORMAT_F32};
}

struct rapt_rows rapt_source_selected(struct rapt_source *source, int side, int64_t base,
                                      const struct rapt_tile_mask *mask, int key, int end) {
    RAPT_ASSUME(key < end && end <= RAPT_BLOCK_KEYS);
    if (!source->side[side].staged && rapt_takes_runs(source->task->plan, source->task->kind, side))
        return in_place(source, side, base, mask, key, end);
    const int run = run_of(mask, key, end);
    const int64_t first = base + mask->place[key];
    if (run < LONG_RUN)
        return gather(source, side, base, mask, key, end);
    struct rapt_rows rows = rapt_source_rows(source, side, (struct rapt_span){first, first + run});
    rows.ahead = NULL; /* what comes next is unknown */
    return rows;
}
