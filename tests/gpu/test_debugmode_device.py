"""DebugMode beside a device: each Apply runs there too, and is compared with the CPU."""

import emulated
import numpy as np
import pytest

import opwise
import opwise.tensor as T
from opwise.compile import DebugMode
from opwise.errors import BadDestroyMap, BadThunkOutput
from opwise.gpu import lowering
from opwise.graph.legacystate import legacy
from opwise.linalg import cholesky, eigh, svd
from opwise.random import MRG_RandomStreams
from opwise.sandbox.rng_mrg import mrg_uniform
from opwise.tensor.blas import Dot22
from opwise.tensor.nlinalg import SVD, Eigh
from opwise.tensor.random.multinomial import MultinomialFromUniform
from opwise.tensor.slinalg import Cholesky, Solve

X = np.random.RandomState(1).rand(6, 6).astype("float32")


@pytest.fixture(autouse=True)
def cuda(monkeypatch):
    emulated.install(monkeypatch)
    monkeypatch.setattr(legacy, "device", "cuda")


def compiled():
    w, x, i = opwise.shared(X.copy()), T.fmatrix("x"), T.lvector("i")
    hidden = T.nnet.softmax(T.dot(x, w))
    updates = [(w, w - T.grad(T.sqr(hidden[i] - 1).sum(), w))]
    f = opwise.function([x, i], [hidden.sum(axis=0), x.T[1:]], updates=updates, mode=DebugMode())
    return f


def test_a_clean_program_raises_no_alarm():
    f = compiled()
    launches = emulated.STREAM.launches
    for _ in range(2):
        f(X, [0, 3, 3])
    assert emulated.STREAM.launches > launches + 10
    tried = [step.trial is not None for step in f.fn.applys]
    assert sum(tried) > len(tried) / 2


def test_draws_and_factorizations_raise_no_alarm():
    stream, m = MRG_RandomStreams(4), opwise.shared((X @ X.T + 6 * np.eye(6)).astype("f"))
    noise = stream.normal((6, 6), dtype="float32") + stream.binomial((6, 6), dtype="float32")
    counts = stream.multinomial(n=2, pvals=X / X.sum(1, keepdims=True), dtype="float32")
    outs = [noise, counts, cholesky(m + m), svd(m)[1], eigh(m)[1], Solve()(m, noise + noise)]
    f = opwise.function([], outs, mode=DebugMode())
    f(), f()
    tried = {type(step.node.op) for step in f.fn.applys if step.trial is not None}
    assert tried >= {mrg_uniform, MultinomialFromUniform, Cholesky, SVD, Eigh, Solve}


def test_a_wrong_implementation_is_named(monkeypatch):
    def off_by_one(device, node, inputs):
        return [device.xp.dot(*inputs) + np.float32(1)]

    monkeypatch.delitem(lowering.table(), Dot22)
    lowering.lowers_to_cupy(Dot22)(off_by_one)
    with pytest.raises(BadThunkOutput, match=r"(?s)Dot22.*the device"):
        compiled()(X, [0, 3, 3])


def test_an_implementation_that_overwrites_its_input_is_named(monkeypatch):
    def overwrites(device, node, inputs):
        product = device.xp.dot(*inputs)
        inputs[0][...] = 0
        return [product]

    monkeypatch.delitem(lowering.table(), Dot22)
    lowering.lowers_to_cupy(Dot22)(overwrites)
    with pytest.raises(BadDestroyMap, match="Dot22"):
        compiled()(X, [0, 3, 3])


def test_an_index_out_of_range_is_the_users_error():
    f = compiled()
    with pytest.raises(IndexError):
        f(X, [0, 9])
    f(X, [0, 1])


def test_without_a_device_nothing_is_tried(monkeypatch):
    monkeypatch.setattr(legacy, "device", None)
    assert not any(step.trial for step in compiled().fn.applys)
