"""A language model over two words: the two-level softmax, a binary tree, and class weights."""
from __future__ import print_function

import numpy as np

import theano
import theano.tensor as T
from theano.tensor.nnet import h_softmax


def shared(rng, *shape):
    bound = np.sqrt(6. / sum(shape))
    return theano.shared(rng.uniform(-bound, bound, shape).astype(theano.config.floatX))


class TwoLevels(object):
    def __init__(self, rng, h, y, n_hidden, n_classes, batch_size):
        per_class = int(np.ceil(np.sqrt(n_classes)))
        groups = int(np.ceil(n_classes / float(per_class)))
        W1, b1 = shared(rng, n_hidden, groups), shared(rng, groups)
        W2, b2 = shared(rng, groups, n_hidden, per_class), shared(rng, groups, per_class)
        self.params = [W1, b1, W2, b2]
        p = h_softmax(h, batch_size, n_classes, groups, per_class, W1, b1, W2, b2, y)
        self.cost = -T.mean(T.log(p))
        self.outputs = h_softmax(h, batch_size, n_classes, groups, per_class, W1, b1, W2, b2)


class Tree(object):
    """Every class is a leaf of a complete binary tree; its path is a row of codes."""

    def __init__(self, rng, h, y, n_hidden, n_classes, batch_size):
        depth = int(np.ceil(np.log2(n_classes)))
        nodes = np.zeros((n_classes, depth), dtype='int32')
        codes = np.zeros((n_classes, depth), dtype=theano.config.floatX)
        for leaf in range(n_classes):
            node = 0
            for level in range(depth):
                bit = (leaf >> (depth - 1 - level)) & 1
                nodes[leaf, level], codes[leaf, level] = node, 2 * bit - 1
                node = 2 * node + 1 + bit
        W, b = shared(rng, 2 ** depth - 1, n_hidden), shared(rng, 2 ** depth - 1)
        self.params = [W, b]
        nodes, codes = theano.shared(nodes, borrow=True), theano.shared(codes, borrow=True)
        path = nodes[y]
        scores = T.batched_dot(W[path], h) + b[path]
        self.cost = T.mean(T.sum(T.nnet.softplus(-codes[y] * scores), axis=1))
        everything = T.dot(h, W.T) + b
        log_p = -T.nnet.softplus(-codes * everything[:, nodes.flatten()].reshape(
            (h.shape[0], n_classes, depth)))
        self.outputs = T.exp(log_p.sum(axis=2))


class Weighted(object):
    """A full softmax whose rare classes count for more."""

    def __init__(self, rng, h, y, n_hidden, n_classes, batch_size):
        W, b = shared(rng, n_hidden, n_classes), shared(rng, n_classes)
        self.params = [W, b]
        counts = T.extra_ops.bincount(y, minlength=n_classes)
        weights = T.cast(y.shape[0], theano.config.floatX) / (n_classes * T.maximum(counts, 1))
        weights = T.cast(weights, theano.config.floatX)
        self.outputs = T.nnet.softmax(T.dot(h, W) + b)
        losses = T.nnet.categorical_crossentropy(self.outputs, y)
        self.cost = T.sum(losses * weights[y]) / T.sum(weights[y])


def train(kind, contexts, target, n_words, n_dim, n_hidden, n_epochs, batch_size, rate):
    rng = np.random.RandomState(93)
    x, y = T.imatrix('x'), T.ivector('y')
    emb, W, b = shared(rng, n_words, n_dim), shared(rng, 2 * n_dim, n_hidden), shared(rng, n_hidden)
    h = T.tanh(T.dot(emb[x].reshape((x.shape[0], 2 * n_dim)), W) + b)
    model = kind(rng, h, y, n_hidden, n_words, batch_size)
    params = [emb, W, b] + model.params
    updates = [(p, p - rate * g) for p, g in zip(params, T.grad(model.cost, params))]
    step = theano.function([x, y], model.cost, updates=updates)
    predict = theano.function([x], model.outputs)
    costs = [step(contexts[i:i + batch_size], target[i:i + batch_size])
             for _ in range(n_epochs) for i in range(0, len(target), batch_size)]
    p = predict(contexts[:batch_size])
    print('%s: cost %.5f to %.5f, %.4f of 1' % (
        kind.__name__, costs[0], costs[-1], p.sum(axis=1).mean()))
    return {'costs': np.array(costs), 'p': p[:4], 'params': [v.get_value() for v in params]}


def main(n=60, n_words=8, n_dim=4, n_hidden=6, n_epochs=4, batch_size=20, rate=0.3):
    rng = np.random.RandomState(92)
    contexts = rng.randint(0, n_words, (n, 2)).astype('int32')
    target = ((contexts[:, 0] + contexts[:, 1] // 2) % n_words).astype('int32')
    return dict((kind.__name__, train(kind, contexts, target, n_words, n_dim, n_hidden, n_epochs,
                                      batch_size, rate)) for kind in (TwoLevels, Tree, Weighted))


if __name__ == '__main__':
    main()
