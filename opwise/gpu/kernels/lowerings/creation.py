"""Lowerings of Ops that fill new arrays: ranges, matrices with a diagonal, and diagonals."""

from __future__ import annotations

import numpy as np

from opwise.gpu.kernels import cudatext, fill, views
from opwise.gpu.kernels.copies import Copies
from opwise.gpu.kernels.cudatext import ScalarProgram
from opwise.gpu.kernels.elemwise import ElementwiseKernels
from opwise.gpu.kernels.kernel import Array, Implementation, Layout, Plan
from opwise.gpu.kernels.lowerings.operands import unsupported
from opwise.gpu.lowering import lowers_to_kernels
from opwise.graph.apply import Apply
from opwise.scalar import dtypes
from opwise.tensor.creation import ARange, Eye, Tri, how_many
from opwise.tensor.diagonal import AllocDiag, ExtractDiag


@lowers_to_kernels(ARange)
def lower_arange(node: Apply) -> Implementation | str:
    dtype = node.outputs[0].type.dtype
    if not cudatext.has_text(dtype) or dtype == "bool":
        return f"there is no kernel for a range of {dtype}"
    kernel = fill.arange(dtype)

    def shapes(inputs):
        start, stop, step = (np.asarray(x).item() for x in inputs)
        if step == 0:
            raise ZeroDivisionError(f"arange({start}, {stop}, {step}): its step is zero")
        if all(isinstance(x, int) for x in (start, stop, step)):
            return [(how_many(start, stop, step),)]
        return [(max(0, int(np.ceil((stop - start) / step))),)]

    def plan(inputs, outputs, limits):
        start, _, step = (np.asarray(x).item() for x in inputs)
        first, second = (_as_dtype(v, dtype) for v in (start, start + step))
        return fill.arange_plan(kernel, outputs[0].size, first, second, limits)

    return Implementation((kernel,), shapes, plan, host=(0, 1, 2))


def _as_dtype(number: float, dtype: str) -> float:
    """Return a number as a value of ``dtype``; integers wrap around."""
    if isinstance(number, int) and dtype in dtypes.INTEGERS:
        return np.array(number % 2**64, np.uint64).astype(dtype).item()
    return np.asarray(number).astype(dtype).item()


@lowers_to_kernels(Eye, Tri)
def lower_diagonal_matrix(node: Apply) -> Implementation | str:
    dtype = node.outputs[0].type.dtype
    reason = unsupported([dtype])
    if reason:
        return reason
    kernel = fill.diagonal(dtype, "==" if isinstance(node.op, Eye) else "<=")

    def shapes(inputs):
        n, m, _ = map(int, inputs)
        if n < 0 or m < 0:
            raise ValueError(f"negative dimensions are not allowed: {node.op} of {n} by {m}")
        return [(n, m)]

    def plan(inputs, outputs, limits):
        return fill.diagonal_plan(kernel, outputs[0].shape, int(inputs[2]), limits)

    return Implementation((kernel,), shapes, plan, host=(0, 1, 2))


@lowers_to_kernels(ExtractDiag)
def lower_extract_diagonal(node: Apply) -> Implementation | str:
    x, op = node.inputs[0].type, node.op
    if op.view:
        return "a diagonal that is a view of its input is taken on the host"
    copies = Copies(x.dtype, x.dtype, x.ndim - 1)
    if copies.missing:
        return copies.missing

    def shapes(inputs):
        return [_diagonal_of(inputs[0], op)[0].shape]

    def plan(inputs, outputs, limits):
        source, offset = _diagonal_of(inputs[0], op)
        of, to = Array("in", 0, offset), Array("out")
        return Plan(tuple(copies.launches(source, outputs[0], of, to, limits)))

    return Implementation(copies.kernels, shapes, plan)


def _diagonal_of(layout: Layout, op: ExtractDiag | AllocDiag) -> tuple[Layout, int]:
    """Return (layout, offset in bytes) of the diagonals of an array."""
    return views.viewed(layout, lambda whole: whole.diagonal(op.offset, op.axis1, op.axis2))


@lowers_to_kernels(AllocDiag)
def lower_alloc_diagonal(node: Apply) -> Implementation | str:
    x, op = node.inputs[0].type, node.op
    copies = Copies(x.dtype, x.dtype, x.ndim)
    if copies.missing:
        return copies.missing
    zero = ScalarProgram.constant(np.zeros((), x.dtype))
    zeros = ElementwiseKernels(zero, x.ndim + 1, [])

    def shapes(inputs):
        (layout,) = inputs
        n = layout.shape[-1] + abs(op.offset)
        shape = list(layout.shape[:-1])
        for axis in sorted((op.axis1, op.axis2)):
            shape.insert(axis, n)
        return [tuple(shape)]

    def plan(inputs, outputs, limits):
        (z,) = outputs
        launches = zeros.launches(z.shape, [z], [Array("out")], limits)
        part, offset = _diagonal_of(z, op)
        of, to = Array("in"), Array("out", 0, offset)
        return Plan((*launches, *copies.launches(inputs[0], part, of, to, limits)))

    return Implementation((*copies.kernels, *zeros.kernels), shapes, plan)
