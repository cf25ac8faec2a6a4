"""A GRU for the adding problem: the sum of two marked numbers of a sequence, by RMSProp."""

from __future__ import print_function

import numpy as np

import theano
import theano.tensor as T


class Layer(object):
    """Keeps its parameters by name, as layers of many libraries did."""

    def __init__(self, rng):
        self.rng = rng
        self.params = []

    def add_param(self, shape, name, value=None):
        if value is None:
            value = self.rng.uniform(-1, 1, shape) / np.sqrt(shape[0])
        value = np.asarray(value, dtype=theano.config.floatX)
        param = theano.shared(value, name=name)
        self.params.append(param)
        return param


class GRU(Layer):
    def __init__(self, rng, n_in, n_hid, grad_clipping=1.0):
        Layer.__init__(self, rng)
        self.n_hid = n_hid
        self.W_in = self.add_param((n_in, 3 * n_hid), "W_in")
        self.W_hid = self.add_param((n_hid, 3 * n_hid), "W_hid")
        self.b = self.add_param((3 * n_hid,), "b", np.zeros(3 * n_hid))
        self.hid_init = self.add_param((1, n_hid), "hid_init", np.zeros((1, n_hid)))
        self.grad_clipping = grad_clipping

    def get_output_for(self, input):
        # (batch, time, features) -> (time, batch, features)
        input = input.dimshuffle(1, 0, 2)
        seq_len, num_batch, _ = input.shape
        input = T.dot(input, self.W_in) + self.b

        def slice_w(x, n):
            return x[:, n * self.n_hid : (n + 1) * self.n_hid]

        def step(input_n, hid_previous, W_hid):
            hid_input = T.dot(hid_previous, W_hid)
            if self.grad_clipping:
                input_n = theano.gradient.grad_clip(
                    input_n, -self.grad_clipping, self.grad_clipping
                )
                hid_input = theano.gradient.grad_clip(
                    hid_input, -self.grad_clipping, self.grad_clipping
                )
            resetgate = T.nnet.sigmoid(slice_w(hid_input, 0) + slice_w(input_n, 0))
            updategate = T.nnet.sigmoid(slice_w(hid_input, 1) + slice_w(input_n, 1))
            hidden_update = T.tanh(slice_w(input_n, 2) + resetgate * slice_w(hid_input, 2))
            return (1 - updategate) * hid_previous + updategate * hidden_update

        hid_init = T.dot(T.ones((num_batch, 1)), self.hid_init)
        hid_out = theano.scan(
            fn=step,
            sequences=[input],
            outputs_info=[hid_init],
            go_backwards=False,
            non_sequences=[self.W_hid],
            truncate_gradient=-1,
            strict=True,
        )[0]
        return hid_out.dimshuffle(1, 0, 2)


def rmsprop(cost, params, lr=0.02, rho=0.9, epsilon=1e-4):
    updates = []
    for p, g in zip(params, T.grad(cost=cost, wrt=params)):
        acc = theano.shared(p.get_value() * 0.0)
        acc_new = rho * acc + (1 - rho) * g**2
        updates.append((acc, acc_new))
        updates.append((p, p - lr * g / T.sqrt(acc_new + epsilon)))
    return updates


def main(n=30, length=8, n_hid=8, n_epochs=60):
    rng = np.random.RandomState(42)
    X = np.zeros((n, length, 2), dtype=theano.config.floatX)
    X[:, :, 0] = rng.uniform(0, 1, (n, length))
    for k in range(n):
        X[k, rng.choice(length, 2, replace=False), 1] = 1
    Y = (X[:, :, 0] * X[:, :, 1]).sum(axis=1)
    x, y = T.tensor3("x"), T.vector("y")
    gru = GRU(rng, 2, n_hid)
    W = gru.add_param((n_hid,), "W")
    b = gru.add_param((), "b", 1.0)
    prediction = T.dot(gru.get_output_for(x)[:, -1], W) + b
    cost = T.mean((prediction - y) ** 2)
    train = theano.function([x, y], cost, updates=rmsprop(cost, gru.params))
    costs = np.array([train(X, Y) for _ in range(n_epochs)])
    print("mean square error %.4f, of the mean alone %.4f" % (costs[-1], Y.var()))
    return {"costs": costs, "explained": 1 - costs[-1] / Y.var()}


if __name__ == "__main__":
    main()
