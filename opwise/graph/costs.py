"""Costs of Ops: the bytes that an Apply must move, for Ops with an exact count.

Functions to be used as the methods ``traffic`` and ``flops`` of Ops, see ``Op.traffic``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol


class ArrayLayout(Protocol):
    """What a count depends on: the layout of an operand in memory."""

    @property
    def shape(self) -> tuple[int, ...]:
        """Lengths."""

    @property
    def strides(self) -> tuple[int, ...]:
        """Distances between neighbours along each dimension, in bytes."""

    @property
    def bytes(self) -> int:
        """Size of all elements together."""


#: the layouts of operands, None for an operand that is no array
Layouts = Sequence[ArrayLayout | None]
#: bytes read of each input, and bytes written of each output; None without an exact count
Traffic = tuple[list[int], list[int]] | None


def each_once(op: Any, node: Any, inputs: Layouts, outputs: Layouts) -> Traffic:
    """``traffic`` of an Op that reads all of every input and writes all of every output."""
    read = [a.bytes for a in inputs if a is not None]
    written = [a.bytes for a in outputs if a is not None]
    complete = len(read) == len(inputs) and len(written) == len(outputs)
    return (read, written) if complete else None


def nothing(op: Any, node: Any, inputs: Layouts, outputs: Layouts) -> Traffic:
    """``traffic`` of an Op that returns views, or new memory without writing to it."""
    return [0] * len(inputs), [0] * len(outputs)


def number(op: Any, node: Any, inputs: Layouts, outputs: Layouts) -> Traffic:
    """``traffic`` of an Op between an array of one number and a value that is no array."""
    array = inputs[0] or outputs[0]
    return None if array is None else ([array.bytes], [array.bytes])


def written(op: Any, node: Any, inputs: Layouts, outputs: Layouts) -> Traffic:
    """``traffic`` of an Op that writes its outputs and reads no input."""
    sizes = [a.bytes for a in outputs if a is not None]
    return ([0] * len(inputs), sizes) if len(sizes) == len(outputs) else None


def view_or_copy(op: Any, node: Any, inputs: Layouts, outputs: Layouts) -> Traffic:
    """``traffic`` of an Op whose output in C order is a view of its first input, if possible."""
    source, result = inputs[0], outputs[0]
    if source is None or result is None:
        return None
    if not is_contiguous(source) and is_contiguous(result):
        return each_once(op, node, inputs, outputs)
    return nothing(op, node, inputs, outputs)


def accumulates(factor: int) -> Callable[[Any, Any, Layouts, Layouts], Traffic]:
    """Return the ``traffic`` of an Op that adds to its first input times input ``factor``.

    It does not read the first input if the factor is a constant 0. There is no count if the factor
    is not a constant.
    """

    def traffic(op: Any, node: Any, inputs: Layouts, outputs: Layouts) -> Traffic:
        value = getattr(node.inputs[factor], "data", None)
        counts = each_once(op, node, inputs, outputs)
        if value is None or counts is None:
            return None
        read, into = counts
        return ([0, *read[1:]] if value == 0 else read), into

    return traffic


def no_flops(op: Any, inputs: Any, outputs: Any) -> int:
    """``flops`` of an Op that only moves elements."""
    return 0


def is_contiguous(array: ArrayLayout) -> bool:
    """Return whether the elements of an array lie side by side in C order."""
    expected = array.bytes
    if expected == 0:
        return True
    for n, step in zip(array.shape, array.strides, strict=True):
        expected //= n
        if n > 1 and step != expected:
            return False
    return True
