"""Independent components: infomax by the natural gradient, symmetric FastICA, and RICA."""
from __future__ import print_function

import numpy as np

import theano
import theano.tensor as T
import theano.tensor.nlinalg as nlinalg


def whiten(X):
    """Centres, then scales along the eigenvectors of the covariance."""
    x = T.dmatrix('x')
    centred = x - x.mean(axis=0)
    w, v = nlinalg.eigh(T.dot(centred.T, centred) / T.cast(x.shape[0], 'float64'))
    # symmetric: no choice of signs
    transform = T.dot(v * (w ** -0.5), v.T)
    return theano.function([x], T.dot(centred, transform))(X)


def infomax(X, n_steps, rate=0.1):
    n = X.shape[1]
    W = theano.shared(np.eye(n), name='W')
    x = T.dmatrix('x')
    u = T.dot(x, W.T)
    log_likelihood = (T.log(T.abs_(nlinalg.det(W))) +
                      T.mean(T.sum(-T.log(T.cosh(u)), axis=1)))
    g = T.grad(log_likelihood, W)
    natural = T.dot(T.dot(g, W.T), W)
    step = theano.function([x], log_likelihood, updates=[(W, W + rate * natural)])
    likelihoods = [step(X) for _ in range(n_steps)]
    print('infomax: %.5f to %.5f' % (likelihoods[0], likelihoods[-1]))
    return {'likelihoods': np.array(likelihoods), 'W': W.get_value()}


def fast_ica(X, n_steps):
    n = X.shape[1]
    W = theano.shared(np.eye(n) + 0.1, name='W')
    x = theano.shared(X, borrow=True)
    u = T.dot(x, W.T)
    g, g_prime = T.tanh(u), 1 - T.tanh(u) ** 2
    W1 = T.dot(g.T, x) / x.shape[0] - g_prime.mean(axis=0).dimshuffle(0, 'x') * W
    s, U = nlinalg.eigh(T.dot(W1, W1.T))
    W2 = T.dot(T.dot(U * (1. / T.sqrt(s)), U.T), W1)
    change = T.max(abs(abs(nlinalg.diag(T.dot(W2, W.T))) - 1))
    step = theano.function([], change, updates=[(W, W2)])
    changes = [step() for _ in range(n_steps)]
    print('FastICA: change %.6f' % changes[-1])
    return {'changes': np.array(changes), 'W': W.get_value()}


def rica(X, n_features, n_steps, lam=0.1, rate=0.05):
    """Reconstruction ICA: more features than inputs, rows of length 1."""
    rng = np.random.RandomState(3)
    W = theano.shared(rng.randn(n_features, X.shape[1]), name='W')
    x = T.dmatrix('x')
    W_unit = W / T.sqrt(T.sum(W ** 2, axis=1, keepdims=True))
    h = T.dot(x, W_unit.T)
    smooth_l1 = T.sqrt(T.sqr(h) + 1e-2).sum(axis=1).mean()
    reconstruction = 0.5 * T.mean(T.sum((T.dot(h, W_unit) - x) ** 2, axis=1))
    cost = lam * smooth_l1 + reconstruction
    momentum = theano.shared(np.zeros_like(W.get_value()))
    moved = 0.5 * momentum - rate * T.grad(cost, W)
    step = theano.function([x], [cost, smooth_l1], updates=[(momentum, moved), (W, W + moved)])
    costs = [step(X) for _ in range(n_steps)]
    print('RICA: %.5f to %.5f' % (costs[0][0], costs[-1][0]))
    return {'costs': np.array(costs), 'W': W.get_value()}


def main(n=150, n_sources=3, n_steps=12):
    rng = np.random.RandomState(71)
    sources = rng.laplace(size=(n, n_sources))
    X = whiten(np.dot(sources, rng.randn(n_sources, n_sources)))
    return {'whitened': X[:5], 'infomax': infomax(X, n_steps), 'fast_ica': fast_ica(X, n_steps),
            'rica': rica(X, 2 * n_sources, n_steps)}


if __name__ == '__main__':
    main()
