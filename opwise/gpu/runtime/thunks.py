"""Thunks that ask a device for work: they launch kernels, call CuPy or move data."""

from __future__ import annotations

import numpy as np

from opwise.gpu.kernels import layouts
from opwise.gpu.kernels.kernel import Layout, Plan, arguments, error_position, on_host
from opwise.gpu.runtime.staging import Download, Upload
from opwise.linkers.vm import Thunk


class DeviceThunk(Thunk):
    """Base of thunks that ask a device for work; they do not wait for it."""

    #: whether the device has nothing to do
    view = False
    #: whether a CUDA graph can hold what it asks for
    captured = False
    #: whether it is a view that depends on numbers of the host
    told = False
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
        self.function, self.view, self.captured = call.function, call.view, call.captured
        self.told = call.view and bool(call.host)
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

    captured = True
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
            on_host(x) if i in self.made.host else Layout.of(x) for i, x in enumerate(values)
        ])  # fmt: skip
        known = self.plans.get(key)
        shapes = known[0] if known is not None else self.made.shapes(list(key))
        outputs = self._outputs(values, shapes)
        where = tuple([Layout.of(z) for z in outputs])
        if known is None or known[1] != where:
            known = self._plan(key, shapes, where)
        _, _, launches, scratch_bytes = known
        scratch = [self.device.empty((n,), np.uint8) for n in scratch_bytes]
        arrays = {"in": values, "out": outputs, "scratch": scratch, "error_flag": [self.word]}
        copies = [(values[i], outputs[k]) for k, i in self.copies]
        # the arrays are kept until the launches have been asked for
        self.ready = copies, [self._ready(launch, arrays) for launch in launches], arrays
        if self.word is not None:
            told = self.made.error_inputs
            self.asked = [x if i in told else key[i] for i, x in enumerate(values)]
        for cell, value in zip(self.outputs, outputs, strict=True):
            cell[0] = value

    def _outputs(self, values, shapes):
        outputs = []
        for k, (shape, dtype) in enumerate(zip(shapes, self.dtypes, strict=True)):
            own = self.inplace.get(k, self.made.aliases.get(k))
            if own is None or (k in self.made.aliases and not _is_in_order(values[own])):
                outputs.append(self.device.empty(shape, dtype))
            else:
                outputs.append(values[own])
        return outputs

    def _plan(self, key, shapes, where):
        if self.made.aliases and all(_is_in_order(key[i]) for i in self.made.aliases.values()):
            plan = Plan(())
        else:
            plan = self.made.plan(list(key), list(where), self.device.facts)
        if len(self.plans) >= self._KEPT:
            self.plans.clear()
        found = self.plans[key] = shapes, where, plan.launches, plan.scratch
        return found

    def _ready(self, launch, arrays):
        """Return what ``device.launch`` takes."""

        def address(array):
            return arrays[array.kind][array.position].data.ptr + array.offset

        function = self.functions(launch.kernel)
        self.device.allow(function, launch.shared)
        return function, launch.grid, launch.block, arguments(launch, address), launch.shared

    def complaint(self, word):
        """Return the error that a word which is not 0 stands for, about the last inputs."""
        told = [
            self.device.download(x) if i in self.made.error_inputs else x
            for i, x in enumerate(self.asked)
        ]
        return self.made.wrong(error_position(word), told)

    def forget(self):
        """Let go of the arrays of a call."""
        self.ready = self.asked = None


def _is_in_order(array):
    layout = array if isinstance(array, Layout) else Layout.of(array)
    return layouts.is_contiguous(layout)


class ToDevice(DeviceThunk):
    """Copies an array of the host to the device. steady: whether nobody overwrites the copy."""

    def __init__(self, node, inputs, outputs, device, steady):
        super().__init__(node, inputs, outputs, device)
        self.upload = Upload(device, steady)

    def __call__(self):
        value = self.inputs[0][0]
        if value is None:
            raise ValueError("expected an ndarray, not None")
        self.outputs[0][0] = self.upload(value)


class ToHost(DeviceThunk):
    """Has an array of the device copied to the host; ``land`` puts the copy where it is read.

    waits: whether it is read by another Apply: then that is done at once.
    """

    def __init__(self, node, inputs, outputs, device, waits):
        super().__init__(node, inputs, outputs, device)
        self.download, self.waits = Download(device), waits

    def prepare(self):
        """Nothing is to be done before: memory of the host is there."""

    def ask(self):
        """Have the copy made."""
        self.download.ask(self.inputs[0][0])

    def __call__(self):
        self.ask()
        if self.waits:
            self.device.synchronize()
            self.land()

    def land(self):
        """Put the copy there; the device has come so far."""
        self.outputs[0][0] = self.download.land()

    def forget(self):
        """Let go of the arrays of a call."""
        self.download.forget()
