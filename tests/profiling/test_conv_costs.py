"""Operations and bytes of convolutions and pooling in profiles, against loops that count them."""

import itertools

import numpy as np
import pytest

import opwise.tensor as T
from opwise import Mode, function
from opwise.gradient import grad
from opwise.nn import conv2d, conv3d, pool_2d
from opwise.profiling.machinelimits import MachineLimits, Peak
from opwise.profiling.roofline import attainable
from opwise.tensor.conv.geometry import n_met
from opwise.tensor.conv.pool import MODES
from opwise.tensor.type import tensor_type

#: bytes of the vector with the lengths that a gradient is to have
LENGTHS = 16


def profiled(build, *values, gradients=True, mode="py"):
    """Return {class of an Op: its ApplyProfile}, of an expression of arrays and its gradients."""
    inputs = [tensor_type("float32", (False,) * v.ndim)() for v in values]
    out = build(*inputs)
    wrt = inputs if gradients else []
    outputs = [out, *grad(None, wrt, known_grads={out: 2 * out}, disconnected_inputs="ignore")]
    f = function(inputs, outputs, profile=True, mode=Mode(mode, "fast_run"))
    f(*[v.astype("float32") for v in values])
    found = f.profile.profile().functions[0].applys
    return {a.op_class.rpartition(".")[2].rstrip("'>"): a for a in found}


def conv_counts(x, w, out, steps, dilation, pads, groups=1):
    """Return (operations, elements of images that are met) by going to each place."""
    operations, met = 0, set()
    n = len(steps)
    for place in itertools.product(*map(range, out[2:])):
        for tap in itertools.product(*map(range, w[-n:])):
            at = [
                p * s + t * d - before
                for p, s, t, d, before in zip(place, steps, tap, dilation, pads, strict=True)
            ]
            operations += 2 * x[0] * w[0] * w[-n - 1]
            if all(0 <= a < length for a, length in zip(at, x[2:], strict=True)):
                met.add(tuple(at))
    assert x[1] == w[-n - 1] * groups
    return operations, x[0] * x[1] * len(met)


def bytes_of(*shapes):
    return sum(4 * int(np.prod(shape)) for shape in shapes)


@pytest.mark.parametrize("mode", ["py", "c|py"])
@pytest.mark.parametrize(
    ("steps", "dilation", "pads", "groups"),
    [
        ((1, 1), (1, 1), (0, 0), 1),
        ((3, 3), (1, 1), (0, 0), 1),  # steps over rows and columns
        ((3, 2), (1, 1), (1, 2), 2),
        ((1, 2), (2, 3), (1, 0), 1),
        ((2, 1), (1, 2), (0, 0), 4),
    ],
)
def test_convolutions(steps, dilation, pads, groups, mode):
    x, w = np.ones((2, 4, 8, 9)), np.ones((8, 4 // groups, 2, 3))

    def build(x, w):
        return conv2d(x, w, border_mode=pads, subsample=steps, filter_dilation=dilation,
                      num_groups=groups)  # fmt: skip

    found = profiled(build, x, w, mode=mode)
    forward = found["AbstractConv2d"]
    out = forward.output_arrays[0].shape
    operations, met = conv_counts(x.shape, w.shape, out, steps, dilation, pads, groups)
    assert forward.flops == operations
    assert forward.traffic == 4 * met + bytes_of(w.shape, out)
    by_kernels = found["AbstractConv2d_gradWeights"]
    assert by_kernels.flops == operations
    assert by_kernels.traffic == 4 * met + bytes_of(w.shape, out) + LENGTHS
    by_images = found["AbstractConv2d_gradInputs"]
    assert by_images.flops == operations
    assert by_images.traffic == bytes_of(x.shape, w.shape, out) + LENGTHS
    assert {a.is_product for a in (forward, by_kernels, by_images)} == {True}


def test_volumes_and_weights_for_each_place():
    x, w = np.ones((2, 3, 4, 5, 6)), np.ones((2, 3, 2, 2, 3))
    forward = profiled(conv3d, x, w, gradients=False)["AbstractConv3d"]
    out = (2, 2, 3, 4, 4)
    operations, met = conv_counts(x.shape, w.shape, out, (1,) * 3, (1,) * 3, (0,) * 3)
    assert forward.output_arrays[0].shape == out
    assert (forward.flops, forward.traffic) == (operations, 4 * met + bytes_of(w.shape, out))
    x, w = np.ones((2, 3, 5, 6)), np.ones((4, 4, 4, 3, 2, 3))
    forward = profiled(lambda x, w: conv2d(x, w, unshared=True), x, w)["AbstractConv2d"]
    assert forward.flops == 2 * 2 * 4 * 16 * 18
    assert forward.traffic == bytes_of(x.shape, w.shape, (2, 4, 4, 4))


def test_an_empty_batch_costs_its_kernels_alone():
    x, w = np.ones((0, 3, 5, 6)), np.ones((4, 3, 2, 3))
    forward = profiled(conv2d, x, w, gradients=False)["AbstractConv2d"]
    assert (forward.flops, forward.traffic) == (0, bytes_of(w.shape))


def test_elements_that_a_kernel_meets():
    for length, kernel, stride, pad, dilation in itertools.product(
        (1, 5, 8), (1, 3), (1, 2, 4), (0, 2), (1, 2)
    ):
        output = max(0, (length + 2 * pad - (kernel - 1) * dilation - 1) // stride + 1)
        met = {o * stride + k * dilation - pad for o in range(output) for k in range(kernel)} & set(
            range(length)
        )
        assert n_met(length, kernel, output, pad, stride, dilation) == len(met)


POOLS = [
    {"ws": (2, 2)},
    {"ws": (2, 3), "stride": (3, 3)},  # leaves elements out
    {"ws": (3, 3), "stride": (2, 1), "pad": (1, 2)},
]


def windows_of(shape, ws, stride=None, pad=(0, 0), ignore_border=True):
    """Return the set of elements of each window."""
    stride = stride or ws
    axes = []
    for n, w, s, p in zip(shape[2:], ws, stride, pad, strict=True):
        starts = range(-p, n + p, s)
        if ignore_border:
            starts = [a for a in starts if a + w <= n + p]
        else:
            starts = [a for i, a in enumerate(starts) if i == 0 or a - s + w < n]
        axes.append([set(range(a, a + w)) & set(range(n)) for a in starts])
    return [set(itertools.product(*pair)) for pair in itertools.product(*axes)]


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("window", POOLS)
def test_pooling(mode, window):
    x = np.random.default_rng(0).normal(size=(2, 3, 8, 9))
    found = profiled(lambda x: pool_2d(x, ignore_border=True, mode=mode, **window), x)
    windows = windows_of(x.shape, **window)
    elements, seen = sum(map(len, windows)), len(set.union(*windows))
    divided = len(windows) if mode.startswith("average") else 0
    forward = found["Pool"]
    assert forward.output_arrays[0].bytes == 24 * len(windows)
    assert forward.flops == 6 * (elements - len(windows) + divided)
    ws, stride, pad = (a.bytes for a in forward.input_arrays[1:])
    numbers = ws + pad + stride * ("stride" in window)  # else it is the same array
    assert forward.traffic == 24 * (seen + len(windows)) + numbers
    back = found["MaxPoolGrad" if mode == "max" else "AveragePoolGrad"]
    read = seen + 2 * len(windows) if mode == "max" else len(windows)
    assert back.flops == 6 * ((2 if mode == "max" else 1) * elements + divided)
    assert back.traffic == 24 * read + x.size * 4 + numbers


def test_windows_over_the_border():
    x = np.ones((2, 3, 7, 5))
    forward = profiled(lambda x: pool_2d(x, (3, 2), ignore_border=False), x)["Pool"]
    windows = windows_of(x.shape, (3, 2), ignore_border=False)
    assert forward.flops == 6 * (sum(map(len, windows)) - len(windows))


def test_windows_that_are_not_known_have_no_count():
    x, n = T.ftensor4(), T.lvector()
    f = function([x, n], pool_2d(x, n, ignore_border=True), profile=True)
    f(np.ones((1, 1, 4, 4), "f"), [2, 2])
    apply = f.profile.profile().functions[0].applys[-1]
    assert (apply.flops, apply.traffic) == (None, None)


def test_the_limit_of_a_convolution_is_that_of_products():
    found = profiled(conv2d, np.ones((2, 8, 16, 16)), np.ones((8, 8, 3, 3)), gradients=False)
    apply = found["AbstractConv2d"]
    machine = MachineLimits(
        probe=1, processor="one", processors=1, threads=1, vectors="wide", caches=(1 << 20,),
        one=((1 << 20, 100.0),), all=((1 << 20, 100.0),), step_ns=0.0, quiet=1.0,
        peaks=(Peak("float32", False, 10.0, 10.0), Peak("float32", True, 40.0, 40.0)),
    )  # fmt: skip
    ns, bound = attainable(apply, machine)
    assert bound == "arithmetic"
    assert ns == pytest.approx(apply.flops / 40.0)
