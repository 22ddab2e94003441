/* SPDX-License-Identifier: MIT
 * The safetensors format (https://github.com/huggingface/safetensors#format): eight bytes with the length of a
 * JSON header, the header, the data of all tensors without gaps. */
#ifndef RAPT_SAFETENSORS_H
#define RAPT_SAFETENSORS_H

#include <stddef.h>
#include <stdint.h>

enum { SAFETENSORS_MAX_DIMS = 8, SAFETENSORS_MAX_HEADER = 100000000 };

struct safetensor {
    char *name;
    const char *dtype; /* as the format writes it: "F32" */
    int dims;
    int64_t shape[SAFETENSORS_MAX_DIMS];
    int64_t begin, end; /* bytes of the file */
};

struct safetensors {
    size_t count;
    struct safetensor *tensors; /* in the order of their data */
};

/* What is wrong with file [bytes] goes into wrong; returns 0 then, with nothing to free. Never reads beyond
 * bytes. */
int safetensors_parse(const unsigned char *file, size_t bytes, struct safetensors *parsed, char wrong[256]);
void safetensors_free(struct safetensors *parsed);

#endif
