"""Opaque: the type of values that opwise hands on without a look inside."""

from __future__ import annotations

from typing import Any, Protocol

from opwise.graph.records import ByReference
from opwise.graph.type import Type


class ForeignType(Protocol):
    """What ``Opaque`` needs of the type of another library; equal ones must be interchangeable."""

    def filter(self, data: Any, strict: bool = False, allow_downcast: bool | None = None) -> Any:
        """Return a value of the type, or raise TypeError."""

    def values_eq(self, a: Any, b: Any) -> bool:
        """Return whether two values are equal."""

    def may_share_memory(self, a: Any, b: Any) -> bool:
        """Return whether writing to one value may change the other."""


class Opaque(ByReference, Type):
    """The type of values of another library, such as generators, slices or lists.

    foreign: its type in that library, which checks and compares the values.
    """

    def __init__(self, foreign: ForeignType) -> None:
        self.foreign = foreign

    def filter(self, data: Any, strict: bool = False, allow_downcast: bool | None = None) -> Any:
        return self.foreign.filter(data, strict=strict, allow_downcast=allow_downcast)

    # DebugMode compares and separates values by the type of their variable, an instance
    def values_eq(self, a: Any, b: Any) -> bool:  # type: ignore[override]
        return bool(self.foreign.values_eq(a, b))

    def values_eq_approx(self, a: Any, b: Any) -> bool:  # type: ignore[override]
        return self.values_eq(a, b)

    def may_share_memory(self, a: Any, b: Any) -> bool:  # type: ignore[override]
        return bool(self.foreign.may_share_memory(a, b))

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and self.foreign == other.foreign

    def __hash__(self) -> int:
        return hash((Opaque, self.foreign))

    def record_text(self) -> str:
        return str(self.foreign)

    def __str__(self) -> str:
        return str(self.foreign)

    __repr__ = __str__
