/* SPDX-License-Identifier: MIT
 * The type Plan: checked arguments, run repeatedly with other arrays of the same shapes and strides. Several threads
 * may run one plan: each binds a copy. */
#include "call.h" /* with Python.h, which comes first */

#include <string.h>

struct plan_object {
    PyObject_HEAD rapt_plan plan;
    struct call call;
};

static const char *const names[BOUND_ARRAYS] = {"query", "key", "value", "out", "mask", "bias", "lse", "weights"};

/* Runs bring others, and keeping these could hold gigabytes of weights. */
static void release_bound(struct call *call) {
    for (int i = 0; i < BOUND_ARRAYS; i++)
        array_release(&call->arrays[i]);
}

/* Plan.__new__(arguments of core_attention). */
static PyObject *plan_new(PyTypeObject *type, PyObject *positional, PyObject *named) {
    PyObject *arguments[ARGUMENTS];
    rapt_message message;
    (void)named;
    const Py_ssize_t count = PyTuple_Size(positional);
    for (Py_ssize_t i = 0; i < count && i < ARGUMENTS; i++)
        arguments[i] = PyTuple_GetItem(positional, i);
    allocfunc allocate = (allocfunc)PyType_GetSlot(type, Py_tp_alloc);
    struct plan_object *self = (struct plan_object *)allocate(type, 0);
    if (!self)
        return NULL;
    if (call_fill(&self->call, arguments, count)) {
        const rapt_status status = rapt_plan_init(&self->plan, &self->call.desc, &message);
        release_bound(&self->call);
        if (status == RAPT_OK)
            return (PyObject *)self;
        raise_of_call(status, &message, &self->call);
    }
    Py_DECREF(self);
    return NULL;
}

static void plan_dealloc(PyObject *object) {
    PyTypeObject *type = Py_TYPE(object);
    call_release(&((struct plan_object *)object)->call);
    ((freefunc)PyType_GetSlot(type, Py_tp_free))(object);
    Py_DECREF(type);
}

static bool fits(const struct array *planned, const struct array *a, const char *name) {
    bool same = planned->dtype == a->dtype && planned->ndim == a->ndim;
    for (int i = 0; same && i < a->ndim; i++)
        same = planned->shape[i] == a->shape[i] && (a->shape[i] == 1 || planned->stride[i] == a->stride[i]);
    if (!same && (!planned->dtype || !a->dtype)) {
        PyErr_Format(PyExc_ValueError, "%s: it is %s; planned was %s", name, a->dtype ? "given" : "absent",
                     planned->dtype ? "one" : "none");
        return false;
    }
    if (!same)
        PyErr_Format(PyExc_ValueError, "%s: it is %s of shape %s with strides of %s bytes; planned was %s %s, %s", name,
                     dtype_name(a->dtype), shape_of(a->ndim, a->shape).text, shape_of(a->ndim, a->stride).text,
                     dtype_name(planned->dtype), shape_of(planned->ndim, planned->shape).text,
                     shape_of(planned->ndim, planned->stride).text);
    return same;
}

static PyObject *bind_and_run(const struct plan_object *self, const struct array *arrays) {
    rapt_plan plan = self->plan;
    rapt_message message;
    rapt_bindings b = RAPT_BINDINGS_INIT;
    rapt_buffer *const buffers[BOUND_ARRAYS] = {&b.query, &b.key,  &b.value, &b.out,
                                                &b.mask,  &b.bias, &b.lse,   &b.weights};
    for (int i = 0; i < BOUND_ARRAYS; i++)
        buffers[i]->data = arrays[i].data;
    b.alibi_slopes = self->call.desc.alibi_slopes;
    b.sinks = self->call.desc.sinks;
    rapt_status status = rapt_plan_bind(&plan, &b, &message);
    if (status == RAPT_OK)
        status = run_plan(&plan, self->call.threads, self->call.multiplications);
    return status == RAPT_OK ? Py_NewRef(Py_None) : raise_of_call(status, &message, &self->call);
}

/* run(query, key, value, out, mask, bias, lse, weights) */
static PyObject *plan_run(PyObject *object, PyObject *const *arguments, Py_ssize_t count) {
    const struct plan_object *self = (const struct plan_object *)object;
    struct array arrays[BOUND_ARRAYS];
    PyObject *result = NULL;
    bool read = count == BOUND_ARRAYS;
    memset(arrays, 0, sizeof arrays);
    if (!read)
        PyErr_Format(PyExc_TypeError, "%d arguments are required, not %zd", BOUND_ARRAYS, count);
    for (int i = 0; read && i < BOUND_ARRAYS; i++)
        read = array_read(&arrays[i], arguments[i], names[i], i == OUT || i == LSE || i == WEIGHTS) &&
               fits(&self->call.arrays[i], &arrays[i], names[i]);
    if (read)
        result = bind_and_run(self, arrays);
    for (int i = 0; i < BOUND_ARRAYS; i++)
        array_release(&arrays[i]);
    return result;
}

bool add_plan_type(PyObject *module) {
    static PyMethodDef methods[] = {
        {"run", (PyCFunction)(void (*)(void))plan_run, METH_FASTCALL, "Runs with other arrays."}, {0}};
    PyType_Slot slots[] = {
        {Py_tp_new, (void *)plan_new}, {Py_tp_dealloc, (void *)plan_dealloc}, {Py_tp_methods, methods}, {0, NULL}};
    PyType_Spec spec = {"rapt._core.Plan", sizeof(struct plan_object), 0, Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE,
                        slots};
    PyObject *type = PyType_FromSpec(&spec);
    return type && PyModule_AddObjectRef(module, "Plan", type) == 0;
}
