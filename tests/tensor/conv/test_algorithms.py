"""The algorithms of convolutions in C: each against plain sums, at sizes where they are cut."""

import numpy as np
import pytest

import theano
import theano.tensor as T
from opwise import nn
from opwise.compile import DebugMode
from opwise.config import change_flags
from opwise.gradient import grad
from opwise.linkers.convsteps import ALGORITHMS, algorithm
from opwise.tensor.nnet import abstract_conv
from opwise.tensor.nnet.abstract_conv import (
    AbstractConv,
    AbstractConv_gradInputs,
    AbstractConv_gradWeights,
)
from opwise.tensor.type import tensor_type

#: the errors of float32, relative to the largest result
BOUND = 1e-5


def windows(shape, kernel, pad, stride, dilation):
    """Yield (i, j) and what element (i, j) of a kernel meets of a padded image, as slices."""
    lengths = [
        (n + 2 * p - (k - 1) * d - 1) // s + 1
        for n, k, p, s, d in zip(shape[2:], kernel[2:], pad, stride, dilation, strict=True)
    ]
    for place in np.ndindex(*kernel[2:]):
        starts = [i * d for i, d in zip(place, dilation, strict=True)]
        ends = [a + (n - 1) * s + 1 for a, n, s in zip(starts, lengths, stride, strict=True)]
        yield place, tuple(map(slice, starts, ends, stride))


def products(x, w, pad, stride=(1, 1), dilation=(1, 1), groups=1):
    """A correlation in double arithmetic, one element of the kernel after the other."""
    padded = np.pad(x.astype("float64"), [(0, 0), (0, 0)] + [(p, p) for p in pad])
    by_group = padded.reshape(x.shape[0], groups, -1, *padded.shape[2:])
    kernels = w.astype("float64").reshape(groups, -1, *w.shape[1:])
    z = 0
    for place, part in windows(x.shape, w.shape, pad, stride, dilation):
        seen = by_group[(..., *part)]
        z = z + np.einsum("bgcyx,gkc->bgkyx", seen, kernels[(..., *place)], optimize=True)
    return z.reshape(x.shape[0], -1, *z.shape[3:])


def adjoint(top, w, shape, pad, stride=(1, 1), dilation=(1, 1), groups=1):
    """The gradient by images of these shapes, in double arithmetic."""
    padded = np.zeros((shape[0], groups, shape[1] // groups,
                       *(n + 2 * p for n, p in zip(shape[2:], pad, strict=True))))  # fmt: skip
    kernels = w.astype("float64").reshape(groups, -1, *w.shape[1:])
    tops = top.astype("float64").reshape(shape[0], groups, -1, *top.shape[2:])
    for place, part in windows(shape, w.shape, pad, stride, dilation):
        padded[(..., *part)] += np.einsum("bgkyx,gkc->bgcyx", tops, kernels[(..., *place)],
                                          optimize=True)  # fmt: skip
    inside = [slice(p, p + n) for p, n in zip(pad, shape[2:], strict=True)]
    return padded[(..., *inside)].reshape(shape)


def by_filters(top, x, kernel, pad, stride=(1, 1), dilation=(1, 1), groups=1):
    """The gradient by kernels of these shapes, in double arithmetic."""
    padded = np.pad(x.astype("float64"), [(0, 0), (0, 0)] + [(p, p) for p in pad])
    by_group = padded.reshape(x.shape[0], groups, -1, *padded.shape[2:])
    tops = top.astype("float64").reshape(top.shape[0], groups, -1, *top.shape[2:])
    z = np.zeros(kernel)
    for place, part in windows(x.shape, kernel, pad, stride, dilation):
        seen = by_group[(..., *part)]
        sums = np.einsum("bgkyx,bgcyx->gkc", tops, seen, optimize=True)
        z[(..., *place)] = sums.reshape(kernel[:2])
    return z


def compiled(dtype, pad, stride=(1, 1), dilation=(1, 1), groups=1, mode=None):
    x, w, top = (tensor_type(dtype, (False,) * 4).make_variable() for _ in range(3))
    y = nn.conv2d(x, w, border_mode=pad, subsample=stride, filter_dilation=dilation,
                         num_groups=groups, filter_flip=False)  # fmt: skip
    grads = grad(None, [x, w], known_grads={y: top})
    return theano.function([x, w, top], [y, *grads], mode=mode or theano.Mode("c|py", "fast_run"))


def check(f, dtype, image, kernel, pad, **options):
    rng = np.random.default_rng(3)
    x, w = (rng.standard_normal(shape).astype(dtype) for shape in (image, kernel))
    want = products(x, w, pad, **options)
    top = rng.standard_normal(want.shape).astype(dtype)
    got, by_images, by_kernels = f(x, w, top)
    bound = BOUND if dtype == "float32" else 1e-14
    assert abs(got - want).max() <= bound * abs(want).max()
    want = adjoint(top, w, image, pad, **options)
    assert abs(by_images - want).max() <= bound * abs(want).max()
    want = by_filters(top, x, kernel, pad, **options)
    assert abs(by_kernels - want).max() <= bound * abs(want).max()


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", ALGORITHMS)
def test_every_algorithm_at_sizes_that_do_not_fit(name, dtype):
    with change_flags(**{"conv.algo": name}):
        functions_of = {}
        for image, kernel, pad, stride, dilation, groups in [
            ((2, 3, 7, 9), (5, 3, 3, 3), (1, 1), (1, 1), (1, 1), 1),
            ((1, 17, 4, 33), (33, 17, 3, 3), (0, 0), (1, 1), (1, 1), 1),
            ((3, 40, 5, 5), (14, 20, 3, 3), (2, 0), (1, 1), (1, 1), 2),
            ((1, 1, 3, 3), (1, 1, 3, 3), (0, 0), (1, 1), (1, 1), 1),
            ((2, 300, 5, 13), (131, 300, 1, 1), (0, 0), (1, 1), (1, 1), 1),
            ((2, 8, 1, 31), (26, 4, 1, 1), (0, 0), (1, 1), (1, 1), 2),
            ((2, 5, 23, 22), (13, 5, 5, 4), (3, 5), (2, 3), (1, 1), 1),
            ((2, 3, 29, 28), (7, 3, 11, 11), (2, 2), (4, 4), (1, 1), 1),
            ((2, 6, 15, 16), (9, 6, 1, 1), (0, 0), (2, 2), (1, 1), 1),
            ((2, 6, 15, 40), (9, 6, 3, 2), (2, 1), (1, 2), (3, 2), 1),
            ((1, 2, 20, 21), (3, 2, 17, 18), (9, 9), (1, 1), (1, 1), 1),
            ((2, 3, 6, 6), (4, 3, 3, 3), (5, 4), (1, 1), (1, 1), 1),
            ((70, 9, 3, 3), (12, 9, 3, 3), (1, 1), (1, 1), (1, 1), 1),
        ]:
            options = {"stride": stride, "dilation": dilation, "groups": groups}
            key = (pad, *options.values())
            if key not in functions_of:
                functions_of[key] = compiled(dtype, pad, **options)
            check(functions_of[key], dtype, image, kernel, pad, **options)


#: images, lengths of kernels, pads, strides, dilation: channels and pixels leave rests of vectors
DEPTHWISE = [
    ((3, 33, 7, 7), (3, 3), (1, 1), (1, 1), (1, 1)),
    ((2, 16, 16, 16), (13, 13), (6, 6), (1, 1), (1, 1)),
    ((2, 21, 14, 13), (3, 4), (1, 0), (2, 2), (1, 1)),
    ((1, 17, 3, 2), (2, 2), (4, 3), (1, 1), (1, 1)),
    ((2, 40, 9, 20), (5, 3), (0, 2), (3, 1), (2, 3)),
    ((2, 13, 1, 30), (1, 9), (0, 0), (1, 4), (1, 1)),
    ((2, 18, 60, 61), (3, 3), (1, 1), (1, 1), (1, 1)),
]


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize(("image", "lengths", "pad", "stride", "dilation"), DEPTHWISE)
def test_a_kernel_for_each_channel(image, lengths, pad, stride, dilation, dtype):
    options = {"stride": stride, "dilation": dilation, "groups": image[1]}
    f = compiled(dtype, pad, **options)
    check(f, dtype, image, (image[1], 1, *lengths), pad, **options)


@pytest.mark.parametrize("flip", [False, True])
def test_kernels_for_each_channel_of_operands_that_are_not_contiguous(flip):
    x, w, top = (T.ftensor4() for _ in range(3))
    y = nn.conv2d(x[:, ::-1, ::-1, ::2], w.transpose(3, 0, 2, 1), border_mode=(1, 1),
                         num_groups=20, filter_flip=flip)  # fmt: skip
    seed = top.transpose(0, 1, 3, 2)
    f = theano.function([x, w, top], [y, *grad(None, [x, w], known_grads={y: seed})],
                        mode=theano.Mode("c|py", "fast_run"))  # fmt: skip
    rng = np.random.default_rng(13)
    image, kernel, given = (
        rng.standard_normal(shape).astype("float32")
        for shape in ((2, 20, 9, 30), (1, 3, 3, 20), (2, 20, 15, 9))
    )
    seen, filters = image[:, ::-1, ::-1, ::2], kernel.transpose(3, 0, 2, 1)
    filters = filters[:, :, ::-1, ::-1] if flip else filters
    gradient = given.transpose(0, 1, 3, 2)
    got, by_images, by_kernels = f(image, kernel, given)
    want = products(seen, filters, (1, 1), groups=20)
    assert abs(got - want).max() <= BOUND * abs(want).max()
    want = np.zeros(image.shape)
    want[:, ::-1, ::-1, ::2] = adjoint(gradient, filters, seen.shape, (1, 1), groups=20)
    assert abs(by_images - want).max() <= BOUND * abs(want).max()
    want = by_filters(gradient, seen, filters.shape, (1, 1), groups=20)
    want = want[:, :, ::-1, ::-1] if flip else want
    assert abs(by_kernels.transpose(3, 0, 2, 1) - want).max() <= BOUND * abs(want).max()


def test_an_infinite_kernel_does_not_meet_pads_in_gradients_by_images():
    for stride in (1, 2):
        f = compiled("float32", (1, 1), (stride, stride), groups=16)
        w = np.ones((16, 1, 3, 3), "float32")
        w[3, 0, 0, 0] = np.inf
        n = 8 // stride
        top = np.ones((1, 16, n, n), "float32")
        _, by_images, _ = f(np.ones((1, 16, 8, 8), "float32"), w, top)
        assert np.isfinite(by_images[:, :3]).all()
        assert not np.isnan(by_images).any()
        want = adjoint(top, np.where(np.isinf(w), 1e20, w), (1, 16, 8, 8), (1, 1),
                       (stride, stride), groups=16)  # fmt: skip
        np.testing.assert_array_equal(np.isinf(by_images), want > 1e19)


@pytest.mark.parametrize(
    ("image", "kernel"),
    [((2, 64, 31, 30), (96, 64, 3, 3)), ((1, 256, 7, 7), (40, 256, 3, 3)),
     ((1, 16, 120, 4), (16, 16, 3, 3))],
)  # fmt: skip
@pytest.mark.parametrize("values", ["normal", "positive", "large and small"])
def test_winograd_stays_within_its_bound(image, kernel, values):
    with change_flags(**{"conv.algo": "winograd"}):
        f = compiled("float32", (1, 1))
    rng = np.random.default_rng(5)
    x, w = (rng.standard_normal(shape).astype("float32") for shape in (image, kernel))
    if values == "positive":
        x, w = abs(x), abs(w)
    elif values == "large and small":
        x *= np.exp(rng.uniform(-8, 8, image[:2]))[..., None, None].astype("float32")
    want = products(x, w, (1, 1))
    got = f(x, w, np.zeros(want.shape, "float32"))[0]
    assert abs(got - want).max() <= BOUND * abs(want).max()


def gradient_by_kernels(pad, flip=True, groups=1, mode=None):
    """A function of images, of the gradient by the result, and of kernels, which it ignores."""
    x, w, top = (T.ftensor4() for _ in range(3))
    y = nn.conv2d(x, w, border_mode=pad, filter_flip=flip, num_groups=groups)
    gradient = grad(None, w, known_grads={y: top})
    mode = mode or theano.Mode("c|py", "fast_run")
    return theano.function([x, top, w], gradient, mode=mode, on_unused_input="ignore")


@pytest.mark.parametrize("values", ["normal", "positive", "large and small"])
@pytest.mark.parametrize(
    ("image", "kernel", "pad", "groups"),
    [((5, 70, 30, 31), (130, 70, 3, 3), (1, 1), 1), ((40, 6, 4, 4), (22, 3, 3, 3), (0, 2), 2),
     ((9, 16, 100, 90), (16, 16, 3, 3), (0, 0), 1)],
)  # fmt: skip
def test_gradients_by_kernels_of_many_tiles(image, kernel, pad, groups, values):
    rng = np.random.default_rng(11)
    x = rng.standard_normal(image)
    top = rng.standard_normal(
        (image[0], kernel[0], *(n + 2 * p - 2 for n, p in zip(image[2:], pad, strict=True)))
    )
    if values == "positive":
        x, top = abs(x), abs(top)
    elif values == "large and small":
        x *= np.exp(rng.uniform(-8, 8, image[:2]))[..., None, None]
    x, top = x.astype("float32"), top.astype("float32")
    want = by_filters(top, x, kernel, pad, groups=groups)
    for flip in (False, True):
        with change_flags({"conv.algo": "winograd"}):
            f = gradient_by_kernels(pad, flip, groups)
        got = f(x, top, np.zeros(kernel, "float32"))
        got = got[:, :, ::-1, ::-1] if flip else got
        assert abs(got - want).max() <= BOUND * abs(want).max()


def test_an_infinity_stays_where_it_is_in_gradients_by_kernels():
    x, top = np.ones((1, 2, 8, 8), "float32"), np.ones((1, 3, 8, 8), "float32")
    x[0, 1, 0, 0] = np.inf
    kernels = np.zeros((3, 2, 3, 3), "float32")
    results = []
    for name in ("winograd", "direct", "patches"):
        with change_flags({"conv.algo": name}):
            results.append(gradient_by_kernels((1, 1))(x, top, kernels))
    assert np.isfinite(results[0][:, 0]).all()
    assert np.isinf(results[0][:, 1]).sum() == 3 * 4
    np.testing.assert_array_equal(np.isinf(results[0]), np.isinf(results[2]))
    np.testing.assert_array_equal(results[1], results[2])


def test_operands_that_are_not_contiguous():
    x, w, top = (T.ftensor4() for _ in range(3))
    rng = np.random.default_rng(7)
    image, kernel = rng.standard_normal((2, 20, 9, 30)), rng.standard_normal((3, 3, 20, 18))
    image, kernel = image.astype("float32"), kernel.astype("float32")
    for name in ALGORITHMS:
        with change_flags(**{"conv.algo": name}):
            y = nn.conv2d(x[:, ::-1, ::-1, ::2], w.transpose(3, 2, 0, 1), filter_flip=False)
            gx, gw = grad(None, [x, w], known_grads={y: top})
            f = theano.function([x, w, top], [y, gx, gw], mode=theano.Mode("c|py", "fast_run"))
        want = products(image[:, ::-1, ::-1, ::2], kernel.transpose(3, 2, 0, 1), (0, 0))
        seed = rng.standard_normal(want.shape).astype("float32")
        got, by_images, by_kernels = f(image, kernel, seed)
        assert abs(got - want).max() <= BOUND * abs(want).max()
        shape = (2, 20, 9, 15)
        want = np.zeros(image.shape)
        want[:, ::-1, ::-1, ::2] = adjoint(seed, kernel.transpose(3, 2, 0, 1), shape, (0, 0))
        assert abs(by_images - want).max() <= BOUND * abs(want).max()
        want = by_filters(seed, image[:, ::-1, ::-1, ::2], (18, 20, 3, 3), (0, 0))
        assert abs(by_kernels.transpose(3, 2, 0, 1) - want).max() <= BOUND * abs(want).max()


def applys(f, kind):
    return next(node for node in f.maker.fgraph.toposort() if isinstance(node.op, kind))


def test_the_algorithm_can_be_read():
    f = compiled("float32", (1, 1))
    node = applys(f, AbstractConv)
    image, kernel, result = (16, 64, 56, 56), (64, 64, 3, 3), (16, 64, 56, 56)
    assert algorithm(node, [image, kernel], [result]) == "winograd"
    with change_flags(**{"conv.winograd": False}):
        assert algorithm(node, [image, kernel], [result]) in ("direct", "patches")
    by_images = applys(f, AbstractConv_gradInputs)
    assert algorithm(by_images, [kernel, result, (2,)], [image]) == "winograd"
    by_kernels = applys(f, AbstractConv_gradWeights)
    assert algorithm(by_kernels, [image, result, (2,)], [kernel]) == "winograd"
    first = [(16, 1, 56, 56), result, (2,)]
    assert algorithm(by_kernels, first, [(64, 1, 3, 3)]) in ("direct", "patches")
    with change_flags({"conv.winograd": False}):
        assert algorithm(by_kernels, [image, result, (2,)], [kernel]) in ("direct", "patches")
    assert algorithm(node, [(1, 1, 2, 2), (1, 2, 3, 3)], [(0, 0, 0, 0)]) is None
    assert algorithm((T.fmatrix() + 1).owner, [(1, 1), (1, 1)], [(1, 1)]) is None
    in_double = applys(compiled("float64", (1, 1)), AbstractConv)
    assert algorithm(in_double, [image, kernel], [result]) in ("direct", "patches")
    points = applys(compiled("float32", (0, 0)), AbstractConv)
    assert algorithm(points, [image, (32, 64, 1, 1)], [(16, 32, 56, 56)]) == "image"
    strided = applys(compiled("float32", (0, 0), stride=(2, 2)), AbstractConv_gradInputs)
    assert algorithm(strided, [kernel, (16, 64, 27, 27), (2,)], [image]) == "scatter"


@pytest.mark.parametrize("values", ["normal", "positive", "large and small"])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize(
    ("image", "kernel", "pad", "dilation", "groups"),
    [((2, 3, 70, 65), (5, 3, 31, 31), (15, 15), (1, 1), 1),
     ((3, 6, 40, 200), (8, 3, 2, 17), (0, 3), (3, 2), 2),
     ((1, 1, 300, 290), (1, 1, 65, 65), (0, 0), (1, 1), 1),
     ((9, 17, 20, 20), (18, 17, 9, 9), (10, 1), (1, 1), 1)],
)  # fmt: skip
def test_fourier_transforms_stay_within_their_bound(
    image, kernel, pad, dilation, groups, dtype, values
):
    with change_flags({"conv.algo": "fft"}):
        f = compiled(dtype, pad, dilation=dilation, groups=groups)
    rng = np.random.default_rng(5)
    x, w = rng.standard_normal(image), rng.standard_normal(kernel)
    if values == "positive":
        x, w = abs(x), abs(w)
    elif values == "large and small":
        x *= np.exp(rng.uniform(-8, 8, image[:2]))[..., None, None]
    x, w = x.astype(dtype), w.astype(dtype)
    bound = BOUND if dtype == "float32" else 1e-14
    options = {"dilation": dilation, "groups": groups}
    want = products(x, w, pad, **options)
    top = rng.standard_normal(want.shape).astype(dtype)
    got, by_images, by_kernels = f(x, w, top)
    most = products(abs(x), abs(w), pad, **options).max()
    assert abs(got - want).max() <= bound * most
    most = adjoint(abs(top), abs(w), image, pad, **options).max()
    want = adjoint(top, w, image, pad, **options)
    assert abs(by_images - want).max() <= bound * most
    most = by_filters(abs(top), abs(x), kernel, pad, **options).max()
    want = by_filters(top, x, kernel, pad, **options)
    assert abs(by_kernels - want).max() <= bound * most
    if groups == 1:
        taken = [name for name, _ in f.linked.vm.algorithms() if name]
        assert taken.count("fft") == 3


@pytest.mark.parametrize("flip", [True, False])
@pytest.mark.parametrize("stride", [(1, 1), (2, 3)])
@pytest.mark.parametrize("image", [(3, 5, 40, 37), (70, 2, 33, 90), (1, 33, 19, 60)])
def test_gradients_by_large_kernels(image, stride, flip):
    """By Fourier transforms, of operands in other layouts, against sums of products."""
    x, top, found = T.dtensor4(), T.dtensor4(), {}
    kernel = (6, image[1], 9, 8)
    for name in ("fft", "patches"):
        with change_flags({"conv.algo": name}):
            gradient = abstract_conv.conv2d_grad_wrt_weights(
                x, top, kernel, border_mode=(4, 2), subsample=stride, filter_flip=flip
            )
            found[name] = theano.function([x, top], gradient, mode=theano.Mode("c|py", "fast_run"))
    rng = np.random.default_rng(4)
    sizes = zip(image[2:], (4, 2), kernel[2:], stride, strict=True)
    lengths = [(n + 2 * p - k) // s + 1 for n, p, k, s in sizes]
    value = rng.standard_normal(image)
    g = rng.standard_normal((image[0], kernel[0], *lengths))
    want = found["patches"](value, g)
    layouts = [(value, g), (np.asfortranarray(value), g), (value, np.asfortranarray(g))]
    for given in layouts:
        got = found["fft"](*given)
        assert [name for name, _ in found["fft"].linked.vm.algorithms() if name] == ["fft"]
        np.testing.assert_allclose(got, want, rtol=0, atol=1e-13 * abs(want).max())


def test_fourier_transforms_in_parts():
    """The spectra of kernels or of tiles are more than are held at the same time."""
    with change_flags({"conv.algo": "fft"}):
        f = compiled("float64", (0, 0))
    rng = np.random.default_rng(6)
    for image, kernel in [((1, 40, 90, 90), (45, 40, 49, 50)), ((150, 9, 40, 40), (3, 9, 9, 9))]:
        x, w = rng.standard_normal(image), rng.standard_normal(kernel)
        want = correlated(x, w)
        got = f(x, w, np.zeros(want.shape))[0]
        assert abs(got - want).max() <= 1e-13 * abs(want).max()


def correlated(x, w):
    """The same as products, by transforms of numpy."""
    shape = x.shape[2:]
    spectra = np.fft.rfft2(x), np.fft.rfft2(w[:, :, ::-1, ::-1], shape)
    z = np.fft.irfft2(np.einsum("bcyx,ocyx->boyx", *spectra, optimize=True), shape)
    return z[:, :, w.shape[2] - 1 :, w.shape[3] - 1 :]


def test_large_kernels_use_fourier_transforms():
    x, w = T.ftensor4(), T.ftensor4()
    node = nn.conv2d(x, w).owner
    large = [(1, 1, 512, 512), (1, 1, 65, 65)], [(1, 1, 448, 448)]
    assert algorithm(node, *large) == "fft"
    assert algorithm(node, [(8, 64, 56, 56), (64, 64, 15, 15)], [(8, 64, 42, 42)]) == "fft"
    assert algorithm(node, [(8, 64, 56, 56), (64, 64, 3, 3)], [(8, 64, 54, 54)]) != "fft"
    with change_flags({"conv.fft": False}):
        assert algorithm(node, *large) in ("direct", "patches")
    for n, uses in ((15, True), (3, False)):
        by_kernels = abstract_conv.conv2d_grad_wrt_weights(x, w, (64, 64, n, n)).owner
        shapes = [(8, 64, 56, 56), (8, 64, 57 - n, 57 - n), (2,)]
        assert (algorithm(by_kernels, shapes, [(64, 64, n, n)]) == "fft") == uses
    strided = nn.conv2d(x, w, subsample=(2, 2)).owner
    assert algorithm(strided, large[0], [(1, 1, 224, 224)]) in ("direct", "patches")


def test_what_is_not_finite_stays_where_it_is_with_fourier_transforms():
    found = []
    x, w = np.ones((1, 2, 40, 40), "float32"), np.ones((3, 2, 11, 11), "float32")
    x[0, 0, 1, 1] = np.inf
    w[1, 1, 5, 5] = np.nan
    for name in ("fft", "patches"):
        with change_flags({"conv.algo": name}):
            f = compiled("float32", (5, 5))
        found.append(f(x, w, np.ones((1, 3, 40, 40), "float32")))
        assert "fft" not in [algorithm for algorithm, _ in f.linked.vm.algorithms()]
    for one, other in zip(*found, strict=True):
        np.testing.assert_array_equal(np.isfinite(one), np.isfinite(other))
    assert np.isfinite(found[0][0][0, 0, 8:, 8:]).all()


def test_debug_mode_uses_no_fourier_transforms():
    rng = np.random.default_rng(1)
    x, w = (rng.standard_normal(s).astype("float32") for s in ((1, 2, 90, 90), (3, 2, 31, 31)))
    top = rng.standard_normal((1, 3, 60, 60)).astype("float32")
    results = []
    for fft in (True, False):
        with change_flags({"conv.fft": fft}):
            results.append(compiled("float32", (0, 0))(x, w, top))
    assert (results[0][0] != results[1][0]).any()
    in_c = DebugMode(stability_patience=1, check_py_code=False)
    debugged = compiled("float32", (0, 0), mode=in_c)(x, w, top)
    for found, want in zip(debugged, results[1], strict=True):
        np.testing.assert_array_equal(found, want)


def test_debug_mode_uses_plain_sums():
    options = {"image": (1, 32, 12, 12), "kernel": (32, 32, 3, 3)}
    rng = np.random.default_rng(1)
    x, w = (rng.standard_normal(shape).astype("float32") for shape in options.values())
    top = rng.standard_normal((1, 32, 12, 12)).astype("float32")
    results = []
    for winograd in (True, False):
        with change_flags(**{"conv.winograd": winograd}):
            results.append(compiled("float32", (1, 1))(x, w, top))
    assert all((one != other).any() for one, other in zip(*results, strict=True))
    in_c = DebugMode(stability_patience=1, check_py_code=False)
    debugged = compiled("float32", (1, 1), mode=in_c)(x, w, top)
    for found, want in zip(debugged, results[1], strict=True):
        np.testing.assert_array_equal(found, want)


def test_what_threads_compute_is_the_same():
    rng = np.random.default_rng(2)
    x, w = (rng.standard_normal(s).astype("float32") for s in ((2, 40, 30, 30), (48, 40, 3, 3)))
    top = rng.standard_normal((2, 48, 30, 30)).astype("float32")
    for name in ("direct", "patches", "winograd", "fft"):
        found = []
        for threads in (1, 2, 7):
            with change_flags(**{"conv.algo": name, "threads": threads}):
                found.append(compiled("float32", (1, 1))(x, w, top))
        for other in found[1:]:
            for one, another in zip(found[0], other, strict=True):
                np.testing.assert_allclose(one, another, rtol=1e-5, atol=1e-4)
