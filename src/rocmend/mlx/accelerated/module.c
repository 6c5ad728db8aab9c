/* Recording in C. One translation unit, so that the compiler sees all of it; see the files for what they hold. */

#include "types.h"

#include "node.c"

#include "memo.c"

#include "index.c"

#include "tape.c"

/* -- Memo as an object: a function that binds as a method and has the attributes of what it stands before */

static int memo_traverse(PyObject *object, visitproc visit, void *arg)
{
    Memo *self = (Memo *)object;
    Py_VISIT(Py_TYPE(object));
    Py_VISIT(self->function);
    for (Py_ssize_t i = 0; i < self->size; i++) {
        Entry *entry = self->table[i];
        if (!entry) continue;
        Py_VISIT(entry->stream);
        for (int k = 0; k < entry->args; k++) {
            Py_VISIT(entry->part[k]);
            Py_VISIT(entry->dtype[k]);
        }
        for (int k = 0; k < entry->made; k++) {
            Made *made = &entry->node[k];
            Py_VISIT(made->op); Py_VISIT(made->attrs); Py_VISIT(made->dyn); Py_VISIT(made->shape);
            Py_VISIT(made->dtype); Py_VISIT(made->outputs);
        }
    }
    return 0;
}

static int memo_clear(PyObject *object)
{
    empty((Memo *)object);
    return 0;
}

static void memo_dealloc(PyObject *object)
{
    PyTypeObject *type = Py_TYPE(object);
    PyObject_GC_UnTrack(object);
    empty((Memo *)object);
    Py_CLEAR(((Memo *)object)->function);
    Py_CLEAR(((Memo *)object)->varying);
    PyObject_GC_Del(object);
    Py_DECREF(type);
}

static PyObject *memo_bind(PyObject *self, PyObject *instance, PyObject *Py_UNUSED(owner))
{
    return instance && instance != Py_None ? PyMethod_New(self, instance) : Py_NewRef(self);
}

/* Its own are ``__wrapped__`` and what the interpreter needs; all else is the function's. */
static PyObject *memo_getattr(PyObject *object, PyObject *name)
{
    static const char *const own[] = {"__class__", "__call__", "__get__", "__hash__", "__eq__", "__ne__", NULL};
    PyObject *function = ((Memo *)object)->function;
    if (!PyUnicode_CompareWithASCIIString(name, "__wrapped__")) return Py_NewRef(function);
    if (!PyUnicode_CompareWithASCIIString(name, "__reduce_ex__") ||
        !PyUnicode_CompareWithASCIIString(name, "__reduce__"))
        return PyObject_GenericGetAttr(object, name);
    for (int i = 0; own[i]; i++)
        if (!PyUnicode_CompareWithASCIIString(name, own[i])) return PyObject_GenericGetAttr(object, name);
    return PyObject_GetAttr(function, name);
}

static int memo_setattr(PyObject *object, PyObject *name, PyObject *value)
{
    return PyObject_SetAttr(((Memo *)object)->function, name, value);
}

/* Pickled, as a function is, by its name. */
static PyObject *memo_reduce(PyObject *object, PyObject *Py_UNUSED(protocol))
{
    return PyObject_GetAttrString(((Memo *)object)->function, "__qualname__");
}

static PyObject *memo_repr(PyObject *object)
{
    return PyObject_Repr(((Memo *)object)->function);
}

static PyObject *memo_copy(PyObject *object, PyObject *Py_UNUSED(memo))
{
    return Py_NewRef(object);
}

static PyMethodDef memo_methods[] = {
    {"__reduce__", memo_reduce, METH_NOARGS, NULL}, {"__reduce_ex__", memo_reduce, METH_O, NULL},
    {"__copy__", memo_copy, METH_NOARGS, NULL}, {"__deepcopy__", memo_copy, METH_O, NULL}, {NULL},
};

static PyMemberDef memo_members[] = {
    {"__vectorcalloffset__", T_PYSSIZET, offsetof(Memo, call), READONLY, NULL}, {NULL},
};

/* ``help`` reads it past the attributes above. */
static PyObject *memo_doc(PyObject *object, void *Py_UNUSED(closure))
{
    return PyObject_GetAttrString(((Memo *)object)->function, "__doc__");
}

static PyGetSetDef memo_getset[] = {{"__doc__", memo_doc, NULL, NULL, NULL}, {NULL}};

static PyType_Slot memo_slots[] = {
    {Py_tp_dealloc, memo_dealloc}, {Py_tp_traverse, memo_traverse}, {Py_tp_clear, memo_clear},
    {Py_tp_call, PyVectorcall_Call}, {Py_tp_descr_get, memo_bind}, {Py_tp_getattro, memo_getattr},
    {Py_tp_setattro, memo_setattr}, {Py_tp_repr, memo_repr}, {Py_tp_members, memo_members},
    {Py_tp_methods, memo_methods}, {Py_tp_getset, memo_getset}, {0, NULL},
};

static PyType_Spec memo_spec = {
    "rocmend.mlx.accelerated.Function", sizeof(Memo), 0,
    Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_HAVE_VECTORCALL | Py_TPFLAGS_METHOD_DESCRIPTOR |
        Py_TPFLAGS_DISALLOW_INSTANTIATION,
    memo_slots,
};

static PyObject *standing_before(PyObject *function, PyObject *varying, vectorcallfunc call)
{
    if (!PyCallable_Check(function)) return PyErr_Format(PyExc_TypeError, "[memo] expected a function.");
    Memo *made = PyObject_GC_New(Memo, MemoType);
    if (!made) return NULL;
    made->call = call;
    made->function = Py_NewRef(function);
    made->varying = varying ? Py_NewRef(varying) : NULL;
    if (varying) PyUnicode_InternInPlace(&made->varying);
    made->table = NULL;
    made->size = made->used = 0;
    made->busy = 0;
    made->age = age;
    PyObject_GC_Track((PyObject *)made);
    return (PyObject *)made;
}

/* memo(function, varying=None): the function, with a memory of what it records. ``varying`` is a keyword argument whose
   integer becomes ``dyn`` of the one node that has it, and decides nothing else. */
static PyObject *memo(PyObject *Py_UNUSED(module), PyObject *args)
{
    PyObject *function, *varying = NULL;
    if (!PyArg_ParseTuple(args, "O|U:memo", &function, &varying)) return NULL;
    return standing_before(function, varying, memo_call);
}

static PyObject *reading(PyObject *Py_UNUSED(module), PyObject *function)
{
    return standing_before(function, NULL, get_call);
}

static PyObject *writing(PyObject *Py_UNUSED(module), PyObject *function)
{
    return standing_before(function, NULL, set_call);
}

static PyObject *forget(PyObject *Py_UNUSED(module), PyObject *Py_UNUSED(nothing))
{
    age++;
    Py_RETURN_NONE;
}

static PyObject *set_current(PyObject *Py_UNUSED(module), PyObject *current)
{
    Py_XSETREF(Current, Py_NewRef(current));
    Py_RETURN_NONE;
}

/* bind(array, Dtype): the class of handles and that of element types. */
static PyObject *bind(PyObject *Py_UNUSED(module), PyObject *args)
{
    PyTypeObject *array, *dtype;
    if (!PyArg_ParseTuple(args, "O!O!:bind", &PyType_Type, &array, &PyType_Type, &dtype)) return NULL;
    if (!PyType_IsSubtype(array, HandleType)) return PyErr_Format(PyExc_TypeError, "[bind] expected a Handle.");
    Py_XSETREF(ArrayType, (PyTypeObject *)Py_NewRef((PyObject *)array));
    Py_XSETREF(DtypeType, (PyTypeObject *)Py_NewRef((PyObject *)dtype));
    Py_RETURN_NONE;
}

/* close(types): types of attributes whose values refer to no handle. */
static PyObject *close_types(PyObject *Py_UNUSED(module), PyObject *types)
{
    if (!PyTuple_CheckExact(types)) return PyErr_Format(PyExc_TypeError, "[close] expected a tuple of types.");
    Py_XSETREF(Closed, Py_NewRef(types));
    Py_RETURN_NONE;
}

/* slices(Slice, SliceUpdate): the two operations that boxes record. */
static PyObject *slices(PyObject *Py_UNUSED(module), PyObject *args)
{
    PyObject *slice, *update;
    if (!PyArg_ParseTuple(args, "OO:slices", &slice, &update)) return NULL;
    Py_XSETREF(SliceOp, Py_NewRef(slice));
    Py_XSETREF(SliceUpdateOp, Py_NewRef(update));
    Py_RETURN_NONE;
}

static PyMethodDef functions[] = {
    {"bind", bind, METH_VARARGS, NULL},
    {"close", close_types, METH_O, NULL},
    {"forget", forget, METH_NOARGS, NULL},
    {"reading", reading, METH_O, NULL},
    {"holding", (PyCFunction)(void (*)(void))holding, METH_FASTCALL, NULL},
    {"memo", memo, METH_VARARGS, NULL},
    {"record", (PyCFunction)(void (*)(void))record, METH_FASTCALL | METH_KEYWORDS, NULL},
    {"scan", (PyCFunction)(void (*)(void))scan, METH_FASTCALL, NULL},
    {"seen", (PyCFunction)(void (*)(void))seen, METH_FASTCALL, NULL},
    {"set_current", set_current, METH_O, NULL},
    {"writing", writing, METH_O, NULL},
    {"slices", slices, METH_VARARGS, NULL},
    {"wrap", wrap, METH_O, NULL},
    {NULL},
};

static struct PyModuleDef definition = {
    PyModuleDef_HEAD_INIT, "rocmend_mlx_record", "Recording operations of rocmend.mlx.", -1, functions,
};

PyMODINIT_FUNC PyInit_rocmend_mlx_record(void)
{
    PyObject *module = PyModule_Create(&definition);
    if (!module) return NULL;
    NodeType = (PyTypeObject *)PyType_FromSpec(&node_spec);
    HandleType = (PyTypeObject *)PyType_FromSpec(&handle_spec);
    StateType = (PyTypeObject *)PyType_FromSpec(&state_spec);
    MemoType = (PyTypeObject *)PyType_FromSpec(&memo_spec);
    assign = PyUnicode_InternFromString("assign");
    if (!NodeType || !HandleType || !StateType || !MemoType || !assign ||
        PyModule_AddObjectRef(module, "Node", (PyObject *)NodeType) < 0 ||
        PyModule_AddObjectRef(module, "Handle", (PyObject *)HandleType) < 0 ||
        PyModule_AddObjectRef(module, "StateBase", (PyObject *)StateType) < 0 ||
        PyModule_AddObjectRef(module, "Function", (PyObject *)MemoType) < 0) {
        Py_DECREF(module);
        return NULL;
    }
    return module;
}
