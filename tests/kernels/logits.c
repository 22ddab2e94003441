/* SPDX-License-Identifier: MIT
 * logits and drop: effects of masks on scores and probabilities. */
#include <math.h>

#include "kernels/check.h"
#include "reference/reference.h"
#include "support/cmocka_all.h"

static const uint8_t *random_flags(struct random *random, int percent_false) {
    static const uint8_t trues[] = {1, 1, 2, 128, 255, 64, 1, 254};
    uint8_t *flags = test_alloc(RAPT_BLOCK_KEYS);
    for (int key = 0; key < RAPT_BLOCK_KEYS; key++) {
        const uint64_t bits = random_bits(random);
        flags[key] = (bits >> 8) % 100 < (uint64_t)percent_false ? 0 : trues[bits % 8];
    }
    return flags;
}

static float random_bias(struct random *random) {
    return random_chance(random, 20) ? -INFINITY : quick_special(random);
}

/* Mostly ordinary: rare large finite ones then show what becomes of them. */
static float ordinary_bias(struct random *random) {
    return random_chance(random, 1) ? random_bias(random) : quick_normal(random);
}

/* Query position - position of the block's key 0: near, and too far for float32. */
static int64_t random_distance(struct random *random) {
    static const int64_t far[] = {1 << 24,
                                  -(1 << 24),
                                  (1 << 24) + 129,
                                  16776000,
                                  -16776000 + 300,
                                  1000000007,
                                  ((int64_t)1 << 40) + 12345,
                                  -((int64_t)1 << 52) - 77};
    return random_chance(random, 70) ? random_between(random, -600, 600) : far[random_below(random, 8)];
}

static struct rapt_tile_mask *random_mask(struct random *random, int rows, unsigned features) {
    struct rapt_tile_mask *mask = test_alloc(sizeof *mask);
    float (*draw_bias)(struct random *) = random_chance(random, 50) ? random_bias : ordinary_bias;
    const float *shared_bias = test_drawn(random, RAPT_BLOCK_KEYS, draw_bias);
    mask->softcap_log2e = features & 1 ? 30.0f * 1.4427f : 0.0f;
    static const unsigned parts[] = {RAPT_PART_SOFTCAP, RAPT_PART_BIAS, RAPT_PART_ALIBI, RAPT_PART_MASK,
                                     RAPT_PART_FILL,    RAPT_PART_SPANS, RAPT_PART_SELECT};
    mask->parts = 0;
    mask->selected = random_chance(random, 30) ? RAPT_BLOCK_KEYS : 0;
    for (int key = 0; key < RAPT_BLOCK_KEYS; key++)
        mask->place[key] = (uint8_t)(255 - key); /* anything */
    for (int bit = 0; bit < 7; bit++)
        mask->parts |= features >> bit & 1 ? parts[bit] : 0;
    mask->fill_log2e = random_chance(random, 50) ? -1e9f * 1.4427f : -0.0f;
    mask->keep_scale = 1.25f;
    for (int row = 0; row < rows; row++) {
        bool is_shared = random_chance(random, 30);
        mask->bias[row] = is_shared ? shared_bias : test_drawn(random, RAPT_BLOCK_KEYS, draw_bias);
        mask->mask[row] = random_flags(random, (int)random_below(random, 3) * 50);
        mask->keep[row] = random_flags(random, 40);
        mask->select[row] = random_flags(random, 40);
        mask->bias_factor[row] = random_chance(random, 50) ? 0x1.715476p+0f : quick_normal(random);
        /* Sometimes so steep that the term overflows, even upwards, which must not bring back what a bias excludes. */
        mask->alibi_factor[row] = random_chance(random, 90)   ? quick_normal(random) * 0.25f
                                  : random_chance(random, 50) ? 3e38f
                                                              : -3e38f;
        mask->distance[row] = random_distance(random);
    }
    const struct rapt_visible_spans *spans = random_ranges(random, rows);
    if (spans)
        mask->spans = *spans;
    else
        mask->parts &= ~(unsigned)RAPT_PART_SPANS;
    return mask;
}

static float expected_logit(const struct rapt_tile_mask *mask, float score, int row, int key) {
    struct rapt_reference_pair pair = {.softcap_log2e = mask->softcap_log2e,
                                       .has_bias = mask->parts & RAPT_PART_BIAS,
                                       .has_alibi = mask->parts & RAPT_PART_ALIBI,
                                       .has_mask = mask->parts & RAPT_PART_MASK,
                                       .has_fill = mask->parts & RAPT_PART_FILL,
                                       .bias = mask->bias[row][key],
                                       .bias_factor = mask->bias_factor[row],
                                       .alibi_factor = mask->alibi_factor[row],
                                       .distance = mask->distance[row] - (mask->selected ? mask->place[key] : key),
                                       .mask = mask->mask[row][key] != 0,
                                       .fill_log2e = mask->fill_log2e};
    bool is_attended = true;
    float t = rapt_reference_logit(score, &pair, &is_attended);
    bool is_in_range = !(mask->parts & RAPT_PART_SPANS) || is_in_ranges(&mask->spans, row, key);
    bool is_selected = !(mask->parts & RAPT_PART_SELECT) || mask->select[row][key] != 0;
    return is_attended && is_in_range && is_selected ? t : -INFINITY;
}

static void check_one(const struct tile *tile, int rows, struct key_range range, unsigned features,
                      struct random *random) {
    struct rapt_tile_mask *mask = random_mask(random, rows, features);
    float *before = test_drawn(random, score_count(tile), quick_special);
    float *got = test_floats(score_count(tile)), *expected = test_floats(score_count(tile));
    memcpy(got, before, (size_t)score_count(tile) * sizeof(float));
    for (int row = 0; row < rows; row++)
        for (int key = range.begin; key < range.end; key++)
            expected[score_at(tile, row, key)] =
                expected_logit(mask, before[score_at(tile, row, key)], row, key);
    const int cut = random_cut(tile, rows, random);
    tile->slots->logits(got, 0, cut, range.begin, range.end, mask);
    tile->slots->logits(got, cut, rows, range.begin, range.end, mask);
    char name[32] = "logits .......";
    for (int bit = 0; bit < 7; bit++)
        if (features >> bit & 1)
            name[7 + bit] = "cbamfrs"[bit]; /* softcap, bias, alibi, mask, fill, range, selection */
    expect_scores(tile, got, expected, before, rows, range, name);
    test_free_all();
}

void check_logits(const struct rapt_table *table) {
    struct random random = {2};
    for (int way = 0; way < TILE_WAYS; way++) {
        struct tile tile = tile_of(table, way);
        int rows[MAX_ROW_COUNTS], row_counts = edge_rows(&tile, rows), turn = 0;
        struct key_range ranges[MAX_KEY_RANGES];
        int range_count = edge_key_ranges(&tile, ranges);
        for (unsigned features = 0; features < 128; features++)
            for (int64_t n = scaled_work(row_counts * 2); n > 0; n--, turn++)
                check_one(&tile, rows[turn % row_counts], ranges[turn % range_count], features, &random);
    }
}

/* Whether masks, biases and selections let a row attend to a key. */
static bool is_left(const struct rapt_tile_mask *mask, int row, int key) {
    const bool excludes = (mask->parts & RAPT_PART_MASK) && !(mask->parts & RAPT_PART_FILL);
    return !(excludes && mask->mask[row][key] == 0) &&
           !((mask->parts & RAPT_PART_SELECT) && mask->select[row][key] == 0) &&
           !((mask->parts & RAPT_PART_BIAS) && mask->bias[row][key] == -INFINITY);
}

static unsigned expected_survey(const struct rapt_tile_mask *mask, int rows, struct key_range range,
                                uint32_t attended[RAPT_BLOCK_KEYS / 32]) {
    unsigned found = 0;
    int count = 0;
    bool alike = true;
    memset(attended, 0, RAPT_BLOCK_KEYS / 8);
    for (int key = range.begin; key < range.end; key++) {
        int of_key = 0;
        for (int row = 0; row < rows; row++) {
            of_key += is_left(mask, row, key);
            found |= (mask->parts & RAPT_PART_MASK) && !mask->mask[row][key] ? RAPT_SOME_FALSE : 0u;
            found |= (mask->parts & RAPT_PART_BIAS) && mask->bias[row][key] != 0 ? RAPT_SOME_CHANGE : 0u;
        }
        attended[key / 32] |= (uint32_t)(of_key > 0) << key % 32;
        count += of_key > 0;
        alike &= of_key == 0 || of_key == rows;
    }
    const bool dense = 4 * count > 3 * (range.end - range.begin);
    for (int key = range.begin; dense && key < range.end; key++)
        attended[key / 32] |= UINT32_C(1) << key % 32;
    return found | (alike && !dense ? RAPT_ALIKE : 0u);
}

/* Rows of one value except in some places, which rows may share. */
static void draw_surveyed(struct rapt_tile_mask *mask, int rows, struct random *random) {
    const bool value = random_chance(random, 50), shared = random_chance(random, 50), same = random_chance(random, 20);
    const float other = random_chance(random, 50) ? 0.0f : -0.0f;
    const bool zeros = random_chance(random, 50);
    const int holes = (int)random_below(random, 3) * (int)random_below(random, 60);
    int places[200];
    for (int row = 0; row < rows; row++) {
        uint8_t *bytes = test_alloc(RAPT_BLOCK_KEYS), *select = test_alloc(RAPT_BLOCK_KEYS);
        float *bias = test_floats(RAPT_BLOCK_KEYS);
        memset(bytes, value, RAPT_BLOCK_KEYS);
        memset(select, value, RAPT_BLOCK_KEYS);
        for (int i = 0; i < RAPT_BLOCK_KEYS; i++)
            bias[i] = !value ? -INFINITY : zeros ? other : quick_special(random);
        for (int i = 0; i < holes; i++) {
            places[i] = row == 0 || !shared ? (int)random_below(random, RAPT_BLOCK_KEYS) : places[i];
            bytes[places[i]] = value ? 0 : (uint8_t)random_between(random, 1, 255);
            select[places[i]] = !value || random_chance(random, 20);
            bias[places[i]] = value ? -INFINITY : quick_special(random);
        }
        mask->mask[row] = same && row ? mask->mask[0] : bytes;
        mask->select[row] = same && row ? mask->select[0] : select;
        mask->bias[row] = same && row ? mask->bias[0] : bias;
    }
}

void check_survey(const struct rapt_table *table) {
    static const unsigned parts[] = {RAPT_PART_MASK, RAPT_PART_BIAS, RAPT_PART_SELECT, RAPT_PART_FILL};
    struct random random = {33};
    for (int64_t n = scaled_work(3000); n > 0; n--) {
        const int rows = 1 + (int)random_below(&random, 5);
        struct key_range range = {(int)random_below(&random, 100), 0};
        struct rapt_tile_mask mask = {0};
        uint32_t attended[RAPT_BLOCK_KEYS / 32], expected_keys[RAPT_BLOCK_KEYS / 32];
        range.end = (int)random_between(&random, range.begin + 1, RAPT_BLOCK_KEYS);
        for (int i = 0; i < 4; i++)
            mask.parts |= (n + 1) >> i & 1 ? parts[i] : 0u;
        draw_surveyed(&mask, rows, &random);
        const unsigned got = table->survey(rows, range.begin, range.end, &mask, attended);
        const unsigned expected = expected_survey(&mask, rows, range, expected_keys);
        if (got != expected || memcmp(attended, expected_keys, sizeof attended) != 0)
            fail_msg("%s survey: rows %d, keys [%d, %d), parts %u: got %u, expected %u, or other keys", table->name,
                     rows, range.begin, range.end, mask.parts, got, expected);
        test_free_all();
    }
}

void check_drop(const struct rapt_table *table) {
    struct random random = {3};
    for (int way = 0; way < TILE_WAYS; way++) {
        struct tile tile = tile_of(table, way);
        int rows[MAX_ROW_COUNTS], row_counts = edge_rows(&tile, rows);
        struct key_range ranges[MAX_KEY_RANGES];
        int range_count = edge_key_ranges(&tile, ranges);
        for (int turn = 0; turn < row_counts * range_count; turn++) {
            int row_count = rows[turn % row_counts];
            struct key_range range = ranges[turn / row_counts];
            struct rapt_tile_mask *mask = random_mask(&random, row_count, 0);
            float *before = test_drawn(&random, score_count(&tile), quick_special);
            float *got = test_floats(score_count(&tile)), *expected = test_floats(score_count(&tile));
            memcpy(got, before, (size_t)score_count(&tile) * sizeof(float));
            for (int row = 0; row < row_count; row++)
                for (int key = range.begin; key < range.end; key++) {
                    int64_t at = score_at(&tile, row, key);
                    expected[at] = mask->keep[row][key] ? before[at] * mask->keep_scale : 0.0f;
                }
            tile.slots->drop(got, row_count, range.begin, range.end, mask);
            expect_scores(&tile, got, expected, before, row_count, range, "drop");
            test_free_all();
        }
    }
}
