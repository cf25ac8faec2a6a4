"""Second derivatives: products with the Gauss-Newton matrix, conjugate gradients, R and L operators."""
import os
os.environ['THEANO_FLAGS'] = os.environ.get('THEANO_FLAGS', '') + ',floatX=float64'
import sys
import math
from itertools import izip

import numpy
import theano
import theano.tensor as T


def gauss_newton_product(cost, p, v, s):
    """Return the product of the Gauss-Newton matrix J'HJ of cost at s(p) by v."""
    Jv = T.Rop(s, p, v)
    HJv = T.grad(T.sum(T.grad(cost, s) * Jv), s, consider_constant=[Jv])
    return T.grad(T.sum(HJv * s), p, consider_constant=[HJv, Jv])


class HFOptimizer:
    def __init__(self, p, inputs, s, costs):
        self.p, self.shapes = p, [i.get_value().shape for i in p]
        self.sizes = map(numpy.prod, self.shapes)
        self.positions = numpy.cumsum([0] + self.sizes)[:-1]
        g = T.grad(costs[0], p)
        g = map(T.as_tensor_variable, g)
        self.f_gc = theano.function(inputs, g + costs, on_unused_input='ignore')
        self.f_cost = theano.function(inputs, costs, on_unused_input='ignore')
        symbolic_types = T.scalar, T.vector, T.matrix, T.tensor3, T.tensor4
        coefficient = T.scalar()
        v = [symbolic_types[len(i)]() for i in self.shapes]
        Gv = gauss_newton_product(costs[0], p, v, s)
        Gv = [a + coefficient * b for a, b in zip(Gv, v)]
        self.function_Gv = theano.function(inputs + v + [coefficient], Gv, givens={},
                                           on_unused_input='ignore')

    def flat(self, vs):
        return numpy.concatenate([numpy.asarray(v).ravel() for v in vs])

    def unflat(self, vector):
        return [vector[i:i + j].reshape(shape)
                for i, j, shape in izip(self.positions, self.sizes, self.shapes)]

    def cg(self, b, inputs, lambda_, x=None, limit=30):
        def product(v):
            return self.flat(self.function_Gv(*(inputs + self.unflat(v) + [lambda_])))
        x = numpy.zeros_like(b) if x is None else x
        r = b - product(x)
        d, rr = r.copy(), numpy.dot(r, r)
        for i in range(limit):
            Ad = product(d)
            step = rr / numpy.dot(d, Ad)
            x = x + step * d
            r = r - step * Ad
            rr, old = numpy.dot(r, r), rr
            if math.sqrt(rr) < 1e-3 * math.sqrt(numpy.dot(b, b)):
                break
            d = r + rr / old * d
        return i + 1, x

    def train(self, inputs, updates=5, lambda_=1.):
        for u in xrange(1, updates + 1):
            out = self.f_gc(*inputs)
            gradient, before = self.flat(out[:len(self.p)]), out[len(self.p):]
            n, step = self.cg(-gradient, inputs, lambda_)
            params = [p.get_value() for p in self.p]
            for p, value, delta in zip(self.p, params, self.unflat(step)):
                p.set_value(value + delta)
            after = self.f_cost(*inputs)
            curved = self.flat(self.function_Gv(*(inputs + self.unflat(step) + [0.])))
            model = numpy.dot(gradient, step) + .5 * numpy.dot(step, curved)
            rho = (after[0] - before[0]) / model
            if rho < 0.25: lambda_ *= 1.5
            elif rho > 0.75: lambda_ /= 1.5
            print 'update %d/%d, cost=%.5f, errors=%.3f, cg=%d, rho=%.3f, lambda=%.4f' % (
                u, updates, after[0], after[1], n, rho, lambda_)
            sys.stdout.flush()


def example_mlp():
    rng = numpy.random.RandomState(5)
    x = rng.normal(size=(80, 2))
    targets = numpy.eye(2)[((x ** 2).sum(1) > 1.2).astype(int)]
    p, inputs, sizes = [], T.matrix('x'), [2, 8, 2]
    for n_in, n_out, k in zip(sizes[:-1], sizes[1:], range(2)):
        p += [theano.shared(rng.normal(0, 1. / math.sqrt(n_in), (n_in, n_out)), name='W%d' % k),
              theano.shared(numpy.zeros(n_out), name='b%d' % k)]
    t = T.matrix('t')
    s = T.dot(T.tanh(T.dot(inputs, p[0]) + p[1]), p[2]) + p[3]
    y = T.nnet.softmax(s)
    c = (-t * T.log(y)).sum(axis=1).mean()
    errors = T.mean(T.cast(T.neq(T.argmax(s, axis=1), T.argmax(t, axis=1)), 'float64'))
    HFOptimizer(p, [inputs, t], s, [c, errors]).train([x, targets], 8)


def operators():
    W, x, v, u = T.dmatrix('W'), T.dvector('x'), T.dmatrix('v'), T.dvector('u')
    y = T.dot(x, W)
    I = numpy.eye(2)
    print T.Rop(y, W, v).eval({x: [1, 2], v: I, W: I}),
    print T.Lop(y, W, u).eval({x: [1, 2], u: [3, 4]}).tolist()
    cost = T.sum(T.sin(x) * x ** 2) + x[0] * x[1]
    H = theano.gradient.hessian(cost, x)
    gx = T.grad(cost, x)
    f = theano.function([x, u], [H, T.dot(H, u), T.Rop(gx, x, u), T.grad(T.sum(gx * u), x)])
    H, a, b, c = f([.5, 1.5], [1., -2.])
    print numpy.round(H, 5).tolist(), numpy.allclose(a, b), numpy.allclose(b, c)
    print theano.gradient.jacobian(T.exp(x) * x.sum(), x).eval({x: [0., 1.]}).round(4).tolist()
    z = x ** 2
    print theano.function([x, u], T.grad(None, x, known_grads={z: u}))([1, 2], [5, 7]),
    print theano.gradient.disconnected_grad(z).sum().eval({x: [1, 2]}),
    print T.grad(x.sum(), [x, u], disconnected_inputs='ignore')[1].eval({u: [1, 2]})
    clipped = theano.gradient.grad_clip(x, -1, 1)
    print T.grad((clipped ** 2).sum(), x).eval({x: [.2, 4.]}), \
        T.grad(theano.gradient.grad_scale(x, .5).sum(), x).eval({x: [1.]})
    next_grad = theano.gradient.subgraph_grad([x], [z], start={z: T.ones_like(z)})
    print [[g.eval({x: [1, 2]}).tolist() for g in part] for part in next_grad]
    try:
        T.grad(T.argmax(x).astype('float64'), x)
        print 'zero'
    except Exception, e:
        print e.__class__.__name__
    for tolerance in 1e-2, 1e-9:
        try:
            T.verify_grad(lambda a: T.sum(a ** 3) / 3, [numpy.array([.3, 2.])], abs_tol=tolerance,
                          rel_tol=tolerance, rng=numpy.random.RandomState(1))
            print 'verified',
        except T.verify_grad.E_grad, e:
            print 'too exact',
    print


example_mlp()
operators()
