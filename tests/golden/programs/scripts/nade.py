"""A neural autoregressive estimator of binary vectors, and a k-sparse autoencoder of the same."""
from __future__ import print_function

import numpy as np

import theano
import theano.tensor as T
from theano.tensor.shared_randomstreams import RandomStreams


class NADE(object):
    """Every bit given those before it: the activation grows by one row of W at a time."""

    def __init__(self, rng, n_visible, n_hidden):
        def shared(name, *shape):
            return theano.shared(np.asarray(0.2 * rng.randn(*shape), theano.config.floatX), name)

        self.W, self.V = shared('W', n_visible, n_hidden), shared('V', n_hidden, n_visible)
        self.b, self.c = shared('b', n_visible), shared('c', n_hidden)
        self.params = [self.W, self.V, self.b, self.c]
        v = T.matrix('v')
        a = T.alloc(self.c, v.shape[0], n_hidden)
        probabilities = []
        for i in range(n_visible):
            h = T.nnet.sigmoid(a)
            probabilities.append(T.nnet.sigmoid(T.dot(h, self.V[:, i]) + self.b[i]))
            a = a + T.outer(v[:, i], self.W[i])
        p = T.stack(probabilities).T
        self.v = v
        self.log_p = T.sum(v * T.log(p) + (1 - v) * T.log(1 - p), axis=1)
        self.cost = -T.mean(self.log_p)

    def sampler(self, n_samples, seed):
        srng = RandomStreams(seed)
        n_visible = self.b.get_value().shape[0]
        a = T.tile(self.c.dimshuffle('x', 0), (n_samples, 1))
        bits = []
        for i in range(n_visible):
            p = T.nnet.sigmoid(T.dot(T.nnet.sigmoid(a), self.V[:, i]) + self.b[i])
            bit = T.cast(srng.uniform((n_samples,)) < p, theano.config.floatX)
            bits.append(bit[:, None])
            a = a + bit[:, None] * self.W[i][None, :]
        return theano.function([], T.concatenate(bits, axis=1))


class KSparseAutoencoder(object):
    """Only the k largest hidden units of an example are kept."""

    def __init__(self, rng, n_visible, n_hidden, k):
        self.W = theano.shared(np.asarray(0.3 * rng.randn(n_visible, n_hidden),
                                          theano.config.floatX), 'W')
        self.b = theano.shared(np.zeros(n_visible, dtype=theano.config.floatX), 'b')
        self.params = [self.W, self.b]
        self.x = T.matrix('x')
        z = T.dot(self.x, self.W)
        threshold = T.sort(z, axis=1)[:, -k]
        self.kept = T.ge(z, threshold.dimshuffle(0, 'x'))
        self.code = z * self.kept
        out = T.dot(self.code, self.W.T) + self.b
        self.cost = T.mean(T.sum(T.sqr(out - self.x), axis=1))


def fit(model, input, data, n_steps, rate):
    grads = theano.grad(model.cost, model.params)
    step = theano.function([input], model.cost,
                           updates=[(p, p - rate * g) for p, g in zip(model.params, grads)])
    costs = [step(data) for _ in range(n_steps)]
    print('%s: %.5f to %.5f' % (model.__class__.__name__, costs[0], costs[-1]))
    return np.array(costs)


def main(n=40, n_visible=8, n_hidden=6, k=2, n_steps=12):
    rng = np.random.RandomState(29)
    prototypes = rng.uniform(size=(3, n_visible)) > 0.5
    data = np.logical_xor(prototypes[rng.randint(0, 3, n)],
                          rng.uniform(size=(n, n_visible)) < 0.1).astype(theano.config.floatX)
    nade = NADE(rng, n_visible, n_hidden)
    costs = fit(nade, nade.v, data, n_steps, 0.2)
    log_p = theano.function([nade.v], nade.log_p)
    sample = nade.sampler(5, 777)
    sparse = KSparseAutoencoder(rng, n_visible, n_hidden, k)
    sparse_costs = fit(sparse, sparse.x, data, n_steps, 0.02)
    code = theano.function([sparse.x], [sparse.code, T.sum(sparse.kept, axis=0)])
    return {'costs': costs, 'log_p': log_p(data[:6]), 'samples': [sample(), sample()],
            'params': [p.get_value() for p in nade.params],
            'sparse costs': sparse_costs, 'codes': code(data[:6])}


if __name__ == '__main__':
    main()
