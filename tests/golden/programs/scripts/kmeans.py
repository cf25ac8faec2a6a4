"""k-means: batches of Lloyd's iterations, then a mini-batch variant with counts per cluster."""
from __future__ import print_function

import numpy as np

import theano
import theano.tensor as T
from theano.tensor.extra_ops import to_one_hot


class KMeans(object):
    def __init__(self, centroids):
        self.centroids = theano.shared(centroids.astype(theano.config.floatX), 'centroids')
        self.counts = theano.shared(np.zeros(len(centroids), dtype='int64'), 'counts')
        k = len(centroids)
        X = T.matrix('X')
        sq_dist = (T.sqr(X).sum(axis=1, keepdims=True) - 2 * T.dot(X, self.centroids.T) +
                   T.sqr(self.centroids).sum(axis=1))
        labels = T.argmin(sq_dist, axis=1)
        inertia = T.min(sq_dist, axis=1).sum()

        # Lloyd: every centroid moves to the mean of its points, an empty one stays
        member = to_one_hot(labels, k, dtype=theano.config.floatX)
        sizes = T.sum(member, axis=0)
        sums = T.dot(member.T, X)
        moved = T.switch(T.eq(sizes, 0).dimshuffle(0, 'x'), self.centroids,
                         sums / T.maximum(sizes, 1).dimshuffle(0, 'x'))
        shift = T.sqrt(T.sum((moved - self.centroids) ** 2))
        self.lloyd = theano.function([X], [inertia, shift], updates={self.centroids: moved})
        self.assign = theano.function([X], [labels, T.bincount(labels, minlength=k)])

        # mini-batches: the rate of a centroid falls with the points it has seen
        new_counts = T.inc_subtensor(self.counts[labels], 1)
        rate = 1. / T.cast(T.maximum(new_counts, 1), theano.config.floatX)
        step = rate[labels].dimshuffle(0, 'x') * (X - self.centroids[labels])
        self.minibatch = theano.function(
            [X], inertia,
            updates=[(self.counts, new_counts),
                     (self.centroids, T.inc_subtensor(self.centroids[labels], step))])


def plus_plus(rng, X, k):
    centroids = [X[rng.randint(len(X))]]
    for _ in range(k - 1):
        distance = np.min([((X - c) ** 2).sum(axis=1) for c in centroids], axis=0)
        centroids.append(X[np.searchsorted(np.cumsum(distance), rng.rand() * distance.sum())])
    return np.array(centroids)


def main(n=200, n_in=3, k=4, n_iter=5, batch_size=20):
    rng = np.random.RandomState(11)
    X = 3 * rng.randn(k, n_in)[rng.randint(0, k, n)] + rng.randn(n, n_in)
    X = np.asarray(X, dtype=theano.config.floatX)
    model = KMeans(plus_plus(rng, X, k))
    history = []
    for i in range(n_iter):
        inertia, shift = model.lloyd(X)
        print('iteration %d, inertia %.4f, shift %.5f' % (i, inertia, shift))
        history.append([inertia, shift])
    labels, sizes = model.assign(X)
    found = model.centroids.get_value()
    model.centroids.set_value(found + 0.5)
    inertias = [model.minibatch(X[start:start + batch_size])
                for start in range(0, n, batch_size)]
    return {'history': np.array(history), 'labels': labels, 'sizes': sizes, 'centroids': found,
            'inertias': np.array(inertias), 'after minibatches': model.centroids.get_value(),
            'counts': model.counts.get_value()}


if __name__ == '__main__':
    main()
