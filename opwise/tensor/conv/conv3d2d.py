"""Convolutions of films, whose images have channels, and diagonals of arrays."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from opwise.graph.apply import Apply
from opwise.graph.null import disconnected_type
from opwise.graph.opmethods import connects, shapes_of
from opwise.scalar import dtypes
from opwise.tensor.conv.geometry import pads
from opwise.tensor.conv.ops import AbstractConv3d
from opwise.tensor.creation import zeros, zeros_like
from opwise.tensor.dimshuffle import dimshuffle
from opwise.tensor.subtensor import set_subtensor
from opwise.tensor.type import tensor_type
from opwise.tensor.variable import Tensor, TensorLike, TensorOp, as_tensor_variable

__all__ = [
    "DiagonalSubtensor",
    "IncDiagonalSubtensor",
    "conv3d",
    "diagonal_subtensor",
    "get_diagonal_subtensor_view",
    "inc_diagonal_subtensor",
]

_MODES = ("valid", "full", "half")


def conv3d(
    signals: TensorLike,
    filters: TensorLike,
    signals_shape: Sequence[Any] | None = None,
    filters_shape: Sequence[Any] | None = None,
    border_mode: Any = "valid",
) -> Tensor:
    """Return the convolution of films with flipped filters.

    signals: (batch, time, channels, rows, columns). filters: (outputs, time, channels, rows,
    columns). The result is (batch, time, outputs, rows, columns) and has the upcast of their
    dtypes. signals_shape, filters_shape: shapes as far as known, with None for what is not.
    border_mode: 'valid', 'full' or 'half', or one of these for time, rows and columns each. Raises
    ValueError for others, TypeError for other numbers of dimensions; ValueError at run time for
    shapes that do not belong together.
    """
    films, kernels = as_tensor_variable(signals), as_tensor_variable(filters)
    modes = (border_mode,) * 3 if isinstance(border_mode, str) else tuple(border_mode)
    if len(modes) != 3 or any(mode not in _MODES for mode in modes):
        raise ValueError(
            f"invalid border mode {border_mode!r}: it must be one of {', '.join(_MODES)}, or one "
            "for time, rows and columns each"
        )
    for name, var in (("signals", films), ("filters", kernels)):
        if var.type.ndim != 5:
            raise TypeError(f"{name} must have 5 dimensions, not {var.type.ndim}")
    order = (0, 2, 1, 3, 4)
    films, kernels = dimshuffle(films, order), dimshuffle(kernels, order)
    shapes = [
        None if shape is None else tuple(shape[i] for i in order)
        for shape in (signals_shape, filters_shape)
    ]
    if len(set(modes)) == 1:
        result = AbstractConv3d(*shapes, modes[0])(films, kernels)
    else:
        border = [pads(mode, kernels.shape[2 + a])[0] for a, mode in enumerate(modes)]
        lengths = [films.shape[2 + a] + 2 * pad for a, pad in enumerate(border)]
        inside = [slice(pad, pad + films.shape[2 + a]) for a, pad in enumerate(border)]
        padded = zeros((films.shape[0], films.shape[1], *lengths), films.type.dtype)
        padded = set_subtensor(padded[(slice(None), slice(None), *inside)], films)
        result = AbstractConv3d(None, shapes[1])(padded, kernels)
    return dimshuffle(result, order)


def get_diagonal_subtensor_view(x: np.ndarray, i0: int, i1: int) -> np.ndarray:
    """Return the diagonals of an array along axes i0 and i1 as a view.

    Element (..., k, ..., j, ...) along these axes is that of x at k + n - 1 - j and j, where n is
    the length of axis i1. The view has the shape and dtype of x, but n - 1 fewer elements along i0.
    Raises NotImplementedError if axis i0 is shorter than i1, IndexError for an axis that does not
    exist.
    """
    i0, i1 = int(i0), int(i1)
    rows, columns = x.shape[i0], x.shape[i1]
    if rows < columns:
        raise NotImplementedError(
            f"diagonals need an axis {i0} at least as long as axis {i1}: the shape is {x.shape}"
        )
    part: list[Any] = [slice(None)] * x.ndim
    part[i0] = slice(max(columns - 1, 0), None)
    view = x[tuple(part)]
    strides = list(view.strides)
    if columns > 1:
        strides[i1] -= strides[i0]
    return np.lib.stride_tricks.as_strided(view, view.shape, strides)


class _Diagonals(TensorOp):
    __props__ = ("inplace",)

    def __init__(self, inplace: bool = False) -> None:
        self.inplace = inplace

    def __str__(self) -> str:
        return f"{type(self).__name__}{'{inplace}' * self.inplace}"

    @staticmethod
    def _axes(i0: Any, i1: Any) -> list[Tensor]:
        axes = [as_tensor_variable(axis) for axis in (i0, i1)]
        for axis in axes:
            if axis.type.ndim or axis.type.dtype not in dtypes.DISCRETE:
                raise TypeError(f"an axis must be an integer, not {axis.type}")
        return axes


class DiagonalSubtensor(_Diagonals):
    """Takes the diagonals of an array along two axes; see ``get_diagonal_subtensor_view``."""

    def __init__(self, inplace: bool = False) -> None:
        super().__init__(inplace)
        if inplace:
            self.view_map = {0: [0]}

    def make_node(self, x: TensorLike, i0: Any, i1: Any) -> Apply:
        x = as_tensor_variable(x)
        type_ = tensor_type(x.type.dtype, (False,) * x.type.ndim)
        return Apply(self, [x, *self._axes(i0, i1)], [type_.make_variable()])

    def perform(self, node: Apply, inputs: Any, output_storage: Any) -> None:
        view = get_diagonal_subtensor_view(*inputs)
        output_storage[0][0] = view if self.inplace else view.copy()

    def grad(self, inputs: Any, output_gradients: Any) -> Any:
        x, i0, i1 = inputs
        gradient = inc_diagonal_subtensor(zeros_like(x), i0, i1, output_gradients[0])
        return [gradient, *(disconnected_type.make_variable() for _ in range(2))]

    connection_pattern = connects(0)


class IncDiagonalSubtensor(_Diagonals):
    """Adds an array to the diagonals of another."""

    def __init__(self, inplace: bool = False) -> None:
        super().__init__(inplace)
        if inplace:
            self.destroy_map = {0: [0]}

    def make_node(self, x: TensorLike, i0: Any, i1: Any, amt: TensorLike) -> Apply:
        x, amt = as_tensor_variable(x), as_tensor_variable(amt)
        return Apply(self, [x, *self._axes(i0, i1), amt], [x.type.make_variable()])

    def perform(self, node: Apply, inputs: Any, output_storage: Any) -> None:
        x, i0, i1, added = inputs
        x = x if self.inplace else x.copy()
        view = get_diagonal_subtensor_view(x, i0, i1)
        if np.broadcast_shapes(view.shape, added.shape) != view.shape:
            raise ValueError(f"diagonals of shape {view.shape} cannot take shape {added.shape}")
        view += added
        output_storage[0][0] = x

    infer_shape = shapes_of(0)

    def grad(self, inputs: Any, output_gradients: Any) -> Any:
        _, i0, i1, _ = inputs
        (g,) = output_gradients
        none = disconnected_type.make_variable
        return [g, none(), none(), diagonal_subtensor(g, i0, i1)]

    connection_pattern = connects(0, 3)


diagonal_subtensor = DiagonalSubtensor()
inc_diagonal_subtensor = IncDiagonalSubtensor()
