"""CUDA graphs: Applys that follow each other on the device, a stretch, become one launch.

What a stretch does depends on the layouts and addresses of what it reads, and on numbers that the
host gives it. When they come the first time its Applys run one by one, and what they ask of memory
is recorded; the second time a plan puts that into one piece of memory, and their launches are
captured; from then on the graph is launched. Small arrays that lie elsewhere in each call are
copied to where the graph reads them.
"""

from __future__ import annotations

import weakref
from dataclasses import dataclass, field

import numpy as np

from opwise.config import config
from opwise.gpu.lowering import SHAPE_OPS
from opwise.gpu.runtime import buffers
from opwise.gpu.runtime.thunks import DeviceThunk
from opwise.graph import provenance
from opwise.linkers.program import root, roots_overwritten
from opwise.tensor.convert import ScalarFromTensor, TensorFromScalar
from opwise.tensor.elemwise import Elemwise

#: bytes up to which an array that lies elsewhere in each call is copied
_MOVED = 1 << 20
#: bytes up to which what the host gives is part of what a stretch depends on
_TOLD = 512
#: what a stretch is kept for: so many sets of layouts, addresses and numbers
_KEPT = 8
#: so often does an array that could be copied lie elsewhere before it is
_CHANGES = 2
#: places for one result that outlives the call, in the hands of those who got it
_HOMES = 3
#: graphs of the same, for results in other places
_VARIANTS = 4
#: captures that may fail before no other is tried
_FAILURES = 3

#: Ops of numbers that give the same for the same
_PURE = (*SHAPE_OPS, Elemwise, ScalarFromTensor, TensorFromScalar)


def stretches(machine):
    """Return {first step: Stretch} of a machine, each as long as it can be, with two launches."""
    found, thunks = {}, machine.thunks
    k = 0
    while k < len(thunks):
        stop = k
        # what a slice shows is read from memory, so that one graph does for all slices
        if isinstance(thunks[k], DeviceThunk) and not thunks[k].told:
            while stop < len(thunks) and _belongs(thunks[stop]) and not machine.parts(k, stop):
                stop += 1
        if sum(map(_works, thunks[k:stop])) > 1 and machine.is_whole(k, stop):
            found[k] = Stretch(machine, k, stop, len(thunks) + len(found))
        k = max(stop, k + 1)
    return found


def _works(thunk):
    """Return whether the device has something to do for a thunk, and a graph can hold it."""
    return isinstance(thunk, DeviceThunk) and thunk.captured and not thunk.view


def _belongs(thunk):
    """Return whether a stretch can hold a thunk: views, and the host's numbers, are part of it."""
    if isinstance(thunk, DeviceThunk):
        return thunk.captured
    node = thunk.node
    return isinstance(node.op, _PURE) and all(
        getattr(v.type, "ndim", 0) == 0 for v in (*node.inputs, *node.outputs)
        if not isinstance(node.op, SHAPE_OPS)
    )  # fmt: skip


class Stretch:
    """The steps of a machine from ``start`` up to ``stop``.

    mark: the number of the range in which it is launched; see ``DeviceMachine.start_marking``.
    reads: cells that come from before. gives: those that are read behind it; lasting: of these what
    the call returns, or makes a result of in the same memory. moved: those of reads whose values
    are copied to where the graph reads them.
    """

    def __init__(self, machine, start, stop, mark):
        self.start, self.stop, self.mark, self.device = start, stop, mark, machine.device
        self.storages, self.thunks = machine.storages, machine.thunks[start:stop]
        program = machine.program
        steps = program.steps[start:stop]
        written = {c for step in steps for c in step.outputs}
        self.reads = tuple(dict.fromkeys(
            c for step in steps for c in step.inputs
            if c not in written and c not in program.constants
        ))  # fmt: skip
        later = {c for step in program.steps[stop:] for c in step.inputs}
        self.gives = tuple(c for c in written if c in later or c in program.outputs)
        returned = {root(program, c) for c in program.outputs}
        self.lasting = tuple(c for c in self.gives if root(program, c) in returned)
        self.dies = [[self.storages[c] for c in step.dies] for step in steps]
        self.prepared = max(start, program.commit) - start
        self.allow_gc = machine.allow_gc
        kept = roots_overwritten(program, steps) | {root(program, c) for c in self.gives}
        self._movable = {c for c in self.reads if root(program, c) not in kept}
        self.moved: set[int] = set()
        self.forget()

    def forget(self):
        """Let go of all graphs and their memory."""
        self._known: dict[tuple, _Known] = {}
        self._lately: dict = {}
        self._homes: list[_Home] = []
        self._slab = None
        self._failures = 0

    @property
    def captured(self):
        """The graphs that there are."""
        return [graph for known in self._known.values() for graph in known.graphs]

    @property
    def holds_memory(self):
        """Whether there is memory for graphs."""
        return self._slab is not None or bool(self._homes)

    # --- a call -----------------------------------------------------------------------------------

    def run(self, machine, run):
        """Run the steps; returns whether that was by a graph. run: called as (step, thunk)."""
        key = self._key() if self._failures < _FAILURES else None
        known = self._known.get(key)
        if known is not None and self._run_graph(machine, run, key, known):
            return True
        if key is not None and key not in self._known:
            self._record(key, machine, run)
        else:
            machine.run_plainly(self.start, self.stop, run)
        return False

    def _run_graph(self, machine, run, key, known):
        """Run the steps by a graph, if there can be one; returns whether."""
        try:
            graph = known.free_graph() or self._capture(key, known)
            if graph is None:
                return False
            self._known[key] = self._known.pop(key)  # the oldest ones go first
            run(self.mark, graph.launch)
        except BaseException as error:  # be it an interrupt: nothing is left of the call
            machine.fail(self.start, error)
        return True

    def _key(self):
        """Return what the stretch depends on; None where that cannot be said in few words."""
        key = [config.cuda.tf32]
        for cell in self.reads:
            value = self.storages[cell][0]
            if not self.device.holds(value):
                told = _told(value)
                if told is None:
                    return None
                key.append(told)
            elif cell in self.moved or self._moves(cell, value):
                key.append(value.shape)
            else:
                key.append((value.data.ptr, value.shape, value.strides))
        return tuple(key)

    def _moves(self, cell, value):
        """Return whether an array that can be copied lies elsewhere than one like it before."""
        if cell not in self._movable or value.nbytes > _MOVED:
            return False
        now, before = (value.data.ptr, value.shape, value.strides), self._lately.get(cell)
        if before is None or before[0][1:] != now[1:]:
            self._lately[cell] = now, 0
            return False
        changes = before[1] + (before[0] != now)
        self._lately[cell] = now, changes
        if changes < _CHANGES:
            return False
        self.moved.add(cell)
        self._drop(list(self._known))  # they read it from one place
        return True

    def _drop(self, keys):
        if any(self._known.pop(key).graphs for key in keys):
            self.device.synchronize()  # one may be at work

    def _record(self, key, machine, run):
        recorder = buffers.Recorder(self.device.piece, self.device.within)
        copies = self._copies()  # a graph reads such: of other layouts, memory is asked otherwise
        before = self._replaced(copies)
        try:
            with self.device.allocating(recorder.allocate):
                machine.run_plainly(self.start, self.stop, run)
        finally:
            for c, copy in copies.items():
                if self.storages[c][0] is copy:
                    self.storages[c][0] = before[c]
        lasting: dict[int, list[int]] = {}
        for cell in self.lasting:
            value = self.storages[cell][0]
            if self.device.holds(value):
                request = recorder.request_at(value.data.mem.ptr)
                if request is not None:
                    lasting.setdefault(request, []).append(cell)
        recorder.stop()
        self._drop(list(self._known)[: max(0, len(self._known) - _KEPT + 1)])
        self._known[key] = _Known(recorder.requests, lasting)

    def _copies(self):
        """Return {cell: copy} of what is moved: one like a graph reads."""
        copies = {}
        for c in self.moved:
            value = self.storages[c][0]
            if self.device.holds(value):
                copies[c] = self.device.empty(value.shape, value.dtype)
                copies[c][...] = value
        return copies

    def _replaced(self, values):
        """Put values into cells; returns those that were there."""
        before = {c: self.storages[c][0] for c in values}
        for c, value in values.items():
            self.storages[c][0] = value
        return before

    # --- capture ----------------------------------------------------------------------------------

    def _capture(self, key, known):
        """Return a graph for what the stretch reads now, or None; it is known from now on."""
        if known.refused or len(known.graphs) >= _VARIANTS:
            return None
        before = {c: self.storages[c][0] for c in self.reads}
        try:
            homes = self._homes_for(known)
            if homes is None:
                return None
            graph = self._captured(known, homes, before)
            known.graphs.append(graph)
            return graph
        except self.device.out_of_memory:
            known.refused = True
        except buffers.Changed:
            self._failures += 1
            del self._known[key]  # it is recorded once more
        except Exception as error:  # of CuPy, of CUDA: launches one by one do the same
            self._failures = _FAILURES
            provenance.warn(
                f"Kernels are launched one by one: they cannot be captured as a CUDA graph "
                f"({type(error).__name__}: {str(error)[:300]}). With the flag cuda.graphs=False "
                "nobody tries."
            )
        finally:
            for thunk in self.thunks:
                if isinstance(thunk, DeviceThunk):
                    thunk.forget()
                for cell in thunk.outputs:
                    cell[0] = None
            for c, value in before.items():
                self.storages[c][0] = value
        return None

    def _captured(self, recorded, homes, before):
        addresses, slab = self._placed(recorded, homes)
        placed = buffers.Placed(recorded.requests, addresses, self.device.within)
        buffer_of = self._copies()
        # the host's work is done here too, and what it overwrites is read again if this fails
        numbers = {c: x.copy() for c, x in before.items() if isinstance(x, np.ndarray)}
        self._replaced({**buffer_of, **numbers})
        with self.device.capturing() as graph, self.device.allocating(placed.allocate):
            self._ask_each()
            placed.end()
        made = Captured(self, graph[0], slab, tuple(buffer_of.items()), tuple(homes.values()))
        made.gives = tuple(
            (self.storages[c], self._given(c, recorded, homes, before)) for c in self.gives
        )
        return made

    def _ask_each(self):
        for k, thunk in enumerate(self.thunks):
            if k == self.prepared:
                for late in self.thunks[k:]:
                    late.prepare()
            thunk()
            if self.allow_gc:
                for cell in self.dies[k]:
                    cell[0] = None

    def _homes_for(self, recorded):
        """Return {request: _Home} for what outlives the call; None where all are taken."""
        found = {}
        for request in recorded.lasting:
            size = recorded.requests[request].size
            those = [home for home in self._homes if home.size == size]
            free = [home for home in those if home.is_free() and home not in found.values()]
            if not free and len(those) >= _HOMES * len(recorded.lasting):
                return None
            if not free:
                free = [_Home(self.device, size)]
                self._homes += free
            found[request] = free[0]
        return found

    def _placed(self, recorded, homes):
        """Return (address of each request, the memory that they are in)."""
        inner = [k for k in range(len(recorded.requests)) if k not in homes]
        offsets, total = buffers.plan([recorded.requests[k] for k in inner])
        if self._slab is None or self._slab[1] < total:
            self._slab = self.device.piece(total), total
        slab = self._slab[0]
        addresses = [0] * len(recorded.requests)
        for k, offset in zip(inner, offsets, strict=True):
            addresses[k] = slab.ptr + offset
        for k, home in homes.items():
            addresses[k] = home.memory.ptr
        return addresses, slab

    def _given(self, cell, recorded, homes, before):
        """Return the function that gives what the cell holds behind a launch."""
        value = self.storages[cell][0]
        if isinstance(value, np.ndarray):
            return value.copy  # those who get it may overwrite it
        if not self.device.holds(value):
            return lambda: value
        for c, source in before.items():
            if c not in self.moved and self.device.holds(source):
                if value.data.mem is source.data.mem:
                    return self._view(c, source, value)
        home = next((homes[k] for k, cells in recorded.lasting.items() if cell in cells), None)
        if home is None:
            return lambda: value
        layout = value.data.ptr - home.memory.ptr, value.shape, value.strides, value.dtype
        return lambda: home.array(*layout)

    def _view(self, cell, source, value):
        """Return the function that gives what a stretch made of memory that it reads."""
        storage, offset = self.storages[cell], value.data.ptr - source.data.ptr
        shape, strides, dtype = value.shape, value.strides, value.dtype
        if (offset, shape, strides, dtype) == (0, source.shape, source.strides, source.dtype):
            return lambda: storage[0]
        array_at = self.device.array_at
        return lambda: array_at(storage[0].data + offset, shape, strides, dtype)


@dataclass
class _Known:
    """What a stretch asked of memory, and the graphs that were captured since: several where those
    who got results keep them. lasting: {request: the lasting cells that lie in it}."""

    requests: list
    lasting: dict
    graphs: list = field(default_factory=list)
    refused: bool = False

    def free_graph(self):
        """Return a graph whose results of an earlier launch nobody has any more, or None."""
        return next((graph for graph in self.graphs if graph.is_free()), None)


@dataclass(eq=False)
class Captured:
    """A stretch as a graph. slab: its memory. moved: (cell, where the graph reads it). homes: where
    results lie that outlive the call. gives: (storage, function that gives its value)."""

    stretch: Stretch
    graph: object
    slab: object
    moved: tuple
    homes: tuple
    gives: tuple = field(default=())

    def is_free(self):
        """Return whether nobody has results of an earlier launch any more."""
        return all(home.is_free() for home in self.homes)

    def launch(self):
        """Run it on what the stretch reads now."""
        storages = self.stretch.storages
        for cell, buffer in self.moved:
            buffer[...] = storages[cell][0]
        try:
            for home in self.homes:
                home.open()
            self.graph()
            values = [(storage, give()) for storage, give in self.gives]
        finally:
            for home in self.homes:
                home.close()
        if self.stretch.allow_gc:
            for cells in self.stretch.dies:
                for cell in cells:
                    cell[0] = None
        for storage, value in values:
            storage[0] = value


class _Home:
    """Memory for a result that outlives a call: free when nobody has an array there."""

    def __init__(self, device, size):
        self.device, self.size = device, size
        self.memory = device.piece(size)
        self._owner = self._taken = None

    def is_free(self):
        return self._taken is None or self._taken() is None

    def open(self):
        """Give out arrays from now on, all for one owner."""
        self._owner = _Owner()
        self._taken = weakref.ref(self._owner)

    def close(self):
        """Leave those arrays to who has them."""
        self._owner = None

    def array(self, offset, shape, strides, dtype):
        """Return an array in this memory, which is taken as long as it is there."""
        memory = self.device.within(self.memory.ptr, self.size, (self._owner, self.memory))
        return self.device.array_at(memory + offset, shape, strides, dtype)


class _Owner:
    """Lives as long as arrays of one launch do."""


def _told(value):
    """Return a value of the host as part of a key; None if there is none."""
    if isinstance(value, np.ndarray | np.generic):
        return (value.dtype.char, value.shape, value.tobytes()) if value.nbytes <= _TOLD else None
    if isinstance(value, slice):
        return "slice", value.start, value.stop, value.step
    if value is None or isinstance(value, bool | int | float):
        return type(value), value
    return None
