"""Sparse matrices made of rows: the gradient by the rows that a program indexes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from opwise.graph.apply import Apply
from opwise.graph.null import disconnected_type
from opwise.graph.op import Lengths, Op, Storage, Values
from opwise.graph.opmethods import connects
from opwise.graph.variable import Var
from opwise.sparse.type import SparseType
from opwise.sparse.variable import integer_dtypes
from opwise.tensor.advanced_subtensor import advanced_subtensor1
from opwise.tensor.shape import shape
from opwise.tensor.variable import as_tensor_variable


class ConstructSparseFromList(Op):
    """The CSC matrix of the shape of ``x`` with the rows of ``values`` added to its rows ``ilist``.

    x and values are dense matrices; only the shape of x is read, and the result has the dtype of
    values. Raises TypeError for other numbers of dimensions and for an ilist without integers; at
    run time IndexError for a row that x lacks, AssertionError unless there is an index for each row
    of values.
    """

    __props__ = ()

    def make_node(self, x: Var, values: Var, ilist: Var) -> Apply:
        x, values, ilist = map(as_tensor_variable, (x, values, ilist))
        if ilist.type.dtype not in integer_dtypes:
            raise TypeError(f"index must be integers: {ilist} has dtype {ilist.type.dtype}")
        if ilist.type.ndim != 1:
            raise TypeError(f"index must be vector: {ilist} has {ilist.type.ndim} dimensions")
        if x.type.ndim != 2:
            raise TypeError(f"cannot create a sparse matrix with {x.type.ndim} dimensions")
        if values.type.ndim != 2:
            raise TypeError(
                f"cannot create a sparse matrix from values with {values.type.ndim} ndim"
            )
        return self._node(shape(x), values, ilist)

    def _node(self, lengths: Any, values: Var, ilist: Var) -> Apply:
        out = SparseType(format="csc", dtype=values.type.dtype)
        return Apply(self, [lengths, values, ilist], [out.make_variable()])

    def perform(self, node: Apply, inputs: Values, output_storage: Storage) -> None:
        lengths, values, ilist = inputs
        n, columns = values.shape
        if n != len(ilist):
            raise AssertionError(f"there are {n} rows of values, but {len(ilist)} indices")
        rows = ilist.astype(np.int64)
        rows = np.where(rows < 0, rows + lengths[0], rows)
        if n and (rows.min() < 0 or rows.max() >= lengths[0]):
            raise IndexError(
                f"index out of bounds: rows {ilist} of a matrix with {lengths[0]} rows"
            )
        parts = (values.T.ravel(), np.tile(rows, columns), np.arange(columns + 1) * n)
        output_storage[0][0] = SparseType.format_cls["csc"](parts, shape=tuple(lengths))

    def infer_shape(self, node: Apply, shapes: Sequence[Lengths]) -> Sequence[Lengths]:
        lengths: Var = node.inputs[0]
        return [(lengths[0], lengths[1])]

    connection_pattern = connects(1)

    def grad(self, inputs: Sequence[Var], output_gradients: Sequence[Var]) -> Sequence[Var]:
        (gz,) = output_gradients
        rows = advanced_subtensor1(gz.toarray(), inputs[2])
        return [disconnected_type.make_variable(), rows, disconnected_type.make_variable()]

    def R_op(self, inputs: Sequence[Var], eval_points: Sequence[Var]) -> Sequence[Var]:
        if eval_points[1] is None:
            return [None]
        return self._node(inputs[0], eval_points[1], inputs[2]).outputs


construct_sparse_from_list = ConstructSparseFromList()
