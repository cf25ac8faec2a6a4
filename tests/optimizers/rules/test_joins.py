"""Rules on joined tensors: what each makes of what it looks at; how many loops are left."""

import numpy as np
import pytest

import opwise.tensor as T
from opwise import function
from opwise.compile import Shape_i, optdb
from opwise.config import change_flags
from opwise.loops import scan
from opwise.optimizers.rules import joins as rules
from opwise.tensor import Elemwise, Join, Split
from opwise.tensor.join import MakeVector, make_vector

pytestmark = pytest.mark.null

n0 = Shape_i(0)

#: the stages in which each rule stands
STAGES = {
    "canonicalize": """
        local_dimshuffle_of_stack local_join_1 local_join_empty local_join_make_vector
        local_subtensor_of_join local_useless_split
    """,
    "specialize": """
        local_elemwise_of_stack local_join_1 local_join_empty local_join_make_vector
        local_subtensor_of_join local_useless_split
    """,
}


def stacked(*rows):
    """Join rows, matrices with one row each."""
    return T.concatenate(rows)


def and_exp(x):
    return x, T.exp(x)


#: rule, graph, and what the rule makes of it; None where the graph must stay as it is
CASES = [
    ("local_join_1", lambda x: Join()(0, x), "x"),
    ("local_join_1", lambda x: T.concatenate([x, x]), None),
    ("local_join_empty", lambda x, y: T.concatenate([x, np.zeros((0, 4)), y]), "Join(0, x, y)"),
    ("local_join_empty", lambda x: T.concatenate([x, T.zeros((n0(x), 0))], axis=1), "x"),
    ("local_join_empty", lambda f: T.concatenate([f, np.zeros((0, 4))]), "Cast{float64}(f)"),
    ("local_join_empty", lambda v: T.concatenate([v, np.zeros(2)]), None),
    ("local_join_empty", lambda v, n: Join()(n - 2, v, np.zeros(0)), None),
    (
        "local_join_make_vector",
        lambda n, m: T.concatenate([T.stack([n, m]), [3], T.stack([m])]),
        "MakeVector(n, m, 3, m)",
    ),
    (
        "local_join_make_vector",
        lambda v, s: T.concatenate([T.stack([s]), v, T.stack([s]), T.stack([s])]),
        "Join(0, MakeVector(s), v, MakeVector(s, s))",
    ),
    ("local_join_make_vector", lambda v, s: T.concatenate([T.stack([s]), v, T.stack([s])]), None),
    (
        "local_join_make_vector",
        lambda n, s: T.concatenate([T.stack([n]), T.stack([s])]),
        "MakeVector(Cast{float64}(n), s)",
    ),
    ("local_useless_split", lambda x: Split(1)(x, 0, make_vector(n0(x))), "x"),
    ("local_useless_split", lambda v: Split(1)(v, 0, [4]), "Assert(v, eq(4, Shape_i{0}(v)))"),
    ("local_useless_split", lambda v: T.split(v, [1, 3], 2), None),
    ("local_subtensor_of_join", lambda x, r: T.concatenate([r, x])[0], "Subtensor{int64}(r, 0)"),
    ("local_subtensor_of_join", lambda x, r: T.concatenate([r, x])[1:], "x"),
    ("local_subtensor_of_join", lambda x, r: T.concatenate([x, r])[-1], "Subtensor{int64}(r, -1)"),
    (
        "local_subtensor_of_join",
        lambda f, c: T.concatenate([c, f], 1)[:, 0],
        "Subtensor{::, int64}(c, 0)",
    ),
    (
        "local_subtensor_of_join",
        lambda x, r: T.concatenate([r, r, x])[3:7:2],
        "Subtensor{int64:int64:int64}(x, 1, 5, 2)",
    ),
    ("local_subtensor_of_join", lambda x, r: T.concatenate([x, r])[0], None),
    ("local_subtensor_of_join", lambda x, r: T.concatenate([r, r, x])[1:3], None),
    ("local_subtensor_of_join", lambda x, r: T.concatenate([r, r, x])[:-1], None),
    ("local_subtensor_of_join", lambda x, y, r: T.concatenate([r, x, y])[-1:], None),
    ("local_subtensor_of_join", lambda n, r: T.concatenate([r, r])[n % 2], None),
    ("local_subtensor_of_join", lambda n, r: T.concatenate([r, r])[n % 2 :], None),
    ("local_subtensor_of_join", lambda x, r: T.concatenate([x, r])[:1:-1], None),
    (
        "local_dimshuffle_of_stack",
        lambda r: T.exp(stacked(T.sin(r), r).T),
        "exp(Join(1, DS{1,0}(sin(r)), DS{1,0}(r)))",
    ),
    ("local_dimshuffle_of_stack", lambda r: stacked(T.sin(r), r).T, None),
    ("local_dimshuffle_of_stack", lambda r: T.exp(stacked(r, r).T), None),
    ("local_dimshuffle_of_stack", lambda r: and_exp(stacked(T.sin(r), r).T), None),
    ("local_dimshuffle_of_stack", lambda s, z: T.exp(T.stack([s * z, z])[None, :]), None),
    (
        "local_elemwise_of_stack",
        lambda r: T.exp(stacked(T.sin(r), r)),
        "Join(0, DS{x,0}(exp(DS{1}(sin(r)))), DS{x,0}(exp(DS{1}(r))))",
    ),
    (
        "local_elemwise_of_stack",
        lambda r, s: stacked(T.sin(r), r) * s,
        "Join(0, DS{x,0}(mul(DS{1}(sin(r)), *1 -> DS{x}(s))), DS{x,0}(mul(DS{1}(r), *1)))",
    ),
    (
        "local_elemwise_of_stack",
        lambda s, z: T.stack([s * z, s]) * s,
        "MakeVector(mul(mul(s, z), s), mul(s, s))",
    ),
    # the stack is a result
    ("local_elemwise_of_stack", lambda r: and_exp(stacked(T.sin(r), r)), None),
    # nothing can be fused
    ("local_elemwise_of_stack", lambda r: T.exp(stacked(r, r)), None),
    (
        "local_elemwise_of_stack",
        lambda r, x: T.exp(stacked(T.sin(r), T.dot(r, T.dot(x.T, x)))),
        None,
    ),
    # too many
    ("local_elemwise_of_stack", lambda r: T.exp(stacked(*[T.sin(r)] * 9)), None),
    # not of length 1
    ("local_elemwise_of_stack", lambda x: T.exp(T.concatenate([T.sin(x), x])), None),
]

#: the same for graphs that arrays without elements do not fit
FULL_CASES = [
    ("local_subtensor_of_join", lambda x, r: T.concatenate([r, x])[3], "Subtensor{int64}(x, 2)"),
    (
        "local_subtensor_of_join",
        lambda x, r: T.concatenate([x, r])[-3, 1:],
        "Subtensor{int64, int64::}(x, -2, 1)",
    ),
    (
        "local_elemwise_of_stack",
        lambda r, x: stacked(T.sin(r), r, r) * x,
        "Join(0, DS{x,0}(mul(DS{1}(sin(r)), Subtensor{int64}(x, 0))), "
        "DS{x,0}(mul(DS{1}(r), Subtensor{int64}(x, 1))), "
        "DS{x,0}(mul(DS{1}(r), Assert(Subtensor{int64}(x, 2), eq(Shape_i{0}(x), 3)))))",
    ),
    # columns of x would be read with gaps
    (
        "local_elemwise_of_stack",
        lambda c, x: T.concatenate([T.sin(c), c, c, c], 1) * x,
        "mul(Join(1, sin(c), c, c, c), x)",
    ),
]


@pytest.mark.parametrize(("rule", "build", "expected"), CASES, ids=[c[0] for c in CASES])
def test_what_each_rule_makes(rewritten_by, rule, build, expected):
    before, after = rewritten_by(getattr(rules, rule), build)
    assert after == (before if expected is None else expected)


@pytest.mark.parametrize(("rule", "build", "expected"), FULL_CASES, ids=[c[0] for c in FULL_CASES])
def test_what_each_rule_makes_of_arrays_with_elements(rewritten_by, rule, build, expected):
    _, after = rewritten_by(getattr(rules, rule), build, empty=False)
    assert after == expected


def test_every_rule_has_cases_of_both_kinds(rules_of):
    ours = rules_of(rules)
    assert {rule for rule, _, expected in CASES if expected is not None} == ours
    assert {rule for rule, _, expected in CASES if expected is None} == ours


@pytest.mark.parametrize("stage", STAGES)
def test_rules_stand_in_the_stages_that_programs_know(rules_of, stage):
    names = rules_of(rules).intersection(optdb[stage].names())
    assert names == set(STAGES[stage].split())
    assert all("fast_run" in optdb[stage].tags_of(name) for name in names)


def lorenz(s):
    x, y, z = s[0], s[1], s[2]
    return T.stack([10 * (y - x), x * (28 - z) - y, x * y - 8 / 3 * z])


def rk4(s):
    k1 = lorenz(s)
    k2 = lorenz(s + 0.005 * k1)
    k3 = lorenz(s + 0.005 * k2)
    k4 = lorenz(s + 0.01 * k3)
    return s + 0.01 / 6 * (k1 + 2 * k2 + 2 * k3 + k4)


def ops_of(f):
    return [node.op for node in f.maker.fgraph.toposort()]


def loops_of(f, ndim=1):
    """The elementwise Applys over arrays; with ndim 0, those on numbers too."""
    nodes = f.maker.fgraph.toposort()
    return [
        node for node in nodes
        if isinstance(node.op, Elemwise) and node.outputs[0].type.ndim >= ndim
    ]  # fmt: skip


@pytest.mark.parametrize("kind", ["rows", "numbers"])
def test_a_step_over_stacked_components_is_one_loop_and_one_stack(kind):
    if kind == "rows":
        inputs = [T.matrix("s", dtype="float64")]
        (s,) = inputs
        values = [np.random.default_rng(1).normal(size=(3, 7))]
    else:
        inputs = T.dscalars("xyz")
        s = T.stack(inputs)
        values = [0.1, 0.2, 0.3]
    f = function(inputs, rk4(s))
    assert len(loops_of(f, 1 if kind == "rows" else 0)) == 1
    assert sum(isinstance(op, Join | MakeVector) for op in ops_of(f)) == 1
    g = function(inputs, rk4(s), mode="FAST_COMPILE")
    np.testing.assert_allclose(f(*values), g(*values), rtol=1e-12)


@pytest.mark.parametrize("transposed", [False, True])
def test_a_step_over_stacked_columns_is_one_loop_too(transposed):
    s = T.matrix("s", dtype="float64")

    def change(s):
        x, y = s[:, 0], s[:, 1]
        parts = [y, (1 - x**2) * y - x]
        return T.stack(parts).T if transposed else T.stack(parts, axis=1)

    def step(s):
        return s + 0.1 * change(s + 0.05 * change(s))

    assert len(loops_of(function([s], step(s)))) == 1
    states, _ = scan(step, outputs_info=s, n_steps=5)
    value = np.random.default_rng(2).normal(size=(9, 2))
    f = function([s], states)
    g = function([s], states, mode="FAST_COMPILE")
    np.testing.assert_allclose(f(value), g(value), rtol=1e-12)


def test_a_stack_that_has_too_few_rows_for_an_operand_is_an_error():
    r, x = T.row("r", dtype="float64"), T.matrix("x", dtype="float64")
    f = function([r, x], stacked(T.sin(r), r, r) * x)
    with pytest.raises((IndexError, ValueError)):
        f(np.ones((1, 4)), np.ones((2, 4)))


@pytest.mark.parametrize("kept", [False, True])
def test_more_rows_than_stacked_tensors_are_an_error(kept):
    r, x = T.row("r", dtype="float64"), T.matrix("x", dtype="float64")
    with change_flags({"keep_shape_checks": kept}):
        f = function([r, x], stacked(T.sin(r), r, r) * x)
    with pytest.raises((AssertionError, ValueError)):
        f(np.ones((1, 4)), np.ones((4, 4)))
    assert f(np.ones((1, 4)), np.ones((3, 4))).shape == (3, 4)


def test_a_vector_longer_than_a_stack_of_numbers_is_an_error():
    v = T.vector("v", dtype="float64")
    f = function([v], v + T.stack([v[0] * 2, v[1] * v[0]]))
    with pytest.raises((AssertionError, ValueError)):
        f(np.ones(3))
    np.testing.assert_allclose(f(np.array([1.0, 2.0])), [3.0, 4.0])


def test_an_operand_of_many_successive_operations_is_not_taken_apart():
    r, x = T.row("r", dtype="float64"), T.matrix("x", dtype="float64")
    y = x
    for _ in range(6):
        y = T.sin(y)
    f = function([r, x], stacked(T.sin(r), r, r) * y)
    assert sum(isinstance(op, Elemwise) for op in ops_of(f)) == 2
    value = np.full((3, 4), 0.5)
    expected = function([r, x], stacked(T.sin(r), r, r) * y, mode="FAST_COMPILE")(value[:1], value)
    np.testing.assert_allclose(f(value[:1], value), expected, rtol=1e-12)


def test_of_a_stack_with_many_readers_nothing_is_asked():
    r = T.row("r", dtype="float64")
    made = stacked(T.sin(r), r)
    f = function([r], [T.exp(made * k) for k in range(1, 30)])
    assert sum(isinstance(op, Join) for op in ops_of(f)) == 1
