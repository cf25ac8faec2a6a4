"""What rules on elementwise algebra share: reading expressions, and making replacements."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from opwise.graph.apply import Apply
from opwise.graph.variable import Constant, Var, Variable
from opwise.scalar.op import Cast
from opwise.tensor.creation import Alloc
from opwise.tensor.dimshuffle import DimShuffle, dimshuffle_op
from opwise.tensor.elemwise import Elemwise, cast, elemwise
from opwise.tensor.knownvalues import constant_number
from opwise.tensor.type import tensor_type

# --- reading --------------------------------------------------------------------------------------


def row_name(node: Apply | None) -> Any:
    """Return the name of the scalar row that an Apply computes elementwise; None for other Applys.

    It is None for an Apply that overwrites an operand, too.
    """
    return None if node is None else getattr(node.op, "row_name", None)


def is_cast(node: Apply | None) -> bool:
    """Return whether an Apply casts elements, and overwrites no operand."""
    op = None if node is None else node.op
    return isinstance(op, Elemwise) and isinstance(op.scalar_op, Cast) and not op.inplace_pattern


def operands(var: Variable, name: str) -> list[Any] | None:
    """Return the operands of the scalar row ``name`` that computes ``var``, or None."""
    node = var.owner
    return node.inputs if node is not None and row_name(node) == name else None


def is_plain(node: Any) -> bool:
    """Return whether an Apply is elementwise, with one output, and not in place."""
    return (
        node is not None
        and isinstance(node.op, Elemwise)
        and len(node.outputs) == 1
        and not node.op.inplace_pattern
    )


def is_private(var: Variable) -> bool:
    """Return whether a computed variable has a single reader, so that it is removed with it."""
    return var.owner is not None and len(var._clients or ()) == 1


def number(var: Any) -> Any:
    """Return the number that all elements of a constant are, as a numpy scalar, or None."""
    return constant_number(var) if isinstance(var, Constant) else None


def number_filled(var: Any) -> Any:
    """Return ``number`` of a constant, or of the value of a fill."""
    return _number_through(var, _REORDERS)


def number_within(var: Any) -> Any:
    """Return ``number`` of a constant, or of the value of a fill or Alloc."""
    return _number_through(var, _REPEATS)


_REORDERS, _REPEATS = (DimShuffle,), (DimShuffle, Alloc)


def _number_through(var: Var, repeating: tuple[type, ...]) -> Any:
    node = var.owner
    while node is not None:
        if isinstance(node.op, repeating):
            var = node.inputs[0]
        elif row_name(node) == "second":
            var = node.inputs[1]
        else:
            return None
        node = var.owner
    return number(var)


#: of a variable with more readers, none is looked for
_FEW_READERS = 8


def already_there(new: Any) -> Any:
    """Return what an equal Apply of the graph computes, or ``new``, which a rule has just made.

    Parts of an operand that occurs twice would be moved down separately, each in its turn, and as
    long as there are two, neither goes further: the operand then has several readers.
    """
    node = new.owner
    readers = None if node is None else node.inputs[0]._clients
    if not readers or len(readers) > _FEW_READERS:
        return new
    for reader, _ in readers:
        if reader != "output" and reader is not node and reader.op == node.op:
            if all(map(_is_same_input, reader.inputs, node.inputs)):
                return reader.outputs[0]
    return new


def _is_same_input(a: Any, b: Any) -> bool:
    return a is b or (
        isinstance(a, Constant)
        and isinstance(b, Constant)
        and a.cached_signature() == b.cached_signature()
    )


# --- making ---------------------------------------------------------------------------------------


def number_like(var: Any, value: Any) -> Any:
    """Return a constant with the dtype and ndim of ``var``, and the only element ``value``."""
    # np.full would refuse -1 as an unsigned integer, which is the largest one
    data = np.array(value).astype(var.type.dtype).reshape((1,) * var.type.ndim)
    return tensor_type(var.type.dtype, (True,) * var.type.ndim).make_constant(data)


def typed_like(value: Any, out: Any, models: Iterable[Any]) -> Any:
    """Return ``value``, whose elements are those of ``out``, with the type of out, or None.

    It is cast, and filled into the shape of as few ``models`` as necessary; models that are inputs
    come first, since they cost nothing.
    """
    if value.type.dtype != out.type.dtype:
        value = cast(value, out.type.dtype)
    pattern = out.type.broadcastable
    if value.type.broadcastable == pattern:
        return value
    ranked = sorted(models, key=lambda model: model.owner is not None)
    while value.type.broadcastable != pattern:
        missing = [d for d, one in enumerate(value.type.broadcastable) if one and not pattern[d]]
        gained = [sum(not m.type.broadcastable[d] for d in missing) for m in ranked]
        best = max(gained, default=0)
        if not best:
            return None
        value = elemwise("second")(ranked[gained.index(best)], value)
    return value


def filled(out: Any, value: Any, models: Iterable[Any]) -> Any:
    """Return ``value`` as a variable of the type of ``out``, in the shape of ``models``."""
    return typed_like(number_like(out, value), out, models)


def for_output(node: Apply, new: Variable | None) -> list[Variable] | None:
    """Return the replacement list for the only output of an Apply; None if the type differs."""
    return [new] if new is not None and new.type == node.outputs[0].type else None


def combined(op: Any, terms: Sequence[Any], out: Any, models: Iterable[Any]) -> Any:
    """Return ``op`` of terms (a single term itself) with the type of ``out``, or None."""
    if len(terms) == 1:
        return typed_like(terms[0], out, models)
    new = op(*terms)
    return typed_like(new, out, models) if new.type.dtype == out.type.dtype else None


def shuffled(x: Any, order: Sequence[Any]) -> Any:
    """Return ``x`` with its dimensions in ``order``, by at most one DimShuffle.

    A dimension of length 1 that is dropped and inserted at the same place counts as kept.
    """
    while x.owner is not None and isinstance(x.owner.op, DimShuffle):
        inner = x.owner.op.new_order
        order = tuple(o if o == "x" else inner[o] for o in order)
        (x,) = x.owner.inputs
    unchanged = tuple(range(x.type.ndim))
    if len(order) == len(unchanged) and all(o in ("x", d) for d, o in enumerate(order)):
        # a dimension that became 'x' was dropped, so it is broadcastable
        order = unchanged
    if order == unchanged:
        return x
    op = dimshuffle_op(x.type.broadcastable, tuple(order))
    if not isinstance(x, Constant):
        return op(x)
    node = op.make_node(x)
    storage = [[None]]
    op.perform(node, [x.data], storage)
    return node.outputs[0].type.make_constant(storage[0][0])
