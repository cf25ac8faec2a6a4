"""Makers of kernels for Ops that select by numbers: rows and elements of arrays, and choices."""

from __future__ import annotations

from opwise.gpu import cudatext, indexing, views
from opwise.gpu.kernel import Implementation
from opwise.gpu.registry import cuda_maker
from opwise.tensor.advanced_subtensor import AdvancedIncSubtensor1, AdvancedSubtensor1

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
    x, y, index = (v.type for v in node.inputs)
    for used in (x.dtype, y.dtype):
        if not cudatext.has_text(used):
            return f"kernels have no {used}"
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
