"""Random streams in functions: every mode, updates, failures, threads, gradients of programs.

The numbers themselves are compared with Theano's in tests/golden (programs ``random.*``).
"""

import copy
import pickle
import threading

import numpy as np
import pytest

import opwise.tensor as T
from opwise import In, function, get_mode, shared
from opwise.gradient import grad
from opwise.random import MRG_RandomStreams, RandomStreams
from opwise.sandbox.rng_mrg import mrg_uniform_base
from opwise.tensor import raw_random
from opwise.tensor.random.mrg import substreams
from opwise.tensor.raw_random import RandomFunction, random_state_type
from opwise.tensor.shared_randomstreams import RandomStateSharedVariable

pytestmark = pytest.mark.c

MODES = ("FAST_RUN", "FAST_COMPILE", "DEBUG_MODE", "PROFILE_MODE")
KINDS = (MRG_RandomStreams, RandomStreams)
P = np.array([[0.1, 0.2, 0.7], [0.3, 0.3, 0.4]])

#: {name: stream -> random variable}
VARIABLES = {
    "uniform": lambda s: s.uniform((3, 40)),
    "uniform float32": lambda s: s.uniform((500,), dtype="float32"),
    "normal": lambda s: s.normal((3, 4), avg=1.0, std=2.0),
    "binomial": lambda s: s.binomial((9,), p=0.3),
    "multinomial": lambda s: s.multinomial(n=3, pvals=P),
    "of another": lambda s: s.uniform((4,)) + s.normal((4,)) * s.uniform((4,)),
}
ONLY = {
    "truncated": (MRG_RandomStreams, lambda s: s.truncated_normal((50,))),
    "choice": (MRG_RandomStreams, lambda s: s.choice(size=2, replace=False, p=P)),
    "float16": (MRG_RandomStreams, lambda s: s.uniform((50,), dtype="float16")),
    "permutation": (RandomStreams, lambda s: s.permutation((2,), n=5)),
    "poisson": (RandomStreams, lambda s: s.poisson((5,), lam=3.0)),
    "integers": (RandomStreams, lambda s: s.random_integers((5,), 0, 99)),
    "shuffled": (RandomStreams, lambda s: s.shuffle_row_elements(T.arange(12).reshape((3, 4)))),
}
CASES = [(cls, name, build) for name, build in VARIABLES.items() for cls in KINDS]
CASES += [(cls, name, build) for name, (cls, build) in ONLY.items()]


def three_calls(cls, build, mode):
    f = function([], build(cls(17)), mode=mode)
    return [f() for _ in range(3)]


@pytest.mark.parametrize(("cls", "name", "build"), CASES)
def test_every_mode_draws_the_same(cls, name, build):
    expected = three_calls(cls, build, "FAST_RUN")
    assert not np.array_equal(expected[0], expected[1])
    for mode in MODES[1:]:
        for found, wanted in zip(three_calls(cls, build, mode), expected, strict=True):
            np.testing.assert_allclose(found, wanted, rtol=1e-14)


@pytest.mark.parametrize("cls", KINDS)
@pytest.mark.parametrize("mode", MODES)
def test_a_call_that_fails_leaves_states_as_they_were(cls, mode):
    x = T.vector("x")
    stream = cls(3)
    u = stream.uniform((3,))
    f = function([x], [u, u + x], mode=mode)
    expected = function([], u, no_default_updates=True)()
    with pytest.raises(ValueError):
        f(np.ones(4))
    np.testing.assert_array_equal(f(np.ones(3))[0], expected)


@pytest.mark.parametrize("cls", KINDS)
def test_a_failure_after_a_draw_in_place(cls):
    """Numbers that only the caller reads are drawn in place, last but for what may fail too."""
    u = cls(3).uniform((3,))
    size = T.lvector("n")
    v = cls(4).uniform(size, ndim=1)
    f = function([size], [u, v])
    assert all(draw.destroy_map for draw in draws(f))
    expected = [function([], var, no_default_updates=True)() for var in (u,)]
    with pytest.raises(ValueError):
        f([-1])
    np.testing.assert_array_equal(f([2])[0], expected[0])


def draws(f):
    return [
        node.op for node in f.maker.fgraph.toposort()
        if isinstance(node.op, mrg_uniform_base | RandomFunction)
    ]  # fmt: skip


@pytest.mark.parametrize("cls", KINDS)
def test_in_place_only_where_nothing_reads_the_numbers(cls):
    u = cls(3).uniform((3,))
    assert [bool(op.destroy_map) for op in draws(function([], u))] == [True]
    assert [bool(op.destroy_map) for op in draws(function([], u * 2))] == [False]
    assert [bool(op.destroy_map) for op in draws(function([], u, mode="FAST_COMPILE"))] == [False]
    excluding = get_mode("FAST_RUN").excluding("random_make_inplace", "random_make_inplace_mrg")
    assert [bool(op.destroy_map) for op in draws(function([], u, mode=excluding))] == [False]


@pytest.mark.parametrize("mode", MODES)
def test_chained_draws_overwrite_states_between(mode):
    state = random_state_type()
    after, first = raw_random.uniform(state, (3,))
    last, second = raw_random.uniform(after, (3,))
    f = function([state], [last, first * 2, second], mode=mode)
    if mode == "FAST_RUN":
        assert sorted(op.inplace for op in draws(f)) == [False, True]
    generator = np.random.RandomState(5)
    found, first, second = f(generator)
    reference = np.random.RandomState(5)
    assert random_state_type.values_eq(generator, reference)
    np.testing.assert_array_equal(first, 2 * reference.uniform(size=3))
    np.testing.assert_array_equal(second, reference.uniform(size=3))
    assert random_state_type.values_eq(found, reference)


@pytest.mark.parametrize("cls", KINDS)
def test_draws_of_one_state_are_one_draw(cls):
    u = cls(3).uniform((3,))
    f = function([], [u + u - 2 * u, u, u])
    assert len(draws(f)) == 1
    zero, a, b = f()
    np.testing.assert_array_equal(zero, 0)
    np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("cls", KINDS)
def test_givens_and_updates(cls):
    stream = cls(3)
    u, v = stream.uniform((3,)), stream.uniform((3,))
    state, after = stream.state_updates[0][:2]
    plain = function([], u)()
    given = function([], u + 1, givens={u: v}, no_default_updates=True)
    np.testing.assert_array_equal(given(), function([], v, no_default_updates=True)() + 1)
    stream.seed(3)
    explicit = function([], u, updates=[(state, after)])
    np.testing.assert_array_equal(explicit(), plain)
    total = shared(np.zeros(3))
    add = function([], updates=[(total, total + u)])
    stream.seed(3)
    add()
    np.testing.assert_array_equal(total.get_value(), plain)
    assert not np.array_equal(function([], u)(), plain)


@pytest.mark.parametrize("cls", KINDS)
def test_copies_and_pickles(cls):
    stream = cls(3)
    f = function([], stream.uniform((3,)))
    f()
    copies = [copy.deepcopy(f), pickle.loads(pickle.dumps(f)), f.copy(share_memory=False)]
    expected = [f() for _ in range(2)]
    for g in copies[:2]:
        np.testing.assert_array_equal([g(), g()], expected)
    other = pickle.loads(pickle.dumps(stream))
    assert type(other) is cls and len(other.state_updates) == 1
    other.seed(3)
    with pytest.raises(IndexError):
        other.state_updates[1]


def test_the_state_of_a_stream_may_have_any_layout():
    """Columns first, and borrowed: drawn in place."""
    states = substreams(np.arange(1, 7, dtype="int32"), 5)
    state = shared(np.asfortranarray(states), borrow=True)
    from opwise.sandbox.rng_mrg import mrg_uniform

    after, u = mrg_uniform.new(state, None, "float32", (23,))
    f = function([], u, updates=[(state, after)])
    expected = function([], mrg_uniform.new(shared(states), None, "float32", (23,))[1])()
    np.testing.assert_array_equal(f(), expected)
    assert not np.array_equal(f(), expected)


def test_many_numbers_by_several_threads():
    """The same as by one: each thread has streams of its own."""
    from opwise.linkers import opwise_c

    before = opwise_c.threads()
    found = []
    try:
        for threads in (1, 4):
            opwise_c.set_threads(threads)
            s = MRG_RandomStreams(9)
            f = function([], [s.uniform((1000, 1013)), s.uniform((999, 1001), dtype="float32")])
            found.append([*f(), *f()])
    finally:
        opwise_c.set_threads(before)
    for one, several in zip(*found, strict=True):
        np.testing.assert_array_equal(one, several)


@pytest.mark.parametrize("cls", KINDS)
def test_calls_from_several_threads_use_each_number_once(cls):
    f = function([], cls(9).uniform((2,)))
    expected = {tuple(function([], cls(9).uniform((2,)))()) for _ in range(1)}
    one = function([], cls(9).uniform((2,)))
    expected = {tuple(one()) for _ in range(40)}
    found, lock = [], threading.Lock()

    def work():
        for _ in range(10):
            value = tuple(f())
            with lock:
                found.append(value)

    workers = [threading.Thread(target=work) for _ in range(4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert set(found) == expected and len(found) == 40


def test_shared_generators():
    generator = np.random.RandomState(3)
    state = shared(generator, name="rng", borrow=True)
    assert type(state) is RandomStateSharedVariable and state.type is random_state_type
    assert state.get_value(borrow=True) is generator
    assert state.get_value() is not generator
    with pytest.raises(TypeError, match=r"numpy.random.RandomState\(seed\)"):
        state.set_value(3)
    after, u = raw_random.uniform(state, (2,))
    f = function([], u, updates=[(state, after)])
    f()
    assert random_state_type.values_eq(state.get_value(), state.get_value(borrow=True))


def test_states_as_inputs_with_updates():
    state = random_state_type("state")
    after, u = raw_random.uniform(state, (2,))
    f = function([In(state, value=np.random.RandomState(4), update=after, mutable=True)], u)
    reference = np.random.RandomState(4)
    for _ in range(3):
        np.testing.assert_array_equal(f(), reference.uniform(size=2))


@pytest.mark.parametrize("cls", KINDS)
@pytest.mark.parametrize("mode", MODES)
def test_dropout_in_a_training_step(cls, mode):
    """The cost and its gradient see the same mask."""
    x, w = T.matrix("x"), shared(np.full((4, 2), 0.5), "w")
    mask = cls(11).binomial(x.shape, p=0.5, dtype="float64") if cls is MRG_RandomStreams else (
        cls(11).binomial(x.shape, p=0.5, ndim=2, dtype="float64")
    )  # fmt: skip
    cost = T.dot(x * mask, w).sum()
    step = function([x], [mask, cost], updates=[(w, w - grad(cost, w))], mode=mode)
    data, expected = np.arange(12.0).reshape(3, 4), np.full((4, 2), 0.5)
    for _ in range(3):
        drawn, found = step(data)
        np.testing.assert_allclose(found, (data * drawn).dot(expected).sum())
        expected = expected - (data * drawn).sum(0)[:, None]
        np.testing.assert_allclose(w.get_value(), expected)


@pytest.mark.parametrize("cls", KINDS)
def test_test_values(cls, flags):
    flags(compute_test_value="raise")
    stream = cls(5)
    u = stream.uniform((2,))
    expected = u.tag.test_value.copy()
    np.testing.assert_array_equal(function([], u)(), expected)


def test_legacy_arguments_and_names():
    assert MRG_RandomStreams(3, use_cuda=True).n_streams((3, 3)) == 1
    stream = MRG_RandomStreams(np.int64(3))
    before = stream.rstate
    stream.uniform((3,))
    assert not np.array_equal(stream.rstate, before)
    assert stream.state_updates[0][0].tag.is_rng
    with pytest.warns(UserWarning, match="choice"):
        stream.multinomial_wo_replacement(n=1, pvals=P)
