"""Draws in the compiled VM: numpy's numbers, states that advance in place, and calls that fail."""

import copy

import numpy as np
import pytest

import theano
import theano.tensor as T
from opwise.linkers import lowering
from opwise.linkers.kernels import Kernels
from opwise.sandbox.rng_mrg import mrg_uniform
from opwise.tensor.random import mrg
from opwise.tensor.raw_random import RandomFunction, random_state_type
from theano.sandbox.rng_mrg import MRG_RandomStreams
from theano.tensor.shared_randomstreams import RandomStreams

pytestmark = pytest.mark.null

ENDS = {
    "at the start of a key": lambda r: None,
    "within a key": lambda r: r.random_sample(100),
    "at an odd word": lambda r: r.bytes(4),
    "before the last word": lambda r: (r.random_sample(311), r.bytes(4)),
    "with a normal number in store": lambda r: r.standard_normal(3),
}


def state_of(function):
    """Return the container of the only random state of a function."""
    (container,) = (v for v in function.get_shared() if v.type == random_state_type)
    return container.container


def step_of(function):
    """Return the C step of the only draw of a function."""
    (node,) = (n for n in function.maker.fgraph.toposort() if isinstance(n.op, RandomFunction))
    return lowering.c_step(node, Kernels(False))


@pytest.mark.parametrize("position", ENDS)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("size", [(0,), (1,), (2,), (5, 3), (700,), (311, 3)])
def test_numbers_are_those_of_numpy(position, dtype, size):
    rng = RandomStreams(1)
    of_numpy = {
        "uniform": (
            rng.uniform(size, -2.5, 7.25, dtype=dtype),
            lambda r: r.uniform(-2.5, 7.25, size),
        ),
        "normal": (rng.normal(size, 1.5, 0.3, dtype=dtype), lambda r: r.normal(1.5, 0.3, size)),
        "binomial": (rng.binomial(size, 7, 0.8, dtype=dtype), lambda r: r.binomial(7, 0.8, size)),
    }
    for method, (out, draw) in of_numpy.items():
        f = theano.function([], out)
        assert step_of(f) == lowering.DrawStep(method)
        reference = np.random.RandomState(9)
        ENDS[position](reference)
        out.rng.set_value(reference)
        for _ in range(3):
            np.testing.assert_array_equal(f(), draw(reference).astype(dtype))
        assert random_state_type.values_eq(out.rng.get_value(borrow=True), reference)


@pytest.mark.parametrize("n", [0, 1, 2, 60])
def test_binomial_numbers_of_many_probabilities(n):
    rng = RandomStreams(3)
    p = T.dmatrix("p")
    out = rng.binomial(p.shape, n, p, dtype="int32")
    f = theano.function([p], out)
    assert step_of(f) == lowering.DrawStep("binomial")
    reference = np.random.RandomState(4)
    out.rng.set_value(reference)
    values = np.random.RandomState(0).uniform(size=(40, 30))
    with_zeros = np.where(values < 0.3, 0.0, np.where(values > 0.8, 1.0, values))
    for given in (values, values[::-2, ::3], with_zeros, np.asfortranarray(values)):
        np.testing.assert_array_equal(f(given), reference.binomial(n, given))
    assert random_state_type.values_eq(out.rng.get_value(borrow=True), reference)


def test_one_probability_for_each_column():
    rng = RandomStreams(3)
    p = T.fvector("p")
    out = rng.binomial((50, p.shape[0]), 1, p, ndim=2, dtype="float32")
    f = theano.function([p], out)
    reference = np.random.RandomState(4)
    out.rng.set_value(reference)
    given = np.linspace(0.1, 0.9, 7).astype("float32")
    np.testing.assert_array_equal(f(given), reference.binomial(1, given, (50, 7)))


@pytest.mark.parametrize(
    "draw, values",
    [
        (lambda r, a: r.normal((3,), 0.0, a), (2.0, -1.0)),
        (lambda r, a: r.uniform((3,), 0.0, a), (2.0, np.inf)),
        (lambda r, a: r.binomial((3,), 4, a), (0.5, 1.5)),
        (lambda r, a: r.binomial((3,), 4, a), (0.5, np.nan)),
    ],
)
def test_numpy_says_what_is_wrong_and_the_state_stays(draw, values):
    a = T.dscalar("a")
    rng = RandomStreams(3)
    out = draw(rng, a)
    f = theano.function([a], out)
    good, bad = values
    f(good)
    before = out.rng.get_value()
    with pytest.raises((ValueError, OverflowError)):
        f(bad)
    assert random_state_type.values_eq(out.rng.get_value(), before)


def test_other_generators_and_methods_are_drawn_by_numpy():
    rng = RandomStreams(3)
    out = rng.normal((5,))
    f = theano.function([], out, allow_input_downcast=True)
    state = np.random.RandomState(np.random.PCG64(3))
    reference = np.random.RandomState(np.random.PCG64(3))
    state_of(f).data = state
    np.testing.assert_array_equal(f(), reference.normal(size=5))
    np.testing.assert_array_equal(f(), reference.normal(size=5))
    poisson = rng.poisson((5,), 3.0)
    f = theano.function([], poisson)
    assert step_of(f) is None
    reference = poisson.rng.get_value()
    np.testing.assert_array_equal(f(), reference.poisson(3.0, 5))
    np.testing.assert_array_equal(f(), reference.poisson(3.0, 5))


METHODS = {
    "uniform": lambda r, n: r.uniform((n,)),
    "normal": lambda r, n: r.normal((n,)),
    "binomial": lambda r, n: r.binomial((n,), 3, 0.4),
    "poisson": lambda r, n: r.poisson((n,), 3.0),
    "permutation": lambda r, n: r.permutation((2,), n),
}


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("bits", [np.random.MT19937, np.random.PCG64])
def test_a_call_that_fails_leaves_the_generator_as_it_was(method, bits):
    n = T.lscalar("n")
    x = T.vector("x")
    rng = RandomStreams(3)
    drawn = METHODS[method](rng, n)
    f = theano.function([n, x], drawn.sum() + T.dot(drawn.flatten(), x))
    state = np.random.RandomState(bits(7))
    state.standard_normal(3)
    drawn.rng.set_value(state, borrow=True)
    weights = np.arange(1.0, 11.0 if method == "permutation" else 6.0)
    first = f(5, weights)
    before = drawn.rng.get_value()
    with pytest.raises(ValueError):
        f(5, weights[1:])
    assert random_state_type.values_eq(drawn.rng.get_value(), before)
    after = f(5, weights)
    drawn.rng.set_value(before)
    assert f(5, weights) == after != first
    # the generator is advanced itself
    assert drawn.rng.get_value(borrow=True) is drawn.rng.container.storage[0]


@pytest.mark.parametrize("method", ["uniform", "poisson"])
def test_a_generator_that_is_read_is_advanced_and_not_replaced(method):
    rng = RandomStreams(3)
    drawn = METHODS[method](rng, 4)
    f = theano.function([], drawn * 2)
    f()
    generator = drawn.rng.get_value(borrow=True)
    f()
    assert drawn.rng.get_value(borrow=True) is generator


@pytest.mark.parametrize("method", ["uniform", "poisson"])
def test_a_function_without_updates_does_not_move_the_state(method):
    rng = RandomStreams(3)
    drawn = METHODS[method](rng, 4)
    f = theano.function([], drawn * 2, no_default_updates=True)
    np.testing.assert_array_equal(f(), f())
    # two draws from one state are equal, though the state is only known after the call
    one, two = drawn.owner.op(*drawn.owner.inputs), drawn.owner.op(*drawn.owner.inputs)
    state, again = one[1], two[1]
    f = theano.function([], [state, again + 0], no_default_updates=True)
    np.testing.assert_array_equal(*f())


def test_a_state_that_two_draws_read_stays_until_both_have_drawn():
    state = theano.shared(np.random.RandomState(3))
    uniform = RandomFunction("uniform", T.dvector)(state, [4], 0.0, 1.0)
    normal = RandomFunction("normal", T.dvector)(state, [4], 0.0, 1.0)
    f = theano.function([], [uniform[1] * 2, normal[1] * 2], updates=[(state, uniform[0])])
    reference = np.random.RandomState(3)
    for _ in range(2):
        other = copy.deepcopy(reference)
        first, second = f()
        np.testing.assert_array_equal(first, reference.uniform(size=4) * 2)
        np.testing.assert_array_equal(second, other.normal(size=4) * 2)


def test_draws_within_a_loop():
    rng = RandomStreams(8)
    step = rng.normal((3,))
    rows, updates = theano.scan(lambda: step * 1.0, n_steps=5)
    f = theano.function([], rows, updates=updates)
    reference = step.rng.get_value()
    for _ in range(2):
        expected = [reference.normal(size=3) for _ in range(5)]
        np.testing.assert_array_equal(f(), expected)
    assert random_state_type.values_eq(step.rng.get_value(), reference)


# --- MRG31k3p -----------------------------------------------------------------------------------


@pytest.mark.parametrize("order", ["C", "F"])
def test_few_numbers_change_few_states_in_place(order):
    n = T.lscalar("n")
    x = T.fvector("x")
    rng = MRG_RandomStreams(5)
    drawn = rng.uniform((n,), dtype="float32")
    f = theano.function([n, x], T.dot(drawn, x))
    aside = theano.function([n, x], T.dot(drawn, x), mode=theano.Mode(linker="py"))
    (shared,) = f.get_shared()
    start = shared.get_value()[:100]
    ones = lambda n: np.ones(n, dtype="float32")  # noqa: E731
    for count in (0, 1, 99, 100, 101, 450):
        shared.set_value(start.copy())
        expected = [aside(count, ones(count)) for _ in range(2)]
        states = shared.get_value()
        shared.set_value(np.array(start, order=order), borrow=True)
        found = [f(count, ones(count)) for _ in range(2)]
        np.testing.assert_allclose(found, expected, rtol=1e-6)
        np.testing.assert_array_equal(shared.get_value(), states)
        before = shared.get_value()
        memory = shared.get_value(borrow=True)
        with pytest.raises(ValueError):
            f(count, ones(count + 1))
        np.testing.assert_array_equal(shared.get_value(), before)
        f(count, ones(count))
        if 0 < count < 100:
            assert shared.get_value(borrow=True) is memory
            changed = (memory != before).any(axis=1)
            assert changed[:count].all() and not changed[count:].any()


def test_read_only_states_are_copied_before_they_advance():
    rng = MRG_RandomStreams(5)
    drawn = rng.normal((6,), dtype="float32")
    f = theano.function([], drawn + 1)
    (states,) = f.get_shared()
    kept = states.get_value()
    kept.flags.writeable = False
    states.set_value(kept, borrow=True)
    first = f()
    states.set_value(kept.copy())
    np.testing.assert_array_equal(f(), first)


@pytest.mark.parametrize("lengths", [(7, 9), (7, 90), (90, 9)])
def test_states_in_a_chain_of_draws(lengths):
    state = theano.shared(MRG_RandomStreams(5).get_substream_rstates(50, "float32"))
    once, first = mrg_uniform.new(state, 1, "float32", lengths[:1])
    twice, second = mrg_uniform.new(once, 1, "float32", lengths[1:])
    x = T.fvector("x")
    f = theano.function([x], first.sum() + T.dot(second, x), updates=[(state, twice)])
    reference = state.get_value()
    for _ in range(2):
        expected = mrg.draw(reference, lengths[0], "float32").sum()
        expected += mrg.draw(reference, lengths[1], "float32").sum()
        np.testing.assert_allclose(f(np.ones(lengths[1], "float32")), expected, rtol=1e-5)
        np.testing.assert_array_equal(state.get_value(), reference)
    with pytest.raises(ValueError):
        f(np.ones(8, "float32"))
    np.testing.assert_array_equal(state.get_value(), reference)


def test_generators_in_a_chain_of_draws():
    state = theano.shared(np.random.RandomState(3))
    once, first = RandomFunction("uniform", T.dvector)(state, [4], 0.0, 1.0)
    twice, second = RandomFunction("normal", T.dvector)(once, [3], 0.0, 1.0)
    x = T.dvector("x")
    f = theano.function([x], [first * 2, second + x], updates=[(state, twice)])
    reference = np.random.RandomState(3)
    for _ in range(2):
        found = f(np.zeros(3))
        np.testing.assert_array_equal(found[0], reference.uniform(size=4) * 2)
        np.testing.assert_array_equal(found[1], reference.normal(size=3))
    with pytest.raises(ValueError):
        f(np.zeros(2))
    assert random_state_type.values_eq(state.get_value(), reference)


def test_a_new_state_that_is_overwritten_is_written_aside():
    state = theano.shared(MRG_RandomStreams(5).get_substream_rstates(50, "float32"))
    new, numbers = mrg_uniform.new(state, 1, "float32", [7])
    x = T.fvector("x")
    changed = T.set_subtensor(new[0], 1)
    f = theano.function([x], T.dot(numbers, x), updates=[(state, changed)])
    before = state.get_value()
    with pytest.raises(ValueError):
        f(np.ones(6, "float32"))
    np.testing.assert_array_equal(state.get_value(), before)
    f(np.ones(7, "float32"))
    assert (state.get_value()[0] == 1).all() and (state.get_value()[1:7] != before[1:7]).any()
