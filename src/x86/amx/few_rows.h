/* SPDX-License-Identifier: MIT
 * The rows of a block in place, in the order in which they are read, so that each can be prefetched, since tile loads
 * train no hardware prefetcher: near ones into L1 some rows ahead, and far ones, too long for that, into L2 half a
 * block ahead. An L1 miss waits for all lines in flight from memory, so L1 must hold the list of these rows, too. */
#ifndef RAPT_X86_AMX_FEW_ROWS_H
#define RAPT_X86_AMX_FEW_ROWS_H

#include "x86/amx/pack.h"

#define FEW_ALL_DIMS 0xffffffffu /* of a step */

enum {
    FEW_RUN = 16,                               /* rows */
    FEW_KEYS_LEAD = 2,                          /* prefetch distance in runs, as measured: of keys, */
    FEW_VALUES_LEAD = 1,                        /* and of values; */
    FEW_NEAR_DIMS = 4 * RAPT_STEP,              /* of near rows at most: registers hold their queries */
    FEW_FAR_DIMS = 8 * RAPT_STEP,               /* of far rows in turns of two parts; of more: few_long_turns.h */
    FEW_BESIDE_KEYS = 5,                        /* rows of 16 prefetched beside scores, where values are of keys */
    FEW_RUNS = 2 * RAPT_BLOCK_KEYS / FEW_RUN,   /* of a block */
    FEW_HALF = FEW_RUNS / 2,                    /* of a half */
    FEW_TURN = 2 * FEW_RUN,                     /* keys of a turn, and as many values */
    FEW_ALL = 2 * FEW_RUNS
};

/* 16 rows at one stride, unless scattered: those are copied when their turn comes. */
struct few_run {
    const char *base;
    int64_t stride;
};

/* Keys and values of one half, those of the other one, and what of the next block is prefetched or scored. Absent rows
 * are zeros. */
struct few_rows {
    struct few_run run[FEW_ALL];
    uint64_t scattered; /* bit i: run i is; then its rows are */
    const char *row[FEW_ALL * FEW_RUN];
};

RAPT_INLINE bool few_is_far(const struct rapt_task *task) {
    const rapt_attention_desc *desc = &task->plan->desc;
    return desc->head_dim > FEW_NEAR_DIMS || desc->value_dim > FEW_NEAR_DIMS;
}

/* Rows of each far run prefetched beside the scores of another one: all, unless values are of keys. */
RAPT_INLINE int few_beside_keys(const struct rapt_task *task) {
    return task->plan->values_in_keys >= 0 ? FEW_BESIDE_KEYS : FEW_RUN;
}

RAPT_INLINE const char *few_row(const struct few_rows *rows, int number, int i) {
    return rows->scattered >> number & 1 ? rows->row[number * FEW_RUN + i]
                                         : rows->run[number].base + i * rows->run[number].stride;
}

/* Run number i of keys or values from a half on; halves 2 and 3 are those of the next block. */
RAPT_INLINE int few_number(int half, int side, int i) {
    enum { EACH = RAPT_HALF_KEYS / FEW_RUN };
    return (2 * (half + i / EACH) + side) * EACH + i % EACH;
}

RAPT_INLINE bool few_at_stride(const char *const *rows, int64_t stride) {
    const __m512i by = _mm512_mullo_epi64(_mm512_set1_epi64(stride), _mm512_setr_epi64(0, 1, 2, 3, 4, 5, 6, 7));
    const __m512i from = _mm512_add_epi64(_mm512_set1_epi64((int64_t)(intptr_t)rows[0]), by);
    const __m512i then = _mm512_add_epi64(from, _mm512_set1_epi64(8 * stride));
    return _mm512_cmpneq_epi64_mask(_mm512_loadu_si512(rows), from) == 0 &&
           _mm512_cmpneq_epi64_mask(_mm512_loadu_si512(rows + 8), then) == 0;
}

static void few_clear(struct few_rows *rows) {
    rows->scattered = 0;
    for (int i = 0; i < FEW_ALL; i++)
        rows->run[i] = (struct few_run){(const char *)unit_zeros, 0};
}

/* A run from its rows. */
static void few_find_run(struct few_rows *rows, int number) {
    const char *const *row = rows->row + number * FEW_RUN;
    const int64_t stride = (int64_t)((intptr_t)row[1] - (intptr_t)row[0]);
    rows->run[number] = (struct few_run){row[0], stride};
    rows->scattered |= (uint64_t)!few_at_stride(row, stride) << number;
}

/* A run some of whose rows have these positions, or that does not lie at one stride. */
static void few_find_rows(struct few_rows *rows, const struct rapt_task *task, int side, int number, int64_t first,
                          struct rapt_span positions) {
    const char **row = rows->row + number * FEW_RUN;
    for (int i = 0; i < FEW_RUN; i++)
        row[i] = (const char *)unit_zeros;
    rapt_source_find(task, side, positions, row + (positions.begin - first));
    few_find_run(rows, number);
}

/* Keys or values of some positions, counted from a block on. */
static void few_find_side(struct few_rows *rows, const struct rapt_task *task, int side, int64_t base,
                          struct rapt_span positions) {
    struct rapt_stored_run list[FEW_ALL / 2 * FEW_RUN + 1];
    const struct rapt_stored_run *at = list;
    const int64_t stride = rapt_tensor_of(task->plan, side)->token_stride_bytes;
    int64_t from = positions.begin; /* the position of the first row at `at` */
    rapt_source_runs(task, side, positions, list);
    for (int i = 0; base + i * FEW_RUN < positions.end; i++) {
        const int64_t first = base + i * FEW_RUN;
        const int number = few_number(0, side, i);
        const struct rapt_span run = rapt_intersect(positions, (struct rapt_span){first, first + FEW_RUN});
        if (run.begin >= run.end)
            continue;
        for (; run.begin >= from + at->rows; at++)
            from += at->rows;
        if (run.end - run.begin == FEW_RUN && run.end <= from + at->rows)
            rows->run[number] = (struct few_run){at->row + (first - from) * stride, stride};
        else
            few_find_rows(rows, task, side, number, first, run);
    }
}

/* in_turns: the first half of the next block is scored beside the second one of this, and rows after it are
 * prefetched. */
static void few_find(struct few_rows *rows, const struct rapt_block *b, bool in_turns) {
    const bool far = few_is_far(b->task);
    const int64_t half = RAPT_HALF_KEYS, turns = 2 * FEW_TURN;
    const int64_t lead[RAPT_SIDES] = {in_turns ? half + turns
                                      : far    ? half
                                               : FEW_KEYS_LEAD * FEW_RUN,
                                      in_turns ? turns
                                      : far    ? half
                                               : 0};
    few_clear(rows);
    for (int side = 0; side < RAPT_SIDES; side++) {
        const int64_t next = b->base + RAPT_BLOCK_KEYS, end = next + lead[side], last = b->source->visible.end;
        const int64_t named = b->base + b->key_end;
        few_find_side(rows, b->task, side, b->base,
                      (struct rapt_span){b->base + b->key_begin, named < next ? named : end < last ? end : last});
    }
}

/* Some steps of 32 dims of a run: in place, or copied, with zeros after the last dim. */
RAPT_INLINE struct few_run few_part(const struct few_rows *rows, int number, char *copy, int dim, int first,
                                    int steps) {
    const int64_t stride = steps * TILE_ROW_BYTES;
    if (!(rows->scattered >> number & 1))
        return (struct few_run){rows->run[number].base + first * TILE_ROW_BYTES, rows->run[number].stride};
    for (int i = 0; i < FEW_RUN; i++)
        for (int step = 0; step < steps; step++)
            _mm512_store_si512(copy + i * stride + step * TILE_ROW_BYTES,
                               _mm512_maskz_loadu_epi16(unit16_first(dim - (first + step) * RAPT_STEP),
                                                        few_row(rows, number, i) + (first + step) * TILE_ROW_BYTES));
    return (struct few_run){copy, stride};
}

/* Which dims the last step of a row has. */
RAPT_INLINE __mmask32 few_last_dims(int dim, int steps) { return unit16_first(dim - (steps - 1) * RAPT_STEP); }

/* The last step of a run as a tile: in place, or copied if some of its dims are absent. */
RAPT_INLINE struct few_run few_last(const struct few_run *run, char *copy, int dim, int steps) {
    const __mmask32 there = few_last_dims(dim, steps);
    const char *const from = run->base + (steps - 1) * TILE_ROW_BYTES;
    if (there == FEW_ALL_DIMS)
        return (struct few_run){from, run->stride};
    RAPT_UNROLL for (int i = 0; i < FEW_RUN; i++)
        _mm512_store_si512(copy + i * TILE_ROW_BYTES, _mm512_maskz_loadu_epi16(there, from + i * run->stride));
    return (struct few_run){copy, TILE_ROW_BYTES};
}

/* A step of a run whose last step is `last`. */
RAPT_INLINE struct few_run few_step(const struct few_run *run, const struct few_run *last, int step, int steps) {
    return step < steps - 1 ? (struct few_run){run->base + step * TILE_ROW_BYTES, run->stride} : *last;
}

/* Rows [first, end) of some runs, `lines` lines each. With four lines, row i stands for one line of every fourth row of
 * its run instead: requesting adjacent lines at once keeps memory waiting. */
RAPT_INLINE void few_prefetch(const struct few_run *run, int first, int end, int lines) {
    RAPT_UNROLL for (int i = first; i < end; i++)
        RAPT_UNROLL for (int line = 0; line < lines; line++) {
            const struct few_run *of = run + i / FEW_RUN;
            const int row = i % FEW_RUN;
            if (lines == 4)
                fetch_soon(of->base + (row / 4 + 4 * line) * of->stride + row % 4 * 64);
            else
                fetch_soon(of->base + row * of->stride + line * 64);
        }
}

/* Lines [line, end_line) of rows [row, end) of a run. */
RAPT_INLINE void few_prefetch_later(const struct few_run *run, int row, int end, int line, int end_line) {
    for (int i = row; i < end; i++)
        for (int l = line; l < end_line; l++)
            fetch_later(run->base + i * run->stride + l * 64);
}

#endif
