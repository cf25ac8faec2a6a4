"""Rules on indexing: what each makes of what, what it leaves, and which errors it keeps."""

import itertools
import sys

import numpy as np
import pytest

import opwise.tensor as T
from opwise import Mode, function, shared
from opwise.compile import Shape_i, optdb
from opwise.gradient import grad
from opwise.optimizers.rules import subtensor as rules
from opwise.optimizers.rules.subtensor import _composed
from opwise.tensor import (
    AdvancedIncSubtensor1,
    Alloc,
    Elemwise,
    IncSubtensor,
    Rebroadcast,
    Subtensor,
    inc_subtensor,
    set_subtensor,
)
from opwise.tensor.join import make_vector
from opwise.tensor.sort import TopKOp

pytestmark = pytest.mark.null

n0, n1, n2 = map(Shape_i, range(3))
zeros = T.zeros_like

STAGES = {
    "pre_local_IncSubtensor_serialize": "local_IncSubtensor_serialize",
    "canonicalize": """
        local_IncSubtensor_serialize local_adv_sub1_adv_inc_sub1 local_incsubtensor_of_zeros
        local_scaled_increment local_subtracted_increment
        local_incsubtensor_of_zeros_to_setsubtensor local_rebroadcast_subtensor
        local_set_to_inc_subtensor
        local_setsubtensor_of_constants local_subtensor_inc_subtensor local_subtensor_lift
        local_subtensor_make_vector local_subtensor_merge local_subtensor_of_alloc
        local_subtensor_of_dot local_subtensor_remove_broadcastable_index
        local_useless_inc_subtensor local_useless_inc_subtensor_alloc local_useless_slice
        local_useless_subtensor
    """,
    "stabilize": """
        local_adv_sub1_adv_inc_sub1 local_incsubtensor_of_zeros local_setsubtensor_of_constants
        local_subtensor_of_dot local_useless_inc_subtensor_alloc
    """,
    "specialize": """
        local_scaled_increment local_subtracted_increment
        local_incsubtensor_of_its_dtype local_incsubtensor_of_zeros_to_setsubtensor
        local_rebroadcast_subtensor local_selection_of_sorted local_subtensor_inc_subtensor
        local_subtensor_make_vector local_subtensor_merge local_subtensor_of_alloc
        local_subtensor_of_dot local_subtensor_remove_broadcastable_index
        local_useless_inc_subtensor local_useless_inc_subtensor_alloc local_useless_slice
        local_useless_subtensor
    """,
    "uncanonicalize": "local_dimshuffle_subtensor",
}


def of(x, build):
    return build(x)


def and_itself(x, build):
    return build(x), x


#: rule, graph, and what the rule makes of it; None where the graph must stay as it is
CASES = [
    ("local_useless_slice", lambda x: x[0 : n0(x) : 1, 1], "Subtensor{::, int64}(x, 1)"),
    ("local_useless_slice", lambda x: x[1:, :], "Subtensor{int64::}(x, 1)"),
    ("local_useless_slice", lambda x: x[: sys.maxsize, 1:], "Subtensor{::, int64::}(x, 1)"),
    ("local_useless_slice", lambda r: r[0:5, 1:], "Subtensor{::, int64::}(r, 1)"),
    ("local_useless_slice", lambda r: r[-1:, 1:], "Rebroadcast{0}(Subtensor{::, int64::}(r, 1))"),
    ("local_useless_slice", lambda x: x[: n1(x), 1:], None),
    ("local_useless_slice", lambda x: x[::-1, 0:1], None),
    (
        "local_useless_slice",
        lambda x, v: inc_subtensor(x[0:2, 0 : n1(x)], v),
        "IncSubtensor{Inc;int64:int64:}(x, v, 0, 2)",
    ),
    ("local_useless_slice", lambda x, v: inc_subtensor(x[:, :], v), None),
    ("local_useless_subtensor", lambda x: x[:, 0:], "x"),
    ("local_useless_subtensor", lambda x: x[: n0(x)], "x"),
    ("local_useless_subtensor", lambda r: r[::-1], "r"),
    ("local_useless_subtensor", lambda x: x[T.arange(n0(x))], "x"),
    ("local_useless_subtensor", lambda r: r[np.array([0])], "r"),
    ("local_useless_subtensor", lambda x: x[: n1(x)], None),
    ("local_useless_subtensor", lambda x: x[::-1], None),
    ("local_useless_subtensor", lambda v, n: v[T.arange(n)], None),
    ("local_useless_subtensor", lambda v: v[np.arange(4)], None),
    ("local_subtensor_remove_broadcastable_index", lambda r: r[0], "DS{1}(r)"),
    ("local_subtensor_remove_broadcastable_index", lambda c: c[:, -1], "DS{0}(c)"),
    ("local_subtensor_remove_broadcastable_index", lambda c: c[1:, 0], None),
    ("local_subtensor_remove_broadcastable_index", lambda r, n: r[n - 2], None),
    ("local_subtensor_merge", lambda v: v[1:][0], "Subtensor{int64}(v, 1)"),
    (
        "local_subtensor_merge",
        lambda t, n: t[:, n][:, 1:],
        "Subtensor{::, int64, int64::}(t, ScalarFromTensor(n), 1)",
    ),
    ("local_subtensor_merge", lambda t, n, m: t[:, n:, 1:][:, m], None),
    (
        "local_subtensor_merge",
        lambda x: x[::-1][1:, ::2],
        "Subtensor{int64::int64, ::int64}(x, -2, -1, 2)",
    ),
    ("local_subtensor_merge", lambda v: v[1:-1][1:-1], "Subtensor{int64:int64:}(v, 2, -2)"),
    ("local_subtensor_merge", lambda v: v[1:][-1], None),
    ("local_subtensor_merge", lambda v, n: v[n:][n:], None),
    ("local_subtensor_merge", lambda r: r[::-1, 1:][0:, 1:], "Subtensor{::, int64::}(r, 2)"),
    ("local_subtensor_lift", lambda x: T.exp(x)[1:], "exp(Subtensor{int64::}(x, 1))"),
    (
        "local_subtensor_lift",
        lambda x, v: (x + v)[:, 1:],
        "add(Subtensor{::, int64::}(x, 1), Subtensor{::, int64::}(DS{x,0}(v), 1))",
    ),
    (
        "local_subtensor_lift",
        lambda v, n, r, s: (v * r[0] + s)[n],
        "add(mul(Subtensor{int64}(v, *1 -> ScalarFromTensor(n)), "
        "Subtensor{int64}(Subtensor{int64}(r, 0), *1)), s)",
    ),
    (
        "local_subtensor_lift",
        lambda x, s: (x * s)[:, 1],
        "mul(Subtensor{::, int64}(x, 1), DS{x}(s))",
    ),
    (
        "local_subtensor_lift",
        lambda c: T.unbroadcast(c, 1)[1:],
        "Rebroadcast{?,0}(Subtensor{int64::}(c, 1))",
    ),
    ("local_subtensor_lift", lambda v: Rebroadcast((0, True))(v[:1])[0], None),
    ("local_subtensor_lift", lambda x, y: (x * y)[::-1], None),
    ("local_subtensor_lift", lambda x: and_itself(T.exp(x), lambda e: e[1:]), None),
    ("local_subtensor_make_vector", lambda n, m: make_vector(n, m)[1], "m"),
    ("local_subtensor_make_vector", lambda n, m: make_vector(n, m, n)[::-2], "MakeVector(n, n)"),
    ("local_subtensor_make_vector", lambda n, m: make_vector(n, m)[5:], "[]"),
    (
        "local_subtensor_make_vector",
        lambda n, m: make_vector(n, m)[np.array([1, 1, -2])],
        "MakeVector(m, m, n)",
    ),
    (
        "local_subtensor_make_vector",
        lambda n, m: T.cast(make_vector(n, m), "float64")[0],
        "Cast{float64}(n)",
    ),
    (
        "local_subtensor_make_vector",
        lambda n, s: T.concatenate([T.stack([s]), make_vector(n)])[1],
        "Cast{float64}(n)",
    ),
    ("local_subtensor_make_vector", lambda n, m: make_vector(n, m)[m], None),
    (
        "local_subtensor_of_alloc",
        lambda s, n: T.alloc(s, n, 3)[1:, 0],
        "Alloc(s, maximum(add(n, -1), 0))",
    ),
    (
        "local_subtensor_of_alloc",
        lambda t, n, m: T.alloc(t, n, n0(t), n1(t), n2(t))[:, :, m],
        "Alloc(Subtensor{::, int64}(t, ScalarFromTensor(m)), n, Shape_i{0}(t), Shape_i{2}(t))",
    ),
    ("local_subtensor_of_alloc", lambda s: T.alloc(s, 4)[-4], "s"),
    ("local_subtensor_of_alloc", lambda s, n: T.alloc(s, n)[0], None),
    ("local_subtensor_of_alloc", lambda v: T.alloc(v, 4)[1:], None),
    ("local_subtensor_of_alloc", lambda s, n: and_itself(T.alloc(s, n), lambda a: a[1:]), None),
    (
        "local_subtensor_of_dot",
        lambda x, y: T.dot(x, y.T)[1:],
        "dot(Subtensor{int64::}(x, 1), DS{1,0}(y))",
    ),
    (
        "local_subtensor_of_dot",
        lambda v, x: T.dot(x.T, x)[0, 1:],
        "dot(Subtensor{int64}(DS{1,0}(x), 0), Subtensor{::, int64::}(x, 1))",
    ),
    ("local_subtensor_of_dot", lambda x, v: T.dot(x, v)[1:], "dot(Subtensor{int64::}(x, 1), v)"),
    (
        "local_subtensor_of_dot",
        lambda v, x: T.dot(v, x.T)[-2:],
        "dot(v, Subtensor{::, int64::}(DS{1,0}(x), -2))",
    ),
    ("local_subtensor_of_dot", lambda x, y: T.dot(x, y.T)[::-1], None),
    ("local_subtensor_of_dot", lambda x, y: and_itself(T.dot(x, y.T), lambda d: d[1:]), None),
    (
        "local_dimshuffle_subtensor",
        lambda c: c[1:].dimshuffle(0),
        "Subtensor{int64::, int64}(c, 1, 0)",
    ),
    (
        "local_dimshuffle_subtensor",
        lambda r: r[:, 1:].dimshuffle(1),
        "Subtensor{int64, int64::}(r, 0, 1)",
    ),
    (
        "local_rebroadcast_subtensor",
        lambda x: T.addbroadcast(x[1:, 2:3], 1),
        "DS{0,x}(Subtensor{int64::, int64}(x, 1, 2))",
    ),
    ("local_rebroadcast_subtensor", lambda v: T.addbroadcast(v[3:], 0), None),
    ("local_rebroadcast_subtensor", lambda v: T.addbroadcast(v[-1:], 0), None),
    ("local_rebroadcast_subtensor", lambda c: T.unbroadcast(c[1:], 1), None),
    ("local_dimshuffle_subtensor", lambda r: r[:, 1:].dimshuffle(1, "x"), None),
    ("local_dimshuffle_subtensor", lambda t: t[:, 1:].dimshuffle(1, 0, 2), None),
    (
        "local_subtensor_inc_subtensor",
        lambda x, y, n: set_subtensor(x[:], y)[:],
        "Alloc(y, Shape_i{0}(x), Shape_i{1}(x))",
    ),
    (
        "local_subtensor_inc_subtensor",
        lambda v, s, n: and_itself(set_subtensor(v[n], s), lambda b: b[n]),
        "s, IncSubtensor{Set;int64}(v, s, ScalarFromTensor(n))",
    ),
    (
        "local_subtensor_inc_subtensor",
        lambda v: set_subtensor(v[:3], np.arange(3))[0:3:1],
        "Alloc(Cast{float64}([0 1 2]), minimum(Shape_i{0}(v), 3))",
    ),
    (
        "local_subtensor_inc_subtensor",
        lambda r, s: set_subtensor(r[0, 1:], s)[0, 1:],
        "Alloc(s, maximum(add(Shape_i{1}(r), -1), 0))",
    ),
    ("local_subtensor_inc_subtensor", lambda v, s, n: set_subtensor(v[n], s)[n], "s"),
    ("local_subtensor_inc_subtensor", lambda v, s: inc_subtensor(v[1:], s)[1:], None),
    ("local_subtensor_inc_subtensor", lambda v, s: set_subtensor(v[1:], s)[2:], None),
    ("local_useless_inc_subtensor", lambda x, s: set_subtensor(x[:], T.exp(x)), "exp(x)"),
    (
        "local_useless_inc_subtensor",
        lambda x: set_subtensor(x[::-1], T.exp(x)),
        "Subtensor{::int64}(exp(x), -1)",
    ),
    (
        "local_useless_inc_subtensor",
        lambda x, v: set_subtensor(x[0 : n0(x), :], v),
        "Alloc(v, Shape_i{0}(x), Shape_i{1}(x))",
    ),
    ("local_useless_inc_subtensor", lambda x: inc_subtensor(zeros(x)[:, :], T.exp(x)), "exp(x)"),
    (
        "local_useless_inc_subtensor",
        lambda f, s: set_subtensor(f[:], s),
        "Alloc(Cast{float32}(s), Shape_i{0}(f), Shape_i{1}(f))",
    ),
    ("local_useless_inc_subtensor", lambda x, y: inc_subtensor(x[:], y), None),
    ("local_useless_inc_subtensor", lambda x, s: set_subtensor(x[1:], s), None),
    (
        "local_useless_inc_subtensor_alloc",
        lambda t: inc_subtensor(t[:, 1], T.alloc(2.0, n0(t), n2(t))),
        "IncSubtensor{Inc;::, int64}(t, 2.0, 1)",
    ),
    (
        "local_useless_inc_subtensor_alloc",
        lambda x, v, n: inc_subtensor(x[n:], T.alloc(v, 1, n1(x))),
        "IncSubtensor{Inc;int64::}(x, v, ScalarFromTensor(n))",
    ),
    (
        "local_useless_inc_subtensor_alloc",
        lambda x, i, s: inc_subtensor(x[i], T.alloc(s, n0(i), n1(x))),
        "AdvancedIncSubtensor1{no_inplace,inc}(x, s, i)",
    ),
    (
        "local_useless_inc_subtensor_alloc",
        lambda x, i, s: inc_subtensor(x[i, i], T.alloc(s, n0(i))),
        "AdvancedIncSubtensor{inplace=False,  set_instead_of_inc=False}(x, s, i, i)",
    ),
    (
        "local_useless_inc_subtensor_alloc",
        lambda x, s: set_subtensor(x[:, 1:], T.alloc(s, n0(x), 3)),
        None,
    ),
    ("local_useless_inc_subtensor_alloc", lambda x, v: inc_subtensor(x[1:], T.alloc(v, 4)), None),
    ("local_incsubtensor_of_zeros", lambda x: inc_subtensor(x[1:], 0.0), "x"),
    ("local_incsubtensor_of_zeros", lambda x, i: inc_subtensor(x[i], zeros(x)), "x"),
    ("local_incsubtensor_of_zeros", lambda x: set_subtensor(x[1:], 0.0), None),
    (
        "local_incsubtensor_of_zeros_to_setsubtensor",
        lambda x, v: inc_subtensor(zeros(x)[1:], v),
        None,
    ),
    (
        "local_incsubtensor_of_zeros_to_setsubtensor",
        lambda s: inc_subtensor(T.constant(np.zeros(4))[1], s),
        "IncSubtensor{Set;int64}(0.0, s, 1)",
    ),
    (
        "local_incsubtensor_of_zeros_to_setsubtensor",
        lambda x, i, v: inc_subtensor(zeros(x)[i], v),
        None,
    ),
    ("local_incsubtensor_of_zeros_to_setsubtensor", lambda x, v: inc_subtensor(x[1:], v), None),
    (
        "local_setsubtensor_of_constants",
        lambda n: set_subtensor(T.alloc(1.5, 3, n)[1:], 1.5),
        "Alloc(1.5, 3, n)",
    ),
    ("local_setsubtensor_of_constants", lambda n: set_subtensor(T.alloc(1.5, 3, n)[1:], 2), None),
    ("local_setsubtensor_of_constants", lambda n: inc_subtensor(T.alloc(1.5, 3, n)[1:], 1.5), None),
    (
        "local_set_to_inc_subtensor",
        lambda x, v: set_subtensor(x[1:], v + x[1:]),
        "IncSubtensor{Inc;int64::}(x, DS{x,0}(v), 1)",
    ),
    (
        "local_set_to_inc_subtensor",
        lambda v: of(T.arange(1, 3), lambda k: set_subtensor(v[k], v[k] + 2)),
        "AdvancedIncSubtensor1{no_inplace,inc}(v, DS{x}(2), ARange{dtype='int64'}(1, 3, 1))",
    ),
    ("local_set_to_inc_subtensor", lambda x, i: set_subtensor(x[i], x[i] + 2), None),
    ("local_set_to_inc_subtensor", lambda x, v: set_subtensor(x[1:], v + x[:-1]), None),
    (
        "local_set_to_inc_subtensor",
        lambda f, v: set_subtensor(f[1:], T.cast(f[1:] + v, "float32")),
        None,
    ),
    (
        "local_adv_sub1_adv_inc_sub1",
        lambda x, y: of(T.arange(n0(x)), lambda k: set_subtensor(x[k], y)[k]),
        "Assert(Alloc(y, *1 -> Shape_i{0}(x), Shape_i{1}(x)), "
        "All(ge(*2 -> ARange{dtype='int64'}(0, *1, 1), DS{x}(neg(*3 -> Shape_i{0}(x))))), "
        "All(lt(*2, DS{x}(*3))))",
    ),
    (
        "local_adv_sub1_adv_inc_sub1",
        lambda v: of(T.constant([2, 0]), lambda k: set_subtensor(v[k], [1.0, 2.0])[k]),
        "Assert([1. 2.], All(ge([2 0], DS{x}(neg(*1 -> Shape_i{0}(v))))), "
        "All(lt([2 0], DS{x}(*1))))",
    ),
    ("local_adv_sub1_adv_inc_sub1", lambda x, y, i: set_subtensor(x[i], y)[i], None),
    (
        "local_adv_sub1_adv_inc_sub1",
        lambda v: of(T.constant([2, -2]), lambda k: set_subtensor(v[k], [1.0, 2.0])[k]),
        None,
    ),
    (
        "local_IncSubtensor_serialize",
        lambda x, y, v: T.add(y, inc_subtensor(x[1:], v), inc_subtensor(y[:1], v)),
        "IncSubtensor{Inc;:int64:}(IncSubtensor{Inc;int64::}(add(y, x, y), v, 1), v, 1)",
    ),
    (
        "local_IncSubtensor_serialize",
        lambda x, v, i: T.add(inc_subtensor(zeros(x)[1:], v), inc_subtensor(zeros(x)[i], v)),
        "AdvancedIncSubtensor1{no_inplace,inc}("
        "IncSubtensor{Inc;int64::}(second(x, DS{x,x}(0.0)), v, 1), v, i)",
    ),
    ("local_IncSubtensor_serialize", lambda x, y, v: y + set_subtensor(x[1:], v), None),
    ("local_IncSubtensor_serialize", lambda f, y, v: y + inc_subtensor(f[1:], v), None),
    (
        "local_scaled_increment",
        lambda x, v, i, s: s * inc_subtensor(zeros(x)[i], v),
        "AdvancedIncSubtensor1{no_inplace,inc}(second(x, DS{x,x}(0.0)), mul(v, DS{x}(s)), i)",
    ),
    (
        "local_scaled_increment",
        lambda x, v, s: inc_subtensor(zeros(x)[1:], v) / s,
        "IncSubtensor{Inc;int64::}(second(x, DS{x,x}(0.0)), true_div(v, DS{x}(s)), 1)",
    ),
    (
        "local_scaled_increment",
        lambda x, v, z, i, s: s * inc_subtensor(inc_subtensor(zeros(x)[i], v)[1:], z),
        "IncSubtensor{Inc;int64::}(AdvancedIncSubtensor1{no_inplace,inc}(second(x, DS{x,x}(0.0)), "
        "mul(v, DS{x}(s)), i), mul(z, s), 1)",
    ),
    ("local_scaled_increment", lambda x, v, s: s / inc_subtensor(zeros(x)[1:], v), None),
    ("local_scaled_increment", lambda x, v, s: s * inc_subtensor(x[1:], v), None),
    ("local_scaled_increment", lambda x, y, v: y * inc_subtensor(zeros(x)[1:], v), None),
    ("local_scaled_increment", lambda x, v: 2 * set_subtensor(zeros(x)[1:], v), None),
    (
        "local_subtracted_increment",
        lambda x, y, i, v: y - inc_subtensor(zeros(x)[i], v),
        "AdvancedIncSubtensor1{no_inplace,inc}(y, neg(v), i)",
    ),
    (
        "local_subtracted_increment",
        lambda x, y, i, v, z: y - inc_subtensor(inc_subtensor(zeros(x)[i], v)[1:], z),
        "IncSubtensor{Inc;int64::}(AdvancedIncSubtensor1{no_inplace,inc}(y, neg(v), i), neg(z), 1)",
    ),
    ("local_subtracted_increment", lambda x, i, v: inc_subtensor(zeros(x)[i], v) - x, None),
    ("local_subtracted_increment", lambda x, s, v: s - inc_subtensor(zeros(x)[1:], v), None),
    ("local_subtracted_increment", lambda x, y, v: y - inc_subtensor(x[1:], v), None),
    (
        "local_incsubtensor_of_its_dtype",
        lambda x: inc_subtensor(x[1:], 2.5),
        "IncSubtensor{Inc;int64::}(x, Cast{float64}(2.5), 1)",
    ),
    ("local_incsubtensor_of_its_dtype", lambda x, v: inc_subtensor(x[1:], v), None),
    (
        "local_selection_of_sorted",
        lambda x: T.sort(x, 0)[-3:, 1],
        "Subtensor{::int64, int64}(TopKOp{axis=0, sorted=True, return_values=True, "
        "return_indices=False, idx_dtype='int64'}(x, minimum(3, Shape_i{0}(x))), -1, 1)",
    ),
    (
        "local_selection_of_sorted",
        lambda x: T.argsort(x)[:, :3],
        "TopKOp{axis=-1, sorted=True, return_values=False, return_indices=True, "
        "idx_dtype='int64'}(x, neg(minimum(3, Shape_i{1}(x))))",
    ),
    ("local_selection_of_sorted", lambda x: T.sort(x)[:, 1:3], None),
    ("local_selection_of_sorted", lambda x: T.sort(x)[:3], None),
]


@pytest.mark.parametrize(("rule", "build", "expected"), CASES, ids=[c[0] for c in CASES])
def test_what_each_rule_makes(rewritten_by, rule, build, expected):
    before, after = rewritten_by(getattr(rules, rule), build)
    assert after == (before if expected is None else expected)


def test_every_rule_has_cases_of_both_kinds(rules_of):
    ours = rules_of(rules)
    assert {rule for rule, _, expected in CASES if expected is not None} == ours
    assert {rule for rule, _, expected in CASES if expected is None} == ours


@pytest.mark.parametrize("stage", STAGES)
def test_rules_stand_in_the_stages_that_programs_know(rules_of, stage):
    stage_holds = getattr(optdb[stage], "db", optdb[stage])
    names = rules_of(rules).intersection(stage_holds.names())
    assert names == set(STAGES[stage].split())
    assert all("fast_run" in stage_holds.tags_of(name) for name in names)
    fast = {name for name in names if "fast_compile" in stage_holds.tags_of(name)}
    assert fast == ({"local_subtensor_lift"} if stage == "canonicalize" else set())


@pytest.mark.parametrize(
    ("rule", "tag"),
    [
        ("local_incsubtensor_of_zeros", "local_incsubtensor_of_allocs"),
        ("local_setsubtensor_of_constants", "local_setsubtensor_of_allocs"),
        ("local_subtensor_make_vector", "fast_compile_gpu"),
    ],
)
def test_rules_are_selected_by_their_other_names_too(rule, tag):
    assert tag in optdb["canonicalize"].tags_of(rule)


def test_an_update_by_the_gradient_of_rows_touches_those_rows():
    """Some are taken twice, some never: the table is updated where it is, without another one."""
    rng = np.random.RandomState(0)
    start = rng.randn(6, 3)
    table, rows, w = shared(start), T.lvector("rows"), T.dmatrix("w")
    cost = T.sum(w * T.tanh(table[rows]))
    gradient = grad(cost, table)
    f = function([rows, w], cost, updates=[(table, table - 0.1 * gradient)])
    changing = [n.op for n in f.linked.order if isinstance(n.op, AdvancedIncSubtensor1)]
    assert len(changing) == 1 and changing[0].inplace
    assert not any(isinstance(n.op, Alloc) for n in f.linked.order)
    taken, weights = np.array([4, 1, 4, -6]), rng.randn(4, 3)
    f(taken, weights)
    expected = start.copy()
    np.add.at(expected, taken, -0.1 * weights * (1 - np.tanh(start[taken]) ** 2))
    np.testing.assert_allclose(table.get_value(), expected, 1e-12)


# --- slices of slices ---------------------------------------------------------------------------

_BOUNDS = [None, -3, -1, 0, 1, 3]
_SLICES = [slice(*s) for s in itertools.product(_BOUNDS, _BOUNDS, [None, -2, -1, 1, 2])]


def picked(array, index):
    try:
        return array[index].tolist()
    except IndexError:
        return "IndexError"


@pytest.mark.parametrize("size", [None, 0, 1, 4])
def test_a_slice_of_a_slice_picks_what_both_pick_and_fails_where_they_fail(size):
    arrays = [np.arange(n) for n in (range(8) if size is None else [size])]
    found = 0
    for first in _SLICES:
        for then in [*_SLICES[::3], -3, -1, 0, 1, 3]:
            both = _composed(first, then, size)
            if both is None:
                continue
            found += 1
            for array in arrays:
                assert picked(array[first], then) == picked(array, both), (first, then, both)
    assert found > 1000


# --- with all other rules -----------------------------------------------------------------------

RUN, PLAIN = Mode("py", "fast_run"), Mode("py", None)


def applied(f):
    return [node.op for node in f.maker.fgraph.toposort()]


@pytest.mark.parametrize(
    ("build", "value"),
    [
        (lambda v: v[1:][0], [1.0]),
        (lambda v: v[1:][-1], [1.0]),
        (lambda v: v[:-1][-1], [1.0]),
        (lambda v: v[::-1][2], [1.0, 2.0]),
        (lambda v: v[:2][2], [1.0, 2.0, 3.0]),
        (lambda v: T.exp(v)[3], [1.0]),
        (lambda v: T.alloc(1.0, v.shape[0])[2], [1.0]),
        (lambda v: inc_subtensor(T.zeros_like(v)[3], 2.0), [1.0]),
        (lambda v: v.dimshuffle("x", 0)[1], [1.0]),
        (lambda v: v.shape[v.shape[0]], [1.0]),
        (lambda v: T.stack([v[0], v[1]])[2], [1.0, 2.0]),
        (lambda v: v[T.arange(3)], [1.0]),
    ],
)
def test_an_index_out_of_range_is_noticed_as_without_rules(build, value):
    v = T.dvector("v")
    for mode in (PLAIN, RUN):
        with pytest.raises(IndexError):
            function([v], build(v), mode=mode)(value)


def test_parts_that_gradients_add_to_are_added_in_turn_into_one_array():
    x = T.dmatrix("x")
    gradient = grad((x[0] * x[1] * x[2]).sum(), x)
    f = function([x], gradient, mode=RUN)
    ops = applied(f)
    assert sum(isinstance(op, Alloc) for op in ops) == 1
    changes = [op for op in ops if isinstance(op, IncSubtensor)]
    assert len(changes) == 3
    assert all(op.inplace for op in changes)
    value = np.random.default_rng(2).uniform(1, 2, (3, 4))
    np.testing.assert_allclose(f(value), value.prod(axis=0) / value)


def test_a_part_of_an_expression_computes_that_part_alone():
    x, w, b = T.dmatrix("x"), T.dmatrix("w"), T.dvector("b")
    f = function([x, w, b], T.tanh(T.dot(x, w) + b)[0, 1:], mode=RUN)
    for node in f.maker.fgraph.apply_nodes:
        if not node.op.view_map:
            assert node.outputs[0].type.ndim < 2
    x_, w_, b_ = np.ones((2, 3)), np.full((3, 4), 0.1), np.arange(4.0)
    np.testing.assert_allclose(f(x_, w_, b_), np.tanh(x_ @ w_ + b_)[0, 1:])


def test_the_rows_of_an_embedding_receive_their_gradients_from_a_number():
    e, i, g = T.dmatrix("e"), T.lvector("i"), T.dscalar("g")
    f = function([e, i, g], grad((e[i] * g).sum(), e), mode=RUN)
    [change] = [n for n in f.maker.fgraph.apply_nodes if isinstance(n.op, AdvancedIncSubtensor1)]
    assert all(change.inputs[1].type.broadcastable)
    np.testing.assert_array_equal(f(np.ones((3, 2)), [2, 0, 2], 1.5), [[1.5, 1.5], [0, 0], [3, 3]])


def test_fast_compile_lifts_parts_too():
    x = T.dmatrix("x")
    ops = applied(function([x], T.exp(x)[0], mode=Mode("py", "fast_compile")))
    assert isinstance(ops[0], Subtensor)
    assert isinstance(ops[1], Elemwise)


@pytest.mark.parametrize("what", [T.sort, T.argsort])
@pytest.mark.parametrize("axis", [0, 1, -1])
@pytest.mark.parametrize(
    "part",
    [np.s_[:5], np.s_[-5:], np.s_[:64], np.s_[-1:], np.s_[-1:-4:-1]],
    ids=str,
)
def test_few_of_the_sorted_elements_are_selected(what, axis, part):
    """With equal elements, NaN, and fewer elements than are asked for."""
    index = (slice(None), part) if axis else (part, slice(None, None, 2))
    x = T.matrix(dtype="float64")
    f = function([x], what(x, axis=axis)[index], mode=Mode("c|py", "fast_run"))
    assert any(isinstance(op, TopKOp) for op in applied(f))
    values = np.round(3 * np.random.default_rng(0).normal(size=(90, 70)))
    values[:, 3], values[5] = np.nan, 1
    exact = np.sort if what is T.sort else lambda x, axis: np.argsort(x, axis, kind="stable")
    for given in (values, values[:3, :4], values[:0], values[:, :0]):
        np.testing.assert_array_equal(f(given), exact(given, axis)[index])


def test_many_of_the_sorted_elements_are_sorted():
    x = T.matrix()
    for part in (np.s_[:65], np.s_[1:5], np.s_[:5:2], np.s_[:0], np.s_[2:]):
        f = function([x], T.sort(x)[:, part], mode=Mode("c|py", "fast_run"))
        assert not any(isinstance(op, TopKOp) for op in applied(f))
    both = function([x], [T.sort(x)[:, :5], T.sort(x)], mode=Mode("c|py", "fast_run"))
    assert not any(isinstance(op, TopKOp) for op in applied(both))
