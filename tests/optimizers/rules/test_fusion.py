"""Fusion: what becomes one loop, what stays apart, and that nothing is computed twice."""

import numpy as np
import pytest
from checking import operations

import opwise.scalar as scal
import opwise.tensor as T
from opwise import FunctionGraph, Mode, function
from opwise.graph.provenance import rewriting
from opwise.optimizers.rules.fusion import (
    MAX_INSTRUCTIONS,
    MAX_OPERANDS,
    MAX_STREAMS,
    AddMulFusion,
    FusionOptimizer,
    MapReduceOptimizer,
)
from opwise.scalar import Composite
from opwise.scalar.program import Instruction
from opwise.tensor import CAReduce, DimShuffle, Elemwise, Sum
from opwise.tensor.mapreduce import MapReduce
from opwise.tensor.reduce import ProdWithoutZeros

pytestmark = pytest.mark.null


def fused(inputs, outputs, *passes):
    """Return the graph after the passes alone (fusion unless told)."""
    outputs = outputs if isinstance(outputs, list) else [outputs]
    fgraph = FunctionGraph(list(inputs), outputs)
    with rewriting():
        for one in passes or (FusionOptimizer(),):
            one.optimize(fgraph)
    fgraph.check_integrity()
    return fgraph


def loops(fgraph):
    """Return the scalar operations of each elementwise loop of a graph, in order."""
    return [operations(n.op) for n in fgraph.toposort() if isinstance(n.op, Elemwise)]


def sizes(fgraph):
    """Return the numbers of scalar operations in elementwise loops, the smallest first."""
    return sorted(map(len, loops(fgraph)))


def same_values(fgraph, inputs, outputs, values):
    """Check that a graph still computes what was written."""
    outputs = outputs if isinstance(outputs, list) else [outputs]
    f = function(inputs, outputs, mode=Mode("py", None))
    g = function(fgraph.inputs, list(fgraph.outputs), mode=Mode("py", None))
    for a, b in zip(f(*values), g(*values), strict=True):
        assert a.dtype == b.dtype
        np.testing.assert_allclose(a, b, 1e-6)


BOTH = FusionOptimizer(), MapReduceOptimizer()


@pytest.fixture
def x():
    return T.dmatrix("x")


@pytest.fixture
def y():
    return T.dmatrix("y")


V = [np.random.RandomState(k).uniform(0.5, 2, (3, 4)) for k in range(3)]


def test_a_chain_is_one_loop(x, y):
    out = T.exp(-(x * y)) + x
    graph = fused([x, y], out)
    assert sizes(graph) == [4]
    same_values(graph, [x, y], out, V[:2])


def test_a_tree_is_one_loop(x, y):
    out = T.exp(x) * T.log(y) - T.tanh(x) / T.sqrt(y)
    graph = fused([x, y], out)
    assert len(loops(graph)) == 1
    same_values(graph, [x, y], out, V[:2])


def test_a_single_apply_stays_what_it_is(x, y):
    assert loops(fused([x, y], x + y)) == [[scal.Add]]


def test_equal_operands_are_one_operand(x):
    graph = fused([x], T.exp(x) * x + x)
    (node,) = graph.apply_nodes
    assert len(node.inputs) == 1


def test_a_part_with_two_readers_inside_is_computed_once(x):
    a = T.exp(x)
    out = a * (a + 1) - a
    graph = fused([x], out)
    (loop,) = loops(graph)
    assert loop.count(scal.Exp) == 1
    same_values(graph, [x], out, V[:1])


def test_a_part_that_others_read_is_an_output_of_the_loop(x, y):
    a = T.exp(x)
    outputs = [a * y + 1, T.sort(a)]
    graph = fused([x, y], outputs)
    (node,) = (n for n in graph.apply_nodes if isinstance(n.op, Elemwise))
    assert (sizes(graph), len(node.outputs)) == ([3], 2)
    same_values(graph, [x, y], outputs, V[:2])


def test_a_part_that_is_an_output_is_one_of_the_loop(x):
    a = T.exp(x)
    outputs = [T.tanh(a) * 2, a]
    graph = fused([x], outputs)
    (node,) = (n for n in graph.apply_nodes if isinstance(n.op, Elemwise))
    assert (sizes(graph), len(node.outputs)) == ([3], 2)
    same_values(graph, [x], outputs, V[:1])


def test_what_reads_one_part_joins_it(x, y):
    a = T.exp(x) + 1
    outputs = [T.tanh(a) * y, T.sqrt(a) - y, T.log(a + y) * x]
    graph = fused([x, y], outputs)
    (loop,) = loops(graph)
    assert loop.count(scal.Exp) == 1
    same_values(graph, [x, y], outputs, V[:2])


def test_readers_of_a_reader_join_too(x, y):
    a = T.exp(x)
    b = a * y
    outputs = [b, T.sqrt(b) + a, a - T.sin(b)]
    graph = fused([x, y], outputs)
    assert len(loops(graph)) == 1
    same_values(graph, [x, y], outputs, V[:2])


def test_a_reader_that_must_come_first_keeps_a_part_apart(x, y):
    """The sum of a is needed for the last loop: a cannot be computed in it."""
    a = T.exp(x) + y
    out = a / a.sum()
    graph = fused([x, y], out)
    assert sorted(loops(graph), key=len) == [[scal.TrueDiv], [scal.Exp, scal.Add]]
    same_values(graph, [x, y], out, V[:2])


def test_a_cheap_part_is_computed_in_each_loop(x):
    """x - m is read by a sum and, after it, by a quotient: nobody writes it down."""
    m = T.drow("m")
    a = x - m
    out = a / T.sqrt(T.sqr(a).sum(axis=0))
    graph = fused([x, m], out, *BOTH)
    (reduction,) = (n.op for n in graph.apply_nodes if isinstance(n.op, MapReduce))
    assert operations(reduction) == [scal.Sub, scal.Sqr, scal.Add]
    assert [scal.Sub, scal.TrueDiv] in loops(graph)
    same_values(graph, [x, m], out, [V[0], V[1][:1]])


def test_a_cheap_part_is_computed_in_each_reduction(x):
    a = x * 2
    outputs = [a.sum(), a.sum(axis=0)]
    graph = fused([x], outputs, *BOTH)
    assert not loops(graph)
    assert sum(isinstance(n.op, MapReduce) for n in graph.apply_nodes) == 2
    same_values(graph, [x], outputs, V[:1])


@pytest.mark.parametrize(
    "part", [lambda x, y: T.exp(x / y[0]), lambda x, y: x * y], ids=["long", "of two arrays"]
)
def test_other_parts_of_two_reductions_are_computed_once(x, y, part):
    a = part(x, y)
    outputs = [a.sum(), a.sum(axis=0)]
    graph = fused([x, y], outputs, *BOTH)
    assert len(loops(graph)) == 1
    assert not any(isinstance(n.op, MapReduce) for n in graph.apply_nodes)
    same_values(graph, [x, y], outputs, V[:2])


def test_a_part_that_is_handed_out_is_not_computed_again(x):
    a = x * 2
    outputs = [a, T.sort(a) + a]
    graph = fused([x], outputs)
    assert sizes(graph) == [1, 1] and [scal.Mul] in loops(graph)
    same_values(graph, [x], outputs, V[:1])


def test_a_loop_that_goes_into_a_reduction_has_no_other_output(x, y):
    a = T.exp(x)
    outputs = [(T.sqr(a) * y).sum(), a]
    graph = fused([x, y], outputs, *BOTH)
    assert loops(graph) == [[scal.Exp]]
    (reduction,) = (n.op for n in graph.apply_nodes if isinstance(n.op, MapReduce))
    assert operations(reduction) == [scal.Sqr, scal.Mul, scal.Add]
    same_values(graph, [x, y], outputs, V[:2])


def test_reductions_wait_for_loops_that_do_not_need_them(x, y):
    """The cost reads the error, and so does its gradient, which does not read the cost."""
    a = T.tanh(x)
    error = a - y
    outputs = [T.sqr(error).sum(), error * 2 * (1 - T.sqr(a))]
    graph = fused([x, y], outputs, *BOTH)
    assert len(loops(graph)) == 1
    same_values(graph, [x, y], outputs, V[:2])


def test_loops_with_several_outputs_have_few_operands():
    xs = [T.dmatrix() for _ in range(40)]
    outputs, total = [], xs[0]
    for x in xs[1:]:
        total = T.tanh(total * x)
        outputs.append(total)
    graph = fused(xs, outputs)
    nodes = [n for n in graph.apply_nodes if isinstance(n.op, Elemwise)]
    assert max(len(n.inputs) + len(n.outputs) for n in nodes) == MAX_STREAMS
    assert len(nodes) <= 39 // (MAX_STREAMS // 2 - 1) + 1
    same_values(graph, xs, outputs, [V[k % 3] for k in range(40)])


def test_a_cycle_is_not_made(x):
    """b reads a through something that cannot be fused: a must not be taken in by what reads b."""
    a = T.exp(x)
    b = T.sort(a, axis=0)
    out = a + b * 2
    graph = fused([x], out)
    assert sizes(graph) == [1, 2] and [scal.Exp] in loops(graph)
    same_values(graph, [x], out, V[:1])


def test_nothing_is_computed_more_often_than_written(x):
    """A vector that is added to a matrix is computed once a column, not once an element."""
    v = T.dvector("v")
    out = T.exp(v) + x * 2
    graph = fused([x, v], out)
    assert sizes(graph) == [1, 2] and [scal.Exp] in loops(graph)
    same_values(graph, [x, v], out, [V[0], V[0][0]])


def test_broadcast_operands_join_as_they_are(x):
    row, col = T.drow("row"), T.dcol("col")
    out = (x + row) * col - 1
    graph = fused([x, row, col], out)
    assert len(loops(graph)) == 1
    same_values(graph, [x, row, col], out, [V[0], V[1][:1], V[2][:, :1]])


def test_views_in_between_keep_loops_apart(x):
    out = T.exp(x).T + 1
    graph = fused([x], out)
    orders = {n.op.new_order for n in graph.apply_nodes if isinstance(n.op, DimShuffle)}
    assert (1, 0) in orders
    assert sizes(graph) == [1, 1]


def test_dtypes_may_change_inside(x):
    i = T.imatrix("i")
    out = T.cast(x * 2, "float32") + T.switch(T.gt(x, i), i, 3)
    graph = fused([x, i], out)
    assert len(loops(graph)) == 1
    same_values(graph, [x, i], out, [V[0], np.ones((3, 4), "int32")])


def test_an_operation_without_c_stays_apart():
    z = T.zmatrix("z")
    out = T.exp2(z) * z + 1
    graph = fused([z], out)
    assert sizes(graph) == [1, 2] and [scal.Exp2] in loops(graph)


def test_a_composite_takes_in_more(x, y):
    first = fused([x, y], T.exp(x * y))
    inner = next(n.op for n in first.apply_nodes if isinstance(n.op, Elemwise))
    out = T.tanh(inner(x, y)) + 1
    graph = fused([x, y], out)
    assert sizes(graph) == [4]
    same_values(graph, [x, y], out, V[:2])


@pytest.mark.parametrize("n", [5, 31, 32, 60, 100])
def test_operands_are_limited(n):
    xs = [T.dvector(f"x{k}") for k in range(n)]
    out = xs[0]
    for one in xs[1:]:
        out = out + T.exp(one)
    graph = fused(xs, out, AddMulFusion(), FusionOptimizer())
    for node in graph.apply_nodes:
        assert len(node.inputs) + len(node.outputs) <= MAX_OPERANDS + 1
    assert len(graph.apply_nodes) <= n // (MAX_OPERANDS - 3) + 1
    same_values(graph, xs, out, [np.full(3, 0.1 * k) for k in range(n)])
    f = function(xs, out, mode=Mode("c|py", "fast_run").excluding("inplace"))
    assert all(f.linked.in_c)


def test_instructions_are_limited(x):
    out = x
    for _ in range(3 * MAX_INSTRUCTIONS):
        out = T.tanh(out)
    graph = fused([x], out)
    sizes = [len(n.op.scalar_op.instructions) for n in graph.apply_nodes]
    assert max(sizes) <= MAX_INSTRUCTIONS and sum(sizes) == 3 * MAX_INSTRUCTIONS and len(sizes) <= 4
    same_values(graph, [x], out, V[:1])


def test_a_deep_graph(x):
    out = x
    for _ in range(5000):
        out = T.sin(out)
    graph = fused([x], out)
    assert sum(len(n.op.scalar_op.instructions) for n in graph.apply_nodes) == 5000


def test_in_place_applys_stay_apart(x, y):
    a = Elemwise(T.exp.scalar_op, {0: 0})(x * y)
    graph = FunctionGraph([x, y], [a + 1])
    with rewriting():
        FusionOptimizer().optimize(graph)
    assert any(n.op.destroy_map for n in graph.apply_nodes)


def test_applys_know_all_lines_they_came_from(x, y):
    a = x * y
    b = T.exp(a)
    graph = FunctionGraph([x, y], [b + 1], clone=False)
    with rewriting():
        FusionOptimizer().optimize(graph)
    (node,) = (n for n in graph.apply_nodes if isinstance(n.op, Elemwise))
    assert {a.owner, b.owner} <= set(node.origins)


# --- flat sums and products ---------------------------------------------------------------------


def flat(inputs, out):
    return fused(inputs, out, AddMulFusion())


def test_sums_become_flat():
    xs = T.dvectors(*"abcde")
    a, b, c, d, e = xs
    graph = flat(xs, (a + b) + (c + (d + e)))
    (node,) = graph.apply_nodes
    assert [v.name for v in node.inputs] == list("abcde")


def test_products_become_flat():
    xs = T.dvectors(*"abc")
    graph = flat(xs, xs[0] * (xs[1] * xs[2]))
    assert [len(n.inputs) for n in graph.apply_nodes] == [3]


def test_only_terms_of_the_same_type_join():
    x, v, f = T.dmatrix("x"), T.dvector("v"), T.fmatrix("f")
    assert len(flat([x, v], x + (v + v)).apply_nodes) == 3
    assert len(flat([x, f], x + (f + f)).apply_nodes) == 2


def test_a_sum_that_others_read_stays_apart():
    a, b, c = T.dvectors("abc")
    s = a + b
    assert len(flat([a, b, c], [s + c, T.sort(s)]).apply_nodes) == 3


@pytest.mark.parametrize("n", [31, 32, 33, 61, 62, 100])
@pytest.mark.parametrize("op", [T.add, T.mul])
def test_what_has_too_many_terms_for_a_loop_becomes_several(op, n):
    xs = [T.dvector() for _ in range(n)]
    graph = flat(xs, op(*xs))
    assert max(len(one.inputs) for one in graph.apply_nodes) < MAX_OPERANDS
    assert sum(len(one.inputs) - 1 for one in graph.apply_nodes) == n - 1
    values = list(np.random.default_rng(0).uniform(0.5, 1.5, (n, 3)))
    same_values(graph, xs, op(*xs), values)


def test_a_long_sum_stays_within_limits():
    xs = [T.dvector() for _ in range(200)]
    out = xs[0]
    for one in xs[1:]:
        out = out + one
    graph = flat(xs, out)
    assert max(len(n.inputs) for n in graph.apply_nodes) < MAX_OPERANDS
    assert sum(len(n.inputs) - 1 for n in graph.apply_nodes) == 199


# --- reductions ---------------------------------------------------------------------------------


def reduced(inputs, outputs):
    """Return (the Ops in order, the graph) after Applys were fused, and reductions."""
    graph = fused(inputs, outputs, *BOTH)
    return [n.op for n in graph.toposort() if not isinstance(n.op, DimShuffle)], graph


@pytest.mark.parametrize("axis", [None, 0, (1,), (0, 1)])
@pytest.mark.parametrize("reduce", [T.sum, T.prod, T.max, T.min, T.any, T.all, T.mean])
def test_a_reduction_takes_in_what_it_alone_reads(x, y, reduce, axis):
    def out(condition):
        return reduce(T.gt(x * y, y) if condition else T.exp(x) * y - x, axis=axis)

    f = function([x, y], out(reduce in (T.any, T.all)), mode=Mode("py", "fast_run"))
    assert [type(n.op) for n in f.linked.order].count(MapReduce) == 1
    assert not [n for n in f.linked.order if isinstance(n.op, Elemwise) and x in n.inputs]
    assert not [n for n in f.linked.order if isinstance(n.op, CAReduce)]
    g = function([x, y], out(reduce in (T.any, T.all)), mode=Mode("py", None))
    np.testing.assert_allclose(f(*V[:2]), g(*V[:2]), 1e-12)


def test_a_fused_reduction_reads_the_operands(x, y):
    (op,), graph = reduced([x, y], T.sum(T.exp(x) * y, axis=0))
    assert isinstance(op, MapReduce) and operations(op) == [scal.Exp, scal.Mul, scal.Add]
    assert list(graph.outputs[0].owner.inputs) == graph.inputs
    same_values(graph, [x, y], T.sum(T.exp(x) * y, axis=0), V[:2])


@pytest.mark.parametrize("dtype", ["int8", "uint32", "float32", "bool"])
def test_reductions_of_other_dtypes(dtype):
    a, b = T.TensorType(dtype, (False,))("a"), T.TensorType(dtype, (False,))("b")
    outputs = [T.sum(a * b), T.sum(T.neq(a, b)), CAReduce(T.maximum.scalar_op)(a * b)]
    ops, graph = reduced([a, b], outputs)
    assert [type(op) for op in ops] == [MapReduce] * 3
    values = [np.array([1, 0, 1], dtype), np.array([1, 1, 0], dtype)]
    same_values(graph, [a, b], outputs, values)


def test_a_result_that_is_broadcast_and_reduced(x):
    """The number of times that something is computed stays the same."""
    v = T.dvector("v")
    ops, graph = reduced([x, v], T.sum(T.exp(v) + x, axis=0))
    assert [type(op) for op in ops] == [Elemwise, MapReduce]
    assert list(map(operations, ops)) == [[scal.Exp], [scal.Add, scal.Add]]
    same_values(graph, [x, v], T.sum(T.exp(v) + x, axis=0), [V[0], V[1][0]])


def _two_readers(x, y):
    a = T.exp(x)
    return [T.sum(a), a * y]


def _two_reductions(x, y):
    a = T.exp(x)
    return [T.sum(a, axis=0), T.sum(a, axis=1)]


def _an_output(x, y):
    a = T.exp(x)
    return [a, T.sum(a)]


def _in_place(x, y):
    return [T.sum(Elemwise(T.exp.scalar_op, {0: 0})(x * y))]


def _without_c(x, y):
    return [T.sum(T.gammal(1, x))]


def _several_results(x, y):
    step = Instruction(T.exp.scalar_op, (0,), "float64")
    both = Composite.from_program(["float64"], [step], [1, 0])
    return [T.sum(Elemwise(both)(x)[0])]


@pytest.mark.parametrize(
    "build",
    [
        _two_readers, _two_reductions, _an_output, _in_place, _without_c, _several_results,
        lambda x, y: [T.sum(x), T.prod(y, axis=0)],
        lambda x, y: [Sum(axis=())(x * y)],
        lambda x, y: [T.sum(T.sort(x * y))],
        lambda x, y: [T.sum((x * y).T)],
        lambda x, y: [T.argmax(x * y)],
        lambda x, y: [ProdWithoutZeros()(x * y)],
        lambda x, y: [CAReduce(T.sub.scalar_op)(x * y)],
    ],
)  # fmt: skip
def test_what_reductions_leave_alone(x, y, build):
    ops, _ = reduced([x, y], build(x, y))
    assert not any(isinstance(op, MapReduce) for op in ops)


def test_more_dimensions_than_loops_walk_over():
    a = T.TensorType("float64", (False,) * 9)("a")
    ops, _ = reduced([a], T.sum(a * a))
    assert not any(isinstance(op, MapReduce) for op in ops)


def test_reductions_know_all_lines_they_came_from(x, y):
    a = x * y
    total = T.sum(a)
    graph = FunctionGraph([x, y], [total], clone=False)
    with rewriting():
        MapReduceOptimizer().optimize(graph)
    assert {a.owner, total.owner} <= set(graph.outputs[0].owner.origins)


# --- by the modes -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("mode", "count"),
    [
        (Mode("py", "fast_run"), 1),
        (Mode("py", "fast_run").excluding("fusion"), 3),
        (Mode("py", "fast_compile"), 3),
        (Mode("py", "fast_compile").including("fusion"), 1),
        (Mode("py", "o2"), 1),
        (Mode("py", None), 3),
    ],
)
def test_which_modes_fuse(x, y, mode, count):
    f = function([x, y], T.exp(x * y) + x, mode=mode)
    assert len([n for n in f.linked.order if isinstance(n.op, Elemwise)]) == count


@pytest.mark.parametrize(
    ("mode", "count"),
    [
        (Mode("py", "fast_run"), 1),
        (Mode("py", "fast_run").excluding("fusion"), 0),
        (Mode("py", "fast_run").excluding("map_reduce_fusion"), 0),
        (Mode("py", "fast_compile"), 0),
        (Mode("py", None), 0),
    ],
)
def test_which_modes_fuse_reductions(x, mode, count):
    f = function([x], T.exp(x).sum(), mode=mode)
    assert len([n for n in f.linked.order if isinstance(n.op, MapReduce)]) == count


def test_the_flag_turns_it_off(x, y, flags):
    flags({"tensor.local_elemwise_fusion": False})
    f = function([x, y], T.sum(T.exp(x * y) + x), mode=Mode("py", "fast_run"))
    assert not [n for n in f.linked.order if isinstance(n.op, Elemwise)
                and isinstance(n.op.scalar_op, Composite)]  # fmt: skip
    assert not [n for n in f.linked.order if isinstance(n.op, MapReduce)]
