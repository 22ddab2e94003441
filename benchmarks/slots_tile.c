/* SPDX-License-Identifier: MIT
 *
 * The slots of tile kinds: one key block, which all rows see unless a mask says otherwise. */
#include "slots.h"

#include <string.h>

static const int dims[] = {64, 128};

/* A tile of one kind; every array has room for its largest. */
struct tile {
    const struct rapt_tile_kind *kind;
    int rows, dim;
    float *panel, *scores, *key, *value, *queries[RAPT_MAX_TILE_ROWS], *m, *l, *alpha, *o;
    struct rapt_tile_mask mask;
};

static struct tile tile_of(const struct slots *slots, int kind) {
    struct tile tile = {.kind = &slots->table->kinds[kind]};
    tile.rows = tile.kind->rows;
    tile.panel = slots_numbers(tile.kind->panel_bytes(tile.rows, SLOT_MAX_DIM) / sizeof(float));
    tile.scores = slots_numbers(tile.kind->scores_bytes(tile.rows, SLOT_MAX_DIM) / sizeof(float));
    tile.key = slots_numbers(RAPT_BLOCK_KEYS * SLOT_MAX_DIM);
    tile.value = slots_numbers(RAPT_BLOCK_KEYS * SLOT_MAX_DIM);
    tile.m = slots_zeros(RAPT_MAX_TILE_ROWS);
    tile.l = slots_zeros(RAPT_MAX_TILE_ROWS);
    tile.alpha = slots_numbers(RAPT_MAX_TILE_ROWS);
    tile.o = slots_zeros(RAPT_MAX_TILE_ROWS * SLOT_MAX_DIM);
    for (int row = 0; row < tile.rows; row++) {
        tile.queries[row] = tile.value + row * SLOT_MAX_DIM;
        tile.alpha[row] = 1;
    }
    return tile;
}

static void free_tile(struct tile *tile) {
    float *const arrays[] = {tile->panel, tile->scores, tile->key, tile->value, tile->m, tile->l, tile->alpha, tile->o};
    for (size_t i = 0; i < sizeof arrays / sizeof arrays[0]; i++)
        buffer_free(arrays[i]);
}

static double scores_of(const struct tile *tile) {
    return (double)tile->rows * RAPT_BLOCK_KEYS;
}

/* Kinds for few rows are measured with 1, 4 and all, the others with all. */
static bool next_rows(struct tile *tile) {
    if (!tile->kind->streams || tile->rows == 1)
        return false;
    tile->rows = tile->rows > 4 ? 4 : 1;
    return true;
}

static void run_pack(void *context) {
    struct tile *tile = context;
    tile->kind->pack(tile->panel, (const float *const *)tile->queries, tile->rows, tile->dim);
}

static struct rapt_score_args score_args(const struct tile *tile) {
    return (struct rapt_score_args){.query = tile->panel,
                                    .key = (const char *)tile->key,
                                    .key_stride_bytes = tile->dim * (int64_t)sizeof(float),
                                    .scores = tile->scores,
                                    .rows = tile->rows,
                                    .head_dim = tile->dim,
                                    .key_end = RAPT_BLOCK_KEYS,
                                    .factor = 0.1f};
}

static struct rapt_weigh_args weigh_args(const struct tile *tile) {
    return (struct rapt_weigh_args){.probabilities = tile->scores,
                                    .value = (const char *)tile->value,
                                    .value_stride_bytes = tile->dim * (int64_t)sizeof(float),
                                    .alpha = tile->alpha,
                                    .o = tile->o,
                                    .o_stride = tile->dim,
                                    .rows = tile->rows,
                                    .value_dim = tile->dim,
                                    .key_end = RAPT_BLOCK_KEYS,
                                    .fresh = true};
}

static void run_score(void *context) {
    struct tile *tile = context;
    const struct rapt_score_args args = score_args(tile);
    tile->kind->score(&args);
}

static void run_weigh(void *context) {
    struct tile *tile = context;
    const struct rapt_weigh_args args = weigh_args(tile);
    tile->kind->weigh(&args);
}

/* Scores go to the second of two blocks. */
static void run_beside(void *context) {
    struct tile *tile = context;
    struct rapt_score_args score = score_args(tile);
    const struct rapt_weigh_args weigh = weigh_args(tile);
    score.scores += tile->rows * RAPT_BLOCK_KEYS;
    tile->kind->score_beside(&score, &weigh, 1);
}

static void run_logits(void *context) {
    struct tile *tile = context;
    tile->kind->logits(tile->scores, 0, tile->rows, 0, RAPT_BLOCK_KEYS, &tile->mask);
}

static void run_softmax(void *context) {
    struct tile *tile = context;
    tile->kind->softmax(tile->scores, 0, tile->rows, 0, RAPT_BLOCK_KEYS, NULL, tile->m, tile->l, tile->alpha, NULL);
}

static void run_drop(void *context) {
    struct tile *tile = context;
    tile->kind->drop(tile->scores, tile->rows, 0, RAPT_BLOCK_KEYS, &tile->mask);
}

/* For each kind, number of rows, and head dim. */
static void measure_products(struct slots *slots, const char *slot, void (*run)(void *)) {
    for (int kind = 0; kind < RAPT_KINDS; kind++) {
        struct tile tile = tile_of(slots, kind);
        const int products = run == run_pack ? 0 : run == run_beside ? 2 : 1;
        do {
            for (size_t d = 0; d < sizeof dims / sizeof dims[0]; d++) {
                if (run == run_beside && !tile.kind->score_beside)
                    continue;
                tile.dim = dims[d];
                const double numbers = run == run_pack ? (double)tile.rows * tile.dim : scores_of(&tile);
                const struct slot_case what = {run, &tile, numbers, products * 2 * numbers * tile.dim};
                slots_measure(slots, &what, "%s.%s rows %d d%d", tile.kind->name, slot, tile.rows, tile.dim);
            }
        } while (next_rows(&tile));
        free_tile(&tile);
    }
}

void slots_pack(struct slots *slots) {
    measure_products(slots, "pack", run_pack);
}

void slots_score(struct slots *slots) {
    measure_products(slots, "score", run_score);
}

void slots_weigh(struct slots *slots) {
    measure_products(slots, "weigh", run_weigh);
}

void slots_beside(struct slots *slots) {
    measure_products(slots, "score_beside", run_beside);
}

/* All kinds, all rows of each. */
static void measure_scores(struct slots *slots, const char *slot, const char *part, void (*run)(void *),
                           const struct rapt_tile_mask *mask) {
    for (int kind = 0; kind < RAPT_KINDS; kind++) {
        struct tile tile = tile_of(slots, kind);
        if (mask)
            tile.mask = *mask;
        const struct slot_case what = {run, &tile, scores_of(&tile), 0};
        slots_measure(slots, &what, "%s.%s%s rows %d", tile.kind->name, slot, part, tile.rows);
        free_tile(&tile);
    }
}

void slots_softmax(struct slots *slots) {
    measure_scores(slots, "softmax", "", run_softmax, NULL);
}

/* Where a block meets the diagonal; a mask with every third pair false; finite biases; ALiBi. */
static struct rapt_tile_mask new_mask(unsigned parts) {
    struct rapt_tile_mask mask = {.parts = parts, .softcap_log2e = 40, .keep_scale = 1};
    float *bias = slots_numbers(RAPT_MAX_TILE_ROWS * RAPT_BLOCK_KEYS);
    uint8_t *allowed = (uint8_t *)slots_zeros(RAPT_MAX_TILE_ROWS * RAPT_BLOCK_KEYS / sizeof(float));
    for (int i = 0; i < RAPT_MAX_TILE_ROWS * RAPT_BLOCK_KEYS; i++)
        allowed[i] = i % 3 != 0;
    for (int row = 0; row < RAPT_MAX_TILE_ROWS; row++) {
        mask.spans.end_key[row] = 128 + row;
        mask.bias[row] = bias + row * RAPT_BLOCK_KEYS;
        mask.mask[row] = mask.keep[row] = allowed + row * RAPT_BLOCK_KEYS;
        mask.bias_factor[row] = 1e-6f;
        mask.alibi_factor[row] = -1e-6f;
        mask.distance[row] = row + 128;
    }
    return mask;
}

static void free_mask(struct rapt_tile_mask *mask) {
    buffer_free((void *)(uintptr_t)mask->bias[0]);
    buffer_free((void *)(uintptr_t)mask->mask[0]);
}

void slots_logits(struct slots *slots) {
    static const struct {
        unsigned part;
        const char *name;
    } parts[] = {{RAPT_PART_SPANS, " causal"}, {RAPT_PART_MASK, " mask"},       {RAPT_PART_BIAS, " bias"},
                 {RAPT_PART_ALIBI, " alibi"},  {RAPT_PART_SOFTCAP, " softcap"}};
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++) {
        struct rapt_tile_mask mask = new_mask(parts[i].part);
        measure_scores(slots, "logits", parts[i].name, run_logits, &mask);
        free_mask(&mask);
    }
}

void slots_drop(struct slots *slots) {
    struct rapt_tile_mask mask = new_mask(RAPT_PART_KEEP);
    measure_scores(slots, "drop", "", run_drop, &mask);
    free_mask(&mask);
}

struct surveyed {
    const struct rapt_table *table;
    struct rapt_tile_mask mask;
    unsigned found;
};

static void run_survey(void *context) {
    struct surveyed *surveyed = context;
    uint32_t attended[RAPT_BLOCK_KEYS / 32];
    surveyed->found |= surveyed->table->survey(RAPT_MAX_TILE_ROWS, 0, RAPT_BLOCK_KEYS, &surveyed->mask, attended);
}

/* An all-true mask, an all -infinity bias: nothing ends the search early. */
void slots_survey(struct slots *slots) {
    static const char *const names[] = {"mask", "bias"};
    for (int bias = 0; bias < 2; bias++) {
        struct surveyed surveyed = {slots->table, new_mask(bias ? RAPT_PART_BIAS : RAPT_PART_MASK), 0};
        memset((void *)(uintptr_t)surveyed.mask.mask[0], 1, RAPT_MAX_TILE_ROWS * RAPT_BLOCK_KEYS);
        for (int i = 0; i < RAPT_MAX_TILE_ROWS * RAPT_BLOCK_KEYS; i++)
            ((float *)(uintptr_t)surveyed.mask.bias[0])[i] = -__builtin_inff();
        const struct slot_case what = {run_survey, &surveyed, RAPT_MAX_TILE_ROWS * RAPT_BLOCK_KEYS, 0};
        slots_measure(slots, &what, "survey %s rows %d", names[bias], RAPT_MAX_TILE_ROWS);
        free_mask(&surveyed.mask);
    }
}
