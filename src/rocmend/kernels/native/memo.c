/* Finding what a call of a kind that was seen before is carried out with: repeated.py, for the common case.

   Kinds are kept in a dictionary that Python fills: by options and the first tensor's shape, some of (which tensors are
   there, torch's comparison with the tensors of that kind, what computes). What is not found there is Python's to find. */

typedef struct {
    PyObject_HEAD
    vectorcallfunc call;
    PyObject *recent, *missing, *grad_enabled;
} Memo;

#define MOST 63 /* a bit for each tensor, and one above them */

static PyObject *name_grad, *name_shape;

/* Return whether the call needs a gradient: 1, 0, or -1 with an error set. */
static int needs_gradient(Memo *self, PyObject *const *tensors, Py_ssize_t count)
{
    PyObject *enabled = PyObject_CallNoArgs(self->grad_enabled);
    if (!enabled)
        return -1;
    int truth = enabled == Py_True;
    Py_DECREF(enabled);
    for (Py_ssize_t i = 0; truth && i < count; i++) {
        PyObject *one = PyObject_GetAttr(tensors[i], name_grad);
        if (!one)
            return -1;
        Py_DECREF(one);
        if (one == Py_True)
            return 1;
    }
    return 0;
}

/* Return what computes the call, or NULL, perhaps with an error set. The reference is the caller's. */
static PyObject *found(Memo *self, PyObject *options, PyObject *const *tensors, Py_ssize_t count, uint64_t there)
{
    if (!count)
        return NULL;
    PyObject *shape = PyObject_GetAttr(tensors[0], name_shape);
    PyObject *key = shape ? PyTuple_Pack(2, options, shape) : NULL;
    Py_XDECREF(shape);
    if (!key)
        return NULL;
    PyObject *kinds = Py_XNewRef(PyDict_GetItemWithError(self->recent, key)), *value = NULL;
    Py_DECREF(key);
    if (!kinds)
        return NULL;
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(kinds) && !value; i++) {
        PyObject *kind = PyTuple_GET_ITEM(kinds, i);
        if (PyLong_AsUnsignedLongLong(PyTuple_GET_ITEM(kind, 0)) != there)
            continue;
        PyObject *alike = PyObject_Vectorcall(PyTuple_GET_ITEM(kind, 1), tensors, count, NULL);
        if (!alike)
            break;
        Py_DECREF(alike);
        if (alike == Py_True)
            value = Py_NewRef(PyTuple_GET_ITEM(kind, 2));
    }
    Py_DECREF(kinds);
    return value;
}

/* Called with a tuple of tensors and None, a tuple of options, and perhaps one of numbers. */
static PyObject *memo_call(PyObject *object, PyObject *const *args, size_t flags, PyObject *names)
{
    Memo *self = (Memo *)object;
    Py_ssize_t given = PyVectorcall_NARGS(flags);
    if (given < 2 || given > 3 || (names && PyTuple_GET_SIZE(names)) || !PyTuple_Check(args[0])
        || !PyTuple_Check(args[1]) || !PyTuple_Check(args[given - 1]) || PyTuple_GET_SIZE(args[0]) > MOST) {
        PyErr_SetString(PyExc_TypeError, "expected tuples of up to 63 tensors, of options and of numbers.");
        return NULL;
    }
    PyObject *tensors[MOST], *value = NULL;
    Py_ssize_t count = 0;
    uint64_t there = (uint64_t)1 << PyTuple_GET_SIZE(args[0]);
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(args[0]); i++) {
        PyObject *one = PyTuple_GET_ITEM(args[0], i);
        if (one != Py_None) {
            tensors[count++] = one;
            there |= (uint64_t)1 << i;
        }
    }
    int gradient = needs_gradient(self, tensors, count);
    if (!gradient)
        value = found(self, args[1], tensors, count, there);
    if (gradient < 0 || PyErr_Occurred())
        return NULL;
    if (!value)
        return PyObject_Vectorcall(self->missing, args, given, NULL);
    PyObject *all = given == 3 ? PySequence_Concat(args[0], args[2]) : Py_NewRef(args[0]);
    PyObject *out = all ? PyObject_CallOneArg(value, all) : NULL;
    Py_XDECREF(all);
    Py_DECREF(value);
    return out;
}

static PyObject *memo_new(PyTypeObject *type, PyObject *args, PyObject *names)
{
    PyObject *recent, *missing, *grad_enabled;
    (void)names;
    if (!PyArg_ParseTuple(args, "O!OO", &PyDict_Type, &recent, &missing, &grad_enabled))
        return NULL;
    Memo *self = (Memo *)type->tp_alloc(type, 0);
    if (!self)
        return NULL;
    self->call = memo_call;
    self->recent = Py_NewRef(recent);
    self->missing = Py_NewRef(missing);
    self->grad_enabled = Py_NewRef(grad_enabled);
    return (PyObject *)self;
}

static int memo_traverse(Memo *self, visitproc visit, void *arg)
{
    Py_VISIT(self->recent);
    Py_VISIT(self->missing);
    Py_VISIT(self->grad_enabled);
    return 0;
}

static int memo_clear(Memo *self)
{
    Py_CLEAR(self->recent);
    Py_CLEAR(self->missing);
    Py_CLEAR(self->grad_enabled);
    return 0;
}

static void memo_dealloc(Memo *self)
{
    PyObject_GC_UnTrack(self);
    memo_clear(self);
    Py_TYPE(self)->tp_free((PyObject *)self);
}

static PyTypeObject MemoType = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "rocmend_kernels_replay.Memo",
    .tp_basicsize = sizeof(Memo),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_HAVE_VECTORCALL,
    .tp_vectorcall_offset = offsetof(Memo, call),
    .tp_call = PyVectorcall_Call,
    .tp_new = memo_new,
    .tp_traverse = (traverseproc)memo_traverse,
    .tp_clear = (inquiry)memo_clear,
    .tp_dealloc = (destructor)memo_dealloc,
    .tp_doc = "Finds what a call is carried out with.",
};
