/* SPDX-License-Identifier: MIT
 * Every slot of every table against the definition in kernels.h, bit for bit. One file per family of slots; expected
 * values come from simple loops over the pieces of reference.h and fmaf. */
#ifndef RAPT_TESTS_CHECK_H
#define RAPT_TESTS_CHECK_H

#include "support/support.h"

/* One kind of one table. */
struct tile {
    const struct rapt_table *table;
    const struct rapt_tile_kind *slots;
    const char *way;
    bool is_wide;
    int most_rows, score_stride;
};

#define TILE_WAYS RAPT_KINDS
struct tile tile_of(const struct rapt_table *table, int way);

/* A row at which a tile may be split in two: 0 to all. */
static inline int random_cut(const struct tile *tile, int rows, struct random *random) {
    const int lanes = tile->slots->row_group;
    const int64_t cut = random_below(random, (rows + lanes - 1) / lanes + 1) * lanes;
    return cut < rows ? (int)cut : rows;
}

/* A score's index, and how many floats all scores of a tile take. */
static inline int64_t score_at(const struct tile *tile, int row, int key) {
    return tile->is_wide ? (int64_t)key * tile->most_rows + row : (int64_t)row * tile->score_stride + key;
}

static inline int64_t score_count(const struct tile *tile) {
    return (int64_t)tile->slots->scores_bytes(tile->most_rows, 257) / (int64_t)sizeof(float);
}

/* Row counts around every edge of this tile; returns how many. */
#define MAX_ROW_COUNTS 16
int edge_rows(const struct tile *tile, int rows[MAX_ROW_COUNTS]);

struct key_range {
    int begin, end;
};

#define MAX_KEY_RANGES 24
int edge_key_ranges(const struct tile *tile, struct key_range ranges[MAX_KEY_RANGES]);

/* Values of head_dim and value_dim around the edges of all vectors. */
extern const int edge_dims[];
extern const int edge_dim_count;

/* Token strides: contiguous, padded, reversed, all one row, all in the same L1 sets. */
#define STRIDE_KINDS 5
int64_t stride_of_kind(int kind, int64_t blocks, int64_t block_bytes); /* in blocks, for rows of so many */
struct strided {
    const char *first; /* row 0 */
    int64_t stride_bytes;
};
struct strided strided_rows(struct random *random, int64_t rows, int dim, int kind,
                            float (*draw)(struct random *));

/* Rows of a format, or of one that a tile takes in stored form, and the same numbers in float32. */
struct stored_rows {
    struct strided stored;
    int format;
    struct rapt_scales scales; /* of formats that may have some, one per row */
    const float *numbers; /* [rows][dim] */
};
struct stored_rows stored_rows_of(struct random *random, int format, int64_t rows, int dim, int kind,
                                  float (*draw)(struct random *));
struct stored_rows stored_rows(struct random *random, const struct tile *tile, int64_t rows, int dim, int kind,
                               float (*draw)(struct random *));

/* The same rows in scattered runs, and one more run; sometimes NULL, always if the kind takes none. */
const struct rapt_stored_run *random_runs(struct random *random, const struct tile *tile,
                                          const struct stored_rows *from, int64_t rows, int dim);

/* Compares scores of [0, rows) x range; other keys must keep `before`. */
void expect_scores(const struct tile *tile, const float *got, const float *expected, const float *before,
                   int rows, struct key_range range, const char *slot);

/* NULL, or ranges as rows of a causal or windowed problem have. */
const struct rapt_visible_spans *random_ranges(struct random *random, int rows);
bool is_in_ranges(const struct rapt_visible_spans *ranges, int row, int key);

void check_score(const struct rapt_table *table);
void check_logits(const struct rapt_table *table);
void check_survey(const struct rapt_table *table);
void check_drop(const struct rapt_table *table);
void check_softmax(const struct rapt_table *table);
void check_weigh(const struct rapt_table *table);
/* Part of check_weigh. */
void check_float8(const struct rapt_table *table);
void check_beside(const struct rapt_table *table);
void check_merge(const struct rapt_table *table);
void check_finish(const struct rapt_table *table);
void check_states(const struct rapt_table *table);
void check_exponentials(const struct rapt_table *table);
void check_elementary(const struct rapt_table *table);
void check_export_row(const struct rapt_table *table);
void check_all_finite(const struct rapt_table *table);
void check_stage(const struct rapt_table *table);

#endif
