"""Program: a graph frozen for execution: the order, the slots that hold values, their lifetimes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from opwise.graph import aliasing, guards
from opwise.graph.apply import Apply
from opwise.graph.fgraph import FunctionGraph
from opwise.graph.guards import Guard
from opwise.graph.variable import Constant, Variable
from opwise.linkers import strips
from opwise.scalar import csource


@dataclass(frozen=True)
class Step:
    """One Apply in a Program."""

    node: Apply
    #: the slots that it reads and writes
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    #: the slots that nobody reads after it
    dies: tuple[int, ...]


@dataclass(frozen=True)
class Choice:
    """A decision between the branches of an Apply, made during a call."""

    #: before which step it is made
    at: int
    #: the slot of the condition
    condition: int
    #: the guard of the Apply, and its alternatives: of a true condition, of a false one
    guard: Guard
    branches: tuple[int, int]


#: bytes of an element, and the slots and axes that have the lengths
Size = tuple[int, tuple[tuple[int, int], ...]]


@dataclass(frozen=True)
class Total:
    """A total of all rows, joined from those of strips."""

    slot: int
    #: bytes of an element of the dtype in which it is joined
    itemsize: int
    #: the built-in loops that join, and that go to that dtype and back; "" where it is the same
    join: str
    widen: str
    narrow: str


@dataclass(frozen=True)
class Stretch:
    """Steps that may run on some rows of their arrays, then on the next ones."""

    #: the first step, and the one after the last
    first: int
    end: int
    #: (slot, axis) of each given value that is cut
    given: tuple[tuple[int, int], ...]
    #: {(step, input): which of ``given`` it reads}
    reads: dict[tuple[int, int], int]
    #: {slot: axis} of the results
    axes: dict[int, int]
    #: the slots of the results that are needed as a whole
    kept: tuple[int, ...]
    #: of the others, how much a row takes
    between: tuple[Size, ...]
    totals: tuple[Total, ...]
    #: how much each strip reads or writes besides its rows
    repeated: tuple[Size, ...]
    #: how many bytes of these each thread computes at once
    bytes: int


@dataclass(frozen=True)
class Program:
    """What a VM runs. Slots are numbers; each holds the value of one variable during a call."""

    fgraph: FunctionGraph
    #: by slot
    variables: tuple[Variable, ...]
    steps: tuple[Step, ...]
    #: the slots of the graph's inputs and outputs
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    #: {slot: value}
    constants: dict[int, Any]
    #: for each slot the one whose memory it may share, or -1
    parents: tuple[int, ...]
    #: the first step that may overwrite an input; the number of steps if none does
    commit: int
    #: the inputs that steps from ``commit`` on may overwrite
    destroyed: tuple[int, ...]
    #: slots that are released after the results are returned, not by a step: outputs, views of
    #: inputs, and memory of which an output is a view
    ends: tuple[int, ...]
    #: the decisions between branches, in order; without any, every call runs all steps
    choices: tuple[Choice, ...] = ()
    #: the guard of each step (see ``opwise.graph.guards``); empty if there are no choices
    guards: tuple[Guard, ...] = ()
    #: steps that may write the new value of a shared state over the old one, if the VM puts that
    #: back when the call fails; in order
    advancing: tuple[int, ...] = ()
    #: the steps that may run in strips, in order
    stretches: tuple[Stretch, ...] = ()

    @property
    def order(self) -> list[Apply]:
        return [step.node for step in self.steps]

    @cached_property
    def roots(self) -> tuple[int, ...]:
        """For each slot the one whose memory it shows, or itself."""
        found = [slot if above < 0 else -1 for slot, above in enumerate(self.parents)]
        for slot in range(len(found)):
            path = []
            while found[slot] < 0:
                path.append(slot)
                slot = self.parents[slot]
            for below in path:
                found[below] = found[slot]
        return tuple(found)


def handed_over(program: Program, k: int) -> tuple[bool, ...]:
    """Return for each input of a step that chooses whether its output may take the memory.

    It may, if nobody reads that memory afterwards, and no other output takes it.
    """
    step = program.steps[k]
    roots = [program.roots[slot] for slot in step.inputs]
    found = [False] * len(roots)
    for branch in step.node.op.branches:
        of_branch = [roots[i] for i in branch]
        for i in branch:
            found[i] = step.inputs[i] in step.dies and of_branch.count(roots[i]) == 1
    return tuple(found)


def roots_overwritten(program: Program, steps: Iterable[Step]) -> set[int]:
    """Return the roots of the slots that steps overwrite."""
    return {
        program.roots[step.inputs[i]]
        for step in steps
        for i in aliasing.destroyed_inputs(step.node)
    }


def make_program(
    fgraph: FunctionGraph,
    schedule: Callable[[FunctionGraph], Iterable[Apply]] | None = None,
    is_last: Callable[[Apply], bool] | None = None,
    lazy: bool = True,
    advances: bool = False,
    strip_bytes: int = 0,
    runs_in_c: Callable[[Apply], bool] = lambda node: False,
) -> Program:
    """Return the Program of a graph.

    schedule: a function from the graph to the order of its Applys (default: its ``toposort``).
    is_last: a function that returns whether an Apply may run after those that overwrite inputs:
    it cannot fail, and no other Apply reads its results.
    lazy: whether steps that only a branch needs are skipped if it is not taken.
    advances: whether the VM can put back what a failed call has advanced in place.
    strip_bytes: how many bytes of results that nothing else reads a thread computes at once; 0 for
    all. runs_in_c: whether an Apply runs in C: only such steps run in strips.
    """
    order = list(schedule(fgraph)) if schedule is not None else fgraph.toposort()
    lazy = lazy and any(node.op.branches for node in order)
    if lazy:
        needed = guards.find_guards(order, fgraph.outputs)
        order = guards.conditions_first(order, needed, fgraph.orderings())
    roots = aliasing.groups(fgraph, order)
    destroyers = _input_destroyers(fgraph, order, roots)
    order, commit = _commit_last(order, destroyers, fgraph, is_last)
    found: list[strips.Members] = []
    if strip_bytes and schedule is None and not lazy:
        early, found = strips.divide(order[:commit], fgraph.outputs, fgraph.orderings(), runs_in_c)
        order[:commit] = early
    slots: dict[Variable, int] = {}
    variables: list[Variable] = []

    def slot(var: Variable) -> int:
        index = slots.get(var)
        if index is None:
            index = slots[var] = len(variables)
            variables.append(var)
        return index

    inputs = tuple(slot(var) for var in fgraph.inputs)
    plan = [(node, tuple(map(slot, node.inputs)), tuple(map(slot, node.outputs))) for node in order]
    outputs = tuple(slot(var) for var in fgraph.outputs)
    advancing = _advancing(fgraph, order, roots) if advances else {}
    parents = []
    for var in variables:
        above = advancing.get(var) or aliasing.parent(var)
        parents.append(-1 if above is None else slots[above])
    dies = _lifetimes(fgraph, order, roots, slots)
    stretches = tuple(_stretch(each, order, slots, strip_bytes) for each in found)
    for stretch in stretches:
        _die_after(stretch, dies)
    gone = {*inputs, *(slot for dead in dies for slot in dead)}
    by_step, choices = _choices(order, fgraph.outputs, slots) if lazy else ((), ())
    return Program(
        fgraph=fgraph,
        variables=tuple(variables),
        steps=tuple(
            Step(node, ins, outs, dead) for (node, ins, outs), dead in zip(plan, dies, strict=True)
        ),
        inputs=inputs,
        outputs=outputs,
        constants={i: var.data for i, var in enumerate(variables) if isinstance(var, Constant)},
        parents=tuple(parents),
        commit=commit,
        destroyed=tuple(sorted({slots[roots[var]] for var in destroyers.values()})),
        ends=tuple(
            i for i, var in enumerate(variables) if i not in gone and not isinstance(var, Constant)
        ),
        choices=choices,
        guards=by_step,
        advancing=tuple(k for k, node in enumerate(order) if node.outputs[0] in advancing),
        stretches=stretches,
    )


def _stretch(
    members: strips.Members, order: Sequence[Apply], slots: Mapping[Variable, int], strip_bytes: int
) -> Stretch:
    """Return the stretch of some Applys: with numbers of steps and slots."""

    def sizes(found: Sequence[strips.Size]) -> tuple[Size, ...]:
        return tuple(
            (size, tuple((slots[var], d) for var, d in lengths)) for size, lengths in found
        )

    first = order.index(members.order[0])
    given: dict[tuple[int, int], int] = {}
    reads = {}
    for (k, i), axis in members.given.items():
        cut = slots[members.order[k].inputs[i]], axis
        reads[first + k, i] = given.setdefault(cut, len(given))
    return Stretch(
        first=first,
        end=first + len(members.order),
        given=tuple(given),
        reads=reads,
        axes={slots[var]: axis for var, axis in members.axes.items()},
        kept=tuple(slots[var] for var in members.kept),
        between=sizes(members.between),
        totals=tuple(_total(var, slots[var], row) for var, row in members.totals.items()),
        repeated=sizes(members.repeated),
        bytes=strip_bytes,
    )


def _total(var: Variable, slot: int, row: str) -> Total:
    """Return how a total is joined. row: the operation."""
    dtype = var.type.dtype
    wide = strips.joined_in(dtype)
    short, shorter = csource.short(wide), csource.short(dtype)
    return Total(
        slot=slot,
        itemsize=np.dtype(wide).itemsize,
        join=strips.join_loop(row, dtype),
        widen=f"cast_{shorter}_{short}" if wide != dtype else "",
        narrow=f"cast_{short}_{shorter}" if wide != dtype else "",
    )


def _die_after(stretch: Stretch, dies: list[tuple[int, ...]]) -> None:
    """Let what the steps of a stretch are given live until all of them are done."""
    given = []
    for k in range(stretch.first, stretch.end):
        given += [slot for slot in dies[k] if slot not in stretch.axes or slot in stretch.kept]
        dies[k] = tuple(
            slot for slot in dies[k] if slot in stretch.axes and slot not in stretch.kept
        )
    dies[stretch.end - 1] = tuple(sorted((*dies[stretch.end - 1], *given)))


def _advancing(
    fgraph: FunctionGraph, order: Iterable[Apply], roots: Mapping[Variable, Variable]
) -> dict[Variable, Variable]:
    """Return {new value of a state: the shared state} where it may take the memory of the old one.

    It may if it becomes the value of the shared state, nothing else reads the old value, and no
    later Apply overwrites it, unless that is undone too.
    """
    found: dict[Variable, Variable] = {}
    updates = fgraph.interface.updates
    advance: list[Apply] = []
    overwritten: set[Variable] = set()
    for node in order:
        if node.op.destroy_map:
            overwritten.update(roots[node.inputs[i]] for i in aliasing.destroyed_inputs(node))
        elif node.op.advances_state:
            advance.append(node)
    if not advance:
        return found
    shown: dict[Variable, list[int]] = {}
    for k, out in enumerate(fgraph.outputs):
        shown.setdefault(roots[out], []).append(k)
    for node in advance:
        old, new = node.inputs[0], node.outputs[0]
        places = shown.get(new, [])
        if (
            old in fgraph.interface.mutable
            and len(old._clients) == 1
            and len(places) == 1
            and places[0] in updates
            and fgraph.inputs[updates[places[0]]] is old
            and (new not in overwritten or node.op.saves_state)
        ):
            found[new] = old
    return found


def _choices(
    order: Sequence[Apply], outputs: Sequence[Variable], slots: Mapping[Variable, int]
) -> tuple[tuple[Guard, ...], tuple[Choice, ...]]:
    """Return the guards of the steps, and the decisions on which they depend."""
    found, made = guards.decisions(order, outputs)
    by_step = tuple(found.of[node] for node in order)
    used = guards.union(by_step)
    choices = [
        Choice(
            at=made[number],
            condition=slots[node.inputs[0]],
            guard=found.of[node],
            branches=guards.alternatives(number),
        )
        for number, node in reversed(list(enumerate(found.choosing)))
        if not used.isdisjoint(guards.alternatives(number))
    ]
    choices.sort(key=lambda choice: choice.at)  # stable: choices on which others depend stay first
    return (by_step, tuple(choices)) if choices else ((), ())


def _input_destroyers(
    fgraph: FunctionGraph, order: Sequence[Apply], roots: Mapping[Variable, Variable]
) -> dict[Apply, Variable]:
    """Return {Apply: input of the graph whose memory it overwrites and whose value matters}."""
    given = set(fgraph.inputs) - fgraph.interface.resident
    found = {}
    if fgraph.has_destroyers:
        for node in order:
            for i in aliasing.destroyed_inputs(node):
                if roots[node.inputs[i]] in given:
                    found[node] = node.inputs[i]
    return found


def _commit_last(
    order: list[Apply],
    destroyers: Mapping[Apply, Variable],
    fgraph: FunctionGraph,
    is_last: Callable[[Apply], bool] | None,
) -> tuple[list[Apply], int]:
    """Move the steps that overwrite inputs to the end; return (order, the first of these steps).

    A call that fails must leave shared values as they were. So the steps that overwrite them run
    when no other step can fail any more. Steps that read their results, or overwrite memory that
    they read, follow.
    """
    if not destroyers:
        return order, len(order)
    before = fgraph.orderings()
    late: set[Apply] = set()
    for node in order:
        if (
            node in destroyers
            or any(var.owner in late for var in node.inputs)
            or any(earlier in late for earlier in before.get(node, ()))
            or (is_last is not None and is_last(node))
        ):
            late.add(node)
    early = [node for node in order if node not in late]
    return early + [node for node in order if node in late], len(early)


def _lifetimes(
    fgraph: FunctionGraph,
    order: Sequence[Apply],
    roots: Mapping[Variable, Variable],
    slots: Mapping[Variable, int],
) -> list[tuple[int, ...]]:
    """Return, for each step, the slots that can be released after it.

    Variables that share memory die together, after the last use of any of them. Inputs, outputs
    and constants do not die here.
    """
    groups: dict[Variable, list[Variable]] = {}
    for var in slots:
        groups.setdefault(roots.get(var, var), []).append(var)
    kept = {roots.get(var, var) for var in (*fgraph.inputs, *fgraph.outputs)}
    last = {}
    for k, node in enumerate(order):
        for var in (*node.inputs, *node.outputs):
            last[roots.get(var, var)] = k
    dies: list[list[int]] = [[] for _ in order]
    for root, k in last.items():
        if root not in kept and not isinstance(root, Constant):
            dies[k].extend(slots[var] for var in groups[root])
    return [tuple(sorted(dead)) for dead in dies]
