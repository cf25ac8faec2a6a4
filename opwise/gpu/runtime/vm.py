"""The VM that runs a Program on a device.

It is the plain VM over thunks that enqueue work for the device. Values on the device are CuPy's
arrays, in the same storages.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from opwise.config import config
from opwise.gpu.kernels.kernel import Layout
from opwise.gpu.placement.placement import Placement
from opwise.gpu.runtime import graphs
from opwise.gpu.runtime.device import Device, DeviceArray
from opwise.gpu.runtime.staging import Download
from opwise.gpu.runtime.thunks import DeviceThunk, KernelThunk, ToDevice, ToHost
from opwise.graph import upcalls
from opwise.linkers import opwise_c
from opwise.linkers.compiled import OnError
from opwise.linkers.program import Program
from opwise.linkers.storage import Storage
from opwise.linkers.vm import PlainVM, Thunk

#: runs one thunk: called as (step, thunk)
Run = Callable[[int, Any], None]


#: events that wait to be read between the steps of a loop, before the host waits for them
_MANY_EVENTS = 4096
#: stands for the step of a VM in the times of what a loop does between steps
_OWN = -1

#: why the host runs an Apply that the device could run
_TRANSFERS_COST_MORE = "kept on the CPU: transfers would cost more than they save"


class DeviceVM(PlainVM):
    """Runs a Program of which some Applys are on a device.

    placement: which variables lie on the device. error_flags: an array of the device with a flag
    for each thunk whose kernels can report an error, None if there is no such thunk. All flags are
    0 between calls.
    """

    def __init__(
        self,
        program: Program,
        storages: Sequence[Storage],
        thunks: Sequence[Thunk],
        on_error: OnError,
        allow_gc: bool,
        device: Device,
        placement: Placement,
        error_flags: DeviceArray | None,
    ) -> None:
        self.device, self.placement, self.error_flags = device, placement, error_flags
        self._flags_download = Download(device)
        self._on_device = [isinstance(thunk, DeviceThunk) for thunk in thunks]
        super().__init__(program, storages, thunks, on_error, allow_gc)
        self.timing.on_reset = self._forget_times
        self._forget_times()
        #: the thunks of the device, by step
        self._device_thunks = {k: t for k, t in enumerate(thunks) if isinstance(t, DeviceThunk)}
        #: of these, the kernels that can report an error
        self._flagged = {
            k: t
            for k, t in enumerate(thunks)
            if isinstance(t, KernelThunk) and t.error_flag is not None
        }
        self._resident = {c for c in program.inputs if placement.on_device(program.variables[c])}
        #: whether the steps that overwrite inputs cannot fail once their memory is allocated
        late = program.steps[program.commit :]
        read = {slot for step in late for slot in step.inputs}
        self._total = all(
            thunk.preparable
            if isinstance(thunk, DeviceThunk) and not isinstance(thunk, ToHost)
            else isinstance(thunk, ToHost) and read.isdisjoint(step.outputs)
            for thunk, step in zip(thunks[program.commit :], late, strict=True)
        )
        self._results = [t for t in thunks if isinstance(t, ToHost) and not t.waits]
        #: whether the call under way uses no graphs, and whether it has launched one
        self._one_by_one = self._launched = False
        #: whether the call under way leaves the error flags to ``take_error_flags``
        self._deferred = False
        #: whether it runs a step of a loop on the device, over and over
        self.repeated = bool(program.fgraph.interface.resident)
        self.capture_regions = graphs.capture_regions(self)

    def __call__(self) -> None:
        with self.device.active():
            if self.repeated:  # the VM of the function around it frees memory that is short
                self._call()
                return
            try:
                if not self._has_room():
                    self._call()
            except self.device.out_of_memory as error:
                raise self._without_memory(error) from None
            finally:
                for thunk in self._flagged.values():
                    thunk.last_inputs = None

    def _has_room(self) -> bool:
        """Make the call; if memory is short, free that of graphs and return False."""
        try:
            self._call()
            return True
        except self.device.out_of_memory:
            if not self.holds_memory:
                raise
        self._free_memory()
        return False

    def _call(self) -> None:
        if not self.allow_gc:
            super().forget()  # so that copies of arguments reuse the same memory
        try:
            super().__call__()
            return
        except _RunStepByStep:
            pass
        self._one_by_one = True
        try:
            super().__call__()
        finally:
            self._one_by_one = False

    def _free_memory(self) -> None:
        self.free_graphs()
        self.forget()
        gc.collect()  # frames of the failed call hold arrays
        self.device.free()

    def _without_memory(self, error: Exception) -> MemoryError:
        self._free_memory()
        current, _ = self.device.allocated()
        where = "".join(f"\n{note}" for note in getattr(error, "__notes__", ()))
        return MemoryError(
            f"The device {self.device.name} is out of memory: {error}. Values that stay between "
            f"calls take {current} bytes; shared variables keep the values that they had.{where}"
        )

    def forget(self) -> None:
        super().forget()
        for thunk in self._device_thunks.values():
            thunk.forget()

    def free(self) -> None:
        super().free()
        self.free_graphs()
        for thunk in self.thunks:
            if isinstance(thunk, ToDevice):
                thunk.upload.forget()

    @property
    def holds_memory(self) -> bool:
        """Whether graphs hold memory."""
        steps = any(vm.holds_memory for vm in self._steps_of_loops)
        return steps or any(region.holds_memory for region in self.capture_regions.values())

    @property
    def _steps_of_loops(self) -> list[DeviceVM]:
        """The VMs of the steps that loops repeat on the device."""
        steps = (getattr(thunk.node.tag, "inside", None) for thunk in self._device_thunks.values())
        return [step.fn for step in steps if step is not None]

    def free_graphs(self) -> None:
        """Free all graphs and their memory."""
        for vm in self._steps_of_loops:
            vm.free_graphs()
        if any(region.captured for region in self.capture_regions.values()):
            self.device.synchronize()
        for region in self.capture_regions.values():
            region.forget()

    # --- steps of loops ---------------------------------------------------------------------------

    def enqueue(self) -> None:
        """Make a call without waiting for the device: errors are left to ``take_error_flags``."""
        self._deferred = True
        try:
            self()
        finally:
            self._deferred = False

    def run_checked(self) -> None:
        """Make a call step by step, and raise the error that a kernel reports."""
        self._one_by_one = True
        try:
            self()
        finally:
            self._one_by_one = False

    @property
    def has_error_flags(self) -> bool:
        """Whether kernels can report errors."""
        return bool(self._flagged)

    def take_error_flags(self) -> bool:
        """Reset the error flags; return whether a kernel has reported an error since they were."""
        if not self._flagged or not self._read_error_flags().any():
            return False
        assert self.error_flags is not None
        self.error_flags[...] = 0
        return True

    def whole_graph(self) -> graphs.CapturedGraph | None:
        """Return the graph that did all the device's work in the last call, or None.

        What else ran depends on values of the host, shapes and addresses alone. So launching the
        graph is another call, on the values that lie where the inputs of that call lay.
        """
        regions = list(self.capture_regions.values())
        if len(regions) != 1 or not self._launched:
            return None
        (region,) = regions
        outside = [*self.thunks[: region.start], *self.thunks[region.stop :]]
        steady = all(
            thunk.view or isinstance(thunk, ToDevice)
            for thunk in outside
            if isinstance(thunk, DeviceThunk)
        )
        return region.launched if steady else None

    # --- capture regions --------------------------------------------------------------------------

    def start_marking(self, push: Any, pop: Any, label: bytes, labels: list[bytes]) -> None:
        regions = self.capture_regions.values()
        names = [f"CUDA graph of {r.start} to {r.stop - 1}" for r in regions]
        super().start_marking(push, pop, label, [*labels, *(n.encode() for n in names)])

    def parts(self, start: int, stop: int) -> bool:
        """Return whether a region from ``start`` must end before step ``stop``.

        Steps that overwrite inputs wait until no kernel before them can report an error.
        """
        commit = self.program.commit
        if stop != commit:
            return False
        return not self._ends_total() or any(start <= k < commit for k in self._flagged)

    def is_whole(self, start: int, stop: int) -> bool:
        """Return whether steps can become one launch: after ``commit`` all of them, or none."""
        commit = self.program.commit
        return stop <= commit or (start <= commit and self._ends_total() == stop)

    def _ends_total(self) -> int:
        """Return the step at which results begin after the steps that overwrite inputs.

        Return 0 if one of those can fail, or waits.
        """
        stop = len(self.thunks)
        while stop > self.program.commit and isinstance(self.thunks[stop - 1], ToHost):
            stop -= 1
        late = self.thunks[self.program.commit : stop]
        is_captured = all(isinstance(t, DeviceThunk) and t.captured for t in late)
        return stop if self._total and is_captured else 0

    def _run_steps(self, run: Run) -> None:
        self._launched = False
        if self.timing.on or self._one_by_one or not self.capture_regions or not config.cuda.graphs:
            super()._run_steps(run)
            return
        k, commit = 0, self.program.commit
        while k < len(self.thunks):
            region = self.capture_regions.get(k)
            if region is None:
                if k == commit:
                    self._save()
                self._run_step(k, run)
                k += 1
                continue
            if k <= commit < region.stop:
                self._check_error_flags()
            self._launched |= region.run(self, run)
            k = region.stop

    def run_plainly(self, start: int, stop: int, run: Run) -> None:
        """Run the steps of a region one by one."""
        for k in range(start, stop):
            if k == self.program.commit:
                self._prepare(k, stop)
            self._run_step(k, run)

    def _prepare(self, start: int, stop: int) -> None:
        """Prepare steps, so that they cannot fail any more."""
        for k in range(start, stop):
            try:
                self._device_thunks[k].prepare()
            except BaseException as error:  # whatever it is, the message names the Apply
                self._fail(k, error)

    def _bring_inputs(self) -> None:
        holds = self.device.holds
        for slot in self.program.inputs:
            storage = self.storages[slot]
            value = storage[0]
            if slot in self._resident:
                if value is not None and not holds(value):
                    storage[0] = self.device.upload(upcalls.to_host(value))
            elif not isinstance(value, np.ndarray):
                storage[0] = upcalls.to_host(value)
            elif slot in self.program.destroyed and not value.flags.writeable:
                storage[0] = np.array(value)

    # --- failures ---------------------------------------------------------------------------------

    def _save(self) -> None:
        """Prepare the remaining steps so that none can fail, or copy the inputs they overwrite."""
        self._check_error_flags()
        if not self._total:
            storages = [self.storages[slot] for slot in self.program.destroyed]
            self.overwritten = [(s, s[0], self._copied(s[0])) for s in storages]
            return
        self._prepare(self.program.commit, len(self.thunks))

    def _copied(self, value: Any) -> Any:
        return value.copy() if self.device.holds(value) else opwise_c.saved(value)

    def _finish(self) -> None:
        is_checked = self._flagged and not self._deferred
        if is_checked:
            self._flags_download.enqueue(self.error_flags)
        if self.timing.on and self._deferred and len(self._events) < _MANY_EVENTS:
            return  # the loop waits behind its last step
        if is_checked or self._results or self.timing.on:
            self._wait()
        if is_checked:
            self._raise_reported(self._flags_download.result())
        if self.timing.on:
            self._read_events()
            return
        for thunk in self._results:
            thunk.set_output()

    def _fail(self, k: int, error: BaseException) -> None:
        self._events.clear()
        # an error that a kernel reported before is the cause of this one
        is_read = self._flagged and not self._deferred
        found = self._reported(self._read_error_flags()) if is_read else None
        super()._fail(*(found or (k, error)))

    def fail(self, k: int, error: BaseException) -> None:
        """Raise the error of a launch of steps from ``k`` on, and restore all inputs."""
        self._fail(k, error)

    def _check_error_flags(self) -> None:
        if self._flagged:
            self._raise_reported(self._read_error_flags())

    def _read_error_flags(self) -> np.ndarray[Any, Any]:
        self._flags_download.enqueue(self.error_flags)
        self._wait()
        return self._flags_download.result()

    def _raise_reported(self, flags: np.ndarray[Any, Any]) -> None:
        found = self._reported(flags)
        if found is not None:
            super()._fail(*found)

    def _reported(self, flags: np.ndarray[Any, Any]) -> tuple[int, Exception] | None:
        """Return (step, error) of the first kernel that reported an error in this call, or None."""
        if not flags.any():
            return None
        assert self.error_flags is not None
        self.error_flags[...] = 0
        if self._launched:  # only step by step is it known which Apply it was, and on which inputs
            raise _RunStepByStep
        k, flag = next((k, f) for k, f in zip(self._flagged, flags, strict=True) if f)
        return k, self._flagged[k].reported_error(flag)

    def _values(self, k: int) -> list[Any]:
        values = [storage[0] for storage in self.thunks[k].inputs]
        try:
            return list(map(upcalls.to_host, values))
        except self.device.out_of_memory:  # then their shapes, at least
            return [Layout.of(x) if self.device.holds(x) else x for x in values]

    # --- times ------------------------------------------------------------------------------------

    def _forget_times(self) -> None:
        #: by step, the nanoseconds in which the host enqueued work, and in which it waited
        self.host_ns = [0] * len(self.thunks)
        self.wait_ns = [0] * len(self.thunks)
        #: (step or _OWN, nanoseconds to enqueue it, events before and after its work) of this call
        self._events: list[tuple[int, int, list[Any]]] = []
        #: pairs of events that nobody uses
        self._spare_marks: list[list[Any]] = []
        #: see ``take_loop_times``
        self._busy_ns = self._steps_ns = self._own_wait_ns = 0

    def _run(self, k: int, thunk: Thunk) -> None:
        if not self.timing.on or not isinstance(thunk, DeviceThunk):
            super()._run(k, thunk)
            return
        step = self._step_inside(k)
        if step is not None and step.timing.on:
            self._time_loop(k, thunk, step)
            return
        self._time(k, thunk.enqueue if isinstance(thunk, ToHost) else thunk, thunk.view)
        if isinstance(thunk, ToHost):
            self._wait()
            thunk.set_output()

    def _time(self, k: int, enqueue: Callable[[], None], view: bool = False) -> None:
        """Enqueue work between two events; view: there is none."""
        marks = self._spare_marks.pop() if self._spare_marks else [None, None]
        if not view:
            marks[0] = self.device.event(marks[0])
        start = time.perf_counter_ns()
        enqueue()
        enqueued = time.perf_counter_ns() - start
        if not view:
            marks[1] = self.device.event(marks[1])
        self._events.append((k, enqueued, marks))

    def _time_loop(self, k: int, loop: Thunk, step: DeviceVM) -> None:
        """Run a loop whose step is timed.

        It takes the times of its steps and of what it does between them, and no gaps, which are
        there only because the steps are launched Apply by Apply.
        """
        step.take_loop_times()  # of a run that failed
        start = time.perf_counter_ns()
        loop()
        elapsed = time.perf_counter_ns() - start
        busy, by_steps, waited = step.take_loop_times()
        self._add(k, busy)
        self._steps_ns += elapsed
        self.host_ns[k] += max(0, elapsed - by_steps - waited)
        self.wait_ns[k] += waited

    def _step_inside(self, k: int) -> DeviceVM | None:
        """Return the VM that step ``k`` repeats on the device, or None."""
        if not self._on_device[k]:
            return None
        inside = getattr(self.thunks[k].node.tag, "inside", None)
        return None if inside is None else inside.fn

    def repeats_inside(self, k: int) -> bool:
        return super().repeats_inside(k) or self._step_inside(k) is not None

    def do_between_steps(self, work: Callable[[], None]) -> None:
        """Do what belongs to the loop around the steps, and not to one of them."""
        if self.timing.on:
            self._time(_OWN, work)
        else:
            work()

    def end_loop(self, ns: int, steps: int) -> None:
        """Count a run of the loop around the steps, and read the times of all of them."""
        if self.timing.on:
            self._wait()
            self._read_events()
            self.timing.count_run(ns, steps)

    def take_loop_times(self) -> tuple[int, int, int]:
        """Return nanoseconds since this was called last, for the loop that repeats this program.

        These are the times of all steps and of the work between them, the time in which the host
        enqueued the steps or waited for them, and that in which it waited for the work between.
        """
        taken = self._busy_ns, self._steps_ns, self._own_wait_ns
        self._busy_ns = self._steps_ns = self._own_wait_ns = 0
        return taken

    def _add(self, k: int, ns: int) -> None:
        """Add a time without what timing it adds."""
        self._busy_ns += ns
        if k != _OWN:
            self.timing.note(k, ns)

    def _note(self, k: int, ns: int) -> None:
        self._add(k, max(0, ns - self.timing.timer_ns))

    def _wait(self) -> None:
        """Wait until the device has done all enqueued work."""
        start = time.perf_counter_ns()
        self.device.synchronize()
        k = self._events[-1][0] if self._events else _OWN
        waited = time.perf_counter_ns() - start
        if k == _OWN:
            self._own_wait_ns += waited
        else:
            self.wait_ns[k] += waited
            self._steps_ns += waited

    def _read_events(self) -> None:
        """Read the times of the device, which has done all enqueued work."""
        for k, enqueued, marks in self._events:
            is_view = k != _OWN and self._device_thunks[k].view
            self._add(k, 0 if is_view else self.device.between(*marks))
            if k != _OWN:
                self.host_ns[k] += enqueued
                self._steps_ns += enqueued
            self._spare_marks.append(marks)
        self._events.clear()

    def device_times(self) -> dict[int, dict[str, Any]]:
        """Return {step: the fields of ApplyProfile about the device}."""
        name = f"cuda{self.device.index}"
        graph_of = {
            k: number
            for number, region in enumerate(self.capture_regions.values(), 1)
            for k in range(region.start, region.stop)
            if self._on_device[k] and not self.timing.inside
        }
        found: dict[int, dict[str, Any]] = {}
        for k, thunk in enumerate(self.thunks):
            if self._on_device[k]:
                found[k] = {
                    "device": name,
                    "transfer": isinstance(thunk, ToDevice | ToHost),
                    "asked": self.host_ns[k],
                    "waited": self.wait_ns[k],
                    "graph": graph_of.get(k, 0),
                }
            else:
                why = self.placement.why.get(thunk.node)
                found[k] = {"on_host": why or _TRANSFERS_COST_MORE}
        return found

    def _note_layouts(self, slots: Iterable[int]) -> None:
        for slot in slots:
            value = self.storages[slot][0]
            if hasattr(value, "strides"):
                self._layouts[slot] = value.shape, value.strides


class _RunStepByStep(BaseException):
    """A kernel in a graph reported an error: the call is made again without graphs."""
