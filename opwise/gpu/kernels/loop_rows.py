"""The kernel that copies rows of arrays before and after a step of a loop.

One launch copies all rows that a step reads, or all that it writes. Where they lie stands in a
table in the device's memory, and the step is a number, so that the launches of all steps differ in
that number only.
"""

from __future__ import annotations

from functools import cache
from typing import NamedTuple

from opwise.gpu.kernels import cudatext
from opwise.gpu.kernels.kernel import (
    THREADS,
    DeviceLimits,
    Kernel,
    grid_of,
    in_braces,
    make_kernel,
    with_head,
)

#: a thread copies so many bytes at once, if addresses and sizes allow
_BYTES = 16


class RowsAt(NamedTuple):
    """Where one row of each step lies, in C order without gaps: four numbers of the table.

    The row of step t is number ``(t + first) % length``.
    """

    address: int
    #: bytes from a row to the next one
    step: int
    length: int
    first: int


@cache
def copy_rows() -> Kernel:
    """Return the kernel. An entry of its table: a source, a target, the bytes of a row."""
    own = ["const ow_i64 *const entry = table + 9 * k;"]
    own += [
        f"{type_} *const {name} = ({type_} *)entry[{at}] + (t + entry[{at + 3}]) "
        f"% entry[{at + 2}] * entry[{at + 1}];"
        for type_, name, at in (("const ow_u8", "from", 0), ("ow_u8", "to", 4))
    ]
    own.append("ow_copy_bytes(from, to, entry[8], start, step);")
    body = [
        f"const ow_i64 start = (ow_i64)blockIdx.x * {THREADS} + threadIdx.x;",
        f"const ow_i64 step = (ow_i64)gridDim.x * {THREADS};",
        *with_head("for (ow_i32 k = 0; k < entries; k++)", in_braces(own)),
    ]
    parameters = [("const ow_i64 *__restrict__", "table"), ("ow_i32", "entries"), ("ow_i64", "t")]
    return make_kernel("copy_rows", parameters, body, cudatext.support("copy"))


def table_of(copies: list[tuple[RowsAt, RowsAt, int]]) -> list[tuple[int, ...]]:
    """Return the table of copies: (source, target, bytes of a row)."""
    return [(*source, *target, size) for source, target, size in copies]


def grid_for(copies: list[tuple[RowsAt, RowsAt, int]], limits: DeviceLimits) -> int:
    """Return the size of the grid of a launch."""
    return grid_of(max(size for _, _, size in copies), limits, THREADS * _BYTES)
