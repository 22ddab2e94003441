/* SPDX-License-Identifier: MIT */
#include "attend/source.h"

#include "cpu.h"
#include "plan/pages.h"
#include "plan/turns.h"

/* Blocks take longer to widen than to read, so pages that fill two panels of keys are taken one by one, or in turns. */
static bool takes_runs(const struct rapt_task *task, int side) {
    enum { PANELS_KEYS = 64 };
    const struct rapt_plan_body *a = task->attention;
    const rapt_page_table *table = rapt_pages_of(&a->desc, side);
    const bool is_slow = rapt_format_info(a->format[side])->elements > 1;
    return rapt_is_paged(table) && rapt_takes_runs(a, task->kind, side) &&
           (!is_slow || table->page_tokens < PANELS_KEYS ||
            rapt_takes_turns(a, &task->work, task->rows, task->work.heads));
}

void rapt_source_open(struct rapt_source *source, const struct rapt_task *task, struct rapt_span visible) {
    source->task = task;
    source->visible = visible;
    source->expected.count = 0;
    source->in_turns = false;
    source->shares_keys = rapt_is_in_keys(task->attention, RAPT_VALUES) && task->work.stages[RAPT_KEYS] &&
                          task->work.stages[RAPT_VALUES] && task->kind->piece_keys >= RAPT_BLOCK_KEYS;
    for (int i = 0; i < RAPT_SIDES; i++) {
        struct rapt_source_side *side = &source->side[i];
        side->dim = rapt_dim_of(task->attention, i);
        side->staged = task->work.stages[i];
        side->here = 0;
        side->in_pages = takes_runs(task, i);
        const int64_t window_floats = rapt_staged_keys(task->kind, i, side->dim) * side->dim;
        for (int w = 0; side->staged && w < RAPT_WINDOWS; w++)
            side->window[w] = (struct rapt_window){.staging = {.rows = task->staged[i] + w * window_floats,
                                                               .dim = (int)side->dim,
                                                               .format = task->attention->format[i]}};
    }
}

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

/* Where the rows lie that are to be prefetched beside those of a run: whole pages ahead, or so many rows where pages
 * are long. The run is cut where these rows change pages. */
static void lead_to(const struct rapt_task *task, int side, int64_t token, struct rapt_rows *rows) {
    enum { LEAD_BYTES = 24 << 10 };
    const struct rapt_plan_body *a = task->attention;
    const rapt_page_table *table = rapt_pages_of(&a->desc, side);
    const rapt_tensor *tensor = rapt_tensor_of(a, side);
    const struct rapt_sequence *sequence = &task->work.sequence;
    const int64_t bytes = rapt_format_row_bytes(a->format[side], rapt_dim_of(a, side));
    const int64_t least = rapt_is_in_keys(a, side) ? RAPT_BLOCK_KEYS : LEAD_BYTES / bytes + 1;
    const int64_t lead = least < table->page_tokens
                             ? least
                             : (least + table->page_tokens - 1) / table->page_tokens * table->page_tokens;
    const int64_t ahead = token + lead, page = ahead / table->page_tokens, within = ahead % table->page_tokens;
    if (ahead >= sequence->kv_length)
        return;
    const int64_t number = rapt_page_at(table, task->work.batch, sequence->kv_first[side], page);
    const char *row = rapt_row(tensor, 0, task->kv_head, within) + number * tensor->page_stride_bytes;
    rows->streams = true;
    rows->lead_bytes = (int64_t)((intptr_t)row - (intptr_t)rows->base);
    if (rows->count > table->page_tokens - within)
        rows->count = table->page_tokens - within;
}

/* From a token on to the end of its page, and on into pages that follow in memory as they do in the table. */
static struct rapt_rows paged_rows(const struct rapt_task *task, int side, int64_t token, int64_t count) {
    const struct rapt_plan_body *a = task->attention;
    const rapt_page_table *table = rapt_pages_of(&a->desc, side);
    const rapt_tensor *tensor = rapt_tensor_of(a, side);
    const int64_t batch = task->work.batch, first = task->work.sequence.kv_first[side];
    const int64_t page = token / table->page_tokens, within = token % table->page_tokens;
    const int64_t number = rapt_page_at(table, batch, first, page);
    struct rapt_rows rows = {.base = rapt_row(tensor, 0, task->kv_head, within) + number * tensor->page_stride_bytes,
                             .stride_bytes = tensor->token_stride_bytes,
                             .count = table->page_tokens - within,
                             .format = a->format[side],
                             .scales = scales_of(tensor, number, task->kv_head, within)};
    for (int64_t next = 1; a->joins[side] && rows.count < count; next++, rows.count += table->page_tokens)
        if (rapt_page_at(table, batch, first, page + next) != number + next)
            break;
    rows.count = rows.count < count ? rows.count : count;
    if (task->kind->streams)
        lead_to(task, side, token, &rows);
    return rows;
}

struct rapt_rows rapt_source_stored(const struct rapt_task *task, int side, struct rapt_span positions) {
    const rapt_page_table *pages = rapt_pages_of(&task->attention->desc, side);
    const rapt_tensor *tensor = rapt_tensor_of(task->attention, side);
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
                              .format = task->attention->format[side],
                              .streams = task->kind->streams,
                              .lead_bytes = rapt_is_in_keys(task->attention, side)
                                                ? RAPT_BLOCK_KEYS * tensor->token_stride_bytes
                                                : 0,
                              .scales = scales_of(tensor, batch, task->kv_head, token)};
}

/* Where pages are: what the lookup of each takes. */
struct pages {
    const rapt_page_table *table;
    const char *base;       /* token 0 of page 0 */
    int64_t batch, first, page_stride_bytes, token_stride_bytes;
};

static struct pages pages_of(const struct rapt_task *task, int side) {
    const rapt_tensor *tensor = rapt_tensor_of(task->attention, side);
    return (struct pages){.table = rapt_pages_of(&task->attention->desc, side),
                          .base = rapt_row(tensor, 0, task->kv_head, 0),
                          .batch = task->work.batch,
                          .first = task->work.sequence.kv_first[side],
                          .page_stride_bytes = tensor->page_stride_bytes,
                          .token_stride_bytes = tensor->token_stride_bytes};
}

static const char *page_at(const struct pages *pages, int64_t page) {
    return pages->base + rapt_page_at(pages->table, pages->batch, pages->first, page) * pages->page_stride_bytes;
}

/* The runs of some tokens, and one more that is never read. Pages that are neighbours may continue each other. */
static void find_runs(const struct pages *pages, int64_t token, int64_t count, struct rapt_stored_run *run) {
    const int64_t page_tokens = pages->table->page_tokens;
    int64_t page = token / page_tokens, within = token % page_tokens;
    struct rapt_stored_run *last = run;
    *last = (struct rapt_stored_run){0};
    for (int64_t rows; count > 0; count -= rows, within = 0, page++) {
        const char *row = page_at(pages, page) + within * pages->token_stride_bytes;
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
    if (rapt_is_paged(rapt_pages_of(&task->attention->desc, side))) {
        const struct pages pages = pages_of(task, side);
        find_runs(&pages, positions.begin - task->work.sequence.key_position, positions.end - positions.begin, run);
        return;
    }
    const struct rapt_rows rows = rapt_source_stored(task, side, positions);
    run[0] = (struct rapt_stored_run){rows.base, rows.count};
    run[1] = (struct rapt_stored_run){rows.base, INT64_MAX};
}

/* How pages are prefetched: rows that lie one after the other in a page make a strand, if they are no more than so
 * many; so many strands take turns at most, and so many bytes are under way. */
struct habit {
    int64_t rows, bytes;
    int beside;
};

/* Into L2, many strands keep more requests under way. Requests into L1 teach the processor to go on by itself, and it
 * follows a few strands only. */
static struct habit habit_here(void) {
    static const struct habit into_l2 = {16, 64 << 10, RAPT_STRANDS}, into_l1 = {64, 32 << 10, 2};
    return rapt_cpu_requests() == RAPT_REQUESTS_FAR_INTO_L1 ? into_l1 : into_l2;
}

static int64_t smaller(int64_t a, int64_t b) { return a < b ? a : b; }

void rapt_source_close_strands(struct rapt_paged_block *block, int count, int64_t bytes, int pace) {
    const struct habit habit = habit_here();
    struct rapt_strands *ahead = &block->ahead;
    *ahead = (struct rapt_strands){.strand = block->strand, .bytes = bytes, .beside = habit.beside, .pace = pace};
    while (ahead->beside > 1 && (ahead->beside * bytes > habit.bytes || ahead->beside > count))
        ahead->beside /= 2;
    for (; count % ahead->beside; count++)
        block->strand[count] = block->strand[count - 1];
    ahead->count = count;
}

/* The strands of some tokens. The last one of a page may overlap the one before it. */
static void find_strands(const struct pages *pages, int64_t token, int64_t end, int64_t row_bytes,
                         struct rapt_paged_block *block) {
    const int64_t page_tokens = pages->table->page_tokens;
    const bool is_dense = pages->token_stride_bytes == row_bytes;
    const int64_t rows = !is_dense ? 1 : smaller(page_tokens, habit_here().rows);
    int64_t page = token / page_tokens, within = token % page_tokens;
    int count = 0;
    for (; token < end; within = 0, page++) {
        const char *base = page_at(pages, page);
        const int64_t last = smaller(page_tokens, within + end - token);
        token += last - within;
        for (; within < last; within += rows)
            block->strand[count++] = base + smaller(within, page_tokens - rows) * pages->token_stride_bytes;
    }
    rapt_source_close_strands(block, count, rows * row_bytes, 1);
}

/* Keys that are fetched ahead. */
static int64_t lead_of(int64_t row_bytes) {
    enum { LEAST = 16 };
    const int64_t bytes = habit_here().bytes;
    int64_t keys = RAPT_BLOCK_KEYS;
    while (keys > LEAST && keys * row_bytes > bytes)
        keys /= 2;
    return keys;
}

/* All of some positions of a block at once; in turns with the runs of as many keys more as a turn has at most. */
static struct rapt_rows paged_block(struct rapt_source *source, int side, struct rapt_span positions) {
    const struct rapt_task *task = source->task;
    const struct pages pages = pages_of(task, side);
    struct rapt_paged_block *block = &source->block[side];
    const int64_t origin = task->work.sequence.key_position, token = positions.begin - origin;
    const int64_t count = positions.end - positions.begin;
    const int64_t row_bytes = rapt_format_row_bytes(task->attention->format[side], source->side[side].dim);
    const bool lists = !source->in_turns && !rapt_is_in_keys(task->attention, side);
    const int64_t lead = source->in_turns ? 2 * task->kind->turn_keys : lead_of(row_bytes);
    const int64_t end = smaller(token + count + lead, source->visible.end - origin);
    find_runs(&pages, token, source->in_turns ? end - token : count, block->run);
    if (lists)
        find_strands(&pages, smaller(token + lead, end), end, row_bytes, block);
    return (struct rapt_rows){.base = block->run->row,
                              .first = block->run->rows,
                              .runs = block->run + 1,
                              .ahead = lists ? &block->ahead : NULL,
                              .stride_bytes = pages.token_stride_bytes,
                              .count = count,
                              .format = task->attention->format[side],
                              .streams = true};
}

void rapt_source_stage(const struct rapt_source *source, int side, const struct rapt_rows *rows, float *into) {
    const struct rapt_stage_args args = {.into = into,
                                         .from = rows->base,
                                         .from_stride_bytes = rows->stride_bytes,
                                         .rows = rows->count,
                                         .dim = (int)source->side[side].dim,
                                         .format = source->task->attention->format[side],
                                         .streams = rows->streams,
                                         .lead_bytes = rows->lead_bytes,
                                         .scales = rows->scales};
    source->task->table->stage(&args);
}

/* Stages the rows that a window still lacks. */
static void complete(const struct rapt_source *source, int side, struct rapt_window *window) {
    struct rapt_staging *staging = &window->staging;
    while (staging->ready < rapt_span_count(window->keys)) {
        const struct rapt_span missing = {window->keys.begin + staging->ready, window->keys.end};
        const struct rapt_rows rows = rapt_source_stored(source->task, side, missing);
        rapt_source_stage(source, side, &rows, staging->rows + staging->ready * staging->dim);
        staging->ready += rows.count;
    }
}

static bool holds(const struct rapt_window *window, int64_t position) {
    return position >= window->keys.begin && position < window->keys.end;
}

/* Makes the window that holds a position the current one, if there is one. */
static void turn_to(struct rapt_source_side *side, int64_t position) {
    if (!holds(&side->window[side->here], position) && holds(&side->window[!side->here], position))
        side->here = !side->here;
}

/* The piece of the task's keys that a position belongs to; pieces divide blocks. */
static struct rapt_span piece_of(const struct rapt_source *source, int64_t position) {
    const int64_t keys = source->task->kind->piece_keys, begin = position / keys * keys;
    return rapt_intersect(source->visible, (struct rapt_span){begin, begin + keys});
}

struct rapt_rows rapt_source_rows(struct rapt_source *source, int side, struct rapt_span positions) {
    if (side == RAPT_VALUES && source->shares_keys) {
        struct rapt_rows rows = rapt_source_rows(source, RAPT_KEYS, positions);
        rows.base += source->task->attention->values_in_keys * (int64_t)sizeof(float);
        return rows;
    }
    struct rapt_source_side *from = &source->side[side];
    RAPT_ASSUME(positions.begin < positions.end && positions.begin >= source->visible.begin &&
                positions.end <= source->visible.end);
    if (!from->staged && from->in_pages)
        return paged_block(source, side, positions);
    if (!from->staged)
        return rapt_source_stored(source->task, side, positions);
    turn_to(from, positions.begin);
    struct rapt_window *window = &from->window[from->here];
    if (!holds(window, positions.begin)) {
        window->keys = piece_of(source, positions.begin);
        window->staging.ready = 0;
    }
    complete(source, side, window);
    const struct rapt_span rows = rapt_intersect(window->keys, positions);
    return (struct rapt_rows){
        .base = (const char *)(window->staging.rows + (rows.begin - window->keys.begin) * from->dim),
        .stride_bytes = from->dim * (int64_t)sizeof(float),
        .count = rows.end - rows.begin,
        .format = RAPT_FORMAT_F32};
}

struct rapt_staging *rapt_source_ahead(struct rapt_source *source, int i, int64_t base, int64_t next) {
    struct rapt_source_side *side = &source->side[i];
    const struct rapt_tile_kind *kind = source->task->kind;
    if (!side->staged || (i == RAPT_VALUES && source->shares_keys) || kind->piece_keys < RAPT_BLOCK_KEYS ||
        kind->packed_bytes)
        return NULL;
    turn_to(side, rapt_block_of(source->visible, base).begin);
    struct rapt_window *window = &side->window[!side->here];
    const struct rapt_span keys = rapt_block_of(source->visible, next);
    if (window->keys.begin != keys.begin || window->keys.end != keys.end) {
        window->keys = keys;
        window->staging.ready = 0;
    }
    return &window->staging;
}
