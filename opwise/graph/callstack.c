/* The calls of the user's program that are running: what provenance.py keeps of each Apply.
 *
 * Graphs are built call by call below the same callers, so a stack is a tuple that all Applys with
 * the same one share. Walking it in Python takes long: to look up a code object there, all that it
 * contains is hashed. */

#include "sampler.h"

/* Of deeper stacks the outer frames are left out. */
#define MOST_FRAMES 256
/* So many different stacks are kept to be shared. A program that makes more makes new code all the
 * time. */
#define MOST_STACKS (1 << 16)

/* Code objects, and whether they are opwise's own: a table with open addressing. */
static struct {
    PyObject *code;
    int internal;
} *known;
static size_t known_size, known_used;
/* {hash: stack}, and {hash: (code, offset)}: stacks that differ have most frames in common */
static PyObject *stacks, *frames;

static size_t place_of(PyObject *code)
{
    size_t k = ((size_t)code >> 4) * 0x9E3779B97F4A7C15u >> 20;
    for (;; k++) {
        k &= known_size - 1;
        if (known[k].code == code || known[k].code == NULL)
            return k;
    }
}

static int grow_known(void)
{
    const size_t before = known_size;
    void *old = known;
    known = PyMem_Calloc(before ? 2 * before : 1024, sizeof(*known));
    if (known == NULL) {
        known = old;
        PyErr_NoMemory();
        return -1;
    }
    known_size = before ? 2 * before : 1024;
    for (size_t k = 0; k < before; k++) {
        PyObject *code = ((__typeof__(known))old)[k].code;
        if (code != NULL)
            known[place_of(code)] = ((__typeof__(known))old)[k];
    }
    PyMem_Free(old);
    return 0;
}

/* Whether a code object is opwise's own, as `is_internal` says; -1 with an exception. */
static int is_internal_code(PyObject *code, PyObject *is_internal)
{
    if (2 * known_used >= known_size && grow_known() < 0)
        return -1;
    size_t k = place_of(code);
    if (known[k].code != NULL)
        return known[k].internal;
    PyObject *answer = PyObject_CallOneArg(is_internal, code);
    const int internal = answer == NULL ? -1 : PyObject_IsTrue(answer);
    Py_XDECREF(answer);
    if (internal < 0)
        return -1;
    k = place_of(code); /* Python code ran */
    if (known[k].code == NULL) {
        Py_INCREF(code); /* for ever: another one must not get its address */
        known[k].code = code;
        known[k].internal = internal;
        known_used++;
    }
    return internal;
}

static int is_stack(PyObject *stack, PyObject *const *codes, const int *offsets, Py_ssize_t n)
{
    if (PyTuple_GET_SIZE(stack) != n)
        return 0;
    for (Py_ssize_t k = 0; k < n; k++) {
        PyObject *frame = PyTuple_GET_ITEM(stack, k);
        if (PyTuple_GET_ITEM(frame, 0) != codes[k] ||
            PyLong_AsLong(PyTuple_GET_ITEM(frame, 1)) != offsets[k])
            return 0;
    }
    return 1;
}

static uint64_t mixed(uint64_t hash, PyObject *code, int offset)
{
    return (hash ^ (uint64_t)(uintptr_t)code ^ (uint64_t)offset << 40) * 0x9E3779B97F4A7C15u;
}

/* The pair of a frame: that of an earlier call if there is one. */
static PyObject *shared_frame(PyObject *code, int offset)
{
    PyObject *key = PyLong_FromUnsignedLongLong(mixed(0, code, offset) >> 2);
    if (key == NULL)
        return NULL;
    PyObject *found = PyDict_GetItemWithError(frames, key);
    if (found != NULL && PyTuple_GET_ITEM(found, 0) == code &&
        PyLong_AsLong(PyTuple_GET_ITEM(found, 1)) == offset) {
        Py_INCREF(found);
    } else {
        found = PyErr_Occurred() ? NULL : Py_BuildValue("(Oi)", code, offset);
        if (found != NULL && PyDict_SetItem(frames, key, found) < 0)
            Py_CLEAR(found);
    }
    Py_DECREF(key);
    return found;
}

static PyObject *made_stack(PyObject *const *codes, const int *offsets, Py_ssize_t n)
{
    PyObject *stack = PyTuple_New(n);
    for (Py_ssize_t k = 0; stack != NULL && k < n; k++) {
        PyObject *frame = shared_frame(codes[k], offsets[k]);
        if (frame == NULL)
            Py_CLEAR(stack);
        else
            PyTuple_SET_ITEM(stack, k, frame);
    }
    return stack;
}

/* The tuple of a stack: that of an earlier call with the same one if there is one. */
static PyObject *shared_stack(PyObject *const *codes, const int *offsets, Py_ssize_t n)
{
    uint64_t hash = (uint64_t)n;
    for (Py_ssize_t k = 0; k < n; k++)
        hash = mixed(hash, codes[k], offsets[k]);
    PyObject *key = PyLong_FromUnsignedLongLong(hash >> 2);
    if (key == NULL)
        return NULL;
    PyObject *found = PyDict_GetItemWithError(stacks, key);
    if (found != NULL && is_stack(found, codes, offsets, n)) {
        Py_INCREF(found);
    } else {
        found = PyErr_Occurred() ? NULL : made_stack(codes, offsets, n);
        if (found != NULL && PyDict_GET_SIZE(stacks) >= MOST_STACKS) {
            PyDict_Clear(stacks);
            PyDict_Clear(frames);
        }
        if (found != NULL && PyDict_SetItem(stacks, key, found) < 0)
            Py_CLEAR(found);
    }
    Py_DECREF(key);
    return found;
}

static PyObject *capture(PyObject *module, PyObject *is_internal)
{
    PyObject *codes[MOST_FRAMES];
    int offsets[MOST_FRAMES];
    Py_ssize_t n = 0;
    int failed = 0;
    PyFrameObject *frame = PyEval_GetFrame();
    Py_XINCREF(frame);
    while (frame != NULL && n < MOST_FRAMES) {
        PyObject *code = (PyObject *)PyFrame_GetCode(frame);
        const int internal = is_internal_code(code, is_internal);
        if (internal == 0) {
            codes[n] = code;
            offsets[n++] = PyFrame_GetLasti(frame);
        } else {
            Py_DECREF(code);
        }
        PyFrameObject *caller = PyFrame_GetBack(frame);
        Py_DECREF(frame);
        frame = caller;
        if (internal < 0) {
            failed = 1;
            break;
        }
    }
    Py_XDECREF(frame);
    PyObject *stack = failed ? NULL : shared_stack(codes, offsets, n);
    while (n > 0)
        Py_DECREF(codes[--n]);
    return stack;
}

static PyMethodDef methods[] = {
    {"capture", capture, METH_O,
     "capture(is_internal)\n--\n\n"
     "Return the running frames of the user's program, innermost first, as (code, offset) "
     "pairs.\n\n"
     "is_internal: a function that says of a code object whether it is not the user's; it is "
     "asked\n"
     "once for each. Equal stacks are the same tuple."},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef definition = {
    PyModuleDef_HEAD_INIT, "callstack", NULL, -1, methods, NULL, NULL, NULL, NULL,
};

PyMODINIT_FUNC PyInit_callstack(void)
{
    if (stacks == NULL && (stacks = PyDict_New()) == NULL)
        return NULL;
    if (frames == NULL && (frames = PyDict_New()) == NULL)
        return NULL;
    PyObject *module = PyModule_Create(&definition);
    if (module != NULL && ow_add_sampler(module) < 0)
        Py_CLEAR(module);
    return module;
}
