"""What a network looks at: gradients, guided backpropagation and the deconvnet, by unpooling."""
from __future__ import print_function

import numpy as np

import theano
import theano.tensor as T
from theano.tensor.signal.pool import max_pool_2d_same_size, pool_2d

from .pictures import digits


class ModifiedRelu(theano.Op):
    """A rectifier whose gradient is another: that of guided backpropagation, or of a deconvnet."""

    __props__ = ('guided',)

    def __init__(self, guided):
        self.guided = guided

    def make_node(self, x):
        x = T.as_tensor_variable(x)
        return theano.Apply(self, [x], [x.type()])

    def perform(self, node, inputs, output_storage):
        output_storage[0][0] = np.maximum(inputs[0], 0)

    def infer_shape(self, node, shapes):
        return shapes

    def grad(self, inputs, output_grads):
        (x,), (g,) = inputs, output_grads
        positive = T.nnet.relu(g)
        return [positive * (x > 0) if self.guided else positive]


def main(n=240, side=12, n_classes=4, batch_size=20, n_epochs=14, learning_rate=0.15):
    rng = np.random.RandomState(3)
    floatX = theano.config.floatX
    images, labels = digits(n + 60, rng, side=side, scale=1, noise=0.1, n_classes=n_classes)
    images = images[:, None].astype(floatX)
    x, y = T.tensor4('x'), T.ivector('y')

    def shared(*shape):
        return theano.shared((rng.randn(*shape) * np.sqrt(2. / np.prod(shape[1:]))).astype(floatX))

    W1, W2, V = shared(6, 1, 5, 5), shared(8, 6, 3, 3), shared(8, n_classes)
    b1, b2 = [theano.shared(np.zeros(k, dtype=floatX)) for k in (6, 8)]

    def scores(relu):
        h1 = relu(T.nnet.conv2d(x, W1) + b1.dimshuffle('x', 0, 'x', 'x'))
        h2 = relu(T.nnet.conv2d(pool_2d(h1, (2, 2), ignore_border=True), W2)
                  + b2.dimshuffle('x', 0, 'x', 'x'))
        return T.dot(h2.max(axis=(2, 3)), V)

    params = [W1, b1, W2, b2, V]
    cost = T.nnet.categorical_crossentropy(T.nnet.softmax(scores(T.nnet.relu)), y).mean()
    train = theano.function([x, y], cost, updates=[
        (p, p - learning_rate * g) for p, g in zip(params, T.grad(cost, params))])
    test = theano.function([x, y], T.eq(T.argmax(scores(T.nnet.relu), axis=1), y).mean())
    costs = []
    for epoch in range(n_epochs):
        for i in range(0, n, batch_size):
            costs.append(train(images[i:i + batch_size], labels[i:i + batch_size]))
        if epoch % 5 == 4:
            print('epoch %d, cost %.3f' % (epoch + 1, costs[-1]))

    maps = []
    for relu in (T.nnet.relu, ModifiedRelu(True), ModifiedRelu(False)):
        out = scores(relu)
        maps.append(T.grad(T.sum(T.max(out, axis=1)), x))
    # where the largest value of each window of the first layer was
    switches = T.neq(max_pool_2d_same_size(T.nnet.relu(T.nnet.conv2d(x, W1)), (2, 2)), 0)
    look = theano.function([x], maps + [T.cast(switches, floatX).sum(axis=1)])
    plain, guided, deconv, places = look(images[:2])
    # how much of a map is where the digit is
    n_ink = [np.sum(abs(m) * (images[:2] > 0.5)) / np.sum(abs(m)) for m in (plain, guided, deconv)]
    return {'costs': np.array(costs), 'accuracy': test(images[n:], labels[n:]), 'plain': plain[0],
            'guided': guided[0], 'deconv': deconv[0], 'places': places, 'n_ink': np.array(n_ink)}


if __name__ == '__main__':
    main()
