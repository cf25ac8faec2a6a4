"""Ops that reshape, join, index and change arrays under opwise against PyTensor's perform."""

import numpy as np
import pytest

pytensor = pytest.importorskip("pytensor", reason="PyTensor is not installed")
import pytensor.tensor as pt  # noqa: E402
from pytensor.raise_op import Assert, CheckAndRaise  # noqa: E402
from pytensor.tensor.sort import argsort, sort  # noqa: E402

import opwise.pytensor  # noqa: E402

pytestmark = pytest.mark.c

DTYPES = ["float64", "float32", "int8", "bool", "complex128"]


def array(shape, dtype="float64"):
    return (np.arange(np.prod(shape)) % 7 - 2).reshape(shape).astype(dtype)


@pytest.mark.parametrize("dtype", DTYPES)
def test_shapes(same, dtype):
    x = pt.tensor("x", dtype=dtype, shape=(None, None, None))
    n = pt.lscalar("n")
    outputs = [
        x.shape, x.shape[1], x.reshape((n, -1)), x.reshape((2, 12)), x.flatten(),
        pt.join_dims(x, 0, 2), pt.split_dims(x, (n, 1), axis=2), pt.specify_shape(x, (2, None, n)),
        x[:, :1, 0].squeeze(1), pt.alloc(x[0, 0], 3, n), pt.zeros_like(x),
        pt.stack([x[0], x[1]], axis=1), pt.concatenate([x, x], axis=1), pt.diagonal(x, 1, 0, 2),
        pt.swapaxes(x, 0, 2), pt.moveaxis(x, 0, -1), pt.tile(x, (1, 2, 1)), pt.roll(x, 1, axis=1),
    ]  # fmt: skip
    same([x, n], outputs, [array((2, 3, 4), dtype), np.array(4)])


def test_shapes_without_elements(same):
    x = pt.matrix("x")
    outputs = [x.T, x.flatten(), pt.concatenate([x, x]), x[1:], x.sum(0), x.reshape((3, -1))]
    same([x], outputs, [np.zeros((3, 0))])


def test_what_makes_arrays(same):
    n = pt.lscalar("n")
    outputs = [pt.arange(n), pt.arange(1, n, 2), pt.eye(n, 3, 1), pt.as_tensor([n, n + 1]),
               pt.tri(n), pt.ones((n, 2), dtype="int8"), pt.linspace(0.0, 1.0, 5)]  # fmt: skip
    same([n], outputs, [np.array(5)])


def test_splits(same):
    x, sizes = pt.matrix("x"), pt.lvector("sizes")
    outputs = pt.split(x, sizes, n_splits=3, axis=1)
    same([x, sizes], list(outputs), [array((2, 6)), np.array([1, 3, 2])])


def test_a_wrong_shape_is_refused():
    x = pt.vector("x")
    f = pytensor.function([x], pt.specify_shape(x, (3,)) + 1, mode="OPWISE")
    with pytest.raises(AssertionError):
        f(np.zeros(4))


# --- indices --------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", DTYPES)
def test_numbers_and_slices(same, dtype):
    x, i, j = pt.tensor("x", dtype=dtype, shape=(None,) * 3), pt.lscalar("i"), pt.bscalar("j")
    outputs = [
        x[i],
        x[-1],
        x[i:],
        x[:, ::-1],
        x[j, i:, 1],
        x[..., i],
        x[1:0],
        x[:, None, :i],
        x[::2, j],
    ]
    same([x, i, j], outputs, [array((4, 3, 5), dtype), np.array(2), np.array(-1, "int8")])


@pytest.mark.parametrize("dtype", DTYPES)
def test_arrays_of_indices(same, dtype):
    x = pt.tensor("x", dtype=dtype, shape=(None,) * 3)
    i, k, mask = pt.lvector("i"), pt.tensor("k", dtype="uint8", shape=(None, None)), pt.bvector("m")
    chosen = mask > 0
    outputs = [x[i], x[:, i], x[k], x[i, i], x[i, :, i], x[i, 1:, 0], x[chosen], x[:, :, i[:2]],
               x[pt.real(x) > 0] if dtype != "bool" else x[x], x[0, i][:, k]]  # fmt: skip
    given = [array((4, 4, 4), dtype), np.array([0, -1, 2, 2]), np.array([[1, 0], [3, 3]], "uint8"),
             np.array([1, 0, 1, 1], "int8")]  # fmt: skip
    same([x, i, k, mask], outputs, given)


@pytest.mark.parametrize("dtype", ["float64", "float32", "int8"])
def test_changes(same, dtype):
    x, y = (
        pt.tensor("x", dtype=dtype, shape=(None,) * 2),
        pt.tensor("y", dtype=dtype, shape=(None,)),
    )
    i, mask = pt.lvector("i"), pt.bvector("m")
    chosen = mask > 0
    outputs = [
        x[0].set(y), x[1:, 0].inc(y[1:]), x[:, i].set(y[0]), x[i].inc(y), x[i, i].inc(y[i]),
        x[chosen].set(0), x[i].set(x[i] + 1), x[:].inc(y), x[:, ::2].set(1),
        x[i].inc(y, ignore_duplicates=True),
        pt.set_subtensor(x[i[0], 1], y[0]),
    ]  # fmt: skip
    given = [array((4, 4), dtype), array((4,), dtype), np.array([0, -1, 2, 2]),
             np.array([1, 0, 1, 1], "int8")]  # fmt: skip
    same([x, y, i, mask], outputs, given)


def test_indices_out_of_range():
    x, i = pt.vector("x"), pt.lvector("i")
    f = pytensor.function([x, i], x[i], mode="OPWISE")
    with pytest.raises(IndexError):
        f(np.zeros(3), np.array([3]))


def test_positions(same):
    x, i = pt.matrix("x"), pt.lvector("i")
    outputs = [
        *pt.nonzero(x > 0), sort(x, axis=0), argsort(x, axis=1, kind="stable"),
        pt.cumsum(x, axis=1), pt.cumprod(x, axis=0), pt.searchsorted(pt.arange(5.0), x),
        pt.repeat(x, i, axis=0),
        *pt.unique(x, return_index=True, return_inverse=True, return_counts=True),
        *pt.unravel_index(i, (3, 4)), pt.ravel_multi_index((i, i), (4, 5)),
        pt.fill_diagonal(x, 7.0), pt.bincount(i), pt.diff(x), pt.fill_diagonal_offset(x, 7.0, 1),
    ]  # fmt: skip
    same([x, i], outputs, [array((4, 5)), np.array([0, 2, 1, 3])])


# --- conditions -----------------------------------------------------------------------------------


class OwnError(Exception):
    pass


@pytest.mark.parametrize("mode", ["OPWISE", "OPWISE_FAST_COMPILE"])
def test_conditions_raise_the_error_of_the_program(mode):
    x = pt.vector("x")
    checked = CheckAndRaise(OwnError, "x must be positive")(x, pt.all(x > 0))
    f = pytensor.function([x], checked * 2, mode=mode)
    assert opwise.pytensor.performed(f) == ()
    np.testing.assert_array_equal(f(np.ones(3)), 2 * np.ones(3))
    with pytest.raises(OwnError, match="x must be positive"):
        f(np.zeros(3))
    g = pytensor.function([x], Assert("none")(x, x.sum() > 0), mode=mode)
    with pytest.raises(AssertionError, match="none"):
        g(np.zeros(3))
