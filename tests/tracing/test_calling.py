"""Functions of Python and numpy that do not dispatch on their arguments, on traced values."""

import itertools
import math

import numpy as np
import pytest

import opwise
from opwise.errors import TracingError
from tests.tracing.test_control import check
from tests.tracing.test_loop_programs import copied, same

pytestmark = pytest.mark.null


def normal(*shape, seed=0):
    return np.random.default_rng(seed).normal(size=shape)


def extremes(x):
    found = {"first": x[0], "mean": x.mean()}
    return max(found.values()), min(v for v in x[:3]), max(x[:4], key=lambda v: -abs(v))


def in_order(x):
    return np.array(sorted(v * v for v in x[:4]))


def from_iterator(x):
    return np.fromiter((v * 2 for v in x[:3]), float), np.fromiter((k for k in range(5)), int, 3)


def numbers(a, b):
    return pow(a, b, 5), pow(b, a), math.log(a, 2), math.log(b)


def elements(x):
    return x.item(3), x.item(1, 2), x.item((2, 0))


def parts(x, k):
    return (*np.split(x, k), *np.array_split(x, k + 1))


def products(x, y):
    table = np.zeros((len(x) + 1, len(y) + 1))
    for i, j in itertools.product(range(1, len(x) + 1), range(1, len(y) + 1)):
        table[i, j] = max(table[i - 1, j - 1] + (x[i - 1] > y[j - 1]), table[i - 1, j])
    return table, [i * j for i, j in itertools.product(range(2), repeat=2)]


def indices(m):
    total = 0.0
    for (i, j), v in np.ndenumerate(m):
        total += i * v - j
    for index in np.ndindex(*m.shape):
        total += m[index] * index[0]
    for v in np.nditer(m):
        total += v
    return total


def at(z, i, v):
    np.maximum.at(z, i, v)
    np.multiply.at(z, i, 2.0)
    np.negative.at(z, [0, 0, 1])
    w = np.zeros((3, 4))
    np.minimum.at(w, ([0, 0, 1], [1, 1, 2]), -v[:3])
    np.add.at(w, (0, [1, 1]), 1.0)
    return z, w


def binned(x, y):
    edges = np.array([-1.0, 0, 1])
    return (
        *np.histogram2d(x, y, bins=[3, edges], weights=y, density=True),
        *np.histogram2d(x, y, bins=[edges, [-2.0, 2]]),
    )


def others(x):
    return (
        np.interp(x, [0.0, 1, 2], [1.0, 3, 2], period=3),
        np.trim_zeros(np.where(x > 0, x, 0)),
        np.i0(x),
    )


def medians(x, k):
    out = np.zeros(x.shape)
    for i in range(x.shape[0] - k):
        for j in range(x.shape[1] - k):
            out[i, j] = np.median(x[i : i + k, j : j + k])
    return (
        out, np.median(x), np.median(x, axis=0), np.median(x, axis=(0, 1), keepdims=True),
        np.median(x, axis=1, keepdims=True),
    )  # fmt: skip


def padded(x):
    modes = "edge", "wrap", "symmetric", "reflect"
    return tuple(
        np.pad(x, width, mode=mode) for mode in modes for width in (2, ((0, 3), (1, 0)), 7)
    )


def windows(x, k):
    view = np.lib.stride_tricks.sliding_window_view
    w = view(x, 3)
    x[1] = 7.0
    some = view(x, k)[::2]
    both = view(np.outer(x, x), (2, 3))
    return w.max(1), some * 2, some[1:, ::-1], w[-4:-1], w[2], both[1:, ::2].sum((2, 3)), both[1, 1]


WITH_NAN = np.where(normal(6, 7) > 1, np.nan, normal(6, 7))
INTS = np.random.default_rng(1).integers(0, 10, 30)


@pytest.mark.parametrize(
    ("function", "cases"),
    [
        (extremes, [[normal(12)], [normal(12, seed=1)]]),
        (in_order, [[normal(5)]]),
        (from_iterator, [[normal(5)]]),
        (numbers, [[7, 3], [2, 9]]),
        (elements, [[normal(4, 3)], [normal(3, 5)]]),
        (parts, [[normal(12), 3], [normal(12), 4]]),
        (products, [[normal(4), normal(12)], [normal(9), normal(3)], [normal(0), normal(3)]]),
        (indices, [[normal(4, 3)], [normal(6, 5)], [normal(1, 2)]]),
        (at, [[np.zeros(10), INTS, normal(30)], [np.ones(12), INTS[:5], normal(5)]]),
        (
            medians,
            [[normal(12, 11), 3], [WITH_NAN, 2], [normal(1, 4), 1], [normal(0, 3), 1]],
        ),
        (medians, [[normal(4, 5).astype(np.float32), 2]]),
        (medians, [[INTS.reshape(5, 6), 3]]),
        (padded, [[normal(5, 4)], [normal(3, 2)], [normal(2, 6)], [normal(1, 3)]]),
        (windows, [[normal(12), 4], [normal(9), 4], [normal(15), 2]]),
        (binned, [[normal(30), normal(30, seed=1)]]),
        (others, [[normal(12)], [normal(9)]]),
    ],
)
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_results_are_those_of_python(function, cases):
    compiled = opwise.jit(function)
    for case in cases:
        given, expected = copied(case), copied(case)
        same(function(*expected), compiled(*given))
        for one, two in zip(expected, given, strict=True):
            same(one, two)


def test_a_product_of_ranges_is_one_loop():
    compiled = opwise.jit(products)
    for n in (5, 40):
        compiled(normal(n), normal(30))
    assert len(compiled.signatures) == 1


def test_a_value_that_a_loop_may_not_give():
    def f(x):
        for v in x:
            if v > 1:
                found = True
                break
        else:
            found = False
        return found

    with pytest.raises(TracingError, match="found has a value in one branch of an if only"):
        opwise.jit(f)(normal(12))


def test_lengths_of_padded_arrays_may_differ():
    compiled = opwise.jit(padded)
    for shape in ((5, 4), (3, 7)):
        compiled(normal(*shape))
    assert len(compiled.signatures) == 1


def test_windows_that_are_left_out_are_not_read():
    compiled = opwise.jit(lambda x: np.lib.stride_tricks.sliding_window_view(x, 8)[::4] * 2.0)
    compiled(normal(64))
    (signature,) = compiled.signatures
    text = opwise.printing.debugprint(signature.compiled, file="str")
    assert "Subtensor{::int64}" not in text.partition("AdvancedSubtensor1")[0]


def test_medians_of_small_arrays_run_in_c():
    compiled = opwise.jit(medians)
    compiled(normal(12, 11), 3)
    (signature,) = compiled.signatures
    text = opwise.printing.debugprint(signature.compiled, file="str")
    assert "numpy.median" not in text
    np.testing.assert_array_equal(
        opwise.grad(np.median)(np.array([3.0, 1.0, 2.0, 9.0])), [0.5, 0, 0.5, 0]
    )


def test_what_cannot_be_gone_through():
    def several(x):
        return [a + b for a, b in np.nditer([x, x])]

    def rows(x):
        np.maximum.at(x, (0, slice(None)), 1.0)

    for function in (several, rows):
        with pytest.raises(TracingError, match="Write a loop over"):
            opwise.jit(function)(normal(3, 3))


def test_fromiter_takes_as_many_as_it_counts():
    def taken(x):
        return np.fromiter((v * x[0] for v in itertools.count()), float, 3)

    def all_of_two(x):
        return np.fromiter((v for v in x[:2]), float, 3)

    same(taken(np.ones(2)), opwise.jit(taken)(np.ones(2)))
    for function in (all_of_two, opwise.jit(all_of_two)):
        with pytest.raises(ValueError, match="iterator too short: Expected 3 but"):
            function(np.ones(2))


# --- arrays by their class, and shapes that are set -----------------------------------------------


def test_new_arrays_by_their_class():
    def f(x, n):
        total = np.ndarray(n + 1, dtype=np.float64)
        table = np.ndarray((n, 2), np.int32)
        total[:] = x[0]
        for k in range(n):
            total[k] += k
            table[k] = k
        return total, table

    check(f, [normal(3), 4], [normal(3), 1])
    over = opwise.jit(lambda x: np.ndarray(3, buffer=np.zeros(9)) + x)
    with pytest.raises(TracingError, match="over a buffer"):
        over(1.0)


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of numpy, since 2.5
def test_shapes_that_are_set():
    def f(x, i):
        y = x * 2
        y.shape = 2, 6
        z = np.arange(4.0)[i]
        z.shape = -1
        return y, z, y.T.sum(0)

    check(f, [normal(3, 4), INTS.reshape(5, 6) % 4])
    with pytest.raises(AttributeError, match="Incompatible shape"):
        opwise.jit(lambda x: setattr((x * 2).T, "shape", 12))(normal(3, 4))
    with pytest.raises(TracingError, match="The shape of an argument is set"):
        opwise.jit(lambda x: setattr(x, "shape", 12))(normal(3, 4))


def test_arrays_that_change_after_a_reshape():
    def f(x):
        y = np.transpose(x).reshape(-1) * 2  # a view or a copy, which nobody asks
        x[0] = y[:4]
        return y

    check(f, [normal(3, 4)], [np.asfortranarray(normal(3, 4))])

    def reads(x):
        y = x.T.reshape(-1)
        x[0] = 5
        return y.sum()

    with pytest.raises(TracingError, match=r"may be a view(.|\n)*return y.sum()"):
        opwise.jit(reads)(normal(3, 4))

    def writes(x):
        y = x.T.reshape(-1)
        y[0] = 5
        return y

    with pytest.raises(TracingError, match="changed in place after a reshape"):
        opwise.jit(writes)(normal(3, 4))
