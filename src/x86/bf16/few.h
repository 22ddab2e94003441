/* SPDX-License-Identifier: MIT
 * Order 2 of few rows by VDPBF16PS: keys and values are read where they lie, and laid out in L1, 32 at a time. */
#ifndef RAPT_X86_BF16_FEW_H
#define RAPT_X86_BF16_FEW_H

#include "generic/unit_place_rows.h"
#include "x86/bf16/block.h"

struct dots_few {
    struct unit16_task a;
    struct place_side keys, values;
    uint32_t *panel; /* of 32 keys, or of 32 values */
    bool paces;      /* requests */
};

/* Up to so many rows run ahead of memory; multiplications from a request to the next then. As measured. */
enum { DOTS_PACED_ROWS = 2, DOTS_PRODUCTS = 4 };

struct dots_ahead {
    struct unit_ahead lines;
    bool paces; /* known to the compiler */
};

RAPT_INLINE void dots_fetch(struct dots_ahead *ahead) {
    unit_fetch(&ahead->lines);
    if (ahead->paces)
        ahead->lines.byte = (int)paced((uint32_t)ahead->lines.byte, DOTS_PRODUCTS);
}

/* As dots_lay_out has it; then the panel. */
static size_t scores_bytes_dots_few(int rows, int dim) {
    return scores_bytes_dots(rows, dim) + (size_t)unit16_steps(dim) * DOTS_OF_STEP * sizeof(uint32_t);
}

/* ------------------------------------------------------------ keys */

/* 32 dims of 32 keys. */
RAPT_INLINE void dots_lay_keys(uint32_t *panel, const char *const *rows, int d, __mmask32 there,
                               struct dots_ahead *ahead) {
    RAPT_UNROLL for (int side = 0; side < 2; side++) {
        __m512i r[16];
        RAPT_UNROLL for (int i = 0; i < 16; i++) {
            r[i] = dots_words(_mm512_maskz_loadu_epi16(there, rows[side * 16 + i] + (int64_t)d * 2));
            dots_fetch(ahead);
        }
        unit16_transpose(r);
        RAPT_UNROLL for (int i = 0; i < 16; i++)
            _mm512_store_si512(panel + i * DOTS_COLUMNS + side * 16, r[i]);
    }
}

RAPT_INLINE void dots_score_keys(const struct dots_few *f, bool paces) {
    const struct unit16_task *a = &f->a;
    const struct rapt_block *b = a->t.b;
    const int steps = unit16_steps(f->keys.dim);
    unit_flush(true);
    for (int group = a->first; group < a->first + a->steps; group++) {
        const char *const *rows = f->keys.row + a->t.first + group * DOTS_COLUMNS;
        struct dots_ahead ahead = {{rows + DOTS_NEAR, 0, f->keys.dim * 2, reach_of(0, DOTS_FAR - DOTS_NEAR)}, paces};
        const struct dots_product p = {.a = dots_queries(b->panel),
                                       .a_stride = steps * DOTS_WORDS,
                                       .b = f->panel,
                                       .c = a->t.y + group * DOTS_COLUMNS,
                                       .c_stride = RAPT_HALF_KEYS,
                                       .steps = steps};
        for (int step = 0; step < steps; step++)
            dots_lay_keys(f->panel + step * DOTS_OF_STEP, rows, step * RAPT_STEP,
                          unit16_first(f->keys.dim - step * RAPT_STEP), &ahead);
        dots_multiply(p, b->rows);
    }
    unit_flush(false);
    dots_maxima(a);
}

static RAPT_KERNEL void dots_score_paced(const struct dots_few *f) { dots_score_keys(f, true); }
static RAPT_KERNEL void dots_score_unpaced(const struct dots_few *f) { dots_score_keys(f, false); }

static void dots_score_few(const struct unit16_task *a, int half) {
    const struct dots_few *f = (const struct dots_few *)a;
    (void)half;
    (f->paces ? dots_score_paced : dots_score_unpaced)(f);
}

/* ------------------------------------------------------------ values */

/* Words of 32 values from dim d on: of one even and one odd pair of keys, 32 dims each. */
RAPT_INLINE void dots_pairs(__m512i words[4], const char *const *rows, int word, int d, __mmask32 there,
                            struct dots_ahead *ahead) {
    RAPT_UNROLL for (int odd = 0; odd < 2; odd++) {
        const int first = dots_first(word) + odd;
        const __m512i a = _mm512_maskz_loadu_epi16(there, rows[first + 2] + (int64_t)d * 2);
        const __m512i b = _mm512_maskz_loadu_epi16(there, rows[first] + (int64_t)d * 2);
        dots_fetch(ahead);
        dots_fetch(ahead);
        words[2 * odd] = unit16_in_turns(a, b, 0);
        words[2 * odd + 1] = unit16_in_turns(a, b, 1);
    }
}

struct dots_values {
    const char *const *rows;
    int d;
    __mmask32 there;
    struct dots_ahead *ahead;
};

/* Rows of p, a step of them, times 32 dims of values where they lie. */
RAPT_INLINE void dots_weigh_rows(const struct dots_product *p, const struct dots_values *values, int rows, bool paces) {
    __m512 even[2 * DOTS_ROWS], odd[2 * DOTS_ROWS];
    const struct dots_values v = *values;
    struct dots_ahead ahead = *v.ahead;
    ahead.paces = paces;
    dots_clear(even, odd, rows);
    for (int word = 0; word < DOTS_WORDS / 2; word++) {
        __m512i b[4];
        dots_pairs(b, v.rows, word, v.d, v.there, &ahead);
        dots_word(even, odd, p->a + word, p->a_stride, b, rows);
    }
    dots_store(even, odd, p->c, p->c_stride, p->adds, rows);
    *v.ahead = ahead;
}

#define DOTS_WEIGH(name, rows, paces)                                                                            \
    static RAPT_KERNEL void dots_weigh_##name(const struct dots_product *p, const struct dots_values *v) {       \
        dots_weigh_rows(p, v, rows, paces);                                                                      \
    }
DOTS_WEIGH(1, 1, false)
DOTS_WEIGH(2, 2, false)
DOTS_WEIGH(4, 4, false)
DOTS_WEIGH(6, DOTS_ROWS, false)
DOTS_WEIGH(1_paced, 1, true)
DOTS_WEIGH(2_paced, DOTS_PACED_ROWS, true)
#undef DOTS_WEIGH

static void dots_weigh_in_place(const struct dots_product *p, const struct dots_values *v, int rows) {
    if (v->ahead->paces)
        (rows > 1 ? dots_weigh_2_paced : dots_weigh_1_paced)(p, v);
    else
        (rows > 4 ? dots_weigh_6 : rows > 2 ? dots_weigh_4 : rows > 1 ? dots_weigh_2 : dots_weigh_1)(p, v);
}

/* 32 dims of 32 values to a panel. */
RAPT_INLINE void dots_lay_values(uint32_t *panel, const struct dots_values *v) {
    RAPT_UNROLL for (int word = 0; word < DOTS_WORDS / 2; word++) {
        __m512i b[4];
        dots_pairs(b, v->rows, word, v->d, v->there, v->ahead);
        RAPT_UNROLL for (int i = 0; i < 4; i++)
            _mm512_store_si512(panel + (word + i / 2 * (DOTS_WORDS / 2)) * DOTS_COLUMNS + i % 2 * 16, b[i]);
    }
}

/* p of a row and those after it times 32 values, to sums or onto them. */
static void dots_weigh_step(const struct dots_few *f, const char *const *rows, int step, int row, int count,
                            struct dots_ahead *ahead) {
    const int groups = unit16_steps(f->values.dim);
    const int64_t stride = (int64_t)groups * DOTS_COLUMNS;
    const float *words = f->a.t.y + row * RAPT_HALF_KEYS + step * DOTS_WORDS;
    for (int group = 0; group < groups; group++) {
        const struct dots_values values = {rows, group * DOTS_COLUMNS,
                                           unit16_first(f->values.dim - group * DOTS_COLUMNS), ahead};
        const struct dots_product p = {.a = (const uint32_t *)(const void *)words,
                                       .a_stride = RAPT_HALF_KEYS,
                                       .b = f->panel,
                                       .c = f->a.g + row * stride + group * DOTS_COLUMNS,
                                       .c_stride = stride,
                                       .steps = 1,
                                       .adds = step > f->a.first};
        if (count <= DOTS_ROWS) {
            dots_weigh_in_place(&p, &values, count);
        } else {
            dots_lay_values(f->panel, &values);
            dots_multiply(p, count);
        }
    }
}

/* Values of a step that take part: of those that the block names, or, careful, that a row attends to. Others count as
 * +0, whatever they hold. */
static const char *const *dots_named(const struct dots_few *f, int step, int row, bool careful, const char **named) {
    const struct unit_task *t = &f->a.t;
    const int key = step * RAPT_STEP;
    const char *const *rows = f->values.row + t->first + key;
    if (!careful && key >= t->begin && key + RAPT_STEP <= t->end)
        return rows;
    for (int k = 0; k < RAPT_STEP; k++) {
        const bool is_named = key + k >= t->begin && key + k < t->end;
        const bool takes_part = is_named && (!careful || rapt_is_attended(t->b->mask, row, t->first + key + k));
        named[k] = takes_part ? rows[k] : (const char *)unit_zeros;
    }
    return named;
}

static void dots_weigh_few(const struct unit16_task *a, int half) {
    const struct dots_few *f = (const struct dots_few *)a;
    const struct rapt_block *b = a->t.b;
    const bool careful = b->careful && b->seen == RAPT_SEES_SOME;
    (void)half;
    dots_probabilities(a);
    unit_flush(true);
    for (int step = a->first; step < a->first + a->steps; step++)
        for (int row = 0; row < (careful ? b->rows : 1); row++) {
            const char *named[RAPT_STEP];
            const int key = a->t.first + step * RAPT_STEP;
            const struct reach reach = reach_of(0, DOTS_FAR - DOTS_NEAR);
            struct dots_ahead ahead = {{f->values.row + key + DOTS_NEAR, 0, f->values.dim * 2, reach}, f->paces};
            dots_weigh_step(f, dots_named(f, step, row, careful, named), step, row, careful ? 1 : b->rows, &ahead);
        }
    unit_flush(false);
    dots_update(a);
}

static RAPT_KERNEL void block_dots_few(const struct rapt_block *b) {
    struct dots_few f = {.a.t = {.b = b, .fresh = b->fresh}};
    const struct rapt_attention_desc *desc = &b->task->attention->desc;
    RAPT_ASSUME(b->rows <= DOTS_TILE);
    dots_lay_out(&f.a);
    f.panel = dots_copy(&f.a, (int)(desc->head_dim > desc->value_dim ? desc->head_dim : desc->value_dim)) +
              STEPS_OF_HALF * DOTS_OF_STEP;
    f.paces = b->rows <= DOTS_PACED_ROWS && paces_requests(b->task->attention->exceeds_caches);
    place_find(&f.keys, b, RAPT_KEYS);
    place_find(&f.values, b, RAPT_VALUES);
    unit16_block(&f.a, dots_score_few, dots_weigh_few, 0);
}

#endif
