"""Products, powers, traces and norms of matrices: values against numpy, and refusals."""

import numpy as np
import pytest
import scipy.linalg

from opwise.linalg import kron, matrix_dot, norm, trace
from opwise.tensor.nlinalg import alloc_diag, diag, extract_diag, matrix_power
from opwise.tensor.type import tensor_type

pytestmark = pytest.mark.null

SQUARE = np.array([[2.0, -1.0, 0.0], [0.5, 3.0, -1.0], [1.0, 0.0, -4.0]])
VECTOR = np.array([3.0, -4.0, 0.0])
CUBE = np.arange(-12.0, 12.0).reshape(2, 3, 4)


def tensor(ndim):
    return tensor_type("float64", (False,) * ndim)()


def test_products(run):
    x = tensor(2)
    found = run([matrix_dot(x, x, x), matrix_power(x, 3), trace(x)], {x: SQUARE})
    np.testing.assert_allclose(found[0], SQUARE @ SQUARE @ SQUARE)
    np.testing.assert_allclose(found[1], np.linalg.matrix_power(SQUARE, 3))
    assert found[2] == np.trace(SQUARE)
    assert matrix_power(x, 0) == 1


def test_diagonals(run):
    x, v = tensor(2), tensor(1)
    found = run([diag(x), extract_diag(x), diag(v), alloc_diag(v)], {x: SQUARE, v: VECTOR})
    for got, of in zip(found, (SQUARE, SQUARE, VECTOR, VECTOR), strict=True):
        np.testing.assert_array_equal(got, np.diag(of))
    assert str(alloc_diag) == "AllocDiag"
    with pytest.raises(TypeError, match="AllocDiag only works on vectors"):
        alloc_diag(x)
    with pytest.raises(TypeError, match="diag requires vector or matrix argument"):
        diag(tensor(3))


@pytest.mark.parametrize("shapes", [((2, 3), (4, 2)), ((2, 3), (4,)), ((2,), (3, 4))])
def test_kron(run, check_gradient, shapes):
    values = [np.random.RandomState(1).normal(size=s) for s in shapes]
    a, b = (tensor(v.ndim) for v in values)
    found = run(kron(a, b), {a: values[0], b: values[1]})
    expected = np.kron(*values)
    if found.ndim == 1 and values[1].ndim == 1:
        # as Theano has it: not the order of numpy
        expected = np.einsum("ij,k->jik", *values)
    np.testing.assert_allclose(found, expected if found.ndim == 2 else expected.ravel())
    check_gradient(kron, *values)
    with pytest.raises(TypeError, match="inputs dimensions must sum to 3 or more"):
        kron(tensor(1), tensor(1))


def test_kron_of_tensors(run):
    """As scipy had it: the dimensions beyond two of each are kept."""
    a, b = tensor(3), tensor(2)
    found = run(kron(a, b), {a: CUBE, b: SQUARE})
    expected = np.einsum("ijk,lm->iljmk", CUBE, SQUARE)
    assert found.ndim == 3
    assert found.size == expected.size


@pytest.mark.parametrize("ord", [None, 1, 2, 3, -1, 0.5, 0, "inf", "-inf", np.inf, -np.inf])
def test_norms_of_vectors(run, ord):
    value = VECTOR if ord != -1 else VECTOR + 5
    x, of_numpy = tensor(1), {"inf": np.inf, "-inf": -np.inf}.get(ord, ord)
    np.testing.assert_allclose(run(norm(x, ord), {x: value}), np.linalg.norm(value, of_numpy))
    if ord != -1:
        y = tensor(3)
        found = run(norm(y, ord, axis=1), {y: CUBE + 20})
        np.testing.assert_allclose(found, np.linalg.norm(CUBE + 20, of_numpy, axis=1))


@pytest.mark.parametrize("ord", [None, "fro", 1, -1, 2, -2, "nuc", "inf", "-inf", np.inf, -np.inf])
def test_norms_of_matrices(run, ord):
    x, of_numpy = tensor(2), {"inf": np.inf, "-inf": -np.inf}.get(ord, ord)
    np.testing.assert_allclose(run(norm(x, ord), {x: SQUARE}), np.linalg.norm(SQUARE, of_numpy))
    y = tensor(3)
    for axes in ((0, 2), (2, 0), (-1, 1)):
        if ord in (2, -2, "nuc"):
            with pytest.raises(NotImplementedError, match="takes a matrix"):
                norm(y, ord, axes)
            continue
        found = run(norm(y, ord, axes), {y: CUBE})
        np.testing.assert_allclose(found, np.linalg.norm(CUBE, of_numpy, axes))


def test_norms_have_gradients(check_gradient):
    check_gradient(lambda x: norm(x, None), SQUARE + 0.1)
    check_gradient(lambda x: norm(x, 3), VECTOR + 0.1)


def test_other_norms_are_refused():
    for ndim, ord in ((1, "fro"), (2, 3), (2, "max"), (0, None)):
        with pytest.raises(ValueError, match=r"norm order|out of bounds"):
            norm(tensor(ndim), ord)
    with pytest.raises(ValueError, match="out of bounds"):
        norm(tensor(1), None, axis=1)
    with pytest.raises(NotImplementedError, match="name one or two axes"):
        norm(tensor(3), None)


def test_scipys_kron_of_matrices(run):
    a, b = tensor(2), tensor(2)
    expected = scipy.linalg.block_diag(SQUARE, SQUARE)
    np.testing.assert_array_equal(run(kron(a, b), {a: np.eye(2), b: SQUARE}), expected)
