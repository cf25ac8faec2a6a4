"""Derivatives of loops: a gradient is a loop that runs backwards, an R-operator one alongside.

In the backward loop, step r undoes step n - 1 - r. A step that reads the value of a state k steps
later adds to the gradient by that value. What it adds is a state of the backward loop, and is read
k steps later too. So the backward loop is a loop like any other, and has derivatives itself.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import reduce
from operator import add
from typing import TYPE_CHECKING

from opwise.config import config, thread_flags
from opwise.gradient import Rop, grad
from opwise.graph.apply import Apply
from opwise.graph.null import disconnected_type, is_disconnected, is_null
from opwise.graph.traversal import ancestors, clone_replace, io_connection_pattern, io_toposort
from opwise.graph.variable import Var, Variable
from opwise.loops.batching import is_zero
from opwise.loops.layout import Parts
from opwise.loops.ragged import ragged_variables
from opwise.optimizers.shapefeature import inner_shapes
from opwise.scalar import dtypes
from opwise.tensor import (
    cast,
    inc_subtensor,
    set_subtensor,
    shape_padleft,
    tensor_copy,
    zeros,
    zeros_like,
)
from opwise.tensor.dot import Dot
from opwise.tensor.elemwise import Elemwise, elemwise
from opwise.tensor.shape import shape_i_op
from opwise.tensor.subtensor import IncSubtensor, Subtensor, constant_index
from opwise.tensor.type import TensorType, tensor_type

if TYPE_CHECKING:
    from opwise.loops.op import Scan


def connections(op: Scan) -> list[list[bool]]:
    """Return for each input of a loop whether gradients by each output flow to it."""
    layout = op.layout
    flows = _Flows(op)
    n_outputs = len(layout.taps) + layout.results
    objects = [False] * layout.objects
    rows = [[False] * (n_outputs + layout.objects)]  # the number of steps
    step = op.step_inputs
    for row in step.sequences:
        rows.append([*flows.through_steps([row], n_outputs), *objects])
    for k, values in enumerate(step.states):
        reached = flows.through_steps(values, n_outputs)
        reached[k] = True  # its initial rows are part of the output
        rows.append([*reached, *objects])
    rows += [[False] * (n_outputs + layout.objects) for _ in step.objects]
    for var in step.constants:
        rows.append([*flows.through_steps([var], n_outputs), *objects])
    return rows


class _Flows:
    """Which outputs of a step each of its inputs is connected to."""

    def __init__(self, op: Scan):
        layout = op.layout
        self.outputs = op.outputs[: len(layout.taps) + layout.results]
        self.pattern = dict(
            zip(op.inputs, io_connection_pattern(op.inputs, self.outputs), strict=True)
        )
        self.states = op.step_inputs.states

    def through_steps(self, variables: Sequence[Var], n_outputs: int) -> list[bool]:
        """Return by output whether it depends on one of some inputs, through any steps."""
        reached = [False] * n_outputs
        stack = list(variables)
        while stack:
            for k, connected in enumerate(self.pattern[stack.pop()]):
                if connected and not reached[k]:
                    reached[k] = True
                    stack += self.states[k] if k < len(self.states) else []
        return reached

    def back_from(self, reached: set[int]) -> set[int]:
        """Return the outputs that gradients by some outputs flow to, through any steps."""
        found = set(reached)
        grown = True
        while grown:
            grown = False
            for k, values in enumerate(self.states):
                if k not in found and any(self.meets(var, found) for var in values):
                    found.add(k)
                    grown = True
        return found

    def meets(self, var: Var, outputs: set[int]) -> bool:
        """Return whether one of some outputs depends on an input."""
        return any(connected and k in outputs for k, connected in enumerate(self.pattern[var]))


# --- gradients ------------------------------------------------------------------------------------


def gradients(
    op: Scan, inputs: Sequence[Var], outputs: Sequence[Var], by: Sequence[Var]
) -> list[Var]:
    """Return the gradients by the inputs of a loop, given those by its outputs."""
    undefined = next((g for g in by if is_null(g)), None)
    if undefined is not None:
        return [undefined for _ in inputs]
    kept = op.layout.last
    if kept:
        op = op.with_all_rows()
        outputs = op.repeat(inputs[0], op.layout.loop_inputs(inputs[1:])).flat()
        by = [
            set_subtensor(zeros_like(rows)[-kept[k] :], g)
            if k in kept and not is_disconnected(g)
            else g
            for k, (g, rows) in enumerate(zip(by, outputs, strict=True))
        ]
    return _Backward(op, inputs, outputs, by).terms()


class _Backward:
    """The backward loop of one Apply of a Scan."""

    def __init__(
        self,
        op: Scan,
        inputs: Sequence[Var],
        outputs: Sequence[Var],
        by: Sequence[Var],
    ):
        self.op, self.layout = op, op.layout
        self.asked = inputs[0]
        self.given = op.layout.loop_inputs(inputs[1:])
        self.outputs, self.by = list(outputs), by
        self.step = op.step_inputs
        self.flows = _Flows(op)
        #: the outputs of the step with gradients from outside
        self.starts = {
            k for k, out in enumerate(self.flows.outputs)
            if not is_disconnected(by[k]) and _is_float(out)
        }  # fmt: skip
        #: those with any gradients
        self.reached = {
            k for k in self.flows.back_from(self.starts) if _is_float(op.outputs[k])
        }  # fmt: skip
        #: by output of which the last row alone has a gradient from outside: what adds it to rows
        self.by_last: dict[int, Apply] = {}
        for k in sorted(self.starts):
            values = self.step.states[k] if k < len(self.layout.taps) else []
            added = _last_row(by[k]) if len(values) == 1 and self.layout.taps[k] == (1,) else None
            if added is not None and self.flows.meets(values[0], self.reached):
                self.by_last[k] = added
        self.n_done = self.asked
        if self.layout.until:
            before = self.layout.rows_before[0] if self.layout.taps else 0
            self.n_done = shape_i_op(0)(self.outputs[0]) - before
        #: the number of steps that are undone
        self.n_back = self.n_done
        self.is_truncated = op.truncate_gradient != -1
        if self.is_truncated:
            self.n_back = elemwise("minimum")(self.n_done, op.truncate_gradient)

    def terms(self) -> list[Var]:
        """Return the gradients by the inputs of the loop."""
        step, given = self.step, self.given
        with thread_flags(compute_test_value="off"):
            found = self._inside()
        undefined = next((g for g in found.values() if is_null(g)), None)
        if undefined is not None:
            return [undefined for _ in range(1 + len(given.flat()))]
        rows = self._run(found)
        terms = [disconnected_type.make_variable()]
        for own, outside in zip(step.sequences, given.sequences, strict=True):
            terms.append(
                self._of_rows(rows[own], outside) if own in rows else self._none(own, outside)
            )
        for k, (first,) in enumerate(given.states):
            terms.append(self._of_first(k, first, rows))
        terms += [disconnected_type.make_variable() for _ in step.objects]
        for own, outside in zip(step.constants, given.constants, strict=True):
            terms.append(rows[own][-1] if own in rows else self._none(own, outside))
        return terms

    def _inside(self) -> dict[Var, Var]:
        """Return the gradients by the inputs of a step, with variables for those by its outputs."""
        step = self.step
        #: the gradients by rows of outputs that come from outside
        self.from_outside = {
            k: _row_type(self.by[k]).make_variable()
            for k in sorted(self.starts)
            if k not in self.by_last
        }
        #: those by values of states that later steps read: by input of the step
        self.from_later = {
            var: var.type.make_variable()
            for k, values in enumerate(step.states)
            if k in self.reached
            for var in values
            if self.flows.meets(var, self.reached)
        }
        known: dict[Variable, Variable] = {}
        for k in sorted(self.reached):
            parts = [self.from_outside[k]] if k in self.from_outside else []
            if k < len(step.states):
                parts += [self.from_later[v] for v in step.states[k] if v in self.from_later]
            # a copy: other outputs may be computed from this one
            known[tensor_copy(self.op.outputs[k])] = reduce(add, parts)
        wanted = [
            var
            for var in (*step.sequences, *self.from_later, *step.constants)
            if _is_float(var) and self.flows.meets(var, self.reached)
        ]
        if not wanted:
            return {}
        with thread_flags(compute_test_value="off"):
            terms = grad(
                None, wanted, known_grads=known, disconnected_inputs="ignore",
                return_disconnected="disconnected", null_gradients="return",
            )  # fmt: skip
        found = {v: g for v, g in zip(wanted, terms, strict=True) if not is_disconnected(g)}
        for k in self.by_last:  # the backward loop begins with it
            (own,) = step.states[k]
            found.setdefault(own, zeros_like(own))
        return dict(zip(found, self._with_lengths(list(found.values())), strict=True))

    def _forward(self) -> list[Apply]:
        return io_toposort(self.op.inputs, self.op.outputs)

    def _with_lengths(self, terms: Sequence[Var]) -> list[Var]:
        """Return terms in which zeros of the shape of a product do not read the product."""
        products = [node.outputs[0] for node in self._forward() if isinstance(node.op, Dot)]
        costly = _computed_from(products, self.op.outputs)
        fills = [
            node for node in io_toposort(self.op.inputs, terms)
            if isinstance(node.op, Elemwise) and node.op == elemwise("second")
            and node.inputs[0] in costly and is_zero(node.inputs[1])
        ]  # fmt: skip
        if not fills:
            return list(terms)
        inputs = self.op.inputs
        shapes = inner_shapes(
            inputs,
            [node.inputs[0] for node in fills],
            inputs,
            [_lengths(var) for var in inputs],
            read=lambda k, d: shape_i_op(d)(fills[k].inputs[0]),
        )
        filled = {}
        for node, lengths in zip(fills, shapes, strict=True):
            zeros_ = zeros(lengths or (), node.outputs[0].type.dtype)
            filled[node.outputs[0]] = _typed(zeros_, node.outputs[0])
        return clone_replace(terms, filled)

    def _run(self, found: dict[Var, Var]) -> dict[Var, Var]:
        """Return what the backward loop computes, by the input of a step that it belongs to."""
        if not found:
            return {}
        step = self.step
        sums = [var for var in step.constants if var in found]
        totals = {var: var.type.make_variable() for var in sums}
        taps = self._taps()
        later = [var for var in self.from_later if var in found]
        by_row = [var for var in step.sequences if var in found]
        known, rows = self._known_rows(list(found.values()))
        with thread_flags(compute_test_value="off"):
            for var, value in self.from_later.items():
                if var not in found:
                    known[value] = zeros_like(var)
            replaced = clone_replace(list(found.values()), known)
            found = {v: _typed(g, v) for v, g in zip(found, replaced, strict=True)}
            new_totals = [_typed(totals[v] + found[v], v) for v in sums]
        inputs = Parts(
            sequences=list(rows),
            states=[[self.from_later[var]] for var in later] + [[totals[var]] for var in sums],
            results=[], objects=[], constants=step.constants, condition=[],
        )  # fmt: skip
        outputs = Parts(
            sequences=[],
            states=[[found[v]] for v in later] + [[total] for total in new_totals],
            results=[found[var] for var in by_row],
            objects=[], constants=[], condition=[],
        )  # fmt: skip
        first = {
            var: outside
            for values, (outside,) in zip(step.states, self.given.states, strict=True)
            for var in values
        }
        constant = dict(zip(step.constants, self.given.constants, strict=True))
        begins = {step.states[k][0]: self._begin(k) for k in self.by_last}
        given = Parts(
            sequences=[self._backwards(whole) for whole in rows.values()],
            states=[[begins.get(v, zeros_like(first[v][: taps[v]]))] for v in later]
            + [[shape_padleft(zeros_like(constant[v]))] for v in sums],
            results=[], objects=[], constants=self.given.constants, condition=[],
        )  # fmt: skip
        inputs, given = without_unused(inputs, given, outputs)
        loop = self.op.like(
            inputs, outputs, [(taps[v],) for v in later] + [(1,) for _ in sums], "grad_of",
            last=dict.fromkeys(range(len(later), len(later) + len(sums)), 1),
        )  # fmt: skip
        done = loop.repeat(self.n_back, given)
        return {
            **dict(zip([*later, *sums], [rows for (rows,) in done.states], strict=True)),
            **dict(zip(by_row, done.results, strict=True)),
        }

    def _begin(self, k: int) -> Var:
        """Return the row with which the gradient by a state begins; an error if it has no row."""
        added = self.by_last[k]
        last = self.outputs[k][1:][-1:]
        return added.op(zeros_like(last), *added.inputs[1:])

    def _taps(self) -> dict[Var, int]:
        """Return for each value of a state that a step reads how many steps old it is."""
        return {
            var: tap
            for values, taps in zip(self.step.states, self.layout.taps, strict=True)
            for var, tap in zip(values, taps, strict=True)
        }

    def _costly(self, terms: Sequence[Var], known: Sequence[Var]) -> list[Var]:
        """Return what the forward loop should collect: what takes products to compute again.

        known: variables of the step that need not be computed again.
        """
        forward = self._forward()
        ragged = ragged_variables(self.step, forward)
        own = {out for node in forward for out in node.outputs}
        read = {
            var
            for node in io_toposort([*self.op.inputs, *own], terms)
            for var in node.inputs
            if var in own
        } | own.intersection(terms)
        for node in reversed(forward):  # a loop collects tensors only
            if any(v in read and not isinstance(v.type, TensorType) for v in node.outputs):
                read.update(node.inputs)
        costly: set[Var] = set()
        found = []
        for node in forward:
            if not isinstance(node.op, Dot) and costly.isdisjoint(node.inputs):
                continue
            for out in node.outputs:
                if out in known:
                    continue
                if out in read and isinstance(out.type, TensorType) and out not in ragged:
                    found.append(out)
                else:
                    costly.add(out)
        return found

    def _known_rows(self, terms: Sequence[Var]) -> tuple[dict[Var, Var], dict[Var, Var]]:
        """Return what the forward loop has computed already of what the terms are computed from.

        That is {variable of the step: what stands for it in the backward step} and {input of the
        backward step: rows of it, in the order of the forward loop}.
        """
        n = self.n_done
        rows: dict[Var, Var] = {}
        given, step, layout = self.given, self.step, self.layout
        for own, outside in zip(step.sequences, given.sequences, strict=True):
            rows[own] = outside[:n] if layout.until else outside
        extra = self._random(terms)
        extra += self._costly(terms, known=[*self.op.outputs, *extra])
        outputs = self.outputs
        if extra:
            outputs = self._with_results(extra)
        known: dict[Var, Var] = {}
        for k, (values, taps, before) in enumerate(
            zip(step.states, layout.taps, layout.rows_before, strict=True)
        ):
            for own, tap in zip(values, taps, strict=True):
                rows[own] = outputs[k][before - tap : before - tap + n]
            known[self.op.outputs[k]] = outputs[k][before:]
        n_states = len(layout.taps)
        for k, var in enumerate([*self.flows.outputs[n_states:], *extra]):
            known[var] = outputs[n_states + k]
        stands_for = {}
        for var, whole in known.items():
            if var.owner is not None:
                stands_for[var] = var.type.make_variable()
                rows[stands_for[var]] = whole
        for k, row in self.from_outside.items():
            before = layout.rows_before[k] if k < n_states else 0
            rows[row] = self.by[k][before:]
        return stands_for, rows

    def _random(self, terms: Sequence[Var]) -> list[Var]:
        """Return what the forward loop should collect of what depends on random numbers.

        The backward step cannot compute that again: the states of streams are no rows.
        """
        random = _computed_from(self.step.objects, [*self.op.outputs, *terms])
        gradients = [*self.from_later.values(), *self.from_outside.values()]
        random -= _computed_from(gradients, terms)
        rows = {var for var in random if isinstance(var.type, TensorType)}
        return _met_first(terms, rows, stop=self.op.outputs)

    def _with_results(self, extra: Sequence[Var]) -> list[Var]:
        """Return the outputs of a loop that does the same and also collects some variables."""
        outputs = self.op.step_outputs
        outputs.results += extra
        loop = self.op.variant(self.step, outputs, self.layout.taps)
        return loop.repeat(self.asked, self.given).flat()

    # --- between rows of loops and whole variables ------------------------------------------------

    def _backwards(self, rows: Var) -> Var:
        """Return the rows that the backward loop reads, in its order."""
        turned = rows[::-1]
        return turned[: self.n_back] if self.is_truncated else turned

    def _of_rows(self, rows: Var, outside: Var) -> Var:
        """Return the gradient by a sequence, of which the backward loop computed ``rows``."""
        if not self.is_truncated and not self.layout.until:
            return rows[::-1]
        undone = zeros_like(outside)[self.n_done - self.n_back : self.n_done]
        return set_subtensor(undone, rows[::-1])

    def _of_first(self, k: int, first: Var, rows: dict[Var, Var]) -> Var:
        """Return the gradient by the initial rows of a state."""
        before = self.layout.rows_before[k]
        values = self.step.states[k]
        tails = {
            tap: rows[var][-tap:][::-1]
            for var, tap in zip(values, self.layout.taps[k], strict=True)
            if var in rows
        }
        if k in self.starts and k not in self.by_last:
            total = self.by[k][:before]
        elif tails:
            total = zeros_like(first)
        else:
            return self._none(values[0], first, k)
        for tap, tail in tails.items():
            if self.is_truncated:
                all_undone = elemwise("eq")(self.n_back, self.n_done)
                tail = elemwise("switch")(all_undone, tail, 0)
            total = inc_subtensor(total[before - tap :], tail)
        return total

    def _none(self, own: Var, outside: Var, *states: int) -> Var:
        """Return the gradient by an input of which the backward loop computes none."""
        reached = self.flows.through_steps([own], len(self.flows.outputs))
        for k in states:
            reached[k] = True
        if all(is_disconnected(g) for g, r in zip(self.by, reached, strict=False) if r):
            return disconnected_type.make_variable()
        return zeros_like(outside, None if _is_float(outside) else config.floatX)


def _last_row(rows: Var) -> Apply | None:
    """Return the Apply that adds to the last row of zeros, if a gradient by a state is its output.

    The gradient has one row before the first step.
    """
    whole = _added_to_zeros(rows, (slice(1, None, None),))
    if whole is None or whole.inputs[1].type.ndim != rows.type.ndim:
        return None
    return _added_to_zeros(whole.inputs[1], (-1,))


def _added_to_zeros(var: Var, index: tuple[int | slice, ...]) -> Apply | None:
    """Return the Apply that adds to a constant part of zeros, if a variable is its output."""
    node = var.owner
    if (
        node is None
        or not isinstance(node.op, IncSubtensor)
        or node.op.set_instead_of_inc
        or not is_zero(node.inputs[0])
    ):
        return None
    part = Subtensor(node.op.idx_list).make_node(node.inputs[0], *node.inputs[2:])
    return node if constant_index(part) == index else None


def without_unused(
    inputs: Parts[Var], given: Parts[Var], outputs: Parts[Var]
) -> tuple[Parts[Var], Parts[Var]]:
    """Return the inputs of a step, and what they are given, without those that it does not read.

    Only sequences and constants are left out.
    """
    read = set(ancestors(outputs.flat()))

    def kept(own: list[Var], outside: list[Var]) -> tuple[list[Var], list[Var]]:
        pairs = [(a, b) for a, b in zip(own, outside, strict=True) if a in read]
        return [a for a, _ in pairs], [b for _, b in pairs]

    rows, sequences = kept(inputs.sequences, given.sequences)
    own, constants = kept(inputs.constants, given.constants)
    return (
        replace(inputs, sequences=rows, constants=own),
        replace(given, sequences=sequences, constants=constants),
    )


def _computed_from(sources: Sequence[Var], outputs: Sequence[Var]) -> set[Var]:
    """Return the variables of a graph that depend on some of its inputs."""
    found = set(sources)
    if found:
        for node in io_toposort(sources, outputs):
            if not found.isdisjoint(node.inputs):
                found.update(node.outputs)
    return found


def _met_first(terms: Sequence[Var], wanted: set[Var], stop: Sequence[Var]) -> list[Var]:
    """Return the variables of ``wanted`` that terms are computed from, not through each other.

    stop: variables through which they are not looked for.
    """
    found = dict.fromkeys(
        var for var in ancestors(terms, blockers=[*wanted, *stop]) if var in wanted
    )
    return [var for var in found if var not in stop]


# --- R-operator -----------------------------------------------------------------------------------


def in_direction(op: Scan, inputs: Sequence[Var], points: Sequence[Var | None]) -> list[Var | None]:
    """Return the derivatives of the outputs of a loop in a direction of its inputs.

    points: the direction of each input, or None.
    """
    kept = op.layout.last
    if kept:
        found = in_direction(op.with_all_rows(), inputs, points)
        return [g[-kept[k] :] if g is not None and k in kept else g for k, g in enumerate(found)]
    layout, step, flows = op.layout, op.step_inputs, _Flows(op)
    given, moved = layout.loop_inputs(inputs[1:]), layout.loop_inputs(points[1:])
    n_outputs = len(flows.outputs)
    moving = {k for k, (point,) in enumerate(moved.states) if _moves(point, given.states[k][0])}
    directions: dict[Var, Var] = {}
    for own, outside, point in [
        *zip(step.sequences, given.sequences, moved.sequences, strict=True),
        *zip(step.constants, given.constants, moved.constants, strict=True),
    ]:
        if _moves(point, outside):
            directions[own] = own.type.make_variable()
    sources = [*directions, *(var for k in moving for var in step.states[k])]
    reached = flows.through_steps(sources, n_outputs)
    moving |= {k for k in range(len(step.states)) if reached[k] and _is_float(op.outputs[k])}
    if not directions and not moving:
        return [None] * len(op.layout.loop_outputs(op.outputs).flat())
    for k in sorted(moving):
        directions.update((var, var.type.make_variable()) for var in step.states[k])
    results = [
        k for k in range(len(step.states), n_outputs) if reached[k] and _is_float(op.outputs[k])
    ]
    states = sorted(moving)
    with thread_flags(compute_test_value="off"):
        found = Rop(
            [op.outputs[k] for k in (*states, *results)], list(directions),
            list(directions.values()), disconnected_outputs="ignore",
        )  # fmt: skip
        found = [_typed(g, op.outputs[k]) for k, g in zip((*states, *results), found, strict=True)]
    new = op.step_outputs
    along = Parts(
        sequences=[*step.sequences, *(directions[v] for v in step.sequences if v in directions)],
        states=[*step.states, *([directions[v] for v in step.states[k]] for k in states)],
        results=[],
        objects=step.objects,
        constants=[*step.constants, *(directions[v] for v in step.constants if v in directions)],
        condition=[],
    )
    outside = Parts(
        sequences=[
            *given.sequences,
            *(p for v, p in zip(step.sequences, moved.sequences, strict=True) if v in directions),
        ],
        states=[
            *given.states,
            *([_point(moved.states[k][0], given.states[k][0])] for k in states),
        ],
        results=[],
        objects=given.objects,
        constants=[
            *given.constants,
            *(p for v, p in zip(step.constants, moved.constants, strict=True) if v in directions),
        ],
        condition=[],
    )
    computed = Parts(
        sequences=[],
        states=[
            *new.states,
            *([g] for g in found[: len(states)]),
        ],
        results=found[len(states) :],
        objects=new.objects,
        constants=[],
        condition=new.condition,
    )
    along, outside = without_unused(along, outside, computed)
    taps = [*layout.taps, *(layout.taps[k] for k in states)]
    done = op.like(along, computed, taps, "rop_of").repeat(inputs[0], outside)
    derivatives: list[Var | None] = [None] * (n_outputs + layout.objects)
    for k, (rows,) in zip(states, done.states[len(step.states) :], strict=True):
        derivatives[k] = rows
    for k, rows in zip(results, done.results, strict=True):
        derivatives[k] = rows
    return derivatives


def _moves(point: Var | None, var: Var) -> bool:
    return point is not None and not is_disconnected(point) and _is_float(var)


def _point(point: Var | None, var: Var) -> Var:
    """Return a direction of a variable, zero if none is given."""
    return point if point is not None and _moves(point, var) else zeros_like(var)


def _is_float(var: Var) -> bool:
    return getattr(var.type, "dtype", None) in dtypes.CONTINUOUS


def _lengths(var: Var) -> list[Var]:
    return [shape_i_op(d)(var) for d in range(getattr(var.type, "ndim", 0))]


def _row_type(rows: Var) -> TensorType:
    return tensor_type(rows.type.dtype, rows.type.broadcastable[1:])


def _typed(value: Var, like: Var) -> Var:
    """Return a value as a variable of the type of another, of as many dimensions."""
    converted: Var = like.type.filter_variable(cast(value, like.type.dtype))
    return converted
