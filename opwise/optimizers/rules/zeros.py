"""Zeros that programs put around arrays, by setting a part of zeros or by joining with them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from opwise.graph.apply import Apply
from opwise.graph.fgraph import FunctionGraph
from opwise.optimizers.rules.lengths import LengthSum, difference
from opwise.optimizers.rules.matching import is_cast, number_within, shuffled
from opwise.optimizers.rules.shape import lengths_of
from opwise.optimizers.rules.subtensor import index_of
from opwise.tensor.dimshuffle import DimShuffle
from opwise.tensor.elemwise import Elemwise, cast
from opwise.tensor.join import Join
from opwise.tensor.slices import known_int
from opwise.tensor.subtensor import IncSubtensor

#: pads before and behind, along each dimension or spatial axis
Pads = list[tuple[int, int]]


def inside_zeros(fgraph: FunctionGraph, x: Any) -> tuple[Any, Pads] | None:
    """Return the part of an array around which there are zeros, and how many along each dimension.

    Dimensions may have been permuted since, as those of images with channels last, and elements
    been cast. None: there are no zeros, or it is not known how many.
    """
    node = x.owner
    if node is None:
        return None
    if isinstance(node.op, DimShuffle):
        order = permutation(x)
        found = None if order is None else inside_zeros(fgraph, node.inputs[0])
        if order is None or found is None:
            return None
        inner, around = found
        return shuffled(inner, order), [around[d] for d in order]
    if is_cast(node):
        found = inside_zeros(fgraph, node.inputs[0])
        return None if found is None else (cast(found[0], x.type.dtype), found[1])
    if isinstance(node.op, IncSubtensor):
        step = _set_in_zeros(fgraph, node)
    elif isinstance(node.op, Join):
        step = _joined_with_zeros(fgraph, node)
    else:
        step = None
    if step is None:
        return None
    part = cast(step[0], x.type.dtype)
    found = inside_zeros(fgraph, part)
    if found is None:
        return part, step[1]
    inner, around = found
    return inner, [(b + c, e + f) for (b, e), (c, f) in zip(around, step[1], strict=True)]


def _set_in_zeros(fgraph: FunctionGraph, node: Apply) -> tuple[Any, Pads] | None:
    """Return what an Apply puts into the middle of zeros, and how many are around it."""
    zeros, y = node.inputs[:2]
    if number_within(zeros) != 0:
        return None
    around = margins_of_operand(fgraph, node)
    return None if around is None else (y, around)


def margins_of_operand(fgraph: FunctionGraph, node: Apply) -> Pads | None:
    """Return how many elements are before and behind the part that an IncSubtensor sets or adds to.

    None unless the array that it sets or adds is known to have the shape of the part: one of length
    1 would be repeated.
    """
    x, y = node.inputs[:2]
    totals = lengths_of(fgraph, x)
    if totals is None or y.type.ndim != x.type.ndim:
        return None
    found: Pads = []
    for axis, (item, total) in enumerate(zip(index_of(node), totals, strict=True)):
        for n in _lengths_along(fgraph, y, axis):
            pair = _margins_around(item, total, n)
            if pair is not None:
                found.append(pair)
                break
        else:
            return None
    return found


#: how many operands of elementwise Applys are asked for a length
_MOST_OPERANDS = 32


def _lengths_along(fgraph: FunctionGraph, var: Any, axis: int) -> Iterator[Any]:
    """Yield what are the lengths of a variable along an axis: its own, and those of operands."""
    pending, seen = [var], {var}
    while pending and len(seen) < _MOST_OPERANDS:
        x = pending.pop(0)
        lengths = lengths_of(fgraph, x)
        if lengths is not None:
            yield lengths[axis]
        if x.owner is not None and isinstance(x.owner.op, Elemwise):
            more = [v for v in x.owner.inputs if v not in seen and not v.type.broadcastable[axis]]
            pending += more
            seen.update(more)


def margins(item: Any, total: Any) -> tuple[int, int] | None:
    """Return how many of ``total`` elements are before and behind a slice.

    None unless they are known, and known not to be more than there are.
    """
    if not isinstance(item, slice) or item.step not in (None, 1):
        return None
    start, behind = item.start or 0, _behind(item, total)
    if not isinstance(start, int) or start < 0 or behind is None or behind < 0:
        return None
    left = LengthSum(total)
    left.number -= start + behind
    return (start, behind) if left.is_positive() else None


def _margins_around(item: Any, total: Any, n: Any) -> tuple[int, int] | None:
    """Return the margins of a slice of ``n`` elements; None unless it is known to have as many."""
    if not isinstance(item, slice) or item.step not in (None, 1):
        return None
    start, more = item.start or 0, difference(total, n)
    if more is None or not isinstance(start, int) or not 0 <= start <= more:
        return None
    return (start, more - start) if _behind(item, total) == more - start else None


def _behind(item: slice, total: Any) -> int | None:
    """Return how many of ``total`` elements are behind the stop of a slice, None if not known."""
    stop = item.stop
    if stop is None:
        return 0
    return -stop if isinstance(stop, int) and stop < 0 else difference(total, stop)


def _joined_with_zeros(fgraph: FunctionGraph, node: Apply) -> tuple[Any, Pads] | None:
    """Return what an Apply joins with zeros along a dimension, and how many these are."""
    axis = known_int(node.inputs[0])
    parts = node.inputs[1:]
    middle = [i for i, part in enumerate(parts) if number_within(part) != 0]
    if axis is None or len(middle) != 1:
        return None
    axis %= node.outputs[0].type.ndim
    lengths = [lengths_of(fgraph, part) for part in parts]
    if any(one is None for one in lengths):
        return None
    sizes = []
    for i, one in enumerate(lengths):
        size = 0 if i in middle else known_int(one[axis])
        if size is None:
            return None
        sizes.append(size)
    around: Pads = [(0, 0)] * node.outputs[0].type.ndim
    (i,) = middle
    around[axis] = (sum(sizes[:i]), sum(sizes[i:]))
    return parts[i], around


def permutation(x: Any) -> tuple[int, ...] | None:
    """Return the order into which dimensions were permuted, if that is how ``x`` was made."""
    if x.owner is None or not isinstance(x.owner.op, DimShuffle):
        return None
    order = x.owner.op.new_order
    kept = tuple(d for d in order if isinstance(d, int))
    is_whole = len(kept) == len(order) == x.owner.inputs[0].type.ndim
    return kept if is_whole else None
