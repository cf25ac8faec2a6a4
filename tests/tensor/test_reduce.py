"""Reductions: dtypes, axes, texts, values against numpy, gradients."""

import numpy as np
import pytest

import opwise.tensor as T
from opwise.config import change_flags
from opwise.errors import MethodNotDefined
from opwise.gradient import disconnected_type, grad
from opwise.graph.null import is_disconnected, is_null
from opwise.scalar import BinaryScalarOp
from opwise.scalar.op import OPS
from opwise.tensor import (
    Argmax,
    CAReduce,
    MaxAndArgmax,
    Prod,
    Sum,
    argmax,
    argmin,
    cast,
    constant,
    makeKeepDims,
    max_and_argmax,
    mean,
    prod,
    ptp,
    std,
    var,
)
from opwise.tensor.reduce import All, Any, CAReduceDtype, ProdWithoutZeros
from opwise.tensor.type import tensor_type

FUNCTIONS = {
    name: getattr(T, name) for name in "sum prod mean var std max min argmax argmin any all".split()
}


def tensor(dtype, ndim, name="x"):
    return tensor_type(dtype, (False,) * ndim)(name)


x, v, s, t = (tensor("float64", n, name) for n, name in ((2, "x"), (1, "v"), (0, "s"), (3, "t")))
MATRIX = np.array([[1.5, -2.0, 0.25], [4.0, 0.5, 4.0]])
CUBE = np.arange(24.0).reshape(2, 3, 4) % 7


# ======================================================================================
# TEXTS AND EQUALITY
# ======================================================================================


@pytest.mark.parametrize(
    "op, text",
    [
        (CAReduce(OPS["add"]), "Reduce{add}"),
        (CAReduce(OPS["maximum"], 1), "Reduce{maximum}{1}"),
        (CAReduce(OPS["minimum"], [1, 0]), "Reduce{minimum}{0, 1}"),
        (CAReduce(OPS["or_"], 0), "Reduce{OR}{0}"),
        (CAReduceDtype(OPS["add"], 1, "float32", "float64"),
         "ReduceDtype{add}{axis=[1], acc_dtype=float64}"),
        (Sum(), "Sum{acc_dtype=None}"),
        (Sum(axis=1, acc_dtype="float64"), "Sum{axis=[1], acc_dtype=float64}"),
        (Sum(axis=(1, 0), dtype="int8", acc_dtype="int32"), "Sum{axis=[0, 1], acc_dtype=int32}"),
        (Prod(), "Prod{axis=None, dtype=None, acc_dtype=None}"),
        (Prod(1, "float64"), "Prod{axis=(1,), dtype='float64', acc_dtype=None}"),
        (ProdWithoutZeros(axis=1), "ProdWithoutZeros{axis=(1,), dtype=None, acc_dtype=None}"),
        (All(), "All"),
        (All((0, 1)), "All{0, 1}"),
        (Any(0), "Any{0}"),
        (MaxAndArgmax((0, 1)), "MaxAndArgmax{axis=(0, 1)}"),
        (Argmax((1,)), "Argmax{axis=(1,)}"),
    ],
)  # fmt: skip
def test_the_text_of_an_op(op, text):
    assert str(op) == text


def test_ops_are_equal_by_what_they_compute():
    assert Sum(axis=[1]) == Sum(axis=(1,))
    assert hash(Sum(axis=[1])) == hash(Sum(axis=(1,)))
    assert Sum() != CAReduce(OPS["add"])
    assert Sum(1) != Sum(0)
    assert Sum(dtype="int8") != Sum()
    assert All(0) != Any(0)
    assert CAReduce(OPS["maximum"]) != CAReduce(OPS["minimum"])
    assert T.sum(x, 1).owner.op is T.sum(t, 1).owner.op


def test_a_reduction_needs_a_binary_operation():
    with pytest.raises(NotImplementedError, match="two inputs and one output"):
        CAReduce(OPS["exp"])


@pytest.mark.parametrize(
    "build, text",
    [
        (lambda: T.sum(x), "Sum{acc_dtype=float64}(x)"),
        (lambda: T.sum(x, (0, 1)), "Sum{axis=[0, 1], acc_dtype=float64}(x)"),
        (lambda: T.sum(x, -1, keepdims=True),
         "InplaceDimShuffle{0,x}(Sum{axis=[1], acc_dtype=float64}(x))"),
        (lambda: prod(x), "Prod{axis=None, dtype='float64', acc_dtype='float64'}(x)"),
        (lambda: T.max(x, 1), "MaxAndArgmax{axis=(1,)}.0(x)"),
        (lambda: T.min(x, 1),
         "Elemwise{neg,no_inplace}(MaxAndArgmax{axis=(1,)}.0(Elemwise{neg,no_inplace}(x)))"),
        (lambda: argmin(x), "MaxAndArgmax{axis=(0, 1)}.1(Elemwise{neg,no_inplace}(x))"),
        (lambda: T.any(x, 0),
         "Any{0}(Elemwise{neq,no_inplace}(x, InplaceDimShuffle{x,x}(TensorConstant{0})))"),
        (lambda: T.max(s), "MaxAndArgmax{axis=()}.0(s)"),
    ],
)  # fmt: skip
def test_the_graph_that_a_user_sees(dump, build, text):
    assert dump(build()) == text


def test_results_have_names():
    assert [r.name for r in max_and_argmax(x, 1)] == ["max", "argmax"]
    assert (mean(x).name, var(x).name, std(x).name) == ("mean", "var", "std")


# ======================================================================================
# DTYPES
# ======================================================================================

#: dtype of the input: of sum and prod, of mean, of var, of the sum's accumulator
DTYPES = {
    "bool": "int64 float64 float64 int64",
    "int8": "int64 float64 float64 int64",
    "int32": "int64 float64 float64 int64",
    "uint8": "uint64 float64 float64 uint64",
    "uint32": "uint64 float64 float64 uint64",
    "float16": "float16 float16 float16 float32",
    "float32": "float32 float32 float32 float64",
    "float64": "float64 float64 float64 float64",
    "complex64": "complex64 complex64 complex64 complex128",
}


@pytest.mark.parametrize("dtype", DTYPES)
def test_dtypes_follow_from_the_input(dtype):
    w = tensor(dtype, 1)
    expected = DTYPES[dtype].split()
    total = T.sum(w)
    found = [total.type.dtype, mean(w).type.dtype, var(w).type.dtype, total.owner.op.acc_dtype]
    assert found == expected
    assert prod(w).type.dtype == expected[0]
    assert T.max(w).type.dtype == dtype
    assert argmax(w).type.dtype == "int64"
    assert T.any(w).type.dtype == T.all(w).type.dtype == "bool"


def test_dtypes_that_are_given():
    w, f = tensor("int8", 1), tensor("float32", 1)
    assert T.sum(w, dtype="float32").type.dtype == "float32"
    assert T.sum(f, dtype=np.float64).type.dtype == "float64"
    assert T.sum(f, acc_dtype="float32").owner.op.acc_dtype == "float32"
    assert mean(w, dtype="float32").type.dtype == "float32"
    assert mean(w, dtype="float16").type.dtype == "float16"
    assert mean(w, dtype="int32").type.dtype == "float64"
    assert mean(f, dtype="float64").type.dtype == "float64"
    with change_flags(floatX="float32"):
        assert T.sum(v, dtype="floatX").type.dtype == "float32"
        assert mean(tensor("int32", 1)).type.dtype == "float64"


@pytest.mark.parametrize(
    "dtype, acc_dtype",
    [("float64", "float32"), ("float64", "int8"), ("int32", "int8"), ("uint8", "int8"),
     ("complex64", "float64"), ("float64", "complex64"), ("float32", "float16")],
)  # fmt: skip
def test_an_accumulator_that_loses_precision_is_refused(dtype, acc_dtype):
    with pytest.raises(TypeError, match="would lose precision"):
        T.sum(tensor(dtype, 1), acc_dtype=acc_dtype)


def test_an_unknown_dtype_is_refused():
    with pytest.raises(TypeError, match="Unsupported dtype"):
        T.sum(x, dtype="bogus")


# ======================================================================================
# AXES
# ======================================================================================


@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize("axis", [2, -3, (0, 5)])
def test_an_axis_out_of_range_is_refused(name, axis):
    with pytest.raises(ValueError, match="Not enough dimensions on"):
        FUNCTIONS[name](x, axis)


@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize("axis", [1.0, "a", tensor("int64", 0), [None], [[0, 1]]])
def test_an_axis_must_be_a_known_integer(name, axis):
    with pytest.raises(TypeError, match=r"an axis is an integer|is not constant"):
        FUNCTIONS[name](x, axis)


def test_the_text_for_an_axis_out_of_range():
    text = r"^Not enough dimensions on v to reduce on axis 1: it has 1, axes go from -1 to 0$"
    with pytest.raises(ValueError, match=text):
        T.sum(v, 1)
    with pytest.raises(ValueError, match=text):
        T.max(v, 1)


@pytest.mark.parametrize("axis", [1, -1, np.array(1), np.int8(1), [1], (-1, 1), constant(1)])
def test_ways_to_say_an_axis(axis):
    assert T.sum(x, axis).owner.op.axis == (1,)
    assert argmax(x, axis).owner.op.axis == (1,)
    assert mean(x, axis).owner.inputs[0].owner.op.axis == (1,)


def test_no_axes_at_all(run):
    assert T.sum(x, []).type == x.type
    np.testing.assert_array_equal(run(T.sum(x, []), {x: MATRIX}), MATRIX)
    np.testing.assert_array_equal(run(mean(x, ()), {x: MATRIX}), MATRIX)
    assert mean(tensor("int32", 2), ()).type.dtype == "float64"
    assert run(T.max(x, []), {x: MATRIX}) == 4.0


def test_an_op_is_applied_to_the_axes_of_its_input():
    assert CAReduce(OPS["add"], -1)(x).owner.op.axis == (1,)
    assert Sum(axis=(-1, 0))(t).owner.op.axis == (0, 2)
    assert MaxAndArgmax((-1,))(x)[0].owner.op.axis == (1,)
    applied = Sum(1)(x).owner.op
    assert (applied.dtype, applied.acc_dtype) == ("float64", "float64")


def test_broadcastable_dimensions_remain_known():
    row = tensor_type("float64", (True, False))("row")
    assert T.sum(row, 1).type.broadcastable == (True,)
    assert T.max(row, 0).type.broadcastable == (False,)
    assert T.sum(x, 0, keepdims=True).type.broadcastable == (True, False)
    assert makeKeepDims(x, T.sum(x, 1), 1).type.broadcastable == (False, True)


# ======================================================================================
# VALUES
# ======================================================================================

NUMPY = {name: getattr(np, name) for name in FUNCTIONS}
VALUES = {
    "float64": MATRIX,
    "float32": MATRIX,
    "float16": MATRIX,
    "int8": [[100, -2, 100], [4, 0, 100]],
    "uint8": [[200, 2, 100], [4, 0, 255]],
    "bool": [[True, False, True], [True, True, False]],
}


@pytest.mark.parametrize("axis", [None, 0, -1, (0, 1)])
@pytest.mark.parametrize("dtype", VALUES)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_values_are_those_of_numpy(run, name, dtype, axis):
    data = np.array(VALUES[dtype], dtype)
    w = tensor(dtype, 2)
    for keepdims in (False, True):
        if name.startswith("arg"):
            if isinstance(axis, tuple):
                continue
            expected = NUMPY[name](data, axis=axis, keepdims=keepdims)
        else:
            wide = data.astype("float64") if name in ("mean", "var", "std") else data
            expected = NUMPY[name](wide, axis=axis, keepdims=keepdims)
        found = run(FUNCTIONS[name](w, axis=axis, keepdims=keepdims), {w: data})
        tolerance = {"float16": 2e-3, "float32": 1e-6}.get(dtype, 1e-14)
        np.testing.assert_allclose(found, expected, rtol=tolerance)


@pytest.mark.parametrize("axis", [(0, 2), [1, 2], (-1, 0), 1])
@pytest.mark.parametrize("name", "sum prod mean max min std".split())
def test_several_axes(run, name, axis):
    axes = tuple(axis) if isinstance(axis, list) else axis
    found = run(FUNCTIONS[name](t, axis=axis), {t: CUBE})
    np.testing.assert_allclose(found, NUMPY[name](CUBE, axis=axes), rtol=1e-14)


def test_the_position_of_a_maximum_counts_over_the_axes_in_order(run):
    assert run(argmax(t, (0, 2)), {t: CUBE}).tolist() == [5, 2, 4]
    assert run(argmax(t, (2, 0)), {t: CUBE}).tolist() == [5, 2, 4]
    assert run(Argmax((0, 2))(t), {t: CUBE}).tolist() == [5, 2, 4]
    assert run(argmax(s), {s: 3.0}) == 0
    assert run(argmax(v), {v: [1.0, 3.0, 3.0]}) == 1
    assert run(argmin(v), {v: [1.0, 0.0, 0.0]}) == 1


def test_not_a_number_wins(run):
    values = {v: [1.0, np.nan, 3.0]}
    assert np.isnan(run(T.max(v), values))
    assert np.isnan(run(T.min(v), values))
    assert run(argmax(v), values) == 1
    assert np.isnan(run(CAReduce(OPS["maximum"])(v), values))


def test_nothing_to_reduce(run):
    empty = {v: []}
    assert run(T.sum(v), empty) == 0
    assert run(prod(v), empty) == 1
    assert np.isnan(run(mean(v), empty))
    assert run(T.all(v), empty)
    assert not run(T.any(v), empty)
    assert run(ProdWithoutZeros()(v), empty) == 1
    assert run(T.max(x, 1), {x: np.zeros((0, 3))}).shape == (0,)
    message = r"Input of CAReduce\{maximum\} has zero-size on axis 0"
    for extremum in (CAReduce(OPS["maximum"])(v), T.max(v), Argmax((0,))(v)):
        with pytest.raises(ValueError, match=message):
            run(extremum, empty)
    with pytest.raises(ValueError, match="zero-size on axis 1"):
        run(T.max(x, 1), {x: np.zeros((2, 0))})


def test_sums_of_narrow_types_are_computed_in_wide_ones(run):
    b, f = tensor("int8", 1), tensor("float32", 1)
    assert run(T.sum(b), {b: np.array([100, 100], "int8")}) == 200
    assert run(T.sum(b, dtype="int8"), {b: np.array([100, 100], "int8")}) == -56
    assert run(T.sum(f), {f: np.array([1e8, 1, -1e8], "float32")}) == 1
    assert run(CAReduce(OPS["add"])(b), {b: np.array([100, 100], "int8")}) == -56


def test_reductions_by_other_operations(run):
    i = tensor("int64", 1)
    assert run(CAReduce(OPS["or_"], 0)(i), {i: [1, 2, 4]}) == 7
    assert run(CAReduce(OPS["xor"])(i), {i: [1, 3, 4]}) == 6
    assert run(CAReduce(OPS["sub"], 0)(v), {v: [1.0, 2.0, 3.0]}) == -4

    class Hypotenuse(BinaryScalarOp):
        def impl(self, a, b):
            return (a * a + b * b) ** 0.5

    reduced = CAReduce(Hypotenuse(), 0)(x)
    np.testing.assert_allclose(
        run(reduced, {x: [[3.0, 6.0], [4.0, 8.0], [12.0, 24.0]]}), [13.0, 26.0]
    )
    with pytest.raises(ValueError, match="zero-size on axis 0"):
        run(reduced, {x: np.zeros((0, 2))})


def test_the_product_without_zeros(run):
    data = np.array([[0.0, 2.0, 3.0], [0.0, 0.0, 0.0], [-1.0, 5.0, 0.0]])
    assert run(ProdWithoutZeros(1)(x), {x: data}).tolist() == [6.0, 0.0, -5.0]


def test_degrees_of_freedom(run):
    np.testing.assert_allclose(run(std(x, 0, ddof=1), {x: MATRIX}), MATRIX.std(0, ddof=1))
    np.testing.assert_allclose(run(std(x, 0, 1), {x: MATRIX}), MATRIX.std(0, ddof=1))
    with_ddof = var(x, 1, ddof=1, keepdims=True, corrected=True)
    np.testing.assert_allclose(run(with_ddof, {x: MATRIX}), MATRIX.var(1, ddof=1, keepdims=True))
    far = np.array([1e8 + 1, 1e8 + 2, 1e8 + 4])
    np.testing.assert_allclose(run(var(v, corrected=True), {v: far}), 14 / 9, rtol=1e-12)


@pytest.mark.parametrize("corrected", [False, True])
@pytest.mark.parametrize("axis", [None, (0, 2), (1, 2), (-1, 0), 1])
def test_degrees_of_freedom_are_counted_once(run, axis, corrected):
    """The divisor is the number of elements less ddof, as numpy's, along any number of axes."""
    cube = np.arange(30.0).reshape(2, 5, 3) ** 1.5
    x = tensor("float64", 3)
    for ddof in (1, 2):
        outputs = [var(x, axis, ddof, corrected=corrected), std(x, axis, ddof, True, corrected)]
        expected = cube.var(axis, ddof=ddof), cube.std(axis, ddof=ddof, keepdims=True)
        for value, wanted in zip(run(outputs, {x: cube}), expected, strict=True):
            np.testing.assert_allclose(value, wanted)


def test_peak_to_peak(run):
    np.testing.assert_array_equal(run(ptp(x, 1), {x: MATRIX}), np.ptp(MATRIX, 1))
    assert run(ptp(x), {x: MATRIX}) == 6.0


def test_lists_and_numbers_are_reduced_too(run):
    assert run(T.sum([1, 2, 3])) == 6
    assert run(mean([1, 2])) == 1.5
    assert run(T.max(4)) == 4


# ======================================================================================
# GRADIENTS
# ======================================================================================


@pytest.mark.parametrize("axis", [None, 0, -1])
@pytest.mark.parametrize("name", "sum prod mean var std max min".split())
def test_gradients_are_those_of_finite_differences(check_forward, name, axis):
    data = np.array([[1.5, -2.0, 0.25], [4.0, 0.5, 3.0]])
    check_forward(lambda w: FUNCTIONS[name](w, axis=axis), data)


def test_gradients_along_several_axes(check_forward):
    data = np.random.RandomState(0).permutation(24).reshape(2, 3, 4) / 4 + 0.5
    for function in (T.sum, prod, T.max):
        check_forward(lambda w, f=function: f(w, axis=(0, 2), keepdims=True), data / 3)


@pytest.mark.parametrize("zeros", [[0.0, 2.0, 3.0], [0.0, 0.0, 3.0], [0.0, 0.0, 0.0]])
def test_the_gradient_of_a_product_with_zeros(check_forward, zeros):
    check_forward(prod, np.array(zeros))
    check_forward(lambda w: prod(w, axis=1), np.array([zeros, [1.0, 2.0, 4.0]]))


def test_the_gradient_of_a_product_promised_to_have_no_zeros(run, dump, check_gradient):
    check_gradient(lambda w: prod(w, 0, no_zeros_in_input=True), MATRIX)
    assert "switch" not in dump(grad(prod(v, no_zeros_in_input=True), v))


def test_ties_share_nothing_each_gets_the_whole_gradient(run):
    assert run(grad(T.max(v), v), {v: [1.0, 3.0, 3.0]}).tolist() == [0, 1, 1]
    assert run(grad(T.min(v), v), {v: [3.0, 1.0, 1.0]}).tolist() == [0, 1, 1]
    by_op = CAReduce(OPS["maximum"])(v)
    assert run(grad(by_op, v), {v: [1.0, 3.0, 3.0]}).tolist() == [0, 1, 1]


def test_a_position_has_gradient_zero(run):
    assert run(grad(cast(argmax(v), "float64"), v), {v: [1.0, 3.0]}).tolist() == [0, 0]
    assert run(grad(cast(Argmax((0,))(v), "float64"), v), {v: [1.0, 3.0]}).tolist() == [0, 0]


def test_gradients_by_integers_are_zeros_of_floats(run):
    i = tensor("int32", 1, "i")
    for out in (T.sum(i), prod(i), T.max(i)):
        node = out.owner
        gradients = [out.type.clone(dtype="float64")("g")]
        gradients += [disconnected_type.make_variable() for _ in node.outputs[1:]]
        (found,) = node.op.L_op(node.inputs, node.outputs, gradients)
        assert found.type.dtype == "float64"
        assert run(found, {i: [1, 2], gradients[0]: 1.0}).tolist() == [0, 0]


def test_what_has_no_gradient_says_so():
    node = ProdWithoutZeros()(v).owner
    (found,) = node.op.L_op(node.inputs, node.outputs, [s])
    assert is_null(found)
    assert "no_zeros_in_input" in found.type.why_null
    node = CAReduce(OPS["sub"])(v).owner
    with pytest.raises(MethodNotDefined):
        node.op.L_op(node.inputs, node.outputs, [s])
    node = T.max(v).owner
    nothing = [disconnected_type.make_variable() for _ in range(2)]
    assert is_disconnected(node.op.L_op(node.inputs, node.outputs, nothing)[0])


@pytest.mark.parametrize("optimizer", [None, "fast_run"])
@pytest.mark.parametrize("dtype", ["int8", "int16", "int32", "int64", "uint8", "uint64"])
def test_minimum_of_the_least_integer(dtype, optimizer):
    """-x of the least integer is that integer: it would count as the largest."""
    from opwise import Mode, function

    info = np.iinfo(dtype)
    value = np.array([[3, info.min, 0], [info.max, 1, 2]], dtype)
    x = tensor_type(dtype, (False, False))("x")
    f = function([x], [T.min(x, axis=1), argmin(x, axis=1), T.min(x)], mode=Mode("py", optimizer))
    lowest, at, least = f(value)
    np.testing.assert_array_equal(lowest, value.min(axis=1))
    np.testing.assert_array_equal(at, value.argmin(axis=1))
    assert least == info.min
    assert lowest.dtype == dtype
