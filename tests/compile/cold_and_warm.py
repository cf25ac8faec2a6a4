"""Prints what opwise reports about programs of every kind, as JSON, for runs cold and warm.

A program returns a function and arguments; those in ``failing`` make it raise.
"""

import json
import random
import sys
import warnings

import numpy as np
from compiled_again import PROGRAMS, RNG

import theano
import theano.sparse
import theano.tensor as T
from opwise.testing import reported
from opwise.tuning.trial import trial
from theano.ifelse import ifelse


def elementwise():
    x, y = T.dmatrix("x"), T.drow("y")
    z = T.exp(x * y) + T.log1p(abs(x)) / (1 + T.sqr(y))
    return theano.function([x, y], [z, T.grad(z.sum(), x)]), [RNG.randn(3, 4), RNG.randn(1, 4)]


def rows():
    x = T.matrix("x", dtype="float32")
    p = T.nnet.softmax(x)
    norm = (x - x.mean(1, keepdims=True)) / T.sqrt(x.var(1, keepdims=True) + 1e-5)
    return theano.function([x], [p, norm, T.max(x, 0), T.argmax(x, 1), T.prod(x)]), [
        RNG.randn(4, 5).astype("float32")
    ]


def kept_apart():
    x = T.dvector("x")
    e = T.exp(x - x.max())
    return theano.function([x], e / e.sum()), [RNG.randn(2000)]


def computed_constants():
    x = T.dtensor3("x")
    cube = T.constant(np.arange(24.0).reshape(2, 3, 4).transpose(1, 2, 0))
    return theano.function([x], (x * (T.exp(cube) + 1)).sum(0) + x[0]), [RNG.randn(3, 4, 2)]


def parts():
    x, i = T.dmatrix("x"), T.lvector("i")
    y = T.inc_subtensor(x[i, 1:], 2.0)
    return theano.function([x, i], [y, x[::2, -1], T.set_subtensor(y[0], 0), x[i][:, i]]), [
        RNG.randn(4, 4), np.array([2, 0, 2]),
    ]  # fmt: skip


def sparse():
    s, x = theano.sparse.csr_matrix("s"), T.dmatrix("x")
    import scipy.sparse

    y = theano.sparse.dot(s, x)
    return theano.function([s, x], [y, theano.sparse.sp_sum(s * 2)]), [
        scipy.sparse.csr_matrix(np.eye(3)), RNG.randn(3, 2),
    ]  # fmt: skip


def linear_algebra():
    a = T.dmatrix("a")
    b = T.dot(a, a.T) + 3 * T.eye(3)
    inv = T.nlinalg.matrix_inverse(b)
    return theano.function([a], [T.slinalg.cholesky(a), inv, T.grad(T.nlinalg.det(b), a)]), [
        2 * np.eye(3) + 0.1
    ]


def in_loops():
    x = T.dmatrix("x")
    w = theano.shared(RNG.randn(2, 2), name="w")

    def step(row, old):
        return ifelse(T.gt(row.sum(), 0), T.tanh(T.dot(row, w) + old), old * 2)

    out, _ = theano.scan(step, x, T.zeros((2,)), name="loop")
    return theano.function([x], [out, theano.map(lambda r: r[::-1] / r.sum(), x)[0]]), [
        RNG.randn(5, 2)
    ]


class Doubled(theano.Op):
    __props__ = ()

    def make_node(self, x):
        return theano.Apply(self, [x], [x.type()])

    def perform(self, node, inputs, outputs):
        outputs[0][0] = inputs[0] * 2


def of_a_user():
    x = T.dvector("x")
    return theano.function([x], Doubled()(T.exp(x)) + 1), [RNG.randn(3)]


def asserting():
    x = T.dvector("x")
    checked = theano.tensor.opt.Assert("too small")(x, T.all(x > 0))
    return theano.function([x], T.log(checked) * 2 + checked), [RNG.rand(3) + 1]


MORE = [elementwise, rows, kept_apart, computed_constants, parts, sparse, linear_algebra, in_loops,
        of_a_user, asserting]  # fmt: skip


def wrong(values):
    """Lists of arguments that functions may refuse."""
    for k, value in enumerate(values):
        if isinstance(value, np.ndarray) and value.ndim and value.dtype.kind == "f":
            for shape in [tuple(n + 1 if j == axis else n for j, n in enumerate(value.shape))
                          for axis in range(value.ndim)]:  # fmt: skip
                yield [*values[:k], np.ones(shape, value.dtype), *values[k + 1 :]]
            yield [*values[:k], -value, *values[k + 1 :]]
            yield [*values[:k], value[..., None], *values[k + 1 :]]
        elif isinstance(value, np.ndarray):
            yield [*values[:k], value + 100, *values[k + 1 :]]


def of_function(f, values):
    found = {**reported.graph(f), **reported.profile(f, lambda: f(*values))}
    for k, given in enumerate(wrong(values)):
        found[f"wrong {k}"] = reported.call(lambda given=given: f(*given))
    with theano.configparser.change_flags(exception_verbosity="high"):
        for k, given in enumerate(wrong(values)):
            found[f"verbose {k}"] = reported.call(lambda given=given: f(*given))
    found["call"] = reported.call(lambda: f(*values))
    return found


def advice(f, values):
    """What is advised if all changes take the same time, give or take a little."""
    numbers = random.Random(1)
    same = trial(f, values, {}, 1e6, lambda c, calls: calls * (1 + 0.01 * numbers.random()))
    return {"advice": same.text(100)}


def main(names):
    warnings.simplefilter("ignore")
    for program in [*PROGRAMS, *MORE]:
        if names and program.__name__ not in names:
            continue
        RNG.seed(0)
        f, values = program()
        report = {"name": program.__name__, "cached": f.compile_report.graph_cached}
        report["reported"] = of_function(f, values)
        if program.__name__ in ("elementwise", "kept_apart", "regression", "in_loops"):
            with theano.configparser.change_flags(cxx=""):
                RNG.seed(0)
                report["reported"] |= advice(*program())
        print(json.dumps(report), flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
