"""The lowering of Rowwise to a C step, whose kind is in csupport/rowwise.h."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from opwise.graph.apply import Apply
from opwise.linkers import opwise_c
from opwise.linkers.csteps import accumulator, broadcast_mask
from opwise.linkers.kernels import Kernels
from opwise.linkers.lowering import CStep, c_lowering
from opwise.scalar import csource, rowrewrites
from opwise.scalar.program import Instruction
from opwise.scalar.rowloops import RowFold, RowProgram, RowWindow
from opwise.tensor.reduce import CAReduce
from opwise.tensor.rowwise import Rowwise
from opwise.tensor.windowsum import WindowSum


@dataclass(frozen=True, kw_only=True)
class RowwiseStep(CStep):
    """A loop over rows along the last axis; the context is the loop over turned rows."""

    kind: str = "rowwise"
    #: about how many nanoseconds an element takes
    nanoseconds: float
    ndim: int
    #: mask of the outputs of one number a row
    narrow: int
    #: the reduction that needs elements, or -1
    needs: int
    #: bytes of all buffers for each element of a row, and how many buffers there are
    bytes: int
    buffers: int
    #: bytes for each element of turned rows
    turned: int
    #: for each input the mask of its broadcastable dimensions
    masks: tuple[int, ...]
    #: which built-in reductions the loops call
    reducers: tuple[int, ...]


@c_lowering(Rowwise)
def rowwise(node: Apply, kernels: Kernels) -> CStep | None:
    program = row_program(node)
    loop = kernels.rows(program)
    if loop is None:
        return None
    narrow = sum(1 << k for k, slot in enumerate(program.outs) if not program.wide[slot])
    return RowwiseStep(
        nanoseconds=program.nanoseconds,
        ndim=node.inputs[0].type.ndim,
        narrow=narrow,
        needs=_needs_elements(node),
        bytes=sum(np.dtype(d).itemsize for d in program.buffers),
        buffers=len(program.buffers),
        turned=sum(np.dtype(program.dtypes[slot]).itemsize for slot in program.turned),
        masks=tuple(broadcast_mask(v.type.broadcastable) for v in node.inputs),
        reducers=tuple(
            opwise_c.REDUCERS[f"{row}_{csource.short(element)}_{csource.short(acc)}"]
            for row, element, acc in program.reducers.values()
        ),
        loop=loop,
    )


def row_program(node: Apply) -> RowProgram:
    """Return the program that runs a Rowwise Apply in C."""
    return rowrewrites.rewritten(program_of(node))


def program_of(node: Apply) -> RowProgram:
    """Return the program that a Rowwise Apply is."""
    return RowProgram(
        tuple(v.type.dtype for v in node.inputs),
        tuple(map(_row_instruction, node.op.steps)),
        node.op.outs,
        wide_inputs=tuple(not v.type.broadcastable[-1] for v in node.inputs),
    )


def _row_instruction(one: Instruction) -> Instruction:
    op: Any = one.op
    if isinstance(op, CAReduce):
        row = op.scalar_op.row
        assert row is not None  # a Rowwise holds no reduction by a user's operation
        return one._replace(op=RowFold(row.name, accumulator(op, one.dtype)))
    if isinstance(op, WindowSum):
        return one._replace(op=RowWindow(op.first, op.last))
    return one


def _needs_elements(node: Apply) -> int:
    """Return the index of a reduction that has no result without elements, or -1."""
    for one in node.op.steps:
        op: Any = one.op
        if isinstance(op, CAReduce) and op.of_nothing is None:
            name = getattr(op.scalar_op.row, "name", None)
            short = csource.short(one.dtype)
            if name in ("maximum", "minimum"):
                return opwise_c.REDUCERS[f"{name}_{short}_{short}"]
    return -1
