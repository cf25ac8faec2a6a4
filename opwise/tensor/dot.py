"""Products of vectors and matrices, and what is made of them: outer, tensordot, batched products.

The Ops that call BLAS are in ``opwise.tensor.blas``.
"""

from __future__ import annotations

import math
from functools import reduce

import numpy as np

from opwise.graph import costs
from opwise.graph.apply import Apply
from opwise.graph.op import Op
from opwise.graph.variable import Variable
from opwise.scalar import dtypes
from opwise.tensor.elemwise import dimshuffle, elemwise
from opwise.tensor.shape import flatten, patternbroadcast, reshape
from opwise.tensor.shape import shape as shape_of
from opwise.tensor.type import TensorType, tensor_type
from opwise.tensor.variable import as_tensor_variable

__all__ = ["Dot", "batched_dot", "batched_tensordot", "dot", "outer", "tensordot"]


def matched(gradient, x):
    """Return a gradient by ``x`` with the broadcast pattern of x."""
    if gradient.type.broadcastable != x.type.broadcastable:
        return patternbroadcast(gradient, x.type.broadcastable)
    return gradient


def numpys_dot(x, y):
    """Return numpy's product of two arrays of one or two dimensions; 0 times NaN is NaN."""
    # where one of them is a single 0, np.dot does not look at the other
    if 1 in (x.size, y.size) and x.shape[-1] == y.shape[0]:
        return np.matmul(x, y)
    return np.dot(x, y)


class Dot(Op):
    """The product of two vectors, of two matrices, or of a matrix and a vector, as in numpy."""

    __props__ = ()
    profile_kind = "product"
    traffic = costs.each_once

    def make_node(self, x, y):
        x, y = as_tensor_variable(x), as_tensor_variable(y)
        for i, v in enumerate((x, y)):
            if v.type.ndim not in (1, 2):
                raise TypeError(
                    f"theano.tensor.Dot: input {i} (0-indexed) must have ndim of 1 or 2, "
                    f"{v.type.ndim} given. Consider calling theano.tensor.dot instead."
                )
        pattern = x.type.broadcastable[:-1] + y.type.broadcastable[1:]
        dtype = dtypes.upcast(x.type.dtype, y.type.dtype)
        return Apply(self, [x, y], [tensor_type(dtype, pattern).make_variable()])

    def flops(self, inputs, outputs):
        """Return the multiplications and additions, by the shapes of inputs and outputs."""
        return 2 * math.prod(outputs[0]) * inputs[0][-1]

    def perform(self, node, inputs, output_storage):
        x, y = inputs
        dtype = node.outputs[0].type.numpy_dtype
        output_storage[0][0] = np.asarray(numpys_dot(x, y), dtype=dtype)

    def infer_shape(self, node, shapes):
        x, y = shapes
        return [x[:-1] + y[1:]]

    def L_op(self, inputs, outputs, output_gradients):
        (x, y), (gz,) = inputs, output_gradients
        if gz.type.ndim == 0:
            gx, gy = gz * y, gz * x
        elif x.type.ndim == 1:
            gx, gy = dot(gz, y.T), outer(x.T, gz)
        elif y.type.ndim == 1:
            gx, gy = outer(gz, y.T), dot(x.T, gz)
        else:
            gx, gy = dot(gz, y.T), dot(x.T, gz)
        return [matched(gx, x), matched(gy, y)]

    def R_op(self, inputs, eval_points):
        return [product_rule(self, inputs, eval_points)]

    def __str__(self):
        return "dot"


_dot = Dot()


def product_rule(op, factors, eval_points):
    """Return the derivative of a product of two in a direction; None where that is not given."""
    (x, y), (dx, dy) = factors, eval_points
    parts = [op(dx, y)] if dx is not None else []
    if dy is not None:
        parts.append(op(x, dy))
    return reduce(elemwise("add"), parts) if parts else None


def dot(l, r):  # noqa: E741 (the legacy names of the arguments)
    """Return the product of ``l`` and ``r``, summed over the last dimension of l.

    The second last dimension of r, or its only one, must have the same length. A factor without
    dimensions multiplies every element. Other types than tensors take part through their own
    ``__dot__`` and ``__rdot__``.
    """
    for one, other, method in ((l, r, "__dot__"), (r, l, "__rdot__")):
        if isinstance(one, Variable) and not isinstance(one.type, TensorType):
            if hasattr(one, method):
                result = getattr(one, method)(other)
                if result is not NotImplemented:
                    return result
    x, y = as_tensor_variable(l), as_tensor_variable(r)
    if x.type.ndim == 0 or y.type.ndim == 0:
        return elemwise("mul")(x, y)
    if x.type.ndim > 2 or y.type.ndim > 2:
        return tensordot(x, y, [[x.type.ndim - 1], [max(0, y.type.ndim - 2)]])
    return _dot(x, y)


def outer(x, y):
    """Return the matrix of all products of an element of ``x`` and one of ``y``, both flattened."""
    x, y = as_tensor_variable(x), as_tensor_variable(y)
    x = x if x.type.ndim == 1 else flatten(x)
    y = y if y.type.ndim == 1 else flatten(y)
    return dot(dimshuffle(x, (0, "x")), dimshuffle(y, ("x", 0)))


def tensordot(a, b, axes=2):
    """Return the sum of products of ``a`` and ``b`` over pairs of axes.

    axes: a number n, for the last n axes of a with the first n of b; or two lists of axes (or two
    axes), taken pairwise. The result has the other axes of a, then those of b. ValueError where the
    axes do not exist.
    """
    return _tensordot(a, b, axes, batched=False)


def batched_tensordot(x, y, axes=2):
    """Return the tensordot of each element of ``x`` along its first axis with that of ``y``.

    axes: as in tensordot; lists count the first axis and must not name it.
    """
    return _tensordot(x, y, axes, batched=True)


def batched_dot(a, b):
    """Return the dot of each element of ``a`` along its first axis with that of ``b``.

    TypeError where one has no dimension. Elements without dimensions multiply.
    """
    from opwise.tensor.blas import batched_dot as blas_batched_dot

    a, b = as_tensor_variable(a), as_tensor_variable(b)
    for name, v in (("a", a), ("b", b)):
        if v.type.ndim == 0:
            raise TypeError(
                f"{name} must have at least one (batch) axis, but {v} is a scalar: use * or T.dot"
            )
    if a.type.ndim == 1:
        return dimshuffle(a, (0, *"x" * (b.type.ndim - 1))) * b
    if b.type.ndim == 1:
        return a * dimshuffle(b, (0, *"x" * (a.type.ndim - 1)))
    if a.type.ndim > 3 or b.type.ndim > 3:
        return batched_tensordot(a, b, [[a.type.ndim - 1], [max(1, b.type.ndim - 2)]])
    return blas_batched_dot(a, b)


def _tensordot(a, b, axes, batched):
    """Reorder the axes so that those summed over meet, merge each group, and take one product."""
    from opwise.tensor.blas import batched_dot as blas_batched_dot

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


def _lengths(x):
    shape = shape_of(x)
    return [shape[d] for d in range(x.type.ndim)]


def _merged(x, lengths, kept, split):
    """Return ``x`` with the axes from ``kept`` to ``split`` merged into one, those after too."""
    groups = lengths[kept:split], lengths[split:]
    if all(len(group) == 1 for group in groups):
        return x
    sizes = [reduce(elemwise("mul"), group) if group else 1 for group in groups]
    sizes = lengths[:kept] + sizes
    return reshape(x, sizes, ndim=len(sizes))


def _paired_axes(a, b, axes, batched):
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
