"""What is equal in loops is done once: within a loop, and in loops over the same steps."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from itertools import islice
from typing import Any

from opwise.errors import InconsistencyError
from opwise.graph.apply import Apply
from opwise.graph.fgraph import FunctionGraph
from opwise.graph.traversal import io_toposort, own_copy
from opwise.graph.variable import Constant, Var
from opwise.loops.layout import Parts
from opwise.loops.op import Scan
from opwise.loops.rules.selection import with_outputs
from opwise.optimizers.passes import Optimizer
from opwise.optimizers.rule import declare, rule
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


class LoopMerger(Optimizer):
    """Makes one loop of those over the same steps, none of which needs another one of them.

    All that may be one loop are compared and joined at once: joined in pairs, a loop would be
    compared and copied as often as there are others.
    """

    name = "scanOp_merge"

    def apply(self, fgraph: FunctionGraph) -> None:
        while self._join(fgraph):
            pass  # what is joined may share work with others

    def _join(self, fgraph: FunctionGraph) -> bool:
        """Join loops; return whether there were any."""
        alike = _alike(fgraph)
        if not alike:
            return False
        chooses = any(op.branches for op in fgraph.ops().values())
        known: dict[Apply, _Known] = {}
        for nodes in alike:
            known.update(_known(nodes, chooses))
        joined = False
        for nodes in _groups(fgraph, known):
            loop = _Loop.joined([
                replace(known[node].loop, given=node.op.layout.loop_inputs(node.inputs[1:]))
                for node in nodes
            ])  # fmt: skip
            old = [out for node in nodes for out in node.outputs]
            pairs = list(zip(old, loop.repeat(nodes), strict=True))
            try:
                fgraph.replace_all_validate_remove(pairs, nodes, reason=self)
            except InconsistencyError:
                continue  # the loops stay apart
            joined = True
        return joined


declare("stabilize", LoopMerger(), "fast_run", "scan", module=__name__)


@dataclass(frozen=True)
class _Known:
    """A loop that might be joined to others, and what decides whether it is."""

    loop: _Loop
    #: equal for loops over the same steps with the same settings, which end together
    key: Hashable
    #: the numbers of the Applys of its step that are not light work on scalars, see ``_Equal``
    heavy: frozenset[int]
    #: whether it is joined to all that have no heavy Applys either
    is_light: bool


def _alike(fgraph: FunctionGraph) -> list[list[Apply]]:
    """Return the loops over the same steps with the same settings, if they are several."""
    found: dict[tuple[Var, bool], list[list[Apply]]] = {}
    for node in fgraph.toposort():
        if not isinstance(node.op, Scan):
            continue
        op = node.op
        settings = (op.mode, op.profile, op.allow_gc)
        of_length = found.setdefault((node.inputs[0], op.layout.until), [])
        for nodes in of_length:
            other = nodes[0].op
            if settings == (other.mode, other.profile, other.allow_gc):
                nodes.append(node)
                break
        else:
            of_length.append([node])
    return [nodes for of_length in found.values() for nodes in of_length if len(nodes) > 1]


def _known(nodes: Sequence[Apply], chooses: bool) -> dict[Apply, _Known]:
    """Compare loops that are alike.

    chooses: whether the graph chooses between branches: a call may then need only one of two light
    loops.
    """
    loops = [_Loop.of(node, own=k > 0) for k, node in enumerate(nodes)]
    equal = _Equal(_Loop.joined(loops))
    found = {}
    for node, loop in zip(nodes, loops, strict=True):
        ends = tuple(map(equal.number, loop.outputs.condition))
        heavy = equal.heavy_in(loop)
        found[node] = _Known(loop, (id(nodes[0]), ends), heavy, not heavy and not chooses)
    return found


def _groups(fgraph: FunctionGraph, known: Mapping[Apply, _Known]) -> list[list[Apply]]:
    """Return the loops to join: all are light or share work, and no group needs itself.

    Sets of groups are integers, bit k for group k.
    """
    groups: list[list[Apply]] = []
    #: by group, those whose loops it needs
    needs: list[int] = []
    #: those with light loops, by key, and those with a heavy Apply, by key and number
    light: dict[Hashable, int] = {}
    users: dict[tuple[Hashable, int], int] = {}
    #: by Apply, groups that it needs; ``needs`` has the others
    read: dict[Apply | None, int] = {None: 0}
    for node in fgraph.toposort():
        reads = 0
        for var in node.inputs:
            reads |= read[var.owner]
        one = known.get(node)
        if one is not None:
            needed = reads
            for k in _bits(reads):
                needed |= needs[k]
            candidates = light.get(one.key, 0) if one.is_light else 0
            for number in one.heavy:
                candidates |= users.get((one.key, number), 0)
            candidates &= ~needed
            if candidates:
                k = next(_bits(candidates))
                groups[k].append(node)
                if needed & ~needs[k]:
                    for other, its in enumerate(needs):
                        if other == k or its >> k & 1:
                            needs[other] |= needed
            else:
                k = len(groups)
                groups.append([node])
                needs.append(needed)
            reads = 1 << k
            if one.is_light:
                light[one.key] = light.get(one.key, 0) | reads
            for number in one.heavy:
                users[one.key, number] = users.get((one.key, number), 0) | reads
        read[node] = reads
    return [nodes for nodes in groups if len(nodes) > 1]


def _bits(number: int) -> Iterator[int]:
    """Yield the places of the bits of a number, the lowest first."""
    while number:
        lowest = number & -number
        yield lowest.bit_length() - 1
        number ^= lowest


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

    @classmethod
    def joined(cls, loops: Sequence[_Loop]) -> _Loop:
        """Return a loop that does what several of them do."""

        def parts(name: str) -> Parts[Var]:
            return _joined([getattr(loop, name) for loop in loops])

        def both(name: str) -> tuple[Any, ...]:
            return tuple(one for loop in loops for one in getattr(loop, name))

        return cls(
            parts("inputs"), parts("outputs"), parts("given"),
            both("taps"), both("states_kept"), both("results_kept"),
        )  # fmt: skip

    def repeat(self, nodes: Sequence[Apply]) -> list[Var]:
        """Return the outputs of the loop in place of Applys, those of the first one first."""
        outputs = replace(self.outputs, condition=self.outputs.condition[:1])
        kept = enumerate(self.states_kept + self.results_kept)
        names = dict.fromkeys(node.op.name for node in nodes if node.op.name)
        first = nodes[0]
        op = Scan.of(
            self.inputs, outputs, self.taps, {k: n for k, n in kept if n is not None},
            name="&".join(names) or None, mode=first.op.mode, profile=first.op.profile,
            allow_gc=first.op.allow_gc, fits=all(node.op.fits for node in nodes),
        )  # fmt: skip
        done = op.repeat(first.inputs[0], self.given)
        rows = {part: iter(getattr(done, part)) for part in ("states", "results", "objects")}
        found: list[Any] = []
        for node in nodes:
            mine = node.op.layout.loop_outputs(node.outputs)
            for part, its_rows in rows.items():
                found += islice(its_rows, len(getattr(mine, part)))
        return [var[0] if isinstance(var, list) else var for var in found]

    def may_repeat(self) -> bool:
        """Return whether anything in it may be equal."""
        given = self.given
        firsts = [first for (first,) in given.states]
        several = (given.sequences, given.constants, firsts)
        return len(self.outputs.results) > 1 or any(len(set(each)) < len(each) for each in several)


def _joined(parts: Sequence[Parts[Var]]) -> Parts[Var]:
    return Parts(
        **{
            one.name: [var for each in parts for var in getattr(each, one.name)]
            for one in fields(Parts)
        }
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
            keys = [(grouped[k], self.number(out)) for k, out in enumerate(new)]

    def _number_applys(self) -> None:
        """Give the variables that Applys of the step compute numbers, equal ones the same."""
        self.numbers: dict[Var, int] = {}
        seen: dict[Any, int] = {}
        heavy: set[int] = set()
        for node in io_toposort(self.first, self.loop.outputs.flat()):
            key = (node.op, *map(self.number, node.inputs), *(v.type for v in node.outputs))
            number = seen.setdefault(key, len(seen))
            if not isinstance(node.op, _LIGHT) or not all(map(_is_scalar, node.inputs)):
                heavy.add(number)
            for var in node.outputs:
                self.numbers[var] = number
        #: the numbers of the Applys of its step that are not light work on scalars
        self.heavy = heavy

    def number(self, var: Var) -> Any:
        """Return what is equal for equal variables of the step."""
        if var in self.first:
            return self.first[var]
        if isinstance(var, Constant):
            return var.cached_signature()
        return self.numbers[var], var.index

    def heavy_in(self, loop: _Loop) -> frozenset[int]:
        """Return the heavy Applys of the step of a loop that is part of this one."""
        applys = io_toposort(loop.inputs.flat(), loop.outputs.flat())
        return frozenset(self.numbers[node.outputs[0]] for node in applys) & self.heavy

    def replaced(self) -> dict[Var, Var]:
        """Return the inputs of the step that others take the place of."""
        return {var: first for var, first in self.first.items() if var is not first}

    def first_outputs(self) -> list[int]:
        """Return for each output of the loop the first one that is equal to it."""
        loop, n_states = self.loop, len(self.states)
        firsts: dict[Any, int] = {}
        results = [
            firsts.setdefault((self.number(row), kept), k)
            for k, (row, kept) in enumerate(
                zip(loop.outputs.results, loop.results_kept, strict=True), n_states
            )
        ]
        n_rows = n_states + len(results)
        return [*self.states, *results, *range(n_rows, n_rows + len(loop.outputs.objects))]
