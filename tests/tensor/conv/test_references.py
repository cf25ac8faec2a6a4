"""Convolution and pooling against scipy and interpolation, in every mode, on arrays of any layout.

``test_conv.py`` and ``test_pool.py`` go through the options one by one; here options are mixed.
"""

import numpy as np
import pytest
import scipy.signal

import theano
import theano.tensor as T
from opwise import nn
from opwise.gradient import grad, verify_grad
from opwise.nn import pool_2d, pool_3d
from opwise.tensor.conv.geometry import Geometry, checked_border_mode
from opwise.tensor.conv.pool import MODES
from opwise.tensor.nnet import abstract_conv
from opwise.tensor.type import tensor_type

COMPILERS = ("FAST_COMPILE", "FAST_RUN", "DEBUG_MODE")
TOLERANCE = {"float32": 1e-4, "float64": 1e-11}

#: the same numbers, in memory of another order
LAYOUTS = {
    "plain": lambda a: a,
    "Fortran": np.asfortranarray,
    "channels last": lambda a: np.moveaxis(np.ascontiguousarray(np.moveaxis(a, 1, -1)), -1, 1),
    "reversed": lambda a: a[:, ::-1, :, ::-1].copy()[:, ::-1, :, ::-1],
    "every second": lambda a: a.repeat(2, axis=0).repeat(2, axis=-1)[::2, ..., ::2],
    "part of more": lambda a: np.pad(a, 1)[(slice(1, -1),) * a.ndim],
    "first axes exchanged": lambda a: a.swapaxes(0, 1).copy().swapaxes(0, 1),
}


def numbers(*shape, seed=0, dtype="float64"):
    return np.random.default_rng(seed).standard_normal(shape).astype(dtype)


def variables(*arrays):
    return [tensor_type(a.dtype.name, (False,) * a.ndim).make_variable() for a in arrays]


def by_scipy(x, w, border_mode="valid", subsample=None, filter_flip=True, filter_dilation=None,
             num_groups=1):  # fmt: skip
    """The convolution, as sums of correlations of one channel."""
    n = x.ndim - 2
    steps, dilation = subsample or (1,) * n, filter_dilation or (1,) * n
    geometry = Geometry(checked_border_mode(border_mode, n), tuple(steps), tuple(dilation))
    x = np.pad(x.astype(float), [(0, 0), (0, 0), *geometry.pads(w.shape[2:])])
    wide = np.zeros((*w.shape[:2], *((k - 1) * d + 1 for k, d in zip(w.shape[2:], dilation,
                                                                     strict=True))))  # fmt: skip
    wide[(..., *(slice(None, None, d) for d in dilation))] = w
    correlate = scipy.signal.convolve if filter_flip else scipy.signal.correlate
    of_group = w.shape[0] // num_groups
    return np.array([
        [
            sum(
                correlate(image[k // of_group * w.shape[1] + c], filters[c], "valid", "direct")
                for c in range(w.shape[1])
            )[tuple(slice(None, None, s) for s in steps)]
            for k, filters in enumerate(wide)
        ]
        for image in x
    ])  # fmt: skip


def mixed(seed):
    """Return an image, a kernel and options that go together, all drawn."""
    rng = np.random.RandomState(seed)
    n = 3 if seed % 5 == 4 else 2
    groups = rng.choice([1, 1, 2, 3])
    channels, outputs = groups * rng.randint(1, 4), groups * rng.randint(1, 10)
    lengths = tuple(rng.randint(1, 6, n))
    options = {
        "border_mode": ["valid", "full", "half", 2, (1,) + (0,) * (n - 1), ((0, 2),) * n][
            rng.randint(6)],
        "subsample": tuple(rng.randint(1, 4, n)),
        "filter_dilation": tuple(rng.randint(1, 3, n)),
        "filter_flip": bool(rng.randint(2)),
        "num_groups": int(groups),
    }  # fmt: skip
    image = tuple((k - 1) * d + 1 + rng.randint(0, 9)
                  for k, d in zip(lengths, options["filter_dilation"], strict=True))  # fmt: skip
    dtype = ["float64", "float32"][rng.randint(2)]
    x = numbers(rng.randint(1, 4), channels, *image, dtype=dtype)
    w = numbers(outputs, channels // groups, *lengths, seed=1, dtype=dtype)
    return x, w, options


@pytest.mark.parametrize("mode", COMPILERS)
@pytest.mark.parametrize("seed", range(30))
def test_mixed_options(seed, mode):
    x, w, options = mixed(seed)
    vx, vw = variables(x, w)
    y = (nn.conv2d if x.ndim == 4 else nn.conv3d)(vx, vw, **options)
    b = T.arange(w.shape[0], dtype=x.dtype).dimshuffle("x", 0, *["x"] * (x.ndim - 2))
    got = theano.function([vx, vw], [y, T.maximum(y + b, 0)], mode=mode)(x, w)
    want = by_scipy(x, w, **options)
    size = TOLERANCE[x.dtype.name] * max(1, abs(want).max())
    np.testing.assert_allclose(got[0], want, rtol=0, atol=size)
    biased = want + np.arange(w.shape[0]).reshape(-1, *[1] * (x.ndim - 2))
    np.testing.assert_allclose(got[1], np.maximum(biased, 0), rtol=0, atol=2 * size)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize(
    ("image", "kernel", "options"),
    [
        ((2, 16, 13, 11), (8, 16, 3, 3), {"border_mode": "half"}),
        ((2, 12, 9, 9), (8, 12, 1, 1), {}),
        ((2, 6, 9, 10), (6, 1, 3, 3), {"num_groups": 6, "border_mode": 1}),
        ((1, 3, 31, 29), (8, 3, 11, 11), {"subsample": (4, 4)}),
        ((3, 1, 12, 12), (5, 1, 5, 5), {"filter_flip": False}),
    ],
    ids=["3x3", "1x1", "depthwise", "11x11", "first layer"],
)
def test_layouts_of_arguments(image, kernel, options, layout, dtype):
    """The convolution and its gradients, of arguments of all layouts at once."""
    x, w = numbers(*image, dtype=dtype), numbers(*kernel, seed=1, dtype=dtype)
    want = by_scipy(x, w, **options)
    g = numbers(*want.shape, seed=2, dtype=dtype)
    vx, vw, vg = variables(x, w, g)
    y = nn.conv2d(vx, vw, **options)
    f = theano.function([vx, vw, vg], [y, *grad(None, [vx, vw], known_grads={y: vg})])
    moved = LAYOUTS[layout]
    got, by_x, by_w = f(moved(x), moved(w), moved(g))
    for found, expected in zip((got, by_x, by_w), (want, *f(x, w, g)[1:]), strict=True):
        size = TOLERANCE[dtype] * max(1, abs(expected).max())
        np.testing.assert_allclose(found, expected, rtol=0, atol=size)
    inner = np.vdot(g.astype(float), want)
    assert abs(np.vdot(by_x.astype(float), x) - inner) <= 1e3 * TOLERANCE[dtype]
    assert abs(np.vdot(by_w.astype(float), w) - inner) <= 1e3 * TOLERANCE[dtype]


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("layout", LAYOUTS)
def test_layouts_of_what_is_pooled(layout, mode):
    x = numbers(2, 3, 9, 8)
    [vx] = variables(x)
    y = pool_2d(vx, (3, 2), True, (2, 1), (1, 0), mode)
    [vg] = variables(np.zeros((2, 3, 5, 7)))
    f = theano.function([vx, vg], [y, grad(None, vx, known_grads={y: vg})])
    g = numbers(2, 3, 5, 7, seed=1)
    moved = LAYOUTS[layout]
    for found, expected in zip(f(moved(x), moved(g)), f(x, g), strict=True):
        np.testing.assert_array_equal(found, expected)
    padded = np.pad(x, [(0, 0), (0, 0), (1, 1), (0, 0)],
                    constant_values=-np.inf if mode == "max" else 0)  # fmt: skip
    windows = np.lib.stride_tricks.sliding_window_view(padded, (3, 2), (2, 3))[:, :, ::2]
    if mode in ("max", "sum"):
        np.testing.assert_allclose(f(x, g)[0], getattr(windows, mode)((4, 5)))


@pytest.mark.parametrize("mode", COMPILERS)
def test_a_step_of_training(mode):
    """Convolution, bias, rectifier, pooling, and the gradients of all, against differences."""
    x, w, b = numbers(3, 2, 9, 8), numbers(4, 2, 3, 3, seed=1), numbers(4, seed=2)
    vx, vw, vb = variables(x, w, b)
    h = T.nnet.relu(nn.conv2d(vx, vw, border_mode="half") + vb.dimshuffle(0, "x", "x"), 0.1)
    cost = T.sqr(pool_2d(h, (2, 2), True, (1, 2))).sum()
    f = theano.function([vx, vw, vb], [cost, *grad(cost, [vx, vw, vb])], mode=mode)
    [c, *found] = f(x, w, b)
    for place, gradient in enumerate(found):
        change = 1e-6 * numbers(*gradient.shape, seed=9)
        ends = [_moved(f, (x, w, b), place, sign * change) for sign in (1, -1)]
        np.testing.assert_allclose(np.vdot(gradient, change), (ends[0] - ends[1]) / 2, rtol=1e-5)
    assert c > 0


def _moved(f, values, place, change):
    """The first output with one operand changed."""
    return f(*(v + change if k == place else v for k, v in enumerate(values)))[0]


#: what is made of convolutions, and the shapes of its operands
MADE = {
    "unshared": (lambda x, w: nn.conv2d(x, w, unshared=True, subsample=(2, 1)),
                 [(1, 1, 4, 3), (2, 2, 2, 1, 2, 2)]),
    "groups in volumes": (lambda x, w: nn.conv3d(x, w, num_groups=2, border_mode="half"),
                          [(1, 2, 3, 4, 3), (2, 1, 2, 1, 3)]),
    "transposed": (
        lambda x, w: nn.conv2d_transpose(x, w, (None, None, 7, 6), input_dilation=(2, 2)),
        [(1, 3, 3, 3), (3, 2, 3, 2)]),
    "by filters": (
        lambda x, g: abstract_conv.conv2d_grad_wrt_weights(x, g, (None, None, 2, 3)),
        [(2, 2, 4, 5), (2, 3, 3, 3)]),
    "separable": (lambda x, d, p: nn.separable_conv2d(x, d, p, 2, border_mode=1),
                  [(1, 2, 4, 4), (4, 1, 2, 2), (3, 4, 1, 1)]),
    "causal": (lambda x, w: nn.causal_conv1d(x, w, (2, 3, 2), filter_dilation=2),
               [(2, 3, 5), (2, 3, 2)]),
    "upsampling": (lambda x: abstract_conv.bilinear_upsampling(x, 2), [(1, 2, 3, 2)]),
    "upsampling by fractions": (
        lambda x: abstract_conv.bilinear_upsampling(x, frac_ratio=(3, 2), use_1D_kernel=False),
        [(1, 1, 3, 4)]),
    "pooled volumes": (lambda x: pool_3d(x, (2, 1, 2), True, (1, 2, 1), mode="max"),
                       [(1, 2, 3, 4, 3)]),
}  # fmt: skip


@pytest.mark.parametrize("name", MADE)
def test_gradients_and_their_gradients(name, flags):
    flags(floatX="float64")
    function, shapes = MADE[name]
    values = [0.5 * numbers(*shape, seed=k) for k, shape in enumerate(shapes)]
    verify_grad(function, values, rng=np.random.RandomState(0))

    def squares(*operands):
        return sum((g**2).sum() for g in grad((function(*operands) ** 3).sum(), list(operands)))

    verify_grad(squares, values, rng=np.random.RandomState(1))


@pytest.mark.parametrize("ratio", [2, 3, 4, 5])
@pytest.mark.parametrize("use_1D_kernel", [True, False])
def test_upsampling_interpolates(ratio, use_1D_kernel, flags):
    flags(floatX="float64")
    x = numbers(2, 3, 4, 5)

    def enlarged(a, axis):
        n = a.shape[axis]
        places = (np.arange(n * ratio) - (ratio - 1) // 2) / ratio
        return np.apply_along_axis(lambda row: np.interp(places, np.arange(n), row), axis, a)

    [vx] = variables(x)
    y = abstract_conv.bilinear_upsampling(vx, ratio, use_1D_kernel=use_1D_kernel)
    got = theano.function([vx], y)(x)
    np.testing.assert_allclose(got, enlarged(enlarged(x, 2), 3), atol=1e-12)


@pytest.mark.parametrize("linker", ["py", "c|py"])
@pytest.mark.parametrize("name", [n for n in MADE if n != "by filters"])
def test_empty_batches(name, linker):
    function, shapes = MADE[name]
    values = [numbers(*shape, seed=k) for k, shape in enumerate(shapes)]
    values[0] = values[0][:0]
    operands = variables(*values)
    y = function(*operands)
    f = theano.function(
        operands, [y, *grad(y.sum(), operands)], mode=theano.Mode(linker, "fast_run")
    )
    got, *grads = f(*values)
    assert got.shape[0] == 0
    for found, value in zip(grads, values, strict=True):
        np.testing.assert_array_equal(found, np.zeros(value.shape))


def test_results_are_no_views_of_what_is_used_again():
    """Two calls: the results of the first stay as they were."""
    x, w = numbers(2, 3, 8, 8), numbers(4, 3, 3, 3, seed=1)
    vx, vw = variables(x, w)
    f = theano.function([vx, vw], pool_2d(nn.conv2d(vx, vw), (2, 2), True))
    first = f(x, w)
    kept = first.copy()
    f(-x, w)
    np.testing.assert_array_equal(first, kept)
