"""Gathers from vectors that loops do themselves: values, errors, and what stays apart."""

import pickle
import re

import numpy as np
import pytest

import opwise.tensor as T
from opwise import Mode, function, get_mode, shared
from opwise.config import change_flags
from opwise.gradient import grad
from opwise.tensor import AdvancedSubtensor1
from opwise.tensor.gathered import Gathered

pytestmark = pytest.mark.c

MODES = ["FAST_RUN", "FAST_COMPILE", "DEBUG_MODE", "py"]
R = np.random.RandomState(1)
X, Y, Z = R.normal(size=7), R.normal(size=7), R.normal(size=50)
AT = R.randint(-7, 7, size=50)


def compiled(inputs, outputs, mode="FAST_RUN"):
    """Return a function in a mode; "py" has all rewrites, and runs each ``perform``."""
    mode = Mode("py", "fast_run") if mode == "py" else mode
    return function(inputs, outputs, mode=mode, on_unused_input="ignore")


def ops(f):
    """Return the Ops of a function in order."""
    return [node.op for node in f.maker.fgraph.toposort()]


def loops(f):
    return [op for op in ops(f) if isinstance(op, Gathered)]


@pytest.fixture
def x():
    return T.dvector("x")


@pytest.fixture
def z():
    return T.dvector("z")


@pytest.fixture
def i():
    return T.lvector("i")


@pytest.mark.parametrize("mode", MODES)
def test_values(x, z, i, mode):
    y = T.dvector("y")
    outputs = [
        T.exp(x[i] * z + 1),
        T.sum(x[i] + z * y[i]),
        T.max(T.sqr(x[i] - z)),
        T.log(T.sin(x[i]) + 2) * T.tanh(z) * T.exp(y[i]),  # several functions: loops in blocks
    ]
    f = compiled([x, y, z, i], outputs, mode)
    found = f(X, Y, Z, AT)
    a, b = X[AT], Y[AT]
    np.testing.assert_allclose(found[0], np.exp(a * Z + 1), 1e-14)
    np.testing.assert_allclose(found[1], np.sum(a + Z * b), 1e-13)
    np.testing.assert_allclose(found[2], np.max((a - Z) ** 2), 1e-14)
    np.testing.assert_allclose(found[3], np.log(np.sin(a) + 2) * np.tanh(Z) * np.exp(b), 1e-13)


def test_one_apply_is_left(x, z, i):
    f = compiled([x, z, i], T.exp(x[i] * z + 1))
    assert [type(op) for op in ops(f)] == [Gathered] and ops(f)[0].taken == ((1, 0),)
    f = compiled([x, z, i], T.sum(T.sqr(x[i] - z)))
    assert [type(op) for op in ops(f)] == [Gathered]
    assert f(X, Z, AT) == compiled([x, z, i], T.sum(T.sqr(x[i] - z)), "py")(X, Z, AT)


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16", "uint16", "int32", "uint32", "uint64"])
@pytest.mark.parametrize("known", [True, False])
def test_dtypes_of_indices(x, z, dtype, known):
    at = AT if dtype.startswith("int") else np.abs(AT) % 7
    at = at.astype(dtype)
    index = T.constant(at) if known else T.vector("i", dtype=dtype)
    given = [X, Z] if known else [X, Z, at]
    inputs = [x, z] if known else [x, z, index]
    plain = get_mode("FAST_RUN").excluding("gather_fusion")
    for output, expected in (
        (T.exp(x[index]) + z, np.exp(X[at]) + Z),
        (T.sum(x[index] * z), np.sum(X[at] * Z)),
    ):
        f = compiled(inputs, output)
        assert len(loops(f)) == (at.min() >= 0 if known else at.itemsize >= 4)
        np.testing.assert_allclose(f(*given), expected, 1e-13)
        np.testing.assert_array_equal(f(*given), compiled(inputs, output, plain)(*given))


@pytest.mark.parametrize("dtype", ["float32", "int8", "int64", "bool", "uint32"])
def test_dtypes_of_tables(i, dtype):
    x = T.vector("x", dtype=dtype)
    values = np.array([0, 1, 1, 0, 3, 100, 7]).astype(dtype)
    f = compiled([x, i], x[i] * np.float32(2))
    assert len(loops(f)) == 1
    np.testing.assert_array_equal(f(values, AT), values[AT] * np.float32(2))
    f = compiled([x, i], T.sum(x[i] + np.float32(1)))
    assert len(loops(f)) == 1
    np.testing.assert_allclose(f(values, AT), np.sum(values[AT] + np.float32(1)), 1e-6)


@pytest.mark.parametrize("n", [0, 1, 5, 63, 64, 65, 1000, 5000, 100_000])
def test_lengths_and_bits_without_a_compiler(x, z, i, n, flags):
    table, at = R.normal(size=9), R.randint(-9, 9, size=n)
    given = table, R.normal(size=n), at
    for output in (T.exp(x[i] * z), T.sum(x[i] * z), T.sum(T.sqr(x[i]) + z)):
        flags({"background_compilation": False})
        f = compiled([x, z, i], output)
        plain = compiled([x, z, i], output, get_mode("FAST_RUN").excluding("gather_fusion"))
        with change_flags(cxx=""):
            built_in = compiled([x, z, i], output)
        assert len(loops(f)) == len(loops(built_in)) == 1
        np.testing.assert_array_equal(f(*given), plain(*given))
        np.testing.assert_array_equal(f(*given), built_in(*given))


@pytest.mark.parametrize("mode", ["FAST_RUN", "DEBUG_MODE"])
def test_steps_between_elements(x, z, i, mode):
    f = compiled([x, z, i], T.exp(x[i] * z), mode)
    g = compiled([x, z, i], T.sum(x[i] * z), mode)
    wide = R.normal(size=(21, 2)), R.normal(size=(50, 3)), R.randint(0, 7, size=(50, 2))
    for table in (wide[0][::3, 0], wide[0][6::-1, 1], X):
        for at in (wide[2][:, 0], wide[2][::-1, 1], AT):
            given = table, wide[1][:, 1], at
            np.testing.assert_allclose(f(*given), np.exp(table[at] * wide[1][:, 1]), 1e-14)
            np.testing.assert_allclose(g(*given), np.sum(table[at] * wide[1][:, 1]), 1e-12)


def test_one_index_is_an_operand_once(x, z, i):
    y = T.dvector("y")
    f = compiled([x, y, z, i], T.exp(x[i] * z + y[i]))
    (node,) = f.maker.fgraph.toposort()
    assert node.op.taken == ((0, 0), (2, 0)) and len(node.inputs) == 4
    np.testing.assert_allclose(f(X, Y, Z, AT), np.exp(X[AT] * Z + Y[AT]), 1e-14)
    k = T.ivector("k")
    f = compiled([x, y, z, i, k], T.exp(x[i] * z + x[k]))
    (node,) = f.maker.fgraph.toposort()
    assert node.op.taken == ((0, 0), (2, 1)) and len(node.inputs) == 5
    at = np.int32(AT[::-1] % 7)
    np.testing.assert_allclose(f(X, Y, Z, AT, at), np.exp(X[AT] * Z + X[at]), 1e-14)


def test_a_gather_of_a_gather(x, z, i):
    k = T.lvector("k")
    f = compiled([x, z, i, k], T.exp((x[i] * 2)[k] * z))
    assert len(loops(f)) == 2
    at = R.randint(-50, 50, size=50)
    np.testing.assert_allclose(f(X, Z, AT, at), np.exp((X[AT] * 2)[at] * Z), 1e-14)


def test_what_others_read_is_written(x, z, i):
    picked = x[i]
    for outputs in ([picked, picked * z], [T.exp(picked), T.sort(picked)]):
        f = compiled([x, z, i], outputs)
        assert not loops(f)
        assert sum(isinstance(op, AdvancedSubtensor1) for op in ops(f)) == 1


def test_a_vector_that_is_not_dense_is_not_copied(z, i):
    w = T.dmatrix("w")
    assert not loops(compiled([w, z, i], w[:, 0][i] * z))
    assert not loops(compiled([w, z, i], w.T[0][i] * z))
    assert loops(compiled([w, z, i], w[0][i] * z))
    assert loops(compiled([w, z, i], z[2:9][i] * z))


@pytest.mark.parametrize("mode", MODES)
def test_hierarchical_model(mode):
    groups = R.randint(0, 7, size=50)
    a, b, s = T.dvector("a"), T.dvector("b"), T.dscalar("s")
    y, v = R.normal(size=50), R.normal(size=50)
    residual = (y - a[groups] - b[groups] * v) / s
    loss = (-0.5 * residual**2 - T.log(s)).sum()
    f = compiled([a, b, s], [loss, *grad(loss, [a, b, s])], mode)
    found = f(X, Y, 0.7)
    r = (y - X[groups] - Y[groups] * v) / 0.7
    np.testing.assert_allclose(found[0], np.sum(-0.5 * r**2 - np.log(0.7)), 1e-12)
    np.testing.assert_allclose(found[1], np.bincount(groups, r / 0.7, 7), 1e-11)
    np.testing.assert_allclose(found[2], np.bincount(groups, r * v / 0.7, 7), 1e-11)
    np.testing.assert_allclose(found[3], np.sum(r**2 - 1) / 0.7, 1e-11)
    if mode in ("FAST_RUN", "py"):
        assert len(loops(f)) == 1
        assert not any(isinstance(op, AdvancedSubtensor1) for op in ops(f))


@pytest.mark.parametrize("mode", MODES)
def test_an_index_out_of_range(x, z, i, mode):
    y = T.dvector("y")
    first = x[i]
    second = y[i]  # the line that fails
    f = compiled([x, y, z, i], T.sum(T.exp(first * z + second)), mode)
    assert f(X, Y, Z[:3], [6, -7, 0]) == pytest.approx(
        np.sum(np.exp(X[[6, -7, 0]] * Z[:3] + Y[[6, -7, 0]]))
    )
    for at, wrong in (([0, 1, 5], 5), ([-6, 0, 0], -6)):
        with pytest.raises(IndexError) as caught:
            f(X, Y[:5], Z[:3], at)
        text = str(caught.value)
        assert f"index {wrong} is out of bounds for axis 0 with size 5" in text
        assert "second = y[i]  # the line that fails" in text
        assert not re.search("caused the error.*\n(.*\n)*Backtrace(.*\n)*.*first = x\\[i\\]", text)
        assert "Indices into y must be from -5 to 4." in text
        assert "Apply node that caused the error: AdvancedSubtensor1(y, i)" in text
    with pytest.raises(IndexError, match="index 1099511627776 is out of bounds for axis 0"):
        f(X, Y, Z[:3], [2, 1 << 40, 0])


def test_a_constant_index_out_of_range(x, z):
    assert not loops(compiled([x, z], T.sum(x[[0, 3, -2]] * z)))  # it would copy elements first
    f = compiled([x, z], T.sum(x[[0, 3, 2]] * z))
    assert loops(f)
    assert f(X, Z[:3]) == pytest.approx(np.sum(X[[0, 3, 2]] * Z[:3]))
    with pytest.raises(IndexError, match="index 3 is out of bounds for axis 0 with size 3"):
        f(X[:3], Z[:3])
    with pytest.raises(IndexError, match="index 0 is out of bounds for axis 0 with size 0"):
        f(X[:0], Z[:3])


def test_lengths_that_differ(x, z, i):
    f = compiled([x, z, i], T.exp(x[i] * z + 1))
    with pytest.raises(ValueError, match="Input dimension mis-match") as caught:
        f(X, Z[:4], [0, 1, 2])
    assert "AdvancedSubtensor1(x, i) has 3 and z has 4" in str(caught.value)


def test_results_take_the_memory_of_operands_but_not_of_tables(x, i):
    y = T.dvector("y")
    table = y * 2  # both are as long as the result
    f = compiled([x, y, i], [T.exp(table[i] * (x + 1).sort())])
    (loop,) = loops(f)
    assert loop.destroy_map == {0: [next(k for k in range(3) if k != loop.taken[0].operand)]}
    at = AT[:7]
    np.testing.assert_allclose(f(X, Y, at), [np.exp((Y * 2)[at] * np.sort(X + 1))], 1e-14)
    same = (x + 1).sort()  # one array is table and operand
    f = compiled([x, i], T.exp(same[i] * same))
    (loop,) = loops(f)
    assert not loop.destroy_map
    s = np.sort(X + 1)
    np.testing.assert_allclose(f(X, at), np.exp(s[at] * s), 1e-14)


@pytest.mark.parametrize("mode", MODES)
def test_steps_that_read_what_they_have_updated(z, i, mode):
    """The loop overwrites an operand that DebugMode, too, has for other checks."""
    sums = shared(np.ones(7))
    g = T.tanh(z) * 2
    new = T.inc_subtensor(sums[i], g**2)
    inputs, updates = [z, i], [(sums, new)]
    how = Mode("py", "fast_run") if mode == "py" else mode
    f = function(inputs, 0.1 * g / T.sqrt(new[i] + 1e-6), updates=updates, mode=how)
    at, expected = AT[:50], np.ones(7)
    found = f(Z, at)
    np.add.at(expected, at, (2 * np.tanh(Z)) ** 2)
    np.testing.assert_allclose(found, 0.2 * np.tanh(Z) / np.sqrt(expected[at] + 1e-6))
    np.testing.assert_allclose(sums.get_value(), expected)


def test_a_failed_call_leaves_shared_variables(z):
    w, v = shared(X.copy(), name="w"), shared(Z.copy(), name="v")
    i = T.lvector("i")
    f = function([z, i], [], updates=[(v, v + w[i] * z), (w, w * 2)])
    assert loops(f)
    with pytest.raises(IndexError):
        f(Z, np.full(50, 7))
    np.testing.assert_array_equal(w.get_value(), X)
    np.testing.assert_array_equal(v.get_value(), Z)
    f(Z, AT)
    np.testing.assert_allclose(v.get_value(), Z + X[AT] * Z, 1e-14)
    np.testing.assert_array_equal(w.get_value(), X * 2)


def test_pickles_and_profiles(x, z, i):
    f = function([x, z, i], T.exp(x[i] * z + 1), profile=True)
    f(X, Z, AT)
    (node,) = f.maker.fgraph.toposort()
    read, written = node.op.traffic(
        node, *([_Layout(v) for v in each] for each in ((np.ones(1), X, Z, AT), (Z,)))
    )
    assert (read, written) == ([8, 56, 400, 400], [400])
    g = pickle.loads(pickle.dumps(f))
    np.testing.assert_array_equal(g(X, Z, AT), f(X, Z, AT))
    assert node.op.profile_kind == "fused"
    assert len({origin.op for origin in node.origins}) == 4


class _Layout:
    def __init__(self, array):
        self.bytes = array.nbytes
        self.shape, self.strides = array.shape, array.strides


def test_steps_of_loops(x, i):
    from opwise.loops import scan

    table = T.dvector("table")
    outputs, _ = scan(
        lambda prior, table, i: T.exp(-T.sqr(prior)) + table[i] * 0.5, outputs_info=x,
        non_sequences=[table, i], n_steps=4,
    )  # fmt: skip
    f = compiled([x, table, i], outputs[-1])
    prior = Y
    for _ in range(4):
        prior = np.exp(-(prior**2)) + X[AT[:7]] * 0.5
    np.testing.assert_allclose(f(Y, X, AT[:7]), prior, 1e-13)


@pytest.mark.parametrize("mode", MODES)
def test_an_index_that_nothing_else_reads_is_not_overwritten(i, mode):
    """It has the dtype and the length of the result."""
    f = compiled([i], [i[T.nonzero(i)[0]] * 2, i[i * 1 + 3] ** 2 + 5], mode)
    values = np.array([1, 0, -3, -2, 0])
    found = f(values)
    np.testing.assert_array_equal(found[0], [2, -6, -4])
    np.testing.assert_array_equal(found[1], values[values + 3] ** 2 + 5)
