/* SPDX-License-Identifier: MIT
 * The header of a .npy file: a Python dict literal with three keys. */
#ifndef RAPT_NPY_PARSE_H
#define RAPT_NPY_PARSE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "files/npy.h"

struct npy_parsed {
    char descr[16];
    bool fortran_order;
    int dims;
    int64_t shape[NPY_MAX_DIMS];
};

/* NULL, or the error in text (text_bytes bytes, unterminated). */
const char *npy_parse(const char *text, size_t text_bytes, struct npy_parsed *parsed);

#endif
