"""Lowerings of convolutions and of pooling."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

from opwise.gpu.kernels import pooling
from opwise.gpu.kernels.convolution import Convolution, Product, Products
from opwise.gpu.kernels.kernel import DeviceLimits, Implementation, Kernel, Layout, Plan, PlanInput
from opwise.gpu.kernels.pooling import KINDS, Pooling
from opwise.gpu.lowering import lowers_to_kernels
from opwise.graph.apply import Apply
from opwise.scalar import dtypes
from opwise.tensor.conv.ops import (
    AbstractConv,
    AbstractConv_gradInputs,
    AbstractConv_gradWeights,
)
from opwise.tensor.conv.pool import (
    AveragePoolGrad,
    DownsampleFactorMaxGradGrad,
    MaxPoolGrad,
    MaxPoolRop,
    Pool,
)

# --- convolutions ---------------------------------------------------------------------------------

#: lengths that are guessed where a convolution does not know them, to choose the kernels that are
#: compiled with the function
_BATCH, _CHANNELS, _LENGTH, _TAPS = 64, 64, 32, 3
#: (image, kernel, result), as positions among the inputs; the output is the other
_IMAGE, _KERNEL, _RESULT = range(3)

_products = cache(Products)


@lowers_to_kernels(AbstractConv)
def lower_convolution(node: Apply) -> Implementation | str:
    return _convolution(node, (_IMAGE, _KERNEL), _RESULT, Convolution.forward, a=1)


@lowers_to_kernels(AbstractConv_gradWeights)
def lower_gradient_by_kernels(node: Apply) -> Implementation | str:
    # what is adjacent in images and in the gradient is added up
    order = _IMAGE, _RESULT
    return _convolution(node, order, _KERNEL, Convolution.by_kernels, a=1, along_r=True)


@lowers_to_kernels(AbstractConv_gradInputs)
def lower_gradient_by_images(node: Apply) -> Implementation | str:
    return _convolution(node, (_KERNEL, _RESULT), _IMAGE, Convolution.by_images, a=0)


def _convolution(
    node: Apply,
    operands: tuple[int, int],
    output: int,
    products_of: Callable[..., list[Product]],
    a: int,
    along_r: bool = False,
) -> Implementation | str:
    """Lower a convolution or a gradient of one.

    operands, output: which of images, kernels and results its first inputs and its output are.
    a: the position of the plain factor among the inputs. along_r: see ``Products``.
    """
    op: Any = node.op
    dtype = node.outputs[0].type.dtype
    if dtype not in dtypes.FLOATS:
        return f"no kernel convolves {dtype}"
    convolution = Convolution(op.geometry, op.filter_flip, op.num_groups, op.unshared)
    products = _products(dtype, op.convdim, a, along_r, not op.unshared)

    def shapes(inputs: list[PlanInput]) -> list[tuple[int, ...]]:
        first, second, *lengths = inputs
        return [op.result_shape(first.shape, second.shape, *lengths)]

    def plan(inputs: list[PlanInput], outputs: list[Layout], limits: DeviceLimits) -> Plan:
        (z,) = outputs
        return products.plan(products_of(convolution, *inputs[:2], z), z.size, limits)

    usual = _usual_layouts(op, node.outputs[0].type.numpy_dtype.itemsize)
    usual_plan = plan([usual[k] for k in operands], [usual[output]], DeviceLimits())
    host = tuple(range(2, len(node.inputs)))
    return Implementation(products.kernels, shapes, plan, host, expected=_kernels_of(usual_plan))


def _kernels_of(plan: Plan) -> tuple[Kernel, ...]:
    return tuple(dict.fromkeys(launch.kernel for launch in plan.launches))


def _usual_layouts(op: Any, itemsize: int) -> list[Layout]:
    """Return layouts of images, kernels and results, with all lengths that a convolution knows."""
    n = op.convdim
    places = [_LENGTH] * n if op.unshared else []
    channels = op.imshp[1] // op.num_groups if op.imshp[1] else _CHANNELS
    kernel = _known(op.kshp, [_CHANNELS, *places, channels, *[_TAPS] * n])
    image = _known(op.imshp, [_BATCH, kernel[-n - 1] * op.num_groups, *[_LENGTH] * n])
    output = [max(1, length) for length in op.geometry.output(image[2:], kernel[-n:])]
    if op.unshared:
        kernel[1 : 1 + n] = output
    shapes = image, kernel, [image[0], kernel[0], *output]
    return [Layout.contiguous(shape, itemsize) for shape in shapes]


def _known(known: Sequence[int | None], guessed: list[int]) -> list[int]:
    return [g if k is None else k for k, g in zip(known, guessed, strict=True)]


# --- pooling --------------------------------------------------------------------------------------

_pooling = cache(Pooling)


@lowers_to_kernels(Pool)
def lower_pool(node: Apply) -> Implementation | str:
    return _pool(node, node.op.mode)


@lowers_to_kernels(MaxPoolGrad)
def lower_max_pool_grad(node: Apply) -> Implementation | str:
    return _pool(node, "max_grad")


@lowers_to_kernels(AveragePoolGrad)
def lower_average_pool_grad(node: Apply) -> Implementation | str:
    return _pool(node, f"{node.op.mode}_grad")


@lowers_to_kernels(DownsampleFactorMaxGradGrad)
def lower_max_pool_grad_grad(node: Apply) -> Implementation | str:
    return _pool(node, "sum_at_max")


@lowers_to_kernels(MaxPoolRop)
def lower_max_pool_rop(node: Apply) -> Implementation | str:
    return _pool(node, "first_of_max")


def _pool(node: Apply, kind: str) -> Implementation | str:
    """Lower a pooling or a derivative of one; kind: see ``pooling.KINDS``."""
    op: Any = node.op
    arrays = len(op.arrays)
    found = {v.type.dtype for v in (*node.inputs[:arrays], *node.outputs)}
    dtype = node.outputs[0].type.dtype
    if found != {dtype}:
        return f"no kernel pools arrays of several dtypes, {', '.join(sorted(found))}"
    if dtype not in (*dtypes.FLOATS, *dtypes.INTEGERS):
        return f"no kernel pools {dtype}"
    kernels = _pooling(kind, dtype, node.inputs[0].type.ndim, op.ndim)

    def of_windows(inputs: list[PlanInput]) -> tuple[pooling.Windows, tuple[int, ...]]:
        """Return where windows lie, and the shape of an array with an element for each."""
        images = inputs[0].shape
        w = op.windows(images, *inputs[arrays:])
        windows = pooling.Windows(*map(tuple, (w.ws, w.stride, w.pad, w.counts)))
        return windows, (*images[: -op.ndim], *w.counts)

    def shapes(inputs: list[PlanInput]) -> list[tuple[int, ...]]:
        images, (_, windows) = inputs[0].shape, of_windows(inputs)
        for name, like, layout in zip(op.arrays, KINDS[kind], inputs, strict=False):
            expected = images if like == "x" else windows
            if layout.shape != expected:
                raise ValueError(
                    f"{name} has shape {layout.shape}, but windows over an array of shape {images} "
                    f"need {expected}"
                )
        return [images if kernels.of_images else windows]

    def plan(inputs: list[PlanInput], outputs: list[Layout], limits: DeviceLimits) -> Plan:
        windows, _ = of_windows(inputs)
        return kernels.plan(inputs[0].shape, windows, inputs[:arrays], outputs[0], limits)

    host = tuple(range(arrays, len(node.inputs)))
    return Implementation(kernels.kernels, shapes, plan, host)
