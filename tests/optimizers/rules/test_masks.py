"""Rules on parts that a mask of the same shape selects."""

import numpy as np
import pytest

import opwise.tensor as T
from opwise import function
from opwise.gradient import grad
from opwise.tensor import AdvancedBooleanIncSubtensor, AdvancedBooleanSubtensor, TensorType

SELECTS = (AdvancedBooleanSubtensor, AdvancedBooleanIncSubtensor)


def compiled(build, dtype="float64"):
    x, mask = TensorType(dtype, (False, False))(), TensorType("bool", (False, False))()
    f = function([x, mask], build(x, mask))
    return f, [n for n in f.maker.fgraph.apply_nodes if isinstance(n.op, SELECTS)]


def arrays(dtype="float64"):
    rng = np.random.RandomState(2)
    return rng.uniform(-9, 9, (30, 40)).astype(dtype), rng.rand(30, 40) < 0.5


@pytest.mark.parametrize("dtype", ["float64", "float32", "int8", "complex64"])
def test_sums_and_products_of_a_masked_part_need_no_part(dtype):
    for name in ("sum", "prod"):
        f, left = compiled(lambda x, m, name=name: getattr(T, name)(x[m]), dtype)
        assert left == []
        x, mask = arrays(dtype)
        x = x if name == "sum" else np.sign(x.real).astype(dtype)
        np.testing.assert_allclose(f(x, mask), getattr(x[mask], name)(), rtol=1e-5)
        assert f(x, np.zeros_like(mask)) == (0 if name == "sum" else 1)


def test_what_is_not_selected_does_not_count():
    f, _ = compiled(lambda x, m: x[m].sum())
    assert f(np.array([[np.nan, 1.0, np.inf]]), np.array([[False, True, False]])) == 1


def test_a_part_that_is_read_twice_or_in_another_shape_stays():
    for build in (lambda x, m: [x[m].sum(), x[m]], lambda x, m: x[m[:, 0]].sum(),
                  lambda x, m: x[m].max()):  # fmt: skip
        _, left = compiled(build)
        assert len(left) == 1


def test_numbers_by_a_mask_are_chosen():
    cases = {
        "set": (lambda x, m: T.set_subtensor(x[m], 3), lambda x, m: np.where(m, 3, x)),
        "inc": (lambda x, m: T.inc_subtensor(x[m], 3), lambda x, m: np.where(m, x + 3, x)),
        "grad": (lambda x, m: grad(x[m].sum(), x), lambda x, m: m.astype(x.dtype)),
    }
    for name, (build, expected) in cases.items():
        f, left = compiled(build)
        assert left == [], name
        x, mask = arrays()
        np.testing.assert_array_equal(f(x, mask), expected(x, mask), err_msg=name)


def test_a_mask_of_another_shape_is_an_error():
    for build in (lambda x, m: x[m].sum(), lambda x, m: T.set_subtensor(x[m], 3)):
        f, _ = compiled(build)
        with pytest.raises((ValueError, IndexError)):
            f(np.zeros((2, 3)), np.zeros((2, 4), bool))


def test_cheap_work_on_what_a_mask_selects_is_done_for_all():
    cases = {
        "set": (lambda x, m: T.set_subtensor(x[m], x[m] * 2 + 1), lambda x: x * 2 + 1),
        "inc": (lambda x, m: T.inc_subtensor(x[m], T.sqrt(x[m])), lambda x: x + np.sqrt(x)),
        "positions": (
            lambda x, m: T.set_subtensor(x[m.nonzero()], -x[m.nonzero()]), np.negative,
        ),
    }  # fmt: skip
    for name, (build, expected) in cases.items():
        f, left = compiled(build)
        assert left == [] and len(f.maker.fgraph.apply_nodes) == 1, name
        x, mask = arrays()
        with np.errstate(invalid="ignore"):
            wanted = np.where(mask, expected(x), x)
        np.testing.assert_array_equal(f(x, mask), wanted, err_msg=name)


def test_work_that_costs_more_than_the_selection_stays():
    for build in (lambda x, m: T.set_subtensor(x[m], T.gammaln(T.gammaln(x[m]))),
                  lambda x, m: T.set_subtensor(x[m], x[m][::-1]),
                  lambda x, m: T.set_subtensor(x[m], T.sqrt(x.T[m.T]))):  # fmt: skip
        _, left = compiled(build)
        assert len(left) == 2


@pytest.mark.parametrize("dtype", ["int64", "uint8", "float64"])
def test_divisions_by_zero_that_nobody_selects(dtype):
    x, mask = TensorType(dtype, (False, False))(), TensorType("bool", (False, False))()
    f = function([x, mask], T.set_subtensor(x[mask], 10 // x[mask] + 7 % x[mask]))
    values = np.arange(12).reshape(3, 4).astype(dtype)
    expected = values.copy()
    expected[values != 0] = 10 // values[values != 0] + 7 % values[values != 0]
    np.testing.assert_array_equal(f(values, values != 0), expected)
