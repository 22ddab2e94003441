/* SPDX-License-Identifier: MIT
 * Stored rows to float32 rows, exactly. */
#ifndef RAPT_GENERIC_STAGE_H
#define RAPT_GENERIC_STAGE_H

#include "kernels.h"

enum {
    STAGE_NEAR = 8, /* rows that are fetched ahead: rows far apart are no pattern that a processor would recognise */
    STAGE_FAR = 128 /* the same into L2, where memory feeds the loop */
};

RAPT_INLINE void fetch_stored(const struct rapt_stage_args *a, const char *from, int64_t row, int64_t row_bytes) {
    const bool near = a->streams || row + STAGE_NEAR < a->rows;
    for (int64_t byte = 0; near && byte < row_bytes; byte += 64) {
        __builtin_prefetch(from + STAGE_NEAR * a->from_stride_bytes + byte, 0, 3);
        if (a->streams)
            __builtin_prefetch(from + STAGE_FAR * a->from_stride_bytes + byte, 0, 2);
    }
}

static void stage_f32(const struct rapt_stage_args *a) {
    const size_t row_bytes = (size_t)a->dim * sizeof(float);
    const char *from = a->from;
    for (int64_t row = 0; row < a->rows; row++, from += a->from_stride_bytes) {
        fetch_stored(a, from, row, (int64_t)row_bytes);
        memcpy(a->into + row * a->dim, from, row_bytes);
    }
}

static void stage_f16(const struct rapt_stage_args *a) {
    const char *from = a->from;
    for (int64_t row = 0; row < a->rows; row++, from += a->from_stride_bytes) {
        const uint16_t *half = (const uint16_t *)(const void *)from;
        float *into = a->into + row * a->dim;
        int d = 0;
        fetch_stored(a, from, row, a->dim * (int64_t)sizeof *half);
        for (; a->dim - d >= VL; d += VL)
            v_store(into + d, v_load_half(half + d));
        if (d < a->dim) {
            uint16_t rest[VL] = {0};
            memcpy(rest, half + d, (size_t)(a->dim - d) * sizeof *half);
            v_store_n(into + d, v_load_half(rest), a->dim - d);
        }
    }
}

#endif
