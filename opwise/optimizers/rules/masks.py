"""Rules on what a mask of the same shape selects: sums of it, and numbers that replace it.

The elementwise forms need no positions of elements, and are fused with the work around them.
"""

from __future__ import annotations

from collections.abc import Sequence

from opwise.graph.apply import Apply
from opwise.graph.fgraph import FunctionGraph
from opwise.graph.variable import Var
from opwise.optimizers.rule import Replacements, rule
from opwise.optimizers.rules.matching import for_output, is_private, row_name, shuffled
from opwise.optimizers.rules.shape import as_type
from opwise.tensor.advanced_subtensor import (
    AdvancedBooleanIncSubtensor,
    AdvancedBooleanSubtensor,
    AdvancedIncSubtensor,
    AdvancedIncSubtensor1,
    AdvancedSubtensor,
    AdvancedSubtensor1,
)
from opwise.tensor.creation import Alloc
from opwise.tensor.elemwise import Elemwise, cast, elemwise
from opwise.tensor.reduce import Prod, Sum
from opwise.tensor.selection import Nonzero
from opwise.tensor.subtensor import Subtensor
from opwise.tensor.variable import constant

#: nanoseconds that it takes to find, read and write an element that a mask selects; work that takes
#: no longer is done for all elements
_SELECTING_NS = 6.0
_READS = (AdvancedSubtensor, AdvancedSubtensor1, AdvancedBooleanSubtensor)


def _covers(x: Var, items: Sequence[Var]) -> bool:
    """Return whether an index is one mask that has the shape of ``x``, as far as types say."""
    if len(items) != 1:
        return False
    pattern = getattr(items[0].type, "broadcastable", None)
    if pattern != x.type.broadcastable:
        return False
    return bool(items[0].type.dtype == "bool" and x.type.ndim > 0)


@rule(Sum, Prod, stage="specialize")
def local_sum_of_masked(fgraph: FunctionGraph, node: Apply) -> Replacements:
    """sum(x[mask]) is sum(switch(mask, x, 0)), and a product likewise, for a mask of all of x."""
    part: Var
    (part,) = node.inputs
    if not is_private(part) or not isinstance(part.owner.op, AdvancedBooleanSubtensor):
        return None
    x, *items = part.owner.inputs
    if not _covers(x, items) or node.op.axis not in (None, (0,)):
        return None
    neutral = cast(constant(0 if isinstance(node.op, Sum) else 1), x.type.dtype)
    kept = elemwise("switch")(items[0], x, shuffled(neutral, ("x",) * x.type.ndim))
    op = type(node.op)(axis=None, dtype=node.op.dtype, acc_dtype=node.op.acc_dtype)
    return for_output(node, op(kept))


@rule(AdvancedBooleanIncSubtensor, stage="specialize")
def local_number_by_mask(fgraph: FunctionGraph, node: Apply) -> Replacements:
    """Elements that a mask of all of x selects are set to, or incremented by, one number."""
    x, y, *items = node.inputs
    if node.op.inplace or not _covers(x, items):
        return None
    y = _one_number(y)
    if y is None:
        return None
    y = shuffled(cast(y, x.type.dtype), ("x",) * x.type.ndim)
    new = y if node.op.set_instead_of_inc else elemwise("add")(x, y)
    if new.type.dtype != x.type.dtype:
        return None
    return [as_type(elemwise("switch")(items[0], new, x), node.outputs[0].type)]


@rule(AdvancedIncSubtensor, AdvancedIncSubtensor1, AdvancedBooleanIncSubtensor, stage="specialize")
def local_elementwise_by_mask(fgraph: FunctionGraph, node: Apply) -> Replacements:
    """``x[mask] = f(x[mask], y[mask])`` is switch(mask, f(x, y), x), for a cheap elementwise f."""
    x, y, *items = node.inputs
    mask = _mask_of(x, items)
    if node.op.inplace or mask is None:
        return None
    room = [_SELECTING_NS]
    new = _of_all(y, mask, items, room)
    if new is None:
        return None
    if not node.op.set_instead_of_inc:
        new = elemwise("add")(x, new)
    new = cast(new, x.type.dtype)
    return [as_type(elemwise("switch")(mask, new, x), node.outputs[0].type)]


def _mask_of(x: Var, items: Sequence[Var]) -> Var | None:
    """Return the mask of all of ``x`` that an index is, or whose positions it is."""
    if _covers(x, items):
        return items[0]
    masks = []
    for k, item in enumerate(items):
        at = item.owner
        positions = at.inputs[0].owner if at is not None and isinstance(at.op, Subtensor) else None
        if positions is None or not isinstance(positions.op, Nonzero):
            return None
        if at.op.get_constant_idx(at.inputs, allow_partial=True) != [k]:
            return None
        masks += positions.inputs
    same = len(items) == x.type.ndim and all(mask is masks[0] for mask in masks)
    return masks[0] if same and _covers(x, masks[:1]) else None


def _of_all(y: Var, mask: Var, items: Sequence[Var], room: list[float]) -> Var | None:
    """Return what has, for all elements, what ``y`` has for those that a mask selects, or None.

    room: nanoseconds an element that it may take.
    """
    if all(y.type.broadcastable):
        return shuffled(y, ("x",) * mask.type.ndim)
    node = y.owner
    if node is None:
        return None
    if isinstance(node.op, _READS):
        source, *own = node.inputs
        is_same = len(own) == len(items) and all(a is b for a, b in zip(own, items, strict=True))
        return source if is_same and _covers(source, [mask]) else None
    if not isinstance(node.op, Elemwise) or not is_private(y) or len(node.outputs) > 1:
        return None
    op = node.op.scalar_op
    room[0] -= op.element_cost(len(node.inputs)) if op.has_cost() else _SELECTING_NS
    if room[0] < 0:
        return None
    given = []
    for each in node.inputs:
        whole = _of_all(each, mask, items, room)
        if whole is None:
            return None
        given.append(whole)
    return Elemwise(op)(*given)


def _one_number(y: Var) -> Var:
    """Return the number that all elements of a variable are, as one without dimensions, or None."""
    owner = y.owner
    if owner is not None and isinstance(owner.op, Alloc):
        return _one_number(owner.inputs[0])
    if row_name(owner) == "second":
        return _one_number(owner.inputs[1])
    return shuffled(y, ()) if all(y.type.broadcastable) else None
