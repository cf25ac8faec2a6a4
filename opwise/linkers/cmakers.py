"""Makers of C steps: for each Op class, how an Apply of it becomes a step of the virtual machine.

A maker is a function ``(node, kernels) -> CStep | None`` registered for an Op class; None means
that this Apply has no C implementation and runs ``perform``. The steps' kinds are in
csupport/kinds.h. ``kernels`` gives loops for elementwise work (see ``opwise.linkers.kernels``).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from opwise.scalar.types import Scalar
from opwise.tensor.type import TensorType

#: dtypes that C steps compute with; views also pass others through
C_DTYPES = frozenset(
    ("bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64",
     "float32", "float64")
)  # fmt: skip
MAX_DIMENSIONS = 8
MAX_OPERANDS = 40


@dataclass(frozen=True)
class CStep:
    """A C step: its kind, parameters, and for elementwise work the loop that kernels will give."""

    kind: str
    ints: tuple = ()
    reals: tuple = ()
    loop: object = None


_makers: dict[type, object] = {}
_found: dict[type, object] = {}


def c_maker(*op_classes):
    """Register a maker for Op classes; subclasses use it too unless they have their own."""

    def register(maker):
        for cls in op_classes:
            _makers[cls] = maker
        _found.clear()
        return maker

    return register


def c_step(node, kernels):
    """Return the C step of an Apply, or None if it has none."""
    cls = type(node.op)
    if cls in _found:
        maker = _found[cls]
    else:
        maker = _found[cls] = next((_makers[c] for c in cls.__mro__ if c in _makers), None)
    if maker is None or not all(map(_fits, node.inputs)) or not all(map(_fits, node.outputs)):
        return None
    if len(node.inputs) + len(node.outputs) > MAX_OPERANDS:
        return None
    return maker(node, kernels)


def why_not(node):
    """Return why an Apply runs no C, in a few words for a profile."""
    cls = type(node.op)
    if not any(c in _makers for c in cls.__mro__):
        return f"{cls.__name__} has no C implementation"
    for var in (*node.inputs, *node.outputs):
        if not _fits(var):
            return f"{var.type} has no C implementation"
    dtypes = {v.type.dtype for v in (*node.inputs, *node.outputs)} - C_DTYPES
    if dtypes:
        return f"no C implementation for {', '.join(sorted(dtypes))}"
    return "no C implementation for these arguments"


def _fits(var):
    type_ = var.type
    return isinstance(type_, Scalar) or (
        isinstance(type_, TensorType) and type_.ndim <= MAX_DIMENSIONS
    )


def plain(*variables):
    """Return whether all variables have dtypes that C steps compute with."""
    return all(v.type.dtype in C_DTYPES for v in variables)


def cell_layout(var):
    """Return (numpy type number or -1, ndim, itemsize, is a number) of the cell of a variable."""
    type_ = var.type
    if isinstance(type_, TensorType) and type_.ndim <= MAX_DIMENSIONS:
        return type_.numpy_dtype.num, type_.ndim, type_.numpy_dtype.itemsize, 0
    if isinstance(type_, Scalar):
        dtype = np.dtype(type_.dtype)
        return dtype.num, 0, dtype.itemsize, 1
    return -1, 0, 0, 0
