"""The lowering of products with sparse matrices, whose vectors lie on the device."""

from __future__ import annotations

from opwise.gpu.kernels.kernel import Implementation
from opwise.gpu.kernels.lowerings.operands import dtypes_of
from opwise.gpu.kernels.sparse import RowsTimesDense
from opwise.gpu.lowering import lowers_to_kernels
from opwise.graph.apply import Apply
from opwise.sparse.compressed import StructuredDotCSR

_COLUMNS = 4


@lowers_to_kernels(StructuredDotCSR)
def lower_csr_product(node: Apply) -> Implementation | str:
    op = node.op
    data, indices, indptr, b = dtypes_of(node.inputs[:_COLUMNS])
    if data not in ("float32", "float64") or b != data:
        return f"there is no kernel for a sparse matrix of {data} times one of {b}"
    if not {indices, indptr} <= {"int32", "int64"}:
        return f"there is no kernel for a sparse matrix with indices of {indices}, {indptr}"
    product = RowsTimesDense(data, indices, indptr)

    def shapes(inputs):
        _, _, indptr, b, *columns = inputs
        op.check_columns(indptr.shape, b.shape, *columns)
        return [(indptr.shape[0] - 1, b.shape[1])]

    def plan(inputs, outputs, limits):
        return product.plan(inputs[:_COLUMNS], outputs[0].shape, limits)

    def wrong(position, inputs):
        data, indices, indptr, b, *_ = inputs
        try:
            op.as_matrix(data, indices, indptr, b.shape)
        except ValueError as error:
            return error
        return ValueError("malformed sparse matrix: its indices point outside of it")

    host = tuple(range(_COLUMNS, len(node.inputs)))
    return Implementation(product.kernels, shapes, plan, host, wrong=wrong, error_inputs=(0, 1, 2))
