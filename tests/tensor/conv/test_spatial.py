"""Spatial transformers against sampling point by point."""

import numpy as np
import pytest

import theano
import theano.tensor as T
from opwise.gradient import grad, verify_grad
from opwise.tensor.conv.spatial import (
    BORDERS,
    TransformerGradI,
    TransformerGrid,
    TransformerSampler,
    spatialtf,
)

LINKERS = ("py", "c|py")


def compiled(inputs, outputs, linker="c|py"):
    return theano.function(inputs, outputs, mode=theano.Mode(linker, "fast_run"))


def numbers(*shape):
    return np.random.default_rng(0).standard_normal(shape)


def by_points(x, theta, width, height, border):
    """The samples, point by point."""
    batch, channels, rows, columns = x.shape
    h, w = int(np.ceil(rows * height)), int(np.ceil(columns * width))
    out = np.zeros((batch, channels, h, w))
    for n in range(batch):
        for i, v in enumerate(np.linspace(-1, 1, h)):
            for j, u in enumerate(np.linspace(-1, 1, w)):
                px, py = theta[n] @ [u, v, 1]
                px, py = (px + 1) * (columns - 1) / 2, (py + 1) * (rows - 1) / 2
                if border == "nearest":
                    px, py = np.clip(px, 0, columns - 1), np.clip(py, 0, rows - 1)
                for a in (int(np.floor(py)), int(np.floor(py)) + 1):
                    for b in (int(np.floor(px)), int(np.floor(px)) + 1):
                        if 0 <= a < rows and 0 <= b < columns:
                            share = max(0, 1 - abs(py - a)) * max(0, 1 - abs(px - b))
                            out[n, :, i, j] += share * x[n, :, a, b]
    return out


@pytest.mark.parametrize("linker", LINKERS)
@pytest.mark.parametrize("border", BORDERS)
@pytest.mark.parametrize(
    ("shape", "width", "height"),
    [((2, 3, 5, 7), 1, 1), ((1, 1, 6, 4), 1.3, 0.7), ((3, 2, 1, 5), 2, 3), ((1, 2, 9, 33), 2.5, 2)],
)
def test_samples(shape, width, height, border, linker):
    x, theta = T.dtensor4(), T.dtensor3()
    f = compiled([x, theta], spatialtf(x, theta, width, height, border), linker)
    a, t = numbers(*shape), numbers(shape[0], 2, 3)
    np.testing.assert_allclose(f(a, t), by_points(a, t, width, height, border), atol=1e-12)
    whole = np.array([[[1.0, 0, 0], [0, 1, 0]]] * shape[0])
    if width == height == 1:
        np.testing.assert_allclose(f(a, whole), a, atol=1e-14)


@pytest.mark.parametrize("border", BORDERS)
def test_gradients_by_all_inputs(border):
    verify_grad(
        lambda x, t: spatialtf(x, t, 0.8, 1.4, border), [numbers(2, 3, 5, 4), numbers(2, 2, 3)],
        rng=np.random.RandomState(1),
    )  # fmt: skip
    grid = np.random.default_rng(1).uniform(-1.3, 1.3, (2, 3, 4, 2))
    verify_grad(TransformerSampler(border), [numbers(2, 3, 5, 6), grid],
                rng=np.random.RandomState(1))  # fmt: skip
    verify_grad(lambda t: TransformerGrid()(t, (2, 3, 4, 5)), [numbers(2, 2, 3)],
                rng=np.random.RandomState(1))  # fmt: skip


SECOND = [(2, 3, 5, 6), (1, 2, 1, 4), (2, 1, 2, 2)]


@pytest.mark.parametrize("shape", SECOND)
@pytest.mark.parametrize("border", BORDERS)
@pytest.mark.parametrize("k", (0, 1))
def test_second_derivatives_by_all_inputs(k, border, shape):
    grid = np.random.default_rng(1).uniform(-1.4, 1.4, (shape[0], 3, 4, 2))
    verify_grad(lambda *given: TransformerGradI(border)(*given)[k],
                [numbers(*shape), grid, numbers(*shape[:2], 3, 4)],
                rng=np.random.RandomState(1))  # fmt: skip


@pytest.mark.parametrize("border", BORDERS)
def test_second_derivatives_by_the_matrices(border):
    images = numbers(2, 3, 6, 5)

    def gradient(theta):
        return grad((spatialtf(images, theta, 1.3, 0.8, border) ** 3).sum(), theta)

    verify_grad(gradient, [0.5 * numbers(2, 2, 3)], rng=np.random.RandomState(1))


@pytest.mark.parametrize("shape", SECOND)
@pytest.mark.parametrize("border", BORDERS)
@pytest.mark.parametrize("which", ([0], [1], [0, 1]))
def test_directional_derivatives(which, border, shape):
    x, theta = T.dtensor4(), T.dtensor3()
    y = spatialtf(x, theta, 1.3, 1.1, border)
    at = [numbers(*shape), numbers(shape[0], 2, 3)]
    way = [np.cos(a) for a in at]
    f = compiled([x, theta], T.Rop(y, [[x, theta][k] for k in which], [way[k] for k in which]))
    g = compiled([x, theta], y)
    moves = [w * (k in which) for k, w in enumerate(way)]
    ahead, behind = ([a + e * w for a, w in zip(at, moves, strict=True)] for e in (1e-7, -1e-7))
    np.testing.assert_allclose(f(*at), (g(*ahead) - g(*behind)) / 2e-7, atol=1e-5)


@pytest.mark.parametrize("dtype", ("float32", "float64"))
@pytest.mark.parametrize("border", BORDERS)
def test_c_computes_what_python_does(border, dtype):
    x, theta = T.TensorType(dtype, (False,) * 4)(), T.TensorType(dtype, (False,) * 3)()
    y = spatialtf(x, theta, 1.2, 0.9, border)
    gx, gt = grad((y**2).sum(), [x, theta])
    a = numbers(4, 11, 3, 9).astype(dtype).transpose(0, 2, 1, 3)[:, :, ::-1]
    t = numbers(4, 2, 3).astype(dtype)
    t[0], t[1] = np.nan, 1e30
    results = [compiled([x, theta], [y, gx, gt], linker)(a, t) for linker in LINKERS]
    for python, c in zip(*results, strict=True):
        assert c.dtype == dtype and python.dtype == dtype
        np.testing.assert_allclose(c, python, rtol=1e-3 if dtype == "float32" else 1e-10, atol=1e-4)


@pytest.mark.parametrize("linker", LINKERS)
@pytest.mark.parametrize("shape", [(0, 3, 4, 4), (2, 0, 4, 4)])
def test_no_images_and_no_channels(shape, linker):
    x, theta = T.dtensor4(), T.dtensor3()
    y = spatialtf(x, theta)
    got, *back = compiled([x, theta], [y, *grad(y.sum(), [x, theta])], linker)(
        np.zeros(shape), np.ones((shape[0], 2, 3))
    )
    assert got.shape == shape
    assert back[0].shape == shape and back[1].shape == (shape[0], 2, 3) and not back[1].any()


@pytest.mark.parametrize("linker", LINKERS)
@pytest.mark.parametrize("shape", [(3, 1, 3), (3, 2, 1), (1, 2, 3), (4, 2, 3)])
def test_matrices_of_other_shapes(shape, linker):
    x, theta = T.dtensor4(), T.dtensor3()
    f = compiled([x, theta], spatialtf(x, theta), linker)
    with pytest.raises(ValueError, match=r"theta must have shape \(3, 2, 3\)"):
        f(np.ones((3, 5, 7, 7)), np.ones(shape))


@pytest.mark.parametrize("linker", LINKERS)
def test_grids_of_other_shapes(linker):
    x, grid, dy = T.dtensor4(), T.dtensor4(), T.dtensor4()
    f = compiled([x, grid], TransformerSampler()(x, grid), linker)
    with pytest.raises(ValueError, match=r"grid must have the shape \(batch, rows, columns, 2\)"):
        f(np.ones((1, 1, 3, 3)), np.ones((1, 2, 2, 3)))
    with pytest.raises(ValueError, match="the grid is of 2 images, but there are 1"):
        f(np.ones((1, 1, 3, 3)), np.ones((2, 2, 2, 2)))
    with pytest.raises(ValueError, match="no elements to sample"):
        f(np.ones((1, 1, 0, 3)), np.ones((1, 2, 2, 2)))
    g = compiled([x, grid, dy], TransformerGradI()(x, grid, dy), linker)
    with pytest.raises(ValueError, match=r"has shape \(1, 1, 2, 3\), not \(1, 1, 2, 2\)"):
        g(np.ones((1, 1, 3, 3)), np.ones((1, 2, 2, 2)), np.ones((1, 1, 2, 3)))


def test_arguments_that_cannot_be():
    with pytest.raises(ValueError, match="one of zero, nearest, not 'wrap'"):
        TransformerSampler("wrap")
    with pytest.raises(TypeError, match="inp must have 4 dimensions, not 2"):
        spatialtf(T.dmatrix(), T.dtensor3())
    with pytest.raises(TypeError, match="img must be floating-point, not int64"):
        TransformerSampler()(T.ltensor4(), T.dtensor4())


def test_a_network_learns_how_its_images_were_moved():
    """The matrix by which images were moved is found again by its gradient."""
    rng = np.random.default_rng(0)
    y, x = np.mgrid[-1:1:24j, -1:1:24j]
    spots = rng.uniform(-0.4, 0.4, (6, 1, 3, 2))
    images = sum(
        np.exp(-6 * ((x - spots[:, :, k, :1, None]) ** 2 + (y - spots[:, :, k, 1:, None]) ** 2))
        for k in range(3)
    )
    true = np.array([[0.9, 0.15, 0.1], [-0.1, 1.05, -0.08]])
    moved = by_points(images, [true] * 6, 1, 1, "zero")
    theta = theano.shared(np.array([[1.0, 0, 0], [0, 1, 0]]))
    guess = spatialtf(T.constant(images), T.tile(theta.dimshuffle("x", 0, 1), (6, 1, 1)),
                      border_mode="zero")  # fmt: skip
    cost = T.sqr(guess - moved).mean()
    train = theano.function([], cost, updates=[(theta, theta - 0.3 * T.grad(cost, theta))])
    first = train()
    for _ in range(400):
        last = train()
    assert last < first / 1000
    np.testing.assert_allclose(theta.get_value(), true, atol=0.02)
