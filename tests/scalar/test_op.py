"""Scalar ops of users: which of them are equal."""

import pytest

from opwise.scalar.op import ScalarOp
from opwise.scalar.preferences import upcast_out

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
