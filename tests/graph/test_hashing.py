"""Ops and Types from a pickle equal those of the process that loads them, and have their hashes."""

import os
import pickle
import subprocess
import sys

import pytest

import opwise.scalar as scal
import opwise.tensor as T
from opwise.scalar import Composite
from opwise.tensor import DimShuffle, Elemwise, IncSubtensor, Subtensor, TensorType


def _composite():
    x, y = scal.float64("x"), scal.float64("y")
    return Composite([x, y], [scal.exp(x) * y])


MADE = {
    "TensorType": lambda: TensorType("float32", (False, True)),
    "DimShuffle": lambda: DimShuffle((False,), ("x", 0)),
    "Elemwise": lambda: Elemwise(scal.exp, {0: 0}),
    "Composite": _composite,
    "Elemwise of a Composite": lambda: Elemwise(_composite()),
    "Subtensor": lambda: T.dvector()[1:].owner.op,
    "IncSubtensor": lambda: T.set_subtensor(T.dvector()[1:], 0.0).owner.op,
}

_WRITE = """
import pickle, sys
from tests.graph.test_hashing import MADE
sys.stdout.buffer.write(pickle.dumps({name: make() for name, make in MADE.items()}))
"""


@pytest.fixture(scope="module")
def loaded():
    """What another process has pickled, whose hashes of texts differ."""
    done = subprocess.run(
        [sys.executable, "-c", _WRITE],
        env={**os.environ, "PYTHONHASHSEED": "1827"}, capture_output=True, check=True,
    )  # fmt: skip
    return pickle.loads(done.stdout)


@pytest.mark.parametrize("name", MADE)
def test_equal_in_another_process(name, loaded):
    ours = MADE[name]()
    assert isinstance(ours, (TensorType, DimShuffle, Elemwise, Composite, Subtensor, IncSubtensor))
    assert loaded[name] == ours
    assert {loaded[name]: name}[ours] == name


def test_unpickled_expressions_merge(loaded):
    """An expression of unpickled Ops is merged with the same one of Ops made here."""
    import opwise

    x = T.dvector("x")
    doubled = loaded["DimShuffle"](x), DimShuffle((False,), ("x", 0))(x)
    f = opwise.function([x], [T.exp(each) for each in doubled], mode="FAST_RUN")
    ops = [node.op for node in f.maker.fgraph.apply_nodes]
    assert sum(isinstance(op, DimShuffle) for op in ops) == 1
    assert sum(isinstance(op, Elemwise) for op in ops) == 1
