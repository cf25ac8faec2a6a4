"""Functions of numpy that reduce axes, accumulate along them, sort them, or choose elements."""

from __future__ import annotations

import inspect
import operator
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from opwise import tensor as T
from opwise.tensor import extra_ops
from opwise.tensor.variable import Tensor
from opwise.tracing.indexing import Index, broadcast, converted, is_whole
from opwise.tracing.ops import numpy_call
from opwise.tracing.shaping import (
    _stored,
    arange,
    astype,
    axes_of,
    axis_of,
    broadcast_to,
    concatenate,
    copied,
    expand_dims,
    implements,
    moveaxis,
    ravel,
    reshape,
    swapaxes,
)
from opwise.tracing.trace import current, demand, untraceable
from opwise.tracing.ufuncs import dtype_entry, operand_as
from opwise.tracing.values import (
    HANDLERS,
    UNKNOWN,
    Number,
    Root,
    Traced,
    Unhandled,
    View,
    array,
    as_traced,
    common_order,
    fitted,
    hint_of,
    is_one,
    is_traced,
    leave_to_python,
    number_text,
    number_variable,
    product,
    require_equal,
)

#: numpy's own classes of results
_OWN = inspect.unwrap(np.unique_all).__globals__
UniqueCountsResult, UniqueInverseResult = _OWN["UniqueCountsResult"], _OWN["UniqueInverseResult"]
UniqueAllResult = _OWN["UniqueAllResult"]

_NO_VALUE = np._NoValue  # type: ignore[attr-defined]


def _reduced(x: Traced, made: Tensor, axes: Sequence[int], keepdims: bool) -> Traced:
    """Return the result of a reduction, whose variable lacks the axes."""
    dims = tuple(d for k, d in enumerate(x.dims) if k not in axes)
    result = array(fitted(made, dims), dims, not dims, len(dims) <= 1 or x.contiguous)
    if keepdims and keepdims is not _NO_VALUE:
        if not x.ndim:
            return result
        result.scalar = False
        return expand_dims(result, tuple(axes)) if axes else result
    return result


def _finish(result: Traced, out: Any) -> Any:
    return result if out is None else _stored(result, out)


def _only(out: Any) -> Any:
    return out[0] if isinstance(out, tuple) else out


def _masked(x: Traced, where: Any, neutral: Any) -> Traced:
    """Return the array with a neutral value where a reduction leaves elements out."""
    if where is True or where is _NO_VALUE:
        return x
    mask = broadcast_to(where, x.dims)
    return np.where(mask, x, np.asarray(neutral, x.dtype))  # type: ignore[call-overload, no-any-return]


def _sum_dtype(x: Traced, dtype: Any) -> np.dtype[Any]:
    if dtype is not None:
        return np.dtype(dtype)
    return np.add.reduce(np.ones(1, x.dtype)).dtype


def _wide_float16(x: Tensor, function: Callable[[Tensor], Tensor]) -> Tensor:
    """Return what a function gives for float32, if a variable is of float16."""
    if x.type.dtype != "float16":
        return function(x)
    return T.cast(function(T.cast(x, "float32")), "float16")


def _total(ufunc: Any, fold: Callable[..., Tensor], neutral: int) -> Callable[..., Any]:
    """Return the reduction by ``ufunc``, which ``fold`` computes: a sum, or a product."""

    def reduce(
        a: Any, axis: Any = None, dtype: Any = None, out: Any = None, keepdims: Any = False,
        initial: Any = _NO_VALUE, where: Any = True,
    ) -> Any:  # fmt: skip
        x = as_traced(a)
        axes = axes_of(axis, x.ndim)
        made = _sum_dtype(x, dtype if dtype is not None or out is None else _only(out).dtype)
        x = _masked(astype(x, made, copy=False), where, neutral)
        if made == np.bool:
            return (all_ if neutral else any_)(x, axis, out, keepdims)
        variable = x.variable
        if axes:
            variable = _wide_float16(
                variable, lambda v: fold(v, axis=list(axes), dtype=v.type.dtype)
            )
        result = _reduced(x, converted(variable, made), axes, keepdims)
        if initial is not _NO_VALUE:
            result = astype(ufunc(result, initial), made, copy=False)
        return _finish(result, out)

    return reduce


sum_ = implements(np.sum, method="sum")(_total(np.add, T.sum, 0))
implements(np.prod, method="prod")(_total(np.multiply, T.prod, 1))


def _extreme(name: str) -> Callable[..., Any]:
    largest = name == "maximum"

    def reduce(
        a: Any, axis: Any = None, out: Any = None, keepdims: Any = False,
        initial: Any = _NO_VALUE, where: Any = True, dtype: Any = None,
    ) -> Any:  # fmt: skip
        x = as_traced(a)
        axes = axes_of(axis, x.ndim)
        ufunc = getattr(np, name)
        if where is not True and where is not _NO_VALUE:
            if initial is _NO_VALUE:
                raise ValueError(
                    f"reduction operation '{name}' does not have an identity, so to use a where "
                    "mask one has to specify 'initial'"
                )
            x = _masked(x, where, initial)
        if initial is _NO_VALUE:
            _require_elements(x, axes, name)
        elif any(hint_of(x.dims[k]) == 0 for k in axes):
            for k in axes:
                if type(x.dims[k]) is Number and x.dims[k].known:
                    demand(f"{x.dims[k].text} == {x.dims[k].hint}")
            shape = tuple(d for k, d in enumerate(x.dims) if k not in axes)
            made = astype(broadcast_to(np.asarray(initial), shape), x.dtype)
            return _finish(_reduced(x, made.variable, axes, keepdims), out)
        variable = x.variable
        if x.dtype.kind == "b":
            if axes:
                variable = (T.any if largest else T.all)(variable, axis=list(axes))
        elif axes:
            variable = _extreme_variable(x, axes, largest)
        result = _reduced(x, converted(variable, x.dtype), axes, keepdims)
        if initial is not _NO_VALUE:
            result = astype(ufunc(result, initial), x.dtype, copy=False)
        return _finish(result, out)

    return reduce


def _extreme_variable(x: Traced, axes: Sequence[int], largest: bool) -> Tensor:
    if x.dtype.kind == "c":
        kept = [b for k, b in enumerate(x.variable.type.broadcastable) if k not in axes]
        (made,) = numpy_call(
            "max" if largest else "min", [x.variable], [(x.dtype, kept)], axis=tuple(axes)
        )
        return made
    return (T.max if largest else T.min)(x.variable, axis=list(axes))


def _require_elements(x: Traced, axes: Sequence[int], name: str) -> None:
    """Raise numpy's error if axes without elements are reduced by what has no neutral element."""
    for k in axes:
        if hint_of(x.dims[k]) == 0:
            raise ValueError(f"zero-size array to reduction operation {name} which has no identity")


amax = implements(np.max, np.amax, method="max")(_extreme("maximum"))
amin = implements(np.min, np.amin, method="min")(_extreme("minimum"))


@implements(np.ptp)
def ptp(a: Any, axis: Any = None, out: Any = None, keepdims: Any = False) -> Any:
    made = np.subtract(amax(a, axis, None, keepdims), amin(a, axis, None, keepdims))
    return _finish(made, out)


@implements(np.any, method="any")
def any_(
    a: Any, axis: Any = None, out: Any = None, keepdims: Any = False, *, where: Any = True,
    dtype: Any = None,
) -> Any:  # fmt: skip
    x = astype(as_traced(a), bool, copy=False)
    x = _masked(x, where, False)
    axes = axes_of(axis, x.ndim)
    variable = T.any(x.variable, axis=list(axes)) if axes else x.variable
    return _finish(_reduced(x, converted(variable, bool), axes, keepdims), out)


@implements(np.all, method="all")
def all_(
    a: Any, axis: Any = None, out: Any = None, keepdims: Any = False, *, where: Any = True,
    dtype: Any = None,
) -> Any:  # fmt: skip
    x = astype(as_traced(a), bool, copy=False)
    x = _masked(x, where, True)
    axes = axes_of(axis, x.ndim)
    variable = T.all(x.variable, axis=list(axes)) if axes else x.variable
    return _finish(_reduced(x, converted(variable, bool), axes, keepdims), out)


@implements(np.count_nonzero)
def count_nonzero(a: Any, axis: Any = None, *, keepdims: Any = False) -> Any:
    return sum_(astype(as_traced(a), bool, copy=False), axis, np.intp, None, keepdims)


def _count(x: Traced, axes: Sequence[int], where: Any) -> Any:
    if where is True or where is _NO_VALUE:
        return product(x.dims[k] for k in axes)
    return sum_(broadcast_to(where, x.dims), tuple(axes), np.intp)


def _mean_dtype(x: Traced, dtype: Any) -> tuple[np.dtype[Any], np.dtype[Any]]:
    """Return the dtypes in which numpy computes a mean, and of its result."""
    if dtype is not None:
        return np.dtype(dtype), np.dtype(dtype)
    if x.dtype.kind in "iub":
        return np.dtype(float), np.dtype(float)
    if x.dtype == np.float16:
        return np.dtype(np.float32), np.dtype(np.float16)
    return x.dtype, x.dtype


@implements(np.mean, method="mean")
def mean(
    a: Any, axis: Any = None, dtype: Any = None, out: Any = None, keepdims: Any = False, *,
    where: Any = True,
) -> Any:  # fmt: skip
    x = as_traced(a)
    axes = axes_of(axis, x.ndim)
    inside, outside = _mean_dtype(x, dtype)
    if inside.kind not in "fc":
        raise untraceable(f"A mean in {inside} cannot be traced.", "Leave dtype out.")
    count = _count(x, axes, where)
    total = sum_(x, axis, inside, None, keepdims, _NO_VALUE, where)
    divided = np.true_divide(total, astype(count, inside) if type(count) is Traced else count)
    made = astype(divided, outside, copy=False)
    return _finish(made, out)


@implements(np.average)
def average(
    a: Any, axis: Any = None, weights: Any = None, returned: bool = False, *, keepdims: Any = False
) -> Any:
    if returned:
        raise Unhandled
    if weights is None:
        return mean(a, axis, None, None, keepdims)
    x, w = as_traced(a), as_traced(weights)
    kind = np.result_type(x.dtype, w.dtype, np.float64 if x.dtype.kind in "iub" else x.dtype)
    if w.ndim != x.ndim:
        where = axis_of(axis, x.ndim)
        w = reshape(w, tuple(d if k == where else 1 for k, d in enumerate(x.dims)))
    total = sum_(astype(w, kind, copy=False) * broadcast_to(np.ones((), kind), x.dims), axis,
                 None, None, keepdims)  # fmt: skip
    return sum_(np.multiply(x, w, dtype=kind), axis, None, None, keepdims) / total


@implements(np.var, method="var")
def var(
    a: Any, axis: Any = None, dtype: Any = None, out: Any = None, ddof: Any = 0,
    keepdims: Any = False, *, where: Any = True, mean: Any = _NO_VALUE,
    correction: Any = _NO_VALUE,
) -> Any:  # fmt: skip
    x = as_traced(a)
    if correction is not _NO_VALUE:
        ddof = correction
    axes = axes_of(axis, x.ndim)
    inside, outside = _mean_dtype(x, dtype)
    count = _count(x, axes, where)
    x = astype(x, inside, copy=False)
    if mean is _NO_VALUE:
        total = sum_(x, tuple(axes), inside, None, True, _NO_VALUE, where)
        divisor = count
        if type(count) is Traced:
            divisor = expand_dims(count, axes)
        mean = np.true_divide(total, divisor)
    centred = np.subtract(x, astype(mean, inside, copy=False))
    if inside.kind == "c":
        squares = centred.real * centred.real + centred.imag * centred.imag
        inside = squares.dtype
        outside = squares.dtype
    else:
        squares = centred * centred
    total = sum_(squares, axis, inside, None, keepdims, _NO_VALUE, where)
    rest = np.maximum(count - ddof, 0) if type(count) is Traced else _at_least_zero(count - ddof)
    if type(rest) is Traced:
        rest = astype(rest, inside)
    made = astype(np.true_divide(total, rest), outside, copy=False)
    return _finish(made, out)


def _at_least_zero(value: Any) -> Any:
    if type(value) is Number:
        if value.known and value.hint < 0:
            demand(f"{value.text} < 0")
            return 0
        if value.known:
            return Number(
                value.kind,
                lambda: T.maximum(value.variable, 0),
                value.hint,
                f"max({value.text}, 0)",
                value.of_lengths,
            )
        return value
    return max(value, 0)


@implements(np.std, method="std")
def std(
    a: Any, axis: Any = None, dtype: Any = None, out: Any = None, ddof: Any = 0,
    keepdims: Any = False, *, where: Any = True, mean: Any = _NO_VALUE,
    correction: Any = _NO_VALUE,
) -> Any:  # fmt: skip
    variance = var(a, axis, dtype, None, ddof, keepdims, where=where, mean=mean,
                   correction=correction)  # fmt: skip
    return _finish(np.sqrt(variance), out)


# --- positions ------------------------------------------------------------------------------------


def _positions(name: str) -> Callable[..., Any]:
    def find(a: Any, axis: Any = None, out: Any = None, *, keepdims: Any = False) -> Any:
        x = as_traced(a)
        if axis is None:
            flat, where, axes = ravel(x), 0, tuple(range(x.ndim))
        else:
            flat, where = x, axis_of(axis, x.ndim)
            axes = (where,)
        if hint_of(flat.dims[where]) == 0:
            raise ValueError(f"attempt to get {name} of an empty sequence")
        kept = [b for k, b in enumerate(flat.variable.type.broadcastable) if k != where]
        if x.dtype.kind in "bc" or x.dtype == np.float16:
            (made,) = numpy_call(name, [flat.variable], [(np.intp, kept)], axis=where)
        else:
            made = getattr(T, name)(flat.variable, axis=where)
        result = _reduced(flat, converted(made, np.intp), (where,), False)
        if keepdims and keepdims is not _NO_VALUE:
            result = reshape(result, tuple(1 if k in axes else d for k, d in enumerate(x.dims)))
        return _finish(result, out)

    return find


argmax = implements(np.argmax, method="argmax")(_positions("argmax"))
argmin = implements(np.argmin, method="argmin")(_positions("argmin"))


@implements(np.nonzero, method="nonzero")
def nonzero(a: Any) -> tuple[Traced, ...]:
    x = as_traced(a)
    if not x.ndim:
        raise ValueError("Calling nonzero on 0d arrays is not allowed.")
    variables = T.nonzero(astype(x, bool, copy=False).variable, return_matrix=False)
    length = Number("i", lambda: variables[0].shape[0])
    return tuple(array(converted(v, np.intp), (length,)) for v in variables)


@implements(np.flatnonzero)
def flatnonzero(a: Any) -> Traced:
    return nonzero(ravel(a))[0]


@implements(np.argwhere)
def argwhere(a: Any) -> Traced:
    return swapaxes(np.stack(nonzero(a)), 0, 1)  # type: ignore[call-overload]


@implements(np.where)
def where(condition: Any, x: Any = _NO_VALUE, y: Any = _NO_VALUE, /) -> Any:
    if x is _NO_VALUE:
        return nonzero(condition)
    if all(type(v) in (Traced, np.ndarray) or isinstance(v, np.generic) for v in (x, y)):
        made = np.result_type(as_traced(x).dtype, as_traced(y).dtype)
    else:
        made = result_type_of(x, y)
        for number in (v for v in (x, y) if type(v) is int):
            np.where(True, number, np.zeros((), made))  # since 2.5 numpy refuses what does not fit
    # before, Python's ints wrap
    chosen = [operand_as(_array_like(v), made) for v in (x, y)]
    mask = astype(as_traced(condition), bool, copy=False)
    variables, dims = broadcast([mask, *chosen])
    variable = T.switch(*variables)
    order = common_order((mask, *chosen), len(dims))
    return array(converted(variable, made), dims, False, order)


def _array_like(value: Any) -> Any:
    return as_traced(value) if isinstance(value, list | tuple | int | float | complex) else value


def result_type_of(*values: Any) -> np.dtype[Any]:
    """Return the dtype of arrays and weak Python numbers together, as NEP 50 says."""
    samples = []
    for value in values:
        entry = dtype_entry(value)
        if isinstance(entry, type):
            samples.append(entry(0) if type(value) is Number else value)
        else:
            samples.append(entry)
    return np.result_type(*samples)


@implements(np.select)
def select(condlist: Any, choicelist: Any, default: Any = 0) -> Traced:
    made = result_type_of(*choicelist, default)
    result: Any = operand_as(_array_like(default), made)
    for condition, choice in reversed(list(zip(condlist, choicelist, strict=True))):
        result = where(condition, operand_as(_array_like(choice), made), result)
    return result


@implements(np.clip, method="clip")
def clip(
    a: Any, a_min: Any = _NO_VALUE, a_max: Any = _NO_VALUE, out: Any = None, *,
    min: Any = _NO_VALUE, max: Any = _NO_VALUE, **keywords: Any,
) -> Any:  # fmt: skip
    low = min if a_min is _NO_VALUE else a_min
    high = max if a_max is _NO_VALUE else a_max
    x = as_traced(a)
    if x.dtype.kind in "iu":  # numbers beyond the dtype bound nothing
        info = np.iinfo(x.dtype)
        low = None if type(low) is int and low <= info.min else low
        high = None if type(high) is int and high >= info.max else high
    made = result_type_of(x, *(v for v in (low, high) if v is not None and v is not _NO_VALUE))
    for bound in (low, high):
        if type(bound) is int and made.kind in "iu":
            np.asarray(bound, made)
    result: Any = x
    if low is not None and low is not _NO_VALUE:
        result = np.maximum(result, low)
    if high is not None and high is not _NO_VALUE:
        result = np.minimum(result, high)
    if result is x:
        result = copied(x)
    return _finish(result, out)


HANDLERS.methods["round"] = lambda x, decimals=0, out=None: around(x, decimals, out)


@implements(np.round, np.around)
def around(a: Any, decimals: int = 0, out: Any = None) -> Any:
    x = as_traced(a)
    decimals = operator.index(decimals)
    if x.dtype.kind == "b":
        if decimals:
            raise TypeError("numpy.round of booleans takes no decimals")
        x = astype(x, np.float16)
    if x.dtype.kind in "iu":
        if decimals >= 0:
            return _finish(copied(x), out)
        ones = x.variable.type.broadcastable
        (made,) = numpy_call("round", [x.variable], [(x.dtype, ones)], decimals=decimals)
        return _finish(array(made, x.dims, x.scalar, x.contiguous), out)
    if decimals == 0:
        return _finish(np.rint(x), out)
    factor = 10.0 ** abs(decimals)
    if decimals > 0:
        made = np.true_divide(np.rint(np.multiply(x, factor)), factor)
    else:
        made = np.multiply(np.rint(np.true_divide(x, factor)), factor)
    return _finish(made, out)


@implements(np.fix)
def fix(x: Any, out: Any = None) -> Any:
    return _finish(np.trunc(as_traced(x)), out)


# --- accumulation and order -----------------------------------------------------------------------


def _accumulated(name: str) -> Callable[..., Any]:
    def accumulate(a: Any, axis: Any = None, dtype: Any = None, out: Any = None) -> Any:
        x = as_traced(a)
        if axis is None:
            x, axis = ravel(x), 0
        axis = axis_of(axis, x.ndim)
        made = _sum_dtype(x, dtype if dtype is not None or out is None else _only(out).dtype)
        x = astype(x, made, copy=False)
        ones = x.variable.type.broadcastable
        if made.kind in "fiu" and made != np.float16:
            variable = getattr(T, name)(x.variable, axis=axis)
        else:
            (variable,) = numpy_call(name, [x.variable], [(made, ones)], axis=axis)
        variable = converted(fitted(variable, x.dims), made)
        return _finish(array(variable, x.dims, False, x.contiguous), out)

    return accumulate


cumsum = implements(np.cumsum, method="cumsum")(_accumulated("cumsum"))
cumprod = implements(np.cumprod, method="cumprod")(_accumulated("cumprod"))


@implements(getattr(np, "cumulative_sum", None))
def cumulative_sum(
    x: Any,
    /,
    *,
    axis: Any = None,
    dtype: Any = None,
    out: Any = None,
    include_initial: bool = False,
) -> Any:
    x = as_traced(x)
    if axis is None and x.ndim > 1:
        raise ValueError(
            "For arrays which have more than one dimension ``axis`` argument is required."
        )
    axis = 0 if axis is None else axis_of(axis, x.ndim)
    made = cumsum(x, axis, dtype)
    if include_initial:
        first = np.zeros_like(made[(*[slice(None)] * axis, slice(0, 1))])
        if hint_of(x.dims[axis]) == 0:
            raise untraceable("A sum of an empty axis with include_initial cannot be traced.", "")
        made = concatenate((first, made), axis)
    return _finish(made, out)


@implements(getattr(np, "cumulative_prod", None))
def cumulative_prod(
    x: Any,
    /,
    *,
    axis: Any = None,
    dtype: Any = None,
    out: Any = None,
    include_initial: bool = False,
) -> Any:
    x = as_traced(x)
    if axis is None and x.ndim > 1:
        raise ValueError(
            "For arrays which have more than one dimension ``axis`` argument is required."
        )
    axis = 0 if axis is None else axis_of(axis, x.ndim)
    made = cumprod(x, axis, dtype)
    if include_initial:
        if hint_of(x.dims[axis]) == 0:
            raise untraceable("A product of an empty axis with an initial one.", "Leave it out.")
        first = np.ones_like(made[(*[slice(None)] * axis, slice(0, 1))])
        made = concatenate((first, made), axis)
    return _finish(made, out)


@implements(np.diff)
def diff(
    a: Any, n: int = 1, axis: int = -1, prepend: Any = _NO_VALUE, append: Any = _NO_VALUE
) -> Any:
    x = as_traced(a)
    axis = axis_of(axis, x.ndim)
    parts = [x]
    for value, first in ((prepend, True), (append, False)):
        if value is not _NO_VALUE:
            more = as_traced(value)
            if not more.ndim:
                more = broadcast_to(
                    more, tuple(1 if k == axis else d for k, d in enumerate(x.dims))
                )
            parts = [more, *parts] if first else [*parts, more]
    if len(parts) > 1:
        x = concatenate(parts, axis)
    before = (slice(None),) * axis
    for _ in range(n):
        ufunc = np.not_equal if x.dtype.kind == "b" else np.subtract
        x = ufunc(x[(*before, slice(1, None))], x[(*before, slice(None, -1))])  # type: ignore[index]
    return x


@implements(np.ediff1d)
def ediff1d(ary: Any, to_end: Any = None, to_begin: Any = None) -> Any:
    x = ravel(ary)
    parts = [np.subtract(x[1:], x[:-1])]
    if to_begin is not None:
        parts = [ravel(to_begin), *parts]
    if to_end is not None:
        parts = [*parts, ravel(to_end)]
    return concatenate(parts) if len(parts) > 1 else parts[0]


def _sorted(x: Traced, axis: Any) -> Traced:
    if axis is None:
        x, axis = ravel(x), -1
    axis = axis_of(axis, x.ndim)
    if x.dtype.kind in "fiu" and x.dtype != np.float16:
        made = T.sort(x.variable, axis=axis)
    else:
        ones = x.variable.type.broadcastable
        (made,) = numpy_call("sort", [x.variable], [(x.dtype, ones)], axis=axis)
    return array(fitted(converted(made, x.dtype), x.dims), x.dims, False, x.contiguous)


@implements(np.sort)
def sort(a: Any, axis: Any = -1, kind: Any = None, order: Any = None, *, stable: Any = None) -> Any:
    return _sorted(as_traced(a), axis)


@implements(np.partition)
def partition(a: Any, kth: Any, axis: Any = -1, kind: Any = None, order: Any = None) -> Any:
    return _sorted(as_traced(a), axis)  # an order that fulfils what a partition promises


def _sort_method(x: Traced, axis: int = -1, kind: Any = None, order: Any = None, **_: Any) -> None:
    x[...] = _sorted(x, axis)


HANDLERS.methods["sort"] = _sort_method
HANDLERS.methods["partition"] = lambda x, kth, axis=-1: _sort_method(x, axis)


@implements(np.argsort, method="argsort")
def argsort(
    a: Any, axis: Any = -1, kind: Any = None, order: Any = None, *, stable: Any = None
) -> Any:
    x = as_traced(a)
    if axis is None:
        x, axis = ravel(x), -1
    if not x.ndim:
        raise untraceable("argsort of a scalar cannot be traced.", "It is 0.")
    axis = axis_of(axis, x.ndim)
    ones = x.variable.type.broadcastable
    # equal elements have the order that numpy gives them
    kind = "stable" if stable else kind
    (made,) = numpy_call("argsort", [x.variable], [(np.intp, ones)], axis=axis, kind=kind)
    return array(fitted(made, x.dims), x.dims, False, x.contiguous)


@implements(np.searchsorted)
def searchsorted(a: Any, v: Any, side: str = "left", sorter: Any = None) -> Any:
    x, values = as_traced(a), as_traced(v)
    if sorter is not None:
        x = x[sorter]
    common = result_type_of(a if type(a) is not list else x, v if type(v) is not list else values)
    x, values = operand_as(x, common), operand_as(values, common)
    ones = values.variable.type.broadcastable
    if common.kind in "biuf" and common != np.float16 and side in ("left", "right"):
        made = fitted(extra_ops.searchsorted(x.variable, values.variable, side), values.dims)
    else:
        (made,) = numpy_call(
            "searchsorted", [x.variable, values.variable], [(np.intp, ones)], side=side
        )
    return array(made, values.dims, not values.ndim)


HANDLERS.methods["searchsorted"] = searchsorted


@implements(np.digitize)
def digitize(x: Any, bins: Any, right: bool = False) -> Any:
    values, edges = as_traced(x), as_traced(bins)
    ones = values.variable.type.broadcastable
    (made,) = numpy_call(
        "digitize", [values.variable, edges.variable], [(np.intp, ones)], right=bool(right)
    )
    return array(made, values.dims, not values.ndim)


@implements(np.bincount)
def bincount(x: Any, /, weights: Any = None, minlength: Any = 0) -> Traced:
    values, least = as_traced(x), minlength
    arrays = [values]
    if weights is not None:
        arrays.append(astype(as_traced(weights), float, casting="safe", copy=False))
    if type(least) is not Number:
        least = operator.index(least)
    some = hint_of(values.dims[0]) if values.ndim == 1 else UNKNOWN
    trace = current()
    if (
        trace is None or values.dtype.kind not in "iu" or values.dtype == np.uint64
        or some in (0, UNKNOWN) or hint_of(least) is UNKNOWN or hint_of(least) < 0
        or arrays[-1].ndim != 1
    ):  # fmt: skip
        return _counted_by_numpy(arrays, least)
    if type(values.dims[0]) is Number:
        demand(f"{values.dims[0].text} > 0")
    added: Any = np.ones((), np.intp)
    if weights is not None:
        error = "The weights and list don't have the same length."
        require_equal(arrays[1].dims[0], values.dims[0], lambda: ValueError(error))
        added = arrays[1].variable
    index, length = values.variable, number_variable(least)
    # calls with numbers that are out of range run in Python
    if values.dtype.kind == "i":
        leave_to_python(T.lt(T.min(index), 0))
    if type(least) is Number:
        leave_to_python(T.lt(length, 0))
    after = T.cast(T.max(index), "int64") + 1
    if trace.loops and hint_of(least):  # a loop needs the length
        leave_to_python(T.gt(after, length))
        dim = least
    else:
        length = T.maximum(after, length)
        dim = Number("i", length)
    zeros = T.zeros([length], dtype="int64" if weights is None else "float64")
    return array(T.inc_subtensor(zeros[index], added), (dim,))


def _counted_by_numpy(arrays: Sequence[Traced], minlength: Any) -> Traced:
    inputs = [x.variable for x in arrays]
    kind = np.dtype(np.intp if len(arrays) == 1 else float)
    keywords: dict[str, Any] = {"minlength": minlength}
    if type(minlength) is Number:
        inputs.append(minlength.variable)
        keywords = {"keywords": ("minlength",)}
    (made,) = numpy_call("bincount", inputs, [(kind, (False,))], **keywords)
    return array(made, (Number("i", lambda: made.shape[0]),))


@implements(np.histogram)
def histogram(
    a: Any, bins: Any = 10, range: Any = None, density: Any = None, weights: Any = None
) -> Any:
    x = as_traced(a)
    more, keywords, counted = [], (), np.dtype(np.intp)
    if weights is not None:
        w = as_traced(weights)
        more, keywords = [w.variable], ("weights",)
        counted = np.histogram(np.ones(1), weights=np.ones(1, w.dtype))[0].dtype
    if density:
        counts, edges = histogram(x, bins, range, None, weights)
        widths = astype(np.diff(edges), float, copy=False)
        return counts / widths / sum_(counts), edges
    if isinstance(bins, int | np.integer | Number):
        count = operator.index(bins)
        constants = {"bins": count}
        if range is not None:
            if any(type(v) in (Traced, Number) for v in range):
                raise untraceable("numpy.histogram needs the numbers of its range.", "")
            constants["range"] = tuple(range)
        kind = np.dtype(float) if x.dtype.kind in "iub" else np.result_type(x.dtype, np.float32)
        kind = np.histogram(np.ones(1, x.dtype), bins=1)[1].dtype
        counts, edges = numpy_call(
            "histogram", [x.variable, *more], [(counted, (count == 1,)), (kind, (False,))],
            keywords, **constants,
        )  # fmt: skip
        return array(counts, (count,)), array(edges, (count + 1,))
    edges_ = as_traced(bins)
    counts, made = numpy_call(
        "histogram", [x.variable, edges_.variable, *more],
        [(counted, (False,)), (edges_.dtype, (False,))], keywords,
    )  # fmt: skip
    length = edges_.dims[0] - 1
    return array(counts, (length,)), array(made, edges_.dims)


@implements(np.histogram_bin_edges)
def histogram_bin_edges(a: Any, bins: Any = 10, range: Any = None, weights: Any = None) -> Any:
    return histogram(a, bins, range)[1]


@implements(np.histogram2d)
def histogram2d(
    x: Any, y: Any, bins: Any = 10, range: Any = None, density: Any = None, weights: Any = None
) -> Any:
    both = bins if isinstance(bins, tuple | list) and len(bins) == 2 else (bins, bins)
    if is_traced(range):
        raise untraceable(
            "numpy.histogram2d needs the numbers of its range.",
            "Give the edges of the bins: bins=[x_edges, y_edges].",
        )
    numbers = [isinstance(n, int | np.integer | Number) for n in both]
    edges = [None if one else as_traced(n) for n, one in zip(both, numbers, strict=True)]
    sizes = [
        operator.index(n) if e is None else e.dims[0] - 1 for n, e in zip(both, edges, strict=True)
    ]
    constants: dict[str, Any] = {"density": bool(density)}
    constants["bins"] = tuple(
        n if e is None else None for n, e in zip(sizes, edges, strict=True)
    )  # fmt: skip
    if range is not None:
        constants["range"] = tuple(map(tuple, range))
    inputs = [as_traced(x), as_traced(y), *[e for e in edges if e is not None]]
    if weights is not None:
        inputs.append(as_traced(weights))
    sample = [np.ones(1, each.dtype) for each in inputs[:2]]
    kinds = [
        e.dtype if e is not None else np.histogram2d(*sample, bins=1)[1].dtype for e in edges
    ]  # fmt: skip
    made = numpy_call(
        "python.histogram2d", [v.variable for v in inputs],
        [(float, tuple(map(is_one, sizes))), *[(kind, (False,)) for kind in kinds]], **constants,
    )  # fmt: skip
    shapes = (tuple(sizes), *[(n + 1,) for n in sizes])
    return tuple(array(v, dims) for v, dims in zip(made, shapes, strict=True))


@implements(np.isin)
def isin(
    element: Any, test_elements: Any, assume_unique: bool = False, invert: bool = False, *,
    kind: Any = None,
) -> Any:  # fmt: skip
    x, y = as_traced(element), as_traced(test_elements)
    (made,) = numpy_call(
        "isin", [x.variable, y.variable], [(bool, x.variable.type.broadcastable)],
        assume_unique=assume_unique, invert=invert, kind=kind,
    )  # fmt: skip
    return array(made, x.dims)


def _of_sets(name: str) -> Callable[..., Any]:
    def compute(ar1: Any, ar2: Any, assume_unique: bool = False) -> Any:
        x, y = as_traced(ar1), as_traced(ar2)
        kind = getattr(np, name)(np.zeros(0, x.dtype), np.zeros(0, y.dtype)).dtype
        (made,) = numpy_call(
            name, [x.variable, y.variable], [(kind, (False,))], assume_unique=assume_unique
        )
        return array(made, (Number("i", lambda: made.shape[0]),))

    return compute


implements(np.setdiff1d)(_of_sets("setdiff1d"))
implements(np.setxor1d)(_of_sets("setxor1d"))


@implements(np.gradient)
def gradient(f: Any, *varargs: Any, axis: Any = None, edge_order: int = 1) -> Any:
    y = as_traced(f)
    spacings = [as_traced(v) for v in varargs]
    if not any(s.ndim for s in spacings) or edge_order != 1:
        raise Unhandled
    axes = tuple(range(y.ndim)) if axis is None else axes_of(axis, y.ndim)
    if len(spacings) != len(axes):
        raise TypeError("invalid number of arguments")
    results = []
    y = astype(y, np.result_type(y.dtype, np.float16), copy=False)
    for k, spacing in zip(axes, spacings, strict=True):
        if not spacing.ndim:
            made = np.gradient(y, spacing, axis=k)  # type: ignore[call-overload]
        else:
            h = np.diff(astype(spacing, y.dtype if y.dtype.kind == "f" else float, copy=False))
            v = moveaxis(y, k, -1)
            slopes = np.diff(v) / h
            before, after = h[:-1] / (h[:-1] + h[1:]), h[1:] / (h[:-1] + h[1:])
            inside = slopes[..., :-1] * after + slopes[..., 1:] * before
            made = moveaxis(concatenate([slopes[..., :1], inside, slopes[..., -1:]], -1), -1, k)
        results.append(made)
    return results[0] if len(results) == 1 else tuple(results)


@implements(np.unique)
def unique(
    ar: Any, return_index: bool = False, return_inverse: bool = False, return_counts: bool = False,
    axis: Any = None, *, equal_nan: bool = True, sorted: bool = True,
) -> Any:  # fmt: skip
    x = as_traced(ar)
    ones = x.variable.type.broadcastable
    kept: list[Any] = [None]
    if axis is not None:
        axis = axis_of(axis, x.ndim)
        kept = [None if k == axis else d for k, d in enumerate(x.dims)]
        if return_inverse:
            ones = (is_one(x.dims[axis]),)
    types: list[Any] = [(x.dtype, [d is not None and is_one(d) for d in kept])]
    dims: list[Any] = [None]
    for wanted, shape_, dims_ in (
        (return_index, (False,), None),
        (return_inverse, ones, x.dims if axis is None else (x.dims[axis],)),
        (return_counts, (False,), None),
    ):  # fmt: skip
        if wanted:
            types.append((np.intp, shape_))
            dims.append(dims_)
    made = numpy_call(
        "unique", [x.variable], types, return_index=return_index, return_inverse=return_inverse,
        return_counts=return_counts, equal_nan=equal_nan, axis=axis,
    )  # fmt: skip
    length = Number("i", lambda: made[0].shape[axis or 0])
    dims[0] = tuple(length if d is None else d for d in kept)
    results = [array(v, d or (length,)) for v, d in zip(made, dims, strict=True)]
    return results[0] if len(results) == 1 else tuple(results)


@implements(np.unique_values)
def unique_values(x: Any) -> Any:
    # in an order of its own
    (made,) = numpy_call("unique_values", [as_traced(x).variable], [(as_traced(x).dtype, (False,))])
    return array(made, (Number("i", lambda: made.shape[0]),))


@implements(np.unique_counts)
def unique_counts(x: Any) -> Any:
    return UniqueCountsResult(*unique(x, return_counts=True, equal_nan=False))


@implements(np.unique_inverse)
def unique_inverse(x: Any) -> Any:
    return UniqueInverseResult(*unique(x, return_inverse=True, equal_nan=False))


@implements(np.unique_all)
def unique_all(x: Any) -> Any:
    made = unique(x, return_index=True, return_inverse=True, return_counts=True, equal_nan=False)
    return UniqueAllResult(*made)


@implements(np.argpartition, method="argpartition")
def argpartition(
    a: Any, kth: Any, axis: Any = -1, kind: str = "introselect", order: Any = None
) -> Any:
    x = as_traced(a)
    if axis is None:
        x, axis = ravel(x), -1
    types = [(np.intp, x.variable.type.broadcastable)]
    axis = axis_of(axis, x.ndim)
    if is_traced(kth):
        inputs = [x.variable, as_traced(kth).variable]
        (made,) = numpy_call("argpartition", inputs, types, ("kth",), axis=axis)
    else:
        places = [operator.index(k) for k in (kth if isinstance(kth, list | tuple) else [kth])]
        (made,) = numpy_call("argpartition", [x.variable], types, axis=axis, kth=tuple(places))
    return array(made, x.dims)


@implements(np.lexsort)
def lexsort(keys: Any, axis: int = -1) -> Any:
    rows = [as_traced(key) for key in keys]
    result = argsort(rows[0], axis, stable=True)
    for row in rows[1:]:
        more = argsort(take_along_axis(row, result, axis), axis, stable=True)
        result = take_along_axis(result, more, axis)
    return result


@implements(np.trim_zeros)
def trim_zeros(filt: Any, trim: str = "fb", *args: Any, **keywords: Any) -> Traced:
    x = as_traced(filt)
    if x.ndim != 1 or args or keywords:
        raise Unhandled
    (made,) = numpy_call("trim_zeros", [x.variable], [(x.dtype, (False,))], trim=trim)
    return array(made)


@implements(np.i0)
def i0(x: Any) -> Any:
    values = as_traced(x)
    values = astype(values, float, copy=False) if values.dtype.kind in "biu" else values
    ones = values.variable.type.broadcastable
    (made,) = numpy_call("i0", [values.variable], [(values.dtype, ones)])
    return array(made, values.dims)


@implements(np.unravel_index)
def unravel_index(indices: Any, shape: Any, order: str = "C") -> Any:
    places, dims = as_traced(indices), shape if isinstance(shape, tuple | list) else (shape,)
    ones = places.variable.type.broadcastable
    made = numpy_call(
        "unravel_index", [places.variable, as_traced(list(dims)).variable],
        [(np.intp, ones)] * len(dims), order=order,
    )  # fmt: skip
    return tuple(array(v, places.dims, not places.ndim) for v in made)


@implements(np.ravel_multi_index)
def ravel_multi_index(multi_index: Any, dims: Any, mode: str = "raise", order: str = "C") -> Any:
    places = np.stack(np.broadcast_arrays(*map(as_traced, multi_index)))  # type: ignore[call-overload]
    shape = dims if isinstance(dims, tuple | list) else (dims,)
    (made,) = numpy_call(
        "ravel_multi_index", [places.variable, as_traced(list(shape)).variable],
        [(np.intp, places.variable.type.broadcastable[1:])], mode=mode, order=order,
    )  # fmt: skip
    return array(made, places.dims[1:], places.ndim == 1)


@implements(np.choose)
def choose(a: Any, choices: Any, out: Any = None, mode: str = "raise") -> Any:
    kind = result_type_of(*choices)
    where_, *arrays = np.broadcast_arrays(as_traced(a), *[operand_as(c, kind) for c in choices])
    stacked = np.stack(arrays)
    ones = where_.variable.type.broadcastable
    (made,) = numpy_call(
        "choose", [where_.variable, stacked.variable], [(stacked.dtype, ones)], mode=mode
    )
    return _finish(array(made, where_.dims, not where_.dims), out)


HANDLERS.methods["choose"] = choose


@implements(np.put)
def put(a: Any, ind: Any, v: Any, mode: str = "raise") -> None:
    places, values = ravel(ind), ravel(v)
    if mode != "raise":
        places = np.remainder(places, a.size) if mode == "wrap" else clip(places, 0, a.size - 1)
    values = values[np.remainder(arange(places.dims[0]), values.dims[0])]
    a[unravel_index(np.where(np.less(places, 0), places + a.size, places), a.dims)] = values


HANDLERS.methods["put"] = put


@implements(np.place)
def place(arr: Any, mask: Any, vals: Any) -> None:
    chosen, values = reshape(astype(as_traced(mask), bool), arr.dims), ravel(vals)
    order = reshape(np.cumsum(chosen), arr.dims) - 1
    arr[...] = where(chosen, values[np.remainder(order, values.dims[0])], arr)


@implements(np.putmask)
def putmask(a: Any, mask: Any, values: Any) -> None:
    given = as_traced(values)
    if given.ndim:
        flat = ravel(given)
        given = reshape(flat[np.remainder(arange(a.size), flat.dims[0])], a.dims)
    a[...] = where(mask, given, a)


@implements(np.lib.stride_tricks.sliding_window_view)
def sliding_window_view(
    x: Any, window_shape: Any, axis: Any = None, *, subok: bool = False, writeable: bool = False
) -> Any:
    made = as_traced(x)
    lengths = window_shape if isinstance(window_shape, tuple | list) else (window_shape,)
    axes = tuple(range(made.ndim)) if axis is None else axis
    axes = axes if isinstance(axes, tuple | list) else (axes,)
    if len(axes) != len(lengths):
        raise ValueError(
            f"Must provide matching length window_shape and axis; got {len(lengths)} window_shape "
            f"elements and {len(axes)} axes elements."
        )
    windows, dims, sizes = [], list(made.dims), []
    for one, length in zip(axes, lengths, strict=True):
        k = axis_of(one, made.ndim)
        dims[k] = dims[k] - length + 1
        if hint_of(dims[k]) is not UNKNOWN and hint_of(dims[k]) <= 0:
            raise ValueError("window shape cannot be larger than input array shape")
        windows.append((k, length))
        sizes.append(length)
    view = Windows(windows, {}, (*dims, *sizes))
    view.writeable = writeable
    return made.part(view, (*dims, *sizes))


#: windows of up to so many elements are put together from shifted parts of the array
_MOST_PARTS = 64


class Windows(View):
    """Windows that slide along axes of an array; their own axes are the last ones.

    windows: (axis, length of the window) of each. rows: {axis: where the windows begin}, if not
    everywhere.
    """

    def __init__(
        self, windows: Sequence[tuple[int, Any]], rows: dict[int, Traced], dims: Sequence[Any]
    ) -> None:
        self._windows, self._rows, self._dims = windows, rows, dims

    def read(self, x: Tensor) -> Tensor:
        made = array(x)
        for k, length in self._windows:
            rows = self._rows.get(k)
            if rows is None and type(length) is not Number and length <= _MOST_PARTS:
                before, count = (slice(None),) * k, made.dims[k] - length + 1
                parts = [made[(*before, slice(i, count + i))] for i in range(length)]
                made = moveaxis(np.stack(parts), 0, -1)  # type: ignore[call-overload]
                continue
            if rows is None:
                rows = arange(made.dims[k] - length + 1)
            made = moveaxis(take(made, rows[:, None] + arange(length), k), k + 1, -1)
        return fitted(made.variable, self._dims)

    def write(self, x: Tensor, value: Tensor) -> Tensor:
        raise untraceable("Windows of an array cannot be changed here.", "Change the array.")

    def then(self, step: View, dims: Sequence[Any]) -> View | None:
        # of windows that are left out no elements are read
        if type(step) is not Index or len(dims) != len(self._dims) or any(map(is_one, dims)):
            return None
        cut = {k: item for k, item in enumerate(step.key) if not is_whole(item)}
        if not cut or not cut.keys() <= dict(self._windows).keys():
            return None
        rows = {k: self._rows.get(k, arange(self._dims[k]))[item] for k, item in cut.items()}
        return Windows(self._windows, {**self._rows, **rows}, dims)


# --- elements by positions ------------------------------------------------------------------------


@implements(np.take, method="take")
def take(a: Any, indices: Any, axis: Any = None, out: Any = None, mode: str = "raise") -> Any:
    x = as_traced(a)
    if axis is None:
        x, axis = ravel(x), 0
    axis = axis_of(axis, x.ndim)
    where_ = indices
    if mode != "raise":
        length = x.dims[axis]
        where_ = np.remainder(indices, length) if mode == "wrap" else clip(indices, 0, length - 1)
    if isinstance(where_, list | tuple):
        where_ = as_traced(where_)
    return _finish(x[(*[slice(None)] * axis, where_)], out)


@implements(np.take_along_axis)
def take_along_axis(arr: Any, indices: Any, axis: Any = -1) -> Any:
    x, where_ = as_traced(arr), as_traced(indices)
    if axis is None:
        x, axis = ravel(x), 0
    axis = axis_of(axis, x.ndim)
    key = []
    for k, dim in enumerate(x.dims):
        if k == axis:
            key.append(where_)
        else:
            rows = arange(dim)
            key.append(reshape(rows, tuple(dim if j == k else 1 for j in range(x.ndim))))
    return x[tuple(key)]


@implements(np.put_along_axis)
def put_along_axis(arr: Any, indices: Any, values: Any, axis: Any) -> None:
    x, where_ = as_traced(arr), as_traced(indices)
    axis = axis_of(axis, x.ndim)
    key = [
        where_
        if k == axis
        else reshape(arange(d), tuple(d if j == k else 1 for j in range(x.ndim)))
        for k, d in enumerate(x.dims)
    ]
    x[tuple(key)] = values


@implements(np.compress, method="compress")
def compress(condition: Any, a: Any, axis: Any = None, out: Any = None) -> Any:
    x = as_traced(a)
    if axis is None:
        x, axis = ravel(x), 0
    return _finish(take(x, nonzero(astype(as_traced(condition), bool))[0], axis), out)


HANDLERS.methods["compress"] = lambda x, condition, axis=None, out=None: compress(
    condition, x, axis, out
)


@implements(np.extract)
def extract(condition: Any, arr: Any) -> Any:
    return ravel(arr)[ravel(astype(as_traced(condition), bool))]


@implements(np.trace, method="trace")
def trace(
    a: Any, offset: int = 0, axis1: int = 0, axis2: int = 1, dtype: Any = None, out: Any = None
) -> Any:
    x = np.diagonal(as_traced(a), offset, axis1, axis2)  # type: ignore[call-overload]
    return _finish(sum_(x, -1, dtype), out)


def _quantiles(
    name: str, x: Traced, q: Any, scale: float, axes: Sequence[int], keepdims: Any, method: str
) -> Any:
    """Return the quantiles at q / scale as numpy gives them."""
    single = type(q) is Number or isinstance(q, int | float)
    if not is_traced(q):
        q = np.asarray(q, float) / scale
    elif single:
        q = Traced(Root((q * 1.0 / scale).variable), ())
    else:
        q = as_traced(q) if scale == 1 else as_traced(q) / scale
    kept = [k for k in range(x.ndim) if k not in axes]
    flat = _along_last(x, axes)
    ones = [is_one(x.dims[k]) for k in kept]
    level: Any = 0.5 if single else np.full(np.ndim(q) * (1,), 0.5, q.dtype)
    kind = np.quantile(np.ones(1, x.dtype), level, method=method).dtype
    shape_ = [(kind, [*[is_one(n) for n in q.shape], *ones])]
    if single and type(q) is not Traced:
        (made,) = numpy_call(name, [flat.variable], shape_, axis=-1, q=float(q), method=method)
    else:
        given = q.variable if type(q) is Traced else q
        name = f"python.{name}" if single else name
        (made,) = numpy_call(name, [flat.variable, given], shape_, axis=-1, method=method)
    dims = (*q.shape, *[x.dims[k] for k in kept])
    result = array(made, dims, not dims)
    if keepdims and keepdims is not _NO_VALUE:
        full = (*q.shape, *[1 if k in axes else d for k, d in enumerate(x.dims)])
        result = reshape(result, full)
    return result


def _quantile_function(name: str, scale: float) -> Callable[..., Any]:
    def quantile(
        a: Any, q: Any, axis: Any = None, out: Any = None, overwrite_input: bool = False,
        method: str = "linear", keepdims: Any = False, **more: Any,
    ) -> Any:  # fmt: skip
        if more:
            raise untraceable("Quantiles with weights cannot be traced.", "Leave them out.")
        x = as_traced(a)
        axes = axes_of(axis, x.ndim)
        return _finish(_quantiles(name, x, q, scale, axes, keepdims, method), out)

    return quantile


for _name in ("quantile", "nanquantile"):
    implements(getattr(np, _name))(_quantile_function(_name, 1.0))
implements(np.percentile)(_quantile_function("quantile", 100.0))
implements(np.nanpercentile)(_quantile_function("nanquantile", 100.0))


#: medians of up to so many elements are taken from a sorted array; of more, numpy sorts half
_MOST_SORTED = 1000


def _along_last(x: Traced, axes: Sequence[int]) -> Traced:
    """Return an array with some axes as one, the last one."""
    kept = [k for k in range(x.ndim) if k not in axes]
    moved = moveaxis(x, list(axes), list(range(len(kept), x.ndim)))
    return reshape(moved, (*[x.dims[k] for k in kept], product(x.dims[k] for k in axes)))


def _middle(x: Traced, axes: Sequence[int], keepdims: Any) -> Traced:
    """Return the median along axes, from a sorted array; NaN is sorted behind all numbers."""
    ordered = _sorted(_along_last(x, axes), -1)
    size = ordered.dims[-1]
    made = mean(ordered[..., (size - 1) // 2 : size // 2 + 1], -1)
    if x.dtype.kind == "f":
        last = any_(np.isnan(ordered[..., size - 1 :]), -1)
        made = where(last, np.asarray(np.nan, x.dtype), made)
    dims = tuple(d for k, d in enumerate(x.dims) if k not in axes)
    result = array(made.variable, dims, not dims)
    if keepdims and keepdims is not _NO_VALUE:
        return reshape(result, tuple(1 if k in axes else d for k, d in enumerate(x.dims)))
    return result


def _median(name: str) -> Callable[..., Any]:
    def median(
        a: Any, axis: Any = None, out: Any = None, overwrite_input: bool = False,
        keepdims: Any = False,
    ) -> Any:  # fmt: skip
        x = as_traced(a)
        axes = axes_of(axis, x.ndim)
        kept = [is_one(d) for k, d in enumerate(x.dims) if k not in axes]
        kind = np.median(np.ones(1, x.dtype)).dtype
        size = hint_of(product(x.dims[k] for k in axes))
        some = size is UNKNOWN or 0 < size <= _MOST_SORTED
        if name == "median" and some and x.dtype.kind in "iuf" and x.dtype != np.float16:
            return _finish(_middle(x, axes, keepdims), out)
        (made,) = numpy_call(name, [x.variable], [(kind, kept)], axis=tuple(axes))
        return _finish(_reduced(x, made, axes, keepdims), out)

    return median


implements(np.median)(_median("median"))
implements(np.nanmedian)(_median("nanmedian"))


@implements(np.isclose)
def isclose(a: Any, b: Any, rtol: Any = 1e-5, atol: Any = 1e-8, equal_nan: bool = False) -> Any:
    x, y = as_traced(a), as_traced(b)
    if y.dtype.kind not in "fc":
        y = astype(y, np.result_type(y.dtype, 1.0))
    near = np.less_equal(np.abs(x - y), atol + rtol * np.abs(y))  # type: ignore[operator]
    made = (near & np.isfinite(y)) | (x == y)
    if equal_nan:
        made = made | (np.isnan(x) & np.isnan(y))
    return made


@implements(np.allclose)
def allclose(a: Any, b: Any, rtol: Any = 1e-5, atol: Any = 1e-8, equal_nan: bool = False) -> Any:
    return number_from(all_(isclose(a, b, rtol, atol, equal_nan)))


@implements(np.array_equal)
def array_equal(a1: Any, a2: Any, equal_nan: bool = False) -> Any:
    x, y = as_traced(a1), as_traced(a2)
    if x.ndim != y.ndim:
        return False
    for a, b in zip(x.dims, y.dims, strict=True):
        if hint_of(a) != hint_of(b):
            if UNKNOWN in (hint_of(a), hint_of(b)):
                raise untraceable("array_equal needs the lengths of its arguments.", "")
            demand(f"{number_text(a)} != {number_text(b)}")
            return False
        demand(f"{number_text(a)} == {number_text(b)}") if a is not b else None
    return number_from(all_(np.equal(x, y)))


@implements(np.nan_to_num)
def nan_to_num(
    x: Any, copy: bool = True, nan: Any = 0.0, posinf: Any = None, neginf: Any = None
) -> Any:
    a = as_traced(x)
    if a.dtype.kind not in "f":
        if a.dtype.kind == "c":
            raise untraceable("nan_to_num of complex numbers cannot be traced.", "")
        return copied(a)
    info = np.finfo(a.dtype)
    most, least = (info.max if posinf is None else posinf, info.min if neginf is None else neginf)
    made = a
    for test, value in (
        (np.isnan(a), nan), (np.equal(a, np.inf), most), (np.equal(a, -np.inf), least)
    ):  # fmt: skip
        made = where(test, astype(as_traced(value), a.dtype), made)
    if not copy:
        a[...] = made
        return a
    made.scalar = not made.ndim
    return made


def _without_nans(name: str, neutral: Any) -> Callable[..., Any]:
    def reduce(a: Any, axis: Any = None, *args: Any, **kwargs: Any) -> Any:
        x = as_traced(a)
        if x.dtype.kind == "f":
            x = where(np.isnan(x), x.dtype.type(neutral), x)
        return HANDLERS.functions[getattr(np, name)](x, axis, *args, **kwargs)

    return reduce


implements(np.nansum)(_without_nans("sum", 0))
implements(np.nanprod)(_without_nans("prod", 1))


@implements(np.nanmean)
def nanmean(
    a: Any, axis: Any = None, dtype: Any = None, out: Any = None, keepdims: Any = False
) -> Any:
    x = as_traced(a)
    if x.dtype.kind != "f":
        return mean(x, axis, dtype, out, keepdims)
    return mean(x, axis, dtype, out, keepdims, where=np.logical_not(np.isnan(x)))


@implements(np.interp)
def interp(
    x: Any, xp: Any, fp: Any, left: Any = None, right: Any = None, period: Any = None
) -> Any:
    values = [as_traced(v) for v in (x, xp, fp)]
    if any(v.dtype.kind == "c" for v in values):
        raise untraceable("numpy.interp of complex numbers cannot be traced.", "Use two calls.")
    values = [astype(v, float, copy=False) for v in values]
    ones = values[0].variable.type.broadcastable
    given = ("left", left), ("right", right), ("period", period)
    ends = {name: value for name, value in given if value is not None}
    (made,) = numpy_call(
        "interp",
        [v.variable for v in (*values, *map(as_traced, ends.values()))],
        [(np.float64, ones)], tuple(ends),
    )  # fmt: skip
    return array(made, values[0].dims, not values[0].ndim)


def _item(x: Traced, *index: Any) -> Any:
    """Return ``x.item()``: a Python number."""
    if len(index) == 1 and isinstance(index[0], tuple):
        (index,) = index
    if index:
        x = ravel(x)[index[0]] if len(index) == 1 else x[tuple(index)]
    if x.ndim:
        for d in x.dims:
            if not is_one(d):
                if hint_of(d) != 1:
                    raise ValueError("can only convert an array of size 1 to a Python scalar")
                demand(f"{number_text(d)} == 1")
        x = reshape(x, ())
    return number_from(x)


def number_from(x: Traced) -> Any:
    """Return the Number that a scalar is."""
    kind = {"b": "b", "i": "i", "u": "i", "f": "f", "c": "c"}[x.dtype.kind]
    return Number(kind, x.variable)


HANDLERS.methods["item"] = _item
HANDLERS.methods["conj"] = HANDLERS.methods["conjugate"] = lambda x: (
    np.conjugate(x) if x.dtype.kind == "c" else x
)
HANDLERS.methods["ptp"] = ptp
