/* SPDX-License-Identifier: MIT
 * Several pages at once: the runs of their rows, and the order in which the next ones are prefetched. */
#include "attend/paged.h"
#include "attend/source.h"
#include "cpu.h"

/* The runs of some tokens, and a sentinel that is never read. Neighbouring pages may continue each other. */
static void find_runs(const struct rapt_paged *pages, int64_t token, int64_t count, struct rapt_stored_run *run) {
    const int64_t page_tokens = pages->page_tokens;
    int64_t page = token / page_tokens, within = token % page_tokens;
    struct rapt_stored_run *last = run;
    *last = (struct rapt_stored_run){0};
    for (int64_t rows; count > 0; count -= rows, within = 0, page++) {
        const char *row = rapt_paged_row(pages, rapt_paged_number(pages, page), within);
        rows = page_tokens - within < count ? page_tokens - within : count;
        if (last->rows > 0 && row == last->row + last->rows * pages->token_stride_bytes) {
            last->rows += rows;
            continue;
        }
        last += last->rows > 0;
        *last = (struct rapt_stored_run){row, rows};
    }
    last[1] = (struct rapt_stored_run){last->row, INT64_MAX};
}

void rapt_source_runs(const struct rapt_task *task, int side, struct rapt_span positions, struct rapt_stored_run *run) {
    if (rapt_is_paged(rapt_pages_of(&task->plan->desc, side))) {
        const struct rapt_paged pages = rapt_paged_of(task, side);
        find_runs(&pages, positions.begin - task->work.sequence.key_position, positions.end - positions.begin, run);
        return;
    }
    const struct rapt_rows rows = rapt_source_stored(task, side, positions);
    run[0] = (struct rapt_stored_run){rows.base, rows.count};
    run[1] = (struct rapt_stored_run){rows.base, INT64_MAX};
}

/* How pages are prefetched: at most so many contiguous rows of a page make a strand, at most so many strands are
 * interleaved, and at most so many bytes are in flight. */
struct habit {
    int64_t rows, bytes;
    int interleaved;
};

/* Into L2, many strands keep more requests in flight. Prefetches into L1 make the processor read ahead by itself, and
 * it follows only a few strands. */
static struct habit habit_here(void) {
    static const struct habit into_l2 = {16, 64 << 10, RAPT_STRANDS}, into_l1 = {64, 32 << 10, 2};
    return rapt_cpu_requests() == RAPT_REQUESTS_FAR_INTO_L1 ? into_l1 : into_l2;
}

void rapt_source_close_strands(struct rapt_paged_block *block, int count, int64_t bytes, int pace) {
    const struct habit habit = habit_here();
    struct rapt_strands *ahead = &block->ahead;
    *ahead = (struct rapt_strands){
        .strand = block->strand, .interleaved = habit.interleaved, .pace = pace, .bytes = bytes};
    while (ahead->interleaved > 1 && (ahead->interleaved * bytes > habit.bytes || ahead->interleaved > count))
        ahead->interleaved /= 2;
    for (; count % ahead->interleaved; count++)
        block->strand[count] = block->strand[count - 1];
    ahead->count = count;
}

/* The strands of some tokens. The last one of a page may overlap the one before it. */
static void find_strands(const struct rapt_paged *pages, int64_t token, int64_t end, int64_t row_bytes,
                         struct rapt_paged_block *block) {
    const int64_t page_tokens = pages->page_tokens;
    const bool is_dense = pages->token_stride_bytes == row_bytes;
    const int64_t rows = !is_dense ? 1 : rapt_smaller(page_tokens, habit_here().rows);
    int64_t page = token / page_tokens, within = token % page_tokens;
    int count = 0;
    for (; token < end; within = 0, page++) {
        const char *base = rapt_paged_row(pages, rapt_paged_number(pages, page), 0);
        const int64_t last = rapt_smaller(page_tokens, within + end - token);
        token += last - within;
        for (; within < last; within += rows)
            block->strand[count++] = base + rapt_smaller(within, page_tokens - rows) * pages->token_stride_bytes;
    }
    rapt_source_close_strands(block, count, rows * row_bytes, 1);
}

/* Keys to prefetch ahead. */
static int64_t lead_of(int64_t row_bytes) {
    enum { LEAST = 16 };
    const int64_t bytes = habit_here().bytes;
    int64_t keys = RAPT_BLOCK_KEYS;
    while (keys > LEAST && keys * row_bytes > bytes)
        keys /= 2;
    return keys;
}

/* All of some positions of a block at once; for turns, with the runs of as many more keys as the longest turn has. */
struct rapt_rows rapt_source_paged(struct rapt_source *source, int side, struct rapt_span positions) {
    const struct rapt_task *task = source->task;
    const struct rapt_paged pages = rapt_paged_of(task, side);
    struct rapt_paged_block *block = &source->block[side];
    const int64_t origin = task->work.sequence.key_position, token = positions.begin - origin;
    const int64_t count = positions.end - positions.begin;
    const int64_t row_bytes = rapt_format_row_bytes(task->plan->format[side], source->side[side].dim);
    const bool prefetches = !source->in_turns && !rapt_is_in_keys(task->plan, side);
    const int64_t lead = source->in_turns ? 2 * task->kind->turn_keys : lead_of(row_bytes);
    const int64_t end = rapt_smaller(token + count + lead, source->visible.end - origin);
    find_runs(&pages, token, source->in_turns ? end - token : count, block->run);
    if (prefetches)
        find_strands(&pages, rapt_smaller(token + lead, end), end, row_bytes, block);
    return (struct rapt_rows){.base = block->run->row,
                              .first = block->run->rows,
                              .runs = block->run + 1,
                              .ahead = prefetches ? &block->ahead : NULL,
                              .stride_bytes = pages.token_stride_bytes,
                              .count = count,
                              .format = task->plan->format[side],
                              .streams = true};
}
