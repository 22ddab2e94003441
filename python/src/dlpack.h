/* SPDX-License-Identifier: MIT
 * The parts of DLPack's ABI (versions 0.x and 1.x) required to read a tensor. */
#ifndef RAPT_DLPACK_H
#define RAPT_DLPACK_H

#include <stdint.h>

enum { DLPACK_CPU = 1 };

enum {
    DLPACK_INT = 0,
    DLPACK_UINT = 1,
    DLPACK_FLOAT = 2,
    DLPACK_BFLOAT = 4,
    DLPACK_BOOL = 6,
    DLPACK_F8_E4M3FN = 10,
    DLPACK_F8_E5M2 = 12
};

enum { DLPACK_READ_ONLY = 1 };

struct dlpack_tensor {
    void *data;
    int32_t device_type, device_id;
    int32_t ndim;
    uint8_t code, bits;
    uint16_t lanes;
    int64_t *shape;
    int64_t *strides; /* in elements; NULL = contiguous */
    uint64_t byte_offset;
};

/* The content of a capsule "dltensor_versioned"; "dltensor" holds a dlpack_tensor and more. */
struct dlpack_versioned {
    uint32_t major, minor;
    void *context;
    void (*deleter)(struct dlpack_versioned *self);
    uint64_t flags;
    struct dlpack_tensor tensor;
};

/* The content of a type's attribute __dlpack_c_exchange_api__, a capsule "dlpack_exchange_api". */
struct dlpack_exchange {
    uint32_t major, minor;
    void *previous;
    void (*allocate)(void);
    void (*managed_from_object)(void);
    void (*managed_to_object)(void);
    int (*tensor_from_object)(void *object, struct dlpack_tensor *out); /* borrowed; 0 = done */
    void (*current_stream)(void);
};

#endif
