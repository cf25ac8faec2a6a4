"""Ops with C code: a maxout layer with its gradient, and a scalar activation, in a network."""
from __future__ import print_function

import numpy as np

import theano
import theano.tensor as T
from theano import Apply, Op, scalar


class MaxoutGrad(Op):
    """Gives every output's gradient to the piece that was the largest."""
    __props__ = ()

    def make_node(self, x, which, gz):
        return Apply(self, [x, which, gz], [x.type()])

    def perform(self, node, inputs, output_storage):
        x, which, gz = inputs
        gx = np.zeros_like(x)
        rows, units = np.indices(which.shape)
        gx[rows, units, which] = gz
        output_storage[0][0] = gx

    def infer_shape(self, node, shapes):
        return [shapes[0]]

    def c_code(self, node, name, inp, out, sub):
        x, which, gz = inp
        gx, = out
        fail = sub['fail']
        return """
        Py_XDECREF(%(gx)s);
        %(gx)s = (PyArrayObject*)PyArray_ZEROS(3, PyArray_DIMS(%(x)s),
                                               PyArray_TYPE(%(x)s), 0);
        if (!%(gx)s) { %(fail)s; }
        for (npy_intp i = 0; i < PyArray_DIMS(%(x)s)[0]; i++) {
            for (npy_intp j = 0; j < PyArray_DIMS(%(x)s)[1]; j++) {
                npy_int64 k = *(npy_int64*)PyArray_GETPTR2(%(which)s, i, j);
                *(dtype_%(gx)s*)PyArray_GETPTR3(%(gx)s, i, j, k) =
                    *(dtype_%(gz)s*)PyArray_GETPTR2(%(gz)s, i, j);
            }
        }
        """ % locals()

    def c_code_cache_version(self):
        return (1,)


class Maxout(Op):
    """(batch, units, pieces) to the largest piece of every unit, and which it is."""

    def __eq__(self, other):
        return type(self) == type(other)

    def __hash__(self):
        return hash(type(self))

    def __str__(self):
        return self.__class__.__name__

    def make_node(self, x):
        x = T.as_tensor_variable(x)
        if x.ndim != 3:
            raise TypeError('Maxout needs (batch, units, pieces)', x.type)
        return Apply(self, [x], [T.matrix(dtype=x.dtype), T.lmatrix()])

    def perform(self, node, inputs, output_storage):
        x, = inputs
        output_storage[0][0] = x.max(axis=2)
        output_storage[1][0] = x.argmax(axis=2)

    def infer_shape(self, node, shapes):
        return [shapes[0][:2], shapes[0][:2]]

    def connection_pattern(self, node):
        return [[True, False]]

    def grad(self, inputs, gradients):
        which = self(*inputs)[1]
        return [MaxoutGrad()(inputs[0], which, gradients[0])]

    def c_headers(self):
        return ['<limits>']

    def c_code(self, node, name, inp, out, sub):
        x, = inp
        z, which = out
        fail = sub['fail']
        return """
        if (!%(z)s || PyArray_DIMS(%(z)s)[0] != PyArray_DIMS(%(x)s)[0]
            || PyArray_DIMS(%(z)s)[1] != PyArray_DIMS(%(x)s)[1]) {
            Py_XDECREF(%(z)s);
            %(z)s = (PyArrayObject*)PyArray_SimpleNew(2, PyArray_DIMS(%(x)s),
                                                      PyArray_TYPE(%(x)s));
            if (!%(z)s) { %(fail)s; }
        }
        if (!%(which)s || PyArray_DIMS(%(which)s)[0] != PyArray_DIMS(%(x)s)[0]
            || PyArray_DIMS(%(which)s)[1] != PyArray_DIMS(%(x)s)[1]) {
            Py_XDECREF(%(which)s);
            %(which)s = (PyArrayObject*)PyArray_SimpleNew(2, PyArray_DIMS(%(x)s), NPY_INT64);
            if (!%(which)s) { %(fail)s; }
        }
        if (PyArray_DIMS(%(x)s)[2] == 0) {
            PyErr_SetString(PyExc_ValueError, "Maxout needs a piece");
            %(fail)s;
        }
        for (npy_intp i = 0; i < PyArray_DIMS(%(x)s)[0]; i++) {
            for (npy_intp j = 0; j < PyArray_DIMS(%(x)s)[1]; j++) {
                dtype_%(x)s best = -std::numeric_limits<dtype_%(x)s>::infinity();
                npy_int64 at = 0;
                for (npy_intp k = 0; k < PyArray_DIMS(%(x)s)[2]; k++) {
                    dtype_%(x)s v = *(dtype_%(x)s*)PyArray_GETPTR3(%(x)s, i, j, k);
                    if (v > best) { best = v; at = k; }
                }
                *(dtype_%(z)s*)PyArray_GETPTR2(%(z)s, i, j) = best;
                *(npy_int64*)PyArray_GETPTR2(%(which)s, i, j) = at;
            }
        }
        """ % locals()

    def c_code_cache_version(self):
        return (2,)


class Bent(scalar.UnaryScalarOp):
    """(sqrt(x^2 + 1) - 1) / 2 + x"""

    def impl(self, x):
        return (np.sqrt(x * x + 1) - 1) / 2 + x

    def grad(self, inputs, gradients):
        x, = inputs
        gz, = gradients
        return [gz * (x / (2 * scalar.sqrt(x * x + 1)) + 1)]

    def c_code(self, node, name, inputs, outputs, sub):
        x, = inputs
        z, = outputs
        return "%(z)s = (sqrt(%(x)s * %(x)s + 1) - 1) / 2 + %(x)s;" % locals()


bent = T.Elemwise(Bent(scalar.upgrade_to_float, name='bent'), name='bent')


def main(n=60, n_in=4, n_hidden=6, pieces=3, n_steps=12, rate=0.05):
    rng = np.random.RandomState(31)
    data = np.asarray(rng.randn(n, n_in), dtype=theano.config.floatX)
    target = np.asarray(np.abs(data).sum(axis=1), dtype=theano.config.floatX)
    x, y = T.matrix('x'), T.vector('y')
    W = theano.shared(np.asarray(0.3 * rng.randn(n_in, n_hidden * pieces), theano.config.floatX))
    b = theano.shared(np.zeros(n_hidden * pieces, dtype=theano.config.floatX))
    v = theano.shared(np.asarray(0.3 * rng.randn(n_hidden), dtype=theano.config.floatX))
    params = [W, b, v]
    hidden, which = Maxout()((T.dot(x, W) + b).reshape((x.shape[0], n_hidden, pieces)))
    cost = T.mean(T.sqr(T.dot(bent(hidden), v) - y))
    grads = T.grad(cost, params)
    train = theano.function([x, y], cost, updates=[(p, p - rate * g)
                                                   for p, g in zip(params, grads)])
    used = theano.function([x], [which, hidden.shape])
    costs = [train(data, target) for _ in range(n_steps)]
    print('cost %.5f to %.5f' % (costs[0], costs[-1]))
    which, shape = used(data[:7])
    if theano.config.floatX == 'float64':
        T.verify_grad(lambda a: Maxout()(a)[0], [rng.randn(2, 3, 2)], rng=rng)
        T.verify_grad(bent, [rng.randn(2, 3)], rng=rng)
    return {'costs': np.array(costs), 'params': [p.get_value() for p in params],
            'which': which, 'shape': shape}


if __name__ == '__main__':
    main()
