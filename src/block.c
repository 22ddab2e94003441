/* SPDX-License-Identifier: MIT */
#include "block.h"

static int key_of(const struct rapt_block *b, int64_t position) { return (int)(position - b->base); }

static void score(const struct rapt_block *b) {
    const struct rapt_task *task = b->task;
    struct rapt_score_args args = {.query = b->panel,
                                   .scores = task->scores,
                                   .rows = b->rows,
                                   .head_dim = (int)task->attention->desc.head_dim,
                                   .factor = task->attention->score_factor,
                                   .spans = rapt_spans_of(b->mask),
                                   .errands = b->of_score};
    for (int64_t at = b->keys.begin; at < b->keys.end; at += args.key_end - args.key_begin) {
        const struct rapt_span rest = {at, b->keys.end};
        const struct rapt_rows keys = rapt_source_rows(b->source, RAPT_KEYS, rest);
        args.key = keys.base;
        args.key_stride_bytes = keys.stride_bytes;
        args.key_format = keys.format;
        args.streams = keys.streams;
        args.lead_bytes = keys.lead_bytes;
        args.key_begin = key_of(b, at);
        args.key_end = key_of(b, at + keys.count);
        task->kind->score(&args);
    }
}

/* Group by group of rows where logits come first, so that the softmax finds them in L1. */
static void softmax(const struct rapt_block *b) {
    const struct rapt_task *task = b->task;
    const struct rapt_tile_kind *kind = task->kind;
    const bool acts = b->mask->parts & ~(unsigned)(RAPT_PART_KEEP | RAPT_PART_FILL);
    const int begin = key_of(b, b->keys.begin), end = key_of(b, b->keys.end), step = acts ? kind->row_group : b->rows;
    for (int row = 0; row < b->rows; row += step) {
        const int end_row = b->rows - row < step ? b->rows : row + step;
        if (acts)
            kind->logits(task->scores, row, end_row, begin, end, b->mask);
        kind->softmax(task->scores, row, end_row, begin, end, rapt_spans_of(b->mask), b->state.m, b->state.l,
                      task->alpha, b->of_weigh);
    }
}

/* o of some rows takes the values of the positions keys. */
static void weigh(const struct rapt_block *b, int first, int rows, struct rapt_span keys, bool fresh,
                  const float *alpha, const struct rapt_visible_spans *spans, struct rapt_errands *errands) {
    const struct rapt_task *task = b->task;
    const struct rapt_state state = rapt_state_from(b->state, first);
    static const float ones[RAPT_MAX_TILE_ROWS] = {
        1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1,
        1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1};
    struct rapt_weigh_args args = {.probabilities = task->scores,
                                   .alpha = alpha,
                                   .spans = spans,
                                   .o = state.o,
                                   .o_stride = state.o_stride,
                                   .first_row = first,
                                   .rows = rows,
                                   .value_dim = (int)task->attention->desc.value_dim,
                                   .key_begin = key_of(b, keys.begin),
                                   .key_end = key_of(b, keys.begin),
                                   .fresh = fresh,
                                   .errands = errands};
    if (keys.begin == keys.end)
        task->kind->weigh(&args);
    for (int64_t at = keys.begin; at < keys.end; args.fresh = false, args.alpha = ones) {
        const struct rapt_span rest = {at, keys.end};
        const struct rapt_rows values = rapt_source_rows(b->source, RAPT_VALUES, rest);
        args.value = values.base;
        args.value_stride_bytes = values.stride_bytes;
        args.value_format = values.format;
        args.streams = values.streams;
        args.lead_bytes = values.lead_bytes;
        args.key_begin = key_of(b, at);
        args.key_end = key_of(b, at + values.count);
        task->kind->weigh(&args);
        at += values.count;
    }
}

/* Each row takes its runs of attended keys only. */
static void weigh_attended(const struct rapt_block *b) {
    static const float one = 1.0f;
    const int end = key_of(b, b->keys.end);
    for (int row = 0; row < b->rows; row++) {
        const struct rapt_span nothing = {b->keys.begin, b->keys.begin};
        weigh(b, row, 1, nothing, b->fresh, b->task->alpha + row, NULL, NULL);
        for (int key = key_of(b, b->keys.begin), run; key < end; key = run + 1) {
            for (run = key; run < end && rapt_is_attended(b->mask, row, run);)
                run++;
            const struct rapt_span attended = {b->base + key, b->base + run};
            if (run > key)
                weigh(b, row, 1, attended, false, &one, NULL, NULL);
        }
    }
}

void rapt_block_by_steps(const struct rapt_block *b) {
    const struct rapt_task *task = b->task;
    score(b);
    softmax(b);
    if (b->mask->parts & RAPT_PART_KEEP)
        task->kind->drop(task->scores, b->rows, key_of(b, b->keys.begin), key_of(b, b->keys.end), b->mask);
    if (b->careful && b->seen == RAPT_SEES_SOME)
        weigh_attended(b);
    else
        weigh(b, 0, b->rows, b->keys, b->fresh, task->alpha, rapt_spans_of(b->mask), b->of_weigh);
}
