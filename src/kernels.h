/* SPDX-License-Identifier: MIT
 *
 * The dispatch table: what an instruction set has to provide.
 *
 * A tile is up to `rows` query rows against keys [key_begin, key_end) of one
 * block. There are two ways to lay its scores out:
 *
 *   wide    lanes are rows:  scores[key * tile_rows + row]
 *   narrow  lanes are keys:  scores[row * RAPT_BLOCK_KEYS + key]
 *
 * Keys are counted from the start of the block. Both ways perform the
 * operations of docs/numerics.md, so they give the same bits.
 *
 * ASSUME marks the caller's duty, ASSERT what a slot guarantees. All rows are
 * float32. Nothing here allocates, and nothing outside the named ranges is
 * read or written.
 */
#ifndef RAPT_KERNELS_H
#define RAPT_KERNELS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "rapt/rapt.h"

enum {
    RAPT_BLOCK_KEYS = 256,     /* keys between two rescalings; part of the numeric order */
    RAPT_CHUNK_KEYS = 512,     /* keys whose states are folded; part of the numeric order */
    RAPT_INNER_BLOCK = 256,    /* terms of a matrix product that are added up by themselves, and */
    RAPT_INNER_CHAIN = 64,     /* those of one chain; both are part of the numeric order */
    RAPT_MAX_TILE_ROWS = 64,   /* upper bound of every table's tile_rows and narrow_rows */
    RAPT_FETCHES = 3,          /* arrays that score fetches beside its work */
    RAPT_LISTED_ROWS = RAPT_BLOCK_KEYS + 4 * RAPT_MAX_TILE_ROWS, /* rows that weigh fetches: values of a block; bools,
                                                                    biases, out and queries of a tile */
    RAPT_VECTOR_BYTES = 64     /* alignment of scratch; rows of o are padded to it */
};

enum { RAPT_SOME_TRUE = 1, RAPT_SOME_FALSE = 2, RAPT_SOME_BIAS = 4 }; /* what survey finds */

#define RAPT_LN2 0x1.62e43p-1f    /* the nearest floats */
#define RAPT_LOG2E 0x1.715476p+0f

/* By its position a row sees keys [first_key, end_key) of the block at most.
 * ASSUME neither falls from one row to the next. */
struct rapt_key_ranges {
    int32_t first_key[RAPT_MAX_TILE_ROWS];
    int32_t end_key[RAPT_MAX_TILE_ROWS];
};

/* What one key does to the rows of a tile, besides the dot product. Arrays
 * are indexed by row; pointers point at key 0 of the block. */
struct rapt_tile_mask {
    struct rapt_key_ranges ranges;                  /* used with has_range */
    const float *bias[RAPT_MAX_TILE_ROWS];          /* used with has_bias */
    const uint8_t *mask[RAPT_MAX_TILE_ROWS];        /* used with has_mask */
    const uint8_t *keep[RAPT_MAX_TILE_ROWS];        /* used by drop */
    float bias_factor[RAPT_MAX_TILE_ROWS];          /* head factor * log2(e) */
    float alibi_factor[RAPT_MAX_TILE_ROWS];         /* -slope * log2(e) */
    int64_t distance[RAPT_MAX_TILE_ROWS];           /* query position - position of key 0 of the block */
    float softcap_log2e; /* cap * log2(e), 0 = no softcap; scores hold s * (scale / cap) then */
    float fill_log2e;    /* mask fill * log2(e), used with has_fill */
    float keep_scale;
    bool has_bias, has_mask, has_fill, has_alibi;
    bool has_range; /* some row does not see all keys of [key_begin, key_end) by its range */
};

/* Scores of a run of keys that lie at one stride. */
struct rapt_score_args {
    const float *query;        /* as pack left it */
    const char *key;           /* row of key_begin */
    int64_t key_stride_bytes;
    float *scores;             /* block origin */
    int rows, head_dim, key_begin, key_end;
    float factor;
    const struct rapt_key_ranges *ranges; /* scores of pairs outside need not be written; NULL = all are */
    struct rapt_fetch {        /* rows to bring closer meanwhile, say of the next keys and values */
        const char *base;
        int64_t stride_bytes;
        char *into;            /* contiguous rows to copy them to; NULL = fetch them into L2 */
        int row_bytes, rows;   /* row_bytes: with into, a multiple of 64 */
    } fetch[RAPT_FETCHES];
};

/* Rows to bring into L2 meanwhile. Whoever fetches some lines moves row and byte on. */
struct rapt_fetch_list {
    int count, row, byte;
    int64_t lines; /* of 64 bytes, in all */
    int bytes[RAPT_LISTED_ROWS];
    const char *rows[RAPT_LISTED_ROWS];
};

static inline void rapt_list_clear(struct rapt_fetch_list *list) {
    list->count = list->row = list->byte = 0;
    list->lines = 0;
}

static inline void rapt_list_row(struct rapt_fetch_list *list, const char *row, int bytes) {
    list->rows[list->count] = row;
    list->bytes[list->count++] = bytes;
    list->lines += (bytes + 63) / 64;
}

/* o = o * alpha (or 0 when fresh), then o[row] += p[row, key] * value[key], keys
 * ascending. The range of keys may be empty; alpha still acts. */
struct rapt_weigh_args {
    const float *probabilities; /* block origin, first row */
    const char *value;          /* row of key_begin */
    int64_t value_stride_bytes;
    const float *alpha;         /* [rows] */
    const struct rapt_key_ranges *ranges; /* outside them p is +0 and the value finite; NULL = not known */
    float *o;                   /* [rows][o_stride] */
    int64_t o_stride;           /* floats, a multiple of 16, >= value_dim */
    int rows, value_dim, key_begin, key_end;
    bool fresh;
    struct rapt_fetch_list *ahead; /* NULL = none */
};

/* The running state of rows: maximum m, sum l, unnormalised output o. l = 0
 * means empty: m is -infinity then and o holds anything. */
struct rapt_state {
    float *m, *l;     /* [rows] */
    float *o;         /* [rows][o_stride] */
};

/* Turns states into results. */
struct rapt_finish_args {
    struct rapt_state state;
    int64_t o_stride;
    int rows, value_dim;
    const float *sink_log2e;  /* [rows], sink * log2(e); NULL = none */
    float *const *out;        /* [rows], value_dim floats each */
    float *const *lse;        /* [rows], one float each; NULL = not wanted */
    float *final_m, *inverse; /* [rows], the final maximum and 1/l, for the weights; 0 where empty */
};

/* One orientation of a tile. */
struct rapt_tile_kernels {
    /* Lays rows out for score. Wide: panel[head_dim][tile_rows], absent rows +0.
     * Narrow: panel[rows][head_dim]. */
    void (*pack)(float *panel, const float *const *query_rows, int rows, int head_dim);
    /* scores = (FMA chain over head_dim from +0) * factor. */
    void (*score)(const struct rapt_score_args *args);
    /* Applies softcap, bias, ALiBi, fill and exclusion to the scores of rows [first_row, end_row);
     * excluded = -infinity. ASSUME first_row is a multiple of lanes, as for softmax. */
    void (*logits)(float *scores, int first_row, int end_row, int key_begin, int key_end,
                   const struct rapt_tile_mask *mask);
    /* Base-2 logits to probabilities in place; updates m and l, sets alpha. May fetch what ahead lists (NULL: nothing).
     * ASSUME m = -infinity and l = 0 where a chunk begins; that scores outside
     * ranges (NULL: none) are -infinity. */
    void (*softmax)(float *scores, int first_row, int end_row, int key_begin, int key_end,
                    const struct rapt_key_ranges *ranges, float *m, float *l, float *alpha,
                    struct rapt_fetch_list *ahead);
    /* Dropout: p = keep ? p * keep_scale : +0. */
    void (*drop)(float *scores, int rows, int key_begin, int key_end, const struct rapt_tile_mask *mask);
    void (*weigh)(const struct rapt_weigh_args *args);
};

/* Part of a matrix product: rows x columns of out, over inner numbers each. */
struct rapt_product_args {
    const char *x;              /* row 0 */
    const char *weight;         /* few: row 0 of the columns or of inner; tile: the panel */
    char *out;                  /* row 0 */
    const float *bias;          /* [columns]; NULL = none */
    int64_t x_stride_bytes, weight_stride_bytes, out_stride_bytes;
    int64_t rows, inner, columns;
    bool first, last;           /* tile: whether out begins here, and whether it ends with this block */
    const char *next;           /* tile: next_rows rows of next_row_bytes to bring closer meanwhile: the */
    int64_t next_stride_bytes;  /* weights of the next block; 0 rows = none */
    int next_rows, next_row_bytes;
};

/* out = sum of x * weight + bias, by blocks of RAPT_INNER_BLOCK (numerics.md, matrix products). */
struct rapt_product_kernels {
    /* panel[inner][tile_rows]: columns <= tile_rows of weight[inner][...], absent ones +0. The
     * transposed layout has wide.pack. */
    void (*pack)(float *panel, const char *weight, int64_t stride_bytes, int columns, int inner);
    /* One block of inner for up to tile_rows columns: adds to out, unless first; finishes out if last. */
    void (*tile)(const struct rapt_product_args *args);
    /* All of inner, weights read once in place; for up to narrow_rows rows. Which index of
     * weight is the row: few[0] column, few[1] inner. */
    void (*few[2])(const struct rapt_product_args *args);
};

struct rapt_kernels {
    const char *name;
    rapt_isa isa;
    int lanes;       /* float32 lanes of a vector */
    int tile_rows;   /* rows of a wide tile; its key stride */
    int narrow_rows; /* tiles of at most this many rows go the narrow way */
    struct rapt_tile_kernels wide, narrow;
    struct rapt_product_kernels product;
    /* into = into folded with next (numerics.md, step 7), both [rows]. */
    void (*merge)(struct rapt_state into, struct rapt_state next, int rows, int value_dim, int64_t o_stride);
    void (*finish)(const struct rapt_finish_args *args);
    /* p[i] = 2^(t[i] - m) as step 5 has it; m even, integer or -infinity. In place is fine. */
    void (*exponentials)(const float *t, float *p, int64_t count, float m);
    /* Looks at the bool masks and the biases that mask says there are: RAPT_SOME_TRUE, RAPT_SOME_FALSE
     * (of the bool masks), RAPT_SOME_BIAS (not -infinity). */
    unsigned (*survey)(int rows, int key_begin, int key_end, const struct rapt_tile_mask *mask);
    /* tanh_r of the softcap, for its sweep; in place is fine. */
    void (*tanhs)(const float *x, float *y, int64_t count);
    /* log2_r of the LSE; x > 0. In place is fine. */
    void (*log2s)(const float *x, float *y, int64_t count);
    /* out[i] = in[i] * factor + 0, NaN canonical. In place is fine. */
    void (*export_row)(const float *in, float *out, int64_t count, float factor);
    /* Whether count floats in each of rows rows are all finite. */
    bool (*all_finite)(const char *base, int64_t stride_bytes, int64_t rows, int count);
};

/* The table of an instruction set, NULL where this build lacks it. Does not
 * ask whether the machine has the instructions. */
const struct rapt_kernels *rapt_kernels_of(rapt_isa isa);

#define RAPT_ISA_ENTRY(name, NAME) extern const struct rapt_kernels rapt_kernels_##name;
#include "isa.def"
#undef RAPT_ISA_ENTRY

#endif
