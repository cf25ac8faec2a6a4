"""Functions that apply convolutions: forward, transposed, separable, causal, upsampling."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from math import gcd
from typing import Any

import numpy as np

from opwise.config import config
from opwise.errors import NotScalarConstantError
from opwise.graph.variable import Constant, Variable
from opwise.tensor.conv.ops import (
    AbstractConv2d,
    AbstractConv2d_gradInputs,
    AbstractConv2d_gradWeights,
    AbstractConv3d,
    AbstractConv3d_gradInputs,
    AbstractConv3d_gradWeights,
)
from opwise.tensor.creation import alloc, arange
from opwise.tensor.dimshuffle import dimshuffle
from opwise.tensor.elemwise import cast
from opwise.tensor.join import concatenate
from opwise.tensor.knownvalues import get_scalar_constant_value
from opwise.tensor.variable import (
    Tensor,
    TensorLike,
    as_tensor_variable,
    constant,
)

__all__ = [
    "bilinear_kernel_1D",
    "bilinear_kernel_2D",
    "bilinear_upsampling",
    "causal_conv1d",
    "conv2d",
    "conv2d_grad_wrt_inputs",
    "conv2d_grad_wrt_weights",
    "conv2d_transpose",
    "conv3d",
    "conv3d_grad_wrt_inputs",
    "conv3d_grad_wrt_weights",
    "frac_bilinear_upsampling",
    "separable_conv2d",
    "separable_conv3d",
]

#: the lengths of a shape: integers, constants, None for what is unknown; some may be variables
Shape = Sequence[Any]


def conv2d(
    input: TensorLike,
    filters: TensorLike,
    input_shape: Shape | None = None,
    filter_shape: Shape | None = None,
    border_mode: Any = "valid",
    subsample: Sequence[int] = (1, 1),
    filter_flip: bool = True,
    image_shape: Shape | None = None,
    filter_dilation: Sequence[int] = (1, 1),
    num_groups: int = 1,
    unshared: bool = False,
    **kwargs: Any,
) -> Tensor:
    """Return the convolution of a batch of images with filters.

    input: (batch, channels, rows, columns). filters: (outputs, channels of a group, rows, columns);
    with unshared, which has weights of their own for each place, (outputs, output rows, output
    columns, channels of a group, rows, columns). The result is (batch, outputs, rows, columns), of
    (image + pads - ((filter - 1) * dilation + 1)) // subsample + 1 rows and columns, and has the
    upcast of their dtypes.

    input_shape, filter_shape: shapes as far as known, with None for what is not: hints, which are
    checked only under the flag ``conv.assert_shape``. No rewrite believes them: to have only the
    middle of a 'full' result computed, give filters whose rows and columns the graph knows, by
    ``specify_shape`` for example. border_mode: 'valid' (no zeros around the image), 'full' (as many
    as a filter reaches), 'half' (half as many), a number, a number for each axis, or pairs of them,
    before and behind. subsample: steps of the filter. filter_flip: False for a correlation.
    filter_dilation: distances between elements of the image that a filter meets. num_groups: of
    channels and outputs that belong together. image_shape: an old name of input_shape. Other
    keywords have no effect.

    Raises TypeError for wrong numbers of dimensions, ValueError for wrong options, and when it
    runs, for shapes that do not belong together.
    """
    if "imshp_logical" in kwargs or "kshp_logical" in kwargs:
        raise ValueError(
            "conv2d has no imshp_logical and kshp_logical any more: use conv2d_transpose to sample "
            "images up"
        )
    if kwargs:
        warnings.warn(f"conv2d does not use {', '.join(kwargs)} any more", stacklevel=2)
    if image_shape is not None:
        if input_shape is not None:
            raise ValueError("input_shape and image_shape are the same: give only input_shape")
        warnings.warn("image_shape is an old name: use input_shape", stacklevel=2)
        input_shape = image_shape
    op = AbstractConv2d(
        input_shape, filter_shape, border_mode, subsample, filter_flip, filter_dilation,
        num_groups, unshared,
    )  # fmt: skip
    return op(input, filters)


def conv3d(
    input: TensorLike,
    filters: TensorLike,
    input_shape: Shape | None = None,
    filter_shape: Shape | None = None,
    border_mode: Any = "valid",
    subsample: Sequence[int] = (1, 1, 1),
    filter_flip: bool = True,
    filter_dilation: Sequence[int] = (1, 1, 1),
    num_groups: int = 1,
) -> Tensor:
    """Return the convolution of a batch of volumes with filters, as ``conv2d`` of images.

    input: (batch, channels, depth, rows, columns). filters: (outputs, channels of a group, depth,
    rows, columns). The result is (batch, outputs, depth, rows, columns), of lengths as for
    ``conv2d``, and has the upcast of their dtypes. Raises TypeError for wrong numbers of
    dimensions, ValueError for wrong options, and when it runs, for shapes that do not belong
    together.
    """
    op = AbstractConv3d(
        input_shape, filter_shape, border_mode, subsample, filter_flip, filter_dilation, num_groups
    )
    return op(input, filters)


def checked_shape(name: str, shape: Shape | None) -> list[int | None]:
    """Return the four lengths of a shape as integers, and None for what is unknown.

    Raises NotScalarConstantError for variables that are no constants.
    """
    entries = [None] * 4 if shape is None else list(shape)
    if len(entries) != 4:
        raise ValueError(f"{name} must have 4 entries, not {len(entries)}: {shape}")
    known: list[int | None] = []
    for entry in entries:
        try:
            known.append(None if entry is None else int(get_scalar_constant_value(entry)))
        except NotScalarConstantError:
            raise NotScalarConstantError(
                f"{name} must have constant integers, and None for what is unknown, not {entry}"
            ) from None
    return known


def _constants(name: str, shape: Shape, variable: int) -> list[Any]:
    """Return a shape with None for its variables, which its last entries may be.

    Raises ValueError for variables elsewhere, and unless it is a tuple or a list.
    """
    if isinstance(shape, np.ndarray):
        shape = shape.tolist()
    if not isinstance(shape, tuple | list):
        raise ValueError(
            f"{name} must be the lengths of all dimensions, None for those that are not known; not "
            f"{shape!r}"
        )
    entries = list(shape)
    for i, entry in enumerate(entries):
        if entry is None or isinstance(entry, int | np.integer | Constant):
            continue
        if i < len(entries) - variable:
            raise ValueError(f"{name}[{i}] must be a constant or None, not {entry}")
        entries[i] = None
    return entries


def _lengths(name: str, shape: Shape, n: int) -> list[Any]:
    """Return the spatial lengths of a shape, all of which must be known or variables."""
    lengths = list(shape)[-n:]
    for length in lengths:
        whole = isinstance(length, int | np.integer) and not isinstance(length, bool)
        if not (whole or isinstance(length, Variable)):
            raise ValueError(
                f"the last {n} entries of {name} must be integers or variables, not {length!r}"
            )
    return lengths


def conv2d_grad_wrt_inputs(
    output_grad: TensorLike,
    filters: TensorLike,
    input_shape: Shape,
    filter_shape: Shape | None = None,
    border_mode: Any = "valid",
    subsample: Sequence[int] = (1, 1),
    filter_flip: bool = True,
    filter_dilation: Sequence[int] = (1, 1),
    num_groups: int = 1,
    unshared: bool = False,
) -> Tensor:
    """Return the gradient by its input of a ``conv2d`` whose gradient by the output is given.

    output_grad: (batch, outputs, rows, columns). filters: as for ``conv2d``. input_shape: of that
    input, and of the result; rows and columns may be variables, batch and channels None. The dtype
    is the upcast of those of output_grad and filters. Raises TypeError for other numbers of
    dimensions of tensors, ValueError for wrong options and if a length of the result is not known;
    ValueError at run time for shapes that do not belong together.
    """
    op = AbstractConv2d_gradInputs(
        _constants("input_shape", input_shape, 2), filter_shape, border_mode, subsample,
        filter_flip, filter_dilation, num_groups, unshared,
    )  # fmt: skip
    return op(filters, output_grad, _lengths("input_shape", input_shape, 2))


def conv3d_grad_wrt_inputs(
    output_grad: TensorLike,
    filters: TensorLike,
    input_shape: Shape,
    filter_shape: Shape | None = None,
    border_mode: Any = "valid",
    subsample: Sequence[int] = (1, 1, 1),
    filter_flip: bool = True,
    filter_dilation: Sequence[int] = (1, 1, 1),
    num_groups: int = 1,
) -> Tensor:
    """Return the gradient by its input of a ``conv3d`` whose gradient by the output is given.

    output_grad: (batch, outputs, depth, rows, columns). filters: as for ``conv3d``. input_shape: of
    that input, and of the result; the last three may be variables, batch and channels None. The
    dtype is the upcast of those of output_grad and filters. Raises TypeError for other numbers of
    dimensions of tensors, ValueError for wrong options and if a length of the result is not known;
    ValueError at run time for shapes that do not belong together.
    """
    op = AbstractConv3d_gradInputs(
        _constants("input_shape", input_shape, 3), filter_shape, border_mode, subsample,
        filter_flip, filter_dilation, num_groups,
    )  # fmt: skip
    return op(filters, output_grad, _lengths("input_shape", input_shape, 3))


def conv2d_grad_wrt_weights(
    input: TensorLike,
    output_grad: TensorLike,
    filter_shape: Shape,
    input_shape: Shape | None = None,
    border_mode: Any = "valid",
    subsample: Sequence[int] = (1, 1),
    filter_flip: bool = True,
    filter_dilation: Sequence[int] = (1, 1),
    num_groups: int = 1,
    unshared: bool = False,
) -> Tensor:
    """Return the gradient by its filters of a ``conv2d`` whose gradient by the output is given.

    input: as for ``conv2d``. output_grad: (batch, outputs, rows, columns). filter_shape: of these
    filters, and of the result; rows and columns may be variables, others None. The dtype is the
    upcast of those of input and output_grad. Raises TypeError for other numbers of dimensions of
    tensors, ValueError for wrong options and if a length of the result is not known; ValueError at
    run time for shapes that do not belong together.
    """
    op = AbstractConv2d_gradWeights(
        input_shape, _constants("filter_shape", filter_shape, 2), border_mode, subsample,
        filter_flip, filter_dilation, num_groups, unshared,
    )  # fmt: skip
    return op(input, output_grad, _lengths("filter_shape", filter_shape, 2))


def conv3d_grad_wrt_weights(
    input: TensorLike,
    output_grad: TensorLike,
    filter_shape: Shape,
    input_shape: Shape | None = None,
    border_mode: Any = "valid",
    subsample: Sequence[int] = (1, 1, 1),
    filter_flip: bool = True,
    filter_dilation: Sequence[int] = (1, 1, 1),
    num_groups: int = 1,
) -> Tensor:
    """Return the gradient by its filters of a ``conv3d`` whose gradient by the output is given.

    input: as for ``conv3d``. output_grad: (batch, outputs, depth, rows, columns). filter_shape: of
    these filters, and of the result; the last three may be variables, others None. The dtype is the
    upcast of those of input and output_grad. Raises TypeError for other numbers of dimensions of
    tensors, ValueError for wrong options and if a length of the result is not known; ValueError at
    run time for shapes that do not belong together.
    """
    op = AbstractConv3d_gradWeights(
        input_shape, _constants("filter_shape", filter_shape, 3), border_mode, subsample,
        filter_flip, filter_dilation, num_groups,
    )  # fmt: skip
    return op(input, output_grad, _lengths("filter_shape", filter_shape, 3))


def conv2d_transpose(
    input: TensorLike,
    filters: TensorLike,
    output_shape: Shape,
    filter_shape: Shape | None = None,
    border_mode: Any = "valid",
    input_dilation: Sequence[int] = (1, 1),
    filter_flip: bool = True,
    filter_dilation: Sequence[int] = (1, 1),
    num_groups: int = 1,
    unshared: bool = False,
) -> Tensor:
    """Return the transposed convolution: what has the shape of an input of ``conv2d``.

    input: of the shape of an output, (batch, channels of the input, rows, columns). filters:
    (channels of the input, of the output, rows, columns). output_shape: of the result, (batch,
    channels, rows, columns); rows and columns may be variables, others None. input_dilation: the
    steps of the filter over the result. Other arguments are those of ``conv2d``. The dtype is the
    upcast of those of input and filters. Raises TypeError for other numbers of dimensions of
    tensors, ValueError for wrong options and if a length of the result is not known; ValueError at
    run time for shapes that do not belong together.
    """
    return conv2d_grad_wrt_inputs(
        input, filters, output_shape, filter_shape, border_mode, input_dilation, filter_flip,
        filter_dilation, num_groups, unshared,
    )  # fmt: skip


def separable_conv2d(
    input: TensorLike,
    depthwise_filters: TensorLike,
    pointwise_filters: TensorLike,
    num_channels: int,
    input_shape: Shape | None = None,
    depthwise_filter_shape: Shape | None = None,
    pointwise_filter_shape: Shape | None = None,
    border_mode: Any = "valid",
    subsample: Sequence[int] = (1, 1),
    filter_flip: bool = True,
    filter_dilation: Sequence[int] = (1, 1),
) -> Tensor:
    """Return a convolution of each channel by itself, whose results pointwise filters join.

    input: (batch, num_channels, rows, columns). depthwise_filters: (channels times a factor, 1,
    rows, columns). pointwise_filters: (outputs, channels times the factor, 1, 1). Other arguments
    are those of ``conv2d``. The result is (batch, outputs, rows, columns), of lengths as for
    ``conv2d``, and has the upcast of all dtypes. Raises TypeError for wrong numbers of dimensions,
    ValueError for wrong options, and when it runs, for shapes that do not belong together.
    """
    depthwise = AbstractConv2d(
        input_shape, depthwise_filter_shape, border_mode, subsample, filter_flip, filter_dilation,
        num_channels,
    )  # fmt: skip
    pointwise = AbstractConv2d(None, pointwise_filter_shape, filter_flip=filter_flip)
    return pointwise(depthwise(input, depthwise_filters), pointwise_filters)


def separable_conv3d(
    input: TensorLike,
    depthwise_filters: TensorLike,
    pointwise_filters: TensorLike,
    num_channels: int,
    input_shape: Shape | None = None,
    depthwise_filter_shape: Shape | None = None,
    pointwise_filter_shape: Shape | None = None,
    border_mode: Any = "valid",
    subsample: Sequence[int] = (1, 1, 1),
    filter_flip: bool = True,
    filter_dilation: Sequence[int] = (1, 1, 1),
) -> Tensor:
    """Return a convolution of each channel of volumes, as ``separable_conv2d`` of images.

    input: (batch, num_channels, depth, rows, columns); filters have a depth before their rows too.
    The result is (batch, outputs, depth, rows, columns) and has the upcast of all dtypes. Raises
    TypeError for wrong numbers of dimensions, ValueError for wrong options, and when it runs, for
    shapes that do not belong together.
    """
    depthwise = AbstractConv3d(
        input_shape, depthwise_filter_shape, border_mode, subsample, filter_flip, filter_dilation,
        num_channels,
    )  # fmt: skip
    pointwise = AbstractConv3d(None, pointwise_filter_shape, filter_flip=filter_flip)
    return pointwise(depthwise(input, depthwise_filters), pointwise_filters)


def causal_conv1d(
    input: TensorLike,
    filters: TensorLike,
    filter_shape: Shape,
    input_shape: Shape | None = None,
    subsample: int = 1,
    filter_flip: bool = True,
    filter_dilation: int = 1,
    num_groups: int = 1,
    unshared: bool = False,
) -> Tensor:
    """Return a convolution in time of which no output depends on later inputs.

    input: (batch, channels, length). filters: (outputs, channels of a group, length), whose length
    filter_shape must give. The result is (batch, outputs, (length of the input - 1) // subsample +
    1), of the upcast of their dtypes. Raises ValueError for other numbers of dimensions, for a
    filter_shape without length, and for unshared, which needs filters of more dimensions;
    ValueError at run time for shapes that do not belong together.
    """
    input, filters = as_tensor_variable(input), as_tensor_variable(filters)
    if input.type.ndim != 3 or filters.type.ndim != 3:
        raise ValueError(
            "Input and filters must have 3 dimensions for a causal convolution, not "
            f"{input.type.ndim} and {filters.type.ndim}"
        )
    if not isinstance(filter_shape, tuple | list) or len(filter_shape) != 3:
        raise ValueError(
            "filter_shape must be the 3 lengths of the filters, of which the last is known, not "
            f"{filter_shape!r}"
        )
    if not isinstance(filter_shape[2], int | np.integer):
        raise ValueError(f"the length of the filters must be an integer, not {filter_shape[2]!r}")
    before = filter_dilation * (filter_shape[2] - 1)
    op = AbstractConv2d(
        None if input_shape is None else (*input_shape, 1),
        (*filter_shape, 1),
        ((before, 0), 0),
        (subsample, 1),
        filter_flip,
        (filter_dilation, 1),
        num_groups,
        unshared,
    )
    return op(dimshuffle(input, (0, 1, 2, "x")), dimshuffle(filters, (0, 1, 2, "x")))[:, :, :, 0]


# --- bilinear upsampling --------------------------------------------------------------------------


def bilinear_kernel_1D(ratio: Any, normalize: bool = True) -> Tensor:
    """Return the vector 1, 2, ... ratio, ... 2, 1 of dtype floatX; normalize: divided by ratio.

    ratio: a number or a 0-d variable, 1 or more. The result has shape (2 * ratio - 1,). Raises
    TypeError for what is no number.
    """
    rising = arange(1, ratio + 1, dtype=config.floatX)
    kernel = concatenate([rising, rising[-2::-1]])
    return kernel / cast(as_tensor_variable(ratio), config.floatX) if normalize else kernel


def bilinear_kernel_2D(ratio: Any, normalize: bool = True) -> Tensor:
    """Return the outer product of two ``bilinear_kernel_1D``; ratio: a number, or (rows, columns).

    The result is a matrix of dtype floatX and shape (2 * rows - 1, 2 * columns - 1). Raises
    TypeError for what is no number, ValueError for a tuple of another length.
    """
    rows, columns = ratio if isinstance(ratio, tuple) else (ratio, ratio)
    across = dimshuffle(bilinear_kernel_1D(columns, normalize), ("x", 0))
    return across * dimshuffle(bilinear_kernel_1D(rows, normalize), (0, "x"))


def _with_border(images: Any) -> Tensor:
    """Return images whose first and last rows and columns are there twice."""
    taller = concatenate([images[:, :, :1, :], images, images[:, :, -1:, :]], axis=2)
    return concatenate([taller[:, :, :, :1], taller, taller[:, :, :, -1:]], axis=3)


def bilinear_upsampling(
    input: TensorLike,
    ratio: int | None = None,
    frac_ratio: Any = None,
    batch_size: int | None = None,
    num_input_channels: int | None = None,
    use_1D_kernel: bool = True,
) -> Tensor:
    """Return images enlarged by linear interpolation between their elements.

    input: (batch, channels, rows, columns). ratio: how many times as many rows and columns;
    frac_ratio: the same as a fraction (p, q), or one for rows and one for columns. use_1D_kernel:
    enlarge rows, and then columns; only for whole ratios. The result is (batch, channels, rows *
    ratio, columns * ratio), rounded up, and has the upcast of floatX and the dtype of input. Raises
    ValueError unless one of ratio and frac_ratio is given, if it is not of integers of 1 or more,
    and for frac_ratio with use_1D_kernel; IndexError or ValueError at run time for another number
    of dimensions.
    """
    if bool(ratio) == bool(frac_ratio):
        raise ValueError("bilinear_upsampling needs either ratio or frac_ratio")
    if frac_ratio:
        if use_1D_kernel:
            raise ValueError("frac_ratio needs use_1D_kernel=False")
        return frac_bilinear_upsampling(input, frac_ratio)
    if isinstance(ratio, bool) or not isinstance(ratio, int | np.integer) or ratio < 1:
        raise ValueError(f"ratio must be an integer, 1 or more, not {ratio!r}: see frac_ratio")
    images = as_tensor_variable(input)
    rows, columns = images.shape[2], images.shape[3]
    bordered = _with_border(images.reshape((-1, 1, rows, columns)))
    pad = 2 * ratio - (ratio - 1) // 2 - 1
    enlarged = (rows * ratio, columns * ratio)
    if use_1D_kernel:
        kernel = bilinear_kernel_1D(ratio)
        taller = conv2d_grad_wrt_inputs(
            bordered, dimshuffle(kernel, ("x", "x", 0, "x")), (None, 1, enlarged[0], columns + 2),
            (1, 1, None, 1), (pad, 0), (ratio, 1),
        )  # fmt: skip
        result = conv2d_grad_wrt_inputs(
            taller, dimshuffle(kernel, ("x", "x", "x", 0)), (None, 1, *enlarged),
            (1, 1, 1, None), (0, pad), (1, ratio),
        )  # fmt: skip
    else:
        kernel = dimshuffle(bilinear_kernel_2D(ratio), ("x", "x", 0, 1))
        result = conv2d_grad_wrt_inputs(
            bordered, kernel, (None, 1, *enlarged), (1, 1, None, None), (pad, pad), (ratio, ratio)
        )
    return result.reshape((images.shape[0], images.shape[1], *enlarged))


def frac_bilinear_upsampling(input: TensorLike, frac_ratio: Any) -> Tensor:
    """Return images enlarged by fractions, by linear interpolation.

    input: (batch, channels, rows, columns). frac_ratio: (p, q), or one such fraction for rows and
    one for columns. The result is (batch, channels, rows * p / q, columns * p / q), rounded up, and
    has the upcast of floatX and the dtype of input. Raises ValueError if frac_ratio is no tuple of
    integers of 1 or more; IndexError or ValueError at run time for another number of dimensions.
    """
    if not isinstance(frac_ratio, tuple):
        raise ValueError(f"frac_ratio must be a tuple, not {frac_ratio!r}")
    fractions = frac_ratio if isinstance(frac_ratio[0], tuple) else (frac_ratio, frac_ratio)
    whole = all(
        len(pair) == 2 and all(isinstance(n, int | np.integer) and n > 0 for n in pair)
        for pair in fractions
    )
    if len(fractions) != 2 or not whole:
        raise ValueError(
            f"frac_ratio must be two integers, 1 or more, or two such pairs, not {frac_ratio!r}"
        )
    reduced = [(p // gcd(p, q), q // gcd(p, q)) for p, q in fractions]
    ratio, steps = tuple(p for p, _ in reduced), tuple(q for _, q in reduced)
    images = as_tensor_variable(input)
    rows, columns = images.shape[2], images.shape[3]
    bordered = _with_border(images.reshape((-1, 1, rows, columns)))
    # the kernel takes the place of the image: it slides over the images as filters with dilation
    kernel = dimshuffle(cast(bilinear_kernel_2D(ratio), config.floatX), ("x", "x", 0, 1))
    for axis, n in ((2, rows), (3, columns)):
        total = (2 * n - 1) * ratio[axis - 2] + 1
        before = total // 2
        kernel = concatenate(
            [_zeros(kernel, axis, before), kernel, _zeros(kernel, axis, total - before)], axis=axis
        )
    op = AbstractConv2d(subsample=steps, filter_dilation=ratio)
    enlarged = op(kernel, bordered)
    return enlarged.reshape(
        (*(images.shape[i] for i in (0, 1)), *(enlarged.shape[i] for i in (2, 3)))
    )


def _zeros(like: Any, axis: int, n: Any) -> Tensor:
    """Return zeros of the shape of a variable but for one length."""
    shape = [n if d == axis else like.shape[d] for d in range(4)]
    return alloc(constant(0, dtype=like.type.dtype), *shape)
