/* Several launches as one: a graph of the driver whose parameters are set before each launch.

   The driver takes 3 us for a launch, and less for a graph of many. */

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
} GraphDriver;

#define GRAPH_FUNCTIONS (sizeof(GraphDriver) / sizeof(void *))

typedef struct {
    GraphDriver driver;
    int wanted;
    void *graph, *runnable, **nodes;
    pthread_mutex_t lock; /* from setting parameters to the launch */
} Graph;

static NodeParameters node_of(const Step *step, void **pointers)
{
    NodeParameters one = {step->function, {step->grid[0], step->grid[1], step->grid[2]}, {step->threads, 1, 1},
                          step->shared, pointers + step->first, NULL, NULL, NULL};
    return one;
}

static void graph_free(Graph *self)
{
    if (self->runnable)
        self->driver.destroy_runnable(self->runnable);
    if (self->graph)
        self->driver.destroy(self->graph);
    self->runnable = self->graph = NULL;
    free(self->nodes);
    self->nodes = NULL;
}

/* Make the graph: each step behind the one before it. */
static int graph_make(Graph *self, const Step *steps, Py_ssize_t count, void **pointers)
{
    self->nodes = calloc(count, sizeof(void *));
    int code = self->nodes ? self->driver.create(&self->graph, 0) : 1;
    for (Py_ssize_t i = 0; i < count && !code; i++) {
        NodeParameters one = node_of(&steps[i], pointers);
        code = self->driver.add(&self->nodes[i], self->graph, i ? &self->nodes[i - 1] : NULL, i ? 1 : 0, &one);
    }
    if (!code)
        code = self->driver.instantiate(&self->runnable, self->graph, 0);
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
    if (!self->runnable && graph_make(self, steps, count, pointers)) {
        graph_free(self);
        self->wanted = 0;
    }
    int made = self->runnable != NULL;
    if (made) {
        *code = 0;
        for (Py_ssize_t i = 0; i < count && !*code; i++) {
            NodeParameters one = node_of(&steps[i], pointers);
            *code = self->driver.set(self->runnable, self->nodes[i], &one);
        }
        if (!*code)
            *code = self->driver.launch(self->runnable, stream);
    }
    pthread_mutex_unlock(&self->lock);
    return made;
}
