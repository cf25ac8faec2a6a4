"""Rules on sparse Ops: they become Ops over the vectors of compressed matrices, which run in C.

``opwise.sparse`` loads this module: graphs without sparse matrices need none of these rules. A rule
leaves an Apply whose dtypes have no C implementation to scipy.
"""

from __future__ import annotations

from typing import Any

from opwise.graph.apply import Apply
from opwise.graph.fgraph import FunctionGraph
from opwise.graph.variable import Var
from opwise.optimizers.rule import Replacements, rule
from opwise.optimizers.rules.matching import is_private, operands
from opwise.scalar.dtypes import upcast
from opwise.sparse.arithmetic import AddSD, AddSSData, MulSD, MulSV, Neg, StructuredAddSV
from opwise.sparse.compressed import (
    AddSD_ccode,
    StructuredDotCSC,
    UsmmCscDense,
    csm_grad_c,
    csr_from_csc,
    mul_s_d_csc,
    mul_s_d_csr,
    mul_s_v_csr,
    mul_s_v_rows,
    sampling_dot_csr,
    sd_csc,
    sd_csr,
    structured_add_s_v_csr,
    usmm_csc_dense,
    usmm_csc_dense_inplace,
)
from opwise.sparse.convert import Cast, DenseFromSparse, Remove0, SparseFromDense, Transpose
from opwise.sparse.products import Dot, SamplingDot, StructuredDot, Usmm, usmm
from opwise.sparse.reduce import ColScaleCSC, RowScaleCSC, SpSum
from opwise.sparse.type import SparseType
from opwise.sparse.vectors import CSM, CSMGrad, CSMProperties, csm_properties
from opwise.tensor.creation import alloc
from opwise.tensor.dimshuffle import dimshuffle
from opwise.tensor.elemwise import cast, elemwise
from opwise.tensor.reduce import sum as sum_of
from opwise.tensor.shape import patternbroadcast, shape_i
from opwise.tensor.variable import constant

#: dtypes of the C implementations
_FLOATS = ("float32", "float64")


def _is_sparse(var: Any) -> bool:
    return isinstance(var.type, SparseType)


def _is_compressed(var: Any) -> bool:
    return _is_sparse(var) and var.type.format in ("csr", "csc")


def _typed(node: Apply, new: Any) -> list[Any] | None:
    """Return the replacement for the only output of an Apply, with its broadcast pattern."""
    out = node.outputs[0].type
    if not isinstance(out, SparseType):
        new = patternbroadcast(new, out.broadcastable)
    return [new] if new.type == out else None


# --- matrices and their vectors -------------------------------------------------------------------


@rule(CSMProperties, stage=("specialize", "specialize_device"))
def local_csm_properties_csm(fgraph: FunctionGraph, node: Apply) -> Replacements:
    """The vectors of a matrix made of vectors are those vectors."""
    made = node.inputs[0].owner
    if made is None or not isinstance(made.op, CSM):
        return None
    vectors = [
        patternbroadcast(cast(x, out.type.dtype), out.type.broadcastable)
        for x, out in zip(made.inputs, node.outputs, strict=True)
    ]
    return vectors if all(_fits(made, i) for i in range(1, 3)) else None


def _fits(made: Apply, i: int) -> bool:
    """Return whether an index vector of a CSM fits into int32, whatever its values."""
    return upcast(made.inputs[i].type.dtype, "int32") == "int32"


@rule(
    DenseFromSparse,
    stage={"canonicalize": ("fast_run", "fast_compile"), "specialize": ("fast_run",)},
)
def local_dense_from_sparse_sparse_from_dense(fgraph: FunctionGraph, node: Apply) -> Replacements:
    """A dense matrix made sparse and dense again is that matrix."""
    made = node.inputs[0].owner
    if made is None or not isinstance(made.op, SparseFromDense):
        return None
    return _typed(node, made.inputs[0])


@rule(CSMGrad, stage="specialize")
def local_csm_grad_c(fgraph: FunctionGraph, node: Apply) -> Replacements:
    """The gradient by data, in C."""
    if type(node.op) is not CSMGrad or node.outputs[0].type.dtype not in _FLOATS:
        return None
    if node.inputs[0].type.dtype != node.inputs[4].type.dtype:
        return None
    return _typed(node, csm_grad_c(*node.inputs))


# --- elementwise work on the entries --------------------------------------------------------------


def _with_data(node: Apply, x: Any, change: Any) -> list[Any] | None:
    """Return ``x`` with other data as the replacement; change: a function of its four vectors."""
    if not _is_compressed(x):
        return None
    data, indices, indptr, shape = csm_properties(x)
    changed = change(data, indices, indptr, shape)
    return _typed(node, CSM(x.type.format)(changed, indices, indptr, shape))


@rule(Neg, Cast, stage="specialize")
def local_entries(fgraph: FunctionGraph, node: Apply) -> Replacements:
    """A matrix negated or cast is one with its data negated or cast, which may be fused."""
    (x,) = node.inputs
    if isinstance(node.op, Neg):
        return _with_data(node, x, lambda data, *_: elemwise("neg")(data))
    if {x.type.dtype, node.op.out_type} - {*_FLOATS, "int8", "int16", "int32", "int64"}:
        return None
    return _with_data(node, x, lambda data, *_: cast(data, node.op.out_type))


@rule(MulSD, stage="specialize")
def local_mul_s_d(fgraph: FunctionGraph, node: Apply) -> Replacements:
    """A matrix times a dense matrix or number is one with its data multiplied."""
    x: Var
    x, y = node.inputs
    dtype = node.outputs[0].type.dtype
    if dtype not in _FLOATS:
        return None
    if y.type.ndim == 0:
        return _with_data(node, x, lambda data, *_: cast(data, dtype) * cast(y, dtype))
    op = mul_s_d_csc if x.type.format == "csc" else mul_s_d_csr
    return _with_data(
        node, x, lambda data, ind, ptr, _: op(cast(data, dtype), ind, ptr, cast(y, dtype))
    )


@rule(MulSV, stage="specialize")
def local_mul_s_v(fgraph: FunctionGraph, node: Apply) -> Replacements:
    """A matrix with its columns scaled is one with its data scaled."""
    x: Var
    x, y = node.inputs
    if x.type.dtype not in _FLOATS:
        return None
    op = mul_s_v_csr if x.type.format == "csr" else mul_s_v_rows
    return _with_data(node, x, lambda data, ind, ptr, _: op(data, ind, ptr, y))


@rule(StructuredAddSV, stage="specialize")
def local_structured_add_s_v(fgraph: FunctionGraph, node: Apply) -> Replacements:
    """A CSR matrix plus a vector is one with its data changed."""
    x: Var
    x, y = node.inputs
    if x.type.dtype not in _FLOATS or x.type.format != "csr":
        return None
    return _with_data(node, x, lambda data, ind, ptr, _: structured_add_s_v_csr(data, ind, ptr, y))


@rule(ColScaleCSC, RowScaleCSC, stage="specialize")
def local_scale(fgraph: FunctionGraph, node: Apply) -> Replacements:
    """A CSC matrix with its columns or rows scaled is one with its data scaled."""
    x: Var
    s: Var
    x, s = node.inputs
    if x.type.format != "csc" or x.type.dtype not in _FLOATS or s.type.dtype != x.type.dtype:
        return None
    # a CSC matrix is compressed along its columns, which take the place of rows
    op = mul_s_v_rows if isinstance(node.op, ColScaleCSC) else mul_s_v_csr
    return _with_data(node, x, lambda data, ind, ptr, _: op(data, ind, ptr, s))


@rule(AddSSData, stage="specialize")
def local_add_s_s_data(fgraph: FunctionGraph, node: Apply) -> Replacements:
    """The sum of two matrices of one pattern has the sum of their data."""
    x, y = node.inputs
    if x.type.dtype not in _FLOATS:
        return None
    return _with_data(node, x, lambda data, *_: data + csm_properties(y)[0])


@rule(SpSum, stage="specialize")
def local_sp_sum(fgraph: FunctionGraph, node: Apply) -> Replacements:
    """The sum of all elements is that of the data; sums along an axis are products with ones."""
    x: Var
    (x,) = node.inputs
    if x.type.dtype not in _FLOATS or not _is_compressed(x):
        return None
    if node.op.axis is None:
        return _typed(node, sum_of(csm_properties(x)[0]))
    summed: Var = x if node.op.axis == 1 else x.T
    one = constant(1, dtype=x.type.dtype)
    ones = alloc(one, summed.shape[1], 1)
    return _typed(node, dimshuffle(patternbroadcast(_product(summed, ones), (False, True)), (0,)))


# --- products -------------------------------------------------------------------------------------


def _vectors(x: Any) -> tuple[Any, Any, Any, Any, Any]:
    """Return (data, indices, indptr, number of rows, number of columns) of a matrix.

    A transpose has the vectors of its matrix.
    """
    is_transposed = x.owner is not None and isinstance(x.owner.op, Transpose)
    *vectors, shape = csm_properties(x.owner.inputs[0] if is_transposed else x)
    lengths = (shape[1], shape[0]) if is_transposed else (shape[0], shape[1])
    return *vectors, *lengths


def _product(x: Any, y: Any) -> Any:
    """Return the product of a sparse and a dense matrix of float dtypes, to run in C."""
    dtype = upcast(x.type.dtype, y.type.dtype)
    data, indices, indptr, rows, columns = _vectors(x)
    data, y = cast(data, dtype), cast(y, dtype)
    if x.type.format == "csr":
        return sd_csr(data, indices, indptr, y, columns)
    return sd_csc(data, indices, indptr, rows, y)


@rule(StructuredDot, Dot, stage="specialize_device")
def local_structured_dot(fgraph: FunctionGraph, node: Apply) -> Replacements:
    """A product of a sparse and a dense operand runs in C."""
    y: Var
    x: Var
    x, y = node.inputs
    if _is_sparse(x) == _is_sparse(y) or node.outputs[0].type.dtype not in _FLOATS:
        return None
    dense: Var
    sparse: Var
    sparse, dense = (x, y) if _is_sparse(x) else (y, x)
    if not _is_compressed(sparse):
        return None
    if dense.type.ndim == 1:
        column = dimshuffle(dense, (0, "x"))
        product = _product(sparse if sparse is x else sparse.T, column)
        return _typed(node, dimshuffle(patternbroadcast(product, (False, True)), (0,)))
    if sparse is x:
        return _typed(node, _product(x, y))
    return _typed(node, dimshuffle(_product(y.T, dimshuffle(x, (1, 0))), (1, 0)))


@rule(StructuredDotCSC, UsmmCscDense, stage="sparse_products_on_device")
def csc_product_on_device(fgraph: FunctionGraph, node: Apply) -> Replacements:
    """A product with a CSC matrix is one with a CSR matrix, whose rows the device sums."""
    alpha: Var
    if isinstance(node.op, UsmmCscDense):
        alpha, *vectors, y, z = node.inputs
    else:
        *vectors, y = node.inputs
    product = sd_csr(*csr_from_csc(*vectors, shape_i(y, 0, fgraph)), y)
    if isinstance(node.op, UsmmCscDense):
        scale = dimshuffle(alpha, ["x"] * (2 - alpha.type.ndim) + list(range(alpha.type.ndim)))
        product = z + scale * product
    return _typed(node, product)


@rule("row:sub", "row:add", stage="specialize")
def local_usmm(fgraph: FunctionGraph, node: Apply) -> Replacements:
    """z - a dot(x, y), of a number a, is one Usmm; so is a sum of these."""
    if len(node.inputs) != 2 or node.op.inplace_pattern:
        return None
    is_sum = node.op.row_name == "add"
    for z, term in (node.inputs, node.inputs[::-1]) if is_sum else (node.inputs,):
        product, factors = _scaled_product(term)
        if product is None or z.type.ndim != 2:
            continue
        alpha = factors if is_sum else elemwise("neg")(factors)
        return _typed(node, usmm(alpha, *product.inputs, z))
    return None


def _scaled_product(var: Any) -> tuple[Any, Any]:
    """Return (Apply of Dot, number) of which a variable is the product; (None, None) if not."""
    one = constant(1, dtype=var.type.dtype, ndim=2)
    pairs = [(var, one)]
    factors = operands(var, "mul")
    if factors is not None and len(factors) == 2:
        pairs += [(factors[0], factors[1]), (factors[1], factors[0])]
    for product, alpha in pairs:
        node = product.owner
        if node is None or not isinstance(node.op, Dot) or not is_private(product):
            continue
        if all(v.type.ndim == 2 for v in node.inputs) and all(alpha.type.broadcastable):
            return node, alpha
    return None, None


@rule(Usmm, stage="specialize")
def local_usmm_csx(fgraph: FunctionGraph, node: Apply) -> Replacements:
    """Usmm of a CSC and a dense matrix runs in C; with a CSR matrix, its product and sum do."""
    x: Var
    alpha: Var
    alpha, x, y, z = node.inputs
    dtype = node.outputs[0].type.dtype
    if not _is_compressed(x) or _is_sparse(y) or dtype not in _FLOATS:
        return None
    if x.type.format == "csr":
        scale = dimshuffle(alpha, ["x"] * (2 - alpha.type.ndim) + list(range(alpha.type.ndim)))
        return _typed(node, cast(z, dtype) + cast(scale, dtype) * cast(_product(x, y), dtype))
    data, indices, indptr, rows, _ = _vectors(x)
    return _typed(node, usmm_csc_dense(alpha, data, indices, indptr, rows, y, z))


@rule(UsmmCscDense, stage="local_inplace_addsd_ccode")
def local_usmm_csc_dense_inplace(fgraph: FunctionGraph, node: Apply) -> Replacements:
    """The sum overwrites z."""
    if node.op.inplace:
        return None
    return _typed(node, usmm_csc_dense_inplace(*node.inputs))


@rule(SamplingDot, stage="specialize")
def local_sampling_dot_csr(fgraph: FunctionGraph, node: Apply) -> Replacements:
    """A product at the entries of a CSR matrix runs in C."""
    p: Var
    x, y, p = node.inputs
    dtype = p.type.dtype
    if p.type.format != "csr" or dtype not in _FLOATS:
        return None
    if upcast(x.type.dtype, y.type.dtype, dtype) != dtype:
        return None
    data, indices, indptr, shape = csm_properties(p)
    found = sampling_dot_csr(cast(x, dtype), cast(y, dtype), data, indices, indptr, shape[1])
    return _typed(node, CSM("csr")(*found, shape))


# --- in place -------------------------------------------------------------------------------------


@rule(Remove0, stage="local_inplace_remove0")
def local_inplace_remove0(fgraph: FunctionGraph, node: Apply) -> Replacements:
    """Zeros are removed from the matrix itself."""
    return None if node.op.inplace else [Remove0(inplace=True)(*node.inputs)]


@rule(AddSD, stage="local_inplace_addsd_ccode")
def local_inplace_addsd_ccode(fgraph: FunctionGraph, node: Apply) -> Replacements:
    """A sparse matrix is added to the dense matrix itself."""
    x: Var
    x, y = node.inputs
    if not _is_compressed(x) or upcast(x.type.dtype, y.type.dtype) != y.type.dtype:
        return None
    return _typed(node, AddSD_ccode(format=x.type.format, inplace=True)(x, y))


@rule(AddSD, stage="local_addsd_ccode")
def local_addsd_ccode(fgraph: FunctionGraph, node: Apply) -> Replacements:
    """A sparse matrix is added to a copy of the dense one, in C."""
    x: Var
    (x, _) = node.inputs
    if not _is_compressed(x):
        return None
    return _typed(node, AddSD_ccode(format=x.type.format)(*node.inputs))
