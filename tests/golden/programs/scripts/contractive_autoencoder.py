"""A contractive autoencoder: the Jacobian of its hidden units is punished."""
from __future__ import print_function

import numpy

import theano
import theano.tensor as T


class cA(object):
    """Contractive Auto-Encoder class (cA)"""

    def __init__(self, numpy_rng, input=None, n_visible=784, n_hidden=100, n_batchsize=1,
                 W=None, bhid=None, bvis=None):
        self.n_visible = n_visible
        self.n_hidden = n_hidden
        self.n_batchsize = n_batchsize
        if not W:
            bound = 4 * numpy.sqrt(6. / (n_hidden + n_visible))
            W = theano.shared(
                value=numpy.asarray(
                    numpy_rng.uniform(low=-bound, high=bound, size=(n_visible, n_hidden)),
                    dtype=theano.config.floatX),
                name='W', borrow=True)
        if not bvis:
            bvis = theano.shared(value=numpy.zeros(n_visible, dtype=theano.config.floatX),
                                 borrow=True)
        if not bhid:
            bhid = theano.shared(value=numpy.zeros(n_hidden, dtype=theano.config.floatX),
                                 name='b', borrow=True)
        self.W = W
        self.b = bhid
        self.b_prime = bvis
        self.W_prime = self.W.T
        self.x = T.dmatrix(name='input') if input is None else input
        self.params = [self.W, self.b, self.b_prime]

    def get_hidden_values(self, input):
        return T.nnet.sigmoid(T.dot(input, self.W) + self.b)

    def get_jacobian(self, hidden, W):
        """The Jacobian of the hidden layer with respect to the input, for every example."""
        return T.reshape(hidden * (1 - hidden), (self.n_batchsize, 1, self.n_hidden)) * T.reshape(
            W, (1, self.n_visible, self.n_hidden))

    def get_reconstructed_input(self, hidden):
        return T.nnet.sigmoid(T.dot(hidden, self.W_prime) + self.b_prime)

    def get_cost_updates(self, contraction_level, learning_rate):
        y = self.get_hidden_values(self.x)
        z = self.get_reconstructed_input(y)
        J = self.get_jacobian(y, self.W)
        self.L_rec = - T.sum(self.x * T.log(z) + (1 - self.x) * T.log(1 - z), axis=1)
        self.L_jacob = T.sum(J ** 2) / self.n_batchsize
        cost = T.mean(self.L_rec) + contraction_level * T.mean(self.L_jacob)
        gparams = T.grad(cost, self.params)
        updates = []
        for param, gparam in zip(self.params, gparams):
            updates.append((param, param - learning_rate * gparam))
        return (cost, updates)


def main(n=60, n_visible=16, n_hidden=6, batch_size=10, training_epochs=4,
         contraction_level=.1, learning_rate=0.05):
    rng = numpy.random.RandomState(123)
    factors = rng.uniform(size=(n, 3))
    data = 1 / (1 + numpy.exp(-4 * numpy.dot(factors - 0.5, rng.randn(3, n_visible))))
    train_set_x = theano.shared(numpy.asarray(data, dtype=theano.config.floatX), borrow=True)
    n_train_batches = train_set_x.get_value(borrow=True).shape[0] // batch_size

    index = T.lscalar()
    x = T.matrix('x')
    ca = cA(numpy_rng=rng, input=x, n_visible=n_visible, n_hidden=n_hidden,
            n_batchsize=batch_size)
    cost, updates = ca.get_cost_updates(contraction_level=contraction_level,
                                        learning_rate=learning_rate)
    train_ca = theano.function(
        [index], [T.mean(ca.L_rec), ca.L_jacob], updates=updates,
        givens={x: train_set_x[index * batch_size: (index + 1) * batch_size]})
    history = []
    for epoch in range(training_epochs):
        c = []
        for batch_index in range(n_train_batches):
            c.append(train_ca(batch_index))
        c_array = numpy.vstack(c)
        print('Training epoch %d, reconstruction cost %.5f, jacobian norm %.5f' % (
            epoch, numpy.mean(c_array[:, 0]), numpy.mean(numpy.sqrt(c_array[:, 1]))))
        history.append(c_array)
    return {'costs': numpy.vstack(history), 'params': [p.get_value() for p in ca.params]}


if __name__ == '__main__':
    main()
