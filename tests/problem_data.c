/* SPDX-License-Identifier: MIT
 * What the arrays of a problem hold. */
#include "problem_data.h"

#include <math.h>

static float row_factor(enum data_kind kind, enum array_name name, struct random *random) {
    bool is_chosen = random_chance(random, 12);
    switch (kind) {
    case DATA_HUGE_ROWS:
        return is_chosen ? 1e4f : 1.0f;
    case DATA_INFINITE:
        return is_chosen && name != ARRAY_VALUE ? 1e25f : 1.0f;
    case DATA_MINUS_INFINITE:
        return name == ARRAY_QUERY ? 1e25f : name == ARRAY_KEY ? -1e25f : 1.0f;
    case DATA_DENORMAL:
        return name == ARRAY_QUERY ? 1.0f : 0x1p-138f;
    case DATA_LOUD:
        return name == ARRAY_QUERY ? 12.0f : 1.0f;
    case DATA_BIG:
        return name == ARRAY_VALUE ? 1.0f : 5e3f;
    default:
        return 1.0f;
    }
}

void draw_row(float *row, int64_t count, enum data_kind kind, enum array_name name, struct random *random) {
    static const uint32_t bad[] = {0x7fc00000u, 0xffc00001u, 0x7f800000u, 0xff800000u};
    float factor = row_factor(kind, name, random);
    bool is_positive = kind == DATA_MINUS_INFINITE && name != ARRAY_VALUE;
    if (is_positive && name == ARRAY_KEY && random_chance(random, 5))
        factor = -1e-25f;
    for (int64_t d = 0; d < count; d++) {
        float x = random_normal(random);
        row[d] = (is_positive ? fabsf(x) : x) * factor;
        if (kind == DATA_SPECIAL && random_chance(random, 4))
            row[d] = random_special(random);
    }
    bool may_be_bad =
        (kind == DATA_NAN_ROWS && name != ARRAY_QUERY) || (kind == DATA_MINUS_INFINITE && !is_positive);
    if (may_be_bad && random_chance(random, 6))
        row[random_below(random, count)] = float_of(bad[random_below(random, 4)]);
}

/* How a mask or a bias looks, chosen once for the whole array. */
enum mask_kind { SOME_FALSE, ALL_TRUE, ALL_FALSE, FALSE_ROWS, FALSE_BLOCKS, ONE_TRUE, MASK_KINDS };
enum bias_kind { FINITE, WITH_HOLES, LOWEST_ROWS, EMPTY_ROWS, SPECIAL, BIAS_KINDS };

void draw_flags(uint8_t *row, int64_t count, uint64_t array_seed, struct random *random) {
    struct random array = {array_seed};
    enum mask_kind kind = (enum mask_kind)random_below(&array, MASK_KINDS);
    bool is_false_row = kind == FALSE_ROWS && random_chance(random, 30);
    int64_t chosen = count ? random_below(random, count) : 0;
    for (int64_t j = 0; j < count; j++) {
        bool is_true = random_chance(random, kind == SOME_FALSE ? 50 : 85);
        is_true = kind == ALL_TRUE ? true : kind == ALL_FALSE || is_false_row ? false : is_true;
        is_true = kind == FALSE_BLOCKS ? j / 256 % 2 == 1 : kind == ONE_TRUE ? j == chosen : is_true;
        row[j] = is_true ? (uint8_t)(1 + (j * 37 + chosen) % 255) : 0;
    }
}

void draw_bias(float *row, int64_t count, uint64_t array_seed, bool is_benign, struct random *random) {
    struct random array = {array_seed};
    enum bias_kind kind = (enum bias_kind)random_below(&array, is_benign ? SPECIAL : BIAS_KINDS);
    bool is_chosen = random_chance(random, 30);
    for (int64_t j = 0; j < count; j++) {
        row[j] = random_normal(random);
        if ((kind == WITH_HOLES && random_chance(random, 30)) || (kind == EMPTY_ROWS && is_chosen))
            row[j] = -INFINITY;
        if (kind == LOWEST_ROWS && is_chosen)
            row[j] = -0x1.fffffep+127f;
        if (kind == SPECIAL && random_chance(random, 2))
            row[j] = random_special(random);
    }
}

void draw_head_list(float *list, int64_t heads, enum array_name name, struct random *random) {
    static const float sinks[] = {0, 2.5f, -3, -INFINITY, 1e9f, -1e30f, 1e38f, 40, -0.0f};
    for (int64_t h = 0; h < heads; h++)
        list[h] = name == ARRAY_SINKS         ? sinks[random_below(random, 9)]
                  : random_chance(random, 10) ? 0.0f
                                              : random_normal(random) * (name == ARRAY_SLOPES ? 0.1f : 1.0f);
}
