/* SPDX-License-Identifier: MIT
 * The descriptor of a call. Agreement of arrays is checked here, where they have names and shapes; the rest is rapt's
 * to check. */
#include "call.h" /* with Python.h, which comes first */

#include <string.h>

static const char *const names[ARRAYS] = {"query",        "key",   "value",         "out",        "mask",
                                          "bias",         "lse",   "weights",       "key scales", "value scales",
                                          "alibi",        "sinks", "query_lengths", "kv_lengths", "query_position",
                                          "key_position", "pages"};

static bool wrong_shape(const struct call *call, int which, int ndim, const int64_t *shape) {
    const struct array *a = &call->arrays[which];
    PyErr_Format(PyExc_ValueError,
                 "%s: its shape is %s; beside a query of %s, a key of %s and a value of %s, %s is required",
                 names[which], shape_of(a->ndim, a->shape).text,
                 shape_of(call->arrays[QUERY].ndim, call->arrays[QUERY].shape).text,
                 shape_of(call->arrays[KEY].ndim, call->arrays[KEY].shape).text,
                 shape_of(call->arrays[VALUE].ndim, call->arrays[VALUE].shape).text, shape_of(ndim, shape).text);
    return false;
}

rapt_tensor tensor_of(const struct array *array, int layout) {
    rapt_tensor tensor = RAPT_ZERO;
    struct array a = *array;
    if (a.dtype == RAPT_NO_DTYPE)
        return tensor;
    array_pad(&a);
    tensor.data = a.data;
    tensor.dtype = a.dtype == DTYPE_UINT8 ? RAPT_BOOL8 : a.dtype;
    tensor.batch_stride_bytes = a.stride[0];
    tensor.head_stride_bytes = a.stride[layout ? 2 : 1];
    tensor.token_stride_bytes = a.stride[layout ? 1 : 2];
    return tensor;
}

bool list_of(rapt_index_list *list, const struct array *a, const char *name) {
    if (a->dtype == RAPT_NO_DTYPE)
        return true;
    if ((a->dtype != DTYPE_INT32 && a->dtype != DTYPE_INT64) || a->ndim < 1) {
        PyErr_Format(PyExc_TypeError, "%s: a list of int32 or int64 is required, not %s of shape %s", name,
                     dtype_name(a->dtype), shape_of(a->ndim, a->shape).text);
        return false;
    }
    list->data = a->data;
    list->index_bytes = a->item_bytes;
    list->count = 1;
    for (int i = 0; i < a->ndim; i++)
        list->count *= a->shape[i];
    return true;
}

/* ------------------------------------------------------------------- sizes */

/* The dimensions of query, key, value as [batch, heads, tokens, dim]. */
static void dims_of(const struct array *array, int layout, int64_t *dims) {
    struct array a = *array;
    array_pad(&a);
    dims[0] = a.shape[0];
    dims[1] = a.shape[layout ? 2 : 1];
    dims[2] = a.shape[layout ? 1 : 2];
    dims[3] = a.shape[3];
}

/* For pages, whose shapes give neither the batch nor dims. */
static bool read_stored(struct call *call, PyObject *stored, int64_t *key) {
    int key_dtype, value_dtype;
    long long head_dim, value_dim, kv_length;
    if (!PyArg_ParseTuple(stored, "iiLLL", &key_dtype, &value_dtype, &head_dim, &value_dim, &kv_length))
        return false;
    if (!call->arrays[PAGES].dtype) {
        PyErr_SetString(PyExc_TypeError, "pages: a table is required where key and value are pages");
        return false;
    }
    call->arrays[KEY].dtype = key_dtype;
    call->arrays[VALUE].dtype = value_dtype;
    call->desc.value_dim = value_dim;
    call->desc.kv_length = kv_length;
    key[3] = head_dim;
    key[0] = call->desc.batch;
    return true;
}

static bool read_sizes(struct call *call, int layout, PyObject *stored) {
    rapt_attention_desc *d = &call->desc;
    const struct array *a = call->arrays;
    int64_t query[4], key[4], value[4];
    if (!a[QUERY].dtype || !a[KEY].dtype || !a[VALUE].dtype) {
        PyErr_SetString(PyExc_TypeError, "query, key and value are required");
        return false;
    }
    if (a[QUERY].ndim < (layout ? 3 : 2)) {
        PyErr_Format(PyExc_ValueError,
                     "query: its shape is %s; [batch, %s, head_dim] is required, or the same without batch",
                     shape_of(a[QUERY].ndim, a[QUERY].shape).text, layout ? "tokens, heads" : "heads, tokens");
        return false;
    }
    dims_of(&a[QUERY], layout, query);
    dims_of(&a[KEY], stored == Py_None ? layout : 0, key);
    dims_of(&a[VALUE], stored == Py_None ? layout : 0, value);
    d->batch = query[0], d->query_heads = query[1], d->query_length = query[2], d->head_dim = query[3];
    d->kv_heads = key[1], d->kv_length = key[2], d->value_dim = value[3];
    if (stored != Py_None && !read_stored(call, stored, key))
        return false;
    /* key's required shape, in the caller's order. */
    int64_t required[4] = {query[0], layout ? key[2] : key[1], layout ? key[1] : key[2], query[3]};
    const int skip = 4 - a[QUERY].ndim;
    if (key[0] != query[0] || key[3] != query[3] || (stored == Py_None && a[KEY].ndim != a[QUERY].ndim))
        return wrong_shape(call, KEY, a[QUERY].ndim, required + skip);
    required[3] = d->value_dim;
    if (stored == Py_None && value[3] < 1) { /* the library would use key's instead */
        PyErr_Format(PyExc_ValueError, "value: its shape is %s; its last dimension is below 1",
                     shape_of(a[VALUE].ndim, a[VALUE].shape).text);
        return false;
    }
    if (stored == Py_None &&
        (value[0] != key[0] || value[1] != key[1] || value[2] != key[2] || a[VALUE].ndim != a[QUERY].ndim))
        return wrong_shape(call, VALUE, a[QUERY].ndim, required + skip);
    return true;
}

static bool check_out(struct call *call, int layout) {
    const rapt_attention_desc *d = &call->desc;
    const struct array *a = call->arrays;
    int64_t out[4];
    dims_of(&a[OUT], layout, out);
    const int64_t required[4] = {d->batch, layout ? d->query_length : d->query_heads,
                                 layout ? d->query_heads : d->query_length, d->value_dim};
    if (a[OUT].ndim == a[QUERY].ndim && out[0] == d->batch && out[1] == d->query_heads && out[2] == d->query_length &&
        out[3] == d->value_dim)
        return true;
    return wrong_shape(call, OUT, a[QUERY].ndim, required + (4 - a[QUERY].ndim));
}

/* mask, bias, weights: [batch, query_heads, query_length, kv_length], lse without the last, in this order for any
 * layout. Inputs may broadcast. */
static bool read_pairs(struct call *call, int which, rapt_tensor *tensor) {
    const rapt_attention_desc *d = &call->desc;
    struct array a = call->arrays[which];
    const int64_t required[4] = {d->batch, d->query_heads, d->query_length, d->kv_length};
    const int dims = which == LSE ? 3 : 4;
    if (!a.dtype)
        return true;
    if (a.ndim > dims)
        return wrong_shape(call, which, dims, required);
    const int missing = dims - a.ndim;
    int64_t stride[4];
    for (int i = 0; i < dims; i++) {
        const int64_t size = i < missing ? 1 : a.shape[i - missing];
        const bool broadcasts = (which == MASK || which == BIAS) && size == 1 && i < 3;
        if (size != required[i] && !broadcasts)
            return wrong_shape(call, which, dims, required);
        stride[i] = size == 1 ? 0 : a.stride[i - missing];
    }
    tensor->data = a.data;
    tensor->dtype = a.dtype == DTYPE_UINT8 ? RAPT_BOOL8 : a.dtype;
    tensor->batch_stride_bytes = stride[0];
    tensor->head_stride_bytes = stride[1];
    tensor->token_stride_bytes = stride[2];
    return true;
}

/* ------------------------------------------------------------------ extras */

static bool read_floats(struct call *call, int which, const float **floats) {
    const struct array *a = &call->arrays[which];
    const int64_t required = call->desc.query_heads;
    if (!a->dtype)
        return true;
    if (a->dtype != RAPT_F32 || a->ndim != 1 || a->shape[0] != required) {
        PyErr_Format(PyExc_ValueError, "%s: it is %s of shape %s; a float32 for each query head, [%lld], is required",
                     names[which], dtype_name(a->dtype), shape_of(a->ndim, a->shape).text, (long long)required);
        return false;
    }
    *floats = a->data;
    return true;
}

/* Pages of key and value, and a table [batch, pages of a sequence]. */
static bool read_pages(struct call *call) {
    rapt_attention_desc *d = &call->desc;
    const struct array *a = call->arrays, *table = &a[PAGES];
    if (!table->dtype)
        return true;
    if (!list_of(&d->key_pages.entries, table, "pages"))
        return false;
    if (table->ndim != 2 || table->shape[0] != d->batch || table->shape[1] < 1) {
        PyErr_Format(PyExc_ValueError,
                     "pages: its shape is %s; a row of page numbers for each of %lld sequences is required",
                     shape_of(table->ndim, table->shape).text, (long long)d->batch);
        return false;
    }
    d->key_pages.kind = RAPT_PAGES_DENSE;
    d->key_pages.entries.count = table->shape[1]; /* per row */
    d->key_pages.batch_stride_bytes = table->stride[0];
    d->key_pages.page_tokens = a[KEY].shape[2];
    d->key_pages.pages = a[KEY].shape[0];
    d->value_pages = d->key_pages;
    return pages_of(&d->key, a[KEY].dtype, &a[KEY], &a[KEY_SCALES], &a[KEY], "key") &&
           pages_of(&d->value, a[VALUE].dtype, &a[VALUE], &a[VALUE_SCALES], &a[KEY], "value");
}

/* Sets the bit of features if there is a number. */
static bool read_number(PyObject *object, float *number, uint64_t *features, uint64_t bit, const char *name) {
    if (object == Py_None)
        return true;
    const double value = PyFloat_AsDouble(object);
    if (value == -1 && PyErr_Occurred()) {
        PyErr_Format(PyExc_TypeError, "%s: a number is required, not %R", name, object);
        return false;
    }
    *number = (float)value;
    *features |= bit;
    return true;
}

bool read_int(PyObject *object, int32_t *number, const char *name) {
    int beyond = 0;
    const long value = object == Py_None ? 0 : PyLong_AsLongAndOverflow(object, &beyond);
    if (value == -1 && PyErr_Occurred()) {
        PyErr_Format(PyExc_TypeError, "%s: an integer is required, not %R", name, object);
        return false;
    }
    if (beyond || value < INT32_MIN || value > INT32_MAX) {
        PyErr_Format(PyExc_ValueError, "%s: %R does not fit in 32 bits", name, object);
        return false;
    }
    *number = (int32_t)value;
    return true;
}

bool read_threads(PyObject *object, int *threads) {
    int32_t number = 0;
    if (!read_int(object, &number, "threads"))
        return false;
    if (object != Py_None && number < 1) {
        PyErr_Format(PyExc_ValueError, "threads: %R is below 1", object);
        return false;
    }
    *threads = number;
    return true;
}

static bool read_window(PyObject *pair, rapt_attention_desc *d) {
    long long left, right;
    if (pair == Py_None)
        return true;
    if (!PyArg_ParseTuple(pair, "LL", &left, &right)) {
        PyErr_Format(PyErr_ExceptionMatches(PyExc_OverflowError) ? PyExc_ValueError : PyExc_TypeError,
                     "window: %R are not two integers of 64 bits", pair);
        return false;
    }
    d->features |= RAPT_WINDOW;
    d->window_left = left;
    d->window_right = right;
    return true;
}

/* bool, NumPy's, or what equals one: the truth of anything else, such as that of a text, is no answer. */
static bool read_causal(PyObject *object, rapt_attention_desc *d) {
    const int is_causal = PyObject_RichCompareBool(object, Py_True, Py_EQ);
    d->features |= is_causal > 0 ? RAPT_CAUSAL : 0;
    if (is_causal > 0 || object == Py_None || (!is_causal && PyObject_RichCompareBool(object, Py_False, Py_EQ) > 0))
        return true;
    PyErr_Format(PyExc_TypeError, "causal: a bool is required, not %R", object);
    return false;
}

static bool read_scalars(struct call *call, PyObject *const *arguments) {
    rapt_attention_desc *d = &call->desc;
    int32_t weights_kind = 0;
    if (!read_causal(arguments[CAUSAL], d) || !read_window(arguments[WINDOW], d) ||
        !read_number(arguments[SCALE], &d->scale, &d->features, RAPT_SCALE, "scale") ||
        !read_number(arguments[SOFTCAP], &d->softcap, &d->features, 0, "softcap") ||
        !read_number(arguments[MASK_FILL], &d->mask_fill, &d->features, RAPT_MASK_FILL, "mask_fill") ||
        !read_int(arguments[ORIGIN], &d->query_origin, "query_position") ||
        !read_int(arguments[WEIGHTS_KIND], &weights_kind, "weights_kind") ||
        !read_int(arguments[NUMERICS], &d->numerics, "numerics") || !read_int(arguments[ISA], &d->isa, "isa") ||
        !read_threads(arguments[THREADS], &call->threads))
        return false;
    if (d->softcap == 0 && arguments[SOFTCAP] != Py_None && PyObject_IsTrue(arguments[SOFTCAP])) {
        PyErr_Format(PyExc_ValueError, "softcap: %R is 0 when rounded to float32, which is off", arguments[SOFTCAP]);
        return false;
    }
    d->weights_kind = call->arrays[WEIGHTS].dtype ? weights_kind : 0;
    if (arguments[ALIBI] == Py_True)
        d->features |= RAPT_ALIBI_STANDARD;
    return true;
}

bool list_of_batch(rapt_index_list *list, const struct array *a, int64_t batch, const char *name) {
    if (!list_of(list, a, name))
        return false;
    if (!a->dtype || (a->ndim == 1 && a->shape[0] == batch))
        return true;
    PyErr_Format(PyExc_ValueError, "%s: its shape is %s; a number for each sequence of the batch, [%lld], is required",
                 name, shape_of(a->ndim, a->shape).text, (long long)batch);
    return false;
}

static bool read_lists(struct call *call) {
    rapt_attention_desc *d = &call->desc;
    rapt_index_list *const lists[] = {&d->query_lengths, &d->kv_lengths, &d->query_position, &d->key_position};
    for (int i = QUERY_LENGTHS; i <= KEY_POSITION; i++)
        if (!list_of_batch(lists[i - QUERY_LENGTHS], &call->arrays[i], d->batch, names[i]))
            return false;
    return true;
}

/* Pages are bytes, whatever is stored in them. */
static bool check_elements(const struct call *call, bool paged) {
    for (int i = 0; i < BOUND_ARRAYS; i++)
        if (!(paged && (i == KEY || i == VALUE)) && !array_check_elements(&call->arrays[i], names[i], i == MASK))
            return false;
    return true;
}

bool call_fill(struct call *call, PyObject *const *arguments, Py_ssize_t count) {
    memset(call, 0, sizeof *call);
    if (count != ARGUMENTS) {
        PyErr_Format(PyExc_TypeError, "%d arguments are required, not %zd", ARGUMENTS, count);
        return false;
    }
    for (int i = 0; i < ARRAYS; i++)
        if (!(i == ALIBI && arguments[i] == Py_True) &&
            !array_read(&call->arrays[i], arguments[i], names[i], i == OUT || i == LSE || i == WEIGHTS))
            return false;
    rapt_attention_desc *d = &call->desc;
    int32_t layout;
    d->struct_size = sizeof *d;
    if (!read_int(arguments[LAYOUT], &layout, "layout") || !read_sizes(call, layout, arguments[STORED]) ||
        !check_elements(call, arguments[STORED] != Py_None) || !check_out(call, layout))
        return false;
    const int kv_layout = arguments[STORED] == Py_None ? layout : 0;
    d->query = tensor_of(&call->arrays[QUERY], layout);
    d->key = tensor_of(&call->arrays[KEY], kv_layout);
    d->value = tensor_of(&call->arrays[VALUE], kv_layout);
    d->out = tensor_of(&call->arrays[OUT], layout);
    call->multiplications = (double)(d->batch * d->query_heads * d->query_length) * (double)d->kv_length *
                            (double)(d->head_dim + d->value_dim);
    return read_pairs(call, MASK, &d->mask) && read_pairs(call, BIAS, &d->bias) && read_pairs(call, LSE, &d->lse) &&
           read_pairs(call, WEIGHTS, &d->weights) && read_floats(call, ALIBI, &d->alibi_slopes) &&
           read_floats(call, SINKS, &d->sinks) && read_lists(call) && read_pages(call) && read_scalars(call, arguments);
}

void call_release(struct call *call) {
    for (int i = 0; i < ARRAYS; i++)
        array_release(&call->arrays[i]);
}
