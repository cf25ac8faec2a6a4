"""Kernels that fill new arrays from a few numbers: ranges and matrices with a diagonal."""

from __future__ import annotations

from opwise.gpu.kernels import cudatext
from opwise.gpu.kernels.cudatext import for_each, stored
from opwise.gpu.kernels.kernel import (
    THREADS,
    Array,
    DeviceLimits,
    Kernel,
    Launch,
    Plan,
    grid_of,
    make_kernel,
)
from opwise.scalar import csource, dtypes


def arange(dtype: str) -> Kernel:
    """Return the kernel of a range: start, start + (second - start), ..., computed as by numpy."""
    number = _number(dtype)
    value = csource.convert(
        f"(i == 1 ? second : start + ({number})i * (second - start))", _wide(dtype), _own(dtype)
    )
    body = for_each(True, [f"z[i] = {cudatext.store(value, dtype)};"])
    parameters = [(f"{stored(dtype)} *", "z"), ("ow_i64", "n"), (number, "start"),
                  (number, "second")]  # fmt: skip
    return make_kernel("arange", parameters, body, _needs(dtype))


def arange_plan(kernel: Kernel, n: int, start: float, second: float, limits: DeviceLimits) -> Plan:
    """Return the Plan for a range of ``n`` elements; second: its second element."""
    return _plan(kernel, n, (n, start, second), limits)


def diagonal(dtype: str, test: str) -> Kernel:
    """Return the kernel of a matrix with ones where ``column - row {test} k``, and zeros elsewhere.

    test: a C comparison, such as "==".
    """
    one, zero = (cudatext.store(csource.literal(x, _own(dtype)), dtype) for x in (1, 0))
    body = for_each(True, [f"z[i] = (ow_i64)(i % m) - (ow_i64)(i / m) {test} k ? {one} : {zero};"])
    parameters = [(f"{stored(dtype)} *", "z"), ("ow_i64", "n"), ("ow_u32", "m"), ("ow_i64", "k")]
    return make_kernel("diagonal", parameters, body, _needs(dtype))


def diagonal_plan(kernel: Kernel, shape: tuple[int, ...], k: int, limits: DeviceLimits) -> Plan:
    """Return the Plan for a matrix of a shape; k: the offset of the diagonal."""
    rows, columns = shape
    return _plan(kernel, rows * columns, (rows * columns, columns, k), limits)


def _own(dtype):
    return cudatext.held(dtype)


def _wide(dtype):
    """Return the dtype in which a range is computed."""
    if dtype in dtypes.FLOATS:
        return _own(dtype)
    return "uint64" if dtype == "uint64" else "int64"


def _number(dtype):
    return {"uint64": "ow_u64", "int64": "ow_i64"}.get(_wide(dtype)) or csource.c_type(_wide(dtype))


def _needs(dtype):
    return cudatext.support(*(["half"] if dtype == "float16" else []))


def _plan(kernel, n, numbers, limits):
    if n == 0:
        return Plan(())
    return Plan((Launch(kernel, grid_of(n, limits), (THREADS, 1), (Array("out"),), numbers),))
