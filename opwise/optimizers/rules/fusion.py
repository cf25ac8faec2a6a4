"""Fusion: several elementwise Applys, or some and reductions, become one loop over memory.

Why Applys were not fused is in ``opwise.optimizers.unfused``.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable, Collection, Iterable, Sequence
from typing import Any

from opwise.config import config
from opwise.graph import guards, target
from opwise.graph.apply import Apply
from opwise.graph.fgraph import FunctionGraph
from opwise.graph.variable import Var, Variable
from opwise.optimizers.passes import Optimizer
from opwise.scalar import csource, loops, usercode
from opwise.scalar.composite import Composite, append_inlined
from opwise.scalar.op import Cast, ScalarOp, cast_op
from opwise.scalar.program import Instruction, Program
from opwise.tensor.elemwise import Elemwise
from opwise.tensor.mapreduce import MapReduce
from opwise.tensor.reduce import CAReduce, Sum

#: the most operands of a Composite, its output included, that a kernel takes
MAX_OPERANDS = 32
MAX_INSTRUCTIONS = 80
#: the most operands of a Composite with several outputs, single numbers apart: more take longer to
#: compile than they save
MAX_STREAMS = 16
#: how many sums a loop may be too small for before it takes no others: the search for a loop stays
#: short however many there are
MAX_REFUSED = 8
#: the most nanoseconds an element that each reader of a result may spend to compute it again
MAX_FREE_COST = 1.5
#: the same for an Apply together with those before it, and the most of these
MAX_RECOMPUTED_COST = 4.0
MAX_RECOMPUTED = 12
#: the most dimensions of a loop in C
MAX_DIMENSIONS = 8


class AddMulFusion(Optimizer):
    """Flattens sums of sums, and products of products, into one Apply with all the terms.

    A loop in C has so many operands at most: longer sums, and products, become several Applys. Each
    goes on where the one before it ends, so the terms are added up in the same order.
    """

    name = "local_add_mul_fusion"

    def apply(self, fgraph: FunctionGraph) -> Any:
        if not config.tensor.local_elemwise_fusion:
            return
        for node in fgraph.toposort():
            if node not in fgraph.apply_nodes or not _is_associative(node):
                continue
            flat = self._flat(node)
            if len(flat) > len(node.inputs) or len(flat) >= MAX_OPERANDS:
                op = Elemwise(node.op.scalar_op, name=node.op.name)
                new = op(*flat[: MAX_OPERANDS - 1])
                for start in range(MAX_OPERANDS - 1, len(flat), MAX_OPERANDS - 2):
                    new = op(new, *flat[start : start + MAX_OPERANDS - 2])
                fgraph.replace_all([(node.outputs[0], new)], reason=self.name)

    @staticmethod
    def _flat(node: Apply) -> list[Var]:
        """Return the terms of a node, with those of an operand that only it reads in its place."""
        out = node.outputs[0].type
        flat: list[Variable] = []
        for x in node.inputs:
            inner = x.owner
            if (
                inner is not None
                and inner.op == node.op
                and len(x._clients) == 1
                and x.type == out
                and len(flat) + len(inner.inputs) < MAX_OPERANDS - len(node.inputs)
            ):
                flat.extend(inner.inputs)
            else:
                flat.append(x)
        return flat


def _is_associative(node: Apply) -> bool:
    op = node.op
    return (
        isinstance(op, Elemwise)
        and not op.inplace_pattern
        and op.scalar_op.row is not None
        and op.scalar_op.row.nin < 0
        and op.scalar_op.row.associative
    )


class FusionOptimizer(Optimizer):
    """Fuses connected elementwise Applys of one broadcast pattern into one loop each.

    Goes once over a fixed order, from the last Apply to the first. Each Apply takes in those that
    it reads, together with all of their readers that come before it. Readers that come after it
    then read the loop, which may have several outputs. So no cycle can arise. Only Applys with a C
    expression are fused: one without would make the whole loop run in Python.
    """

    name = "composite_elemwise_fusion"

    def apply(self, fgraph: FunctionGraph) -> Any:
        if config.tensor.local_elemwise_fusion:
            self.fuse(fgraph)

    def fuse(
        self, fgraph: FunctionGraph, grown: Callable[..., Any] = lambda group: None
    ) -> dict[Any, Any]:
        """Fuse a graph; return {Apply: the loop that it became part of}.

        grown: called with each group of Applys that become one loop, or stay a single Apply.
        """
        order, patterns, position = _plan(fgraph)
        taken = {}
        for node in reversed(order):
            if node in taken or node not in patterns or node not in fgraph.apply_nodes:
                continue
            group = Group(node, position, patterns)
            group.grow()
            grown(group)
            if len(group.members) + len(group.copies) > 1:
                results = sorted(group.results, key=lambda var: position[var.owner])
                new = _composite(results, group.members | group.copies)
                taken.update(dict.fromkeys(group.members, new[0].owner))
                position[new[0].owner] = position[node]
                patterns[new[0].owner] = patterns[node]
                fgraph.replace_all(list(zip(results, new, strict=True)), reason=self.name)
        return taken


def _plan(fgraph: FunctionGraph) -> tuple[list[Apply], dict[Any, Any], dict[Any, Any]]:
    """Return (order, patterns, positions): the order that fusion is decided against.

    patterns: the broadcast pattern of each Apply that may be fused, with its guard if some Applys
    choose between branches: a loop has one guard. positions: in the order.
    """
    order = fgraph.toposort()
    # an Apply that must read memory before another overwrites it stays where it is
    bound = {node for earlier in fgraph.orderings().values() for node in earlier}
    patterns: dict[Apply, Any] = {n: _pattern(n) for n in order if n not in bound and joins(n)}
    if any(node.op.branches for node in order):
        needed = guards.find_guards(order, fgraph.outputs)
        patterns = {node: (pattern, needed.of[node]) for node, pattern in patterns.items()}
    if not bound:
        order = _loops_first(order, patterns)
    return order, patterns, {node: k for k, node in enumerate(order)}


def _loops_first(order: Sequence[Apply], patterns: dict[Any, Any]) -> list[Apply]:
    """Return an order in which the Applys that can be fused come as early as possible.

    Their other readers come after all that can be fused without them. patterns: has the Applys that
    can be fused as keys. One that a reduction takes in counts as part of the reduction.
    """
    round_of: dict[Any, Any] = {}
    loops_of = {node for node in patterns if not _is_reduced(node)}
    for node in order:
        owners = [var.owner for var in node.inputs if var.owner is not None]
        step = node not in loops_of
        round_of[node] = max((round_of[o] + (step and o in loops_of) for o in owners), default=0)
    return sorted(order, key=lambda node: (round_of[node], node in loops_of))


class Group:
    """The Applys of one loop: ``root``, the last of them, and those that it takes in."""

    def __init__(self, root: Apply, position: dict[Any, Any], patterns: dict[Any, Any]) -> None:
        #: of each Apply in a fixed order
        self.position = position
        #: what the Applys of a loop share, for each Apply that may be fused: see ``_plan``
        self.patterns = patterns
        self.root = root
        #: the Applys that the loop replaces
        self.members = {root}
        #: the Applys that the loop computes again, since others still read them
        self.copies: set[Any] = set()
        #: the outputs of members that are read outside
        self.results = {root.outputs[0]}
        #: Apply -> (kind of obstacle, what is in the way), for those that the loop did not take in
        self.refused: dict[Apply, tuple[str, Any]] = {}
        self._obstacle: tuple[str, Any] = ("", None)
        # a loop that ends in a reduction has no other result
        self._only_root = _is_reduced(root)
        self._operands = set(root.inputs)
        self._n_instructions = _n_instructions(root)
        self._pattern = patterns[root]

    def grow(self) -> None:
        waiting: list[tuple[int, int, Apply]] = []

        def offer(nodes: Iterable[Apply]) -> None:
            for node in nodes:
                for var in node.inputs:
                    owner = var.owner
                    if owner is not None and owner in self.position:
                        heapq.heappush(waiting, (-self.position[owner], id(var), owner))

        offer([self.root])
        while waiting:  # the latest first: all of its readers were offered before it
            node = heapq.heappop(waiting)[2]
            if node in self.members or node in self.copies or not self.may_join(node):
                continue
            members: Collection[Apply] | None = self._with_readers(node)
            copies: list[Apply] = []
            if members is None or self._is_read_outside(node, members):
                if _is_free(node):
                    members, copies = [n for n in members or () if n is not node], [node]
                elif members is None:
                    self.refused[node] = self._obstacle
                    continue
            assert members is not None
            if self._take(members, copies):
                offer([*members, *copies])
            else:
                self.refused[node] = self._obstacle

    def read(self) -> list[Apply]:
        """Return the Applys outside the loop that it reads."""
        inside = self.members | self.copies
        owners = [var.owner for node in inside for var in node.inputs if var.owner is not None]
        return [node for node in dict.fromkeys(owners) if node not in inside]

    def may_join(self, node: Apply) -> bool:
        """Return whether the loop goes over the elements of an Apply's output in their order."""
        return bool(self.patterns.get(node) == self._pattern)

    def _with_readers(self, node: Apply) -> dict[Any, Any] | None:
        """Return the Applys that must join so that ``node`` can, or None if one of them may not."""
        joining = {node: None}
        pending = [node]
        while pending:
            clients = pending.pop().outputs[0]._clients
            if max(len(joining) + self._n_instructions, len(clients)) > MAX_INSTRUCTIONS:
                self._obstacle = "size", None
                return None
            for client, _ in clients:
                if client == "output" or self.position[client] > self.position[self.root]:
                    if self._only_root:
                        self._obstacle = "outside", client
                        return None
                elif client not in self.members and client not in joining:
                    if not self.may_join(client) or _is_reduced(client):
                        self._obstacle = "between", client
                        return None
                    joining[client] = None
                    pending.append(client)
        return joining

    def _is_read_outside(self, node: Any, joining: Collection[Apply]) -> bool:
        clients = node.outputs[0]._clients
        return any(c not in self.members and c not in joining for c, _ in clients)

    def _take(self, members: Collection[Apply], copies: Collection[Apply]) -> bool:
        """Add Applys unless the loop becomes too large; return whether they were added."""
        new = [node for node in (*members, *copies) if node not in self.copies]
        n_instructions = self._n_instructions + sum(map(_n_instructions, new))
        operands = self._operands.union(*(node.inputs for node in new))
        operands.difference_update(node.outputs[0] for node in new)
        results = {
            var
            for var in (*self.results, *(node.outputs[0] for node in members))
            if self._is_read_outside(var.owner, members)
        }
        most = MAX_OPERANDS
        if len(results) > 1:
            n_numbers = sum(all(var.type.broadcastable) for var in operands)
            most = min(MAX_STREAMS + n_numbers, MAX_OPERANDS)
        if n_instructions > MAX_INSTRUCTIONS:
            self._obstacle = "size", None
            return False
        if len(operands) + len(results) > most:
            self._obstacle = "operands", (len(operands) + len(results), most)
            return False
        self._n_instructions, self._operands, self.results = n_instructions, operands, results
        self.members.update(members)
        self.copies.update(copies)
        self.copies.difference_update(members)
        return True


class MapReduceOptimizer(Optimizer):
    """Fuses each reduction with the elementwise Apply that only it reads."""

    name = "map_reduce_fusion"

    def apply(self, fgraph: FunctionGraph) -> Any:
        if not config.tensor.local_elemwise_fusion:
            return
        for node in fgraph.toposort():
            if maps(node):
                mapped = node.inputs[0].owner
                assert mapped is not None
                new = MapReduce(mapped.op.scalar_op, node.op)(*mapped.inputs)
                fgraph.replace_all([(node.outputs[0], new)], reason=self.name)


class ReductionSharer(Optimizer):
    """Computes sums along the same axes that read the same array in one loop over it.

    The sum of a whole array becomes the sum of sums along some axes, if a loop adds up along these
    axes anyway.

    Each sum gets a rank, larger than the ranks of all sums that it depends on, and loops have sums
    of one rank only. So no cycle can arise. A sum that no other needs may wait for a later rank.
    """

    name = "share_reduction_loops"

    def apply(self, fgraph: FunctionGraph) -> Any:
        if not config.tensor.local_elemwise_fusion:
            return
        order = fgraph.toposort()
        sums = self._sums(fgraph, order)
        if len(sums) < 2:
            return
        if self._split_totals(fgraph, order, sums):
            order = fgraph.toposort()
            sums = self._sums(fgraph, order)
        for group in self._groups(order, sums):
            if len(group) > 1:
                old = [node.outputs[0] for node in group]
                fgraph.replace_all(list(zip(old, _shared(group), strict=True)), reason=self.name)

    @staticmethod
    def _sums(fgraph: FunctionGraph, order: Sequence[Apply]) -> dict[Any, Any]:
        """Return {Apply: what the sums of a loop have in common}."""
        bound = {node for earlier in fgraph.orderings().values() for node in earlier}
        found: dict[Apply, Any] = {}
        for node in order:
            if node not in bound and _is_sum_of_floats(node):
                found[node] = _axes(node), _looped_over(node), _parts(node)[1].op.acc_dtype
        if len(found) > 1 and any(node.op.branches for node in order):
            needed = guards.find_guards(order, fgraph.outputs)
            found = {node: (*kind, needed.of[node]) for node, kind in found.items()}
        return found

    def _split_totals(
        self, fgraph: FunctionGraph, order: Sequence[Apply], sums: dict[Any, Any]
    ) -> bool:
        """Let sums of whole arrays be sums of sums along the axes of another loop.

        That loop reads one of their arrays, and adds up along the first axis at least, so it gives
        much less than it reads. Neither depends on the other: they have one rank. Returns whether
        there were any.
        """
        rank = _ranks(order, sums)
        #: (pattern and guard, rank, array) -> the sum along some axes that comes first
        partial: dict[tuple[Any, ...], Apply] = {}
        totals = []
        for node, kind in sums.items():
            pattern = _looped_over(node)
            axes = _axes(node)
            if len(axes) == len(pattern):
                totals.append(node)
            elif 0 in axes and not pattern[0]:
                for var in _whole_operands(node):
                    partial.setdefault((kind[1:], rank[node], var), node)
        pairs = []
        for node in totals:
            keys = ((sums[node][1:], rank[node], var) for var in _whole_operands(node))
            other = next((partial[key] for key in keys if key in partial), None)
            if other is not None:
                op, reduced = _parts(node)
                acc = reduced.op.acc_dtype
                along = Sum(_axes(other), dtype=acc, acc_dtype=acc)
                some = (along if op is None else MapReduce(op, along))(*node.inputs)
                total = Sum(None, dtype=reduced.outputs[0].type.dtype, acc_dtype=acc)
                pairs.append((node.outputs[0], total(some)))
        if pairs:
            fgraph.replace_all(pairs, reason=self.name)
        return bool(pairs)

    @staticmethod
    def _groups(order: Sequence[Apply], sums: dict[Any, Any]) -> list[list[Apply]]:
        earliest = _ranks(order, sums)
        position = {node: k for k, node in enumerate(order)}
        latest: dict[Apply, float] = {}
        groups: dict[Any, list[_SharedLoop]] = {}
        #: (kind, array) -> the loops over the array that have room, the oldest first
        over: dict[tuple[Any, ...], dict[_SharedLoop, None]] = {}

        def forget_if_full(loop: _SharedLoop, kind: Any) -> None:
            if loop.is_full:
                for var in loop.arrays:
                    over[kind, var].pop(loop, None)

        # readers have larger numbers than what they read
        for node in sorted(order, key=lambda n: (earliest[n], position[n]), reverse=True):
            clients = {c for out in node.outputs for c, _ in out._clients if c != "output"}
            last = latest[node] = min((latest[c] - (c in sums) for c in clients), default=math.inf)
            if node not in sums:
                continue
            kind = sums[node]
            near = [over[kind, var] for var in _whole_operands(node) if (kind, var) in over]
            loops = near[0] if len(near) == 1 else {loop for some in near for loop in some}
            for loop in sorted(loops, key=lambda loop: loop.number):
                if earliest[node] <= loop.rank <= last and loop.take(node):
                    break
                forget_if_full(loop, kind)
            else:
                same = groups.setdefault(kind, [])
                loop = _SharedLoop(node, earliest[node], len(same))
                same.append(loop)
            latest[node] = loop.rank
            for var in _whole_operands(node):
                over.setdefault((kind, var), {})[loop] = None
            forget_if_full(loop, kind)
        return [
            sorted(loop.sums, key=position.__getitem__) for made in groups.values() for loop in made
        ]


class _SharedLoop:
    """Sums that one loop computes. number: loops of one kind are numbered as they are made."""

    def __init__(self, node: Apply, rank: int, number: int) -> None:
        self.rank = rank
        self.number = number
        self.sums = [node]
        self._operands = set(node.inputs)
        self._n_instructions = _n_mapped(node)
        self._refused = 0

    @property
    def arrays(self) -> set[Any]:
        """The arrays that sums of the loop read whole."""
        return {var for node in self.sums for var in _whole_operands(node)}

    @property
    def is_full(self) -> bool:
        """Whether no other sum fits, or so many did not that it is not worth trying."""
        streams = len(self._operands) + len(self.sums)
        full = streams >= MAX_STREAMS or self._n_instructions >= MAX_INSTRUCTIONS
        return full or self._refused >= MAX_REFUSED

    def take(self, node: Apply) -> bool:
        """Add a sum that reads one of the arrays, unless the loop becomes too large."""
        operands = self._operands.union(node.inputs)
        n_instructions = self._n_instructions + _n_mapped(node)
        most = len(operands) + len(self.sums) + 1
        if most > MAX_STREAMS or n_instructions > MAX_INSTRUCTIONS:
            self._refused += 1
            return False
        self._operands, self._n_instructions = operands, n_instructions
        self.sums.append(node)
        return True


def _ranks(order: Sequence[Apply], sums: dict[Any, Any]) -> dict[Any, Any]:
    """Return {Apply: how many sums, one after the other, come before it at most}."""
    ranks: dict[Apply, int] = {}
    for node in order:
        owners = [var.owner for var in node.inputs if var.owner is not None]
        ranks[node] = max((ranks[o] + (o in sums) for o in owners), default=0)
    return ranks


def _axes(node: Apply) -> tuple[int, ...]:
    """Return the axes that a reduction reduces, as a tuple."""
    axes = _parts(node)[1].op.axis
    return tuple(range(len(_looped_over(node)))) if axes is None else axes


def _whole_operands(node: Apply) -> list[Var]:
    """Return the operands of a reduction that are as large as what it reduces."""
    full = _looped_over(node)
    return [var for var in node.inputs if var.type.broadcastable == full]


def _parts(node: Apply) -> tuple[ScalarOp | None, Apply]:
    """Return (scalar op, Apply that reduces) of a reduction; the op is None for a bare one."""
    if not isinstance(node.op, MapReduce):
        return None, node
    return node.op.scalar_op, node.op.parts(node)[1][0]


def _looped_over(node: Apply) -> tuple[bool, ...]:
    """Return the broadcast pattern of what a reduction reduces."""
    return _parts(node)[1].inputs[0].type.broadcastable


def _n_mapped(node: Apply) -> int:
    op = _parts(node)[0]
    return len(op.instructions) if isinstance(op, Composite) else 1


def _is_sum_of_floats(node: Apply) -> bool:
    """Return whether an Apply adds up floats, in a loop in C."""
    if isinstance(node.op, MapReduce):
        if len(node.outputs) > 1:
            return False
    elif not reduces_in_c(node):
        return False
    reduced = _parts(node)[1]
    row = reduced.op.scalar_op.row
    return (
        row is not None
        and row.name == "add"
        and getattr(reduced.op, "acc_dtype", None) in ("float32", "float64")
        and reduced.inputs[0].type.dtype in ("float32", "float64")
    )


def _shared(group: Sequence[Apply]) -> list[Var]:
    """Return the outputs of the MapReduce of several sums."""
    inputs = list(dict.fromkeys(var for node in group for var in node.inputs))
    n = len(inputs)
    program: list[Instruction] = []
    known: dict[Instruction, int] = {}

    def emit(one: Instruction) -> int:
        if one not in known:
            known[one] = n + len(program)
            program.append(one)
        return known[one]

    outs, reductions = [], []
    every = [_parts(node)[1] for node in group]
    mixed = len({reduced.inputs[0].type.dtype for reduced in every}) > 1
    for node, reduced in zip(group, every, strict=True):
        slots = [inputs.index(var) for var in node.inputs]
        dtype = reduced.inputs[0].type.dtype
        op = _parts(node)[0]
        if isinstance(op, Composite):
            for one in op.instructions:
                slots.append(emit(one._replace(args=tuple(slots[a] for a in one.args))))
            slot = slots[op.outs[0]]
        elif op is not None:
            slot = emit(Instruction(op, tuple(slots), dtype))
        else:
            (slot,) = slots
        if mixed and dtype != "float64":  # as exact: that is what the sum does first
            slot = emit(Instruction(cast_op("float64"), (slot,), "float64"))
            dtype = "float64"
        outs.append(slot)
        reductions.append(reduced.op)
    op = Composite.from_program([v.type.dtype for v in inputs], program, outs)
    sums: list[Var] = MapReduce(op, *reductions)(*inputs, return_list=True)
    return sums


def maps(node: Apply) -> bool:
    """Return whether an Apply is a reduction that can be fused with the Apply that it reads."""
    mapped = node.inputs[0].owner if reduces_in_c(node) else None
    return mapped is not None and joins(mapped) and (_is_reduced(mapped) or _is_free(mapped))


def reduces_in_c(node: Apply) -> bool:
    """Return whether an Apply is a reduction, along some axis, that a loop in C can compute."""
    op = node.op
    if not isinstance(op, CAReduce) or op.scalar_op.row is None or op.axis == ():
        return False
    if node.inputs[0].type.ndim > MAX_DIMENSIONS:
        return False
    element, out = node.inputs[0].type.dtype, node.outputs[0].type.dtype
    acc = loops.held_in(getattr(op, "acc_dtype", None) or out)
    return (op.scalar_op.row.name, element, acc) in loops.REDUCTIONS and (
        acc == out or (acc, out) in loops.NARROWED
    )


def _is_reduced(node: Apply) -> bool:
    """Return whether only one reduction, which a loop in C can compute, reads an Apply."""
    clients = node.outputs[0]._clients
    return len(clients) == 1 and all(c != "output" and reduces_in_c(c) for c, _ in clients)


def _is_free(node: Apply) -> bool:
    """Return whether recomputing an Apply in each loop that reads it is faster than storing it.

    It is, if the Apply does little, only loops read it, and it reads one array, or arrays that
    these loops read anyway but for one or two.
    """
    pattern = _pattern(node)
    if _cost(node) > MAX_FREE_COST or not all(
        client != "output"
        and (_is_reduction(client) or (joins(client) and _pattern(client) == pattern))
        for client, _ in node.outputs[0]._clients
    ):
        return False
    return len(_full_operands(node)) <= 1 or _saves_memory(node)


def _cost(node: Apply) -> float:
    """Return about how many nanoseconds an element takes; infinity if functions are called."""
    op, dtype = node.op.scalar_op, node.outputs[0].type.dtype
    program = Program.of(op, (), [dtype]).instructions
    if not loops.is_cheap(program):
        return math.inf
    return sum(one.op.row.cost for one in program if one.op.row is not None)


def _full_operands(node: Apply, pattern: Any = None) -> dict[Any, Any]:
    """Return the operands of an Apply that are not broadcast, each once."""
    pattern = _pattern(node) if pattern is None else pattern
    return dict.fromkeys(v for v in node.inputs if v.type.broadcastable == pattern)


def _saves_memory(node: Apply) -> bool:
    """Return whether less memory is moved if each loop that reads an Apply recomputes it.

    The loops are one for all elementwise readers, and one for the reductions along each axes.
    """
    arrays = _arrays(node)
    if arrays is None:
        return False
    pattern = _pattern(node)
    read_by: dict[Any, set[Variable]] = {}
    pending: list[tuple[Apply, set[Variable]]] = [(node, set())]
    seen = 0
    while pending:
        reader, others = pending.pop()
        for client, _ in reader.outputs[0]._clients:
            key: Any = "elementwise"
            read = others
            if client != "output" and _is_reduction(client):
                key = _parts(client)[1].op.axis
                read = others.union(_full_operands(client, pattern)) - {reader.outputs[0]}
            elif client != "output" and joins(client) and _pattern(client) == pattern:
                read = others | (_arrays(client, reader) or set(_full_operands(client)))
                seen += 1
                if seen <= MAX_RECOMPUTED:
                    pending.append((client, read))
                    continue
            read_by.setdefault(key, set()).update(read)
    # stored, it is written once and read by each loop
    return sum(len(arrays - others) for others in read_by.values()) <= len(read_by)


def _is_reduction(node: Apply) -> bool:
    """Return whether an Apply is a reduction in C, perhaps of an elementwise result."""
    return (isinstance(node.op, MapReduce) and len(node.outputs) == 1) or reduces_in_c(node)


def _arrays(node: Apply, without: Apply | None = None) -> set[Any] | None:
    """Return the arrays that recomputing an Apply reads; None if that takes long.

    What it reads of ``without`` does not count.
    """
    found: set[Variable] = set()
    inside = {node}
    pending = [node]
    cost = 0.0
    while pending:
        for var in _full_operands(pending.pop()):
            owner = var.owner
            if (owner is without and owner is not None) or owner in inside:
                continue
            if owner is None or not joins(owner) or (more := _cost(owner)) > MAX_FREE_COST:
                found.add(var)
                continue
            cost += more
            inside.add(owner)
            pending.append(owner)
            if len(inside) > MAX_RECOMPUTED or cost > MAX_RECOMPUTED_COST:
                return None
    return found


def _pattern(node: Apply) -> tuple[bool, ...]:
    return node.outputs[0].type.broadcastable


def joins(node: Apply) -> bool:
    """Return whether an Apply can be fused with others."""
    return isinstance(node.op, Elemwise) and why_alone(node) is None


def why_alone(node: Apply) -> str | None:
    """Return why an elementwise Apply cannot be fused with any other; None if it can."""
    if node.op.inplace_pattern:
        return "overwrites its operand"
    if len(node.outputs) > 1:
        return "has several results already"
    if len(node.inputs) > MAX_OPERANDS + MAX_INSTRUCTIONS:
        return f"has {len(node.inputs)} operands, more than a loop can have"
    if not _has_c(node.op.scalar_op, node):
        types = dict.fromkeys(v.type.dtype for v in (*node.inputs, *node.outputs))
        without = ", ".join(dtype for dtype in types if not csource.is_plain(dtype))
        return f"has no C implementation{' for ' * bool(without)}{without}"
    return None


def _has_c(op: Any, node: Apply) -> bool:
    dtypes = [v.type.dtype for v in node.inputs]
    out = node.outputs[0].type.dtype
    on_host = target.device_name() == "cpu"
    has_c = csource.has_c if on_host else csource.is_plain
    if not all(map(has_c, (*dtypes, out))):
        return False
    if isinstance(op, Composite | Cast):
        return True
    row = op.row
    if row is None:
        # on a device it would keep what it is fused with on the host
        return on_host and usercode.function_of(op, tuple(dtypes), out) is not None
    return row.c_expression(row.compute_dtype(dtypes, out)) is not None


def runs_in_loops(node: Apply) -> bool:
    """Return whether a loop in C, which calls no code of users, computes an elementwise Apply.

    Those of float16 and complex numbers do not count: only Elemwise and reductions have them.
    """
    op, types = node.op.scalar_op, [var.type.dtype for var in (*node.inputs, *node.outputs)]
    if not all(map(csource.is_plain, types)) or node.inputs[0].type.ndim > MAX_DIMENSIONS:
        return False
    if isinstance(op, Composite):
        return not any(usercode.has_c_code(one.op) for one in op.instructions)
    return not usercode.has_c_code(op) and _has_c(op, node)


def _n_instructions(node: Apply) -> int:
    op = node.op.scalar_op
    return len(op.instructions) if isinstance(op, Composite) else 1


def _composite(results: Sequence[Var], group: set[Any]) -> list[Var]:
    """Return the outputs of a group's Composite; operands in the order in which they are read."""
    operands: dict[Variable, int] = {}
    visited: set[Apply] = set()
    for var in results:
        _operands_in_order(var.owner, group, operands, visited)
    inputs = list(operands)
    n = len(inputs)
    slots = dict(operands)
    program: list[Instruction] = []
    for var in results:
        _emit(var.owner, group, slots, program, n)
    outs = [slots[v] for v in results]
    op = Composite.from_program([v.type.dtype for v in inputs], program, outs)
    new: Any = Elemwise(op)(*inputs, return_list=True)
    return list(new)


def _operands_in_order(
    root: Apply, group: set[Any], operands: dict[Any, Any], visited: set[Any]
) -> None:
    if root in visited:
        return
    stack = [root]
    visited.add(root)
    pending = [iter(root.inputs)]
    while stack:
        var = next(pending[-1], None)
        if var is None:
            stack.pop()
            pending.pop()
            continue
        owner = var.owner
        if owner is not None and owner in group:
            if owner not in visited:
                visited.add(owner)
                stack.append(owner)
                pending.append(iter(owner.inputs))
        elif var not in operands:
            operands[var] = len(operands)


def _emit(
    root: Apply, group: set[Any], slots: dict[Any, Any], program: list[Instruction], n: int
) -> None:
    """Append the instructions of ``root`` and of what it reads in the group, which comes first."""
    stack = [root]
    while stack:
        node = stack[-1]
        out = node.outputs[0]
        if out in slots:
            stack.pop()
            continue
        missing: list[Any] = [v.owner for v in node.inputs if v not in slots]
        if missing:
            stack.extend(reversed(missing))
            continue
        stack.pop()
        args = [slots[v] for v in node.inputs]
        (slots[out],) = append_inlined(program, n, node.op.scalar_op, args, out.type.dtype)
