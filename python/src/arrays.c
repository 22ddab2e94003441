/* SPDX-License-Identifier: MIT
 * Three ways to read an array's memory, the fastest first. */
#include "arrays.h" /* with Python.h, which comes first */

#include <stdio.h>
#include <string.h>

#include "dlpack.h"

static const struct {
    int32_t dtype, bytes;
    int code; /* in DLPack */
    const char *name;
} dtypes[] = {
    {RAPT_F32, 4, DLPACK_FLOAT, "float32"},
    {RAPT_F16, 2, DLPACK_FLOAT, "float16"},
    {RAPT_BF16, 2, DLPACK_BFLOAT, "bfloat16"},
    {RAPT_BOOL8, 1, DLPACK_BOOL, "bool"},
    {RAPT_F8_E4M3, 1, DLPACK_F8_E4M3FN, "float8_e4m3fn"},
    {RAPT_F8_E5M2, 1, DLPACK_F8_E5M2, "float8_e5m2"},
    {RAPT_I8, 1, DLPACK_INT, "int8"},
    {DTYPE_INT32, 4, DLPACK_INT, "int32"},
    {DTYPE_INT64, 8, DLPACK_INT, "int64"},
    {DTYPE_UINT8, 1, DLPACK_UINT, "uint8"},
};

enum { DTYPES = sizeof dtypes / sizeof dtypes[0] };

const char *dtype_name(int32_t dtype) {
    for (int i = 0; i < DTYPES; i++)
        if (dtypes[i].dtype == dtype)
            return dtypes[i].name;
    return "blocks";
}

shape_text shape_of(int ndim, const int64_t *shape) {
    shape_text out = {"["};
    for (int i = 0; i < ndim; i++) {
        const size_t length = strlen(out.text);
        snprintf(out.text + length, sizeof out.text - length, "%s%lld", i ? ", " : "", (long long)shape[i]);
    }
    strcat(out.text, "]");
    return out;
}

void array_pad(struct array *a) {
    const int missing = MOST_DIMS - a->ndim;
    for (int i = MOST_DIMS - 1; i >= 0; i--) {
        a->shape[i] = i < missing ? 1 : a->shape[i - missing];
        a->stride[i] = i < missing ? 0 : a->stride[i - missing];
    }
    a->ndim = MOST_DIMS;
}

void array_release(struct array *a) {
    if (a->buffer.obj)
        PyBuffer_Release(&a->buffer);
    Py_CLEAR(a->owner);
}

static bool refuse(const char *name, const char *text) {
    PyErr_Format(PyExc_TypeError, "%s: %s", name, text);
    return false;
}

static bool set_dtype(struct array *a, int code, int bytes, const char *name) {
    for (int i = 0; i < DTYPES; i++)
        if (dtypes[i].code == code && dtypes[i].bytes == bytes) {
            a->dtype = dtypes[i].dtype;
            a->item_bytes = bytes;
            return true;
        }
    const char *kind = code == DLPACK_FLOAT  ? "float"
                       : code == DLPACK_UINT ? "uint"
                       : code == DLPACK_INT  ? "int"
                                             : NULL;
    PyErr_Format(PyExc_TypeError,
                 "%s: its elements are %s%d%s, which rapt does not read; float32, float16 and bfloat16 are what "
                 "queries, keys, values and biases may be, int32 and int64 what lists may be",
                 name, kind ? kind : "of ", kind ? bytes * 8 : bytes,
                 kind ? "" : " bytes of another type or order of bytes");
    return false;
}

bool array_check_elements(const struct array *a, const char *name, bool bools) {
    const bool integers = a->dtype >= DTYPE_INT32 || a->dtype == RAPT_I8;
    if (!integers || (bools && a->dtype == DTYPE_UINT8))
        return true;
    PyErr_Format(PyExc_TypeError, "%s: its elements are %s; %s are required", name, dtype_name(a->dtype),
                 bools ? "bools" : "floats");
    return false;
}

static bool set_dims(struct array *a, int ndim, const int64_t *shape, const int64_t *strides, const char *name) {
    if (ndim > MOST_DIMS || ndim < 0) {
        PyErr_Format(PyExc_ValueError, "%s: it has %d dimensions; at most %d are possible", name, ndim, MOST_DIMS);
        return false;
    }
    int64_t contiguous = a->item_bytes;
    a->ndim = ndim;
    for (int i = ndim - 1; i >= 0; i--) {
        a->shape[i] = shape[i];
        a->stride[i] = strides ? strides[i] : contiguous;
        contiguous *= shape[i];
    }
    return true;
}

/* ---------------------------------------------------------- buffer protocol */

static int code_of_format(const char *format) {
    if (strchr("@=<", format[0]) && format[0])
        format++;
    if (!format[0] || format[1])
        return -1;
    return strchr("fed", format[0])      ? DLPACK_FLOAT
           : format[0] == '?'            ? DLPACK_BOOL
           : strchr("bhilqn", format[0]) ? DLPACK_INT
           : strchr("BHILQN", format[0]) ? DLPACK_UINT
                                         : -1;
}

/* ml_dtypes' arrays have no format: view them as integers of the same size. */
static bool read_extended(struct array *a, PyObject *object, const char *name, bool writes) {
    static const struct {
        const char *name, *view;
        int32_t dtype;
    } extended[] = {{"bfloat16", "uint16", RAPT_BF16},
                    {"float8_e4m3fn", "uint8", RAPT_F8_E4M3},
                    {"float8_e5m2", "uint8", RAPT_F8_E5M2}};
    PyErr_Clear();
    PyObject *dtype = PyObject_GetAttrString(object, "dtype");
    PyObject *text = dtype ? PyObject_GetAttrString(dtype, "name") : NULL;
    Py_XDECREF(dtype);
    for (int i = 0; text && i < 3; i++)
        if (PyUnicode_CompareWithASCIIString(text, extended[i].name) == 0) {
            Py_DECREF(text);
            a->owner = PyObject_CallMethod(object, "view", "s", extended[i].view);
            if (!a->owner || PyObject_GetBuffer(a->owner, &a->buffer, writes ? PyBUF_RECORDS : PyBUF_RECORDS_RO) != 0)
                return false;
            a->dtype = extended[i].dtype;
            a->item_bytes = (int32_t)a->buffer.itemsize;
            return true;
        }
    Py_XDECREF(text);
    PyErr_Clear();
    return refuse(name, "its elements are of a type that rapt does not read");
}

static bool read_buffer(struct array *a, PyObject *object, const char *name, bool writes) {
    if (PyObject_GetBuffer(object, &a->buffer, PyBUF_RECORDS_RO) != 0) {
        if (!read_extended(a, object, name, writes))
            return false;
    } else {
        const char *format = a->buffer.format ? a->buffer.format : "B";
        if (!set_dtype(a, code_of_format(format), (int)a->buffer.itemsize, name))
            return false;
    }
    a->data = a->buffer.buf;
    a->read_only = a->buffer.readonly;
    int64_t shape[MOST_DIMS] = {0}, strides[MOST_DIMS] = {0};
    for (int i = 0; i < a->buffer.ndim && i < MOST_DIMS; i++) {
        shape[i] = a->buffer.shape[i];
        strides[i] = a->buffer.strides[i];
    }
    return set_dims(a, a->buffer.ndim, shape, strides, name);
}

/* ------------------------------------------------------------------- DLPack */

static bool use_tensor(struct array *a, const struct dlpack_tensor *tensor, const char *name) {
    if (tensor->device_type != DLPACK_CPU)
        return refuse(name, "a dense tensor in the memory of the CPU is required");
    if (tensor->lanes != 1)
        return refuse(name, "its elements are vectors");
    if (!set_dtype(a, tensor->code, (tensor->bits + 7) / 8, name))
        return false;
    a->data = tensor->data ? (char *)tensor->data + tensor->byte_offset : NULL;
    if (!set_dims(a, tensor->ndim, tensor->shape, tensor->strides, name))
        return false;
    for (int i = 0; tensor->strides && i < a->ndim; i++)
        a->stride[i] *= a->item_bytes;
    return true;
}

/* The C functions of the last type with any: programs use one kind of tensor. */
static const struct dlpack_exchange *exchange_of(PyObject *object) {
    static PyTypeObject *known; /* kept, so that no other type gets its address */
    static const struct dlpack_exchange *functions;
    PyTypeObject *type = Py_TYPE(object);
    if (type == known)
        return functions;
    PyObject *capsule = PyObject_GetAttrString((PyObject *)type, "__dlpack_c_exchange_api__");
    const struct dlpack_exchange *found = capsule ? PyCapsule_GetPointer(capsule, "dlpack_exchange_api") : NULL;
    PyErr_Clear();
    Py_XDECREF(capsule);
    if (found && (found->major != 1 || !found->tensor_from_object))
        found = NULL;
    if (found) {
        Py_XDECREF((PyObject *)known);
        known = (PyTypeObject *)Py_NewRef((PyObject *)type);
        functions = found;
    }
    return found;
}

static PyObject *capsule_of(PyObject *object) {
    PyObject *method = PyObject_GetAttrString(object, "__dlpack__");
    if (!method)
        return NULL;
    PyObject *none = PyTuple_New(0), *version = Py_BuildValue("{s:(ii)}", "max_version", 1, 0);
    PyObject *capsule = none && version ? PyObject_Call(method, none, version) : NULL;
    if (!capsule && PyErr_ExceptionMatches(PyExc_TypeError)) { /* older than max_version */
        PyErr_Clear();
        capsule = PyObject_CallNoArgs(method);
    }
    Py_DECREF(method);
    Py_XDECREF(none);
    Py_XDECREF(version);
    return capsule;
}

static bool read_dlpack(struct array *a, PyObject *object, const char *name) {
    a->owner = capsule_of(object);
    if (!a->owner)
        return false;
    const struct dlpack_versioned *versioned = PyCapsule_GetPointer(a->owner, "dltensor_versioned");
    if (versioned) {
        a->read_only = versioned->flags & DLPACK_READ_ONLY;
        return versioned->major == 1 ? use_tensor(a, &versioned->tensor, name)
                                     : refuse(name, "its DLPack is too recent");
    }
    PyErr_Clear();
    const struct dlpack_tensor *tensor = PyCapsule_GetPointer(a->owner, "dltensor");
    return tensor && use_tensor(a, tensor, name);
}

/* -------------------------------------------------------------------- both */

static bool read_any(struct array *a, PyObject *object, const char *name, bool writes) {
    if (PyObject_CheckBuffer(object))
        return read_buffer(a, object, name, writes);
    const struct dlpack_exchange *exchange = exchange_of(object);
    struct dlpack_tensor tensor;
    if (exchange && exchange->tensor_from_object(object, &tensor) != 0) {
        PyErr_Clear();
        return refuse(name, "a dense tensor in the memory of the CPU is required");
    }
    if (exchange)
        return use_tensor(a, &tensor, name);
    if (PyObject_HasAttrString(object, "__dlpack__"))
        return read_dlpack(a, object, name);
    PyErr_Format(PyExc_TypeError, "%s: %R is not an array: it has neither the buffer protocol nor __dlpack__", name,
                 (PyObject *)Py_TYPE(object));
    return false;
}

/* Always without elements: PyTorch copies no such tensor to make it so. */
static bool is_contiguous(const struct array *a) {
    for (int i = 0; i < a->ndim; i++)
        if (a->shape[i] == 0)
            return true;
    return a->ndim == 0 || a->shape[a->ndim - 1] <= 1 || a->stride[a->ndim - 1] == a->item_bytes;
}

static bool read_copy(struct array *a, PyObject *object, const char *name) {
    const bool is_tensor = PyObject_HasAttrString(object, "contiguous");
    PyObject *copy = PyObject_CallMethod(object, is_tensor ? "contiguous" : "copy", NULL);
    array_release(a);
    memset(a, 0, sizeof *a);
    const bool read = copy && read_any(a, copy, name, false);
    if (read && !a->owner)
        a->owner = copy;
    else
        Py_XDECREF(copy);
    return read && (is_contiguous(a) || refuse(name, "its last dimension is not contiguous"));
}

/* PyTorch's lazy negatives, such as the imaginary part of a conjugate: the memory holds the opposite numbers, which
 * DLPack does not say. */
static bool is_negative_view(PyObject *object) {
    PyObject *answer = PyObject_CallMethod(object, "is_neg", NULL);
    PyErr_Clear();
    Py_XDECREF(answer);
    return answer == Py_True;
}

static bool read_negated(struct array *a, PyObject *object, const char *name, bool writes) {
    if (writes)
        return refuse(name, "it is a negative view (is_neg()), which rapt does not write");
    PyObject *plain = PyObject_CallMethod(object, "resolve_neg", NULL);
    const bool read = plain && array_read(a, plain, name, false);
    if (read && !a->owner)
        a->owner = plain;
    else
        Py_XDECREF(plain);
    return read;
}

bool array_read(struct array *a, PyObject *object, const char *name, bool writes) {
    memset(a, 0, sizeof *a);
    if (object == Py_None)
        return true;
    if (!PyObject_CheckBuffer(object) && is_negative_view(object))
        return read_negated(a, object, name, writes);
    if (!read_any(a, object, name, writes))
        return false;
    if (writes && a->read_only)
        return refuse(name, "it is read-only");
    if (is_contiguous(a))
        return true;
    if (!writes)
        return read_copy(a, object, name);
    PyErr_Format(PyExc_ValueError, "%s: its last dimension must be contiguous, and has a stride of %lld bytes", name,
                 (long long)a->stride[a->ndim - 1]);
    return false;
}

bool arrays_read(struct array *arrays, const struct arguments_form *form, PyObject *const *arguments,
                 Py_ssize_t count) {
    bool read = count == form->arguments;
    memset(arrays, 0, (size_t)form->arrays * sizeof *arrays);
    if (!read)
        PyErr_Format(PyExc_TypeError, "%d arguments are required, not %zd", form->arguments, count);
    for (int i = 0; read && i < form->arrays; i++)
        read = array_read(&arrays[i], arguments[i], form->names[i], form->written >> i & 1);
    return read;
}

void arrays_release(struct array *arrays, const struct arguments_form *form) {
    for (int i = 0; i < form->arrays; i++)
        array_release(&arrays[i]);
}
