"""Batching: what a step computes, computed for all steps at once outside the loop.

A value that differs between steps is an array with a row for each step; others are as they are. A
table by Op says how an Apply of a step becomes Applys over all rows. Ops that are not listed stay
in their loop.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from copy import copy
from dataclasses import dataclass
from typing import Any, TypeAlias

from opwise.errors import NotScalarConstantError
from opwise.graph.apply import Apply
from opwise.graph.op import Op
from opwise.graph.traversal import io_toposort
from opwise.graph.variable import Constant, Var
from opwise.tensor import alloc, arange, patternbroadcast
from opwise.tensor.advanced_subtensor import AdvancedSubtensor1
from opwise.tensor.blas import batched_dot
from opwise.tensor.convert import ScalarFromTensor, TensorFromScalar, ViewOp
from opwise.tensor.creation import Alloc
from opwise.tensor.dimshuffle import DimShuffle, dimshuffle
from opwise.tensor.dot import Dot
from opwise.tensor.elemwise import Elemwise
from opwise.tensor.join import Join, MakeVector, join
from opwise.tensor.knownvalues import get_scalar_constant_value, vector_entries
from opwise.tensor.nnet.crossentropy import (
    CrossentropyCategorical1Hot,
    CrossentropyCategorical1HotGrad,
)
from opwise.tensor.nnet.rowsoftmax import LogSoftmax, Softmax, SoftmaxGrad
from opwise.tensor.reduce import Argmax, CAReduce, MaxAndArgmax, axes_of
from opwise.tensor.shape import Rebroadcast, Reshape, Shape, Shape_i, reshape, shape, shape_i_op
from opwise.tensor.subtensor import IncSubtensor, Subtensor
from opwise.tensor.type import TensorType


@dataclass(frozen=True)
class Operand:
    """An input of an Apply of a step, outside the loop."""

    #: all its rows, or its value
    var: Var
    #: whether it has a row for each step
    varies: bool


#: returns the outputs of an Apply for all steps, given their number and the inputs
Batched: TypeAlias = Callable[[Apply, Var, Sequence[Operand]], list[Var]]
#: returns whether an Apply can be batched if some of its inputs vary
Fits: TypeAlias = Callable[[Apply, Sequence[bool]], bool]

_TABLE: dict[type[Op], tuple[Batched, Fits]] = {}


def batches(*ops: type[Op], when: Fits = lambda node, varies: True) -> Callable[[Batched], Batched]:
    """Add a function to the table; when: for which Applys of the Ops it can be called."""

    def add(function: Batched) -> Batched:
        _TABLE.update(dict.fromkeys(ops, (function, when)))
        return function

    return add


def _entry(op: Op) -> tuple[Batched, Fits] | None:
    found = _TABLE.get(type(op))
    return found or next((_TABLE[cls] for cls in type(op).__mro__ if cls in _TABLE), None)


def is_batchable(node: Apply, varying: Collection[Var]) -> bool:
    """Return whether an Apply can be computed for all steps at once."""
    found = _entry(node.op)
    if found is None or node.op.destroy_map:
        return False
    return found[1](node, [var in varying for var in node.inputs])


def is_product(node: Apply, varying: Collection[Var]) -> bool:
    """Return whether one product can replace those of all steps: of rows with a constant matrix."""
    if not isinstance(node.op, Dot):
        return False
    x, y = node.inputs
    if (x in varying) == (y in varying):
        return False
    rows, matrix = (x, y) if x in varying else (y, x)
    if rows is y and y.type.ndim == 2:
        return False  # the result would have to be transposed
    return matrix.type.ndim == 2 and not any(
        (*matrix.type.broadcastable, rows.type.broadcastable[-1])
    )


def is_view(node: Apply) -> bool:
    """Return whether an Apply shows its first input in another form, or asks for its shape."""
    return isinstance(
        node.op, DimShuffle | Rebroadcast | Reshape | Subtensor | ViewOp | Shape | Shape_i
    )


def grows(node: Apply, varying: Collection[Var]) -> bool:
    """Return whether an Apply makes more of what varies, by broadcasting it."""
    if not isinstance(node.op, Elemwise | Alloc | IncSubtensor):
        return False
    (out,) = node.outputs[:1]
    given = [
        var.type.broadcastable for var in node.inputs[: 2 if isinstance(node.op, IncSubtensor) else
                                                      None if isinstance(node.op, Elemwise) else 1]
        if var in varying
    ]  # fmt: skip
    ndim = out.type.ndim
    padded = [(True,) * (ndim - len(pattern)) + pattern for pattern in given]
    return any(
        not one and all(pattern[d] for pattern in padded)
        for d, one in enumerate(out.type.broadcastable)
    )


def is_zero(var: Var) -> bool:
    """Return whether all elements of a variable are known to be 0."""
    try:
        return bool(get_scalar_constant_value(var) == 0)
    except NotScalarConstantError:
        return False


class Rows:
    """Computes variables of a step outside its loop.

    n: the number of steps. rows: {variable of the step: its rows}. same: {variable of the step:
    what it is in every step}.
    """

    def __init__(self, n: Var, rows: Mapping[Var, Var], same: Mapping[Var, Var]):
        self.n = n
        self._found = {var: Operand(whole, True) for var, whole in rows.items()}
        self._found.update((var, Operand(value, False)) for var, value in same.items())

    def of(self, var: Var) -> Var:
        """Return the rows of a variable."""
        found = self._operand(var)
        whole = _repeated(self.n, found.var) if not found.varies else found.var
        if isinstance(var.type, TensorType):
            return patternbroadcast(whole, (False, *var.type.broadcastable))
        return whole

    def same(self, var: Var) -> Var:
        """Return the value of a variable that is the same in every step."""
        return self._operand(var).var

    def _operand(self, var: Var) -> Operand:
        for node in io_toposort(self._found, [var]):
            self._compute(node)
        return self._find(var)

    def _find(self, var: Var) -> Operand:
        if var not in self._found:
            assert isinstance(var, Constant), f"{var} is unknown outside the loop"
            self._found[var] = Operand(var.clone(), False)  # a graph owns the one inside
        return self._found[var]

    def _compute(self, node: Apply) -> None:
        operands = [self._find(v) for v in node.inputs]
        varies = any(each.varies for each in operands)
        if varies:
            entry = _entry(node.op)
            assert entry is not None, f"{node} is not batchable"
            outputs = entry[0](node, self.n, operands)
            varies = not isinstance(node.op, Shape | Shape_i)
        else:
            outputs = node.clone_with_new_inputs([each.var for each in operands]).outputs
        for own, out in zip(node.outputs, outputs, strict=True):
            self._found[own] = Operand(out, varies)


def _repeated(n: Var, value: Var) -> Var:
    """Return rows that are all equal."""
    return alloc(value, n, *(shape_i_op(d)(value) for d in range(value.type.ndim)))


def _rows(n: Var, operand: Operand) -> Var:
    return operand.var if operand.varies else _repeated(n, operand.var)


# --- the table ------------------------------------------------------------------------------------


@batches(Elemwise)
def _elemwise(node: Apply, n: Var, operands: Sequence[Operand]) -> list[Var]:
    ndim = node.outputs[0].type.ndim
    given = [
        each.var if each.varies else dimshuffle(each.var, ("x", *range(ndim))) for each in operands
    ]
    return list(node.op(*given, return_list=True))


@batches(DimShuffle)
def _dimshuffle(node: Apply, n: Var, operands: Sequence[Operand]) -> list[Var]:
    return [
        dimshuffle(operands[0].var, (0, *(o if o == "x" else o + 1 for o in node.op.new_order)))
    ]


@batches(Rebroadcast)
def _rebroadcast(node: Apply, n: Var, operands: Sequence[Operand]) -> list[Var]:
    pattern = node.outputs[0].type.broadcastable
    return [patternbroadcast(operands[0].var, (False, *pattern))]


@batches(ViewOp)
def _view(node: Apply, n: Var, operands: Sequence[Operand]) -> list[Var]:
    return [_rows(n, operands[0])]


@batches(ScalarFromTensor, TensorFromScalar)
def _same_rows(node: Apply, n: Var, operands: Sequence[Operand]) -> list[Var]:
    return [operands[0].var]


@batches(Shape_i)
def _shape_i(node: Apply, n: Var, operands: Sequence[Operand]) -> list[Var]:
    return [shape_i_op(node.op.i + 1)(operands[0].var)]


@batches(Shape)
def _shape(node: Apply, n: Var, operands: Sequence[Operand]) -> list[Var]:
    return [shape(operands[0].var)[1:]]


@batches(CAReduce)
def _reduction(node: Apply, n: Var, operands: Sequence[Operand]) -> list[Var]:
    op = copy(node.op)
    op.axis = tuple(axis + 1 for axis in axes_of(node))
    return [op(operands[0].var)]


@batches(MaxAndArgmax, Argmax)
def _extremum(node: Apply, n: Var, operands: Sequence[Operand]) -> list[Var]:
    op = copy(node.op)
    op.axis = tuple(axis + 1 for axis in node.op.axis)
    return list(op(operands[0].var, return_list=True))


@batches(Dot)
def _dot(node: Apply, n: Var, operands: Sequence[Operand]) -> list[Var]:
    """One product for all rows with a constant; rows by rows, a product for each."""
    x, y = operands
    if x.varies and y.varies:
        return [batched_dot(x.var, y.var)]
    if x.varies:
        return [_times(n, x.var, y.var)]
    turned = dimshuffle(x.var, (1, 0)) if x.var.type.ndim == 2 else x.var
    if y.var.type.ndim == 2:
        return [_times(n, y.var, turned)]
    product = _times(n, dimshuffle(y.var, (0, 2, 1)), turned)
    return [dimshuffle(product, (0, 2, 1)) if product.type.ndim == 3 else product]


def _times(n: Var, rows: Var, factor: Var) -> Var:
    """Return the products of vectors or matrices with a constant one."""
    op = Dot()
    if rows.type.ndim == 2:
        return op(rows, factor)
    return _unflat(op(flat(n, rows), factor), n, rows)


def flat(n: Var, rows: Var) -> Var:
    """Return matrices below each other, or vectors behind each other."""
    lengths = [shape_i_op(d)(rows) for d in range(1, rows.type.ndim)]
    return reshape(rows, [n * lengths[0], *lengths[1:]], rows.type.ndim - 1)


def _unflat(whole: Var, n: Var, rows: Var) -> Var:
    """Return the rows of what was computed from ``flat`` rows."""
    lengths = [shape_i_op(d)(whole) for d in range(1, whole.type.ndim)]
    return reshape(whole, [n, shape_i_op(1)(rows), *lengths], whole.type.ndim + 1)


@batches(
    Softmax, SoftmaxGrad, LogSoftmax, CrossentropyCategorical1Hot, CrossentropyCategorical1HotGrad
)
def _by_row_of_matrix(node: Apply, n: Var, operands: Sequence[Operand]) -> list[Var]:
    """What treats each row of matrices alone: a product of lengths more rows."""
    rows = [_rows(n, each) for each in operands]
    outputs = node.op(*(flat(n, each) for each in rows), return_list=True)
    return [_unflat(out, n, rows[0]) for out in outputs]


def _fits_reshape(node: Apply, varies: Sequence[bool]) -> bool:
    return not varies[1]


@batches(Reshape, when=_fits_reshape)
def _reshape(node: Apply, n: Var, operands: Sequence[Operand]) -> list[Var]:
    x, lengths = (each.var for each in operands)
    ndim = node.op.ndim
    return [reshape(x, [n, *vector_entries(lengths, ndim)], ndim + 1)]


@batches(Alloc, when=lambda node, varies: not any(varies[1:]))
def _alloc(node: Apply, n: Var, operands: Sequence[Operand]) -> list[Var]:
    value, *lengths = (each.var for each in operands)
    added = len(lengths) - node.inputs[0].type.ndim
    rows = dimshuffle(value, (0, *["x"] * added, *range(1, value.type.ndim)))
    return [alloc(rows, n, *lengths)]


@batches(Join, when=lambda node, varies: not varies[0] and isinstance(node.inputs[0], Constant))
def _join(node: Apply, n: Var, operands: Sequence[Operand]) -> list[Var]:
    ndim = node.outputs[0].type.ndim
    known: Any = node.inputs[0]
    axis = int(known.data) % ndim
    return [join(axis + 1, *(_rows(n, each) for each in operands[1:]))]


@batches(MakeVector)
def _make_vector(node: Apply, n: Var, operands: Sequence[Operand]) -> list[Var]:
    return [join(1, *(dimshuffle(_rows(n, each), (0, "x")) for each in operands))]


# --- indices --------------------------------------------------------------------------------------


def picks_a_row(node: Apply, varies: Sequence[bool], n_values: int = 1) -> bool:
    """Return whether only the first index of an Apply varies, an integer.

    n_values: the number of inputs before the indices.
    """
    first = node.op.idx_list[:1]
    return (
        not any(isinstance(each, slice) for each in first)
        and varies[n_values : n_values + 1] == [True]
        and not any(varies[n_values + 1 :])
    )


def _fits_subtensor(node: Apply, varies: Sequence[bool]) -> bool:
    return not any(varies[1:]) or picks_a_row(node, varies)


@batches(Subtensor, when=_fits_subtensor)
def _subtensor(node: Apply, n: Var, operands: Sequence[Operand]) -> list[Var]:
    x, *indices = operands
    idx_list: Sequence[Any] = node.op.idx_list
    rows = x.var
    if indices and idx_list[:1] and any(each.varies for each in indices):
        chosen = indices.pop(0).var
        rows = rows[arange(n), chosen] if x.varies else rows[chosen]
        idx_list = idx_list[1:]
    if not idx_list:
        return [rows]
    return [Subtensor((slice(None), *idx_list))(rows, *(each.var for each in indices))]


@batches(IncSubtensor, when=lambda node, varies: not any(varies[2:]))
def _inc_subtensor(node: Apply, n: Var, operands: Sequence[Operand]) -> list[Var]:
    x, y, *indices = operands
    op = node.op
    part = x.var.type.ndim - x.varies - sum(not isinstance(e, slice) for e in op.idx_list)
    added = y.var
    if y.varies:
        ndim = y.var.type.ndim
        added = dimshuffle(y.var, (0, *["x"] * (part - (ndim - 1)), *range(1, ndim)))
    new = IncSubtensor((slice(None), *op.idx_list), set_instead_of_inc=op.set_instead_of_inc)
    return [new(_rows(n, x), added, *(each.var for each in indices))]


@batches(AdvancedSubtensor1, when=lambda node, varies: not varies[0])
def _look_up(node: Apply, n: Var, operands: Sequence[Operand]) -> list[Var]:
    table, indices = (each.var for each in operands)
    return [_unflat(AdvancedSubtensor1()(table, flat(n, indices)), n, indices)]
