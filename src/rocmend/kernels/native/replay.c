/* A captured call: allocate, launch, return, as the function of replay.py does, without the interpreter in between.

   A call of a decode step is to cost a few microseconds. Of those Python's own steps and the parsing of each launch's
   arguments take half; what is left here is the tensors' addresses, the allocator, and the driver. The object knows
   nothing of operations: it is told what to allocate and what to launch, and when to leave a call to somebody else. */

/* The driver's structures, of which only their layout matters: there may be no header of CUDA here. */
typedef struct {
    unsigned int id;
    char pad[4];
    union { char bytes[64]; int number; } value;
} Attribute;

typedef struct {
    unsigned int grid[3], block[3], shared;
    void *stream;
    Attribute *attributes;
    unsigned int count;
} Config;

typedef int (*Launch)(const Config *, void *function, void **parameters, void **extra);
typedef int (*Current)(void **context);
typedef int (*ErrorName)(int code, const char **text);

#define PROGRAMMATIC_SERIALIZATION 6
#define STREAM_NON_BLOCKING 1

enum { ABSENT, TENSOR, NUMBER }; /* kinds of arguments; captured.py */

#include "library.c"

typedef struct { Py_ssize_t slot, base; uint64_t offset; } Patch;

typedef struct {
    unsigned int grid[3], threads, shared;
    int early; /* may begin before the kernel in front of it is done */
    void *function;
    Library *library; /* that runs this step, in place of a kernel; its parameters are addresses */
    Py_ssize_t first, count; /* of its parameters among all */
} Step;

typedef struct { PyObject *function, *args; } Make;

#include "graph.c"
#include "fixed.c"

typedef struct {
    PyObject_HEAD
    vectorcallfunc call;
    PyObject *held; /* owns what is pointed to below */
    PyObject *data_ptr, *workspace, *kind, *runtime, *current_device, *stream_of, *kernels, *compute, *run, *switches;
    PyObject *index_object, *settings;
    long index;
    Py_ssize_t arguments, made, workspaces, zeroes, returned, steps, kernels_first, values, patches;
    char *present, *wanted; /* kinds of the arguments, and which addresses are needed */
    Make *makes;
    Py_ssize_t *zeroed, *results;
    Step *launches;
    uint64_t *template;
    Patch *patched;
    Launch launch;
    Current context;
    ErrorName name;
    Graph graph;
    Fixed fixed;
} Replay;

static PyObject *name_enter, *name_exit, *name_calls, *name_hooks, *name_zero, *name_poison;

/* Return whether a launch hook is set: 1, 0, or -1 with an error set. */
static int hook_set(PyObject *runtime, PyObject *name)
{
    PyObject *hook = PyObject_GetAttr(runtime, name);
    if (!hook)
        return -1;
    if (hook == Py_None) {
        Py_DECREF(hook);
        return 0;
    }
    PyObject *calls = PyObject_GetAttr(hook, name_calls);
    Py_DECREF(hook);
    if (!calls) {
        if (!PyErr_ExceptionMatches(PyExc_AttributeError))
            return -1;
        PyErr_Clear();
        return 1; /* a plain function */
    }
    int truth = PyObject_IsTrue(calls);
    Py_DECREF(calls);
    return truth;
}

/* Return whether replay.py must run the call: 1, 0, or -1 with an error set. */
static int needs_run(Replay *self)
{
    int found = hook_set(self->runtime, name_enter);
    if (!found)
        found = hook_set(self->runtime, name_exit);
    if (found)
        return found;
    PyObject *device = PyObject_CallNoArgs(self->current_device);
    if (!device)
        return -1;
    long index = PyLong_AsLong(device);
    Py_DECREF(device);
    if (index == -1 && PyErr_Occurred())
        return -1;
    if (index != self->index)
        return 1;
    PyObject *poison = PyDict_GetItemWithError(self->switches, name_poison);
    if (!poison)
        return PyErr_Occurred() ? -1 : 1;
    if (poison != Py_False)
        return 1;
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(self->kernels); i++) {
        PyObject *hooks = PyObject_GetAttr(PyTuple_GET_ITEM(self->kernels, i), name_hooks);
        if (!hooks)
            return -1;
        found = PyObject_IsTrue(hooks);
        Py_DECREF(hooks);
        if (found)
            return found;
    }
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(self->settings); i++) {
        PyObject *setting = PyTuple_GET_ITEM(self->settings, i);
        PyObject *now = PyObject_CallNoArgs(PyTuple_GET_ITEM(setting, 0));
        if (!now)
            return -1;
        Py_DECREF(now);
        if (now != PyTuple_GET_ITEM(setting, 1))
            return 1;
    }
    void *context = NULL;
    return self->context && (self->context(&context) || !context); /* a thread that has not used the GPU yet */
}

static int address_of(Replay *self, PyObject *tensor, uint64_t *address)
{
    PyObject *number = PyObject_Vectorcall(self->data_ptr, &tensor, 1, NULL);
    if (!number)
        return -1;
    *address = PyLong_AsUnsignedLongLong(number);
    Py_DECREF(number);
    return *address == (uint64_t)-1 && PyErr_Occurred() ? -1 : 0;
}

/* Run steps one by one, from one of them on. */
static int run_steps(
    Replay *self, Py_ssize_t first, uint64_t *values, void **pointers, void *stream, const Library **refused)
{
    int code = 0;
    for (Py_ssize_t i = first; i < self->steps && !code; i++) {
        const Step *step = &self->launches[i];
        if (step->library) {
            code = step->library->run(step->library, (void *const *)(values + step->first), stream);
            *refused = code ? step->library : NULL;
            continue;
        }
        Attribute attribute;
        Config config = {
            {step->grid[0], step->grid[1], step->grid[2]}, {step->threads, 1, 1}, step->shared, stream, &attribute, 0};
        if (step->early) {
            memset(&attribute, 0, sizeof attribute);
            attribute.id = PROGRAMMATIC_SERIALIZATION;
            attribute.value.number = 1;
            config.count = 1;
        }
        code = self->launch(&config, step->function, pointers + step->first, NULL);
    }
    return code;
}

/* Return all steps as a runnable graph, captured on a stream of its own; NULL where that cannot be. */
static void *captured(Replay *self, uint64_t *values, void **pointers)
{
    const GraphDriver *driver = &self->graph.driver;
    const Library *refused = NULL;
    void *stream = NULL, *graph = NULL, *runnable = NULL;
    if (driver->stream(&stream, STREAM_NON_BLOCKING))
        return NULL;
    if (!driver->begin(stream, CAPTURE_RELAXED)) {
        int code = run_steps(self, 0, values, pointers, stream, &refused), ended = driver->end(stream, &graph);
        if (code || ended || !graph || !fixed_plain(driver, graph) || driver->instantiate(&runnable, graph, 0))
            runnable = NULL;
        if (graph)
            driver->destroy(graph);
        for (Py_ssize_t i = 0; i < self->steps; i++)
            if (self->launches[i].library && self->launches[i].library->leave)
                self->launches[i].library->leave(self->launches[i].library);
    }
    driver->destroy_stream(stream);
    return runnable;
}

/* Launch all steps as the graph of these addresses: 1, or 0 where they are to be made one by one. */
static int fixed_launched(Replay *self, uint64_t *values, void **pointers, void *stream, int *code)
{
    Fixed *fixed = &self->fixed;
    const GraphDriver *driver = &self->graph.driver;
    int status = 0;
    if (!self->graph.wanted || driver->capturing(stream, &status) || status)
        return 0;
    pthread_mutex_lock(&self->graph.lock);
    FixedGraph *one = fixed_of(fixed, values, self->values, stream);
    int making = !one && !fixed->given_up && fixed_seen(fixed, fixed_hash(values, self->values, stream))
        && fixed_may(fixed, &self->graph, stream);
    int mode = making ? relaxed(&self->graph) : 0; /* to the first launch, which brings the graph to the GPU */
    if (making && fixed->made >= TRIED_FIXED && fixed->used < WORTH_FIXED * fixed->made)
        fixed->given_up = 1; /* addresses are others each time */
    else if (making) {
        void *runnable = captured(self, values, pointers);
        one = runnable ? fixed_keep(fixed, driver, runnable, values, self->values, stream) : NULL;
        fixed->given_up = !one;
    } else if (one)
        fixed->used++;
    if (one)
        *code = driver->launch(one->runnable, stream);
    if (making)
        driver->exchange(&mode);
    pthread_mutex_unlock(&self->graph.lock);
    return one != NULL;
}

/* Launch all, with the lock released: a full queue makes the driver wait. */
static int launched(Replay *self, const uint64_t *addresses, void *stream)
{
    uint64_t values[self->values + 1];
    void *pointers[self->values + 1];
    memcpy(values, self->template, sizeof(uint64_t) * self->values);
    for (Py_ssize_t i = 0; i < self->patches; i++)
        values[self->patched[i].slot] = addresses[self->patched[i].base] + self->patched[i].offset;
    for (Py_ssize_t i = 0; i <= self->values; i++)
        pointers[i] = &values[i];
    int code = 0;
    const Library *refused = NULL;
    Py_BEGIN_ALLOW_THREADS
    Py_ssize_t first = self->kernels_first;
    if (first == self->steps || !fixed_launched(self, values, pointers, stream, &code)) {
        if (!first || !graph_launched(&self->graph, self->launches, first, pointers, stream, &code))
            first = 0;
        if (!code)
            code = run_steps(self, first, values, pointers, stream, &refused);
    }
    Py_END_ALLOW_THREADS
    if (!code)
        return 0;
    if (refused) {
        library_failed(refused, code);
        return -1;
    }
    const char *text = NULL;
    if (self->name)
        self->name(code, &text);
    PyErr_Format(PyExc_RuntimeError, "Triton Error [CUDA]: %s (%d)", text ? text : "a launch failed", code);
    return -1;
}

static PyObject *packed(Replay *self, PyObject *const *bases)
{
    PyObject *found[self->returned + 1];
    for (Py_ssize_t i = 0; i < self->returned; i++)
        found[i] = self->results[i] < 0 ? Py_None : bases[self->results[i]];
    if (self->kind == Py_None)
        return Py_NewRef(found[0]);
    if (self->kind != (PyObject *)&PyTuple_Type)
        return PyObject_Vectorcall(self->kind, found, self->returned, NULL);
    PyObject *out = PyTuple_New(self->returned);
    for (Py_ssize_t i = 0; out && i < self->returned; i++)
        PyTuple_SET_ITEM(out, i, Py_NewRef(found[i]));
    return out;
}

static PyObject *replay_call(PyObject *object, PyObject *const *args, size_t flags, PyObject *names)
{
    Replay *self = (Replay *)object;
    if (PyVectorcall_NARGS(flags) != 1 || (names && PyTuple_GET_SIZE(names)) || !PyTuple_Check(args[0])
        || PyTuple_GET_SIZE(args[0]) != self->arguments) {
        PyErr_Format(PyExc_TypeError, "expected a tuple of %zd tensors and numbers.", self->arguments);
        return NULL;
    }
    PyObject *tensors = args[0], *out = NULL;
    Py_ssize_t all = self->arguments + self->made + self->workspaces, done = self->arguments;
    PyObject *bases[all + 1];
    uint64_t addresses[all + 1], low = 0;
    for (Py_ssize_t i = 0; i < self->arguments; i++) {
        bases[i] = PyTuple_GET_ITEM(tensors, i);
        addresses[i] = 0;
        if (self->present[i] == TENSOR) {
            if (address_of(self, bases[i], &addresses[i]))
                return NULL;
            low |= addresses[i];
        } else if (self->present[i] == NUMBER) {
            addresses[i] = PyLong_AsUnsignedLongLongMask(bases[i]); /* as many bits as the kernel takes */
            if (PyErr_Occurred())
                return NULL;
        }
    }
    if (low & 15)
        return PyObject_CallOneArg(self->compute, tensors);
    int other = needs_run(self);
    if (other)
        return other < 0 ? NULL : PyObject_CallOneArg(self->run, tensors);
    PyObject *workspace = NULL;
    if (self->workspaces) {
        workspace = PyObject_CallNoArgs(self->workspace);
        if (!workspace)
            return NULL;
        if (workspace == Py_None) {
            Py_DECREF(workspace);
            return PyObject_CallOneArg(self->compute, tensors);
        }
        if (!PyTuple_Check(workspace) || PyTuple_GET_SIZE(workspace) != self->workspaces) {
            Py_DECREF(workspace);
            PyErr_SetString(PyExc_TypeError, "expected counters and scratch memory.");
            return NULL;
        }
        for (Py_ssize_t i = 0; i < self->workspaces; i++)
            bases[self->arguments + self->made + i] = PyTuple_GET_ITEM(workspace, i);
    }
    for (Py_ssize_t i = 0; i < self->made; i++) {
        PyObject *made = PyObject_Call(self->makes[i].function, self->makes[i].args, NULL);
        if (!made)
            goto leave;
        bases[done++] = made;
    }
    for (Py_ssize_t i = 0; i < self->zeroes; i++) {
        PyObject *same = PyObject_CallMethodNoArgs(bases[self->zeroed[i]], name_zero);
        if (!same)
            goto leave;
        Py_DECREF(same);
    }
    for (Py_ssize_t i = self->arguments; i < all; i++)
        if (self->wanted[i] && address_of(self, bases[i], &addresses[i]))
            goto leave;
    PyObject *number = PyObject_CallOneArg(self->stream_of, self->index_object);
    if (!number)
        goto leave;
    void *stream = (void *)(uintptr_t)PyLong_AsUnsignedLongLong(number);
    Py_DECREF(number);
    if (PyErr_Occurred() || launched(self, addresses, stream))
        goto leave;
    out = packed(self, bases);
leave:
    for (Py_ssize_t i = self->arguments; i < done; i++)
        Py_DECREF(bases[i]);
    Py_XDECREF(workspace);
    return out;
}

static int numbers(PyObject *tuple, Py_ssize_t *count, Py_ssize_t **out)
{
    *count = PyTuple_GET_SIZE(tuple);
    *out = PyMem_Calloc(*count + 1, sizeof(Py_ssize_t));
    if (!*out)
        return -1;
    for (Py_ssize_t i = 0; i < *count; i++)
        (*out)[i] = PyLong_AsSsize_t(PyTuple_GET_ITEM(tuple, i));
    return PyErr_Occurred() ? -1 : 0;
}

static int read_makes(Replay *self, PyObject *makes)
{
    self->made = PyTuple_GET_SIZE(makes);
    self->makes = PyMem_Calloc(self->made + 1, sizeof(Make));
    if (!self->makes)
        return -1;
    for (Py_ssize_t i = 0; i < self->made; i++)
        if (!PyArg_ParseTuple(
                PyTuple_GET_ITEM(makes, i), "OO!", &self->makes[i].function, &PyTuple_Type, &self->makes[i].args))
            return -1;
    return 0;
}

/* Each step: function, (x, y, z), threads, shared, early, (parameter, ...), a library's object or None; a parameter is a
   number or (base, offset). */
static int read_steps(Replay *self, PyObject *steps, Py_ssize_t all)
{
    self->steps = PyTuple_GET_SIZE(steps);
    self->launches = PyMem_Calloc(self->steps + 1, sizeof(Step));
    Py_ssize_t most = 0;
    for (Py_ssize_t i = 0; i < self->steps; i++)
        most += PyTuple_GET_SIZE(PyTuple_GET_ITEM(PyTuple_GET_ITEM(steps, i), 5));
    self->template = PyMem_Calloc(most + 1, sizeof(uint64_t));
    self->patched = PyMem_Calloc(most + 1, sizeof(Patch));
    if (!self->launches || !self->template || !self->patched)
        return -1;
    for (Py_ssize_t i = 0; i < self->steps; i++) {
        Step *step = &self->launches[i];
        unsigned long long function;
        PyObject *parameters, *library;
        if (!PyArg_ParseTuple(
                PyTuple_GET_ITEM(steps, i), "K(III)IIpO!O", &function, &step->grid[0], &step->grid[1], &step->grid[2],
                &step->threads, &step->shared, &step->early, &PyTuple_Type, &parameters, &library))
            return -1;
        step->function = (void *)(uintptr_t)function;
        step->first = self->values;
        step->count = PyTuple_GET_SIZE(parameters);
        if (library != Py_None) {
            step->library = library_of(library);
            if (!step->library)
                return -1;
            if (step->count != step->library->count) {
                PyErr_Format(PyExc_ValueError, "expected %zd addresses.", step->library->count);
                return -1;
            }
        } else if (self->kernels_first == i)
            self->kernels_first++;
        for (Py_ssize_t j = 0; j < step->count; j++, self->values++) {
            PyObject *one = PyTuple_GET_ITEM(parameters, j);
            if (PyLong_Check(one)) {
                self->template[self->values] = PyLong_AsUnsignedLongLong(one);
                if (PyErr_Occurred())
                    return -1;
                continue;
            }
            Patch *patch = &self->patched[self->patches];
            unsigned long long offset;
            if (!PyArg_ParseTuple(one, "nK", &patch->base, &offset))
                return -1;
            if (patch->base < 0 || patch->base >= all) {
                PyErr_SetString(PyExc_IndexError, "expected one of the tensors.");
                return -1;
            }
            patch->slot = self->values;
            patch->offset = offset;
            self->wanted[patch->base] = 1;
            self->patches++;
        }
    }
    return 0;
}

static int within(const Py_ssize_t *places, Py_ssize_t count, Py_ssize_t least, Py_ssize_t all)
{
    for (Py_ssize_t i = 0; i < count; i++)
        if (places[i] < least || places[i] >= all) {
            PyErr_SetString(PyExc_IndexError, "expected one of the tensors.");
            return -1;
        }
    return 0;
}

static int read_all(Replay *self, PyObject *args)
{
    PyObject *present, *makes, *zeroed, *steps, *results;
    PyObject *graphs;
    unsigned long long launch, context, name;
    if (!PyArg_ParseTuple(
            args, "O!O!O!OO!O!OOOOOO!O!OOO(KKK)O!O!", &PyTuple_Type, &present, &PyTuple_Type, &makes, &PyTuple_Type, &zeroed,
            &self->workspace, &PyTuple_Type, &steps, &PyTuple_Type, &results, &self->kind, &self->data_ptr, &self->runtime,
            &self->current_device, &self->stream_of, &PyTuple_Type, &self->kernels, &PyDict_Type, &self->switches,
            &self->index_object, &self->compute, &self->run, &launch, &context, &name,
            &PyTuple_Type, &graphs, &PyTuple_Type, &self->settings))
        return -1;
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(self->settings); i++) {
        PyObject *setting = PyTuple_GET_ITEM(self->settings, i);
        if (!PyTuple_Check(setting) || PyTuple_GET_SIZE(setting) != 2) {
            PyErr_SetString(PyExc_TypeError, "expected pairs of a function and what it returns.");
            return -1;
        }
    }
    self->launch = (Launch)(uintptr_t)launch;
    self->context = (Current)(uintptr_t)context;
    self->name = (ErrorName)(uintptr_t)name;
    self->graph.wanted = PyTuple_GET_SIZE(graphs) == GRAPH_FUNCTIONS;
    void *functions[GRAPH_FUNCTIONS];
    for (size_t i = 0; self->graph.wanted && i < GRAPH_FUNCTIONS; i++)
        functions[i] = PyLong_AsVoidPtr(PyTuple_GET_ITEM(graphs, i));
    if (self->graph.wanted)
        memcpy(&self->graph.driver, functions, sizeof functions);
    self->index = PyLong_AsLong(self->index_object);
    if (PyErr_Occurred())
        return -1;
    self->arguments = PyTuple_GET_SIZE(present);
    self->workspaces = self->workspace == Py_None ? 0 : 2;
    if (read_makes(self, makes))
        return -1;
    Py_ssize_t all = self->arguments + self->made + self->workspaces;
    self->present = PyMem_Calloc(self->arguments + 1, 1);
    self->wanted = PyMem_Calloc(all + 1, 1);
    if (!self->present || !self->wanted)
        return -1;
    for (Py_ssize_t i = 0; i < self->arguments; i++)
        self->present[i] = (char)PyLong_AsLong(PyTuple_GET_ITEM(present, i));
    if (numbers(zeroed, &self->zeroes, &self->zeroed) || numbers(results, &self->returned, &self->results))
        return -1;
    if (within(self->zeroed, self->zeroes, self->arguments, all) || within(self->results, self->returned, -1, all))
        return -1;
    if (self->kind == Py_None && self->returned != 1) {
        PyErr_SetString(PyExc_ValueError, "expected one result.");
        return -1;
    }
    return read_steps(self, steps, all);
}

static PyObject *replay_new(PyTypeObject *type, PyObject *args, PyObject *names)
{
    if (names && PyDict_GET_SIZE(names)) {
        PyErr_SetString(PyExc_TypeError, "expected no arguments by name.");
        return NULL;
    }
    Replay *self = (Replay *)type->tp_alloc(type, 0);
    if (!self)
        return NULL;
    self->call = replay_call;
    pthread_mutex_init(&self->graph.lock, NULL);
    self->held = Py_NewRef(args);
    if (read_all(self, args)) {
        if (!PyErr_Occurred())
            PyErr_NoMemory();
        Py_DECREF(self);
        return NULL;
    }
    return (PyObject *)self;
}

static int replay_traverse(Replay *self, visitproc visit, void *arg)
{
    Py_VISIT(self->held);
    return 0;
}

static int replay_clear(Replay *self)
{
    Py_CLEAR(self->held);
    return 0;
}

static void replay_dealloc(Replay *self)
{
    PyObject_GC_UnTrack(self);
    replay_clear(self);
    fixed_free(&self->fixed, &self->graph);
    graph_free(&self->graph);
    pthread_mutex_destroy(&self->graph.lock);
    PyMem_Free(self->present);
    PyMem_Free(self->wanted);
    PyMem_Free(self->makes);
    PyMem_Free(self->zeroed);
    PyMem_Free(self->results);
    PyMem_Free(self->launches);
    PyMem_Free(self->template);
    PyMem_Free(self->patched);
    Py_TYPE(self)->tp_free((PyObject *)self);
}

static PyTypeObject ReplayType = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "rocmend_kernels_replay.Replay",
    .tp_basicsize = sizeof(Replay),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_HAVE_VECTORCALL,
    .tp_vectorcall_offset = offsetof(Replay, call),
    .tp_call = PyVectorcall_Call,
    .tp_new = replay_new,
    .tp_traverse = (traverseproc)replay_traverse,
    .tp_clear = (inquiry)replay_clear,
    .tp_dealloc = (destructor)replay_dealloc,
    .tp_doc = "A captured call, as one object.",
};
