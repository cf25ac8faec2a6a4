"""Fusion of gathers from vectors with the loops that alone read them."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from opwise.config import config
from opwise.graph.apply import Apply
from opwise.graph.fgraph import FunctionGraph
from opwise.graph.variable import Constant, Var, Variable
from opwise.optimizers.passes import Optimizer
from opwise.optimizers.rules.fusion import MAX_OPERANDS, runs_in_loops
from opwise.scalar import csource
from opwise.tensor.advanced_subtensor import AdvancedSubtensor1
from opwise.tensor.dimshuffle import DimShuffle
from opwise.tensor.elemwise import Elemwise
from opwise.tensor.gathered import Gathered, Taken
from opwise.tensor.mapreduce import MapReduce
from opwise.tensor.subtensor import Subtensor
from opwise.tensor.variable import constant

#: bytes of an index: the loop may get the numbers of all elements in the place of an index
MIN_INDEX_BYTES = 4


class GatherFusion(Optimizer):
    """Lets loops over vectors take ``x[i]`` from the vector x, if nothing else reads it.

    The elements are then not written and read again, and bounds of constant indices are known. What
    several loops read stays: to find elements twice takes as long as to write and read them, and
    longer if they do not lie in a cache.
    """

    name = "gather_fusion"

    def apply(self, fgraph: FunctionGraph) -> None:
        if not config.tensor.local_elemwise_fusion:
            return
        order = fgraph.toposort()
        if not any(_is_gather(node) for node in order):
            return
        bound = {node for earlier in fgraph.orderings().values() for node in earlier}
        for node in order:
            if node not in bound and _is_loop(node):
                new = _fused(node, bound)
                if new is not None:
                    fgraph.replace_all(
                        list(zip(node.outputs, new.outputs, strict=True)), reason=self.name
                    )


def _is_gather(node: Apply | None) -> bool:
    """Return whether an Apply selects elements of a vector for which a loop has an operand."""
    if node is None or type(node.op) is not AdvancedSubtensor1:
        return False
    table, index = node.inputs
    return (
        table.type.ndim == 1
        and csource.is_plain(table.type.dtype)
        and not index.type.broadcastable[0]
        and _counts_from_the_start(index)
        and _is_dense(table)
    )


def _counts_from_the_start(index: Var) -> bool:
    """Return whether an index may be an operand: no element is known to be negative.

    The step would copy the elements of the table for the loop.
    """
    if isinstance(index, Constant):
        return not (index.data < 0).any()
    return bool(index.type.numpy_dtype.itemsize >= MIN_INDEX_BYTES)


def _is_dense(table: Var) -> bool:
    """Return whether the elements of a vector follow each other, as far as the graph shows.

    The step would copy elements of another vector for the loop.
    """
    owner = table.owner
    if owner is None or not owner.op.view_map:
        return True
    if isinstance(owner.op, Subtensor):
        steps = [entry.step for entry in owner.op.idx_list if isinstance(entry, slice)]
        before = [entry for entry in owner.op.idx_list if not isinstance(entry, slice)]
        x = owner.inputs[0]
        return (
            all(step is None or step == 1 for step in steps)
            and len(before) == x.type.ndim - 1
            and not any(isinstance(entry, slice) for entry in owner.op.idx_list[: len(before)])
            and (x.type.ndim == 1 or x.owner is None or not x.owner.op.view_map)
        )
    if isinstance(owner.op, DimShuffle):
        return False
    return _is_dense(owner.inputs[0])


def _is_loop(node: Apply) -> bool:
    """Return whether an Apply is a loop in C over vectors, which may take operands from others."""
    op = node.op
    if isinstance(op, MapReduce):
        mapped = op.parts(node)[0]
    elif isinstance(op, Elemwise) and not op.inplace_pattern:
        mapped = node
    else:
        return False
    return mapped.outputs[0].type.broadcastable == (False,) and runs_in_loops(mapped)


def _fused(node: Apply, bound: Collection[Apply]) -> Apply | None:
    """Return the Apply of a loop with the gathers that it alone reads; None without any."""
    operands: list[Variable] = list(node.inputs)
    indices: list[Variable] = []
    taken: list[Taken] = []
    for k, var in enumerate(node.inputs):
        gather: Any = var.owner
        if not _is_gather(gather) or gather in bound:
            continue
        if any(client is not node for client, _ in var._clients):
            continue
        table, index = gather.inputs
        if index.type.numpy_dtype.itemsize < MIN_INDEX_BYTES:
            index = constant(index.data.astype("int32"))
            index = next((known for known in indices if index.equals(known)), index)
        size = len(operands) + len(indices) + (index not in indices) + len(node.outputs)
        if size > MAX_OPERANDS:
            continue
        if index not in indices:
            indices.append(index)
        operands[k] = table
        taken.append(Taken(k, indices.index(index)))
    if not taken:
        return None
    taken.sort(key=lambda one: one.by)
    return Gathered(node.op, taken).make_node(*operands, *indices)
