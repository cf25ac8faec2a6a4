"""Zeros that programs put around arrays, by setting a part of zeros or by joining with them."""

from __future__ import annotations

from typing import Any

from opwise.graph.apply import Apply
from opwise.graph.fgraph import FunctionGraph
from opwise.optimizers.rules.lengths import difference
from opwise.optimizers.rules.matching import number_within, shuffled
from opwise.optimizers.rules.shape import lengths_of
from opwise.optimizers.rules.subtensor import index_of
from opwise.scalar.op import Cast
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
    if _is_cast(node):
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


def _is_cast(node: Apply) -> bool:
    return isinstance(node.op, Elemwise) and isinstance(node.op.scalar_op, Cast)


def _set_in_zeros(fgraph: FunctionGraph, node: Apply) -> tuple[Any, Pads] | None:
    """Return what an Apply puts into the middle of zeros, and how many are around it."""
    zeros, y = node.inputs[:2]
    if number_within(zeros) != 0 or y.type.ndim != zeros.type.ndim:
        return None
    totals, lengths = lengths_of(fgraph, zeros), lengths_of(fgraph, y)
    if totals is None or lengths is None:
        return None
    around = []
    for item, total, n in zip(index_of(node), totals, lengths, strict=True):
        found = margins(item, total, n)
        if found is None:
            return None
        around.append(found)
    return y, around


def margins(item: Any, total: Any, n: Any) -> tuple[int, int] | None:
    """Return how many of ``total`` elements are before and behind a slice of ``n`` elements.

    None unless the slice is known to have that length.
    """
    if not isinstance(item, slice) or item.step not in (None, 1):
        return None
    start = item.start or 0
    more = difference(total, n)
    if more is None or not isinstance(start, int) or not 0 <= start <= more:
        return None
    stop: Any = total if item.stop is None else item.stop
    if isinstance(stop, int) and stop < 0:
        behind: Any = -stop
    else:
        behind = difference(total, stop)
    return (start, behind) if behind == more - start else None


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
    is_whole = "x" not in order and len(order) == x.owner.inputs[0].type.ndim
    return tuple(order) if is_whole else None
