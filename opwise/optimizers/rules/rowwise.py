"""Fusion along rows: what reduces or adds up along an axis, and elementwise work around it.

A variance, a softmax or a normalisation reads an array, reduces its rows, and reads it again. Loops
that are fused one by one read the array from memory each time. A Rowwise goes over all of these
passes for one row, which stays in the cache, before the next row.

Applys belong to a *group* if their rows, along the axis of a WindowSum or the last one, have the
same length: elementwise Applys are joined to the arrays that they read and give, reductions to what
they reduce, and what is computed from their results to them. Every Apply gets a *level*, which
grows where a value leaves a group and never falls from an Apply to its readers. What leaves a group
cannot come back to the same level: the Applys of one group and level become one without a cycle.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from opwise.config import config
from opwise.graph import guards
from opwise.graph.apply import Apply
from opwise.graph.fgraph import FunctionGraph
from opwise.graph.variable import Var
from opwise.optimizers.passes import Optimizer
from opwise.optimizers.rules.fusion import MAX_DIMENSIONS, joins, reduces_in_c
from opwise.optimizers.rules.matching import shuffled
from opwise.scalar import csource, loops
from opwise.scalar.composite import Composite, append_inlined
from opwise.scalar.program import Instruction
from opwise.tensor.dimshuffle import DimShuffle, dimshuffle
from opwise.tensor.elemwise import Elemwise, elemwise
from opwise.tensor.nnet.rowsoftmax import Softmax, SoftmaxGrad
from opwise.tensor.reduce import Sum, Supremum
from opwise.tensor.rowwise import Rowwise
from opwise.tensor.windowsum import WindowSum

#: the most operands and steps of a Rowwise
MAX_OPERANDS = 24
MAX_STEPS = 80
#: the most nanoseconds an element for which a value is computed again and not read from memory
MAX_FREE_COST = 1.5


class RowFusion(Optimizer):
    """Fuses reductions along the last axis with the work on the same rows around them."""

    name = "row_fusion"

    def apply(self, fgraph: FunctionGraph) -> Any:
        if not config.tensor.local_elemwise_fusion or not config.cxx:
            return
        order = fgraph.toposort()
        if _expand(fgraph, order):
            order = fgraph.toposort()
        if not any(map(_works_on_rows, order)):
            return
        groups = _Groups(fgraph, order)
        for members, axis in groups.regions():
            self._fuse(fgraph, _Region(members, axis))
        for node in [node for node in fgraph.apply_nodes if _is_window(node)]:
            self._fuse(fgraph, _Region([node], node.op.axis))

    def _fuse(self, fgraph: FunctionGraph, region: _Region) -> None:
        if not region.reads_twice():
            return
        region.take_in_cheap_inputs()
        made = region.rowwise()
        if made is not None:
            fgraph.replace_all(made, reason=self.name)


def _expand(fgraph: FunctionGraph, order: Sequence[Apply]) -> list[Apply]:
    """Replace softmaxes beside elementwise work by their formulas; return whether there are any."""
    found = [node for node in order if type(node.op) in _FORMULAS and _has_company(node)]
    for node in found:
        new = _FORMULAS[type(node.op)](*node.inputs)
        if new.type == node.outputs[0].type:
            fgraph.replace_all([(node.outputs[0], new)], reason=RowFusion.name)
    return found


def _has_company(node: Apply) -> bool:
    """Return whether elementwise work, or another reduction, on the same rows is beside an Apply.

    Functions of rows alone have loops of their own, which are faster.
    """
    (out,) = node.outputs
    owners = [var.owner for var in node.inputs if var.owner is not None]
    clients = [client for client, _ in out._clients if client != "output"]
    return _has_rows(out) and any(
        _reduces_rows(near)
        or (_joins(near) and near.outputs[0].type.broadcastable == out.type.broadcastable)
        for near in (*owners, *clients)
    )


def _softmax(x: Var) -> Var:
    e = elemwise("exp")(x - _spread(Supremum(axis=1)(x)))
    return e / _spread(Sum(axis=1)(e))


def _softmax_gradient(dy: Var, sm: Var) -> Var:
    weighted = dy * sm
    return weighted - _spread(Sum(axis=1)(weighted)) * sm


def _spread(numbers: Var) -> Var:
    return dimshuffle(numbers, (0, "x"))


_FORMULAS: dict[type, Any] = {Softmax: _softmax, SoftmaxGrad: _softmax_gradient}


def _joins(node: Apply) -> bool:
    """Return whether an Apply is elementwise work that a loop over rows can do."""
    if not joins(node):
        return False
    op = node.op.scalar_op
    inside = [one.dtype for one in op.instructions] if isinstance(op, Composite) else []
    types = [v.type.dtype for v in (*node.inputs, *node.outputs)]
    return all(map(csource.is_plain, (*types, *inside)))


def _reduces_rows(node: Apply) -> bool:
    """Return whether an Apply reduces the last axis of rows of elements."""
    if not reduces_in_c(node):
        return False
    (x,), (out,) = node.inputs, node.outputs
    if not csource.is_plain(x.type.dtype) or not csource.is_plain(out.type.dtype):
        return False
    last = x.type.ndim - 1
    return node.op.axis == (last,) and _has_rows(x)


def _is_window(node: Apply) -> bool:
    """Return whether an Apply adds up neighbours along rows of elements."""
    return isinstance(node.op, WindowSum) and _has_rows(node.inputs[0], node.op.axis)


def _works_on_rows(node: Apply) -> bool:
    return _is_window(node) or _reduces_rows(node)


def _has_rows(var: Var, axis: Any = None) -> bool:
    """Return whether a variable has several rows of several elements, as far as its type says.

    axis: that of the rows (default: the last one).
    """
    pattern: tuple[bool, ...] = getattr(var.type, "broadcastable", ())
    if not 1 < len(pattern) <= MAX_DIMENSIONS:
        return False
    axis = len(pattern) - 1 if axis is None else axis
    rows = pattern[:axis] + pattern[axis + 1 :]
    return axis < len(pattern) and not pattern[axis] and not all(rows)


def _spreads(node: Apply) -> bool:
    """Return whether an Apply adds a last axis of length 1 to all others."""
    op = node.op
    return isinstance(op, DimShuffle) and op.new_order == (
        *range(len(op.input_broadcastable)),
        "x",
    )


def _drops(node: Apply) -> bool:
    """Return whether an Apply drops the last axis, of length 1, alone."""
    op = node.op
    ndim = len(getattr(op, "input_broadcastable", ()))
    return isinstance(op, DimShuffle) and op.new_order == tuple(range(ndim - 1)) and ndim > 1


class _Groups:
    """The groups of a graph's Applys, and their levels."""

    def __init__(self, fgraph: FunctionGraph, order: Sequence[Apply]) -> None:
        self.order = order
        self._parent: dict[Any, Any] = {}
        bound = {node for earlier in fgraph.orderings().values() for node in earlier}
        self._usable = [node for node in order if node not in bound]
        self._guards: Mapping[Any, Any] = {}
        if any(node.op.branches for node in order):
            self._guards = guards.find_guards(order, fgraph.outputs).of
        #: Apply -> its group
        self.group: dict[Any, Any] = {}
        #: group -> the axis of its rows, if that may be another than the last one
        self.axis: dict[Any, int] = {}
        self._join_rows()
        self._join_numbers()

    def _find(self, var: Var) -> Var:
        while self._parent.setdefault(var, var) is not var:
            self._parent[var] = self._parent[self._parent[var]]
            var = self._parent[var]
        return var

    def _unite(self, a: Any, b: Any) -> None:
        self._parent[self._find(a)] = self._find(b)

    def _join_rows(self) -> None:
        """Find the groups of Applys on rows of elements of which some are reduced or added up."""
        wide, windows = [], [node for node in self._usable if _is_window(node)]
        for node in self._usable:
            if _joins(node) and 1 < node.outputs[0].type.ndim <= MAX_DIMENSIONS:
                wide.append(node)
                pattern = node.outputs[0].type.broadcastable
                for var in node.inputs:
                    if var.type.broadcastable == pattern:
                        self._unite(var, node.outputs[0])
        for node in windows:
            self._unite(node.inputs[0], node.outputs[0])
        for node in windows:
            axis = self.axis.setdefault(self._find(node.inputs[0]), node.op.axis)
            if axis == node.op.axis:
                self.group[node] = self._key(node, node.inputs[0])
        reducing = [node for node in self._usable if _reduces_rows(node) and self._runs_along(node)]
        roots = {self._find(node.inputs[0]) for node in (*reducing, *self.group)}
        for node in wide:
            if self._find(node.outputs[0]) in roots:
                self.group[node] = self._key(node, node.outputs[0])
        for node in reducing:
            self.group.setdefault(node, self._key(node, node.inputs[0]))

    def _key(self, node: Apply, var: Var) -> tuple[Var, ...]:
        return self._find(var), self._guards.get(node)

    def _runs_along(self, node: Apply) -> bool:
        """Return whether a reduction of the last axis is along the rows of its group."""
        (x,) = node.inputs
        return self.axis.get(self._find(x), x.type.ndim - 1) == x.type.ndim - 1

    def _join_numbers(self) -> None:
        """Add what is computed from the results of reductions, one number for each row."""
        numbers = {}
        for node in self._usable:
            group = self.group.get(node)
            if group is not None:
                if _reduces_rows(node):
                    numbers[node.outputs[0]] = group
                continue
            if not (_spreads(node) or _drops(node) or _joins(node)):
                continue
            found = {numbers[var] for var in node.inputs if var in numbers}
            if len(found) != 1:
                continue
            (group,) = found
            if group[1] != self._guards.get(node):
                continue
            pattern = group[0].type.broadcastable[:-1]
            out = node.outputs[0].type.broadcastable
            if out == pattern or out == (*pattern, True):
                numbers[node.outputs[0]] = self.group[node] = group

    def regions(self) -> list[tuple[list[Apply], int | None]]:
        """Return (Applys, axis) of each group and level in order, the highest levels first.

        axis: that of the rows, None for the last one.
        """
        level = self._levels()
        found: dict[Any, list[Any]] = {}
        for node in self.order:
            if node in self.group:
                found.setdefault((self.group[node], level[node]), []).append(node)
        return [
            (found[key], self.axis.get(key[0][0])) for key in sorted(found, key=lambda k: -k[1])
        ]

    def _levels(self) -> dict[Any, Any]:
        group, level = self.group, dict[Any, int]()
        for node in self.order:
            own = group.get(node)
            level[node] = max(
                (
                    level[var.owner] + (group.get(var.owner) not in (None, own))
                    for var in node.inputs
                    if var.owner is not None
                ),
                default=0,
            )
        for node in reversed(self.order):  # what only its group reads waits for its readers
            own = group.get(node)
            clients = [client for out in node.outputs for client, _ in out._clients]
            if own is not None and clients and "output" not in clients:
                if all(group.get(client) == own for client in clients):
                    level[node] = min(level[client] for client in clients)
        return level


class _Region:
    """Applys that may become one Rowwise. axis: that of the rows, None for the last one."""

    def __init__(self, members: Sequence[Apply], axis: Any) -> None:
        self.axis = axis
        inside = set(members)
        reductions = {node for node in members if _works_on_rows(node)}
        behind = set(reductions)
        for node in members:
            if any(var.owner in behind for var in node.inputs if var.owner in inside):
                behind.add(node)
        needed = set(behind)
        for node in reversed(members):
            if node in needed:
                needed.update(v.owner for v in node.inputs if v.owner in inside)
        self.members = [node for node in members if node in needed]
        #: Applys that are computed again here: others read those that there are
        self.copies: list[Any] = []
        self._behind = behind
        self._reductions = reductions
        #: the rank of the arrays
        self.ndim = max((node.inputs[0].type.ndim for node in reductions), default=0)

    def reads_twice(self) -> bool:
        """Return whether a reduction of rows is followed by another pass over the elements.

        A sum of neighbours reads them several times.
        """
        return any(map(_is_window, self.members)) or any(
            self._is_pass(node)
            and any(var.owner in self._behind for var in node.inputs if var.owner is not None)
            for node in self.members
        )

    def _is_pass(self, node: Apply) -> bool:
        return node in self._reductions or (
            isinstance(node.op, Elemwise)
            and self._has_rows(node.outputs[0])
            and self._is_wide(node)
        )

    def _has_rows(self, var: Var) -> bool:
        return _has_rows(var, self.axis)

    def _is_wide(self, node: Apply) -> bool:
        return node.outputs[0].type.ndim == self.ndim

    def take_in_cheap_inputs(self) -> None:
        """Compute inputs again if that is cheaper than reading them, and reads no more arrays."""
        while True:
            wide = [var for var in self._inputs() if self._has_rows(var)]
            for var in wide:
                owner = var.owner
                if owner is None or not _joins(owner) or not self._is_wide(owner):
                    continue
                more = [v for v in owner.inputs if self._has_rows(v) and v not in wide]
                if not more and _cost(owner) <= MAX_FREE_COST:
                    if len(self.copies) >= MAX_STEPS:
                        return
                    self.copies.insert(0, owner)
                    break
            else:
                return

    def _inputs(self) -> list[Var]:
        computed = [*self.copies, *self.members]
        inside = {out for node in computed for out in node.outputs}
        read = (var for node in computed for var in node.inputs)
        return [var for var in dict.fromkeys(read) if var not in inside]

    def _results(self) -> list[Var]:
        """Return the variables that others read, in order.

        What only reductions along other axes read is computed again with them, if that is cheap:
        it need not be stored.
        """
        members, again = set(self.members), set()
        for node in reversed(self.members):
            clients = [client for client, _ in node.outputs[0]._clients if client not in members]
            others = [client for client in clients if client not in again]
            if (
                clients
                and _joins(node)
                and self._is_pass(node)
                and all(client != "output" and reduces_in_c(client) for client in others)
                and _cost(node) <= MAX_FREE_COST
            ):
                again.add(node)
                members.discard(node)
        if not self._moves_less(again):
            again = set()
        inside = set(self.members)
        return [
            node.outputs[0]
            for node in self.members
            if node not in again
            and any(
                client not in inside or client in again for client, _ in node.outputs[0]._clients
            )
        ]

    def _moves_less(self, again: set[Any]) -> bool:
        """Return whether computing Applys again reads no more arrays than storing them would."""
        inside = {node.outputs[0] for node in again}
        stored = [
            var
            for var in inside
            if any(client not in again and client not in self.members for client, _ in var._clients)
        ]
        read = {v for node in again for v in node.inputs if v not in inside and self._has_rows(v)}
        return bool(again) and len(read) <= 2 * len(stored)

    def rowwise(self) -> list[tuple[Var, ...]] | None:
        """Return the pairs (old variable, new one) that replace the Applys; None if too large."""
        inputs, outs = self._inputs(), self._results()
        slots = {var: i for i, var in enumerate(inputs)}
        steps: list[Instruction] = []
        made: dict[Any, int] = {}
        for node in (*self.copies, *self.members):
            args = tuple(slots[var] for var in node.inputs)
            (out,) = node.outputs
            op: Any = node.op
            key = getattr(op, "scalar_op", op), args, out.type.dtype
            if isinstance(node.op, DimShuffle):
                made[key] = args[0]
            elif isinstance(node.op, WindowSum):
                if key not in made:
                    steps.append(Instruction(op, args, out.type.dtype))
                    made[key] = len(inputs) + len(steps) - 1
            elif node in self._reductions:
                step = Instruction(node.op, args, out.type.dtype)
                if key not in made:
                    steps.append(step)
                    made[key] = len(inputs) + len(steps) - 1
                elif node.op.of_nothing is None:  # an empty row is an error for this one
                    steps[made[key] - len(inputs)] = step
            elif key not in made:
                (made[key],) = append_inlined(
                    steps, len(inputs), node.op.scalar_op, args, out.type.dtype
                )
            slots[out] = made[key]
        given = list(dict.fromkeys(slots[out] for out in outs))
        if len(steps) > MAX_STEPS or len(inputs) + len(given) > MAX_OPERANDS:
            return None
        if any(slot < len(inputs) for slot in given):
            return None
        order = list(range(self.ndim))
        if self.axis is not None:
            order.append(order.pop(self.axis))
        operands = [shuffled(_of_rank(var, self.ndim), order) for var in inputs]
        new = Rowwise(len(inputs), steps, given)(*operands, return_list=True)
        back = sorted(range(self.ndim), key=order.__getitem__)
        at = {slot: shuffled(new[k], back) for k, slot in enumerate(given)}
        return [(out, _of_rank(at[slots[out]], out.type.ndim)) for out in outs]


def _of_rank(var: Var, ndim: int) -> Var:
    """Return a variable with a last axis of length 1 added, or dropped, for a rank."""
    if var.type.ndim == ndim:
        return var
    kept = range(min(ndim, var.type.ndim))
    return dimshuffle(var, kept if var.type.ndim > ndim else (*kept, "x"))


def _cost(node: Apply) -> float:
    """Return about how many nanoseconds an element takes; infinity if functions are called."""
    steps: list[Instruction] = []
    n = len(node.inputs)
    append_inlined(steps, n, node.op.scalar_op, range(n), node.outputs[0].type.dtype)
    if not loops.is_cheap(steps):
        return float("inf")
    return sum(one.op.element_cost(len(one.args)) for one in steps)
