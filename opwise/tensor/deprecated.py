"""Ops that Theano kept for old programs; the functions ``mean`` and ``tile`` replace them."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np

from opwise.graph.apply import Apply
from opwise.graph.op import Lengths, Op, Storage, Values
from opwise.graph.variable import Var
from opwise.tensor.elemwise import cast, elemwise
from opwise.tensor.type import tensor_type
from opwise.tensor.variable import Tensor, TensorLike, TensorOp, as_tensor_variable


class Mean(TensorOp):
    """The mean along one axis, or of all elements (default), as float64.

    axis: an integer, or a list of one. ``theano.tensor.mean`` takes any axes and keeps the dtype.
    """

    __props__ = ("axis",)

    def __init__(self, axis: Any = None) -> None:
        self.axis = None if axis is None else tuple(int(a) for a in np.atleast_1d(axis))
        if self.axis is not None and len(self.axis) != 1:
            raise AssertionError(f"Mean takes one axis or None, got {self.axis}")

    def __str__(self) -> str:
        return "Mean" if self.axis is None else f"Mean{{{self.axis[0]}}}"

    def _kept(self, ndim: int) -> list[Any]:
        """Return the dimensions that the result has."""
        if self.axis is None:
            return []
        return [k for k in range(ndim) if k != self.axis[0] % ndim]

    def make_node(self, x: TensorLike) -> Apply:
        x = as_tensor_variable(x)
        if self.axis is not None and not -x.type.ndim <= self.axis[0] < x.type.ndim:
            raise ValueError(f"Mean along axis {self.axis[0]} of {x.type.ndim} dimensions")
        pattern = tuple(x.type.broadcastable[k] for k in self._kept(x.type.ndim))
        return Apply(self, [x], [tensor_type("float64", pattern).make_variable()])

    def perform(self, node: Apply, inputs: Values, output_storage: Storage) -> None:
        axis = None if self.axis is None else self.axis[0]
        output_storage[0][0] = np.asarray(np.mean(inputs[0], dtype="float64", axis=axis))

    def infer_shape(self, node: Apply, shapes: Sequence[Lengths]) -> Sequence[Lengths]:
        return [tuple(shapes[0][k] for k in self._kept(len(shapes[0])))]

    def grad(self, inputs: Sequence[Tensor], output_gradients: Sequence[Tensor]) -> Sequence[Var]:
        (x,), (g,) = inputs, output_gradients
        kept = self._kept(x.type.ndim)
        count = x.size if self.axis is None else x.shape[self.axis[0]]
        pattern = [kept.index(k) if k in kept else "x" for k in range(x.type.ndim)]
        share = (g / cast(count, "float64")).dimshuffle(pattern)
        return [cast(elemwise("second")(x, share), _float_of(x))]


def _float_of(x: Tensor) -> str:
    """Return the dtype of a gradient with respect to ``x``."""
    return x.type.dtype if x.type.dtype.startswith(("float", "complex")) else "float64"


class Tile(TensorOp):
    """The first input repeated as the second, a vector of ``ndim`` integers, says.

    ``theano.tensor.tile`` has a gradient; this Op has none.
    """

    __props__ = ("ndim",)

    def __init__(self, ndim: int) -> None:
        self.ndim = ndim

    def __str__(self) -> str:
        return f"Tile{{ndim={self.ndim}}}"

    def make_node(self, x: TensorLike, reps: TensorLike) -> Apply:
        warnings.warn("Tile op is deprecated, use tile function instead.", stacklevel=3)
        x, reps = as_tensor_variable(x), as_tensor_variable(reps)
        output = tensor_type(x.type.dtype, (False,) * self.ndim).make_variable()
        return Apply(self, [x, reps], [output])

    def perform(self, node: Apply, inputs: Values, output_storage: Storage) -> None:
        x, reps = inputs
        tiled = np.tile(x, reps)
        if tiled.ndim != self.ndim:
            raise ValueError(
                f"Tile repeats {x.ndim} dimensions {len(reps)} times: the result has {tiled.ndim} "
                f"dimensions, not {self.ndim}. Make it with Tile({tiled.ndim})."
            )
        output_storage[0][0] = tiled.copy() if np.may_share_memory(tiled, x) else tiled

    def infer_shape(self, node: Apply, shapes: Sequence[Lengths]) -> Sequence[Lengths]:
        reps: Var = node.inputs[1]
        if len(shapes[0]) != self.ndim:
            return [None]
        return [tuple(shapes[0][k] * cast(reps[k], "int64") for k in range(self.ndim))]

    def grad(self, inputs: Sequence[Tensor], output_gradients: Sequence[Tensor]) -> Sequence[Var]:
        raise NotImplementedError("Tile has no gradient: use theano.tensor.tile.")


class Default(Op):
    """The first input, or the second one if the value of the first is None."""

    view_map = {0: [0]}
    __props__ = ()
    accepts_none = True

    def make_node(self, x: TensorLike, default: TensorLike) -> Apply:
        x, default = as_tensor_variable(x), as_tensor_variable(default)
        if x.type != default.type:
            raise TypeError(
                f"Both default() arguments must have same type, got {x.type} and {default.type}"
            )
        return Apply(self, [x, default], [default.type()])

    def perform(self, node: Apply, inputs: Values, output_storage: Storage) -> None:
        x, default = inputs
        output_storage[0][0] = default.copy() if x is None else x


default = setdefault = Default()
