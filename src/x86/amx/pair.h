/* SPDX-License-Identifier: MIT
 * Order 2 on the matrix unit: both halves of a block together. The exponentials of the first overlap the products of
 * queries and keys of the second, and those of the second overlap the values of the first. Code between products is
 * straight-line, so sizes are constants: branches and address arithmetic would cost the gain. From AMX_LONG on, a half
 * has so many products that their loop can stay rolled. */
#ifndef RAPT_X86_AMX_PAIR_H
#define RAPT_X86_AMX_PAIR_H

#include "x86/amx/block.h"

enum { AMX_LONG = 9 }; /* so many steps of dims, or more */

/* ------------------------------------------------------------ exponentials */

/* A half whose scores become probabilities, which are packed from the start of the scores on. */
struct amx_rows {
    float *y, *lanes;
    const float *offset, *alpha;
    uint16_t *p;
    __m512 l, factor;
    __mmask16 keeps; /* lanes that hold something */
    int left;        /* rows */
};

RAPT_INLINE struct amx_rows amx_rows_of(const struct unit16_softmax_args *h) {
    return (struct amx_rows){.y = h->y,
                             .lanes = h->lanes,
                             .offset = h->offset,
                             .alpha = h->alpha,
                             .p = (uint16_t *)(void *)h->y,
                             .factor = _mm512_set1_ps(h->factor),
                             .keeps = h->fresh ? 0 : 0xffff,
                             .left = AMX_TILE};
}

/* The next steps of a row, [first, end). */
RAPT_INLINE void amx_some_of_row(struct amx_rows *r, int first, int end) {
    const struct unit16_row row = {r->factor, _mm512_set1_ps(*r->offset), _mm512_setzero_ps(), _mm512_setzero_ps()};
    if (first == 0)
        r->l = _mm512_maskz_mul_ps(r->keeps, _mm512_load_ps(r->lanes), _mm512_set1_ps(*r->alpha));
    RAPT_UNROLL for (int step = first; step < end; step++)
        r->l = unit16_step(r->y + step * RAPT_STEP, r->p + step * RAPT_STEP, &row, r->l, 0);
    if (end < STEPS_OF_HALF)
        return;
    _mm512_store_ps(r->lanes, r->l);
    r->y += RAPT_HALF_KEYS;
    r->p += RAPT_HALF_KEYS;
    r->lanes += RAPT_SUM_LANES;
    r->offset++;
    r->alpha++;
    r->left--;
}

/* Rows per step of products, so that 4 groups of `size` steps, or `size` groups of 4, take all 32 or more. */
RAPT_INLINE int amx_rate(int size) { return size >= 8 ? 1 : size >= 4 ? 2 : size >= 2 ? 4 : 8; }

/* A turn's exponentials. */
RAPT_INLINE void amx_turn_of_rows(struct amx_rows *r, int turn, int size) {
    const int rate = amx_rate(size), first = turn * rate % STEPS_OF_HALF;
    const bool spares = rate * size * STEPS_OF_HALF > AMX_TILE;
    RAPT_UNROLL for (int done = 0; done < rate; done += STEPS_OF_HALF)
        if (!spares || r->left > 0)
            amx_some_of_row(r, first, first + (rate < STEPS_OF_HALF ? rate : STEPS_OF_HALF));
}

/* ------------------------------------------------------------ queries times keys */

struct amx_scoring_beside {
    struct amx_rows *rows;
    const float *y;
    float *largest;
    const struct amx_ahead *ahead; /* or NULL */
    int size;                      /* of heads, for the rate of exponentials; 0 = there are none */
    int lines, share;              /* of each row ahead; rows whose maxima a turn takes */
};

static inline __attribute__((always_inline)) void beside_scoring(void *context, int group, int step, int turn) {
    struct amx_scoring_beside *c = context;
    if (c->size && group < STEPS_OF_HALF)
        amx_turn_of_rows(c->rows, turn, c->size);
    if (c->ahead && group < STEPS_OF_HALF)
        amx_fetch_ahead(c->ahead, group, AHEAD_ROWS / STEPS_OF_HALF, AMX_TURNS * step + turn, c->lines);
    if (group == 0)
        return;
    const int first = group < STEPS_OF_HALF ? (AMX_TURNS * step + turn) * c->share : 0;
    const int end = group < STEPS_OF_HALF && first + c->share < AMX_TILE ? first + c->share : AMX_TILE;
    RAPT_UNROLL for (int row = first; row < end; row++) {
        const float *y = c->y + row * RAPT_HALF_KEYS + (group - 1) * RAPT_STEP;
        amx_raise(c->largest + row * 16, y);
    }
}

/* size: head_dim / 32, rounded up, at most AMX_LONG. both: the exponentials of `before` are interleaved. e: rows to
 * prefetch, or NULL, as from AMX_LONG steps on. */
RAPT_INLINE void amx_score_pair(const struct unit16_half *a, const struct unit16_half *before, struct rapt_errands *e,
                                int size, bool both) {
    const struct rapt_block *b = a->t.b;
    const struct rapt_packed keys = rapt_source_packed(b->source, RAPT_KEYS, b->base + a->t.first);
    const int steps = size < AMX_LONG ? size : unit16_steps((int)b->task->plan->desc.head_dim);
    struct amx_product p = amx_scoring(a, keys.base, steps);
    struct amx_rows rows = amx_rows_of(&before->softmax);
    struct amx_ahead ahead;
    struct amx_scoring_beside c = {.rows = &rows,
                                   .y = a->softmax.y,
                                   .largest = a->softmax.largest,
                                   .ahead = e ? &ahead : NULL,
                                   .lines = size,
                                   .size = both ? size : 0,
                                   .share = (AMX_TILE / AMX_TURNS + size - 1) / size};
    for (int row = 0; row < AMX_TILE; row++)
        _mm512_store_ps(c.largest + row * 16, _mm512_set1_ps(-RAPT_INFINITY));
    p.groups = STEPS_OF_HALF;
    p.has_below = true;
    if (e)
        amx_look_ahead(&ahead, e, size, b->panel);
    if (size < AMX_LONG)
        amx_multiply_unrolled(&p, size, beside_scoring, &c, AMX_NUMBERS);
    else
        amx_multiply(&p, steps, beside_scoring, &c, AMX_NUMBERS);
}

/* ------------------------------------------------------------ probabilities times values */

struct amx_weighing_beside {
    struct amx_rows *rows;
    const float *g, *alpha;
    float *o;
    int64_t o_stride;
    __mmask16 keeps; /* o holds something */
    bool is_odd;     /* the last group has 16 dims */
    const struct amx_ahead *ahead; /* or NULL */
    int lines, groups, size;       /* lines, size: as above */
};

static inline __attribute__((always_inline)) void beside_weighing(void *context, int group, int step, int turn) {
    enum { SHARE = AMX_TILE / (AMX_TURNS * STEPS_OF_HALF) };
    struct amx_weighing_beside *c = context;
    if (c->size && group < c->groups)
        amx_turn_of_rows(c->rows, turn, c->size);
    if (c->ahead && group < c->groups)
        amx_fetch_ahead(c->ahead, group, AHEAD_ROWS / c->lines, AMX_TURNS * step + turn, c->lines);
    if (group == 0)
        return;
    const int first = group < c->groups ? (AMX_TURNS * step + turn) * SHARE : 0;
    const int end = group < c->groups ? first + SHARE : AMX_TILE;
    float *o = c->o + (group - 1) * AMX_COLUMNS + first * c->o_stride;
    RAPT_UNROLL for (int row = first; row < end; row++, o += c->o_stride)
        amx_add_row(o, c->g + row * AMX_COLUMNS, c->alpha[row], c->keeps,
                    group == c->groups && c->is_odd ? 16 : AMX_COLUMNS);
}

/* size: value_dim / 32, rounded up, at most AMX_LONG. both: those of `after`. ASSUME probabilities are packed. */
RAPT_INLINE void amx_weigh_pair(const struct unit16_half *a, const struct unit16_half *after, struct rapt_errands *e,
                                int size, bool both) {
    const struct rapt_block *b = a->t.b;
    const struct rapt_packed values = rapt_source_packed(b->source, RAPT_VALUES, b->base + a->t.first);
    struct amx_product p = amx_weighing(a, values.base);
    const int groups = size < AMX_LONG ? size : p.groups;
    struct amx_rows rows = amx_rows_of(&after->softmax);
    struct amx_ahead ahead;
    struct amx_weighing_beside c = {.rows = &rows,
                                    .g = a->g,
                                    .alpha = a->softmax.alpha,
                                    .o = b->state.o,
                                    .o_stride = b->state.o_stride,
                                    .is_odd = p.is_odd,
                                    .keeps = a->softmax.fresh ? 0 : 0xffff,
                                    .ahead = e ? &ahead : NULL,
                                    .lines = size,
                                    .groups = groups,
                                    .size = both ? size : 0};
    p.a = (const char *)a->softmax.y;
    p.a_stride = RAPT_HALF_KEYS * sizeof(uint16_t);
    p.a_below = TILE_HEIGHT * p.a_stride;
    p.groups = groups;
    p.has_below = true;
    if (e)
        amx_look_ahead(&ahead, e, size, b->panel);
    amx_multiply_unrolled(&p, STEPS_OF_HALF, beside_weighing, &c, AMX_NUMBERS);
}

/* ------------------------------------------------------------ for each size of heads */

typedef void amx_of_size(const struct unit16_half *a, const struct unit16_half *other, struct rapt_errands *e);

struct amx_size {
    amx_of_size *score, *score_beside, *weigh, *weigh_beside;
};

#define AMX_STAGE(name, stage, size, both, fetches)                                                                \
    static RAPT_KERNEL void name##_##size(const struct unit16_half *a, const struct unit16_half *other,            \
                                          struct rapt_errands *e) {                                                \
        RAPT_ASSUME(e || !(fetches));                                                                              \
        stage(a, other, (fetches) ? e : NULL, size, both);                                                         \
    }
#define AMX_OF_SIZE(name, size, fetches)                                                                           \
    AMX_STAGE(name##_score, amx_score_pair, size, false, fetches)                                                  \
    AMX_STAGE(name##_score_beside, amx_score_pair, size, true, fetches)                                            \
    AMX_STAGE(name##_weigh, amx_weigh_pair, size, false, fetches)                                                  \
    AMX_STAGE(name##_weigh_beside, amx_weigh_pair, size, true, fetches)                                            \
    static const struct amx_size name##_##size = {name##_score_##size, name##_score_beside_##size,                 \
                                                  name##_weigh_##size, name##_weigh_beside_##size};
AMX_OF_SIZE(amx, 1, false)
AMX_OF_SIZE(amx, 2, false)
AMX_OF_SIZE(amx, 3, false)
AMX_OF_SIZE(amx, 4, false)
AMX_OF_SIZE(amx, 5, false)
AMX_OF_SIZE(amx, 6, false)
AMX_OF_SIZE(amx, 7, false)
AMX_OF_SIZE(amx, 8, false)
AMX_OF_SIZE(amx, 9, false)
AMX_OF_SIZE(amx_fetching, 1, true)
AMX_OF_SIZE(amx_fetching, 2, true)
AMX_OF_SIZE(amx_fetching, 3, true)
AMX_OF_SIZE(amx_fetching, 4, true)
AMX_OF_SIZE(amx_fetching, 5, true)
AMX_OF_SIZE(amx_fetching, 6, true)
AMX_OF_SIZE(amx_fetching, 7, true)
AMX_OF_SIZE(amx_fetching, 8, true)

static const struct amx_size *amx_size_of(int64_t dim, const struct rapt_errands *e) {
    static const struct amx_size *const sizes[2][AMX_LONG] = {
        {&amx_1, &amx_2, &amx_3, &amx_4, &amx_5, &amx_6, &amx_7, &amx_8, &amx_9},
        {&amx_fetching_1, &amx_fetching_2, &amx_fetching_3, &amx_fetching_4, &amx_fetching_5, &amx_fetching_6,
         &amx_fetching_7, &amx_fetching_8, &amx_9}};
    const int size = unit16_steps((int)dim);
    return sizes[e != NULL][(size < AMX_LONG ? size : AMX_LONG) - 1];
}

/* ------------------------------------------------------------ the pair */

static bool amx_is_finite(const struct unit16_half *a) {
    const struct rapt_block *b = a->t.b;
    return rapt_source_packed(b->source, RAPT_VALUES, b->base + a->t.first).found & RAPT_FOUND_FINITE;
}

/* Whether both halves are whole, finite and without dropout. */
static bool amx_is_pair(const struct unit16_half a[2]) {
    const struct rapt_block *b = a->t.b;
    return a[0].steps == STEPS_OF_HALF && a[1].steps == STEPS_OF_HALF && b->rows == AMX_TILE &&
           !(b->mask->parts & RAPT_PART_KEEP) && amx_is_finite(&a[0]) && amx_is_finite(&a[1]);
}

/* Halves with rows of large maxima are not paired. */
static void amx_pair(struct unit16_half a[2]) {
    const struct rapt_block *b = a->t.b;
    const rapt_attention_desc *desc = &b->task->plan->desc;
    struct rapt_errands *e = amx_beside_keys(b);
    const struct amx_size *of_size = amx_size_of(desc->head_dim, e);
    of_size->score(&a[0], &a[1], e);
    unit16_to_maxima(&a[0]);
    if (a[0].softmax.large_rows) {
        amx_rest(&a[0]);
        amx_alone(&a[1]);
        return;
    }
    of_size->score_beside(&a[1], &a[0], e);
    unit16_to_maxima(&a[1]);
    e = amx_beside_values(b);
    of_size = amx_size_of(desc->value_dim, e);
    if (a[1].softmax.large_rows) {
        of_size->weigh(&a[0], &a[1], e);
        amx_rest(&a[1]);
        return;
    }
    of_size->weigh_beside(&a[0], &a[1], e);
    of_size->weigh(&a[1], &a[0], e);
}

/* ------------------------------------------------------------ all of it */

static RAPT_KERNEL void block_amx(const struct rapt_block *b) {
    struct unit16_half a[2];
    int count = 0;
    RAPT_ASSUME(b->rows <= AMX_TILE && !b->mask->selected && b->key_begin < b->key_end);
    for (int first = 0; first < RAPT_BLOCK_KEYS; first += RAPT_HALF_KEYS) {
        a[count] = (struct unit16_half){.t = {.b = b, .fresh = b->fresh && count == 0}};
        count += unit16_select_half(&a[count], first);
    }
    if (count == 2 && amx_is_pair(a)) {
        amx_lay_out(&a[0], 0);
        amx_lay_out(&a[1], 1);
        amx_pair(a);
        return;
    }
    for (int i = 0; i < count; i++) {
        amx_lay_out(&a[i], 0);
        amx_alone(&a[i]);
    }
}

#endif
