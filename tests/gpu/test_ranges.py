"""Ranges for system profilers on a device: what is pushed is popped, also after a failure."""

import emulated
import numpy as np
import pytest

import opwise
import opwise.tensor as T
from opwise import Apply, Mode, ProfileMode
from opwise.gpu.placement.transfers import GpuFromHost, HostFromGpu
from opwise.tensor.blas import Dot22

X = np.random.RandomState(4).rand(5, 5).astype("float32")


@pytest.fixture
def cupy(monkeypatch):
    return emulated.install(monkeypatch)


@pytest.fixture(autouse=True)
def there(cupy):
    """Every test runs on the emulated device."""


def labels(f):
    return [f"+{k} {node.op}" for k, node in enumerate(f.linked.order)]


def ranges(f, most=None):
    """What a call leaves: the function around its Applys in order, or around the first of them."""
    return [f"+{f.name}", *(part for label in labels(f)[:most] for part in (label, "-")), "-"]


@pytest.mark.parametrize("make", [Mode, ProfileMode])
def test_calls_and_applys(marks, make):
    x, w = T.fmatrix("x"), opwise.shared(X, "w")
    mode = make("cupy", "fast_run")
    f = opwise.function([x], T.exp(x).sum(), updates=[(w, T.dot(w, x))], mode=mode, name="f")
    assert marks() == []
    f(X)
    assert marks() == ranges(f)
    f(X), f(X)
    assert marks() == 2 * ranges(f)
    ops = {type(node.op) for node in f.linked.order}
    assert {GpuFromHost, HostFromGpu, Dot22} <= ops


def test_a_graph_is_one_range(marks):
    w, v = opwise.shared(X.copy(), "w"), opwise.shared(X.copy(), "v")
    updates = [(w, T.exp(-w)), (v, T.exp(-v))]
    f = opwise.function([], updates=updates, mode=Mode("cupy", "fast_run"), name="f")
    f()
    assert marks() == ranges(f)
    f(), f()
    assert marks() == 2 * ["+f", "+CUDA graph of 0 to 1", "-", "-"]


def test_an_apply_of_the_host_that_fails(marks):
    class Picky(opwise.Op):
        __props__ = ()

        def make_node(self, x):
            return Apply(self, [x], [x.type()])

        def perform(self, node, inputs, output_storage):
            if (inputs[0] < 0).any():
                raise FloatingPointError("negative")
            output_storage[0][0] = inputs[0] + 1

    x = T.fmatrix("x")
    f = opwise.function([x], T.exp(Picky()(T.dot(x, x))), mode=Mode("cupy"), name="f")
    at = next(k for k, node in enumerate(f.linked.order) if isinstance(node.op, Picky))
    assert 0 < at < len(f.linked.order) - 1
    f(X)
    assert marks() == ranges(f)
    with pytest.raises(FloatingPointError, match="negative"):
        f(np.array([[0, -1], [1, 0]], "float32"))
    assert marks() == ranges(f, at + 1)


def test_an_apply_of_the_device_that_fails(marks, cupy, monkeypatch):
    x, y = T.fmatrices("x", "y")
    f = opwise.function([x, y], T.dot(T.exp(x), y), mode=Mode("cupy"), name="f")
    at = next(k for k, node in enumerate(f.linked.order) if isinstance(node.op, Dot22))
    with pytest.raises(ValueError, match="not aligned"):
        f(X, X[:4])
    assert marks() == ranges(f, at + 1)

    def full(shape, dtype):
        raise emulated.OutOfMemoryError(512, 1024)

    with monkeypatch.context() as patch:
        patch.setattr(cupy, "empty", full)
        with pytest.raises(MemoryError, match="allocating 512 bytes"):
            f(X, X)
    assert len(marks()) < len(ranges(f))  # which, the fixture has seen, are balanced
    f(X, X)
    assert marks() == ranges(f)


def test_an_error_that_a_kernel_reports_at_the_end(marks):
    x, i = T.fmatrix("x"), T.lvector("i")
    f = opwise.function([x, i], T.exp(x)[i * 2] + 1, mode=Mode("cupy"), name="f")
    with pytest.raises(IndexError, match="index 14 is out of bounds"):
        f(X, [1, 7])
    assert marks() == ranges(f)


def test_an_update_that_cannot_be_prepared(marks):
    w, v, x = opwise.shared(X, "w"), opwise.shared(X, "v"), T.fmatrix("x")
    updates = [(w, w + 1), (v, v + x)]
    f = opwise.function([x], updates=updates, mode=Mode("cupy", "fast_run"), name="f")
    with pytest.raises(ValueError, match="Dimension mismatch"):
        f(X[:3])
    assert marks() == ranges(f, f.linked.program.commit)
    f(X)
    assert marks() == ranges(f)
