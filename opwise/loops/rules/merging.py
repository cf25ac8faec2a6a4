"""What is equal in loops is done once: within a loop, and in loops over the same steps."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from opwise.graph.apply import Apply
from opwise.graph.fgraph import FunctionGraph
from opwise.graph.traversal import ancestors, io_toposort, own_copy
from opwise.graph.variable import Constant
from opwise.loops.layout import Parts, Var
from opwise.loops.op import Scan
from opwise.loops.rules.selection import with_outputs
from opwise.optimizers.rule import rule
from opwise.tensor.dimshuffle import DimShuffle
from opwise.tensor.elemwise import Elemwise
from opwise.tensor.join import Join, MakeVector
from opwise.tensor.reduce import CAReduce
from opwise.tensor.shape import Rebroadcast
from opwise.tensor.subtensor import Subtensor

#: Ops that keep no step from running in C. On scalars they are fast together; arrays of one loop
#: may displace those of another one from the cache: 4 loops over 50,000 numbers took a fifth longer
#: as one loop
_LIGHT = (Elemwise, DimShuffle, CAReduce, Subtensor, MakeVector, Join, Rebroadcast)


@rule(Scan, stage=("canonicalize", "stabilize"), tags=("fast_run", "scan", "scan_merge_inouts"))
def scanOp_merge_inouts(fgraph: FunctionGraph, node: Apply) -> list[Var] | None:
    """a loop with equal inputs, states or results -> a loop with one of each"""
    loop = _Loop.of(node)
    if not loop.may_repeat():
        return None
    equal = _Equal(loop)
    outputs = equal.first_outputs()
    if not equal.replaced() and outputs == list(range(len(outputs))):
        return None
    found = with_outputs(node, set(outputs), equal.replaced())
    return [found[k] for k in outputs]


@rule(Scan, stage="stabilize", tags=("fast_run", "scan"))
def scanOp_merge(fgraph: FunctionGraph, node: Apply) -> dict[Any, Any] | None:
    """two loops over the same steps, neither of which needs the other one -> one loop"""
    for other, i in fgraph.clients(node.inputs[0]):
        if other == "output" or i != 0 or other is node or not _may_join(node, other):
            continue
        both = _Loop.of(node).joined(_Loop.of(other, own=True))
        equal = _Equal(both)
        if (
            equal.ends_together()
            and _is_faster(fgraph, node, other, equal)
            and not _depends(node, other)
        ):
            outputs = both.repeat(node, other)
            old = [*node.outputs, *other.outputs]
            return {**dict(zip(old, outputs, strict=True)), "remove": [node, other]}
    return None


def _may_join(node: Apply, other: Apply) -> bool:
    """Return whether two Applys are loops with the same settings."""
    a, b = node.op, other.op
    return (
        isinstance(b, Scan)
        and (a.mode, a.profile, a.allow_gc) == (b.mode, b.profile, b.allow_gc)
        and a.layout.until == b.layout.until
    )


def _is_faster(fgraph: FunctionGraph, node: Apply, other: Apply, both: _Equal) -> bool:
    """Return whether one loop takes less time than two: both are light, or they share work.

    If the graph chooses between branches, a call may need only one of two loops.
    """
    apart = sum(_Equal(_Loop.of(one)).heavy for one in (node, other))
    if apart == 0:
        return not any(op.branches for op in fgraph.ops().values())
    return both.heavy < apart


def _depends(node: Apply, other: Apply) -> bool:
    """Return whether one of two Applys is computed from the other one."""
    return any(
        var.owner is second
        for first, second in ((node, other), (other, node))
        for var in ancestors(first.inputs)
    )


@dataclass(frozen=True)
class _Loop:
    """A step, and what its loop is given."""

    inputs: Parts[Var]
    outputs: Parts[Var]
    given: Parts[Var]
    taps: tuple[tuple[int, ...], ...]
    #: by state, and by result, how many last rows are kept, see ``Layout.kept``
    states_kept: tuple[int | None, ...]
    results_kept: tuple[int | None, ...]

    @classmethod
    def of(cls, node: Apply, own: bool = False) -> _Loop:
        """Return the loop of an Apply; own: with a copy of its step."""
        op, layout = node.op, node.op.layout
        inputs, outputs = op.step_inputs, op.step_outputs
        if own:
            fresh, computed = own_copy(op.inputs, op.outputs)
            inputs, outputs = layout.step_inputs(fresh), layout.step_outputs(computed)
        n_states = len(layout.taps)
        return cls(
            inputs, outputs, layout.loop_inputs(node.inputs[1:]), layout.taps,
            layout.kept[:n_states], layout.kept[n_states:],
        )  # fmt: skip

    def joined(self, other: _Loop) -> _Loop:
        """Return a loop that does what two of them do."""
        return _Loop(
            _joined(self.inputs, other.inputs),
            _joined(self.outputs, other.outputs),
            _joined(self.given, other.given),
            self.taps + other.taps,
            self.states_kept + other.states_kept,
            self.results_kept + other.results_kept,
        )

    def repeat(self, node: Apply, other: Apply) -> list[Var]:
        """Return the outputs of the loop in place of two Applys, those of the first one first."""
        outputs = replace(self.outputs, condition=self.outputs.condition[:1])
        kept = enumerate(self.states_kept + self.results_kept)
        names = dict.fromkeys(one.op.name for one in (node, other) if one.op.name)
        op = Scan.of(
            self.inputs, outputs, self.taps, {k: n for k, n in kept if n is not None},
            name="&".join(names) or None, mode=node.op.mode, profile=node.op.profile,
            allow_gc=node.op.allow_gc, fits=node.op.fits and other.op.fits,
        )  # fmt: skip
        done = op.repeat(node.inputs[0], self.given)
        firsts, seconds = [], []
        mine = node.op.layout.loop_outputs(node.outputs)
        for part in ("states", "results", "objects"):
            rows, n = getattr(done, part), len(getattr(mine, part))
            firsts += rows[:n]
            seconds += rows[n:]
        return [var[0] if isinstance(var, list) else var for var in firsts + seconds]

    def may_repeat(self) -> bool:
        """Return whether anything in it may be equal."""
        given = self.given
        firsts = [first for (first,) in given.states]
        several = (given.sequences, given.constants, firsts)
        return len(self.outputs.results) > 1 or any(len(set(each)) < len(each) for each in several)


def _joined(a: Parts[Var], b: Parts[Var]) -> Parts[Var]:
    return Parts(
        sequences=a.sequences + b.sequences,
        states=a.states + b.states,
        results=a.results + b.results,
        objects=a.objects + b.objects,
        constants=a.constants + b.constants,
        condition=a.condition + b.condition,
    )


def _is_scalar(var: Var) -> bool:
    return getattr(var.type, "ndim", None) == 0


class _Equal:
    """What is equal in a loop: inputs of its step, states, results, and Applys of its step."""

    def __init__(self, loop: _Loop):
        self.loop = loop
        #: input of the step -> the first one that is equal to it
        self.first: dict[Var, Var] = {}
        for own, outside in (
            (loop.inputs.sequences, loop.given.sequences),
            (loop.inputs.constants, loop.given.constants),
        ):
            firsts: dict[Var, Var] = {}
            for var, given in zip(own, outside, strict=True):
                self.first[var] = firsts.setdefault(given, var)
        self.first.update((var, var) for var in loop.inputs.objects)
        #: by state, the first one that is equal to it
        self.states = self._first_states()

    def _first_states(self) -> list[int]:
        """Find equal states: those that begin with the same and then go on in the same way.

        All that begin with the same count as equal, until their steps are seen to differ.
        """
        loop = self.loop
        new = [out for (out,) in loop.outputs.states]
        keys: Sequence[Any] = [
            (first, taps, kept, out.type)
            for (first,), taps, kept, out in zip(
                loop.given.states, loop.taps, loop.states_kept, new, strict=True
            )
        ]
        found: list[int] | None = None
        while True:
            firsts: dict[Any, int] = {}
            grouped = [firsts.setdefault(key, k) for k, key in enumerate(keys)]
            for k, values in enumerate(loop.inputs.states):
                self.first.update(zip(values, loop.inputs.states[grouped[k]], strict=True))
            if grouped == found:
                return found
            found = grouped
            self._number_applys()
            keys = [(grouped[k], self._number(out)) for k, out in enumerate(new)]

    def _number_applys(self) -> None:
        """Give the variables that Applys of the step compute numbers, equal ones the same."""
        self.numbers: dict[Var, int] = {}
        seen: dict[Any, int] = {}
        heavy = set()
        for node in io_toposort(self.first, self.loop.outputs.flat()):
            key = (node.op, *map(self._number, node.inputs), *(v.type for v in node.outputs))
            number = seen.setdefault(key, len(seen))
            if not isinstance(node.op, _LIGHT) or not all(map(_is_scalar, node.inputs)):
                heavy.add(number)
            for var in node.outputs:
                self.numbers[var] = number
        #: how many different Applys of its step are not light work on scalars
        self.heavy = len(heavy)

    def _number(self, var: Var) -> Any:
        """Return what is equal for equal variables of the step."""
        if var in self.first:
            return self.first[var]
        if isinstance(var, Constant):
            return var.cached_signature()
        return self.numbers[var], var.index

    def ends_together(self) -> bool:
        """Return whether all conditions that end the loop are equal."""
        return len({self._number(var) for var in self.loop.outputs.condition}) <= 1

    def replaced(self) -> dict[Var, Var]:
        """Return the inputs of the step that others take the place of."""
        return {var: first for var, first in self.first.items() if var is not first}

    def first_outputs(self) -> list[int]:
        """Return for each output of the loop the first one that is equal to it."""
        loop, n_states = self.loop, len(self.states)
        firsts: dict[Any, int] = {}
        results = [
            firsts.setdefault((self._number(row), kept), k)
            for k, (row, kept) in enumerate(
                zip(loop.outputs.results, loop.results_kept, strict=True), n_states
            )
        ]
        n_rows = n_states + len(results)
        return [*self.states, *results, *range(n_rows, n_rows + len(loop.outputs.objects))]
