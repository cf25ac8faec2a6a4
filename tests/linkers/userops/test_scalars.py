"""Scalar operations of users with ``c_code``: fused, reduced, failing."""

import numpy as np
import pytest

import theano
import theano.tensor as T
from opwise.errors import BadCLinkerOutput, CompileError, MethodNotDefined
from opwise.scalar import usercode
from theano import scalar
from theano.scalar.basic import BinaryScalarOp, UnaryScalarOp, same_out, upgrade_to_float

pytestmark = pytest.mark.c

MODES = ("FAST_RUN", "FAST_COMPILE", "DEBUG_MODE")
x, y = T.dmatrices("xy")
values = np.linspace(-2, 2, 24).reshape(4, 6)


def code_of(text):
    def c_code(self, node, name, inputs, outputs, sub):
        return text % dict(zip("xy", inputs, strict=False), z=outputs[0], name=name, **sub)

    return c_code


class Cube(UnaryScalarOp):
    def impl(self, a):
        return a * a * a

    def grad(self, inputs, gradients):
        return [gradients[0] * 3 * inputs[0] * inputs[0]]

    def c_support_code(self):
        return "template <class T> T cube_of(T x) { return x * x * x; }"

    c_code = code_of("%(z)s = cube_of(%(x)s);")


class Positive(UnaryScalarOp):
    def impl(self, a):
        if a < 0:
            raise ValueError("negative")
        return a

    c_code = code_of(
        'if (%(x)s < 0) { PyErr_SetString(PyExc_ValueError, "negative"); %(fail)s } %(z)s = %(x)s;'
    )


class Clipped(BinaryScalarOp):
    commutative = associative = True

    def impl(self, a, b):
        return min(a + b, 3.0)

    c_code = code_of("double s = %(x)s + %(y)s; %(z)s = s < 3 ? s : 3;")


cube = T.Elemwise(Cube(upgrade_to_float, name="cube"))
positive = T.Elemwise(Positive(same_out, name="positive"))


def kinds(f):
    return [type(node.op) for node in f.maker.fgraph.toposort()]


class Sine(UnaryScalarOp):
    def impl(self, a):
        return np.sin(a)

    def grad(self, inputs, gradients):
        return [gradients[0] * scalar.cos(inputs[0])]


@pytest.mark.parametrize("action", ["raise", "warn", "ignore"])
def test_gradients_of_scalar_ops_have_test_values(action):
    sine = T.Elemwise(Sine(upgrade_to_float, name="sine"))
    with theano.configparser.change_flags(compute_test_value=action):
        v = T.dvector("v")
        v.tag.test_value = np.array([0.5, 2.0])
        slope = T.grad(sine(v).sum(), v)
    np.testing.assert_allclose(slope.tag.test_value, np.cos([0.5, 2.0]))


@pytest.mark.parametrize("mode", MODES)
def test_values_gradients_and_sums(mode):
    f = theano.function(
        [x], [cube(x) + 1, T.grad(cube(x).sum(), x), cube(x).sum(axis=0)], mode=mode
    )
    out, gradient, total = f(values)
    np.testing.assert_allclose(out, values**3 + 1)
    np.testing.assert_allclose(gradient, 3 * values**2)
    np.testing.assert_allclose(total, (values**3).sum(axis=0))
    big = np.random.rand(500, 400)
    np.testing.assert_allclose(f(big)[0], big**3 + 1)
    np.testing.assert_allclose(f(values[::2, ::-1])[0], values[::2, ::-1] ** 3 + 1)


def test_it_is_fused_in_c():
    f = theano.function([x, y], T.exp(cube(x) * y) + cube(y), mode="FAST_RUN", profile=True)
    np.testing.assert_allclose(f(values, values), np.exp(values**4) + values**3)
    assert kinds(f) == [T.Elemwise] and all(f.profile.apply_cimpl.values())


@pytest.mark.parametrize("dtype", ["int8", "float32", "uint16", "bool"])
def test_dtypes_have_functions_of_their_own(dtype):
    v = T.vector(dtype=dtype)
    given = np.array([0, 1, 1], dtype)
    f = theano.function([v, x], [cube(v), cube(x)])
    small, double = f(given, values)
    assert small.tolist() == [0, 1, 1] and small.dtype.kind == "f"
    np.testing.assert_allclose(double, values**3)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("n", [3, 300])
def test_a_failure_raises_its_exception(mode, n):
    f = theano.function([x], positive(x) * 2, mode=mode)
    good = np.ones((n, n))
    assert (f(good) == 2).all()
    with pytest.raises(ValueError, match="negative"):
        f(-good)
    assert (f(good) == 2).all()


def test_a_failing_update_keeps_the_shared_value():
    w = theano.shared(np.array([[1.0, -1.0]]))
    f = theano.function([], [], updates=[(w, positive(w) + 1)])
    with pytest.raises(ValueError, match="negative"):
        f()
    assert w.get_value().tolist() == [[1, -1]]


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("axis", [None, 0, 1, (0, 1)])
def test_reductions(mode, axis):
    reduce = T.elemwise.CAReduce(Clipped(scalar.upcast_out), axis=axis)
    f = theano.function([x], reduce(x), mode=mode)
    axes = (0, 1) if axis in (None, (0, 1)) else (axis,)
    kept = [a for a in (0, 1) if a not in axes]
    for given in (values, values[::-1, ::2], np.asfortranarray(values), values[:1, :1]):
        lined = given.transpose((*kept, *axes)).reshape((*(given.shape[a] for a in kept), -1))
        expected = lined[..., 0]
        for k in range(1, lined.shape[-1]):
            expected = np.minimum(expected + lined[..., k], 3)
        np.testing.assert_allclose(f(given), expected)
    with pytest.raises(ValueError, match="zero-size"):
        f(np.zeros((0, 0)) if axis in (None, (0, 1)) else np.zeros((0, 3) if axis == 0 else (3, 0)))


def test_reductions_run_in_c_in_three_dimensions():
    t = T.dtensor3()
    f = theano.function([t], T.elemwise.CAReduce(Clipped(scalar.upcast_out), axis=(0, 2))(t),
                        profile=True)  # fmt: skip
    given = np.random.rand(3, 4, 5)
    expected = np.minimum(given.sum(axis=(0, 2)), 3)  # all terms are positive
    np.testing.assert_allclose(f(given), expected)
    assert all(f.profile.apply_cimpl.values())


def test_a_reduction_that_fails():
    class Same(BinaryScalarOp):
        def impl(self, a, b):
            raise KeyError("differ")

        c_code = code_of('PyErr_SetString(PyExc_KeyError, "differ"); %(fail)s')

    f = theano.function([x], T.elemwise.CAReduce(Same(scalar.upcast_out), axis=1)(x))
    with pytest.raises(KeyError, match="differ"):
        f(values)


def test_a_subclass_of_an_operation_of_the_library():
    class Twice(scalar.basic.Exp):
        def impl(self, a):
            return 2 * np.exp(a)

        c_code = code_of("%(z)s = 2 * exp(%(x)s);")

    twice = T.Elemwise(Twice(upgrade_to_float))
    for mode in MODES:
        f = theano.function([x], [twice(x), T.grad(T.exp(x).sum(), x)], mode=mode)
        np.testing.assert_allclose(f(values)[0], 2 * np.exp(values))
    assert T.exp.scalar_op.row is not None and Twice.row is None


@pytest.mark.parametrize("mode", MODES)
def test_without_impl(mode):
    class WithoutImpl(UnaryScalarOp):
        c_code = code_of("%(z)s = %(x)s + 100;")

    f = theano.function([x], T.Elemwise(WithoutImpl(same_out))(x), mode=mode)
    np.testing.assert_allclose(f(values), values + 100)
    with pytest.raises(MethodNotDefined, match="impl"):
        theano.function([x], T.Elemwise(WithoutImpl(same_out))(x), mode=theano.Mode("py"))(values)


def test_several_outputs_and_complex_numbers_run_impl():
    class Both(UnaryScalarOp):
        nout = 2

        def impl(self, a):
            return a, a + 1

        c_code = code_of("no C++")

    both = T.Elemwise(Both(scalar.transfer_type(0, 0)))
    low, high = theano.function([x], list(both(x)))(values)
    np.testing.assert_allclose(high, low + 1)
    z = T.zvector()
    assert theano.function([z], cube(z))([1j]).tolist() == [-1j]


def test_debug_mode_compares_c_with_impl():
    class Wrong(Cube):
        c_code = code_of("%(z)s = %(x)s;")

    f = theano.function([x], T.Elemwise(Wrong(same_out))(x), mode="DEBUG_MODE")
    with pytest.raises(BadCLinkerOutput):
        f(values)


def test_code_that_does_not_compile():
    class Bad(Cube):
        c_code = code_of("%(z)s = oops(%(x)s);")

    with pytest.raises(
        CompileError, match=r"Bad.*line \d+\) does not compile:\n  Bad.c_code, line 1"
    ):
        theano.function([x], T.Elemwise(Bad(same_out))(x) + 1)


def test_without_a_compiler(flags):
    flags(cxx="")
    f = theano.function([x], cube(x) + 1)
    np.testing.assert_allclose(f(values), values**3 + 1)


def test_numbers():
    s = scalar.float64("s")
    for mode in MODES:
        assert theano.function([s], Cube(upgrade_to_float)(s) + 1, mode=mode)(2.0) == 9


def test_which_code_needs_the_gil():
    def needs(op):
        return usercode.function_of(op(same_out), ("float64",), "float64").needs_gil

    assert needs(Positive) and not needs(Cube)
    assert usercode.function_of(Cube(same_out), ("complex64",), "complex64") is None
