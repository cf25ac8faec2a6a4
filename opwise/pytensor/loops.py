"""Translations of Ops with a graph inside: Scan, IfElse and OpFromGraph."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from pytensor.compile.builders import OpFromGraph
from pytensor.graph.traversal import toposort
from pytensor.scan.op import Scan
from pytensor.tensor.type import DenseTensorType

from opwise.frontends import Translator, Untranslated
from opwise.graph.variable import Var
from opwise.loops.layout import Parts
from opwise.loops.op import Scan as OwnScan
from opwise.pytensor.frontend import translates
from opwise.tensor.creation import alloc
from opwise.tensor.elemwise import elemwise
from opwise.tensor.ifelse import IfElse as OwnIfElse
from opwise.tensor.join import join
from opwise.tensor.shape import shape_i_op
from opwise.tensor.subtensor import set_subtensor
from opwise.tensor.variable import constant

try:
    from pytensor.conditional.op import IfElse
except ImportError:  # of earlier releases
    from pytensor.ifelse import IfElse


def _order(inputs: Sequence[Any], outputs: Sequence[Any]) -> list[Any]:
    """Return the Applys between inputs and outputs, each after those that it depends on."""
    return list(toposort(outputs, blockers=inputs))


@translates(OpFromGraph, any_type=True)
def _from_graph(t: Translator, node: Any, *inputs: Var) -> list[Var]:
    op = node.op
    order = _order(op.inner_inputs, op.inner_outputs)
    return t.inner(op.inner_inputs, inputs, order, op.inner_outputs)


@translates(IfElse, any_type=True)
def _ifelse(t: Translator, node: Any, condition: Var, *values: Var) -> list[Var]:
    n = node.op.n_outs
    types = [t.frontend.type_of(out.type) for out in node.outputs]
    fitted = [t.exactly(value, type_) for value, type_ in zip(values, types + types, strict=True)]
    results: list[Var] = OwnIfElse(n)(condition, *fitted, return_list=True)
    return results


# --- loops ----------------------------------------------------------------------------------------


class _Trace(NamedTuple):
    """A state of opwise's loop that stands for one of PyTensor's, or for one output of a MIT-MOT.

    PyTensor's loop keeps the rows of a state in a buffer that it is given; its first rows are the
    values before the first step.
    """

    #: the inputs of the step, as places among them, with the number of steps back
    reads: list[tuple[int, int]]
    #: the output of the step, as a place among them
    new: int
    #: the rows before the first step
    first: Var


@translates(Scan, any_type=True)
def _scan(t: Translator, node: Any, *inputs: Var) -> list[Var]:
    return _Loop(t, node, inputs).outputs()


class _Loop:
    """Translates one Apply of Scan."""

    def __init__(self, t: Translator, node: Any, inputs: Sequence[Var]) -> None:
        self.t, self.node, self.op, self.info = t, node, node.op, node.op.info
        if self.info.as_while and self.info.n_mit_mot:
            raise Untranslated("a loop that ends early and changes rows of a buffer")
        self.inputs = inputs
        self.n_steps = inputs[0]
        #: {place of an input of the step: its variable}, in the order of opwise's parts
        self.sequences: list[tuple[int, Var]] = []
        self.states: list[_Trace] = []
        #: places of outputs of the step that no step reads
        self.results: list[int] = []
        self.objects: list[tuple[int, int, Var]] = []
        #: for each untraced state of tensors, its place among the states
        self.last: dict[int, int] = {}

    def outputs(self) -> list[Var]:
        op, info, inputs = self.op, self.info, self.inputs
        place = iter(range(len(op.inner_inputs)))  # of inputs of the step
        new = iter(range(len(op.inner_outputs)))
        for sequence in op.outer_seqs(inputs):
            self.sequences.append((next(place), sequence[: self.n_steps]))
        finish: list[Any] = []
        for k, buffer in enumerate(op.outer_mitmot(inputs)):
            reads = [(next(place), tap) for tap in info.normalized_mit_mot_in_slices[k]]
            writes = [(next(new), tap) for tap in info.normalized_mit_mot_out_slices[k]]
            finish.append(self._changed_buffer(buffer, reads, writes))
        several = zip(op.outer_mitsot(inputs), info.mit_sot_in_slices, strict=True)
        single = zip(op.outer_sitsot(inputs), info.sit_sot_in_slices, strict=True)
        for buffer, taps in (*several, *single):
            before = -min(taps)
            reads = [(next(place), -tap) for tap in taps]
            finish.append(self._kept_rows(self._state(reads, next(new), buffer[:before]), buffer))
        untraced = [(next(place), first) for first in op.outer_untraced_sit_sot(inputs)]
        for count in op.outer_nitsot(inputs):
            finish.append(self._collected(next(new), count))
        for at, first in untraced:
            finish.append(self._last_value(at, next(new), first))
        constants = list(zip(place, op.outer_non_seqs(inputs), strict=True))
        condition = [next(new)] if info.as_while else []
        loop = self._run(constants, condition)
        return [one(loop) for one in finish]

    # --- what the loop has ------------------------------------------------------------------------

    def _state(self, reads: list[tuple[int, int]], new: int, first: Var) -> int:
        """Add a state; return its place."""
        self.states.append(_Trace(reads, new, first))
        return len(self.states) - 1

    def _changed_buffer(
        self, buffer: Var, reads: list[tuple[int, int]], writes: list[tuple[int, int]]
    ) -> Any:
        """Add what a MIT-MOT reads and writes: step t reads and writes rows t + tap of a buffer.

        A row that is read was written in an earlier step by the next larger tap, or by none: it is
        a state of that output, with the rows of the buffer before the first step, or a sequence.
        """
        n = self.n_steps
        read_by: dict[int, list[tuple[int, int]]] = {new: [] for new, _ in writes}
        for at, tap in reads:
            later = [(other, new) for new, other in writes if other > tap]
            if later:
                other, new = min(later)
                read_by[new].append((at, other - tap))
            else:
                self.sequences.append((at, buffer[tap : n + tap]))
        made: list[tuple[int, Any]] = []
        for new, tap in writes:
            if read_by[new]:
                most = max(back for _, back in read_by[new])
                k = self._state(read_by[new], new, buffer[tap - most : tap])
                made.append((tap, lambda loop, k=k, most=most: loop.states[k][0][most:]))
            else:
                self.results.append(new)
                r = len(self.results) - 1
                made.append((tap, lambda loop, r=r: loop.results[r]))

        def finish(loop: Parts[Var]) -> Var:
            whole = buffer
            # of two writes of a row the later one, by the smaller tap, stays
            for tap, rows in sorted(made, key=lambda one: -one[0]):
                whole = set_subtensor(whole[tap : n + tap], rows(loop))
            return whole

        return finish

    def _kept_rows(self, k: int, buffer: Var) -> Any:
        """Return what gives the rows of state ``k`` that PyTensor's buffer has room for."""
        return lambda loop: self._last_rows(loop.states[k][0], shape_i_op(0)(buffer))

    def _collected(self, new: int, count: Var) -> Any:
        """Add a result of which ``count`` rows are kept."""
        self.results.append(new)
        r = len(self.results) - 1
        if count is self.n_steps:
            return lambda loop: loop.results[r]
        return lambda loop: self._filled(self._last_rows(loop.results[r], count), count)

    def _last_rows(self, rows: Var, count: Var) -> Var:
        n = shape_i_op(0)(rows)
        first = elemwise("maximum")(elemwise("sub")(n, count), constant(np.int64(0)))
        return rows[first:]

    def _filled(self, rows: Var, count: Var) -> Var:
        """Return rows with zeros behind them where a buffer has room for more than the steps."""
        if self.info.as_while:
            return rows
        n = shape_i_op(0)(rows)
        more = elemwise("maximum")(elemwise("sub")(count, n), constant(np.int64(0)))
        lengths = [shape_i_op(d)(rows) for d in range(1, rows.type.ndim)]
        zeros = alloc(constant(np.zeros((), rows.type.dtype)), more, *lengths)
        return join(0, rows, zeros)

    def _last_value(self, at: int, new: int, first: Var) -> Any:
        """Add a state of which only the last value is wanted."""
        if not isinstance(self.op.inner_inputs[at].type, DenseTensorType):
            self.objects.append((at, new, first))
            o = len(self.objects) - 1
            return lambda loop: loop.objects[o]
        k = self._state([(at, 1)], new, first.dimshuffle("x", *range(first.type.ndim)))
        self.last[k] = 1
        return lambda loop: loop.states[k][0][-1]

    # --- opwise's loop ----------------------------------------------------------------------------

    def _run(self, constants: list[tuple[int, Var]], condition: list[int]) -> Parts[Var]:
        t, op = self.t, self.op
        types = [t.frontend.type_of(var.type) for var in op.inner_inputs]
        step: dict[int, Var] = {
            at: type_.make_variable(var.name)
            for at, (type_, var) in enumerate(zip(types, op.inner_inputs, strict=True))
        }
        results = t.inner(
            op.inner_inputs, [step[at] for at in range(len(types))],
            _order(op.inner_inputs, op.inner_outputs), op.inner_outputs,
        )  # fmt: skip
        inside = Parts(
            sequences=[step[at] for at, _ in self.sequences],
            states=[[step[at] for at, _ in state.reads] for state in self.states],
            objects=[step[at] for at, _, _ in self.objects],
            constants=[step[at] for at, _ in constants],
        )
        computed = Parts(
            states=[
                [t.exactly(results[state.new], types[state.reads[0][0]])] for state in self.states
            ],
            results=[results[new] for new in self.results],
            objects=[results[new] for _, new, _ in self.objects],
            condition=[results[new] for new in condition],
        )
        given = Parts(
            sequences=[self._rows(x, types[at]) for at, x in self.sequences],
            states=[[self._rows(s.first, types[s.reads[0][0]])] for s in self.states],
            objects=[first for _, _, first in self.objects],
            constants=[self._as(x, types[at]) for at, x in constants],
        )
        taps = [[back for _, back in state.reads] for state in self.states]
        loop = OwnScan.of(inside, computed, taps, self.last, name=op.name)
        return loop.repeat(self.n_steps, given)

    def _as(self, x: Var, type_: Any) -> Var:
        return self.t.with_ones(x, getattr(type_, "broadcastable", ()))

    def _rows(self, x: Var, row: Any) -> Var:
        """Return the rows of a sequence or state, with the lengths of 1 that a row has."""
        return self.t.with_ones(x, (False, *row.broadcastable))
