/* SPDX-License-Identifier: MIT
 * One attention call with random contents, each array between guard pages. Contents depend on the call, not on the
 * layout: two layouts of one call give the same bits. */
#ifndef RAPT_TESTS_PROBLEM_H
#define RAPT_TESTS_PROBLEM_H

#include "support/guarded.h"
#include "support/support.h"

enum problem_use {
    USE_SCALE = 1 << 0,
    USE_SOFTCAP = 1 << 1,
    USE_CAUSAL = 1 << 2,
    USE_WINDOW = 1 << 3,
    USE_ALIBI = 1 << 4,
    USE_STANDARD_ALIBI = 1 << 5, /* wins over USE_ALIBI */
    USE_MASK = 1 << 6,
    USE_FILL = 1 << 7, /* with USE_MASK only */
    USE_BIAS = 1 << 8,
    USE_HEAD_FACTOR = 1 << 9, /* with USE_BIAS only */
    USE_KEEP = 1 << 10,
    USE_SINKS = 1 << 11,
    USE_LSE = 1 << 12,
    USE_QUERY_LENGTHS = 1 << 13,
    USE_KV_LENGTHS = 1 << 14,
    USE_KEY_POSITION = 1 << 15,
    USE_WEIGHTS = 1 << 16,
    USE_VIEW = 1 << 17, /* value is a view of key */
    USE_INITIAL_STATE = 1 << 18,
    USE_FINAL_STATE = 1 << 19,
    USE_NO_OUT = 1 << 20,   /* with USE_FINAL_STATE only */
    USE_QUERY_16 = 1 << 21, /* query is float16 or bfloat16, by the seed; likewise */
    USE_BIAS_16 = 1 << 22,
    USE_OUT_16 = 1 << 23,
    USE_TREE = 1 << 24,
    USE_BLOCKS = 1 << 25,
    USE_SPARSE = 1 << 26, /* with USE_MASK or USE_BIAS only: few keys are allowed */
    USE_COUNT = 27,
    USE_EVERYTHING = ((1 << USE_COUNT) - 1) & ~(USE_VIEW | USE_STANDARD_ALIBI | USE_NO_OUT | USE_SPARSE)
};

enum data_kind {
    DATA_NORMAL,
    DATA_HUGE_ROWS,      /* some rows ten thousand times the others */
    DATA_NAN_ROWS,       /* NaN or infinity in some keys and values */
    DATA_INFINITE,       /* some scores overflow to either infinity */
    DATA_MINUS_INFINITE, /* most scores are -infinity, some values NaN */
    DATA_DENORMAL,
    DATA_SPECIAL,
    DATA_LOUD, /* softmax is nearly one-hot, maxima move from block to block */
    DATA_BIG,  /* maxima beyond 2^22 */
    DATA_KINDS,
    DATA_TINY = DATA_KINDS, /* random calls of orders 2 and 3 have it: products around 2^-126 */
    DATA_SMALL, /* and this one: denormal products, normal sums */
    DATA_KINDS_OF_UNITS,
    DATA_LATE_BIG = DATA_KINDS_OF_UNITS /* maxima beyond 2^22 from key 128 on; never drawn */
};

struct problem_call {
    int64_t batch, query_heads, kv_heads, query_length, kv_length, head_dim, value_dim;
    unsigned use;
    enum data_kind data;
    int32_t origin, weights_kind; /* ignored if nothing uses them */
    uint64_t seed;
    uint64_t variant; /* other elements of tensors and head lists, all else the same */
    int key_format, value_format; /* of format.h; float32 if blocks do not divide the dims */
    int key_scales, value_scales; /* 0: none, if the format allows it; 1: per row; otherwise per so many numbers */
    int32_t numerics; /* 0; 2: query, key and value are bfloat16 or float16, by the seed, or key_format; 3: they are
                       * float32 */
};

enum { PACKED_QUERIES = 1, PACKED_KEYS = 2 };

struct problem_layout {
    uint64_t seed;    /* draws padding, order of dimensions and directions for each array; 0: as below */
    int padding;      /* elements between rows, heads and sequences */
    bool token_major; /* [batch, token, head, dim] */
    bool reversed;    /* tokens stored last to first */
    bool poison;      /* NaN wherever the result must not depend on it */
    enum guard_side side;
    size_t distance; /* bytes of canaries between data and guard page, a multiple of 4 */
    int packed;          /* sequences one after another, by offsets */
    int32_t page_kind;   /* rapt_page_kind of keys and values, shuffled */
    int64_t page_tokens; /* with page_kind */
};

enum array_name {
    ARRAY_QUERY,
    ARRAY_KEY,
    ARRAY_VALUE,
    ARRAY_MASK,
    ARRAY_BIAS,
    ARRAY_KEEP,
    ARRAY_FACTOR,
    ARRAY_SLOPES,
    ARRAY_SINKS,
    ARRAY_QUERY_LENGTHS, /* integers from here */
    ARRAY_KV_LENGTHS,
    ARRAY_KEY_POSITION,
    ARRAY_QUERY_POSITION,
    ARRAY_TREE_MASKS,
    ARRAY_BLOCK_OFFSETS,
    ARRAY_BLOCK_ENTRIES, /* the last of them */
    ARRAY_INITIAL_STATE,
    ARRAY_KEY_SCALES,
    ARRAY_VALUE_SCALES,
    ARRAY_KEY_ZEROS, /* zero points, laid out as the scales */
    ARRAY_VALUE_ZEROS,
    ARRAY_OUT, /* outputs from here */
    ARRAY_LSE,
    ARRAY_WEIGHTS,
    ARRAY_FINAL_STATE,
    ARRAYS
};

#define NO_PLACE INT64_MIN

struct problem_array {
    struct guarded memory; /* memory.data is NULL if the call has no such array */
    int32_t dtype;         /* of tensors */
    int64_t element_bytes; /* of a block, if the numbers come in blocks */
    int64_t count[4]; /* batch, head, token, innermost; 1 if broadcast */
    int64_t stride_bytes[4];
    int64_t first_byte; /* of element 0, 0, 0, 0; not 0 if a dimension is stored last to first */
    int64_t *places;    /* packed and paged: bytes from there to token [batch][token], or NO_PLACE */
};

struct problem_list {
    struct guarded memory; /* memory.data is NULL if the layout has no such list */
    int64_t count;
    int32_t width;
};

struct problem_tables {
    struct problem_list query_offsets, kv_offsets;
    int64_t query_tokens, kv_tokens;
    struct problem_table {
        int32_t kind;
        struct problem_list entries, offsets;
        int64_t pages, page_tokens, columns;
    } kv[2];
};

struct problem {
    struct problem_call call; /* without what does not go together */
    rapt_attention_desc desc;
    struct problem_array arrays[ARRAYS];
    struct problem_tables tables;
};

/* Arrays without gaps, ending at guard pages. Inputs are read-only. */
struct problem *problem_new(const struct problem_call *call);

/* The inputs of such a problem in another layout. */
struct problem *problem_laid_out(const struct problem *plain, const struct problem_layout *layout);
void problem_free(struct problem *problem);

/* Every byte of the outputs becomes the canary again. */
void problem_reset(struct problem *problem);

char *problem_at(const struct problem_array *array, int64_t b, int64_t h, int64_t token);
int64_t problem_query_length(const struct problem *problem, int64_t b);
int64_t problem_kv_length(const struct problem *problem, int64_t b);

/* One line about the call, in static memory. */
const char *problem_text(const struct problem_call *call);

/* ---- results: problem_results.c */

/* Whether all results have the same bits; prints the first difference. */
bool problem_same(const struct problem *got, const struct problem *expected);

/* Whether only results were written, not bytes beside arrays, gaps between rows, rows from the query lengths on. Prints
 * what was. */
bool problem_is_clean(const struct problem *problem);

/* Whether no byte of an output was written. */
bool problem_is_untouched(const struct problem *problem);

/* Hashes all results, in logical order. */
uint64_t problem_hash(uint64_t hash, const struct problem *problem);

/* ---- runs: problem_run.c */

/* The specification's results. */
struct problem *problem_expected(const struct problem_call *call);

struct problem_way {
    rapt_isa isa;
    int threads;             /* slots of the workspace and max_threads; 0 = 1 */
    enum guard_side side;    /* of the workspace, */
    size_t distance;         /* any number of bytes from the guard page, */
    unsigned char workspace; /* all of whose bytes are this */
};

/* Plans and runs with a workspace of exactly the bytes requested. */
void problem_run(struct problem *problem, const struct problem_way *way);

/* Lays the call out, runs it, and fails the test unless its bits are those expected and nothing else was written. */
void problem_check(const struct problem *expected, const struct problem_layout *layout, const struct problem_way *way);

/* A random call of about `work` multiplications. */
struct problem_call random_call(uint64_t seed, int64_t work);

/* The same, of a numeric order: 0, 2, or 3. */
struct problem_call random_call_of(int32_t numerics, uint64_t seed, int64_t work);

/* The same, of any order. */
struct problem_call random_call_of_any(uint64_t seed, int64_t work);

/* Those of machine_tables; for order 2 and bfloat16 also a matrix unit's, which runs its instruction set's chains for
 * float16. */
int tables_of(int32_t numerics, const struct rapt_table *tables[RAPT_ISA_COUNT]);

static inline char *tensor_at(const rapt_tensor *tensor, int64_t b, int64_t h, int64_t token) {
    return (char *)tensor->data + b * tensor->batch_stride_bytes + h * tensor->head_stride_bytes +
           token * tensor->token_stride_bytes;
}

#endif
