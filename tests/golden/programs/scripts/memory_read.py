"""A memory that is read and written by content, as in neural Turing machines: a copy task."""

from __future__ import print_function

import functools

import numpy as np

import theano
import theano.tensor as T


def cosine(key, M):
    return T.dot(M, key) / T.sqrt(T.sum(M**2, axis=1) * T.sum(key**2) + 1e-6)


class Memory(object):
    def __init__(self, rng, n_slots, width, n_in, n_hidden, n_out):
        self.n_slots = n_slots
        self.width = width

        def weights(name, *shape):
            return theano.shared(
                np.asarray(rng.randn(*shape) / np.sqrt(shape[0]), dtype=theano.config.floatX),
                name=name,
            )

        self.W = weights("W", n_in + width, n_hidden)
        self.heads = dict(
            (name, weights(name, n_hidden, size))
            for name, size in [
                ("key", width),
                ("erase", width),
                ("add", width),
                ("shift", 3),
                ("sharp", 1),
                ("gate", 1),
            ]
        )
        self.V = weights("V", n_hidden + width, n_out)
        self.M0 = weights("M0", n_slots, width)
        self.params = [self.W, self.V, self.M0] + [self.heads[k] for k in sorted(self.heads)]

    def step(self, x, M, w, r, beta):
        h = T.tanh(T.dot(T.concatenate([x, r]), self.W))

        def head(name):
            return T.dot(h, self.heads[name])

        content = T.nnet.softmax(beta * cosine(head("key"), M))[0]
        gate = T.nnet.sigmoid(head("gate"))[0]
        mixed = gate * content + (1 - gate) * w
        shift = T.nnet.softmax(head("shift"))[0]
        turned = sum(shift[k] * T.roll(mixed, k - 1) for k in range(3))
        sharp = 1 + T.nnet.softplus(head("sharp"))[0]
        w_new = (turned + 1e-6) ** sharp
        w_new = w_new / (w_new.sum() + 1e-6)
        erase = T.nnet.sigmoid(head("erase"))
        M_new = M * (1 - T.outer(w_new, erase)) + T.outer(w_new, T.tanh(head("add")))
        read = T.dot(w_new, M_new)
        return [M_new, w_new, read, T.dot(T.concatenate([h, read]), self.V)]

    def __call__(self, xs):
        w0 = T.set_subtensor(T.zeros((self.n_slots,))[0], 1.0)
        (_, ws, _, out), _ = theano.scan(
            functools.partial(self.step, beta=T.constant(4.0)),
            sequences=[xs],
            outputs_info=[self.M0, w0, T.zeros((self.width,)), None],
        )
        return ws, out


def main(n_bits=2, length=2, n_steps=150):
    rng = np.random.RandomState(4)
    net = Memory(rng, 5, 4, n_bits + 1, 10, n_bits)
    xs, ys = T.matrix("xs"), T.matrix("ys")
    ws, out = net(xs)
    p = T.nnet.sigmoid(out[ys.shape[0] + 1 :])
    cost = T.nnet.binary_crossentropy(T.clip(p, 1e-6, 1 - 1e-6), ys).mean()
    updates = theano.OrderedUpdates()
    for param, g in zip(net.params, T.grad(cost, net.params)):
        acc = theano.shared(param.get_value() * 0.0)
        acc_new = 0.9 * acc + 0.1 * g**2
        updates[acc] = acc_new
        updates[param] = param - 0.03 * g / T.sqrt(acc_new + 1e-2)
    train = theano.function([xs, ys], cost, updates=updates)
    look = theano.function([xs, ys], [p, ws], on_unused_input="ignore")

    def task():
        bits = rng.randint(0, 2, (length, n_bits)).astype(theano.config.floatX)
        x = np.zeros((2 * length + 1, n_bits + 1), dtype=theano.config.floatX)
        x[:length, :n_bits] = bits
        x[length, n_bits] = 1
        return x, bits

    costs = np.array([train(*task()) for _ in range(n_steps)])
    tests = [task() for _ in range(20)]
    right = np.mean([np.mean((look(x, y)[0] > 0.5) == y) for x, y in tests])
    print(
        "cost %.4f, then %.4f; %.1f%% of the bits right"
        % (costs[:20].mean(), costs[-20:].mean(), 100 * right)
    )
    return {"costs": costs[::5], "right": right, "weights": look(*tests[0])[1]}


if __name__ == "__main__":
    main()
