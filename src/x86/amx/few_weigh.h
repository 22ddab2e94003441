/* SPDX-License-Identifier: MIT
 * Order 2 of few rows on the matrix unit: products with values, whose pairs are interleaved in L1 first. */
#ifndef RAPT_X86_AMX_FEW_WEIGH_H
#define RAPT_X86_AMX_FEW_WEIGH_H

#include "x86/amx/few_score.h"

enum {
    FEW_NEAR_STEPS = FEW_NEAR_DIMS / RAPT_STEP, /* steps of 32 dims at once, at most, of far rows, too */
    FEW_WHOLE = 3                               /* those whose sums all stay in registers */
};

/* Interleaves 32 dims of two values, absent ones being zeros: dims 0 ... 3, 8 ... 11 and so on, then those between. */
RAPT_INLINE void few_interleave_pair(char *into, const char *even_row, const char *odd_row, __mmask32 there) {
    const __m512i even = _mm512_maskz_loadu_epi16(there, even_row), odd = _mm512_maskz_loadu_epi16(there, odd_row);
    _mm512_store_si512(into, _mm512_unpacklo_epi16(even, odd));
    _mm512_store_si512(into + TILE_BYTES, _mm512_unpackhi_epi16(even, odd));
}

/* Steps of dims taken at once, and what far rows prefetch beside each run. */
struct few_dims {
    int first, steps;
    const struct few_run *ahead; /* of run 0 */
    int row, line, end_line;     /* rows from `row` on: [line, end_line) */
};

/* 16 values to the panel. beside: the first near row to prefetch. */
RAPT_INLINE void few_interleave(const struct few_half *f, const struct few_dims *d, char *panel, int number, int dim,
                                int steps, int beside, bool far) {
    enum { PAIRS = FEW_RUN / 2 };
    const int first = far ? d->first : 0;
    const struct few_run run = few_part(f->rows, number, f->copy, dim, first, steps);
    const __mmask32 last = few_last_dims(dim, first + steps);
    const struct few_run *near = f->rows->run + number + FEW_VALUES_LEAD - (beside > 0);
    const char *even = run.base, *odd = run.base + run.stride;
    for (int pair = 0; pair < PAIRS; pair++, even += 2 * run.stride, odd += 2 * run.stride) {
        if (far)
            few_prefetch_later(d->ahead + number, d->row + pair * (FEW_RUN - d->row) / PAIRS,
                               d->row + (pair + 1) * (FEW_RUN - d->row) / PAIRS, d->line, d->end_line);
        else
            few_prefetch(near, beside + pair, beside + pair + 1, steps);
        RAPT_UNROLL for (int i = 0; i < steps; i++)
            few_interleave_pair(panel + pair * TILE_ROW_BYTES + 2 * i * TILE_BYTES, even + i * TILE_ROW_BYTES,
                                odd + i * TILE_ROW_BYTES, i < steps - 1 ? FEW_ALL_DIMS : last);
    }
}

/* Prefetches near rows beside one of the tiles. */
#define FEW_BESIDE(tile)                                                                                            \
    if (!far)                                                                                                       \
        few_prefetch(near, TILE_HEIGHT * (tile) / (2 * steps), TILE_HEIGHT * ((tile) + 1) / (2 * steps), steps)

#define FEW_MULTIPLY(sum)                                            \
    if (2 * steps > (sum)) {                                         \
        TILE_LOAD(6, panel + (sum) * TILE_BYTES, TILE_ROW_BYTES);    \
        TILE_MULTIPLY(sum, 7, 6);                                    \
        FEW_BESIDE(sum);                                             \
    }

/* For sums that are loaded and stored at each step. */
#define FEW_MULTIPLY_STORED(tile)                                    \
    if (2 * steps > (tile)) {                                        \
        if (step > first)                                            \
            TILE_LOAD(5, g + (tile) * TILE_BYTES, TILE_ROW_BYTES);   \
        else                                                         \
            TILE_ZERO(5);                                            \
        TILE_LOAD(6, panel + (tile) * TILE_BYTES, TILE_ROW_BYTES);   \
        TILE_MULTIPLY(5, 7, 6);                                      \
        FEW_BESIDE(tile);                                            \
        TILE_STORE(5, g + (tile) * TILE_BYTES, TILE_ROW_BYTES);      \
    }

#define FEW_STORE(sum)                                               \
    if (2 * steps > (sum))                                           \
        TILE_STORE(sum, g + (sum) * TILE_BYTES, TILE_ROW_BYTES)

/* Rows of a tile. */
RAPT_INLINE int few_rows_of_tile(const struct few_half *f) {
    const int left = f->a.t.b->rows - f->first_row;
    return left < TILE_HEIGHT ? left : TILE_HEIGHT;
}

/* o of rows [row, end) of a tile, count dims from `at` on. */
RAPT_INLINE void few_update(const struct few_half *f, int at, int count, int row, int end) {
    const struct rapt_state state = f->a.t.b->state;
    const bool fresh = f->a.t.fresh;
    const __m512i low = _mm512_setr_epi32(0, 1, 2, 3, 16, 17, 18, 19, 4, 5, 6, 7, 20, 21, 22, 23);
    const __m512i high = _mm512_add_epi32(low, _mm512_set1_epi32(8));
    for (; row < end; row++) {
        const __m512 alpha = _mm512_set1_ps(f->a.softmax.alpha[f->first_row + row]);
        const float *g = f->a.g + row * TILE_FLOATS;
        float *o = state.o + (f->first_row + row) * state.o_stride + at;
        for (int d = 0; d < count; d += 16) {
            const float *two = g + d / AMX_COLUMNS * (2 * TILE_BYTES / 4);
            __m512 sum = _mm512_permutex2var_ps(_mm512_load_ps(two), d % AMX_COLUMNS ? high : low,
                                                _mm512_load_ps(two + TILE_BYTES / 4));
            sum = fresh ? sum : _mm512_fmadd_ps(_mm512_load_ps(o + d), alpha, sum);
            _mm512_store_ps(o + d, sum);
        }
    }
}

/* p times some dims of values, to o of rows [row, end). Sizes may be constants. */
RAPT_INLINE void few_multiply(const struct few_half *f, const struct few_dims *d, int row, int end, int dim, int steps,
                              bool far) {
    const int first = f->a.first_step, last = first + f->a.steps, at = far ? d->first * RAPT_STEP : 0;
    const char *const p = (const char *)f->a.t.y;
    char *const panel = f->panel, *const g = (char *)f->a.g;
    TILE_ZERO(0);
    TILE_ZERO(1);
    TILE_ZERO(2);
    TILE_ZERO(3);
    TILE_ZERO(4);
    TILE_ZERO(5);
    for (int step = first; step < last; step++) {
        const int number = f->values + 2 * step;
        const struct few_run *near = f->rows->run + number + 1 + FEW_VALUES_LEAD;
        few_interleave(f, d, panel, number, dim, steps, 0, far);
        few_interleave(f, d, panel + TILE_BYTES / 2, number + 1, dim, steps, FEW_RUN / 2, far);
        TILE_LOAD(7, p + step * TILE_ROW_BYTES, RAPT_HALF_KEYS * sizeof(float));
        FEW_MULTIPLY(0)
        if (steps > FEW_WHOLE)
            FEW_MULTIPLY_STORED(5)
        FEW_MULTIPLY(1)
        FEW_MULTIPLY(2)
        FEW_MULTIPLY_STORED(6)
        FEW_MULTIPLY(3)
        FEW_MULTIPLY(4)
        if (steps <= FEW_WHOLE)
            FEW_MULTIPLY(5)
        FEW_MULTIPLY_STORED(7)
    }
    FEW_STORE(0);
    FEW_STORE(1);
    FEW_STORE(2);
    FEW_STORE(3);
    FEW_STORE(4);
    if (steps <= FEW_WHOLE)
        FEW_STORE(5);
    few_update(f, at, dim - at < steps * RAPT_STEP ? dim - at : steps * RAPT_STEP, row, end);
}

/* Near rows: all dims at once. */
typedef void few_weigher(const struct few_half *f, int row, int end);
#define FEW_WEIGHER(steps)                                                                      \
    static RAPT_KERNEL void few_weigh_##steps(const struct few_half *f, int row, int end) {     \
        static const struct few_dims all = {.first = 0};                                        \
        const int dim = (int)f->a.t.b->task->plan->desc.value_dim;                              \
        few_multiply(f, &all, row, end, dim, steps, false);                                     \
    }
FEW_STEPS(FEW_WEIGHER)
#undef FEW_WEIGHER

typedef void few_multiplier(const struct few_half *f, const struct few_dims *d, int row, int end, int dim);

#define FEW_MULTIPLIER(steps)                                                                                       \
    static RAPT_KERNEL void few_multiply_##steps(const struct few_half *f, const struct few_dims *d, int row,       \
                                                 int end, int dim) {                                                \
        few_multiply(f, d, row, end, dim, steps, true);                                                             \
    }
FEW_STEPS(FEW_MULTIPLIER)
#undef FEW_MULTIPLIER

/* Far rows: part of the dims at a time, whose sums stay in registers. */
static RAPT_KERNEL void few_weigh_far(const struct few_half *f, int row, int end) {
#define FEW_MULTIPLIER(steps) few_multiply_##steps,
    static few_multiplier *const of_steps[] = {FEW_STEPS(FEW_MULTIPLIER)};
#undef FEW_MULTIPLIER
    const struct rapt_plan_body *plan = f->a.t.b->task->plan;
    const int dim = (int)plan->desc.value_dim, steps = unit16_steps(dim);
    const bool views = plan->values_in_keys >= 0;
    const int lines = views ? unit16_steps((int)plan->desc.head_dim) : steps;
    const int to_keys = few_number(1, RAPT_KEYS, 0) - few_number(0, RAPT_VALUES, 0); /* that come half a block later */
    struct few_dims d = {.ahead = f->rows->run + (views ? to_keys : FEW_HALF), .row = views ? FEW_BESIDE_KEYS : 0};
    for (int left = steps <= FEW_NEAR_STEPS ? 1 : (steps + FEW_WHOLE - 1) / FEW_WHOLE; left > 0; left--) {
        d.steps = (steps - d.first + left - 1) / left;
        d.end_line = (d.first + d.steps) * lines / steps;
        of_steps[d.steps - 1](f, &d, row, end, dim);
        d.first += d.steps;
        d.line = d.end_line;
    }
}

/* p times values, to o of rows [row, end) of a tile. */
static void few_weigh_rows(const struct few_half *f, int row, int end) {
#define FEW_WEIGHER(steps) few_weigh_##steps,
    static few_weigher *const of_steps[] = {FEW_STEPS(FEW_WEIGHER)};
#undef FEW_WEIGHER
    const struct rapt_task *task = f->a.t.b->task;
    const int steps = unit16_steps((int)task->plan->desc.value_dim);
    few_weigher *const weigh = few_is_far(task) ? few_weigh_far : of_steps[steps - 1];
    weigh(f, row, end);
}

/* Values that a row does not attend to count as +0, whatever they hold. */
static void few_weigh_row(const struct few_half *f, int row) {
    struct few_rows attended;
    struct few_half of_row = few_tile(f, row / TILE_HEIGHT);
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
    few_weigh_rows(&of_row, row % TILE_HEIGHT, row % TILE_HEIGHT + 1);
}

static void few_weigh(const struct few_half *f) {
    const struct rapt_block *b = f->a.t.b;
    const int next = f->values + few_number(0, RAPT_VALUES, 0);
    if (b->careful && b->seen == RAPT_SEES_SOME) {
        for (int row = 0; row < b->rows; row++)
            few_weigh_row(f, row);
        return;
    }
    for (int number = 0; number < f->tiles; number++) {
        const struct few_half tile = few_tile(f, number);
        few_weigh_rows(&tile, 0, few_rows_of_tile(&tile));
    }
    if (!few_is_far(b->task))
        few_prefetch(f->rows->run + next + FEW_VALUES_LEAD, 0, (FEW_KEYS_LEAD - FEW_VALUES_LEAD) * FEW_RUN,
                     unit16_steps((int)b->task->plan->desc.head_dim));
}

#endif
