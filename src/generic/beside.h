/* SPDX-License-Identifier: MIT
 * Scores the next block's keys and weighs this one's values in turns, where both are memory-bound. */
#ifndef RAPT_GENERIC_BESIDE_H
#define RAPT_GENERIC_BESIDE_H

#include "generic/score_stored.h"
#include "generic/softmax.h"
#include "generic/weigh_narrow.h"

enum {
    TURN_KEYS = 16, /* runs are multiples of this: a turn, or each half of it, lies in one run */
    BESIDE_KEYS = RAPT_HALF_SQUARES == 2 ? 2 * VL : TURN_KEYS, /* per turn of float32: score some, weigh as many */
    BESIDE_STORED = 32, /* per turn, other types */
    LEAST_STORED = WORD_VECTORS * VL > TURN_KEYS ? WORD_VECTORS * VL : TURN_KEYS /* keys of their shortest turn */
};

_Static_assert(BESIDE_KEYS % VL == 0 && BESIDE_STORED % (WORD_VECTORS * VL) == 0, "a turn is whole vectors of keys");
_Static_assert(LEAST_STORED == TURN_KEYS || (LEAST_STORED == 2 * TURN_KEYS && (int)VL == (int)TURN_KEYS),
               "half a turn is one vector of keys");
_Static_assert(!NARROW_FILLS || (int)LEAST_STORED == (int)TURN_KEYS, "rows that fill a vector take turns of one run");

/* Whether turns of so many bytes of keys beat turns of half as many, in a file where some do: each turn loads and
 * stores the sums of all rows. */
#ifndef RAPT_LONG_TURNS
#define RAPT_LONG_TURNS(format, rows, bytes) ((void)(format), (void)(bytes), RAPT_IS_FILLED(rows))
#endif

/* Keys of a turn. Turns of several heads, read one after the other, should not exceed L1 by much. */
static int turn_of(const struct rapt_score_args *score, bool in_pages, int heads) {
    const bool is_f32 = score->key_format == RAPT_FORMAT_F32;
    const int keys = is_f32 ? BESIDE_KEYS : BESIDE_STORED, least = is_f32 ? BESIDE_KEYS : LEAST_STORED;
    const int64_t bytes = 2 * keys * rapt_format_row_bytes(score->key_format, score->head_dim);
    if (in_pages || (score->exceeds_caches && heads * bytes > 48 << 10 && keys > least))
        return least;
    return heads == 1 && RAPT_LONG_TURNS(score->key_format, score->rows, bytes) ? 2 * keys : keys;
}

/* The scores of one turn. jump_bytes: offset of its second half from where it would follow the first. */
RAPT_INLINE void score_turn(const struct rapt_score_args *a, int64_t jump_bytes, int format, int rows,
                            struct turn_requests *turns) {
    const int vectors = vectors_of_words(format, rows), n = VL * vectors;
    const int64_t vector_bytes = VL * a->key_stride_bytes + jump_bytes;
    const char *key = a->key;
    for (int k = a->key_begin; k < a->key_end; k += n, key += vectors * vector_bytes) {
        const struct key_place places[2] = {{.key = key}, {.key = key + vector_bytes}};
        struct stream stream = {.turns = turns};
        score_transposed(a, format, places, true, &stream, a->scores + k, k - a->key_begin, n, rows);
    }
}

/* The scores of a turn of rows that fill a vector. */
#define RAPT_TURN(name, NAME, rows)                                                                              \
    static RAPT_KERNEL void score_turn_##name##_filled(const struct rapt_score_args *a, int64_t jump_bytes,      \
                                                       struct turn_requests *turns) {                            \
        if ((int)(rows) > (int)BESIDE_##NAME || !NARROW_FILLS)                                                   \
            return;                                                                                              \
        (void)jump_bytes; /* such turns are one run */                                                           \
        struct turn_requests own = take_turn_requests(turns);                                                    \
        score_filled_turn(RAPT_FORMAT_##NAME, a, &own);                                                          \
        put_turn_requests(turns, &own);                                                                          \
    }
RAPT_WORD_FORMATS(RAPT_TURN, VL)
#undef RAPT_TURN

#define RAPT_TURN(name, NAME, rows)                                                                              \
    static RAPT_KERNEL void score_turn_##name##_##rows(const struct rapt_score_args *a, int64_t jump_bytes,      \
                                                       struct turn_requests *turns) {                            \
        if (!RAPT_IS_NARROW(RAPT_FORMAT_##NAME, rows) || (rows) > BESIDE_##NAME)                                 \
            return;                                                                                              \
        struct turn_requests own = take_turn_requests(turns);                                                    \
        own.paces = is_paced(RAPT_FORMAT_##NAME, rows);                                                          \
        score_turn(a, jump_bytes, RAPT_FORMAT_##NAME, rows, &own);                                               \
        put_turn_requests(turns, &own);                                                                          \
    }
#define RAPT_TURN_ROWS(rows) RAPT_WORD_FORMATS(RAPT_TURN, rows)
RAPT_HEIGHTS(RAPT_TURN_ROWS)
#undef RAPT_TURN_ROWS
#undef RAPT_TURN

/* The sum l that softmax left, before scores, which hide the latency of its serial additions. p: of the first row and
 * key. */
RAPT_INLINE void add_turn(const struct rapt_weigh_args *values, const float *p, int keys) {
    if (!values->l)
        return;
    for (int r = 0; values->alpha && r < values->rows; r++)
        values->l[r] *= values->alpha[r];
    add_all_rows(p, values->rows, keys, values->l, NULL);
}

/* A head, run by run; `walk` is the first head's, whose rows lie `after` bytes before these. */
static void score_by_runs(struct rapt_score_args a, struct walk walk, int64_t after) {
    const int end = a.key_end;
    a.runs = NULL;
    a.ahead = NULL;
    for (; a.key_begin < end; a.key_begin = a.key_end) {
        a.key = walk.row + after;
        a.key_end = walk.left < end - a.key_begin ? a.key_begin + (int)walk.left : end;
        score_narrow(&a);
        walk_advance(&walk, a.key_end - a.key_begin, a.key_stride_bytes);
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
        walk_advance(&walk, a.key_end - a.key_begin, a.value_stride_bytes);
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

/* Turns of keys or values: where the first head's rows lie in this turn and in the next one, whose lines are requested
 * `request` bytes on. */
struct course {
    struct walk here, next;
    int64_t stride_bytes, request;
    bool l1_at_hand; /* see takes_l1_at_hand */
};

/* Requests lines of this turn into L1, and those of the next, `bytes` on, into L2. */
static void part_lines(struct course *course, int64_t bytes, struct requests *requests) {
    if (!course->l1_at_hand)
        return;
    requests->l2 = bytes;
    course->request = -bytes;
}

static struct course course_of(struct walk walk, int64_t stride_bytes, int turn, bool l1_at_hand,
                               struct requests *requests) {
    struct course course = {walk, walk, stride_bytes, requests->line - (walk.row + turn * stride_bytes), l1_at_hand};
    walk_by(&course.next, turn, stride_bytes);
    part_lines(&course, course.next.row - course.here.row, requests);
    requests->line = course.next.row + course.request;
    return course;
}

/* Offset of a turn's second half from where it would follow the first: perhaps in the next run. */
static int64_t jump_of(const struct walk *walk, int turn, int64_t stride_bytes) {
    return walk->left >= turn ? 0 : walk->next->row - (walk->row + walk->left * stride_bytes);
}

/* Fetches the remaining lines of some rows; descending ones never reach `end`. */
static void end_rows(struct requests *requests, const char *end) {
    for (int64_t most = (end - requests->line + 63) / 64; most > 0 && requests->line < end; most--) {
        fetch_both(requests->line, requests->l2);
        next_request(requests, false);
    }
}

static void begin_rows(struct requests *requests, const char *next) {
    requests->line = next;
    requests->left = requests->row_lines;
}

/* Fetches the rest of the next turn's first half and goes on to the second, unless they are contiguous. */
static void begin_second_half(struct course *course, int turn, struct requests *requests) {
    const int64_t jump_bytes = jump_of(&course->next, turn, course->stride_bytes);
    const int64_t jump_here = course->l1_at_hand ? jump_of(&course->here, turn, course->stride_bytes) : 0;
    const char *const half = course->next.row + turn / 2 * course->stride_bytes;
    if (jump_bytes == 0 && jump_here == 0)
        return;
    end_rows(requests, half + course->request);
    part_lines(course, course->next.row + jump_bytes - (course->here.row + jump_here), requests);
    begin_rows(requests, half + jump_bytes + course->request);
}

/* Fetches the rest of the next turn, and goes on to it. */
static void end_turn(struct course *course, int turn, struct requests *requests) {
    const int64_t bytes = turn * course->stride_bytes + jump_of(&course->next, turn, course->stride_bytes);
    end_rows(requests, course->next.row + bytes + course->request);
    walk_by(&course->here, turn, course->stride_bytes);
    walk_by(&course->next, turn, course->stride_bytes);
    part_lines(course, course->next.row - course->here.row, requests);
    begin_rows(requests, course->next.row + course->request);
}

typedef void turn_scorer(const struct rapt_score_args *, int64_t jump_bytes, struct turn_requests *);

/* Scores a turn of keys of a head. */
static void take_keys(struct rapt_score_args *keys, turn_scorer *score, int turn, int64_t jump_bytes,
                      struct turn_requests *turns) {
    keys->key_end = keys->key_begin + turn;
    score(keys, jump_bytes, turns);
    keys->key_begin = keys->key_end;
    scales_advance(&keys->scales, turn);
}

/* Weighs a turn of values of a head. */
static void take_values(struct rapt_weigh_args *values, int turn, int64_t jump_bytes, struct pump *pump) {
    const int keys = jump_bytes == 0 ? turn : turn / 2, end = values->key_begin + turn;
    while (values->key_begin < end) {
        values->key_end = values->key_begin + keys;
        weigh_narrow_part(values, pump);
        values->key_begin = values->key_end;
        values->value += keys * values->value_stride_bytes + jump_bytes;
        values->fresh = false;
        values->alpha = NULL;
        scales_advance(&values->scales, keys);
    }
}

/* The heads whose keys and values take turns, and what is prefetched meanwhile. */
struct heads {
    struct rapt_score_args keys[RAPT_MOST_HEADS];
    struct rapt_weigh_args values[RAPT_MOST_HEADS];
    turn_scorer *scorer;
    struct course key, value;
    struct pump pump;
    int count, turn;
};

/* Half of the work of a turn is done when as many slots have run as there are heads. */
static void count_slots(struct heads *heads, int done) {
    if (done != heads->count)
        return;
    begin_second_half(&heads->key, heads->turn, &heads->pump.turns.keys);
    begin_second_half(&heads->value, heads->turn, &heads->pump.turns.values);
}

/* One turn. */
static void take_turns(struct heads *heads, const struct rapt_score_args *score, const struct rapt_weigh_args *weigh) {
    const int turn = heads->turn;
    const int64_t key_jump = jump_of(&heads->key.here, turn, heads->key.stride_bytes);
    const int64_t value_jump = jump_of(&heads->value.here, turn, heads->value.stride_bytes);
    struct turn_requests *const turns = &heads->pump.turns;
    RAPT_ASSUME(heads->key.here.left >= turn || 2 * heads->key.here.left == turn);
    RAPT_ASSUME(heads->value.here.left >= turn || 2 * heads->value.here.left == turn);
    for (int head = 0; head < heads->count; head++) {
        struct rapt_weigh_args *const values = &heads->values[head];
        add_turn(values, values->probabilities + values->key_begin, turn);
        heads->keys[head].key = heads->key.here.row + (score[head].key - score->key);
        take_keys(&heads->keys[head], heads->scorer, turn, key_jump, turns);
        count_slots(heads, 2 * head + 1);
        values->value = heads->value.here.row + (weigh[head].value - weigh->value);
        take_values(values, turn, value_jump, &heads->pump);
        count_slots(heads, 2 * head + 2);
    }
    end_turn(&heads->key, turn, &turns->keys);
    end_turn(&heads->value, turn, &turns->values);
}

/* Whether all runs but the last, which may end anywhere, split turns at most in halves. */
static bool fills_turns(const struct rapt_stored_run *runs, int64_t first_rows, int keys) {
    return !runs || first_rows % TURN_KEYS == 0 || first_rows >= keys;
}

/* Whole turns that both sides have keys for. */
static int turns_of(const struct rapt_score_args *score, const struct rapt_weigh_args *weigh, int turn) {
    const int keys = score->key_end - score->key_begin, values = weigh->key_end - weigh->key_begin;
    const bool fits = fills_turns(score->runs, score->key_rows, keys) &&
                      fills_turns(weigh->runs, weigh->value_rows, values);
    return fits ? (keys < values ? keys : values) / turn : 0;
}

static turn_scorer *turn_scorer_of(const struct rapt_score_args *score) {
#define RAPT_TURN(name, NAME, rows) [RAPT_FORMAT_##NAME] = score_turn_##name##_##rows,
#define RAPT_TURN_ROWS(rows) {RAPT_WORD_FORMATS(RAPT_TURN, rows)},
    static turn_scorer *const of_rows[][RAPT_FORMAT_COUNT] = {RAPT_HEIGHTS(RAPT_TURN_ROWS)};
#undef RAPT_TURN_ROWS
#undef RAPT_TURN
#define RAPT_TURN(name, NAME, rows) [RAPT_FORMAT_##NAME] = score_turn_##name##_filled,
    static turn_scorer *const of_filled[RAPT_FORMAT_COUNT] = {RAPT_WORD_FORMATS(RAPT_TURN, VL)};
#undef RAPT_TURN
    return (RAPT_IS_FILLED(score->rows) ? of_filled : of_rows[score->rows - 1])[kernel_format(score->key_format)];
}

static void begin_turns(struct heads *heads, const struct rapt_score_args *score, const struct rapt_weigh_args *weigh) {
    RAPT_ASSUME(heads->count >= 1 && heads->count <= RAPT_MOST_HEADS);
    for (int head = 0; head < heads->count; head++) {
        assume_score(&score[head], NARROW_MOST);
        assume_weigh(&weigh[head], NARROW_MOST);
        heads->keys[head] = score[head];
        heads->values[head] = weigh[head];
        heads->values[head].probabilities += (int64_t)weigh[head].first_row * RAPT_BLOCK_KEYS;
        heads->keys[head].runs = heads->values[head].runs = NULL; /* a turn, or half of it, is one run */
    }
    heads->scorer = turn_scorer_of(score);
    heads->pump = (struct pump){.in_turns = true, .turns = turn_requests_of(score, weigh, heads->turn, heads->count)};
    const struct walk keys = walk_of(score->key, score->key_rows, score->runs);
    const struct walk values = walk_of(weigh->value, weigh->value_rows, weigh->runs);
    struct turn_requests *const turns = &heads->pump.turns;
    const bool l1_at_hand = takes_l1_at_hand(score, weigh, heads->count);
    heads->key = course_of(keys, score->key_stride_bytes, heads->turn, l1_at_hand, &turns->keys);
    heads->value = course_of(values, weigh->value_stride_bytes, heads->turn, l1_at_hand, &turns->values);
}

/* What turns leave: less than a turn, or one side. */
static void end_turns(struct heads *heads, const struct rapt_score_args *score, const struct rapt_weigh_args *weigh) {
    for (int head = 0; head < heads->count; head++) {
        heads->keys[head].key_end = score[head].key_end;
        heads->keys[head].key = heads->key.here.row + (score[head].key - score->key);
        heads->values[head].key_end = weigh[head].key_end;
        heads->values[head].value = heads->value.here.row + (weigh[head].value - weigh->value);
        heads->values[head].probabilities = weigh[head].probabilities;
    }
    heads->keys->key_rows = heads->key.here.left;
    heads->keys->runs = heads->key.here.next;
    heads->values->value_rows = heads->value.here.left;
    heads->values->runs = heads->value.here.next;
    score_then_weigh(heads->keys, heads->values, heads->count);
}

static void score_beside(const struct rapt_score_args *score, const struct rapt_weigh_args *weigh, int count) {
    struct heads heads;
    heads.count = count;
    heads.turn = turn_of(score, score->runs || weigh->runs, count);
    begin_turns(&heads, score, weigh);
    for (int left = turns_of(score, weigh, heads.turn); left > 0; left--)
        take_turns(&heads, score, weigh);
    end_turns(&heads, score, weigh);
}

#endif
