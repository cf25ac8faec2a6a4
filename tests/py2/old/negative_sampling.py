"""Vectors of words: pairs from sentences, sampled wrong words, rows that are updated alone."""
from __future__ import division, with_statement
import itertools
import logging
import operator
import shelve
import string
import sys

import numpy
import theano
import theano.tensor as TT

log = logging.getLogger('words')
log.addHandler(logging.StreamHandler(sys.stdout))
log.setLevel(logging.INFO)

SENTENCES = """the cat sat on the mat
the dog sat on the rug
a cat and a dog met on the mat
the king met the queen
a queen and a king sat on the throne"""


class Vocabulary(dict):
    def __init__(self, lines):
        counts = {}
        for word in itertools.chain(*map(string.split, lines)):
            counts[word] = counts.get(word, 0) + 1
        ordered = sorted(counts.iteritems(), key=lambda (w, n): (-n, w))
        dict.__init__(self, ((w, i) for i, (w, n) in enumerate(ordered)))
        self.words = map(operator.itemgetter(0), ordered)
        self.frequencies = numpy.array([n for _, n in ordered], 'float') ** .75
        self.frequencies /= self.frequencies.sum()

    def __missing__(self, word):
        raise KeyError, word


def pairs(vocabulary, lines, window):
    for line in lines:
        ids = [vocabulary[w] for w in line.split()]
        for position, centre in enumerate(ids):
            for other in range(max(0, position - window), min(len(ids), position + window + 1)):
                if other <> position:
                    yield centre, ids[other]


class SkipGram(object):
    def __init__(self, vocabulary, dim=5, negative=3, seed=1):
        self.rng = numpy.random.RandomState(seed)
        self.vocabulary, self.negative = vocabulary, negative
        n = len(vocabulary)
        floatX = theano.config.floatX
        self.W = theano.shared((self.rng.rand(n, dim) - .5).astype(floatX) / dim, 'W')
        self.C = theano.shared(numpy.zeros((n, dim), dtype=floatX), 'C')
        centres, words = TT.lvector('centres'), TT.lmatrix('words')
        rate = TT.scalar('rate')
        w, c = self.W[centres], self.C[words]
        scores = (w[:, None, :] * c).sum(axis=2)
        labels = TT.set_subtensor(TT.zeros_like(scores)[:, 0], 1.)
        cost = TT.nnet.binary_crossentropy(TT.clip(TT.nnet.sigmoid(scores), 1e-6, 1 - 1e-6),
                                           labels).sum()
        gw, gc = TT.grad(cost, [w, c])
        updates = [(self.W, TT.inc_subtensor(w, -rate * gw)),
                   (self.C, TT.inc_subtensor(c, -rate * gc))]
        self.step = theano.function([centres, words, rate], cost, updates=updates)
        query = TT.lscalar('query')
        normed = self.W / self.W.norm(2, axis=1).dimshuffle(0, 'x')
        similar = TT.dot(normed, normed[query])
        self.nearest = theano.function([query], [similar, TT.argsort(-similar)])

    def train(self, lines, epochs, window=2, batch=16):
        data = numpy.array(list(pairs(self.vocabulary, lines, window)))
        for epoch in xrange(epochs):
            total, n = 0, 0
            for at in xrange(0, len(data), batch):
                centre, word = data[at:at + batch].T
                noise = self.rng.choice(len(self.vocabulary), (len(centre), self.negative),
                                        p=self.vocabulary.frequencies)
                total += self.step(centre, numpy.column_stack([word, noise]), .2)
                n += len(centre)
            if epoch % 10 == 9:
                log.info('epoch %d: cost %.5f a pair', epoch + 1, total / n)


def indexing():
    """Elements by lists, masks and mixtures of them, and what updates of them give."""
    x = TT.dmatrix('x')
    i, j = TT.lvectors('i', 'j')
    f = theano.function([x, i, j], [
        x[i, j], x[:, j].shape, TT.set_subtensor(x[i, j], 9.)[0], TT.inc_subtensor(x[i], 1.)[0],
        TT.grad((x[i, j] ** 2).sum(), x), x[(x > 4).nonzero()], x.take(i, axis=1)[:, 0],
        x[i][:, ::-1][0], TT.inc_subtensor(x[1:, ::2], x[:-1, :2])[-1]])
    for value in f(numpy.arange(12.).reshape(3, 4), [0, 2, 0], [1, 3, 1]):
        print value.tolist(),
    print
    v = theano.shared(numpy.zeros(4))
    bump = theano.function([i], updates={v: TT.inc_subtensor(v[i], 1)})
    bump([1, 1, 3])
    bump(numpy.array([1]))
    print v.get_value(), TT.bincount(i).eval({i: [1, 1, 3]}), v[[0, 1]].eval(), v[-1].eval()
    try:
        bump([7])
    except IndexError, e:
        print 'IndexError', v.get_value()


def main(folder):
    lines = SENTENCES.splitlines()
    vocabulary = Vocabulary(lines)
    print len(vocabulary), vocabulary.words[:4], '%.4f' % vocabulary.frequencies[0]
    model = SkipGram(vocabulary)
    model.train(lines, 40)
    for word in 'cat king'.split():
        scores, order = model.nearest(vocabulary[word])
        print word.ljust(6), [(vocabulary.words[k], '%.3f' % scores[k]) for k in order[:4]]
    kept = shelve.open(folder + '/words.shelf', protocol=2)
    kept['W'] = model.W.get_value()
    kept['words'] = vocabulary.words
    kept.close()
    kept = shelve.open(folder + '/words.shelf')
    print sorted(kept.keys()), kept['W'].shape, kept['words'][0], 1 / 2, 7 // 2
    kept.close()
    try:
        vocabulary['unicorn']
    except KeyError, e:
        print 'unknown:', e


if __name__ == '__main__':
    import shutil
    import tempfile
    folder = tempfile.mkdtemp()
    try:
        main(folder)
    finally:
        shutil.rmtree(folder)
    indexing()
