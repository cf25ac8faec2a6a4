"""Products by cuBLAS: every layout of matrices, against numpy."""

import ctypes
import itertools
import sys
from types import ModuleType, SimpleNamespace

import numpy as np
import pytest

import opwise
import opwise.tensor as T
from opwise import Mode
from opwise.errors import DeviceError
from opwise.gpu.runtime import blas
from opwise.gpu.runtime.device import Device
from opwise.linkers import opwise_c
from opwise.tensor.blas import Gemm, Gemv

RNG = np.random.RandomState(6)
SHAPES = [(3, 4, 5), (1, 4, 5), (3, 1, 5), (3, 4, 1), (1, 1, 5), (1, 4, 1), (3, 1, 1), (1, 1, 1)]

#: how a matrix lies in memory: of an array of at least its shape
LAYOUTS = {
    "rows": lambda m: m.copy(),
    "columns": lambda m: m.T.copy().T,
    "part of rows": lambda m: _part(m, (2, 3)),
    "part of columns": lambda m: _part(m.T, (2, 3)).T,
    "every other": lambda m: _part(m, (0, 0), 2),
    "backwards": lambda m: m[::-1].copy()[::-1],
}


def _part(m, more, step=1):
    whole = np.full([n * step + k for n, k in zip(m.shape, more, strict=True)], 9, m.dtype)
    part = whole[: m.shape[0] * step : step, : m.shape[1] * step : step]
    part[...] = m
    return part


@pytest.fixture
def device(cupy):
    opwise.gpu.runtime.device.device()
    (found,) = opwise.gpu.runtime.device.opened()
    return found


def on_device(device, matrix):
    """Return an array of the device that lies as one of numpy does."""
    whole = matrix if matrix.base is None else matrix.base
    there = device.upload(np.ascontiguousarray(whole.ravel(order="K")))
    start = matrix.ctypes.data - whole.ctypes.data
    return device.array_at(there.data + start, matrix.shape, matrix.strides, matrix.dtype), there


def test_forms():
    assert blas.form_of((3, 4), (16, 4), 4) == (False, 4)
    assert blas.form_of((3, 4), (4, 12), 4) == (True, 3)
    assert blas.form_of((3, 4), (40, 4), 4) == (False, 10)
    assert blas.form_of((3, 4), (32, 8), 4) is None
    assert blas.form_of((3, 4), (-16, 4), 4) is None
    assert blas.form_of((3, 4), (0, 4), 4) is None, "the same row three times"
    assert blas.form_of((3, 4), (6, 4), 4) is None
    assert blas.form_of((1, 4), (0, 4), 4) == (False, 4)
    assert blas.form_of((3, 1), (8, 4), 4) == (False, 2)
    assert blas.form_of((3, 1), (0, 4), 4) is None


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16"])
def test_all_layouts(device, dtype):
    tolerance = {"float16": 2e-2, "float32": 1e-5, "float64": 1e-12}[dtype]
    with device.active():
        for shape, *names in itertools.product(SHAPES, *[LAYOUTS] * 3):
            m, k, n = shape
            x, y, z = (
                LAYOUTS[name](RNG.rand(*s).astype(dtype))
                for name, s in zip(names, ((m, k), (k, n), (m, n)), strict=True)
            )
            forms = [blas.form_of(a.shape, a.strides, a.itemsize) for a in (x, y, z)]
            if None in forms:
                assert {"every other", "backwards"} & set(names)
                continue
            (a, _x), (b, _y), (c, whole) = (on_device(device, v) for v in (x, y, z))
            before = device.download(whole)
            device.blas.gemm(a, b, c, 0.5, 2.0)
            expected = 0.5 * x.astype("float64") @ y.astype("float64") + 2.0 * z
            np.testing.assert_allclose(device.download(c), expected, rtol=tolerance, err_msg=names)
            # nothing but the result is written
            changed = device.download(whole) != before
            assert changed.sum() <= m * n


def test_vectors(device):
    with device.active():
        for names in itertools.product(["rows", "columns", "part of rows"], ["plain", "sparse"]):
            matrix = LAYOUTS[names[0]](RNG.rand(4, 6))
            x, y = RNG.rand(12)[:: 2 if names[1] == "sparse" else 1][:6], RNG.rand(4)
            (a, _), (b, _), (c, _) = (on_device(device, v) for v in (matrix, x, y))
            device.blas.gemv(a, b, c, 2.0, 0.5)
            np.testing.assert_allclose(device.download(c), 2 * matrix @ x + 0.5 * y)


def test_scales_on_the_device(device):
    """They are read when the product is computed; numbers and arrays take turns."""
    with device.active():
        x, y, z = (RNG.rand(3, 3) for _ in range(3))
        (a, _), (b, _) = on_device(device, x), on_device(device, y)
        for alpha, beta in ((0.5, 2.0), (2.0, 0.0), (0.0, 1.0)):
            scales = device.upload(np.array(alpha)), device.number(beta, "float64")
            assert device.number(beta, "float64") is scales[1]
            for given in (scales, (alpha, beta), scales):
                c, _ = on_device(device, z.copy())
                device.blas.gemm(a, b, c, *given)
                np.testing.assert_allclose(device.download(c), alpha * x @ y + beta * z)
                v, _ = on_device(device, z[0].copy())
                device.blas.gemv(a, b[0], v, *given)
                np.testing.assert_allclose(device.download(v), alpha * x @ y[0] + beta * z[0])


def test_a_batch(device):
    with device.active():
        for first, second in itertools.product((False, True), repeat=2):
            x, y = RNG.rand(3, 4, 5), RNG.rand(3, 5, 2)
            x = np.swapaxes(np.swapaxes(x, 1, 2).copy(), 1, 2) if first else x
            y = np.broadcast_to(y[:1], y.shape) if second else y
            (a, _), (b, _) = on_device(device, x), on_device(device, y)
            for out in (np.zeros((3, 4, 2)), np.zeros((3, 2, 4)).swapaxes(1, 2)):
                c, _ = on_device(device, out)
                device.blas.gemm_batched(a, b, c)
                np.testing.assert_allclose(device.download(c), x @ y)


@pytest.mark.parametrize("cupy", ["emulated"], indirect=True)
def test_tf32(cupy, flags):
    """A flag, off by default; of float32 alone."""
    x, y = T.fmatrices("x", "y")
    f = opwise.function([x, y], T.dot(x, y), mode=Mode("cupy"))
    a, b = (RNG.rand(8, 8).astype("float32") for _ in range(2))
    exact = f(a, b)
    assert cupy.cublas.calls[-1][-1] == 68
    np.testing.assert_allclose(exact, a @ b, rtol=1e-6)
    flags({"cuda.tf32": True})
    rounded = opwise.function([x, y], T.dot(x, y), mode=Mode("cupy"))(a, b)
    assert cupy.cublas.calls[-1][-1] == 77
    np.testing.assert_allclose(rounded, a @ b, rtol=1e-3)
    assert not np.allclose(rounded, exact, rtol=1e-6)
    z = T.dmatrix("z")
    opwise.function([z], T.dot(z, z), mode=Mode("cupy"))(a.astype("float64"))
    assert cupy.cublas.calls[-1][-1] == 70


@pytest.mark.parametrize("name", LAYOUTS)
def test_functions_take_all_layouts(cupy, name):
    """What BLAS cannot read is copied, and what it cannot write is written behind it."""
    values = [opwise.shared(LAYOUTS[name](RNG.rand(4, 4)), borrow=True) for _ in range(3)]
    x, y, z = values
    v = opwise.shared(RNG.rand(4))
    for out in (
        T.dot(x, y),
        Gemm(False)(z, 0.5, x, y, 2.0),
        Gemv(False)(v, 0.5, x.T, y[1], 1.0),
        T.dot(x[0], y.T),
        T.dot(x[:, 1], y[1]),
        T.dot(x[:0], y),
        T.dot(x[:, :0], y[:0]),
    ):
        there, here = (opwise.function([], out, mode=m) for m in (Mode("cupy", None), None))
        np.testing.assert_allclose(there(), here())
    new = Gemm(True)(z[1:, 1:], 0.5, x[1:, :2], y[:2, 1:], 2.0)
    expected = 2 * z.get_value()[1:, 1:] + 0.5 * x.get_value()[1:, :2] @ y.get_value()[:2, 1:]
    f = opwise.function([], new, mode=Mode("cupy", None), accept_inplace=True)
    np.testing.assert_allclose(f(), expected)


def test_vectors_of_float16_are_added_up_exactly(cupy):
    x = T.TensorType("float16", (False,))()
    f = opwise.function([x], T.dot(x, x), mode=Mode("cupy", None))
    value = np.ones(5000, "float16")
    value[1:] = np.float16(0.1)
    expected = np.float16((value.astype("float64") ** 2).sum())
    assert f(value) == pytest.approx(expected, rel=1e-3)


def test_a_vector_that_is_known_to_be_one_number(cupy):
    x, y = T.TensorType("float32", (True,))(), T.fvector()
    f = opwise.function([x, y], [T.dot(x, y), T.dot(y, x)], mode=Mode("cupy"))
    assert f([3], [4]) == [12, 12]
    with pytest.raises(ValueError, match=r"shapes \(1,\) and \(2,\) not aligned"):
        f([3], [4, 5])


class Refusing:
    """cuBLAS that answers each call with a status."""

    def __init__(self, status, names):
        for name in ("cublasCreate_v2", "cublasSetStream_v2", "cublasSetWorkspace_v2",
                     "cublasSetPointerMode_v2", "cublasGemmEx",
                     "cublasGemmStridedBatchedEx", "cublasSgemv_v2", "cublasDgemv_v2"):  # fmt: skip
            setattr(self, name, lambda *args, name=name: status if name in names else 0)


def test_a_status_is_an_error():
    library = Refusing(3, ["cublasCreate_v2"])
    library.cublasGetStatusString = lambda status: b"CUBLAS_STATUS_ALLOC_FAILED"
    with pytest.raises(DeviceError, match="cublasCreate of cuBLAS failed: CUBLAS_STATUS_ALLOC"):
        blas.Blas(library, 0, (0, 0))


def test_64_bit_lengths_are_used_if_cublas_has_them():
    """Since CUDA 12 the functions that take 64 bits are called."""
    library, seen = Refusing(0, []), []
    library.cublasGemmEx_64 = lambda *args: seen.append(args) or 0
    made = blas.Blas(library, 0, (0, 0))
    assert made._functions["cublasGemmEx"] is library.cublasGemmEx_64
    assert library.cublasGemmEx_64.argtypes.count(ctypes.c_int64) == 6
    assert made._functions["cublasSgemv_v2"].argtypes.count(ctypes.c_int) == 6


def test_lengths_that_do_not_fit_are_refused():
    """Where there is no function of 64 bits; ctypes would pass the low bits."""
    made = blas.Blas(Refusing(0, []), 0, (0, 0))
    call = made._functions["cublasGemmEx"]
    fits = [0] * len(call.argtypes)
    assert call(*fits) == 0
    fits[call.argtypes.index(ctypes.c_int, 3)] = 2**31
    with pytest.raises(DeviceError, match="up to 2147483647, not 2147483648"):
        call(*fits)


# --- the library ----------------------------------------------------------------------------------

#: what finds cuBLAS, which the emulated CuPy puts something else in place of
_LIBRARY = Device._blas_library.func


@pytest.fixture
def libraries(monkeypatch):
    """The package of CuPy's extensions: it loads the library of one that it is asked for."""
    package = ModuleType("cupy_backends.cuda.libs")
    package.__path__ = []
    for name in ("cupy_backends", "cupy_backends.cuda"):
        monkeypatch.setitem(sys.modules, name, ModuleType(name))
    monkeypatch.setitem(sys.modules, package.__name__, package)
    return package


def test_the_library_is_loaded_by_cupy(libraries):
    def loaded(name):
        if name == "cublas":
            return SimpleNamespace(__file__=opwise_c.__file__)
        raise AttributeError(name)

    libraries.__getattr__ = loaded
    assert hasattr(_LIBRARY(None), "PyInit_opwise_c")


def test_a_library_that_is_not_there(libraries):
    def missing(name):
        if name == "cublas":
            raise ImportError('Failure finding "libcublas.so"')
        raise AttributeError(name)

    libraries.__getattr__ = missing
    with pytest.raises(DeviceError, match=r"cannot load cuBLAS .*Failure finding.* pip install"):
        _LIBRARY(None)
