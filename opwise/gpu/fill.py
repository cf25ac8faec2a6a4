"""Kernels that fill new memory from a few numbers: ranges and matrices with a diagonal."""

from __future__ import annotations

from opwise.gpu import cudatext
from opwise.gpu.cudatext import for_each, stored
from opwise.gpu.kernel import THREADS, Array, Launch, Plan, grid_of, make_kernel
from opwise.scalar import csource, dtypes


def arange(dtype):
    """Return the kernel of start, start + (second - start), ... in ``dtype``, as numpy does it."""
    number = _number(dtype)
    value = csource.convert(
        f"(i == 1 ? second : start + ({number})i * (second - start))", _wide(dtype), _own(dtype)
    )
    body = for_each(True, [f"z[i] = {cudatext.store(value, dtype)};"])
    parameters = [(f"{stored(dtype)} *", "z"), ("ow_i64", "n"), (number, "start"),
                  (number, "second")]  # fmt: skip
    return make_kernel("arange", parameters, body, _needs(dtype))


def arange_plan(kernel, n, start, second, device):
    return _plan(kernel, n, (n, start, second), device)


def diagonal(dtype, test):
    """Return the kernel of a matrix of ones where the test ``column - row`` {test} k holds."""
    one, zero = (cudatext.store(csource.literal(x, _own(dtype)), dtype) for x in (1, 0))
    body = for_each(True, [f"z[i] = (ow_i64)(i % m) - (ow_i64)(i / m) {test} k ? {one} : {zero};"])
    parameters = [(f"{stored(dtype)} *", "z"), ("ow_i64", "n"), ("ow_u32", "m"), ("ow_i64", "k")]
    return make_kernel("diagonal", parameters, body, _needs(dtype))


def diagonal_plan(kernel, shape, k, device):
    rows, columns = shape
    return _plan(kernel, rows * columns, (rows * columns, columns, k), device)


def _own(dtype):
    return cudatext.held(dtype)


def _wide(dtype):
    """The dtype in which a range is computed."""
    if dtype in dtypes.FLOATS:
        return _own(dtype)
    return "uint64" if dtype == "uint64" else "int64"


def _number(dtype):
    return {"uint64": "ow_u64", "int64": "ow_i64"}.get(_wide(dtype)) or csource.c_type(_wide(dtype))


def _needs(dtype):
    return cudatext.support(*(["half"] if dtype == "float16" else []))


def _plan(kernel, n, numbers, device):
    if n == 0:
        return Plan(())
    return Plan((Launch(kernel, grid_of(n, device), (THREADS, 1), (Array("out"),), numbers),))
