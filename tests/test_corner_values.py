"""Values at the corners, the same in every mode: arrays without elements, memory that must not be
written, gradients where a formula gives inf times 0."""

import pickle
import warnings

import numpy as np
import pytest

import opwise.tensor as T
from opwise import Apply, In, Mode, Op, Out, function, shared
from opwise.config import change_flags
from opwise.gradient import Rop, grad
from opwise.tensor import extra_ops, nnet

pytestmark = pytest.mark.c

MODES = {
    "FAST_COMPILE": lambda: "FAST_COMPILE",
    "FAST_RUN": lambda: "FAST_RUN",
    "DEBUG_MODE": lambda: "DEBUG_MODE",
    "no optimizer": lambda: Mode("c|py", None),
    "py": lambda: Mode("py", "fast_run"),
    "vm": lambda: Mode("vm", "fast_run"),
}
mode_names = pytest.mark.parametrize("name", MODES)


def read_only(value, dtype="float64"):
    array = np.array(value, dtype)
    array.flags.writeable = False
    return array


# --- memory that must not be written --------------------------------------------------------------


@mode_names
@pytest.mark.parametrize("dtype", ["float64", "float16", "complex64", "bool", "int8"])
def test_fill_by_a_read_only_number(name, dtype):
    x, y = T.dmatrix("x"), T.TensorType(dtype, ())("y")
    v = T.TensorType(dtype, (False,))("v")
    f = function([x, y, v], [T.fill(x, y), T.fill(x, v)], mode=MODES[name]())
    ones = read_only(np.ones((2, 3)))
    by_number, by_vector = f(ones, read_only(1, dtype), read_only([1, 0, 1], dtype))
    np.testing.assert_array_equal(by_number, np.ones((2, 3), dtype))
    np.testing.assert_array_equal(by_vector, np.array([[1, 0, 1]] * 2, dtype))
    assert by_number.dtype == by_vector.dtype == dtype
    assert by_number.flags.writeable and by_vector.flags.writeable


class Overwriting(Op):
    """A faulty Op: it writes to its input without saying so."""

    __props__ = ()

    def make_node(self, x):
        return Apply(self, [x], [x.type()])

    def perform(self, node, inputs, output_storage):
        inputs[0][...] = 7
        output_storage[0][0] = inputs[0].copy()


@pytest.mark.parametrize("name", ["FAST_COMPILE", "FAST_RUN", "no optimizer", "py", "vm"])
@pytest.mark.parametrize("view", [lambda x: x.T, lambda x: x[1:], lambda x: x.reshape((4, 3))])
def test_perform_gets_no_writeable_view_of_read_only_memory(name, view):
    x = T.dmatrix("x")
    f = function([x], Overwriting()(view(x)), mode=MODES[name]())
    value = read_only(np.zeros((3, 4)))
    with pytest.raises(ValueError, match="read-only"):
        f(value)
    assert not value.any()
    assert (f(np.zeros((3, 4))) == 7).all()


@pytest.mark.parametrize("name", ["FAST_COMPILE", "FAST_RUN", "py", "vm"])
def test_a_borrowed_view_of_read_only_memory_is_read_only(name):
    x = T.dmatrix("x")
    f = function([In(x, borrow=True)], Out(x.T, borrow=True), mode=MODES[name]())
    assert not f(read_only(np.zeros((3, 4)))).flags.writeable
    assert f(np.zeros((3, 4))).flags.writeable


# --- arrays without elements ----------------------------------------------------------------------


@mode_names
@pytest.mark.parametrize("shape", [(0, 2, 3), (2, 0, 3), (2, 3, 0), (0, 0, 0)])
@pytest.mark.parametrize("ndim", [1, 2, 3])
def test_flatten_of_nothing(name, shape, ndim):
    x = T.dtensor3("x")
    flat = T.flatten(x, ndim)
    f = function([x], [flat, grad(flat.sum(), x)], mode=MODES[name]())
    value, gradient = f(np.zeros(shape))
    assert value.shape == (*shape[: ndim - 1], np.prod(shape[ndim - 1 :], dtype=int))
    assert gradient.shape == shape


@mode_names
def test_bincount_of_nothing_and_of_the_largest(name):
    x, y = T.lvector("x"), T.bvector("y")
    outputs = [extra_ops.bincount(x), extra_ops.bincount(x, minlength=3), extra_ops.bincount(y)]
    f = function([x, y], outputs, mode=MODES[name]())
    none, three, large = f(np.zeros(0, np.int64), np.array([127], np.int8))
    np.testing.assert_array_equal(none, np.bincount(np.zeros(0, np.int64)))
    np.testing.assert_array_equal(three, [0, 0, 0])
    np.testing.assert_array_equal(large, np.bincount([127]))


@mode_names
def test_h_softmax_of_no_rows(name):
    x = T.dmatrix("x")
    weights = T.ones((4, 2)), T.zeros((2,)), T.ones((2, 4, 3)), T.zeros((2, 3))
    f = function([x], nnet.h_softmax(x, x.shape[0], 5, 2, 3, *weights), mode=MODES[name]())
    assert f(np.zeros((0, 4))).shape == (0, 5)
    np.testing.assert_allclose(f(np.zeros((2, 4))), np.full((2, 5), 1 / 6))


# --- gradients ------------------------------------------------------------------------------------


def gradient(build, value, name):
    x = T.TensorType("float64", (False,) * np.ndim(value))("x")
    with np.errstate(all="ignore"):
        return function([x], grad(T.sum(build(x)), x), mode=MODES[name]())(np.array(value, float))


@mode_names
@pytest.mark.parametrize(
    "value",
    [[1, 2, 0, 3], [0, 2, 3], [2, 3, 0], [1, 0, 2, 0, 3], [0, 0], [2, 3], [0], []],
)
def test_cumprod_is_differentiated_exactly(name, value):
    x, dx, g = T.dvector("x"), T.dvector("dx"), T.dvector("g")
    y = T.cumprod(x)
    f = function([x, dx, g], [grad((y * g).sum(), x), Rop(y, x, dx)], mode=MODES[name]())
    n = len(value)
    # row k: the derivatives of product k by each factor
    jacobian = np.array(
        [
            [np.prod(np.delete(value[: k + 1], i)) if i <= k else 0.0 for i in range(n)]
            for k in range(n)
        ]
    ).reshape(n, n)
    weights, direction = np.arange(1.0, n + 1), np.arange(2.0, n + 2)
    by_x, along = f(np.array(value, float), direction, weights)
    np.testing.assert_allclose(by_x, weights @ jacobian, rtol=1e-12)
    np.testing.assert_allclose(along, jacobian @ direction, rtol=1e-12)


@mode_names
def test_cumprod_along_axes(name):
    value = np.array([[1.0, 0, 2], [0, 3, 0], [4, 5, 6]])
    for axis in (0, 1):
        by_axis = gradient(lambda x, axis=axis: T.cumprod(x, axis=axis), value, name)
        rows = value.T if axis == 0 else value
        by_row = np.array([gradient(T.cumprod, row, name) for row in rows])
        np.testing.assert_array_equal(by_axis, by_row.T if axis == 0 else by_row)
    whole = gradient(T.cumprod, value, name)
    np.testing.assert_array_equal(whole.ravel(), gradient(T.cumprod, value.ravel(), name))


@mode_names
@pytest.mark.parametrize(
    "build, value, expected",
    [
        (T.std, [2, 2, 2], [0, 0, 0]),
        (lambda x: T.std(x, axis=1), [[1, 1], [1, 2]], [[0, 0], [-0.5, 0.5]]),
        (T.var, [2, 2], [0, 0]),
        (lambda x: x.norm(2), [0, 0], [0, 0]),
        (lambda x: x.norm(2), [0, 1], [0, 1]),
        (lambda x: x.norm(3), [0, 0], [0, 0]),
        (lambda x: x.norm(1), [0, 2], [0, 1]),
        (T.prod, [1, 2, 0], [0, 0, 2]),
        (T.prod, [1, 0, 0], [0, 0, 0]),
        (lambda x: x**0, [0, 1], [0, 0]),
        (lambda x: x**x, [0, 1], [0, 1]),
        (lambda x: x ** T.cast(T.round(x), "int8"), [0, 2], [0, 4]),
        (lambda x: x**2, [0, 1], [0, 2]),
        (abs, [0, 1], [0, 1]),
        (nnet.elu, [0, -1, 1000], [1, np.exp(-1), 1]),
        (nnet.selu, [1000], [1.0507009873554805]),
        (nnet.softplus, [-1000, 1000], [0, 1]),
    ],
)
def test_gradient_is_the_limit(name, build, value, expected):
    np.testing.assert_allclose(gradient(build, value, name), expected, rtol=1e-9)


@pytest.mark.parametrize("name", [n for n in MODES if n != "DEBUG_MODE"])
def test_gradient_that_is_infinite(name):
    """DEBUG_MODE refuses infinities."""
    np.testing.assert_array_equal(gradient(T.sqrt, [0, 4], name), [np.inf, 0.25])


@mode_names
def test_std_and_norm_are_flat_at_zero_in_forward_mode_too(name):
    x, dx = T.dvector("x"), T.dvector("dx")
    f = function([x, dx], [Rop(T.std(x), x, dx), Rop(x.norm(2), x, dx)], mode=MODES[name]())
    np.testing.assert_array_equal(f(np.zeros(2), np.array([1.0, 3])), [0, 0])
    np.testing.assert_allclose(f(np.array([0.0, 2]), np.array([1.0, 3])), [1, 3])


@pytest.mark.parametrize("axis", [None, 0, 1, (0, 1)])
@pytest.mark.parametrize("keepdims", [True, False])
def test_log_sum_exp_has_a_gradient_where_it_has_a_value(axis, keepdims):
    """Both are computed of the distance from the maximum."""

    def log_sum_exp(x):
        return T.log(T.sum(T.exp(x), axis=axis, keepdims=keepdims))

    value = np.array([[1000.0, 1000], [1000, 1001]])
    expected = np.exp(value - 1001)
    expected /= expected.sum(axis=axis, keepdims=True)
    np.testing.assert_allclose(gradient(log_sum_exp, value, "FAST_RUN"), expected, rtol=1e-12)


# --- flags that act while a graph is built --------------------------------------------------------


@pytest.mark.parametrize(
    "flags",
    [{"compute_test_value": "raise"}, {"compute_test_value": "warn"}, {"warn_float64": "raise"}],
)
@pytest.mark.parametrize("mode", ["FAST_RUN", "FAST_COMPILE", "DEBUG_MODE"])
def test_a_pickled_function_does_not_meet_flags_for_building(flags, mode):
    """The graph was built before; what compiling adds to it is no line of the user."""
    x, w = T.dmatrix("x"), shared(np.ones(3), "w")
    functions = [
        function([x], x[: x.shape[0] // 2], mode=mode),
        function([In(x, borrow=True)], Out(x.T, borrow=True), mode=mode),
        function([x], [x, x], mode=mode),
        function([x], grad(T.tanh(T.dot(x, w)).sum(), w), updates=[(w, w + 1)], mode=mode),
        function([In(x, value=np.ones((2, 3)), update=x + 1)], x.sum(), mode=mode),
    ]
    value = np.ones((2, 3))
    for f in functions:
        arguments = [] if f.maker.construction.inputs[0].value is not None else [value]
        data = pickle.dumps(f)
        with change_flags(**flags), warnings.catch_warnings():
            warnings.simplefilter("error")
            loaded, copied = pickle.loads(data), f.copy()
        started_at = w.get_value()
        expected = f(*arguments)
        w.set_value(started_at)
        listed = expected if isinstance(expected, list) else [expected]  # what copies return
        for other, result in ((loaded, expected), (copied, listed)):
            if not other.get_shared():
                np.testing.assert_array_equal(other(*arguments), result)


@pytest.mark.parametrize("name", MODES)
def test_a_default_that_is_updated_is_a_copy(name):
    x, value = T.dvector("x"), np.zeros(2)
    f = function([In(x, value=value, update=x + 1)], x, mode=MODES[name]())
    copied = f.copy()
    np.testing.assert_array_equal([f(), f(), copied()[0]], [[0, 0], [1, 1], [0, 0]])
    assert not value.any()


def test_compiling_asks_for_no_test_value():
    with change_flags(compute_test_value="raise"):
        x = T.dvector("x")
        x.tag.test_value = np.ones(3)
        f = function([x], [x[1:], x])
    np.testing.assert_array_equal(f(np.arange(3.0))[0], [1, 2])


@mode_names
@pytest.mark.parametrize("power", [2, 4, 2.0])
def test_second_derivatives_of_norms(name, power):
    """Where an element is 0 the norm has a second derivative by it."""

    def slope(values):
        total = np.sum(values**power)
        return np.sign(values) * abs(values) ** (power - 1) / total ** (1 - 1 / power)

    x = T.dvector("x")
    first = grad(x.norm(power), x)
    f = function([x], [first, grad(first[0] + 2 * first[1], x)], mode=MODES[name]())
    values, step = np.array([3.0, 0.0, 4.0]), 1e-5
    found = f(values)
    np.testing.assert_allclose(found[0], slope(values), rtol=1e-12)
    numeric = [
        (slope(values + step * e)[:2] - slope(values - step * e)[:2]) @ [1, 2] / (2 * step)
        for e in np.eye(3)
    ]
    np.testing.assert_allclose(found[1], numeric, rtol=1e-6, atol=1e-9)


@mode_names
def test_a_product_with_zeros_makes_no_nan_on_its_way(name):
    """Modes that look at every value find none in the gradient."""
    x = T.dmatrix("x")
    cost = T.sqr(T.prod(x, axis=1)).sum() + T.prod(x + 1)
    f = function([x], grad(cost, x), mode=MODES[name]())
    values = np.array([[0.0, 2.0], [0.0, 0.0], [3.0, 1.0]])
    with np.errstate(all="raise"):
        found = f(values)
    rest = [np.prod(np.delete((values + 1).ravel(), i)) for i in range(6)]
    wanted = np.reshape(rest, (3, 2)) + [[0, 0], [0, 0], [6, 18]]
    np.testing.assert_allclose(found, wanted)
