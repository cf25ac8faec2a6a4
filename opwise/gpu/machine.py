"""The machine that runs a Program on a device: thunks that launch kernels, call CuPy or move data.

It is the plain machine over these. Values on the device are CuPy's arrays, in the same storages.
"""

from __future__ import annotations

import copy
import time

import numpy as np

from opwise.gpu.kernel import Layout, arguments, position_of
from opwise.graph import hooks
from opwise.linkers.vm import PlainVM, Thunk


class DeviceThunk(Thunk):
    """Base of thunks that ask a device for work; they do not wait for it."""

    #: whether the device has nothing to do
    view = False
    #: whether, once ``prepare`` was called, the device has all that it needs
    preparable = False

    def forget(self):
        """Let go of the arrays of a call."""

    def __init__(self, node, inputs, outputs, device):
        super().__init__(node, inputs, outputs)
        self.device = device
        #: no Python code computes for the Apply
        self.cthunk = device


class CallThunk(DeviceThunk):
    """Calls CuPy."""

    def __init__(self, node, inputs, outputs, device, call):
        super().__init__(node, inputs, outputs, device)
        self.function, self.view = call.function, call.view
        # a view is there without any work, and what works in place has memory
        self.target = call.function if call.view else call.target if node.op.destroy_map else None
        self.preparable = self.target is not None
        self.ready = False

    def prepare(self):
        """Check the inputs and tell where the outputs will be; only for those that can."""
        inputs = [cell[0] for cell in self.inputs]
        self._give(self.target(self.device, self.node, inputs))
        self.ready = True

    def __call__(self):
        done, self.ready = self.ready and self.view, False
        if not done:
            self._give(self.function(self.device, self.node, [cell[0] for cell in self.inputs]))

    def _give(self, values):
        for cell, value in zip(self.outputs, values, strict=True):
            cell[0] = value

    def forget(self):
        """Let go of what was prepared for a call."""
        self.ready = False


class KernelThunk(DeviceThunk):
    """Launches the kernels of an Implementation.

    functions: compiled kernels by name. word: array of the device for a complaint, or None. What
    was worked out for layouts of the inputs is kept for those that come again.
    """

    #: so many plans are kept
    _KEPT = 64

    def __init__(self, node, inputs, outputs, device, made, functions, word):
        super().__init__(node, inputs, outputs, device)
        self.made, self.functions, self.word = made, functions, word
        self.dtypes = [out.type.numpy_dtype for out in node.outputs]
        #: by output, the input in whose memory it is put
        self.inplace = {k: inputs[0] for k, inputs in node.op.destroy_map.items()}
        #: (output, input) pairs of what is copied before the launches
        self.copies = [(k, i) for k, i in made.copied.items() if k not in self.inplace]
        self.plans: dict = {}
        self.ready = self.asked = None
        self.preparable = word is None

    def __call__(self):
        if self.ready is None:
            self.prepare()
        (copies, launches, _), self.ready = self.ready, None
        for source, target in copies:
            target[...] = source
        for launch in launches:
            self.device.launch(*launch)

    def prepare(self):
        """Find memory for the outputs and make the launches ready; nothing can fail after it."""
        values = [cell[0] for cell in self.inputs]
        key = tuple([
            _number(x) if i in self.made.host else Layout.of(x) for i, x in enumerate(values)
        ])  # fmt: skip
        known = self.plans.get(key)
        shapes = known[0] if known is not None else self.made.shapes(list(key))
        outputs = self._outputs(values, shapes)
        where = tuple([Layout.of(z) for z in outputs])
        if known is None or known[1] != where:
            known = self._plan(key, shapes, where)
        _, _, launches, scratch_bytes = known
        scratch = [self.device.empty((n,), np.uint8) for n in scratch_bytes]
        arrays = {"in": values, "out": outputs, "scratch": scratch, "wrong": [self.word]}
        copies = [(values[i], outputs[k]) for k, i in self.copies]
        # the arrays are kept until the launches have been asked for
        self.ready = copies, [self._ready(launch, arrays) for launch in launches], arrays
        if self.word is not None:
            told = self.made.told
            self.asked = [x if i in told else key[i] for i, x in enumerate(values)]
        for cell, value in zip(self.outputs, outputs, strict=True):
            cell[0] = value

    def _outputs(self, values, shapes):
        outputs = []
        for k, (shape, dtype) in enumerate(zip(shapes, self.dtypes, strict=True)):
            own = self.inplace.get(k)
            outputs.append(self.device.empty(shape, dtype) if own is None else values[own])
        return outputs

    def _plan(self, key, shapes, where):
        plan = self.made.plan(list(key), list(where), self.device.facts)
        if len(self.plans) >= self._KEPT:
            self.plans.clear()
        found = self.plans[key] = shapes, where, plan.launches, plan.scratch
        return found

    def _ready(self, launch, arrays):
        """Return what ``device.launch`` takes."""

        def address(array):
            return arrays[array.kind][array.index].data.ptr + array.offset

        function = self.functions(launch.kernel)
        self.device.allow(function, launch.shared)
        return function, launch.grid, launch.block, arguments(launch, address), launch.shared

    def complaint(self, word):
        """Return the error that a word which is not 0 stands for, about the last inputs."""
        told = [
            self.device.download(x) if i in self.made.told else x for i, x in enumerate(self.asked)
        ]
        return self.made.wrong(position_of(word), told)

    def forget(self):
        """Let go of the arrays of a call."""
        self.ready = self.asked = None


def _number(value):
    """Return what the host knows of an input: a number, or a tuple of those of a vector."""
    value = np.asarray(value)
    return value.item() if value.ndim == 0 else tuple(value.tolist())


class ToDevice(DeviceThunk):
    """Copies an array of the host to the device."""

    def __call__(self):
        value = self.inputs[0][0]
        if value is None:
            raise ValueError("expected an ndarray, not None")
        self.outputs[0][0] = self.device.upload(value)


class ToHost(DeviceThunk):
    """Copies an array of the device to the host; waits for it."""

    def prepare(self):
        """Nothing is to be done before: memory of the host is there."""

    def __call__(self):
        self.outputs[0][0] = self.device.download(self.inputs[0][0])


class DeviceMachine(PlainVM):
    """Runs a Program of which some Applys are on a device.

    device: the Device. placement: which variables lie there. words: array of the device with a word
    for each thunk that may complain, zero between calls.
    """

    def __init__(self, program, storages, thunks, on_error, allow_gc, device, placement, words):
        self.device, self.placement, self.words = device, placement, words
        self._on_device = [isinstance(thunk, DeviceThunk) for thunk in thunks]
        super().__init__(program, storages, thunks, on_error, allow_gc)
        self._asked = [t for t in thunks if isinstance(t, DeviceThunk)]
        self._complaining = [
            k for k, t in enumerate(thunks) if isinstance(t, KernelThunk) and t.word is not None
        ]
        self._resident = {c for c in program.inputs if placement.on_device(program.variables[c])}
        #: whether what overwrites inputs cannot fail any more once its memory is there
        late = program.steps[program.commit :]
        read = {cell for step in late for cell in step.inputs}
        self._total = all(
            thunk.preparable
            if isinstance(thunk, DeviceThunk) and not isinstance(thunk, ToHost)
            else isinstance(thunk, ToHost) and read.isdisjoint(step.outputs)
            for thunk, step in zip(thunks[program.commit :], late, strict=True)
        )

    def __call__(self):
        with self.device.active():
            try:
                super().__call__()
            except self.device.out_of_memory as error:
                raise self._without_memory(error) from None
            finally:
                for k in self._complaining:
                    self.thunks[k].asked = None

    def _without_memory(self, error):
        self._clear()
        self.device.free()
        current, _ = self.device.allocated()
        where = "".join(f"\n{note}" for note in getattr(error, "__notes__", ()))
        return MemoryError(
            f"The device {self.device.name} has not enough memory: {error}. {current} bytes are in "
            f"use by values that are kept; shared variables have the values they had.{where}"
        )

    def _clear(self):
        super()._clear()
        for thunk in self._asked:
            thunk.forget()

    def _bring_inputs(self):
        holds = self.device.holds
        for cell in self.program.inputs:
            storage = self.storages[cell]
            value = storage[0]
            if cell in self._resident:
                if value is not None and not holds(value):
                    storage[0] = self.device.upload(hooks.to_host(value))
            elif not isinstance(value, np.ndarray):
                storage[0] = hooks.to_host(value)
            elif cell in self.program.destroyed and not value.flags.writeable:
                storage[0] = np.array(value)

    # --- failures ---------------------------------------------------------------------------------

    def _save(self):
        """See to it that no step behind can fail, or keep copies of what they overwrite."""
        self._check_complaints()
        if not self._total:
            storages = [self.storages[cell] for cell in self.program.destroyed]
            return [(s, s[0], self._copied(s[0])) for s in storages]
        for k in range(self.program.commit, len(self.thunks)):
            try:
                self.thunks[k].prepare()
            except BaseException as error:  # whatever it is, the user is told which Apply it was
                self._fail(k, error)
        return None

    def _copied(self, value):
        return value.copy() if self.device.holds(value) else copy.deepcopy(value)

    def _finish(self, saved):
        self._check_complaints(saved)
        if self.timed:
            self._read_events()

    def _fail(self, k, error, saved=None):
        self._events.clear()
        # what a kernel complained of before is why this failed
        k, error = self._complaint() or (k, error)
        super()._fail(k, error, saved)

    def _check_complaints(self, saved=None):
        found = self._complaint()
        if found is not None:
            self._fail(*found, saved)

    def _complaint(self):
        """Return (step, error) of the first kernel that complained in this call, or None."""
        if not self._complaining:
            return None
        words = self.device.download(self.words)
        if not words.any():
            return None
        self.words[...] = 0
        k, word = next((k, w) for k, w in zip(self._complaining, words, strict=True) if w)
        return k, self.thunks[k].complaint(word)

    def _values(self, k):
        values = [cell[0] for cell in self.thunks[k].inputs]
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
        self._events = []

    def _run(self, k, thunk):
        if not self.timed or not self._on_device[k]:
            super()._run(k, thunk)
            return
        view = thunk.view
        first = None if view else self.device.event()
        start = time.perf_counter_ns()
        thunk()
        asked = time.perf_counter_ns() - start
        self._events.append((k, first, None if view else self.device.event(), asked))

    def _read_events(self):
        """Take the times of the device, which has come to the end of what it was asked."""
        self.device.synchronize()
        for k, first, second, asked in self._events:
            ns = self.device.between(first, second) if first is not None else 0
            waited = max(0, asked - ns) if isinstance(self.thunks[k], ToHost) else 0
            self._now[k] = ns
            self._times[k].add(ns)
            self.host_ns[k] += asked - waited
            self.wait_ns[k] += waited
        self._events.clear()

    def device_times(self):
        """Return {step: what an ApplyProfile tells of the device}."""
        name = f"cuda{self.device.index}"
        found = {}
        for k, thunk in enumerate(self.thunks):
            if self._on_device[k]:
                found[k] = {
                    "device": name,
                    "transfer": isinstance(thunk, ToDevice | ToHost),
                    "asked": self.host_ns[k],
                    "waited": self.wait_ns[k],
                }
            else:
                why = self.placement.why.get(thunk.node)
                found[k] = {"on_host": why or "little would be gained: data would have to cross"}
        return found

    def _note_layouts(self, cells):
        for cell in cells:
            value = self.storages[cell][0]
            if hasattr(value, "strides"):
                self._layouts[cell] = value.shape, value.strides
