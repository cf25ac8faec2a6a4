"""as_op: Ops made of functions."""

import pickle

import numpy as np
import pytest

import opwise.tensor as T
from opwise import ProfileMode, as_op, function, grad
from opwise.compile import FromFunctionOp
from opwise.errors import MethodNotDefined

pytestmark = pytest.mark.null

MODES = ["FAST_COMPILE", "FAST_RUN", "DEBUG_MODE", ProfileMode()]


@as_op([T.dmatrix, T.dmatrix], T.dmatrix)
def product(a, b):
    return a * b


@as_op(T.dvector, [T.dscalar, T.lscalar])
def extremes(a):
    return float(a.max()), np.int64(a.argmax())


@pytest.mark.parametrize("mode", MODES)
def test_the_function_computes_the_values(mode):
    x, y = T.dmatrices("xy")
    assert isinstance(product, FromFunctionOp)
    f = function([x, y], product(x, y) + 1, mode=mode)
    assert f([[2.0]], [[3.0]]).tolist() == [[7.0]]


@pytest.mark.parametrize("mode", MODES)
def test_numbers_become_arrays(mode):
    v = T.dvector()
    most, where = function([v], extremes(v), mode=mode)([1.0, 4.0, 2.0])
    assert (most.dtype, most, where.dtype, where) == ("float64", 4.0, "int64", 1)


def test_a_function_may_compute_the_shapes():
    def shapes(node, given):
        (x,) = given
        return [(x[0] * x[1],)]

    runs = []

    @as_op(T.dmatrix, T.dvector, infer_shape=shapes)
    def flat(x):
        runs.append(x)
        return x.ravel()

    x = T.dmatrix()
    f = function([x], flat(x).shape)
    assert f(np.ones((2, 3))).tolist() == [6]
    assert not runs


def test_it_has_no_gradient():
    x = T.dmatrix()
    with pytest.raises(MethodNotDefined, match="grad"):
        grad(T.sum(product(x, x)), x)


def test_it_pickles_by_name():
    assert pickle.loads(pickle.dumps(product)) is product

    @as_op(T.dvector, T.dvector)
    def local(x):
        return x

    with pytest.raises(pickle.PicklingError, match=r"not found as .*local"):
        pickle.dumps(local)


def test_equal_functions_make_equal_ops():
    def f(x):
        return x

    make = as_op(T.dvector, T.dvector)
    assert make(f) == make(f)
    assert hash(make(f)) == hash(make(f))
    assert make(f) != make(lambda x: x)
    assert str(make(f)) == "FromFunctionOp{f}"


@pytest.mark.parametrize(
    ("arguments", "said"),
    [(("x", T.dvector), "itypes"), ((T.dvector, [int]), "otypes"),
     ((T.dvector, T.dvector, 3), "callable")],
)  # fmt: skip
def test_arguments_are_checked(arguments, said):
    with pytest.raises(TypeError, match=said):
        as_op(*arguments)


def test_the_number_of_results_is_checked():
    @as_op(T.dvector, T.dvector)
    def two(x):
        return x, x

    with pytest.raises(AssertionError, match="two returned 2 values"):
        function([], two(T.zeros(2, "float64")), mode="FAST_COMPILE")()
