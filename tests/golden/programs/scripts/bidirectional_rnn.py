"""A bidirectional RNN that tags each symbol by its two neighbours, with momentum."""

from __future__ import print_function

import numpy as np

import theano
import theano.tensor as T


def rnn(x, W, U, b, n_hidden, backwards):
    """Hidden states in the order of the symbols, in both directions."""
    xW = T.dot(x, W) + b
    h0 = T.unbroadcast(T.zeros((1, n_hidden)), 0)[0]
    h, _ = theano.scan(
        lambda p, h_, U: T.tanh(p + T.dot(h_, U)),
        sequences=dict(input=xW, taps=[0]),
        outputs_info=[dict(initial=h0)],
        non_sequences=[U],
        go_backwards=backwards,
    )
    return h[::-1] if backwards else h


def main(n_symbols=4, n_hidden=8, length=80, n_epochs=70):
    rng = np.random.RandomState(9)

    def weights(*shape):
        return theano.shared(
            np.asarray(rng.randn(*shape) / np.sqrt(shape[0]), dtype=theano.config.floatX)
        )

    def zeros(n):
        return theano.shared(np.zeros(n, dtype=theano.config.floatX))

    def make(n):
        s = rng.randint(0, n_symbols, n + 2)
        tags = (s[:-2] < s[2:]).astype("int32") + 2 * (s[1:-1] == 0)
        return np.eye(n_symbols, dtype=theano.config.floatX)[s], tags.astype("int32")

    x, y = T.matrix("x"), T.ivector("y")
    ahead = [weights(n_symbols, n_hidden), weights(n_hidden, n_hidden), zeros(n_hidden)]
    back = [weights(n_symbols, n_hidden), weights(n_hidden, n_hidden), zeros(n_hidden)]
    V, c = weights(2 * n_hidden, 4), zeros(4)
    params = ahead + back + [V, c]
    h = T.concatenate(
        [rnn(x, *(ahead + [n_hidden, False])), rnn(x, *(back + [n_hidden, True]))], axis=1
    )
    p = T.nnet.softmax(T.dot(h, V) + c)[1:-1]
    cost = -T.mean(T.log(p)[T.arange(y.shape[0]), y])
    updates = []
    for param, grad in zip(params, T.grad(cost, params)):
        velocity = theano.shared(param.get_value() * 0.0)
        step = 0.9 * velocity - 0.1 * grad
        updates.extend([(velocity, step), (param, param + step)])
    train = theano.function([x, y], cost, updates=updates)
    tag = theano.function([x], T.argmax(p, axis=1))
    data = [make(length) for _ in range(2)]
    costs = np.array([np.mean([train(*d) for d in data]) for _ in range(n_epochs)])
    test = make(100)
    accuracy = np.mean(tag(test[0]) == test[1])
    print("cost %.4f, then %.4f; test accuracy %.3f" % (costs[0], costs[-1], accuracy))
    return {"costs": costs, "accuracy": accuracy}


if __name__ == "__main__":
    main()
