"""What the tests of rules on shapes and indexing share: arrays of given lengths, graphs as text."""

import inspect
import re
import sys
from pathlib import Path

import numpy as np
import pytest

import opwise.tensor as T
from opwise.optimizers.navigators import EquilibriumOptimizer
from opwise.optimizers.passes import SeqOptimizer
from opwise.optimizers.rule import Rule
from opwise.optimizers.shapefeature import ShapeOptimizer

# the module beside this one
sys.path.insert(0, str(Path(__file__).resolve().parent))

from checking import check_rewrite

#: what a function that builds a graph may take by name: a type, and the lengths of its values
ARRAYS = {
    "x": (T.dmatrix, "ab"), "y": (T.dmatrix, "ab"), "f": (T.fmatrix, "ab"), "r": (T.drow, "1b"),
    "c": (T.dcol, "a1"), "v": (T.dvector, "b"), "t": (T.dtensor3, "abd"), "s": (T.dscalar, ""),
    "z": (T.dscalar, ""), "n": (T.lscalar, ""), "m": (T.lscalar, ""), "i": (T.lvector, "a"),
}  # fmt: skip
FULL = {"a": 3, "b": 4, "d": 2, "1": 1}
#: the first dimension has no elements
EMPTY = {**FULL, "a": 0}


def made(build, lengths):
    """Return (inputs, values, outputs) of what ``build`` makes of arrays with its names."""
    random = np.random.default_rng(3)
    inputs, values = [], []
    for name in inspect.signature(build).parameters:
        make, letters = ARRAYS[name]
        var = make(name)
        shape = tuple(lengths[letter] for letter in letters)
        if var.type.dtype == "int64":
            value = random.integers(-2, 2, shape) if shape else {"n": 2, "m": 1}[name]
        else:
            value = random.uniform(0.5, 2, shape)
        inputs.append(var)
        values.append(np.asarray(value, var.type.dtype))
    outputs = build(*inputs)
    return inputs, values, list(outputs) if isinstance(outputs, list | tuple) else [outputs]


#: what makes the text of a graph shorter
_SHORT = [
    (r"Elemwise\{(\w+),no_inplace\}", r"\1"),
    (r"Elemwise\{(Cast\{\w+\})\}", r"\1"),
    (r"InplaceDimShuffle", "DS"),
    (r"(MakeVector|Assert)\{[^}]*\}", r"\1"),
    (r"(Sum|Prod)\{(?:axis=(?:None|\[?\(?([0-9, ]+?),?\)?\]?), )?[^}]*\}", r"\1{\2}"),
    (r"(?:Tensor)?Constant\{(?:\([\d, ]*\) of )?([^}]*)\}", r"\1"),
    (r"^\[(.*)\]$", r"\1"),
]


def text(fgraph):
    """Return a graph as nested text, Ops by their names."""
    result = str(fgraph)
    for pattern, short in _SHORT:
        result = re.sub(pattern, short, result)
    return result


@pytest.fixture
def rules_of():
    """``rules_of(module)``: the names of the rules that a module defines itself."""
    return lambda module: {
        name
        for name, found in vars(module).items()
        if isinstance(found, Rule) and found.__module__ == module.__name__
    }


@pytest.fixture
def rewritten_by(caplog):
    """``rewritten_by(rule, build, empty=True)``: the graph of ``build`` before and after, as text.

    The rule alone was applied until it had nothing left to do. The type and value of each output
    must stay the same, also (if ``empty``) for arrays without elements.
    """

    def rewrite(rule, build, empty=True):
        texts = []
        for lengths in [FULL, EMPTY] if empty else [FULL]:
            inputs, values, outputs = made(build, lengths)
            before = check_rewrite(SeqOptimizer([]), inputs, outputs, values)
            one = SeqOptimizer([ShapeOptimizer(), EquilibriumOptimizer([rule])])
            texts.append((text(before), text(check_rewrite(one, inputs, outputs, values))))
        assert len(set(texts)) == 1
        assert not caplog.records  # of rules that do not come to rest
        return texts[0]

    return rewrite
