/* Steps of a captured call that run a function of a vendor's library, with everything but addresses decided before.

   They are called as torch calls the library, without torch's own way to it. What is planned belongs to Python: these
   objects hold its addresses, and keep alive what owns them. There may be no header of a library here either. */

typedef struct Library {
    PyObject_HEAD
    vectorcallfunc call;
    int (*run)(struct Library *, void *const *addresses, void *stream);
    void (*leave)(struct Library *); /* forget the stream of the last run, which is no more; or NULL */
    Py_ssize_t count; /* of addresses */
    PyObject *held;
    const char *name;
} Library;

/* Set the error of a step that was refused. */
static void library_failed(const Library *self, int code)
{
    PyErr_Format(PyExc_RuntimeError, "%s refused a call that it had planned: status %d.", self->name, code);
}

/* Called with a stream and the addresses, as numbers. */
static PyObject *library_call(PyObject *object, PyObject *const *args, size_t flags, PyObject *names)
{
    Library *self = (Library *)object;
    if (PyVectorcall_NARGS(flags) != self->count + 1 || (names && PyTuple_GET_SIZE(names))) {
        PyErr_Format(PyExc_TypeError, "expected a stream and %zd addresses.", self->count);
        return NULL;
    }
    void *given[self->count + 1];
    for (Py_ssize_t i = 0; i <= self->count; i++) {
        given[i] = (void *)(uintptr_t)PyLong_AsUnsignedLongLong(args[i]);
        if (PyErr_Occurred())
            return NULL;
    }
    int code;
    Py_BEGIN_ALLOW_THREADS
    code = self->run(self, given + 1, given[0]);
    Py_END_ALLOW_THREADS
    if (code) {
        library_failed(self, code);
        return NULL;
    }
    Py_RETURN_NONE;
}

static int library_traverse(Library *self, visitproc visit, void *arg)
{
    Py_VISIT(self->held);
    return 0;
}

static int library_clear(Library *self)
{
    Py_CLEAR(self->held);
    return 0;
}

/* cuBLASLt: a matrix product. A handle of it may be used by several threads at once. */
typedef int (*Multiply)(void *handle, void *product, const void *alpha, const void *a, void *a_layout, const void *b,
                        void *b_layout, const void *beta, const void *c, void *c_layout, void *d, void *d_layout,
                        const void *algorithm, void *workspace, size_t size, void *stream);

typedef struct {
    Library base;
    Multiply multiply;
    void *handle, *product, *layouts[3];
    uint64_t algorithm[8];
    size_t workspace;
} Product;

/* Of both factors, the output, and the workspace if there is one. */
static int product_run(Library *object, void *const *addresses, void *stream)
{
    Product *self = (Product *)object;
    const float one = 1.0f, zero = 0.0f;
    void *out = addresses[2];
    return self->multiply(self->handle, self->product, &one, addresses[0], self->layouts[0], addresses[1],
                          self->layouts[1], &zero, out, self->layouts[2], out, self->layouts[2], self->algorithm,
                          self->workspace ? addresses[3] : NULL, self->workspace, stream);
}

/* (cublasLtMatmul, handle, product, (layout of a, of b, of the output), algorithm, bytes of workspace, what owns them) */
static PyObject *product_new(PyTypeObject *type, PyObject *args, PyObject *names)
{
    unsigned long long multiply, handle, product, layouts[3], workspace;
    const char *algorithm;
    Py_ssize_t size;
    PyObject *held;
    (void)names;
    if (!PyArg_ParseTuple(args, "KKK(KKK)y#KO", &multiply, &handle, &product, &layouts[0], &layouts[1], &layouts[2],
                          &algorithm, &size, &workspace, &held))
        return NULL;
    if (size != sizeof(uint64_t[8])) {
        PyErr_SetString(PyExc_ValueError, "expected an algorithm of 64 bytes.");
        return NULL;
    }
    Product *self = (Product *)type->tp_alloc(type, 0);
    if (!self)
        return NULL;
    self->base.call = library_call;
    self->base.run = product_run;
    self->base.name = "cuBLASLt";
    self->base.count = workspace ? 4 : 3;
    self->base.held = Py_NewRef(held);
    self->multiply = (Multiply)(uintptr_t)multiply;
    self->handle = (void *)(uintptr_t)handle;
    self->product = (void *)(uintptr_t)product;
    for (int i = 0; i < 3; i++)
        self->layouts[i] = (void *)(uintptr_t)layouts[i];
    memcpy(self->algorithm, algorithm, sizeof self->algorithm);
    self->workspace = workspace;
    return (PyObject *)self;
}

static void product_dealloc(Library *self)
{
    PyObject_GC_UnTrack(self);
    library_clear(self);
    Py_TYPE(self)->tp_free((PyObject *)self);
}

/* cuDNN: a plan of its back end. A handle of it is one thread's at a time, from setting its stream to the launch. */
typedef struct {
    int (*create)(int kind, void **descriptor);
    int (*set)(void *descriptor, int name, int kind, int64_t count, const void *values);
    int (*finish)(void *descriptor);
    int (*destroy)(void *descriptor);
    int (*execute)(void *handle, void *plan, void *pack);
    int (*stream)(void *handle, void *stream);
} DnnDriver;

#define DNN_FUNCTIONS (sizeof(DnnDriver) / sizeof(void *))
#define DNN_TENSORS 3
enum { DNN_PACK = 16, DNN_UIDS = 1000, DNN_POINTERS = 1001, DNN_WORKSPACE = 1003, DNN_INT64 = 3, DNN_VOID_PTR = 6 };

typedef struct {
    PyObject_HEAD
    DnnDriver driver;
    void *handle, *stream;
    int streamed; /* the handle was given the stream */
    pthread_mutex_t lock;
} DnnHandle;

typedef struct {
    Library base;
    DnnHandle *handle;
    void *plan, *pack;
    void *packed[DNN_TENSORS + 1]; /* the addresses in the pack */
} DnnPlan;

/* Return a pack of the addresses: the last one where they are the same. */
static int plan_pack(DnnPlan *self, void *const *addresses)
{
    const DnnDriver *driver = &self->handle->driver;
    void *given[DNN_TENSORS + 1] = {0};
    memcpy(given, addresses, sizeof(void *) * self->base.count);
    if (self->pack && !memcmp(given, self->packed, sizeof given))
        return 0;
    if (self->pack)
        driver->destroy(self->pack);
    self->pack = NULL;
    static const int64_t names[DNN_TENSORS] = {1, 2, 3};
    void *made = NULL;
    int code = driver->create(DNN_PACK, &made);
    if (!code)
        code = driver->set(made, DNN_UIDS, DNN_INT64, DNN_TENSORS, names);
    if (!code)
        code = driver->set(made, DNN_POINTERS, DNN_VOID_PTR, DNN_TENSORS, given);
    if (!code)
        code = driver->set(made, DNN_WORKSPACE, DNN_VOID_PTR, 1, &given[DNN_TENSORS]);
    if (!code)
        code = driver->finish(made);
    if (code) {
        if (made)
            driver->destroy(made);
        return code;
    }
    memcpy(self->packed, given, sizeof given);
    self->pack = made;
    return 0;
}

/* Of the three tensors, and the workspace if there is one. */
static int plan_run(Library *object, void *const *addresses, void *stream)
{
    DnnPlan *self = (DnnPlan *)object;
    DnnHandle *handle = self->handle;
    int code = 0;
    pthread_mutex_lock(&handle->lock);
    if (!handle->streamed || handle->stream != stream) {
        code = handle->driver.stream(handle->handle, stream);
        handle->streamed = !code;
        handle->stream = stream;
    }
    if (!code)
        code = plan_pack(self, addresses);
    if (!code)
        code = handle->driver.execute(handle->handle, self->plan, self->pack);
    pthread_mutex_unlock(&handle->lock);
    return code;
}

static void plan_leave(Library *object)
{
    DnnHandle *handle = ((DnnPlan *)object)->handle;
    pthread_mutex_lock(&handle->lock);
    handle->streamed = 0;
    pthread_mutex_unlock(&handle->lock);
}

/* (handle, the functions of DnnDriver) */
static PyObject *handle_new(PyTypeObject *type, PyObject *args, PyObject *names)
{
    unsigned long long handle;
    PyObject *functions;
    (void)names;
    if (!PyArg_ParseTuple(args, "KO!", &handle, &PyTuple_Type, &functions))
        return NULL;
    if (PyTuple_GET_SIZE(functions) != DNN_FUNCTIONS) {
        PyErr_Format(PyExc_ValueError, "expected %zd functions.", DNN_FUNCTIONS);
        return NULL;
    }
    void *found[DNN_FUNCTIONS];
    for (size_t i = 0; i < DNN_FUNCTIONS; i++)
        found[i] = PyLong_AsVoidPtr(PyTuple_GET_ITEM(functions, i));
    if (PyErr_Occurred())
        return NULL;
    DnnHandle *self = (DnnHandle *)type->tp_alloc(type, 0);
    if (!self)
        return NULL;
    memcpy(&self->driver, found, sizeof found);
    self->handle = (void *)(uintptr_t)handle;
    pthread_mutex_init(&self->lock, NULL);
    return (PyObject *)self;
}

static void handle_dealloc(DnnHandle *self)
{
    pthread_mutex_destroy(&self->lock);
    Py_TYPE(self)->tp_free((PyObject *)self);
}

static PyTypeObject HandleType = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "rocmend_kernels_replay.DnnHandle",
    .tp_basicsize = sizeof(DnnHandle),
    .tp_flags = Py_TPFLAGS_DEFAULT,
    .tp_new = handle_new,
    .tp_dealloc = (destructor)handle_dealloc,
    .tp_doc = "A handle of cuDNN, and whose turn it is.",
};

/* (handle, plan, whether there is a workspace, what owns the plan) */
static PyObject *plan_new(PyTypeObject *type, PyObject *args, PyObject *names)
{
    PyObject *handle, *held;
    unsigned long long plan;
    int workspace;
    (void)names;
    if (!PyArg_ParseTuple(args, "O!KpO", &HandleType, &handle, &plan, &workspace, &held))
        return NULL;
    DnnPlan *self = (DnnPlan *)type->tp_alloc(type, 0);
    if (!self)
        return NULL;
    self->base.call = library_call;
    self->base.run = plan_run;
    self->base.leave = plan_leave;
    self->base.name = "cuDNN";
    self->base.count = DNN_TENSORS + (workspace ? 1 : 0);
    self->base.held = Py_NewRef(held);
    self->handle = (DnnHandle *)Py_NewRef(handle);
    self->plan = (void *)(uintptr_t)plan;
    return (PyObject *)self;
}

static void plan_dealloc(DnnPlan *self)
{
    PyObject_GC_UnTrack(self);
    if (self->pack)
        self->handle->driver.destroy(self->pack);
    library_clear(&self->base);
    Py_DECREF(self->handle);
    Py_TYPE(self)->tp_free((PyObject *)self);
}

#define LIBRARY_TYPE(type, object, made, freed, doc)                                                                   \
    static PyTypeObject type = {                                                                                       \
        PyVarObject_HEAD_INIT(NULL, 0).tp_name = "rocmend_kernels_replay." #object,                                    \
        .tp_basicsize = sizeof(object),                                                                                \
        .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_HAVE_VECTORCALL,                              \
        .tp_vectorcall_offset = offsetof(Library, call),                                                               \
        .tp_call = PyVectorcall_Call,                                                                                  \
        .tp_new = made,                                                                                                \
        .tp_traverse = (traverseproc)library_traverse,                                                                 \
        .tp_clear = (inquiry)library_clear,                                                                            \
        .tp_dealloc = (destructor)freed,                                                                               \
        .tp_doc = doc,                                                                                                 \
    }

LIBRARY_TYPE(ProductType, Product, product_new, product_dealloc, "A product that cuBLASLt computes.");
LIBRARY_TYPE(PlanType, DnnPlan, plan_new, plan_dealloc, "A convolution that cuDNN computes.");

/* Return a step's library of an object, or NULL with an error set. */
static Library *library_of(PyObject *object)
{
    if (Py_TYPE(object) == &ProductType || Py_TYPE(object) == &PlanType)
        return (Library *)object;
    PyErr_SetString(PyExc_TypeError, "expected what a library computes.");
    return NULL;
}
