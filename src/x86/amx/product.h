/* SPDX-License-Identifier: MIT
 * Products of 32 rows on the matrix unit, 32 columns at a time: two tiles by two. Measured rules (16 cycles are one
 * product of tiles):
 * - a register is loaded again right after its last use, one step ahead;
 * - tile loads wait for a tile store before them that waits for its sum, and stores take many slots of the front end,
 *   so those of a group stand between the products and loads of the next one: 16.2 cycles in place of 19.2;
 * - vector work stands between products, too. */
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
    int groups, steps;                         /* of 32 columns, of 32 terms */
    bool has_below;                            /* more than 16 rows */
    bool is_odd;                               /* the last group has 16 columns */
};

/* What happens beside the products of a group: a share of the rows of the group before it. */
typedef void amx_beside(const void *context, int group, int first_row, int end_row);

/* Stores the sum of the group before, and starts anew. */
#define AMX_TURN(number, to)                                                                                      \
    if (to) {                                                                                                     \
        TILE_STORE(number, to, p->c_stride);                                                                      \
        TILE_ZERO(number);                                                                                        \
    }

#define AMX_MULTIPLY(sum, a, b)                                                                                   \
    do {                                                                                                          \
        if (half)                                                                                                 \
            TILE_MULTIPLY_F16(sum, a, b);                                                                         \
        else                                                                                                      \
            TILE_MULTIPLY_BF16(sum, a, b);                                                                        \
    } while (0)

/* Registers: 0 1 / 2 3 sums, 4 / 5 rows, 6 7 columns. */
RAPT_INLINE void amx_multiply(const struct amx_product *p, amx_beside *beside, const void *context, int rows,
                               int half) {
    const char *a = p->a, *b = p->b;
    const int64_t c_below = TILE_HEIGHT * p->c_stride;
    int64_t b_beside = p->is_odd && p->groups == 1 ? 0 : p->b_beside;
    char *to = NULL;
    TILE_LOAD(4, a, p->a_stride);
    TILE_LOAD_STREAMED(6, b, TILE_ROW_BYTES);
    TILE_LOAD_STREAMED(7, b + b_beside, TILE_ROW_BYTES);
    TILE_LOAD(5, a + p->a_below, p->a_stride);
    TILE_ZERO(0);
    TILE_ZERO(1);
    TILE_ZERO(2);
    TILE_ZERO(3);
    for (int group = 0; group < p->groups; group++) {
        int row = 0;
        for (int step = 0; step < p->steps; step++) {
            const bool last = step == p->steps - 1;
            a = last ? p->a : a + p->a_step;
            b = !last ? b + p->b_step : group + 1 < p->groups ? p->b + (group + 1) * p->b_group : p->b;
            if (last && p->is_odd && group + 2 == p->groups)
                b_beside = 0;
            AMX_TURN(0, to)
            AMX_MULTIPLY(0, 4, 6);
            AMX_TURN(1, to ? to + TILE_ROW_BYTES : NULL)
            AMX_MULTIPLY(1, 4, 7);
            TILE_LOAD(4, a, p->a_stride);
            if (p->has_below) {
                AMX_TURN(2, to ? to + c_below : NULL)
                AMX_MULTIPLY(2, 5, 6);
            }
            TILE_LOAD_STREAMED(6, b, TILE_ROW_BYTES);
            if (p->has_below) {
                AMX_TURN(3, to ? to + c_below + TILE_ROW_BYTES : NULL)
                AMX_MULTIPLY(3, 5, 7);
            }
            TILE_LOAD_STREAMED(7, b + b_beside, TILE_ROW_BYTES);
            TILE_LOAD(5, a + p->a_below, p->a_stride);
            to = NULL;
            const int end = last ? rows : rows * step / p->steps;
            if (group > 0)
                beside(context, group - 1, row, end);
            row = end;
        }
        to = p->c + group * p->c_group;
    }
    AMX_TURN(0, to)
    AMX_TURN(1, to + TILE_ROW_BYTES)
    if (p->has_below) {
        AMX_TURN(2, to + c_below)
        AMX_TURN(3, to + c_below + TILE_ROW_BYTES)
    }
    beside(context, p->groups - 1, 0, rows);
}

#endif
