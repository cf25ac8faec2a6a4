"""Translations of sorting, searching, cumulative Ops and others along an axis."""

from __future__ import annotations

from typing import Any

import numpy as np
from pytensor.tensor import extra_ops as px
from pytensor.tensor.sort import ArgSortOp as PyTensorArgSort
from pytensor.tensor.sort import SortOp as PyTensorSort

from opwise.frontends import Translator, Untranslated
from opwise.graph.variable import Var
from opwise.pytensor.frontend import translates
from opwise.tensor import extra_ops
from opwise.tensor.diagonal import FillDiagonal, FillDiagonalOffset
from opwise.tensor.elemwise import cast
from opwise.tensor.sort import ArgSortOp, SortOp
from opwise.tensor.variable import constant


@translates(PyTensorSort)
def _sort(t: Translator, node: Any, x: Var, *axis: Var) -> Var:
    return SortOp("quicksort", None)(x, _axis(node, axis))


def _axis(node: Any, given: tuple[Var, ...]) -> Var:
    """Return the axis of an Apply, which is an input in earlier releases of PyTensor 3.3."""
    return given[0] if given else constant(np.int64(node.op.axis))


@translates(PyTensorArgSort)
def _argsort(t: Translator, node: Any, x: Var, *axis: Var) -> Var:
    return ArgSortOp(node.op.kind, None)(x, _axis(node, axis))


@translates(px.SearchsortedOp)
def _searchsorted(t: Translator, node: Any, *inputs: Var) -> Var:
    return extra_ops.SearchsortedOp(node.op.side)(*inputs)


@translates(px.CumOp)
def _cumulative(t: Translator, node: Any, x: Var) -> Var:
    return extra_ops.CumOp(int(node.op.axis), node.op.mode)(x)


@translates(px.Repeat)
def _repeat(t: Translator, node: Any, x: Var, repeats: Var) -> Var:
    if repeats.type.broadcastable[0] and not x.type.broadcastable[int(node.op.axis)]:
        raise Untranslated("Repeat with one number for all elements has no translation")
    return extra_ops.RepeatOp(int(node.op.axis))(x, repeats)


@translates(px.Unique)
def _unique(t: Translator, node: Any, x: Var) -> list[Var]:
    op = node.op
    found: list[Var] = extra_ops.Unique(
        op.return_index, op.return_inverse, op.return_counts, op.axis
    )(x, return_list=True)
    return found


@translates(px.UnravelIndex)
def _unravel(t: Translator, node: Any, indices: Var, shape: Var) -> list[Var]:
    found: list[Var] = extra_ops.UnravelIndex(len(node.outputs), node.op.order)(
        indices, shape, return_list=True
    )
    return found


@translates(px.RavelMultiIndex)
def _ravel(t: Translator, node: Any, *inputs: Var) -> Var:
    return extra_ops.RavelMultiIndex(node.op.mode, node.op.order)(*inputs)


@translates(px.FillDiagonal)
def _fill_diagonal(t: Translator, node: Any, x: Var, value: Var) -> Var:
    return FillDiagonal()(x, cast(value, x.type.dtype))


@translates(px.FillDiagonalOffset)
def _fill_diagonal_offset(t: Translator, node: Any, x: Var, value: Var, offset: Var) -> Var:
    return FillDiagonalOffset()(x, cast(value, x.type.dtype), offset)


@translates(px.Bartlett)
def _bartlett(t: Translator, node: Any, n: Var) -> Var:
    return extra_ops.Bartlett()(n)


@translates(px.CpuContiguous)
def _contiguous(t: Translator, node: Any, x: Var) -> Var:
    return extra_ops.CpuContiguous()(x)
