/* SPDX-License-Identifier: MIT
 * Order 2 on the matrix unit: a block of the loop for one tile of 32 rows, half by half. */
#ifndef RAPT_X86_AMX_BLOCK_H
#define RAPT_X86_AMX_BLOCK_H

#include "x86/amx/product.h"
#include "x86/amx/softmax.h"

/* Half a block of a tile, and the scratch that lies in task->scores. */
struct amx_task {
    struct unit_task t;   /* t.y: [32][RAPT_HALF_KEYS]; t.sums is not used */
    struct amx_half half;
    float *g;             /* [32][32]: p * v of some dims */
    int first, steps;     /* of 32 keys */
    bool plain;           /* maxima come from products as they are */
};

/* Scores, sums, maxima, offsets; and room for the careful path. */
static size_t scores_bytes_amx(int rows, int dim) {
    (void)rows, (void)dim;
    return AMX_TILE * (RAPT_HALF_KEYS + AMX_COLUMNS + 16 + 1) * sizeof(float) + TILE_BYTES;
}

static void lay_out(struct amx_task *a) {
    const struct rapt_block *b = a->t.b;
    a->t.y = b->task->scores;
    a->g = a->t.y + AMX_TILE * RAPT_HALF_KEYS;
    a->half.y = a->t.y;
    a->half.lanes = b->panel;
    a->half.largest = a->g + AMX_TILE * AMX_COLUMNS;
    a->half.offset = a->half.largest + AMX_TILE * 16;
    a->half.m = b->state.m;
    a->half.alpha = b->task->alpha;
    a->half.rows = b->rows;
}

/* ------------------------------------------------------------ queries times keys */

static inline __attribute__((always_inline)) void beside_scores(const void *context, int group, int row, int end) {
    const struct amx_task *a = context;
    if (a->plain)
        amx_maxima(&a->half, a->first + group, row, end);
}

RAPT_INLINE void amx_score(const struct amx_task *a, int half) {
    const struct rapt_block *b = a->t.b;
    const int steps = amx_steps((int)b->task->attention->desc.head_dim);
    const struct rapt_packed keys = rapt_source_packed(b->source, RAPT_KEYS, b->base + a->t.first);
    const int64_t group_bytes = (int64_t)steps * 2 * TILE_BYTES;
    const struct amx_product p = {.a = amx_queries(b->panel),
                                  .a_stride = TILE_ROW_BYTES,
                                  .a_step = 2 * TILE_BYTES,
                                  .a_below = TILE_BYTES,
                                  .b = (const char *)keys.base + a->first * group_bytes,
                                  .b_step = 2 * TILE_BYTES,
                                  .b_beside = TILE_BYTES,
                                  .b_group = group_bytes,
                                  .c = (char *)(a->t.y + a->first * RAPT_STEP),
                                  .c_stride = RAPT_HALF_KEYS * sizeof(float),
                                  .c_group = RAPT_STEP * sizeof(float),
                                  .groups = a->steps,
                                  .steps = steps,
                                  .has_below = b->rows > TILE_HEIGHT,
                                  .is_odd = false};
    amx_multiply(&p, beside_scores, a, b->rows, half);
}

/* ------------------------------------------------------------ what rows do not see */

/* Scores outside the span of a row become what comes out as probability 0. */
static void amx_exclude_outside(const struct amx_task *a) {
    const __m512 out = _mm512_set1_ps(a->half.factor < 0 ? RAPT_INFINITY : -RAPT_INFINITY);
    const int first = a->first * RAPT_STEP, last = first + a->steps * RAPT_STEP;
    for (int row = 0; row < a->t.b->rows; row++) {
        float *y = a->t.y + row * RAPT_HALF_KEYS;
        const int begin = a->t.row_begin[row], end = a->t.row_end[row];
        for (int key = first; key < last; key += 16)
            if (key < begin || key + 16 > end)
                _mm512_mask_store_ps(y + key, (__mmask16)~(first_halves(end - key) & ~first_halves(begin - key)), out);
    }
}

/* Whether all rows see all keys of the steps that are worked on. */
static bool amx_sees_all(const struct amx_task *a) {
    int begin = a->t.begin, end = a->t.end;
    for (int row = 0; row < a->t.b->rows; row++) {
        begin = a->t.row_begin[row] > begin ? a->t.row_begin[row] : begin;
        end = a->t.row_end[row] < end ? a->t.row_end[row] : end;
    }
    return begin <= a->first * RAPT_STEP && end >= (a->first + a->steps) * RAPT_STEP;
}

/* ------------------------------------------------------------ probabilities times values */

static inline __attribute__((always_inline)) void beside_sums(const void *context, int group, int row, int end) {
    const struct amx_task *a = context;
    const struct rapt_state state = a->t.b->state;
    const int left = (int)a->t.b->task->attention->desc.value_dim - group * AMX_COLUMNS;
    for (; row < end; row++) {
        const __m512 alpha = _mm512_set1_ps(a->half.alpha[row]);
        const float *g = a->g + row * AMX_COLUMNS;
        float *o = state.o + row * state.o_stride + group * AMX_COLUMNS;
        for (int d = 0; d < AMX_COLUMNS && d < left; d += 16) {
            __m512 sum = _mm512_load_ps(g + d);
            sum = a->t.fresh ? sum : _mm512_fmadd_ps(_mm512_load_ps(o + d), alpha, sum);
            _mm512_store_ps(o + d, sum);
        }
    }
}

/* Values of the steps that are worked on. */
RAPT_INLINE struct amx_product amx_weighing(const struct amx_task *a, const char *values) {
    const int dim = (int)a->t.b->task->attention->desc.value_dim;
    return (struct amx_product){.a = (const char *)a->t.y + a->first * TILE_ROW_BYTES,
                                .a_stride = RAPT_HALF_KEYS * sizeof(float),
                                .a_step = TILE_ROW_BYTES,
                                .a_below = TILE_HEIGHT * RAPT_HALF_KEYS * (int64_t)sizeof(float),
                                .b = values + a->first * TILE_BYTES,
                                .b_step = TILE_BYTES,
                                .b_beside = STEPS_OF_HALF * TILE_BYTES,
                                .b_group = 2 * STEPS_OF_HALF * TILE_BYTES,
                                .c = (char *)a->g,
                                .c_stride = AMX_COLUMNS * sizeof(float),
                                .c_group = 0,
                                .groups = amx_steps(dim),
                                .steps = a->steps,
                                .has_below = a->t.b->rows > TILE_HEIGHT,
                                .is_odd = (dim + 15) / 16 % 2 != 0};
}

/* One row, whose values of pairs that are not attended count as +0, whatever they hold: copies of their tiles have
 * zeros there. */
RAPT_INLINE void amx_weigh_row(const struct amx_task *a, const char *values, int row, int half) {
    char *copy = (char *)(a->half.offset + AMX_TILE);
    const struct amx_product p = amx_weighing(a, values);
    uint64_t attended[2] = {0, 0};
    for (int key = a->t.begin; key < a->t.end; key++)
        attended[key / 64] |= (uint64_t)rapt_is_attended(a->t.b->mask, row, a->t.first + key) << key % 64;
    for (int tile = 0; tile < 2 * p.groups; tile++) {
        TILE_ZERO(0);
        for (int step = 0; step < a->steps; step++) {
            const char *from = p.b + (tile / 2) * p.b_group + tile % 2 * p.b_beside + step * p.b_step;
            for (int pair = 0; pair < TILE_HEIGHT; pair++) {
                const int key = (a->first + step) * RAPT_STEP + 2 * pair;
                const uint64_t two = attended[key / 64] >> key % 64;
                const __mmask32 there = (two & 1 ? 0x55555555u : 0) | (two & 2 ? 0xaaaaaaaau : 0);
                _mm512_store_si512(copy + pair * TILE_ROW_BYTES,
                                   _mm512_maskz_loadu_epi16(there, from + pair * TILE_ROW_BYTES));
            }
            TILE_LOAD(4, p.a + row / TILE_HEIGHT * p.a_below + step * p.a_step, p.a_stride);
            TILE_LOAD(6, copy, TILE_ROW_BYTES);
            AMX_MULTIPLY(0, 4, 6);
        }
        TILE_STORE(0, (char *)a->g + tile % 2 * TILE_ROW_BYTES + row / TILE_HEIGHT * TILE_HEIGHT * p.c_stride,
                   p.c_stride);
        if (tile % 2)
            beside_sums(a, tile / 2, row, row + 1);
    }
}

/* Pairs that are dropped weigh nothing; their probabilities are in l already. */
static void amx_drop(const struct amx_task *a) {
    const struct rapt_block *b = a->t.b;
    for (int row = 0; row < b->rows; row++)
        for (int key = a->t.begin / RAPT_STEP * RAPT_STEP; key < a->t.end; key += RAPT_STEP) {
            const __mmask32 there = first_halves(a->t.end - key) & ~first_halves(a->t.begin - key);
            uint16_t *p = (uint16_t *)(void *)(a->t.y + row * RAPT_HALF_KEYS) + key;
            const __m256i keep = _mm256_maskz_loadu_epi8(there, b->mask->keep[row] + a->t.first + key);
            _mm512_store_si512(p, _mm512_maskz_loadu_epi16(_mm256_test_epi8_mask(keep, keep), p));
        }
}

RAPT_INLINE void amx_weigh(const struct amx_task *a, int half) {
    const struct rapt_block *b = a->t.b;
    const struct rapt_packed values = rapt_source_packed(b->source, RAPT_VALUES, b->base + a->t.first);
    if (!(values.found & RAPT_FOUND_FINITE)) {
        for (int row = 0; row < b->rows; row++)
            amx_weigh_row(a, values.base, row, half);
        return;
    }
    const struct amx_product p = amx_weighing(a, values.base);
    amx_multiply(&p, beside_sums, a, b->rows, half);
}

/* ------------------------------------------------------------ all of it */

RAPT_INLINE void amx_half_block(struct amx_task *a, int half) {
    const struct rapt_block *b = a->t.b;
    const unsigned acts = b->mask->parts & ~(unsigned)(RAPT_PART_KEEP | RAPT_PART_SPANS);
    const bool unscaled = rapt_enters_unscaled(b->task->attention);
    a->first = a->t.begin / RAPT_STEP;
    a->steps = (a->t.end + RAPT_STEP - 1) / RAPT_STEP - a->first;
    unit_spans(&a->t);
    a->plain = unscaled && !acts && amx_sees_all(a);
    a->half.factor = unscaled ? b->task->attention->score_factor : 1;
    a->half.first = a->first;
    a->half.last = a->first + a->steps;
    a->half.fresh = a->t.fresh;
    amx_score(a, half);
    if (!a->plain) {
        unit_logits(&a->t);
        amx_exclude_outside(a);
        for (int step = a->half.first; step < a->half.last; step++)
            amx_maxima(&a->half, step, 0, b->rows);
    }
    amx_new_maxima(&a->half, half);
    amx_exponentials(&a->half, half);
    if (b->mask->parts & RAPT_PART_KEEP)
        amx_drop(a);
    amx_weigh(a, half);
}

RAPT_INLINE void amx_block(const struct rapt_block *b, int half) {
    struct amx_task a = {.t = {.b = b, .fresh = b->fresh}};
    RAPT_ASSUME(!b->mask->selected && b->key_begin < b->key_end && b->rows <= AMX_TILE);
    lay_out(&a);
    for (a.t.first = 0; a.t.first < RAPT_BLOCK_KEYS; a.t.first += RAPT_HALF_KEYS) {
        a.t.begin = b->key_begin > a.t.first ? b->key_begin - a.t.first : 0;
        a.t.end = b->key_end - a.t.first < RAPT_HALF_KEYS ? b->key_end - a.t.first : RAPT_HALF_KEYS;
        if (a.t.begin >= a.t.end)
            continue;
        amx_half_block(&a, half);
        a.t.fresh = false;
    }
}

static RAPT_KERNEL void block_amx_bf16(const struct rapt_block *block) { amx_block(block, 0); }

/* Lanes of l fold; float16 leaves its range, and dropout scales. */
RAPT_INLINE void amx_close(const struct rapt_task *task, const float *lanes, struct rapt_state state, int rows,
                           int half) {
    const struct rapt_plan_body *a = task->attention;
    const float unshift = half ? 0x1p-15f : 1;
    const __m512 factor = _mm512_set1_ps((a->mask_parts & RAPT_PART_KEEP ? a->desc.keep_scale : 1) * unshift);
    for (int row = 0; row < rows; row += 16)
        _mm512_mask_storeu_ps(state.l + row, (__mmask16)first_halves(rows - row),
                              _mm512_mul_ps(amx_sum(lanes + row * RAPT_SUM_LANES), _mm512_set1_ps(unshift)));
    for (int row = 0; row < rows && (half || (a->mask_parts & RAPT_PART_KEEP)); row++)
        for (int d = 0; d < a->desc.value_dim; d += 16) {
            float *o = state.o + row * state.o_stride + d;
            _mm512_store_ps(o, _mm512_mul_ps(_mm512_load_ps(o), factor));
        }
}

static void close_amx_bf16(const struct rapt_task *task, float *panel, struct rapt_state state, int rows) {
    amx_close(task, panel, state, rows, 0);
}

#endif
