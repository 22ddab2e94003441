/* SPDX-License-Identifier: MIT
 * Rows of queries and biases as float32. */
#ifndef RAPT_WIDEN_H
#define RAPT_WIDEN_H

#include "kernels.h"

struct rapt_widening {
    const struct rapt_table *table;
    int format, rows;
    int begin, end;      /* the numbers of a row that matter; nothing else is read */
    float *room;         /* rows of it, room_stride floats apart; not used for float32 */
    int64_t room_stride; /* at least end */
};

/* Finds number 0 of each row in float32, given where it is stored: in place, or in the room. Consecutive rows that are
 * one in memory, such as those of heads that share a bias, are widened once. */
void rapt_widen(const struct rapt_widening *widening, char *const *stored, const float **rows);

#endif
