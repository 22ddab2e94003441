/* SPDX-License-Identifier: MIT
 * pack and score: the FMA chains of step 1 and their factor. */
#include "check.h"
#include "cmocka_all.h"
#include "reference.h"

struct score_case {
    int rows, head_dim;
    struct key_range range;
    int stride_kind;
    float (*draw)(struct random *);
    float factor;
};

static void check_panel(const struct tile *tile, const float *panel, const float *const *query, int rows,
                        int dim) {
    for (int row = 0; row < (tile->is_wide ? tile->most_rows : rows); row++)
        for (int d = 0; d < dim; d++) {
            float got = panel[tile->is_wide ? d * tile->most_rows + row : row * dim + d];
            float expected = row < rows ? query[row][d] : 0.0f;
            if (bits_of(got) != bits_of(expected))
                fail_msg("%s %s.pack: rows %d, head_dim %d: row %d, d %d: got %a, expected %a",
                         tile->table->name, tile->way, rows, dim, row, d, (double)got, (double)expected);
        }
}

/* Rows that a wide tile fetches, or copies, beside its work. */
struct fetched {
    struct strided from;
    float *into;
    int dim;
};

static void prepare_fetch(struct rapt_score_args *args, struct fetched *fetched, struct random *random) {
    bool is_copied = random_chance(random, 60);
    for (int i = 0; i < 2; i++) {
        int rows = random_chance(random, 30) ? 0 : (int)random_between(random, 1, 70);
        fetched[i].dim = 16 * (int)random_between(random, 1, 9);
        fetched[i].from = strided_rows(random, rows + 1, fetched[i].dim, (int)random_below(random, STRIDE_KINDS),
                                       random_special);
        fetched[i].into = is_copied ? test_floats((int64_t)rows * fetched[i].dim + 16) : NULL;
        args->fetch[i] = (struct rapt_fetch){fetched[i].from.first, fetched[i].from.stride_bytes,
                                             (char *)fetched[i].into, fetched[i].dim * (int)sizeof(float), rows};
    }
}

static void expect_fetched(const struct tile *tile, const struct rapt_score_args *args,
                           const struct fetched *fetched) {
    for (int i = 0; i < 2 && fetched[i].into && tile->is_wide; i++) {
        const int rows = args->fetch[i].rows, dim = fetched[i].dim;
        for (int row = 0; row < rows; row++)
            if (memcmp(fetched[i].into + row * dim, fetched[i].from.first + row * fetched[i].from.stride_bytes,
                       (size_t)dim * sizeof(float)) != 0)
                fail_msg("%s wide.score: array %d, row %d of %d was not copied", tile->table->name, i, row, rows);
        if (bits_of(fetched[i].into[rows * dim]) != UINT32_MAX)
            fail_msg("%s wide.score: array %d: copied behind the last row", tile->table->name, i);
    }
}

static void check_one(const struct tile *tile, const struct score_case *c, struct random *random) {
    const float *query[RAPT_MAX_TILE_ROWS] = {0};
    for (int row = 0; row < c->rows; row++)
        query[row] = test_drawn(random, c->head_dim, c->draw);
    float *panel = test_floats((int64_t)c->head_dim * tile->most_rows);
    tile->slots->pack(panel, query, c->rows, c->head_dim);
    check_panel(tile, panel, query, c->rows, c->head_dim);

    int keys = c->range.end - c->range.begin;
    struct strided key = strided_rows(random, keys, c->head_dim, c->stride_kind, c->draw);
    float *got = test_floats(score_count(tile)), *expected = test_floats(score_count(tile));
    float *before = test_floats(score_count(tile));
    struct rapt_score_args args = {.query = panel,
                                   .key = key.first,
                                   .key_stride_bytes = key.stride_bytes,
                                   .scores = got,
                                   .rows = c->rows,
                                   .head_dim = c->head_dim,
                                   .key_begin = c->range.begin,
                                   .key_end = c->range.end,
                                   .factor = c->factor};
    args.ranges = random_ranges(random, c->rows);
    struct fetched fetched[2];
    prepare_fetch(&args, fetched, random);
    tile->slots->score(&args);
    expect_fetched(tile, &args, fetched);
    for (int row = 0; row < c->rows; row++)
        for (int k = 0; k < keys; k++) {
            const float *key_row = (const float *)(const void *)(key.first + k * key.stride_bytes);
            float s = rapt_reference_dot(query[row], key_row, c->head_dim);
            int64_t at = score_at(tile, row, c->range.begin + k);
            expected[at] = is_in_ranges(args.ranges, row, c->range.begin + k) ? s * c->factor : got[at];
        }
    expect_scores(tile, got, expected, before, c->rows, c->range, "score");
    test_free_all();
}

void check_score(const struct rapt_kernels *table) {
    static float (*const draws[])(struct random *) = {random_normal, random_special, random_normal,
                                                      random_finite, random_normal};
    struct random random = {1};
    for (int way = 0; way < TILE_WAYS; way++) {
        struct tile tile = tile_of(table, way);
        int rows[MAX_ROW_COUNTS], row_counts = edge_rows(&tile, rows), turn = 0;
        struct key_range ranges[MAX_KEY_RANGES];
        int range_count = edge_key_ranges(&tile, ranges);
        for (int d = 0; d < edge_dim_count; d++)
            for (int r = 0; r < row_counts; r++)
                for (int64_t n = scaled_work(5); n > 0; n--, turn++) {
                    struct score_case c = {rows[r],
                                           edge_dims[d],
                                           ranges[turn % range_count],
                                           turn / 3 % STRIDE_KINDS,
                                           draws[turn % 5],
                                           turn % 7 ? 0.125f * random_normal(&random) : 0.0f};
                    check_one(&tile, &c, &random);
                }
    }
}
