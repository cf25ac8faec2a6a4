"""A U-Net: down by pooling, up by repeating and by transposed convolutions, joined across."""
from __future__ import print_function

import numpy as np

import theano
import theano.tensor as T
from theano.tensor.extra_ops import repeat
from theano.tensor.signal.pool import pool_2d

from .pictures import blobs


class UNet(object):
    def __init__(self, rng):
        self.rng, self.params = rng, []

    def shared(self, *shape):
        scale = np.sqrt(2. / np.prod(shape[1:]))
        W = theano.shared((scale * self.rng.randn(*shape)).astype(theano.config.floatX))
        b = theano.shared(np.zeros(shape[0], dtype=theano.config.floatX))
        self.params += [W, b]
        return W, b.dimshuffle('x', 0, 'x', 'x')

    def conv(self, x, n_in, n_out, size=3, relu=True):
        W, b = self.shared(n_out, n_in, size, size)
        out = T.nnet.conv2d(x, W, border_mode='half', filter_flip=False) + b
        return T.nnet.relu(out, 0.1) if relu else out

    def deconv(self, x, n_in, n_out, shape):
        W, _ = self.shared(n_in, n_out, 2, 2)
        self.params.pop()
        return T.nnet.conv2d_transpose(x, W, output_shape=shape, input_dilation=(2, 2))

    def __call__(self, x):
        batch, _, height, width = x.shape
        d1 = self.conv(self.conv(x, 1, 6), 6, 6)
        d2 = self.conv(pool_2d(d1, (2, 2), ignore_border=True), 6, 10)
        bottom = self.conv(pool_2d(d2, (2, 2), ignore_border=True), 10, 12)
        up2 = repeat(repeat(bottom, 2, axis=2), 2, axis=3)
        u2 = self.conv(T.concatenate([d2, up2], axis=1), 22, 10)
        up1 = self.deconv(u2, 10, 6, (None, 6, height, width))
        # what is at the border is left out, and filled up again
        cropped = T.concatenate([d1, up1], axis=1)[:, :, 1:-1, 1:-1]
        u1 = self.conv(cropped, 12, 6)
        scores = self.conv(u1, 6, 2, size=1, relu=False)
        padded = T.zeros((batch, 2, height, width), dtype=theano.config.floatX)
        return T.set_subtensor(padded[:, :, 1:-1, 1:-1], scores)


def main(n=120, n_test=30, batch_size=5, n_epochs=12, learning_rate=0.02):
    rng = np.random.RandomState(44)
    images, masks = blobs(n + n_test, rng)
    images = images[:, None].astype(theano.config.floatX)
    net = UNet(rng)
    x, y = T.tensor4('x'), T.itensor3('y')
    scores = net(x)
    # softmax over channels, one row a pixel
    flat = scores.dimshuffle(0, 2, 3, 1).reshape((-1, 2))
    p = T.nnet.softmax(flat)
    weights = 1. +  T.cast(y.flatten(), theano.config.floatX)
    cost = (T.nnet.categorical_crossentropy(p, y.flatten()) * weights).mean()
    updates = []
    for param, g in zip(net.params, T.grad(cost, net.params)):
        acc = theano.shared(param.get_value() * 0)
        acc_new = 0.9 * acc + 0.1 * T.sqr(g)
        updates += [(acc, acc_new), (param, param - learning_rate * g / T.sqrt(acc_new + 1e-4))]
    train = theano.function([x, y], cost, updates=updates)
    found = T.argmax(scores, axis=1)
    overlap = T.and_(found, y).sum() / T.cast(T.or_(found, y).sum(), theano.config.floatX)
    test = theano.function([x, y], overlap)
    costs = []
    for epoch in range(n_epochs):
        for i in range(0, n, batch_size):
            costs.append(train(images[i:i + batch_size], masks[i:i + batch_size]))
        if epoch % 6 == 5:
            print('epoch %d, cost %.3f, overlap %.2f' % (
                epoch + 1, costs[-1], test(images[n:], masks[n:])))
    return {'costs': np.array(costs), 'overlap': test(images[n:], masks[n:])}


if __name__ == '__main__':
    main()
