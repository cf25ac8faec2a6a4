"""Convolutions against sums over places, in every option, by ``perform`` and in C.

A convolution is linear in the image and in the kernel, so its gradients follow from itself: the
product of a gradient with any change is that of the result's gradient with the convolution of it.
"""

import itertools

import numpy as np
import pytest

import theano
import theano.tensor as T
from opwise import nn
from opwise.config import change_flags
from opwise.gradient import Rop, grad, verify_grad
from opwise.tensor.nnet import abstract_conv
from opwise.tensor.nnet.abstract_conv import AbstractConv2d, BaseAbstractConv
from opwise.tensor.type import tensor_type
from opwise.testing.configurations import mode_of

LINKERS = ("py", "c|py")


def pads_of(border, reach):
    if border == "valid":
        return 0, 0
    if border == "full":
        return reach - 1, reach - 1
    if border == "half":
        return reach // 2, reach // 2
    return border if isinstance(border, tuple) else (border, border)


def by_sums(x, w, border_mode="valid", subsample=None, filter_flip=True, filter_dilation=None,
            num_groups=1, unshared=False):  # fmt: skip
    """The convolution, place by place."""
    n = x.ndim - 2
    steps, dilation = subsample or (1,) * n, filter_dilation or (1,) * n
    lengths = w.shape[-n:]
    reach = [(k - 1) * d + 1 for k, d in zip(lengths, dilation, strict=True)]
    modes = border_mode if isinstance(border_mode, tuple) else (border_mode,) * n
    x = np.pad(x, [(0, 0), (0, 0)] + [pads_of(m, r) for m, r in zip(modes, reach, strict=True)])
    if filter_flip:
        w = np.flip(w, tuple(range(w.ndim - n, w.ndim)))
    out = [(size - r) // s + 1 for size, r, s in zip(x.shape[2:], reach, steps, strict=True)]
    result = np.zeros((x.shape[0], w.shape[0], *out))
    of_group, axes = w.shape[0] // num_groups, tuple(range(1, n + 2))
    for g in range(num_groups):
        channels = x[:, g * w.shape[-n - 1] : (g + 1) * w.shape[-n - 1]]
        kernels = slice(g * of_group, (g + 1) * of_group)
        for place in np.ndindex(*out):
            window = tuple(
                slice(p * s, p * s + r, d)
                for p, s, r, d in zip(place, steps, reach, dilation, strict=True)
            )
            weights = w[(kernels, *place)] if unshared else w[kernels]
            result[(slice(None), kernels, *place)] = np.tensordot(
                channels[(..., *window)], weights, (axes, axes)
            )
    return result


def compiled(inputs, outputs, linker):
    return theano.function(inputs, outputs, mode=theano.Mode(linker, "fast_run"))


def check(x, w, linker, dtype="float64", **options):
    """The result and both gradients of a convolution."""
    n = x.ndim - 2
    tolerance = {"float64": 1e-11, "float32": 2e-4}[dtype]
    x, w = x.astype(dtype), w.astype(dtype)
    vx = tensor_type(dtype, (False,) * x.ndim).make_variable("x")
    vw = tensor_type(dtype, (False,) * w.ndim).make_variable("w")
    y = (nn.conv2d if n == 2 else nn.conv3d)(vx, vw, **options)
    want = by_sums(x.astype("float64"), w.astype("float64"), **options)
    top = np.random.default_rng(1).standard_normal(want.shape).astype(dtype)
    vt = tensor_type(dtype, (False,) * y.ndim).make_variable("top")
    gx, gw = grad(None, [vx, vw], known_grads={y: vt})
    f = compiled([vx, vw, vt], [y, gx, gw, y.shape, gx.shape, gw.shape], linker)
    got, got_x, got_w, *shapes = f(x, w, top)
    assert [tuple(s) for s in shapes] == [want.shape, x.shape, w.shape]
    assert got.dtype == got_x.dtype == got_w.dtype == dtype
    np.testing.assert_allclose(got, want, rtol=tolerance, atol=tolerance)
    for place, change in ((got_x, (np.cos(x), w)), (got_w, (x, np.cos(w)))):
        moved = by_sums(*(v.astype("float64") for v in change), **options)
        change = change[0] if place is got_x else change[1]
        np.testing.assert_allclose(
            np.vdot(place.astype("float64"), change), np.vdot(top, moved),
            rtol=tolerance * 10, atol=tolerance * 10,
        )  # fmt: skip
    return f


def numbers(*shape):
    return np.random.default_rng(0).standard_normal(shape)


BORDERS = ("valid", "full", "half", 1, (2, 1), ((1, 0), (0, 2)))


@pytest.mark.parametrize("linker", LINKERS)
@pytest.mark.parametrize("border_mode", BORDERS)
def test_every_option(border_mode, linker):
    for subsample, dilation, flip, groups in itertools.product(
        ((1, 1), (2, 3)), ((1, 1), (2, 1)), (True, False), (1, 2)
    ):
        check(
            numbers(2, 4, 7, 8), numbers(6, 4 // groups, 3, 2), linker, border_mode=border_mode,
            subsample=subsample, filter_dilation=dilation, filter_flip=flip, num_groups=groups,
        )  # fmt: skip


@pytest.mark.parametrize("linker", LINKERS)
@pytest.mark.parametrize(("subsample", "places"), [((1, 1), (5, 7)), ((2, 2), (3, 4))])
@pytest.mark.parametrize("groups", [1, 2])
def test_weights_of_their_own_for_each_place(subsample, places, groups, linker):
    check(
        numbers(2, 4, 7, 8), numbers(6, *places, 4 // groups, 3, 2), linker,
        subsample=subsample, num_groups=groups, unshared=True,
    )  # fmt: skip


@pytest.mark.parametrize("linker", LINKERS)
def test_volumes(linker):
    check(numbers(2, 3, 5, 6, 5), numbers(4, 3, 3, 2, 3), linker,
          border_mode="half", subsample=(1, 2, 1))  # fmt: skip
    check(numbers(2, 4, 5, 6, 5), numbers(4, 2, 2, 2, 2), linker, num_groups=2,
          filter_dilation=(2, 1, 1), filter_flip=False)  # fmt: skip


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize(
    ("image", "kernel"),
    [
        ((1, 1, 1, 1), (1, 1, 1, 1)),
        ((3, 40, 20, 23), (33, 40, 3, 3)),  # more terms than one block has
        ((2, 3, 40, 70), (300, 3, 2, 2)),  # more outputs, and more places
        ((9, 1, 28, 28), (20, 1, 5, 5)),
        ((2, 24, 9, 9), (24, 1, 3, 3)),
    ],
    ids=str,
)
def test_sizes(image, kernel, dtype):
    groups = image[1] // kernel[1]
    f = check(numbers(*image), numbers(*kernel), "c|py", dtype, num_groups=groups)
    python = [
        node for node, in_c in zip(f.maker.fgraph.toposort(), f.linked.in_c, strict=True)
        if not in_c and isinstance(node.op, BaseAbstractConv)
    ]  # fmt: skip
    assert not python


@pytest.mark.parametrize("linker", LINKERS)
def test_operands_of_any_layout(linker):
    x, w = numbers(2, 3, 7, 8), numbers(4, 3, 3, 2)
    vx, vw, vt = T.tensor4(), T.tensor4(), T.tensor4()
    y = nn.conv2d(vx[:, :, ::-1, ::2], vw.transpose(1, 0, 3, 2).transpose(1, 0, 2, 3))
    gx, gw = grad(
        None, [vx, vw], known_grads={y: vt.transpose(1, 0, 2, 3)[:, ::-1].transpose(1, 0, 2, 3)}
    )
    x2, w2 = x[:, :, ::-1, ::2], w.transpose(0, 1, 3, 2)
    want = by_sums(x2, w2)
    f = compiled([vx, vw, vt], [y, gx, gw], linker)
    got, got_x, got_w = f(x, w, np.ones_like(want))
    np.testing.assert_allclose(got, want, atol=1e-12)
    np.testing.assert_allclose(np.vdot(got_x, x), want.sum())
    np.testing.assert_allclose(np.vdot(got_w, w), want.sum())


@pytest.mark.parametrize("linker", LINKERS)
@pytest.mark.parametrize("shape", [(0, 3, 5, 5), (2, 0, 5, 5)])
def test_nothing_to_add_up(shape, linker):
    check(np.zeros(shape), np.zeros((4, shape[1], 3, 3)), linker)


@pytest.mark.parametrize("linker", LINKERS)
def test_no_filters(linker):
    check(numbers(2, 3, 5, 5), np.zeros((0, 3, 3, 3)), linker)


def test_gradients_of_gradients():
    x, w = numbers(1, 2, 4, 5), numbers(2, 2, 2, 3)

    def squares(vx, vw):
        y = nn.conv2d(vx, vw, border_mode=(1, (0, 1)), subsample=(2, 1))
        gx, gw = grad((y**3).sum(), [vx, vw])
        return (gx**2).sum() + (gw**2).sum()

    verify_grad(squares, [x, w], rng=np.random.RandomState(0))


def test_the_r_operator_is_the_convolution_of_the_changes():
    vx, vw, cx, cw = (T.tensor4() for _ in range(4))
    moved = Rop(nn.conv2d(vx, vw), [vx, vw], [cx, cw])
    x, w, dx, dw = (numbers(*shape) for shape in 2 * [(2, 3, 6, 6), (4, 3, 2, 2)])
    dx, dw = np.cos(dx), np.cos(dw)
    want = by_sums(dx, w) + by_sums(x, dw)
    np.testing.assert_allclose(compiled([vx, vw, cx, cw], moved, "py")(x, w, dx, dw), want)


def test_integers_are_convolved_as_integers():
    x, w = T.TensorType("int32", (False,) * 4)(), T.TensorType("int64", (False,) * 4)()
    y = nn.conv2d(x, w)
    assert y.dtype == "int64"
    a, b = np.arange(40).reshape(1, 2, 4, 5), np.arange(12).reshape(1, 2, 2, 3)
    got = compiled([x, w], y, "c|py")(a.astype("int32"), b)
    np.testing.assert_array_equal(got, by_sums(a, b))


# --- functions ------------------------------------------------------------------------------------


def test_a_transposed_convolution_is_the_gradient_by_the_image():
    x, w, rows = T.tensor4(), T.tensor4(), T.lscalar()
    y = nn.conv2d_transpose(x, w, (None, None, rows, 17), border_mode=(1, 0),
                                   input_dilation=(2, 2))  # fmt: skip
    vx, vw = numbers(2, 3, 8, 8), numbers(3, 4, 3, 3)
    got = compiled([x, w, rows], y, "c|py")(vx, vw, 15)
    assert got.shape == (2, 4, 15, 17)
    image = numbers(2, 4, 15, 17)
    forward = by_sums(image, vw, border_mode=(1, 0), subsample=(2, 2))
    np.testing.assert_allclose(np.vdot(got, image), np.vdot(vx, forward))


def test_a_separable_convolution_is_two():
    x, w, p = (T.tensor4() for _ in range(3))
    values = numbers(2, 3, 9, 8), numbers(6, 1, 3, 3), numbers(5, 6, 1, 1)
    y = nn.separable_conv2d(x, w, p, 3, border_mode="half")
    depthwise = by_sums(values[0], values[1], border_mode="half", num_groups=3)
    got = compiled([x, w, p], y, "c|py")(*values)
    np.testing.assert_allclose(got, by_sums(depthwise, values[2]), atol=1e-12)


def test_a_causal_convolution_does_not_look_ahead():
    x, w = T.tensor3(), T.tensor3()
    y = nn.causal_conv1d(x, w, (4, 3, 3), filter_dilation=2)
    f = compiled([x, w], y, "c|py")
    vx, vw = numbers(2, 3, 9), numbers(4, 3, 3)
    got = f(vx, vw)
    assert got.shape == (2, 4, 9)
    later = vx.copy()
    later[:, :, 5:] += 1
    np.testing.assert_array_equal(f(later, vw)[:, :, :5], got[:, :, :5])
    assert abs(f(later, vw)[:, :, 5:] - got[:, :, 5:]).min() > 0


@pytest.mark.parametrize("options", [{"ratio": 3}, {"ratio": 2, "use_1D_kernel": False},
                                     {"frac_ratio": (3, 2), "use_1D_kernel": False}])  # fmt: skip
def test_bilinear_upsampling_keeps_what_is_constant(options):
    x = T.tensor4()
    got = compiled([x], abstract_conv.bilinear_upsampling(x, **options), "c|py")(
        np.full((2, 3, 4, 5), 7.0)
    )
    p, q = options.get("frac_ratio", (options.get("ratio"), 1))
    assert got.shape == (2, 3, -(-4 * p // q), -(-5 * p // q))
    np.testing.assert_allclose(got, 7.0)


def test_convolutions_of_the_oldest_modules():
    from theano.tensor.nnet.conv import conv2d as old
    from theano.tensor.signal.conv import conv2d as signal

    x, w = T.matrix(), T.tensor3()
    vx, vw = numbers(6, 7), numbers(4, 3, 2)
    got = compiled([x, w], signal(x, w, border_mode="full"), "c|py")(vx, vw)
    want = by_sums(vx[None, None], vw[:, None], border_mode="full")[0]
    np.testing.assert_allclose(got, want, atol=1e-12)
    x4, w4 = T.tensor4(), T.tensor4()
    values = numbers(2, 3, 5, 6), numbers(4, 3, 2, 2)
    y = old(x4, w4, image_shape=(2, 3, 5, 6), filter_shape=(4, 3, 2, 2), unroll_batch=2)
    np.testing.assert_allclose(compiled([x4, w4], y, "c|py")(*values), by_sums(*values), atol=1e-12)


# --- wrong arguments ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"border_mode": "same"}, "invalid border_mode 'same'"),
        ({"border_mode": -1}, "invalid border_mode -1"),
        ({"border_mode": (1, 2, 3)}, r"a tuple of 2"),
        ({"border_mode": (1, (0, -1))}, "must be a number of zeros"),
        ({"subsample": (1,)}, "subsample must be 2 integers"),
        ({"subsample": (0, 1)}, "integers, 1 or more"),
        ({"filter_dilation": (1, 0)}, "filter_dilation must be 2 integers"),
        ({"num_groups": 0}, "num_groups must be an integer, 1 or more"),
        ({"input_shape": (1, 2)}, "imshp must have 4 entries"),
        ({"imshp_logical": (1, 2)}, "conv2d_transpose"),
    ],
)
def test_options_that_cannot_be(options, said):
    with pytest.raises(ValueError, match=said):
        nn.conv2d(T.tensor4(), T.tensor4(), **options)


def test_wrong_numbers_of_dimensions():
    with pytest.raises(TypeError, match="img must be 4D tensor, not 2D"):
        nn.conv2d(T.matrix(), T.tensor4())
    with pytest.raises(TypeError, match="kern must be 6D tensor for unshared convolution, not 4D"):
        nn.conv2d(T.tensor4(), T.tensor4(), unshared=True)


@pytest.mark.parametrize("linker", LINKERS)
@pytest.mark.parametrize(
    ("image", "kernel", "options", "said"),
    [
        ((2, 4, 7, 8), (6, 3, 3, 2), {}, "filters need 4 channels, but have 3"),
        ((2, 4, 2, 8), (6, 4, 3, 2), {}, r"impossible output shape \(2, 6, 0, 7\)"),
        ((2, 4, 7, 8), (5, 2, 3, 2), {"num_groups": 2}, "cannot be divided into 2 groups"),
    ],
)  # fmt: skip
def test_shapes_that_do_not_belong_together(image, kernel, options, said, linker):
    x, w = T.tensor4(), T.tensor4()
    f = compiled([x, w], nn.conv2d(x, w, **options), linker)
    with pytest.raises(ValueError, match=said):
        f(np.zeros(image), np.zeros(kernel))


#: arguments with other batches, lengths, channels and numbers of filters than the hints say
UNLIKE_HINTS = [
    ((5, 2, 8, 9), (3, 2, 3, 3)), ((2, 2, 10, 7), (3, 2, 3, 3)), ((2, 2, 8, 9), (4, 2, 3, 3)),
    ((2, 2, 8, 9), (3, 2, 2, 4)), ((2, 3, 8, 9), (3, 3, 3, 3)),
]  # fmt: skip


@pytest.mark.parametrize("mode", ["FAST_RUN", "FAST_COMPILE", "no optimizer, py"])
@pytest.mark.parametrize("options", [
    {}, {"border_mode": "full"}, {"border_mode": "half", "subsample": (2, 2)},
    {"border_mode": (1, 2), "filter_dilation": (1, 2)},
], ids=str)  # fmt: skip
def test_shapes_of_arguments_count_not_those_given_as_hints(options, mode):
    """As in Theano 1.0.5; but shapes, means and gradients are right, too."""
    x, w = T.dtensor4("x"), T.dtensor4("w")
    hints = {"input_shape": (2, 2, 8, 9), "filter_shape": (3, 2, 3, 3)}

    def outputs(**hints):
        y = nn.conv2d(x, w, **options, **hints)
        inner = y[:, :, 1:-1, 1:-1]  # of which only the rest is computed
        return [y, y.shape, y.mean(), *T.grad((y**2).sum(), [x, w]), inner, y.flatten(2).sum(1)]

    f = theano.function([x, w], outputs(**hints), mode=mode_of(mode))
    g = theano.function([x, w], outputs(), mode=mode_of("no optimizer, py"))
    generator = np.random.default_rng(4)
    for shapes in UNLIKE_HINTS:
        values = [generator.uniform(-1, 1, shape) for shape in shapes]
        for found, expected in zip(f(*values), g(*values), strict=True):
            np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-12)
    with change_flags(**{"conv.assert_shape": True}):
        f = theano.function([x, w], nn.conv2d(x, w, **hints), mode=mode_of(mode))
    with pytest.raises(AssertionError, match="image's shape is not the given imshp"):
        f(np.zeros((5, 2, 8, 9)), np.zeros((3, 2, 3, 3)))


@pytest.mark.parametrize("linker", LINKERS)
def test_hints_of_other_convolutions_do_not_count(linker):
    volume, filters = np.ones((4, 2, 5, 6, 7)), np.ones((3, 2, 2, 2, 2))
    x, w, y = T.tensor5(), T.tensor5(), T.dtensor4()
    result = nn.conv3d(x, w, (2, 2, 5, 6, 8), (4, 2, 2, 2, 2))
    f = compiled([x, w], [result, result.shape], linker)
    assert f(volume, filters)[0].shape == tuple(f(volume, filters)[1]) == (4, 3, 4, 5, 6)
    images, kernel = T.dtensor4(), T.dtensor4()
    result = abstract_conv.conv2d_grad_wrt_inputs(y, kernel, (2, 2, 8, 9), (4, 3, 3, 3))
    f = compiled([y, kernel], [result, result.shape], linker)
    found, shape = f(np.ones((5, 3, 6, 7)), np.ones((3, 2, 3, 3)))
    assert found.shape == tuple(shape) == (5, 2, 8, 9)
    result = abstract_conv.conv2d_grad_wrt_weights(images, y, (4, 3, 3, 3), (2, 2, 8, 8))
    f = compiled([images, y], [result, result.shape], linker)
    found, shape = f(np.ones((5, 2, 8, 9)), np.ones((5, 3, 6, 7)))
    assert found.shape == tuple(shape) == (3, 2, 3, 3)
    result = nn.separable_conv2d(
        images, kernel, np.ones((4, 2, 1, 1)), 2, (2, 2, 8, 9), (2, 1, 3, 3), (4, 2, 1, 1)
    )
    f = compiled([images, kernel], [result, result.shape], linker)
    found, shape = f(np.ones((5, 2, 9, 9)), np.ones((2, 1, 3, 3)))
    assert found.shape == tuple(shape) == (5, 4, 7, 7)


@pytest.mark.parametrize("linker", LINKERS)
def test_gradients_of_another_shape(linker):
    w, g, rows = T.tensor4(), T.tensor4(), T.lscalar()
    y = abstract_conv.conv2d_grad_wrt_inputs(g, w, (None, None, rows, 6))
    f = compiled([w, g, rows], y, linker)
    assert f(np.zeros((4, 3, 2, 2)), np.zeros((1, 4, 5, 5)), 6).shape == (1, 3, 6, 6)
    with pytest.raises(ValueError, match=r"shape \(1, 4, 5, 5\), but an image of shape"):
        f(np.zeros((4, 3, 2, 2)), np.zeros((1, 4, 5, 5)), 7)


def test_operations_are_counted():
    op = AbstractConv2d()
    assert op.flops([(2, 3, 6, 6), (4, 3, 2, 2)], [(2, 4, 5, 5)]) == 2 * 2 * 4 * 25 * 3 * 4


def test_gradients_read_what_they_are_by():
    """As in Theano, a function of a gradient may list the images and the kernels as inputs."""
    x, w, g = T.tensor4("x"), T.tensor4("w"), T.tensor4("g")
    y = nn.conv2d(x, w, input_shape=(2, 3, 7, 8), filter_shape=(4, 3, 2, 2))
    rng = np.random.RandomState(1)
    values = [rng.rand(*shape) for shape in ((2, 3, 7, 8), (4, 3, 2, 2), (2, 4, 6, 7))]
    for wrt in (x, w):
        gradient = grad(y.sum(), wrt, known_grads={y: g})
        f = theano.function([x, w, g], gradient)
        expected = theano.function([x, w, g], gradient, mode="FAST_COMPILE")
        np.testing.assert_allclose(f(*values), expected(*values))
