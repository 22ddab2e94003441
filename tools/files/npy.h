/* SPDX-License-Identifier: MIT
 * NumPy's .npy files (https://numpy.org/neps/nep-0001-npy-format.html), as the command reads and writes them. */
#ifndef RAPT_NPY_H
#define RAPT_NPY_H

#include <stdint.h>

enum { NPY_MAX_DIMS = 6, NPY_SHAPE_TEXT = 136 };

/* Bits, to be combined to sets of accepted types. NumPy has no bfloat16: ml_dtypes (JAX) saves it as two-byte items,
 * '<V2'. */
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

/* Reads path, or the member NAME of an archive if it is FILE.npz:NAME. Dies with one line that says what is wrong, also
 * if the type is not accepted. */
struct npy_array npy_read(const char *path, unsigned accepted);

/* An array of NPY_FLOATS, converted to float32 exactly. */
struct npy_array npy_floats(struct npy_array array);
struct npy_array npy_read_floats(const char *path);

/* A result of zeros; path: NULL if it has no name. Dies if its size overflows. */
struct npy_array npy_new(const char *path, enum npy_type type, int dims, const int64_t *shape);

/* An array's numbers as double, whatever its type. */
const double *npy_doubles(const struct npy_array *array);

/* "[2, 3]" into text; returns text. */
char *npy_shape_text(int dims, const int64_t *shape, char text[NPY_SHAPE_TEXT]);

/* "float32" ... */
const char *npy_type_name(enum npy_type type);

int64_t npy_item_bytes(enum npy_type type);

/* Writes the header of a C-order array into header; returns its length, a multiple of 64. */
int npy_header(char header[256], enum npy_type type, int dims, const int64_t *shape);

#endif
