/* SPDX-License-Identifier: MIT
 * The running state of rows, (m, l, o): how it lies in memory, and how it begins. */
#ifndef RAPT_STATE_H
#define RAPT_STATE_H

#include "kernels.h"

/* Bytes of a state of so many rows: m, l and o, each padded to RAPT_VECTOR_BYTES. */
int64_t rapt_state_bytes(int64_t rows, int64_t o_stride);

/* A state of rows at memory, which is aligned to RAPT_VECTOR_BYTES. */
struct rapt_state rapt_state_at(char *memory, int64_t rows, int64_t o_stride);

/* The part of a state from row on. */
static inline struct rapt_state rapt_state_from(struct rapt_state state, int row) {
    return (struct rapt_state){state.m + row, state.l + row, state.o + row * state.o_stride, state.o_stride};
}

/* Empty: m = -infinity, l = 0. */
void rapt_state_clear(struct rapt_state state, int rows);

#endif
