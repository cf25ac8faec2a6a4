"""Optimized graphs of programs, Apply by Apply: kernels where there are some, else perform."""

import numpy as np
import pytest
from simulated import Simulated, computed

import opwise.tensor as T
from opwise import Constant, function, get_mode, shared
from opwise.gpu.kernels.kernel import Implementation
from opwise.gpu.linker import CupyLinker
from opwise.gpu.lowering import Call, lower
from opwise.gradient import grad

pytestmark = pytest.mark.c


def perceptron():
    """A training step of two layers with a softmax; how many Applys have kernels at least."""
    random = np.random.default_rng(0)
    x, labels = T.fmatrix("x"), T.ivector("labels")
    w = shared(random.normal(size=(20, 16)).astype("f") / 4, "w")
    b = shared(np.zeros(16, "f"), "b")
    v = shared(random.normal(size=(16, 5)).astype("f") / 4, "v")
    hidden = T.tanh(T.dot(x, w) + b)
    p = T.nnet.softmax(T.dot(hidden, v))
    cost = T.nnet.categorical_crossentropy(p, labels).mean() + 1e-3 * (w**2).sum()
    updates = [(s, s - np.float32(0.1) * g) for s, g in zip((w, b, v), grad(cost, [w, b, v]),
                                                            strict=True)]  # fmt: skip
    values = [random.normal(size=(12, 20)).astype("f"), random.integers(0, 5, 12).astype("int32")]
    return [x, labels], [cost, T.argmax(p, axis=1)], updates, values, 10


def embedding():
    """Rows looked up by indices, normalized, and the gradient that is added to them."""
    random = np.random.default_rng(1)
    index, target = T.lvector("index"), T.fmatrix("target")
    table = shared(random.normal(size=(30, 8)).astype("f"), "table")
    rows = table[index]
    rows = (rows - rows.mean(axis=1, keepdims=True)) / T.sqrt(rows.var(axis=1, keepdims=True) + 1)
    cost = ((T.nnet.sigmoid(rows) - target) ** 2).sum()
    updates = [(table, T.inc_subtensor(table[index], -0.5 * grad(cost, rows)))]
    values = [random.integers(0, 30, 40), random.random((40, 8)).astype("f")]
    return [index, target], [cost, rows.max(axis=0)], updates, values, 6


def groups():
    """Numbers of groups that observations read, and the gradient by them."""
    random = np.random.default_rng(2)
    y, index = T.fvector("y"), T.lvector("index")
    mu = shared(random.normal(size=7).astype("f"), "mu")
    cost = T.sqr(y - mu[index] * np.float32(2)).sum()
    updates = [(mu, mu - np.float32(0.1) * grad(cost, mu))]
    values = [random.normal(size=40).astype("f"), random.integers(0, 7, 40)]
    return [y, index], [cost], updates, values, 4


@pytest.mark.parametrize("program", [perceptron, embedding, groups])
def test_program(program):
    """What the optimized graph computes on the device is what it computes in C."""
    inputs, outputs, updates, given, least = program()
    mode = get_mode("FAST_RUN").excluding(*CupyLinker.incompatible)
    f = function(inputs, outputs, updates=updates, mode=mode)
    fgraph = f.maker.fgraph
    found = dict(zip(fgraph.inputs, [*given, *(np.array(s.get_value()) for s, _ in updates)],
                     strict=True))  # fmt: skip
    assert [v.type for v in fgraph.inputs[len(given) :]] == [s.type for s, _ in updates]
    nodes = fgraph.toposort()
    made = {node: lower(node) for node in nodes}
    with_kernels = [node for node in nodes if isinstance(made[node], Implementation)]
    assert len(with_kernels) >= least, made
    simulated = Simulated([k for node in with_kernels for k in made[node].kernels if not k.wide])
    for node in nodes:
        values = [np.asarray(v.data) if isinstance(v, Constant) else found[v] for v in node.inputs]
        if not isinstance(made[node], Implementation):
            assert isinstance(made[node], Call) or "no GPU implementation" not in made[node]
            storage = [[None] for _ in node.outputs]
            plain = [v if var.type.ndim or hasattr(var.type, "broadcastable") else v[()]
                     for v, var in zip(values, node.inputs, strict=True)]  # fmt: skip
            node.op.perform(node, plain, storage)
            results = [np.asarray(cell[0]) for cell in storage]
        else:
            dtypes = [v.type.dtype for v in node.outputs]
            results, wrong = computed(simulated, made[node], values, dtypes)
            assert not wrong
        found |= dict(zip(node.outputs, results, strict=True))
    expected = [*f(*given), *(s.get_value() for s, _ in updates)]
    for var, value in zip(fgraph.outputs, expected, strict=True):
        np.testing.assert_allclose(found[var], value, rtol=2e-5, atol=2e-6)
