"""Functions under the linker cupy, on an emulated device."""

import gc
import pickle

import numpy as np
import pytest

import opwise
import opwise.tensor as T
from opwise import Apply, Mode, OpFromGraph
from opwise.gpu.lowering import SHAPE_OPS
from opwise.gpu.placement.placement import Placement
from opwise.gpu.placement.transfers import GpuFromHost, HostFromGpu
from opwise.ifelse import ifelse
from opwise.tensor.extra_ops import ravel_multi_index, searchsorted

CUPY = "cupy"
RNG = np.random.RandomState(3)
X, Y = (RNG.rand(5, 5).astype("float32") for _ in range(2))


@pytest.fixture(autouse=True)
def there(cupy):
    """Run every test on a device, perhaps an emulated one."""


@pytest.fixture
def mode():
    return Mode("cupy")


def ops(f):
    """Return the Ops that a function runs on the device and on the host, in order."""
    placement = f.maker.fgraph.find_feature(Placement)
    there = [n for n in f.linked.order if n in placement.lowered]
    transfers = [n for n in f.linked.order if isinstance(n.op, GpuFromHost | HostFromGpu)]
    here = [n for n in f.linked.order if n not in there and n not in transfers
            and not isinstance(n.op, SHAPE_OPS)]  # fmt: skip
    return [str(n.op) for n in there], [str(n.op) for n in here]


def transfers(f):
    """Return (how many copies of arrays to the device, to the host) a function makes."""
    kinds = [type(n.op) for n in f.linked.order if n.inputs[0].type.ndim]
    return kinds.count(GpuFromHost), kinds.count(HostFromGpu)


# --- results --------------------------------------------------------------------------------------


def test_the_same_results_as_on_the_cpu(mode):
    x, y = T.fmatrices("x", "y")
    outputs = [
        T.exp(x) + T.dot(x, y), (x * y).sum(axis=1), T.nnet.softmax(x), x.T[1:, ::2] * 2,
        T.dot(x, y[0]), x[y.argmax(axis=1)], T.set_subtensor(x[1:3], 0), x.max(), T.sort(x, axis=0),
    ]  # fmt: skip
    f, g = (opwise.function([x, y], outputs, mode=m) for m in (mode, None))
    there, here = ops(f)
    assert there and not here and transfers(f) == (2, len(outputs) - 1)
    for ours, theirs in zip(f(X, Y), g(X, Y), strict=True):
        assert type(ours) is np.ndarray and ours.dtype == theirs.dtype
        np.testing.assert_allclose(ours, theirs, rtol=1e-5, atol=1e-6)


def test_rows_are_normalized_by_one_kernel(mode):
    """Reductions of rows, and the work on them, are one Apply and one launch."""
    x, g = T.fmatrices("x", "g")
    centred = x - x.mean(axis=1, keepdims=True)
    out = centred / T.sqrt(T.sqr(centred).mean(axis=1, keepdims=True) + np.float32(0.1))
    outputs = [out, T.grad((out * g).sum(), x)]
    f, h = (opwise.function([x, g], outputs, mode=m) for m in (mode, None))
    there, here = ops(f)
    names = [name.partition("{")[0] for name in there]  # beside it: the length of rows, as a float
    assert names.count("Rowwise") == 1 and not {"Sum", "MapReduce"}.intersection(names) and not here
    for ours, theirs in zip(f(X, X * 2), h(X, X * 2), strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-5, atol=1e-6)


def test_a_training_loop_keeps_its_parameters_on_the_device(mode, cupy):
    def trained(mode):
        w, b = (opwise.shared(v, n) for v, n in ((X.copy(), "w"), (Y[0].copy(), "b")))
        x, t = T.fmatrix("x"), T.fmatrix("t")
        cost = T.sqr(T.nnet.sigmoid(T.dot(x, w) + b) - t).mean()
        rate = np.float32(0.3)
        updates = [(p, p - rate * g) for p, g in zip((w, b), T.grad(cost, [w, b]), strict=True)]
        f = opwise.function([x, t], cost, updates=updates, mode=mode)
        return f, w, b, [f(X, Y) for _ in range(5)]

    f, w, b, costs = trained(mode)
    _, w2, b2, costs2 = trained(None)
    assert transfers(f) == (2, 0), "two arguments cross, and the number that is the cost"
    for p in (w, b):
        assert isinstance(p.get_value(borrow=True, return_internal_type=True), cupy.ndarray)
    np.testing.assert_allclose(costs, costs2, rtol=1e-5)
    np.testing.assert_allclose(w.get_value(), w2.get_value(), rtol=1e-5)
    np.testing.assert_allclose(b.get_value(), b2.get_value(), rtol=1e-5)


@pytest.mark.parametrize("tags", ["fast_run", "fast_compile"])
def test_an_op_from_a_graph_runs_on_the_device(tags):
    """What is in it runs there Apply by Apply, also if it is nested, and so do its gradients."""
    w, x, y = opwise.shared(X, "w"), T.fmatrix(), T.fmatrix()
    product = OpFromGraph([x, y], [T.dot(x, y) * w, x + y])
    layer = OpFromGraph([x], [T.tanh(product(x, w)[0]) + product(x, x)[1]])
    updates = [(w, w - np.float32(0.1) * T.grad(layer(w + 1).sum(), w))]
    there = opwise.function([], updates=updates, mode=Mode(CUPY, tags))
    assert not any(isinstance(n.op, OpFromGraph) for n in there.linked.order)
    assert transfers(there) == (0, 0)
    there(), there()
    found = w.get_value()
    w.set_value(X)
    here = opwise.function([], updates=updates)
    here(), here()
    np.testing.assert_allclose(found, w.get_value(), rtol=1e-4, atol=1e-6)


def test_an_op_from_a_graph_with_a_mode_of_its_own_runs_on_the_host(mode):
    x, y = T.fmatrix(), T.fmatrix()
    op = OpFromGraph([x, y], [T.dot(x, y)], mode=Mode("py"))
    f = opwise.function([x, y], T.exp(op(T.exp(x), y)), mode=Mode(CUPY, "fast_run"))
    (node,) = [n for n in f.linked.order if isinstance(n.op, OpFromGraph)]
    why = f.maker.fgraph.find_feature(Placement).why[node]
    assert why == "OpFromGraph has no GPU implementation"
    np.testing.assert_allclose(f(X, Y), np.exp(np.exp(X) @ Y), rtol=1e-4)


def test_a_shared_variable_is_used_on_both_sides(mode):
    w = opwise.shared(X.copy())
    double = opwise.function([], updates=[(w, w * 2)], mode=mode)
    for cpu in ("FAST_RUN", "FAST_COMPILE", Mode("py")):
        w.set_value(X)
        total = opwise.function([], w.sum(), mode=cpu)
        halve = opwise.function([], updates=[(w, w / np.float32(2))], mode=cpu)
        assert total() == pytest.approx(X.sum(), rel=1e-5)
        double()
        assert total() == pytest.approx(2 * X.sum(), rel=1e-5)
        halve()
        double(), double()
        np.testing.assert_array_equal(w.get_value(), X * 4)


def test_set_value_and_get_value(mode, cupy):
    w = opwise.shared(X.copy())
    f = opwise.function([], w + 1, mode=mode)
    f()
    assert isinstance(w.container.storage[0], cupy.ndarray)
    value = w.get_value(borrow=True)
    assert type(value) is np.ndarray
    value[...] = 0
    np.testing.assert_array_equal(w.get_value(), X)
    w.set_value(Y)
    np.testing.assert_array_equal(f(), Y + 1)
    w.zero(borrow=True)
    np.testing.assert_array_equal(f(), np.ones_like(X))
    copied = pickle.loads(pickle.dumps(w))
    assert type(copied.container.storage[0]) is np.ndarray  # there may be no device
    np.testing.assert_array_equal(copied.get_value(), 0 * X)
    np.testing.assert_array_equal(f(), np.ones_like(X))


def test_borrowed_results_stay_on_the_device(mode, cupy):
    x = T.fmatrix("x")
    f = opwise.function([x], [opwise.Out(x * 2, borrow=True), x * 3], mode=mode)
    lent, own = f(X)
    assert isinstance(lent, cupy.ndarray) and type(own) is np.ndarray
    assert transfers(f) == (1, 1)
    np.testing.assert_array_equal(lent.get(), X * 2)
    f(Y)
    np.testing.assert_array_equal(lent.get(), X * 2)


def test_a_result_that_is_a_shared_variable(mode):
    w = opwise.shared(X.copy())
    f = opwise.function([], w, updates=[(w, w + 1)], mode=mode)
    first = f()
    np.testing.assert_array_equal(first, X)
    np.testing.assert_array_equal(f(), X + 1)
    np.testing.assert_array_equal(first, X)


# --- placement ------------------------------------------------------------------------------------


class OnHost(opwise.Op):
    """An Op of a user: the rows in the opposite order."""

    __props__ = ()

    def make_node(self, x):
        return Apply(self, [x], [x.type()])

    def perform(self, node, inputs, output_storage):
        output_storage[0][0] = inputs[0][::-1].copy()


def test_an_op_without_an_implementation_runs_on_the_host_with_a_reason(mode):
    x = T.fmatrix("x")
    y = OnHost()(T.sort(T.dot(x, x), axis=0) * 2)
    f, g = (opwise.function([x], y, mode=m) for m in (mode, None))
    there, here = ops(f)
    assert here == ["OnHost"] and len(there) == 3, (there, here)
    assert transfers(f) == (1, 1)
    np.testing.assert_allclose(f(X), g(X), rtol=1e-6)
    (node,) = (n for n in f.linked.order if str(n.op) in here)
    assert f.maker.fgraph.find_feature(Placement).why[node] == "OnHost has no GPU implementation"


def test_an_apply_between_two_on_the_host_stays_on_the_host(mode):
    x, on_host = T.fmatrix("x"), OnHost()
    f = opwise.function([x], on_host(T.exp(on_host(x))), mode=mode)
    assert transfers(f) == (0, 0) and not ops(f)[0]
    assert "" in f.maker.fgraph.find_feature(Placement).why.values()
    g = opwise.function([x], on_host(T.dot(on_host(x), x)), mode=mode)
    assert transfers(g) == (2, 1) and ops(g)[0] == ["Dot22"]


def test_lengths_are_read_without_a_copy(mode):
    x, w = T.fmatrix("x"), opwise.shared(X.copy())
    f = opwise.function([x], (x + w).reshape((x.shape[1], w.shape[0])) * w.shape[0], mode=mode)
    assert transfers(f)[1] == 1
    np.testing.assert_allclose(f(X), (X + X) * 5)


def test_numbers_for_the_host_stay_on_the_host(mode):
    x, n = T.fvector("x"), T.lscalar("n")
    f = opwise.function([x, n], x[: n * 2 - 1] * 2, mode=mode)
    _, here = ops(f)
    assert here, "the arithmetic of n is the host's"
    assert transfers(f) == (1, 1)
    np.testing.assert_array_equal(f(X[0], 2), X[0, :3] * 2)


@pytest.mark.parametrize("write", [
    lambda x, i, n: x[i, i[::-1]],
    lambda x, i, n: x[i[:, None], i],
    lambda x, i, n: x[n, i],
    lambda x, i, n: x[i, None, i],
    lambda x, i, n: x.dimshuffle(0, "x", 1)[i, :, i],
    lambda x, i, n: x.dimshuffle(0, 1, "x")[i, n:, i * 0],
    lambda x, i, n: T.inc_subtensor(x.dimshuffle(0, "x", 1)[::-1, :, i], n),
    lambda x, i, n: T.inc_subtensor(x[i, i - 1], x[0, 0]),
    lambda x, i, n: T.set_subtensor(x[i[::-1], i], x[i, 0]),
    lambda x, i, n: T.grad((x[i, i] ** 2).sum(), x),
])  # fmt: skip
def test_indexing_by_arrays_runs_on_the_device(mode, write):
    x, i, n = T.fmatrix("x"), T.lvector("i"), T.lscalar("n")
    y = write(T.exp(x), i, n)
    f, g = (opwise.function([x, i, n], y, mode=m, on_unused_input="ignore") for m in (mode, None))
    there, here = ops(f)
    assert any("Advanced" in op for op in there) and not any("Advanced" in op for op in here)
    index = np.array([0, 4, -2, 4])
    for _ in range(2):
        np.testing.assert_allclose(f(X, index, 1), g(X, index, 1), rtol=1e-6)
    with pytest.raises(IndexError, match=r"index (5|4611|-6) is out of bounds for axis \d with"):
        f(X, np.array([0, 5]), -6)


@pytest.mark.parametrize(("write", "error"), [
    (lambda x, i: searchsorted(T.sort(x[0]), x, "right"), None),
    (lambda x, i: searchsorted(x[0], x, sorter=T.switch(T.eq(i, 14), i, T.argsort(x[0]))),
     "Sorter index out of range"),
    (lambda x, i: T.choose(i, [x, x[0] * 2, x.T, -x, x]), "invalid entry in choice array"),
    (lambda x, i: T.choose(i, x, mode="wrap"), None),
    (lambda x, i: ravel_multi_index((i, i[::-1]), x.shape), "invalid entry in coordinates array"),
])  # fmt: skip
def test_positions_and_choices_run_on_the_device(mode, write, error):
    x, i = T.fmatrix("x"), T.lvector("i")
    y = write(T.exp(x), i * 2) * 2
    f, g = (opwise.function([x, i], y, mode=m, on_unused_input="ignore") for m in (mode, None))
    there, here = ops(f)
    names = ("Searchsorted", "Choose", "Ravel")
    assert any(n in op for op in there for n in names)
    assert not any(n in op for op in here for n in names)
    for index in (np.array([0, 1, 2, 1, 0]), np.zeros(5, int)):
        np.testing.assert_allclose(f(X, index), g(X, index), rtol=1e-6)
    if error:
        with pytest.raises(ValueError, match=error):
            f(X, np.array([0, 1, 7, 2, -1]))
    else:
        f(X, np.array([0, 1, 7, 2, -1]))


def test_masks_stay_on_the_host(mode):
    x = T.fmatrix("x")
    f = opwise.function([x], T.exp(x)[x > 0.5] * 2, mode=mode)
    why = "output size depends on the data: it would need a synchronisation"
    assert why in f.maker.fgraph.find_feature(Placement).why.values()
    np.testing.assert_allclose(f(X), np.exp(X)[X > 0.5] * 2, rtol=1e-6)


def test_setting_by_masks_runs_on_the_device(mode):
    x, w = T.fmatrix("x"), opwise.shared(X.copy())
    updates = [(w, T.set_subtensor(w[w > 0.5], -1))]
    y = T.inc_subtensor(T.exp(x)[x[0] > 0.5], x[0])
    f = opwise.function([x], y, updates=updates, mode=mode)
    assert not any("Advanced" in op for op in ops(f)[1])
    expected = np.exp(X)
    expected[X[0] > 0.5] += X[0]
    np.testing.assert_allclose(f(X), expected, rtol=1e-6)
    np.testing.assert_array_equal(w.get_value(), np.where(X > 0.5, np.float32(-1), X))


# --- failures -------------------------------------------------------------------------------------


def test_an_index_that_is_out_of_range(mode):
    w, i = opwise.shared(X.copy(), "w"), T.lvector("i")
    f = opwise.function([i], w[i].sum(), updates=[(w, T.inc_subtensor(w[i], 1))], mode=mode)
    f([0, 4])
    before = w.get_value()
    with pytest.raises(IndexError, match="index 5 is out of bounds"):
        f([1, 5])
    np.testing.assert_array_equal(w.get_value(), before)
    f([1])
    assert w.get_value()[1, 0] == before[1, 0] + 1


def test_shapes_that_do_not_fit(mode):
    w = opwise.shared(X.copy(), "w")
    x, y = T.fmatrices("x", "y")
    f = opwise.function([x, y], T.dot(x, y).sum(), updates=[(w, w + x)], mode=mode)
    with pytest.raises(ValueError, match="not aligned"):
        f(X, Y[:4])
    np.testing.assert_array_equal(w.get_value(), X)
    with pytest.raises(ValueError, match=r"(?s)Dimension mismatch.*test_linker.py"):
        f(X[:4, :4], X[:4])
    np.testing.assert_array_equal(w.get_value(), X)
    f(X, Y)
    np.testing.assert_array_equal(w.get_value(), X + X)


def test_without_memory_a_call_fails_and_the_next_one_works(mode, cupy):
    w, x = opwise.shared(X.copy(), "w"), T.fmatrix("x")
    f = opwise.function([x], T.exp(x).sum(), updates=[(w, w + x)], mode=mode)
    f(X)
    pool = cupy.get_default_memory_pool()
    pool.free_all_blocks()
    pool.set_limit(size=pool.used_bytes())
    try:
        with pytest.raises(MemoryError, match=r"The device .* is out of memory"):
            f(X)
    finally:
        pool.set_limit(size=0)
    np.testing.assert_array_equal(w.get_value(), X + X)
    f(X)
    np.testing.assert_array_equal(w.get_value(), X + X + X)


def test_memory_is_counted(mode):
    x = T.fmatrix("x")
    f = opwise.function([x], T.exp(x).sum() + T.dot(x, x).sum(), mode=mode)
    (device,) = opwise.gpu.runtime.device.opened()
    gc.collect()
    before = device.allocated()[0]
    f(X)
    gc.collect()
    current, peak = device.allocated()
    big = np.ones((1000, 1000), "float32")
    f(big)
    gc.collect()
    # a small argument is kept, a large one is not
    assert device.allocated()[0] <= current <= before + 512
    assert device.allocated()[1] >= peak + big.nbytes


def test_a_call_that_fails_late_leaves_nothing_behind(mode):
    """The second update does not fit when the memory of the first is found already."""
    v, w = opwise.shared(X.copy(), "v"), opwise.shared(X.copy(), "w")
    x, y = T.fmatrices("x", "y")
    f = opwise.function([x, y], updates=[(v, v + x), (w, w * y)], mode=mode)
    for bad in ((X, Y[:3]), (X[:3], Y)):
        with pytest.raises(ValueError, match="Dimension mismatch"):
            f(*bad)
    np.testing.assert_array_equal(v.get_value(), X)
    f(Y, X)
    np.testing.assert_array_equal(v.get_value(), X + Y)
    np.testing.assert_array_equal(w.get_value(), X * X)


def test_updates_that_read_each_other_in_place(mode):
    """Rows are added to what another update has just written."""

    def trained(mode):
        w, i = opwise.shared(X.copy(), "w"), T.lvector("i")
        new = T.inc_subtensor((w * 2)[i], 1)
        f = opwise.function([i], updates=[(w, new)], mode=mode)
        for _ in range(3):
            f([0, 2, 2])
        return w.get_value()

    np.testing.assert_allclose(trained(mode), trained(None), rtol=1e-6)


# --- branches -------------------------------------------------------------------------------------


def test_branches_are_computed_on_the_device_and_chosen_on_the_host(mode):
    c, x, y = T.iscalar("c"), T.fmatrix("x"), T.fmatrix("y")
    value = ifelse(c, T.nnet.softmax(T.dot(x, y)), T.exp(y) * 2)
    f = opwise.function([c, x, y], T.dot(value, x), mode=mode)
    _, here = ops(f)
    assert any(text.startswith("if{") for text in here)
    g = opwise.function([c, x, y], T.dot(value, x), mode=Mode("py", None))
    for condition in (1, 0, 1):
        np.testing.assert_allclose(f(condition, X, Y), g(condition, X, Y), rtol=1e-5)
