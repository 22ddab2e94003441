/* SPDX-License-Identifier: MIT
 * Storage types, from format.def. */
#ifndef RAPT_FORMAT_H
#define RAPT_FORMAT_H

#include <stdint.h>

#include "rapt/rapt.h"

/* Which tensors may have a storage type; its scales and zero points. */
enum {
    RAPT_USE_FLOATS = 1,    /* lse, weights */
    RAPT_USE_KEY_VALUE = 2, /* key and value, in any combination */
    RAPT_USE_MASK = 4,      /* mask, keep_mask */
    RAPT_USE_STATES = 8,    /* states; the lse that merging writes */
    RAPT_USE_ENDS = 16,     /* query, bias and out, in any combination; rows to append or rotate */
    RAPT_MAY_SCALE = 32,    /* rapt_tensor.scales */
    RAPT_MUST_SCALE = 64,
    RAPT_MAY_SHIFT = 128    /* rapt_tensor.zero_points */
};

enum rapt_format {
#define RAPT_FORMAT(name, NAME, text, elements, bytes, alignment, uses) RAPT_FORMAT_##NAME,
#include "format.def"
#undef RAPT_FORMAT
    RAPT_FORMAT_COUNT
};

/* Elements and bytes of a block. */
enum {
#define RAPT_FORMAT(name, NAME, text, elements, bytes, alignment, uses)                                          \
    RAPT_ELEMENTS_##NAME = elements, RAPT_BYTES_##NAME = bytes,
#include "format.def"
#undef RAPT_FORMAT
};

struct rapt_format_info {
    const char *text;
    int elements, bytes; /* of a block; elements is a power of two */
    int alignment;       /* of data and strides; a power of two */
    int uses;
};

/* RAPT_FORMAT_COUNT for an unknown dtype. */
static inline int rapt_format_of(int32_t dtype) {
    switch (dtype) {
#define RAPT_FORMAT(name, NAME, text, elements, bytes, alignment, uses) case RAPT_##NAME: return RAPT_FORMAT_##NAME;
#include "format.def"
#undef RAPT_FORMAT
    default: return RAPT_FORMAT_COUNT;
    }
}

static inline const struct rapt_format_info *rapt_format_info(int format) {
    static const struct rapt_format_info infos[] = {
#define RAPT_FORMAT(name, NAME, text, elements, bytes, alignment, uses) {text, elements, bytes, alignment, uses},
#include "format.def"
#undef RAPT_FORMAT
    };
    return &infos[format];
}

/* Bytes of a row. ASSUME whole blocks. Shifts, since divisions would slow down short calls. */
static inline int64_t rapt_format_row_bytes(int format, int64_t elements) {
    const struct rapt_format_info *info = rapt_format_info(format);
    return (elements >> __builtin_ctz((unsigned)info->elements)) * info->bytes;
}

#endif
