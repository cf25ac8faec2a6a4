"""Scalar Ops whose output type a user chose: the result is computed first, then cast."""

import numpy as np
import pytest

import opwise.tensor as T
from opwise import Mode, function
from opwise.scalar import get_scalar_type, specific_out, transfer_type, upgrade_to_float
from opwise.scalar import op as scalar_ops
from opwise.tensor import Elemwise

MODES = ["FAST_RUN", "FAST_COMPILE", "DEBUG_MODE", "py"]

#: results on x = (3, 5, -7) of int64 and y = (2.5, 2, -1.3), recorded from Theano 1.0.5
OF_THE_FIRST_TYPE = {
    "Add": [5, 7, -8], "Mul": [7, 10, 9], "Sub": [0, 3, -5], "TrueDiv": [1, 2, 5],
    "IntDiv": [1, 2, 5], "Mod": [0, 1, 0], "Pow": [15, 25, np.iinfo("int64").min],
    "Maximum": [3, 5, -1], "Minimum": [2, 2, -7], "Second": [2, 2, -1],
}  # fmt: skip


def compiled(inputs, output, mode):
    return function(inputs, output, mode=Mode("py") if mode == "py" else mode)


@pytest.mark.c
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("name", OF_THE_FIRST_TYPE)
def test_the_output_has_the_type_of_the_first_input(name, mode):
    x, y = T.lvector("x"), T.dvector("y")
    op = Elemwise(scalar_ops.CLASSES[name](transfer_type(0), name="chosen"))
    alone, fused = op(x, y), op(x, y) * 2 + 1
    assert alone.dtype == fused.dtype == "int64"
    values = np.array([3, 5, -7]), np.array([2.5, 2, -1.3])
    assert compiled([x, y], alone, mode)(*values).tolist() == OF_THE_FIRST_TYPE[name]
    expected = np.array(OF_THE_FIRST_TYPE[name]) * 2 + 1
    np.testing.assert_array_equal(compiled([x, y], fused, mode)(*values), expected)


@pytest.mark.c
@pytest.mark.parametrize("mode", MODES)
def test_divisors_that_an_integer_type_would_round_to_zero(mode):
    x, y = T.lvector("x"), T.dvector("y")
    quotient = Elemwise(scalar_ops.CLASSES["TrueDiv"](transfer_type(0), name="quotient"))
    f = compiled([x, y], quotient(x, y), mode)
    assert f(np.array([1, 5, -7]), np.array([0.5, 2.0, -0.3])).tolist() == [2, 2, 23]


@pytest.mark.c
@pytest.mark.parametrize("mode", MODES)
def test_rules_on_the_algebra_leave_a_chosen_type(mode):
    """exp(log(x)) is not x where the logarithm is rounded to an integer."""
    x = T.dvector("x")
    whole = Elemwise(scalar_ops.CLASSES["Log"](specific_out(get_scalar_type("int64"))))
    f = compiled([x], T.exp(whole(x)), mode)
    np.testing.assert_allclose(f([8.0, 3.0]), np.exp([2, 1]))


@pytest.mark.null
def test_which_type_an_operation_runs_in():
    row = scalar_ops.CLASSES["TrueDiv"].row
    assert row.compute_dtype(["int64", "float64"], "int64") == "float64"
    assert row.compute_dtype(["float64", "float64"], "float32") == "float64"
    # a wider type than necessary is used throughout, and so is the float chosen for integers
    assert row.compute_dtype(["float32", "float32"], "float64") == "float64"
    assert row.compute_dtype(["int64", "int64"], "float32") == "float32"
    assert upgrade_to_float(get_scalar_type("int64"))[0].dtype == "float64"
