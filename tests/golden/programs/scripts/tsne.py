"""t-SNE: neighbours kept in the plane, by gradient descent with momentum and gains."""
from __future__ import print_function

import numpy as np

import theano
import theano.tensor as T

epsilon = 1e-16


def p_Xp_given_X_var(X, sigma):
    sqeuclidean = (X ** 2).sum(1).reshape((X.shape[0], 1)) + (X ** 2).sum(1).reshape(
        (1, X.shape[0])) - 2 * X.dot(X.T)
    esqdistance = T.exp(-sqeuclidean / ((2 * (sigma ** 2)).dimshuffle(0, 'x')))
    esqdistance_zd = T.fill_diagonal(esqdistance, 0)
    row_sum = T.sum(esqdistance_zd, axis=1).reshape((X.shape[0], 1))
    return esqdistance_zd / row_sum


def p_Xp_X_var(p_Xp_given_X):
    return (p_Xp_given_X + p_Xp_given_X.T) / (2.0 * p_Xp_given_X.shape[0])


def p_Yp_Y_var(Y):
    sqdistance = ((Y[:, None, :] - Y[None, :, :]) ** 2).sum(axis=2)
    one_over = T.fill_diagonal(1 / (sqdistance + 1), 0)
    return one_over / one_over.sum()


def kl_cost(p_Xp_X, Y):
    p_Yp_Y = T.maximum(p_Yp_Y_var(Y), epsilon)
    p = T.maximum(p_Xp_X, epsilon)
    return T.sum(p * T.log(p / p_Yp_Y))


def find_sigma(X, perplexity, n_iter=20):
    """Bisects in one function: bounds and widths are shared."""
    n = X.shape[0]
    X_shared = theano.shared(np.asarray(X, dtype=theano.config.floatX))
    sigma = theano.shared(np.ones(n, dtype=theano.config.floatX))
    lower = theano.shared(np.zeros(n, dtype=theano.config.floatX))
    upper = theano.shared(np.full(n, 1e6).astype(theano.config.floatX))
    p = p_Xp_given_X_var(X_shared, sigma)
    entropy = -T.sum(p * T.log2(T.maximum(p, epsilon)), axis=1)
    too_wide = T.gt(2 ** entropy, perplexity)
    new_upper = T.switch(too_wide, T.minimum(upper, sigma), upper)
    new_lower = T.switch(too_wide, lower, T.maximum(lower, sigma))
    new_sigma = T.switch(T.ge(new_upper, 1e6), new_lower * 2, (new_lower + new_upper) / 2.)
    bisect = theano.function([], T.mean(2 ** entropy),
                             updates=[(lower, new_lower), (upper, new_upper),
                                      (sigma, new_sigma)])
    for _ in range(n_iter):
        found = bisect()
    return X_shared, sigma, found


def main(n=30, n_in=4, perplexity=8., n_epochs=12, initial_lr=5., momentum=0.5):
    rng = np.random.RandomState(48)
    X = 3 * rng.randn(3, n_in)[rng.randint(0, 3, n)] + rng.randn(n, n_in)
    X_shared, sigma, found = find_sigma(X, perplexity)
    print('perplexity %.5f' % found)
    p = theano.function([], p_Xp_X_var(p_Xp_given_X_var(X_shared, sigma)))()
    P = theano.shared(p, name='P')
    Y = theano.shared(np.asarray(1e-2 * rng.randn(n, 2), dtype=theano.config.floatX), name='Y')
    Y_velocities = theano.shared(np.zeros((n, 2), dtype=theano.config.floatX))
    gains = theano.shared(np.ones((n, 2), dtype=theano.config.floatX))
    lr, mom = T.scalars('lr', 'momentum')
    exaggeration = T.scalar('exaggeration')
    cost = kl_cost(P * exaggeration, Y)
    grad = T.grad(cost, Y)
    same = T.eq(T.sgn(grad), T.sgn(Y_velocities))
    new_gains = T.maximum(T.switch(same, gains * 0.8, gains + 0.2), 0.01)
    velocity = mom * Y_velocities - lr * new_gains * grad
    moved = Y + velocity
    step = theano.function(
        [lr, mom, theano.In(exaggeration, value=1.)], cost,
        updates=[(gains, new_gains), (Y_velocities, velocity), (Y, moved - moved.mean(axis=0))],
        allow_input_downcast=True)
    costs = [step(initial_lr, momentum, 4.) if i < n_epochs // 2 else step(initial_lr, 0.8)
             for i in range(n_epochs)]
    print('cost %.5f to %.5f' % (costs[n_epochs // 2], costs[-1]))
    return {'perplexity': found, 'sigma': sigma.get_value(), 'costs': np.array(costs),
            'Y': Y.get_value()}


if __name__ == '__main__':
    main()
