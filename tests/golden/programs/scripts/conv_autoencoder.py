"""A convolutional autoencoder: strides down, transposed convolutions up, tied weights on top."""
from __future__ import print_function

import numpy as np

import theano
import theano.tensor as T
from theano.tensor.nnet import conv2d_transpose
from theano.tensor.nnet.abstract_conv import conv2d_grad_wrt_inputs

from .pictures import digits


def weights(rng, *shape):
    W = rng.randn(*shape) * np.sqrt(1. / np.prod(shape[1:]))
    return theano.shared(W.astype(theano.config.floatX))


def zeros(n):
    return theano.shared(np.zeros(n, dtype=theano.config.floatX))


def on_maps(b):
    return b.dimshuffle('x', 0, 'x', 'x')


def rmsprop(cost, params, lr=0.01, rho=0.9, epsilon=1e-6):
    updates = []
    for p, g in zip(params, T.grad(cost=cost, wrt=params)):
        acc = theano.shared(p.get_value() * 0.)
        acc_new = rho * acc + (1 - rho) * g ** 2
        updates += [(acc, acc_new), (p, p - lr * g / T.sqrt(acc_new + epsilon))]
    return updates


def main(n=120, side=16, batch_size=20, n_maps=(6, 8), n_code=24, n_epochs=16):
    rng = np.random.RandomState(7)
    images, _ = digits(n, rng, side=side, n_classes=4, shift=0, noise=0.05)
    images = images[:, None].astype(theano.config.floatX)
    x = T.tensor4('x')
    W1, b1 = weights(rng, n_maps[0], 1, 4, 4), zeros(n_maps[0])
    W2, b2 = weights(rng, n_maps[1], n_maps[0], 3, 3), zeros(n_maps[1])
    W3, b3 = weights(rng, n_code, n_maps[1], 4, 4), zeros(n_code)
    W4, c3 = weights(rng, n_code, n_maps[1], 4, 4), zeros(n_maps[1])
    W5, c2 = weights(rng, n_maps[1], n_maps[0], 4, 4), zeros(n_maps[0])
    c1 = zeros(1)
    params = [W1, b1, W2, b2, W3, b3, W4, c3, W5, c2, c1]

    h1 = T.nnet.elu(T.nnet.conv2d(x, W1, border_mode=(1, 1), subsample=(2, 2)) + on_maps(b1))
    h2 = T.nnet.elu(T.nnet.conv2d(h1, W2, border_mode='half', subsample=(2, 2)) + on_maps(b2))
    code = T.nnet.conv2d(h2, W3) + on_maps(b3)
    u2 = T.nnet.elu(conv2d_transpose(code, W4, output_shape=(None, n_maps[1], 4, 4)) + on_maps(c3))
    u1 = T.nnet.elu(conv2d_transpose(u2, W5, output_shape=(None, n_maps[0], side // 2, side // 2),
                                     border_mode=(1, 1), input_dilation=(2, 2)) + on_maps(c2))
    # the last layer has the weights of the first
    out = conv2d_grad_wrt_inputs(u1, W1, input_shape=(None, 1, x.shape[2], x.shape[3]),
                                 border_mode=(1, 1), subsample=(2, 2)) + on_maps(c1)
    cost = T.mean(T.sqr(out - x))
    train = theano.function([x], cost, updates=rmsprop(cost, params))
    reconstruct = theano.function([x], [out, code.flatten(2)])
    costs = []
    for epoch in range(n_epochs):
        for i in range(0, n, batch_size):
            costs.append(train(images[i:i + batch_size]))
        if epoch % 4 == 3:
            print('epoch %d, cost %.4f' % (epoch + 1, costs[-1]))
    made, codes = reconstruct(images[:5])
    residual = reconstruct(images)[0] - images
    return {'costs': np.array(costs), 'codes': codes, 'made': made[0],
            'explained': 1 - residual.var() / images.var()}


if __name__ == '__main__':
    main()
