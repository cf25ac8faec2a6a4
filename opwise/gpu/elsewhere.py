"""Ops that run on the host beside a device, and why; others have kernels, or a call of CuPy."""

from __future__ import annotations

from opwise.tensor.advanced_subtensor import AdvancedBooleanSubtensor
from opwise.tensor.breakpoint import PdbBreakpoint
from opwise.tensor.convert import ScalarFromTensor, TensorFromScalar
from opwise.tensor.extra_ops import Bartlett, Unique
from opwise.tensor.shape import Shape, Shape_i
from opwise.tensor.slices import MakeSlice

ELSEWHERE = {
    Shape: "lengths are known without the elements",
    Shape_i: "lengths are known without the elements",
    ScalarFromTensor: "a number for the host, which is waited for",
    TensorFromScalar: "a number that the host has",
    MakeSlice: "a slice is no array",
    PdbBreakpoint: "a debugger runs on the host",
    Bartlett: "a few numbers",
    AdvancedBooleanSubtensor: "what its masks pick would be counted, and waited for",
    Unique: "its length would be waited for",
}  # fmt: skip
