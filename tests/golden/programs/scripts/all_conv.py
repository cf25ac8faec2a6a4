"""An all-convolutional net: strides for pooling, batch normalisation, a mean over places, Adam."""
from __future__ import print_function

from collections import OrderedDict

import numpy as np

import theano
import theano.tensor as T

from .pictures import digits


class Conv(object):
    """A convolution without bias, batch normalisation, a rectifier."""

    def __init__(self, rng, n_in, n_out, size, stride=1, last=False):
        W = rng.randn(n_out, n_in, size, size) * np.sqrt(2. / (n_in * size * size))
        self.W = theano.shared(W.astype(theano.config.floatX), name='W')
        ones = np.ones(n_out, dtype=theano.config.floatX)
        self.gamma, self.beta = theano.shared(ones, 'gamma'), theano.shared(0 * ones, 'beta')
        self.mean, self.var = theano.shared(0 * ones, 'mean'), theano.shared(ones, 'var')
        self.stride, self.last = (stride, stride), last
        self.params = [self.W, self.gamma, self.beta]
        self.updates = []

    def __call__(self, x, train):
        x = T.nnet.conv2d(x, self.W, border_mode='half', subsample=self.stride)
        gamma, beta, mean, var = [p.dimshuffle('x', 0, 'x', 'x') for p in
                                  (self.gamma, self.beta, self.mean, self.var)]
        if train:
            x, _, _, new_mean, new_var = T.nnet.bn.batch_normalization_train(
                x, gamma, beta, axes='spatial', running_average_factor=0.2,
                running_mean=mean, running_var=var)
            self.updates = [(self.mean, new_mean.flatten()), (self.var, new_var.flatten())]
        else:
            x = T.nnet.bn.batch_normalization_test(x, gamma, beta, mean, var, axes='spatial')
        return x if self.last else T.nnet.relu(x)


def adam(cost, params, learning_rate=0.01, b1=0.9, b2=0.999, e=1e-8):
    updates = OrderedDict()
    i = theano.shared(np.asarray(0., dtype=theano.config.floatX))
    i_t = i + 1.
    lr_t = learning_rate * T.sqrt(1. - b2 ** i_t) / (1. - b1 ** i_t)
    for p, g in zip(params, T.grad(cost, params)):
        m = theano.shared(p.get_value() * 0.)
        v = theano.shared(p.get_value() * 0.)
        updates[m] = b1 * m + (1. - b1) * g
        updates[v] = b2 * v + (1. - b2) * T.sqr(g)
        updates[p] = p - lr_t * updates[m] / (T.sqrt(updates[v]) + e)
    updates[i] = i_t
    return updates


def main(n=240, n_test=100, batch_size=24, n_epochs=6):
    rng = np.random.RandomState(99)
    images, labels = digits(n + n_test, rng, side=15, shift=0, noise=0.3)
    images = images[:, None].astype(theano.config.floatX)
    x, y = T.tensor4('x'), T.ivector('y')
    layers = [Conv(rng, 1, 8, 3), Conv(rng, 8, 12, 3, stride=2), Conv(rng, 12, 16, 3, stride=2),
              Conv(rng, 16, 16, 1), Conv(rng, 16, 10, 1, last=True)]

    def scores(train):
        out = x
        for layer in layers:
            out = layer(out, train)
        return out.mean(axis=(2, 3))

    params = [p for layer in layers for p in layer.params]
    cost = T.nnet.categorical_crossentropy(T.nnet.softmax(scores(True)), y).mean()
    updates = adam(cost, params)
    for layer in layers:
        updates.update(layer.updates)
    train = theano.function([x, y], cost, updates=updates)
    test = theano.function([x, y], T.eq(T.argmax(scores(False), axis=1), y).mean())
    costs = []
    for epoch in range(n_epochs):
        for i in range(0, n, batch_size):
            costs.append(train(images[i:i + batch_size], labels[i:i + batch_size]))
        accuracy = test(images[n:], labels[n:])
        print('epoch %d, cost %.3f, test accuracy %.2f' % (epoch, costs[-1], accuracy))
    return {'costs': np.array(costs), 'accuracy': accuracy,
            'moments': [[layer.mean.get_value(), layer.var.get_value()] for layer in layers]}


if __name__ == '__main__':
    main()
