"""Ops whose work on the device is not a kernel of ours: what does it, and why."""

from __future__ import annotations

from typing import NamedTuple

from opwise.tensor.advanced_subtensor import BaseAdvancedIncSubtensor, BaseAdvancedSubtensor
from opwise.tensor.assertion import Assert
from opwise.tensor.blas import BatchedDot, Dot22, Dot22Scalar, Gemm, Gemv, Ger
from opwise.tensor.convert import ScalarFromTensor, TensorFromScalar, ViewOp
from opwise.tensor.creation import AllocEmpty
from opwise.tensor.diagonal import FillDiagonal, FillDiagonalOffset
from opwise.tensor.dot import Dot
from opwise.tensor.elemwise import DimShuffle
from opwise.tensor.extra_ops import (
    Bartlett,
    CpuContiguous,
    CumOp,
    DiffOp,
    RavelMultiIndex,
    RepeatOp,
    SearchsortedOp,
    Unique,
    UnravelIndex,
)
from opwise.tensor.nnet.nnet import (
    Prepend_scalar_constant_to_each_row,
    Prepend_scalar_to_each_row,
)
from opwise.tensor.selection import Choose, Nonzero, PermuteRowElements
from opwise.tensor.shape import Rebroadcast, Reshape, Shape, Shape_i, SpecifyShape
from opwise.tensor.slices import MakeSlice
from opwise.tensor.sort import ArgSortOp, SortOp, TopKOp
from opwise.tensor.subtensor import Subtensor


class Elsewhere(NamedTuple):
    """how: "view" (of an input's memory, by CuPy), "cupy" (a call of CuPy computes it), "memory"
    (new memory, nothing to compute), "host" (numbers that the host works out)."""

    how: str
    reason: str


def _view(reason):
    return Elsewhere("view", reason)


def _cupy(reason):
    return Elsewhere("cupy", reason)


_BLAS = _cupy("cuBLAS multiplies, through CuPy")
_SORT = _cupy("CuPy sorts by radix")
_INDEX = _cupy("CuPy indexes with several arrays, masks and slices at once")

ELSEWHERE = {
    DimShuffle: _view("dimensions are put in another order without a copy"),
    Reshape: _view("a view where strides allow it, else CuPy's reshape, which copies"),
    Rebroadcast: _view("lengths are checked on the host"),
    SpecifyShape: _view("lengths are checked on the host"),
    Subtensor: _view("integers and slices give a view"),
    ViewOp: _view("the input itself"),
    Assert: _view("the input itself, once its conditions, which are on the host, hold"),
    CpuContiguous: _cupy("ascontiguousarray"),
    Shape: Elsewhere("host", "lengths are known without the elements"),
    Shape_i: Elsewhere("host", "lengths are known without the elements"),
    ScalarFromTensor: Elsewhere("host", "a number for the host, which is waited for"),
    TensorFromScalar: Elsewhere("host", "a number that the host has"),
    AllocEmpty: Elsewhere("memory", "memory that somebody else fills"),
    Dot22: _BLAS,
    Dot22Scalar: _BLAS,
    Gemm: _BLAS,
    Gemv: _BLAS,
    Ger: _BLAS,
    BatchedDot: _BLAS,
    Dot: _BLAS,
    SortOp: _SORT,
    ArgSortOp: _SORT,
    TopKOp: _cupy("CuPy's argpartition"),
    CumOp: _cupy("cumsum and cumprod"),
    DiffOp: _cupy("diff"),
    RepeatOp: _cupy("repeat"),
    SearchsortedOp: _cupy("searchsorted"),
    Unique: _cupy("unique, whose length is waited for"),
    Nonzero: _cupy("nonzero, whose length is waited for"),
    Choose: _cupy("choose"),
    FillDiagonal: _cupy("a copy, and its diagonal set"),
    FillDiagonalOffset: _cupy("a copy, and its diagonal set"),
    PermuteRowElements: _INDEX,
    UnravelIndex: _cupy("unravel_index"),
    RavelMultiIndex: _cupy("ravel_multi_index"),
    Prepend_scalar_constant_to_each_row: _cupy("a new matrix, and two parts of it set"),
    Prepend_scalar_to_each_row: _cupy("a new matrix, and two parts of it set"),
    Bartlett: Elsewhere("host", "a few numbers"),
    MakeSlice: Elsewhere("host", "a slice is no array"),
    BaseAdvancedSubtensor: _INDEX,
    BaseAdvancedIncSubtensor: _INDEX,
}
