/* SPDX-License-Identifier: MIT
 * Order 2 on numbers of 16 bits on x86: a block of the loop for one tile, half by half, whatever multiplies. */
#ifndef RAPT_X86_UNIT16_BLOCK_H
#define RAPT_X86_UNIT16_BLOCK_H

#include "x86/unit16/softmax.h"

/* Half a block of a tile, and the scratch that lies in task->scores. */
struct unit16_half {
    struct unit_half t;   /* t.y: [rows][RAPT_HALF_KEYS]; t.sums is not used */
    struct unit16_softmax_args softmax;
    float *g;             /* p * v of some dims, as the kind lays it out */
    int first_step, steps; /* of 32 keys: those of the half that the block names */
    bool plain;           /* maxima come from products as they are: their factor is above 0 */
};

/* Queries times the keys of a half, to t.y; where plain, to its maxima as well. Probabilities times values, to o. */
typedef void unit16_product(const struct unit16_half *task);

/* ------------------------------------------------------------ what rows do not see */

/* 16 scores, of keys from `key` on. A masked store would stall the maxima: it does not forward to loads. */
RAPT_INLINE void unit16_exclude(float *y, int key, int begin, int end, __m512 out) {
    const __mmask16 inside = (__mmask16)(unit16_first(end - key) & ~unit16_first(begin - key));
    _mm512_store_ps(y + key, _mm512_mask_mov_ps(out, inside, _mm512_load_ps(y + key)));
}

/* Sets scores outside a row's span to what gives probability 0. */
static void unit16_exclude_outside(const struct unit16_half *a) {
    const __m512 out = _mm512_set1_ps(a->softmax.factor < 0 ? RAPT_INFINITY : -RAPT_INFINITY);
    const int first = a->first_step * RAPT_STEP, last = first + a->steps * RAPT_STEP;
    for (int row = 0; row < a->t.b->rows; row++) {
        float *y = a->t.y + row * RAPT_HALF_KEYS;
        const int begin = a->t.row_begin[row], end = a->t.row_end[row], whole = end / 16 * 16;
        int key = first;
        for (; key < last && key < begin; key += 16)
            unit16_exclude(y, key, begin, end, out);
        for (key = key < whole ? whole : key; key < last; key += 16)
            unit16_exclude(y, key, begin, end, out);
    }
}

/* Whether all rows see all keys of the current steps. */
static bool unit16_sees_all(const struct unit16_half *a) {
    int begin = a->t.begin, end = a->t.end;
    for (int row = 0; row < a->t.b->rows; row++) {
        begin = a->t.row_begin[row] > begin ? a->t.row_begin[row] : begin;
        end = a->t.row_end[row] < end ? a->t.row_end[row] : end;
    }
    return begin <= a->first_step * RAPT_STEP && end >= (a->first_step + a->steps) * RAPT_STEP;
}

/* Dropped pairs weigh nothing; their probabilities are in l already. */
static void unit16_drop(const struct unit16_half *a) {
    const struct rapt_block *b = a->t.b;
    for (int row = 0; row < b->rows; row++)
        for (int key = a->t.begin / RAPT_STEP * RAPT_STEP; key < a->t.end; key += RAPT_STEP) {
            const __mmask32 there = unit16_first(a->t.end - key) & ~unit16_first(a->t.begin - key);
            uint16_t *p = (uint16_t *)(void *)(a->t.y + row * RAPT_HALF_KEYS) + key;
            const __m256i keep = _mm256_maskz_loadu_epi8(there, b->mask->keep[row] + a->t.first + key);
            _mm512_store_si512(p, _mm512_maskz_loadu_epi16(_mm256_test_epi8_mask(keep, keep), p));
        }
}

/* ------------------------------------------------------------ all of it */

/* Whether there are keys of the half whose key 0 is `first` in the numbers of the mask; if so, selects it. */
static bool unit16_select_half(struct unit16_half *a, int first) {
    const struct rapt_block *b = a->t.b;
    const unsigned acts = b->mask->parts & ~(unsigned)(RAPT_PART_KEEP | RAPT_PART_SPANS);
    const bool unscaled = rapt_enters_unscaled(b->task->plan);
    a->t.first = first;
    a->t.begin = b->key_begin > first ? b->key_begin - first : 0;
    a->t.end = b->key_end - first < RAPT_HALF_KEYS ? b->key_end - first : RAPT_HALF_KEYS;
    if (a->t.begin >= a->t.end)
        return false;
    a->first_step = a->t.begin / RAPT_STEP;
    a->steps = (a->t.end + RAPT_STEP - 1) / RAPT_STEP - a->first_step;
    unit_spans(&a->t);
    a->plain = unscaled && !acts && b->task->plan->score_factor > 0 && unit16_sees_all(a);
    a->softmax.factor = unscaled ? b->task->plan->score_factor : 1;
    a->softmax.first = a->first_step;
    a->softmax.last = a->first_step + a->steps;
    a->softmax.fresh = a->t.fresh;
    return true;
}

/* From products to what exponentials take. */
RAPT_INLINE void unit16_to_maxima(struct unit16_half *a) {
    if (!a->plain) {
        unit_logits(&a->t);
        unit16_exclude_outside(a);
        for (int step = a->softmax.first; step < a->softmax.last; step++)
            unit16_maxima(&a->softmax, step, 0, a->softmax.rows);
    }
    unit16_new_maxima(&a->softmax);
}

/* From maxima on. */
RAPT_INLINE void unit16_rest(struct unit16_half *a, unit16_product *weigh) {
    unit16_exponentials(&a->softmax);
    if (a->t.b->mask->parts & RAPT_PART_KEEP)
        unit16_drop(a);
    weigh(a);
}

RAPT_INLINE void unit16_half_block(struct unit16_half *a, unit16_product *score, unit16_product *weigh) {
    score(a);
    unit16_to_maxima(a);
    unit16_rest(a, weigh);
}

/* Both halves of a block. */
RAPT_INLINE void unit16_block(struct unit16_half *a, unit16_product *score, unit16_product *weigh) {
    RAPT_ASSUME(!a->t.b->mask->selected && a->t.b->key_begin < a->t.b->key_end);
    for (int first = 0; first < RAPT_BLOCK_KEYS; first += RAPT_HALF_KEYS)
        if (unit16_select_half(a, first)) {
            unit16_half_block(a, score, weigh);
            a->t.fresh = false;
        }
}

/* Folds lanes of l; unscales float16; applies keep_scale. */
static void unit16_close(const struct rapt_task *task, float *lanes, struct rapt_state state, int rows) {
    const struct rapt_plan_body *plan = task->plan;
    const float unshift = UNIT16_IS_F16 ? 0x1p-15f : 1;
    const __m512 factor = _mm512_set1_ps((plan->mask_parts & RAPT_PART_KEEP ? plan->desc.keep_scale : 1) * unshift);
    for (int row = 0; row < rows; row += 16)
        _mm512_mask_storeu_ps(state.l + row, (__mmask16)unit16_first(rows - row),
                              _mm512_mul_ps(unit16_sum(lanes + row * RAPT_SUM_LANES), _mm512_set1_ps(unshift)));
    for (int row = 0; row < rows && (UNIT16_IS_F16 || (plan->mask_parts & RAPT_PART_KEEP)); row++)
        for (int d = 0; d < plan->desc.value_dim; d += 16) {
            float *o = state.o + row * state.o_stride + d;
            _mm512_store_ps(o, _mm512_mul_ps(_mm512_load_ps(o), factor));
        }
}

#endif
