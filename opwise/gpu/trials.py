"""Trials for DebugMode: one Apply run on the device alone, between arrays of the host."""

from __future__ import annotations

from opwise.gpu.linker import Functions, is_in_use
from opwise.gpu.lowering import Call, lower
from opwise.gpu.runtime import device as devices
from opwise.gpu.runtime.thunks import CallThunk, KernelThunk


def trials_of(nodes):
    """Return {Apply: Trial} of those that have an implementation for the device that is asked for.

    None of them where functions run on the CPU.
    """
    if not is_in_use():
        return {}
    device = devices.device(devices.index_of(devices.asked_for()))
    found, functions = {}, Functions(device)
    with device.active():
        for node in nodes:
            way = lower(node)
            if not isinstance(way, str):
                found[node] = Trial(node, way, device, functions)
        functions.compile()
    return found


class Trial:
    """Runs one Apply on a device: values of the host to values of the host."""

    def __init__(self, node, way, device, functions):
        self.node, self.way, self.device = node, way, device
        self.inputs, self.outputs = [[None] for _ in node.inputs], [[None] for _ in node.outputs]
        if isinstance(way, Call):
            self.word = None
            self.thunk = CallThunk(node, self.inputs, self.outputs, device, way)
        else:
            functions.expect(way.expected)
            self.word = device.zeros(1, "uint32") if way.wrong is not None else None
            self.thunk = KernelThunk(
                node, self.inputs, self.outputs, device, way, functions, self.word
            )

    def __call__(self, values):
        """Return (outputs, inputs as they are afterwards); raises what the implementation does."""
        with self.device.active():
            return self._run(values)

    def _run(self, values):
        for i, (cell, value) in enumerate(zip(self.inputs, values, strict=True)):
            cell[0] = value if i in self.way.host else self.device.upload(value)
        try:
            self.thunk()
            if self.word is not None:
                (word,) = self.device.download(self.word)
                if word:
                    self.word[...] = 0
                    raise self.thunk.complaint(word)
            return tuple(
                [self.device.download(c[0]) if self.device.holds(c[0]) else c[0] for c in cells]
                for cells in (self.outputs, self.inputs)
            )
        finally:
            for cell in (*self.inputs, *self.outputs):
                cell[0] = None
