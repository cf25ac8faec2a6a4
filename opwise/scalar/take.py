"""Take: an element of a vector, as an instruction of a loop that reads the vector itself.

An operand that instructions Take read as the first argument is a *table*: the loop has the address
of its elements, which stays the same from element to element (linkers/csupport/taken.h).
"""

from __future__ import annotations

from collections.abc import Sequence

from opwise.scalar import csource
from opwise.scalar.composite import Instruction
from opwise.scalar.op import BinaryScalarOp


class Take(BinaryScalarOp):
    """The element of a table at an index, which is in range and not negative."""

    def element_flops(self, n_inputs: int) -> int | None:
        return 0

    def has_cost(self) -> bool:
        return True

    def element_cost(self, n_inputs: int) -> float:
        return 0.5


take = Take()


def tables(instructions: Sequence[Instruction]) -> frozenset[int]:
    """Return the slots of a program that are tables."""
    return frozenset(one.args[0] for one in instructions if isinstance(one.op, Take))


def value_dtypes(instructions: Sequence[Instruction], in_dtypes: Sequence[str]) -> list[str]:
    """Return the dtypes of the inputs of a program that are not indices into tables."""
    indices = {one.args[1] for one in instructions if isinstance(one.op, Take)}
    return [dtype for slot, dtype in enumerate(in_dtypes) if slot not in indices]


def parameter(name: str, dtype: str) -> str:
    """Return the C parameter of a table."""
    return f"const {csource.stored(dtype)} *{name}"


def element(name: str, index: str, dtype: str) -> str:
    """Return the C expression of an element of a table."""
    return csource.load(f"{name}[{index}]", dtype)
