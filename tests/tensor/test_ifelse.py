"""IfElse: types, errors, derivatives, shapes, and results under every mode."""

import pickle

import numpy as np
import pytest

import opwise
import opwise.tensor as T
from opwise import Mode, OpFromGraph, function, generic, shared
from opwise.config import change_flags
from opwise.gradient import DisconnectedInputError, Rop, grad, verify_grad
from opwise.ifelse import IfElse, ifelse
from opwise.printing import debugprint
from opwise.random import RandomStreams
from opwise.sparse import csc_matrix
from opwise.tensor import Dot
from opwise.tensor.blas import BatchedDot, Dot22

MODES = ["FAST_RUN", "FAST_COMPILE", "DEBUG_MODE", "PROFILE_MODE"]
LINKERS = ["cvm", "vm", "py", "c|py", "cvm_nogc", "vm_nogc"]

pytestmark = pytest.mark.c


@pytest.fixture(params=[*MODES, *LINKERS])
def mode(request):
    return request.param if request.param in MODES else Mode(request.param, "fast_run")


def operands():
    return T.iscalar("c"), T.dvector("x"), T.dvector("y")


X, Y = np.array([1.0, 2.0]), np.array([3.0, 4.0, 5.0])


def test_the_value_of_the_branch_that_is_taken(mode):
    c, x, y = operands()
    f = function([c, x, y], ifelse(c, x * 2, y + 1), mode=mode)
    for _ in range(2):
        np.testing.assert_array_equal(f(1, X, Y), X * 2)
        np.testing.assert_array_equal(f(0, X, Y), Y + 1)
        np.testing.assert_array_equal(f(-3, X, Y), X * 2)


def test_lists_of_values(mode):
    c, x, y = operands()
    n, m = T.lscalars("n", "m")
    f = function([c, x, y, n, m], ifelse(c, [x, n * 2], [y, m]), mode=mode)
    one, two = f(1, X, Y, 3, 4), f(0, X, Y, 3, 4)
    assert (one[0].tolist(), int(one[1])) == ([1, 2], 6)
    assert (two[0].tolist(), int(two[1])) == ([3, 4, 5], 4)


def test_results_are_no_views_of_arguments_and_shared_values(mode):
    c, x, y = operands()
    s = shared(np.arange(4.0))
    f = function([c, x, y], [ifelse(c, x, y), ifelse(c, s, s * 2)], mode=mode)
    for condition, given in ((1, X), (0, Y)):
        found, of_shared = f(condition, X, Y)
        assert not np.shares_memory(found, given)
        assert not np.shares_memory(of_shared, s.get_value(borrow=True))
        found[...] = of_shared[...] = -1
    assert X.tolist() == [1, 2] and Y.tolist() == [3, 4, 5]
    assert s.get_value().tolist() == [0, 1, 2, 3]


def test_what_reads_the_result_in_place_leaves_the_branches_alone(mode):
    c, x, y = operands()
    a, b = T.exp(x), T.sqr(y)
    z = ifelse(c, a, b)
    f = function([c, x, y], [T.tanh(z) * 2 + 1, a + 1, b.sum(), T.sqrt(z)], mode=mode)
    for condition, value in ((1, np.exp(X)), (0, Y**2)):
        expected = [np.tanh(value) * 2 + 1, np.exp(X) + 1, (Y**2).sum(), np.sqrt(value)]
        for found, wanted in zip(f(condition, X, Y), expected, strict=True):
            np.testing.assert_allclose(found, wanted)


def test_updates(mode):
    c = T.iscalar("c")
    s, t = shared(np.arange(3.0)), shared(np.ones(2))
    f = function([c], s.sum(), updates=[(s, ifelse(c, s + 1, s)), (t, ifelse(c, t, t * 2))],
                 mode=mode)  # fmt: skip
    assert f(0) == 3 and s.get_value().tolist() == [0, 1, 2] and t.get_value().tolist() == [2, 2]
    assert f(1) == 3 and s.get_value().tolist() == [1, 2, 3] and t.get_value().tolist() == [2, 2]
    assert f(1) == 6 and s.get_value().tolist() == [2, 3, 4]
    swap = function([c], [], updates=[(s, ifelse(c, T.ones((3,)) * t[0], s))], mode=mode)
    swap(1)
    assert s.get_value().tolist() == [2, 2, 2]
    t.set_value(np.zeros(2))
    swap(0)
    assert s.get_value().tolist() == [2, 2, 2]


@pytest.mark.parametrize(
    "dtype", ["bool", "int8", "uint16", "int64", "float16", "float32", "float64", "complex128"]
)
def test_conditions_of_every_dtype(dtype, mode):
    c = T.TensorType(dtype, ())("c")
    f = function([c], ifelse(c, 1, 2), mode=mode)
    values = [0, 1] if dtype == "bool" else [0, 1, 2]
    if np.dtype(dtype).kind == "f":
        values += [-0.0, 0.5, -1]
    if dtype == "complex128":
        values += [1j, -0.0]
    for value in values:
        assert f(np.asarray(value, dtype)) == (1 if value else 2)


def test_nan_is_true():
    c = T.dscalar("c")
    assert function([c], ifelse(c, 1, 2), mode="FAST_RUN")(np.nan) == 1


def test_other_values_than_arrays(mode):
    c, x, y = T.iscalar("c"), generic("x"), generic("y")
    f = function([c, x, y], ifelse(c, x, y), mode=mode)
    assert f(1, ["a"], ["b"]) == ["a"] and f(0, ["a"], ["b"]) == ["b"]


def test_sparse_matrices():
    from scipy.sparse import csc_matrix as matrix

    c, x, y = T.iscalar("c"), csc_matrix("x", dtype="float64"), csc_matrix("y", dtype="float64")
    f = function([c, x, y], ifelse(c, x, y))
    one, two = matrix(np.eye(2)), matrix(np.ones((1, 3)))
    assert (f(1, one, two) != one).nnz == 0 and (f(0, one, two) != two).nnz == 0


def test_random_states_go_on_in_both_branches(mode):
    c = T.iscalar("c")
    streams = RandomStreams(3)
    f = function([c], ifelse(c, streams.normal((3,)), T.zeros((3,))), mode=mode)
    g = function([], RandomStreams(3).normal((3,)))
    first, second, third = g(), g(), g()
    np.testing.assert_array_equal(f(1), first)
    assert f(0).tolist() == [0, 0, 0] and second is not None
    np.testing.assert_array_equal(f(1), third)


def test_inside_an_op_from_graph(mode):
    c, x, y = operands()
    op = OpFromGraph([c, x, y], [ifelse(c, x * 2, y)])
    f = function([c, x, y], op(c, x, y) + 1, mode=mode)
    assert f(1, X, Y).tolist() == [3, 5] and f(0, X, Y).tolist() == [4, 5, 6]


def test_a_value_of_none_is_refused(mode):
    if mode == "DEBUG_MODE":
        pytest.skip("DebugMode refuses None as an argument")
    c, x, y = operands()
    f = function([c, x, y], ifelse(c, x, y), mode=mode)
    f.trust_input = True
    with pytest.raises(ValueError, match="expected an ndarray, not None"):
        f(np.asarray(1, "int32"), None, Y)
    with pytest.raises(ValueError, match="expected an ndarray, not None"):
        f(None, X, Y)
    np.testing.assert_array_equal(f(np.asarray(0, "int32"), None, Y), Y)


# --- arguments ------------------------------------------------------------------------------------


def test_the_form_of_the_result_is_that_of_the_first_branch():
    c, x, y = operands()
    assert ifelse(c, x, [y]).owner is not None
    assert type(ifelse(c, [x], y)) is list and type(ifelse(c, (x, y), [y, x])) is tuple
    assert ifelse(c, [], []) == []
    assert ifelse(1, 1, 2).type.dtype == "int8"


@pytest.mark.parametrize(
    ("build", "error", "message"),
    [
        (lambda c, x, y: ifelse(c, x, [y, x]), ValueError, "variables on `then` 1"),
        (lambda c, x, y: ifelse(c, [x, y], x), ValueError, "variables on `else` 1"),
        (lambda c, x, y: ifelse(x, x, y), TypeError, "has to be a scalar"),
        (lambda c, x, y: ifelse(c, x, c), TypeError, "should have identical types"),
        (lambda c, x, y: ifelse(c, 1.5, 2), TypeError, "should have identical types"),
        (lambda c, x, y: ifelse(c, x, csc_matrix("s", dtype="float64")), TypeError, "Cannot"),
        (lambda c, x, y: ifelse("a", x, y), TypeError, "Cannot convert a to TensorType"),
        (lambda c, x, y: ifelse(c, x, None), TypeError, "Cannot convert None to TensorType"),
        (lambda c, x, y: IfElse(2)(c, x, y), AssertionError, "expected 4, got 2"),
        (lambda c, x, y: IfElse(1)(c, x, c), TypeError, "IfElse requires same types"),
    ],
)
def test_bad_arguments(build, error, message):
    with pytest.raises(error, match=message):
        build(*operands())


def test_names_and_equality():
    assert str(IfElse(1)) == "if{}" and str(IfElse(2, name="n")) == "if{n}"
    assert str(IfElse(1, as_view=True, gpu=True, name="n")) == "if{n,inplace,gpu}"
    assert IfElse(1, name="a") == IfElse(1) and hash(IfElse(1, name="a")) == hash(IfElse(1))
    assert IfElse(1) != IfElse(2) and IfElse(1) != IfElse(1, as_view=True)
    assert IfElse(2, as_view=True).view_map == {0: [1], 1: [2]}
    c, x, y = operands()
    assert "if{choice} [id A]" in debugprint(ifelse(c, x, y, name="choice"), file="str")


def test_pickles():
    c, x, y = operands()
    op = pickle.loads(pickle.dumps(IfElse(2, as_view=True, name="n")))
    assert op == IfElse(2, as_view=True) and op.name == "n" and op.view_map == {0: [1], 1: [2]}
    f = pickle.loads(pickle.dumps(function([c, x, y], ifelse(c, x * 2, y))))
    assert f(1, X, Y).tolist() == [2, 4] and f(0, X, Y).tolist() == [3, 4, 5]
    [found] = f.copy()(0, X, Y)
    assert found.tolist() == [3, 4, 5]


def test_test_values():
    with change_flags(compute_test_value="raise"):
        c, x, y = operands()
        c.tag.test_value, x.tag.test_value, y.tag.test_value = np.int32(0), X, Y
        assert ifelse(c, x * 2, y).tag.test_value.tolist() == [3, 4, 5]


# --- shapes and derivatives -----------------------------------------------------------------------


def test_shapes():
    c = T.iscalar("c")
    x, y = T.dmatrix("x"), T.dmatrix("y")
    z = ifelse(c, T.dot(x, x.T), y, name="z")
    f = function([c, x, y], [z.shape[0], z.shape[1]], mode="FAST_RUN")
    assert not any(isinstance(n.op, Dot | Dot22 | BatchedDot) for n in f.maker.fgraph.apply_nodes)
    a, b = np.ones((2, 3)), np.ones((4, 5))
    assert list(map(int, f(1, a, b))) == [2, 2] and list(map(int, f(0, a, b))) == [4, 5]


@pytest.mark.parametrize("condition", [0, 1])
def test_gradients(condition):
    def cost(x, y):
        return ifelse(T.constant(condition) * T.ones_like(x[0]) > 0, T.sqr(x) * y.sum(), y * 3)

    rng = np.random.RandomState(1)
    verify_grad(cost, [rng.rand(3), rng.rand(3)], rng=rng)


def test_gradients_of_several_values(mode):
    c, x, y = operands()
    one, two = ifelse(c, [x * 2, x.sum()], [y, y.prod()], name="u")
    gradients = grad(one.sum() * 3 + two, [x, y])
    f = function([c, x, y], gradients, mode=mode)
    taken, other = f(1, X, Y)
    assert taken.tolist() == [7, 7] and other.tolist() == [0, 0, 0]
    other, taken = f(0, X, Y)
    assert other.tolist() == [0, 0] and taken.tolist() == [23, 18, 15]
    text = debugprint(gradients, file="str")
    assert "if{u_grad_t}" in text and "if{u_grad_f}" in text


def branches_that_are_impossible_if_not_taken():
    """Return {name: (inputs, cost, variable, (arguments, gradient) of calls)}."""
    x, v, w, n = T.dscalar("x"), T.dvector("v"), T.dvector("w"), T.lscalar("n")
    log = T.log(x)
    inner = ifelse(x > 1, T.log(x - 1), T.sqrt(x))
    part = T.log(v)
    return {
        "a pole": ([x], ifelse(x > 0, T.log(x), x * 2), x, [((0.0,), 2), ((2.0,), 0.5)]),
        "an overflow": (
            [x], ifelse(x < 1, T.log1p(x), T.exp(x)), x,
            [((0.0,), 1), ((1000.0,), np.inf), ((-0.5,), 2)],
        ),
        "a domain": ([x], ifelse(x > 0, T.sqrt(x), x * 2), x, [((-1.0,), 2), ((4.0,), 0.25)]),
        "both branches": (
            [x], ifelse(x > 0, T.log(x), T.log(-x)), x, [((-2.0,), -0.5), ((2.0,), 0.5)],
        ),
        "elements": (
            [n, v], ifelse(n, part, v * 2).sum(), v,
            [((0, [0.0, 1.0]), [2, 2]), ((1, [1.0, 2.0]), [1, 0.5])],
        ),
        "a value in a branch": (
            [n, v], ifelse(n, part, v * 2).sum(), part,
            [((0, [0.0, 1.0]), [0, 0]), ((1, [1.0, 2.0]), [1, 1])],
        ),
        "two choices": (
            [x], ifelse(x > 0, log, x * 2) + ifelse(x > 1, log * 3, x), x,
            [((0.0,), 3), ((-1.0,), 3), ((0.5,), 3), ((2.0,), 2)],
        ),
        "a choice in a choice": (
            [x], ifelse(x > 0, inner, x * 2), x, [((-1.0,), 2), ((0.25,), 1), ((3.0,), 0.5)],
        ),
        "choices in a choice": (
            [x], ifelse(x > 0, inner + ifelse(x > 2, T.log(x - 1), x * 3), x * 2), x,
            [((-1.0,), 2), ((0.25,), 4), ((3.0,), 1)],
        ),
        "a value of two inner choices": (
            [x], ifelse(x >= 0, ifelse(x > 1, log, x) + ifelse(x > 2, log, x), x * 5) * 2, x,
            [((-1.0,), 10), ((0.0,), 4), ((1.25,), 3.6), ((4.0,), 1)],
        ),
        "a number of rows": (
            [n, v], ifelse(n > 0, T.outer(T.ones((n,)), v).sum(axis=0), v * 2).sum(), v,
            [((-1, [1.0]), [2]), ((3, [1.0, 2.0]), [3, 3])],
        ),
        "an index": (
            [n, v], ifelse(n < v.shape[0], v[n], v.sum() * 2), v,
            [((5, [1.0, 2.0]), [2, 2]), ((1, [1.0, 2.0]), [0, 1])],
        ),
        "lengths": (
            [v, w], ifelse(T.eq(v.shape[0], w.shape[0]), T.dot(v, w), v.sum() * 2), v,
            [(([1.0, 2.0], [3.0]), [2, 2]), (([1.0, 2.0], [3.0, 4.0]), [3, 4])],
        ),
    }  # fmt: skip


@pytest.mark.parametrize("name", branches_that_are_impossible_if_not_taken())
@pytest.mark.parametrize("mode", ["FAST_RUN", "FAST_COMPILE", "PROFILE_MODE", *LINKERS])
def test_gradients_compute_nothing_of_the_other_branch(name, mode):
    mode = Mode(mode, "fast_run") if mode in LINKERS else mode
    inputs, cost, var, calls = branches_that_are_impossible_if_not_taken()[name]
    f = function(inputs, grad(cost, var), mode=mode)
    for arguments, expected in calls:
        np.testing.assert_allclose(f(*arguments), expected)


def test_many_choices_are_differentiated_in_one_pass():
    x = T.dscalar("x")
    nested = beside = T.log(x)
    for i in range(300):
        nested = ifelse(x > -i, nested, T.log(x + i + 1))
    both = nested + sum(ifelse(x > i, beside, x * 2) for i in range(300))
    f = function([x], grad(both, x), mode="FAST_COMPILE")
    np.testing.assert_allclose(f(0.0), 1 + 300 * 2)
    np.testing.assert_allclose(f(2.5), 1 / 2.5 + 3 / 2.5 + 297 * 2)


def test_the_gradient_of_a_value_that_nothing_reads():
    c, x, y = operands()
    one, _ = ifelse(c, [x, y], [y, x])
    f = function([c, x, y], grad(one.sum(), [x, y]))
    first, second = f(1, X, Y)
    assert first.tolist() == [1, 1] and second.tolist() == [0, 0, 0]


def test_the_condition_has_a_gradient_of_zeros():
    c, x = T.dscalar("c"), T.dvector("x")
    f = function([c, x], grad(ifelse(c, x * c, x).sum(), c))
    assert f(2.0, X) == 3 and f(0.0, X) == 0
    with pytest.raises(DisconnectedInputError):
        grad(ifelse(c, x, x * 2).sum(), T.dscalar())


def test_connections():
    c, x, y = operands()
    node = ifelse(c, [x, y], [y, x])[0].owner
    assert node.op.connection_pattern(node) == [
        [True, True], [True, False], [False, True], [True, False], [False, True],
    ]  # fmt: skip


def test_derivatives_in_a_direction(mode):
    c, x, y = operands()
    v, w = T.dvectors("v", "w")
    both = Rop(ifelse(c, T.sqr(x), y * 3), [x, y], [v, w])
    one = Rop(ifelse(c, T.sqr(x), y * 3), x, v)
    none = Rop(ifelse(c, [x, y], [y, x])[0], [x], [v])
    f = function([c, x, y, v, w], [both, one, none], mode=mode, on_unused_input="ignore")
    taken = f(1, X, Y, X * 0 + 1, Y * 0 + 2)
    assert [r.tolist() for r in taken] == [[2, 4], [2, 4], [1, 1]]
    other = f(0, X, Y, X * 0 + 1, Y * 0 + 2)
    assert [r.tolist() for r in other] == [[6, 6, 6], [0, 0, 0], [0, 0, 0]]


def test_second_derivatives():
    c, x = T.iscalar("c"), T.dscalar("x")
    second = grad(grad(ifelse(c, x**3, T.sin(x)), x), x)
    f = function([c, x], second)
    assert np.isclose(f(1, 2.0), 12) and np.isclose(f(0, 2.0), -np.sin(2.0))


def test_theano_has_them():
    from theano.ifelse import IfElse as Class
    from theano.ifelse import ifelse as same

    assert Class is IfElse and same is ifelse and opwise.Op in Class.__mro__
