/* SPDX-License-Identifier: MIT
 * append(key, value, slots, key pages, value pages, key scales, value scales, layout, stored, rotary, rotary positions,
 * numerics, threads): new rows into pages of bytes. */
#include "call.h" /* with Python.h, which comes first */

#include <string.h>

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

/* Bytes from data on, 0 if there are none. */
static int64_t extent_of(const struct array *a) {
    int64_t bytes = a->item_bytes;
    for (int i = 0; i < a->ndim; i++) {
        if (a->shape[i] == 0)
            return 0;
        bytes += a->stride[i] > 0 ? (a->shape[i] - 1) * a->stride[i] : 0;
    }
    return bytes;
}

static bool has_places(const struct array *a, int ndim, const struct array *key_pages, const char *side,
                       const char *what) {
    bool same = a->ndim == ndim;
    for (int i = 0; same && i < 3; i++)
        same = a->shape[i] == key_pages->shape[i];
    if (!same)
        PyErr_Format(PyExc_ValueError,
                     "%s %s: its shape is %s; beside key pages of %s, [pages, kv_heads, page_tokens%s] is required",
                     side, what, shape_of(a->ndim, a->shape).text, shape_of(key_pages->ndim, key_pages->shape).text,
                     ndim == 4 ? ", bytes of a row" : "");
    return same;
}

bool pages_of(rapt_tensor *tensor, int dtype, const struct array *pages, const struct array *scales,
              const struct array *key_pages, const char *side) {
    if (!has_places(pages, 4, key_pages, side, "pages") ||
        (scales->dtype && !has_places(scales, 3, key_pages, side, "scales")))
        return false;
    *tensor = tensor_of(pages, 0);
    tensor->dtype = dtype;
    tensor->page_stride_bytes = pages->stride[0];
    tensor->extent_bytes = extent_of(pages);
    if (!scales->dtype)
        return true;
    tensor->scale_dtype = scales->dtype;
    tensor->scales = scales->data;
    tensor->scale_batch_stride_bytes = scales->stride[0];
    tensor->scale_head_stride_bytes = scales->stride[1];
    tensor->scale_token_stride_bytes = scales->stride[2];
    tensor->scale_extent_bytes = extent_of(scales);
    return true;
}

bool read_rotary(rapt_rotary *rotary, PyObject *tuple) {
    long long dim;
    if (tuple == Py_None)
        return true;
    const bool read = PyArg_ParseTuple(tuple, "iiLdddddd", &rotary->pairing, &rotary->scaling, &dim, &rotary->base,
                                       &rotary->factor, &rotary->original_length, &rotary->low_factor,
                                       &rotary->high_factor, &rotary->attention_factor);
    rotary->dim = read ? dim : 0;
    return read;
}

/* [batch, kv_heads, length, dim], or in the layout's order. */
static bool read_new(rapt_tensor *tensor, const struct array *a, int layout, const rapt_append_desc *d, int64_t dim,
                     const char *name) {
    const int64_t required[4] = {d->batch, layout ? d->length : d->kv_heads, layout ? d->kv_heads : d->length, dim};
    *tensor = tensor_of(a, layout);
    if (!array_check_elements(a, name, false))
        return false;
    if (memcmp(a->shape, required, sizeof required) == 0)
        return true;
    PyErr_Format(PyExc_ValueError, "%s: its shape is %s; %s is required", name, shape_of(a->ndim, a->shape).text,
                 shape_of(4, required).text);
    return false;
}

/* One number per new token. batch * length may overflow: views can be larger than memory. */
static bool read_tokens(rapt_index_list *list, const struct array *a, const rapt_append_desc *d, const char *name) {
    if (!list_of(list, a, name))
        return false;
    const int64_t count = a->shape[0], length = d->length;
    const bool is_whole = length && d->batch ? count % length == 0 && count / length == d->batch : count == 0;
    if (!a->dtype || (a->ndim == 1 && is_whole))
        return true;
    PyErr_Format(PyExc_ValueError,
                 "%s: its shape is %s; a number for each of %lld new tokens of %lld sequences is "
                 "required",
                 name, shape_of(a->ndim, a->shape).text, (long long)length, (long long)d->batch);
    return false;
}

static bool read_arrays(rapt_append_desc *d, struct array *a, int layout, int key_dtype, int value_dtype) {
    array_pad(&a[NEW_KEY]);
    array_pad(&a[NEW_VALUE]);
    d->batch = a[NEW_KEY].shape[0];
    d->kv_heads = a[KEY_PAGES].shape[1];
    d->length = a[NEW_KEY].shape[layout ? 1 : 2];
    d->pages.page_tokens = a[KEY_PAGES].shape[2];
    d->pages.pages = a[KEY_PAGES].shape[0];
    d->features = (a[NEW_KEY_SCALES].dtype ? RAPT_COMPUTE_KEY_SCALES : 0) |
                  (a[NEW_VALUE_SCALES].dtype ? RAPT_COMPUTE_VALUE_SCALES : 0);
    return read_new(&d->key, &a[NEW_KEY], layout, d, d->head_dim, "key") &&
           read_new(&d->value, &a[NEW_VALUE], layout, d, d->value_dim, "value") &&
           pages_of(&d->key_cache, key_dtype, &a[KEY_PAGES], &a[NEW_KEY_SCALES], &a[KEY_PAGES], "key") &&
           pages_of(&d->value_cache, value_dtype, &a[VALUE_PAGES], &a[NEW_VALUE_SCALES], &a[KEY_PAGES], "value") &&
           read_tokens(&d->slots, &a[SLOTS], d, "slots") &&
           read_tokens(&d->rotary_positions, &a[ROTARY_POSITIONS], d, "rotary_positions");
}

static bool fill(rapt_append_desc *d, struct array *a, PyObject *const *arguments) {
    int key_dtype, value_dtype;
    long long head_dim, value_dim;
    int32_t layout;
    if (!read_int(arguments[APPEND_LAYOUT], &layout, "layout") ||
        !read_int(arguments[APPEND_NUMERICS], &d->numerics, "numerics") ||
        !PyArg_ParseTuple(arguments[APPEND_STORED], "iiLL", &key_dtype, &value_dtype, &head_dim, &value_dim) ||
        !read_rotary(&d->rotary, arguments[ROTARY]))
        return false;
    d->head_dim = head_dim;
    d->value_dim = value_dim;
    return read_arrays(d, a, layout, key_dtype, value_dtype);
}

PyObject *core_append(PyObject *module, PyObject *const *arguments, Py_ssize_t count) {
    static const struct arguments_form form = {
        names, APPEND_ARRAYS, APPEND_ARGUMENTS,
        1u << KEY_PAGES | 1u << VALUE_PAGES | 1u << NEW_KEY_SCALES | 1u << NEW_VALUE_SCALES};
    struct array arrays[APPEND_ARRAYS];
    rapt_append_desc desc = RAPT_APPEND_DESC_INIT;
    rapt_message message;
    PyObject *result = NULL;
    int threads;
    (void)module;
    if (arrays_read(arrays, &form, arguments, count) && read_threads(arguments[APPEND_THREADS], &threads) &&
        fill(&desc, arrays, arguments)) {
        const double numbers = (double)desc.batch * (double)desc.kv_heads * (double)desc.length * (double)desc.head_dim;
        const rapt_run_options options = threads_options(threads, numbers * 8);
        rapt_status status;
        Py_BEGIN_ALLOW_THREADS status = rapt_append(&desc, &options, &message);
        Py_END_ALLOW_THREADS result = status == RAPT_OK ? Py_NewRef(Py_None) : raise_status(status, &message, "");
    }
    arrays_release(arrays, &form);
    return result;
}
