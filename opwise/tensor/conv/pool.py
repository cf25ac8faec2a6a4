"""Pooling: the maximum, the sum or the average of windows that slide over images and volumes."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from functools import reduce
from itertools import starmap
from math import prod
from typing import Any

import numpy as np

from opwise.graph import costs
from opwise.graph.apply import Apply
from opwise.graph.costs import ArrayShapes
from opwise.graph.null import disconnected_type
from opwise.graph.op import Lengths
from opwise.graph.opmethods import shapes_of
from opwise.graph.variable import Constant, Var, Variable
from opwise.scalar import dtypes
from opwise.tensor.conv.geometry import as_flag, n_met
from opwise.tensor.elemwise import elemwise, zeros_like
from opwise.tensor.type import TensorType, tensor_type
from opwise.tensor.variable import Tensor, TensorLike, TensorOp, as_tensor_variable

__all__ = [
    "AveragePoolGrad",
    "DownsampleFactorMaxGradGrad",
    "MaxPoolGrad",
    "MaxPoolRop",
    "Pool",
    "PoolGrad",
    "max_pool_2d",
    "max_pool_2d_same_size",
    "pool_2d",
    "pool_3d",
]

MODES = ("max", "sum", "average_inc_pad", "average_exc_pad")


def pool_2d(
    input: TensorLike,
    ws: Any = None,
    ignore_border: bool | None = None,
    stride: Any = None,
    pad: Any = (0, 0),
    mode: str = "max",
    ds: Any = None,
    st: Any = None,
    padding: Any = None,
) -> Tensor:
    """Return the maxima, sums or averages of windows over the last two axes.

    input: two dimensions or more. ws: rows and columns of a window. stride: steps of the window
    (default: ws). pad: zeros before and behind the image along each axis, fewer than ws; these are
    no part of maxima. All of them are two integers or a vector of integers. ignore_border: leave
    out windows that reach beyond the image; pad needs it. mode: 'max', 'sum', 'average_inc_pad' or
    'average_exc_pad', which averages over elements with or without those of pad. ds, st, padding:
    old names of ws, stride and pad.

    The result has the dtype of input and, with ignore_border, (length + 2 pad - ws) // stride + 1
    rows and columns. Raises ValueError for other modes, without ws, for two names of one argument
    and for lengths below 1, TypeError for lengths that are no integers; NotImplementedError for
    fewer dimensions, for pad without ignore_border and for a pad that is too large; ValueError at
    run time for maxima of bools and complex numbers.
    """
    return _pool(2, input, ws, ignore_border, stride, pad, mode, ds, st, padding)


def pool_3d(
    input: TensorLike,
    ws: Any = None,
    ignore_border: bool | None = None,
    stride: Any = None,
    pad: Any = (0, 0, 0),
    mode: str = "max",
    ds: Any = None,
    st: Any = None,
    padding: Any = None,
) -> Tensor:
    """Return the maxima, sums or averages of windows over the last three axes, as ``pool_2d``.

    input: three dimensions or more; ws, stride and pad are three integers. The result has the dtype
    of input and lengths as those of ``pool_2d``. Raises ValueError, TypeError and
    NotImplementedError as that does.
    """
    return _pool(3, input, ws, ignore_border, stride, pad, mode, ds, st, padding)


def _pool(
    ndim: int,
    input: TensorLike,
    ws: Any,
    ignore_border: bool | None,
    stride: Any,
    pad: Any,
    mode: str,
    ds: Any,
    st: Any,
    padding: Any,
) -> Tensor:
    ws = _renamed("ds", ds, "ws", ws)
    stride = _renamed("st", st, "stride", stride)
    default = isinstance(pad, tuple) and all(isinstance(p, int) and not p for p in pad)
    pad = _renamed("padding", padding, "pad", None if default and len(pad) == ndim else pad)
    if ws is None:
        raise ValueError(f"pool_{ndim}d needs ws, the {ndim} lengths of a window")
    input = as_tensor_variable(input)
    if input.type.ndim < ndim:
        raise NotImplementedError(
            f"pool_{ndim}d needs {ndim} dimensions or more, not {input.type.ndim}"
        )
    if ignore_border is None:
        warnings.warn(
            f"pool_{ndim}d keeps windows that reach beyond the image: say ignore_border=False, or "
            "ignore_border=True to leave them out",
            stacklevel=3,
        )
        ignore_border = False
    return Pool(ignore_border, mode, ndim)(input, ws, stride, pad)


def _renamed(old: str, given: Any, new: str, value: Any) -> Any:
    """Return an argument that may have been given by its old name."""
    if given is None:
        return value
    if value is not None:
        raise ValueError(f"{old} is an old name of {new}: give only {new}")
    warnings.warn(f"{old} is an old name: use {new}", stacklevel=4)
    return given


def max_pool_2d(
    input: TensorLike,
    ds: Any,
    ignore_border: bool | None = None,
    st: Any = None,
    padding: Any = (0, 0),
    mode: str = "max",
) -> Tensor:
    """Return ``pool_2d`` under its old name, with the old names of its arguments.

    Shape and dtype of the result are those of ``pool_2d``. Raises ValueError, TypeError and
    NotImplementedError for the same arguments.
    """
    return _pool(2, input, ds, ignore_border, st, padding, mode, None, None, None)


def max_pool_2d_same_size(input: TensorLike, patch_size: Any) -> Tensor:
    """Return the input with zeros for all but the maxima of windows that lie side by side.

    patch_size: rows and columns of a window. The result has the shape and dtype of input; elements
    outside all windows are 0. Raises TypeError for less than two dimensions and for a patch_size
    that is not of integers, ValueError for one that is not two of 1 or more.
    """
    maxima = Pool(True)(input, patch_size)
    return MaxPoolGrad(True)(input, maxima, maxima, patch_size)


class _Windows:
    """Where the windows of a pooling lie, for arrays of one shape."""

    def __init__(
        self, lengths: Sequence[int], ws: Any, stride: Any, pad: Any, ignore_border: bool
    ) -> None:
        self.lengths = [int(n) for n in lengths]
        self.ws, self.stride, self.pad = ([int(n) for n in v] for v in (ws, stride, pad))
        if max(self.pad) and not ignore_border:
            raise NotImplementedError("padding works only with ignore_border=True")
        if any(p >= w for p, w in zip(self.pad, self.ws, strict=True)):
            raise NotImplementedError(
                f"padding must be smaller than windows: {self.pad} zeros, windows of {self.ws}"
            )
        self.counts = list(map(int, output_lengths(lengths, ws, stride, pad, ignore_border)))

    def padded(self, x: np.ndarray, fill: Any) -> np.ndarray:
        """Return an array with a border, so that all windows lie inside."""
        n = len(self.ws)
        ends = [
            max((c - 1) * s + w - p - length, 0)
            for c, s, w, p, length in zip(
                self.counts, self.stride, self.ws, self.pad, self.lengths, strict=True
            )
        ]
        border = [(0, 0)] * (x.ndim - n) + list(zip(self.pad, ends, strict=True))
        return np.pad(x, border, constant_values=fill)

    def inside(self, padded: np.ndarray) -> np.ndarray:
        """Return a padded array without its border."""
        parts: Any = [slice(p, p + n) for p, n in zip(self.pad, self.lengths, strict=True)]
        return padded[(..., *parts)]

    def places(self) -> Iterator[tuple[Any, ...]]:
        """Yield for each element of a window the part of a padded array that all windows meet."""
        for place in np.ndindex(*self.ws):
            ends = [
                p + (c - 1) * s + 1 if c else p
                for p, c, s in zip(place, self.counts, self.stride, strict=True)
            ]
            yield (..., *starmap(slice, zip(place, ends, self.stride, strict=True)))

    def sizes(self, mode: str) -> np.ndarray:
        """Return the number of elements that an average divides the sum of each window by."""
        sizes = []
        for w, s, p, n, count in zip(
            self.ws, self.stride, self.pad, self.lengths, self.counts, strict=True
        ):
            starts = np.arange(count) * s
            ends = np.minimum(starts + w, n + 2 * p)
            if mode == "average_exc_pad":
                starts, ends = np.maximum(starts, p), np.minimum(ends, n + p)
            sizes.append(ends - starts)
        return reduce(np.multiply.outer, sizes)


def output_lengths(
    lengths: Sequence[Any], ws: Any, stride: Any, pad: Any, ignore_border: bool
) -> list[Any]:
    """Return the numbers of windows along each axis; numbers or variables."""
    found = []
    for i, length in enumerate(lengths):
        w, s, padded = ws[i], stride[i], length + 2 * pad[i]
        if ignore_border:
            found.append(_maximum((padded - w) // s + 1, 0))
        else:
            # the last window is the first that reaches the end, and begins inside
            to_end = _maximum((padded - w + s - 1) // s, 0) + 1
            found.append(_minimum(to_end, (padded - 1) // s + 1))
    return found


def _check_numbers(name: str, numbers: np.ndarray, ndim: int) -> None:
    """Raise ValueError unless ws, stride or pad has a number for each axis, none too small."""
    least = 0 if name == "pad" else 1
    if numbers.shape != (ndim,) or numbers.min() < least:
        raise ValueError(f"{name} must be {ndim} integers, {least} or more, not {numbers.tolist()}")


def _alternatives(values: Sequence[str]) -> str:
    *others, last = map(repr, values)
    return f"{', '.join(others)} or {last}" if others else last


def _maximum(a: Any, b: Any) -> Any:
    return max(a, b) if isinstance(a, int | np.integer) else elemwise("maximum")(a, b)


def _minimum(a: Any, b: Any) -> Any:
    whole = int | np.integer
    both = isinstance(a, whole) and isinstance(b, whole)
    return min(a, b) if both else elemwise("minimum")(a, b)


def _least(dtype: np.dtype) -> Any:
    """Return the number of which all others of a dtype are maxima."""
    return -np.inf if dtype.kind == "f" else np.iinfo(dtype).min


def _as_numbers(name: str, value: TensorLike, n: int) -> Tensor:
    """Return the lengths, steps or pads of windows as a vector. Raises TypeError or ValueError."""
    if isinstance(value, tuple | list):
        for entry in value:
            whole = isinstance(entry, int | np.integer) and not isinstance(entry, bool | np.bool_)
            if not (whole or isinstance(entry, Variable | np.ndarray)):
                raise TypeError(f"{name} must be {n} integers, not {value!r}")
    elif not isinstance(value, Variable | np.ndarray):
        raise TypeError(f"{name} must be {n} integers, not {value!r}")
    var = as_tensor_variable(value)
    if var.type.ndim != 1 or var.type.dtype not in dtypes.DISCRETE or var.type.dtype == "bool":
        raise TypeError(f"{name} must be {n} integers, not {var.type}")
    if isinstance(var, Constant):
        _check_numbers(name, var.data, n)
    elif isinstance(value, tuple | list) and len(value) != n:
        raise ValueError(f"{name} must be {n} integers, not {len(value)}")
    return var


def _listed(numbers: Any) -> tuple[int, ...]:
    return tuple(map(int, numbers))


class _PoolOp(TensorOp):
    """Base of pooling and its derivatives. Inputs: arrays, then ws, stride and pad.

    ignore_border, mode, ndim: see ``pool_2d``; 'max_deterministic' is 'max'.
    """

    __props__ = ("ignore_border", "mode", "ndim")
    modes: Sequence[str] = MODES
    #: the names of the arrays
    arrays: tuple[str, ...] = ("x",)

    def __init__(
        self, ignore_border: bool = False, mode: str = "max", ndim: int = 2, openmp: Any = None
    ) -> None:
        mode = "max" if mode == "max_deterministic" else mode
        if mode not in self.modes:
            raise ValueError(f"mode must be {_alternatives(self.modes)}, not {mode!r}")
        if isinstance(ndim, bool) or not isinstance(ndim, int | np.integer) or ndim < 1:
            raise ValueError(f"ndim must be an integer, 1 or more, not {ndim!r}")
        self.ignore_border = as_flag("ignore_border", ignore_border)
        self.mode, self.ndim = mode, int(ndim)

    def make_node(self, *inputs: TensorLike, stride: Any = None, pad: Any = None) -> Apply:
        n, nd = len(self.arrays), self.ndim
        ws, *rest = inputs[n:]
        stride = rest[0] if rest and rest[0] is not None else stride
        pad = rest[1] if len(rest) > 1 and rest[1] is not None else pad
        stride = ws if stride is None else stride
        pad = (0,) * nd if pad is None else pad
        found = [as_tensor_variable(value) for value in inputs[:n]]
        for name, var in zip(self.arrays, found, strict=True):
            if var.type.ndim < nd:
                raise TypeError(
                    f"{name} must have {nd} dimensions or more for a pooling, not {var.type.ndim}"
                )
        numbers = [
            _as_numbers(name, value, nd)
            for name, value in (("ws", ws), ("stride", stride), ("pad", pad))
        ]
        lengths, _, zeros = (var.data if isinstance(var, Constant) else None for var in numbers)
        if zeros is not None and max(zeros) and not self.ignore_border:
            raise NotImplementedError("padding works only with ignore_border=True")
        if zeros is not None and lengths is not None and (zeros >= lengths).any():
            raise NotImplementedError(
                f"padding must be smaller than windows: pad is {_listed(zeros)}, "
                f"ws {_listed(lengths)}"
            )
        out = self.out_type(*(var.type for var in found))
        return Apply(self, [*found, *numbers], [out.make_variable()])

    def out_type(self, *types: Any) -> TensorType:
        """Return the type of the result."""
        result: TensorType = types[0]
        return result

    def perform(self, node: Apply, inputs: Any, output_storage: Any) -> None:
        n = len(self.arrays)
        windows = self.windows(inputs[0].shape, *inputs[n:])
        output_storage[0][0] = self.compute(windows, *inputs[:n])

    def windows(self, shape: Sequence[int], ws: Any, stride: Any, pad: Any) -> _Windows:
        """Return where windows lie in images of a shape. Raises ValueError for bad numbers."""
        for name, numbers in (("ws", ws), ("stride", stride), ("pad", pad)):
            _check_numbers(name, np.asarray(numbers), self.ndim)
        return _Windows(shape[-self.ndim :], ws, stride, pad, self.ignore_border)

    def compute(self, windows: _Windows, *arrays: np.ndarray) -> np.ndarray:
        raise NotImplementedError

    #: how often an element of an array is compared or added for each window that it is in
    per_element = 2

    def apply_flops(self, node: Apply, inputs: ArrayShapes, outputs: ArrayShapes) -> int | None:
        """Return how many numbers are added and compared; averages are divisions as well.

        None if a parameter is not constant.
        """
        windows = self._windows_of(node, inputs[0])
        if windows is None:
            return None
        n_windows = prod(windows.counts)
        met = self.per_element * int(windows.sizes("average_exc_pad").sum())
        if isinstance(self, Pool):
            met -= n_windows  # the first element of a window is taken as it is
        divided = n_windows if self.mode.startswith("average") else 0
        result: int = prod(inputs[0][: -self.ndim]) * (met + divided)
        return result

    def traffic(
        self, node: Apply, inputs: costs.ArrayLayouts, outputs: costs.ArrayLayouts
    ) -> costs.Traffic:
        """Return the bytes of all operands, but for elements that are in no window."""
        counts = costs.each_once(self, node, inputs, outputs)
        shapes: Any = [None if a is None else a.shape for a in inputs]
        windows = None if counts is None else self._windows_of(node, shapes[0])
        if counts is None or windows is None:
            return None
        met = [
            n_met(n, w, count, p, s)
            for n, w, count, p, s in zip(
                windows.lengths, windows.ws, windows.counts, windows.pad, windows.stride,
                strict=True,
            )
        ]  # fmt: skip
        read, written = counts
        for i in self.read_in_windows:
            whole = prod(shapes[i][-self.ndim :])
            read[i] = read[i] // whole * prod(met) if whole else 0
        for i in self.unread:
            read[i] = 0
        return read, written

    #: the arrays of which only what is in windows is read
    read_in_windows: tuple[int, ...] = (0,)
    #: the arrays of which only the shape matters
    unread: tuple[int, ...] = ()

    def _windows_of(self, node: Apply, shape: Any) -> _Windows | None:
        """Return the windows of an Apply on arrays of a shape; None if they are not constant."""
        numbers: list[Any] = [getattr(var, "data", None) for var in node.inputs[-3:]]
        if any(n is None for n in numbers):
            return None
        ws, stride, pad = numbers
        return _Windows(shape[-self.ndim :], ws, stride, pad, self.ignore_border)

    infer_shape = shapes_of(0)

    def connection_pattern(self, node: Apply) -> list[list[bool]]:
        n = len(self.arrays)
        return [[i < n] for i in range(n + 3)]

    def with_disconnected(self, *gradients: Any) -> list[Any]:
        """Return gradients with those by ws, stride and pad, which are not connected."""
        return [*gradients, *(disconnected_type.make_variable() for _ in range(3))]


class Pool(_PoolOp):
    """The maxima, sums or averages of windows."""

    per_element = 1

    def out_type(self, *types: TensorType) -> TensorType:
        return _pooled_type(types[0], self.ndim)

    @staticmethod
    def out_shape(
        imgshape: Sequence[Any],
        ws: Any = None,
        ignore_border: bool = False,
        stride: Any = None,
        pad: Any = None,
        ndim: int = 2,
        ds: Any = None,
        st: Any = None,
        padding: Any = None,
    ) -> list[Any]:
        """Return the shape of the result; imgshape: that of the input, numbers or variables."""
        ws, stride = _renamed("ds", ds, "ws", ws), _renamed("st", st, "stride", stride)
        pad = _renamed("padding", padding, "pad", pad)
        if ws is None:
            raise ValueError("out_shape needs ws, the lengths of a window")
        if len(imgshape) < ndim:
            raise TypeError(f"imgshape must have at least {ndim} dimensions")
        stride = ws if stride is None else stride
        pad = (0,) * ndim if pad is None else pad
        lengths = list(imgshape[-ndim:])
        return [*imgshape[:-ndim], *output_lengths(lengths, ws, stride, pad, ignore_border)]

    def infer_shape(self, node: Apply, shapes: Sequence[Lengths]) -> Sequence[Lengths]:
        return [_pooled_shape(node, shapes[0])]

    def compute(self, windows: _Windows, *arrays: np.ndarray) -> Any:
        (x,) = arrays
        if self.mode == "max":
            padded = windows.padded(x, _least(x.dtype))
            return reduce(np.maximum, (padded[part] for part in windows.places()))
        padded = windows.padded(x, 0)
        total = reduce(np.add, (padded[part] for part in windows.places()))
        if self.mode != "sum":
            total = total / windows.sizes(self.mode)
        return np.asarray(total, x.dtype)

    def L_op(
        self,
        inputs: Sequence[Tensor],
        outputs: Sequence[Tensor],
        output_gradients: Sequence[Tensor],
    ) -> Sequence[Var]:
        (x, *numbers), (gz,) = inputs, output_gradients
        if self.mode == "max":
            gx = MaxPoolGrad(self.ignore_border, ndim=self.ndim)(x, outputs[0], gz, *numbers)
        else:
            gx = AveragePoolGrad(self.ignore_border, self.mode, self.ndim)(x, gz, *numbers)
        return self.with_disconnected(gx)

    def R_op(self, inputs: Sequence[Tensor], eval_points: Sequence[Var]) -> Sequence[Var]:
        (x, *numbers), moved = inputs, eval_points[0]
        if moved is None:
            return [None]
        if self.mode == "max":
            return [MaxPoolRop(self.ignore_border, ndim=self.ndim)(x, moved, *numbers)]
        return [self(moved, *numbers)]


def _pooled_type(x: Any, ndim: int) -> TensorType:
    """Return the type of a pooling of arrays of a type."""
    return tensor_type(x.dtype, (*x.broadcastable[: x.ndim - ndim], *[False] * ndim))


def _pooled_shape(node: Apply, shape: Any) -> list[Any]:
    """Return the shape of the result of an Apply that pools an array of a shape."""
    ws, stride, pad = node.inputs[-3:]
    op = node.op
    return Pool.out_shape(shape, ws, op.ignore_border, stride, pad, op.ndim)


class PoolGrad(_PoolOp):
    """Base of the gradients of pooling by its input."""


class MaxPoolGrad(PoolGrad):
    """Adds the gradient by each maximum to all elements of its window that are equal to it."""

    modes = ("max",)
    arrays = ("x", "maxout", "gz")

    def __init__(
        self, ignore_border: bool = False, ndim: int = 2, openmp: Any = None, mode: str = "max"
    ) -> None:
        super().__init__(ignore_border, mode, ndim)

    def compute(self, windows: _Windows, *arrays: np.ndarray) -> Any:
        x, maxima, gz = arrays
        seen, total = windows.padded(x, 0), windows.padded(np.zeros_like(x), 0)
        for part in windows.places():
            total[part] += np.where(seen[part] == maxima, gz, 0).astype(x.dtype, copy=False)
        return windows.inside(total)

    def grad(self, inputs: Sequence[Tensor], output_gradients: Sequence[Tensor]) -> Sequence[Var]:
        (x, maxima, _, *numbers), (ggx,) = inputs, output_gradients
        again = DownsampleFactorMaxGradGrad(self.ignore_border, ndim=self.ndim)
        return self.with_disconnected(
            zeros_like(x), zeros_like(maxima), again(x, maxima, ggx, *numbers)
        )


class AveragePoolGrad(PoolGrad):
    """Adds the gradient by each sum or average to all elements of its window."""

    modes = MODES[1:]
    arrays = ("x", "gz")
    per_element, read_in_windows, unread = 1, (), (0,)

    def __init__(
        self, ignore_border: bool = False, mode: str = "average_inc_pad", ndim: int = 2
    ) -> None:
        super().__init__(ignore_border, mode, ndim)

    def compute(self, windows: _Windows, *arrays: np.ndarray) -> Any:
        x, gz = arrays
        share = gz if self.mode == "sum" else gz / windows.sizes(self.mode)
        total = windows.padded(np.zeros_like(x), 0)
        for part in windows.places():
            total[part] += share.astype(x.dtype, copy=False)
        return windows.inside(total)

    def grad(self, inputs: Sequence[Tensor], output_gradients: Sequence[Tensor]) -> Sequence[Var]:
        (x, _, *numbers), (ggx,) = inputs, output_gradients
        pool = Pool(self.ignore_border, self.mode, self.ndim)
        return self.with_disconnected(zeros_like(x), pool(ggx, *numbers))


class DownsampleFactorMaxGradGrad(_PoolOp):
    """Sums, for each window, the elements of an array where the image is equal to the maximum.

    It is the gradient of ``MaxPoolGrad`` by gz.
    """

    modes = ("max",)
    arrays = ("x", "maxout", "gz")
    read_in_windows = (0, 2)

    def out_type(self, *types: TensorType) -> TensorType:
        return types[1]

    infer_shape = shapes_of(1)

    def compute(self, windows: _Windows, *arrays: np.ndarray) -> Any:
        x, maxima, ggx = arrays
        seen, moved = windows.padded(x, 0), windows.padded(ggx, 0)
        total = np.zeros_like(maxima)
        for part in windows.places():
            total += np.where(seen[part] == maxima, moved[part], 0).astype(x.dtype, copy=False)
        return total

    def grad(self, inputs: Sequence[Tensor], output_gradients: Sequence[Tensor]) -> Sequence[Var]:
        (x, maxima, _, *numbers), (gz,) = inputs, output_gradients
        back = MaxPoolGrad(self.ignore_border, ndim=self.ndim)
        return self.with_disconnected(
            zeros_like(x), zeros_like(maxima), back(x, maxima, gz, *numbers)
        )


class MaxPoolRop(_PoolOp):
    """The elements of an array that lie where the image has the first maximum of each window."""

    modes = ("max",)
    arrays = ("x", "eval_point")
    per_element, read_in_windows = 1, (0, 1)

    def out_type(self, *types: TensorType) -> TensorType:
        return _pooled_type(types[1], self.ndim)

    def infer_shape(self, node: Apply, shapes: Sequence[Lengths]) -> Sequence[Lengths]:
        return [_pooled_shape(node, shapes[0])]

    def compute(self, windows: _Windows, *arrays: np.ndarray) -> Any:
        x, moved = windows.padded(arrays[0], _least(arrays[0].dtype)), arrays[1]
        moved = windows.padded(moved, 0)
        first, *others = windows.places()
        best, found = x[first].copy(), moved[first].copy()
        for part in others:
            better = x[part] > best
            best[better], found[better] = x[part][better], moved[part][better]
        return found
