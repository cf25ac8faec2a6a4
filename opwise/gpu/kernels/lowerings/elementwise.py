"""Lowerings of elementwise Ops, and of Ops that copy arrays or parts of arrays."""

from __future__ import annotations

from opwise.gpu.kernels import views
from opwise.gpu.kernels.copies import Copies
from opwise.gpu.kernels.cudatext import ScalarProgram
from opwise.gpu.kernels.elemwise import ElementwiseKernels
from opwise.gpu.kernels.kernel import Array, Implementation, Launch, Layout, Plan
from opwise.gpu.kernels.lowerings.operands import dtypes_of, patterns_of
from opwise.gpu.kernels.shapes import check_broadcast
from opwise.gpu.lowering import lowers_to_kernels
from opwise.graph.apply import Apply
from opwise.scalar import dtypes
from opwise.tensor.convert import DeepCopyOp
from opwise.tensor.creation import Alloc
from opwise.tensor.elemwise import Elemwise
from opwise.tensor.extra_ops import CpuContiguous
from opwise.tensor.join import Join, MakeVector, Split
from opwise.tensor.subtensor import IncSubtensor


@lowers_to_kernels(Elemwise)
def lower_elemwise(node: Apply) -> Implementation | str:
    dtypes_in, dtypes_out = dtypes_of(node.inputs), dtypes_of(node.outputs)
    program = ScalarProgram.of(node.op.scalar_op, dtypes_in, dtypes_out)
    reason = program.missing()
    if reason:
        return reason
    kernels = ElementwiseKernels(program, node.outputs[0].type.ndim, patterns_of(node.inputs))
    n_in, n_out = len(node.inputs), len(node.outputs)
    arrays = [*(Array("in", i) for i in range(n_in)), *(Array("out", k) for k in range(n_out))]

    def shapes(inputs):
        return [node.op.shape_of(node, inputs)] * n_out

    def plan(inputs, outputs, limits):
        given = [*inputs, *outputs]
        return Plan(tuple(kernels.launches(outputs[0].shape, given, arrays, limits)))

    return Implementation(kernels.kernels, shapes, plan)


@lowers_to_kernels(DeepCopyOp, CpuContiguous)
def lower_copy(node: Apply) -> Implementation | str:
    (x,) = node.inputs
    copies = Copies(x.type.dtype, x.type.dtype, x.type.ndim)

    def shapes(inputs):
        return [inputs[0].shape]

    def plan(inputs, outputs, limits):
        launches = copies.launches(inputs[0], outputs[0], Array("in"), Array("out"), limits)
        return Plan(tuple(launches))

    aliases = {0: 0} if isinstance(node.op, CpuContiguous) else {}
    return copies.missing or Implementation(copies.kernels, shapes, plan, aliases=aliases)


@lowers_to_kernels(Alloc)
def lower_alloc(node: Apply) -> Implementation | str:
    value, out = node.inputs[0], node.outputs[0]
    ndim = out.type.ndim
    pattern = (True,) * (ndim - value.type.ndim) + value.type.broadcastable
    copies = Copies(value.type.dtype, out.type.dtype, ndim, pattern)
    if copies.missing:
        return copies.missing

    def shapes(inputs):
        value, *lengths = inputs
        shape = tuple(map(int, lengths))
        if any(n < 0 for n in shape):
            raise ValueError(f"negative dimensions are not allowed: {shape}")
        check_broadcast(value.shape, shape)
        return [shape]

    def plan(inputs, outputs, limits):
        source = views.padded(inputs[0], ndim)
        return Plan(tuple(copies.launches(source, outputs[0], Array("in"), Array("out"), limits)))

    host = tuple(range(1, len(node.inputs)))
    return Implementation(copies.kernels, shapes, plan, host)


# --- parts of arrays ------------------------------------------------------------------------------


@lowers_to_kernels(Join)
def lower_join(node: Apply) -> Implementation | str:
    tensors = node.inputs[1:]
    if node.op.view != -1:
        return "a Join that may return a view of an input runs on the host"
    out = node.outputs[0].type
    every = [Copies(x.type.dtype, out.dtype, out.ndim) for x in tensors]
    for copies in every:
        if copies.missing:
            return copies.missing

    def shapes(inputs):
        axis, *layouts = inputs
        return [_joined_shape(layouts, _checked_axis(axis, out.ndim))]

    def plan(inputs, outputs, limits):
        axis, *layouts = inputs
        along = _checked_axis(axis, out.ndim)
        launches: list[Launch] = []
        offset = 0
        for i, x in enumerate(layouts):
            part, skipped = views.part(outputs[0], along, offset, x)
            of, to = Array("in", 1 + i), Array("out", 0, skipped)
            launches += every[i].launches(x, part, of, to, limits)
            offset += x.shape[along]
        return Plan(tuple(launches))

    kernels = tuple(dict.fromkeys(k for copies in every for k in copies.kernels))
    return Implementation(kernels, shapes, plan, host=(0,))


def _joined_shape(layouts: list[Layout], axis: int) -> tuple[int, ...]:
    """Return the shape of arrays joined along an axis; raise numpy's error if they do not fit."""
    shape = list(layouts[0].shape)
    for i, x in enumerate(layouts):
        for d, n in enumerate(x.shape):
            if d != axis and n != shape[d]:
                raise ValueError(
                    "all the input array dimensions except for the concatenation axis must "
                    f"match exactly, but along dimension {d}, the array at index 0 has size "
                    f"{shape[d]} and the array at index {i} has size {n}"
                )
    shape[axis] = sum(x.shape[axis] for x in layouts)
    return tuple(shape)


@lowers_to_kernels(Split)
def lower_split(node: Apply) -> Implementation | str:
    x = node.inputs[0].type
    copies = Copies(x.dtype, x.dtype, x.ndim)
    if copies.missing:
        return copies.missing

    def shapes(inputs):
        layout, axis, lengths = inputs
        along, lengths = _checked_axis(axis, x.ndim), [int(n) for n in lengths]
        fit = len(lengths) == len(node.outputs) and sum(lengths) == layout.shape[along]
        if not fit or min(lengths) < 0:
            raise ValueError(
                f"the parts have {lengths} elements along axis {along}, the whole "
                f"{layout.shape[along]}"
            )
        return [(*layout.shape[:along], n, *layout.shape[along + 1 :]) for n in lengths]

    def plan(inputs, outputs, limits):
        layout, axis, _ = inputs
        launches: list[Launch] = []
        offset = 0
        along = _checked_axis(axis, x.ndim)
        for k, z in enumerate(outputs):
            part, skipped = views.part(layout, along, offset, z)
            launches += copies.launches(part, z, Array("in", 0, skipped), Array("out", k), limits)
            offset += z.shape[along]
        return Plan(tuple(launches))

    return Implementation(copies.kernels, shapes, plan, host=(1, 2))


def _checked_axis(axis: int, ndim: int) -> int:
    """Return an axis counted from 0; raise ValueError if the array does not have it."""
    axis = int(axis)
    if not -ndim <= axis < ndim:
        raise ValueError(f"there is no axis {axis} in an array of {ndim} dimensions")
    return axis % ndim


@lowers_to_kernels(MakeVector)
def lower_make_vector(node: Apply) -> Implementation | str:
    dtype = node.outputs[0].type.dtype
    copies = Copies(dtype, dtype, 0)
    if copies.missing:
        return copies.missing

    def shapes(inputs):
        return [(len(inputs),)]

    def plan(inputs, outputs, limits):
        launches: list[Launch] = []
        for i, x in enumerate(inputs):
            at = i * x.itemsize
            one = Layout((), (), x.itemsize, views.alignment_at(outputs[0], at))
            launches += copies.launches(x, one, Array("in", i), Array("out", 0, at), limits)
        return Plan(tuple(launches))

    return Implementation(copies.kernels, shapes, plan)


@lowers_to_kernels(IncSubtensor)
def lower_inc_subtensor(node: Apply) -> Implementation | str:
    x, y = (v.type for v in node.inputs[:2])
    op = node.op
    sample, _ = views.view_of(Layout((1,) * x.ndim, (1,) * x.ndim, 1), op.idx_list, None)
    ndim = len(sample.shape)
    pattern = (True,) * (ndim - y.ndim) + y.broadcastable
    if dtypes.promote(x.dtype, y.dtype) != x.dtype:
        return f"{y.dtype} is narrowed to {x.dtype}"
    copies = Copies(y.dtype, x.dtype, ndim, pattern, adds=not op.set_instead_of_inc)
    if copies.missing:
        return copies.missing

    def shapes(inputs):
        part, _ = views.view_of(inputs[0], op.idx_list, inputs[2:])
        check_broadcast(inputs[1].shape, part.shape)
        return [inputs[0].shape]

    def plan(inputs, outputs, limits):
        part, offset = views.view_of(outputs[0], op.idx_list, inputs[2:])
        source = views.padded(inputs[1], ndim)
        of, to = Array("in", 1), Array("out", 0, offset)
        return Plan(tuple(copies.launches(source, part, of, to, limits)))

    host = tuple(range(2, len(node.inputs)))
    return Implementation(copies.kernels, shapes, plan, host, copied={0: 0})
