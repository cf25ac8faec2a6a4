"""Repeats a step on a device: its VM, between copies of the rows that it reads and writes.

The step reads buffers that stay where they are, so that its CUDA graph serves all steps. One launch
before it copies the rows that it reads into these buffers, and one behind it copies what it has
computed into the rows that it writes. Nobody waits between steps.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from opwise.gpu.kernels import layouts, loop_rows
from opwise.gpu.kernels.kernel import THREADS, Layout
from opwise.gpu.kernels.loop_rows import RowsAt
from opwise.gpu.runtime.device import Device, DeviceArray, DeviceFunction
from opwise.gpu.runtime.graphs import CapturedGraph
from opwise.gpu.runtime.staging import Upload
from opwise.gpu.runtime.vm import DeviceVM
from opwise.graph.apply import Apply
from opwise.linkers.errors import note_step

#: a loop with a condition runs so many steps ahead of it, if that can be undone
_AHEAD = 16


@dataclass(eq=False)
class Rows:
    """Rows of an array on the device, one for each step.

    If there are less rows than steps, a later row takes the place of an earlier one.
    """

    array: DeviceArray
    #: the row of step 0
    first: int = 0

    def at(self, t: int) -> DeviceArray:
        """Return the row of a step."""
        return self.array[(t + self.first) % len(self.array)]

    @property
    def place(self) -> RowsAt:
        """Where the rows lie."""
        array = self.array
        return RowsAt(array.data.ptr, array.strides[0], len(array), self.first)

    def in_order(self, written: int) -> DeviceArray:
        """Return the rows that are left of those written, the oldest one first."""
        kept = len(self.array)
        if written <= kept:
            return self.array[:written]
        oldest = written % kept
        if not oldest:
            return self.array
        ordered = self.array.copy()
        ordered[: kept - oldest] = self.array[oldest:]
        ordered[kept - oldest :] = self.array[:oldest]
        return ordered


@dataclass(eq=False)
class Written:
    """An output of a step, and the rows that take its values."""

    #: of messages: "state 0"
    what: str
    #: None for a result before its shape is known
    rows: Rows | None
    #: position of the buffer that it may overwrite: that of a state of which one row is kept
    buffer: int | None = None
    #: how many of the last rows of a result are kept; None: all
    kept: int | None = None


class RepeatedStep:
    """A step that was compiled for the device."""

    def __init__(self, vm: DeviceVM) -> None:
        self.vm, self.device = vm, vm.device
        program = vm.program
        self._inputs = [vm.storages[c] for c in program.inputs]
        self._outputs = [vm.storages[c] for c in program.outputs]
        #: where the step reads rows, kept between calls: graphs know these addresses
        self._buffers: list[DeviceArray] = []
        self._tables = Upload(self.device), Upload(self.device)

    def __call__(
        self,
        n_steps: int,
        constants: Sequence[Any],
        begin: Callable[[], tuple[Sequence[Rows], Sequence[Written]]],
        until: bool,
        misfit: Callable[..., Exception],
        node: Apply,
    ) -> list[DeviceArray]:
        """Run the steps; return the rows of their outputs.

        constants: inputs of the step. begin: returns its other inputs, and its outputs, before the
        first step. until: whether the step has one more output, the condition that ends the loop.
        misfit: (step, name, shape, what, shape before) -> the error about a shape that changes.
        node: the loop. n_steps: at least 1.
        """

        def run(call: Callable[[], None]) -> list[DeviceArray]:
            reads, writes = begin()
            self._give(reads, constants)
            return _Call(self, n_steps, reads, writes, until, misfit, node).run(call)

        try:
            try:
                found = run(self.vm.enqueue)
            except Exception:
                if not self.vm.take_error_flags():
                    raise
            else:
                if not self.vm.take_error_flags():
                    return found
            # only step by step is it known where a kernel reported an error, and on which inputs
            return run(self.vm.run_checked)
        finally:
            self._forget()

    def first_values(self, reads: Sequence[Rows], constants: Sequence[Any]) -> list[Any]:
        """Return what a step computes from zeros."""
        try:
            self._give(reads, constants)
            for buffer in self._buffers:
                buffer[...] = 0
            self.vm.run_checked()
            return self.values()
        finally:
            self._forget()

    def _give(self, reads: Sequence[Rows], constants: Sequence[Any]) -> None:
        """Give the step its inputs: buffers for rows, and what does not change."""
        shapes = [(rows.array.shape[1:], rows.array.dtype) for rows in reads]
        if shapes != [(buffer.shape, buffer.dtype) for buffer in self._buffers]:
            self._buffers = [self.device.empty(*shape) for shape in shapes]
        for storage, value in zip(self._inputs, (*self._buffers, *constants), strict=True):
            storage[0] = value

    def _forget(self) -> None:
        for storage in (*self._inputs, *self._outputs):
            storage[0] = None

    def values(self) -> list[DeviceArray]:
        """Take the outputs of the last step."""
        values = []
        for storage in self._outputs:
            value, storage[0] = storage[0], None
            values.append(value if self.device.holds(value) else self.device.upload(value))
        return values

    @property
    def buffers(self) -> list[DeviceArray]:
        """What the step reads rows from."""
        return self._buffers

    @cached_property
    def _copy_rows(self) -> DeviceFunction:
        kernel = loop_rows.copy_rows()
        return self.device.functions([kernel])[kernel.name]

    def copying(self, which: int, copies: list[tuple[Rows, Rows]]) -> Callable[[int], None]:
        """Return a function that copies the rows of a step. which: 0 before it, 1 behind it."""
        device = self.device
        given = [
            (source.place, target.place, source.array[0].nbytes)
            for source, target in copies
            if source.array[0].nbytes
        ]
        if not given:
            return lambda t: None
        function = self._copy_rows
        table = self._tables[which](np.array(loop_rows.table_of(given), np.int64))
        grid = loop_rows.grid_for(given, device.limits)

        count = np.int32(len(given))

        def copy(t: int) -> None:
            args = np.uint64(table.data.ptr), count, np.int64(t)
            device.launch(function, grid, (THREADS, 1), args)

        return copy


class _Call:
    """The steps of one call of a loop."""

    def __init__(
        self, step: RepeatedStep, n_steps: int, reads: Sequence[Rows], writes: Sequence[Written],
        until: bool, misfit: Callable[..., Exception], node: Apply,
    ) -> None:  # fmt: skip
        self.step, self.n_steps, self.misfit, self.node = step, n_steps, misfit, node
        self.device = step.device
        self.reads, self.writes = list(reads), list(writes)
        #: the condition after each step; None before the first one, and without a condition
        self.ends: Rows | None = None
        self.until = until
        #: outputs whose last value lies in the buffer that the next step reads, not in a row
        self.held: set[int] = set()

    def run(self, call: Callable[[], None]) -> list[DeviceArray]:
        """Run the steps by ``call``; return the rows of their outputs."""
        done = self._run_steps(call)
        self._leave_buffers(done)
        return [out.rows.in_order(out.rows.first + done) for out in self.writes if out.rows]

    def _run_steps(self, call: Callable[[], None]) -> int:
        """Run the steps by ``call``; return how many it took."""
        t = 0
        while t < self.n_steps:
            self._run_one(t, call)
            t += 1
            graph = self.step.vm.whole_graph()
            if self._has_ended(t - 1, t):
                break
            if graph is not None and t < self.n_steps:
                return self._run_graph(graph, t)
        return t

    def _run_one(self, t: int, call: Callable[[], None]) -> None:
        held = {self.writes[k].buffer for k in self.held}
        for i, (buffer, rows) in enumerate(zip(self.step.buffers, self.reads, strict=True)):
            if i not in held:
                buffer[...] = rows.at(t)
        try:
            call()
        except BaseException as error:
            note_step(error, self.node, t)
            raise
        self.values = self.step.values()
        self.held.clear()
        if self.until:
            if self.ends is None:
                self.ends = Rows(self.device.empty((self.n_steps,), self.values[-1].dtype))
            self.ends.at(t)[...] = self.values[-1]
        for k, (out, value) in enumerate(zip(self.writes, self.values, strict=False)):
            if out.rows is None:
                shape = (min(self.n_steps, out.kept or self.n_steps), *value.shape)
                out.rows = Rows(self.device.empty(shape, value.dtype))
            before = out.rows.array.shape[1:]
            if value.shape != before:
                raise self.misfit(t, str(self.node.op), value.shape, out.what, before)
            if out.buffer is not None and _is_same(value, self.step.buffers[out.buffer]):
                self.held.add(k)
            else:
                out.rows.at(t)[...] = value

    def _has_ended(self, start: int, stop: int) -> bool:
        """Return whether the condition holds after one of these steps; ``ended`` is the first."""
        if self.ends is None:
            return False
        found = self.device.download(self.ends.array[start:stop]) != 0
        self.ended = start + int(found.argmax()) + 1
        return bool(found.any())

    def _run_graph(self, graph: CapturedGraph, t: int) -> int:
        """Run the steps from ``t`` on by the graph of the step; return how many there were."""
        held = {self.writes[k].buffer for k in self.held}
        before = self.step.copying(0, [
            (rows, Rows(buffer[None]))
            for i, (buffer, rows) in enumerate(zip(self.step.buffers, self.reads, strict=True))
            if i not in held
        ])  # fmt: skip
        written = [out.rows for out in self.writes]
        moved, copies = [], []  # a value with gaps is first copied to an array without
        for k, (value, rows) in enumerate(zip(self.values, (*written, self.ends), strict=False)):
            if rows is not None and k not in self.held:
                compact = self._compact(value)
                copies.append((Rows(compact[None]), rows))
                if compact is not value:
                    moved.append((compact, value))
        behind = self.step.copying(1, copies)
        ahead = self._ahead()
        while t < self.n_steps:
            stop = min(self.n_steps, t + ahead)
            for k in range(t, stop):
                before(k)
                graph.graph()
                for compact, value in moved:
                    compact[...] = value
                behind(k)
            if self._has_ended(t, stop):
                return self.ended
            t = stop
        return t

    def _compact(self, value: DeviceArray) -> DeviceArray:
        """Return an array in C order without gaps that takes the values of each step."""
        if layouts.is_contiguous(Layout.of(value)):
            return value
        return self.device.empty(value.shape, value.dtype)

    def _ahead(self) -> int:
        """Return how many steps can run before the host reads their condition."""
        if self.ends is None:
            return self.n_steps
        is_undone = not self.held and not self.step.vm.has_error_flags and all(
            out.rows is not None and len(out.rows.array) >= self.n_steps + out.rows.first
            for out in self.writes
        )  # fmt: skip
        return _AHEAD if is_undone else 1

    def _leave_buffers(self, done: int) -> None:
        """Copy the last values that lie in buffers to their rows."""
        for k in self.held:
            out = self.writes[k]
            assert out.rows is not None and out.buffer is not None
            out.rows.at(done - 1)[...] = self.step.buffers[out.buffer]


def _is_same(a: DeviceArray, b: DeviceArray) -> bool:
    return (a.data.ptr, a.strides) == (b.data.ptr, b.strides) and a.size > 0


def with_contiguous_rows(device: Device, array: DeviceArray) -> DeviceArray:
    """Return an array whose rows are in C order without gaps: itself or a copy."""
    row = Layout(array.shape[1:], array.strides[1:], array.dtype.itemsize)
    return array if layouts.is_contiguous(row) else device.compact(array)
