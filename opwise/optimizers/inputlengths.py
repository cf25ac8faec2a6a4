"""Lengths of inputs that Applys of the graph as written compare, and those of the optimized do not.

A rewrite that drops an operand (``x + zeros_like(y)`` becomes ``x``) drops the check of its shape.
The value stays, as in Theano, but a call in which the lengths differ warns. One pass over a graph
follows the dimensions of its inputs and constants as numbers and pairs, and makes no Applys: every
compilation does it, unlike ``shapechecks``, which follows all lengths.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

from opwise.graph.apply import Apply
from opwise.graph.guards import ALWAYS, find_guards
from opwise.graph.variable import Constant, Variable
from opwise.optimizers import shapechecks
from opwise.tensor.assertion import Assert
from opwise.tensor.blas import Dot22, Dot22Scalar, Gemm, Gemv, Ger
from opwise.tensor.creation import Alloc
from opwise.tensor.dimshuffle import DimShuffle
from opwise.tensor.dot import Dot
from opwise.tensor.elemwise import Elemwise
from opwise.tensor.reduce import CAReduce
from opwise.tensor.shape import Rebroadcast, SpecifyShape
from opwise.tensor.subtensor import Subtensor

#: a length: a number, that of a dimension of an input (index, dimension), or None if not known
Length = Any
Lengths = tuple[Length, ...]


@dataclass(frozen=True)
class Comparison:
    """Lengths that an Apply as written needs to be equal: that of an input, and another."""

    a: tuple[int, int]
    b: tuple[int, int] | int
    condition: shapechecks.LengthCondition
    #: whether the condition names the length ``b`` first
    swapped: bool
    #: the text about the condition, if it is made already
    described: str = ""

    def settled(self) -> Comparison:
        """Return the same with its text, which follows no later change of the Apply."""
        return replace(self, described=shapechecks.described(self.condition))

    def text(self, n: int, m: int) -> str:
        """Return a text about the lengths, which are ``n`` and ``m``."""
        text = self.described or shapechecks.described(self.condition)
        text = text.format(*((m, n) if self.swapped else (n, m)))
        return (
            f"Shapes do not fit: {text}. Rewrites dropped the Apply that would have raised this, "
            "so the function returned a value. Give operands of equal lengths; under the flag "
            "keep_shape_checks=True this is an error."
        )


def comparisons(
    order: Sequence[Apply], inputs: Mapping[Variable, int], outputs: Iterable[Variable]
) -> list[Comparison]:
    """Return what the Applys of a graph compare that every call runs.

    order: the Applys, each after those that it reads. inputs: the index of each input.
    """
    if any(node.op.branches for node in order):
        guards = find_guards(order, outputs).of
        order = [node for node in order if guards[node] == ALWAYS]
    known: dict[Variable, Lengths] = {}
    found: list[Comparison] = []
    for node in order:
        lengths = [_lengths(var, inputs, known) for var in node.inputs]
        if not any(map(_is_any_known, lengths)):
            continue
        kind: type = type(node.op)
        if kind in shapechecks.BY_LENGTHS_ALONE:
            for c in shapechecks.conditions(node, lengths):
                a, b = c.a, c.b
                if a is None or b is None or a == b or (type(a) is type(b) is int):
                    continue
                found.append(
                    Comparison(b, a, c, True) if type(a) is int else Comparison(a, b, c, False)
                )
        follow = _result_of(kind)
        if follow is not None:
            result = follow(node, lengths)
            for out in node.outputs:
                if out not in inputs and len(result) == out.type.ndim:
                    known[out] = tuple(
                        1 if one else n
                        for n, one in zip(result, out.type.broadcastable, strict=True)
                    )
    return found


def dropped(written: Sequence[Comparison], kept: Sequence[Comparison]) -> list[Comparison]:
    """Return what the graph as written compares, and what follows from no other comparison."""
    parent: dict[Length, Length] = {}

    def root(length: Length) -> Length:
        while length in parent:
            length = parent[length]
        return length

    def join(one: Comparison) -> bool:
        a, b = root(one.a), root(one.b)
        if a != b:
            parent[a if type(b) is int else b] = b if type(b) is int else a
        return bool(a != b)

    for one in kept:
        join(one)
    return [one for one in written if join(one)]


def _is_any_known(lengths: Lengths) -> bool:
    return any(n is not None for n in lengths)


def _lengths(
    var: Variable, inputs: Mapping[Variable, int], known: Mapping[Variable, Lengths]
) -> Lengths:
    found = known.get(var)
    if found is not None:
        return found
    ones: Sequence[bool] = getattr(var.type, "broadcastable", ())
    if isinstance(var, Constant):
        shape: Lengths = getattr(var.data, "shape", ())
        return shape if len(shape) == len(ones) else (None,) * len(ones)
    i = inputs.get(var)
    return tuple(1 if one else None if i is None else (i, d) for d, one in enumerate(ones))


# --- the lengths of results -----------------------------------------------------------------------


def _elementwise(node: Apply, lengths: Sequence[Lengths]) -> Lengths:
    patterns = [var.type.broadcastable for var in node.inputs]
    found = []
    for d in range(len(patterns[0])):
        those = (
            own[d] for own, ones in zip(lengths, patterns, strict=True)
            if not ones[d] and own[d] is not None
        )  # fmt: skip
        found.append(next(those, None))
    return tuple(found)


def _same(node: Apply, lengths: Sequence[Lengths]) -> Lengths:
    return lengths[0]


def _shuffled(node: Apply, lengths: Sequence[Lengths]) -> Lengths:
    return tuple(1 if d == "x" else lengths[0][d] for d in node.op.new_order)


def _product(node: Apply, lengths: Sequence[Lengths]) -> Lengths:
    x, y = lengths[:2]
    return (*x[:-1], *y[:-2], *y[-1:]) if x and len(y) > 1 else x[:-1] if y else x


def _reduced(node: Apply, lengths: Sequence[Lengths]) -> Lengths:
    axis = node.op.axis
    return () if axis is None else tuple(n for d, n in enumerate(lengths[0]) if d not in axis)


def _filled(node: Apply, lengths: Sequence[Lengths]) -> Lengths:
    return tuple(_given(var) for var in node.inputs[1:])


def _given(var: Variable) -> Length:
    return int(var.data) if isinstance(var, Constant) and var.data.ndim == 0 else None


def _part(node: Apply, lengths: Sequence[Lengths]) -> Lengths:
    index = node.op.idx_list
    items = [*index, *[slice(None)] * (len(lengths[0]) - len(index))]
    return tuple(
        n if item == slice(None) else None
        for n, item in zip(lengths[0], items, strict=True) if isinstance(item, slice)
    )  # fmt: skip


#: class of an Op -> function that returns the lengths of its results
_RESULTS: dict[type, Callable[[Apply, Sequence[Lengths]], Lengths]] = {
    Elemwise: _elementwise, DimShuffle: _shuffled, Dot: _product, Dot22: _product,
    Dot22Scalar: _product, Gemm: _same, Gemv: _same, Ger: _same, Alloc: _filled,
    Subtensor: _part, CAReduce: _reduced, Assert: _same, SpecifyShape: _same, Rebroadcast: _same,
}  # fmt: skip


@cache
def _result_of(kind: type) -> Callable[[Apply, Sequence[Lengths]], Lengths] | None:
    return next((_RESULTS[cls] for cls in kind.__mro__ if cls in _RESULTS), None)
