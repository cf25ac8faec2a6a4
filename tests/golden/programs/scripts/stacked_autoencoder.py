"""A stacked denoising autoencoder: layer-wise pretraining, then fine-tuning of the network."""
from __future__ import print_function

import numpy

import theano
import theano.tensor as T
from theano.sandbox.rng_mrg import MRG_RandomStreams as RandomStreams

from .denoising_autoencoder import dA
from .logistic_sgd import LogisticRegression


class HiddenLayer(object):
    def __init__(self, rng, input, n_in, n_out, activation=T.tanh):
        W_values = numpy.asarray(
            rng.uniform(low=-numpy.sqrt(6. / (n_in + n_out)),
                        high=numpy.sqrt(6. / (n_in + n_out)), size=(n_in, n_out)),
            dtype=theano.config.floatX)
        if activation == theano.tensor.nnet.sigmoid:
            W_values *= 4
        self.W = theano.shared(value=W_values, name='W', borrow=True)
        self.b = theano.shared(value=numpy.zeros((n_out,), dtype=theano.config.floatX),
                               name='b', borrow=True)
        self.output = activation(T.dot(input, self.W) + self.b)
        self.params = [self.W, self.b]


class SdA(object):
    def __init__(self, numpy_rng, n_ins, hidden_layers_sizes, n_outs):
        self.sigmoid_layers = []
        self.dA_layers = []
        self.params = []
        self.n_layers = len(hidden_layers_sizes)
        theano_rng = RandomStreams(numpy_rng.randint(2 ** 30))
        self.x = T.matrix('x')
        self.y = T.ivector('y')
        for i in range(self.n_layers):
            input_size = n_ins if i == 0 else hidden_layers_sizes[i - 1]
            layer_input = self.x if i == 0 else self.sigmoid_layers[-1].output
            sigmoid_layer = HiddenLayer(numpy_rng, layer_input, input_size,
                                        hidden_layers_sizes[i], T.nnet.sigmoid)
            self.sigmoid_layers.append(sigmoid_layer)
            self.params.extend(sigmoid_layer.params)
            # the autoencoder shares weights with the layer
            self.dA_layers.append(dA(
                numpy_rng=numpy_rng, theano_rng=theano_rng, input=layer_input,
                n_visible=input_size, n_hidden=hidden_layers_sizes[i], W=sigmoid_layer.W,
                bhid=sigmoid_layer.b))
        self.logLayer = LogisticRegression(self.sigmoid_layers[-1].output,
                                           hidden_layers_sizes[-1], n_outs)
        self.params.extend(self.logLayer.params)
        self.finetune_cost = self.logLayer.negative_log_likelihood(self.y)
        self.errors = self.logLayer.errors(self.y)

    def pretraining_functions(self, train_set_x, batch_size):
        index = T.lscalar('index')
        corruption_level = T.scalar('corruption')
        learning_rate = T.scalar('lr')
        batch_begin = index * batch_size
        batch_end = batch_begin + batch_size
        pretrain_fns = []
        for dA_layer in self.dA_layers:
            cost, updates = dA_layer.get_cost_updates(corruption_level, learning_rate)
            pretrain_fns.append(theano.function(
                inputs=[index, theano.In(corruption_level, value=0.2),
                        theano.In(learning_rate, value=0.1)],
                outputs=cost, updates=updates,
                givens={self.x: train_set_x[batch_begin: batch_end]}))
        return pretrain_fns

    def build_finetune_functions(self, train_set_x, train_set_y, batch_size, learning_rate):
        index = T.lscalar('index')
        gparams = T.grad(self.finetune_cost, self.params)
        updates = [(param, param - gparam * learning_rate)
                   for param, gparam in zip(self.params, gparams)]
        batch = slice(index * batch_size, (index + 1) * batch_size)
        givens = {self.x: train_set_x[batch], self.y: train_set_y[batch]}
        train_fn = theano.function(inputs=[index], outputs=self.finetune_cost, updates=updates,
                                   givens=givens, name='train')
        score_i = theano.function([index], self.errors, givens=givens, name='score')

        def score():
            return [score_i(i) for i in range(train_set_x.get_value().shape[0] // batch_size)]

        return train_fn, score


def main(n=80, n_ins=10, hidden_layers_sizes=(8, 6), n_outs=3, batch_size=20,
         pretraining_epochs=2, training_epochs=12):
    numpy_rng = numpy.random.RandomState(89677)
    labels = numpy_rng.randint(0, n_outs, n)
    prototypes = numpy_rng.uniform(size=(n_outs, n_ins)) > 0.5
    flipped = numpy_rng.uniform(size=(n, n_ins)) < 0.1
    data = numpy.logical_xor(prototypes[labels], flipped)
    train_set_x = theano.shared(numpy.asarray(data, dtype=theano.config.floatX), borrow=True)
    train_set_y = T.cast(theano.shared(numpy.asarray(labels, theano.config.floatX)), 'int32')
    n_train_batches = n // batch_size
    sda = SdA(numpy_rng, n_ins, hidden_layers_sizes, n_outs)
    pretraining = []
    corruption_levels = [.1, .2, .3]
    for i, pretrain in enumerate(sda.pretraining_functions(train_set_x, batch_size)):
        for epoch in range(pretraining_epochs):
            c = [pretrain(index=batch_index, corruption=corruption_levels[i], lr=0.1)
                 for batch_index in range(n_train_batches)]
            print('Pre-training layer %i, epoch %d, cost %.5f' % (i, epoch, numpy.mean(c)))
            pretraining.extend(c)
        pretraining.append(pretrain(0))
    train_fn, score = sda.build_finetune_functions(train_set_x, train_set_y, batch_size, 1.)
    costs = [train_fn(i) for _ in range(training_epochs) for i in range(n_train_batches)]
    print('errors %.3f' % numpy.mean(score()))
    return {'pretraining': numpy.array(pretraining), 'costs': numpy.array(costs),
            'params': [p.get_value() for p in sda.params]}


if __name__ == '__main__':
    main()
