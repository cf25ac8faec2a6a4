"""Choices of branches of different cost: a tree of conditions, its gradients, and what runs."""

from __future__ import print_function

import numpy as np

import theano
import theano.tensor as T
from theano.ifelse import ifelse


def costly(x, n=15):
    """The largest eigenvalue of a matrix, by power iteration."""
    v, _ = theano.scan(
        lambda v, x: T.dot(x, v) / T.sqrt(T.sum(T.dot(x, v) ** 2)),
        outputs_info=T.ones_like(x[0]),
        non_sequences=x,
        n_steps=n,
    )
    return T.dot(v[-1], T.dot(x, v[-1]))


def cheap(x):
    """A bound of it: the largest sum of a row."""
    return T.max(T.sum(abs(x), axis=1))


def tree(x, a, b, c):
    """Three leaves; the thresholds are data."""
    norm = T.sum(x**2)
    return ifelse(
        T.lt(norm, a),
        [T.sum(x), norm],
        list(ifelse(T.lt(norm, b), (T.sum(x**3), 2 * norm), (c * T.sum(T.tanh(x)), T.sqrt(norm)))),
    )


def main():
    rng = np.random.RandomState(21)
    m = T.matrix("m")
    exact = T.iscalar("exact")
    value = ifelse(exact, costly(m), cheap(m))
    slope = T.grad(value, m)
    f = theano.function([exact, m], [value, slope])
    A = rng.randn(6, 6)
    A = np.dot(A, A.T)
    found = {}
    for choice in (1, 0):
        top, gradient = f(choice, A)
        print(
            "%s: %.6f, its gradient sums to %.6f"
            % ("exact" if choice else "bound", top, gradient.sum())
        )
        found["value %d" % choice] = top
        found["slope %d" % choice] = gradient
    found["off"] = abs(found["value 1"] - np.linalg.eigvalsh(A)[-1])

    x, a, b, c = T.vector("x"), T.scalar("a"), T.scalar("b"), T.scalar("c")
    first, second = tree(x, a, b, c)
    g_x, g_c = T.grad(first + second**2, [x, c])
    leaves = theano.function([x, a, b, c], [first, second, g_x, g_c])
    rows = []
    for scale in (0.1, 1.0, 4.0):
        values = leaves(scale * np.array([0.5, -1.0, 0.75]), 0.5, 5.0, 3.0)
        rows.append([float(v.sum()) for v in values])
        print("scale %.1f: %s" % (scale, " ".join("%.6f" % v for v in rows[-1])))
    found["tree"] = rows

    # choices for each row of a batch, in a scan, with lists and their gradients
    X = T.matrix("X")

    def step(row, total, X):
        near = T.lt(T.sum(row**2), 1.0)
        one, two = ifelse(near, [row * 2, T.sum(row)], [T.tanh(row) - total.mean(), T.max(row)])
        return [total * 0.5 + one, two]

    (totals, seconds), _ = theano.scan(step, X, [T.zeros_like(X[0]), None], X)
    loss = T.sum(totals[-1] ** 2) + T.sum(seconds)
    h = theano.function([X], [totals, seconds, T.grad(loss, X)])
    batch = rng.uniform(-1, 1, (7, 3))
    found["batch"] = h(batch)
    print("loss of the batch %.6f" % (np.sum(found["batch"][0][-1] ** 2) + found["batch"][1].sum()))
    return found


if __name__ == "__main__":
    main()
