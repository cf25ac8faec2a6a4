"""Device: the GPU through CuPy. No other module imports CuPy, and this one not before it is asked.

Everything that a function does on a device is on one stream; what is given back to the host waits
for it. Memory is CuPy's pool; a Device counts what is in use, and the most that ever was.
"""

from __future__ import annotations

import importlib
import os
import re
import sys
import threading
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path

from opwise.config import config
from opwise.errors import DeviceError
from opwise.gpu import kernel
from opwise.graph import hooks
from opwise.linkers import cbuild

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
    return hooks.chosen_device or config.device


def default_name():
    """Return the name of the device that is asked for; ``cuda`` if it is the CPU."""
    name = asked_for()
    return name if name != "cpu" else "cuda"


def opened():
    """Return the Devices that are in use."""
    return list(_devices.values())


def _cupy():
    try:
        import cupy
    except ImportError as error:
        raise DeviceError(
            f"The GPU needs CuPy, which cannot be imported ({error}): install it with "
            "pip install 'opwise[gpu]', or use device=cpu in OPWISE_FLAGS."
        ) from None
    return cupy


class Device:
    """One GPU. xp: the module cupy, or what plays it. index: the device's number.

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

    def download(self, array):
        """Return a copy in the host's memory; waits for all that was asked of the device."""
        return self.xp.asnumpy(array)

    def synchronize(self):
        """Wait for all that was asked of the device."""
        self.stream.synchronize()

    def gemm(self, x, y, out, alpha, beta):
        """Return ``alpha * x @ y + beta * out`` in the memory of ``out``, or without it in new."""
        if out is None:
            out, beta = self.empty((x.shape[0], y.shape[1]), x.dtype), 0
        if x.dtype.char in "fd" and 0 not in (*x.shape, *y.shape):
            self._cublas.gemm("N", "N", x, y, out, float(alpha), float(beta))
            return out
        product = self.xp.matmul(x, y) * x.dtype.type(alpha)
        out[...] = product if beta == 0 else out * x.dtype.type(beta) + product
        return out

    @cached_property
    def _cublas(self):
        try:
            return importlib.import_module(f"{self.xp.__name__}.cublas")
        except ImportError as error:
            raise DeviceError(
                f"CuPy cannot load cuBLAS ({str(error)[:500]}): install it with CUDA's libraries, "
                "pip install 'opwise[gpu]', or use device=cpu in OPWISE_FLAGS."
            ) from error

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
                module = self._modules[text] = self.xp.RawModule(path=str(path))
            return {one.name: module.get_function(one.name) for one in kernels}
        except Exception as error:  # of NVRTC, of the loader, of files: CuPy has no class for all
            raise DeviceError(
                f"CuPy cannot compile kernels ({type(error).__name__}: {str(error)[:500]}): "
                "install it with CUDA's libraries, pip install 'opwise[gpu]', or use device=cpu "
                "in OPWISE_FLAGS."
            ) from error

    def _compiled(self, text):
        """Return the file of a compiled text.

        RawModule would compile with denormal numbers taken for 0, whatever it is told.
        """
        version, arch = self.xp.__version__, str(self._handle.compute_capability)
        key = kernel.digest(text, *kernel.OPTIONS, arch, version)
        path = Path(cbuild.folder(), f"{key}.cubin")
        if not path.exists():
            compiler = importlib.import_module(f"{self.xp.__name__}.cuda.compiler")
            binary, _ = compiler.compile_using_nvrtc(text, kernel.OPTIONS)
            part = path.with_name(f"{path.name}.{os.getpid()}.part")
            part.write_bytes(binary)
            part.replace(path)
        return path

    def allow(self, function, shared):
        """Let a kernel have so many bytes of shared memory in a block."""
        if shared > _PLAIN_SHARED and function.max_dynamic_shared_size_bytes < shared:
            function.max_dynamic_shared_size_bytes = shared

    def launch(self, function, grid, block, args, shared=0):
        """Start a kernel that has been allowed its shared memory."""
        function((grid,), block, tuple(args), shared_mem=shared)

    # --- time -------------------------------------------------------------------------------------

    def event(self):
        """Return a mark in the stream, behind what was asked of the device up to now."""
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
