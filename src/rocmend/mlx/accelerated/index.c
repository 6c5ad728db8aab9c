/* Reading and writing a box of an array, as a cache of keys and values does at every token: ``x[..., a:b, :]``. What
   is no tuple of slices without steps and ``...`` is left to the Python functions; what these record for an index that
   stays the same is remembered. */

#include "types.h"

typedef struct {
    Py_ssize_t ndim, start[FAST_DIMS], stop[FAST_DIMS], size[FAST_DIMS];
} Box;

static PyObject *ones[FAST_DIMS + 1], *assigned[FAST_DIMS + 1]; /* attributes of Slice and SliceUpdate, by rank */
static PyObject *assign;

static PyObject *ones_of(Py_ssize_t ndim)
{
    if (!ones[ndim]) {
        PyObject *made = PyTuple_New(ndim);
        for (Py_ssize_t i = 0; made && i < ndim; i++) PyTuple_SET_ITEM(made, i, PyLong_FromLong(1));
        ones[ndim] = made;
    }
    return ones[ndim];
}

static PyObject *assigned_of(Py_ssize_t ndim)
{
    if (!assigned[ndim] && ones_of(ndim)) assigned[ndim] = PyTuple_Pack(2, ones[ndim], assign);
    return assigned[ndim];
}

static int bound(PyObject *given, Py_ssize_t otherwise, Py_ssize_t *to)
{
    if (given == Py_None) {
        *to = otherwise;
        return 1;
    }
    if (!PyLong_CheckExact(given)) return 0;
    int overflow;
    long number = PyLong_AsLongAndOverflow(given, &overflow);
    *to = number;
    return !overflow;
}

static int one_axis(Box *box, Py_ssize_t size, Py_ssize_t start, Py_ssize_t stop)
{
    if (box->ndim >= FAST_DIMS) return 0;
    PySlice_AdjustIndices(size, &start, &stop, 1);
    if (stop < start) stop = start;
    box->start[box->ndim] = start;
    box->stop[box->ndim] = stop;
    box->size[box->ndim++] = stop - start;
    return 1;
}

/* Understand an index; 0 where Python has to. */
static int box_of(Box *box, PyObject *shape, PyObject *index)
{
    if (!PyTuple_CheckExact(shape) || !PyTuple_CheckExact(index)) return 0;
    Py_ssize_t ndim = PyTuple_GET_SIZE(shape), count = PyTuple_GET_SIZE(index), sizes[FAST_DIMS];
    if (ndim > FAST_DIMS || count > ndim + 1) return 0;
    for (Py_ssize_t i = 0; i < ndim; i++) {
        PyObject *size = PyTuple_GET_ITEM(shape, i);
        if (!PyLong_CheckExact(size)) return 0;
        sizes[i] = PyLong_AsSsize_t(size);
        if (sizes[i] < 0) {
            PyErr_Clear();
            return 0;
        }
    }
    int dots = 0;
    box->ndim = 0;
    for (Py_ssize_t i = 0; i < count; i++) {
        PyObject *one = PyTuple_GET_ITEM(index, i);
        if (one == Py_Ellipsis) {
            if (dots++) return 0;
            for (Py_ssize_t left = ndim - (count - 1); left > 0; left--)
                if (!one_axis(box, sizes[box->ndim], 0, sizes[box->ndim])) return 0;
            continue;
        }
        if (!Py_IS_TYPE(one, &PySlice_Type) || box->ndim >= ndim) return 0;
        PySliceObject *slice = (PySliceObject *)one;
        Py_ssize_t start, stop;
        if (slice->step != Py_None || !bound(slice->start, 0, &start) || !bound(slice->stop, PY_SSIZE_T_MAX, &stop) ||
            !one_axis(box, sizes[box->ndim], start, stop))
            return 0;
    }
    while (box->ndim < ndim)
        if (!one_axis(box, sizes[box->ndim], 0, sizes[box->ndim])) return 0;
    return 1;
}

static PyObject *dyn_of(const Box *box)
{
    PyObject *dyn = PyTuple_New(2 * box->ndim);
    if (!dyn) return NULL;
    for (Py_ssize_t i = 0; i < 2 * box->ndim; i++) {
        PyObject *one = PyLong_FromSsize_t(i < box->ndim ? box->start[i] : box->stop[i - box->ndim]);
        if (!one) {
            Py_DECREF(dyn);
            return NULL;
        }
        PyTuple_SET_ITEM(dyn, i, one);
    }
    return dyn;
}

static int is_whole(const Box *box, PyObject *shape)
{
    for (Py_ssize_t i = 0; i < box->ndim; i++)
        if (PyLong_AsSsize_t(PyTuple_GET_ITEM(shape, i)) != box->size[i]) return 0;
    return 1;
}

static PyObject *recorded(PyObject *op, PyObject *inputs, PyObject *attrs, PyObject *dyn, PyObject *shape,
                          PyObject *dtype, State *state)
{
    PyObject *node = NULL;
    if (inputs && attrs && dyn && shape)
        node = new_node(op, inputs, attrs, dyn, shape, dtype, state->stream, Py_None, PyList_GET_SIZE(state->tape));
    Py_XDECREF(inputs);
    Py_XDECREF(dyn);
    return append(state, node);
}

/* Whether an index is one that is likely to stay from step to step: whole axes, new ones, the first and last elements.
   Others would fill the memory with every place that a loop passes. */
static int stays(PyObject *index)
{
    if (index == Py_None || index == Py_Ellipsis) return 1;
    if (PyLong_CheckExact(index)) {
        int overflow;
        long number = PyLong_AsLongAndOverflow(index, &overflow);
        return !overflow && number >= -2 && number <= 1;
    }
    if (Py_IS_TYPE(index, &PySlice_Type)) {
        PySliceObject *slice = (PySliceObject *)index;
        return slice->start == Py_None && slice->stop == Py_None && slice->step == Py_None;
    }
    if (!PyTuple_CheckExact(index)) return 0;
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(index); i++)
        if (PyTuple_Check(PyTuple_GET_ITEM(index, i)) || !stays(PyTuple_GET_ITEM(index, i))) return 0;
    return 1;
}

static PyObject *get_call(PyObject *callable, PyObject *const *args, size_t nargsf, PyObject *names)
{
    Box box;
    if (PyVectorcall_NARGS(nargsf) != 2 || names || !is_array(args[0])) goto python;
    Node *node = (Node *)((Handle *)args[0])->node;
    if (!box_of(&box, node->shape, args[1])) goto python;
    if (is_whole(&box, node->shape)) return new_handle(Py_NewRef((PyObject *)node));
    State *state = state_here();
    if (!state) return NULL;
    PyObject *shape = PyTuple_New(box.ndim);
    for (Py_ssize_t i = 0; shape && i < box.ndim; i++) {
        PyObject *size = PyLong_FromSsize_t(box.size[i]);
        if (!size) Py_CLEAR(shape);
        else PyTuple_SET_ITEM(shape, i, size);
    }
    PyObject *made = recorded(SliceOp, PyTuple_Pack(1, (PyObject *)node), ones_of(box.ndim), dyn_of(&box), shape,
                              node->dtype, state);
    Py_XDECREF(shape);
    return new_handle(made);
python:
    if (PyVectorcall_NARGS(nargsf) == 2 && stays(args[1])) return memo_call(callable, args, nargsf, names);
    return PyObject_Vectorcall(((Memo *)callable)->function, args, nargsf, names);
}

static PyObject *set_call(PyObject *callable, PyObject *const *args, size_t nargsf, PyObject *names)
{
    Box box;
    if (PyVectorcall_NARGS(nargsf) != 3 || names || !is_array(args[0]) || !is_array(args[2])) goto python;
    Handle *handle = (Handle *)args[0];
    Node *node = (Node *)handle->node, *update = (Node *)((Handle *)args[2])->node;
    if (node->dtype != update->dtype || !PyTuple_CheckExact(update->shape) || !box_of(&box, node->shape, args[1]) ||
        PyTuple_GET_SIZE(update->shape) != box.ndim || !is_whole(&box, update->shape))
        goto python;
    PyObject *made;
    if (is_whole(&box, node->shape)) made = Py_NewRef((PyObject *)update);
    else {
        State *state = state_here();
        if (!state) return NULL;
        made = recorded(SliceUpdateOp, PyTuple_Pack(2, (PyObject *)node, (PyObject *)update), assigned_of(box.ndim),
                        dyn_of(&box), node->shape, node->dtype, state);
        if (!made) return NULL;
    }
    handle->node = made;
    Py_DECREF(node);
    Py_RETURN_NONE;
python:
    return PyObject_Vectorcall(((Memo *)callable)->function, args, nargsf, names);
}
