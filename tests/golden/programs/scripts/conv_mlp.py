"""A convolutional network of 2013, by the names that convolution and pooling had then."""
from __future__ import print_function

import numpy as np

import theano
import theano.tensor as T
from theano.tensor.nnet import conv

from .pictures import stripes

try:
    from theano.tensor.signal.downsample import max_pool_2d
except ImportError:  # Theano 1.0 has only the new name
    from theano.tensor.signal.pool import pool_2d as max_pool_2d


class ConvPoolLayer(object):
    def __init__(self, rng, input, filter_shape, image_shape, poolsize=(2, 2)):
        fan_in = np.prod(filter_shape[1:])
        W = rng.randn(*filter_shape) * np.sqrt(2. / fan_in)
        self.W = theano.shared(np.asarray(W, dtype=theano.config.floatX), borrow=True)
        self.b = theano.shared(np.zeros(filter_shape[0], dtype=theano.config.floatX), borrow=True)
        conv_out = conv.conv2d(input=input, filters=self.W, filter_shape=filter_shape,
                               image_shape=image_shape)
        pooled_out = max_pool_2d(input=conv_out, ds=poolsize, ignore_border=True)
        self.output = T.maximum(0, pooled_out + self.b.dimshuffle('x', 0, 'x', 'x'))
        self.params = [self.W, self.b]


def main(n_train=240, n_valid=60, n_test=60, batch_size=20, nkerns=(4, 6), n_epochs=12,
         learning_rate=0.05, patience=60):
    rng = np.random.RandomState(1234)
    images, labels = stripes(n_train + n_valid + n_test, rng)

    def shared_dataset(first, last):
        data_x = theano.shared(np.asarray(images[first:last].reshape(last - first, -1),
                                          dtype=theano.config.floatX), borrow=True)
        data_y = theano.shared(np.asarray(labels[first:last], dtype=theano.config.floatX),
                               borrow=True)
        return data_x, T.cast(data_y, 'int32')

    train = shared_dataset(0, n_train)
    valid = shared_dataset(n_train, n_train + n_valid)
    test = shared_dataset(n_train + n_valid, n_train + n_valid + n_test)
    index = T.lscalar('index')
    x, y = T.matrix('x'), T.ivector('y')
    layer0 = ConvPoolLayer(rng, x.reshape((batch_size, 1, 12, 12)), (nkerns[0], 1, 3, 3),
                           (batch_size, 1, 12, 12))
    layer1 = ConvPoolLayer(rng, layer0.output, (nkerns[1], nkerns[0], 2, 2),
                           (batch_size, nkerns[0], 5, 5))
    n_in = nkerns[1] * 2 * 2
    W = theano.shared(np.zeros((n_in, 4), dtype=theano.config.floatX), borrow=True)
    b = theano.shared(np.zeros(4, dtype=theano.config.floatX), borrow=True)
    p_y_given_x = T.nnet.softmax(T.dot(layer1.output.flatten(2), W) + b)
    params = [W, b] + layer1.params + layer0.params
    L2 = sum((p ** 2).sum() for p in params)
    cost = -T.mean(T.log(p_y_given_x)[T.arange(y.shape[0]), y]) + 0.001 * L2
    errors = T.mean(T.neq(T.argmax(p_y_given_x, axis=1), y))

    def givens(dataset):
        return {x: dataset[0][index * batch_size:(index + 1) * batch_size],
                y: dataset[1][index * batch_size:(index + 1) * batch_size]}

    test_model = theano.function([index], errors, givens=givens(test))
    validate_model = theano.function([index], errors, givens=givens(valid))
    grads = T.grad(cost, params)
    updates = [(p, p - learning_rate * g) for p, g in zip(params, grads)]
    train_model = theano.function([index], cost, updates=updates, givens=givens(train))

    best_validation_loss, test_score, n_batches = np.inf, 0., n_train // batch_size
    costs, epoch, done_looping = [], 0, False
    while epoch < n_epochs and not done_looping:
        epoch += 1
        for minibatch_index in range(n_batches):
            iteration = (epoch - 1) * n_batches + minibatch_index
            costs.append(train_model(minibatch_index))
            if patience <= iteration:
                done_looping = True
                break
        loss = np.mean([validate_model(i) for i in range(n_valid // batch_size)])
        print('epoch %i, validation error %f %%' % (epoch, loss * 100.))
        if loss < best_validation_loss:
            if loss < best_validation_loss * 0.995:
                patience = max(patience, iteration * 2)
            best_validation_loss = loss
            test_score = np.mean([test_model(i) for i in range(n_test // batch_size)])
            print('     test error of best model %f %%' % (test_score * 100.))
    return {'costs': np.array(costs), 'accuracy': 1 - test_score, 'patience': patience,
            'filters': layer0.W.get_value()}


if __name__ == '__main__':
    main()
