"""Skip-gram word embeddings with negative sampling; only the rows in use are updated."""
from __future__ import print_function

from collections import Counter

import numpy as np

import theano
import theano.tensor as T

SUBJECTS = 'cat dog horse bird'.split()
VERBS = 'eats sees likes'.split()
OBJECTS = 'bread fish corn grass'.split()


def make_corpus(rng, n_sentences):
    return [['the', rng.choice(SUBJECTS), rng.choice(VERBS), 'the', rng.choice(OBJECTS)]
            for _ in range(n_sentences)]


def make_pairs(sentences, vocabulary, window):
    pairs = []
    for sentence in sentences:
        ids = [vocabulary[word] for word in sentence]
        for i, center in enumerate(ids):
            for j in range(max(0, i - window), min(len(ids), i + window + 1)):
                if i != j:
                    pairs.append((center, ids[j]))
    return np.asarray(pairs, dtype='int32')


class SkipGram(object):
    def __init__(self, rng, n_words, n_dim):
        self.W_in = theano.shared(
            np.asarray((rng.rand(n_words, n_dim) - 0.5) / n_dim, dtype=theano.config.floatX),
            name='W_in')
        self.W_out = theano.shared(np.zeros((n_words, n_dim), dtype=theano.config.floatX),
                                   name='W_out')
        center = T.ivector('center')
        context = T.ivector('context')
        negative = T.imatrix('negative')
        lr = T.scalar('lr')

        v = self.W_in[center]
        u = self.W_out[context]
        u_neg = self.W_out[negative]
        positive_score = T.sum(v * u, axis=1)
        negative_score = T.batched_dot(u_neg, v)
        loss = -T.sum(T.log(T.nnet.sigmoid(positive_score)))
        loss -= T.sum(T.log(T.nnet.sigmoid(-negative_score)))

        g_v, g_u, g_neg = T.grad(loss, [v, u, u_neg])
        new_out = T.inc_subtensor(u, -lr * g_u)
        new_out = T.inc_subtensor(new_out[negative], -lr * g_neg)
        self.train = theano.function(
            inputs=[center, context, negative, theano.In(lr, value=0.05)],
            outputs=loss / center.shape[0],
            updates=[(self.W_in, T.inc_subtensor(v, -lr * g_v)), (self.W_out, new_out)],
            allow_input_downcast=True)

        word = T.iscalar('word')
        norms = T.sqrt(T.sum(self.W_in ** 2, axis=1))
        similarity = T.dot(self.W_in, self.W_in[word]) / (norms * norms[word])
        self.most_similar = theano.function([word], [T.argsort(-similarity)[1:4], similarity])
        # the gradient of everything by dense updates
        g_in = T.grad(loss, self.W_in)
        self.gradient = theano.function([center, context, negative], g_in)


def main(n_sentences=30, n_dim=6, window=2, n_negative=4, batch_size=32, n_epochs=3):
    rng = np.random.RandomState(42)
    sentences = make_corpus(rng, n_sentences)
    counts = Counter(word for sentence in sentences for word in sentence)
    words = sorted(counts, key=lambda w: (-counts[w], w))
    vocabulary = dict((word, i) for i, word in enumerate(words))
    pairs = make_pairs(sentences, vocabulary, window)
    table = np.array([counts[w] for w in words]) ** 0.75
    table /= table.sum()
    model = SkipGram(rng, len(words), n_dim)
    losses = []
    for epoch in range(n_epochs):
        rng.shuffle(pairs)
        for start in range(0, len(pairs) - batch_size + 1, batch_size):
            batch = pairs[start:start + batch_size]
            negative = rng.choice(len(words), size=(batch_size, n_negative), p=table)
            lr = 0.2 * (1 - epoch / float(n_epochs))
            losses.append(model.train(batch[:, 0], batch[:, 1], negative.astype('int32'), lr))
        print('epoch %d, loss %.5f' % (epoch, np.mean(losses[-10:])))
    nearest, similarity = model.most_similar(vocabulary['cat'])
    print('cat:', ' '.join(words[i] for i in nearest))
    gradient = model.gradient(batch[:, 0], batch[:, 1], negative.astype('int32'))
    return {'losses': np.array(losses), 'W_in': model.W_in.get_value(),
            'W_out': model.W_out.get_value(), 'similarity': similarity, 'gradient': gradient}


if __name__ == '__main__':
    main()
