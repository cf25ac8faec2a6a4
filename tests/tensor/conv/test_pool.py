"""Pooling against windows that are cut out one by one."""

import itertools

import numpy as np
import pytest

import theano
import theano.tensor as T
from opwise.gradient import Rop, grad, verify_grad
from opwise.nn import pool_2d, pool_3d
from opwise.tensor.conv.pool import MODES, max_pool_2d
from opwise.tensor.signal.pool import Pool, PoolGrad, max_pool_2d_same_size

LINKERS = ("py", "c|py")


def starts(n, w, s, ignore_border):
    if ignore_border:
        return range(0, n - w + 1, s)
    first = range(0, n, s)
    to_end = [i for i in first if i + w >= n][:1]
    return range(0, to_end[0] + 1, s) if to_end else first


def by_windows(x, ws, ignore_border, stride=None, pad=None, mode="max"):
    """The pooling, window by window."""
    n = len(ws)
    stride, pad = stride or ws, pad or (0,) * n
    lengths = [size + 2 * p for size, p in zip(x.shape[-n:], pad, strict=True)]
    grid = [list(starts(*part, ignore_border)) for part in zip(lengths, ws, stride, strict=True)]
    out = np.zeros((*x.shape[:-n], *map(len, grid)))
    for at in np.ndindex(*out.shape[-n:]):
        inside, size = [], 1
        for d, i in enumerate(at):
            first, end = grid[d][i], min(grid[d][i] + ws[d], lengths[d])
            low, high = max(first, pad[d]), min(end, lengths[d] - pad[d])
            inside.append(slice(low - pad[d], high - pad[d]))
            size *= end - first if mode == "average_inc_pad" else high - low
        window = x[(..., *inside)].reshape(*x.shape[:-n], -1)
        value = window.max(-1) if mode == "max" else window.sum(-1)
        out[(..., *at)] = value / size if mode.startswith("average") else value
    return out


def compiled(inputs, outputs, linker="c|py"):
    return theano.function(inputs, outputs, mode=theano.Mode(linker, "fast_run"))


def numbers(*shape):
    return np.random.default_rng(0).standard_normal(shape)


@pytest.mark.parametrize("linker", LINKERS)
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("ignore_border", [True, False])
def test_every_option(ignore_border, mode, linker):
    x, top = T.tensor4(), T.tensor4()
    value = numbers(2, 3, 7, 8)
    for ws, stride, pad in itertools.product(
        ((2, 2), (3, 2), (1, 5)), (None, (1, 2), (4, 3)), ((0, 0), (0, 1))
    ):
        if any(pad) and not ignore_border:
            continue
        y = pool_2d(x, ws, ignore_border, stride, pad, mode)
        gx = grad(None, x, known_grads={y: top})
        want = by_windows(value, ws, ignore_border, stride, pad, mode)
        f = compiled([x, top], [y, gx, y.shape], linker)
        g = np.cos(np.arange(want.size)).reshape(want.shape)
        got, got_x, shape = f(value, g)
        np.testing.assert_allclose(got, want, atol=1e-12)
        assert tuple(shape) == want.shape
        change = np.sin(np.arange(value.size)).reshape(value.shape)
        step = 1e-7
        moved = by_windows(value + step * change, ws, ignore_border, stride, pad, mode)
        np.testing.assert_allclose(
            np.vdot(got_x, change), np.vdot(g, (moved - want) / step), rtol=1e-5, atol=1e-5
        )


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("shape", [(3, 2, 33, 50), (1, 1, 1, 1), (0, 2, 5, 6), (40, 8, 9)], ids=str)
def test_known_windows_run_in_c(shape, mode, dtype):
    """On arrays of any layout, with the results of ``perform``."""
    x = T.TensorType(dtype, (False,) * len(shape))()
    seen = x[..., ::-1].T if len(shape) == 3 else x[..., ::2, :][..., ::-1]
    for within, ws, stride, pad in (
        (True, (2, 2), (2, 2), (0, 0)),
        (True, (3, 3), (2, 1), (1, 2)),
        (False, (3, 2), (2, 3), (0, 0)),
        (False, (2, 2), (3, 3), (0, 0)),
    ):
        y = pool_2d(seen, ws, within, stride, pad, mode)
        top = T.TensorType(dtype, (False,) * len(shape))()
        gx = grad(None, x, known_grads={y: top[..., ::-1]})
        value = numbers(*shape).astype(dtype)
        value.ravel()[::7] = np.nan
        plain, fast = (compiled([x, top], [y, gx, y.shape], linker) for linker in LINKERS)
        size = theano.function([x], y.shape)(value)
        g = np.cos(np.arange(np.prod(size))).reshape(size).astype(dtype)
        for want, got in zip(plain(value, g), fast(value, g), strict=True):
            np.testing.assert_allclose(got, want, rtol=1e-6, atol=1e-6)
        pools = [n for n in fast.maker.fgraph.toposort() if isinstance(n.op, Pool | PoolGrad)]
        assert len(pools) == 2
        assert all(fast.linked.in_c[fast.maker.fgraph.toposort().index(n)] for n in pools)


def test_volumes():
    x = T.TensorType("float64", (False,) * 5)()
    value = numbers(2, 3, 5, 6, 7)
    for mode in MODES:
        got = compiled([x], pool_3d(x, (2, 3, 2), True, (1, 2, 2), mode=mode))(value)
        np.testing.assert_allclose(got, by_windows(value, (2, 3, 2), True, (1, 2, 2), mode=mode))


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_windows_of_every_length_in_c(dtype, mode):
    """Shorter and longer than vectors, with many and few windows for each element."""
    for shape, ws, stride, pad, within in (
        ((2, 8, 8), (2, 2), (2, 2), (0, 0), True),
        ((2, 20, 70), (2, 2), (2, 2), (0, 0), True),
        ((2, 9, 75), (2, 2), (2, 2), (0, 0), True),
        ((2, 11, 32), (3, 2), (3, 2), (0, 0), True),
        ((2, 11, 33), (3, 2), (3, 2), (0, 0), False),
        ((1, 21, 67), (3, 3), (2, 2), (1, 1), True),
        ((2, 9, 33), (3, 3), (2, 2), (0, 0), True),
        ((2, 10, 38), (3, 3), (2, 2), (1, 0), True),
        ((2, 8, 34), (2, 2), (2, 2), (1, 0), True),
        ((1, 40, 37), (20, 3), (1, 2), (0, 0), True),
        ((1, 30, 33), (7, 5), (1, 1), (3, 2), True),
        ((1, 40, 3), (20, 3), (1, 1), (0, 0), True),
        ((1, 5, 100), (1, 40), (3, 7), (0, 39), True),
        ((2, 7, 7), (7, 7), (9, 9), (0, 0), True),
        ((1, 3, 4), (50, 60), (70, 80), (0, 0), False),
        ((1, 3, 4), (50, 60), (70, 80), (0, 0), True),
        ((1, 2, 5000), (2, 3), (1, 2), (0, 0), False),
        ((3, 7, 8, 9), (3, 3, 3), (2, 2, 2), (1, 1, 1), True),
        ((1, 9, 8, 7), (5, 4, 3), (1, 1, 1), (2, 0, 1), True),
        ((2, 4, 6, 41), (2, 2, 3), (1, 2, 2), (0, 1, 0), True),
        ((1, 5, 6, 40), (2, 3, 4), (3, 1, 5), (0, 0, 0), False),
        ((21, 7, 8), (3, 3), (2, 2), (1, 1), True),
        ((21, 7, 9), (2, 2), (2, 2), (0, 0), False),
        ((21, 12, 13), (7, 5), (1, 1), (3, 2), True),
        ((21, 3, 7, 8), (3, 3, 3), (2, 2, 2), (1, 1, 1), True),
        ((9, 70, 80), (3, 3), (1, 1), (1, 1), True),
        ((9, 3, 2100), (2, 3), (1, 1), (0, 0), False),
        ((9, 70, 75), (3, 3), (3, 3), (0, 0), True),
        ((9, 40, 75), (4, 4), (4, 4), (0, 0), False),
    ):
        n = len(ws)
        x, top = (T.TensorType(dtype, (False,) * len(shape))() for _ in range(2))
        y = (pool_2d if n == 2 else pool_3d)(x, ws, within, stride, pad, mode)
        gx = grad(None, x, known_grads={y: top})
        value = np.round(numbers(*shape) * 4).astype(dtype)
        plain, fast = (compiled([x, top], [y, gx], linker) for linker in LINKERS)
        size = theano.function([x], y.shape)(value)
        g = np.cos(np.arange(np.prod(size))).reshape(size).astype(dtype)
        tolerance = 1e-4 if dtype == "float32" else 1e-12
        for want, got in zip(plain(value, g), fast(value, g), strict=True):
            np.testing.assert_allclose(got, want, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("planes", [4, 37, 2000])
def test_planes_side_by_side(planes, dtype, mode):
    """Many planes have the bits that each has alone, in every layout and number of them."""
    for shape, ws, stride, pad, within in (
        ((8, 8), (2, 2), (2, 2), (0, 0), True),
        ((7, 7), (3, 3), (2, 2), (1, 1), True),
        ((5, 9), (3, 2), (1, 3), (0, 1), True),
        ((7, 7), (7, 7), (7, 7), (0, 0), True),
        ((6, 5), (4, 4), (3, 3), (0, 0), False),
        ((3, 4, 5), (2, 3, 2), (1, 2, 3), (1, 0, 1), True),
        ((1, 3), (1, 2), (1, 1), (0, 0), True),
        ((2, 35), (2, 2), (2, 2), (0, 0), True),
        ((90, 70), (3, 4), (1, 1), (1, 2), True),
        ((90, 70), (5, 3), (4, 1), (0, 0), False),
    ):
        if planes * np.prod(shape) > 1_000_000:
            continue
        x, top = (T.TensorType(dtype, (False,) * (1 + len(ws)))() for _ in range(2))
        y = (pool_2d if len(ws) == 2 else pool_3d)(x, ws, within, stride, pad, mode)
        f = compiled([x, top], [y, grad(None, x, known_grads={y: top})])
        value = np.round(numbers(planes, *shape) * 4).astype(dtype)
        value.ravel()[::97] = np.nan
        size = theano.function([x], y.shape)(value)
        g = np.cos(np.arange(np.prod(size))).reshape(size).astype(dtype)
        got = f(value, g)
        for k in (0, planes // 2, planes - 1):
            alone = f(value[k : k + 1], g[k : k + 1])
            for every, one in zip(got, alone, strict=True):
                np.testing.assert_array_equal(every[k], one[0])
        moved = f(value[:, ::-1].copy()[:, ::-1], np.asfortranarray(g))
        for every, one in zip(got, moved, strict=True):
            np.testing.assert_array_equal(every, one)
        equal = f(value, np.broadcast_to(g[:1], g.shape))[1]
        np.testing.assert_array_equal(equal[0], got[1][0])


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("shape", [(20, 0, 5), (20, 5, 0), (0, 5, 5)], ids=str)
def test_planes_without_elements(shape, mode):
    x = T.tensor3()
    for within in (True, False):
        y = pool_2d(x, (2, 2), within, mode=mode)
        results = [
            compiled([x], [y, grad(y.sum(), x)], linker)(np.zeros(shape)) for linker in LINKERS
        ]
        for want, got in zip(*results, strict=True):
            np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_pairs_of_any_layout(dtype):
    """Windows of two columns have a loop of their own, which leaves out what is not a pair."""
    x, top = T.TensorType(dtype, (False,) * 3)(), T.TensorType(dtype, (False,) * 3)()
    y = pool_2d(x, (2, 2), True)
    f = compiled([x, top], grad(None, x, known_grads={y: top}))
    wide = np.round(numbers(4, 19, 150) * 4).astype(dtype)
    wide[1, 6, 7] = np.nan
    for value in (wide[:, ::2, :75], wide[:, ::-1, :75], wide[..., ::2], wide[:, :, 3:37],
                  wide.transpose(0, 2, 1)):  # fmt: skip
        maxima = by_windows(value, (2, 2), True)
        g = np.cos(np.arange(maxima.size)).reshape(maxima.shape).astype(dtype)
        rows, columns = 2 * maxima.shape[1], 2 * maxima.shape[2]
        same = value[:, :rows, :columns] == maxima.repeat(2, 1).repeat(2, 2)
        expected = np.zeros_like(value)
        expected[:, :rows, :columns] = same * g.repeat(2, 1).repeat(2, 2)
        np.testing.assert_array_equal(f(value, g), expected)
        doubled = g.repeat(2, 2)[..., ::2]
        np.testing.assert_array_equal(f(value, doubled), expected)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("size", [2, 3])
def test_nan_at_every_place(size, dtype):
    """The maximum of a window with nan is nan, wherever in a vector it is."""
    value = np.tile(numbers(4, 35).astype(dtype), (4 * 35, 1, 1))
    for place, image in enumerate(value):
        image.ravel()[place] = np.nan
    x = T.TensorType(dtype, (False,) * 3)()
    plain, fast = (compiled([x], pool_2d(x, (size, size), True, (2, 2)), each) for each in LINKERS)
    expected = plain(value)
    assert np.isnan(expected).any(axis=(1, 2)).sum() > 35
    np.testing.assert_array_equal(fast(value), expected)


def test_windows_may_be_computed():
    x, ws = T.matrix(), T.lvector()
    y = pool_2d(x, ws, True)
    got, shape = compiled([x, ws], [y, y.shape])(numbers(7, 8), [2, 3])
    np.testing.assert_allclose(got, by_windows(numbers(7, 8), (2, 3), True))
    assert tuple(shape) == (3, 2)


def test_equal_maxima_share_no_gradient_but_each_gets_all():
    x = T.matrix()
    got = compiled([x], grad(pool_2d(x, (2, 2), True).sum(), x))(np.ones((2, 4)))
    np.testing.assert_array_equal(got, np.ones((2, 4)))


def test_integers_and_infinities():
    i, x = T.imatrix(), T.matrix()
    value = np.array([[-5, -7], [-9, -6]], "int32")
    assert compiled([i], pool_2d(i, (2, 2), True))(value).tolist() == [[-5]]
    assert compiled([x], pool_2d(x, (2, 2), True))(np.full((2, 2), -np.inf)) == -np.inf


@pytest.mark.parametrize("mode", MODES)
def test_gradients_of_gradients(mode):
    def squares(x):
        y = pool_2d(x, (2, 3), True, (1, 2), (1, 0), mode)
        return (grad((y**3).sum(), x) ** 2).sum()

    verify_grad(squares, [numbers(1, 2, 5, 6)], rng=np.random.RandomState(0))


@pytest.mark.parametrize("mode", MODES)
def test_the_r_operator(mode):
    x, change = T.tensor3(), T.tensor3()
    y = pool_2d(x, (2, 2), False, (1, 2), mode=mode)
    value, moved = numbers(2, 5, 6), np.cos(numbers(2, 5, 6))
    f = theano.function([x, change], Rop(y, x, change), on_unused_input="ignore")
    got = f(value, moved)
    step = 1e-7
    want = [by_windows(v, (2, 2), False, (1, 2), mode=mode) for v in (value + step * moved, value)]
    np.testing.assert_allclose(got, (want[0] - want[1]) / step, rtol=1e-5, atol=1e-6)


def test_maxima_in_place():
    x = T.tensor4()
    value = numbers(1, 1, 4, 6)
    got = compiled([x], max_pool_2d_same_size(x, (2, 3)))(value)
    maxima = by_windows(value, (2, 3), True)
    assert sorted(got[got != 0]) == sorted(maxima.ravel())
    np.testing.assert_array_equal(got[got != 0], value[got != 0])


def test_old_names_of_arguments():
    x = T.matrix()
    value = numbers(4, 6)
    with pytest.warns(UserWarning, match="ds is an old name: use ws"):
        y = pool_2d(x, ds=(2, 2), ignore_border=True)
    want = by_windows(value, (2, 2), True)
    np.testing.assert_allclose(compiled([x], y)(value), want)
    np.testing.assert_allclose(compiled([x], max_pool_2d(x, (2, 2), True))(value), want)
    with pytest.warns(UserWarning, match="ignore_border"):
        y = max_pool_2d(x, (2, 4))
    np.testing.assert_allclose(compiled([x], y)(value), by_windows(value, (2, 4), False))
    with pytest.raises(ValueError, match="give only ws"):
        pool_2d(x, ws=(2, 2), ds=(2, 2), ignore_border=True)


def test_arguments_that_cannot_be():
    x = T.tensor4()
    with pytest.raises(ValueError, match="needs ws"):
        pool_2d(x, ignore_border=True)
    with pytest.raises(ValueError, match=r"must be 'max', .* or 'average_exc_pad', not 'median'"):
        pool_2d(x, (2, 2), True, mode="median")
    with pytest.raises(NotImplementedError, match="ignore_border=True"):
        pool_2d(x, (2, 2), False, pad=(1, 1))
    with pytest.raises(NotImplementedError, match="smaller than windows"):
        pool_2d(x, (2, 2), True, pad=(2, 2))
    with pytest.raises(NotImplementedError, match="2 dimensions or more"):
        pool_2d(T.vector(), (2, 2), True)
    with pytest.raises(TypeError, match="ws must be 2 integers"):
        pool_2d(x, (2.0, 2.5), True)
    for ws, named in (
        (np.array([2, 0]), {}), ((2, 2, 2), {}), ((2, 2), {"stride": (0, 1)}),
        ((2, 2), {"stride": (1,)}), ((2, 2), {"pad": (-1, 0)}),
    ):  # fmt: skip
        with pytest.raises(ValueError, match=r"must be 2 integers, [01] or more, not"):
            pool_2d(x, ws, True, **named)
    n = T.ivector()
    f = compiled([x, n], pool_2d(x, n, True))
    with pytest.raises(ValueError, match=r"ws must be 2 integers, 1 or more, not \[2, 0\]"):
        f(numbers(1, 1, 4, 4), np.array([2, 0], "int32"))


def test_the_shape_of_a_result():
    assert Pool.out_shape((9, 3, 7, 8), (2, 3), True) == [9, 3, 3, 2]
    assert Pool.out_shape((9, 3, 7, 8), (2, 3), False, (3, 3)) == [9, 3, 3, 3]
    assert Pool.out_shape((7, 8), (2, 3), True, (1, 1), (1, 0)) == [8, 6]
