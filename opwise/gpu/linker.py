"""The linker of the GPU: a device runs the Applys that are placed on it, the host the others."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from functools import cache, partial
from typing import Any, Self

import numpy as np

from opwise.config import config
from opwise.errors import DeviceError
from opwise.gpu.kernels.kernel import Kernel
from opwise.gpu.lowering import SHAPE_OPS, Call
from opwise.gpu.placement.order import capture_order, is_result
from opwise.gpu.placement.placement import Placement
from opwise.gpu.placement.rewrite import PlaceOnDevice
from opwise.gpu.placement.transfers import GpuFromHost, HostFromGpu
from opwise.gpu.runtime import device as devices
from opwise.gpu.runtime.device import Device
from opwise.gpu.runtime.thunks import CallThunk, DeviceThunk, KernelThunk, ToDevice, ToHost
from opwise.gpu.runtime.vm import DeviceVM
from opwise.graph import provenance
from opwise.graph.apply import Apply
from opwise.graph.fgraph import FunctionGraph
from opwise.linkers.base import Linker, Schedule, reporter
from opwise.linkers.compiled import make_thunk
from opwise.linkers.kernels import Kernels
from opwise.linkers.lowering import AnyStep
from opwise.linkers.program import Program, Step, make_program, roots_overwritten
from opwise.linkers.storage import Storage
from opwise.linkers.vm import Thunk


class CupyLinker(Linker):
    """Runs a graph on a device, through CuPy.

    device: its name, as in the flag ``device`` (default: that of the flag, or the first device).
    CuPy is imported, and the device used, when a graph is linked.
    """

    implementations = ("cuda", "c", "perform")
    required = ("gpu",)
    #: kernels add up no neighbours, do no elementwise work behind a convolution, and read no
    #: elements at indices between others
    incompatible = ("window_sums", "conv_elemwise_fusion", "gather_fusion")

    def __init__(
        self,
        device: str | None = None,
        allow_gc: bool | None = None,
        schedule: Schedule | None = None,
    ) -> None:
        super().__init__(allow_gc, schedule)
        self.device = device

    def accept(self, fgraph: FunctionGraph, no_recycling: Any = None, profile: Any = None) -> Self:
        linker = super().accept(fgraph, no_recycling, profile)
        if fgraph.find_feature(Placement) is None:  # as with an optimizer that knows no tags
            PlaceOnDevice().apply(fgraph)
        return linker

    @property
    def _placement(self) -> Placement:
        found = self.fgraph.find_feature(Placement)
        assert found is not None
        return found

    def c_step(self, node: Apply, kernels: Kernels | None) -> AnyStep | None:
        placement = self._placement
        if placement.lowered_for(node) is not None or isinstance(
            node.op, GpuFromHost | HostFromGpu
        ):
            return None
        if isinstance(node.op, SHAPE_OPS) and placement.on_device(node.inputs[0]):
            return None
        return super().c_step(node, kernels)

    def make_program(self, runs_in_c: Callable[[Apply], bool]) -> Program:
        schedule = self.schedule or partial(capture_order, placement=self._placement)
        return make_program(self.fgraph, schedule, is_result, lazy=False)

    def make_vm(
        self, program: Program, storages: Sequence[Storage], steps: Sequence[AnyStep | None]
    ) -> tuple[DeviceVM, list[Thunk]]:
        device = devices.device(devices.index_of(self.device or devices.default_name()))
        placement = self._placement
        with device.active():
            made = _Thunks(program, storages, device, placement)
            thunks = [
                make_thunk(program, k, step, storages) if made.is_host(k) else made.of(k)
                for k, step in enumerate(steps)
            ]
            made.functions.compile()
            on_error = reporter(program, storages)
            vm = DeviceVM(
                program, storages, thunks, on_error, self.allow_gc, device, placement,
                made.error_flags,
            )  # fmt: skip
        return vm, thunks


def is_in_use() -> bool:
    """Return whether the device that is asked for, if any, can be used; warn once if it cannot.

    DeviceError in that case if force_device is set.
    """
    name = devices.requested_name()
    if name == "cpu":
        return False
    try:
        devices.device(devices.index_of(name))
    except DeviceError as error:
        if config.force_device:
            raise
        _warn_once(f"device={name} cannot be used; functions run on the CPU. {error}")
        return False
    return True


def under_flag(linker: Linker) -> Linker:
    """Return the linker of the device that the flag ``device`` names; ``linker`` without one."""
    if not is_in_use():
        return linker
    return CupyLinker(allow_gc=linker.allow_gc, schedule=linker.schedule)


@cache
def _warn_once(text: str) -> None:
    provenance.warn(text)


class _Thunks:
    """Makes the thunks that enqueue the steps of a Program for a device."""

    def __init__(
        self, program: Program, storages: Sequence[Storage], device: Device, placement: Placement
    ) -> None:
        self.program, self.storages, self.device = program, storages, device
        self.functions = Functions(device)
        #: by step, how the device runs it; None on the host
        self.lowered = [placement.lowered_for(step.node) for step in program.steps]
        flagged = [
            k for k, way in enumerate(self.lowered) if getattr(way, "wrong", None) is not None
        ]
        #: by step, the index of its error flag
        self.flag_index = {k: index for index, k in enumerate(flagged)}
        #: a flag for each step whose kernels can report an error; None if there is no such step
        self.error_flags = device.zeros(len(flagged), "uint32") if flagged else None
        #: slots that are overwritten, by steps or by the callers who get results
        self.overwritten = roots_overwritten(program, program.steps)
        self.overwritten |= {program.roots[slot] for slot in program.outputs}
        #: slots that steps read
        self.read = {slot for step in program.steps for slot in step.inputs}
        #: by slot, the storage of a constant's copy on the device
        self.copies: dict[int, Storage] = {}

    def is_host(self, k: int) -> bool:
        """Return whether step k runs on the host."""
        transfers = isinstance(self.program.steps[k].node.op, GpuFromHost | HostFromGpu)
        return self.lowered[k] is None and not transfers

    def of(self, k: int) -> DeviceThunk:
        """Return the thunk of step k."""
        step, lowered, device = self.program.steps[k], self.lowered[k], self.device
        node, result = step.node, step.outputs[0]
        outputs = [self.storages[c] for c in step.outputs]
        if isinstance(node.op, GpuFromHost):
            inputs = [self.storages[c] for c in step.inputs]
            return ToDevice(node, inputs, outputs, device, steady=result not in self.overwritten)
        if isinstance(node.op, HostFromGpu):
            return ToHost(node, self._inputs(step), outputs, device, waits=result in self.read)
        assert lowered is not None
        inputs = self._inputs(step, lowered.host)
        if isinstance(lowered, Call):
            return CallThunk(node, inputs, outputs, device, lowered)
        self.functions.expect(lowered.expected)
        flag = None
        if self.error_flags is not None and k in self.flag_index:
            flag = self.error_flags[self.flag_index[k] :][:1]
        return KernelThunk(node, inputs, outputs, device, lowered, self.functions, flag)

    def _inputs(self, step: Step, host: Collection[int] = ()) -> list[Storage]:
        """Return the storages of a step's inputs; those of constants hold copies on the device.

        host: the inputs that the step reads on the host.
        """
        return [
            self.storages[c] if i in host or c not in self.program.constants else self._copy(c)
            for i, c in enumerate(step.inputs)
        ]

    def _copy(self, slot: int) -> Storage:
        if slot not in self.copies:
            value = np.asarray(self.program.constants[slot])
            self.copies[slot] = [self.device.upload(value)]
        return self.copies[slot]


class Functions:
    """The compiled kernels of a function; unexpected kernels are compiled at their first use."""

    def __init__(self, device: Device) -> None:
        self.device = device
        self.expected: dict[str, Kernel] = {}
        self.found: dict[str, Any] = {}

    def expect(self, kernels: Iterable[Kernel]) -> None:
        """Add kernels to those that ``compile`` compiles together."""
        self.expected.update((k.name, k) for k in kernels)

    def compile(self) -> None:
        """Compile the expected kernels."""
        if self.expected:
            self.found = self.device.functions(list(self.expected.values()))

    def __call__(self, kernel: Kernel) -> Any:
        found = self.found.get(kernel.name)
        if found is None:
            self.found.update(self.device.functions([kernel]))
            found = self.found[kernel.name]
        return found
