/* Functions that remember what they record.

   What a function of the operations records depends on the shapes and types of its arrays, on its other arguments and
   on the stream. The first call with such a key runs the Python function and looks at what came onto the tape; later
   calls with an equal key record the same. Nothing is known here of what the operations mean: a call that did anything
   else than recording nodes of its arguments is always left to Python, as is every call while a function is traced. */

#include "types.h"

#define MOST_ARGS 16
#define MOST_NODES 8
#define MOST_ENTRIES 2048 /* then a function begins anew: shapes that grow with every token would pile up */

typedef struct {
    PyObject *op, *attrs, *dyn, *shape, *dtype, *outputs; /* outputs: NULL for most; dyn: NULL: the argument */
    int count;
    int8_t *inputs; /* k: the k-th argument; -1 - k: the k-th node of this call */
} Made;

typedef struct {
    Py_uhash_t hash;
    PyObject *stream, *names;
    PyObject *part[MOST_ARGS];   /* an argument; of an array: its shape */
    PyObject *dtype[MOST_ARGS];  /* of an array */
    int8_t alias[MOST_ARGS];     /* of an array: the first argument with its node */
    int8_t args;
    int8_t varying;              /* the argument that is only an integer of the node; -1: none */
    int8_t made;                 /* number of nodes; -1: leave the call to Python */
    int8_t result;               /* as in inputs */
    int8_t same;                 /* the result is the handle that was given */
    Made node[];
} Entry;

typedef struct {
    PyObject_HEAD
    vectorcallfunc call;
    PyObject *function;
    PyObject *varying; /* name of a keyword argument, or NULL */
    Entry **table;
    Py_ssize_t size, used;
    int busy; /* calls that are recording: entries stay while they do, whatever a finalizer calls */
    unsigned long age;
} Memo;

static PyTypeObject *MemoType;
static unsigned long age; /* of what is remembered: ``forget`` counts it up */

static inline Py_uhash_t mixed(Py_uhash_t h, Py_uhash_t x)
{
    h ^= x + (Py_uhash_t)0x9e3779b97f4a7c15ULL + (h << 6) + (h >> 2);
    return h * (Py_uhash_t)0xff51afd7ed558ccdULL;
}

static inline Py_uhash_t of_pointer(const void *p)
{
    return (Py_uhash_t)((uintptr_t)p >> 4);
}

/* Mix a value into a hash; 0 where it is of a kind that cannot be part of a key. */
static int mix_value(PyObject *value, Py_uhash_t *h, int depth)
{
    PyTypeObject *type = Py_TYPE(value);
    if (type == &PyLong_Type) {
        int overflow;
        long number = PyLong_AsLongAndOverflow(value, &overflow);
        *h = mixed(*h, overflow ? 7 : (Py_uhash_t)number);
        return 1;
    }
    if (value == Py_None || type == &PyBool_Type || type == DtypeType || value == Py_Ellipsis) {
        *h = mixed(*h, of_pointer(value));
        return 1;
    }
    if (type == &PyFloat_Type) {
        double number = PyFloat_AS_DOUBLE(value);
        uint64_t bits;
        memcpy(&bits, &number, sizeof bits);
        *h = mixed(*h, (Py_uhash_t)(bits ^ (bits >> 32)));
        return 1;
    }
    if (type == &PyUnicode_Type) {
        *h = mixed(*h, (Py_uhash_t)PyObject_Hash(value));
        return 1;
    }
    if (type == &PySlice_Type && depth < 3) {
        PySliceObject *slice = (PySliceObject *)value;
        *h = mixed(*h, 13);
        return mix_value(slice->start, h, 3) && mix_value(slice->stop, h, 3) && mix_value(slice->step, h, 3);
    }
    if (type == &PyTuple_Type && depth < 3) {
        Py_ssize_t length = PyTuple_GET_SIZE(value);
        *h = mixed(*h, (Py_uhash_t)length + 31);
        for (Py_ssize_t i = 0; i < length; i++)
            if (!mix_value(PyTuple_GET_ITEM(value, i), h, depth + 1)) return 0;
        return 1;
    }
    return 0;
}

/* Whether two values, the second part of a key, are the same in kind and in every bit. */
static int equal_values(PyObject *a, PyObject *b)
{
    if (a == b) return 1;
    PyTypeObject *type = Py_TYPE(a);
    if (type != Py_TYPE(b)) return 0;
    if (type == &PyLong_Type) {
        int left, right;
        long x = PyLong_AsLongAndOverflow(a, &left), y = PyLong_AsLongAndOverflow(b, &right);
        if (!left && !right) return x == y;
        return left == right && PyObject_RichCompareBool(a, b, Py_EQ) == 1;
    }
    if (type == &PyFloat_Type) {
        double x = PyFloat_AS_DOUBLE(a), y = PyFloat_AS_DOUBLE(b);
        return memcmp(&x, &y, sizeof x) == 0;
    }
    if (type == &PyUnicode_Type) return PyUnicode_Compare(a, b) == 0;
    if (type == &PySlice_Type) {
        PySliceObject *x = (PySliceObject *)a, *y = (PySliceObject *)b;
        return equal_values(x->start, y->start) && equal_values(x->stop, y->stop) && equal_values(x->step, y->step);
    }
    if (type == &PyTuple_Type) {
        Py_ssize_t length = PyTuple_GET_SIZE(a);
        if (length != PyTuple_GET_SIZE(b)) return 0;
        for (Py_ssize_t i = 0; i < length; i++)
            if (!equal_values(PyTuple_GET_ITEM(a, i), PyTuple_GET_ITEM(b, i))) return 0;
        return 1;
    }
    return 0;
}

/* -- keys */

static inline int is_array(PyObject *value)
{
    return Py_IS_TYPE(value, ArrayType) && ((Handle *)value)->node && Py_IS_TYPE(((Handle *)value)->node, NodeType);
}

/* Fill a key (references are borrowed) and return whether the arguments can be one. */
static int key_of(Memo *self, Entry *key, PyObject *const *args, Py_ssize_t plain, PyObject *names, PyObject *stream)
{
    Py_ssize_t named = names ? PyTuple_GET_SIZE(names) : 0, count = plain + named;
    if (count > MOST_ARGS) return 0;
    Py_uhash_t h = mixed(of_pointer(stream), (Py_uhash_t)count);
    key->stream = stream;
    key->names = names;
    key->args = (int8_t)count;
    key->varying = -1;
    for (Py_ssize_t i = 0; i < count; i++) {
        PyObject *value = args[i];
        key->dtype[i] = NULL;
        if (is_array(value)) {
            Node *node = (Node *)((Handle *)value)->node;
            if (!PyTuple_CheckExact(node->shape)) return 0;
            Py_ssize_t j = 0;
            while (j < i && !(key->dtype[j] && ((Handle *)args[j])->node == (PyObject *)node)) j++;
            key->alias[i] = (int8_t)j;
            key->part[i] = node->shape;
            key->dtype[i] = node->dtype;
            h = mixed(h, of_pointer(node->dtype) + (Py_uhash_t)j);
            if (!mix_value(node->shape, &h, 2)) return 0;
            continue;
        }
        key->part[i] = value;
        if (self->varying && i >= plain && PyTuple_GET_ITEM(names, i - plain) == self->varying &&
            PyLong_CheckExact(value)) {
            key->varying = (int8_t)i;
            h = mixed(h, 11);
        }
        else if (!mix_value(value, &h, 0)) return 0;
    }
    for (Py_ssize_t i = 0; i < named; i++) h = mixed(h, of_pointer(PyTuple_GET_ITEM(names, i)));
    key->hash = h ? h : 1;
    return 1;
}

static int equal_names(PyObject *a, PyObject *b)
{
    if (a == b) return 1;
    if (!a || !b || PyTuple_GET_SIZE(a) != PyTuple_GET_SIZE(b)) return 0;
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(a); i++)
        if (PyTuple_GET_ITEM(a, i) != PyTuple_GET_ITEM(b, i)) return 0;
    return 1;
}

static int equal_keys(const Entry *a, const Entry *b)
{
    if (a->hash != b->hash || a->stream != b->stream || a->args != b->args || a->varying != b->varying ||
        !equal_names(a->names, b->names))
        return 0;
    for (int i = 0; i < a->args; i++) {
        if (a->dtype[i] != b->dtype[i] || (a->dtype[i] && a->alias[i] != b->alias[i])) return 0;
        if (i != a->varying && !equal_values(a->part[i], b->part[i])) return 0;
    }
    return 1;
}

/* -- the table */

static void free_made(Entry *entry)
{
    for (int k = 0; k < entry->made; k++) {
        Made *made = &entry->node[k];
        Py_XDECREF(made->op); Py_XDECREF(made->attrs); Py_XDECREF(made->dyn); Py_XDECREF(made->shape);
        Py_XDECREF(made->dtype); Py_XDECREF(made->outputs);
        PyMem_Free(made->inputs);
    }
    entry->made = -1;
}

static void free_entry(Entry *entry)
{
    free_made(entry);
    Py_XDECREF(entry->stream);
    Py_XDECREF(entry->names);
    for (int i = 0; i < entry->args; i++) {
        Py_XDECREF(entry->part[i]);
        Py_XDECREF(entry->dtype[i]);
    }
    PyMem_Free(entry);
}

static void empty(Memo *self)
{
    Entry **table = self->table;
    Py_ssize_t size = self->size;
    self->table = NULL;
    self->size = self->used = 0;
    for (Py_ssize_t i = 0; i < size; i++)
        if (table[i]) free_entry(table[i]);
    PyMem_Free(table);
}

static Entry **slot_of(Memo *self, const Entry *key)
{
    Py_uhash_t mask = (Py_uhash_t)self->size - 1, i = key->hash & mask;
    while (self->table[i] && !equal_keys(self->table[i], key)) i = (i + 1) & mask;
    return &self->table[i];
}

static int keep(Memo *self, Entry *entry)
{
    if (self->used >= MOST_ENTRIES) {
        if (self->busy) return -1;
        empty(self);
    }
    if (self->used * 3 >= self->size * 2) {
        Py_ssize_t size = self->size ? self->size * 2 : 16, old = self->size;
        Entry **table = PyMem_Calloc((size_t)size, sizeof *table), **before = self->table;
        if (!table) return -1;
        self->table = table;
        self->size = size;
        for (Py_ssize_t i = 0; i < old; i++)
            if (before[i]) *slot_of(self, before[i]) = before[i];
        PyMem_Free(before);
    }
    Entry **slot = slot_of(self, entry);
    if (*slot) { /* another thread was faster, or the function called itself */
        free_entry(entry);
        return 0;
    }
    *slot = entry;
    self->used++;
    return 0;
}

/* -- recording what is remembered */

static PyObject *replay(const Entry *entry, PyObject *const *args, State *state)
{
    PyObject *made[MOST_NODES];
    for (int k = 0; k < entry->made; k++) {
        const Made *one = &entry->node[k];
        PyObject *inputs = PyTuple_New(one->count);
        if (!inputs) return NULL;
        for (int i = 0; i < one->count; i++) {
            int from = one->inputs[i];
            PyTuple_SET_ITEM(inputs, i, Py_NewRef(from >= 0 ? ((Handle *)args[from])->node : made[-1 - from]));
        }
        PyObject *dyn = one->dyn ? Py_NewRef(one->dyn) : PyTuple_Pack(1, args[entry->varying]);
        PyObject *node = dyn ? new_node(one->op, inputs, one->attrs, dyn, one->shape, one->dtype, entry->stream,
                                        Py_None, PyList_GET_SIZE(state->tape))
                             : NULL;
        Py_DECREF(inputs);
        Py_XDECREF(dyn);
        if (!node) return NULL;
        if (one->outputs) ((Node *)node)->outputs = Py_NewRef(one->outputs);
        if (PyList_Append(state->tape, node) < 0) {
            Py_DECREF(node);
            return NULL;
        }
        Py_DECREF(node); /* the tape holds it */
        made[k] = node;
    }
    if (entry->same) return Py_NewRef(args[entry->result]);
    int from = entry->result;
    return new_handle(Py_NewRef(from >= 0 ? ((Handle *)args[from])->node : made[-1 - from]));
}

/* -- learning */

/* Where a node came from: an argument's place, or -1 - k for the k-th node of this call; MOST_ARGS: elsewhere. */
static int source_of(PyObject *node, PyObject *const *nodes, int args, PyObject *tape, Py_ssize_t begin, Py_ssize_t end)
{
    for (int i = 0; i < args; i++)
        if (nodes[i] == node) return i;
    for (Py_ssize_t k = begin; k < end; k++)
        if (PyList_GET_ITEM(tape, k) == node) return (int)(-1 - (k - begin));
    return MOST_ARGS;
}

/* Write down what a call recorded; return whether it can be repeated. */
static int learned(Entry *entry, PyObject *const *args, PyObject *const *nodes, PyObject *result, State *state,
                   PyObject *tape, Py_ssize_t begin)
{
    Py_ssize_t end = PyList_GET_SIZE(tape);
    if (state->tape != tape || state->tracing || end < begin || end - begin > MOST_NODES || !is_array(result)) return 0;
    int varied = 0;
    for (Py_ssize_t k = begin; k < end; k++) {
        Node *node = (Node *)PyList_GET_ITEM(tape, k);
        if (!Py_IS_TYPE((PyObject *)node, NodeType) || node->stream != entry->stream || node->data != Py_None ||
            node->pos != k || !PyTuple_CheckExact(node->inputs) || PyTuple_GET_SIZE(node->inputs) > 64)
            return 0;
        Made *made = &entry->node[k - begin];
        int count = (int)PyTuple_GET_SIZE(node->inputs);
        made->inputs = PyMem_Malloc(count ? (size_t)count : 1);
        if (!made->inputs) return 0;
        entry->made = (int8_t)(k - begin + 1);
        made->count = count;
        made->op = Py_NewRef(node->op); made->attrs = Py_NewRef(node->attrs); made->shape = Py_NewRef(node->shape);
        made->dtype = Py_NewRef(node->dtype); made->outputs = Py_XNewRef(node->outputs);
        if (entry->varying >= 0 && PyTuple_CheckExact(node->dyn)) {
            if (varied++ || PyTuple_GET_SIZE(node->dyn) != 1 || PyTuple_GET_ITEM(node->dyn, 0) != args[entry->varying])
                return 0;
        }
        else made->dyn = Py_NewRef(node->dyn);
        for (int i = 0; i < count; i++) {
            int from = source_of(PyTuple_GET_ITEM(node->inputs, i), nodes, entry->args, tape, begin, k);
            if (from == MOST_ARGS) return 0;
            made->inputs[i] = (int8_t)from;
        }
    }
    if (entry->varying >= 0 && varied != 1) return 0;
    int from = source_of(((Handle *)result)->node, nodes, entry->args, tape, begin, end);
    if (from == MOST_ARGS) return 0;
    entry->result = (int8_t)from;
    entry->same = from >= 0 && args[from] == result;
    return 1;
}

static PyObject *learn(Memo *self, const Entry *key, PyObject *const *args, size_t nargsf, PyObject *names, State *state)
{
    PyObject *tape = Py_NewRef(state->tape), *nodes[MOST_ARGS];
    Py_ssize_t begin = PyList_GET_SIZE(tape);
    unsigned long before = age;
    Entry *entry = PyMem_Calloc(1, sizeof(Entry) + MOST_NODES * sizeof(Made));
    if (!entry) {
        Py_DECREF(tape);
        return PyErr_NoMemory();
    }
    memcpy(entry, key, sizeof(Entry));
    Py_INCREF(entry->stream);
    Py_XINCREF(entry->names);
    for (int i = 0; i < entry->args; i++) {
        Py_INCREF(entry->part[i]);
        Py_XINCREF(entry->dtype[i]);
        nodes[i] = entry->dtype[i] ? Py_NewRef(((Handle *)args[i])->node) : NULL;
    }
    PyObject *result = PyObject_Vectorcall(self->function, args, nargsf, names);
    int repeatable = result != NULL;
    for (int i = 0; i < entry->args; i++) /* a call that gave a handle another node is Python's */
        if (nodes[i] && ((Handle *)args[i])->node != nodes[i]) repeatable = 0;
    if (result && age == before) {
        if (!repeatable || !learned(entry, args, nodes, result, state, tape, begin)) free_made(entry);
        size_t needed = sizeof(Entry) + (size_t)(entry->made > 0 ? entry->made : 0) * sizeof(Made);
        Entry *smaller = PyMem_Realloc(entry, needed);
        if (smaller) entry = smaller;
        if (keep(self, entry) < 0) free_entry(entry);
        PyErr_Clear();
    }
    else free_entry(entry);
    for (int i = 0; i < key->args; i++)
        if (nodes[i]) Py_DECREF(nodes[i]);
    Py_DECREF(tape);
    return result;
}

static PyObject *memo_call(PyObject *callable, PyObject *const *args, size_t nargsf, PyObject *names)
{
    Memo *self = (Memo *)callable;
    State *state = state_here();
    if (!state) return NULL;
    Entry key;
    if (state->tracing || !PyList_CheckExact(state->tape) ||
        !key_of(self, &key, args, PyVectorcall_NARGS(nargsf), names, state->stream))
        return PyObject_Vectorcall(self->function, args, nargsf, names);
    if (self->age != age && !self->busy) {
        empty(self);
        self->age = age;
    }
    if (self->size) {
        const Entry *found = *slot_of(self, &key);
        if (found) {
            if (found->made >= 0) {
                self->busy++;
                PyObject *result = replay(found, args, state);
                self->busy--;
                return result;
            }
            return PyObject_Vectorcall(self->function, args, nargsf, names);
        }
    }
    key.made = 0;
    return learn(self, &key, args, nargsf & ~PY_VECTORCALL_ARGUMENTS_OFFSET, names, state);
}
