"""What functions do under opwise besides computing: updates, copies, errors, profiles."""

import pickle
import threading

import numpy as np
import pytest

pytensor = pytest.importorskip("pytensor", reason="PyTensor is not installed")
import pytensor.tensor as pt  # noqa: E402
from pytensor.compile.io import In, Out  # noqa: E402
from pytensor.compile.mode import Mode, get_mode  # noqa: E402
from pytensor.graph.basic import Apply  # noqa: E402
from pytensor.graph.op import Op  # noqa: E402

import opwise.pytensor  # noqa: E402

pytestmark = pytest.mark.c

MODES = ["OPWISE", "OPWISE_FAST_COMPILE", "OPWISE_DEBUG", "PROFILE_MODE"]


@pytest.mark.parametrize("mode", MODES)
def test_modes(mode):
    x = pt.vector("x")
    f = pytensor.function([x], [pt.exp(x).sum(), x[0]], mode=mode)
    total, first = f(np.arange(3.0))
    np.testing.assert_allclose(total, np.exp(np.arange(3)).sum())
    assert type(total) is type(first) is np.ndarray and first.shape == ()
    assert opwise.pytensor.performed(f) == ()


def test_linkers_have_names():
    for name in ("opwise", "opwise_fast_compile", "opwise_debug", "opwise_profile"):
        x = pt.scalar("x")
        assert pytensor.function([x], x * 2, mode=Mode(name, "fast_compile"))(2.0) == 4
    # registering again changes nothing
    before = get_mode("OPWISE")
    opwise.pytensor.modes.register()
    assert get_mode("OPWISE") is before


def test_functions_of_other_linkers_are_refused():
    x = pt.scalar("x")
    f = pytensor.function([x], x * 2, mode=Mode("py", None))
    with pytest.raises(TypeError, match="not compiled under a mode of opwise"):
        opwise.pytensor.performed(f)


@pytest.mark.parametrize("mode", ["OPWISE", "OPWISE_DEBUG"])
def test_updates(mode):
    w, n = pytensor.shared(np.zeros(3), "w"), pytensor.shared(np.int64(0), "n")
    x = pt.vector("x")
    f = pytensor.function([x], [w.sum(), w], updates={w: w - 0.5 * (w - x), n: n + 1}, mode=mode)
    for step in range(4):
        total, old = f(np.ones(3))
        np.testing.assert_allclose(old, 1 - 0.5**step)
        np.testing.assert_allclose(total, old.sum())
    np.testing.assert_allclose(w.get_value(), 1 - 0.5**4)
    assert n.get_value() == 4
    w.set_value(np.full(3, 7.0))
    assert f(np.ones(3))[0] == 21


def test_swapped_updates():
    a, b = pytensor.shared(1.0), pytensor.shared(2.0)
    f = pytensor.function([], [], updates={a: b, b: a}, mode="OPWISE")
    f()
    assert (a.get_value(), b.get_value()) == (2, 1)
    f()
    assert (a.get_value(), b.get_value()) == (1, 2)


def test_a_failing_call_changes_no_shared_value():
    w, x = pytensor.shared(np.zeros(3)), pt.vector("x")
    f = pytensor.function([x], [], updates={w: w + x}, mode="OPWISE")
    with pytest.raises(ValueError, match="mis-match"):
        f(np.ones(2))
    np.testing.assert_array_equal(w.get_value(), 0)


def test_results_share_no_memory_unless_they_may():
    x = pt.vector("x")
    f = pytensor.function(
        [x], [x, x[1:], x.reshape((1, -1)), pt.constant(np.ones(2))], mode="OPWISE"
    )
    given = np.arange(3.0)
    results = f(given)
    for k, one in enumerate(results):
        assert not np.may_share_memory(one, given)
        assert not any(np.may_share_memory(one, other) for other in results[:k])
        one[...] = -1
    np.testing.assert_array_equal(f(given)[0], given)
    np.testing.assert_array_equal(f(given)[3], 1)


def test_results_of_earlier_calls_stay():
    x = pt.vector("x")
    f = pytensor.function([x], [x * 2, x.sum()], mode="OPWISE")
    first = f(np.ones(3))
    f(np.zeros(3))
    np.testing.assert_array_equal(first[0], 2)
    assert first[1] == 3


def test_borrowed_arguments_stay_as_they_are():
    x = pt.vector("x")
    f = pytensor.function([In(x, borrow=True)], Out(pt.exp(x + 1) * 2, borrow=True), mode="OPWISE")
    given = np.ones(3)
    f(given)
    np.testing.assert_array_equal(given, 1)


def test_arguments_by_name():
    x, y = pt.vector("x"), pt.scalar("y")
    f = pytensor.function([x, y], x * y, mode="OPWISE")
    np.testing.assert_array_equal(f(y=2, x=np.ones(2)), 2)
    with pytest.raises(ValueError, match="could not convert string"):
        f("no array", 1)


@pytest.mark.parametrize("trust", [True, False])
def test_trusted_arguments(trust):
    x, i = pt.matrix("x"), pt.lscalar("i")
    f = pytensor.function([x, i], x[i] * 2, mode="OPWISE", trust_input=trust)
    np.testing.assert_array_equal(f(np.ones((2, 3)), np.int64(1) if not trust else np.array(1)), 2)


def test_givens():
    x, y = pt.vector("x"), pt.vector("y")
    f = pytensor.function([y], x.sum() * 2, givens={x: y + 1}, mode="OPWISE")
    assert f(np.zeros(3)) == 6


def test_pickles_and_copies():
    x, w = pt.vector("x"), pytensor.shared(np.ones(2), "w")
    f = pytensor.function([x], x * w, updates={w: w + 1}, mode="OPWISE")
    f(np.ones(2))
    loaded = pickle.loads(pickle.dumps(f))
    np.testing.assert_array_equal(loaded(np.ones(2)), 2)
    other = pytensor.shared(np.full(2, 10.0))
    g = f.copy(swap={w: other})
    np.testing.assert_array_equal(g(np.ones(2)), 10)
    np.testing.assert_array_equal(other.get_value(), 11)
    np.testing.assert_array_equal(w.get_value(), 2)


def test_threads_with_functions_of_their_own():
    x = pt.matrix("x")
    f = pytensor.function([x], pt.tanh(x @ x).sum(), mode="OPWISE")
    copies = [f.copy() for _ in range(4)]
    given = np.random.default_rng(0).normal(size=(30, 30))
    expected, found = f(given), []

    def run(g):
        found.extend(float(g(given)) for _ in range(20))

    threads = [threading.Thread(target=run, args=(g,)) for g in copies]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [float(expected)] * 80


class Cube(Op):
    """An Op of the program, with a perform alone."""

    __props__ = ()

    def make_node(self, x):
        return Apply(self, [x], [x.type()])

    def perform(self, node, inputs, outputs):
        outputs[0][0] = inputs[0] ** 3


class Fails(Cube):
    def perform(self, node, inputs, outputs):
        raise ArithmeticError("this Op fails")


def test_ops_of_the_program_are_performed():
    x = pt.vector("x")
    f = pytensor.function([x], Cube()(x + 1).sum(), mode="OPWISE")
    assert f(np.ones(2)) == 16
    (each,) = opwise.pytensor.performed(f)
    assert (each.op, each.reason) == ("PyTensor:Cube", "Cube has no translation")
    linked = opwise.pytensor.own_function(f).linked
    assert "Cube has no translation" in linked.why_not_in_c


def test_errors_name_the_op_and_the_line():
    x = pt.vector("x")
    f = pytensor.function([x], Fails()(x + 1).sum(), mode="OPWISE")
    with pytest.raises(ArithmeticError, match="this Op fails") as caught:
        f(np.ones(2))
    text = str(caught.value)
    assert "PyTensor:Fails" in text and "test_functions.py" in text


def test_inplace_ops_of_the_program_are_refused():
    class Overwrites(Cube):
        destroy_map = {0: [0]}

        def perform(self, node, inputs, outputs):
            inputs[0][...] = 0
            outputs[0][0] = inputs[0]

    x = pt.vector("x")
    with pytest.raises(TypeError):
        pytensor.function([x], Overwrites()(x), mode="OPWISE")
    f = pytensor.function([x], Overwrites()(x), mode="OPWISE", accept_inplace=True)
    given = np.ones(2)
    np.testing.assert_array_equal(f(given), 0)
    np.testing.assert_array_equal(given, 1)


@pytest.mark.parametrize("mode", MODES)
def test_inplace_ops_have_the_results_of_others(mode):
    """They leave the arrays that they may overwrite as they are."""
    from pytensor.tensor import linalg as pl

    x, y, w = pt.matrix("x"), pt.vector("y"), pytensor.shared(np.zeros(3), "w")
    solve, factor = (
        type(op)(**{**op._props_dict(), name: True})
        for op, name in [(pl.solve(x, y, b_ndim=1).owner.op.core_op, "overwrite_b"),
                         (pl.cholesky(x).owner.op.core_op, "overwrite_a")]
    )  # fmt: skip
    outputs = [pt.set_subtensor(y[1:], 7.0, inplace=True), solve(x, y), factor(x),
               pt.inc_subtensor(x[[0, 0]], 1, inplace=True), x.sum() + y.sum()]  # fmt: skip
    for k, out in enumerate(outputs):
        f = pytensor.function(
            [In(x, mutable=True), In(y, mutable=True)], [out, x.sum()],
            updates={w: pt.inc_subtensor(w[0], 1.0, inplace=True)} if k == 0 else {},
            mode=mode, accept_inplace=True, on_unused_input="ignore",
        )  # fmt: skip
        given = [np.diag([4.0, 9, 16]), np.ones(3)]
        found, total = f(*given)
        expected = [[1, 7, 7], [1 / 4, 1 / 9, 1 / 16], np.diag([2, 3, 4]),
                    np.diag([4, 9, 16]) + 2 * np.eye(3)[:, :1], 32][k]  # fmt: skip
        np.testing.assert_allclose(found, expected)
        assert total == 29
        np.testing.assert_array_equal(given[0], np.diag([4.0, 9, 16]))
        np.testing.assert_array_equal(given[1], 1)
    np.testing.assert_array_equal(w.get_value(), [1, 0, 0])


def test_what_is_performed_has_the_dtype_that_it_declares():
    """PyTensor performs some Ops in another dtype than that of their results."""

    class Counts(Cube):
        def perform(self, node, inputs, outputs):
            outputs[0][0] = self.result

    op, x = Counts(), pt.vector("x", dtype="float32")
    f = pytensor.function([x], op(x) + 1, mode="OPWISE")
    for op.result in (np.ones(2), np.ones(2, "int8"), [1.0, 1.0]):
        found = f(np.ones(2, "float32"))
        assert found.dtype == np.float32
        np.testing.assert_array_equal(found, 2)
    op.result = np.ones(2, "complex128")
    with pytest.raises(TypeError, match="Cannot cast"):
        f(np.ones(2, "float32"))


def test_numbers_are_numbers():
    import pytensor.scalar as ps
    from pytensor.tensor.basic import ScalarFromTensor

    x, n = pt.vector("x"), ps.int8("n")
    f = pytensor.function([x, n], [ScalarFromTensor()(x.sum()), n + n, x.sum()], mode="OPWISE")
    total, twice, array = f(np.ones(3), 5)
    assert (type(total), type(twice), type(array)) == (np.float64, np.int8, np.ndarray)
    assert (total, twice) == (3, 10)


@pytest.mark.filterwarnings("ignore:.*XTensor:UserWarning")
@pytest.mark.parametrize("mode", MODES)
def test_arrays_with_names_of_dimensions(mode):
    import pytensor.xtensor as px

    x, y = px.xtensor("x", dims=("a", "b"), shape=(3, None)), px.xtensor("y", dims=("b",))
    row = px.xtensor("row", dims=("a", "c"), shape=(3, 1))
    outputs = [(x * y).sum("a"), x.isel(b=slice(1, 3)), px.dot(x, y), (x + 1).transpose("b", "a"),
               x * row, px.concat([x, x], dim="a")]  # fmt: skip
    f = pytensor.function([x, y, row], outputs, mode=mode)
    assert opwise.pytensor.performed(f) == ()
    a, b, c = np.arange(12.0).reshape(3, 4), np.arange(4.0), np.ones((3, 1))
    expected = [(a * b).sum(0), a[:, 1:3], a @ b, (a + 1).T, a[:, :, None] * c[:, None], [*a, *a]]
    for found, wanted in zip(f(a, b, c), expected, strict=True):
        np.testing.assert_array_equal(found, wanted)


# --- values that opwise does not look into --------------------------------------------------------


def test_random_variables_draw_what_numpy_draws():
    rng = pytensor.shared(np.random.default_rng(5))
    x = pt.vector("x")
    next_rng, draw = pt.random.normal(x, 1, rng=rng, return_next_rng=True)
    third, number = pt.random.gamma(2, scale=1, rng=next_rng, return_next_rng=True)
    f = pytensor.function([x], [draw, number], updates={rng: third}, mode="OPWISE")
    numpys = np.random.default_rng(5)
    for _ in range(3):
        found = f(np.zeros(4))
        np.testing.assert_array_equal(found[0], numpys.normal(np.zeros(4), 1))
        np.testing.assert_array_equal(found[1], numpys.gamma(2, 1))
    assert opwise.pytensor.performed(f) == ()


def test_random_variables_in_loops():
    rng = pytensor.shared(np.random.default_rng(5))

    def step(last, rng):
        next_rng, draw = pt.random.normal(last, 1, rng=rng, return_next_rng=True)
        return draw, next_rng

    walk, last_rng = pytensor.scan(
        step, outputs_info=[pt.zeros(()), rng], n_steps=5, return_updates=False
    )
    f = pytensor.function([], walk, updates={rng: last_rng}, mode="OPWISE")
    numpys, expected = np.random.default_rng(5), []
    for _ in range(5):
        expected.append(numpys.normal(expected[-1] if expected else 0.0, 1))
    np.testing.assert_array_equal(f(), expected)


def test_typed_lists(same):
    from pytensor.typed_list import make_list

    x = pt.vector("x")
    values = make_list([x, x * 2])
    reasons = ["MakeList has no translation", "GetItem has no translation"]
    same([x], values[1] + 1, [np.arange(3.0)], performed=reasons)


def test_sparse_matrices():
    sparse = pytest.importorskip("scipy.sparse")
    import pytensor.sparse as ps

    s, y = ps.csr_matrix("s"), pt.matrix("y")
    given = sparse.random(5, 4, 0.4, format="csr", random_state=0)
    f = pytensor.function([s, y], [ps.dot(s, y), ps.sp_sum(s, axis=0), s.T], mode="OPWISE")
    product, sums, turned = f(given, np.ones((4, 2)))
    np.testing.assert_allclose(product, given @ np.ones((4, 2)))
    np.testing.assert_allclose(sums, np.asarray(given.sum(axis=0)).ravel())
    assert (turned != given.T).nnz == 0
    assert all("has no translation" in each.reason for each in opwise.pytensor.performed(f))


def test_signals(same):
    from pytensor.tensor.signal import convolve1d

    x, y = pt.vector("x"), pt.vector("y")
    reasons = ["Convolve1d has no translation"]
    same([x, y], convolve1d(x, y, mode="full"), [np.arange(5.0), np.ones(3)], performed=reasons)


# --- profiles -------------------------------------------------------------------------------------


def test_profiles_name_lines_and_variables(capsys):
    mode = opwise.pytensor.ProfilingMode(opwise.pytensor.OpwiseLinker("PROFILE_MODE"), "fast_run")
    theta, y = pt.vector("theta"), pt.vector("y")
    residual = (y - theta) ** 2
    f = pytensor.function([theta, y], residual.sum(), mode=mode, name="loss")
    f(np.ones(3), np.ones(3))
    mode.print_summary()
    printed = capsys.readouterr().out
    for text in ("Apply-wise summary", "Op-wise summary", "Type-Op-wise summary",
                 "test_functions.py", "theta", "loss"):  # fmt: skip
        assert text in printed
    function = next(one for one in mode.recorded().functions if one.name == "loss")
    lines = {one.file.rpartition("/")[2] for a in function.applys for one in a.origins if one.file}
    assert lines == {"test_functions.py"}


def test_functions_are_named_after_the_line_that_compiles_them():
    x = pt.vector("x")
    f = pytensor.function([x], x.sum(), mode="OPWISE")
    assert "test_functions.py" in opwise.pytensor.own_function(f).name


def test_profiles_have_the_time_of_rewriting_and_translation(capsys):
    mode = opwise.pytensor.ProfilingMode(opwise.pytensor.OpwiseLinker("PROFILE_MODE"), "fast_run")
    x = pt.vector("x")
    f = pytensor.function([x], pt.exp(x).sum(), mode=mode, name="total")
    f(np.ones(3))
    times = opwise.pytensor.own_function(f).compile_report.front_end
    assert times.rewriting > 0 and times.translation > 0
    (function,) = [one for one in mode.recorded().functions if one.name == "total"]
    assert function.compile.library > 0 and function.compile.translation > 0
    mode.print_summary()
    assert "rewriting by the library" in capsys.readouterr().out
