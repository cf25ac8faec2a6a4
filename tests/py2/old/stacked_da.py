"""Stacked denoising autoencoders: layers trained one by one, kept, read again and fine-tuned."""
import cPickle
import gzip
import os
import sys
import tempfile

import numpy
import theano
import theano.tensor as T
from theano.tensor.shared_randomstreams import RandomStreams


def shared_dataset(rng, n=120, borrow=True):
    centres = rng.binomial(1, 0.5, size=(3, 12))
    labels = numpy.arange(n) % 3
    flipped = rng.binomial(1, 0.1, size=(n, 12))
    data = numpy.abs(centres[labels] - flipped)
    data_x = theano.shared(numpy.asarray(data, dtype=theano.config.floatX), borrow=borrow)
    data_y = theano.shared(numpy.asarray(labels, dtype=theano.config.floatX), borrow=borrow)
    return data_x, T.cast(data_y, 'int32')


class DenoisingAutoencoder(object):

    def __init__(self, numpy_rng, theano_rng=None, input=None, n_visible=12, n_hidden=6,
                 W=None, bhid=None):
        if not theano_rng:
            theano_rng = RandomStreams(numpy_rng.randint(2 ** 30))
        self.theano_rng = theano_rng
        self.n_visible, self.n_hidden = n_visible, n_hidden
        if not W:
            bound = 4 * numpy.sqrt(6. / (n_hidden + n_visible))
            W = theano.shared(numpy.asarray(
                numpy_rng.uniform(low=-bound, high=bound, size=(n_visible, n_hidden)),
                dtype=theano.config.floatX), name='W')
        if not bhid:
            bhid = theano.shared(numpy.zeros(n_hidden, dtype=theano.config.floatX), name='b')
        self.W, self.b, self.W_prime = W, bhid, W.T
        self.b_prime = theano.shared(numpy.zeros(n_visible, dtype=theano.config.floatX), 'b_prime')
        self.x = T.dmatrix(name='input') if input is None else input
        self.params = [self.W, self.b, self.b_prime]

    def get_cost_updates(self, corruption_level, learning_rate):
        kept = self.theano_rng.binomial(size=self.x.shape, n=1, p=1 - corruption_level,
                                        dtype=theano.config.floatX)
        y = T.nnet.sigmoid(T.dot(kept * self.x, self.W) + self.b)
        z = T.nnet.sigmoid(T.dot(y, self.W_prime) + self.b_prime)
        L = -T.sum(self.x * T.log(z) + (1 - self.x) * T.log(1 - z), axis=1)
        cost = T.mean(L)
        gparams = T.grad(cost, self.params)
        updates = {}
        for param, gparam in zip(self.params, gparams):
            updates[param] = param - learning_rate * gparam
        return cost, updates.items()


class StackedDA:

    def __init__(self, numpy_rng, n_ins, hidden=(8, 5), n_outs=3):
        self.sigmoid_layers, self.dA_layers, self.params = [], [], []
        self.theano_rng = RandomStreams(numpy_rng.randint(2 ** 30))
        self.x, self.y = T.matrix('x'), T.ivector('y')
        layer_input, size = self.x, n_ins
        for i in xrange(len(hidden)):
            layer = DenoisingAutoencoder(numpy_rng, self.theano_rng, layer_input, size, hidden[i])
            self.dA_layers.append(layer)
            self.params.extend(layer.params[:2])
            layer_input = T.nnet.sigmoid(T.dot(layer_input, layer.W) + layer.b)
            size = hidden[i]
        self.W_out = theano.shared(numpy.zeros((size, n_outs), theano.config.floatX), 'W_out')
        self.params.append(self.W_out)
        self.p_y = T.nnet.softmax(T.dot(layer_input, self.W_out))
        self.finetune_cost = T.nnet.categorical_crossentropy(self.p_y, self.y).mean()
        self.errors = T.mean(T.neq(T.argmax(self.p_y, axis=1), self.y))

    def pretraining_functions(self, train_set_x, batch_size):
        index = T.lscalar('index')
        level, rate = T.scalar('corruption'), T.scalar('lr')
        n_batches = train_set_x.get_value(borrow=True).shape[0] / batch_size
        begin = (index % n_batches) * batch_size
        fns = []
        for dA in self.dA_layers:
            cost, updates = dA.get_cost_updates(level, rate)
            fns.append(theano.function(
                inputs=[index, theano.In(level, value=0.2), theano.In(rate, value=0.1)],
                outputs=cost, updates=updates,
                givens={self.x: train_set_x[begin:begin + batch_size]}))
        return fns

    def __getstate__(self):
        return [p.get_value(borrow=True) for p in self.params]

    def __setstate__(self, values):
        self.values = values


def main():
    rng = numpy.random.RandomState(89677)
    train_x, train_y = shared_dataset(rng)
    sda = StackedDA(rng, n_ins=12)
    batch_size = 20
    n_batches = train_x.get_value(borrow=True).shape[0] / batch_size
    for i, fn in enumerate(sda.pretraining_functions(train_x, batch_size)):
        for epoch in xrange(3):
            c = [fn(index=batch, corruption=.1 * (i + 1), lr=0.5) for batch in xrange(n_batches)]
            print 'Pre-training layer %i, epoch %d, cost' % (i, epoch), '%.5f' % numpy.mean(c)
        print >> sys.stdout, '    with the defaults: %.5f' % fn(0)

    index = T.iscalar()
    gparams = T.grad(sda.finetune_cost, sda.params)
    train = theano.function(
        [index], [sda.finetune_cost, sda.errors],
        updates=[(p, p - 0.5 * g) for p, g in zip(sda.params, gparams)],
        givens={sda.x: train_x[index * batch_size:(index + 1) * batch_size],
                sda.y: train_y[index * batch_size:(index + 1) * batch_size]},
        name='train')
    for epoch in xrange(60):
        losses = [train(i) for i in xrange(n_batches)]
        if (epoch + 1) % 20 == 0:
            print 'epoch %d' % (epoch + 1), 'cost %.4f errors %.4f' % tuple(numpy.mean(losses, 0))

    folder = tempfile.mkdtemp()
    path = os.path.join(folder, 'sda.pkl.gz')
    f = gzip.open(path, 'wb')
    cPickle.dump(sda, f, protocol=cPickle.HIGHEST_PROTOCOL)
    cPickle.dump([p.name for p in sda.params], f, -1)
    f.close()
    f = gzip.open(path, 'rb')
    again, names = cPickle.load(f), cPickle.load(f)
    f.close()
    print zip(names, [v.shape for v in again.values])
    print all((p.get_value() == v).all() for p, v in zip(sda.params, again.values))
    os.remove(path)
    os.rmdir(folder)


if __name__ == '__main__':
    main()
