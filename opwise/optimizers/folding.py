"""Constant folding: expressions of constants are computed once, during optimization."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from opwise.errors import ShapeError
from opwise.graph.apply import Apply, NoParams
from opwise.graph.fgraph import FunctionGraph
from opwise.graph.traversal import io_toposort
from opwise.graph.variable import Constant, Var, Variable
from opwise.optimizers.rule import Replacements, rule
from opwise.tensor.elemwise import Elemwise
from opwise.tensor.variable import constant

#: larger results, in elements, are computed in each call unless their operands are as large
LARGEST = 1_000_000

_EVERYWHERE = ("fast_run", "fast_compile")


@rule(
    stage=dict.fromkeys(("canonicalize", "stabilize", "specialize", "uncanonicalize"), _EVERYWHERE),
    name="topo_constant_folding",
)
def constant_folding(fgraph: FunctionGraph, node: Apply) -> Replacements:
    """Replaces an Apply of constants by the constants that its Op computes.

    Not if the Op refuses (``do_constant_folding``) or fails, or if a large array would be made of
    small operands.
    """
    constants = [var for var in node.inputs if isinstance(var, Constant)]
    if not constants or len(constants) < len(node.inputs):
        return None
    if not node.op.do_constant_folding(node) or _is_too_large(node):
        return None
    values = perform(node, [var.data for var in constants])
    if values is None:
        return None
    return [out.type.make_constant(value) for out, value in zip(node.outputs, values, strict=True)]


def perform(node: Apply, inputs: Sequence[Any]) -> list[Any] | None:
    """Return the values of an Apply's outputs for values of its inputs; None if that fails."""
    destroyed = {i for indices in node.op.destroy_map.values() for i in indices}
    inputs = [
        value.copy() if i in destroyed and hasattr(value, "copy") else value
        for i, value in enumerate(inputs)
    ]
    storage = [[None] for _ in node.outputs]
    try:
        node.op.perform(node, inputs, storage, *params(node))
    except Exception:  # the Op will fail in the same way when the user calls the function
        return None
    values = [cell[0] for cell in storage]
    for i, (value, out) in enumerate(zip(values, node.outputs, strict=True)):
        if value is None or not out.type.is_valid_value(value):
            return None
        if isinstance(value, np.ndarray) and value.base is not None:
            # a view would keep the whole array in memory
            values[i] = value.copy()
    return values


def params(node: Apply) -> tuple[Any, ...]:
    """Return the extra arguments of ``perform`` of an Apply, as a tuple."""
    found = node.run_params()
    return () if found is NoParams else (found,)


# --- how large a result would be ------------------------------------------------------------------


def _is_too_large(node: Apply) -> bool:
    """Return whether the result of an Apply of constants is known to be too large to fold."""
    inputs: Sequence[Var] = node.inputs
    given = sum(int(np.size(v.data)) for v in inputs)
    op = node.op
    if isinstance(op, Elemwise):
        size = _broadcast_size(node)
    elif hasattr(op, "infer_shape") and _takes_lengths(node):
        size = _said_size(node)
    else:
        return False
    return size is not None and size > max(LARGEST, given)


def _takes_lengths(node: Apply) -> bool:
    """Return whether an input may be a length of the output."""
    return any(getattr(v.type, "dtype", "")[:3] in ("int", "uin", "boo") for v in node.inputs)


def _broadcast_size(node: Apply) -> int | None:
    inputs: Sequence[Var] = node.inputs
    if sum(int(np.size(v.data)) for v in inputs) <= 1000:
        return None  # a thousand elements broadcast to a million at most
    try:
        return math.prod(np.broadcast_shapes(*(np.shape(v.data) for v in inputs)))
    except ValueError:
        return None


def _said_size(node: Apply) -> int | None:
    """Return the number of elements of all outputs by ``infer_shape``; None if not known."""
    inputs: Sequence[Var] = node.inputs
    shapes = [
        tuple(constant(np.int64(n)) for n in np.shape(v.data)) if hasattr(v.type, "ndim") else None
        for v in inputs
    ]
    try:
        said = node.op.infer_shape(node, shapes)
        return sum(math.prod(map(_number, shape)) for shape in said if shape is not None)
    except (ShapeError, NotImplementedError, _NotKnown):
        return None
    except Exception:  # ShapeFeature reports a user's infer_shape that fails
        return None


class _NotKnown(Exception):
    """A length does not follow from constants alone."""


def _number(length: Var) -> int:
    """Return the value of a length that follows from constants."""
    if not hasattr(length, "type"):
        return int(length)
    known: dict[Variable, Any] = {}
    if isinstance(length, Constant):
        return int(length.data)
    for node in io_toposort([], [length]):
        inputs = []
        for var in node.inputs:
            if isinstance(var, Constant):
                inputs.append(var.data)
            elif var in known:
                inputs.append(known[var])
            else:
                raise _NotKnown
        values = perform(node, inputs)
        if values is None:
            raise _NotKnown
        known.update(zip(node.outputs, values, strict=True))
    if length not in known:
        raise _NotKnown
    return int(known[length])
