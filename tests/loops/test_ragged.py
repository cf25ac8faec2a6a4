"""Steps whose intermediate values have another length in each step, against plain loops."""

import numpy as np
import pytest

import opwise.tensor as T
from opwise import Apply, Mode, Op, function, grad, shared
from opwise.graph.traversal import io_toposort
from opwise.loops import reduce, scan
from opwise.loops.layout import Parts
from opwise.loops.ragged import ragged_variables

pytestmark = pytest.mark.null

#: without any rewrite
PLAIN = Mode("py", None)
RNG = np.random.RandomState(4)
X, E = shared(RNG.randn(30, 3)), shared(RNG.randn(8, 3))
W = shared(RNG.randn(3, 3))
BOUNDS, WORDS = T.lvector("bounds"), T.lvector("words")
VALUES = [[0, 5, 7, 15, 30], RNG.randint(0, 6, 30)]
STEPS = T.arange(BOUNDS.shape[0] - 1)


def part(i):
    return X[BOUNDS[i] : BOUNDS[i + 1]]


def zeros(*shape):
    return T.zeros(shape, dtype="float64")


def inner_loop(i, s):
    rows, _ = scan(lambda x, h: T.tanh(T.dot(x, W) + h), sequences=part(i), outputs_info=s)
    return T.tanh(T.dot(rows.mean(axis=0), W))


#: by name: a step, what it repeats over and from what it begins
RAGGED = {
    "products": (lambda i, s: s + T.dot(part(i)[2:].T, part(i)[:-2]), STEPS, zeros(3, 3)),
    "layers": (lambda i, h: T.dot(T.tanh(T.dot(part(i), W) + h).sum(axis=0), W), STEPS, zeros(3)),
    "results": (lambda i: T.dot(T.tanh(T.dot(part(i), W)).sum(axis=0), W), STEPS, None),
    "gram": (lambda i: T.dot(part(i).T, part(i)), STEPS, None),
    "lookups": (
        lambda i, s: s + E[WORDS[BOUNDS[i] : BOUNDS[i + 1]]].sum(axis=0) ** 2, STEPS, zeros(3),
    ),
    "masks": (
        lambda i, s: s + T.tanh(T.dot(E[T.eq(WORDS[:8], i).nonzero()], W)).sum(axis=0),
        T.arange(5), zeros(3),
    ),
    "lengths": (
        lambda n, s: s + T.tanh(T.dot(T.ones((n, 3)), W)).sum(axis=0), BOUNDS[1:], zeros(3),
    ),
    "inner loops": (inner_loop, STEPS, zeros(3)),
}  # fmt: skip


@pytest.mark.parametrize("name", RAGGED)
def test_gives_what_a_plain_loop_gives(name, mode):
    step, sequence, first = RAGGED[name]
    rows, _ = scan(step, sequences=sequence, outputs_info=first)
    cost = (rows**2).sum() + T.tanh(rows[-1]).sum()
    outputs = [rows, *grad(cost, [X, W, E], disconnected_inputs="ignore")]
    inputs = [BOUNDS, WORDS]
    expected = function(inputs, outputs, PLAIN, on_unused_input="ignore")(*VALUES)
    found = function(inputs, outputs, mode, on_unused_input="ignore")(*VALUES)
    for a, b in zip(found, expected, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-11)


def test_reduce_over_parts(mode):
    total, _ = reduce(
        lambda i, s: s + T.dot(part(i).T, T.tanh(T.dot(part(i), W))), STEPS, zeros(3, 3)
    )
    outputs = [total, grad((total**2).sum(), W)]
    expected = function([BOUNDS], outputs, PLAIN)(VALUES[0])
    for a, b in zip(function([BOUNDS], outputs, mode)(VALUES[0]), expected, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-9)


class Anything(Op):
    """Returns its input; says nothing about its shape."""

    __props__ = ()

    def make_node(self, x):
        return Apply(self, [x], [x.type()])

    def perform(self, node, inputs, outputs):
        outputs[0][0] = inputs[0].copy()


@pytest.mark.parametrize(
    ("make", "ragged"),
    [
        (lambda i: X[i], False),
        (lambda i: X[[i, i]], False),
        (lambda i: X[W.shape[0] :], False),
        (lambda i: X[:i], True),
        (lambda i: X[:i].sum(axis=0), False),
        (lambda i: T.dot(X[:i], W), True),
        (lambda i: T.dot(X[:i].T, X[:i]) * 2, False),
        (lambda i: X[T.gt(X[:, 0], i).nonzero()], True),
        (lambda i: T.arange(i), True),
        (lambda i: T.ones((X[:i].shape[1], 2)), False),
        (lambda i: T.ones((X[:i].shape[0], 2)), True),
        (lambda i: T.ones((X[:i].shape[-1], 2)), False),
        (lambda i: T.ones(X[:i].shape[1:]), False),
        (lambda i: X[:i, :1].reshape((2, 3)), False),
        (lambda i: T.zeros(i)[:2] + i, True),
        (lambda i: Anything()(X[i]), True),
        (lambda i: Anything()(X), False),
    ],
)
def test_which_variables_are_ragged(make, ragged):
    i = T.lscalar()
    step = Parts([i], [], [], [], [], [])
    var = make(i)
    assert (var in ragged_variables(step, io_toposort([i], [var]))) == ragged
