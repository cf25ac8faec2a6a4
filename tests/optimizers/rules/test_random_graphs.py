"""Random elementwise graphs with reductions mean the same before and after all rules on them."""

import random
from collections import Counter

import numpy as np
import pytest
from checking import evaluate

import opwise.tensor as T
from opwise import FunctionGraph
from opwise.compile import optdb
from opwise.graph.provenance import rewriting
from opwise.graph.traversal import io_toposort
from opwise.optimizers.database import Query
from opwise.optimizers.navigators import EquilibriumOptimizer
from opwise.optimizers.rule import Rule
from opwise.optimizers.rules import canonicalize, reductions, specialize
from opwise.tensor import cast
from opwise.tensor.dimshuffle import dimshuffle
from opwise.tensor.elemwise import elemwise
from opwise.tensor.type import tensor_type

pytestmark = pytest.mark.null

GRAPHS = 200
_UNARY = "neg abs_ sqr exp tanh sgn inv floor identity".split()
_BINARY = (
    "add add add sub sub mul mul mul true_div true_div maximum minimum int_div pow mod second"
).split()
_COMPARISONS = "lt gt le ge eq neq".split()
_DTYPES = ["float64", "float64", "float32", "int32", "int8", "uint8", "bool"]
_PATTERNS = [(), (False,), (False, False), (True, False), (False, True)]
_LENGTHS = {0: (), 1: (3,), 2: (2, 3)}
_CONSTANTS = [
    0, 1, -1, 2, 3, 0.5, -0.5, 2.5, np.float32(1.5), np.int64(7), np.array([1.0, 2.0, 3.0]),
    np.ones((2, 3)), np.zeros((1, 3)), np.full((2, 1), 2.0),
]  # fmt: skip


class _Maker:
    """Makes a graph of Applys that take mostly what was made last."""

    def __init__(self, seed, size=12):
        self.random = random.Random(seed)
        self.dtypes = self.random.choice([["float64"], ["float64", "float32", "int64"], _DTYPES])
        self.inputs = [self._input(k) for k in range(self.random.randint(2, 4))]
        self.made = list(self.inputs)
        while len(self.made) < len(self.inputs) + size:
            try:
                new = self._apply()
            except (TypeError, NotImplementedError):
                continue  # not for these dtypes
            if new.ndim <= 2 and new.owner is not None:
                self.made.append(new)
        computed = self.made[len(self.inputs) :]
        self.outputs = [computed[-1], *self.random.sample(computed, 2)]

    def _input(self, k):
        choose = self.random.choice
        return tensor_type(choose(self.dtypes), choose(_PATTERNS))(f"x{k}")

    def _pick(self):
        if self.random.random() < 0.2:
            return T.as_tensor_variable(self.random.choice(_CONSTANTS))
        recent = self.random.random() < 0.7
        return self.random.choice(self.made[-6:] if recent else self.made)

    def _apply(self):
        draw, pick, choose = self.random.random(), self._pick, self.random.choice
        if draw < 0.18:
            return elemwise(choose(_UNARY))(pick())
        if draw < 0.68:
            return elemwise(choose(_BINARY))(pick(), pick())
        if draw < 0.76:
            return elemwise(choose(["add", "mul"]))(pick(), pick(), pick())
        if draw < 0.82:
            condition = elemwise(choose(_COMPARISONS))(pick(), pick())
            return elemwise("switch")(condition, pick(), choose([0, pick()]))
        if draw < 0.85:
            return pick() ** choose([0, 1, 2, 3, -1, 0.5])
        if draw < 0.88:
            return cast(pick(), choose(self.dtypes))
        x = pick()
        if draw < 0.93:
            reduce = choose([T.sum, T.sum, T.prod, T.max, T.min])
            axis = choose([None, *range(x.ndim)])
            return reduce(x, axis=axis, keepdims=choose([True, False]))
        if draw < 0.97:
            return dimshuffle(x, ["x"] * (x.ndim < 2) + list(range(x.ndim)))
        return T.squeeze(x)

    def values(self):
        numbers = np.random.default_rng(self.random.randrange(10**6))
        return {var: self._value(var, numbers) for var in self.inputs}

    @staticmethod
    def _value(var, numbers):
        shape = [
            1 if one else n for one, n in zip(var.broadcastable, _LENGTHS[var.ndim], strict=True)
        ]
        if var.dtype[:5] == "float":
            values = numbers.uniform(-3, 3, shape)
        else:
            values = numbers.integers(0 if var.dtype[0] in "ub" else -5, 6, shape)
        return np.asarray(values).astype(var.dtype)


def _results(maker, values):
    """Return the values of the outputs, None where a part is not finite or cannot be computed."""
    computed = [out for n in io_toposort(maker.inputs, maker.outputs) for out in n.outputs]
    with np.errstate(all="ignore"):
        try:
            results = evaluate(computed, values)
        except (TypeError, ValueError):
            return None  # lengths that differ, or an operation that numpy does not have
    if not all(np.all(np.isfinite(r)) for r in results):
        # x - x is 0 and x * 0 is 0 by intention, whatever x is
        return None
    known = dict(zip(computed, results, strict=True)) | values
    return [known[out] for out in maker.outputs]


def _optimizers():
    """Return a pass for each stage: the rules of these modules in it, and constant folding."""
    folding = optdb["canonicalize"]["topo_constant_folding"]
    mine = [r for m in (canonicalize, reductions, specialize) for r in vars(m).values()]
    mine = [rule for rule in mine if isinstance(rule, Rule)]
    for stage in ("canonicalize", "stabilize", "specialize", "uncanonicalize", "specialize_device"):
        chosen = optdb[stage].select(Query(["fast_run"])).values()
        yield EquilibriumOptimizer([folding, *(rule for rule in chosen if rule in mine)])


def test_random_graphs_keep_their_values(flags):
    flags(on_opt_error="raise")
    merge = optdb["merge1"]
    checked, applied = 0, Counter()
    for seed in range(GRAPHS):
        maker = _Maker(seed)
        values = maker.values()
        expected = _results(maker, values)
        if expected is None:
            continue
        checked += 1
        fgraph = FunctionGraph(maker.inputs, maker.outputs)
        with rewriting():
            merge.optimize(fgraph)
            for optimizer in _optimizers():
                for rule in optimizer.optimize(fgraph).rules:
                    applied[rule.name] += rule.applied
        fgraph.check_integrity()
        known = dict(zip(fgraph.inputs, values.values(), strict=True))
        with np.errstate(all="ignore"):
            found = evaluate(fgraph.outputs, known)
        for before, after, old, new in zip(
            maker.outputs, fgraph.outputs, expected, found, strict=True
        ):
            assert before.type == after.type, seed
            assert after.type.is_valid_value(new), seed
            tolerance = 1e-9 if maker.dtypes == ["float64"] else 1e-4
            np.testing.assert_allclose(new, old, tolerance, tolerance, err_msg=f"seed {seed}")
    # most graphs are finite, and most rules had something to do
    assert checked > GRAPHS / 2
    assert len(applied) > 25
    assert sum(applied.values()) > 5 * checked
