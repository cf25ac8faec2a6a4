"""Functions of numpy that give arrays another shape, join them, and make new ones."""

from __future__ import annotations

import itertools
import operator
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from opwise import tensor as T
from opwise.tensor.variable import Tensor
from opwise.tracing.indexing import (
    Index,
    Reorder,
    broadcast_dims,
    converted,
    expanded,
    write_broadcast,
    written_value,
)
from opwise.tracing.ops import numpy_call
from opwise.tracing.trace import demand, untraceable
from opwise.tracing.ufuncs import dtype_entry, operand_as
from opwise.tracing.values import (
    HANDLERS,
    UNKNOWN,
    Dim,
    Number,
    Root,
    Traced,
    Unhandled,
    View,
    array,
    as_traced,
    check_dtype,
    common_order,
    constant,
    dim_variable,
    fitted,
    hint_of,
    is_in_order,
    is_one,
    number_of,
    number_text,
    product,
    require_equal,
    same_dim,
    shape_text,
)


def implements(*functions: Any, method: str | None = None) -> Callable[[Any], Any]:
    """Register what functions of numpy, and a method of arrays, do with traced arrays.

    functions: None for one that this release of numpy lacks.
    """

    def register(own: Callable[..., Any]) -> Callable[..., Any]:
        for function in functions:
            if function is not None:
                HANDLERS.functions[function] = own
        if method is not None:
            HANDLERS.methods[method] = own
        return own

    return register


def axis_of(axis: Any, ndim: int) -> int:
    """Return an axis as an int from 0. Raises numpy's AxisError if there is no such axis."""
    axis = operator.index(axis)
    if not -ndim <= axis < ndim:
        raise np.exceptions.AxisError(axis, ndim)
    return axis % ndim


def axes_of(axis: Any, ndim: int) -> tuple[int, ...]:
    """Return axes as ints from 0; None for all."""
    if axis is None:
        return tuple(range(ndim))
    if ndim == 0 and type(axis) is int and axis in (0, -1):
        return ()  # numpy lets a scalar be reduced along its only axis
    axes = tuple(axis_of(a, ndim) for a in (axis if isinstance(axis, tuple | list) else (axis,)))
    if len(set(axes)) != len(axes):
        raise ValueError("duplicate value in 'axis'")
    return axes


def shape_of(shape: Any) -> tuple[Dim, ...]:
    """Return a shape that a program gives: an int, a Number, or a sequence of them."""
    if type(shape) is Traced and shape.ndim == 1:
        return tuple(number_of(shape[k]) for k in range(operator.index(shape.dims[0])))
    if not isinstance(shape, tuple | list | np.ndarray):
        shape = (shape,)
    dims = tuple(number_of(d) for d in shape)
    for d in dims:
        if hint_of(d) is not UNKNOWN and hint_of(d) < 0 and hint_of(d) != -1:
            raise ValueError("negative dimensions are not allowed")
    return tuple(_settled(d) for d in dims)


def _settled(dim: Dim) -> Dim:
    """Return a length; one that is 1 in this call is demanded to be, as types say it."""
    if type(dim) is Number and dim.known and dim.hint == 1:
        demand(f"{dim.text} == 1")
        return 1
    return dim


def result_dtype(*values: Any) -> np.dtype[Any]:
    """Return ``numpy.result_type`` of arrays, traced arrays and numbers."""
    entries = []
    for value in values:
        entry = dtype_entry(value)
        entries.append(entry(0) if isinstance(entry, type) else entry)
    return np.result_type(*entries)


#: why an array cannot be changed after a reshape of it
RESHAPED = (
    "after a reshape of it, which numpy makes a view or a copy, depending on the strides of an "
    "argument"
)

# --- views ----------------------------------------------------------------------------------------


def reordered(x: Traced, order: Sequence[Any], dims: Sequence[Dim]) -> Traced:
    """Return a view with the axes in another order; 'x' for new ones."""
    kept = [a for a in order if a != "x"]
    moved = [a for a in kept if not is_one(x.dims[a])]
    contiguous = moved == sorted(moved) and x.contiguous
    return x.part(Reorder(order, x.ndim), tuple(dims), contiguous)


def _unscalar(x: Any) -> Traced:
    """Return an operand as an array: functions that give views make arrays of scalars."""
    traced = as_traced(x)
    if traced.scalar:
        return Traced(Root(traced.variable), traced.dims)
    return traced


@implements(np.transpose, np.permute_dims)
def transpose(a: Any, axes: Any = None) -> Traced:
    x = _unscalar(a)
    if axes is None:
        order = list(range(x.ndim))[::-1]
    else:
        if len(axes) != x.ndim:
            raise ValueError("axes don't match array")
        order = list(axes_of(tuple(axes), x.ndim))
    if order == sorted(order):
        return Traced(x.root, x.dims, x._path, False, x.contiguous)
    return reordered(x, order, [x.dims[k] for k in order])


HANDLERS.methods["T"] = transpose
HANDLERS.methods["transpose"] = lambda x, *axes: transpose(
    x, None if not axes else axes[0] if len(axes) == 1 and not isinstance(axes[0], int) else axes
)


@implements(np.matrix_transpose, np.linalg.matrix_transpose, method="mT")
def matrix_transpose(x: Any) -> Traced:
    x = _unscalar(x)
    if x.ndim < 2:
        raise ValueError(f"matrix transpose with ndim < 2 is undefined; input has ndim {x.ndim}")
    return swapaxes(x, -1, -2)


@implements(np.swapaxes, method="swapaxes")
def swapaxes(a: Any, axis1: int, axis2: int) -> Traced:
    x = _unscalar(a)
    order = list(range(x.ndim))
    one, two = axis_of(axis1, x.ndim), axis_of(axis2, x.ndim)
    order[one], order[two] = order[two], order[one]
    return transpose(x, order)


@implements(np.moveaxis)
def moveaxis(a: Any, source: Any, destination: Any) -> Traced:
    x = _unscalar(a)
    sources = axes_of(source, x.ndim)
    targets = axes_of(destination, x.ndim)
    if len(sources) != len(targets):
        raise ValueError(
            "`source` and `destination` arguments must have the same number of elements"
        )
    order = [k for k in range(x.ndim) if k not in sources]
    for target, source_axis in sorted(zip(targets, sources, strict=True)):
        order.insert(target, source_axis)
    return transpose(x, order)


@implements(np.rollaxis)
def rollaxis(a: Any, axis: int, start: int = 0) -> Traced:
    x = _unscalar(a)
    axis = axis_of(axis, x.ndim)
    start = start + x.ndim if start < 0 else start
    order = [k for k in range(x.ndim) if k != axis]
    order.insert(start - (start > axis), axis)
    return transpose(x, order)


@implements(np.expand_dims)
def expand_dims(a: Any, axis: Any) -> Traced:
    x = _unscalar(a)
    axes = axis if isinstance(axis, tuple | list) else (axis,)
    ndim = x.ndim + len(axes)
    new = axes_of(tuple(axes), ndim)
    old = iter(range(x.ndim))
    order = ["x" if k in new else next(old) for k in range(ndim)]
    return reordered(x, order, [1 if k == "x" else x.dims[k] for k in order])  # type: ignore[call-overload]


@implements(np.squeeze, method="squeeze")
def squeeze(a: Any, axis: Any = None) -> Traced:
    x = _unscalar(a)
    if axis is None:
        axes = tuple(k for k, d in enumerate(x.dims) if hint_of(d) == 1)
    else:
        axes = axes_of(axis, x.ndim)
    x = _with_ones_at(
        x, axes, "cannot select an axis to squeeze out which has size not equal to one"
    )
    order = [k for k in range(x.ndim) if k not in axes]
    return reordered(x, order, [x.dims[k] for k in order])


def _with_ones_at(x: Traced, axes: Sequence[int], error: str) -> Traced:
    """Return an array of which some axes are known to have the length 1."""
    wrong = [k for k in axes if not is_one(x.dims[k])]
    for k in wrong:
        if hint_of(x.dims[k]) not in (1, UNKNOWN):
            raise ValueError(error)
        if type(x.dims[k]) is Number and x.dims[k].known:
            demand(f"{number_text(x.dims[k])} == 1")
    if not wrong:
        return x
    dims = tuple(1 if k in wrong else d for k, d in enumerate(x.dims))
    return x.part(_Ones(tuple(wrong)), dims, x.contiguous)


class _Ones(View):
    """An array of which some axes are known to have the length 1."""

    def __init__(self, axes: tuple[int, ...]) -> None:
        self._axes = axes

    def read(self, x: Tensor) -> Tensor:
        return T.addbroadcast(x, *self._axes)

    def write(self, x: Tensor, value: Tensor) -> Tensor:
        return T.patternbroadcast(value, x.type.broadcastable)


class Reshape(View):
    """An array with other axes, whose elements have the same order."""

    def __init__(self, dims: tuple[Dim, ...], before: tuple[Dim, ...]) -> None:
        self._dims, self._before = dims, before

    def read(self, x: Tensor) -> Tensor:
        return _reshaped(x, self._dims)

    def write(self, x: Tensor, value: Tensor) -> Tensor:
        return _reshaped(value, self._before)


def _reshaped(x: Tensor, dims: Sequence[Dim]) -> Tensor:
    shape = [dim_variable(d) for d in dims]
    made = T.reshape(x, shape, ndim=len(dims)) if shape else T.reshape(x, [], ndim=0)
    return fitted(made, dims)


@implements(np.reshape)
def reshape(a: Any, /, shape: Any = None, order: str = "C", *, copy: Any = None) -> Traced:
    x = _unscalar(a)
    if order == "F":
        dims = shape if isinstance(shape, tuple | list) else (shape,)
        return transpose(reshape(transpose(x), tuple(dims)[::-1]))
    if order not in "CA":
        raise untraceable(f"reshape in the order {order!r} cannot be traced.", "Use 'C' or 'F'.")
    dims = shape_of(shape)
    free = [k for k, d in enumerate(dims) if not isinstance(d, Number) and d == -1]
    if len(free) > 1:
        raise ValueError("can only specify one unknown dimension")
    size = product(x.dims)
    text = f"cannot reshape array of size {hint_of(size)} into shape {shape_text(dims)}"
    if free:
        rest = product(d for k, d in enumerate(dims) if k != free[0])
        known = UNKNOWN not in (hint_of(size), hint_of(rest))
        if known and (hint_of(rest) == 0 or hint_of(size) % hint_of(rest)):
            raise ValueError(text)
        missing: Dim = size if is_one(rest) else size // rest
        if not is_one(rest) and same_dim(rest, size):
            missing = 1
        for d in x.dims:  # the length of an axis that stays
            others = [e for e in x.dims if e is not d]
            if len(others) == x.ndim - 1 and same_dim(product(others), rest):
                missing = d
        dims = tuple(_settled(missing) if k == free[0] else d for k, d in enumerate(dims))
    elif not _same_size(x.dims, dims):
        require_equal(size, product(dims), lambda: ValueError(text))
    if len(dims) == x.ndim and all(map(same_dim, dims, x.dims)):
        return Traced(x.root, x.dims, x._path, False, x.contiguous)
    step = Reshape(dims, x.dims)
    if is_in_order(x):
        made = x.part(step, dims, True)
    else:
        made = array(step.read(x.variable), dims)
        x.root.may_be_seen_by(made.root, RESHAPED)
    if copy:
        return copied(made)
    return made


def _same_size(one: Sequence[Dim], other: Sequence[Dim]) -> bool:
    """Return whether two shapes have the same lengths, but for 1s and their order."""
    rest = [d for d in one if not is_one(d)]
    for dim in other:
        if is_one(dim):
            continue
        for k, each in enumerate(rest):
            if same_dim(dim, each):
                del rest[k]
                break
        else:
            return False
    return not rest


def _reshape_method(x: Traced, *shape: Any, order: str = "C", copy: Any = None) -> Traced:
    given = shape[0] if len(shape) == 1 else shape
    return reshape(x, given, order, copy=copy)


HANDLERS.methods["reshape"] = _reshape_method


@implements(np.ravel, method="ravel")
def ravel(a: Any, order: str = "C") -> Traced:
    return reshape(a, (-1,), "C" if order == "K" else order)


HANDLERS.methods["flatten"] = lambda x, order="C": copied(
    array(_flat_of(x, order), (product(x.dims),))
)


def _flat_of(x: Traced, order: str) -> Tensor:
    if order == "F":
        x = transpose(x)
    elif order not in "CA":
        raise untraceable(f"flatten in the order {order!r} cannot be traced.", "Use 'C' or 'F'.")
    return _reshaped(x.variable, (product(x.dims),))


def copied(x: Traced) -> Traced:
    """Return a copy of an array or scalar."""
    contiguous = x.ndim <= 1 or x.contiguous
    return Traced(Root(x.variable), x.dims, (), x.scalar, contiguous)


@implements(np.copy)
def copy_function(a: Any, order: str = "K", subok: bool = False) -> Traced:
    made = copied(as_traced(a))
    made.scalar = False
    made.contiguous = order == "C" or made.contiguous
    return made


def _copy_method(x: Traced, order: str = "C") -> Traced:
    made = copied(x)
    made.contiguous = order == "C" or made.contiguous
    return made


HANDLERS.methods["copy"] = _copy_method
HANDLERS.methods["__copy__"] = _copy_method
HANDLERS.methods["__deepcopy__"] = lambda x, memo: _copy_method(x)


@implements(np.broadcast_to)
def broadcast_to(a: Any, shape: Any, subok: bool = False) -> Traced:
    x = as_traced(a)
    dims = shape_of(shape)
    if len(dims) < x.ndim:
        raise ValueError("input operand has more dimensions than allowed by the axis remapping")
    error = (
        "operands could not be broadcast together with remapped shapes [original->remapped]: "
        f"{shape_text(x.dims)}  and requested shape {shape_text(dims)}"
    )
    variable = expanded(x, dims, error)
    made = T.alloc(variable, *[dim_variable(d) for d in dims]) if dims else variable
    result = array(fitted(made, dims), dims)
    result.root.readonly = "assignment destination is read-only"
    return result


@implements(np.broadcast_arrays)
def broadcast_arrays(*args: Any, subok: bool = False) -> tuple[Traced, ...]:
    arrays = [as_traced(a) for a in args]
    dims, _ = broadcast_dims([x.dims for x in arrays])
    return tuple(broadcast_to(x, dims) for x in arrays)


@implements(np.atleast_1d)
def atleast_1d(*arrays: Any) -> Any:
    made = [x if (x := _unscalar(a)).ndim else reshape(x, (1,)) for a in arrays]
    return made[0] if len(made) == 1 else tuple(made)


@implements(np.atleast_2d)
def atleast_2d(*arrays: Any) -> Any:
    made = []
    for a in arrays:
        x = _unscalar(a)
        if x.ndim == 0:
            x = reshape(x, (1, 1))
        elif x.ndim == 1:
            x = x[None, :]
        made.append(x)
    return made[0] if len(made) == 1 else tuple(made)


# --- joining --------------------------------------------------------------------------------------


def _joined_dtype(arrays: Sequence[Traced], dtype: Any) -> np.dtype[Any]:
    return np.result_type(*[x.dtype for x in arrays]) if dtype is None else np.dtype(dtype)


@implements(np.concatenate, np.concat)
def concatenate(
    arrays: Any, axis: Any = 0, out: Any = None, *, dtype: Any = None, casting: str = "same_kind"
) -> Traced:
    if type(arrays) is Traced:
        arrays = list(arrays)
    parts = [as_traced(a) for a in arrays]
    if not parts:
        raise ValueError("need at least one array to concatenate")
    if axis is None:
        parts, axis = [ravel(p) for p in parts], 0
    ndim = parts[0].ndim
    if ndim == 0:
        raise ValueError("zero-dimensional arrays cannot be concatenated")
    for k, part in enumerate(parts):
        if part.ndim != ndim:
            raise ValueError(
                "all the input array dimensions except for the concatenation axis must match "
                f"exactly, but along dimension 0, the array at index 0 has {ndim} dimension(s) and "
                f"the array at index {k} has {part.ndim} dimension(s)"
            )
    axis = axis_of(axis, ndim)
    made = _joined_dtype(parts, dtype)
    dims: list[Dim] = list(parts[0].dims)
    for k, part in enumerate(parts[1:], 1):
        for j in range(ndim):
            if j != axis:
                dims[j] = require_equal(
                    dims[j],
                    part.dims[j],
                    lambda k=k, j=j, part=part: ValueError(  # type: ignore[misc]
                        "all the input array dimensions except for the concatenation axis must "
                        f"match exactly, but along dimension {j}, the array at index 0 has size "
                        f"{hint_of(parts[0].dims[j])} and the array at index {k} has size "
                        f"{hint_of(part.dims[j])}"
                    ),
                )
    dims[axis] = sum((p.dims[axis] for p in parts[1:]), parts[0].dims[axis])
    dims[axis] = _settled(dims[axis])
    variables = []
    for p in parts:
        variable = converted(p.variable, made)
        variables.append(_loosened(variable, dims, axis))
    joined = variables[0] if len(variables) == 1 else T.join(axis, *variables)
    in_order = common_order(parts, ndim)
    result = array(fitted(joined, dims), dims, False, in_order)
    if out is not None:
        return _stored(result, out)
    return result


def _loosened(variable: Tensor, dims: Sequence[Dim], axis: int) -> Tensor:
    """Return a variable whose other axes are as those of the result."""
    wrong = [
        k for k, b in enumerate(variable.type.broadcastable)
        if b and k != axis and not is_one(dims[k])
    ]  # fmt: skip
    right = [
        k for k, b in enumerate(variable.type.broadcastable)
        if not b and k != axis and is_one(dims[k])
    ]  # fmt: skip
    variable = T.unbroadcast(variable, *wrong) if wrong else variable
    return T.addbroadcast(variable, *right) if right else variable


def _stored(result: Traced, out: Any) -> Any:
    if isinstance(out, tuple):
        (out,) = out
    if type(out) is not Traced:
        raise untraceable(
            "An array is changed in place that the function did not make, and is no argument.",
            "Pass it to the function as an argument.",
        )
    if not np.can_cast(result.dtype, out.dtype, "same_kind"):
        raise TypeError(
            f"Cannot cast output from {result.dtype!r} to {out.dtype!r} with casting rule "
            "'same_kind'"
        )
    given = written_value(result, out.dtype)
    write_broadcast(
        out, given, f"output array has shape {shape_text(out.dims)}, not {shape_text(result.dims)}"
    )
    return out


@implements(np.stack)
def stack(
    arrays: Any, axis: int = 0, out: Any = None, *, dtype: Any = None, casting: str = "same_kind"
) -> Traced:
    if type(arrays) is Traced:
        arrays = list(arrays)
    parts = list(arrays)
    if not parts:
        raise ValueError("need at least one array to stack")
    if all(
        isinstance(p, int | float | complex | Number) and not isinstance(p, bool) for p in parts
    ):
        common = result_dtype(*[0 if isinstance(p, Number) and p.kind == "i" else
                                0.0 if isinstance(p, Number) and p.kind == "f" else
                                p for p in parts])  # fmt: skip
        traced = [operand_as(p, common) for p in parts]
    else:
        traced = [as_traced(p) for p in parts]
    ndim = traced[0].ndim
    for each in traced[1:]:
        if each.ndim != ndim:
            raise ValueError("all input arrays must have the same shape")
        for a, b in zip(traced[0].dims, each.dims, strict=True):
            require_equal(a, b, lambda: ValueError("all input arrays must have the same shape"))
    axis = axis_of(axis, ndim + 1)
    return concatenate([expand_dims(t, axis) for t in traced], axis, out, dtype=dtype)


@implements(np.vstack)
def vstack(tup: Any, *, dtype: Any = None, casting: str = "same_kind") -> Traced:
    return concatenate([atleast_2d(t) for t in tup], 0, dtype=dtype)


@implements(np.hstack)
def hstack(tup: Any, *, dtype: Any = None, casting: str = "same_kind") -> Traced:
    arrays = [atleast_1d(t) for t in tup]
    return concatenate(arrays, 0 if arrays and arrays[0].ndim == 1 else 1, dtype=dtype)


@implements(np.column_stack)
def column_stack(tup: Any) -> Traced:
    return concatenate([x if (x := as_traced(t)).ndim >= 2 else x[:, None] for t in tup], 1)


@implements(np.append)
def append(arr: Any, values: Any, axis: Any = None) -> Traced:
    if axis is None:
        arr, values, axis = ravel(arr), ravel(values), 0
    return concatenate((arr, values), axis)


@implements(np.array_split)
def array_split(ary: Any, indices_or_sections: Any, axis: int = 0) -> list[Traced]:
    x = as_traced(ary)
    axis = axis_of(axis, x.ndim)
    if isinstance(indices_or_sections, int | np.integer | Number):
        length = operator.index(x.dims[axis])
        count = operator.index(indices_or_sections)
        each, extra = divmod(length, count)
        sizes = [each + 1] * extra + [each] * (count - extra)
        points = list(np.cumsum([0, *sizes]))
        bounds = [(int(a), int(b)) for a, b in itertools.pairwise(points)]
    else:
        inner = [number_of(i) for i in indices_or_sections]
        starts, stops = [0, *inner], [*inner, None]
        bounds = list(zip(starts, stops, strict=True))  # type: ignore[arg-type]
    before = (slice(None),) * axis
    return [x[(*before, slice(a, b))] for a, b in bounds]


@implements(np.split)
def split(ary: Any, indices_or_sections: Any, axis: int = 0) -> list[Traced]:
    x = as_traced(ary)
    axis = axis_of(axis, x.ndim)
    length, hint = x.dims[axis], hint_of(x.dims[axis])
    if isinstance(indices_or_sections, int | np.integer | Number) and hint is not UNKNOWN:
        count = operator.index(indices_or_sections)
        if hint % count:
            raise ValueError("array split does not result in an equal division")
        if type(length) is Number and hint // count > 1:
            demand(f"{length.text} % {count} == 0")
            each = length // count
            demand(f"{each.text} > 1")
            return [_section(x, axis, k * each, each) for k in range(count)]
    return array_split(x, indices_or_sections, axis)


def _section(x: Traced, axis: int, start: Dim, length: Dim) -> Traced:
    """Return the view of so many rows of an axis."""
    key = [slice(None)] * x.ndim
    key[axis] = slice(start, start + length)
    dims = (*x.dims[:axis], length, *x.dims[axis + 1 :])
    return x.part(Index(tuple(key)), dims, x.contiguous if axis == 0 else False)


@implements(getattr(np, "unstack", None))
def unstack(x: Any, /, *, axis: int = 0) -> tuple[Traced, ...]:
    x = as_traced(x)
    if not x.ndim:
        raise ValueError("Input array must be at least 1-d.")
    return tuple(moveaxis(x, axis, 0))


@implements(np.flip)
def flip(m: Any, axis: Any = None) -> Traced:
    x = as_traced(m)
    axes = axes_of(axis, x.ndim)
    return x[tuple(slice(None, None, -1) if k in axes else slice(None) for k in range(x.ndim))]


implements(np.flipud)(lambda m: flip(m, 0))
implements(np.fliplr)(lambda m: flip(m, 1))


@implements(np.rot90)
def rot90(m: Any, k: int = 1, axes: Any = (0, 1)) -> Traced:
    x = as_traced(m)
    k %= 4
    if k == 0:
        return x[...]
    if k == 2:
        return flip(flip(x, axes[0]), axes[1])
    if k == 1:
        return swapaxes(flip(x, axes[1]), *axes)
    return flip(swapaxes(x, *axes), axes[1])


@implements(np.roll)
def roll(a: Any, shift: Any, axis: Any = None) -> Traced:
    x = as_traced(a)
    if axis is None:
        return reshape(roll(ravel(x), shift, 0), x.dims)
    axes = axis if isinstance(axis, tuple | list) else (axis,)
    shifts = shift if isinstance(shift, tuple | list) else (shift,) * len(axes)
    if len(axes) == 1 and len(shifts) > 1:
        axes = axes * len(shifts)
    for s, each in zip(shifts, axes, strict=True):
        k = axis_of(each, x.ndim)
        length = x.dims[k]
        if is_one(length):
            continue
        before = (slice(None),) * k
        if hint_of(length) == 0:
            demand(f"{number_text(length)} == 0")
            continue
        n = (
            number_of(s) % length
            if not isinstance(s, int) or s < 0 or isinstance(length, int)
            else s
        )
        if isinstance(n, int) and isinstance(length, int) and n == 0:
            continue
        if isinstance(n, int) and isinstance(length, Number):
            n = number_of(s) % length
        start = length - n
        moved = concatenate((x[(*before, slice(start, None))], x[(*before, slice(None, start))]), k)
        dims = tuple(x.dims)
        x = array(fitted(moved.variable, dims), dims)
    return copied(x)


@implements(np.tile)
def tile(A: Any, reps: Any) -> Traced:
    x = as_traced(A)
    counts = list(reps) if isinstance(reps, tuple | list) else [reps]
    ndim = max(x.ndim, len(counts))
    counts = [1] * (ndim - len(counts)) + [number_of(c) for c in counts]
    dims = [1] * (ndim - x.ndim) + list(x.dims)
    order = [item for k in range(ndim) for item in (1, dims[k])]
    wide = reshape(x, tuple(order))
    full = tuple(item for k in range(ndim) for item in (counts[k], dims[k]))
    result = reshape(
        broadcast_to(wide, full), tuple(c * d for c, d in zip(counts, dims, strict=True))
    )
    return copied(result)


@implements(np.repeat, method="repeat")
def repeat(a: Any, repeats: Any, axis: Any = None) -> Traced:
    x = as_traced(a)
    if axis is None:
        x, axis = ravel(x), 0
    axis = axis_of(axis, x.ndim)
    if isinstance(repeats, int | np.integer | Number):
        wide = expand_dims(x, axis + 1)
        count = number_of(repeats)
        full = (*x.dims[: axis + 1], count, *x.dims[axis + 1 :])
        dims = list(x.dims)
        dims[axis] = dims[axis] * count
        return copied(reshape(broadcast_to(wide, full), tuple(dims)))
    counts = as_traced(repeats)
    ones = [is_one(d) and k != axis for k, d in enumerate(x.dims)]
    (made,) = numpy_call("repeat", [x.variable, counts.variable], [(x.dtype, ones)], axis=axis)
    dims = [d if k != axis else Number("i", lambda: made.shape[axis]) for k, d in enumerate(x.dims)]
    return array(made, dims)


@implements(np.pad)
def pad(array_: Any, pad_width: Any, mode: str = "constant", **kwargs: Any) -> Traced:
    x = as_traced(array_)
    widths = np.broadcast_to(np.asarray(pad_width), (x.ndim, 2)).tolist()
    if mode == "constant":
        given = kwargs.pop("constant_values", 0)
        if type(given) in (Traced, Number):
            values = [[given, given]] * x.ndim
        else:
            values = np.broadcast_to(np.asarray(given), (x.ndim, 2)).tolist()
        for k, ((before, after), (low, high)) in enumerate(zip(widths, values, strict=True)):
            parts = [x]
            for width, value, first in ((before, low, True), (after, high, False)):
                if width:
                    shape = (*x.dims[:k], width, *x.dims[k + 1 :])
                    filled = full(shape, value, x.dtype)
                    parts = [filled, *parts] if first else [*parts, filled]
            x = concatenate(parts, k) if len(parts) > 1 else x
        return copied(x)
    for k, (before, after) in enumerate(widths):
        if not before and not after:
            continue
        if mode not in _PADDED_ROWS or kwargs:
            raise Unhandled
        length = x.dims[k]
        if hint_of(length) == 0:
            raise ValueError(
                f"can't extend empty axis {k} using modes other than 'constant' or 'empty'"
            )
        rows = _PADDED_ROWS[mode](arange(-before, length + after), length)
        x = x[(*[slice(None)] * k, rows)]
    return copied(x)


#: {a mode of ``numpy.pad``: (places, as if the axis went on, its length) -> rows}
_PADDED_ROWS: dict[str, Callable[..., Any]] = {
    "edge": lambda places, n: np.minimum(np.maximum(places, 0), n - 1),
    "wrap": np.remainder,
    "symmetric": lambda places, n: _there_and_back(places, 2 * n - 1, 2 * n),
    "reflect": lambda places, n: _there_and_back(places, 2 * n - 2, np.maximum(2 * n - 2, 1)),
}


def _there_and_back(places: Any, ends: Any, period: Any) -> Any:
    """Return the rows at places of an axis that goes on backwards from its end."""
    inside = np.remainder(places, period)
    return np.minimum(inside, ends - inside)


# --- new arrays -----------------------------------------------------------------------------------


def full(shape: Any, fill_value: Any, dtype: Any = None, order: str = "C", **_: Any) -> Traced:
    """Return ``numpy.full`` as a traced array."""
    dims = shape_of(shape)
    if any(type(d) is not Number and d < 0 for d in dims):
        raise ValueError("negative dimensions are not allowed")
    value = as_traced(fill_value)
    if dtype is None:
        dtype = result_dtype(fill_value) if type(fill_value) is not Traced else value.dtype
        if isinstance(fill_value, Number):
            dtype = {"i": np.int64, "f": np.float64, "b": np.bool, "c": np.complex128}[
                fill_value.kind
            ]
    dtype = np.dtype(dtype)
    check_dtype(dtype)
    given = written_value(fill_value, dtype)
    variable = expanded(given, dims, f"could not broadcast {shape_text(given.dims)}")
    if dims:
        variable = T.alloc(variable, *[dim_variable(d) for d in dims])
    return array(fitted(variable, dims), dims, False, order == "C" or len(dims) <= 1)


def _like(model: Any, value: Any, dtype: Any, shape: Any, order: str) -> Traced:
    x = as_traced(model)
    made = full(x.dims if shape is None else shape, value, x.dtype if dtype is None else dtype)
    made.contiguous = order == "C" or x.contiguous
    return made


@implements(np.zeros_like)
def zeros_like(
    a: Any, dtype: Any = None, order: str = "K", subok: bool = True, shape: Any = None, **_: Any
) -> Traced:
    return _like(a, 0, dtype, shape, order)


@implements(np.empty_like)
def empty_like(
    prototype: Any, dtype: Any = None, order: str = "K", subok: bool = True, shape: Any = None,
    **_: Any,
) -> Traced:  # fmt: skip
    return _like(prototype, 0, dtype, shape, order)


@implements(np.ones_like)
def ones_like(
    a: Any, dtype: Any = None, order: str = "K", subok: bool = True, shape: Any = None, **_: Any
) -> Traced:
    return _like(a, 1, dtype, shape, order)


@implements(np.full_like)
def full_like(
    a: Any, fill_value: Any, dtype: Any = None, order: str = "K", subok: bool = True,
    shape: Any = None, **_: Any,
) -> Traced:  # fmt: skip
    return _like(a, fill_value, dtype, shape, order)


# --- conversion -----------------------------------------------------------------------------------


def astype(
    x: Any, dtype: Any, order: str = "K", casting: str = "unsafe", subok: bool = True,
    copy: bool = True, **_: Any,
) -> Traced:  # fmt: skip
    """Return ``x.astype(dtype)``."""
    x = as_traced(x)
    made = np.dtype(dtype)
    check_dtype(made)
    if casting != "unsafe" and not np.can_cast(x.dtype, made, casting):  # type: ignore[arg-type]
        raise TypeError(
            f"Cannot cast array data from {x.dtype!r} to {made!r} according to the rule {casting!r}"
        )
    if x.dtype == made:
        return x if not copy else copied(x)
    result = array(converted(x.variable, made), x.dims, x.scalar, x.ndim <= 1 or x.contiguous)
    return result


HANDLERS.methods["astype"] = astype
implements(np.astype)(lambda x, dtype, /, *, copy=True, device=None: astype(x, dtype, copy=copy))


def asarray(
    a: Any, dtype: Any = None, order: Any = None, *, copy: Any = None, device: Any = None,
    like: Any = None,
) -> Traced:  # fmt: skip
    """Return ``numpy.asarray``: the array itself if it has the dtype."""
    x = as_traced(a)
    if x.scalar or type(a) is not Traced:
        x = Traced(Root(x.variable), x.dims, (), False)
    if dtype is not None and x.dtype != np.dtype(dtype):
        return astype(x, dtype)
    return copied(x) if copy else x


def make_array(
    object: Any, dtype: Any = None, *, copy: Any = True, order: str = "K", subok: bool = False,
    ndmin: int = 0, ndmax: int = 0, like: Any = None,
) -> Traced:  # fmt: skip
    """Return ``numpy.array``: a new array."""
    x = asarray(object, dtype)
    x = copied(x) if copy else x
    x.contiguous = order == "C" or x.contiguous
    while x.ndim < ndmin:
        x = x[None]
    return x


implements(np.ascontiguousarray)(lambda a, dtype=None, *, like=None: _contiguous(a, dtype))


def _contiguous(a: Any, dtype: Any) -> Traced:
    x = atleast_1d(asarray(a, dtype))
    if is_in_order(x):
        return x
    made = Traced(Root(x.variable), x.dims, (), False, True)
    x.root.may_be_seen_by(made.root, RESHAPED)
    return made


# --- parts ----------------------------------------------------------------------------------------


class _Real(View):
    """The real or imaginary part of a complex array."""

    def __init__(self, real: bool) -> None:
        self._is_real = real

    def read(self, x: Tensor) -> Tensor:
        return T.real(x) if self._is_real else T.imag(x)

    def write(self, x: Tensor, value: Tensor) -> Tensor:
        other = T.imag(x) if self._is_real else T.real(x)
        parts = (value, other) if self._is_real else (other, value)
        made = T.complex(*parts)
        return made if made.type.dtype == x.type.dtype else T.cast(made, x.type.dtype)


@implements(np.real, method="real")
def real(val: Any) -> Any:
    if type(val) is Number:
        return val.real
    x = as_traced(val)
    if x.dtype.kind != "c":
        return x
    if x.scalar:
        return array(T.real(x.variable), (), True)
    return x.part(_Real(True), x.dims)


@implements(np.imag, method="imag")
def imag(val: Any) -> Any:
    if type(val) is Number:
        return val.imag
    x = as_traced(val)
    if x.dtype.kind != "c":
        made = _like(x, 0, None, None, "K")
        made.scalar = x.scalar
        made.root.readonly = "assignment destination is read-only"
        return made
    if x.scalar:
        return array(T.imag(x.variable), (), True)
    return x.part(_Real(False), x.dims)


class _Diagonal(View):
    """A diagonal, which numpy does not let programs write."""

    writeable = False

    def __init__(self, offset: int, axis1: int, axis2: int) -> None:
        self._offset, self._axes = offset, (axis1, axis2)

    def read(self, x: Tensor) -> Tensor:
        return T.diagonal(x, self._offset, *self._axes)


@implements(np.diagonal, method="diagonal")
def diagonal(a: Any, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Traced:
    x = as_traced(a)
    if x.ndim < 2:
        raise ValueError("diag requires an array of at least two dimensions")
    one, two = axis_of(axis1, x.ndim), axis_of(axis2, x.ndim)
    rows, columns = x.dims[one], x.dims[two]
    hints = hint_of(rows), hint_of(columns)
    offset = operator.index(offset)
    known = None
    if not any(type(d) is Number for d in (rows, columns)):
        known = max(0, min(rows + min(offset, 0), columns - max(offset, 0)))
    step = _Diagonal(offset, one, two)
    made = step.read(x.variable)
    length: Dim
    if known is not None:
        length = known
    elif UNKNOWN in hints:
        length = Number("i", lambda: made.shape[made.ndim - 1])
    elif same_dim(rows, columns) and offset == 0:
        length = rows
    else:
        length = Number(
            "i",
            lambda: made.shape[made.ndim - 1],
            max(0, min(hints[0] + min(offset, 0), hints[1] - max(offset, 0))),
            f"max(0, min({number_text(rows)} + {min(offset, 0)}, "
            f"{number_text(columns)} - {max(offset, 0)}))",
            True,
        )
    rest = [d for k, d in enumerate(x.dims) if k not in (one, two)]
    dims = (*rest, 1 if made.type.broadcastable[-1] else length)
    if tuple(made.type.broadcastable) != tuple(map(is_one, dims)):
        return array(fitted(made, dims), dims)
    return x.part(step, dims)


@implements(np.fill_diagonal)
def fill_diagonal(a: Any, val: Any, wrap: bool = False) -> None:
    if type(a) is not Traced:
        raise untraceable("fill_diagonal changes an array that is no argument.", "Pass it.")
    if a.ndim != 2 or wrap:
        raise untraceable(
            "fill_diagonal of other arrays than matrices, or with wrap=True, cannot be traced.",
            "Write a loop, or an assignment with index arrays.",
        )
    value = written_value(val, a.dtype)
    if value.ndim:
        raise untraceable("fill_diagonal with an array cannot be traced.", "a[i, i] = values")
    rows, columns = (T.arange(a.variable.shape[k]) for k in (0, 1))
    mask = T.eq(rows.dimshuffle(0, "x"), columns.dimshuffle("x", 0))
    made = T.switch(mask, value.variable.dimshuffle("x", "x"), a.variable)
    a.write(T.patternbroadcast(made, a.variable.type.broadcastable))


@implements(np.diag)
def diag(v: Any, k: int = 0) -> Traced:
    x = as_traced(v)
    if x.ndim == 2:
        return copied(diagonal(x, k))
    if x.ndim != 1:
        raise ValueError("Input must be 1- or 2-d.")
    n = x.dims[0]
    size = n + abs(k)
    result = full((size, size), 0, x.dtype)
    rows = arange(n)
    result[rows + max(0, -k), rows + max(0, k)] = x
    return result


def arange(*args: Any, dtype: Any = None, like: Any = None, device: Any = None) -> Traced:
    """Return ``numpy.arange`` as a traced array."""
    start, stop, step = (0, args[0], 1) if len(args) == 1 else (*args, 1)[:3]
    parts = [p if not isinstance(p, bool) else int(p) for p in (start, stop, step)]
    if not any(type(p) in (Traced, Number) for p in parts):
        return constant(np.arange(*parts, dtype=dtype))
    kind = np.dtype(dtype) if dtype is not None else result_dtype(np.dtype(int), *parts)
    if all(_is_integer(p) for p in parts):
        numbers = [number_of(p) for p in parts]
        variable = T.arange(*[dim_variable(n) for n in numbers], dtype="int64")
        hints = [hint_of(n) for n in numbers]
        length: Dim
        if UNKNOWN in hints:
            length = Number("i", lambda: variable.shape[0])
        elif (
            numbers[0] == 0
            and type(numbers[0]) is int
            and type(numbers[2]) is int
            and (numbers[2] == 1 and hints[1] >= 0)
        ):
            length = numbers[1]
        else:
            texts = ", ".join(str(number_text(n)) for n in numbers)
            length = Number(
                "i", lambda: variable.shape[0], len(range(*hints)), f"len(range({texts}))",
                all(n.of_lengths for n in numbers if type(n) is Number),
            )  # fmt: skip
        length = _settled(length)
        return array(fitted(converted(variable, kind), (length,)), (length,))
    traced = [operand_as(p, kind) for p in parts]
    count = T.ceil(T.true_div(
        converted((traced[1].variable - traced[0].variable), "float64"),
        converted(traced[2].variable, "float64"),
    ))  # fmt: skip
    steps = T.arange(T.maximum(T.cast(count, "int64"), 0), dtype="int64")
    delta = (traced[0].variable + traced[2].variable) - traced[0].variable
    values = traced[0].variable + converted(steps, kind) * delta
    return array(values)


def _is_integer(value: Any) -> bool:
    if type(value) is Number:
        return value.kind in "bi"
    if type(value) is Traced:
        return value.dtype.kind in "iu"
    return isinstance(value, int | np.integer)


@implements(np.linspace)
def linspace(
    start: Any, stop: Any, num: Any = 50, endpoint: bool = True, retstep: bool = False,
    dtype: Any = None, axis: int = 0, *, device: Any = None,
) -> Any:  # fmt: skip
    count = number_of(num)
    if any(getattr(as_traced(v), "ndim", 0) for v in (start, stop)) or retstep or axis:
        raise untraceable(
            "numpy.linspace between arrays, and with retstep=, cannot be traced.",
            "Write start + numpy.arange(num) * step.",
        )
    made_dtype = (
        np.result_type(result_dtype(start, stop), np.float64)
        if not any(type(v) is Traced for v in (start, stop))
        else np.result_type(*[v.dtype for v in (start, stop) if type(v) is Traced], 1.0)
    )
    if made_dtype.kind not in "fc":
        made_dtype = np.dtype(float)
    a, b = (operand_as(v, made_dtype) for v in (start, stop))
    div = count - 1 if endpoint else count
    steps = arange(count)
    if hint_of(div) is UNKNOWN:
        raise untraceable("numpy.linspace needs its number of points.", "Pass it as an argument.")
    delta = array(b.variable - a.variable, ())
    if type(div) is Number:
        div = operator.index(div)
    if div > 0:
        step = delta / div
        # as numpy: multiply by the step, unless it vanishes
        made = steps * step + a
    else:
        made = steps * delta + a
    if endpoint and operator.index(count) > 1:
        made[-1] = b
    if dtype is not None:
        if np.dtype(dtype).kind in "iu":
            made = np.floor(made)  # type: ignore[call-overload]
        return astype(made, dtype)
    return made


def eye(N: Any, M: Any = None, k: Any = 0, dtype: Any = float, **_: Any) -> Traced:
    """Return ``numpy.eye`` as a traced array."""
    rows, columns = arange(number_of(N)), arange(number_of(N if M is None else M))
    return astype(rows[:, None] == columns[None, :] - k, dtype)  # type: ignore[operator]


def tri(N: Any, M: Any = None, k: Any = 0, dtype: Any = float, **_: Any) -> Traced:
    """Return ``numpy.tri`` as a traced array."""
    rows, columns = arange(number_of(N)), arange(number_of(N if M is None else M))
    return astype(rows[:, None] >= columns[None, :] - k, dtype)  # type: ignore[operator]


@implements(np.tril)
def tril(m: Any, k: int = 0) -> Traced:
    x = as_traced(m)
    mask = tri(*x.dims[-2:], k=k, dtype=bool)
    return np.where(mask, x, np.zeros(1, x.dtype))  # type: ignore[call-overload, no-any-return]


@implements(np.triu)
def triu(m: Any, k: int = 0) -> Traced:
    x = as_traced(m)
    mask = tri(*x.dims[-2:], k=k - 1, dtype=bool)
    return np.where(mask, np.zeros(1, x.dtype), x)  # type: ignore[call-overload, no-any-return]


@implements(np.meshgrid)
def meshgrid(*xi: Any, copy: bool = True, sparse: bool = False, indexing: str = "xy") -> Any:
    arrays = [ravel(x) for x in xi]
    ndim = len(arrays)
    made = []
    for k, x in enumerate(arrays):
        axis = 1 - k if indexing == "xy" and k < 2 and ndim > 1 else k
        made.append(x[tuple(slice(None) if j == axis else None for j in range(ndim))])
    if not sparse:
        made = [copied(x) for x in broadcast_arrays(*made)]
    return tuple(made)


def result_type_of_weak(number: Any, dtype: np.dtype[Any]) -> np.dtype[Any]:
    """Return the dtype of a Python number beside an array, as NEP 50 says."""
    return np.result_type(dtype, number)


@implements(np.copyto)
def copyto(dst: Any, src: Any, casting: str = "same_kind", where: Any = True) -> None:
    if type(dst) is not Traced:
        raise untraceable("numpy.copyto changes an array that is no argument.", "Pass it.")
    if isinstance(src, int | float | complex) and not isinstance(src, bool):
        src = np.asarray(src, result_type_of_weak(src, dst.dtype))
    value = as_traced(src)
    if not np.can_cast(value.dtype, dst.dtype, casting):  # type: ignore[arg-type]
        raise TypeError(
            f"Cannot cast array data from {value.dtype!r} to {dst.dtype!r} according to the rule "
            f"'{casting}'"
        )
    if where is True:
        dst[...] = value
    else:
        dst[...] = np.where(where, value, dst)  # type: ignore[call-overload]


HANDLERS.methods["fill"] = lambda x, value: x.__setitem__(Ellipsis, value)
HANDLERS.methods["__array_wrap__"] = lambda x, *args: args[0]


@implements(np.shape)
def shape(a: Any) -> tuple[Dim, ...]:
    return as_traced(a).dims


@implements(np.ndim)
def ndim(a: Any) -> int:
    return as_traced(a).ndim


@implements(np.size)
def size(a: Any, axis: Any = None) -> Dim:
    x = as_traced(a)
    return product(x.dims) if axis is None else x.dims[axis]


@implements(np.result_type)
def result_type(*values: Any) -> np.dtype[Any]:
    return result_dtype(*values)


@implements(np.can_cast)
def can_cast(from_: Any, to: Any, casting: Any = "safe") -> bool:
    to = to.dtype if type(to) is Traced else to
    return np.can_cast(from_.dtype if type(from_) is Traced else from_, to, casting)


# --- elements as Python has them ------------------------------------------------------------------

#: ``tolist`` makes so many numbers at most
MOST_ITEMS = 1000


def _tolist(x: Traced) -> Any:
    if not x.ndim:
        return HANDLERS.methods["item"](x)
    count = hint_of(x.size)
    if count is UNKNOWN or count > MOST_ITEMS:
        raise untraceable(
            "ndarray.tolist of an array of many, or of an unknown number of, elements cannot be "
            "traced.",
            "Return the array, and call tolist outside.",
        )
    return [_tolist(row) for row in x]


def _flat(x: Traced) -> Traced:
    if is_in_order(x):
        return reshape(x, (-1,))
    made = reshape(copied(x), (-1,))
    made.root.uncertain = "through flat, and it does not lie in C's order"
    return made


def _view(x: Traced, dtype: Any = None, *more: Any) -> Traced:
    if dtype in (None, np.ndarray, x.dtype) and not more:
        return x[...]
    raise untraceable(
        "ndarray.view with another dtype reads the bytes of an array, which cannot be traced.",
        "Convert the values with astype.",
    )


class Flags:
    """What ``ndarray.flags`` says of a traced array."""

    def __init__(self, x: Traced) -> None:
        self._x = x
        #: whether it lies in Fortran's order, and not in C's: only the order of copies follows it
        self.fnc = False
        self.writeable = not x.root.readonly

    @property
    def c_contiguous(self) -> bool:
        return is_in_order(self._x)

    contiguous = c_contiguous

    def __getitem__(self, name: str) -> Any:
        return getattr(self, name.lower())

    def __getattr__(self, name: str) -> Any:
        raise untraceable(f"ndarray.flags.{name} cannot be traced.", "Leave it out.")


HANDLERS.methods["flags"] = Flags
HANDLERS.methods["tolist"] = _tolist
HANDLERS.methods["flat"] = _flat
HANDLERS.methods["view"] = _view
