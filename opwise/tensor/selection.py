"""Selecting elements by value or by number: nonzero, compress, choose, permutations of rows."""

from __future__ import annotations

import numpy as np

from opwise.errors import ShapeError
from opwise.graph.apply import Apply
from opwise.graph.null import disconnected_type
from opwise.graph.op import Op
from opwise.scalar import dtypes
from opwise.tensor.advanced_subtensor import sum_to, zero_gradient
from opwise.tensor.creation import arange
from opwise.tensor.elemwise import Elemwise, dimshuffle, elemwise, pad_left
from opwise.tensor.shape import flatten
from opwise.tensor.shape import shape as shape_of
from opwise.tensor.subtensor import getitem, take
from opwise.tensor.type import tensor_type
from opwise.tensor.variable import as_tensor_variable

__all__ = [
    "Choose", "Nonzero", "PermuteRowElements", "choose", "compress", "flatnonzero",
    "inverse_permutation", "nonzero", "nonzero_values", "permute_row_elements",
]  # fmt: skip


class Nonzero(Op):
    """The positions of the elements that are not 0: an int64 matrix with a row for each dimension."""

    __props__ = ()

    def make_node(self, a):
        a = as_tensor_variable(a)
        if a.type.ndim == 0:
            raise ValueError("Nonzero only supports non-scalar arrays.")
        return Apply(self, [a], [tensor_type("int64", (False, False)).make_variable()])

    def perform(self, node, inputs, output_storage):
        output_storage[0][0] = np.array(np.nonzero(inputs[0]), dtype=np.int64)

    def infer_shape(self, node, shapes):
        raise ShapeError("the elements that are not 0 must be counted")

    def grad(self, inputs, output_gradients):
        return [zero_gradient(inputs[0])]


_nonzero = Nonzero()


def nonzero(a, return_matrix=False):
    """Return the positions of the elements of ``a`` that are not 0, in C order.

    A tuple of int64 vectors, one for each dimension; return_matrix: these as rows of a matrix.
    """
    matrix = _nonzero(a)
    if return_matrix:
        return matrix
    return tuple(getitem(matrix, d) for d in range(as_tensor_variable(a).type.ndim))


def flatnonzero(a):
    """Return the positions in the flattened ``a`` of the elements that are not 0."""
    a = as_tensor_variable(a)
    if a.type.ndim == 0:
        raise ValueError("Nonzero only supports non-scalar arrays.")
    return nonzero(flatten(a))[0]


def nonzero_values(a):
    """Return the elements of ``a`` that are not 0, in C order, as a vector."""
    a = as_tensor_variable(a)
    return take(flatten(a), flatnonzero(a))


def compress(condition, x, axis=None):
    """Return the parts of ``x`` along ``axis`` for which ``condition``, a vector, is not 0.

    axis: None takes elements of the flattened x.
    """
    return take(x, flatnonzero(condition), axis=axis)


class Choose(Op):
    """For each element of a, the element of the input of that number; inputs (a, choices...).

    A single input after a holds the choices along its first axis. All broadcast. mode: 'raise',
    'wrap' or 'clip' for numbers that are out of range.
    """

    __props__ = ("mode",)

    def __init__(self, mode):
        if mode not in ("raise", "wrap", "clip"):
            raise ValueError(f"choose: the mode must be 'raise', 'wrap' or 'clip', not {mode!r}")
        self.mode = mode

    def make_node(self, a, *choices):
        a, *choices = map(as_tensor_variable, (a, *choices))
        if a.type.dtype not in dtypes.INTEGERS:
            raise TypeError(
                f"choose first argument must have an [u]int* dtype. Got {a.type.dtype}."
            )
        patterns = [c.type.broadcastable for c in choices]
        if len(choices) == 1:
            patterns = [patterns[0][1:]]
        ndim = max(a.type.ndim, *map(len, patterns))
        patterns = [(True,) * (ndim - len(p)) + p for p in (a.type.broadcastable, *patterns)]
        pattern = tuple(all(column) for column in zip(*patterns, strict=True))
        dtype = dtypes.upcast(*(c.type.dtype for c in choices))
        return Apply(self, [a, *choices], [tensor_type(dtype, pattern).make_variable()])

    def perform(self, node, inputs, output_storage):
        a, *choices = inputs
        result = np.choose(a, choices[0] if len(choices) == 1 else choices, mode=self.mode)
        output_storage[0][0] = np.asarray(result, dtype=node.outputs[0].type.numpy_dtype)

    def infer_shape(self, node, shapes):
        a, *choices = shapes
        variables = list(node.inputs)
        if len(choices) == 1:
            choices = [choices[0][1:]]
        patterns = [v.type.broadcastable for v in variables]
        if len(choices) == 1:
            patterns[1] = patterns[1][1:]
        ndim = node.outputs[0].type.ndim
        lengths = []
        for d in range(ndim):
            found = [
                shape[d - ndim]
                for shape, pattern in zip([a, *choices], patterns, strict=True)
                if len(shape) >= ndim - d and not pattern[d - ndim]
            ]
            if len(found) > 1:
                raise ShapeError("which of the inputs of choose broadcasts is not known")
            lengths.append(found[0] if found else elemwise("second")(a, 1))
        return [tuple(lengths)]

    def connection_pattern(self, node):
        return [[False]] + [[True]] * (len(node.inputs) - 1)

    def L_op(self, inputs, outputs, output_gradients):
        (a, *choices), (gz,) = inputs, output_gradients
        count = len(choices) if len(choices) > 1 else shape_of(choices[0])[0]
        if self.mode == "wrap":
            a = a % count
        elif self.mode == "clip":
            a = elemwise("clip")(a, 0, count - 1)
        grads = [
            zero_gradient(c) if c.type.dtype in dtypes.DISCRETE else None for c in choices
        ]
        if len(choices) == 1 and grads[0] is None:
            ndim = gz.type.ndim
            number = dimshuffle(arange(count), (0, *"x" * ndim))
            chosen = elemwise("eq")(pad_left(a, ndim + 1), number)
            whole = elemwise("switch")(chosen, pad_left(gz, ndim + 1), 0)
            # choices may have fewer dimensions than the result: those in between were broadcast
            padded = dimshuffle(
                choices[0],
                (0, *"x" * (ndim + 1 - choices[0].type.ndim), *range(1, choices[0].type.ndim)),
            )
            back = [0, *range(ndim + 2 - choices[0].type.ndim, ndim + 1)]
            grads = [dimshuffle(sum_to(padded, whole), back)]
        elif len(choices) > 1:
            grads = [
                g if g is not None else sum_to(
                    c, elemwise("switch")(elemwise("eq")(a, number), gz, 0)
                )
                for number, (c, g) in enumerate(zip(choices, grads, strict=True))
            ]  # fmt: skip
        return [disconnected_type.make_variable(), *grads]


def choose(a, choices, out=None, mode="raise"):
    """Return, for each element of ``a``, the element of the choice of that number.

    a: integers. choices: a tensor with the choices along its first axis, or a list of tensors; all
    broadcast together. mode: 'raise' an error out of range, 'wrap' around, or 'clip' to the range.
    """
    if out is not None:
        raise ValueError("choose: the argument out is not supported; use what is returned")
    if isinstance(choices, list | tuple) and len(choices) > 1:
        return Choose(mode)(a, *choices)
    if isinstance(choices, list | tuple):
        only = as_tensor_variable(choices[0])
        choices = dimshuffle(only, ("x", *range(only.type.ndim)))
    return Choose(mode)(a, choices)


class PermuteRowElements(Op):
    """Each row of x in the order of the corresponding row of y; inputs (x, y, inverse).

    x and y broadcast to one shape, except along the last axis. inverse: an integer scalar, not 0 to
    apply the inverse of the permutations.
    """

    __props__ = ()

    def make_node(self, x, y, inverse=False):
        x, y = as_tensor_variable(x), as_tensor_variable(y)
        inverse = as_tensor_variable(int(inverse) if isinstance(inverse, bool) else inverse)
        if y.type.dtype not in dtypes.INTEGERS:
            raise TypeError(f"The permutation must be of integers, not {y.type}")
        if inverse.type.ndim != 0 or inverse.type.dtype not in dtypes.INTEGERS:
            raise TypeError(f"inverse must be an integer scalar, not {inverse.type}")
        ndim = max(x.type.ndim, y.type.ndim)
        x, y = pad_left(x, ndim), pad_left(y, ndim)
        pattern = tuple(
            p and q for p, q in zip(x.type.broadcastable, y.type.broadcastable, strict=True)
        )
        return Apply(
            self, [x, y, inverse], [tensor_type(x.type.dtype, pattern).make_variable()]
        )

    def perform(self, node, inputs, output_storage):
        x, y, inverse = inputs
        Elemwise.check_shapes(node, [x, y])
        shape = np.broadcast_shapes(x.shape, y.shape)
        x, y = np.broadcast_to(x, shape), np.broadcast_to(y, shape)
        if inverse:
            y = np.argsort(y, axis=-1)
        output_storage[0][0] = np.take_along_axis(x, y, axis=-1)

    def infer_shape(self, node, shapes):
        x, y, _ = node.inputs
        x_shape, y_shape, _ = shapes
        lengths = [
            m if one else n
            for one, n, m in zip(x.type.broadcastable, x_shape, y_shape, strict=True)
        ]
        return [tuple(lengths)]

    def connection_pattern(self, node):
        return [[True], [False], [False]]

    def L_op(self, inputs, outputs, output_gradients):
        (x, y, inverse), (gz,) = inputs, output_gradients
        if x.type.dtype in dtypes.DISCRETE:
            gx = zero_gradient(x)
        else:
            gx = sum_to(x, _permute(gz, y, elemwise("eq")(inverse, 0).astype("int8")))
        return [gx, disconnected_type.make_variable(), disconnected_type.make_variable()]

    def R_op(self, inputs, eval_points):
        return [None if eval_points[0] is None else self(eval_points[0], *inputs[1:])]


_permute = PermuteRowElements()


def permute_row_elements(x, y, inverse=0):
    """Return each row of ``x`` in the order of the corresponding row of ``y``.

    x and y broadcast, so that a vector y permutes every row. inverse: 1 for the inverse orders.
    """
    return _permute(x, y, inverse)


def inverse_permutation(perm):
    """Return the inverse of each permutation in the last dimension of ``perm``, of its dtype."""
    perm = as_tensor_variable(perm)
    n = getitem(shape_of(perm), -1)
    return permute_row_elements(arange(n, dtype=perm.type.dtype), perm, inverse=1)
