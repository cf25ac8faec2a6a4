"""Device: the GPU through CuPy. No other module imports CuPy, and this one not before it is asked.

Everything that a function does on a device is on one stream; what is given back to the host waits
for it. What is captured goes through another, on which nothing runs. Memory is CuPy's pool; a
Device counts what is in use, and the most that ever was.
"""

from __future__ import annotations

import ctypes
import importlib
import re
import sys
import threading
from contextlib import contextmanager, suppress
from functools import cached_property

import numpy as np

from opwise.config import config
from opwise.errors import DeviceError
from opwise.gpu import blas, kernel
from opwise.graph import hooks, target
from opwise.linkers import kernelcache

#: what a flag says for the first device: the names of old and new programs
_NAMES = re.compile(r"(?:cuda|gpu)(\d*)")
#: bytes of shared memory that a kernel has without asking for more
_PLAIN_SHARED = 48 * 1024

_devices: dict[int, Device] = {}
_lock = threading.Lock()


def index_of(name):
    """Return the number of the device that a name like ``cuda``, ``cuda1`` or ``gpu0`` means.

    Raises DeviceError for another name.
    """
    match = _NAMES.fullmatch(name)
    if match is None:
        raise DeviceError(f"device={name}: opwise runs on cpu, cuda, cuda0, cuda1, ...")
    return int(match[1] or 0)


def device(index=0):
    """Return the Device of a number; DeviceError, which says what is missing, if there is none."""
    with _lock:
        found = _devices.get(index)
        if found is None:
            found = _devices[index] = Device(_cupy(), index)
            hooks.to_host = as_host
            if config.print_active_device and asked_for() != "cpu":
                print(f"Using cuda{index}: {found.name}", file=sys.stderr)
        return found


def asked_for():
    """Return the name of the device that the program or the flag device asks for, or ``cpu``."""
    return target.device_name()


def default_name():
    """Return the name of the device that is asked for; ``cuda`` if it is the CPU."""
    name = asked_for()
    return name if name != "cpu" else "cuda"


def opened():
    """Return the Devices that are in use."""
    return list(_devices.values())


#: the command that installs CuPy; it works whether or not pip installed opwise
_INSTALL = "pip install 'cupy-cuda13x[ctk]' (cupy-cuda12x for older drivers)"


def _cupy():
    try:
        import cupy
    except ImportError as error:
        raise DeviceError(
            f"The GPU needs CuPy, which cannot be imported ({error}): install it with "
            f"{_INSTALL}, or use device=cpu in OPWISE_FLAGS."
        ) from None
    return cupy


class Device:
    """One GPU. xp: the module cupy, or its emulator. index: the device's number.

    Raises DeviceError if there is no driver, or no device of that number.
    """

    def __init__(self, xp, index=0):
        self.xp, self.index = xp, index
        try:
            count = xp.cuda.runtime.getDeviceCount()
            if not 0 <= index < count:
                known = ", ".join(f"cuda{k}" for k in range(count)) or "none"
                raise DeviceError(f"There is no device cuda{index}; those that there are: {known}")
            self._handle = xp.cuda.Device(index)
            with self._handle:
                self.stream = xp.cuda.Stream()
        except xp.cuda.runtime.CUDARuntimeError as error:
            raise DeviceError(
                f"CuPy finds no GPU that it can use ({error}): see that nvidia-smi lists one and "
                "that the driver is as new as CuPy's CUDA, or use device=cpu in OPWISE_FLAGS."
            ) from None
        #: what CuPy raises where there is no memory left
        self.out_of_memory = xp.cuda.memory.OutOfMemoryError
        self._watch = _Watch(xp, index)
        self._modules: dict[str, object] = {}
        #: by stream, what computes products there
        self._products: dict[int, blas.Blas] = {}
        #: 0-d arrays by value and dtype
        self._numbers: dict[tuple, object] = {}
        #: (event, pinned memory) of copies that are under way for nobody any more
        self._leaving: list[tuple] = []
        self._side = None
        self._side_lock = threading.Lock()
        self._thread = threading.local()

    @contextmanager
    def active(self):
        """Make it the device of this thread and its stream CuPy's, until the block ends."""
        with self._handle, self.stream:
            self._watch.begin()
            yield

    @cached_property
    def facts(self):
        """What plans of launches ask: processors, and bytes of shared memory of a block."""
        about = self._handle.attributes
        return kernel.Device(
            about["MultiProcessorCount"],
            about.get("MaxSharedMemoryPerBlockOptin", about["MaxSharedMemoryPerBlock"]),
        )

    @cached_property
    def name(self):
        """The name of the GPU."""
        name = self.xp.cuda.runtime.getDeviceProperties(self.index)["name"]
        return name.decode() if isinstance(name, bytes) else name

    # --- arrays -----------------------------------------------------------------------------------

    def holds(self, value):
        """Return whether a value is an array in the memory of a device."""
        return isinstance(value, self.xp.ndarray) and value.data.device_id == self.index

    def empty(self, shape, dtype):
        """Return an array with any content."""
        return self.xp.empty(shape, dtype)

    def zeros(self, shape, dtype):
        """Return an array of zeros."""
        return self.xp.zeros(shape, dtype)

    def upload(self, value):
        """Return a copy of a numpy array in device memory; the array may change afterwards."""
        return self.xp.array(value, copy=True, blocking=True)

    def number(self, value, dtype):
        """Return a number as a 0-d array of the device, the same one each time."""
        key = value, np.dtype(dtype).char
        if key not in self._numbers:
            self._numbers[key] = self.upload(np.array(value, dtype))
        return self._numbers[key]

    def download(self, array):
        """Return a copy in the host's memory; waits for all that was asked of the device."""
        return self.xp.asnumpy(array)

    def synchronize(self):
        """Wait for all that was asked of the device."""
        self.stream.synchronize()

    def compact(self, array):
        """Return an array whose elements lie in C order without gaps: a copy, or itself."""
        return array if array.flags.c_contiguous else self.xp.ascontiguousarray(array)

    # --- copies that nobody waits for -------------------------------------------------------------

    def pinned(self, size):
        """Return bytes of the host that the device reads and writes by itself, as an array."""
        leaving, self._leaving = self._leaving, []  # others may be added meanwhile
        self._leaving += [one for one in leaving if not one[0].done]
        return np.frombuffer(self.xp.cuda.alloc_pinned_memory(size), np.uint8, size)

    def leave(self, event, memory):
        """Keep pinned memory that nobody needs but the device, until an event is past: whoever asks
        next would be given it at once."""
        self._leaving.append((event, memory))

    def send(self, array, source):
        """Copy an array of the host into one of the device, both in C order.

        If it is in pinned memory, that must stay as it is until the device has come so far; of
        other memory there is a copy when this returns.
        """
        self._copy(array.data.ptr, source.ctypes.data, source.nbytes, "memcpyHostToDevice")

    def fetch(self, target, array):
        """Copy an array of the device, in C order, into pinned memory; it is there later."""
        self._copy(target.ctypes.data, array.data.ptr, array.nbytes, "memcpyDeviceToHost")

    def _copy(self, target, source, size, kind):
        runtime = self.xp.cuda.runtime
        if size:
            runtime.memcpyAsync(target, source, size, getattr(runtime, kind), self.stream.ptr)

    # --- products ---------------------------------------------------------------------------------

    @property
    def blas(self):
        """Products for what this thread asks of the device: that is run, or captured."""
        capturing = getattr(self._thread, "capturing", False)
        return self._blas_of(self._side if capturing else self.stream)

    def _blas_of(self, stream):
        found = self._products.get(stream.ptr)
        if found is None:
            found = blas.Blas(self._blas_library, stream.ptr, self._workspace)
            self._products[stream.ptr] = found
        return found

    @cached_property
    def _blas_library(self):
        """cuBLAS as CuPy has loaded it: its functions are found through CuPy's extension."""
        try:
            # CuPy looks for the library when its package is asked for the extension, not when the
            # extension is imported by its full name
            from cupy_backends.cuda.libs import cublas

            return ctypes.CDLL(cublas.__file__)
        except (ImportError, OSError) as error:
            raise DeviceError(
                f"CuPy cannot load cuBLAS ({str(error)[:500]}): install it with CUDA's libraries, "
                f"{_INSTALL}, or use device=cpu in OPWISE_FLAGS."
            ) from error

    @cached_property
    def _workspace(self):
        hopper = int(self._handle.compute_capability) >= 90
        size = blas.WORKSPACE if hopper else blas.WORKSPACE_BEFORE_HOPPER
        self._workspace_memory = self.xp.cuda.Memory(size)  # no part of what the pool counts
        return self._workspace_memory.ptr, size

    # --- memory -----------------------------------------------------------------------------------

    def allocated(self):
        """Return (bytes in use now, the most that were in use at once)."""
        with self._handle:
            current = self._watch.pool.used_bytes()
        return current, max(current, self._watch.peak)

    def memory_info(self):
        """Return (bytes that are free, all that the device has)."""
        with self._handle:
            return self.xp.cuda.runtime.memGetInfo()

    def free(self):
        """Give back what the pool holds and nobody uses."""
        self._watch.pool.free_all_blocks()

    def piece(self, size):
        """Return memory of the pool, with its address as ``ptr``: in use as long as it is held."""
        return self._watch.pool.malloc(size)

    def within(self, address, size, owner):
        """Return what CuPy takes for memory: part of a piece; owner: is kept as long as it is."""
        memory = self.xp.cuda.UnownedMemory(address, size, owner, self.index)
        return self.xp.cuda.MemoryPointer(memory, 0)

    def array_at(self, memory, shape, strides, dtype):
        """Return an array in memory that ``within`` or an array's ``data`` gave."""
        return self.xp.ndarray(shape, dtype, memory, strides)

    def allocating(self, allocate):
        """Return a context in which this thread takes its memory from ``allocate``."""
        return self.xp.cuda.using_allocator(allocate)

    # --- graphs -----------------------------------------------------------------------------------

    @contextmanager
    def capturing(self):
        """Capture what this thread asks of the device in the block, in place of running it.

        Gives a list; behind the block it holds a function that runs all of it. Raises what CUDA
        raises where something cannot be captured.
        """
        with self._side_lock:
            if self._side is None:
                self._side = self.xp.cuda.Stream(non_blocking=True)
            if self._products:
                self._blas_of(self._side)  # it cannot be made meanwhile
            found = []
            self._thread.capturing = True
            try:
                with self._side:
                    self._side.begin_capture()
                    try:
                        yield found
                    except BaseException:
                        self._abandon()
                        raise
                    graph = self._side.end_capture()
            finally:
                self._thread.capturing = False
            found.append(lambda: graph.launch(self.stream))

    def _abandon(self):
        """End a capture that failed; it may be that CUDA has done so, and says it again."""
        with suppress(self.xp.cuda.runtime.CUDARuntimeError):
            self._side.end_capture()

    # --- kernels ----------------------------------------------------------------------------------

    def functions(self, kernels):
        """Compile kernels, or take them from the cache; return {name: function}.

        Raises DeviceError where CuPy cannot compile.
        """
        text = kernel.module_text(kernels)
        try:
            module = self._modules.get(text)
            if module is None:
                path = self._compiled(text)
                module = self._modules[text] = self.xp.RawModule(path=path)
            return {one.name: module.get_function(one.name) for one in kernels}
        except Exception as error:  # of NVRTC, of the loader, of files: CuPy has no class for all
            raise DeviceError(
                f"CuPy cannot compile kernels ({type(error).__name__}: {str(error)[:500]}): "
                f"install it with CUDA's libraries, {_INSTALL}, or use device=cpu in "
                "OPWISE_FLAGS."
            ) from error

    def _compiled(self, text):
        """Return a file with a compiled text: CuPy loads it later, so it is a copy nobody changes.

        RawModule would compile with denormal numbers taken for 0, whatever it is told.
        """
        version, arch = self.xp.__version__, str(self._handle.compute_capability)
        key = kernel.digest(text, *kernel.OPTIONS, arch, version)
        name = f"{key}.cubin"
        binary = kernelcache.read(name, key)
        if binary is None:
            compiler = importlib.import_module(f"{self.xp.__name__}.cuda.compiler")
            binary, _ = compiler.compile_using_nvrtc(text, kernel.OPTIONS)
            kernelcache.keep(name, key, binary)
        return kernelcache.as_file(name, binary)

    def allow(self, function, shared):
        """Let a kernel have so many bytes of shared memory in a block."""
        if shared > _PLAIN_SHARED and function.max_dynamic_shared_size_bytes < shared:
            function.max_dynamic_shared_size_bytes = shared

    def launch(self, function, grid, block, args, shared=0):
        """Start a kernel that has been allowed its shared memory."""
        function((grid,), block, tuple(args), shared_mem=shared)

    def mark(self, event=None):
        """Return an event behind what was asked of the device, to wait for; the one given, if any.

        Unlike those of ``event`` it takes no time of the device.
        """
        if event is None:
            event = self.xp.cuda.Event(disable_timing=True)
        event.record(self.stream)
        return event

    # --- time -------------------------------------------------------------------------------------

    def event(self, event=None):
        """Return a mark in the stream, behind what was asked of the device up to now.

        event: one that is not needed any more, to be used again.
        """
        if event is None:
            event = self.xp.cuda.Event()
        event.record()
        return event

    def between(self, first, second):
        """Return the nanoseconds that the device took from one mark to another; both are past."""
        return round(self.xp.cuda.get_elapsed_time(first, second) * 1e6)


class _Watch:
    """Notes the most that was taken from CuPy's pool, as a hook of it in each thread."""

    def __init__(self, xp, index):
        self.pool, self.peak = xp.get_default_memory_pool(), 0
        watch = self

        class Hook(xp.cuda.MemoryHook):
            name = f"opwise{index}"

            def malloc_postprocess(self, **told):
                if told["device_id"] == index:
                    watch.peak = max(watch.peak, watch.pool.used_bytes())

        self._hook = Hook()
        self._threads = threading.local()

    def begin(self):
        """See to it that what this thread takes is noted."""
        if not hasattr(self._threads, "noted"):
            self._hook.__enter__()
            self._threads.noted = True


def as_host(value):
    """Return an array of a device as one of the host; another value as it is."""
    for one in _devices.values():
        if one.holds(value):
            with one.active():
                return one.download(value)
    return value
