"""Ops of a program: Python and C, old and new ways to say when they are equal; a rewrite; tests."""
import unittest

import numpy
import theano
from theano import gof, tensor as T
from theano.compile.ops import as_op
from theano.gof import Apply, Op, local_optimizer
from theano.tests import unittest_tools as utt


class Polynomial(Op):
    """Computes a x^2 + b x + c; equality as programs wrote it before __props__."""

    def __init__(self, a, b=0, c=0):
        self.coefficients = (a, b, c)

    def __eq__(self, other):
        return type(self) == type(other) and self.coefficients == other.coefficients

    def __hash__(self):
        return hash(type(self)) ^ hash(self.coefficients)

    def __str__(self):
        return 'Polynomial{%s}' % ', '.join(map(str, self.coefficients))

    def make_node(self, x):
        x = T.as_tensor_variable(x)
        return Apply(self, [x], [x.type()])

    def perform(self, node, (x,), (z,)):
        a, b, c = self.coefficients
        z[0] = numpy.asarray((a * x + b) * x + c, dtype=node.outputs[0].dtype)

    def infer_shape(self, node, shapes):
        return shapes

    def grad(self, (x,), (gz,)):
        a, b, _ = self.coefficients
        return [gz * (2 * a * x + b)]

    def R_op(self, inputs, eval_points):
        if eval_points[0] is None:
            return [None]
        return self.grad(inputs, eval_points)


class Clamp(gof.Op):
    """Written in C, with a Python implementation; both say which ran."""
    __props__ = ('low', 'high')

    def __init__(self, low, high):
        self.low, self.high = float(low), float(high)
        super(Clamp, self).__init__()

    def make_node(self, x):
        x = T.as_tensor_variable(x).astype('float64')
        if x.ndim <> 1:
            raise TypeError('a vector is needed', x.type)
        return Apply(self, [x], [T.dvector()])

    def perform(self, node, inputs, output_storage):
        output_storage[0][0] = numpy.clip(inputs[0], self.low, self.high)

    def c_support_code(self):
        return """
        static double clamp(double x, double low, double high)
        { return x < low ? low : x > high ? high : x; }
        """

    def c_code(self, node, name, (x,), (z,), sub):
        return """
        npy_intp n = PyArray_DIMS(%(x)s)[0];
        if (n > 1000) { PyErr_SetString(PyExc_ValueError, "too long"); %(fail)s; }
        Py_XDECREF(%(z)s);
        %(z)s = (PyArrayObject *) PyArray_SimpleNew(1, &n, NPY_DOUBLE);
        if (!%(z)s) %(fail)s;
        for (npy_intp i = 0; i < n; ++i)
            *(double *) PyArray_GETPTR1(%(z)s, i) =
                clamp(*(double *) PyArray_GETPTR1(%(x)s, i), %(low)s, %(high)s);
        """ % dict(locals(), fail=sub['fail'], low=repr(self.low), high=repr(self.high))

    def c_code_cache_version(self):
        return (2,)

    def grad(self, inputs, grads):
        inside = T.and_(inputs[0] > self.low, inputs[0] < self.high)
        return [grads[0] * inside]


@as_op(itypes=[T.dmatrix, T.lscalar], otypes=[T.dvector])
def column(a, k):
    return a[:, k].copy()


@local_optimizer([Polynomial])
def local_no_polynomial(node):
    """x -> 0 x^2 + 1 x + 0 is x."""
    if not isinstance(node.op, Polynomial):
        return False
    if node.op.coefficients == (0, 1, 0):
        return [node.inputs[0]]


theano.compile.optdb['canonicalize'].register('local_no_polynomial', local_no_polynomial,
                                              'fast_run', 'fast_compile')


class TestOps(utt.InferShapeTester):
    def setUp(self):
        super(TestOps, self).setUp()
        utt.seed_rng()
        self.rng = numpy.random.RandomState(utt.fetch_seed(42))

    def test_equality(self):
        assert Polynomial(1, 2) == Polynomial(1, 2) and Polynomial(1) != Polynomial(2)
        assert Clamp(0, 1) == Clamp(0., 1.) and hash(Clamp(0, 1)) == hash(Clamp(0, 1))

    def test_values_and_gradients(self):
        x = T.dvector('x')
        for op, expected in ((Polynomial(1, -2, 3), lambda v: v ** 2 - 2 * v + 3),
                             (Clamp(-.5, .5), lambda v: v.clip(-.5, .5))):
            value = self.rng.uniform(-1, 1, 5)
            utt.assert_allclose(theano.function([x], op(x))(value), expected(value))
            utt.verify_grad(op, [value])

    def test_shape(self):
        x = T.dmatrix()
        self._compile_and_check([x], [Polynomial(2)(x)], [self.rng.rand(3, 2)], Polynomial)

    def test_merged(self):
        x = T.dvector()
        f = theano.function([x], Polynomial(1, 1)(x) * Polynomial(1, 1)(x))
        assert sum(isinstance(n.op, Polynomial) for n in f.maker.fgraph.toposort()) == 1

    def test_wrong_gradient_is_found(self):
        class Wrong(Polynomial):
            def grad(self, inputs, grads):
                return [grads[0] * inputs[0]]
        self.assertRaises(T.verify_grad.E_grad, utt.verify_grad, Wrong(1, 1), [self.rng.rand(3)])


x, second = T.dvector("x"), T.constant(1, dtype="int64")
y = Polynomial(1, 2)(x)
print y.owner.op, y.type, y.owner.inputs, theano.printing.pp(y)
theano.printing.debugprint(Clamp(0, 1)(y))
f = theano.function([x], [y, Clamp(0, 10)(y), T.grad(Clamp(0, 10)(y).sum(), x)])
print [v.tolist() for v in f([-1, 0, 1, 3])]
print theano.function([x], T.Rop(y, x, x))([1, 2]), column(T.outer(x, x), second).eval({x: [2., 3.]})
g = theano.function([x], Polynomial(0, 1)(x) * 2)
print [isinstance(n.op, Polynomial) for n in g.maker.fgraph.toposort()], g([1.5])
for bad in (lambda: Clamp(0, 1)(T.dmatrix()), lambda: f(numpy.zeros(1001)), lambda: f([[1]]),
            lambda: T.grad(column(T.outer(x, x), second).sum(), x)):
    try:
        bad()
    except Exception, e:
        print type(e).__name__, str(e).splitlines()[0][:40] if isinstance(e, ValueError) else ''
for linker in ('py', 'c|py', 'vm', 'cvm'):
    print linker, theano.function([x], Clamp(0, 1)(x), mode=theano.Mode(linker))([-1, .5, 2]),
print
suite = unittest.TestLoader().loadTestsFromTestCase(TestOps)
result = unittest.TestResult()
suite.run(result)
print suite.countTestCases(), result.wasSuccessful(), [e[1] for e in result.errors + result.failures]
