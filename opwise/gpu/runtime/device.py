"""The GPU through CuPy. No other module imports CuPy, and this one only when a device is requested.

Each Device has one stream for all of its work; a copy to the host waits for what was enqueued
before it. Captures use another stream, on which nothing runs. Memory comes from CuPy's pool; a
Device records how much was in use at most.
"""

from __future__ import annotations

import ctypes
import importlib
import re
import sys
import threading
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from functools import cached_property
from typing import Any, Protocol

import numpy as np

from opwise.config import config
from opwise.errors import DeviceError
from opwise.gpu.kernels import kernel
from opwise.gpu.runtime.blas import WORKSPACE, WORKSPACE_BEFORE_HOPPER, Blas
from opwise.graph import target
from opwise.linkers import kernelcache

#: a CuPy array; CuPy has no types of its own
DeviceArray = Any
#: a CuPy event
Event = Any

#: names of devices, of today's programs and of old ones
_NAMES = re.compile(r"(?:cuda|gpu)(\d*)")
#: bytes of shared memory that a kernel may use without a request for more
_DEFAULT_SHARED = 48 * 1024

_devices: dict[int, Device] = {}
_lock = threading.Lock()


class DeviceFunction(Protocol):
    """A compiled kernel, as CuPy gives it."""

    max_dynamic_shared_size_bytes: int

    def __call__(
        self, grid: tuple[int, ...], block: tuple[int, ...], args: tuple, *, shared_mem: int
    ) -> None: ...


def index_of(name: str) -> int:
    """Return the number of the device with a name like ``cuda``, ``cuda1`` or ``gpu0``.

    Raises DeviceError for another name.
    """
    match = _NAMES.fullmatch(name)
    if match is None:
        raise DeviceError(f"device={name}: opwise runs on cpu, cuda, cuda0, cuda1, ...")
    return int(match[1] or 0)


def device(index: int = 0) -> Device:
    """Return the Device of a number; raise DeviceError with the reason if it cannot be used."""
    with _lock:
        found = _devices.get(index)
        if found is None:
            found = _devices[index] = Device(_cupy(), index)
            if config.print_active_device and requested_name() != "cpu":
                print(f"Using cuda{index}: {found.name}", file=sys.stderr)
        return found


def requested_name() -> str:
    """Return the name of the device that the program or the flag device requests, or ``cpu``."""
    return target.device_name()


def default_name() -> str:
    """Return the name of the requested device; ``cuda`` if the CPU is requested."""
    name = requested_name()
    return name if name != "cpu" else "cuda"


def opened() -> list[Device]:
    """Return the Devices that are in use."""
    return list(_devices.values())


#: the command that installs CuPy; it works whether or not pip installed opwise
_INSTALL = "pip install 'cupy-cuda13x[ctk]' (cupy-cuda12x for older drivers)"


def _cupy() -> Any:
    try:
        import cupy
    except ImportError as error:
        raise DeviceError(
            f"The GPU needs CuPy, which cannot be imported ({error}): install it with "
            f"{_INSTALL}, or use device=cpu in OPWISE_FLAGS."
        ) from None
    return cupy


class Device:
    """One GPU."""

    def __init__(self, xp: Any, index: int = 0) -> None:
        """xp: the module cupy, or its emulator. index: the number of the device.

        Raises DeviceError if there is no driver, or no device of that number.
        """
        self.xp, self.index = xp, index
        try:
            count = xp.cuda.runtime.getDeviceCount()
            if not 0 <= index < count:
                known = ", ".join(f"cuda{k}" for k in range(count)) or "none"
                raise DeviceError(f"There is no device cuda{index}; existing devices: {known}")
            self._handle = xp.cuda.Device(index)
            with self._handle:
                self.stream = xp.cuda.Stream()
        except xp.cuda.runtime.CUDARuntimeError as error:
            raise DeviceError(
                f"CuPy finds no GPU that it can use ({error}): check that nvidia-smi lists one and "
                "that the driver supports CuPy's CUDA version, or use device=cpu in OPWISE_FLAGS."
            ) from None
        #: what CuPy raises if no memory is left
        self.out_of_memory: type[Exception] = xp.cuda.memory.OutOfMemoryError
        self._peak = _PeakMemory(xp, index)
        #: compiled modules by text
        self._modules: dict[str, Any] = {}
        #: by address of a stream, cuBLAS for its work
        self._blas: dict[int, Blas] = {}
        #: 0-d arrays by value and dtype
        self._numbers: dict[tuple, DeviceArray] = {}
        #: (event, pinned memory) of copies under way that nobody needs any more
        self._leaving: list[tuple[Event, Any]] = []
        #: the stream for captures
        self._capture_stream: Any = None
        self._capture_lock = threading.Lock()
        self._thread = threading.local()

    @contextmanager
    def active(self) -> Iterator[None]:
        """Make it the device of this thread, and its stream CuPy's, until the block ends."""
        with self._handle, self.stream:
            self._peak.record_thread()
            yield

    @cached_property
    def limits(self) -> kernel.DeviceLimits:
        """What plans of launches need to know."""
        about = self._handle.attributes
        return kernel.DeviceLimits(
            about["MultiProcessorCount"],
            about.get("MaxSharedMemoryPerBlockOptin", about["MaxSharedMemoryPerBlock"]),
        )

    @cached_property
    def name(self) -> str:
        """The name of the GPU."""
        name = self.xp.cuda.runtime.getDeviceProperties(self.index)["name"]
        return name.decode() if isinstance(name, bytes) else name

    # --- arrays -----------------------------------------------------------------------------------

    def holds(self, value: Any) -> bool:
        """Return whether a value is an array in the memory of this device."""
        return isinstance(value, self.xp.ndarray) and value.data.device_id == self.index

    def empty(self, shape: tuple[int, ...], dtype: Any) -> DeviceArray:
        """Return an array whose content is undefined."""
        return self.xp.empty(shape, dtype)

    def zeros(self, shape: int | tuple[int, ...], dtype: Any) -> DeviceArray:
        """Return an array of zeros."""
        return self.xp.zeros(shape, dtype)

    def upload(self, value: np.ndarray) -> DeviceArray:
        """Return a copy of a numpy array in device memory; the array may change afterwards."""
        return self.xp.array(value, copy=True, blocking=True)

    def number(self, value: float, dtype: Any) -> DeviceArray:
        """Return a number as a 0-d array of the device, the same array each time."""
        key = value, np.dtype(dtype).char
        if key not in self._numbers:
            self._numbers[key] = self.upload(np.array(value, dtype))
        return self._numbers[key]

    def download(self, array: DeviceArray) -> np.ndarray:
        """Return a copy in the host's memory; wait for all enqueued work."""
        return self.xp.asnumpy(array)

    def synchronize(self) -> None:
        """Wait for all enqueued work."""
        self.stream.synchronize()

    def compact(self, array: DeviceArray) -> DeviceArray:
        """Return an array in C order without gaps: itself or a copy."""
        return array if array.flags.c_contiguous else self.xp.ascontiguousarray(array)

    # --- asynchronous copies ----------------------------------------------------------------------

    def pinned(self, size: int) -> np.ndarray:
        """Return ``size`` bytes of host memory that the device reads and writes by itself."""
        leaving, self._leaving = self._leaving, []  # other threads may add to it meanwhile
        self._leaving += [one for one in leaving if not one[0].done]
        return np.frombuffer(self.xp.cuda.alloc_pinned_memory(size), np.uint8, size)

    def leave(self, event: Event, memory: Any) -> None:
        """Keep pinned memory until an event has passed: if freed, it would be reused at once."""
        self._leaving.append((event, memory))

    def send(self, array: DeviceArray, source: np.ndarray) -> None:
        """Enqueue a copy from the host to the device, both in C order.

        A source in pinned memory must not change until the copy is made. Any other source may
        change when this returns.
        """
        self._copy(array.data.ptr, source.ctypes.data, source.nbytes, "memcpyHostToDevice")

    def fetch(self, target: np.ndarray, array: DeviceArray) -> None:
        """Enqueue a copy of an array of the device, in C order, into pinned memory."""
        self._copy(target.ctypes.data, array.data.ptr, array.nbytes, "memcpyDeviceToHost")

    def _copy(self, target: int, source: int, size: int, kind: str) -> None:
        runtime = self.xp.cuda.runtime
        if size:
            runtime.memcpyAsync(target, source, size, getattr(runtime, kind), self.stream.ptr)

    # --- linear algebra ---------------------------------------------------------------------------

    @property
    def blas(self) -> Blas:
        """cuBLAS for what this thread enqueues, be it run or captured."""
        capturing = getattr(self._thread, "capturing", False)
        return self._blas_of(self._capture_stream if capturing else self.stream)

    def _blas_of(self, stream: Any) -> Blas:
        found = self._blas.get(stream.ptr)
        if found is None:
            found = Blas(self._blas_library, stream.ptr, self._workspace)
            self._blas[stream.ptr] = found
        return found

    def solver_errors(self) -> AbstractContextManager:
        """Return a context in which CuPy waits for each routine of cuSOLVER and, if one fails,
        raises LinAlgError; otherwise its result would be undefined."""
        return importlib.import_module("cupyx").errstate(linalg="raise")

    def solve_triangular(self, matrix: DeviceArray, b: DeviceArray, lower: bool) -> DeviceArray:
        """Return the solution of a triangular system without zeros on the diagonal.

        Both arrays have one dtype, float32 or float64. lower: which half of the matrix is read.
        """
        linalg = importlib.import_module("cupyx.scipy.linalg")
        return linalg.solve_triangular(matrix, b, lower=lower)

    @cached_property
    def _blas_library(self) -> ctypes.CDLL:
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
    def _workspace(self) -> tuple[int, int]:
        """(address, bytes) of memory for cuBLAS, which the pool does not count."""
        hopper = int(self._handle.compute_capability) >= 90
        size = WORKSPACE if hopper else WORKSPACE_BEFORE_HOPPER
        self._workspace_memory = self.xp.cuda.Memory(size)
        return self._workspace_memory.ptr, size

    # --- memory -----------------------------------------------------------------------------------

    def allocated(self) -> tuple[int, int]:
        """Return (bytes in use now, the most that were in use at once)."""
        with self._handle:
            current = self._peak.pool.used_bytes()
        return current, max(current, self._peak.bytes)

    def memory_info(self) -> tuple[int, int]:
        """Return (free bytes of the device, all bytes that it has)."""
        with self._handle:
            return self.xp.cuda.runtime.memGetInfo()

    def free(self) -> None:
        """Free the memory that the pool holds and nobody uses."""
        self._peak.pool.free_all_blocks()

    def piece(self, size: int) -> Any:
        """Return memory of the pool, with its address as ``ptr``; it is in use while it is held."""
        return self._peak.pool.malloc(size)

    def within(self, address: int, size: int, owner: Any) -> Any:
        """Return part of a piece as memory for CuPy, which keeps ``owner`` alive."""
        memory = self.xp.cuda.UnownedMemory(address, size, owner, self.index)
        return self.xp.cuda.MemoryPointer(memory, 0)

    def array_at(
        self, memory: Any, shape: tuple[int, ...], strides: tuple[int, ...], dtype: np.dtype
    ) -> DeviceArray:
        """Return an array in memory: the result of ``within``, or an array's ``data``."""
        return self.xp.ndarray(shape, dtype, memory, strides)

    def allocating(self, allocate: Callable[[int], Any]) -> AbstractContextManager:
        """Return a context in which this thread's arrays are allocated by ``allocate``."""
        return self.xp.cuda.using_allocator(allocate)

    # --- graphs -----------------------------------------------------------------------------------

    @contextmanager
    def capturing(self) -> Iterator[list[Callable[[], None]]]:
        """Capture what this thread enqueues in the block instead of running it.

        Yields a list; behind the block it holds one function that runs all that was captured.
        Raises what CUDA raises if something cannot be captured.
        """
        with self._capture_lock:
            if self._capture_stream is None:
                self._capture_stream = self.xp.cuda.Stream(non_blocking=True)
            if self._blas:
                self._blas_of(self._capture_stream)  # it cannot be created during a capture
            found: list[Callable[[], None]] = []
            self._thread.capturing = True
            try:
                graph = yield from self._captured(found)
            finally:
                self._thread.capturing = False
            found.append(lambda: graph.launch(self.stream))

    def _captured(self, found: list) -> Generator[list, None, Any]:
        """Yield ``found`` during a capture; return the graph."""
        stream = self._capture_stream
        with stream:
            stream.begin_capture()
            try:
                yield found
            except BaseException:
                # CUDA may have ended the capture already; then it raises the same error again
                with suppress(self.xp.cuda.runtime.CUDARuntimeError):
                    stream.end_capture()
                raise
            return stream.end_capture()

    # --- kernels ----------------------------------------------------------------------------------

    def functions(self, kernels: Iterable[kernel.Kernel]) -> dict[str, DeviceFunction]:
        """Return the compiled functions of kernels by name; compile them unless they are cached.

        Raises DeviceError if CuPy cannot compile.
        """
        kernels = list(kernels)
        text = kernel.module_text(kernels)
        try:
            module = self._modules.get(text)
            if module is None:
                path = self._compiled(text)
                module = self._modules[text] = self.xp.RawModule(path=path)
            return {one.name: module.get_function(one.name) for one in kernels}
        except Exception as error:  # of NVRTC, the loader or files: CuPy has no class for all
            raise DeviceError(
                f"CuPy cannot compile kernels ({type(error).__name__}: {str(error)[:500]}): "
                f"install it with CUDA's libraries, {_INSTALL}, or use device=cpu in "
                "OPWISE_FLAGS."
            ) from error

    def _compiled(self, text: str) -> str:
        """Return the path of a compiled text, a file of its own, since CuPy loads it later.

        RawModule itself would compile with denormal numbers flushed to 0, whatever its options.
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

    def allow(self, function: DeviceFunction, shared: int) -> None:
        """Let a kernel use ``shared`` bytes of shared memory in a block."""
        if shared > _DEFAULT_SHARED and function.max_dynamic_shared_size_bytes < shared:
            function.max_dynamic_shared_size_bytes = shared

    def launch(
        self, function: DeviceFunction, grid: int, block: tuple[int, int], args: Iterable[Any],
        shared: int = 0,
    ) -> None:  # fmt: skip
        """Launch a kernel; ``allow`` must have been called for its shared memory."""
        function((grid,), block, tuple(args), shared_mem=shared)

    # --- events -----------------------------------------------------------------------------------

    def mark(self, event: Event = None) -> Event:
        """Return an event behind all enqueued work, to wait for. It costs the device no time.

        event: one to use again (default: a new one).
        """
        if event is None:
            event = self.xp.cuda.Event(disable_timing=True)
        event.record(self.stream)
        return event

    def event(self, event: Event = None) -> Event:
        """Return an event behind all enqueued work, to measure times between events.

        event: one to use again (default: a new one).
        """
        if event is None:
            event = self.xp.cuda.Event()
        event.record()
        return event

    def between(self, first: Event, second: Event) -> int:
        """Return the nanoseconds of the device between two events; both must have passed."""
        return round(self.xp.cuda.get_elapsed_time(first, second) * 1e6)


class _PeakMemory:
    """Records the most bytes in use of CuPy's pool, by a hook in each thread."""

    def __init__(self, xp: Any, index: int) -> None:
        self.pool, self.bytes = xp.get_default_memory_pool(), 0
        self._hook = _memory_hook(xp, index, self.record)
        self._threads = threading.local()

    def record(self) -> None:
        self.bytes = max(self.bytes, self.pool.used_bytes())

    def record_thread(self) -> None:
        """Record what this thread allocates from now on."""
        if not hasattr(self._threads, "recorded"):
            self._hook.__enter__()
            self._threads.recorded = True


def _memory_hook(xp: Any, index: int, allocated: Callable[[], None]) -> Any:
    """Return a hook of CuPy's that calls ``allocated`` after each allocation on a device."""

    def malloc_postprocess(self: Any, **about: Any) -> None:
        if about["device_id"] == index:
            allocated()

    members = {"name": f"opwise{index}", "malloc_postprocess": malloc_postprocess}
    return type("Hook", (xp.cuda.MemoryHook,), members)()


def as_host(value: Any) -> Any:
    """Return an array of a device as a numpy array, and any other value as it is."""
    for one in _devices.values():
        if one.holds(value):
            with one.active():
                return one.download(value)
    return value
