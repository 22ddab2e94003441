/* SPDX-License-Identifier: MIT
 * softmax of one block: steps 4 to 6 without the values. */
#include <math.h>

#include "kernels/check.h"
#include "reference/reference.h"
#include "support/cmocka_all.h"

/* Kinds of logits in a row. */
enum logit_kind {
    ORDINARY,
    WITH_HOLES,
    NOTHING,
    ONLY_NAN,
    SPECIAL,
    HUGE,
    WIDE_SPREAD,
    DENORMAL,
    LOGIT_KINDS
};

static float random_logit(struct random *random, enum logit_kind kind) {
    switch (kind) {
    case WITH_HOLES:
        return random_chance(random, 70) ? -INFINITY : quick_normal(random) * 5;
    case NOTHING:
        return -INFINITY;
    case ONLY_NAN:
        return random_chance(random, 50) ? NAN : -INFINITY;
    case SPECIAL:
        return quick_special(random);
    case HUGE:
        return quick_normal(random) * 1e8f;
    case WIDE_SPREAD:
        return quick_normal(random) * 100;
    case DENORMAL:
        return quick_normal(random) * 0x1p-140f;
    default:
        return quick_normal(random) * 5;
    }
}

struct row_state {
    float m[RAPT_MAX_TILE_ROWS], l[RAPT_MAX_TILE_ROWS], alpha[RAPT_MAX_TILE_ROWS];
};

static void set_state(struct row_state *state, struct random *random) {
    static const float maxima[] = {0,   2,       -2,      10,       -126,    -128,
                                   254, 4194302, 4194304, -4194304, 0x1p30f, INFINITY};
    for (int row = 0; row < RAPT_MAX_TILE_ROWS; row++) {
        bool is_empty = random_chance(random, 40);
        state->m[row] = is_empty ? -INFINITY : maxima[random_below(random, 12)];
        state->l[row] = is_empty ? 0.0f : 1.0f + fabsf(quick_normal(random)) * 100;
        state->alpha[row] = NAN;
    }
}

static void expected_row(const struct tile *tile, float *scores, int row, struct key_range range,
                         struct row_state *state) {
    float largest = -INFINITY;
    for (int key = range.begin; key < range.end; key++) {
        float t = scores[score_at(tile, row, key)];
        largest = t > largest ? t : largest;
    }
    float m = rapt_reference_even_maximum(state->m[row], largest);
    state->alpha[row] = rapt_reference_pow2(state->m[row] - m);
    float l = state->l[row] * state->alpha[row];
    for (int key = range.begin; key < range.end; key++) {
        float *score = scores + score_at(tile, row, key);
        *score = rapt_reference_exp2(*score, m);
        l = l + *score;
    }
    state->m[row] = m;
    state->l[row] = l;
}

static void check_one(const struct tile *tile, int rows, struct key_range range, struct random *random) {
    float *before = test_floats(score_count(tile));
    const struct rapt_visible_spans *seen = random_ranges(random, rows);
    for (int row = 0; row < rows; row++) {
        enum logit_kind kind = (enum logit_kind)random_below(random, LOGIT_KINDS);
        for (int key = 0; key < RAPT_BLOCK_KEYS; key++)
            before[score_at(tile, row, key)] = is_in_ranges(seen, row, key) ? random_logit(random, kind) : -INFINITY;
    }
    float *got = test_floats(score_count(tile)), *expected = test_floats(score_count(tile));
    memcpy(got, before, (size_t)score_count(tile) * sizeof(float));
    memcpy(expected, before, (size_t)score_count(tile) * sizeof(float));
    struct row_state state, expected_state;
    set_state(&state, random);
    expected_state = state;
    for (int row = 0; row < rows; row++)
        expected_row(tile, expected, row, range, &expected_state);
    const int cut = random_cut(tile, rows, random);
    float *l = tile->slots->score_beside && random_below(random, 2) ? NULL : state.l; /* it then adds l up */
    if (!l)
        memcpy(expected_state.l, state.l, sizeof state.l);
    tile->slots->softmax(got, 0, cut, range.begin, range.end, seen, state.m, l, state.alpha, NULL);
    tile->slots->softmax(got, cut, rows, range.begin, range.end, seen, state.m, l, state.alpha, NULL);
    expect_scores(tile, got, expected, before, rows, range, "softmax");
    for (int row = 0; row < RAPT_MAX_TILE_ROWS; row++) { /* the sign of a zero maximum has no effect */
        state.m[row] += 0.0f;
        expected_state.m[row] += 0.0f;
    }
    const char *name = tile->table->name;
    expect_bits(state.m, expected_state.m, RAPT_MAX_TILE_ROWS, NAN_ANY,
                "%s %s.softmax m, rows %d, keys [%d, %d)", name, tile->way, rows, range.begin, range.end);
    expect_bits(state.l, expected_state.l, RAPT_MAX_TILE_ROWS, NAN_ANY,
                "%s %s.softmax l, rows %d, keys [%d, %d)", name, tile->way, rows, range.begin, range.end);
    expect_bits(state.alpha, expected_state.alpha, RAPT_MAX_TILE_ROWS, NAN_ANY,
                "%s %s.softmax alpha, rows %d, keys [%d, %d)", name, tile->way, rows, range.begin, range.end);
    test_free_all();
}

void check_softmax(const struct rapt_table *table) {
    struct random random = {4};
    for (int way = 0; way < TILE_WAYS; way++) {
        struct tile tile = tile_of(table, way);
        int rows[MAX_ROW_COUNTS], row_counts = edge_rows(&tile, rows);
        struct key_range ranges[MAX_KEY_RANGES];
        int range_count = edge_key_ranges(&tile, ranges);
        for (int64_t n = scaled_work(6); n > 0; n--)
            for (int r = 0; r < row_counts; r++)
                for (int k = 0; k < range_count; k++)
                    check_one(&tile, rows[r], ranges[k], &random);
    }
}
