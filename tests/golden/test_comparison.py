"""The golden comparison finds what differs, and nothing else."""

import numpy as np
import pytest
from comparison import mismatches
from programs.encoding import decode_array, encode, encode_error
from programs.register import LOOSE, ULP

pytestmark = pytest.mark.null


@pytest.mark.parametrize(
    "array",
    [
        np.array([0.1, -0.0, np.nan, np.inf, -np.inf, 5e-324]),
        np.array(1.5, "float32"),
        np.zeros((0, 3)),
        np.array([[True], [False]]),
        np.array([-128, 127], "int8"),
        np.array([2**63], "uint64"),
        np.array([1 - 2.5j, complex(0, np.inf)]),
        np.array([0.1], "float16"),
    ],
)
def test_arrays_read_back_exactly(array):
    text = encode(array)
    back = decode_array(text)
    assert back.dtype == array.dtype and back.shape == array.shape
    np.testing.assert_array_equal(back, array)
    assert encode(back) == text


def test_text_that_is_no_array():
    assert decode_array("Elemwise{add,no_inplace}") is None


def apart(recorded, measured, tolerance=ULP):
    return len(mismatches({"case": encode(recorded)}, {"case": encode(measured)}, tolerance))


@pytest.mark.parametrize(
    ("recorded", "measured", "count"),
    [
        (np.array([1.0, 2.0]), np.array([1.0, 2.0]), 0),
        (np.array([1.0]), np.array([1.0 + 2**-52]), 0),
        (np.array([1.0]), np.array([1.0 + 1e-12]), 1),
        (np.array([np.nan]), np.array([np.nan]), 0),
        (np.array([np.nan]), np.array([0.0]), 1),
        (np.array([np.inf]), np.array([-np.inf]), 1),
        (np.array([1e-300]), np.array([0.0]), 1),
        (np.array([1.0]), np.array([1.0], "float32"), 1),
        (np.array([1]), np.array([[1]]), 1),
        (np.array([1]), np.array([2]), 1),
        ("text", "text ", 1),
        ("text", np.array(1.0), 1),
        ([1, 2], [1, 2, 3], 1),
        ([1, "a"], [1, "b"], 1),
        ([], [], 0),
        (["a"], [np.array(1.0)], 1),
        (None, False, 1),
        (True, True, 0),
    ],
)
def test_what_differs(recorded, measured, count):
    assert apart(recorded, measured) == count


def test_loose_numbers():
    assert apart(np.array([1.0]), np.array([1.0 + 1e-12]), LOOSE) == 0
    assert apart(np.array([1.0]), np.array([1.0 + 1e-8]), LOOSE) == 1


def test_names_are_compared_as_a_whole():
    recorded, measured = {"ops": ["add", "mul", "mul"]}, {"ops": ["add", "exp", "mul"]}
    assert mismatches(recorded, measured, ULP) == ["ops: without ['mul'], but with ['exp']"]
    assert apart(["b", "a"], ["a", "b"]) == 1
    assert apart(["a", "b"], ["a", "b"]) == 0


def test_cases_that_are_missing_or_new():
    assert mismatches({"a": 1}, {"b": 1}, ULP) == [
        "a: missing, recorded 1",
        "b: not recorded, got 1",
    ]


class Special(ValueError):
    pass


@pytest.mark.parametrize(
    ("recorded", "measured", "count"),
    [
        (TypeError("expected 1, got 2"), TypeError("2 dimensions where 1 is wanted"), 0),
        (TypeError("expected 1, got 2"), ValueError("expected 1, got 2"), 1),
        (ValueError("anything"), Special("else"), 0),
        (Special("anything"), ValueError("else"), 1),
        (TypeError("cannot store float64 in int32"), TypeError("no"), 1),
        (TypeError("cannot store float64 in int32"), TypeError("a float64"), 0),
    ],
)
def test_exceptions(recorded, measured, count):
    assert apart(encode_error(recorded), encode_error(measured)) == count


def test_errors_are_recorded_without_places():
    message = 'wrong\n  File "/some/where.py", line 3, in <module>\n    x = 1\nvalue at 0x7f12'
    assert encode_error(ValueError(message)) == "!! ValueError: wrong value at 0x"
    assert encode_error(Special("x")).startswith("!! Special(ValueError, Exception): x")
