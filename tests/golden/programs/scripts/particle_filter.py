"""A particle filter: predicts, weighs and draws again in each step of a scan."""

from __future__ import print_function

import numpy as np

import theano
import theano.tensor as T
from theano.tensor.shared_randomstreams import RandomStreams


def particle_filter(ys, n, streams):
    def step(y, k, x):
        mean = 0.5 * x + 25 * x / (1 + x**2) + 8 * T.cos(1.2 * k)
        moved = mean + streams.normal((n,), std=1.0)
        logw = -0.5 * (y - moved**2 / 20.0) ** 2
        top = T.max(logw)
        w = T.exp(logw - top)
        total = T.sum(w)
        w = w / total
        # systematic resampling
        places = (T.arange(n) + streams.uniform(())) / n
        picked = T.sum(T.lt(T.cumsum(w).dimshuffle(0, "x"), places.dimshuffle("x", 0)), axis=0)
        x_new = moved[T.minimum(picked, n - 1)]
        return [
            x_new,
            T.dot(w, moved),
            T.log(total / n) + top - 0.5 * np.log(2 * np.pi),
            1.0 / T.sum(w**2),
        ]

    x0 = 2.0 * streams.normal((n,))
    [_, means, logps, sizes], updates = theano.scan(
        step, sequences=[ys, T.arange(ys.shape[0])], outputs_info=[x0, None, None, None]
    )
    return means, logps.sum(), sizes, updates


def main(length=30, n=200):
    rng = np.random.RandomState(31)
    x, states, measured = 0.1, [], []
    for k in range(length):
        x = 0.5 * x + 25 * x / (1 + x**2) + 8 * np.cos(1.2 * k) + rng.randn()
        states.append(x)
        measured.append(x**2 / 20.0 + rng.randn())
    states, measured = np.array(states), np.array(measured)
    ys = T.vector("ys")
    means, loglik, sizes, updates = particle_filter(ys, n, RandomStreams(17))
    run = theano.function([ys], [means, loglik, sizes], updates=updates)
    found = [run(measured) for _ in range(3)]
    error = np.sqrt(np.mean((np.mean([f[0] for f in found], axis=0) - states) ** 2))
    print("error %.3f of states that spread by %.3f" % (error, states.std()))
    print("log-likelihoods", " ".join("%.2f" % f[1] for f in found))
    return {
        "means": found[-1][0],
        "logliks": np.array([f[1] for f in found]),
        "sizes": found[-1][2],
        "error": error / states.std(),
    }


if __name__ == "__main__":
    main()
