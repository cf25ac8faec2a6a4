"""A network of 3d convolutions tells in which direction a spot of a film moves."""
from __future__ import print_function

import numpy as np

import theano
import theano.tensor as T
from theano.tensor.nnet import conv3d
from theano.tensor.signal.pool import pool_3d

from .pictures import films


def main(n=400, n_test=60, batch_size=20, n_maps=(6, 8), n_epochs=6, learning_rate=0.02):
    rng = np.random.RandomState(18)
    floatX = theano.config.floatX
    data, labels = films(n + n_test, rng)
    # (batch, channel, time, rows, columns)
    data = data[:, None].astype(floatX)

    def shared(*shape):
        W = rng.randn(*shape) * np.sqrt(2. / np.prod(shape[1:] if len(shape) > 2 else shape[0]))
        return theano.shared(W.astype(floatX))

    x = T.TensorType(floatX, (False,) * 5)('x')
    y = T.ivector('y')
    W1, W2, W3 = shared(n_maps[0], 1, 2, 3, 3), shared(n_maps[1], n_maps[0], 2, 2, 2), shared(
        n_maps[1] * 2 * 3 * 3, 4)
    b1, b2, b3 = [theano.shared(np.zeros(k, dtype=floatX)) for k in (n_maps[0], n_maps[1], 4)]
    h = T.nnet.relu(conv3d(x, W1, border_mode=(0, 1, 1), input_shape=(None, 1, 6, 8, 8),
                           filter_shape=(n_maps[0], 1, 2, 3, 3))
                    + b1.dimshuffle('x', 0, 'x', 'x', 'x'))
    h = pool_3d(h, (1, 2, 2), ignore_border=True)
    h = T.nnet.relu(conv3d(h, W2, subsample=(2, 1, 1), filter_dilation=(1, 1, 1))
                    + b2.dimshuffle('x', 0, 'x', 'x', 'x'))
    p = T.nnet.softmax(T.dot(h.flatten(2), W3) + b3)
    params = [W1, b1, W2, b2, W3, b3]
    cost = T.nnet.categorical_crossentropy(p, y).mean()
    updates = []
    for param, g in zip(params, T.grad(cost, params)):
        m, v = theano.shared(param.get_value() * 0), theano.shared(param.get_value() * 0)
        m_t, v_t = 0.9 * m + 0.1 * g, 0.99 * v + 0.01 * g ** 2
        updates += [(m, m_t), (v, v_t), (param, param - learning_rate * m_t / T.sqrt(v_t + 1e-5))]
    train = theano.function([x, y], cost, updates=updates)
    test = theano.function([x, y], T.eq(T.argmax(p, axis=1), y).mean())
    # the pooled film, with windows that reach beyond its end
    pooled = theano.function([x], pool_3d(x, (4, 3, 3), ignore_border=False, mode='sum'))
    costs = []
    for epoch in range(n_epochs):
        for i in range(0, n, batch_size):
            costs.append(train(data[i:i + batch_size], labels[i:i + batch_size]))
        if epoch % 2 == 1:
            print('epoch %d, cost %.3f' % (epoch + 1, costs[-1]))
    return {'costs': np.array(costs), 'accuracy': test(data[n:], labels[n:]),
            'pooled': pooled(data[:1])[0, 0], 'filters': W1.get_value()}


if __name__ == '__main__':
    main()
