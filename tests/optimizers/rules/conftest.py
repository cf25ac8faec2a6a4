"""What the tests of rules share: small graphs, rewritten by some rules alone, values compared."""

import inspect
import sys
from pathlib import Path

import numpy as np
import pytest
from checking import check_rewrite

from opwise import Constant, FunctionGraph
from opwise.compile import optdb
from opwise.optimizers.database import Query
from opwise.optimizers.merge import MergeOptimizer
from opwise.optimizers.navigators import EquilibriumOptimizer
from opwise.optimizers.passes import SeqOptimizer
from opwise.tensor import DimShuffle, Elemwise
from opwise.tensor.type import tensor_type

# test_every_rule finds its cases beside it
sys.path.insert(0, str(Path(__file__).resolve().parent))

#: a function that builds a graph takes its inputs by these names
TYPES = {
    **dict.fromkeys("xyz", ("float64", (False, False))),
    **dict.fromkeys("uvw", ("float64", (False,))),
    **dict.fromkeys("st", ("float64", ())),
    **dict.fromkeys("fg", ("float32", (False, False))),
    **dict.fromkeys("ij", ("int32", (False, False))),
    **dict.fromkeys("pq", ("bool", (False, False))),
    "r": ("float64", (True, False)),
    "c": ("float64", (False, True)),
    "m": ("float64", (False, False, False)),
    "b": ("int8", (False, False)),
    "h": ("uint8", (False, False)),
    "k": ("complex128", (False, False)),
    "n": ("int64", ()),
    "a": ("int64", (False,)),
}
_LENGTHS = {0: (), 1: (3,), 2: (3, 3), 3: (2, 3, 3)}
_SPECIAL = np.array([0.0, -0.0, 1.0, -1.0, 2.5, 1e-300, 1e300, np.inf, -np.inf, np.nan])


def made(build):
    """Return (inputs, outputs) of the graph that ``build`` makes of variables with its names."""
    inputs = [tensor_type(*TYPES[name])(name) for name in inspect.signature(build).parameters]
    outputs = build(*inputs)
    return inputs, list(outputs) if isinstance(outputs, list | tuple) else [outputs]


def value_of(var, random, special=False):
    """Return a random array for an input; special: floats are zeros, infinities or NaN."""
    shape = tuple(
        1 if one else n
        for one, n in zip(var.type.broadcastable, _LENGTHS[var.type.ndim], strict=True)
    )
    kind = np.dtype(var.type.dtype).kind
    if kind == "b":
        return np.asarray(random.random(shape) > 0.5)
    if kind in "iu":
        return np.asarray(random.integers(0 if kind == "u" else -9, 9, shape)).astype(
            var.type.dtype
        )
    values = random.uniform(-3, 3, shape)
    if special:
        values = random.choice(_SPECIAL, shape)
    if kind == "c":
        values = values + 1j * random.uniform(-3, 3, shape)
    with np.errstate(all="ignore"):
        return np.asarray(values).astype(var.type.dtype)


def text(var):
    """Return a graph as nested text: scalar operations and constants by their names and values."""
    if var.owner is None:
        if not isinstance(var, Constant):
            return var.name
        data = np.asarray(var.data)
        uniform = data.size and (data == data.flat[0]).all()
        return str(data.flat[0].item()) if uniform else str(data.tolist())
    node = var.owner
    if isinstance(node.op, Elemwise):
        name = str(node.op.scalar_op)
    elif isinstance(node.op, DimShuffle):
        name = f"DS{{{','.join(map(str, node.op.new_order))}}}"
    else:
        name = str(node.op)
    index = f".{var.index}" if len(node.outputs) > 1 else ""
    return f"{name}{index}({', '.join(map(text, node.inputs))})"


def _texts(outputs):
    return "; ".join(map(text, outputs))


@pytest.fixture
def rewritten():
    """``rewritten(stage, names, build, special)``: a graph before and after some rules, as text.

    Before: equal Applys were merged and constants folded. After: the rules of a stage with these
    names (separated by blanks), and constant folding, had nothing left to do. The type and value of
    each output must stay the same, for special values too if they are asked for.
    """
    folding = optdb["canonicalize"]["topo_constant_folding"]
    plain = [MergeOptimizer(), optdb["ShapeOpt"], EquilibriumOptimizer([folding])]

    def rewrite(stage, names, build, special=False):
        chosen = optdb[stage].select(Query(names.split()))
        assert sorted(chosen) == sorted(names.split())
        rules = EquilibriumOptimizer([folding, *chosen.values()])
        inputs, outputs = made(build)
        before = FunctionGraph(inputs, outputs)
        SeqOptimizer(plain).optimize(before)
        random = np.random.default_rng(12)
        for some_special in (False, True) if special else (False,):
            values = [value_of(var, random, some_special) for var in inputs]
            with np.errstate(all="ignore"):
                after = check_rewrite(SeqOptimizer([*plain, rules]), inputs, outputs, values)
        return _texts(before.outputs), _texts(after.outputs)

    return rewrite
