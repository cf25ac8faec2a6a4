"""Work that needs no earlier step is done for all steps at once, before the loop.

What depends on nothing but sequences and constants could all be computed before the loop; what a
loop reads then has to be stored. So only what pays leaves the loop: products of rows with a
constant matrix, and reductions, with what follows them and stores no more than they do.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

from opwise.graph.apply import Apply
from opwise.graph.fgraph import FunctionGraph
from opwise.graph.traversal import clone_replace, io_toposort
from opwise.graph.variable import Constant, Var
from opwise.loops.batching import (
    Rows,
    grows,
    is_batchable,
    is_product,
    is_view,
)
from opwise.loops.derivatives import without_unused
from opwise.loops.layout import Parts
from opwise.loops.op import Scan
from opwise.optimizers.rule import rule
from opwise.tensor.creation import Alloc
from opwise.tensor.elemwise import Elemwise, elemwise
from opwise.tensor.nnet.rowsoftmax import LogSoftmax, Softmax
from opwise.tensor.reduce import CAReduce
from opwise.tensor.shape import Shape, Shape_i

add = elemwise("add")


@rule(
    Scan, stage="canonicalize",
    tags=("fast_run", "scan", "scan_pushout", "scanOp_pushout_seqs_ops", "scan_pushout_dot1"),
)  # fmt: skip
def scan_push_out_sequences(fgraph: FunctionGraph, node: Apply) -> list[Var] | None:
    """loop of dot(x_t, w) -> loop over the rows of dot(x, w)"""
    op = node.op
    if op.layout.until or not op.layout.sequences:
        return None  # the steps after the last one may be most of them
    if op.chooses:
        return None  # a step may need none of it
    found = _Ahead(op.step_inputs, op.outputs)
    if not found.pays:
        return None
    outputs = _with_grouped_terms(op.step_inputs, op.outputs, found)
    if outputs is not op.outputs:
        found = _Ahead(op.step_inputs, outputs)
    moved = found.moved()
    given = op.layout.loop_inputs(node.inputs[1:])
    rows = Rows(
        node.inputs[0],
        dict(zip(op.step_inputs.sequences, given.sequences, strict=True)),
        dict(zip(op.step_inputs.constants, given.constants, strict=True)),
    )
    inside = {var: var.type.make_variable(var.name) for var in moved}
    step = replace(op.step_inputs, sequences=[*op.step_inputs.sequences, *inside.values()])
    given = replace(given, sequences=[*given.sequences, *map(rows.of, moved)])
    return _with_inputs(node, step, given, clone_replace(outputs, inside))


@rule(
    Scan, stage="canonicalize",
    tags=("fast_run", "scan", "scan_pushout", "scanOp_pushout_nonseqs_ops"),
)  # fmt: skip
def scan_push_out_constants(fgraph: FunctionGraph, node: Apply) -> list[Var] | None:
    """loop of f(c), where c is the same in all steps -> a loop that is given f(c)"""
    op = node.op
    if op.chooses:
        return None  # no step may need it
    step = op.step_inputs
    same = set(step.constants)
    costly: set[Var] = set()
    order = io_toposort(op.inputs, op.outputs)
    for inside in order:
        if all(v in same or isinstance(v, Constant) for v in inside.inputs):
            same.update(inside.outputs)
            if _costs(inside) or not costly.isdisjoint(inside.inputs):
                costly.update(inside.outputs)
    if not costly:
        return None
    read = {v for inside in order if inside.outputs[0] not in same for v in inside.inputs}
    moved = [v for inside in order for v in inside.outputs if v in costly
             and (v in read or v in op.outputs)]  # fmt: skip
    given = op.layout.loop_inputs(node.inputs[1:])
    rows = Rows(node.inputs[0], {}, dict(zip(step.constants, given.constants, strict=True)))
    own = {var: var.type.make_variable(var.name) for var in moved}
    step = replace(step, constants=[*step.constants, *own.values()])
    given = replace(given, constants=[*given.constants, *map(rows.same, moved)])
    return _with_inputs(node, step, given, clone_replace(op.outputs, own))


def _costs(node: Apply) -> bool:
    """Return whether it takes time to compute an Apply again in each step.

    Zeros and ones of some shape cost little, and other rules must see them.
    """
    if is_view(node) or isinstance(node.op, Alloc) or not node.outputs[0].type.ndim:
        return False
    row = node.op.scalar_op.plain_row if isinstance(node.op, Elemwise) else None
    return row is None or row.name != "second"


def _with_inputs(
    node: Apply, step: Parts[Var], given: Parts[Var], outputs: Sequence[Var]
) -> list[Var]:
    """Return the outputs of a loop over the same step with other inputs."""
    op = node.op
    computed = op.layout.step_outputs(outputs)
    step, given = without_unused(step, given, computed)
    new = op.variant(step, computed, op.layout.taps, op.layout.last)
    repeated: Parts[Var] = new.repeat(node.inputs[0], given)
    return repeated.flat()


class _Ahead:
    """What of a step depends only on sequences and constants, and what of it pays to move."""

    def __init__(self, step: Parts[Var], outputs: Sequence[Var]):
        order = io_toposort(step.flat(), outputs)
        self.outputs = outputs
        self.order = order
        self.varying = set(step.sequences)
        self.known = {*step.sequences, *step.constants}
        self.readers = Counter(v for node in order for v in dict.fromkeys(node.inputs))
        self.readers.update(outputs)
        #: what it pays to compute before the loop
        self.pays: set[Var] = set()
        for node in order:
            if not all(self.is_known(var) for var in node.inputs):
                continue
            varies = not self.varying.isdisjoint(node.inputs)
            if varies and not is_batchable(node, self.varying):
                continue
            self.known.update(node.outputs)
            if not varies or isinstance(node.op, Shape | Shape_i):
                continue
            self.varying.update(node.outputs)
            if self._is_costly(node) or self._goes_along(node):
                self.pays.update(node.outputs)

    def is_known(self, var: Var) -> bool:
        """Return whether a variable can be computed before the loop."""
        return var in self.known or isinstance(var, Constant)

    def _is_costly(self, node: Apply) -> bool:
        if isinstance(node.op, CAReduce | Softmax | LogSoftmax):
            x = node.inputs[0]
            return not all(x.type.broadcastable) and not (
                x.owner is not None and grows(x.owner, self.varying)
            )
        return is_product(node, self.varying)

    def _goes_along(self, node: Apply) -> bool:
        """Return whether an Apply stores no more than the value that is moved already."""
        moved = [var for var in node.inputs if var in self.pays]
        if not moved:
            return False
        if is_view(node):
            return node.inputs[0] in self.pays
        out = node.outputs[0].type
        return isinstance(node.op, Elemwise) and any(
            var.type.broadcastable == out.broadcastable and self.readers[var] == 1 for var in moved
        )

    def moved(self) -> list[Var]:
        """Return the variables of which the loop reads rows instead."""
        read = set(self.outputs)
        for node in self.order:
            if self.pays.isdisjoint(node.outputs):
                read.update(node.inputs)
        return [v for node in self.order for v in node.outputs if v in self.pays and v in read]


def _with_grouped_terms(step: Parts[Var], outputs: Sequence[Var], found: _Ahead) -> Sequence[Var]:
    """Return the outputs of a step, computed from sums whose terms that can be moved are together.

    So dot(x, w) + dot(h, u) + b becomes (dot(x, w) + b) + dot(h, u).
    """
    for node in found.order:
        out = node.outputs[0]
        if not _is_sum(node) or found.is_known(out):
            continue
        terms = _terms(out, found)
        ahead = [var for var in terms if found.is_known(var)]
        rest = [var for var in terms if not found.is_known(var)]
        if len(ahead) < 2 or not rest or found.pays.isdisjoint(ahead):
            continue
        if any(var.type.dtype != out.type.dtype for var in terms):
            continue
        total = add(add(*ahead), *rest)
        if total.type == out.type:
            outputs = clone_replace(outputs, {out: total})
            return _with_grouped_terms(step, outputs, _Ahead(step, outputs))
    return outputs


def _is_sum(node: Apply) -> bool:
    return isinstance(node.op, Elemwise) and node.op == add


def _terms(var: Var, found: _Ahead) -> list[Var]:
    """Return the terms of a sum, of those in it that only it reads too."""
    terms: list[Var] = []
    for term in var.owner.inputs:
        inner = term.owner is not None and _is_sum(term.owner) and not found.is_known(term)
        terms += _terms(term, found) if inner and found.readers[term] == 1 else [term]
    return terms
