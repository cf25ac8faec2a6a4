"""What opwise takes from CuPy is in CuPy: with its package, and without a device or a driver.

Arrays whose elements nobody reads need neither, so that the emulated CuPy can be held against it.
"""

import inspect
import sys

import emulated
import numpy as np
import pytest


@pytest.fixture(scope="module")
def real():
    return pytest.importorskip("cupy", reason="CuPy is not installed")


@pytest.fixture(params=["emulated", "real"])
def cupy(request, monkeypatch):
    if request.param == "emulated":
        return emulated.install(monkeypatch)
    return request.getfixturevalue("real")


@pytest.fixture
def address(cupy):
    return emulated.MEMORY.raw(4096) if cupy.__version__ == "emulated" else 1 << 20


#: module or class, and what it must have
NAMES = {
    "cupy": "empty zeros array asarray asnumpy ascontiguousarray ndarray RawModule dot matmul sort "
            "argsort diff nonzero take moveaxis flip take_along_axis broadcast_to arange "
            "unravel_index stack get_default_memory_pool __version__",
    "cupy.cuda": "Device Stream Event Memory MemoryPointer UnownedMemory MemoryHook memory "
                 "alloc_pinned_memory using_allocator get_elapsed_time runtime",
    "cupy.cuda.memory": "OutOfMemoryError",
    "cupy.cuda.runtime": "getDeviceCount getDeviceProperties memGetInfo CUDARuntimeError "
                         "memcpyAsync memcpyHostToDevice memcpyDeviceToHost",
    "cupy.cuda.compiler": "compile_using_nvrtc",
    "cupy.cuda.Stream": "synchronize begin_capture end_capture __enter__ __exit__",
    "cupy.cuda.Event": "record synchronize",
    "cupy.cuda.Graph": "launch",
    "cupy.cuda.MemoryPool": "malloc used_bytes free_all_blocks set_limit",
}  # fmt: skip


@pytest.mark.parametrize("where", NAMES)
def test_names(where, real):
    found = real
    for part in where.split(".")[1:]:
        found = getattr(found, part)
    assert [name for name in NAMES[where].split() if not hasattr(found, name)] == []


def arguments(function):
    """Return the names of the arguments of a function, or of what Cython made of one."""
    try:
        return list(inspect.signature(function).parameters)
    except ValueError:
        listed = function.__doc__.partition("(")[2].partition(")")[0]
        return [part.split("=")[0].split()[-1] for part in listed.split(",")]


def test_arguments(real):
    cuda = real.cuda
    assert arguments(cuda.runtime.memcpyAsync)[:5] == ["dst", "src", "size", "kind", "stream"]
    assert arguments(cuda.UnownedMemory) == ["ptr", "size", "owner", "device_id"]
    assert arguments(cuda.MemoryPointer) == ["mem", "offset"]
    assert {"non_blocking"} <= set(arguments(cuda.Stream.__init__))
    assert {"disable_timing"} <= set(arguments(cuda.Event.__init__))
    assert arguments(cuda.Event.record)[-1] == "stream"
    assert arguments(cuda.using_allocator) == ["allocator"]
    assert arguments(cuda.compiler.compile_using_nvrtc)[:2] == ["source", "options"]
    assert "path (str)" in real.RawModule.__doc__


class Owner:
    """Keeps memory."""


@pytest.fixture
def memory(cupy, address):
    return cupy.cuda.MemoryPointer(cupy.cuda.UnownedMemory(address, 4096, Owner(), 0), 0)


def test_arrays_in_memory_that_is_given(cupy, address, memory):
    x = cupy.ndarray((4, 8), np.dtype("float32"), memory, None)
    assert (x.data.ptr, x.strides, x.nbytes, x.data.device_id) == (address, (32, 4), 128, 0)
    assert x.data.mem is memory.mem and x.data.mem.ptr == address and x.flags.c_contiguous
    y = cupy.ndarray((4, 8), "float32", memory + 128, (4, 16))
    assert (y.data.ptr, y.strides, y.flags.c_contiguous) == (address + 128, (4, 16), False)
    assert y.data.mem is memory.mem
    backward = x[::-1]
    z = cupy.ndarray(backward.shape, x.dtype, backward.data, backward.strides)
    assert (z.data.ptr, z.strides) == (address + 96, (-32, 4))
    nothing = cupy.cuda.MemoryPointer(cupy.cuda.UnownedMemory(0, 0, Owner(), 0), 0)
    assert cupy.ndarray((0, 3), "float32", nothing, None).data.ptr == 0


def test_views_keep_what_they_show(cupy, memory):
    x = cupy.ndarray((4, 8), np.dtype("float32"), memory, None)
    alone = sys.getrefcount(x)
    views = [x[1:], x.T, x.reshape(8, 4), x[0], x.transpose(1, 0), x[0, 0], x[:, None]]
    assert all(view.data.mem is x.data.mem for view in views)
    assert all(view.base is x for view in views) and sys.getrefcount(x) == alone + len(views)
    again = views[0][1:]
    assert again.base is x, "a view of a view shows the same array"


def test_the_owner_of_memory_is_freed_with_it(cupy, address):
    class Told(Owner):
        gone = False

        def __del__(self):
            Told.gone = True

    memory = cupy.cuda.MemoryPointer(cupy.cuda.UnownedMemory(address, 4096, Told(), 0), 0)
    part = cupy.ndarray((4,), "float32", memory + 16, None)[1:]
    del memory
    assert not Told.gone
    del part
    assert Told.gone
