"""numpy's ufuncs on traced arrays: dtypes as numpy resolves them, values by opwise's Ops."""

from __future__ import annotations

import operator
import sys
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from opwise import tensor as T
from opwise.tensor.elemwise import elemwise as scalar_elemwise
from opwise.tensor.nnet.sigm import sigmoid
from opwise.tensor.variable import Tensor
from opwise.tracing.indexing import add_at, broadcast, cast_into, converted, write_broadcast
from opwise.tracing.ops import numpy_call
from opwise.tracing.trace import untraceable
from opwise.tracing.values import (
    HANDLERS,
    PYTHON_TYPES,
    UNKNOWN,
    Number,
    Traced,
    array,
    as_traced,
    check_dtype,
    common_order,
    constant,
    hint_of,
    is_one,
    number_operation,
    same_dim,
    shape_text,
)

#: an implementation: variables of the loop's dtypes, broadcast to one rank -> the result
Implementation = Callable[..., Tensor]


def _by_two_dtypes(on_bool: Any, on_others: Any) -> Implementation:
    return lambda *xs: (on_bool if xs[0].type.dtype == "bool" else on_others)(*xs)


def _is_float(x: Tensor) -> bool:
    return x.type.dtype.startswith(("float", "complex"))


def _finite(x: Tensor) -> Tensor:
    if not _is_float(x):
        return T.eq(x, x)
    if x.type.dtype.startswith("complex"):
        return T.and_(_finite(T.real(x)), _finite(T.imag(x)))
    return T.invert(T.or_(T.isnan(x), T.isinf(x)))


def _truth(x: Tensor) -> Tensor:
    return x if x.type.dtype == "bool" else T.neq(x, np.zeros((), x.type.dtype))


def _sign(x: Tensor) -> Tensor:
    if x.type.dtype.startswith("float"):
        return T.switch(T.isnan(x), x, T.sgn(x))
    return T.sgn(x)


def _hypot(x: Tensor, y: Tensor) -> Tensor:
    """The length of a vector: the larger number times what cannot overflow."""
    a, b = T.abs_(x), T.abs_(y)
    most, least = T.maximum(a, b), T.minimum(a, b)
    ratio = least / T.switch(T.eq(most, 0), np.ones((), x.type.dtype), most)
    length = most * T.sqrt(1 + T.sqr(ratio))
    endless = np.asarray(np.inf, x.type.dtype)
    return T.switch(T.or_(T.isinf(a), T.isinf(b)), endless, length)


def _is_negative(x: Tensor) -> Tensor:
    """Return whether floats have a sign: that of -0.0 is seen in its inverse."""
    one = np.ones((), x.type.dtype)
    return T.or_(T.lt(x, 0), T.and_(T.eq(x, 0), T.lt(one / x, 0)))


def _copysign(x: Tensor, y: Tensor) -> Tensor:
    size = T.abs_(x)
    return T.switch(_is_negative(y), T.neg(size), size)


def _fmod(x: Tensor, y: Tensor) -> Tensor:
    size = T.mod(T.abs_(x), T.abs_(y))
    return T.switch(_is_negative(x), T.neg(size), size)


def _floor_division(x: Tensor, y: Tensor) -> Tensor:
    """Return ``x // y`` of floats, as numpy and Python round it."""
    rest = _fmod(x, y)
    quotient = (x - rest) / y
    apart = T.and_(T.neq(rest, 0), T.neq(T.lt(y, 0), T.lt(rest, 0)))
    quotient = quotient - T.cast(apart, x.type.dtype)
    whole = T.floor(quotient)
    # a quotient that was rounded may lie just below a number
    whole = whole + T.cast(T.gt(quotient - whole, 0.5), x.type.dtype)
    whole = T.switch(T.eq(quotient, 0), _copysign(quotient, x / y), whole)
    return T.switch(T.eq(y, 0), x / y, whole)


def _cbrt(x: Tensor) -> Tensor:
    size = T.abs_(x)
    first = T.pow(size, np.asarray(1 / 3, x.type.dtype))
    known = T.or_(T.eq(size, 0), T.isinf(size))
    square = T.switch(known, np.ones((), x.type.dtype), T.sqr(first))
    root = T.switch(known, size, first - (first * square - size) / (3 * square))
    return T.switch(_is_negative(x), T.neg(root), root)


def _xlogy(x: Tensor, y: Tensor) -> Tensor:
    zero = T.and_(T.eq(x, 0), T.invert(T.isnan(y)))
    one = np.ones((), x.type.dtype)
    return T.switch(zero, np.zeros((), x.type.dtype), x * T.log(T.switch(zero, one, y)))


def _heaviside(x: Tensor, at_zero: Tensor) -> Tensor:
    zero, one = (np.asarray(k, x.type.dtype) for k in (0, 1))
    step = T.switch(T.eq(x, 0), at_zero, T.switch(T.lt(x, 0), zero, one))
    return T.switch(T.isnan(x), x, step)


def numpy_elementwise(name: str, dtype: Any, *inputs: Tensor) -> Tensor:
    """Return the variable of what a ufunc of numpy computes."""
    ones = [all(column) for column in zip(*(x.type.broadcastable for x in inputs), strict=True)]
    return numpy_call(name, inputs, [(dtype, ones)])[0]


def _power(x: Tensor, y: Tensor) -> Tensor:
    if _is_float(x):
        return T.pow(x, y)
    value = T.extract_constant(y)
    if isinstance(value, np.ndarray | np.generic) and np.asarray(value).ndim == 0:
        if value < 0:
            raise ValueError("Integers to negative integer powers are not allowed.")
        if value == 2:
            return x * x
        if value <= 62:
            return T.cast(T.pow(x, y), x.type.dtype)
    return numpy_elementwise("power", x.type.dtype, x, y)


def _logaddexp(x: Tensor, y: Tensor) -> Tensor:
    # equal infinities have no difference; the derivatives by equal numbers are a half each
    equal, half = T.eq(x, y), np.asarray(0.5, x.type.dtype)
    gap = T.switch(equal, np.zeros((), x.type.dtype), x - y)
    top = T.switch(equal, half * x + half * y, T.maximum(x, y))
    return top + T.log1p(T.exp(T.neg(T.abs_(gap))))


def _reciprocal(x: Tensor) -> Tensor:
    if _is_float(x):
        return T.true_div(np.ones((), x.type.dtype), x)
    return numpy_elementwise("reciprocal", x.type.dtype, x)


def _only_floats(name: str, made: Implementation) -> Implementation:
    """Return an implementation for real floats; numpy computes the rest."""

    def computed(*xs: Tensor) -> Tensor:
        if all(x.type.dtype in ("float32", "float64") for x in xs):
            return made(*xs)
        return numpy_elementwise(name, xs[0].type.dtype, *xs)

    return computed


_float_floor_division = _only_floats("floor_divide", _floor_division)


def _guarded_division(name: str, made: Implementation) -> Implementation:
    """Return a division of integers for divisors that are constants other than 0 and -1.

    numpy gives 0 for a division by 0; opwise raises an error.
    """

    def divided(x: Tensor, y: Tensor) -> Tensor:
        dtype = x.type.dtype
        if _is_float(x):
            return made(x, y) if name == "remainder" else _float_floor_division(x, y)
        value = T.extract_constant(y)
        if isinstance(value, np.ndarray | np.generic) and np.all(np.asarray(value) > 0):
            return made(x, y)
        zero, one = np.zeros((), dtype), np.ones((), dtype)
        is_zero = T.eq(y, zero)
        result = made(x, T.switch(is_zero, one, y))
        if dtype.startswith("int"):
            least = np.iinfo(dtype).min
            minus = T.eq(y, np.asarray(-1, dtype))
            whole = T.neg(x) if name == "floor_divide" else T.zeros_like(x)
            safe = made(x, T.switch(T.or_(is_zero, minus), one, y))
            result = T.switch(minus, whole, safe)
            del least
        return T.switch(is_zero, zero, result)

    return divided


def _identity(x: Tensor) -> Tensor:
    return x


def _conjugate(x: Tensor) -> Tensor:
    return T.conj(x) if x.type.dtype.startswith("complex") else x


def _compared(name: str, made: Implementation) -> Implementation:
    def compare(x: Tensor, y: Tensor) -> Tensor:
        if x.type.dtype.startswith("complex") and name not in ("equal", "not_equal"):
            return numpy_elementwise(name, "bool", x, y)
        if x.type.dtype == y.type.dtype:
            return made(x, y)
        return numpy_elementwise(name, "bool", x, y)  # int64 with uint64

    return compare


#: what computes each ufunc; numpy itself the others
TABLE: dict[str, Implementation] = {
    "add": _by_two_dtypes(T.or_, T.add),
    "subtract": T.sub,
    "multiply": _by_two_dtypes(T.and_, T.mul),
    "divide": T.true_div,
    "floor_divide": _guarded_division("floor_divide", T.int_div),
    "remainder": _guarded_division("remainder", T.mod),
    "power": _power,
    "float_power": T.pow,
    "negative": T.neg,
    "positive": _identity,
    "absolute": _by_two_dtypes(_identity, T.abs_),
    "fabs": T.abs_,
    "sign": _sign,
    "square": lambda x: x * x,
    "sqrt": T.sqrt,
    "exp": T.exp,
    "exp2": T.exp2,
    "expm1": T.expm1,
    "log": T.log,
    "log2": T.log2,
    "log10": T.log10,
    "log1p": T.log1p,
    "sin": T.sin,
    "cos": T.cos,
    "tan": T.tan,
    "arcsin": T.arcsin,
    "arccos": T.arccos,
    "arctan": T.arctan,
    "sinh": T.sinh,
    "cosh": T.cosh,
    "tanh": T.tanh,
    "arcsinh": T.arcsinh,
    "arccosh": T.arccosh,
    "arctanh": T.arctanh,
    "arctan2": T.arctan2,
    "hypot": _only_floats("hypot", _hypot),
    "copysign": _only_floats("copysign", _copysign),
    "fmod": _only_floats("fmod", _fmod),
    "cbrt": _only_floats("cbrt", _cbrt),
    "heaviside": _only_floats("heaviside", _heaviside),
    "logaddexp": _logaddexp,
    "maximum": _by_two_dtypes(T.or_, T.maximum),
    "minimum": _by_two_dtypes(T.and_, T.minimum),
    "less": _compared("less", T.lt),
    "less_equal": _compared("less_equal", T.le),
    "equal": _compared("equal", T.eq),
    "not_equal": _compared("not_equal", T.neq),
    "greater": _compared("greater", T.gt),
    "greater_equal": _compared("greater_equal", T.ge),
    "logical_and": lambda x, y: T.and_(_truth(x), _truth(y)),
    "logical_or": lambda x, y: T.or_(_truth(x), _truth(y)),
    "logical_xor": lambda x, y: T.xor(_truth(x), _truth(y)),
    "logical_not": lambda x: T.invert(_truth(x)),
    "bitwise_and": T.and_,
    "bitwise_or": T.or_,
    "bitwise_xor": T.xor,
    "invert": T.invert,
    "left_shift": T.left_shift,
    "right_shift": T.right_shift,
    "isnan": lambda x: T.isnan(x) if _is_float(x) else T.neq(x, x),
    "isinf": lambda x: T.isinf(x) if _is_float(x) else T.neq(x, x),
    "isfinite": _finite,
    "floor": _by_two_dtypes(_identity, lambda x: T.floor(x) if _is_float(x) else x),
    "ceil": _by_two_dtypes(_identity, lambda x: T.ceil(x) if _is_float(x) else x),
    "trunc": _by_two_dtypes(_identity, lambda x: T.trunc(x) if _is_float(x) else x),
    "rint": T.round_half_to_even,
    "conjugate": _conjugate,
    "reciprocal": _reciprocal,
    "deg2rad": T.deg2rad,
    "radians": T.deg2rad,
    "rad2deg": T.rad2deg,
    "degrees": T.rad2deg,
}

TABLE |= {
    f"scipy.special.{name}": _only_floats(f"scipy.special.{name}", made)
    for name, made in {
        "erf": T.erf, "erfc": T.erfc, "erfcx": T.erfcx, "erfinv": T.erfinv, "erfcinv": T.erfcinv,
        "gamma": T.gamma, "gammaln": T.gammaln, "psi": T.psi, "digamma": T.psi,
        "gammainc": T.gammainc, "gammaincc": T.gammaincc, "betainc": T.betainc,
        "j0": T.j0, "j1": T.j1, "jv": T.jv, "i0": T.i0, "i1": T.i1, "iv": T.iv, "kve": T.kve,
        "hyp2f1": T.hyp2f1, "owens_t": T.owens_t, "expit": sigmoid, "xlogy": _xlogy,
        "log1p": T.log1p, "expm1": T.expm1, "exp2": T.exp2, "cbrt": _cbrt,
        "logit": lambda x: T.log(x) - T.log1p(T.neg(x)),
        "ndtr": lambda x: T.erfc(x * np.asarray(-(0.5**0.5), x.type.dtype)) * 0.5,
        "entr": lambda x: T.switch(T.lt(x, 0), np.asarray(-np.inf, x.type.dtype),
                                   T.neg(scalar_elemwise("xlogx")(T.maximum(x, 0)))),
        "betaln": lambda x, y: T.gammaln(x) + T.gammaln(y) - T.gammaln(x + y),
    }.items()
}  # fmt: skip

#: ufuncs whose results for complex numbers, or for another dtype, are numpy's own
_ONLY_BY_NUMPY = {
    (name, dtype) for name in ("sign", "rint") for dtype in ("complex64", "complex128")
}

_COMPARISONS = {
    np.less: "lt", np.less_equal: "le", np.equal: "eq", np.not_equal: "ne", np.greater: "gt",
    np.greater_equal: "ge",
}  # fmt: skip


def dtype_entry(value: Any) -> Any:
    """Return what ``resolve_dtypes`` takes for an operand: a dtype, or int, float or complex."""
    if type(value) is Traced:
        return value.dtype
    if type(value) is Number:
        return np.dtype(bool) if value.kind == "b" else PYTHON_TYPES[value.kind]
    if isinstance(value, bool):
        return np.dtype(bool)
    if type(value) in (int, float, complex):
        return type(value)
    if isinstance(value, type | np.dtype):
        return np.dtype(value)
    return np.asarray(value).dtype


def _operand(value: Any) -> Any:
    """Return an operand as a Traced, a Number, or a Python number."""
    if type(value) in (Traced, Number, int, float, complex, bool):
        return value
    return as_traced(value)


def operand_as(value: Any, dtype: np.dtype[Any]) -> Traced:
    """Return an operand of a ufunc as a traced array of the loop's dtype."""
    if type(value) in (int, float, complex, bool):
        return constant(np.asarray(value, dtype))
    traced = as_traced(value)
    if traced.dtype == dtype:
        return traced
    return Traced(
        array(converted(traced.variable, dtype), traced.dims).root, traced.dims, (), traced.scalar,
        traced.contiguous,
    )  # fmt: skip


def _out_of_range(ufunc: Any, inputs: Sequence[Any], loop: Sequence[Any]) -> Any:
    """Return the result of the comparison of an integer array with a Python int that is beyond its
    dtype, or None if it is within."""
    for k in (0, 1):
        value, dtype = inputs[k], loop[k]
        if type(value) is int and dtype.kind in "iu":
            info = np.iinfo(dtype)
            if not info.min <= value <= info.max:
                sides = [0, 0]
                sides[k] = 1 if value > info.max else -1
                return bool(getattr(operator, _COMPARISONS[ufunc])(*sides))
    return None


def elementwise(
    ufunc: Any, inputs: Sequence[Any], dtype: Any = None, casting: Any = "same_kind"
) -> list[Traced]:
    """Return the results of a ufunc, as new arrays."""
    name = _name_of(ufunc)
    operands = [_operand(x) for x in inputs]
    entries = (*map(dtype_entry, operands), *[None] * ufunc.nout)
    keywords: dict[str, Any] = {"casting": casting}
    if dtype is not None:
        keywords["signature"] = (*[None] * ufunc.nin, *[np.dtype(dtype)] * ufunc.nout)
    loop = ufunc.resolve_dtypes(entries, **keywords)
    for each in loop:
        check_dtype(each)
    if ufunc in _COMPARISONS and any(type(x) is int for x in operands):
        known = _out_of_range(ufunc, operands, loop)
        if known is not None:
            shaped = next(x for x in operands if type(x) is Traced)
            made = T.fill(T.eq(shaped.variable, shaped.variable), np.asarray(known))
            return [array(made, shaped.dims, not shaped.ndim)]
    given = [operand_as(x, d) for x, d in zip(operands, loop, strict=False)]
    variables, dims = broadcast(given)
    contiguous = common_order(given, len(dims))
    results = loop[ufunc.nin :]
    made_variables: Sequence[Tensor]
    implementation = TABLE.get(name) if ufunc.nout == 1 else None
    if implementation is None or {(name, each.name) for each in loop} & _ONLY_BY_NUMPY:
        ones = [
            all(column) for column in zip(*(v.type.broadcastable for v in variables), strict=True)
        ]
        made_variables = numpy_call(name, variables, [(each.name, ones) for each in results])
    else:
        made_variables = [implementation(*variables)]
    return [
        array(converted(v, d), dims, not dims, contiguous)
        for v, d in zip(made_variables, results, strict=True)
    ]


def _name_of(ufunc: Any) -> str:
    """Return the name of a ufunc of numpy, or of ``scipy.special``. Raises TracingError."""
    name = str(ufunc.__name__)
    if getattr(np, name, None) is ufunc:
        return name
    special = sys.modules.get("scipy.special")
    if special is not None and getattr(special, name, None) is ufunc:
        return f"scipy.special.{name}"
    raise untraceable(
        f"{name} is a ufunc that neither numpy nor scipy.special has.",
        "Write it with functions of numpy, or use opwise.jit(fallback=True).",
    )


def check_casting(
    ufunc: Any, made: np.dtype[Any], out: np.dtype[Any], casting: Any = "same_kind"
) -> None:
    """Raise numpy's error if a result cannot be stored in an array given as ``out``."""
    if not np.can_cast(made, out, casting):
        raise np._core._exceptions._UFuncOutputCastingError(ufunc, casting, made, out, 0)


def store(
    ufunc: Any, result: Traced, out: Any, where: Any = True, casting: str = "same_kind"
) -> Any:
    """Put a result into the array that is given as ``out``, and return that."""
    if type(out) is not Traced:
        raise untraceable(
            "An array is changed in place that the function did not make, and is no argument.",
            "Pass it to the function as an argument.",
        )
    if out.scalar:
        raise TypeError("return arrays must be of ArrayType")
    check_casting(ufunc, result.dtype, out.dtype, casting)
    cast = result
    if result.dtype != out.dtype:
        cast = array(cast_into(result, out.dtype), result.dims)
    if len(result.dims) > len(out.dims):
        raise ValueError(_out_error(out, result))
    for own, wanted in zip(reversed(result.dims), reversed(out.dims), strict=False):
        if not same_dim(own, wanted):
            one, two = hint_of(own), hint_of(wanted)
            if UNKNOWN not in (one, two) and one not in (1, two):
                raise ValueError(_out_error(out, result))
    if where is not True:
        chosen = HANDLERS.functions[np.where](where, cast, out)
        write_broadcast(out, chosen, _out_error(out, result))
    else:
        write_broadcast(out, cast, _out_error(out, result))
    return out


def _out_error(out: Traced, result: Traced) -> str:
    return (
        f"non-broadcastable output operand with shape {shape_text(out.dims)} doesn't match the "
        f"broadcast shape {shape_text(result.dims)}"
    )


def apply(ufunc: Any, method: str, inputs: Sequence[Any], keywords: dict[str, Any]) -> Any:
    """Do what numpy's protocol ``__array_ufunc__`` asks for."""
    if ufunc.signature is not None:
        own = HANDLERS.functions.get(ufunc)
        if own is None or method != "__call__":
            raise untraceable(
                f"numpy.{ufunc.__name__} cannot be traced yet.", "Write it with other functions."
            )
        return own(*inputs, **keywords)
    if method == "__call__":
        return _call(ufunc, inputs, **keywords)
    if method == "at":
        return _at(ufunc, *inputs)
    if method == "outer":
        a, b = (as_traced(x) if not isinstance(x, int | float | complex) else x for x in inputs)
        if type(a) is Traced and a.ndim and type(b) is Traced and b.ndim:
            a = a[(..., *[None] * b.ndim)]
        return _call(ufunc, (a, b), **keywords)
    if method in ("reduce", "accumulate", "reduceat"):
        function = _BY_METHOD[method].get(ufunc)
        out = keywords.pop("out", None)
        if isinstance(out, tuple):
            (out,) = out
        if function is not None:
            if len(inputs) == 1:
                keywords.setdefault("axis", 0)
            return HANDLERS.functions[function](*inputs, out=out, **keywords)
        if method != "reduce" or {"initial", "where"}.isdisjoint(keywords):
            return _along(ufunc, method, *inputs, out=out, **keywords)
    raise untraceable(
        f"numpy.{ufunc.__name__}.{method} cannot be traced yet.", "Write it with other functions."
    )


_BY_METHOD: dict[str, dict[Any, Any]] = {
    "reduce": {
        np.add: np.sum, np.multiply: np.prod, np.maximum: np.max, np.minimum: np.min,
        np.logical_and: np.all, np.logical_or: np.any,
    },
    "accumulate": {np.add: np.cumsum, np.multiply: np.cumprod},
    "reduceat": {},
}  # fmt: skip


def _along(
    ufunc: Any, method: str, array_: Any, *more: Any, axis: Any = 0, dtype: Any = None,
    out: Any = None, keepdims: bool = False,
) -> Any:  # fmt: skip
    """Return what numpy gives for a method that works along axes."""
    x = as_traced(array_)
    inputs, constants = [x.variable], {}
    if method == "reduceat":
        places = as_traced(more[0])
        inputs.append(places.variable)
        more = more[1:]
    axis, dtype = (*more, axis, dtype)[: len(more)] + (axis, dtype)[len(more) :]
    if axis is None:
        axis = tuple(range(x.ndim))
    axes = axis if isinstance(axis, tuple) else (axis,)
    axes = tuple(operator.index(k) % max(x.ndim, 1) for k in axes)
    dims = list(x.dims)
    if method == "reduceat":
        dims[axes[0]] = places.dims[0]
    if method == "reduce":
        dims = [1 if k in axes else d for k, d in enumerate(dims) if keepdims or k not in axes]
        constants["keepdims"] = keepdims
    if dtype is not None:
        constants["dtype"] = np.dtype(dtype)
    sample = np.ones(2, x.dtype)
    kind = ufunc.accumulate(sample, **{k: v for k, v in constants.items() if k == "dtype"}).dtype
    (made,) = numpy_call(
        f"{ufunc.__name__}.{method}", inputs, [(kind, [is_one(d) for d in dims])],
        axis=axes if method == "reduce" else axes[0], **constants,
    )  # fmt: skip
    result = array(made, dims, not dims)
    return result if out is None else store(ufunc, result, out)


def _call(
    ufunc: Any,
    inputs: Sequence[Any],
    out: Any = None,
    where: Any = True,
    dtype: Any = None,
    casting: str = "same_kind",
    order: str = "K",
    subok: bool = True,
) -> Any:
    if all(type(x) in (Number, int, float, complex, bool) for x in inputs):
        if ufunc in _COMPARISONS and len(inputs) == 2 and dtype is None and out is None:
            compared = number_operation(_COMPARISONS[ufunc], *inputs)
            return array(compared.variable, (), True)
    if where is np._NoValue:  # type: ignore[attr-defined]
        where = True
    outs = list(out) if isinstance(out, tuple) else [out] * 1
    outs += [None] * (ufunc.nout - len(outs))
    results = elementwise(ufunc, inputs, dtype, casting)
    if where is not True and None in [o if o is None else 0 for o in outs]:
        raise untraceable(
            f"numpy.{ufunc.__name__} with where= leaves elements without a value.",
            "Give out= too, or use numpy.where.",
        )
    finished = [
        result if o is None else store(ufunc, result, o, where, casting)
        for result, o in zip(results, outs, strict=True)
    ]
    return finished[0] if ufunc.nout == 1 else tuple(finished)


def _at(ufunc: Any, x: Any, key: Any, *value: Any) -> None:
    if type(x) is not Traced:
        raise untraceable(
            "An array is changed in place that the function did not make, and is no argument.",
            "Pass it to the function as an argument.",
        )
    if ufunc is np.add or ufunc is np.subtract:
        add_at(x, key, *value, negate=ufunc is np.subtract)
        return
    HANDLERS.at(ufunc, x, key, *value)


HANDLERS.register(ufunc=apply)
