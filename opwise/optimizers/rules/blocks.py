"""Products of blocks that overwrite what they are added to, and the CTC loss without a gradient."""

from __future__ import annotations

from opwise.graph.apply import Apply
from opwise.graph.fgraph import FunctionGraph
from opwise.graph.variable import Variable
from opwise.optimizers.rule import check_destroyers, rule
from opwise.tensor.nnet.blocksparse import SparseBlockGemv, SparseBlockOuter
from opwise.tensor.nnet.ctc import ConnectionistTemporalClassification


def _inplace(node: Apply) -> list[Variable] | None:
    if node.op.inplace:
        return None
    overwriting: Apply = type(node.op)(True).make_node(*node.inputs)
    return overwriting.outputs


@rule(
    SparseBlockGemv, stage="local_inplace_sparse_block_gemv", requirements=[check_destroyers]
)  # fmt: skip
def local_inplace_sparse_block_gemv(fgraph: FunctionGraph, node: Apply) -> list[Variable] | None:
    """SparseBlockGemv(o, ...) -> in place, where o is not read afterwards."""
    return _inplace(node)


@rule(
    SparseBlockOuter, stage="local_inplace_sparse_block_outer", requirements=[check_destroyers]
)  # fmt: skip
def local_inplace_sparse_block_outer(fgraph: FunctionGraph, node: Apply) -> list[Variable] | None:
    """SparseBlockOuter(o, ...) -> in place, where o is not read afterwards."""
    return _inplace(node)


@rule(
    ConnectionistTemporalClassification, stage="canonicalize", tags=("fast_run", "fast_compile")
)  # fmt: skip
def local_ctc_no_grad(fgraph: FunctionGraph, node: Apply) -> list[Variable | None] | None:
    """The CTC loss and its gradient -> the loss alone, where the gradient is not read."""
    if len(node.outputs) < 2 or node.outputs[1].clients:
        return None
    return [ConnectionistTemporalClassification(compute_grad=False)(*node.inputs), None]
