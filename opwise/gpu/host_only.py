"""Ops that run on the host although their neighbours run on a device, each with the reason."""

from __future__ import annotations

from opwise import sparse
from opwise.gpu.lowering import runs_on_host
from opwise.graph.op import Op
from opwise.tensor.advanced_subtensor import AdvancedBooleanSubtensor
from opwise.tensor.breakpoint import PdbBreakpoint
from opwise.tensor.convert import ScalarFromTensor, TensorFromScalar
from opwise.tensor.extra_ops import Bartlett, Unique
from opwise.tensor.shape import Shape, Shape_i
from opwise.tensor.slices import MakeSlice

HOST_ONLY: dict[type[Op], str] = {
    Shape: "the host knows shapes without the elements",
    Shape_i: "the host knows shapes without the elements",
    ScalarFromTensor: "the host needs this value, and must wait for it",
    TensorFromScalar: "its input is a number on the host",
    MakeSlice: "a slice is not an array",
    PdbBreakpoint: "a debugger runs on the host",
    Bartlett: "it computes only a few numbers",
    AdvancedBooleanSubtensor: "output size depends on the data: it would need a synchronisation",
    Unique: "output size depends on the data: it would need a synchronisation",
}

HOST_ONLY |= {
    cls: "sparse matrices stay in the host's memory"
    for cls in vars(sparse).values()
    if isinstance(cls, type) and issubclass(cls, Op)
}

runs_on_host(HOST_ONLY)
