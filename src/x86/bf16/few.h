/* SPDX-License-Identifier: MIT
 * Order 2 of few rows by VDPBF16PS: keys and values are read in place, and packed into L1, 32 at a time. */
#ifndef RAPT_X86_BF16_FEW_H
#define RAPT_X86_BF16_FEW_H

#include "generic/unit_place_rows.h"
#include "x86/bf16/block.h"

struct dots_few {
    struct unit16_half a;
    struct place_side keys, values;
    uint32_t *panel; /* of 32 keys, or of 32 values */
    bool paces;      /* requests */
};

enum {
    DOTS_PACED_ROWS = 2,  /* up to so many run ahead of memory; */
    DOTS_PRODUCTS = 4,    /* multiplications between their requests, as measured */
    DOTS_PANEL_STEPS = 4  /* of 32 dims of keys: all of those of latent attention would fill L1 */
};

struct dots_ahead {
    struct unit_ahead lines;
    bool paces; /* a constant */
};

RAPT_INLINE void dots_fetch(struct dots_ahead *ahead) {
    unit_fetch(&ahead->lines);
    if (ahead->paces)
        ahead->lines.byte = (int)paced((uint32_t)ahead->lines.byte, DOTS_PRODUCTS);
}

/* Steps in the panel of keys that begins at `step`. */
RAPT_INLINE int dots_panel_steps(int step, int steps) {
    return steps - step < DOTS_PANEL_STEPS ? steps - step : DOTS_PANEL_STEPS;
}

/* As dots_lay_out has it; then the panel. */
static size_t scores_bytes_dots_few(int rows, int dim) {
    const int steps = dots_panel_steps(0, unit16_steps(dim));
    return scores_bytes_dots(rows, dim) + (size_t)steps * DOTS_OF_STEP * sizeof(uint32_t);
}

/* Keys, some times 32, or the values of a step from dim d on. */
struct dots_place {
    const char *const *row; /* [count] */
    int count, dim, d;
    struct dots_ahead *ahead;
};

/* ------------------------------------------------------------ keys */

/* Words of 32 dims of 16 keys, transposed. requests: per two keys. */
RAPT_INLINE void dots_load_keys(__m512i words[DOTS_WORDS], const char *const *rows, int dim, int step,
                                struct dots_ahead *ahead, int requests) {
    const __mmask32 there = unit16_first(dim - step * RAPT_STEP);
    const int64_t at = (int64_t)step * RAPT_STEP * 2;
    __m512i twos[DOTS_WORDS];
    RAPT_UNROLL for (int i = 0; i < 16; i += 2) {
        const __m512i a = _mm512_maskz_loadu_epi16(there, rows[i] + at);
        const __m512i b = _mm512_maskz_loadu_epi16(there, rows[i + 1] + at);
        RAPT_UNROLL for (int n = 0; n < requests; n++)
            dots_fetch(ahead);
        twos[i] = dots_words_of_two(a, b, 0);
        twos[i + 1] = dots_words_of_two(a, b, 1);
    }
    unit16_transpose_twos(words, twos);
}

/* Rows of queries times keys in place, a vector of keys at a time. */
RAPT_INLINE void dots_score_rows(const struct dots_product *p, const struct dots_place *keys, struct dots_ahead *ahead,
                                 int rows) {
    for (int key = 0; key < keys->count; key += 16) {
        __m512 sum[DOTS_ROWS];
        RAPT_UNROLL for (int r = 0; r < rows; r++)
            sum[r] = _mm512_set1_ps(-0.0f); /* adding it keeps the other term, even -0 */
        for (int step = 0; step < p->steps; step++) {
            const uint32_t *a = p->a + step * DOTS_WORDS;
            __m512i words[DOTS_WORDS];
            __m512 even[DOTS_ROWS], odd[DOTS_ROWS];
            dots_load_keys(words, keys->row + key, keys->dim, step, ahead, 2);
            dots_clear(even, odd, rows);
            RAPT_UNROLL for (int word = 0; word < DOTS_WORDS / 2; word++)
                RAPT_UNROLL for (int r = 0; r < rows; r++) {
                    const uint32_t *pairs = a + r * p->a_stride + word;
                    even[r] = dots_add(even[r], pairs[0], words[word]);
                    odd[r] = dots_add(odd[r], pairs[DOTS_WORDS / 2], words[word + DOTS_WORDS / 2]);
                }
            RAPT_UNROLL for (int r = 0; r < rows; r++)
                sum[r] = _mm512_add_ps(sum[r], _mm512_add_ps(even[r], odd[r]));
        }
        RAPT_UNROLL for (int r = 0; r < rows; r++)
            _mm512_store_ps(p->c + r * p->c_stride + key, sum[r]);
    }
}

/* Packs some steps of dims of 32 keys into a panel. Products with it make the other half of the requests
 * (dots_multiply_ahead). */
static RAPT_KERNEL void dots_lay_keys(uint32_t *panel, const struct dots_place *keys, int key, int first, int count) {
    struct dots_ahead ahead = *keys->ahead;
    ahead.paces = false;
    for (int step = first; step < first + count; step++, panel += DOTS_OF_STEP)
        RAPT_UNROLL for (int side = 0; side < DOTS_COLUMNS; side += 16) {
            __m512i words[DOTS_WORDS];
            dots_load_keys(words, keys->row + key + side, keys->dim, step, &ahead, 1);
            RAPT_UNROLL for (int i = 0; i < DOTS_WORDS; i++)
                _mm512_store_si512(panel + i * DOTS_COLUMNS + side, words[i]);
        }
    *keys->ahead = ahead;
}

/* ------------------------------------------------------------ values */

/* Words of 32 values from dim d on: of one even and one odd pair of keys, 32 dims each. requests: four, or two. */
RAPT_INLINE void dots_pairs(__m512i words[4], const struct dots_place *values, int word, __mmask32 there,
                            struct dots_ahead *ahead, int requests) {
    RAPT_UNROLL for (int odd = 0; odd < 2; odd++) {
        const char *const *row = values->row + dots_first(word) + odd;
        const __m512i a = _mm512_maskz_loadu_epi16(there, row[2] + (int64_t)values->d * 2);
        const __m512i b = _mm512_maskz_loadu_epi16(there, row[0] + (int64_t)values->d * 2);
        RAPT_UNROLL for (int i = 0; i < requests / 2; i++)
            dots_fetch(ahead);
        words[2 * odd] = unit16_interleave(a, b, 0);
        words[2 * odd + 1] = unit16_interleave(a, b, 1);
    }
}

/* A step of rows of p times 32 dims of values in place. */
RAPT_INLINE void dots_weigh_rows(const struct dots_product *p, const struct dots_place *values,
                                 struct dots_ahead *ahead, int rows) {
    __m512 even[2 * DOTS_ROWS], odd[2 * DOTS_ROWS];
    const __mmask32 there = unit16_first(values->dim - values->d);
    dots_clear(even, odd, 2 * rows);
    for (int word = 0; word < DOTS_WORDS / 2; word++) {
        __m512i b[4];
        dots_pairs(b, values, word, there, ahead, 4);
        dots_word(even, odd, p->a + word, p->a_stride, b, rows);
    }
    dots_store(even, odd, p->c, p->c_stride, p->adds, rows);
}

/* 32 dims of 32 values to a panel. */
static RAPT_KERNEL void dots_lay_values(uint32_t *panel, const struct dots_place *place) {
    const struct dots_place values = *place;
    const __mmask32 there = unit16_first(values.dim - values.d);
    struct dots_ahead ahead = *values.ahead;
    ahead.paces = false;
    RAPT_UNROLL for (int word = 0; word < DOTS_WORDS / 2; word++) {
        __m512i b[4];
        dots_pairs(b, &values, word, there, &ahead, 2);
        RAPT_UNROLL for (int i = 0; i < 4; i++)
            _mm512_store_si512(panel + (word + i / 2 * (DOTS_WORDS / 2)) * DOTS_COLUMNS + i % 2 * 16, b[i]);
    }
    *values.ahead = ahead;
}

/* ------------------------------------------------------------ panels */

static RAPT_KERNEL void dots_multiply_4_ahead(const struct dots_product *p, struct unit_ahead *ahead) {
    struct unit_ahead own = *ahead;
    dots_multiply_rows(p, 4, &own);
    *ahead = own;
}
static RAPT_KERNEL void dots_multiply_6_ahead(const struct dots_product *p, struct unit_ahead *ahead) {
    struct unit_ahead own = *ahead;
    dots_multiply_rows(p, DOTS_ROWS, &own);
    *ahead = own;
}

/* More than DOTS_ROWS rows: the first two groups prefetch what packing left, a line per word. */
static void dots_multiply_ahead(struct dots_product *p, int rows, struct dots_ahead *ahead) {
    for (int group = 0; group < 2; group++) {
        const int height = dots_height(rows);
        (height == 4 ? dots_multiply_4_ahead : dots_multiply_6_ahead)(p, &ahead->lines);
        dots_advance(p, height);
        rows -= height;
    }
    dots_multiply(p, rows);
}

/* ------------------------------------------------------------ rows of a tile */

typedef void dots_kernel(const struct dots_product *p, const struct dots_place *place);

#define DOTS_KERNEL(slot, name, rows, is_paced)                                                                  \
    static RAPT_KERNEL void dots_##slot##_##name(const struct dots_product *p, const struct dots_place *place) { \
        const struct dots_place own = *place;                                                                    \
        struct dots_ahead ahead = *own.ahead;                                                                    \
        ahead.paces = is_paced;                                                                                  \
        dots_##slot##_rows(p, &own, &ahead, rows);                                                               \
        *own.ahead = ahead;                                                                                      \
    }
#define DOTS_KERNELS(slot)                                                                                       \
    DOTS_KERNEL(slot, 1, 1, false)                                                                               \
    DOTS_KERNEL(slot, 2, 2, false)                                                                               \
    DOTS_KERNEL(slot, 4, 4, false)                                                                               \
    DOTS_KERNEL(slot, 6, DOTS_ROWS, false)                                                                       \
    DOTS_KERNEL(slot, 1_paced, 1, true)                                                                          \
    DOTS_KERNEL(slot, 2_paced, DOTS_PACED_ROWS, true)
DOTS_KERNELS(score)
DOTS_KERNELS(weigh)
#undef DOTS_KERNELS
#undef DOTS_KERNEL

enum dots_slot { DOTS_SCORE, DOTS_WEIGH };

/* `rows` <= DOTS_ROWS rows, perhaps rounded up. */
static void dots_some_rows(enum dots_slot slot, const struct dots_product *p, const struct dots_place *place,
                           int rows) {
    static dots_kernel *const of_height[2][4] = {{dots_score_1, dots_score_2, dots_score_4, dots_score_6},
                                                 {dots_weigh_1, dots_weigh_2, dots_weigh_4, dots_weigh_6}};
    static dots_kernel *const paced[2][DOTS_PACED_ROWS] = {{dots_score_1_paced, dots_score_2_paced},
                                                           {dots_weigh_1_paced, dots_weigh_2_paced}};
    if (place->ahead->paces)
        paced[slot][rows - 1](p, place);
    else
        of_height[slot][rows > 4 ? 3 : rows > 2 ? 2 : rows - 1](p, place);
}

static void dots_score_few(const struct unit16_half *a) {
    const struct dots_few *f = (const struct dots_few *)a;
    const int steps = unit16_steps(f->keys.dim), first = a->first_step * DOTS_COLUMNS, rows = a->t.b->rows;
    const char *const *row = f->keys.row + a->t.first + first;
    struct dots_ahead ahead = {{row + DOTS_NEAR, 0, f->keys.dim * 2, reach_of(0, DOTS_FAR - DOTS_NEAR)}, f->paces};
    const struct dots_place keys = {row, a->steps * DOTS_COLUMNS, f->keys.dim, 0, &ahead};
    struct dots_product p = {.a = dots_queries(a->t.b->panel),
                             .a_stride = steps * DOTS_WORDS,
                             .b = f->panel,
                             .c = a->t.y + first,
                             .c_stride = RAPT_HALF_KEYS,
                             .steps = steps};
    unit_flush(true);
    if (rows <= DOTS_ROWS)
        dots_some_rows(DOTS_SCORE, &p, &keys, rows);
    for (int key = 0; rows > DOTS_ROWS && key < keys.count; key += DOTS_COLUMNS)
        for (int step = 0; step < steps; step += DOTS_PANEL_STEPS) {
            p.a = dots_queries(a->t.b->panel) + step * DOTS_WORDS;
            p.c = a->t.y + first + key;
            p.steps = dots_panel_steps(step, steps);
            p.adds = step > 0;
            dots_lay_keys(f->panel, &keys, key, step, p.steps);
            dots_multiply_ahead(&p, rows, &ahead);
        }
    unit_flush(false);
    dots_maxima(a);
}

/* All rows, some at a time; only the first ones prefetch. Advances p, like dots_multiply. */
static void dots_weigh_in_place(struct dots_product *p, const struct dots_place *values, int rows) {
    struct dots_ahead idle = {place_idle(), false};
    const struct dots_place again = {values->row, values->count, values->dim, values->d, &idle};
    for (const struct dots_place *place = values; rows > 0; place = &again) {
        const int height = dots_height(rows);
        dots_some_rows(DOTS_WEIGH, p, place, rows < height ? rows : height);
        dots_advance(p, height);
        rows -= height;
    }
}

/* p of a row and those after it times 32 values, to sums or onto them. */
static void dots_weigh_step(const struct dots_few *f, const char *const *rows, int step, int row, int count,
                            struct dots_ahead *ahead) {
    const int groups = unit16_steps(f->values.dim);
    const int64_t stride = (int64_t)groups * DOTS_COLUMNS;
    const float *words = f->a.t.y + row * RAPT_HALF_KEYS + step * DOTS_WORDS;
    for (int group = 0; group < groups; group++) {
        const struct dots_place values = {rows, RAPT_STEP, f->values.dim, group * DOTS_COLUMNS, ahead};
        struct dots_product p = {.a = (const uint32_t *)(const void *)words,
                                 .a_stride = RAPT_HALF_KEYS,
                                 .b = f->panel,
                                 .c = f->a.g + row * stride + group * DOTS_COLUMNS,
                                 .c_stride = stride,
                                 .steps = 1,
                                 .adds = step > f->a.first_step};
        if (count <= DOTS_ROWS || rapt_cpu_splits_vectors()) { /* storing a panel takes longer than making it */
            dots_weigh_in_place(&p, &values, count);
        } else {
            dots_lay_values(f->panel, &values);
            dots_multiply_ahead(&p, count, ahead);
        }
    }
}

/* Values of a step that take part: those that the block names and, if careful, that a row attends to. Others count as
 * +0, whatever they hold. */
static const char *const *dots_named(const struct dots_few *f, int step, int row, bool careful, const char **named) {
    const struct unit_half *t = &f->a.t;
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

static void dots_weigh_few(const struct unit16_half *a) {
    const struct dots_few *f = (const struct dots_few *)a;
    const struct rapt_block *b = a->t.b;
    const bool careful = b->careful && b->seen == RAPT_SEES_SOME;
    dots_probabilities(a);
    unit_flush(true);
    for (int step = a->first_step; step < a->first_step + a->steps; step++)
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
    struct dots_few f; /* mostly pointers to rows, which place_find fills */
    f.a = (struct unit16_half){.t = {.b = b, .fresh = b->fresh}};
    const struct rapt_attention_desc *desc = &b->task->plan->desc;
    RAPT_ASSUME(b->rows <= DOTS_TILE);
    dots_lay_out(&f.a);
    f.panel = dots_copy(&f.a, (int)(desc->head_dim > desc->value_dim ? desc->head_dim : desc->value_dim)) +
              STEPS_OF_HALF * DOTS_OF_STEP;
    f.paces = b->rows <= DOTS_PACED_ROWS && paces_requests(b->task->plan->exceeds_caches);
    place_find(&f.keys, b, RAPT_KEYS);
    place_find(&f.values, b, RAPT_VALUES);
    unit16_block(&f.a, dots_score_few, dots_weigh_few);
}

#endif
