"""Multi-class logistic regression by minibatch gradient descent with early stopping.

The data set is a gzipped pickle of (train, valid, test); the best model is pickled.
"""
from __future__ import print_function

import gzip
import os
import shutil
import sys
import tempfile
import timeit

import numpy

import theano
import theano.tensor as T

try:
    import cPickle as pickle
except ImportError:
    import pickle


class LogisticRegression(object):
    def __init__(self, input, n_in, n_out):
        self.W = theano.shared(
            value=numpy.zeros((n_in, n_out), dtype=theano.config.floatX), name='W', borrow=True)
        self.b = theano.shared(
            value=numpy.zeros((n_out,), dtype=theano.config.floatX), name='b', borrow=True)
        self.p_y_given_x = T.nnet.softmax(T.dot(input, self.W) + self.b)
        self.y_pred = T.argmax(self.p_y_given_x, axis=1)
        self.params = [self.W, self.b]
        self.input = input

    def negative_log_likelihood(self, y):
        return -T.mean(T.log(self.p_y_given_x)[T.arange(y.shape[0]), y])

    def errors(self, y):
        if y.ndim != self.y_pred.ndim:
            raise TypeError('y should have the same shape as self.y_pred',
                            ('y', y.type, 'y_pred', self.y_pred.type))
        if y.dtype.startswith('int'):
            return T.mean(T.neq(self.y_pred, y))
        else:
            raise NotImplementedError()


def make_data(path, sizes, n_in, n_out):
    rng = numpy.random.RandomState(3)
    centers = rng.randn(n_out, n_in)
    sets = []
    for n in sizes:
        y = rng.randint(0, n_out, n)
        sets.append((centers[y] + rng.randn(n, n_in), y))
    with gzip.open(path, 'wb') as f:
        pickle.dump(sets, f, protocol=2)


def load_data(path):
    with gzip.open(path, 'rb') as f:
        try:
            train_set, valid_set, test_set = pickle.load(f, encoding='latin1')
        except TypeError:
            train_set, valid_set, test_set = pickle.load(f)

    def shared_dataset(data_xy, borrow=True):
        data_x, data_y = data_xy
        shared_x = theano.shared(numpy.asarray(data_x, dtype=theano.config.floatX), borrow=borrow)
        shared_y = theano.shared(numpy.asarray(data_y, dtype=theano.config.floatX), borrow=borrow)
        # labels are stored as floats, as a GPU would have them, and used as ints
        return shared_x, T.cast(shared_y, 'int32')

    return [shared_dataset(s) for s in (train_set, valid_set, test_set)]


def sgd_optimization(path, learning_rate=0.13, n_epochs=6, batch_size=20, n_in=6, n_out=3,
                     sizes=(200, 100, 100)):
    make_data(path, sizes, n_in, n_out)
    datasets = load_data(path)
    (train_set_x, train_set_y), (valid_set_x, valid_set_y), (test_set_x, test_set_y) = datasets
    n_train_batches = train_set_x.get_value(borrow=True).shape[0] // batch_size
    n_valid_batches = valid_set_x.get_value(borrow=True).shape[0] // batch_size
    n_test_batches = test_set_x.get_value(borrow=True).shape[0] // batch_size

    index = T.lscalar()
    x = T.matrix('x')
    y = T.ivector('y')
    classifier = LogisticRegression(input=x, n_in=n_in, n_out=n_out)
    cost = classifier.negative_log_likelihood(y)

    def batch(data):
        return data[index * batch_size: (index + 1) * batch_size]

    test_model = theano.function(
        inputs=[index], outputs=classifier.errors(y),
        givens={x: batch(test_set_x), y: batch(test_set_y)})
    validate_model = theano.function(
        inputs=[index], outputs=classifier.errors(y),
        givens={x: batch(valid_set_x), y: batch(valid_set_y)})
    g_W = T.grad(cost=cost, wrt=classifier.W)
    g_b = T.grad(cost=cost, wrt=classifier.b)
    updates = [(classifier.W, classifier.W - learning_rate * g_W),
               (classifier.b, classifier.b - learning_rate * g_b)]
    train_model = theano.function(
        inputs=[index], outputs=cost, updates=updates,
        givens={x: batch(train_set_x), y: batch(train_set_y)})

    patience = 40
    patience_increase = 2
    improvement_threshold = 0.995
    validation_frequency = min(n_train_batches, patience // 2)
    best_validation_loss = numpy.inf
    test_score = 0.
    costs = []
    start_time = timeit.default_timer()
    done_looping = False
    epoch = 0
    while (epoch < n_epochs) and (not done_looping):
        epoch = epoch + 1
        for minibatch_index in range(n_train_batches):
            costs.append(train_model(minibatch_index))
            iter = (epoch - 1) * n_train_batches + minibatch_index
            if (iter + 1) % validation_frequency == 0:
                losses = [validate_model(i) for i in range(n_valid_batches)]
                this_validation_loss = numpy.mean(losses)
                print('epoch %i, minibatch %i/%i, validation error %f %%' % (
                    epoch, minibatch_index + 1, n_train_batches, this_validation_loss * 100.))
                if this_validation_loss < best_validation_loss:
                    if this_validation_loss < best_validation_loss * improvement_threshold:
                        patience = max(patience, iter * patience_increase)
                    best_validation_loss = this_validation_loss
                    test_score = numpy.mean([test_model(i) for i in range(n_test_batches)])
                    with open(os.path.join(os.path.dirname(path), 'best.pkl'), 'wb') as f:
                        pickle.dump(classifier, f)
            if patience <= iter:
                done_looping = True
                break
    print('%.1fs' % (timeit.default_timer() - start_time), file=sys.stderr)
    return costs, best_validation_loss, test_score, test_set_x


def predict(path, rows):
    with open(path, 'rb') as f:
        classifier = pickle.load(f)
    predict_model = theano.function(inputs=[classifier.input], outputs=classifier.y_pred)
    return predict_model(rows), classifier


def main(**options):
    folder = tempfile.mkdtemp()
    try:
        costs, best, score, test_set_x = sgd_optimization(
            os.path.join(folder, 'blobs.pkl.gz'), **options)
        print('best validation error %f %%, test error %f %%' % (best * 100., score * 100.))
        predicted, classifier = predict(
            os.path.join(folder, 'best.pkl'), test_set_x.get_value()[:10])
    finally:
        shutil.rmtree(folder)
    return {'costs': numpy.array(costs), 'predicted': predicted,
            'W': classifier.W.get_value(), 'b': classifier.b.get_value()}


if __name__ == '__main__':
    main()
