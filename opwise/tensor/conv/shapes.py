"""The shapes of convolutions' images, kernels and results from each other, and checks of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from opwise.config import config
from opwise.errors import NotScalarConstantError
from opwise.tensor.assertion import Assert
from opwise.tensor.conv.geometry import (
    Geometry,
    border_along,
    checked_border_mode,
    output_length,
    pads,
)
from opwise.tensor.elemwise import elemwise
from opwise.tensor.knownvalues import get_scalar_constant_value
from opwise.tensor.variable import Tensor, as_tensor_variable

__all__ = [
    "assert_conv_shape",
    "assert_shape",
    "border_mode_to_pad",
    "check_conv_gradinputs_shape",
    "get_conv_gradinputs_shape",
    "get_conv_gradinputs_shape_1axis",
    "get_conv_gradweights_shape",
    "get_conv_gradweights_shape_1axis",
    "get_conv_output_shape",
    "get_conv_shape_1axis",
]


def get_conv_output_shape(
    image_shape: Sequence[Any],
    kernel_shape: Sequence[Any],
    border_mode: Any,
    subsample: Sequence[Any],
    filter_dilation: Sequence[Any] | None = None,
) -> tuple[Any, ...]:
    """Return the shape of a convolution's result; numbers, variables, or None for the unknown.

    image_shape: (batch, channels, *lengths). kernel_shape: (outputs, ..., *lengths). The result is
    (batch, outputs, *lengths). border_mode, subsample, filter_dilation: as for ``conv2d``. Raises
    ValueError for another border mode; lengths are not checked.
    """
    n = len(image_shape) - 2
    dilation = (1,) * n if filter_dilation is None else tuple(filter_dilation)
    geometry = Geometry(checked_border_mode(border_mode, n), tuple(subsample), dilation)
    lengths = geometry.output(image_shape[2:], kernel_shape[-n:])
    return (image_shape[0], kernel_shape[0], *lengths)


def get_conv_shape_1axis(
    image_shape: Any, kernel_shape: Any, border_mode: Any, subsample: Any, dilation: Any = 1
) -> Any:
    """Return the length of a convolution's result along one axis, or None if it is unknown.

    It is a number, or a 0-d variable if an argument is one. border_mode: 'valid', 'full', 'half', a
    number of zeros or a pair of them. Raises ValueError for another border mode; the shape is not
    checked.
    """
    return output_length(image_shape, kernel_shape, _border(border_mode), subsample, dilation)


def _border(mode: Any) -> Any:
    """Return the border of one axis, checked; None for None."""
    if mode is None:
        return None
    return border_along(checked_border_mode(mode if isinstance(mode, str) else (mode,), 1), 0)


def _borders(mode: Any, n: int) -> list[Any]:
    checked = checked_border_mode(mode, n)
    return [border_along(checked, axis) for axis in range(n)]


def get_conv_gradweights_shape(
    image_shape: Sequence[Any],
    top_shape: Sequence[Any],
    border_mode: Any,
    subsample: Sequence[Any],
    filter_dilation: Sequence[Any] | None = None,
    num_groups: int = 1,
    unshared: bool = False,
) -> tuple[Any, ...]:
    """Return the shape of the kernels for which an image gives a result of ``top_shape``.

    Lengths along axes with subsample, and with border_mode 'half', are None: several lengths of
    kernels give the same result. As in Theano, the first entry is the second of top_shape divided
    by num_groups, and the channels are all of those of the image. With unshared, the lengths of
    top_shape follow the first entry. Raises ValueError for another border mode, and unless all
    arguments have as many axes.
    """
    n = len(subsample)
    dilation = (1,) * n if filter_dilation is None else tuple(filter_dilation)
    channels, outputs = image_shape[1], top_shape[1]
    if num_groups > 1:
        outputs = outputs // num_groups
    numbers = zip(image_shape[2:], top_shape[2:], _borders(border_mode, n), subsample, dilation,
                  strict=True)  # fmt: skip
    lengths = [get_conv_gradweights_shape_1axis(*each) for each in numbers]
    places = tuple(top_shape[2:]) if unshared else ()
    return (outputs, *places, channels, *lengths)


def get_conv_gradweights_shape_1axis(
    image_shape: Any, top_shape: Any, border_mode: Any, subsample: Any, dilation: Any
) -> Any:
    """Return the length of a kernel along one axis, or None if it is not determined.

    It is a number, or a 0-d variable if an argument is one. border_mode: as for
    ``get_conv_shape_1axis``. Raises ValueError for another border mode; the shape is not checked.
    """
    if None in (image_shape, top_shape, border_mode, subsample, dilation):
        return None
    if subsample != 1 or border_mode == "half":
        return None
    if border_mode == "full":
        reach = top_shape - image_shape
    else:
        before, behind = pads(_border(border_mode), 1)
        reach = image_shape + before + behind - top_shape
    return (reach if dilation == 1 else reach // dilation) + 1


def get_conv_gradinputs_shape(
    kernel_shape: Sequence[Any],
    top_shape: Sequence[Any],
    border_mode: Any,
    subsample: Sequence[Any],
    filter_dilation: Sequence[Any] | None = None,
    num_groups: int = 1,
) -> tuple[Any, ...]:
    """Return the shape of the image for which kernels give a result of ``top_shape``.

    Lengths along axes with subsample are None: several lengths of images give the same result.
    Raises ValueError for another border mode, and unless all arguments have as many axes.
    """
    n = len(top_shape) - 2
    dilation = (1,) * n if filter_dilation is None else tuple(filter_dilation)
    channels = kernel_shape[1]
    if num_groups > 1:
        channels = channels * num_groups
    numbers = zip(kernel_shape[-n:], top_shape[2:], _borders(border_mode, n), subsample, dilation,
                  strict=True)  # fmt: skip
    return (top_shape[0], channels, *(get_conv_gradinputs_shape_1axis(*each) for each in numbers))


def get_conv_gradinputs_shape_1axis(
    kernel_shape: Any, top_shape: Any, border_mode: Any, subsample: Any, dilation: Any
) -> Any:
    """Return the length of an image along one axis, or None if it is not determined.

    It is a number, or a 0-d variable if an argument is one. border_mode: as for
    ``get_conv_shape_1axis``. Raises ValueError for another border mode; the shape is not checked.
    """
    if None in (kernel_shape, top_shape, border_mode, subsample, dilation) or subsample != 1:
        return None
    reach = (kernel_shape - 1) * dilation + 1
    before, behind = pads(_border(border_mode), reach)
    return top_shape + reach - 1 - before - behind


def check_conv_gradinputs_shape(
    image_shape: Sequence[Any],
    kernel_shape: Sequence[Any],
    output_shape: Sequence[Any],
    border_mode: Any,
    subsample: Sequence[Any],
    filter_dilation: Sequence[Any] | None = None,
) -> bool:
    """Return whether images and kernels may give a result of ``output_shape``.

    What is None or a variable that is no constant may be anything. False if the shapes have
    different numbers of axes. Raises ValueError for another border mode.
    """
    n = len(image_shape) - 2
    dilation = (1,) * n if filter_dilation is None else filter_dilation
    lengths = {len(kernel_shape) - 2, len(output_shape) - 2, len(subsample), len(dilation)}
    if lengths != {n}:
        return False
    expected = get_conv_output_shape(image_shape, kernel_shape, border_mode, subsample, dilation)
    return all(map(_may_be_equal, output_shape, expected))


def _may_be_equal(a: Any, b: Any) -> bool:
    if a is None or b is None:
        return True
    try:
        return int(get_scalar_constant_value(a)) == int(get_scalar_constant_value(b))
    except NotScalarConstantError:
        return True


def assert_conv_shape(shape: Sequence[Any]) -> tuple[Any, ...]:
    """Return a shape whose variables are checked when they are computed.

    The first two entries must be 0 or more, the others 1 or more. Raises ValueError for constants
    that are not; AssertionError, when it runs, for variables that are not.
    """
    checked = []
    for axis, length in enumerate(shape):
        least = 0 if axis < 2 else 1
        said = f"The convolution would produce an invalid shape (dim[{axis}] < {least})."
        try:
            if get_scalar_constant_value(length) < least:
                raise ValueError(f"{said} It is {length}, in the shape {tuple(shape)}.")
            checked.append(length)
        except NotScalarConstantError:
            length = as_tensor_variable(length)
            checked.append(Assert(said)(length, elemwise("ge")(length, least)))
    return tuple(checked)


def assert_shape(
    x: Tensor, expected_shape: Sequence[Any] | None, msg: str = "Unexpected shape."
) -> Tensor:
    """Return ``x``, and with the flag ``conv.assert_shape`` a check of its shape.

    expected_shape: lengths, with None for what may be anything; they may be variables. The result
    has the dtype of x. Raises AssertionError when it runs if x has another shape, IndexError if it
    has fewer dimensions.
    """
    if expected_shape is None or not config.conv.assert_shape:
        return x
    conditions = [
        elemwise("eq")(x.shape[axis], length)
        for axis, length in enumerate(expected_shape)
        if length is not None
    ]
    checked: Tensor = Assert(msg)(x, *conditions) if conditions else x
    return checked


def border_mode_to_pad(mode: Any, convdim: int, kshp: Sequence[Any]) -> tuple[tuple[Any, Any], ...]:
    """Return the zeros before and behind an image along each axis: a pair for each of ``convdim``.

    mode: as for ``conv2d``. kshp: the lengths of the kernel, the last dimensions of its shape.
    Raises ValueError for another mode.
    """
    ones = (1,) * convdim
    return tuple(Geometry(checked_border_mode(mode, convdim), ones, ones).pads(kshp))
