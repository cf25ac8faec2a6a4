"""The parts of AlexNet: groups, local response normalisation, pooling that overlaps, dropout."""
from __future__ import print_function

import numpy as np

import theano
import theano.tensor as T
from theano.sandbox.rng_mrg import MRG_RandomStreams
from theano.tensor.signal import pool

from .pictures import stripes


class CrossChannelNormalization(object):
    """Squares of neighbouring maps, added up in an array with room at both ends."""

    def __init__(self, alpha=1e-2, k=2, beta=0.75, n=5):
        self.alpha, self.k, self.beta, self.n = alpha, k, beta, n

    def __call__(self, bc01):
        half = self.n // 2
        sq = T.sqr(bc01)
        b, ch, r, c = bc01.shape
        extra_channels = T.alloc(np.asarray(0., dtype=theano.config.floatX), b, ch + 2 * half,
                                 r, c)
        sq = T.set_subtensor(extra_channels[:, half:half + ch, :, :], sq)
        scale = self.k
        for i in range(self.n):
            scale += self.alpha * sq[:, i:i + ch, :, :]
        scale = scale ** self.beta
        return bc01 / scale


class ConvPoolLayer(object):
    def __init__(self, rng, input, n_in, n_out, size, group=1, stride=1, pad=0, poolsize=None,
                 lrn=False):
        def weight(*shape):
            W = rng.randn(*shape) * np.sqrt(2. / np.prod(shape[1:]))
            return theano.shared(W.astype(theano.config.floatX))

        def bias(k):
            return theano.shared(np.zeros(k, dtype=theano.config.floatX))

        if group == 1:
            W, b = weight(n_out, n_in, size, size), bias(n_out)
            out = T.nnet.conv2d(input, W, border_mode=(pad, pad), subsample=(stride, stride))
            out = out + b.dimshuffle('x', 0, 'x', 'x')
            self.params = [W, b]
        else:
            # two halves of the channels, as on two cards
            halves, self.params = [], []
            for g in range(2):
                W, b = weight(n_out // 2, n_in // 2, size, size), bias(n_out // 2)
                part = input[:, g * n_in // 2:(g + 1) * n_in // 2]
                halves.append(T.nnet.conv2d(part, W, border_mode=(pad, pad),
                                            subsample=(stride, stride))
                              + b.dimshuffle('x', 0, 'x', 'x'))
                self.params += [W, b]
            out = T.concatenate(halves, axis=1)
        out = T.nnet.relu(out)
        if poolsize is not None:
            out = pool.pool_2d(out, ws=(poolsize, poolsize), stride=(2, 2), ignore_border=True)
        if lrn:
            out = CrossChannelNormalization()(out)
        self.output = out


class FCLayer(object):
    def __init__(self, rng, input, n_in, n_out):
        W = (rng.randn(n_in, n_out) * np.sqrt(2. / n_in)).astype(theano.config.floatX)
        self.W = theano.shared(W)
        self.b = theano.shared(np.zeros(n_out, dtype=theano.config.floatX))
        self.params = [self.W, self.b]
        self.output = T.dot(input, self.W) + self.b


def dropout(input, train, srng, p=0.25):
    mask = srng.binomial(n=1, p=1 - p, size=input.shape, dtype=theano.config.floatX)
    return T.switch(T.neq(train, 0), input * mask, input * (1 - p))


def main(n=240, n_test=80, side=21, batch_size=24, n_epochs=7, eta=0.003, weight_decay=0.0005):
    rng = np.random.RandomState(8)
    images, labels = stripes(n + n_test, rng, side=side, n_classes=6, noise=0.8)
    images = images[:, None].astype(theano.config.floatX)
    mean = images[:n].mean(axis=0)
    images = images - mean
    x, y, train_flag = T.tensor4('x'), T.ivector('y'), T.iscalar('train')
    srng = MRG_RandomStreams(234)
    conv1 = ConvPoolLayer(rng, x, 1, 8, 5, stride=2, pad=2, poolsize=3, lrn=True)
    conv2 = ConvPoolLayer(rng, conv1.output, 8, 12, 3, group=2, pad=1, lrn=True)
    conv3 = ConvPoolLayer(rng, conv2.output, 12, 12, 3, group=2, pad=1, poolsize=3)
    fc4 = FCLayer(rng, conv3.output.flatten(2), 12 * 2 * 2, 24)
    fc5 = FCLayer(rng, dropout(T.nnet.relu(fc4.output), train_flag, srng), 24, 6)
    params = conv1.params + conv2.params + conv3.params + fc4.params + fc5.params
    p_y = T.nnet.softmax(fc5.output)
    cost = T.nnet.categorical_crossentropy(p_y, y).mean()
    lr = theano.shared(np.asarray(eta, dtype=theano.config.floatX))
    updates = []
    for param, grad in zip(params, T.grad(cost, params)):
        vel = theano.shared(param.get_value() * 0.)
        if param.ndim > 1:
            grad = grad + weight_decay * param
        v_next = 0.9 * vel - lr * 10 * grad
        updates += [(vel, v_next), (param, param + v_next)]
    train = theano.function([x, y], cost, updates=updates,
                            givens=[(train_flag, np.asarray(1, 'int32'))])
    top_k = T.any(T.eq(T.argsort(p_y, axis=1)[:, -2:], y.dimshuffle(0, 'x')), axis=1).mean()
    test = theano.function([x, y], [T.eq(T.argmax(p_y, axis=1), y).mean(), top_k],
                           givens=[(train_flag, np.asarray(0, 'int32'))])
    costs = []
    for epoch in range(n_epochs):
        for i in range(0, n, batch_size):
            costs.append(train(images[i:i + batch_size], labels[i:i + batch_size]))
        top1, top2 = test(images[n:], labels[n:])
        print('epoch %d, cost %.2f, top-1 %.2f, top-2 %.2f' % (epoch, costs[-1], top1, top2))
        if epoch == 4:
            lr.set_value(np.asarray(lr.get_value() / 3, dtype=theano.config.floatX))
    return {'costs': np.array(costs), 'accuracy': top1, 'top2': top2}


if __name__ == '__main__':
    main()
