"""Numbers that are added to elements of a vector, in every layout and dtype of an index."""

import numpy as np
import pytest

import opwise.tensor as T
from opwise import Mode, function
from opwise.tensor import inc_subtensor

pytestmark = pytest.mark.c

R = np.random.RandomState(3)


def by_hand(x, at, y):
    """Return x with the numbers added one after the other."""
    x = x.copy()
    np.add.at(x, at, y)
    return x


@pytest.mark.parametrize("dtype", ["float32", "float64", "int64", "float16"])
@pytest.mark.parametrize("of_index", ["int64", "int32", "uint32", "int8"])
@pytest.mark.parametrize("known", [True, False])
@pytest.mark.parametrize("least", [-9, 0])
def test_dtypes_and_negative_indices(dtype, of_index, known, least):
    at = R.randint(least, 9, size=300)
    at = (at % 9 if of_index.startswith("u") else at).astype(of_index)
    x, y, s = (T.TensorType(dtype, (False,) * n)() for n in (1, 1, 0))
    index = T.constant(at) if known else T.vector(dtype=of_index)
    f = function([x, y, s, *([] if known else [index])],
                 [inc_subtensor(x[index], y), inc_subtensor(x[index], s)])  # fmt: skip
    values = [(R.normal(size=n) * 5).astype(dtype) for n in (9, 300, ())]
    given = [*values, *([] if known else [at])]
    for found, added in zip(f(*given), values[1:], strict=True):
        expected = by_hand(values[0], at, added)
        assert found.dtype == dtype
        np.testing.assert_array_equal(found, expected)


def test_layouts_and_lengths():
    x, y, i = T.dvector(), T.dvector(), T.lvector()
    f = function([x, y, i], inc_subtensor(x[i], y))
    plain = function([x, y, i], inc_subtensor(x[i], y), mode=Mode("py", None))
    for n in (0, 1, 2, 3, 4, 5, 255, 256, 257, 3000):
        at, wide = R.randint(0, 9, size=(n, 2)), R.normal(size=(max(n, 9), 2))
        for table in (wide[:9, 0], wide[8::-1, 1], wide[:9, 0].copy()):
            for index in (at[:, 0], at[::-1, 1].copy(), at[::-1, 1]):
                for numbers in (wide[:n, 1], wide[:n, 0].copy()):
                    found = f(table, numbers, index)
                    np.testing.assert_array_equal(found, plain(table, numbers, index))


def test_an_index_out_of_range():
    x, y, i = T.dvector("x"), T.dvector("y"), T.lvector("i")
    f = function([x, y, i], inc_subtensor(x[i], y))
    for wrong in (5, -6, 1 << 62, -(1 << 62), np.iinfo("int64").min, np.iinfo("int64").max):
        with pytest.raises(IndexError, match=f"index {wrong} is out of bounds"):
            f(np.ones(5), np.ones(4), [1, 2, wrong, 6])
    known = function([x, y], inc_subtensor(x[[0, 4, -5]], y))
    np.testing.assert_array_equal(known(np.zeros(5), np.arange(3.0)), [2, 0, 0, 0, 1])
    with pytest.raises(IndexError, match="index 4 is out of bounds for axis 0 with size 4"):
        known(np.zeros(4), np.arange(3.0))
