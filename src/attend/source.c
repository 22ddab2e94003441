/* SPDX-License-Identifier: MIT
 * Keys and values as tile kinds take them: in place, converted ahead of their use, or packed. */
#include "attend/source.h"

#include "assume.h"
#include "plan/turns.h"

/* Formats with blocks take longer to widen than to read, so pages of two panels of keys go one by one, or in turns. */
static bool takes_runs(const struct rapt_task *task, int side) {
    enum { PANELS_KEYS = 64 };
    const struct rapt_plan_body *plan = task->plan;
    const rapt_page_table *table = rapt_pages_of(&plan->desc, side);
    const bool is_slow = rapt_format_info(plan->format[side])->elements > 1;
    return rapt_is_paged(table) && rapt_takes_runs(plan, task->kind, side) &&
           (!is_slow || table->page_tokens < PANELS_KEYS ||
            rapt_takes_turns(plan, &task->work, task->rows, task->work.heads));
}

void rapt_source_open(struct rapt_source *source, const struct rapt_task *task, struct rapt_span visible) {
    source->task = task;
    source->visible = visible;
    source->expected.count = 0;
    source->in_turns = false;
    source->shares_keys = rapt_is_in_keys(task->plan, RAPT_VALUES) && task->work.stages[RAPT_KEYS] &&
                          task->work.stages[RAPT_VALUES] && task->kind->piece_keys >= RAPT_BLOCK_KEYS;
    for (int i = 0; i < RAPT_SIDES; i++) {
        struct rapt_source_side *side = &source->side[i];
        side->dim = rapt_dim_of(task->plan, i);
        side->staged = task->work.stages[i];
        side->here = 0;
        side->in_pages = takes_runs(task, i);
        const int64_t buffer_floats = rapt_staged_keys(task->kind, i, side->dim) * side->dim;
        for (int w = 0; side->staged && w < RAPT_STAGING_BUFFERS; w++)
            side->buffer[w] = (struct rapt_staging_buffer){.staging = {.rows = task->staged[i] + w * buffer_floats,
                                                                       .dim = (int)side->dim,
                                                                       .format = task->plan->format[i]}};
    }
}

void rapt_source_stage(const struct rapt_source *source, int side, const struct rapt_rows *rows, float *into) {
    const struct rapt_stage_args args = {.into = into,
                                         .from = rows->base,
                                         .from_stride_bytes = rows->stride_bytes,
                                         .rows = rows->count,
                                         .dim = (int)source->side[side].dim,
                                         .format = source->task->plan->format[side],
                                         .streams = rows->streams,
                                         .lead_bytes = rows->lead_bytes,
                                         .scales = rows->scales};
    source->task->table->stage(&args);
}

/* Stages the rows that a buffer still lacks. */
static void complete(const struct rapt_source *source, int side, struct rapt_staging_buffer *buffer) {
    struct rapt_staging *staging = &buffer->staging;
    while (staging->ready < rapt_span_count(buffer->keys)) {
        const struct rapt_span missing = {buffer->keys.begin + staging->ready, buffer->keys.end};
        const struct rapt_rows rows = rapt_source_stored(source->task, side, missing);
        rapt_source_stage(source, side, &rows, staging->rows + staging->ready * staging->dim);
        staging->ready += rows.count;
    }
}

static bool holds(const struct rapt_staging_buffer *buffer, int64_t position) {
    return position >= buffer->keys.begin && position < buffer->keys.end;
}

/* Makes the buffer that holds a position the current one, if there is one. */
static void use_buffer_of(struct rapt_source_side *side, int64_t position) {
    if (!holds(&side->buffer[side->here], position) && holds(&side->buffer[!side->here], position))
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
        rows.base += source->task->plan->values_in_keys * (int64_t)sizeof(float);
        return rows;
    }
    struct rapt_source_side *from = &source->side[side];
    RAPT_ASSUME(positions.begin < positions.end && positions.begin >= source->visible.begin &&
                positions.end <= source->visible.end);
    if (!from->staged && from->in_pages)
        return rapt_source_paged(source, side, positions);
    if (!from->staged)
        return rapt_source_stored(source->task, side, positions);
    use_buffer_of(from, positions.begin);
    struct rapt_staging_buffer *buffer = &from->buffer[from->here];
    if (!holds(buffer, positions.begin)) {
        buffer->keys = piece_of(source, positions.begin);
        buffer->staging.ready = 0;
    }
    complete(source, side, buffer);
    const struct rapt_span rows = rapt_intersect(buffer->keys, positions);
    return (struct rapt_rows){
        .base = (const char *)(buffer->staging.rows + (rows.begin - buffer->keys.begin) * from->dim),
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
    use_buffer_of(side, rapt_block_of(source->visible, base).begin);
    struct rapt_staging_buffer *buffer = &side->buffer[!side->here];
    const struct rapt_span keys = rapt_block_of(source->visible, next);
    if (buffer->keys.begin != keys.begin || buffer->keys.end != keys.end) {
        buffer->keys = keys;
        buffer->staging.ready = 0;
    }
    return &buffer->staging;
}

struct rapt_packed rapt_source_packed(struct rapt_source *source, int i, int64_t base) {
    const struct rapt_task *task = source->task;
    const struct rapt_tile_kind *kind = task->kind;
    struct rapt_source_side *side = &source->side[i];
    struct rapt_staging_buffer *buffer = &side->buffer[base / RAPT_HALF_KEYS % RAPT_STAGING_BUFFERS];
    const struct rapt_span keys = rapt_intersect(source->visible, (struct rapt_span){base, base + RAPT_HALF_KEYS});
    RAPT_ASSUME(base % RAPT_HALF_KEYS == 0 && keys.begin < keys.end);
    if (buffer->keys.begin != keys.begin || buffer->keys.end != keys.end) {
        const char *rows[RAPT_HALF_KEYS + RAPT_STEP] = {NULL};
        const struct rapt_span sought = {keys.begin, base + RAPT_HALF_KEYS + RAPT_STEP};
        rapt_source_find(task, i, rapt_intersect(source->visible, sought), rows + (keys.begin - base));
        buffer->found = kind->pack_half[i](buffer->staging.rows, rows, (int)side->dim, task->plan->format[i]);
        buffer->keys = keys;
    }
    return (struct rapt_packed){buffer->staging.rows, buffer->found};
}
