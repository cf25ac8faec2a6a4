"""The plain virtual machine: runs thunks in Python. It specifies what the compiled one does."""

from __future__ import annotations

import copy
import time
from collections import Counter
from functools import cache

import numpy as np

from opwise.graph import hooks
from opwise.linkers.opwise_c import PythonVM
from opwise.profiling.histogram import bucket

#: how many calls are kept with the times of all thunks: of the first, and of the slowest others
_FIRST = _SLOWEST = 4


class Thunk:
    """Runs one Apply on storages: lists of one element each, by input and output.

    ``cthunk`` is set where no Python code runs for the Apply.
    """

    lazy = False

    def __init__(self, node, inputs, outputs):
        self.node = node
        self.inputs = inputs
        self.outputs = outputs


class PerformThunk(Thunk):
    """Calls ``perform``."""

    def __init__(self, node, inputs, outputs):
        super().__init__(node, inputs, outputs)
        self.perform = node.op.perform

    def __call__(self):
        values = [cell[0] for cell in self.inputs]
        for value, var in zip(values, self.node.inputs, strict=True):
            if value is None and hasattr(var.type, "numpy_dtype"):
                raise ValueError("expected an ndarray, not None")
        self.perform(self.node, values, self.outputs)
        for i, (cell, var) in enumerate(zip(self.outputs, self.node.outputs, strict=True)):
            if hasattr(var.type, "numpy_dtype"):
                cell[0] = self._checked(cell[0], var.type)
                if not cell[0].flags.writeable and not self.node.op.view_map.get(i):
                    cell[0] = np.array(cell[0])  # what comes after may overwrite it

    def _checked(self, value, type_):
        """Return a result as an array; it must have the dtype and dimensions that were declared."""
        if value is None:
            raise ValueError(f"{self.node.op} did not compute its output")
        if isinstance(value, np.generic):
            value = np.asarray(value)
        if not isinstance(value, np.ndarray):
            raise TypeError(f"expected an ndarray, not {value!r}")
        if value.dtype != type_.numpy_dtype or value.ndim != type_.ndim:
            raise TypeError(
                f"expected an array of dtype {type_.dtype} and {type_.ndim} dimensions, got dtype "
                f"{value.dtype} and shape {value.shape}"
            )
        return value


class CThunk(Thunk):
    """Runs the C step of one Apply, outside the compiled machine's loop."""

    def __init__(self, node, inputs, outputs, machine):
        super().__init__(node, inputs, outputs)
        self.cthunk = machine

    def __call__(self):
        self.cthunk()


class PlainVM(PythonVM):
    """Runs a Program thunk by thunk.

    storages: one-element lists by cell. wrapper: called as (i, node, thunk) instead of the thunk,
    where a linker wraps. on_error: called as (step, exception, input values); it raises. before:
    called once, before the first thunk.
    """

    def __init__(
        self, program, storages, thunks, on_error, allow_gc=True, wrapper=None, before=None
    ):
        self.program = program
        self.storages = storages
        self.thunks = thunks
        #: the thunks of each Apply: several where linkers run side by side
        self.thunk_groups = [(thunk,) for thunk in thunks]
        self.on_error = on_error
        self.allow_gc = allow_gc
        self.wrapper = wrapper
        self.before = before
        kept = {*program.inputs, *program.outputs, *program.constants}
        self._dies = [[storages[c] for c in step.dies] for step in program.steps]
        self.intermediate = [s for c, s in enumerate(storages) if c not in kept]
        self._ends = [storages[c] for c in program.ends if c not in kept]
        self.timed = self.ignoring = False
        self._marks = None
        self._layouts = [None] * len(storages)
        self.reset_timing()

    def call(self):
        if self._marks is None:
            self._run_all(self._run)
        else:
            self._run_marked()

    def start_marking(self, push, pop, label, labels):
        """Push a range for each call and each thunk from now on, and pop it at its end.

        push, pop: C functions, of ctypes. label: that of a call; labels: of thunks; bytes.
        """
        self._marks = push, pop, label, labels

    def _run_marked(self):
        push, pop, label, labels = self._marks

        def run(k, thunk):
            push(labels[k])
            try:
                self._run(k, thunk)
            finally:
                pop()

        push(label)
        try:
            self._run_all(run)
        finally:
            pop()

    def _run_all(self, run):
        start = time.perf_counter_ns()
        self._bring_inputs()
        if self.before is not None:
            self.before()
        if self.timed:
            self._note_layouts((*self.program.inputs, *self.program.constants))
        self._run_steps(run)
        self._finish()
        if self.allow_gc:
            for cell in self._ends:
                cell[0] = None
        if self.timed:
            elapsed = time.perf_counter_ns() - start
            self.total_ns += elapsed
            self.first_ns = self.first_ns or elapsed
            self.calls += 1
            self._keep(start, elapsed)
            if self.ignoring:
                self.ignoring = False
                self.reset_timing()

    def _run_steps(self, run):
        """Run all thunks by ``run``."""
        for k in range(len(self.thunks)):
            if k == self.program.commit:
                self._save()
            self._run_step(k, run)

    def _run_step(self, k, run):
        try:
            run(k, self.thunks[k])
        except BaseException as error:
            self._fail(k, error)
        if self.timed:
            self._note_layouts(self.program.steps[k].outputs)
        if self.allow_gc:
            for cell in self._dies[k]:
                cell[0] = None

    def _run(self, k, thunk):
        if not self.timed:
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

    def _fail(self, k, error):
        """Raise what step ``k`` raised; everything is as it was before the call."""
        values = self._values(k)
        self.undo()
        self.on_error(k, error, values)
        raise error

    def _values(self, k):
        """Return the values of the inputs of step ``k``, for the error message."""
        return [cell[0] for cell in self.thunks[k].inputs]

    def _finish(self):
        """Called when all thunks have run."""

    def _bring_inputs(self):
        """Bring inputs here from where they are; those to be overwritten that must not be are
        copied."""
        for cell in self.program.inputs:
            storage = self.storages[cell]
            if not isinstance(storage[0], np.ndarray):
                storage[0] = hooks.to_host(storage[0])
        for cell in self.program.destroyed:
            storage = self.storages[cell]
            if isinstance(storage[0], np.ndarray) and not storage[0].flags.writeable:
                storage[0] = np.array(storage[0])

    def _save(self):
        """Keep copies of the inputs that the steps from here on overwrite."""
        storages = [self.storages[cell] for cell in self.program.destroyed]
        self.overwritten = [(s, s[0], copy.deepcopy(s[0])) for s in storages]

    def free(self):
        """Forget every value between inputs and outputs."""
        if self.running:
            raise RuntimeError("The function is running: its memory cannot be freed")
        self.forget()

    def kept_bytes(self):
        """Return the bytes of the values kept between calls."""
        return sum(v[0].nbytes for v in self.intermediate if isinstance(v[0], np.ndarray))

    # --- what a profile reads, as in the compiled machine ---------------------------------------

    def layouts(self):
        """Return (shape, strides in bytes) by cell, as of the last timed call; None: no array."""
        return list(self._layouts)

    def scratch_bytes(self):
        """Return the bytes of memory that each step keeps for itself: none."""
        return [0] * len(self.thunks)

    def _note_layouts(self, cells):
        for cell in cells:
            value = self.storages[cell][0]
            if isinstance(value, np.ndarray | np.generic):
                self._layouts[cell] = value.shape, value.strides

    def start_timing(self, ignore_first_call=False):
        """Record the time of every thunk from now on, or from the second call on."""
        self.timed, self.ignoring = True, ignore_first_call

    def reset_timing(self):
        """Forget all recorded times."""
        self._times = [_Times() for _ in self.thunks]
        self._now = [0] * len(self.thunks)
        self._first, self._slowest = [], []
        self.calls = self.total_ns = self.first_ns = 0

    @property
    def timer_ns(self):
        """What it costs to time a thunk, which is not in the times of thunks, nanoseconds."""
        return _timer_ns()

    def _note(self, k, ns):
        self._now[k] = ns = max(0, ns - _timer_ns())
        self._times[k].add(ns)

    def _keep(self, start, elapsed):
        """Keep the times of the call that has ended if it is one of the first or the slowest."""
        call = elapsed, self.calls, start, list(self._now)
        if self.calls <= _FIRST:
            self._first.append(call)
        elif len(self._slowest) < _SLOWEST:
            self._slowest.append(call)
        elif elapsed > min(self._slowest)[0]:
            self._slowest[self._slowest.index(min(self._slowest))] = call

    def timing(self):
        """Return (count, sum, least, most, ((bucket, count), ...)) of each step, nanoseconds."""
        return [
            (t.count, t.sum, t.least, t.most, tuple(sorted(t.histogram.items())))
            for t in self._times
        ]

    def detail(self):
        """Return (number, start, [nanoseconds by step]) of the first calls and the slowest."""
        return sorted(call[1:] for call in (*self._first, *self._slowest))


class _Times:
    """The times of one step: runs, sum, least, most, and a histogram."""

    def __init__(self):
        self.count = self.sum = self.least = self.most = 0
        self.histogram = Counter()

    def add(self, ns):
        self.least = min(self.least, ns) if self.count else ns
        self.most = max(self.most, ns)
        self.count += 1
        self.sum += ns
        self.histogram[bucket(ns)] += 1


@cache
def _timer_ns():
    """Return the least that two readings of the clock differ by, in nanoseconds."""
    clock = time.perf_counter_ns
    return min(-(clock() - clock()) for _ in range(1000))
