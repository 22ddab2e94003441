/* SPDX-License-Identifier: MIT
 * Stored rows to float32 rows, exactly. */
#ifndef RAPT_GENERIC_STAGE_H
#define RAPT_GENERIC_STAGE_H

#include "assume.h"
#include "kernels.h"

enum {
    STAGE_NEAR = 8, /* rows that are prefetched: processors do not recognise the pattern of rows far apart */
    STAGE_FAR = 48 /* the same into L2, where memory feeds the loop */
};

RAPT_INLINE void fetch_stored(const struct rapt_stage_args *a, const char *from, int64_t row, int64_t row_bytes) {
    const bool near = a->streams || row + STAGE_NEAR < a->rows;
    for (int64_t byte = 0; near && byte < row_bytes; byte += 64) {
        __builtin_prefetch(from + STAGE_NEAR * a->from_stride_bytes + byte, 0, 3);
        if (a->streams)
            __builtin_prefetch(from + STAGE_FAR * a->from_stride_bytes + byte, 0, 2);
    }
}

static void stage_row_f32(float *into, const char *from, int dim) {
    const float *row = (const float *)(const void *)from;
    int d = 0;
    for (; dim - d >= VL; d += VL)
        v_store(into + d, v_load(row + d));
    if (d < dim)
        memcpy(into + d, row + d, (size_t)(dim - d) * sizeof(float));
}

static void stage_row_f16(float *into, const char *from, int dim) {
    const uint16_t *row = (const uint16_t *)(const void *)from;
    int d = 0;
    for (; dim - d >= VL; d += VL)
        v_store(into + d, v_load_half(row + d));
    if (d < dim) {
        uint16_t rest[VL] = {0};
        memcpy(rest, row + d, (size_t)(dim - d) * sizeof *row);
        v_store_n(into + d, v_load_half(rest), dim - d);
    }
}

static void (*const stage_row[RAPT_FORMAT_COUNT])(float *, const char *, int) = {
    [RAPT_FORMAT_F32] = stage_row_f32, [RAPT_FORMAT_F16] = stage_row_f16};

static void stage(const struct rapt_stage_args *a) {
    const int64_t row_bytes = rapt_format_row_bytes(a->format, a->dim);
    const char *from = a->from;
    RAPT_ASSUME(a->rows >= 0 && a->dim >= 1 && a->format >= 0 && a->format < RAPT_FORMAT_COUNT && stage_row[a->format]);
    for (int64_t row = 0; row < a->rows; row++, from += a->from_stride_bytes) {
        fetch_stored(a, from, row, row_bytes);
        stage_row[a->format](a->into + row * a->dim, from, a->dim);
    }
}

#endif
