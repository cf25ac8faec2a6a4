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
from opwise.tensor.advanced_subtensor import AdvancedBooleanIncSubtensor, AdvancedBooleanSubtensor
from opwise.tensor.creation import Alloc
from opwise.tensor.elemwise import cast, elemwise
from opwise.tensor.reduce import Prod, Sum
from opwise.tensor.variable import constant


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


def _one_number(y: Var) -> Var:
    """Return the number that all elements of a variable are, as one without dimensions, or None."""
    owner = y.owner
    if owner is not None and isinstance(owner.op, Alloc):
        return _one_number(owner.inputs[0])
    if row_name(owner) == "second":
        return _one_number(owner.inputs[1])
    return shuffled(y, ()) if all(y.type.broadcastable) else None
