/* Calls that a library has a part in, as graphs of the driver: one for each set of addresses.

   A library's kernels are its own: which of their parameters are addresses is not known, and graph.c can set none of
   them. But a program that makes the same calls again and again is given the same memory again and again. So a call whose
   addresses were seen before is captured as it is, and launched as that graph wherever all of its addresses, and the
   stream, are the same again. A graph that does more than to launch kernels and to fill memory is not used. */

#define MOST_FIXED 32 /* of a kind of call */
#define ALL_FIXED 128 /* of the process: each takes 120 KB of the GPU */
#define TRIED_FIXED MOST_FIXED /* of a kind of call, before it is looked at whether they are used again */
#define WORTH_FIXED 4 /* so often at least */
#define SEEN 64 /* sets of addresses that are remembered */
#define MOST_NODES 64

enum { NODE_KERNEL = 0, NODE_FILL = 2, NODE_EMPTY = 5 };

typedef struct {
    void *stream, *runnable;
    uint64_t *values;
} FixedGraph;

typedef struct {
    FixedGraph graphs[MOST_FIXED];
    int known, next;           /* that there are, and which is replaced next */
    uint64_t seen[SEEN];
    int seen_next;
    long made, used;
    int given_up;
} Fixed;

static int fixed_there; /* that there are */

static uint64_t fixed_hash(const uint64_t *values, Py_ssize_t count, void *stream)
{
    uint64_t hash = (uint64_t)(uintptr_t)stream ^ 14695981039346656037u;
    for (Py_ssize_t i = 0; i < count; i++)
        hash = (hash ^ values[i]) * 1099511628211u, hash ^= hash >> 29;
    return hash ? hash : 1;
}

/* Return whether a set of addresses was seen before; it is from now on. */
static int fixed_seen(Fixed *self, uint64_t hash)
{
    for (int i = 0; i < SEEN; i++)
        if (self->seen[i] == hash)
            return 1;
    self->seen[self->seen_next++ % SEEN] = hash;
    return 0;
}

static void fixed_drop(const GraphDriver *driver, FixedGraph *one)
{
    driver->destroy_runnable(one->runnable);
    free(one->values);
    memset(one, 0, sizeof *one);
    __atomic_sub_fetch(&fixed_there, 1, __ATOMIC_RELAXED);
}

static void fixed_free(Fixed *self, Graph *graph)
{
    int mode = self->known ? relaxed(graph) : 0;
    for (int i = 0; i < self->known; i++)
        fixed_drop(&graph->driver, &self->graphs[i]);
    if (self->known)
        graph->driver.exchange(&mode);
    self->known = 0;
}

/* Return the graph of a set of addresses, or NULL. */
static FixedGraph *fixed_of(Fixed *self, const uint64_t *values, Py_ssize_t count, void *stream)
{
    for (int i = 0; i < self->known; i++) {
        FixedGraph *one = &self->graphs[i];
        if (one->stream == stream && !memcmp(one->values, values, sizeof(uint64_t) * count))
            return one;
    }
    return NULL;
}

/* Return whether another one may be made for a stream. */
static int fixed_may(const Fixed *self, const Graph *graph, void *stream)
{
    int priority = 0;
    return stream != STREAM_PER_THREAD && (self->known == MOST_FIXED
               || __atomic_load_n(&fixed_there, __ATOMIC_RELAXED) < ALL_FIXED)
        && !graph->driver.priority(stream, &priority) && !priority;
}

/* Return whether a graph launches kernels and fills memory, and does nothing else. */
static int fixed_plain(const GraphDriver *driver, void *graph)
{
    void *nodes[MOST_NODES];
    size_t count = 0;
    if (driver->nodes(graph, NULL, &count) || !count || count > MOST_NODES || driver->nodes(graph, nodes, &count))
        return 0;
    for (size_t i = 0; i < count; i++) {
        int type = -1;
        if (driver->type(nodes[i], &type) || (type != NODE_KERNEL && type != NODE_FILL && type != NODE_EMPTY))
            return 0;
    }
    return 1;
}

/* Keep a runnable graph of a set of addresses, in place of the one that was made first where there is no room. */
static FixedGraph *fixed_keep(
    Fixed *self, const GraphDriver *driver, void *runnable, const uint64_t *values, Py_ssize_t count, void *stream)
{
    uint64_t *copy = malloc(sizeof(uint64_t) * (count + 1));
    if (!copy) {
        driver->destroy_runnable(runnable);
        return NULL;
    }
    memcpy(copy, values, sizeof(uint64_t) * count);
    FixedGraph *one = &self->graphs[self->known < MOST_FIXED ? self->known++ : self->next++ % MOST_FIXED];
    if (one->runnable)
        fixed_drop(driver, one);
    *one = (FixedGraph){stream, runnable, copy};
    __atomic_add_fetch(&fixed_there, 1, __ATOMIC_RELAXED);
    self->made++;
    return one;
}
