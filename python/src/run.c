/* SPDX-License-Identifier: MIT
 * Runs without the GIL, in workspaces kept from call to call. */
#include "call.h" /* with Python.h, which comes first */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "threads.h"

PyObject *raise_status(rapt_status status, const rapt_message *message, const char *shapes) {
    PyObject *kind = status == RAPT_OUT_OF_MEMORY       ? PyExc_MemoryError
                     : status == RAPT_UNSUPPORTED_DTYPE ? PyExc_TypeError
                     : status == RAPT_PARALLEL_FOR_FAILED || status == RAPT_STOPPED || status == RAPT_UNSUPPORTED_ISA ||
                             status == RAPT_INVALID_PLAN
                         ? PyExc_RuntimeError
                         : PyExc_ValueError;
    const char *text = message && message->text[0] ? message->text : rapt_status_text(status);
    if (status == RAPT_UNSTATED_POSITION)
        text =
            "query_position: \"top-left\", \"bottom-right\" or a number is required where causal, window or alibi are "
            "given and queries and keys differ in length";
    PyErr_Format(kind, "%s%s", text, shapes);
    return NULL;
}

PyObject *raise_of_call(rapt_status status, const rapt_message *message, const struct call *call) {
    char shapes[400];
    const struct array *a = call->arrays;
    snprintf(shapes, sizeof shapes, " (query %s %s, key %s %s, value %s %s)", dtype_name(a[QUERY].dtype),
             shape_of(a[QUERY].ndim, a[QUERY].shape).text, dtype_name(a[KEY].dtype),
             shape_of(a[KEY].ndim, a[KEY].shape).text, dtype_name(a[VALUE].dtype),
             shape_of(a[VALUE].ndim, a[VALUE].shape).text);
    return raise_status(status, message, shapes);
}

/* ------------------------------------------------------------- workspaces */

enum { IDLE = 8, MOST_KEPT = 16 << 20 };

/* Unused ones. The GIL guards the list. */
static struct workspace {
    void *memory;
    size_t bytes;
} idle[IDLE];
static int idle_count;

static struct workspace take_workspace(size_t bytes) {
    struct workspace w = {NULL, 0};
    if (idle_count > 0)
        w = idle[--idle_count];
    if (w.bytes < bytes) {
        free(w.memory);
        w.memory = malloc(bytes);
        w.bytes = w.memory ? bytes : 0;
    }
    return w;
}

static void give_workspace(struct workspace w) {
    if (w.bytes <= MOST_KEPT && idle_count < IDLE)
        idle[idle_count++] = w;
    else
        free(w.memory);
}

rapt_status run_plan(const rapt_plan *plan, int threads, double multiplications) {
    const rapt_run_options options = threads_options(threads, multiplications);
    size_t bytes;
    rapt_status status = rapt_plan_workspace_bytes(plan, rapt_run_concurrency(plan, &options), &bytes);
    if (status != RAPT_OK)
        return status;
    struct workspace w = take_workspace(bytes);
    if (!w.memory && bytes > 0)
        return RAPT_OUT_OF_MEMORY;
    Py_BEGIN_ALLOW_THREADS status = rapt_run(plan, w.memory, w.bytes, &options);
    Py_END_ALLOW_THREADS give_workspace(w);
    return status;
}

PyObject *core_attention(PyObject *module, PyObject *const *arguments, Py_ssize_t count) {
    struct call call;
    rapt_plan plan;
    rapt_message message;
    PyObject *result = NULL;
    (void)module;
    if (call_fill(&call, arguments, count)) {
        rapt_status status = rapt_plan_init(&plan, &call.desc, &message);
        if (status == RAPT_OK)
            status = run_plan(&plan, call.threads, call.multiplications);
        result = status == RAPT_OK ? Py_NewRef(Py_None) : raise_of_call(status, &message, &call);
    }
    call_release(&call);
    return result;
}

static double seconds_between(const struct timespec *begin, const struct timespec *end) {
    return (double)(end->tv_sec - begin->tv_sec) + 1e-9 * (double)(end->tv_nsec - begin->tv_nsec);
}

/* Into separate memory, contiguous whatever query's strides. Sizes are compared as doubles: views can be larger than
 * memory. */
static rapt_status measure(struct array *query, int count, double *seconds, rapt_message *message) {
    rapt_attention_desc d = RAPT_ATTENTION_DESC_INIT;
    struct timespec begin, end;
    array_pad(query);
    d.batch = query->shape[0], d.query_heads = d.kv_heads = query->shape[1];
    d.query_length = d.kv_length = query->shape[2], d.head_dim = query->shape[3];
    d.query = d.key = d.value = tensor_of(query, 0);
    const double bytes = (double)d.batch * (double)d.query_heads * (double)d.query_length * (double)d.head_dim *
                         (double)query->item_bytes;
    void *out = bytes < (double)PY_SSIZE_T_MAX / 2 ? malloc((size_t)bytes + 1) : NULL;
    if (!out)
        return RAPT_OUT_OF_MEMORY;
    d.out = rapt_tensor_bhsd(out, d.query.dtype, d.batch, d.query_heads, d.query_length, d.head_dim);
    rapt_status status = RAPT_OK;
    timespec_get(&begin, TIME_UTC);
    for (int i = 0; i < count && status == RAPT_OK; i++)
        status = rapt_attention(&d, NULL, message);
    timespec_get(&end, TIME_UTC);
    free(out);
    *seconds = seconds_between(&begin, &end) / (count > 0 ? count : 1);
    return status;
}

/* seconds_of_call(query, count): the library's own time for attention of query on itself, on the calling thread, with
 * all checks: benchmarks subtract it. */
PyObject *core_seconds_of_call(PyObject *module, PyObject *arguments) {
    struct array query;
    rapt_message message = {0};
    PyObject *object, *result = NULL;
    double seconds;
    int count;
    (void)module;
    if (!PyArg_ParseTuple(arguments, "Oi", &object, &count))
        return NULL;
    if (array_read(&query, object, "query", false)) {
        const rapt_status status = measure(&query, count, &seconds, &message);
        result = status == RAPT_OK ? PyFloat_FromDouble(seconds) : raise_status(status, &message, "");
    }
    array_release(&query);
    return result;
}
