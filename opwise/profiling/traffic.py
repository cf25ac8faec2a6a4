"""Traffic: the bytes that the Applys of a function must read and write, if their Ops have a count.

``Op.traffic`` counts for one Apply; the Meter counts memory once that several operands share.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from opwise.graph import aliasing
from opwise.graph.costs import Layouts
from opwise.profiling.model import ArrayProfile

#: the arrays of operands, None for an operand that is no array
Arrays = Sequence[ArrayProfile | None]


class Meter:
    """Counts the traffic of the steps of a Program, in the order in which they run.

    array: from a slot of the Program to the array in it, or None.
    """

    def __init__(self, array: Callable[[int], ArrayProfile | None]) -> None:
        self._array = array
        #: for each slot with a view, the slot that owns the memory
        self._owners: dict[int, int] = {}

    def measure(self, step: Any, inputs: Arrays, outputs: Arrays) -> int | None:
        """Return the bytes that a step reads and writes; None without an exact count.

        Memory that several operands share is read once.
        """
        counts = _counts(step.node, inputs, outputs)
        self._note_views(step, counts)
        if counts is None:
            return None
        read, written = counts
        by_owner: dict[int, dict[int, int]] = {}
        for slot, array, count in zip(step.inputs, inputs, read, strict=True):
            if count and array is not None and _repeats(array):
                return None
            if count:
                by_owner.setdefault(self._owner(slot), {})[slot] = count
        shared = [self._of_owner(owner, parts) for owner, parts in by_owner.items()]
        known = [size for size in shared if size is not None]
        return sum(known) + sum(written) if len(known) == len(shared) else None

    def _note_views(self, step: Any, counts: tuple[list[int], list[int]] | None) -> None:
        """Note whose memory the outputs share. A declared view may have been a copy.

        A value that is no array, such as a sparse matrix, holds a different array for each output.
        """
        for k, slot in enumerate(step.outputs):
            viewed = aliasing.viewed_inputs(step.node, k)
            overwrites = k in step.node.op.destroy_map
            copied = counts is not None and counts[1][k] > 0 and not overwrites
            if viewed and not copied and self._array(step.inputs[viewed[0]]) is not None:
                self._owners[slot] = self._owner(step.inputs[viewed[0]])

    def _owner(self, slot: int) -> int:
        return self._owners.get(slot, slot)

    def _of_owner(self, owner: int, parts: dict[int, int]) -> int | None:
        """Return the bytes of operands in the memory of one slot together; None if unknown."""
        most = max(parts.values())
        if len(parts) == 1:
            return most
        whole = self._array(owner)
        # several parts may overlap, unless one of them is everything
        return most if whole is not None and most == whole.bytes else None


def _counts(node: Any, inputs: Layouts, outputs: Layouts) -> tuple[list[int], list[int]] | None:
    """Return (bytes read, bytes written) by operand as the Op counts them, or None."""
    try:
        found = node.op.traffic(node, inputs, outputs)
        return None if found is None else (list(map(int, found[0])), list(map(int, found[1])))
    except Exception:  # a user's Op may raise anything; a profile is not lost for that
        return None


def _repeats(array: ArrayProfile) -> bool:
    """Return whether an array contains an element several times."""
    return any(n > 1 and not step for n, step in zip(array.shape, array.strides, strict=True))
