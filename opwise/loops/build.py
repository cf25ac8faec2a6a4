"""``scan``: builds a loop from a function that builds one step."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from operator import index
from typing import Any

import numpy as np

from opwise.compile.shared import SharedVariable
from opwise.compile.updates import OrderedUpdates
from opwise.config import config
from opwise.errors import MissingInputError, NotScalarConstantError
from opwise.graph.traversal import ancestors, clone_replace, io_toposort
from opwise.graph.variable import Constant, Var, Variable, get_test_value
from opwise.loops.layout import Parts, as_list
from opwise.loops.op import Scan
from opwise.loops.returned import Returned, parse
from opwise.scalar import dtypes
from opwise.tensor import (
    as_tensor_variable,
    get_scalar_constant_value,
    patternbroadcast,
    shape_padleft,
    unbroadcast,
)
from opwise.tensor.advanced_subtensor import (
    AdvancedIncSubtensor1,
    AdvancedSubtensor1,
    BaseAdvancedIncSubtensor,
    BaseAdvancedSubtensor,
)
from opwise.tensor.assertion import Assert
from opwise.tensor.elemwise import elemwise
from opwise.tensor.subtensor import IncSubtensor, Subtensor
from opwise.tensor.type import TensorType, tensor_type

#: Ops that raise an error for some values of their inputs, which branches guard
_MAY_FAIL = (
    Subtensor, IncSubtensor, AdvancedSubtensor1, AdvancedIncSubtensor1, BaseAdvancedSubtensor,
    BaseAdvancedIncSubtensor, Assert,
)  # fmt: skip


def scan(
    fn: Callable[..., Any],
    sequences: Any = None,
    outputs_info: Any = None,
    non_sequences: Any = None,
    n_steps: Any = None,
    truncate_gradient: int = -1,
    go_backwards: bool = False,
    mode: Any = None,
    name: str | None = None,
    profile: Any = False,
    allow_gc: bool | None = None,
    strict: bool = False,
    return_list: bool = False,
) -> tuple[Any, OrderedUpdates]:
    """Repeat a step and collect what the steps compute.

    fn: builds a step. It is called once, with variables for: the rows of the sequences, in order of
    their taps; the earlier values of the outputs, in order of theirs; ``non_sequences``. It returns
    the outputs (a variable or a list), then updates of shared variables (a dict or pairs), then
    ``until(condition)``; each may be left out.
    sequences: a variable or a list. The step reads one row of each, that of its number. A dict
    ``{'input': variable, 'taps': [-1, 0, 1]}`` lets it read the rows before or behind it too.
    outputs_info: for each output how the steps read earlier values of it. None: not at all. A
    variable: the value before the first step; each step reads that of the step before. A dict
    ``{'initial': variable, 'taps': [-2, -1]}``: values of the steps one and two steps back; the
    variable then has one row for each value before the first step.
    non_sequences: what all steps read. Other variables that the step needs, shared ones too, are
    found without being listed; with ``strict`` shared variables must be listed.
    n_steps: the number of steps (default: that of rows of the shortest sequence).
    truncate_gradient: the number of steps, from the last one back, through which gradients flow; -1
    for all. go_backwards: read the sequences from their last row to the first.
    mode: compiles the step (default: the mode of the function around it). name: of the loop in
    profiles and messages. return_list: return a list even of one output. profile: record the step
    in a profile of its own: True, a name, or a ProfileStats. allow_gc: release intermediate values
    during each step, instead of at the end of the loop (default: the flag scan.allow_gc).

    Returns (outputs, updates). An output has one row for each step. The updates are those of shared
    variables after the last step: pass them to ``function``.

    Raises ValueError for invalid arguments, and for outputs whose dtype or number of dimensions
    differs from that of the initial value; KeyError for a sequence that is a dict without 'input';
    IndexError for sequences without rows; TypeError for taps and numbers of steps that are not
    whole; MissingInputError for shared variables that strict=True forbids.
    """
    return LoopBuilder(
        fn, sequences, outputs_info, non_sequences, n_steps, go_backwards, strict, return_list,
        {"name": name, "truncate_gradient": truncate_gradient, "mode": mode, "profile": profile,
         "allow_gc": allow_gc},
    ).build()  # fmt: skip


# --- the arguments --------------------------------------------------------------------------------


@dataclass
class _Rows:
    """What a step reads of a sequence at one tap."""

    #: the rows outside, the first one for the first step
    whole: Var
    #: the row of the first step, in place of the loop
    first: Var
    #: the row inside
    row: Var


@dataclass
class State:
    """An output of which steps read earlier values."""

    #: the values before the first step, by row
    initial: Var
    #: how many steps back the values are, in the order in which the step takes them
    taps: list[int]
    #: these values in the first step, and inside
    first: list[Var]
    values: list[Var]
    #: the shared variable that it is the value of, or None
    shared: SharedVariable | None = None


def _sequences(given: Any, go_backwards: bool) -> list[_Rows]:
    found = []
    for each in as_list(given):
        taps = as_list(each.get("taps")) if isinstance(each, Mapping) else []
        if isinstance(each, Mapping) and "input" not in each:
            raise KeyError(f"a sequence given as a dict has its variable under 'input': {each}")
        whole = as_tensor_variable(each["input"] if isinstance(each, Mapping) else each)
        found += _taps_of(whole, [_tap(t, each) for t in taps] or [0], go_backwards)
    return found


def _tap(given: Any, where: Any) -> int:
    """Return a tap as an int; where: the argument that has it."""
    try:
        return index(given)
    except TypeError:
        raise TypeError(
            f"taps are whole numbers of steps, not {given!r}, in the argument {where} of scan: "
            "write taps=[-2, -1]"
        ) from None


def _taps_of(whole: Var, taps: Sequence[int], go_backwards: bool) -> list[_Rows]:
    """Return what a step reads of a sequence at each tap."""
    if whole.type.ndim == 0:
        raise IndexError(
            f"the sequence {whole} has no rows: it is a scalar. Pass what is the same in all steps "
            "of scan as one of non_sequences"
        )
    lowest, highest = min(0, *taps), max(0, *taps)
    found = []
    for tap in taps:
        start, cut = tap - lowest, highest - tap
        rows = whole[start:-cut] if cut else whole[start:]
        if go_backwards:
            rows = rows[::-1]
        first = whole[start]
        found.append(_Rows(rows, first, _inside(first, _name(whole, tap))))
    return found


def _inside(var: Var, name: str | None) -> Var:
    """Return the variable of a step that stands for one outside."""
    own: Var = var.type.make_variable(name)
    if config.compute_test_value != "off":
        with contextlib.suppress(AttributeError):
            own.tag.test_value = get_test_value(var)
    return own


def _name(var: Var, tap: int) -> str | None:
    return None if var.name is None else f"{var.name}[t{tap:+d}]" if tap else f"{var.name}[t]"


def _state(given: Any) -> State | None:
    """Return the state that an element of outputs_info describes, or None."""
    if given is None:
        return None
    info = given if isinstance(given, Mapping) else {"initial": given}
    if info.get("return_steps") is not None:
        raise ValueError(
            "Using `return_steps` has been deprecated. Select the rows that you need from the "
            "outputs: the others are then not kept."
        )
    taps, initial = info.get("taps"), info.get("initial")
    if taps is None and initial is None:
        return None
    if initial is None:
        raise ValueError(
            "If you are using slices of an output you need to provide a initial state for it: "
            f"{dict(info)} has no 'initial'"
        )
    taps = [-1] if taps is None else [_tap(tap, dict(info)) for tap in as_list(taps)]
    if len(taps) > len(set(taps)):
        raise ValueError(f"All the taps must be different in `outputs_info`: {dict(info)}")
    if any(tap >= 0 for tap in taps):
        raise ValueError(f"All the tap values must be smaller than 0, as in [-2, -1]: {dict(info)}")
    initial = as_tensor_variable(initial)
    if taps == [-1]:
        return State(
            unbroadcast(shape_padleft(initial), 0), [1], [initial],
            [_inside(initial, _name(initial, -1))],
        )  # fmt: skip
    if initial.type.ndim == 0:
        raise IndexError(
            f"the initial values of an output with the taps {taps} are rows, one for each step "
            f"before the first; {initial} is a scalar"
        )
    before = -min(taps)
    rows = initial[:before]
    first = [rows[before + tap] for tap in taps]
    values = [_inside(value, _name(initial, tap)) for value, tap in zip(first, taps, strict=True)]
    return State(rows, [-tap for tap in taps], first, values)


def _fixed_number(n_steps: Any) -> int | None:
    """Return the number of steps if it is known now, None if it is not or is not given."""
    if n_steps is None:
        return None
    given = as_tensor_variable(n_steps)
    if given.type.ndim:
        raise TypeError(f"n_steps of scan is one whole number, not {n_steps!r} ({given.type})")
    try:
        number = get_scalar_constant_value(given)
    except NotScalarConstantError:
        number = None
    if given.type.dtype in dtypes.INTEGERS:
        return None if number is None else int(number)
    if number is None or hasattr(n_steps, "dtype"):
        raise ValueError(f" n_steps must be an int. dtype provided is {given.type.dtype}")
    try:
        whole = int(number)
    except (ValueError, OverflowError) as error:
        raise type(error)(f"n_steps of scan is {n_steps}: {error}") from None
    if whole != number:
        raise TypeError(f"n_steps of scan is a whole number, not {n_steps!r}: round it before")
    return whole


# --- building -------------------------------------------------------------------------------------


class LoopBuilder:
    """Builds one loop. Arguments as of ``scan``."""

    def __init__(
        self,
        fn: Callable[..., Any],
        sequences: Any,
        outputs_info: Any,
        non_sequences: Any,
        n_steps: Any,
        go_backwards: bool,
        strict: bool,
        return_list: bool,
        settings: dict[str, Any],
    ):
        self.fn, self.strict, self.return_list, self.settings = fn, strict, return_list, settings
        self.fixed = _fixed_number(n_steps)
        self.sequences = _sequences(sequences, go_backwards)
        self.states = [_state(info) for info in as_list(outputs_info)]
        self.non_sequences = [
            var if isinstance(var, Variable) else as_tensor_variable(var)
            for var in as_list(non_sequences)
        ]
        self.n_steps = self._number_of_steps(n_steps)

    def _number_of_steps(self, given: Any) -> Var:
        if self.fixed is not None:
            return as_tensor_variable(np.int64(self.fixed))
        if given is not None:
            return as_tensor_variable(given).astype("int64")
        lengths = [rows.whole.shape[0] for rows in self.sequences]
        if not lengths:
            raise ValueError(
                "No information about the number of steps provided. Either provide a value for "
                "n_steps argument of scan or provide an input sequence"
            )
        self.settings["fits"] = True
        return reduce(elemwise("minimum"), lengths)

    def build(self) -> tuple[Any, OrderedUpdates]:
        """Return the outputs and updates of ``scan``."""
        once = self.fixed in (1, -1)
        states = [state for state in self.states if state is not None]
        returned = self._call(
            [rows.first if once else rows.row for rows in self.sequences],
            [v for state in states for v in (state.first if once else state.values)],
        )
        try:
            return self._over(parse(returned), once)
        except (ValueError, TypeError, AssertionError, MissingInputError) as error:
            name = self.settings["name"]
            loop = "the loop" if name is None else f"the loop {name!r}"
            error.add_note(f"The step of {loop} is built by {_described(self.fn)}.")
            raise

    def _over(self, returned: Returned, once: bool) -> tuple[Any, OrderedUpdates]:
        """Return the outputs and updates of a loop over a step; once: it is the only one."""
        if once:
            rows = [_as_row(out) for out in returned.outputs]
            return self._form(rows), OrderedUpdates(returned.updates)
        if not self.states:
            self.states = [None] * len(returned.outputs)
        if len(self.states) != len(returned.outputs):
            raise ValueError(
                "Please provide None as outputs_info for any output that does not feed back into "
                f"scan (i.e. it behaves like a map): the step returns {len(returned.outputs)} "
                f"outputs, and outputs_info has {len(self.states)} elements"
            )
        return self._loop(returned)

    def _call(self, rows: list[Var], earlier: list[Var]) -> Any:
        """Return what ``fn`` makes of a step's variables."""
        try:
            return self.fn(*rows, *earlier, *self.non_sequences)
        except TypeError as error:
            if error.__traceback__ is not None and error.__traceback__.tb_next is None:
                error.add_note(
                    f"scan calls the function of its step with {len(rows)} rows of sequences, "
                    f"{len(earlier)} earlier values of outputs and {len(self.non_sequences)} "
                    "non_sequences, in this order. Each initial value in outputs_info adds one "
                    "earlier value, or one for each of its taps."
                )
            raise

    def _form(self, outputs: list[Var]) -> Any:
        if len(outputs) == 1 and not self.return_list:
            return outputs[0]
        return outputs if outputs or self.return_list else None

    def _loop(self, returned: Returned) -> tuple[Any, OrderedUpdates]:
        """Return the outputs and the updates of the loop over a step."""
        outputs = [as_tensor_variable(out) for out in returned.outputs]
        updated = self._updated_variables([*outputs, *as_list(returned.condition)], returned)
        stands_for: dict[Var, Var] = {}
        states: list[tuple[State, Var]] = []
        for k, (state, out) in enumerate(zip(self.states, outputs, strict=True)):
            if state is not None:
                states.append((state, _fitted(state, out, k, stands_for)))
        objects: list[tuple[SharedVariable, Var, Var]] = []
        for var, new in updated.items():
            inside = var.type.make_variable(None if var.name is None else f"{var.name}_copy")
            stands_for[var] = inside
            if isinstance(var.type, TensorType):
                initial = unbroadcast(shape_padleft(var), 0)
                state = State(initial, [1], [var], [inside], shared=var)
                states.append((state, new))
            else:
                objects.append((var, inside, new))
        step_outputs = Parts(
            sequences=[],
            states=[[new] for _, new in states],
            results=[out for state, out in zip(self.states, outputs, strict=True) if state is None],
            objects=[new for _, _, new in objects],
            constants=[],
            condition=as_list(returned.condition),
        )
        rows = [rows.row for rows in self.sequences]
        values = [v for state, _ in states for v in state.values]
        varying = [*rows, *values, *stands_for]
        constants = self._constants(varying, step_outputs.flat())
        inside = {var: var.type.make_variable(var.name) for var in constants}
        flat = clone_replace(step_outputs.flat(), {**stands_for, **inside})
        step_inputs = Parts(
            sequences=rows,
            states=[state.values for state, _ in states],
            results=[],
            objects=[inside for _, inside, _ in objects],
            constants=list(inside.values()),
            condition=[],
        )
        given = Parts(
            sequences=[rows.whole[: self.n_steps] for rows in self.sequences],
            states=[[state.initial] for state, _ in states],
            results=[],
            objects=[var for var, _, _ in objects],
            constants=list(inside),
            condition=[],
        )
        taps = [state.taps for state, _ in states]
        op = Scan.of(step_inputs, step_outputs.with_values(flat), taps, **self.settings)
        done = op.repeat(self.n_steps, given)
        return self._collect(done, [state for state, _ in states], objects)

    def _updated_variables(
        self, outputs: Sequence[Var], returned: Returned
    ) -> dict[SharedVariable, Var]:
        """Return the shared variables that a step updates, and their next values."""
        found: dict[SharedVariable, Var] = {
            var: _as_update(var, new) for var, new in returned.updates.items()
        }
        pending = [*outputs, *found.values()]
        while pending:
            leaves = [
                var
                for var in ancestors(pending, blockers=self.non_sequences)
                if isinstance(var, SharedVariable) and var not in self.non_sequences
            ]
            pending = []
            for var in leaves:
                if var not in found and var.default_update is not None:
                    found[var] = _as_update(var, var.default_update)
                    pending.append(found[var])
        return found

    def _constants(self, varying: Sequence[Var], outputs: Sequence[Var]) -> list[Var]:
        """Return the variables outside that a step is given, each computed once before the loop.

        An index that only a branch reads, which may be out of bounds, stays inside.
        With strict=True shared variables must be among ``non_sequences``.
        """
        moving = set(varying)
        order = io_toposort([*varying, *self.non_sequences], outputs)
        needed = set(outputs)  # in every step, not only by a branch
        for node in reversed(order):
            if not needed.isdisjoint(node.outputs):
                lazy = {i for branch in node.op.branches for i in branch}
                needed.update(v for i, v in enumerate(node.inputs) if i not in lazy)
        for node in order:
            guarded = _may_fail(node.op) and needed.isdisjoint(node.outputs)
            if guarded or not moving.isdisjoint(node.inputs):
                moving.update(node.outputs)
        # a function that gets them as arguments must not find them unused
        found: dict[Var, None] = dict.fromkeys(v for v in self.non_sequences if v not in moving)
        for node in order:
            if not moving.isdisjoint(node.outputs):
                found.update((v, None) for v in node.inputs if v not in moving)
        found.update((out, None) for out in outputs if out not in moving)
        found = {v: None for v in found if not isinstance(v, Constant)}
        if self.strict:
            allowed = set(self.non_sequences)
            for var in ancestors(found, blockers=allowed):
                if isinstance(var, SharedVariable) and var not in allowed:
                    raise MissingInputError(
                        f"ScanOp is missing an input: {var!r}. Please pass this variable to the "
                        "scan's inner function. Do not forget to also pass it to the "
                        "`non_sequences` attribute of scan."
                    )
        return list(found)

    def _collect(
        self,
        done: Parts[Var],
        states: Sequence[State],
        objects: Sequence[tuple[SharedVariable, Var, Var]],
    ) -> tuple[Any, OrderedUpdates]:
        """Return the outputs of the loop in the order of ``fn``, and the updates."""
        updates = OrderedUpdates()
        rows = {}
        for state, (whole,) in zip(states, done.states, strict=True):
            if state.shared is not None:
                updates[state.shared] = whole[-1]
            rows[id(state)] = whole
        for (var, _, _), new in zip(objects, done.objects, strict=True):
            updates[var] = new
        results = iter(done.results)
        outputs = [
            self._of_result(k, next(results)) if s is None else self._of_state(k, s, rows[id(s)])
            for k, s in enumerate(self.states)
        ]
        return self._form(outputs), updates

    def _of_state(self, k: int, state: State, whole: Var) -> Var:
        """Return output k: the rows of a state; whole: those before the first step come first."""
        return whole[max(state.taps) :]

    def _of_result(self, k: int, rows: Var) -> Var:
        """Return output k, of which no step reads earlier values; rows: one for each step."""
        return rows


def _may_fail(op: Any) -> bool:
    """Return whether an Op raises an error for some values of its inputs, which branches guard."""
    if type(op) is Subtensor:  # parts of an array may be empty, but no step may be 0
        return not all(isinstance(i, slice) and i.step is None for i in op.idx_list)
    return isinstance(op, _MAY_FAIL)


def _described(fn: Callable[..., Any]) -> str:
    """Return the name of a function, and the line where it is defined."""
    code = getattr(fn, "__code__", None)
    where = "" if code is None else f' (File "{code.co_filename}", line {code.co_firstlineno})'
    return f"{getattr(fn, '__name__', fn)}{where}"


def _as_update(var: SharedVariable, new: Any) -> Var:
    """Return the next value of a shared variable as a variable of its type."""
    if not isinstance(var, SharedVariable) and isinstance(var.type, TensorType):
        raise TypeError(
            f"OrderedUpdates keys must inherit from SharedVariable: the step of scan updates {var}"
        )
    converted: Var = var.type.filter_variable(new)
    return converted


def _as_row(out: Var) -> Var:
    """Return an output of the only step as the only row."""
    if isinstance(out.type, TensorType):
        return unbroadcast(shape_padleft(out), 0)
    return out


def _fitted(state: State, new: Var, k: int, stands_for: dict[Var, Var]) -> Var:
    """Return the next value of a state as a variable of the type that all its values have.

    A length that only the initial value or only the next one is known to have is not part of that
    type; then ``state`` gets other variables, and ``stands_for`` what replaces the former ones.
    """
    was, now = state.values[0].type, new.type
    differs = (
        f"dtype {was.dtype}", f"dtype {now.dtype}", "This can happen if the inner function of scan "
        "results in an upcast or downcast: cast the initial state, or the result"
    )  # fmt: skip
    if was.ndim != now.ndim:
        differs = (
            f"{was.ndim} dimension(s)", f"{now.ndim} dimension(s)",
            "Give an initial state of the shape of the result",
        )  # fmt: skip
    if (was.dtype, was.ndim) != (now.dtype, now.ndim):
        initial, result, remedy = differs
        raise ValueError(
            "When compiling the inner function of scan the following error has been encountered: "
            f"The initial state (`outputs_info` in scan nomenclature) of variable {state.first[0]} "
            f"(argument number {k}) has {initial}, while the result of the inner function (`fn`) "
            f"has {result}. {remedy}."
        )
    pattern = tuple(a and b for a, b in zip(was.broadcastable, now.broadcastable, strict=True))
    if pattern != was.broadcastable:
        row = tensor_type(was.dtype, pattern)
        wider = [row.make_variable(value.name) for value in state.values]
        for value, other in zip(state.values, wider, strict=True):
            stands_for[value] = patternbroadcast(other, was.broadcastable)
        state.values = wider
        state.initial = patternbroadcast(state.initial, (False, *pattern))
    return patternbroadcast(new, pattern)
