"""A convolutional network of 2012: maps with given shapes, old names of pooling, old signatures."""
import cPickle as pickle
import StringIO

import numpy as np
import theano
import theano.tensor as T
from theano.tensor.nnet import conv
try:
    from theano.tensor.signal import downsample
    max_pool = downsample.max_pool_2d
except ImportError:
    from theano.tensor.signal.pool import pool_2d as max_pool


class ConvPoolLayer(object):

    def __init__(self, rng, input, filter_shape, image_shape, poolsize=(2, 2), border='valid'):
        assert image_shape[1] == filter_shape[1]
        fan_in = np.prod(filter_shape[1:])
        fan_out = filter_shape[0] * np.prod(filter_shape[2:]) / np.prod(poolsize)
        W_bound = np.sqrt(6. / (fan_in + fan_out))
        self.fans = fan_in, fan_out
        self.W = theano.shared(
            np.asarray(rng.uniform(-W_bound, W_bound, filter_shape), dtype=theano.config.floatX),
            borrow=True)
        self.b = theano.shared(np.zeros((filter_shape[0],), dtype=theano.config.floatX))
        conv_out = conv.conv2d(input=input, filters=self.W, filter_shape=filter_shape,
                               image_shape=image_shape, border_mode=border)
        pooled = max_pool(conv_out, poolsize, ignore_border=True)
        self.output = T.tanh(pooled + self.b.dimshuffle('x', 0, 'x', 'x'))
        self.params = [self.W, self.b]


class HiddenLayer(object):
    def __init__(self, rng, input, n_in, n_out, activation=T.tanh):
        bound = np.sqrt(6. / (n_in + n_out))
        W_values = np.asarray(rng.uniform(low=-bound, high=bound, size=(n_in, n_out)),
                              dtype=theano.config.floatX)
        if activation == theano.tensor.nnet.sigmoid:
            W_values *= 4
        self.W = theano.shared(value=W_values, name='W')
        self.b = theano.shared(value=np.zeros((n_out,), dtype=theano.config.floatX), name='b')
        lin_output = T.dot(input, self.W) + self.b
        self.output = lin_output if activation is None else activation(lin_output)
        self.params = [self.W, self.b]


def stripes(rng, n):
    """Return pictures of 12 x 12 with upright or level stripes."""
    labels = np.arange(n) % 2
    images = rng.normal(0, .3, (n, 12, 12))
    for k in xrange(n):
        place = rng.randint(0, 3)
        if labels[k]:
            images[k, :, place::3] += 1
        else:
            images[k, place::3] += 1
    return images.reshape(n, 144).astype(theano.config.floatX), labels.astype('int32')


rng = np.random.RandomState(23455)
batch_size, nkerns = 20, [4, 6]
datasets = [stripes(rng, n) for n in (100, 40)]
(train_x, train_y), (test_x, test_y) = [
    (theano.shared(x, borrow=True), T.cast(theano.shared(np.float64(y)), 'int32'))
    for x, y in datasets]

index = T.lscalar()
x = T.matrix('x')
y = T.ivector('y')
layer0_input = x.reshape((batch_size, 1, 12, 12))
layer0 = ConvPoolLayer(rng, layer0_input, (nkerns[0], 1, 3, 3), (batch_size, 1, 12, 12))
layer1 = ConvPoolLayer(rng, layer0.output, image_shape=(batch_size, nkerns[0], 5, 5),
                       filter_shape=(nkerns[1], nkerns[0], 2, 2), border='full')
layer2 = HiddenLayer(rng, layer1.output.flatten(2), nkerns[1] * 3 * 3, 10)
layer3 = HiddenLayer(rng, layer2.output, 10, 2, activation=None)
p_y_given_x = T.nnet.softmax(layer3.output)
cost = -T.mean(T.log(p_y_given_x)[T.arange(y.shape[0]), y])
errors = T.mean(T.neq(T.argmax(p_y_given_x, axis=1), y))
print 'fans', layer0.fans, layer1.fans

rows = slice(index * batch_size, (index + 1) * batch_size)
test_model = theano.function([index], errors, givens={x: test_x[rows], y: test_y[rows]})
params = layer3.params + layer2.params + layer1.params + layer0.params
momentum = [theano.shared(np.zeros_like(p.get_value())) for p in params]
grads = T.grad(cost, params)
updates = []
for param_i, grad_i, m_i in zip(params, grads, momentum):
    updates.append((m_i, .5 * m_i - .1 * grad_i))
    updates.append((param_i, param_i + .5 * m_i - .1 * grad_i))
train_model = theano.function([index], cost, updates=updates,
                              givens={x: train_x[rows], y: train_y[rows]})

n_train_batches, n_test_batches = [len(d[1]) / batch_size for d in datasets]
patience, best, done_looping, epoch, iteration = 60, np.inf, False, 0, 0
while epoch < 20 and not done_looping:
    epoch += 1
    for minibatch in xrange(n_train_batches):
        iteration = (epoch - 1) * n_train_batches + minibatch
        cost_ij = train_model(minibatch)
        if (iteration + 1) % (2 * n_train_batches) == 0:
            loss = np.mean([test_model(i) for i in xrange(n_test_batches)])
            print 'epoch %i, minibatch %i/%i, error %f %%, cost %.4f' % (
                epoch, minibatch + 1, n_train_batches, loss * 100., cost_ij)
            if loss < best:
                if loss < best * 0.995:
                    patience = max(patience, iteration * 2)
                best = loss
        if patience <= iteration:
            done_looping = True
            break
print 'stopped after', iteration, 'best', '%.3f' % best

# pictures of what the first layer sees, and pooling in its old forms
maps = theano.function([x], layer0.output)(datasets[1][0][:batch_size])
print maps.shape, maps.dtype, np.round(maps[0, 0, :2], 3).tolist()
t = T.tensor4()
a = np.arange(36.).reshape(1, 1, 6, 6)
print max_pool(t, (4, 4)).eval({t: a}).shape, max_pool(t, ds=(4, 4), ignore_border=False).eval(
    {t: a}).tolist()
print max_pool(t, (3, 3), st=(1, 2), ignore_border=True).eval({t: a})[0, 0, 0]
from theano.tensor.nnet.neighbours import images2neibs
print images2neibs(t, neib_shape=(3, 3)).eval({t: a})[1].astype(int)
from theano.tensor.signal.conv import conv2d as signal_conv
m, k = T.dmatrices('m', 'k')
print signal_conv(m, k).eval({m: a[0, 0], k: np.eye(2)})[0]

f = StringIO.StringIO()
pickle.dump([p.get_value(borrow=True) for p in params], f, 2)
f.seek(0)
for p, value in zip(params, pickle.load(f)):
    p.set_value(value * 0, borrow=True)
print 'after zeros: %.3f' % train_model(0)
