"""C steps of LAPACK: they agree with ``perform`` for every layout, and fail as it does."""

import itertools
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import opwise
import opwise.tensor as T
from opwise import In, Mode, function, linalg, shared
from opwise.tensor.linalg import operands
from opwise.tensor.slinalg import Cholesky, Solve
from opwise.tensor.type import tensor_type

pytestmark = pytest.mark.c

IN_C, IN_PYTHON = Mode("c|py", "fast_compile"), Mode("py", "fast_compile")
LinAlgError = np.linalg.LinAlgError


def layouts(a):
    """Yield an array in several layouts: by rows, by columns, both with gaps, and neither."""
    yield a
    yield np.asfortranarray(a)
    if a.ndim == 2:
        for order in "CF":
            wide = np.zeros([n + 3 for n in a.shape], a.dtype, order)
            wide[tuple(slice(1, n + 1) for n in a.shape)] = a
            yield wide[tuple(slice(1, n + 1) for n in a.shape)]
    apart = np.zeros([2 * n + 1 for n in a.shape], a.dtype)[(slice(1, None, 2),) * a.ndim]
    apart[...] = a
    yield apart
    yield a[::-1].copy()[::-1]


def compiled(op, shapes, dtype, mode):
    inputs = [tensor_type(dtype, (False,) * len(s))() for s in shapes]
    outputs = op(*inputs)
    outputs = outputs if isinstance(outputs, list) else [outputs]
    f = function(inputs, outputs, mode=mode)
    assert all(f.linked.in_c) is (mode is IN_C)
    return f, [v.owner.outputs.index(v) for v in outputs], outputs


def compare(op, shapes, dtype="float64", make=None):
    """Compare the step of ``op`` with ``perform`` for arrays of these shapes, in every layout."""
    rng = np.random.default_rng(0)
    in_c, _, outputs = compiled(op, shapes, dtype, IN_C)
    in_python, _, _ = compiled(op, shapes, dtype, IN_PYTHON)
    values = [rng.normal(size=s) for s in shapes]
    values = [v.astype(dtype) for v in (make(*values) if make else values)]
    expected = in_python(*values)
    for arguments in itertools.product(*map(layouts, values)):
        before = [a.copy() for a in arguments]
        for var, found, value in zip(outputs, in_c(*arguments), expected, strict=True):
            assert found.shape == value.shape and found.dtype == value.dtype
            own = getattr(var.tag, "values_eq_approx", None)
            if own is not None:
                assert own(value, found)
            if own is None or dtype == "float64":
                tolerance = 1e-9 if dtype == "float64" else 2e-3
                np.testing.assert_allclose(found, value, rtol=tolerance, atol=tolerance)
        for a, b in zip(arguments, before, strict=True):
            np.testing.assert_array_equal(a, b)


def definite(x):
    return (x @ x.T + np.eye(len(x)),)


def regular(a, *rest):
    return (a + 4 * np.sqrt(len(a)) * np.eye(len(a)), *rest)


SIZES = (0, 1, 2, 5, 40)
OBLONG = [(m, n) for m in (0, 1, 3, 20) for n in (0, 1, 4, 20)]
both = pytest.mark.parametrize("dtype", ["float64", "float32"])


@pytest.mark.parametrize("n", [1, 5, 70])
@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf, -1e3])
@pytest.mark.parametrize("lower", [True, False])
def test_factors_of_what_is_not_positive_definite(n, value, lower):
    op = Cholesky(lower, on_error="nan", check_finite=False)
    f, _, _ = compiled(op, [(n, n)], "float64", IN_C)
    whole = definite(np.random.default_rng(0).normal(size=(n, n)))[0]
    assert np.isfinite(f(whole)[0]).all()
    for at in {0, n // 2, n - 1}:
        bad = whole.copy()
        bad[at, at] = value
        assert np.isnan(f(bad)[0]).all()


@pytest.mark.parametrize("structure", ["general", "lower_triangular", "upper_triangular"])
@pytest.mark.parametrize("right", [(5,), (5, 3)])
def test_systems_without_a_solution(structure, right):
    op = Solve(structure, on_error="nan", check_finite=False)
    compare(op, [(5, 5), right], make=regular)
    f, _, _ = compiled(op, [(5, 5), right], "float64", IN_C)
    for b in layouts(np.ones(right)):
        (found,) = f(np.zeros((5, 5)), b)
        assert found.shape == right and np.isnan(found).all()


@pytest.mark.parametrize("structure", ["lower_triangular", "upper_triangular"])
@pytest.mark.parametrize("right", [(5,), (5, 3)])
def test_diagonals_that_count_as_ones(structure, right):
    compare(Solve(structure, unit_diagonal=True), [(5, 5), right])


@both
@pytest.mark.parametrize("n", SIZES)
@pytest.mark.parametrize("lower", [True, False])
@pytest.mark.parametrize("on_error", ["raise", "nan"])
def test_cholesky(n, lower, on_error, dtype):
    compare(Cholesky(lower, on_error), [(n, n)], dtype, definite)


@both
@pytest.mark.parametrize("n", SIZES)
@pytest.mark.parametrize("op", [linalg.inv, linalg.det])
def test_inverse_and_determinant(op, n, dtype):
    compare(op, [(n, n)], dtype, lambda x: (regular(x)[0] / 24,))


@both
@pytest.mark.parametrize("n", SIZES)
@pytest.mark.parametrize("columns", [(), (0,), (1,), (3,)])
@pytest.mark.parametrize("structure", ["general", "lower_triangular", "upper_triangular"])
def test_solve(structure, n, columns, dtype):
    compare(Solve(structure), [(n, n), (n, *columns)], dtype, regular)


@both
@pytest.mark.parametrize("shape", OBLONG)
@pytest.mark.parametrize(
    "op",
    [
        linalg.svd, lambda x: linalg.svd(x, 0), lambda x: linalg.svd(x, compute_uv=0), linalg.qr,
        lambda x: linalg.qr(x, "complete"), lambda x: linalg.qr(x, "r"),
    ],
)  # fmt: skip
def test_singular_values_and_qr(op, shape, dtype):
    compare(op, [shape], dtype)


@both
@pytest.mark.parametrize("n", SIZES)
@pytest.mark.parametrize("half", ["L", "U"])
def test_eigenvalues(half, n, dtype):
    compare(lambda x: linalg.eigh(x, half), [(n, n)], dtype)
    if n:  # scipy refuses empty matrices
        compare(lambda x: linalg.eigvalsh(x, None, half == "L"), [(n, n)], dtype)


@pytest.mark.parametrize("n", [3, 120])
@pytest.mark.parametrize(
    ("op", "value", "error", "text"),
    [
        (linalg.cholesky, -1, LinAlgError, r"1-th leading minor|info = \[1\]"),
        (linalg.cholesky, np.nan, ValueError, "array must not contain infs or NaNs"),
        (Cholesky(on_error="nan"), np.inf, ValueError, "array must not contain infs or NaNs"),
        (linalg.inv, 0, LinAlgError, "Singular matrix"),
        (lambda x: linalg.solve(x, x), 0, LinAlgError, "Singular matrix"),
        (lambda x: linalg.solve(x, x), np.nan, ValueError, "array must not contain infs or NaNs"),
        (lambda x: linalg.solve_lower_triangular(x, x), 0, LinAlgError, "at diagonal 0"),
        (lambda x: linalg.eigvalsh(x, None), np.inf, ValueError, "array must not contain infs"),
        (linalg.svd, np.nan, LinAlgError, "SVD did not converge"),
    ],
)
def test_bad_values(op, value, error, text, n):
    """Both raise the same class, with an equal part of the text."""
    for mode in (IN_C, IN_PYTHON):
        f, _, _ = compiled(op, [(n, n)], "float64", mode)
        for _ in range(2):  # a failed call leaves nothing behind
            with pytest.raises(error, match=text):
                f(np.full((n, n), float(value)))
        assert np.isfinite(f(np.eye(n))[0]).all()


def test_nan_instead_of_an_error():
    for mode in (IN_C, IN_PYTHON):
        f, _, _ = compiled(Cholesky(on_error="nan"), [(3, 3)], "float64", mode)
        assert np.isnan(f(-np.eye(3))[0]).all()
        np.testing.assert_array_equal(f(np.eye(3))[0], np.eye(3))


@pytest.mark.parametrize(
    "op", [linalg.cholesky, linalg.inv, linalg.det, lambda x: linalg.solve(x, x),
           linalg.eigh, lambda x: linalg.eigvalsh(x, None)],
)  # fmt: skip
def test_oblong_matrices(op):
    for mode in (IN_C, IN_PYTHON):
        f, _, _ = compiled(op, [(2, 3)], "float64", mode)
        with pytest.raises(ValueError, match="square"):
            f(np.ones((2, 3)))


def test_right_hand_sides_of_other_lengths():
    for mode in (IN_C, IN_PYTHON):
        f, _, _ = compiled(linalg.solve, [(3, 3), (3,)], "float64", mode)
        with pytest.raises(ValueError, match="incompatible dimensions"):
            f(np.eye(3), np.ones(4))


def test_determinants_of_large_and_small_factors():
    """The product of some of the factors would overflow, the whole does not."""
    f, _, _ = compiled(linalg.det, [(4, 4)], "float64", IN_C)
    np.testing.assert_allclose(f(np.diag([1e200, 1e200, 1e-200, -1e-199])), [-10])
    assert f(np.diag([1e200, 1e200, 1.0, 1.0]))[0] == np.inf
    assert np.isnan(f(np.diag([np.nan, 1, 1, 1]))[0])


def test_other_dtypes_run_perform():
    for dtype in ("int64", "complex128", "float16"):
        x = tensor_type(dtype, (False, False))()
        assert function([x], linalg.inv(x), mode=IN_C).linked.in_c == (False,)
    x, y = T.fmatrix(), T.dvector()
    assert function([x, y], linalg.solve(x, y), mode=IN_C).linked.in_c == (False,)
    x, y = T.dmatrix(), T.dmatrix()
    assert function([x, y], linalg.eigvalsh(x, y), mode=IN_C).linked.in_c == (False,)
    assert function([x], linalg.qr(x, "raw"), mode=IN_C).linked.in_c == (False,)


def test_without_scipy_perform_runs(monkeypatch):
    for module in ("operands", "factor", "systems"):
        monkeypatch.setattr(
            sys.modules[f"opwise.tensor.linalg.{module}"], "has_scipy", lambda: False
        )
    monkeypatch.setattr("opwise.linkers.csteps.has_scipy", operands.has_scipy)
    x = T.dmatrix()
    f = function([x], [linalg.cholesky(x), linalg.solve(x, x)], mode=IN_C)
    assert not any(f.linked.in_c)
    factor, identity = f(4 * np.eye(3))
    np.testing.assert_allclose(factor, 2 * np.eye(3))
    np.testing.assert_allclose(identity, np.eye(3))


# --- in place -----------------------------------------------------------------------------------


def test_in_place():
    """Intermediate values are overwritten, arguments only if the caller lends them."""
    x, b = T.dmatrix(), T.dvector()
    factor = linalg.cholesky(x + x)
    f = function([x, b], linalg.solve_lower_triangular(factor, T.exp(b)), mode="FAST_RUN")
    ops = [node.op for node in f.maker.fgraph.toposort()]
    assert [op.destroy_map for op in ops if isinstance(op, Cholesky | Solve)] == [
        {0: [0]},
        {0: [1]},
    ]
    value, right = np.eye(3) + 0.5, np.arange(3.0)
    expected = np.linalg.solve(np.linalg.cholesky(2 * value), np.exp(right))
    np.testing.assert_allclose(f(value, right), expected)
    lent = function([In(x, borrow=True, mutable=True)], linalg.cholesky(x), mode="FAST_RUN")
    value = 4 * np.eye(3)
    np.testing.assert_array_equal(lent(value), 2 * np.eye(3))
    assert (value == 2 * np.eye(3)).all()


@pytest.mark.parametrize("n", [3, 120])
def test_a_failed_update_in_place_changes_nothing(n):
    s = shared(4 * np.eye(n))
    f = function([], updates=[(s, linalg.cholesky(s) * 1.0)], mode="FAST_RUN")
    f()
    np.testing.assert_array_equal(s.get_value(), 2 * np.eye(n))
    s.set_value(-np.eye(n))
    with pytest.raises(LinAlgError, match="not positive definite"):
        f()
    np.testing.assert_array_equal(s.get_value(), -np.eye(n))


def test_in_place_in_every_layout():
    rng = np.random.default_rng(1)
    a, b = rng.normal(size=(5, 5)) + 9 * np.eye(5), rng.normal(size=(5, 3))
    x, y = T.dmatrix(), T.dmatrix()
    for op in (linalg.solve, linalg.solve_lower_triangular):
        inputs = [x, In(y, borrow=True, mutable=True)]
        f = function(inputs, op(x, y), mode="FAST_RUN")
        assert any(node.op.destroy_map for node in f.maker.fgraph.toposort())
        expected = np.linalg.solve(np.tril(a) if op is not linalg.solve else a, b)
        for right in list(layouts(b.copy())):
            np.testing.assert_allclose(f(a, right), expected)
    f = function([In(x, borrow=True, mutable=True)], linalg.cholesky(x), mode="FAST_RUN")
    for square in list(layouts(a @ a.T)):
        np.testing.assert_allclose(f(square), np.linalg.cholesky(a @ a.T))


# --- loading ------------------------------------------------------------------------------------

LOADING = """
import sys
import numpy as np, opwise, opwise.tensor as T
from opwise.linkers import blasload
from opwise.modes.mode import Mode
x = T.dmatrix()
f = opwise.function([x], T.linalg.cholesky(x), mode=Mode("c|py", "fast_compile"))
assert f.linked.in_c == (True,) and "scipy" not in sys.modules
{before}
try:
    np.testing.assert_array_equal(f(4 * np.eye(3)), 2 * np.eye(3))
except ValueError as e:
    print(e)
assert "scipy.linalg" not in sys.modules
"""


@pytest.mark.parametrize(
    ("before", "text"),
    [
        ("", ""),
        ("blasload._LAPACK['potrf'] = 'char *|long *'", "uses other integers for BLAS"),
        (
            "def fail(n): raise ImportError('no LAPACK')\nblasload._cython_module = fail",
            "no LAPACK",
        ),
    ],
)
def test_lapack_is_loaded_at_the_first_step_that_needs_it(before, text):
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", LOADING.format(before=before)], capture_output=True,
        text=True, cwd=Path(opwise.__file__).parents[1], check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert text in done.stdout and bool(text) == bool(done.stdout)
