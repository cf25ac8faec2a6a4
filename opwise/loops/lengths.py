"""Which lengths of a step are known before it runs.

They are those of constants, of the present values of shared variables, and of vectors that the step
makes of numbers. Each Apply says which lengths are equal, so one known length often gives all.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from opwise.graph.apply import Apply
from opwise.graph.fgraph import FunctionGraph
from opwise.graph.variable import Constant, Var
from opwise.loops.layout import Layout
from opwise.loops.op import Scan
from opwise.modes.mode import get_mode
from opwise.tensor.blas import Dot22, Dot22Scalar, Gemm, Gemv, Ger
from opwise.tensor.convert import DeepCopyOp, ViewOp
from opwise.tensor.creation import Alloc
from opwise.tensor.dimshuffle import DimShuffle
from opwise.tensor.dot import Dot
from opwise.tensor.elemwise import Elemwise
from opwise.tensor.gathered import Gathered
from opwise.tensor.join import MakeVector
from opwise.tensor.linalg.inverse import MatrixInverse
from opwise.tensor.linalg.systems import Solve
from opwise.tensor.shape import Rebroadcast
from opwise.tensor.subtensor import IncSubtensor

Lengths = tuple[int | None, ...]


def profiled(op: Scan) -> bool:
    """Return whether a loop is profiled by itself: the times of its Applys are wanted."""
    return bool(op.profile) or (op.mode is not None and hasattr(get_mode(op.mode), "profile"))


def inner_step(node: Apply) -> FunctionGraph | None:
    """Return the compiled graph of the step of an inner loop; None if the VM has to run it."""
    linked = getattr(getattr(node.tag, "inside", None), "linked", None)
    return None if linked is None or profiled(node.op) else linked.program.fgraph


#: a dimension of a variable
_Dimension = tuple[Var, int]


def lengths_of(node: Apply, layout: Layout, step: FunctionGraph) -> list[Lengths]:
    """Return the lengths of the inputs of a step, as far as they are known beforehand."""
    lengths = KnownLengths()
    lengths.loop(node, step)
    pending = [var.owner for var in node.inputs[1:]]
    seen: set[Apply] = set()
    while pending:
        apply = pending.pop()
        if apply is not None and apply not in seen and isinstance(apply.op, _SAME_LENGTHS):
            seen.add(apply)
            lengths.spread(apply)
            pending += [var.owner for var in apply.inputs]
    for var in node.inputs[1:]:
        lengths.note(var)
    return [lengths.of(var) for var in step.inputs]


#: Ops whose outputs have lengths of their inputs, of those around a loop
_SAME_LENGTHS = (DimShuffle, Rebroadcast, DeepCopyOp, ViewOp, IncSubtensor, Elemwise, Alloc)


class KnownLengths:
    """What is known of the lengths of variables: which are equal, and which are numbers."""

    def __init__(self) -> None:
        self._same: dict[_Dimension, _Dimension] = {}
        self._known: dict[_Dimension, int] = {}

    def _root(self, dimension: _Dimension) -> _Dimension:
        while dimension in self._same:
            dimension = self._same[dimension]
        return dimension

    def equal(self, *dimensions: _Dimension) -> None:
        """Note that dimensions have one length."""
        first, *others = map(self._root, dimensions)
        for other in others:
            if other != first:
                self._same[other] = first
                if other in self._known:
                    self._known.setdefault(first, self._known[other])

    def same(self, *variables: Var) -> None:
        """Note that variables have one shape."""
        for d in range(variables[0].type.ndim):
            self.equal(*((var, d) for var in variables))

    def know(self, dimension: _Dimension, length: int) -> None:
        self._known.setdefault(self._root(dimension), int(length))

    def of(self, var: Var) -> Lengths:
        """Return the lengths of a variable as far as they are known."""
        self.note(var)
        return tuple(self._known.get(self._root((var, d))) for d in range(var.type.ndim))

    def note(self, var: Var) -> None:
        """Note the lengths of a constant, of a shared variable, and those that a type has."""
        if isinstance(var, Constant):
            lengths: Sequence[int | None] = np.shape(var.data)
        elif hasattr(var, "get_value"):
            lengths = np.shape(var.get_value(borrow=True))
        else:
            lengths = [1 if one else None for one in getattr(var.type, "broadcastable", ())]
        for d, n in enumerate(lengths):
            if n is not None:
                self.know((var, d), n)

    def loop(self, node: Apply, step: FunctionGraph) -> None:
        """Note which lengths are equal in a loop and its step."""
        layout: Layout = node.op.layout
        outside, after = layout.loop_inputs(node.inputs[1:]), layout.loop_outputs(node.outputs)
        inside = layout.step_inputs(step.inputs)
        new = layout.step_outputs(step.outputs)
        rows = list(zip(inside.sequences, outside.sequences, strict=True))
        rows += zip(new.results, after.results, strict=True)
        for k, taps in enumerate(inside.states):
            (first,), (out,), (value,) = outside.states[k], after.states[k], new.states[k]
            rows += [(value, out), *((tap, first) for tap in taps)]
            self.same(taps[0], value)
        for row, of in rows:
            for d in range(row.type.ndim):
                self.equal((row, d), (of, d + 1))
        for var, of in zip(inside.constants, outside.constants, strict=True):
            self.same(var, of)
        for apply in step.apply_nodes:
            self.spread(apply)

    def spread(self, node: Apply) -> None:
        """Note which lengths are equal if an Apply raises no error."""
        op, inputs, out = node.op, node.inputs, node.outputs[0]
        for var in inputs:
            self.note(var)
        if isinstance(op, Elemwise):
            for d in range(out.type.ndim):
                moving = [(v, d) for v in inputs if not v.type.broadcastable[d]]
                self.equal(*((v, d) for v in node.outputs), *moving)
        elif isinstance(op, Gathered) and isinstance(op.loop, Elemwise):
            tables = {k for k, _ in op.taken}
            moving = [
                (v, 0) for k, v in enumerate(inputs)
                if k not in tables and not v.type.broadcastable[0]
            ]  # fmt: skip
            self.equal(*((v, 0) for v in node.outputs), *moving)
        elif isinstance(op, MakeVector):
            self.know((out, 0), len(inputs))
        elif isinstance(op, DimShuffle):
            for d, o in enumerate(op.new_order):
                if isinstance(o, int):
                    self.equal((out, d), (inputs[0], o))
        elif isinstance(op, Rebroadcast | DeepCopyOp | ViewOp | IncSubtensor):
            self.same(inputs[0], out)
        elif isinstance(op, Alloc):
            for d, n in enumerate(inputs[1:]):
                if isinstance(n, Constant):
                    self.know((out, d), n.data)
        elif isinstance(op, Gemv):
            y, _, a, x, _ = inputs
            self.same(y, out)
            self._product(a, x, out)
        elif isinstance(op, Gemm):
            z, _, x, y, _ = inputs
            self.same(z, out)
            self._product(x, y, out)
        elif isinstance(op, Dot | Dot22 | Dot22Scalar):
            self._product(inputs[0], inputs[1], out)
        elif isinstance(op, Ger):
            a, _, x, y = inputs
            self.same(a, out)
            self.equal((a, 0), (x, 0))
            self.equal((a, 1), (y, 0))
        elif isinstance(op, Scan):
            step = inner_step(node)
            if step is not None and len(step.inputs) == len(op.inputs) and not op.layout.objects:
                self.loop(node, step)
        elif isinstance(op, Solve | MatrixInverse):
            self.equal((inputs[0], 0), (inputs[0], 1), (inputs[-1], 0))
            self.same(inputs[-1], out)

    def _product(self, x: Var, y: Var, out: Var) -> None:
        if x.type.ndim and y.type.ndim:
            self.equal((x, x.type.ndim - 1), (y, 0))
            free = [(x, d) for d in range(x.type.ndim - 1)] + [
                (y, d) for d in range(1, y.type.ndim)
            ]
            for d, dimension in enumerate(free):
                self.equal((out, d), dimension)
