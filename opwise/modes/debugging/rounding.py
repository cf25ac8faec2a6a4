"""Which Ops round their results, which add, and which compute whole numbers exactly."""

from __future__ import annotations

from opwise.graph.op import Op
from opwise.scalar.op import Cast
from opwise.tensor.advanced_subtensor import (
    AdvancedBooleanSubtensor,
    AdvancedSubtensor,
    AdvancedSubtensor1,
)
from opwise.tensor.assertion import Assert
from opwise.tensor.convert import (
    DeepCopyOp,
    OutputGuard,
    ScalarFromTensor,
    TensorFromScalar,
    ViewOp,
)
from opwise.tensor.creation import Alloc, AllocEmpty, ARange, Eye, Tri
from opwise.tensor.diagonal import AllocDiag, ExtractDiag, FillDiagonal, FillDiagonalOffset
from opwise.tensor.dimshuffle import DimShuffle
from opwise.tensor.elemwise import Elemwise
from opwise.tensor.join import Join, MakeVector, Split
from opwise.tensor.nnet.crossentropy import (
    CrossentropyCategorical1Hot,
    CrossentropyCategorical1HotGrad,
    CrossentropySoftmax1HotWithBiasDx,
    CrossentropySoftmaxArgmax1HotWithBias,
)
from opwise.tensor.nnet.nnet import Prepend_scalar_constant_to_each_row, Prepend_scalar_to_each_row
from opwise.tensor.nnet.rowsoftmax import LogSoftmax, Softmax, SoftmaxGrad, SoftmaxWithBias
from opwise.tensor.reduce import FirstAlong
from opwise.tensor.selection import Choose, Nonzero, PermuteRowElements
from opwise.tensor.shape import Rebroadcast, Reshape, Shape, Shape_i, SpecifyShape
from opwise.tensor.slices import MakeSlice
from opwise.tensor.sort import ArgSortOp, SortOp, TopKOp
from opwise.tensor.subtensor import Subtensor

#: scalar operations whose results on whole numbers are whole, and computed without rounding
EXACT_ROWS = frozenset(
    "add mul sub int_div mod neg sqr abs_ sgn ceil floor trunc round_half_to_even "
    "round_half_away_from_zero maximum minimum clip switch second identity or_ xor and_ invert "
    "lt gt le ge eq neq isnan isinf real imag complex conj".split()
)

#: Ops that copy, arrange or count elements and compute no new numbers; a subclass may compute
_COPYING_OPS = frozenset(
    (
        DimShuffle,
        AdvancedBooleanSubtensor,
        AdvancedSubtensor,
        AdvancedSubtensor1,
        Assert,
        DeepCopyOp,
        OutputGuard,
        ScalarFromTensor,
        TensorFromScalar,
        ViewOp,
        ARange,
        Alloc,
        AllocEmpty,
        Eye,
        FirstAlong,
        Tri,
        AllocDiag,
        ExtractDiag,
        FillDiagonal,
        FillDiagonalOffset,
        Join,
        MakeVector,
        Split,
        Choose,
        Nonzero,
        PermuteRowElements,
        Rebroadcast,
        Reshape,
        Shape,
        Shape_i,
        SpecifyShape,
        MakeSlice,
        ArgSortOp,
        SortOp,
        TopKOp,
        Subtensor,
    )
)

#: Ops of neural networks: whole numbers do not stay whole, and results are no plain sums
_NNET_OPS = frozenset(
    (
        CrossentropyCategorical1Hot,
        CrossentropyCategorical1HotGrad,
        CrossentropySoftmax1HotWithBiasDx,
        CrossentropySoftmaxArgmax1HotWithBias,
        Prepend_scalar_constant_to_each_row,
        Prepend_scalar_to_each_row,
        LogSoftmax,
        Softmax,
        SoftmaxGrad,
        SoftmaxWithBias,
    )
)


def rounds(op: Op) -> bool:
    """Return whether an Op computes new numbers, which may be rounded."""
    return type(op) not in _COPYING_OPS


def adds(op: Op) -> bool:
    """Return whether an Op's results are sums of its inputs."""
    if isinstance(op, Elemwise):
        row = op.scalar_op.row
        return row is not None and row.name in ("add", "sub")
    return rounds(op) and type(op) not in _NNET_OPS


def is_exact(op: Op) -> bool:
    """Return whether an Op computes whole numbers from whole numbers, without rounding."""
    if isinstance(op, Elemwise):
        row = op.scalar_op.row
        return isinstance(op.scalar_op, Cast) or (row is not None and row.name in EXACT_ROWS)
    return type(op) not in _NNET_OPS
