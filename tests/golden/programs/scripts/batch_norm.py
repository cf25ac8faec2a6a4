"""A perceptron with batch normalisation, trained by Adam; running moments serve at test time."""
from __future__ import print_function

from collections import OrderedDict

import numpy as np

import theano
import theano.tensor as T
from theano.tensor.nnet.bn import batch_normalization


class BatchNormLayer(object):
    def __init__(self, n, momentum=0.9, epsilon=1e-4):
        def shared(value, name):
            return theano.shared(np.asarray(value, dtype=theano.config.floatX), name=name)

        self.gamma, self.beta = shared(np.ones(n), 'gamma'), shared(np.zeros(n), 'beta')
        self.mean, self.var = shared(np.zeros(n), 'mean'), shared(np.ones(n), 'var')
        self.momentum, self.epsilon = momentum, epsilon
        self.params = [self.gamma, self.beta]
        self.updates = []

    def __call__(self, x, train):
        if not train:
            return batch_normalization(x, self.gamma, self.beta, self.mean,
                                       T.sqrt(self.var + self.epsilon))
        mean, var = x.mean(axis=0), x.var(axis=0)
        m = self.momentum
        self.updates = [(self.mean, m * self.mean + (1 - m) * mean),
                        (self.var, m * self.var + (1 - m) * var)]
        return (x - mean) / T.sqrt(var + self.epsilon) * self.gamma + self.beta


class Dense(object):
    def __init__(self, rng, n_in, n_out, bias=False):
        W = rng.randn(n_in, n_out) * np.sqrt(2. / n_in)
        self.W = theano.shared(W.astype(theano.config.floatX), name='W')
        self.params = [self.W]
        self.b = None
        if bias:
            self.b = theano.shared(np.zeros(n_out).astype(theano.config.floatX), name='b')
            self.params.append(self.b)

    def __call__(self, x, train):
        out = T.dot(x, self.W)
        return out if self.b is None else out + self.b


def rectify(x, train):
    return T.nnet.relu(x, alpha=0.1)


def adam(cost, params, learning_rate=0.02, beta1=0.9, beta2=0.999, epsilon=1e-8):
    all_grads = theano.grad(cost, params)
    t_prev = theano.shared(np.asarray(0., dtype=theano.config.floatX))
    updates = OrderedDict()
    one = T.constant(1)
    t = t_prev + 1
    a_t = learning_rate * T.sqrt(one - beta2 ** t) / (one - beta1 ** t)
    for param, g_t in zip(params, all_grads):
        value = param.get_value(borrow=True)
        m_prev = theano.shared(np.zeros(value.shape, dtype=value.dtype),
                               broadcastable=param.broadcastable)
        v_prev = theano.shared(np.zeros(value.shape, dtype=value.dtype),
                               broadcastable=param.broadcastable)
        m_t = beta1 * m_prev + (one - beta1) * g_t
        v_t = beta2 * v_prev + (one - beta2) * g_t ** 2
        step = a_t * m_t / (T.sqrt(v_t) + epsilon)
        updates[m_prev] = m_t
        updates[v_prev] = v_t
        updates[param] = param - step
    updates[t_prev] = t
    return updates


def main(n=96, n_in=6, n_hidden=8, n_out=3, batch_size=24, n_epochs=4):
    rng = np.random.RandomState(77)
    labels = rng.randint(0, n_out, n).astype('int32')
    data = 1.5 * rng.randn(n_out, n_in)[labels] + rng.randn(n, n_in) + 5
    data = np.asarray(data, dtype=theano.config.floatX)
    x, y = T.matrix('x'), T.ivector('y')
    layers = [Dense(rng, n_in, n_hidden), BatchNormLayer(n_hidden), rectify,
              Dense(rng, n_hidden, n_hidden), BatchNormLayer(n_hidden), rectify,
              Dense(rng, n_hidden, n_out, bias=True)]

    def probabilities(train):
        out = x
        for layer in layers:
            out = layer(out, train)
        return T.nnet.softmax(out)

    params = [p for layer in layers if hasattr(layer, 'params') for p in layer.params]
    cost = T.nnet.categorical_crossentropy(probabilities(True), y).mean()
    updates = adam(cost, params)
    for layer in layers:
        updates.update(getattr(layer, 'updates', ()))
    train = theano.function([x, y], cost, updates=updates)
    p = probabilities(False)
    test = theano.function(
        [x, y], [T.nnet.categorical_crossentropy(p, y).mean(), T.neq(p.argmax(1), y).sum()])
    costs, tested = [], []
    for epoch in range(n_epochs):
        for i in range(0, n, batch_size):
            costs.append(train(data[i:i + batch_size], labels[i:i + batch_size]))
        tested.append(test(data, labels))
        print('epoch %d, cost %.5f, test cost %.5f, %d errors' % (
            epoch, costs[-1], tested[-1][0], tested[-1][1]))
    return {'costs': np.array(costs), 'tested': tested,
            'params': [p.get_value() for p in params],
            'moments': [[layer.mean.get_value(), layer.var.get_value()]
                        for layer in layers if isinstance(layer, BatchNormLayer)]}


if __name__ == '__main__':
    main()
