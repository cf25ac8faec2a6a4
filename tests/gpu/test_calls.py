"""Ops that CuPy computes, on an emulated device, against ``perform``: values and refusals."""

import emulated
import numpy as np
import pytest

import opwise
import opwise.tensor as T
from opwise import Mode
from opwise.gpu import lowering
from opwise.gpu.lowering import Target, lower
from opwise.linalg import det, eigh, pinv, qr, svd
from opwise.optimizers.database import Query
from opwise.tensor import (
    blas,
    fill_diagonal,
    fill_diagonal_offset,
    permute_row_elements,
    topk,
    topk_and_argtopk,
)
from opwise.tensor.assertion import Assert
from opwise.tensor.extra_ops import CpuContiguous, RepeatOp, UnravelIndex, diff
from opwise.tensor.fft import irfft_op, rfft_op
from opwise.tensor.nlinalg import matrix_inverse
from opwise.tensor.nnet import prepend_0_to_each_row, prepend_scalar_to_each_row
from opwise.tensor.slinalg import Cholesky, Solve

RNG = np.random.RandomState(5)
LinAlgError = np.linalg.LinAlgError


pytestmark = pytest.mark.usefixtures("cupy")


def floats(*shape):
    return RNG.rand(*shape).astype("float32")


D = T.dmatrix("d")
M, N, V, W, S = T.fmatrix("m"), T.fmatrix("n"), T.fvector("v"), T.fvector("w"), T.fscalar("s")
K, J, C = T.lscalar("k"), T.lvector("i"), T.ftensor3("c")
A, B, U = floats(4, 4), floats(4, 4), floats(4)
#: a symmetric matrix with positive eigenvalues, and that matrix with a negative one
POSITIVE = A @ A.T + np.eye(4, dtype="float32")
NEGATIVE = POSITIVE - 4 * np.eye(4, dtype="float32")

#: name -> (variables, expression, values)
CASES = {
    "dimshuffle": ([M], M.dimshuffle(1, "x", 0), [A]),
    "reshape": ([M, K], M.reshape((K, -1)), [A, 2]),
    "reshape of a transposed": ([M, K], M.T.reshape((K, -1)), [A, 8]),
    "subtensor": ([M, K], M[K::-1, 1], [A, 2]),
    "specify_shape": ([M, J], T.specify_shape(M, J), [A, [4, 4]]),
    "assert": ([M, K], Assert("no")(M, T.gt(K, 0)), [A, 2]),
    "dot of vectors": ([V, W], T.dot(V, W), [U, U]),
    "dot of a matrix and a vector": ([M, V], T.dot(M, V), [A, U]),
    "dot of integers": ([J], T.dot(J, J), [[1, 2, 3]]),
    "dot of nothing": ([M, N], T.dot(M, N), [A[:, :0], B[:0]]),
    "dot22": ([M, N], blas.Dot22()(M, N.T), [A[:2], B]),
    "dot22scalar": ([M, N, S], blas.Dot22Scalar()(M, N, S), [A, B, 3.0]),
    "gemm": ([N, M, S], blas.Gemm(False)(N, S, M, M.T, S), [B, A, 0.5]),
    "gemm of float16": ([], blas.Gemm(False)(*map(T.constant, (
        np.eye(3, dtype="float16"), np.float16(2), np.ones((3, 2), "float16"),
        np.ones((2, 3), "float16"), np.float16(0.5)))), []),
    "gemv": ([V, M, W, S], blas.Gemv(False)(V, S, M, W, S), [U, A, U, 0.5]),
    "ger": ([M, S, V, W], blas.Ger(False)(M, S, V, W), [A, 2.0, U, U]),
    "batched dot": ([C], T.batched_dot(C, C.dimshuffle(0, 2, 1)), [floats(2, 3, 4)]),
    "batched dot of rows": ([M, C], T.batched_dot(M, C), [A[:2], floats(2, 4, 3)]),
    "sort": ([M], T.sort(M, 0), [A]),
    "argsort": ([M], T.argsort(M, 1), [A]),
    "diff": ([M], diff(M, 2, 0), [A]),
    "nonzero": ([M], T.nonzero(M, return_matrix=True), [A > 0.5]),
    "repeat": ([M, J], T.repeat(M, J, 1), [A, [1, 0, 2, 1]]),
    "repeat of all": ([M, K], RepeatOp()(M, K), [A, 3]),
    "topk": ([M, K], topk(M, K, 0), [A, 2]),
    "argtopk": ([M, K], topk_and_argtopk(M, K, 1)[1], [A, -3]),
    "permuted rows": ([M, J], permute_row_elements(M, J), [A, [2, 0, 1, 3]]),
    "unpermuted rows": ([M, J], permute_row_elements(M, J, 1), [A, [2, 0, 1, 3]]),
    "diagonal": ([M, S], fill_diagonal(M, S), [A[:, :3], 7.0]),
    "a diagonal beside": ([M, S, K], fill_diagonal_offset(M, S, K), [A, 7.0, -1]),
    "a column of zeros": ([M], prepend_0_to_each_row(M), [A]),
    "a column": ([M, S], prepend_scalar_to_each_row(S, M), [A, 7.0]),
    "unravelled": ([J], UnravelIndex(2)(J, [3, 4])[1], [[0, 5, 11]]),
    "inverse": ([M], matrix_inverse(M), [POSITIVE]),
    "pseudo-inverse": ([M], pinv(M), [POSITIVE[:3]]),
    "determinant": ([M], det(M), [POSITIVE]),
    "determinant of a singular matrix": ([M], det(M), [np.zeros((3, 3), "float32")]),
    "system": ([M, V], Solve()(M, V), [POSITIVE, U]),
    "system of two dtypes": ([M, D], Solve()(M, D), [POSITIVE, B]),
    "system of nothing": ([M, N], Solve()(M, N), [POSITIVE, B[:, :0]]),
    "lower triangular system": ([M, N], Solve("lower_triangular")(M, N), [POSITIVE, B]),
    "upper triangular system": ([M, V], Solve("upper_triangular")(M, V), [POSITIVE.T, U]),
    "cholesky": ([M], Cholesky()(M), [np.tril(POSITIVE)]),
    "cholesky of the upper half": ([M], Cholesky(lower=False)(M), [np.triu(POSITIVE)]),
    "cholesky of no positive matrix": ([M], Cholesky(on_error="nan")(M), [NEGATIVE]),
    "eigenvalues": ([M], eigh(M)[0], [np.tril(POSITIVE)]),
    "eigenvalues of the upper half": ([M], eigh(M, "U")[0], [np.triu(POSITIVE)]),
    "singular values": ([M], svd(M)[1], [A[:3]]),
    "singular values alone": ([M], svd(M, compute_uv=0), [A[:3]]),
    "triangle": ([M], qr(M, "r"), [A[:, :3]]),
    "orthonormal columns": ([M], qr(M)[0], [A[:, :3]]),
    "transform": ([C], rfft_op(C), [floats(3, 5, 6)]),
    "transform of other lengths": ([M, J], rfft_op(M, J), [A, [9]]),
    "inverse transform": ([C], irfft_op(C), [floats(3, 4, 2)]),
}  # fmt: skip


def prepared(variables, values):
    return [np.asarray(v, var.type.dtype) for var, v in zip(variables, values, strict=True)]


@pytest.mark.parametrize("name", CASES)
def test_calls_compute_what_perform_does(name):
    variables, out, values = CASES[name]
    assert not isinstance(lower(out.owner), str)
    # no rewrite, so that it is this Op that runs
    there = opwise.function(variables, out, mode=Mode("cupy", Query(include=[])))
    here = opwise.function(variables, out, mode=Mode("py", None))
    values = prepared(variables, values)
    found, expected = there(*values), here(*values)
    assert found.dtype == expected.dtype
    np.testing.assert_allclose(found, expected, rtol=1e-3 if "float16" in name else 1e-5)


@pytest.mark.parametrize("name", ["gemm", "gemv", "ger"])
def test_in_place(name):
    variables, out, values = CASES[name]
    target, rest = variables[0], prepared(variables[1:], values[1:])
    w = opwise.shared(values[0].copy())
    updates = [(w, out)]
    f = opwise.function(
        variables[1:], [], updates=updates, givens={target: w}, mode=Mode("cupy", "fast_run")
    )
    assert any(node.op.destroy_map for node in f.linked.order)
    plain = opwise.function(variables, out, mode=Mode("py", None))
    for _ in range(2):
        expected = plain(w.get_value(), *rest)
        f(*rest)
        np.testing.assert_allclose(w.get_value(), expected, rtol=1e-5)


REFUSED = {
    "dot": ([M, N], T.dot(M, N), [A, B[:3]], ValueError, "not aligned"),
    "gemm": ([M, N], blas.Gemm(False)(M, 1.0, N, N, 1.0), [A[:2], B], ValueError, "gemm"),
    "gemv": ([V, M], blas.Gemv(False)(V, 1.0, M, V, 1.0), [U[:3], A], ValueError, "for gemv"),
    "ger": ([V, M], blas.Ger(False)(M, 1.0, V, V), [U[:3], A], ValueError, "for ger"),
    "batched": ([C, M], T.batched_dot(M, C), [floats(2, 4, 3), A], ValueError, "unequal lengths"),
    "reshape": ([M, K], M.reshape((K, 3)), [A, 2], ValueError, "reshape"),
    "subtensor": ([M, K], M[K], [A, 9], IndexError, "out of bounds"),
    "assert": ([M, K], Assert("told")(M, T.gt(K, 3)), [A, 2], AssertionError, "told"),
    "topk": ([M, K], topk(M, K), [A, 9], ValueError, "kth cannot be 9"),
    "repeat": ([M, J], T.repeat(M, J, 1), [A, [1, 2]], ValueError, "repeats"),
    "unravel": ([J], UnravelIndex(1)(J, [3])[0], [[3]], ValueError, "out of bounds"),
    "inverse": ([M], matrix_inverse(M), [np.zeros((3, 3))], LinAlgError, "Singular matrix"),
    "inverse of an oblong matrix": ([M], matrix_inverse(M), [A[:3]], LinAlgError, "square"),
    "determinant": ([M], det(M), [A[:3]], LinAlgError, "square"),
    "system": ([M, V], Solve()(M, V), [np.zeros((4, 4)), U], LinAlgError, "Singular matrix"),
    "system of two lengths": ([M, V], Solve()(M, V), [A, U[:3]], ValueError, "incompatible"),
    "system with NaN": ([M, V], Solve()(M, V), [A, U * np.nan], ValueError, "infs or NaNs"),
    "triangular system": (
        [M, V], Solve("lower_triangular")(M, V), [np.zeros((4, 4)), U], LinAlgError, "diagonal"
    ),
    "cholesky": ([M], Cholesky()(M), [NEGATIVE], LinAlgError, "not positive definite"),
    "cholesky of infinities": ([M], Cholesky()(M), [A + np.inf], ValueError, "infs or NaNs"),
    "cholesky of an oblong matrix": ([M], Cholesky()(M), [A[:3]], LinAlgError, "square"),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_refused_inputs(name):
    variables, out, values, error, text = REFUSED[name]
    f = opwise.function(variables, out, mode=Mode("cupy", Query(include=[])))
    with pytest.raises(error, match=text):
        f(*prepared(variables, values))


def test_every_call_has_a_case():
    seen = {type(out.owner.op) for _, out, _ in CASES.values()}
    called = [cls for cls, entry in lowering.table().items() if entry.target is Target.CALL]
    missing = {cls.__name__ for cls in called if not any(issubclass(c, cls) for c in seen)}
    # views, memory and loops that other tests go through
    assert missing <= {"Rebroadcast", "ViewOp", "DeepCopyOp", "AllocEmpty", "Scan"}


@pytest.mark.parametrize("cupy", ["emulated"], indirect=True)
def test_contiguous_arrays_are_not_copied(cupy):
    f = opwise.function([M], CpuContiguous()(M), mode=Mode("cupy", None))
    launches = emulated.STREAM.launches
    np.testing.assert_array_equal(f(A), A)
    assert emulated.STREAM.launches == launches
    w = opwise.shared(np.asfortranarray(A), borrow=True)
    g = opwise.function([], CpuContiguous()(w), mode=Mode("cupy", None))
    np.testing.assert_array_equal(g(), A)
    assert emulated.STREAM.launches == launches + 1
