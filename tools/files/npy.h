/* SPDX-License-Identifier: MIT
 * NumPy's .npy files (https://numpy.org/neps/nep-0001-npy-format.html): what the command reads and writes. */
#ifndef RAPT_NPY_H
#define RAPT_NPY_H

#include <stdint.h>

enum { NPY_MAX_DIMS = 6, NPY_SHAPE_TEXT = 136 };

/* Bits, so that a set of them says what a place accepts. NumPy has no bfloat16: it is what ml_dtypes (JAX) saves, items
 * of two bytes, '<V2'. */
enum npy_type {
    NPY_FLOAT32 = 1,
    NPY_FLOAT64 = 2,
    NPY_BOOL = 4,
    NPY_INT32 = 8,
    NPY_INT64 = 16,
    NPY_FLOAT16 = 32,
    NPY_BFLOAT16 = 64
};
enum { NPY_FLOATS = NPY_FLOAT32 | NPY_FLOAT16 | NPY_BFLOAT16 };

struct npy_array {
    const char *path;
    enum npy_type type;
    int dims; /* 0 ... NPY_MAX_DIMS */
    int64_t shape[NPY_MAX_DIMS];
    int64_t count; /* product of shape */
    void *data;    /* C order; from tool_allocate */
};

/* Reads path, or the member NAME of an archive where it is FILE.npz:NAME. The type has to be one of accepted; dies with
 * one line that says what is wrong otherwise. */
struct npy_array npy_read(const char *path, unsigned accepted);

/* The same of NPY_FLOATS, which become float32 without rounding. */
struct npy_array npy_read_floats(const char *path);

/* The numbers of an array of any type as double. */
const double *npy_doubles(const struct npy_array *array);

/* "[2, 3]" into text; returns text. */
char *npy_shape_text(int dims, const int64_t *shape, char text[NPY_SHAPE_TEXT]);

/* "float32" ... */
const char *npy_type_name(enum npy_type type);

int64_t npy_item_bytes(enum npy_type type);

/* Writes the header of a C-order array into header; returns its length, a multiple of 64. */
int npy_header(char header[256], enum npy_type type, int dims, const int64_t *shape);

#endif
