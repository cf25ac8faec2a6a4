# cython: language_level=3
# numpy's C functions for arrays. A module that calls one says import_array() first.

cdef extern from "numpy/arrayobject.h":
    ctypedef Py_ssize_t npy_intp
    ctypedef class numpy.ndarray [object PyArrayObject, check_size ignore]:
        pass
    int NPY_INT8, NPY_INT16, NPY_INT32, NPY_INT64, NPY_UINT8, NPY_FLOAT32, NPY_FLOAT64
    int NPY_ARRAY_WRITEABLE
    int import_array "_import_array"() except -1
    int PyArray_TYPE(ndarray)
    int PyArray_NDIM(ndarray)
    void *PyArray_DATA(ndarray)
    npy_intp PyArray_DIM(ndarray, int)
    npy_intp PyArray_STRIDE(ndarray, int)
    object PyArray_DescrFromType(int)
    object PyArray_SimpleNew(int, npy_intp *, int)
    int PyArray_SetBaseObject(ndarray, object) except -1
    bint PyArray_CheckExact(object)
    bint PyArray_EquivTypenums(int, int)
    bint PyArray_ISBEHAVED_RO(ndarray)
    void PyArray_ScalarAsCtype(object, void *)
    bint PyArray_ISWRITEABLE(ndarray)
    void PyArray_CLEARFLAGS(ndarray, int)
