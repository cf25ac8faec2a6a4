"""Sums of shifted slices of an array with zeros around it, as sums of neighbours along an axis.

Local response normalisation and other filters are written so: squares are put into the middle of
zeros, and slices that begin at 0, 1, 2, ... are added up. The gradient adds one array to such
slices of zeros, and takes the middle of the result. Both read an array once, as a WindowSum, which
is computed with the elementwise work around it (RowFusion).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from opwise.config import config
from opwise.graph.apply import Apply
from opwise.graph.fgraph import FunctionGraph
from opwise.optimizers.passes import Optimizer
from opwise.optimizers.rules.fusion import MAX_DIMENSIONS
from opwise.optimizers.rules.matching import is_cast, number_within, row_name
from opwise.optimizers.rules.shape import lengths_of
from opwise.optimizers.rules.subtensor import index_of
from opwise.optimizers.rules.zeros import Pads, inside_zeros, margins, margins_of_operand
from opwise.tensor.elemwise import cast, elemwise
from opwise.tensor.subtensor import IncSubtensor, Subtensor
from opwise.tensor.windowsum import WindowSum

#: rows that are 0 of 0: what they make of slices they may make of the array
_ZERO_OF_ZERO = ("sqr", "abs_", "neg")
#: the most terms of a sum, or slices that are added to, that are looked at
MOST = 64


class WindowSums(Optimizer):
    """Replaces sums of shifted slices of an array with zeros around it by a WindowSum."""

    name = "window_sums"

    def apply(self, fgraph: FunctionGraph) -> None:
        if not config.tensor.local_elemwise_fusion or not config.cxx:
            return
        order = fgraph.toposort()
        if not any(isinstance(node.op, Subtensor) for node in order):
            return
        for node in order:
            if node not in fgraph.apply_nodes:
                continue
            if row_name(node) == "add":
                if _is_term(node):
                    continue
                new = _sum_of_slices(fgraph, node)
            elif isinstance(node.op, Subtensor):
                new = _middle_of_sums(fgraph, node)
            else:
                continue
            (out,) = node.outputs
            if new is not None and new.type == out.type:
                fgraph.replace(out, new, reason=self.name)


class _Shifted(NamedTuple):
    """An array whose elements are those of another ``shift`` places behind, or zeros."""

    of: Any
    #: None: it is the array itself
    axis: int | None
    shift: int


class _Group(NamedTuple):
    """Terms that are products of the same factors with shifted slices of one array."""

    of: Any
    axis: int
    factors: list[Any]
    #: shift -> index of the term
    terms: dict[int, int]


def _sum_of_slices(fgraph: FunctionGraph, node: Apply) -> Any:
    """Return a sum with a WindowSum in the place of some of its terms, or None."""
    (out,) = node.outputs
    terms = _terms(node)
    if out.type.dtype not in ("float32", "float64") or len(terms) > MOST:
        return None
    if not any(map(_may_be_shifted, terms)):
        return None
    left: list[Any] = list(terms)
    for group in _groups(fgraph, terms):
        shifts = sorted(group.terms)
        if not _are_neighbours(shifts) or not _suits(group.of, group.axis):
            continue
        x = cast(group.of, out.type.dtype)
        total = WindowSum(group.axis, shifts[0], shifts[-1])(x)
        for i in group.terms.values():
            left[i] = None
        first = min(group.terms.values())
        left[first] = elemwise("mul")(*group.factors, total) if group.factors else total
    left = [term for term in left if term is not None]
    if len(left) == len(terms):
        return None
    return cast(left[0] if len(left) == 1 else elemwise("add")(*left), out.type.dtype)


def _groups(fgraph: FunctionGraph, terms: Sequence[Any]) -> list[_Group]:
    """Return the groups of shifted slices among the terms of a sum."""
    found: dict[Any, _Group] = {}
    itself = []
    for i, term in enumerate(terms):
        for rest, factor in _factors(term):
            one = _shifted(fgraph, factor)
            key = _key(factor if one is None else one.of), frozenset(rest)
            if one is None or one.axis is None:
                itself.append((i, key))
                continue
            group = found.setdefault((key, one.axis), _Group(one.of, one.axis, rest, {}))
            group.terms.setdefault(one.shift, i)
    for i, key in itself:
        for (other, _), group in found.items():
            if key == other:
                group.terms.setdefault(0, i)
    return list(found.values())


def _is_term(node: Any) -> bool:
    """Return whether only another sum reads the result of an Apply."""
    clients = [client for client, _ in node.outputs[0]._clients]
    return len(clients) == 1 and clients[0] != "output" and row_name(clients[0]) == "add"


def _terms(node: Apply) -> list[Any]:
    """Return the terms of a sum; sums that only it reads are opened."""
    found: list[Any] = []
    stack: list[Any] = list(reversed(node.inputs))
    while stack:
        x = stack.pop()
        if row_name(x.owner) == "add" and _is_term(x.owner):
            stack += reversed(x.owner.inputs)
        else:
            found.append(x)
    return found


def _factors(term: Any) -> list[tuple[list[Any], Any]]:
    """Return (other factors, factor) for each factor of a term."""
    if row_name(term.owner) != "mul":
        return [([], term)]
    factors = term.owner.inputs
    return [([*factors[:i], *factors[i + 1 :]], x) for i, x in enumerate(factors)]


def _may_be_shifted(term: Any) -> bool:
    inner = (_key(factor)[0] for _, factor in _factors(term))
    return any(x.owner is not None and isinstance(x.owner.op, Subtensor) for x in inner)


def _key(x: Any) -> Any:
    """Return what is equal for arrays that are the same function of the same variable.

    That is the variable, and the casts and functions that are 0 of 0 that were applied to it.
    """
    rows = []
    while x.owner is not None and (row_name(x.owner) in _ZERO_OF_ZERO or is_cast(x.owner)):
        rows.append((row_name(x.owner), x.type.dtype))
        x = x.owner.inputs[0]
    return x, tuple(rows)


def _shifted(fgraph: FunctionGraph, x: Any) -> _Shifted | None:
    """Return the array of which ``x`` is a slice that begins in the zeros around it, or None."""
    node = x.owner
    if node is None:
        return None
    if row_name(node) in _ZERO_OF_ZERO or is_cast(node):
        found = _shifted(fgraph, node.inputs[0])
        return None if found is None else found._replace(of=node.op(found.of))
    if not isinstance(node.op, Subtensor):
        return None
    padded = node.inputs[0]
    step = inside_zeros(fgraph, padded)
    here = _margins(fgraph, index_of(node), padded)
    if step is None or here is None:
        return None
    inner, around = step
    if [*map(sum, here)] != [*map(sum, around)] or inner.type.broadcastable != x.type.broadcastable:
        return None
    shifts = [n - before for (n, _), (before, _) in zip(here, around, strict=True)]
    return _the_only_shift(inner, shifts)


def _margins(fgraph: FunctionGraph, index: Sequence[Any], x: Any) -> Pads | None:
    """Return how many elements of ``x`` are before and behind a part of it, or None."""
    totals = lengths_of(fgraph, x)
    if totals is None:
        return None
    found = [margins(item, total) for item, total in zip(index, totals, strict=True)]
    known = [pair for pair in found if pair is not None]
    return known if len(known) == len(found) else None


def _the_only_shift(x: Any, shifts: Sequence[int]) -> _Shifted | None:
    """Return the shift along one dimension, None if there are several."""
    axes = [axis for axis, shift in enumerate(shifts) if shift]
    if len(axes) > 1:
        return None
    return _Shifted(x, axes[0], shifts[axes[0]]) if axes else _Shifted(x, None, 0)


def _are_neighbours(shifts: Sequence[int]) -> bool:
    """Return whether sorted integers are several that follow each other."""
    return len(shifts) > 1 and list(shifts) == [*range(shifts[0], shifts[-1] + 1)]


def _suits(x: Any, axis: int) -> bool:
    """Return whether a Rowwise can compute a WindowSum: there are many rows, as far as known."""
    pattern = x.type.broadcastable
    rows = [one for d, one in enumerate(pattern) if d != axis]
    return len(pattern) <= MAX_DIMENSIONS and not pattern[axis] and not all(rows)


def _middle_of_sums(fgraph: FunctionGraph, node: Apply) -> Any:
    """Return the middle of zeros to whose slices arrays were added as WindowSums, or None."""
    steps = _added_to_zeros(node.inputs[0])
    if steps is None:
        return None
    (out,) = node.outputs
    whole, values = node.inputs[0], [step.inputs[1] for step in steps]
    here = _margins(fgraph, index_of(node), whole)
    if here is None or out.type.dtype not in ("float32", "float64"):
        return None
    shifts: dict[Any, list[_Shifted]] = {}
    for step, value in zip(steps, values, strict=True):
        there = margins_of_operand(fgraph, step)
        if there is None or [*map(sum, here)] != [*map(sum, there)]:
            return None
        if value.type.broadcastable != out.type.broadcastable:
            return None
        one = _the_only_shift(value, [n - m for (n, _), (m, _) in zip(here, there, strict=True)])
        if one is None:
            return None
        shifts.setdefault(value, []).append(one)
    terms = [_sum_of_shifted(x, found, out.type.dtype) for x, found in shifts.items()]
    if any(term is None for term in terms):
        return None
    return terms[0] if len(terms) == 1 else elemwise("add")(*terms)


def _added_to_zeros(x: Any) -> list[Apply] | None:
    """Return the Applys that add several arrays to slices of zeros, or None."""
    steps: list[Apply] = []
    while x.owner is not None and isinstance(x.owner.op, IncSubtensor) and len(steps) < MOST:
        steps.append(x.owner)
        x = x.owner.inputs[0]
        if steps[-1].op.set_instead_of_inc:
            break
    if len(steps) < 2 or number_within(x) != 0:
        return None
    return steps[::-1]


def _sum_of_shifted(x: Any, found: Sequence[_Shifted], dtype: str) -> Any:
    """Return the sum of some shifts of an array, None unless they are neighbours on one axis."""
    axes = {one.axis for one in found if one.axis is not None}
    shifts = sorted(one.shift for one in found)
    if shifts == [0]:
        return cast(x, dtype)
    if len(axes) != 1 or not _are_neighbours(shifts):
        return None
    (axis,) = axes
    if not _suits(x, axis):
        return None
    return WindowSum(axis, shifts[0], shifts[-1])(cast(x, dtype))
