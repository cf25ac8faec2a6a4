"""Whole programs as people wrote them for Theano, under every mode, against numpy.

Each program is a function that imports theano, compiles under a mode and returns named results; the
function of the same name with ``_in_numpy`` computes them another way.
"""

import sys
from collections import OrderedDict

import numpy as np
import pytest

import theano
import theano.tensor as T

MODES = [
    pytest.param(theano.Mode("py", None), id="py, as written", marks=pytest.mark.null),
    pytest.param("FAST_COMPILE", marks=pytest.mark.null),
    pytest.param("FAST_RUN", marks=pytest.mark.c),
    pytest.param("PROFILE_MODE", marks=pytest.mark.c),
    pytest.param("DEBUG_MODE", marks=pytest.mark.c),
]

PROGRAMS = {}


def program(function):
    """Register a program."""
    PROGRAMS[function.__name__] = function
    return function


def numbers(*shape, seed=0, low=-1.0, high=1.0):
    return np.random.RandomState(seed).uniform(low, high, shape)


def labels(n, classes, seed=0):
    return np.random.RandomState(seed).randint(0, classes, n)


# --- logistic regression --------------------------------------------------------------------------


class LogisticRegression:
    """Multi-class logistic regression with shared weights, as in the deep learning tutorials."""

    def __init__(self, input, n_in, n_out):
        self.W = theano.shared(
            value=np.zeros((n_in, n_out), dtype=theano.config.floatX), name="W", borrow=True
        )
        self.b = theano.shared(
            value=np.zeros((n_out,), dtype=theano.config.floatX), name="b", borrow=True
        )
        self.p_y_given_x = T.nnet.softmax(T.dot(input, self.W) + self.b)
        self.y_pred = T.argmax(self.p_y_given_x, axis=1)
        self.params = [self.W, self.b]

    def negative_log_likelihood(self, y):
        return -T.mean(T.log(self.p_y_given_x)[T.arange(y.shape[0]), y])

    def errors(self, y):
        if y.ndim != self.y_pred.ndim:
            raise TypeError("y should have the same shape as self.y_pred", ("y", y.type))
        if not y.dtype.startswith("int"):
            raise NotImplementedError()
        return T.mean(T.neq(self.y_pred, y))


@program
def logistic_regression(mode):
    x, y = T.matrix("x"), T.ivector("y")
    classifier = LogisticRegression(input=x, n_in=5, n_out=3)
    cost = classifier.negative_log_likelihood(y)
    g_W = T.grad(cost=cost, wrt=classifier.W)
    g_b = T.grad(cost=cost, wrt=classifier.b)
    updates = [(classifier.W, classifier.W - 0.5 * g_W), (classifier.b, classifier.b - 0.5 * g_b)]
    train = theano.function(inputs=[x, y], outputs=cost, updates=updates, mode=mode)
    test = theano.function(inputs=[x, y], outputs=classifier.errors(y), mode=mode)
    data, target = numbers(30, 5), labels(30, 3).astype("int32")
    costs = [train(data, target) for _ in range(10)]
    return {"costs": costs, "errors": test(data, target), "W": classifier.W.get_value(),
            "b": classifier.b.get_value()}  # fmt: skip


def softmax(x):
    e = np.exp(x - x.max(axis=1, keepdims=True))
    return e / e.sum(axis=1, keepdims=True)


def logistic_regression_in_numpy():
    x, y = numbers(30, 5), labels(30, 3)
    W, b, costs = np.zeros((5, 3)), np.zeros(3), []
    for _ in range(10):
        p = softmax(x @ W + b)
        costs.append(-np.log(p[np.arange(30), y]).mean())
        d = (p - np.eye(3)[y]) / 30
        W, b = W - 0.5 * x.T @ d, b - 0.5 * d.sum(axis=0)
    errors = (softmax(x @ W + b).argmax(axis=1) != y).mean()
    return {"costs": costs, "errors": errors, "W": W, "b": b}


# --- a network of tanh units, with L1 and L2 ------------------------------------------------------


class HiddenLayer:
    """A layer of tanh units."""

    def __init__(self, rng, input, n_in, n_out, activation=T.tanh):
        bound = np.sqrt(6.0 / (n_in + n_out))
        W_values = np.asarray(
            rng.uniform(low=-bound, high=bound, size=(n_in, n_out)), dtype=theano.config.floatX
        )
        if activation == T.nnet.sigmoid:
            W_values *= 4
        self.W = theano.shared(value=W_values, name="W", borrow=True)
        b_values = np.zeros((n_out,), dtype=theano.config.floatX)
        self.b = theano.shared(value=b_values, name="b", borrow=True)
        lin_output = T.dot(input, self.W) + self.b
        self.output = lin_output if activation is None else activation(lin_output)
        self.params = [self.W, self.b]


@program
def multilayer_perceptron(mode):
    x, y = T.matrix("x"), T.ivector("y")
    hidden = HiddenLayer(np.random.RandomState(1234), x, 5, 7)
    top = LogisticRegression(hidden.output, 7, 3)
    L1 = abs(hidden.W).sum() + abs(top.W).sum()
    L2_sqr = (hidden.W**2).sum() + (top.W**2).sum()
    cost = top.negative_log_likelihood(y) + 0.01 * L1 + 0.001 * L2_sqr
    params = hidden.params + top.params
    gparams = [T.grad(cost, param) for param in params]
    updates = [(param, param - 0.1 * gparam) for param, gparam in zip(params, gparams, strict=True)]
    train = theano.function([x, y], cost, updates=updates, mode=mode)
    data, target = numbers(20, 5), labels(20, 3).astype("int32")
    costs = [train(data, target) for _ in range(6)]
    return {"costs": costs, **{f"p{i}": p.get_value() for i, p in enumerate(params)}}


def multilayer_perceptron_in_numpy():
    x, y = numbers(20, 5), labels(20, 3)
    bound = np.sqrt(6.0 / 12)
    V = np.random.RandomState(1234).uniform(low=-bound, high=bound, size=(5, 7))
    c, W, b, costs = np.zeros(7), np.zeros((7, 3)), np.zeros(3), []
    for _ in range(6):
        h = np.tanh(x @ V + c)
        p = softmax(h @ W + b)
        penalty = 0.01 * (abs(V).sum() + abs(W).sum()) + 0.001 * ((V**2).sum() + (W**2).sum())
        costs.append(-np.log(p[np.arange(20), y]).mean() + penalty)
        d = (p - np.eye(3)[y]) / 20
        dh = (d @ W.T) * (1 - h**2)
        V, c, W, b = (
            V - 0.1 * (x.T @ dh + 0.01 * np.sign(V) + 0.002 * V),
            c - 0.1 * dh.sum(axis=0),
            W - 0.1 * (h.T @ d + 0.01 * np.sign(W) + 0.002 * W),
            b - 0.1 * d.sum(axis=0),
        )
    return {"costs": costs, "p0": V, "p1": c, "p2": W, "p3": b}


# --- a denoising autoencoder with tied weights ----------------------------------------------------


@program
def denoising_autoencoder(mode):
    x, mask = T.dmatrix("x"), T.dmatrix("mask")
    W = theano.shared(numbers(6, 4, seed=1), name="W", borrow=True)
    bhid = theano.shared(value=np.zeros(4, dtype=theano.config.floatX), borrow=True)
    bvis = theano.shared(value=np.zeros(6, dtype=theano.config.floatX), borrow=True)
    W_prime = W.T
    tilde_x = mask * x
    y = T.nnet.sigmoid(T.dot(tilde_x, W) + bhid)
    z = T.nnet.sigmoid(T.dot(y, W_prime) + bvis)
    L = -T.sum(x * T.log(z) + (1 - x) * T.log(1 - z), axis=1)
    cost = T.mean(L)
    params = [W, bhid, bvis]
    gparams = T.grad(cost, params)
    updates = []
    for param, gparam in zip(params, gparams, strict=True):
        updates.append((param, param - 0.1 * gparam))
    train_da = theano.function([x, mask], cost, updates=updates, mode=mode)
    hidden = theano.function([x], y, givens={mask: T.ones_like(x)}, mode=mode)
    data = (numbers(10, 6) > 0).astype(float)
    noise = (numbers(10, 6, seed=2) > -0.4).astype(float)
    costs = [train_da(data, noise) for _ in range(5)]
    return {"costs": costs, "W": W.get_value(), "bhid": bhid.get_value(),
            "bvis": bvis.get_value(), "hidden": hidden(data)}  # fmt: skip


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def denoising_autoencoder_in_numpy():
    x, mask = (numbers(10, 6) > 0).astype(float), (numbers(10, 6, seed=2) > -0.4).astype(float)
    W, bhid, bvis, costs = numbers(6, 4, seed=1), np.zeros(4), np.zeros(6), []
    for _ in range(5):
        y = sigmoid((mask * x) @ W + bhid)
        z = sigmoid(y @ W.T + bvis)
        costs.append(-(x * np.log(z) + (1 - x) * np.log(1 - z)).sum(axis=1).mean())
        dz = (z - x) / 10
        dy = (dz @ W) * y * (1 - y)
        W, bhid, bvis = (
            W - 0.1 * ((mask * x).T @ dy + dz.T @ y),
            bhid - 0.1 * dy.sum(axis=0),
            bvis - 0.1 * dz.sum(axis=0),
        )
    return {"costs": costs, "W": W, "bhid": bhid, "bvis": bvis, "hidden": sigmoid(x @ W + bhid)}


# --- ways to descend ------------------------------------------------------------------------------


def sgd_momentum(cost, params, lr=0.05, momentum=0.9):
    updates = OrderedDict()
    for p, g in zip(params, T.grad(cost, params), strict=True):
        v = theano.shared(np.zeros(p.get_value().shape, dtype=theano.config.floatX))
        updates[v] = momentum * v - lr * g
        updates[p] = p + updates[v]
    return updates


def adagrad(cost, params, lr=0.5, epsilon=1e-6):
    updates = OrderedDict()
    for p, g in zip(params, T.grad(cost, params), strict=True):
        acc = theano.shared(p.get_value() * 0.0)
        acc_new = acc + g**2
        updates[acc] = acc_new
        updates[p] = p - lr * g / T.sqrt(acc_new + epsilon)
    return updates


def rmsprop(cost, params, lr=0.05, rho=0.9, epsilon=1e-6):
    grads = T.grad(cost=cost, wrt=params)
    updates = OrderedDict()
    for p, g in zip(params, grads, strict=True):
        acc = theano.shared(p.get_value() * 0.0)
        acc_new = rho * acc + (1 - rho) * g**2
        gradient_scaling = T.sqrt(acc_new + epsilon)
        g = g / gradient_scaling
        updates[acc] = acc_new
        updates[p] = p - lr * g
    return updates


def adam(cost, params, lr=0.05, b1=0.1, b2=0.001, e=1e-8):
    updates = OrderedDict()
    grads = T.grad(cost, params)
    i = theano.shared(np.asarray(0.0, dtype=theano.config.floatX))
    i_t = i + 1.0
    fix1 = 1.0 - (1.0 - b1) ** i_t
    fix2 = 1.0 - (1.0 - b2) ** i_t
    lr_t = lr * (T.sqrt(fix2) / fix1)
    for p, g in zip(params, grads, strict=True):
        m = theano.shared(p.get_value() * 0.0)
        v = theano.shared(p.get_value() * 0.0)
        m_t = (b1 * g) + ((1.0 - b1) * m)
        v_t = (b2 * T.sqr(g)) + ((1.0 - b2) * v)
        g_t = m_t / (T.sqrt(v_t) + e)
        p_t = p - (lr_t * g_t)
        updates[m] = m_t
        updates[v] = v_t
        updates[p] = p_t
    updates[i] = i_t
    return updates


@program
def ways_to_descend(mode):
    results = {}
    for method in (sgd_momentum, adagrad, rmsprop, adam):
        X, t = T.dmatrix("X"), T.dvector("t")
        w, b = theano.shared(numbers(4, seed=3), name="w"), theano.shared(0.0, name="b")
        cost = T.mean(T.sqr(T.dot(X, w) + b - t))
        train = theano.function([X, t], cost, updates=method(cost, [w, b]), mode=mode)
        costs = [train(numbers(12, 4), numbers(12, seed=1)) for _ in range(8)]
        results[method.__name__] = np.concatenate([costs, w.get_value(), [b.get_value()]])
    return results


def descend(step, slots):
    X, t = numbers(12, 4), numbers(12, seed=1)
    p = np.concatenate([numbers(4, seed=3), [0.0]])
    X1 = np.c_[X, np.ones(12)]
    state, costs = [np.zeros(5) for _ in range(slots)], []
    for k in range(8):
        r = X1 @ p - t
        costs.append((r**2).mean())
        p = p + step(k + 1, 2 * X1.T @ r / 12, state)
    return np.concatenate([costs, p])


def ways_to_descend_in_numpy():
    def momentum_step(k, g, state):
        state[0] = 0.9 * state[0] - 0.05 * g
        return state[0]

    def adagrad_step(k, g, state):
        state[0] = state[0] + g**2
        return -0.5 * g / np.sqrt(state[0] + 1e-6)

    def rmsprop_step(k, g, state):
        state[0] = 0.9 * state[0] + 0.1 * g**2
        return -0.05 * g / np.sqrt(state[0] + 1e-6)

    def adam_step(k, g, state):
        state[0] = 0.1 * g + 0.9 * state[0]
        state[1] = 0.001 * g**2 + 0.999 * state[1]
        rate = 0.05 * np.sqrt(1 - 0.999**k) / (1 - 0.9**k)
        return -rate * state[0] / (np.sqrt(state[1]) + 1e-8)

    return {
        "sgd_momentum": descend(momentum_step, 1), "adagrad": descend(adagrad_step, 1),
        "rmsprop": descend(rmsprop_step, 1), "adam": descend(adam_step, 2),
    }  # fmt: skip


# --- word embeddings ------------------------------------------------------------------------------


@program
def word_embeddings(mode):
    idxs, y = T.imatrix("idxs"), T.ivector("y")
    emb = theano.shared(numbers(9, 3, seed=4), name="embeddings")
    Wx = theano.shared(numbers(6, 5, seed=5), name="Wx")
    lr = T.scalar("lr")
    x = emb[idxs].reshape((idxs.shape[0], 6))
    p = T.nnet.softmax(T.dot(x, Wx))
    nll = T.nnet.categorical_crossentropy(p, y).mean()
    gradients = T.grad(nll, [emb, Wx])
    updates = OrderedDict((p_, p_ - lr * g) for p_, g in zip([emb, Wx], gradients, strict=True))
    train = theano.function(inputs=[idxs, y, lr], outputs=nll, updates=updates, mode=mode)
    normalize = theano.function(
        inputs=[], mode=mode,
        updates={emb: emb / T.sqrt((emb**2).sum(axis=1)).dimshuffle(0, "x")},
    )  # fmt: skip
    # only the rows that were looked up
    words = T.lvector("words")
    subset = emb[words]
    loss = T.sum((subset - 1.0) ** 2)
    sparse = theano.function(
        [words], loss, mode=mode,
        updates=[(emb, T.inc_subtensor(subset, -0.1 * T.grad(loss, subset)))],
    )  # fmt: skip
    contexts = np.array([[0, 1], [1, 1], [8, 2], [0, 8]], dtype="int32")
    target = np.array([0, 4, 2, 2], dtype="int32")
    costs = []
    for _ in range(4):
        costs.append(train(contexts, target, 0.3))
        normalize()
        costs.append(sparse([3, 3, 5]))
    return {"costs": costs, "emb": emb.get_value(), "Wx": Wx.get_value()}


def word_embeddings_in_numpy():
    emb, Wx, costs = numbers(9, 3, seed=4), numbers(6, 5, seed=5), []
    contexts, y = np.array([[0, 1], [1, 1], [8, 2], [0, 8]]), np.array([0, 4, 2, 2])
    for _ in range(4):
        x = emb[contexts].reshape(4, 6)
        p = softmax(x @ Wx)
        costs.append(-np.log(p[np.arange(4), y]).mean())
        d = (p - np.eye(5)[y]) / 4
        g = np.zeros_like(emb)
        np.add.at(g, contexts.ravel(), (d @ Wx.T).reshape(8, 3))
        emb, Wx = emb - 0.3 * g, Wx - 0.3 * x.T @ d
        emb = emb / np.sqrt((emb**2).sum(axis=1))[:, None]
        rows = emb[[3, 3, 5]]
        costs.append(((rows - 1) ** 2).sum())
        np.add.at(emb, [3, 3, 5], -0.1 * 2 * (rows - 1))
    return {"costs": costs, "emb": emb, "Wx": Wx}


# --- a restricted Boltzmann machine ---------------------------------------------------------------


@program
def boltzmann_machine(mode):
    v = T.matrix("v")
    W = theano.shared(numbers(6, 4, seed=6), name="W", borrow=True)
    hbias = theano.shared(np.zeros(4), name="hbias", borrow=True)
    vbias = theano.shared(np.zeros(6), name="vbias", borrow=True)
    params = [W, hbias, vbias]

    def free_energy(v_sample):
        wx_b = T.dot(v_sample, W) + hbias
        vbias_term = T.dot(v_sample, vbias)
        hidden_term = T.sum(T.log(1 + T.exp(wx_b)), axis=1)
        return -hidden_term - vbias_term

    def gibbs_vhv(v0_sample):
        h1_mean = T.nnet.sigmoid(T.dot(v0_sample, W) + hbias)
        return T.nnet.sigmoid(T.dot(h1_mean, W.T) + vbias)

    chain_end = gibbs_vhv(gibbs_vhv(v))
    cost = T.mean(free_energy(v)) - T.mean(free_energy(chain_end))
    gparams = T.grad(cost, params, consider_constant=[chain_end])
    updates = {}
    for gparam, param in zip(gparams, params, strict=True):
        updates[param] = param - gparam * T.cast(0.2, dtype=theano.config.floatX)
    monitor = T.mean(T.nnet.softplus(T.dot(chain_end, W) + hbias))
    train = theano.function([v], [cost, monitor], updates=list(updates.items()), mode=mode)
    data = (numbers(8, 6, seed=7) > 0).astype(float)
    costs = [train(data) for _ in range(5)]
    return {"costs": np.array(costs), **{str(p): p.get_value() for p in params}}


def boltzmann_machine_in_numpy():
    W, hbias, vbias, costs = numbers(6, 4, seed=6), np.zeros(4), np.zeros(6), []
    data = (numbers(8, 6, seed=7) > 0).astype(float)
    for _ in range(5):
        end = data
        for _ in range(2):
            end = sigmoid(sigmoid(end @ W + hbias) @ W.T + vbias)

        def energy(v, W=W, hbias=hbias, vbias=vbias):
            return -np.logaddexp(0, v @ W + hbias).sum(axis=1) - v @ vbias

        costs.append([energy(data).mean() - energy(end).mean(),
                      np.logaddexp(0, end @ W + hbias).mean()])  # fmt: skip
        hidden = sigmoid(data @ W + hbias), sigmoid(end @ W + hbias)
        W, hbias, vbias = (
            W + 0.2 * (data.T @ hidden[0] - end.T @ hidden[1]) / 8,
            hbias + 0.2 * (hidden[0] - hidden[1]).mean(axis=0),
            vbias + 0.2 * (data - end).mean(axis=0),
        )
    return {"costs": np.array(costs), "W": W, "hbias": hbias, "vbias": vbias}


# --- clusters -------------------------------------------------------------------------------------


@program
def clusters(mode):
    x = T.dmatrix("x")
    # k-means
    centroids = theano.shared(numbers(3, 2, seed=8), name="centroids")
    distances = ((x[:, None, :] - centroids[None, :, :]) ** 2).sum(axis=2)
    nearest = T.argmin(distances, axis=1)
    member = T.eq(nearest.dimshuffle(0, "x"), T.arange(3).dimshuffle("x", 0))
    member = T.cast(member, theano.config.floatX)
    counts = member.sum(axis=0)
    means = T.dot(member.T, x) / T.maximum(counts, 1).dimshuffle(0, "x")
    moved = T.switch(T.gt(counts, 0).dimshuffle(0, "x"), means, centroids)
    step = theano.function(
        [x], [T.min(distances, axis=1).sum(), nearest], updates=[(centroids, moved)], mode=mode
    )
    data = numbers(25, 2, seed=9)
    inertia = [step(data)[0] for _ in range(5)]
    # a mixture of Gaussians, by gradient ascent
    mu = theano.shared(centroids.get_value(), name="mu")
    log_sigma = theano.shared(np.zeros(3), name="log_sigma")
    mix = theano.shared(np.zeros(3), name="mix")
    log_pi = T.log(T.nnet.softmax(mix.dimshuffle("x", 0))).flatten()
    exponent = -0.5 * ((x[:, None, :] - mu) ** 2).sum(axis=2) / T.exp(2 * log_sigma)
    a = log_pi + exponent - 2 * log_sigma - T.log(2 * np.pi)
    m = T.max(a, axis=1, keepdims=True)
    log_likelihood = T.mean(T.log(T.sum(T.exp(a - m), axis=1)) + m.flatten())
    params = [mu, log_sigma, mix]
    climb = theano.function(
        [x], log_likelihood, mode=mode,
        updates=[(p, p + 0.2 * g) for p, g in
                 zip(params, theano.grad(log_likelihood, params), strict=True)],
    )  # fmt: skip
    values = [climb(data) for _ in range(4)]
    return {"inertia": inertia, "nearest": step(data)[1], "values": values,
            **{p.name: p.get_value() for p in params}}  # fmt: skip


def clusters_in_numpy():
    data, c, inertia = numbers(25, 2, seed=9), numbers(3, 2, seed=8), []
    for _ in range(5):
        d = ((data[:, None] - c) ** 2).sum(axis=2)
        inertia.append(d.min(axis=1).sum())
        near = d.argmin(axis=1)
        c = np.array(
            [data[near == k].mean(axis=0) if (near == k).any() else c[k] for k in range(3)]
        )
    nearest = ((data[:, None] - c) ** 2).sum(axis=2).argmin(axis=1)
    mu, s, mix, values = c, np.zeros(3), np.zeros(3), []
    for _ in range(4):
        diff = data[:, None] - mu
        sq = (diff**2).sum(axis=2)
        pi = softmax(mix[None])[0]
        a = np.log(pi) - 0.5 * sq * np.exp(-2 * s) - 2 * s - np.log(2 * np.pi)
        values.append(np.logaddexp.reduce(a, axis=1).mean())
        r = softmax(a)
        mu, s, mix = (
            mu + 0.2 * (r[:, :, None] * diff).mean(axis=0) * np.exp(-2 * s)[:, None],
            s + 0.2 * (r * (sq * np.exp(-2 * s) - 2)).mean(axis=0),
            mix + 0.2 * (r - pi).mean(axis=0),
        )
    return {"inertia": inertia, "nearest": nearest, "values": values, "mu": mu, "log_sigma": s,
            "mix": mix}  # fmt: skip


# --- matrix factorisation -------------------------------------------------------------------------


@program
def matrix_factorisation(mode):
    user, item, rating = T.lvector("user"), T.lvector("item"), T.dvector("rating")
    U = theano.shared(numbers(5, 3, seed=10), name="U")
    V = theano.shared(numbers(7, 3, seed=11), name="V")
    bu, bi = theano.shared(np.zeros(5), name="bu"), theano.shared(np.zeros(7), name="bi")
    prediction = (U[user] * V[item]).sum(axis=1) + bu[user] + bi[item] + rating.mean()
    error = T.sqr(rating - prediction)
    regularisation = 0.1 * (T.sum(U**2) + T.sum(V**2))
    loss = T.sum(error) + regularisation
    params = [U, V, bu, bi]
    updates = [(p, p - 0.02 * T.grad(loss, p)) for p in params]
    train = theano.function([user, item, rating], [loss, T.sqrt(error.mean())], updates=updates,
                            mode=mode)  # fmt: skip
    predict = theano.function([user, item, rating], prediction, mode=mode)
    args = labels(20, 5, seed=1), labels(20, 7, seed=2), numbers(20, seed=12, low=1, high=5)
    losses = np.array([train(*args) for _ in range(6)])
    return {"losses": losses, **{p.name: p.get_value() for p in params},
            "predictions": predict(*args)}  # fmt: skip


def matrix_factorisation_in_numpy():
    user, item = labels(20, 5, seed=1), labels(20, 7, seed=2)
    rating = numbers(20, seed=12, low=1, high=5)
    U, V, bu, bi, losses = (
        numbers(5, 3, seed=10),
        numbers(7, 3, seed=11),
        np.zeros(5),
        np.zeros(7),
        [],
    )

    def predict():
        return (U[user] * V[item]).sum(axis=1) + bu[user] + bi[item] + rating.mean()

    for _ in range(6):
        r = predict() - rating
        losses.append([(r**2).sum() + 0.1 * ((U**2).sum() + (V**2).sum()), np.sqrt((r**2).mean())])
        gU, gV, gu, gi = 0.2 * U, 0.2 * V, np.zeros(5), np.zeros(7)
        np.add.at(gU, user, 2 * r[:, None] * V[item])
        np.add.at(gV, item, 2 * r[:, None] * U[user])
        np.add.at(gu, user, 2 * r)
        np.add.at(gi, item, 2 * r)
        U, V, bu, bi = U - 0.02 * gU, V - 0.02 * gV, bu - 0.02 * gu, bi - 0.02 * gi
    return {"losses": np.array(losses), "U": U, "V": V, "bu": bu, "bi": bi,
            "predictions": predict()}  # fmt: skip


# --- a polynomial as a Module ---------------------------------------------------------------------


class Polynomial(theano.Module):
    """Fits a polynomial of a fixed degree; written for the Module system of the 0.x releases."""

    def __init__(self, degree=3):
        super().__init__()
        self.coefficients = T.dvector("coefficients")
        self.stepsize = T.dscalar("stepsize")
        x, y = T.dvector("x"), T.dvector("y")
        powers = T.stack([x**k for k in range(degree + 1)], axis=1)
        self.prediction = T.dot(powers, self.coefficients)
        cost = T.mean((self.prediction - y) ** 2)
        gradient = T.grad(cost, self.coefficients)
        self.fit = theano.Method(
            [x, y], [cost, gradient],
            updates={self.coefficients: self.coefficients - self.stepsize * gradient},
        )  # fmt: skip
        self.evaluate = theano.Method([x], self.prediction)
        self.slope = theano.Method([x], T.grad(self.prediction.sum(), x))
        self.degree = degree

    def _instance_initialize(self, obj, stepsize=0.1, **init):
        obj.coefficients = np.zeros(self.degree + 1)
        obj.stepsize = stepsize
        theano.compile.module.default_initialize(obj, **init)

    def _instance_train(self, obj, x, y, n):
        return [obj.fit(x, y)[0] for _ in range(n)]


@program
def polynomial(mode):
    x = np.linspace(-1, 1, 15)
    y = 1 - 2 * x + 0.5 * x**3
    model = Polynomial().make(mode=mode, stepsize=0.2)
    costs = model.train(x, y, 10)
    other = Polynomial(degree=2).make(mode=mode, coefficients=[1.0, 2.0, 3.0])
    return {"costs": costs, "coefficients": model.coefficients, "values": model.evaluate(x),
            "slope": other.slope([0.5, 1.0]), "stepsize": other.stepsize}  # fmt: skip


def polynomial_in_numpy():
    x = np.linspace(-1, 1, 15)
    y = 1 - 2 * x + 0.5 * x**3
    powers, c, costs = np.vander(x, 4, increasing=True), np.zeros(4), []
    for _ in range(10):
        r = powers @ c - y
        costs.append((r**2).mean())
        c = c - 0.2 * 2 * powers.T @ r / 15
    return {"costs": costs, "coefficients": c, "values": powers @ c, "slope": [5.0, 8.0],
            "stepsize": 0.1}  # fmt: skip


# --- an Op of one's own ---------------------------------------------------------------------------


class SoftThreshold(theano.Op):
    """Shrinks every element towards zero by ``amount``, as ISTA needs it; with the old methods."""

    def __init__(self, amount):
        self.amount = amount

    def __eq__(self, other):
        return type(self) is type(other) and self.amount == other.amount

    def __hash__(self):
        return hash(type(self)) ^ hash(self.amount)

    def __str__(self):
        return f"SoftThreshold{{{self.amount}}}"

    def make_node(self, x):
        x = T.as_tensor_variable(x)
        return theano.Apply(self, [x], [x.type()])

    def perform(self, node, inputs, out):
        (x,) = inputs
        (z,) = out
        z[0] = np.sign(x) * np.maximum(abs(x) - self.amount, 0)

    def infer_shape(self, node, shapes):
        return shapes

    def grad(self, inputs, output_gradients):
        (x,) = inputs
        (gz,) = output_gradients
        return [T.switch(abs(x) > self.amount, gz, 0.0)]

    def R_op(self, inputs, eval_points):
        return self.grad(inputs, eval_points)


@program
def op_of_ones_own(mode):
    A, target = theano.shared(numbers(8, 5, seed=13)), numbers(8, seed=14)
    w = theano.shared(np.zeros(5), name="w")
    residual = T.dot(A, w) - target
    cost = 0.5 * T.sum(residual**2)
    ista = theano.function(
        [], cost, updates=[(w, SoftThreshold(0.05)(w - 0.1 * T.grad(cost, w)))], mode=mode
    )
    costs = [ista() for _ in range(12)]
    x, direction = T.dmatrix("x"), T.dmatrix("direction")
    y = SoftThreshold(0.5)(x)
    derivatives = theano.function(
        [x, direction], [T.grad(T.sum(y**3), x), T.Rop(y, x, direction), y.shape], mode=mode
    )
    points, along = numbers(3, 4, seed=15) * 2, numbers(3, 4, seed=16)
    gradient, push, shape = derivatives(points, along)
    theano.gradient.verify_grad(
        SoftThreshold(0.5), [points], rng=np.random.RandomState(1), mode=mode
    )
    assert SoftThreshold(0.5) == SoftThreshold(0.5) != SoftThreshold(0.4)
    return {"costs": costs, "w": w.get_value(), "gradient": gradient, "push": push, "shape": shape}


def op_of_ones_own_in_numpy():
    A, target, w, costs = numbers(8, 5, seed=13), numbers(8, seed=14), np.zeros(5), []
    for _ in range(12):
        r = A @ w - target
        costs.append(0.5 * (r**2).sum())
        w = w - 0.1 * A.T @ r
        w = np.sign(w) * np.maximum(abs(w) - 0.05, 0)
    x, along = numbers(3, 4, seed=15) * 2, numbers(3, 4, seed=16)
    y = np.sign(x) * np.maximum(abs(x) - 0.5, 0)
    return {"costs": costs, "w": w, "gradient": 3 * y**2, "push": np.where(abs(x) > 0.5, along, 0),
            "shape": (3, 4)}  # fmt: skip


# --- a scalar op of one's own ---------------------------------------------------------------------


class SoftSquare(theano.scalar.UnaryScalarOp):
    """x**2 / (1 + x**2)."""

    def impl(self, x):
        return x * x / (1.0 + x * x)

    def grad(self, inputs, output_gradients):
        (x,) = inputs
        (gz,) = output_gradients
        return [gz * 2 * x / theano.scalar.sqr(1 + theano.scalar.sqr(x))]

    def c_code(self, node, name, inputs, outputs, sub):
        (x,) = inputs
        (z,) = outputs
        return f"{z} = {x} * {x} / (1.0 + {x} * {x});"


soft_square = T.Elemwise(SoftSquare(theano.scalar.upgrade_to_float, name="soft_square"))


@program
def scalar_op_of_ones_own(mode):
    x, y = T.dmatrix("x"), T.dvector("y")
    w = theano.shared(numbers(4, seed=17), name="w")
    out = soft_square(T.dot(x, w) * 2 + 1)
    cost = T.mean((out - y) ** 2)
    train = theano.function([x, y], cost, updates=[(w, w - 0.3 * T.grad(cost, w))], mode=mode)
    costs = [train(numbers(9, 4), numbers(9, seed=18, low=0)) for _ in range(5)]
    i = T.ivector("i")
    ints = theano.function([i], soft_square(i), mode=mode)(np.array([0, 1, 3], "int32"))
    return {"costs": costs, "w": w.get_value(), "ints": ints}


def scalar_op_of_ones_own_in_numpy():
    x, y, w, costs = numbers(9, 4), numbers(9, seed=18, low=0), numbers(4, seed=17), []
    for _ in range(5):
        a = x @ w * 2 + 1
        r = a**2 / (1 + a**2) - y
        costs.append((r**2).mean())
        w = w - 0.3 * 2 * x.T @ (2 * r * 2 * a / (1 + a**2) ** 2) / 9
    return {"costs": costs, "w": w, "ints": [0.0, 0.5, 0.9]}


# --- minibatches of shared data -------------------------------------------------------------------


def shared_dataset(data_xy, borrow=True):
    """Puts a data set into shared variables; labels are kept as floats, as GPUs wanted them."""
    data_x, data_y = data_xy
    shared_x = theano.shared(np.asarray(data_x, dtype=theano.config.floatX), borrow=borrow)
    shared_y = theano.shared(np.asarray(data_y, dtype=theano.config.floatX), borrow=borrow)
    return shared_x, T.cast(shared_y, "int32")


@program
def minibatches(mode):
    train_set_x, train_set_y = shared_dataset((numbers(40, 5), labels(40, 3)))
    valid_set_x, valid_set_y = shared_dataset((numbers(20, 5, seed=20), labels(20, 3, seed=20)))
    batch_size = 8
    n_train_batches = train_set_x.get_value(borrow=True).shape[0] // batch_size
    index = T.lscalar()
    x, y = T.matrix("x"), T.ivector("y")
    classifier = LogisticRegression(input=x, n_in=5, n_out=3)
    cost = classifier.negative_log_likelihood(y)
    validate_model = theano.function(
        inputs=[index], outputs=classifier.errors(y), mode=mode,
        givens={
            x: valid_set_x[index * batch_size : (index + 1) * batch_size],
            y: valid_set_y[index * batch_size : (index + 1) * batch_size],
        },
    )  # fmt: skip
    learning_rate = T.scalar("learning_rate")
    updates = [(p, p - learning_rate * T.grad(cost, p)) for p in classifier.params]
    train_model = theano.function(
        inputs=[index, theano.Param(learning_rate, default=0.13)], outputs=cost, updates=updates,
        mode=mode,
        givens={
            x: train_set_x[index * batch_size : (index + 1) * batch_size],
            y: train_set_y[index * batch_size : (index + 1) * batch_size],
        },
    )  # fmt: skip
    costs, losses = [], []
    for epoch in range(3):
        for minibatch_index in range(n_train_batches):
            if epoch == 1:
                costs.append(train_model(minibatch_index, learning_rate=0.5))
            else:
                costs.append(train_model(minibatch_index))
        losses.append(np.mean([validate_model(i) for i in range(3)]))
    return {"costs": costs, "losses": losses, "W": classifier.W.get_value()}


def minibatches_in_numpy():
    x, y = numbers(40, 5), labels(40, 3)
    vx, vy = numbers(20, 5, seed=20), labels(20, 3, seed=20)
    W, b, costs, losses = np.zeros((5, 3)), np.zeros(3), [], []
    for epoch in range(3):
        for i in range(5):
            s = slice(8 * i, 8 * i + 8)
            p = softmax(x[s] @ W + b)
            costs.append(-np.log(p[np.arange(8), y[s]]).mean())
            d = (p - np.eye(3)[y[s]]) / 8
            rate = 0.5 if epoch == 1 else 0.13
            W, b = W - rate * x[s].T @ d, b - rate * d.sum(axis=0)
        wrong = softmax(vx @ W + b).argmax(axis=1) != vy
        losses.append(np.mean([wrong[8 * i : 8 * i + 8].mean() for i in range(3)]))
    return {"costs": costs, "losses": losses, "W": W}


# --- every program under every mode ---------------------------------------------------------------


@pytest.mark.filterwarnings("ignore:The Param class is deprecated")
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("name", PROGRAMS)
def test_programs(name, mode, capsys):
    results = PROGRAMS[name](mode)
    expected = getattr(sys.modules[__name__], f"{name}_in_numpy")()
    assert list(results) == list(expected)
    for key, value in results.items():
        np.testing.assert_allclose(value, expected[key], rtol=1e-8, atol=1e-12, err_msg=key)
    if mode == "PROFILE_MODE":
        theano.compile.get_mode(mode).print_summary()
        assert "ProfileMode.print_summary()" in capsys.readouterr().out
