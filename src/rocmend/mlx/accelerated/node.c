/* Nodes, handles, states, and recording an operation: see node.py and array.py for what they mean. */

#include "types.h"

/* -- Node */

static int node_traverse(PyObject *self, visitproc visit, void *arg)
{
    Node *n = (Node *)self;
    Py_VISIT(Py_TYPE(self));
    Py_VISIT(n->op); Py_VISIT(n->inputs); Py_VISIT(n->attrs); Py_VISIT(n->dyn); Py_VISIT(n->shape);
    Py_VISIT(n->dtype); Py_VISIT(n->stream); Py_VISIT(n->data); Py_VISIT(n->outputs);
    return 0;
}

static int node_clear(PyObject *self)
{
    Node *n = (Node *)self;
    Py_CLEAR(n->op); Py_CLEAR(n->inputs); Py_CLEAR(n->attrs); Py_CLEAR(n->dyn); Py_CLEAR(n->shape);
    Py_CLEAR(n->dtype); Py_CLEAR(n->stream); Py_CLEAR(n->data); Py_CLEAR(n->outputs);
    return 0;
}

/* A chain of nodes may be as long as a program: tuples and nodes take turns in the interpreter's trashcan. */
static void node_dealloc(PyObject *self)
{
    PyObject_GC_UnTrack(self);
    Py_TRASHCAN_BEGIN(self, node_dealloc)
    PyTypeObject *type = Py_TYPE(self);
    if (((Node *)self)->weakrefs) PyObject_ClearWeakRefs(self);
    node_clear(self);
    PyObject_GC_Del(self);
    Py_DECREF(type);
    Py_TRASHCAN_END
}

static PyObject *Closed; /* a tuple of types whose values refer to no handle */

/* Whether attributes can lead to no handle, and so not to a node that was made after them.

   A node refers to its inputs, which are older, to values, and to its attributes. Only through attributes that hold a
   function of the user can there be a cycle. All other nodes are hidden from the collector of garbage: a step leaves
   thousands of them, which it would walk through again and again, and after some hundred steps everything else too. */
static int closed(PyObject *attrs)
{
    if (attrs == Py_None || PyLong_Check(attrs) || PyFloat_CheckExact(attrs) || PyUnicode_CheckExact(attrs) ||
        Py_TYPE(attrs) == DtypeType)
        return 1;
    if (PyTuple_Check(attrs)) {
        for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(attrs); i++)
            if (!closed(PyTuple_GET_ITEM(attrs, i))) return 0;
        return 1;
    }
    for (Py_ssize_t i = 0; Closed && i < PyTuple_GET_SIZE(Closed); i++)
        if (PyTuple_GET_ITEM(Closed, i) == (PyObject *)Py_TYPE(attrs)) return 1;
    return 0;
}

static char is_open(PyObject *inputs, PyObject *attrs)
{
    if (!closed(attrs)) return 1;
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(inputs); i++) {
        Node *input = (Node *)PyTuple_GET_ITEM(inputs, i);
        if (!Py_IS_TYPE((PyObject *)input, NodeType) || (input->open && input->data == Py_None)) return 1;
    }
    return 0;
}

static PyObject *new_node(PyObject *op, PyObject *inputs, PyObject *attrs, PyObject *dyn, PyObject *shape,
                          PyObject *dtype, PyObject *stream, PyObject *data, Py_ssize_t pos)
{
    Node *n = PyObject_GC_New(Node, NodeType);
    if (!n) return NULL;
    n->op = Py_NewRef(op); n->inputs = Py_NewRef(inputs); n->attrs = Py_NewRef(attrs); n->dyn = Py_NewRef(dyn);
    n->shape = Py_NewRef(shape); n->dtype = Py_NewRef(dtype); n->stream = Py_NewRef(stream); n->data = Py_NewRef(data);
    n->outputs = NULL;
    n->weakrefs = NULL;
    n->pos = pos;
    n->open = is_open(inputs, attrs);
    if (n->open || data != Py_None || op == Py_None) PyObject_GC_Track((PyObject *)n);
    else PyObject_GC_UnTrack(inputs);
    return (PyObject *)n;
}

static PyObject *node_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"op", "inputs", "attrs", "dyn", "shape", "dtype", "stream", "data", "pos", NULL};
    PyObject *op, *inputs, *attrs, *dyn, *shape, *dtype, *stream, *data;
    Py_ssize_t pos;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "OO!OOOOOOn:Node", names, &op, &PyTuple_Type, &inputs, &attrs,
                                     &dyn, &shape, &dtype, &stream, &data, &pos))
        return NULL;
    return new_node(op, inputs, attrs, dyn, shape, dtype, stream, data, pos);
}

static PyMemberDef node_members[] = {
    {"op", T_OBJECT_EX, offsetof(Node, op), 0, NULL},
    {"inputs", T_OBJECT_EX, offsetof(Node, inputs), 0, NULL},
    {"attrs", T_OBJECT_EX, offsetof(Node, attrs), 0, NULL},
    {"dyn", T_OBJECT_EX, offsetof(Node, dyn), 0, NULL},
    {"shape", T_OBJECT_EX, offsetof(Node, shape), 0, NULL},
    {"dtype", T_OBJECT_EX, offsetof(Node, dtype), 0, NULL},
    {"stream", T_OBJECT_EX, offsetof(Node, stream), 0, NULL},
    {"data", T_OBJECT_EX, offsetof(Node, data), 0, NULL},
    {"outputs", T_OBJECT_EX, offsetof(Node, outputs), 0, NULL},
    {"pos", T_PYSSIZET, offsetof(Node, pos), 0, NULL},
    {"__weaklistoffset__", T_PYSSIZET, offsetof(Node, weakrefs), READONLY, NULL},
    {NULL},
};

static PyType_Slot node_slots[] = {
    {Py_tp_new, node_new}, {Py_tp_dealloc, node_dealloc}, {Py_tp_traverse, node_traverse},
    {Py_tp_clear, node_clear}, {Py_tp_members, node_members}, {0, NULL},
};

static PyType_Spec node_spec = {
    "rocmend.mlx.node.Node", sizeof(Node), 0, Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC, node_slots,
};

/* -- Handle: the base of ``array`` */

static int handle_traverse(PyObject *self, visitproc visit, void *arg)
{
    Py_VISIT(Py_TYPE(self));
    Py_VISIT(((Handle *)self)->node);
    return 0;
}

static int handle_clear(PyObject *self)
{
    Py_CLEAR(((Handle *)self)->node);
    return 0;
}

static void handle_dealloc(PyObject *self)
{
    PyTypeObject *type = Py_TYPE(self);
    PyObject_GC_UnTrack(self);
    handle_clear(self);
    type->tp_free(self);
    Py_DECREF(type);
}

static Node *node_of(PyObject *self)
{
    PyObject *node = ((Handle *)self)->node;
    if (node && Py_IS_TYPE(node, NodeType)) return (Node *)node;
    PyErr_SetString(PyExc_AttributeError, "_n");
    return NULL;
}

static PyObject *handle_shape(PyObject *self, void *Py_UNUSED(closure))
{
    Node *n = node_of(self);
    return n ? Py_NewRef(n->shape) : NULL;
}

static PyObject *handle_dtype(PyObject *self, void *Py_UNUSED(closure))
{
    Node *n = node_of(self);
    return n ? Py_NewRef(n->dtype) : NULL;
}

static PyObject *handle_ndim(PyObject *self, void *Py_UNUSED(closure))
{
    Node *n = node_of(self);
    if (!n) return NULL;
    Py_ssize_t length = PyObject_Length(n->shape);
    return length < 0 ? NULL : PyLong_FromSsize_t(length);
}

static PyMemberDef handle_members[] = {{"_n", T_OBJECT_EX, offsetof(Handle, node), 0, NULL}, {NULL}};

static PyGetSetDef handle_getset[] = {
    {"shape", handle_shape, NULL, "Sizes of the axes.", NULL},
    {"dtype", handle_dtype, NULL, "Element type.", NULL},
    {"ndim", handle_ndim, NULL, "Number of axes.", NULL},
    {NULL},
};

/* The memory of an array, as memoryview and numpy ask for it. Python classes can lend theirs from 3.12 on; and even
   there not under the name of a type that Python does not know. */
static int handle_getbuffer(PyObject *self, Py_buffer *view, int flags)
{
    view->obj = NULL;
    PyObject *found = PyObject_CallMethod(self, "_buffer", NULL);
    if (!found) return -1;
    PyObject *whole, *foreign; /* an object that lends the memory; whether it is of a type that it has another name for */
    if (!PyArg_ParseTuple(found, "OO", &whole, &foreign) || PyObject_GetBuffer(whole, view, flags) < 0) {
        Py_DECREF(found);
        return -1;
    }
    if (foreign == Py_True && view->format) view->format = "bfloat16";
    Py_DECREF(found);
    return 0;
}

static PyType_Slot handle_slots[] = {
    {Py_tp_dealloc, handle_dealloc}, {Py_tp_traverse, handle_traverse}, {Py_tp_clear, handle_clear},
    {Py_tp_members, handle_members}, {Py_tp_getset, handle_getset},
    {Py_bf_getbuffer, handle_getbuffer}, {0, NULL},
};

static PyType_Spec handle_spec = {
    "rocmend.mlx.array.Handle", sizeof(Handle), 0,
    Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_GC, handle_slots,
};

static PyObject *new_handle(PyObject *node)
{
    if (!node) return NULL;
    PyObject *handle = ArrayType->tp_alloc(ArrayType, 0);
    if (!handle) {
        Py_DECREF(node);
        return NULL;
    }
    ((Handle *)handle)->node = node;
    return handle;
}

/* -- State: the base of node.State */

static int state_traverse(PyObject *self, visitproc visit, void *arg)
{
    Py_VISIT(Py_TYPE(self));
    Py_VISIT(((State *)self)->tape);
    Py_VISIT(((State *)self)->stream);
    return 0;
}

static int state_clear(PyObject *self)
{
    Py_CLEAR(((State *)self)->tape);
    Py_CLEAR(((State *)self)->stream);
    return 0;
}

static void state_dealloc(PyObject *self)
{
    PyTypeObject *type = Py_TYPE(self);
    PyObject_GC_UnTrack(self);
    if (thread_state == self) thread_state = NULL;
    state_clear(self);
    type->tp_free(self);
    Py_DECREF(type);
}

static PyMemberDef state_members[] = {
    {"tape", T_OBJECT_EX, offsetof(State, tape), 0, NULL},
    {"stream", T_OBJECT_EX, offsetof(State, stream), 0, NULL},
    {"tracing", T_LONG, offsetof(State, tracing), 0, NULL},
    {NULL},
};

static PyType_Slot state_slots[] = {
    {Py_tp_dealloc, state_dealloc}, {Py_tp_traverse, state_traverse}, {Py_tp_clear, state_clear},
    {Py_tp_members, state_members}, {0, NULL},
};

static PyType_Spec state_spec = {
    "rocmend.mlx.node.StateBase", sizeof(State), 0,
    Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_GC, state_slots,
};

static State *state_here(void)
{
    State *found = (State *)thread_state;
    if (!found) {
        PyObject *state = PyObject_GetAttrString(Current, "state");
        if (!state) return NULL;
        thread_state = state;
        Py_DECREF(state); /* the thread holds it */
        found = (State *)state;
    }
    if (!found->tape || !found->stream || !PyList_Check(found->tape)) {
        PyErr_SetString(PyExc_RuntimeError, "[record] this thread has no tape.");
        return NULL;
    }
    return found;
}

/* -- wrap, record */

static PyObject *wrap(PyObject *Py_UNUSED(module), PyObject *node)
{
    if (!Py_IS_TYPE(node, NodeType)) return PyErr_Format(PyExc_TypeError, "[wrap] expected a node, got %R.", node);
    return new_handle(Py_NewRef(node));
}

static PyObject *append(State *state, PyObject *node)
{
    if (node && PyList_Append(state->tape, node) < 0) Py_CLEAR(node);
    return node;
}

static PyObject *record(PyObject *Py_UNUSED(module), PyObject *const *args, Py_ssize_t count, PyObject *names)
{
    static const char *const order[] = {"op", "inputs", "shape", "dtype", "attrs", "dyn", "stream"};
    PyObject *given[7] = {NULL, NULL, NULL, NULL, Py_None, Py_None, Py_None};
    if (count > 7) return PyErr_Format(PyExc_TypeError, "[record] takes 7 arguments, got %zd.", count);
    for (Py_ssize_t i = 0; i < count; i++) given[i] = args[i];
    for (Py_ssize_t i = 0; names && i < PyTuple_GET_SIZE(names); i++) {
        PyObject *name = PyTuple_GET_ITEM(names, i);
        int k = 0;
        while (k < 7 && PyUnicode_CompareWithASCIIString(name, order[k])) k++;
        if (k == 7 || k < count) return PyErr_Format(PyExc_TypeError, "[record] unexpected argument %R.", name);
        given[k] = args[count + i];
    }
    if (!given[3] || !given[2] || !given[1] || !given[0] || !PyTuple_Check(given[1]))
        return PyErr_Format(PyExc_TypeError, "[record] needs an operation, a tuple of nodes, a shape and a type.");
    State *state = state_here();
    if (!state) return NULL;
    PyObject *node = new_node(given[0], given[1], given[4], given[5], given[2], given[3],
                              given[6] == Py_None ? state->stream : given[6], Py_None, PyList_GET_SIZE(state->tape));
    return new_handle(append(state, node));
}
