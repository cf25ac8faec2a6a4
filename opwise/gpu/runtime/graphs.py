"""CUDA graphs: consecutive Applys on the device, a capture region, become one launch.

The launches of a region depend on its key: layouts and addresses of the arrays that it reads, and
values of the host. A key goes through states:

    UNSEEN --run one by one; requests recorded--> RECORDED --captured--> CAPTURED: launched
       ^                                            |   \\                  |
       +------ the capture requests other memory ---+    +---> REFUSED <---+ no memory

A key is UNSEEN again once it is one of too many, more arrays are staged, or memory is freed.
Until memory is freed, a region runs one by one after CUDA has refused a capture.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, Protocol

import numpy as np

from opwise.config import config
from opwise.gpu.lowering import SHAPE_OPS
from opwise.gpu.runtime import buffers
from opwise.gpu.runtime.device import Device, DeviceArray
from opwise.gpu.runtime.thunks import DeviceThunk
from opwise.graph import provenance
from opwise.linkers.program import Program, roots_overwritten
from opwise.linkers.vm import Thunk
from opwise.tensor.convert import ScalarFromTensor, TensorFromScalar
from opwise.tensor.elemwise import Elemwise

#: arrays up to so many bytes are staged if their address changes: copied to where a graph reads
_STAGED_BYTES = 1 << 20
#: values of the host up to so many bytes are part of a key
_KEY_BYTES = 512
#: the most keys that a region remembers
_CONFIGURATIONS = 8
#: an array is staged when its address has changed so often
_CHANGES = 2
#: the most output buffers of one result: callers may hold all but one
_OUTPUT_BUFFERS = 3
#: the most graphs of one key, for results in other output buffers
_GRAPHS = 4
#: a region runs one by one after so many captures that failed
_FAILURES = 3

#: Ops of numbers whose outputs depend on nothing but their inputs
_PURE = (*SHAPE_OPS, Elemwise, ScalarFromTensor, TensorFromScalar)

#: called as (step, what runs it)
Run = Callable[[int, Callable[[], None]], None]
Key = tuple[Any, ...]


class RegionVM(Protocol):
    """What a capture region needs of the VM."""

    device: Device
    program: Program
    allow_gc: bool
    repeated: bool

    @property
    def storages(self) -> Sequence[list[Any]]:
        """By slot, a list of its one value."""

    @property
    def thunks(self) -> Sequence[Any]:
        """What runs each step."""

    def parts(self, start: int, stop: int) -> bool:
        """Return whether a region from ``start`` must end before step ``stop``."""

    def is_whole(self, start: int, stop: int) -> bool:
        """Return whether steps may become one launch."""

    def run_plainly(self, start: int, stop: int, run: Run) -> None:
        """Run steps one by one."""

    def fail(self, step: int, error: BaseException) -> None:
        """Undo the call and raise an error."""


class State(Enum):
    """What a region knows of a key."""

    #: nothing
    UNSEEN = "unseen"
    #: the memory that its Applys request; the next call captures them
    RECORDED = "recorded"
    #: graphs, one of which is launched unless callers hold all of their results
    CAPTURED = "captured"
    #: there is no memory for (more) graphs; graphs captured before are still launched
    REFUSED = "refused"


def capture_regions(vm: RegionVM) -> dict[int, CaptureRegion]:
    """Return {first step: region} of a VM: the longest regions of at least two launches.

    A VM that is called over and over also has regions of one launch.
    """
    least = 1 if vm.repeated else 2
    found: dict[int, CaptureRegion] = {}
    thunks = vm.thunks
    k = 0
    while k < len(thunks):
        stop = k
        # a region does not begin with a slice: it reads the slice from memory, so that one graph
        # serves all slices
        first = thunks[k]
        if isinstance(first, DeviceThunk) and not first.is_host_view:
            while stop < len(thunks) and _can_be_held(thunks[stop]) and not vm.parts(k, stop):
                stop += 1
        if sum(map(_is_launch, thunks[k:stop])) >= least and vm.is_whole(k, stop):
            found[k] = CaptureRegion(vm, k, stop, len(thunks) + len(found))
        k = max(stop, k + 1)
    return found


def _is_launch(thunk: Thunk) -> bool:
    """Return whether a thunk gives the device work that a graph can hold."""
    return isinstance(thunk, DeviceThunk) and thunk.captured and not thunk.view


def _can_be_held(thunk: Thunk) -> bool:
    """Return whether a region can hold a thunk; it can hold views and numbers of the host."""
    if isinstance(thunk, DeviceThunk):
        return thunk.captured
    node = thunk.node
    return isinstance(node.op, _PURE) and all(
        getattr(v.type, "ndim", 0) == 0 for v in (*node.inputs, *node.outputs)
        if not isinstance(node.op, SHAPE_OPS)
    )  # fmt: skip


class CaptureRegion:
    """The steps of a VM from ``start`` up to ``stop``, and their graphs."""

    def __init__(self, vm: RegionVM, start: int, stop: int, mark: int) -> None:
        self.start, self.stop, self.device = start, stop, vm.device
        #: number of the profiler range in which graphs are launched (``start_marking`` of the VM)
        self.mark = mark
        self.storages, self.thunks = vm.storages, vm.thunks[start:stop]
        program = vm.program
        steps = program.steps[start:stop]
        written = {c for step in steps for c in step.outputs}
        #: slots with values from before the region
        self.reads = tuple(dict.fromkeys(
            c for step in steps for c in step.inputs
            if c not in written and c not in program.constants
        ))  # fmt: skip
        later = {c for step in program.steps[stop:] for c in step.inputs}
        #: slots that are read behind the region
        self.outputs = tuple(c for c in written if c in later or c in program.outputs)
        returned = {program.roots[c] for c in program.outputs}
        #: outputs whose memory outlives the call, since the call returns it or a view of it
        self.lasting = tuple(c for c in self.outputs if program.roots[c] in returned)
        self.dies = [[self.storages[c] for c in step.dies] for step in steps]
        #: the first step that is prepared with all behind it, before any of these runs
        self.prepared = max(start, program.commit) - start
        self.allow_gc = vm.allow_gc
        fixed = roots_overwritten(program, steps) | {program.roots[c] for c in self.outputs}
        self._can_be_staged = {c for c in self.reads if program.roots[c] not in fixed}
        #: slots of ``reads`` whose values are copied to where graphs read them
        self.staged: set[int] = set()
        self.forget()

    def forget(self) -> None:
        """Drop all graphs and their memory: every key is UNSEEN."""
        self._configurations: dict[Key, _Configuration] = {}
        #: by slot, (address, shape, strides) of its last value, and how often the address changed
        self._last_layouts: dict[int, tuple[tuple, int]] = {}
        self._output_buffers: list[_OutputBuffer] = []
        #: (memory of all graphs but for lasting results, bytes)
        self._slab: tuple[Any, int] | None = None
        self._failures = 0
        #: the graph that ran in the last call, or None
        self.launched: CapturedGraph | None = None

    @property
    def captured(self) -> list[CapturedGraph]:
        """All captured graphs."""
        return [graph for one in self._configurations.values() for graph in one.graphs]

    @property
    def holds_memory(self) -> bool:
        """Whether graphs hold memory."""
        return self._slab is not None or bool(self._output_buffers)

    # --- a call -----------------------------------------------------------------------------------

    def run(self, vm: RegionVM, run: Run) -> bool:
        """Run the steps; return whether a graph did."""
        self.launched = None
        key = self._key() if self._failures < _FAILURES else None
        if key is None:
            vm.run_plainly(self.start, self.stop, run)
            return False
        if self._state(key) is not State.UNSEEN and self._run_graph(vm, run, key):
            return True
        if self._state(key) is State.UNSEEN:  # perhaps since its capture requested other memory
            self._record(key, vm, run)
        else:
            vm.run_plainly(self.start, self.stop, run)
        return False

    def _state(self, key: Key) -> State:
        found = self._configurations.get(key)
        return found.state if found is not None else State.UNSEEN

    def _run_graph(self, vm: RegionVM, run: Run, key: Key) -> bool:
        """Run the steps by a graph if possible; return whether one did."""
        configuration = self._configurations[key]
        try:
            graph = configuration.free_graph() or self._capture(key, configuration)
            if graph is None:
                return False
            self._configurations[key] = self._configurations.pop(key)  # now the last to be dropped
            run(self.mark, graph.launch)
            self.launched = graph
        except BaseException as error:  # also an interrupt: the VM undoes the call
            vm.fail(self.start, error)
        return True

    def _key(self) -> Key | None:
        """Return the key of this call; None if a value of the host is too large for a key."""
        key: list[Any] = [config.cuda.tf32]
        for slot in self.reads:
            value = self.storages[slot][0]
            if not self.device.holds(value):
                part = _host_key(value)
                if part is None:
                    return None
                key.append(part)
            elif slot in self.staged or self._begins_staging(slot, value):
                key.append(value.shape)
            else:
                key.append((value.data.ptr, value.shape, value.strides))
        return tuple(key)

    def _begins_staging(self, slot: int, value: DeviceArray) -> bool:
        """Stage a slot if its address has changed often enough; return whether it is staged now."""
        if slot not in self._can_be_staged or value.nbytes > _STAGED_BYTES:
            return False
        now, before = (value.data.ptr, value.shape, value.strides), self._last_layouts.get(slot)
        if before is None or before[0][1:] != now[1:]:
            self._last_layouts[slot] = now, 0
            return False
        changes = before[1] + (before[0] != now)
        self._last_layouts[slot] = now, changes
        if changes < _CHANGES:
            return False
        self.staged.add(slot)
        self._drop(list(self._configurations))  # their graphs read the array from its address
        return True

    def _drop(self, keys: Iterable[Key]) -> None:
        """Make keys UNSEEN."""
        dropped = [self._configurations.pop(key) for key in keys]
        if any(one.graphs for one in dropped):
            self.device.synchronize()  # a graph may be running

    def _record(self, key: Key, vm: RegionVM, run: Run) -> None:
        """Run the steps one by one and record the memory that they request: the key is RECORDED."""
        recorder = buffers.RequestRecorder(self.device.piece, self.device.within)
        # a graph reads these copies; for other layouts, steps would request other memory
        copies = self._staged_copies()
        before = self._replaced(copies)
        try:
            with self.device.allocating(recorder.allocate):
                vm.run_plainly(self.start, self.stop, run)
        finally:
            for c, copy in copies.items():
                if self.storages[c][0] is copy:
                    self.storages[c][0] = before[c]
        lasting = self._lasting_requests(recorder)
        recorder.stop()
        surplus = max(0, len(self._configurations) - _CONFIGURATIONS + 1)
        self._drop(list(self._configurations)[:surplus])
        self._configurations[key] = _Configuration(recorder.requests, lasting)

    def _lasting_requests(self, recorder: buffers.RequestRecorder) -> dict[int, list[int]]:
        """Return {position of a request: the lasting slots whose values lie in its memory}."""
        found: dict[int, list[int]] = {}
        for slot in self.lasting:
            value = self.storages[slot][0]
            if self.device.holds(value):
                request = recorder.request_at(value.data.mem.ptr)
                if request is not None:
                    found.setdefault(request, []).append(slot)
        return found

    def _staged_copies(self) -> dict[int, DeviceArray]:
        """Return {slot: a contiguous copy} of what is staged, as graphs read it."""
        copies = {}
        for c in self.staged:
            value = self.storages[c][0]
            if self.device.holds(value):
                copies[c] = self.device.empty(value.shape, value.dtype)
                copies[c][...] = value
        return copies

    def _replaced(self, values: Mapping[int, Any]) -> dict[int, Any]:
        """Put values into slots; return the values that were there."""
        before = {c: self.storages[c][0] for c in values}
        for c, value in values.items():
            self.storages[c][0] = value
        return before

    # --- capture ----------------------------------------------------------------------------------

    def _capture(self, key: Key, configuration: _Configuration) -> CapturedGraph | None:
        """Capture a graph for what the region reads now, and update the state of the key.

        Returns None if there can be no graph, or if callers hold the results of too many.
        """
        if configuration.state is State.REFUSED or len(configuration.graphs) >= _GRAPHS:
            return None
        before = {c: self.storages[c][0] for c in self.reads}
        try:
            lasting = self._buffers_for_lasting(configuration)
            if lasting is None:
                return None
            graph = self._captured(configuration, lasting, before)
            configuration.graphs.append(graph)
            configuration.state = State.CAPTURED
            return graph
        except self.device.out_of_memory:
            configuration.state = State.REFUSED
        except buffers.RequestsChanged:
            self._failures += 1
            del self._configurations[key]
        except Exception as error:  # of CuPy or CUDA: launches one by one compute the same
            self._failures = _FAILURES
            _warn_of_refusal(error)
        finally:
            self._restore(before)
        return None

    def _restore(self, before: Mapping[int, Any]) -> None:
        """Undo what a capture put into slots."""
        for thunk in self.thunks:
            if isinstance(thunk, DeviceThunk):
                thunk.forget()
            for storage in thunk.outputs:
                storage[0] = None
        for c, value in before.items():
            self.storages[c][0] = value

    def _captured(
        self, recorded: _Configuration, lasting: dict[int, _OutputBuffer], before: dict[int, Any]
    ) -> CapturedGraph:
        """Return a graph whose memory is planned from the recorded requests.

        lasting: {position of a request: its output buffer}. before: values of the slots read.
        """
        addresses, slab = self._addresses(recorded, lasting)
        planned = buffers.PlannedMemory(recorded.requests, addresses, self.device.within)
        copies = self._staged_copies()
        # steps of the host run during the capture, and may overwrite numbers that are read again
        # if the capture fails
        numbers = {c: x.copy() for c, x in before.items() if isinstance(x, np.ndarray)}
        self._replaced({**copies, **numbers})
        with self.device.capturing() as graph, self.device.allocating(planned.allocate):
            self._enqueue_steps()
            planned.end()
        outputs = tuple(
            (self.storages[c], self._getter(c, recorded, lasting, before)) for c in self.outputs
        )
        return CapturedGraph(
            self, graph[0], slab, tuple(copies.items()), tuple(lasting.values()), outputs
        )

    def _enqueue_steps(self) -> None:
        for k, thunk in enumerate(self.thunks):
            if k == self.prepared:
                for late in self.thunks[k:]:
                    assert isinstance(late, DeviceThunk)
                    late.prepare()
            thunk()
            if self.allow_gc:
                for storage in self.dies[k]:
                    storage[0] = None

    def _buffers_for_lasting(self, recorded: _Configuration) -> dict[int, _OutputBuffer] | None:
        """Return {position of a request: buffer} for lasting results; None if all are in use."""
        found: dict[int, _OutputBuffer] = {}
        for request in recorded.lasting:
            size = recorded.requests[request].size
            fitting = [one for one in self._output_buffers if one.size == size]
            free = [one for one in fitting if one.is_free() and one not in found.values()]
            if not free and len(fitting) >= _OUTPUT_BUFFERS * len(recorded.lasting):
                return None
            if not free:
                free = [_OutputBuffer(self.device, size)]
                self._output_buffers += free
            found[request] = free[0]
        return found

    def _addresses(
        self, recorded: _Configuration, lasting: Mapping[int, _OutputBuffer]
    ) -> tuple[list[int], Any]:
        """Return (address of each request, the slab that most of them are in)."""
        inner = [k for k in range(len(recorded.requests)) if k not in lasting]
        offsets, total = buffers.plan([recorded.requests[k] for k in inner])
        if self._slab is None or self._slab[1] < total:
            self._slab = self.device.piece(total), total
        slab = self._slab[0]
        addresses = [0] * len(recorded.requests)
        for k, offset in zip(inner, offsets, strict=True):
            addresses[k] = slab.ptr + offset
        for k, buffer in lasting.items():
            addresses[k] = buffer.memory.ptr
        return addresses, slab

    def _getter(
        self, slot: int, recorded: _Configuration, lasting: Mapping[int, _OutputBuffer],
        before: Mapping[int, Any],
    ) -> Callable[[], Any]:  # fmt: skip
        """Return a function that gives the value of an output after a launch."""
        value = self.storages[slot][0]
        if isinstance(value, np.ndarray):
            return value.copy  # the caller may overwrite it
        if not self.device.holds(value):
            return lambda: value
        for c, source in before.items():
            if c not in self.staged and self.device.holds(source):
                if value.data.mem is source.data.mem:
                    return self._view_getter(c, source, value)
        buffer = next((lasting[k] for k, slots in recorded.lasting.items() if slot in slots), None)
        if buffer is None:
            return lambda: value
        layout = value.data.ptr - buffer.memory.ptr, value.shape, value.strides, value.dtype
        return lambda: buffer.array(*layout)

    def _view_getter(
        self, slot: int, source: DeviceArray, value: DeviceArray
    ) -> Callable[[], DeviceArray]:
        """Return a function that gives an output in the memory of a value that the region reads."""
        storage, offset = self.storages[slot], value.data.ptr - source.data.ptr
        shape, strides, dtype = value.shape, value.strides, value.dtype
        if (offset, shape, strides, dtype) == (0, source.shape, source.strides, source.dtype):
            return lambda: storage[0]
        array_at = self.device.array_at
        return lambda: array_at(storage[0].data + offset, shape, strides, dtype)


def _warn_of_refusal(error: Exception) -> None:
    provenance.warn(
        f"CUDA graph capture failed ({type(error).__name__}: {str(error)[:300]}); launching "
        "kernels one by one. Set cuda.graphs=False to disable capture."
    )


def _host_key(value: Any) -> Any:
    """Return a value of the host as part of a key; None if it is too large or of another type."""
    if isinstance(value, np.ndarray | np.generic):
        small = value.nbytes <= _KEY_BYTES
        return (value.dtype.char, value.shape, value.tobytes()) if small else None
    if isinstance(value, slice):
        return "slice", value.start, value.stop, value.step
    if value is None or isinstance(value, bool | int | float):
        return type(value), value
    return None


# --- what is captured -----------------------------------------------------------------------------


@dataclass
class _Configuration:
    """What a region knows of a key that it has run with."""

    #: the memory that its steps requested, in order
    requests: list[buffers.Request]
    #: {position of a request: the lasting slots whose values lie in its memory}
    lasting: dict[int, list[int]]
    state: State = State.RECORDED
    #: several if callers hold results of earlier launches
    graphs: list[CapturedGraph] = field(default_factory=list)

    def free_graph(self) -> CapturedGraph | None:
        """Return a graph whose earlier results have been released, or None."""
        return next((graph for graph in self.graphs if graph.is_free()), None)


@dataclass(eq=False)
class CapturedGraph:
    """A capture region as a CUDA graph."""

    region: CaptureRegion
    #: launches the graph
    graph: Callable[[], None]
    #: the memory of all values but for lasting results, kept for the graph
    slab: Any
    #: (slot, array that the graph reads in place of the slot's value)
    staged: tuple[tuple[int, DeviceArray], ...]
    #: where lasting results lie
    output_buffers: tuple[_OutputBuffer, ...]
    #: (storage, function that gives its value) of each output
    outputs: tuple[tuple[list[Any], Callable[[], Any]], ...]

    def is_free(self) -> bool:
        """Return whether the results of earlier launches have been released."""
        return all(buffer.is_free() for buffer in self.output_buffers)

    def launch(self) -> None:
        """Run the graph on what the region reads now."""
        storages = self.region.storages
        for slot, array in self.staged:
            array[...] = storages[slot][0]
        try:
            for buffer in self.output_buffers:
                buffer.open()
            self.graph()
            values = [(storage, get()) for storage, get in self.outputs]
        finally:
            for buffer in self.output_buffers:
                buffer.close()
        if self.region.allow_gc:
            for dead in self.region.dies:
                for storage in dead:
                    storage[0] = None
        for storage, value in values:
            storage[0] = value


class _OutputBuffer:
    """Memory for a result that outlives a call: free after every array in it is released."""

    def __init__(self, device: Device, size: int) -> None:
        self.device, self.size = device, size
        self.memory = device.piece(size)
        self._token: _LaunchToken | None = None
        self._last_token: weakref.ref[_LaunchToken] | None = None

    def is_free(self) -> bool:
        return self._last_token is None or self._last_token() is None

    def open(self) -> None:
        """Begin to hand out arrays of one launch."""
        self._token = _LaunchToken()
        self._last_token = weakref.ref(self._token)

    def close(self) -> None:
        """Leave these arrays to those who hold them."""
        self._token = None

    def array(self, offset: int, shape: tuple, strides: tuple, dtype: np.dtype) -> DeviceArray:
        """Return an array in this memory; while it lives, the buffer is not free."""
        memory = self.device.within(self.memory.ptr, self.size, (self._token, self.memory))
        return self.device.array_at(memory + offset, shape, strides, dtype)


class _LaunchToken:
    """Lives as long as some result of one launch does."""
