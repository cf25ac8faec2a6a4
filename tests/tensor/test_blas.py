"""The Ops of BLAS: values, memory, texts and refusals."""

import numpy as np
import pytest

from opwise.errors import InconsistencyError
from opwise.tensor import (
    constant,
)
from opwise.tensor.blas import (
    CGemv,
    CGer,
    Dot22Scalar,
    Gemm,
    Gemv,
    Ger,
    _dot22,
    _dot22scalar,
    cgemv_inplace,
    cgemv_no_inplace,
    cger_inplace,
    cger_no_inplace,
    gemm_inplace,
    gemm_no_inplace,
    gemv_inplace,
    gemv_no_inplace,
    ger,
    ger_destructive,
)
from opwise.tensor.type import tensor_type

pytestmark = pytest.mark.null

DTYPES = ("float32", "float64", "complex128")


def tensor(dtype, ndim, name=None):
    return tensor_type(dtype, (False,) * ndim)(name)


def counted(dtype, *shape):
    return (np.arange(np.prod(shape)) - 2).reshape(shape).astype(dtype)


def perform(op, *values):
    """Run an Op alone, on arrays that it may overwrite; the result and whether it is the first."""
    arrays = [np.asarray(v) for v in values]
    node = op.make_node(*(tensor(a.dtype.name, a.ndim) for a in arrays))
    storage = [[None]]
    op.perform(node, arrays, storage)
    return storage[0][0], storage[0][0] is arrays[0]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("a, b", [(1, 0), (1, 1), (2, 0.5), (-1, 1), (0, 1), (0.5, 0)])
@pytest.mark.parametrize("op", [gemm_inplace, gemm_no_inplace])
def test_gemm(op, dtype, a, b):
    x, y, z = counted(dtype, 2, 3), counted(dtype, 3, 4), counted(dtype, 2, 4)
    expected = b * z + a * np.dot(x, y)
    before = z.copy()
    found, same = perform(op, z, np.array(a, dtype), x, y, np.array(b, dtype))
    np.testing.assert_allclose(found, expected)
    assert found.dtype == dtype and same == op.inplace
    assert op.inplace or np.array_equal(z, before)


def test_strided_operands(run):
    x, y, z = (tensor("float64", 2) for _ in range(3))
    values = {
        x: counted("float64", 6, 4)[::2, ::-1],
        y: counted("float64", 2, 4).T,
        z: counted("float64", 2, 3).T,
    }
    out = gemm_no_inplace(z, np.array(2.0), x, y, np.array(3.0))
    np.testing.assert_allclose(run(out, values), 3 * values[z] + 2 * values[x] @ values[y])


@pytest.mark.parametrize("op", [gemm_inplace, gemm_no_inplace])
def test_gemm_does_not_read_what_is_multiplied_by_nothing(op):
    z = np.full((2, 2), np.nan)
    found, _ = perform(op, z, np.array(1.0), np.eye(2), np.eye(2), np.array(0.0))
    np.testing.assert_array_equal(found, np.eye(2))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("alpha, beta", [(1, 0), (1, 1), (2, 0.5), (-1, 1)])
@pytest.mark.parametrize("op", [gemv_inplace, gemv_no_inplace, cgemv_inplace, cgemv_no_inplace])
def test_gemv(op, dtype, alpha, beta):
    A, x = counted(dtype, 2, 3), counted(dtype, 3)
    y = np.full(2, np.nan, dtype) if beta == 0 else counted(dtype, 2)
    expected = alpha * np.dot(A, x) + (beta * y if beta else 0)
    found, same = perform(op, y, np.array(alpha, dtype), A, x, np.array(beta, dtype))
    np.testing.assert_allclose(found, expected)
    assert found.dtype == dtype and same == op.inplace


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("op", [ger, ger_destructive, cger_inplace, cger_no_inplace])
def test_ger(op, dtype):
    A, x, y = counted(dtype, 2, 3), counted(dtype, 2), counted(dtype, 3)
    expected = A + np.array(0.5, dtype) * np.outer(x, y)
    found, same = perform(op, A, np.array(0.5, dtype), x, y)
    np.testing.assert_allclose(found, expected)
    assert found.dtype == dtype and same == op.destructive


def test_nothing_to_sum_is_zero():
    empty = np.ones((2, 0)), np.ones((0, 3))
    found, _ = perform(gemm_no_inplace, np.ones((2, 3)), np.array(1.0), *empty, np.array(2.0))
    np.testing.assert_array_equal(found, np.full((2, 3), 2.0))
    np.testing.assert_array_equal(perform(_dot22, *empty)[0], np.zeros((2, 3)))


def test_dot22(run, check_forward):
    x, y, a = tensor("float64", 2), tensor("float64", 2), tensor("float64", 0)
    values = {x: counted("float64", 2, 3), y: counted("float64", 3, 2), a: np.array(0.5)}
    np.testing.assert_array_equal(run(_dot22(x, y), values), values[x] @ values[y])
    np.testing.assert_array_equal(run(_dot22scalar(x, y, a), values), values[x] @ values[y] / 2)
    check_forward(_dot22, values[x], values[y])


@pytest.mark.parametrize(
    "op, text",
    [
        (gemm_inplace, "Gemm{inplace}"), (gemm_no_inplace, "Gemm{no_inplace}"),
        (gemv_inplace, "Gemv{inplace}"), (gemv_no_inplace, "Gemv{no_inplace}"),
        (cgemv_inplace, "CGemv{inplace}"), (cgemv_no_inplace, "CGemv{no_inplace}"),
        (ger_destructive, "Ger{destructive}"), (ger, "Ger{non-destructive}"),
        (cger_inplace, "CGer{destructive}"), (cger_no_inplace, "CGer{non-destructive}"),
        (_dot22, "Dot22"), (_dot22scalar, "Dot22Scalar"),
    ],
)  # fmt: skip
def test_texts(op, text):
    assert str(op) == text


def test_equality_is_by_kind_and_memory():
    assert Gemm(True) == gemm_inplace != gemm_no_inplace
    assert hash(Gemm(True)) == hash(gemm_inplace)
    assert CGemv(True) != Gemv(True) and CGer(True) != Ger(True)
    assert CGer(False) == cger_no_inplace


x, y, v, w, a = (
    tensor("float64", n, name) for n, name in zip((2, 2, 1, 1, 0), "xyvwa", strict=True)
)
f32, whole = tensor("float32", 2, "f32"), tensor("int64", 2, "whole")


@pytest.mark.parametrize(
    "build, text",
    [
        (lambda: gemm_no_inplace(v, a, x, y, a), "gemm only works for rank 2"),
        (lambda: gemm_no_inplace(x, a, x, v, a), "gemm only works for rank 2"),
        (lambda: gemm_no_inplace(x, v, x, y, a), "gemm requires scalar argument"),
        (lambda: gemm_no_inplace(x, a, f32, y, a), "gemm requires matching dtypes"),
        (lambda: gemm_no_inplace(whole, 1, whole, whole, 1), "gemm requires floating-point dtypes"),
        (lambda: gemm_no_inplace(x, a, x, y), "expected 5, got 4"),
        (lambda: gemv_no_inplace(x, a, x, v, a), "gemv requires vector for y"),
        (lambda: gemv_no_inplace(v, a, v, w, a), "gemv requires matrix for A"),
        (lambda: gemv_no_inplace(v, a, x, y, a), "gemv requires vector for x"),
        (lambda: gemv_no_inplace(v, v, x, w, a), "gemv requires scalar alpha"),
        (lambda: gemv_no_inplace(v, a, f32, w, a), "Gemv requires matching dtypes"),
        (lambda: ger(x, a, v, f32), "ger requires matching dtypes"),
        (lambda: ger(x, w, v, w), "ger requires scalar alpha"),
        (lambda: ger(x, a, x, w), "ger requires vector for x"),
        (lambda: _dot22(x, f32), "dtype mismatch to Dot22"),
        (lambda: _dot22(x, v), "Dot22 takes matrices of floats"),
        (lambda: _dot22(whole, whole), "Dot22 takes matrices of floats"),
        (lambda: Dot22Scalar()(x, y, v), "gemm requires scalar argument"),
        (lambda: Dot22Scalar()(x, f32, a), "Dot22Scalar requires matching dtypes"),
    ],
)
def test_inputs_are_checked(build, text):
    with pytest.raises(TypeError, match=text):
        build()


@pytest.mark.parametrize("view", [lambda z: z, lambda z: z.T, lambda z: z[::-1].T])
def test_gemm_in_place_refuses_factors_that_share_its_memory(view):
    with pytest.raises(InconsistencyError, match="argument z aliased to x or y"):
        gemm_inplace(x, a, view(x), y, a)
    assert gemm_no_inplace(x, a, view(x), y, a).owner.op == gemm_no_inplace


def test_numbers_take_the_dtype_of_the_matrices():
    node = gemm_no_inplace(f32, 1, f32, f32, 0.5).owner
    assert [i.type.dtype for i in node.inputs] == ["float32"] * 5
    assert gemv_no_inplace(v, 1, x, w, constant(2)).owner.inputs[1].type.dtype == "float64"


@pytest.mark.parametrize(
    "out, shapes, text",
    [
        (gemm_no_inplace(x, a, y, whole_x := tensor("float64", 2, "z"), a),
         {"x": (2, 2), "y": (2, 3), "z": (2, 3)}, r"shapes \(2,3\) and \(2,3\) not aligned"),
        (gemm_no_inplace(x, a, y, whole_x, a), {"x": (3, 3), "y": (2, 3), "z": (3, 3)},
         r"the product has \(2, 3\), the array that it is added to has \(3, 3\)"),
        (_dot22(x, y), {"x": (2, 3), "y": (2, 3)}, r"not aligned: 3 \(dim 1\) != 2 \(dim 0\)"),
        (gemv_no_inplace(v, a, x, w, a), {"v": (2,), "x": (2, 3), "w": (2,)},
         r"Incompatible shapes for gemv .* y: \(2,\), A: \(2, 3\), x: \(2,\)"),
        (ger(x, a, v, w), {"x": (2, 3), "v": (3,), "w": (3,)},
         r"Incompatible shapes for ger .* A: \(2, 3\), x: \(3,\), y: \(3,\)"),
    ],
)  # fmt: skip
def test_shapes_that_do_not_fit(run, out, shapes, text):
    inputs = {i.name: i for i in out.owner.inputs}
    values = {inputs[name]: np.ones(shape) for name, shape in shapes.items()}
    if "a" in inputs:
        values[inputs["a"]] = np.array(1.0)
    with pytest.raises(ValueError, match=text):
        run(out, values, False)
