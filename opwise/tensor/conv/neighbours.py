"""Neighbourhoods: rectangular parts of images as the rows of a matrix, and back."""

from __future__ import annotations

from typing import Any

import numpy as np

from opwise.graph.apply import Apply
from opwise.graph.null import disconnected_type
from opwise.graph.opmethods import linear_in_first
from opwise.scalar import dtypes
from opwise.tensor.creation import zeros
from opwise.tensor.dimshuffle import dimshuffle
from opwise.tensor.elemwise import cast, elemwise
from opwise.tensor.functions import ceil_intdiv
from opwise.tensor.join import concatenate
from opwise.tensor.type import tensor_type
from opwise.tensor.variable import Tensor, TensorLike, TensorOp, as_tensor_variable

__all__ = ["Images2Neibs", "Images2NeibsGrad", "images2neibs", "neibs2images"]

MODES = ("valid", "ignore_borders", "wrap_centered", "half", "full")


def images2neibs(
    ten4: TensorLike, neib_shape: Any, neib_step: Any = None, mode: str = "valid"
) -> Tensor:
    """Return a matrix whose rows are the neighbourhoods of images.

    ten4: images (batch, channels, rows, columns) of any dtype, which the result has. neib_shape:
    rows and columns of a neighbourhood. neib_step: its steps over the image (default: neib_shape).
    Both are two integers or a vector of integers. A row of the result is one neighbourhood, row by
    row; neighbourhoods follow each other by column, row, channel and image. Its shape is (number of
    neighbourhoods, product of neib_shape).

    mode: 'valid' (steps must end at the border), 'ignore_borders' (the rest is left out), 'half'
    and 'full' (as 'valid' for an image with zeros around it: half of neib_shape, or all of it but
    1), 'wrap_centered' (a neighbourhood around every element that a step reaches; beyond a border
    it goes on at the opposite one). Raises NotImplementedError for other modes, TypeError for other
    numbers of dimensions and for lengths that are no integers; when it runs, TypeError for images
    that do not fit, ValueError for lengths and steps below 1.
    """
    return Images2Neibs(mode)(ten4, neib_shape, neib_step)


def neibs2images(
    neibs: TensorLike, neib_shape: Any, original_shape: TensorLike, mode: str = "valid"
) -> Tensor:
    """Return the images of which ``images2neibs`` made a matrix of disjoint neighbourhoods.

    original_shape: of the images, (batch, channels, rows, columns), and of the result; it has the
    dtype of neibs. mode: 'valid', or 'ignore_borders', which puts zeros where there were no
    neighbourhoods. Raises NotImplementedError for other modes, TypeError for lengths that are no
    integers; when it runs, ValueError for a matrix of another size, IndexError for a shape of fewer
    than 4 lengths.
    """
    if mode not in ("valid", "ignore_borders"):
        raise NotImplementedError(
            f"neibs2images knows the modes 'valid' and 'ignore_borders', not {mode!r}"
        )
    neibs, shape = as_tensor_variable(neibs), as_tensor_variable(original_shape)
    height, width = _two("neib_shape", neib_shape)
    batch, channels, rows, columns = (shape[i] for i in range(4))
    down, across = rows // height, columns // width
    parts = neibs.reshape((batch, channels, down, across, height, width))
    parts = dimshuffle(parts, (0, 1, 2, 4, 3, 5))
    if mode == "valid":
        return parts.reshape((batch, channels, rows, columns))
    used = (down * height, across * width)
    images = parts.reshape((batch, channels, *used))
    dtype = images.type.dtype
    beside = zeros((batch, channels, used[0], columns - used[1]), dtype)
    below = zeros((batch, channels, rows - used[0], columns), dtype)
    return concatenate([concatenate([images, beside], axis=3), below], axis=2)


def _two(name: str, given: Any) -> tuple[Any, Any]:
    """Return two lengths, as numbers or variables. Raises TypeError for what is no pair."""
    if isinstance(given, tuple | list) and len(given) == 2:
        return given[0], given[1]
    pair = _pair(name, given)
    return pair[0], pair[1]


def _pair(name: str, given: TensorLike) -> Tensor:
    """Return two lengths as a vector. Raises TypeError for what is no vector of integers."""
    pair = as_tensor_variable(given)
    if pair.type.ndim != 1 or pair.type.dtype not in dtypes.DISCRETE:
        raise TypeError(f"{name} must be two integers or a vector of integers, not {pair.type}")
    return cast(pair, "int64")


class _Neighbourhoods(TensorOp):
    """What the Op that takes neighbourhoods and its gradient have in common."""

    __props__ = ("mode",)

    def __init__(self, mode: str = "valid") -> None:
        if mode not in MODES:
            raise NotImplementedError(
                f"{type(self).__name__} has the modes {', '.join(MODES)}, not {mode!r}"
            )
        self.mode = mode

    def __str__(self) -> str:
        return f"{type(self).__name__}{{{self.mode}}}"

    def grid(self, length: Any, size: Any, step: Any) -> Any:
        """Return the number of neighbourhoods along an axis; numbers or variables."""
        if self.mode == "wrap_centered":
            return ceil_intdiv(length, step)
        if self.mode == "half":
            return 1 + (length - size % 2) // step
        if self.mode == "full":
            return 1 + (length + size - 2) // step
        return 1 + (length - size) // step

    def _checked(self, lengths: Any, sizes: Any, steps: Any) -> list[np.ndarray]:
        """Return for each axis, by (neighbourhood, element), the place in the image, or -1.

        Raises TypeError and ValueError for lengths that do not fit.
        """
        for name, pair in (("neib_shape", sizes), ("neib_step", steps)):
            if pair.shape != (2,):
                raise TypeError(f"{name} must be two integers, not {pair.tolist()}")
            if min(pair) < 1:
                raise ValueError(f"{name} must be two integers of 1 or more, not {pair.tolist()}")
        numbers = zip(map(int, lengths), map(int, sizes), map(int, steps), strict=True)
        return [self._places(axis, *three) for axis, three in enumerate(numbers)]

    def _places(self, axis: int, length: int, size: int, step: int) -> np.ndarray:
        mode = self.mode
        what = (
            f"neib_shape[{axis}]={size} and neib_step[{axis}]={step} do not fit an image of length "
            f"{length} along axis {axis + 2}"
        )
        pad = {"half": size // 2, "full": size - 1, "wrap_centered": size // 2}.get(mode, 0)
        if mode == "wrap_centered":
            if size % 2 == 0:
                raise TypeError(f"{what}: mode 'wrap_centered' needs odd lengths of neib_shape")
            count = -(-length // step)
        else:
            count = max(0, (length + 2 * pad - size) // step + 1)
        if mode != "ignore_borders" and length < size:
            raise TypeError(f"{what}: the neighbourhood is larger than the image")
        if mode in ("valid", "half", "full") and (length + 2 * pad - size) % step:
            raise TypeError(
                f"{what}: in mode {mode!r}, {length + 2 * pad - size} (the image with its zeros, "
                f"less neib_shape) must be a multiple of neib_step; 'ignore_borders' leaves out "
                "the rest"
            )
        at = np.arange(count)[:, None] * step + np.arange(size) - pad
        if mode == "wrap_centered":
            return at % length
        return np.where((at >= 0) & (at < length), at, -1)

    def connection_pattern(self, node: Apply) -> list[list[bool]]:
        return [[i == 0] for i in range(len(node.inputs))]


def _index(places: list[np.ndarray]) -> tuple[tuple[Any, Any], np.ndarray]:
    """Return (indices of rows and columns, whether these lie in the image), both by (row of the
    grid, column of the grid, row of the neighbourhood, column of it)."""
    rows, columns = places[0][:, None, :, None], places[1][None, :, None, :]
    return (rows, columns), (rows >= 0) & (columns >= 0)


class Images2Neibs(_Neighbourhoods):
    """Takes the neighbourhoods of images; see ``images2neibs``."""

    def make_node(self, ten4: TensorLike, neib_shape: Any, neib_step: Any = None) -> Apply:
        images, shape = as_tensor_variable(ten4), _pair("neib_shape", neib_shape)
        step = shape if neib_step is None else _pair("neib_step", neib_step)
        if images.type.ndim != 4:
            raise TypeError(f"ten4 must have 4 dimensions, not {images.type.ndim}")
        type_ = tensor_type(images.type.dtype, (False, False))
        return Apply(self, [images, shape, step], [type_.make_variable()])

    def perform(self, node: Apply, inputs: Any, output_storage: Any) -> None:
        images, sizes, steps = inputs
        index, inside = _index(self._checked(images.shape[2:], sizes, steps))
        taken = np.zeros((*images.shape[:2], *inside.shape), images.dtype)
        if images.size and inside.size:
            taken = np.where(inside, images[(slice(None), slice(None), *index)], taken)
        rows = int(np.prod(taken.shape[:4]))
        output_storage[0][0] = taken.reshape(rows, int(sizes[0] * sizes[1]))

    def infer_shape(self, node: Apply, shapes: Any) -> Any:
        inputs: Any = node.inputs
        lengths, (_, sizes, steps) = shapes[0], inputs
        grid = [self.grid(lengths[2 + a], sizes[a], steps[a]) for a in range(2)]
        if self.mode == "ignore_borders":
            grid = [elemwise("maximum")(n, 0) for n in grid]
        return [(lengths[0] * lengths[1] * grid[0] * grid[1], sizes[0] * sizes[1])]

    def grad(self, inputs: Any, output_gradients: Any) -> Any:
        images, sizes, steps = inputs
        gradient = Images2NeibsGrad(self.mode)(output_gradients[0], images.shape, sizes, steps)
        return [gradient, *(disconnected_type.make_variable() for _ in range(2))]

    R_op = linear_in_first


class Images2NeibsGrad(_Neighbourhoods):
    """Adds each neighbourhood to the images from which it was taken.

    Inputs: a matrix of neighbourhoods, the shape of the images, neib_shape and neib_step.
    """

    def make_node(
        self, gz: TensorLike, shape: TensorLike, neib_shape: Any, neib_step: Any
    ) -> Apply:
        neibs, shape = as_tensor_variable(gz), cast(as_tensor_variable(shape), "int64")
        if neibs.type.ndim != 2 or shape.type.ndim != 1:
            raise TypeError(f"gz must be a matrix and shape a vector: {neibs.type}, {shape.type}")
        pairs = [_pair("neib_shape", neib_shape), _pair("neib_step", neib_step)]
        type_ = tensor_type(neibs.type.dtype, (False,) * 4)
        return Apply(self, [neibs, shape, *pairs], [type_.make_variable()])

    def perform(self, node: Apply, inputs: Any, output_storage: Any) -> None:
        neibs, shape, sizes, steps = inputs
        if shape.shape != (4,) or min(shape) < 0:
            raise ValueError(f"the shape of images must be four lengths, not {shape.tolist()}")
        index, inside = _index(self._checked(shape[2:], sizes, steps))
        images = np.zeros(tuple(map(int, shape)), neibs.dtype)
        expected = (int(shape[0] * shape[1]) * len(index[0]) * index[1].shape[1],
                    int(sizes[0] * sizes[1]))  # fmt: skip
        if neibs.shape != expected:
            raise ValueError(
                f"gradients by the neighbourhoods have shape {neibs.shape}, but images of shape "
                f"{tuple(shape.tolist())} have neighbourhoods of shape {expected}"
            )
        if neibs.size:
            taken = neibs.reshape(*images.shape[:2], *inside.shape)
            places: Any = (slice(None), slice(None), *index)
            np.add.at(images, places, np.where(inside, taken, 0))
        output_storage[0][0] = images

    def infer_shape(self, node: Apply, shapes: Any) -> Any:
        shape: Any = node.inputs[1]
        return [[shape[a] for a in range(4)]]

    def grad(self, inputs: Any, output_gradients: Any) -> Any:
        back = Images2Neibs(self.mode)(output_gradients[0], *inputs[2:])
        return [back, *(disconnected_type.make_variable() for _ in range(3))]

    R_op = linear_in_first
