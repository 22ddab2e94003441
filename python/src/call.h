/* SPDX-License-Identifier: MIT
 * Python's arguments as a descriptor, and its runs. */
#ifndef RAPT_PYTHON_CALL_H
#define RAPT_PYTHON_CALL_H

#include "arrays.h"
#include "rapt/cache.h"

/* Argument positions; None = absent. Arrays first. */
enum {
    QUERY,
    KEY,
    VALUE,
    OUT,
    MASK,
    BIAS,
    LSE,
    WEIGHTS,
    BOUND_ARRAYS, /* those before may change in each run of a plan */
    KEY_SCALES = BOUND_ARRAYS,
    VALUE_SCALES,
    ALIBI,
    SINKS,
    QUERY_LENGTHS,
    KV_LENGTHS,
    QUERY_POSITION,
    KEY_POSITION,
    PAGES,
    ARRAYS,
    LAYOUT = ARRAYS, /* 0: [batch, heads, tokens, dim], 1: [batch, tokens, heads, dim] */
    STORED,          /* (dtype of keys, of values, head_dim, value_dim, kv_length): key and value are pages of bytes */
    CAUSAL,
    SCALE,
    SOFTCAP,
    WINDOW,
    ORIGIN,
    WEIGHTS_KIND,
    MASK_FILL,
    NUMERICS,
    ISA,
    THREADS,
    ARGUMENTS
};

struct call {
    rapt_attention_desc desc;
    struct array arrays[ARRAYS];
    int threads;
    double multiplications;
};

/* Fill fails with an exception. Release in any case. */
bool call_fill(struct call *call, PyObject *const *arguments, Py_ssize_t count);
void call_release(struct call *call);

/* The tensor of an array [batch, heads, tokens, dim], or of the other layout. */
rapt_tensor tensor_of(const struct array *array, int layout);
bool list_of(rapt_index_list *list, const struct array *array, const char *name);
bool list_of_batch(rapt_index_list *list, const struct array *array, int64_t batch, const char *name); /* one each */

/* False with an exception that names the argument: no integer, more than 32 bits, threads below 1. None is 0. */
bool read_int(PyObject *object, int32_t *number, const char *name);
bool read_threads(PyObject *object, int *threads);

/* The tensor of pages [pages, kv_heads, page_tokens, row], and of their rows' scales, which may be absent. A table
 * counts key pages, so value pages and all scales must match in number and size. side: "key", "value". */
bool pages_of(rapt_tensor *tensor, int dtype, const struct array *pages, const struct array *scales,
              const struct array *key_pages, const char *side);

/* (pairing, scaling, dim, base, factor, original_length, low_factor, high_factor, attention_factor), or None. */
bool read_rotary(rapt_rotary *rotary, PyObject *tuple);

/* Raises a status's exception, and returns NULL. shapes: text with what was passed, or "". */
PyObject *raise_status(rapt_status status, const rapt_message *message, const char *shapes);
PyObject *raise_of_call(rapt_status status, const rapt_message *message, const struct call *call);

/* Runs a plan without the GIL, in memory kept for later runs. */
rapt_status run_plan(const rapt_plan *plan, int threads, double multiplications);

PyObject *core_attention(PyObject *module, PyObject *const *arguments, Py_ssize_t count);
PyObject *core_seconds_of_call(PyObject *module, PyObject *arguments);
PyObject *core_append(PyObject *module, PyObject *const *arguments, Py_ssize_t count);
PyObject *core_rotate(PyObject *module, PyObject *const *arguments, Py_ssize_t count);
bool add_plan_type(PyObject *module);

#endif
