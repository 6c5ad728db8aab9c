/* A captured call's launches as a graph of the driver, whose parameters are set before each launch where they changed.

   A launch takes the driver 3 us, and a graph of several takes it no longer than that.

   A graph waits for the end of its own launch before, on whatever stream that is: each stream has one of its own, so
   that streams do not wait for each other. */

typedef struct {
    void *function;
    unsigned int grid[3], block[3], shared;
    void **parameters, **extra;
    void *kernel, *context;
} NodeParameters;

typedef struct {
    int (*create)(void **graph, unsigned int flags);
    int (*add)(void **node, void *graph, void *const *behind, size_t count, const NodeParameters *);
    int (*instantiate)(void **runnable, void *graph, unsigned long long flags);
    int (*set)(void *runnable, void *node, const NodeParameters *);
    int (*launch)(void *runnable, void *stream);
    int (*destroy)(void *graph);
    int (*destroy_runnable)(void *runnable);
    int (*capturing)(void *stream, int *status);
    int (*priority)(void *stream, int *priority);
    int (*link)(void *graph, void *const *from, void *const *to, const unsigned char (*edges)[8], size_t count);
    int (*exchange)(int *mode);
    int (*begin)(void *stream, int mode);
    int (*end)(void *stream, void **graph);
    int (*nodes)(void *graph, void **nodes, size_t *count);
    int (*type)(void *node, int *type);
    int (*stream)(void **stream, unsigned int flags);
    int (*destroy_stream)(void *stream);
} GraphDriver;

#define GRAPH_FUNCTIONS (sizeof(GraphDriver) / sizeof(void *))
#define MOST_STREAMS 4
#define MOST_GRAPHS 256 /* of the process: each takes 120 KB of the GPU */
#define STREAM_PER_THREAD ((void *)2) /* one name for many streams */
#define CAPTURE_RELAXED 2

typedef struct {
    void *stream, *runnable;
    uint64_t *values; /* that its kernels were last given */
} StreamGraph;

typedef struct {
    GraphDriver driver;
    int wanted;
    void *graph, **nodes;
    StreamGraph streams[MOST_STREAMS];
    int known;
    pthread_mutex_t lock; /* from setting parameters to the launch */
} Graph;

static int graphs_there; /* that there are */

static NodeParameters node_of(const Step *step, void **pointers)
{
    NodeParameters one = {step->function, {step->grid[0], step->grid[1], step->grid[2]}, {step->threads, 1, 1},
                          step->shared, pointers + step->first, NULL, NULL, NULL};
    return one;
}

/* While another thread captures a stream, the driver refuses this one what may wait for the GPU, and breaks off the
   capture. What is made here waits for none: say so. Put the mode that is returned back afterwards. */
static int relaxed(Graph *self)
{
    int mode = CAPTURE_RELAXED;
    return self->driver.exchange(&mode) ? CAPTURE_RELAXED : mode;
}

static void graph_free(Graph *self)
{
    int there = self->known || self->graph, mode = there ? relaxed(self) : 0;
    for (int i = 0; i < self->known; i++)
        if (self->streams[i].runnable) {
            free(self->streams[i].values);
            self->driver.destroy_runnable(self->streams[i].runnable);
            __atomic_sub_fetch(&graphs_there, 1, __ATOMIC_RELAXED);
        }
    if (self->graph)
        self->driver.destroy(self->graph);
    if (there)
        self->driver.exchange(&mode);
    self->graph = NULL;
    self->known = 0;
    free(self->nodes);
    self->nodes = NULL;
}

/* An edge to a kernel that may begin before the one in front of it is done: from which of its ports, to which, a kind. */
static const unsigned char early_edge[1][8] = {{1, 0, 1}};

/* Make the graph: each step behind the one before it. */
static int graph_make(Graph *self, const Step *steps, Py_ssize_t count, void **pointers)
{
    self->nodes = calloc(count, sizeof(void *));
    int code = self->nodes ? self->driver.create(&self->graph, 0) : 1;
    for (Py_ssize_t i = 0; i < count && !code; i++) {
        NodeParameters one = node_of(&steps[i], pointers);
        int behind = i && !steps[i].early;
        code = self->driver.add(&self->nodes[i], self->graph, behind ? &self->nodes[i - 1] : NULL, behind, &one);
        if (!code && i && steps[i].early)
            code = self->driver.link(self->graph, &self->nodes[i - 1], &self->nodes[i], early_edge, 1);
    }
    return code;
}

/* Return what is known of a stream, or NULL. */
static StreamGraph *graph_of(Graph *self, void *stream)
{
    for (int i = 0; i < self->known; i++)
        if (self->streams[i].stream == stream)
            return &self->streams[i];
    return NULL;
}

/* Return whether a stream that is not known may have one. */
static int graph_may(const Graph *self, void *stream)
{
    return self->wanted && self->known < MOST_STREAMS && stream != STREAM_PER_THREAD
        && __atomic_load_n(&graphs_there, __ATOMIC_RELAXED) < MOST_GRAPHS;
}

/* Make a stream's own and return it; NULL where its launches are to be made one by one. */
static StreamGraph *graph_made(Graph *self, void *stream, const Step *steps, Py_ssize_t count, void **pointers)
{
    if (!self->nodes && graph_make(self, steps, count, pointers)) {
        graph_free(self);
        self->wanted = 0;
        return NULL;
    }
    int priority = 0;
    StreamGraph made = {stream, NULL, NULL};
    /* Kernels of a graph have a priority of their own, not their stream's. */
    if (self->driver.priority(stream, &priority) || priority
        || self->driver.instantiate(&made.runnable, self->graph, 0))
        made.runnable = NULL;
    else
        __atomic_add_fetch(&graphs_there, 1, __ATOMIC_RELAXED);
    self->streams[self->known] = made;
    return &self->streams[self->known++];
}

/* Give the kernels their parameters, those that were given others before: the driver takes its time for each. */
static int graph_set(Graph *self, StreamGraph *one, const Step *steps, Py_ssize_t count, void **pointers)
{
    const Step *end = &steps[count - 1];
    size_t all = sizeof(uint64_t) * (end->first + end->count);
    int code = 0, every = !one->values;
    if (every && !(one->values = malloc(all + 1)))
        return 2; /* no memory */
    for (Py_ssize_t i = 0; i < count && !code; i++) {
        const Step *step = &steps[i];
        const void *values = pointers[step->first];
        size_t size = sizeof(uint64_t) * step->count;
        if (!every && !memcmp(one->values + step->first, values, size))
            continue;
        NodeParameters node = node_of(step, pointers);
        code = self->driver.set(one->runnable, self->nodes[i], &node);
        memcpy(one->values + step->first, values, size);
    }
    if (code) {
        free(one->values);
        one->values = NULL;
    }
    return code;
}

/* Launch all steps: 1, or 0 where they are to be launched one by one. The lock of Python need not be held. */
static int graph_launched(Graph *self, const Step *steps, Py_ssize_t count, void **pointers, void *stream, int *code)
{
    int status = 0;
    /* What is captured is a graph already. */
    if (!self->wanted || self->driver.capturing(stream, &status) || status)
        return 0;
    pthread_mutex_lock(&self->lock);
    StreamGraph *one = graph_of(self, stream);
    int making = !one && graph_may(self, stream);
    int mode = making ? relaxed(self) : 0; /* to the first launch, which brings the graph to the GPU */
    if (making)
        one = graph_made(self, stream, steps, count, pointers);
    int runnable = one && one->runnable;
    if (runnable) {
        *code = graph_set(self, one, steps, count, pointers);
        if (!*code)
            *code = self->driver.launch(one->runnable, stream);
    }
    if (making)
        self->driver.exchange(&mode);
    pthread_mutex_unlock(&self->lock);
    return runnable;
}
