/* What a plan depends on, read off a tape in one pass: see execute/trace.py. */

#include "types.h"

static PyObject *new_list(Py_ssize_t count, int *failed)
{
    PyObject *list = PyList_New(count);
    if (!list) *failed = 1;
    return list;
}

static PyObject *positions_of(PyObject *nodes)
{
    Py_ssize_t count = PyList_GET_SIZE(nodes);
    PyObject *found = PyList_New(count);
    for (Py_ssize_t i = 0; found && i < count; i++) {
        PyObject *node = PyList_GET_ITEM(nodes, i);
        PyObject *pos = Py_IS_TYPE(node, NodeType) ? PyLong_FromSsize_t(((Node *)node)->pos) : NULL;
        if (!pos) {
            Py_CLEAR(found);
            if (!PyErr_Occurred()) PyErr_SetString(PyExc_TypeError, "[scan] expected nodes.");
        }
        else PyList_SET_ITEM(found, i, pos);
    }
    return found;
}

/* scan(nodes, roots, alone): counts of references, of which ``alone`` is that of an object that only a list holds;
   links; shapes; the parts of the structure; and the links from before the tape that have no value yet. */
static PyObject *scan(PyObject *Py_UNUSED(module), PyObject *const *args, Py_ssize_t given)
{
    if (given != 3 || !PyList_Check(args[0]) || !PyList_Check(args[1]) || !PyLong_Check(args[2]))
        return PyErr_Format(PyExc_TypeError, "[scan] expected two lists of nodes and a number.");
    PyObject *nodes = args[0];
    Py_ssize_t count = PyList_GET_SIZE(nodes), total = 0, link = 0;
    Py_ssize_t base = PyLong_AsSsize_t(args[2]) - 1;
    for (Py_ssize_t i = 0; i < count; i++) {
        Node *node = (Node *)PyList_GET_ITEM(nodes, i);
        if (!Py_IS_TYPE((PyObject *)node, NodeType) || !PyTuple_Check(node->inputs))
            return PyErr_Format(PyExc_TypeError, "[scan] expected nodes.");
        total += PyTuple_GET_SIZE(node->inputs);
    }
    int failed = 0;
    PyObject *held = new_list(count, &failed), *links = new_list(total, &failed), *shapes = new_list(count, &failed);
    PyObject *ops = new_list(count, &failed), *counts = new_list(count, &failed), *attrs = new_list(count, &failed);
    PyObject *dtypes = new_list(count, &failed), *streams = new_list(count, &failed);
    PyObject *places = NULL, *roots = NULL, *result = NULL, *older = new_list(0, &failed);
    if (failed) goto done;
    /* first, as lists made below refer to nodes too */
    for (Py_ssize_t i = 0; i < count; i++) {
        PyObject *one = PyLong_FromSsize_t(Py_REFCNT(PyList_GET_ITEM(nodes, i)) + base);
        if (!one) goto done;
        PyList_SET_ITEM(held, i, one);
    }
    for (Py_ssize_t i = 0; i < count; i++) {
        Node *node = (Node *)PyList_GET_ITEM(nodes, i);
        Py_ssize_t width = PyTuple_GET_SIZE(node->inputs);
        for (Py_ssize_t k = 0; k < width; k++) {
            Node *input = (Node *)PyTuple_GET_ITEM(node->inputs, k);
            PyList_SET_ITEM(links, link++, Py_NewRef((PyObject *)input));
            if (Py_IS_TYPE((PyObject *)input, NodeType) && input->data == Py_None && input->pos < 0 &&
                PyList_Append(older, (PyObject *)input) < 0)
                goto done;
        }
        PyList_SET_ITEM(shapes, i, Py_NewRef(node->shape));
        PyList_SET_ITEM(ops, i, Py_NewRef(node->op));
        PyList_SET_ITEM(attrs, i, Py_NewRef(node->attrs));
        PyList_SET_ITEM(dtypes, i, Py_NewRef(node->dtype));
        PyList_SET_ITEM(streams, i, Py_NewRef(node->stream));
        PyObject *one = PyLong_FromSsize_t(width);
        if (!one) goto done;
        PyList_SET_ITEM(counts, i, one);
    }
    places = positions_of(links);
    roots = places ? positions_of(args[1]) : NULL;
    if (roots)
        result = Py_BuildValue("OOO(OOOOOOO)O", held, links, shapes, ops, counts, places, attrs, dtypes, streams,
                               roots, older);
done:
    Py_XDECREF(held); Py_XDECREF(links); Py_XDECREF(shapes); Py_XDECREF(ops); Py_XDECREF(counts);
    Py_XDECREF(attrs); Py_XDECREF(dtypes); Py_XDECREF(streams); Py_XDECREF(places); Py_XDECREF(roots);
    Py_XDECREF(older);
    return result;
}

/* holding(nodes, addresses): whether the values of nodes are the objects at these addresses. */
static PyObject *holding(PyObject *Py_UNUSED(module), PyObject *const *args, Py_ssize_t given)
{
    if (given != 2 || !PyTuple_Check(args[0]) || !PyList_Check(args[1]))
        return PyErr_Format(PyExc_TypeError, "[holding] expected a tuple of nodes and a list of addresses.");
    Py_ssize_t count = PyTuple_GET_SIZE(args[0]);
    if (count != PyList_GET_SIZE(args[1])) Py_RETURN_FALSE;
    for (Py_ssize_t i = 0; i < count; i++) {
        PyObject *node = PyTuple_GET_ITEM(args[0], i);
        void *address = PyLong_AsVoidPtr(PyList_GET_ITEM(args[1], i));
        if (!address && PyErr_Occurred()) return NULL;
        if (!Py_IS_TYPE(node, NodeType) || (void *)((Node *)node)->data != address) Py_RETURN_FALSE;
    }
    Py_RETURN_TRUE;
}

/* seen(nodes, pos): take nodes off the tape. */
static PyObject *seen(PyObject *Py_UNUSED(module), PyObject *const *args, Py_ssize_t given)
{
    if (given != 2 || !PyList_Check(args[0])) return PyErr_Format(PyExc_TypeError, "[seen] expected a list of nodes.");
    Py_ssize_t pos = PyLong_AsSsize_t(args[1]);
    if (pos == -1 && PyErr_Occurred()) return NULL;
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(args[0]); i++) {
        PyObject *node = PyList_GET_ITEM(args[0], i);
        if (Py_IS_TYPE(node, NodeType)) ((Node *)node)->pos = pos;
    }
    Py_RETURN_NONE;
}
