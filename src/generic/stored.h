/* SPDX-License-Identifier: MIT
 * Stored numbers to vectors of float32: the one place that knows what the bytes of a row mean. */
#ifndef RAPT_GENERIC_STORED_H
#define RAPT_GENERIC_STORED_H

#include "kernels.h"

/* Numbers of the largest block. Loops over a row that take so many at a time see a block's scale as one. */
enum { STORED_STEP = 32 };

_Static_assert(STORED_STEP % VL == 0, "a step is whole vectors");

/* The bytes of the block that number d lies in. ASSUME d is a multiple of VL. */
RAPT_INLINE const char *stored_block(int format, const char *row, int64_t d) {
    const struct rapt_format_info *info = rapt_format_info(format);
    return row + (size_t)d / (size_t)info->elements * (size_t)info->bytes;
}

/* Numbers d ... d + VL - 1 of a row, all of which exist. ASSUME d is a multiple of VL, and format a constant once this
 * is inlined: what remains are the loads of one type. */
RAPT_INLINE vf32 v_load_stored(int format, const char *row, int64_t d) {
    const char *block = stored_block(format, row, d);
    const size_t at = (size_t)d % STORED_STEP; /* in a block of so many */
    switch (format) {
    case RAPT_FORMAT_F32: return v_load((const float *)(const void *)block);
    case RAPT_FORMAT_F16: return v_load_half((const uint16_t *)(const void *)block);
    case RAPT_FORMAT_BF16: return v_load_bf16((const uint16_t *)(const void *)block);
    case RAPT_FORMAT_Q8_0: return v_mul(v_load_int8((const int8_t *)block + 2 + at), v_splat_half((const void *)block));
    default: return v_splat(0); /* not a type of keys and values */
    }
}

/* The same of the last `count` numbers of a row, fewer than VL; the other lanes hold zeros or anything. Reads nothing
 * after them. Only types without blocks have such a rest. */
RAPT_INLINE vf32 v_load_stored_rest(int format, const char *row, int64_t d, int count) {
    char rest[4 * VL] = {0};
    const size_t bytes = (size_t)rapt_format_info(format)->bytes;
    memcpy(rest, stored_block(format, row, d), (size_t)count * bytes);
    return v_load_stored(format, rest, 0);
}

#endif
