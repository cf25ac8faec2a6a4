"""An LSTM with masks that tells rising from falling sequences of different lengths, by adadelta."""

from __future__ import print_function

from collections import OrderedDict

import numpy

import theano
from theano import config
import theano.tensor as tensor


def numpy_floatX(data):
    return numpy.asarray(data, dtype=config.floatX)


def _p(pp, name):
    return "%s_%s" % (pp, name)


def ortho_weight(rng, ndim):
    # rotations of pairs, in any order
    W = numpy.eye(ndim)
    for k in range(0, ndim - 1, 2):
        a = rng.uniform(0, 2 * numpy.pi)
        W[k : k + 2, k : k + 2] = [[numpy.cos(a), -numpy.sin(a)], [numpy.sin(a), numpy.cos(a)]]
    return W[rng.permutation(ndim)].astype(config.floatX)


def init_params(rng, dim_in, dim, ydim):
    params = OrderedDict()
    params[_p("lstm", "W")] = numpy_floatX(0.3 * rng.randn(dim_in, 4 * dim))
    params[_p("lstm", "U")] = numpy.concatenate([ortho_weight(rng, dim) for _ in range(4)], axis=1)
    params[_p("lstm", "b")] = numpy.zeros((4 * dim,)).astype(config.floatX)
    params["U"] = 0.3 * rng.randn(dim, ydim).astype(config.floatX)
    params["b"] = numpy.zeros((ydim,)).astype(config.floatX)
    return params


def init_tparams(params):
    tparams = OrderedDict()
    for kk, pp in params.items():
        tparams[kk] = theano.shared(params[kk], name=kk)
    return tparams


def lstm_layer(tparams, state_below, dim, prefix="lstm", mask=None):
    nsteps = state_below.shape[0]
    n_samples = state_below.shape[1] if state_below.ndim == 3 else 1
    assert mask is not None

    def _slice(_x, n, dim):
        if _x.ndim == 3:
            return _x[:, :, n * dim : (n + 1) * dim]
        return _x[:, n * dim : (n + 1) * dim]

    def _step(m_, x_, h_, c_):
        preact = tensor.dot(h_, tparams[_p(prefix, "U")])
        preact += x_

        i = tensor.nnet.sigmoid(_slice(preact, 0, dim))
        f = tensor.nnet.sigmoid(_slice(preact, 1, dim))
        o = tensor.nnet.sigmoid(_slice(preact, 2, dim))
        c = tensor.tanh(_slice(preact, 3, dim))

        c = f * c_ + i * c
        c = m_[:, None] * c + (1.0 - m_)[:, None] * c_

        h = o * tensor.tanh(c)
        h = m_[:, None] * h + (1.0 - m_)[:, None] * h_
        return h, c

    state_below = tensor.dot(state_below, tparams[_p(prefix, "W")]) + tparams[_p(prefix, "b")]
    rval, updates = theano.scan(
        _step,
        sequences=[mask, state_below],
        outputs_info=[
            tensor.alloc(numpy_floatX(0.0), n_samples, dim),
            tensor.alloc(numpy_floatX(0.0), n_samples, dim),
        ],
        name=_p(prefix, "_layers"),
        n_steps=nsteps,
    )
    return rval[0]


def adadelta(tparams, grads, inputs, cost):
    zipped_grads = [
        theano.shared(p.get_value() * numpy_floatX(0.0), name="%s_grad" % k)
        for k, p in tparams.items()
    ]
    running_up2 = [
        theano.shared(p.get_value() * numpy_floatX(0.0), name="%s_rup2" % k)
        for k, p in tparams.items()
    ]
    running_grads2 = [
        theano.shared(p.get_value() * numpy_floatX(0.0), name="%s_rgrad2" % k)
        for k, p in tparams.items()
    ]
    zgup = [(zg, g) for zg, g in zip(zipped_grads, grads)]
    rg2up = [(rg2, 0.95 * rg2 + 0.05 * (g**2)) for rg2, g in zip(running_grads2, grads)]
    f_grad_shared = theano.function(
        inputs, cost, updates=zgup + rg2up, name="adadelta_f_grad_shared"
    )
    updir = [
        -tensor.sqrt(ru2 + 1e-4) / tensor.sqrt(rg2 + 1e-4) * zg
        for zg, ru2, rg2 in zip(zipped_grads, running_up2, running_grads2)
    ]
    ru2up = [(ru2, 0.95 * ru2 + 0.05 * (ud**2)) for ru2, ud in zip(running_up2, updir)]
    param_up = [(p, p + 5 * ud) for p, ud in zip(tparams.values(), updir)]
    f_update = theano.function(
        [], [], updates=ru2up + param_up, on_unused_input="ignore", name="adadelta_f_update"
    )
    return f_grad_shared, f_update


def make_data(rng, n, longest):
    """Noisy ramps; those of class 1 rise."""
    lengths = rng.randint(4, longest + 1, n)
    y = rng.randint(0, 2, n)
    x = numpy.zeros((longest, n, 1))
    mask = numpy.zeros((longest, n))
    for k in range(n):
        ramp = numpy.linspace(-1, 1, lengths[k]) * (2 * y[k] - 1)
        x[: lengths[k], k, 0] = ramp + 0.5 * rng.randn(lengths[k])
        mask[: lengths[k], k] = 1.0
    return x.astype(config.floatX), mask.astype(config.floatX), y.astype("int64")


def main(dim=6, n=40, longest=9, n_epochs=40):
    rng = numpy.random.RandomState(123)
    tparams = init_tparams(init_params(rng, 1, dim, 2))
    x = tensor.tensor3("x", dtype=config.floatX)
    mask = tensor.matrix("mask", dtype=config.floatX)
    y = tensor.vector("y", dtype="int64")

    proj = lstm_layer(tparams, x, dim, mask=mask)
    proj = (proj * mask[:, :, None]).sum(axis=0)
    proj = proj / mask.sum(axis=0)[:, None]
    pred = tensor.nnet.softmax(tensor.dot(proj, tparams["U"]) + tparams["b"])
    f_pred = theano.function([x, mask], pred.argmax(axis=1), name="f_pred")
    off = 1e-8
    cost = -tensor.log(pred[tensor.arange(x.shape[1]), y] + off).mean()
    grads = tensor.grad(cost, wrt=list(tparams.values()))
    f_grad_shared, f_update = adadelta(tparams, grads, [x, mask, y], cost)

    train, test = make_data(rng, n, longest), make_data(rng, n, longest)
    costs = []
    for epoch in range(n_epochs):
        costs.append(f_grad_shared(*train))
        f_update()
        if epoch % 10 == 9:
            print("epoch %d, cost %.4f" % (epoch + 1, costs[-1]))
    accuracy = numpy.mean(f_pred(*test[:2]) == test[2])
    print("test accuracy %.3f" % accuracy)
    return {"costs": numpy.array(costs), "accuracy": accuracy}


if __name__ == "__main__":
    main()
