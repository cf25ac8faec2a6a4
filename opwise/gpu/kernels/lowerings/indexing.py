"""Lowerings of indexing by arrays, by masks and by positions: elements picked, set or added to."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from opwise.gpu.kernels import array_indexing, positions, row_indexing
from opwise.gpu.kernels.cudatext import ScalarProgram
from opwise.gpu.kernels.elemwise import ElementwiseKernels
from opwise.gpu.kernels.kernel import Array, Implementation, Layout, Plan
from opwise.gpu.kernels.lowerings.operands import dtypes_of, unsupported
from opwise.gpu.kernels.shapes import check_broadcast, numpy_shape
from opwise.gpu.lowering import lowers_to_kernels
from opwise.graph.apply import Apply
from opwise.scalar.op import OPS, cast_op
from opwise.scalar.program import Instruction
from opwise.tensor.advanced_subtensor import (
    AdvancedBooleanIncSubtensor,
    AdvancedIncSubtensor,
    AdvancedIncSubtensor1,
    AdvancedSubtensor,
    AdvancedSubtensor1,
)
from opwise.tensor.extra_ops import RavelMultiIndex, SearchsortedOp
from opwise.tensor.selection import Choose
from opwise.tensor.slices import NoneTypeT, SliceType
from opwise.tensor.type import TensorType

#: the most choices that one kernel can have
MAX_CHOICES = 31

# --- rows by a vector of indices ------------------------------------------------------------------


def _bad_index(which: int) -> Callable[[int, list[Any]], Exception]:
    """Return a function that makes the error for an index that is out of range.

    which: position of the indices among the inputs.
    """

    def wrong(position, inputs):
        return IndexError(
            f"index out of bounds: index {inputs[which][position]} is out of bounds for axis 0 "
            f"with size {inputs[0].shape[0]}"
        )

    return wrong


@lowers_to_kernels(AdvancedSubtensor1)
def lower_row_gather(node: Apply) -> Implementation | str:
    x, index = (v.type for v in node.inputs)
    kernels = row_indexing.RowGather(x.numpy_dtype.itemsize, x.ndim, index.dtype)

    def shapes(inputs):
        x, index = inputs
        return [(index.shape[0], *x.shape[1:])]

    return Implementation(
        kernels.kernels, shapes, kernels.plan, wrong=_bad_index(1), error_inputs=(1,)
    )


@lowers_to_kernels(AdvancedIncSubtensor1)
def lower_row_scatter(node: Apply, deterministic: bool = True) -> Implementation | str:
    """Lower an Apply that sets rows or adds to them.

    deterministic: add in a fixed order. Otherwise add atomically if the device can.
    """
    reason = unsupported(dtypes_of(node.inputs[:2]))
    if reason:
        return reason
    x, y, index = (v.type for v in node.inputs)
    adds = not node.op.set_instead_of_inc
    dtypes = (x.dtype, y.dtype, index.dtype)
    kernels = row_indexing.RowScatter(dtypes, x.ndim - 1, adds, deterministic)

    def shapes(inputs):
        x, y, index = inputs
        check_broadcast(y.shape, (index.shape[0], *x.shape[1:]))
        return [x.shape]

    return Implementation(
        kernels.kernels, shapes, kernels.plan, copied={0: 0}, wrong=_bad_index(2),
        error_inputs=(2,),
    )  # fmt: skip


# --- elements by several indices ------------------------------------------------------------------


def _items(node: Apply, first: int) -> array_indexing.Items:
    """Return the Items of an Apply whose inputs from number ``first`` on are those of an index."""

    def kind(type_):
        if isinstance(type_, NoneTypeT):
            return "new"
        return "slice" if isinstance(type_, SliceType) else (type_.dtype, type_.ndim)

    kinds = [kind(v.type) for v in node.inputs[first:]]
    return array_indexing.Items(kinds, first, node.inputs[0].type.ndim)


@lowers_to_kernels(AdvancedSubtensor, host_types=(NoneTypeT, SliceType))
def lower_element_gather(node: Apply) -> Implementation | str:
    items = _items(node, 1)
    kernels = array_indexing.ElementGather(items, node.inputs[0].type.numpy_dtype.itemsize)
    return Implementation(
        kernels.kernels, kernels.shapes, kernels.plan, items.host,
        wrong=items.wrong if items.arrays else None, error_inputs=items.arrays,
    )  # fmt: skip


@lowers_to_kernels(AdvancedIncSubtensor, host_types=(NoneTypeT, SliceType))
def lower_element_scatter(node: Apply) -> Implementation | str:
    reason = unsupported(dtypes_of(node.inputs[:2]))
    if reason:
        return reason
    x, y = dtypes_of(node.inputs[:2])
    items = _items(node, 2)
    kernels = array_indexing.ElementScatter((x, y), items, not node.op.set_instead_of_inc)
    return Implementation(
        kernels.kernels, kernels.shapes, kernels.plan, items.host, copied={0: 0},
        wrong=items.wrong, error_inputs=items.arrays,
    )  # fmt: skip


# --- elements by a mask ---------------------------------------------------------------------------


@lowers_to_kernels(AdvancedBooleanIncSubtensor, host_types=(NoneTypeT, SliceType))
def lower_masked_scatter(node: Apply) -> Implementation | str:
    x, y, mask, *others = (v.type for v in node.inputs)
    if others or not isinstance(mask, TensorType) or mask.dtype != "bool":
        return "the number of masked elements depends on the data: it would need a synchronisation"
    rest = x.ndim - mask.ndim
    if y.ndim > rest + 1 or (y.ndim > rest and not y.broadcastable[0]):
        return "it must count the masked elements first: that would need a synchronisation"
    adds = not node.op.set_instead_of_inc
    program = _masked_program(x.dtype, y.dtype, adds)
    reason = program.missing()
    if reason:
        return reason
    of_y = y.broadcastable[max(0, y.ndim - rest) :]
    of_y = (True,) * (x.ndim - len(of_y)) + of_y
    patterns = [(False,) * x.ndim, of_y, mask.broadcastable + (True,) * rest]
    # visits every element and changes those where the mask is true: no need to count them
    kernels = ElementwiseKernels(program, x.ndim, patterns)

    def shapes(inputs):
        x, y, mask = inputs
        _check_masked(x, y, mask, adds)
        return [inputs[0].shape]

    def plan(inputs, outputs, limits):
        (z,), (_, y, mask) = outputs, inputs
        given = [z, array_indexing.with_ndim(y, x.ndim), _padded_behind(mask, rest), z]
        arrays = [Array("out"), Array("in", 1), Array("in", 2), Array("out")]
        return Plan(tuple(kernels.launches(z.shape, given, arrays, limits)))

    return Implementation(kernels.kernels, shapes, plan, copied={0: 0})


def _masked_program(x: str, y: str, adds: bool) -> ScalarProgram:
    """Return the program of (x, y, mask): y, or x + y, where the mask is true, and x elsewhere.

    x, y: dtypes.
    """
    instructions, value = [], 1
    if x != y:
        instructions.append(Instruction(cast_op(x), (1,), x))
        value = 2 + len(instructions)
    if adds:
        instructions.append(Instruction(OPS["add"], (0, value), x))
        value = 2 + len(instructions)
    instructions.append(Instruction(OPS["switch"], (2, value, 0), x))
    return ScalarProgram((x, y, "bool"), tuple(instructions), (2 + len(instructions),))


def _padded_behind(layout: Layout, count: int) -> Layout:
    """Return the layout with dimensions of length 1 added behind."""
    return layout._replace(shape=layout.shape + (1,) * count, strides=layout.strides + (0,) * count)


def _check_masked(x: Layout, y: Layout, mask: Layout, adds: bool) -> None:
    """Raise what numpy raises unless a mask, and what is put where it is true, fit an array."""
    ndim = len(mask.shape)
    if mask.shape != x.shape[:ndim]:
        # raises numpy's own error; these arrays have no memory
        np.broadcast_to(np.int8(0), x.shape)[np.broadcast_to(False, mask.shape)]
    rest = x.shape[ndim:]
    try:
        check_broadcast(y.shape[max(0, len(y.shape) - len(rest)) :], rest)
    except ValueError:
        raise ValueError(
            "array is not broadcastable to correct shape" if adds else
            f"shape mismatch: value array of shape {numpy_shape(y.shape)} could not be "
            f"broadcast to what a mask picks from an array of shape {x.shape}"
        ) from None  # fmt: skip


# --- positions and choices ------------------------------------------------------------------------


def _value_error(text: str) -> Callable[[int, list[Any]], Exception]:
    return lambda position, inputs: ValueError(text)


@lowers_to_kernels(SearchsortedOp)
def lower_searchsorted(node: Apply) -> Implementation | str:
    dtypes = dtypes_of(node.inputs)
    reason = unsupported(dtypes)
    if reason:
        return reason
    kernels = positions.SortedSearch(dtypes, node.inputs[1].type.ndim, node.op.side)
    wrong = _value_error("Sorter index out of range.") if len(dtypes) == 3 else None
    return Implementation(kernels.kernels, kernels.shapes, kernels.plan, wrong=wrong)


@lowers_to_kernels(Choose)
def lower_choose(node: Apply) -> Implementation | str:
    reason = unsupported(dtypes_of(node.inputs))
    if reason:
        return reason
    (out,), stacked = node.outputs, len(node.inputs) == 2
    if node.inputs[0].type.dtype == "uint64":
        return "numpy does not accept uint64 indices in choose"
    if stacked and node.inputs[1].type.ndim == 0:
        return "choices must be an array, not a scalar"
    if len(node.inputs) - 1 > MAX_CHOICES:
        return f"it has more than {MAX_CHOICES} choices"
    used = dtypes_of((*node.inputs, out))
    kernels = positions.Choice(used, out.type.ndim, node.op.mode, stacked)
    wrong = _value_error("invalid entry in choice array") if node.op.mode == "raise" else None
    return Implementation(kernels.kernels, kernels.shapes, kernels.plan, wrong=wrong)


@lowers_to_kernels(RavelMultiIndex)
def lower_ravel_multi_index(node: Apply) -> Implementation | str:
    *indices, _ = (v.type for v in node.inputs)
    op = node.op
    kernels = positions.Ravel([t.dtype for t in indices], indices[0].ndim, op.mode, op.order)
    wrong = _value_error("invalid entry in coordinates array") if op.mode == "raise" else None
    host = (len(indices),)
    return Implementation(kernels.kernels, kernels.shapes, kernels.plan, host, wrong=wrong)
