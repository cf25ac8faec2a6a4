"""Layers as OpFromGraph: one used twice, one with shared weights, one with its own gradient."""
from __future__ import print_function

import numpy as np

import theano
import theano.tensor as T
from theano.compile.builders import OpFromGraph


def make_gate():
    """sigmoid(x W + b) * tanh(x V + c)"""
    x, W, V = T.matrices('x', 'W', 'V')
    b, c = T.vectors('b', 'c')
    out = T.nnet.sigmoid(T.dot(x, W) + b) * T.tanh(T.dot(x, V) + c)
    return OpFromGraph([x, W, b, V, c], [out])


def make_readout(W):
    """The weights are shared: they are no inputs."""
    h = T.matrix('h')
    scores = T.dot(h, W)
    return OpFromGraph([h], [scores, T.sum(abs(scores), axis=1)])


def make_clipped_identity(bound):
    """The identity, whose gradient is clipped."""
    z = T.matrix('z')

    def clipped(inputs, output_gradients):
        return [T.clip(output_gradients[0], -bound, bound)]

    return OpFromGraph([z], [z * 1], grad_overrides=clipped)


class Model(object):
    def __init__(self, rng, n_in, n_hidden, n_out):
        def shared(name, *shape):
            return theano.shared(np.asarray(0.3 * rng.randn(*shape), theano.config.floatX), name)

        self.W1, self.V1 = shared('W1', n_in, n_hidden), shared('V1', n_in, n_hidden)
        self.W2, self.V2 = shared('W2', n_hidden, n_hidden), shared('V2', n_hidden, n_hidden)
        self.b1, self.c1 = shared('b1', n_hidden), shared('c1', n_hidden)
        self.b2, self.c2 = shared('b2', n_hidden), shared('c2', n_hidden)
        self.W_out = shared('W_out', n_hidden, n_out)
        self.hidden_params = [self.W1, self.b1, self.V1, self.c1,
                              self.W2, self.b2, self.V2, self.c2]
        self.x, self.y = T.matrix('x'), T.ivector('y')
        gate = make_gate()
        h = gate(self.x, self.W1, self.b1, self.V1, self.c1)
        h = make_clipped_identity(0.002)(h)
        h = gate(h, self.W2, self.b2, self.V2, self.c2)
        scores, sizes = make_readout(self.W_out)(h)
        self.p = T.nnet.softmax(scores)
        self.cost = (T.nnet.categorical_crossentropy(self.p, self.y).mean() +
                     0.01 * sizes.mean())


def main(n=60, n_in=5, n_hidden=7, n_out=3, n_steps=12, rate=0.5):
    rng = np.random.RandomState(19)
    labels = rng.randint(0, n_out, n).astype('int32')
    data = 2 * rng.randn(n_out, n_in)[labels] + rng.randn(n, n_in)
    data = np.asarray(data, dtype=theano.config.floatX)
    model = Model(rng, n_in, n_hidden, n_out)
    params = model.hidden_params + [model.W_out]
    grads = T.grad(model.cost, params)
    train = theano.function([model.x, model.y], model.cost,
                            updates=[(p, p - rate * g) for p, g in zip(params, grads)])
    predict = theano.function([model.x], T.argmax(model.p, axis=1))
    gradient = theano.function([model.x, model.y], grads[:4])
    first = gradient(data, labels)
    costs = [train(data, labels) for _ in range(n_steps)]
    wrong = int((predict(data) != labels).sum())
    print('cost %.5f to %.5f, %d errors' % (costs[0], costs[-1], wrong))
    return {'costs': np.array(costs), 'gradient': first, 'wrong': wrong,
            'params': [p.get_value() for p in params]}


if __name__ == '__main__':
    main()
