/* SPDX-License-Identifier: MIT
 * Products of 32 rows on the matrix unit, 32 columns at a time: two tiles by two. Measured rules (16 cycles are one
 * product of tiles):
 * - a register is reloaded right after its last use, one step ahead;
 * - a tile load waits for an earlier tile store that waits for its sum, and stores take many front-end slots, so
 *   those of a group are spread between the products and loads of the next one: 16.2 cycles instead of 19.2;
 * - vector work is interleaved with products, too. */
#ifndef RAPT_X86_AMX_PRODUCT_H
#define RAPT_X86_AMX_PRODUCT_H

#include "x86/amx/pack.h"

/* c = a * b, in bytes. */
struct amx_product {
    const char *a;                             /* rows */
    int64_t a_stride, a_step, a_below;         /* from row to row, to the next 32 terms, to the rows from 16 on */
    const char *b;                             /* packed */
    int64_t b_step, b_beside, b_group;         /* to the next 32 terms, columns from 16 on, next group */
    char *c;
    int64_t c_stride, c_group;
    int groups;                                /* of 32 columns */
    bool has_below;                            /* more than 16 rows */
    bool is_odd;                               /* the last group has 16 columns */
};

/* Work beside the products of a group: AMX_TURNS turns per four products of tiles, and once more after the last group,
 * with group = groups. Of the group before, sums of rows 0 ... 15 are stored first, all by turn 2. */
enum { AMX_TURNS = 4 };
typedef void amx_beside(void *context, int group, int step, int turn);

/* What is multiplied: numbers of order 2, or the parts of order 3, whose tiles lie AMX_PART bytes apart, in the order
 * of unit_split_sums. */
enum amx_numbers { AMX_NUMBERS, AMX_PARTS };
enum { AMX_PART = 2 * TILE_BYTES };

RAPT_INLINE int amx_sums(int numbers) { return numbers == AMX_PARTS ? UNIT_SPLIT_SUMS : 1; }

/* The tile of one of these sums. side: 0 = a, 1 = b. */
RAPT_INLINE const char *amx_part(const char *at, int numbers, int sum, int side) {
    return numbers == AMX_PARTS ? at + unit_split_sums[sum][side] * AMX_PART : at;
}

/* Stores and clears the sum of the group before. */
#define AMX_NEXT(number, at)                                                                                       \
    if (step == 0 && i == 0 && to) {                                                                               \
        TILE_STORE(number, to + (at), p->c_stride);                                                                \
        TILE_ZERO(number);                                                                                         \
    }

/* The tiles to load next, and where the sums of the group before go; NULL = there was none. */
struct amx_cursor {
    const char *a, *b;
    int64_t b_beside;
    char *to;
};

/* To the next step, or the next group's first. */
RAPT_INLINE void amx_advance(const struct amx_product *p, struct amx_cursor *at, int group, bool last) {
    at->a = last ? p->a : at->a + p->a_step;
    at->b = !last ? at->b + p->b_step : group + 1 < p->groups ? p->b + (group + 1) * p->b_group : p->b;
    if (last && p->is_odd && group + 2 == p->groups)
        at->b_beside = 0;
}

/* A step of a group: four products for each sum; registers are reloaded after their last use. Registers: 0 1 / 2 3
 * sums, 4 / 5 rows, 6 7 columns. */
RAPT_INLINE void amx_multiply_step(const struct amx_product *p, struct amx_cursor *at, int group, int step, int steps,
                                   amx_beside *beside, void *context, int numbers) {
    const int64_t c_below = TILE_HEIGHT * p->c_stride;
    const int sums = amx_sums(numbers);
    char *const to = at->to;
    RAPT_UNROLL for (int i = 0; i < sums; i++) {
        const int next = i + 1 < sums ? i + 1 : 0;
        if (next == 0)
            amx_advance(p, at, group, step == steps - 1);
        const char *a = amx_part(at->a, numbers, next, 0), *b = amx_part(at->b, numbers, next, 1);
        const bool turns = next == 0 || unit_split_sums[next][1] != unit_split_sums[i][1];
        AMX_NEXT(0, 0)
        TILE_MULTIPLY(0, 4, 6);
        AMX_NEXT(1, TILE_ROW_BYTES)
        TILE_MULTIPLY(1, 4, 7);
        beside(context, group, step, AMX_TURNS * i);
        TILE_LOAD(4, a, p->a_stride);
        if (p->has_below) {
            AMX_NEXT(2, c_below)
            TILE_MULTIPLY(2, 5, 6);
        }
        beside(context, group, step, AMX_TURNS * i + 1);
        if (turns)
            TILE_LOAD_STREAMED(6, b, TILE_ROW_BYTES);
        if (p->has_below) {
            AMX_NEXT(3, c_below + TILE_ROW_BYTES)
            TILE_MULTIPLY(3, 5, 7);
        }
        beside(context, group, step, AMX_TURNS * i + 2);
        if (turns)
            TILE_LOAD_STREAMED(7, b + at->b_beside, TILE_ROW_BYTES);
        TILE_LOAD(5, a + p->a_below, p->a_stride);
        beside(context, group, step, AMX_TURNS * i + 3);
    }
}

RAPT_INLINE struct amx_cursor amx_open(const struct amx_product *p, int numbers) {
    const struct amx_cursor at = {p->a, p->b, p->is_odd && p->groups == 1 ? 0 : p->b_beside, NULL};
    const char *a = amx_part(at.a, numbers, 0, 0), *b = amx_part(at.b, numbers, 0, 1);
    TILE_LOAD(4, a, p->a_stride);
    TILE_LOAD_STREAMED(6, b, TILE_ROW_BYTES);
    TILE_LOAD_STREAMED(7, b + at.b_beside, TILE_ROW_BYTES);
    TILE_LOAD(5, a + p->a_below, p->a_stride);
    TILE_ZERO(0);
    TILE_ZERO(1);
    TILE_ZERO(2);
    TILE_ZERO(3);
    return at;
}

RAPT_INLINE void amx_close(const struct amx_product *p, char *to) {
    const int64_t c_below = TILE_HEIGHT * p->c_stride;
    TILE_STORE(0, to, p->c_stride);
    TILE_STORE(1, to + TILE_ROW_BYTES, p->c_stride);
    if (p->has_below) {
        TILE_STORE(2, to + c_below, p->c_stride);
        TILE_STORE(3, to + c_below + TILE_ROW_BYTES, p->c_stride);
    }
}

/* steps: of 32 terms. */
#define AMX_MULTIPLY_BY(name, how)                                                                                 \
    RAPT_INLINE void name(const struct amx_product *p, int steps, amx_beside *beside, void *context, int numbers) { \
        struct amx_cursor at = amx_open(p, numbers);                                                               \
        for (int group = 0; group < p->groups; group++) {                                                          \
            how for (int step = 0; step < steps; step++)                                                           \
                amx_multiply_step(p, &at, group, step, steps, beside, context, numbers);                           \
            at.to = p->c + group * p->c_group;                                                                     \
        }                                                                                                          \
        amx_close(p, at.to);                                                                                       \
        beside(context, p->groups, 0, 0);                                                                          \
    }
AMX_MULTIPLY_BY(amx_multiply, )
AMX_MULTIPLY_BY(amx_multiply_unrolled, RAPT_UNROLL) /* ASSUME steps is a constant */

#endif
