/* SPDX-License-Identifier: MIT
 * Storage types, from format.def. */
#ifndef RAPT_FORMAT_H
#define RAPT_FORMAT_H

#include <stdint.h>

#include "rapt/rapt.h"

enum rapt_format {
#define RAPT_FORMAT(name, NAME, text, elements, bytes, alignment) RAPT_FORMAT_##NAME,
#include "format.def"
#undef RAPT_FORMAT
    RAPT_FORMAT_COUNT
};

static inline int rapt_format_of(int32_t dtype) {
    switch (dtype) {
#define RAPT_FORMAT(name, NAME, text, elements, bytes, alignment) case RAPT_##NAME: return RAPT_FORMAT_##NAME;
#include "format.def"
#undef RAPT_FORMAT
    default: return RAPT_FORMAT_COUNT;
    }
}

/* Bytes of a row of so many elements. */
static inline int64_t rapt_format_row_bytes(int format, int64_t elements) {
    static const struct {
        int elements, bytes;
    } block[] = {
#define RAPT_FORMAT(name, NAME, text, elements, bytes, alignment) {elements, bytes},
#include "format.def"
#undef RAPT_FORMAT
    };
    return (elements + block[format].elements - 1) / block[format].elements * block[format].bytes;
}

#endif
