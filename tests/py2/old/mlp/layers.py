import numpy as np
import theano
import theano.tensor as T


class Layer:
    count = 0

    def __init__(self, rng, n_in, n_out, activation=None):
        Layer.count += 1
        self.name = 'layer%d' % Layer.count
        bound = np.sqrt(6. / (n_in + n_out))
        self.W = theano.shared(rng.uniform(-bound, bound, (n_in, n_out)), name='W_' + self.name)
        self.b = theano.shared(np.zeros(n_out), name=`Layer.count` + '_b')
        self.activation = activation

    def __call__(self, x):
        z = T.dot(x, self.W) + self.b
        return z if self.activation is None else self.activation(z)

    def __cmp__(self, other):
        return cmp(self.name, other.name)

    params = property(lambda self: [self.W, self.b])


class DropoutLayer(Layer):
    def __init__(self, rate, *args, **kwargs):
        apply(Layer.__init__, (self,) + args, kwargs)
        self.rate = rate

    def drop(self, h, mask):
        return h * mask / (1 - self.rate)
