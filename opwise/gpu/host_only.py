"""Ops that run on the host although their neighbours run on a device, each with the reason."""

from __future__ import annotations

from opwise.gpu.lowering import runs_on_host
from opwise.tensor.advanced_subtensor import AdvancedBooleanSubtensor
from opwise.tensor.breakpoint import PdbBreakpoint
from opwise.tensor.convert import ScalarFromTensor, TensorFromScalar
from opwise.tensor.extra_ops import Bartlett, Unique
from opwise.tensor.lists import (
    Append,
    Count,
    Extend,
    GetItem,
    Index,
    Insert,
    Length,
    MakeList,
    Remove,
    Reverse,
)
from opwise.tensor.nnet.blocksparse import SparseBlockGemv, SparseBlockOuter
from opwise.tensor.nnet.ctc import ConnectionistTemporalClassification
from opwise.tensor.shape import Shape, Shape_i
from opwise.tensor.slices import MakeSlice

HOST_ONLY = {
    Shape: "the host knows shapes without the elements",
    Shape_i: "the host knows shapes without the elements",
    ScalarFromTensor: "the host needs this value, and must wait for it",
    TensorFromScalar: "its input is a number on the host",
    MakeSlice: "a slice is not an array",
    **dict.fromkeys(
        (Append, Count, Extend, GetItem, Index, Insert, Length, MakeList, Remove, Reverse),
        "a list is not an array",
    ),
    PdbBreakpoint: "a debugger runs on the host",
    SparseBlockGemv: "no kernel gathers blocks",
    SparseBlockOuter: "no kernel adds to blocks that may repeat",
    ConnectionistTemporalClassification: "its steps follow each other in time",
    Bartlett: "it computes only a few numbers",
    AdvancedBooleanSubtensor: "output size depends on the data: it would need a synchronisation",
    Unique: "output size depends on the data: it would need a synchronisation",
}

runs_on_host(HOST_ONLY)
