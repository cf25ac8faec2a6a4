"""Makers of kernels for Ops that select by numbers: rows and elements of arrays, and choices."""

from __future__ import annotations

import numpy as np

from opwise.gpu import advanced, cudatext, indexing, positions, views
from opwise.gpu.cudatext import Program
from opwise.gpu.elemwise import Loop
from opwise.gpu.kernel import Array, Implementation, Plan
from opwise.gpu.registry import cuda_maker
from opwise.scalar.composite import Instruction
from opwise.scalar.op import OPS, cast_op
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

#: choices that one kernel can have
MAX_CHOICES = 31


def _missing(variables):
    """Return why kernels cannot compute with variables, or None."""
    return next(
        (f"kernels have no {v.type.dtype}" for v in variables
         if not cudatext.has_text(v.type.dtype)), None,
    )  # fmt: skip


# --- rows by a vector of indices ------------------------------------------------------------------


def _bad_index(which):
    def wrong(position, inputs):
        return IndexError(
            f"index out of bounds: index {inputs[which][position]} is out of bounds for axis 0 "
            f"with size {inputs[0].shape[0]}"
        )

    return wrong


@cuda_maker(AdvancedSubtensor1)
def take_rows(node):
    x, index = (v.type for v in node.inputs)
    itemsize = x.numpy_dtype.itemsize
    take = indexing.Take(itemsize, x.ndim, index.dtype)

    def shapes(inputs):
        x, index = inputs
        return [(index.shape[0], *x.shape[1:])]

    return Implementation(take.kernels, shapes, take.plan, wrong=_bad_index(1), told=(1,))


@cuda_maker(AdvancedIncSubtensor1)
def put_rows(node, deterministic=True):
    reason = _missing(node.inputs[:2])
    if reason:
        return reason
    x, y, index = (v.type for v in node.inputs)
    put = indexing.Put(
        (x.dtype, y.dtype, index.dtype), x.ndim - 1, not node.op.set_instead_of_inc, deterministic
    )

    def shapes(inputs):
        x, y, index = inputs
        wanted = (index.shape[0], *x.shape[1:])
        views.check_broadcast(y.shape, wanted)
        return [x.shape]

    return Implementation(
        put.kernels, shapes, put.plan, copied={0: 0}, wrong=_bad_index(2), told=(2,)
    )


# --- elements by several indices ------------------------------------------------------------------


def _items(node, first):
    """Return the Items of an Apply of an index whose parts are its inputs from ``first`` on."""

    def kind(type_):
        if isinstance(type_, NoneTypeT):
            return "new"
        return "slice" if isinstance(type_, SliceType) else (type_.dtype, type_.ndim)

    kinds = [kind(v.type) for v in node.inputs[first:]]
    return advanced.Items(kinds, first, node.inputs[0].type.ndim)


@cuda_maker(AdvancedSubtensor, types=(NoneTypeT, SliceType))
def pick_elements(node):
    items = _items(node, 1)
    pick = advanced.Pick(items, node.inputs[0].type.numpy_dtype.itemsize)
    return Implementation(
        pick.kernels, pick.shapes, pick.plan, items.host,
        wrong=items.wrong if items.arrays else None, told=items.arrays,
    )  # fmt: skip


@cuda_maker(AdvancedIncSubtensor, types=(NoneTypeT, SliceType))
def put_elements(node):
    reason = _missing(node.inputs[:2])
    if reason:
        return reason
    x, y = (v.type for v in node.inputs[:2])
    items = _items(node, 2)
    put = advanced.PutAt((x.dtype, y.dtype), items, not node.op.set_instead_of_inc)
    return Implementation(
        put.kernels, put.shapes, put.plan, items.host, copied={0: 0},
        wrong=items.wrong, told=items.arrays,
    )  # fmt: skip


# --- elements by a mask ---------------------------------------------------------------------------


@cuda_maker(AdvancedBooleanIncSubtensor, types=(NoneTypeT, SliceType))
def put_masked(node):
    x, y, mask, *others = (v.type for v in node.inputs)
    if others or not isinstance(mask, TensorType) or mask.dtype != "bool":
        return "what its masks pick would be counted, and waited for"
    rest = x.ndim - mask.ndim
    if y.ndim > rest + 1 or (y.ndim > rest and not y.broadcastable[0]):
        return "its values go to elements that would be counted, and waited for"
    adds = not node.op.set_instead_of_inc
    program = _where(x.dtype, y.dtype, adds)
    reason = program.missing()
    if reason:
        return reason
    of_y = y.broadcastable[max(0, y.ndim - rest) :]
    of_y = (True,) * (x.ndim - len(of_y)) + of_y
    # no element is counted: each is looked at, and changed where the mask is true
    loop = Loop(program, x.ndim, [(False,) * x.ndim, of_y, mask.broadcastable + (True,) * rest])

    def shapes(inputs):
        _check_masked(*inputs, adds)
        return [inputs[0].shape]

    def plan(inputs, outputs, device):
        (z,), (_, y, mask) = outputs, inputs
        given = [z, advanced.as_dimensions(y, x.ndim), _behind(mask, rest), z]
        arrays = [Array("out"), Array("in", 1), Array("in", 2), Array("out")]
        return Plan(tuple(loop.launches(z.shape, given, arrays, device)))

    return Implementation(loop.kernels, shapes, plan, copied={0: 0})


def _where(x, y, adds):
    """Return the program of (x, y, mask): x, where the mask is true y, or x + y."""
    steps, value = [], 1
    if x != y:
        steps.append(Instruction(cast_op(x), (1,), x))
        value = 2 + len(steps)
    if adds:
        steps.append(Instruction(OPS["add"], (0, value), x))
        value = 2 + len(steps)
    steps.append(Instruction(OPS["switch"], (2, value, 0), x))
    return Program(tuple(steps), (2 + len(steps),), (x, y, "bool"))


def _behind(layout, count):
    """Return the layout with dimensions of length 1 added behind."""
    return layout._replace(shape=layout.shape + (1,) * count, strides=layout.strides + (0,) * count)


def _check_masked(x, y, mask, adds):
    """Raise what numpy does unless a mask, and what is put where it is true, fit an array."""
    ndim = len(mask.shape)
    if mask.shape != x.shape[:ndim]:
        # numpy's own error; these arrays have no memory
        np.broadcast_to(np.int8(0), x.shape)[np.broadcast_to(False, mask.shape)]
    rest = x.shape[ndim:]
    try:
        views.check_broadcast(y.shape[max(0, len(y.shape) - len(rest)) :], rest)
    except ValueError:
        raise ValueError(
            "array is not broadcastable to correct shape" if adds else
            f"shape mismatch: value array of shape {views.told_shape(y.shape)} could not be "
            f"broadcast to what a mask picks from an array of shape {x.shape}"
        ) from None  # fmt: skip


# --- positions and choices ------------------------------------------------------------------------


def _value_error(text):
    return lambda position, inputs: ValueError(text)


@cuda_maker(SearchsortedOp)
def search(node):
    reason = _missing(node.inputs)
    if reason:
        return reason
    x, v, *sorter = (v.type for v in node.inputs)
    if sorter and sorter[0].dtype == "uint64":
        return "numpy takes no sorter of uint64"
    found = positions.Search([t.dtype for t in (x, v, *sorter)], v.ndim, node.op.side)

    wrong = _value_error("Sorter index out of range.")
    return Implementation(found.kernels, found.shapes, found.plan, wrong=wrong if sorter else None)


@cuda_maker(Choose)
def choose(node):
    reason = _missing(node.inputs)
    if reason:
        return reason
    (out,), stacked = node.outputs, len(node.inputs) == 2
    if node.inputs[0].type.dtype == "uint64":
        return "numpy takes no uint64 as the number of a choice"
    if stacked and node.inputs[1].type.ndim == 0:
        return "a number holds no choices"
    if len(node.inputs) - 1 > MAX_CHOICES:
        return f"it has more than {MAX_CHOICES} choices"
    used = [v.type.dtype for v in (*node.inputs, out)]
    found = positions.Choice(used, out.type.ndim, node.op.mode, stacked)

    wrong = _value_error("invalid entry in choice array")
    return Implementation(
        found.kernels, found.shapes, found.plan, wrong=wrong if node.op.mode == "raise" else None
    )


@cuda_maker(RavelMultiIndex)
def ravel(node):
    *indices, _ = (v.type for v in node.inputs)
    op = node.op
    found = positions.Ravel([t.dtype for t in indices], indices[0].ndim, op.mode, op.order)

    wrong = _value_error("invalid entry in coordinates array")
    return Implementation(
        found.kernels, found.shapes, found.plan, (len(indices),),
        wrong=wrong if op.mode == "raise" else None,
    )  # fmt: skip
