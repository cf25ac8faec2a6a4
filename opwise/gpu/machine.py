"""The machine that runs a Program on a device.

It is the plain machine over thunks that ask the device for work. Values there are CuPy's arrays, in
the same storages.
"""

from __future__ import annotations

import copy
import gc
import time

import numpy as np

from opwise.config import config
from opwise.gpu.kernels.kernel import Layout
from opwise.gpu.runtime import graphs
from opwise.gpu.runtime.staging import Download
from opwise.gpu.runtime.thunks import DeviceThunk, KernelThunk, ToDevice, ToHost
from opwise.graph import hooks
from opwise.linkers.vm import PlainVM


class DeviceMachine(PlainVM):
    """Runs a Program of which some Applys are on a device.

    device: the Device. placement: which variables lie there. words: array of the device with a word
    for each thunk that may complain, zero between calls.
    """

    def __init__(self, program, storages, thunks, on_error, allow_gc, device, placement, words):
        self.device, self.placement, self.words = device, placement, words
        self._told = Download(device)
        self._on_device = [isinstance(thunk, DeviceThunk) for thunk in thunks]
        super().__init__(program, storages, thunks, on_error, allow_gc)
        self._asked = [t for t in thunks if isinstance(t, DeviceThunk)]
        self._complaining = [
            k for k, t in enumerate(thunks) if isinstance(t, KernelThunk) and t.word is not None
        ]
        self._resident = {c for c in program.inputs if placement.on_device(program.variables[c])}
        #: whether what overwrites inputs cannot fail any more once its memory is there
        late = program.steps[program.commit :]
        read = {slot for step in late for slot in step.inputs}
        self._total = all(
            thunk.preparable
            if isinstance(thunk, DeviceThunk) and not isinstance(thunk, ToHost)
            else isinstance(thunk, ToHost) and read.isdisjoint(step.outputs)
            for thunk, step in zip(thunks[program.commit :], late, strict=True)
        )
        self._results = [t for t in thunks if isinstance(t, ToHost) and not t.waits]
        self._one_by_one = self._launched = False
        self.stretches = graphs.stretches(self)

    def __call__(self):
        with self.device.active():
            try:
                if not self._has_room():
                    self._call()
            except self.device.out_of_memory as error:
                raise self._without_memory(error) from None
            finally:
                for k in self._complaining:
                    self.thunks[k].asked = None

    def _has_room(self):
        """Make the call; returns whether there was memory for it beside that of graphs, which is
        given back if not."""
        try:
            self._call()
            return True
        except self.device.out_of_memory:
            if not any(stretch.holds_memory for stretch in self.stretches.values()):
                raise
        self._free_memory()
        return False

    def _call(self):
        if not self.allow_gc:
            super().forget()  # copies of arguments that nobody keeps lie where they lay
        try:
            super().__call__()
            return
        except _Again:
            pass
        self._one_by_one = True
        try:
            super().__call__()
        finally:
            self._one_by_one = False

    def _free_memory(self):
        self.free_graphs()
        self.forget()
        gc.collect()  # frames of what failed have arrays
        self.device.free()

    def _without_memory(self, error):
        self._free_memory()
        current, _ = self.device.allocated()
        where = "".join(f"\n{note}" for note in getattr(error, "__notes__", ()))
        return MemoryError(
            f"The device {self.device.name} has not enough memory: {error}. {current} bytes are in "
            f"use by values that are kept; shared variables have the values they had.{where}"
        )

    def forget(self):
        super().forget()
        for thunk in self._asked:
            thunk.forget()

    def free(self):
        super().free()
        self.free_graphs()
        for thunk in self.thunks:
            if isinstance(thunk, ToDevice):
                thunk.upload.forget()

    def free_graphs(self):
        """Let go of all graphs and their memory."""
        if any(stretch.captured for stretch in self.stretches.values()):
            self.device.synchronize()
        for stretch in self.stretches.values():
            stretch.forget()

    # --- stretches --------------------------------------------------------------------------------

    def start_marking(self, push, pop, label, labels):
        names = [f"CUDA graph of {s.start} to {s.stop - 1}" for s in self.stretches.values()]
        super().start_marking(push, pop, label, [*labels, *(n.encode() for n in names)])

    def parts(self, start, stop):
        """Return whether a stretch from ``start`` must end before step ``stop``.

        What overwrites inputs waits until it is known that nobody complained before.
        """
        commit = self.program.commit
        if stop != commit:
            return False
        return not self._ends_total() or any(start <= k < commit for k in self._complaining)

    def is_whole(self, start, stop):
        """Return whether steps can become one launch: behind ``commit`` all of them, or none."""
        commit = self.program.commit
        return stop <= commit or (start <= commit and self._ends_total() == stop)

    def _ends_total(self):
        """Return where results begin behind what overwrites inputs; 0 if that may fail, or waits"""
        stop = len(self.thunks)
        while stop > self.program.commit and isinstance(self.thunks[stop - 1], ToHost):
            stop -= 1
        late = self.thunks[self.program.commit : stop]
        return stop if self._total and all(t.captured for t in late) else 0

    def _run_steps(self, run):
        self._launched = False
        if self.timed or self._one_by_one or not self.stretches or not config.cuda.graphs:
            super()._run_steps(run)
            return
        k, commit = 0, self.program.commit
        while k < len(self.thunks):
            stretch = self.stretches.get(k)
            if stretch is None:
                if k == commit:
                    self._save()
                self._run_step(k, run)
                k += 1
                continue
            if k <= commit < stretch.stop:
                self._check_complaints()
            self._launched |= stretch.run(self, run)
            k = stretch.stop

    def run_plainly(self, start, stop, run):
        """Run the steps of a stretch one by one."""
        for k in range(start, stop):
            if k == self.program.commit:
                self._prepare(k, stop)
            self._run_step(k, run)

    def _prepare(self, start, stop):
        """Make steps ready, so that they cannot fail any more."""
        for k in range(start, stop):
            try:
                self.thunks[k].prepare()
            except BaseException as error:  # whatever it is, the user is told which Apply it was
                self._fail(k, error)

    def _bring_inputs(self):
        holds = self.device.holds
        for slot in self.program.inputs:
            storage = self.storages[slot]
            value = storage[0]
            if slot in self._resident:
                if value is not None and not holds(value):
                    storage[0] = self.device.upload(hooks.to_host(value))
            elif not isinstance(value, np.ndarray):
                storage[0] = hooks.to_host(value)
            elif slot in self.program.destroyed and not value.flags.writeable:
                storage[0] = np.array(value)

    # --- failures ---------------------------------------------------------------------------------

    def _save(self):
        """See to it that no step behind can fail, or keep copies of what they overwrite."""
        self._check_complaints()
        if not self._total:
            storages = [self.storages[slot] for slot in self.program.destroyed]
            self.overwritten = [(s, s[0], self._copied(s[0])) for s in storages]
            return
        self._prepare(self.program.commit, len(self.thunks))

    def _copied(self, value):
        return value.copy() if self.device.holds(value) else copy.deepcopy(value)

    def _finish(self):
        if self._complaining:
            self._told.ask(self.words)
        if self._complaining or self._results or self.timed:
            self._wait()
        if self._complaining:
            self._raise_complaint(self._told.land())
        if self.timed:
            self._read_events()
            return
        for thunk in self._results:
            thunk.land()

    def _fail(self, k, error):
        self._events.clear()
        # what a kernel complained of before is why this failed
        found = self._complaint(self._words()) if self._complaining else None
        super()._fail(*(found or (k, error)))

    def fail(self, k, error):
        """Raise what a launch of steps from ``k`` on raised; everything is as before the call."""
        self._fail(k, error)

    def _check_complaints(self):
        if self._complaining:
            self._raise_complaint(self._words())

    def _words(self):
        self._told.ask(self.words)
        self._wait()
        return self._told.land()

    def _raise_complaint(self, words):
        found = self._complaint(words)
        if found is not None:
            super()._fail(*found)

    def _complaint(self, words):
        """Return (step, error) of the first kernel that complained in this call, or None."""
        if not words.any():
            return None
        self.words[...] = 0
        if self._launched:  # where it was, and what was given, is known step by step alone
            raise _Again
        k, word = next((k, w) for k, w in zip(self._complaining, words, strict=True) if w)
        return k, self.thunks[k].complaint(word)

    def _values(self, k):
        values = [slot[0] for slot in self.thunks[k].inputs]
        try:
            return list(map(hooks.to_host, values))
        except self.device.out_of_memory:  # their shapes must do
            return [Layout.of(x) if self.device.holds(x) else x for x in values]

    # --- times ------------------------------------------------------------------------------------

    def reset_timing(self):
        super().reset_timing()
        #: of each step, nanoseconds that the host asked for work, and that it waited
        self.host_ns = [0] * len(self.thunks)
        self.wait_ns = [0] * len(self.thunks)
        #: (step, nanoseconds that it was asked in) of this call; marks before and behind steps
        self._events = []
        self._marks_of = [[None, None] for _ in self.thunks]

    def _run(self, k, thunk):
        if not self.timed or not self._on_device[k]:
            super()._run(k, thunk)
            return
        marks = self._marks_of[k]
        if not thunk.view:
            marks[0] = self.device.event(marks[0])
        start = time.perf_counter_ns()
        if isinstance(thunk, ToHost):
            thunk.ask()
        else:
            thunk()
        asked = time.perf_counter_ns() - start
        if not thunk.view:
            marks[1] = self.device.event(marks[1])
        self._events.append((k, asked))
        if isinstance(thunk, ToHost):
            self._wait()
            thunk.land()

    def _wait(self):
        """Wait for the device: for what it was asked last."""
        start = time.perf_counter_ns()
        self.device.synchronize()
        if self._events:
            self.wait_ns[self._events[-1][0]] += time.perf_counter_ns() - start

    def _read_events(self):
        """Take the times of the device, which has come to the end of what it was asked."""
        for k, asked in self._events:
            ns = 0 if self.thunks[k].view else self.device.between(*self._marks_of[k])
            self._now[k] = ns
            self._times[k].add(ns)
            self.host_ns[k] += asked
        self._events.clear()

    def device_times(self):
        """Return {step: what an ApplyProfile tells of the device}."""
        name = f"cuda{self.device.index}"
        graph_of = {
            k: number
            for number, stretch in enumerate(self.stretches.values(), 1)
            for k in range(stretch.start, stretch.stop)
            if self._on_device[k]
        }
        found = {}
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
                found[k] = {"on_host": why or "little would be gained: data would have to cross"}
        return found

    def _note_layouts(self, slots):
        for slot in slots:
            value = self.storages[slot][0]
            if hasattr(value, "strides"):
                self._layouts[slot] = value.shape, value.strides


class _Again(BaseException):
    """A kernel complained in a launch of many: the call is made once more, step by step."""
