"""What fusion leaves apart: each reason is the true one."""

import pytest

import opwise.tensor as T
from opwise import FunctionGraph
from opwise.graph.provenance import rewriting
from opwise.optimizers.rules.fusion import (
    MAX_INSTRUCTIONS,
    MAX_OPERANDS,
    AddMulFusion,
    FusionOptimizer,
)
from opwise.optimizers.unfused import explain_fusion, named
from opwise.tensor import Elemwise

pytestmark = pytest.mark.null


@pytest.fixture
def x():
    return T.dmatrix("x")


@pytest.fixture
def y():
    return T.dmatrix("y")


def ops(fgraph):
    """Return the elementwise Ops of a graph , in order."""
    return [n.op.scalar_op for n in fgraph.toposort() if isinstance(n.op, Elemwise)]


def reasons(inputs, outputs):
    """Return ['read | reader | why'] of what fusion leaves apart."""
    outputs = outputs if isinstance(outputs, list) else [outputs]
    fgraph = FunctionGraph(list(inputs), outputs)
    with rewriting():
        found = explain_fusion(fgraph)
    fgraph.check_integrity()
    assert all(a in fgraph.apply_nodes and b in fgraph.apply_nodes for a, b, _ in found)
    return [f"{named(b.op)} | {named(a.op)} | {why}" for a, b, why in found]


def test_fused_applys_have_no_reason(x, y):
    assert reasons([x, y], [T.exp(x * y) + x, (T.tanh(y) * x).sum()]) == []


def test_it_fuses_as_the_passes_do(x, y):
    e = T.exp(x)
    outputs = [e / e.sum(), T.tanh(e * y) + y]
    graph = FunctionGraph([x, y], outputs)
    with rewriting():
        assert explain_fusion(graph)
    passes = FunctionGraph([x, y], outputs)
    with rewriting():
        for one in (AddMulFusion(), FusionOptimizer()):
            one.optimize(passes)
    assert ops(graph) == ops(passes)


def test_an_apply_that_comes_between_is_named(x):
    e = T.exp(x)
    assert reasons([x], e / e.sum()) == [
        "exp | true_div | Sum{acc_dtype=float64} must run between the two: it reads the "
        "first and computes an operand of the second",
        "exp | Sum{acc_dtype=float64} | true_div reads it too, so it must be stored",
    ]


def test_a_reduction_gives_nothing_else(x, y):
    e = T.exp(x)
    why = "a loop that ends in a reduction stores nothing else, and it is a result of the function"
    assert reasons([x, y], [(e * y).sum(), e]) == [f"exp | mul | {why}"]
    (text,) = reasons([x, y], [(e * y).sum(), T.sort(e)])
    assert text.endswith("and SortOp{quicksort, None} reads it too")
    assert reasons([x], [e.sum(), e]) == [
        "exp | Sum{acc_dtype=float64} | it is a result of the function, so it must be stored"
    ]


def test_a_broadcast_operand_is_computed_once(x):
    row = T.drow("row")
    (text,) = reasons([x, row], T.exp(row) + T.tanh(x))
    assert text.startswith("exp | Composite{") and "its result is broadcast" in text


def test_what_has_no_c_is_named_with_its_dtype(x):
    z = T.zmatrix("z")
    assert reasons([z], T.exp2(z) * z) == ["exp2 | mul | it has no C implementation for complex128"]
    half = T.TensorType("float16", (False, False))("half")
    assert reasons([half], T.gammal(half, half) * half) == [
        "gammal | mul | it has no C implementation for float16",
    ]


def test_the_limits_are_reasons(x):
    many = [T.dmatrix(f"m{k}") for k in range(MAX_OPERANDS + 5)]
    value = many[0]
    for other in many[1:]:
        value = T.exp(value) - other
    (text,) = reasons(many, value)
    assert text.endswith(f"operands and results, and {MAX_OPERANDS} are the limit")
    value = x
    for _ in range(MAX_INSTRUCTIONS + 1):
        value = T.tanh(value)
    (text,) = reasons([x], value)
    assert text.endswith(f"a loop has at most {MAX_INSTRUCTIONS} operations")
