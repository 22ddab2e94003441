/* SPDX-License-Identifier: MIT
 * The safetensors format (https://github.com/huggingface/safetensors#format): eight bytes of header length, a JSON
 * header, the data of all tensors without gaps. */
#ifndef RAPT_SAFETENSORS_H
#define RAPT_SAFETENSORS_H

#include <stddef.h>
#include <stdint.h>

enum { SAFETENSORS_MAX_DIMS = 8, SAFETENSORS_MAX_HEADER = 100000000 };

struct safetensor {
    char *name;
    const char *dtype; /* in the format's spelling: "F32" */
    int dims;
    int64_t shape[SAFETENSORS_MAX_DIMS];
    int64_t begin, end; /* bytes of the file */
};

struct safetensors {
    size_t count;
    struct safetensor *tensors; /* in data order */
};

/* On errors in file [bytes], describes them in wrong and returns 0, with nothing to free. Never reads beyond bytes. */
int safetensors_parse(const unsigned char *file, size_t bytes, struct safetensors *parsed, char wrong[256]);
void safetensors_free(struct safetensors *parsed);

#endif
