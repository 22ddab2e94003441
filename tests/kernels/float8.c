/* SPDX-License-Identifier: MIT
 * Every code of float8 as a key and as a value of narrow tiles, with and without VBMI. */
#include "kernels/check.h"

#include <math.h>

#include "cpu.h"
#include "reference/reference.h"
#include "support/cmocka_all.h"
#include "support/stored.h"

enum { CODES = 256, DIM = 32, KEYS = 20 };

static const int formats[] = {RAPT_FORMAT_F8_E4M3, RAPT_FORMAT_F8_E5M2};
static const int row_counts[] = {1, 2, 4, 5, 8, 12};

/* Number `code` times the scale, as a sum that starts at +0. */
static float expected_number(int format, int code, float scale) {
    const uint8_t byte = (uint8_t)code;
    return 0.0f + scale * rapt_reference_number(stored_dtype(format), &byte, 0);
}

/* Key `code` has this one somewhere and zeros elsewhere. */
static void check_keys(const struct tile *tile, int format, int rows, const float *scale) {
    uint8_t *keys = test_alloc(CODES * DIM);
    memset(keys, 0, CODES * DIM);
    for (int code = 0; code < CODES; code++)
        keys[code * DIM + code * 5 % DIM] = (uint8_t)code;
    const float *query[RAPT_MAX_TILE_ROWS] = {0};
    for (int row = 0; row < rows; row++) {
        float *ones = test_floats(DIM);
        for (int d = 0; d < DIM; d++)
            ones[d] = 1;
        query[row] = ones;
    }
    float *panel = test_floats((int64_t)(tile->slots->panel_bytes(tile->most_rows, DIM) / sizeof(float)));
    float *scores = test_floats(score_count(tile));
    tile->slots->pack(panel, query, rows, DIM);
    const struct rapt_score_args args = {.query = panel, .key = (const char *)keys, .key_stride_bytes = DIM,
                                         .key_format = format, .scales = {.scales = scale}, .scores = scores,
                                         .rows = rows, .head_dim = DIM, .key_end = CODES, .factor = 1};
    tile->slots->score(&args);
    for (int row = 0; row < rows; row++)
        for (int code = 0; code < CODES; code++)
            if (!same_bits(scores[score_at(tile, row, code)], expected_number(format, code, *scale), NAN_ANY))
                fail_msg("%s: %d rows, a key of code %02x: got %a", tile->table->name, rows, (unsigned)code,
                         (double)scores[score_at(tile, row, code)]);
    test_free_all();
}

/* Keys of few numbers, none 0, with an infinite scale: scores are infinite, whatever pads the rows. */
static void check_rests(const struct tile *tile, int format, int rows) {
    static const int dims[] = {1, 3, 8, 9, 31, 33};
    static const float infinite = INFINITY;
    static float ones[DIM + 1];
    static uint8_t keys[KEYS * (DIM + 1)];
    const float *query[RAPT_MAX_TILE_ROWS] = {0};
    for (int d = 0; d <= DIM; d++)
        ones[d] = 1;
    for (int row = 0; row < rows; row++)
        query[row] = ones;
    memset(keys, 0x38, sizeof keys);
    for (size_t i = 0; i < sizeof dims / sizeof *dims; i++) {
        float *panel = test_floats((int64_t)(tile->slots->panel_bytes(tile->most_rows, dims[i]) / sizeof(float)));
        float *scores = test_floats(score_count(tile));
        tile->slots->pack(panel, query, rows, dims[i]);
        const struct rapt_score_args args = {.query = panel, .key = (const char *)keys, .key_stride_bytes = dims[i],
                                             .key_format = format, .scales = {.scales = &infinite}, .scores = scores,
                                             .rows = rows, .head_dim = dims[i], .key_end = KEYS, .factor = 1};
        tile->slots->score(&args);
        for (int key = 0; key < KEYS; key++)
            if (!same_bits(scores[score_at(tile, rows - 1, key)], INFINITY, NAN_ANY))
                fail_msg("%s: %d rows, %d dims: got %a", tile->table->name, rows, dims[i],
                         (double)scores[score_at(tile, rows - 1, key)]);
    }
    test_free_all();
}

/* One value with all codes, with weight 1. */
static void check_value(const struct tile *tile, int format, int rows, const float *scale, int dims) {
    uint8_t *value = test_alloc((size_t)dims);
    float *weights = test_floats(score_count(tile)), *o = test_floats((int64_t)rows * dims);
    for (int code = 0; code < dims; code++)
        value[code] = (uint8_t)(CODES - dims + code);
    for (int row = 0; row < rows; row++)
        weights[score_at(tile, row, 0)] = 1;
    const struct rapt_weigh_args args = {.probabilities = weights, .value = (const char *)value,
                                         .value_stride_bytes = dims, .value_format = format,
                                         .scales = {.scales = scale}, .o = o, .o_stride = dims, .rows = rows,
                                         .value_dim = dims, .key_end = 1, .fresh = true};
    tile->slots->weigh(&args);
    for (int row = 0; row < rows; row++)
        for (int d = 0; d < dims; d++)
            if (!same_bits(o[row * dims + d], expected_number(format, value[d], *scale), NAN_ANY))
                fail_msg("%s: %d rows, %d dims, a value of code %02x: got %a", tile->table->name, rows, dims,
                         (unsigned)value[d], (double)o[row * dims + d]);
    test_free_all();
}

void check_float8(const struct rapt_table *table) {
    static const float scales[] = {1, 0x1.23456p-3f};
    const bool machine_has_it = atomic_load(&rapt_has_vbmi);
    const struct tile tile = tile_of(table, RAPT_NARROW);
    for (int turn = 0; turn < 2 * 2 * 2 * 6; turn++) {
        const int format = formats[turn & 1], rows = row_counts[turn / 8];
        const float *scale = &scales[turn >> 1 & 1];
        if (rows > tile.most_rows)
            continue;
        atomic_store(&rapt_has_vbmi, machine_has_it && (turn >> 2 & 1));
        check_keys(&tile, format, rows, scale);
        check_rests(&tile, format, rows);
        for (int dims = CODES; dims >= 16; dims /= 2)
            check_value(&tile, format, rows, scale, dims);
    }
    atomic_store(&rapt_has_vbmi, machine_has_it);
}
