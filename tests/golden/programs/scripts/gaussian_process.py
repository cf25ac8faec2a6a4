"""Gaussian process regression: hyperparameters by gradient ascent on the marginal likelihood."""
from __future__ import print_function

import numpy as np

import theano
import theano.tensor as T
from theano.tensor.nlinalg import det, diag, matrix_inverse, trace
from theano.tensor.slinalg import Cholesky, solve, solve_lower_triangular, solve_upper_triangular


def rbf_kernel(X, Z, log_amplitude, log_lengthscales):
    Xs = X / T.exp(log_lengthscales)
    Zs = Z / T.exp(log_lengthscales)
    sq_dist = (T.sum(Xs ** 2, axis=1).dimshuffle(0, 'x') + T.sum(Zs ** 2, axis=1).dimshuffle(
        'x', 0) - 2 * T.dot(Xs, Zs.T))
    return T.exp(2 * log_amplitude) * T.exp(-0.5 * T.maximum(sq_dist, 0.))


class GPRegression(object):
    def __init__(self, n_in):
        self.log_amplitude = theano.shared(0.0, 'log_amplitude')
        self.log_lengthscales = theano.shared(np.zeros(n_in), 'log_lengthscales')
        self.log_noise = theano.shared(-1.0, 'log_noise')
        self.params = [self.log_amplitude, self.log_lengthscales, self.log_noise]
        X, y, X_star = T.dmatrix('X'), T.dvector('y'), T.dmatrix('X_star')
        K = rbf_kernel(X, X, self.log_amplitude, self.log_lengthscales)
        K = K + T.exp(2 * self.log_noise) * T.eye(X.shape[0])

        L = Cholesky()(K)
        alpha = solve_upper_triangular(L.T, solve_lower_triangular(L, y))
        lml = (-0.5 * T.dot(y, alpha) - T.sum(T.log(diag(L))) -
               0.5 * X.shape[0] * T.log(2 * np.pi))
        grads = T.grad(lml, self.params)
        lr = T.scalar('lr')
        self.lml = theano.function([X, y], lml)
        self.gradient = theano.function([X, y], grads)
        self.step = theano.function(
            [X, y, lr], lml, updates=[(p, p + lr * g) for p, g in zip(self.params, grads)],
            allow_input_downcast=True)

        # the same by the inverse, with the gradient of the textbook
        K_inv = matrix_inverse(K)
        lml_inv = (-0.5 * y.dot(K_inv).dot(y) - 0.5 * T.log(det(K)) -
                   0.5 * T.cast(X.shape[0], 'float64') * T.log(2 * np.pi))
        a = T.dot(K_inv, y)
        dK = 2 * T.exp(2 * self.log_noise) * T.eye(X.shape[0])
        by_hand = 0.5 * trace(T.dot(T.outer(a, a) - K_inv, dK))
        self.by_inverse = theano.function([X, y], [lml_inv, by_hand] + T.grad(lml_inv, self.params))

        K_s = rbf_kernel(X, X_star, self.log_amplitude, self.log_lengthscales)
        K_ss = rbf_kernel(X_star, X_star, self.log_amplitude, self.log_lengthscales)
        mean = T.dot(K_s.T, alpha)
        v = solve(L, K_s)
        variance = T.maximum(diag(K_ss) - T.sum(v ** 2, axis=0), 1e-12)
        self.predict = theano.function([X, y, X_star], [mean, T.sqrt(variance)])


def main(n=25, n_in=2, n_steps=15, lr=0.01):
    rng = np.random.RandomState(0)
    X = rng.uniform(-2, 2, (n, n_in))
    y = np.sin(2 * X[:, 0]) + 0.1 * rng.randn(n)
    gp = GPRegression(n_in)
    start = [gp.lml(X, y), gp.gradient(X, y), gp.by_inverse(X, y)]
    values = []
    for i in range(n_steps):
        values.append(gp.step(X, y, lr))
        if i % 5 == 4:
            print('step %d, log marginal likelihood %.6f' % (i, values[-1]))
    mean, std = gp.predict(X, y, rng.uniform(-2, 2, (6, n_in)))
    return {'start': start, 'values': np.array(values), 'mean': mean, 'std': std,
            'params': [p.get_value() for p in gp.params]}


if __name__ == '__main__':
    main()
