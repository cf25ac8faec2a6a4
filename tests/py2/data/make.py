"""Writes the pickles of this folder: run it with Python 2.7 and genuine Theano 1.0.5.

    THEANO_FLAGS=cxx=,floatX=float64 python2.7 make.py
"""
import cPickle
import gzip

import numpy
import theano
import theano.tensor as T
from theano.misc import pkl_utils


class Old:
    pass


def graphs():
    rng = numpy.random.RandomState(1)
    x, y, i = T.matrix('x'), T.ivector('y'), T.lscalar('i')
    W = theano.shared(rng.randn(3, 4), name='W')
    b = theano.shared(numpy.zeros(4, 'float32'), name='b')
    V = theano.shared(rng.randn(4, 2), name='V')
    p = T.nnet.softmax(T.dot(T.tanh(T.dot(x, W) + b), V))
    cost = -T.mean(T.log(p)[T.arange(y.shape[0]), y]) + 0.01 * (W ** 2).sum()
    outputs = [
        cost, T.mean(T.neq(T.argmax(p, axis=1), y)), T.grad(cost, W), T.max(x, axis=0),
        x[i:i + 2, 1:], x.flatten(), x.reshape((-1, 1)), T.cast(x, 'float32'), x.clip(0, 1),
        T.nnet.sigmoid(x).dimshuffle(1, 0), T.switch(x > 0, x, 0), T.concatenate([x, x], axis=1),
        T.sqrt(x.sum(axis=1, keepdims=True)), T.set_subtensor(x[0], 1), T.zeros_like(x), x.std(),
        T.nnet.categorical_crossentropy(p, y), T.prod(x, axis=0), T.alloc(1., 2, 3), T.eye(3),
        T.cumsum(x), T.outer(x[0], x[1]), T.stack([x, x]), x[[0, 1]], T.sort(x),
    ]
    values = numpy.arange(1., 7).reshape(2, 3), numpy.array([0, 1], 'int32'), 0
    mode = theano.Mode('py', 'fast_compile')
    results = [
        theano.function([x, y, i], out, on_unused_input='ignore', mode=mode)(*values)
        for out in outputs
    ]
    return [x, y, i], outputs, values, results


def dump(obj, path, protocol, opened=open):
    with opened(path, 'wb') as f:
        pkl_utils.StripPickler(f, protocol).dump(obj)


old = Old()
old.weights = numpy.arange(6, dtype='float32').reshape(2, 3)
old.name = 'caf\xe9'
W = theano.shared(numpy.arange(6.).reshape(2, 3), name='W')
model = {'W': W, 'again': W, 'n': theano.shared(3L), 'list': theano.shared([1, 'two'])}
for protocol in (0, 2):
    dump([old, 10L, u'text', numpy.float64(1.5)], 'arrays%d.pkl' % protocol, protocol)
    dump(model, 'shared%d.pkl' % protocol, protocol)
    dump(graphs(), 'graphs%d.pkl.gz' % protocol, protocol, gzip.open)
f = theano.function([], W * 2, mode=theano.Mode('py', 'fast_compile'))
with open('function.pkl', 'wb') as out:
    cPickle.dump(f, out, 2)
with open('archive.zip', 'wb') as out:
    pkl_utils.dump((W, theano.shared(1., name='W'), numpy.array(2)), out)
