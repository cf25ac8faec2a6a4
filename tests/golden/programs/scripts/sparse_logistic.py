"""Bag-of-words logistic regression: rows of a shared CSR matrix, weights made sparse by L1."""
from __future__ import print_function

import numpy as np
import scipy.sparse as sp

import theano
import theano.sparse as sparse
import theano.tensor as T


def make_documents(rng, n, n_words, density=0.1):
    counts = rng.poisson(1.0, (n, n_words)) * (rng.uniform(size=(n, n_words)) < density)
    weights = rng.randn(n_words) * (rng.uniform(size=n_words) < 0.3)
    labels = (np.dot(counts, weights) + 0.3 * rng.randn(n) > 0).astype('int32')
    return sp.csr_matrix(counts.astype(theano.config.floatX)), labels


def soft_threshold(w, amount):
    return T.sgn(w) * T.maximum(abs(w) - amount, 0)


class SparseLogisticRegression(object):
    def __init__(self, n_words):
        self.w = theano.shared(np.zeros((n_words, 1), dtype=theano.config.floatX), name='w')
        self.b = theano.shared(np.zeros(1, dtype=theano.config.floatX), name='b',
                               broadcastable=(True,))
        self.params = [self.w, self.b]

    def probability(self, x):
        return T.nnet.sigmoid(T.flatten(sparse.structured_dot(x, self.w) + self.b))

    def cost(self, x, y):
        p = self.probability(x)
        return T.mean(T.nnet.binary_crossentropy(p, y))


def main(n=120, n_words=30, batch_size=20, n_epochs=4, rate=0.5, l1=0.01):
    rng = np.random.RandomState(17)
    docs, labels = make_documents(rng, n, n_words)
    norms = np.asarray(np.sqrt(docs.multiply(docs).sum(axis=1))).ravel()
    train_x = sparse.shared(docs, name='train_x', borrow=True)
    train_y = theano.shared(labels, name='train_y')
    index = T.lscalar('index')
    x = sparse.csr_matrix('x', dtype=theano.config.floatX)
    y = T.ivector('y')
    model = SparseLogisticRegression(n_words)
    cost = model.cost(x, y)
    gw, gb = T.grad(cost, model.params)
    w_new = soft_threshold(model.w - rate * gw, rate * l1)
    train = theano.function(
        [index], cost,
        updates=[(model.w, w_new), (model.b, model.b - rate * gb)],
        givens={x: train_x[index * batch_size:(index + 1) * batch_size],
                y: train_y[index * batch_size:(index + 1) * batch_size]})
    # the same rows scaled to unit length, and statistics of the words
    scale = T.vector('scale')
    normalised = sparse.row_scale(x, 1 / scale)
    predict = theano.function([x, scale], model.probability(normalised))
    words = theano.function([x], [sparse.sp_sum(x, axis=0), sparse.sp_sum(x, axis=1)])
    sparse_grad = theano.function([x, y], gw)
    costs = []
    for epoch in range(n_epochs):
        for i in range(n // batch_size):
            costs.append(train(i))
        zeros = int((model.w.get_value() == 0).sum())
        print('epoch %d, cost %.5f, %d of %d weights are 0' % (
            epoch, np.mean(costs[-(n // batch_size):]), zeros, n_words))
    scales = np.asarray(np.maximum(norms, 1), dtype=theano.config.floatX)
    return {'costs': np.array(costs), 'w': model.w.get_value(), 'b': model.b.get_value(),
            'predicted': predict(docs, scales), 'words': words(docs),
            'gradient': sparse_grad(docs, labels)}


if __name__ == '__main__':
    main()
