"""Sparse matrices and the dense vectors that hold them: data, indices, indptr and shape."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from opwise.graph.apply import Apply
from opwise.graph.null import disconnected_type, is_disconnected
from opwise.graph.op import Lengths, Op, Storage, Values
from opwise.graph.opmethods import connects, shapes_of
from opwise.graph.variable import Var, Variable
from opwise.sparse.type import SparseType, check_structure
from opwise.sparse.variable import as_compressed, as_sparse_variable, discrete_dtypes
from opwise.tensor.creation import ones_like, zeros_like
from opwise.tensor.type import tensor_type
from opwise.tensor.variable import Tensor, as_tensor_variable

_INT32 = np.iinfo(np.int32)


class CSMProperties(Op):
    """The data, indices, indptr and shape of a CSR or CSC matrix, as vectors.

    data has the dtype of the matrix, the other three are int32. data and indices have an element
    for each entry, indptr one more than there are rows (CSR) or columns (CSC), shape two. The first
    three are views of the matrix where it holds them so. The gradient by the matrix has its
    sparsity pattern. Raises TypeError unless csm is sparse, AssertionError for a BSR matrix.
    """

    __props__ = ()
    view_map = {0: [0], 1: [0], 2: [0]}

    def __init__(self, kmap: np.ndarray | None = None) -> None:
        refuse_kmap(kmap)

    def make_node(self, csm: Var) -> Apply:
        csm = as_compressed(csm)
        outs = [tensor_type(dtype, (False,)) for dtype in (csm.type.dtype, *["int32"] * 3)]
        return Apply(self, [csm], [t.make_variable() for t in outs])

    def perform(self, node: Apply, inputs: Values, output_storage: Storage) -> None:
        (csm,) = inputs
        output_storage[0][0] = np.asarray(csm.data, dtype=node.outputs[0].type.dtype)
        for k, found in enumerate((csm.indices, csm.indptr, csm.shape), start=1):
            output_storage[k][0] = _as_int32(found)

    def grad(self, inputs: Sequence[Var], output_gradients: Sequence[Var]) -> Sequence[Var]:
        (csm,) = inputs
        g_data = output_gradients[0]
        if is_disconnected(g_data):
            return [csm.zeros_like()]
        _, indices, indptr, shape = csm_properties(csm)
        return [CSM(csm.type.format)(g_data, indices, indptr, shape)]


def refuse_kmap(kmap: Any) -> None:
    """Raise the Exception of Theano for an argument that it no longer takes."""
    if kmap is not None:
        raise Exception("Do not use kmap, it is removed")


def _as_int32(values: Any) -> np.ndarray:
    """Return integers as an int32 array, and the array itself if it is one."""
    found = np.asarray(values)
    if found.dtype == np.int32:
        return found
    if found.size and (found.max() > _INT32.max or found.min() < _INT32.min):
        raise ValueError(
            f"the matrix is too large: its indices, up to {found.max()}, do not fit into int32"
        )
    return found.astype(np.int32)


csm_properties = CSMProperties()


def csm_data(csm: Any) -> Any:
    """Return the stored entries of a CSR or CSC matrix, a vector of its dtype.

    Its shape is (number of entries,). Raises TypeError unless csm is sparse, AssertionError for a
    BSR matrix.
    """
    return csm_properties(csm)[0]


def csm_indices(csm: Any) -> Any:
    """Return the column (CSR) or row (CSC) of each stored entry, an int32 vector.

    Its shape is (number of entries,). Raises TypeError unless csm is sparse, AssertionError for a
    BSR matrix.
    """
    return csm_properties(csm)[1]


def csm_indptr(csm: Any) -> Any:
    """Return where the entries of each row (CSR) or column (CSC) begin, and the last ones end.

    It is an int32 vector of shape (rows + 1,) or (columns + 1,). Raises TypeError unless csm is
    sparse, AssertionError for a BSR matrix.
    """
    return csm_properties(csm)[2]


def csm_shape(csm: Any) -> Any:
    """Return the shape of a CSR or CSC matrix, an int32 vector of two elements.

    Raises TypeError unless csm is sparse, AssertionError for a BSR matrix.
    """
    return csm_properties(csm)[3]


class CSM(Op):
    """The sparse matrix, in format 'csr' or 'csc', of these data, indices, indptr and shape.

    It has the dtype of data, which are not copied. Raises TypeError unless they are vectors, the
    last three of integers, AssertionError for lists of others; ValueError at run time if the
    vectors do not describe a matrix.
    """

    __props__ = ("format",)
    view_map = {0: [0]}

    def __init__(self, format: str, kmap: np.ndarray | None = None) -> None:
        if format not in ("csr", "csc"):
            raise ValueError(f"format must be one of: 'csr', 'csc', not {format!r}")
        self.format = format
        refuse_kmap(kmap)

    def make_node(self, data: Var, indices: Var, indptr: Var, shape: Any) -> Apply:
        data = as_tensor_variable(data)
        if data.type.ndim != 1:
            raise TypeError(f"data argument must be a vector, not {data} of {data.type}")
        parts = [
            _index_vector(x, what)
            for x, what in ((indices, "indices"), (indptr, "indptr"), (shape, "shape"))
        ]
        out = SparseType(format=self.format, dtype=data.type.dtype)
        return Apply(self, [data, *parts], [out.make_variable()])

    def perform(self, node: Apply, inputs: Values, output_storage: Storage) -> None:
        data, indices, indptr, shape = inputs
        if len(shape) != 2:
            raise ValueError(f"Shape should be an array of length 2, not {shape}")
        if data.shape != indices.shape:
            raise ValueError(
                f"Data (shape {data.shape}) must have the same number of elements as indices "
                f"(shape {indices.shape})"
            )
        made = SparseType.format_cls[self.format](
            (data, indices.copy(), indptr.copy()), shape=tuple(int(n) for n in shape), copy=False
        )
        check_structure(made)
        output_storage[0][0] = made

    connection_pattern = connects(0)

    def grad(self, inputs: Sequence[Var], output_gradients: Sequence[Var]) -> Sequence[Var]:
        g_data = csm_grad()(*inputs, *csm_properties(output_gradients[0]))
        return [g_data, *(disconnected_type.make_variable() for _ in range(3))]

    def infer_shape(self, node: Apply, shapes: Sequence[Lengths]) -> Sequence[Lengths]:
        shape: Var = node.inputs[3]
        return [(shape[0], shape[1])]


def _index_vector(x: Any, what: str) -> Tensor:
    """Return a vector of integers as a variable: int32 unless it is a variable already."""
    if not isinstance(x, Variable):
        given = np.asarray(x)
        x = given.astype(np.int32)
        if not np.array_equal(x, given):
            raise AssertionError(f"{what} must be integers that fit into int32, not {given}")
    vector = as_tensor_variable(x)
    if vector.type.ndim != 1 or vector.type.dtype not in discrete_dtypes:
        raise TypeError(f"{what} must be vector of integers, not {vector} of {vector.type}")
    return vector


CSC = CSM("csc")
CSR = CSM("csr")


class CSMGrad(Op):
    """The gradient by the data of a matrix, given the gradient by the matrix.

    Inputs: the data, indices, indptr and shape of the matrix, and those of the gradient. An entry
    of the matrix gets the gradient at its place, which may lie elsewhere or be missing in there.
    """

    __props__ = ()

    def __init__(self, kmap: np.ndarray | None = None) -> None:
        refuse_kmap(kmap)

    def make_node(
        self,
        x_data: Var,
        x_indices: Var,
        x_indptr: Var,
        x_shape: Var,
        g_data: Var,
        g_indices: Var,
        g_indptr: Var,
        g_shape: Var,
    ) -> Apply:
        inputs = [x_data, x_indices, x_indptr, x_shape, g_data, g_indices, g_indptr, g_shape]
        inputs = [as_tensor_variable(x) for x in inputs]
        return Apply(self, inputs, [tensor_type(inputs[4].type.dtype, (False,)).make_variable()])

    def perform(self, node: Apply, inputs: Values, output_storage: Storage) -> None:
        x_data, x_indices, x_indptr, _, g_data, g_indices, g_indptr, _ = inputs
        found = np.zeros(x_data.shape, dtype=node.outputs[0].type.dtype)
        wanted = places(x_indices, x_indptr)
        given, where = np.unique(places(g_indices, g_indptr), return_inverse=True)
        sums = np.zeros(len(given) + 1, dtype=found.dtype)
        np.add.at(sums, where, g_data[: len(where)])
        at = np.searchsorted(given, wanted)
        at[at == len(given)] = -1
        present = np.append(given, -1)[at] == wanted
        found[: len(wanted)][present] = sums[at[present]]
        output_storage[0][0] = found

    infer_shape = shapes_of(1)


def rows_of_entries(indptr: np.ndarray) -> np.ndarray:
    """Return the row (CSR) or column (CSC) of each entry, an int64 vector."""
    return np.repeat(np.arange(len(indptr) - 1), np.diff(indptr))


def places(indices: np.ndarray, indptr: np.ndarray) -> np.ndarray:
    """Return one int64 number for each entry, equal for entries in the same place."""
    rows = rows_of_entries(indptr)
    numbers: np.ndarray = rows * (1 << 31) + indices[: len(rows)]
    return numbers


csm_grad = CSMGrad


def sp_ones_like(x: Any) -> Any:
    """Return a matrix with the entries of ``x``, all of them 1, of its shape, format and dtype.

    Raises TypeError unless x is sparse, AssertionError for a BSR matrix.
    """
    x = as_sparse_variable(x)
    data, indices, indptr, shape = csm_properties(x)
    return CSM(x.type.format)(ones_like(data), indices, indptr, shape)


def sp_zeros_like(x: Any, dtype: Any = None) -> Any:
    """Return a matrix of the shape and format of ``x`` without entries.

    dtype: its dtype (default: that of x). Raises TypeError unless x is sparse or if dtype is no
    dtype, AssertionError for a BSR matrix, NotImplementedError for a dtype that sparse matrices
    cannot have.
    """
    x = as_sparse_variable(x)
    _, _, indptr, shape = csm_properties(x)
    data = np.empty(0, dtype=dtype or x.type.dtype)
    return CSM(x.type.format)(data, np.empty(0, dtype=np.int32), zeros_like(indptr), shape)
