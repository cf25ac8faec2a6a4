"""Thunks that enqueue work for a device: they launch kernels, call CuPy or copy data."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from opwise.gpu.kernels import layouts
from opwise.gpu.kernels.kernel import (
    Array,
    Implementation,
    Kernel,
    Launch,
    Layout,
    Plan,
    PlanInput,
    arguments,
    error_position,
    on_host,
)
from opwise.gpu.lowering import Call
from opwise.gpu.runtime.device import Device, DeviceArray, DeviceFunction
from opwise.gpu.runtime.staging import Download, Upload
from opwise.graph.apply import Apply
from opwise.linkers.vm import Thunk

#: a list of the one value of a slot
Storage = list[Any]


class DeviceThunk(Thunk):
    """Base of thunks that enqueue work for a device. They do not wait for it."""

    #: whether it only makes a view, so that the device has nothing to do
    view = False
    #: whether a CUDA graph can hold its work
    captured = False
    #: whether it makes a view that depends on numbers of the host, such as a slice
    is_host_view = False
    #: whether nothing can fail after ``prepare``
    preparable = False

    def __init__(
        self, node: Apply, inputs: list[Storage], outputs: list[Storage], device: Device
    ) -> None:
        super().__init__(node, inputs, outputs)
        self.device = device
        #: set, since no Python code computes for the Apply
        self.cthunk = device

    def prepare(self) -> None:
        """Make ready what can fail before ``__call__``; only thunks that are ``preparable`` can."""
        raise NotImplementedError

    def forget(self) -> None:
        """Drop the arrays of a call."""


class CallThunk(DeviceThunk):
    """Calls CuPy."""

    def __init__(
        self, node: Apply, inputs: list[Storage], outputs: list[Storage], device: Device, call: Call
    ) -> None:
        super().__init__(node, inputs, outputs, device)
        self.function, self.view, self.captured = call.function, call.view, call.captured
        self.is_host_view = call.view and bool(call.host)
        #: gives the outputs before the work is done: a view is made without work, and an Apply that
        #: works in place overwrites memory that is there
        self.target = call.function if call.view else call.target if node.op.destroy_map else None
        self.preparable = self.target is not None
        self.ready = False

    def prepare(self) -> None:
        """Check the inputs and set the outputs. Only for thunks that are ``preparable``."""
        assert self.target is not None
        inputs = [storage[0] for storage in self.inputs]
        self._set_outputs(self.target(self.device, self.node, inputs))
        self.ready = True

    def __call__(self) -> None:
        done, self.ready = self.ready and self.view, False
        if not done:
            inputs = [storage[0] for storage in self.inputs]
            self._set_outputs(self.function(self.device, self.node, inputs))

    def _set_outputs(self, values: list[Any]) -> None:
        for storage, value in zip(self.outputs, values, strict=True):
            storage[0] = value

    def forget(self) -> None:
        """Drop what was prepared for a call."""
        self.ready = False


#: (copies from arrays to arrays, arguments of ``Device.launch``, arrays to keep until then)
_Ready = tuple[list[tuple[Any, Any]], list[tuple], dict[str, list[Any]]]
#: (shapes of the outputs, their layouts, launches, bytes of each piece of scratch memory)
_Planned = tuple[list[tuple[int, ...]], tuple[Layout, ...], tuple[Launch, ...], tuple[int, ...]]


class KernelThunk(DeviceThunk):
    """Launches the kernels of an Implementation. Plans are kept by the layouts of the inputs."""

    captured = True
    #: so many plans are kept
    _KEPT = 64

    def __init__(
        self,
        node: Apply,
        inputs: list[Storage],
        outputs: list[Storage],
        device: Device,
        implementation: Implementation,
        functions: Callable[[Kernel], DeviceFunction],
        error_flag: DeviceArray | None,
    ) -> None:
        """functions: from a kernel to its compiled function. error_flag: an array of one element on
        the device, or None if the kernels cannot report an error."""
        super().__init__(node, inputs, outputs, device)
        self.implementation, self.functions = implementation, functions
        #: an array of one element on the device, where kernels report errors; None if they cannot
        self.error_flag = error_flag
        self.dtypes = [out.type.numpy_dtype for out in node.outputs]
        #: by output, the input whose memory it overwrites
        self.inplace = {k: inputs[0] for k, inputs in node.op.destroy_map.items()}
        #: (output, input) pairs: the input is copied to the output before the launches
        self.copies = [(k, i) for k, i in implementation.copied.items() if k not in self.inplace]
        self.plans: dict[tuple, _Planned] = {}
        self.ready: _Ready | None = None
        #: the inputs of the last call, as ``Implementation.wrong`` takes them
        self.last_inputs: list[Any] | None = None
        self.preparable = error_flag is None

    def __call__(self) -> None:
        if self.ready is None:
            self.prepare()
        assert self.ready is not None
        (copies, launches, _), self.ready = self.ready, None
        for source, target in copies:
            target[...] = source
        for launch in launches:
            self.device.launch(*launch)

    def prepare(self) -> None:
        """Allocate the outputs and prepare the launches. Nothing can fail after it."""
        values = [storage[0] for storage in self.inputs]
        host = self.implementation.host
        key = tuple([on_host(x) if i in host else Layout.of(x) for i, x in enumerate(values)])
        planned = self.plans.get(key)
        shapes = planned[0] if planned is not None else self.implementation.shapes(list(key))
        outputs = self._outputs(values, shapes)
        out_layouts = tuple([Layout.of(z) for z in outputs])
        if planned is None or planned[1] != out_layouts:
            planned = self._plan(key, shapes, out_layouts)
        _, _, launches, scratch_bytes = planned
        scratch = [self.device.empty((n,), np.uint8) for n in scratch_bytes]
        arrays = {"in": values, "out": outputs, "scratch": scratch, "error_flag": [self.error_flag]}
        copies = [(values[i], outputs[k]) for k, i in self.copies]
        # keeps the arrays until the launches are enqueued
        self.ready = copies, [self._ready(launch, arrays) for launch in launches], arrays
        if self.error_flag is not None:
            needed = self.implementation.error_inputs
            self.last_inputs = [x if i in needed else key[i] for i, x in enumerate(values)]
        for storage, value in zip(self.outputs, outputs, strict=True):
            storage[0] = value

    def _outputs(self, values: list[Any], shapes: list[tuple[int, ...]]) -> list[DeviceArray]:
        """Return the arrays of the outputs: new ones, or inputs overwritten or passed on."""
        aliases = self.implementation.aliases
        outputs = []
        for k, (shape, dtype) in enumerate(zip(shapes, self.dtypes, strict=True)):
            own = self.inplace.get(k, aliases.get(k))
            if own is None or (k in aliases and not _is_contiguous(values[own])):
                outputs.append(self.device.empty(shape, dtype))
            else:
                outputs.append(values[own])
        return outputs

    def _plan(
        self, key: tuple[PlanInput, ...], shapes: list[tuple[int, ...]], outputs: tuple[Layout, ...]
    ) -> _Planned:
        aliases = self.implementation.aliases
        if aliases and all(_is_contiguous(key[i]) for i in aliases.values()):
            plan = Plan(())
        else:
            plan = self.implementation.plan(list(key), list(outputs), self.device.limits)
        if len(self.plans) >= self._KEPT:
            self.plans.clear()
        planned = self.plans[key] = shapes, outputs, plan.launches, plan.scratch
        return planned

    def _ready(self, launch: Launch, arrays: dict[str, list[Any]]) -> tuple:
        """Return the arguments of ``Device.launch``."""

        def address(array: Array) -> int:
            return arrays[array.kind][array.position].data.ptr + array.offset

        function = self.functions(launch.kernel)
        self.device.allow(function, launch.shared)
        return function, launch.grid, launch.block, arguments(launch, address), launch.shared

    def reported_error(self, word: int) -> Exception:
        """Return the error that an error flag other than 0 reports, about the last inputs."""
        assert self.last_inputs is not None and self.implementation.wrong is not None
        inputs = [
            self.device.download(x) if i in self.implementation.error_inputs else x
            for i, x in enumerate(self.last_inputs)
        ]
        return self.implementation.wrong(error_position(word), inputs)

    def forget(self) -> None:
        """Drop the arrays of a call."""
        self.ready = self.last_inputs = None


def _is_contiguous(array: Layout | DeviceArray) -> bool:
    layout = array if isinstance(array, Layout) else Layout.of(array)
    return layouts.is_contiguous(layout)


class ToDevice(DeviceThunk):
    """Copies an array of the host to the device."""

    def __init__(
        self,
        node: Apply,
        inputs: list[Storage],
        outputs: list[Storage],
        device: Device,
        steady: bool,
    ) -> None:
        """steady: whether nobody overwrites the copy."""
        super().__init__(node, inputs, outputs, device)
        self.upload = Upload(device, steady)

    def __call__(self) -> None:
        value = self.inputs[0][0]
        if value is None:
            raise ValueError("expected an ndarray, not None")
        self.outputs[0][0] = self.upload(value)


class ToHost(DeviceThunk):
    """Enqueues the copy of an array to the host; ``set_output`` puts it into the output."""

    def __init__(
        self,
        node: Apply,
        inputs: list[Storage],
        outputs: list[Storage],
        device: Device,
        waits: bool,
    ) -> None:
        """waits: whether to set the output at once, since another Apply reads it."""
        super().__init__(node, inputs, outputs, device)
        self.download, self.waits = Download(device), waits

    def prepare(self) -> None:
        """Do nothing: the memory of the host is there."""

    def enqueue(self) -> None:
        """Enqueue the copy."""
        self.download.enqueue(self.inputs[0][0])

    def __call__(self) -> None:
        self.enqueue()
        if self.waits:
            self.device.synchronize()
            self.set_output()

    def set_output(self) -> None:
        """Set the output, after the device has made the copy."""
        self.outputs[0][0] = self.download.result()

    def forget(self) -> None:
        """Drop the arrays of a call."""
        self.download.forget()
