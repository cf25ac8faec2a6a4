"""Products and linear algebra under opwise against PyTensor's perform."""

import numpy as np
import pytest

pytensor = pytest.importorskip("pytensor", reason="PyTensor is not installed")
import pytensor.tensor as pt  # noqa: E402
from pytensor.tensor import linalg as pl  # noqa: E402

import opwise.pytensor  # noqa: E402

pytestmark = pytest.mark.c

FLOATS = ["float64", "float32"]


def positive_definite(*shape, dtype="float64"):
    x = np.random.default_rng(0).normal(size=shape)
    return (x @ np.swapaxes(x, -1, -2) + shape[-1] * np.eye(shape[-1])).astype(dtype)


@pytest.mark.parametrize("dtypes", [("float64",) * 2, ("float32", "float64"), ("int64", "int8"),
                                    ("complex128", "float64")])  # fmt: skip
def test_products(same, dtypes):
    x, y = (pt.tensor(dtype=d, shape=(None, None, None)) for d in dtypes)
    outputs = [pt.dot(x[0], y[0]), pt.dot(x[0, 0], y[0]), pt.dot(x[0], y[0, :, 0]),
               pt.dot(x[0, 0], y[0, :, 0]), x @ y, x[0] @ y, pt.tensordot(x, y, [[2], [1]]),
               pt.einsum("bij,bjk->bk", x, y), pt.outer(x[0, 0], y[0, 0])]  # fmt: skip
    rng = np.random.default_rng(0)
    given = [(rng.normal(size=s) * 3).astype(d) for s, d in zip([(2, 3, 4), (2, 4, 5)], dtypes)]  # noqa: B905
    same([x, y], outputs, given)


@pytest.mark.parametrize("batch", [(), (3,), (2, 3)])
@pytest.mark.parametrize("dtype", FLOATS)
def test_factors_and_systems(same, dtype, batch):
    x = pt.tensor("x", dtype=dtype, shape=(None,) * (len(batch) + 2))
    v, m = x[..., 0], x[..., :2]
    lower, upper = pt.tril(x), pt.triu(x)
    outputs = [
        pl.cholesky(x), pl.cholesky(x, lower=False), pl.solve(x, m), pl.solve(x, v, b_ndim=1),
        pl.solve(x, m, assume_a="pos"), pl.solve_triangular(lower, m, lower=True),
        pl.solve_triangular(upper, v, b_ndim=1), pl.cho_solve((lower, True), m),
        pl.solve_triangular(lower, m, lower=True, unit_diagonal=True),
        pl.solve_triangular(lower, m, lower=True, trans=1), pl.inv(x), pl.det(x), pl.pinv(x),
        pl.svd(x, compute_uv=False), *pl.slogdet(x), pl.eigvalsh(x, None), pl.expm(x / 50),
    ]  # fmt: skip
    same([x], outputs, [positive_definite(*batch, 4, 4, dtype=dtype)], rtol=1e-6)


@pytest.mark.parametrize("batch", [(), (3,)])
@pytest.mark.parametrize("dtype", FLOATS)
def test_lu_factors(same, dtype, batch):
    from pytensor.tensor.linalg.decomposition.lu import lu_factor, pivot_to_permutation

    x = pt.tensor("x", dtype=dtype, shape=(None,) * (len(batch) + 2))
    outputs = [*pl.lu(x), *pl.lu(x, permute_l=True), *pl.lu(x, p_indices=True), *lu_factor(x)]
    # indices are declared int32, but PyTensor's perform may give int64
    outputs = [out.astype("int64") if out.type.dtype == "int32" else out for out in outputs]
    outputs += pl.slogdet(x)
    if not batch:
        factors, pivots = lu_factor(x)
        outputs += [pivot_to_permutation(pivots), pivot_to_permutation(pivots, inverse=True)]
        outputs += [pl.lu_solve((factors, pivots), x[:, :2])]
        outputs += pt.grad(pl.lu(x)[1].sum() + pl.lu(x)[2].sum(), [x])
    rng = np.random.default_rng(0)
    for n in (1, 2, 7, 40):
        given = rng.normal(size=(*batch, n, n)).astype(dtype)
        tolerance = 1e-2 if dtype == "float32" and n == 40 else 1e-6
        same([x], outputs, [given], rtol=tolerance, modes=["OPWISE"])
    for view in (given.swapaxes(-1, -2), given[..., ::-1, :], given[..., ::2, ::2]):
        same([x], outputs[-3:], [view], rtol=tolerance, modes=["OPWISE"])
    f = pytensor.function([x], [*pl.lu(x), *lu_factor(x)], mode="OPWISE")
    empty = f(np.zeros((*batch, 0, 0), dtype))
    assert [found.shape[len(batch) :] for found in empty] == [(0, 0)] * 4 + [(0,)]


def test_lu_factors_of_singular_matrices(same):
    from pytensor.tensor.linalg.decomposition.lu import lu_factor
    from pytensor.tensor.linalg.summary import SLogDet

    x = pt.matrix("x")
    outputs = [*pl.lu(x), lu_factor(x)[0], *SLogDet()(x)]
    for given in (np.zeros((3, 3)), np.diag([1.0, 0, 2]), np.ones((1, 1)) * 0, np.zeros((0, 0))):
        shown = outputs if given.size else outputs[-2:]
        same([x], shown, [given], modes=["OPWISE", "OPWISE_FAST_COMPILE"])
    for sign in (1, -1):
        same([x], SLogDet()(x), [sign * np.diag([1e300, 1e300, 1e-10, 3])], modes=["OPWISE"])


def test_determinants_run_in_c(same):
    x = pt.tensor3("x")
    from pytensor.tensor.blockwise import Blockwise
    from pytensor.tensor.linalg.summary import SLogDet

    (f,) = same([x], Blockwise(SLogDet())(x), [positive_definite(5, 4, 4)], modes=["OPWISE"])
    assert all(opwise.pytensor.own_function(f).linked.in_c)


def test_vectors_of_factors(same):
    x = pt.matrix("x")
    u, s, v = pl.svd(x)
    q, r = pl.qr(x)
    w, z = pl.eigh(x)
    outputs = [pt.dot(u * s, v), pt.dot(q, r), w, pt.dot(z * w, z.T)]
    same([x], outputs, [positive_definite(4, 4)])


def test_one_factor_for_a_batch(same):
    x, y = pt.matrix("x"), pt.tensor3("y")
    lower = pt.tril(x)
    outputs = [pl.solve(x, y), pl.solve_triangular(lower, y, lower=True)]
    given = [positive_definite(3, 3), np.random.default_rng(0).normal(size=(4, 3, 2))]
    same([x, y], outputs, given)
    vectors = [pl.solve(x, y, b_ndim=1), pl.solve(x, y, b_ndim=1, assume_a="pos"),
               pl.solve_triangular(lower, y[0], lower=True, b_ndim=1)]  # fmt: skip
    given[1] = np.moveaxis(given[1], 1, 2)
    compiled = same([x, y], vectors, given)
    for f in compiled:  # the right-hand sides are columns of one system: there is no loop
        ops = [type(n.op).__name__ for n in opwise.pytensor.own_function(f).linked.order]
        assert "Scan" not in ops
    given[1] = np.moveaxis(given[1], 1, 2)
    empty = pytensor.function([x, y], outputs, mode="OPWISE")(given[0], np.zeros((0, 3, 2)))
    assert [found.shape for found in empty] == [(0, 3, 2)] * 2


@pytest.mark.parametrize("bad", [np.nan, np.inf, -100.0])
def test_what_has_no_factor_is_nan(bad):
    x = pt.matrix("x")
    outputs = [pl.cholesky(x), pl.cholesky(x, lower=False), pl.solve(x, x[:, 0], assume_a="pos",
                                                                     b_ndim=1)]  # fmt: skip
    f = pytensor.function([x], outputs, mode="OPWISE")
    given = positive_definite(40, 40)
    assert all(np.isfinite(found).all() for found in f(given))
    for at in (0, 17, 39):
        damaged = given.copy()
        damaged[at, at] = bad
        assert all(np.isnan(found).all() for found in f(damaged))


@pytest.mark.parametrize("mode", ["OPWISE", "OPWISE_FAST_COMPILE"])
def test_systems_without_a_solution_are_nan(mode):
    x, b = pt.matrix("x"), pt.matrix("b")
    f = pytensor.function(
        [x, b], [pl.solve(x, b), pl.solve_triangular(x, b, lower=True)], mode=mode
    )
    general, triangular = f(np.zeros((3, 3)), np.ones((3, 2)))
    assert np.isnan(general).all() and general.shape == (3, 2)
    assert np.isnan(triangular).all()
    general, _ = f(np.full((3, 3), np.nan), np.ones((3, 2)))
    assert np.isnan(general).all()


@pytest.mark.parametrize("lower", [True, False])
@pytest.mark.parametrize("dtype", FLOATS)
def test_systems_of_which_a_part_is_read(same, dtype, lower):
    x, b = pt.tensor3("x", dtype=dtype), pt.matrix("b", dtype=dtype)
    outputs = [pl.solve(x[0], b, assume_a="sym", lower=lower),
               pl.solve(x[0], b[:, 0], assume_a="her", lower=lower, b_ndim=1),
               pl.solve(x, b, assume_a="sym", lower=lower),
               pl.pinv(x[0], hermitian=True)]  # fmt: skip
    given = positive_definite(2, 5, 5, dtype=dtype)
    right = np.random.default_rng(0).normal(size=(5, 2)).astype(dtype)
    # numpy reads the lower half for the pseudo-inverse
    given[:, *(np.triu_indices(5, 1) if lower else np.tril_indices(5, -1))] = np.pi
    same([x, b], outputs, [given, right], rtol=1e-6)
    f = pytensor.function([x, b], outputs[0], mode="OPWISE")
    expected = f(given, right)
    given[:, *(np.triu_indices(5, 1) if lower else np.tril_indices(5, -1))] = np.nan
    np.testing.assert_array_equal(f(given, right), expected)


def test_tridiagonal_and_banded_systems(same):
    x, b = pt.matrix("x"), pt.matrix("b")
    outputs = [pl.solve(x, b, assume_a="tridiagonal"), pl.solve(x + 1, b, assume_a="banded")]
    given = np.triu(np.tril(positive_definite(5, 5), 1), -1)
    given[0, 4] = given[4, 0] = 7  # not read
    same([x, b], outputs, [given, np.ones((5, 2))])


@pytest.mark.parametrize("lengths", [((2, 3), (1, 1), (0, 2)), ((3, 2),)])
def test_blocks_on_a_diagonal(same, lengths):
    blocks = [pt.matrix(dtype=d) for d, _ in zip(FLOATS + ["int64"], lengths, strict=False)]
    given = [np.arange(n * m).reshape(n, m).astype(x.dtype)
             for (n, m), x in zip(lengths, blocks, strict=True)]  # fmt: skip
    same(blocks, pl.block_diag(*blocks), given)
    batch = pt.tensor3("batch")
    same([batch], pl.block_diag(batch, batch + 1), [np.arange(12.0).reshape(3, 2, 2)])


def test_settings_without_a_translation_are_named():
    x = pt.matrix("x")
    f = pytensor.function([x], pl.qr(x, pivoting=True)[1], mode="OPWISE")
    reasons = [each.reason for each in opwise.pytensor.performed(f)]
    assert reasons == ["QR with mode full or pivots has no translation"]
    np.testing.assert_allclose(np.abs(f(np.diag([1.0, 3, 2]))), np.diag([3, 2, 1]))


def test_products_of_batches_of_two_dtypes(same):
    from pytensor.tensor.blas import BatchedDot

    x, y = pt.tensor3("x", dtype="float32"), pt.tensor3("y")
    given = [np.ones((2, 3, 4), "float32"), np.ones((2, 4, 5))]
    same([x, y], BatchedDot()(x, y), given)


# --- convolutions ---------------------------------------------------------------------------------


@pytest.mark.parametrize("mode", ["full", "valid", "same"])
@pytest.mark.parametrize("dtype", FLOATS)
def test_convolutions(same, dtype, mode):
    from pytensor.tensor.signal import convolve1d, convolve2d

    x, y = (pt.tensor(dtype=dtype, shape=(None, None)) for _ in range(2))
    pairs = [(x[0], y[0]), (x, y[0]), (x[0], y), (x[:2], y[:2])]
    outputs = [convolve1d(*pair, mode=mode) for pair in pairs]
    outputs.append(convolve2d(x, y, mode=mode))
    outputs += pt.grad(sum((one**2).sum() for one in outputs), [x, y])
    rng = np.random.default_rng(0)
    for shapes in [((3, 9), (2, 4)), ((2, 4), (3, 9)), ((2, 1), (2, 1))]:
        given = [rng.normal(size=shape).astype(dtype) for shape in shapes]
        tolerance = 1e-3 if dtype == "float32" else 1e-9
        same([x, y], outputs, given, rtol=tolerance, modes=["OPWISE"])
