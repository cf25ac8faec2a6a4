"""Take: an element of a vector, as an instruction of a loop that reads the vector itself.

An operand that instructions Take read as the first argument is a *table*: the loop has the address
of its elements, which stays the same from element to element (linkers/csupport/taken.h).
"""

from __future__ import annotations

from opwise.scalar import csource
from opwise.scalar.program import Mark, Program


class Take(Mark):
    """The element of a table at an index, which is in range and not negative."""

    nin = 2

    def element_flops(self, n_inputs: int) -> int | None:
        return 0

    def element_cost(self, n_inputs: int) -> float:
        return 0.5


take = Take()


def tables(program: Program) -> frozenset[int]:
    """Return the slots of a program that are tables."""
    return frozenset(one.args[0] for one in program.instructions if isinstance(one.op, Take))


def value_dtypes(program: Program) -> list[str]:
    """Return the dtypes of the inputs of a program that are not indices into tables."""
    indices = {one.args[1] for one in program.instructions if isinstance(one.op, Take)}
    return [dtype for slot, dtype in enumerate(program.in_dtypes) if slot not in indices]


def parameter(name: str, dtype: str) -> str:
    """Return the C parameter of a table."""
    return f"const {csource.stored(dtype)} *{name}"


def element(name: str, index: str, dtype: str) -> str:
    """Return the C expression of an element of a table."""
    return csource.load(f"{name}[{index}]", dtype)
