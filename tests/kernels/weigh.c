/* SPDX-License-Identifier: MIT
 * weigh: the chains of step 6 over the values. */
#include <math.h>

#include "kernels/check.h"
#include "support/cmocka_all.h"
#include "support/stored.h"

struct weigh_case {
    int first_row, rows, value_dim;
    struct key_range range;
    int stride_kind;
    bool fresh;
    float (*draw)(struct random *);
};

static float random_probability(struct random *random) {
    return random_chance(random, 20) ? 0.0f : fabsf(quick_normal(random));
}

static void expected_row(const struct tile *tile, const struct rapt_weigh_args *args, const float *values, int row,
                         float *o) {
    for (int d = 0; d < args->value_dim; d++) {
        float sum = args->fresh ? 0.0f : args->alpha ? o[d] * args->alpha[row] : o[d];
        for (int key = args->key_begin; key < args->key_end; key++) {
            const float p = args->probabilities[score_at(tile, args->first_row + row, key)];
            sum = fmaf(p, values[(int64_t)(key - args->key_begin) * args->value_dim + d], sum);
        }
        o[d] = sum;
    }
}

static void check_one(const struct tile *tile, const struct weigh_case *c, struct random *random) {
    int64_t o_stride = (c->value_dim + 15) / 16 * 16 + (c->value_dim % 2) * 16;
    int64_t o_count = o_stride * (c->rows + 1); /* one more row that must not change */
    float *got = test_drawn(random, o_count, c->draw), *expected = test_floats(o_count);
    memcpy(expected, got, (size_t)o_count * sizeof(float));
    const struct stored_rows value =
        stored_rows(random, tile, c->range.end - c->range.begin, c->value_dim, c->stride_kind, c->draw);
    float *probabilities = test_floats(score_count(tile));
    const struct rapt_visible_spans *seen = c->draw == quick_special ? NULL : random_ranges(random, c->rows);
    for (int row = 0; row < c->rows; row++)
        for (int key = c->range.begin; key < c->range.end; key++)
            probabilities[score_at(tile, c->first_row + row, key)] =
                is_in_ranges(seen, row, key) ? random_probability(random) : 0.0f;
    float *alpha = test_floats(c->rows);
    for (int row = 0; !c->fresh && row < c->rows; row++)
        alpha[row] =
            random_chance(random, 30) ? 0.0f : float_of((uint32_t)random_between(random, 1, 127) << 23);
    struct rapt_weigh_args args = {.probabilities = probabilities,
                                   .value = value.stored.first,
                                   .value_stride_bytes = value.stored.stride_bytes,
                                   .value_format = value.format,
                                   .scales = value.scales,
                                   .alpha = random_chance(random, 20) ? NULL : alpha,
                                   .spans = seen,
                                   .o = got,
                                   .o_stride = o_stride,
                                   .first_row = c->first_row,
                                   .rows = c->rows,
                                   .value_dim = c->value_dim,
                                   .key_begin = c->range.begin,
                                   .key_end = c->range.end,
                                   .fresh = c->fresh,
                                   .streams = random_chance(random, 50)};
    for (int row = 0; row < c->rows; row++)
        expected_row(tile, &args, value.numbers, row, expected + row * o_stride);
    const int64_t keys = c->range.end - c->range.begin;
    const struct rapt_stored_run *runs = random_runs(random, tile, &value, keys, c->value_dim);
    if (runs) {
        args.value = runs->row;
        args.value_rows = runs->rows;
        args.runs = runs + 1;
    }
    tile->slots->weigh(&args);
    for (int64_t i = 0; seen && i < o_count; i++) { /* an untouched zero keeps its sign */
        got[i] = got[i] == 0 ? 0.0f : got[i];
        expected[i] = expected[i] == 0 ? 0.0f : expected[i];
    }
    for (int row = 0; row <= c->rows; row++)
        expect_bits(got + row * o_stride, expected + row * o_stride, row < c->rows ? c->value_dim : o_stride,
                    NAN_ANY,
                    "%s %s.weigh %s: rows %d from %d, value_dim %d, keys [%d, %d), stride kind %d, fresh %d: "
                    "row %d, element",
                    tile->table->name, tile->way, stored_name(value.format), c->rows, c->first_row, c->value_dim,
                    c->range.begin, c->range.end, c->stride_kind, c->fresh, row);
    test_free_all();
}

void check_weigh(const struct rapt_table *table) {
    static float (*const draws[])(struct random *) = {quick_normal, quick_special, quick_normal,
                                                      quick_finite, quick_normal};
    struct random random = {5};
    check_float8(table);
    for (int way = 0; way < TILE_WAYS; way++) {
        struct tile tile = tile_of(table, way);
        int rows[MAX_ROW_COUNTS], row_counts = edge_rows(&tile, rows), turn = 0;
        struct key_range ranges[MAX_KEY_RANGES];
        int range_count = edge_key_ranges(&tile, ranges);
        ranges[range_count++] = (struct key_range){11, 11}; /* only o = o * alpha */
        for (int d = 0; d < edge_dim_count; d++)
            for (int r = 0; r < row_counts; r++)
                for (int end = turn + 5; turn < end; turn++) {
                    if (!is_sampled(turn))
                        continue;
                    int left = tile.most_rows - rows[r];
                    struct weigh_case c = {turn % 3 ? 0 : (int)random_below(&random, left + 1),
                                           rows[r],
                                           edge_dims[d],
                                           ranges[turn % range_count],
                                           turn / 3 % STRIDE_KINDS,
                                           turn / 2 % 2,
                                           draws[turn % 5]};
                    check_one(&tile, &c, &random);
                }
    }
}
