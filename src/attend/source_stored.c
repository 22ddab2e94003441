/* SPDX-License-Identifier: MIT
 * Where stored keys and values lie: runs of rows at one stride, and single rows. */
#include "attend/paged.h"
#include "attend/source.h"

/* The scales of rows from a token on. */
static struct rapt_scales scales_of(const rapt_tensor *tensor, int64_t batch, int64_t head, int64_t token) {
    if (!tensor->scales)
        return (struct rapt_scales){0};
    const int64_t bytes = batch * tensor->scale_batch_stride_bytes + head * tensor->scale_head_stride_bytes +
                          token * tensor->scale_token_stride_bytes;
    const int8_t *zero_points = tensor->zero_points;
    return (struct rapt_scales){
        .scales = (const float *)(const void *)((const char *)tensor->scales + bytes),
        .zero_points = zero_points ? zero_points + bytes / (int64_t)sizeof(float) : NULL,
        .stride_bytes = tensor->scale_token_stride_bytes,
        .group = tensor->scale_group};
}

/* Sets which rows to prefetch beside those of a run: whole pages ahead, or some rows if pages are long. The run is cut
 * where these rows change pages. */
static void lead_to(const struct rapt_task *task, int side, int64_t token, struct rapt_rows *rows) {
    enum { LEAD_BYTES = 24 << 10 };
    const struct rapt_plan_body *plan = task->plan;
    const struct rapt_paged pages = rapt_paged_of(task, side);
    const int64_t bytes = rapt_format_row_bytes(plan->format[side], rapt_dim_of(plan, side));
    const int64_t least = rapt_is_in_keys(plan, side) ? RAPT_BLOCK_KEYS : LEAD_BYTES / bytes + 1;
    const int64_t page_tokens = pages.page_tokens;
    const int64_t lead = least < page_tokens ? least : rapt_round_up(least, page_tokens);
    const int64_t ahead = token + lead, page = ahead / page_tokens, within = ahead % page_tokens;
    if (ahead >= task->work.sequence.kv_length)
        return;
    const char *row = rapt_paged_row(&pages, rapt_paged_number(&pages, page), within);
    rows->streams = true;
    rows->lead_bytes = (int64_t)((intptr_t)row - (intptr_t)rows->base);
    if (rows->count > page_tokens - within)
        rows->count = page_tokens - within;
}

/* From a token on to the end of its page, and on into pages that follow in memory as they do in the table. */
static struct rapt_rows paged_rows(const struct rapt_task *task, int side, int64_t token, int64_t count) {
    const struct rapt_plan_body *plan = task->plan;
    const struct rapt_paged pages = rapt_paged_of(task, side);
    const int64_t page = token / pages.page_tokens, within = token % pages.page_tokens;
    const int64_t number = rapt_paged_number(&pages, page);
    struct rapt_rows rows = {.base = rapt_paged_row(&pages, number, within),
                             .stride_bytes = pages.token_stride_bytes,
                             .count = pages.page_tokens - within,
                             .format = plan->format[side],
                             .scales = scales_of(rapt_tensor_of(plan, side), number, task->kv_head, within)};
    for (int64_t next = 1; plan->joins[side] && rows.count < count; next++, rows.count += pages.page_tokens)
        if (rapt_paged_number(&pages, page + next) != number + next)
            break;
    rows.count = rows.count < count ? rows.count : count;
    if (task->kind->streams)
        lead_to(task, side, token, &rows);
    return rows;
}

struct rapt_rows rapt_source_stored(const struct rapt_task *task, int side, struct rapt_span positions) {
    const rapt_page_table *pages = rapt_pages_of(&task->plan->desc, side);
    const rapt_tensor *tensor = rapt_tensor_of(task->plan, side);
    const struct rapt_sequence *sequence = &task->work.sequence;
    const int64_t position = positions.begin - sequence->key_position, count = positions.end - positions.begin;
    if (rapt_is_paged(pages))
        return paged_rows(task, side, position, count);
    const bool in_row = pages->kind == RAPT_PAGES_ROW;
    const int64_t first = sequence->kv_first[side];
    const int64_t batch = in_row ? first : task->work.batch, token = in_row ? position : first + position;
    return (struct rapt_rows){.base = rapt_row(tensor, batch, task->kv_head, token),
                              .stride_bytes = tensor->token_stride_bytes,
                              .count = count,
                              .format = task->plan->format[side],
                              .streams = task->kind->streams,
                              .lead_bytes = rapt_is_in_keys(task->plan, side)
                                                ? RAPT_BLOCK_KEYS * tensor->token_stride_bytes
                                                : 0,
                              .scales = scales_of(tensor, batch, task->kv_head, token)};
}

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
    const struct rapt_paged pages = rapt_paged_of(task, side);
    int64_t page = token / pages.page_tokens, within = token % pages.page_tokens;
    for (; count > 0; page++, within = 0) {
        const char *row = rapt_paged_row(&pages, rapt_paged_number(&pages, page), within);
        const int64_t left = pages.page_tokens - within, n = left < count ? left : count;
        find_at_stride(rows, row, pages.token_stride_bytes, n);
        rows += n;
        count -= n;
    }
}

void rapt_source_find(const struct rapt_task *task, int side, struct rapt_span positions, const char **rows) {
    if (rapt_is_paged(rapt_pages_of(&task->plan->desc, side))) {
        const int64_t token = positions.begin - task->work.sequence.key_position;
        find_in_pages(task, side, token, positions.end - positions.begin, rows);
        return;
    }
    const struct rapt_rows run = rapt_source_stored(task, side, positions);
    find_at_stride(rows, run.base, run.stride_bytes, run.count);
}
