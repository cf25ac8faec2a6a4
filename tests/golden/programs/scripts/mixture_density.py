"""A mixture density network: an inverse problem with several answers."""
from __future__ import print_function

import numpy as np

import theano
import theano.tensor as T


def log_sum_exp(x, axis=1):
    max_x = T.max(x, axis=axis, keepdims=True)
    return T.log(T.sum(T.exp(x - max_x), axis=axis, keepdims=True)) + max_x


class MDN(object):
    def __init__(self, rng, n_in, n_hidden, n_components, n_out):
        def weights(*shape):
            bound = np.sqrt(6. / sum(shape))
            return theano.shared(rng.uniform(-bound, bound, shape).astype(theano.config.floatX))

        def biases(n):
            return theano.shared(np.zeros(n, dtype=theano.config.floatX))

        self.x, self.y = T.matrix('x'), T.matrix('y')
        W, b = weights(n_in, n_hidden), biases(n_hidden)
        W_mu, b_mu = weights(n_hidden, n_components * n_out), biases(n_components * n_out)
        W_sigma, b_sigma = weights(n_hidden, n_components), biases(n_components)
        W_mix, b_mix = weights(n_hidden, n_components), biases(n_components)
        self.params = [W, b, W_mu, b_mu, W_sigma, b_sigma, W_mix, b_mix]
        h = T.tanh(T.dot(self.x, W) + b)
        self.mu = T.reshape(T.dot(h, W_mu) + b_mu, (-1, n_components, n_out), ndim=3)
        self.sigma = T.nnet.softplus(T.dot(h, W_sigma) + b_sigma) + 1e-3
        self.mix = T.nnet.softmax(T.dot(h, W_mix) + b_mix)
        distance = T.sum((T.shape_padright(self.y).dimshuffle(0, 2, 1) - self.mu) ** 2, axis=2)
        exponent = (T.log(self.mix) - 0.5 * distance / T.sqr(self.sigma) -
                    n_out * T.log(self.sigma) - 0.5 * n_out * T.log(2 * np.pi))
        self.nll = -T.mean(log_sum_exp(exponent))
        self.responsibilities = T.exp(exponent - T.addbroadcast(log_sum_exp(exponent), 1))
        rows = T.arange(self.x.shape[0])
        self.mode = self.mu[rows, T.argmax(self.mix, axis=1)]
        self.mean = T.batched_dot(self.mix.dimshuffle(0, 'x', 1), self.mu)[:, 0]


def nesterov(cost, params, learning_rate, momentum):
    updates = []
    for param in params:
        velocity = theano.shared(np.zeros_like(param.get_value(borrow=True)))
        gradient = T.grad(cost, param)
        norm = T.sqrt(T.sum(T.sqr(gradient)))
        gradient = T.switch(T.ge(norm, 1.), gradient / norm, gradient)
        moved = momentum * velocity - learning_rate * gradient
        updates.append((velocity, moved))
        updates.append((param, param + momentum * moved - learning_rate * gradient))
    return updates


def main(n=60, n_in=1, n_hidden=8, n_components=3, n_out=1, n_steps=20):
    rng = np.random.RandomState(15)
    y = rng.uniform(0, 1, (n, n_out))
    x = y[:, :1] + 0.3 * np.sin(2 * np.pi * y[:, :1]) + rng.uniform(-0.1, 0.1, (n, n_in))
    x, y = x.astype(theano.config.floatX), y.astype(theano.config.floatX)
    model = MDN(rng, n_in, n_hidden, n_components, n_out)
    train = theano.function([model.x, model.y], model.nll,
                            updates=nesterov(model.nll, model.params, 0.05, 0.9))
    predict = theano.function([model.x], [model.mode, model.mean, model.sigma])
    responsible = theano.function(inputs=[model.x, model.y], outputs=model.responsibilities)
    costs = [train(x, y) for _ in range(n_steps)]
    print('negative log likelihood %.5f to %.5f' % (costs[0], costs[-1]))
    return {'costs': np.array(costs), 'predicted': predict(x[:6]),
            'responsibilities': responsible(x[:6], y[:6]),
            'params': [p.get_value() for p in model.params]}


if __name__ == '__main__':
    main()
