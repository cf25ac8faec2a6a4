"""Calls that fail on a device, at every place: what is said, and that nothing is left behind."""

import emulated
import numpy as np
import pytest

import opwise
import opwise.tensor as T
from opwise import Apply, Mode
from opwise.errors import DeviceError
from opwise.gpu.runtime import device
from opwise.tensor.extra_ops import cpu_contiguous

RNG = np.random.RandomState(3)
X, Y = (RNG.rand(5, 5).astype("float32") for _ in range(2))
ONE, NINE = np.float32(1), np.float32(9)


@pytest.fixture(autouse=True)
def there(cupy):
    """Run every test on a device, perhaps an emulated one."""


@pytest.fixture
def mode():
    return Mode("cupy")


@pytest.fixture
def w():
    return opwise.shared(X.copy(), "w")


# --- updates in place -----------------------------------------------------------------------------


def test_a_copy_of_what_is_overwritten_before_it(mode, w):
    v = opwise.shared(Y.copy(), "v")
    new = T.inc_subtensor(w[0], ONE)
    f = opwise.function([], updates=[(w, new), (v, T.set_subtensor(new[1], NINE))], mode=mode)
    f()
    expected = X.copy()
    expected[0] += 1
    np.testing.assert_allclose(w.get_value(), expected)
    expected[1] = 9
    np.testing.assert_allclose(v.get_value(), expected)


def test_a_result_made_of_an_update(mode, w):
    new = T.inc_subtensor(w[0], ONE)
    out = opwise.Out(T.set_subtensor(new[1], NINE), borrow=True)
    expected = X.copy()
    expected[0] += 1
    expected[1] = 9
    f = opwise.function([], out, updates=[(w, new)], mode=mode)
    np.testing.assert_allclose(f().get(), expected)


def test_swapped_and_aliased_updates(mode, w):
    v = opwise.shared(Y.copy(), "v")
    opwise.function([], updates=[(w, v), (v, w)], mode=mode)()
    np.testing.assert_array_equal(w.get_value(), Y)
    opwise.function([], updates=[(w, w + v), (v, v * w)], mode=mode)()
    np.testing.assert_allclose(w.get_value(), X + Y)
    np.testing.assert_allclose(v.get_value(), X * Y)
    opwise.function([], updates=[(w, v)], mode=mode)()
    opwise.function([], updates=[(w, w + 1)], mode=mode)()
    np.testing.assert_allclose(v.get_value(), X * Y)


def test_views_as_updates(mode, w):
    f = opwise.function([], w[::-1], updates=[(w, w * 2)], mode=mode)
    np.testing.assert_array_equal(f(), X[::-1])
    opwise.function([], updates=[(w, w.T)], mode=mode)()
    opwise.function([], updates=[(w, w * 3)], mode=mode)()
    np.testing.assert_array_equal(w.get_value(), (6 * X).T)


# --- indices out of range -------------------------------------------------------------------------


@pytest.mark.parametrize("kept", [False, True])
def test_an_index_of_an_update_in_place(mode, w, kept):
    i = opwise.shared(np.array([1, 7]), "i") if kept else T.lvector("i")
    updates = [(w, T.inc_subtensor(w[i], ONE))]
    f = opwise.function([] if kept else [i], updates=updates, mode=mode)
    with pytest.raises(IndexError, match="index 7 is out of bounds"):
        f(*([] if kept else [[1, 7]]))
    np.testing.assert_array_equal(w.get_value(), X)


def test_a_bad_index_in_an_unused_value(mode):
    x, i = T.fmatrix("x"), T.lvector("i")
    f = opwise.function([x, i], T.exp(x)[i * 2] + 1, mode=mode)
    with pytest.raises(IndexError, match="index 14 is out of bounds"):
        f(X, [1, 7])
    f(X, [1, 2])


def test_a_bad_index_is_reported_before_what_it_makes_fail(mode):
    x, y, i = T.fmatrix("x"), T.fmatrix("y"), T.lvector("i")
    f = opwise.function([x, y, i], T.dot(T.exp(x)[i], y), mode=mode)
    with pytest.raises(IndexError, match="index 7"):
        f(X, Y[:4], [1, 7])
    with pytest.raises(ValueError, match="not aligned"):
        f(X, Y[:4], [1, 2])
    f(X, Y, [1, 2])

    class Picky(opwise.Op):
        __props__ = ()

        def make_node(self, x):
            return Apply(self, [x], [x.type()])

        def perform(self, node, inputs, output_storage):
            raise FloatingPointError("garbage")

    g = opwise.function([x, i], Picky()(x[i] * 2), mode=mode)
    with pytest.raises(IndexError, match="index 7"):
        g(X, [0, 7])
    with pytest.raises(FloatingPointError, match="garbage"):
        g(X, [0, 1])


# --- the rest -------------------------------------------------------------------------------------


def test_a_failure_leaves_nothing_prepared(mode, w):
    v, x = opwise.shared(Y.copy(), "v"), T.fmatrix("x")
    f = opwise.function([x], updates=[(w, w + 1), (v, v + x)], mode=mode)
    with pytest.raises(ValueError, match="Dimension mismatch"):
        f(X[:3])
    assert not any(getattr(thunk, "ready", None) for thunk in f.fn.thunks)
    np.testing.assert_array_equal(w.get_value(), X)
    f(X)
    np.testing.assert_array_equal(w.get_value(), X + 1)
    np.testing.assert_array_equal(v.get_value(), Y + X)


def test_times_of_a_call_that_failed_are_not_those_of_the_next(mode):
    x, y = T.fmatrices("x", "y")
    f = opwise.function([x, y], T.dot(T.exp(x), y), mode=mode)
    f.fn.timing.start()
    with pytest.raises(ValueError, match="not aligned"):
        f(X, Y[:4])
    f(X, Y)
    assert {row[0] for row in f.fn.timing.by_step()} == {1}


def test_numbers_keep_their_type(mode):
    x = T.fmatrix("x")
    total = T.exp(x).sum()
    f = opwise.function([x], [T.exp(x) * cpu_contiguous(total), cpu_contiguous(total)], mode=mode)
    product, number = f(X)
    np.testing.assert_allclose(product, np.exp(X) * np.exp(X).sum(), rtol=1e-5)
    assert number.shape == ()


def test_products_added_in_place_copy_no_parameters(mode, w, monkeypatch):
    """What a step of training overwrites is checked before anything is, and copied nowhere."""
    x, b = T.fmatrix("x"), opwise.shared(X[0].copy(), "b")
    updates = [(w, w - np.float32(0.1) * T.dot(x.T, x)), (b, b - x.sum(axis=0))]
    f = opwise.function([x], (w * 2).sum(), updates=updates, mode=mode)
    assert any(node.op.destroy_map for node in f.linked.order)
    monkeypatch.setattr(type(f.fn), "_copied", None)
    f(Y)
    np.testing.assert_allclose(w.get_value(), X - np.float32(0.1) * np.dot(Y.T, Y), rtol=1e-5)
    with pytest.raises(ValueError, match=r"Dimension mismatch|gemm|not aligned"):
        f(Y[:, :3])
    np.testing.assert_allclose(b.get_value(), X[0] - Y.sum(axis=0), rtol=1e-5)


class TestEmulated:
    """What only an emulated device can be made to do."""

    @pytest.fixture
    def cupy(self, monkeypatch):
        return emulated.install(monkeypatch, devices=2)

    def test_a_kernel_that_cannot_be_compiled_when_it_is_needed(self, mode, w, cupy):
        v = opwise.shared(Y.copy(), "v")
        by_columns = opwise.shared(np.asfortranarray(X), borrow=True)
        a = T.fmatrix("a")
        f, g = (
            opwise.function([a], updates=[(w, T.exp(w) + x), (v, T.sqrt(v) * y)], mode=mode)
            for x, y in ((a, by_columns), (by_columns, a))
        )

        def broken(path):
            raise RuntimeError("a module that cannot be loaded")

        cupy.RawModule = broken
        for function in (f, g):
            with pytest.raises(DeviceError, match="CuPy cannot compile"):
                function(X)
            np.testing.assert_array_equal(w.get_value(), X)
            np.testing.assert_array_equal(v.get_value(), Y)

    def test_compiled_kernels_are_kept_and_damaged_ones_not_loaded(
        self, mode, cupy, use_cache, tmp_path
    ):
        cache = use_cache(tmp_path / "cache")
        x = T.fmatrix("x")

        def kernels_in_a_new_process():
            device.device(0)._modules.clear()
            f = opwise.function([x], T.exp(x * 0.7251), mode=mode)
            np.testing.assert_allclose(f(X), np.exp(X * np.float32(0.7251)), rtol=1e-6)
            return {path: path.stat().st_ino for path in cache.glob("*.cubin")}

        first = kernels_in_a_new_process()
        assert first and kernels_in_a_new_process() == first  # none was compiled again
        for path in first:
            path.write_bytes(path.read_bytes()[:-40])
        with pytest.warns(UserWarning, match=r"\.cubin is not loaded: it is incomplete"):
            again = kernels_in_a_new_process()
        assert again.keys() == first.keys() and again != first
        assert {path.stat().st_mode & 0o777 for path in again} == {0o600}

    def test_out_of_memory_names_the_line(self, mode, cupy):
        x = T.fmatrix("x")
        f = opwise.function([x], T.exp(x).sum(axis=0), mode=mode)

        def empty(shape, dtype):
            raise emulated.OutOfMemoryError(512, 1024)

        cupy.empty = empty
        with pytest.raises(MemoryError, match=r"(?s)allocating 512 bytes.*test_failures.py"):
            f(X)

    def test_two_devices(self):
        assert [device.device(k).index for k in (0, 1)] == [0, 1]

    def test_the_users_stream_is_left_alone(self, mode):
        x = T.fmatrix("x")
        f = opwise.function([x], T.exp(x), mode=mode)
        f(X)
        assert emulated.STREAM.depth == 0
        with pytest.raises(ValueError, match="reshape"):
            opwise.function([x], T.exp(x).reshape((7,)), mode=mode)(X)
        assert emulated.STREAM.depth == 0
