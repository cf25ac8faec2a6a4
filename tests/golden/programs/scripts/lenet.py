"""LeNet on digits: two layers of convolution and max pooling below a perceptron, by momentum."""
from __future__ import print_function

import numpy as np

import theano
import theano.tensor as T
from theano.tensor.nnet import conv2d
from theano.tensor.signal import pool

from .pictures import digits


class LeNetConvPoolLayer(object):
    def __init__(self, rng, input, filter_shape, image_shape, poolsize=(2, 2)):
        assert image_shape[1] == filter_shape[1]
        fan_in = np.prod(filter_shape[1:])
        fan_out = filter_shape[0] * np.prod(filter_shape[2:]) // np.prod(poolsize)
        W_bound = np.sqrt(6. / (fan_in + fan_out))
        self.W = theano.shared(
            np.asarray(rng.uniform(low=-W_bound, high=W_bound, size=filter_shape),
                       dtype=theano.config.floatX), borrow=True)
        b_values = np.zeros((filter_shape[0],), dtype=theano.config.floatX)
        self.b = theano.shared(value=b_values, borrow=True)
        conv_out = conv2d(input=input, filters=self.W, filter_shape=filter_shape,
                          input_shape=image_shape)
        pooled_out = pool.pool_2d(input=conv_out, ws=poolsize, ignore_border=True)
        # one bias a map, the same for all examples and places
        self.output = T.tanh(pooled_out + self.b.dimshuffle('x', 0, 'x', 'x'))
        self.params = [self.W, self.b]


class Dense(object):
    def __init__(self, rng, input, n_in, n_out, activation):
        bound = np.sqrt(6. / (n_in + n_out))
        W = rng.uniform(-bound, bound, (n_in, n_out)).astype(theano.config.floatX)
        self.W = theano.shared(W, borrow=True)
        self.b = theano.shared(np.zeros(n_out, dtype=theano.config.floatX), borrow=True)
        self.output = activation(T.dot(input, self.W) + self.b)
        self.params = [self.W, self.b]


def main(n=300, batch_size=20, nkerns=(6, 10), n_hidden=40, n_epochs=6, learning_rate=0.05,
         momentum=0.9):
    rng = np.random.RandomState(23455)
    images, labels = digits(n + 100, rng, shift=1)

    def shared(values):
        return theano.shared(np.asarray(values, dtype=theano.config.floatX), borrow=True)

    train_x, train_y = shared(images[:n].reshape(n, -1)), T.cast(shared(labels[:n]), 'int32')
    test_x, test_y = shared(images[n:].reshape(100, -1)), T.cast(shared(labels[n:]), 'int32')

    index = T.lscalar()
    x, y = T.matrix('x'), T.ivector('y')
    layer0_input = x.reshape((batch_size, 1, 16, 16))
    layer0 = LeNetConvPoolLayer(rng, layer0_input, (nkerns[0], 1, 5, 5), (batch_size, 1, 16, 16))
    layer1 = LeNetConvPoolLayer(rng, layer0.output, (nkerns[1], nkerns[0], 3, 3),
                                (batch_size, nkerns[0], 6, 6))
    layer2 = Dense(rng, layer1.output.flatten(2), nkerns[1] * 2 * 2, n_hidden, T.tanh)
    layer3 = Dense(rng, layer2.output, n_hidden, 10, T.nnet.softmax)
    cost = -T.mean(T.log(layer3.output)[T.arange(y.shape[0]), y])
    errors = T.mean(T.neq(T.argmax(layer3.output, axis=1), y))

    params = layer3.params + layer2.params + layer1.params + layer0.params
    updates = []
    for param, grad in zip(params, T.grad(cost, params)):
        velocity = theano.shared(np.zeros_like(param.get_value()))
        step = momentum * velocity - learning_rate * grad
        updates += [(velocity, step), (param, param + step)]
    rows = slice(index * batch_size, (index + 1) * batch_size)
    train_model = theano.function([index], cost, updates=updates,
                                  givens={x: train_x[rows], y: train_y[rows]})
    test_model = theano.function([index], errors, givens={x: test_x[rows], y: test_y[rows]})
    costs = []
    for epoch in range(n_epochs):
        costs += [train_model(i) for i in range(n // batch_size)]
        test_error = np.mean([test_model(i) for i in range(100 // batch_size)])
        print('epoch %d, cost %.3f, test error %.0f %%' % (epoch + 1, costs[-1],
                                                           100 * test_error))
    return {'costs': np.array(costs), 'accuracy': 1 - test_error,
            'filters': layer0.W.get_value()}


if __name__ == '__main__':
    main()
