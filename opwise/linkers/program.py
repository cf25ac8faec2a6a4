"""Program: a graph frozen for execution: the order, the slots that hold values, their lifetimes."""

from __future__ import annotations

from dataclasses import dataclass

from opwise.graph import aliasing
from opwise.graph.variable import Constant


@dataclass(frozen=True)
class Step:
    """One Apply: the slots that it reads and writes, and those that nobody needs after it."""

    node: object
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    dies: tuple[int, ...]


@dataclass(frozen=True)
class Program:
    """What a machine runs.

    variables: the variable of each slot. inputs, outputs: slots. constants: {slot: value}.
    parents: for each slot the one whose memory it may share, or -1. commit: the first step from
    which on an input may be overwritten (the number of steps if none is); destroyed: those inputs.
    ends: slots that no step lets go (outputs, views of inputs, the memory that an output shows):
    they go when the results are handed over.
    """

    fgraph: object
    variables: tuple
    steps: tuple[Step, ...]
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    constants: dict
    parents: tuple[int, ...]
    commit: int
    destroyed: tuple[int, ...]
    ends: tuple[int, ...]

    @property
    def order(self):
        return [step.node for step in self.steps]


def root(program, slot):
    """Return the slot whose memory a slot shows, or itself."""
    while program.parents[slot] >= 0:
        slot = program.parents[slot]
    return slot


def roots_overwritten(program, steps):
    """Return the slots whose memory steps overwrite, as roots."""
    return {
        root(program, step.inputs[i])
        for step in steps
        for i in aliasing.destroyed_inputs(step.node)
    }


def make_program(fgraph, schedule=None, is_last=None):
    """Return the Program of a graph.

    schedule: a function from the graph to its order. is_last: a function from an Apply to whether
    it may run behind what overwrites inputs, since it cannot fail and no other Apply waits for it.
    """
    order = list(schedule(fgraph)) if schedule is not None else fgraph.toposort()
    roots = aliasing.groups(fgraph, order)
    destroyers = _input_destroyers(fgraph, order, roots)
    order, commit = _commit_last(order, destroyers, fgraph, is_last)
    slots, variables = {}, []

    def slot(var):
        index = slots.get(var)
        if index is None:
            index = slots[var] = len(variables)
            variables.append(var)
        return index

    inputs = tuple(slot(var) for var in fgraph.inputs)
    plan = [(node, tuple(map(slot, node.inputs)), tuple(map(slot, node.outputs))) for node in order]
    outputs = tuple(slot(var) for var in fgraph.outputs)
    parents = []
    for var in variables:
        above = aliasing.parent(var)
        parents.append(-1 if above is None else slots[above])
    dies = _lifetimes(fgraph, order, roots, slots)
    gone = {*inputs, *(slot for dead in dies for slot in dead)}
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
    )


def _input_destroyers(fgraph, order, roots):
    """Return {Apply: input of the graph whose memory it overwrites}."""
    given = set(fgraph.inputs)
    found = {}
    if fgraph.has_destroyers:
        for node in order:
            for i in aliasing.destroyed_inputs(node):
                if roots[node.inputs[i]] in given:
                    found[node] = node.inputs[i]
    return found


def _commit_last(order, destroyers, fgraph, is_last):
    """Return (order, first step that overwrites an input): these steps moved to the end.

    A call that fails must leave shared values as they were. What overwrites them, and what depends
    on that, runs last, when nothing else can fail any more; so does what overwrites other memory
    that one of these reads.
    """
    if not destroyers:
        return order, len(order)
    before = fgraph.orderings()
    late = set()
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


def _lifetimes(fgraph, order, roots, slots):
    """Return, for each step, the slots that can be let go after it.

    Variables that share memory die together, after the last use of any of them. Inputs, outputs
    and constants do not die here.
    """
    groups = {}
    for var in slots:
        groups.setdefault(roots.get(var, var), []).append(var)
    kept = {roots.get(var, var) for var in (*fgraph.inputs, *fgraph.outputs)}
    last = {}
    for k, node in enumerate(order):
        for var in (*node.inputs, *node.outputs):
            last[roots.get(var, var)] = k
    dies = [[] for _ in order]
    for root, k in last.items():
        if root not in kept and not isinstance(root, Constant):
            dies[k].extend(slots[var] for var in groups[root])
    return [tuple(sorted(dead)) for dead in dies]
