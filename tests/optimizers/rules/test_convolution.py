"""Rules on convolutions and pooling: what programs write around them, its gradients, lookalikes.

Each graph is compared with itself under FAST_COMPILE, which has none of these rules.
"""

from collections import Counter

import numpy as np
import pytest

import opwise.tensor as T
from opwise import Mode, function, shared
from opwise.compile import Shape_i
from opwise.gradient import grad
from opwise.graph.traversal import inputs as leaves
from opwise.nn import conv2d, conv2d_transpose, conv3d, pool_2d, pool_3d
from opwise.optimizers.rules.lengths import LengthSum, difference
from opwise.tensor import (
    DimShuffle,
    Elemwise,
    IncSubtensor,
    Join,
    ScalarFromTensor,
    SpecifyShape,
    Subtensor,
    TensorFromScalar,
    cast,
    inc_subtensor,
    set_subtensor,
)
from opwise.tensor.join import MakeVector
from opwise.tensor.nnet.abstract_conv import (
    AbstractConv2d,
    AbstractConv2d_gradInputs,
    AbstractConv2d_gradWeights,
    BaseAbstractConv,
    conv2d_grad_wrt_weights,
)
from opwise.tensor.signal.pool import Pool
from opwise.tensor.type import tensor_type

RANDOM = np.random.default_rng(5)
IMAGES, KERNELS = RANDOM.normal(size=(2, 3, 9, 8)), RANDOM.normal(size=(4, 3, 3, 2))


def known(w):
    """Return kernels whose lengths the graph knows; those given to conv2d are only hints."""
    return T.specify_shape(w, KERNELS.shape)


#: views that cost nothing, and lengths
FREE = {
    Shape_i, ScalarFromTensor, TensorFromScalar, MakeVector, DimShuffle, SpecifyShape,
}  # fmt: skip
FAMILY = {AbstractConv2d, AbstractConv2d_gradWeights, AbstractConv2d_gradInputs}


def ops_of(f):
    return [type(node.op) for node in f.maker.fgraph.toposort()]


def alike(build, *values, gradients=True, exclude=()):
    """Return the classes of the Ops of a function whose results do not change by rewrites.

    build: a function of variables. gradients: whether to compute those by all inputs too.
    """
    values = [np.asarray(v) for v in values] or [IMAGES, KERNELS]
    inputs = [tensor_type(v.dtype.name, (False,) * v.ndim)() for v in values]
    outputs = [build(*inputs)]
    if gradients:
        outputs += grad(T.sin(outputs[0] * 1.3).sum(), inputs)
    expected = function(inputs, outputs, mode=Mode("py", "fast_compile"))(*values)
    f = function(inputs, outputs, mode=Mode("c|py", "fast_run").excluding(*exclude))
    tolerance = 1e-9 if values[0].dtype == "float64" else 2e-4
    for old, new in zip(expected, f(*values), strict=True):
        assert (old.dtype, old.shape) == (new.dtype, new.shape)
        np.testing.assert_allclose(new, old, rtol=tolerance, atol=tolerance)
    return ops_of(f)


def is_bare(ops):
    """Return whether nothing but convolutions and elementwise operations compute arrays."""
    return set(ops) <= FAMILY | FREE | {Elemwise}


# --- zeros around images --------------------------------------------------------------------------


def set_between(x, top, bottom, left, right):
    """As Keras pads images."""
    n, c, rows, columns = (x.shape[i] for i in range(4))
    zeros = T.zeros((n, c, rows + top + bottom, columns + left + right), dtype=x.dtype)
    return set_subtensor(zeros[:, :, top : rows + top, left : columns + left], x)


def added_between(x, top, bottom, left, right):
    """As Lasagne pads, with ends that count from behind."""
    lengths = [x.shape[0], x.shape[1], x.shape[2] + (top + bottom), x.shape[3] + (left + right)]
    zeros = T.zeros(lengths, dtype=x.dtype)
    return inc_subtensor(zeros[:, :, top : -bottom or None, left : -right or None], x)


def joined(x, top, bottom, left, right):
    n, c, columns = (x.shape[i] for i in (0, 1, 3))
    above, below = (T.zeros((n, c, k, columns), dtype=x.dtype) for k in (top, bottom))
    tall = T.concatenate([above, x, below], axis=2)
    beside = [T.zeros((n, c, tall.shape[2], k), dtype=x.dtype) for k in (left, right)]
    return T.concatenate([beside[0], tall, beside[1]], axis=3)


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("pad", [set_between, added_between])
@pytest.mark.parametrize("around", [(1, 2, 1, 3), (0, 1, 2, 2), (3, 0, 0, 1)])
def test_zeros_around_images_become_a_border(pad, around, dtype):
    values = IMAGES.astype(dtype), KERNELS.astype(dtype)
    ops = alike(lambda x, w: conv2d(pad(x, *around), w), *values)
    assert is_bare(ops)
    assert Counter(o for o in ops if o in FAMILY) == Counter(FAMILY)


def test_zeros_that_are_joined_to_images_become_a_border():
    assert is_bare(alike(lambda x, w: conv2d(joined(x, 1, 2, 0, 3), w), gradients=False))
    alike(lambda x, w: conv2d(joined(x, 1, 2, 2, 3), w))


@pytest.mark.parametrize(
    "options",
    [
        {"border_mode": (1, 2), "subsample": (2, 1)},
        {"border_mode": ((0, 2), 1), "filter_dilation": (2, 2)},
        {"border_mode": "half"},
        {"border_mode": "full", "filter_flip": False},
        {"input_shape": (2, 3, None, None)},
    ],
)
def test_zeros_are_added_to_a_border(options):
    assert is_bare(alike(lambda x, w: conv2d(set_between(x, 1, 2, 0, 3), known(w), **options)))


def test_zeros_around_groups_and_volumes():
    images, kernels = RANDOM.normal(size=(2, 4, 6, 7)), RANDOM.normal(size=(6, 2, 3, 3))
    assert is_bare(
        alike(lambda x, w: conv2d(set_between(x, 1, 1, 1, 1), w, num_groups=2), images, kernels)
    )

    def volumes(x, w):
        shape = [x.shape[i] for i in range(5)]
        zeros = T.zeros((*shape[:2], shape[2] + 2, shape[3] + 3, shape[4]))
        inside = zeros[:, :, 1 : shape[2] + 1, 2 : shape[3] + 2]
        return conv3d(set_subtensor(inside, x), w)

    ops = alike(volumes, RANDOM.normal(size=(2, 2, 3, 4, 5)), RANDOM.normal(size=(3, 2, 2, 3, 2)))
    assert IncSubtensor not in ops


def test_weights_for_each_place_see_zeros_around_images():
    kernels = RANDOM.normal(size=(2, 10, 10, 3, 2, 2))
    ops = alike(lambda x, w: conv2d(set_between(x, 1, 1, 1, 2), w, unshared=True), IMAGES, kernels)
    assert IncSubtensor not in ops


@pytest.mark.parametrize("pad", [set_between, added_between, joined])
def test_zeros_around_images_with_channels_last_become_a_border(pad):
    def padded(x, w):
        # rows and columns are dimensions 1 and 2
        turned = x.dimshuffle(0, 3, 1, 2)
        return conv2d(pad(turned.dimshuffle(0, 1, 2, 3), 1, 2, 1, 3), w)

    def last(x, w):
        n, rows, columns, c = (x.shape[i] for i in range(4))
        zeros = T.zeros((n, rows + 3, columns + 1, c))
        inside = set_subtensor(zeros[:, 2 : rows + 2, 1:], x)
        return conv2d(inside.dimshuffle(0, 3, 1, 2), w)

    images = IMAGES.transpose(0, 2, 3, 1)
    assert not {IncSubtensor, Join} & {*alike(padded, images, KERNELS, gradients=False)}
    ops = alike(last, images, KERNELS)
    assert is_bare(ops)
    # the gradient is computed inside of the zeros only
    assert Subtensor not in ops


def test_zeros_that_others_stand_between_become_no_border():
    def channels(x, w):
        # zeros that end up as channels
        rows = x.shape[2]
        zeros = T.zeros((x.shape[0], x.shape[1], rows + 1, x.shape[3]))
        inside = set_subtensor(zeros[:, :, 1:], x)
        return conv2d(inside.dimshuffle(0, 2, 1, 3), w)

    kernels = RANDOM.normal(size=(4, 10, 3, 2))
    assert IncSubtensor in alike(channels, IMAGES, kernels)


def test_zeros_around_images_that_are_cast_become_a_border():
    def build(x, w):
        shape = (x.shape[0], x.shape[1], x.shape[2] + 2, x.shape[3])
        inside = set_subtensor(T.zeros(shape, "float32")[:, :, 1:-1], cast(x, "float32"))
        return conv2d(inside, w)

    ops = alike(build, gradients=False)
    assert IncSubtensor not in ops

    def narrow(x, w):
        # what is put into zeros is rounded to their type
        shape = (x.shape[0], x.shape[1], x.shape[2] + 2, x.shape[3])
        zeros = T.zeros(shape, "int8")
        return conv2d(set_subtensor(zeros[:, :, 1:-1], cast(x * 9, "int8")), w)

    assert IncSubtensor not in alike(narrow, gradients=False)


def test_numbers_that_are_no_zeros_and_unknown_places_stay():
    def ones(x, w):
        shape = (x.shape[0], x.shape[1], x.shape[2] + 2, x.shape[3])
        return conv2d(set_subtensor(T.ones(shape)[:, :, 1:-1], x), w)

    assert IncSubtensor in alike(ones)

    def channels(x, w):
        shape = (x.shape[0], x.shape[1] + 1, x.shape[2] + 2, x.shape[3])
        return conv2d(set_subtensor(T.zeros(shape)[:, 1:, 1:-1], x[:, :2]), w[:, :3])

    ops = alike(channels, IMAGES[:, :2], KERNELS)
    assert IncSubtensor in ops


def test_an_image_that_is_repeated_between_zeros_is_not_taken_for_a_larger_one():
    def build(x, w):
        zeros = T.zeros((x.shape[0], x.shape[1], 6, x.shape[3] + 2))
        return conv2d(set_subtensor(zeros[:, :, 1:-1, 1:-1], x), w)

    ops = alike(build, IMAGES[:, :, :1], KERNELS, gradients=False)  # one row is broadcast to four
    assert IncSubtensor in ops


# --- parts of results -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    "build",
    [
        lambda x, w: conv2d(x, w)[:, :, ::2, ::3],
        lambda x, w: conv2d(x, w, subsample=(2, 1), border_mode=(4, 2))[:, :, 1::2, 1::3],
        lambda x, w: conv2d(x, known(w), border_mode="full")[:, :, 1:-1, 1:-1],
        lambda x, w: conv2d(x, known(w), border_mode="full")[
            :, :, 1 : x.shape[2] + 1, 0 : x.shape[3]
        ],
        lambda x, w: conv2d(x, w, border_mode=2, filter_dilation=(2, 1))[:, :, 2:, :-1],
    ],
)
def test_only_the_part_that_is_read_is_computed(build):
    ops = alike(build)
    assert is_bare(ops)
    assert Counter(o for o in ops if o in FAMILY) == Counter(FAMILY)


@pytest.mark.parametrize(
    ("kernels", "cut"),
    [
        (T.constant(KERNELS), True),
        (T.reshape(T.dvector("flat"), KERNELS.shape), True),
        (T.specify_shape(shared(KERNELS), KERNELS.shape), True),
        (shared(KERNELS), False),  # set_value may give it others
    ],
    ids=["constant", "reshape", "specify_shape", "shared"],
)
def test_a_full_result_is_cut_if_the_graph_knows_the_kernels(kernels, cut):
    x = T.dtensor4("x")
    flat = [v for v in leaves([kernels]) if v.name == "flat"]
    y = conv2d(x, kernels, border_mode="full", filter_shape=KERNELS.shape)[:, :, 1:-1, :-1]
    f = function([x, *flat], y)
    (node,) = (n for n in f.maker.fgraph.toposort() if isinstance(n.op, AbstractConv2d))
    assert node.op.border_mode == ((1, (1, 0)) if cut else "full")
    expected = function([x, *flat], y, mode=Mode("py", None))
    given = [KERNELS.ravel()] * len(flat)
    np.testing.assert_allclose(f(IMAGES, *given), expected(IMAGES, *given))


@pytest.mark.parametrize(
    "build",
    [
        lambda x, w: conv2d(x, w)[0],
        lambda x, w: conv2d(x, w)[-1, :2],
        lambda x, w: conv2d(x, w)[:, 1:3, ::2],
        lambda x, w: conv2d(x, w)[1:, 1, 2],
        lambda x, w: conv2d(x, w)[::-1, ::2],
    ],
)
def test_only_some_images_and_outputs_are_computed(build):
    f = alike(build, gradients=False)
    assert f.index(Subtensor) < f.index(AbstractConv2d)
    alike(build)


def test_indices_of_images_are_checked_as_before():
    x, w = T.dtensor4(), T.dtensor4()
    f = function([x, w], conv2d(x, w)[5])
    with pytest.raises(IndexError):
        f(IMAGES, KERNELS)


@pytest.mark.parametrize(
    "build",
    [
        lambda x, w: conv2d(x, w)[:, :, 1:-1],
        lambda x, w: conv2d(x, w, border_mode=1)[:, :, 2:],
        lambda x, w: conv2d(x, w, subsample=(2, 2))[:, :, :-1],
        lambda x, w: conv2d(x, w)[:, :, ::-1],
    ],
)
def test_parts_that_no_border_describes_stay(build):
    assert Subtensor in alike(build)


def test_a_result_that_is_read_twice_is_computed_once():
    def build(x, w):
        y = conv2d(x, w)
        return y[:, :, ::2, ::2].sum() + y

    assert alike(build).count(AbstractConv2d) == 1


# --- images with zeros between their elements -----------------------------------------------------


def spread(x, rows, columns):
    shape = (x.shape[0], x.shape[1], x.shape[2] * rows, x.shape[3] * columns)
    return set_subtensor(T.zeros(shape)[:, :, ::rows, ::columns], x)


@pytest.mark.parametrize("steps", [(2, 2), (1, 3)])
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"border_mode": "full"},
        {"border_mode": (1, 0)},
        {"border_mode": "half", "filter_flip": False},
        {"filter_dilation": (2, 1)},
    ],
)
def test_no_zeros_between_elements_are_multiplied(options, steps):
    ops = alike(lambda x, w: conv2d(spread(x, *steps), known(w), **options))
    assert is_bare(ops)
    assert Counter(o for o in ops if o in FAMILY) == Counter(FAMILY)


def test_zeros_between_elements_of_groups_stay():
    images, kernels = RANDOM.normal(size=(2, 4, 4, 5)), RANDOM.normal(size=(6, 2, 2, 2))
    ops = alike(lambda x, w: conv2d(spread(x, 2, 2), w, num_groups=2), images, kernels)
    assert IncSubtensor in ops


def test_the_middle_of_a_transposed_convolution():
    def build(x, w):
        shape = (None, None, 2 * x.shape[2] + 2, 2 * x.shape[3] + 1)
        whole = conv2d_transpose(x, w, shape, input_dilation=(2, 2))
        return whole[:, :, 1 : 2 * x.shape[2] + 1, 1:]

    ops = alike(build, IMAGES, RANDOM.normal(size=(3, 4, 4, 3)), gradients=False)
    assert is_bare(ops)


# --- flips ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("flip", [True, False])
def test_reversed_kernels_are_a_parameter(flip):
    ops = alike(lambda x, w: conv2d(x, w[:, :, ::-1, ::-1], filter_flip=flip), gradients=False)
    assert is_bare(ops)
    alike(lambda x, w: conv2d(x, w[:, :, ::-1, ::-1], filter_flip=flip))


def test_kernels_that_are_transposed_and_reversed():
    def build(x, w):
        return conv2d(x, w[:, :, ::-1, ::-1].dimshuffle(1, 0, 2, 3), border_mode="full")

    kernels = RANDOM.normal(size=(3, 4, 3, 2))
    assert is_bare(alike(build, IMAGES, kernels, gradients=False))


def test_kernels_that_are_reversed_along_one_axis_stay():
    assert Subtensor in alike(lambda x, w: conv2d(x, w[:, :, ::-1]), gradients=False)


# --- gradients that are written as convolutions ---------------------------------------------------


def transposed(x):
    return x.dimshuffle(1, 0, 2, 3)


def test_a_gradient_by_kernels_that_is_written_as_a_convolution():
    def build(x, top):
        turned = transposed(top)[:, :, ::-1, ::-1]
        return transposed(conv2d(transposed(x), turned))[:, :, ::-1, ::-1]

    values = RANDOM.normal(size=(2, 3, 9, 8)), RANDOM.normal(size=(2, 5, 6, 7))
    ops = alike(build, *values, gradients=False)
    assert [o for o in ops if o in FAMILY] == [AbstractConv2d_gradWeights]
    assert not {DimShuffle, Subtensor} & set(ops)
    alike(build, *values)


def test_a_transposed_convolution_with_options_is_a_gradient():
    def build(x, top):
        options = {"filter_flip": False, "filter_dilation": (2, 1), "border_mode": (1, 2)}
        return conv2d(transposed(x), transposed(top), **options)

    ops = alike(build, IMAGES, RANDOM.normal(size=(2, 5, 3, 7)), gradients=False)
    assert AbstractConv2d not in ops


def test_a_strided_transposed_convolution_stays():
    def build(x, top):
        return conv2d(transposed(x), transposed(top), subsample=(2, 2), filter_flip=False)

    assert AbstractConv2d in alike(build, IMAGES, RANDOM.normal(size=(2, 5, 6, 7)))


# --- numbers --------------------------------------------------------------------------------------


def test_a_convolution_of_zeros_is_zeros():
    assert not FAMILY & set(alike(lambda x, w: conv2d(x * 0, w), gradients=False))
    assert not FAMILY & set(alike(lambda x, w: conv2d(x, w * 0), gradients=False))


def test_factors_move_to_constant_kernels():
    factors = RANDOM.normal(size=(1, 4, 1, 1))
    ops = alike(lambda x: conv2d(x, T.constant(KERNELS)) * factors * 2, IMAGES, gradients=False)
    assert [o for o in ops if o not in FREE] == [AbstractConv2d]
    ops = alike(lambda x: conv2d(x, T.constant(KERNELS)) * IMAGES[0, 0, 0, 0], IMAGES)
    assert Elemwise in ops


def test_the_gradient_by_the_images_of_a_first_layer_is_not_computed():
    x, w = T.dtensor4(), shared(KERNELS)
    f = function([x], grad(T.tanh(conv2d(x, w)).sum(), w))
    assert AbstractConv2d_gradInputs not in ops_of(f)


def test_hints_do_not_decide_which_zeros_are_added():
    """A filter of another size than the hint; its border depends on its size."""
    wide = RANDOM.normal(size=(4, 3, 5, 3))

    def build(x, w):
        y = conv2d(set_between(x, 1, 2, 0, 3), w, border_mode="full", filter_shape=KERNELS.shape)
        return y[:, :, 1:-1, 1:-1]

    alike(build, IMAGES, wide)


def test_changes_keep_other_parameters():
    op = AbstractConv2d(border_mode=(1, 2), subsample=(2, 3), num_groups=2)
    new = op.with_changes(1, filter_flip=False)
    assert isinstance(new, BaseAbstractConv)
    assert new is not op
    assert type(new) is AbstractConv2d_gradWeights
    assert (new.border_mode, new.subsample, new.num_groups) == ((1, 2), (2, 3), 2)
    assert new.with_changes(0, filter_flip=True) == op


# --- lengths --------------------------------------------------------------------------------------


def test_differences_of_lengths():
    n, m, small = T.lscalar(), T.lscalar(), T.iscalar()
    assert difference(n + 3, n) == 3
    assert difference(2 * n - (m - 4), n + n - m) == 4
    assert difference(7, 9) == -2
    assert difference(cast(small, "int64") + 1, small) == 1
    assert difference(n + 3, m) is None
    assert difference(-n, n) is None


def test_sums_of_lengths_as_variables():
    n = T.lscalar()
    for build, value in ((lambda: 2 * n + 3 - n, 8), (lambda: n * 3, 15), (lambda: n - n, 0)):
        total = LengthSum(build())
        assert total.is_positive()
        assert total.as_length().eval({n: 5} if total.value() is None else {}) == value
    assert not LengthSum(n - 1).is_positive()


# --- maxima first ---------------------------------------------------------------------------------

SCALES = RANDOM.normal(size=4)
INCREASING = {
    "relu": T.nnet.relu,
    "maximum": lambda v: T.maximum(v, 0),
    "maximum of 0": lambda v: T.maximum(0, v),
    "switch": lambda v: T.switch(v < 0, 0, v),
    "product": lambda v: v * (v > 0),
    "half": lambda v: (v + abs(v)) / 2,
    "tanh": T.tanh,
    "sigmoid": T.nnet.sigmoid,
    "softplus": T.nnet.softplus,
    "leaky relu": lambda v: T.nnet.relu(v, 0.1),
    "leaky maximum": lambda v: T.maximum(v, v * 0.2),
    "leaky switch": lambda v: T.switch(v > 0, v, 0.3 * v),
    "scale": lambda v: 2.5 * v - 1,
}
WINDOWS = [{"ws": (2, 2)}, {"ws": (3, 3), "stride": (2, 2), "pad": (1, 1)}]


def biased(x, w):
    return conv2d(x, w) + T.constant(SCALES).dimshuffle("x", 0, "x", "x")


def sizes_of_elemwise(build, *values):
    """Return the shapes of what elementwise Applys of a function compute."""
    inputs = [T.dtensor4() for _ in values]
    out = build(*inputs)
    outputs = [out, *grad(T.sin(out * 1.3).sum(), inputs)]
    f = function(inputs, outputs, mode=Mode("py", "fast_run").excluding("inplace"))
    found = [
        node.outputs[0]
        for node in f.maker.fgraph.toposort()
        if isinstance(node.op, Elemwise) and node.outputs[0].type.ndim == 4
    ]
    shapes = function(f.maker.fgraph.inputs, [v.shape for v in found])(*values)
    return {tuple(map(int, shape)) for shape in shapes}


@pytest.mark.parametrize("window", WINDOWS)
@pytest.mark.parametrize("name", INCREASING)
def test_only_maxima_are_computed(name, window):
    def build(x, w):
        return pool_2d(INCREASING[name](biased(x, w)), ignore_border=True, **window)

    alike(build)
    pooled = (7 - window["ws"][0]) // 2 + 1 + sum(window.get("pad", (0,))[:1])
    assert sizes_of_elemwise(build, IMAGES, KERNELS) <= {(2, 4, pooled, pooled), (1, 4, 1, 1)}


@pytest.mark.parametrize(
    "change",
    [
        lambda v: T.clip(v, 0, 1),
        lambda v: -v,
        lambda v: T.sqr(v),
        lambda v: T.switch(v > 0, v, 0),
        lambda v: T.switch(v > 0, v, -v),
        lambda v: T.maximum(v, 2 * v),
        lambda v: v + T.constant(IMAGES[:1, :1, :7, :7]),
        lambda v: v * (v < 0),
        lambda v: T.nnet.relu(v) + v[:, :, 0, 0].dimshuffle(0, 1, "x", "x"),
    ],
)
def test_what_does_not_keep_the_order_stays(change):
    def build(x, w):
        return pool_2d(change(biased(x, w)), (2, 2), ignore_border=True)

    alike(build)


@pytest.mark.parametrize("mode", ["sum", "average_inc_pad", "average_exc_pad"])
def test_only_maxima_can_be_first(mode):
    def build(x, w):
        return pool_2d(T.nnet.relu(biased(x, w)), (2, 2), ignore_border=True, mode=mode)

    alike(build)
    assert (2, 4, 7, 7) in sizes_of_elemwise(build, IMAGES, KERNELS)


def test_functions_that_others_read_are_not_computed_twice():
    def build(x, w):
        y = T.nnet.relu(biased(x, w))
        return pool_2d(y, (2, 2), ignore_border=True).sum() + y

    alike(build)
    alike(build, gradients=False)


def test_a_derivative_that_does_not_vanish_with_the_function_stays():
    """All elements of a window below 0 are its maxima; their derivative here is not 0."""
    x = T.dtensor4()
    flat = T.maximum(x, 0)
    pooled = pool_2d(flat, (2, 2), ignore_border=True)
    by_flat = grad(pooled.sum(), flat)
    outputs = [pooled, by_flat * T.exp(x)]
    value = -abs(IMAGES)
    expected = function([x], outputs, mode=Mode("py", "fast_compile"))(value)
    found = function([x], outputs)(value)
    for old, new in zip(expected, found, strict=True):
        np.testing.assert_allclose(new, old)
    assert expected[1].any()


def test_zeros_in_windows_have_the_derivative_of_zero():
    x = T.dtensor4()
    values = np.zeros((1, 1, 4, 4))
    values[0, 0, :2, :2] = [[-1, 0], [-2, -3]]
    values[0, 0, 2:, 2:] = -1
    for relu in (INCREASING[n] for n in ("relu", "maximum", "switch", "product", "half")):
        y = pool_2d(relu(x), (2, 2), ignore_border=True)
        outputs = [y, grad((y + 2 * y.sum()).sum(), x)]
        expected = function([x], outputs, mode=Mode("py", "fast_compile"))(values)
        for old, new in zip(expected, function([x], outputs)(values), strict=True):
            np.testing.assert_array_equal(new, old)


def test_nan_and_infinity_pass_through_maxima():
    x = T.dtensor4()
    values = IMAGES.copy()
    values[0, 0, 0, 0], values[0, 1, 3, 3] = np.nan, np.inf
    for name in ("relu", "maximum", "switch", "tanh", "sigmoid", "leaky maximum"):
        y = pool_2d(INCREASING[name](x), (2, 2), ignore_border=True)
        expected = function([x], y, mode=Mode("py", "fast_compile"))(values)
        np.testing.assert_allclose(function([x], y)(values), expected)


def test_maxima_of_volumes_come_first():
    def build(x):
        return pool_3d(T.nnet.relu(x - 0.5), (2, 2, 2), ignore_border=True)

    alike(build, RANDOM.normal(size=(1, 2, 4, 5, 6)))


def test_windows_that_overlap_at_every_place_come_later():
    def build(x):
        return pool_2d(T.tanh(x), (3, 3), stride=(1, 1), ignore_border=True)

    ops = alike(build, IMAGES, gradients=False)
    assert ops.index(Elemwise) < ops.index(Pool)


def test_one_channel_of_a_flipped_convolution_is_taken_once(caplog):
    """A view of the kernels between them and the convolution does not hide that one was taken."""
    x, top = T.dtensor4(), T.dtensor4()
    kernels = conv2d_grad_wrt_weights(x, top, (None, None, 3, 2))
    by_top = grad(T.sum(kernels), top)
    part = by_top[-2::2, 0, :-1]
    values = RANDOM.normal(size=(4, 2, 6, 5)), RANDOM.normal(size=(4, 3, 4, 4))
    f = function([x, top], part, mode=Mode("py", "fast_run"))
    whole = function([x, top], by_top, mode=Mode("py", None))
    np.testing.assert_allclose(f(*values), whole(*values)[-2::2, 0, :-1])
    assert not caplog.records  # of rules that were stopped
