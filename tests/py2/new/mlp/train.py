import sys
from functools import reduce

import numpy as np
import theano
import theano.tensor as T

from mlp import data
from mlp.layers import DropoutLayer, Layer


def build(rng, rate=0.5):
    x, mask, y = T.dmatrix('x'), T.dmatrix('mask'), T.lvector('y')
    hidden = DropoutLayer(rate, rng, 6, 12, activation=T.tanh)
    top = Layer(rng, 12, 2, T.nnet.softmax)
    params = reduce(lambda a, b: a + b, [l.params for l in sorted([top, hidden])])
    cost = T.nnet.categorical_crossentropy(top(hidden.drop(hidden(x), mask)), y).mean()
    error = T.neq(T.argmax(top(hidden(x)), axis=1), y).sum() // y.shape[0]
    grads = T.grad(cost, params)
    updates = [(p, p - 0.5 * g) for p, g in zip(params, grads)]
    train = theano.function([x, mask, y], cost, updates=updates, name='train')
    test = theano.function([x, y], [error, T.neq(T.argmax(top(hidden(x)), axis=1), y).mean()],
                           name='test')
    return train, test, params


def main(epochs=6):
    rng = np.random.RandomState(1)
    train, test, params = build(rng)
    print('parameters:', ', '.join([p.name for p in params]))
    learn, held = data.make()
    for epoch in range(1, epochs + 1):
        costs = []
        for x, y in data.batches(learn, 40):
            mask = (rng.uniform(size=(len(x), 12)) > 0.5).astype(float)
            costs.append(train(x, mask, y))
        if epoch % 2 == 0:
            whole, error = test(*held)
            print('epoch %d: cost %.6f, error %.4f, whole %d' % (
                epoch, sum(costs) / len(costs), error, whole))
    print(data.parse())
    print('middle row:', held[0].shape, held[1][len(held[1]) // 2])
    return 0


if __name__ == '__main__':
    sys.exit(main(*map(int, sys.argv[1:])))
