/* SPDX-License-Identifier: MIT
 * Learned weights: a folder of .npy files, an .npz archive of them or one safetensors file. */
#ifndef RAPT_WEIGHTS_H
#define RAPT_WEIGHTS_H

#include <stdbool.h>

#include "files/npy.h"
#include "files/safetensors.h"

struct weights {
    const char *path, *prefix;
    bool is_archive;
    unsigned char *file; /* of safetensors; NULL = a folder or an archive */
    const struct safetensors *tensors;
};

/* prefix precedes every name read. Dies if the path is none of them. */
struct weights weights_open(const char *path, const char *prefix);

bool weights_has(const struct weights *weights, const char *name);

/* A tensor as float32; its path is the name in messages. Dies if it is missing or of another type. */
struct npy_array weights_read(const struct weights *weights, const char *name);

#endif
