/* SPDX-License-Identifier: MIT */
#include "attend/block.h"

/* Sets every field: otherwise compilers would clear the whole struct first. */
static struct rapt_score_args score_args(const struct rapt_block *b, float *scores) {
    const struct rapt_task *task = b->task;
    return (struct rapt_score_args){.query = b->panel,
                                    .key = NULL,
                                    .key_stride_bytes = 0,
                                    .key_format = RAPT_FORMAT_F32,
                                    .scales = {NULL, NULL, 0, 0},
                                    .scores = scores,
                                    .rows = b->rows,
                                    .head_dim = (int)task->plan->desc.head_dim,
                                    .key_begin = 0,
                                    .key_end = 0,
                                    .factor = task->plan->score_factor,
                                    .streams = false,
                                    .exceeds_caches = task->plan->exceeds_caches,
                                    .lead_bytes = 0,
                                    .heads = 1,
                                    .key_rows = 0,
                                    .runs = NULL,
                                    .ahead = NULL,
                                    .spans = NULL,
                                    .errands = NULL};
}

static void score(const struct rapt_block *b) {
    struct rapt_score_args args = score_args(b, b->scores);
    args.spans = rapt_spans_of(b->mask);
    args.errands = b->of_score;
    for (int key = b->key_begin; key < b->key_end; key = args.key_end) {
        const struct rapt_rows keys = rapt_source_numbered(b->source, RAPT_KEYS, b->base, b->mask, key, b->key_end);
        rapt_take_keys(&args, &keys, key);
        b->task->kind->score(&args);
    }
}

/* All keys of the next block, which are a single run of rows. */
static struct rapt_score_args next_args(const struct rapt_block *b) {
    const struct rapt_next_scores *next = &b->next;
    struct rapt_score_args args = score_args(b, next->scores);
    const struct rapt_rows keys = rapt_source_rows(
        b->source, RAPT_KEYS, (struct rapt_span){next->base + next->key_begin, next->base + next->key_end});
    rapt_take_keys(&args, &keys, next->key_begin);
    RAPT_ASSUME(args.key_end == next->key_end);
    return args;
}

/* Whether score_beside sums l, which is the sum before dropout. */
static bool sums_beside(const struct rapt_block *b) { return b->next.scores && !(b->mask->parts & RAPT_PART_KEEP); }

/* By groups of rows if logits come first, so that the softmax finds them in L1. */
static void softmax(const struct rapt_block *b) {
    const struct rapt_task *task = b->task;
    const struct rapt_tile_kind *kind = task->kind;
    const bool acts = b->mask->parts & ~(unsigned)(RAPT_PART_KEEP | RAPT_PART_FILL);
    const int begin = b->key_begin, end = b->key_end, step = acts ? kind->row_group : b->rows;
    for (int row = 0; row < b->rows; row += step) {
        const int end_row = b->rows - row < step ? b->rows : row + step;
        if (acts)
            kind->logits(b->scores, row, end_row, begin, end, b->mask);
        kind->softmax(b->scores, row, end_row, begin, end, rapt_spans_of(b->mask), b->state.m,
                      sums_beside(b) ? NULL : b->state.l, task->alpha, b->of_weigh);
    }
}

/* For some rows, without keys. */
static struct rapt_weigh_args weigh_args(const struct rapt_block *b, int first, int rows, int key, bool fresh,
                                         const float *alpha) {
    const struct rapt_state state = rapt_state_from(b->state, first);
    return (struct rapt_weigh_args){.probabilities = b->scores,
                                    .value = NULL,
                                    .value_stride_bytes = 0,
                                    .value_format = RAPT_FORMAT_F32,
                                    .scales = {NULL, NULL, 0, 0},
                                    .alpha = alpha,
                                    .l = sums_beside(b) ? state.l : NULL,
                                    .spans = NULL,
                                    .o = state.o,
                                    .o_stride = state.o_stride,
                                    .first_row = first,
                                    .rows = rows,
                                    .value_dim = (int)b->task->plan->desc.value_dim,
                                    .key_begin = key,
                                    .key_end = key,
                                    .fresh = fresh,
                                    .streams = false,
                                    .lead_bytes = 0,
                                    .heads = 1,
                                    .value_rows = 0,
                                    .runs = NULL,
                                    .ahead = NULL,
                                    .errands = NULL};
}

/* From a key on, up to `end` or to the end of a run. */
static void take_values(struct rapt_weigh_args *args, const struct rapt_block *b, int key, int end) {
    const struct rapt_rows values = rapt_source_numbered(b->source, RAPT_VALUES, b->base, b->mask, key, end);
    args->value = values.base;
    args->value_stride_bytes = values.stride_bytes;
    args->value_format = values.format;
    args->scales = values.scales;
    args->streams = values.streams;
    args->lead_bytes = values.lead_bytes;
    args->value_rows = values.first;
    args->runs = values.runs;
    args->ahead = values.ahead;
    args->key_begin = key;
    args->key_end = key + (int)values.count;
}

/* Adds the values of keys from key_begin on to o. */
static void weigh(const struct rapt_block *b, struct rapt_weigh_args *args, int end) {
    for (int key = args->key_begin; key < end; key = args->key_end, args->fresh = false, args->alpha = NULL) {
        take_values(args, b, key, end);
        b->task->kind->weigh(args);
    }
}

/* Each row weighs its runs of attended keys only. */
static void weigh_attended(const struct rapt_block *b) {
    for (int row = 0; row < b->rows; row++) {
        struct rapt_weigh_args args = weigh_args(b, row, 1, b->key_begin, b->fresh, b->task->alpha + row);
        b->task->kind->weigh(&args); /* no keys: fresh and alpha act */
        for (int key = b->key_begin, run; key < b->key_end; key = run + 1) {
            for (run = key; run < b->key_end && rapt_is_attended(b->mask, row, run);)
                run++;
            args = weigh_args(b, row, 1, key, false, NULL);
            weigh(b, &args, run);
        }
    }
}

/* All rows. */
static struct rapt_weigh_args all_args(const struct rapt_block *b) {
    struct rapt_weigh_args args = weigh_args(b, 0, b->rows, b->key_begin, b->fresh, b->task->alpha);
    args.spans = rapt_spans_of(b->mask);
    args.errands = b->of_weigh;
    return args;
}

static void scores_to_probabilities(const struct rapt_block *b) {
    softmax(b);
    if (b->mask->parts & RAPT_PART_KEEP)
        b->task->kind->drop(b->scores, b->rows, b->key_begin, b->key_end, b->mask);
}

static void find_probabilities(const struct rapt_block *b) {
    if (!b->is_scored)
        score(b);
    scores_to_probabilities(b);
}

/* All but values that are read in turns with the next block's keys; returns whether they are. */
static bool begin_block(const struct rapt_block *b) {
    find_probabilities(b);
    if (b->careful && b->seen == RAPT_SEES_SOME) {
        weigh_attended(b);
        return false;
    }
    if (!b->next.scores) {
        struct rapt_weigh_args args = all_args(b);
        weigh(b, &args, b->key_end);
        return false;
    }
    return true;
}

/* Bytes from the rows of the first head to those of another one. */
static int64_t head_bytes(const struct rapt_block *const *blocks, int head, int side) {
    const struct rapt_task *first = blocks[0]->task;
    return (blocks[head]->task->kv_head - first->kv_head) * rapt_tensor_of(first->plan, side)->head_stride_bytes;
}

/* The first head comes last, so that the source has its runs. Others lie in its pages, whatever their own look-ups
 * found, since entries may change meanwhile. */
static void take_turns(const struct rapt_block *const *blocks, int heads) {
    struct rapt_score_args next[RAPT_MOST_HEADS];
    struct rapt_weigh_args args[RAPT_MOST_HEADS];
    for (int i = heads - 1; i >= 0; i--) {
        const struct rapt_block *b = blocks[i];
        rapt_source_set_head(b->source, b->task);
        b->source->in_turns = true;
        next[i] = next_args(b);
        args[i] = all_args(b);
        take_values(&args[i], b, b->key_begin, b->key_end);
        b->source->in_turns = false;
        RAPT_ASSUME(args[i].key_end == b->key_end);
    }
    for (int i = 1; i < heads; i++) {
        next[i].key = next[0].key + head_bytes(blocks, i, RAPT_KEYS);
        args[i].value = args[0].value + head_bytes(blocks, i, RAPT_VALUES);
    }
    blocks[0]->task->kind->score_beside(next, args, heads);
}

/* Bytes from the rows of a head in its turn to those that it prefetches: its share of the next turn's rows of all
 * heads, in address order. */
static int64_t lead_of_turn(const char *first_head, const char *head, int64_t stride_bytes, int turn, int number,
                            int heads) {
    return first_head - head + (turn + number * turn / heads) * stride_bytes;
}

static void score_in_turns(const struct rapt_block *const *blocks, int heads, int turn) {
    struct rapt_score_args args[RAPT_MOST_HEADS];
    for (int i = 0; i < heads; i++) {
        const struct rapt_block *b = blocks[i];
        const struct rapt_span positions = {b->base + b->key_begin, b->base + b->key_end};
        rapt_source_set_head(b->source, b->task);
        const struct rapt_rows keys = rapt_source_rows(b->source, RAPT_KEYS, positions);
        args[i] = score_args(b, b->scores);
        rapt_take_keys(&args[i], &keys, b->key_begin);
        RAPT_ASSUME(b->key_begin == blocks[0]->key_begin && b->key_end == blocks[0]->key_end);
        RAPT_ASSUME(args[i].key_end == b->key_end && !args[i].scales.scales);
        args[i].spans = rapt_spans_of(b->mask);
        args[i].errands = b->of_score;
        args[i].heads = heads;
        args[i].lead_bytes = lead_of_turn(args->key, keys.base, keys.stride_bytes, turn, i, heads);
    }
    const int end = blocks[0]->key_end;
    for (int key = blocks[0]->key_begin; key < end; key += turn)
        for (int i = 0; i < heads; i++) {
            args[i].key_begin = key;
            args[i].key_end = end - key < turn ? end : key + turn;
            blocks[i]->task->kind->score(&args[i]);
            args[i].key += turn * args[i].key_stride_bytes;
        }
}

static void weigh_in_turns(const struct rapt_block *const *blocks, int heads, int turn) {
    struct rapt_weigh_args args[RAPT_MOST_HEADS];
    for (int i = 0; i < heads; i++) {
        const struct rapt_block *b = blocks[i];
        rapt_source_set_head(b->source, b->task);
        args[i] = all_args(b);
        take_values(&args[i], b, b->key_begin, b->key_end);
        RAPT_ASSUME(args[i].key_end == b->key_end && !args[i].scales.scales);
        args[i].heads = heads;
        args[i].lead_bytes = lead_of_turn(args->value, args[i].value, args[i].value_stride_bytes, turn, i, heads);
    }
    const int end = blocks[0]->key_end;
    for (int key = blocks[0]->key_begin; key < end; key += turn)
        for (int i = 0; i < heads; i++) {
            args[i].key_begin = key;
            args[i].key_end = end - key < turn ? end : key + turn;
            blocks[i]->task->kind->weigh(&args[i]);
            args[i].value += turn * args[i].value_stride_bytes;
            args[i].fresh = false;
            args[i].alpha = NULL;
        }
}

/* For kinds with their own block. */
static void whole_blocks_in_turns(const struct rapt_block *const *blocks, int heads) {
    for (int i = 0; i < heads; i++) {
        rapt_source_set_head(blocks[i]->source, blocks[i]->task);
        blocks[i]->task->kind->block(blocks[i]);
    }
}

/* For kinds that score and weigh separately. */
static void heads_in_turns(const struct rapt_block *const *blocks, int heads) {
    const int turn = blocks[0]->task->kind->step_turn_keys;
    score_in_turns(blocks, heads, turn);
    for (int i = 0; i < heads; i++)
        scores_to_probabilities(blocks[i]);
    weigh_in_turns(blocks, heads, turn);
}

void rapt_blocks_in_turns(const struct rapt_block *const *blocks, int count) {
    const struct rapt_block *in_turns[RAPT_MOST_HEADS];
    int heads = 0;
    RAPT_ASSUME(count <= RAPT_MOST_HEADS);
    if (count > 0 && blocks[0]->task->kind->block_turn_rows) {
        whole_blocks_in_turns(blocks, count);
        return;
    }
    if (count > 1 && blocks[0]->task->kind->step_turn_keys) {
        heads_in_turns(blocks, count);
        return;
    }
    for (int i = 0; i < count; i++) {
        const struct rapt_block *b = blocks[i];
        rapt_source_set_head(b->source, b->task);
        if (begin_block(b))
            in_turns[heads++] = b;
    }
    if (heads > 0)
        take_turns(in_turns, heads);
}

void rapt_block_by_steps(const struct rapt_block *b) { rapt_blocks_in_turns(&b, 1); }
