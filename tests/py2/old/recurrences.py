# -*- coding: latin-1 -*-
"""Loops: an Elman network with truncated gradients, taps, map, reduce, folds, and loops that end."""
import numpy as np
import theano
import theano.tensor as T
try:
    from theano.compat.python2x import OrderedDict
except ImportError:
    from collections import OrderedDict


class Elman(object):
    """Predicts the next value of a signal; its gradient goes back a few steps."""

    def __init__(self, nin, n, nout, truncate, activation=T.tanh, seed=3):
        rng = np.random.RandomState(seed)
        self.W_uh, self.W_hh, self.W_hy = [
            theano.shared(np.asarray(rng.uniform(-.4, .4, size), 'float64'), name=name)
            for size, name in zip([(nin, n), (n, n), (n, nout)], 'W_uh W_hh W_hy'.split())]
        self.h0, self.b_h, self.b_y = (theano.shared(np.zeros(k), name=s) for k, s in
                                       ((n, 'h0'), (n, 'b_h'), (nout, 'b_y')))
        self.params = [v for k, v in sorted(self.__dict__.items())]
        self.activation, self.truncate = activation, truncate

    def __call__(self, u):
        def step(u_t, h_tm1, W_uh, W_hh, W_hy, b_h, b_y):
            h_t = self.activation(T.dot(u_t, W_uh) + T.dot(h_tm1, W_hh) + b_h)
            return h_t, T.dot(h_t, W_hy) + b_y
        [h, y], _ = theano.scan(
            step, sequences=u, outputs_info=[self.h0, None], strict=True,
            non_sequences=[self.W_uh, self.W_hh, self.W_hy, self.b_h, self.b_y],
            truncate_gradient=self.truncate)
        return h, y


u, target, lr = T.matrix('u'), T.matrix('target'), T.scalar('lr')
signal = np.sin(np.arange(31) * .7) * np.cos(np.arange(31) * .2)
for truncate in (-1, 4, 1):
    net = Elman(1, 7, 1, truncate)
    h, y = net(u)
    error = ((y - target) ** 2).sum()
    gparams = T.grad(error, net.params)
    norm = T.sqrt(sum([T.sqr(g).sum() for g in gparams]))
    rate = lr * T.minimum(1, 2 / norm)
    updates = OrderedDict([(p, p - rate * g) for p, g in zip(net.params, gparams)])
    train = theano.function([u, target, lr], [error, norm], updates=updates)
    print 'truncate', truncate, '%.4f %.4f' % tuple(train(signal[:-1, None], signal[1:, None], 0.)),
    for t in xrange(40):
        e, n = train(signal[:-1, None], signal[1:, None], .005)
    print '-> %.4f' % e

zero, one = map(T.as_tensor_variable, np.eye(2)[0, ::-1])

# several taps, forwards and backwards
x = T.dvector('x')
out, _ = theano.scan(lambda a, b, p, q: p * q + a - b,
                     sequences=dict(input=x, taps=[-1, 1]),
                     outputs_info=dict(initial=T.as_tensor_variable([1., .5, 2.]), taps=[-3, -1]))
print 'taps', theano.function([x], out)(np.arange(6.) / 4)
back, _ = theano.scan(fn=lambda a, s: a + s / 2, sequences=x, outputs_info=zero,
                      go_backwards=True)
print 'backwards', theano.function([x], [back, T.grad(back[-1], x)])([1, 2, 3])

# what is built on loops
print 'map', theano.map(lambda a, b: T.sqrt(a) + b, [x], [one])[0].eval({x: [4., 9.]})
print 'reduce', theano.reduce(lambda a, s: s * a + 1, x, zero)[0].eval({x: [1., 2., 3.]})
fl = theano.foldl(lambda a, s: s / a, x, T.constant(np.float64(64)))[0]
fr = theano.foldr(lambda a, s: a - s, x, zero)[0]
print 'folds', theano.function([x], [fl, fr])([2., 4., 8.])

# the number of steps is known at the call; the loop ends by itself
k = T.iscalar('k')
A = T.vector('A')
power, updates = theano.scan(lambda prior, A: prior * A, outputs_info=T.ones_like(A),
                             non_sequences=A, n_steps=k)
f = theano.function([A, k], power[-1], updates=updates)
print 'power', f(range(4), 3), f([.5], 2)


def doubles(previous, limit):
    return previous * 2, theano.scan_module.until(previous * 2 > limit)


limit = T.dscalar('limit')
values, _ = theano.scan(doubles, outputs_info=T.constant(1.), non_sequences=limit, n_steps=1024)
print 'until', theano.function([limit], [values.shape[0], values[-1]])(45.)

# updates of shared variables within the loop, and a counter of them
count = theano.shared(0, name='count')
srng = T.shared_randomstreams.RandomStreams(234)
draws, updates = theano.scan(lambda: (srng.uniform((2,)).sum(), {count: count + 1}), n_steps=5)
g = theano.function([], draws, updates=updates)
h = theano.function([], draws, no_default_updates=True)
print 'draws', np.round(g(), 4), np.round(g(), 4)[:2], count.get_value(), (h() == h()).all()

# jacobians by loops, and two levels
W = T.matrix('W')
z = T.tanh(T.dot(W, x))
J, updates = theano.scan(lambda i, z, x: T.grad(z[i], x), sequences=T.arange(z.shape[0]),
                         non_sequences=[z, x])
jacobian = theano.function([W, x], [J - theano.gradient.jacobian(z, x), J])
difference, J = jacobian(np.eye(2, 3) + .5, [.1, -.2, .3])
print 'jacobian', abs(difference).max() < 1e-12, np.round(J, 4).tolist()
outer, _ = theano.scan(
    lambda row: theano.scan(lambda e, acc: acc + e ** 2, row, zero)[0][-1], W)
print 'rows', outer.eval({W: np.arange(6.).reshape(2, 3)})
coefficients, point = T.vector('c'), T.scalar('p')
terms, _ = theano.scan(lambda c, power, p: c * p ** power, outputs_info=None, strict=False,
                       sequences=[coefficients, T.arange(1000)], non_sequences=point)
polynomial = theano.function([coefficients, point], terms.sum())
print 'polynomial', polynomial(np.asarray([1, 0, 2], dtype='float64'), 3)
try:
    theano.function([x], theano.scan(lambda a, s: T.outer(a + s, s), x, zero)[0])
except (TypeError, ValueError), e:
    print 'refused', type(e).__name__
