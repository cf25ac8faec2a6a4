"""The CTC loss as a scan over frames in the log domain; a linear network that learns to align."""

from __future__ import print_function

import itertools

import numpy as np

import theano
import theano.tensor as T

BLANK = 0
MINUS_INF = -1e20


def log_add(a, b):
    top = T.maximum(a, b)
    return top + T.log1p(T.exp(-abs(a - b)))


def with_blanks(y):
    """Labels l1 l2 ... as blank l1 blank l2 ... blank."""
    n = 2 * y.shape[0] + 1
    return T.set_subtensor(T.zeros((n,), dtype="int32")[1::2], y)


def ctc_cost(log_p, y):
    """-log of the probability of the labels y, given log probabilities (frame, symbol)."""
    labels = with_blanks(y)
    n = labels.shape[0]
    # from two labels back only onto a label that differs from the last one
    same = T.eq(labels[2:], labels[:-2])
    skips = T.concatenate(
        [T.zeros((2,), dtype="int8"), T.cast((1 - same) * T.neq(labels[2:], BLANK), "int8")]
    )
    started = T.switch(T.lt(T.arange(n), 2), 0.0, MINUS_INF)

    def back(a, k):
        return T.concatenate([MINUS_INF * T.ones((k,)), a[:-k]])

    def frame(p, alpha, skips):
        stay = log_add(alpha, back(alpha, 1))
        jump = T.switch(skips, back(alpha, 2), MINUS_INF)
        return log_add(stay, jump) + p

    rows = log_p[:, labels]
    first = started + rows[0]
    alphas, _ = theano.scan(
        frame, sequences=[rows[1:]], outputs_info=[first], non_sequences=[skips]
    )
    return -log_add(alphas[-1, -1], alphas[-1, -2])


def by_hand(p, y):
    """The same, as a sum over all paths."""
    total = 0.0
    for path in itertools.product(range(p.shape[1]), repeat=len(p)):
        kept = [k for i, k in enumerate(path) if k != BLANK and (i == 0 or path[i - 1] != k)]
        if kept == list(y):
            total += np.prod(p[np.arange(len(p)), list(path)])
    return -np.log(total)


def collapsed(best):
    return [int(k) for i, k in enumerate(best) if k != BLANK and (i == 0 or best[i - 1] != k)]


def main(n_symbols=4, n_features=5, n_epochs=40):
    rng = np.random.RandomState(2)
    p_in, y = T.matrix("p"), T.ivector("y")
    cost = theano.function([p_in, y], ctc_cost(T.log(p_in), y))
    p = rng.dirichlet(np.ones(3), size=5)
    checks = []
    for labels in ([1], [1, 2], [1, 1], [2, 1, 2], [2, 2, 1]):
        checks.append([cost(p, np.array(labels, dtype="int32")), by_hand(p, labels)])
    checks = np.array(checks)
    print("against all paths:", " ".join("%.4f" % v for v in checks[:, 0]))

    codes = rng.randn(n_symbols, n_features)

    def spoken():
        labels = rng.randint(1, n_symbols, 4).astype("int32")
        frames = []
        for k in labels:
            frames += [codes[k]] * rng.randint(1, 3) + [codes[BLANK]]
        return np.array(frames) + 0.1 * rng.randn(len(frames), n_features), labels

    x = T.matrix("x")
    W = theano.shared(0.1 * rng.randn(n_features, n_symbols), "W")
    b = theano.shared(np.zeros(n_symbols), "b")
    s = T.dot(x, W) + b
    log_p = s - T.log(T.sum(T.exp(s), axis=1, keepdims=True))
    loss = ctc_cost(log_p, y)
    grads = T.grad(loss, [W, b])
    train = theano.function([x, y], loss, updates=[(v, v - 0.1 * g) for v, g in zip([W, b], grads)])
    best = theano.function([x], T.argmax(s, axis=1))
    data = [spoken() for _ in range(6)]
    losses = np.array([np.mean([train(*d) for d in data]) for _ in range(n_epochs)])
    test = [spoken() for _ in range(10)]
    right = np.mean([collapsed(best(frames)) == list(labels) for frames, labels in test])
    print(
        "loss %.4f, then %.4f; %d%% of new sequences right" % (losses[0], losses[-1], 100 * right)
    )
    return {"checks": checks, "losses": losses, "right": right, "W": W.get_value()}


if __name__ == "__main__":
    main()
