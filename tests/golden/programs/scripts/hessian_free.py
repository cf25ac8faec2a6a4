"""Hessian-free training: conjugate gradients over products with the Gauss-Newton matrix."""
from __future__ import print_function

import numpy as np

import theano
import theano.tensor as T


class Network(object):
    """All the parameters are views of one vector."""

    def __init__(self, rng, sizes):
        shapes = [shape for n, m in zip(sizes, sizes[1:]) for shape in ((n, m), (m,))]
        total = sum(int(np.prod(shape)) for shape in shapes)
        theta = 0.3 * rng.randn(total)
        self.theta = theano.shared(np.asarray(theta, dtype=theano.config.floatX), name='theta')
        self.params, start = [], 0
        for shape in shapes:
            size = int(np.prod(shape))
            self.params.append(self.theta[start:start + size].reshape(shape))
            start += size

    def __call__(self, x):
        for k in range(0, len(self.params) - 2, 2):
            x = T.tanh(T.dot(x, self.params[k]) + self.params[k + 1])
        return T.dot(x, self.params[-2]) + self.params[-1]


class HessianFree(object):
    def __init__(self, net, x, y, n_classes):
        theta = net.theta
        s = net(x)
        # softmax by hand: its gradient has no R_op
        e = T.exp(s - T.max(s, axis=1, keepdims=True))
        p = e / T.sum(e, axis=1, keepdims=True)
        loss = -T.mean(T.log(T.sum(p * T.extra_ops.to_one_hot(y, n_classes), axis=1)))
        v = T.vector('v')
        damping = T.scalar('damping')
        # G v = J' H J v, J that of the scores, H that of the loss in them
        Jv = T.Rop(s, theta, v)
        HJv = T.grad(T.sum(T.grad(loss, s) * theano.gradient.disconnected_grad(Jv)), s,
                     consider_constant=[Jv])
        Gv = T.Lop(s, theta, HJv) + damping * v
        # the Hessian itself, both ways
        g = T.grad(loss, theta)
        Hv = T.grad(T.sum(g * v), theta)
        RHv = T.Rop(g, theta, v)
        self.theta = theta
        self.loss = theano.function([x, y], loss)
        self.gradient = theano.function([x, y], [loss, g])
        self.product = theano.function([x, y, v, damping], Gv, allow_input_downcast=True)
        self.hessian = theano.function([x, y, v], [Hv, RHv], allow_input_downcast=True)
        self.errors = theano.function([x, y], T.mean(T.neq(T.argmax(p, axis=1), y)))

    def cg(self, A, b, n_iter):
        x, r = np.zeros_like(b), b.copy()
        d, rr = r, np.dot(r, r)
        for _ in range(n_iter):
            Ad = A(d)
            alpha = rr / np.dot(d, Ad)
            x, r = x + alpha * d, r - alpha * Ad
            rr, old = np.dot(r, r), rr
            d = r + rr / old * d
        return x

    def step(self, data, labels, damping, n_iter):
        loss, g = self.gradient(data, labels)
        move = self.cg(lambda v: self.product(data, labels, v, damping), -g, n_iter)
        theta = self.theta.get_value()
        rate = 1.
        while True:
            self.theta.set_value((theta + rate * move).astype(theano.config.floatX))
            reached = self.loss(data, labels)
            if reached <= loss + 1e-2 * rate * np.dot(g, move) or rate < 1e-3:
                return loss, rate
            rate *= 0.5


def main(n=60, sizes=(4, 6, 3), n_steps=4, n_iter=5, damping=0.1):
    rng = np.random.RandomState(83)
    labels = rng.randint(0, sizes[-1], n).astype('int32')
    data = 2 * rng.randn(sizes[-1], sizes[0])[labels] + rng.randn(n, sizes[0])
    data = np.asarray(data, dtype=theano.config.floatX)
    net = Network(rng, sizes)
    trainer = HessianFree(net, T.matrix('x'), T.ivector('y'), sizes[-1])
    v = rng.randn(*net.theta.get_value().shape)
    products = trainer.hessian(data, labels, v)
    losses = []
    for i in range(n_steps):
        loss, rate = trainer.step(data, labels, damping, n_iter)
        print('step %d, loss %.5f, rate %.3f' % (i, loss, rate))
        losses.append(loss)
    return {'losses': np.array(losses), 'products': products, 'theta': net.theta.get_value(),
            'errors': trainer.errors(data, labels)}


if __name__ == '__main__':
    main()
