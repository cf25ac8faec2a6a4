"""Products as users write them: dot, outer, tensordot, and batches of them.

The Ops that they make are in ``opwise.tensor.dot`` and ``opwise.tensor.blas``.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from typing import Any

import numpy as np

from opwise.graph.variable import Variable
from opwise.tensor.assertion import Assert
from opwise.tensor.blas import batched_dot as blas_batched_dot
from opwise.tensor.creation import alloc
from opwise.tensor.dimshuffle import dimshuffle
from opwise.tensor.dot import _dot
from opwise.tensor.elemwise import elemwise
from opwise.tensor.join import join
from opwise.tensor.shape import flatten, patternbroadcast, reshape, squeeze
from opwise.tensor.shape import shape as shape_of
from opwise.tensor.type import TensorType
from opwise.tensor.variable import Tensor, TensorLike, as_tensor_variable

__all__ = ["batched_dot", "batched_tensordot", "cov", "dot", "matmul", "outer", "tensordot"]


def dot(l: TensorLike, r: TensorLike) -> Tensor:  # noqa: E741 (the legacy names of the arguments)
    """Return the product of ``l`` and ``r``, summed over the last dimension of l.

    The second last dimension of r, or its only one, must have the same length; the shape is that of
    l without its last dimension, then that of r without the summed one. The dtype is the upcast of
    both, also for small integers. A factor without dimensions multiplies every element. Other types
    than tensors take part through their own ``__dot__`` and ``__rdot__``.

    Raises TypeError for what cannot become a tensor; at run time ValueError if the lengths differ.
    """
    for one, other, method in ((l, r, "__dot__"), (r, l, "__rdot__")):
        if isinstance(one, Variable) and not isinstance(one.type, TensorType):
            if hasattr(one, method):
                found: Tensor = getattr(one, method)(other)
                if found is not NotImplemented:
                    return found
    x, y = as_tensor_variable(l), as_tensor_variable(r)
    if x.type.ndim == 0 or y.type.ndim == 0:
        return elemwise("mul")(x, y)
    if x.type.ndim > 2 or y.type.ndim > 2:
        return tensordot(x, y, [[x.type.ndim - 1], [max(0, y.type.ndim - 2)]])
    return _dot(x, y)


def matmul(x: TensorLike, y: TensorLike) -> Tensor:
    """Return the product of the last two dimensions of ``x`` and ``y``; the others broadcast.

    It is that of ``numpy.matmul``, and what ``x @ y`` is. Of scalars, vectors and matrices it is
    ``dot``. A vector is a row if it is x, a column if it is y, and has no dimension in the result,
    whose dtype is the upcast of both. A dimension is broadcast if its type says that its length is
    1. At run time AssertionError if lengths that broadcast differ, and what ``dot`` and
    ``batched_dot`` raise.
    """
    if not isinstance(x, Variable) or isinstance(x.type, TensorType):
        if not isinstance(y, Variable) or isinstance(y.type, TensorType):
            return _of_stacks(as_tensor_variable(x), as_tensor_variable(y))
    return dot(x, y)


def _of_stacks(x: Tensor, y: Tensor) -> Tensor:
    if y.type.ndim <= 2:
        return dot(x, y)
    if x.type.ndim <= 1:
        row = _of_stacks(dimshuffle(x, ("x", *range(x.type.ndim))), y)
        return row if not x.type.ndim else dimshuffle(row, _without(row, -2))
    behind = max(x.type.ndim, y.type.ndim) - 2
    own = [(True,) * (behind + 2 - v.type.ndim) + v.type.broadcastable[:-2] for v in (x, y)]
    if all(own[1]):
        return _of_stacks(*_aligned(x, y, behind, keep_y=False))
    if all(own[0]):  # one matrix, times each of those of y
        x, y = _aligned(x, y, behind, keep_x=False)
        return _swapped(dot(_swapped(y), _swapped(x)))
    x, y = _aligned(x, y, behind)
    lengths = [shape_of(x)[d] if y.type.broadcastable[d] else shape_of(y)[d] for d in range(behind)]
    if behind > 1:
        same = [
            elemwise("eq")(shape_of(x)[d], shape_of(y)[d])
            for d in range(behind)
            if x.type.broadcastable[d] == y.type.broadcastable[d]
        ]
        x = Assert("matmul: x and y have dimensions of other lengths before the last two")(x, *same)
    stacks = []
    for v, ones in ((x, own[0]), (y, own[1])):
        if own[0] != own[1] and any(ones):
            v = alloc(v, *lengths, shape_of(v)[-2], shape_of(v)[-1])
        count = reduce(elemwise("mul"), lengths)
        stacks.append(reshape(v, (count, shape_of(v)[-2], shape_of(v)[-1]), ndim=3))
    product = blas_batched_dot(*stacks)
    return reshape(product, (*lengths, shape_of(x)[-2], shape_of(y)[-1]), ndim=behind + 2)


def _aligned(
    x: Tensor, y: Tensor, behind: int, keep_x: bool = True, keep_y: bool = True
) -> list[Tensor]:
    """Return stacks with as many dimensions before the last two, or none for those not kept."""
    made = []
    for v, keep in ((x, keep_x), (y, keep_y)):
        ndim = v.type.ndim
        order = ("x",) * (behind + 2 - ndim), range(ndim)
        made.append(dimshuffle(v, (*order[0], *order[1]) if keep else (ndim - 2, ndim - 1)))
    return made


def _swapped(x: Tensor) -> Tensor:
    *others, row, column = range(x.type.ndim)
    return dimshuffle(x, (*others, column, row))


def _without(x: Tensor, d: int) -> list[int]:
    """Return the order of the dimensions of x but for one."""
    return [k for k in range(x.type.ndim) if k != d % x.type.ndim]


def cov(
    m: TensorLike,
    y: TensorLike | None = None,
    rowvar: bool = True,
    bias: bool = False,
    ddof: int | None = None,
    fweights: Any = None,
    aweights: Any = None,
) -> Tensor:
    """Return the covariance matrix of the variables in the rows of a matrix.

    m: a row for each variable, a column for each observation. y: further variables, as m. rowvar:
    False if the columns hold the variables. bias: divide by the number of observations, not by one
    less. ddof: divide by that number less ``ddof``.

    For n variables the shape is (n, n), but () for a single one if the type of m says so. The dtype
    is the upcast of floatX and that of the mean of m and y. Raises NotImplementedError for weights,
    ValueError if m has fewer than two dimensions, TypeError if y has other dimensions; at run time
    ValueError if m and y have different numbers of observations.
    """
    if fweights is not None or aweights is not None:
        raise NotImplementedError("cov takes no weights: leave out fweights and aweights")
    rows = [as_tensor_variable(each) for each in (m, y) if each is not None]
    if not rowvar:
        rows = [each.T for each in rows]
    x = join(0, *rows) if len(rows) > 1 else rows[0]
    x = x - x.mean(axis=1, keepdims=True)
    count = shape_of(x)[1] - (ddof if ddof is not None else int(not bias))
    return squeeze(dot(x, x.T) * (as_tensor_variable(1) / count))


def outer(x: TensorLike, y: TensorLike) -> Tensor:
    """Return the matrix of all products of an element of ``x`` and one of ``y``, both flattened.

    The shape is (x.size, y.size), the dtype the upcast of both. Raises TypeError for what cannot
    become a tensor.
    """
    x, y = as_tensor_variable(x), as_tensor_variable(y)
    x = x if x.type.ndim == 1 else flatten(x)
    y = y if y.type.ndim == 1 else flatten(y)
    return dot(dimshuffle(x, (0, "x")), dimshuffle(y, ("x", 0)))


def tensordot(a: TensorLike, b: TensorLike, axes: Any = 2) -> Tensor:
    """Return the sum of products of ``a`` and ``b`` over pairs of axes.

    axes: a number n, for the last n axes of a with the first n of b; or two lists of axes (or two
    axes), taken pairwise. The result has the other dimensions of a, then those of b; its dtype is
    the upcast of both. Raises ValueError for axes that do not exist, are named twice or do not
    pair; at run time ValueError if the elements that are summed are not as many in both.
    """
    return _tensordot(a, b, axes, batched=False)


def batched_tensordot(x: TensorLike, y: TensorLike, axes: Any = 2) -> Tensor:
    """Return the tensordot of each element of ``x`` along its first axis with that of ``y``.

    axes: as in tensordot; lists count the first axis and must not name it. The result has the first
    dimension, the others of x, then those of y; its dtype is the upcast of both. Raises ValueError
    for axes that do not exist, are named twice or do not pair, and for the first axis; at run time
    ValueError if the elements that are summed are not as many in both.
    """
    return _tensordot(x, y, axes, batched=True)


def batched_dot(a: TensorLike, b: TensorLike) -> Tensor:
    """Return the dot of each element of ``a`` along its first axis with that of ``b``.

    Elements without dimensions multiply. The result has the first axis, then the shape of the dot
    of two elements; its dtype is the upcast of both. Raises TypeError if a or b has no dimension;
    at run time ValueError or TypeError if lengths differ.
    """
    a, b = as_tensor_variable(a), as_tensor_variable(b)
    for name, v in (("a", a), ("b", b)):
        if v.type.ndim == 0:
            raise TypeError(
                f"{name} must have at least one (batch) axis, but {v} is a scalar: use * or T.dot"
            )
    if a.type.ndim == 1:
        return elemwise("mul")(dimshuffle(a, (0, *"x" * (b.type.ndim - 1))), b)
    if b.type.ndim == 1:
        return elemwise("mul")(a, dimshuffle(b, (0, *"x" * (a.type.ndim - 1))))
    if a.type.ndim > 3 or b.type.ndim > 3:
        return batched_tensordot(a, b, [[a.type.ndim - 1], [max(1, b.type.ndim - 2)]])
    return blas_batched_dot(a, b)


def _tensordot(a: TensorLike, b: TensorLike, axes: Any, batched: bool) -> Tensor:
    """Reorder the axes so that the summed ones are adjacent, merge groups, and multiply once."""
    a, b = as_tensor_variable(a), as_tensor_variable(b)
    a_axes, b_axes = _paired_axes(a, b, axes, batched)
    kept = [0] if batched else []
    a_free = [d for d in range(a.type.ndim) if d not in a_axes + kept]
    b_free = [d for d in range(b.type.ndim) if d not in b_axes + kept]
    a = dimshuffle(a, kept + a_free + a_axes)
    b = dimshuffle(b, kept + b_axes + b_free)
    a_lengths, b_lengths = _lengths(a), _lengths(b)
    a_split, b_split = len(kept + a_free), len(kept + b_axes)
    a_flat = _merged(a, a_lengths, len(kept), a_split)
    b_flat = _merged(b, b_lengths, len(kept), b_split)
    product = (blas_batched_dot if batched else _dot)(a_flat, b_flat)
    if a_flat is a and b_flat is b:
        return product
    pattern = a.type.broadcastable[:a_split] + b.type.broadcastable[b_split:]
    if not pattern:
        return dimshuffle(product, ())
    lengths = a_lengths[:a_split] + b_lengths[b_split:]
    return patternbroadcast(reshape(product, lengths, ndim=len(lengths)), pattern)


def _lengths(x: Tensor) -> list[Tensor]:
    shape = shape_of(x)
    return [shape[d] for d in range(x.type.ndim)]


def _merged(x: Tensor, lengths: Sequence[Tensor], kept: int, split: int) -> Tensor:
    """Return ``x`` with the axes from ``kept`` to ``split`` merged, and those after ``split``."""
    groups = lengths[kept:split], lengths[split:]
    if all(len(group) == 1 for group in groups):
        return x
    merged = [reduce(elemwise("mul"), group) if group else 1 for group in groups]
    sizes = [*lengths[:kept], *merged]
    return reshape(x, sizes, ndim=len(sizes))


def _paired_axes(a: Tensor, b: Tensor, axes: Any, batched: bool) -> Sequence[list[int]]:
    """Return the lists of axes of a and of b that a tensordot sums over; ValueError if wrong."""
    ndims = {"a": a.type.ndim, "b": b.type.ndim}
    if not isinstance(axes, list | tuple | np.ndarray) or (
        isinstance(axes, np.ndarray) and axes.ndim == 0
    ):
        n = int(axes)
        for name, ndim in ndims.items():
            if n + batched > ndim:
                raise ValueError(
                    f"axes can not be larger than the dimension of {name} "
                    f"({name}.ndim={ndim}, axes={n})"
                )
        return list(range(a.type.ndim - n, a.type.ndim)), list(range(batched, batched + n))
    if len(axes) != 2:
        raise ValueError(
            f"Axes should be an integer or a list/tuple of length 2 (axes={axes!r} was provided)"
        )
    pair = [[int(d) for d in np.atleast_1d(one)] for one in axes]
    if len(pair[0]) != len(pair[1]):
        raise ValueError(
            f"Axes elements must have the same length. ({axes!r}) Each axis of a is summed with "
            "one of b."
        )
    result = []
    for i, (given, (name, ndim)) in enumerate(zip(pair, ndims.items(), strict=True)):
        if given and not -ndim <= min(given) <= max(given) < ndim:
            raise ValueError(
                f"axes[{i}] contains dimensions greater than or equal to {name}.ndim "
                f"({name}.ndim={ndim}, max(axes[{i}])={max(given)})."
            )
        given = [d % ndim for d in given]
        if len(set(given)) != len(given):
            raise ValueError(f"axes[{i}] names a dimension twice ({axes!r})")
        if batched and 0 in given:
            raise ValueError(
                f"axes to sum over must not contain the batch axis (axes[{i}]={given})"
            )
        result.append(given)
    return result
