"""The kernel of the product of a CSR matrix and a dense one: a thread adds up one element."""

from __future__ import annotations

import math

from opwise.gpu.kernels import cudatext, layouts
from opwise.gpu.kernels.cudatext import count_type, for_each, index_type, stored
from opwise.gpu.kernels.kernel import (
    THREADS,
    Array,
    DeviceLimits,
    ForBothWidths,
    Launch,
    Layout,
    Plan,
    grid_of,
    in_braces,
    make_kernel,
    with_head,
)


class RowsTimesDense(ForBothWidths):
    """The product of a CSR matrix, given as data, indices and indptr, and a dense matrix.

    The entries of a row are added in their order. The kernel reports indices that point outside of
    the matrix.
    """

    def __init__(self, dtype: str, indices: str, indptr: str) -> None:
        """dtype: that of the data, the dense matrix and the product; indices, indptr: of these."""
        self.dtypes = (dtype, indices, indptr)

    def _text(self, wide):
        index, (dtype, *_) = index_type(wide), self.dtypes
        body = for_each(wide, [
            f"const {index} row = ({count_type(wide)})i / columns;",
            f"const {index} column = i - row * columns;",
            "const ow_i64 start = indptr[row * indptr_step];",
            "const ow_i64 end = indptr[(row + 1) * indptr_step];",
            f"{stored(dtype)} sum = 0;",
            *with_head("if (start < 0 || end < start || end > entries)", in_braces([
                "ow_complain(wrong, i);",
                "continue;",
            ])),
            *with_head("for (ow_i64 k = start; k < end; k++)", in_braces([
                "const ow_i64 at = indices[k * indices_step];",
                *with_head("if (at < 0 || at >= length)", in_braces([
                    "ow_complain(wrong, i);",
                    "break;",
                ])),
                "sum += data[k * data_step] * b[at * b_row + column * b_column];",
            ])),
            "z[i] = sum;",
        ])  # fmt: skip
        arrays = zip(("data", "indices", "indptr", "b"), (*self.dtypes, dtype), strict=True)
        steps = ("data_step", "indices_step", "indptr_step", "b_row", "b_column")
        parameters = [
            *((f"const {stored(d)} *__restrict__", name) for name, d in arrays),
            (f"{stored(dtype)} *__restrict__", "z"), ("ow_u32 *", "wrong"),
            (index, "n"), (index, "columns"), ("ow_i64", "entries"), ("ow_i64", "length"),
            *(("ow_i64", step) for step in steps),
        ]  # fmt: skip
        return make_kernel("csr_product", parameters, body, cudatext.support("complain"), wide)

    def plan(self, inputs: list[Layout], shape: tuple[int, ...], limits: DeviceLimits) -> Plan:
        """Return the Plan of a product. inputs: data, indices, indptr, b; shape: of the product."""
        data, indices, _, b = inputs
        size = math.prod(shape)
        if not size:
            return Plan(())
        steps = [step for x in inputs for step in layouts.steps_of(x, x.shape)]
        arrays = (*(Array("in", k) for k in range(4)), Array("out"), Array("error_flag"))
        entries = min(data.size, indices.size)
        numbers = (size, shape[1], entries, b.shape[0], *steps)
        kernel = self.kernel[size >= layouts.LIMIT_32]
        return Plan((Launch(kernel, grid_of(size, limits), (THREADS, 1), arrays, numbers),))
