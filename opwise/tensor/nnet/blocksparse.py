"""Products of chosen blocks of vectors and matrices: layers of which few blocks are computed."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from opwise.graph.apply import Apply
from opwise.graph.null import NullType, disconnected_type
from opwise.graph.op import Storage, Values
from opwise.graph.opmethods import shapes_of
from opwise.graph.variable import Var
from opwise.scalar import dtypes
from opwise.tensor.dimshuffle import dimshuffle
from opwise.tensor.elemwise import zeros_like
from opwise.tensor.subtensor import take
from opwise.tensor.variable import Tensor, TensorLike, TensorOp, as_tensor_variable, constant

__all__ = [
    "SparseBlockGemv",
    "SparseBlockOuter",
    "sparse_block_dot",
    "sparse_block_gemv",
    "sparse_block_gemv_inplace",
    "sparse_block_outer",
    "sparse_block_outer_inplace",
]


def _checked(name: str, value: TensorLike, ndim: int) -> Tensor:
    var = as_tensor_variable(value)
    if var.type.ndim != ndim:
        raise TypeError(f"{name} must have {ndim} dimensions, not {var.type.ndim}")
    return var


def _checked_indices(name: str, value: TensorLike) -> Tensor:
    var = _checked(name, value, 2)
    if var.type.dtype not in dtypes.DISCRETE:
        raise AssertionError(f"{name} must be integers, not {var.type.dtype}")
    return var


class _BlockOp(TensorOp):
    """Base of Ops that add products of blocks to their first input. inplace: overwrite it."""

    __props__ = ("inplace",)

    def __init__(self, inplace: bool = False) -> None:
        self.inplace = inplace
        if inplace:
            self.destroy_map = {0: [0]}

    infer_shape = shapes_of(0)

    def connection_pattern(self, node: Apply) -> list[list[bool]]:
        return [[i not in (3, 4)] for i in range(len(node.inputs))]


class SparseBlockGemv(_BlockOp):
    """Adds products of blocks: ``o[b, j] += h[b, i] . W[inputIdx[b, i], outputIdx[b, j]]``.

    It sums over i. Shapes: o (batch, oWin, oSize), W (iBlocks, oBlocks, iSize, oSize), h (batch,
    iWin, iSize), inputIdx (batch, iWin), outputIdx (batch, oWin).
    """

    def make_node(
        self,
        o: TensorLike,
        W: TensorLike,
        h: TensorLike,
        inputIdx: TensorLike,
        outputIdx: TensorLike,
    ) -> Apply:
        o = _checked("The output o", o, 3)
        W, h = _checked("The weight matrix W", W, 4), _checked("The input h", h, 3)
        inputIdx = _checked_indices("The input indices inputIdx", inputIdx)
        outputIdx = _checked_indices("The output indices outputIdx", outputIdx)
        return Apply(self, [o, W, h, inputIdx, outputIdx], [o.type.make_variable()])

    def perform(self, node: Apply, inputs: Values, output_storage: Storage) -> None:
        o, W, h, rows, columns = inputs
        if not self.inplace:
            o = o.copy()
        for b in range(len(o)):
            # the blocks of one example as a matrix: one product by BLAS
            blocks = W[rows[b][:, None], columns[b]].transpose(0, 2, 1, 3)
            product = h[b].reshape(-1) @ blocks.reshape(h[b].size, -1)
            o[b] += product.reshape(o[b].shape)
        output_storage[0][0] = o

    def grad(self, inputs: Sequence[Tensor], output_gradients: Sequence[Tensor]) -> Sequence[Var]:
        (_, W, h, rows, columns), (g,) = inputs, output_gradients
        return [
            g,
            sparse_block_outer(zeros_like(W), h, g, rows, columns),
            sparse_block_gemv(zeros_like(h), _transposed(W), g, columns, rows),
            disconnected_type.make_variable(),
            disconnected_type.make_variable(),
        ]

    def R_op(self, inputs: Sequence[Tensor], eval_points: Sequence[Var]) -> Sequence[Var]:
        (o, W, h, *indices), (moved_o, moved_W, moved_h, *_) = inputs, eval_points
        result = moved_o
        for matrix, vector in ((moved_W, h), (W, moved_h)):
            if matrix is not None and vector is not None:
                start = zeros_like(o) if result is None else result
                result = sparse_block_gemv(start, matrix, vector, *indices)
        return [result]


class SparseBlockOuter(_BlockOp):
    """Adds outer products: ``o[xIdx[b, i], yIdx[b, j]] += alpha * outer(x[b, i], y[b, j])``.

    Shapes: o (xBlocks, yBlocks, xSize, ySize), x (batch, xWin, xSize), y (batch, yWin, ySize), xIdx
    (batch, xWin), yIdx (batch, yWin). alpha: a scalar (default: 1).
    """

    def make_node(
        self,
        o: TensorLike,
        x: TensorLike,
        y: TensorLike,
        xIdx: TensorLike,
        yIdx: TensorLike,
        alpha: TensorLike | None = None,
    ) -> Apply:
        o = _checked("The matrices o", o, 4)
        x, y = _checked("x", x, 3), _checked("y", y, 3)
        xIdx, yIdx = _checked_indices("xIdx", xIdx), _checked_indices("yIdx", yIdx)
        alpha = constant(np.float32(1)) if alpha is None else _checked("alpha", alpha, 0)
        return Apply(self, [o, x, y, xIdx, yIdx, alpha], [o.type.make_variable()])

    def perform(self, node: Apply, inputs: Values, output_storage: Storage) -> None:
        o, x, y, rows, columns, alpha = inputs
        if not self.inplace:
            o = o.copy()
        for b in range(len(x)):
            products = x[b][:, None, :, None] * (alpha * y[b])[None, :, None, :]
            np.add.at(o, (rows[b][:, None], columns[b]), products.astype(o.dtype, copy=False))
        output_storage[0][0] = o

    def grad(self, inputs: Sequence[Tensor], output_gradients: Sequence[Tensor]) -> Sequence[Var]:
        (_, x, y, rows, columns, alpha), (g,) = inputs, output_gradients
        gx = sparse_block_gemv(zeros_like(x), _transposed(g), y, columns, rows)
        gy = sparse_block_gemv(zeros_like(y), g, x, rows, columns)
        why = "The gradient of SparseBlockOuter by alpha is not implemented."
        return [
            g, alpha * gx, alpha * gy, disconnected_type.make_variable(),
            disconnected_type.make_variable(), NullType(why).make_variable(),
        ]  # fmt: skip

    def R_op(self, inputs: Sequence[Tensor], eval_points: Sequence[Var]) -> Sequence[Var]:
        (o, x, y, *rest), (moved_o, moved_x, moved_y, *_) = inputs, eval_points
        result = moved_o
        for left, right in ((moved_x, y), (x, moved_y)):
            if left is not None and right is not None:
                start = zeros_like(o) if result is None else result
                result = sparse_block_outer(start, left, right, *rest)
        return [result]


def _transposed(blocks: Tensor) -> Tensor:
    """Return blocks (i, j, m, n) as the transposed blocks (j, i, n, m)."""
    return dimshuffle(blocks, (1, 0, 3, 2))


sparse_block_gemv = SparseBlockGemv()
sparse_block_gemv_inplace = SparseBlockGemv(True)
sparse_block_outer = SparseBlockOuter()
sparse_block_outer_inplace = SparseBlockOuter(True)


def sparse_block_dot(
    W: TensorLike, h: TensorLike, inputIdx: TensorLike, b: TensorLike, outputIdx: TensorLike
) -> Tensor:
    """Return ``b[outputIdx] + h . W`` for chosen blocks, of shape (batch, oWin, oSize).

    W: blocks of weights (iBlocks, oBlocks, iSize, oSize). h: inputs (batch, iWin, iSize). inputIdx,
    outputIdx: the blocks that are inputs and outputs of each example, integer matrices (batch,
    iWin) and (batch, oWin). b: biases (oBlocks, oSize), whose dtype the result has. Without the
    dimension of the batch, h and the indices are those of a batch of one.

    Raises AssertionError unless indices have one dimension less than h, TypeError for other numbers
    of dimensions and for indices that are no integers; at run time IndexError for a block that does
    not exist, ValueError for shapes that do not fit.
    """
    h, b = as_tensor_variable(h), as_tensor_variable(b)
    inputIdx, outputIdx = as_tensor_variable(inputIdx), as_tensor_variable(outputIdx)
    for name, indices in (("inputIdx", inputIdx), ("outputIdx", outputIdx)):
        if indices.type.ndim != h.type.ndim - 1:
            raise AssertionError(
                f"{name} must have one dimension less than h: {h.type.ndim - 1}, not "
                f"{indices.type.ndim}"
            )
    if h.type.ndim == 2:
        h = dimshuffle(h, ("x", 0, 1))
        inputIdx, outputIdx = dimshuffle(inputIdx, ("x", 0)), dimshuffle(outputIdx, ("x", 0))
    return sparse_block_gemv(take(b, outputIdx, 0), W, h, inputIdx, outputIdx)
