"""Ops over the vectors of compressed matrices (CSR and CSC), which rewrites make: they run in C.

All raise ValueError for index vectors that do not describe a matrix of the right shape.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from opwise.graph import costs
from opwise.graph.apply import Apply
from opwise.graph.costs import ArrayShapes
from opwise.graph.op import Lengths, Op, Storage, Values
from opwise.graph.opmethods import shapes_of
from opwise.graph.variable import Var
from opwise.scalar.dtypes import upcast
from opwise.sparse.type import SparseType, check_structure
from opwise.sparse.variable import as_sparse_variable
from opwise.sparse.vectors import CSMGrad, csm_data, csm_indices, csm_indptr, rows_of_entries
from opwise.tensor.elemwise import cast
from opwise.tensor.type import tensor_type
from opwise.tensor.variable import as_tensor_variable


def _matrix(format: str, data: Any, indices: Any, indptr: Any, shape: Sequence[int]) -> Any:
    """Return scipy's matrix over vectors; ValueError if they do not describe one of that shape."""
    rows = shape[format == "csc"]
    if len(indptr) != rows + 1:
        raise ValueError(
            f"dimension mismatch: indptr has {len(indptr)} elements, but the shapes of the other "
            f"operands need {rows + 1}"
        )
    made = SparseType.format_cls[format]((data, indices, indptr), shape=tuple(shape), copy=False)
    check_structure(made)
    return made


def _pattern(format: str, indices: Any, indptr: Any, shape: Sequence[int]) -> Any:
    """Return (row, column) of each entry, for vectors that describe a matrix of that shape."""
    _matrix(format, np.empty(indices.shape, np.int8), indices, indptr, shape)
    major = rows_of_entries(indptr)
    minor = indices[: len(major)]
    return (major, minor) if format == "csr" else (minor, major)


def _filled(values: np.ndarray, length: int, dtype: Any) -> np.ndarray:
    """Return ``values`` with zeros after them, for stored entries that no row has."""
    out = np.zeros(length, dtype=dtype)
    out[: len(values)] = values
    return out


class _OfEntries(Op):
    """Base of Ops that work once on each entry, with one number or a row of a dense matrix.

    Their limit in profiles: each vector and matrix is read once, however often entries share a row.
    """

    traffic = costs.each_once
    #: the position of the input with an element for each entry
    entries = 0
    #: the position of the dense matrix of which each entry takes a row; None for one number
    factor: int | None = None

    def flops(self, inputs: ArrayShapes, outputs: ArrayShapes) -> int | None:
        """Return the number of multiplications and additions, by the shapes."""
        n: int = inputs[self.entries][0]
        return n if self.factor is None else 2 * n * inputs[self.factor][1]


class StructuredDotCSR(_OfEntries):
    """The product of a CSR matrix and a dense one, from data, indices and indptr.

    A fifth input may give the number of columns, to be compared with the rows of b.
    """

    __props__ = ()
    profile_kind, factor = "product", 3

    def make_node(self, a_val: Var, a_ind: Var, a_ptr: Var, b: Var, a_ncols: Var = None) -> Apply:
        inputs = [a_val, a_ind, a_ptr, b, *([] if a_ncols is None else [a_ncols])]
        inputs = [as_tensor_variable(x) for x in inputs]
        return _product_node(self, inputs, inputs[0], inputs[3])

    def perform(self, node: Apply, inputs: Values, output_storage: Storage) -> None:
        a_val, a_ind, a_ptr, b, *ncols = inputs
        self.check_columns(a_ptr.shape, b.shape, *ncols)
        a = self.as_matrix(a_val, a_ind, a_ptr, b.shape)
        output_storage[0][0] = np.asarray(a * b, dtype=node.outputs[0].type.dtype)

    @staticmethod
    def check_columns(indptr: Sequence[int], b: Sequence[int], ncols: Any = None) -> None:
        """Raise ValueError unless the matrices can be multiplied.

        indptr, b: the shapes of these. ncols: the number of columns, if it is known.
        """
        if ncols is not None and ncols != b[0]:
            raise ValueError(
                f"shape mismatch: the sparse matrix has shape ({indptr[0] - 1}, {ncols}), the "
                f"dense one {tuple(b)}"
            )
        if not indptr[0]:
            raise ValueError("malformed sparse matrix: indptr is empty")

    @staticmethod
    def as_matrix(data: Any, indices: Any, indptr: Any, b: Sequence[int]) -> Any:
        """Return scipy's matrix; ValueError if the vectors do not describe one.

        b: the shape of the dense matrix.
        """
        return _matrix("csr", data, indices, indptr, (len(indptr) - 1, b[0]))

    def infer_shape(self, node: Apply, shapes: Sequence[Lengths]) -> Sequence[Lengths]:
        return [(shapes[2][0] - 1, shapes[3][1])]


def _product_node(op: Op, inputs: Any, a: Var, b: Var) -> Apply:
    out = tensor_type(upcast(a.type.dtype, b.type.dtype), (False, b.type.broadcastable[1]))
    return Apply(op, inputs, [out.make_variable()])


sd_csr = StructuredDotCSR()


class StructuredDotCSC(_OfEntries):
    """The product of a CSC matrix and a dense one, from data, indices, indptr and the number of
    rows."""

    __props__ = ()
    profile_kind, factor = "product", 4

    def make_node(self, a_val: Var, a_ind: Var, a_ptr: Var, a_nrows: Var, b: Var) -> Apply:
        inputs = [as_tensor_variable(x) for x in (a_val, a_ind, a_ptr, a_nrows, b)]
        return _product_node(self, inputs, inputs[0], inputs[4])

    def perform(self, node: Apply, inputs: Values, output_storage: Storage) -> None:
        a_val, a_ind, a_ptr, a_nrows, b = inputs
        a = _matrix("csc", a_val, a_ind, a_ptr, (int(a_nrows), b.shape[0]))
        output_storage[0][0] = np.asarray(a * b, dtype=node.outputs[0].type.dtype)

    def infer_shape(self, node: Apply, shapes: Sequence[Lengths]) -> Sequence[Lengths]:
        return [(node.inputs[3], shapes[4][1])]


sd_csc = StructuredDotCSC()


class CSRFromCSC(Op):
    """The data, indices and indptr of a CSC matrix as a CSR matrix.

    Inputs are those of the CSC matrix, and its numbers of rows and of columns. Entries that lie in
    one place stay apart.
    """

    __props__ = ()

    def make_node(self, data: Var, indices: Var, indptr: Var, nrows: Var, ncols: Var) -> Apply:
        inputs = [as_tensor_variable(x) for x in (data, indices, indptr, nrows, ncols)]
        dtypes = (inputs[0].type.dtype, "int32", "int32")
        return Apply(self, inputs, [tensor_type(d, (False,)).make_variable() for d in dtypes])

    def perform(self, node: Apply, inputs: Values, output_storage: Storage) -> None:
        data, indices, indptr, nrows, ncols = inputs
        found = _matrix("csc", data, indices, indptr, (int(nrows), int(ncols))).tocsr()
        for storage, vector, out in zip(
            output_storage, (found.data, found.indices, found.indptr), node.outputs, strict=True
        ):
            storage[0] = np.asarray(vector, dtype=out.type.dtype)


csr_from_csc = CSRFromCSC()


class _ProductGradient(_OfEntries):
    """The gradient by the data of a, of a times b, from the indices and indptr of a."""

    __props__ = ()
    profile_kind, factor = "product", 2
    format: str

    def make_node(self, a_indices: Var, a_indptr: Var, b: Var, g_ab: Var) -> Apply:
        inputs = [as_tensor_variable(x) for x in (a_indices, a_indptr, b, g_ab)]
        dtype = upcast(inputs[2].type.dtype, inputs[3].type.dtype)
        return Apply(self, inputs, [tensor_type(dtype, (False,)).make_variable()])

    def perform(self, node: Apply, inputs: Values, output_storage: Storage) -> None:
        a_indices, a_indptr, b, g = inputs
        if b.shape[1] != g.shape[1]:
            raise ValueError(
                f"shape mismatch: the dense operands have {b.shape[1]} and {g.shape[1]} columns"
            )
        rows, columns = _pattern(self.format, a_indices, a_indptr, (g.shape[0], b.shape[0]))
        found = np.einsum("ij,ij->i", g[rows], b[columns])
        out = node.outputs[0].type.dtype
        output_storage[0][0] = _filled(found, len(a_indices), out)

    infer_shape = shapes_of(0)


class StructuredDotGradCSC(_ProductGradient):
    """The gradient by the data of a CSC matrix a, of a times b, from its indices and indptr."""

    format = "csc"


class StructuredDotGradCSR(_ProductGradient):
    """The gradient by the data of a CSR matrix a, of a times b, from its indices and indptr."""

    format = "csr"


sdg_csc = StructuredDotGradCSC()
sdg_csr = StructuredDotGradCSR()


class UsmmCscDense(_OfEntries):
    """``alpha * dot(x, y) + z`` for a CSC matrix x and dense y and z. inplace: overwrite z."""

    __props__ = ("inplace",)
    profile_kind, entries, factor = "product", 1, 5

    def __init__(self, inplace: bool) -> None:
        self.inplace = inplace
        if inplace:
            self.destroy_map = {0: [6]}

    def make_node(
        self, alpha: Var, x_val: Var, x_ind: Var, x_ptr: Var, x_nrows: Var, y: Var, z: Var
    ) -> Apply:
        inputs = [as_tensor_variable(x) for x in (alpha, x_val, x_ind, x_ptr, x_nrows, y, z)]
        alpha, x_val, x_ind, x_ptr, x_nrows, y, z = inputs
        if not all(alpha.type.broadcastable) or (y.type.ndim, z.type.ndim) != (2, 2):
            raise AssertionError(
                f"{self} takes a number and matrices, not alpha of {alpha.type}, y of {y.type} and "
                f"z of {z.type}"
            )
        dtype = upcast(*(v.type.dtype for v in (alpha, x_val, y, z)))
        if dtype not in ("float32", "float64"):
            raise NotImplementedError(f"only float types are supported in operands, not {dtype}")
        if self.inplace and z.type.dtype != dtype:
            raise AssertionError(f"the result, {dtype}, cannot overwrite z of {z.type}")
        alpha, x_val, y, z = (cast(v, dtype) for v in (alpha, x_val, y, z))
        out = tensor_type(dtype, z.type.broadcastable if self.inplace else (False, False))
        return Apply(self, [alpha, x_val, x_ind, x_ptr, x_nrows, y, z], [out.make_variable()])

    def perform(self, node: Apply, inputs: Values, output_storage: Storage) -> None:
        alpha, x_val, x_ind, x_ptr, x_nrows, y, z = inputs
        x = _matrix("csc", x_val, x_ind, x_ptr, (int(x_nrows), y.shape[0]))
        if z.shape != (x.shape[0], y.shape[1]):
            raise ValueError(
                f"shape mismatch: z has shape {z.shape} but the product has "
                f"{(x.shape[0], y.shape[1])}"
            )
        if not self.inplace:
            z = z.copy()
        z += alpha.reshape(()) * (x * y)
        output_storage[0][0] = z

    infer_shape = shapes_of(6)

    def __str__(self) -> str:
        return f"{type(self).__name__}{{{'inplace' if self.inplace else 'no_inplace'}}}"


usmm_csc_dense = UsmmCscDense(inplace=False)
usmm_csc_dense_inplace = UsmmCscDense(inplace=True)


class AddSD_ccode(_OfEntries):
    """The sum of a sparse and a dense matrix y. format: of the sparse one. inplace: overwrite y."""

    __props__ = ("format", "inplace")

    def __init__(self, format: str, inplace: bool = False) -> None:
        self.format = format
        self.inplace = inplace
        if inplace:
            self.destroy_map = {0: [3]}

    def make_node(self, x: Var, y: Var) -> Apply:
        x, y = as_sparse_variable(x), as_tensor_variable(y)
        if x.type.format != self.format or y.type.ndim != 2:
            raise AssertionError(
                f"{self} takes a matrix of format {self.format} and a dense one, not {x.type} and "
                f"{y.type}"
            )
        dtype = upcast(x.type.dtype, y.type.dtype)
        if self.inplace and dtype != y.type.dtype:
            raise AssertionError(f"the result, {dtype}, cannot overwrite y of {y.type}")
        out = tensor_type(dtype, y.type.broadcastable)
        inputs = [csm_data(x), csm_indices(x), csm_indptr(x), y]
        return Apply(self, inputs, [out.make_variable()])

    def perform(self, node: Apply, inputs: Values, output_storage: Storage) -> None:
        data, indices, indptr, y = inputs
        at = _pattern(self.format, indices, indptr, y.shape)
        z = y if self.inplace else y.astype(node.outputs[0].type.dtype, copy=True)
        np.add.at(z, at, data[: len(at[0])])
        output_storage[0][0] = z

    infer_shape = shapes_of(3)

    def __str__(self) -> str:
        return f"{type(self).__name__}{{{self.format}{',inplace' if self.inplace else ''}}}"


class CSMGradC(CSMGrad):
    """As CSMGrad."""

    infer_shape = shapes_of(1)


csm_grad_c = CSMGradC()


class _WithDense(_OfEntries):
    """The data of a compressed matrix, each combined with an element of a dense operand."""

    __props__ = ()
    #: the number of dimensions of the dense operand
    ndim = 2

    def make_node(self, a_data: Var, a_indices: Var, a_indptr: Var, b: Var) -> Apply:
        inputs = [as_tensor_variable(x) for x in (a_data, a_indices, a_indptr, b)]
        data, b = inputs[0], inputs[3]
        if data.type.ndim != 1 or b.type.ndim != self.ndim:
            raise AssertionError(
                f"{self} takes the data of a matrix and an operand of {self.ndim} dimensions, not "
                f"{data.type} and {b.type}"
            )
        dtype = upcast(data.type.dtype, b.type.dtype)
        return Apply(self, inputs, [tensor_type(dtype, (False,)).make_variable()])

    def perform(self, node: Apply, inputs: Values, output_storage: Storage) -> None:
        data, indices, indptr, b = inputs
        entries = slice(int(indptr[-1]))
        found = self.combined(data[entries], self.chosen(indices, indptr, b))
        out = node.outputs[0].type.dtype
        output_storage[0][0] = _filled(found, len(indices), out)

    def chosen(self, indices: np.ndarray, indptr: np.ndarray, b: np.ndarray) -> Any:
        """Return the element of ``b`` for each entry."""
        raise NotImplementedError

    def combined(self, data: np.ndarray, chosen: np.ndarray) -> Any:
        """Return the new data."""
        return data * chosen

    infer_shape = shapes_of(1)


class MulSDCSC(_WithDense):
    """The data of a CSC matrix times the elements of a dense matrix at the same places."""

    format = "csc"

    def chosen(self, indices: np.ndarray, indptr: np.ndarray, b: np.ndarray) -> Any:
        return b[_pattern(self.format, indices, indptr, b.shape)]


class MulSDCSR(MulSDCSC):
    """The data of a CSR matrix times the elements of a dense matrix at the same places."""

    format = "csr"


mul_s_d_csc = MulSDCSC()
mul_s_d_csr = MulSDCSR()


class MulSVCSR(_WithDense):
    """The data of a CSR matrix times the element of a vector for their column."""

    ndim = 1

    def chosen(self, indices: np.ndarray, indptr: np.ndarray, b: np.ndarray) -> Any:
        return b[_pattern("csr", indices, indptr, (len(indptr) - 1, len(b)))[1]]


class StructuredAddSVCSR(MulSVCSR):
    """The data of a CSR matrix plus the element of a vector for their column."""

    def combined(self, data: np.ndarray, chosen: np.ndarray) -> Any:
        return data + chosen


class MulSVRows(MulSVCSR):
    """The data of a CSR matrix times the element of a vector for their row.

    Columns for rows, it is the same for a CSC matrix.
    """

    def chosen(self, indices: np.ndarray, indptr: np.ndarray, b: np.ndarray) -> Any:
        if len(indptr) != len(b) + 1:
            raise ValueError(
                f"dimension mismatch: the vector has {len(b)} elements, indptr has {len(indptr)}"
            )
        return b[rows_of_entries(indptr)]


mul_s_v_csr = MulSVCSR()
structured_add_s_v_csr = StructuredAddSVCSR()
mul_s_v_rows = MulSVRows()


class SamplingDotCSR(_OfEntries):
    """The data, indices and indptr of p times the product of x with y transposed; p is CSR."""

    __props__ = ()
    profile_kind, entries, factor = "product", 2, 0

    def make_node(self, x: Var, y: Var, p_data: Var, p_ind: Var, p_ptr: Var, p_ncols: Var) -> Apply:
        inputs = [as_tensor_variable(v) for v in (x, y, p_data, p_ind, p_ptr, p_ncols)]
        x, y, p_data, p_ind, p_ptr, p_ncols = inputs
        factors = upcast(x.type.dtype, y.type.dtype)
        dtype = upcast(factors, p_data.type.dtype)
        outs = [tensor_type(d, (False,)) for d in (dtype, p_ind.type.dtype, p_ptr.type.dtype)]
        inputs = [cast(x, factors), cast(y, factors), p_data, p_ind, p_ptr, p_ncols]
        return Apply(self, inputs, [t.make_variable() for t in outs])

    def perform(self, node: Apply, inputs: Values, output_storage: Storage) -> None:
        x, y, p_data, p_ind, p_ptr, p_ncols = inputs
        if x.shape[1] != y.shape[1] or y.shape[0] != p_ncols:
            raise ValueError(
                f"shape mismatch: x {x.shape}, y {y.shape} and p with {p_ncols} columns must be "
                "(m, k), (n, k) and (m, n)"
            )
        rows, columns = _pattern("csr", p_ind, p_ptr, (x.shape[0], y.shape[0]))
        found = p_data[: len(rows)] * np.einsum("ij,ij->i", x[rows], y[columns])
        out = node.outputs[0].type.dtype
        output_storage[0][0] = _filled(found, len(p_ind), out)
        output_storage[1][0] = p_ind.copy()
        output_storage[2][0] = p_ptr.copy()

    infer_shape = shapes_of(3, 3, 4)


sampling_dot_csr = SamplingDotCSR()
