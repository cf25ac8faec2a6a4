"""RNN-RBM: an RBM at each step whose biases an RNN computes, as in the deep learning tutorials."""

from __future__ import print_function

import numpy

import theano
import theano.tensor as T
from theano.tensor.shared_randomstreams import RandomStreams


def build_rbm(rng, v, W, bv, bh, k):
    def gibbs_step(v):
        mean_h = T.nnet.sigmoid(T.dot(v, W) + bh)
        h = rng.binomial(size=mean_h.shape, n=1, p=mean_h, dtype=theano.config.floatX)
        mean_v = T.nnet.sigmoid(T.dot(h, W.T) + bv)
        v = rng.binomial(size=mean_v.shape, n=1, p=mean_v, dtype=theano.config.floatX)
        return mean_v, v

    chain, updates = theano.scan(lambda v: gibbs_step(v)[1], outputs_info=[v], n_steps=k)
    v_sample = chain[-1]

    mean_v = gibbs_step(v_sample)[0]
    monitor = T.xlogx.xlogy0(v, mean_v) + T.xlogx.xlogy0(1 - v, 1 - mean_v)
    monitor = monitor.sum() / v.shape[0]

    def free_energy(v):
        return -(v * bv).sum() - T.log(1 + T.exp(T.dot(v, W) + bh)).sum()

    cost = (free_energy(v) - free_energy(v_sample)) / v.shape[0]
    return v_sample, cost, monitor, updates


class RnnRbm(object):
    def __init__(self, rng, seed, n_visible, n_hidden, n_hidden_recurrent, lr):
        def normal(rows, columns, scale):
            return theano.shared(
                (rng.normal(size=(rows, columns), scale=scale)).astype(theano.config.floatX)
            )

        def zeros(length):
            return theano.shared(numpy.zeros((length,), dtype=theano.config.floatX))

        self.rng = RandomStreams(seed)
        W, bv, bh = normal(n_visible, n_hidden, 0.1), zeros(n_visible), zeros(n_hidden)
        Wuh, Wuv = (
            normal(n_hidden_recurrent, n_hidden, 0.1),
            normal(n_hidden_recurrent, n_visible, 0.1),
        )
        Wvu, Wuu = (
            normal(n_visible, n_hidden_recurrent, 0.1),
            normal(n_hidden_recurrent, n_hidden_recurrent, 0.1),
        )
        bu = zeros(n_hidden_recurrent)
        params = W, bv, bh, Wuh, Wuv, Wvu, Wuu, bu
        v = T.matrix()
        u0 = T.zeros((n_hidden_recurrent,))

        def recurrence(v_t, u_tm1):
            bv_t = bv + T.dot(u_tm1, Wuv)
            bh_t = bh + T.dot(u_tm1, Wuh)
            generate = v_t is None
            if generate:
                v_t, _, _, updates = build_rbm(self.rng, T.zeros((n_visible,)), W, bv_t, bh_t, k=8)
            u_t = T.tanh(bu + T.dot(v_t, Wvu) + T.dot(u_tm1, Wuu))
            return ([v_t, u_t], updates) if generate else [u_t, bv_t, bh_t]

        (u_t, bv_t, bh_t), updates_train = theano.scan(
            lambda v_t, u_tm1, *_: recurrence(v_t, u_tm1),
            sequences=v,
            outputs_info=[u0, None, None],
            non_sequences=params,
        )
        v_sample, cost, monitor, updates_rbm = build_rbm(self.rng, v, W, bv_t[:], bh_t[:], k=4)
        updates_train.update(updates_rbm)
        gradient = T.grad(cost, params, consider_constant=[v_sample])
        updates_train.update(((p, p - lr * g) for p, g in zip(params, gradient)))
        self.train_function = theano.function([v], monitor, updates=updates_train)

        (v_t, u_t), updates_generate = theano.scan(
            lambda u_tm1, *_: recurrence(None, u_tm1),
            outputs_info=[None, u0],
            non_sequences=params,
            n_steps=12,
        )
        self.generate_function = theano.function([], v_t, updates=updates_generate)


def main(n_visible=6, length=12, n_epochs=60):
    rng = numpy.random.RandomState(7)
    # a tone that wanders up and down, with its neighbour
    places = numpy.concatenate([numpy.arange(n_visible - 1), numpy.arange(n_visible - 1)[::-1]])
    music = numpy.zeros((2 * length, n_visible), dtype=theano.config.floatX)
    for t in range(2 * length):
        music[t, places[t % len(places)] : places[t % len(places)] + 2] = 1
    model = RnnRbm(rng, 99, n_visible, 10, 8, 0.1)
    monitors = []
    for epoch in range(n_epochs):
        monitors.append(
            numpy.mean(
                [model.train_function(music[:length]), model.train_function(music[length // 2 :])]
            )
        )
    print("log-likelihood of bits %.3f, then %.3f" % (monitors[0], numpy.mean(monitors[-10:])))
    return {
        "monitors": numpy.array(monitors),
        "gain": numpy.mean(monitors[-10:]) - monitors[0],
        "generated": model.generate_function().astype("int8"),
    }


if __name__ == "__main__":
    main()
