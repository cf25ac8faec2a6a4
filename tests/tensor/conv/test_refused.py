"""Arguments of convolutions and pooling that are refused, when the graph is built, and how."""

import numpy as np
import pytest

import theano.tensor as T
from opwise import nn
from opwise.nn import conv2d, conv2d_transpose, pool_2d, pool_3d
from opwise.tensor.nnet import abstract_conv
from opwise.tensor.nnet.abstract_conv import conv2d_grad_wrt_weights
from opwise.tensor.signal.pool import Pool

X, W, N = T.ftensor4("x"), T.ftensor4("w"), T.lscalar("n")
COUNT = "integer, 1 or more, not"


@pytest.mark.parametrize(
    ("option", "value", "kind", "text"),
    [
        *(("num_groups", v, ValueError, COUNT) for v in (0, 1.5, None, "2", N, (1,), np.nan)),
        *(("subsample", (v, 1), ValueError, "subsample must be 2 integers")
          for v in (0, -1, 1.5, None, "2", N, (1, 1), np.nan, np.inf, 1j)),
        *(("filter_dilation", v, ValueError, "filter_dilation must be 2 integers")
          for v in (2, "ab", N, (1, 1, 1))),
        *(("filter_flip", v, TypeError, "filter_flip must be True or False")
          for v in ("no", N, np.ones(2), [])),
        ("unshared", "yes", TypeError, "unshared must be True or False"),
        *(("border_mode", v, ValueError, "invalid border_mode")
          for v in (1.5, None, True, -1, "same", N, (1,), ("half", 1), {}, (np.nan, 1))),
        *(("input_shape", v, ValueError, "imshp must")
          for v in (8, "abcd", True, N, T.lvector("v"), {1: 2}, (2, 3, 8), (2, 3, 8.5, 8),
                    (2, 3, -1, 8), (2, 3, N, 8), X.shape, (2, 3, "8", 8), (2, 3, np.nan, 8))),
        ("filter_shape", (4, 3, (3, 3), 3), ValueError, "kshp must"),
    ],
)  # fmt: skip
def test_options_of_convolutions(option, value, kind, text):
    with pytest.raises(kind, match=text):
        conv2d(X, W, **{option: value})


@pytest.mark.parametrize(
    "options",
    [
        {"num_groups": np.int64(1)},
        {"num_groups": 1.0},
        {"subsample": np.array([2, 2])},
        {"subsample": (2.0, np.float32(1))},
        {"filter_flip": 0},
        {"filter_flip": np.bool_(True)},
        {"border_mode": np.array([1, 2])},
        {"border_mode": np.int8(1)},
        {"input_shape": np.array([2, 3, 8, 8])},
        {"input_shape": [2, None, np.int32(8), T.constant(8)]},
    ],
)
def test_numbers_of_numpy_are_numbers(options):
    op = conv2d(X, W, **options).owner.op
    assert op.num_groups == 1
    assert isinstance(op.num_groups, int)
    assert isinstance(op.filter_flip, bool)
    assert hash(op) is not None


@pytest.mark.parametrize(
    "value", [None, 8, "abcd", (8, 8), (2, 3, None, 8), (2, 3, 8.5, 8), (N, 3, 8, 8), (2, 3, -1, 8)]
)
def test_lengths_of_what_a_gradient_is_of(value):
    with pytest.raises(ValueError, match=r"shape|imshp|kshp"):
        conv2d_transpose(X, W, value)
    with pytest.raises(ValueError, match=r"shape|imshp|kshp"):
        conv2d_grad_wrt_weights(X, X, value)


@pytest.mark.parametrize("shape", [None, (4, 3), (4, 3, None), (4, 3, N)])
def test_filters_in_time_have_a_known_length(shape):
    with pytest.raises(ValueError, match=r"filter"):
        nn.causal_conv1d(T.ftensor3(), T.ftensor3(), shape)


@pytest.mark.parametrize("ratio", [1.5, "2", -2, True])
def test_ratios(ratio):
    with pytest.raises(ValueError, match="ratio must be an integer, 1 or more"):
        abstract_conv.bilinear_upsampling(X, ratio=ratio)


@pytest.mark.parametrize("ratio", [(1, 0), (1, 2, 3), (1.5, 2), ((1, 2), (3,))])
def test_fractions(ratio):
    with pytest.raises(ValueError, match="frac_ratio must be two integers"):
        abstract_conv.bilinear_upsampling(X, frac_ratio=ratio, use_1D_kernel=False)


@pytest.mark.parametrize(
    ("option", "value", "kind"),
    [
        *(("ws", v, TypeError) for v in (2, (2.0, 2.0), "22", (True, True), (None, 2), np.ones(2))),
        *(("ws", v, ValueError) for v in ((2, 2, 2), (0, 2), (-1, 2), (N, N, N))),
        *(("stride", v, TypeError) for v in (2, (1.5, 1), "ab", (None, 1))),
        *(("stride", v, ValueError) for v in ((0, 1), (1, 1, 1))),
        *(("pad", v, TypeError) for v in (1, (0.5, 0), "ab", {})),
        *(("pad", v, ValueError) for v in ((-1, 0), (1, 1, 1))),
    ],
)
def test_windows(option, value, kind):
    with pytest.raises(kind, match=f"{option} must be 2 integers"):
        pool_2d(X, **{"ws": (3, 3), "ignore_border": True, option: value})


def test_windows_of_volumes_have_three_lengths():
    with pytest.raises(ValueError, match="ws must be 3 integers"):
        pool_3d(T.TensorType("float32", (False,) * 5)(), (2, 2), ignore_border=True)


@pytest.mark.parametrize("pad", [(2, 0), np.array([0, 3])])
def test_pads_are_smaller_than_windows(pad):
    with pytest.raises(NotImplementedError, match="padding must be smaller than windows"):
        pool_2d(X, (2, 2), pad=pad, ignore_border=True)
    with pytest.raises(NotImplementedError, match="ignore_border=True"):
        pool_2d(X, (5, 5), pad=pad, ignore_border=False)


@pytest.mark.parametrize("value", ["yes", N, (1, 1)])
def test_a_border_is_ignored_or_not(value):
    with pytest.raises(TypeError, match="ignore_border must be True or False"):
        pool_2d(X, (2, 2), ignore_border=value)


@pytest.mark.parametrize("ndim", [0, -1, "2", True, 1.5])
def test_dimensions_of_windows(ndim):
    with pytest.raises(ValueError, match="ndim must be an integer"):
        Pool(ndim=ndim)


def test_symbolic_windows_and_pads_in_a_tuple():
    values = np.arange(32.0, dtype="f").reshape(1, 1, 4, 8)
    y = pool_2d(X, (N, N), stride=(N, N), pad=(N - 1, N - 1), ignore_border=True)
    np.testing.assert_array_equal(y.eval({X: values, N: 1}), values)
    expected = pool_2d(X, (2, 2), pad=np.array([1, 1]), ignore_border=True).eval({X: values})
    np.testing.assert_array_equal(y.eval({X: values, N: 2}), expected)
