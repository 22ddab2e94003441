/* SPDX-License-Identifier: MIT
 * Scores of the next block's keys beside the products with this one's values, where memory feeds both. */
#ifndef RAPT_GENERIC_BESIDE_H
#define RAPT_GENERIC_BESIDE_H

#include <limits.h>

#include "generic/score_stored.h"
#include "generic/softmax.h"
#include "generic/weigh_narrow.h"

enum {
    BESIDE_KEYS = 16,  /* of a turn of float32: score some, weigh as many */
    BESIDE_STORED = 32, /* of types of fewer bits, */
    TURN_KEYS = VL < 16 ? 16 : 32 /* of all types in pages */
};

_Static_assert(BESIDE_KEYS % VL == 0 && BESIDE_STORED % (WORD_VECTORS * VL) == 0, "a turn is whole vectors of keys");
_Static_assert(TURN_KEYS % (WORD_VECTORS * VL) == 0, "as it is in pages");

/* Whether turns of so many bytes of keys are better than of half as many, in a file where some are: each turn loads and
 * stores the sums of all rows. */
#ifndef RAPT_LONG_TURNS
#define RAPT_LONG_TURNS(format, rows, bytes) ((void)(format), (void)(bytes), RAPT_IS_FILLED(rows))
#endif

/* Keys of a turn. Those of several heads, which are read one after the other, should not be much more than L1 has. */
static int turn_of(const struct rapt_score_args *score, bool in_pages, int heads) {
    const int keys = score->key_format == RAPT_FORMAT_F32 ? BESIDE_KEYS : BESIDE_STORED;
    const int64_t bytes = 2 * keys * rapt_format_row_bytes(score->key_format, score->head_dim);
    if (in_pages || (score->exceeds_caches && heads * bytes > 48 << 10 && keys > TURN_KEYS))
        return TURN_KEYS;
    return heads == 1 && RAPT_LONG_TURNS(score->key_format, score->rows, bytes) ? 2 * keys : keys;
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

/* The scores of a turn of rows that fill a vector. */
#define RAPT_TURN(name, NAME, rows)                                                                              \
    static RAPT_KERNEL void score_turn_##name##_filled(const struct rapt_score_args *a, struct pair *pair) {     \
        if ((int)(rows) > (int)BESIDE_##NAME || !NARROW_FILLS)                                                   \
            return;                                                                                              \
        struct pair own = take_pair(pair);                                                                       \
        score_filled_turn(RAPT_FORMAT_##NAME, a, &own);                                                          \
        put_pair(pair, &own);                                                                                    \
    }
RAPT_WORD_FORMATS(RAPT_TURN, VL)
#undef RAPT_TURN

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

/* One run of a head after the other; `walk` is that of the first head, whose rows are so many bytes before these. */
static void score_by_runs(struct rapt_score_args a, struct walk walk, int64_t after) {
    const int end = a.key_end;
    a.runs = NULL;
    a.ahead = NULL;
    for (; a.key_begin < end; a.key_begin = a.key_end) {
        a.key = walk.row + after;
        a.key_end = walk.left < end - a.key_begin ? a.key_begin + (int)walk.left : end;
        score_narrow(&a);
        walk_on(&walk, a.key_end - a.key_begin, a.key_stride_bytes);
    }
}

static void weigh_by_runs(struct rapt_weigh_args a, struct walk walk, int64_t after) {
    const int end = a.key_end;
    a.runs = NULL;
    a.ahead = NULL;
    for (; a.key_begin < end; a.key_begin = a.key_end, a.fresh = false, a.alpha = NULL) {
        a.value = walk.row + after;
        a.key_end = walk.left < end - a.key_begin ? a.key_begin + (int)walk.left : end;
        weigh_narrow(&a);
        walk_on(&walk, a.key_end - a.key_begin, a.value_stride_bytes);
    }
}

/* Without turns. Either may have no keys. */
static void score_then_weigh(const struct rapt_score_args *keys, const struct rapt_weigh_args *values, int heads) {
    const struct walk of_keys = walk_of(keys->key, keys->key_rows, keys->runs);
    const struct walk of_values = walk_of(values->value, values->value_rows, values->runs);
    for (int head = 0; head < heads; head++) {
        const struct rapt_weigh_args *v = &values[head];
        const float *p = v->probabilities + (int64_t)v->first_row * RAPT_BLOCK_KEYS + v->key_begin;
        add_turn(v, p, v->key_end - v->key_begin);
        score_by_runs(keys[head], of_keys, keys[head].key - keys->key);
        weigh_by_runs(*v, of_values, v->value - values->value);
    }
}

/* The turns of a side: where the rows of the first head lie in the one at hand and in the next one, whose lines are
 * requested, so many bytes after them. */
struct course {
    struct walk here, next;
    int64_t stride_bytes, request;
};

static struct course course_of(struct walk walk, int64_t stride_bytes, int turn, struct lane *lane) {
    struct course course = {walk, walk, stride_bytes, lane->line - (walk.row + turn * stride_bytes)};
    walk_by(&course.next, turn, stride_bytes);
    lane->line = course.next.row + course.request;
    return course;
}

/* Fetches what a turn left out of the next one. */
static void end_turn(struct course *course, int turn, struct lane *lane) {
    const char *const end = course->next.row + turn * course->stride_bytes + course->request;
    for (; lane->line < end; lane->line += 64)
        fetch_both(lane->line, lane->l2);
    walk_by(&course->here, turn, course->stride_bytes);
    walk_by(&course->next, turn, course->stride_bytes);
    lane->line = course->next.row + course->request;
}

/* One head by itself: near and far requests, row by row. Several, or pages: a turn of all of them ahead, in the order
 * of memory. */
static struct pair pair_of(const struct rapt_score_args *score, const struct rapt_weigh_args *weigh, int turn,
                           int heads) {
    const int64_t row_bytes = heads * rapt_format_row_bytes(score->key_format, score->head_dim);
    const bool paces = is_paced(score->key_format, score->rows) && paces_requests(score->exceeds_caches);
    const bool by_turns = heads > 1 || score->runs || weigh->runs;
    const int64_t far = by_turns ? far_rows_of_heads(row_bytes) : far_rows(row_bytes);
    return (struct pair){
        .keys = lane_of(score->key, score->key_stride_bytes, turn, far, row_bytes, paces),
        .values = lane_of(weigh->value, weigh->value_stride_bytes, by_turns ? turn : far, far, row_bytes, paces),
        .of_heads = heads > 1};
}

typedef void turn_scorer(const struct rapt_score_args *, struct pair *);

/* The next keys and values of a head, which lie where `key` and `value` say. */
static void take_turn(struct rapt_score_args *keys, struct rapt_weigh_args *values, turn_scorer *score, int turn,
                      struct pump *pump, const char *key, const char *value) {
    keys->key = key;
    values->value = value;
    keys->key_end = keys->key_begin + turn;
    values->key_end = values->key_begin + turn;
    add_turn(values, values->probabilities + values->key_begin, turn);
    score(keys, &pump->pair);
    weigh_narrow_part(values, pump);
    keys->key_begin = keys->key_end;
    values->key_begin = values->key_end;
    values->fresh = false;
    values->alpha = NULL;
    scales_on(&keys->scales, turn);
    scales_on(&values->scales, turn);
}

/* Whether all turns of some keys lie within runs, of which only the last one ends anywhere. */
static bool fills_turns(const struct rapt_stored_run *runs, int64_t first_rows, int keys, int turn) {
    return !runs || first_rows % turn == 0 || first_rows >= keys;
}

/* How many turns there are enough keys for, on both sides. */
static int turns_of(const struct rapt_score_args *score, const struct rapt_weigh_args *weigh, int turn) {
    const int keys = score->key_end - score->key_begin, values = weigh->key_end - weigh->key_begin;
    const bool fits = fills_turns(score->runs, score->key_rows, keys, turn) &&
                      fills_turns(weigh->runs, weigh->value_rows, values, turn);
    return fits ? (keys < values ? keys : values) / turn : 0;
}

/* Turns, then the rest of each side. */
static void score_beside(const struct rapt_score_args *score, const struct rapt_weigh_args *weigh, int heads) {
#define RAPT_TURN(name, NAME, rows) [RAPT_FORMAT_##NAME] = score_turn_##name##_##rows,
#define RAPT_TURN_ROWS(rows) {RAPT_WORD_FORMATS(RAPT_TURN, rows)},
    static turn_scorer *const of_rows[][RAPT_FORMAT_COUNT] = {RAPT_HEIGHTS(RAPT_TURN_ROWS)};
#undef RAPT_TURN_ROWS
#undef RAPT_TURN
#define RAPT_TURN(name, NAME, rows) [RAPT_FORMAT_##NAME] = score_turn_##name##_filled,
    static turn_scorer *const of_filled[RAPT_FORMAT_COUNT] = {RAPT_WORD_FORMATS(RAPT_TURN, VL)};
#undef RAPT_TURN
    struct rapt_score_args keys[RAPT_MOST_HEADS];
    struct rapt_weigh_args values[RAPT_MOST_HEADS];
    turn_scorer *const *const scorers = RAPT_IS_FILLED(score->rows) ? of_filled : of_rows[score->rows - 1];
    turn_scorer *const scorer = scorers[kernel_format(score->key_format)];
    const int turn = turn_of(score, score->runs || weigh->runs, heads);
    struct pump pump = {.in_pair = true, .pair = pair_of(score, weigh, turn, heads)};
    struct lane *const of_keys = &pump.pair.keys, *const of_values = &pump.pair.values;
    struct course key =
        course_of(walk_of(score->key, score->key_rows, score->runs), score->key_stride_bytes, turn, of_keys);
    struct course value =
        course_of(walk_of(weigh->value, weigh->value_rows, weigh->runs), weigh->value_stride_bytes, turn, of_values);
    RAPT_ASSUME(heads >= 1 && heads <= RAPT_MOST_HEADS);
    for (int head = 0; head < heads; head++) {
        assume_score(&score[head], NARROW_MOST);
        assume_weigh(&weigh[head], NARROW_MOST);
        keys[head] = score[head];
        values[head] = weigh[head];
        values[head].probabilities += (int64_t)weigh[head].first_row * RAPT_BLOCK_KEYS;
    }
    for (int left = turns_of(score, weigh, turn); left > 0; left--) {
        for (int head = 0; head < heads; head++)
            take_turn(&keys[head], &values[head], scorer, turn, &pump, key.here.row + (score[head].key - score->key),
                      value.here.row + (weigh[head].value - weigh->value));
        end_turn(&key, turn, of_keys);
        end_turn(&value, turn, of_values);
    }
    for (int head = 0; head < heads; head++) {
        keys[head].key_end = score[head].key_end;
        keys[head].key = key.here.row + (score[head].key - score->key);
        values[head].key_end = weigh[head].key_end;
        values[head].value = value.here.row + (weigh[head].value - weigh->value);
        values[head].probabilities = weigh[head].probabilities;
    }
    keys->key_rows = key.here.left;
    keys->runs = key.here.next;
    values->value_rows = value.here.left;
    values->runs = value.here.next;
    score_then_weigh(keys, values, heads);
}

#endif
