"""A multilayer perceptron of rectified units with dropout, momentum and bounded column norms."""
from __future__ import print_function

from collections import OrderedDict

import numpy as np

import theano
import theano.tensor as T


def ReLU(x):
    y = T.maximum(0.0, x)
    return y


class HiddenLayer(object):
    def __init__(self, rng, input, n_in, n_out, activation, W=None, b=None):
        self.input = input
        if W is None:
            W_values = np.asarray(0.3 * rng.standard_normal(size=(n_in, n_out)),
                                  dtype=theano.config.floatX)
            W = theano.shared(value=W_values, name='W')
        if b is None:
            b = theano.shared(value=np.zeros((n_out,), dtype=theano.config.floatX), name='b')
        self.W = W
        self.b = b
        lin_output = T.dot(input, self.W) + self.b
        self.output = lin_output if activation is None else activation(lin_output)
        self.params = [self.W, self.b]


def _dropout_from_layer(rng, layer, p):
    """p is the probablity of dropping a unit"""
    srng = theano.tensor.shared_randomstreams.RandomStreams(rng.randint(999999))
    # p=1-p because 1's indicate keep and p is prob of dropping
    mask = srng.binomial(n=1, p=1 - p, size=layer.shape)
    # the cast keeps float32 things float32
    return layer * T.cast(mask, theano.config.floatX)


class DropoutHiddenLayer(HiddenLayer):
    def __init__(self, rng, input, n_in, n_out, activation, dropout_rate, W=None, b=None):
        super(DropoutHiddenLayer, self).__init__(rng, input, n_in, n_out, activation, W, b)
        self.output = _dropout_from_layer(rng, self.output, p=dropout_rate)


class LogisticRegression(object):
    def __init__(self, input, n_in, n_out, W=None, b=None):
        if W is None:
            W = theano.shared(np.zeros((n_in, n_out), dtype=theano.config.floatX), name='W')
        if b is None:
            b = theano.shared(np.zeros((n_out,), dtype=theano.config.floatX), name='b')
        self.W = W
        self.b = b
        self.p_y_given_x = T.nnet.softmax(T.dot(input, self.W) + self.b)
        self.y_pred = T.argmax(self.p_y_given_x, axis=1)
        self.params = [self.W, self.b]

    def negative_log_likelihood(self, y):
        return -T.mean(T.log(self.p_y_given_x)[T.arange(y.shape[0]), y])

    def errors(self, y):
        return T.sum(T.neq(self.y_pred, y))


class MLP(object):
    """Two towers that share weights: one with dropout to train, one with scaled weights to test."""

    def __init__(self, rng, input, layer_sizes, dropout_rates):
        next_layer_input = input
        next_dropout_input = _dropout_from_layer(rng, input, p=dropout_rates[0])
        weight_matrix_sizes = list(zip(layer_sizes, layer_sizes[1:]))
        self.dropout_layers = []
        for k, (n_in, n_out) in enumerate(weight_matrix_sizes[:-1]):
            dropped = DropoutHiddenLayer(rng, next_dropout_input, n_in, n_out, ReLU,
                                         dropout_rates[k + 1])
            self.dropout_layers.append(dropped)
            next_dropout_input = dropped.output
            layer = HiddenLayer(rng, next_layer_input, n_in, n_out, ReLU,
                                W=dropped.W * (1 - dropout_rates[k]), b=dropped.b)
            next_layer_input = layer.output
        n_in, n_out = weight_matrix_sizes[-1]
        top = LogisticRegression(next_dropout_input, n_in, n_out)
        self.dropout_layers.append(top)
        output = LogisticRegression(next_layer_input, n_in, n_out,
                                    W=top.W * (1 - dropout_rates[-1]), b=top.b)
        self.dropout_negative_log_likelihood = top.negative_log_likelihood
        self.negative_log_likelihood = output.negative_log_likelihood
        self.errors = output.errors
        self.params = [param for layer in self.dropout_layers for param in layer.params]


def main(n=120, layer_sizes=(8, 12, 10, 3), batch_size=20, n_epochs=4,
         initial_learning_rate=1., learning_rate_decay=0.9, squared_filter_length_limit=4.):
    rng = np.random.RandomState(1234)
    labels = rng.randint(0, layer_sizes[-1], n)
    data = 2 * rng.randn(layer_sizes[-1], layer_sizes[0])[labels] + rng.randn(n, layer_sizes[0])
    train_set_x = theano.shared(np.asarray(data, dtype=theano.config.floatX), borrow=True)
    train_set_y = T.cast(theano.shared(np.asarray(labels, theano.config.floatX)), 'int32')
    n_train_batches = n // batch_size

    index = T.lscalar()
    epoch = T.scalar()
    x = T.matrix('x')
    y = T.ivector('y')
    learning_rate = theano.shared(np.asarray(initial_learning_rate, dtype=theano.config.floatX))
    classifier = MLP(rng, x, layer_sizes, dropout_rates=[0.2] + [0.5] * (len(layer_sizes) - 2))
    cost = classifier.negative_log_likelihood(y)
    dropout_cost = classifier.dropout_negative_log_likelihood(y)

    # theano expression for learning rate, momentum that grows, then stays
    mom = T.switch(epoch < 3, 0.5 * (1. - epoch / 3) + 0.9 * (epoch / 3), 0.9)
    gparams = [T.grad(dropout_cost, param) for param in classifier.params]
    gparams_mom = [theano.shared(np.zeros(param.get_value(borrow=True).shape,
                                          dtype=theano.config.floatX))
                   for param in classifier.params]
    updates = OrderedDict()
    for gparam_mom, gparam in zip(gparams_mom, gparams):
        updates[gparam_mom] = mom * gparam_mom - (1. - mom) * learning_rate * gparam
    for param, gparam_mom in zip(classifier.params, gparams_mom):
        stepped_param = param + updates[gparam_mom]
        if param.get_value(borrow=True).ndim == 2:
            col_norms = T.sqrt(T.sum(T.sqr(stepped_param), axis=0))
            desired_norms = T.clip(col_norms, 0, T.sqrt(squared_filter_length_limit))
            scale = desired_norms / (1e-7 + col_norms)
            updates[param] = stepped_param * scale
        else:
            updates[param] = stepped_param

    givens = {
        x: train_set_x[index * batch_size:(index + 1) * batch_size],
        y: train_set_y[index * batch_size:(index + 1) * batch_size]}
    train_model = theano.function(inputs=[epoch, index], outputs=dropout_cost, updates=updates,
                                  givens=givens, allow_input_downcast=True)
    test_model = theano.function(inputs=[index], outputs=[cost, classifier.errors(y)],
                                 givens=givens)
    decay_learning_rate = theano.function(
        inputs=[], outputs=learning_rate,
        updates={learning_rate: learning_rate * learning_rate_decay})
    costs = []
    for epoch_counter in range(1, n_epochs + 1):
        for minibatch_index in range(n_train_batches):
            costs.append(train_model(epoch_counter, minibatch_index))
        tested = [test_model(i) for i in range(n_train_batches)]
        print('epoch %d, cost %.4f, errors %d, learning rate %.4f' % (
            epoch_counter, np.mean([t[0] for t in tested]), sum(t[1] for t in tested),
            decay_learning_rate()))
    return {'costs': np.array(costs), 'params': [p.get_value() for p in classifier.params]}


if __name__ == '__main__':
    main()
