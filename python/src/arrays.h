/* SPDX-License-Identifier: MIT
 * Arrays of Python, read without a copy: the buffer protocol (NumPy), DLPack's C functions (PyTorch), DLPack. */
#ifndef RAPT_PYTHON_ARRAYS_H
#define RAPT_PYTHON_ARRAYS_H

#include "python.h"
#include "rapt/rapt.h"

enum { MOST_DIMS = 4 };

/* Types of elements that only lists and stored bytes have, beside those of rapt_dtype. */
enum { DTYPE_INT32 = 64, DTYPE_INT64, DTYPE_UINT8 };

/* Zeros are an array that is absent. */
struct array {
    void *data;
    int32_t dtype; /* rapt_dtype, or above */
    int32_t item_bytes;
    int32_t ndim;
    bool read_only;
    int64_t shape[MOST_DIMS];
    int64_t stride[MOST_DIMS]; /* bytes */
    PyObject *owner;           /* a capsule or an array that must live as long as this one, or NULL */
    Py_buffer buffer;          /* buffer.obj is NULL where there is none */
};

/* Reads object; false with an exception that names it. None is absent. An array that is written to, and is read-only
 * or not contiguous in its last dimension, is refused; one that is read is copied if its last dimension is not
 * contiguous. Release it in any case. */
bool array_read(struct array *array, PyObject *object, const char *name, bool writes);
void array_release(struct array *array);

/* What a function of the module is given: so many arguments, arrays first; of those that are written to, a bit each. */
struct arguments_form {
    const char *const *names;
    int arrays, arguments;
    unsigned written;
};

/* Reads the arrays, or raises; arrays_release in any case. */
bool arrays_read(struct array *arrays, const struct arguments_form *form, PyObject *const *arguments, Py_ssize_t count);
void arrays_release(struct array *arrays, const struct arguments_form *form);

/* False with an exception where elements are integers, which tensors of rapt are only beside scales; bools may be bytes
 * of uint8. */
bool array_check_elements(const struct array *array, const char *name, bool bools);

/* Puts dimensions of size 1 in front, up to MOST_DIMS. */
void array_pad(struct array *array);

/* "[2, 8, 64]" */
typedef struct shape_text {
    char text[120];
} shape_text;
shape_text shape_of(int ndim, const int64_t *shape);

const char *dtype_name(int32_t dtype);

#endif
