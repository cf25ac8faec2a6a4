"""Texture by Gram matrices of what random filters see: noise becomes like an image of stripes."""
from __future__ import print_function

import numpy as np

import theano
import theano.tensor as T
from theano.tensor.signal.pool import pool_2d

from .pictures import stripes


def gram_matrix(x):
    x = x.flatten(ndim=3)
    return T.tensordot(x, x, axes=([2], [2])).dimshuffle(0, 2, 1, 3)[0, 0]


def content_loss(P, X, layer):
    return 0.5 * T.sum((X[layer] - P[layer]) ** 2)


def style_loss(A, X, layer):
    a, x = A[layer], X[layer]
    A, G = gram_matrix(a), gram_matrix(x)
    N, M = a.shape[1], a.shape[2] * a.shape[3]
    return 1. / (4 * N ** 2 * M ** 2) * ((G - A) ** 2).sum()


def total_variation_loss(x):
    return (((x[:, :, :-1, :-1] - x[:, :, 1:, :-1]) ** 2
             + (x[:, :, :-1, :-1] - x[:, :, :-1, 1:]) ** 2) ** 1.25).sum()


def main(side=20, n_steps=150):
    rng = np.random.RandomState(31)
    floatX = theano.config.floatX

    def filters(n_out, n_in, size):
        W = rng.randn(n_out, n_in, size, size) * np.sqrt(2. / (n_in * size * size))
        return theano.shared(W.astype(floatX))

    W1, W2, W3 = filters(8, 1, 3), filters(12, 8, 3), filters(12, 12, 3)

    def features(x):
        h1 = T.nnet.relu(T.nnet.conv2d(x, W1, border_mode=1, filter_flip=False))
        h2 = T.nnet.relu(T.nnet.conv2d(h1, W2, border_mode=1, filter_flip=False))
        pooled = pool_2d(h2, (2, 2), ignore_border=True, mode='average_exc_pad')
        h3 = T.nnet.relu(T.nnet.conv2d(pooled, W3, border_mode='half', filter_flip=False))
        return {'conv1': h1, 'conv2': h2, 'conv3': h3}

    art = stripes(3, rng, side=side, noise=0.1)[0][1][None, None].astype(floatX)
    photo = np.zeros((1, 1, side, side), dtype=floatX)
    photo[:, :, 5:15, 5:15] = 1
    input_im_theano = T.tensor4()
    compute = theano.function([input_im_theano], list(features(input_im_theano).values()))
    names = list(features(input_im_theano))
    photo_features = {k: theano.shared(v) for k, v in zip(names, compute(photo))}
    art_features = {k: theano.shared(v) for k, v in zip(names, compute(art))}

    generated_image = theano.shared(rng.uniform(-0.5, 0.5, photo.shape).astype(floatX))
    gen_features = features(generated_image)
    style = sum(style_loss(art_features, gen_features, k) for k in names)
    losses = [100. * style, 1e-3 * content_loss(photo_features, gen_features, 'conv3'),
              1e-4 * total_variation_loss(generated_image)]
    total_loss = sum(losses)
    grad = T.grad(total_loss, generated_image)
    m, v, t = [theano.shared(z) for z in (photo * 0, photo * 0, np.asarray(0, dtype=floatX))]
    m_t, v_t = 0.9 * m + 0.1 * grad, 0.99 * v + 0.01 * grad ** 2
    rate = 0.05 * T.sqrt(1 - 0.99 ** (t + 1)) / (1 - 0.9 ** (t + 1))
    step = theano.function([], [total_loss, style], updates=[
        (m, m_t), (v, v_t), (t, t + 1),
        (generated_image, generated_image - rate * m_t / (T.sqrt(v_t) + 1e-8))])
    f_loss = theano.function([], losses)
    f_grad = theano.function([], grad)
    first_grad = f_grad()
    history = []
    for i in range(n_steps):
        history.append(step())
        if i % 50 == 0:
            print('step %d, loss %.3f' % (i, history[-1][0]))
    print('loss %.3f, of which style %.3f' % (sum(f_loss()), f_loss()[0]))
    history = np.array(history)
    return {'history': history, 'first_grad': first_grad,
            'left': history[-1, 1] / history[0, 1],
            'generated': generated_image.get_value()[0, 0, :4]}


if __name__ == '__main__':
    main()
