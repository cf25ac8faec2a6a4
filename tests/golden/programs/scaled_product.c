#section support_code

/* out = x * y * factor, element by element */
template <typename T> static void scaled(T *out, const T *x, const T *y, T factor, npy_intp n)
{
    for (npy_intp i = 0; i < n; i++)
        out[i] = x[i] * y[i] * factor;
}

#section support_code_struct

npy_intp calls;

#section init_code_struct

this->calls = 0;

#section support_code_apply

static int APPLY_SPECIFIC(multiply)(PyArrayObject *x, PyArrayObject *y, PyArrayObject **out,
                                    PARAMS_TYPE *params)
{
    if (PyArray_DIMS(x)[0] != PyArray_DIMS(y)[0]) {
        PyErr_Format(PyExc_ValueError, "lengths differ: %ld and %ld", (long)PyArray_DIMS(x)[0],
                     (long)PyArray_DIMS(y)[0]);
        return 1;
    }
    if (*out == NULL || PyArray_DIMS(*out)[0] != PyArray_DIMS(x)[0]) {
        Py_XDECREF(*out);
        *out = (PyArrayObject *)PyArray_EMPTY(1, PyArray_DIMS(x), TYPENUM_OUTPUT_0, 0);
        if (*out == NULL)
            return 1;
    }
    PyArrayObject *a = PyArray_GETCONTIGUOUS(x), *b = PyArray_GETCONTIGUOUS(y);
    scaled<DTYPE_OUTPUT_0>((DTYPE_OUTPUT_0 *)PyArray_DATA(*out), (DTYPE_INPUT_0 *)PyArray_DATA(a),
                           (DTYPE_INPUT_1 *)PyArray_DATA(b), (DTYPE_PARAM_factor)params->factor,
                           PyArray_DIMS(x)[0]);
    Py_DECREF(a);
    Py_DECREF(b);
    return 0;
}
