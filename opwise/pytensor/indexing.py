"""Translations of indexing, by numbers and slices as by arrays, and of changes of indexed parts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pytensor.tensor import basic as pb
from pytensor.tensor import subtensor as psub

from opwise.frontends import Translator, Untranslated
from opwise.graph.variable import Constant, Var
from opwise.pytensor.frontend import translates
from opwise.tensor.elemwise import cast, elemwise
from opwise.tensor.selection import nonzero
from opwise.tensor.subtensor import getitem, inc_subtensor


def _items(idx_list: Sequence[Any], indices: Sequence[Var]) -> tuple[Any, ...]:
    """Return the index that PyTensor's Op stands for; numbers in it are places in ``indices``."""

    def part(place: int | None) -> Any:
        return None if place is None else _number(indices[place])

    return tuple(
        slice(part(each.start), part(each.stop), part(each.step))
        if isinstance(each, slice)
        else _number(indices[each])
        for each in idx_list
    )


def _number(index: Var) -> Any:
    """Return an index as opwise's indexing takes it: constant numbers as such."""
    if isinstance(index, Constant) and index.type.ndim == 0 and index.type.dtype != "bool":
        return int(index.data)
    return index


@translates(psub.Subtensor, psub.AdvancedSubtensor)
def _subtensor(t: Translator, node: Any, x: Var, *indices: Var) -> Var:
    return getitem(x, _items(node.op.idx_list, indices))


@translates(psub.IncSubtensor, psub.AdvancedIncSubtensor)
def _inc_subtensor(t: Translator, node: Any, x: Var, y: Var, *indices: Var) -> Var:
    op = node.op
    part = getitem(x, _items(op.idx_list, indices))
    if y.type.ndim > part.type.ndim:
        raise Untranslated("a value with more dimensions than the part that it changes")
    if part is x:  # an index that takes everything
        whole = cast(y, x.type.dtype) if y.type.dtype != x.type.dtype else y
        changed = elemwise("second" if op.set_instead_of_inc else "add")(x, whole)
        return cast(changed, x.type.dtype)
    if getattr(op, "ignore_duplicates", False) and not op.set_instead_of_inc:
        y = elemwise("add")(part, y)
        return inc_subtensor(part, cast(y, x.type.dtype), set_instead_of_inc=True)
    if x.type.dtype != y.type.dtype and (y.type.dtype.startswith("complex")):
        raise Untranslated("complex numbers are set into real ones")
    return inc_subtensor(part, y, set_instead_of_inc=op.set_instead_of_inc)


@translates(pb.Nonzero)
def _nonzero(t: Translator, node: Any, x: Var) -> list[Var]:
    return list(nonzero(x))
