"""Every registered rewrite has a graph of its own on which it fires, and one that it leaves."""

import pytest
from firing import effect, registered, times_applied
from rule_cases import FEATURES, MERGES, PASSES, RULES

from opwise import FunctionGraph
from opwise.optimizers.passes import Optimizer
from opwise.tensor.elemwise import elemwise
from opwise.tensor.type import tensor_type

pytestmark = pytest.mark.null


def test_every_rewrite_has_a_case():
    # a test registers one of its own, which stays
    rewrites = {name: one for name, one in registered().items() if "_of_test_" not in name}
    rules = {name for name, one in rewrites.items() if not isinstance(one, Optimizer)}
    assert rules - RULES.keys() == set(), "add them to rule_cases.RULES"
    assert rewrites.keys() - rules - PASSES.keys() - FEATURES.keys() - {*MERGES} == set()
    known = {*RULES, *PASSES, *FEATURES, *MERGES}
    assert known - rewrites.keys() == set(), "these are registered no more"


@pytest.mark.parametrize("name", RULES)
def test_rule(name):
    example, lookalike, before = RULES[name]
    assert times_applied(name, example, before) > 0
    assert times_applied(name, lookalike, before) == 0


@pytest.mark.parametrize("name", PASSES)
def test_pass(name):
    example, lookalike, before = PASSES[name]
    old, new = effect(name, example, before)
    assert old != new
    old, new = effect(name, lookalike, before)
    assert old == new


@pytest.mark.parametrize("name", MERGES)
@pytest.mark.parametrize(("second", "applys"), [("add", 1), ("sub", 2)])
def test_merge(name, second, applys):
    x, y = (tensor_type("float64", (False,))(n) for n in "xy")
    fgraph = FunctionGraph([x, y], [elemwise("add")(x, y), elemwise(second)(x, y)])
    registered()[name].optimize(fgraph)
    assert len(fgraph.apply_nodes) == applys


@pytest.mark.parametrize("name", FEATURES)
def test_feature(name):
    x = tensor_type("float64", (False,))("x")
    fgraph = FunctionGraph([x], [elemwise("exp")(x)])

    def attached():
        return [type(feature).__name__ for feature in fgraph._features]

    assert FEATURES[name] not in attached()
    registered()[name].optimize(fgraph)
    assert FEATURES[name] in attached()
