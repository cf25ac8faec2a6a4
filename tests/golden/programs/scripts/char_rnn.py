"""A character RNN: learns a short text by heart, and writes it from its first letter."""

from __future__ import print_function

import numpy as np

import theano
import theano.tensor as T

TEXT = """the quick brown fox jumps over the lazy dog. """


class CharRNN(object):
    def __init__(self, n_chars, n_hidden, rng):
        def weights(name, *shape):
            values = rng.randn(*shape) / np.sqrt(shape[0])
            return theano.shared(np.asarray(values, dtype=theano.config.floatX), name=name)

        self.Wx = weights("Wx", n_chars, n_hidden)
        self.Wh = weights("Wh", n_hidden, n_hidden)
        self.Wy = weights("Wy", n_hidden, n_chars)
        self.bh = theano.shared(np.zeros(n_hidden, dtype=theano.config.floatX), name="bh")
        self.by = theano.shared(np.zeros(n_chars, dtype=theano.config.floatX), name="by")
        self.h0 = theano.shared(np.zeros(n_hidden, dtype=theano.config.floatX), name="h0")
        self.params = [self.Wx, self.Wh, self.Wy, self.bh, self.by, self.h0]

    def step(self, x_t, h_tm1):
        h_t = T.tanh(self.Wx[x_t] + T.dot(h_tm1, self.Wh) + self.bh)
        return h_t, T.dot(h_t, self.Wy) + self.by

    def scores(self, x):
        [h, s], _ = theano.scan(self.step, sequences=x, outputs_info=[self.h0, None])
        return s

    def written(self, first, n):
        """The most likely letters, each fed back into the network."""

        def write(x_tm1, h_tm1):
            h_t, s_t = self.step(x_tm1, h_tm1)
            return T.cast(T.argmax(s_t), "int32"), h_t

        [letters, _], _ = theano.scan(write, outputs_info=[first, self.h0], n_steps=n)
        return letters


def adagrad(cost, params, rate=0.2):
    updates = []
    for p, g in zip(params, T.grad(cost, params)):
        acc = theano.shared(np.zeros_like(p.get_value()), broadcastable=p.broadcastable)
        g = T.clip(g, -5, 5)
        acc_new = acc + g**2
        updates += [(acc, acc_new), (p, p - rate * g / T.sqrt(acc_new + 1e-2))]
    return updates


def main(n_hidden=20, n_epochs=60):
    chars = sorted(set(TEXT))
    text = np.array([chars.index(c) for c in TEXT], dtype="int32")
    net = CharRNN(len(chars), n_hidden, np.random.RandomState(5))
    x, y = T.ivector("x"), T.ivector("y")
    p = T.nnet.softmax(net.scores(x))
    cost = T.nnet.categorical_crossentropy(p, y).mean()
    train = theano.function([x, y], cost, updates=adagrad(cost, net.params))
    costs = []
    for epoch in range(n_epochs):
        costs.append(train(text[:-1], text[1:]))
        if epoch % 20 == 19:
            print("epoch %d: %.4f nats a letter" % (epoch + 1, costs[-1]))
    first = T.iscalar("first")
    write = theano.function([first], net.written(first, len(TEXT) - 1))
    letters = write(text[0])
    print(TEXT[0] + "".join(chars[c] for c in letters))
    return {"costs": np.array(costs), "right": np.mean(letters == text[1:])}


if __name__ == "__main__":
    main()
