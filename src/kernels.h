/* SPDX-License-Identifier: MIT
 * The dispatch table: what an instruction set has to provide.
 *
 * A tile is some query rows of a task. A tile kind is one way to lay such rows and their scores out, with the slots
 * that work on them; all kinds perform the operations of docs/numerics.md, so they give the same bits. Only the slots
 * of a kind know where in a panel or among the scores a number lies.
 *
 * ASSUME marks the caller's duty, which builds with RAPT_ASSERTIONS check; ASSERT what a slot guarantees. Nothing here
 * allocates, and nothing outside the named rows is read or written. Keys are counted from the start of the block.
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
    RAPT_HALF_KEYS = 128,      /* orders 2 and 3: keys between two rescalings, half of what a block is elsewhere, */
    RAPT_STEP = 32,            /* and terms of one step of its dot products; both are part of the numeric order */
    RAPT_SUM_LANES = 16,       /* orders 2 and 3: lanes of l; part of the numeric order */
    RAPT_INNER_BLOCK = 256,    /* terms of a matrix product that are added up by themselves, and */
    RAPT_INNER_CHAIN = 64,     /* those of one chain; both are part of the numeric order */
    RAPT_MAX_TILE_ROWS = 64,   /* upper bound of every kind's rows */
    RAPT_VECTOR_BYTES = 64     /* alignment of scratch; rows of o are padded to it */
};

enum rapt_side { RAPT_KEYS, RAPT_VALUES, RAPT_SIDES };

enum { RAPT_SOME_FALSE = 1, RAPT_SOME_CHANGE = 2, RAPT_ALIKE = 4 }; /* what survey finds */

#define RAPT_LN2 0x1.62e43p-1f    /* the nearest floats */
#define RAPT_LOG2E 0x1.715476p+0f

/* ------------------------------------------------------------ what slots take */

/* By its position, a row sees at most keys [first_key, end_key) of the block. ASSUME neither falls from row to row. */
struct rapt_visible_spans {
    int32_t first_key[RAPT_MAX_TILE_ROWS];
    int32_t end_key[RAPT_MAX_TILE_ROWS];
};

/* What acts on the scores of a tile. */
enum rapt_mask_part {
    RAPT_PART_SPANS = 1 << 0, /* some row does not see all keys of [key_begin, key_end) by its position */
    RAPT_PART_BIAS = 1 << 1,
    RAPT_PART_ALIBI = 1 << 2,
    RAPT_PART_MASK = 1 << 3,
    RAPT_PART_FILL = 1 << 4,  /* the mask replaces scores instead of excluding them */
    RAPT_PART_SOFTCAP = 1 << 5,
    RAPT_PART_KEEP = 1 << 6,  /* dropout, which acts on probabilities */
    RAPT_PART_SELECT = 1 << 7 /* trees and lists of key blocks exclude */
};

/* Whether the mask leaves keys out. */
static inline bool rapt_mask_excludes(unsigned parts) {
    return (parts & (RAPT_PART_MASK | RAPT_PART_FILL)) == RAPT_PART_MASK;
}

/* What one key block does to the rows of a tile, besides the dot product. Arrays
 * are indexed by row; pointers point at key 0 of the block.
 *
 * Where only some keys of the block matter, slots work on these alone, numbered from 0 on: key i of the scores, the
 * spans and the pointers is then the one at place[i] of the block. */
struct rapt_tile_mask {
    unsigned parts;                                 /* rapt_mask_part */
    int selected;                                   /* so many keys matter; 0 = all, numbered by their place */
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

/* Stored rows to float32 rows, which lie dim floats apart. */
struct rapt_stage_args {
    float *into;
    const char *from;
    int64_t from_stride_bytes;
    int64_t rows;
    int dim, format;
    bool streams; /* rows come from memory, and those to come are prefetched: */
    int64_t lead_bytes; /* with each row the one that is so far off; 0 = they go on after these, at the stride */
    struct rapt_scales scales;
};

/* Scores of a run of keys that lie at one stride. */
struct rapt_score_args {
    const float *query;        /* as pack left it */
    const char *key;           /* row of key_begin */
    int64_t key_stride_bytes;
    int key_format;            /* float32, or what the kind takes as it is stored */
    struct rapt_scales scales; /* of these rows, one each, no zero points */
    float *scores;             /* of the tile, at key 0 of the block */
    int rows, head_dim, key_begin, key_end;
    float factor;
    bool streams;              /* as those of rapt_stage_args */
    bool exceeds_caches;       /* all keys and values of the call */
    int64_t lead_bytes;
    int heads;                 /* that take turns, side by side: what is prefetched are whole tokens of all of them, as
                                  many as there are keys for the calls of a turn together; 0 or 1 = of its own only */
    int64_t key_rows;             /* with runs: rows that lie at key */
    const struct rapt_stored_run *runs;  /* and those after them, with one more at the end; NULL = all lie at key */
    const struct rapt_strands *ahead; /* what to prefetch; NULL = as lead_bytes says */
    const struct rapt_visible_spans *spans; /* scores of pairs outside need not be written; NULL = all are */
    struct rapt_errands *errands;
};

/* o = o * alpha (or 0 when fresh), then o[row] += p[row, key] * value[key], keys ascending, for the rows [first_row,
 * first_row + rows) of the tile. The keys may be none; alpha still acts. */
struct rapt_weigh_args {
    const float *probabilities; /* of the tile, at key 0 of the block */
    const char *value;          /* row of key_begin */
    int64_t value_stride_bytes;
    int value_format;           /* float32, or what the kind takes as it is stored */
    struct rapt_scales scales;  /* as those of keys */
    const float *alpha;         /* [rows], from first_row on; NULL = 1 */
    float *l;                   /* likewise, score_beside only: l = l * alpha, then += p. NULL = softmax did */
    const struct rapt_visible_spans *spans; /* of these rows. Outside them p is +0, and whether a value takes part with
                                               that weight is the slot's choice; NULL = every pair takes part */
    float *o;                   /* [rows][o_stride], from first_row on */
    int64_t o_stride;           /* floats, a multiple of 16, >= value_dim */
    int first_row, rows, value_dim, key_begin, key_end;
    bool fresh;
    bool streams;               /* as those of rapt_stage_args */
    int64_t lead_bytes;
    int heads;                  /* as that of rapt_score_args */
    int64_t value_rows;         /* as key_rows, runs and ahead of rapt_score_args */
    const struct rapt_stored_run *runs;
    const struct rapt_strands *ahead;
    struct rapt_errands *errands;
};

/* The running state of rows: maximum m, sum l, unnormalised output o. l = 0: m is -infinity, and o holds anything. */
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

enum { RAPT_MOST_HEADS = 8 }; /* KV heads that take turns */

struct rapt_block;
struct rapt_task;

/* What packing finds among stored rows. FINITE: no NaN and no infinity. NORMAL: chains of these numbers with others
 * that have it never meet a denormal number, so that it does not matter what becomes of those (numerics.md, order 2);
 * only kinds that flush otherwise than order 2 does ask for it. */
enum { RAPT_FOUND_FINITE = 1, RAPT_FOUND_NORMAL = 2 };

struct rapt_tile_kind {
    const char *name;
    int most_rows;   /* chosen where the rows of a KV head are no more; INT_MAX = for all; */
    int least_dim;   /* and head_dim is no less */
    int least_keys;  /* sequences of fewer keys get the last kind */
    int turn_rows;   /* chosen for so many rows, too, where these read keys and values in turns */
    int rows;        /* of a tile at most */
    int row_step;    /* rows of a tile are a multiple of it, but for the last tile of a task */
    int row_group;   /* logits and softmax begin at multiples of it */
    int piece_keys;  /* keys that are staged at once: all of a block where several tiles share them */
    int copied_rows; /* as many pay for copies of keys and values that evict each other from caches; 0 = none do */
    bool streams;    /* few rows: memory feeds the slots, so they fetch their own rows */
    bool takes_runs; /* score and weigh, or a block of its own, take rows in several runs at once */
    bool keeps_places; /* keys keep their places in a block, however few matter: orders 2 and 3 count from there */
    uint8_t beside_rows[RAPT_FORMAT_COUNT]; /* up to so many rows of a format: score_beside, or a block of its own, */
    int beside_unlike; /* scores keys beside values; of unlike dims where one side has more than this (0: never), */
    bool beside_rests; /* and rows that end within a line only where this is set; */
    int turn_keys;     /* pages that are multiples of so many tokens, a turn or half of one, can be read so, */
    bool turns_alone;  /* on any processor also by a head alone, not only where several take turns */
    int slot_turn;     /* without score_beside: KV heads take turns of so many keys, without scales, to score and weigh;
                          0 = none do */
    int block_turns;   /* up to so many rows of each take turns of whole blocks, by a block of its own; 0 = none do */
    unsigned formats; /* bit f: score and weigh take rows of format f as they are stored; the source widens others */
    size_t (*panel_bytes)(int rows, int head_dim);
    size_t (*scores_bytes)(int rows, int dim); /* the larger one of keys and values */

    /* One key block for one tile: updates its state. rapt_block_by_steps calls the slots below; a matrix unit may
     * bring its own, and leave them out. */
    void (*block)(const struct rapt_block *block);

    /* Lays rows out for score; absent rows of the last vector count as +0. */
    void (*pack)(float *panel, const float *const *query_rows, int rows, int head_dim);
    /* The same of rows as they are stored; NULL = they are widened for pack. A kind has one of both. */
    void (*pack_stored)(float *panel, const char *const *query_rows, int rows, int head_dim);
    /* scores = (FMA chain over head_dim from +0) * factor. */
    void (*score)(const struct rapt_score_args *args);
    /* Applies softcap, bias, ALiBi, fill and exclusion to the scores of rows [first_row, end_row);
     * excluded = -infinity. ASSUME first_row is a multiple of row_group, as for softmax. */
    void (*logits)(float *scores, int first_row, int end_row, int key_begin, int key_end,
                   const struct rapt_tile_mask *mask);
    /* Base-2 logits to probabilities in place; updates m and l (NULL = left to score_beside), sets alpha.
     * ASSUME m = -infinity and l = 0 where a chunk begins; that scores outside spans (NULL: none) are -infinity. */
    void (*softmax)(float *scores, int first_row, int end_row, int key_begin, int key_end,
                    const struct rapt_visible_spans *spans, float *m, float *l, float *alpha,
                    struct rapt_errands *errands);
    /* Dropout: p = keep ? p * keep_scale : +0. */
    void (*drop)(float *scores, int rows, int key_begin, int key_end, const struct rapt_tile_mask *mask);
    void (*weigh)(const struct rapt_weigh_args *args);
    /* score of the next block's keys in turns with weigh of this one: memory serves two streams faster than one after
     * the other; or NULL. Of so many KV heads, at most RAPT_MOST_HEADS: their rows lie side by side, so they take
     * turns, too. ASSUME both have keys, in a format of beside_rows; runs, if any, of the first head, from which those
     * of others are as far as their first rows, multiples of turn_keys but for the first and last ones, and no scales
     * then; the same keys, values, rows and strides for all heads; head_dim = value_dim; rows of whole lines, or of
     * blocks without gaps; no spans of score. scores_bytes has room for two blocks then. */
    void (*score_beside)(const struct rapt_score_args *score, const struct rapt_weigh_args *weigh, int heads);

    /* Kinds of orders 2 and 3 (numerics.md): block, pack and these; softmax, drop and weigh are NULL.
     * attend/weights.c calls score and logits of kinds[RAPT_NARROW]. A panel holds whatever the kind keeps for
     * a tile: its queries, the lanes of l in a chunk. pack gets widened rows; the stored ones come back exactly.
     *
     * Keys and values that many rows share come packed, from rapt_source_packed: RAPT_HALF_KEYS of them at a time, from
     * a multiple of that position on, once for all tiles of a task. packed_bytes: of so many, a multiple of
     * RAPT_VECTOR_BYTES; NULL where the kind reads rows where they lie. pack_half lays rows of a format out, and says
     * what it found (RAPT_FOUND_...). rows[i]: of position i of the half; NULL = there is none, and it counts as +0;
     * a step of RAPT_STEP positions without any is never looked at. Rows of one step more follow, for prefetches.
     * Others' rows may lie beyond the keys that the block names, and none of them acts, not even as NaN: kinds with
     * packed_bytes look at FOUND_FINITE themselves; the loop comes back to the others with `careful` set. */
    size_t (*packed_bytes)(int side, int dim);
    unsigned (*pack_half[RAPT_SIDES])(void *into, const char *const *rows, int dim, int format);
    /* Where a chunk ends: state.l of a tile's rows, from what its blocks left, and o in its final unit. Only called
     * after a block of the chunk; block.fresh says that it is the first. NULL = l is there already. */
    void (*close)(const struct rapt_task *task, float *panel, struct rapt_state state, int rows);
    /* Around all blocks of a task, on the thread that runs it: configuration of the processor. NULL = none. */
    void (*enter)(const struct rapt_task *task);
    void (*leave)(const struct rapt_task *task);
};

/* ------------------------------------------------------------ the table */

enum { RAPT_NARROW = 0, RAPT_FEW = 1, RAPT_WIDE = 2, RAPT_KINDS = 3 };

/* Which kinds of order 2 or 3: by the type of queries, keys and values. */
enum { RAPT_OF_BF16, RAPT_OF_F16, RAPT_OF_F32, RAPT_UNIT_TYPES };

struct rapt_table {
    const char *name;
    rapt_isa isa;
    struct rapt_tile_kind kinds[RAPT_KINDS]; /* by most_rows, ascending; narrow: score rows are contiguous */
    struct rapt_product_kernels product;
    /* Stored rows to float32, as docs/numerics.md has it. */
    void (*stage)(const struct rapt_stage_args *args);
    /* A float32 row to a stored one (numerics.md, stored numbers). */
    void (*store)(const struct rapt_store_args *args);
    /* cosines[i], sines[i] = those of position * frequencies[i], times factor (numerics.md, rotary embedding). */
    void (*angles)(const float *frequencies, int pairs, int64_t position, double factor, float *cosines, float *sines);
    /* Rotates the first 2 * pairs numbers of a row; by RAPT_PAIR_... */
    void (*rotate[RAPT_PAIRINGS])(float *into, const float *from, const float *cosines, const float *sines, int pairs);
    /* into = into folded with next (numerics.md, step 7), both [rows]. */
    void (*merge)(struct rapt_state into, struct rapt_state next, int rows, int value_dim);
    void (*finish)(const struct rapt_finish_args *args);
    /* Rows as callers keep them, m, l, o[value_dim] each, to a state and back (numerics.md, States). Contents may be
     * anything: what is no state has l = NaN then. */
    void (*load_states)(struct rapt_state into, char *const *rows, int count, int value_dim);
    void (*store_states)(struct rapt_state from, char *const *rows, int count, int value_dim);
    /* p[i] = 2^(t[i] - m) as step 5 has it; m even, integer or -infinity. In place is fine. */
    void (*exponentials)(const float *t, float *p, int64_t count, float m);
    /* What masks, biases and selections leave of the keys: sets the bit of each key that some row attends to, but of
     * all keys where these are more than three in four. RAPT_ALIKE: not so, and every row attends to just these.
     * RAPT_SOME_FALSE: a bool mask has a false entry. RAPT_SOME_CHANGE: a bias is not 0. ASSUME there is a key. */
    unsigned (*survey)(int rows, int key_begin, int key_end, const struct rapt_tile_mask *mask,
                       uint32_t attended[RAPT_BLOCK_KEYS / 32]);
    /* tanh_r of the softcap, for its sweep; in place is fine. */
    void (*tanhs)(const float *x, float *y, int64_t count);
    /* log2_r of the LSE; x > 0. In place is fine. */
    void (*log2s)(const float *x, float *y, int64_t count);
    /* out[i] = in[i] * factor + 0, NaN canonical. In place is fine. */
    void (*export_row)(const float *in, float *out, int64_t count, float factor);
    /* Whether count floats in each of rows rows are all finite. */
    bool (*all_finite)(const char *base, int64_t stride_bytes, int64_t rows, int count);
    /* Order 2: the probabilities of weights, p[i] = those of y[i] times factor, at m, as fractions of l. In place is
     * fine. NULL = in orders 1 and 3, which have exponentials. */
    void (*rounded)(const float *y, float *p, int64_t count, float m, float factor, int format);
    /* For order 2 or 3 of a type: other kinds, merge, finish, load_states, rounded; NULL = not to be had for it. */
    const struct rapt_table *of_unit[RAPT_UNIT_TYPES];
    const struct rapt_unit *units; /* best first, the last one without a table; NULL = none */
};

/* A unit that some processors with a table's instructions have, and whether automatic choices take it; NULL = always.
 * table(of_unit[type], type): the same with a kind that multiplies on it, and its isa; NULL where the process may not
 * use it, it answers otherwise, or has no kind for the type: all have one for bfloat16. ASSUME its features are here */
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
