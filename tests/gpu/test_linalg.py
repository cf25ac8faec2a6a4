"""Programs with linear algebra on a device: training steps that move no matrix to the host."""

import numpy as np
import pytest

import opwise
import opwise.tensor as T
from opwise import Mode, ProfileMode
from opwise.gpu.lowering import lower
from opwise.gpu.placement.placement import Placement
from opwise.gpu.placement.transfers import GpuFromHost, HostFromGpu
from opwise.linalg import cholesky, det, eigh, qr, solve_lower_triangular, svd
from opwise.tensor.fft import rfft_op
from opwise.tensor.nlinalg import SVD, Det, MatrixInverse, QRFull, matrix_inverse
from opwise.tensor.slinalg import Cholesky, Solve

pytestmark = pytest.mark.usefixtures("cupy")

N = 12
RNG = np.random.default_rng(3)
X = RNG.normal(size=(N, 3)).astype("float32")
Y = RNG.normal(size=N).astype("float32")


def process(mode):
    """A step of the maximum likelihood of a Gaussian process, by its kernel's scales."""
    x, y = opwise.shared(X, "x"), opwise.shared(Y, "y")
    scales = opwise.shared(np.ones(3, "float32"), "scales")
    z = x * scales
    distances = ((z[:, None, :] - z[None, :, :]) ** 2).sum(2)
    covariance = T.exp(-distances / np.float32(2)) + np.float32(0.1) * T.eye(N, dtype="float32")
    factor = cholesky(covariance)
    white = solve_lower_triangular(factor, y)
    cost = (white**2).sum() / 2 + T.log(T.diagonal(factor)).sum()
    updates = [(scales, scales - np.float32(0.01) * T.grad(cost, scales))]
    return opwise.function([], cost, updates=updates, mode=mode), scales


def regression(mode):
    """A step of a linear model whose noise is correlated: an inverse and a determinant."""
    x, y = opwise.shared(X, "x"), opwise.shared(Y, "y")
    root = opwise.shared((np.eye(N) + 0.1 * RNG_ROOT).astype("float32"), "root")
    weights = opwise.shared(np.zeros(3, "float32"), "weights")
    covariance = T.dot(root, root.T)
    error = y - T.dot(x, weights)
    cost = T.dot(error, T.dot(matrix_inverse(covariance), error)) + T.log(det(covariance))
    updates = [
        (v, v - np.float32(0.01) * g)
        for v, g in zip((weights, root), T.grad(cost, [weights, root]), strict=True)
    ]
    return opwise.function([], cost, updates=updates, mode=mode), root


RNG_ROOT = RNG.normal(size=(N, N))
USED = {process: (Cholesky, Solve), regression: (MatrixInverse, Det)}


@pytest.mark.parametrize("make", [process, regression])
@pytest.mark.parametrize("kind", [Mode, ProfileMode])
def test_training(make, kind):
    (there, found), (here, expected) = make(kind("cupy", "fast_run")), make(None)
    placed = there.maker.fgraph.find_feature(Placement).lowered
    used = [n for n in there.linked.order if isinstance(n.op, USED[make])]
    assert {type(n.op) for n in used} == set(USED[make]) and all(n in placed for n in used)
    moved = [n for n in there.linked.order if isinstance(n.op, GpuFromHost | HostFromGpu)]
    assert all(n.outputs[0].type.ndim == 0 for n in moved)  # the cost
    for _ in range(6):
        np.testing.assert_allclose(there(), here(), rtol=1e-3)
    np.testing.assert_allclose(found.get_value(), expected.get_value(), rtol=1e-3, atol=1e-4)


def test_a_step_that_fails_changes_nothing():
    m = opwise.shared(np.eye(3, dtype="float32"), "m")
    total = opwise.shared(np.zeros((3, 3), "float32"), "total")
    updates = [(m, m - np.float32(0.5) * T.eye(3, dtype="float32")), (total, total + cholesky(m))]
    f = opwise.function([], updates=updates, mode=Mode("cupy", "fast_run"))
    f(), f()
    before = total.get_value()
    for _ in range(2):
        with pytest.raises(np.linalg.LinAlgError, match="not positive definite"):
            f()
        np.testing.assert_array_equal(total.get_value(), before)
        np.testing.assert_array_equal(m.get_value(), np.zeros((3, 3)))
    m.set_value(np.eye(3, dtype="float32"))
    f()
    np.testing.assert_array_equal(total.get_value(), before + np.eye(3))


def test_factors_make_up_the_matrix():
    m, square = T.fmatrix("m"), T.fmatrix("square")
    u, s, v = svd(m, full_matrices=0)
    q, r = qr(m)
    w, vectors = eigh(square)
    outs = [T.dot(u * s, v), T.dot(q, r), T.dot(vectors * w, vectors.T)]
    f = opwise.function([m, square], outs, mode=Mode("cupy", "fast_run"))
    symmetric = (X.T @ X).astype("float32")
    placed = f.maker.fgraph.find_feature(Placement).lowered
    assert {SVD, QRFull} <= {type(n.op) for n in placed}
    for found, expected in zip(f(X, symmetric), (X, X, symmetric), strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-3, atol=1e-5)


def test_systems_in_place():
    """An Op that may overwrite its input gives the same result."""
    a = opwise.shared((np.eye(N) + X @ X.T).astype("float32"), "a")
    b = opwise.shared(Y, "b")
    outs = [cholesky(a * a), Solve()(a, b + b)]
    there = opwise.function([], outs, mode=Mode("cupy", "fast_run"))
    here = opwise.function([], outs)
    destroying = [n.op for n in there.linked.order if isinstance(n.op, Cholesky | Solve)]
    assert len(destroying) == 2 and all(op.destroy_map for op in destroying)
    for _ in range(3):
        for found, expected in zip(there(), here(), strict=True):
            np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)


def test_gradients_of_transforms():
    x = opwise.shared(RNG.normal(size=(2, 8)).astype("float32"), "x")
    cost = (rfft_op(x) ** 2)[:, :, 0].sum()
    updates = [(x, x - np.float32(0.01) * T.grad(cost, x))]
    f = opwise.function([], updates=updates, mode=Mode("cupy", "fast_run"))
    expected = opwise.function([], x - np.float32(0.01) * T.grad(cost, x))()
    f()
    np.testing.assert_allclose(x.get_value(), expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(("make", "dtype"), [
    (lambda: matrix_inverse(T.imatrix()), "int32"),
    (lambda: det(T.lmatrix()), "int64"),
    (lambda: Solve()(T.fmatrix(), T.ivector()), "int32"),
    (lambda: svd(T.imatrix(), compute_uv=0), "int32"),
])  # fmt: skip
def test_integers_stay_on_the_host(make, dtype):
    assert lower(make().owner) == f"cuSOLVER has no routines for {dtype}"


def test_complex_matrices_stay_on_the_host():
    assert lower(matrix_inverse(T.cmatrix()).owner) == "complex64 arrays run on the host"
