"""The lowerings of sparse Ops to C steps; ``opwise.sparse`` loads this module."""

from __future__ import annotations

from dataclasses import dataclass

from opwise.graph.apply import Apply
from opwise.graph.variable import Variable
from opwise.linkers.csteps import UpdateStep
from opwise.linkers.kernels import Kernels
from opwise.linkers.lowering import CStep, c_lowering
from opwise.sparse.compressed import (
    AddSD_ccode,
    CSMGradC,
    MulSDCSC,
    MulSDCSR,
    MulSVCSR,
    MulSVRows,
    SamplingDotCSR,
    StructuredAddSVCSR,
    StructuredDotCSC,
    StructuredDotCSR,
    StructuredDotGradCSC,
    StructuredDotGradCSR,
    UsmmCscDense,
)


@dataclass(frozen=True, kw_only=True)
class FormatStep(CStep):
    """Products with a sparse matrix, and gradients of them, whose order of entries tells."""

    #: whether x is a CSC matrix
    csc: bool


@dataclass(frozen=True, kw_only=True)
class WithVectorStep(CStep):
    """Data plus or times elements of a vector. in: data, indices, indptr, vector."""

    kind: str = "with_vector"
    #: whether they are added
    add: bool
    #: whether the vector has an element for each row, and not for each column
    by_row: bool


@dataclass(frozen=True, kw_only=True)
class AddDenseStep(CStep):
    """A sparse plus a dense matrix. in: data, indices, indptr, dense matrix y."""

    kind: str = "add_dense"
    #: whether y is overwritten
    overwrite: bool
    csc: bool


def _step(node: Apply, step: CStep, indices: int, floats: tuple[int, ...]) -> CStep | None:
    """Return a step if the floats have the dtype of the output, and the indices one that C has.

    indices: the position of the input with the indices, which that with the indptr follows.
    """
    dtype = node.outputs[0].type.dtype
    fit = dtype in ("float32", "float64") and all(
        node.inputs[i].type.dtype == dtype for i in floats
    )
    return step if fit and _are_indices(node.inputs[indices : indices + 2]) else None


def _are_indices(variables: list[Variable]) -> bool:
    return all(v.type.dtype in ("int32", "int64") for v in variables)


def _are_integers(*variables: Variable) -> bool:
    return all(v.type.dtype.startswith(("int", "uint")) for v in variables)


@c_lowering(StructuredDotCSR)
def csr_product(node: Apply, kernels: Kernels) -> CStep | None:
    return _step(node, CStep("csr_product"), 1, (0, 3)) if _are_integers(*node.inputs[4:]) else None


@c_lowering(StructuredDotCSC)
def csc_product(node: Apply, kernels: Kernels) -> CStep | None:
    return _step(node, CStep("csc_product"), 1, (0, 4)) if _are_integers(node.inputs[3]) else None


@c_lowering(UsmmCscDense)
def usmm(node: Apply, kernels: Kernels) -> CStep | None:
    if not _are_integers(node.inputs[4]):
        return None
    return _step(node, UpdateStep("usmm_csc", overwrite=node.op.inplace), 2, (0, 1, 5, 6))


@c_lowering(StructuredDotGradCSC, StructuredDotGradCSR)
def product_gradient(node: Apply, kernels: Kernels) -> CStep | None:
    return _step(node, FormatStep("product_gradient", csc=node.op.format == "csc"), 0, (2, 3))


@c_lowering(SamplingDotCSR)
def sampling_dot(node: Apply, kernels: Kernels) -> CStep | None:
    return (
        _step(node, CStep("sampling_dot"), 3, (0, 1, 2)) if _are_integers(node.inputs[5]) else None
    )


@c_lowering(MulSDCSC, MulSDCSR)
def times_matrix(node: Apply, kernels: Kernels) -> CStep | None:
    return _step(node, FormatStep("times_matrix", csc=node.op.format == "csc"), 1, (0, 3))


@c_lowering(MulSVCSR)
def times_column(node: Apply, kernels: Kernels) -> CStep | None:
    return _step(node, WithVectorStep(add=False, by_row=False), 1, (0, 3))


@c_lowering(MulSVRows)
def times_row(node: Apply, kernels: Kernels) -> CStep | None:
    return _step(node, WithVectorStep(add=False, by_row=True), 1, (0, 3))


@c_lowering(StructuredAddSVCSR)
def plus_column(node: Apply, kernels: Kernels) -> CStep | None:
    return _step(node, WithVectorStep(add=True, by_row=False), 1, (0, 3))


@c_lowering(AddSD_ccode)
def add_dense(node: Apply, kernels: Kernels) -> CStep | None:
    step = AddDenseStep(overwrite=node.op.inplace, csc=node.op.format == "csc")
    return _step(node, step, 1, (0, 3))


@c_lowering(CSMGradC)
def data_gradient(node: Apply, kernels: Kernels) -> CStep | None:
    if not _are_indices(node.inputs[5:7]) or not _are_integers(node.inputs[3]):
        return None
    return _step(node, CStep("data_gradient"), 1, (4,))
