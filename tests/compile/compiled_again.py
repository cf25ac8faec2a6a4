"""Functions that are compiled again, from a pickle or from the cache, with their arguments."""

import numpy as np

import theano
import theano.tensor as T
from opwise.testing.fuzz.grow import Rejected
from opwise.testing.fuzz.shrink import Recorded
from opwise.testing.fuzz.whole import LOOPS, grown
from theano.ifelse import ifelse
from theano.tensor.shared_randomstreams import RandomStreams

RNG = np.random.RandomState(0)


def regression():
    x, y = T.dmatrix("x"), T.dvector("y")
    w, b = theano.shared(RNG.randn(3), name="w"), theano.shared(0.0, name="b")
    p = T.nnet.sigmoid(T.dot(x, w) + b)
    cost = T.nnet.binary_crossentropy(p, y).mean() + 0.01 * (w**2).sum()
    updates = [(v, v - 0.1 * T.grad(cost, v)) for v in (w, b)]
    f = theano.function([x, y], [p, cost], updates=updates, name="step")
    return f, [RNG.rand(5, 3), RNG.rand(5)]


def recurrent():
    xs, h0 = T.dmatrix("xs"), T.dvector("h0")
    w = theano.shared(RNG.randn(3, 3), name="w")
    h, _ = theano.scan(lambda x, h: T.tanh(x + T.dot(h, w)), sequences=xs, outputs_info=h0)
    cost = (h[-1] ** 2).sum()
    f = theano.function([xs, h0], cost, updates=[(w, w - 0.1 * T.grad(cost, w))])
    return f, [RNG.randn(6, 3), RNG.randn(3)]


def nested_loops():
    m = T.dmatrix("m")

    def of_row(row):
        return theano.scan(lambda v, s: T.switch(v > 0, s * v, s - v), row, T.ones(()))[0][-1]

    out, _ = theano.scan(of_row, m)
    return theano.function([m], [out, T.grad(out.sum(), m)]), [RNG.randn(4, 5)]


def conditional():
    c, x = T.iscalar("c"), T.dvector("x")
    return theano.function([c, x], ifelse(c > 0, T.exp(x).sum(), T.sqr(x).sum())), [1, RNG.randn(4)]


def from_graph():
    x, y = T.dvectors("xy")
    op = theano.compile.builders.OpFromGraph([x, y], [T.exp(x) * y])
    return theano.function([x, y], op(x, op(y, x)) + 1), [RNG.randn(4), RNG.randn(4)]


def draws():
    stream = RandomStreams(7)
    x = T.dvector("x")
    return theano.function([x], x + stream.normal(x.shape)), [RNG.randn(4)]


def images():
    x = T.dtensor4("x")
    w = theano.shared(RNG.randn(2, 1, 3, 3), name="w")
    y = T.nnet.relu(T.nnet.conv2d(x, w, border_mode="half"))
    pooled = T.signal.pool.pool_2d(y, (2, 2), ignore_border=True)
    return theano.function([x], [pooled, T.grad(pooled.sum(), w)]), [RNG.randn(2, 1, 6, 6)]


def default_values():
    x, s = T.dvector("x"), T.dvector("s")
    inputs = [x, theano.In(s, value=np.ones(3), update=s + x, mutable=True, name="state")]
    return theano.function(inputs, (s * x).sum()), [RNG.randn(3)]


def numbers_as_outputs():
    x = T.dscalar("x")
    return theano.function([x], {"a": x, "b": T.constant(3.0), "c": x * 0 + 2}), [1.5]


def from_givens():
    x, data = T.dvector("x"), theano.shared(RNG.randn(4), name="data")
    return theano.function([], T.exp(x).sum(), givens={x: data * 2}), []


PROGRAMS = [
    regression, recurrent, nested_loops, conditional, from_graph, draws, images, default_values,
    numbers_as_outputs, from_givens,
]  # fmt: skip


def same(got, want):
    got, want = ([*r.values()] if isinstance(r, dict) else r for r in (got, want))
    got, want = ([*r] if isinstance(r, list) else [r] for r in (got, want))
    for a, b in zip(got, want, strict=True):
        np.testing.assert_array_equal(a, b)


def random_program(seed):
    """A random program without Ops of users, or None; every second one has a loop."""
    try:
        program = grown(Recorded(seed=seed), preferred=LOOPS if seed % 2 else None)
    except Rejected:
        return None
    if program is not None and any("userops" in text for text in program.statements.values()):
        return None
    return program
