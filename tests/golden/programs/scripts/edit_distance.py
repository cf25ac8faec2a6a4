"""Edit distances, longest common subsequences and dynamic time warping: scans in scans."""

from __future__ import print_function

import numpy as np

import theano
import theano.tensor as T


def edit_distance(a, b):
    columns = T.arange(b.shape[0] + 1)

    def row(letter, before):
        def cell(other, diagonal, above, left, letter):
            return T.minimum(T.minimum(above, left) + 1, diagonal + T.neq(letter, other))

        first = before[0] + 1
        cells, _ = theano.scan(
            cell, sequences=[b, before[:-1], before[1:]], outputs_info=first, non_sequences=letter
        )
        return T.concatenate([first.dimshuffle("x"), cells])

    rows, _ = theano.scan(row, sequences=a, outputs_info=columns)
    return rows[-1, -1]


def common(a, b):
    """The length of the longest common subsequence, by a fold of folds."""

    def row(letter, before):
        def cell(other, diagonal, above, left, letter):
            return T.switch(T.eq(letter, other), diagonal + 1, T.maximum(above, left))

        zero = T.zeros_like(before[0])
        cells, _ = theano.scan(
            cell,
            sequences=[b, dict(input=before, taps=[0, 1])],
            outputs_info=zero,
            non_sequences=letter,
        )
        return T.concatenate([zero.dimshuffle("x"), cells])

    start = T.zeros((b.shape[0] + 1,), dtype="int64")
    last, _ = theano.foldl(row, sequences=a, outputs_info=start)
    return last[-1]


def warped(x, y, gamma):
    """Soft dynamic time warping: a distance with a gradient."""
    cost = (x.dimshuffle(0, "x") - y.dimshuffle("x", 0)) ** 2

    def soft_min(*values):
        s = T.stack(values)
        low = T.min(s, axis=0)
        return low - gamma * T.log(T.sum(T.exp(-(s - low) / gamma), axis=0))

    def row(costs, before):
        def cell(c, diagonal, above, left):
            return c + soft_min(diagonal, above, left)

        far = T.constant(np.float64(1e6))
        cells, _ = theano.scan(cell, sequences=[costs, before[:-1], before[1:]], outputs_info=far)
        return T.concatenate([far.dimshuffle("x"), cells])

    first = T.concatenate([T.zeros((1,)), 1e6 * T.ones((y.shape[0],))])
    rows, _ = theano.scan(row, sequences=cost, outputs_info=first)
    return rows[-1, -1]


def by_hand(a, b):
    d = np.arange(len(b) + 1)
    for x in a:
        e = [d[0] + 1]
        for j, y in enumerate(b):
            e.append(min(d[j + 1] + 1, e[-1] + 1, d[j] + (x != y)))
        d = np.array(e)
    return d[-1]


WORDS = ["kitten", "sitting", "saturday", "sunday", "theano", "piano"]


def main(n_steps=20):
    a, b = T.lvector("a"), T.lvector("b")
    distance = theano.function([a, b], [edit_distance(a, b), common(a, b)])
    found, wanted = [], []
    for one in WORDS:
        for two in WORDS:
            found.append(distance([ord(c) for c in one], [ord(c) for c in two]))
            wanted.append(by_hand(one, two))
    found = np.array(found)
    print("kitten and sitting: %d edits, %d letters in common" % tuple(found[1]))

    x, y = T.vector("x"), T.vector("y")
    cost = warped(x, y, 0.1)
    step = theano.function([x, y], [cost, x - 0.1 * T.grad(cost, x)])
    curve = np.zeros(6)
    target = np.sin(np.linspace(0, 4, 7))
    costs = []
    for _ in range(n_steps):
        cost_now, curve = step(curve, target)
        costs.append(cost_now)
    print("distance %.4f, then %.4f" % (costs[0], costs[-1]))
    return {
        "found": found,
        "right": np.mean(found[:, 0] == np.array(wanted)),
        "costs": np.array(costs),
        "curve": curve,
    }


if __name__ == "__main__":
    main()
