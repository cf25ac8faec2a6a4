"""How convolutions and pooling run in C."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from enum import IntEnum
from typing import Any

from opwise.config import config
from opwise.graph.apply import Apply
from opwise.graph.variable import Constant, Variable
from opwise.linkers.csteps import broadcast_mask, elementwise_ns
from opwise.linkers.kernels import Kernels
from opwise.linkers.lowering import CStep, c_lowering
from opwise.linkers.opwise_c import conv_algorithm
from opwise.linkers.stepparams import pack
from opwise.tensor.conv.epilogue import ConvElemwise
from opwise.tensor.conv.geometry import border_along, pads
from opwise.tensor.conv.ops import (
    AbstractConv,
    AbstractConv_gradInputs,
    AbstractConv_gradWeights,
    BaseAbstractConv,
)
from opwise.tensor.conv.pool import MODES, AveragePoolGrad, MaxPoolGrad, Pool

#: the algorithms of csupport/conv_forward.h
ALGORITHMS = ("model", "image", "direct", "patches", "winograd", "fft", "scatter", "measure")
_plain_sums: ContextVar[bool] = ContextVar("opwise_plain_sums", default=False)
#: the kinds of steps that elementwise work may follow: see csupport/conv_epilogue.h
_FOLLOWED = (
    "conv", "conv_images", "conv_groups", "conv_groups_images", "conv_unshared",
    "conv_unshared_images",
)  # fmt: skip


class Border(IntEnum):
    """How an image is padded: by the pads, or as much as a mode says."""

    PADS = 0
    FULL = 1
    HALF = 2


@dataclass(frozen=True, kw_only=True)
class ConvStep(CStep):
    """Convolutions and their gradients; numbers by threes are along the spatial axes."""

    groups: int
    #: whether kernels are turned round
    flip: bool
    border: Border
    strides: tuple[int, int, int]
    dilation: tuple[int, int, int]
    #: before and behind, along each axis
    pads: tuple[int, int, int, int, int, int]
    #: spatial axes
    axes: int
    #: whether kernels have weights of their own for each place
    unshared: bool
    #: the algorithm to take if possible
    algorithm: int
    #: those that round otherwise and may be taken: see ow_conv_may
    allowed: int


@dataclass(frozen=True, kw_only=True)
class ConvThenStep(CStep):
    """A convolution, and elementwise work on what it gives."""

    kind: str = "conv_then"
    #: about how many nanoseconds an element of the elementwise work takes
    nanoseconds: float
    #: which of ow_then_runs runs the convolution
    of: int
    #: the output that it writes to, and the input of the loop that this is
    output: int
    input: int
    #: the step's input that is the loop's first other one
    others: int
    #: for each input of the loop the mask of its broadcastable dimensions
    masks: tuple[int, ...]
    convolution: ConvStep


@c_lowering(AbstractConv)
def forward(node: Apply, kernels: Kernels) -> CStep | None:
    op = node.op
    if op.unshared:
        return _conv("conv_unshared", node)
    return _conv("conv_groups" if op.num_groups > 1 else "conv", node)


@c_lowering(AbstractConv_gradWeights)
def by_kernels(node: Apply, kernels: Kernels) -> CStep | None:
    return _conv("conv_unshared_kernels" if node.op.unshared else "conv_kernels", node)


@c_lowering(AbstractConv_gradInputs)
def by_images(node: Apply, kernels: Kernels) -> CStep | None:
    op = node.op
    if op.unshared:
        return _conv("conv_unshared_images", node)
    return _conv("conv_groups_images" if op.num_groups > 1 else "conv_images", node)


@c_lowering(ConvElemwise)
def with_elementwise_work(node: Apply, kernels: Kernels) -> CStep | None:
    conv, mapped = node.op.parts(node)
    lower = by_images if isinstance(conv.op, AbstractConv_gradInputs) else forward
    step, patterns = lower(conv, kernels), [var.type.broadcastable for var in mapped.inputs]
    # what is one number along the spatial axes is one number in each call of the loop
    numbers = [i for i, pattern in enumerate(patterns) if all(pattern[2:])]
    loop = kernels.elemwise(
        mapped.op.scalar_op,
        [var.type.dtype for var in mapped.inputs],
        [var.type.dtype for var in mapped.outputs],
        numbers,
        (),
    )
    if not isinstance(step, ConvStep) or loop is None:
        return None
    (result,) = conv.outputs
    return ConvThenStep(
        nanoseconds=elementwise_ns(mapped, mapped.outputs),
        of=_FOLLOWED.index(step.kind),
        output=next(k for k, out in enumerate(node.outputs) if out.type == result.type),
        input=node.op.index,
        others=node.op.n_operands,
        masks=tuple(map(broadcast_mask, patterns)),
        convolution=step,
        loop=loop,
    )


@contextmanager
def plain_sums() -> Iterator[None]:
    """Within a ``with`` block, lower convolutions to steps that never use Winograd's algorithm or
    Fourier transforms."""
    token = _plain_sums.set(True)
    try:
        yield
    finally:
        _plain_sums.reset(token)


def algorithm(node: Apply, inputs: Sequence[Any], outputs: Sequence[Any]) -> str | None:
    """Return the name of the algorithm with which an Apply of a convolution, or of one of its
    gradients, runs in C under the present flags; None for any other Apply, and for groups or
    kernels of their own for each place, which have algorithms of their own.

    inputs, outputs: the shapes of its arguments and results, as ``Op.flops`` gets them. The name is
    one of ALGORITHMS: "image", "direct", "patches", "winograd", "fft", or "scatter", which computes
    what each place of a result adds to the image. C chooses by the same rule in each call; an image
    whose rows are not contiguous never runs as "image". Where the flag ``conv.algo`` asks to
    measure, it is the algorithm that the model of costs prefers.
    """
    if isinstance(node.op, ConvElemwise):
        n = node.op.n_operands
        node, inputs, outputs = node.op.parts(node)[0], inputs[:n], outputs[:1]
    op = node.op
    if not isinstance(op, BaseAbstractConv) or op.unshared or op.num_groups > 1:
        return None
    by_images = isinstance(op, AbstractConv_gradInputs)
    by_kernels = isinstance(op, AbstractConv_gradWeights)
    step = _conv("conv_kernels" if by_kernels else "conv_images" if by_images else "conv", node)
    if step is None:
        return None
    image, kernel = outputs[0] if by_images else inputs[0], inputs[0 if by_images else 1]
    if by_kernels:
        kernel = outputs[0]
    f64 = node.outputs[0].type.dtype == "float64"
    return conv_algorithm(step.kind, pack(step), _lengths(image), _lengths(kernel), f64)


def _lengths(shape: Sequence[int]) -> list[int]:
    """Return a shape as if it had three spatial axes."""
    return [*shape[:2], *[1] * (5 - len(shape)), *shape[2:]]


def _conv(kind: str, node: Apply) -> ConvStep | None:
    op: BaseAbstractConv = node.op
    if node.outputs[0].type.dtype not in ("float32", "float64"):
        return None
    missing = 3 - op.convdim
    border = [(0, 0)] * 3
    if isinstance(op.border_mode, tuple):
        border[missing:] = [pads(border_along(op.border_mode, a), 1) for a in range(op.convdim)]
    named = op.border_mode.upper() if isinstance(op.border_mode, str) else ""
    (top, bottom), (left, right), (first, last) = border
    return ConvStep(
        kind,
        groups=op.num_groups,
        flip=op.filter_flip,
        border=Border.__members__.get(named, Border.PADS),
        strides=_three(op.subsample),
        dilation=_three(op.filter_dilation),
        pads=(top, bottom, left, right, first, last),
        axes=op.convdim,
        unshared=op.unshared,
        algorithm=ALGORITHMS.index(config.conv.algo),
        allowed=0 if _plain_sums.get() else config.conv.winograd + 2 * config.conv.fft,
    )


@dataclass(frozen=True, kw_only=True)
class PoolStep(CStep):
    """Pooling and its gradients. Arrays are along three axes, of which the last ones are pooled."""

    #: how many axes are pooled
    axes: int
    #: which of MODES
    mode: int
    #: whether windows that reach beyond the image are left out
    within: bool
    lengths: tuple[int, int, int]
    steps: tuple[int, int, int]
    #: zeros before and behind
    pads: tuple[int, int, int]


@c_lowering(Pool)
def pool(node: Apply, kernels: Kernels) -> CStep | None:
    return _pool("pool", node, node.inputs[:1])


@c_lowering(MaxPoolGrad, AveragePoolGrad)
def pool_gradient(node: Apply, kernels: Kernels) -> CStep | None:
    return _pool("pool_gradient", node, node.inputs[:-3])


def _pool(kind: str, node: Apply, arrays: list[Variable]) -> CStep | None:
    op, numbers = node.op, node.inputs[-3:]
    dtypes = {var.type.dtype for var in (*arrays, *node.outputs)}
    if dtypes not in ({"float32"}, {"float64"}) or not 1 <= op.ndim <= 3:
        return None
    known: list[Any] = [var.data for var in numbers if isinstance(var, Constant)]
    if [len(data) for data in known] != [op.ndim] * 3:
        return None
    lengths, steps, pads = (tuple(map(int, data)) for data in known)
    padded = max(pads) and not op.ignore_border
    if (
        min(*lengths, *steps) < 1
        or min(pads) < 0
        or padded
        or any(p >= n for p, n in zip(pads, lengths, strict=True))
    ):
        return None  # perform raises the error
    return PoolStep(
        kind,
        axes=op.ndim,
        mode=MODES.index(op.mode),
        within=op.ignore_border,
        lengths=_three(lengths),
        steps=_three(steps),
        pads=_three(pads, 0),
    )


def _three(numbers: tuple[int, ...], missing: int = 1) -> tuple[int, int, int]:
    """Return numbers of up to three axes as those of three."""
    first, second, third = (missing,) * (3 - len(numbers)) + numbers
    return first, second, third
