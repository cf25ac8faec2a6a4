"""A convolutional restricted Boltzmann machine of binary images, by contrastive divergence."""
from __future__ import print_function

import numpy as np

import theano
import theano.tensor as T
from theano.tensor.nnet import conv2d
from theano.tensor.shared_randomstreams import RandomStreams

from .pictures import digits


class ConvRBM(object):
    def __init__(self, rng, n_maps=8, size=4, sparsity=0.08):
        floatX = theano.config.floatX
        self.W = theano.shared((0.05 * rng.randn(n_maps, 1, size, size)).astype(floatX), 'W')
        self.hbias = theano.shared(-2 * np.ones(n_maps, dtype=floatX), 'hbias')
        self.vbias = theano.shared(np.asarray(-1., dtype=floatX), 'vbias')
        self.sparsity = sparsity
        self.theano_rng = RandomStreams(rng.randint(2 ** 30))
        self.params = [self.W, self.hbias, self.vbias]

    def activation(self, v):
        return conv2d(v, self.W, filter_flip=False) + self.hbias.dimshuffle('x', 0, 'x', 'x')

    def prop_down(self, h):
        # every hidden unit writes its filter
        W = self.W.dimshuffle(1, 0, 2, 3)
        return T.nnet.sigmoid(conv2d(h, W, border_mode='full') + self.vbias)

    def free_energy(self, v):
        hidden = T.nnet.softplus(self.activation(v)).sum(axis=(1, 2, 3))
        return -self.vbias * v.sum(axis=(1, 2, 3)) - hidden

    def gibbs(self, v):
        p_h = T.nnet.sigmoid(self.activation(v))
        h = self.theano_rng.binomial(size=p_h.shape, n=1, p=p_h, dtype=theano.config.floatX)
        p_v = self.prop_down(h)
        return p_v, self.theano_rng.binomial(size=p_v.shape, n=1, p=p_v,
                                             dtype=theano.config.floatX)

    def cost_updates(self, v, lr):
        p_v, chain_end = self.gibbs(v)
        cost = T.mean(self.free_energy(v)) - T.mean(self.free_energy(chain_end))
        gparams = T.grad(cost, self.params, consider_constant=[chain_end])
        updates = [(p, p - lr * g) for p, g in zip(self.params, gparams)]
        # the mean activity moves towards the sparsity
        active = T.nnet.sigmoid(self.activation(v)).mean(axis=(0, 2, 3))
        updates[1] = (self.hbias, updates[1][1] + 5 * lr * (self.sparsity - active))
        return T.mean(T.sqr(v - p_v)), updates


def main(n=100, side=14, batch_size=20, n_epochs=12, lr=0.02):
    rng = np.random.RandomState(12)
    images, _ = digits(n, rng, side=side, scale=1, noise=0., n_classes=5)
    images = (images[:, None] > 0.5).astype(theano.config.floatX)
    rbm = ConvRBM(rng)
    v = T.tensor4('v')
    cost, updates = rbm.cost_updates(v, lr)
    train = theano.function([v], cost, updates=updates)
    mean_field = theano.function([v], rbm.prop_down(T.nnet.sigmoid(rbm.activation(v))))
    energy = theano.function([v], rbm.free_energy(v))
    noise = (rng.uniform(size=images.shape) < images.mean()).astype(theano.config.floatX)
    costs = []
    for epoch in range(n_epochs):
        costs.append(np.mean([train(images[i:i + batch_size]) for i in range(0, n, batch_size)]))
        if epoch % 4 == 3:
            print('epoch %d, reconstruction error %.4f' % (epoch + 1, costs[-1]))
    made = mean_field(images)
    return {'costs': np.array(costs), 'W': rbm.W.get_value(), 'biases': rbm.hbias.get_value(),
            'gap': np.mean(energy(noise) - energy(images)),
            'right': np.mean((made > 0.5) == (images > 0.5))}


if __name__ == '__main__':
    main()
