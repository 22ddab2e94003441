/* SPDX-License-Identifier: MIT
 * append(key, value, slots, key pages, value pages, key scales, value scales, layout, stored, rotary, rotary positions,
 * numerics, threads): new rows into pages of bytes. */
#include "call.h" /* with Python.h, which comes first */

#include <string.h>

#include "rapt/cache.h"
#include "threads.h"

enum {
    NEW_KEY,
    NEW_VALUE,
    SLOTS,
    KEY_PAGES,
    VALUE_PAGES,
    NEW_KEY_SCALES,
    NEW_VALUE_SCALES,
    ROTARY_POSITIONS,
    APPEND_ARRAYS,
    APPEND_LAYOUT = APPEND_ARRAYS,
    APPEND_STORED,
    ROTARY,
    APPEND_NUMERICS,
    APPEND_THREADS,
    APPEND_ARGUMENTS
};

static const char *const names[APPEND_ARRAYS] = {"key",         "value",      "slots",        "key pages",
                                                 "value pages", "key scales", "value scales", "rotary_positions"};

static rapt_tensor pages_of(const struct array *pages, int dtype, const struct array *scales) {
    rapt_tensor tensor = tensor_of(pages, 0);
    tensor.dtype = dtype;
    tensor.page_stride_bytes = pages->stride[0];
    if (scales->dtype) {
        tensor.scale_dtype = scales->dtype;
        tensor.scales = scales->data;
        tensor.scale_batch_stride_bytes = scales->stride[0];
        tensor.scale_head_stride_bytes = scales->stride[1];
        tensor.scale_token_stride_bytes = scales->stride[2];
    }
    return tensor;
}

/* (pairing, scaling, dim, base, factor, original_length, low_factor, high_factor, attention_factor) */
static bool read_rotary(rapt_rotary *rotary, PyObject *tuple) {
    long long dim;
    if (tuple == Py_None)
        return true;
    const bool read = PyArg_ParseTuple(tuple, "iiLdddddd", &rotary->pairing, &rotary->scaling, &dim, &rotary->base,
                                       &rotary->factor, &rotary->original_length, &rotary->low_factor,
                                       &rotary->high_factor, &rotary->attention_factor);
    rotary->dim = read ? dim : 0;
    return read;
}

static bool fill(rapt_append_desc *d, struct array *a, PyObject *const *arguments) {
    int key_dtype, value_dtype;
    long long head_dim, value_dim;
    const int layout = (int)PyLong_AsLong(arguments[APPEND_LAYOUT]);
    if (PyErr_Occurred() ||
        !PyArg_ParseTuple(arguments[APPEND_STORED], "iiLL", &key_dtype, &value_dtype, &head_dim, &value_dim) ||
        !read_rotary(&d->rotary, arguments[ROTARY]) || !list_of(&d->slots, &a[SLOTS], "slots") ||
        !list_of(&d->rotary_positions, &a[ROTARY_POSITIONS], "rotary_positions"))
        return false;
    array_pad(&a[NEW_KEY]);
    array_pad(&a[NEW_VALUE]);
    d->batch = a[NEW_KEY].shape[0];
    d->kv_heads = a[KEY_PAGES].shape[1];
    d->length = a[NEW_KEY].shape[layout ? 1 : 2];
    d->head_dim = head_dim;
    d->value_dim = value_dim;
    d->key = tensor_of(&a[NEW_KEY], layout);
    d->value = tensor_of(&a[NEW_VALUE], layout);
    d->key_cache = pages_of(&a[KEY_PAGES], key_dtype, &a[NEW_KEY_SCALES]);
    d->value_cache = pages_of(&a[VALUE_PAGES], value_dtype, &a[NEW_VALUE_SCALES]);
    d->features = (a[NEW_KEY_SCALES].dtype ? RAPT_COMPUTE_KEY_SCALES : 0) |
                  (a[NEW_VALUE_SCALES].dtype ? RAPT_COMPUTE_VALUE_SCALES : 0);
    d->pages.page_tokens = a[KEY_PAGES].shape[2];
    d->pages.pages = a[KEY_PAGES].shape[0];
    d->numerics = (int32_t)PyLong_AsLong(arguments[APPEND_NUMERICS]);
    return !PyErr_Occurred();
}

PyObject *core_append(PyObject *module, PyObject *const *arguments, Py_ssize_t count) {
    struct array arrays[APPEND_ARRAYS];
    rapt_append_desc desc = RAPT_APPEND_DESC_INIT;
    rapt_message message;
    PyObject *result = NULL;
    bool read = count == APPEND_ARGUMENTS;
    (void)module;
    memset(arrays, 0, sizeof arrays);
    if (!read)
        PyErr_Format(PyExc_TypeError, "%d arguments are required, not %zd", APPEND_ARGUMENTS, count);
    for (int i = 0; read && i < APPEND_ARRAYS; i++)
        read = array_read(&arrays[i], arguments[i], names[i], i >= KEY_PAGES && i < ROTARY_POSITIONS);
    if (read && fill(&desc, arrays, arguments)) {
        const double numbers = (double)desc.batch * (double)desc.kv_heads * (double)desc.length * (double)desc.head_dim;
        const rapt_run_options options = threads_options((int)PyLong_AsLong(arguments[APPEND_THREADS]), numbers * 8);
        rapt_status status;
        Py_BEGIN_ALLOW_THREADS status = rapt_append(&desc, &options, &message);
        Py_END_ALLOW_THREADS result = status == RAPT_OK ? Py_NewRef(Py_None) : raise_status(status, &message, "");
    }
    for (int i = 0; i < APPEND_ARRAYS; i++)
        array_release(&arrays[i]);
    return result;
}
