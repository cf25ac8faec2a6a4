"""Capture regions as CUDA graphs: what is launched, and that results stay the same."""

import gc
import threading
from dataclasses import replace

import emulated
import numpy as np
import pytest

import opwise
import opwise.tensor as T
from opwise import Mode, ProfileMode
from opwise.compile import Shape_i
from opwise.gpu import lowering
from opwise.gpu.linker import CupyLinker
from opwise.gpu.lowering import Call
from opwise.gpu.placement.transfers import GpuFromHost, HostFromGpu
from opwise.gpu.runtime import buffers, graphs, staging
from opwise.tensor.assertion import Assert
from opwise.tensor.blas import Gemm
from opwise.tensor.extra_ops import Unique
from opwise.tensor.shape import shape_i_op
from opwise.tensor.sort import SortOp

RNG = np.random.RandomState(4)
X, Y = (RNG.rand(6, 6).astype("float32") for _ in range(2))
RATE = np.float32(0.1)


@pytest.fixture(autouse=True)
def there(cupy):
    """Run every test on a device, perhaps an emulated one."""


@pytest.fixture
def mode():
    return Mode("cupy")


def regions(f):
    return list(f.fn.capture_regions.values())


def captured(f):
    """Return how many graphs each region has captured."""
    return [len(s.captured) for s in regions(f)]


class Counts:
    """What was launched since it was created: graphs, single kernels, products."""

    def __init__(self, cupy):
        self.before = self._now(cupy)
        self.cupy = cupy

    def _now(self, cupy):
        return np.array(
            [emulated._Graph.launched, emulated.STREAM.launches, len(cupy.cublas.calls)]
        )

    def __call__(self):
        return tuple(self._now(self.cupy) - self.before)


emulated_only = pytest.mark.parametrize("cupy", ["emulated"], indirect=True)


def perceptron(mode, labels=False):
    """Return (function, its parameters): a training step on inputs of the host."""
    w, b = opwise.shared(X.copy(), "w"), opwise.shared(Y[0].copy(), "b")
    x, t = T.fmatrix("x"), T.ivector("t") if labels else T.fmatrix("t")
    p = T.nnet.softmax(T.dot(T.tanh(T.dot(x, w) + b), w.T))
    cost = T.nnet.categorical_crossentropy(p, t).mean() if labels else T.sqr(p - t).mean()
    updates = [(v, v - RATE * g) for v, g in zip((w, b), T.grad(cost, [w, b]), strict=True)]
    return opwise.function([x, t], cost, updates=updates, mode=mode), (w, b)


def compared(make, mode, calls=7):
    """Call what ``make(mode)`` gives on both sides, compare after each call; returns the one."""
    (f, params, arguments), (g, others, _) = make(mode), make(None)
    for k in range(calls):
        found, expected = (_listed(function(*arguments(k))) for function in (f, g))
        for ours, theirs in zip(found, expected, strict=True):
            np.testing.assert_allclose(_host(ours), theirs, rtol=2e-5, atol=1e-6)
        for ours, theirs in zip(params, others, strict=True):
            np.testing.assert_allclose(ours.get_value(), theirs.get_value(), rtol=2e-5, atol=1e-6)
    return f


def _listed(results):
    return results if isinstance(results, list) else [results]


def _host(value):
    return value.get() if hasattr(value, "get") else value


# --- what is launched -----------------------------------------------------------------------------


@emulated_only
def test_a_training_step_is_one_launch(mode, cupy):
    f, params = perceptron(mode)
    (region,) = regions(f)
    assert region.stop == len(f.linked.order) - 1, "all but the result"
    before = {type(n.op) for n in f.linked.order[: region.start]}
    assert before == {Shape_i, T.Elemwise, GpuFromHost}  # how many rows there are
    f(X, Y), f(X, Y)
    assert captured(f) == [1]
    counts = Counts(cupy)
    for _ in range(3):
        f(X, Y)
    assert counts() == (3, 0, 0)
    kept = params[0].container.storage[0]
    f(X, Y)
    assert params[0].container.storage[0] is kept, "parameters stay where they are"


def test_a_training_step_computes_the_same(mode):
    compared(lambda m: (*perceptron(m), lambda k: (X + k, Y)), mode)


@emulated_only
def test_kernels_that_report_errors_run_before_parameters_are_overwritten(mode, cupy):
    """A label out of range is reported before a parameter changes: two launches."""
    f, params = perceptron(mode, labels=True)
    labels = np.arange(6, dtype="int32")
    f(X, labels), f(X, labels), f(X, labels)
    assert captured(f) == [1, 1]
    counts = Counts(cupy)
    f(X, labels)
    assert counts() == (2, 0, 0)
    before = [p.get_value() for p in params]
    bad = labels.copy()
    bad[3] = 6
    with pytest.raises(ValueError, match=r"label 3 is 6, but .* 6 columns") as caught:
        f(X, bad)
    assert "Inputs shapes" in str(caught.value) and "test_graphs.py" in str(caught.value)
    for p, value in zip(params, before, strict=True):
        np.testing.assert_array_equal(p.get_value(), value)
    counts = Counts(cupy)
    f(X, labels)
    assert counts() == (2, 0, 0)


def test_labels(mode):
    labels = np.arange(6, dtype="int32")
    compared(lambda m: (*perceptron(m, True), lambda k: (X + k, labels[::-1] if k % 2 else labels)),
             mode)  # fmt: skip


def test_work_of_the_host_splits_a_region(mode):
    x = T.fmatrix("x")
    y = Unique()(T.exp(T.tanh(T.dot(x, x))) + 1)
    z = T.dot(T.sqr(T.dot(y, y) + x).sum(axis=0), x)
    f = compared(lambda m: (opwise.function([x], z, mode=m), (), lambda k: (X,)), mode)
    assert captured(f) == [1, 1]


@emulated_only
def test_the_flag(mode, cupy, flags):
    f, _ = perceptron(mode)
    flags({"cuda.graphs": False})
    counts = Counts(cupy)
    for _ in range(4):
        f(X, Y)
    assert counts()[0] == 0 and captured(f) == [0]


@emulated_only
def test_a_profile_has_every_launch(cupy):
    mode = ProfileMode("cupy", "fast_run")
    f, _ = perceptron(mode)
    counts = Counts(cupy)
    for _ in range(4):
        f(X, Y)
    assert counts()[0] == 0
    (told,) = mode.profile().functions
    assert all(a.count == 4 for a in told.applys)


def test_without_allow_gc(cupy):
    """Without allow_gc values stay until the next call, and no longer."""

    def make(mode):
        f, params = perceptron(mode)
        return f, params, lambda k: (X + k, Y)

    kept = Mode(CupyLinker(allow_gc=False), "fast_run")
    f = compared(lambda mode: make(kept if mode else None), True)
    assert captured(f) == [1]


@emulated_only
def test_a_counter_on_the_host_splits_no_region(mode, cupy):
    """A number that only the host counts up needs no copies."""

    def make(mode):
        _, (w, b) = perceptron(mode)
        count = opwise.shared(np.int64(0), "count")
        x = T.fmatrix("x")
        cost = T.sqr(T.dot(T.tanh(T.dot(x, w) + b), w)).sum()
        updates = [
            (p, p - RATE / 99 * g) for p, g in zip((w, b), T.grad(cost, [w, b]), strict=True)
        ]
        f = opwise.function([x], count * 2, updates=[*updates, (count, count + 1)], mode=mode)
        return f, (w, b, count), lambda k: (X,)

    f = compared(make, mode)
    assert len(regions(f)) == 1 and captured(f) == [1] and f.fn._total
    counts = Counts(cupy)
    assert f(X) == 14
    assert counts() == (1, 0, 0)


@emulated_only
def test_a_learning_rate_may_change_between_launches(mode, cupy):
    """The factor of a product may be another in each call."""

    def make(mode):
        w, x, rate = opwise.shared(X.copy()), T.fmatrix("x"), T.fscalar("rate")
        cost = T.sqr(T.dot(x, w)).mean()
        f = opwise.function([x, rate], cost, updates=[(w, w - rate * T.grad(cost, w))], mode=mode)
        return f, (w,), lambda k: (X, np.float32(0.1 / (1 + k)))

    f = compared(make, mode)
    assert [n.op.inplace for n in f.linked.order if isinstance(n.op, Gemm)] == [True]
    assert captured(f) == [1]
    counts = Counts(cupy)
    f(X, RATE), f(X, RATE * 2)
    assert counts() == (2, 0, 0)


# --- what a region reads --------------------------------------------------------------------------


@emulated_only
def test_slices_of_data_on_the_device(mode, cupy):
    """The loop of old programs: a number selects rows of a shared variable."""
    data = opwise.shared(RNG.rand(40, 6).astype("float32"))
    i = T.lscalar("i")

    def make(mode):
        w = opwise.shared(X.copy())
        x = T.fmatrix("x")
        cost = T.sqr(T.nnet.softmax(T.dot(x, w)) - 0.1).sum()
        updates = [(w, w - RATE * T.grad(cost, w))]
        f = opwise.function(
            [i], cost, updates=updates, givens={x: data[i * 4 : (i + 1) * 4]}, mode=mode
        )
        return f, [w], lambda k: (k,)

    f = compared(make, mode, calls=10)
    assert captured(f) == [1], "one graph for all rows"
    counts = Counts(cupy)
    f(3), f(7)
    assert counts() == (2, 0, 0)


def test_large_arrays_are_not_staged(mode, monkeypatch):
    monkeypatch.setattr(graphs, "_STAGED_BYTES", 100)
    data, i = opwise.shared(RNG.rand(9, 6, 6).astype("float32")), T.lscalar("i")
    out = T.exp(T.dot(data[i], data[i])).sum()
    f = compared(lambda m: (opwise.function([i], out, mode=m), (), lambda k: (k % 3,)), mode, 9)
    assert captured(f) == [3]


def test_a_region_remembers_a_few_shapes(mode):
    x = T.fmatrix("x")
    out = T.nnet.softmax(T.dot(x, x.T) * 2).sum(axis=0)
    arguments = [X[:n] for n in range(1, 7)]
    f = compared(
        lambda m: (opwise.function([x], out, mode=m), (), lambda k: (arguments[k % 6],)), mode, 24
    )
    assert captured(f) == [6]
    for n in range(1, 40):
        np.testing.assert_allclose(f(np.ones((n, 3), "float32")).sum(), n, rtol=1e-5)
    assert sum(captured(f)) <= graphs._CONFIGURATIONS


def test_rows_with_gaps_are_staged_as_contiguous_rows(mode):
    """Memory is requested as for the staged copies, which BLAS can read without another copy."""
    data, i = opwise.shared(RNG.rand(14, 12, 12).astype("float32")), T.lscalar("i")
    x, v = data[i][::2, ::2], np.ones((6, 2), "float32")
    outputs = [opwise.Out(y, borrow=True) for y in (T.dot(x, v), T.exp(x))]
    f = opwise.function([i], outputs, mode=mode)
    kept = []
    for k in range(14):
        lent = f(k)
        kept.append(lent if k > 10 else [array.get() for array in lent])
    assert captured(f) == [3]
    for k, (product, lent) in enumerate(kept):
        part = data.get_value()[k][::2, ::2]
        np.testing.assert_allclose(_host(product), part @ v, rtol=1e-5)
        np.testing.assert_allclose(_host(lent), np.exp(part), rtol=1e-5)


@emulated_only
def test_the_flag_tf32_is_part_of_the_key(mode, cupy, flags):
    x = T.fmatrix("x")
    f = opwise.function([x], T.dot(T.exp(x), x), mode=mode)
    f(X), f(X), f(X)
    flags({"cuda.tf32": True})
    cupy.cublas.calls.clear()
    f(X), f(X), f(X)
    assert {call[-1] for call in cupy.cublas.calls} == {77} and captured(f) == [2]


def test_numbers_of_the_host_are_part_of_the_key(mode):
    x, k = T.fmatrix("x"), T.lscalar("k")
    out = T.dot(T.exp(x)[k:], x).sum()
    f = compared(
        lambda m: (opwise.function([x, k], out, mode=m), (), lambda n: (X, n % 2)), mode, 8
    )
    assert captured(f) == [2]


def test_lengths_of_intermediate_values(mode):
    x, mask = T.fmatrix("x"), T.lvector("mask")
    y = T.exp(T.dot(x, x))[mask]
    out = T.dot(y.reshape((y.shape[0] * 2, -1)), y[:3, :3]).mean()
    f = compared(
        lambda m: (opwise.function([x, mask], out, mode=m), (), lambda k: (X, [0, 1, 2, k % 6])),
        mode, 8,
    )  # fmt: skip
    assert all(n <= 1 for n in captured(f))


def lengths(mode, **options):
    """A function whose region computes with numbers of the host."""
    x, rows = T.fmatrix("x"), T.lvector("rows")
    y = T.exp(T.dot(x, x))[rows]
    n = Unique()(rows).sum() - 5 + shape_i_op(0)(y)  # overwrites what came before
    out = T.dot(T.zeros((n, 4), dtype="float32") + 1, T.tanh(y))
    mode = mode and Mode("cupy").excluding("ShapeOpt")
    f = opwise.function([x, rows], [shape_i_op(0)(y), out], mode=mode, **options)
    return f, (), lambda k: (X, [0, 1, 2, 3])


def test_a_region_holds_numbers_of_the_host(mode):
    f = compared(lengths, mode)
    assert captured(f) == [1]
    for _ in range(3):
        length, _ = f(X, [0, 1, 2, 3])
        assert length == 4
        length += 1  # it is the caller's


def test_a_failed_capture_restores_numbers_of_the_host(mode, monkeypatch):
    def changed(*args):
        raise buffers.RequestsChanged

    monkeypatch.setattr(graphs.CaptureRegion, "_getter", changed)
    assert captured(compared(lengths, mode)) == [0]


def test_callers_may_overwrite_borrowed_results(mode):
    x = T.fvector("x")
    f = opwise.function([x], [opwise.Out(x[::-1], borrow=True), T.exp(x)], mode=mode)
    for _ in range(4):
        lent, _ = f(X[0])
        np.testing.assert_array_equal(_host(lent), X[0, ::-1])
        lent[...] = 7
        del lent


def test_arguments_may_change_after_the_call(mode):
    """The caller may overwrite its arrays while copies to the device are under way."""
    x = T.fmatrix("x")
    f = opwise.function([x], opwise.Out(T.dot(T.exp(x), x), borrow=True), mode=mode)
    expected = np.exp(X) @ X
    for _ in range(5):
        given = X.copy()
        result = f(given)
        given[...] = 0
        np.testing.assert_allclose(result.get(), expected, rtol=1e-5)


# --- results --------------------------------------------------------------------------------------


def test_callers_keep_borrowed_results(mode):
    x = T.fmatrix("x")
    y = T.exp(T.dot(x, x) / 99)
    f = opwise.function([x], [opwise.Out(y * 2, borrow=True), y.sum(axis=0)], mode=mode)
    kept = [f(X - k) for k in range(10)]
    for k, (lent, own) in enumerate(kept):
        expected = np.exp((X - k) @ (X - k) / 99)
        np.testing.assert_allclose(lent.get(), expected * 2, rtol=1e-4)
        np.testing.assert_allclose(own, expected.sum(axis=0), rtol=1e-4)
    assert captured(f) == [graphs._OUTPUT_BUFFERS], "no more memory than that of a few results"
    lent = kept[-1][0][1:, 2:]  # a view is enough to keep them
    expected = lent.get()
    del kept
    for k in range(5):
        f(X - k)
    np.testing.assert_array_equal(lent.get(), expected)


@emulated_only
def test_updates_that_are_not_in_place(mode, cupy):
    """The new value and the old swap buffers: a few graphs serve all calls."""

    def make(mode):
        w, v = opwise.shared(X / 9), opwise.shared(Y / 9)
        new = T.tanh(T.dot(w, v))
        return opwise.function([], updates=[(w, new), (v, new * 2 + w)], mode=mode), (w, v), tuple

    f = compared(lambda m: (*make(m)[:2], lambda k: ()), mode, 16)
    counts = Counts(cupy)
    for _ in range(4):
        f()
    assert counts() == (4, 0, 0)


def test_aliases_of_parameters(mode):
    def make(mode):
        w, v = opwise.shared(X.copy()), opwise.shared(Y.copy())
        new = T.inc_subtensor(w[0], T.dot(w, v).sum(axis=0))
        outputs = [opwise.Out(new.T, borrow=True), opwise.Out(v[1:], borrow=True)]
        f = opwise.function([], outputs, updates=[(w, new * RATE), (v, T.exp(-v))], mode=mode)
        return f, (w, v), lambda k: ()

    compared(make, mode)


def test_results_that_are_views_of_an_output_of_a_region(mode):
    """A slice, outside any region, of a value that the host reads in between."""
    x = T.fmatrix("x")
    y = T.exp(T.dot(x, x) / 9)
    f = opwise.function([x], opwise.Out(y[Unique()(y).shape[0] - 35 :], borrow=True), mode=mode)
    kept = [f(X - k) for k in range(5)]
    assert captured(f) == [graphs._OUTPUT_BUFFERS]
    for k, lent in enumerate(kept):
        np.testing.assert_allclose(lent.get(), np.exp((X - k) @ (X - k) / 9)[1:], rtol=1e-4)


def test_callers_keep_views_of_arguments(mode):
    """The copy of an argument is reused, but not while a result is a view of it."""
    x = T.fmatrix("x")
    outputs = [opwise.Out(x.T, borrow=True), T.dot(T.exp(x), x)]
    f = opwise.function([x], outputs, mode=mode)
    for k in range(4):
        f(X - k)
    assert captured(f) == [1]
    kept = [f(X - k)[0] for k in range(5)]
    for k, lent in enumerate(kept):
        np.testing.assert_array_equal(lent.get(), (X - k).T)


def test_empty_arrays(mode):
    x = T.fmatrix("x")
    out = opwise.Out(T.dot(T.exp(x), x.T) * 2, borrow=True)
    f = opwise.function([x], [out, T.exp(x).sum()], mode=mode)
    for shape in ((0, 3), (0, 0), (2, 0), (0, 3)):
        for _ in range(3):
            lent, own = f(np.ones(shape, "float32"))
            assert lent.shape == (shape[0], shape[0]) and own == 0 and not lent.get().any()


# --- memory ---------------------------------------------------------------------------------------


def test_memory_is_freed(mode):
    x = T.fmatrix("x")
    f = opwise.function([x], T.exp(T.dot(T.exp(T.dot(x, x)), x)).sum(), mode=mode)
    (device,) = opwise.gpu.runtime.device.opened()
    gc.collect()
    before = device.allocated()[0]
    for _ in range(4):
        f(X)
    assert captured(f) == [1] and device.allocated()[0] > before
    f.free()
    gc.collect()
    assert captured(f) == [0] and device.allocated()[0] == before
    np.testing.assert_allclose(f(X), f(X))


@emulated_only
def test_no_memory_for_a_graph(mode, cupy):
    x = T.fmatrix("x")
    f = opwise.function([x], T.exp(T.dot(T.exp(T.dot(x, x)), x)).sum(), mode=mode)
    expected = f(X)
    pool = cupy.get_default_memory_pool()
    region = regions(f)[0]
    real = region.device.piece

    def piece(size):
        raise emulated.OutOfMemoryError(size, 0)

    region.device.piece = piece
    try:
        np.testing.assert_allclose([f(X) for _ in range(3)], expected)
    finally:
        region.device.piece = real
    assert pool.limit == 0 and captured(f) == [0]


@emulated_only
def test_no_memory_for_results_of_a_graph(mode, cupy, monkeypatch):
    w = opwise.shared(X.copy())
    f = opwise.function([], updates=[(w, T.tanh(T.dot(w, w)))], mode=mode)
    f()

    def no(*args):
        raise emulated.OutOfMemoryError(1, 0)

    monkeypatch.setattr(graphs, "_OutputBuffer", no)
    expected = np.tanh(X @ X)
    for _ in range(3):
        f()
        expected = np.tanh(expected @ expected)
    np.testing.assert_allclose(w.get_value(), expected, rtol=1e-4)


@emulated_only
def test_graphs_are_dropped_before_a_call_runs_out_of_memory(mode, cupy):
    """A call that fits without graphs succeeds: they are dropped, and it is made again."""
    x, w = T.fmatrix("x"), opwise.shared(np.zeros(64, "float32"))
    y = T.exp(T.dot(T.exp(T.dot(x, x.T)), x))
    f = opwise.function([x], y.sum(), updates=[(w, w + y.sum(axis=0))], mode=mode)
    few, many = (np.full((n, 64), 1 / 64, "float32") for n in (64, 66))
    pool = cupy.get_default_memory_pool()
    f(few), f(few), f(few)
    assert captured(f) == [1]
    before, expected = w.get_value(), np.exp(np.exp(many @ many.T) @ many)
    pool.set_limit(pool.used_bytes() + 2048)  # there is more in use than the call needs
    try:
        np.testing.assert_allclose(f(many), expected.sum(), rtol=1e-4)
        assert captured(f) == [0]
        np.testing.assert_allclose(w.get_value() - before, expected.sum(axis=0), rtol=1e-3)
        with pytest.raises(MemoryError, match="is out of memory"):
            f(np.full((80, 64), 1 / 64, "float32"))
    finally:
        pool.set_limit(0)


# --- failures -------------------------------------------------------------------------------------


@emulated_only
def test_an_interrupted_launch(mode, cupy, monkeypatch):
    """It leaves no error flag set, and no result in use."""
    x, i = T.fmatrix("x"), T.lvector("i")
    w = opwise.shared(X.copy())
    y = T.exp(T.dot(x, x) / 9)[i]
    checked = y * Unique()(y).shape[0].astype("float32")
    outputs = [opwise.Out(T.dot(T.tanh(checked), x), borrow=True), y.sum()]
    f = opwise.function([x, i], outputs, updates=[(w, w + T.tanh(w))], mode=mode)
    expected = [_host(z) for z in f(X, [1, 2])]
    for _ in range(3):
        f(X, [1, 2])
    before = w.get_value()

    def interrupted(*args):
        raise KeyboardInterrupt

    for rows in ([1, 2], [1, 2], [1, 9]):
        with monkeypatch.context() as patch:
            patch.setattr(emulated._Graph, "launch", interrupted)
            with pytest.raises((KeyboardInterrupt, IndexError)):
                f(X, rows)
        np.testing.assert_array_equal(w.get_value(), before)
        assert not f.fn.error_flags.get().any()
        free = [graph.is_free() for s in regions(f) for graph in s.captured]
        assert free and all(free)
    for found, wanted in zip(f(X, [1, 2]), expected, strict=True):
        np.testing.assert_array_equal(_host(found), wanted)


@emulated_only
def test_a_refused_capture_warns_once(mode, cupy, monkeypatch):
    """If CUDA refuses a capture, kernels are launched one by one."""
    entry = lowering.table()[SortOp]

    def wrong(node):
        call = entry.function(node)
        return Call(call.function, call.host, call.view, call.target, True)

    monkeypatch.setitem(lowering.table(), SortOp, replace(entry, function=wrong))
    x = T.fmatrix("x")
    w = opwise.shared(X.copy())
    out = T.sort(T.exp(T.dot(x, x)), axis=0)
    f = opwise.function([x], out, updates=[(w, w + T.exp(x))], mode=mode)
    expected = f(X)
    with pytest.warns(UserWarning, match="CUDA graph capture failed .*not permitted"):
        np.testing.assert_array_equal(f(X), expected)
    for _ in range(3):  # a warning would be an error
        np.testing.assert_array_equal(f(X), expected)
    np.testing.assert_allclose(w.get_value(), X + 5 * np.exp(X), rtol=1e-5)
    # other functions are captured still
    g, _ = perceptron(mode)
    g(X, Y), g(X, Y)
    assert captured(g) == [1]


@emulated_only
def test_requests_that_change_are_recorded_again(mode, cupy, monkeypatch):
    f, params = perceptron(mode)
    g, theirs = perceptron(None)
    f(X, Y)
    region = regions(f)[0]
    (recorded,) = region._configurations.values()
    recorded.requests[1].size += 1
    for _ in range(5):
        f(X, Y)
    assert captured(f) == [1] and region._failures == 1
    for _ in range(6):
        g(X, Y)
    for ours, expected in zip(params, theirs, strict=True):
        np.testing.assert_allclose(ours.get_value(), expected.get_value(), rtol=1e-4)


def test_an_error_of_the_host_after_a_launch(mode):
    """What the host does behind a graph fails: parameters keep their values."""
    w, x = opwise.shared(X.copy()), T.fmatrix("x")
    y = T.exp(T.dot(x, w) / 9)
    checked = Assert("too much")(y, T.lt(Unique()(y).max(), 1e9))
    f = opwise.function([x], T.dot(checked, y).sum(), updates=[(w, w + T.exp(x))], mode=mode)
    for _ in range(3):
        f(X)
    before = w.get_value()
    with pytest.raises(AssertionError, match="too much"):
        f(X * 100)
    np.testing.assert_array_equal(w.get_value(), before)
    f(X)
    np.testing.assert_allclose(w.get_value(), before + np.exp(X), rtol=1e-5)


def test_an_error_reported_after_parameters_are_overwritten(mode):
    """Parameters are restored before the call is made again step by step."""
    v, w = opwise.shared(X.copy()), opwise.shared(Y.copy())
    x, i = T.fmatrix("x"), T.lvector("i")
    a = T.exp(T.dot(x, x) / 9)
    b = T.dot(a, a)
    updates = [(v, v + b), (w, T.inc_subtensor(w[i], b[:2]))]
    f = opwise.function([x, i], updates=updates, mode=mode)
    for _ in range(3):
        f(X, [1, 2])
    assert captured(f) == [1]
    before = [p.get_value() for p in (v, w)]
    for _ in range(2):
        with pytest.raises(IndexError, match="9 is out of bounds"):
            f(X, [1, 9])
        for p, value in zip((v, w), before, strict=True):
            np.testing.assert_array_equal(p.get_value(), value)
    f(X, [1, 2])
    assert not np.array_equal(v.get_value(), before[0])


@emulated_only
def test_failed_copies_to_the_device(mode, cupy, monkeypatch):
    """After a failed copy, equal numbers are sent again."""
    x = T.fvector("x")
    f = opwise.function([x], T.dot(T.exp(x), x[::-1] * 2), mode=mode)
    short, long = X[0, :3], X[0]
    expected = f(long), f(short), f(short)
    device = regions(f)[0].device

    def no(*args):
        raise KeyboardInterrupt

    for name in ("empty", "send"):
        with monkeypatch.context() as patch:
            patch.setattr(device, name, no)
            with pytest.raises(KeyboardInterrupt):
                f(long)
        gc.collect()  # its frames held the array
        assert (f(long), f(short), f(short)) == expected


def test_threads(mode):
    """Each captures its own work."""
    functions, wrong = [perceptron(mode) for _ in range(4)], []

    def work(f, x):
        try:
            for _ in range(6):
                f(x, Y)
        except BaseException as error:  # told below
            wrong.append(error)

    threads = [threading.Thread(target=work, args=(f, X + k)) for k, (f, _) in enumerate(functions)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not wrong
    for k, (_, params) in enumerate(functions):
        g, theirs = perceptron(None)
        for _ in range(6):
            g(X + k, Y)
        for ours, expected in zip(params, theirs, strict=True):
            np.testing.assert_allclose(ours.get_value(), expected.get_value(), rtol=1e-4)


# --- order and transfers --------------------------------------------------------------------------


def test_the_order_makes_one_region(mode):
    """Arguments first, results last, whatever order the graph has."""
    x, y = T.fmatrices("x", "y")
    outputs = [T.exp(T.dot(x, x)).sum(), T.exp(T.dot(y, x)).sum(), T.dot(y, y) + 1]
    f = opwise.function([x, y], outputs, mode=mode)
    kinds = [type(n.op) for n in f.linked.order]
    assert kinds[:2] == [GpuFromHost] * 2 and kinds[-3:] == [HostFromGpu] * 3
    assert not {GpuFromHost, HostFromGpu} & set(kinds[2:-3]) and len(regions(f)) == 1


@emulated_only
def test_a_call_waits_only_for_its_results(mode, cupy, monkeypatch):
    f, _ = perceptron(mode)
    for _ in range(3):
        f(X, Y)
    waits = []
    real = emulated.STREAM.synchronize
    monkeypatch.setattr(emulated.STREAM, "synchronize", lambda: (waits.append(1), real()))
    f(X, Y)
    # the copies of two arguments before these were there long ago: two events
    assert len(waits) == 3, "and the result"
    w = opwise.shared(X.copy())
    g = opwise.function([], updates=[(w, T.exp(T.dot(w, w) - w) * RATE)], mode=mode)
    g(), g(), g(), g()
    waits.clear()
    g()
    assert not waits, "there are no results"


def test_copies_outlive_the_function_that_enqueued_them(mode):
    """Pinned memory is given out again at once, while the device has yet to read it."""
    w, x = opwise.shared(X.copy()), T.fmatrix("x")
    for value in (X, Y, X):
        opwise.function([x], updates=[(w, w + x)], mode=mode)(value)
        gc.collect()
    np.testing.assert_allclose(w.get_value(), 3 * X + Y, rtol=1e-6)


def test_large_values_go_without_pinned_memory(mode, monkeypatch):
    monkeypatch.setattr(staging, "LIMIT", 64)
    x = T.fmatrix("x")
    f = opwise.function([x], [T.exp(x), T.exp(x).sum()], mode=mode)
    for _ in range(4):
        a, b = f(X.T)
        np.testing.assert_allclose(a, np.exp(X.T), rtol=1e-6)
        np.testing.assert_allclose(b, np.exp(X).sum(), rtol=1e-6)
