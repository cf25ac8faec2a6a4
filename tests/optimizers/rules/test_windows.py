"""Sums of shifted slices of padded arrays: what becomes a WindowSum, its values and gradients."""

import numpy as np
import pytest

from opwise import function, get_mode
from opwise import tensor as T
from opwise.compile import DebugMode
from opwise.gradient import grad, verify_grad
from opwise.tensor import IncSubtensor, Subtensor, TensorType, set_subtensor
from opwise.tensor.rowwise import Rowwise
from opwise.tensor.windowsum import WindowSum

RANDOM = np.random.default_rng(5)
#: axis of the channels -> the index of a slice along it
ALONG = {0: lambda s: (s,), 1: lambda s: (slice(None), s), 3: lambda s: (..., s)}


def images(dtype="float32", ndim=4):
    return TensorType(dtype, (False,) * ndim)("x")


def padded(x, before, behind, axis):
    shape = [x.shape[d] for d in range(x.ndim)]
    shape[axis] = shape[axis] + before + behind
    zeros = T.alloc(np.asarray(0, x.dtype), *shape)
    return set_subtensor(zeros[ALONG[axis](slice(before, before + x.shape[axis]))], x)


def joined(x, before, behind, axis):
    shape = [x.shape[d] for d in range(x.ndim)]
    around = [T.zeros([*shape[:axis], n, *shape[axis + 1 :]], x.dtype) for n in (before, behind)]
    return T.concatenate([around[0], x, around[1]], axis=axis)


def normalized(x, n=5, axis=1, beta=0.75, with_zeros=padded):
    half = n // 2
    squares = with_zeros(T.sqr(x), half, half, axis)
    scale = np.asarray(2.0, x.dtype)
    for i in range(n):
        part = squares[ALONG[axis](slice(i, i + x.shape[axis]))]
        scale += np.asarray(0.5, x.dtype) * part
    return x / scale ** np.asarray(beta, x.dtype)


def neighbours(x, n, axis):
    """The sums of ``x`` from n // 2 places before to n - 1 - n // 2 places behind."""
    x = np.moveaxis(np.asarray(x, "float64"), axis, -1)
    half, length = n // 2, x.shape[-1]
    wide = np.concatenate([np.zeros((*x.shape[:-1], half)), x, np.zeros((*x.shape[:-1], n))], -1)
    total = sum(wide[..., i : i + length] for i in range(n))
    return np.moveaxis(total, -1, axis)


def expected(x, n=5, axis=1, beta=0.75):
    x = np.asarray(x, "float64")
    return x / (2.0 + 0.5 * neighbours(x**2, n, axis)) ** beta


def compiled(outs, inputs, mode="FAST_RUN"):
    return function(inputs, outs, mode=mode)


def kinds(f):
    return [type(node.op) for node in f.maker.fgraph.toposort()]


def is_one_pass(f):
    """Return whether one Rowwise does all the work, and nothing is put into zeros."""
    found = kinds(f)
    return found.count(Rowwise) == 1 and not {WindowSum, IncSubtensor, Subtensor} & {*found}


@pytest.mark.c
@pytest.mark.parametrize("dtype, tolerance", [("float32", 2e-6), ("float64", 1e-14)])
@pytest.mark.parametrize("axis", ALONG)
@pytest.mark.parametrize("n", [2, 3, 4, 5, 9])
def test_normalisation_reads_its_images_once(n, axis, dtype, tolerance):
    x = images(dtype)
    f = compiled(normalized(x, n, axis), [x])
    assert is_one_pass(f)
    for shape in ((2, 7, 3, 5), (70, 2, 1, 1), (1, 1, 9, 8), (3, 40, 9, 8), (0, 3, 2, 2)):
        value = RANDOM.normal(size=shape).astype(dtype)
        found = f(value)
        assert found.dtype == dtype
        np.testing.assert_allclose(found, expected(value, n, axis), tolerance, tolerance)


@pytest.mark.c
@pytest.mark.parametrize("order", [(3, 0, 1, 2), (0, 2, 3, 1), (3, 2, 1, 0)])
def test_any_layout(order):
    x = images("float64")
    f = compiled(normalized(x), [x])
    value = RANDOM.normal(size=(5, 6, 70, 4)).transpose(order)
    np.testing.assert_allclose(f(value), expected(value), 1e-13)
    np.testing.assert_allclose(f(value[:, ::-1, ::2]), expected(value[:, ::-1, ::2]), 1e-13)


@pytest.mark.c
@pytest.mark.parametrize("n", [3, 4, 5])
@pytest.mark.parametrize("axis", ALONG)
def test_gradient_is_one_pass(n, axis):
    x, v = images("float64"), images("float64")
    f = compiled(grad(T.sum(v * normalized(x, n, axis)), x), [x, v])
    assert is_one_pass(f)
    value, weight = RANDOM.normal(size=(2, 2, 6, 3, 7))
    found = f(value, weight)
    for place in np.ndindex(*value.shape):
        near = np.zeros_like(value)
        near[place] = 1e-6
        slope = (expected(value + near, n, axis) - expected(value - near, n, axis)) * weight
        np.testing.assert_allclose(found[place], slope.sum() / 2e-6, 1e-6, 1e-8)


@pytest.mark.c
@pytest.mark.parametrize("with_zeros", [padded, joined])
def test_zeros_that_are_joined_with_the_array(with_zeros):
    x = images("float64")
    f = compiled(normalized(x, with_zeros=with_zeros), [x])
    assert is_one_pass(f)
    value = RANDOM.normal(size=(2, 6, 3, 7))
    np.testing.assert_allclose(f(value), expected(value), 1e-13)


@pytest.mark.c
@pytest.mark.parametrize("n, axis", [(5, 1), (4, 0)])
def test_debug_mode_compares_c_with_numpy(n, axis):
    x = images("float32")
    y = normalized(x, n, axis)
    f = function([x], [y, grad(T.sum(y**2), x)], mode=DebugMode())
    value = RANDOM.normal(size=(3, 6, 2, 7)).astype("float32")
    np.testing.assert_allclose(f(value)[0], expected(value, n, axis), 1e-5)


@pytest.mark.c
@pytest.mark.parametrize("n", [5, 16, 17, 40])
@pytest.mark.parametrize("axis", [1, 3])
def test_wide_windows_and_none_beside_elementwise_work(n, axis):
    x = images("float64")
    whole = padded(x, n // 2, n // 2, axis)
    total = sum(whole[ALONG[axis](slice(i, i + x.shape[axis]))] for i in range(n))
    f = compiled(total, [x])
    assert is_one_pass(f)
    for length in (3, 30, 70):
        value = RANDOM.normal(size=(3, length, 2, length))
        np.testing.assert_allclose(f(value), neighbours(value, n, axis), 1e-12, 1e-12)


@pytest.mark.c
def test_what_is_not_finite_stays_in_its_window():
    x = images("float64")
    f = compiled(normalized(x, 3), [x])
    value = np.ones((2, 8, 1, 3))
    value[1, 4, 0, 1] = np.nan
    hit = np.isnan(f(value))
    assert hit[1, 3:6, 0, 1].all()
    assert hit.sum() == 3


@pytest.mark.c
def test_windows_of_windows_along_two_axes():
    x = images("float64")
    y = padded(x, 1, 1, 1)
    y = y[:, :-2] + y[:, 1:-1] + y[:, 2:]
    z = padded(T.exp(y), 1, 1, 3)
    z = z[..., :-2] + z[..., 1:-1] + z[..., 2:]
    f = compiled(z, [x])
    assert kinds(f).count(Rowwise) == 2
    value = RANDOM.normal(size=(2, 4, 3, 5))
    found = neighbours(np.exp(neighbours(value, 3, 1)), 3, 3)
    np.testing.assert_allclose(f(value), found, 1e-13)


@pytest.mark.c
def test_reductions_of_the_same_rows():
    x = T.dmatrix("x")
    y = normalized(x, 3)
    f = compiled(y / T.sum(y, axis=1, keepdims=True), [x])
    assert kinds(f) == [Rowwise]
    value = RANDOM.uniform(1, 2, size=(5, 40))
    found = expected(value, 3)
    np.testing.assert_allclose(f(value), found / found.sum(1, keepdims=True), 1e-12)


def slices(x, starts, before=2, behind=2):
    whole = padded(x, before, behind, 1)
    return [whole[:, i : i + x.shape[1]] for i in starts]


@pytest.mark.c
@pytest.mark.parametrize(
    "build",
    [
        lambda x: sum(slices(x, (0, 2, 4))),
        lambda x: sum(w * part for w, part in enumerate(slices(x, (1, 2, 3)), 1)),
        lambda x: sum(slices(x, (1, 2))) + sum(slices(x, (1, 2)))[:, ::-1] * 0,
        lambda x: sum(whole_part(x, i) for i in range(3)),
    ],
)
def test_other_sums_have_their_values(build):
    x = images("float64", 2)
    value = RANDOM.normal(size=(3, 8))
    plain = function([x], build(x), mode="FAST_COMPILE")(value)
    np.testing.assert_allclose(compiled(build(x), [x])(value), plain, 1e-13)


def whole_part(x, i):
    """Slices that are shorter than the array in the middle of the zeros."""
    return padded(x, 2, 2, 1)[:, i : i + x.shape[1] - 1]


@pytest.mark.c
def test_lookalikes_stay():
    x = images("float64", 2)
    for total in (
        sum(slices(x, (0, 2, 4))),
        sum(w * part for w, part in zip((1.0, 2.0), slices(x, (1, 2)), strict=True)),
        sum(whole_part(x, i) for i in range(3)),
    ):
        assert Rowwise not in kinds(compiled(total, [x]))


@pytest.mark.c
def test_excluding():
    x = images("float64")
    mode = get_mode("FAST_RUN").excluding("window_sums")
    assert IncSubtensor in kinds(compiled(normalized(x), [x], mode))


def test_the_op_as_it_is():
    value = RANDOM.normal(size=(3, 4, 5))
    x = T.tensor3("x", dtype="float64")
    for axis in range(3):
        for first, last in ((-1, 1), (0, 2), (-3, -2), (2, 2), (-9, 9)):
            out = function([x], WindowSum(axis, first, last)(x), mode="FAST_COMPILE")(value)
            moved, sums = np.moveaxis(value, axis, 0), np.moveaxis(out, axis, 0)
            n = len(moved)
            for j in range(n):
                near = moved[max(j + first, 0) : max(min(j + last, n - 1) + 1, 0)]
                np.testing.assert_allclose(sums[j], near.sum(0), 1e-13, 1e-13)
    verify_grad(WindowSum(1, -1, 2), [value], rng=np.random.default_rng(1))
