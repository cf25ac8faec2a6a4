"""Draws from numpy's generator: values against numpy, states, sizes, refusals."""

import copy
import pickle

import numpy as np
import pytest

from opwise import FunctionGraph
from opwise.errors import NullTypeGradError
from opwise.gradient import grad
from opwise.tensor import constant, raw_random
from opwise.tensor.random import state
from opwise.tensor.random.state import copied
from opwise.tensor.raw_random import RandomFunction, random_state_type
from opwise.tensor.type import tensor_type

pytestmark = pytest.mark.null

DISTRIBUTIONS = {
    "uniform": ({"size": (3, 2), "low": -1, "high": 5}, lambda r: r.uniform(-1, 5, (3, 2))),
    "normal": ({"size": (5,), "avg": 1, "std": 2}, lambda r: r.normal(1, 2, 5)),
    "binomial": ({"size": (5,), "n": 9, "p": 0.3}, lambda r: r.binomial(9, 0.3, 5)),
    "poisson": ({"size": (5,), "lam": 4.0}, lambda r: r.poisson(4.0, 5)),
    "random_integers": ({"size": (7,), "low": -2, "high": 9}, lambda r: r.randint(-2, 10, 7)),
    "choice": ({"size": (4,), "a": 9, "replace": False}, lambda r: r.choice(9, 4, False)),
    "permutation": ({"n": 7}, lambda r: r.permutation(7)),
    "multinomial": (
        {"size": (3,), "n": 4, "pvals": [0.2, 0.3, 0.5]},
        lambda r: r.multinomial(4, [0.2, 0.3, 0.5], 3),
    ),
}


def performed(out, state, *values):
    """Return (state after the draw, numbers) of the Apply that made a variable."""
    node = out.owner
    storage = [[None], [None]]
    node.op.perform(node, [state, *values], storage)
    return storage[0][0], storage[1][0]


def drawn(out, state):
    return performed(out, state, *(_value(x) for x in out.owner.inputs[1:]))


def _value(var):
    if hasattr(var, "data"):
        return var.data
    fgraph = FunctionGraph([], [var], clone=True)
    values = {}
    for node in fgraph.toposort():
        storage = [[None] for _ in node.outputs]
        arguments = [x.data if hasattr(x, "data") else values[x] for x in node.inputs]
        node.op.perform(node, arguments, storage)
        values.update(zip(node.outputs, (cell[0] for cell in storage), strict=True))
    return values[fgraph.outputs[0]]


@pytest.mark.parametrize("name", ["binomial", "multinomial"])
def test_numbers_of_trials_of_uint64(name):
    options, numpy = DISTRIBUTIONS[name]
    trials = np.array(options["n"], "uint64")
    _, out = getattr(raw_random, name)(random_state_type(), **{**options, "n": trials})
    found = drawn(out, np.random.RandomState(3))[1]
    np.testing.assert_array_equal(found, numpy(np.random.RandomState(3)))


@pytest.mark.parametrize("name", DISTRIBUTIONS)
def test_numbers_are_those_of_numpy(name):
    arguments, of_numpy = DISTRIBUTIONS[name]
    state, reference = np.random.RandomState(5), np.random.RandomState(5)
    _, out = getattr(raw_random, name)(random_state_type(), **arguments)
    after, found = drawn(out, state)
    expected = of_numpy(reference)
    np.testing.assert_array_equal(found, expected)
    assert found.dtype == out.type.dtype
    # the state itself is as it was; the new one has advanced as numpy's has
    assert random_state_type.values_eq(state, np.random.RandomState(5))
    assert random_state_type.values_eq(after, reference)


def test_integers_of_arrays_are_drawn_one_by_one():
    low, high = np.array([0, 5, -3]), np.array([[9], [2**40]])
    state, reference = np.random.RandomState(5), np.random.RandomState(5)
    found = raw_random.random_integers_helper(state, low, high, None)
    expected = [[reference.randint(x, h[0] + 1) for x in low] for h in high]
    np.testing.assert_array_equal(found, expected)
    assert random_state_type.values_eq(state, reference)
    with pytest.raises(ValueError):
        raw_random.random_integers_helper(state, low, high, (2, 2))
    with pytest.raises(ValueError, match="more than the size"):
        raw_random.random_integers_helper(state, low, high, (3,))


def test_in_place_advances_the_state_itself():
    op = RandomFunction("uniform", tensor_type("float64", (False,)), inplace=True)
    assert op.destroy_map == {0: [0]} and op != RandomFunction("uniform", op.outtype)
    state = np.random.RandomState(5)
    after, _ = drawn(op(random_state_type(), (3,), 0.0, 1.0)[1], state)
    assert after is state
    assert not random_state_type.values_eq(state, np.random.RandomState(5))
    again = pickle.loads(pickle.dumps(op))
    assert again == op and hash(again) == hash(op) and again.destroy_map == op.destroy_map


@pytest.mark.parametrize("advance", [0, 3])
@pytest.mark.parametrize("make", [np.random.MT19937, np.random.PCG64])
def test_copies_draw_the_same_numbers(make, advance):
    generator = np.random.RandomState(make(3))
    generator.normal(size=advance)  # an odd number leaves one in store
    other = copied(generator)
    assert random_state_type.values_eq(generator, other)
    expected = generator.normal(size=3)
    assert not random_state_type.values_eq(generator, other)
    np.testing.assert_array_equal(other.normal(size=3), expected)


@pytest.mark.parametrize("again", [copy.deepcopy, lambda g: pickle.loads(pickle.dumps(g))])
def test_copies_are_copied_and_pickled_as_generators_of_numpy(again):
    generator = np.random.RandomState(3)
    generator.normal()
    other = copied(generator)
    assert type(other._bit_generator) is not np.random.MT19937
    third = again(other)
    assert type(third._bit_generator) is np.random.MT19937
    np.testing.assert_array_equal(third.normal(size=3), generator.normal(size=3))
    assert random_state_type.values_eq(third, generator)


def test_states_of_copies_are_exchanged_with_those_of_generators():
    generator, other = np.random.RandomState(3), copied(np.random.RandomState(4))
    for legacy in (False, True):
        other.set_state(generator.get_state(legacy))
        assert other.uniform() == generator.uniform()
        generator.set_state(other.get_state(legacy))
        assert other.uniform() == generator.uniform()
    name, key, *rest = generator.get_state()
    other.set_state((name, list(map(int, key)), *rest))
    assert other.uniform() == generator.uniform()
    other.seed(5)
    assert other.uniform() == np.random.RandomState(5).uniform()
    with pytest.raises(ValueError, match="PRNG"):
        other.set_state({"bit_generator": "PCG64", "state": {"key": key, "pos": rest[0]}})


def test_a_numpy_that_stores_states_in_another_way(monkeypatch):
    monkeypatch.setattr(state, "_memory_is_known", lambda: False)
    generator = np.random.RandomState(3)
    other = copied(generator)
    assert type(other._bit_generator) is np.random.MT19937
    assert other.uniform() == generator.uniform()


def test_the_type():
    generator = np.random.RandomState(1)
    assert random_state_type.filter(generator) is generator
    for other in (np.random, 3, None, np.random.default_rng(1)):
        assert not random_state_type.is_valid_value(other)
        with pytest.raises(TypeError, match=r"numpy.random.RandomState"):
            random_state_type.filter(other)
    assert pickle.loads(pickle.dumps(random_state_type)) is random_state_type
    assert str(random_state_type) == "RandomStateType"
    assert random_state_type.may_share_memory(generator, generator)
    assert random_state_type.get_size(None) == 2520


def test_shapes(run):
    x = tensor_type("float64", (False, False))("x")
    _, out = raw_random.uniform(random_state_type(), (x.shape[0], 4))
    (n, m) = out.owner.op.infer_shape(out.owner, [None] * 4)[1]
    assert run([n, m], {x: np.ones((3, 2))}) == [3, 4]


@pytest.mark.parametrize(
    ("inputs", "words"),
    [
        (([3, 4], 0.0, 1.0), "1 dimensions, but the shape"),
        (([3], np.zeros(2), 1.0), "mismatch|broadcast"),
    ],
)
def test_values_that_do_not_fit(inputs, words):
    out = RandomFunction("uniform", tensor_type("float64", (False,)))(
        random_state_type(), tensor_type("int64", (False,))(), 0.0, 1.0
    )[1]
    with pytest.raises(ValueError, match=words):
        performed(out, np.random.RandomState(1), *inputs)


def test_a_function_that_draws_another_shape():
    def of_two(state, shape):
        return state.uniform(size=2)

    op = RandomFunction(of_two, tensor_type("float64", (False,)))
    assert str(op) == "RandomFunction{of_two}"
    with pytest.raises(ValueError, match=r"should draw the shape \(3,\), but drew \(2,\)"):
        drawn(op(random_state_type(), (3,))[1], np.random.RandomState(1))


def test_states_of_other_types():
    op = RandomFunction("uniform", tensor_type("float64", (False,)))
    with pytest.raises(TypeError, match="must be a variable"):
        op(np.random.RandomState(1), (3,))
    with pytest.warns(UserWarning, match="should be in RandomStateType"):
        op(tensor_type("float64", ())(), (3,))
    with pytest.raises(AssertionError, match="int64 or int32"):
        op(random_state_type(), constant([2.5]))


def test_derivatives():
    s = tensor_type("float64", ())("s")
    _, out = raw_random.normal(random_state_type(), (3,), avg=s)
    with pytest.raises(NullTypeGradError, match="No gradient defined through raw random"):
        grad(out.sum(), s)
    assert out.owner.op.R_op(out.owner.inputs, [None, None, s, None]) == [None, None]


def test_the_old_name_of_p():
    with pytest.warns(UserWarning, match="prob of binomial is now p"):
        raw_random.binomial(random_state_type(), (3,), prob=0.3)


def test_equal_probabilities_of_choice():
    state = np.random.RandomState(5)
    expected = np.random.RandomState(5).choice(9, 4)
    for p in (None, 0, []):
        _, out = raw_random.choice(random_state_type(), (4,), a=9, p=p)
        np.testing.assert_array_equal(drawn(out, state)[1], expected)
