"""A network for sentences: convolutions over embeddings of words, the maximum over time."""
from __future__ import print_function

from collections import OrderedDict

import numpy as np

import theano
import theano.tensor as T
from theano.tensor.nnet import conv

try:
    from theano.tensor.signal.downsample import max_pool_2d
except ImportError:  # Theano 1.0 has only the new name
    from theano.tensor.signal.pool import pool_2d as max_pool_2d

GOOD = 'a fine warm film|funny and wise|a moving tale|not dull at all|not bad|truly fine'.split('|')
BAD = 'a dull cold film|not funny|a bad tale|not fine at all|not moving|truly dull'.split('|')
FILLER = 'the this was i saw it today and then we all did so'.split()


def ReLU(x):
    return T.maximum(0.0, x)


class LeNetConvPoolLayer(object):
    def __init__(self, rng, input, filter_shape, image_shape, poolsize):
        fan_in = np.prod(filter_shape[1:])
        W = rng.uniform(low=-1, high=1, size=filter_shape) * np.sqrt(3. / fan_in)
        self.W = theano.shared(np.asarray(W, dtype=theano.config.floatX), borrow=True,
                               name="W_conv")
        self.b = theano.shared(np.zeros(filter_shape[0], dtype=theano.config.floatX), borrow=True,
                               name="b_conv")
        self.filter_shape, self.poolsize = filter_shape, poolsize
        self.output = self.predict(input, image_shape)
        self.params = [self.W, self.b]

    def predict(self, new_data, image_shape=None):
        conv_out = conv.conv2d(input=new_data, filters=self.W, filter_shape=self.filter_shape,
                               image_shape=image_shape)
        conv_out = ReLU(conv_out + self.b.dimshuffle('x', 0, 'x', 'x'))
        return max_pool_2d(input=conv_out, ds=self.poolsize, ignore_border=True)


def sgd_updates_adadelta(params, cost, rho=0.95, epsilon=1e-4, norm_lim=9, word_vec_name='Words'):
    updates = OrderedDict()
    for param in params:
        empty = np.zeros_like(param.get_value())
        exp_sg = theano.shared(empty, name="exp_grad_%s" % param.name)
        exp_su = theano.shared(empty, name="exp_upd_%s" % param.name)
        gp = T.grad(cost, param)
        up_exp_sg = rho * exp_sg + (1 - rho) * T.sqr(gp)
        updates[exp_sg] = up_exp_sg
        step = -(T.sqrt(exp_su + epsilon) / T.sqrt(up_exp_sg + epsilon)) * gp
        updates[exp_su] = rho * exp_su + (1 - rho) * T.sqr(step)
        stepped_param = param + step
        if param.get_value(borrow=True).ndim == 2 and param.name != word_vec_name:
            col_norms = T.sqrt(T.sum(T.sqr(stepped_param), axis=0))
            desired_norms = T.clip(col_norms, 0, T.sqrt(norm_lim))
            updates[param] = stepped_param * (desired_norms / (1e-7 + col_norms))
        else:
            updates[param] = stepped_param
    return updates


def sentences(rng, n, max_l, filter_h, index):
    """Rows of numbers of words, between zeros."""
    data = np.zeros((n, max_l + 2 * (filter_h - 1)), dtype='int32')
    labels = rng.randint(0, 2, n).astype('int32')
    for row, label in zip(data, labels):
        phrase = (GOOD if label else BAD)[rng.randint(len(GOOD))].split()
        around = [FILLER[i] for i in rng.randint(0, len(FILLER), max_l - len(phrase))]
        cut = rng.randint(len(around) + 1)
        words = around[:cut] + phrase + around[cut:]
        row[filter_h - 1:filter_h - 1 + max_l] = [index[w] for w in words]
    return data, labels


def main(n=300, n_test=60, max_l=9, img_w=10, filter_hs=(2, 3, 4), n_maps=8, batch_size=25,
         n_epochs=7):
    rng = np.random.RandomState(3435)
    vocabulary = sorted(set(w for s in GOOD + BAD for w in s.split()) | set(FILLER))
    index = dict((w, i + 1) for i, w in enumerate(vocabulary))
    data, labels = sentences(rng, n + n_test, max_l, max(filter_hs), index)
    img_h = data.shape[1]

    x, y = T.imatrix('x'), T.ivector('y')
    U = rng.uniform(-0.5, 0.5, (len(vocabulary) + 1, img_w))
    U[0] = 0
    Words = theano.shared(value=U.astype(theano.config.floatX), name='Words')
    zero_vec_tensor = T.vector()
    set_zero = theano.function([zero_vec_tensor], updates=[
        (Words, T.set_subtensor(Words[0, :], zero_vec_tensor))])
    layer0_input = Words[T.cast(x.flatten(), dtype='int32')].reshape(
        (x.shape[0], 1, x.shape[1], Words.shape[1]))
    conv_layers = [LeNetConvPoolLayer(rng, layer0_input, (n_maps, 1, h, img_w),
                                      (batch_size, 1, img_h, img_w), (img_h - h + 1, 1))
                   for h in filter_hs]
    n_features = n_maps * len(filter_hs)
    W = theano.shared((0.1 * rng.randn(n_features, 2)).astype(theano.config.floatX), name='W')
    b = theano.shared(np.zeros(2, dtype=theano.config.floatX), name='b')
    srng = T.shared_randomstreams.RandomStreams(rng.randint(999999))

    def classify(features, scale=1):
        return T.nnet.softmax(T.dot(features, W * scale) + b)

    layer1_input = T.concatenate([layer.output.flatten(2) for layer in conv_layers], 1)
    mask = srng.binomial(n=1, p=0.5, size=layer1_input.shape)
    p_train = classify(layer1_input * T.cast(mask, theano.config.floatX))
    cost = -T.mean(T.log(p_train)[T.arange(y.shape[0]), y])
    params = [W, b] + [p for layer in conv_layers for p in layer.params] + [Words]
    grad_updates = sgd_updates_adadelta(params, cost)
    train_model = theano.function([x, y], cost, updates=grad_updates)
    # sentences may come in any number when all is learned
    test_features = T.concatenate([layer.predict(layer0_input).flatten(2) for layer in conv_layers],
                                  1)
    test_y_pred = T.argmax(classify(test_features, 0.5), axis=1)
    test_model = theano.function([x, y], T.mean(T.eq(test_y_pred, y)))
    zero_vec = np.zeros(img_w, dtype=theano.config.floatX)
    costs = []
    for epoch in range(n_epochs):
        for start in rng.permutation(np.arange(0, n, batch_size)):
            rows = slice(start, start + batch_size)
            costs.append(train_model(data[rows], labels[rows]))
            set_zero(zero_vec)
        perf = test_model(data[n:], labels[n:])
        print('epoch: %i, train perf: %.1f %%, test perf: %.1f %%' % (
            epoch, 100. * test_model(data[:n], labels[:n]), 100. * perf))
    return {'costs': np.array(costs), 'accuracy': perf, 'first_word': Words.get_value()[:2]}


if __name__ == '__main__':
    main()
