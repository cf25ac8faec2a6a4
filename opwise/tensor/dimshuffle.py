"""DimShuffle: reorders the dimensions of a tensor, drops some and inserts others."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cache
from typing import Any

import numpy as np

from opwise.config import config
from opwise.graph import costs
from opwise.graph.apply import Apply
from opwise.graph.hashing import HashedOnce
from opwise.graph.op import Lengths, Storage, Values
from opwise.graph.variable import Var
from opwise.scalar import dtypes
from opwise.tensor.elemwise import zeros_like
from opwise.tensor.knownvalues import equals_input
from opwise.tensor.type import tensor_type
from opwise.tensor.variable import Tensor, TensorLike, TensorOp, as_tensor_variable, constant

__all__ = ["DimShuffle"]


class DimShuffle(HashedOnce, TensorOp):
    """Reorders, drops and inserts dimensions.

    input_broadcastable: the broadcast pattern of the input. new_order: for each dimension of the
    output, a dimension of the input, or 'x' for a new one of length 1. Only broadcastable
    dimensions can be dropped. The output is a view of the input.
    """

    view_map = {0: [0]}
    flops, traffic = costs.no_flops, costs.nothing

    def __init__(
        self,
        input_broadcastable: tuple[bool, ...],
        new_order: tuple[int | str, ...],
        inplace: bool = True,
    ) -> None:
        self.input_broadcastable = tuple(input_broadcastable)
        self.new_order: tuple[int | str, ...] = tuple(o if o == "x" else int(o) for o in new_order)
        self.inplace = inplace
        ndim = len(self.input_broadcastable)
        for o in self.new_order:
            if isinstance(o, int) and not 0 <= o < ndim:
                raise ValueError(
                    f"new_order[{self.new_order.index(o)}] is {o}, but the input only has {ndim} "
                    f"axes. (DimShuffle of {self.input_broadcastable} by {self.new_order})"
                )
        kept = [o for o in self.new_order if isinstance(o, int)]
        if len(set(kept)) != len(kept):
            raise ValueError(
                f"The same input dimension may not appear twice in the list of output dimensions "
                f"{self.new_order}"
            )
        self.shuffle = kept
        self.drop = [i for i in range(ndim) if i not in kept]
        for i in self.drop:
            if not self.input_broadcastable[i]:
                raise ValueError(
                    f"You cannot drop a non-broadcastable dimension. ({self.input_broadcastable}, "
                    f"{self.new_order}) Dimension {i} may be longer than 1 and is missing from "
                    "the new order: keep it, as x[None, :] does, or remove it by an index or a sum."
                )
        self.augment = [i for i, o in enumerate(self.new_order) if o == "x"]
        self._transpose = tuple(self.shuffle + self.drop)
        self._index = (
            tuple(None if o == "x" else slice(None) for o in self.new_order)
            + (0,) * len(self.drop)
            + (...,)
        )  # with the ellipsis, a single element stays an array
        self._keep_hash()

    def _hashed(self) -> Any:
        return DimShuffle, self.new_order, self.input_broadcastable

    def make_node(self, x: TensorLike) -> Apply:
        x = as_tensor_variable(x)
        if x.type.broadcastable != self.input_broadcastable:
            if len(x.type.broadcastable) != len(self.input_broadcastable):
                raise TypeError(
                    "The number of dimensions and/or broadcastable pattern of the input is "
                    f"incorrect for this op. Expected {self.input_broadcastable}, got "
                    f"{x.type.broadcastable}."
                )
            for mine, its in zip(self.input_broadcastable, x.type.broadcastable, strict=True):
                if mine and not its:
                    raise TypeError(
                        "The broadcastable pattern of the input is incorrect for this op. Expected "
                        f"{self.input_broadcastable}, got {x.type.broadcastable}."
                    )
        pattern = tuple(
            x.type.broadcastable[o] if isinstance(o, int) else True for o in self.new_order
        )
        return Apply(self, [x], [tensor_type(x.type.dtype, pattern).make_variable()])

    def perform(self, node: Apply, inputs: Values, output_storage: Storage) -> None:
        (x,) = inputs
        output_storage[0][0] = x.transpose(self._transpose)[self._index]

    def infer_shape(self, node: Apply, shapes: Sequence[Lengths]) -> Sequence[Lengths]:
        (shape,) = shapes
        one = constant(np.int64(1))
        return [tuple(one if o == "x" else shape[o] for o in self.new_order)]

    def L_op(
        self,
        inputs: Sequence[Tensor],
        outputs: Sequence[Tensor],
        output_gradients: Sequence[Tensor],
    ) -> Sequence[Var]:
        (x,), (gz,) = inputs, output_gradients
        order: list[int | str] = ["x"] * x.type.ndim
        for position, o in enumerate(self.new_order):
            if isinstance(o, int):
                order[o] = position
        gz = as_tensor_variable(gz)
        if gz.type.dtype in dtypes.DISCRETE or x.type.dtype in dtypes.DISCRETE:
            return [zeros_like(x, config.floatX)]
        return [dimshuffle(gz, order)]

    def R_op(self, inputs: Sequence[Tensor], eval_points: Sequence[Var]) -> Sequence[Var]:
        return [None] if eval_points[0] is None else [self(eval_points[0])]

    def __eq__(self, other: object) -> bool:
        return self is other or (
            type(self) is type(other)
            and self.new_order == other.new_order
            and self.input_broadcastable == other.input_broadcastable
        )

    __hash__ = HashedOnce.__hash__

    def __str__(self) -> str:
        prefix = "InplaceDimShuffle" if self.inplace else "DimShuffle"
        return f"{prefix}{{{','.join(map(str, self.new_order))}}}"


@cache
def dimshuffle_op(broadcastable: tuple[bool, ...], order: tuple[int | str, ...]) -> DimShuffle:
    """Return the DimShuffle of a pattern and an order; the same object for equal arguments."""
    return DimShuffle(broadcastable, order)


def dimshuffle(x: Tensor, order: Iterable[int | str]) -> Tensor:
    """Return ``x`` with its dimensions in ``order``; x itself if they are in it already."""
    order = tuple(order)
    if order == tuple(range(x.type.ndim)):
        return x
    return dimshuffle_op(x.type.broadcastable, order)(x)


equals_input(DimShuffle)
