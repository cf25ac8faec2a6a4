"""A restricted Boltzmann machine: contrastive divergence with unrolled Gibbs steps, or persistent.
"""
from __future__ import print_function

import numpy

import theano
import theano.tensor as T
from theano.tensor.shared_randomstreams import RandomStreams


class RBM(object):
    """Restricted Boltzmann Machine (RBM)"""

    def __init__(self, input, n_visible, n_hidden, numpy_rng, theano_rng):
        bound = 4 * numpy.sqrt(6. / (n_hidden + n_visible))
        initial_W = numpy.asarray(
            numpy_rng.uniform(low=-bound, high=bound, size=(n_visible, n_hidden)),
            dtype=theano.config.floatX)
        self.W = theano.shared(value=initial_W, name='W', borrow=True)
        self.hbias = theano.shared(value=numpy.zeros(n_hidden, dtype=theano.config.floatX),
                                   name='hbias', borrow=True)
        self.vbias = theano.shared(value=numpy.zeros(n_visible, dtype=theano.config.floatX),
                                   name='vbias', borrow=True)
        self.input = input
        self.n_visible = n_visible
        self.theano_rng = theano_rng
        self.params = [self.W, self.hbias, self.vbias]

    def free_energy(self, v_sample):
        wx_b = T.dot(v_sample, self.W) + self.hbias
        vbias_term = T.dot(v_sample, self.vbias)
        hidden_term = T.sum(T.log(1 + T.exp(wx_b)), axis=1)
        return -hidden_term - vbias_term

    def propup(self, vis):
        pre_sigmoid_activation = T.dot(vis, self.W) + self.hbias
        return [pre_sigmoid_activation, T.nnet.sigmoid(pre_sigmoid_activation)]

    def propdown(self, hid):
        pre_sigmoid_activation = T.dot(hid, self.W.T) + self.vbias
        return [pre_sigmoid_activation, T.nnet.sigmoid(pre_sigmoid_activation)]

    def sample(self, mean):
        return self.theano_rng.binomial(size=mean.shape, n=1, p=mean, dtype=theano.config.floatX)

    def gibbs_hvh(self, h0_sample):
        pre_sigmoid_v1, v1_mean = self.propdown(h0_sample)
        v1_sample = self.sample(v1_mean)
        pre_sigmoid_h1, h1_mean = self.propup(v1_sample)
        h1_sample = self.sample(h1_mean)
        return [pre_sigmoid_v1, v1_mean, v1_sample, pre_sigmoid_h1, h1_mean, h1_sample]

    def get_cost_updates(self, lr=0.1, persistent=None, k=1):
        pre_sigmoid_ph, ph_mean = self.propup(self.input)
        ph_sample = self.sample(ph_mean)
        nh_sample = ph_sample if persistent is None else persistent
        for _ in range(k):
            (pre_sigmoid_nv, nv_mean, nv_sample, pre_sigmoid_nh, nh_mean,
             nh_sample) = self.gibbs_hvh(nh_sample)
        chain_end = nv_sample
        cost = T.mean(self.free_energy(self.input)) - T.mean(self.free_energy(chain_end))
        # We must not compute the gradient through the gibbs sampling
        gparams = T.grad(cost, self.params, consider_constant=[chain_end])
        updates = theano.OrderedUpdates()
        for gparam, param in zip(gparams, self.params):
            updates[param] = param - gparam * T.cast(lr, dtype=theano.config.floatX)
        if persistent:
            updates[persistent] = nh_sample
            monitoring_cost = self.get_pseudo_likelihood_cost(updates)
        else:
            monitoring_cost = self.get_reconstruction_cost(pre_sigmoid_nv)
        return monitoring_cost, updates

    def get_pseudo_likelihood_cost(self, updates):
        bit_i_idx = theano.shared(value=0, name='bit_i_idx')
        xi = T.round(self.input)
        fe_xi = self.free_energy(xi)
        xi_flip = T.set_subtensor(xi[:, bit_i_idx], 1 - xi[:, bit_i_idx])
        fe_xi_flip = self.free_energy(xi_flip)
        cost = T.mean(self.n_visible * T.log(T.nnet.sigmoid(fe_xi_flip - fe_xi)))
        updates[bit_i_idx] = (bit_i_idx + 1) % self.n_visible
        return cost

    def get_reconstruction_cost(self, pre_sigmoid_nv):
        return T.mean(T.sum(
            self.input * T.log(T.nnet.sigmoid(pre_sigmoid_nv)) +
            (1 - self.input) * T.log(1 - T.nnet.sigmoid(pre_sigmoid_nv)), axis=1))


def train(data, persistent, n_hidden, batch_size, training_epochs, k):
    train_set_x = theano.shared(numpy.asarray(data, dtype=theano.config.floatX), borrow=True)
    n_train_batches = train_set_x.get_value(borrow=True).shape[0] // batch_size
    index = T.lscalar()
    x = T.matrix('x')
    rng = numpy.random.RandomState(123)
    theano_rng = RandomStreams(rng.randint(2 ** 30))
    chain = None
    if persistent:
        chain = theano.shared(numpy.zeros((batch_size, n_hidden), dtype=theano.config.floatX),
                              borrow=True)
    rbm = RBM(x, data.shape[1], n_hidden, rng, theano_rng)
    cost, updates = rbm.get_cost_updates(lr=0.1, persistent=chain, k=k)
    train_rbm = theano.function(
        [index], cost, updates=updates,
        givens={x: train_set_x[index * batch_size: (index + 1) * batch_size]}, name='train_rbm')
    costs = []
    for epoch in range(training_epochs):
        mean_cost = [train_rbm(i) for i in range(n_train_batches)]
        print('Training epoch %d, cost is %.5f' % (epoch, numpy.mean(mean_cost)))
        costs.extend(mean_cost)
    # samples: a chain that goes on from call to call
    vis = theano.shared(numpy.asarray(data[:4], dtype=theano.config.floatX), name='vis')
    _, _, _, _, _, h = rbm.gibbs_hvh(rbm.sample(rbm.propup(vis)[1]))
    _, vis_mf, vis_sample, _, _, _ = rbm.gibbs_hvh(h)
    sample_fn = theano.function([], [vis_mf, vis_sample], updates=[(vis, vis_sample)],
                                name='sample_fn')
    samples = [sample_fn() for _ in range(3)]
    return {'costs': numpy.array(costs), 'samples': samples,
            'params': [p.get_value() for p in rbm.params]}


def main(n=60, n_visible=12, n_hidden=6, batch_size=10, training_epochs=3, k=2):
    rng = numpy.random.RandomState(6)
    prototypes = rng.uniform(size=(3, n_visible)) > 0.5
    data = numpy.logical_xor(prototypes[rng.randint(0, 3, n)],
                             rng.uniform(size=(n, n_visible)) < 0.1)
    return dict((name, train(data, persistent, n_hidden, batch_size, training_epochs, k))
                for name, persistent in (('CD', False), ('PCD', True)))


if __name__ == '__main__':
    main()
