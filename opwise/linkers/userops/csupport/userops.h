/* What precedes the C++ code of a user's Op.
 * Such code was written for Python 2 and 3 and for numpy 1.x. Fields of PyArrayObject are visible,
 * and names that Python 3 and numpy 2 dropped are defined where something of today means the
 * same. */
#include <Python.h>
#include <iostream>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include <exception>
#include <new>

#define NPY_TARGET_VERSION NPY_2_0_API_VERSION
#include <numpy/arrayobject.h>
#include <numpy/arrayscalars.h>
#include <numpy/npy_math.h>

/* --- Python 2 --------------------------------------------------------------------------------- */

#define PyInt_Check PyLong_Check
#define PyInt_CheckExact PyLong_CheckExact
#define PyInt_AsLong PyLong_AsLong
#define PyInt_AS_LONG PyLong_AsLong
#define PyInt_FromLong PyLong_FromLong
#define PyInt_FromSsize_t PyLong_FromSsize_t
#define PyNumber_Int PyNumber_Long
#define PyString_Check PyUnicode_Check
#define PyString_FromString PyUnicode_FromString
#define PyString_FromFormat PyUnicode_FromFormat
#define PyString_AsString(s) ((char *)PyUnicode_AsUTF8(s))

/* --- numpy 1.x -------------------------------------------------------------------------------- */

#define NPY_C_CONTIGUOUS NPY_ARRAY_C_CONTIGUOUS
#define NPY_F_CONTIGUOUS NPY_ARRAY_F_CONTIGUOUS
#define NPY_CONTIGUOUS NPY_ARRAY_C_CONTIGUOUS
#define NPY_FORTRAN NPY_ARRAY_F_CONTIGUOUS
#define NPY_OWNDATA NPY_ARRAY_OWNDATA
#define NPY_FORCECAST NPY_ARRAY_FORCECAST
#define NPY_ENSURECOPY NPY_ARRAY_ENSURECOPY
#define NPY_ENSUREARRAY NPY_ARRAY_ENSUREARRAY
#define NPY_ELEMENTSTRIDES NPY_ARRAY_ELEMENTSTRIDES
#define NPY_ALIGNED NPY_ARRAY_ALIGNED
#define NPY_NOTSWAPPED NPY_ARRAY_NOTSWAPPED
#define NPY_WRITEABLE NPY_ARRAY_WRITEABLE
#define NPY_BEHAVED NPY_ARRAY_BEHAVED
#define NPY_BEHAVED_NS NPY_ARRAY_BEHAVED_NS
#define NPY_CARRAY NPY_ARRAY_CARRAY
#define NPY_CARRAY_RO NPY_ARRAY_CARRAY_RO
#define NPY_FARRAY NPY_ARRAY_FARRAY
#define NPY_FARRAY_RO NPY_ARRAY_FARRAY_RO
#define NPY_DEFAULT NPY_ARRAY_DEFAULT
#define NPY_IN_ARRAY NPY_ARRAY_IN_ARRAY
#define NPY_OUT_ARRAY NPY_ARRAY_OUT_ARRAY
#define NPY_INOUT_ARRAY NPY_ARRAY_INOUT_ARRAY
#define NPY_UPDATE_ALL NPY_ARRAY_UPDATE_ALL

/* Functions that took any array as a PyObject * still do, and give what they gave. */
#define PyArray_FLOAT32 NPY_FLOAT32
#define PyArray_FLOAT64 NPY_FLOAT64
#define PyArray_FLOAT NPY_FLOAT
#define PyArray_DOUBLE NPY_DOUBLE
#define PyArray_BOOL NPY_BOOL
#define PyArray_INT NPY_INT
#define PyArray_LONG NPY_LONG
#define PyArray_INT8 NPY_INT8
#define PyArray_INT16 NPY_INT16
#define PyArray_INT32 NPY_INT32
#define PyArray_INT64 NPY_INT64
#define PyArray_UINT8 NPY_UINT8
#define PyArray_UINT16 NPY_UINT16
#define PyArray_UINT32 NPY_UINT32
#define PyArray_UINT64 NPY_UINT64
#define PyArray_COMPLEX64 NPY_COMPLEX64
#define PyArray_COMPLEX128 NPY_COMPLEX128

/* --- complex numbers: real and imag are members, as they were in numpy 1.x -------------------- */

template <typename T> struct ow_complex {
    T real, imag;
    typedef T scalar_type;
    typedef ow_complex complex_type;
    ow_complex() : real(0), imag(0) {}
    ow_complex(T r, T i) : real(r), imag(i) {}
    template <typename R> ow_complex(const R &r) : real((T)r), imag(0) {}
    template <typename R> ow_complex(const ow_complex<R> &c) : real((T)c.real), imag((T)c.imag) {}
    ow_complex operator-() const { return ow_complex(-real, -imag); }
    ow_complex operator+(const ow_complex &y) const
    {
        return ow_complex(real + y.real, imag + y.imag);
    }
    ow_complex operator-(const ow_complex &y) const
    {
        return ow_complex(real - y.real, imag - y.imag);
    }
    ow_complex operator*(const ow_complex &y) const
    {
        return ow_complex(real * y.real - imag * y.imag, real * y.imag + imag * y.real);
    }
    ow_complex operator/(const ow_complex &y) const
    {
        const T norm = y.real * y.real + y.imag * y.imag;
        return ow_complex((real * y.real + imag * y.imag) / norm,
                          (imag * y.real - real * y.imag) / norm);
    }
    bool operator==(const ow_complex &y) const { return real == y.real && imag == y.imag; }
    bool operator!=(const ow_complex &y) const { return !(*this == y); }
};
typedef ow_complex<npy_float32> theano_complex64;
typedef ow_complex<npy_float64> theano_complex128;

/* --- used by opwise's own Types and by the struct of an Apply --------------------------------- */

/* Set an exception if there is none; returns the number that says what failed. */
static int ow_failed(int id)
{
    if (!PyErr_Occurred())
        PyErr_SetString(PyExc_RuntimeError,
                        "Unexpected error in an Op's C code. No Python exception was set.");
    return id;
}

/* 0 if an object is an array of a type, aligned; otherwise an exception is set. */
static inline int ow_check_array(PyObject *object, int typenum, const char *name)
{
    if (object == Py_None) {
        PyErr_SetString(PyExc_ValueError, "expected an ndarray, not None");
        return -1;
    }
    if (!PyArray_Check(object)) {
        PyErr_SetString(PyExc_ValueError, "expected an ndarray");
        return -1;
    }
    PyArrayObject *array = (PyArrayObject *)object;
    if (!PyArray_ISALIGNED(array)) {
        PyErr_Format(PyExc_NotImplementedError, "expected an aligned array of type %d (%s)",
                     typenum, name);
        return -1;
    }
    if (PyArray_TYPE(array) != typenum) {
        PyErr_Format(PyExc_TypeError, "expected type_num %d (%s) got %d", typenum, name,
                     PyArray_TYPE(array));
        return -1;
    }
    return 0;
}

static inline void ow_put(PyObject **cell, PyObject *object)
{
    PyObject *old = *cell;
    Py_INCREF(object);
    *cell = object;
    Py_XDECREF(old);
}

static PyObject *ow_init_library();

/* numpy, and then the code of the user that runs once in a library */
static inline int ow_ready()
{
    static int state = 0;
    if (!state) {
        if (PyArray_API == NULL && _import_array() < 0)
            return -1;
        PyObject *done = ow_init_library();
        if (done == NULL || PyErr_Occurred()) {
            Py_XDECREF(done);
            return ow_failed(-1);
        }
        Py_DECREF(done);
        state = 1;
    }
    return 0;
}

static inline int ow_caught(const char *what)
{
    if (!PyErr_Occurred())
        PyErr_Format(PyExc_RuntimeError, "a C++ exception in an Op's C code: %s", what);
    return -1;
}

#define OW_TRY(...)                                                                                \
    try {                                                                                          \
        __VA_ARGS__                                                                                \
    } catch (const std::bad_alloc &) {                                                             \
        PyErr_NoMemory();                                                                          \
        failed = -1;                                                                               \
    } catch (const std::exception &e) {                                                            \
        failed = ow_caught(e.what());                                                              \
    } catch (...) {                                                                                \
        failed = ow_caught("of unknown type");                                                     \
    }

/* A loop that holds the GIL while it runs another one. */
#define OW_WITH_GIL(name, loop)                                                                    \
    __attribute__((visibility("default"))) void name(const void *ctx, char **p, const ow_i64 *st,  \
                                                     ow_i64 n)                                     \
    {                                                                                              \
        PyGILState_STATE state = PyGILState_Ensure();                                              \
        int failed = 0;                                                                            \
        OW_TRY(loop(ctx, p, st, n);)                                                               \
        (void)failed;                                                                              \
        PyGILState_Release(state);                                                                 \
    }

/* The functions of a library that opwise_c.ObjectCode calls. */
#define OW_FUNCTIONS(type)                                                                         \
    extern "C" __attribute__((visibility("default"))) void ow_user_free(void *p)                   \
    {                                                                                              \
        int failed = 0;                                                                            \
        type *self = (type *)p;                                                                    \
        OW_TRY(self->cleanup(); delete self;)                                                      \
        if (failed)                                                                                \
            PyErr_Clear();                                                                         \
    }                                                                                              \
    extern "C" __attribute__((visibility("default"))) void *ow_user_new(PyObject *params)          \
    {                                                                                              \
        int failed = ow_ready();                                                                   \
        if (failed)                                                                                \
            return NULL;                                                                           \
        type *self = NULL;                                                                         \
        OW_TRY(self = new type(); failed = self->init(params);)                                    \
        if (!failed)                                                                               \
            return self;                                                                           \
        PyObject *kind, *value, *trace; /* the cleanup keeps the first exception */                \
        PyErr_Fetch(&kind, &value, &trace);                                                        \
        if (self)                                                                                  \
            ow_user_free(self);                                                                    \
        PyErr_Restore(kind, value, trace);                                                         \
        return NULL;                                                                               \
    }                                                                                              \
    extern "C" __attribute__((visibility("default"))) int ow_user_run(void *p, PyObject **cells)   \
    {                                                                                              \
        int failed = 0;                                                                            \
        OW_TRY(failed = ((type *)p)->run(cells);)                                                  \
        return failed;                                                                             \
    }
