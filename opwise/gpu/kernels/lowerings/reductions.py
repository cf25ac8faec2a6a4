"""Lowerings of reductions, of products of vectors, and of cumulated sums and products."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from opwise.gpu.kernels import cudatext
from opwise.gpu.kernels.copies import Copies
from opwise.gpu.kernels.cudatext import ScalarProgram
from opwise.gpu.kernels.kernel import Array, Implementation, Layout, Plan, PlanInput
from opwise.gpu.kernels.lowerings.operands import dtypes_of, patterns_of, unsupported
from opwise.gpu.kernels.reduce import Folding, Reduction
from opwise.gpu.kernels.scan import Lines, Scan
from opwise.gpu.kernels.shapes import check_product
from opwise.gpu.lowering import lowers_to_kernels
from opwise.graph.apply import Apply
from opwise.scalar import loops
from opwise.scalar.op import OPS
from opwise.tensor.extra_ops import CumOp
from opwise.tensor.mapreduce import MapReduce
from opwise.tensor.reduce import Argmax, CAReduce, MaxAndArgmax, Sum, check_not_empty


@lowers_to_kernels(CAReduce)
def lower_reduction(node: Apply) -> Implementation | str:
    x, out = node.inputs[0].type, node.outputs[0].type
    folding = _folding(node.op, x.dtype, out.dtype)
    if isinstance(folding, str):
        return folding
    program = ScalarProgram.identity(x.dtype)
    return _reduction(
        program, folding, node.op, x.ndim, [x.broadcastable], lambda inputs: inputs[0].shape
    )


@lowers_to_kernels(MapReduce)
def lower_map_reduce(node: Apply) -> Implementation | str:
    mapped, (reduced, *_) = node.op.parts(node)
    between, given = dtypes_of(mapped.outputs), dtypes_of(node.inputs)
    program = ScalarProgram.of(node.op.scalar_op, given, between)
    folding = _folding(reduced.op, between[0], *dtypes_of(node.outputs))
    if isinstance(folding, str):
        return folding
    return program.missing() or _reduction(
        program, folding, reduced.op, mapped.outputs[0].type.ndim, patterns_of(node.inputs),
        lambda inputs: mapped.op.shape_of(mapped, inputs),
    )  # fmt: skip


def lower_vector_product(node: Apply) -> Implementation | str | None:
    """Lower a Dot of two vectors to the kernels of a sum; return None for other Dots."""
    x, y = node.inputs
    if x.type.ndim != 1 or y.type.ndim != 1:
        return None
    out = node.outputs[0].type.dtype
    held = cudatext.held(out)
    total = Sum(dtype=out, acc_dtype=held)
    folding = _folding(total, held, out)
    if isinstance(folding, str):
        return folding
    program = ScalarProgram.of(OPS["mul"], dtypes_of(node.inputs), [held])
    reason = program.missing()
    if reason:
        return reason
    patterns = patterns_of(node.inputs)
    longer = int(patterns[0] == (True,))
    found = _reduction(program, folding, total, 1, patterns, lambda inputs: inputs[longer].shape)

    def shapes(inputs):
        check_product(inputs[0].shape, inputs[1].shape)
        return found.shapes(inputs)

    return replace(found, shapes=shapes)


def _folding(op: CAReduce, dtype: str, *outs: str) -> Folding | str:
    """Return the Folding of reductions from ``dtype`` to ``outs``, or why there is none."""
    row = op.scalar_op.row
    if row is None or row.name not in loops.FOLDS:
        return f"kernels do not reduce by {op.scalar_op}"
    acc = getattr(op, "acc_dtype", None) or outs[0]
    reason = unsupported((dtype, acc, *outs))
    if reason:
        return reason
    if acc == "bool" and row.name in ("add", "mul"):
        return f"kernels do not reduce bool by {row.name}"
    return Folding.of(row.name, acc, *outs)


def _reduction(
    program: ScalarProgram, folding: Folding, op: CAReduce, ndim: int,
    patterns: list[tuple[bool, ...]], shape_of: Callable[[list[PlanInput]], tuple[int, ...]],
) -> Implementation:  # fmt: skip
    """Return the Implementation of a reduction of what a program computes.

    ndim: dimensions of what is reduced. shape_of: from the inputs to its shape.
    """
    axes = tuple(range(ndim)) if op.axis is None else op.axis
    reduction = Reduction(folding, program, ndim, axes, patterns)

    n_out = len(folding.finals)

    def shapes(inputs):
        shape = shape_of(inputs)
        if folding.fold is not None and folding.fold.needs_elements:
            reduced: Any = Layout(shape, (), 1)  # it has a shape, as an array has
            check_not_empty(reduced, axes, op.scalar_op)
        return [tuple(n for d, n in enumerate(shape) if d not in axes)] * n_out

    def plan(inputs, outputs, limits):
        return reduction.plan(shape_of(inputs), inputs, limits)

    return Implementation(reduction.kernels, shapes, plan)


@lowers_to_kernels(MaxAndArgmax, Argmax)
def lower_argmax(node: Apply) -> Implementation | str:
    x, axes = node.inputs[0].type, node.op.axis
    reason = unsupported([x.dtype])
    if reason:
        return reason
    folding = Folding.argmax(x.dtype, with_maximum=len(node.outputs) == 2)
    program = ScalarProgram.identity(x.dtype)
    reduction = Reduction(folding, program, x.ndim, axes, [x.broadcastable], ordered=True)

    def shapes(inputs):
        check_not_empty(inputs[0], axes, "maximum")
        shape = tuple(n for d, n in enumerate(inputs[0].shape) if d not in axes)
        return [shape] * len(node.outputs)

    def plan(inputs, outputs, limits):
        return reduction.plan(inputs[0].shape, inputs, limits)

    return Implementation(reduction.kernels, shapes, plan)


@lowers_to_kernels(CumOp)
def lower_cumulated(node: Apply) -> Implementation | str:
    x, op = node.inputs[0].type, node.op
    copies = Copies(x.dtype, x.dtype, x.ndim)
    if copies.missing:
        return copies.missing
    axis = None if op.axis is None else op.axis % x.ndim
    scan = Scan(op.mode, x.dtype)

    def shapes(inputs):
        return [(inputs[0].size,) if axis is None else inputs[0].shape]

    def plan(inputs, outputs, limits):
        (layout,) = inputs
        lines = Lines.of(layout, axis)
        if lines is not None and lines.near():
            return scan.plan(lines, Array("in"), Array("out"), limits)
        copy, scratch = Layout.contiguous(layout.shape, layout.itemsize), Array("scratch")
        first = copies.launches(layout, copy, Array("in"), scratch, limits)
        lines = Lines.of(copy, axis)
        assert lines is not None, "a contiguous array has Lines"
        second = scan.plan(lines, scratch, Array("out"), limits, (copy.size * copy.itemsize,))
        return Plan((*first, *second.launches), second.scratch)

    return Implementation((*scan.kernels, *copies.kernels), shapes, plan)
