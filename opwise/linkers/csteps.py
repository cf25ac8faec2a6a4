"""The lowerings of opwise's Ops to C steps; the kinds of steps are in csupport/kinds.h."""

from __future__ import annotations

import itertools
import math
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from enum import IntEnum
from typing import Any, NamedTuple

import numpy as np

from opwise.graph.apply import Apply
from opwise.graph.variable import Constant, Variable
from opwise.linkers import opwise_c
from opwise.linkers.kernels import Kernels, Loop
from opwise.linkers.lowering import (
    MAX_DIMENSIONS,
    AnyStep,
    ChoiceStep,
    CStep,
    DrawStep,
    c_lowering,
    plain,
)
from opwise.linkers.userops import reduction
from opwise.scalar import csource, dtypes, loops
from opwise.scalar.composite import Composite
from opwise.scalar.program import Instruction, Program
from opwise.scalar.take import take
from opwise.tensor.advanced_subtensor import (
    AdvancedBooleanIncSubtensor,
    AdvancedBooleanSubtensor,
    AdvancedIncSubtensor,
    AdvancedIncSubtensor1,
    AdvancedSubtensor,
    AdvancedSubtensor1,
)
from opwise.tensor.assertion import Assert
from opwise.tensor.blas import BatchedDot, Dot22, Dot22Scalar, Gemm, Gemv, Ger
from opwise.tensor.convert import DeepCopyOp, ScalarFromTensor, TensorFromScalar, ViewOp
from opwise.tensor.creation import Alloc, AllocEmpty, ARange, Eye, Tri
from opwise.tensor.diagonal import AllocDiag, ExtractDiag, FillDiagonal, FillDiagonalOffset
from opwise.tensor.dimshuffle import DimShuffle
from opwise.tensor.dot import Dot
from opwise.tensor.elemwise import Elemwise
from opwise.tensor.extra_ops import CumOp, RepeatOp, SearchsortedOp
from opwise.tensor.gathered import Gathered
from opwise.tensor.ifelse import IfElse
from opwise.tensor.join import Join, MakeVector, Split
from opwise.tensor.linalg.eigen import Eigh, Eigvalsh
from opwise.tensor.linalg.factor import (
    SVD,
    Cholesky,
    LUFactor,
    PivotPermutation,
    QRFull,
    QRIncomplete,
)
from opwise.tensor.linalg.inverse import Det, MatrixInverse, SLogDet
from opwise.tensor.linalg.operands import has_scipy
from opwise.tensor.linalg.systems import Solve
from opwise.tensor.mapreduce import MapReduce
from opwise.tensor.nnet.crossentropy import (
    CrossentropyCategorical1Hot,
    CrossentropyCategorical1HotGrad,
    CrossentropySoftmax1HotWithBiasDx,
    CrossentropySoftmaxArgmax1HotWithBias,
)
from opwise.tensor.nnet.ctc import ConnectionistTemporalClassification
from opwise.tensor.nnet.rowsoftmax import LogSoftmax, Softmax, SoftmaxGrad, SoftmaxWithBias
from opwise.tensor.random.generator import GeneratorDraw
from opwise.tensor.random.mrg import M1, mrg_uniform
from opwise.tensor.random.multinomial import ChoiceFromUniform, MultinomialFromUniform
from opwise.tensor.random.raw_random import RandomFunction
from opwise.tensor.reduce import Argmax, CAReduce, FirstAlong, MaxAndArgmax
from opwise.tensor.selection import Choose, Nonzero
from opwise.tensor.shape import Rebroadcast, Reshape, Shape, Shape_i, SpecifyShape
from opwise.tensor.slices import NoneTypeT, SliceConstant
from opwise.tensor.sort import ArgSortOp, SortOp, TopKOp
from opwise.tensor.subtensor import IncSubtensor, Subtensor
from opwise.tensor.type import TensorType


def broadcast_mask(pattern: Sequence[bool]) -> int:
    """Return the bits of the dimensions that broadcast."""
    return sum(1 << d for d, b in enumerate(pattern) if b)


class IndexBounds(NamedTuple):
    """What is known of a vector of indices: its bounds, if it is a constant."""

    known: bool
    least: int = 0
    most: int = -1


_ANY_INDEX = IndexBounds(False)


def index_bounds(index: Variable) -> IndexBounds:
    """Return what is known of a vector of indices."""
    if not isinstance(index, Constant) or index.type.ndim != 1:
        return _ANY_INDEX
    at = np.asarray(index.data).astype(np.int64)
    return IndexBounds(True, int(at.min(initial=0)), int(at.max(initial=-1)))


class TakenOperand(NamedTuple):
    """An operand that a loop takes from a vector, its table: see csupport/taken.h."""

    #: the input that is the table
    table: int
    #: the input that is the index
    at: int
    bounds: IndexBounds


@dataclass(frozen=True, kw_only=True)
class ElemwiseStep(CStep):
    """A loop over the elements of operands of one rank."""

    kind: str = "elemwise"
    #: about how many nanoseconds an element takes
    nanoseconds: float
    ndim: int
    #: for each output the input whose memory it takes, or -1
    in_place: tuple[int, ...]
    #: for each input the mask of its broadcastable dimensions
    masks: tuple[int, ...]
    #: mask of the inputs that may be broadcast in the loop, or -1 for a loop that takes any strides
    broadcast: int
    #: the inputs that are tables, for the kind elemwise_taken
    takes: tuple[TakenOperand, ...] = ()


@dataclass(frozen=True)
class LoopOperands:
    """The operands of an elementwise loop, and the scalar operation on them."""

    op: Any
    dtypes: list[str]
    #: which dimensions of each are broadcast
    patterns: list[tuple[bool, ...]]

    @property
    def constant(self) -> list[int]:
        """Those that are broadcast along all dimensions."""
        return [i for i, p in enumerate(self.patterns) if p and all(p)]

    @property
    def maybe_broadcast(self) -> list[int]:
        """Those that are broadcast along some: they may be along the innermost one of the loop."""
        return [i for i, p in enumerate(self.patterns) if any(p) and not all(p)]


@c_lowering(Elemwise)
def elemwise(node: Apply, kernels: Kernels) -> CStep | None:
    return _elementwise(node, _operands(node), kernels)


def _elementwise(node: Apply, given: LoopOperands, kernels: Kernels) -> ElemwiseStep | None:
    """Return the step of an elementwise Apply, whose loop has these operands."""
    loop = kernels.elemwise(
        given.op,
        given.dtypes,
        [v.type.dtype for v in node.outputs],
        given.constant,
        given.maybe_broadcast,
    )
    if loop is None:
        return None
    return ElemwiseStep(
        nanoseconds=_shared_work(loop, elementwise_ns(node, node.outputs)),
        ndim=node.outputs[0].type.ndim,
        in_place=tuple(node.op.inplace_pattern.get(k, -1) for k in range(len(node.outputs))),
        masks=tuple(map(broadcast_mask, given.patterns)),
        broadcast=loop.broadcast,
        loop=loop,
    )


def _shared_work(loop: Loop, nanoseconds: float) -> float:
    """Return the time per element as it counts for threads: 0 for a loop that needs the GIL."""
    return 0.0 if loop.needs_gil else nanoseconds


def _operands(node: Apply) -> LoopOperands:
    """Return the operands of an elementwise Apply."""
    dtypes_ = [v.type.dtype for v in node.inputs]
    return LoopOperands(node.op.scalar_op, dtypes_, [v.type.broadcastable for v in node.inputs])


def elementwise_ns(node: Apply, written: Sequence[Variable] = ()) -> float:
    """Return an estimate of the nanoseconds that an elementwise Apply takes per element."""
    steps = Program.of(node.op.scalar_op, (), [node.outputs[0].type.dtype]).instructions
    moved = sum(v.type.numpy_dtype.itemsize for v in (*node.inputs, *written))
    work = sum(
        step.op.row.cost * (0.4 if step.dtype == "float32" else 1.0)
        for step in steps
        if step.op.row is not None
    )
    return max(work, moved / 30)


@dataclass(frozen=True, kw_only=True)
class DimshuffleStep(CStep):
    """A view with the dimensions in another order."""

    kind: str = "dimshuffle"
    #: for each dimension of the output that of the input, or -1 for a new one
    order: tuple[int, ...]


@c_lowering(DimShuffle)
def dimshuffle(node: Apply, kernels: Kernels) -> CStep | None:
    return DimshuffleStep(order=tuple(-1 if o == "x" else o for o in node.op.new_order))


@c_lowering(DeepCopyOp)
def deep_copy(node: Apply, kernels: Kernels) -> CStep | None:
    return CStep("deepcopy")


@c_lowering(ViewOp)
def view(node: Apply, kernels: Kernels) -> CStep | None:
    return CStep("alias")


@c_lowering(ScalarFromTensor, TensorFromScalar)
def number(node: Apply, kernels: Kernels) -> CStep | None:
    return CStep("deepcopy")


@c_lowering(IfElse, limited=False)
def choice_between_branches(node: Apply, kernels: Kernels) -> ChoiceStep | None:
    return ChoiceStep()


@dataclass(frozen=True, kw_only=True)
class RebroadcastStep(CStep):
    """A view of an array some of whose dimensions must have length 1."""

    kind: str = "rebroadcast"
    #: these dimensions
    ones: tuple[int, ...]


@c_lowering(Rebroadcast)
def rebroadcast(node: Apply, kernels: Kernels) -> CStep | None:
    pattern = node.outputs[0].type.broadcastable
    return RebroadcastStep(ones=tuple(d for d, b in enumerate(pattern) if b))


@c_lowering(Reshape)
def reshape(node: Apply, kernels: Kernels) -> CStep | None:
    return CStep("reshape") if node.inputs[1].type.dtype.startswith("int") else None


@c_lowering(SpecifyShape)
def specify_shape(node: Apply, kernels: Kernels) -> CStep | None:
    return CStep("specify_shape") if node.inputs[1].type.dtype.startswith("int") else None


@dataclass(frozen=True, kw_only=True)
class AxisStep(CStep):
    """Steps along one axis: a length, joins, parts, repeated elements."""

    axis: int


@c_lowering(Shape_i)
def shape_i(node: Apply, kernels: Kernels) -> CStep | None:
    return AxisStep("shape_i", axis=node.op.i)


@c_lowering(Shape)
def shape_(node: Apply, kernels: Kernels) -> CStep | None:
    return CStep("shape")


@c_lowering(MakeVector)
def make_vector(node: Apply, kernels: Kernels) -> CStep | None:
    dtype = node.outputs[0].type.dtype
    return CStep("make_vector") if all(v.type.dtype == dtype for v in node.inputs) else None


def _integers(variables: Iterable[Variable]) -> bool:
    return all(v.type.dtype.startswith(("int", "uint")) for v in variables)


@dataclass(frozen=True, kw_only=True)
class AllocStep(CStep):
    """An array of a shape that the inputs give."""

    #: how many inputs before the lengths are none
    values: int
    #: mask of the dimensions that are broadcastable in the output
    ones: int


@c_lowering(Alloc)
def alloc(node: Apply, kernels: Kernels) -> CStep | None:
    if node.inputs[0].type.dtype != node.outputs[0].type.dtype or not _integers(node.inputs[1:]):
        return None
    return AllocStep("alloc", values=1, ones=broadcast_mask(node.outputs[0].type.broadcastable))


@c_lowering(AllocEmpty)
def alloc_empty(node: Apply, kernels: Kernels) -> CStep | None:
    if not _integers(node.inputs):
        return None
    ones = broadcast_mask(node.outputs[0].type.broadcastable)
    return AllocStep("alloc_empty", values=0, ones=ones)


class IndexSource(IntEnum):
    """What an index is if no input gives it: nothing, or a number that the step has."""

    NONE = -1
    NUMBER = -2


class IndexPart(NamedTuple):
    """An index, or the start, stop or step of a slice."""

    #: the input that gives it, counted from the first one that is an index; or an IndexSource
    source: int
    number: int = 0


_NO_PART = IndexPart(IndexSource.NONE)


class IndexEntry(NamedTuple):
    """What selects of one dimension: an index, which is the start, or a slice."""

    is_slice: bool
    start: IndexPart
    stop: IndexPart = _NO_PART
    step: IndexPart = _NO_PART


@dataclass(frozen=True, kw_only=True)
class SubtensorStep(CStep):
    """A view of the part that indices and slices select. in: x, indices."""

    kind: str = "subtensor"
    entries: tuple[IndexEntry, ...]


@c_lowering(Subtensor)
def subtensor_(node: Apply, kernels: Kernels) -> CStep | None:
    if not _integers(node.inputs[1:]):
        return None
    return SubtensorStep(entries=index_entries(node.op.idx_list))


def index_entries(idx_list: Sequence[Any]) -> tuple[IndexEntry, ...]:
    """Return what an index selects, by dimension.

    Each part that is a type stands for the next input that is an index.
    """
    inputs = itertools.count()

    def part(given: Any) -> IndexPart:
        if given is None:
            return _NO_PART
        if isinstance(given, int):
            return IndexPart(IndexSource.NUMBER, given)
        return IndexPart(next(inputs))

    return tuple(
        IndexEntry(True, part(entry.start), part(entry.stop), part(entry.step))
        if isinstance(entry, slice)
        else IndexEntry(False, part(entry))
        for entry in idx_list
    )


_BLAS_DTYPES = ("float32", "float64")


def _blas(node: Apply) -> bool:
    """Return whether all operands and the result have the same dtype, one of BLAS's."""
    return all(v.type.dtype == node.outputs[0].type.dtype for v in node.inputs) and (
        node.outputs[0].type.dtype in _BLAS_DTYPES
    )


def _one_dtype(node: Apply) -> bool:
    """Return whether all operands and the result have the same dtype."""
    return all(v.type.dtype == node.outputs[0].type.dtype for v in node.inputs)


@c_lowering(Dot22)
def dot22(node: Apply, kernels: Kernels) -> CStep | None:
    if not _one_dtype(node):
        return None
    return CStep("dot22" if _blas(node) else "any_dot")


@c_lowering(Dot22Scalar)
def dot22_scalar(node: Apply, kernels: Kernels) -> CStep | None:
    return CStep("dot22") if _blas(node) else None


@dataclass(frozen=True, kw_only=True)
class UpdateStep(CStep):
    """Steps that add to their first operand: products, and parts of arrays."""

    #: whether its memory is that of the result
    overwrite: bool


@c_lowering(Gemm)
def gemm(node: Apply, kernels: Kernels) -> CStep | None:
    return UpdateStep("gemm", overwrite=node.op.inplace) if _blas(node) else None


@c_lowering(Gemv)
def gemv(node: Apply, kernels: Kernels) -> CStep | None:
    return UpdateStep("gemv", overwrite=node.op.inplace) if _blas(node) else None


@c_lowering(Ger)
def ger(node: Apply, kernels: Kernels) -> CStep | None:
    return UpdateStep("ger", overwrite=node.op.destructive) if _blas(node) else None


@c_lowering(BatchedDot)
def batched_dot(node: Apply, kernels: Kernels) -> CStep | None:
    if not _one_dtype(node) or any(v.type.ndim != 3 for v in node.inputs):
        return None
    return CStep("batched_dot" if _blas(node) else "any_batched_dot")


@c_lowering(Dot)
def dot(node: Apply, kernels: Kernels) -> CStep | None:
    if not _one_dtype(node):
        return None
    return CStep("dot" if _blas(node) else "any_dot")


def _axis_mask(axis: Sequence[int] | None, ndim: int) -> int:
    return (1 << ndim) - 1 if axis is None else sum(1 << a for a in axis)


@dataclass(frozen=True, kw_only=True)
class ReduceStep(CStep):
    """Reductions of what a loop over operands of one rank gives, or of one operand without a loop.

    Each output has accumulators of its own.
    """

    kind: str = "reduce"
    #: about how many nanoseconds an element takes
    nanoseconds: float
    #: which of the built-in reductions this is, and which one joins its accumulators
    reducer: int
    joiner: int
    #: mask of the reduced dimensions
    axes: int
    #: whether accumulators are copied to the results, which may be narrower
    apart: bool
    #: whether what the operation starts with is its result where there is no element
    empty: bool
    ndim: int
    #: for each operand the mask of its broadcastable dimensions
    masks: tuple[int, ...] = (0,)
    #: mask of the operands that may be broadcast in the loop
    broadcast: int = 0
    #: the operands that are tables, for the kind reduce_taken
    takes: tuple[TakenOperand, ...] = ()


@c_lowering(CAReduce)
def ca_reduce(node: Apply, kernels: Kernels) -> AnyStep | None:
    x, out = node.inputs[0], node.outputs[0]
    if node.op.scalar_op.row is None:
        return reduction.lower(node, kernels, accumulator(node.op, out.type.dtype))
    return _reduction(node.op, x, out, x.type.numpy_dtype.itemsize / 20)


@dataclass(frozen=True, kw_only=True)
class FirstAlongStep(CStep):
    """The first element along axes, which keep the length 1; 0 without any."""

    kind: str = "first_along"
    #: mask of the axes
    axes: int


@c_lowering(FirstAlong)
def first_along(node: Apply, kernels: Kernels) -> CStep | None:
    return FirstAlongStep(axes=_axis_mask(node.op.axes, node.inputs[0].type.ndim))


@c_lowering(MapReduce)
def map_reduce(node: Apply, kernels: Kernels) -> CStep | None:
    return _mapped_reduction(node, _operands(node), kernels)


def _mapped_reduction(node: Apply, given: LoopOperands, kernels: Kernels) -> ReduceStep | None:
    """Return the step of a MapReduce, whose loop has these operands."""
    mapped, every = node.op.parts(node)
    reduced = every[0]  # the others differ in the dtypes of their results only
    step = _reduction(
        reduced.op, reduced.inputs[0], reduced.outputs[0], elementwise_ns(node), len(every) > 1
    )
    if step is None:
        return None
    loop = kernels.reduction(
        reduced.op.scalar_op.row,
        loops.held_in(accumulator(reduced.op, reduced.outputs[0].type.dtype)),
        reduced.outputs[0].type.ndim == 0,
        _interpreted(reduced, step, len(every)),
        given.op,
        given.dtypes,
        [v.type.dtype for v in mapped.outputs],
        given.constant,
        given.maybe_broadcast,
    )
    if loop is None:
        return None
    return replace(
        step,
        nanoseconds=_shared_work(loop, step.nanoseconds),
        masks=tuple(map(broadcast_mask, given.patterns)),
        broadcast=loop.broadcast,
        loop=loop,
    )


@c_lowering(Gathered)
def gathered(node: Apply, kernels: Kernels) -> CStep | None:
    loop = node.op.parts(node)[-1]
    given = _with_tables(node, loop)
    step: ElemwiseStep | ReduceStep | None
    if isinstance(loop.op, Elemwise):
        step = _elementwise(loop, given, kernels)
    else:
        step = _mapped_reduction(loop, given, kernels)
    if step is None:
        return None
    n = len(loop.inputs)
    takes = tuple(
        TakenOperand(k, n + i, index_bounds(node.inputs[n + i])) for k, i in node.op.taken
    )
    return replace(step, kind=f"{step.kind}_taken", takes=takes)


def _with_tables(node: Apply, loop: Apply) -> LoopOperands:
    """Return the operands of a loop that takes some from tables: its own, then the indices."""
    n, taken = len(loop.inputs), node.op.taken
    of_loop = _operands(loop)
    indices = node.inputs[n:]
    given = [*of_loop.dtypes, *(v.type.dtype for v in indices)]
    of_elements = Program.of(of_loop.op, of_loop.dtypes, [v.type.dtype for v in loop.outputs])
    program = [Instruction(take, (k, n + i), of_loop.dtypes[k]) for k, i in taken]
    place = {k: len(given) + j for j, (k, _) in enumerate(taken)}
    moved = len(indices) + len(taken)

    def slot(s: int) -> int:
        return s + moved if s >= n else place.get(s, s)

    program += [one._replace(args=tuple(map(slot, one.args))) for one in of_elements.instructions]
    op = Composite.from_program(given, program, [slot(s) for s in of_elements.outs])
    patterns = [(True,) if k in place else p for k, p in enumerate(of_loop.patterns)]
    return LoopOperands(op, given, [*patterns, *(v.type.broadcastable for v in indices)])


def accumulator(op: CAReduce, out_dtype: str) -> str:
    """Return the dtype that a reduction accumulates in."""
    return str(getattr(op, "acc_dtype", None) or out_dtype)


def _reduction(
    op: CAReduce, x: Variable, out: Variable, nanoseconds: float, apart: bool = False
) -> ReduceStep | None:
    """Return a step that reduces one operand ``x`` to ``out``.

    nanoseconds: of an element. apart: whether the accumulators are copied to the results.
    """
    acc = loops.held_in(accumulator(op, out.type.dtype))
    if not csource.has_c(acc) or not csource.has_c(x.type.dtype):
        return None
    narrow = (acc, out.type.dtype) in loops.NARROWED
    index = _reducer(op.scalar_op.row, x.type.dtype, acc)
    if index is None or (acc != out.type.dtype and not narrow):
        return None
    join = _reducer(op.scalar_op.row, acc, acc)
    if join is None:
        return None
    return ReduceStep(
        nanoseconds=nanoseconds,
        reducer=index,
        joiner=join,
        axes=_axis_mask(op.axis, x.type.ndim),
        apart=narrow or apart,
        empty=op.of_nothing is not None,
        ndim=x.type.ndim,
    )


def _interpreted(reduced: Apply, step: ReduceStep, n_acc: int) -> tuple[int, int, int]:
    """Return the built-in reductions with which the interpreter fills n_acc accumulators.

    They are those of results side by side, of a run, and of accumulators. The sums of a run are in
    the order of compiled loops if there is a reduction for n_acc accumulators.
    """
    index, join = step.reducer, step.joiner
    acc = loops.held_in(accumulator(reduced.op, reduced.outputs[0].type.dtype))
    kind, element = f"_{loops.lane_sets(n_acc)}", reduced.inputs[0].type.dtype
    run = _reducer(reduced.op.scalar_op.row, element, acc, kind) if n_acc > 1 else None
    return index, index if run is None else run, join


def _reducer(row: Any, element: str, acc: str, kind: str = "") -> int | None:
    """Return the index of a reduction among the built-in ones, or None."""
    name = f"{row.name}_{csource.short(element)}_{csource.short(acc)}{kind}"
    return opwise_c.REDUCERS.get(name)


@dataclass(frozen=True, kw_only=True)
class ArgmaxStep(CStep):
    """The largest elements and their positions, or only these. out: [maximum,] position."""

    kind: str = "argmax"
    #: which of the functions of ow_argmaxers compares
    row: int
    #: mask of the reduced dimensions
    axes: int


@c_lowering(MaxAndArgmax, Argmax)
def argmax(node: Apply, kernels: Kernels) -> CStep | None:
    x = node.inputs[0]
    index = opwise_c.ARGMAXERS.get(csource.short(x.type.dtype))
    if index is None or node.outputs[-1].type.dtype != "int64":
        return None
    return ArgmaxStep(row=index, axes=_axis_mask(node.op.axis, x.type.ndim))


def _adder(node: Apply) -> int | None:
    """Return the index of the adder of y to x, -1 to set x to y; None if there is none in C."""
    x, y = node.inputs[:2]
    if x.type.dtype != y.type.dtype:
        return None
    if node.op.set_instead_of_inc:
        return -1
    return opwise_c.ADDERS.get(csource.short(x.type.dtype))


@dataclass(frozen=True, kw_only=True)
class IncSubtensorStep(CStep):
    """x with a part changed, which indices and slices select. in: x, y, indices."""

    kind: str = "inc_subtensor"
    #: whether x is overwritten
    overwrite: bool
    #: which of ow_adders adds y to the part; -1 to set it
    adder: int
    entries: tuple[IndexEntry, ...]


@c_lowering(IncSubtensor)
def inc_subtensor(node: Apply, kernels: Kernels) -> CStep | None:
    adder = _adder(node)
    if adder is None or not _integers(node.inputs[2:]):
        return None
    entries = index_entries(node.op.idx_list)
    return IncSubtensorStep(overwrite=node.op.inplace, adder=adder, entries=entries)


@c_lowering(AdvancedSubtensor1)
def take_rows(node: Apply, kernels: Kernels) -> CStep | None:
    return CStep("take_parts") if _integers(node.inputs[1:]) else None


@dataclass(frozen=True, kw_only=True)
class IncPartsStep(CStep):
    """x with parts changed, which vectors of indices select. in: x, y, indices."""

    kind: str = "inc_parts"
    #: whether x is overwritten
    overwrite: bool
    #: which of ow_adders adds y to the parts; -1 to set them
    adder: int
    #: of the only index
    bounds: IndexBounds = _ANY_INDEX


@c_lowering(AdvancedIncSubtensor1)
def inc_rows(node: Apply, kernels: Kernels) -> CStep | None:
    adder = _adder(node)
    if adder is None or not _integers(node.inputs[2:]):
        return None
    bounds = index_bounds(node.inputs[2])
    return IncPartsStep(overwrite=node.op.inplace, adder=adder, bounds=bounds)


def _one_part_each(indices: Sequence[Variable]) -> bool:
    """Return whether indices are vectors and numbers that select a row of parts together."""
    return _integers(indices) and max(i.type.ndim for i in indices) == 1


class Pick(IntEnum):
    """What an entry of an index by arrays and masks is; NEW is a dimension of length 1."""

    NEW = 0
    SLICE = 1
    ARRAY = 2
    MASK = 3


#: no start, stop or step of a slice: OW_PICK_NONE
_PICK_NONE = -(1 << 63)


class PickEntry(NamedTuple):
    """What selects of one dimension, or of those of a mask."""

    kind: Pick
    #: the input that is the array or mask, counted from the first one that is an index
    input: int = 0
    #: of a slice
    start: int = _PICK_NONE
    stop: int = _PICK_NONE
    step: int = _PICK_NONE


@dataclass(frozen=True, kw_only=True)
class PickStep(CStep):
    """Parts of an array that arrays, masks and slices select together. in: x, indices."""

    kind: str = "pick"
    entries: tuple[PickEntry, ...]


@dataclass(frozen=True, kw_only=True)
class PutPickedStep(CStep):
    """x with parts changed, which arrays, masks and slices select together. in: x, y, indices."""

    kind: str = "put_picked"
    #: whether x is overwritten
    overwrite: bool
    #: which of ow_adders adds y to the parts; -1 to set them
    adder: int
    entries: tuple[PickEntry, ...]


@c_lowering(AdvancedSubtensor, AdvancedBooleanSubtensor, any_type=True)
def take_parts(node: Apply, kernels: Kernels) -> CStep | None:
    x, *indices = node.inputs
    entries = _pick_entries(x, node.outputs[0], indices)
    if entries is None:
        return None
    if all(isinstance(i.type, TensorType) for i in indices) and _one_part_each(indices):
        return CStep("take_parts")
    return PickStep(entries=entries)


@c_lowering(AdvancedIncSubtensor, AdvancedBooleanIncSubtensor, any_type=True)
def inc_parts(node: Apply, kernels: Kernels) -> CStep | None:
    x, y, *indices = node.inputs
    adder, inplace = _adder(node), node.op.inplace
    selected = node.op.getter.make_node(x, *indices).outputs[0]
    entries = _pick_entries(x, selected, indices)
    if adder is None or entries is None or y.type.ndim > selected.type.ndim:
        return None  # numpy drops dimensions of length 1 from the front
    if all(isinstance(i.type, TensorType) for i in indices) and _one_part_each(indices):
        return IncPartsStep(overwrite=inplace, adder=adder)
    return PutPickedStep(overwrite=inplace, adder=adder, entries=entries)


def _pick_entries(
    x: Variable, selected: Variable, indices: Sequence[Any]
) -> tuple[PickEntry, ...] | None:
    """Return what an index by arrays, masks, slices and None selects; None if C cannot do it."""
    entries: list[PickEntry] = []
    arrays = 0
    if max(x.type.ndim, selected.type.ndim, len(indices)) > MAX_DIMENSIONS:
        return None
    for k, index in enumerate(indices):
        if isinstance(index.type, NoneTypeT):
            entries.append(PickEntry(Pick.NEW))
        elif isinstance(index, SliceConstant):
            parts = (index.data.start, index.data.stop, index.data.step)
            if any(p is not None and abs(p) > 1 << 62 for p in parts) or parts[2] == 0:
                return None
            entries.append(
                PickEntry(Pick.SLICE, 0, *(_PICK_NONE if p is None else int(p) for p in parts))
            )
        elif not isinstance(index.type, TensorType) or index.type.ndim > MAX_DIMENSIONS:
            return None
        elif index.type.dtype == "bool":
            if index.type.ndim == 0:
                return None
            entries.append(PickEntry(Pick.MASK, k))
            arrays += 1
        else:
            entries.append(PickEntry(Pick.ARRAY, k))
            arrays += 1
    return tuple(entries) if arrays else None


@c_lowering(Join)
def join(node: Apply, kernels: Kernels) -> CStep | None:
    axis, *tensors = node.inputs
    dtype = node.outputs[0].type.dtype
    if not isinstance(axis, Constant) or node.op.view != -1:
        return None
    if any(x.type.dtype != dtype for x in tensors):
        return None
    return AxisStep("join", axis=int(axis.data) % tensors[0].type.ndim)


@c_lowering(ARange)
def arange(node: Apply, kernels: Kernels) -> CStep | None:
    if node.outputs[0].type.dtype != "int64" or not _integers(node.inputs):
        return None
    if any(x.type.dtype == "uint64" for x in node.inputs):
        return None  # whose numbers may be larger
    return CStep("arange")


def _single_axis(axis: int | None, x: Variable) -> int | None:
    """Return an axis, counted from the first; None, all of them, only of a vector."""
    if axis is None:
        return 0 if x.type.ndim == 1 else None
    return axis % x.type.ndim


@dataclass(frozen=True, kw_only=True)
class CumulateStep(CStep):
    """Cumulative sums or products."""

    kind: str = "cumulate"
    #: which of ow_adders has the dtype
    adder: int
    #: whether factors and not terms are cumulated
    factors: bool
    axis: int


@c_lowering(CumOp)
def cumulate(node: Apply, kernels: Kernels) -> CStep | None:
    x = node.inputs[0]
    axis = _single_axis(node.op.axis, x)
    adder = opwise_c.ADDERS.get(csource.short(x.type.dtype))
    if axis is None or adder is None:
        return None
    return CumulateStep(adder=adder, factors=node.op.mode == "mul", axis=axis)


@c_lowering(RepeatOp)
def repeat(node: Apply, kernels: Kernels) -> CStep | None:
    axis = _single_axis(node.op.axis, node.inputs[0])
    return None if axis is None else AxisStep("repeat", axis=axis)


@c_lowering(Split)
def split(node: Apply, kernels: Kernels) -> CStep | None:
    x, axis, lengths = node.inputs
    if not isinstance(axis, Constant) or not -x.type.ndim <= int(axis.data) < x.type.ndim:
        return None
    if not _integers([lengths]):
        return None
    return AxisStep("split", axis=int(axis.data) % x.type.ndim)


@c_lowering(Assert)
def assert_(node: Apply, kernels: Kernels) -> CStep | None:
    return CStep("assert") if plain(*node.inputs[1:]) else None


# --- sorting and selection ----------------------------------------------------------------------


def _sortable(*variables: Variable) -> bool:
    """Return whether C compares the elements of variables: complex numbers are left to numpy."""
    return all(v.type.dtype not in dtypes.COMPLEX for v in variables)


@dataclass(frozen=True, kw_only=True)
class SortStep(CStep):
    """Sorted elements, or the positions that sort them. in: x, axis (not read)."""

    kind: str = "sort"
    axis: int
    #: whether positions are wanted, and not elements
    positions: bool


@c_lowering(SortOp, ArgSortOp)
def sort(node: Apply, kernels: Kernels) -> CStep | None:
    x, axis = node.inputs
    if not _sortable(x) or not isinstance(axis, Constant) or axis.data != int(axis.data):
        return None
    if not -x.type.ndim <= int(axis.data) < x.type.ndim:
        return None
    positions = isinstance(node.op, ArgSortOp)
    return SortStep(axis=int(axis.data) % x.type.ndim, positions=positions)


@dataclass(frozen=True, kw_only=True)
class SelectStep(CStep):
    """The largest elements, their positions, or both. in: x, how many; negative: the smallest."""

    kind: str = "select"
    axis: int
    #: whether they are sorted
    sorted: bool
    #: whether elements are wanted, and whether positions are
    values: bool
    positions: bool


@c_lowering(TopKOp)
def largest(node: Apply, kernels: Kernels) -> CStep | None:
    (x, k), op = node.inputs, node.op
    if not _sortable(x) or not plain(k):
        return None
    return SelectStep(
        axis=op.axis % x.type.ndim,
        sorted=op.sorted,
        values=op.return_values,
        positions=op.return_indices,
    )


@c_lowering(Nonzero)
def nonzero(node: Apply, kernels: Kernels) -> CStep | None:
    return CStep("nonzero")


class Outside(IntEnum):
    """What numbers of choices that are out of range are: an error, or others."""

    RAISE = 0
    WRAP = 1
    CLIP = 2


@dataclass(frozen=True, kw_only=True)
class ChooseStep(CStep):
    """Elements of one of several choices each. in: numbers, choices of the output's dtype."""

    kind: str = "choose"
    outside: Outside


@c_lowering(Choose)
def choose(node: Apply, kernels: Kernels) -> CStep | None:
    numbers, *choices = node.inputs
    dtype = node.outputs[0].type.dtype
    if len(choices) == 1 or numbers.type.dtype == "uint64":
        return None
    if any(c.type.dtype != dtype for c in choices):
        return None
    return ChooseStep(outside=Outside[node.op.mode.upper()])


@dataclass(frozen=True, kw_only=True)
class SearchStep(CStep):
    """Where elements belong in a sorted vector. in: the vector, elements, of one dtype."""

    kind: str = "search"
    #: whether they come after equal ones
    after: bool


@c_lowering(SearchsortedOp)
def search(node: Apply, kernels: Kernels) -> CStep | None:
    x, v, *sorter = node.inputs
    if sorter or x.type.dtype != v.type.dtype or not _sortable(x):
        return None
    return SearchStep(after=node.op.side == "right")


# --- diagonals ----------------------------------------------------------------------------------


class Diagonals(NamedTuple):
    """Which diagonals of the matrices along two axes; an offset above 0 is above the main one."""

    offset: int
    first_axis: int
    second_axis: int


@dataclass(frozen=True, kw_only=True)
class ExtractDiagStep(CStep):
    """Diagonals of matrices."""

    kind: str = "extract_diag"
    diagonals: Diagonals
    #: whether the output is a view
    view: bool


@dataclass(frozen=True, kw_only=True)
class AllocDiagStep(CStep):
    """Matrices with elements on a diagonal. in: these elements."""

    kind: str = "alloc_diag"
    diagonals: Diagonals


def _diagonals(op: ExtractDiag | AllocDiag) -> Diagonals | None:
    """Return which diagonals an Op is about; None if no matrix has such an offset."""
    return Diagonals(op.offset, op.axis1, op.axis2) if abs(op.offset) < 1 << 62 else None


@c_lowering(ExtractDiag)
def extract_diag(node: Apply, kernels: Kernels) -> CStep | None:
    diagonals = _diagonals(node.op)
    return diagonals and ExtractDiagStep(diagonals=diagonals, view=node.op.view)


@c_lowering(AllocDiag)
def alloc_diag(node: Apply, kernels: Kernels) -> CStep | None:
    diagonals = _diagonals(node.op)
    return diagonals and AllocDiagStep(diagonals=diagonals)


@c_lowering(FillDiagonal, FillDiagonalOffset)
def fill_diagonal(node: Apply, kernels: Kernels) -> CStep | None:
    return CStep("fill_diagonal")


@dataclass(frozen=True, kw_only=True)
class DiagonalMatrixStep(CStep):
    """A matrix of ones and zeros. in: numbers of rows and columns, diagonal."""

    kind: str = "diagonal_matrix"
    #: whether there are ones below the diagonal too
    below: bool
    #: the bytes of a one
    one: int


@c_lowering(Eye, Tri)
def diagonal_matrix(node: Apply, kernels: Kernels) -> CStep | None:
    out = node.outputs[0]
    if out.type.numpy_dtype.itemsize > 8:
        return None
    one = int.from_bytes(np.ones((), out.type.dtype).tobytes(), sys.byteorder)
    return DiagonalMatrixStep(below=isinstance(node.op, Tri), one=one)


# --- softmax and cross entropy ------------------------------------------------------------------


def _rows(node: Apply, *labels: int) -> bool:
    """Return whether inputs have the first output's dtype, but integers at positions ``labels``."""
    dtype = node.outputs[0].type.dtype
    others = [v for i, v in enumerate(node.inputs) if i not in labels]
    return (
        dtype in _BLAS_DTYPES
        and all(v.type.dtype == dtype for v in others)
        and _integers([node.inputs[i] for i in labels])
    )


@c_lowering(Softmax, SoftmaxWithBias)
def softmax(node: Apply, kernels: Kernels) -> CStep | None:
    return CStep("softmax") if _rows(node) else None


@c_lowering(LogSoftmax)
def log_softmax(node: Apply, kernels: Kernels) -> CStep | None:
    return CStep("logsoftmax") if _rows(node) else None


@c_lowering(SoftmaxGrad)
def softmax_grad(node: Apply, kernels: Kernels) -> CStep | None:
    return CStep("softmax_grad") if _rows(node) else None


@c_lowering(CrossentropySoftmaxArgmax1HotWithBias)
def cross_entropy(node: Apply, kernels: Kernels) -> CStep | None:
    return CStep("xent") if _rows(node, 2) else None


@c_lowering(CrossentropySoftmax1HotWithBiasDx)
def cross_entropy_dx(node: Apply, kernels: Kernels) -> CStep | None:
    return CStep("xent_dx") if _rows(node, 2) else None


@c_lowering(CrossentropyCategorical1Hot)
def one_hot(node: Apply, kernels: Kernels) -> CStep | None:
    return CStep("onehot") if _rows(node, 1) else None


@c_lowering(CrossentropyCategorical1HotGrad)
def one_hot_grad(node: Apply, kernels: Kernels) -> CStep | None:
    if not _rows(node, 2) or node.inputs[0].type.ndim > 1:
        return None
    return CStep("onehot_grad")


# --- random numbers -----------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class MrgUniformStep(CStep):
    """Uniform numbers of MRG31k3p. in: states, size; out: states after the draw, numbers."""

    #: whether the states are overwritten
    overwrite: bool
    #: of the numbers, if the step and not the input gives it
    shape: tuple[int, ...] = ()


@c_lowering(mrg_uniform)
def mrg_uniform_(node: Apply, kernels: Kernels) -> CStep | None:
    (rstate, size), numbers = node.inputs, node.outputs[1]
    if rstate.type.ndim != 2 or rstate.type.dtype != "int32":
        return None
    if numbers.type.dtype not in _BLAS_DTYPES:
        return None
    overwrite = node.op.inplace
    if not isinstance(size, Constant):
        return MrgUniformStep("mrg_uniform_sized", overwrite=overwrite)
    shape = tuple(map(int, size.data))
    fits = len(shape) == numbers.type.ndim and min(shape, default=0) >= 0
    if not fits or math.prod(shape) > M1:
        return None
    return MrgUniformStep("mrg_uniform", overwrite=overwrite, shape=shape)


@c_lowering(RandomFunction, any_type=True)
def draw(node: Apply, kernels: Kernels) -> DrawStep | None:
    op, (_, size, *given), numbers = node.op, node.inputs, node.outputs[1]
    method, out = op.fn, numbers.type.dtype
    if not isinstance(method, str) or op.ndim_added or numbers.type.ndim > MAX_DIMENSIONS:
        return None
    if len(given) != 2 or not _integers([size]) or not all(map(_is_parameter, given)):
        return None
    if method in ("uniform", "normal"):
        fits = out in _BLAS_DTYPES and not any(v.type.ndim for v in given)
    elif method == "binomial":
        trials, chance = given
        fits = not trials.type.ndim and _integers([trials]) and chance.type.dtype in _BLAS_DTYPES
        fits = fits and (out in _BLAS_DTYPES or _integers([numbers]))
    else:
        fits = False
    return DrawStep(method) if fits else None


@c_lowering(GeneratorDraw, any_type=True)
def draw_of_generator(node: Apply, kernels: Kernels) -> DrawStep | None:
    op, numbers = node.op, node.outputs[1]
    given = node.inputs[1 + op.sized :]
    if op.distribution is None or not all(map(_is_parameter, given)):
        return None
    fits = numbers.type.dtype in _BLAS_DTYPES or _integers([numbers])
    fits = fits and numbers.type.ndim <= MAX_DIMENSIONS
    fits = fits and not (op.sized and not _integers(node.inputs[1:2]))
    return DrawStep(op.distribution) if fits else None


def _is_parameter(var: Variable) -> bool:
    """Return whether C reads the numbers of a variable as parameters of a distribution."""
    return var.type.dtype in _BLAS_DTYPES or (_integers([var]) and var.type.dtype != "uint64")


def _outcomes(node: Apply) -> bool:
    pvals, unis, n = node.inputs
    return (
        all(v.type.dtype in _BLAS_DTYPES for v in (pvals, unis))
        and _integers([n])
        and (node.outputs[0].type.dtype in _BLAS_DTYPES or _integers(node.outputs))
    )


@c_lowering(MultinomialFromUniform)
def multinomial(node: Apply, kernels: Kernels) -> CStep | None:
    return CStep("multinomial") if _outcomes(node) else None


@dataclass(frozen=True, kw_only=True)
class OutcomeStep(CStep):
    """Outcomes drawn from probabilities. in: probabilities, uniform numbers, how many."""

    kind: str = "choice"
    #: whether they may be drawn again
    replace: bool


@c_lowering(ChoiceFromUniform)
def choice(node: Apply, kernels: Kernels) -> CStep | None:
    return OutcomeStep(replace=node.op.replace) if _outcomes(node) else None


# --- linear algebra -----------------------------------------------------------------------------


class Structure(IntEnum):
    """What is known of a matrix."""

    GENERAL = 0
    LOWER_TRIANGULAR = 1
    UPPER_TRIANGULAR = 2


@dataclass(frozen=True, kw_only=True)
class CholeskyStep(CStep):
    """The Cholesky factor of a matrix."""

    kind: str = "cholesky"
    #: whether it is the lower triangle
    lower: bool
    #: whether it is NaN, and no error, where the matrix is not positive definite
    nan: bool
    #: whether it takes the memory of the matrix
    overwrite: bool
    check_finite: bool


@dataclass(frozen=True, kw_only=True)
class SolveStep(CStep):
    """The solution of a linear system. in: A, b."""

    kind: str = "solve"
    #: of A
    structure: Structure
    check_finite: bool
    #: whether the solution takes the memory of b
    overwrite: bool
    #: whether the solution is NaN, and no error, where the matrix is singular
    nan: bool
    #: whether the diagonal of a triangular matrix counts as ones
    unit_diagonal: bool


@dataclass(frozen=True, kw_only=True)
class LuStep(CStep):
    """Both triangles of an LU factorization as one matrix, and its pivots."""

    kind: str = "lu"
    #: whether the triangles of a singular matrix are NaN
    nan: bool


@dataclass(frozen=True, kw_only=True)
class PermutationStep(CStep):
    """The permutation of rows that pivots make, or its inverse."""

    kind: str = "permutation"
    inverse: bool


@dataclass(frozen=True, kw_only=True)
class EighStep(CStep):
    """Eigenvalues of a symmetric matrix, and eigenvectors. out: eigenvalues[, eigenvectors]."""

    kind: str = "eigh"
    #: whether the lower half is read
    lower: bool
    check_finite: bool


@dataclass(frozen=True, kw_only=True)
class FactorsStep(CStep):
    """Singular values and QR factors. svd: out: u, s, v; or s. qr: out: q, r; or r."""

    #: whether u and q have all columns, and v and r all rows
    full: bool


def _lapack(node: Apply) -> bool:
    """Return whether LAPACK, which comes with scipy, has the dtype of all operands and results."""
    dtype = node.outputs[0].type.dtype
    same = all(v.type.dtype == dtype for v in (*node.inputs, *node.outputs))
    return same and _has_lapack(node.outputs[0])


def _has_lapack(x: Variable) -> bool:
    """Return whether LAPACK has the dtype of a matrix."""
    return x.type.dtype in _BLAS_DTYPES and has_scipy()


@c_lowering(Cholesky)
def cholesky_(node: Apply, kernels: Kernels) -> CStep | None:
    op = node.op
    if not _lapack(node):
        return None
    return CholeskyStep(
        lower=op.lower, nan=op.on_error == "nan", overwrite=op.destructive,
        check_finite=op.check_finite,
    )  # fmt: skip


@c_lowering(Solve)
def solve_(node: Apply, kernels: Kernels) -> CStep | None:
    op = node.op
    if not _lapack(node):
        return None
    structure = Structure.__members__.get(op.A_structure.upper(), Structure.GENERAL)
    return SolveStep(
        structure=structure, check_finite=op.check_finite, overwrite=op.inplace,
        nan=op.on_error == "nan", unit_diagonal=op.unit_diagonal,
    )  # fmt: skip


@c_lowering(MatrixInverse)
def inverse(node: Apply, kernels: Kernels) -> CStep | None:
    return CStep("inverse") if _lapack(node) else None


@c_lowering(Det)
def determinant(node: Apply, kernels: Kernels) -> CStep | None:
    return CStep("det") if _lapack(node) else None


@c_lowering(SLogDet)
def logarithm_of_determinant(node: Apply, kernels: Kernels) -> CStep | None:
    return CStep("slogdet") if _lapack(node) else None


@c_lowering(LUFactor)
def lu_factor_(node: Apply, kernels: Kernels) -> CStep | None:
    return LuStep(nan=node.op.on_error == "nan") if _has_lapack(node.inputs[0]) else None


@c_lowering(PivotPermutation)
def permutation(node: Apply, kernels: Kernels) -> CStep | None:
    return PermutationStep(inverse=node.op.inverse)


@c_lowering(Eigh)
def eigh_(node: Apply, kernels: Kernels) -> CStep | None:
    return EighStep(lower=node.op.UPLO == "L", check_finite=False) if _lapack(node) else None


@c_lowering(Eigvalsh)
def eigvalsh_(node: Apply, kernels: Kernels) -> CStep | None:
    if not _lapack(node) or len(node.inputs) > 1:
        return None
    return EighStep(lower=node.op.lower, check_finite=True)


@c_lowering(SVD)
def svd_(node: Apply, kernels: Kernels) -> CStep | None:
    return FactorsStep("svd", full=node.op.full_matrices) if _lapack(node) else None


@c_lowering(QRFull, QRIncomplete)
def qr_(node: Apply, kernels: Kernels) -> CStep | None:
    if not _lapack(node) or node.op.mode == "raw":
        return None
    return FactorsStep("qr", full=node.op.mode == "complete")


@c_lowering(ConnectionistTemporalClassification)
def ctc(node: Apply, kernels: Kernels) -> CStep | None:
    return CStep("ctc") if _rows(node, 1, 2) else None
