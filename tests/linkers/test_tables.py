"""Updates of rows of tables: taking rows, and setting or adding to those that were taken."""

import tracemalloc

import numpy as np
import pytest

import opwise.tensor as T
from opwise import Mode, OpWiseCLinker, PerformLinker, VM_Linker, function, shared
from opwise.gradient import grad

MODES = {
    "python": lambda: Mode(PerformLinker(), "fast_run"),
    "plain with C": lambda: Mode(VM_Linker(use_cloop=False), "fast_run"),
    "compiled": lambda: Mode(OpWiseCLinker(), "fast_run"),
    "without rewrites": lambda: Mode(OpWiseCLinker(), None),
    "DEBUG_MODE": lambda: "DEBUG_MODE",
}
#: enough rows for several blocks of them
INDEX = np.array([3, -1, 0, 3, 8, -9, 3, 5] * 70)
INTEGERS = ["int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"]


@pytest.fixture(params=list(MODES))
def mode(request):
    return MODES[request.param]()


def table(shape, dtype="float64", seed=0):
    return np.random.default_rng(seed).integers(-9, 9, shape).astype(dtype)


def added(x, index, y):
    """Return x with rows added, one after the other."""
    x = x.copy()
    for k, i in enumerate(index):
        x[i] += y if np.ndim(y) < x.ndim else y[k]
    return x


def replaced(x, index, y):
    x = x.copy()
    for k, i in enumerate(index):
        x[i] = y[k]
    return x


@pytest.mark.parametrize("width", [None, 0, 1, 2, 3, 4, 5, 7, 8, 13, 16, 33, 64, 513])
@pytest.mark.parametrize("dtype", ["int8", "int16", "int32", "float32", "float64", "complex128"])
def test_rows_of_any_length(width, dtype):
    own = () if width is None else (width,)
    x, y = table((9, *own), dtype), table((len(INDEX), *own), dtype, 1)
    w, v = shared(x, name="w"), shared(x, name="v")
    rows = T.constant(y)
    f = function([], w[INDEX], updates=[
        (w, T.inc_subtensor(w[INDEX], rows)), (v, T.set_subtensor(v[INDEX], rows)),
    ], mode=MODES["compiled"]())  # fmt: skip
    np.testing.assert_array_equal(f(), x[INDEX])
    np.testing.assert_array_equal(w.get_value(), added(x, INDEX, y))
    np.testing.assert_array_equal(v.get_value(), replaced(x, INDEX, y))


@pytest.mark.parametrize("dtype", ["int8", "float16", "float32", "float64", "complex128"])
def test_a_few_columns(dtype):
    """Of each element size, fewer and more than the loops for few of them take."""
    x, index = T.matrix(dtype=dtype), T.lvector()
    f = function([x, index], x[:, index], mode=MODES["compiled"]())
    values = table((50, 40), dtype)
    for n in (1, 2, 3, 4, 5, 8, 31, 32, 33, 300):
        columns = np.random.default_rng(n).integers(-40, 40, n)
        for layout in (
            values,
            values[::2, ::-1],
            np.asfortranarray(values),
            values[:1],
            values[:0],
        ):
            np.testing.assert_array_equal(f(layout, columns), layout[:, columns])
    with pytest.raises(IndexError, match="40"):
        f(values, [0, 40])


@pytest.mark.parametrize("dtype", INTEGERS)
@pytest.mark.parametrize("step", [1, 2, -1])
def test_indices_of_any_dtype_and_layout(dtype, step):
    index = INDEX % 9 if dtype.startswith("u") else INDEX
    held = np.repeat(index, abs(step))[:: -1 if step < 0 else 1].astype(dtype)
    index = held[::step]
    x, y = table((9, 5)), table((len(index), 5), seed=1)
    w, i = shared(x, name="w"), T.vector("i", dtype=dtype)
    f = function(
        [i], w[i], updates=[(w, T.inc_subtensor(w[i], y))], mode=MODES["compiled"]()
    )  # fmt: skip
    np.testing.assert_array_equal(f(index), x[index.astype(int)])
    np.testing.assert_array_equal(w.get_value(), added(x, index.astype(int), y))


LAYOUTS = {
    "columns": lambda x: np.asfortranarray(x),
    "every other row": lambda x: np.repeat(x, 2, 0)[::2],
    "every other column": lambda x: np.repeat(x, 2, 1)[:, ::2],
    "reversed": lambda x: x[::-1, ::-1].copy()[::-1, ::-1],
}


@pytest.mark.parametrize("layout", list(LAYOUTS))
def test_tables_of_any_layout(mode, layout):
    x, y = table((9, 6)), table((len(INDEX), 6), seed=1)
    w = shared(LAYOUTS[layout](x), name="w", borrow=True)
    i = T.lvector("i")
    f = function([i], w[i], updates=[(w, T.inc_subtensor(w[i], y))], mode=mode)
    np.testing.assert_array_equal(f(INDEX), x[INDEX])
    np.testing.assert_array_equal(w.get_value(), added(x, INDEX, y))


@pytest.mark.parametrize("naive", [False, True], ids=["rows", "whole table"])
@pytest.mark.parametrize("shape", [(10,), (2, 5), (2, 5, 1), (0,)])
def test_a_step_downhill(mode, shape, naive):
    """The gradient in the rows, or in the whole table, which moves by that of the rows."""
    index = INDEX[: np.prod(shape)].reshape(shape)
    x, b = table((9, 4)), table(9, seed=2)
    w, bias = shared(x, name="w"), shared(b, name="bias")
    i = T.TensorType("int64", (False,) * len(shape))("i")
    rows, own = w[i], bias[i]
    cost = ((rows.sum(axis=-1) + own) ** 2).sum()
    if naive:
        gw, gb = grad(cost, [w, bias])
        updates = [(w, w - 0.5 * gw), (bias, bias - 0.5 * gb)]
    else:
        gw, gb = grad(cost, [rows, own])
        updates = [
            (w, T.inc_subtensor(rows, -0.5 * gw)),
            (bias, T.inc_subtensor(own, -0.5 * gb)),
        ]
    f = function([i], cost, updates=updates, mode=mode)
    total = x[index].sum(-1) + b[index]
    assert f(index) == (total**2).sum()
    step = -total.ravel()
    np.testing.assert_array_equal(bias.get_value(), added(b, index.ravel(), step))
    expected = added(x, index.ravel(), np.repeat(step[:, None], 4, 1))
    np.testing.assert_array_equal(w.get_value(), expected)


def adagrad(x, squares, i):
    rows = x[i]
    g = grad((rows**4).sum(), rows)
    now = T.set_subtensor(squares[i], squares[i] + g**2)
    return [(x, T.inc_subtensor(rows, -g / T.sqrt(now[i]))), (squares, now)]


@pytest.mark.parametrize("shape", [(4,), (2, 2)])
def test_adagrad_on_rows(mode, shape):
    """The rows that were just set are read again."""
    index = np.array([3, -1, 0, 5]).reshape(shape)
    x, s = table((9, 4)), np.ones((9, 4))
    w, squares = shared(x, name="w"), shared(s, name="squares")
    i = T.TensorType("int64", (False,) * len(shape))("i")
    f = function([i], [], updates=adagrad(w, squares, i), mode=mode)
    f(index)
    flat = index.ravel()
    g = 4 * x[flat] ** 3
    s[flat] += g**2
    np.testing.assert_array_equal(squares.get_value(), s)
    np.testing.assert_allclose(w.get_value(), added(x, flat, -g / np.sqrt(s[flat])), rtol=1e-12)


def test_a_failing_call_names_the_index_and_changes_no_table(mode):
    """The second table is shorter, so that indices of the first are out of its range."""
    w, v = shared(np.zeros((9, 2)), name="w"), shared(np.zeros((4, 2)), name="v")
    i = T.lvector("i")
    f = function(
        [i], [], updates=[(t, T.inc_subtensor(t[i], 1.0)) for t in (w, v)], mode=mode
    )  # fmt: skip
    for bad in (7, -5):
        with pytest.raises(IndexError, match=rf"index {bad} is out of bounds.*size 4"):
            f([1, bad])
        assert not w.get_value().any() and not v.get_value().any()
    f([1, 3])
    assert w.get_value().sum() == v.get_value().sum() == 4


def test_a_failing_part_changes_no_table(mode):
    w, v = shared(np.zeros((9, 2)), name="w"), shared(np.zeros((4, 2)), name="v")
    i = T.lscalar("i")
    f = function(
        [i], [], updates=[(t, T.inc_subtensor(t[i], 1.0)) for t in (w, v)], mode=mode
    )  # fmt: skip
    with pytest.raises(IndexError):
        f(7)
    assert not w.get_value().any() and not v.get_value().any()
    f(3)
    assert w.get_value().sum() == v.get_value().sum() == 2


def test_an_index_that_an_update_overwrites(mode):
    """What is checked must not change before the rows do."""
    w, v = shared(np.zeros((6, 2)), name="w"), shared(np.zeros((6, 2)), name="v")
    i = shared(np.array([0, 4]), name="i")
    new = T.inc_subtensor(i[:1], 3)
    f = function(
        [], [], mode=mode, updates=[
            (i, new), (w, T.inc_subtensor(w[new], 1.0)), (v, T.inc_subtensor(v[i], 1.0)),
        ],
    )  # fmt: skip
    f()
    assert w.get_value()[:, 0].tolist() == [0, 0, 0, 1, 1, 0]
    assert v.get_value()[:, 0].tolist() == [1, 0, 0, 0, 1, 0]
    with pytest.raises(IndexError, match="index 6 is out of bounds"):
        f()
    assert i.get_value().tolist() == [3, 4]
    assert w.get_value()[:, 0].tolist() == [0, 0, 0, 1, 1, 0]


def _two_tables(w, v, i):
    rows, own = w[i], v[i]
    by_rows, by_own = grad((rows * own).sum(), [rows, own])
    return [(w, T.inc_subtensor(rows, by_rows)), (v, T.inc_subtensor(own, by_own))]


def _parts(w, v, i):
    return [(t, T.inc_subtensor(t[i[0]], 1.0)) for t in (w, v)]


def _whole_gradients(w, v, i):
    by_w, by_v = grad((w[i] * v[i]).sum(), [w, v])
    return [(w, w - 0.5 * by_w), (v, v - 0.5 * by_v)]


@pytest.mark.c
@pytest.mark.parametrize("program", [_two_tables, _parts, _whole_gradients, adagrad])
@pytest.mark.parametrize("ndim", [1, 2])
def test_tables_are_never_copied(program, ndim):
    w, v = (shared(np.ones((4000, 32)), name=n) for n in ("w", "v"))
    i = T.TensorType("int64", (False,) * ndim)("i")
    f = function([i], [], updates=program(w, v, i), mode=Mode(OpWiseCLinker(), "fast_run"))
    index = np.arange(6).reshape((6, 1)[:ndim])
    f(index)
    places = [t.get_value(borrow=True).ctypes.data for t in (w, v)]
    tracemalloc.start()
    try:
        f(index)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < w.get_value(borrow=True).nbytes / 10
    assert [t.get_value(borrow=True).ctypes.data for t in (w, v)] == places
