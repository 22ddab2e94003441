/* SPDX-License-Identifier: MIT
 * pack and score: the FMA chains of step 1 and their factor. */
#include "kernels/check.h"
#include "reference/reference.h"
#include "support/cmocka_all.h"

struct score_case {
    int rows, head_dim;
    struct key_range range;
    int stride_kind;
    float (*draw)(struct random *);
    float factor;
};

static void check_panel(const struct tile *tile, const float *panel, const float *const *query, int rows,
                        int dim) {
    enum { WHOLE = 64 }; /* dims after which no panel is padded */
    const int width = (int)(tile->slots->panel_bytes(rows, WHOLE) / sizeof(float)) / WHOLE; /* from d to d + 1 */
    assert_true(width >= rows);
    for (int row = 0; row < width; row++)
        for (int d = 0; d < dim; d++) {
            float got = panel[d * width + row];
            float expected = row < rows ? query[row][d] : 0.0f;
            if (bits_of(got) != bits_of(expected))
                fail_msg("%s %s.pack: rows %d, head_dim %d: row %d, d %d: got %a, expected %a",
                         tile->table->name, tile->way, rows, dim, row, d, (double)got, (double)expected);
        }
}

/* Some rows to fetch, anywhere: only the cursor may change. */
static struct rapt_errands *random_errands(struct random *random) {
    if (random_chance(random, 30))
        return NULL;
    struct rapt_errands *errands = test_alloc(sizeof *errands);
    memset(errands, 0, sizeof *errands);
    errands->count = (int)random_between(random, 0, RAPT_MAX_ERRANDS);
    for (int i = 0; i < errands->count; i++) {
        struct rapt_errand *piece = &errands->piece[i];
        const int heads = (int)random_between(random, 1, 3), rows = (int)random_between(random, 1, 40);
        const int bytes = (int)random_between(random, 1, 700);
        *piece = (struct rapt_errand){.base = test_alloc(64),
                                      .row_stride_bytes = 64 * random_between(random, -9, 9),
                                      .head_stride_bytes = 256,
                                      .rows = rows,
                                      .heads = heads,
                                      .row_bytes = bytes};
        errands->lines += (int64_t)rows * heads * ((bytes + 63) / 64);
    }
    return errands;
}

static void check_one(const struct tile *tile, const struct score_case *c, struct random *random) {
    const float *query[RAPT_MAX_TILE_ROWS] = {0};
    for (int row = 0; row < c->rows; row++)
        query[row] = test_drawn(random, c->head_dim, c->draw);
    float *panel = test_floats((int64_t)(tile->slots->panel_bytes(tile->most_rows, c->head_dim) / sizeof(float)));
    tile->slots->pack(panel, query, c->rows, c->head_dim);
    check_panel(tile, panel, query, c->rows, c->head_dim);

    int keys = c->range.end - c->range.begin;
    const struct stored_rows key = stored_rows(random, tile, keys, c->head_dim, c->stride_kind, c->draw);
    float *got = test_floats(score_count(tile)), *expected = test_floats(score_count(tile));
    float *before = test_floats(score_count(tile));
    struct rapt_score_args args = {.query = panel,
                                   .key = key.stored.first,
                                   .key_stride_bytes = key.stored.stride_bytes,
                                   .key_format = key.format,
                                   .scales = key.scales,
                                   .scores = got,
                                   .rows = c->rows,
                                   .head_dim = c->head_dim,
                                   .key_begin = c->range.begin,
                                   .key_end = c->range.end,
                                   .factor = c->factor};
    args.spans = random_ranges(random, c->rows);
    args.errands = random_errands(random);
    args.streams = random_chance(random, 50);
    const struct rapt_stored_run *runs = random_runs(random, tile, &key, keys, c->head_dim);
    if (runs) {
        args.key = runs->row;
        args.key_rows = runs->rows;
        args.runs = runs + 1;
    }
    tile->slots->score(&args);
    if (args.errands)
        assert_in_range(args.errands->at, 0, args.errands->count);
    for (int row = 0; row < c->rows; row++)
        for (int k = 0; k < keys; k++) {
            float s = rapt_reference_dot(query[row], key.numbers + (int64_t)k * c->head_dim, c->head_dim);
            int64_t at = score_at(tile, row, c->range.begin + k);
            expected[at] = is_in_ranges(args.spans, row, c->range.begin + k) ? s * c->factor : got[at];
        }
    expect_scores(tile, got, expected, before, c->rows, c->range, "score");
    test_free_all();
}

void check_score(const struct rapt_table *table) {
    static float (*const draws[])(struct random *) = {quick_normal, quick_special, quick_normal,
                                                      quick_finite, quick_normal};
    struct random random = {1};
    for (int way = 0; way < TILE_WAYS; way++) {
        struct tile tile = tile_of(table, way);
        int rows[MAX_ROW_COUNTS], row_counts = edge_rows(&tile, rows), turn = 0;
        struct key_range ranges[MAX_KEY_RANGES];
        int range_count = edge_key_ranges(&tile, ranges);
        for (int d = 0; d < edge_dim_count; d++)
            for (int r = 0; r < row_counts; r++)
                for (int end = turn + 5; turn < end; turn++) {
                    if (!is_sampled(turn))
                        continue;
                    struct score_case c = {rows[r],
                                           edge_dims[d],
                                           ranges[turn % range_count],
                                           turn / 3 % STRIDE_KINDS,
                                           draws[turn % 5],
                                           turn % 7 ? 0.125f * quick_normal(&random) : 0.0f};
                    check_one(&tile, &c, &random);
                }
    }
}
