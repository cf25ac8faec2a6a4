/* Every few milliseconds the calls of the program that the main thread is in are noted, with the
 * time since they were noted last.
 *
 * A thread asks for that, and the main thread does it itself before its next instruction, or when
 * the call of C that it is in returns: what Python does for signals too. A signal would interrupt
 * what the program waits for; a thread that took the GIL to look would find the program where it
 * releases that, and hardly ever in Python code. What is found is kept in plain C: no Python code
 * runs meanwhile, not even the garbage collector. */

#define _GNU_SOURCE
#include "sampler.h"

#include "onethread.h"

#include <dlfcn.h>
#include <stdatomic.h>
#include <stdint.h>
#include <string.h>
#include <time.h>

/* Of deeper stacks the outer frames are left out. */
#define MOST_FRAMES 256
/* At most so many different calls are kept; the time of a further one goes to its caller. */
#define MOST_NODES (1 << 16)
/* At most so many stretches of the time line are kept; beyond that, neighbours are joined in pairs. */
#define MOST_STRETCHES 4096
/* The thread sleeps at least this many times as long as the last look took, so that looking takes
 * less than 1 % of the time even where stacks are very deep. */
#define REST_FACTOR 150

/* A running call and those above it; times are nanoseconds. */
typedef struct {
    PyObject *code; /* NULL: no call, the root */
    int offset, parent;
    int64_t rest, called; /* outside and inside calls of compiled functions */
    int64_t samples;
} Node;

/* A part of the time line. */
typedef struct {
    int64_t rest, called;
    int64_t longest; /* of what was joined, the node counts that took so long */
    int node;
} Stretch;

static struct {
    PyThreadState *main; /* of the thread that is looked at; NULL before the first start */
    int64_t period;
    int64_t last, last_called; /* when it was looked at, and the time in calls up to then */
    /* time of calls of compiled functions, and other time, that no node has yet */
    int64_t open_called, open_rest;
    int call_node;           /* the last one that was found in such a call; -1: none */
    int64_t (*called)(void); /* nanoseconds in these calls; NULL: not known */
    int (*is_called)(void);  /* whether one is under way */
    Node *nodes;
    int n_nodes, nodes_room;
    int *places; /* nodes by what they are: a table with open addressing; -1: free */
    int places_room;
    Stretch *stretches;
    int n_stretches;
    int64_t shortest;    /* a shorter stretch takes in what follows */
    _Atomic int asked;   /* whether the main thread is to look and has not yet */
    _Atomic int in_call; /* whether it looks within, or at the end of, a call of such a function */
    _Atomic int64_t resting; /* nanoseconds */
    int running, stopping;
    pthread_t thread;
    long id;
    pthread_mutex_t lock;
    pthread_cond_t wake;
} s = {.lock = PTHREAD_MUTEX_INITIALIZER};

static int64_t now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

/* --- what was found --------------------------------------------------------------------------- */

static void forget(void)
{
    for (int k = 0; k < s.n_nodes; k++)
        Py_XDECREF(s.nodes[k].code);
    PyMem_RawFree(s.nodes);
    PyMem_RawFree(s.places);
    PyMem_RawFree(s.stretches);
    s.nodes = NULL;
    s.places = NULL;
    s.stretches = NULL;
    s.n_nodes = s.nodes_room = s.places_room = s.n_stretches = 0;
}

static int place_of(PyObject *code, int offset, int parent)
{
    uint64_t h = ((uint64_t)(uintptr_t)code >> 4) * 0x9E3779B97F4A7C15u;
    h = (h ^ (uint64_t)(uint32_t)offset ^ (uint64_t)(uint32_t)parent << 32) * 0x9E3779B97F4A7C15u;
    for (uint32_t k = (uint32_t)(h >> 32);; k++) {
        k &= (uint32_t)s.places_room - 1;
        const int found = s.places[k];
        if (found < 0 || (s.nodes[found].code == code && s.nodes[found].offset == offset &&
                          s.nodes[found].parent == parent))
            return (int)k;
    }
}

/* Make room for one more node; -1 without memory. */
static int make_room(void)
{
    if (s.n_nodes < s.nodes_room)
        return 0;
    const int room = s.nodes_room ? 2 * s.nodes_room : 256;
    Node *nodes = PyMem_RawRealloc(s.nodes, (size_t)room * sizeof *nodes);
    if (nodes == NULL)
        return -1;
    s.nodes = nodes;
    int *places = PyMem_RawRealloc(s.places, 4 * (size_t)room * sizeof *places);
    if (places == NULL)
        return -1;
    s.places = places;
    s.places_room = 4 * room;
    s.nodes_room = room;
    memset(places, -1, 4 * (size_t)room * sizeof *places);
    for (int k = 1; k < s.n_nodes; k++)
        places[place_of(nodes[k].code, nodes[k].offset, nodes[k].parent)] = k;
    return 0;
}

/* The node of a call; its parent if there are too many. */
static int node_of(PyObject *code, int offset, int parent)
{
    if (make_room() < 0)
        return parent;
    const int place = place_of(code, offset, parent);
    if (s.places[place] >= 0)
        return s.places[place];
    if (s.n_nodes >= MOST_NODES)
        return parent;
    Py_INCREF(code);
    s.nodes[s.n_nodes] = (Node){.code = code, .offset = offset, .parent = parent};
    return s.places[place] = s.n_nodes++;
}

static void join_pairs(void)
{
    for (int k = 0; k < s.n_stretches; k += 2) {
        Stretch a = s.stretches[k];
        if (k + 1 < s.n_stretches) {
            const Stretch *b = &s.stretches[k + 1];
            a.rest += b->rest;
            a.called += b->called;
            if (b->longest > a.longest) {
                a.longest = b->longest;
                a.node = b->node;
            }
        }
        s.stretches[k / 2] = a;
    }
    s.n_stretches = (s.n_stretches + 1) / 2;
    s.shortest *= 2;
}

static void add_stretch(int64_t rest, int64_t called, int node)
{
    Stretch *last = s.n_stretches ? &s.stretches[s.n_stretches - 1] : NULL;
    if (last != NULL && (last->node == node || last->rest + last->called < s.shortest)) {
        last->rest += rest;
        last->called += called;
        if (last->node == node) {
            last->longest += rest + called;
        } else if (rest + called > last->longest) {
            last->longest = rest + called;
            last->node = node;
        }
        return;
    }
    if (s.n_stretches == MOST_STRETCHES)
        join_pairs();
    s.stretches[s.n_stretches++] = (Stretch){rest, called, rest + called, node};
}

/* --- looking ---------------------------------------------------------------------------------- */

static int64_t called_ns(void) { return s.called == NULL ? 0 : s.called(); }

/* Add the time since the last look to what the main thread is in now; called by that thread. A short
 * call and what is between two of them may both fall between two looks. So each time goes to those
 * that were found in its part of the program: the one to the next that is found in a call, the other
 * to the next that is not. Returns the node. */
static int look(int in_call)
{
    PyObject *codes[MOST_FRAMES];
    int offsets[MOST_FRAMES];
    int n = 0;
    const int64_t now = now_ns(), called_now = called_ns();
    const int64_t past = now - s.last;
    int64_t called = called_now - s.last_called;
    called = called < 0 ? 0 : called > past ? past : called;
    s.last = now;
    s.last_called = called_now;
    s.open_called += called;
    s.open_rest += past - called;
    /* objects of frames are made, and Python 3.11 may collect garbage then */
    const int collects = PyGC_Disable();
    PyFrameObject *frame = PyThreadState_GetFrame(s.main);
    while (frame != NULL && n < MOST_FRAMES) {
        codes[n] = (PyObject *)PyFrame_GetCode(frame);
        offsets[n++] = PyFrame_GetLasti(frame);
        PyFrameObject *caller = PyFrame_GetBack(frame);
        Py_DECREF(frame);
        frame = caller;
    }
    Py_XDECREF(frame);
    PyErr_Clear(); /* no memory for an object of a frame: the outer ones are not known */
    int node = 0;
    for (int k = n - 1; k >= 0; k--) {
        node = node_of(codes[k], offsets[k], node);
        Py_DECREF(codes[k]);
    }
    if (in_call) {
        s.call_node = node;
        s.nodes[node].called += s.open_called;
        s.open_called = 0;
    } else {
        s.nodes[node].rest += s.open_rest;
        s.open_rest = 0;
    }
    s.nodes[node].samples++;
    add_stretch(past - called, called, node);
    if (collects)
        PyGC_Enable();
    return node;
}

/* Sleep, or until the thread is to stop; returns whether it is. */
static int sleep_for(int64_t ns)
{
    pthread_mutex_lock(&s.lock);
    if (!s.stopping) {
#ifdef __APPLE__
        struct timespec t = {ns / 1000000000, ns % 1000000000};
        pthread_cond_timedwait_relative_np(&s.wake, &s.lock, &t);
#else
        const int64_t until = now_ns() + ns;
        struct timespec t = {until / 1000000000, until % 1000000000};
        pthread_cond_timedwait(&s.wake, &s.lock, &t);
#endif
    }
    const int stopping = s.stopping;
    pthread_mutex_unlock(&s.lock);
    return stopping;
}

/* What the main thread runs. */
static int look_once(void *unused)
{
    const int64_t start = now_ns();
    if (s.main != NULL)
        look(atomic_load(&s.in_call));
    atomic_store(&s.resting, REST_FACTOR * (now_ns() - start));
    atomic_store(&s.asked, 0);
    return 0;
}

#if PY_VERSION_HEX < 0x030D0000
/* Before Python 3.13 the main thread does not see at once what other threads ask of it: have it look
 * whether there is anything. Without that function of Python it sees it later. */
static void interrupt_main(void)
{
    static void (*interrupt)(PyInterpreterState *);
    if (interrupt == NULL) {
        void *found = dlsym(RTLD_DEFAULT, "_PyEval_SignalAsyncExc");
        memcpy(&interrupt, &found, sizeof interrupt);
    }
    if (interrupt != NULL)
        interrupt(PyInterpreterState_Main());
}
#else
static void interrupt_main(void) {}
#endif

static void *run(void *unused)
{
    s.id = ow_thread_id();
    for (int64_t ns = s.period; !sleep_for(ns);) {
        if (!atomic_exchange(&s.asked, 1)) {
            atomic_store(&s.in_call, 0);
            if (Py_AddPendingCall(look_once, NULL) < 0)
                atomic_store(&s.asked, 0); /* too many others wait */
            interrupt_main();
            /* from now on the main thread looks as soon as a call ends: it is still at its line */
            if (s.is_called != NULL && s.is_called())
                atomic_store(&s.in_call, 1);
        }
        const int64_t resting = atomic_load(&s.resting);
        ns = resting > s.period ? resting : s.period;
    }
    return unused;
}

/* --- starting and stopping -------------------------------------------------------------------- */

static int start_thread(void)
{
    if (s.running)
        return 0;
    s.stopping = 0;
    atomic_store(&s.asked, 0);
    s.running = !ow_start_thread(&s.thread, run, NULL);
    return s.running ? 0 : -1;
}

/* Look at this thread from now on; nothing is known of it yet. */
static int begin(void)
{
    forget();
    s.stretches = PyMem_RawMalloc(MOST_STRETCHES * sizeof *s.stretches);
    if (s.stretches == NULL || make_room() < 0) {
        forget();
        PyErr_NoMemory();
        return -1;
    }
    s.nodes[s.n_nodes++] = (Node){.parent = -1};
    s.main = PyThreadState_Get();
    s.shortest = s.period / 2;
    s.last = now_ns();
    s.last_called = called_ns();
    s.open_called = s.open_rest = 0;
    s.call_node = -1;
    return 0;
}

static PyObject *start_sampling(PyObject *module, PyObject *period)
{
    const long long ns = PyLong_AsLongLong(period);
    if (ns == -1 && PyErr_Occurred())
        return NULL;
    if (ns <= 0) {
        PyErr_SetString(PyExc_ValueError, "the period of sampling must be positive");
        return NULL;
    }
    if (s.main == NULL) {
        s.period = ns;
        if (begin() < 0)
            return NULL;
        if (start_thread() < 0) {
            s.main = NULL;
            forget();
        }
    }
    return PyBool_FromLong(s.running);
}

static PyObject *stop_sampling(PyObject *module, PyObject *unused)
{
    if (s.running) {
        Py_BEGIN_ALLOW_THREADS;
        pthread_mutex_lock(&s.lock);
        s.stopping = 1;
        pthread_cond_signal(&s.wake);
        pthread_mutex_unlock(&s.lock);
        pthread_join(s.thread, NULL);
        ow_wait_until_gone(s.id);
        Py_END_ALLOW_THREADS;
        s.running = 0;
    }
    Py_RETURN_NONE;
}

static PyObject *after_fork_in_parent(PyObject *module, PyObject *unused)
{
    if (s.main != NULL)
        start_thread();
    Py_RETURN_NONE;
}

static PyObject *after_fork_in_child(PyObject *module, PyObject *unused)
{
    if (s.main != NULL && (begin() < 0 || start_thread() < 0)) {
        PyErr_Clear(); /* a program is not disturbed for its profile */
        s.main = NULL;
    }
    Py_RETURN_NONE;
}

static PyObject *watch_calls(PyObject *module, PyObject *addresses)
{
    unsigned long long called, is_called;
    if (!PyArg_ParseTuple(addresses, "KK", &called, &is_called))
        return NULL;
    s.called = (int64_t (*)(void))(uintptr_t)called;
    s.is_called = (int (*)(void))(uintptr_t)is_called;
    s.last_called = called_ns();
    Py_RETURN_NONE;
}

static PyObject *is_sampling(PyObject *module, PyObject *unused)
{
    return PyBool_FromLong(s.main != NULL);
}

/* --- the results ------------------------------------------------------------------------------ */

static PyObject *node_rows(int open_node)
{
    PyObject *rows = PyList_New(s.n_nodes);
    for (int k = 0; rows != NULL && k < s.n_nodes; k++) {
        const Node *node = &s.nodes[k];
        const int64_t called = node->called + (k == open_node ? s.open_called : 0);
        PyObject *row =
            Py_BuildValue("(OiiLLL)", node->code ? node->code : Py_None, node->offset, node->parent,
                          (long long)node->rest, (long long)called, (long long)node->samples);
        if (row == NULL)
            Py_CLEAR(rows);
        else
            PyList_SET_ITEM(rows, k, row);
    }
    return rows;
}

static PyObject *stretch_rows(void)
{
    PyObject *rows = PyList_New(s.n_stretches);
    for (int k = 0; rows != NULL && k < s.n_stretches; k++) {
        const Stretch *one = &s.stretches[k];
        PyObject *row =
            Py_BuildValue("(LLi)", (long long)one->rest, (long long)one->called, one->node);
        if (row == NULL)
            Py_CLEAR(rows);
        else
            PyList_SET_ITEM(rows, k, row);
    }
    return rows;
}

static PyObject *samples(PyObject *module, PyObject *unused)
{
    if (s.main == NULL)
        Py_RETURN_NONE;
    int open_node = s.call_node < 0 ? 0 : s.call_node; /* has time that no look has given yet */
    if (PyThreadState_Get() == s.main) {
        const int node = look(0);
        open_node = s.call_node < 0 ? node : s.call_node;
    }
    /* rows are made with the GIL held, and no Python code runs: garbage is collected later */
    const int collects = PyGC_Disable();
    PyObject *nodes = node_rows(open_node), *stretches = nodes == NULL ? NULL : stretch_rows();
    if (collects)
        PyGC_Enable();
    PyObject *found = stretches == NULL ? NULL
                                        : Py_BuildValue("(LLOO)", (long long)s.period,
                                                        (long long)s.last, nodes, stretches);
    Py_XDECREF(nodes);
    Py_XDECREF(stretches);
    return found;
}

static PyMethodDef methods[] = {
    {"start_sampling", start_sampling, METH_O,
     "start_sampling(period)\n--\n\n"
     "Look every so many nanoseconds which calls this thread, the main one, is in.\n\n"
     "Return whether it is looked at. Later calls change nothing."},
    {"stop_sampling", stop_sampling, METH_NOARGS,
     "stop_sampling()\n--\n\nEnd the thread that looks; what it found stays."},
    {"watch_calls", watch_calls, METH_VARARGS,
     "watch_calls(called, is_called)\n--\n\n"
     "Tell calls of compiled functions apart from other time.\n\n"
     "called, is_called: addresses of C functions without arguments: of one that returns the\n"
     "nanoseconds in all calls so far, that under way included, and of one that says whether "
     "there\n"
     "is one, which another thread calls."},
    {"is_sampling", is_sampling, METH_NOARGS,
     "is_sampling()\n--\n\nReturn whether sampling has begun."},
    {"samples", samples, METH_NOARGS,
     "samples()\n--\n\n"
     "Return (period, until, nodes, stretches), or None if sampling never began.\n\n"
     "Times are nanoseconds; until is by time.monotonic_ns(). A node is (code, offset, number of\n"
     "the node that called it, time outside compiled functions, time in them, samples); the first\n"
     "has code None. A stretch of the time line is (time outside, time in, number of the node\n"
     "that took most of it), without gaps; the last one ends at until."},
    {NULL, NULL, 0, NULL},
};

static PyMethodDef hooks[] = {
    {"after_fork_in_parent", after_fork_in_parent, METH_NOARGS, NULL},
    {"after_fork_in_child", after_fork_in_child, METH_NOARGS, NULL},
    {NULL, NULL, 0, NULL},
};

/* Call `module.function(**arguments)`; takes the reference to the arguments. */
static int registered(const char *module, const char *function, PyObject *args, PyObject *named)
{
    int result = -1;
    PyObject *from = PyImport_ImportModule(module);
    PyObject *called = from == NULL ? NULL : PyObject_GetAttrString(from, function);
    PyObject *answer = called == NULL || args == NULL ? NULL : PyObject_Call(called, args, named);
    if (answer != NULL)
        result = 0;
    Py_XDECREF(answer);
    Py_XDECREF(called);
    Py_XDECREF(from);
    Py_XDECREF(args);
    Py_XDECREF(named);
    return result;
}

int ow_add_sampler(PyObject *module)
{
#ifdef __APPLE__
    pthread_cond_init(&s.wake, NULL);
#else
    pthread_condattr_t monotonic;
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(&s.wake, &monotonic);
    pthread_condattr_destroy(&monotonic);
#endif
    if (PyModule_AddFunctions(module, methods) < 0)
        return -1;
    PyObject *stop = PyObject_GetAttrString(module, "stop_sampling");
    PyObject *in_parent = PyCFunction_New(&hooks[0], NULL);
    PyObject *in_child = PyCFunction_New(&hooks[1], NULL);
    int failed = stop == NULL || in_parent == NULL || in_child == NULL;
    /* a program of one thread forks as one, and no thread outlives the interpreter */
    failed = failed ||
             registered("os", "register_at_fork", PyTuple_New(0),
                        Py_BuildValue("{sOsOsO}", "before", stop, "after_in_parent", in_parent,
                                      "after_in_child", in_child)) ||
             registered("atexit", "register", PyTuple_Pack(1, stop), NULL);
    Py_XDECREF(stop);
    Py_XDECREF(in_parent);
    Py_XDECREF(in_child);
    return failed ? -1 : 0;
}
