"""The plain VM: runs thunks in Python. It specifies what the compiled VM does."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from functools import cache
from typing import Any

import numpy as np

from opwise.graph import upcalls
from opwise.graph.apply import Apply
from opwise.graph.type import Type
from opwise.graph.variable import Variable
from opwise.linkers import opwise_c
from opwise.linkers.opwise_c import PythonVM
from opwise.linkers.program import Choice, Program
from opwise.linkers.storage import Storage
from opwise.linkers.userops.python import PythonCode, python_code
from opwise.tensor.ifelse import copied

AnyVM = opwise_c.VM | PythonVM


class Thunk:
    """Runs one Apply on the storages of its inputs and outputs.

    It has an attribute ``cthunk`` if no Python code runs for the Apply.
    """

    #: Theano's name for thunks that may ask for inputs that are not computed yet: none does
    lazy = False

    def __init__(self, node: Apply, inputs: Sequence[Storage], outputs: Sequence[Storage]) -> None:
        self.node = node
        self.inputs = inputs
        self.outputs = outputs

    def __call__(self) -> None:
        raise NotImplementedError


class ObjectsThunk(Thunk):
    """A thunk whose code reads and writes Python objects, which it checks."""

    def __call__(self) -> None:
        values = [storage[0] for storage in self.inputs]
        for value, var in zip(values, self.node.inputs, strict=True):
            if value is None and hasattr(var.type, "numpy_dtype") and not self.node.op.accepts_none:
                raise ValueError("expected an ndarray, not None")
        self.run(values)
        for i, (storage, var) in enumerate(zip(self.outputs, self.node.outputs, strict=True)):
            if hasattr(var.type, "numpy_dtype"):
                storage[0] = self._checked(storage[0], var.type)
                if not storage[0].flags.writeable and not self.node.op.view_map.get(i):
                    storage[0] = np.array(storage[0])  # what comes after may overwrite it

    def run(self, values: list[Any]) -> None:
        """Compute the outputs from the values of the inputs."""
        raise NotImplementedError

    def _checked(self, value: Any, type_: Type) -> Any:
        """Return a result as an array; raise unless it has the declared dtype and dimensions."""
        if value is None:
            raise ValueError(f"{self.node.op} did not compute its output")
        if isinstance(value, np.generic):
            value = np.asarray(value)
        if not isinstance(value, np.ndarray):
            raise ValueError(f"expected an ndarray, not {value!r}")
        if value.dtype != type_.numpy_dtype or value.ndim != type_.ndim:
            raise TypeError(
                f"expected an array of dtype {type_.dtype} and {type_.ndim} dimensions, got dtype "
                f"{value.dtype} and shape {value.shape}"
            )
        return value


class PerformThunk(ObjectsThunk):
    """Calls ``perform``, or what runs in its place (``code``)."""

    def __init__(
        self,
        node: Apply,
        inputs: Sequence[Storage],
        outputs: Sequence[Storage],
        code: PythonCode | None = None,
    ) -> None:
        super().__init__(node, inputs, outputs)
        self.perform = code or python_code(node)

    def run(self, values: list[Any]) -> None:
        self.perform(self.node, values, self.outputs)


class ChoiceThunk(ObjectsThunk):
    """Hands over the values of the branch that is taken.

    handed_over: see ``program.handed_over``.
    """

    def __init__(
        self,
        node: Apply,
        inputs: Sequence[Storage],
        outputs: Sequence[Storage],
        handed_over: Sequence[bool],
    ) -> None:
        super().__init__(node, inputs, outputs)
        self.handed_over = handed_over

    def run(self, values: list[Any]) -> None:
        op = self.node.op
        self._check(0, values)
        branch = op.branches[0 if values[0] else 1]
        for k, (storage, i) in enumerate(zip(self.outputs, branch, strict=True)):
            self._check(i, values)
            is_shared = self.handed_over[i] or i in op.view_map.get(k, ())
            storage[0] = values[i] if is_shared else copied(values[i])

    def _check(self, i: int, values: list[Any]) -> None:
        """Raise ValueError if an input that is needed is None in place of a tensor."""
        if values[i] is None and hasattr(self.node.inputs[i].type, "numpy_dtype"):
            raise ValueError("expected an ndarray, not None")


class ObjectThunk(ObjectsThunk):
    """Runs the C++ code of a user's Op."""

    def __init__(
        self,
        node: Apply,
        inputs: Sequence[Storage],
        outputs: Sequence[Storage],
        code: opwise_c.ObjectCode,
    ) -> None:
        super().__init__(node, inputs, outputs)
        self.cthunk = code

    def run(self, values: list[Any]) -> None:
        self.cthunk(list(self.inputs), list(self.outputs))


class CThunk(Thunk):
    """Runs the C step of one Apply, outside the compiled VM's loop."""

    def __init__(
        self,
        node: Apply,
        inputs: Sequence[Storage],
        outputs: Sequence[Storage],
        vm: opwise_c.VM,
    ) -> None:
        super().__init__(node, inputs, outputs)
        self.cthunk = vm

    def __call__(self) -> None:
        self.cthunk()


class Needed:
    """Says which steps one call of a program needs; asked before each step, in order.

    An alternative of a guard holds until a decision rules it out.
    """

    def __init__(self, program: Program, storages: Sequence[Storage]) -> None:
        self.guards = program.guards
        self.storages = storages
        self._ruled_out: set[int] = set()
        self._choices = iter(program.choices)
        self._choice = next(self._choices, None)

    def __call__(self, k: int) -> bool:
        """Make the decisions that are due before step ``k``; return whether it is needed."""
        while self._choice is not None and self._choice.at <= k:
            self._decide(self._choice)
            self._choice = next(self._choices, None)
        return not self.guards or not self._ruled_out.issuperset(self.guards[k])

    def _decide(self, choice: Choice) -> None:
        """Rule out the branch that is not taken, and both if nobody needs the result."""
        true, false = choice.branches
        condition = self.storages[choice.condition][0]
        if self._ruled_out.issuperset(choice.guard):
            self._ruled_out.update(choice.branches)
        elif condition is not None:  # without a value the step that reads it fails
            self._ruled_out.add(false if condition else true)


class PlainVM(PythonVM):
    """Runs a Program thunk by thunk.

    storages: by slot. thunks: by step. on_error: called as (step, exception, input values) when a
    step fails; it raises. allow_gc: whether values are released after their last use. wrapper:
    called as (step, Apply, thunk) in place of each thunk. before: called before the first thunk.
    """

    def __init__(
        self,
        program: Program,
        storages: Sequence[Storage],
        thunks: Sequence[Thunk],
        on_error: Callable[[int, BaseException, Sequence[Any]], None],
        allow_gc: bool = True,
        wrapper: Callable[[int, Apply, Thunk], None] | None = None,
        before: Callable[[], None] | None = None,
    ) -> None:
        self.program = program
        self.storages = storages
        self.thunks = thunks
        #: the thunks of each Apply: several if linkers run side by side
        self.thunk_groups: list[tuple[Thunk, ...]] = [(thunk,) for thunk in thunks]
        self.on_error = on_error
        self.allow_gc = allow_gc
        self.wrapper = wrapper
        self.before = before
        kept = {*program.inputs, *program.outputs, *program.constants}
        self._dies = [[storages[c] for c in step.dies] for step in program.steps]
        self.intermediate = [s for c, s in enumerate(storages) if c not in kept]
        self._ends = [storages[c] for c in program.ends if c not in kept]
        self.timing = opwise_c.Timing(len(thunks), _timer_ns)
        #: shows calls to a system profiler; None if there is none
        self.ranges: opwise_c.Ranges | None = None
        self._layouts: list[tuple[tuple[int, ...], tuple[int, ...]] | None]
        self._layouts = [None] * len(storages)

    @property
    def nodes(self) -> list[Apply]:
        """The Applys in the order in which they run."""
        return self.program.order

    @property
    def call_counts(self) -> list[int]:
        """How often each thunk ran, if it is timed."""
        return self.timing.call_counts()

    @property
    def call_times(self) -> list[float]:
        """How many seconds each thunk ran in all, if it is timed."""
        return self.timing.call_times()

    @property
    def storage_map(self) -> dict[Variable, Storage]:
        """{variable: [value]} after a call; None for values that were released.

        Without allow_gc all values of the last call are there.
        """
        return dict(zip(self.program.variables, self.storages, strict=True))

    def call(self) -> None:
        if self.ranges is None:
            self._run_all(self._run)
            return
        self.ranges.open_call()
        try:
            self._run_all(self._run_marked)
        finally:
            self.ranges.close_all()

    def start_marking(self, push: Any, pop: Any, label: bytes, labels: list[bytes]) -> None:
        """Show each call and thunk to a system profiler from now on; see ``opwise_c.Ranges``."""
        self.ranges = opwise_c.Ranges(push, pop, label, labels)

    def _run_marked(self, k: int, thunk: Thunk) -> None:
        assert self.ranges is not None
        self.ranges.open(k)
        try:
            self._run(k, thunk)
        finally:
            self.ranges.close()

    def _run_all(self, run: Callable[[int, Thunk], None]) -> None:
        timing = self.timing
        counted = timing.on and not timing.inside
        start = time.perf_counter_ns()
        if counted:
            timing.begin_call()
        self._bring_inputs()
        if self.before is not None:
            self.before()
        if timing.on:
            self._note_layouts((*self.program.inputs, *self.program.constants))
        self._run_steps(run)
        self._finish()
        if self.allow_gc:
            for storage in self._ends:
                storage[0] = None
        if counted:
            timing.end_call(start, time.perf_counter_ns() - start)

    def _run_steps(self, run: Callable[[int, Thunk], None]) -> None:
        """Run all thunks by ``run``."""
        needed = Needed(self.program, self.storages)
        for k in range(len(self.thunks)):
            if k == self.program.commit:
                self._save()
            if needed(k):
                self._run_step(k, run)
            else:
                self._skip(k)

    def _skip(self, k: int) -> None:
        """Leave the outputs of a step without values."""
        for slot in self.program.steps[k].outputs:
            self.storages[slot][0] = None
        if self.allow_gc:
            for storage in self._dies[k]:
                storage[0] = None

    def _run_step(self, k: int, run: Callable[[int, Thunk], None]) -> None:
        try:
            run(k, self.thunks[k])
        except BaseException as error:
            self._fail(k, error)
        if self.timing.on:
            self._note_layouts(self.program.steps[k].outputs)
        if self.allow_gc:
            for storage in self._dies[k]:
                storage[0] = None

    def _run(self, k: int, thunk: Thunk) -> None:
        if not self.timing.on:
            if self.wrapper is None:
                thunk()
            else:
                self.wrapper(k, thunk.node, thunk)
            return
        start = time.perf_counter_ns()
        if self.wrapper is None:
            thunk()
        else:
            self.wrapper(k, thunk.node, thunk)
        self._note(k, time.perf_counter_ns() - start)

    def _fail(self, k: int, error: BaseException) -> None:
        """Raise what step ``k`` raised; everything is as it was before the call."""
        values = self._values(k)
        self.undo()
        self.on_error(k, error, values)
        raise error

    def _values(self, k: int) -> list[Any]:
        """Return the values of the inputs of step ``k``, for the error message."""
        return [storage[0] for storage in self.thunks[k].inputs]

    def _finish(self) -> None:
        """Called when all thunks have run."""

    def _bring_inputs(self) -> None:
        """Copy inputs from devices to the host, and read-only ones that are to be overwritten."""
        for slot in self.program.inputs:
            storage = self.storages[slot]
            if not isinstance(storage[0], np.ndarray):
                storage[0] = upcalls.to_host(storage[0])
        for slot in self.program.destroyed:
            storage = self.storages[slot]
            if isinstance(storage[0], np.ndarray) and not storage[0].flags.writeable:
                storage[0] = np.array(storage[0])

    def _save(self) -> None:
        """Keep copies of the inputs that the steps from here on overwrite."""
        storages = [self.storages[slot] for slot in self.program.destroyed]
        self.overwritten = [(s, s[0], opwise_c.saved(s[0])) for s in storages]

    def free(self) -> None:
        """Forget every value between inputs and outputs."""
        if self.running:
            raise RuntimeError("The function is running: its memory cannot be freed")
        self.forget()

    def kept_bytes(self) -> int:
        """Return the bytes of the values kept between calls."""
        return sum(v[0].nbytes for v in self.intermediate if isinstance(v[0], np.ndarray))

    # --- what a profile reads, as of the compiled VM -----------------------------------------

    def layouts(self) -> list[tuple[tuple[int, ...], tuple[int, ...]] | None]:
        """Return (shape, strides in bytes) by slot, as of the last timed call; None: no array."""
        return list(self._layouts)

    def scratch_bytes(self) -> list[int]:
        """Return the bytes of memory that each step keeps for itself: none."""
        return [0] * len(self.thunks)

    def algorithms(self) -> list[tuple[str, str]]:
        """Return (algorithm, why) of each step: ("", ""), since Python code has one only."""
        return [("", "")] * len(self.thunks)

    def strip_rows(self) -> dict[int, tuple[int, int]]:
        """Return {slot: (rows, of how many)} of results that never exist as a whole: none do."""
        return {}

    def _note_layouts(self, slots: Iterable[int]) -> None:
        for slot in slots:
            value = self.storages[slot][0]
            if isinstance(value, np.ndarray | np.generic):
                self._layouts[slot] = value.shape, value.strides

    def repeats_inside(self, k: int) -> bool:
        """Return whether step ``k`` runs the VM of the graph inside its Op."""
        return isinstance(self.thunks[k], PerformThunk)

    def _note(self, k: int, ns: int) -> None:
        """Record the time of a run of a thunk."""
        self.timing.note(k, max(0, ns - self.timing.timer_ns))


@cache
def _timer_ns() -> int:
    """Return the least difference of two clock readings, in nanoseconds."""
    clock = time.perf_counter_ns
    return min(-(clock() - clock()) for _ in range(1000))
