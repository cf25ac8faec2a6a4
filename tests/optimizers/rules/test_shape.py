"""Rules on shapes, allocations and reshapes: what each makes of what it looks at."""

from collections import Counter

import numpy as np
import pytest
from checking import check_rewrite

import opwise.tensor as T
from opwise import FunctionGraph, Mode, function, shared
from opwise.compile import DeepCopyOp, Shape_i, optdb
from opwise.gradient import grad
from opwise.optimizers.navigators import EquilibriumOptimizer
from opwise.optimizers.rule import Rule
from opwise.optimizers.rules import shape as rules
from opwise.scalar.op import OPS
from opwise.tensor import (
    Alloc,
    CAReduce,
    Elemwise,
    Rebroadcast,
    Reshape,
    Shape,
    Split,
    Subtensor,
    scalar_from_tensor,
    tensor_from_scalar,
)
from opwise.tensor.assertion import Assert
from opwise.tensor.join import MakeVector, make_vector

pytestmark = pytest.mark.null

n0, n1, n2 = map(Shape_i, range(3))

#: the stages in which each rule stands, by their first letters
STAGES = {
    "canonicalize": """
        local_canonicalize_alloc local_merge_alloc local_rebroadcast_lift local_reduce_make_vector
        local_reshape_chain local_reshape_lift local_reshape_to_dimshuffle
        local_scalar_tensor_scalar local_shape_to_shape_i local_tensor_scalar_tensor
        local_track_shape_i local_useless_alloc local_useless_dimshuffle_in_reshape
        local_useless_rebroadcast local_useless_reshape
    """,
    "stabilize": """
        local_canonicalize_alloc local_fill_to_alloc local_merge_alloc local_reshape_lift
        local_useless_alloc local_useless_reshape
    """,
    "local_fill_to_alloc": "local_fill_to_alloc",
    "local_elemwise_alloc": "local_elemwise_alloc",
    "specialize": """
        local_alloc_unary local_canonicalize_alloc local_elemwise_alloc local_fill_to_alloc
        local_merge_alloc local_opt_alloc local_rebroadcast_lift local_reduce_make_vector
        local_scalar_tensor_scalar local_shape_to_shape_i local_tensor_scalar_tensor
        local_track_shape_i local_useless_alloc local_useless_rebroadcast
    """,
    "uncanonicalize": "local_alloc_dimshuffle local_dimshuffle_alloc local_reshape_dimshuffle",
}


def of(x, build):
    return build(x)


def and_itself(x, build):
    return build(x), x


#: rule, graph, and what the rule makes of it; None where the graph must stay as it is
CASES = [
    ("local_shape_to_shape_i", lambda x: T.shape(x), "MakeVector(Shape_i{0}(x), Shape_i{1}(x))"),
    ("local_shape_to_shape_i", lambda r: T.shape(r), "MakeVector(1, Shape_i{1}(r))"),
    ("local_shape_to_shape_i", lambda x, v: T.shape(T.dot(x, v)), "MakeVector(Shape_i{0}(x))"),
    ("local_shape_to_shape_i", lambda s: T.shape(s), "[]"),
    ("local_track_shape_i", lambda x, r: n0(x + r), "Shape_i{0}(x)"),
    ("local_track_shape_i", lambda r: n0(r), "1"),
    ("local_track_shape_i", lambda x: n1(T.dot(x, x.T)), "Shape_i{0}(x)"),
    ("local_track_shape_i", lambda s, n: n0(T.alloc(s, n, 3)), "n"),
    ("local_track_shape_i", lambda x: n0(x), None),
    ("local_reduce_make_vector", lambda n, m: T.prod(make_vector(n, m, n)), "mul(n, m, n)"),
    ("local_reduce_make_vector", lambda s, z: T.sum(T.stack([s, z])), "add(s, z)"),
    (
        "local_reduce_make_vector",
        lambda n, m: CAReduce(OPS["maximum"])(make_vector(n, m, 5)),
        "maximum(maximum(n, m), Cast{int64}(5))",
    ),
    (
        "local_reduce_make_vector",
        lambda n: T.sum(MakeVector("int8")(T.cast(n, "int8"))),
        "Cast{int64}(Cast{int8}(n))",
    ),
    ("local_reduce_make_vector", lambda v: T.prod(v), None),
    ("local_tensor_scalar_tensor", lambda s: tensor_from_scalar(scalar_from_tensor(s)), "s"),
    (
        "local_scalar_tensor_scalar",
        lambda v, n: v[scalar_from_tensor(tensor_from_scalar(scalar_from_tensor(n)))],
        "Subtensor{int64}(v, ScalarFromTensor(n))",
    ),
    ("local_fill_to_alloc", lambda x, s: T.fill(x, s), "Alloc(s, Shape_i{0}(x), Shape_i{1}(x))"),
    ("local_fill_to_alloc", lambda x, r: T.fill(x, r), "Alloc(r, Shape_i{0}(x), Shape_i{1}(x))"),
    ("local_fill_to_alloc", lambda c, r: T.fill(c, r), "Alloc(r, Shape_i{0}(c), Shape_i{1}(r))"),
    ("local_fill_to_alloc", lambda x: T.fill(x, 0), "Alloc(0, Shape_i{0}(x), Shape_i{1}(x))"),
    ("local_fill_to_alloc", lambda x, f: T.fill(x, f), "f"),
    ("local_fill_to_alloc", lambda s, z: T.fill(s, z), "z"),
    ("local_useless_alloc", lambda x: T.alloc(x, n0(x), n1(x)), "x"),
    ("local_useless_alloc", lambda r: T.alloc(r, 1, n1(r)), "r"),
    ("local_useless_alloc", lambda v: T.alloc(v, 4), None),
    ("local_useless_alloc", lambda v: T.alloc(v, 1, n0(v)), None),
    (
        "local_canonicalize_alloc",
        lambda v: T.alloc(v, 1, 1, n0(v)),
        "DS{x,x,0}(Alloc(v, Shape_i{0}(v)))",
    ),
    ("local_canonicalize_alloc", lambda s: T.alloc(s, 1, 1), "DS{x,x}(s)"),
    ("local_canonicalize_alloc", lambda s, n: T.alloc(s, n, 1), None),
    ("local_canonicalize_alloc", lambda r: T.alloc(r, 1, n1(r)), None),
    (
        "local_merge_alloc",
        lambda v, n: T.alloc(T.alloc(v, n, n0(v)), 3, n, n0(v)),
        "Alloc(v, 3, n, Shape_i{0}(v))",
    ),
    ("local_merge_alloc", lambda s, n: T.alloc(T.alloc(s, 1, n), 3, n), "Alloc(s, 3, n)"),
    ("local_merge_alloc", lambda s, n: T.alloc(T.alloc(s, n), 2), None),
    ("local_alloc_unary", lambda s, n: T.exp(T.alloc(s, n, 3)), "Alloc(exp(s), n, 3)"),
    (
        "local_alloc_unary",
        lambda s, z, n: T.alloc(s, n, 3) * T.alloc(z, n, 3),
        "Alloc(mul(s, z), n, 3)",
    ),
    (
        "local_alloc_unary",
        lambda s, v, n: T.alloc(s, n, n0(v)) + v,
        "Alloc(add(DS{x}(s), v), n, Shape_i{0}(v))",
    ),
    ("local_alloc_unary", lambda x, s: x * T.alloc(s, n0(x), n1(x)), None),
    ("local_elemwise_alloc", lambda x, s: x * T.alloc(s, n0(x), n1(x)), "mul(x, DS{x,x}(s))"),
    ("local_elemwise_alloc", lambda x, v: x * T.alloc(v, n0(x), n0(v)), "mul(x, DS{x,0}(v))"),
    ("local_elemwise_alloc", lambda x, s: x * T.alloc(s, n1(x), n0(x)).T, "mul(x, DS{x,x}(s))"),
    (
        "local_elemwise_alloc",
        lambda r, c, s: T.switch(T.alloc(s, n0(c), n1(r)), r, c),
        "switch(DS{x,x}(s), r, c)",
    ),
    (
        "local_elemwise_alloc",
        lambda v, s: v * T.alloc(s, 4),
        "mul(Assert(v, eq(4, Shape_i{0}(v))), DS{x}(s))",
    ),
    (
        "local_elemwise_alloc",
        lambda s, z, n: T.alloc(s, n) * T.alloc(z, n),
        "mul(Alloc(s, n), DS{x}(z))",
    ),
    ("local_elemwise_alloc", lambda v, s, n: v * T.alloc(s, n, 4), None),
    ("local_elemwise_alloc", lambda v: v * T.alloc(v, 4), None),
    (
        "local_opt_alloc",
        lambda n, m: T.sum(T.alloc(2.5, n, m)),
        "Cast{float32}(mul(2.5, Cast{float64}(mul(n, m))))",
    ),
    (
        "local_opt_alloc",
        lambda n, m: T.sum(T.alloc(np.float32(0.1), n, m), axis=1),
        "Alloc(Cast{float32}(mul(0.10000000149011612, Cast{float64}(m))), n)",
    ),
    (
        "local_opt_alloc",
        lambda n, m: T.prod(T.alloc(2.5, n, m), axis=0),
        "Alloc(Cast{float32}(pow(2.5, Cast{float64}(n))), m)",
    ),
    ("local_opt_alloc", lambda n: T.sum(T.alloc(np.int8(3), n)), "mul(3, n)"),
    ("local_opt_alloc", lambda n: T.prod(T.alloc(np.int8(1), n)), "1"),
    ("local_opt_alloc", lambda n: T.prod(T.alloc(np.int8(3), n)), None),
    ("local_opt_alloc", lambda n: T.sum(T.alloc(np.inf, n)), None),
    ("local_opt_alloc", lambda s, n: T.sum(T.alloc(s, n)), None),
    (
        "local_alloc_dimshuffle",
        lambda v, n: T.alloc(v.dimshuffle("x", 0), n, n0(v)),
        "Alloc(v, n, Shape_i{0}(v))",
    ),
    ("local_alloc_dimshuffle", lambda v, n: T.alloc(v.dimshuffle(0, "x"), n0(v), n), None),
    (
        "local_dimshuffle_alloc",
        lambda s, n: T.alloc(s, n).dimshuffle("x", "x", 0),
        "Alloc(s, 1, 1, n)",
    ),
    ("local_dimshuffle_alloc", lambda s, n: T.alloc(s, n).dimshuffle(0, "x"), None),
    ("local_useless_reshape", lambda x: x.reshape((n0(x), n1(x))), "x"),
    ("local_useless_reshape", lambda v: v.reshape((-1,)), "v"),
    ("local_useless_reshape", lambda r: r.reshape((1, n1(r))), "r"),
    ("local_useless_reshape", lambda s: s.reshape([], ndim=0), "s"),
    ("local_useless_reshape", lambda x: x.reshape((n1(x), n0(x))), None),
    ("local_useless_reshape", lambda v: v.reshape((4,)), None),
    ("local_useless_reshape", lambda x: x.reshape((-1, 4)), None),
    (
        "local_reshape_chain",
        lambda x: x.reshape((-1, 2)).reshape((n0(x), n1(x))),
        "Reshape{2}(x, MakeVector(Shape_i{0}(x), Shape_i{1}(x)))",
    ),
    ("local_reshape_to_dimshuffle", lambda v: v.reshape((1, n0(v))), "DS{x,0}(v)"),
    ("local_reshape_to_dimshuffle", lambda v: v.reshape((1, -1, 1)), "DS{x,0,x}(v)"),
    ("local_reshape_to_dimshuffle", lambda r: r.reshape((-1, 1)), "DS{1,x}(r)"),
    (
        "local_reshape_to_dimshuffle",
        lambda x: x.reshape((1, -1, 2)),
        "DS{x,0,1}(Reshape{2}(x, [-1  2]))",
    ),
    ("local_reshape_to_dimshuffle", lambda s: s.reshape((1, 1)), "DS{x,x}(s)"),
    ("local_reshape_to_dimshuffle", lambda x: x.reshape((n1(x), n0(x))), None),
    (
        "local_useless_dimshuffle_in_reshape",
        lambda x: x.dimshuffle(0, "x", 1).reshape((-1,)),
        "Reshape{1}(x, -1)",
    ),
    (
        "local_useless_dimshuffle_in_reshape",
        lambda r: r.dimshuffle(1, 0).reshape((-1, 2)),
        "Reshape{2}(r, [-1  2])",
    ),
    ("local_useless_dimshuffle_in_reshape", lambda x: x.dimshuffle(1, 0).reshape((-1,)), None),
    (
        "local_reshape_dimshuffle",
        lambda v: v.dimshuffle("x", 0).reshape((-1, 2)),
        "Reshape{2}(v, [-1  2])",
    ),
    ("local_reshape_dimshuffle", lambda x: x.dimshuffle(1, "x", 0).reshape((-1,)), None),
    ("local_reshape_lift", lambda x: T.exp(x).reshape((-1,)), "exp(Reshape{1}(x, -1))"),
    (
        "local_reshape_lift",
        lambda x, s: (s * x + 1).reshape((-1, 1)),
        "add(mul(DS{x,x}(s), Reshape{2}(x, [-1  1])), DS{x,x}(1))",
    ),
    ("local_reshape_lift", lambda x: and_itself(T.exp(x), lambda e: e.reshape((-1,))), None),
    (
        "local_reshape_lift",
        lambda x: of(T.exp(x), lambda e: (e.reshape((-1,)), n0(e))),
        "exp(Reshape{1}(x, -1)), Shape_i{0}(exp(x))",
    ),
    ("local_reshape_lift", lambda x, y: (x * y).reshape((-1,)), None),
    ("local_reshape_lift", lambda x, v: (x * v).reshape((-1,)), None),
    ("local_useless_rebroadcast", lambda r: Rebroadcast((0, True))(r), "r"),
    (
        "local_useless_rebroadcast",
        lambda r: Rebroadcast((0, False), (1, False))(r),
        "Rebroadcast{0}(r)",
    ),
    ("local_useless_rebroadcast", lambda r: T.unbroadcast(r, 0), None),
    ("local_rebroadcast_lift", lambda c: T.unbroadcast(T.exp(c), 1), "exp(Rebroadcast{?,0}(c))"),
    ("local_rebroadcast_lift", lambda c: Rebroadcast((1, True))(Rebroadcast((1, False))(c)), "c"),
    ("local_rebroadcast_lift", lambda c, r: T.unbroadcast(c * r[:, :1], 1), None),
]

#: the same for graphs that arrays without elements do not fit
FULL_CASES = [
    ("local_useless_reshape", lambda x: x.reshape((n0(x), -1)), "x"),
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
    always = {  # nothing that they look at may stay
        "local_tensor_scalar_tensor", "local_scalar_tensor_scalar", "local_shape_to_shape_i",
        "local_fill_to_alloc", "local_reshape_chain",
    }  # fmt: skip
    assert {rule for rule, _, expected in CASES if expected is not None} == ours
    assert {rule for rule, _, expected in CASES if expected is None} == ours - always


@pytest.mark.parametrize("stage", STAGES)
def test_rules_stand_in_the_stages_that_programs_know(rules_of, stage):
    stage_holds = getattr(optdb[stage], "db", optdb[stage])
    names = rules_of(rules).intersection(stage_holds.names())
    assert names == set(STAGES[stage].split())
    assert all("fast_run" in stage_holds.tags_of(name) for name in names)
    assert not any("fast_compile" in stage_holds.tags_of(name) for name in names)


@pytest.mark.parametrize(
    ("stage", "rule", "tag"),
    [
        ("canonicalize", "local_reshape_lift", "local_flatten_lift"),
        ("specialize", "local_elemwise_alloc", "local_alloc_elemwise"),
    ],
)
def test_rules_are_selected_by_their_other_names_too(stage, rule, tag):
    assert tag in optdb[stage].tags_of(rule)


def test_without_tracked_shapes_nothing_that_needs_them_is_done():
    x = T.dmatrix("x")
    outputs = [
        x.shape,
        n0(x + x),
        x.reshape((n0(x), n1(x))),
        T.fill(x, 0),
        T.alloc(x, n0(x), n1(x)),
    ]
    ours = [r for r in vars(rules).values() if isinstance(r, Rule)]
    fgraph = check_rewrite(EquilibriumOptimizer(ours), [x], outputs, [np.ones((2, 3))])
    assert str(fgraph) == str(FunctionGraph([x], outputs))


def test_a_constant_is_allocated_without_dimensions_of_its_own():
    n = T.lscalar("n")
    one = EquilibriumOptimizer([rules.local_alloc_dimshuffle])
    fgraph = check_rewrite(one, [n], [T.alloc(np.array([[1.5]]), n, 3)], [np.array(2)])
    assert fgraph.outputs[0].owner.inputs[0].type.ndim == 0


# --- with all other rules -----------------------------------------------------------------------

RUN = Mode("py", "fast_run").excluding("inplace")


def compiled(inputs, outputs, mode=RUN, **options):
    return function(inputs, outputs, mode=mode, **options)


def classes(f):
    return {type(node.op) for node in f.maker.fgraph.apply_nodes}


def counts(f):
    return Counter(type(node.op) for node in f.maker.fgraph.apply_nodes)


def test_a_mean_divides_by_a_length_that_is_read_directly():
    x = T.dmatrix("x")
    for axis in (0, 1, None):
        f = compiled([x], x.mean(axis=axis))
        assert not classes(f) & {Shape, MakeVector, Subtensor, Alloc}
        value = np.arange(6.0).reshape(2, 3)
        np.testing.assert_allclose(f(value), value.mean(axis=axis))


def test_the_size_of_a_tensor_is_a_product_of_lengths():
    t = T.dtensor3("t")
    f = compiled([t], t.size)
    assert counts(f) == {Elemwise: 1, Shape_i: 3}
    assert f(np.ones((2, 3, 4))) == 24


def test_a_shape_alone_computes_nothing_else():
    x, y = T.dmatrices("xy")
    f = compiled([x, y], T.dot(T.exp(x), T.concatenate([y, y], axis=1)).T.shape)
    assert counts(f) == {Elemwise: 1, MakeVector: 1, Shape_i: 2}
    np.testing.assert_array_equal(f(np.ones((2, 3)), np.ones((3, 4))), [8, 2])


@pytest.mark.parametrize(
    "build",
    [
        lambda x: T.tile(x, (1, 1)),
        lambda x: x.reshape((x.shape[0] * x.shape[1],)).reshape(x.shape),
        lambda x: x.reshape((1, x.shape[0], 1, x.shape[1])).dimshuffle(1, 3),
        lambda x: T.zeros(x.shape) + x,
        lambda x: T.concatenate([x, T.zeros((0, x.shape[1]))]),
        lambda x: T.split(x, [x.shape[0]], 1),
        lambda x: T.addbroadcast(T.unbroadcast(x.dimshuffle("x", 0, 1), 0), 0).dimshuffle(1, 2),
        lambda x: T.alloc(x, x.shape[0], x.shape[1]),
    ],
)
def test_what_changes_nothing_goes(build):
    x = T.dmatrix("x")
    f = compiled([x], build(x))
    assert counts(f) == {DeepCopyOp: 1}
    value = np.arange(6.0).reshape(2, 3)
    np.testing.assert_array_equal(f(value), value)


def test_the_gradient_through_a_reshape_is_not_reshaped_twice():
    x = T.dmatrix("x")
    f = compiled([x], grad((x.reshape((x.shape[0] * x.shape[1],)) ** 2).sum(), x))
    assert not classes(f) & {Reshape, MakeVector, Shape_i}
    value = np.arange(6.0).reshape(2, 3)
    np.testing.assert_allclose(f(value), 2 * value)


def test_lengths_that_need_not_agree_are_checked():
    v, n = T.dvector("v"), T.lscalar("n")
    f = compiled([v, n], v + T.alloc(2.0, n))
    assert Assert in classes(f) and Alloc not in classes(f)
    np.testing.assert_array_equal(f([1.0, 2.0], 2), [3, 4])
    with pytest.raises(AssertionError, match="operands of different shapes"):
        f([1.0, 2.0], 3)


def test_a_value_that_an_allocation_repeats_is_not_taken_for_it():
    v = T.dvector("v")
    out = T.alloc(v, 3)
    for mode in (RUN, Mode("py", None)):
        f = compiled([v], [out, out * np.arange(3.0), out[1:], T.exp(out).sum()], mode)
        got = f([2.0])
        np.testing.assert_array_equal(got[0], [2, 2, 2])
        np.testing.assert_array_equal(got[1], [0, 2, 4])
        np.testing.assert_array_equal(got[2], [2, 2])
        np.testing.assert_allclose(got[3], 3 * np.exp(2))


def mlp(random):
    x, y = T.dmatrix("x"), T.ivector("y")
    sizes = [(5, 4), (4, 3)]
    weights = [shared(random.standard_normal(s), f"w{k}") for k, s in enumerate(sizes)]
    biases = [shared(np.zeros(s[1]), f"b{k}") for k, s in enumerate(sizes)]
    hidden = T.tanh(T.dot(x, weights[0]) + biases[0])
    scores = T.dot(hidden, weights[1]) + biases[1]
    shifted = T.exp(scores - scores.max(axis=1, keepdims=True))
    p = shifted / shifted.sum(axis=1, keepdims=True)
    return x, y, -T.mean(T.log(p)[T.arange(y.shape[0]), y]), weights + biases


def regression(random):
    x, y = T.dmatrix("x"), T.ivector("y")
    w, b = shared(random.standard_normal((5, 3)), "w"), shared(np.zeros(3), "b")
    p = T.nnet.sigmoid(T.dot(x, w) + b)
    return x, y, T.mean((p - y.dimshuffle(0, "x")) ** 2), [w, b]


@pytest.mark.parametrize("build", [regression, mlp])
def test_a_training_step_computes_no_shapes_but_the_lengths_that_it_divides_by(build):
    costs = []
    for mode in (RUN, Mode("py", None)):
        x, y, cost, params = build(np.random.default_rng(5))
        updates = [(p, p - 0.1 * g) for p, g in zip(params, grad(cost, params), strict=True)]
        f = compiled([x, y], cost, mode, updates=updates)
        random = np.random.default_rng(6)
        data = random.standard_normal((7, 5)), random.integers(0, 3, 7).astype("int32")
        costs.append([f(*data) for _ in range(3)])
        if mode is RUN:
            assert not classes(f) & {Shape, Subtensor, MakeVector, Assert, Rebroadcast, Reshape}
    np.testing.assert_allclose(*costs)


@pytest.mark.parametrize("mode", ["FAST_COMPILE", "FAST_RUN"])
def test_the_only_part_of_unknown_length_is_checked(mode):
    v, splits = T.dvector(), T.lvector()
    f = function([v, splits], T.split(v, splits, 1), mode=mode)
    assert f([1.0, 2.0], [2]).tolist() == [1, 2]
    splits_left = [n for n in f.maker.fgraph.toposort() if isinstance(n.op, Split)]
    assert not splits_left or mode == "FAST_COMPILE"
    for wrong in ([1], [1, 1], []):
        with pytest.raises((AssertionError, ValueError)):
            f([1.0, 2.0], wrong)
