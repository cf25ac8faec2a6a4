"""Kernels of each Op that has them, one place an Op; others are in ``calls`` or ``elsewhere``.

Those of Ops that select by numbers are in ``selecting``.

A maker is a function from an Apply to an ``Implementation``, or to the reason why there is none, a
sentence for the profile.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from opwise.gpu import cudatext, fill, rows, views
from opwise.gpu.calls import check_product
from opwise.gpu.cudatext import Program
from opwise.gpu.elemwise import Loop
from opwise.gpu.elsewhere import ELSEWHERE
from opwise.gpu.kernel import Array, Device, Implementation, Layout, Plan
from opwise.gpu.reduce import Folding, Reduction
from opwise.gpu.registry import beside, cuda_maker, makers
from opwise.gpu.scan import Lines, Scan
from opwise.gpu.selecting import put_rows
from opwise.scalar import dtypes, loops
from opwise.scalar.op import OPS, cast_op
from opwise.scalar.types import Scalar
from opwise.tensor.convert import DeepCopyOp
from opwise.tensor.creation import Alloc, ARange, Eye, Tri, how_many
from opwise.tensor.diagonal import AllocDiag, ExtractDiag
from opwise.tensor.dimshuffle import DimShuffle
from opwise.tensor.dot import Dot
from opwise.tensor.elemwise import Elemwise
from opwise.tensor.extra_ops import CpuContiguous, CumOp
from opwise.tensor.join import Join, MakeVector, Split
from opwise.tensor.mapreduce import MapReduce
from opwise.tensor.nnet.crossentropy import (
    CrossentropyCategorical1Hot,
    CrossentropyCategorical1HotGrad,
    CrossentropySoftmax1HotWithBiasDx,
    CrossentropySoftmaxArgmax1HotWithBias,
)
from opwise.tensor.nnet.rowsoftmax import (
    LogSoftmax,
    Softmax,
    SoftmaxGrad,
    SoftmaxWithBias,
    check_bias,
)
from opwise.tensor.reduce import Argmax, CAReduce, MaxAndArgmax, Sum, check_not_empty
from opwise.tensor.subtensor import IncSubtensor
from opwise.tensor.type import TensorType

#: arrays that one kernel can have: parameters take 4 KB at most
MAX_OPERANDS = 64


def implementation(node, deterministic=True):
    """Return the Implementation of an Apply, or a sentence that says why it has no kernel.

    deterministic: whether additions to rows are in a fixed order; otherwise, where the device has
    an instruction for it, they go on at once.
    """
    cls = type(node.op)
    maker = next((makers[c] for c in cls.__mro__ if c in makers), None)
    if maker is None:
        reason = next((ELSEWHERE[c] for c in cls.__mro__ if c in ELSEWHERE), None)
        return reason or f"{cls.__name__} has no implementation for the device"
    for var in (*node.inputs, *node.outputs):
        if not isinstance(var.type, (TensorType, Scalar, *beside.get(maker, ()))):
            return f"{var.type} is no tensor"
    if len(node.inputs) + len(node.outputs) > MAX_OPERANDS:
        return f"it has more than {MAX_OPERANDS} operands"
    made = maker(node, deterministic) if maker is put_rows else maker(node)
    return made if isinstance(made, str) else replace(made, expected=_expected(node, made))


def _expected(node, made):
    """Return the kernels that are launched for operands that are contiguous, or a DimShuffle of
    what is, small and large, and such that have no whole number of vectors."""
    if made.host:
        return tuple(k for k in made.kernels if not k.wide)
    found = {}
    for length in (10, 16, 2 ** (24 // max(1, *(v.type.ndim for v in node.inputs)))):
        inputs, outputs = (
            [_usual(v, length) for v in variables] for variables in (node.inputs, node.outputs)
        )
        plan = made.plan(inputs, outputs, Device())
        found |= dict.fromkeys(launch.kernel for launch in plan.launches)
    return tuple(k for k in found if not k.wide)


def _usual(var, length):
    """Return the layout that a variable has where all its dimensions have a length."""
    if var.owner is None or not isinstance(var.owner.op, DimShuffle):
        shape = [1 if b else length for b in var.type.broadcastable]
        return Layout.contiguous(shape, var.type.numpy_dtype.itemsize)
    whole, order = _usual(var.owner.inputs[0], length), var.owner.op.new_order
    return whole._replace(
        shape=tuple(1 if d == "x" else whole.shape[d] for d in order),
        strides=tuple(0 if d == "x" else whole.strides[d] for d in order),
    )


def _dtypes(variables):
    return [v.type.dtype for v in variables]


def _patterns(variables):
    return [v.type.broadcastable for v in variables]


# --- elementwise ----------------------------------------------------------------------------------


@cuda_maker(Elemwise)
def elementwise(node):
    program = Program.of(node.op.scalar_op, _dtypes(node.inputs), _dtypes(node.outputs))
    reason = program.missing()
    if reason:
        return reason
    loop = Loop(program, node.outputs[0].type.ndim, _patterns(node.inputs))
    n_in, n_out = len(node.inputs), len(node.outputs)
    arrays = [*(Array("in", i) for i in range(n_in)), *(Array("out", k) for k in range(n_out))]

    def shapes(inputs):
        return [node.op.shape_of(node, inputs)] * n_out

    def plan(inputs, outputs, device):
        return Plan(tuple(loop.launches(outputs[0].shape, [*inputs, *outputs], arrays, device)))

    return Implementation(loop.kernels, shapes, plan)


class _Copies:
    """Copies between arrays of ``ndim`` dimensions, perhaps of two dtypes, or sums of both.

    adds: add to the target; pattern: where the source is broadcast.
    """

    def __init__(self, source, target, ndim, pattern=None, adds=False):
        self.adds = adds
        if adds:
            op = OPS["add"]
            program = Program.of(op, [target, source], [target])
            patterns = [(False,) * ndim, pattern or (False,) * ndim]
        else:
            program = (
                Program.identity(source)
                if source == target
                else Program.of(cast_op(target), [source], [target])
            )
            patterns = [pattern or (False,) * ndim]
        self.missing = program.missing()
        self.loop = None if self.missing else Loop(program, ndim, patterns)

    def launches(self, source, target, of, to, device):
        """Return the launches for two layouts, and what a Launch calls these arrays."""
        given, arrays = [source, target], [of, to]
        if self.adds:
            given, arrays = [target, source, target], [to, of, to]
        return self.loop.launches(target.shape, given, arrays, device)


@cuda_maker(DeepCopyOp, CpuContiguous)
def copy(node):
    (x,) = node.inputs
    copies = _Copies(x.type.dtype, x.type.dtype, x.type.ndim)

    def plan(inputs, outputs, device):
        return Plan(
            tuple(copies.launches(inputs[0], outputs[0], Array("in"), Array("out"), device))
        )

    same = {0: 0} if isinstance(node.op, CpuContiguous) else {}
    return copies.missing or Implementation(
        copies.loop.kernels, lambda inputs: [inputs[0].shape], plan, same=same
    )


@cuda_maker(Alloc)
def alloc(node):
    value, out = node.inputs[0], node.outputs[0]
    ndim = out.type.ndim
    pattern = (True,) * (ndim - value.type.ndim) + value.type.broadcastable
    copies = _Copies(value.type.dtype, out.type.dtype, ndim, pattern)
    if copies.missing:
        return copies.missing

    def shapes(inputs):
        value, *lengths = inputs
        shape = tuple(map(int, lengths))
        if any(n < 0 for n in shape):
            raise ValueError(f"negative dimensions are not allowed: {shape}")
        views.check_broadcast(value.shape, shape)
        return [shape]

    def plan(inputs, outputs, device):
        source = views.padded(inputs[0], ndim)
        return Plan(tuple(copies.launches(source, outputs[0], Array("in"), Array("out"), device)))

    host = tuple(range(1, len(node.inputs)))
    return Implementation(copies.loop.kernels, shapes, plan, host)


@cuda_maker(Join)
def join(node):
    tensors = node.inputs[1:]
    if node.op.view != -1:
        return "a Join that may be a view of one of its inputs is left to CuPy"
    out = node.outputs[0].type
    every = [_Copies(x.type.dtype, out.dtype, out.ndim) for x in tensors]
    for copies in every:
        if copies.missing:
            return copies.missing

    def shapes(inputs):
        axis, *layouts_ = inputs
        along = _axis(axis, out.ndim)
        shape = list(layouts_[0].shape)
        for i, x in enumerate(layouts_):
            for d, n in enumerate(x.shape):
                if d != along and n != shape[d]:
                    raise ValueError(
                        "all the input array dimensions except for the concatenation axis must "
                        f"match exactly, but along dimension {d}, the array at index 0 has size "
                        f"{shape[d]} and the array at index {i} has size {n}"
                    )
        shape[along] = sum(x.shape[along] for x in layouts_)
        return [tuple(shape)]

    def plan(inputs, outputs, device):
        axis, *layouts_ = inputs
        launches, offset = [], 0
        for i, x in enumerate(layouts_):
            part, skipped = views.part(outputs[0], _axis(axis, out.ndim), offset, x)
            launches += every[i].launches(
                x, part, Array("in", 1 + i), Array("out", 0, skipped), device
            )
            offset += x.shape[_axis(axis, out.ndim)]
        return Plan(tuple(launches))

    kernels = tuple(dict.fromkeys(k for copies in every for k in copies.loop.kernels))
    return Implementation(kernels, shapes, plan, host=(0,))


@cuda_maker(Split)
def split(node):
    x = node.inputs[0].type
    copies = _Copies(x.dtype, x.dtype, x.ndim)
    if copies.missing:
        return copies.missing

    def shapes(inputs):
        layout, axis, lengths = inputs
        along, lengths = _axis(axis, x.ndim), [int(n) for n in lengths]
        if (
            len(lengths) != len(node.outputs)
            or min(lengths) < 0
            or (sum(lengths) != layout.shape[along])
        ):
            raise ValueError(
                f"the parts have {lengths} elements along axis {along}, the whole "
                f"{layout.shape[along]}"
            )
        return [(*layout.shape[:along], n, *layout.shape[along + 1 :]) for n in lengths]

    def plan(inputs, outputs, device):
        layout, axis, _ = inputs
        launches, offset = [], 0
        along = _axis(axis, x.ndim)
        for k, z in enumerate(outputs):
            part, skipped = views.part(layout, along, offset, z)
            launches += copies.launches(part, z, Array("in", 0, skipped), Array("out", k), device)
            offset += z.shape[along]
        return Plan(tuple(launches))

    return Implementation(copies.loop.kernels, shapes, plan, host=(1, 2))


def _axis(axis, ndim):
    axis = int(axis)
    if not -ndim <= axis < ndim:
        raise ValueError(f"there is no axis {axis} in an array of {ndim} dimensions")
    return axis % ndim


@cuda_maker(MakeVector)
def make_vector(node):
    dtype = node.outputs[0].type.dtype
    copies = _Copies(dtype, dtype, 0)
    if copies.missing:
        return copies.missing

    def plan(inputs, outputs, device):
        launches = []
        for i, x in enumerate(inputs):
            at = i * x.itemsize
            one = Layout((), (), x.itemsize, views.alignment_at(outputs[0], at))
            launches += copies.launches(x, one, Array("in", i), Array("out", 0, at), device)
        return Plan(tuple(launches))

    return Implementation(copies.loop.kernels, lambda inputs: [(len(inputs),)], plan)


@cuda_maker(IncSubtensor)
def inc_subtensor(node):
    x, y = (v.type for v in node.inputs[:2])
    op = node.op
    sample = views.view_of(Layout((1,) * x.ndim, (1,) * x.ndim, 1), op.idx_list, None)
    ndim = len(sample[0].shape)
    pattern = (True,) * (ndim - y.ndim) + y.broadcastable
    if dtypes.upcast(x.dtype, y.dtype) != x.dtype:
        return f"{y.dtype} is narrowed to {x.dtype}"
    copies = _Copies(y.dtype, x.dtype, ndim, pattern, adds=not op.set_instead_of_inc)
    if copies.missing:
        return copies.missing

    def part_of(layout, inputs):
        return views.view_of(layout, op.idx_list, inputs[2:])

    def shapes(inputs):
        part, _ = part_of(inputs[0], inputs)
        views.check_broadcast(inputs[1].shape, part.shape)
        return [inputs[0].shape]

    def plan(inputs, outputs, device):
        part, offset = part_of(outputs[0], inputs)
        source = views.padded(inputs[1], ndim)
        return Plan(
            tuple(copies.launches(source, part, Array("in", 1), Array("out", 0, offset), device))
        )

    host = tuple(range(2, len(node.inputs)))
    return Implementation(copies.loop.kernels, shapes, plan, host, copied={0: 0})


# --- memory that is filled ------------------------------------------------------------------------


@cuda_maker(ARange)
def arange(node):
    dtype = node.outputs[0].type.dtype
    if not cudatext.has_text(dtype) or dtype == "bool":
        return f"kernels have no range of {dtype}"
    kernel = fill.arange(dtype)

    def shapes(inputs):
        start, stop, step = (np.asarray(x).item() for x in inputs)
        if step == 0:
            raise ZeroDivisionError(f"arange({start}, {stop}, {step}): its step is zero")
        if all(isinstance(x, int) for x in (start, stop, step)):
            return [(how_many(start, stop, step),)]
        return [(max(0, int(np.ceil((stop - start) / step))),)]

    def plan(inputs, outputs, device):
        start, _, step = (np.asarray(x).item() for x in inputs)
        first, second = (_of_dtype(v, dtype) for v in (start, start + step))
        return fill.arange_plan(kernel, outputs[0].size, first, second, device)

    return Implementation((kernel,), shapes, plan, host=(0, 1, 2))


def _of_dtype(number, dtype):
    """Return a number as ``dtype``, in which whole numbers wrap."""
    if isinstance(number, int) and dtype in dtypes.INTEGERS:
        return np.array(number % 2**64, np.uint64).astype(dtype).item()
    return np.asarray(number).astype(dtype).item()


@cuda_maker(Eye, Tri)
def diagonal_matrix(node):
    dtype = node.outputs[0].type.dtype
    if not cudatext.has_text(dtype):
        return f"kernels have no {dtype}"
    kernel = fill.diagonal(dtype, "==" if isinstance(node.op, Eye) else "<=")

    def shapes(inputs):
        n, m, _ = map(int, inputs)
        if n < 0 or m < 0:
            raise ValueError(f"negative dimensions are not allowed: {node.op} of {n} by {m}")
        return [(n, m)]

    def plan(inputs, outputs, device):
        return fill.diagonal_plan(kernel, outputs[0].shape, int(inputs[2]), device)

    return Implementation((kernel,), shapes, plan, host=(0, 1, 2))


@cuda_maker(ExtractDiag)
def extract_diagonal(node):
    x, op = node.inputs[0].type, node.op
    if op.view:
        return "a view, which CuPy gives"
    copies = _Copies(x.dtype, x.dtype, x.ndim - 1)
    if copies.missing:
        return copies.missing

    def shapes(inputs):
        return [_diagonal_of(inputs[0], op)[0].shape]

    def plan(inputs, outputs, device):
        source, offset = _diagonal_of(inputs[0], op)
        of, to = Array("in", 0, offset), Array("out")
        return Plan(tuple(copies.launches(source, outputs[0], of, to, device)))

    return Implementation(copies.loop.kernels, shapes, plan)


def _diagonal_of(layout, op):
    """Return (the layout of an array's diagonals, bytes to their start)."""
    return views.viewed(layout, lambda whole: whole.diagonal(op.offset, op.axis1, op.axis2))


@cuda_maker(AllocDiag)
def alloc_diagonal(node):
    x, op = node.inputs[0].type, node.op
    copies = _Copies(x.dtype, x.dtype, x.ndim)
    if copies.missing:
        return copies.missing
    blank = Loop(Program.constant(np.zeros((), x.dtype)), x.ndim + 1, [])

    def shapes(inputs):
        (layout,) = inputs
        n = layout.shape[-1] + abs(op.offset)
        shape = list(layout.shape[:-1])
        for axis in sorted((op.axis1, op.axis2)):
            shape.insert(axis, n)
        return [tuple(shape)]

    def plan(inputs, outputs, device):
        (z,) = outputs
        launches = blank.launches(z.shape, [z], [Array("out")], device)
        part, offset = _diagonal_of(z, op)
        of, to = Array("in"), Array("out", 0, offset)
        return Plan((*launches, *copies.launches(inputs[0], part, of, to, device)))

    return Implementation((*copies.loop.kernels, *blank.kernels), shapes, plan)


# --- reductions -----------------------------------------------------------------------------------


@cuda_maker(CAReduce)
def reduce_(node):
    x, out = node.inputs[0].type, node.outputs[0].type
    folding = _folding(node.op, x.dtype, out.dtype)
    if isinstance(folding, str):
        return folding
    program = Program.identity(x.dtype)
    return _reduction(
        program, folding, node.op, x.ndim, [x.broadcastable], lambda inputs: inputs[0].shape
    )


@cuda_maker(MapReduce)
def map_reduce(node):
    mapped, reduced = node.op.parts(node)
    between = mapped.outputs[0].type
    program = Program.of(node.op.scalar_op, _dtypes(node.inputs), [between.dtype])
    folding = _folding(reduced.op, between.dtype, node.outputs[0].type.dtype)
    if isinstance(folding, str):
        return folding
    return program.missing() or _reduction(
        program, folding, reduced.op, between.ndim, _patterns(node.inputs),
        lambda inputs: mapped.op.shape_of(mapped, inputs),
    )  # fmt: skip


@cuda_maker(Dot)
def dot_of_vectors(node):
    """A product of vectors is added up as sums are; those of matrices are for cuBLAS."""
    x, y = node.inputs
    if x.type.ndim == y.type.ndim == 1:
        out = node.outputs[0].type.dtype
        total = Sum(dtype=out, acc_dtype=cudatext.held(out))
        folding = _folding(total, cudatext.held(out), out)
        if isinstance(folding, str):
            return folding
        program = Program.of(OPS["mul"], _dtypes(node.inputs), [cudatext.held(out)])
        if program.missing():
            return program.missing()
        patterns = _patterns(node.inputs)
        longer = int(patterns[0] == (True,))
        made = _reduction(program, folding, total, 1, patterns, lambda ins: ins[longer].shape)

        def shapes(inputs):
            check_product(inputs[0].shape, inputs[1].shape)
            return made.shapes(inputs)

        return replace(made, shapes=shapes)
    return "products of matrices are cuBLAS's"


def _folding(op, dtype, out):
    """Return the Folding of a CAReduce of ``dtype`` to ``out``, or why there is none."""
    row = op.scalar_op.row
    if row is None or row.name not in loops.FOLDS:
        return f"kernels do not reduce by {op.scalar_op}"
    acc = getattr(op, "acc_dtype", None) or out
    for used in (dtype, acc, out):
        if not cudatext.has_text(used):
            return f"kernels have no {used}"
    if acc == "bool" and row.name in ("add", "mul"):
        return f"kernels do not reduce bool by {row.name}"
    return Folding.of(row.name, acc, out)


def _reduction(program, folding, op, ndim, patterns, shape_of):
    axes = tuple(range(ndim)) if op.axis is None else op.axis
    reduction = Reduction(folding, program, ndim, axes, patterns)

    def shapes(inputs):
        shape = shape_of(inputs)
        if folding.fold.needs_elements:
            check_not_empty(Layout(shape, (), 1), axes, op.scalar_op)
        return [tuple(n for d, n in enumerate(shape) if d not in axes)]

    def plan(inputs, outputs, device):
        return reduction.plan(shape_of(inputs), inputs, device)

    return Implementation(reduction.kernels, shapes, plan)


@cuda_maker(MaxAndArgmax, Argmax)
def argmax(node):
    x, axes = node.inputs[0].type, node.op.axis
    if not cudatext.has_text(x.dtype):
        return f"kernels have no {x.dtype}"
    folding = Folding.argmax(x.dtype, with_maximum=len(node.outputs) == 2)
    reduction = Reduction(
        folding, Program.identity(x.dtype), x.ndim, axes, [x.broadcastable], ordered=True
    )

    def shapes(inputs):
        check_not_empty(inputs[0], axes, "maximum")
        shape = tuple(n for d, n in enumerate(inputs[0].shape) if d not in axes)
        return [shape] * len(node.outputs)

    def plan(inputs, outputs, device):
        return reduction.plan(inputs[0].shape, inputs, device)

    return Implementation(reduction.kernels, shapes, plan)


@cuda_maker(CumOp)
def cumulated(node):
    x, op = node.inputs[0].type, node.op
    copies = _Copies(x.dtype, x.dtype, x.ndim)
    if copies.missing:
        return copies.missing
    axis = None if op.axis is None else op.axis % x.ndim
    scan = Scan(op.mode, x.dtype)

    def shapes(inputs):
        return [(inputs[0].size,) if axis is None else inputs[0].shape]

    def plan(inputs, outputs, device):
        (layout,) = inputs
        lines = Lines.of(layout, axis)
        if lines is not None and lines.near():
            return scan.plan(lines, Array("in"), Array("out"), device)
        copy, scratch = Layout.contiguous(layout.shape, layout.itemsize), Array("scratch")
        first = copies.launches(layout, copy, Array("in"), scratch, device)
        second = scan.plan(
            Lines.of(copy, axis), scratch, Array("out"), device, (copy.size * copy.itemsize,)
        )
        return Plan((*first, *second.launches), second.scratch)

    return Implementation((*scan.kernels, *copies.loop.kernels), shapes, plan)


# --- rows of matrices -----------------------------------------------------------------------------


def _row_dtype(node, labels=None):
    """Return (dtype of all matrices, None), or (None, why there is no kernel)."""
    dtype = node.outputs[0].type.dtype
    if dtype not in dtypes.FLOATS:
        return None, f"kernels on rows have no {dtype}"
    others = {v.type.dtype for i, v in enumerate(node.inputs) if i != labels}
    if others != {dtype}:
        return None, f"its inputs are of {', '.join(sorted(others))} and not all of {dtype}"
    return dtype, None


def _same_shape(k):
    return lambda inputs: [inputs[k].shape]


@cuda_maker(Softmax, SoftmaxWithBias)
def softmax(node):
    dtype, reason = _row_dtype(node)
    if reason:
        return reason
    kernels = rows.softmax(dtype, len(node.inputs) == 2)

    def shapes(inputs):
        if len(inputs) == 2:
            check_bias(*inputs)
        return [inputs[0].shape]

    return Implementation(kernels.kernels, shapes, kernels.plan)


@cuda_maker(LogSoftmax)
def log_softmax(node):
    dtype, reason = _row_dtype(node)
    if reason:
        return reason
    kernels = rows.log_softmax(dtype)
    return Implementation(kernels.kernels, _same_shape(0), kernels.plan)


@cuda_maker(SoftmaxGrad)
def softmax_grad(node):
    dtype, reason = _row_dtype(node)
    if reason:
        return reason
    kernels = rows.softmax_grad(dtype)

    def shapes(inputs):
        dy, sm = inputs
        for d, (n, m) in enumerate(zip(dy.shape, sm.shape, strict=True)):
            if n not in (1, m):
                raise ValueError(f"dy has length {n} along dimension {d}, but sm has {m}")
        return [sm.shape]

    return Implementation(kernels.kernels, shapes, kernels.plan)


def _check_labels(labels, matrix, name):
    if labels.shape[0] != matrix.shape[0]:
        raise ValueError(
            f"{name} has {matrix.shape[0]} rows, but there are {labels.shape[0]} labels"
        )


def _bad_label(labels, matrix, name):
    """Return the function that makes the error for a label that names no column."""

    def wrong(position, inputs):
        return ValueError(
            f"y_i value out of bounds: label {position} is {inputs[labels][position]}, but {name} "
            f"has {inputs[matrix].shape[1]} columns, one for each class"
        )

    return wrong


@cuda_maker(CrossentropySoftmaxArgmax1HotWithBias)
def cross_entropy(node):
    dtype, reason = _row_dtype(node, labels=2)
    if reason:
        return reason
    kernels = rows.cross_entropy(dtype, node.inputs[2].type.dtype)

    def shapes(inputs):
        x, b, labels = inputs
        check_bias(x, b)
        _check_labels(labels, x, "x")
        return [labels.shape, x.shape, labels.shape]

    return Implementation(
        kernels.kernels, shapes, kernels.plan, wrong=_bad_label(2, 0, "x"), told=(2,)
    )


def _by_label(node, kernels, name):
    """Return the Implementation of (gradient by rows, matrix, labels) -> matrix."""

    def shapes(inputs):
        g, matrix, labels = inputs
        _check_labels(labels, matrix, name)
        if g.size != 1 and g.shape != labels.shape:
            raise ValueError(
                f"{'dy' if name == 'sm' else 'g_y'} has {g.size} elements, but {name} has "
                f"{matrix.shape[0]} rows"
            )
        return [matrix.shape]

    def plan(inputs, outputs, device):
        g, matrix, labels = inputs
        made = kernels.plan((matrix, g, labels), outputs, device)
        # the kernels take the matrix first
        other = {0: 1, 1: 0, 2: 2}
        return Plan(
            tuple(
                launch._replace(
                    arrays=tuple(
                        a._replace(index=other[a.index]) if a.kind == "in" else a
                        for a in launch.arrays
                    )
                )
                for launch in made.launches
            )
        )

    return Implementation(kernels.kernels, shapes, plan, wrong=_bad_label(2, 1, name), told=(2,))


@cuda_maker(CrossentropySoftmax1HotWithBiasDx)
def cross_entropy_dx(node):
    dtype, reason = _row_dtype(node, labels=2)
    if reason:
        return reason
    kernels = rows.cross_entropy_dx(dtype, node.inputs[2].type.dtype)
    return _by_label(node, kernels, "sm")


@cuda_maker(CrossentropyCategorical1HotGrad)
def one_hot_grad(node):
    dtype, reason = _row_dtype(node, labels=2)
    if reason:
        return reason
    if node.inputs[0].type.ndim > 1:
        return "its gradient is no vector"
    kernels = rows.one_hot_grad(dtype, node.inputs[2].type.dtype)
    return _by_label(node, kernels, "coding_dist")


@cuda_maker(CrossentropyCategorical1Hot)
def one_hot(node):
    dtype, reason = _row_dtype(node, labels=1)
    if reason:
        return reason
    kernel = rows.one_hot(dtype, node.inputs[1].type.dtype)

    def shapes(inputs):
        _check_labels(inputs[1], inputs[0], "coding_dist")
        return [inputs[1].shape]

    def plan(inputs, outputs, device):
        return rows.one_hot_plan(kernel, inputs, device)

    return Implementation((kernel,), shapes, plan, wrong=_bad_label(1, 0, "coding_dist"), told=(1,))
