/* SPDX-License-Identifier: MIT
 * The module rapt._core, for the package's Python files. Arguments are positional and complete here; names, defaults
 * and documentation are in Python. */
#include "call.h"
#include "threads.h"

/* (version, numerics version, instruction set, CPU features, threads, how they run, available instruction sets) */
static PyObject *core_info(PyObject *module, PyObject *unused) {
    char features[512];
    rapt_isa isa = RAPT_ISA_AUTO;
    (void)module;
    (void)unused;
    if (rapt_isa_chosen(&isa) != RAPT_OK)
        isa = RAPT_ISA_AUTO;
    rapt_cpu_features(features, sizeof features);
    PyObject *available = PyList_New(0);
    for (int i = 1; available && rapt_isa_name((rapt_isa)i); i++)
        if (rapt_isa_available((rapt_isa)i)) {
            PyObject *name = PyUnicode_FromString(rapt_isa_name((rapt_isa)i));
            if (!name || PyList_Append(available, name) != 0)
                Py_CLEAR(available);
            Py_XDECREF(name);
        }
    if (!available)
        return NULL;
    return Py_BuildValue("(sizsisN)", rapt_version(), rapt_numerics_version(), rapt_isa_name(isa), features,
                         threads_usual(), threads_kind(), available);
}

static PyObject *core_row_bytes(PyObject *module, PyObject *arguments) {
    int dtype;
    long long dim;
    (void)module;
    if (!PyArg_ParseTuple(arguments, "iL", &dtype, &dim))
        return NULL;
    return PyLong_FromLongLong(rapt_row_bytes(dtype, dim));
}

static PyMethodDef methods[] = {
    {"attention", (PyCFunction)(void (*)(void))core_attention, METH_FASTCALL, "One call."},
    {"append", (PyCFunction)(void (*)(void))core_append, METH_FASTCALL, "Writes rows into pages."},
    {"rotate", (PyCFunction)(void (*)(void))core_rotate, METH_FASTCALL, "Rotates queries."},
    {"info", core_info, METH_NOARGS, "What runs here."},
    {"row_bytes", core_row_bytes, METH_VARARGS, "Bytes of a row of a storage type."},
    {"seconds_of_call", core_seconds_of_call, METH_VARARGS, "What a call takes without Python."},
    {0}};

/* ISAS: numbers of all named instruction sets. */
static bool add_isas(PyObject *module) {
    PyObject *isas = PyDict_New();
    bool added = isas != NULL;
    for (int i = 1; added && rapt_isa_name((rapt_isa)i); i++) {
        PyObject *number = PyLong_FromLong(i);
        added = number && PyDict_SetItemString(isas, rapt_isa_name((rapt_isa)i), number) == 0;
        Py_XDECREF(number);
    }
    added = added && PyModule_AddObjectRef(module, "ISAS", isas) == 0;
    Py_XDECREF(isas);
    return added;
}

static int begin(PyObject *module) { return add_plan_type(module) && add_isas(module) ? 0 : -1; }

static PyModuleDef_Slot slots[] = {{Py_mod_exec, (void *)begin}, {0, NULL}};

static struct PyModuleDef definition = {
    .m_base = PyModuleDef_HEAD_INIT, .m_name = "rapt._core", .m_methods = methods, .m_slots = slots};

PyMODINIT_FUNC PyInit__core(void); /* no header has it */
PyMODINIT_FUNC PyInit__core(void) { return PyModuleDef_Init(&definition); }
