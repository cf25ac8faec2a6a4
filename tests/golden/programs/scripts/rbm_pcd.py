"""The deep learning tutorials' RBM: Gibbs chains in scans, contrastive divergence and PCD."""

from __future__ import print_function

import numpy

import theano
import theano.tensor as T
from theano.tensor.shared_randomstreams import RandomStreams


class RBM(object):
    def __init__(self, input, n_visible, n_hidden, numpy_rng, theano_rng):
        bound = 4 * numpy.sqrt(6.0 / (n_hidden + n_visible))
        initial_W = numpy.asarray(
            numpy_rng.uniform(low=-bound, high=bound, size=(n_visible, n_hidden)),
            dtype=theano.config.floatX,
        )
        self.W = theano.shared(value=initial_W, name="W", borrow=True)
        self.hbias = theano.shared(numpy.zeros(n_hidden, dtype=theano.config.floatX), name="hbias")
        self.vbias = theano.shared(numpy.zeros(n_visible, dtype=theano.config.floatX), name="vbias")
        self.n_visible = n_visible
        self.n_hidden = n_hidden
        self.input = input
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

    def sample_h_given_v(self, v0_sample):
        pre_sigmoid_h1, h1_mean = self.propup(v0_sample)
        h1_sample = self.theano_rng.binomial(
            size=h1_mean.shape, n=1, p=h1_mean, dtype=theano.config.floatX
        )
        return [pre_sigmoid_h1, h1_mean, h1_sample]

    def propdown(self, hid):
        pre_sigmoid_activation = T.dot(hid, self.W.T) + self.vbias
        return [pre_sigmoid_activation, T.nnet.sigmoid(pre_sigmoid_activation)]

    def sample_v_given_h(self, h0_sample):
        pre_sigmoid_v1, v1_mean = self.propdown(h0_sample)
        v1_sample = self.theano_rng.binomial(
            size=v1_mean.shape, n=1, p=v1_mean, dtype=theano.config.floatX
        )
        return [pre_sigmoid_v1, v1_mean, v1_sample]

    def gibbs_hvh(self, h0_sample):
        pre_sigmoid_v1, v1_mean, v1_sample = self.sample_v_given_h(h0_sample)
        pre_sigmoid_h1, h1_mean, h1_sample = self.sample_h_given_v(v1_sample)
        return [pre_sigmoid_v1, v1_mean, v1_sample, pre_sigmoid_h1, h1_mean, h1_sample]

    def gibbs_vhv(self, v0_sample):
        pre_sigmoid_h1, h1_mean, h1_sample = self.sample_h_given_v(v0_sample)
        pre_sigmoid_v1, v1_mean, v1_sample = self.sample_v_given_h(h1_sample)
        return [pre_sigmoid_h1, h1_mean, h1_sample, pre_sigmoid_v1, v1_mean, v1_sample]

    def get_cost_updates(self, lr=0.1, persistent=None, k=1):
        pre_sigmoid_ph, ph_mean, ph_sample = self.sample_h_given_v(self.input)
        chain_start = ph_sample if persistent is None else persistent
        (
            [pre_sigmoid_nvs, nv_means, nv_samples, pre_sigmoid_nhs, nh_means, nh_samples],
            updates,
        ) = theano.scan(
            self.gibbs_hvh,
            outputs_info=[None, None, None, None, None, chain_start],
            n_steps=k,
            name="gibbs_hvh",
        )
        chain_end = nv_samples[-1]
        cost = T.mean(self.free_energy(self.input)) - T.mean(self.free_energy(chain_end))
        gparams = T.grad(cost, self.params, consider_constant=[chain_end])
        for gparam, param in zip(gparams, self.params):
            updates[param] = param - gparam * T.cast(lr, dtype=theano.config.floatX)
        if persistent:
            updates[persistent] = nh_samples[-1]
            monitoring_cost = self.get_pseudo_likelihood_cost(updates)
        else:
            monitoring_cost = self.get_reconstruction_cost(updates, pre_sigmoid_nvs[-1])
        return monitoring_cost, updates

    def get_pseudo_likelihood_cost(self, updates):
        bit_i_idx = theano.shared(value=0, name="bit_i_idx")
        xi = T.round(self.input)
        fe_xi = self.free_energy(xi)
        xi_flip = T.set_subtensor(xi[:, bit_i_idx], 1 - xi[:, bit_i_idx])
        fe_xi_flip = self.free_energy(xi_flip)
        cost = T.mean(self.n_visible * T.log(T.nnet.sigmoid(fe_xi_flip - fe_xi)))
        updates[bit_i_idx] = (bit_i_idx + 1) % self.n_visible
        return cost

    def get_reconstruction_cost(self, updates, pre_sigmoid_nv):
        return T.mean(
            T.sum(
                self.input * T.log(T.nnet.sigmoid(pre_sigmoid_nv))
                + (1 - self.input) * T.log(1 - T.nnet.sigmoid(pre_sigmoid_nv)),
                axis=1,
            )
        )


def bars(rng, n, side):
    """Images with one row or one column set."""
    found = numpy.zeros((n, side, side))
    for k in range(n):
        where = rng.randint(side)
        if rng.randint(2):
            found[k, where] = 1
        else:
            found[k, :, where] = 1
    return found.reshape(n, side * side)


def main(n=60, side=3, n_hidden=8, batch_size=20, n_epochs=40, n_chains=6):
    rng = numpy.random.RandomState(123)
    train_set_x = theano.shared(numpy.asarray(bars(rng, n, side), dtype=theano.config.floatX))
    found = {}
    for name in ("CD-3", "PCD-5"):
        index = T.lscalar()
        x = T.matrix("x")
        theano_rng = RandomStreams(rng.randint(2**30))
        rbm = RBM(x, side * side, n_hidden, rng, theano_rng)
        persistent_chain = None
        if name == "PCD-5":
            persistent_chain = theano.shared(
                numpy.zeros((batch_size, n_hidden), dtype=theano.config.floatX), borrow=True
            )
        cost, updates = rbm.get_cost_updates(lr=0.1, persistent=persistent_chain, k=int(name[-1]))
        train_rbm = theano.function(
            [index],
            cost,
            updates=updates,
            givens={x: train_set_x[index * batch_size : (index + 1) * batch_size]},
            name="train_rbm",
        )
        costs = numpy.array(
            [numpy.mean([train_rbm(i) for i in range(n // batch_size)]) for _ in range(n_epochs)]
        )
        print("%s: cost %.4f, then %.4f" % (name, costs[:5].mean(), costs[-5:].mean()))
        found[name] = costs[::5]
        found[name + " gain"] = costs[-5:].mean() - costs[:5].mean()

    # what the last machine dreams
    persistent_vis_chain = theano.shared(train_set_x.get_value()[:n_chains])
    ([presig_hids, hid_mfs, hid_samples, presig_vis, vis_mfs, vis_samples], updates) = theano.scan(
        rbm.gibbs_vhv,
        outputs_info=[None, None, None, None, None, persistent_vis_chain],
        n_steps=20,
        name="gibbs_vhv",
    )
    updates.update({persistent_vis_chain: vis_samples[-1]})
    sample_fn = theano.function(
        [], [vis_mfs[-1], vis_samples[-1]], updates=updates, name="sample_fn"
    )
    for _ in range(3):
        vis_mf, vis_sample = sample_fn()
    found.update(vis_mf=vis_mf, vis_sample=vis_sample.astype("int8"))
    return found


if __name__ == "__main__":
    main()
