"""Strips: steps that run one after the other on some rows of their arrays, then on the next ones.

Where nobody else reads what a step computes, it need not exist as a whole: a strip of it that stays
in the cache is enough. A distance matrix whose rows are added up, the scores of an attention or the
activations between layers are then never in memory. A sum over all rows is joined from those of
strips. Which axes can be cut is in the tables of ``opwise.tensor.parallel``; how many rows a strip
has is decided in each call, by the lengths.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from opwise.graph import aliasing
from opwise.graph.apply import Apply
from opwise.graph.variable import Variable
from opwise.linkers import opwise_c
from opwise.scalar import csource
from opwise.tensor.parallel import FoldedAxis, ParallelAxis, folded_axes, parallel_axes
from opwise.tensor.type import TensorType

#: (variable, its axis)
Length = tuple[Variable, int]
#: bytes of an element, and the lengths of axes
Size = tuple[int, tuple[Length, ...]]

#: no strips are looked for among more Applys: that takes some 30 microseconds for each
MOST_APPLYS = 4000
#: how often each Apply is added to a set, on average, before the search ends
_MOST_TRIES = 4
#: dtypes in which parts are joined, where they are not those of results
_WIDER = {"float16": "float64", "float32": "float64", "complex64": "complex128"}
#: what a byte of an operand that each strip reads again, or of a total that it adds to, costs,
#: beside what a byte that stays in the cache saves
_REPEATED_COST = 4


@dataclass(frozen=True)
class Members:
    """Applys that run in strips."""

    order: tuple[Apply, ...]
    #: the axis along which each result is cut
    axes: Mapping[Variable, int]
    #: {(position in ``order``, input): axis} of the given values that are cut
    given: Mapping[tuple[int, int], int]
    #: the results that are needed as a whole
    kept: tuple[Variable, ...]
    #: of the others, how much a row takes
    between: tuple[Size, ...]
    #: {total of all rows: the operation that joins those of strips}
    totals: Mapping[Variable, str]
    #: how much each strip reads or writes besides its rows
    repeated: tuple[Size, ...]


def divide(
    order: Sequence[Apply],
    outputs: Iterable[Variable],
    before: Mapping[Apply, Iterable[Apply]],
    runs_in_c: Callable[[Apply], bool],
) -> tuple[list[Apply], list[Members]]:
    """Return the order in which Applys run, and the parts of it that run in strips.

    order: an order without strips. outputs: the results of the graph. before: the Applys that have
    to run before another one besides those whose results it reads. runs_in_c: whether the step of
    an Apply does.
    """
    if len(order) > MOST_APPLYS:
        return list(order), []
    growth = _Growth(order, outputs, before, runs_in_c)
    placed = _Placed(order, growth.depends)
    found: list[Members] = []
    for node in growth.seeds():
        members = growth.best_around(node)
        if members is None:
            continue
        together = placed.gather(members.axes_of)
        cut = growth.members(together, members) if together else None
        if cut is not None and cut.between:
            growth.taken.update(together)
            found.append(cut)
        else:
            growth.give_up(members)
    return placed.order, sorted(found, key=lambda cut: placed.place[cut.order[0]])


AnyAxis = ParallelAxis | FoldedAxis


@dataclass
class _Found:
    """Applys that can be cut together, each with the parallel axis along which it is."""

    axes_of: dict[Apply, AnyAxis] = field(default_factory=dict)
    #: these, and those that were dropped again
    tried: list[tuple[Apply, AnyAxis]] = field(default_factory=list)
    axis: dict[Variable, int] = field(default_factory=dict)
    #: the totals of all rows
    totals: dict[Variable, str] = field(default_factory=dict)
    #: the results that only these Applys read, and those of them that have memory of their own
    only_inside: set[Variable] = field(default_factory=set)
    between: list[Variable] = field(default_factory=list)
    #: the given length, if it is known, that an axis of a result has
    lengths: dict[Length, Length | None] = field(default_factory=dict)


class _Growth:
    """Looks for Applys that can be cut together."""

    def __init__(
        self,
        order: Sequence[Apply],
        outputs: Iterable[Variable],
        before: Mapping[Apply, Iterable[Apply]],
        runs_in_c: Callable[[Apply], bool],
    ) -> None:
        self._order = order
        self._place = {node: k for k, node in enumerate(order)}
        self._outputs = set(outputs)
        self._before, self._runs_in_c = before, runs_in_c
        self._axes: dict[Apply, list[ParallelAxis]] = {}
        self._folds: dict[Apply, list[FoldedAxis]] = {}
        self._tries = 0
        #: whether totals may be as large as what they are of, and whether one was refused
        self._large_totals = self._refused = False
        #: the Applys that are in a stretch
        self.taken: set[Apply] = set()
        #: what was added, along an axis, where nothing was saved
        self._in_vain: set[tuple[Apply, AnyAxis]] = set()

    def axes_of(self, node: Apply) -> list[ParallelAxis]:
        """Return the parallel axes of an Apply that can be part of a stretch."""
        if node not in self._axes:
            self._axes[node] = parallel_axes(node) if self._fits(node) else []
        return [] if node in self.taken else self._axes[node]

    def _fits(self, node: Apply) -> bool:
        """Return whether an Apply can be part of a stretch."""
        return (
            node in self._place
            and node not in self.taken
            and all(isinstance(v.type, TensorType) for v in node.outputs)
            and self._runs_in_c(node)
        )

    def seeds(self) -> Iterator[Apply]:
        """Yield the Applys to look around: once without large totals, then with those, if there are
        some. A large total gains less than a result between the Applys that read it."""
        for self._large_totals in (False, True):
            self._tries = _MOST_TRIES * len(self._order)
            self._in_vain.clear()
            yield from self._order
            if not self._refused:
                return

    def best_around(self, node: Apply) -> _Found | None:
        """Return the Applys that can be cut together with one; None if nothing is saved.

        They are those along the first axis by which its own result is saved, or else those that
        save most.
        """
        best = None
        if self._tries < 0 or node in self.taken or not _may_be_large(node):
            return None
        if self._outputs.issuperset(node.outputs):
            return None
        for axis in self.axes_of(node):
            if (node, axis) in self._in_vain:
                continue
            found = self._around(node, axis)
            if not found.between:
                self.give_up(found)
            elif found.only_inside.issuperset(node.outputs):
                return found
            elif best is None or len(found.between) > len(best.between):
                best = found
        return best

    def give_up(self, found: _Found) -> None:
        """Do not look around these Applys again along the same axes."""
        self._in_vain.update(found.tried)

    def depends(self, node: Apply) -> Iterable[Apply]:
        """Return the Applys that have to run before one."""
        yield from (var.owner for var in node.inputs if var.owner is not None)
        yield from self._before.get(node, ())

    @staticmethod
    def _readers(var: Variable) -> list[Apply]:
        return [node for node, _ in var._clients if node != "output"]

    def _around(self, first: Apply, axis: ParallelAxis) -> _Found:
        """Return the Applys that can be cut together with one along one of its axes."""
        found = _Found()
        if not self._add(found, first, axis):
            found.tried.append((first, axis))
            return found
        waiting = [first]
        while waiting:
            node = waiting.pop()
            for out in node.outputs:
                for reader in self._readers(out) if out in found.axis else ():
                    every: list[AnyAxis] = [*self.axes_of(reader), *self._folds_of(reader)]
                    if self._add_fitting(found, reader, every):
                        waiting.append(reader)
            for var, d in zip(node.inputs, found.axes_of[node].inputs, strict=True):
                owner = var.owner
                if d is None or owner is None or var in found.axis:
                    continue
                fitting = [one for one in self.axes_of(owner) if one.outputs[var.index] == d]
                if self._add_fitting(found, owner, fitting):
                    waiting.append(owner)
        self._drop_late(found)
        self._drop_ends(found)
        return found

    def _drop_late(self, found: _Found) -> None:
        """Drop the Applys that need others by way of Applys that cannot be cut with them."""
        members = found.axes_of
        places = [self._place[node] for node in members]
        late: set[Apply] = set()
        for node in self._order[min(places) : max(places) + 1]:
            if node in members:
                if late and not late.isdisjoint(self.depends(node)):
                    late.add(node)
                    self._drop(found, node)
            elif any(need in late or need in members for need in self.depends(node)):
                late.add(node)

    @staticmethod
    def _drop(found: _Found, node: Apply) -> None:
        del found.axes_of[node]
        for out in node.outputs:
            found.axis.pop(out, None)
            found.totals.pop(out, None)

    def _folds_of(self, node: Apply) -> list[FoldedAxis]:
        """Return the folded axes of an Apply that can be part of a stretch, and are joined by C."""
        if node not in self._folds:
            fits = self._fits(node) and not node.op.view_map and not node.op.destroy_map
            self._folds[node] = [
                one for one in (folded_axes(node) if fits else ())
                if all(join_loop(one.row, out.type.dtype) in opwise_c.LOOPS for out in node.outputs)
            ]  # fmt: skip
        if node in self.taken or not self._folds[node]:
            return []
        if not self._large_totals and max(map(_rank, node.outputs)) >= max(map(_rank, node.inputs)):
            self._refused = True
            return []
        return self._folds[node]

    def _add_fitting(self, found: _Found, node: Apply, axes: Iterable[AnyAxis]) -> bool:
        return node not in found.axes_of and any(self._add(found, node, axis) for axis in axes)

    def _add(self, found: _Found, node: Apply, axis: AnyAxis) -> bool:
        """Add an Apply if it fits those that are there; return whether it does."""
        for var, d in zip(node.inputs, axis.inputs, strict=True):
            if found.axis.get(var, d) != d or var in found.totals:
                return False
        if node.op.destroy_map:
            for i in aliasing.destroyed_inputs(node):
                owner = node.inputs[i].owner  # it may be a result of the same stretch
                if owner is None or not self.axes_of(owner):
                    return False
        if isinstance(axis, FoldedAxis):
            if any(
                reader in found.axes_of for out in node.outputs for reader in self._readers(out)
            ):
                return False
            found.totals.update(dict.fromkeys(node.outputs, axis.row))
        else:
            for out, d in zip(node.outputs, axis.outputs, strict=True):
                for reader, i in out._clients:
                    if reader != "output" and reader in found.axes_of:
                        if found.axes_of[reader].inputs[i] != d:
                            return False
            found.axis.update(zip(node.outputs, axis.outputs, strict=True))
        found.axes_of[node] = axis
        found.tried.append((node, axis))
        self._tries -= 1
        return True

    def _drop_ends(self, found: _Found) -> None:
        """Drop what gains nothing, or may not be cut, and count what is saved."""
        changed = True
        while changed:
            changed = False
            for node in sorted(found.axes_of, key=self._place.__getitem__, reverse=True):
                if self._gains_nothing(found, node) or self._overwrites_given(found, node):
                    self._drop(found, node)
                    changed = True
        found.only_inside = {out for out in found.axis if self._only_inside(found, out)}
        found.between = [
            out
            for node in found.axes_of
            if _may_be_large(node)
            for out in node.outputs
            if out in found.only_inside
        ]

    @staticmethod
    def _overwrites_given(found: _Found, node: Apply) -> bool:
        return bool(node.op.destroy_map) and any(
            node.inputs[i] not in found.axis for i in aliasing.destroyed_inputs(node)
        )

    def _gains_nothing(self, found: _Found, node: Apply) -> bool:
        """Return whether an Apply is a view that nobody needs in strips, or of a given value that
        others need as a whole."""
        if not node.op.view_map:
            return False
        (out,) = node.outputs
        if not any(reader in found.axes_of for reader in self._readers(out)):
            return True
        return node.inputs[0] not in found.axis and not self._only_inside(found, out)

    def _only_inside(self, found: _Found, var: Variable) -> bool:
        readers = self._readers(var)
        return (
            bool(readers)
            and var not in self._outputs
            and all(reader in found.axes_of for reader in readers)
        )

    def members(self, order: Sequence[Apply], members: _Found) -> Members:
        """Return some Applys that are cut together, in the order in which they run."""
        given = {
            (k, i): d
            for k, node in enumerate(order)
            for i, (var, d) in enumerate(
                zip(node.inputs, members.axes_of[node].inputs, strict=True)
            )
            if d is not None and var not in members.axis
        }
        kept = [
            out
            for node in order
            for out in node.outputs
            if out in members.axis and out not in members.only_inside
        ]
        repeated = [self._size(members, var, _REPEATED_COST) for var in members.totals]
        for node in order:
            if node.op.profile_kind == "product":
                repeated += [
                    self._size(members, var, _REPEATED_COST)
                    for var, d in zip(node.inputs, members.axes_of[node].inputs, strict=True)
                    if d is None
                ]
        return Members(
            order=tuple(order),
            axes=dict(members.axis),
            given=given,
            kept=tuple(kept),
            between=_known(self._size(members, var) for var in members.between),
            totals=dict(members.totals),
            repeated=_known(repeated),
        )

    def _size(self, members: _Found, var: Variable, factor: int = 1) -> Size | None:
        """Return how many bytes there are in a row of a value, or in all of one that is not cut;
        None if a length is not known before it is computed."""
        found = []
        for d, one in enumerate(var.type.broadcastable):
            if one or d == members.axis.get(var):
                continue
            length = self._length(members, var, d)
            if length is None:
                return None
            found.append(length)
        return factor * var.type.numpy_dtype.itemsize, tuple(found)

    def _length(self, members: _Found, var: Variable, d: int) -> Length | None:
        """Return the given length that an axis has; None if it is not known."""
        found: Length | None = (var, d)
        passed = []
        while found is not None and (found[0] in members.axis or found[0] in members.totals):
            passed.append(found)
            found = members.lengths[found] if found in members.lengths else self._operand(*found)
        members.lengths.update(dict.fromkeys(passed, found))
        return found

    def _operand(self, var: Variable, d: int) -> Length | None:
        """Return an operand, and its axis, from which a result has the length of an axis."""
        node = var.owner
        assert node is not None
        for one in self._axes.get(node) or parallel_axes(node):
            if one.outputs[var.index] == d:
                for operand, axis in zip(node.inputs, one.inputs, strict=True):
                    if axis is not None:
                        return operand, axis
        for operand in node.inputs:  # an estimate
            if getattr(operand.type, "ndim", -1) == var.type.ndim:
                return operand, d
        return None


def _may_be_large(node: Apply) -> bool:
    """Return whether results of an Apply have memory, and may be larger than its operands: those
    of a lower rank are small beside them."""
    if node.op.view_map or node.op.destroy_map:
        return False
    return max(map(_rank, node.outputs)) >= max(map(_rank, node.inputs), default=0)


def _rank(var: Variable) -> int:
    """Return how many axes of a variable may be longer than 1."""
    return getattr(var.type, "broadcastable", ()).count(False)


def join_loop(row: str, dtype: str) -> str:
    """Return the name of the built-in loop that joins parts of results of a dtype."""
    return f"{row}_{csource.short(joined_in(dtype))}"


def joined_in(dtype: str) -> str:
    """Return the dtype in which parts of results of a dtype are joined."""
    return _WIDER.get(dtype, dtype)


def _known(sizes: Iterable[Size | None]) -> tuple[Size, ...]:
    return tuple(size for size in sizes if size is not None)


class _Placed:
    """The order in which Applys run, as sets of them are put together.

    depends: returns the Applys that have to run before one.
    """

    def __init__(self, order: Sequence[Apply], depends: Callable[[Apply], Iterable[Apply]]) -> None:
        self.order, self._depends = list(order), depends
        self.place = {node: k for k, node in enumerate(order)}
        #: the sets that were put together, by member
        self._together: dict[Apply, list[Apply]] = {}

    def gather(self, members: Iterable[Apply]) -> list[Apply]:
        """Put some Applys together, and return them in the order in which they run.

        [] if another set, which stays together, would have to run both before and after them. No
        member needs another one by way of an Apply that is none.
        """
        wanted = set(members)
        places = [self.place[node] for node in wanted]
        first, end = min(places), max(places) + 1
        early, together, late = [], [], []
        later: set[Apply] = set()
        for node in self.order[first:end]:
            if node in wanted:
                if later and not later.isdisjoint(self._depends(node)):
                    return []
                together.append(node)
                continue
            with_it = self._together.get(node, [node])
            if node in later or any(
                need in later or need in wanted for one in with_it for need in self._depends(one)
            ):
                later.update(with_it)
                late.append(node)
            else:
                early.append(node)
        self._together.update((node, together) for node in together)
        self.order[first:end] = [*early, *together, *late]
        self.place.update((node, k) for k, node in enumerate(self.order[first:end], first))
        return together
