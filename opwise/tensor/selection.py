"""Selecting elements by value or by number: nonzero, compress, choose, permutations of rows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from opwise.graph.apply import Apply
from opwise.graph.null import disconnected_type
from opwise.graph.op import Lengths, Storage, Values
from opwise.graph.opmethods import connects, linear_in_first
from opwise.graph.variable import Var
from opwise.scalar import dtypes
from opwise.tensor.advanced_subtensor import sum_to, zero_gradient
from opwise.tensor.creation import arange
from opwise.tensor.dimshuffle import dimshuffle
from opwise.tensor.elemwise import cast, elemwise, pad_left
from opwise.tensor.shape import flatten
from opwise.tensor.shape import shape as shape_of
from opwise.tensor.subtensor import getitem, take
from opwise.tensor.type import tensor_type
from opwise.tensor.variable import Tensor, TensorLike, TensorOp, as_tensor_variable

__all__ = [
    "Choose", "Nonzero", "PermuteRowElements", "choose", "flatnonzero", "inverse_permutation",
    "nonzero", "nonzero_values", "permute_row_elements",
]  # fmt: skip


class Nonzero(TensorOp):
    """The positions of the elements that are not 0: an int64 matrix, a row for each dimension."""

    __props__ = ()

    def make_node(self, a: TensorLike) -> Apply:
        a = as_tensor_variable(a)
        if a.type.ndim == 0:
            raise ValueError("Nonzero only supports non-scalar arrays.")
        return Apply(self, [a], [tensor_type("int64", (False, False)).make_variable()])

    def perform(self, node: Apply, inputs: Values, output_storage: Storage) -> None:
        output_storage[0][0] = np.array(np.nonzero(inputs[0]), dtype=np.int64)

    def grad(self, inputs: Sequence[Tensor], output_gradients: Sequence[Tensor]) -> Sequence[Var]:
        return [zero_gradient(inputs[0])]


_nonzero = Nonzero()


def nonzero(a: TensorLike, return_matrix: bool = False) -> Tensor | tuple[Tensor, ...]:
    """Return the positions of the elements of ``a`` that are not 0, in C order.

    The result is a tuple of int64 vectors, one for each dimension, with an entry for each such
    element; return_matrix: an int64 matrix with these as rows. Raises ValueError if a is 0-d.
    """
    matrix = _nonzero(a)
    if return_matrix:
        return matrix
    return tuple(getitem(matrix, d) for d in range(as_tensor_variable(a).type.ndim))


def flatnonzero(a: TensorLike) -> Tensor:
    """Return the positions in the flattened ``a`` of the elements that are not 0, an int64 vector.

    Raises ValueError if a is 0-d.
    """
    a = as_tensor_variable(a)
    if a.type.ndim == 0:
        raise ValueError("Nonzero only supports non-scalar arrays.")
    return nonzero(flatten(a))[0]


def nonzero_values(a: TensorLike) -> Tensor:
    """Return the elements of ``a`` that are not 0, in C order, as a vector of its dtype.

    Raises ValueError if a is 0-d.
    """
    a = as_tensor_variable(a)
    return take(flatten(a), flatnonzero(a))


def compress(condition: TensorLike, x: TensorLike, axis: int | None = None) -> Tensor:
    """Return the slices of ``x`` along ``axis`` for which ``condition``, a vector, is not 0.

    The shape is that of x with as many elements along the axis as are chosen; the dtype is that of
    x. axis: None selects elements of the flattened x. A condition shorter than the axis leaves out
    the rest. Raises ValueError if the axis is out of range or condition is 0-d; at run time
    IndexError if a condition beyond the axis is not 0.
    """
    return take(x, flatnonzero(condition), axis=axis)


class Choose(TensorOp):
    """For each element of a, the element of the input of that number; inputs (a, choices...).

    A single input after a holds the choices along its first axis. All broadcast. mode: 'raise',
    'wrap' or 'clip' for numbers that are out of range.
    """

    __props__ = ("mode",)

    def __init__(self, mode: Any) -> None:
        if mode not in ("raise", "wrap", "clip"):
            raise ValueError(f"choose: the mode must be 'raise', 'wrap' or 'clip', not {mode!r}")
        self.mode = mode

    def make_node(self, a: TensorLike, *given: TensorLike) -> Apply:
        a, *choices = map(as_tensor_variable, (a, *given))
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

    def perform(self, node: Apply, inputs: Values, output_storage: Storage) -> None:
        a, *choices = inputs
        given = choices[0] if len(choices) == 1 else choices
        if a.dtype == np.uint64:  # which numpy does not take: numbers out of range stay so
            n = np.uint64(len(given))
            a = (a % n if self.mode == "wrap" and n else np.minimum(a, n)).astype(np.int64)
        result = np.choose(a, given, mode=self.mode)
        output_storage[0][0] = np.asarray(result, dtype=node.outputs[0].type.numpy_dtype)

    def connection_pattern(self, node: Apply) -> list[list[bool]]:
        return [[False]] + [[True]] * (len(node.inputs) - 1)

    def L_op(
        self,
        inputs: Sequence[Tensor],
        outputs: Sequence[Tensor],
        output_gradients: Sequence[Tensor],
    ) -> Sequence[Var]:
        (a, *choices), (gz,) = inputs, output_gradients
        if len(choices) > 1:
            a = self._in_range(a, len(choices))
            grads = [
                self._part(c, elemwise("eq")(a, number), gz) for number, c in enumerate(choices)
            ]
            return [disconnected_type.make_variable(), *grads]
        (c,) = choices
        count = shape_of(c)[0]
        # axis 0 runs over the choices
        ndim = gz.type.ndim
        numbers = dimshuffle(arange(count), (0, *"x" * ndim))
        chosen = elemwise("eq")(pad_left(self._in_range(a, count), ndim + 1), numbers)
        missing = ndim + 1 - c.type.ndim
        padded = dimshuffle(c, (0, *"x" * missing, *range(1, c.type.ndim)))
        gc = self._part(padded, chosen, pad_left(gz, ndim + 1))
        gc = dimshuffle(gc, (0, *range(1 + missing, ndim + 1)))
        return [disconnected_type.make_variable(), gc]

    def _in_range(self, a: Tensor, count: Any) -> Tensor:
        """Return ``a`` with numbers that are out of range clipped or wrapped, as the mode says."""
        if self.mode == "wrap":
            result: Tensor = a % count
            return result
        return elemwise("clip")(a, 0, count - 1) if self.mode == "clip" else a

    @staticmethod
    def _part(choice: Tensor, chosen: Tensor, gz: Tensor) -> Tensor:
        """Return the gradient by a choice: that of the result where the choice was taken."""
        if choice.type.dtype in dtypes.DISCRETE:
            return zero_gradient(choice)
        return sum_to(choice, elemwise("switch")(chosen, gz, 0))


def choose(a: TensorLike, choices: TensorLike, out: None = None, mode: str = "raise") -> Tensor:
    """Return, for each element of ``a``, the element of the choice of that number.

    a: integers, from 0 on. choices: a list of tensors, or a tensor with the choices along its first
    axis. The shape is that to which a and the choices broadcast, the dtype the upcast of the
    choices. mode: 'raise' an error for numbers out of range, 'wrap' or 'clip' them. out: has to be
    None.

    Raises TypeError if a is not of integers, ValueError for another mode, for out and for an empty
    list; at run time ValueError if a number is out of range or shapes do not broadcast.
    """
    if out is not None:
        raise ValueError("choose: the argument out is not supported; use the result")
    if isinstance(choices, list | tuple) and len(choices) > 1:
        return Choose(mode)(a, *choices)
    if isinstance(choices, list | tuple):
        if not choices:
            raise ValueError("choose: there is nothing to choose from, the list is empty")
        only = as_tensor_variable(choices[0])
        choices = dimshuffle(only, ("x", *range(only.type.ndim)))
    return Choose(mode)(a, choices)


class PermuteRowElements(TensorOp):
    """Each row of x in the order of the corresponding row of y; inputs (x, y, inverse).

    x and y broadcast to one shape, except along the last axis. inverse: an integer scalar: 1 to
    apply the inverse permutations, 0 for those given.
    """

    __props__ = ()

    def make_node(self, x: TensorLike, y: TensorLike, inverse: TensorLike = False) -> Apply:
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
        return Apply(self, [x, y, inverse], [tensor_type(x.type.dtype, pattern).make_variable()])

    def perform(self, node: Apply, inputs: Values, output_storage: Storage) -> None:
        x, y, inverse = inputs
        for d, (n, m) in enumerate(zip(x.shape, y.shape, strict=True)):
            if n != m and not any(v.type.broadcastable[d] for v in node.inputs[:2]):
                raise ValueError(f"Dimension mismatch: {x.shape} and {y.shape} in dimension {d}")
        shape = np.broadcast_shapes(x.shape, y.shape)
        x, y = np.broadcast_to(x, shape), np.broadcast_to(y, shape)
        if inverse:
            y = np.argsort(y, axis=-1)
        output_storage[0][0] = np.take_along_axis(x, y, axis=-1)

    def infer_shape(self, node: Apply, shapes: Sequence[Lengths]) -> Sequence[Lengths]:
        pattern = node.inputs[0].type.broadcastable
        lengths = [m if one else n for one, n, m in zip(pattern, *shapes[:2], strict=True)]
        return [tuple(lengths)]

    connection_pattern = connects(0)

    def L_op(
        self,
        inputs: Sequence[Tensor],
        outputs: Sequence[Tensor],
        output_gradients: Sequence[Tensor],
    ) -> Sequence[Var]:
        (x, y, inverse), (gz,) = inputs, output_gradients
        if x.type.dtype in dtypes.DISCRETE:
            gx = zero_gradient(x)
        else:
            gx = sum_to(x, _permute(gz, y, cast(elemwise("eq")(inverse, 0), "int8")))
        return [gx, disconnected_type.make_variable(), disconnected_type.make_variable()]

    R_op = linear_in_first


_permute = PermuteRowElements()


def permute_row_elements(x: TensorLike, y: TensorLike, inverse: Any = 0) -> Tensor:
    """Return each row of ``x`` in the order of the corresponding row of ``y``, of the dtype of x.

    y: integers. x and y broadcast but for the last dimension, whose lengths are equal; the shape is
    that to which they do, so that a vector y permutes every row. inverse: 1 for the inverse orders.

    Raises TypeError if y is not of integers or inverse is not a 0-d integer; at run time ValueError
    if the shapes do not fit, IndexError if an element of y is out of range.
    """
    return _permute(x, y, inverse)


def inverse_permutation(perm: TensorLike) -> Tensor:
    """Return the inverse of each permutation along the last dimension of ``perm``.

    The shape and dtype are those of perm, integers from 0 on. Raises TypeError for other dtypes.
    What is not a permutation raises no error: the result is then the order that sorts it.
    """
    perm = as_tensor_variable(perm)
    n = getitem(shape_of(perm), -1)
    return permute_row_elements(arange(n, dtype=perm.type.dtype), perm, inverse=1)
