/* SPDX-License-Identifier: MIT
 * rotate(in, out, first positions, lengths, layout, rotary, threads): rotates queries like append rotates keys. */
#include "call.h" /* with Python.h, which comes first */

#include <string.h>

#include "threads.h"

enum {
    ROTATE_IN,
    ROTATE_OUT,
    FIRST_POSITIONS,
    ROTATE_LENGTHS,
    ROTATE_ARRAYS,
    ROTATE_LAYOUT = ROTATE_ARRAYS,
    ROTATE_ROTARY,
    ROTATE_THREADS,
    ROTATE_ARGUMENTS
};

static const char *const names[ROTATE_ARRAYS] = {"array", "out", "first_positions", "lengths"};

/* Both [batch, heads, tokens, head_dim], or in the layout's order. */
static bool read_rows(rapt_rotate_desc *d, struct array *a, int layout) {
    const struct array *in = &a[ROTATE_IN], *out = &a[ROTATE_OUT];
    if (in->ndim != 4 || out->ndim != 4 || memcmp(in->shape, out->shape, sizeof in->shape) != 0) {
        PyErr_Format(PyExc_ValueError, "array: its shape is %s, and that of out %s; four equal dimensions are required",
                     shape_of(in->ndim, in->shape).text, shape_of(out->ndim, out->shape).text);
        return false;
    }
    if (!array_check_elements(in, names[ROTATE_IN], false))
        return false;
    d->batch = in->shape[0];
    d->heads = in->shape[layout ? 2 : 1];
    d->length = in->shape[layout ? 1 : 2];
    d->head_dim = in->shape[3];
    d->in = tensor_of(in, layout);
    d->out = tensor_of(out, layout);
    return true;
}

static bool fill(rapt_rotate_desc *d, struct array *a, PyObject *const *arguments) {
    int32_t layout;
    return read_int(arguments[ROTATE_LAYOUT], &layout, "layout") && read_rotary(&d->rotary, arguments[ROTATE_ROTARY]) &&
           read_rows(d, a, layout) &&
           list_of_batch(&d->first_positions, &a[FIRST_POSITIONS], d->batch, names[FIRST_POSITIONS]) &&
           list_of_batch(&d->lengths, &a[ROTATE_LENGTHS], d->batch, names[ROTATE_LENGTHS]);
}

PyObject *core_rotate(PyObject *module, PyObject *const *arguments, Py_ssize_t count) {
    static const struct arguments_form form = {names, ROTATE_ARRAYS, ROTATE_ARGUMENTS, 1u << ROTATE_OUT};
    struct array arrays[ROTATE_ARRAYS];
    rapt_rotate_desc desc = RAPT_ROTATE_DESC_INIT;
    rapt_message message;
    PyObject *result = NULL;
    int threads;
    (void)module;
    if (arrays_read(arrays, &form, arguments, count) && read_threads(arguments[ROTATE_THREADS], &threads) &&
        fill(&desc, arrays, arguments)) {
        const double numbers = (double)desc.batch * (double)desc.heads * (double)desc.length * (double)desc.head_dim;
        const rapt_run_options options = threads_options(threads, numbers * 8);
        rapt_status status;
        Py_BEGIN_ALLOW_THREADS status = rapt_rotate(&desc, &options, &message);
        Py_END_ALLOW_THREADS result = status == RAPT_OK ? Py_NewRef(Py_None) : raise_status(status, &message, "");
    }
    arrays_release(arrays, &form);
    return result;
}
