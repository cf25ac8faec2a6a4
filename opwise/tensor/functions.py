"""The elementwise functions under the names that users call.

Each is the Elemwise of a row of the scalar table; new rows appear here by themselves.
"""

from __future__ import annotations

from functools import reduce
from typing import Any

import numpy as np

from opwise.scalar import dtypes
from opwise.scalar.op import refuse_complex_mod
from opwise.tensor.creation import alloc
from opwise.tensor.dimshuffle import DimShuffle
from opwise.tensor.elemwise import FUNCTIONS, Elemwise, cast, elemwise
from opwise.tensor.reduce import all as all_
from opwise.tensor.shape import shape_i
from opwise.tensor.type import TensorType
from opwise.tensor.variable import (
    CONSTRUCTORS,
    Tensor,
    TensorLike,
    as_tensor,
    as_tensor_variable,
    constant,
    tensor,
)

_ALIASES = {
    "abs": "abs_",
    "bitwise_and": "and_",
    "bitwise_not": "invert",
    "bitwise_or": "or_",
    "bitwise_xor": "xor",
    "fill": "second",
    "floor_div": "int_div",
    "logical_not": "invert",
    "square": "sqr",
    "where": "switch",
}

globals().update(FUNCTIONS)
globals().update(CONSTRUCTORS)
globals().update({alias: elemwise(name) for alias, name in _ALIASES.items()})
int_dtypes = list(dtypes.SIGNED)
uint_dtypes = list(dtypes.UNSIGNED)
float_dtypes = list(dtypes.FLOATS)
complex_dtypes = list(dtypes.COMPLEX)
discrete_dtypes = list(dtypes.DISCRETE)
continuous_dtypes = list(dtypes.CONTINUOUS)
all_dtypes = list(dtypes.ALL)


def true_divide(x: TensorLike, y: TensorLike) -> Tensor:
    """Return x / y elementwise; shapes broadcast.

    The dtype is floatX for two integers or bools, else the upcast of both. Integers of 16 bits or
    less do not widen float32. Raises TypeError for what cannot become a tensor; at run time
    ValueError if the shapes do not fit.
    """
    return elemwise("true_div")(x, y)


def power(x: TensorLike, y: TensorLike) -> Tensor:
    """Return x to the power y elementwise; shapes broadcast. The dtype is the upcast of both.

    So integers stay integers, and two bools give int8. Raises TypeError for what cannot become a
    tensor; at run time ValueError if the shapes do not fit.
    """
    return elemwise("pow")(x, y)


def round(x: TensorLike, mode: str | None = "half_to_even") -> Tensor:
    """Return the nearest whole number of each element, with the shape and dtype of ``x``, floats.

    mode: how halves are rounded, 'half_to_even' (also None) or 'half_away_from_zero'. Raises
    TypeError for integers, bool and complex numbers, Exception for another mode.
    """
    if mode in (None, "half_to_even"):
        return elemwise("round_half_to_even")(x)
    if mode == "half_away_from_zero":
        return elemwise("round_half_away_from_zero")(x)
    raise Exception(
        f"round mode {mode} is not implemented. Choose 'half_to_even' or 'half_away_from_zero'."
    )


def iround(x: TensorLike, mode: str | None = "half_to_even") -> Tensor:
    """Return ``round`` as int64, with the shape of ``x``.

    Raises TypeError unless x is of floats, Exception for another mode.
    """
    return cast(round(x, mode), "int64")


def mod_check(x: TensorLike, y: TensorLike) -> Tensor:
    """Return x % y elementwise, with the sign of y; shapes broadcast.

    The dtype is the upcast of both. The remainder by the integer 0 is 0. Raises ComplexError for
    complex numbers, which have no remainder; at run time ValueError if the shapes do not fit.
    """
    x, y = as_tensor_variable(x), as_tensor_variable(y)
    refuse_complex_mod(x.dtype, y.dtype)
    return elemwise("mod")(x, y)


def divmod(x: TensorLike, y: TensorLike) -> tuple[Tensor, Tensor]:
    """Return (x // y, x % y), elementwise, rounded down; shapes broadcast.

    The dtypes are the upcast of both; quotient and remainder by the integer 0 are 0. Raises
    ComplexError for complex numbers; at run time ValueError if the shapes do not fit.
    """
    return elemwise("int_div")(x, y), mod_check(x, y)


def div_proxy(x: TensorLike, y: TensorLike) -> Tensor:
    """Return x // y for two integers, else x / y, elementwise; shapes broadcast.

    The dtype is the upcast of both. Raises TypeError for what cannot become a tensor; at run time
    ValueError if the shapes do not fit.
    """
    x, y = as_tensor_variable(x), as_tensor_variable(y)
    whole = x.type.dtype in discrete_dtypes and y.type.dtype in discrete_dtypes
    return elemwise("int_div" if whole else "true_div")(x, y)


def ceil_intdiv(a: TensorLike, b: TensorLike) -> Tensor:
    """Return a / b rounded up, elementwise, exact for integers of any size; shapes broadcast.

    The dtype is the upcast of both; a quotient by the integer 0 is 0. Raises ComplexError for
    complex numbers; at run time ValueError if the shapes do not fit.
    """
    a, b = as_tensor_variable(a), as_tensor_variable(b)
    quotient = elemwise("int_div")(a, b)
    return quotient + cast(elemwise("neq")(mod_check(a, b), 0), quotient.type.dtype)


def isnan(a: TensorLike) -> Tensor:
    """Return whether each element of ``a`` is NaN, as bool with the shape of a.

    For integers, the result is an allocation of False. Raises TypeError for what cannot become a
    tensor.
    """
    return _where_continuous("isnan", a)


def isinf(a: TensorLike) -> Tensor:
    """Return whether each element of ``a`` is infinite, as bool with the shape of a.

    For integers, the result is an allocation of False. Raises TypeError for what cannot become a
    tensor.
    """
    return _where_continuous("isinf", a)


def _where_continuous(name: str, a: TensorLike) -> Tensor:
    a = as_tensor_variable(a)
    if a.type.dtype in dtypes.DISCRETE:
        return alloc(np.array(False), *(shape_i(a, d) for d in range(a.type.ndim)))
    return elemwise(name)(a)


def largest(*args: TensorLike) -> Any:
    """Return elementwise the largest of two or more tensors, whose shapes broadcast.

    The dtype is the upcast of theirs; an element is NaN if one of them is. A single argument is
    returned as it is. Raises TypeError without any; at run time ValueError if the shapes do not
    fit.
    """
    return reduce(elemwise("maximum"), args)


def smallest(*args: TensorLike) -> Any:
    """Return elementwise the smallest of two or more tensors, whose shapes broadcast.

    The dtype is the upcast of theirs; an element is NaN if one of them is. A single argument is
    returned as it is. Raises TypeError without any; at run time ValueError if the shapes do not
    fit.
    """
    return reduce(elemwise("minimum"), args)


def isclose(
    a: TensorLike,
    b: TensorLike,
    rtol: float = 1.0e-5,
    atol: float = 1.0e-8,
    equal_nan: bool = False,
) -> Tensor:
    """Return elementwise whether |a - b| <= atol + rtol |b|, as numpy.isclose does.

    The result is bool; shapes broadcast. equal_nan: whether NaN is close to NaN. Raises TypeError
    for what cannot become a tensor; at run time ValueError if the shapes do not fit.
    """
    a, b = as_tensor_variable(a), as_tensor_variable(b)
    isinf, isnan, eq, and_, or_ = (elemwise(n) for n in ("isinf", "isnan", "eq", "and_", "or_"))
    if a.type.dtype in discrete_dtypes and b.type.dtype in discrete_dtypes:
        bound = cast(elemwise("abs_")(b), "float64") * rtol + atol
        return elemwise("le")(elemwise("abs_")(cast(a, "float64") - b), bound)
    close = elemwise("le")(elemwise("abs_")(a - b), atol + rtol * elemwise("abs_")(b))
    infinite = or_(isinf(a), isinf(b))
    close = elemwise("switch")(infinite, eq(a, b), close)
    if equal_nan:
        close = or_(close, and_(isnan(a), isnan(b)))
    return close


def allclose(
    a: TensorLike,
    b: TensorLike,
    rtol: float = 1.0e-5,
    atol: float = 1.0e-8,
    equal_nan: bool = False,
) -> Tensor:
    """Return whether ``isclose`` holds everywhere, as a 0-d bool; arguments as there.

    Raises TypeError for what cannot become a tensor; at run time ValueError if the shapes do not
    fit.
    """
    return all_(isclose(a, b, rtol, atol, equal_nan))


def logaddexp(*xs: TensorLike) -> Tensor:
    """Return log(exp(x1) + exp(x2) + ...), elementwise; shapes broadcast.

    The dtype is the upcast of those of the exponentials: float32 for bool and int8, float64 for
    int64. Raises TypeError without an argument; at run time ValueError if the shapes do not fit.
    """
    return elemwise("log")(elemwise("add")(*[elemwise("exp")(x) for x in xs]))


__all__ = [
    *(name for name in FUNCTIONS if name != "xlogx"),  # in Theano that is the name of a module
    *CONSTRUCTORS,
    *_ALIASES,
    "DimShuffle",
    "Elemwise",
    "TensorType",
    "all_dtypes",
    "allclose",
    "as_tensor",
    "as_tensor_variable",
    "cast",
    "ceil_intdiv",
    "complex_dtypes",
    "constant",
    "continuous_dtypes",
    "discrete_dtypes",
    "div_proxy",
    "divmod",
    "float_dtypes",
    "int_dtypes",
    "iround",
    "isclose",
    "largest",
    "logaddexp",
    "mod_check",
    "power",
    "round",
    "smallest",
    "tensor",
    "true_divide",
    "uint_dtypes",
]
