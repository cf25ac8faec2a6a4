"""MRG31k3p: jumps, substreams, and numbers of the Op against steps of one state."""

import numpy as np
import pytest

from opwise import FunctionGraph
from opwise.optimizers.merge import MergeOptimizer
from opwise.sandbox.rng_mrg import DotModulo, mrg_uniform
from opwise.tensor import TensorType, constant
from opwise.tensor.random import mrg
from opwise.tensor.type import tensor_type

pytestmark = pytest.mark.null

STATE = np.array([1, 2, 3, 4, 5, 6], "int32")
MODULI = int(mrg.M1), int(mrg.M2)


def powers(state, steps):
    """Return a state after some steps, by products of matrices of whole numbers."""
    halves = []
    for half, modulus, row in (
        (state[:3], MODULI[0], [0, 2**22, 2**7 + 1]),
        (state[3:], MODULI[1], [2**15, 0, 2**15 + 1]),
    ):
        power = np.array([row, [1, 0, 0], [0, 1, 0]], dtype=object)
        vector, n = np.array([int(x) for x in half], dtype=object), steps
        while n:
            if n % 2:
                vector = power.dot(vector) % modulus
            power, n = power.dot(power) % modulus, n // 2
        halves += [int(x) for x in vector]
    return halves


@pytest.mark.parametrize(("jump", "steps"), [(mrg.ff_2p72, 2**72), (mrg.ff_2p134, 2**134)])
def test_jumps(jump, steps):
    after = jump(STATE)
    assert after.dtype == "int32"
    assert after.tolist() == powers(STATE, steps)


def test_steps():
    state = STATE.copy()
    for n in range(1, 20):
        x, y = powers(STATE, n)[::3]
        value = mrg.mrg_next_value(state, state, 1, 0xFFFFFFFF, 0)
        assert state.tolist() == powers(STATE, n)
        assert value == ((x - y) % MODULI[0] or MODULI[0])


@pytest.mark.parametrize("n", [1, 2, 3, 8, 9, 100])
@pytest.mark.parametrize("first", [STATE, -STATE, np.array([-1, 2, -3, 4, 5, 6], "int32")])
def test_substreams_are_jumps(first, n):
    states = mrg.substreams(first, n)
    assert states.shape == (n, 6) and states.dtype == "int32"
    for k in range(1, n):
        np.testing.assert_array_equal(states[k], mrg.ff_2p72(states[k - 1]))


def numbers(state, n, dtype):
    """Return the next numbers of one state, one at a time."""
    norm, mask, offset = {
        "float16": (float(np.float16(3.0458e-05)), 0x7FFF, 1),
        "float32": (1, 0xFFFFFFFF, 0),
        "float64": (mrg.NORM, 0xFFFFFFFF, 0),
    }[dtype]
    found = [mrg.mrg_next_value(state, state, norm, mask, offset) for _ in range(n)]
    if dtype == "float32":
        return np.array(found, "float32") * np.float32(4.6566126e-10)
    return np.array(found, dtype)


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
@pytest.mark.parametrize(("streams", "n"), [(1, 5), (3, 0), (3, 2), (3, 3), (3, 10), (7, 7)])
def test_draw(dtype, streams, n):
    states = mrg.substreams(STATE, streams)
    expected, after = np.empty(n, dtype), states.copy()
    for k in range(streams):
        expected[k::streams] = numbers(after[k], len(expected[k::streams]), dtype)
    np.testing.assert_array_equal(mrg.draw(states, n, dtype), expected)
    np.testing.assert_array_equal(states, after)


def test_the_op(run):
    state, size = tensor_type("int32", (False, False))("s"), tensor_type("int64", (False,))("n")
    states = mrg.substreams(STATE, 4)
    known = mrg_uniform.new(state, None, "float64", (2, 5))
    asked = mrg_uniform.new(state, 2, "float64", size)
    after, drawn, same_after, same = run([*known, *asked], {state: states, size: np.array([2, 5])})
    expected = states.copy()
    np.testing.assert_array_equal(drawn, mrg.draw(expected, 10, "float64").reshape(2, 5))
    np.testing.assert_array_equal(after, expected)
    np.testing.assert_array_equal(same, drawn)
    np.testing.assert_array_equal(same_after, after)


def test_lengths_that_are_known():
    state, n = tensor_type("int32", (False, False))(), tensor_type("int64", ())()
    assert mrg_uniform.new(state, None, "float32", (1, n, 3))[1].type.broadcastable == (
        True, False, False,
    )  # fmt: skip


def test_equal_draws_are_merged_and_no_others():
    one, other = (tensor_type("int32", (False, False))(name) for name in ("one", "other"))

    def draw(state):
        return mrg_uniform.new(state, None, "float64", (3,))

    (after, a), (_, b), (_, c) = draw(one), draw(one), draw(other)
    d = draw(after)[1]
    fgraph = FunctionGraph([one, other], [a, b, c, d])
    MergeOptimizer().optimize(fgraph)
    a, b, c, d = fgraph.outputs
    assert a is b
    assert len({a, c, d}) == 3


@pytest.mark.parametrize(
    ("states", "size", "ndim", "words"),
    [
        (np.ones((2, 5), "int32"), [3], 1, "6 columns"),
        (np.ones((0, 6), "int32"), [3], 1, "no rows"),
        (np.ones((2, 6), "int32"), [3, 4], 1, "length 1 .not 2."),
        (np.ones((2, 6), "int32"), [3, -4], 2, "negative"),
        (np.ones((2, 6), "int32"), [2**20, 2**20], 2, "more then .2..31 -1. samples"),
    ],
)
def test_refused_values(states, size, ndim, words):
    symbolic = tensor_type("int32", (False, False))(), tensor_type("int64", (False,))()
    node = mrg_uniform(TensorType("float64", (False,) * ndim)).make_node(*symbolic)
    with pytest.raises(ValueError, match=words):
        node.op.perform(node, [states, np.array(size)], [[None], [None]])


def test_refused_types():
    state = tensor_type("int32", (False, False))()
    with pytest.raises(TypeError, match=r"floating dtype.*int64"):
        mrg_uniform.new(state, None, "int64", (3,))
    with pytest.raises(TypeError, match="vector of integers"):
        mrg_uniform.new(state, 1, "float64", constant([2.5]))


def test_dot_modulo(run):
    A = tensor_type("int64", (False, False))("A")
    s = tensor_type("int32", (False,))("s")
    out = DotModulo()(A, s, mrg.M1, mrg.A2p72, s, mrg.M2)
    found = run([out], {A: mrg.A1p72, s: STATE[:3]})[0]
    expected = [mrg.matVecModM(mrg.A1p72, STATE[:3], mrg.M1),
                mrg.matVecModM(mrg.A2p72, STATE[:3], mrg.M2)]  # fmt: skip
    np.testing.assert_array_equal(found, np.concatenate(expected))
    with pytest.raises(AssertionError, match="int64"):
        mrg.matVecModM(mrg.A1p72.astype("int32"), STATE[:3], mrg.M1)


def test_guess_of_the_number_of_streams():
    with pytest.warns(UserWarning, match="guessing"):
        assert mrg.guess_n_streams("many", warn=True) == 15360
    assert [mrg.guess_n_streams(s) for s in [(6,), (7,), (30, 30), [10**6]]] == [6, 1, 150, 15360]
