/* SPDX-License-Identifier: MIT
 * Order 2 of few rows on the matrix unit: keys and values are read where they lie. Keys are the left side of their
 * product, rows of stored keys as they are, so scores come out with keys as rows and are transposed. Pairs of values
 * are interleaved in L1 on their way into the unit. */
#ifndef RAPT_X86_AMX_FEW_H
#define RAPT_X86_AMX_FEW_H

#include "x86/amx/block.h"
#include "x86/amx/few_rows.h"

enum {
    FEW_KEPT = 5, /* sums of values that stay in registers; others are loaded and stored for each step */
    FEW_HELD = 4, /* likewise the queries of so many steps */
    FEW_AT_ONCE = 4, /* rows that are prefetched beside the products of 16 keys, and */
    FEW_PART = 3     /* beside each quarter of their way to rows of keys */
};

/* A half block of a tile, and its scratch. */
struct few_task {
    struct unit16_task a; /* a.g: [tiles of dims][16 rows][16 dims], the dims of two tiles as few_update has them */
    char *scores;       /* two tiles: [keys][rows] */
    char *panel;        /* 32 values, interleaved: [tiles of dims][16 pairs of keys][16 dims][2] */
    char *copy;         /* of a run */
    const struct few_rows *rows;
    int keys, values;   /* the first runs of the half */
};

RAPT_INLINE int few_tiles(int dim) { return 2 * unit16_steps(dim); }

static size_t panel_bytes_few(int rows, int head_dim) {
    (void)rows;
    return TILE_HEIGHT * RAPT_SUM_LANES * sizeof(float) + (size_t)unit16_steps(head_dim) * TILE_BYTES;
}

RAPT_INLINE char *few_queries(float *panel) { return (char *)(panel + TILE_HEIGHT * RAPT_SUM_LANES); }

/* Scores, maxima, offsets; two tiles of scores; a panel, sums, and room for a copy. */
static size_t scores_bytes_few(int rows, int dim) {
    (void)rows;
    return TILE_HEIGHT * (RAPT_HALF_KEYS + 16 + 16) * sizeof(float) + (size_t)(2 + 3 * few_tiles(dim)) * TILE_BYTES;
}

static void few_lay_out(struct few_task *f, const struct rapt_block *b) {
    float *scores = b->task->scores;
    const int tiles = few_tiles((int)(b->task->attention->desc.head_dim > b->task->attention->desc.value_dim
                                          ? b->task->attention->desc.head_dim
                                          : b->task->attention->desc.value_dim));
    struct unit16_half *half = &f->a.half;
    f->a.t.y = half->y = scores;
    half->largest = scores + TILE_HEIGHT * RAPT_HALF_KEYS;
    half->offset = half->largest + TILE_HEIGHT * 16;
    f->scores = (char *)(half->offset + TILE_HEIGHT * 16);
    f->panel = f->scores + 2 * TILE_BYTES;
    f->a.g = (float *)(void *)(f->panel + tiles * TILE_BYTES);
    f->copy = f->panel + 2 * tiles * TILE_BYTES;
    half->lanes = b->panel;
    half->m = b->state.m;
    half->alpha = b->task->alpha;
    half->rows = b->rows;
}

/* ------------------------------------------------------------ queries */

/* Row i of a tile: dims 2i and 2i + 1 of 16 rows. */
static void pack_queries_few(float *panel, const char *const *query_rows, int rows, int head_dim) {
    for (int step = 0; step < unit16_steps(head_dim); step++) {
        const __mmask32 there = unit16_first(head_dim - step * RAPT_STEP);
        char *into = few_queries(panel) + step * TILE_BYTES;
        __m512i r[TILE_HEIGHT];
        RAPT_UNROLL for (int i = 0; i < TILE_HEIGHT; i++)
            r[i] = _mm512_maskz_loadu_epi16(i < rows ? there : 0,
                                            query_rows[i < rows ? i : 0] + step * TILE_ROW_BYTES);
        unit16_transpose(r);
        RAPT_UNROLL for (int i = 0; i < TILE_HEIGHT; i++)
            _mm512_storeu_si512(into + i * TILE_ROW_BYTES, r[i]);
    }
}

/* ------------------------------------------------------------ keys times queries */

/* 32 dims of 16 keys times queries. */
#define FEW_SCORE(sum, keys, query)                                                                     \
    if (step < steps) {                                                                                 \
        TILE_LOAD(keys, run.base + step * TILE_ROW_BYTES, run.stride);                                  \
        if (steps > FEW_HELD)                                                                           \
            TILE_LOAD(query, queries + step * TILE_BYTES, TILE_ROW_BYTES);                              \
        TILE_MULTIPLY_BF16(sum, keys, query);                                                           \
        few_prefetch(ahead, sum * FEW_AT_ONCE + (step < FEW_AT_ONCE ? step : FEW_AT_ONCE),              \
                     sum * FEW_AT_ONCE + (step < FEW_AT_ONCE ? step + 1 : FEW_AT_ONCE), steps);         \
        step++;                                                                                         \
    }

/* Scores of 16 keys to a tile of [keys][rows]. */
#define FEW_SCORE_RUN(sum, number)                                                                      \
    do {                                                                                                \
        const struct few_run run = few_whole(f->rows, number, f->copy, dim);                            \
        TILE_ZERO(sum);                                                                                 \
        for (int step = 0; step < steps;) {                                                             \
            FEW_SCORE(sum, 2, 4)                                                                        \
            FEW_SCORE(sum, 3, 5)                                                                        \
            FEW_SCORE(sum, 2, 6)                                                                        \
            FEW_SCORE(sum, 3, 7)                                                                        \
        }                                                                                               \
    } while (0)

/* A tile of scores to rows of keys. ahead: rows from `turn` on. */
RAPT_INLINE void few_transpose(const char *from, float *y, const struct few_run *ahead, int turn, int steps) {
    enum { PARTS = 4 };
    __m512i r[TILE_HEIGHT];
    RAPT_UNROLL for (int i = 0; i < TILE_HEIGHT; i++)
        r[i] = _mm512_load_si512(from + i * TILE_ROW_BYTES);
    unit16_transpose(r);
    RAPT_UNROLL for (int i = 0; i < TILE_HEIGHT; i++) {
        _mm512_store_si512(y + i * RAPT_HALF_KEYS, r[i]);
        if (i % PARTS == PARTS - 1)
            few_prefetch(ahead, turn + i / PARTS * FEW_PART, turn + (i / PARTS + 1) * FEW_PART, steps);
    }
}

/* dim may be a constant. */
RAPT_INLINE void few_score_dim(const struct few_task *f, int dim) {
    const int steps = unit16_steps(dim), first = f->a.first * RAPT_STEP, last = first + f->a.steps * RAPT_STEP;
    const char *const queries = few_queries(f->a.t.b->panel);
    float *y = f->a.t.y;
    char *const scores = f->scores;
    if (steps <= FEW_HELD) {
        TILE_LOAD(4, queries, TILE_ROW_BYTES);
        TILE_LOAD(5, queries + (steps > 1 ? 1 : 0) * TILE_BYTES, TILE_ROW_BYTES);
        TILE_LOAD(6, queries + (steps > 2 ? 2 : 0) * TILE_BYTES, TILE_ROW_BYTES);
        TILE_LOAD(7, queries + (steps > 3 ? 3 : 0) * TILE_BYTES, TILE_ROW_BYTES);
    }
    for (int key = first; key < last; key += 2 * TILE_HEIGHT) {
        const int number = f->keys + key / FEW_RUN;
        const struct few_run *ahead = f->rows->run + number + FEW_KEYS_LEAD;
        FEW_SCORE_RUN(0, number);
        FEW_SCORE_RUN(1, number + 1);
        TILE_STORE(0, scores, TILE_ROW_BYTES);
        few_transpose(scores, y + key, ahead, 2 * FEW_AT_ONCE, steps);
        TILE_STORE(1, scores + TILE_BYTES, TILE_ROW_BYTES);
        few_transpose(scores + TILE_BYTES, y + key + TILE_HEIGHT, ahead, 2 * FEW_AT_ONCE + 4 * FEW_PART, steps);
    }
}

static void few_score(const struct few_task *f) {
    const int dim = (int)f->a.t.b->task->attention->desc.head_dim;
    if (dim == 128)
        few_score_dim(f, 128);
    else if (dim == 64)
        few_score_dim(f, 64);
    else
        few_score_dim(f, dim);
}

/* ------------------------------------------------------------ probabilities times values */

/* 32 dims of two values in turns, four at a time: dims 0 ... 3, 8 ... 11 and so on, then those between. */
RAPT_INLINE void few_interleave_pair(char *into, __m512i even, __m512i odd) {
    _mm512_store_si512(into, _mm512_unpacklo_epi16(even, odd));
    _mm512_store_si512(into + TILE_BYTES, _mm512_unpackhi_epi16(even, odd));
}

/* 16 values to the panel. */
RAPT_INLINE void few_interleave(const struct few_task *f, char *panel, int number, int dim, int beside) {
    const struct few_run run = few_whole(f->rows, number, f->copy, dim);
    const struct few_run *ahead = f->rows->run + number + FEW_VALUES_LEAD - (beside > 0);
    const char *even = run.base, *odd = run.base + run.stride;
    for (int pair = 0; pair < FEW_RUN / 2; pair++, even += 2 * run.stride, odd += 2 * run.stride) {
        few_prefetch(ahead, beside + pair, beside + pair + 1, unit16_steps(dim));
        for (int i = 0; i < unit16_steps(dim); i++)
            few_interleave_pair(panel + pair * TILE_ROW_BYTES + 2 * i * TILE_BYTES,
                                _mm512_loadu_si512(even + i * TILE_ROW_BYTES),
                                _mm512_loadu_si512(odd + i * TILE_ROW_BYTES));
    }
}

/* Rows to prefetch beside one of some tiles. */
#define FEW_BESIDE(tile) \
    few_prefetch(ahead, TILE_HEIGHT * (tile) / tiles, TILE_HEIGHT * ((tile) + 1) / tiles, tiles / 2)

#define FEW_MULTIPLY(sum)                                            \
    if (tiles > (sum)) {                                             \
        TILE_LOAD(6, panel + (sum) * TILE_BYTES, TILE_ROW_BYTES);    \
        TILE_MULTIPLY_BF16(sum, 7, 6);                               \
        FEW_BESIDE(sum);                                             \
    }

#define FEW_MULTIPLY_STORED(tile)                                    \
    if (tiles > (tile)) {                                            \
        if (step > first)                                            \
            TILE_LOAD(5, g + (tile) * TILE_BYTES, TILE_ROW_BYTES);   \
        else                                                         \
            TILE_ZERO(5);                                            \
        TILE_LOAD(6, panel + (tile) * TILE_BYTES, TILE_ROW_BYTES);   \
        TILE_MULTIPLY_BF16(5, 7, 6);                                 \
        FEW_BESIDE(tile);                                            \
        TILE_STORE(5, g + (tile) * TILE_BYTES, TILE_ROW_BYTES);      \
    }

#define FEW_STORE(sum)                                               \
    if (tiles > (sum))                                               \
    TILE_STORE(sum, g + (sum) * TILE_BYTES, TILE_ROW_BYTES)

/* p times values, to g. dim may be a constant. */
RAPT_INLINE void few_multiply_dim(const struct few_task *f, int dim) {
    const int tiles = few_tiles(dim), first = f->a.first, last = first + f->a.steps;
    const char *const p = (const char *)f->a.t.y;
    char *const panel = f->panel, *const g = (char *)f->a.g;
    TILE_ZERO(0);
    TILE_ZERO(1);
    TILE_ZERO(2);
    TILE_ZERO(3);
    TILE_ZERO(4);
    for (int step = first; step < last; step++) {
        const int number = f->values + 2 * step;
        const struct few_run *ahead = f->rows->run + number + 1 + FEW_VALUES_LEAD;
        few_interleave(f, panel, number, dim, 0);
        few_interleave(f, panel + TILE_BYTES / 2, number + 1, dim, FEW_RUN / 2);
        TILE_LOAD(7, p + step * TILE_ROW_BYTES, RAPT_HALF_KEYS * sizeof(float));
        FEW_MULTIPLY(0)
        FEW_MULTIPLY_STORED(5)
        FEW_MULTIPLY(1)
        FEW_MULTIPLY(2)
        FEW_MULTIPLY_STORED(6)
        FEW_MULTIPLY(3)
        FEW_MULTIPLY(4)
        for (int tile = 7; tile < tiles; tile++)
            FEW_MULTIPLY_STORED(tile)
    }
    FEW_STORE(0);
    FEW_STORE(1);
    FEW_STORE(2);
    FEW_STORE(3);
    FEW_STORE(4);
}

static void few_multiply(const struct few_task *f) {
    const int dim = (int)f->a.t.b->task->attention->desc.value_dim;
    if (dim == 128)
        few_multiply_dim(f, 128);
    else if (dim == 64)
        few_multiply_dim(f, 64);
    else
        few_multiply_dim(f, dim);
}

/* o of rows [row, end). */
RAPT_INLINE void few_update(const struct few_task *f, int row, int end) {
    const struct rapt_state state = f->a.t.b->state;
    const int dim = (int)f->a.t.b->task->attention->desc.value_dim;
    const bool fresh = f->a.t.fresh;
    const __m512i low = _mm512_setr_epi32(0, 1, 2, 3, 16, 17, 18, 19, 4, 5, 6, 7, 20, 21, 22, 23);
    const __m512i high = _mm512_add_epi32(low, _mm512_set1_epi32(8));
    for (; row < end; row++) {
        const __m512 alpha = _mm512_set1_ps(f->a.half.alpha[row]);
        const float *g = f->a.g + row * TILE_FLOATS;
        float *o = state.o + row * state.o_stride;
        for (int d = 0; d < dim; d += 16) {
            const float *two = g + d / AMX_COLUMNS * (2 * TILE_BYTES / 4);
            __m512 sum = _mm512_permutex2var_ps(_mm512_load_ps(two), d % AMX_COLUMNS ? high : low,
                                                _mm512_load_ps(two + TILE_BYTES / 4));
            sum = fresh ? sum : _mm512_fmadd_ps(_mm512_load_ps(o + d), alpha, sum);
            _mm512_store_ps(o + d, sum);
        }
    }
}

/* Values that a row does not attend to count as +0, whatever they hold. */
static void few_weigh_row(const struct few_task *f, int row) {
    struct few_rows attended;
    struct few_task of_row = *f;
    few_clear(&attended);
    for (int key = 0; key < RAPT_HALF_KEYS; key++) {
        const int number = f->values + key / FEW_RUN, i = key % FEW_RUN;
        const bool is_named = key >= f->a.t.begin && key < f->a.t.end;
        const bool takes_part = is_named && rapt_is_attended(f->a.t.b->mask, row, f->a.t.first + key);
        attended.row[number * FEW_RUN + i] = takes_part ? few_row(f->rows, number, i) : (const char *)unit_zeros;
        if (i == FEW_RUN - 1)
            few_find_run(&attended, number);
    }
    of_row.rows = &attended;
    few_multiply(&of_row);
    few_update(f, row, row + 1);
}

static void few_weigh(const struct few_task *f) {
    const struct rapt_block *b = f->a.t.b;
    const int next = f->values + RAPT_HALF_KEYS / FEW_RUN, steps = unit16_steps((int)b->task->attention->desc.head_dim);
    if (b->careful && b->seen == RAPT_SEES_SOME) {
        for (int row = 0; row < b->rows; row++)
            few_weigh_row(f, row);
        return;
    }
    few_multiply(f);
    few_prefetch(f->rows->run + next + FEW_VALUES_LEAD, 0, (FEW_KEYS_LEAD - FEW_VALUES_LEAD) * FEW_RUN, steps);
    few_update(f, 0, b->rows);
}

/* ------------------------------------------------------------ all of it */

static void few_half_block(struct few_task *f) {
    const struct rapt_block *b = f->a.t.b;
    struct unit16_half *half = &f->a.half;
    const unsigned acts = b->mask->parts & ~(unsigned)(RAPT_PART_KEEP | RAPT_PART_SPANS);
    const bool unscaled = rapt_enters_unscaled(b->task->attention);
    const int value_steps = unit16_steps((int)b->task->attention->desc.value_dim);
    unit_spans(&f->a.t);
    half->factor = unscaled ? b->task->attention->score_factor : 1;
    half->first = f->a.first;
    half->last = f->a.first + f->a.steps;
    half->fresh = f->a.t.fresh;
    few_score(f);
    run_errands(b->of_weigh, UNIT_LINES);
    if (!unscaled || acts || !unit16_sees_all(&f->a)) {
        unit_logits(&f->a.t);
        unit16_exclude_outside(&f->a);
    }
    for (int step = half->first; step < half->last; step++) {
        unit16_maxima(half, step, 0, b->rows);
        few_prefetch(f->rows->run + f->values + 2, 4 * step, 4 * step + 4, value_steps);
    }
    unit16_new_maxima(half, 0);
    unit16_exponentials(half, 0);
    if (b->mask->parts & RAPT_PART_KEEP)
        unit16_drop(&f->a);
    few_weigh(f);
}

static RAPT_KERNEL void block_few_bf16(const struct rapt_block *b) {
    struct few_rows rows;
    struct few_task f = {.a.t = {.b = b, .fresh = b->fresh}, .rows = &rows};
    RAPT_ASSUME(!b->mask->selected && b->key_begin < b->key_end && b->rows <= TILE_HEIGHT);
    few_lay_out(&f, b);
    few_find(&rows, b);
    for (int half = 0; half < 2; half++) {
        if (!unit_turn_to(&f.a.t, half * RAPT_HALF_KEYS))
            continue;
        f.a.first = f.a.t.begin / RAPT_STEP;
        f.a.steps = unit16_steps(f.a.t.end) - f.a.first;
        f.keys = few_turn(half, RAPT_KEYS);
        f.values = few_turn(half, RAPT_VALUES);
        few_half_block(&f);
        f.a.t.fresh = false;
    }
}

#endif
