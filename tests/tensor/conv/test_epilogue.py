"""Elementwise work that a convolution does on its result: ConvElemwise, its rewrite and its C."""

import pickle

import numpy as np
import pytest

import opwise
import opwise.tensor as T
from opwise import Mode, function
from opwise.compile import DebugMode
from opwise.config import change_flags
from opwise.gradient import grad
from opwise.linkers.convsteps import ALGORITHMS, algorithm
from opwise.nn import conv2d, conv3d, relu
from opwise.tensor import Elemwise
from opwise.tensor.conv.epilogue import ConvElemwise
from opwise.tensor.conv.geometry import Geometry
from opwise.tensor.nnet.abstract_conv import AbstractConv, AbstractConv_gradInputs
from opwise.tensor.nnet.bn import batch_normalization_test
from opwise.tensor.type import tensor_type

C = Mode("c|py", "fast_run")
APART = C.excluding("conv_elemwise_fusion")
#: image, filters, border mode, subsample, dilation, groups
SHAPES = [
    ((2, 3, 7, 9), (5, 3, 3, 3), 1, (1, 1), (1, 1), 1),
    ((1, 17, 6, 33), (33, 17, 3, 3), "valid", (1, 1), (2, 1), 1),
    ((3, 40, 5, 5), (14, 20, 3, 3), (2, 0), (1, 1), (1, 1), 2),
    ((2, 300, 5, 13), (131, 300, 1, 1), "valid", (1, 1), (1, 1), 1),
    ((2, 5, 23, 22), (13, 5, 5, 4), (3, 5), (2, 3), (1, 1), 1),
    ((2, 8, 23, 22), (8, 1, 3, 3), "half", (1, 1), (1, 1), 8),
    ((2, 8, 23, 22), (8, 1, 3, 3), "full", (2, 2), (1, 1), 8),
    ((0, 3, 7, 9), (5, 3, 3, 3), 1, (1, 1), (1, 1), 1),
    ((2, 0, 7, 9), (5, 0, 3, 3), 1, (1, 1), (1, 1), 1),
    ((1, 1, 1, 1), (1, 1, 1, 1), "valid", (1, 1), (1, 1), 1),
]


def tensor(dtype, ndim, name=None):
    return tensor_type(dtype, (False,) * ndim)(name)


def on_maps(b, ndim=4):
    return b.dimshuffle("x", 0, *["x"] * (ndim - 2))


def of(f, cls):
    return [node for node in f.maker.fgraph.toposort() if isinstance(node.op, cls)]


def works(y, b, r, m):
    """Elementwise work on results ``y`` with a number for each map, an array and a row of flags."""
    z = y + on_maps(b)
    return {
        "relu": [relu(z)],
        "tanh": [T.tanh(y * on_maps(b) + b[0]) + r],
        "results": [T.gt(z, 0.3), T.maximum(z, 0), z * r],
        "broadcast": [
            y * m.dimshuffle("x", "x", "x", 0) + r.sum(1, keepdims=True) * r.sum(0, keepdims=True)
        ],
    }


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", [name for name in ALGORITHMS if name != "measure"])
@pytest.mark.parametrize("work", ["relu", "tanh", "results", "broadcast"])
def test_every_algorithm_gives_the_same_bits_as_two_steps(name, work, dtype):
    for shapes in SHAPES if name == "model" else SHAPES[:6]:
        same_bits(dtype, work, name, *shapes)


def same_bits(dtype, work, name, image, kernel, pad, step, dilation, groups, unshared=False):
    lengths = Geometry((pad, pad) if isinstance(pad, int) else pad, step, dilation).output(
        image[2:], kernel[2:]
    )
    x, w, b, r = (tensor(dtype, n) for n in (4, 6 if unshared else 4, 1, 4))
    m = tensor("int8", 1)
    y = conv2d(x, w, border_mode=pad, subsample=step, filter_dilation=dilation, num_groups=groups,
               unshared=unshared)  # fmt: skip
    # and what follows the gradient by images
    outputs = [*works(y, b, r, m)[work], grad(None, x, known_grads={y: r}) * T.gt(x, 0)]
    with change_flags(**{"conv.algo": name}):
        f, g = (
            function([x, w, b, r, m], outputs, mode=mode, on_unused_input="ignore")
            for mode in (C, APART)
        )
    assert len(of(f, ConvElemwise)) == 2
    assert not of(f, AbstractConv | AbstractConv_gradInputs | Elemwise)
    assert not of(g, ConvElemwise)
    rng = np.random.default_rng(5)

    def array(*shape):
        return rng.standard_normal(shape).astype(dtype)

    places = lengths if unshared else ()
    values = [array(*image), array(kernel[0], *places, *kernel[1:]), array(kernel[0]),
              array(image[0], kernel[0], *lengths),
              rng.integers(0, 2, lengths[-1], "int8")]  # fmt: skip
    layouts = [
        values,
        [np.asfortranarray(v) for v in values],
        [v[(slice(None, None, -1),) * v.ndim] for v in values],
        [np.repeat(v, 2, axis=-1)[..., ::2] for v in values],
    ]
    for each in layouts:
        for ours, apart in zip(f(*each), g(*each), strict=True):
            assert ours.dtype == apart.dtype
            np.testing.assert_array_equal(ours, apart, strict=True)


def test_unshared_filters():
    same_bits(
        "float32", "tanh", "model", (2, 4, 9, 8), (6, 2, 3, 3), (0, 0), (1, 1), (1, 1), 2, True
    )


def test_three_spatial_axes():
    x, w, b, r = (tensor("float32", n) for n in (5, 5, 1, 5))
    out = T.tanh(conv3d(x, w, border_mode=1) + on_maps(b, 5)) * r
    f, g = (function([x, w, b, r], out, mode=mode) for mode in (C, APART))
    assert len(of(f, ConvElemwise)) == 1
    rng = np.random.default_rng(5)
    for order in "CF":
        values = [np.asarray(rng.standard_normal(s), "float32", order=order) for s in
                  [(2, 3, 4, 5, 6), (7, 3, 3, 3, 3), (7,), (2, 7, 4, 5, 6)]]  # fmt: skip
        np.testing.assert_array_equal(f(*values), g(*values))


def test_results_that_winograd_would_spread_are_finished_once():
    """Winograd's algorithm gives up on infinite results, and another one starts from images."""
    x, w, b = tensor("float32", 4), tensor("float32", 4), tensor("float32", 1)
    with change_flags(**{"conv.algo": "winograd"}):
        f, g = (function([x, w, b], conv2d(x, w) * 2 + on_maps(b), mode=m) for m in (C, APART))
    image = np.ones((1, 8, 12, 12), "float32")
    image[0, 0, 3, 3] = np.inf
    image[0, 1, 9, 9] = np.nan
    values = image, np.ones((4, 8, 3, 3), "float32"), np.ones(4, "float32")
    np.testing.assert_array_equal(f(*values), g(*values))
    assert np.isfinite(f(*values)).sum() == 4 * (100 - 18)


@pytest.mark.null
def test_what_is_fused_and_what_is_not():
    x, w, b = tensor("float32", 4), tensor("float32", 4), tensor("float32", 1)
    y = conv2d(x, w)

    def fused(*outputs, mode=None):
        f = function([x, w, b], list(outputs), mode=mode or Mode("py", "fast_run"),
                     on_unused_input="ignore")  # fmt: skip
        return len(of(f, ConvElemwise)), len(of(f, Elemwise))

    z = y + on_maps(b)
    maps = [on_maps(v) for v in (b, b * 2, b - 1, b * b)]
    assert fused(T.switch(z > 0, z, 0)) == (1, 0)
    assert fused(1 / (1 + T.exp(-z))) == (1, 0)
    assert fused(relu(batch_normalization_test(y, *maps, axes="spatial")))[0] == 1
    assert fused(z, T.tanh(z)) == (1, 0)  # one step with both results
    assert fused(T.tanh(z), y) == (0, 1)  # something else reads the result
    assert fused(T.gt(y, 0)) == (0, 1)  # no result has the memory for that of the convolution
    assert fused(T.tanh(z), mode=Mode("py", "fast_run").excluding("fusion"))[0] == 0
    assert fused(T.tanh(conv2d(T.cast(x, "float16"), T.cast(w, "float16"))))[0] == 0
    residual = relu(conv2d(relu(conv2d(x, w, border_mode=1)), w, border_mode=1) + x)
    assert fused(residual) == (2, 0)


def test_fewer_passes_over_memory():
    """The profile counts what a step reads and writes: the result once, not three times."""
    x, w, b = tensor("float32", 4), tensor("float32", 4), tensor("float32", 1)
    moved = []
    for mode in (C, APART):
        f = function([x, w, b], relu(conv2d(x, w) + on_maps(b)), mode=mode, profile=True)
        f(*(np.ones(s, "float32") for s in [(2, 3, 34, 34), (8, 3, 3, 3), (8,)]))
        applys = f.profile.profile().functions[0].applys
        moved.append(sum(a.traffic or 0 for a in applys))
    result = 2 * 8 * 32 * 32 * 4
    assert moved[1] - moved[0] == 2 * result


def test_the_op_is_an_op():
    x, w, b = tensor("float64", 4), tensor("float64", 4), tensor("float64", 1)
    f = function([x, w, b], T.tanh(conv2d(x, w, border_mode="half") + on_maps(b)), mode=C)
    (node,) = of(f, ConvElemwise)
    op = pickle.loads(pickle.dumps(node.op))
    assert op == node.op and hash(op) == hash(node.op)
    assert str(op).startswith("ConvElemwise{AbstractConv2d{")
    rng = np.random.default_rng(5)
    values = [rng.standard_normal(s) for s in [(2, 3, 5, 6), (4, 3, 3, 3), (4,)]]
    applied = op(x, w, on_maps(b))
    python = function([x, w, b], [applied, applied.shape], mode=Mode("py", None))(*values)
    np.testing.assert_allclose(python[0], f(*values), rtol=1e-13)
    assert tuple(python[1]) == (2, 4, 5, 6)
    opwise.gradient.verify_grad(lambda x, w, b: op(x, w, on_maps(b)), values, rng=rng)
    shapes = [(2, 3, 5, 6), (4, 3, 3, 3), (1, 4, 1, 1)]
    of_conv = op.conv.flops(shapes[:2], [(2, 4, 5, 6)])
    assert op.flops(shapes, [(2, 4, 5, 6)]) == of_conv  # a tanh has no exact count
    (scaled,) = of(function([x, w, b], conv2d(x, w) * on_maps(b), mode=C), ConvElemwise)
    shapes[1] = (4, 3, 1, 1)
    of_conv = op.conv.flops(shapes[:2], [(2, 4, 5, 6)])
    assert scaled.op.flops(shapes, [(2, 4, 5, 6)]) == of_conv + 2 * 4 * 5 * 6
    shapes[1] = (4, 3, 3, 3)
    with change_flags(**{"conv.algo": "patches"}):
        assert algorithm(node, shapes, [(2, 4, 5, 6)]) == "patches"


def test_debug_mode_compares_both_implementations():
    x, w, b = tensor("float32", 4), tensor("float32", 4), tensor("float32", 1)
    z = T.tanh(conv2d(x, w) + on_maps(b))
    f = function([x, w, b], [z, grad(z.sum(), w)], mode=DebugMode())
    rng = np.random.default_rng(5)
    values = [rng.standard_normal(s).astype("float32") for s in [(2, 3, 8, 8), (4, 3, 3, 3), (4,)]]
    assert f(*values)[0].shape == (2, 4, 6, 6)
    assert of(f, ConvElemwise)


def test_lengths_that_differ_are_the_errors_of_two_steps():
    x, w, b, r = (tensor("float32", n) for n in (4, 4, 1, 4))
    functions = [
        function([x, w, b, r], relu(conv2d(x, w) + on_maps(b)) * r, mode=mode)
        for mode in (C, APART)
    ]
    good = [(2, 3, 8, 8), (4, 3, 3, 3), (4,), (2, 4, 6, 6)]
    for position, shape in [
        (0, (2, 2, 8, 8)),
        (2, (3,)),
        (2, (1,)),
        (3, (2, 4, 6, 5)),
        (3, (1, 4, 6, 6)),
    ]:
        shapes = [*good[:position], shape, *good[position + 1 :]]
        texts = []
        for f in functions:
            with pytest.raises(ValueError) as caught:
                f(*(np.ones(s, "float32") for s in shapes))
            first, second, *_ = str(caught.value).split("\n")
            assert first.startswith("Shapes do not fit: ") and str(shape) in first
            texts.append(second.split("(input")[0])
        assert texts[0] == texts[1]
        f(*(np.ones(s, "float32") for s in good))
