"""Parallel axes: along which parts of the results of an Apply need parts of its inputs only.

What is computed part by part along one of them has the same values as what is computed as a whole.
Along folded axes, the results of parts are joined by an operation. Tables by Op say which axes
these are. Convolutions and pooling, which divide their images themselves, are not in them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from opwise.graph.apply import Apply
from opwise.graph.op import Op
from opwise.graph.variable import Constant, Variable
from opwise.tensor.advanced_subtensor import AdvancedSubtensor1
from opwise.tensor.assertion import Assert
from opwise.tensor.blas import BatchedDot, Dot22, Dot22Scalar, Gemm, Gemv
from opwise.tensor.convert import DeepCopyOp, ViewOp
from opwise.tensor.dimshuffle import DimShuffle
from opwise.tensor.dot import Dot
from opwise.tensor.elemwise import Elemwise
from opwise.tensor.extra_ops import CumOp, SearchsortedOp
from opwise.tensor.gathered import Gathered
from opwise.tensor.join import Join
from opwise.tensor.mapreduce import MapReduce
from opwise.tensor.nnet.crossentropy import (
    CrossentropyCategorical1Hot,
    CrossentropyCategorical1HotGrad,
    CrossentropySoftmax1HotWithBiasDx,
    CrossentropySoftmaxArgmax1HotWithBias,
)
from opwise.tensor.nnet.rowsoftmax import LogSoftmax, Softmax, SoftmaxGrad, SoftmaxWithBias
from opwise.tensor.reduce import Argmax, CAReduce, FirstAlong, MaxAndArgmax
from opwise.tensor.rowwise import Rowwise
from opwise.tensor.shape import Rebroadcast
from opwise.tensor.sort import ArgSortOp, SortOp, TopKOp
from opwise.tensor.subtensor import Subtensor


class ParallelAxis(NamedTuple):
    """An axis along which an Apply can be computed part by part."""

    #: the axis of each input that is divided with it; None for an input that every part needs whole
    inputs: tuple[int | None, ...]
    #: the axis of each output
    outputs: tuple[int, ...]


class FoldedAxis(NamedTuple):
    """An axis of operands whose parts give results that an operation joins."""

    #: the axis of each input that is divided; None for an input that every part needs whole
    inputs: tuple[int | None, ...]
    #: the name of the scalar operation
    row: str


#: returns the parallel axes of an Apply
Rule = Callable[[Apply], Iterator[ParallelAxis]]
#: returns the folded ones
Folds = Callable[[Apply], Iterator[FoldedAxis]]

_RULES: dict[type[Op], Rule] = {}
_FOLDS: dict[type[Op], Folds] = {}


def _rule(*ops: type[Op]) -> Callable[[Rule], Rule]:
    """Add a function to the table of parallel axes."""

    def add(function: Rule) -> Rule:
        _RULES.update(dict.fromkeys(ops, function))
        return function

    return add


def _folds(*ops: type[Op]) -> Callable[[Folds], Folds]:
    """Add a function to the table of folded axes."""

    def add(function: Folds) -> Folds:
        _FOLDS.update(dict.fromkeys(ops, function))
        return function

    return add


def parallel_axes(node: Apply) -> list[ParallelAxis]:
    """Return the parallel axes of an Apply; none for an Op that is not in the table."""
    rule = _found(_RULES, type(node.op))
    return [] if rule is None else list(rule(node))


def folded_axes(node: Apply) -> list[FoldedAxis]:
    """Return the folded axes of an Apply; none for an Op that is not in the table."""
    rule = _found(_FOLDS, type(node.op))
    return [] if rule is None else list(rule(node))


def _found(table: dict[type[Op], Any], cls: type) -> Any:
    return table.get(cls) or next((table[base] for base in cls.__mro__ if base in table), None)


def _divided(var: Variable, axis: int) -> int | None:
    """Return an axis of an operand that may broadcast, None if it does."""
    return None if var.type.broadcastable[axis] else axis


def _long(var: Variable) -> list[int]:
    """Return the axes of a variable that may be longer than 1."""
    return [d for d, one in enumerate(var.type.broadcastable) if not one]


def _same(node: Apply, axes: list[int], inputs: int | None = None) -> Iterator[ParallelAxis]:
    """Yield axes that all operands and results share.

    inputs: how many of the inputs are operands; every part needs the others whole.
    """
    operands = node.inputs[:inputs]
    others = (None,) * (len(node.inputs) - len(operands))
    for d in axes:
        if any(not var.type.broadcastable[d] for var in operands):
            given = (*(_divided(var, d) for var in operands), *others)
            yield ParallelAxis(given, (d,) * len(node.outputs))


@_rule(Elemwise, ViewOp, DeepCopyOp)
def _elementwise(node: Apply) -> Iterator[ParallelAxis]:
    if hasattr(node.outputs[0].type, "broadcastable"):
        return _same(node, _long(node.outputs[0]))
    return iter(())


@_rule(Rebroadcast, Assert)
def _first_operand(node: Apply) -> Iterator[ParallelAxis]:
    return _same(node, _long(node.outputs[0]), inputs=1)


@_rule(DimShuffle)
def _dimshuffle(node: Apply) -> Iterator[ParallelAxis]:
    for d, axis in enumerate(node.op.new_order):
        if axis != "x" and not node.outputs[0].type.broadcastable[d]:
            yield ParallelAxis((axis,), (d,))


def _kept(x: Variable, reduced: Any) -> list[tuple[int, int]]:
    """Return (axis, its number in the result) of the axes that a reduction keeps."""
    axes = range(x.type.ndim) if reduced is None else [a % x.type.ndim for a in reduced]
    return [(d, k) for k, d in enumerate(d for d in range(x.type.ndim) if d not in axes)]


@_rule(CAReduce, MaxAndArgmax, Argmax)
def _reduction(node: Apply) -> Iterator[ParallelAxis]:
    for d, k in _kept(node.inputs[0], node.op.axis):
        if not node.inputs[0].type.broadcastable[d]:
            others = (None,) * (len(node.inputs) - 1)
            yield ParallelAxis((d, *others), (k,) * len(node.outputs))


@_rule(MapReduce)
def _map_reduce(node: Apply) -> Iterator[ParallelAxis]:
    mapped, every = node.op.parts(node)
    for d, k in _kept(mapped.outputs[0], every[0].op.axis):
        if not mapped.outputs[0].type.broadcastable[d]:
            given = tuple(_divided(var, d) for var in node.inputs)
            yield ParallelAxis(given, (k,) * len(node.outputs))


def _with_whole_tables(node: Apply, operands: tuple[int | None, ...]) -> tuple[int | None, ...]:
    """Return which axes of the inputs of a Gathered are divided with those of its loop's."""
    tables = {k for k, _ in node.op.taken}
    own = (None if k in tables else d for k, d in enumerate(operands))
    return (*own, *(0 for _ in range(node.op.n_indices)))


@_rule(Gathered)
def _gathered(node: Apply) -> Iterator[ParallelAxis]:
    for axis in parallel_axes(node.op.parts(node)[-1]):
        yield axis._replace(inputs=_with_whole_tables(node, axis.inputs))


@_rule(FirstAlong)
def _first_along(node: Apply) -> Iterator[ParallelAxis]:
    axes = [a % node.inputs[0].type.ndim for a in node.op.axes]
    return _same(node, [d for d in _long(node.inputs[0]) if d not in axes])


@_rule(Rowwise)
def _rowwise(node: Apply) -> Iterator[ParallelAxis]:
    axes = range(node.outputs[0].type.ndim - 1)
    return _same(node, [d for d in axes if all(d in _long(out) for out in node.outputs)])


@_rule(Dot22, Dot22Scalar, Dot)
def _product(node: Apply) -> Iterator[ParallelAxis]:
    x, y = node.inputs[:2]
    others = (None,) * (len(node.inputs) - 2)
    if x.type.ndim == 2 and not x.type.broadcastable[0]:
        yield ParallelAxis((0, None, *others), (0,))
    if y.type.ndim == 2 and not y.type.broadcastable[1]:
        yield ParallelAxis((None, 1, *others), (x.type.ndim - 1,))


@_rule(Gemm)
def _gemm(node: Apply) -> Iterator[ParallelAxis]:
    yield ParallelAxis((0, None, 0, None, None), (0,))
    yield ParallelAxis((1, None, None, 1, None), (1,))


@_rule(Gemv)
def _gemv(node: Apply) -> Iterator[ParallelAxis]:
    yield ParallelAxis((0, None, 0, None, None), (0,))


@_rule(BatchedDot)
def _batched_dot(node: Apply) -> Iterator[ParallelAxis]:
    if all(var.type.ndim == 3 for var in node.inputs):
        yield ParallelAxis((0, 0), (0,))
        yield ParallelAxis((1, None), (1,))
        yield ParallelAxis((None, 2), (2,))


@_rule(
    Softmax, SoftmaxGrad, LogSoftmax, CrossentropyCategorical1Hot, CrossentropyCategorical1HotGrad
)
def _rows(node: Apply) -> Iterator[ParallelAxis]:
    if all(var.type.ndim and not var.type.broadcastable[0] for var in node.inputs):
        yield ParallelAxis((0,) * len(node.inputs), (0,) * len(node.outputs))


@_rule(SoftmaxWithBias, CrossentropySoftmaxArgmax1HotWithBias)
def _rows_with_bias(node: Apply) -> Iterator[ParallelAxis]:
    x, _, *labels = node.inputs
    if not any(var.type.broadcastable[0] for var in (x, *labels)):
        yield ParallelAxis((0, None, *(0 for _ in labels)), (0,) * len(node.outputs))


@_rule(CrossentropySoftmax1HotWithBiasDx)
def _rows_of_gradient(node: Apply) -> Iterator[ParallelAxis]:
    dy, sm, labels = node.inputs
    if not (sm.type.broadcastable[0] or labels.type.broadcastable[0]):
        by_row = dy.type.ndim == 1 and not dy.type.broadcastable[0]
        # a vector of one number serves all rows: its type does not say so
        if by_row or dy.type.ndim == 0 or dy.type.broadcastable[0]:
            yield ParallelAxis((0 if by_row else None, 0, 0), (0,))


@_rule(SortOp, ArgSortOp)
def _sorted(node: Apply) -> Iterator[ParallelAxis]:
    x, axis = node.inputs
    if isinstance(axis, Constant) and x.type.ndim:
        return _same(node, [d for d in _long(x) if d != int(axis.data) % x.type.ndim], inputs=1)
    return iter(())


@_rule(TopKOp)
def _largest(node: Apply) -> Iterator[ParallelAxis]:
    x = node.inputs[0]
    return _same(node, [d for d in _long(x) if d != node.op.axis % x.type.ndim], inputs=1)


@_rule(CumOp)
def _cumulated(node: Apply) -> Iterator[ParallelAxis]:
    (x,) = node.inputs
    if node.op.axis is None:
        return iter(())
    return _same(node, [d for d in _long(x) if d != node.op.axis % x.type.ndim])


@_rule(SearchsortedOp)
def _searched(node: Apply) -> Iterator[ParallelAxis]:
    others = (None,) * (len(node.inputs) - 2)
    for d in _long(node.inputs[1]):
        yield ParallelAxis((None, d, *others), (d,))


@_rule(AdvancedSubtensor1)
def _rows_at(node: Apply) -> Iterator[ParallelAxis]:
    x, at = node.inputs
    if not at.type.broadcastable[0]:
        yield ParallelAxis((None, 0), (0,))
    for d in range(1, x.type.ndim):
        if not x.type.broadcastable[d]:
            yield ParallelAxis((d, None), (d,))


@_rule(Subtensor)
def _part(node: Apply) -> Iterator[ParallelAxis]:
    x, *indices = node.inputs
    entries = [*node.op.idx_list, *[slice(None)] * (x.type.ndim - len(node.op.idx_list))]
    k = 0
    for d, entry in enumerate(entries):
        if not isinstance(entry, slice):
            continue
        if entry == slice(None) and not x.type.broadcastable[d]:
            yield ParallelAxis((d, *(None for _ in indices)), (k,))
        k += 1


@_rule(Join)
def _joined(node: Apply) -> Iterator[ParallelAxis]:
    axis, *parts = node.inputs
    if not isinstance(axis, Constant):
        return
    (out,) = node.outputs
    for d in range(out.type.ndim):
        if d != int(axis.data) % out.type.ndim and not any(v.type.broadcastable[d] for v in parts):
            yield ParallelAxis((None, *(d for _ in parts)), (d,))


# --- folded axes ----------------------------------------------------------------------------------


@_folds(CAReduce)
def _folded(node: Apply) -> Iterator[FoldedAxis]:
    (x,) = node.inputs
    kept = {d for d, _ in _kept(x, node.op.axis)}
    if node.op.scalar_op.row is not None:
        for d in _long(x):
            if d not in kept:
                yield FoldedAxis((d,), node.op.scalar_op.row.name)


@_folds(MapReduce)
def _mapped_and_folded(node: Apply) -> Iterator[FoldedAxis]:
    mapped, every = node.op.parts(node)
    x, reduction = mapped.outputs[0], every[0].op
    kept = {d for d, _ in _kept(x, reduction.axis)}
    for d in _long(x):
        if d not in kept:
            given = tuple(_divided(var, d) for var in node.inputs)
            yield FoldedAxis(given, reduction.scalar_op.row.name)


@_folds(Gathered)
def _gathered_and_folded(node: Apply) -> Iterator[FoldedAxis]:
    for axis in folded_axes(node.op.parts(node)[-1]):
        yield axis._replace(inputs=_with_whole_tables(node, axis.inputs))


@_folds(Dot22, Dot22Scalar, Dot)
def _sum_of_products(node: Apply) -> Iterator[FoldedAxis]:
    x, y = node.inputs[:2]
    if x.type.ndim and y.type.ndim:
        others = (None,) * (len(node.inputs) - 2)
        yield FoldedAxis((x.type.ndim - 1, 0, *others), "add")
