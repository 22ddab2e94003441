/* SPDX-License-Identifier: MIT */
#include "source.h"

void rapt_source_open(struct rapt_source *source, const struct rapt_task *task, struct rapt_span visible) {
    source->task = task;
    source->visible = visible;
    for (int i = 0; i < RAPT_SIDES; i++) {
        struct rapt_source_side *side = &source->side[i];
        *side = (struct rapt_source_side){.tensor = rapt_tensor_of(task->attention, i),
                                          .dim = rapt_dim_of(task->attention, i),
                                          .staged = task->work.stages[i]};
        const int64_t window_bytes = task->kind->piece_keys * side->dim * (int64_t)sizeof(float);
        for (int w = 0; w < RAPT_WINDOWS; w++)
            side->window[w].rows = task->staged[i] + w * window_bytes;
    }
}

struct rapt_rows rapt_source_stored(const struct rapt_task *task, int side, struct rapt_span positions) {
    const rapt_tensor *tensor = rapt_tensor_of(task->attention, side);
    const int64_t token = positions.begin - task->work.sequence.key_position;
    return (struct rapt_rows){.base = rapt_row(tensor, task->work.batch, task->kv_head, token),
                              .stride_bytes = tensor->token_stride_bytes,
                              .count = positions.end - positions.begin,
                              .streams = task->kind->streams};
}

/* Stages what is missing of the first `count` keys of a window. */
static void stage(const struct rapt_source *source, int side, struct rapt_window *window, int64_t count) {
    const struct rapt_source_side *from = &source->side[side];
    while (window->ready < count) {
        const struct rapt_span missing = {window->keys.begin + window->ready, window->keys.begin + count};
        const struct rapt_rows rows = rapt_source_stored(source->task, side, missing);
        const struct rapt_stage_args args = {
            .into = (float *)(void *)(window->rows + window->ready * from->dim * (int64_t)sizeof(float)),
            .from = rows.base,
            .from_stride_bytes = rows.stride_bytes,
            .rows = rows.count,
            .dim = (int)from->dim,
            .streams = rows.streams};
        source->task->table->stage[source->task->attention->format[side]](&args);
        window->ready += rows.count;
    }
}

static bool holds(const struct rapt_window *window, int64_t position) {
    return position >= window->keys.begin && position < window->keys.end;
}

/* The piece of the task's keys that a position belongs to; pieces divide blocks. */
static struct rapt_span piece_of(const struct rapt_source *source, int64_t position) {
    const int64_t keys = source->task->kind->piece_keys, begin = position / keys * keys;
    return rapt_intersect(source->visible, (struct rapt_span){begin, begin + keys});
}

struct rapt_rows rapt_source_rows(struct rapt_source *source, int side, struct rapt_span positions) {
    struct rapt_source_side *from = &source->side[side];
    RAPT_ASSUME(positions.begin < positions.end && positions.begin >= source->visible.begin &&
                positions.end <= source->visible.end);
    if (!from->staged)
        return rapt_source_stored(source->task, side, positions);
    if (!holds(&from->window[from->here], positions.begin) && holds(&from->window[!from->here], positions.begin))
        from->here = !from->here;
    struct rapt_window *window = &from->window[from->here];
    if (!holds(window, positions.begin)) {
        window->keys = piece_of(source, positions.begin);
        window->ready = 0;
    }
    stage(source, side, window, rapt_span_count(window->keys));
    const struct rapt_span rows = rapt_intersect(window->keys, positions);
    const int64_t row_bytes = from->dim * (int64_t)sizeof(float);
    return (struct rapt_rows){.base = window->rows + (rows.begin - window->keys.begin) * row_bytes,
                              .stride_bytes = row_bytes,
                              .count = rows.end - rows.begin};
}

void rapt_source_ahead(struct rapt_source *source, int64_t next_block, int part, int parts) {
    const struct rapt_span keys = rapt_block_of(source->visible, next_block);
    for (int i = 0; i < RAPT_SIDES; i++) {
        struct rapt_source_side *side = &source->side[i];
        struct rapt_window *window = &side->window[!side->here];
        if (!side->staged || source->task->kind->piece_keys < RAPT_BLOCK_KEYS)
            continue;
        if (window->keys.begin != keys.begin || window->keys.end != keys.end)
            window->keys = keys, window->ready = 0;
        stage(source, i, window, rapt_span_count(keys) * (part + 1) / parts);
    }
}
