"""Systems of linear equations: values against numpy, dtypes, gradients and refusals."""

import numpy as np
import pytest

from opwise.linalg import cholesky, solve, solve_lower_triangular, solve_upper_triangular
from opwise.tensor.slinalg import MATRIX_STRUCTURES, Solve, solve_symmetric
from opwise.tensor.type import tensor_type

pytestmark = pytest.mark.null

A = np.array([[2.0, 1.0, 0.5], [0.5, 3.0, -1.0], [1.0, 0.25, 4.0]])
VECTOR = np.array([1.0, -2.0, 3.0])
MATRIX = np.arange(6.0).reshape(3, 2)
LinAlgError = np.linalg.LinAlgError


def tensor(dtype, ndim):
    return tensor_type(dtype, (False,) * ndim)()


def read(structure):
    return {"lower_triangular": np.tril, "upper_triangular": np.triu}.get(structure, np.array)(A)


@pytest.fixture(params=[True, False], ids=["scipy", "no scipy"])
def _scipy(request, monkeypatch):
    monkeypatch.setattr("opwise.tensor.linalg.systems.has_scipy", lambda: request.param)


@pytest.mark.usefixtures("_scipy")
@pytest.mark.parametrize("structure", MATRIX_STRUCTURES)
@pytest.mark.parametrize("right", [VECTOR, MATRIX, VECTOR[:, np.newaxis], MATRIX[:, :0]])
def test_structures(run, structure, right):
    a, b = tensor("float64", 2), tensor("float64", right.ndim)
    found = run(Solve(structure)(a, b), {a: A, b: right})
    np.testing.assert_allclose(found, np.linalg.solve(read(structure), right))


@pytest.mark.parametrize("op", [solve, solve_lower_triangular, solve_upper_triangular])
@pytest.mark.parametrize("right", [VECTOR, MATRIX])
def test_gradients(check_gradient, op, right):
    check_gradient(op, A, right)


def test_dtypes(run):
    """At least float32; float64 for integers of 32 bits and more."""
    expected = {
        ("float32", "float32"): "float32", ("float32", "float64"): "float64",
        ("int8", "float32"): "float32", ("int64", "int64"): "float64",
        ("int32", "float32"): "float64", ("float16", "bool"): "float32",
        ("complex64", "float64"): "complex128",
    }  # fmt: skip
    for (left, right), dtype in expected.items():
        a, b = tensor(left, 2), tensor(right, 1)
        found = run(solve(a, b), {a: np.eye(2).astype(left), b: np.ones(2).astype(right)})
        assert found.dtype == dtype
        np.testing.assert_array_equal(found, [1, 1])


@pytest.mark.parametrize("op", [solve, solve_lower_triangular, solve_upper_triangular])
def test_refusals(run, op):
    a, b = tensor("float64", 2), tensor("float64", 1)
    with pytest.raises(LinAlgError, match="ingular matrix"):
        run(op(a, b), {a: np.zeros((2, 2)), b: np.ones(2)})
    with pytest.raises(ValueError, match="expected a square matrix"):
        run(op(a, b), {a: np.ones((2, 3)), b: np.ones(2)})
    with pytest.raises(ValueError, match="incompatible dimensions"):
        run(op(a, b), {a: np.eye(2), b: np.ones(3)})
    for values in ((np.full((2, 2), np.nan), np.ones(2)), (np.eye(2), np.array([1, np.inf]))):
        with pytest.raises(ValueError, match="must not contain infs or NaNs"):
            run(op(a, b), dict(zip([a, b], values, strict=True)))
    with pytest.raises(AssertionError, match="Solve takes a vector or a matrix"):
        op(a, tensor("float64", 3))
    with pytest.raises(AssertionError, match="Solve takes a matrix"):
        op(b, b)


@pytest.mark.parametrize("structure", ["general", "lower_triangular", "upper_triangular"])
def test_singular_systems_may_be_nan(run, structure):
    a, b = tensor("float64", 2), tensor("float64", 2)
    op = Solve(structure, on_error="nan", check_finite=False)
    found = run(op(a, b), {a: np.zeros((3, 3)), b: MATRIX})
    assert found.shape == MATRIX.shape and np.isnan(found).all()
    expected = np.linalg.solve(read(structure), MATRIX)
    np.testing.assert_allclose(run(op(a, b), {a: A, b: MATRIX}), expected)
    with pytest.raises(ValueError, match="on_error must be one of"):
        Solve(on_error="ignore")


@pytest.mark.usefixtures("_scipy")
@pytest.mark.parametrize("structure", ["lower_triangular", "upper_triangular"])
def test_diagonals_may_count_as_ones(run, check_gradient, structure):
    a, b = tensor("float64", 2), tensor("float64", 1)
    op, ones = Solve(structure, unit_diagonal=True), read(structure).copy()
    np.fill_diagonal(ones, 1)
    np.testing.assert_allclose(run(op(a, b), {a: A, b: VECTOR}), np.linalg.solve(ones, VECTOR))
    check_gradient(op, A, VECTOR)


def test_other_structures_are_refused():
    with pytest.raises(ValueError, match="Invalid matrix structure argument"):
        Solve("sparse")


def test_texts_and_equality():
    assert str(solve) == "Solve{('general', False, False, False)}"
    assert Solve("symmetric") == solve_symmetric != solve
    inplace = solve.overwriting()
    assert inplace.destroy_map == {0: [1]} and str(inplace) == str(solve) and inplace != solve
    assert cholesky.overwriting().destroy_map == {0: [0]}


def test_broadcastable_columns_stay(run):
    a, b = tensor("float64", 2), tensor_type("float64", (False, True))()
    assert solve(a, b).type.broadcastable == (False, True)
    np.testing.assert_allclose(run(solve(a, b), {a: A, b: MATRIX[:, :1]}),
                               np.linalg.solve(A, MATRIX[:, :1]))  # fmt: skip
