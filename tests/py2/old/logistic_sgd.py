# -*- coding: latin-1 -*-
"""Logistic regression by minibatch gradient descent with early stopping. Auteur: René."""
__docformat__ = 'restructedtext en'

import cPickle
import gzip
import os
import sys
import time

import numpy

import theano
import theano.tensor as T


class LogisticRegression(object):
	def __init__(self, input, n_in, n_out):
		self.W = theano.shared(value=numpy.zeros((n_in, n_out), dtype=theano.config.floatX),
		                       name='W', borrow=True)
	        self.b = theano.shared(value=numpy.zeros((n_out,), dtype=theano.config.floatX),
		                       name='b', borrow=True)
		self.p_y_given_x = T.nnet.softmax(T.dot(input, self.W) + self.b)
		self.y_pred = T.argmax(self.p_y_given_x, axis=1)
		self.params = [self.W, self.b]
		self.input = input

	def negative_log_likelihood(self, y):
		return -T.mean(T.log(self.p_y_given_x)[T.arange(y.shape[0]), y])

	def errors(self, y):
		if y.ndim <> self.y_pred.ndim:
			raise TypeError, ('y should have the same shape as self.y_pred', y.type)
		if not y.dtype.startswith('int'):
			raise NotImplementedError()
		return T.mean(T.neq(self.y_pred, y))


def make_data(path):
    rng = numpy.random.RandomState(3)
    sets = []
    for n in (600, 200, 200):
        y = rng.randint(0, 3, n)
        centers = numpy.asarray([[2, 0, 0, 1], [0, 2, 1, 0], [-1, -1, 1, 2]])
        sets.append((centers[y] + rng.randn(n, 4), y))
    f = gzip.open(path, 'wb')
    cPickle.dump(sets, f, protocol=cPickle.HIGHEST_PROTOCOL)
    f.close()


def load_data(dataset):
    data_dir, data_file = os.path.split(dataset)
    if not os.path.isfile(dataset):
        make_data(dataset)
    print '... loading data'
    f = gzip.open(dataset, 'rb')
    train_set, valid_set, test_set = cPickle.load(f)
    f.close()

    def shared_dataset((data_x, data_y), borrow=True):
        shared_x = theano.shared(numpy.asarray(data_x, dtype=theano.config.floatX), borrow=borrow)
        shared_y = theano.shared(numpy.asarray(data_y, dtype=theano.config.floatX), borrow=borrow)
        return shared_x, T.cast(shared_y, 'int32')

    return map(shared_dataset, [train_set, valid_set, test_set])


def sgd_optimization(learning_rate=0.13, n_epochs=20L, dataset='blobs.pkl.gz', batch_size=50):
    datasets = load_data(dataset)
    (train_set_x, train_set_y), (valid_set_x, valid_set_y), (test_set_x, test_set_y) = datasets
    n_train_batches = train_set_x.get_value(borrow=True).shape[0] / batch_size
    n_valid_batches = valid_set_x.get_value(borrow=True).shape[0] / batch_size
    n_test_batches = test_set_x.get_value(borrow=True).shape[0] / batch_size

    print '... building the model'
    index = T.lscalar()
    x = T.matrix('x')
    y = T.ivector('y')
    classifier = LogisticRegression(input=x, n_in=4, n_out=3)
    cost = classifier.negative_log_likelihood(y)
    test_model = theano.function(
        inputs=[index], outputs=classifier.errors(y), name='test_model',
        givens={x: test_set_x[index * batch_size: (index + 1) * batch_size],
                y: test_set_y[index * batch_size: (index + 1) * batch_size]})
    validate_model = theano.function(
        inputs=[index], outputs=classifier.errors(y), name='validate_model',
        givens={x: valid_set_x[index * batch_size: (index + 1) * batch_size],
                y: valid_set_y[index * batch_size: (index + 1) * batch_size]})
    g_W, g_b = T.grad(cost=cost, wrt=[classifier.W, classifier.b])
    updates = [(classifier.W, classifier.W - learning_rate * g_W),
               (classifier.b, classifier.b - learning_rate * g_b)]
    train_model = theano.function(
        inputs=[index], outputs=cost, updates=updates, name='train_model',
        givens={x: train_set_x[index * batch_size: (index + 1) * batch_size],
                y: train_set_y[index * batch_size: (index + 1) * batch_size]})

    print '... training the model'
    patience = 40
    patience_increase = 2
    improvement_threshold = 0.995
    validation_frequency = min(n_train_batches, patience / 2)
    best_validation_loss = numpy.inf
    test_score = 0.
    start_time = time.clock()
    done_looping = False
    epoch = 0
    while (epoch < n_epochs) and (not done_looping):
        epoch = epoch + 1
        for minibatch_index in xrange(n_train_batches):
            minibatch_avg_cost = train_model(minibatch_index)
            iter = (epoch - 1) * n_train_batches + minibatch_index
            if (iter + 1) % validation_frequency == 0:
                this_validation_loss = numpy.mean([validate_model(i) for i in xrange(n_valid_batches)])
                print('epoch %i, minibatch %i/%i, validation error %f %%' %
                      (epoch, minibatch_index + 1, n_train_batches, this_validation_loss * 100.))
                if this_validation_loss < best_validation_loss:
                    if this_validation_loss < best_validation_loss * improvement_threshold:
                        patience = max(patience, iter * patience_increase)
                    best_validation_loss = this_validation_loss
                    test_score = numpy.mean([test_model(i) for i in xrange(n_test_batches)])
                    print ('     epoch %i, test error of best model %f %%') % (epoch, test_score * 100.)
                    with open('best_model.pkl', 'w') as f:
                        cPickle.dump(classifier, f)
            if patience <= iter:
                done_looping = True
                break
    end_time = time.clock()
    print ('Optimization complete with best validation score of %f %%,'
           'with test performance %f %%') % (best_validation_loss * 100., test_score * 100.)
    print 'The code run for %d epochs' % epoch
    print >> sys.stderr, ('The code for file ' + os.path.split(__file__)[1] +
                          ' ran for %.1fs' % ((end_time - start_time)))


def predict():
    classifier = cPickle.load(open('best_model.pkl'))
    predict_model = theano.function(inputs=[classifier.input], outputs=classifier.y_pred)
    test_set_x, test_set_y = load_data('blobs.pkl.gz')[2]
    predicted_values = predict_model(test_set_x.get_value()[:10])
    print 'Predicted values for the first 10 examples in test set:'
    print predicted_values


if __name__ == '__main__':
    sgd_optimization()
    predict()
