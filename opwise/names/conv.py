"""Functions of Theano's modules on convolutions whose arguments differ from those of opwise's."""

from __future__ import annotations

from typing import Any

from opwise.tensor.conv import functions
from opwise.tensor.conv.older import ConvOp, conv3D, convTransp3D
from opwise.tensor.dimshuffle import dimshuffle
from opwise.tensor.variable import as_tensor_variable


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

    image_shape, filter_shape: as far as known, with None for what is not. border_mode: 'valid' or
    'full'. Other keywords are those of ``ConvOp``.
    """
    image, kernel = (
        functions.checked_shape(name, shape)
        for name, shape in (("image_shape", image_shape), ("filter_shape", filter_shape))
    )
    if None not in (image[1], kernel[1]) and image[1] != kernel[1]:
        raise AssertionError(
            f"images have {image[1]} channels and filters {kernel[1]}: image_shape is "
            f"{tuple(image)}, filter_shape {tuple(kernel)}"
        )
    op = ConvOp(
        image[1:], kernel[2:], kernel[0], image[0], subsample[0], subsample[1], border_mode,
        **kwargs,
    )  # fmt: skip
    return op(input, filters)


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


def computeH(V: Any, W: Any, b: Any, d: Any) -> Any:
    """Return the numbers that ``conv3D`` computes, of arrays."""
    return conv3D(V, W, b, d).eval()


def computeR(W: Any, b: Any, d: Any, H: Any, Rshape: Any = None) -> Any:
    """Return the numbers that ``convTransp3D`` computes, of arrays."""
    return convTransp3D(W, b, d, H, Rshape).eval()
