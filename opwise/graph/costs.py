"""Costs of Ops: the bytes that an Apply must move, for Ops with an exact count.

Ops use these functions as their methods ``traffic`` and ``flops``; see ``Op``.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol, TypeAlias


class ArrayLayout(Protocol):
    """The layout of an operand in memory, on which its traffic depends."""

    @property
    def shape(self) -> tuple[int, ...]:
        """Length of each dimension."""

    @property
    def strides(self) -> tuple[int, ...]:
        """Distance of neighbours along each dimension, in bytes."""

    @property
    def bytes(self) -> int:
        """Size of all elements, in bytes."""


#: the shapes of operands; None for an operand that is not an array
Shapes = Sequence[tuple[int, ...] | None]
#: the layouts of operands; None for an operand that is not an array
Layouts = Sequence[ArrayLayout | None]
#: the same for Ops whose operands all are arrays, which checkers of types cannot know
ArrayShapes: TypeAlias = Sequence[Any]
ArrayLayouts: TypeAlias = Sequence[Any]
#: (bytes read of each input, bytes written of each output); None if not known exactly
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
    """``traffic`` of an Op between an array of one number and a value that is not an array."""
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


def accumulates(factor: int) -> Any:
    """Return the ``traffic`` of an Op that adds to the product of its inputs 0 and ``factor``.

    The Op does not read input 0 if the factor is a constant 0. The traffic is unknown if the factor
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
    """Return whether the elements of an array are contiguous, in C order."""
    expected = array.bytes
    if expected == 0:
        return True
    for n, step in zip(array.shape, array.strides, strict=True):
        expected //= n
        if n > 1 and step != expected:
            return False
    return True
