/* SPDX-License-Identifier: MIT
 * Python's arrays, read without a copy: the buffer protocol (NumPy), DLPack's C functions (PyTorch), DLPack. */
#ifndef RAPT_PYTHON_ARRAYS_H
#define RAPT_PYTHON_ARRAYS_H

#include "python.h"
#include "rapt/rapt.h"

enum { MOST_DIMS = 4 };

/* Element types beyond rapt_dtype, only for lists and stored bytes. */
enum { DTYPE_INT32 = 64, DTYPE_INT64, DTYPE_UINT8 };

/* All zeros: an absent array. */
struct array {
    void *data;
    int32_t dtype; /* rapt_dtype, or above */
    int32_t item_bytes;
    int32_t ndim;
    bool read_only;
    int64_t shape[MOST_DIMS];
    int64_t stride[MOST_DIMS]; /* bytes */
    PyObject *owner;           /* a capsule or array that must outlive this one, or NULL */
    Py_buffer buffer;          /* buffer.obj is NULL if unused */
};

/* Reads object; false with an exception that names it. None is absent. Outputs that are read-only or not contiguous in
 * their last dimension are refused; such inputs are copied if not contiguous. Release it in any case. */
bool array_read(struct array *array, PyObject *object, const char *name, bool writes);
void array_release(struct array *array);

/* A module function's arguments: their number, arrays first; a bit for each one written to. */
struct arguments_form {
    const char *const *names;
    int arrays, arguments;
    unsigned written;
};

/* Reads the arrays, or raises; arrays_release in any case. */
bool arrays_read(struct array *arrays, const struct arguments_form *form, PyObject *const *arguments, Py_ssize_t count);
void arrays_release(struct array *arrays, const struct arguments_form *form);

/* False with an exception if elements are integers, which rapt's tensors allow only with scales; bools may be uint8
 * bytes. */
bool array_check_elements(const struct array *array, const char *name, bool bools);

/* Prepends dimensions of size 1, up to MOST_DIMS. */
void array_pad(struct array *array);

/* "[2, 8, 64]" */
typedef struct shape_text {
    char text[120];
} shape_text;
shape_text shape_of(int ndim, const int64_t *shape);

const char *dtype_name(int32_t dtype);

#endif
