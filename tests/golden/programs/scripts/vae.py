"""A variational autoencoder with the reparametrisation trick, trained by Adam."""
from __future__ import print_function

import os
import tempfile
from collections import OrderedDict

import numpy as np

import theano
import theano.tensor as T
from theano.sandbox.rng_mrg import MRG_RandomStreams as RandomStreams

epsilon = 1e-8


def relu(x):
    return T.switch(x < 0, 0, x)


class VAE(object):
    def __init__(self, continuous, hu_encoder, hu_decoder, n_latent, x_train, batch_size=10,
                 learning_rate=0.01, b1=0.95, b2=0.999):
        self.prng = np.random.RandomState(42)
        self.srng = RandomStreams(seed=1234)
        self.continuous = continuous
        self.n_latent = n_latent
        self.b1, self.b2, self.learning_rate = b1, b2, learning_rate
        n, features = x_train.shape
        self.batch_size = batch_size
        sizes = [('W_xh', (features, hu_encoder)), ('W_hmu', (hu_encoder, n_latent)),
                 ('W_hsigma', (hu_encoder, n_latent)), ('W_zh', (n_latent, hu_decoder)),
                 ('W_hxmu', (hu_decoder, features))]
        if continuous:
            sizes.append(('W_hxsigma', (hu_decoder, features)))
        self.params = OrderedDict()
        for name, (rows, columns) in sizes:
            self.params[name] = self.shared(self.prng.normal(0, 0.1, (rows, columns)), name)
            name = name.replace('W', 'b')
            self.params[name] = self.shared(np.zeros(columns), name)
        self.m, self.v = OrderedDict(), OrderedDict()
        for key, value in self.params.items():
            zeros = np.zeros_like(value.get_value())
            self.m[key] = self.shared(zeros, 'm_' + key)
            self.v[key] = self.shared(zeros, 'v_' + key)
        self.data = self.shared(x_train, 'data')
        self.n_batches = n // batch_size
        self.build()

    def shared(self, value, name):
        return theano.shared(value.astype(theano.config.floatX), name=name)

    def encoder(self, x):
        p = self.params
        h = relu(T.dot(x, p['W_xh']) + p['b_xh'].dimshuffle('x', 0))
        mu = T.dot(h, p['W_hmu']) + p['b_hmu'].dimshuffle('x', 0)
        log_sigma = T.dot(h, p['W_hsigma']) + p['b_hsigma'].dimshuffle('x', 0)
        return mu, log_sigma

    def sampler(self, mu, log_sigma):
        eps = self.srng.normal(mu.shape, avg=0, std=1, dtype=theano.config.floatX)
        return mu + T.exp(0.5 * log_sigma) * eps

    def decoder(self, x, z):
        p = self.params
        h = relu(T.dot(z, p['W_zh']) + p['b_zh'].dimshuffle('x', 0))
        if self.continuous:
            mu = T.dot(h, p['W_hxmu']) + p['b_hxmu'].dimshuffle('x', 0)
            log_sigma = T.dot(h, p['W_hxsigma']) + p['b_hxsigma'].dimshuffle('x', 0)
            logpxz = (-(0.5 * np.log(2 * np.pi) + 0.5 * log_sigma) -
                      0.5 * ((x - mu) ** 2 / T.exp(log_sigma))).sum(axis=1, keepdims=True)
            return mu, logpxz
        y = T.nnet.sigmoid(T.dot(h, p['W_hxmu']) + p['b_hxmu'].dimshuffle('x', 0))
        return y, -T.nnet.binary_crossentropy(y, x).sum(axis=1, keepdims=True)

    def get_updates(self, gradients, epoch):
        updates = OrderedDict()
        gamma = T.sqrt(1 - self.b2 ** epoch) / (1 - self.b1 ** epoch)
        for key, gradient in zip(self.params, gradients):
            gradient = T.clip(gradient, -50, 50)
            m = self.b1 * self.m[key] + (1 - self.b1) * gradient
            v = self.b2 * self.v[key] + (1 - self.b2) * gradient ** 2
            updates[self.m[key]] = m
            updates[self.v[key]] = v
            updates[self.params[key]] = (
                self.params[key] + self.learning_rate * gamma * m / (T.sqrt(v) + epsilon))
        return updates

    def build(self):
        x = T.matrix('x')
        epoch = T.scalar('epoch')
        index = T.iscalar('index')
        mu, log_sigma = self.encoder(x)
        z = self.sampler(mu, log_sigma)
        reconstructed, logpxz = self.decoder(x, z)
        KLD = 0.5 * T.sum(1 + log_sigma - mu ** 2 - T.exp(log_sigma), axis=1, keepdims=True)
        logpx = T.mean(logpxz + KLD)
        gradients = T.grad(logpx, list(self.params.values()))
        batch = self.data[index * self.batch_size:(index + 1) * self.batch_size]
        self.update = theano.function(
            [index, epoch], logpx, updates=self.get_updates(gradients, epoch), givens={x: batch},
            allow_input_downcast=True)
        self.likelihood = theano.function([x], logpx)
        self.encode = theano.function([x], [mu, T.exp(0.5 * log_sigma)])
        decoded, _ = self.decoder(x, mu)
        self.reconstruct = theano.function([x], decoded, on_unused_input='warn')

    def save(self, path):
        np.savez(path, **dict((name, p.get_value()) for name, p in self.params.items()))

    def load(self, path):
        with np.load(path) as values:
            for name in values.files:
                self.params[name].set_value(values[name])


def train(continuous, data, n_epochs, **sizes):
    model = VAE(continuous, x_train=data, **sizes)
    bounds = []
    for epoch in range(1, n_epochs + 1):
        order = model.prng.permutation(model.n_batches)
        bounds.extend(model.update(i, epoch) for i in order)
        print('Epoch %d, bound %.4f' % (epoch, np.mean(bounds[-model.n_batches:])))
    handle, path = tempfile.mkstemp(suffix='.npz')
    os.close(handle)
    model.save(path)
    model.params['W_xh'].set_value(np.zeros_like(model.params['W_xh'].get_value()))
    model.load(path)
    os.remove(path)
    rows = data[:10].astype(theano.config.floatX)
    return {'bounds': np.array(bounds), 'likelihood': model.likelihood(rows),
            'codes': model.encode(rows), 'reconstructed': model.reconstruct(rows),
            'params': dict((k, p.get_value()) for k, p in model.params.items())}


def main(n=60, n_visible=8, hu_encoder=9, hu_decoder=7, n_latent=2, n_epochs=3, batch_size=10):
    rng = np.random.RandomState(5)
    factors = np.dot(rng.randn(n, n_latent), rng.randn(n_latent, n_visible))
    sizes = dict(hu_encoder=hu_encoder, hu_decoder=hu_decoder, n_latent=n_latent,
                 batch_size=batch_size, n_epochs=n_epochs)
    return {'bernoulli': train(False, (factors > 0).astype('float64'), **sizes),
            'gaussian': train(True, factors, **sizes)}


if __name__ == '__main__':
    main()
