/* SPDX-License-Identifier: MIT
 * Order 3 on the matrix unit: both halves of a block together, as in pair.h. A step has six times as many products as
 * there, so it takes the exponentials of few rows, counted at run time. */
#ifndef RAPT_X86_AMX_SPLIT_PAIR_H
#define RAPT_X86_AMX_SPLIT_PAIR_H

#include "x86/amx/split.h"

/* ------------------------------------------------------------ exponentials */

/* Rows of a half whose scores become probabilities. */
struct split_lines {
    const float *y, *low, *magic, *alpha;
    float *lanes;
    char *p;
    __m512 l, factor;
    __mmask16 keeps; /* lanes that hold something */
    int left;        /* rows */
};

RAPT_INLINE struct split_lines split_lines_of(const struct split_half *t) {
    return (struct split_lines){.y = t->a.softmax.y,
                                .low = t->low,
                                .magic = t->magic,
                                .alpha = t->a.softmax.alpha,
                                .lanes = t->a.softmax.lanes,
                                .p = t->p->of[0][0],
                                .factor = _mm512_set1_ps(t->a.softmax.factor),
                                .keeps = t->a.softmax.fresh ? 0 : 0xffff,
                                .left = AMX_TILE};
}

/* A step of the next row. */
RAPT_INLINE void split_some_of_line(struct split_lines *r, int step) {
    const struct exp2_row row = {v_splat(0), v_splat(*r->low), v_splat(*r->magic)};
    if (step == 0)
        r->l = _mm512_maskz_mul_ps(r->keeps, v_load(r->lanes), v_splat(*r->alpha));
    r->l = split_step(r->y + step * RAPT_STEP, r->p + step * SPLIT_STEP, r->factor, &row, r->l, 0);
    if (step + 1 < STEPS_OF_HALF)
        return;
    v_store(r->lanes, r->l);
    r->y += RAPT_HALF_KEYS;
    r->lanes += RAPT_SUM_LANES;
    r->p += TILE_ROW_BYTES;
    r->low++;
    r->magic++;
    r->alpha++;
    r->left--;
}

/* The first of a step's `count` items that is due in a turn or later. */
RAPT_INLINE int split_due(int turn, int count) { return turn * count / SPLIT_TURNS; }

RAPT_INLINE void split_turn_of_lines(struct split_lines *r, int turn, int rate, bool spares) {
    const int count = rate * STEPS_OF_HALF;
    if (!spares || r->left > 0)
        RAPT_UNROLL for (int at = split_due(turn, count); at < split_due(turn + 1, count); at++)
            split_some_of_line(r, at % STEPS_OF_HALF);
}

/* Work beside products: exponentials of `rate` rows per step, 0 = none. spares: there is time to spare. */
struct split_beside {
    struct split_lines *lines;
    int rate;
    bool spares;
};

/* ------------------------------------------------------------ queries times keys */

enum { SPLIT_MAXIMA = 16 }; /* rows in a step: all in two */

struct split_scoring_beside {
    struct split_beside exponentials;
    const float *y;
    float *largest;
};

static inline __attribute__((always_inline)) void beside_split_scores(void *context, int group, int step, int turn) {
    struct split_scoring_beside *c = context;
    if (c->exponentials.rate && group < STEPS_OF_HALF)
        split_turn_of_lines(c->exponentials.lines, turn, c->exponentials.rate, c->exponentials.spares);
    if (group == 0 || (group < STEPS_OF_HALF && step > 1))
        return;
    const int first = group < STEPS_OF_HALF ? split_due(turn, SPLIT_MAXIMA) : 0;
    const int end = group < STEPS_OF_HALF ? split_due(turn + 1, SPLIT_MAXIMA) : AMX_TILE;
    RAPT_UNROLL for (int at = first; at < end; at++) {
        const int row = step * SPLIT_MAXIMA + at;
        const float *y = c->y + row * RAPT_HALF_KEYS + (group - 1) * RAPT_STEP;
        amx_raise(c->largest + row * 16, y);
    }
}

RAPT_INLINE void split_score_pair(const struct split_half *t, const struct split_half *before, int rate, bool spares) {
    struct amx_product p = split_scoring(&t->a);
    struct split_lines lines = split_lines_of(before);
    struct split_scoring_beside c = {.exponentials = {&lines, rate, spares},
                                     .y = t->a.softmax.y,
                                     .largest = t->a.softmax.largest};
    for (int row = 0; row < AMX_TILE; row++)
        _mm512_store_ps(c.largest + row * 16, _mm512_set1_ps(-RAPT_INFINITY));
    p.groups = STEPS_OF_HALF;
    p.has_below = true;
    amx_multiply(&p, unit16_steps((int)t->a.t.b->task->plan->desc.head_dim), beside_split_scores, &c, AMX_PARTS);
}

/* ------------------------------------------------------------ probabilities times values */

struct split_pair_weighing {
    struct split_beside exponentials;
    const float *g, *alpha;
    float *o;
    int64_t o_stride;
    __mmask16 keeps; /* o holds something */
    bool is_odd;     /* the last group has 16 dims */
    int groups;
};

static inline __attribute__((always_inline)) void beside_split_values(void *context, int group, int step, int turn) {
    enum { SHARE = AMX_TILE / STEPS_OF_HALF };
    struct split_pair_weighing *c = context;
    if (c->exponentials.rate && group < c->groups)
        split_turn_of_lines(c->exponentials.lines, turn, c->exponentials.rate, c->exponentials.spares);
    if (group == 0)
        return;
    const int first = group < c->groups ? split_due(turn, SHARE) : 0;
    const int end = group < c->groups ? split_due(turn + 1, SHARE) : AMX_TILE;
    RAPT_UNROLL for (int at = first; at < end; at++) {
        const int row = step * SHARE + at;
        amx_add_row(c->o + (group - 1) * AMX_COLUMNS + row * c->o_stride, c->g + row * AMX_COLUMNS, c->alpha[row],
                    c->keeps, group == c->groups && c->is_odd ? 16 : AMX_COLUMNS);
    }
}

RAPT_INLINE void split_weigh_pair(const struct split_half *t, const struct split_half *after, int rate, bool spares) {
    const struct rapt_block *b = t->a.t.b;
    struct amx_product p = split_weighing(t, split_values(t).base);
    struct split_lines lines = split_lines_of(after);
    struct split_pair_weighing c = {.exponentials = {&lines, rate, spares},
                                    .g = t->a.g,
                                    .alpha = t->a.softmax.alpha,
                                    .o = b->state.o,
                                    .o_stride = b->state.o_stride,
                                    .keeps = t->a.softmax.fresh ? 0 : 0xffff,
                                    .is_odd = (b->task->plan->desc.value_dim + 15) / 16 % 2 != 0,
                                    .groups = p.groups};
    p.has_below = true;
    amx_multiply(&p, STEPS_OF_HALF, beside_split_values, &c, AMX_PARTS);
}

/* ------------------------------------------------------------ for each rate */

typedef void split_of_rate(const struct split_half *t, const struct split_half *other);

static RAPT_KERNEL void split_score_first(const struct split_half *t, const struct split_half *other) {
    split_score_pair(t, other, 0, false);
}

static RAPT_KERNEL void split_weigh_last(const struct split_half *t, const struct split_half *other) {
    split_weigh_pair(t, other, 0, false);
}

#define SPLIT_OF_RATE(name, rate, spares)                                                                          \
    static RAPT_KERNEL void split_score_##name(const struct split_half *t, const struct split_half *other) {       \
        split_score_pair(t, other, rate, spares);                                                                  \
    }                                                                                                              \
    static RAPT_KERNEL void split_weigh_##name(const struct split_half *t, const struct split_half *other) {       \
        split_weigh_pair(t, other, rate, spares);                                                                  \
    }
SPLIT_OF_RATE(4, 4, false) /* size 2 */
SPLIT_OF_RATE(3, 3, true)  /* 3 */
SPLIT_OF_RATE(2, 2, false) /* 4 */
SPLIT_OF_RATE(2s, 2, true) /* 5 to 7 */
SPLIT_OF_RATE(1, 1, true)  /* 8 and more */

static const struct split_rate_kernels {
    split_of_rate *score, *weigh;
} split_by_size[] = {[2] = {split_score_4, split_weigh_4},   [3] = {split_score_3, split_weigh_3},
                     [4] = {split_score_2, split_weigh_2},   [5] = {split_score_2s, split_weigh_2s},
                     [6] = {split_score_2s, split_weigh_2s}, [7] = {split_score_2s, split_weigh_2s},
                     [8] = {split_score_1, split_weigh_1}};

/* dim: of 2 steps or more. */
static struct split_rate_kernels split_kernels_of(int64_t dim) {
    const int size = unit16_steps((int)dim);
    return split_by_size[size < 8 ? size : 8];
}

/* ------------------------------------------------------------ the pair */

/* Whether both halves have all steps, and rows see all, so that every value acts. */
static bool split_is_pair(const struct split_half t[2]) {
    const struct rapt_attention_desc *desc = &t->a.t.b->task->plan->desc;
    return t[0].a.steps == STEPS_OF_HALF && t[1].a.steps == STEPS_OF_HALF && t->a.plain && t[0].sees_all &&
           t[1].sees_all && t->a.softmax.rows == AMX_TILE && unit16_steps((int)desc->head_dim) > 1 &&
           unit16_steps((int)desc->value_dim) > 1;
}

/* Halves with rows of large maxima are not paired. */
static void split_pair(struct split_half t[2]) {
    const struct rapt_attention_desc *desc = &t->a.t.b->task->plan->desc;
    split_score_first(&t[0], &t[1]);
    split_new_maxima(&t[0]);
    if (t[0].a.softmax.large_rows) {
        split_rest(&t[0]);
        split_alone(&t[1]);
        return;
    }
    split_kernels_of(desc->head_dim).score(&t[1], &t[0]);
    split_new_maxima(&t[1]);
    if (t[1].a.softmax.large_rows) {
        split_weigh_last(&t[0], &t[1]);
        split_rest(&t[1]);
        return;
    }
    split_kernels_of(desc->value_dim).weigh(&t[0], &t[1]);
    split_weigh_last(&t[1], &t[0]);
}

/* ------------------------------------------------------------ all of it */

/* Whether scores are products times a factor above 0, and nothing else. */
static bool split_only_scales(const struct rapt_block *b) {
    const float factor = b->task->plan->score_factor;
    return !(b->mask->parts & ~(unsigned)RAPT_PART_SPANS) && factor > 0 && factor - factor == 0;
}

static void split_lay_out(struct split_half *t, int number) {
    const struct rapt_block *b = t->a.t.b;
    struct split_scratch *s = split_scratch_of(b->task);
    t->a.plain = split_only_scales(b);
    t->sees_all = unit16_sees_all(&t->a);
    t->a.t.y = t->a.softmax.y = s->y[number];
    t->a.g = s->g;
    t->a.softmax.largest = s->largest;
    t->a.softmax.lanes = unit_lanes(b->panel, 0);
    t->a.softmax.m = b->state.m;
    t->a.softmax.rows = b->rows;
    t->a.softmax.factor = b->task->plan->score_factor;
    t->a.softmax.alpha = t->a.plain ? s->alpha[number] : b->task->alpha;
    t->p = &s->p[number];
    t->low = s->low[number];
    t->magic = s->magic[number];
}

static RAPT_KERNEL void block_amx_split(const struct rapt_block *b) {
    struct split_half t[2];
    int count = 0;
    RAPT_ASSUME(b->rows <= AMX_TILE && !b->mask->selected && b->key_begin < b->key_end);
    for (int first = 0; first < RAPT_BLOCK_KEYS; first += RAPT_HALF_KEYS) {
        t[count] = (struct split_half){.a = {.t = {.b = b, .fresh = b->fresh && count == 0}}};
        if (unit16_select_half(&t[count].a, first))
            split_lay_out(&t[count], count), count++;
    }
    if (count == 2 && split_is_pair(t)) {
        split_pair(t);
        return;
    }
    for (int i = 0; i < count; i++)
        split_alone(&t[i]);
}

#endif
