"""Work that no later step needs is done for all steps at once, after the loop.

The loop returns rows of what this work reads. It leaves the loop if one product over all rows
replaces a product in each step.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, KeysView, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, reduce
from typing import Any

from opwise.graph.apply import Apply
from opwise.graph.fgraph import FunctionGraph
from opwise.graph.traversal import ancestors, io_toposort
from opwise.graph.variable import Var
from opwise.loops.batching import (
    Rows,
    flat,
    grows,
    is_batchable,
    is_product,
    is_zero,
    picks_a_row,
)
from opwise.loops.derivatives import without_unused
from opwise.loops.layout import Parts
from opwise.loops.op import Scan
from opwise.loops.ragged import ragged_variables
from opwise.optimizers.rule import rule
from opwise.optimizers.shapefeature import same_length
from opwise.scalar import dtypes
from opwise.tensor import cast, constant, inc_subtensor, patternbroadcast, shape_padleft
from opwise.tensor.advanced_subtensor import AdvancedIncSubtensor1
from opwise.tensor.dimshuffle import DimShuffle, dimshuffle
from opwise.tensor.dot import Dot
from opwise.tensor.elemwise import Elemwise, elemwise
from opwise.tensor.reduce import Sum
from opwise.tensor.shape import Shape, Shape_i, shape_i_op
from opwise.tensor.subtensor import IncSubtensor

add, mul = elemwise("add"), elemwise("mul")
_TAGS = ("fast_run", "scan", "scan_pushout", "scanOp_pushout_output")


class _Loop:
    """The loop of an Apply, and which variables of its step have rows outside."""

    def __init__(self, node: Apply):
        self.node, self.op, self.layout = node, node.op, node.op.layout
        self.step, self.computed = self.op.step_inputs, self.op.step_outputs
        self.given = self.layout.loop_inputs(node.inputs[1:])
        self.order = io_toposort(self.op.inputs, self.op.outputs)
        self.results = set(self.computed.results)
        #: what has rows outside without being collected for them
        self.free = set(self.step.sequences) | set(self.computed.results)
        for k, (values, (new,)) in enumerate(
            zip(self.step.states, self.computed.states, strict=True)
        ):
            if k not in self.layout.last:
                self.free |= {new, *values}
        #: what differs between steps
        self.varying = self._varying()

    def _varying(self) -> set[Var]:
        taps = [var for values in self.step.states for var in values]
        varying = {*self.step.sequences, *taps, *self.step.objects}
        known = set(self.free)
        for node in self.order:
            given = [v for v in node.inputs if v in varying]
            have_rows = known.issuperset(given)
            if not given or (have_rows and isinstance(node.op, Shape | Shape_i)):
                continue
            varying.update(node.outputs)
            if have_rows and is_batchable(node, varying):
                known.update(node.outputs)
        return varying

    @cached_property
    def ragged(self) -> KeysView[Var]:
        """What has other lengths in other steps, so that the loop cannot collect it."""
        return ragged_variables(self.step, self.order)

    @property
    def recurrent(self) -> list[Var]:
        """What later steps, or the end of the loop, depend on."""
        new = [var for k, (var,) in enumerate(self.computed.states) if k not in self.sums]
        return [*new, *self.computed.objects, *self.computed.condition]

    @cached_property
    def sums(self) -> dict[int, list[Var]]:
        """What states of which only the last value is kept add up in each step: by state."""
        return added_up(self.op, self.layout.only_last)

    def may_leave(self, node: Apply) -> bool:
        """Return whether an Apply can be computed for all steps at once, without storing more."""
        return (
            not self.varying.isdisjoint(node.outputs)
            and is_batchable(node, self.varying)
            and not (grows(node, self.varying) and self.results.isdisjoint(node.outputs))
            and self.ragged.isdisjoint((*node.inputs, *node.outputs))
        )

    def sources(self, wanted: Iterable[Var], late: Collection[Var] = ()) -> list[Var]:
        """Return what the loop must collect so that variables can be computed after it.

        late: what is computed after the loop; so is what no step needs, and views.
        """
        found: dict[Var, None] = {}
        stack, seen = list(wanted), self.free.difference(late)
        while stack:
            var = stack.pop()
            if var in seen or var not in self.varying:
                continue
            seen.add(var)
            shown = var.owner is not None and isinstance(var.owner.op, DimShuffle)
            if shown or var in late or var in self.outside:
                stack += var.owner.inputs
            else:
                found[var] = None
        return list(found)

    @cached_property
    def outside(self) -> set[Var]:
        """What no step needs and what can be computed from variables that have rows anyway."""
        core = set(ancestors(self.recurrent))
        found: set[Var] = set()
        for node in self.order:
            given = (v for v in node.inputs if v in self.varying)
            if (
                core.isdisjoint(node.outputs)
                and self.may_leave(node)
                and all(v in found or v in self.free for v in given)
            ):
                found.update(node.outputs)
        return found

    def has_rows_for_all_steps(self, fgraph: FunctionGraph) -> bool:
        """Return whether the sequences are known to have a row for each step."""
        feature = fgraph.shape_feature
        return self.op.fits or (
            feature is not None
            and bool(self.given.sequences)
            and all(
                same_length(feature.shape_of[rows][0], self.node.inputs[0])
                for rows in self.given.sequences
            )
        )

    def without(
        self, dropped: Iterable[int], results: Sequence[Var]
    ) -> tuple[dict[int, Var], Rows]:
        """Return a loop without some outputs that collects ``results`` as well.

        Returns its outputs by the number of those of the loop, and what it computes as rows.
        """
        layout, gone = self.layout, set(dropped)
        n_states = len(layout.taps)
        states = [k for k in range(n_states) if k not in gone]
        kept = [k for k in range(layout.results) if n_states + k not in gone]
        collected = list(dict.fromkeys([*(self.computed.results[k] for k in kept), *results]))
        computed = replace(
            self.computed, states=[self.computed.states[k] for k in states], results=collected
        )
        step = replace(self.step, states=[self.step.states[k] for k in states])
        given = replace(self.given, states=[self.given.states[k] for k in states])
        step, given = without_unused(step, given, computed)
        last = {i: layout.last[k] for i, k in enumerate(states) if k in layout.last}
        if computed.flat():
            new = self.op.variant(step, computed, [layout.taps[k] for k in states], last)
            done = new.repeat(self.node.inputs[0], given)
        else:
            done = Parts[Var]([], [], [], [], [], [])
        rows = dict(zip(collected, done.results, strict=True))
        outputs = {k: whole for k, (whole,) in zip(states, done.states, strict=True)}
        for k in kept:
            outputs[n_states + k] = rows[self.computed.results[k]]
        for k, value in enumerate(done.objects):
            outputs[n_states + layout.results + k] = value
        return outputs, self._rows(rows, outputs)

    def _rows(self, rows: dict[Var, Var], outputs: dict[int, Var]) -> Rows:
        layout = self.layout
        n = self.node.inputs[0]
        if layout.until:
            k: Any
            whole: Any
            k, whole = next(iter(outputs.items())) if outputs else (None, None)
            if rows:
                n = shape_i_op(0)(next(iter(rows.values())))
            else:
                n = shape_i_op(0)(whole) - layout.rows_before[k]
        for var, whole in zip(self.step.sequences, self.given.sequences, strict=True):
            rows.setdefault(var, whole[:n] if layout.until else whole)
        for k, (values, (new,)) in enumerate(
            zip(self.step.states, self.computed.states, strict=True)
        ):
            if k in layout.last or k not in outputs:
                continue
            before = layout.rows_before[k]
            rows.setdefault(new, outputs[k][before:])
            for var, tap in zip(values, layout.taps[k], strict=True):
                rows.setdefault(var, outputs[k][before - tap : before - tap + n])
        return Rows(n, rows, dict(zip(self.step.constants, self.given.constants, strict=True)))


# --- results --------------------------------------------------------------------------------------


@rule(Scan, stage="canonicalize", tags=_TAGS)
def scan_push_out_results(fgraph: FunctionGraph, node: Apply) -> list[Var | None] | None:
    """loop of dot(h_t, w) -> dot(rows of h, w); a loop whose steps are independent -> its step"""
    if not node.op.layout.results or not node.op.layout.keeps_results:
        return None
    loop = _Loop(node)
    wanted = loop.computed.results
    late = _independent(loop) if loop.has_rows_for_all_steps(fgraph) else set()
    if not all(v in late or v in loop.step.sequences or v not in loop.varying for v in wanted):
        late = _products(loop)
        wanted = [var for var in wanted if var in late]
    if not wanted:
        return None
    n_states = len(loop.layout.taps)
    moved = {k: v for k, v in enumerate(loop.computed.results, n_states) if v in set(wanted)}
    outputs, rows = loop.without(moved, loop.sources(wanted, late))
    outputs.update((k, rows.of(var)) for k, var in moved.items())
    return [outputs.get(k) for k in range(len(node.outputs))]


def _independent(loop: _Loop) -> set[Var]:
    """Return what can be computed from sequences alone, if no step reads what another computes."""
    late: set[Var] = set()
    if not loop.recurrent:
        for node in loop.order:
            given = [v for v in node.inputs if v in loop.varying]
            if loop.may_leave(node) and all(v in late or v in loop.step.sequences for v in given):
                late.update(node.outputs)
    return late


def _products(loop: _Loop) -> set[Var]:
    """Return the products that no step needs, and what is computed from them."""
    late: set[Var] = set()
    core = set(ancestors([v for v in loop.op.outputs if v not in loop.results]))
    for node in loop.order:
        pays = is_product(node, loop.varying) or not late.isdisjoint(node.inputs)
        if pays and core.isdisjoint(node.outputs) and loop.may_leave(node):
            late.update(node.outputs)
    return late


# --- sums -----------------------------------------------------------------------------------------


def added_up(op: Scan, states: Collection[int]) -> dict[int, list[Var]]:
    """Return the terms that each step adds to a state, by state; for those that only add up."""
    found = {}
    for k in sorted(states):
        (total, *_), (new,) = op.step_inputs.states[k], op.step_outputs.states[k]
        terms = _terms(new, total)
        others = [var for i, var in enumerate(op.outputs) if i != k]
        if terms is not None and total not in ancestors([*terms, *others]):
            found[k] = terms
    return found


@rule(Scan, stage="canonicalize", tags=_TAGS)
def scan_push_out_sums(fgraph: FunctionGraph, node: Apply) -> list[Var | None] | None:
    """loop of s_t = s_t-1 + outer(x_t, g_t) -> s + dot(rows of x transposed, rows of g)"""
    if not node.op.layout.only_last or not node.op.layout.keeps_results:
        return None
    if node.op.layout.until:
        # the number of steps, and the rows that a sum needs, would be known from rows that are
        # kept for all steps that the loop may take
        return None
    loop = _Loop(node)
    sums = {
        k: _of_all_steps(loop, terms, loop.computed.states[k][0].type.dtype)
        for k, terms in loop.sums.items()
    }
    collected = {v for each in sums.values() if each.pays for v in each.needs}
    sums = {k: each for k, each in sums.items() if each.pays or collected.issuperset(each.needs)}
    stays = len(sums) < len(node.outputs)
    if not sums or not (stays or loop.has_rows_for_all_steps(fgraph)):
        return None
    outputs, rows = loop.without(
        sums, list(dict.fromkeys(v for s in sums.values() for v in s.needs))
    )
    for k, found in sums.items():
        (first,) = loop.given.states[k]
        row = loop.computed.states[k][0].type
        total = add(first, shape_padleft(cast(found.build(rows), row.dtype)))
        outputs[k] = patternbroadcast(total, node.outputs[k].type.broadcastable)
    return [outputs.get(k) for k in range(len(node.outputs))]


@dataclass(frozen=True)
class _Sum:
    """The sum of a variable of a step over all steps."""

    #: the variables of the step whose rows it is computed from
    needs: tuple[Var, ...]
    #: whether it takes less time than a sum step by step
    pays: bool
    #: computes it
    build: Callable[[Rows], Var]


def _terms(var: Var, total: Var) -> list[Var] | None:
    """Return what is added to ``total``; None if the variable is another function of it."""
    if var is total:
        return []
    node = var.owner
    if node is None or not isinstance(node.op, Elemwise) or node.op != add:
        return None
    for i, term in enumerate(node.inputs):
        inner = _terms(term, total) if term.type == var.type else None
        if inner is not None:
            return [*inner, *node.inputs[:i], *node.inputs[i + 1 :]]
    return None


def _of_all_steps(loop: _Loop, terms: Sequence[Var], dtype: str) -> _Sum:
    """Return the sum of some terms. dtype: of their sum."""
    if not terms:  # the state stays as it is
        return _Sum((), False, lambda rows: constant(0, dtype=dtype))
    sums = [
        _collected(loop, term, dtype)
        if term.type.dtype != dtype and term.type.dtype not in dtypes.CONTINUOUS
        else _summed(loop, term)
        for term in terms
    ]
    return _together(sums, lambda *sums: reduce(add, sums))


def _collected(loop: _Loop, var: Var, dtype: str) -> _Sum:
    """Return the sum of a variable in a wider dtype, of whole numbers: they do not overflow it."""
    if var not in loop.varying:
        return _Sum((), False, lambda rows: mul(cast(rows.same(var), dtype), cast(rows.n, dtype)))
    return _Sum(tuple(loop.sources([var])), False, lambda rows: Sum(0, dtype=dtype)(rows.of(var)))


def _together(sums: Sequence[_Sum], build: Callable[..., Var]) -> _Sum:
    return _Sum(
        tuple(dict.fromkeys(v for each in sums for v in each.needs)),
        any(each.pays for each in sums),
        lambda rows: build(*(each.build(rows) for each in sums)),
    )


def _summed(loop: _Loop, var: Var) -> _Sum:
    """Return the sum of a variable over all steps: of what it is a linear function of, if it pays.

    Otherwise the loop collects the variable itself.
    """
    if var not in loop.varying:
        return _Sum((), False, lambda rows: mul(rows.same(var), cast(rows.n, var.type.dtype)))
    if var.owner is not None:
        found = _linear(loop, var.owner)
        if found is not None and (found.pays or isinstance(var.owner.op, DimShuffle | Sum)):
            return found
    return _collected(loop, var, var.type.dtype)


def _linear(loop: _Loop, node: Apply) -> _Sum | None:
    """Return the sum of what an Apply computes, if it is linear in what varies."""
    op = node.op
    varies = [v in loop.varying for v in node.inputs]
    if isinstance(op, Elemwise):
        additive = op in (add, elemwise("sub"), elemwise("neg"))
        one = (op == mul and sum(varies) == 1) or (len(varies) == 1 and _is_float_cast(node))
        if additive or one:
            parts = [
                _summed(loop, v) if v in loop.varying or additive else _constant(v)
                for v in node.inputs
            ]
            return _together(parts, op)
        return None
    if isinstance(op, DimShuffle | Sum) and node.inputs[0].type.dtype in dtypes.CONTINUOUS:
        return _together([_summed(loop, node.inputs[0])], op)
    if isinstance(op, Dot):
        return _product(loop, node, varies)
    if isinstance(op, IncSubtensor) and is_zero(node.inputs[0]):
        return _parts(loop, node, varies)
    if isinstance(op, AdvancedIncSubtensor1) and is_zero(node.inputs[0]):
        return _looked_up(loop, node, varies)
    return None


def _constant(var: Var) -> _Sum:
    return _Sum((), False, lambda rows: rows.same(var))


def _is_float_cast(node: Apply) -> bool:
    row = node.op.scalar_op.plain_row
    kinds = {v.type.dtype for v in (*node.inputs, *node.outputs)}
    return row is not None and row.name == "cast" and kinds <= set(dtypes.CONTINUOUS)


def _product(loop: _Loop, node: Apply, varies: Sequence[bool]) -> _Sum | None:
    """The sum of products of matrices is the product of matrices that are put together."""
    x, y = node.inputs
    if not all(varies):
        return _together(
            [_summed(loop, v) if v in loop.varying else _constant(v) for v in (x, y)], node.op
        )
    if x.type.ndim != 2 or y.type.ndim != 2 or not loop.ragged.isdisjoint((x, y)):
        return None

    def build(rows: Rows) -> Var:
        left, right = rows.of(x), rows.of(y)
        return node.op(
            dimshuffle(flat(rows.n, dimshuffle(left, (0, 2, 1))), (1, 0)), flat(rows.n, right)
        )

    return _Sum(tuple(loop.sources([x, y])), True, build)


def _parts(loop: _Loop, node: Apply, varies: Sequence[bool]) -> _Sum | None:
    """The sum of arrays that are zero except for a part."""
    zeros, y, *indices = node.inputs
    if y not in loop.varying:
        return None
    if not any(varies[2:]) and zeros not in loop.varying:
        constants = [_constant(v) for v in indices]
        return _together([_constant(zeros), _summed(loop, y), *constants], node.op)
    picks = picks_a_row(node, varies, 2) and len(indices) == 1
    if not picks or zeros in loop.varying or y.type.ndim != zeros.type.ndim - 1:
        return None
    (index,) = indices
    position = index.owner.inputs[0] if index.owner is not None else index
    return _Sum(
        tuple(loop.sources([y, position])), True,
        lambda rows: inc_subtensor(rows.same(zeros)[rows.of(position)], rows.of(y)),
    )  # fmt: skip


def _looked_up(loop: _Loop, node: Apply, varies: Sequence[bool]) -> _Sum | None:
    """The sum of tables that are zero except for the rows that were looked up."""
    zeros, y, indices = node.inputs
    if zeros in loop.varying or not all(varies[1:]) or node.op.set_instead_of_inc:
        return None
    if y.type.ndim != zeros.type.ndim or any(y.type.broadcastable):
        return None
    if not loop.ragged.isdisjoint((y, indices)):
        return None
    return _Sum(
        tuple(loop.sources([y, indices])), True,
        lambda rows: node.op(
            rows.same(zeros), flat(rows.n, rows.of(y)), flat(rows.n, rows.of(indices))
        ),
    )  # fmt: skip
