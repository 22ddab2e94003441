/* SPDX-License-Identifier: MIT
 * score_beside: score and weigh of two blocks, interleaved. */
#include <math.h>

#include "cpu.h"
#include "kernels/check.h"
#include "reference/reference.h"
#include "support/cmocka_all.h"
#include "support/stored.h"

struct beside_case {
    int rows, first_row, dim, format;
    struct key_range scored, weighed;
    int stride_kind;
    bool fresh, sums;
    float (*draw)(struct random *);
};

static void expected_scores(const struct tile *tile, const struct rapt_score_args *args, const float *const *query,
                            const float *keys, float *expected) {
    for (int row = 0; row < args->rows; row++)
        for (int key = args->key_begin; key < args->key_end; key++)
            expected[score_at(tile, row, key)] =
                rapt_reference_dot(query[row], keys + (int64_t)(key - args->key_begin) * args->head_dim,
                                   args->head_dim) *
                args->factor;
}

static void expected_o(const struct tile *tile, const struct rapt_weigh_args *args, const float *values,
                       float *o) {
    for (int row = 0; row < args->rows; row++)
        for (int d = 0; d < args->value_dim; d++) {
            float sum = args->fresh ? 0.0f : o[row * args->o_stride + d] * args->alpha[row];
            for (int key = args->key_begin; key < args->key_end; key++)
                sum = fmaf(args->probabilities[score_at(tile, args->first_row + row, key)],
                           values[(int64_t)(key - args->key_begin) * args->value_dim + d], sum);
            o[row * args->o_stride + d] = sum;
        }
}

static void expected_l(const struct tile *tile, const struct rapt_weigh_args *args, float *l) {
    for (int row = 0; row < args->rows; row++) {
        l[row] *= args->alpha[row];
        for (int key = args->key_begin; key < args->key_end; key++)
            l[row] += args->probabilities[score_at(tile, args->first_row + row, key)];
    }
}

static void check_one(const struct tile *tile, const struct beside_case *c, struct random *random) {
    const int keys = c->scored.end - c->scored.begin, values = c->weighed.end - c->weighed.begin;
    const int value_kind = (c->stride_kind + c->rows) % STRIDE_KINDS;
    const struct stored_rows key = stored_rows_of(random, c->format, keys, c->dim, c->stride_kind, c->draw);
    const struct stored_rows value = stored_rows_of(random, c->format, values, c->dim, value_kind, c->draw);
    float *scores = test_floats(score_count(tile)), *before = test_floats(score_count(tile));
    float *scores_expected = test_floats(score_count(tile));
    const int64_t o_count = (int64_t)(c->rows + 1) * c->dim; /* one more row that must not change */
    float *o = test_drawn(random, o_count, c->draw), *o_expected = test_floats(o_count);
    float *l = test_drawn(random, c->rows + 1, quick_normal), *l_expected = test_floats(c->rows + 1);
    memcpy(o_expected, o, (size_t)o_count * sizeof(float));
    memcpy(l_expected, l, ((size_t)c->rows + 1) * sizeof(float));
    const float *query[RAPT_MAX_TILE_ROWS];
    for (int row = 0; row < c->rows; row++)
        query[row] = test_drawn(random, c->dim, c->draw);
    float *panel = test_floats((int64_t)(tile->slots->panel_bytes(c->rows, c->dim) / sizeof(float)));
    tile->slots->pack(panel, query, c->rows, c->dim);
    const struct rapt_score_args score = {.query = panel,
                                          .key = key.stored.first,
                                          .key_stride_bytes = key.stored.stride_bytes,
                                          .key_format = key.format,
                                          .scales = key.scales,
                                          .scores = scores,
                                          .rows = c->rows,
                                          .head_dim = c->dim,
                                          .key_begin = c->scored.begin,
                                          .key_end = c->scored.end,
                                          .factor = 0.125f,
                                          .streams = true,
                                          .exceeds_caches = c->sums};
    const struct rapt_weigh_args weigh = {.probabilities = test_drawn(random, score_count(tile), quick_normal),
                                          .value = value.stored.first,
                                          .value_stride_bytes = value.stored.stride_bytes,
                                          .value_format = value.format,
                                          .scales = value.scales,
                                          .alpha = test_drawn(random, c->rows, quick_normal),
                                          .l = c->sums ? l : NULL,
                                          .o = o,
                                          .o_stride = c->dim,
                                          .first_row = c->first_row,
                                          .rows = c->rows,
                                          .value_dim = c->dim,
                                          .key_begin = c->weighed.begin,
                                          .key_end = c->weighed.end,
                                          .fresh = c->fresh,
                                          .streams = true};
    expected_scores(tile, &score, query, key.numbers, scores_expected);
    expected_o(tile, &weigh, value.numbers, o_expected);
    if (c->sums)
        expected_l(tile, &weigh, l_expected);
    tile->slots->score_beside(&score, &weigh, 1);
    expect_scores(tile, scores, scores_expected, before, c->rows, c->scored, "score_beside");
    expect_bits(o, o_expected, o_count, NAN_ANY,
                "%s %s.score_beside %s: rows %d, dim %d, keys [%d, %d), values of [%d, %d), fresh %d: element",
                tile->table->name, tile->way, stored_name(c->format), c->rows, c->dim, c->scored.begin,
                c->scored.end, c->weighed.begin, c->weighed.end, c->fresh);
    expect_bits(l, l_expected, c->rows + 1, NAN_ANY, "%s %s.score_beside l: rows %d, values of [%d, %d), sums %d",
                tile->table->name, tile->way, c->rows, c->weighed.begin, c->weighed.end, c->sums);
    test_free_all();
}

void check_beside(const struct rapt_table *table) {
    static const int dims[] = {16, 48, 64, 128, 144};
    static const int formats[] = {RAPT_FORMAT_F32, RAPT_FORMAT_F16, RAPT_FORMAT_BF16, RAPT_FORMAT_Q8_0,
                                  RAPT_FORMAT_Q4_0, RAPT_FORMAT_F8_E4M3, RAPT_FORMAT_F8_E5M2, RAPT_FORMAT_Q4_1,
                                  RAPT_FORMAT_Q5_0, RAPT_FORMAT_Q5_1, RAPT_FORMAT_IQ4_NL};
    enum { FORMATS = sizeof formats / sizeof *formats };
    static float (*const draws[])(struct random *) = {quick_normal, quick_special, quick_finite};
    struct random random = {12};
    const int requests = atomic_load(&rapt_requests_here);
    for (int way = 0; way < TILE_WAYS; way++) {
        struct tile tile = tile_of(table, way);
        int rows[MAX_ROW_COUNTS], row_counts = edge_rows(&tile, rows), turn = 0;
        struct key_range ranges[MAX_KEY_RANGES];
        const int range_count = edge_key_ranges(&tile, ranges);
        for (int r = 0; tile.slots->score_beside && r < row_counts; r++)
            for (int end = turn + 160; turn < end; turn++) {
                if (!is_sampled(turn))
                    continue;
                const int drawn = formats[random_below(&random, FORMATS)];
                const int format = rows[r] <= tile.slots->beside_rows[drawn] ? drawn : RAPT_FORMAT_F32;
                const int lines = format == RAPT_FORMAT_F32 ? 1 : 2;
                const struct beside_case c = {rows[r],
                                              (int)random_below(&random, tile.most_rows - rows[r] + 1),
                                              dims[turn % 5] * lines,
                                              format,
                                              ranges[random_below(&random, range_count)],
                                              ranges[random_below(&random, range_count)],
                                              turn / 3 % STRIDE_KINDS,
                                              turn / 2 % 2,
                                              turn / 4 % 2,
                                              draws[turn % 3]};
                atomic_store(&rapt_requests_here, turn / 8 % (RAPT_REQUESTS_FAR_INTO_L1 + 1));
                check_one(&tile, &c, &random);
            }
    }
    atomic_store(&rapt_requests_here, requests);
}
