/* SPDX-License-Identifier: MIT
 * The dispatch table: what an instruction set must provide.
 *
 * A tile is a group of query rows of a task. A tile kind is one layout of such rows and their scores, with the slots
 * that work on it; all kinds perform the operations of docs/numerics.md, so they give the same bits. Only a kind's own
 * slots know where in a panel or among the scores a number lies.
 *
 * ASSUME marks what the caller must ensure, checked in builds with RAPT_ASSERTIONS; ASSERT what a slot guarantees.
 * Slots never allocate, and touch nothing outside the named rows. Keys are counted from the start of the block.
 */
#ifndef RAPT_KERNELS_H
#define RAPT_KERNELS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "format.h"
#include "kernels_append.h"
#include "kernels_product.h"
#include "kernels_rows.h"
#include "rapt/rapt.h"

enum {
    RAPT_BLOCK_KEYS = 256,     /* keys between two rescalings; part of the numeric order */
    RAPT_CHUNK_KEYS = 512,     /* keys whose states are folded; part of the numeric order */
    RAPT_HALF_KEYS = 128,      /* orders 2 and 3: keys between two rescalings, half a block, and */
    RAPT_STEP = 32,            /* terms per step of a dot product; both are part of the numeric order */
    RAPT_SUM_LANES = 16,       /* orders 2 and 3: lanes of l; part of the numeric order */
    RAPT_INNER_BLOCK = 256,    /* terms of a matrix product that are summed separately, and */
    RAPT_INNER_CHAIN = 64,     /* those of one chain; both are part of the numeric order */
    RAPT_MAX_TILE_ROWS = 64,   /* upper bound of every kind's rows */
    RAPT_VECTOR_BYTES = 64     /* alignment of scratch; rows of o are padded to it */
};

enum rapt_side { RAPT_KEYS, RAPT_VALUES, RAPT_SIDES };

enum { RAPT_SOME_FALSE = 1, RAPT_SOME_CHANGE = 2, RAPT_ALIKE = 4 }; /* what survey finds */

#define RAPT_LN2 0x1.62e43p-1f    /* the nearest floats */
#define RAPT_LOG2E 0x1.715476p+0f

/* ------------------------------------------------------------ what slots take */

/* A row's position lets it see keys [first_key, end_key) of the block at most. ASSUME neither falls from row to row. */
struct rapt_visible_spans {
    int32_t first_key[RAPT_MAX_TILE_ROWS];
    int32_t end_key[RAPT_MAX_TILE_ROWS];
};

/* What acts on the scores of a tile. */
enum rapt_mask_part {
    RAPT_PART_SPANS = 1 << 0, /* some row's position hides keys of [key_begin, key_end) */
    RAPT_PART_BIAS = 1 << 1,
    RAPT_PART_ALIBI = 1 << 2,
    RAPT_PART_MASK = 1 << 3,
    RAPT_PART_FILL = 1 << 4,  /* the mask replaces scores instead of excluding them */
    RAPT_PART_SOFTCAP = 1 << 5,
    RAPT_PART_KEEP = 1 << 6,  /* dropout, which acts on probabilities */
    RAPT_PART_SELECT = 1 << 7 /* trees or lists of key blocks exclude */
};

/* Whether the mask excludes keys. */
static inline bool rapt_mask_excludes(unsigned parts) {
    return (parts & (RAPT_PART_MASK | RAPT_PART_FILL)) == RAPT_PART_MASK;
}

/* What acts on the scores of a tile and a key block. Arrays are indexed by row; pointers point at key 0 of the block.
 *
 * If only some keys of the block matter, slots see these alone, numbered from 0: key i of the scores, the spans and
 * the pointers is then the key at place[i] of the block. */
struct rapt_tile_mask {
    unsigned parts;                                 /* rapt_mask_part */
    int selected;                                   /* how many keys matter; 0 = all, numbered by place */
    uint8_t place[RAPT_BLOCK_KEYS];                 /* [selected], ascending */
    struct rapt_visible_spans spans;
    const float *bias[RAPT_MAX_TILE_ROWS];
    const uint8_t *mask[RAPT_MAX_TILE_ROWS];
    const uint8_t *keep[RAPT_MAX_TILE_ROWS];
    const uint8_t *select[RAPT_MAX_TILE_ROWS];      /* 0 = excluded */
    float bias_factor[RAPT_MAX_TILE_ROWS];          /* head factor * log2(e) */
    float alibi_factor[RAPT_MAX_TILE_ROWS];         /* -slope * log2(e) */
    int64_t distance[RAPT_MAX_TILE_ROWS];           /* query position - position of key 0 of the block */
    float softcap_log2e; /* cap * log2(e); scores hold s * (scale / cap) then */
    float fill_log2e;    /* mask fill * log2(e) */
    float keep_scale;
};

static inline const struct rapt_visible_spans *rapt_spans_of(const struct rapt_tile_mask *mask) {
    return mask->parts & RAPT_PART_SPANS ? &mask->spans : NULL;
}

/* Converts stored rows to float32 rows, dim floats apart. */
struct rapt_stage_args {
    float *into;
    const char *from;
    int64_t from_stride_bytes;
    int64_t rows;
    int dim, format;
    bool streams; /* rows come from memory, so the slot prefetches: */
    int64_t lead_bytes; /* with each row, the one this far off; 0 = the rows that follow these at the stride */
    struct rapt_scales scales;
};

/* Computes the scores of a run of keys at one stride. */
struct rapt_score_args {
    const float *query;        /* as pack left it */
    const char *key;           /* row of key_begin */
    int64_t key_stride_bytes;
    int key_format;            /* float32, or a format that the kind reads as stored */
    struct rapt_scales scales; /* of these rows, one each, no zero points */
    float *scores;             /* of the tile, at key 0 of the block */
    int rows, head_dim, key_begin, key_end;
    float factor;
    bool streams;              /* as in rapt_stage_args */
    bool exceeds_caches;       /* the call's keys and values do */
    int64_t lead_bytes;
    int heads;                 /* that take turns, side by side: the calls of a turn together prefetch whole tokens, of
                                  all heads, as many as the turn has keys; 0 or 1 = only its own rows */
    int64_t key_rows;             /* with runs: rows at key */
    const struct rapt_stored_run *runs;  /* the runs after these, and a sentinel; NULL = all rows are at key */
    const struct rapt_strands *ahead; /* what to prefetch; NULL = as lead_bytes says */
    const struct rapt_visible_spans *spans; /* scores of pairs outside need not be written; NULL = all are */
    struct rapt_errands *errands;
};

/* o = o * alpha (or 0 when fresh), then o[row] += p[row, key] * value[key], keys ascending, for the rows [first_row,
 * first_row + rows) of the tile. With no keys, alpha still acts. */
struct rapt_weigh_args {
    const float *probabilities; /* of the tile, at key 0 of the block */
    const char *value;          /* row of key_begin */
    int64_t value_stride_bytes;
    int value_format;           /* float32, or a format that the kind reads as stored */
    struct rapt_scales scales;  /* as in rapt_score_args */
    const float *alpha;         /* [rows], from first_row on; NULL = 1 */
    float *l;                   /* likewise, score_beside only: l = l * alpha, then += p. NULL = softmax did */
    const struct rapt_visible_spans *spans; /* of these rows. Outside them p is +0, and the slot may include or skip the
                                               value; NULL = every pair takes part */
    float *o;                   /* [rows][o_stride], from first_row on */
    int64_t o_stride;           /* floats, a multiple of 16, >= value_dim */
    int first_row, rows, value_dim, key_begin, key_end;
    bool fresh;
    bool streams;               /* as in rapt_stage_args */
    int64_t lead_bytes;
    int heads;                  /* as in rapt_score_args */
    int64_t value_rows;         /* as key_rows, runs and ahead of rapt_score_args */
    const struct rapt_stored_run *runs;
    const struct rapt_strands *ahead;
    struct rapt_errands *errands;
};

/* The running state of rows: maximum m, sum l, unnormalised output o. If l = 0, m is -infinity and o undefined. */
struct rapt_state {
    float *m, *l;     /* [rows] */
    float *o;         /* [rows][o_stride] */
    int64_t o_stride; /* floats, a multiple of 16 */
};

/* Turns states into results. */
struct rapt_finish_args {
    struct rapt_state state;
    int rows, value_dim;
    const float *sink_log2e;  /* [rows], sink * log2(e); NULL = none */
    int out_format;
    char *const *out;         /* [rows], value_dim numbers of out_format each; NULL = none */
    char *const *lse;         /* [rows], one float each; NULL = none */
    float *final_m, *inverse; /* [rows], the final maximum and 1/l, for the weights; 0 where empty */
};

/* ------------------------------------------------------------ tile kinds */

enum { RAPT_MOST_HEADS = 8 }; /* in turns, at most */

struct rapt_block;
struct rapt_task;

/* What packing finds in stored rows. FINITE: no NaN and no infinity. NORMAL: dot products of such numbers never meet a
 * denormal, so it does not matter how those are flushed (numerics.md, order 2); used only by kinds that flush
 * differently from order 2. */
enum { RAPT_FOUND_FINITE = 1, RAPT_FOUND_NORMAL = 2 };

struct rapt_tile_kind {
    const char *name;
    int most_rows;   /* chosen if a KV head has at most so many rows (INT_MAX = any) */
    int least_dim;   /* and head_dim is at least this */
    int least_keys;  /* sequences of fewer keys get the last kind */
    int turn_rows;   /* chosen up to so many rows, too, if they read keys and values in turns */
    int rows;        /* of a tile at most */
    int row_step;    /* the rows of a tile are a multiple of it, except in a task's last tile */
    int row_group;   /* logits and softmax begin at multiples of it */
    int piece_keys;  /* keys staged at once: the whole block if several tiles share them */
    int copied_rows; /* rows from which on copying keys and values that collide in caches pays; 0 = never */
    bool streams;    /* few rows: memory limits the slots, so they prefetch their own rows */
    bool takes_runs; /* score and weigh, or the kind's own block, take several runs of rows at once */
    bool keeps_places; /* keys keep their places in a block, however few matter: orders 2 and 3 count from there */
    /* Turns: keys of the next block are scored beside values of this one, by score_beside or the kind's own block. */
    uint8_t beside_rows[RAPT_FORMAT_COUNT]; /* rows up to which a format takes turns; 0 = never */
    int beside_unlike_dim;     /* head_dim and value_dim may differ if one exceeds this; 0 = they must not */
    bool beside_partial_lines; /* rows may end within a cache line */
    int turn_keys;             /* pages: page_tokens must be a multiple of this, a turn or half of one */
    bool beside_single_head;   /* pages: a single head takes turns on any processor, too, not only several heads */
    /* KV heads that take turns without score_beside: */
    int step_turn_keys;  /* keys per turn of score, then of weigh, without scales; 0 = none */
    int block_turn_rows; /* rows per head up to which heads take turns of whole blocks, in the kind's block; 0 = none */
    unsigned formats; /* bit f: score and weigh read rows of format f as stored; the source widens others */
    size_t (*panel_bytes)(int rows, int head_dim);
    size_t (*scores_bytes)(int rows, int dim); /* dim: of keys or values, the larger */

    /* Updates the state of one tile by one key block. rapt_block_by_steps calls the slots below; a matrix unit may
     * bring its own block and omit them. */
    void (*block)(const struct rapt_block *block);

    /* Lays rows out for score; absent rows of the last vector count as +0. */
    void (*pack)(float *panel, const float *const *query_rows, int rows, int head_dim);
    /* The same for rows as stored; NULL = they are widened for pack. A kind has one of the two. */
    void (*pack_stored)(float *panel, const char *const *query_rows, int rows, int head_dim);
    /* scores = (FMA chain over head_dim from +0) * factor. */
    void (*score)(const struct rapt_score_args *args);
    /* Applies softcap, bias, ALiBi, fill and exclusion to the scores of rows [first_row, end_row);
     * excluded = -infinity. ASSUME first_row is a multiple of row_group, as for softmax. */
    void (*logits)(float *scores, int first_row, int end_row, int key_begin, int key_end,
                   const struct rapt_tile_mask *mask);
    /* Turns base-2 logits into probabilities in place; updates m and l (NULL = score_beside does), sets alpha.
     * ASSUME m = -infinity and l = 0 where a chunk begins; scores outside spans (NULL: none) are -infinity. */
    void (*softmax)(float *scores, int first_row, int end_row, int key_begin, int key_end,
                    const struct rapt_visible_spans *spans, float *m, float *l, float *alpha,
                    struct rapt_errands *errands);
    /* Dropout: p = keep ? p * keep_scale : +0. */
    void (*drop)(float *scores, int rows, int key_begin, int key_end, const struct rapt_tile_mask *mask);
    void (*weigh)(const struct rapt_weigh_args *args);
    /* Alternates score of the next block's keys with weigh of this block's values: memory serves two streams at once
     * faster than one after the other; or NULL. Up to RAPT_MOST_HEADS KV heads whose rows lie side by side take turns,
     * too. ASSUME both have keys, in a format of beside_rows; runs, if any, are those of the first head, with others'
     * at the distance of their first rows, and multiples of turn_keys except the first and last, and there are no
     * scales then; all heads have the same keys, values, rows and strides; head_dim = value_dim; rows are whole lines,
     * or blocks without gaps; score has no spans. scores_bytes has room for two blocks then. */
    void (*score_beside)(const struct rapt_score_args *score, const struct rapt_weigh_args *weigh, int heads);

    /* Kinds of orders 2 and 3 (numerics.md) have block, pack and the following; softmax, drop and weigh are NULL.
     * attend/weights.c calls score and logits of kinds[RAPT_NARROW]. A panel holds whatever the kind keeps for
     * a tile: its queries, the lanes of l in a chunk. pack recovers the stored rows exactly from widened ones.
     *
     * Keys and values that many rows share come packed, from rapt_source_packed: RAPT_HALF_KEYS at a time, starting at
     * a multiple of that, once for all tiles of a task. packed_bytes: the size of so many, a multiple of
     * RAPT_VECTOR_BYTES; NULL if the kind reads rows in place. pack_half lays out rows of a format and returns what it
     * found (RAPT_FOUND_...). rows[i]: position i of the half; NULL = absent, which counts as +0; a step of RAPT_STEP
     * absent positions is never read. The rows of one more step follow, for prefetching.
     * Rows beyond the keys that the block names may be others', and must not act, not even as NaN: kinds with
     * packed_bytes check RAPT_FOUND_FINITE themselves; for the others the loop repeats the chunk with `careful` set. */
    size_t (*packed_bytes)(int side, int dim);
    unsigned (*pack_half[RAPT_SIDES])(void *into, const char *const *rows, int dim, int format);
    /* Ends a chunk: computes state.l of a tile's rows from what its blocks left, and brings o to its final unit. Only
     * called after a block of the chunk; block.fresh marks the first. NULL = l is ready already. */
    void (*close)(const struct rapt_task *task, float *panel, struct rapt_state state, int rows);
    /* Configure the processor around all blocks of a task, on the thread that runs it. NULL = nothing to do. */
    void (*enter)(const struct rapt_task *task);
    void (*leave)(const struct rapt_task *task);
};

/* ------------------------------------------------------------ the table */

enum { RAPT_NARROW = 0, RAPT_FEW = 1, RAPT_WIDE = 2, RAPT_KINDS = 3 };

/* Kinds of orders 2 and 3, by the type of queries, keys and values. */
enum { RAPT_OF_BF16, RAPT_OF_F16, RAPT_OF_F32, RAPT_UNIT_TYPES };

struct rapt_table {
    const char *name;
    rapt_isa isa;
    struct rapt_tile_kind kinds[RAPT_KINDS]; /* by most_rows, ascending; narrow: score rows are contiguous */
    struct rapt_product_kernels product;
    /* Stored rows to float32 (docs/numerics.md). */
    void (*stage)(const struct rapt_stage_args *args);
    /* A float32 row to a stored one (numerics.md, stored numbers). */
    void (*store)(const struct rapt_store_args *args);
    /* cosines[i], sines[i] = factor * cos, sin of position * frequencies[i] (numerics.md, rotary embedding). */
    void (*angles)(const float *frequencies, int pairs, int64_t position, double factor, float *cosines, float *sines);
    /* Rotates the first 2 * pairs numbers of a row. [RAPT_PAIR_...] */
    void (*rotate[RAPT_PAIRINGS])(float *into, const float *from, const float *cosines, const float *sines, int pairs);
    /* into = into folded with next (numerics.md, step 7), both [rows]. */
    void (*merge)(struct rapt_state into, struct rapt_state next, int rows, int value_dim);
    void (*finish)(const struct rapt_finish_args *args);
    /* Callers' rows, m, l, o[value_dim] each, to a state and back (numerics.md, States). Rows may hold anything: an
     * invalid state gets l = NaN. */
    void (*load_states)(struct rapt_state into, char *const *rows, int count, int value_dim);
    void (*store_states)(struct rapt_state from, char *const *rows, int count, int value_dim);
    /* p[i] = 2^(t[i] - m) (step 5); m is an even integer or -infinity. In place is fine. */
    void (*exponentials)(const float *t, float *p, int64_t count, float m);
    /* Which keys masks, biases and selections leave: sets the bit of each key that some row attends to, or of all keys
     * if these are more than three in four. RAPT_ALIKE: they are not, and every row attends to just these.
     * RAPT_SOME_FALSE: a bool mask has a false entry. RAPT_SOME_CHANGE: a bias is not 0. ASSUME there is a key. */
    unsigned (*survey)(int rows, int key_begin, int key_end, const struct rapt_tile_mask *mask,
                       uint32_t attended[RAPT_BLOCK_KEYS / 32]);
    /* tanh_r of the softcap, for tests; in place is fine. */
    void (*tanhs)(const float *x, float *y, int64_t count);
    /* log2_r of the LSE; x > 0. In place is fine. */
    void (*log2s)(const float *x, float *y, int64_t count);
    /* out[i] = in[i] * factor + 0, NaN canonical. In place is fine. */
    void (*export_row)(const float *in, float *out, int64_t count, float factor);
    /* Whether the first count floats of each row are finite. */
    bool (*all_finite)(const char *base, int64_t stride_bytes, int64_t rows, int count);
    /* Order 2: probabilities for the weights, p[i] = that of y[i] * factor at m, as a fraction of l. In place is fine.
     * NULL in orders 1 and 3, which use exponentials. */
    void (*rounded)(const float *y, float *p, int64_t count, float m, float factor, int format);
    /* For order 2 or 3 of a type: other kinds, merge, finish, load_states, rounded. These have none themselves. */
    const struct rapt_table *of_unit[RAPT_UNIT_TYPES];
    const struct rapt_unit *units; /* best first, the last one without a table; NULL = none */
};

/* A unit that some processors with a table's instructions have; pays: whether automatic choice takes it, NULL = always.
 * table(of_unit[type], type): that table with the unit's isa and a kind that multiplies on it; NULL if the process may
 * not use it, it fails known answers, or lacks a kind for the type (all have bfloat16). ASSUME its features exist. */
struct rapt_unit {
    rapt_isa isa;
    bool (*pays)(void);
    const struct rapt_table *(*table)(const struct rapt_table *chains, int type);
};

#define RAPT_ISA_ENTRY(name, table, number, architecture, features) extern const struct rapt_table rapt_table_##table;
#define RAPT_ISA_UNIT(name, table, number, architecture, features)
#include "isa.def"
#undef RAPT_ISA_ENTRY

#endif
