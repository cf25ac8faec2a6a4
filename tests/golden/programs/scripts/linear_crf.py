"""A linear-chain conditional random field over short sentences, its recursions unrolled."""
from __future__ import print_function

import numpy as np

import theano
import theano.tensor as T


def log_sum_exp(x, axis):
    xmax = x.max(axis=axis, keepdims=True)
    xmax_ = x.max(axis=axis)
    return xmax_ + T.log(T.exp(x - xmax).sum(axis=axis))


class CRF(object):
    """Scores of tags by words, and of tag pairs; the batch comes first, then time."""

    def __init__(self, rng, n_words, n_tags, length):
        self.E = theano.shared(0.1 * rng.randn(n_words, n_tags), name='E')
        self.A = theano.shared(0.1 * rng.randn(n_tags, n_tags), name='A')
        self.start = theano.shared(np.zeros(n_tags), name='start')
        self.params = [self.E, self.A, self.start]
        self.words, self.tags = T.imatrix('words'), T.imatrix('tags')
        scores = self.E[self.words]
        rows = T.arange(self.words.shape[0])

        path = self.start[self.tags[:, 0]]
        for t in range(length):
            path = path + scores[rows, t, self.tags[:, t]]
        path = path + self.A[self.tags[:, :-1], self.tags[:, 1:]].sum(axis=1)

        alpha = self.start + scores[:, 0]
        delta, back = alpha, []
        for t in range(1, length):
            alpha = log_sum_exp(alpha.dimshuffle(0, 1, 'x') + self.A + scores[:, t, None, :], 1)
            through = delta[:, :, None] + self.A[None, :, :]
            best, which = T.max_and_argmax(through, axis=1)
            delta = best + scores[:, t]
            back.append(which)
        log_Z = log_sum_exp(alpha, 1)
        self.nll = T.mean(log_Z - path)

        decoded = [T.argmax(delta, axis=1)]
        for which in reversed(back):
            decoded.append(which[rows, decoded[-1]])
        self.decoded = T.stack(decoded[::-1], axis=1)
        # the marginals are the gradient of the partition function
        self.marginals = T.grad(log_Z.sum(), scores)


def main(n=40, n_words=12, n_tags=3, length=6, n_steps=15, rate=0.5, l2=1e-3):
    rng = np.random.RandomState(55)
    emissions = rng.dirichlet(0.3 * np.ones(n_words), n_tags)
    moves = rng.dirichlet(0.5 * np.ones(n_tags), n_tags)
    words, tags = np.zeros((2, n, length), dtype='int32')
    for i in range(n):
        tag = rng.randint(n_tags)
        for t in range(length):
            tags[i, t], words[i, t] = tag, rng.choice(n_words, p=emissions[tag])
            tag = rng.choice(n_tags, p=moves[tag])
    crf = CRF(rng, n_words, n_tags, length)
    cost = crf.nll + l2 * sum((p ** 2).sum() for p in crf.params)
    accumulators = [theano.shared(np.zeros_like(p.get_value())) for p in crf.params]
    updates = []
    for p, a, g in zip(crf.params, accumulators, T.grad(cost, crf.params)):
        new_a = a + T.sqr(g)
        updates += [(a, new_a), (p, p - rate * g / T.sqrt(new_a + 1e-8))]
    train = theano.function([crf.words, crf.tags], cost, updates=updates)
    decode = theano.function([crf.words], [crf.decoded, crf.marginals])
    costs = [train(words, tags) for _ in range(n_steps)]
    decoded, marginals = decode(words[:8])
    print('cost %.5f to %.5f, accuracy %.3f' % (
        costs[0], costs[-1], (decoded == tags[:8]).mean()))
    return {'costs': np.array(costs), 'decoded': decoded, 'marginals': marginals,
            'params': [p.get_value() for p in crf.params]}


if __name__ == '__main__':
    main()
