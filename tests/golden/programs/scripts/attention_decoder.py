"""An encoder and a decoder with attention and masks: learns to write sequences backwards."""

from __future__ import print_function

from collections import OrderedDict

import numpy

import theano
from theano import tensor


def init(rng, n_symbols, dim):
    params = OrderedDict()

    def add(name, *shape):
        value = rng.randn(*shape) / numpy.sqrt(shape[0])
        params[name] = theano.shared(value.astype(theano.config.floatX), name=name)

    add("Wemb", n_symbols, dim)
    add("enc_U", dim, dim)
    add("enc_W", dim, dim)
    add("dec_U", dim, dim)
    add("dec_W", dim, dim)
    add("dec_C", dim, dim)
    add("att_h", dim, dim)
    add("att_c", dim, dim)
    add("att_v", dim)
    add("out", 2 * dim, n_symbols)
    return params


def encode(p, x, x_mask):
    emb = p["Wemb"][x.flatten()].reshape((x.shape[0], x.shape[1], p["Wemb"].shape[1]))

    def step(m_, x_, h_, U):
        h = tensor.tanh(x_ + tensor.dot(h_, U))
        return m_[:, None] * h + (1.0 - m_)[:, None] * h_

    h0 = tensor.alloc(
        numpy.asarray(0.0, dtype=theano.config.floatX), x.shape[1], p["Wemb"].shape[1]
    )
    h, _ = theano.scan(
        step,
        sequences=[x_mask, tensor.dot(emb, p["enc_W"])],
        outputs_info=[h0],
        non_sequences=[p["enc_U"]],
        name="encoder",
        profile=False,
        strict=True,
    )
    return h


def decode(p, context, x_mask, y):
    """Scores of each next symbol, given those before it; and where the decoder looked."""
    emb = p["Wemb"][y.flatten()].reshape((y.shape[0], y.shape[1], p["Wemb"].shape[1]))
    shifted = tensor.zeros_like(emb)
    shifted = tensor.set_subtensor(shifted[1:], emb[:-1])
    keys = tensor.dot(context, p["att_c"])

    def step(y_, h_, alpha_, keys, context, x_mask, U, C, att_h, att_v):
        e = tensor.dot(tensor.tanh(keys + tensor.dot(h_, att_h)[None, :, :]), att_v)
        e = tensor.exp(e - e.max(axis=0, keepdims=True)) * x_mask
        alpha = e / e.sum(axis=0, keepdims=True)
        seen = (context * alpha[:, :, None]).sum(axis=0)
        h = tensor.tanh(y_ + tensor.dot(h_, U) + tensor.dot(seen, C))
        return h, alpha, seen

    non_seqs = [keys, context, x_mask, p["dec_U"], p["dec_C"], p["att_h"], p["att_v"]]
    rval, updates = theano.scan(
        step,
        sequences=tensor.dot(shifted, p["dec_W"]),
        outputs_info=[context[-1], tensor.zeros_like(x_mask), None],
        non_sequences=non_seqs,
        n_steps=y.shape[0],
        name="decoder",
        strict=True,
    )
    h, alphas, seen = rval
    return tensor.dot(tensor.concatenate([h, seen], axis=2), p["out"]), alphas


def make(rng, n, n_symbols, longest):
    lengths = rng.randint(2, longest + 1, n)
    x = numpy.zeros((longest, n), dtype="int64")
    y = numpy.zeros((longest, n), dtype="int64")
    mask = numpy.zeros((longest, n), dtype=theano.config.floatX)
    for k, m in enumerate(lengths):
        x[:m, k] = rng.randint(0, n_symbols, m)
        y[:m, k] = x[:m, k][::-1]
        mask[:m, k] = 1
    return x, mask, y


def main(n_symbols=4, dim=12, n=24, longest=4, n_steps=80):
    rng = numpy.random.RandomState(3)
    p = init(rng, n_symbols, dim)
    x, y = tensor.lmatrix("x"), tensor.lmatrix("y")
    mask = tensor.matrix("mask")
    scores, alphas = decode(p, encode(p, x, mask), mask, y)
    flat = scores.reshape((y.shape[0] * y.shape[1], n_symbols))
    probs = tensor.nnet.softmax(flat)
    cost = -tensor.log(probs)[tensor.arange(flat.shape[0]), y.flatten()].reshape(y.shape)
    cost = (cost * mask).sum() / mask.sum()
    # Adam
    updates = OrderedDict()
    i = theano.shared(numpy.asarray(0.0, dtype=theano.config.floatX))
    i_t = i + 1.0
    lr_t = 0.02 * (tensor.sqrt(1.0 - 0.999**i_t) / (1.0 - 0.9**i_t))
    for param, g in zip(p.values(), tensor.grad(cost, list(p.values()))):
        m = theano.shared(param.get_value() * 0.0)
        v = theano.shared(param.get_value() * 0.0)
        m_t = 0.1 * g + 0.9 * m
        v_t = 0.001 * tensor.sqr(g) + 0.999 * v
        updates[m], updates[v] = m_t, v_t
        updates[param] = param - lr_t * m_t / (tensor.sqrt(v_t) + 1e-8)
    updates[i] = i_t
    train = theano.function([x, mask, y], cost, updates=updates)
    guess = tensor.argmax(scores, axis=2)
    look = theano.function([x, mask, y], [guess, alphas])
    data = make(rng, n, n_symbols, longest)
    costs = numpy.array([train(*data) for _ in range(n_steps)])
    guesses, where = look(*data)
    right = numpy.sum((guesses == data[2]) * data[1]) / data[1].sum()
    print("cost %.4f, then %.4f; %.1f%% right" % (costs[0], costs[-1], 100 * right))
    return {"costs": costs[::4], "right": right, "alphas": where[:, :, 0]}


if __name__ == "__main__":
    main()
