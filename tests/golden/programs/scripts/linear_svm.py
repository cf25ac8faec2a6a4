"""Linear support vector machines: Pegasos for two classes, Crammer and Singer for more."""
from __future__ import print_function

import numpy as np

import theano
import theano.tensor as T


class BinarySVM(object):
    """Hinge loss, the rate of Pegasos, and a projection onto a ball."""

    def __init__(self, n_in, lam=0.01):
        self.w = theano.shared(np.zeros(n_in, dtype=theano.config.floatX), name='w')
        self.b = theano.shared(np.asarray(0., dtype=theano.config.floatX), name='b')
        self.t = theano.shared(np.asarray(1, dtype='int64'), name='t')
        x, y = T.matrix('x'), T.vector('y')
        scores = T.dot(x, self.w) + self.b
        hinge = T.mean(T.maximum(0, 1 - y * scores))
        cost = hinge + 0.5 * lam * T.dot(self.w, self.w)
        gw, gb = T.grad(cost, [self.w, self.b])
        rate = T.cast(1. / (lam * (self.t + 10)), theano.config.floatX)
        w_new = self.w - rate * gw
        radius = T.cast(1. / np.sqrt(lam), theano.config.floatX)
        scale = T.minimum(1., radius / T.sqrt(T.sum(T.sqr(w_new))))
        self.train = theano.function(
            [x, y], [cost, hinge],
            updates=[(self.w, scale * w_new), (self.b, self.b - rate * gb),
                     (self.t, self.t + 1)])
        margin = y * scores
        self.support = theano.function([x, y], T.nonzero(T.le(margin, 1))[0])
        self.accuracy = theano.function([x, y], T.mean(T.eq(T.sgn(scores), y)))


class SVMLayer(object):
    """One-vs-all squared hinge loss or the multi-class margin, as the top of a network."""

    def __init__(self, input, n_in, n_out, rng):
        self.W = theano.shared(np.asarray(0.1 * rng.randn(n_in, n_out), theano.config.floatX),
                               name='W', borrow=True)
        self.b = theano.shared(np.zeros((n_out,), theano.config.floatX), name='b', borrow=True)
        self.output = T.dot(input, self.W) + self.b
        self.y_pred = T.argmax(self.output, axis=1)
        self.n_out = n_out
        self.params = [self.W, self.b]

    def ova_svm_cost(self, y):
        y1 = -1 * T.ones((y.shape[0], self.n_out), dtype=theano.config.floatX)
        y1 = T.set_subtensor(y1[T.arange(y.shape[0]), y], 1)
        margin = T.maximum(0, 1 - y1 * self.output)
        return T.sqr(margin).mean()

    def crammer_singer_cost(self, y):
        rows = T.arange(y.shape[0])
        correct = self.output[rows, y]
        others = T.set_subtensor((self.output + 1)[rows, y], correct)
        return T.mean(T.max(others, axis=1) - correct)

    def errors(self, y):
        return T.mean(T.neq(self.y_pred, y))


def train_layer(cost_name, data, labels, n_out, n_epochs, batch_size, rate=0.1):
    rng = np.random.RandomState(9)
    x, y = T.matrix('x'), T.ivector('y')
    layer = SVMLayer(x, data.shape[1], n_out, rng)
    cost = getattr(layer, cost_name)(y) + 0.001 * T.sum(layer.W ** 2)
    updates = [(p, p - rate * g) for p, g in zip(layer.params, T.grad(cost, layer.params))]
    train = theano.function([x, y], cost, updates=updates)
    test = theano.function([x, y], layer.errors(y))
    costs = [train(data[i:i + batch_size], labels[i:i + batch_size])
             for _ in range(n_epochs) for i in range(0, len(data), batch_size)]
    print('%s: errors %.3f' % (cost_name, test(data, labels)))
    return {'costs': np.array(costs), 'W': layer.W.get_value(), 'b': layer.b.get_value()}


def main(n=120, n_in=5, n_out=4, n_epochs=4, batch_size=20):
    rng = np.random.RandomState(8)
    labels = rng.randint(0, n_out, n).astype('int32')
    data = 2 * rng.randn(n_out, n_in)[labels] + rng.randn(n, n_in)
    data = np.asarray(data, dtype=theano.config.floatX)
    signs = np.asarray(np.where(labels < 2, -1, 1), dtype=theano.config.floatX)
    svm = BinarySVM(n_in)
    costs = [svm.train(data[i:i + batch_size], signs[i:i + batch_size])
             for _ in range(n_epochs) for i in range(0, n, batch_size)]
    print('accuracy %.3f' % svm.accuracy(data, signs))
    results = {'pegasos': {'costs': np.array(costs), 'w': svm.w.get_value(),
                           'b': svm.b.get_value(), 't': svm.t.get_value(),
                           'support': svm.support(data, signs)}}
    for name in ('ova_svm_cost', 'crammer_singer_cost'):
        results[name] = train_layer(name, data, labels, n_out, n_epochs, batch_size)
    return results


if __name__ == '__main__':
    main()
