"""Older Ops and functions of convolution against ``theano.tensor.nnet.conv2d`` and ``conv3d``."""

import itertools

import numpy as np
import pytest

import theano
import theano.tensor as T
from opwise.config import change_flags
from opwise.gradient import grad, verify_grad
from opwise.nn import conv2d, conv3d
from opwise.tensor.conv import conv3d2d, older
from opwise.tensor.nnet import abstract_conv

LINKERS = ("py", "c|py")


def compiled(inputs, outputs, linker="c|py"):
    return theano.function(inputs, outputs, mode=theano.Mode(linker, "fast_run"))


def numbers(*shape):
    return np.random.default_rng(0).standard_normal(shape)


def agree(inputs, got, want, *values):
    """Compare two graphs, and their gradients by the inputs."""
    outputs = [part for y in (got, want) for part in (y, *grad((y**2).sum(), inputs))]
    found = compiled(inputs, outputs)(*values)
    half = len(found) // 2
    for a, b in zip(found[:half], found[half:], strict=True):
        np.testing.assert_allclose(a, b, atol=1e-11)


# --- correlations ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "options",
    [
        {}, {"border_mode": "half"}, {"border_mode": "full", "filter_dilation": (2, 1)},
        {"border_mode": (1, 2), "subsample": (2, 1)}, {"border_mode": ((1, 0), (0, 2))},
        {"num_groups": 2},
    ],
)  # fmt: skip
def test_correlations_do_not_flip(options):
    x, w = T.dtensor4(), T.dtensor4()
    channels = 4 // options.get("num_groups", 1)
    got = older.CorrMM(**options)(x, w)
    assert type(got.owner.op) is older.CorrMM
    agree([x, w], got, conv2d(x, w, filter_flip=False, **options), numbers(2, 4, 7, 8),
          numbers(6, channels, 3, 2))  # fmt: skip


@pytest.mark.parametrize("options", [{}, {"border_mode": (1, 0, 2), "subsample": (1, 2, 1)}])
def test_correlations_of_volumes(options):
    x, w = T.dtensor5(), T.dtensor5()
    got = older.Corr3dMM(**options)(x, w)
    values = numbers(2, 3, 5, 6, 7), numbers(4, 3, 2, 3, 2)
    agree([x, w], got, conv3d(x, w, filter_flip=False, **options), *values)


@pytest.mark.parametrize(
    ("border", "dilation"),
    [("valid", (1, 1)), ("full", (1, 1)), ((2, 1), (1, 2)), ("full", (2, 1))],
)
def test_gradients_of_correlations_find_lengths(border, dilation):
    x, w = numbers(2, 3, 8, 7), numbers(4, 3, 3, 2)
    top = older.CorrMM(border, (1, 1), dilation)(x, w)
    given = older.CorrMM_gradWeights(border, (1, 1), dilation)(x, top, (3, 2)).eval()
    found = older.CorrMM_gradWeights(border, (1, 1), dilation)(x, top)
    np.testing.assert_allclose(found.eval(), given)
    given = older.CorrMM_gradInputs(border, (1, 1), dilation)(w, top, (8, 7)).eval()
    np.testing.assert_allclose(
        older.CorrMM_gradInputs(border, (1, 1), dilation)(w, top).eval(), given
    )


def test_gradients_of_correlations_need_lengths():
    x, w = T.dtensor4(), T.dtensor4()
    for op in (older.CorrMM_gradWeights("half"), older.CorrMM_gradWeights("valid", (2, 1)),
               older.CorrMM_gradInputs("valid", (1, 2))):  # fmt: skip
        with pytest.raises(ValueError, match="shape must be given"):
            op(x, w)
    assert older.CorrMM_gradInputs("half")(w, x).type.ndim == 4


# --- ConvOp ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("linker", LINKERS)
@pytest.mark.parametrize("mode", ("valid", "full"))
@pytest.mark.parametrize("steps", [(1, 1), (2, 3)])
def test_conv_op(mode, steps, linker):
    x, w = T.dtensor4(), T.dtensor4()
    known = older.ConvOp((3, 7, 8), (3, 2), 4, 2, *steps, mode, unroll_batch=1, unroll_kern=1)
    unknown = older.ConvOp(dx=steps[0], dy=steps[1], output_mode=mode)
    want = conv2d(x, w, border_mode=mode, subsample=steps)
    a, b = numbers(2, 3, 7, 8), numbers(4, 3, 3, 2)
    for op in (known, unknown):
        np.testing.assert_allclose(compiled([x, w], op(x, w), linker)(a, b),
                                   compiled([x, w], want, linker)(a, b), atol=1e-12)  # fmt: skip
    agree([x, w], known(x, w), want, a, b)
    assert known.outshp == older.ConvOp.getOutputShape((7, 8), (3, 2), steps, mode)
    assert unknown.outshp == (None, None)
    assert known == older.ConvOp((3, 7, 8), (3, 2), 4, 2, *steps, mode, 1, 1) != unknown


@pytest.mark.parametrize("aligned", (True, False))
def test_zeros_between_elements(aligned):
    x, w = numbers(2, 3, 9, 8), numbers(4, 3, 2, 2)
    op = older.ConvOp((3, 9, 8), (2, 2), 4, 2, kshp_logical=(4, 3),
                      kshp_logical_top_aligned=aligned)  # fmt: skip
    wide = np.zeros((4, 3, 4, 3))
    wide[:, :, 0 if aligned else 1 :: 2, ::2] = w
    np.testing.assert_allclose(op(x, w).eval(), conv2d(T.constant(x), wide).eval(), atol=1e-12)
    op = older.ConvOp((3, 9, 8), (2, 2), 4, 2, output_mode="full", imshp_logical=(3, 18, 16))
    wide = np.zeros((2, 3, 18, 16))
    wide[:, :, ::2, ::2] = x
    want = conv2d(T.constant(wide), w, border_mode="full").eval()
    np.testing.assert_allclose(op(x, w).eval(), want, atol=1e-12)


def test_a_result_of_one_place_broadcasts():
    x, w = T.dtensor4(), T.dtensor4()
    assert older.ConvOp((3, 4, 5), (4, 5), 2, 1)(x, w).type.broadcastable[2:] == (True, True)


def test_conv_ops_that_cannot_be():
    x = T.dtensor4()
    for said, options in (
        ("output_mode must be 'valid' or 'full'", {"output_mode": "same"}),
        ("imshp must have 3 entries, not 1", {"imshp": (4,)}),
        ("kernels must fit into images", {"imshp": (1, 3, 3), "kshp": (4, 4)}),
        ("need all of imshp", {"unroll_batch": 2}),
    ):
        with pytest.raises(ValueError, match=said):
            older.ConvOp(**options)
    with pytest.raises(TypeError, match=r"dx must be an integer, not 1\.5"):
        older.ConvOp(dx=1.5)
    with pytest.raises(NotImplementedError, match="one dtype, not float64 and float32"):
        older.ConvOp()(x, T.ftensor4())
    with pytest.raises(TypeError, match="images of 4 dimensions, not 2"):
        older.ConvOp()(T.dmatrix(), x)
    f = compiled([x], older.ConvOp((3, 5, 5), (2, 2), 4, 2)(x, T.ones((4, 3, 2, 2))))
    assert f(numbers(3, 3, 6, 5)).shape == (3, 4, 5, 4)


@pytest.mark.filterwarnings("ignore")
def test_the_oldest_function():
    from theano.tensor.nnet.conv import conv2d as oldest

    x, w = T.dtensor4(), T.dtensor4()
    y = oldest(x, w, image_shape=(2, T.constant(3), None, 8), filter_shape=(4, 3, 3, 2),
               border_mode="full", version=2, verbose=1)  # fmt: skip
    agree([x, w], y, conv2d(x, w, border_mode="full"), numbers(2, 3, 7, 8), numbers(4, 3, 3, 2))
    with pytest.raises(AssertionError, match="images have 3 channels and filters 2"):
        oldest(x, w, (2, 3, 7, 8), (4, 2, 3, 3))
    with pytest.raises(
        theano.tensor.NotScalarConstantError, match="image_shape must have constant"
    ):
        oldest(x, w, (2, T.iscalar(), 7, 8))


# --- films and volumes ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    "mode", ["valid", "full", "half", ("valid", "full", "full"), ("full", "valid", "valid"),
             ("half", "full", "full")],
)  # fmt: skip
def test_films(mode):
    """The sum over time of convolutions of images."""
    x, w = T.dtensor5(), T.dtensor5()
    films, filters = numbers(2, 6, 3, 7, 8), numbers(4, 3, 3, 3, 2)
    modes = (mode,) * 3 if isinstance(mode, str) else mode
    pad = {"valid": 0, "full": 2, "half": 1}[modes[0]]
    padded = np.pad(films, [(0, 0), (pad, pad), (0, 0), (0, 0), (0, 0)])
    want = sum(
        conv2d(T.constant(padded[:, t : t + padded.shape[1] - 2].reshape(-1, 3, 7, 8)),
               filters[:, 2 - t], border_mode=modes[1]).eval()
        for t in range(3)
    )  # fmt: skip
    want = want.reshape(2, -1, *want.shape[1:])
    for given in ((), (films.shape, filters.shape), ((None, 6, 3, None, 8), None)):
        y = conv3d2d.conv3d(x, w, *given, border_mode=mode)
        np.testing.assert_allclose(y.eval({x: films, w: filters}), want, atol=1e-12)
    verify_grad(
        lambda a, b: conv3d2d.conv3d(a, b, border_mode=mode),
        [films[:1, :4, :1, :4, :4], filters[:1, :, :1, :2]], rng=np.random.RandomState(0),
    )  # fmt: skip


def test_films_that_cannot_be():
    x = T.dtensor5()
    with pytest.raises(ValueError, match="invalid border mode 'same'"):
        conv3d2d.conv3d(x, x, border_mode="same")
    with pytest.raises(TypeError, match="filters must have 5 dimensions, not 4"):
        conv3d2d.conv3d(x, T.dtensor4())


def test_diagonals():
    a = np.arange(7 * 2 * 4.0).reshape(7, 2, 4)
    want = np.stack([a[3 - j : 7 - j, :, j] for j in range(4)], axis=-1)
    np.testing.assert_array_equal(conv3d2d.get_diagonal_subtensor_view(a, 0, 2), want)
    x = T.dtensor3()
    np.testing.assert_array_equal(conv3d2d.diagonal_subtensor(x, 0, 2).eval({x: a}), want)
    with pytest.raises(NotImplementedError, match="axis 2 at least as long as axis 0"):
        conv3d2d.get_diagonal_subtensor_view(a, 2, 0)
    verify_grad(lambda v: conv3d2d.diagonal_subtensor(v, 0, 2), [a], rng=np.random.RandomState(0))
    verify_grad(lambda v, d: conv3d2d.inc_diagonal_subtensor(v, 0, 2, d), [a, want],
                rng=np.random.RandomState(0))  # fmt: skip
    inplace = conv3d2d.IncDiagonalSubtensor(True)
    f = theano.function([theano.In(x, mutable=True)], inplace(x, 0, 2, want),
                        mode="FAST_COMPILE", accept_inplace=True)  # fmt: skip
    given = a.copy()
    assert f(given).sum() == a.sum() + want.sum() == given.sum()


def test_volumes_whose_channels_are_last():
    """V, W, H have the channels as the last axis; their three Ops are each other's gradients."""
    v, w = T.dtensor5(), T.dtensor5()
    volumes, kernels, bias = numbers(2, 6, 5, 4, 3), numbers(2, 2, 3, 2, 3), numbers(2)
    steps = (2, 1, 1)
    first, last = (0, 4, 1, 2, 3), (0, 2, 3, 4, 1)
    y = older.conv3D(v, w, bias, steps)
    want = conv3d(v.dimshuffle(first), w.dimshuffle(first), subsample=steps, filter_flip=False)
    agree([v, w], y, want.dimshuffle(last) + bias, volumes, kernels)
    given = {v: volumes, w: kernels}
    h = y.eval(given)
    by_v, by_w = (g.eval(given) for g in grad((y**2).sum() / 2, [v, w]))
    back = older.convTransp3D(kernels, np.zeros(3), steps, h, volumes.shape[1:4]).eval()
    np.testing.assert_allclose(back, by_v, atol=1e-10)
    np.testing.assert_allclose(older.convGrad3D(volumes, steps, kernels.shape, h).eval(), by_w)
    assert older.convTransp3D(kernels, np.zeros(3), steps, h).eval().shape == (2, 6, 5, 4, 3)
    with pytest.raises(ValueError, match="steps of a convolution of volumes must be constants"):
        older.conv3D(v, w, bias, T.lvector())


# --- shapes ---------------------------------------------------------------------------------------

BORDERS = ("valid", "full", "half", (2, 1), ((1, 0), (0, 2)))


@pytest.mark.parametrize(("border", "dilation"), list(itertools.product(BORDERS, [(1, 1), (2, 1)])))
def test_shapes_from_each_other(border, dilation):
    image, kernel = (2, 3, 9, 8), (4, 3, 3, 2)
    top = abstract_conv.get_conv_output_shape(image, kernel, border, (1, 1), dilation)
    by_inputs = abstract_conv.get_conv_gradinputs_shape(kernel, top, border, (1, 1), dilation)
    assert by_inputs == image
    by_weights = abstract_conv.get_conv_gradweights_shape(image, top, border, (1, 1), dilation)
    assert by_weights == ((4, 3, None, None) if border == "half" else kernel)
    strided = abstract_conv.get_conv_output_shape(image, kernel, border, (2, 1), dilation)
    assert (
        abstract_conv.get_conv_gradinputs_shape(kernel, strided, border, (2, 1), dilation)[2]
        is None
    )
    assert (
        abstract_conv.get_conv_gradweights_shape(image, strided, border, (2, 1), dilation)[2]
        is None
    )
    assert abstract_conv.check_conv_gradinputs_shape(
        image, kernel, strided, border, (2, 1), dilation
    )
    wrong = (*strided[:3], strided[3] + 1)
    check = abstract_conv.check_conv_gradinputs_shape
    assert not check(image, kernel, wrong, border, (2, 1), dilation)
    assert check(image, kernel, (2, 4, None, T.iscalar()), border, (2, 1), dilation)
    assert not check(image, kernel[:3], top, border, (1, 1), dilation)


def test_shapes_with_groups_and_of_unknown_lengths():
    assert abstract_conv.get_conv_gradinputs_shape(
        (4, 3, 3, 3), (2, 4, 5, None), "valid", (1, 1), num_groups=2
    ) == (2, 6, 7, None)
    assert abstract_conv.get_conv_gradweights_shape(
        (2, 6, 7, 7), (2, 4, 5, 5), "valid", (1, 1), num_groups=2, unshared=True
    ) == (2, 5, 5, 6, 3, 3)


@pytest.mark.parametrize(
    ("length", "found"),
    [
        (abstract_conv.get_conv_shape_1axis, (6, 10, 8, 8, 9)),
        (abstract_conv.get_conv_gradweights_shape_1axis, (6, -4, None, 8, 9)),
        (abstract_conv.get_conv_gradinputs_shape_1axis, (10, -4, 2, 8, 7)),
    ],
)
def test_the_border_mode_of_one_axis(length, found):
    borders = ("valid", "full", "half", 1, (1, 2))
    assert tuple(length(8, 3, border, 1, 1) for border in borders) == found
    assert length(8, 3, None, 1, 1) is None
    for border in ("same", -1, (1, 2, 3)):
        with pytest.raises(ValueError, match="invalid border_mode"):
            length(8, 3, border, 1, 1)


def test_lengths_that_are_checked():
    n = T.iscalars("abcd")
    f = compiled(n, abstract_conv.assert_conv_shape(n))
    assert f(1, 2, 3, 4) == [1, 2, 3, 4] and f(0, 0, 1, 1) == [0, 0, 1, 1]
    for bad in ((-1, 1, 1, 1), (1, -1, 1, 1), (1, 1, 0, 1), (1, 1, 1, -2)):
        with pytest.raises(AssertionError, match="invalid shape"):
            f(*bad)
    assert abstract_conv.assert_conv_shape((1, 0, 3, 4)) == (1, 0, 3, 4)
    with pytest.raises(ValueError, match=r"dim\[2\] < 1.*It is 0"):
        abstract_conv.assert_conv_shape((1, 1, 0, 4))


def test_the_flag_that_checks_shapes():
    x, w, n = T.dtensor4(), T.dtensor4(), T.iscalar()
    assert abstract_conv.assert_shape(x, (2, 3, 4, 5)) is x
    with change_flags(**{"conv.assert_shape": True}):
        f = compiled([x, n], abstract_conv.assert_shape(x, (None, 3, n, None), "It is not so."))
        assert abstract_conv.assert_shape(x, None) is x
        g = compiled([x, w], conv2d(x, w, (None, 3, 7, 8), (4, 3, None, 2)))
    assert f(np.ones((1, 3, 2, 1)), 2).shape == (1, 3, 2, 1)
    with pytest.raises(AssertionError, match="It is not so"):
        f(np.ones((1, 3, 2, 1)), 3)
    assert g(numbers(2, 3, 7, 8), numbers(4, 3, 3, 2)).shape == (2, 4, 5, 7)
    with pytest.raises(AssertionError, match="not the given imshp"):
        g(numbers(2, 3, 7, 9), numbers(4, 3, 3, 2))
    with pytest.raises(AssertionError, match="not the given kshp"):
        g(numbers(2, 3, 7, 8), numbers(4, 3, 3, 3))


def test_shapes_of_convolutions_are_constants():
    assert older.ops.AbstractConv2d(imshp=T.constant([3, 5, 7, 11])).imshp == (3, 5, 7, 11)
    with pytest.raises(ValueError, match="imshp must be None or 4 lengths, not shape"):
        older.ops.AbstractConv2d(imshp=T.ivector("shape"))
