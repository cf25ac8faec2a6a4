"""Ragged variables of a step: those whose lengths may differ between steps.

An output of a loop is an array, so a loop cannot collect them.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, KeysView, Sequence
from typing import Any

from opwise.config import thread_flags
from opwise.graph.apply import Apply
from opwise.graph.variable import Var
from opwise.loops.layout import Parts
from opwise.tensor.dimshuffle import DimShuffle
from opwise.tensor.dot import Dot
from opwise.tensor.elemwise import Elemwise
from opwise.tensor.reduce import CAReduce
from opwise.tensor.shape import Shape, Shape_i, length
from opwise.tensor.subtensor import IncSubtensor, Subtensor, constant_index
from opwise.tensor.type import TensorType, tensor_type

#: Ops whose outputs have lengths of their inputs, whatever their values
_BY_LENGTHS = (CAReduce, DimShuffle, Dot, Elemwise, IncSubtensor)
_LENGTH = tensor_type("int64", ())


def ragged_variables(step: Parts[Var], order: Iterable[Apply]) -> KeysView[Var]:
    """Return the variables of a step whose shape may differ between steps.

    Rows of sequences have one shape, and so have states; ``x[:n]`` has another one in each step in
    which n is another number.

    order: the Applys of the step, each after those that compute its inputs.
    """
    found = _Ragged(step)
    for node in order:
        found.add(node)
    return found.lengths.keys()


class _Ragged:
    """What differs between steps of the variables that the Applys so far compute."""

    def __init__(self, step: Parts[Var]):
        taps = [var for values in step.states for var in values]
        #: variables whose values differ
        self.varying = {*step.sequences, *taps, *step.objects}
        #: by variable whose shape may differ, for each dimension whether its length may
        self.lengths: dict[Var, list[bool]] = {}
        #: variables of the step
        self.seen: set[Var] = set()

    def add(self, node: Apply) -> None:
        """Add an Apply, which reads inputs of the step and outputs of those that were added."""
        self.seen.update(node.inputs)
        self.seen.update(node.outputs)
        asked = _asked_lengths(node)
        if asked is not None:
            if self._any_differs(*asked):
                self.varying.update(node.outputs)
        elif not self.varying.isdisjoint(node.inputs):
            self.varying.update(node.outputs)
            if self._may_be_ragged(node):
                self._infer(node)

    def _may_be_ragged(self, node: Apply) -> bool:
        """Return whether an output of an Apply may have lengths that differ."""
        if not hasattr(node.op, "infer_shape") or not self.lengths.keys().isdisjoint(node.inputs):
            return True
        return not isinstance(node.op, _BY_LENGTHS) and any(
            var in self.varying and _can_be_length(var) for var in node.inputs
        )

    def _infer(self, node: Apply) -> None:
        differ: set[Var] = set()
        given: list[Sequence[Var] | None] = []
        for var in node.inputs:
            if not isinstance(var.type, TensorType):
                given.append(None)
                continue
            shape = [length(1) if b else _LENGTH.make_variable() for b in var.type.broadcastable]
            ragged = self.lengths.get(var, [False] * len(shape))
            differ.update(n for n, differs in zip(shape, ragged, strict=True) if differs)
            given.append(tuple(shape))
        for out, lengths in zip(node.outputs, _inferred(node, given), strict=True):
            if not isinstance(out.type, TensorType):
                continue
            found = [
                not b and (lengths is None or self._differs(length(lengths[d]), {*differ, out}))
                for d, b in enumerate(out.type.broadcastable)
            ]
            if any(found):
                self.lengths[out] = found

    def _differs(self, length_: Var, differ: Collection[Var]) -> bool:
        """Return whether a length is computed from what differs. differ: lengths that do."""
        stack, done = [length_], set()
        while stack:
            var = stack.pop()
            if var in differ or var in self.varying:
                return True
            if var in done or var in self.seen or var.owner is None:
                continue
            done.add(var)
            asked = _asked_lengths(var.owner)
            if asked is None:
                stack += var.owner.inputs
            elif self._any_differs(*asked):
                return True
        return False

    def _any_differs(self, var: Var, dimensions: slice) -> bool:
        return any(self.lengths.get(var, [])[dimensions])


def _asked_lengths(node: Apply) -> tuple[Var, slice] | None:
    """Return of which dimensions of which variable an Apply gives the lengths; None: it does not.

    These are the variable and a slice of its dimensions.
    """
    if isinstance(node.op, Shape):
        return node.inputs[0], slice(None)
    if isinstance(node.op, Shape_i):
        return node.inputs[0], slice(node.op.i, node.op.i + 1)
    if not isinstance(node.op, Subtensor) or node.inputs[0].owner is None:
        return None
    asked = node.inputs[0].owner
    index = constant_index(node) if isinstance(asked.op, Shape) else None
    if index is None:
        return None
    (part,) = index
    if isinstance(part, int):
        part = slice(part, part + 1 or None)
    return asked.inputs[0], part


def _inferred(node: Apply, given: Sequence[Any]) -> Sequence[Sequence[Any] | None]:
    """Return the shapes of the outputs of an Apply, given those of its inputs; None: unknown."""
    shapes: Sequence[Any] = ()
    if hasattr(node.op, "infer_shape"):
        try:
            with thread_flags(compute_test_value="off"):
                shapes = node.op.infer_shape(node, given)
        except Exception:  # a user's infer_shape may raise anything; compiling reports it
            pass
    if len(shapes) != len(node.outputs):
        return [None] * len(node.outputs)
    return [
        shape if shape is not None and len(shape) == getattr(out.type, "ndim", -1) else None
        for out, shape in zip(node.outputs, shapes, strict=True)
    ]


def _can_be_length(var: Var) -> bool:
    """Return whether the value of an input may decide a length: a number, a mask, a slice."""
    return getattr(var.type, "dtype", "int64").startswith(("int", "uint", "bool"))
