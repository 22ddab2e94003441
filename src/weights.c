/* SPDX-License-Identifier: MIT
 * Attention weights: a second pass over the keys, lanes along them, that
 * computes each score as the first one did. */
#include <string.h>

#include "kv.h"
#include "task.h"

struct weights_tile {
    struct rapt_task *task;
    int first, rows;
    float *const *out;
};

/* Whether the weights are s * scale; without a softcap both kinds are. */
static bool is_raw(const struct rapt_attention *a) {
    const int32_t kind = a->desc.weights_kind;
    return kind == RAPT_WEIGHTS_RAW || (kind == RAPT_WEIGHTS_SOFTCAP && a->softcap_log2e == 0);
}

/* Scores of one block, as far as the kind goes, before the final factor. */
static void score_block(const struct weights_tile *tile, int64_t base, struct rapt_span keys,
                        struct rapt_tile_mask *mask) {
    struct rapt_task *task = tile->task;
    const struct rapt_attention *a = task->attention;
    const int32_t kind = a->desc.weights_kind;
    const bool raw = is_raw(a);
    for (int64_t at = keys.begin; at < keys.end;) {
        struct rapt_span rest = {at, keys.end};
        struct rapt_kv_run run = rapt_kv_locate(&a->desc, &task->sequence, task->batch, task->kv_head, rest);
        struct rapt_score_args args = {.query = task->panel,
                                       .key = run.key,
                                       .key_stride_bytes = run.key_stride_bytes,
                                       .scores = task->scores,
                                       .rows = tile->rows,
                                       .head_dim = (int)a->desc.head_dim,
                                       .key_begin = (int)(at - base),
                                       .key_end = (int)(at - base + run.count),
                                       .factor = raw ? a->scale : a->score_factor};
        a->kernels->narrow.score(&args);
        at += run.count;
    }
    if (raw)
        return;
    rapt_task_mask(task, tile->first, tile->rows, base, keys, mask);
    if (kind == RAPT_WEIGHTS_SOFTCAP)
        mask->has_range = mask->has_bias = mask->has_mask = mask->has_alibi = false;
    if (rapt_mask_acts(mask))
        a->kernels->narrow.logits(task->scores, 0, tile->rows, (int)(keys.begin - base), (int)(keys.end - base), mask);
}

/* One row of probabilities. Where their sum is NaN, keys that are not attended
 * have to be told from those that are: their weight is 0 all the same. */
static void export_softmax(const struct weights_tile *tile, int row, int key, int count, float *scores, float *out,
                           const struct rapt_tile_mask *mask) {
    const struct rapt_task *task = tile->task;
    const struct rapt_kernels *kernels = task->attention->kernels;
    float inverse = task->inverse[tile->first + row];
    if (inverse == 0) {
        memset(out, 0, (size_t)count * sizeof(float));
        return;
    }
    kernels->exponentials(scores, scores, count, task->final_m[tile->first + row]);
    kernels->export_row(scores, out, count, inverse);
    for (int i = 0; inverse != inverse && i < count; i++)
        if (!rapt_is_attended(mask, row, key + i))
            out[i] = 0;
}

static void export_block(const struct weights_tile *tile, int64_t base, struct rapt_span keys,
                         const struct rapt_tile_mask *mask) {
    struct rapt_task *task = tile->task;
    const struct rapt_attention *a = task->attention;
    const int32_t kind = a->desc.weights_kind;
    const bool raw = is_raw(a);
    int key = (int)(keys.begin - base), count = (int)(keys.end - keys.begin);
    for (int row = 0; row < tile->rows; row++) {
        float *scores = task->scores + (int64_t)row * RAPT_BLOCK_KEYS + key;
        float *out = tile->out[row] + (keys.begin - task->sequence.key_position);
        if (kind == RAPT_WEIGHTS_SOFTMAX)
            export_softmax(tile, row, key, count, scores, out, mask);
        else
            a->kernels->export_row(scores, out, count, raw ? 1.0f : RAPT_LN2);
    }
}

/* Keys behind the sequence are not read; their places hold what a masked key has. */
static void fill_rest(const struct weights_tile *tile) {
    const struct rapt_attention *a = tile->task->attention;
    float rest = a->desc.weights_kind == RAPT_WEIGHTS_MASKED ? -__builtin_inff() : 0;
    for (int row = 0; row < tile->rows; row++)
        for (int64_t key = tile->task->sequence.kv_length; key < a->desc.kv_length; key++)
            tile->out[row][key] = rest;
}

void rapt_write_weights(struct rapt_task *task) {
    const struct rapt_attention *a = task->attention;
    const int64_t key_begin = task->sequence.key_position, key_end = key_begin + task->sequence.kv_length;
    if (a->desc.weights_kind == RAPT_WEIGHTS_NONE)
        return;
    for (int first = 0; first < task->rows; first += a->kernels->narrow_rows) {
        float *queries[RAPT_MAX_TILE_ROWS], *out[RAPT_MAX_TILE_ROWS];
        int left = task->rows - first;
        int rows = left < a->kernels->narrow_rows ? left : a->kernels->narrow_rows;
        struct weights_tile tile = {task, first, rows, out};
        rapt_task_rows(task, &a->desc.query, first, rows, queries);
        rapt_task_rows(task, &a->desc.weights, first, rows, out);
        a->kernels->narrow.pack(task->panel, (const float *const *)queries, rows, (int)a->desc.head_dim);
        for (int64_t base = key_begin / RAPT_BLOCK_KEYS * RAPT_BLOCK_KEYS; base < key_end; base += RAPT_BLOCK_KEYS) {
            struct rapt_span keys = {base, base + RAPT_BLOCK_KEYS}, stored = {key_begin, key_end};
            keys = rapt_intersect(keys, stored);
            struct rapt_tile_mask mask;
            score_block(&tile, base, keys, &mask);
            export_block(&tile, base, keys, &mask);
        }
        fill_rest(&tile);
    }
}
