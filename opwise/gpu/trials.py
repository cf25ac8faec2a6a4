"""Trials for DebugMode: one Apply run alone on the device, between arrays of the host."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from opwise.gpu.linker import Functions, is_in_use
from opwise.gpu.lowering import Call, Lowered, lower
from opwise.gpu.runtime import device as devices
from opwise.gpu.runtime.device import Device
from opwise.gpu.runtime.thunks import CallThunk, KernelThunk
from opwise.graph.apply import Apply


def trials_of(nodes: Iterable[Apply]) -> dict[Apply, Trial]:
    """Return {Apply: Trial} of those that the requested device can run; {} if that is the CPU."""
    if not is_in_use():
        return {}
    device = devices.device(devices.index_of(devices.requested_name()))
    found, functions = {}, Functions(device)
    with device.active():
        for node in nodes:
            if hasattr(node.op, "compile_inside"):
                continue  # what is inside is tried there
            lowered = lower(node)
            if not isinstance(lowered, str):
                found[node] = Trial(node, lowered, device, functions)
        functions.compile()
    return found


class Trial:
    """Runs one Apply on a device."""

    def __init__(self, node: Apply, lowered: Lowered, device: Device, functions: Functions) -> None:
        self.node, self.lowered, self.device = node, lowered, device
        self.inputs: list[list[Any]] = [[None] for _ in node.inputs]
        self.outputs: list[list[Any]] = [[None] for _ in node.outputs]
        #: the error flag on the device, or None
        self.error_flag = None
        self.thunk = self._thunk(functions)

    def _thunk(self, functions: Functions) -> CallThunk | KernelThunk:
        node, lowered = self.node, self.lowered
        if isinstance(lowered, Call):
            return CallThunk(node, self.inputs, self.outputs, self.device, lowered)
        functions.expect(lowered.expected)
        if lowered.wrong is not None:
            self.error_flag = self.device.zeros(1, "uint32")
        return KernelThunk(
            node, self.inputs, self.outputs, self.device, lowered, functions, self.error_flag
        )

    def __call__(self, values: Sequence[Any]) -> tuple[list[Any], list[Any]]:
        """Return (outputs, inputs after the run) for values of the host; raise its errors."""
        with self.device.active():
            return self._run(values)

    def _run(self, values: Sequence[Any]) -> tuple[list[Any], list[Any]]:
        for i, (storage, value) in enumerate(zip(self.inputs, values, strict=True)):
            storage[0] = value if i in self.lowered.host else self.device.upload(value)
        try:
            self.thunk()
            self._raise_reported_error()
            return self._on_host(self.outputs), self._on_host(self.inputs)
        finally:
            for storage in (*self.inputs, *self.outputs):
                storage[0] = None

    def _raise_reported_error(self) -> None:
        if self.error_flag is None:
            return
        (flag,) = self.device.download(self.error_flag)
        if flag:
            self.error_flag[...] = 0
            assert isinstance(self.thunk, KernelThunk)
            raise self.thunk.reported_error(flag)

    def _on_host(self, storages: list[list[Any]]) -> list[Any]:
        values = [storage[0] for storage in storages]
        return [self.device.download(v) if self.device.holds(v) else v for v in values]
