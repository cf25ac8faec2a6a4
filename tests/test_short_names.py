"""opwise.nn, opwise.linalg and opwise.random: what they hold, and what users of numpy expect."""

import gc
import subprocess
import sys
import weakref

import numpy as np
import pytest

import opwise
import opwise.tensor as T
from opwise import linalg, nn, random

pytestmark = pytest.mark.null

OLD = [T, T.nnet, T.nnet.bn, T.nnet.neighbours, T.signal.pool, T.extra_ops, T.nlinalg, T.slinalg]
#: names that are spelled otherwise there
RENAMED = {"inv": "matrix_inverse", "log_softmax": "logsoftmax", "one_hot": "to_one_hot"}


@pytest.mark.parametrize("module", [nn, linalg])
def test_short_names_stand_for_what_theano_has(module):
    for name in module.__all__:
        same = [getattr(old, RENAMED.get(name, name), None) for old in OLD]
        assert any(each is getattr(module, name) for each in same), name


def test_short_names_are_found_without_an_import():
    code = (
        "import opwise as ow; ow.nn.relu, ow.linalg.solve, ow.random.normal, ow.sparse.csr_matrix"
    )
    subprocess.run([sys.executable, "-W", "error", "-c", code], check=True)
    assert {"nn", "linalg", "random", "testing"} <= set(dir(opwise))


def test_a_star_import_hides_no_module_of_python():
    bound = {}
    exec("import random\nfrom opwise import *", bound)
    assert bound["random"].__name__ == "random"


SQUARE = np.random.RandomState(1).rand(4, 4) + np.eye(4)
SYMMETRIC = SQUARE @ SQUARE.T
TALL = SQUARE[:, :3]


def _triangular(solve, matrix):
    return lambda x: solve(matrix(x), T.arange(4.0))


@pytest.mark.parametrize(
    ("ours", "theirs", "value"),
    [
        (linalg.cholesky, np.linalg.cholesky, SYMMETRIC),
        (linalg.det, np.linalg.det, SQUARE),
        (linalg.inv, np.linalg.inv, SQUARE),
        (linalg.pinv, np.linalg.pinv, TALL),
        (linalg.norm, np.linalg.norm, TALL),
        (lambda x: linalg.norm(x, 1), lambda x: np.linalg.norm(x, 1), TALL),
        (lambda x: linalg.norm(x[0]), lambda x: np.linalg.norm(x[0]), TALL),
        (linalg.trace, np.trace, SQUARE),
        (linalg.eigh, np.linalg.eigh, SYMMETRIC),
        (linalg.eigvalsh, np.linalg.eigvalsh, SYMMETRIC),
        (linalg.eig, np.linalg.eig, SYMMETRIC),
        (linalg.qr, np.linalg.qr, TALL),
        (linalg.svd, np.linalg.svd, TALL),
        (lambda x: linalg.svd(x, compute_uv=False), lambda x: np.linalg.svd(x)[1], TALL),
        (lambda x: linalg.kron(x, x), lambda x: np.kron(x, x), TALL),
        (
            lambda x: linalg.solve(x, T.arange(4.0)),
            lambda x: np.linalg.solve(x, np.arange(4.0)),
            SQUARE,
        ),
        (
            lambda x: linalg.solve_lower_triangular(x, T.arange(4.0)),
            lambda x: np.linalg.solve(np.tril(x), np.arange(4.0)),
            SQUARE,
        ),
        (
            lambda x: linalg.solve_upper_triangular(x, T.arange(4.0)),
            lambda x: np.linalg.solve(np.triu(x), np.arange(4.0)),
            SQUARE,
        ),
    ],
)
def test_linear_algebra_is_that_of_numpy(ours, theirs, value):
    x = T.dmatrix()
    result = ours(x)
    several = isinstance(result, list | tuple)
    computed = opwise.function([x], list(result) if several else result)(value)
    expected = theirs(value)
    for one, other in zip(*((computed, expected) if several else ([computed], [expected])),
                          strict=True):  # fmt: skip
        np.testing.assert_allclose(one, other, rtol=1e-9, atol=1e-12)


DRAWS = {
    "normal": (lambda: random.normal(3.0, 2.0, (5000,)), 3.0, 2.0),
    "normal of parameters": (lambda: random.normal(T.ones(5000), T.ones(5000)), 1.0, 1.0),
    "uniform": (lambda: random.uniform(1.0, 3.0, (5000,)), 2.0, np.sqrt(1 / 3)),
    "integers": (lambda: random.integers(2, 5, (5000,)), 3.0, np.sqrt(2 / 3)),
    "integers below": (lambda: random.integers(3, size=(5000,)), 1.0, np.sqrt(2 / 3)),
    "binomial": (lambda: random.binomial(4, 0.5, (5000,)), 2.0, 1.0),
    "poisson": (lambda: random.poisson(4.0, (5000,)), 4.0, 2.0),
    "choice": (lambda: random.choice([1, 5], (5000,)), 3.0, 2.0),
}


@pytest.mark.parametrize("name", DRAWS)
def test_numbers_are_drawn_anew_at_every_call(name):
    draw, mean, deviation = DRAWS[name]
    random.seed(7)
    f = opwise.function([], draw())
    first, second = f(), f()
    assert first.shape == (5000,) and not np.array_equal(first, second)
    np.testing.assert_allclose(first.mean(), mean, atol=0.15)
    np.testing.assert_allclose(first.std(), deviation, rtol=0.1)
    random.seed(7)
    np.testing.assert_array_equal(opwise.function([], draw())(), first)
    third = f()  # seed leaves what was made before as it is
    assert not np.array_equal(third, first)


def test_bounds_and_shapes():
    random.seed(1)
    assert opwise.function([], random.uniform())().shape == ()
    assert set(opwise.function([], random.integers(2, 4, (50,)))()) == {2, 3}
    assert sorted(opwise.function([], random.permutation(5))()) == [0, 1, 2, 3, 4]
    counts = opwise.function([], random.multinomial(6, [0.5, 0.5], (3,)))()
    assert counts.shape == (3, 2) and counts.sum(axis=1).tolist() == [6, 6, 6]
    assert random.normal(size=(2,), dtype="float32").dtype == "float32"


def test_the_stream_keeps_no_variables():
    drawn = random.normal(size=(2,))
    kept = weakref.ref(drawn)
    del drawn
    gc.collect()
    assert kept() is None
