/* SPDX-License-Identifier: MIT
 * Scores of the next block's keys beside the products with this one's values, where memory feeds both. */
#ifndef RAPT_GENERIC_BESIDE_H
#define RAPT_GENERIC_BESIDE_H

#include <limits.h>

#include "generic/score_stored.h"
#include "generic/softmax.h"
#include "generic/weigh_stored.h"

enum {
    BESIDE_KEYS = 16,  /* of a turn of float32: score some, weigh as many */
    BESIDE_STORED = 32 /* of types of fewer bits */
};

_Static_assert(BESIDE_KEYS % VL == 0 && BESIDE_STORED % (WORD_VECTORS * VL) == 0, "a turn is whole vectors of keys");

/* Whether turns of so many bytes of keys are better than of half as many, in a file where some are: each turn loads and
 * stores the sums of all rows. */
#ifndef RAPT_LONG_TURNS
#define RAPT_LONG_TURNS(format, rows, bytes) ((void)(rows), (void)(bytes), false)
#endif

/* Keys of a turn. */
RAPT_INLINE int turn_of(int format, int rows, int64_t row_bytes) {
    const int keys = format == RAPT_FORMAT_F32 ? BESIDE_KEYS : BESIDE_STORED;
    return RAPT_LONG_TURNS(format, rows, 2 * keys * row_bytes) ? 2 * keys : keys;
}

/* Near requests are for so many rows on, and far ones for so many after that. */
RAPT_INLINE struct lane lane_of(const char *row, int64_t stride_bytes, int64_t near, int64_t far, int64_t row_bytes,
                                bool paces) {
    const struct reach reach = reach_of(near * stride_bytes, far * stride_bytes);
    const bool is_dense = stride_bytes == row_bytes; /* as rows are that are no whole lines */
    const int lines = paces && is_dense ? 1 : row_bytes % 64 ? INT_MAX : (int)(row_bytes / 64);
    return (struct lane){.line = row + reach.l1,
                         .l2 = reach.l2,
                         .gap = stride_bytes - row_bytes,
                         .row_lines = lines,
                         .left = lines};
}

/* Fetches what a turn left out, up to the line at `due`, from which the next turn goes on. */
RAPT_INLINE void catch_up(struct lane *lane, const char *due) {
    for (; lane->line < due; lane->line += 64)
        fetch_both(lane->line, lane->l2);
    lane->line = due;
}

/* The scores of one turn. */
RAPT_INLINE void score_turn(const struct rapt_score_args *a, int format, int rows, struct pair *pair) {
    const int n = VL * vectors_of_words(format, rows);
    const char *key = a->key;
    for (int k = a->key_begin; k < a->key_end; k += n, key += n * a->key_stride_bytes) {
        const struct key_place places[WORD_VECTORS] = {{.key = key}, {.key = key + VL * a->key_stride_bytes}};
        struct stream stream = {.pair = pair};
        score_transposed(a, format, places, true, &stream, a->scores + k, k - a->key_begin, n, rows);
    }
}

#define RAPT_TURN(name, NAME, rows)                                                                              \
    static RAPT_KERNEL void score_turn_##name##_##rows(const struct rapt_score_args *a, struct pair *pair) {     \
        if (!RAPT_IS_NARROW(RAPT_FORMAT_##NAME, rows) || (rows) > BESIDE_##NAME)                                 \
            return;                                                                                              \
        struct pair own = take_pair(pair);                                                                       \
        own.paces = is_paced(RAPT_FORMAT_##NAME, rows);                                                          \
        score_turn(a, RAPT_FORMAT_##NAME, rows, &own);                                                           \
        put_pair(pair, &own);                                                                                    \
    }
#define RAPT_TURN_ROWS(rows) RAPT_WORD_FORMATS(RAPT_TURN, rows)
RAPT_HEIGHTS(RAPT_TURN_ROWS)
#undef RAPT_TURN_ROWS
#undef RAPT_TURN

/* What softmax left to do, before scores, which hide that each addition waits for the one before. p: of the first row
 * and key. */
RAPT_INLINE void add_turn(const struct rapt_weigh_args *values, const float *p, int keys) {
    if (!values->l)
        return;
    for (int r = 0; values->alpha && r < values->rows; r++)
        values->l[r] *= values->alpha[r];
    add_all_rows(p, values->rows, keys, values->l, NULL);
}

/* Without turns. Either may have no keys. */
static void score_then_weigh(const struct rapt_score_args *keys, const struct rapt_weigh_args *values, int heads) {
    for (; heads > 0; heads--, keys++, values++) {
        const float *p = values->probabilities + (int64_t)values->first_row * RAPT_BLOCK_KEYS + values->key_begin;
        add_turn(values, p, values->key_end - values->key_begin);
        if (keys->key_begin < keys->key_end)
            score_narrow(keys);
        if (values->key_begin < values->key_end)
            weigh_narrow(values);
    }
}

/* One head by itself: near and far requests, row by row. Several: a turn of all of them ahead, in the order of
 * memory. */
static struct pair pair_of(const struct rapt_score_args *score, const struct rapt_weigh_args *weigh, int turn,
                           int heads) {
    const int64_t row_bytes = heads * rapt_format_row_bytes(score->key_format, score->head_dim);
    const bool paces = is_paced(score->key_format, score->rows) && paces_requests(score->exceeds_caches);
    const int64_t far = heads > 1 ? far_rows_of_heads(row_bytes) : far_rows(row_bytes);
    return (struct pair){
        lane_of(score->key, score->key_stride_bytes, turn, far, row_bytes, paces),
        lane_of(weigh->value, weigh->value_stride_bytes, heads > 1 ? turn : far, far, row_bytes, paces), false};
}

typedef void turn_scorer(const struct rapt_score_args *, struct pair *);

/* The next keys and values of a head. */
static void take_turn(struct rapt_score_args *keys, struct rapt_weigh_args *values, turn_scorer *score, int turn,
                      struct pump *pump) {
    keys->key_end = keys->key_begin + turn;
    values->key_end = values->key_begin + turn;
    add_turn(values, values->probabilities + values->key_begin, turn);
    score(keys, &pump->pair);
    weigh_narrow_part(values, pump);
    keys->key_begin = keys->key_end;
    keys->key += turn * keys->key_stride_bytes;
    values->key_begin = values->key_end;
    values->value += turn * values->value_stride_bytes;
    values->fresh = false;
    values->alpha = NULL;
    scales_on(&keys->scales, turn);
    scales_on(&values->scales, turn);
}

/* Turns as long as there are enough keys on both sides, then the rest of each. */
static void score_beside(const struct rapt_score_args *score, const struct rapt_weigh_args *weigh, int heads) {
#define RAPT_TURN(name, NAME, rows) [RAPT_FORMAT_##NAME] = score_turn_##name##_##rows,
#define RAPT_TURN_ROWS(rows) {RAPT_WORD_FORMATS(RAPT_TURN, rows)},
    static turn_scorer *const of_rows[][RAPT_FORMAT_COUNT] = {RAPT_HEIGHTS(RAPT_TURN_ROWS)};
#undef RAPT_TURN_ROWS
#undef RAPT_TURN
    struct rapt_score_args keys[RAPT_MOST_HEADS];
    struct rapt_weigh_args values[RAPT_MOST_HEADS];
    turn_scorer *const scorer = of_rows[score->rows - 1][kernel_format(score->key_format)];
    const int turn = turn_of(score->key_format, score->rows, rapt_format_row_bytes(score->key_format, score->head_dim));
    struct pump pump = {.in_pair = true, .pair = pair_of(score, weigh, turn, heads)};
    const int key_count = score->key_end - score->key_begin, value_count = weigh->key_end - weigh->key_begin;
    const int turns = (key_count < value_count ? key_count : value_count) / turn;
    const char *key_due = pump.pair.keys.line, *value_due = pump.pair.values.line;
    RAPT_ASSUME(heads >= 1 && heads <= RAPT_MOST_HEADS);
    for (int head = 0; head < heads; head++) {
        assume_score(&score[head], NARROW_ROWS);
        assume_weigh(&weigh[head], NARROW_ROWS);
        keys[head] = score[head];
        values[head] = weigh[head];
        values[head].probabilities += (int64_t)weigh[head].first_row * RAPT_BLOCK_KEYS;
    }
    for (int left = turns; left > 0; left--) {
        for (int head = 0; head < heads; head++)
            take_turn(&keys[head], &values[head], scorer, turn, &pump);
        catch_up(&pump.pair.keys, key_due += turn * score->key_stride_bytes);
        catch_up(&pump.pair.values, value_due += turn * weigh->value_stride_bytes);
    }
    for (int head = 0; head < heads; head++) {
        keys[head].key_end = score[head].key_end;
        values[head].key_end = weigh[head].key_end;
        values[head].probabilities = weigh[head].probabilities;
    }
    score_then_weigh(keys, values, heads);
}

#endif
