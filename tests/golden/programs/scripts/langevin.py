"""Langevin samplers over two wells and over a regression: scans that draw from both streams."""

from __future__ import print_function

import numpy as np

import theano
import theano.tensor as T
from theano.sandbox.rng_mrg import MRG_RandomStreams
from theano.tensor.shared_randomstreams import RandomStreams


def log_density(x):
    """Two wells, at -1 and 1."""
    return -4.0 * (x**2 - 1) ** 2


def chain(streams, n_chains, n_steps, eps):
    start = T.zeros((n_chains,))

    def step(x, eps):
        g = theano.grad(log_density(x).sum(), x)
        noise = streams.normal(x.shape, dtype=theano.config.floatX)
        proposed = x + 0.5 * eps**2 * g + eps * noise
        g_new = theano.grad(log_density(proposed).sum(), proposed)
        back = -((x - proposed - 0.5 * eps**2 * g_new) ** 2) / (2 * eps**2)
        there = -(noise**2) / 2
        u = streams.uniform(x.shape, dtype=theano.config.floatX)
        accept = T.log(u) < log_density(proposed) - log_density(x) + back - there
        return T.switch(accept, proposed, x), T.cast(accept, "int8")

    return theano.scan(step, outputs_info=[start, None], non_sequences=eps, n_steps=n_steps)


def main(n_chains=8, n_steps=120):
    eps = T.scalar("eps")
    found = {}
    for name, streams in [("shared", RandomStreams(3)), ("mrg", MRG_RandomStreams(3))]:
        (xs, accepted), updates = chain(streams, n_chains, n_steps, eps)
        f = theano.function(
            [eps],
            [xs[-1], T.mean(abs(xs[20:])), T.mean(accepted, dtype="float64")],
            updates=updates,
        )
        for k in range(2):
            last, mean, rate = f(0.35)
        print("%s: mean distance %.3f from the middle, %.3f accepted" % (name, mean, rate))
        found[name] = [last, mean, rate]
    # stochastic gradients of a Bayesian regression, in minibatches that the steps pick
    rng = np.random.RandomState(1)
    X = rng.randn(50, 2)
    Y = np.dot(X, [1.5, -0.7]) + 0.3 * rng.randn(50)
    data, labels = theano.shared(X), theano.shared(Y)
    w, count = theano.shared(np.zeros(2), "w"), theano.shared(0, "count")
    streams = RandomStreams(77)

    def sgld(batch):
        x, y = data[batch], labels[batch]
        logp = -T.sum((y - T.dot(x, w)) ** 2) / 0.18 * 5 - 0.5 * T.sum(w**2)
        rate = 4e-4 * (1.0 + count / 10.0) ** -0.55
        new = w + 0.5 * rate * T.grad(logp, w) + T.sqrt(rate) * streams.normal((2,))
        return new, [(w, new), (count, count + 1)]

    batches = T.lmatrix("batches")
    ws, updates = theano.scan(sgld, sequences=batches)
    sample = theano.function([batches], ws, updates=updates)
    picked = np.array([rng.permutation(50)[:10] for _ in range(200)])
    samples = sample(picked)
    mean = samples[50:].mean(axis=0)
    print("weights %.2f %.2f after %d steps" % (mean[0], mean[1], count.get_value()))
    found.update(mean=mean, w=w.get_value(), off=np.abs(mean - [1.5, -0.7]).max())
    return found


if __name__ == "__main__":
    main()
