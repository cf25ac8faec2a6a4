"""MapReduce: one Op against the elementwise operation and the reduction that it stands for."""

import pickle

import numpy as np
import pytest

from opwise.scalar import Composite
from opwise.scalar.op import OPS
from opwise.scalar.program import Instruction
from opwise.tensor import CAReduce, Elemwise, Prod, Sum
from opwise.tensor.mapreduce import MapReduce
from opwise.tensor.reduce import All, Any
from opwise.tensor.type import tensor_type

pytestmark = pytest.mark.null


def tensor(dtype="float64", pattern=(False, False), name=None):
    return tensor_type(dtype, pattern)(name)


#: squares of differences
DISTANCE = Composite.from_program(
    ["float64", "float64"],
    [Instruction(OPS["sub"], (0, 1), "float64"), Instruction(OPS["sqr"], (2,), "float64")],
    [3],
)
MATRIX = np.array([[1.5, -2.0, 0.25], [4.0, 0.5, 4.0]])
CUBE = np.arange(24.0).reshape(2, 3, 4) % 7 - 3


@pytest.mark.parametrize(
    ("op", "text"),
    [
        (MapReduce(OPS["mul"], Sum()), "MapReduce{Sum{acc_dtype=None}, mul}"),
        (MapReduce(OPS["exp"], CAReduce(OPS["maximum"], 1)),
         "MapReduce{Reduce{maximum}{1}, exp}"),
        (MapReduce(DISTANCE, Sum(axis=0, acc_dtype="float64")),
         "MapReduce{Sum{axis=[0], acc_dtype=float64}, Composite{sqr((i0 - i1))}}"),
        (MapReduce(OPS["lt"], All((0, 1))), "MapReduce{All{0, 1}, LT}"),
    ],
)  # fmt: skip
def test_the_text_of_an_op(op, text):
    assert str(op) == text


def test_ops_are_equal_by_what_they_compute():
    assert MapReduce(OPS["mul"], Sum(axis=[1])) == MapReduce(OPS["mul"], Sum(axis=(1,)))
    assert hash(MapReduce(OPS["mul"], Sum(1))) == hash(MapReduce(OPS["mul"], Sum(1)))
    assert MapReduce(OPS["mul"], Sum(1)) != MapReduce(OPS["mul"], Sum(0))
    assert MapReduce(OPS["mul"], Sum(1)) != MapReduce(OPS["add"], Sum(1))
    op = MapReduce(DISTANCE, Sum(0))
    assert pickle.loads(pickle.dumps(op)) == op


@pytest.mark.parametrize("axis", [None, 0, 1, 2, (0, 2), (0, 1, 2)])
@pytest.mark.parametrize(
    ("scalar_op", "reduction"),
    [("mul", Sum), ("add", Prod), ("maximum", lambda axis: CAReduce(OPS["minimum"], axis)),
     ("sub", lambda axis: CAReduce(OPS["maximum"], axis)), ("lt", All), ("neq", Any), ("gt", Sum)],
)  # fmt: skip
def test_values_and_shapes_are_those_of_the_two_ops(run, scalar_op, reduction, axis):
    x, y = tensor(pattern=(False,) * 3), tensor(pattern=(False,) * 3)
    values = {x: CUBE, y: CUBE[::-1] + 1}
    one = MapReduce(OPS[scalar_op], reduction(axis))(x, y)
    two = reduction(axis)(Elemwise(OPS[scalar_op])(x, y))
    assert one.type == two.type
    found, expected = run([one, two], values)
    np.testing.assert_array_equal(found, expected)


def test_inputs_broadcast(run):
    x, row, col = tensor(), tensor(pattern=(True, False)), tensor(pattern=(False, True))
    values = {x: MATRIX, row: [[1.0, 2.0, 3.0]], col: [[10.0], [20.0]]}
    found = run(MapReduce(OPS["add"], Sum(1))(x, row, col), values)
    np.testing.assert_array_equal(found, (MATRIX + values[row] + values[col]).sum(1))
    outer = MapReduce(OPS["mul"], Sum(0))(row, col)
    np.testing.assert_array_equal(run(outer, values), [30.0, 60.0, 90.0])
    v = tensor(pattern=(False,))
    out = MapReduce(OPS["mul"], Sum(1))(x, v)
    assert out.owner.inputs[1].type.broadcastable == (True, False), "as Elemwise adds dimensions"
    np.testing.assert_array_equal(run(out, {x: MATRIX, v: [1.0, 2.0, 3.0]}), [-1.75, 17.0])
    kept = MapReduce(OPS["mul"], Sum(1))(row, row)
    assert kept.type.broadcastable == (True,)


@pytest.mark.parametrize(
    ("dtypes", "reduction", "out", "acc"),
    [
        (("int8", "int8"), Sum(), "int64", "int64"),
        (("uint8", "uint8"), Sum(), "uint64", "uint64"),
        (("bool", "int8"), Prod(), "int64", "int64"),
        (("float32", "float32"), Sum(), "float32", "float64"),
        (("float32", "float32"), Sum(acc_dtype="float32"), "float32", "float32"),
        (("float32", "int8"), Sum(dtype="float64"), "float64", "float64"),
        (("float32", "float64"), Sum(), "float64", "float64"),
        (("int8", "int8"), CAReduce(OPS["maximum"]), "int8", None),
    ],
)
def test_dtypes_are_those_of_the_two_ops(run, dtypes, reduction, out, acc):
    inputs = [tensor(dtype) for dtype in dtypes]
    made = MapReduce(OPS["mul"], reduction)(*inputs)
    assert made.type.dtype == out
    mapped, (reduced,) = made.owner.op.parts(made.owner)
    assert getattr(reduced.op, "acc_dtype", None) == acc
    assert mapped.outputs[0].type.dtype == np.result_type(*dtypes)
    values = {x: np.array([[100, 1, 0], [1, 100, 1]], x.type.dtype) for x in inputs}
    found, expected = run([made, reduction(Elemwise(OPS["mul"])(*inputs))], values)
    np.testing.assert_array_equal(found, expected)


def test_a_sum_of_single_precision_is_accumulated_in_double(run):
    x = tensor("float32", (False,))
    total = MapReduce(OPS["neg"], Sum())(x)
    assert run(total, {x: np.array([1e8, 1, -1e8], "float32")}) == -1


def test_nothing_to_reduce(run):
    x = tensor()
    nothing = {x: np.zeros((0, 3))}
    assert run(MapReduce(OPS["exp"], Sum())(x), nothing) == 0
    np.testing.assert_array_equal(run(MapReduce(OPS["exp"], Prod(0))(x), nothing), [1, 1, 1])
    with pytest.raises(ValueError, match=r"CAReduce\{maximum\} has zero-size on axis 0"):
        run(MapReduce(OPS["exp"], CAReduce(OPS["maximum"]))(x), nothing)


@pytest.mark.parametrize("axis", [None, 0, (0, 1)])
@pytest.mark.parametrize(
    "reduction",
    [Sum, Prod, lambda axis: CAReduce(OPS["maximum"], axis)],
    ids=["sum", "prod", "max"],
)
def test_gradient(check_gradient, reduction, axis):
    check_gradient(MapReduce(DISTANCE, reduction(axis)), MATRIX, CUBE[0, :2, :3])
    check_gradient(
        MapReduce(OPS["mul"], reduction(axis)), MATRIX, [[1.5, 2.0, -3.0]],
        patterns=[(False, False), (True, False)],
    )  # fmt: skip


def test_the_parts_hold_on_to_no_graph():
    x = tensor()
    node = MapReduce(OPS["mul"], Sum())(x.T, x).owner
    mapped, (reduced,) = node.op.parts(node)
    assert all(v.owner is None and v is not x for v in mapped.inputs)
    assert reduced.inputs == mapped.outputs
    assert node.op.parts(node) == (mapped, [reduced]), "made once"
    other = node.clone_with_new_inputs([tensor("float32"), tensor("float32")], strict=False)
    assert other.op.parts(other)[0].outputs[0].type.dtype == "float32"


def test_several_reductions_share_the_elementwise_work(run, check_gradient):
    op = Composite.from_program(["float64", "float64"], DISTANCE.instructions, [3, 2, 0])
    both = MapReduce(op, Sum(0), Sum(0, dtype="float32"), Sum(0))
    x, y = tensor(name="x"), tensor(name="y")
    outputs = both(x, y, return_list=True)
    assert [out.type.dtype for out in outputs] == ["float64", "float32", "float64"]
    d = MATRIX - CUBE[0, :2, :3]
    results = run(outputs, {x: MATRIX, y: CUBE[0, :2, :3]})
    for result, terms in zip(results, (d * d, d, MATRIX), strict=True):
        np.testing.assert_allclose(result, terms.sum(0), rtol=1e-6)
    assert both.flops([(2, 3), (2, 3)], [(3,)] * 3) == 2 * 6 + 3 * 3
    check_gradient(lambda *v: MapReduce(op, Sum(0), Sum(0), Sum(0))(*v)[0], MATRIX, CUBE[0, :2, :3])
    check_gradient(lambda *v: MapReduce(op, Sum(0), Sum(0), Sum(0))(*v)[2], MATRIX, CUBE[0, :2, :3])
