/* The types that recording makes most of: a node of the graph, the handle of one, the state of a thread.

   They are those of node.py and array.py, attribute by attribute. What refers to a node counts: one reference for each
   handle, for each place in a tuple of inputs and for the tape. */

#ifndef ROCMEND_TYPES_H
#define ROCMEND_TYPES_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stddef.h>
#include <stdint.h>
#include <structmember.h>

#define FAST_DIMS 16

#ifndef Py_TRASHCAN_BEGIN /* interpreters whose own deallocation takes care */
#define Py_TRASHCAN_BEGIN(op, dealloc)
#define Py_TRASHCAN_END
#endif

typedef struct {
    PyObject_HEAD
    PyObject *op, *inputs, *attrs, *dyn, *shape, *dtype, *stream, *data, *outputs;
    Py_ssize_t pos;
    PyObject *weakrefs;
    char open; /* attributes of its own or of an uncomputed input may lead back to it: see ``closed`` */
} Node;

typedef struct {
    PyObject_HEAD
    PyObject *node;
} Handle;

typedef struct {
    PyObject_HEAD
    PyObject *tape, *stream;
    long tracing;
} State;

static PyTypeObject *NodeType, *HandleType, *StateType;
static PyTypeObject *ArrayType; /* the class of handles, once ``bind`` told it */
static PyTypeObject *DtypeType;
static PyObject *Current; /* node.current: an attribute ``state`` for each thread */
static PyObject *SliceOp, *SliceUpdateOp;
static _Thread_local PyObject *thread_state; /* borrowed: cleared when the state goes */

static PyObject *new_node(PyObject *op, PyObject *inputs, PyObject *attrs, PyObject *dyn, PyObject *shape,
                          PyObject *dtype, PyObject *stream, PyObject *data, Py_ssize_t pos);
static PyObject *new_handle(PyObject *node); /* takes the reference over, also when it fails */
static State *state_here(void);              /* borrowed; NULL with an error */

#endif
