/* SPDX-License-Identifier: MIT
 * Attention weights: a second pass over the keys, lanes along them, that
 * computes each score as the first one did. */
#include "attend/weights.h"

#include <string.h>

#include "attend/source.h"
#include "attend/visit.h"

struct weights_tile {
    struct rapt_task *task;
    struct rapt_source *source;
    const struct rapt_tile_kind *kind; /* whose score rows are contiguous */
    int first, rows;
    char *const *out;
    float first_factor, last_factor; /* of scores: before logits, and in exponentials */
};

static float *row_of(const struct weights_tile *tile, int row) { return (float *)(void *)tile->out[row]; }

/* Whether the weights are s * scale: RAW, or SOFTCAP without a softcap. */
static bool is_raw(const struct rapt_plan_body *plan) {
    const int32_t kind = plan->desc.weights_kind;
    return kind == RAPT_WEIGHTS_RAW || (kind == RAPT_WEIGHTS_SOFTCAP && plan->softcap_log2e == 0);
}

/* Scores of one block, as far as the kind goes, before the final factor. */
static void score_block(const struct weights_tile *tile, int64_t base, struct rapt_span keys,
                        struct rapt_tile_mask *mask) {
    struct rapt_task *task = tile->task;
    const struct rapt_plan_body *plan = task->plan;
    const bool raw = is_raw(plan);
    struct rapt_score_args args = {.query = task->panel,
                                   .scores = task->scores,
                                   .rows = tile->rows,
                                   .head_dim = (int)plan->desc.head_dim,
                                   .factor = raw ? plan->desc.scale : tile->first_factor};
    for (int64_t at = keys.begin; at < keys.end; at += args.key_end - args.key_begin) {
        const struct rapt_span rest = {at, keys.end};
        const struct rapt_rows rows = task->kind->keeps_places ? rapt_source_stored(task, RAPT_KEYS, rest)
                                                               : rapt_source_rows(tile->source, RAPT_KEYS, rest);
        rapt_take_keys(&args, &rows, (int)(at - base));
        tile->kind->score(&args);
    }
    if (raw)
        return;
    rapt_visit_mask(task, tile->first, tile->rows, base, keys, mask);
    if (plan->desc.weights_kind == RAPT_WEIGHTS_SOFTCAP)
        mask->parts &= RAPT_PART_SOFTCAP;
    if (mask->parts)
        tile->kind->logits(task->scores, 0, tile->rows, (int)(keys.begin - base), (int)(keys.end - base), mask);
}

/* One row of probabilities. If their sum is NaN, or a factor, perhaps negative, acts on excluded scores, keys that are
 * not attended must be told apart: their weight is 0 all the same. */
static void export_softmax(const struct weights_tile *tile, int row, int key, int count, float *scores, float *out,
                           const struct rapt_tile_mask *mask) {
    const struct rapt_task *task = tile->task;
    const struct rapt_table *table = task->table;
    float inverse = task->inverse[tile->first + row];
    if (inverse == 0) {
        memset(out, 0, (size_t)count * sizeof(float));
        return;
    }
    if (table->rounded)
        table->rounded(scores, scores, count, task->final_m[tile->first + row], tile->last_factor,
                       task->plan->format[RAPT_KEYS]);
    else
        table->exponentials(scores, scores, count, task->final_m[tile->first + row]);
    table->export_row(scores, out, count, inverse);
    for (int i = 0; (inverse != inverse || tile->last_factor != 1) && i < count; i++)
        if (!rapt_is_attended(mask, row, key + i))
            out[i] = 0;
}

static void export_block(const struct weights_tile *tile, int64_t base, struct rapt_span keys,
                         const struct rapt_tile_mask *mask) {
    struct rapt_task *task = tile->task;
    const struct rapt_plan_body *plan = task->plan;
    const float factor = is_raw(plan) ? 1.0f : RAPT_LN2;
    const int key = (int)(keys.begin - base), count = (int)(keys.end - keys.begin);
    for (int row = 0; row < tile->rows; row++) {
        float *scores = task->scores + (int64_t)row * RAPT_BLOCK_KEYS + key;
        float *out = row_of(tile, row) + (keys.begin - task->work.sequence.key_position);
        if (plan->desc.weights_kind == RAPT_WEIGHTS_SOFTMAX)
            export_softmax(tile, row, key, count, scores, out, mask);
        else
            task->table->export_row(scores, out, count, factor);
    }
}

/* Keys beyond the sequence are not read; their weights are those of masked keys. */
static void fill_rest(const struct weights_tile *tile) {
    const struct rapt_plan_body *plan = tile->task->plan;
    float rest = plan->desc.weights_kind == RAPT_WEIGHTS_MASKED ? -__builtin_inff() : 0;
    for (int row = 0; row < tile->rows; row++)
        for (int64_t key = tile->task->work.sequence.kv_length; key < plan->desc.kv_length; key++)
            row_of(tile, row)[key] = rest;
}

static void write_tile(const struct weights_tile *tile, struct rapt_span stored) {
    for (int64_t base = rapt_next_block(stored, 0); base >= 0; base = rapt_next_block(stored, base + RAPT_BLOCK_KEYS)) {
        const struct rapt_span keys = rapt_block_of(stored, base);
        struct rapt_tile_mask mask;
        score_block(tile, base, keys, &mask);
        export_block(tile, base, keys, &mask);
    }
    fill_rest(tile);
}

void rapt_write_weights(struct rapt_task *task) {
    const struct rapt_plan_body *plan = task->plan;
    const struct rapt_tile_kind *kind = &task->table->kinds[RAPT_NARROW];
    const struct rapt_sequence *sequence = &task->work.sequence;
    const struct rapt_span stored = {sequence->key_position, sequence->key_position + sequence->kv_length};
    const bool unscaled = plan->desc.weights_kind == RAPT_WEIGHTS_SOFTMAX && rapt_enters_unscaled(plan);
    struct rapt_source source;
    if (plan->desc.weights_kind == RAPT_WEIGHTS_NONE || plan->desc.kv_length == 0) /* its strides are unchecked */
        return;
    rapt_source_open(&source, task, stored);
    for (int first = 0; first < task->rows; first += kind->rows) {
        char *out[RAPT_MAX_TILE_ROWS];
        const int left = task->rows - first, rows = left < kind->rows ? left : kind->rows;
        const struct weights_tile tile = {task, &source, kind, first, rows, out, unscaled ? 1 : plan->score_factor,
                                          unscaled ? plan->score_factor : 1};
        rapt_task_rows(task, &plan->desc.weights, first, rows, out);
        rapt_task_pack(task, kind, task->panel, first, rows);
        write_tile(&tile, stored);
    }
}
