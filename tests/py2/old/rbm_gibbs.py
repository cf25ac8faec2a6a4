"""A restricted Boltzmann machine: contrastive divergence by chains of k steps, and its monitors."""
import sys
from optparse import OptionParser

import numpy
import theano
import theano.tensor as T
from theano.printing import Print
from theano.sandbox import rng_mrg
from theano.tensor.shared_randomstreams import RandomStreams


class RBM(object):
    """Visible and hidden units are binary."""

    def __init__(self, input, n_visible=9, n_hidden=5, numpy_rng=None, theano_rng=None):
        self.n_visible = n_visible
        self.n_hidden = n_hidden
        self.theano_rng = theano_rng
        bound = 4 * numpy.sqrt(6. / (n_hidden + n_visible))
        self.W = theano.shared(numpy.asarray(
            numpy_rng.uniform(-bound, bound, (n_visible, n_hidden)), theano.config.floatX), 'W')
        self.hbias = theano.shared(numpy.zeros(n_hidden, dtype=theano.config.floatX), 'hbias')
        self.vbias = theano.shared(numpy.zeros(n_visible, dtype=theano.config.floatX), 'vbias')
        self.input = input
        self.params = [self.W, self.hbias, self.vbias]

    def free_energy(self, v_sample):
        wx_b = T.dot(v_sample, self.W) + self.hbias
        return -T.sum(T.log(1 + T.exp(wx_b)), axis=1) - T.dot(v_sample, self.vbias)

    def propup(self, vis):
        pre = T.dot(vis, self.W) + self.hbias
        return [pre, T.nnet.sigmoid(pre)]

    def propdown(self, hid):
        pre = T.dot(hid, self.W.T) + self.vbias
        return [pre, T.nnet.sigmoid(pre)]

    def sample(self, mean):
        return self.theano_rng.binomial(size=mean.shape, n=1, p=mean, dtype=theano.config.floatX)

    def gibbs_hvh(self, h0):
        pre_v, v_mean = self.propdown(h0)
        v = self.sample(v_mean)
        pre_h, h_mean = self.propup(v)
        return [pre_v, v_mean, v, pre_h, h_mean, self.sample(h_mean)]

    def gibbs_vhv(self, v0):
        h = self.sample(self.propup(v0)[1])
        v_mean = self.propdown(h)[1]
        return v_mean, self.sample(v_mean)

    def get_cost_updates(self, lr=0.1, persistent=None, k=1):
        chain_start = persistent
        if persistent is None:
            chain_start = self.sample(self.propup(self.input)[1])
        (outs, updates) = theano.scan(
            self.gibbs_hvh, outputs_info=[None, None, None, None, None, chain_start], n_steps=k)
        chain_end = outs[2][-1]
        cost = T.mean(self.free_energy(self.input)) - T.mean(self.free_energy(chain_end))
        gparams = T.grad(cost, self.params, consider_constant=[chain_end])
        for gparam, param in zip(gparams, self.params):
            updates[param] = param - gparam * T.cast(lr, dtype=theano.config.floatX)
        if persistent:
            updates[persistent] = outs[-1][-1]
            return self.pseudo_likelihood(updates), updates
        return self.reconstruction(outs[0][-1]), updates

    def pseudo_likelihood(self, updates):
        bit_i_idx = theano.shared(value=0, name='bit_i_idx')
        xi = T.round(self.input)
        fe_xi = self.free_energy(xi)
        flip = T.set_subtensor(xi[:, bit_i_idx], 1 - xi[:, bit_i_idx])
        cost = T.mean(self.n_visible * T.log(T.nnet.sigmoid(self.free_energy(flip) - fe_xi)))
        updates[bit_i_idx] = (bit_i_idx + 1) % self.n_visible
        return cost

    def reconstruction(self, pre_sigmoid_nv):
        p = T.nnet.sigmoid(pre_sigmoid_nv)
        return T.mean(T.sum(self.input * T.log(p) + (1 - self.input) * T.log(1 - p), axis=1))


def bars(rng, n):
    """Return squares of 3 x 3 in which rows are on, each by chance."""
    rows = rng.binomial(1, .4, (n, 3))
    return numpy.repeat(rows, 3, axis=1).astype(theano.config.floatX)


def test_rbm(streams, persistent, k):
    rng = numpy.random.RandomState(123)
    data = theano.shared(bars(rng, 60), borrow=True)
    index, x = T.lscalar(), T.matrix('x')
    rbm = RBM(x, numpy_rng=rng, theano_rng=streams(rng.randint(2 ** 30)))
    chain = None
    if persistent:
        chain = theano.shared(numpy.zeros((10, rbm.n_hidden), theano.config.floatX), borrow=True)
    cost, updates = rbm.get_cost_updates(persistent=chain, k=k)
    print type(updates).__name__, len(updates),
    train = theano.function([index], cost, updates=updates, name='train_rbm',
                            givens={x: data[index * 10:(index + 1) * 10]})
    for epoch in xrange(6):
        mean_cost = []
        for batch_index in xrange(6):
            mean_cost += [train(batch_index)]
        print '%.4f' % numpy.mean(mean_cost),
    print
    steps = T.iscalar('steps')
    fantasy = theano.shared(bars(rng, 4))
    [v_mean, v], updates = theano.scan(rbm.gibbs_vhv, outputs_info=[None, fantasy], n_steps=steps)
    updates.update({fantasy: v[-1]})
    sample = theano.function([steps], [v_mean[-1], v.shape], updates=updates)
    for n in 5, 1:
        mean, shape = sample(n)
        print shape, numpy.round(mean.mean(axis=0), 3)
    energies = theano.function([x], Print('energies', attrs=['shape'])(rbm.free_energy(x)))
    print '%.4f' % energies(fantasy.get_value()).sum(), '%.4f' % rbm.W.norm(2).eval()
    return rbm


parser = OptionParser()
parser.add_option('--k', type='int', default=3)
options, args = parser.parse_args(sys.argv[1:])
for streams in (RandomStreams, rng_mrg.MRG_RandomStreams):
    for persistent in False, True:
        print '%s, %s chain, k=%d' % (streams.__name__, ['new', 'kept'][persistent], options.k)
        last = test_rbm(streams, persistent, options.k)
print [p.name for p in last.params], T.grad(last.free_energy(last.input).sum(), last.W).ndim
