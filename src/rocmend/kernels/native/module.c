/* Captured calls, replayed: see replay.c, and what that includes. */

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <pthread.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "replay.c"

/* What stands for the driver's launch where only the rest is measured. */
static int nothing(const Config *config, void *function, void **parameters, void **extra)
{
    (void)config, (void)function, (void)parameters, (void)extra;
    return 0;
}

static struct PyModuleDef definition = {
    PyModuleDef_HEAD_INIT, .m_name = "rocmend_kernels_replay", .m_doc = "Captured calls.", .m_size = -1};

PyMODINIT_FUNC PyInit_rocmend_kernels_replay(void)
{
    name_enter = PyUnicode_InternFromString("launch_enter_hook");
    name_exit = PyUnicode_InternFromString("launch_exit_hook");
    name_calls = PyUnicode_InternFromString("calls");
    name_hooks = PyUnicode_InternFromString("pre_run_hooks");
    name_zero = PyUnicode_InternFromString("zero_");
    name_poison = PyUnicode_InternFromString("_poison");
    if (!name_enter || !name_exit || !name_calls || !name_hooks || !name_zero || !name_poison)
        return NULL;
    PyTypeObject *types[] = {&ReplayType, &ProductType, &HandleType, &PlanType};
    const char *called[] = {"Replay", "Product", "DnnHandle", "DnnPlan"};
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        if (PyType_Ready(types[i]) < 0)
            return NULL;
    PyObject *module = PyModule_Create(&definition);
    PyObject *address = PyLong_FromVoidPtr((void *)nothing);
    if (module && (!address || PyModule_AddObjectRef(module, "nothing", address) < 0))
        Py_CLEAR(module);
    for (size_t i = 0; module && i < sizeof types / sizeof *types; i++)
        if (PyModule_AddObjectRef(module, called[i], (PyObject *)types[i]) < 0)
            Py_CLEAR(module);
    Py_XDECREF(address);
    return module;
}
