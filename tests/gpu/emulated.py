"""CuPy, emulated on the CPU: arrays that are none of numpy's, and kernels that the CPU runs.

What opwise uses of CuPy is here and no more. Memory of the device cannot be mixed with the host's:
numpy refuses these arrays, and operations here refuse numpy's. The device works when somebody waits
for it, not before: who reads too early, or overwrites what it has yet to read, finds other numbers.
What is given back to the pool is filled with junk, and given out again.
"""

import ctypes
import mmap
import operator
import re
import sys
import threading
import weakref
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType, SimpleNamespace

import numpy as np
from simulated import _caller, _compiled

from opwise.gpu.runtime import device
from opwise.graph import legacystate

# --- memory -------------------------------------------------------------------------------------

#: pages are there when they are written to; MAP_NORESERVE is 0x4000
_FLAGS = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | 0x4000
_REGION = np.frombuffer(mmap.mmap(-1, 1 << 34, flags=_FLAGS), np.uint8)
_START = _REGION.ctypes.data
_JUNK = 0xFF


def _at(address, shape, strides, dtype):
    """Return the numpy array of what lies at an address of the device."""
    dtype = np.dtype(dtype)
    if 0 in shape:
        return np.empty(shape, dtype)
    return np.ndarray(shape, dtype, _REGION, address - _START, strides)


class OutOfMemoryError(MemoryError):
    """What CuPy raises; it cannot be made of a text."""

    def __init__(self, size, total, limit=0):
        super().__init__(f"Out of memory allocating {size} bytes (allocated so far: {total} bytes)")


class MemoryHook:
    """Is called when memory is allocated and freed, from ``__enter__`` on."""

    def __enter__(self):
        if any(hook.name == self.name for hook in _here.hooks):
            raise KeyError(f"memory hook {self.name} already exists")
        _here.hooks.append(self)

    def malloc_postprocess(self, **about):
        pass

    def free_postprocess(self, **about):
        pass


class _Pool:
    """The pool. limit: bytes that there are, or 0."""

    def __init__(self):
        self.used, self.limit = 0, 0
        self._end, self._free = 0, {}

    def malloc(self, size):
        return MemoryPointer(_PooledMemory(size), 0)

    def take(self, size):
        """Return the address of so many bytes: those last given back, or new ones."""
        if self.limit and self.used + size > self.limit:
            raise OutOfMemoryError(size, self.used)
        self.used += size
        return self._free[size].pop() if self._free.get(size) else self.raw(size)

    def raw(self, size):
        """Return the address of so many new bytes."""
        self._end += size
        assert self._end <= len(_REGION)
        return _START + self._end - size

    def give(self, address, size):
        self.used -= size
        free = self._free.setdefault(size, [])
        assert address not in free, "given back twice"
        free.append(address)
        STREAM.do(lambda: _at(address, (size,), (1,), np.uint8).fill(_JUNK))
        for hook in _here.hooks:
            hook.free_postprocess(mem_size=size, device_id=0)

    def free_all_blocks(self):
        pass

    def used_bytes(self):
        return self.used

    def set_limit(self, size):
        self.limit = size


class _Here(threading.local):
    """What belongs to a thread: hooks of memory, allocators, and streams, the current one last;
    what becomes of failures of linear algebra."""

    linalg = "ignore"

    def __init__(self):
        self.hooks, self.allocators, self.streams = [], [MEMORY.malloc], [STREAM]


MEMORY = _Pool()


class _PooledMemory:
    device_id = 0

    def __init__(self, size):
        self.size = -(-size // 512) * 512
        self.ptr = MEMORY.take(self.size) if size else 0
        for hook in _here.hooks if size else ():
            hook.malloc_postprocess(mem_size=self.size, size=size, device_id=0)

    def __reduce__(self):
        raise TypeError("memory of a device cannot be copied like this")

    def __del__(self):
        if getattr(self, "ptr", 0):
            MEMORY.give(self.ptr, self.size)


class Memory:
    """Memory that is none of the pool's."""

    device_id = 0

    def __init__(self, size):
        self.ptr, self.size = MEMORY.raw(size), size


class UnownedMemory:
    def __init__(self, ptr, size, owner, device_id):
        self.ptr, self.size, self._owner, self.device_id = ptr, size, owner, device_id


class MemoryPointer:
    def __init__(self, mem, offset):
        assert mem.ptr or not offset
        self.mem, self.ptr, self.device_id = mem, mem.ptr + offset, mem.device_id

    def __add__(self, offset):
        return MemoryPointer(self.mem, self.ptr - self.mem.ptr + offset)


@contextmanager
def using_allocator(allocate):
    _here.allocators.append(allocate)
    try:
        yield
    finally:
        _here.allocators.pop()


# --- streams ------------------------------------------------------------------------------------


class CUDARuntimeError(RuntimeError):
    """What CuPy raises where there is no driver, and for what a capture cannot hold."""


class _Stream:
    """Work for the device, which is done when it is waited for; or captured."""

    _made = 0

    def __init__(self, non_blocking=False):
        _Stream._made += 1
        self.ptr = 1000 + _Stream._made
        self.launches = 0
        self._work, self._lock = [], threading.RLock()
        #: what is captured; False: a capture that failed
        self._captured = None

    @property
    def depth(self):
        """How many blocks it is the current one of, in this thread."""
        return _here.streams[1:].count(self)

    def __enter__(self):
        _here.streams.append(self)

    def __exit__(self, *error):
        assert _here.streams.pop() is self

    def do(self, work):
        """Have work done, or capture it."""
        (self._work if self._captured is None else self._captured).append(work)

    def synchronize(self):
        self.refuse_capture()
        with self._lock:  # another thread waits until all is done, too
            work, self._work = self._work, []
            for one in work:
                one()

    def refuse_capture(self):
        """Raise what CUDA raises where it is capturing."""
        if self._captured is not None:
            self._captured = False
            raise CUDARuntimeError("operation not permitted when stream is capturing")

    def begin_capture(self):
        self.refuse_capture()
        self._captured = []

    def end_capture(self):
        captured, self._captured = self._captured, None
        if captured is False:
            raise CUDARuntimeError("operation failed due to a previous error during capture")
        return _Graph(captured)


class _Graph:
    launched = 0

    def __init__(self, work):
        self._all = work

    def launch(self, stream):
        assert stream is STREAM
        _Graph.launched += 1
        for one in self._all:
            stream.do(one)


STREAM = _Stream()
_here = _Here()


def _do(work):
    _here.streams[-1].do(work)


def _wait():
    """Wait for the device, to see what is there."""
    _here.streams[-1].refuse_capture()
    STREAM.synchronize()


class _Event:
    """A mark; the clock of this device goes on by a millisecond with each that measures."""

    now = 0

    def __init__(self, disable_timing=False):
        self._timing = not disable_timing
        self._recorded = self._reached = 0

    @property
    def done(self):
        return self._reached == self._recorded

    def record(self, stream=None):
        self._recorded = count = self._recorded + 1
        _do(lambda: setattr(self, "_reached", count))
        if self._timing:
            _Event.now += 1
            self.time = _Event.now

    def synchronize(self):
        _wait()


# --- arrays -------------------------------------------------------------------------------------


class ndarray:
    """An array of the device."""

    __array_ufunc__ = None

    def __init__(self, shape, dtype=float, memptr=None, strides=None, base=None):
        shape = (shape,) if isinstance(shape, int) else tuple(shape)
        plain = np.empty((1,) * len(shape), dtype)
        self.dtype, self.shape, self.ndim = plain.dtype, shape, len(shape)
        self.size = int(np.prod(shape))
        self.nbytes = self.size * self.dtype.itemsize
        if strides is None:
            strides = tuple(
                self.dtype.itemsize * int(np.prod(shape[d + 1 :])) for d in range(len(shape))
            )
        self.strides = tuple(strides)
        self.data = _here.allocators[-1](self.nbytes) if memptr is None else memptr
        self.base = base

    def __array__(self, *args, **kwargs):
        raise TypeError("Implicit conversion to a NumPy array is not allowed.")

    @property
    def _place(self):
        return self.data.ptr, self.shape, self.strides, self.dtype

    @property
    def _host(self):
        """What is there, seen by numpy; waits for it."""
        _wait()
        return _at(*self._place)

    @property
    def _shell(self):
        """An array of numpy at the same address, whose elements nobody reads."""
        return _at(*self._place)

    @property
    def flags(self):
        return SimpleNamespace(c_contiguous=self._shell.flags.c_contiguous)

    def _view(self, shell):
        offset = shell.ctypes.data - self.data.ptr if shell.size else 0
        base = self if self.base is None else self.base
        return ndarray(shell.shape, shell.dtype, self.data + offset, shell.strides, base)

    @property
    def T(self):
        return self._view(self._shell.T)

    def __len__(self):
        return self.shape[0]

    def __getitem__(self, index):
        if not _is_basic(index):
            return _new(self._host[_index(index)])
        whole = index if Ellipsis in _t(index) else (*_t(index), Ellipsis)
        return self._view(self._shell[whole])  # an array, also of one number

    def __setitem__(self, index, value):
        if not _is_basic(index):
            self._host[_index(index)] = _host(value)
            return
        target = self[index]._place
        if isinstance(value, ndarray):
            source = value._place
            _do(lambda: np.copyto(_at(*target), _at(*source), casting="unsafe"))
        else:
            _refuse(value)
            _do(lambda: np.copyto(_at(*target), value, casting="unsafe"))

    def __imul__(self, factor):
        target = self._place
        source = factor._place if isinstance(factor, ndarray) else None
        _refuse(factor)

        def multiply():
            array = _at(*target)
            array *= factor if source is None else _at(*source)

        _do(multiply)
        return self

    def any(self):
        return _new(np.asarray(self._host.any()))

    def all(self):
        return _new(np.asarray(self._host.all()))

    def __bool__(self):
        return bool(self._host)

    def reshape(self, *shape):
        shell = self._shell.reshape(*shape)
        if not self.size or np.shares_memory(shell, self._shell):
            return self._view(shell)
        return self.copy().reshape(*shape)

    def transpose(self, *axes):
        return self._view(self._shell.transpose(*axes))

    def copy(self):
        return _converted(self, self.dtype)

    def __deepcopy__(self, memo):
        return self.copy()

    def __reduce__(self):
        return _new, (self.get(),)

    def set(self, value):
        self._host[...] = value

    def get(self):
        return self._host.copy()

    def __repr__(self):
        return repr(self._host)


def _t(index):
    return index if isinstance(index, tuple) else (index,)


def _is_basic(index):
    return not any(isinstance(part, ndarray) for part in _t(index))


def _new(host):
    """Return an array of the device with the elements of one of numpy."""
    by_columns = host.flags.f_contiguous and not host.flags.c_contiguous
    made = ndarray(host.shape, host.dtype, strides=host.strides if by_columns else None)
    _wait()
    made._host[...] = host
    return made


def _converted(array, dtype):
    """Return a copy, which the device makes."""
    made = ndarray(array.shape, dtype)
    made[...] = array
    return made


def _operator(function, reflected=False):
    def apply(self, other):
        pair = (_host(other), self._host) if reflected else (self._host, _host(other))
        return _new(np.asarray(function(*pair)))

    return apply


for _name in ("add", "sub", "mul", "lt", "ge", "or_"):
    setattr(ndarray, f"__{_name.strip('_')}__", _operator(getattr(operator, _name)))
    setattr(ndarray, f"__r{_name}__", _operator(getattr(operator, _name), True))


def _refuse(value):
    if isinstance(value, np.ndarray):
        raise TypeError(f"Unsupported type {type(value)}")


def _host(value):
    """Return what numpy computes with: arrays of the device, and numbers."""
    if isinstance(value, ndarray):
        return value._host
    _refuse(value)
    return value


def _index(index):
    if isinstance(index, tuple):
        return tuple(map(_index, index))
    return index._host if isinstance(index, ndarray) else index


# --- kernels ------------------------------------------------------------------------------------

_SIGNATURE = re.compile(r'extern "C" __global__ void __launch_bounds__\([\d, ]+\) (\w+)\(([^)]*)\)')


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

        def work():
            pointers = (ctypes.c_void_p * len(places))(*(p.ctypes.data for p in places))
            stuck = self._library.simulate(self._call, pointers, *grid, *block, 0, self._barriers)
            assert not stuck, "threads wait for each other"

        _do(work)


# --- cuBLAS -------------------------------------------------------------------------------------

_DTYPES = {0: np.float32, 1: np.float64, 2: np.float16}


class _Cublas:
    """The functions of cuBLAS that opwise calls, as ctypes would call them."""

    def __init__(self):
        self.streams, self.calls = {}, []
        one, two = self._gemm, self._gemm_batched
        self.cublasGemmEx = lambda *args: one(*args)
        self.cublasGemmStridedBatchedEx = lambda *args: two(*args)
        self.cublasCreate_v2 = lambda handle: self._create(handle)
        self.cublasSetStream_v2 = lambda handle, stream: self._set_stream(handle, stream)
        self.cublasSetWorkspace_v2 = lambda handle, memory, size: 0 if memory % 256 == 0 else 7
        self.modes = {}
        self.cublasSetPointerMode_v2 = lambda handle, mode: self._set_mode(handle, mode)
        self.cublasSgemv_v2 = lambda *args: self._gemv(np.float32, *args)
        self.cublasDgemv_v2 = lambda *args: self._gemv(np.float64, *args)

    def _create(self, handle):
        _here.streams[-1].refuse_capture()
        handle._obj.value = 77 + len(self.streams)
        self.streams[handle._obj.value] = None
        return 0

    def _set_stream(self, handle, stream):
        self.streams[handle.value] = stream
        return 0

    def _do(self, handle, work):
        assert self.streams[handle.value] == _here.streams[-1].ptr, "the stream of somebody else"
        _do(work)
        return 0

    def _set_mode(self, handle, mode):
        self.modes[handle.value] = mode
        return 0

    def _scale(self, handle, given, type_):
        """Return the function that gives alpha or beta: a number now, or what is there later."""
        if self.modes.get(handle.value):
            return lambda: _at(given, (), (), type_)[()]
        assert type(given._obj) is type_
        value = given._obj.value
        return lambda: value

    def _gemm(self, handle, opa, opb, m, n, k, alpha, a, ta, lda, b, tb, ldb, beta, c, tc, ldc,
              compute, algorithm):  # fmt: skip
        return self._gemm_batched(
            handle, opa, opb, m, n, k, alpha, a, ta, lda, 0, b, tb, ldb, 0, beta, c, tc, ldc, 0, 1,
            compute, algorithm,
        )  # fmt: skip

    def _gemm_batched(self, handle, opa, opb, m, n, k, alpha, a, ta, lda, stride_a, b, tb, ldb,
                      stride_b, beta, c, tc, ldc, stride_c, count, compute, algorithm):  # fmt: skip
        assert ta == tb == tc and algorithm == -1 and min(m, n, k, count) > 0
        dtype = np.dtype(_DTYPES[ta])
        assert compute in ((70,) if dtype == np.float64 else (68, 77))
        scale = ctypes.c_double if dtype == np.float64 else ctypes.c_float
        alpha, beta = self._scale(handle, alpha, scale), self._scale(handle, beta, scale)
        self.calls.append((opa, opb, m, n, k, count, compute))

        def matrix(address, operation, rows, columns, ld, i, stride):
            shape = (columns, rows) if operation else (rows, columns)
            assert ld >= shape[0]
            size = dtype.itemsize
            found = _at(address + i * stride * size, shape, (size, ld * size), dtype)
            return found.T if operation else found

        def work():
            for i in range(count):
                x = matrix(a, opa, m, k, lda, i, stride_a).astype(scale)
                y = matrix(b, opb, k, n, ldb, i, stride_b).astype(scale)
                if compute == 77:
                    x, y = _rounded(x), _rounded(y)
                into = matrix(c, 0, m, n, ldc, i, stride_c)
                into[...] = alpha() * (x @ y) + (beta() * into if beta() else 0)

        return self._do(handle, work)

    def _gemv(self, dtype, handle, operation, m, n, alpha, a, lda, x, incx, beta, y, incy):
        size = np.dtype(dtype).itemsize
        assert lda >= m > 0 < n and incx > 0 < incy
        self.calls.append((operation, m, n))
        scale = ctypes.c_double if dtype == np.float64 else ctypes.c_float
        alpha, beta = self._scale(handle, alpha, scale), self._scale(handle, beta, scale)

        def work():
            matrix = _at(a, (m, n), (size, lda * size), dtype)
            matrix = matrix.T if operation else matrix
            vector = _at(x, (matrix.shape[1],), (incx * size,), dtype)
            into = _at(y, (matrix.shape[0],), (incy * size,), dtype)
            into[...] = alpha() * (matrix @ vector) + (beta() * into if beta() else 0)

        return self._do(handle, work)


def _rounded(x):
    """Return float32 with 10 bits behind the point, as TF32 has."""
    bits = x.astype(np.float32).view(np.uint32)
    return ((bits + 0x1000) & np.uint32(0xFFFFE000)).view(np.float32)


# --- the rest of the module ---------------------------------------------------------------------


class _Device:
    attributes = {"MultiProcessorCount": 4, "MaxSharedMemoryPerBlock": 49152}

    compute_capability = "90"

    def __init__(self, index):
        self.index = index

    def __enter__(self):
        pass

    def __exit__(self, *error):
        pass


def _compile(source, options):
    assert "--fmad=false" in options
    return source.encode(), None


def _copy(target, source, size, kind, stream):
    """cudaMemcpyAsync: from the device what is there then, when the device has come so far."""
    assert stream == STREAM.ptr
    host = target if kind == 2 else source
    memory = np.frombuffer((ctypes.c_char * size).from_address(host), np.uint8)
    place = (source if kind == 2 else target), (size,), (1,), np.uint8
    if kind == 2:
        memory[...] = _JUNK
        STREAM.do(lambda: np.copyto(memory, _at(*place)))
    elif any(np.shares_memory(memory, one) for one in _pinned):
        STREAM.do(lambda: np.copyto(_at(*place), memory))
    else:  # there is a copy of it at once
        copy = memory.copy()
        STREAM.do(lambda: np.copyto(_at(*place), copy))


_pinned, _free_pinned = [], {}


def _alloc_pinned(size):
    """Return memory of a pool that gives it out again as soon as it is given back."""
    size = -(-size // 512) * 512
    free = _free_pinned.setdefault(size, [])
    if not free:
        free.append(np.empty(size, np.uint8))
        _pinned.append(free[0])
    memory = free.pop()
    given = type("PinnedMemoryPointer", (ctypes.c_ubyte * size,), {}).from_buffer(memory)
    weakref.finalize(given, _give_pinned, memory)
    return given


def _give_pinned(memory):
    memory.fill(_JUNK)
    _free_pinned.setdefault(memory.size, []).append(memory)


def _made(function):
    """Return a function of numpy as one of arrays of the device."""

    def call(*args, **kwargs):
        result = function(*map(_hosts, args), **kwargs)
        if isinstance(result, tuple):
            return tuple(map(_new, result))
        return _new(np.asarray(result))

    return call


def _hosts(value):
    return tuple(map(_hosts, value)) if isinstance(value, tuple) else _host(value)


def _solver(function):
    """Return a function of linear algebra; a failure must not go unnoticed."""
    call = _made(function)

    def solve(*args, **kwargs):
        try:
            return call(*args, **kwargs)
        except np.linalg.LinAlgError as error:
            assert _here.linalg == "raise", "the results of a routine that failed are undefined"
            raise np.linalg.LinAlgError(f"Error reported by cuSOLVER: {error}") from None

    return solve


@contextmanager
def _errstate(linalg):
    _here.linalg, before = linalg, _here.linalg
    try:
        yield
    finally:
        _here.linalg = before


def _solve_triangular(a, b, lower=False):
    x = np.tril(a) if lower else np.triu(a)
    assert a.dtype == b.dtype and x.diagonal().all(), "cuBLAS divides by zero"
    return np.linalg.solve(x, b)


def _linear_algebra(monkeypatch, xp):
    """Give the module what CuPy has of linear algebra and Fourier transforms, and cupyx."""
    names = ("inv", "pinv", "solve", "cholesky", "eigh", "svd", "qr")
    solvers = {name: _solver(getattr(np.linalg, name)) for name in names}
    xp.linalg = SimpleNamespace(**solvers, det=_made(np.linalg.det))
    xp.fft = SimpleNamespace(rfftn=_made(np.fft.rfftn), irfftn=_made(np.fft.irfftn))
    modules = {name: ModuleType(name) for name in ("cupyx", "cupyx.scipy", "cupyx.scipy.linalg")}
    modules["cupyx"].errstate = _errstate
    modules["cupyx.scipy.linalg"].solve_triangular = _made(_solve_triangular)
    for name, module in modules.items():
        monkeypatch.setitem(sys.modules, name, module)


def install(monkeypatch, devices=1):
    """Let ``import cupy`` give what is emulated here; returns the module."""
    xp = ModuleType("cupy")
    functions = ("dot", "matmul", "sort", "argsort", "diff", "nonzero",
                 "take", "moveaxis", "flip", "take_along_axis", "broadcast_to", "arange",
                 "unravel_index", "stack", "zeros", "isfinite", "diagonal", "real",
                 "imag")  # fmt: skip
    for name in functions:
        setattr(xp, name, _made(getattr(np, name)))
    _linear_algebra(monkeypatch, xp)
    xp.ndarray, xp.RawModule = ndarray, RawModule
    xp.empty = ndarray

    def asarray(value, dtype=None):
        if isinstance(value, ndarray):
            same = dtype is None or np.dtype(dtype) == value.dtype
            return value if same else _converted(value, dtype)
        return _new(np.array(value, dtype=dtype))

    def ascontiguousarray(value):
        return value if value.flags.c_contiguous and value.ndim else _converted(value, value.dtype)

    xp.array = lambda value, copy, blocking: _new(np.array(value))
    xp.asarray, xp.asnumpy = asarray, lambda array: array._host.copy()
    xp.ascontiguousarray = ascontiguousarray
    xp.get_default_memory_pool = lambda: MEMORY
    runtime = SimpleNamespace(
        getDeviceCount=lambda: devices, CUDARuntimeError=CUDARuntimeError,
        memGetInfo=lambda: (3 * 10**9, 4 * 10**9),
        getDeviceProperties=lambda index: {"name": b"an emulated device"},
        memcpyAsync=_copy, memcpyHostToDevice=1, memcpyDeviceToHost=2,
    )  # fmt: skip

    def stream(non_blocking=False):
        return _Stream() if non_blocking else STREAM

    xp.cuda = SimpleNamespace(
        runtime=runtime, Device=_Device, Stream=stream, Event=_Event,
        MemoryHook=MemoryHook, memory=SimpleNamespace(OutOfMemoryError=OutOfMemoryError),
        Memory=Memory, MemoryPointer=MemoryPointer, UnownedMemory=UnownedMemory,
        using_allocator=using_allocator, alloc_pinned_memory=_alloc_pinned,
        get_elapsed_time=lambda a, b: float(b.time - a.time),
    )  # fmt: skip
    compiler = ModuleType("cupy.cuda.compiler")
    compiler.compile_using_nvrtc = _compile
    xp.__version__ = "emulated"
    xp.cublas = _Cublas()
    _here.hooks.clear()
    monkeypatch.setitem(sys.modules, "cupy", xp)
    monkeypatch.setitem(sys.modules, "cupy.cuda.compiler", compiler)
    monkeypatch.setattr(device.Device, "_blas_library", property(lambda self: xp.cublas))
    monkeypatch.setattr(device, "_devices", {})
    monkeypatch.setattr(legacystate.legacy, "device", None)
    return xp
