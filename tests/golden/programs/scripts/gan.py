"""A generative adversarial network of points in the plane."""
from __future__ import print_function

import numpy as np

import theano
import theano.tensor as T
from theano.sandbox.rng_mrg import MRG_RandomStreams


def sharedX(x, name=None):
    return theano.shared(theano._asarray(x, dtype=theano.config.floatX), name=name)


class Net(object):
    def __init__(self, rng, sizes, prefix):
        self.W = [sharedX(rng.normal(0, np.sqrt(2. / n), (n, m)), '%s_W%d' % (prefix, k))
                  for k, (n, m) in enumerate(zip(sizes, sizes[1:]))]
        self.b = [sharedX(np.zeros(m), '%s_b%d' % (prefix, k)) for k, m in enumerate(sizes[1:])]
        self.params = self.W + self.b

    def __call__(self, x):
        for W, b in zip(self.W[:-1], self.b[:-1]):
            h = T.dot(x, W) + b
            x = 0.6 * h + 0.4 * abs(h)
        return T.dot(x, self.W[-1]) + self.b[-1]


class Momentum(object):
    def __init__(self, lr, momentum, l2=1e-5):
        self.lr, self.momentum, self.l2 = lr, momentum, l2

    def __call__(self, params, cost):
        updates = []
        for p, g in zip(params, T.grad(cost, params)):
            m = theano.shared(p.get_value() * 0.)
            v = self.momentum * m - self.lr * (g + self.l2 * p)
            updates += [(m, v), (p, p + v)]
        return updates


def main(n_batch=24, n_noise=3, n_hidden=10, n_steps=10):
    rng = np.random.RandomState(64)
    srng = MRG_RandomStreams(seed=draw_seed(rng))
    generator = Net(rng, [n_noise, n_hidden, 2], 'gen')
    discriminator = Net(rng, [2, n_hidden, n_hidden, 1], 'disc')
    X = T.matrix('X')
    n = T.iscalar('n')
    lr = sharedX(0.05, 'lr')
    Z = srng.uniform((X.shape[0], n_noise), -1, 1)
    gX = generator(Z)
    p_real = T.nnet.sigmoid(discriminator(X))
    p_gen = T.nnet.sigmoid(discriminator(gX))
    bce = T.nnet.binary_crossentropy
    d_cost_real = bce(p_real, T.ones(p_real.shape)).mean()
    d_cost_gen = bce(p_gen, T.zeros(p_gen.shape)).mean()
    g_cost = bce(p_gen, T.ones_like(p_gen)).mean()
    d_cost = d_cost_real + d_cost_gen
    cost = [g_cost, d_cost, d_cost_real, d_cost_gen]
    updater = Momentum(lr, 0.5)
    _train_g = theano.function([X], cost, updates=updater(generator.params, g_cost))
    _train_d = theano.function([X], cost, updates=updater(discriminator.params, d_cost))
    sample = theano.function([n], generator(srng.normal((n, n_noise))))
    slope = theano.function([X], T.grad(T.sum(discriminator(X)), X))
    history = []
    for step in range(n_steps):
        angle = rng.uniform(0, 2 * np.pi, n_batch)
        points = np.stack([np.cos(angle), np.sin(angle)], axis=1) + 0.1 * rng.randn(n_batch, 2)
        train = _train_g if step % 2 else _train_d
        history.append(train(points.astype(theano.config.floatX)))
        if step % 5 == 4:
            lr.set_value((lr.get_value() * 0.9).astype(theano.config.floatX))
            print('step %d, generator %.5f, discriminator %.5f' % (
                step, history[-1][0], history[-1][1]))
    return {'history': np.array(history), 'samples': sample(5),
            'slope': slope(points[:4].astype(theano.config.floatX)),
            'params': [p.get_value() for p in generator.params + discriminator.params]}


def draw_seed(rng):
    return int(rng.randint(1, 2 ** 30))


if __name__ == '__main__':
    main()
