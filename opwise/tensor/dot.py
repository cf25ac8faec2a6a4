"""Dot: the product of vectors and matrices, and what the Ops of BLAS share with it.

The functions that users call are in ``opwise.tensor.products``.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import reduce
from typing import Any

import numpy as np

from opwise.graph import costs
from opwise.graph.apply import Apply
from opwise.graph.costs import ArrayShapes
from opwise.graph.op import Lengths, Op, Storage, Values
from opwise.graph.variable import Var
from opwise.scalar import dtypes
from opwise.tensor.dimshuffle import dimshuffle
from opwise.tensor.elemwise import elemwise
from opwise.tensor.shape import patternbroadcast
from opwise.tensor.type import tensor_type
from opwise.tensor.variable import Tensor, TensorLike, TensorOp, as_tensor_variable

__all__ = ["Dot"]


def matched(gradient: Tensor, x: Tensor) -> Tensor:
    """Return a gradient by ``x`` with the broadcast pattern of x."""
    if gradient.type.broadcastable != x.type.broadcastable:
        return patternbroadcast(gradient, x.type.broadcastable)
    return gradient


def numpys_dot(x: np.ndarray, y: np.ndarray) -> Any:
    """Return numpy's product of two arrays of one or two dimensions; 0 times NaN is NaN."""
    # np.dot returns 0 if one of them is a single 0, even if the other one is NaN
    if 1 in (x.size, y.size) and x.shape[-1] == y.shape[0]:
        return np.matmul(x, y)
    return np.dot(x, y)


def product_rule(self: Op, inputs: Sequence[Var], eval_points: Sequence[Var]) -> Sequence[Var]:
    """An ``R_op`` of products of two factors; the result is [None] if no direction is given."""
    (x, y), (dx, dy) = inputs, eval_points
    parts = [self(dx, y)] if dx is not None else []
    if dy is not None:
        parts.append(self(x, dy))
    return [reduce(elemwise("add"), parts) if parts else None]


class Dot(TensorOp):
    """The product of two vectors, of two matrices, or of a matrix and a vector, as in numpy."""

    __props__ = ()
    profile_kind = "product"
    traffic = costs.each_once

    def make_node(self, x: TensorLike, y: TensorLike) -> Apply:
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

    def flops(self, inputs: ArrayShapes, outputs: ArrayShapes) -> int | None:
        """Return the number of multiplications and additions. inputs, outputs: their shapes."""
        result: int = 2 * math.prod(outputs[0]) * inputs[0][-1]
        return result

    def perform(self, node: Apply, inputs: Values, output_storage: Storage) -> None:
        x, y = inputs
        dtype = node.outputs[0].type.numpy_dtype
        output_storage[0][0] = np.asarray(numpys_dot(x, y), dtype=dtype)

    def infer_shape(self, node: Apply, shapes: Sequence[Lengths]) -> Sequence[Lengths]:
        x, y = shapes
        return [x[:-1] + y[1:]]

    def L_op(
        self,
        inputs: Sequence[Tensor],
        outputs: Sequence[Tensor],
        output_gradients: Sequence[Tensor],
    ) -> Sequence[Var]:
        (x, y), (gz,) = inputs, output_gradients
        if gz.type.ndim == 0:
            gx, gy = gz * y, gz * x
        elif x.type.ndim == 1:
            gx, gy = _dot(gz, y.T), _outer(x.T, gz)
        elif y.type.ndim == 1:
            gx, gy = _outer(gz, y.T), _dot(x.T, gz)
        else:
            gx, gy = _dot(gz, y.T), _dot(x.T, gz)
        return [matched(gx, x), matched(gy, y)]

    R_op = product_rule

    def __str__(self) -> str:
        return "dot"


_dot = Dot()


def _outer(x: Tensor, y: Tensor) -> Tensor:
    """Return the outer product of two vectors."""
    return _dot(dimshuffle(x, (0, "x")), dimshuffle(y, ("x", 0)))
