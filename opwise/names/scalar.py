"""Names of ``theano.scalar`` for old programs: constructors, autocasting, choices of dtypes."""

from __future__ import annotations

import numpy as np

from opwise.config import config
from opwise.scalar import (
    OPS,
    ScalarOp,
    as_scalar,
    complex64,
    complex128,
    discrete_types,
    float32,
    float64,
    float_types,
    get_scalar_type,
    int8,
    int64,
    int_types,
    same_out,
    types,
    uint_types,
    upcast,
    upcast_out,
)
from opwise.scalar.types import autocast
from opwise.tensor.elemwise import elemwise
from opwise.tensor.variable import Several

integer_types = int_types + uint_types
ints, floats, complexs = Several(int64), Several(float64), Several(complex128)
complexs64, complexs128 = Several(complex64), Several(complex128)


class NumpyAutocaster:
    """Turns a Python number into an array of the first of ``dtypes`` that holds it exactly.

    If none does, the last one counts; under the flag ``cast_policy='numpy+floatX'``, floatX does.
    """

    def __init__(self, dtypes):
        self.dtypes = tuple(dtypes)

    def __call__(self, x):
        if getattr(x, "dtype", None) in self.dtypes:
            return np.asarray(x)
        if config.cast_policy == "numpy+floatX":
            return np.asarray(autocast(x))
        if isinstance(x, float) and config.floatX in self.dtypes and config.floatX != "float64":
            return np.asarray(x, dtype=config.floatX)
        tried = [d for d in self.dtypes if d != "float16" or config.floatX == "float16"]
        arrays = (np.asarray(x).astype(dtype) for dtype in tried)
        return next((a for a in arrays if a.item() == x), np.asarray(x).astype(tried[-1]))


class FloatAutocaster(NumpyAutocaster):
    """The autocaster of floats: within ``autocast_float_as`` it has the dtypes given there."""

    @property
    def dtypes(self):
        return types.autocast_floats.get() or self._dtypes

    @dtypes.setter
    def dtypes(self, dtypes):
        self._dtypes = dtypes


autocast_int = NumpyAutocaster(("int8", "int16", "int32", "int64"))
autocast_float = FloatAutocaster(("float16", "float32", "float64"))

#: these compute for integers, too, and are never an allocation
isinf_, isnan_ = elemwise("isinf"), elemwise("isnan")
#: functions of arrays
round_half_away_from_zero_vec = OPS["round_half_away_from_zero"].row.numpy


def as_common_dtype(*vars):
    """Return the variables, cast to the dtype that holds the values of all of them."""
    dtype = upcast(*(v.dtype for v in vars))
    return (v.astype(dtype) for v in vars)


def convert(x, dtype=None):
    """Return a number as a numpy array of ``dtype`` (default: the smallest that is exact)."""
    is_number = isinstance(x, int | float)
    return np.asarray(autocast(x) if dtype is None and is_number else x, dtype=dtype)


def int_or_true_div(x_discrete, y_discrete):
    """Return int_div for two integers, else true_div."""
    return OPS["int_div" if x_discrete and y_discrete else "true_div"]


def div_proxy(x, y):
    """Return x // y for two integers, else x / y."""
    x, y = as_scalar(x), as_scalar(y)
    return int_or_true_div(x.type in discrete_types, y.type in discrete_types)(x, y)


class InRange(ScalarOp):
    """Whether ``low <= x <= hi``: an operation of (x, low, hi) that returns a bool.

    openlow, openhi: whether the bounds themselves are outside. The gradients are zero.
    """

    __props__ = ("openlow", "openhi")
    nin = 3

    def __init__(self, openlow, openhi):
        super().__init__()
        self.openlow, self.openhi = openlow, openhi

    def output_types(self, types):
        return [get_scalar_type("bool")]

    def impl(self, x, low, hi):
        above = x > low if self.openlow else x >= low
        below = x < hi if self.openhi else x <= hi
        return above and below

    def c_code(self, node, name, inputs, outputs, sub):
        (x, low, hi), (out,) = inputs, outputs
        above, below = ">" if self.openlow else ">=", "<" if self.openhi else "<="
        return f"{out} = ({x} {above} {low}) && ({x} {below} {hi});"

    def grad(self, inputs, output_gradients):
        _refuse_complex([x.type for x in inputs])
        floats = [x if x.type in float_types else x.astype(config.floatX) for x in inputs]
        return [x.zeros_like() for x in floats]


inopenrange, inclosedrange = InRange(True, True), InRange(False, False)


def real_out(type):
    """Return the type of the real part."""
    return ({complex64: float32, complex128: float64}.get(type, type),)


def upcast_out_nobool(*types):
    """Return the type that holds the values of all; TypeError if it is bool."""
    (found,) = upcast_out(*types)
    if found.dtype == "bool":
        raise TypeError("bool output not supported")
    return (found,)


def upcast_out_min8(*types):
    """Return the type that holds the values of all, int8 for bool."""
    (found,) = upcast_out(*types)
    return (int8 if found.dtype == "bool" else found,)


def same_out_nobool(type):
    """Return the type itself; TypeError if it is bool."""
    if type.dtype == "bool":
        raise TypeError("bool input not supported")
    return same_out(type)


def same_out_min8(type):
    """Return the type itself, int8 for bool."""
    return (int8 if type.dtype == "bool" else type,)


def int_out_nocomplex(*types):
    """Return int64; TypeError for complex types."""
    _refuse_complex(types)
    return (int64,)


def float_out_nocomplex(*types):
    """Return float64; TypeError for complex types."""
    _refuse_complex(types)
    return (float64,)


def _refuse_complex(types):
    if any(each.dtype.startswith("complex") for each in types):
        raise TypeError("complex argument not supported")
