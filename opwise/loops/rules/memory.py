"""A loop keeps only the rows that are read, if those are its last ones."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, TypeAlias

from opwise.graph.apply import Apply
from opwise.graph.fgraph import FunctionGraph
from opwise.graph.traversal import ancestors
from opwise.graph.variable import Var
from opwise.loops.op import Scan
from opwise.loops.rules.after import added_up
from opwise.optimizers.rule import rule
from opwise.optimizers.rules.shape import as_type
from opwise.optimizers.rules.subtensor import index_of, part_of
from opwise.tensor.elemwise import elemwise
from opwise.tensor.slices import known_int
from opwise.tensor.subtensor import Subtensor

#: a number of rows, an int if it is known
_Count: TypeAlias = "int | Var"


#: no output has more rows; larger bounds of slices would be no integers in what computes with them
_MOST = 2**62


@rule(Scan, stage="specialize", tags=("fast_run", "scan"))
def scanOp_save_mem(fgraph: FunctionGraph, node: Apply) -> dict[Any, Any] | None:
    """loop(...)[-1] -> a loop that keeps its last row only"""
    return _keeping_less(fgraph, node, range(len(node.op.layout.kept)))


@rule(Scan, stage="canonicalize", tags=("fast_run", "scan", "scan_pushout"))
def scan_keep_last_sum(fgraph: FunctionGraph, node: Apply) -> dict[Any, Any] | None:
    """loop(total + x_t)[-1] -> a loop that keeps its last sum only; rules take it out of the loop

    What is added depends on sequences alone: no rows of a state have to be kept for it.
    """
    layout, step = node.op.layout, node.op.step_inputs
    states = [k for k, taps in enumerate(layout.taps) if taps == (1,) and layout.kept[k] is None]
    varying = {*step.objects, *(var for values in step.states for var in values)}
    sums = [
        k for k, terms in added_up(node.op, states).items() if varying.isdisjoint(ancestors(terms))
    ]
    return _keeping_less(fgraph, node, sums, only_last=True)


def _keeping_less(
    fgraph: FunctionGraph, node: Apply, outputs: Iterable[int], only_last: bool = False
) -> dict[Any, Any] | None:
    """Return what replaces a loop by one that keeps fewer rows of some outputs.

    only_last: keep one row, or all.
    """
    layout = node.op.layout
    last, read = layout.last, {}
    for k in outputs:
        if k in last:
            continue
        out = node.outputs[k]
        before = layout.rows_before[k] if k < len(layout.taps) else 0
        total = _total(node, before)
        parts = _parts(fgraph, out, total, before + 1 if layout.until else None)
        if parts is None:
            continue
        count = max(1, before, *(part.reach for part in parts))
        if count > (1 if only_last else _MOST):
            continue
        if not isinstance(total, int) or count <= total // 2:
            last[k], read[k] = count, [(part, part.start(total, count)) for part in parts]
    if not read:
        return None
    op = node.op.variant(node.op.step_inputs, node.op.step_outputs, layout.taps, last)
    replaced: dict[Any, Any] = {"remove": [node]}
    outputs = op(*node.inputs, return_list=True)
    for k, (old, new) in enumerate(zip(node.outputs, outputs, strict=True)):
        if k not in read:
            replaced[old] = new
        for part, start in read.get(k, ()):
            replaced[part.var] = as_type(part.of(new, start), part.var.type)
    return replaced


@rule(
    Scan, stage="specialize",
    tags=("fast_run", "inplace", "scan", "scan_make_inplace", "scanop_make_inplace"),
)  # fmt: skip
def scanOp_make_inplace(fgraph: FunctionGraph, node: Apply) -> list[Var] | None:
    """a loop that does not keep all values of a state -> a loop whose step overwrites the oldest"""
    if node.op.in_place or not node.op.oldest_values():
        return None
    outputs: list[Var] = node.op.overwriting()(*node.inputs, return_list=True)
    return outputs


def _total(node: Apply, before: int) -> _Count:
    """Return how many rows an output has if all are kept, and no condition ends the loop.

    before: the number of rows before the first step.
    """
    n_steps: Var = node.inputs[0]
    known = None if node.op.layout.until else known_int(n_steps)
    total: _Count = (n_steps if known is None else known) + before
    return total


@dataclass(frozen=True)
class _Part:
    """Something that is read of the rows of a loop."""

    var: Var
    #: how many rows at the beginning it leaves out first
    skipped: int
    #: how many of the last rows it is among
    reach: int
    #: the indices that select it from the others
    indices: list[list[Any]]

    def start(self, total: _Count, kept: int) -> Any:
        """Return how many of the rows that are kept it leaves out."""
        if not self.skipped:
            return 0
        if isinstance(total, int):
            return max(0, self.skipped - max(0, total - kept))
        dropped = elemwise("maximum")(total - kept, 0)
        return elemwise("maximum")(self.skipped - dropped, 0)

    def of(self, rows: Var, start: Any) -> Var:
        """Return it as a part of the rows that are kept."""
        if not isinstance(start, int) or start:
            rows = rows[start:]
        for index in self.indices:
            rows = part_of(rows, index)
        return rows


def _parts(fgraph: FunctionGraph, rows: Var, total: _Count, sure: int | None) -> list[_Part] | None:
    """Return what is read of rows, or None if something may be anywhere among them.

    total: see ``_total``. sure: of a loop that a condition ends, the number of rows after a step.
    """
    found = []
    for client, i in fgraph.clients(rows):
        if client == "output" or i != 0 or not isinstance(client.op, Subtensor):
            return None
        parts = _parts_between(fgraph, client, total, sure) or _part_at_end(client, total)
        if parts is None:
            return None
        found += parts
    return found


def _part_at_end(client: Apply, total: _Count | None) -> list[_Part] | None:
    """Return what an Apply of Subtensor selects, if the number of its rows counts from the end."""
    item, *others = index_of(client)
    item = _from_end(item, total) if isinstance(total, int) else item
    reach = _reach(item)
    return None if reach is None else [_Part(client.outputs[0], 0, reach, [[item, *others]])]


def _parts_between(
    fgraph: FunctionGraph, client: Apply, total: _Count, sure: int | None
) -> list[_Part] | None:
    """Return what is read of a part without some rows at the ends, mostly without the first one."""
    item, *others = index_of(client)
    if not isinstance(item, slice) or not _is_known(item) or item.step not in (None, 1):
        return None
    first, behind = item.start or 0, -(item.stop or 0)
    if first < 0 or behind < 0:
        return None
    size = total - first - behind if isinstance(total, int) else None
    found = []
    for reader, i in fgraph.clients(client.outputs[0]):
        if reader == "output" or i != 0 or not isinstance(reader.op, Subtensor):
            return None
        parts = _part_at_end(reader, size)
        if parts is None or (size is not None and parts[0].reach > size):
            return None
        (part,) = parts
        reach = behind + part.reach
        if sure is not None and first + reach > sure:
            return None
        between = [slice(None, item.stop), *others]
        found.append(_Part(part.var, first, reach, [between, *part.indices]))
    return found


def _from_end(item: Any, total: int) -> Any:
    """Return an item of an index that counts from the end of ``total`` rows, where it can be."""
    if isinstance(item, int):
        return item - total if 0 <= item < total else item
    if not isinstance(item, slice) or not _is_known(item) or item.step == 0:
        return item
    rows = range(total)[item]
    if not rows:
        return item
    stop = rows.stop - total
    return slice(rows.start - total, None if stop >= 0 else stop, item.step)


def _is_known(item: slice) -> bool:
    return all(p is None or isinstance(p, int) for p in (item.start, item.stop, item.step))


def _reach(item: Any) -> int | None:
    """Return among how many last rows those are that an index selects, None if that is unknown."""
    if isinstance(item, int):
        return -item if item < 0 else None
    if not isinstance(item, slice) or not _is_known(item):
        return None
    first, last = item.start, item.stop
    if (item.step or 1) > 0:
        return -first if first is not None and first < 0 and (last is None or last < 0) else None
    ends = (first is None or first < 0) and last is not None and last < 0
    return -1 - last if ends else None
