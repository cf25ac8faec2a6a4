"""Spatial transformers: images sampled at the points of a grid that a transformation moves.

Source: M. Jaderberg et al., "Spatial Transformer Networks", NIPS 2015.
"""

from __future__ import annotations

from functools import reduce
from operator import add
from typing import Any

import numpy as np

from opwise.config import config
from opwise.graph.apply import Apply
from opwise.graph.null import disconnected_type, is_disconnected
from opwise.graph.op import Op
from opwise.graph.opmethods import connects, linear_in_first
from opwise.scalar import dtypes
from opwise.tensor.creation import arange, zeros_like
from opwise.tensor.dimshuffle import dimshuffle
from opwise.tensor.elemwise import cast, elemwise
from opwise.tensor.join import stack
from opwise.tensor.reduce import sum as sum_
from opwise.tensor.subtensor import inc_subtensor
from opwise.tensor.type import tensor_type
from opwise.tensor.variable import Tensor, TensorLike, TensorOp, as_tensor_variable

__all__ = [
    "TransformerGradI",
    "TransformerGradT",
    "TransformerGrid",
    "TransformerSampler",
    "spatial_transformer",
    "spatialtf",
]

BORDERS = ("zero", "nearest")


def spatialtf(
    inp: TensorLike,
    theta: TensorLike,
    scale_width: Any = 1,
    scale_height: Any = 1,
    border_mode: str = "nearest",
) -> Tensor:
    """Return images moved by affine transformations, by linear interpolation.

    inp: (batch, channels, rows, columns), floating-point. theta: (batch, 2, 3), the matrices that
    take a point (x, y, 1) of the result to a point of the image; both axes go from -1 to 1, from
    the middle of the first element to that of the last. scale_width, scale_height: the columns and
    rows of the result as fractions of those of the image, rounded up. border_mode: what is beyond
    the image, its 'nearest' element or 'zero'. The result is (batch, channels, rows * scale_height,
    columns * scale_width); its dtype is the upcast of those of inp and theta, of which integers
    count as floatX.

    Raises ValueError for other border modes, TypeError for wrong numbers of dimensions and dtypes,
    and when it runs ValueError for a theta of another shape and for negative scales.
    """
    images = as_tensor_variable(inp)
    _check_ndim("inp", images, 4)
    rows, columns = (
        cast((images.shape[axis] * as_tensor_variable(scale)).ceil(), "int64")
        for axis, scale in ((2, scale_height), (3, scale_width))
    )
    grid = TransformerGrid()(theta, stack([images.shape[0], images.shape[1], rows, columns]))
    result: Tensor = TransformerSampler(border_mode)(images, grid)
    return result


spatial_transformer = spatialtf


def _check_ndim(name: str, var: Tensor, ndim: int) -> None:
    if var.type.ndim != ndim:
        raise TypeError(f"{name} must have {ndim} dimensions, not {var.type.ndim}")


def _points(n: int) -> np.ndarray:
    """Return n numbers from -1 to 1."""
    return np.linspace(-1.0, 1.0, n)


def _base(rows: int, columns: int) -> np.ndarray:
    """Return the points (x, y, 1) of a grid by (row, column)."""
    y, x = np.meshgrid(_points(rows), _points(columns), indexing="ij")
    return np.stack([x, y, np.ones_like(x)], axis=-1)


class TransformerGrid(TensorOp):
    """The points of images that the elements of a result come from.

    Inputs: theta (batch, 2, 3), and the shape of the result. The output is (batch, rows, columns,
    2): x and y from -1 to 1.
    """

    __props__ = ()

    def make_node(self, theta: TensorLike, out_dims: TensorLike) -> Apply:
        theta, dims = as_tensor_variable(theta), as_tensor_variable(out_dims)
        _check_ndim("theta", theta, 3)
        if dims.type.ndim != 1 or dims.type.dtype not in dtypes.DISCRETE:
            raise TypeError(f"out_dims must be a vector of four integers, not {dims.type}")
        if theta.type.dtype not in dtypes.FLOATS:
            theta = cast(theta, config.floatX)
        type_ = tensor_type(theta.type.dtype, (False,) * 4)
        return Apply(self, [theta, cast(dims, "int64")], [type_.make_variable()])

    def perform(self, node: Apply, inputs: Any, output_storage: Any) -> None:
        theta, dims = inputs
        if dims.shape != (4,) or min(dims) < 0:
            raise ValueError(f"out_dims must be four lengths, not {dims.tolist()}")
        if theta.shape != (dims[0], 2, 3):
            raise ValueError(
                f"theta must have shape {(int(dims[0]), 2, 3)}, a matrix for each image, not "
                f"{theta.shape}"
            )
        base = _base(int(dims[2]), int(dims[3]))
        grid = np.einsum("hwk,njk->nhwj", base, theta.astype("float64"))
        output_storage[0][0] = grid.astype(theta.dtype)

    def infer_shape(self, node: Apply, shapes: Any) -> Any:
        dims: Any = node.inputs[1]
        return [(shapes[0][0], dims[2], dims[3], 2)]

    def grad(self, inputs: Any, output_gradients: Any) -> Any:
        return [TransformerGradT()(output_gradients[0]), disconnected_type.make_variable()]

    R_op = linear_in_first
    connection_pattern = connects(0)


class TransformerGradT(TensorOp):
    """The gradient of ``TransformerGrid`` by theta; its input is the gradient by the grid."""

    __props__ = ()

    def make_node(self, dgrid: TensorLike) -> Apply:
        dgrid = as_tensor_variable(dgrid)
        _check_ndim("dgrid", dgrid, 4)
        _floats(dgrid=dgrid)
        type_ = tensor_type(dgrid.type.dtype, (False,) * 3)
        return Apply(self, [dgrid], [type_.make_variable()])

    def perform(self, node: Apply, inputs: Any, output_storage: Any) -> None:
        (dgrid,) = inputs
        _check_grid("dgrid", dgrid)
        base = _base(*dgrid.shape[1:3])
        gradient = np.einsum("hwk,nhwj->njk", base, dgrid.astype("float64"))
        output_storage[0][0] = gradient.astype(dgrid.dtype)

    def infer_shape(self, node: Apply, shapes: Any) -> Any:
        return [(shapes[0][0], 2, 3)]

    def grad(self, inputs: Any, output_gradients: Any) -> Any:
        shape = inputs[0].shape
        dims = stack([shape[0], shape[3], shape[1], shape[2]])
        return [TransformerGrid()(output_gradients[0], dims)]


class _Sampling(Op):
    """What sampling and its gradient have in common."""

    __props__ = ("border_mode",)

    def __init__(self, border_mode: str = "nearest") -> None:
        if border_mode not in BORDERS:
            raise ValueError(
                f"border_mode must be one of {', '.join(BORDERS)}, not {border_mode!r}"
            )
        self.border_mode = border_mode

    def _neighbours(self, images: np.ndarray, grid: np.ndarray) -> Any:
        """Return what is next to each point: along y and x ((first, second index), weight of the
        second one, change of that weight with the coordinate of the grid)."""
        found = []
        for axis, coordinate in ((2, grid[..., 1]), (3, grid[..., 0])):
            n = images.shape[axis]
            scale = (n - 1) / 2
            at = (coordinate + 1) * coordinate.dtype.type(scale)
            change = np.full(at.shape, scale, at.dtype)
            if self.border_mode == "nearest":
                change[~((at >= 0) & (at <= n - 1))] = 0
                at = np.fmin(np.fmax(at, 0), n - 1)
            at = np.where((at > -1) & (at < n), at, at.dtype.type(-2))
            first = np.floor(at)
            weight = at - first
            first = first.astype(np.int64)
            second = first + 1
            if self.border_mode == "nearest":
                second = np.minimum(second, n - 1)
            found.append(((first, second), weight, change))
        return found

    def _corners(self, images: np.ndarray, grid: np.ndarray) -> Any:
        """Yield for each neighbour of the points (its row, its column, whether it is in the image,
        the image there or 0)."""
        ((ys, _, _), (xs, _, _)) = self._neighbours(images, grid)
        batch = np.arange(len(images))[:, None, None]
        for y in ys:
            for x in xs:
                inside = (y >= 0) & (y < images.shape[2]) & (x >= 0) & (x < images.shape[3])
                yield (
                    y,
                    x,
                    inside,
                    np.where(
                        inside[:, None],
                        images[batch, :, np.where(inside, y, 0), np.where(inside, x, 0)].transpose(
                            0, 3, 1, 2
                        ),
                        0,
                    ),
                )


def _floats(**given: Tensor) -> None:
    for name, var in given.items():
        if var.type.dtype not in dtypes.FLOATS:
            raise TypeError(f"{name} must be floating-point, not {var.type.dtype}")


def _check_grid(name: str, grid: np.ndarray) -> None:
    if grid.shape[3] != 2:
        raise ValueError(f"{name} must have the shape (batch, rows, columns, 2), not {grid.shape}")


def _check_sampled(images: np.ndarray, grid: np.ndarray) -> None:
    """Raise ValueError unless a grid can be sampled from images."""
    _check_grid("grid", grid)
    if len(grid) != len(images):
        raise ValueError(f"the grid is of {len(grid)} images, but there are {len(images)}")
    if min(images.shape[2:]) < 1 and grid.size:
        raise ValueError(f"images of shape {images.shape} have no elements to sample")


class TransformerSampler(_Sampling):
    """Samples images (batch, channels, rows, columns) at the points of a grid."""

    def make_node(self, img: TensorLike, grid: TensorLike) -> Apply:
        images, grid = as_tensor_variable(img), as_tensor_variable(grid)
        _check_ndim("img", images, 4)
        _check_ndim("grid", grid, 4)
        _floats(img=images, grid=grid)
        dtype = dtypes.upcast(images.type.dtype, grid.type.dtype)
        type_ = tensor_type(dtype, (False,) * 4)
        return Apply(self, [cast(images, dtype), cast(grid, dtype)], [type_.make_variable()])

    def perform(self, node: Apply, inputs: Any, output_storage: Any) -> None:
        images, grid = inputs
        _check_sampled(images, grid)
        shape = (*images.shape[:2], *grid.shape[1:3])
        if 0 in shape:
            output_storage[0][0] = np.zeros(shape, images.dtype)
            return
        ((_, down, _), (_, across, _)) = (
            tuple(map(_by_channel, part)) for part in self._neighbours(images, grid)
        )
        a, b, c, d = (value for _, _, _, value in self._corners(images, grid))
        upper, lower = a * (1 - across) + b * across, c * (1 - across) + d * across
        output_storage[0][0] = (upper * (1 - down) + lower * down).astype(images.dtype)

    def infer_shape(self, node: Apply, shapes: Any) -> Any:
        images, grid = shapes
        return [(images[0], images[1], grid[1], grid[2])]

    def grad(self, inputs: Any, output_gradients: Any) -> Any:
        found = TransformerGradI(self.border_mode)(*inputs, output_gradients[0])
        return [cast(g, x.type.dtype) for g, x in zip(found, inputs, strict=True)]

    def R_op(self, inputs: Any, eval_points: Any) -> Any:
        (images, grid), (by_images, by_grid) = inputs, eval_points
        moved = []
        if by_images is not None:
            moved.append(self(by_images, grid))
        if by_grid is not None:
            moved.append(_Corners(images, grid, self.border_mode).moved(by_grid))
        return [reduce(add, moved) if moved else None]


def _by_channel(part: Any) -> Any:
    return part if isinstance(part, tuple) else part[:, None]


class TransformerGradI(_Sampling):
    """The gradients of ``TransformerSampler`` by the images and by the grid.

    Inputs: images, grid, the gradient by the samples.
    """

    def make_node(self, img: Any, grid: Any, dy: Any) -> Apply:
        found = [as_tensor_variable(each) for each in (img, grid, dy)]
        for name, var in zip(("img", "grid", "dy"), found, strict=True):
            _check_ndim(name, var, 4)
            _floats(**{name: var})
        dtype = dtypes.upcast(*(var.type.dtype for var in found))
        outputs = [tensor_type(dtype, (False,) * 4).make_variable() for _ in range(2)]
        return Apply(self, [cast(var, dtype) for var in found], outputs)

    def perform(self, node: Apply, inputs: Any, output_storage: Any) -> None:
        images, grid, dy = inputs
        _check_sampled(images, grid)
        shape = (*images.shape[:2], *grid.shape[1:3])
        if dy.shape != shape:
            raise ValueError(f"the gradient by the samples has shape {dy.shape}, not {shape}")
        dimg, dgrid = np.zeros_like(images), np.zeros_like(grid)
        if dy.size:
            ((_, down, by_y), (_, across, by_x)) = self._neighbours(images, grid)
            batch = np.arange(len(images))[:, None, None]
            values = []
            weights = [y * x for y in (1 - down, down) for x in (1 - across, across)]
            corners = self._corners(images, grid)
            for weight, (y, x, inside, value) in zip(weights, corners, strict=True):
                values.append((dy * value).sum(1))
                part = (dy * weight[:, None]).transpose(0, 2, 3, 1)
                index: Any = (batch, slice(None), np.where(inside, y, 0), np.where(inside, x, 0))
                np.add.at(dimg, index, np.where(inside[..., None], part, 0))
            a, b, c, d = values
            dgrid[..., 0] = ((b - a) * (1 - down) + (d - c) * down) * by_x
            dgrid[..., 1] = ((c - a) * (1 - across) + (d - b) * across) * by_y
        output_storage[0][0], output_storage[1][0] = dimg, dgrid

    def infer_shape(self, node: Apply, shapes: Any) -> Any:
        return shapes[:2]

    def grad(self, inputs: Any, output_gradients: Any) -> Any:
        images, grid, dy = inputs
        by_dimg, by_dgrid = (None if is_disconnected(g) else g for g in output_gradients)
        found = [zeros_like(images), zeros_like(grid), zeros_like(dy)]
        if by_dimg is not None:  # dimg depends on the grid and dy alone
            found[1] = TransformerGradI(self.border_mode)(by_dimg, grid, dy)[1]
            found[2] = TransformerSampler(self.border_mode)(by_dimg, grid)
        if by_dgrid is not None:
            corners = _Corners(images, grid, self.border_mode)
            found[0] = corners.moved_back(by_dgrid, dy)
            found[1] = found[1] + corners.bent(by_dgrid, dy)
            found[2] = found[2] + corners.moved(by_dgrid)
        return [cast(g, x.type.dtype) for g, x in zip(found, inputs, strict=True)]


class _Corners:
    """The four neighbours of each point of a grid in the images, as variables.

    The derivatives of the gradient are made of them. Along each axis a neighbour has a weight and
    the change of this weight with the coordinate of the grid.
    """

    def __init__(self, images: Tensor, grid: Tensor, border_mode: str) -> None:
        self.border_mode = border_mode
        #: channels last: an element of an image for each batch, row and column
        self.images = dimshuffle(images, (0, 2, 3, 1))
        #: (batch, 1, 1): the image of each point
        self.batch = dimshuffle(arange(images.shape[0]), (0, "x", "x"))
        self.by_y, self.by_x = self._along(1, grid[..., 1]), self._along(2, grid[..., 0])

    def _along(self, axis: int, coordinate: Tensor) -> list[tuple[Tensor, Tensor, Tensor, Tensor]]:
        """Return the index of both neighbours along an axis of the images, whether it exists, its
        weight, and the change of the weight."""
        switch, dtype = elemwise("switch"), coordinate.type.dtype
        n = self.images.shape[axis]
        scale = cast((n - 1) / 2, dtype)
        at = (coordinate + 1) * scale
        last = cast(n - 1, dtype)
        if self.border_mode == "nearest":
            inside = (at >= 0) & (at <= last)
            change = switch(inside, scale, cast(0, dtype))
            at = switch(at >= 0, switch(at <= last, at, last), cast(0, dtype))
        else:
            change = scale
            at = switch((at > -1) & (at < last + 1), at, cast(-2, dtype))
        first = elemwise("floor")(at)
        weight = at - first
        found = []
        for step, share, slope in ((0, 1 - weight, -change), (1, weight, change)):
            index = cast(first, "int64") + step
            exists = (index >= 0) & (index < n)
            found.append((switch(exists, index, 0), exists, share, slope))
        return found

    def _each(self, by_grid: Tensor) -> Any:
        """Yield for each corner its index, the change of its weight when the points move by
        ``by_grid``, and the derivative of its weight by both coordinates."""
        move_x, move_y = by_grid[..., 0], by_grid[..., 1]
        for y, has_y, share_y, slope_y in self.by_y:
            for x, has_x, share_x, slope_x in self.by_x:
                exists = cast(has_y & has_x, move_x.type.dtype)
                change = share_y * slope_x * move_x + slope_y * share_x * move_y
                yield (self.batch, y, x), change * exists, slope_y * slope_x * exists

    def moved(self, by_grid: Tensor) -> Tensor:
        """Return how the samples change when the points move by ``by_grid``."""
        parts = [
            self.images[index] * dimshuffle(change, (0, 1, 2, "x"))
            for index, change, _ in self._each(by_grid)
        ]
        return dimshuffle(reduce(add, parts), (0, 3, 1, 2))

    def moved_back(self, by_grid: Tensor, dy: Tensor) -> Tensor:
        """Return the gradient of ``(dy * moved(by_grid)).sum()`` by the images."""
        total, dy = zeros_like(self.images), dimshuffle(dy, (0, 2, 3, 1))
        for index, change, _ in self._each(by_grid):
            total = inc_subtensor(total[index], dy * dimshuffle(change, (0, 1, 2, "x")))
        return dimshuffle(total, (0, 3, 1, 2))

    def bent(self, by_grid: Tensor, dy: Tensor) -> Tensor:
        """Return the gradient of ``(dy * moved(by_grid)).sum()`` by the grid.

        Samples are linear in each coordinate, so that only their product has a second derivative.
        """
        dy = dimshuffle(dy, (0, 2, 3, 1))
        parts = [
            sum_(self.images[index] * dy, axis=3) * both for index, _, both in self._each(by_grid)
        ]
        total = reduce(add, parts)
        return stack([by_grid[..., 1] * total, by_grid[..., 0] * total], axis=3)
