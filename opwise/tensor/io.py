"""Arrays that are read from files while a function runs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from opwise.graph.apply import Apply
from opwise.graph.op import Storage, Values
from opwise.graph.type import generic
from opwise.graph.variable import Constant, Variable
from opwise.scalar.dtypes import DTypeLike
from opwise.tensor.type import tensor_type
from opwise.tensor.variable import TensorOp

if TYPE_CHECKING:
    from opwise.tensor.variable import TensorLike


__all__ = ["LoadFromDisk", "load"]


class LoadFromDisk(TensorOp):
    """The array of a .npy file. The input is the path, a generic variable or a text.

    dtype, broadcastable: of the array. mmap_mode: 'c' maps the file into memory, None reads it.
    """

    __props__ = ("dtype", "broadcastable", "mmap_mode")

    def __init__(
        self, dtype: DTypeLike, broadcastable: Sequence[bool], mmap_mode: Literal["c"] | None = None
    ) -> None:
        if mmap_mode not in (None, "c"):
            raise ValueError(f"mmap_mode must be None or 'c', got {mmap_mode!r}")
        self.dtype = np.dtype(dtype)
        self.broadcastable = tuple(broadcastable)
        self.mmap_mode = mmap_mode

    def make_node(self, path: TensorLike) -> Apply:
        if isinstance(path, str):
            path = Constant(generic, path)
        output = tensor_type(self.dtype.name, self.broadcastable).make_variable()
        return Apply(self, [path], [output])

    def perform(self, node: Apply, inputs: Values, output_storage: Storage) -> None:
        (path,) = inputs
        if path.endswith(".npz"):
            raise ValueError(f"Expected a .npy file, got {path}: save one array with numpy.save")
        array = np.load(path, mmap_mode=self.mmap_mode)
        if array.dtype != self.dtype:
            raise TypeError(f"Expected an array of type {self.dtype}, {path} has {array.dtype}")
        ones = [d for d, one in enumerate(self.broadcastable) if one]
        if array.ndim != len(self.broadcastable) or any(array.shape[d] != 1 for d in ones):
            raise TypeError(
                f"Expected an array with broadcast pattern {self.broadcastable}, {path} has shape "
                f"{array.shape}"
            )
        output_storage[0][0] = array

    def __str__(self) -> str:
        return (
            f"Load{{dtype: {self.dtype}, broadcastable: {self.broadcastable}, "
            f"mmep: {self.mmap_mode}}}"
        )


def load(
    path: Any,
    dtype: DTypeLike,
    broadcastable: Sequence[bool],
    mmap_mode: Literal["c"] | None = None,
) -> Variable:
    """Return the array of a .npy file, which each call of a function reads again.

    path: a text, or a generic variable of one. dtype, broadcastable: of the array; the length of
    the pattern is its number of dimensions. mmap_mode: 'c' maps the file into memory, and reads
    only the parts that are used; None reads it. It has no gradient.

    Raises ValueError for another mmap_mode, TypeError for an unknown dtype; at run time TypeError
    if the array has another dtype, number of dimensions or a length of a broadcastable dimension
    that is not 1, ValueError for a .npz file, and the errors of ``numpy.load``, such as
    FileNotFoundError.
    """
    return LoadFromDisk(dtype, broadcastable, mmap_mode)(path)
