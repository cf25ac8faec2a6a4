"""CuPy, played on the CPU: arrays that are none of numpy's, and kernels that the CPU runs.

What opwise uses of CuPy is here and no more. Memory of the device cannot be mixed with the host's:
numpy refuses these arrays, and operations here refuse numpy's.
"""

import ctypes
import operator
import re
import sys
import weakref
from pathlib import Path
from types import ModuleType, SimpleNamespace

import numpy as np
from simulated import _caller, _compiled

from opwise.gpu import device
from opwise.graph import hooks


class ndarray:
    """An array of the device: one of numpy, which only the methods here see."""

    __array_ufunc__ = None

    def __init__(self, host):
        self._host = host
        MEMORY.hold(host)

    def __array__(self, *args, **kwargs):
        raise TypeError("Implicit conversion to a NumPy array is not allowed.")

    shape = property(lambda self: self._host.shape)
    strides = property(lambda self: self._host.strides)
    dtype = property(lambda self: self._host.dtype)
    ndim = property(lambda self: self._host.ndim)
    size = property(lambda self: self._host.size)
    nbytes = property(lambda self: self._host.nbytes)
    T = property(lambda self: ndarray(self._host.T))
    data = property(lambda self: SimpleNamespace(ptr=self._host.ctypes.data, device_id=0))

    def __len__(self):
        return len(self._host)

    def __getitem__(self, index):
        return ndarray(self._host[_index(index)])

    def __setitem__(self, index, value):
        self._host[_index(index)] = _host(value)

    def any(self):
        return ndarray(np.asarray(self._host.any()))

    def __bool__(self):
        return bool(self._host)

    def reshape(self, *shape):
        return ndarray(self._host.reshape(*shape))

    def transpose(self, *axes):
        return ndarray(self._host.transpose(*axes))

    def copy(self):
        return ndarray(self._host.copy())

    def __deepcopy__(self, memo):
        return self.copy()

    def set(self, value):
        self._host[...] = value

    def get(self):
        return self._host.copy()

    def __repr__(self):
        return repr(self._host)


def _operator(function, reflected=False):
    def apply(self, other):
        pair = (_host(other), self._host) if reflected else (self._host, _host(other))
        return ndarray(np.asarray(function(*pair)))

    return apply


for _name in ("add", "sub", "mul", "lt", "ge", "or_"):
    setattr(ndarray, f"__{_name.strip('_')}__", _operator(getattr(operator, _name)))
    setattr(ndarray, f"__r{_name}__", _operator(getattr(operator, _name), True))


def _host(value):
    """Return what numpy computes with: arrays of the device, and numbers."""
    if isinstance(value, ndarray):
        return value._host
    if isinstance(value, np.ndarray):
        raise TypeError(f"Unsupported type {type(value)}")
    return value


def _index(index):
    if isinstance(index, tuple):
        return tuple(map(_index, index))
    return index._host if isinstance(index, ndarray) else index


# --- memory -------------------------------------------------------------------------------------


class OutOfMemoryError(MemoryError):
    """What CuPy raises; it cannot be made of a text."""

    def __init__(self, size, total, limit=0):
        super().__init__(f"Out of memory allocating {size} bytes (allocated so far: {total} bytes)")


class MemoryHook:
    """Is told of memory that is taken and given back, from ``__enter__`` on."""

    def __enter__(self):
        if any(hook.name == self.name for hook in MEMORY.hooks):
            raise KeyError(f"memory hook {self.name} already exists")
        MEMORY.hooks.append(self)

    def malloc_postprocess(self, **told):
        pass

    def free_postprocess(self, **told):
        pass


class _Memory:
    """The pool: counts what arrays have. limit: bytes that there are, or 0."""

    def __init__(self):
        self.hooks, self.used, self.limit = [], 0, 0

    def free_all_blocks(self):
        pass

    def used_bytes(self):
        return self.used

    def set_limit(self, size):
        self.limit = size

    def hold(self, host):
        if host.base is not None or not host.size:
            return
        size = -(-host.nbytes // 512) * 512
        if self.limit and self.used + size > self.limit:
            raise OutOfMemoryError(size, self.used)
        self.used += size
        for hook in self.hooks:
            hook.malloc_postprocess(mem_size=size, size=host.nbytes, device_id=0)
        weakref.finalize(host, self._free, size)

    def _free(self, size):
        self.used -= size
        for hook in self.hooks:
            hook.free_postprocess(mem_size=size, device_id=0)


MEMORY = _Memory()


# --- kernels ------------------------------------------------------------------------------------

_SIGNATURE = re.compile(r'extern "C" __global__ void __launch_bounds__\(\d+\) (\w+)\(([^)]*)\)')


class RawModule:
    """Kernels, compiled from their text as C++."""

    def __init__(self, path):
        code = Path(path).read_text()
        kernels = []
        for name, parameters in _SIGNATURE.findall(code):
            types = [tuple(re.fullmatch(r"(.*\W)(\w+)", p.strip(), re.S).groups())
                     for p in parameters.split(",")]  # fmt: skip
            kernels.append(SimpleNamespace(name=name, parameters=types))
        callers = "".join(map(_caller, kernels))
        self._library = _compiled(f'{code}\nextern "C" {{\n{callers}}}\n')
        self._barriers = int("_sync(" in code or "__syncthreads(" in code)

    def get_function(self, name):
        return _Function(self._library, name, self._barriers)


class _Function:
    max_dynamic_shared_size_bytes = 48 * 1024

    def __init__(self, library, name, barriers):
        self._library, self._barriers = library, barriers
        self._call = getattr(library, f"call_{name}")

    def __call__(self, grid, block, args, *, shared_mem=0):
        assert shared_mem <= self.max_dynamic_shared_size_bytes
        assert STREAM.depth, "a kernel on the stream of somebody else"
        STREAM.launches += 1
        places = [np.array(value) for value in args]
        pointers = (ctypes.c_void_p * len(places))(*(p.ctypes.data for p in places))
        stuck = self._library.simulate(self._call, pointers, *grid, *block, 0, self._barriers)
        assert not stuck, "threads wait for each other"


# --- the rest of the module ---------------------------------------------------------------------


class CUDARuntimeError(RuntimeError):
    """What CuPy raises where there is no driver."""


class _Stream:
    launches = 0
    #: how many blocks it is the current one of
    depth = 0

    def __enter__(self):
        self.depth += 1

    def __exit__(self, *error):
        self.depth -= 1

    def synchronize(self):
        pass


STREAM = _Stream()


class _Event:
    """A mark; the clock of this device goes on by a millisecond with each."""

    now = 0

    def record(self):
        _Event.now += 1
        self.time = _Event.now


class _Device:
    attributes = {"MultiProcessorCount": 4, "MaxSharedMemoryPerBlock": 49152}

    compute_capability = "90"

    def __init__(self, index):
        self.index = index

    def __enter__(self):
        pass

    def __exit__(self, *error):
        pass


def _gemm(transa, transb, a, b, out, alpha, beta):
    assert (transa, transb) == ("N", "N") and a.dtype == b.dtype == out.dtype
    assert isinstance(alpha, float) and isinstance(beta, float)
    product = np.matmul(a._host, b._host) * a.dtype.type(alpha)
    out._host[...] = product if beta == 0 else product + out._host * out.dtype.type(beta)
    return out


def _compile(source, options):
    assert "--fmad=false" in options
    return source.encode(), None


def _made(function):
    """Return a function of numpy as one of arrays of the device."""

    def call(*args, **kwargs):
        result = function(*map(_hosts, args), **kwargs)
        if isinstance(result, tuple):
            return tuple(map(ndarray, result))
        return ndarray(np.asarray(result))

    return call


def _hosts(value):
    return tuple(map(_hosts, value)) if isinstance(value, tuple) else _host(value)


def install(monkeypatch, devices=1):
    """Let ``import cupy`` give what is played here; returns the module."""
    xp = ModuleType("cupy")
    functions = ("dot", "matmul", "sort", "argsort", "cumsum", "cumprod", "diff", "nonzero",
                 "take", "moveaxis", "flip", "take_along_axis", "broadcast_to", "arange",
                 "unravel_index", "stack", "ascontiguousarray", "empty", "zeros")  # fmt: skip
    for name in functions:
        setattr(xp, name, _made(getattr(np, name)))
    xp.ndarray, xp.RawModule = ndarray, RawModule

    def asarray(value, dtype=None):
        host = value._host if isinstance(value, ndarray) else np.array(value)
        if isinstance(value, ndarray) and dtype in (None, host.dtype):
            return value
        return ndarray(np.array(host, dtype=dtype))

    xp.array = lambda value, copy, blocking: ndarray(np.array(value))
    xp.asarray, xp.asnumpy = asarray, lambda array: array._host.copy()
    xp.get_default_memory_pool = lambda: MEMORY
    runtime = SimpleNamespace(
        getDeviceCount=lambda: devices, CUDARuntimeError=CUDARuntimeError,
        memGetInfo=lambda: (3 * 10**9, 4 * 10**9),
        getDeviceProperties=lambda index: {"name": b"a played device"},
    )  # fmt: skip
    xp.cuda = SimpleNamespace(
        runtime=runtime, Device=_Device, Stream=lambda: STREAM, Event=_Event,
        MemoryHook=MemoryHook, memory=SimpleNamespace(OutOfMemoryError=OutOfMemoryError),
        get_elapsed_time=lambda a, b: float(b.time - a.time),
    )  # fmt: skip
    cublas = ModuleType("cupy.cublas")
    cublas.gemm = _gemm
    compiler = ModuleType("cupy.cuda.compiler")
    compiler.compile_using_nvrtc = _compile
    xp.__version__ = "played"
    MEMORY.hooks.clear()
    monkeypatch.setitem(sys.modules, "cupy", xp)
    monkeypatch.setitem(sys.modules, "cupy.cuda.compiler", compiler)
    monkeypatch.setitem(sys.modules, "cupy.cublas", cublas)
    monkeypatch.setattr(device, "_devices", {})
    monkeypatch.setattr(hooks, "to_host", hooks.to_host)
    monkeypatch.setattr(hooks, "chosen_device", None)
    return xp
