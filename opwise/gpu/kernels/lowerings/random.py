"""Lowerings of Ops that draw from random streams, and of those that uniform numbers decide."""

from __future__ import annotations

from opwise.gpu.kernels import draws
from opwise.gpu.kernels.kernel import Implementation
from opwise.gpu.kernels.lowerings.operands import dtypes_of
from opwise.gpu.lowering import lowers_to_kernels
from opwise.graph.apply import Apply
from opwise.scalar import dtypes
from opwise.tensor.random.mrg import mrg_uniform
from opwise.tensor.random.multinomial import ChoiceFromUniform, MultinomialFromUniform

#: dtypes of probabilities and of the uniform numbers that decide
_DECIDING = ("float32", "float64")


@lowers_to_kernels(mrg_uniform)
def lower_uniform(node: Apply) -> Implementation | str:
    op, states = node.op, node.inputs[0].type
    if states.ndim != 2 or states.dtype != "int32":
        return "its states are not an int32 matrix"
    uniform = draws.Uniform(node.outputs[1].type.dtype)

    def shapes(inputs):
        layout, size = inputs
        return [layout.shape, op.shape(layout.shape, size)]

    def plan(inputs, outputs, limits):
        states, numbers = outputs
        return uniform.plan(states, numbers, limits)

    return Implementation(uniform.kernels, shapes, plan, host=(1,), copied={0: 0})


@lowers_to_kernels(MultinomialFromUniform)
def lower_counts(node: Apply) -> Implementation | str:
    return _lowered(node, draws.Counts, lambda rows, columns, n: (rows, columns))


@lowers_to_kernels(ChoiceFromUniform)
def lower_choice(node: Apply) -> Implementation | str:
    kind = draws.Draws if node.op.replace else draws.DrawsWithoutReplacement
    return _lowered(node, kind, lambda rows, columns, n: (rows, n))


def _lowered(node, kind, shape_of):
    """Return the Implementation by a class of draws. shape_of: (rows, columns, n) -> the shape."""
    given, out = dtypes_of(node.inputs[:2]), node.outputs[0].type.dtype
    unsupported = [d for d in given if d not in _DECIDING]
    unsupported += [out] if out not in (*dtypes.INTEGERS, *_DECIDING) else []
    if unsupported:
        return f"there are no kernels for outcomes with {unsupported[0]}"
    outcomes = kind(*given, out)

    def shapes(inputs):
        pvals, unis, n = inputs
        node.op.check(pvals, unis, n)
        if n < 0:
            raise ValueError(f"n is negative: {n}")
        return [shape_of(*pvals.shape, n)]

    def plan(inputs, outputs, limits):
        pvals, unis, n = inputs
        return outcomes.plan(pvals, unis, n, limits)

    return Implementation(outcomes.kernels, shapes, plan, host=(2,))
