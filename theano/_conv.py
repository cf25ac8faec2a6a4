"""Functions of Theano's modules on convolutions whose arguments differ from those of opwise's."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from opwise.tensor.conv import functions
from opwise.tensor.conv.geometry import (
    Geometry,
    border_along,
    checked_border_mode,
    output_length,
)
from opwise.tensor.dimshuffle import dimshuffle
from opwise.tensor.variable import as_tensor_variable

#: keywords of Theano's oldest convolutions, by which it chose among implementations
_HINTS = {
    "unroll_batch", "unroll_kern", "unroll_patch", "openmp", "version", "verbose", "dx", "dy",
    "output_mode", "bsize", "nkern", "direction_hint",
}  # fmt: skip


def conv2d(
    input: Any,
    filters: Any,
    input_shape: Any = None,
    filter_shape: Any = None,
    border_mode: Any = "valid",
    subsample: Any = (1, 1),
    filter_flip: bool = True,
    filter_dilation: Any = (1, 1),
    num_groups: int = 1,
    unshared: bool = False,
) -> Any:
    """Return ``theano.tensor.nnet.conv2d``, without image_shape among the arguments."""
    return functions.conv2d(
        input, filters, input_shape, filter_shape, border_mode, subsample, filter_flip,
        filter_dilation=filter_dilation, num_groups=num_groups, unshared=unshared,
    )  # fmt: skip


def old_conv2d(
    input: Any,
    filters: Any,
    image_shape: Any = None,
    filter_shape: Any = None,
    border_mode: str = "valid",
    subsample: Any = (1, 1),
    **kwargs: Any,
) -> Any:
    """Return ``theano.tensor.nnet.conv.conv2d``: the convolution of images with flipped filters.

    border_mode: 'valid' or 'full'. Keywords that chose among implementations have no effect.
    """
    if border_mode not in ("valid", "full"):
        raise ValueError(
            f"border_mode must be 'valid' or 'full', not {border_mode!r}: use "
            "theano.tensor.nnet.conv2d"
        )
    unknown = set(kwargs) - _HINTS
    if unknown:
        raise NotImplementedError(f"opwise's convolutions have no {', '.join(sorted(unknown))}")
    return functions.conv2d(input, filters, image_shape, filter_shape, border_mode, subsample)


def signal_conv2d(
    input: Any,
    filters: Any,
    image_shape: Any = None,
    filter_shape: Any = None,
    border_mode: str = "valid",
    subsample: Any = (1, 1),
    **kwargs: Any,
) -> Any:
    """Return ``theano.tensor.signal.conv.conv2d``: each image convolved with each filter.

    input: (rows, columns) or (batch, rows, columns). filters: (rows, columns) or (filters, rows,
    columns). The result has the batch and the filters, where they are, before its rows and columns.
    """
    operands, shapes = [], []
    for name, value, shape in (("input", input, image_shape), ("filters", filters, filter_shape)):
        var = as_tensor_variable(value)
        if var.type.ndim not in (2, 3):
            raise TypeError(f"{name} must have 2 or 3 dimensions, not {var.type.ndim}")
        one = var.type.ndim == 2
        operands.append(dimshuffle(var, ("x", "x", 0, 1) if one else (0, "x", 1, 2)))
        shapes.append(None if shape is None else (1 if one else shape[0], 1, *tuple(shape)[-2:]))
    result = old_conv2d(*operands, *shapes, border_mode, subsample, **kwargs)
    kept = [d for d, of in ((0, input), (1, filters)) if as_tensor_variable(of).type.ndim == 3]
    index = tuple(slice(None) if d in kept else 0 for d in (0, 1))
    return result[index]


def get_conv_output_shape(
    image_shape: Sequence[Any],
    kernel_shape: Sequence[Any],
    border_mode: Any,
    subsample: Sequence[Any],
    filter_dilation: Sequence[Any] | None = None,
) -> tuple[Any, ...]:
    """Return the shape of a convolution's result; numbers, variables, or None for the unknown."""
    n = len(image_shape) - 2
    dilation = (1,) * n if filter_dilation is None else tuple(filter_dilation)
    geometry = Geometry(checked_border_mode(border_mode, n), tuple(subsample), dilation)
    lengths = geometry.output(image_shape[2:], kernel_shape[-n:])
    return (image_shape[0], kernel_shape[0], *lengths)


def get_conv_shape_1axis(
    image_shape: Any, kernel_shape: Any, border_mode: Any, subsample: Any, dilation: Any = 1
) -> Any:
    """Return the length of a convolution's result along one axis, or None if it is unknown."""
    if border_mode is None:
        return None
    border = (
        border_along(checked_border_mode((border_mode,), 1), 0)
        if not isinstance(border_mode, str)
        else border_mode
    )
    return output_length(image_shape, kernel_shape, border, subsample, dilation)


def border_mode_to_pad(mode: Any, convdim: int, kshp: Sequence[Any]) -> tuple[tuple[Any, Any], ...]:
    """Return the zeros before and behind an image along each axis; kshp: lengths of the kernel."""
    ones = (1,) * convdim
    return tuple(Geometry(checked_border_mode(mode, convdim), ones, ones).pads(kshp))
