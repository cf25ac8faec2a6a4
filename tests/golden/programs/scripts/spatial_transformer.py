"""A spatial transformer: a network learns where to look, through bilinear sampling."""
from __future__ import print_function

import numpy as np

import theano
import theano.tensor as T
from theano.tensor.signal.pool import pool_2d

from .pictures import digits


def _linspace(start, stop, num):
    # Theano has no linspace
    start = T.cast(start, theano.config.floatX)
    stop = T.cast(stop, theano.config.floatX)
    num = T.cast(num, theano.config.floatX)
    step = (stop - start) / (num - 1)
    return T.arange(num, dtype=theano.config.floatX) * step + start


def _meshgrid(height, width):
    """Return a (3, height * width) matrix of x, y and 1, from -1 to 1."""
    x_t = T.dot(T.ones((height, 1)), _linspace(-1.0, 1.0, width).dimshuffle('x', 0))
    y_t = T.dot(_linspace(-1.0, 1.0, height).dimshuffle(0, 'x'), T.ones((1, width)))
    ones = T.ones_like(x_t).reshape((1, -1))
    return T.concatenate([x_t.reshape((1, -1)), y_t.reshape((1, -1)), ones], axis=0)


def _interpolate(im, x, y, out_height, out_width):
    # input shape: [n_batch, height, width, channels]
    num_batch, height, width, channels = im.shape
    height_f = T.cast(height, theano.config.floatX)
    width_f = T.cast(width, theano.config.floatX)
    # clip coordinates to [-1, 1], scale them from [-1, 1] to [0, width/height - 1]
    x = (T.clip(x, -1, 1) + 1) / 2 * (width_f - 1)
    y = (T.clip(y, -1, 1) + 1) / 2 * (height_f - 1)
    # indices of the 2x2 pixel neighborhood surrounding the coordinates
    x0_f, y0_f = T.floor(x), T.floor(y)
    x1_f, y1_f = x0_f + 1, y0_f + 1
    # 4D tensors of indices may not be differentiated; the last pixel is its own neighbour
    x0, y0 = T.cast(x0_f, 'int64'), T.cast(y0_f, 'int64')
    x1 = T.cast(T.minimum(x1_f, width_f - 1), 'int64')
    y1 = T.cast(T.minimum(y1_f, height_f - 1), 'int64')
    # the images lie behind one another
    dim2, dim1 = width, width * height
    base = T.repeat(T.arange(num_batch, dtype='int64') * dim1, out_height * out_width)
    base_y0, base_y1 = base + y0 * dim2, base + y1 * dim2
    im_flat = im.reshape((-1, channels))
    Ia, Ib = im_flat[base_y0 + x0], im_flat[base_y1 + x0]
    Ic, Id = im_flat[base_y0 + x1], im_flat[base_y1 + x1]
    wa = ((x1_f - x) * (y1_f - y)).dimshuffle(0, 'x')
    wb = ((x1_f - x) * (1. - (y1_f - y))).dimshuffle(0, 'x')
    wc = ((1. - (x1_f - x)) * (y1_f - y)).dimshuffle(0, 'x')
    wd = ((1. - (x1_f - x)) * (1. - (y1_f - y))).dimshuffle(0, 'x')
    return T.sum([wa * Ia, wb * Ib, wc * Ic, wd * Id], axis=0)


def transform_affine(theta, input, downsample_factor):
    num_batch, num_channels, height, width = input.shape
    theta = T.reshape(theta, (-1, 2, 3))
    out_height = T.cast(height // downsample_factor[0], 'int64')
    out_width = T.cast(width // downsample_factor[1], 'int64')
    grid = _meshgrid(out_height, out_width)
    # transform A x (x_t, y_t, 1)^T -> (x_s, y_s)
    T_g = T.dot(theta, grid)
    x_s_flat, y_s_flat = T_g[:, 0].flatten(), T_g[:, 1].flatten()
    # dimshuffle input to (bs, height, width, channels)
    input_dim = input.dimshuffle(0, 2, 3, 1)
    sampled = _interpolate(input_dim, x_s_flat, y_s_flat, out_height, out_width)
    output = T.reshape(sampled, (num_batch, out_height, out_width, num_channels))
    return output.dimshuffle(0, 3, 1, 2)


def shared(value, name=None):
    return theano.shared(np.asarray(value, dtype=theano.config.floatX), name=name)


def main(n=400, n_test=100, side=14, n_classes=3, batch_size=20, n_epochs=12, learning_rate=0.01):
    rng = np.random.RandomState(4)
    images, labels = digits(n + n_test, rng, side=side, scale=1, noise=0.05, n_classes=n_classes)
    images = images[:, None].astype(theano.config.floatX)
    x, y = T.tensor4('x'), T.ivector('y')

    # localisation network: a convolution, a mean over places weighted by what it finds
    W_loc = shared(0.3 * rng.randn(4, 1, 5, 5))
    V_loc = shared(0.1 * rng.randn(4 * 5 * 5, 6))
    b_loc = shared([0.5, 0, 0, 0, 0.5, 0], 'identity')
    h = T.nnet.relu(T.nnet.conv2d(x, W_loc))
    h = pool_2d(h, (2, 2), ignore_border=True, mode='average_exc_pad')
    theta = T.dot(h.flatten(2), V_loc) * 0.1 + b_loc
    seen = transform_affine(theta, x, (2, 2))
    # classifier of what is seen
    W = shared(0.1 * rng.randn((side // 2) ** 2, 20))
    b = shared(np.zeros(20))
    V, c = shared(0.1 * rng.randn(20, n_classes)), shared(np.zeros(n_classes))
    p = T.nnet.softmax(T.dot(T.nnet.relu(T.dot(seen.flatten(2), W) + b), V) + c)
    params = [W_loc, V_loc, b_loc, W, b, V, c]
    cost = T.nnet.categorical_crossentropy(p, y).mean()

    updates = []
    for param, g in zip(params, T.grad(cost, params)):
        acc = shared(np.zeros_like(param.get_value()))
        acc_new = 0.9 * acc + 0.1 * g ** 2
        updates += [(acc, acc_new), (param, param - learning_rate * g / T.sqrt(acc_new + 1e-4))]
    train = theano.function([x, y], cost, updates=updates)
    test = theano.function([x, y], T.eq(T.argmax(p, axis=1), y).mean())
    look = theano.function([x], [theta, seen])
    # the identity and a transform that is known
    A = T.matrix('A')
    warp = theano.function([x, A], transform_affine(A, x, (1, 1)))
    half = np.array([[0.5, 0, 0.25, 0, 0.5, -0.25]]).astype(theano.config.floatX)
    same = np.array([[1, 0, 0, 0, 1, 0]]).astype(theano.config.floatX)
    warped, unchanged = warp(images[:1], half), warp(images[:1], same)
    costs = []
    for epoch in range(n_epochs):
        for i in range(0, n, batch_size):
            costs.append(train(images[i:i + batch_size], labels[i:i + batch_size]))
        if epoch % 3 == 2:
            print('epoch %d, cost %.3f' % (epoch + 1, costs[-1]))
    thetas, windows = look(images[:3])
    return {'costs': np.array(costs), 'accuracy': test(images[n:], labels[n:]),
            'warped': warped, 'off': abs(unchanged - images[:1]).max(), 'thetas': thetas,
            'windows': windows}


if __name__ == '__main__':
    main()
