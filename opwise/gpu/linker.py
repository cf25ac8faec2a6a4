"""The linker of the GPU: Applys that a placement puts there run on it, the others as under c|py."""

from __future__ import annotations

from functools import cache, partial

import numpy as np

from opwise.config import config
from opwise.errors import DeviceError
from opwise.gpu.lowering import SHAPE_OPS as OF_LENGTHS
from opwise.gpu.lowering import Call
from opwise.gpu.machine import DeviceMachine
from opwise.gpu.placement.order import capture_order as stretched
from opwise.gpu.placement.order import is_result as is_last
from opwise.gpu.placement.rewrite import PlaceOnDevice
from opwise.gpu.placement.transfers import GpuFromHost, HostFromGpu
from opwise.gpu.runtime import device as devices
from opwise.gpu.runtime.thunks import CallThunk, KernelThunk, ToDevice, ToHost
from opwise.graph import provenance
from opwise.linkers.base import Linker, reporter
from opwise.linkers.compiled import make_thunk
from opwise.linkers.program import make_program, root, roots_overwritten


class CupyLinker(Linker):
    """Runs a graph on a device, through CuPy.

    device: its name, as in the flag device; by default the flag's, or the first. Nothing asks for
    CuPy or the device before a function is linked.
    """

    implementations = ("cuda", "c", "perform")
    required = ("gpu",)

    def __init__(self, device=None, allow_gc=None, schedule=None):
        super().__init__(allow_gc, schedule)
        self.device = device

    def accept(self, fgraph, no_recycling=None, profile=None):
        linker = super().accept(fgraph, no_recycling, profile)
        if getattr(fgraph, "placement", None) is None:  # its optimizer knows nothing of tags
            PlaceOnDevice().apply(fgraph)
        return linker

    def c_step(self, node, kernels):
        placement = self.fgraph.placement
        if placement.way(node) is not None or isinstance(node.op, GpuFromHost | HostFromGpu):
            return None
        if isinstance(node.op, OF_LENGTHS) and placement.on_device(node.inputs[0]):
            return None
        return super().c_step(node, kernels)

    def make_program(self):
        schedule = self.schedule or partial(stretched, placement=self.fgraph.placement)
        return make_program(self.fgraph, schedule, is_last)

    def make_vm(self, program, storages, steps):
        device = devices.device(devices.index_of(self.device or devices.default_name()))
        with device.active():
            return self._on(device, program, storages, steps)

    def _on(self, device, program, storages, steps):
        on_error = reporter(program, storages)
        made = _Thunks(program, storages, device, self.fgraph.placement)
        thunks = [
            make_thunk(program, k, step, storages) if made.is_host(k) else made.of(k)
            for k, step in enumerate(steps)
        ]
        made.functions.compile()
        vm = DeviceMachine(
            program, storages, thunks, on_error, self.allow_gc, device, self.fgraph.placement,
            made.words,
        )  # fmt: skip
        return vm, thunks


def is_in_use():
    """Return whether the device that is asked for, if any, can be used; warn once if it cannot.

    DeviceError in that case if force_device is set.
    """
    name = devices.asked_for()
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


def under_flag(linker):
    """Return the linker that the flag device puts in place of one of the CPU, if it can."""
    if not is_in_use():
        return linker
    return CupyLinker(allow_gc=linker.allow_gc, schedule=linker.schedule)


@cache
def _warn_once(text):
    provenance.warn(text)


class _Thunks:
    """Makes the thunks of a Program that ask a device for work.

    words: a word on the device for each that may complain, None if there is none.
    """

    def __init__(self, program, storages, device, placement):
        self.program, self.storages, self.device = program, storages, device
        self.functions = Functions(device)
        self.ways = [placement.way(step.node) for step in program.steps]
        complaining = [
            k for k, way in enumerate(self.ways) if getattr(way, "wrong", None) is not None
        ]
        self.number = {k: number for number, k in enumerate(complaining)}
        self.words = device.zeros(len(complaining), "uint32") if complaining else None
        #: slots that are written into, by steps or by those who get results; and that steps read
        self.overwritten = roots_overwritten(program, program.steps)
        self.overwritten |= {root(program, slot) for slot in program.outputs}
        self.read = {slot for step in program.steps for slot in step.inputs}
        #: copies of constants there, by slot
        self.copies = {}

    def is_host(self, k):
        """Return whether step k is none of the device's business."""
        transfers = isinstance(self.program.steps[k].node.op, GpuFromHost | HostFromGpu)
        return self.ways[k] is None and not transfers

    def of(self, k):
        """Return the thunk of step k."""
        step, way, device = self.program.steps[k], self.ways[k], self.device
        node, result = step.node, step.outputs[0]
        outputs = [self.storages[c] for c in step.outputs]
        if isinstance(node.op, GpuFromHost):
            inputs = [self.storages[c] for c in step.inputs]
            return ToDevice(node, inputs, outputs, device, steady=result not in self.overwritten)
        if isinstance(node.op, HostFromGpu):
            return ToHost(node, self._inputs(step), outputs, device, waits=result in self.read)
        inputs = self._inputs(step, way.host)
        if isinstance(way, Call):
            return CallThunk(node, inputs, outputs, device, way)
        self.functions.expect(way.expected)
        word = self.words[self.number[k] :][:1] if k in self.number else None
        return KernelThunk(node, inputs, outputs, device, way, self.functions, word)

    def _inputs(self, step, host=()):
        """Return the storages of a step's inputs, for constants those of copies on the device.

        host: the inputs that it reads on the host.
        """
        return [
            self.storages[c] if i in host or c not in self.program.constants else self._copy(c)
            for i, c in enumerate(step.inputs)
        ]

    def _copy(self, slot):
        if slot not in self.copies:
            value = np.asarray(self.program.constants[slot])
            self.copies[slot] = [self.device.upload(value)]
        return self.copies[slot]


class Functions:
    """The compiled kernels of a function: what is expected at once, others when one comes."""

    def __init__(self, device):
        self.device = device
        self.expected, self.found = {}, {}

    def expect(self, kernels):
        """Have kernels compiled with the others."""
        self.expected.update((k.name, k) for k in kernels)

    def compile(self):
        """Compile what is expected."""
        if self.expected:
            self.found = self.device.functions(list(self.expected.values()))

    def __call__(self, kernel):
        found = self.found.get(kernel.name)
        if found is None:
            self.found.update(self.device.functions([kernel]))
            found = self.found[kernel.name]
        return found
