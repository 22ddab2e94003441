/* SPDX-License-Identifier: MIT */
#include "state.h"

#include "assume.h"
#include "internal.h"

static int64_t padded_bytes(int64_t floats) {
    return rapt_round_up(floats * (int64_t)sizeof(float), RAPT_VECTOR_BYTES);
}

int64_t rapt_state_bytes(int64_t rows, int64_t o_stride) {
    return 2 * padded_bytes(rows) + padded_bytes(rows * o_stride);
}

struct rapt_state rapt_state_at(char *memory, int64_t rows, int64_t o_stride) {
    RAPT_ASSUME((uintptr_t)memory % RAPT_VECTOR_BYTES == 0 && o_stride % 16 == 0);
    struct rapt_state state = {.o_stride = o_stride};
    state.m = (float *)(void *)memory;
    state.l = (float *)(void *)(memory + padded_bytes(rows));
    state.o = (float *)(void *)(memory + 2 * padded_bytes(rows));
    return state;
}

void rapt_state_clear(struct rapt_state state, int rows) {
    for (int row = 0; row < rows; row++) {
        state.m[row] = -__builtin_inff();
        state.l[row] = 0;
    }
}
