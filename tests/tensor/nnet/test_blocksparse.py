"""Products of chosen blocks, against loops over blocks."""

import numpy as np
import pytest

import opwise.tensor as T
from opwise import ProfileMode, Rop, function, grad, verify_grad
from opwise.tensor.nnet.blocksparse import (
    SparseBlockGemv,
    SparseBlockOuter,
    sparse_block_dot,
    sparse_block_gemv,
    sparse_block_outer,
)

pytestmark = pytest.mark.null

MODES = ["FAST_COMPILE", "FAST_RUN", "DEBUG_MODE", ProfileMode()]
ROWS = np.array([[0, 2], [1, 1]])
COLUMNS = np.array([[3, 0, 1], [2, 2, 0]])


@pytest.fixture
def values():
    """o, W, h of 2 examples: 2 of 3 blocks of length 4 in, 3 of 4 blocks of length 5 out."""
    rng = np.random.RandomState(0)
    return rng.rand(2, 3, 5), rng.rand(3, 4, 4, 5), rng.rand(2, 2, 4)


def gemv_by_loops(o, W, h, rows, columns):
    o = o.copy()
    for b, j, i in np.ndindex(len(o), columns.shape[1], rows.shape[1]):
        o[b, j] += h[b, i] @ W[rows[b, i], columns[b, j]]
    return o


def outer_by_loops(o, x, y, rows, columns):
    o = o.copy()
    for b, i, j in np.ndindex(len(x), rows.shape[1], columns.shape[1]):
        o[rows[b, i], columns[b, j]] += np.outer(x[b, i], y[b, j])
    return o


@pytest.mark.parametrize("mode", MODES)
def test_products_of_blocks_are_added(values, mode):
    o, W, h = T.dtensor3(), T.dtensor4(), T.dtensor3()
    f = function([o, W, h], sparse_block_gemv(o, W, h, ROWS, COLUMNS), mode=mode)
    given = [v.copy() for v in values]
    np.testing.assert_allclose(f(*given), gemv_by_loops(*values, ROWS, COLUMNS))
    np.testing.assert_array_equal(given[0], values[0])


@pytest.mark.parametrize("mode", MODES)
def test_outer_products_are_added_to_blocks(values, mode):
    y, W, h = values
    o, x, v, alpha = T.dtensor4(), T.dtensor3(), T.dtensor3(), T.dscalar()
    f = function([o, x, v], sparse_block_outer(o, x, v, ROWS, COLUMNS), mode=mode)
    np.testing.assert_allclose(f(W, h, y), outer_by_loops(W, h, y, ROWS, COLUMNS))
    scaled = sparse_block_outer(o, x, v, ROWS, COLUMNS, alpha)
    twice = function([o, x, v, alpha], scaled, mode=mode)(W, h, y, 2.0)
    np.testing.assert_allclose(twice, outer_by_loops(W, 2 * h, y, ROWS, COLUMNS))


@pytest.mark.parametrize("mode", MODES)
def test_biases_are_added_once(values, mode):
    _, W, h = values
    biases = np.random.rand(4, 5)
    w, x, b, i, j = T.dtensor4(), T.dtensor3(), T.dmatrix(), T.lmatrix(), T.lmatrix()
    f = function([w, x, i, b, j], sparse_block_dot(w, x, i, b, j), mode=mode)
    expected = gemv_by_loops(biases[COLUMNS], W, h, ROWS, COLUMNS)
    np.testing.assert_allclose(f(W, h, ROWS, biases, COLUMNS), expected)
    one = sparse_block_dot(w, h[0], ROWS[0], b, COLUMNS[0])
    np.testing.assert_allclose(function([w, b], one, mode=mode)(W, biases), expected[:1])


def test_gradients_agree_with_finite_differences(values):
    y, W, h = values
    rng = np.random.RandomState(0)

    def layer(o, w, x):
        return sparse_block_gemv(o, w, x, ROWS, COLUMNS)

    def slopes(o, w, x):
        return T.sum(grad(T.sum(layer(o, w, x) ** 2), w) ** 2)

    verify_grad(layer, [*values], rng=rng)
    verify_grad(slopes, [*values], rng=rng, n_tests=1, rel_tol=1e-3)
    verify_grad(lambda o, x, v: sparse_block_outer(o, x, v, ROWS, COLUMNS), [W, h, y], rng=rng)


def test_the_r_operator_is_the_transpose_of_the_gradient(values):
    variables = T.dtensor3(), T.dtensor4(), T.dtensor3()
    out = sparse_block_gemv(*variables, ROWS, COLUMNS)
    directions = [np.random.rand(*v.shape) for v in values]
    forward = function([*variables], Rop(out, [*variables], [T.constant(d) for d in directions]),
                       on_unused_input="ignore")  # fmt: skip
    weights = np.random.rand(2, 3, 5)
    slopes = function([*variables], grad(T.sum(out * weights), [*variables]),
                      on_unused_input="ignore")(*values)  # fmt: skip
    expected = sum((g * d).sum() for g, d in zip(slopes, directions, strict=True))
    np.testing.assert_allclose((forward(*values) * weights).sum(), expected)


def test_it_works_in_place_where_it_may(values):
    o, W, h = T.dtensor3(), T.dtensor4(), T.dtensor3()
    out = sparse_block_gemv(T.exp(o), W, h, ROWS, COLUMNS)
    f = function([o, W, h], [out, grad(T.sum(out), W)], mode="FAST_RUN")
    ops = [n.op for n in f.maker.fgraph.toposort()]
    assert SparseBlockGemv(True) in ops and SparseBlockOuter(True) in ops
    kept = function([o, W, h], sparse_block_gemv(o, W, h, ROWS, COLUMNS), mode="FAST_RUN")
    assert SparseBlockGemv() in [n.op for n in kept.maker.fgraph.toposort()]


def test_shapes_are_those_of_the_first_input(values):
    o, W, h = T.dtensor3(), T.dtensor4(), T.dtensor3()
    f = function([o, W, h], sparse_block_gemv(o, W, h, ROWS, COLUMNS).shape,
                 on_unused_input="ignore")  # fmt: skip
    assert f(*values).tolist() == [2, 3, 5]
    assert not any(isinstance(n.op, SparseBlockGemv) for n in f.maker.fgraph.toposort())


@pytest.mark.parametrize(
    ("make", "error"),
    [
        (lambda: sparse_block_gemv(T.dmatrix(), T.dtensor4(), T.dtensor3(), ROWS, COLUMNS),
         TypeError),
        (lambda: sparse_block_gemv(T.dtensor3(), T.dtensor4(), T.dtensor3(), ROWS[0], COLUMNS),
         TypeError),
        (lambda: sparse_block_gemv(T.dtensor3(), T.dtensor4(), T.dtensor3(), ROWS * 1.0, COLUMNS),
         AssertionError),
        (lambda: sparse_block_outer(T.dtensor3(), T.dtensor3(), T.dtensor3(), ROWS, COLUMNS),
         TypeError),
        (lambda: sparse_block_dot(T.dtensor4(), T.dtensor3(), ROWS[0], T.dmatrix(), COLUMNS),
         AssertionError),
    ],
)  # fmt: skip
def test_arguments_are_checked(make, error):
    with pytest.raises(error):
        make()
