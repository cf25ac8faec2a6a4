"""Scalar ops of users: which of them are equal."""

import threading

import pytest

from opwise.scalar import ScalarOp, autocast_float_as, upcast_out
from opwise.scalar.types import autocast

pytestmark = pytest.mark.null


class Shift(ScalarOp):
    __props__ = ("by",)
    nin = 1

    def __init__(self, by, preference=upcast_out):
        super().__init__(preference)
        self.by = by

    def impl(self, x):
        return x + self.by


def test_ops_with_other_props_differ():
    assert Shift(1) == Shift(1) and hash(Shift(1)) == hash(Shift(1))
    assert Shift(1) != Shift(2)
    assert Shift(1) != Shift(1, lambda t: (t,))


def test_dtypes_of_floats_are_those_of_the_thread():
    with autocast_float_as("float16"), autocast_float_as("float32", "float64"):
        assert autocast(1.1).dtype == "float64"
    with autocast_float_as("float16"):
        found = []
        thread = threading.Thread(target=lambda: found.append(autocast(1.1).dtype))
        thread.start()
        thread.join()
        assert (autocast(1.1).dtype, found) == ("float16", ["float64"])
    assert autocast(1.1).dtype == "float64"
