"""A beam search in nested scans over a trained bigram model, and the exact best by hand."""

from __future__ import print_function

import itertools

import numpy as np

import theano
import theano.tensor as T


def beam_search(log_start, log_next, width, length):
    """The best sequences of symbols, their scores, and how they came about."""
    n = log_start.shape[0]
    order = T.argsort(-log_start)
    first = order[:width]

    def grow(scores, last, log_next):
        # the scores of all symbols behind each hypothesis, one after the other
        behind, _ = theano.scan(
            lambda s, k, log_next: s + log_next[k], sequences=[scores, last], non_sequences=log_next
        )
        flat = behind.flatten()
        best = T.argsort(-flat)[:width]
        return flat[best], best % n, best // n

    (scores, symbols, parents), _ = theano.scan(
        grow,
        outputs_info=[log_start[first], first, None],
        non_sequences=log_next,
        n_steps=length - 1,
    )

    def trace(symbol_row, parent_row, places):
        return parent_row[places], symbol_row[places]

    (_, path), _ = theano.scan(
        trace, sequences=[symbols, parents], outputs_info=[T.arange(width), None], go_backwards=True
    )
    places, _ = theano.scan(
        lambda parent_row, places: parent_row[places],
        sequences=parents,
        outputs_info=T.arange(width),
        go_backwards=True,
    )
    sequences = T.concatenate([first[places[-1]].dimshuffle("x", 0), path[::-1]])
    return sequences.T, scores[-1]


TEXT = "she sells sea shells on the sea shore. the shells she sells are sea shells, i am sure. "


def main(width=6, length=5):
    chars = sorted(set(TEXT))
    text = np.array([chars.index(c) for c in TEXT])
    counts = 0.05 + 0.01 * np.random.RandomState(1).rand(len(chars), len(chars))
    for a, b in zip(text, text[1:]):
        counts[a, b] += 1
    log_next = np.log(counts / counts.sum(axis=1, keepdims=True))
    start = np.bincount(text, minlength=len(chars)) + 0.5 + 0.01 * np.arange(len(chars))
    log_start = np.log(start / start.sum())
    s, p = T.vector("s"), T.matrix("p")
    search = theano.function([s, p], beam_search(s, p, width, length))
    found, scores = search(log_start, log_next)
    print("|".join("".join(chars[k] for k in row) for row in found))
    # exact: the best path of this length
    best = log_start
    for _ in range(length - 1):
        best = np.max(best[:, None] + log_next, axis=0)
    # of a small model, all sequences
    small = np.log(np.random.RandomState(0).dirichlet(np.ones(3), size=4))
    every = [
        (small[0][list(q)[0]] + sum(small[1 + a][b] for a, b in zip(q, q[1:])), q)
        for q in itertools.product(range(3), repeat=4)
    ]
    wide = theano.function([s, p], beam_search(s, p, 3, 4))
    few, their = wide(small[0], small[1:])
    top = max(every)
    print("the best of all: %s, of the beam: %s" % (list(top[1]), few[0].tolist()))
    return {
        "found": found,
        "scores": scores,
        "gap": best.max() - scores[0],
        "few": few,
        "their": their,
        "exact": top[0] - their[0],
    }


if __name__ == "__main__":
    main()
