"""Training by the bold driver: updates of shared variables are kept or taken back by a choice."""

from __future__ import print_function

import numpy as np

import theano
import theano.tensor as T
from theano.ifelse import ifelse


def data(n=120):
    rng = np.random.RandomState(11)
    x = rng.uniform(-2, 2, (n, 2))
    return x, (np.sin(2 * x[:, 0]) * x[:, 1] > 0).astype("int64")


def main(n_epochs=60, n_hidden=12):
    rng = np.random.RandomState(3)
    x, y = T.matrix("x"), T.lvector("y")
    params = [
        theano.shared(0.7 * rng.randn(2, n_hidden), "w"),
        theano.shared(np.zeros(n_hidden), "b"),
        theano.shared(0.7 * rng.randn(n_hidden, 2), "v"),
        theano.shared(np.zeros(2), "c"),
    ]
    best = [theano.shared(p.get_value(), "best_" + p.name) for p in params]
    speeds = [theano.shared(np.zeros_like(p.get_value())) for p in params]
    rate = theano.shared(np.float64(0.5), "rate")
    least = theano.shared(np.float64(1e6), "least")
    backs = theano.shared(np.int64(0), "backs")

    w, b, v, c = params
    out = T.nnet.softmax(T.dot(T.tanh(T.dot(x, w) + b), v) + c)
    cost = T.nnet.categorical_crossentropy(out, y).mean() + 1e-4 * (T.sqr(w).sum() + T.sqr(v).sum())
    grads = T.grad(cost, params)

    # a step that made it worse is taken back, and what follows is slower
    worse = T.gt(cost, 1.02 * least)
    momentum = ifelse(T.lt(least, 0.3), T.constant(np.float64(0.9)), T.constant(np.float64(0.5)))
    stepped = [momentum * s - rate * g for s, g in zip(speeds, grads)]
    news = ifelse(
        worse,
        best + [T.zeros_like(s) for s in speeds] + [0.5 * rate, least, backs + 1],
        [p + s for p, s in zip(params, stepped)] + stepped + [1.05 * rate, cost, backs],
    )
    updates = list(zip(params + speeds + [rate, least, backs], news))
    updates += [(old, ifelse(worse, old, p)) for old, p in zip(best, params)]
    train = theano.function([x, y], [cost, worse], updates=updates)
    accuracy = theano.function([x, y], T.mean(T.eq(T.argmax(out, axis=1), y)))

    values, labels = data()
    costs = []
    for epoch in range(n_epochs):
        now, back = train(values, labels)
        costs.append(float(now))
        if epoch % 20 == 0:
            print("epoch %2d: cost %.5f, rate %.4f" % (epoch, now, rate.get_value()))
    print("taken back %d times, cost %.5f" % (backs.get_value(), least.get_value()))
    return {
        "accuracy": float(accuracy(values, labels)),
        "costs": costs[::6],
        "backs": int(backs.get_value()),
        "rate": float(rate.get_value()),
        "w": w.get_value()[:, :3],
    }


if __name__ == "__main__":
    main()
