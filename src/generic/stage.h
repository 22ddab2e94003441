/* SPDX-License-Identifier: MIT
 * Stored rows to float32 rows, exactly. */
#ifndef RAPT_GENERIC_STAGE_H
#define RAPT_GENERIC_STAGE_H

#include "assume.h"
#include "generic/fetch.h"
#include "generic/stored.h"

enum {
    STAGE_NEAR = 8, /* rows prefetched ahead: processors do not detect such large strides */
    STAGE_FAR = 48 /* the same into L2, if memory-bound */
};

RAPT_INLINE void fetch_stored(const struct rapt_stage_args *a, const char *from, int64_t row, int64_t row_bytes) {
    const bool near = (a->streams && !a->lead_bytes) || row + STAGE_NEAR < a->rows;
    const int64_t lead_bytes = a->lead_bytes ? a->lead_bytes : STAGE_FAR * a->from_stride_bytes;
    const int64_t near_bytes = near ? STAGE_NEAR * a->from_stride_bytes : 0;
    const struct reach reach = reach_of(near_bytes, lead_bytes - near_bytes);
    for (int64_t byte = 0; byte < row_bytes; byte += 64) {
        if (a->streams)
            fetch_both(from + reach.l1 + byte, reach.l2);
        else if (near)
            fetch_soon(from + STAGE_NEAR * a->from_stride_bytes + byte);
    }
}

/* All numbers of a row, of one format. */
RAPT_INLINE void stage_stored(int format, float *into, const char *row, int dim) {
    enum { VECTORS = STORED_STEP / VL };
    int d = 0;
    for (; dim - d >= STORED_STEP; d += STORED_STEP) {
        vf32 numbers[VECTORS];
        RAPT_UNROLL
        for (int i = 0; i < VECTORS; i++)
            numbers[i] = v_load_stored(format, row, d + i * VL);
        RAPT_UNROLL
        for (int i = 0; i < VECTORS; i++)
            v_store(into + d + i * VL, numbers[i]);
    }
    for (; dim - d >= VL; d += VL)
        v_store(into + d, v_load_stored(format, row, d));
    if (d < dim)
        v_store_n(into + d, v_load_stored_rest(format, row, d, dim - d), dim - d);
}

/* The same with scales: numbers [d, end) share one. */
RAPT_INLINE void stage_group(int format, float *into, const char *row, int64_t d, int64_t end, struct stored_scale by) {
    for (; end - d >= VL; d += VL)
        v_store(into + d, v_scaled(v_load_stored(format, row, d), by));
    if (d < end)
        v_store_n(into + d, v_scaled(v_load_stored_rest(format, row, d, (int)(end - d)), by), (int)(end - d));
}

/* number: of the row, for its scales. */
RAPT_INLINE void stage_scaled(int format, float *into, const char *row, int dim, const struct rapt_scales *scales,
                              int64_t number) {
    const int64_t step = scales->group && scales->group < dim ? scales->group : dim;
    for (int64_t d = 0, group = 0; d < dim; d += step, group++)
        stage_group(format, into, row, d, dim - d < step ? dim : d + step, stored_scale_of(scales, number, group));
}

#define RAPT_FORMAT(name, NAME, text, elements, bytes, alignment, uses)                                                \
    static void stage_row_##name(float *into, const char *row, int dim, const struct rapt_scales *scales,              \
                                 int64_t number) {                                                                     \
        if (is_scaled(RAPT_FORMAT_##NAME))                                                                             \
            stage_scaled(RAPT_FORMAT_##NAME, into, row, dim, scales, number);                                          \
        else                                                                                                           \
            stage_stored(RAPT_FORMAT_##NAME, into, row, dim);                                                          \
    }
#include "format.def"
#undef RAPT_FORMAT

/* One row; its number is its index into the scales. */
static void (*const stage_row[RAPT_FORMAT_COUNT])(float *, const char *, int, const struct rapt_scales *, int64_t) = {
#define RAPT_FORMAT(name, NAME, text, elements, bytes, alignment, uses) stage_row_##name,
#include "format.def"
#undef RAPT_FORMAT
};

static void stage(const struct rapt_stage_args *a) {
    const int64_t row_bytes = rapt_format_row_bytes(a->format, a->dim);
    const char *from = a->from;
    RAPT_ASSUME(a->rows >= 0 && a->dim >= 1 && a->format >= 0 && a->format < RAPT_FORMAT_COUNT);
    RAPT_ASSUME(a->dim % rapt_format_info(a->format)->elements == 0);
    for (int64_t row = 0; row < a->rows; row++, from += a->from_stride_bytes) {
        fetch_stored(a, from, row, row_bytes);
        stage_row[a->format](a->into + row * a->dim, from, a->dim, &a->scales, row);
    }
}

#endif
